/* Versions as programs print them. What a probe finds is tested at the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "provider/version.h"

static void versions_are_compared_by_number(void **state) {
  static const struct {
    const char *version, *minimum;
    bool older;
  } cases[] = {
      {"2.1.329", "2.0.0", false},
      {"2.1.329 (Claude Code)", "2.1.330", true},
      {"codex-cli 0.99.0", "0.100.0", true},
      {"0.100.0", "0.99.9", false},
      {"1.2", "1.2.0", true},
      {"1.2.0", "1.2", false},
      {"1.2.0-beta.1", "1.2.0", false},
      {"10.0.0", "9.9.9", false},
      {"v22.23.3", "22.0.0", false},
      {"", "1.0.0", false},
      {"unknown", "1.0.0", false},
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (version_older(cases[i].version, cases[i].minimum) != cases[i].older)
      fail_msg("%s against %s", cases[i].version, cases[i].minimum);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(versions_are_compared_by_number)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
