/* Keeps what people say to a session while it works, and hands it to its agents and judges. */
#include "core/steer.h"

#include "base/limits.h"
#include "core/decide.h"
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

bool core_steer_has(const struct core *core, const char *key) {
  size_t i = 0;
  while (i < json_array_size(core->said) &&
         strcmp(json_word_at(json_array_get(core->said, i), "key"), key) != 0)
    i++;
  return i < json_array_size(core->said);
}

bool steer_takes(const struct core *core, const struct turn *turn, enum call_purpose purpose) {
  return (purpose == PURPOSE_EXECUTE && core_movement(core, turn)->argv == NULL) ||
         (purpose == PURPOSE_REASK && turn->phase == TURN_EXECUTING);
}

/* Returns the oldest call of work in that state, with CALL_DONE in any but that; and its turn. */
static struct call *steer_call_in(const struct core *core, enum call_state state,
                                  struct turn **turn) {
  for (*turn = core->turns; *turn != NULL; *turn = (*turn)->next)
    for (struct call *call = (*turn)->calls; call; call = call->next)
      if (steer_takes(core, *turn, call->purpose) && (call->state == state) != (state == CALL_DONE))
        return call;
  return NULL;
}

struct call *core_steer_call(const struct core *core, struct turn **turn) {
  return core->status == SESSION_RUNNING ? steer_call_in(core, CALL_RUNNING, turn) : NULL;
}

long core_steer_will(const struct core *core) {
  bool stopped = core->status == SESSION_STOPPED; /* then each is made again */
  struct turn *turn;
  const struct call *call = steer_call_in(core, stopped ? CALL_DONE : CALL_WAITING, &turn);
  if (call != NULL || core->turns != NULL || !core->has_next || core->next < 0)
    return call != NULL ? call->id : 0;
  const struct movement *m = &core->workflow->movements[core->next];
  return m->argv == NULL && m->child_count == 0 && m->ask == NULL ? core->call_count + 1 : 0;
}

const json_t *core_steer_next(const struct core *core, long call, uint64_t after) {
  JSON_EACH(core->said, i, said) {
    if (json_int_at(said, "call") == call && (uint64_t)json_int_at(said, "said") > after &&
        json_at(said, "given") == NULL)
      return said;
  }
  return NULL;
}

/* --- who is told --- */

json_t *steer_put(const struct core *core, const struct turn *turn, const struct call *call,
                  struct prompt *prompt) {
  json_auto_t *due = json_array();
  json_t *numbers = NULL;
  JSON_EACH(core->said, i, said) {
    const json_t *given = json_at(said, "given");
    bool has = call != NULL && json_at(said, "read") == NULL &&
               json_int_at(said, "given_call") == call->id; /* in its prompt */
    /* A call of the same turn may begin another conversation than the one that was told. */
    if (given != NULL && (json_integer_value(given) != turn->id || has))
      continue;
    numbers = numbers ? numbers : json_array();
    json_array_append(numbers, json_at(said, "said"));
    json_array_append(due, said);
  }
  if (numbers != NULL)
    prompt_said(due, workflow_language(core->workflow), prompt);
  return numbers;
}

/* --- as records --- */

bool steer_apply(const struct fold *f) {
  struct core *core = f->core;
  struct str text = fold_text(f, MEMBER_TEXT);
  if (text.n == 0 || fold_tree(f, MEMBER_BY) == NULL)
    return fold_bad(f, "nobody says anything in it");
  if (json_array_size(core->said) >= LIMIT_STEER_COUNT)
    return fold_bad(f, "too much was said before");
  if (core->said == NULL)
    core->said = json_array();
  json_t *said = json_pack("{sI so}", "said", (json_int_t)f->record->seq, "text", json_text(text));
  if (fold_has(f, MEMBER_CALL))
    json_put(said, "call", json_integer(fold_number(f, MEMBER_CALL)));
  if (fold_has(f, MEMBER_KEY))
    json_put(said, "key", json_text(fold_text(f, MEMBER_KEY)));
  json_array_append_new(core->said, said);
  return true;
}

void steer_carry(struct core *core, const json_t *texts) {
  for (size_t i = 0; i < json_array_size(texts) && i < LIMIT_STEER_JUDGED_COUNT; i++) {
    struct str text = json_view(json_array_get(texts, i));
    core->said = core->said ? core->said : json_array();
    json_array_append_new(core->said,
                          json_pack("{si si so}", "said", 0, "given", 0, "text", json_text(text)));
  }
}

/* Notes that the call has what was said in that record, in its prompt or read while it ran. */
static bool steer_mark(const struct core *core, const json_t *number, const struct turn *turn,
                       const struct call *call, bool read) {
  JSON_EACH(core->said, i, said) {
    if (json_int_at(said, "said") != json_integer_value(number))
      continue;
    json_put(said, "given", json_integer(turn->id));
    json_put(said, "given_call", json_integer(call->id));
    json_object_del(said, "read");
    if (read)
      json_put(said, "read", json_true());
    return true;
  }
  return false;
}

bool steer_given(const struct fold *f, const struct turn *turn, const struct call *call) {
  const json_t *numbers = fold_tree(f, MEMBER_SAID);
  for (size_t i = 0; i < json_array_size(numbers); i++)
    if (!steer_mark(f->core, json_array_get(numbers, i), turn, call, false))
      return fold_bad(f, "it has in its prompt what nobody said");
  return true;
}

void steer_read(const struct fold *f, const struct turn *turn, const struct call *call) {
  (void)steer_mark(f->core, json_at(fold_tree(f, MEMBER_DATA), "said"), turn, call, true);
}
