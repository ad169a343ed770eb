/* Checks a resolved document against the table of keys: a log may hold what was never in a file. */
#include "core/keys.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/run.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <assert.h>
#include <string.h>

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

static bool keys_refuse(struct key_check *c, const char *what) {
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
    return keys_refuse(c, why.text);
  return (k->type != KEY_LINE && k->type != KEY_PROVIDERS) || line ||
         keys_refuse(c, "must be a text of one line, not empty");
}

static bool keys_is_word(const struct key *k, const json_t *v) {
  for (size_t i = 0; k->words && k->words[i]; i++)
    if (json_is_string(v) && str_eq_c(json_view(v), k->words[i]))
      return true;
  return false;
}

static bool keys_check_number(struct key_check *c, const struct key *k, const json_t *v) {
  struct buf what = {0};
  double n = json_number_value(v);
  if (keys_is_word(k, v) || ((k->type == KEY_NUMBER ? json_is_number(v) : json_is_integer(v)) &&
                             n >= k->min && n <= k->max))
    return true;
  buf_printf(&what, "must be a %s from %.0f to %.0f",
             k->type == KEY_NUMBER ? "number" : "whole number", k->min, k->max);
  if (k->words) {
    buf_puts(&what, ", or ");
    key_words(k, &what);
  }
  (void)keys_refuse(c, buf_c(&what));
  buf_deinit(&what);
  return false;
}

static bool keys_check_choice(struct key_check *c, const struct key *k, const json_t *v) {
  struct buf what = {0};
  if (keys_is_word(k, v))
    return true;
  buf_puts(&what, "must be ");
  key_words(k, &what);
  (void)keys_refuse(c, buf_c(&what));
  buf_deinit(&what);
  return false;
}

static bool keys_check_texts(struct key_check *c, const json_t *list, size_t least, size_t most,
                             const char *what) {
  size_t i, n = json_array_size(list);
  const json_t *v;
  if (!json_is_array(list) || n < least || n > most)
    return keys_refuse(c, what);
  json_array_foreach((json_t *)list, i, v) {
    if (json_string_length(v) == 0)
      return keys_refuse(c, what);
  }
  return true;
}

static bool keys_check_argv(struct key_check *c, const json_t *list) {
  size_t i, n = json_array_size(list);
  const json_t *v;
  if (!json_is_array(list) || n == 0 || n > LIMIT_ARGV_COUNT)
    return keys_refuse(c, "must be a list of 1 to 256 texts: the program, its arguments");
  json_array_foreach((json_t *)list, i, v) {
    const char *text = json_string_value(v);
    if (text == NULL || strlen(text) != json_string_length(v) || (i == 0 && text[0] == '\0'))
      return keys_refuse(c, "must be texts without NUL, the first not empty");
  }
  return true;
}

static bool keys_check_run(struct key_check *c, const struct key *k, const json_t *list) {
  size_t i;
  const json_t *v;
  if (!keys_check_texts(c, list, 1, (size_t)k->max, "must be a list of 1 to 32 programs"))
    return false;
  json_array_foreach((json_t *)list, i, v) {
    const char *fault = run_fault(json_view(v));
    if (fault != NULL)
      return keys_refuse(c, fault);
  }
  return true;
}

static bool keys_check_choices(struct key_check *c, const struct key *k, const json_t *list) {
  static const char what[] = "must be a list of 2 to 20 different answers, each of one line";
  size_t i;
  const json_t *v;
  if (!keys_check_texts(c, list, 2, (size_t)k->max, what))
    return false;
  json_array_foreach((json_t *)list, i, v) {
    if (json_string_length(v) > LIMIT_CHOICE_BYTES || str_has_control(json_view(v)))
      return keys_refuse(c, what);
    for (size_t j = 0; j < i; j++)
      if (json_same(v, json_array_get(list, j)))
        return keys_refuse(c, what);
  }
  return true;
}

