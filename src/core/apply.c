/* Folds records into the state: sessions, turns, and the table of all types. */
#include "core/apply.h"

#include "base/list.h"
#include "base/log.h"
#include "core/budget.h"
#include "core/decide.h"
#include "core/fold.h"
#include "core/gates.h"
#include "core/group.h"
#include "core/guard.h"
#include "core/kept.h"
#include "core/monitor.h"
#include "core/people.h"
#include "core/report.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what all records need --- */

bool fold_bad(const struct fold *f, const char *what) {
  return err_set(f->err, ERR_CORRUPT, "record %lld (" STR_FMT "): %s", (long long)f->record->seq,
                 STR_ARG(f->record->type_name), what);
}

bool fold_take_text(const struct fold *f, enum member key, struct buf *out) {
  struct str blob = fold_text(f, key + 1);
  buf_clear(out);
  if (blob.n > 0 && f->source == NULL)
    return fold_bad(f, "its text is in a blob that is not at hand");
  if (blob.n > 0)
    return f->source->blob(f->source->ctx, blob.p, out, f->err);
  buf_str(out, fold_text(f, key));
  return true;
}

void fold_set_json(json_t **slot, const json_t *value) {
  json_decref(*slot);
  *slot = value && !json_is_null(value) ? json_incref((json_t *)value) : NULL;
}

struct turn *fold_turn(const struct fold *f) {
  struct turn *turn = core_turn(f->core, (long)fold_number(f, MEMBER_TURN));
  if (turn == NULL)
    (void)fold_bad(f, "its turn is not open");
  return turn;
}

const struct structured_config *fold_structured(const struct fold *f, const struct turn *turn) {
  return f->core->workflow->movements[turn->movement].structured;
}

void fold_worked(const struct fold *f, struct turn *turn) {
  bool reports = f->core->workflow->movements[turn->movement].contract_count > 0;
  turn->phase = reports ? TURN_REPORTING : TURN_JUDGING;
}

void fold_take_answer(struct turn *turn, struct call *call) {
  buf_deinit(&turn->text);
  turn->text = call->text;
  turn->text_seq = call->text_seq;
  call->text = (struct buf){0};
}

/* --- turns and the session --- */

static bool apply_session_start(const struct fold *f) {
  struct core *core = f->core;
  if (core->status != SESSION_NEW)
    return fold_bad(f, "a session starts once");
  if (f->record->version != RECORD_VERSION)
    return fold_bad(f, "its version is not the one that this program reads");
  struct str id = fold_text(f, MEMBER_SESSION);
  if (id.n == 0 || id.n >= sizeof core->session)
    return fold_bad(f, "it has no session id");
  if (f->workflow != NULL) {
    core->workflow = workflow_ref(f->workflow);
  } else {
    json_t *doc = fold_tree(f, MEMBER_WORKFLOW);
    core->workflow = workflow_build(doc, f->err);
    if (core->workflow == NULL)
      return err_wrap(f->err, "record 1: its workflow cannot be built");
  }
  const struct workflow *wf = core->workflow;
  (void)snprintf(core->session, sizeof core->session, "%s", id.p);
  core->config = json_incref(fold_tree(f, MEMBER_CONFIG));
  if (!fold_take_text(f, MEMBER_TASK, &core->task))
    return false;
  core->movement_counts = xcalloc(wf->movement_count, sizeof *core->movement_counts);
  core->loops = xcalloc(wf->monitor_count + 1, sizeof *core->loops);
  core->status = SESSION_RUNNING;
  core->awaits_carried = record_is_true(f->record, MEMBER_CARRIES);
  core->has_next = true;
  core->next = (int)wf->initial;
  for (uint32_t i = 0; !core->proves && i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    uint32_t at = i;
    if (m->group != NO_GROUP)
      at = texts_child_index((size_t)m->group, i - wf->movements[m->group].first_child);
    texts_add(&core->texts, m->persona, 1, TEXT_PERSONA, at);
    texts_add(&core->texts, m->policy, 1, TEXT_POLICY, at);
    texts_add(&core->texts, m->knowledge, 1, TEXT_KNOWLEDGE, at);
    texts_add(&core->texts, m->instruction, 1, TEXT_INSTRUCTION, at);
  }
  return true;
}

