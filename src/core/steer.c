/* Takes what people say to a session while it works, and hands it to its agents and judges. */
#include "core/steer.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <string.h>

bool core_steer_text_check(const struct core *core, struct str text, struct err *err) {
  if (core->status == SESSION_ENDED)
    return err_set(err, ERR_INVALID, "it has ended already: %s",
                   session_outcome_name(core->outcome));
  if (str_trim(text).n == 0 || text.n > LIMIT_STEER_BYTES)
    return err_set(err, ERR_USAGE, "what is said must have 1 to %u bytes: name a file in it",
                   LIMIT_STEER_BYTES);
  return json_array_size(core->said) < LIMIT_STEER_COUNT ||
         err_set(err, ERR_INVALID, "it was told %u things already", LIMIT_STEER_COUNT);
}

struct call *core_steer_call(const struct core *core, struct turn **turn) {
  *turn = core->status == SESSION_RUNNING ? core->turns : NULL;
  for (; *turn != NULL; *turn = (*turn)->next)
    for (struct call *call = (*turn)->calls; call; call = call->next)
      if (call->state == CALL_RUNNING && call_generates(call) &&
          !step_is_command(core, *turn, call))
        return call;
  return NULL;
}

long core_steer_will(const struct core *core) {
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    for (const struct call *call = turn->calls; call; call = call->next)
      if (call_generates(call) && !step_is_command(core, turn, call) && call->state != CALL_DONE &&
          (call->state == CALL_WAITING || core->status == SESSION_STOPPED))
        return call->id;
  if (core->turns != NULL || !core->has_next || core->next < 0)
    return 0;
  const struct movement *m = &core->workflow->movements[core->next];
  bool calls_first = m->argv == NULL && m->child_count == 0 && m->ask == NULL;
  return calls_first ? core->call_count + 1 : 0;
}

const json_t *core_steer_next(const struct core *core, long call, uint64_t after) {
  size_t i;
  json_t *said;
  json_array_foreach(core->said, i, said) {
    if (json_int_at(said, "call") == call && (uint64_t)json_int_at(said, "said") > after &&
        json_at(said, "given") == NULL)
      return said;
  }
  return NULL;
}

void steer_take(struct step *s) {
  struct turn *turn;
  struct call *call = core_steer_call(s->core, &turn);
  struct record_draft d;
  step_record(s, &d, RECORD_STEER);
  if (call != NULL)
    record_put_number(&d, MEMBER_TURN, turn->id);
  if (call != NULL && call->id == s->ev->call) {
    record_put_number(&d, MEMBER_CALL, call->id);
    step_effect(s, EFFECT_STEER, call->id, 0);
  }
  record_put_text(&d, MEMBER_TEXT, str_from(s->ev->message));
  record_put_tree(&d, MEMBER_BY, json_incref((json_t *)s->ev->by));
  step_emit(s, &d);
}

/* --- who is told --- */

/* Returns true if this call of the turn has to read it in its prompt. A call that is made anew after
 * one that was told may begin another conversation, and so may a correction. */
static bool steer_is_due(const json_t *said, const struct turn *turn, const struct call *call) {
  const json_t *given = json_at(said, "given");
  if (given == NULL)
    return true;
  bool has = call != NULL && json_at(said, "read") == NULL &&
             json_int_at(said, "given_call") == call->id; /* in its prompt */
  return json_integer_value(given) == turn->id && !has;
}

json_t *steer_put(const struct step *s, const struct turn *turn, const struct call *call,
                  struct prompt *prompt) {
  const struct core *core = s->core;
  json_t *due = NULL, *numbers = NULL, *said;
  size_t i;
  json_array_foreach(core->said, i, said) {
    if (!steer_is_due(said, turn, call))
      continue;
    due = due ? due : json_array();
    json_array_append(due, said);
    numbers = numbers ? numbers : json_array();
    json_array_append(numbers, json_at(said, "said"));
  }
  if (due != NULL)
    prompt_said(due, workflow_language(core->workflow), prompt);
  json_decref(due);
  return numbers;
}

json_t *steer_judged(const struct core *core) {
  size_t n = json_array_size(core->said),
         from = n > LIMIT_STEER_JUDGED_COUNT ? n - LIMIT_STEER_JUDGED_COUNT : 0;
  json_t *list = n > 0 ? json_array() : NULL;
  for (size_t i = from; i < n; i++) {
    const json_t *said = json_array_get(core->said, i);
    struct str text = json_view(json_at(said, "text"));
    if (text.n > LIMIT_STEER_JUDGED_BYTES)
      text.n = utf8_floor(text.p, LIMIT_STEER_JUDGED_BYTES);
    json_array_append_new(list, json_text(text));
  }
  return list;
}

/* --- as records --- */

static json_t *steer_find(const struct core *core, json_int_t seq) {
  size_t i;
  json_t *said;
  json_array_foreach(core->said, i, said) {
    if (json_int_at(said, "said") == seq)
      return said;
  }
  return NULL;
}

bool steer_apply(const struct fold *f) {
  struct core *core = f->core;
  struct str text = fold_text(f, MEMBER_TEXT);
  if (text.n == 0 || fold_tree(f, MEMBER_BY) == NULL)
    return fold_bad(f, "nobody says anything in it");
  if (json_array_size(core->said) >= LIMIT_STEER_COUNT)
    return fold_bad(f, "too much was said before");
  if (core->said == NULL)
    core->said = json_array();
  json_t *said =
      json_pack("{sI so so sO}", "said", (json_int_t)f->record->seq, "text", json_text(text), "at",
                json_text(f->record->ts), "by", fold_tree(f, MEMBER_BY));
  if (fold_has(f, MEMBER_CALL))
    json_put(said, "call", json_integer(fold_number(f, MEMBER_CALL)));
  json_array_append_new(core->said, said);
  return true;
}

static void steer_mark(json_t *said, const struct turn *turn, const struct call *call, bool read) {
  json_put(said, "given", json_integer(turn->id));
  json_put(said, "given_call", json_integer(call->id));
  if (read)
    json_put(said, "read", json_true());
  else
    json_object_del(said, "read");
}

bool steer_given(const struct fold *f, const struct turn *turn, const struct call *call) {
  const json_t *numbers = fold_tree(f, MEMBER_SAID);
  for (size_t i = 0; i < json_array_size(numbers); i++) {
    json_t *said = steer_find(f->core, json_integer_value(json_array_get(numbers, i)));
    if (said == NULL)
      return fold_bad(f, "it has in its prompt what nobody said");
    steer_mark(said, turn, call, false);
  }
  return true;
}

void steer_read(const struct fold *f, const struct turn *turn, const struct call *call) {
  json_t *said = steer_find(f->core, json_int_at(fold_tree(f, MEMBER_DATA), "said"));
  if (said != NULL)
    steer_mark(said, turn, call, true);
}
