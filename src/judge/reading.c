#include "judge/reading.h"

#include "base/log.h"
#include "structured/extract.h"

struct reader {
  const struct schema *schema;
  const char *key;
};

static bool check_valid(void *ctx, const json_t *value) {
  const struct reader *reader = ctx;
  return schema_valid(reader->schema, value);
}

static int check_nearness(void *ctx, const json_t *value) {
  const struct reader *reader = ctx;
  return (json_object_get(value, reader->key) != NULL) + (json_object_get(value, "reason") != NULL);
}

static bool check_echo(void *ctx, const json_t *value) {
  (void)ctx;
  return json_is_object(json_object_get(value, "properties"));
}

void reading_init(struct reading *r, const struct schema *schema, const char *key,
                  const json_t *structured, struct str text) {
  *r = (struct reading){.missing = "no JSON in the reply"};
  if (structured != NULL) {
    r->value = json_incref((json_t *)structured);
    r->where = "native";
  } else {
    struct reader reader = {schema, key};
    struct extract_check check = {&reader, check_valid, check_nearness, check_echo};
    struct extract_opts opts = {.want = EXTRACT_WANT_OBJECT, .check = &check, .whole = true};
    struct extract_result found;
    enum extract_status status = extract(text.p ? text.p : "", text.n, &opts, &found);
    if (status == EXTRACT_OUT_OF_MEMORY)
      BUG("out of memory while reading a judge's reply");
    if (status == EXTRACT_OK && found.value != NULL) {
      r->value = json_incref(found.value);
      r->where = extract_stage_name(found.stage);
    } else if (str_trim(text).n == 0) {
      r->missing = "the reply is empty";
    } else if (found.error.code == EXTRACT_ERR_TRUNCATED) {
      r->missing = "the JSON in the reply is cut off";
    } else if (found.error.code == EXTRACT_ERR_SYNTAX) {
      r->missing = "the JSON in the reply is broken";
    }
    extract_result_deinit(&found);
  }
  if (r->value != NULL)
    r->valid = schema_check(schema, r->value, &r->errors) == SCHEMA_OK;
}

void reading_deinit(struct reading *r) {
  json_decref(r->value);
  schema_errors_deinit(&r->errors);
  *r = (struct reading){0};
}
