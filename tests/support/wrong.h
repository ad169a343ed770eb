/* wrong.h - makes a test program's first check wrong when SEGUE_TEST_FAIL is set, so that a test of
 * the tests can see that each of them is able to fail. Checks by cmocka need nothing (wrong.c is
 * between them and cmocka); a program with checks of its own asks for each one:
 *
 *   if (test_made_wrong() || !as_expected) ... */
#ifndef SEGUE_TESTS_WRONG_H
#define SEGUE_TESTS_WRONG_H

#include <stdbool.h>

/* True once, at the first call. */
bool test_made_wrong(void);

#endif