static bool apply_turn_start(const struct fold *f) {
  struct core *core = f->core;
  if (core->awaits_carried)
    return fold_bad(f, "its session has not taken over what it begins with");
  long index = workflow_find(core->workflow, fold_text(f, MEMBER_MOVEMENT));
  if (index < 0)
    return fold_bad(f, "its movement is not in the workflow");
  bool is_child = core->workflow->movements[index].group != NO_GROUP;
  bool waits = core->has_next && core->next >= 0;
  if (!is_child && (!waits || monitor_next(core) != (size_t)index))
    return fold_bad(f, "no movement was to be entered, or another");
  if (fold_number(f, MEMBER_TURN) != core->turn_count + 1)
    return fold_bad(f, "its turn number is not the next one");
  struct turn *turn = xcalloc(1, sizeof *turn);
  turn->id = core->turn_count + 1;
  turn->movement = (size_t)index;
  if (!group_enter(f, turn)) {
    core_group_free(turn);
    free(turn);
    return false;
  }
  core->turn_count++;
  core->iteration_count += !is_child;
  turn->iteration = core->iteration_count;
  turn->movement_iteration = ++core->movement_counts[index];
  const struct movement *m = &core->workflow->movements[index];
  core->edits |= m->edit && !m->own_worktree;
  if (!is_child)
    guards_see_turn(core, (size_t)index);
  turn->stages = json_array();
  turn->checks = json_array();
  core->has_next = is_child ? core->has_next : false;
  CHAIN_APPEND(core->turns, turn);
  return true;
}

/* Makes the turn's answer the next movement's {previous_response}. */
static void apply_last_answer(struct core *core, struct turn *turn) {
  buf_deinit(&core->last_text);
  core->last_text = turn->text;
  core->last_text_seq = turn->text_seq;
  free(core->last_joined.joints);
  core->last_joined = turn->joined;
  turn->joined = (struct joined){0};
  core->has_last_text = true;
  turn->text = (struct buf){0};
}

static bool apply_turn_end(const struct fold *f) {
  struct core *core = f->core;
  struct turn *turn = fold_turn(f);
  if (turn == NULL)
    return false;
  if (turn->group > 0) {
    worktree_child_over(core, turn);
    return group_take(f, turn);
  }
  const struct movement *m = &core->workflow->movements[turn->movement];
  bool rejected = turn->rejected && m->approve != NULL;
  if (!rejected && (turn->phase != TURN_JUDGED || turn->rule == 0))
    return fold_bad(f, "its turn has no verdict");
  if (!rejected && fold_number(f, MEMBER_RULE) != turn->rule)
    return fold_bad(f, "its rule is not the one that was judged");
  if (!rejected && m->rules[turn->rule - 1].asks && !turn->answered)
    return fold_bad(f, "its question was not answered");
  if (m->argv != NULL && turn->has_exit) {
    guards_see_end(core, turn);
    gates_put(core, turn);
  }
  core->ended.turn = turn->id;
  core->ended.movement = turn->movement;
  core->has_next = true;
  core->next = rejected ? m->approve->on_reject : m->rule_next[turn->rule - 1];
  monitor_note(core, turn->movement);
  kept_answer(core, m, buf_view(&turn->text), turn->text_seq, &turn->joined);
  bool passed = m->gate && gate_exit(turn) == 0; /* its exit status says nothing about the work */
  if (m->monitor == NULL && !passed)             /* the loop goes on with the text it had */
    apply_last_answer(core, turn);
  if (turn->parts != NULL)
    group_publish(core, turn);
  kept_move(&core->reports, &turn->reports);
  json_object_setn_new(core->structured, m->name.p, m->name.n,
                       turn->structured ? json_incref(turn->structured) : json_null());
  core_drop_turn(core, turn);
  return true;
}

