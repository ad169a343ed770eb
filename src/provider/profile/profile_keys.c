/* Checks a profile's YAML by the JSON Schema of profiles: each error has its place and what to
 * write. */
#include "provider/profile/profile_keys.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "core/call.h"
#include "format/json_object.h"
#include "format/pointer.h"
#include "provider/profile/profile.h"
#include "schema/pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A key, and what the schema says of its value. */
struct profile_key {
  const char *name;
  const json_t *schema;
};

struct check {
  const char *file;
  struct err_list *errors;
  bool ok;
  const json_t *defs; /* of the schema */
};

typedef void check_fn(struct check *c, const struct yaml_node *node, const struct profile_key *key);
static check_fn check_key;

PRINTF_LIKE(3, 4)
static void profile_check_wrong(struct check *c, const struct yaml_node *at, const char *fmt, ...) {
  char text[512];
  struct err err;
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  err_set_at(&err, ERR_FILE, c->file, at->line, at->column, "%s", text);
  err_list_add(c->errors, &err);
  c->ok = false;
}

static bool is_scalar(const struct yaml_node *node) {
  return node->kind != YAML_LIST && node->kind != YAML_MAP;
}

static bool is_line(const struct yaml_node *node) {
  return is_scalar(node) && node->kind != YAML_NULL && node->text.n > 0 &&
         memchr(node->text.p, '\n', node->text.n) == NULL;
}

/* `name` must be `what`. */
static void check_wrong_kind(struct check *c, const struct yaml_node *node, const char *name,
                             const char *what) {
  profile_check_wrong(c, node, "%s must be %s, not %s", name, what, yaml_kind_name(node->kind));
}

static void check_line(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  if (!is_line(node))
    check_wrong_kind(c, node, key->name, "a text of one line");
}

static void check_word(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  buf_auto_t list = {0};
  const json_t *words = json_object_get(key->schema, "enum");
  JSON_EACH(words, i, word) {
    if (is_scalar(node) && str_eq(node->text, json_view(word)))
      return;
    if (i > 0)
      buf_puts(&list, i + 1 < json_array_size(words) ? ", " : " or ");
    buf_str(&list, json_view(word));
  }
  profile_check_wrong(c, node, "%s must be %s", key->name, buf_c(&list));
}

/* Checks placeholders: a misspelt one would pass as a word and be found much later. */
static void check_placeholders(struct check *c, const struct yaml_node *node) {
  static const char *const known[] = {
      "model",  "session", "new_session", "schema", "schema_file", "prompt_file", "max_turns",
      "tools",  "effort",  "cwd",         "tmpdir", "permission",  "args",        "judge",
      "report", "run",     "runs",        "fork",   "server",      "servers",     NULL};
  struct str text = node->text;
  for (size_t i = 0; i + 1 < text.n; i++) {
    size_t from = i + 1 + (text.p[i + 1] == '?'), to = from;
    if (text.p[i] != '{')
      continue;
    while (to < text.n && ((text.p[to] >= 'a' && text.p[to] <= 'z') || text.p[to] == '_'))
      to++;
    if (to == from || to == text.n || text.p[to] != '}')
      continue; /* JSON, for one */
    struct str name = {text.p + from, to - from};
    if (!str_is_one(name, known)) {
      const char *near = str_nearest(name, known);
      profile_check_wrong(c, node, "there is no placeholder {" STR_FMT "}%s%s%s", STR_ARG(name),
                          near ? ": did you mean {" : "", near ? near : "", near ? "}?" : "");
    }
  }
}

static void check_argv(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  static const struct profile_key group = {"a group", NULL};
  if (node->count > LIMIT_ARGV_COUNT)
    profile_check_wrong(c, node, "%s has too many words: the limit is %u", key->name,
                        LIMIT_ARGV_COUNT);
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (item->kind == YAML_LIST && key != &group)
      check_argv(c, item, &group);
    else if (!is_scalar(item) || item->kind == YAML_NULL)
      profile_check_wrong(c, item, "a word of %s must be a text, not %s", key->name,
                          yaml_kind_name(item->kind));
    else
      check_placeholders(c, item);
  }
}

static void profile_check_variable(struct check *c, const struct yaml_node *node,
                                   const struct profile_key *key) {
  if (!is_scalar(node) || !str_is_variable(node->text))
    profile_check_wrong(c, node, "%s takes names of variables only", key->name);
}

