/* Checks a profile's YAML by the table of keys: each error has its place and what to write. */
#include "provider/profile/keys.h"

#include "base/limits.h"
#include "core/call.h"
#include "format/pointer.h"
#include "schema/pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct check {
  const char *file;
  struct err_list *errors;
  bool ok;
};

static void profile_check_wrong(struct check *c, const struct yaml_node *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void profile_check_wrong(struct check *c, const struct yaml_node *at, const char *fmt, ...) {
  char text[512];
  struct err err;
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  (void)err_set_at(&err, ERR_FILE, c->file, at->line, at->column, "%s", text);
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

static void check_line(struct check *c, const struct yaml_node *node, const char *name) {
  if (!is_line(node))
    profile_check_wrong(c, node, "%s must be a text of one line, not %s", name,
                        yaml_kind_name(node->kind));
}

static void check_word(struct check *c, const struct yaml_node *node, const char *name,
                       const char *const *words) {
  for (size_t i = 0; is_scalar(node) && words[i] != NULL; i++)
    if (str_eq_c(node->text, words[i]))
      return;
  struct buf list = {0};
  for (size_t i = 0; words[i] != NULL; i++) {
    if (i > 0)
      buf_puts(&list, words[i + 1] ? ", " : " or ");
    buf_puts(&list, words[i]);
  }
  profile_check_wrong(c, node, "%s must be %s", name, buf_c(&list));
  buf_deinit(&list);
}

static void check_integer(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  if (node->kind != YAML_INTEGER || node->integer < key->min || node->integer > key->max)
    profile_check_wrong(c, node, "%s must be an integer from %ld to %ld", key->name, key->min,
                        key->max);
}

/* Checks placeholders: a misspelt one would pass as a word and be found much later. */
static void check_placeholders(struct check *c, const struct yaml_node *node) {
  static const char *const known[] = {
      "model",  "session", "new_session", "schema", "schema_file", "prompt_file", "max_turns",
      "tools",  "effort",  "cwd",         "tmpdir", "permission",  "args",        "judge",
      "report", "run",     "runs",        "fork",   NULL};
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
    bool found = false;
    for (size_t k = 0; known[k] != NULL; k++)
      found = found || str_eq_c(name, known[k]);
    if (!found) {
      const char *near = str_nearest(name, known);
      profile_check_wrong(c, node, "there is no placeholder {" STR_FMT "}%s%s%s", STR_ARG(name),
                          near ? ": did you mean {" : "", near ? near : "", near ? "}?" : "");
    }
  }
}

static void check_argv(struct check *c, const struct yaml_node *node, const char *name, int depth) {
  if (node->kind != YAML_LIST) {
    profile_check_wrong(c, node, "%s must be a list of words, not %s", name,
                        yaml_kind_name(node->kind));
    return;
  }
  if (node->count > LIMIT_ARGV_COUNT)
    profile_check_wrong(c, node, "%s has too many words: the limit is %u", name, LIMIT_ARGV_COUNT);
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (item->kind == YAML_LIST && depth == 0)
      check_argv(c, item, "a group", 1);
    else if (!is_scalar(item) || item->kind == YAML_NULL)
      profile_check_wrong(c, item, "a word of %s must be a text, not %s", name,
                          yaml_kind_name(item->kind));
    else
      check_placeholders(c, item);
  }
}

static void profile_check_names(struct check *c, const struct yaml_node *node,
                                const struct profile_key *key) {
  if (node->kind != YAML_LIST) {
    profile_check_wrong(c, node, "%s must be a list, not %s", key->name,
                        yaml_kind_name(node->kind));
    return;
  }
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (key->words != NULL)
      check_word(c, item, key->name, key->words);
    else if (key->type == PROFILE_VARIABLES && (!is_scalar(item) || !str_is_variable(item->text)))
      profile_check_wrong(c, item, "%s takes names of variables only", key->name);
    else
      check_line(c, item, key->name);
  }
}

static bool check_map(struct check *c, const struct yaml_node *node, const char *name) {
  if (node->kind == YAML_MAP)
    return true;
  profile_check_wrong(c, node, "%s must be a map, not %s", name, yaml_kind_name(node->kind));
  return false;
}

