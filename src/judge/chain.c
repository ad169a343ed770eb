/* Says what comes next in judging a turn: a call, a stage to record, or the verdict. */
#include "judge/chain.h"

#include "base/buf.h"
#include "base/resource.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "judge/parse_reply.h"
#include "judge/usage.h"

#include <assert.h>
#include <string.h>

/* --- words that contradict a number --- */

/* Returns true if the words stand in the text, apart from its own rule's words. */
static bool says_words(struct str text, struct str words, struct str own) {
  for (size_t i = 0; words.n > 0 && i + words.n <= text.n; i++) {
    if (own.n >= words.n && own.n <= text.n - i &&
        tag_folded_equal((struct str){text.p + i, own.n}, own)) {
      i += own.n - 1;
      continue;
    }
    struct str behind = {text.p + i + words.n, text.n - i - words.n};
    bool begins = i == 0 || tag_letter((struct str){text.p + i - 1, 1}) != 1 ||
                  tag_letter((struct str){words.p, 1}) != 1;
    if (begins && tag_folded_equal((struct str){text.p + i, words.n}, words) &&
        tag_letter(behind) != 1)
      return true;
  }
  return false;
}

/* Returns the number that stands alone at text[i], where digits begin; -1: it is a part of a word,
 * a version, a share, a place. *n: its digits. */
static long number_alone(struct str text, size_t i, size_t *n) {
  long number = 0;
  *n = 0;
  while (i + *n < text.n && str_is_digit(text.p[i + *n]))
    ++*n;
  const char *before = i > 0 ? &text.p[i - 1] : " ";
  struct str behind = {text.p + i + *n, text.n - i - *n};
  bool goes_on = behind.n > 1 && memchr(".,:/-", behind.p[0], 5) != NULL &&
                 tag_letter((struct str){behind.p + 1, 1}) == 1;
  bool fine = str_to_long((struct str){text.p + i, *n}, &number) && tag_letter(behind) != 1 &&
              !goes_on && (behind.n == 0 || behind.p[0] != '%') && !str_is_letter(*before);
  bool in_tag = behind.n > 0 && behind.p[0] == ']' && *before == ':';
  return fine && (in_tag || memchr(".,:/-+_$", *before, 8) == NULL) ? number : -1;
}

/* Returns the mark of code or quotation that is open behind this one. */
static char quote_after(char open, char mark) {
  if (open == mark)
    return '\0';
  return open ? open : mark;
}

bool reason_contradicts(struct str reason, long number, const struct tag_query *query) {
  struct str own = {0};
  char quote = '\0'; /* that is open: code or a quotation */
  for (size_t i = 0; i < query->word_count; i++)
    if (query->words[i].number == number)
      own = query->words[i].words;
  for (size_t i = 0; i < query->word_count; i++)
    if (query->words[i].number != number && says_words(reason, query->words[i].words, own))
      return true;
  for (size_t i = 0, n = 1; i < reason.n; i += n) {
    char c = reason.p[i];
    n = 1;
    if (c == '`' || c == '"')
      quote = quote_after(quote, c);
    if (own.n > 0 && own.n <= reason.n - i &&
        tag_folded_equal((struct str){reason.p + i, own.n}, own)) {
      n = own.n;
    } else if (str_is_digit(c)) {
      long other = number_alone(reason, i, &n);
      for (size_t k = 0; k < query->word_count && quote == '\0'; k++)
        if (other == query->words[k].number && other != number)
          return true;
    }
  }
  return false;
}

/* Returns true if the words, perhaps behind their number or tag, are the rule's. */
static bool are_words_of(struct str said, const struct tag_words *rule, struct str name) {
  struct str own = tag_without_signs(rule->words);
  char digits[STR_NUMBER_BYTES];
  struct str lead = {digits, str_from_number(digits, rule->number)}; /* "2. needs fix" */
  if (tag_folded_equal(said, own))
    return true;
  if (said.n > name.n && said.p[name.n] == ':' &&
      tag_folded_equal((struct str){said.p, name.n}, name))
    said = (struct str){said.p + name.n + 1, said.n - name.n - 1}; /* "[REVIEW:2] needs fix" */
  if (said.n <= lead.n || memcmp(said.p, lead.p, lead.n) != 0)
    return false;
  struct str rest = {said.p + lead.n, said.n - lead.n};
  return tag_letter(rest) == 0 && tag_folded_equal(tag_without_signs(rest), own);
}

bool rule_words_differ(struct str words, long number, const struct tag_query *query) {
  bool differ = false, other = false;
  for (size_t i = 0; i < query->word_count; i++) {
    bool are = are_words_of(tag_without_signs(words), &query->words[i], query->name);
    differ |= !are && query->words[i].number == number;
    other |= are && number == 0;
  }
  return differ || other;
}

/* --- the schemas of judges' answers --- */

static struct schema *compile_resource(const char *name, json_t **doc, struct err *err) {
  const struct resource *r = resource_find(name);
  *doc = r ? json_loadb(r->p, r->n, 0, NULL) : NULL;
  struct schema *schema = *doc ? schema_compile(*doc, NULL, NULL, NULL) : NULL;
  if (schema == NULL)
    err_set(err, ERR_INVALID, "the built-in %s does not compile", name);
  return schema;
}

bool chain_schemas_init(struct chain_schemas *schemas, struct err *err) {
  schemas->judgment = compile_resource("schemas/judgment.json", &schemas->judgment_doc, err);
  schemas->evaluation = compile_resource("schemas/evaluation.json", &schemas->evaluation_doc, err);
  schemas->invariant = compile_resource("schemas/invariant.json", &schemas->invariant_doc, err);
  schemas->narrowed = json_object();
  if (schemas->judgment && schemas->evaluation && schemas->invariant)
    return true;
  chain_schemas_deinit(schemas);
  return false;
}

