/* The main of the test programs. Constructors run before it, in an order that the compiler
 * chooses. */
#include "support/test.h"

#include <assert.h>

static struct CMUnitTest tests[128];
static int lines[128];
static size_t count;
static CMFixtureFunction group_setup, group_teardown;

void test_add(int line, struct CMUnitTest test) {
  size_t at = count++;
  assert(at < ARRAY_LEN(lines));
  for (; at > 0 && lines[at - 1] > line; at--) {
    lines[at] = lines[at - 1];
    tests[at] = tests[at - 1];
  }
  lines[at] = line;
  tests[at] = test;
}

void test_group(CMFixtureFunction setup, CMFixtureFunction teardown) {
  group_setup = setup;
  group_teardown = teardown;
}

int main(void) {
  return _cmocka_run_group_tests("tests", tests, count, group_setup, group_teardown);
}
