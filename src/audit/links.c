/* Compares a record's statements about other records with those records. */
#include "audit/links.h"

#include "base/log.h"
#include "core/workflow.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct look {
  struct links *links;
  const struct book *book;
  const struct core *core;
  const struct record *record;
  struct err *err;
};

static const struct turn *turn_of(const struct look *l) {
  return core_turn(l->core, (long)record_number(l->record, MEMBER_TURN));
}

static const struct movement *movement_of(const struct look *l, const struct turn *turn) {
  return &l->core->workflow->movements[turn->movement];
}

/* --- places of texts --- */

static char *known_place(struct links *links, const char *place) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char *p = place; *p; p++)
    hash = (hash ^ (unsigned char)*p) * 16777619u;
  return links->known[hash % LINKS_KNOWN_COUNT];
}

static bool check_place(void *ctx, size_t part, const char *place) {
  const struct look *l = ctx;
  char *known = known_place(l->links, place);
  struct err why = {0};
  if (strcmp(known, place) == 0)
    return true;
  if (strtoull(place, NULL, 10) > l->core->seq)
    return err_set(l->err, ERR_CORRUPT,
                   "its prompt[%zu] refers to %.80s, which is not an earlier record", part, place);
  if (!book_has_text(l->book, place, &why))
    return err_set(l->err, ERR_CORRUPT, "its prompt[%zu] refers to %.80s: %s", part, place,
                   why.text);
  if (strlen(place) < TEXTS_PLACE_BYTES)
    memcpy(known, place, strlen(place) + 1);
  return true;
}

static bool check_prompt(const struct look *l) {
  return record_each_ref(l->record, MEMBER_PROMPT, check_place, (void *)l);
}

/* --- numbers of records, attempts and calls --- */

static bool is_number(const struct look *l, enum member key, json_int_t expected) {
  json_int_t value = record_number(l->record, key);
  return record_get(l->record, key) == NULL || value == expected ||
         err_set(l->err, ERR_CORRUPT,
                 "its %s is %" JSON_INTEGER_FORMAT
                 ", but the records before it make it %" JSON_INTEGER_FORMAT,
                 record_member_name(key), value, expected);
}

static bool is_call(const struct look *l, const char *key, json_int_t id) {
  const struct turn *turn = turn_of(l);
  return turn == NULL ||
         turn_call(turn, (long)id) != NULL || /* if there is no turn, the fold reports it */
         err_set(l->err, ERR_CORRUPT,
                 "its %s names call %" JSON_INTEGER_FORMAT ", which turn %ld has not made", key, id,
                 turn->id);
}

static bool are_calls(const struct look *l, const char *key) {
  size_t i;
  json_t *id;
  json_array_foreach(json_object_get(l->record->body, key), i, id) {
    if (!is_call(l, key, json_integer_value(id)))
      return false;
  }
  return true;
}

static bool check_call_start(const struct look *l) {
  const struct turn *turn = turn_of(l);
  const struct call *call =
      turn ? turn_call(turn, (long)record_number(l->record, MEMBER_CALL)) : NULL;
  if (call == NULL && record_get(l->record, MEMBER_PROMPT_OF) != NULL)
    return err_set(l->err, ERR_CORRUPT,
                   "its prompt_of names record %" JSON_INTEGER_FORMAT
                   ", which holds no prompt of this call",
                   (json_int_t)record_number(l->record, MEMBER_PROMPT_OF));
  return (call == NULL || (is_number(l, MEMBER_PROMPT_OF, (json_int_t)call->prompt_seq) &&
                           is_number(l, MEMBER_REPEATS, call->attempt))) &&
         check_prompt(l);
}

static bool check_check(const struct look *l) {
  return is_call(l, "call", json_integer_value(json_object_get(l->record->body, "call"))) &&
         are_calls(l, "runs");
}

static bool check_stage(const struct look *l) {
  return are_calls(l, "calls");
}

/* --- the workflow --- */

/* Checks that two texts are the same. */
static bool links_is_text(const struct look *l, enum member key, struct str expected,
                          const char *whose) {
  struct str value = record_text(l->record, key);
  return str_eq(value, expected) ||
         err_set(l->err, ERR_CORRUPT, "its %s is \"%.*s\", but %s \"%.*s\"",
                 record_member_name(key), (int)(value.n < 80 ? value.n : 80), value.p, whose,
                 (int)(expected.n < 80 ? expected.n : 80), expected.p);
}

static bool check_turn_start(const struct look *l) {
  const struct core *core = l->core;
  long index =
      core->workflow ? workflow_find(core->workflow, record_text(l->record, MEMBER_MOVEMENT)) : -1;
  if (index < 0)
    return true;
  const struct turn *group = core_turn(core, (long)record_number(l->record, MEMBER_PARENT_TURN));
  return is_number(l, MEMBER_ITERATION, group ? group->iteration : core->iteration_count + 1) &&
         is_number(l, MEMBER_MOVEMENT_ITERATION, core->movement_counts[index] + 1);
}