void chain_schemas_deinit(struct chain_schemas *schemas) {
  schema_free(schemas->judgment);
  schema_free(schemas->evaluation);
  schema_free(schemas->invariant);
  json_decref(schemas->invariant_doc);
  json_decref(schemas->judgment_doc);
  json_decref(schemas->evaluation_doc);
  json_decref(schemas->narrowed);
  *schemas = (struct chain_schemas){0};
}

json_t *chain_call_schema(const struct chain_spec *spec, enum judge_stage stage) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  if (stage != STAGE_STRUCTURED_OUTPUT && stage != STAGE_AI_JUDGE)
    return NULL;
  bool ai = stage == STAGE_AI_JUDGE;
  size_t n = chain_offered(spec, offered);
  buf_auto_t key = {0};
  buf_puts(&key, judge_stage_name(stage));
  for (size_t i = 0; i < n; i++)
    buf_printf(&key, " %d", offered[i]->number);
  json_t *doc = json_incref(json_object_get(spec->schemas->narrowed, key.p));
  if (doc == NULL) {
    doc = json_clone(ai ? spec->schemas->evaluation_doc : spec->schemas->judgment_doc);
    json_t *number = json_object_get(json_at(doc, "properties"), ai ? "matched_index" : "step");
    json_t *numbers = json_pack("[i]", 0);
    for (size_t i = 0; i < n; i++)
      json_array_append_new(numbers, json_integer(offered[i]->number));
    json_object_del(number, "minimum");
    json_put(number, "enum", numbers);
    if (json_object_size(spec->schemas->narrowed) < LIMIT_SCHEMA_CACHE_COUNT)
      json_object_set_nocheck(spec->schemas->narrowed, key.p, doc);
  }
  return doc;
}

/* --- objects --- */

/* STAGE_COUNT and OUTCOME_COUNT if the object says something else. */
static enum judge_stage stage_object_stage(const json_t *object) {
  enum judge_stage stage = STAGE_COUNT;
  (void)judge_stage_from_name(str_from(json_string_value(json_at(object, "stage"))), &stage);
  return stage;
}

static enum stage_outcome stage_object_outcome(const json_t *object) {
  enum stage_outcome outcome = OUTCOME_COUNT;
  (void)stage_outcome_from_name(str_from(json_string_value(json_at(object, "outcome"))), &outcome);
  return outcome;
}

static bool stage_object_is_vote(const json_t *object) {
  return json_at(object, "vote") != NULL;
}

/* Returns the object of a stage, not of a vote in it; or NULL. */
static const json_t *stage_object_find(const json_t *stages, enum judge_stage stage) {
  JSON_EACH(stages, i, object)
    if (stage_object_stage(object) == stage && !stage_object_is_vote(object))
      return object;
  return NULL;
}

static json_t *stage_object_new(enum judge_stage stage, enum stage_outcome outcome) {
  json_t *object = json_object();
  json_put(object, "stage", json_string_nocheck(judge_stage_name(stage)));
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
  json_put(object, "calls", json_array());
  return object;
}

static void stage_object_error(json_t *object, struct str text) {
  json_t *errors = json_at(object, "errors");
  if (errors == NULL) {
    errors = json_array();
    json_put(object, "errors", errors);
  }
  if (text.n > LIMIT_ERROR_TEXT_BYTES)
    text.n = LIMIT_ERROR_TEXT_BYTES;
  json_array_append_new(errors, json_text(text));
}

/* Ends a line that was written for it. */
static void stage_object_take(json_t *object, struct buf *line) {
  stage_object_error(object, buf_view(line));
  buf_deinit(line);
}

/* --- expressions --- */

/* Returns true unless the rule is hidden: interactive_only rules are hidden unless somebody is
 * there. */
static bool chain_shows(const struct chain_spec *spec, const struct rule *rule) {
  return spec->interactive || !rule->interactive_only;
}

/* Evaluates the when() rules [0, end) and all aggregates in file order. The notes of those that
 * were false are added as errors: they say why the next stage was tried. */
static json_t *chain_when(const struct chain_spec *spec, size_t end) {
  json_t *object = stage_object_new(STAGE_WHEN, OUTCOME_NO_MATCH);
  for (size_t i = 0; i < spec->rule_count; i++) {
    const struct rule *rule = &spec->rules[i];
    struct expr_error err;
    if (!chain_shows(spec, rule) || rule->kind != RULE_WHEN ||
        (i >= end && rule->aggregate == NULL))
      continue;
    json_put(object, "stage",
             json_string_nocheck(judge_stage_name(rule->aggregate ? STAGE_AGGREGATE : STAGE_WHEN)));
    struct buf note = {0};
    switch (expr_eval(rule->when, spec->env, &err)) {
    case EXPR_TRUE:
      json_put(object, "outcome", json_string_nocheck(stage_outcome_name(OUTCOME_MATCHED)));
      json_put(object, "rule", json_integer(rule->number));
      buf_printf(&note, STR_FMT " is true", STR_ARG(rule->when_text));
      json_put(object, "reason", json_text(buf_view(&note)));
      buf_deinit(&note);
      return object;
    case EXPR_FALSE:
      buf_printf(&note, STR_FMT " is false", STR_ARG(rule->when_text));
      stage_object_error(object, buf_view(&note));
      break;
    case EXPR_ERROR:
      if (rule->is_global && err.code != EXPR_UNKNOWN) {
        buf_printf(&note, STR_FMT " cannot be told here: %s", STR_ARG(rule->when_text), err.text);
        stage_object_error(object, buf_view(&note));
        break;
      }
      json_put(object, "outcome", json_string_nocheck(stage_outcome_name(OUTCOME_ERROR)));
      buf_printf(&note, "rule %d, " STR_FMT ": %s", rule->number, STR_ARG(rule->when_text),
                 err.text);
      stage_object_take(object, &note);
      return object;
    }
    buf_deinit(&note);
  }
  return object;
}