static void check_texts(struct check *c, const struct yaml_node *node,
                        const struct profile_key *key_of_all) {
  const char *name = key_of_all->name;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key, *value = node->pairs[i].value;
    bool files = strcmp(name, "files") == 0;
    if (files && (memchr(key->text.p, '/', key->text.n) != NULL || key->text.p[0] == '.'))
      profile_check_wrong(c, key, "a file's name must not contain / or begin with a dot");
    else if (strcmp(name, "set") == 0 && !str_is_variable(key->text))
      profile_check_wrong(c, key, "this is not a name of a variable");
    if (!is_scalar(value) || value->kind == YAML_NULL)
      profile_check_wrong(c, value, "it must be a text, not %s: write quotes around it",
                          yaml_kind_name(value->kind));
    else
      check_placeholders(c, value);
  }
}

static void check_pointer(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  if (!is_scalar(node) || node->kind == YAML_NULL || !pointer_valid(node->text))
    profile_check_wrong(c, node, "%s must be a JSON Pointer, such as /message/text", key->name);
}

static void check_path(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  bool ok = is_line(node) && node->text.p[0] != '/' && node->text.p[node->text.n - 1] != '/' &&
            node->text.n < LIMIT_NAME_BYTES * 2;
  for (struct str rest = node->text; ok && rest.n > 0;) {
    struct str step = str_cut(&rest, '/');
    ok = step.n > 0 && !str_eq_c(step, "..") && !str_eq_c(step, ".");
  }
  if (!ok)
    profile_check_wrong(c, node, "%s must be a path below the project: no / in front, no .. in it",
                        key->name);
}

static void profile_check_list(struct check *c, const struct yaml_node *node,
                               const struct profile_key *key) {
  const json_t *most = json_object_get(key->schema, "maxItems");
  const struct profile_key item = {key->name, json_object_get(key->schema, "items")};
  if (most != NULL && (json_int_t)node->count > json_integer_value(most))
    profile_check_wrong(c, node, "%s has too many entries: the limit is %lld", key->name,
                        (long long)json_integer_value(most));
  for (size_t i = 0; i < node->count; i++)
    check_key(c, node->items[i], &item);
}

static void profile_check_value(struct check *c, const struct yaml_node *node,
                                const struct profile_key *key) {
  if (node->kind == YAML_LIST && node->count > 0)
    profile_check_list(c, node,
                       &(struct profile_key){key->name, json_object_get(c->defs, "pointers")});
  else if (node->kind == YAML_LIST)
    profile_check_wrong(c, node, "%s must name a place", key->name);
  else if (is_scalar(node) && node->text.n > 0 && node->text.p[0] == '/')
    check_pointer(c, node, key);
  else
    check_line(c, node, key);
}

static void profile_check_regex(struct check *c, const struct yaml_node *node, struct str text) {
  struct pattern *pattern = NULL;
  struct pattern_error error = {0};
  if (!is_scalar(node) || pattern_compile(text.p, text.n, &pattern, &error) != PATTERN_OK)
    profile_check_wrong(c, node, "this is not a regular expression: %s",
                        error.text[0] ? error.text : "it must be a text");
  pattern_free(pattern);
}

static void profile_check_pattern(struct check *c, const struct yaml_node *node,
                                  const struct profile_key *key) {
  (void)key;
  profile_check_regex(c, node, node->text);
}

static void check_matches(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key_of_all) {
  static const struct profile_key place = {"what must stand somewhere", NULL};
  (void)key_of_all;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key, *value = node->pairs[i].value;
    check_pointer(c, key, &place);
    if (value->kind == YAML_MAP)
      profile_check_wrong(c, value, "it must be a value or a list of values");
    else if (value->kind == YAML_TEXT && value->text.n > 1 && value->text.p[0] == '~')
      profile_check_regex(c, value, (struct str){value->text.p + 1, value->text.n - 1});
  }
}

static void check_class(struct check *c, const struct yaml_node *node,
                        const struct profile_key *key) {
  enum error_class class;
  (void)key;
  if (!is_scalar(node) || !error_class_from_name(node->text, &class) || class == CLASS_NONE)
    check_word(c, node, &(struct profile_key){"an error class", json_object_get(c->defs, "class")});
}

static void check_classes(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  long number;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *word = node->pairs[i].key;
    if (strcmp(key->name, "exits") == 0 &&
        (!str_to_long(word->text, &number) || number < 0 || number > 255))
      profile_check_wrong(c, word, "an exit status is a number from 0 to 255");
    check_class(c, node->pairs[i].value, key);
  }
}

static void check_integer(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  json_int_t min = json_int_at(key->schema, "minimum"), max = json_int_at(key->schema, "maximum");
  if (node->kind != YAML_INTEGER || node->integer < min || node->integer > max)
    profile_check_wrong(c, node, "%s must be an integer from %lld to %lld", key->name,
                        (long long)min, (long long)max);
}

