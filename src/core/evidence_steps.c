/* Decides when a check's runs are made, and what follows from what they show. */
#include "core/evidence_steps.h"

#include "core/checks.h"
#include "core/evidence.h"
#include "core/human.h"
#include "core/monitor.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <string.h>

#define TASK_NO "the task does not ask that these files be changed"
#define TASK_YES                                                                                   \
  "the task itself asks for what is changed there: tests, checks, or what they demand"
#define TASK_NO_JA  "依頼はこれらのファイルの変更を求めていない"
#define TASK_YES_JA "依頼自体が、テスト、検査、またはそれらが要求する内容の変更を求めている"

/* --- before the next movement --- */

static bool is_check(const struct movement *m) {
  return m->evidence && m->argv != NULL && m->group == NO_GROUP;
}

static long first_check(const struct workflow *wf) {
  for (size_t i = 0; i < wf->top_count; i++)
    if (is_check(&wf->movements[i]))
      return (long)i;
  return -1;
}

static bool may_edit(const struct workflow *wf, const struct movement *m) {
  bool edits = m->edit && m->argv == NULL;
  for (size_t i = 0; i < m->child_count; i++)
    edits |= may_edit(wf, &wf->movements[m->first_child + i]);
  return edits;
}

static void evidence_ask(struct step *s, const char *event, const struct turn *turn, long check) {
  struct record_draft d;
  step_record(s, &d, RECORD_EVIDENCE);
  if (turn != NULL)
    record_put_number(&d, MEMBER_TURN, turn->id);
  if (check >= 0)
    record_put_text(&d, MEMBER_MOVEMENT, s->core->workflow->movements[check].name);
  record_put_word(&d, MEMBER_EVENT, event);
  step_emit(s, &d);
  step_effect(s, EFFECT_EVIDENCE, turn ? turn->id : 0, 0);
}

bool evidence_hold_next(struct step *s) {
  const struct core *core = s->core;
  if (core->next < 0)
    return false;
  const struct movement *m = &core->workflow->movements[monitor_next(core)];
  if (core->evidence.asked) {
    bool runs = core->evidence.run > 0 && core->evidence.before == NULL;
    return (core->evidence.tree == NULL && !core->evidence.off) ||
           (runs && is_check(m) && !m->together);
  }
  if (first_check(core->workflow) < 0 || !may_edit(core->workflow, m) ||
      json_is_false(json_object_get(core->config, "evidence")) ||
      json_at(core->config, "rejudges") != NULL || core_is_at_max(core))
    return false;
  evidence_ask(s, "take", NULL, -1);
  return true;
}

/* --- what follows --- */

static bool all_match(const json_t *patterns, const json_t *files, bool check_only) {
  size_t n = 0;
  if (json_array_size(patterns) == 0)
    return false;
  JSON_EACH(files, i, file) {
    struct str path = json_view(json_at(file, "path"));
    bool may = check_only && json_at(file, "check") == NULL;
    for (size_t k = 0; k < json_array_size(patterns) && !may; k++)
      may = protect_matches(json_view(json_array_get(patterns, k)), path);
    if (!may)
      return false;
    n++;
  }
  return n > 0;
}

/* A person's word, before the work or about just these contents. */
static bool is_allowed(const struct core *core, const json_t *found) {
  const json_t *files = json_at(found, "files");
  bool check = json_is_true(json_at(found, "check_changed"));
  const char *contents = json_string_value(json_at(found, "contents"));
  if (contents != NULL && json_object_get(core->evidence.allowed, contents) != NULL)
    return true;
  return str_among(evidence_found_word(found), "old_check_fails only_check_changed not_shown") &&
         json_at(found, "files_more") == NULL &&
         (all_match(core->workflow->may_change, files, check) ||
          all_match(json_at(core->config, "may_change"), files, check));
}

static void note_evidence(void *ctx, const struct str *names, size_t n) {
  bool *own = ctx;
  *own |= n > 0 && str_eq_c(names[0], "evidence");
}

static const char *follows(const struct core *core, const struct turn *turn, const json_t *found) {
  const struct movement *m = core_movement(core, turn);
  struct str word = evidence_found_word(found);
  bool once = str_among(word, "old_check_fails no_change");
  bool own = false;
  for (size_t i = 0; i < m->rule_count; i++)
    if (m->rules[i].when != NULL)
      expr_each_ref(m->rules[i].when, note_evidence, &own);
  if (own)
    return "on"; /* its rules say what follows */
  if (str_eq_c(word, "shown") || is_allowed(core, found))
    return "on";
  /* With no file of the check changed, it says nothing about the task: judges are told so. */
  if (str_eq_c(word, "not_shown") && !json_is_true(json_at(found, "check_changed")))
    return "on";
  if (once && !core->evidence.went_back)
    return "back";
  /* A task that somebody typed can be asked; other texts were perhaps written to be asked. */
  bool asks_task = json_is_true(json_at(core->config, "task_typed")) && core->task.n > 0 &&
                   json_is_true(json_at(found, "check_changed")) &&
                   json_at(found, "files_more") == NULL && !str_among(word, "no_change unknown");
  return asks_task ? "judge" : "ask";
}