/* Returns the rule that wins in file order with the chosen label, NULL when no guard holds. Sets
 * *failed if an expression cannot be evaluated. */
static const struct rule *chain_walk(const struct chain_spec *spec, const struct rule *chosen,
                                     bool *failed, char *reason, size_t reason_bytes) {
  *failed = false;
  for (size_t i = 0; i < spec->rule_count; i++) {
    const struct rule *rule = &spec->rules[i];
    struct expr_error err;
    if (!chain_shows(spec, rule) ||
        (rule->kind != RULE_WHEN && !str_eq(rule->label, chosen->label)))
      continue;
    if (rule->kind == RULE_LABEL)
      return rule;
    switch (expr_eval(rule->when, spec->env, &err)) {
    case EXPR_TRUE:
      return rule;
    case EXPR_FALSE:
      if (rule->kind == RULE_LABEL_WHEN)
        print_into(reason, reason_bytes, "\"%.*s\" was chosen, but its guard %.*s is false",
                   (int)rule->label.n, rule->label.p, (int)rule->when_text.n, rule->when_text.p);
      break;
    case EXPR_ERROR:
      if (rule->is_global && err.code != EXPR_UNKNOWN)
        break;
      *failed = true;
      print_into(reason, reason_bytes, "rule %d, %.*s: %.300s", rule->number,
                 (int)(rule->when_text.n < 150 ? rule->when_text.n : 150), rule->when_text.p,
                 err.text);
      return NULL;
    }
  }
  return NULL;
}

/* --- what a model said: the object of a stage from a tag or from a value --- */

static void set_outcome(json_t *object, enum stage_outcome outcome) {
  json_put(object, "outcome", json_string_nocheck(stage_outcome_name(outcome)));
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
      struct buf tag = {0};
      rule_tag(spec->movement, offered[i]->number, &tag);
      json_put(object, "tag", json_stringn_nocheck(tag.p, tag.n));
      buf_deinit(&tag);
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
  stage_object_take(object, &text);
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
      .mark = spec->mark,
      .scope = stage == STAGE_PHASE1_TAG ? spec->own_scope : TAG_REPLY,
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
  stage_object_take(object, &line);
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
  stage_object_take(object, &line);
}

/* Returns the stage in which a judge said that no rule holds, or NULL. */
static const json_t *none_holds(const json_t *stages) {
  JSON_EACH(stages, i, object)
    if (json_is_true(json_at(object, "none")))
      return object;
  return NULL;
}

bool chain_was_decided(const json_t *stages) {
  bool asked = false;
  JSON_EACH(stages, i, object) {
    if (json_at(object, "vote") == NULL &&
        (json_is_true(json_at(object, "none")) || stage_object_outcome(object) == OUTCOME_MATCHED))
      return true;
    asked |= json_array_size(json_at(object, "calls")) > 0;
  }
  return !asked;
}

static bool lists_stage(const struct chain_spec *spec, enum judge_stage stage) {
  for (size_t i = 0; i < spec->stage_count; i++)
    if (spec->stages[i] == stage)
      return true;
  return false;
}

/* Returns true if the tag of the worker's own may decide. Without its mark it may only where no
 * prompt could ask for one and nobody else is asked. */
static bool own_tag_decides(const struct chain_spec *spec, const struct tag_result *tag) {
  if (!tag->marked)
    return spec->own_scope == TAG_COMMAND && spec->stage_count == 1;
  return spec->own_tag || (spec->stage_count > 0 && spec->stages[0] == STAGE_PHASE1_TAG);
}

/* Says what is there instead of a verdict. */
static struct str no_tag(enum judge_stage stage, const struct tag_result *tag) {
  if (stage != STAGE_PHASE1_TAG && tag->mention_count > 0)
    return STR("the reply is more than its tag: give that line alone");
  switch (tag->mark) {
  case TAG_WRONG:
    return STR("the tag has another word than this turn's mark");
  case TAG_ELSEWHERE:
    return STR("this turn's mark stands where it decides nothing");
  case TAG_MISSING:
    return tag->mention_count > 0 ? STR("no tag has this turn's mark") : STR("no tag");
  case TAG_UNASKED:
  case TAG_PRESENT:
  case TAG_MARK_COUNT:
    break;
  }
  return STR("no tag");
}

/* Judges a stage by a tag in `text`. `stages`: earlier ones, whose "none holds" still counts. */
static json_t *chain_tag(const struct chain_spec *spec, const json_t *stages,
                         enum judge_stage stage, struct str text) {
  struct tag_result tag;
  json_t *object = stage_object_new(stage, OUTCOME_NO_MATCH);
  const json_t *none = stage == STAGE_PHASE1_TAG ? none_holds(stages) : NULL;
  if (str_trim(text).n == 0 && stage != STAGE_PHASE1_TAG) {
    stage_object_error(object, STR("the reply is empty"));
    set_outcome(object, OUTCOME_UNREADABLE);
    return object;
  }
  if (!chain_find_tag(spec, text, stage, &tag)) {
    stage_object_error(object, no_tag(stage, &tag));
  } else if (tag.ambiguous) {
    doubt_tags(object, text, &tag);
    set_outcome(object, OUTCOME_AMBIGUOUS);
  } else if (tag.tag.number == 0) {
    stage_object_error(object, STR("tag 0 names no rule"));
    json_put(object, "none", json_true());
  } else if (none != NULL) {
    doubt_agent(object, text, &tag.tag, none);
    set_outcome(object, OUTCOME_AMBIGUOUS);
  } else if (stage == STAGE_PHASE1_TAG && !own_tag_decides(spec, &tag)) {
    buf_auto_t line = {.max = LIMIT_ERROR_TEXT_BYTES};
    tag_words(&line, text, &tag.tag);
    const char *why = " has no mark: it decides nothing alone";
    if (tag.marked)
      why = " is the agent's own and decides only with judge.fallback: own_tag";
    buf_puts(&line, why);
    stage_object_error(object, buf_view(&line));
  } else {
    enum stage_outcome outcome = place_number(spec, (double)tag.tag.number, object, "tag");
    set_outcome(object, outcome);
    if (outcome == OUTCOME_MATCHED)
      json_put(object, "tag", json_stringn_nocheck(text.p + tag.tag.offset, tag.tag.length));
  }
  json_auto_t *mentions = json_array();
  for (size_t i = 0; i < tag.mention_count; i++)
    json_array_append_new(mentions, place_object(text, &tag.mentions[i]));
  if (tag.mention_count > 0)
    json_put(object, "mentions", json_incref(mentions));
  return object;
}