static bool apply_session_stop(const struct fold *f) {
  struct core *core = f->core;
  core->status = SESSION_STOPPED;
  core->answered = false;
  (void)session_outcome_from_name(fold_text(f, MEMBER_REASON), &core->outcome);
  core->stop_class = CLASS_NONE;
  (void)error_class_from_name(fold_text(f, MEMBER_CLASS), &core->stop_class);
  buf_clear(&core->stop_reason);
  buf_clear(&core->stop_message);
  buf_str(&core->stop_reason, fold_text(f, MEMBER_REASON));
  buf_str(&core->stop_message, fold_text(f, MEMBER_MESSAGE));
  fold_set_json(&core->stop_budget, fold_tree(f, MEMBER_BUDGET));
  return true;
}

/* Returns the last finished call that brought a value's text, NULL if there is none. */
static struct call *last_answer(const struct turn *turn) {
  struct call *last = NULL;
  for (struct call *call = turn->calls; call; call = call->next)
    if (call_generates(call) && call->state == CALL_DONE)
      last = call;
  return last;
}

/* Begins another round after a person's decision: from the last answer if there is one, with fresh
 * budgets. */
static void begin_round(struct turn *turn) {
  struct call *keep = last_answer(turn);
  for (struct call *call = turn->calls, *next; call; call = next) {
    next = call->next;
    if (call != keep)
      core_drop_call(turn, call);
  }
  if (keep != NULL) {
    keep->duration_ms = 0;
    keep->tokens = 1; /* almost none; 0 would mean that nobody counted them */
  }
  json_array_clear(turn->checks);
  turn->escalated = false;
  people_forget(turn);
}

/* Returns the last of the turn's own calls, NULL if there is none. */
static struct call *last_own(const struct turn *turn) {
  struct call *last = NULL;
  for (struct call *call = turn->calls; call; call = call->next)
    if (call_is_own(call))
      last = call;
  return last;
}

/* Returns true if the call was to make a value and was refused or cut off: that is an outcome of
 * its own. */
static bool call_ends_value(const struct fold *f, const struct turn *turn,
                            const struct call *call) {
  return fold_structured(f, turn) != NULL && call_generates(call) &&
         (call->class == CLASS_REFUSED || call->class == CLASS_LENGTH);
}

/* Gives the call another chance, starting with the first of its providers. */
static void begin_again(const struct fold *f, const struct turn *turn, struct call *call) {
  struct str first, model;
  core_first_backend(f->core, turn, call, &first, &model);
  call->state = CALL_WAITING;
  call->wait_until_ms = 0;
  call->failures = 0;
  bool same = str_eq_c(first, call->provider) && str_eq(model, str_from(call->model));
  if (first.n > 0 && !same && call->fallback == NULL)
    call->fallback = xstrndup(first.p, first.n);
}

/* Returns true if the call goes to another provider or model now than under the former
 * configuration. */
static bool is_moved(struct core *core, json_t *before, const struct turn *turn,
                     const struct call *call) {
  struct str now, was, now_model, was_model;
  json_t *config = core->config;
  core_first_backend(core, turn, call, &now, &now_model);
  core->config = before;
  core_first_backend(core, turn, call, &was, &was_model);
  core->config = config;
  return !str_eq(now, was) || !str_eq(now_model, was_model);
}

/* Takes another configuration: an unfinished call starts again where it now belongs, and so does
 * judging begun by another judge. */
static void take_config(const struct fold *f, json_t *config) {
  struct core *core = f->core;
  json_t *before = core->config;
  core->config = json_incref(config);
  for (struct turn *turn = core->turns; turn; turn = turn->next) {
    bool judge_moved = false;
    for (struct call *call = turn->calls; call; call = call->next) {
      bool moved = is_moved(core, before, turn, call);
      judge_moved |= moved && !call_is_own(call);
      if (moved && call_is_own(call) && call->state != CALL_DONE)
        begin_again(f, turn, call);
    }
    if (judge_moved && turn->phase == TURN_JUDGING) {
      json_array_clear(turn->stages);
      core_drop_judging(turn);
    }
  }
  json_decref(before);
}

