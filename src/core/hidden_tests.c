/* Decides when hidden tests are run, and what follows. */
#include "core/hidden_tests.h"

#include "core/step.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

/* Only work can fail: a session that never entered a movement that may edit has none. */
static bool hidden_is_due(const struct core *core) {
  return json_is_object(json_at(core->config, "hidden_tests")) &&
         (core->edits || core->worktrees != NULL) &&
         !(core->hidden.passed && core->hidden.turn == core->turn_count);
}

bool hidden_hold_next(struct step *s) {
  const struct core *core = s->core;
  if (!core->has_next || core->next != NEXT_COMPLETE || !hidden_is_due(core))
    return false;
  if (!s->env->draining)
    step_effect(s, EFFECT_HIDDEN, 0, 0);
  return true;
}

void hidden_tell(const json_t *result, struct buf *out) {
  const json_t *tests = json_at(result, "tests"), *wanted = json_at(result, "wanted");
  const char *problem = json_string_value(json_at(result, "problem"));
  json_int_t passed = json_int_at(tests, "passed"), all = passed + json_int_at(tests, "failed");
  json_int_t of = wanted != NULL ? json_integer_value(wanted) : all;
  if (tests != NULL)
    buf_printf(out, "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " hidden tests passed",
               passed, of);
  else if (problem == NULL)
    buf_printf(out, "the hidden tests %s",
               json_is_true(json_at(result, "passes")) ? "passed" : "failed");
  if (problem != NULL)
    buf_printf(out, "%s%.400s", tests != NULL ? "; " : "the hidden tests did not run: ", problem);
}

/* Adds what the check said that agents can read, for a comparison. */
static json_t *with_visible(const struct core *core, const json_t *said) {
  json_t *data = json_clone_top(said);
  struct str name = core->workflow->movements[core->check.movement].name;
  const json_t *gate = core->check.turn > 0 ? json_object_getn(core->gates, name.p, name.n) : NULL;
  json_int_t passed = json_int_at(gate, "passed"), failed = json_int_at(gate, "failed");
  if (passed + failed > 0)
    json_object_set_new(data, "visible", json_pack("{sI sI}", "passed", passed, "failed", failed));
  return data;
}

void hidden_event(struct step *s) {
  struct record_draft d;
  buf_auto_t message = {0};
  if (!s->core->has_next || s->core->next != NEXT_COMPLETE || !hidden_is_due(s->core))
    return;
  step_record(s, &d, RECORD_HIDDEN_TESTS);
  record_put_bytes(&d, MEMBER_PROVIDER, json_view(json_at(s->core->hidden.worker, "provider")));
  record_put_bytes(&d, MEMBER_MODEL, json_view(json_at(s->core->hidden.worker, "model")));
  record_put_tree(&d, MEMBER_DATA, with_visible(s->core, s->ev->news));
  step_emit(s, &d);
  if (s->core->hidden.passed)
    return;
  hidden_tell(s->core->hidden.result, &message);
  buf_puts(&message, ". No agent was told. Look yourself, and approve to let it be complete, or "
                     "fork to have more done");
  step_stop(s, "hidden_tests", NULL, CLASS_NONE, buf_view(&message), NULL);
}
