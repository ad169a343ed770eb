/* Builds what concerns one value: null, its keywords, enum and const. */
#include "adapt/internal.h"

#include "format/json_value.h"

#include <string.h>

json_t *adapt_typed(const char *type) {
  json_t *schema = json_object();
  adapt_put(schema, "type", json_string_nocheck(type));
  return schema;
}

/* --- null --- */

static bool has_null(const json_t *list, bool types) {
  const json_t *one;
  size_t i;
  json_array_foreach((json_t *)list, i, one) {
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
    size_t i, nulls = 0;
    const json_t *one;
    json_array_foreach(wider, i, one) {
      nulls += json_is_null(one);
    }
    if (!nulls)
      json_array_append_new(wider, json_null());
    adapt_put(copy, "enum", wider);
    json_object_del(copy, "const");
  }
  adapt_put(copy, "type", types);
  json_decref(schema);
  return copy;
}

json_t *adapt_nullable(struct adapter *a, json_t *schema) {
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

static bool format_kept(const struct adapter *a, const char *format) {
  for (const char *const *p = a->dialect->formats; *p; p++)
    if (!strcmp(*p, format))
      return true;
  return false;
}

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
  if (!(a->dialect->keeps & KEEP(word->id)))
    return false;
  if (a->opts->words_only)
    return false;
  switch ((int)word->id) {
  case K_FORMAT:
    return format_kept(a, json_string_value(word->value));
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

static const char *why_not(const struct adapter *a, enum keyword_id id) {
  if (a->opts->words_only)
    return "only in words, as asked";
  if (a->dialect->keeps & KEEP(id))
    return "this value of the keyword is not supported";
  return "the keyword is not supported";
}

void adapt_keyword(struct adapter *a, json_t *schema, struct adapt_words *words,
                   const struct view_word *word, unsigned types) {
  unsigned about = adapt_keyword_types(word->id);
  if (!schema || (about && !(about & types)))
    return;
  if (keeps(a, word, types) && !json_object_get(schema, word->keyword->name))
    adapt_put(schema, word->keyword->name, json_incref((json_t *)word->value));
  else if (!inclusive(a, schema, word, types))
    adapt_words_keyword(a, words, word, why_not(a, word->id));
}

/* --- enum and const --- */

bool adapt_single(unsigned types) {
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
void adapt_put_type(json_t *schema, unsigned types) {
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
  unsigned types = 0;
  json_t *schema = json_object();
  const json_t *one;
  size_t i;
  json_array_foreach(values, i, one) {
    types |= adapt_type_of(one);
  }
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
  json_t *values = json_array(), *one;
  size_t i, length;
  json_array_foreach(view->options, i, one) {
    if (!json_is_array(one) && !json_is_object(one)) {
      json_array_append_new(values, json_incref(one));
      continue;
    }
    char *text = adapt_json_text(one, &length);
    if (!*texts)
      *texts = json_array();
    json_array_append_new(*texts, json_incref(one));
    json_array_append_new(values, json_stringn(text, length));
    free(text);
  }
  return values;
}

static unsigned part_of(unsigned type) {
  if (type & T_NUMBER)
    return 1;
  if (type == T_STRING)
    return 2;
  return type == T_BOOLEAN ? 3 : 4;
}

struct built adapt_options_of(struct adapter *a, const struct adapt_view *view,
                              struct adapt_words *words) {
  json_t *texts = NULL;
  json_t *values = options_as_text(view, &texts), *list = json_array(), *one, *schema;
  json_t *parts[8] = {NULL}; /* by type, where a list of types is not taken */
  unsigned types = 0;
  size_t i, part_count = 0;
  json_array_foreach(values, i, one) {
    types |= adapt_type_of(one);
  }
  bool together = adapt_single(types) || (adapt_has(a, ADAPT_TYPE_LIST) &&
                                          !(adapt_has(a, ADAPT_ENUM_TEXTS) && types & T_BOOLEAN));
  json_array_foreach(values, i, one) {
    unsigned type = adapt_type_of(one);
    unsigned part = together ? 0 : part_of(type);
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
    adapt_keep(a, texts);
    a->out->plans[built.plan].texts = texts;
  }
  json_decref(texts);
  json_decref(values);
  adapt_words_put(schema, view, words);
  return built;
}
