/* Judges what a model said: the object of a stage from a tag or from a value. */
#include "base/buf.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/chain_internal.h"
#include "judge/reading.h"
#include "judge/reason.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void set_outcome(json_t *object, enum stage_outcome outcome) {
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
}

static void add_tag(const struct chain_spec *spec, json_t *object, const struct rule *rule) {
  struct buf tag = {0};
  rule_tag(spec->movement, rule->number, &tag);
  json_put(object, "tag", json_stringn_nocheck(tag.p, tag.n));
  buf_deinit(&tag);
}

/* Returns the outcome of a number; if it matches, also puts its rule and tag. */
static enum stage_outcome place_number(const struct chain_spec *spec, double number, json_t *object,
                                       const char *what) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  struct buf text = {0};
  enum stage_outcome outcome;
  for (size_t i = 0; i < n; i++)
    if ((double)offered[i]->number == number) {
      json_put(object, "rule", json_integer(offered[i]->number));
      add_tag(spec, object, offered[i]);
      return OUTCOME_MATCHED;
    }
  if (number == 0) {
    buf_printf(&text, "%s 0: no rule holds", what);
    outcome = OUTCOME_NO_MATCH;
  } else {
    if (number < 1e15)
      buf_printf(&text, "%s %.0f is not offered (", what, number);
    else
      buf_printf(&text, "%s a number out of any range is not offered (", what);
    for (size_t i = 0; i < n; i++)
      buf_printf(&text, "%s%d", i ? ", " : "", offered[i]->number);
    buf_putc(&text, ')');
    outcome =
        number >= 1 && number <= (double)spec->rule_count ? OUTCOME_HIDDEN : OUTCOME_OUT_OF_RANGE;
  }
  stage_object_error(object, text.p, text.n);
  buf_deinit(&text);
  return outcome;
}

/* --- tags --- */

static struct tag_query query_of(const struct chain_spec *spec, enum judge_stage stage,
                                 struct tag_words words[LIMIT_RULE_COUNT]) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  for (size_t i = 0; i < n; i++)
    words[i] = (struct tag_words){offered[i]->number, offered[i]->label};
  return (struct tag_query){
      .name = stage == STAGE_AI_JUDGE ? STR("JUDGE") : spec->movement,
      .scope = stage == STAGE_PHASE1_TAG ? TAG_AGENT : TAG_REPLY,
      .words = words,
      .word_count = n,
  };
}

bool chain_find_tag(const struct chain_spec *spec, struct str text, enum judge_stage stage,
                    struct tag_result *tag) {
  struct tag_words words[LIMIT_RULE_COUNT];
  const struct tag_query query = query_of(spec, stage, words);
  tag_read(text, &query, tag);
  return tag->found;
}

/* Describes a tag and its place. */
static json_t *place_object(struct str text, const struct tag_place *place) {
  return json_pack("{sI so sI}", "rule", (json_int_t)place->number, "text",
                   json_text((struct str){text.p + place->offset, place->length}), "line",
                   (json_int_t)place->line);
}

static void add_mentions(json_t *object, struct str text, const struct tag_result *tag) {
  json_t *mentions = json_array();
  for (size_t i = 0; i < tag->mention_count; i++)
    json_array_append_new(mentions, place_object(text, &tag->mentions[i]));
  if (tag->mention_count > 0)
    json_put(object, "mentions", json_incref(mentions));
  json_decref(mentions);
}

static void tag_words(struct buf *out, struct str text, const struct tag_place *place) {
  buf_printf(out, STR_FMT " on line %zu", (int)place->length, text.p + place->offset, place->line);
}

/* Reports two tags that name different rules. */
static void doubt_tags(json_t *object, struct str text, const struct tag_result *tag) {
  struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
  json_put(object, "candidates",
           json_pack("[o,o]", place_object(text, &tag->other), place_object(text, &tag->tag)));
  tag_words(&line, text, &tag->other);
  buf_puts(&line, " and ");
  tag_words(&line, text, &tag->tag);
  buf_puts(&line, " name different rules");
  stage_object_error(object, line.p, line.n);
  buf_deinit(&line);
}

