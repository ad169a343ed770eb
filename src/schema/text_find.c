/* Finds the values in JSON text. */
#include "schema/text_find.h"

#include "schema/text.h"

#include <string.h>

enum { TEXT_DIGITS_MAX = 18 }; /* that many digits always fit */

size_t text_space(const struct jscan *js, size_t at) {
  while (at < js->n && (js->text[at] == ' ' || js->text[at] == '\n' || js->text[at] == '\r' ||
                        js->text[at] == '\t'))
    at++;
  return at;
}

/* Returns the place after the bracket that closes the one at `at`; 0 if there is none. */
static size_t text_cross(const struct jscan *js, size_t at) {
  size_t depth = 0;
  bool escaped;
  while (at < js->n) {
    switch (js->text[at]) {
    case '"':
      at = jscan_cross(js->text, js->n, at + 1, &escaped);
      if (at == 0)
        return 0;
      continue;
    case '{':
    case '[':
      depth++;
      break;
    case '}':
    case ']':
      if (--depth == 0)
        return at + 1;
      break;
    default:
      break;
    }
    at++;
  }
  return 0;
}

static size_t find_number(const struct jscan *js, size_t at, struct text_value *v) {
  size_t digits = at + (js->text[at] == '-'), end = digits;
  uint64_t n = 0;
  while (end < js->n && js->text[end] >= '0' && js->text[end] <= '9' &&
         end - digits <= TEXT_DIGITS_MAX)
    n = n * 10 + (uint64_t)(js->text[end++] - '0');
  bool plain = end > digits && end - digits <= TEXT_DIGITS_MAX &&
               (js->text[digits] != '0' || end - digits == 1) &&
               (end == js->n || !jscan_one_of(".eE", js->text[end]));
  v->type = JSON_INTEGER;
  v->number = digits > at ? -(int64_t)n : (int64_t)n;
  if (!plain) {
    json_t *number;
    if (jscan_number(js->text, js->n, at, &number, &end) != JSCAN_OK)
      return 0;
    v->type = json_typeof(number);
    v->number = json_integer_value(number);
    json_decref(number);
  }
  return end;
}

static size_t find_word(const struct jscan *js, size_t at, struct text_value *v) {
  static const struct {
    struct str word;
    json_type type;
  } words[] = {{STR_INIT("true"), JSON_TRUE},
               {STR_INIT("false"), JSON_FALSE},
               {STR_INIT("null"), JSON_NULL}};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (js->n - at >= words[i].word.n && !memcmp(js->text + at, words[i].word.p, words[i].word.n)) {
      v->type = words[i].type;
      return at + words[i].word.n;
    }
  return 0;
}

size_t text_find_value(const struct jscan *js, size_t at, struct text_value *v) {
  size_t end, from = at;
  if (at >= js->n)
    return 0;
  v->read = true;
  v->escaped = false;
  switch (js->text[at]) {
  case '"':
    v->type = JSON_STRING;
    end = jscan_cross(js->text, js->n, ++from, &v->escaped);
    v->text = (struct str){js->text + from, end - from - 1};
    return end;
  case '{':
  case '[':
    v->type = js->text[at] == '{' ? JSON_OBJECT : JSON_ARRAY;
    v->read = false;
    end = text_cross(js, at);
    break;
  case 't':
  case 'f':
  case 'n':
    end = find_word(js, at, v);
    break;
  default:
    end = find_number(js, at, v);
    break;
  }
  v->text = (struct str){js->text + at, end - at};
  return end;
}

struct text_value *text_member(struct text_object *o, struct str key) {
  for (size_t i = 0; i < o->count; i++)
    if (str_eq(o->keys[i], key))
      return &o->values[i];
  return NULL;
}

/* Adds a member. Returns false if its name is a duplicate, or there are too many. */
static bool add_key(struct text_object *o, struct str key) {
  unsigned kind = (unsigned)key.n * 37;
  if (key.n > 0)
    kind += (unsigned char)key.p[0] * 5u + (unsigned char)key.p[key.n / 2] * 11u +
            (unsigned char)key.p[key.n - 1];
  uint64_t bit = (uint64_t)1 << (kind % 64);
  if (o->count == TEXT_MEMBERS_MAX || (o->bits & bit && text_member(o, key) != NULL))
    return false;
  o->bits |= bit;
  o->keys[o->count] = key;
  return true;
}

size_t text_find_members(const struct jscan *js, size_t at, struct text_object *o) {
  bool escaped;
  o->count = 0;
  o->bits = 0;
  o->kind_key = NULL;
  at = text_space(js, at + 1);
  if (at < js->n && js->text[at] == '}')
    return at + 1;
  for (;;) {
    if (at >= js->n || js->text[at] != '"')
      return 0;
    size_t end = jscan_cross(js->text, js->n, at + 1, &escaped);
    if (end == 0 || escaped || !add_key(o, (struct str){js->text + at + 1, end - at - 2}))
      return 0;
    at = text_space(js, end);
    if (at >= js->n || js->text[at] != ':')
      return 0;
    at = text_find_value(js, text_space(js, at + 1), &o->values[o->count++]);
    if (at == 0)
      return 0;
    at = text_space(js, at);
    if (at < js->n && js->text[at] == '}')
      return at + 1;
    if (at >= js->n || js->text[at] != ',')
      return 0;
    at = text_space(js, at + 1);
  }
}

/* Returns the offset after the comma, and space, behind a value; 0 if the brackets close. */
static size_t text_next(const struct jscan *js, size_t at) {
  at = text_space(js, at);
  return at < js->n && js->text[at] == ',' ? text_space(js, at + 1) : 0;
}

/* Returns the offset of an element of the list that begins at `at`; 0 if there are fewer. */
static size_t find_element(const struct jscan *js, size_t at, struct str name) {
  struct text_value crossed;
  long index;
  bool plain = name.n > 0 && name.p[0] >= '0' && name.p[0] <= '9' &&
               (name.p[0] != '0' || name.n == 1) && str_to_long(name, &index);
  at = plain ? text_space(js, at + 1) : 0;
  for (long i = 0; at > 0 && at < js->n && js->text[at] != ']'; i++) {
    if (i == index)
      return at;
    at = text_find_value(js, at, &crossed);
    at = at > 0 ? text_next(js, at) : 0;
  }
  return 0;
}

/* Returns the offset of a member's value in the object that begins at `at`; 0 if it has none. */
static size_t find_member(const struct jscan *js, size_t at, struct str name) {
  struct text_value key, crossed;
  at = text_space(js, at + 1);
  while (at > 0 && at < js->n && js->text[at] == '"') {
    at = text_find_value(js, at, &key);
    at = at > 0 ? text_space(js, at) : 0;
    if (at == 0 || key.escaped || at >= js->n || js->text[at] != ':')
      return 0;
    at = text_space(js, at + 1);
    if (str_eq(key.text, name))
      return at;
    at = text_find_value(js, at, &crossed);
    at = at > 0 ? text_next(js, at) : 0;
  }
  return 0;
}

bool schema_text_has(struct str json, const char *pointer) {
  struct jscan js;
  size_t at = 0;
  jscan_init(&js, json.p, json.n);
  for (;;) {
    size_t n = strcspn(pointer, "/");
    char opens = at < json.n ? json.p[at] : '\0';
    const struct str name = {pointer, n};
    if (opens == '{')
      at = find_member(&js, at, name);
    else
      at = opens == '[' ? find_element(&js, at, name) : 0;
    if (at == 0 || pointer[n] == '\0')
      break;
    pointer += n + 1;
  }
  jscan_deinit(&js);
  return at > 0 && at < json.n && json.p[at] == '"';
}