/* --- values --- */

static const char *number_key(enum judge_stage stage) {
  return stage == STAGE_AI_JUDGE ? "matched_index" : "step";
}

/* Describes a value by its start, its place and the rule that it names. */
static json_t *value_object(enum judge_stage stage, struct str text,
                            const struct whole_reply_place *place) {
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

/* Returns whether this is the number of a rule that is offered to a model. */
static bool chain_offers(const struct chain_spec *spec, long number) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  for (size_t i = 0; i < n; i++)
    if (offered[i]->number == number)
      return true;
  return false;
}

/* Reports two values that differ, a key given twice, or an echo of the report. */
static void doubt_reading(json_t *object, enum judge_stage stage, struct str text,
                          const struct parsed_reply *reading) {
  const struct whole_reply *sole = &reading->sole;
  buf_auto_t line = {.max = LIMIT_ERROR_TEXT_BYTES};
  json_t *candidates = json_array();
  buf_puts(&line, reading->missing);
  for (size_t i = 0; i < sole->place_count; i++) {
    json_t *place = value_object(stage, text, &sole->places[i]);
    const json_t *rule = json_at(place, "rule");
    buf_puts(&line, i == 0 ? ": " : " and ");
    if (rule != NULL)
      buf_printf(&line, "%" JSON_INTEGER_FORMAT " ", json_integer_value(rule));
    buf_printf(&line, "on line %" JSON_INTEGER_FORMAT, json_int_at(place, "line"));
    json_array_append_new(candidates, place);
  }
  stage_object_error(object, buf_view(&line));
  json_put(object, "candidates", candidates);
}

static bool is_contradicted(const struct chain_spec *spec, enum judge_stage stage,
                            const json_t *value, double number) {
  struct tag_words words[LIMIT_RULE_COUNT];
  const struct tag_query query = query_of(spec, stage, words);
  struct str reason = json_view_at(value, "reason"), rule = json_view_at(value, "rule");
  if (number >= LIMIT_RULE_COUNT)
    return false;
  return (reason.p != NULL && reason_contradicts(reason, (long)number, &query)) ||
         (str_trim(rule).n > 0 && rule_words_differ(rule, (long)number, &query));
}

/* Judges by a value that fits its schema. */
static enum stage_outcome judge_value(const struct chain_spec *spec, enum judge_stage stage,
                                      const struct parsed_reply *reading, json_t *object) {
  double number = json_number_value(json_object_get(reading->value, number_key(stage)));
  /* Only the start: the whole text stands in the call's answer. */
  struct str reason = json_view_at(reading->value, "reason");
  if (reason.n > LIMIT_ERROR_TEXT_BYTES)
    reason.n = LIMIT_ERROR_TEXT_BYTES;
  if (reason.p != NULL)
    json_put(object, "reason", json_text(reason));
  if (is_contradicted(spec, stage, reading->value, number)) {
    stage_object_error(
        object, STR("the words name another rule than the number: give the number that holds, "
                    "with a reason that names no other"));
    return OUTCOME_AMBIGUOUS;
  }
  json_put_true(object, "none", number == 0);
  return place_number(spec, number, object,
                      stage == STAGE_AI_JUDGE ? "$.matched_index:" : "$.step:");
}

/* Returns true for an answer that another request may mend: it has no value that counts. */
static bool chain_has_no_value(enum stage_outcome outcome) {
  return outcome == OUTCOME_UNREADABLE || outcome == OUTCOME_INVALID ||
         outcome == OUTCOME_OUT_OF_RANGE || outcome == OUTCOME_HIDDEN;
}

/* Judges by [JUDGE:N], the ai stage's own fallback. */
static enum stage_outcome judge_by_tag(const struct chain_spec *spec, struct str text,
                                       json_t *object, enum stage_outcome so_far) {
  struct tag_result tag;
  if (!chain_has_no_value(so_far) || !chain_find_tag(spec, text, STAGE_AI_JUDGE, &tag))
    return so_far;
  if (so_far != OUTCOME_UNREADABLE && tag.tag.number != 0 && !chain_offers(spec, tag.tag.number))
    return so_far;
  json_put_true(object, "none", tag.tag.number == 0);
  return place_number(spec, (double)tag.tag.number, object, "tag");
}

