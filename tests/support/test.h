/* test.h - the tests of a program: each is written once, and the main of test.c runs all of them in
 * the order of the file.
 *
 *   TEST(what_it_shows) { ... }
 *   TEST_WITH(setup, teardown, what_it_shows) { ... }   both as cmocka has them
 *   TEST_ON(struct fixture *f, setup, teardown, what_it_shows) { ... }   with their *state as f
 *   TEST_GROUP(setup, teardown)   before the first and after the last; NULL: nothing */
#ifndef SEGUE_TESTS_TEST_H
#define SEGUE_TESTS_TEST_H

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void test_add(int line, struct CMUnitTest test);
void test_group(CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST_WITH(setup, teardown, name)                                                           \
  static void name(void **state);                                                                  \
  __attribute__((constructor)) static void name##_is_listed(void) {                                \
    test_add(__LINE__, (struct CMUnitTest){#name, name, setup, teardown, NULL});                   \
  }                                                                                                \
  static void name(__attribute__((unused)) void **state)

#define TEST_ON(fixture, setup, teardown, name)                                                    \
  static void name##_on(fixture);                                                                  \
  TEST_WITH(setup, teardown, name) {                                                               \
    name##_on(*state);                                                                             \
  }                                                                                                \
  static void name##_on(fixture)

/* The same with something else set up, which stands behind it. */
#define TEST_AGAIN(setup, teardown, name)                                                          \
  __attribute__((constructor)) static void name##_is_listed_again(void) {                          \
    test_add(__LINE__, (struct CMUnitTest){#name " " #setup, name, setup, teardown, NULL});        \
  }

#define TEST(name) TEST_WITH(NULL, NULL, name)

#define TEST_GROUP(setup, teardown)                                                                \
  __attribute__((constructor)) static void group_is_known(void) {                                  \
    test_group(setup, teardown);                                                                   \
  }

#endif