static void check_texts(struct check *c, const struct yaml_node *node, const char *name) {
  if (!check_map(c, node, name))
    return;
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

static void check_pointer(struct check *c, const struct yaml_node *node, const char *name) {
  if (!is_scalar(node) || node->kind == YAML_NULL || !pointer_valid(node->text))
    profile_check_wrong(c, node, "%s must be a JSON Pointer, such as /message/text", name);
}

static void check_path(struct check *c, const struct yaml_node *node, const char *name) {
  bool ok = is_line(node) && node->text.p[0] != '/' && node->text.p[node->text.n - 1] != '/' &&
            node->text.n < LIMIT_NAME_BYTES * 2;
  for (struct str rest = node->text; ok && rest.n > 0;) {
    const char *slash = memchr(rest.p, '/', rest.n);
    struct str step = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
    ok = step.n > 0 && !str_eq_c(step, "..") && !str_eq_c(step, ".");
    rest = slash ? (struct str){slash + 1, rest.n - step.n - 1} : (struct str){0};
  }
  if (!ok)
    profile_check_wrong(c, node, "%s must be a path below the project: no / in front, no .. in it",
                        name);
}

static void profile_check_value(struct check *c, const struct yaml_node *node, const char *name) {
  if (node->kind == YAML_LIST) {
    for (size_t i = 0; i < node->count; i++)
      check_pointer(c, node->items[i], name);
    if (node->count == 0)
      profile_check_wrong(c, node, "%s must name a place", name);
    return;
  }
  if (is_scalar(node) && node->text.n > 0 && node->text.p[0] == '/')
    check_pointer(c, node, name);
  else
    check_line(c, node, name);
}

static void profile_check_pattern(struct check *c, const struct yaml_node *node, struct str text) {
  struct pattern *pattern = NULL;
  struct pattern_error error = {0};
  if (!is_scalar(node) || pattern_compile(text.p, text.n, &pattern, &error) != PATTERN_OK)
    profile_check_wrong(c, node, "this is not a regular expression: %s",
                        error.text[0] ? error.text : "it must be a text");
  pattern_free(pattern);
}

static void check_matches(struct check *c, const struct yaml_node *node, const char *name) {
  if (!check_map(c, node, name))
    return;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key, *value = node->pairs[i].value;
    check_pointer(c, key, "what must stand somewhere");
    if (value->kind == YAML_MAP)
      profile_check_wrong(c, value, "it must be a value or a list of values");
    else if (value->kind == YAML_TEXT && value->text.n > 1 && value->text.p[0] == '~')
      profile_check_pattern(c, value, (struct str){value->text.p + 1, value->text.n - 1});
  }
}

static void check_class(struct check *c, const struct yaml_node *node) {
  enum error_class class;
  const char *names[CLASS_COUNT];
  if (is_scalar(node) && error_class_from_name(node->text, &class) && class != CLASS_NONE)
    return;
  size_t n = 0;
  for (int i = CLASS_NONE + 1; i <= CLASS_CANCELLED; i++) /* not the ends that we cause */
    names[n++] = error_class_name((enum error_class)i);
  names[n] = NULL;
  check_word(c, node, "an error class", names);
}

static void check_classes(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  long number;
  if (!check_map(c, node, key->name))
    return;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *word = node->pairs[i].key;
    if (strcmp(key->name, "exits") == 0 &&
        (!str_to_long(word->text, &number) || number < 0 || number > 255))
      profile_check_wrong(c, word, "an exit status is a number from 0 to 255");
    check_class(c, node->pairs[i].value);
  }
}

static void check_set(struct check *c, const struct yaml_node *node,
                      const struct profile_key_set *set, bool required);

static bool is_list_of(struct check *c, const struct yaml_node *node, const char *name,
                       const char *what) {
  if (node->kind != YAML_LIST)
    profile_check_wrong(c, node, "%s must be a list%s, not %s", name, what,
                        yaml_kind_name(node->kind));
  return node->kind == YAML_LIST;
}

static void check_pointers(struct check *c, const struct yaml_node *node,
                           const struct profile_key *key) {
  if (!is_list_of(c, node, key->name, " of JSON Pointers"))
    return;
  for (size_t i = 0; i < node->count; i++)
    check_pointer(c, node->items[i], key->name);
}

