/* Folds and decides what a movement with children does. */
#include "core/group.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/checks.h"
#include "core/movement_limits.h"
#include "core/report_file.h"
#include "core/value_ref.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/rule.h"

#include <assert.h>
#include <stdlib.h>

/* Returns a child's place among its group's parts, part_count if it has none. */
static size_t part_index(const struct core *core, const struct turn *group,
                         const struct turn *child) {
  const struct movement *m = core_movement(core, group);
  bool named = m->for_each == NULL ? child->item == 0 : child->item > 0;
  size_t at = m->for_each == NULL ? child->movement - m->first_child : (size_t)child->item - 1;
  return named && at < group->part_count ? at : group->part_count;
}

size_t group_part_movement(const struct movement *group, size_t part) {
  return group->for_each != NULL ? group->first_child : group->first_child + part;
}

/* --- the fold --- */

/* Returns the list that for_each goes through, as things are now; NULL if there is none or it is
 * too long. */
static const json_t *find_items(const struct core *core, const struct movement *m) {
  const json_t *items = m->for_each;
  struct prompt_ref ref;
  if (json_is_string(items)) {
    items = NULL;
    if (prompt_ref_parse(json_view(m->for_each), core->workflow, &ref))
      items = prompt_ref_value(&ref,
                               json_object_getn(core->structured, ref.movement.p, ref.movement.n));
  }
  return json_array_size(items) <= LIMIT_ITEM_COUNT && json_is_array(items) ? items : NULL;
}

static void find_pending(struct turn *group) {
  while (group->part_next < group->part_count &&
         group->parts[group->part_next].state != PART_PENDING)
    group->part_next++;
}

/* --- its plan --- */

/* Returns the calls that a child makes if nothing goes wrong. */
static int64_t child_calls(const struct movement *m) {
  int64_t calls = m->argv == NULL && m->ask == NULL, labels = 0;
  for (size_t i = 0; i < m->rule_count; i++)
    labels += m->rules[i].kind != RULE_WHEN;
  for (size_t i = 0; i < m->contract_count; i++)
    calls += !m->contracts[i].is_answer;
  bool asked = false;
  for (size_t i = 0; i < m->judge.stage_count; i++)
    asked = asked || m->judge.stages[i] != STAGE_PHASE1_TAG; /* which reads the work's answer */
  if (labels > 1 && asked)
    calls += m->judge.panel != NULL ? (int64_t)json_array_size(m->judge.panel) : 1;
  return calls;
}

/* Returns what a call of the child costs, in nanodollars; below 0: that is not known. */
static double child_cost(const struct core *core, const struct movement *m, const char *rank) {
  const json_t *known = json_object_getn(json_at(core->config, "call_costs"), m->name.p, m->name.n);
  const struct spend *all = &core->spends.all;
  if (known != NULL)
    return json_number_value(json_object_get(known, rank)) * BUDGET_NANO;
  return all->priced > 0 ? (double)all->cost_nano / (double)all->priced : -1;
}

static bool exceeds(const struct budget *most, int64_t calls, double cost) {
  return (most->limit[BUDGET_CALLS] >= 0 && calls > most->limit[BUDGET_CALLS]) ||
         (most->limit[BUDGET_COST] >= 0 && cost > (double)most->limit[BUDGET_COST]);
}

/* Returns the plan of a group that is to be asked about, a new object; else NULL. */
static json_t *plan_of(const struct core *core, const struct turn *turn) {
  const struct movement *group = core_movement(core, turn);
  const json_t *own = json_at(core->config, "ask_above");
  struct budget users;
  int64_t calls = 0;
  double p50 = 0, p90 = 0;
  bool known = true;
  budget_read(own, &users);
  for (size_t i = 0; i < turn->part_count; i++) {
    const struct movement *m = &core->workflow->movements[group_part_movement(group, i)];
    int64_t n = child_calls(m);
    double middle = child_cost(core, m, "p50");
    known = known && (n == 0 || middle >= 0);
    calls += n;
    p50 += (double)n * middle;
    p90 += (double)n * child_cost(core, m, "p90");
  }
  if (json_is_false(own) || !(exceeds(&users, calls, known ? p90 : -1) ||
                              exceeds(&core->workflow->ask_above, calls, known ? p90 : -1)))
    return NULL;
  json_t *plan = json_pack("{sI sI}", "children", (json_int_t)turn->part_count, "calls", calls);
  if (known)
    json_put(plan, "cost_usd",
             json_pack("{sf sf}", "p50", p50 / BUDGET_NANO, "p90", p90 / BUDGET_NANO));
  return plan;
}