static bool keys_check_variables(struct key_check *c, const json_t *list) {
  if (!keys_check_texts(c, list, 1, LIMIT_SECRET_COUNT, "must be a list of names of variables"))
    return false;
  size_t i;
  const json_t *v;
  json_array_foreach((json_t *)list, i, v) {
    if (!str_is_variable((struct str){json_string_value(v), json_string_length(v)}))
      return keys_refuse(c, "must be a list of names of variables");
  }
  return true;
}

static bool keys_check_outputs(struct key_check *c, const json_t *map) {
  const char *name;
  const json_t *v;
  if (!json_is_object(map) || json_object_size(map) > LIMIT_PARAM_COUNT)
    return keys_refuse(c, "must be an object of at most 64 names");
  json_object_foreach((json_t *)map, name, v) {
    if (!json_is_string(v) || name[0] == '\0')
      return keys_refuse(c, "must hold texts");
  }
  return true;
}

static bool keys_check_stages(struct key_check *c, const struct key *k, const json_t *list) {
  size_t i;
  const json_t *v;
  if (!json_is_array(list) || json_array_size(list) == 0)
    return keys_refuse(c, "must be a list with at least one stage");
  json_array_foreach((json_t *)list, i, v) {
    if (!keys_check_choice(c, k, v))
      return false;
    for (size_t j = 0; j < i; j++)
      if (json_same(v, json_array_get(list, j)))
        return keys_refuse(c, "names a stage twice");
  }
  return true;
}

static bool keys_check_list(struct key_check *c, const struct key *k, const json_t *list) {
  size_t i, n = json_array_size(list), length = c->path.n;
  const json_t *v;
  if (!json_is_array(list) || n == 0 || (double)n > k->max) {
    struct buf what = {0};
    buf_printf(&what, "must be a list of 1 to %.0f %s", k->max, k->name);
    (void)keys_refuse(c, buf_c(&what));
    buf_deinit(&what);
    return false;
  }
  json_array_foreach((json_t *)list, i, v) {
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
  if (k->or_null && json_is_null(v))
    return true;
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
    return keys_check_run(c, k, v);
  case KEY_CHOICES:
    return keys_check_choices(c, k, v);
  case KEY_NAMES:
    return keys_check_texts(c, v, (size_t)k->min, (size_t)k->max,
                            "must be a list of movements' names");
  case KEY_TEXTS:
    return keys_check_texts(c, v, 1, (size_t)k->max, "must be a list of texts, not too many");
  case KEY_VARIABLES:
    return keys_check_variables(c, v);
  case KEY_PANEL:
    return keys_is_word(k, v) ||
           keys_check_texts(c, v, 2, (size_t)k->max, "must be a list of 2 to 7 providers, or none");
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
  case KEY_REPORTS:
    return keys_check_list(c, k, v);
  case KEY_SET:
    return keys_check_set(c, k->set, v);
  case KEY_SET_LIST:
    return keys_check_list(c, k, v);
  }
  BUG("no such type of key: %d", (int)k->type);
}

static bool keys_check_key(struct key_check *c, const struct key *k, const json_t *object) {
  const json_t *v = json_object_get(object, k->name);
  size_t length = c->path.n;
  if (v == NULL && !k->required && k->type != KEY_PROVIDERS)
    return true; /* this is so for most keys */
  buf_puts(&c->path, length > 0 ? "." : "");
  buf_puts(&c->path, k->name);
  if (v == NULL && k->required)
    return keys_refuse(c, "is missing");
  if (v != NULL && !keys_check_value(c, k, v))
    return false;
  path_cut(c, length);
  if (k->type != KEY_PROVIDERS || (v = json_at(object, "fallback")) == NULL)
    return true;
  buf_printf(&c->path, "%sfallback", length > 0 ? "." : "");
  if (!keys_check_texts(c, v, 0, LIMIT_FALLBACK_COUNT, "must be a list of providers"))
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

bool key_set_check(const struct key_set *set, const json_t *object, struct err *err) {
  struct key_check c = {.path = {.max = PATH_MAX_BYTES}, .err = err};
  assert(set != NULL && err != NULL);
  bool ok = keys_check_set(&c, set, object);
  buf_deinit(&c.path);
  return ok;
}
