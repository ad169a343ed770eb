/* Decides whether a call that came back is over or retried, and makes its records: call_end or the
 * wait for another attempt, the host's answer, and what the call reported before its end. */
#include "core/step.h"

#include "base/utf8.h"
#include "core/group.h"
#include "extract/silence.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

/* Goes to the provider that takes over, unless none is wanted. During a drain that is left to the
 * resume. */
static void go_elsewhere(struct step *s, struct turn *turn, struct call *call) {
  if (!s->env->draining && !group_stops(s->core, turn) &&
      !step_over_budget(s, turn, call, step_next_place(call)))
    step_restart_call(s, turn, call, false);
}

/* Returns the wait before another attempt at the same provider, -1 if there is to be none. */
static int64_t retry_delay(const struct step *s, const struct call *call,
                           const struct call_result *r, bool once_more, bool may_fall_back) {
  int attempts = once_more ? LIMIT_SILENT_ATTEMPT_COUNT : LIMIT_CALL_ATTEMPT_COUNT;
  if (r->class == CLASS_BUDGET && call->failures + 1 < LIMIT_CALL_ATTEMPT_COUNT)
    return 0;                                    /* it waits for a person to add to the budget */
  bool report = call->purpose == PURPOSE_REPORT; /* another call reports everything */
  if (r->class == CLASS_NOT_FOUND && call->resumed && !call->session_lost && !report)
    return 0; /* its conversation may be gone: try once more without it */
  if ((!once_more && !error_class_is_transient(r->class)) || call->failures + 1 >= attempts)
    return -1;
  if (r->retry_after_ms > LIMIT_RETRY_AFTER_MS &&
      json_is_false(json_at(s->core->config, "wait_for_reset")))
    return -1;
  if (r->retry_after_ms > LIMIT_RETRY_AFTER_MS)
    return may_fall_back || r->retry_after_ms > LIMIT_RESET_WAIT_MS ? -1 : r->retry_after_ms;
  if (r->retry_after_ms > 0)
    return r->retry_after_ms;
  int64_t wait = LIMIT_RETRY_BASE_MS << call->failures;
  if (wait > LIMIT_RETRY_MAX_MS)
    wait = LIMIT_RETRY_MAX_MS;
  return wait / 2 + (int64_t)s->ev->entropy[15] * (wait / 2) / 255; /* half fixed, half jitter */
}

/* Returns true if a backend answered without saying anything, which is no answer. A command may be
 * silent: its exit status speaks. */
static bool is_silent(const struct core *core, const struct turn *turn, const struct call *call,
                      const struct call_result *r) {
  return r->class == CLASS_NONE && r->structured == NULL && !step_is_command(core, turn, call) &&
         extract_says_nothing(buf_view(&r->text.bytes));
}

/* Returns true if nobody could read the reply (a proxy's page, say) and the work changes nothing,
 * so that it may be asked for again. */
static bool is_garbled(const struct core *core, const struct turn *turn, const struct call *call,
                       const struct call_result *r) {
  bool work = call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REASK ||
              call->purpose == PURPOSE_REPORT;
  return r->class == CLASS_PROTOCOL && work && !core->workflow->movements[turn->movement].edit &&
         !step_is_command(core, turn, call);
}

static void put_error(struct record_draft *d, const struct call_result *r) {
  struct str message = str_from(r->message);
  json_t *error = json_pack("{ss}", "class", error_class_name(r->class));
  if (utf8_valid(message.p, message.n))
    json_put(error, "message", json_stringn_nocheck(message.p, message.n));
  else
    json_put(error, "message", text_render(message));
  if (r->retry_after_ms > 0)
    json_put(error, "retry_after_ms", json_integer(r->retry_after_ms));
  record_put_tree(d, MEMBER_ERROR, error);
}

