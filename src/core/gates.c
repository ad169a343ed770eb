/* Keeps how each command movement ended, and whether that still means something. */
#include "core/gates.h"

#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"

static const char *const counts[] = {"passed", "failed", "skipped"};

bool gate_is_no_pass(const json_t *tests) {
  return tests != NULL && (json_integer_value(json_at(tests, "passed")) <= 0 ||
                           json_integer_value(json_at(tests, "failed")) > 0);
}

int gate_exit(const struct turn *turn) {
  return turn->exit == 0 && gate_is_no_pass(turn->tests) ? 1 : turn->exit;
}

/* Marks all gates as stale, unless the turn is known to have changed nothing. */
void gates_changed(struct core *core, const struct turn *turn) {
  const char *name;
  json_t *gate;
  bool same = turn->files != NULL && json_array_size(turn->files) == 0 && !turn->files_lost;
  if (same || core->gates == NULL)
    return;
  json_object_foreach(core->gates, name, gate) {
    json_put(gate, "stale", json_true());
  }
}

static json_t *gate_json(const struct turn *turn) {
  json_t *gate = json_object();
  json_put(gate, "turn", json_integer(turn->id));
  json_put(gate, "exit", json_integer(gate_exit(turn)));
  for (size_t i = 0; turn->tests != NULL && i < ARRAY_LEN(counts); i++)
    json_object_set_new(gate, counts[i],
                        json_integer(json_integer_value(json_object_get(turn->tests, counts[i]))));
  json_put(gate, "stale", json_false());
  return gate;
}

void gates_put(struct core *core, const struct turn *turn) {
  struct str name = core->workflow->movements[turn->movement].name;
  core->check.turn = turn->id;
  core->check.movement = turn->movement;
  core->check.exit = gate_exit(turn);
  if (core->gates == NULL)
    core->gates = json_object();
  json_object_setn_new(core->gates, name.p, name.n, gate_json(turn));
}

void gates_take(struct core *core, const json_t *gates) {
  const char *name;
  json_t *gate;
  if (!json_is_object(gates))
    return;
  json_decref(core->gates);
  core->gates = json_clone(gates); /* the record keeps its own copy */
  if (json_at(core->config, "rejudges") != NULL)
    return;
  json_object_foreach(core->gates, name, gate) {
    json_put(gate, "stale", json_true());
  }
}

json_t *gates_json(const struct core *core, const struct turn *turn) {
  struct str name = core->workflow->movements[turn->movement].name;
  if (core->gates == NULL && !turn->has_exit)
    return NULL;
  json_t *gates = core->gates != NULL ? json_clone_top(core->gates) : json_object();
  if (turn->has_exit)
    json_object_setn_new(gates, name.p, name.n, gate_json(turn));
  return gates;
}

void gate_tests(const json_t *tests, struct buf *out) {
  if (json_at(tests, "passed") == NULL)
    return;
  for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
    json_int_t n = json_integer_value(json_object_get(tests, counts[i]));
    if (i < 2 || n > 0)
      buf_printf(out, "%s%" JSON_INTEGER_FORMAT " %s", i > 0 ? ", " : "", n, counts[i]);
  }
}

void gates_tell(const struct core *core, const struct turn *turn, struct buf *out) {
  struct str own = core->workflow->movements[turn->movement].name;
  const char *name;
  json_t *gate;
  bool several = json_object_size(core->gates) > 1;
  json_object_foreach(core->gates, name, gate) {
    bool stale = json_is_true(json_object_get(gate, "stale"));
    if ((turn->has_exit && str_eq_c(own, name)) ||
        (!several && !stale && json_object_get(gate, "passed") == NULL))
      continue;
    buf_puts(out, "  - ");
    buf_safe(out, str_from(name), false);
    buf_printf(out, " (%" JSON_INTEGER_FORMAT "): exit %" JSON_INTEGER_FORMAT,
               json_integer_value(json_object_get(gate, "turn")),
               json_integer_value(json_object_get(gate, "exit")));
    if (json_object_get(gate, "passed") != NULL)
      buf_puts(out, ", ");
    gate_tests(gate, out);
    buf_puts(out, stale ? ", stale\n" : "\n");
  }
}