void group_plan_tell(const struct movement *group, const json_t *plan, struct buf *out) {
  const json_t *cost = json_at(plan, "cost_usd");
  buf_printf(out, "May \"" STR_FMT "\" begin? It plans %lld %s, %lld calls", STR_ARG(group->name),
             (long long)json_int_at(plan, "children"),
             group->for_each != NULL ? "items" : "movements",
             (long long)json_int_at(plan, "calls"));
  if (cost == NULL)
    buf_puts(out, "; what they cost is not known");
  else
    buf_printf(out, ", $%.2f (p50) to $%.2f (p90)", json_number_value(json_at(cost, "p50")),
               json_number_value(json_at(cost, "p90")));
  buf_puts(out, ": more than ask_above allows.");
}

bool group_enter(const struct fold *f, struct turn *turn) {
  const struct movement *m = core_movement(f->core, turn);
  if (m->child_count > 0) {
    turn->part_count = m->child_count;
    if (m->for_each != NULL) {
      turn->items = json_incref((json_t *)find_items(f->core, m));
      turn->part_count = json_array_size(turn->items);
    }
    turn->parts = xcalloc(turn->part_count + 1, sizeof *turn->parts);
    for (size_t i = 0; i < turn->part_count; i++)
      turn->parts[i].label = STR("");
    if (turn->part_count == 0)
      turn->phase = TURN_JUDGING;
    turn->plan = plan_of(f->core, turn);
  }
  if (m->group == NO_GROUP)
    return !fold_has(f, MEMBER_PARENT_TURN) || fold_bad(f, "its movement is no child");
  turn->group = (long)fold_number(f, MEMBER_PARENT_TURN);
  turn->item = (long)fold_number(f, MEMBER_ITEM);
  struct turn *group = core_turn(f->core, turn->group);
  if (group == NULL || (long)group->movement != m->group || group->phase != TURN_EXECUTING)
    return fold_bad(f, "its group is not open");
  size_t place = part_index(f->core, group, turn);
  if (place >= group->part_count)
    return fold_bad(f, "its group has no such item");
  struct group_part *part = &group->parts[place];
  if (part->state != PART_PENDING)
    return fold_bad(f, "that child runs already, or has ended");
  part->state = PART_OPEN;
  part->turn = turn->id;
  group->part_open++;
  find_pending(group);
  return true;
}

/* --- the joined answer --- */

static void add_joint(struct joined *joined, size_t end, uint64_t seq) {
  joined->joints = xrealloc(joined->joints, (joined->count + 1) * sizeof *joined->joints);
  joined->joints[joined->count++] = (struct joint){end, seq};
}

static void join_answers(const struct core *core, struct turn *group) {
  const struct movement *m = core_movement(core, group);
  buf_clear(&group->text);
  for (size_t i = 0; i < group->part_count; i++) {
    const struct group_part *part = &group->parts[i];
    buf_printf(&group->text, "%s## " STR_FMT, i > 0 ? "\n\n---\n\n" : "",
               STR_ARG(core->workflow->movements[group_part_movement(m, i)].own_name));
    if (m->for_each != NULL)
      buf_printf(&group->text, " %zu", i + 1);
    buf_puts(&group->text, "\n\n");
    add_joint(&group->joined, group->text.n, 0);
    buf_str(&group->text, buf_view(&part->text));
    add_joint(&group->joined, group->text.n, part->text_seq);
  }
}

/* Says why a child brought no answer, in that answer's place. */
static void part_tell(struct group_part *part, const char *what, struct str why) {
  buf_clear(&part->text);
  buf_printf(&part->text, "(%s: " STR_FMT ")", what, STR_ARG(why));
  part->text_seq = 0;
}

static bool take_label(const struct fold *f, const struct turn *turn, const struct turn *group,
                       struct group_part *part) {
  struct str outcome = fold_text(f, MEMBER_OUTCOME);
  int64_t rule = fold_number(f, MEMBER_RULE);
  part->label = STR(ALL_ANY_NONE);
  part->failed = str_eq_c(outcome, ALL_ANY_ERROR);
  part->skipped = str_eq_c(outcome, "cancelled");
  if (part->failed)
    part->label = STR(ALL_ANY_ERROR);
  if (part->skipped && (!core_movement(f->core, group)->stops_on_error || group->part_failed == 0))
    return fold_bad(f, "none of its siblings failed");
  if (part->failed || part->skipped)
    return true;
  if (turn->phase != TURN_JUDGED || rule != turn->rule)
    return fold_bad(f, "its rule is not the one that was judged");
  if (rule > 0)
    part->label = rule_vote(&core_movement(f->core, turn)->rules[rule - 1]);
  return rule > 0 || str_eq_c(outcome, ALL_ANY_NONE) || fold_bad(f, "its outcome is unknown");
}