/* Judges a stage by the value of a reply. */
static json_t *chain_value(const struct chain_spec *spec, enum judge_stage stage,
                           const struct chain_reply *reply) {
  AUTO(parsed_reply_deinit) struct parsed_reply reading;
  json_t *object = stage_object_new(stage, OUTCOME_UNREADABLE);
  enum stage_outcome outcome = OUTCOME_UNREADABLE;
  assert(stage == STAGE_STRUCTURED_OUTPUT || stage == STAGE_AI_JUDGE);
  parsed_reply_init(&reading,
                    stage == STAGE_AI_JUDGE ? spec->schemas->evaluation : spec->schemas->judgment,
                    number_key(stage), reply->structured, reply->text, spec->agent_text);
  if (reading.where != NULL)
    json_put(object, "extract_stage", json_string_nocheck(reading.where));
  if (reading.ambiguous) {
    outcome = OUTCOME_AMBIGUOUS;
    doubt_reading(object, stage, reply->text, &reading);
  } else if (reading.value == NULL) {
    stage_object_error(object, str_from(reading.missing));
  } else if (!reading.valid) {
    outcome = OUTCOME_INVALID;
    for (size_t i = 0; i < reading.errors.count && i < LIMIT_STAGE_ERROR_COUNT; i++) {
      struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
      buf_printf(&line, "%s: %s", reading.errors.items[i].path, reading.errors.items[i].message);
      line.n = utf8_floor(line.p, line.n);
      stage_object_take(object, &line);
    }
  } else {
    outcome = judge_value(spec, stage, &reading, object);
  }
  if (stage == STAGE_AI_JUDGE)
    outcome = judge_by_tag(spec, reply->text, object, outcome);
  set_outcome(object, outcome);
  return object;
}

/* --- a panel: one vote each, until enough agree or no longer can --- */

/* Counts the votes of a stage so far. */
struct tally {
  int votes;         /* recorded */
  int none;          /* said that no rule holds */
  int most;          /* that said the same */
  long rule;         /* the rule they named; 0: none holds */
  const char *class; /* why the last one without an answer failed; NULL: all answered */
  json_t *said;      /* {"rule", "vote", "provider"?} of each that said something; owned */
};

static void count_rule(struct tally *t, long rule) {
  int same = 0;
  JSON_EACH(t->said, i, other)
    same += json_int_at(other, "rule") == rule;
  if (same > t->most) {
    t->most = same;
    t->rule = rule;
  }
}

static void count_vote(struct tally *t, const json_t *vote) {
  enum stage_outcome outcome = stage_object_outcome(vote);
  bool none = json_is_true(json_at(vote, "none"));
  t->votes++;
  if (outcome == OUTCOME_ERROR)
    t->class = json_string_value(json_at(vote, "class"));
  if (outcome != OUTCOME_MATCHED && !(outcome == OUTCOME_NO_MATCH && none))
    return;
  json_int_t rule = outcome == OUTCOME_MATCHED ? json_int_at(vote, "rule") : 0;
  json_t *said = json_pack("{sI sO}", "rule", rule, "vote", json_at(vote, "vote"));
  if (json_at(vote, "provider") != NULL)
    json_put(said, "provider", json_incref(json_at(vote, "provider")));
  json_array_append_new(t->said, said);
  count_rule(t, (long)rule);
}

/* Builds the stage's own object from its votes. */
static json_t *panel_decide(const struct chain_spec *spec, enum judge_stage stage,
                            struct tally *t) {
  buf_auto_t line = {.max = LIMIT_ERROR_TEXT_BYTES};
  json_t *object;
  buf_printf(&line, "%d of %d votes", t->most, t->votes);
  if (t->most >= spec->agree && t->rule > 0) {
    object = stage_object_new(stage, OUTCOME_MATCHED);
    json_put(object, "rule", json_integer(t->rule));
    json_put(object, "reason", json_stringn_nocheck(line.p, line.n));
  } else if (t->most >= spec->agree) {
    object = stage_object_new(stage, OUTCOME_NO_MATCH);
    buf_puts(&line, " say that no rule holds");
    stage_object_error(object, buf_view(&line));
    json_put(object, "none", json_true());
  } else if (t->most > 0) {
    object = stage_object_new(stage, OUTCOME_AMBIGUOUS);
    buf_printf(&line, " agree at most, %d must", spec->agree);
    stage_object_error(object, buf_view(&line));
    json_put(object, "candidates", json_incref(t->said));
  } else if (t->class != NULL) {
    object = stage_object_new(stage, OUTCOME_ERROR);
    json_put(object, "class", json_string_nocheck(t->class));
    stage_object_error(object, STR("no vote could be read"));
  } else {
    object = stage_object_new(stage, OUTCOME_UNREADABLE);
    stage_object_error(object, STR("no vote could be read"));
  }
  return object;
}

/* Counts the replies of one vote. They stand together: a stage's votes are asked for one after the
 * other. */
static size_t replies_of(enum judge_stage stage, int vote, const struct chain_reply *replies,
                         size_t n, const struct chain_reply **first) {
  size_t from = 0, count = 0;
  while (from < n && (replies[from].stage != stage || replies[from].vote != vote))
    from++;
  while (from + count < n && replies[from + count].stage == stage &&
         replies[from + count].vote == vote)
    count++;
  *first = NULL;
  if (n > 0)
    *first = from < n ? &replies[from] : replies;
  return count;
}

static void chain_call_stage(const struct chain_spec *spec, enum judge_stage stage,
                             const json_t *stages, const struct chain_reply *replies, size_t n,
                             struct chain_step *step);
static void chain_yield(struct chain_step *step, json_t *object) {
  step->action = CHAIN_STAGE;
  step->stage = stage_object_stage(object);
  if (json_at(object, "duration_ms") == NULL)
    json_put(object, "duration_ms", json_integer(0));
  step->object = object;
}