/* Reports an agent's tag that contradicts a judge who found that no rule holds. */
static void doubt_agent(json_t *object, struct str text, const struct tag_place *tag,
                        const json_t *none) {
  struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
  const char *stage = judge_stage_name(stage_object_stage(none));
  json_put(object, "candidates",
           json_pack("[{si ss},o]", "rule", 0, "stage", stage, place_object(text, tag)));
  tag_words(&line, text, tag);
  buf_printf(&line, " is no evidence: %s found that no rule holds", stage);
  stage_object_error(object, line.p, line.n);
  buf_deinit(&line);
}

/* Returns the stage in which a judge said that no rule holds, or NULL. */
static const json_t *none_holds(const json_t *stages) {
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    if (json_is_true(json_at(object, "none")))
      return object;
  }
  return NULL;
}

bool chain_was_decided(const json_t *stages) {
  size_t i;
  json_t *object;
  bool asked = false;
  json_array_foreach(stages, i, object) {
    if (json_at(object, "vote") == NULL &&
        (json_is_true(json_at(object, "none")) || stage_object_outcome(object) == OUTCOME_MATCHED))
      return true;
    asked |= json_array_size(json_at(object, "calls")) > 0;
  }
  return !asked;
}

json_t *chain_tag(const struct chain_spec *spec, const json_t *stages, enum judge_stage stage,
                  struct str text) {
  struct tag_result tag;
  json_t *object = stage_object_new(stage, OUTCOME_NO_MATCH);
  const json_t *none = stage == STAGE_PHASE1_TAG ? none_holds(stages) : NULL;
  if (str_trim(text).n == 0 && stage != STAGE_PHASE1_TAG) {
    stage_object_error(object, "the reply is empty", 18);
    set_outcome(object, OUTCOME_UNREADABLE);
    return object;
  }
  if (!chain_find_tag(spec, text, stage, &tag)) {
    stage_object_error(object, "no tag", 6);
  } else if (tag.ambiguous) {
    doubt_tags(object, text, &tag);
    set_outcome(object, OUTCOME_AMBIGUOUS);
  } else if (tag.tag.number == 0) {
    stage_object_error(object, "tag 0 names no rule", 19);
    json_put(object, "none", json_true());
  } else if (none != NULL) {
    doubt_agent(object, text, &tag.tag, none);
    set_outcome(object, OUTCOME_AMBIGUOUS);
  } else {
    enum stage_outcome outcome = place_number(spec, (double)tag.tag.number, object, "tag");
    set_outcome(object, outcome);
    if (outcome == OUTCOME_MATCHED)
      json_put(object, "tag", json_stringn_nocheck(text.p + tag.tag.offset, tag.tag.length));
  }
  add_mentions(object, text, &tag);
  return object;
}

/* --- values --- */

static const char *number_key(enum judge_stage stage) {
  return stage == STAGE_AI_JUDGE ? "matched_index" : "step";
}

static void add_errors(json_t *object, const struct schema_errors *errors) {
  for (size_t i = 0; i < errors->count && i < LIMIT_STAGE_ERROR_COUNT; i++) {
    struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
    buf_printf(&line, "%s: %s", errors->items[i].path, errors->items[i].message);
    stage_object_error(object, line.p, utf8_floor(line.p, line.n));
    buf_deinit(&line);
  }
}

/* Puts the start of the reason; the whole text stands in the call's answer. */
static void chain_answer_add_reason(json_t *object, const json_t *value) {
  struct str reason = json_view(json_at(value, "reason"));
  if (reason.n > LIMIT_ERROR_TEXT_BYTES)
    reason.n = LIMIT_ERROR_TEXT_BYTES;
  if (reason.p != NULL)
    json_put(object, "reason", json_text(reason));
}

