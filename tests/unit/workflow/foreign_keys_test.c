/* Words of other runners: what allowed_tools means for a movement's permission. */
#include "workflow/foreign_keys.h"

#include "support/data.h"
#include "support/test.h"

TEST(tools_become_permission_and_run) {
  static const struct {
    const char *tools, *movement, *wanted;
  } cases[] = {
      {"['Read','Grep']", "{}", "{}"},
      {"['Read','Edit']", "{}", "{'permission':'edit'}"},
      {"['Write','Bash']", "{}", "{'permission':'edit'}"},
      {"['Write']", "{'edit':false}", "{'edit':false}"},
      {"['Write']", "{'required_permission_mode':'readonly'}",
       "{'required_permission_mode':'readonly'}"},
      {"['Write']", "{'permission':'full'}", "{'permission':'full'}"},
      {"['Edit']", "{'command':['x']}", "{'command':['x']}"},
      {"['Edit']", "{'parallel':[]}", "{'parallel':[]}"},
      {"['Edit','Bash(npm test:*)','Bash(make *)','Bash(./dev)']", "{}",
       "{'permission':'edit','run':['npm test','make','./dev']}"},
      {"['Bash(make *)']", "{'required_permission_mode':'edit'}",
       "{'required_permission_mode':'edit','run':['make']}"},
      {"['Bash(make *)']", "{}", "{}"}, /* readonly runs nothing that may write */
      {"['Edit','Bash(make *)']", "{'run':['ninja']}", "{'permission':'edit','run':['ninja']}"},
      {"['Edit','Bash(rm -rf / && x)','Bash(a|b)','Bash()','Bash(','Bash(*)',7]", "{}",
       "{'permission':'edit'}"},
      {"'Edit'", "{}", "{}"},
      {"['']", "{}", "{}"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *tools = data_json(cases[i].tools), *movement = data_json(cases[i].movement);
    json_auto_t *wanted = data_json(cases[i].wanted);
    foreign_keys_take_tools(tools, movement);
    if (!json_equal(movement, wanted))
      fail_msg("%s with %s: %s", cases[i].tools, cases[i].movement, json_dumps(movement, 0));
  }
}
