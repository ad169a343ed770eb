/* Folds and decides what a movement with children does. */
#include "core/group.h"

#include "base/log.h"
#include "core/gates.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/aggregate.h"

#include <assert.h>
#include <stdlib.h>

static const struct movement *group_movement(const struct core *core, const struct turn *turn) {
  return &core->workflow->movements[turn->movement];
}

static struct group_part *group_part_of(const struct core *core, struct turn *group,
                                        size_t movement) {
  const struct movement *m = group_movement(core, group);
  assert(movement >= m->first_child && movement - m->first_child < m->child_count);
  return &group->parts[movement - m->first_child];
}

/* --- the fold --- */

static void part_clear(struct group_part *part) {
  buf_deinit(&part->text);
  json_decref(part->structured);
  json_decref(part->tests);
  *part = (struct group_part){.state = PART_PENDING, .label = STR("")};
}

void core_group_free(struct core *core, struct turn *turn) {
  size_t n = turn->parts ? group_movement(core, turn)->child_count : 0;
  for (size_t i = 0; i < n; i++)
    part_clear(&turn->parts[i]);
  free(turn->parts);
  free(turn->joined.joints);
  turn->parts = NULL;
  turn->joined = (struct joined){0};
}

bool group_enter(const struct fold *f, struct turn *turn) {
  const struct movement *m = group_movement(f->core, turn);
  if (m->child_count > 0) {
    turn->parts = xcalloc(m->child_count, sizeof *turn->parts);
    for (size_t i = 0; i < m->child_count; i++)
      turn->parts[i].label = STR("");
  }
  if (m->group == NO_GROUP)
    return !fold_has(f, MEMBER_PARENT_TURN) || fold_bad(f, "its movement is no child");
  turn->group = (long)fold_number(f, MEMBER_PARENT_TURN);
  struct turn *group = core_turn(f->core, turn->group);
  if (group == NULL || (long)group->movement != m->group || group->phase != TURN_EXECUTING)
    return fold_bad(f, "its group is not open");
  struct group_part *part = group_part_of(f->core, group, turn->movement);
  if (part->state != PART_PENDING)
    return fold_bad(f, "that child runs already, or has ended");
  part->state = PART_OPEN;
  part->turn = turn->id;
  return true;
}

/* --- the joined answer --- */

static void add_joint(struct joined *joined, size_t end, uint64_t seq) {
  joined->joints = xrealloc(joined->joints, (joined->count + 1) * sizeof *joined->joints);
  joined->joints[joined->count++] = (struct joint){end, seq};
}

static void join_answers(const struct core *core, struct turn *group) {
  const struct movement *m = group_movement(core, group);
  buf_clear(&group->text);
  for (size_t i = 0; i < m->child_count; i++) {
    const struct group_part *part = &group->parts[i];
    buf_printf(&group->text, "%s## " STR_FMT "\n\n", i > 0 ? "\n\n---\n\n" : "",
               STR_ARG(core->workflow->movements[m->first_child + i].own_name));
    add_joint(&group->joined, group->text.n, 0);
    buf_str(&group->text, buf_view(&part->text));
    add_joint(&group->joined, group->text.n, part->failed ? 0 : part->text_seq);
  }
}

static bool all_done(const struct core *core, const struct turn *group) {
  for (size_t i = 0; i < group_movement(core, group)->child_count; i++)
    if (group->parts[i].state != PART_DONE)
      return false;
  return true;
}

static bool take_label(const struct fold *f, const struct turn *turn, struct group_part *part) {
  struct str outcome = fold_text(f, MEMBER_OUTCOME);
  int64_t rule = fold_number(f, MEMBER_RULE);
  if (str_eq_c(outcome, AGGREGATE_ERROR)) {
    part->failed = true;
    part->label = STR(AGGREGATE_ERROR);
    return true;
  }
  if (turn->phase != TURN_JUDGED || rule != turn->rule)
    return fold_bad(f, "its rule is not the one that was judged");
  part->label = STR(AGGREGATE_NONE);
  if (rule > 0)
    part->label = rule_vote(&group_movement(f->core, turn)->rules[rule - 1]);
  return rule > 0 || str_eq_c(outcome, AGGREGATE_NONE) || fold_bad(f, "its outcome is unknown");
}

bool group_take(const struct fold *f, struct turn *turn) {
  struct core *core = f->core;
  struct turn *group = core_turn(core, turn->group);
  assert(group != NULL);
  struct group_part *part = group_part_of(core, group, turn->movement);
  if (!take_label(f, turn, part))
    return false;
  part->state = PART_DONE;
  part->text = turn->text;
  part->text_seq = turn->text_seq;
  part->has_exit = turn->has_exit;
  part->exit = turn->exit;
  part->structured = turn->structured;
  part->tests = turn->tests;
  turn->text = (struct buf){0};
  turn->structured = turn->tests = NULL;
  if (part->failed) {
    buf_clear(&part->text);
    buf_printf(&part->text, "(it failed: " STR_FMT ")", STR_ARG(fold_text(f, MEMBER_MESSAGE)));
  }
  core_drop_turn(core, turn);
  if (all_done(core, group)) {
    join_answers(core, group);
    group->phase = TURN_JUDGING;
  }
  return true;
}