/* Describes a value by its start, its place and the rule that it names. */
static json_t *value_object(enum judge_stage stage, struct str text,
                            const struct sole_place *place) {
  size_t n = place->length < LIMIT_ERROR_TEXT_BYTES ? place->length : LIMIT_ERROR_TEXT_BYTES;
  const json_t *number = json_object_get(place->value, number_key(stage));
  json_int_t line = 1;
  for (size_t i = 0; i < place->offset; i++)
    line += text.p[i] == '\n';
  json_t *object = json_pack("{so sI}", "text", json_text((struct str){text.p + place->offset, n}),
                             "line", line);
  if (json_is_integer(number) && json_integer_value(number) >= 0)
    json_put(object, "rule", json_incref((json_t *)number));
  return object;
}

/* Returns a tag outside the value that names another rule, NULL if there is none. */
static const struct tag_place *tag_against(const struct tag_result *tag, double number,
                                           const struct sole_place *value) {
  if (tag->found && (double)tag->tag.number != number)
    return &tag->tag;
  for (size_t i = 0; i < tag->mention_count; i++) {
    const struct tag_place *place = &tag->mentions[i];
    bool outside = place->offset < value->offset || place->offset >= value->offset + value->length;
    if (outside && (double)place->number != number)
      return place;
  }
  return NULL;
}

/* Returns whether a line outside the value gives another rule's number ("Verdict: 2") or 0. */
static bool number_against(const struct chain_spec *spec, enum judge_stage stage, struct str text,
                           double number, const struct sole_place *value, struct tag_place *place) {
  struct tag_words words[LIMIT_RULE_COUNT];
  const struct tag_query query = query_of(spec, stage, words);
  long own = number < LIMIT_RULE_COUNT ? (long)number : -1; /* -1: none of those offered */
  return tag_number_beside(text, value->offset, value->offset + value->length, own, &query,
                           place) &&
         (place->number == 0 || chain_offers(spec, place->number));
}

/* Reports a value that contradicts a tag or a number beside it. */
static void doubt_value(json_t *object, enum judge_stage stage, double number, struct str text,
                        const struct sole_place *value, const struct tag_place *place) {
  struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
  json_put(object, "candidates",
           json_pack("[o,o]", value_object(stage, text, value), place_object(text, place)));
  buf_printf(&line, "the value names %.0f and ", number);
  tag_words(&line, text, place);
  buf_puts(&line, " another rule");
  stage_object_error(object, line.p, line.n);
  buf_deinit(&line);
}

/* Reports two values that differ, a key given twice, or an echo of the report. */
static void doubt_reading(json_t *object, enum judge_stage stage, struct str text,
                          const struct reading *reading) {
  const struct sole *sole = &reading->sole;
  struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
  json_t *candidates = json_array();
  buf_puts(&line, reading->missing);
  for (size_t i = 0; i < sole->place_count; i++) {
    json_t *place = value_object(stage, text, &sole->places[i]);
    const json_t *rule = json_at(place, "rule");
    buf_puts(&line, i == 0 ? ": " : " and ");
    if (rule != NULL)
      buf_printf(&line, "%" JSON_INTEGER_FORMAT " ", json_integer_value(rule));
    buf_printf(&line, "on line %" JSON_INTEGER_FORMAT, json_integer_value(json_at(place, "line")));
    json_array_append_new(candidates, place);
  }
  stage_object_error(object, line.p, line.n);
  json_put(object, "candidates", candidates);
  buf_deinit(&line);
}

static bool is_contradicted(const struct chain_spec *spec, enum judge_stage stage,
                            const json_t *value, double number) {
  struct tag_words words[LIMIT_RULE_COUNT];
  const struct tag_query query = query_of(spec, stage, words);
  struct str reason = json_view(json_at(value, "reason"));
  return reason.p != NULL && number < LIMIT_RULE_COUNT &&
         reason_contradicts(reason, (long)number, &query);
}

/* Judges by a value that fits its schema. A value from the backend's own schema mode stands: the
 * text beside it is not searched. */
