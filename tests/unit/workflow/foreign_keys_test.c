/* Words of other runners: what allowed_tools means for a movement's permission. */
#include "workflow/foreign_keys.h"

#include "support/data.h"
#include "support/test.h"

TEST(tools_become_permission_and_run) {
  DATA_ROWS("workflow/foreign_keys/tools_become_permission_and_run.yaml", c, tools, movement,
            wanted) {
    json_auto_t *tools = data_json(c.tools), *movement = data_json(c.movement);
    json_auto_t *wanted = data_json(c.wanted);
    foreign_keys_take_tools(tools, movement);
    if (!json_equal(movement, wanted))
      fail_msg("%s with %s: %s", c.tools, c.movement, json_dumps(movement, 0));
  }
}
