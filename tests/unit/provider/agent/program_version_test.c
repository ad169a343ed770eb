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
  DATA_ROWS("provider/agent/program_version/the_version_is_found_in_an_answer.yaml", c, answer,
            version) {
    struct process_result r = {.why = PROCESS_END_EXITED};
    char version[64];
    buf_str(&r.out, str_from(c.answer));
    (void)version_read(&r, version, sizeof version);
    assert_string_equal(version, c.version);
    buf_deinit(&r.out);
  }
}
