/* Compiles the schemas of judges' answers once, and narrows them to the numbers that a call
 * offers. */
#include "base/buf.h"
#include "base/resource.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "judge/chain.h"

static struct schema *compile_resource(const char *name, json_t **doc, struct err *err) {
  const struct resource *r = resource_find(name);
  *doc = r ? json_loadb(r->p, r->n, 0, NULL) : NULL;
  struct schema *schema = *doc ? schema_compile(*doc, NULL, NULL, NULL) : NULL;
  if (schema == NULL)
    (void)err_set(err, ERR_INVALID, "the built-in %s does not compile", name);
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
  if (schemas->judgment)
    schema_free(schemas->judgment);
  if (schemas->evaluation)
    schema_free(schemas->evaluation);
  schema_free(schemas->invariant);
  json_decref(schemas->invariant_doc);
  json_decref(schemas->judgment_doc);
  json_decref(schemas->evaluation_doc);
  json_decref(schemas->narrowed);
  *schemas = (struct chain_schemas){0};
}

static void append_number(struct buf *out, int number) {
  char digits[STR_NUMBER_BYTES];
  size_t n = str_from_number(digits, number);
  buf_putc(out, ' ');
  buf_append(out, digits, n);
}

json_t *chain_call_schema(const struct chain_spec *spec, enum judge_stage stage) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  if (stage != STAGE_STRUCTURED_OUTPUT && stage != STAGE_AI_JUDGE)
    return NULL;
  bool ai = stage == STAGE_AI_JUDGE;
  size_t n = chain_offered(spec, offered);
  struct buf key = {0};
  buf_puts(&key, judge_stage_name(stage));
  for (size_t i = 0; i < n; i++)
    append_number(&key, offered[i]->number);
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
  buf_deinit(&key);
  return doc;
}