static void check_set_list(struct check *c, const struct yaml_node *node,
                           const struct profile_key *key) {
  if (!is_list_of(c, node, key->name, ""))
    return;
  if ((long)node->count > key->max)
    profile_check_wrong(c, node, "%s has too many entries: the limit is %ld", key->name, key->max);
  for (size_t i = 0; i < node->count; i++)
    check_set(c, node->items[i], key->set, true);
}

static void check_set_or_words(struct check *c, const struct yaml_node *node,
                               const struct profile_key *key) {
  if (key->type == PROFILE_SET)
    check_set(c, node, key->set, true);
  else if (node->kind == YAML_MAP)
    check_set(c, node, &profile_permission_keys, true);
  else
    check_argv(c, node, key->name, 0);
}

static void profile_check_key(struct check *c, const struct yaml_node *node,
                              const struct profile_key *key) {
  switch (key->type) {
  case PROFILE_LINE:
    check_line(c, node, key->name);
    break;
  case PROFILE_BOOL:
    if (node->kind != YAML_BOOL)
      profile_check_wrong(c, node, "%s must be true or false", key->name);
    break;
  case PROFILE_INTEGER:
    check_integer(c, node, key);
    break;
  case PROFILE_CHOICE:
    check_word(c, node, key->name, key->words);
    break;
  case PROFILE_ARGV:
    check_argv(c, node, key->name, 0);
    break;
  case PROFILE_NAMES:
  case PROFILE_VARIABLES:
    profile_check_names(c, node, key);
    break;
  case PROFILE_TEXTS:
    check_texts(c, node, key->name);
    break;
  case PROFILE_POINTER:
    check_pointer(c, node, key->name);
    break;
  case PROFILE_OBJECT:
    (void)check_map(c, node, key->name);
    break;
  case PROFILE_POINTERS:
    check_pointers(c, node, key);
    break;
  case PROFILE_PATH:
    check_path(c, node, key->name);
    break;
  case PROFILE_VALUE:
    profile_check_value(c, node, key->name);
    break;
  case PROFILE_MATCHES:
    check_matches(c, node, key->name);
    break;
  case PROFILE_CLASSES:
    check_classes(c, node, key);
    break;
  case PROFILE_PATTERN:
    profile_check_pattern(c, node, node->text);
    break;
  case PROFILE_CLASS:
    check_class(c, node);
    break;
  case PROFILE_SET:
  case PROFILE_PERMISSION:
    check_set_or_words(c, node, key);
    break;
  case PROFILE_SET_LIST:
    check_set_list(c, node, key);
    break;
  }
}

static const struct profile_key *find_key(const struct profile_key_set *set, struct str name) {
  for (const struct profile_key *k = set->keys; k->name != NULL; k++)
    if (str_eq_c(name, k->name))
      return k;
  return NULL;
}

static void check_set(struct check *c, const struct yaml_node *node,
                      const struct profile_key_set *set, bool required) {
  if (!check_map(c, node, set->what))
    return;
  for (size_t i = 0; i < node->count; i++) {
    const struct profile_key *key = find_key(set, node->pairs[i].key->text);
    if (key != NULL) {
      profile_check_key(c, node->pairs[i].value, key);
      continue;
    }
    const char *names[64];
    size_t n = 0;
    for (const struct profile_key *k = set->keys; k->name != NULL; k++)
      names[n++] = k->name;
    names[n] = NULL;
    const char *near = str_nearest(node->pairs[i].key->text, names);
    profile_check_wrong(c, node->pairs[i].key, "%s has no key \"" STR_FMT "\"%s%s%s", set->what,
                        STR_ARG(node->pairs[i].key->text), near ? ": did you mean \"" : "",
                        near ? near : "", near ? "\"?" : "");
  }
  for (const struct profile_key *k = set->keys; required && k->name != NULL; k++)
    if (k->required && yaml_get(node, k->name) == NULL)
      profile_check_wrong(c, node, "%s needs %s", set->what, k->name);
}

bool profile_check(const char *file, const struct yaml_node *root, struct err_list *errors) {
  struct check c = {.file = file, .errors = errors, .ok = true};
  check_set(&c, root, &profile_keys, false);
  return c.ok;
}
