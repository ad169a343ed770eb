/* Builds the schema of a place in the dialect, and the plan of its values. */
#include "adapt/internal.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- constraints in words, for what a dialect does not enforce --- */

__attribute__((format(printf, 2, 3))) static void adapt_words_add(struct adapt_words *words,
                                                                  const char *format, ...) {
  char one[ADAPT_VALUE_BYTES + 128];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(one, sizeof one, format, args);
  va_end(args);
  if (n <= 0 || words->text.n + (size_t)n > ADAPT_WORDS_BYTES)
    return;
  if ((size_t)n >= sizeof one)
    n = (int)utf8_floor(one, sizeof one - 1);
  buf_puts(&words->text, words->count++ ? "; " : "");
  buf_append(&words->text, one, (size_t)n);
}

/* Returns the value as a text to be freed, NULL if it is too long to put into words. */
static char *words_value(const json_t *value) {
  size_t length;
  if (adapt_size(value, ADAPT_VALUE_BYTES) > ADAPT_VALUE_BYTES)
    return NULL;
  char *text = adapt_json_text(value, &length);
  if (length > ADAPT_VALUE_BYTES || memchr(text, '\0', length)) {
    free(text);
    return NULL;
  }
  return text;
}

/* Lists the words before and after the value; without `after` the value is not shown. */
static const struct {
  enum keyword_id id;
  const char *before, *after;
  const char *after_one; /* after the value 1; NULL: the same */
} sentences[] = {
    {K_MINIMUM, "at least ", "", NULL},
    {K_MAXIMUM, "at most ", "", NULL},
    {K_EXCLUSIVE_MINIMUM, "greater than ", "", NULL},
    {K_EXCLUSIVE_MAXIMUM, "less than ", "", NULL},
    {K_MULTIPLE_OF, "a multiple of ", "", NULL},
    {K_MIN_LENGTH, "at least ", " characters", " character"},
    {K_MAX_LENGTH, "at most ", " characters", " character"},
    {K_PATTERN, "matches the regular expression ", "", NULL},
    {K_FORMAT, "format ", "", NULL},
    {K_MIN_ITEMS, "at least ", " items", " item"},
    {K_MAX_ITEMS, "at most ", " items", " item"},
    {K_UNIQUE_ITEMS, "no two items are equal", NULL, NULL},
    {K_CONTAINS, "has an item that matches the JSON Schema ", "", NULL},
    {K_MIN_CONTAINS, "at least ", " such items", " such item"},
    {K_MAX_CONTAINS, "at most ", " such items", " such item"},
    {K_MIN_PROPERTIES, "at least ", " properties", " property"},
    {K_MAX_PROPERTIES, "at most ", " properties", " property"},
    {K_PROPERTY_NAMES, "each property name matches the JSON Schema ", "", NULL},
    {K_DEPENDENT_REQUIRED, "properties that need others: ", "", NULL},
    {K_DEPENDENCIES, "properties that need others: ", "", NULL},
    {K_NOT, "does not match the JSON Schema ", "", NULL},
    {K_CONTENT_ENCODING, "encoded as ", "", NULL},
    {K_CONTENT_MEDIA_TYPE, "holds ", "", NULL},
    {K_CONTENT_SCHEMA, "holds JSON that matches the JSON Schema ", "", NULL},
    {K_ONE_OF, "exactly one alternative applies", NULL, NULL},
    {K_IF, "which alternative applies depends on the JSON Schema ", "", NULL},
};

/* Says the keyword in words and reports it. */
static void adapt_words_keyword(struct adapter *a, struct adapt_words *words,
                                const struct view_word *word, const char *why) {
  const char *name = word->keyword->name;
  if (word->id == K_UNIQUE_ITEMS && !json_is_true(word->value))
    return;
  for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
    if (sentences[i].id != word->id)
      continue;
    char_auto_t *value = sentences[i].after ? words_value(word->value) : NULL;
    size_t before = words->count;
    if (!sentences[i].after)
      adapt_words_add(words, "%s", sentences[i].before);
    else if (value && (word->id == K_PATTERN || word->id == K_FORMAT) &&
             !strpbrk(json_string_value(word->value), "\n\r\t"))
      adapt_words_add(words, "%s%s", sentences[i].before, json_string_value(word->value));
    else if (value && sentences[i].after_one && !strcmp(value, "1"))
      adapt_words_add(words, "%s%s%s", sentences[i].before, value, sentences[i].after_one);
    else if (value)
      adapt_words_add(words, "%s%s%s", sentences[i].before, value, sentences[i].after);
    adapt_changed(a, word->entry, name, NULL,
                  words->count > before ? ADAPT_DESCRIBED : ADAPT_DROPPED, why);
    return;
  }
  adapt_changed(a, word->entry, name, NULL, ADAPT_DROPPED, why);
}

/* Says in words what a value is for, if there is one that is not too long. */
static void words_add_value(struct adapt_words *words, const char *what, const json_t *value) {
  char_auto_t *text = value ? words_value(value) : NULL;
  if (text)
    adapt_words_add(words, "%s: %s", what, text);
}

/* Sets title and description where there are any. Deinits `words`. */
static void adapt_words_put(json_t *schema, const struct adapt_view *view,
                            struct adapt_words *words) {
  buf_auto_t text = {0};
  if (schema) {
    words_add_value(words, "default", view->default_value);
    words_add_value(words, "examples", json_array_size(view->examples) ? view->examples : NULL);
    if (view->title)
      adapt_put(schema, "title", json_string_nocheck(view->title));
  }
  if (view->description)
    buf_puts(&text, view->description);
  if (words->count) {
    buf_puts(&text, view->description && *view->description ? " (" : "(");
    buf_append(&text, words->text.p, words->text.n);
    buf_puts(&text, ")");
  }
  if (schema && text.n)
    adapt_put(schema, "description", json_string_nocheck(text.p));
  buf_deinit(&words->text);
  *words = (struct adapt_words){0};
}

/* --- one value: null, its keywords, enum and const --- */

static json_t *adapt_typed(const char *type) {
  return json_pack("{ss}", "type", type);
}

/* --- null --- */

static bool has_null(const json_t *list, bool types) {
  JSON_EACH(list, i, one) {
    const char *name = json_string_value(types ? one : json_object_get(one, "type"));
    if (name && !strcmp(name, "null"))
      return true;
  }
  return false;
}

/* Turns {"type":"string"} into {"type":["string","null"]}, with null among the enum's values. */
static json_t *null_listed(json_t *schema) {
  json_t *type = json_object_get(schema, "type"), *values = json_object_get(schema, "enum");
  json_t *only = json_object_get(schema, "const");
  json_t *types = json_is_array(type) ? json_clone_top(type) : json_array();
  bool listed = json_is_array(type) && has_null(type, true);
  if (!json_is_array(type))
    json_array_append_new(types, json_incref(type));
  if (!listed)
    json_array_append_new(types, json_string_nocheck("null"));
  json_t *copy = json_clone_top(schema);
  if (values || only) {
    json_t *wider = values ? json_clone_top(values) : json_array();
    if (only)
      json_array_append_new(wider, json_incref(only));
    size_t nulls = 0;
    JSON_EACH(wider, i, one)
      nulls += json_is_null(one);
    if (!nulls)
      json_array_append_new(wider, json_null());
    adapt_put(copy, "enum", wider);
    json_object_del(copy, "const");
  }
  adapt_put(copy, "type", types);
  json_decref(schema);
  return copy;
}

