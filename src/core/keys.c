/* Finds a key of a workflow by its name, and checks the values of a document that was resolved. */
#include "core/keys.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/movement_limits.h"
#include "core/run.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The table is made of schemas/workflow.json by cmake/workflow_keys.c: all that a value must
 * be as far as its text alone says, so that the parser, editors and the check of a log
 * agree without asking each other. A key that only means something together with others, such as
 * the name of a movement, is checked in core/workflow.c and told earlier by workflow/lint.c.
 * Descriptions say the default, because nobody looks for it elsewhere. */

/* --- checks of texts --- */

/* The reports of a session lie side by side, on whatever file system its user has: a name that
 * Windows would refuse is refused here too, since logs are copied. */
bool key_check_file(struct str name, struct err *err) {
  static const char refused[] = "/\\:*?\"<>|";
  bool ok = name.n > 0 && name.n <= LIMIT_NAME_BYTES && name.p[0] != '.' && name.p[0] != ' ' &&
            name.p[name.n - 1] != '.' && name.p[name.n - 1] != ' ' && !str_has_control(name);
  for (size_t i = 0; ok && i < name.n; i++)
    ok = strchr(refused, name.p[i]) == NULL;
  return ok || err_set(err, ERR_INVALID,
                       "must be a file's name such as plan.md: no folder, no dot in front, none of "
                       "\\ : * ? \" < > |");
}

/* Refuses what git refuses in a branch's name, so that a session does not fail at its first
 * worktree; a dash in front would be an option of git's commands, and refs/heads/main a branch that
 * looks like another one. */
bool key_check_branch(struct str text, struct err *err) {
  static const char *const refused[] = {"..", "//", "@{", "/.", "~", "^",     ":",
                                        "?",  "*",  "[",  "\\", " ", ".lock/"};
  bool ok = text.n > 0 && text.p[0] != '-' && text.p[0] != '/' && text.p[0] != '.' &&
            text.p[text.n - 1] != '/' && text.p[text.n - 1] != '.' && !str_ends(text, ".lock") &&
            !str_starts(text, "refs/") && !str_among(text, "@ HEAD") && !str_has_control(text);
  for (size_t i = 0; ok && i < ARRAY_LEN(refused); i++)
    ok = memmem(text.p, text.n, refused[i], strlen(refused[i])) == NULL;
  return ok || err_set(err, ERR_INVALID,
                       "must be the name of a branch, in which {id} is the session's and "
                       "{workflow} its workflow's, such as segue/{id}");
}

/* --- finding a key --- */

bool key_is(const struct key *k, struct str name) {
  return str_eq_c(name, k->name) || (k->alias && str_eq_c(name, k->alias)) ||
         (k->older && str_eq_c(name, k->older));
}

const struct key *key_find(const struct key_set *set, struct str name) {
  for (const struct key *k = set->keys; k->name; k++)
    if (key_is(k, name))
      return k;
  return NULL;
}

const char *key_nearest(const struct key_set *set, struct str name) {
  enum { NAMES_MAX = 200 };
  const char *names[NAMES_MAX];
  size_t n = 0;
  for (const struct key *k = set->keys; k->name && n + 2 < NAMES_MAX; k++) {
    names[n++] = k->name;
    if (k->alias)
      names[n++] = k->alias;
  }
  names[n] = NULL;
  return str_nearest(name, names);
}

void key_words(const struct key *k, struct buf *out) {
  for (size_t i = 0; k->words[i]; i++) {
    if (i > 0)
      buf_puts(out, k->words[i + 1] ? ", " : " or ");
    buf_puts(out, k->words[i]);
  }
}

/* --- the check of a resolved document --- */

enum { PATH_MAX_BYTES = 200 };

struct key_check {
  struct buf path; /* "movements[0].judge" */
  struct err *err;
};

static bool keys_check_set(struct key_check *c, const struct key_set *set, const json_t *object);

static void path_cut(struct key_check *c, size_t length) {
  if (c->path.n > length)
    c->path.p[c->path.n = length] = '\0';
}

/* Says what the value at the path must be. Returns false. */
PRINTF_LIKE(2, 3)
static bool keys_refuse(struct key_check *c, const char *fmt, ...) {
  char what[sizeof c->err->text];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  return err_set(c->err, ERR_INVALID, "%s%s%s", buf_c(&c->path), c->path.n > 0 ? ": " : "", what);
}

static bool keys_check_text(struct key_check *c, const struct key *k, const json_t *v) {
  if (!json_is_string(v))
    return keys_refuse(c, "must be a text");
  struct str text = json_view(v);
  bool line = text.n > 0 && !str_has_control(text);
  if (k->type == KEY_NAME && (!line || text.n > LIMIT_NAME_BYTES))
    return keys_refuse(c, "must be a name of 1 to 128 bytes without control characters");
  struct err why;
  if (line && k->check != NULL && !k->check(text, &why))
    return keys_refuse(c, "%s", why.text);
  return (k->type != KEY_LINE && k->type != KEY_PROVIDERS) || line ||
         keys_refuse(c, "must be a text of one line, not empty");
}

