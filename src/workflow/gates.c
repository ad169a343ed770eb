/* Makes gates into command movements. */
#include "workflow/gates.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

enum { GATE_RUNS_DEFAULT = 10 };

static struct str gate_text(const json_t *object, const char *key) {
  return json_view(json_object_get(object, key));
}

static json_t *gate_rule(const char *condition, struct str next) {
  return json_pack("{ss so}", "condition", condition, "next", json_text(next));
}

/* Names a gate: "build.gate2", and "build.gate2 > review" for a second place that the rules lead
 * to. */
static void gate_name(struct str movement, const json_t *gate, size_t number, struct str target,
                      bool first_target, struct buf *out) {
  struct str own = gate_text(gate, "name");
  buf_clear(out);
  buf_str(out, movement);
  if (own.n > 0)
    buf_printf(out, "." STR_FMT, STR_ARG(own));
  else
    buf_printf(out, ".gate%zu", number + 1);
  if (!first_target)
    buf_printf(out, " > " STR_FMT, STR_ARG(target));
}

static json_t *gate_as_movement(const json_t *gate, const struct buf *name, struct str next,
                                struct str back, json_int_t runs) {
  static const char *const kept[] = {"command", "timeout", "cwd", "tests"};
  struct buf again = {0};
  json_t *m = json_object(), *rules = json_array();
  json_object_set_new(m, "name", json_text(buf_view(name)));
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    if (json_object_get(gate, kept[i]) != NULL)
      json_object_set(m, kept[i], json_object_get(gate, kept[i]));
  json_object_set_new(m, "gate", json_true());
  json_array_append_new(rules, gate_rule("when(exit == 0)", next));
  buf_printf(&again, "when(movement_iteration < %" JSON_INTEGER_FORMAT ")", runs);
  json_array_append_new(rules, gate_rule(buf_c(&again), back));
  json_object_set_new(m, "rules", rules);
  buf_deinit(&again);
  return m;
}

static bool is_place(const json_t *movements, struct str name) {
  if (str_eq_c(name, "COMPLETE"))
    return true;
  for (size_t i = 0; i < json_array_size(movements); i++)
    if (str_eq(gate_text(json_array_get(movements, i), "name"), name))
      return true;
  return false; /* this is reported as an error of its own */
}

/* Puts the chain before one place, and the name of its first movement into `first`. */
static void put_chain(json_t *made, const json_t *movement, const json_t *gates, struct str target,
                      bool first_target, struct buf *first) {
  struct str own = gate_text(movement, "name");
  const json_t *bound = json_object_get(movement, "gate_runs");
  json_int_t runs = bound ? json_integer_value(bound) : GATE_RUNS_DEFAULT;
  struct buf name = {0}, next = {0};
  buf_str(&next, target);
  for (size_t i = json_array_size(gates); i-- > 0;) {
    gate_name(own, json_array_get(gates, i), i, target, first_target, &name);
    json_array_append_new(
        made, gate_as_movement(json_array_get(gates, i), &name, buf_view(&next), own, runs));
    buf_clear(&next);
    buf_str(&next, buf_view(&name));
  }
  buf_clear(first);
  buf_str(first, buf_view(&next));
  buf_deinit(&name);
  buf_deinit(&next);
}

static void expand_one(json_t *movement, const json_t *movements, json_t *made) {
  json_t *gates = json_incref(json_object_get(movement, "gates")), *rule;
  const json_t *rules = json_object_get(movement, "rules");
  struct buf entries = {0};
  json_t *places = json_object(); /* a place -> the gate before it */
  size_t i;
  json_array_foreach((json_t *)rules, i, rule) {
    struct str next = gate_text(rule, "next");
    if (!is_place(movements, next) || str_eq(next, gate_text(movement, "name")))
      continue;
    if (json_object_getn(places, next.p, next.n) == NULL) {
      put_chain(made, movement, gates, next, json_object_size(places) == 0, &entries);
      json_object_setn_new(places, next.p, next.n, json_text(buf_view(&entries)));
    }
    json_t *entry = json_incref(json_object_getn(places, next.p, next.n));
    json_object_set_new(rule, "next", entry);
  }
  json_object_del(movement, "gates");
  json_object_del(movement, "gate_runs");
  json_decref(gates);
  json_decref(places);
  buf_deinit(&entries);
}

void gates_expand(json_t *doc) {
  assert(doc == NULL || json_is_object(doc));
  json_t *movements = json_object_get(doc, "movements"), *movement, *made = json_array();
  size_t i;
  json_array_foreach(movements, i, movement) {
    if (json_array_size(json_object_get(movement, "gates")) > 0 &&
        json_array_size(made) < LIMIT_MOVEMENT_COUNT)
      expand_one(movement, movements, made);
  }
  if (json_array_size(made) > 0)
    json_array_extend(movements, made);
  json_decref(made);
}