/* `schema` or null; takes it. */
static json_t *adapt_nullable(struct adapter *a, json_t *schema) {
  json_t *type = json_object_get(schema, "type"), *branches = json_object_get(schema, "anyOf");
  const char *name = json_string_value(type);
  if (!schema)
    return adapter_stopped(a) ? NULL : adapt_typed("null");
  if (name && !strcmp(name, "null"))
    return schema;
  bool deep = name && (!strcmp(name, "object") || !strcmp(name, "array"));
  if (type && !deep && adapt_has(a, ADAPT_TYPE_LIST))
    return null_listed(schema);
  if (branches && !type && has_null(branches, false))
    return schema;
  json_t *wider = branches && !type ? json_clone_top(schema) : json_object();
  json_t *list = branches && !type ? json_clone_top(branches) : json_array();
  if (!branches || type)
    json_array_append_new(list, json_incref(schema));
  json_array_append_new(list, adapt_typed("null"));
  adapt_put(wider, "anyOf", list);
  json_decref(schema);
  return wider;
}

/* --- one keyword --- */

/* Returns true if llama.cpp's converter takes the pattern and gets it right. */
static bool pattern_plain(const char *pattern) {
  size_t n = strlen(pattern);
  if (n < 2 || pattern[0] != '^' || pattern[n - 1] != '$' || pattern[n - 2] == '\\')
    return false;
  for (const char *p = pattern + 1; p < pattern + n - 1; p++) {
    if (*p == '\\') {
      if (!strchr(".-+*?^$(){}[]|/\\", p[1]))
        return false;
      p++;
    } else if (*p == '^' && p[-1] != '[') {
      return false;
    } else if (*p == '$' || (*p == '(' && p[1] == '?') || (unsigned char)*p < ' ') {
      return false;
    } else if (*p == '{' && strspn(p + 1, "0123456789,") > 4) {
      return false; /* repetitions that may be over the limit */
    }
  }
  return true;
}

static bool keeps(const struct adapter *a, const struct view_word *word, unsigned types) {
  uint32_t repetitions = a->dialect->limits.repetitions;
  if (!(a->dialect->keeps & KEEP(word->id)) || a->opts->words_only)
    return false;
  switch ((int)word->id) {
  case K_FORMAT:
    return str_among(json_view(word->value), a->dialect->formats);
  case K_PATTERN:
    return !adapt_has(a, ADAPT_GRAMMAR) || pattern_plain(json_string_value(word->value));
  case K_MINIMUM:
  case K_MAXIMUM:
  case K_EXCLUSIVE_MINIMUM:
  case K_EXCLUSIVE_MAXIMUM:
    return !adapt_has(a, ADAPT_GRAMMAR) ||
           ((types & T_NUMBER) == T_INTEGER && json_is_integer(word->value));
  case K_MIN_ITEMS:
    if (adapt_has(a, ADAPT_ITEMS_0_1) && json_number_value(word->value) > 1)
      return false;
    return !repetitions || json_number_value(word->value) <= repetitions;
  case K_MIN_LENGTH:
  case K_MAX_LENGTH:
  case K_MAX_ITEMS:
    return !repetitions || json_number_value(word->value) <= repetitions;
  }
  return true;
}

/* Puts bounds of integers that do not include themselves as ones that do. */
static bool inclusive(struct adapter *a, json_t *schema, const struct view_word *word,
                      unsigned types) {
  bool lower = word->id == K_EXCLUSIVE_MINIMUM;
  const struct keyword *keyword = schema_keyword_find(lower ? "minimum" : "maximum", DIALECT_2020);
  json_int_t bound = json_integer_value(word->value);
  struct view_word other = {lower ? K_MINIMUM : K_MAXIMUM, keyword, word->value, word->entry};
  if ((!lower && word->id != K_EXCLUSIVE_MAXIMUM) || !json_is_integer(word->value) ||
      (types & T_NUMBER) != T_INTEGER || !keeps(a, &other, types) ||
      bound == (lower ? INT64_MAX : INT64_MIN))
    return false;
  bound += lower ? 1 : -1;
  const json_t *known = json_object_get(schema, keyword->name);
  json_t *value = json_integer(bound);
  int order = known && value ? schema_value_compare(value, known) : 0;
  if (!known || (lower ? order > 0 : order < 0))
    adapt_put(schema, keyword->name, value);
  else
    json_decref(value);
  adapt_changed(a, word->entry, word->keyword->name, NULL, ADAPT_REWRITTEN,
                "the bound of an integer, moved by one");
  return true;
}

/* Sets a keyword of values of these types, or says it in words. */
static void adapt_keyword(struct adapter *a, json_t *schema, struct adapt_words *words,
                          const struct view_word *word, unsigned types) {
  unsigned about = adapt_keyword_types(word->id);
  if (!schema || (about && !(about & types)))
    return;
  if (keeps(a, word, types) && !json_object_get(schema, word->keyword->name)) {
    adapt_put(schema, word->keyword->name, json_incref((json_t *)word->value));
  } else if (!inclusive(a, schema, word, types)) {
    const char *why = "the keyword is not supported";
    if (a->opts->words_only)
      why = "only in words, as asked";
    else if (a->dialect->keeps & KEEP(word->id))
      why = "this value of the keyword is not supported";
    adapt_words_keyword(a, words, word, why);
  }
}

/* --- enum and const --- */

/* A single type name says it all */
static bool adapt_single(unsigned types) {
  return types == T_NUMBER || !(types & (types - 1));
}

