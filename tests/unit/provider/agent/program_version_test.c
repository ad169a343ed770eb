/* Versions as programs print them. What a probe finds is tested at the command line. */

#include "base/err.h"
#include "provider/agent/program_version.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(versions_are_compared_by_number) {
  DATA_ROWS("provider/agent/program_version/versions_are_compared_by_number.yaml", c, version,
            minimum, older)
    if (version_older(c.version, c.minimum) != data_true(c.older))
      fail_msg("%s against %s", c.version, c.minimum);
}

TEST(the_version_is_found_in_an_answer) {
  static const struct {
    const char *answer, *version;
  } cases[] = {
      {"codex-cli 0.169.0\n", "0.169.0"},
      {"v0.9.0\n", "0.9.0"},
      {"tool version v1.2.3-rc.1.", "1.2.3-rc.1"},
      {"V2.0 of 2026", "2.0"},
      {"rev1.2 is 3.4.5", "3.4.5"},
      {"none", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct process_result r = {.why = PROCESS_END_EXITED};
    char version[64];
    buf_str(&r.out, str_from(cases[i].answer));
    (void)version_read(&r, version, sizeof version);
    assert_string_equal(version, cases[i].version);
    buf_deinit(&r.out);
  }
}
