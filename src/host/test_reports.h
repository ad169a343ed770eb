/* test_reports.h - counts the tests that a command ran, from its output or its reports.
 *
 * Blocking: for a pool thread; touches only its arguments. */
#ifndef SEGUE_HOST_TEST_REPORTS_H
#define SEGUE_HOST_TEST_REPORTS_H

#include "core/call.h"

/* `spec`: the movement's `tests`. Reports are looked for below cwd; one older than since_ms (real
 * time) belongs to another run. Sets result->tests: if they could not be counted there are none,
 * and `problem` says why. */
void test_reports_count(struct str spec, const char *cwd, int64_t since_ms,
                        struct call_result *result);

#endif
