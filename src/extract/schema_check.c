/* Tells which value is the answer to a schema. */
#include "extract/schema_check.h"

#include "base/str.h"
#include "base/utf8.h"
#include "extract/internal.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <string.h>

enum { REF_HOPS = 8, LABEL_WORK = 1000000000 }; /* comparisons */

/* Follows references inside the document by plain member names; escapes (~0, ~1) are not worth it
 * here. */
const json_t *extract_schema_root(const json_t *doc) {
  const json_t *at = doc;
  for (int hop = 0; hop < REF_HOPS; hop++) {
    const char *ref = json_string_value(json_object_get(at, "$ref"));
    if (ref == NULL || strncmp(ref, LIT("#/")) != 0)
      return at;
    const json_t *found = doc;
    for (const char *part = ref + 2; found != NULL && *part;) {
      size_t n = strcspn(part, "/");
      found = json_object_getn(found, part, n);
      part += n + (part[n] == '/');
    }
    if (found == NULL)
      return at;
    at = found;
  }
  return at;
}

/* Returns the kind of words that the character at text[i] is part of: 0 none, 1 those with spaces
 * between them, 2 those without (Chinese, Japanese), which end where one of the others begins. */
static int word_kind(struct str text, size_t i) {
  uint32_t c;
  if (!jscan_word_byte(text.p[i]) || utf8_decode(text.p + i, text.n - i, &c) == 0)
    return 0;
  bool sign = (c >= 0x2000 && c < 0x2c00) || (c >= 0x3000 && c < 0x3040) ||
              (c >= 0xff00 && c < 0xff10) || (c >= 0xff1a && c < 0xff21) ||
              (c >= 0xff3b && c < 0xff41) || (c >= 0xff5b && c < 0xff66) || c == 0xab || c == 0xbb;
  return sign ? 0 : 1 + (c >= 0x2e80 && c < 0xff00);
}

/* Returns whether no word goes on at text[i]. */
static bool word_border(struct str text, size_t i) {
  size_t before = i > 0 ? i - 1 : 0;
  while (before > 0 && utf8_is_tail(text.p[before]))
    before--;
  if (i == 0 || i == text.n)
    return true;
  int kind = word_kind(text, before);
  return kind == 0 || kind != word_kind(text, i);
}

/* Returns the length of the label at text[i]; 0 if it is not there as words of its own. */
static size_t label_at(struct str text, size_t i, const json_t *label) {
  size_t n = json_string_length(label);
  bool here = n > 0 && text.n - i >= n && memcmp(text.p + i, json_string_value(label), n) == 0 &&
              word_border(text, i) && word_border(text, i + n);
  return here ? n : 0;
}

bool extract_label(const json_t *doc, struct str text, const json_t **label) {
  const json_t *root = extract_schema_root(doc), *only = json_object_get(root, "const");
  json_auto_t *labels = only ? json_pack("[O]", only) : json_incref(json_object_get(root, "enum"));
  text = extract_behind_reasoning(text);
  *label = NULL;
  if (json_array_size(labels) > LABEL_WORK / (text.n + 1))
    return false;
  for (size_t i = 0, step; i < text.n; i += step) {
    const json_t *found = NULL;
    size_t longest = 0;
    for (size_t k = 0; k < json_array_size(labels); k++) {
      size_t n = label_at(text, i, json_array_get(labels, k));
      found = n > longest ? json_array_get(labels, k) : found;
      longest = n > longest ? n : longest;
    }
    step = longest ? longest : 1;
    if (found && *label && found != *label)
      return false;
    *label = found ? found : *label;
  }
  return *label != NULL;
}

static bool schema_check_passes(void *ctx, const json_t *value) {
  return schema_valid(((const struct extract_schema *)ctx)->schema, value);
}

static int nearness(void *ctx, const json_t *value) {
  const json_t *schema = extract_schema_root(((const struct extract_schema *)ctx)->doc);
  const json_t *required = json_object_get(schema, "required");
  int shared = 0;
  size_t i;
  const char *key;
  json_t *item;
  json_array_foreach(required, i, item)
    shared += json_is_string(item) && json_object_get(value, json_string_value(item)) != NULL;
  if (json_array_size(required) == 0)
    json_object_foreach(json_object_get(schema, "properties"), key, item) {
      shared += json_object_get(value, key) != NULL;
    }
  return shared;
}

bool extract_schema_key(const json_t *doc, const char *name, size_t n) {
  const json_t *schema = extract_schema_root(doc), *required = json_object_get(schema, "required");
  JSON_EACH(required, i, item)
    if (json_string_length(item) == n && memcmp(json_string_value(item), name, n) == 0)
      return true;
  return json_array_size(required) == 0 &&
         json_object_getn(json_object_get(schema, "properties"), name, n) != NULL;
}

static bool schema_check_key(void *ctx, const char *name, size_t n) {
  return extract_schema_key(((const struct extract_schema *)ctx)->doc, name, n);
}

static bool is_echo(void *ctx, const json_t *value) {
  const json_t *doc = ((const struct extract_schema *)ctx)->doc;
  if (json_same(doc, value))
    return true;
  if (!json_is_object(value) || json_object_size(value) != json_object_size(doc) ||
      !schema_has_known_keyword(value))
    return false;
  JSON_MEMBERS((json_t *)value, key, item)
    if (json_object_get(doc, key) == NULL)
      return false;
  struct schema *schema = schema_compile(value, NULL, NULL, NULL);
  schema_free(schema);
  return schema != NULL;
}

struct extract_check extract_schema_check(struct extract_schema *asked) {
  return (struct extract_check){asked, schema_check_passes, nearness, is_echo, schema_check_key};
}

enum extract_want extract_schema_want(const json_t *doc) {
  static const char *const others[] = {"type",  "enum",  "const", "items",      "prefixItems",
                                       "allOf", "anyOf", "oneOf", "$dynamicRef"};
  const json_t *schema = extract_schema_root(doc);
  const char *type = json_string_value(json_object_get(schema, "type"));
  if (type != NULL) {
    enum extract_want want = EXTRACT_WANT_ANY;
    (void)extract_want_parse(type, &want);
    return want;
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (json_object_get(schema, others[i]) != NULL)
      return EXTRACT_WANT_ANY;
  bool members =
      json_object_get(schema, "properties") != NULL || json_object_get(schema, "required") != NULL;
  return members ? EXTRACT_WANT_OBJECT : EXTRACT_WANT_ANY;
}
