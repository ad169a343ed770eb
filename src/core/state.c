/* Keeps turns, calls and prompts of a session, and frees them. */
#include "core/state.h"

#include "base/list.h"
#include "core/evidence.h"
#include "core/report_file.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <assert.h>
#include <stdlib.h>

static const char *const outcomes[END_COUNT] = {
    [END_NONE] = "none",
    [END_COMPLETE] = "complete",
    [END_ABORT] = "abort",
    [END_RULE_NO_MATCH] = "rule_no_match",
    [END_MAX_MOVEMENTS] = "max_movements",
    [END_CANCELLED] = "cancelled",
    [END_FAILED] = "failed",
};

const char *session_outcome_name(enum session_outcome outcome) {
  assert(outcome < END_COUNT);
  return outcomes[outcome];
}

bool session_outcome_from_name(struct str name, enum session_outcome *out) {
  for (int i = 1; i < END_COUNT; i++)
    if (str_eq_c(name, outcomes[i])) {
      *out = (enum session_outcome)i;
      return true;
    }
  return false;
}

/* Returns true if this outcome is also a reason to stop. */
static bool state_is_stop(enum session_outcome outcome) {
  return outcome == END_RULE_NO_MATCH || outcome == END_MAX_MOVEMENTS || outcome == END_FAILED;
}

const char *session_stop_status(struct str reason, struct str class) {
  enum session_outcome outcome;
  if (session_outcome_from_name(reason, &outcome) && state_is_stop(outcome))
    return outcomes[outcome];
  bool login = str_among(reason, "provider_error judge_unavailable") && str_eq_c(class, "auth");
  bool asks =
      login ||
      str_among(reason, "question escalated judge_split protected hidden_tests head_moved denied "
                        "budget after folder");
  return asks ? "needs_input" : "stopped";
}

bool session_stop_is_for_person(struct str reason) {
  enum session_outcome outcome;
  return str_among(reason, "interrupted terminated budget looping protected hidden_tests "
                           "head_moved denied question escalated "
                           "poison after") ||
         (session_outcome_from_name(reason, &outcome) && state_is_stop(outcome));
}

void core_init(struct core *core) {
  *core = (struct core){.structured = json_object(),
                        .sessions = json_object(),
                        .token_counts = json_object(),
                        .schemas = json_object()};
}

static void worktree_clear(struct worktree *w) {
  free(w->branch);
  free(w->base);
  free(w->path);
  free(w->folder);
  free(w->message);
  free(w->head);
  free(w->on);
}

static void call_free(struct call *call) {
  json_decref(call->usage);
  json_decref(call->told.usage);
  buf_deinit(&call->tool);
  free(call->provider);
  free(call->model);
  free(call->provider_session);
  free(call->cwd);
  free(call->fallback);
  json_decref(call->wanted);
  json_decref(call->options);
  json_decref(call->token);
  json_decref(call->sandbox);
  json_decref(call->schema);
  json_decref(call->structured);
  buf_deinit(&call->prompt);
  buf_deinit(&call->text);
  buf_deinit(&call->error_text);
  free(call);
}

void group_part_clear(struct group_part *part) {
  buf_deinit(&part->text);
  json_decref(part->structured);
  json_decref(part->tests);
  kept_free(&part->reports);
  *part = (struct group_part){.state = PART_PENDING, .label = STR("")};
}

static void core_group_free(struct turn *turn) {
  for (size_t i = 0; i < turn->part_count; i++)
    group_part_clear(&turn->parts[i]);
  free(turn->parts);
  json_decref(turn->items);
  turn->items = NULL;
  free(turn->joined.joints);
  turn->parts = NULL;
  turn->part_count = 0;
  turn->joined = (struct joined){0};
}

static void turn_free(struct turn *turn) {
  while (turn->calls) {
    struct call *next = turn->calls->next;
    call_free(turn->calls);
    turn->calls = next;
  }
  json_decref(turn->stages);
  json_decref(turn->checks);
  json_decref(turn->error);
  json_decref(turn->verdict);
  json_decref(turn->evidence.found);
  json_decref(turn->plan);
  json_decref(turn->evidence.judged);
  json_decref(turn->question);
  json_decref(turn->structured);
  json_decref(turn->files);
  json_decref(turn->tests);
  json_decref(turn->unfinished);
  kept_free(&turn->reports);
  buf_deinit(&turn->text);
  free(turn->unseen);
  json_decref(turn->head);
  free(turn->reason);
  free(turn);
}

