/* Knows the words of other runners' workflow files. */
#include "workflow/dialect.h"

#include "base/buf.h"

#include <string.h>

struct foreign_key {
  const struct key_set *set;
  const char *name, *advice;
};

static const struct foreign_key foreign_keys[] = {
    {&workflow_keys, "all_steps", "write the rules into a policy that each movement names"},
    {&workflow_keys, "facet_pools", "name each movement's facets in it"},
    {&workflow_keys, "loop_monitors",
     "bound the loop by max_movements and by rules on when(movement_iteration >= N)"},
    {&workflow_keys, "max_iterations", "write max_movements"},
    {&workflow_keys, "schemas", "write the schema's path into structured_output.schema"},
    {&workflow_keys, "subworkflow", "write its movements into this file"},
    {&movement_keys, "agent", "write persona"},
    {&movement_keys, "args", "write the movements of the called workflow into this file"},
    {&movement_keys, "arpeggio", "run segue ask --batch over the rows"},
    {&movement_keys, "call", "write the movements of the called workflow into this file"},
    {&movement_keys, "companion", "let a movement of its own review the work"},
    {&movement_keys, "completion_retry", "let a rule lead back to the movement"},
    {&movement_keys, "delay_before_ms", "run sleep in a command movement before it"},
    {&movement_keys, "dynamic_facets", "name the movement's facets in it"},
    {&movement_keys, "effects", "let a command movement do it"},
    {&movement_keys, "kind", "a movement with command runs a program, every other one an agent"},
    {&movement_keys, "mode", "a movement with command runs a program, every other one an agent"},
    {&movement_keys, "output_contracts",
     "say in the instruction what the report must hold; the answer is the report"},
    {&movement_keys, "promotion", "list providers to fall back to, or branch on when(iteration)"},
    {&movement_keys, "prompt", "write instruction"},
    {&movement_keys, "quality_gates", "let a command movement check the work"},
    {&movement_keys, "system_inputs", "let a command movement print it"},
    {&movement_keys, "team_leader", "let one movement plan and others work"},
    {&movement_keys, "uses", "write the fragment's keys into the movement"},
    {&movement_keys, "vars", "write the values into the instruction"},
    {&movement_keys, "with", "write the values into the instruction"},
    {&rule_keys, "requires_user_input",
     "on_failure: escalate of a structured_output asks a person"},
    {&rule_keys, "return", "write next"},
    {&rule_keys, "when", "write condition: when(...)"},
};

const char *dialect_advice(const struct key_set *set, struct str key) {
  for (size_t i = 0; i < ARRAY_LEN(foreign_keys); i++)
    if (foreign_keys[i].set == set && str_eq_c(key, foreign_keys[i].name))
      return foreign_keys[i].advice;
  return NULL;
}

/* Reads the quoted text at the start of `rest` and moves behind it. */
static bool take_quoted(struct str *rest, struct buf *text) {
  size_t i = 1;
  if (rest->n == 0 || rest->p[0] != '"')
    return false;
  while (i < rest->n && rest->p[i] != '"') {
    if (rest->p[i] == '\\' && i + 1 < rest->n)
      i++;
    buf_putc(text, rest->p[i++]);
  }
  if (i == rest->n)
    return false;
  *rest = str_trim((struct str){rest->p + i + 1, rest->n - i - 1});
  return true;
}

bool dialect_plain_condition(struct arena *arena, struct str condition, struct str *out) {
  struct str rest = str_trim(condition);
  struct buf text = {0};
  bool ok = str_starts(rest, "ai(");
  if (ok) {
    rest = str_trim((struct str){rest.p + 3, rest.n - 3});
    ok = take_quoted(&rest, &text) && str_starts(rest, ")");
  }
  if (ok) {
    rest = str_trim((struct str){rest.p + 1, rest.n - 1});
    if (rest.n > 0)
      buf_putc(&text, ' ');
    buf_str(&text, rest);
    *out = arena_str(arena, buf_view(&text));
  }
  buf_deinit(&text);
  return ok;
}

static const struct {
  const char *name, *why;
} foreign_variables[] = {
    {"report_dir", "segue has no folder of reports"},
    {"user_inputs", "segue collects no answers of persons"},
    {"cycle_count", "segue has no loop monitors"},
    {"review_scope", "write the scope into the task"},
};

const char *dialect_variable(struct str name) {
  static const char *const spaces[] = {"report:", "var:", "context:", "effect:"};
  for (size_t i = 0; i < ARRAY_LEN(foreign_variables); i++)
    if (str_eq_c(name, foreign_variables[i].name))
      return foreign_variables[i].why;
  for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
    if (str_starts(name, spaces[i]))
      return "segue has no such values; {structured:MOVEMENT.FIELD} names one of a movement";
  return NULL;
}