static bool keys_is_word(const struct key *k, const json_t *v) {
  return k->words && json_is_string(v) && str_is_one(json_view(v), k->words);
}

static bool keys_check_number(struct key_check *c, const struct key *k, const json_t *v) {
  double n = json_number_value(v);
  bool whole = k->type != KEY_NUMBER, fits = whole ? json_is_integer(v) : json_is_number(v);
  buf_auto_t words = {0};
  if (keys_is_word(k, v) || (fits && n >= k->min && n <= k->max))
    return true;
  if (k->words) {
    buf_puts(&words, ", or ");
    key_words(k, &words);
  }
  keys_refuse(c, "must be a %snumber from %.0f to %.0f%s", whole ? "whole " : "", k->min, k->max,
              buf_c(&words));
  return false;
}

static bool keys_check_choice(struct key_check *c, const struct key *k, const json_t *v) {
  buf_auto_t words = {0};
  if (keys_is_word(k, v))
    return true;
  key_words(k, &words);
  keys_refuse(c, "must be %s", buf_c(&words));
  return false;
}

/* Checks a list of texts that are not empty. fault: returns what is wrong with one of them, NULL if
 * nothing is; or NULL. */
static bool keys_check_texts(struct key_check *c, const json_t *list, size_t least, size_t most,
                             const char *what, const char *(*fault)(struct str text)) {
  size_t n = json_array_size(list);
  if (!json_is_array(list) || n < least || n > most)
    return keys_refuse(c, "%s", what);
  JSON_EACH(list, i, v) {
    const char *wrong = what;
    if (json_string_length(v) > 0)
      wrong = fault != NULL ? fault(json_view(v)) : NULL;
    if (wrong != NULL)
      return keys_refuse(c, "%s", wrong);
  }
  return true;
}

static const char variables_must[] = "must be a list of names of variables";

static const char *variable_fault(struct str text) {
  return str_is_variable(text) ? NULL : variables_must;
}

static bool keys_check_argv(struct key_check *c, const json_t *list) {
  size_t n = json_array_size(list);
  if (!json_is_array(list) || n == 0 || n > LIMIT_ARGV_COUNT)
    return keys_refuse(c, "must be a list of 1 to 256 texts: the program, its arguments");
  JSON_EACH(list, i, v) {
    const char *text = json_string_value(v);
    if (text == NULL || strlen(text) != json_string_length(v) || (i == 0 && text[0] == '\0'))
      return keys_refuse(c, "must be texts without NUL, the first not empty");
  }
  return true;
}

static bool keys_check_choices(struct key_check *c, const struct key *k, const json_t *list) {
  static const char what[] = "must be a list of 2 to 20 different answers, each of one line";
  if (!keys_check_texts(c, list, 2, (size_t)k->max, what, NULL))
    return false;
  JSON_EACH(list, i, v) {
    if (json_string_length(v) > LIMIT_CHOICE_BYTES || str_has_control(json_view(v)))
      return keys_refuse(c, "%s", what);
    for (size_t j = 0; j < i; j++)
      if (json_same(v, json_array_get(list, j)))
        return keys_refuse(c, "%s", what);
  }
  return true;
}

static bool keys_check_outputs(struct key_check *c, const json_t *map) {
  if (!json_is_object(map) || json_object_size(map) > LIMIT_PARAM_COUNT)
    return keys_refuse(c, "must be an object of at most 64 names");
  JSON_MEMBERS(map, name, v) {
    if (!json_is_string(v) || name[0] == '\0')
      return keys_refuse(c, "must hold texts");
  }
  return true;
}

static bool keys_check_stages(struct key_check *c, const struct key *k, const json_t *list) {
  if (!json_is_array(list) || json_array_size(list) == 0)
    return keys_refuse(c, "must be a list with at least one stage");
  JSON_EACH(list, i, v) {
    if (!keys_check_choice(c, k, v))
      return false;
    for (size_t j = 0; j < i; j++)
      if (json_same(v, json_array_get(list, j)))
        return keys_refuse(c, "names a stage twice");
  }
  return true;
}

static bool keys_check_list(struct key_check *c, const struct key *k, const json_t *list) {
  size_t n = json_array_size(list), length = c->path.n;
  if (!json_is_array(list) || n == 0 || (double)n > k->max)
    return keys_refuse(c, "must be a list of 1 to %.0f %s", k->max, k->name);
  JSON_EACH(list, i, v) {
    buf_printf(&c->path, "[%zu]", i);
    if (!keys_check_set(c, k->set, v))
      return false;
    path_cut(c, length);
  }
  return true;
}

static bool keys_check_items(struct key_check *c, const struct key *k, const json_t *v) {
  if (json_is_string(v))
    return keys_check_text(c, k, v);
  return (json_is_array(v) && json_array_size(v) > 0 && (double)json_array_size(v) <= k->max) ||
         keys_refuse(c, "must be a list with at least one item, or MOVEMENT.FIELD");
}

