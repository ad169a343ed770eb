/* Explains the stages of a judgment. */
#include "audit/explain_internal.h"
#include "audit/reread.h"
#include "base/log.h"
#include "format/json_object.h"

#include <string.h>

static const char *stage_outcome_words(const json_t *stage) {
  bool no_match = strcmp(explain_word(stage, "outcome"), "no_match") == 0;
  if (no_match && strcmp(explain_word(stage, "stage"), "phase1_tag") == 0)
    return "No tag in the agent's own message counts";
  if (no_match && strcmp(explain_word(stage, "stage"), "phase3_tag") == 0)
    return "The reply named no rule by a tag";

  static const struct {
    const char *outcome, *words;
  } table[] = {
      {"no_match", "Its answer was readable and named no rule"},
      {"unreadable", "Nothing in the reply could be read as an answer"},
      {"invalid", "The value in the reply does not fit its schema"},
      {"out_of_range", "It named a rule that does not exist"},
      {"hidden", "It named a rule that was not offered"},
      {"error", "No answer came"},
      {"ambiguous", "Its evidence names two rules and decides nothing"},
      {"skipped", "It would have met the same error at the provider"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (strcmp(table[i].outcome, explain_word(stage, "outcome")) == 0)
      return table[i].words;
  return "It named a rule";
}

/* Finds the agent's own last message, which its judges were shown and phase1_tag reads. */
static void learn_report(struct story *s) {
  size_t i;
  json_t *record;
  s->has_report = true;
  json_array_foreach(s->records, i, record) {
    struct call_view c;
    if (!explain_is_type(record, "call_start") || explain_word(record, "stage")[0] != '\0' ||
        strcmp(explain_word(record, "purpose"), "check") == 0)
      continue;
    explain_call_of(s, explain_number(record, "call"), &c);
    if (c.end != NULL && json_object_get(c.end, "error") == NULL) {
      buf_clear(&s->report);
      explain_answer_of(s, c.end, &s->report);
    }
  }
}

struct chain_spec explain_spec(struct story *s) {
  struct chain_spec spec = {.schemas = &s->schemas, .movement = STR("")};
  if (!s->has_report)
    learn_report(s);
  spec.agent_text = buf_view(&s->report);
  if (s->movement != NULL) {
    spec.rules = s->movement->rules;
    spec.rule_count = s->movement->rule_count;
    spec.interactive = json_is_true(json_at(json_at(s->start, "config"), "interactive"));
    spec.movement = s->movement->own_name;
  }
  return spec;
}

/* Writes one sentence: why the next stage was tried, or why none was. */
static void put_why(struct story *s, const json_t *stage, const json_t *next) {
  struct buf line = {0};
  bool matched = strcmp(explain_word(stage, "outcome"), "matched") == 0;
  bool failed = strcmp(explain_word(stage, "outcome"), "error") == 0;
  if ((matched && next == NULL) || json_object_get(stage, "vote") != NULL)
    return;      /* a single vote leads nowhere */
  if (matched) { /* by a when() rule before the label it named */
    pen_line(&s->pen, 1, "A when() rule that stands before that label is true, so it decides.");
    return;
  }
  if (strcmp(explain_word(stage, "stage"), "when") == 0)
    buf_puts(&line, failed ? "An expression cannot be evaluated" : "No when() rule is true");
  else
    buf_puts(&line, stage_outcome_words(stage));
  if (failed && explain_word(stage, "class")[0])
    buf_printf(&line, " (%s)", explain_word(stage, "class"));
  if (next == NULL)
    buf_puts(&line, ", and no stage was left.");
  else if (strcmp(explain_word(next, "outcome"), "skipped") == 0)
    buf_printf(&line, "; %s was skipped after the provider's %s error.",
               explain_word(next, "stage"), explain_word(next, "class"));
  else if (strcmp(explain_word(next, "stage"), "auto_select") == 0)
    buf_puts(&line, ", so the only label left was selected.");
  else
    buf_printf(&line, ", so %s was tried.", explain_word(next, "stage"));
  pen_line(&s->pen, 1, "%s", line.p);
  buf_deinit(&line);
}

static void put_stage_head(struct story *s, int index, const json_t *stage) {
  struct buf line = {0};
  size_t calls = json_array_size(json_object_get(stage, "calls"));
  buf_printf(&line, "stage %d  %s  %s", index, explain_word(stage, "stage"),
             explain_word(stage, "outcome"));
  if (explain_word(stage, "class")[0])
    buf_printf(&line, " (%s)", explain_word(stage, "class"));
  if (json_object_get(stage, "vote") != NULL)
    buf_printf(&line, "  vote %" JSON_INTEGER_FORMAT, explain_number(stage, "vote"));
  if (json_object_get(stage, "rule") != NULL)
    buf_printf(&line, "  rule %" JSON_INTEGER_FORMAT, explain_number(stage, "rule"));
  if (explain_word(stage, "tag")[0])
    buf_printf(&line, "  %s", explain_word(stage, "tag"));
  if (json_is_true(json_object_get(stage, "ambiguous")))
    buf_puts(&line, "  ambiguous");
  if (strcmp(explain_word(stage, "outcome"), "skipped") == 0)
    buf_puts(&line, "  not tried");
  else if (calls > 0)
    buf_printf(&line, "  %zu call%s, %" JSON_INTEGER_FORMAT " ms", calls, calls == 1 ? "" : "s",
               explain_number(stage, "duration_ms"));
  else
    buf_puts(&line, "  no call");
  pen_title(&s->pen, "%s", line.p);
  buf_deinit(&line);
}

void explain_person(struct story *s, const json_t *by) {
  struct buf where = {0};
  if (!json_is_object(by))
    return;
  if (explain_number(by, "window") > 0)
    buf_printf(&where, ", in the window, browser %" JSON_INTEGER_FORMAT,
               explain_number(by, "window"));
  pen_line(&s->pen, 1, "by: %s (uid %" JSON_INTEGER_FORMAT ")%s", explain_word(by, "name"),
           explain_number(by, "uid"), where.n > 0 ? where.p : "");
  buf_deinit(&where);
}

/* Names the rule that a candidate is for, with its condition: two numbers alone say little. */
static void put_rule_named(struct story *s, json_int_t number, struct buf *line) {
  const struct movement *m = s->movement;
  if (number == 0)
    buf_puts(line, "no rule");
  else
    buf_printf(line, "rule %" JSON_INTEGER_FORMAT, number);
  if (m == NULL || number < 1 || (size_t)number > m->rule_count)
    return;
  buf_puts(line, " (");
  buf_str(line, m->rules[number - 1].condition);
  buf_puts(line, ")");
}

/* Says what an ambiguous stage is torn between, and where each alternative is. */
static void put_doubt(struct story *s, const json_t *stage) {
  size_t i;
  json_t *candidate;
  json_array_foreach(json_object_get(stage, "candidates"), i, candidate) {
    struct buf line = {0};
    if (json_object_get(candidate, "rule") != NULL)
      put_rule_named(s, explain_number(candidate, "rule"), &line);
    else
      buf_puts(&line, "a value without a rule");
    if (json_object_get(candidate, "vote") != NULL)
      buf_printf(&line, ", vote %" JSON_INTEGER_FORMAT, explain_number(candidate, "vote"));
    if (explain_word(candidate, "provider")[0])
      buf_printf(&line, " of %s", explain_word(candidate, "provider"));
    if (explain_word(candidate, "stage")[0])
      buf_printf(&line, ", by %s", explain_word(candidate, "stage"));
    if (explain_word(candidate, "text")[0]) {
      buf_puts(&line, ": ");
      buf_str(&line, explain_view(candidate, "text"));
    }
    if (json_object_get(candidate, "line") != NULL)
      buf_printf(&line, " on line %" JSON_INTEGER_FORMAT, explain_number(candidate, "line"));
    pen_line(&s->pen, 1, "candidate %zu: " STR_FMT, i + 1, STR_ARG(buf_view(&line)));
    buf_deinit(&line);
  }
}

void explain_stage(struct story *s, int index, const json_t *stage, const json_t *next) {
  enum judge_stage which = STAGE_COUNT;
  const json_t *errors = json_object_get(stage, "errors");
  size_t i;
  json_t *value;
  (void)judge_stage_from_name(explain_view(stage, "stage"), &which);
  put_stage_head(s, index, stage);
  json_array_foreach(json_object_get(stage, "calls"), i, value) {
    explain_judge_call(s, json_integer_value(value), which);
  }
  if (which == STAGE_PHASE1_TAG) {
    const struct chain_spec spec = explain_spec(s);
    reread_reply(&s->pen, &s->schemas, which, &spec, NULL, spec.agent_text);
  }
  if (explain_word(stage, "extract_stage")[0])
    pen_line(&s->pen, 1, "extract_stage: %s", explain_word(stage, "extract_stage"));
  json_array_foreach(errors, i, value) {
    bool last = i + 1 == json_array_size(errors);
    bool failed = last && strcmp(explain_word(stage, "outcome"), "error") == 0;
    pen_line(&s->pen, 1, "%s: %s", which == STAGE_WHEN && !failed ? "evaluated" : "error",
             json_string_value(value));
  }
  put_doubt(s, stage);
  if (explain_word(stage, "reason")[0])
    pen_line(&s->pen, 1, "reason: %s", explain_word(stage, "reason"));
  explain_person(s, json_object_get(stage, "by"));
  put_why(s, stage, next);
}