static bool check_own_movement(const struct look *l) {
  const struct turn *turn = turn_of(l);
  return turn == NULL ||
         links_is_text(l, MEMBER_MOVEMENT, movement_of(l, turn)->name, "its turn runs");
}

static bool check_structured(const struct look *l) {
  return check_own_movement(l) && (record_get(l->record, MEMBER_CALL) == NULL ||
                                   is_call(l, "call", record_number(l->record, MEMBER_CALL)));
}

static bool check_judgment(const struct look *l) {
  const struct turn *turn = turn_of(l);
  const struct movement *m = turn ? movement_of(l, turn) : NULL;
  int64_t rule = record_number(l->record, MEMBER_RULE);
  enum judge_stage method;
  if (!check_own_movement(l))
    return false;
  if (turn != NULL && !json_same(record_tree(l->record, MEMBER_STAGES), turn->stages))
    return err_set(l->err, ERR_CORRUPT, "its stages are not those of the stage records before it");
  if (m == NULL || rule < 1 || (size_t)rule > m->rule_count)
    return true; /* the fold reports it */
  const struct rule *chosen = &m->rules[rule - 1];
  struct buf tag = {0};
  rule_tag(m->own_name, chosen->number, &tag);
  bool ok =
      links_is_text(l, MEMBER_CONDITION, chosen->condition, "that rule's is") &&
      (m->group != NO_GROUP || links_is_text(l, MEMBER_NEXT, chosen->next, "that rule's is")) &&
      links_is_text(l, MEMBER_TAG, buf_view(&tag), "that rule's is");
  buf_deinit(&tag);
  return ok && (!judge_stage_from_name(record_text(l->record, MEMBER_METHOD), &method) ||
                links_is_text(l, MEMBER_MATCH_METHOD, str_from(judge_stage_match_method(method)),
                              "that method's is"));
}

static bool check_turn_end(const struct look *l) {
  const struct turn *turn = turn_of(l);
  const struct movement *m = turn ? movement_of(l, turn) : NULL;
  return m == NULL || turn->rule < 1 || m->group != NO_GROUP ||
         links_is_text(l, MEMBER_NEXT, m->rules[turn->rule - 1].next, "that rule's is");
}

/* --- the session --- */

static bool check_stop(const struct look *l) {
  const json_t *call = json_object_get(record_tree(l->record, MEMBER_QUESTION), "call");
  if (record_get(l->record, MEMBER_TURN) != NULL && turn_of(l) == NULL)
    return err_set(l->err, ERR_CORRUPT, "its turn is not open");
  return call == NULL || is_call(l, "question", json_integer_value(call));
}

static bool check_end(const struct look *l) {
  const struct core *core = l->core;
  const json_t *methods = record_tree(l->record, MEMBER_METHODS);
  struct str outcome = record_text(l->record, MEMBER_OUTCOME);
  json_int_t counted = 0, told = 0;
  const char *key;
  json_t *value;
  if (!is_number(l, MEMBER_TURNS, core->turn_count))
    return false;
  json_object_foreach((json_t *)methods, key, value) {
    json_int_t n = 0;
    for (int i = 0; i < STAGE_COUNT; i++)
      if (strcmp(judge_stage_match_method((enum judge_stage)i), key) == 0)
        n += core->method_counts[i];
    if (json_integer_value(value) != n)
      return err_set(l->err, ERR_CORRUPT,
                     "its methods say %s %" JSON_INTEGER_FORMAT
                     ", but the judgments %" JSON_INTEGER_FORMAT,
                     key, json_integer_value(value), n);
    told += n;
  }
  for (int i = 0; i < STAGE_COUNT; i++)
    counted += core->method_counts[i];
  if (told != counted)
    return err_set(l->err, ERR_CORRUPT,
                   "its methods count %" JSON_INTEGER_FORMAT
                   " judgments, but there are %" JSON_INTEGER_FORMAT,
                   told, counted);
  bool complete = str_eq_c(outcome, "complete"), abort = str_eq_c(outcome, "abort");
  if ((complete || abort) &&
      !(core->has_next && core->next == (complete ? NEXT_COMPLETE : NEXT_ABORT)))
    return err_set(l->err, ERR_CORRUPT, "its outcome is %s, but no rule led there",
                   complete ? "complete" : "abort");
  return true;
}

bool links_check(struct links *links, const struct book *book, const struct core *core,
                 const struct record *record, struct err *err) {
  static bool (*const checks[RECORD_TYPE_COUNT + 1])(const struct look *l) = {
      [RECORD_TURN_START] = check_turn_start, [RECORD_CALL_START] = check_call_start,
      [RECORD_CHECK] = check_check,           [RECORD_STRUCTURED] = check_structured,
      [RECORD_REPORT] = check_structured,     [RECORD_STAGE] = check_stage,
      [RECORD_JUDGMENT] = check_judgment,     [RECORD_TURN_END] = check_turn_end,
      [RECORD_SESSION_STOP] = check_stop,     [RECORD_SESSION_END] = check_end,
  };
  const struct look look = {links, book, core, record, err};
  return checks[record->type] == NULL || checks[record->type](&look);
}