void core_drop_turn(struct core *core, struct turn *turn) {
  CHAIN_REMOVE(core->turns, turn);
  core_group_free(turn);
  turn_free(turn);
}

bool call_is_own(const struct call *call) {
  return call->stage == STAGE_COUNT;
}

bool call_generates(const struct call *call) {
  return call_is_own(call) && call->purpose != PURPOSE_CHECK && call->purpose != PURPOSE_REPORT;
}

struct call *turn_last_answer(const struct turn *turn) {
  struct call *last = NULL;
  for (struct call *call = turn->calls; call; call = call->next)
    if (call_generates(call) && call->state == CALL_DONE)
      last = call;
  return last;
}

bool turn_is_calling(const struct turn *turn) {
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->state == CALL_RUNNING || call->state == CALL_WAITING)
      return true;
  return false;
}

struct call *turn_last_own_call(const struct turn *turn) {
  struct call *last = NULL;
  for (struct call *call = turn->calls; call; call = call->next)
    if (call_is_own(call))
      last = call;
  return last;
}

void core_drop_call(struct turn *turn, struct call *call) {
  CHAIN_REMOVE(turn->calls, call);
  call_free(call);
}

void core_drop_judging(struct turn *turn) {
  for (struct call *call = turn->calls, *next; call; call = next) {
    next = call->next;
    if (!call_is_own(call))
      core_drop_call(turn, call);
  }
}

void core_deinit(struct core *core) {
  while (core->turns)
    core_drop_turn(core, core->turns);
  workflow_unref(core->workflow);
  free(core->added);
  free(core->failures);
  json_decref(core->stop_budget);
  json_decref(core->config);
  json_decref(core->structured);
  json_decref(core->sessions);
  json_decref(core->token_counts);
  json_decref(core->schemas);
  json_decref(core->refused);
  json_decref(core->totals);
  json_decref(core->gates);
  json_decref(core->hidden.result);
  json_decref(core->hidden.worker);
  json_decref(core->behind);
  json_decref(core->reached);
  json_decref(core->outlived);
  worktree_clear(&core->worktree);
  for (struct worktree *w = core->worktrees, *next; w; w = next) {
    next = w->next;
    worktree_clear(w);
    free(w);
  }
  kept_free(&core->reports);
  kept_free(&core->responses);
  json_decref(core->inputs);
  json_decref(core->answers);
  json_decref(core->said);
  json_decref(core->touched);
  free(core->evidence.tree);
  free(core->evidence.origin);
  json_decref(core->evidence.before);
  json_decref(core->evidence.last);
  json_decref(core->evidence.allowed);
  free(core->loops);
  spends_deinit(&core->spends);
  buf_deinit(&core->stop_reason);
  buf_deinit(&core->stop_message);
  buf_deinit(&core->task);
  buf_deinit(&core->last_text);
  buf_deinit(&core->error.text);
  free(core->last_joined.joints);
  free(core->movement_counts);
  texts_deinit(&core->texts);
  *core = (struct core){0};
}

struct turn *core_turn(const struct core *core, long id) {
  struct turn *turn = core->turns;
  while (turn && turn->id != id)
    turn = turn->next;
  return turn;
}

struct call *turn_call(const struct turn *turn, long id) {
  struct call *call = turn->calls;
  while (call && call->id != id)
    call = call->next;
  return call;
}

struct call *turn_execute_call(const struct turn *turn) {
  struct call *found = NULL;
  for (struct call *call = turn->calls; call; call = call->next)
    if (call->purpose == PURPOSE_EXECUTE)
      found = call;
  return found;
}

struct turn *core_unjudged_turn(const struct core *core) {
  struct turn *turn = core->turns;
  while (turn && !(turn->phase == TURN_JUDGING || (turn->phase == TURN_JUDGED && turn->rule == 0) ||
                   (turn->phase == TURN_EXECUTING && turn->escalated)))
    turn = turn->next;
  return turn;
}

long core_max_movements(const struct core *core) {
  const json_t *own = json_object_get(core->config, "max_movements");
  if (json_is_integer(own))
    return (long)json_integer_value(own);
  return own != NULL ? MOVEMENTS_INFINITE : core->workflow->max_movements;
}

bool core_is_at_max(const struct core *core) {
  long max = core_max_movements(core);
  return core->has_next && core->next >= 0 && max != MOVEMENTS_INFINITE &&
         core->iteration_count >= max;
}

