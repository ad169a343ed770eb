/* tests.h - the tests that a command ran, counted from its output or from its reports.
 *
 * Blocking: for a pool thread; touches only its arguments. */
#ifndef SEGUE_HOST_TESTS_H
#define SEGUE_HOST_TESTS_H

#include "core/call.h"

/* spec: the movement's `tests`. Reports are looked for below cwd; one that is older than since_ms
 * (of the real clock) is of another run. Sets result->tests: what could not be counted is no test,
 * and `problem` says why. */
void tests_count(struct str spec, const char *cwd, int64_t since_ms, struct call_result *result);

#endif