void group_publish(struct core *core, const struct turn *turn) {
  const struct movement *group = group_movement(core, turn);
  for (size_t i = 0; i < group->child_count; i++) {
    const struct group_part *part = &turn->parts[i];
    const struct movement *m = &core->workflow->movements[group->first_child + i];
    json_object_setn_new(core->structured, m->name.p, m->name.n,
                         part->structured ? json_incref(part->structured) : json_null());
    const struct turn as = {.id = part->turn,
                            .movement = group->first_child + i,
                            .has_exit = part->has_exit,
                            .exit = part->exit,
                            .tests = part->tests};
    if (m->argv != NULL && part->has_exit)
      gates_put(core, &as);
  }
}

void group_reopen(struct core *core, struct turn *turn) {
  bool any = false;
  for (size_t i = 0; turn->parts && i < group_movement(core, turn)->child_count; i++)
    if (turn->parts[i].failed) {
      part_clear(&turn->parts[i]);
      any = true;
    }
  if (!any)
    return;
  free(turn->joined.joints);
  turn->joined = (struct joined){0};
  buf_clear(&turn->text);
  turn->phase = TURN_EXECUTING;
}

/* --- the decision --- */

bool group_advance(struct step *s, struct turn *turn) {
  const struct movement *group = group_movement(s->core, turn);
  const struct group_part *next = NULL;
  long open = 0;
  for (size_t i = group->child_count; i-- > 0;) {
    open += turn->parts[i].state == PART_OPEN;
    if (turn->parts[i].state == PART_PENDING)
      next = &turn->parts[i];
  }
  if (next == NULL || open >= group->concurrency || s->env->draining)
    return false;
  size_t index = group->first_child + (size_t)(next - turn->parts);
  struct record_draft d;
  step_record(s, &d, RECORD_TURN_START);
  record_put_number(&d, MEMBER_TURN, s->core->turn_count + 1);
  record_put_text(&d, MEMBER_MOVEMENT, s->core->workflow->movements[index].name);
  record_put_number(&d, MEMBER_PARENT_TURN, turn->id);
  record_put_number(&d, MEMBER_ITERATION, turn->iteration);
  record_put_number(&d, MEMBER_MOVEMENT_ITERATION, s->core->movement_counts[index] + 1);
  step_emit(s, &d);
  return true;
}

void group_end_child(struct step *s, struct turn *turn) {
  struct record_draft d;
  assert(turn->group > 0 && turn->phase == TURN_JUDGED);
  step_turn_record(s, &d, RECORD_TURN_END, turn);
  record_put_number(&d, MEMBER_PARENT_TURN, turn->group);
  if (turn->rule > 0) {
    record_put_number(&d, MEMBER_RULE, turn->rule);
  } else {
    bool failed = turn->failure != END_RULE_NO_MATCH;
    record_put_word(&d, MEMBER_OUTCOME, failed ? AGGREGATE_ERROR : AGGREGATE_NONE);
    record_put_bytes(&d, MEMBER_MESSAGE, str_from(turn->reason));
  }
  step_emit(s, &d);
}

void group_fail_child(struct step *s, struct turn *turn, enum error_class class,
                      struct str message) {
  struct record_draft d;
  assert(turn->group > 0);
  step_turn_record(s, &d, RECORD_TURN_END, turn);
  record_put_number(&d, MEMBER_PARENT_TURN, turn->group);
  record_put_word(&d, MEMBER_OUTCOME, AGGREGATE_ERROR);
  record_put_bytes(&d, MEMBER_MESSAGE, message);
  record_put_word(&d, MEMBER_CLASS, error_class_name(class));
  step_emit(s, &d);
}

bool group_all_failed(const struct core *core, const struct turn *turn) {
  for (size_t i = 0; i < group_movement(core, turn)->child_count; i++)
    if (!turn->parts[i].failed)
      return false;
  return turn->parts != NULL;
}

static void vote(json_t *votes, struct str label, json_int_t n) {
  json_int_t before = json_integer_value(json_object_getn(votes, label.p, label.n));
  json_object_setn_new(votes, label.p, label.n, json_integer(before + n));
}

void group_env(const struct core *core, const struct turn *turn, json_t *env) {
  const struct movement *group = group_movement(core, turn);
  json_t *parts = json_array(), *votes = json_object();
  vote(votes, STR(AGGREGATE_ERROR), 0);
  vote(votes, STR(AGGREGATE_NONE), 0);
  for (size_t i = 0; i < group->child_count; i++) {
    const struct movement *m = &core->workflow->movements[group->first_child + i];
    for (size_t k = 0; k < m->rule_count; k++)
      vote(votes, rule_vote(&m->rules[k]), 0);
    vote(votes, turn->parts[i].label, 1);
    json_array_append_new(parts, json_pack("{so so}", "name", json_text(m->own_name), "label",
                                           json_text(turn->parts[i].label)));
  }
  json_put(env, "parts", parts);
  json_put(env, "votes", votes);
}