/* Goes on with a stage that asks a panel: the next vote, or their joint decision. */
static void chain_panel(const struct chain_spec *spec, enum judge_stage stage, const json_t *stages,
                        const struct chain_reply *replies, size_t n, struct chain_step *step) {
  struct tally t = {.said = json_array()};
  JSON_EACH(stages, i, object)
    if (stage_object_is_vote(object) && stage_object_stage(object) == stage)
      count_vote(&t, object);
  int left = spec->panel - t.votes;
  assert(spec->panel > 0 && spec->agree > 0);
  if (left <= 0 || t.most >= spec->agree || t.most + left < spec->agree) {
    chain_yield(step, panel_decide(spec, stage, &t));
  } else {
    const struct chain_reply *own;
    size_t count = replies_of(stage, t.votes + 1, replies, n, &own);
    struct chain_spec one = *spec; /* the chain of one judge with one stage */
    one.panel = 0;
    one.stages = &stage;
    one.stage_count = 1;
    chain_call_stage(&one, stage, NULL, own, count, step);
    step->vote = t.votes + 1;
    if (step->action == CHAIN_STAGE)
      json_put(step->object, "vote", json_integer(step->vote));
  }
  json_decref(t.said);
}

/* --- rules --- */

static bool label_seen(const struct rule *const *seen, size_t n, struct str label) {
  for (size_t i = 0; i < n; i++)
    if (str_eq(seen[i]->label, label))
      return true;
  return false;
}

size_t chain_offered(const struct chain_spec *spec, const struct rule **out) {
  size_t n = 0;
  for (size_t i = 0; i < spec->rule_count && !spec->deterministic; i++) {
    const struct rule *rule = &spec->rules[i];
    if (chain_shows(spec, rule) && rule->kind != RULE_WHEN && !label_seen(out, n, rule->label))
      out[n++] = rule;
  }
  return n;
}

size_t chain_shown(const struct chain_spec *spec, const struct rule **out) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  for (size_t i = 0; i < n; i++)
    out[i] = offered[(i + (size_t)spec->rotation) % n];
  return n;
}

static bool stage_calls(enum judge_stage stage) {
  return stage == STAGE_STRUCTURED_OUTPUT || stage == STAGE_PHASE3_TAG || stage == STAGE_AI_JUDGE;
}

bool chain_needs_judge(const struct chain_spec *spec) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  if (spec->rule_count > LIMIT_RULE_COUNT || chain_offered(spec, offered) < 2)
    return false;
  for (size_t i = 0; i < spec->stage_count; i++)
    if (stage_calls(spec->stages[i]))
      return true;
  return false;
}

/* --- the chain --- */

static const struct chain_reply *last_reply_of(const struct chain_reply *replies, size_t n,
                                               enum judge_stage stage, int *count) {
  const struct chain_reply *last = NULL;
  *count = 0;
  for (size_t i = 0; i < n; i++)
    if (replies[i].stage == stage) {
      last = &replies[i];
      (*count)++;
    }
  return last;
}

static const struct chain_reply *last_answer_of(const struct chain_reply *replies, size_t n,
                                                enum judge_stage stage) {
  const struct chain_reply *last = NULL;
  for (size_t i = 0; i < n; i++)
    if (replies[i].stage == stage && replies[i].error_class == NULL)
      last = &replies[i];
  return last;
}

/* Puts who was asked and with which prompt. */
static void chain_put_judge(json_t *object, const struct chain_reply *reply) {
  json_put_text(object, "provider", reply->provider);
  json_put_text(object, "model", reply->model);
  json_put_text(object, "prompt_sha256", reply->prompt_sha256);
}

/* Adds the calls of a stage, in order, and what they used. */
static void add_calls(json_t *object, const struct chain_reply *replies, size_t n,
                      enum judge_stage stage) {
  int64_t total_ms = 0;
  json_t *usage = NULL;
  for (size_t i = 0; i < n; i++)
    if (replies[i].stage == stage) {
      json_array_append_new(json_at(object, "calls"), json_integer(replies[i].call));
      total_ms += replies[i].duration_ms;
      usage_add(&usage, replies[i].usage);
    }
  if (usage != NULL)
    json_put(object, "usage", usage);
  json_put(object, "duration_ms", json_integer(total_ms));
}

static json_t *chain_reading(const struct chain_spec *spec, const json_t *stages,
                             enum judge_stage stage, const struct chain_reply *reply) {
  if (stage == STAGE_PHASE3_TAG)
    return chain_tag(spec, stages, stage, reply->text);
  return chain_value(spec, stage, reply);
}

/* Adds what was wrong with the answers that reasks corrected: the judgment records all of it. */
static void add_earlier_errors(const struct chain_spec *spec, const json_t *stages,
                               enum judge_stage stage, const struct chain_reply *replies,
                               const struct chain_reply *last, json_t *object) {
  json_t *all = json_array();
  for (const struct chain_reply *r = replies; r < last; r++) {
    if (r->stage != stage || r->error_class != NULL)
      continue;
    json_t *earlier = chain_reading(spec, stages, stage, r);
    json_array_extend(all, json_at(earlier, "errors"));
    json_decref(earlier);
  }
  if (json_array_size(all) > 0) {
    json_array_extend(all, json_at(object, "errors"));
    json_object_set_nocheck(object, "errors", all);
  }
  json_decref(all);
}

/* Returns whether the structured_output reply holds a tag that can decide as phase3_tag, if that
 * stage is still to come. */
static bool saved_tag(const struct chain_spec *spec, const json_t *stages,
                      const struct chain_reply *reply) {
  struct tag_result tag;
  return reply != NULL && reply->error_class == NULL && lists_stage(spec, STAGE_PHASE3_TAG) &&
         stage_object_find(stages, STAGE_PHASE3_TAG) == NULL &&
         chain_find_tag(spec, reply->text, STAGE_PHASE3_TAG, &tag) &&
         chain_offers(spec, tag.tag.number);
}

/* Returns why asking would be pointless, an earlier stage's auth or quota trouble, or NULL. */
static const char *provider_trouble(const json_t *stages) {
  JSON_EACH(stages, i, object) {
    const char *class = json_string_value(json_at(object, "class"));
    if (class && (strcmp(class, "auth") == 0 || strcmp(class, "quota") == 0))
      return class;
  }
  return NULL;
}

