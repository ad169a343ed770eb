/* Knows the vocabulary of other runners' workflow files. */
#include "workflow/foreign_keys.h"

#include "base/buf.h"
#include "base/limits.h"
#include "core/run.h"
#include "format/json_object.h"

#include <string.h>

struct foreign_key {
  const struct key_set *set;
  const char *name, *advice;
  const char *instead; /* the key that the advice suggests, or NULL */
};

/* `segue import` writes it in other words. */
#define TAKEN_OVER "segue import takt writes it in segue's own words"

static const struct foreign_key foreign_keys[] = {
    {&workflow_keys, "jobs", "write movements", "movements"},
    {&workflow_keys, "stages", "write movements, or judge.stages for the ways to judge",
     "movements"},
    {&workflow_keys, "tasks", "write movements", "movements"},
    {&workflow_keys, "inputs", "write params", "params"},
    {&workflow_keys, "env", "name variables in env of your config.yaml", NULL},
    {&workflow_keys, "all_steps", TAKEN_OVER, NULL},
    {&workflow_keys, "facet_pools", TAKEN_OVER, NULL},
    {&workflow_keys, "schemas", TAKEN_OVER, NULL},
    {&workflow_keys, "subworkflow", TAKEN_OVER, "params"},
    {&movement_keys, "agent", "write persona", "persona"},
    {&movement_keys, "arpeggio", "run segue ask --batch over the rows", NULL},
    {&movement_keys, "companion", "let a movement of its own review the work", NULL},
    {&movement_keys, "completion_retry", "let a rule lead back to the movement", NULL},
    {&movement_keys, "delay_before_ms", "run sleep in a command movement before it", NULL},
    {&movement_keys, "dynamic_facets", TAKEN_OVER, NULL},
    {&movement_keys, "effects", "let a command movement do it", NULL},
    {&movement_keys, "kind", "a movement with command runs a program, every other one an agent",
     NULL},
    {&movement_keys, "mode", "a movement with command runs a program, every other one an agent",
     NULL},
    {&movement_keys, "promotion", "list providers to fall back to, or branch on when(iteration)",
     NULL},
    {&movement_keys, "prompt", "write instruction", "instruction"},
    {&movement_keys, "quality_gates", TAKEN_OVER, NULL},
    {&movement_keys, "system_inputs", "let a command movement print it", NULL},
    {&movement_keys, "team_leader", TAKEN_OVER, NULL},
    {&movement_keys, "vars", "write the values into the instruction", NULL},
    {&movement_keys, "cmd", "write command: [program, argument, ...]", "command"},
    {&movement_keys, "shell", "write command: [sh, -c, '...']", "command"},
    {&movement_keys, "script", "write command: [sh, -c, '...']", "command"},
    {&movement_keys, "depends_on", "let a rule of the movement before lead here", NULL},
    {&movement_keys, "needs", "let a rule of the movement before lead here", NULL},
    {&movement_keys, "env", "name variables in env of your config.yaml", NULL},
    {&movement_keys, "if", "let the rules that lead here decide", NULL},
    {&movement_keys, "next", "write rules: [{condition: ..., next: ...}]", "rules"},
    {&movement_keys, "role", "write persona", "persona"},
    {&movement_keys, "system_prompt", "write persona", "persona"},
    {&movement_keys, "tools", "write permission, and run for the programs that it may run",
     "permission"},
    {&rule_keys, "when", "write condition: when(...)", "condition"},
    {&rule_keys, "if", "write condition", "condition"},
    {&rule_keys, "on", "write condition", "condition"},
    {&rule_keys, "goto", "write next", "next"},
    {&rule_keys, "then", "write next", "next"},
    {&rule_keys, "to", "write next", "next"},
};

const char *foreign_keys_advice(const struct key_set *set, struct str key) {
  for (size_t i = 0; i < ARRAY_LEN(foreign_keys); i++)
    if (foreign_keys[i].set == set && str_eq_c(key, foreign_keys[i].name))
      return foreign_keys[i].advice;
  return NULL;
}

const char *foreign_keys_instead(struct str key) {
  for (size_t i = 0; i < ARRAY_LEN(foreign_keys); i++)
    if (foreign_keys[i].instead != NULL && str_eq_c(key, foreign_keys[i].name))
      return foreign_keys[i].instead;
  return NULL;
}

/* Reads the quoted text at the start of `rest` and moves past it. */
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

bool foreign_keys_plain_condition(struct arena *arena, struct str condition, struct str *out) {
  struct str rest = str_trim(condition);
  buf_auto_t text = {0};
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
  return ok;
}

/* Returns PROGRAM of Bash(PROGRAM), Bash(PROGRAM *) and Bash(PROGRAM:*); empty if the tool is none
 * of these, or more than `run` can say. */
static struct str program_of(struct str tool) {
  if (!str_starts(tool, "Bash(") || tool.p[tool.n - 1] != ')')
    return STR("");
  struct str inner = {tool.p + strlen("Bash("), tool.n - strlen("Bash()")};
  if (inner.n > 2 && inner.p[inner.n - 1] == '*' && strchr(" :", inner.p[inner.n - 2]) != NULL)
    inner.n -= 2;
  return run_fault(inner) == NULL ? inner : STR("");
}

static bool says_one_of(const json_t *movement, const char *const *keys) {
  for (; *keys != NULL; keys++)
    if (json_object_get(movement, *keys) != NULL)
      return true;
  return false;
}

bool foreign_keys_may_edit(const json_t *movement) {
  const json_t *floor = json_object_get(movement, "required_permission_mode");
  const json_t *said = json_object_get(movement, "permission");
  return json_is_true(json_object_get(movement, "edit")) ||
         (said != NULL && !str_eq_c(json_view(said), "readonly")) ||
         (floor != NULL && !str_eq_c(json_view(floor), "readonly"));
}

void foreign_keys_take_tools(const json_t *tools, json_t *movement) {
  static const char *const work[] = {"command", "parallel", NULL};
  static const char *const permissions[] = {"edit", "permission", "required_permission_mode", NULL};
  json_auto_t *run = json_array();
  bool edits = false;
  JSON_EACH((json_t *)tools, i, tool) {
    struct str program = program_of(json_view(tool));
    edits = edits || str_among(json_view(tool), "Edit MultiEdit Write NotebookEdit");
    if (program.n > 0 && json_array_size(run) < LIMIT_RUN_COUNT)
      json_array_append_new(run, json_stringn(program.p, program.n));
  }
  if (edits && !says_one_of(movement, work) && !says_one_of(movement, permissions))
    json_object_set_new(movement, "permission", json_string("edit"));
  if (json_array_size(run) > 0 && json_object_get(movement, "run") == NULL &&
      !says_one_of(movement, work) && foreign_keys_may_edit(movement))
    json_object_set(movement, "run", run);
}

static const struct {
  const char *name, *why;
} foreign_variables[] = {
    {"review_scope", "write the scope into the task"},
};

const char *foreign_keys_variable(struct str name) {
  static const char *const spaces[] = {"var:", "context:", "effect:"};
  for (size_t i = 0; i < ARRAY_LEN(foreign_variables); i++)
    if (str_eq_c(name, foreign_variables[i].name))
      return foreign_variables[i].why;
  for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
    if (str_starts(name, spaces[i]))
      return "segue has no such values; {structured:MOVEMENT.FIELD} names one of a movement";
  return NULL;
}
