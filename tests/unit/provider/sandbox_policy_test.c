/* Tells an engine that could not start a container from a program in one that failed. */

#include "provider/sandbox_policy.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(an_engine_that_failed_is_told_from_its_program) {
  json_auto_t *sandbox = json_pack("{s:s, s:s}", "mechanism", "docker", "image", "box");
  const struct call_request request = {.sandbox = sandbox};
  DATA_ROWS("provider/sandbox_policy/an_engine_that_failed_is_told_from_its_program.yaml", c, exit,
            words, told) {
    const struct process_result p = {.why = PROCESS_END_EXITED,
                                     .exit_code = (int)data_number(c.exit)};
    AUTO(call_result_deinit) struct call_result r = {0};
    buf_puts(&r.error_text.bytes, c.words);
    assert_false(sandbox_policy_engine_failed(false, &p, &request, &r));
    assert_int_equal(sandbox_policy_engine_failed(true, &p, &request, &r), c.told != NULL);
    assert_int_equal(r.class, c.told ? CLASS_NOT_FOUND : CLASS_NONE);
    if (c.told != NULL)
      assert_non_null(strstr(r.message, c.told));
  }
}
