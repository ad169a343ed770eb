/* Reads a judge's reply as a single answer, or says in words why it is not one. */
#include "judge/parse_reply.h"

#include <assert.h>

static bool parsed_reply_check_valid(void *ctx, const json_t *value) {
  const struct parsed_reply_check *reader = ctx;
  return schema_valid(reader->schema, value);
}

static int parsed_reply_check_nearness(void *ctx, const json_t *value) {
  const struct parsed_reply_check *reader = ctx;
  return (json_object_get(value, reader->key) != NULL) + (json_object_get(value, "reason") != NULL);
}

static bool parsed_reply_check_key(void *ctx, const char *key, size_t n) {
  const struct parsed_reply_check *reader = ctx;
  struct str name = {key, n};
  return str_eq_c(name, reader->key) || str_eq_c(name, "reason");
}

static bool parsed_reply_check_echo(void *ctx, const json_t *value) {
  (void)ctx;
  return json_is_object(json_object_get(value, "properties"));
}

struct extract_check parsed_reply_extract_check(struct parsed_reply_check *reader) {
  return (struct extract_check){reader, parsed_reply_check_valid, parsed_reply_check_nearness,
                                parsed_reply_check_echo, parsed_reply_check_key};
}

static const char *why_missing(const struct whole_reply *sole, struct str text) {
  switch (sole->outcome) {
  case WHOLE_REPLY_AMBIGUOUS:
    if (sole->duplicate_key)
      return "a key of the answer was given twice";
    return "two values in the reply name different rules";
  case WHOLE_REPLY_ECHO:
    return "the value in the reply stands in the report, too";
  case WHOLE_REPLY_WORDS:
    return "the reply is more than its JSON: give the JSON alone";
  case WHOLE_REPLY_PLACEHOLDER:
    return "the reply leaves the form unfilled";
  case WHOLE_REPLY_BROKEN:
    if (sole->code == EXTRACT_ERR_TRUNCATED)
      return "the JSON in the reply is cut off";
    if (sole->code == EXTRACT_ERR_DRAFT)
      return "a broken or refused piece follows the JSON in the reply";
    return "the JSON in the reply is broken";
  case WHOLE_REPLY_REFUSED:
    return "the reply repeats the schema";
  case WHOLE_REPLY_VALID:
  case WHOLE_REPLY_NOTHING:
    break;
  }
  return str_trim(text).n == 0 ? "the reply is empty" : "no JSON in the reply";
}

void parsed_reply_init(struct parsed_reply *r, const struct schema *schema, const char *key,
                       const json_t *structured, struct str text, struct str report) {
  assert(schema != NULL);
  assert(key != NULL);
  *r = (struct parsed_reply){.missing = ""};
  if (structured != NULL && whole_reply_placeholder(structured)) {
    r->missing = "the value leaves the form unfilled";
  } else if (structured != NULL) {
    r->value = json_incref((json_t *)structured);
    r->where = "native";
    r->native = true;
  } else {
    struct parsed_reply_check reader = {schema, key};
    const struct extract_check check = parsed_reply_extract_check(&reader);
    whole_reply_read(&r->sole, (struct str){text.p ? text.p : "", text.n}, &check, report);
    bool schema_itself =
        r->sole.outcome == WHOLE_REPLY_REFUSED && parsed_reply_check_echo(&reader, r->sole.value);
    r->value = schema_itself ? NULL : json_incref(r->sole.value);
    r->ambiguous = r->sole.outcome == WHOLE_REPLY_AMBIGUOUS || r->sole.outcome == WHOLE_REPLY_ECHO;
    if (r->sole.stage != EXTRACT_NONE)
      r->where = extract_stage_name(r->sole.stage);
    if (r->value == NULL)
      r->missing = why_missing(&r->sole, text);
  }
  if (r->value != NULL)
    r->valid = schema_check(schema, r->value, &r->errors) == SCHEMA_OK;
}

void parsed_reply_deinit(struct parsed_reply *r) {
  json_decref(r->value);
  schema_errors_deinit(&r->errors);
  whole_reply_deinit(&r->sole);
  *r = (struct parsed_reply){0};
}