/* Returns how often a stage may ask once more. A value from the backend's own schema mode
 * stands. */
static int reasks_of(const struct chain_spec *spec, const struct chain_reply *reply) {
  return reply->structured != NULL && !spec->reasks_said ? 0 : spec->max_reasks;
}

/* Returns true if the reply was not the answer that was asked for; one that says "none" is. */
static bool asks_again(enum judge_stage stage, const json_t *object) {
  enum stage_outcome outcome = stage_object_outcome(object);
  bool no_tag =
      stage == STAGE_PHASE3_TAG && outcome == OUTCOME_NO_MATCH && json_at(object, "none") == NULL;
  return no_tag || outcome == OUTCOME_AMBIGUOUS || chain_has_no_value(outcome);
}

/* Goes on with a stage that asks one judge: chain.c. Hands out a stage's object. */
static void chain_call_stage(const struct chain_spec *spec, enum judge_stage stage,
                             const json_t *stages, const struct chain_reply *replies, size_t n,
                             struct chain_step *step) {
  int count;
  const struct chain_reply *reply = last_reply_of(replies, n, stage, &count);
  const struct chain_reply *structured = last_answer_of(replies, n, STAGE_STRUCTURED_OUTPUT);
  if (reply == NULL && stage == STAGE_PHASE3_TAG) {
    const json_t *before = stage_object_find(stages, STAGE_STRUCTURED_OUTPUT);
    if (before && chain_has_no_value(stage_object_outcome(before)) &&
        saved_tag(spec, stages, structured)) {
      json_t *object = chain_tag(spec, stages, stage, structured->text);
      json_array_append_new(json_at(object, "calls"), json_integer(structured->call));
      chain_put_judge(object, structured);
      json_put(object, "reason", json_string_nocheck("from the structured_output reply"));
      chain_yield(step, object);
      return;
    }
  }
  if (reply == NULL) {
    const char *trouble = provider_trouble(stages);
    if (trouble != NULL) {
      json_t *object = stage_object_new(stage, OUTCOME_SKIPPED);
      json_put(object, "class", json_string_nocheck(trouble));
      chain_yield(step, object);
      return;
    }
    step->action = CHAIN_CALL;
    step->stage = stage;
    return;
  }
  const struct chain_reply *answered = last_answer_of(replies, n, stage);
  json_t *object;
  if (answered == NULL) {
    object = stage_object_new(stage, OUTCOME_ERROR);
  } else {
    object = chain_reading(spec, stages, stage, answered);
    if (answered == reply && count <= reasks_of(spec, reply) && asks_again(stage, object) &&
        !(stage == STAGE_STRUCTURED_OUTPUT && saved_tag(spec, stages, reply))) {
      step->action = CHAIN_CALL;
      step->stage = stage;
      step->reask = true;
      step->errors = json_incref(json_at(object, "errors"));
      json_decref(object);
      return;
    }
    add_earlier_errors(spec, stages, stage, replies, answered, object);
  }
  if (reply->error_class != NULL) { /* also of a reask: an answer before it still counts */
    json_put(object, "class", json_string_nocheck(reply->error_class));
    stage_object_error(object, reply->error_text);
  }
  chain_put_judge(object, answered ? answered : reply);
  add_calls(object, replies, n, stage);
  chain_yield(step, object);
}

/* Appends a stage's name and its last error. */
static void append_why(char *reason, size_t bytes, const json_t *object, const char *class) {
  const json_t *errors = json_at(object, "errors");
  const char *text = json_string_value(json_array_get(errors, json_array_size(errors) - 1));
  size_t n = strlen(reason);
  print_into(reason + n, bytes - n, " (%s: %s%s%.200s)",
             json_string_value(json_at(object, "stage")), class ? class : "", class ? ": " : "",
             text ? text : "");
}

static void finish_unmatched(const struct chain_spec *spec, const json_t *stages,
                             struct chain_step *step) {
  bool called = false, readable = false;
  const json_t *failed = NULL, *conflict = NULL; /* the first ones */
  const json_t *none = NULL;                     /* the last one that says why no rule holds */
  JSON_EACH(stages, i, object) {
    enum stage_outcome outcome = stage_object_outcome(object);
    if (stage_object_is_vote(object))
      continue;
    if (outcome == OUTCOME_AMBIGUOUS && conflict == NULL)
      conflict = object;
    if (json_is_true(json_at(object, "none")) && json_at(object, "reason") != NULL)
      none = object;
    if (!stage_calls(stage_object_stage(object)))
      continue;
    called = true;
    readable |=
        outcome != OUTCOME_ERROR && outcome != OUTCOME_SKIPPED && outcome != OUTCOME_UNREADABLE;
    if (failed == NULL && outcome == OUTCOME_ERROR)
      failed = object;
  }
  const char *reason = "no stage named a rule that was offered";
  step->action = called && !readable ? CHAIN_UNAVAILABLE : CHAIN_NO_MATCH;
  if (step->action == CHAIN_UNAVAILABLE)
    reason = "no stage got a readable answer from the judge";
  else if (spec->stage_count == 0)
    reason = "no rule holds and no stage is configured";
  else if (conflict != NULL)
    reason = "the evidence conflicts and no stage is left";
  print_into(step->reason, sizeof step->reason, "%s", reason);
  if (none != NULL && conflict == NULL && step->action == CHAIN_NO_MATCH)
    print_into(step->reason, sizeof step->reason, "no rule holds, says %s: %.300s",
               json_string_value(json_at(none, "stage")),
               json_string_value(json_at(none, "reason")));
  if (conflict != NULL)
    append_why(step->reason, sizeof step->reason, conflict, NULL);
  if (failed != NULL) { /* a log may lack the class */
    const char *class = json_string_value(json_at(failed, "class"));
    append_why(step->reason, sizeof step->reason, failed, class ? class : "no class");
  }
}