/* Reopens a turn that was judged without a rule: it is judged again, or makes its value again. */
static bool reopen(struct turn *turn) {
  bool lacks_value = turn->error != NULL;
  if (turn->phase != TURN_JUDGED || turn->rule != 0)
    return false;
  turn->phase = lacks_value ? TURN_EXECUTING : TURN_JUDGING;
  turn->failure = END_NONE;
  free(turn->reason);
  turn->reason = NULL;
  json_decref(turn->error);
  turn->error = NULL;
  json_array_clear(turn->stages);
  core_drop_judging(turn);
  if (lacks_value)
    begin_round(turn);
  return true;
}

/* Takes a person's verdict, which ends all other judging of that turn. The turn's answer is the
 * last one that it had. */
static bool take_verdict(const struct fold *f) {
  json_t *verdict = fold_tree(f, MEMBER_VERDICT);
  struct turn *turn = verdict ? core_unjudged_turn(f->core) : NULL;
  if (verdict == NULL)
    return true;
  json_int_t rule = json_integer_value(json_at(verdict, "rule"));
  if (turn == NULL || turn->id != json_integer_value(json_at(verdict, "turn")))
    return fold_bad(f, "its verdict is on a turn that waits for none");
  if (rule < 1 || (size_t)rule > f->core->workflow->movements[turn->movement].rule_count)
    return fold_bad(f, "its verdict names a rule that is not there");
  (void)reopen(turn);
  struct call *answer = last_answer(turn);
  if (answer != NULL && turn->text.n == 0)
    fold_take_answer(turn, answer);
  turn->phase = TURN_JUDGING;
  turn->escalated = false;
  people_forget(turn);
  json_array_clear(turn->stages);
  core_drop_judging(turn);
  json_decref(turn->verdict);
  turn->verdict = json_clone_top(verdict);
  if (fold_has(f, MEMBER_BY))
    json_put(turn->verdict, "by", json_incref(fold_tree(f, MEMBER_BY)));
  return true;
}

/* Returns true if one of the turn's judges may still answer. */
static bool waits(const struct turn *turn) {
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->state == CALL_WAITING || call->state == CALL_RUNNING)
      return true;
  return false;
}

/* Takes what a person added to a budget. After a stop by budget each call's own use counts anew. */
static void take_budget(const struct fold *f) {
  budget_added_take(f->core, json_at(fold_tree(f, MEMBER_CHANGED), "add_budget"));
  if (!str_eq_c(buf_view(&f->core->stop_reason), "budget"))
    return;
  for (struct turn *turn = f->core->turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next)
      memset(&call->spent, 0, sizeof call->spent);
}

/* Resumes the session: what failed for good gets another chance. */
static bool apply_session_resume(const struct fold *f) {
  if (fold_tree(f, MEMBER_CONFIG) != NULL)
    take_config(f, fold_tree(f, MEMBER_CONFIG));
  if (!take_verdict(f))
    return false;
  take_budget(f);
  for (struct turn *t = f->core->turns; t; t = t->next)
    t->let_be |= str_eq_c(buf_view(&f->core->stop_reason), "protected");
  if (str_eq_c(buf_view(&f->core->stop_reason), "looping"))
    guards_forget(f->core);
  struct str reason = buf_view(&f->core->stop_reason);
  if (reason.n > 0) { /* not a crash: the first provider may work again, so ask it first */
    json_decref(f->core->behind);
    f->core->behind = NULL;
  }
  bool unavailable = str_eq_c(reason, "judge_unavailable") || str_eq_c(reason, "judge_split");
  bool escalated = str_eq_c(reason, "escalated") && !f->core->answered;
  bool no_check = str_eq_c(reason, "check_unavailable");
  for (struct turn *turn = f->core->turns; turn; turn = turn->next) {
    if (f->core->outcome != END_NONE && reopen(turn)) /* not a crash: this is why it stopped */
      group_reopen(turn);
    if (turn->phase == TURN_JUDGING && unavailable && !waits(turn)) {
      json_array_clear(turn->stages);
      core_drop_judging(turn);
    }
    if (turn->phase != TURN_EXECUTING && turn->phase != TURN_REPORTING)
      continue;
    if (turn->escalated && escalated)
      begin_round(turn);
    struct call *call = last_own(turn);
    if (call != NULL && call->purpose == PURPOSE_CHECK && call->state == CALL_DONE && no_check) {
      core_drop_call(turn, call);
    } else if (call != NULL && call->state == CALL_FAILED && !call_ends_value(f, turn, call)) {
      begin_again(f, turn, call);
    }
  }
  f->core->status = SESSION_RUNNING;
  f->core->answered = false;
  f->core->outcome = END_NONE;
  buf_clear(&f->core->stop_reason);
  buf_clear(&f->core->stop_message);
  fold_set_json(&f->core->stop_budget, NULL);
  return true;
}

