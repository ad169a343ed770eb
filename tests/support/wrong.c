/* Stands between the tests and cmocka: the linker sends their calls here (--wrap). */
#include "support/wrong.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static enum { UNASKED, NEVER, DUE, DONE } wrong;

static void ask(void) {
  if (wrong != UNASKED)
    return;
  wrong = getenv("SEGUE_TEST_FAIL") != NULL ? DUE : NEVER;
  (void)unsetenv("SEGUE_TEST_FAIL"); /* programs that the test starts are right */
}

bool test_made_wrong(void) {
  ask();
  bool now = wrong == DUE;
  if (now)
    wrong = DONE;
  return now;
}

#define WRAPPED(name, parameters, arguments)                                                       \
  void __real_##name parameters;                                                                   \
  void __wrap_##name parameters;                                                                   \
  void __wrap_##name parameters {                                                                  \
    if (test_made_wrong())                                                                         \
      _fail(file, line);                                                                           \
    __real_##name arguments;                                                                       \
  }

WRAPPED(_assert_true,
        (const LargestIntegralType result, const char *const expression, const char *const file,
         const int line),
        (result, expression, file, line))
WRAPPED(_assert_int_equal,
        (const LargestIntegralType a, const LargestIntegralType b, const char *const file,
         const int line),
        (a, b, file, line))
WRAPPED(_assert_int_not_equal,
        (const LargestIntegralType a, const LargestIntegralType b, const char *const file,
         const int line),
        (a, b, file, line))
WRAPPED(_assert_string_equal,
        (const char *const a, const char *const b, const char *const file, const int line),
        (a, b, file, line))
WRAPPED(_assert_string_not_equal,
        (const char *const a, const char *const b, const char *file, const int line),
        (a, b, file, line))
WRAPPED(_assert_memory_equal,
        (const void *const a, const void *const b, const size_t size, const char *const file,
         const int line),
        (a, b, size, file, line))

int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests,
                                   const size_t count, CMFixtureFunction setup,
                                   CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests,
                                   const size_t count, CMFixtureFunction setup,
                                   CMFixtureFunction teardown);

static void check_made_wrong(void **state) {
  (void)state;
  assert_true(true);
}

/* Runs one test after the other until one had its check made wrong; the others would only take
 * time. Tests that only call fail_msg have no check to be made wrong: then one of ours is. */
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests,
                                   const size_t count, CMFixtureFunction setup,
                                   CMFixtureFunction teardown) {
  int failed = 0;
  ask();
  if (wrong == NEVER)
    return __real__cmocka_run_group_tests(name, tests, count, setup, teardown);
  for (size_t i = 0; i < count && wrong == DUE; i++)
    failed += __real__cmocka_run_group_tests(name, tests + i, 1, setup, teardown);
  const struct CMUnitTest ours = cmocka_unit_test(check_made_wrong);
  if (wrong == DUE)
    failed += __real__cmocka_run_group_tests(name, &ours, 1, NULL, NULL);
  return failed;
}
