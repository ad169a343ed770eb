/* Explains how a movement got its value. */
#include "audit/explain_internal.h"
#include "base/log.h"
#include "format/json_write.h"

#include <string.h>

static const char *check_words(const char *outcome) {
  static const struct {
    const char *outcome, *words;
  } table[] = {
      {"valid", "it passes"},
      {"parse", "no value could be read in it"},
      {"schema", "the schema refuses the value"},
      {"invariant", "an invariant does not hold"},
      {"refused", "the model refused to answer"},
      {"length", "it was cut at its length limit"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (strcmp(table[i].outcome, outcome) == 0)
      return table[i].words;
  return "";
}

static void put_errors(struct story *s, const json_t *errors) {
  size_t i;
  json_t *error;
  json_array_foreach(errors, i, error) {
    pen_line(&s->pen, 1, "error: %s%s%s",
             json_object_get(error, "offset") ? "" : explain_word(error, "path"),
             json_object_get(error, "offset") ? "" : ": ", explain_word(error, "message"));
  }
}

void explain_check(struct story *s, const json_t *check) {
  size_t i;
  json_t *name;
  pen_title(&s->pen, "check %" JSON_INTEGER_FORMAT "  %s  call %" JSON_INTEGER_FORMAT "  %s",
            explain_number(check, "number"), explain_word(check, "outcome"),
            explain_number(check, "call"), check_words(explain_word(check, "outcome")));
  if (explain_word(check, "extract_stage")[0])
    pen_line(&s->pen, 1, "extract_stage: %s", explain_word(check, "extract_stage"));
  json_array_foreach(json_object_get(check, "repairs"), i, name) {
    pen_line(&s->pen, 1, "repaired: %s", json_string_value(name));
  }
  put_errors(s, json_object_get(check, "errors"));
  if (explain_number(check, "errors_dropped") > 0)
    pen_line(&s->pen, 1, "and %" JSON_INTEGER_FORMAT " more",
             explain_number(check, "errors_dropped"));
}

void explain_value(struct story *s, const json_t *record) {
  const json_t *value = json_object_get(record, "value");
  const char *kind;
  json_t *count;
  struct buf line = {0};
  bool found = strcmp(explain_word(record, "outcome"), "value") == 0;
  buf_printf(&line, "%s%s  %" JSON_INTEGER_FORMAT " attempt%s",
             found ? "value" : "no value: ", found ? "" : explain_word(record, "outcome"),
             explain_number(record, "attempts"),
             explain_number(record, "attempts") == 1 ? "" : "s");
  if (json_is_true(json_object_get(record, "first_pass")))
    buf_puts(&line, "  first pass");
  const char *before = "  failed: ";
  json_object_foreach(json_object_get(record, "failures"), kind, count) {
    buf_printf(&line, "%s%s %" JSON_INTEGER_FORMAT, before, kind, json_integer_value(count));
    before = ", ";
  }
  pen_title(&s->pen, "%s", line.p);
  buf_deinit(&line);
  if (explain_word(record, "message")[0])
    pen_line(&s->pen, 1, "%s: %s", explain_word(record, "reason"), explain_word(record, "message"));
  if (value != NULL) {
    struct buf text = {0};
    json_write(value, &text);
    pen_text(&s->pen, buf_view(&text));
    buf_deinit(&text);
  }
}