bool core_waits(const struct core *core) {
  bool begun = core->seq > 1 || core->status != SESSION_RUNNING;
  return !begun && json_array_size(json_object_get(core->config, "after")) > 0;
}

struct call *core_call(const struct core *core, long id, struct turn **turn) {
  for (struct turn *t = core->turns; t; t = t->next) {
    struct call *call = turn_call(t, id);
    if (call != NULL) {
      *turn = t;
      return call;
    }
  }
  return NULL;
}

/* --- where a turn works --- */

struct worktree *core_worktree(const struct core *core, long turn) {
  struct worktree *w = core->worktrees;
  if (turn == 0)
    return (struct worktree *)&core->worktree;
  while (w != NULL && w->turn != turn)
    w = w->next;
  return w;
}

const char *core_turn_folder(const struct core *core, const struct turn *turn) {
  const struct worktree *own = core_worktree(core, turn->id);
  if (own != NULL && own->made)
    return own->folder;
  return core->worktree.made ? core->worktree.folder : NULL;
}

bool core_worktree_busy(const struct core *core) {
  bool busy = core->worktree.asked != WORKTREE_IDLE;
  for (const struct worktree *w = core->worktrees; w && !busy; w = w->next)
    busy = w->asked != WORKTREE_IDLE;
  return busy;
}

/* --- what a turn may ask --- */

bool turn_asks(const struct turn *turn, const char *kind) {
  return str_eq_c(json_view(json_at(turn->question, "kind")), kind);
}

/* Returns whether something of this kind is to be asked about the turn. */
bool turn_may_ask(const struct core *core, const struct turn *turn, struct str kind) {
  const struct movement *m = core_movement(core, turn);
  bool begins = turn->phase == TURN_EXECUTING && turn->calls == NULL;
  if (str_eq_c(kind, "ask"))
    return begins && m->ask != NULL;
  if (str_eq_c(kind, "approve"))
    return begins && !turn->answered && !turn->rejected &&
           (m->approve != NULL || (turn->plan != NULL && turn->part_open + turn->part_done == 0));
  if (str_eq_c(kind, "input"))
    return turn->phase == TURN_JUDGED && turn->rule > 0 && m->rules[turn->rule - 1].asks &&
           !turn->answered;
  if (str_eq_c(kind, "judge"))
    return turn->phase == TURN_JUDGING && m->judge.split_asks && turn->verdict == NULL &&
           json_array_size(turn->stages) > 0;
  if (str_eq_c(kind, "evidence"))
    return turn->phase == TURN_JUDGING && turn->evidence.answer == 0 && evidence_asks(turn);
  return str_eq_c(kind, "value") && turn->phase == TURN_EXECUTING && turn->escalated;
}

/* --- conversations, and parameters that a model refused --- */

void core_session_key(const struct movement *m, struct str provider, bool common, struct buf *out) {
  char persona[SHA256_HEX];
  if (m->shares_conversation && !common) {
    buf_puts(out, "movement:");
    buf_str(out, m->name);
  } else if (m->session_key.n > 0) {
    buf_puts(out, "key:");
    buf_str(out, m->session_key);
  } else if (m->persona.n > 0) {
    sha256_hex(m->persona.p, m->persona.n, NULL, 0, persona);
    buf_printf(out, "persona:%.16s", persona);
  } else {
    buf_puts(out, "movement:");
    buf_str(out, m->name);
  }
  buf_putc(out, '\n');
  buf_str(out, provider);
}

static void refused_key(struct str provider, struct str model, struct buf *out) {
  buf_str(out, provider);
  buf_putc(out, '\n');
  buf_str(out, model);
}

const json_t *core_refused(const struct core *core, struct str provider, struct str model) {
  buf_auto_t key = {0};
  if (json_object_size(core->refused) == 0)
    return NULL;
  refused_key(provider, model, &key);
  const json_t *names = json_object_get(core->refused, buf_c(&key));
  return names;
}

void core_refuse(struct core *core, const struct call *call, const json_t *name) {
  buf_auto_t key = {0};
  refused_key(str_from(call->provider), str_from(call->model), &key);
  if (core->refused == NULL)
    core->refused = json_object();
  json_t *names = json_object_get(core->refused, buf_c(&key));
  if (names == NULL) {
    names = json_array();
    json_object_set_new(core->refused, buf_c(&key), names);
  }
  JSON_EACH(names, i, known) {
    if (json_same(known, name))
      return;
  }
  if (json_array_size(names) < LIMIT_REFUSED_COUNT)
    json_array_append(names, (json_t *)name);
}