/* Skips the children that have not begun, if the group stops on the first error. */
static void skip_pending(const struct core *core, struct turn *group) {
  if (!core_movement(core, group)->stops_on_error)
    return;
  for (; group->part_next < group->part_count; group->part_next++) {
    struct group_part *part = &group->parts[group->part_next];
    if (part->state != PART_PENDING)
      continue;
    part->state = PART_DONE;
    part->skipped = true;
    part->label = STR(ALL_ANY_NONE);
    part_tell(part, "not begun", STR("another one failed"));
    group->part_done++;
  }
}

bool group_take(const struct fold *f, struct turn *turn) {
  struct core *core = f->core;
  struct turn *group = core_turn(core, turn->group);
  assert(group != NULL);
  struct group_part *part = &group->parts[part_index(core, group, turn)];
  if (!take_label(f, turn, group, part))
    return false;
  if (!part->failed && turn->rule > 0 &&
      core->workflow->movements[turn->movement].rules[turn->rule - 1].asks) {
    if (!turn->answered)
      return fold_bad(f, "its question was not answered");
    size_t at = (size_t)(part - group->parts);
    group_part_clear(part); /* it runs again with the person's answer */
    group->part_open--;
    group->part_next = at < group->part_next ? at : group->part_next;
    core_drop_turn(core, turn);
    return true;
  }
  part->state = PART_DONE;
  forget_signed_line(f->core, turn);
  part->text = turn->text;
  part->text_seq = turn->text_seq;
  part->has_exit = turn->has_exit;
  part->exit = turn->exit;
  part->structured = turn->structured;
  part->tests = turn->tests;
  part->reports = turn->reports;
  turn->reports = NULL;
  turn->text = (struct buf){0};
  turn->structured = turn->tests = NULL;
  group->part_open--;
  group->part_done++;
  if (part->failed || part->skipped)
    part_tell(part, part->failed ? "it failed" : "cancelled", fold_text(f, MEMBER_MESSAGE));
  if (part->failed) {
    group->part_failed++;
    skip_pending(core, group);
  }
  core_drop_turn(core, turn);
  if (group->part_done == group->part_count) {
    join_answers(core, group);
    group->phase = TURN_JUDGING;
  }
  return true;
}

void group_publish(struct core *core, const struct turn *turn) {
  const struct movement *group = core_movement(core, turn);
  if (group->for_each != NULL) {
    const struct movement *m = &core->workflow->movements[group->first_child];
    json_t *values = json_array(); /* in the order of its items */
    for (size_t i = 0; i < turn->part_count; i++) {
      json_t *value = turn->parts[i].structured;
      json_array_append_new(values, value ? json_incref(value) : json_null());
    }
    json_object_setn_new(core->structured, m->name.p, m->name.n, values);
    return;
  }
  for (size_t i = 0; i < group->child_count; i++) {
    struct group_part *part = &turn->parts[i];
    const struct movement *m = &core->workflow->movements[group->first_child + i];
    kept_move(&core->reports, &part->reports);
    kept_answer(core, m, buf_view(&part->text), part->failed ? 0 : part->text_seq, NULL);
    json_object_setn_new(core->structured, m->name.p, m->name.n,
                         part->structured ? json_incref(part->structured) : json_null());
    const struct turn as = {.id = part->turn,
                            .movement = group->first_child + i,
                            .has_exit = part->has_exit,
                            .exit = part->exit,
                            .tests = part->tests};
    if (m->argv != NULL && part->has_exit)
      checks_put(core, &as);
  }
}

void group_reopen(struct turn *turn) {
  size_t before = turn->part_done;
  for (size_t i = 0; i < turn->part_count; i++) {
    const struct group_part *part = &turn->parts[i];
    if (part->failed || part->skipped || str_eq_c(part->label, ALL_ANY_NONE)) {
      group_part_clear(&turn->parts[i]);
      turn->part_done--;
    }
  }
  if (turn->part_done == before)
    return;
  free(turn->joined.joints);
  turn->joined = (struct joined){0};
  buf_clear(&turn->text);
  turn->part_next = turn->part_failed = 0;
  find_pending(turn);
  turn->phase = TURN_EXECUTING;
}

/* --- the decision --- */

bool group_stops(const struct core *core, const struct turn *child) {
  const struct turn *group = child->group > 0 ? core_turn(core, child->group) : NULL;
  return group != NULL && group->part_failed > 0 && core_movement(core, group)->stops_on_error;
}