/* Returns true if runs show something about this turn: an agent may have edited before it. */
static bool is_looked_at(const struct core *core, const struct turn *turn) {
  const struct movement *m = core_movement(core, turn);
  return is_check(m) && turn->has_exit && turn->exit == 0 && !checks_is_no_pass(turn->tests) &&
         core->evidence.asked && !core->evidence.off && core->edits && turn->verdict == NULL;
}

bool evidence_hold_turn(struct step *s, struct turn *turn, bool *more) {
  *more = false;
  if (!is_looked_at(s->core, turn))
    return false;
  if (!turn->evidence.asked && s->core->evidence.run > 0 && s->core->evidence.before == NULL)
    return true; /* its run on the base is not over */
  if (!turn->evidence.asked) {
    if (!s->env->draining)
      evidence_ask(s, "look", turn, (long)turn->movement);
    return true;
  }
  if (turn->evidence.found == NULL)
    return true;
  if (turn->evidence.answer == EVIDENCE_STOP) {
    step_end(s, END_ABORT, "a person stopped it: what the check shows was not accepted");
    *more = true;
    return true;
  }
  if (evidence_judges(turn) || !evidence_asks(turn) || turn->evidence.answer != 0)
    return false;
  human_ask(s, turn, "evidence", evidence_question(turn->evidence.found, turn->evidence.judged));
  *more = true;
  return true;
}

/* --- events --- */

static void emit_result(struct step *s, const char *event, const struct turn *turn, json_t *data) {
  struct record_draft d;
  step_record(s, &d, RECORD_EVIDENCE);
  if (turn != NULL)
    record_put_number(&d, MEMBER_TURN, turn->id);
  record_put_word(&d, MEMBER_EVENT, event);
  record_put_tree(&d, MEMBER_DATA, data);
  step_emit(s, &d);
}

/* The first one is the careful one. */
static const struct rule task_rules[2][2] = {
    {{.number = 1, .kind = RULE_LABEL, .label = {TASK_NO, sizeof TASK_NO - 1}},
     {.number = 2, .kind = RULE_LABEL, .label = {TASK_YES, sizeof TASK_YES - 1}}},
    {{.number = 1, .kind = RULE_LABEL, .label = {TASK_NO_JA, sizeof TASK_NO_JA - 1}},
     {.number = 2, .kind = RULE_LABEL, .label = {TASK_YES_JA, sizeof TASK_YES_JA - 1}}}};

struct chain_spec evidence_task_spec(const struct step *s, const struct turn *turn) {
  static const enum judge_stage stages[] = {STAGE_STRUCTURED_OUTPUT};
  const struct workflow *wf = s->core->workflow;
  bool ja = workflow_language(wf) == DESCRIBE_JAPANESE;
  return (struct chain_spec){.schemas = s->env->schemas,
                             .rules = task_rules[ja],
                             .rule_count = ARRAY_LEN(task_rules[ja]),
                             .movement = core_movement(s->core, turn)->own_name,
                             .stages = stages,
                             .stage_count = ARRAY_LEN(stages),
                             .max_reasks = 1};
}

void evidence_task_judged(struct step *s, const struct turn *turn, const struct chain_step *step,
                          const json_t *stages) {
  const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
  bool decided = step->action == CHAIN_VERDICT;
  json_t *data =
      json_pack("{sb sO}", "allows", decided && step->rule->number == 2, "stages", stages);
  if (decided) {
    json_put(data, "method", json_string(judge_stage_name(step->stage)));
    json_put(data, "match_method", json_string(judge_stage_match_method(step->stage)));
  }
  struct str reason = decided ? json_view_at(last, "reason") : str_from(step->reason);
  json_put_text(data, "reason", reason);
  emit_result(s, "judged", turn, data);
}

void evidence_event(struct step *s) {
  struct core *core = s->core;
  struct turn *turn = s->ev->call > 0 ? core_turn(core, s->ev->call) : NULL;
  long check = first_check(core->workflow);
  json_t *data = json_incref((json_t *)s->ev->news);
  if (turn != NULL && turn->evidence.asked && turn->evidence.found == NULL) {
    json_put(data, "goes", json_string(follows(core, turn, data)));
    emit_result(s, "found", turn, data);
  } else if (s->ev->call == 0 && core->evidence.run > 0 && core->evidence.before == NULL) {
    emit_result(s, "ran", NULL, data);
  } else if (s->ev->call == 0 && core->evidence.asked && core->evidence.tree == NULL &&
             !core->evidence.off) {
    emit_result(s, "taken", NULL, data);
    const struct movement *m = &core->workflow->movements[check];
    if (core->evidence.tree != NULL && core->evidence.tree[0] != '\0' &&
        memchr(m->cwd.p, '{', m->cwd.n) == NULL)
      evidence_ask(s, "run", NULL, check);
  } else {
    json_decref(data);
  }
}

void evidence_resume(struct step *s) {
  const struct core *core = s->core;
  bool takes = core->evidence.asked && core->evidence.tree == NULL && !core->evidence.off;
  if (takes || (core->evidence.run > 0 && core->evidence.before == NULL))
    step_effect(s, EFFECT_EVIDENCE, 0, 0);
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    if (turn->evidence.asked && turn->evidence.found == NULL)
      step_effect(s, EFFECT_EVIDENCE, turn->id, 0);
}