/* Finds, once a label was chosen, the rule that wins with it, or an earlier when() that is true. */
static void after_match(const struct chain_spec *spec, const json_t *last,
                        struct chain_step *step) {
  json_int_t number = json_int_at(last, "rule");
  const struct rule *chosen =
      number >= 1 && (size_t)number <= spec->rule_count ? &spec->rules[number - 1] : NULL;
  bool failed;
  if (chosen == NULL) {
    step->action = CHAIN_FAILED;
    print_into(step->reason, sizeof step->reason, "the record names a rule that is not there");
    return;
  }
  step->stage = stage_object_stage(last);
  if (chosen->kind == RULE_WHEN || step->stage == STAGE_HUMAN) { /* a person's decision stands */
    step->action = CHAIN_VERDICT;
    step->rule = chosen;
    return;
  }
  const struct rule *winner = chain_walk(spec, chosen, &failed, step->reason, sizeof step->reason);
  if (winner == NULL || winner->kind != RULE_WHEN) {
    step->action = winner ? CHAIN_VERDICT : CHAIN_NO_MATCH;
    if (failed)
      step->action = CHAIN_FAILED;
    step->rule = winner;
    return;
  }
  json_t *object =
      stage_object_new(winner->aggregate ? STAGE_AGGREGATE : STAGE_WHEN, OUTCOME_MATCHED);
  struct buf note = {0};
  bool before = winner->number < chosen->number;
  buf_printf(&note, STR_FMT " is true and %s \"" STR_FMT "\"%s", STR_ARG(winner->when_text),
             before ? "stands before" : "follows", STR_ARG(chosen->label),
             before ? "" : ", whose guard is false");
  json_put(object, "rule", json_integer(winner->number));
  json_put(object, "reason", json_text(buf_view(&note)));
  buf_deinit(&note);
  chain_yield(step, object);
}

static void next_in_list(const struct chain_spec *spec, const json_t *stages,
                         const struct chain_reply *replies, size_t n, struct chain_step *step) {
  /* i becomes the index of the next stage without an object; stage_count if all have one. */
  size_t i = 0;
  while (i < spec->stage_count && stage_object_find(stages, spec->stages[i]) != NULL)
    i++;
  const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
  /* Not enough votes of a panel's stage agreed. */
  if (spec->split_asks && last != NULL && stage_calls(stage_object_stage(last)) &&
      stage_object_outcome(last) == OUTCOME_AMBIGUOUS && !stage_object_is_vote(last)) {
    step->action = CHAIN_SPLIT;
    print_into(step->reason, sizeof step->reason, "the judges do not agree");
    append_why(step->reason, sizeof step->reason, last, NULL);
  } else if (i == spec->stage_count)
    finish_unmatched(spec, stages, step);
  else if (spec->stages[i] == STAGE_PHASE1_TAG)
    chain_yield(
        step, chain_tag(spec, stages, STAGE_PHASE1_TAG, spec->joined ? STR("") : spec->agent_text));
  else if (spec->panel > 0)
    chain_panel(spec, spec->stages[i], stages, replies, n, step);
  else
    chain_call_stage(spec, spec->stages[i], stages, replies, n, step);
}

void chain_next(const struct chain_spec *spec, const json_t *stages,
                const struct chain_reply *replies, size_t n, struct chain_step *step) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  assert(spec->rule_count <= LIMIT_RULE_COUNT);
  assert(n == 0 || replies != NULL);
  *step = (struct chain_step){.stage = STAGE_COUNT};
  size_t done = json_array_size(stages), labels = chain_offered(spec, offered);
  size_t first = 0; /* the first rule with a label */
  while (first < spec->rule_count &&
         (!chain_shows(spec, &spec->rules[first]) || spec->rules[first].kind == RULE_WHEN))
    first++;
  const json_t *last = done > 0 ? json_array_get(stages, done - 1) : NULL;
  bool over = last != NULL && !stage_object_is_vote(last);
  enum stage_outcome outcome = over ? stage_object_outcome(last) : OUTCOME_COUNT;
  bool has_when = false;
  for (size_t i = 0; i < spec->rule_count; i++)
    has_when |= chain_shows(spec, &spec->rules[i]) && (i < first || spec->rules[i].aggregate);

  if (outcome == OUTCOME_MATCHED) {
    after_match(spec, last, step);
  } else if (outcome == OUTCOME_ERROR && (stage_object_stage(last) == STAGE_WHEN ||
                                          stage_object_stage(last) == STAGE_AGGREGATE)) {
    /* Errors before the last one say what was false. */
    const json_t *errors = json_at(last, "errors");
    const char *why = json_string_value(json_array_get(errors, json_array_size(errors) - 1));
    step->action = CHAIN_FAILED;
    print_into(step->reason, sizeof step->reason, "%s",
               why ? why : "a when() expression cannot be evaluated");
  } else if (has_when && done == 0) {
    chain_yield(step, chain_when(spec, first));
  } else if (labels == 0) {
    step->action = CHAIN_NO_MATCH;
    const char *why = has_when ? "no when() rule is true" : "no rule can be selected";
    if (spec->deterministic)
      why = "every child failed, and no rule takes that";
    print_into(step->reason, sizeof step->reason, "%s", why);
  } else if (labels == 1) {
    json_t *object = stage_object_new(STAGE_AUTO_SELECT, OUTCOME_MATCHED);
    json_put(object, "rule", json_integer(offered[0]->number));
    json_put(object, "reason", json_string_nocheck("the only rule that can be selected"));
    chain_yield(step, object);
  } else {
    next_in_list(spec, stages, replies, n, step);
  }
}

void chain_step_deinit(struct chain_step *step) {
  json_decref(step->errors);
  json_decref(step->object);
  *step = (struct chain_step){0};
}