static const char *type_name(unsigned types) {
  static const struct {
    unsigned types;
    const char *name;
  } names[] = {{T_NULL, "null"},      {T_BOOLEAN, "boolean"}, {T_OBJECT, "object"},
               {T_ARRAY, "array"},    {T_STRING, "string"},   {T_REAL, "number"},
               {T_INTEGER, "integer"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (types & names[i].types)
      return names[i].name;
  return "null";
}

/* Puts "type" for a mask of scalars: a name, or a list of names. */
static void adapt_put_type(json_t *schema, unsigned types) {
  if (adapt_single(types)) {
    adapt_put(schema, "type", json_string_nocheck(type_name(types)));
    return;
  }
  json_t *list = json_array();
  for (unsigned bit = T_STRING; bit <= T_REAL; bit <<= 1)
    if (types & bit && !(bit == T_INTEGER && types & T_REAL))
      json_array_append_new(list, json_string_nocheck(type_name(bit)));
  if (types & T_BOOLEAN)
    json_array_append_new(list, json_string_nocheck("boolean"));
  if (types & T_NULL)
    json_array_append_new(list, json_string_nocheck("null"));
  adapt_put(schema, "type", list);
}

static json_t *scalar_options(struct adapter *a, const struct adapt_view *view, json_t *values,
                              struct adapt_words *words) {
  unsigned types = adapt_types_of(values);
  json_t *schema = json_object();
  adapt_put_type(schema, types);
  if (types == T_NULL)
    return schema;
  if (types == T_BOOLEAN && adapt_has(a, ADAPT_ENUM_TEXTS)) {
    if (json_array_size(values) == 1) {
      adapt_words_add(words, "always %s",
                      json_is_true(json_array_get(values, 0)) ? "true" : "false");
      adapt_changed(a, view->option_entry, view->option_is_const ? "const" : "enum", NULL,
                    ADAPT_DESCRIBED, "only strings and numbers can be enumerated");
    }
    return schema;
  }
  if (view->option_is_const && a->dialect->keeps & KEEP(K_CONST)) {
    adapt_put(schema, "const", json_incref(json_array_get(values, 0)));
    return schema;
  }
  if (view->option_is_const)
    adapt_changed(a, view->option_entry, "const", NULL, ADAPT_REWRITTEN, "an enum of one value");
  adapt_put(schema, "enum", json_incref(values));
  return schema;
}

/* Returns the options with arrays and objects as their JSON text; the list of those is the
 * plan's. */
static json_t *options_as_text(const struct adapt_view *view, json_t **texts) {
  json_t *values = json_array();
  size_t length;
  JSON_EACH(view->options, i, one) {
    if (!json_is_array(one) && !json_is_object(one)) {
      json_array_append_new(values, json_incref(one));
      continue;
    }
    char_auto_t *text = adapt_json_text(one, &length);
    if (!*texts)
      *texts = json_array();
    json_array_append_new(*texts, json_incref(one));
    json_array_append_new(values, json_stringn(text, length));
  }
  return values;
}

static struct built adapt_options_of(struct adapter *a, const struct adapt_view *view,
                                     struct adapt_words *words) {
  json_t *texts = NULL;
  json_t *values = options_as_text(view, &texts), *list = json_array(), *schema;
  json_t *parts[8] = {NULL}; /* by type, where a list of types is not taken */
  unsigned types = adapt_types_of(values);
  size_t part_count = 0;
  bool together = adapt_single(types) || (adapt_has(a, ADAPT_TYPE_LIST) &&
                                          !(adapt_has(a, ADAPT_ENUM_TEXTS) && types & T_BOOLEAN));
  JSON_EACH(values, i, one) {
    unsigned type = adapt_type_of(one), part = 0;
    if (!together && type & T_NUMBER)
      part = 1;
    else if (!together)
      part = type == T_STRING ? 2 : 3 + (type != T_BOOLEAN);
    if (!parts[part]) {
      parts[part] = json_array();
      part_count++;
    }
    json_array_append_new(parts[part], json_incref(one));
  }
  for (size_t part = 0; part < 8; part++)
    if (parts[part]) {
      json_array_append_new(list, scalar_options(a, view, parts[part], words));
      json_decref(parts[part]);
    }
  if (part_count == 1) {
    schema = json_incref(json_array_get(list, 0));
    json_decref(list);
  } else {
    schema = json_object();
    adapt_put(schema, "anyOf", list);
  }
  struct built built = {schema, adapt_plan_new(a, texts ? PLAN_ENUM : PLAN_SAME)};
  if (texts) {
    adapt_changed(a, view->option_entry, view->option_is_const ? "const" : "enum", NULL,
                  ADAPT_REWRITTEN, "arrays and objects as JSON text");
    json_array_append(a->out->kept, texts);
    a->out->plans[built.plan].texts = texts;
  }
  json_decref(texts);
  json_decref(values);
  adapt_words_put(schema, view, words);
  return built;
}

/* --- arrays and tuples --- */

static struct built item_of(struct adapter *a, const struct sum *sum) {
  a->descents++;
  struct built built = adapt_build(a, sum);
  a->descents--;
  return built;
}

/* Sets the keywords that are about values of these types, but for some. */
static void type_words(struct adapter *a, const struct adapt_view *view, json_t *schema,
                       struct adapt_words *words, unsigned types, uint64_t except) {
  for (size_t i = 0; i < view->word_count && !adapter_stopped(a); i++)
    if (adapt_keyword_types(view->words[i].id) & types && !(except & KEEP(view->words[i].id)))
      adapt_keyword(a, schema, words, &view->words[i], types);
}

/* Builds a place where only [] is valid. */
static struct built empty_array(struct adapter *a, const struct adapt_view *view,
                                struct adapt_words *words) {
  struct built built = {NULL, PLAN_NONE};
  uint64_t least = 0;
  if (!adapt_view_count(view, K_MIN_ITEMS, &least) || least == 0) {
    built = (struct built){adapt_typed("array"), adapt_plan_new(a, PLAN_SAME)};
    adapt_put(built.schema, "items", adapt_typed("null"));
    uint32_t entry = view->flat.count ? view->flat.items[0].entry : 0;
    if (a->dialect->keeps & KEEP(K_MAX_ITEMS)) {
      adapt_put(built.schema, "maxItems", json_integer(0));
      adapt_changed(a, entry, "items", NULL, ADAPT_REWRITTEN, "no items: at most 0");
    } else {
      adapt_words_add(words, "always empty");
      adapt_changed(a, entry, "items", NULL, ADAPT_DESCRIBED, "the keyword is not supported");
    }
  }
  return built;
}

static struct built array_list(struct adapter *a, const struct adapt_view *view,
                               struct adapt_words *words) {
  uint64_t most = 1;
  if (view->items_closed || (adapt_view_count(view, K_MAX_ITEMS, &most) && most == 0))
    return empty_array(a, view, words);
  struct built item = item_of(a, &view->items);
  if (!item.schema)
    return adapter_stopped(a) ? item : empty_array(a, view, words);
  bool same = adapt_plan_same(a, item.plan);
  struct built built = {adapt_typed("array"), adapt_plan_new(a, same ? PLAN_SAME : PLAN_ARRAY)};
  adapt_put(built.schema, "items", item.schema);
  a->out->plans[built.plan].rest = item.plan;
  type_words(a, view, built.schema, words, T_ARRAY, 0);
  return built;
}

struct adapt_tuple {
  uint32_t count; /* positions that can be there */
  uint64_t least; /* how many of them must be */
  bool closed;    /* nothing beyond */
};

/* Returns false if no array has enough items. */
static bool tuple_measure(const struct adapt_view *view, struct built *items,
                          struct adapt_tuple *tuple) {
  uint64_t most;
  tuple->count = view->prefix_count;
  tuple->least = 0;
  adapt_view_count(view, K_MIN_ITEMS, &tuple->least);
  tuple->closed = view->items_closed || (view->items_open && tuple->least <= tuple->count);
  for (uint32_t i = 0; i < tuple->count; i++)
    if (!items[i].schema) {
      tuple->count = i;
      tuple->closed = true;
    }
  if (adapt_view_count(view, K_MAX_ITEMS, &most) && most <= tuple->count) {
    tuple->count = (uint32_t)most;
    tuple->closed = true;
  }
  return tuple->least <= tuple->count || !tuple->closed;
}

/* Builds {"type":"array","prefixItems":[...]}, if it means the same in the dialect. */
static struct built tuple_native(struct adapter *a, const struct adapt_view *view,
                                 struct built *items, const struct adapt_tuple *tuple,
                                 struct adapt_words *words) {
  struct built built = {adapt_typed("array"), PLAN_NONE};
  json_t *list = json_array();
  for (uint32_t i = 0; i < tuple->count; i++)
    json_array_append_new(list, json_incref(items[i].schema));
  adapt_put(built.schema, "prefixItems", list);
  if (adapt_has(a, ADAPT_GRAMMAR)) { /* its tuples have one length, but it takes no `false` */
    adapt_put(built.schema, "minItems", json_integer(tuple->count));
    adapt_put(built.schema, "maxItems", json_integer(tuple->count));
  } else if (view->items_closed || tuple->count < view->prefix_count) {
    adapt_put(built.schema, "items", json_false());
  }
  built.plan = adapt_plan_new(a, PLAN_SAME);
  type_words(a, view, built.schema, words, T_ARRAY,
             adapt_has(a, ADAPT_GRAMMAR) ? KEEP(K_MIN_ITEMS) | KEEP(K_MAX_ITEMS) : 0);
  return built;
}

static void tuple_rest(struct adapter *a, const struct adapt_view *view,
                       const struct adapt_tuple *tuple, json_t *properties, json_t *required,
                       struct adapt_plan *plan) {
  struct built item = item_of(a, &view->items);
  if (!item.schema)
    return;
  json_t *rest = adapt_typed("array");
  adapt_put(rest, "items", item.schema);
  uint64_t most;
  if (adapt_view_count(view, K_MAX_ITEMS, &most) && a->dialect->keeps & KEEP(K_MAX_ITEMS) &&
      !a->opts->words_only)
    adapt_put(rest, "maxItems", json_integer((json_int_t)(most - tuple->count)));
  adapt_put(properties, "rest", rest);
  json_array_append_new(required, json_string_nocheck("rest"));
  plan->extra = "rest";
  plan->rest = item.plan;
}

static struct built tuple_object(struct adapter *a, const struct adapt_view *view,
                                 struct built *items, const struct adapt_tuple *tuple,
                                 struct adapt_words *words) {
  struct built built = {NULL, adapt_plan_new(a, PLAN_TUPLE)};
  json_t *properties = json_object(), *required = json_array();
  struct adapt_plan plan = {.kind = PLAN_TUPLE, .count = tuple->count, .rest = PLAN_NONE};
  bool loose = false;
  plan.members = arena_array(&a->out->arena, tuple->count + 1, sizeof *plan.members);
  for (uint32_t i = 0; i < tuple->count; i++) {
    char name[32];
    int n = snprintf(name, sizeof name, "item_%u", (unsigned)i);
    struct plan_member *member = &plan.members[i];
    member->name = arena_strndup(&a->out->arena, name, (size_t)n);
    member->plan = items[i].plan;
    member->optional = i >= tuple->least;
    member->null_absent = member->optional && !adapt_sum_accepts(a, &view->prefix[i], json_null());
    loose = loose || member->optional;
    if (member->optional && !member->null_absent)
      adapt_changed(a, view->prefix_entry, "prefixItems", NULL, ADAPT_NARROWED,
                    "null is a value here, so the position cannot be left out");
    json_t *schema = json_incref(items[i].schema);
    adapt_put(properties, name, member->optional ? adapt_nullable(a, schema) : schema);
    json_array_append_new(required, json_string_nocheck(name));
  }
  if (!tuple->closed)
    tuple_rest(a, view, tuple, properties, required, &plan);
  built.schema = adapt_closed_object(a, properties, required);
  a->out->plans[built.plan] = plan;
  adapt_changed(a, view->prefix_entry, "prefixItems", NULL, ADAPT_REWRITTEN,
                "positions are properties");
  if (loose)
    adapt_changed(a, view->prefix_entry, "prefixItems", NULL, ADAPT_DROPPED,
                  "that only the last positions can be left out is not enforced");
  for (size_t i = 0; i < view->word_count && !adapter_stopped(a); i++) {
    const struct view_word *word = &view->words[i];
    bool met =
        (word->id == K_MIN_ITEMS && tuple->least <= tuple->count) ||
        (word->id == K_MAX_ITEMS && (tuple->closed || a->dialect->keeps & KEEP(K_MAX_ITEMS)));
    if (adapt_keyword_types(word->id) == T_ARRAY && !met)
      adapt_words_keyword(a, words, word, "positions are properties");
  }
  return built;
}

static struct built adapt_array_of(struct adapter *a, const struct adapt_view *view,
                                   struct adapt_words *words) {
  struct built built = {NULL, PLAN_NONE};
  if (!view->prefix_count)
    return array_list(a, view, words);
  struct built *items = arena_array(&a->out->arena, view->prefix_count, sizeof *items);
  bool same = true;
  for (uint32_t i = 0; i < view->prefix_count && !adapter_stopped(a); i++) {
    items[i] = item_of(a, &view->prefix[i]);
    same = same && (!items[i].schema || adapt_plan_same(a, items[i].plan));
  }
  struct adapt_tuple tuple;
  if (!adapter_stopped(a) && tuple_measure(view, items, &tuple)) {
    bool exact = tuple.count == view->prefix_count && tuple.closed && tuple.least >= tuple.count &&
                 view->items_closed;
    if (tuple.count == 0)
      built = empty_array(a, view, words);
    else if (same && a->dialect->keeps & KEEP(K_PREFIX_ITEMS) && tuple.closed &&
             (!adapt_has(a, ADAPT_GRAMMAR) || exact))
      built = tuple_native(a, view, items, &tuple, words);
    else
      built = tuple_object(a, view, items, &tuple, words);
    if (built.schema && view->items_open && tuple.count == view->prefix_count)
      adapt_changed(a, view->prefix_entry, "items", NULL, ADAPT_NARROWED,
                    "items beyond the named positions cannot be given");
  }
  for (uint32_t i = 0; i < view->prefix_count; i++)
    json_decref(items[i].schema);
  return built;
}

/* --- objects: named properties, and those that have no name in the schema --- */

struct object_build {
  struct adapter *a;
  const struct adapt_view *view;
  struct adapt_words *words;
  json_t *schema, *properties, *required, *ordering; /* owned */
  json_t *additional;                                /* owned; additionalProperties, or NULL */
  struct plan_member *members;
  uint32_t member_count;
  bool changed; /* a value of the object is not the same in both shapes */
};

static void put_property(struct object_build *o, const char *name, json_t *schema, bool required) {
  adapt_put(o->properties, name, schema);
  json_array_append_new(o->ordering, json_string_nocheck(name));
  if (required)
    json_array_append_new(o->required, json_string_nocheck(name));
}

/* Returns false if there can be no such object. */
static bool property_of(struct object_build *o, const struct view_property *property) {
  struct adapter *a = o->a;
  size_t recursions = a->recursions;
  struct built built = item_of(a, &property->sum);
  if (!built.schema)
    return !property->required;
  struct plan_member *member = &o->members[o->member_count++];
  *member = (struct plan_member){
      .name = property->name, .plan = built.plan, .optional = !property->required};
  bool required = property->required;
  if (!required && adapt_has(a, ADAPT_ALL_REQUIRED)) {
    bool value = adapt_sum_accepts(a, &property->sum, json_null());
    member->null_absent = !value;
    required = true;
    built.schema = adapt_nullable(a, built.schema);
    if (value)
      adapt_changed(a, property->entry, "required", property->name, ADAPT_NARROWED,
                    "null is a value here, so the property cannot be left out");
    else
      adapt_changed(a, property->entry, "required", property->name, ADAPT_REWRITTEN,
                    "null stands for left out");
  } else if (required && a->dialect->recursion == RECURSION_OPTIONAL &&
             a->recursions > recursions) {
    required = false;
    adapt_changed(a, property->entry, "required", NULL, ADAPT_DROPPED,
                  "recursion is taken only below properties that are not required");
  }
  o->changed = o->changed || member->null_absent || !adapt_plan_same(a, built.plan);
  put_property(o, property->name, built.schema, required);
  return true;
}

enum {
  COMPARED_MAX = 1000, /* JSON values of an alternative that is looked for among the others */
  INLINE_MAX = 500,    /* JSON values of a definition that is copied to get its own description */
  NAME_BYTES_MAX = 56, /* the most of a definition's name */
  PRODUCT_MAX = 64     /* several alternatives of one place, multiplied out */
};

/* Joins a list of schemas, which it takes. A single one stands for itself, and gets title and
 * description if it has none. */
static struct built sums_join(struct adapter *a, json_t *list, const struct plan_branch *branches,
                              const struct adapt_view *view, struct adapt_words *words) {
  size_t count = json_array_size(list);
  struct built built = {NULL, PLAN_NONE};
  bool same = true;
  if (count == 1) {
    json_t *only = json_array_get(list, 0);
    built = (struct built){json_clone_top(only), branches[0].plan};
    if (!json_object_get(only, "$ref") && !json_object_get(only, "description"))
      adapt_words_put(built.schema, view, words);
  } else if (count > 1) {
    for (size_t i = 0; i < count; i++)
      same = same && adapt_plan_same(a, branches[i].plan);
    built = (struct built){json_object(), adapt_plan_new(a, same ? PLAN_SAME : PLAN_UNION)};
    adapt_put(built.schema, "anyOf", json_incref(list));
    if (!same) {
      struct plan_branch *copy = arena_array(&a->out->arena, count, sizeof *copy);
      memcpy(copy, branches, count * sizeof *copy);
      for (size_t i = 0; i < count; i++)
        json_array_append(a->out->kept, copy[i].shape);
      a->out->plans[built.plan].branches = copy;
      a->out->plans[built.plan].count = (uint32_t)count;
    }
    adapt_words_put(built.schema, view, words);
  }
  buf_deinit(&words->text);
  json_decref(list);
  return built;
}

/* A choice between several sums; `branches` gives each its place in the mapping. Writes the words
 * too. */
static struct built adapt_union(struct adapter *a, const struct sum *sums, size_t count,
                                const struct adapt_view *view, struct adapt_words *words) {
  struct plan_branch *branches = arena_array(&a->out->arena, count + 1, sizeof *branches);
  json_t *list = json_array();
  for (size_t i = 0; i < count && !adapter_stopped(a); i++) {
    struct built built = adapt_build(a, &sums[i]);
    size_t at = json_array_size(list), k = 0;
    if (!built.schema)
      continue;
    bool comparable =
        adapt_plan_same(a, built.plan) && adapt_size(built.schema, COMPARED_MAX) <= COMPARED_MAX;
    while (comparable && k < at && !json_same(json_array_get(list, k), built.schema))
      k++;
    if (!comparable || k == at) {
      branches[at] = (struct plan_branch){built.plan, sums[i], built.schema, NODE_NONE};
      json_array_append_new(list, json_incref(built.schema));
    }
    json_decref(built.schema);
  }
  return sums_join(a, list, branches, view, words);
}

/* Builds the schema of values whose properties have no name of their own. */
static struct built extra_value(struct object_build *o) {
  struct adapter *a = o->a;
  const struct adapt_view *view = o->view, silent = {0};
  struct built built = {NULL, PLAN_NONE};
  struct adapt_words words = {0};
  bool rest = view->extra.count > 0 && !view->extra.never && !view->extra_closed;
  a->descents++;
  if (view->pattern_count) {
    uint32_t count = view->pattern_count;
    struct sum *sums = arena_array(&a->out->arena, count + 1, sizeof *sums);
    memcpy(sums, view->patterns, count * sizeof *sums);
    if (rest)
      sums[count++] = view->extra;
    built = adapt_union(a, sums, count, &silent, &words);
  } else {
    built = adapt_build(a, &view->extra);
  }
  a->descents--;
  buf_deinit(&words.text);
  return built;
}

/* Returns the only pattern that names must match, if the dialect takes patterns; else NULL. */
static const char *key_pattern(const struct object_build *o) {
  const struct adapter *a = o->a;
  if (o->view->pattern_count != 1 || !o->view->extra_closed ||
      !(a->dialect->keeps & KEEP(K_PATTERN)) || a->opts->words_only)
    return NULL;
  for (uint32_t i = 0; i < o->view->flat.count; i++) {
    const json_t *schema = a->out->canonical->entries[o->view->flat.items[i].entry].schema;
    json_t *list = json_object_get(schema, "patternProperties");
    if (json_object_size(list) == 1)
      return json_object_iter_key(json_object_iter(list));
  }
  return NULL;
}

/* Builds a list of {"key","value"} objects; takes `value`. */
static json_t *pairs_of(struct object_build *o, json_t *value) {
  json_t *key = json_pack("{ss ss*}", "type", "string", "pattern", key_pattern(o));
  return json_pack("{ss s{ss s{so so} s[ss] sb}}", "type", "array", "items", "type", "object",
                   "properties", "key", key, "value", value, "required", "key", "value",
                   "additionalProperties", 0);
}

static void pattern_words(struct object_build *o) {
  for (uint32_t i = 0; i < o->view->flat.count; i++) {
    uint32_t entry = o->view->flat.items[i].entry;
    const json_t *list =
        json_object_get(o->a->out->canonical->entries[entry].schema, "patternProperties");
    for (void *at = json_object_iter((json_t *)list); at;
         at = json_object_iter_next((json_t *)list, at))
      adapt_words_add(o->words, "names match the regular expression %s", json_object_iter_key(at));
    static const char *const concerned[] = {"patternProperties", "additionalProperties",
                                            "unevaluatedProperties"};
    for (size_t k = 0; k < 3; k++)
      if (json_object_get(o->a->out->canonical->entries[entry].schema, concerned[k]))
        adapt_changed(o->a, entry, concerned[k], NULL, ADAPT_DESCRIBED,
                      "which names there may be is not enforced");
  }
}

enum extra { EXTRA_NONE, EXTRA_NATIVE, EXTRA_PAIRS, EXTRA_ONLY_PAIRS };

static enum extra extra_kind(const struct object_build *o) {
  const struct adapt_view *view = o->view;
  bool some = view->pattern_count || (!view->extra_closed && view->extra.count);
  if (!some && !(view->extra_open && !view->property_count))
    return EXTRA_NONE;
  if (o->a->dialect->keeps & KEEP(K_ADDITIONAL_PROPERTIES))
    return EXTRA_NATIVE;
  /* beside an array, a bare list of pairs could not be told from one */
  return view->property_count || view->types & T_ARRAY ? EXTRA_PAIRS : EXTRA_ONLY_PAIRS;
}

/* Turns counts of properties into counts of pairs, where pairs are all there is. */
static void count_pairs(struct object_build *o, json_t *pairs) {
  for (size_t i = 0; i < o->view->word_count; i++) {
    struct view_word word = o->view->words[i];
    if (word.id != K_MIN_PROPERTIES && word.id != K_MAX_PROPERTIES)
      continue;
    bool least = word.id == K_MIN_PROPERTIES;
    struct view_word items = {least ? K_MIN_ITEMS : K_MAX_ITEMS,
                              schema_keyword_find(least ? "minItems" : "maxItems", DIALECT_2020),
                              word.value, word.entry};
    size_t before = json_object_size(pairs);
    struct adapt_words none = {0};
    adapt_keyword(o->a, pairs, &none, &items, T_ARRAY);
    buf_deinit(&none.text);
    if (json_object_size(pairs) == before)
      adapt_words_keyword(o->a, o->words, &word, "the keyword is not supported");
    else
      adapt_changed(o->a, word.entry, word.keyword->name, NULL, ADAPT_DESCRIBED,
                    "counts the pairs: a name that stands twice counts twice");
  }
}

static struct built only_pairs(struct object_build *o, struct built value) {
  struct adapter *a = o->a;
  json_t *pairs = pairs_of(o, value.schema);
  struct built built = {pairs, adapt_plan_new(a, PLAN_PAIRS)};
  a->out->plans[built.plan].rest = value.plan;
  count_pairs(o, pairs);
  adapt_words_add(o->words, "a list of the names and values of an object");
  adapt_changed(a, o->view->extra_entry, "additionalProperties", NULL, ADAPT_REWRITTEN,
                "names and values as a list of pairs");
  return built;
}

/* Adds unnamed members to an object that has named ones. */
static void extras(struct object_build *o, enum extra kind, struct adapt_plan *plan) {
  struct adapter *a = o->a;
  const struct adapt_view *view = o->view;
  if (kind == EXTRA_NONE) {
    if (adapt_has(a, ADAPT_CLOSED) || view->extra_closed)
      o->additional = json_false();
    if (adapt_has(a, ADAPT_CLOSED) && view->extra_open)
      adapt_changed(a, view->flat.count ? view->flat.items[0].entry : 0, "additionalProperties",
                    NULL, ADAPT_NARROWED, "properties that are not named cannot be given");
    return;
  }
  bool any = kind == EXTRA_NATIVE && !view->pattern_count && !view->extra.count;
  struct built value = any ? (struct built){json_true(), PLAN_NONE} : extra_value(o);
  if (!value.schema) {
    o->additional = json_false();
  } else if (kind == EXTRA_NATIVE) {
    o->additional = value.schema;
    plan->rest = value.plan;
    o->changed = o->changed || (value.plan != PLAN_NONE && !adapt_plan_same(a, value.plan));
  } else {
    char name[64] = "additional_properties";
    for (unsigned i = 2; json_object_get(o->properties, name); i++)
      print_into(name, sizeof name, "additional_properties_%u", i);
    plan->extra = arena_strdup(&o->a->out->arena, name);
    plan->rest = value.plan;
    o->changed = true;
    put_property(o, plan->extra, pairs_of(o, value.schema), true);
    o->additional = json_false();
    adapt_changed(a, view->extra_entry, "additionalProperties", NULL, ADAPT_REWRITTEN,
                  "names and values as a list of pairs, in one more property");
  }
}

/* Finishes the object. Consumes `o`. */
static struct built object_finish(struct object_build *o, const struct adapt_plan *plan) {
  struct adapter *a = o->a;
  bool required = adapt_has(a, ADAPT_ALL_REQUIRED) || json_array_size(o->required) > 0;
  bool same = !o->changed && !adapt_has(a, ADAPT_CLOSED);
  struct built built = {o->schema, adapt_plan_new(a, same ? PLAN_SAME : PLAN_OBJECT)};
  if (json_object_size(o->properties) || adapt_has(a, ADAPT_CLOSED))
    adapt_put(o->schema, "properties", json_incref(o->properties));
  if (required)
    adapt_put(o->schema, "required", json_incref(o->required));
  if (o->additional)
    adapt_put(o->schema, "additionalProperties", o->additional);
  if (adapt_has(a, ADAPT_ORDERING) && json_object_size(o->properties))
    adapt_put(o->schema, "propertyOrdering", json_incref(o->ordering));
  if (!same) {
    struct adapt_plan *to = &a->out->plans[built.plan];
    *to = *plan;
    to->members = o->members;
    to->count = o->member_count;
  }
  json_decref(o->properties);
  json_decref(o->required);
  json_decref(o->ordering);
  return built;
}

/* Leaves title and description to the caller. */
static struct built adapt_object_of(struct adapter *a, const struct adapt_view *view,
                                    struct adapt_words *words) {
  struct built none = {NULL, PLAN_NONE};
  struct object_build o = {.a = a, .view = view, .words = words};
  enum extra kind = extra_kind(&o);
  if (view->pattern_count && view->extra_open)
    adapt_changed(a, view->extra_entry, "additionalProperties", NULL, ADAPT_NARROWED,
                  "values whose names match no pattern are of the same kind as the others");
  if (view->pattern_count && (kind == EXTRA_NATIVE || !key_pattern(&o)))
    pattern_words(&o);
  if (kind == EXTRA_ONLY_PAIRS) {
    struct built value = extra_value(&o);
    for (size_t i = 0; i < view->word_count; i++)
      if (adapt_keyword_types(view->words[i].id) == T_OBJECT &&
          view->words[i].id != K_MIN_PROPERTIES && view->words[i].id != K_MAX_PROPERTIES)
        adapt_words_keyword(a, words, &view->words[i], "the keyword is not supported");
    if (value.schema)
      return only_pairs(&o, value);
    if (adapter_stopped(a))
      return none;
    kind = EXTRA_NONE; /* no member is possible */
  }
  o.members = arena_array(&a->out->arena, view->property_count + 1, sizeof *o.members);
  struct adapt_plan plan = {.kind = PLAN_OBJECT, .rest = PLAN_NONE};
  o.schema = json_object();
  o.properties = json_object();
  o.required = json_array();
  o.ordering = json_array();
  adapt_put(o.schema, "type", json_string_nocheck("object"));
  bool possible = true;
  for (size_t i = 0; i < view->property_count && possible && !adapter_stopped(a); i++)
    possible = property_of(&o, &view->properties[i]);
  if (possible && !adapter_stopped(a))
    extras(&o, kind, &plan);
  if (possible)
    type_words(a, view, o.schema, words, T_OBJECT, 0);
  struct built built = object_finish(&o, &plan);
  if (!possible) {
    json_decref(built.schema);
    built = none;
  }
  return built;
}

/* --- places --- */

uint32_t adapt_plan_new(struct adapter *a, enum plan_kind kind) {
  struct adapted *out = a->out;
  out->plans = xgrow(out->plans, &out->plan_capacity, out->plan_count + 1, sizeof *out->plans);
  out->plans[out->plan_count] = (struct adapt_plan){.kind = kind, .rest = PLAN_NONE};
  return (uint32_t)out->plan_count++;
}

/* --- alternatives --- */

static struct built build_groups(struct adapter *a, const struct adapt_view *view,
                                 struct adapt_words *words) {
  struct built none = {NULL, PLAN_NONE};
  size_t product = 1, groups = view->group_count;
  const size_t most = groups == 1 ? ADAPT_BRANCHES_MAX : PRODUCT_MAX;
  bool bare = !view->typed && !view->word_count && !view->property_count && !view->pattern_count &&
              view->extra_open && view->items_open && !view->items_closed && !view->prefix_count &&
              !view->extra.count;
  for (size_t g = 0; g < groups; g++) {
    const struct view_group *group = &view->groups[g];
    if (product * group->count > most) {
      adapt_fail(a, ADAPT_TOO_COMPLEX, group->entry, group->keyword,
                 "more than %zu combinations of alternatives", most);
      return none;
    }
    product *= group->count;
    if (strcmp(group->keyword, "anyOf") == 0)
      continue;
    const json_t *schema = a->out->canonical->entries[group->entry].schema;
    const struct keyword *keyword = schema_keyword_find(group->keyword, 7);
    const struct view_word word = {(enum keyword_id)keyword->id, keyword,
                                   json_object_get(schema, group->keyword), group->entry};
    if (word.id != K_ONE_OF)
      adapt_words_keyword(a, words, &word, "an anyOf: which one applies is not enforced");
    else if (group->count > 1)
      adapt_words_keyword(a, words, &word, "an anyOf: that only one applies is not enforced");
  }
  struct sum *sums = arena_array(&a->out->arena, product, sizeof *sums);
  memset(sums, 0, product * sizeof *sums);
  for (size_t i = 0; i < product; i++) {
    struct sum *sum = &sums[i];
    for (uint32_t k = 0; !bare && k < view->flat.count; k++)
      if (!adapt_sum_add(a, sum, view->flat.items[k].entry, ITEM_PLAIN))
        return none;
    for (size_t g = 0, rest = i; g < groups; rest /= view->groups[g].count, g++) {
      const struct sum *branch = &view->groups[g].branches[rest % view->groups[g].count];
      sum->never = sum->never || branch->never;
      for (uint32_t k = 0; k < branch->count; k++)
        if (!adapt_sum_add(a, sum, branch->items[k].entry, branch->items[k].flags))
          return none;
    }
  }
  return adapt_union(a, sums, product, view, words);
}

/* --- types --- */

/* Builds a place that takes any value. `own` says that the entry is the place itself, not the one
 * that holds it. */
static struct built any_value(struct adapter *a, uint32_t entry, bool own,
                              struct adapt_words *words) {
  if (!adapt_has(a, ADAPT_FREE)) {
    adapt_words_add(words, "any JSON value, written as JSON text");
    adapt_changed(a, entry, own ? "type" : "", NULL, ADAPT_REWRITTEN, "any value, as JSON text");
    return (struct built){adapt_typed("string"), adapt_plan_new(a, PLAN_TEXT)};
  }
  json_t *schema =
      json_pack("{s[ssssss]}", "type", "object", "array", "string", "number", "boolean", "null");
  return (struct built){schema, adapt_plan_new(a, PLAN_SAME)};
}

/* Builds the types one by one, each with its own words. */
static struct built build_parts(struct adapter *a, const struct sum *sum,
                                const struct adapt_view *view, struct adapt_words *words) {
  unsigned scalars = view->types & (T_STRING | T_NUMBER | T_BOOLEAN), parts[5];
  struct plan_branch branches[5];
  json_t *list = json_array();
  size_t count = 0, built_count = 0;
  if (view->types & T_OBJECT)
    parts[count++] = T_OBJECT;
  if (view->types & T_ARRAY)
    parts[count++] = T_ARRAY;
  if (scalars && (adapt_has(a, ADAPT_TYPE_LIST) || adapt_single(scalars))) {
    parts[count++] = scalars;
  } else if (scalars) {
    const unsigned each[] = {T_STRING, scalars & T_NUMBER, T_BOOLEAN};
    for (size_t i = 0; i < 3; i++)
      if (scalars & each[i])
        parts[count++] = each[i];
  }
  for (size_t i = 0; i < count && !adapter_stopped(a); i++) {
    struct adapt_words own = {0};
    struct built built;
    if (parts[i] == T_OBJECT) {
      built = adapt_object_of(a, view, &own);
    } else if (parts[i] == T_ARRAY) {
      built = adapt_array_of(a, view, &own);
    } else {
      built = (struct built){json_object(), adapt_plan_new(a, PLAN_SAME)};
      adapt_put_type(built.schema, parts[i]);
      type_words(a, view, built.schema, &own, parts[i], 0);
    }
    if (!built.schema) {
      buf_deinit(&own.text);
      continue;
    }
    if (own.count || count > 1) {
      const struct adapt_view silent = {0};
      if (count == 1) {
        if (words->count && own.text.n > 0)
          buf_puts(&words->text, "; ");
        buf_str(&words->text, buf_view(&own.text));
        words->count += own.count;
        buf_deinit(&own.text);
      } else {
        adapt_words_put(built.schema, &silent, &own);
      }
    }
    branches[built_count++] = (struct plan_branch){built.plan, *sum, built.schema, NODE_NONE};
    json_array_append_new(list, built.schema);
  }
  return sums_join(a, list, branches, view, words);
}

/* Returns the first entry or, for a `true`, which has no place of its own, the schema that holds
 * it. */
static uint32_t first_entry(const struct adapter *a, const struct adapt_view *view) {
  return view->flat.count ? view->flat.items[0].entry : a->place;
}

static struct built build_types(struct adapter *a, const struct sum *sum,
                                const struct adapt_view *view, struct adapt_words *words) {
  struct built built = {NULL, PLAN_NONE};
  for (size_t i = 0; i < view->word_count; i++) /* about values of any type */
    if (!adapt_keyword_types(view->words[i].id))
      adapt_words_keyword(a, words, &view->words[i], "the keyword is not supported");
  if (view->types == T_ALL &&
      (!view->typed || (view->word_count == 0 && !view->property_count && view->items_open &&
                        !view->items_closed && !view->prefix_count && view->extra_open))) {
    built = any_value(a, first_entry(a, view), view->flat.count > 0, words);
    adapt_words_put(built.schema, view, words);
    return built;
  }
  if (!view->typed)
    adapt_changed(a, first_entry(a, view), "type", NULL, ADAPT_NARROWED,
                  "no type is given: taken to be what the keywords are about");
  if (view->types & ~(unsigned)T_NULL)
    built = build_parts(a, sum, view, words);
  if (view->types & T_NULL && !adapter_stopped(a)) {
    bool only = !built.schema;
    built.schema = adapt_nullable(a, built.schema);
    if (only) {
      built.plan = adapt_plan_new(a, PLAN_SAME);
      adapt_words_put(built.schema, view, words);
    }
  }
  buf_deinit(&words->text);
  return built;
}

/* --- places --- */

/* Returns a new name of letters, digits, '_' and '-'. */
static const char *name_new(struct adapter *a, uint32_t entry) {
  const struct schema *s = a->out->canonical;
  const char *suffix = s->entries[entry].suffix, *last = strrchr(suffix, '/');
  char name[NAME_BYTES_MAX + 16];
  size_t n = 0;
  uint32_t taken = 1;
  for (const char *p = last ? last + 1 : ""; *p && n < NAME_BYTES_MAX; p++) {
    bool plain = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z');
    name[n++] = plain || *p == '-' ? *p : '_';
  }
  if (n == 0)
    n = (size_t)snprintf(name, sizeof name, "root");
  name[n] = '\0';
  for (unsigned i = 2; !map_add(&a->names, &a->out->arena, str_from(name), &taken); i++)
    snprintf(name + n, sizeof name - n, "_%u", i);
  return arena_strdup(&a->out->arena, name);
}

static json_t *reference_to(struct adapter *a, uint32_t unit) {
  char reference[NAME_BYTES_MAX + 32];
  if (!a->units[unit].name) {
    const struct sum *sum = &a->units[unit].sum;
    a->units[unit].name = name_new(a, sum->count ? sum->items[sum->count - 1].entry : 0);
  }
  snprintf(reference, sizeof reference, "#/$defs/%s", a->units[unit].name);
  return json_pack("{ss}", "$ref", reference);
}

static uint32_t unit_of(struct adapter *a, const struct sum *sum);

/* Builds a place that is a reference: it stays one unless it adds something of its own. */
static struct built build_reference(struct adapter *a, const struct adapt_view *view,
                                    struct adapt_words *words) {
  struct sum target = {0};
  struct built built = {NULL, PLAN_NONE};
  if (!adapt_sum_add(a, &target, view->reference, 0))
    return built;
  uint32_t index = unit_of(a, &target);
  if (index == UINT32_MAX || a->units[index].state == UNIT_NEVER)
    return built;
  built.plan = a->units[index].plan;
  bool done = a->units[index].state == UNIT_DONE;
  if (done && json_object_get(a->units[index].schema, "$ref")) {
    built.schema = json_incref(a->units[index].schema);
  } else if (done && (view->description || view->default_value) &&
             a->units[index].size <= INLINE_MAX) {
    built.schema = json_clone_top(a->units[index].schema);
    const char *below = json_string_value(json_object_get(built.schema, "description"));
    struct adapt_view own = *view;
    if (!own.description)
      own.description = below;
    adapt_words_put(built.schema, &own, words);
  } else {
    built.schema = reference_to(a, index);
  }
  return built;
}

static struct built build_view(struct adapter *a, const struct sum *sum) {
  struct built built = {NULL, PLAN_NONE};
  struct adapt_view view;
  struct adapt_words words = {0};
  if (!adapt_view(a, sum, &view) || view.never)
    return built;
  if (view.reference != NODE_NONE)
    built = build_reference(a, &view, &words);
  else if (view.options)
    built = json_array_size(view.options) ? adapt_options_of(a, &view, &words) : built;
  else if (view.group_count)
    built = build_groups(a, &view, &words);
  else
    built = build_types(a, sum, &view, &words);
  buf_deinit(&words.text);
  return built;
}

static struct str sum_key(const struct sum *sum) {
  return (struct str){sum->count ? (const char *)sum->items : "", sum->count * sizeof *sum->items};
}

/* Returns the unit of the sum and builds it if need be; UINT32_MAX after a failure. */
static uint32_t unit_of(struct adapter *a, const struct sum *sum) {
  uint32_t index, entry = sum->count ? sum->items[sum->count - 1].entry : NODE_NONE;
  if (adapter_stopped(a))
    return UINT32_MAX;
  if (map_get(&a->known, sum_key(sum), &index)) {
    struct unit *unit = &a->units[index];
    a->size += unit->size;
    if (a->size > ADAPT_SIZE_MAX)
      adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "", "the adapted schema would be too large");
    if (unit->state != UNIT_OPEN)
      return adapter_stopped(a) ? UINT32_MAX : index;
    a->recursions++;
    if (unit->descents == a->descents)
      adapt_fail(a, ADAPT_UNSUPPORTED, a->place, "$ref", "the schema refers to itself in place");
    else if (a->dialect->recursion == RECURSION_NONE)
      adapt_fail(a, ADAPT_UNSUPPORTED, a->place, "$ref",
                 "the schema refers to itself, and %s takes no recursive schemas",
                 a->dialect->name);
    return adapter_stopped(a) ? UINT32_MAX : index;
  }
  if (a->depth >= ADAPT_DEPTH_MAX) {
    adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "", "subschemas are nested more than %d levels deep",
               (int)ADAPT_DEPTH_MAX);
    return UINT32_MAX;
  }
  if (a->unit_count >= ADAPT_UNITS_MAX) {
    adapt_fail(a, ADAPT_TOO_COMPLEX, NODE_NONE, "", "too many subschemas");
    return UINT32_MAX;
  }
  a->units = xgrow(a->units, &a->unit_capacity, a->unit_count + 1, sizeof *a->units);
  index = (uint32_t)a->unit_count++;
  map_put(&a->known, &a->out->arena, sum_key(sum), index);
  a->units[index] = (struct unit){.sum = *sum,
                                  .state = UNIT_OPEN,
                                  .plan = adapt_plan_new(a, PLAN_OPEN),
                                  .descents = a->descents};
  uint32_t place = a->place;
  if (sum->count)
    a->place = sum->items[0].entry;
  a->depth++;
  struct built built = build_view(a, sum);
  a->depth--;
  a->place = place;
  struct unit *unit = &a->units[index]; /* they may have moved */
  unit->schema = built.schema;
  unit->state = built.schema ? UNIT_DONE : UNIT_NEVER;
  if (adapter_stopped(a))
    return UINT32_MAX;
  unit->size = adapt_size(built.schema, ADAPT_SIZE_MAX);
  if (unit->size > ADAPT_SIZE_MAX) {
    adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "", "the adapted schema would be too large");
    return UINT32_MAX;
  }
  if (built.plan != PLAN_NONE && a->out->plans[built.plan].kind == PLAN_OPEN)
    unit->plan = built.plan; /* that of a place further up */
  else if (built.plan != PLAN_NONE)
    a->out->plans[unit->plan] = a->out->plans[built.plan];
  return index;
}

struct built adapt_build(struct adapter *a, const struct sum *sum) {
  struct built built = {NULL, PLAN_NONE};
  if (sum->never)
    return built;
  uint32_t index = unit_of(a, sum);
  if (index == UINT32_MAX || a->units[index].state == UNIT_NEVER)
    return built;
  built.plan = a->units[index].plan;
  if (a->units[index].state == UNIT_OPEN)
    built.schema = reference_to(a, index);
  else
    built.schema = json_incref(a->units[index].schema);
  return built;
}