static bool keys_check_value(struct key_check *c, const struct key *k, const json_t *v) {
  switch (k->type) {
  case KEY_NAME:
  case KEY_LINE:
  case KEY_TEXT:
  case KEY_FACET:
  case KEY_CONDITION:
  case KEY_PROVIDERS:
    return keys_check_text(c, k, v);
  case KEY_BOOL:
    return json_is_boolean(v) || keys_refuse(c, "must be true or false");
  case KEY_INTEGER:
  case KEY_NUMBER:
  case KEY_COUNT:
    return keys_check_number(c, k, v);
  case KEY_CHOICE:
    return keys_check_choice(c, k, v);
  case KEY_NOTED:
  case KEY_PARAMS:
  case KEY_ARGS:
  case KEY_LABELS:
  case KEY_SECTION:
    return true; /* nothing reads them */
  case KEY_ARGV:
    return keys_check_argv(c, v);
  case KEY_RUN:
    return keys_check_texts(c, v, 1, (size_t)k->max, "must be a list of 1 to 32 programs",
                            run_fault);
  case KEY_CHOICES:
    return keys_check_choices(c, k, v);
  case KEY_NAMES:
    return keys_check_texts(c, v, (size_t)k->min, (size_t)k->max,
                            "must be a list of movements' names", NULL);
  case KEY_TEXTS:
    return keys_check_texts(c, v, 1, (size_t)k->max, "must be a list of texts, not too many", NULL);
  case KEY_VARIABLES:
    return keys_check_texts(c, v, 1, LIMIT_SECRET_COUNT, variables_must, variable_fault);
  case KEY_PANEL:
    return keys_is_word(k, v) ||
           keys_check_texts(c, v, 2, (size_t)k->max, "must be a list of 2 to 7 providers, or none",
                            NULL);
  case KEY_STAGES:
    return keys_check_stages(c, k, v);
  case KEY_SCHEMA:
    return json_is_object(v) || keys_refuse(c, "must be a JSON Schema");
  case KEY_ITEMS:
    return keys_check_items(c, k, v);
  case KEY_INVARIANTS:
    return json_is_array(v) || keys_refuse(c, "must be a list");
  case KEY_OUTPUTS:
    return keys_check_outputs(c, v);
  case KEY_SET:
    return keys_check_set(c, k->set, v);
  case KEY_REPORTS:
  case KEY_SET_LIST:
    return keys_check_list(c, k, v);
  }
  BUG("no such type of key: %d", (int)k->type);
}

static bool keys_check_key(struct key_check *c, const struct key *k, const json_t *object) {
  const json_t *v = json_object_get(object, k->name);
  size_t length = c->path.n;
  if (k->type == KEY_CHOICE && json_is_array(v) && strcmp(k->name, "fallback") == 0)
    return true; /* the other providers: see below */
  if (v == NULL && !k->required && k->type != KEY_PROVIDERS)
    return true; /* this is so for most keys */
  buf_puts(&c->path, length > 0 ? "." : "");
  buf_puts(&c->path, k->name);
  if (v == NULL && k->required)
    return keys_refuse(c, "is missing");
  bool is_removed = k->or_null && json_is_null(v);
  if (v != NULL && !is_removed && !keys_check_value(c, k, v))
    return false;
  path_cut(c, length);
  if (k->type != KEY_PROVIDERS || (v = json_at(object, "fallback")) == NULL)
    return true;
  buf_printf(&c->path, "%sfallback", length > 0 ? "." : "");
  if (!keys_check_texts(c, v, 0, LIMIT_FALLBACK_COUNT, "must be a list of providers", NULL))
    return false;
  path_cut(c, length);
  return true;
}

static bool keys_check_set(struct key_check *c, const struct key_set *set, const json_t *object) {
  if (!json_is_object(object))
    return keys_refuse(c, "must be an object");
  for (const struct key *k = set->keys; k->name; k++)
    if (!keys_check_key(c, k, object))
      return false;
  return true;
}

bool key_check_setup(const json_t *setup, struct err *err) {
  const char *key;
  json_t *value;
  size_t i;
  bool ok = key_set_check(&setup_keys, setup, err);
  json_object_foreach((json_t *)setup, key, value) {
    if (ok && key_find(&setup_keys, str_from(key)) == NULL)
      ok = err_set(err, ERR_INVALID, "has no key \"%.40s\": they are run, key, keep and timeout",
                   key);
  }
  json_array_foreach(json_object_get(setup, "keep"), i, value) {
    ok = ok && limits_check_cwd(json_view(value), err);
  }
  if (ok && json_at(setup, "keep") != NULL && json_at(setup, "key") == NULL)
    ok = err_set(err, ERR_INVALID, "has keep but no key: name the files that decide what is made");
  return ok;
}

bool key_set_check(const struct key_set *set, const json_t *object, struct err *err) {
  struct key_check c = {.path = {.max = PATH_MAX_BYTES}, .err = err};
  assert(set != NULL && err != NULL);
  bool ok = keys_check_set(&c, set, object);
  buf_deinit(&c.path);
  return ok;
}