static enum stage_outcome judge_value(const struct chain_spec *spec, enum judge_stage stage,
                                      struct str text, const struct reading *reading,
                                      json_t *object) {
  double number = json_number_value(json_object_get(reading->value, number_key(stage)));
  const struct sole_place *value = &reading->sole.places[0];
  struct tag_result tag = {0};
  if (reading->sole.place_count > 0 && text.n > value->length)
    (void)chain_find_tag(spec, text, stage, &tag);
  const struct tag_place *against = tag_against(&tag, number, value);
  struct tag_place other;
  if (against == NULL && reading->sole.place_count > 0 &&
      number_against(spec, stage, text, number, value, &other))
    against = &other;
  if (against != NULL) {
    doubt_value(object, stage, number, text, value, against);
    return OUTCOME_AMBIGUOUS;
  }
  if (reading->sole.doubted) {
    stage_object_error(object, LIT("words behind the value share its line or take it back"));
    return OUTCOME_AMBIGUOUS;
  }
  chain_answer_add_reason(object, reading->value);
  if (is_contradicted(spec, stage, reading->value, number)) {
    stage_object_error(object, LIT("the reason names another rule than the value, or none"));
    return OUTCOME_AMBIGUOUS;
  }
  if (number == 0)
    json_put(object, "none", json_true());
  return place_number(spec, number, object,
                      stage == STAGE_AI_JUDGE ? "$.matched_index:" : "$.step:");
}

static bool chain_answer_has_no_value(enum stage_outcome outcome) {
  return outcome == OUTCOME_UNREADABLE || outcome == OUTCOME_INVALID ||
         outcome == OUTCOME_OUT_OF_RANGE || outcome == OUTCOME_HIDDEN;
}

/* Judges by [JUDGE:N], the ai stage's own fallback. */
static enum stage_outcome judge_by_tag(const struct chain_spec *spec, struct str text,
                                       json_t *object, enum stage_outcome so_far) {
  struct tag_result tag;
  if (!chain_answer_has_no_value(so_far) || !chain_find_tag(spec, text, STAGE_AI_JUDGE, &tag))
    return so_far;
  if (tag.ambiguous) {
    doubt_tags(object, text, &tag);
    return OUTCOME_AMBIGUOUS;
  }
  if (so_far != OUTCOME_UNREADABLE && tag.tag.number != 0 && !chain_offers(spec, tag.tag.number))
    return so_far;
  if (tag.tag.number == 0)
    json_put(object, "none", json_true());
  return place_number(spec, (double)tag.tag.number, object, "tag");
}

json_t *chain_value(const struct chain_spec *spec, enum judge_stage stage,
                    const struct chain_reply *reply) {
  struct reading reading;
  json_t *object = stage_object_new(stage, OUTCOME_UNREADABLE);
  enum stage_outcome outcome = OUTCOME_UNREADABLE;
  assert(stage == STAGE_STRUCTURED_OUTPUT || stage == STAGE_AI_JUDGE);
  reading_init(&reading,
               stage == STAGE_AI_JUDGE ? spec->schemas->evaluation : spec->schemas->judgment,
               number_key(stage), reply->structured, reply->text, spec->agent_text);
  if (reading.where != NULL)
    json_put(object, "extract_stage", json_string_nocheck(reading.where));
  if (reading.ambiguous) {
    outcome = OUTCOME_AMBIGUOUS;
    doubt_reading(object, stage, reply->text, &reading);
  } else if (reading.value == NULL) {
    stage_object_error(object, reading.missing, strlen(reading.missing));
  } else if (!reading.valid) {
    outcome = OUTCOME_INVALID;
    add_errors(object, &reading.errors);
  } else {
    outcome = judge_value(spec, stage, reply->text, &reading, object);
  }
  if (stage == STAGE_AI_JUDGE)
    outcome = judge_by_tag(spec, reply->text, object, outcome);
  set_outcome(object, outcome);
  reading_deinit(&reading);
  return object;
}
