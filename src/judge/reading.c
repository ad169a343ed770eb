/* Reads a judge's reply as a single answer, or says in words why it is not one. */
#include "judge/reading.h"

#include <assert.h>

struct reading_check {
  const struct schema *schema;
  const char *key;
};

static bool reading_check_valid(void *ctx, const json_t *value) {
  const struct reading_check *reader = ctx;
  return schema_valid(reader->schema, value);
}

static int reading_check_nearness(void *ctx, const json_t *value) {
  const struct reading_check *reader = ctx;
  return (json_object_get(value, reader->key) != NULL) + (json_object_get(value, "reason") != NULL);
}

static bool reading_check_key(void *ctx, const char *key, size_t n) {
  const struct reading_check *reader = ctx;
  struct str name = {key, n};
  return str_eq_c(name, reader->key) || str_eq_c(name, "reason");
}

static bool reading_check_echo(void *ctx, const json_t *value) {
  (void)ctx;
  return json_is_object(json_object_get(value, "properties"));
}

static const char *why_broken(enum extract_code code) {
  if (code == EXTRACT_ERR_TRUNCATED)
    return "the JSON in the reply is cut off";
  if (code == EXTRACT_ERR_DRAFT)
    return "a broken or refused piece follows the JSON in the reply";
  return "the JSON in the reply is broken";
}

static const char *why_missing(const struct sole *sole, struct str text) {
  switch (sole->outcome) {
  case SOLE_AMBIGUOUS:
    if (sole->duplicate_key)
      return "a key of the answer was given twice";
    return "two values in the reply name different rules";
  case SOLE_ECHO:
    return "the value in the reply stands in the report, too";
  case SOLE_MENTION:
    return "the reply mentions a value in its words and gives none";
  case SOLE_PLACEHOLDER:
    return "the reply leaves the form unfilled";
  case SOLE_BROKEN:
    return why_broken(sole->code);
  case SOLE_REFUSED:
    return "the reply repeats the schema";
  case SOLE_VALID:
    return "the reply hands over somebody else's value, not one of its own";
  case SOLE_NOTHING:
    break;
  }
  return str_trim(text).n == 0 ? "the reply is empty" : "no JSON in the reply";
}

void reading_init(struct reading *r, const struct schema *schema, const char *key,
                  const json_t *structured, struct str text, struct str report) {
  assert(schema != NULL);
  assert(key != NULL);
  *r = (struct reading){.missing = ""};
  if (structured != NULL && sole_placeholder(structured)) {
    r->missing = "the value leaves the form unfilled";
  } else if (structured != NULL) {
    r->value = json_incref((json_t *)structured);
    r->where = "native";
    r->native = true;
  } else {
    struct reading_check reader = {schema, key};
    const struct extract_check check = {&reader, reading_check_valid, reading_check_nearness,
                                        reading_check_echo, reading_check_key};
    sole_read(&r->sole, (struct str){text.p ? text.p : "", text.n}, &check, report);
    bool schema_itself =
        r->sole.outcome == SOLE_REFUSED && reading_check_echo(&reader, r->sole.value);
    bool theirs = r->sole.outcome == SOLE_VALID && r->sole.foreign;
    r->value = schema_itself || theirs ? NULL : json_incref(r->sole.value);
    r->ambiguous = r->sole.outcome == SOLE_AMBIGUOUS || r->sole.outcome == SOLE_ECHO;
    if (r->value != NULL)
      r->where = extract_stage_name(r->sole.stage);
    else
      r->missing = why_missing(&r->sole, text);
  }
  if (r->value != NULL)
    r->valid = schema_check(schema, r->value, &r->errors) == SCHEMA_OK;
}

void reading_deinit(struct reading *r) {
  json_decref(r->value);
  schema_errors_deinit(&r->errors);
  sole_deinit(&r->sole);
  *r = (struct reading){0};
}