/* Puts what a result holds besides its text, and counts it in the day. */
static void put_result_members(const struct step *s, const struct turn *turn,
                               const struct call *call, struct record_draft *d,
                               const struct call_result *r) {
  const struct core *core = s->core;
  json_t *usage = step_call_usage(core, call, r);
  if (r->structured)
    record_put_tree(d, MEMBER_STRUCTURED, json_incref(r->structured));
  if (r->enforced)
    record_put_text(d, MEMBER_ENFORCED, str_from(r->enforced));
  if (r->has_exit)
    record_put_number(d, MEMBER_EXIT, r->exit);
  if (r->tests)
    record_put_tree(d, MEMBER_TESTS, json_incref(r->tests));
  if (r->signal > 0)
    record_put_number(d, MEMBER_SIGNAL, r->signal);
  if (r->error_text.bytes.n > 0)
    step_put_text(d, MEMBER_STDERR, &r->error_text);
  if (r->dropped_bytes > 0)
    record_put_number(d, MEMBER_DROPPED_BYTES, (int64_t)r->dropped_bytes);
  if (r->error_dropped_bytes > 0)
    record_put_number(d, MEMBER_STDERR_DROPPED_BYTES, (int64_t)r->error_dropped_bytes);
  if (r->files)
    record_put_tree(d, MEMBER_FILES, json_incref(r->files));
  if (r->files_more > 0)
    record_put_number(d, MEMBER_FILES_MORE, (int64_t)r->files_more);
  if (r->files_shared)
    record_put_bool(d, MEMBER_FILES_SHARED, true);
  if (r->requests)
    record_put_tree(d, MEMBER_REQUESTS, json_incref(r->requests));
  if (usage != NULL)
    record_put_tree(d, MEMBER_USAGE, usage);
  record_put_bytes(d, MEMBER_PROVIDER_SESSION, str_from(r->provider_session));
  record_put_bytes(d, MEMBER_NOTE, str_from(r->note));
  record_put_number(d, MEMBER_DURATION_MS, r->duration_ms);
  struct spend used = spend_of(usage, r->duration_ms);
  if (s->env->day_count != NULL)
    s->env->day_count(s->env->ctx, str_from(call->provider), &used);
  step_put_budget(d, budget_notes(core, turn, call, usage, r->duration_ms, r->class == CLASS_NONE));
}

void step_call_end(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return; /* cancelled, or of an earlier attempt */
  assert(s->ev->result != NULL);
  struct call_result r = *s->ev->result; /* borrowed: only its class and message may change */
  int64_t wait = -1;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_CALL_END, turn);
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  bool silent = is_silent(s->core, turn, call, &r);
  if (r.class == CLASS_BUDGET || r.class == CLASS_LOOPING)
    step_explain_end(s->core, turn, call, &r);
  if (silent)
    call_result_fail(&r, CLASS_PROTOCOL, "the answer is empty%s",
                     str_trim(buf_view(&r.text.bytes)).n > 0 ? ": it holds reasoning alone" : "");
  if (r.class != CLASS_NONE) {
    put_error(&d, &r);
    struct str next = core_next_backend(s->core, turn, call);
    bool once_more = silent || is_garbled(s->core, turn, call, &r);
    wait = retry_delay(s, call, &r, once_more, next.n > 0);
    if (wait >= 0)
      record_put_number(&d, MEMBER_RETRY_IN_MS, wait);
    else if (next.n > 0 && (r.elsewhere || error_class_falls_back(r.class)))
      record_put_bytes(&d, MEMBER_FALLBACK, next);
    if (r.text.bytes.n > 0)
      step_put_text(&d, MEMBER_TEXT, &r.text); /* the text that came before it failed */
  } else {
    step_put_text(&d, MEMBER_TEXT, &r.text);
  }
  put_result_members(s, turn, call, &d, &r);
  step_emit(s, &d);
  if (wait >= 0)
    step_effect(s, EFFECT_TIMER, call->id, wait);
  else if (call->fallback != NULL)
    go_elsewhere(s, turn, call);
}

void step_admission(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_ADMISSION, turn);
  char until[RECORD_TIME_BYTES];
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  record_put_bytes(&d, MEMBER_PROVIDER, str_from(call->provider));
  record_put_word(&d, MEMBER_ANSWER, admission_name(s->ev->admission));
  record_put_bytes(&d, MEMBER_REASON, str_from(s->ev->reason));
  record_put_bytes(&d, MEMBER_MESSAGE, str_from(s->ev->message));
  if (s->ev->until_ms > 0) {
    record_time(s->ev->until_ms, until);
    record_put_text(&d, MEMBER_UNTIL, str_from(until));
  }
  if (s->ev->admission == ADMISSION_FALLBACK)
    record_put_bytes(&d, MEMBER_FALLBACK, core_next_backend(s->core, turn, call));
  step_emit(s, &d);
  if (call->fallback != NULL)
    go_elsewhere(s, turn, call);
  else if (s->ev->admission == ADMISSION_ADMITTED)
    step_effect(s, EFFECT_START_CALL, call->id, 0);
}

void step_call_news(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  const json_t *news = s->ev->news;
  if (call == NULL || call->state != CALL_RUNNING || call->event_count >= LIMIT_CALL_EVENT_COUNT ||
      (news && json_dumpb(news, NULL, 0, JSON_COMPACT) > LIMIT_CALL_EVENT_BYTES))
    return;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_CALL_EVENT, turn);
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  record_put_word(&d, MEMBER_EVENT, s->ev->news_kind);
  if (news)
    record_put_tree(&d, MEMBER_DATA, json_incref((json_t *)news));
  step_emit(s, &d);
  if (strcmp(s->ev->news_kind, "usage") == 0)
    step_end_over_budget(s);
  else if (strcmp(s->ev->news_kind, "tool") == 0 && json_at(news, "argument") != NULL)
    step_guard_call(s, turn, call);
}