static void check_bool(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  if (node->kind != YAML_BOOL)
    profile_check_wrong(c, node, "%s must be true or false", key->name);
}

static void check_set(struct check *c, const struct yaml_node *node, const char *what,
                      const json_t *set) {
  const json_t *schema = NULL, *name;
  const char *key;
  size_t i;
  if (node->kind != YAML_MAP) {
    check_wrong_kind(c, node, what, "a map");
    return;
  }
  for (i = 0; i < node->count; i++) {
    struct str given = node->pairs[i].key->text;
    const char *names[64] = {NULL};
    size_t n = 0;
    bool known = false;
    json_object_foreach(json_object_get(set, "properties"), key, schema) {
      names[n++] = key;
      known = str_eq_c(given, key);
      if (known)
        break;
    }
    bool drops = node->pairs[i].value->kind == YAML_NULL && yaml_get(node, "extends") != NULL;
    if (known && !drops)
      check_key(c, node->pairs[i].value, &(struct profile_key){key, schema});
    else if (!known)
      profile_check_wrong(c, node->pairs[i].key, "%s has no key \"" STR_FMT "\"%s", what,
                          STR_ARG(given), str_hint(given, names).text);
  }
  json_array_foreach(json_object_get(set, "required"), i, name)
    if (yaml_get(node, json_string_value(name)) == NULL)
      profile_check_wrong(c, node, "%s needs %s", what, json_string_value(name));
}

/* Checks what a permission becomes: words, or a map of them and of variables. */
static void check_granted(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  const char *form = node->kind == YAML_MAP ? "permission" : "words";
  json_auto_t *schema = json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s", form));
  check_key(c, node, &(struct profile_key){key->name, schema});
}

static void check_key(struct check *c, const struct yaml_node *node,
                      const struct profile_key *key) {
  /* A part of the schema's $defs, which has a set of keys if it is not here; or a type of JSON. */
  static const struct {
    const char *name;
    check_fn *check;
    const char *what; /* "a list of words": the kind that it must have, if it is one of these */
  } types[] = {
      {"line", check_line, NULL},
      {"regex", profile_check_pattern, NULL},
      {"words", check_argv, "a list of words"},
      {"texts", check_texts, "a map"},
      {"variable", profile_check_variable, NULL},
      {"pointer", check_pointer, NULL},
      {"pointers", profile_check_list, "a list of JSON Pointers"},
      {"path", check_path, NULL},
      {"value", profile_check_value, NULL},
      {"matches", check_matches, "a map"},
      {"class", check_class, NULL},
      {"classes", check_classes, "a map"},
      {"granted", check_granted, NULL},
      {"integer", check_integer, NULL},
      {"boolean", check_bool, NULL},
      {"array", profile_check_list, "a list"},
      {"object", NULL, "a map"},
  };
  const json_t *schema = key->schema;
  struct str ref = json_view_at(schema, "$ref"), type = json_view_at(schema, "type");
  if (ref.n > 0) {
    type = str_from(ref.p + strlen("#/$defs/"));
    schema = json_object_get(c->defs, type.p);
  }
  const struct profile_key at = {key->name, schema};
  for (size_t i = 0; i < ARRAY_LEN(types); i++) {
    const char *what = types[i].what;
    if (!str_eq_c(type, types[i].name))
      continue;
    if (what != NULL && node->kind != (str_starts(str_from(what), "a map") ? YAML_MAP : YAML_LIST))
      check_wrong_kind(c, node, key->name, what);
    else if (types[i].check != NULL)
      types[i].check(c, node, &at);
    return;
  }
  const json_t *either = json_object_get(schema, "anyOf"); /* a word, or a map */
  if (either != NULL)
    check_key(c, node,
              &(struct profile_key){key->name, json_array_get(either, node->kind == YAML_MAP)});
  else if (json_object_get(schema, "enum") != NULL)
    check_word(c, node, &at);
  else
    check_set(c, node, json_string_value(json_object_get(schema, "title")), schema);
}

bool profile_check(const char *file, const struct yaml_node *root, struct err_list *errors) {
  json_auto_t *schema = profile_schema();
  struct check c = {file, errors, true, json_object_get(schema, "$defs")};
  check_set(&c, root, "a profile", schema);
  return c.ok;
}

json_t *profile_schema(void) {
  const struct resource *r = resource_find("schemas/provider-profile.json");
  json_t *schema = json_loadb(r->p, r->n, 0, NULL);
  if (schema == NULL)
    BUG("the schema of profiles cannot be read");
  return schema;
}