static bool apply_session_end(const struct fold *f) {
  if (!session_outcome_from_name(fold_text(f, MEMBER_OUTCOME), &f->core->outcome))
    return fold_bad(f, "its outcome is unknown");
  buf_clear(&f->core->stop_message);
  buf_str(&f->core->stop_message, fold_text(f, MEMBER_MESSAGE));
  f->core->status = SESSION_ENDED;
  return true;
}

static bool (*const apply_type[RECORD_TYPE_COUNT])(const struct fold *f) = {
    [RECORD_SESSION_START] = apply_session_start,
    [RECORD_CARRIED] = apply_carried,
    [RECORD_TURN_START] = apply_turn_start,
    [RECORD_CALL_START] = apply_call_start,
    [RECORD_ADMISSION] = apply_admission,
    [RECORD_CALL_EVENT] = apply_call_event,
    [RECORD_CALL_END] = apply_call_end,
    [RECORD_CHECK] = apply_check,
    [RECORD_STRUCTURED] = apply_structured,
    [RECORD_REPORT] = apply_report,
    [RECORD_STAGE] = apply_stage,
    [RECORD_JUDGMENT] = apply_judgment,
    [RECORD_TURN_END] = apply_turn_end,
    [RECORD_SESSION_STOP] = apply_session_stop,
    [RECORD_SESSION_RESUME] = apply_session_resume,
    [RECORD_SESSION_END] = apply_session_end,
    [RECORD_QUESTION] = apply_question,
    [RECORD_ANSWER] = apply_answer,
    [RECORD_WORKSPACE] = apply_workspace,
};

bool core_apply(struct core *core, const struct record *record, struct workflow *workflow,
                const struct core_source *source, struct err *err) {
  struct fold f = {core, record, workflow, source, err};
  bool resumes = record->type == RECORD_SESSION_RESUME;
  if (record->seq != core->seq + 1)
    return fold_bad(&f, "its seq is not the next one");
  if (core->status == SESSION_ENDED)
    return fold_bad(&f, "nothing follows session_end");
  if (core->status == SESSION_NEW && record->type != RECORD_SESSION_START)
    return fold_bad(&f, "a log begins with session_start");
  if (core->status == SESSION_STOPPED && !resumes && record->type != RECORD_ANSWER)
    return fold_bad(&f, "a stopped session goes on with session_resume");
  if (record->type == RECORD_TYPE_COUNT)
    return fold_bad(&f, "its type is unknown");
  if (!apply_type[record->type](&f))
    return false;
  core->resumed = resumes;
  core->seq++;
  return true;
}

bool core_apply_json(struct core *core, const json_t *json, struct workflow *workflow,
                     const struct core_source *source, struct err *err) {
  struct record_draft d;
  record_read(&d, json);
  bool ok = core_apply(core, &d.record, workflow, source, err);
  record_drop(&d);
  return ok;
}
