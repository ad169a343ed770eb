/* Reads places in a value, given as paths or as JSON Pointers. */
#include "structured/invariant_internal.h"

#include "base/utf8.h"
#include "json/scan.h"

/* Holds both forms of a place, to which the caller adds its steps one at a time. */
struct place_writer {
  struct buf path, pointer;
  const json_t *at; /* NULL: unknown */
  bool known;
};

static void put_step(struct place_writer *w, const char *key, size_t n) {
  bool digits = n > 0 && n < 10 && (n == 1 || key[0] != '0');
  for (size_t i = 0; i < n && digits; i++)
    digits = key[i] >= '0' && key[i] <= '9';
  bool is_index = digits && (!w->known || json_is_array(w->at));
  size_t index = 0;
  for (size_t i = 0; i < n && is_index; i++)
    index = index * 10 + (size_t)(key[i] - '0');
  struct path_step step = {NULL, is_index ? NULL : key, is_index ? index : n};
  struct buf one = {0};
  schema_path_text(&step, &one); /* "$.key" or "$[3]" */
  buf_puts(&w->path, one.p + 1);
  one.n = 0;
  schema_pointer_text(&step, &one);
  buf_puts(&w->pointer, one.p);
  buf_deinit(&one);
  if (w->at)
    w->at = is_index ? json_array_get(w->at, index) : json_object_getn(w->at, key, n);
}

static void pointer_steps(struct place_writer *w, const char *text, size_t n) {
  for (size_t i = 0; i < n;) {
    struct buf key = {0};
    for (i++; i < n && text[i] != '/'; i++) /* skips the / */
      if (text[i] == '~' && i + 1 < n && (text[i + 1] == '0' || text[i + 1] == '1'))
        buf_puts(&key, text[++i] == '0' ? "~" : "/");
      else
        buf_append(&key, text + i, 1);
    buf_append(&key, "", 0);
    put_step(w, key.p, key.n);
    buf_deinit(&key);
  }
}

/* Reads a path such as $.a[0]["b c"].d; the $ and the first dot may be left out. */
static bool path_steps(struct place_writer *w, const char *text, size_t n) {
  size_t i = 0;
  if (n && text[0] == '$')
    i = 1;
  for (bool first = i == 0; i < n; first = false) {
    if (text[i] == '[' && i + 1 < n && (text[i + 1] == '"' || text[i + 1] == '\'')) {
      char quote = text[i + 1];
      size_t from = i + 2;
      for (i = from; i < n && text[i] != quote; i++)
        ;
      if (i + 1 >= n || text[i + 1] != ']')
        return false;
      put_step(w, text + from, i - from);
      i += 2;
    } else if (text[i] == '[') {
      size_t from = ++i;
      while (i < n && text[i] >= '0' && text[i] <= '9')
        i++;
      if (i == from || i >= n || text[i] != ']')
        return false;
      put_step(w, text + from, i - from);
      i++;
    } else if (first || text[i] == '.') {
      size_t from = text[i] == '.' ? ++i : i;
      while (i < n && text[i] != '.' && text[i] != '[')
        i++;
      if (i == from)
        return false;
      put_step(w, text + from, i - from);
    } else {
      return false;
    }
  }
  return true;
}

static bool place_is_text(const char *text, size_t n) {
  for (size_t i = 0, length; i < n; i += length)
    if ((length = utf8_decode(text + i, n - i, NULL)) == 0 || text[i] == '\0')
      return false;
  return true;
}

void invariant_place(const char *text, size_t n, const json_t *value, char **path, char **pointer) {
  struct place_writer w = {.at = value, .known = value != NULL};
  buf_puts(&w.path, "$");
  buf_append(&w.pointer, "", 0);
  bool sound = n <= INVARIANT_TEXT_MAX && place_is_text(text, n);
  if (sound && n > 0 && text[0] == '/')
    pointer_steps(&w, text, n);
  else
    sound = sound && path_steps(&w, text, n);
  if (!sound) {
    w.path.n = w.pointer.n = 0;
    buf_puts(&w.path, "$");
    buf_append(&w.pointer, "", 0);
  }
  *path = buf_take(&w.path);
  *pointer = buf_take(&w.pointer);
}
