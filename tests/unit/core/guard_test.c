/* Tests guards: what counts as the same again, and from which time on it is told. */
#include "core/guard.h"

#include "core/state.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>

#define DONE "'rules':[{'condition':'done','next':'COMPLETE'}]"

static struct workflow *guarded(const char *guards) {
  buf_auto_t text = {0};
  struct err err = {0};
  buf_printf(&text,
             "{'name':'w','guards':{%s},'movements':[{'name':'a'," DONE "},"
             "{'name':'t','command':['make']," DONE "}]}",
             guards);
  json_auto_t *doc = data_json(buf_c(&text));
  struct workflow *wf = workflow_build(doc, &err);
  if (wf == NULL)
    fail_msg("%s", err.text);
  return wf;
}

static void use_tool(struct call *call, const char *data) {
  json_auto_t *value = data_json(data);
  guards_see_tool(call, value);
}

/* The name and the argument make it the same; what else is told of it does not. */
TEST(the_same_tool_call_is_told_at_its_time) {
  static const struct {
    const char *guards;
    enum guard_action at[4]; /* after so many uses, from 1 on */
  } cases[] = {
      {"'same_tool':3", {GUARD_IGNORE, GUARD_IGNORE, GUARD_STOP, GUARD_STOP}},
      {"'same_tool':2,'on_same_tool':'warn'",
       {GUARD_IGNORE, GUARD_WARN, GUARD_IGNORE, GUARD_IGNORE}}, /* told once */
      {"'same_tool':2,'on_same_tool':'ignore'",
       {GUARD_IGNORE, GUARD_IGNORE, GUARD_IGNORE, GUARD_IGNORE}},
      {"", {GUARD_IGNORE, GUARD_IGNORE, GUARD_IGNORE, GUARD_IGNORE}},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct core core = {.workflow = guarded(cases[i].guards)};
    struct turn turn = {.movement = 0};
    struct call call = {.id = 1};
    for (size_t k = 0; k < ARRAY_LEN(cases[i].at); k++) {
      buf_auto_t why = {0};
      use_tool(&call, "{'name':'Bash','argument':'ls'}");
      if (guard_of_call(&core, &turn, &call, &why) != cases[i].at[k])
        fail_msg("%s, use %zu", cases[i].guards, k + 1);
      if (cases[i].at[k] == GUARD_STOP && k == 2)
        assert_string_equal(buf_c(&why), "the same tool call 3 times in a row: Bash ls");
    }
    buf_deinit(&call.tool);
    workflow_unref(core.workflow);
  }
}

TEST(another_argument_is_another_call) {
  struct call call = {.id = 1};
  DATA_ROWS("core/guard/another_argument_is_another_call.yaml", c, data, count) {
    use_tool(&call, c.data);
    if (call.tool_count != data_number(c.count))
      fail_msg("%s: %ld", c.data, call.tool_count);
  }
  buf_deinit(&call.tool);
}

TEST(a_movement_in_a_row_is_told_at_its_time) {
  DATA_ROWS("core/guard/a_movement_in_a_row_is_told_at_its_time.yaml", c, guards, row, action) {
    struct core core = {.workflow = guarded(c.guards)};
    buf_auto_t why = {0};
    for (long n = 0; n < data_number(c.row); n++)
      guards_see_turn(&core, 0);
    if (guard_of_next(&core, &why) != (enum guard_action)data_among(c.action, "ignore warn stop"))
      fail_msg("%s after %ld: %s", c.guards, data_number(c.row), buf_c(&why));
    core.next = 1; /* another breaks the row */
    buf_clear(&why);
    assert_int_equal(guard_of_next(&core, &why), GUARD_IGNORE);
    core.next = 0;
    guards_see_turn(&core, 1);
    assert_int_equal(guard_of_next(&core, &why), GUARD_IGNORE);
    workflow_unref(core.workflow);
  }
}

/* Numbers in an output, such as times, do not make it another. */
TEST(the_same_failure_is_counted) {
  struct core core = {.workflow = guarded("'same_failure':2")};
  DATA_ROWS("core/guard/the_same_failure_is_counted.yaml", c, text, exit, changed, count) {
    json_auto_t *gates = json_pack("{s{sb}}", "t", "stale", data_true(c.changed));
    core.gates = gates; /* with its last turn, which a change makes stale */
    struct turn turn = {.movement = 1, .has_exit = true, .exit = (int)data_number(c.exit)};
    buf_puts(&turn.text, c.text);
    guards_see_end(&core, &turn);
    if (core.failures[1].count != data_number(c.count))
      fail_msg("turn %zu: %ld", c.at + 1, core.failures[1].count);
    buf_deinit(&turn.text);
  }
  core.gates = NULL;
  guards_forget(&core);
  assert_int_equal(core.failures[1].count, 0);
  free(core.failures);
  workflow_unref(core.workflow);
}
