/* data.h - test data from YAML or JSON files, and small readers for it. Fails the test on a bad
 * file. */
#ifndef SEGUE_TESTS_DATA_H
#define SEGUE_TESTS_DATA_H

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "core/call.h"
#include "format/json_object.h"
#include "format/yaml.h"
#include "support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_FILE_BYTES = 4 * 1024 * 1024 };

static inline json_t *data_load(const char *path) {
  struct buf text = {0};
  struct err err = {0};
  json_t *doc = NULL;
  if (file_read(path, DATA_FILE_BYTES, &text, &err))
    doc = yaml_load(path, buf_view(&text), DATA_FILE_BYTES, &err);
  buf_deinit(&text);
  if (doc == NULL)
    fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.text);
  return doc;
}

static inline struct str data_str(const json_t *value) {
  if (!json_is_string(value))
    return (struct str){"", 0};
  return (struct str){json_string_value(value), json_string_length(value)};
}

static inline struct str data_get(const json_t *object, const char *key) {
  return data_str(json_object_get(object, key));
}

/* Appends a text that is written with ' for ", so that JSON in C stays readable. */
static inline void data_quoted(struct buf *out, const char *text) {
  for (; *text != '\0'; text++)
    buf_putc(out, *text == '\'' ? '"' : *text);
}

/* JSON written so. */
static inline json_t *data_json(const char *text) {
  buf_auto_t b = {0};
  json_error_t error;
  data_quoted(&b, text);
  json_t *value = json_loads(buf_c(&b), JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
  if (value == NULL)
    fail_msg("test data %s: %s", text, error.text);
  return value;
}

/* Reads rows (DATA_ROWS); numbers and true become texts, as all cells are. */
static inline json_t *data_rows(const char *file) {
  char path[1024];
  (void)snprintf(path, sizeof path, SEGUE_SOURCE_DIR "/tests/data/rows/%s", file);
  json_t *rows = data_load(path);
  if (json_array_size(rows) == 0)
    fail_msg("%s has no rows", path);
  JSON_EACH(rows, i, row) {
    JSON_EACH(row, k, cell) {
      char text[24];
      (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(cell));
      if (json_is_integer(cell))
        json_array_set_new(row, k, json_string(text));
      else if (json_is_boolean(cell))
        json_array_set_new(row, k, json_string(json_is_true(cell) ? "true" : "false"));
    }
  }
  return rows;
}

static inline bool data_next(json_t *rows, size_t *at, const char **cells, size_t count) {
  if (*at == json_array_size(rows)) {
    json_decref(rows);
    return false;
  }
  const json_t *row = json_array_get(rows, (*at)++);
  if (json_array_size(row) > count)
    fail_msg("row %zu has more than %zu cells", *at, count);
  for (size_t i = 0; i < count; i++)
    cells[i] = json_string_value(json_array_get(row, i));
  return true;
}

/* Runs what follows for each row of a file of tests/data/rows, whose cells are the texts
 * `row.NAME`: NULL where it has none. `row.at` counts them from 1. No break out of it. */
typedef const char *data_cell;
#define DATA_ROWS(file, row, ...)                                                                  \
  for (struct {                                                                                    \
         json_t *all_rows;                                                                         \
         size_t at;                                                                                \
         data_cell __VA_ARGS__;                                                                    \
       } row = {.all_rows = data_rows(file)};                                                      \
       data_next(row.all_rows, &row.at, (data_cell *)(void *)((char *)&row + 2 * sizeof(void *)),  \
                 sizeof row / sizeof(data_cell) - 2);)

/* Takes the next piece of a cell that holds several, with | between; false: none is left. */
static inline bool data_piece(data_cell *rest, char piece[256]) {
  if (*rest == NULL)
    return false;
  size_t n = strcspn(*rest, "|");
  (void)snprintf(piece, 256, "%.*s", (int)n, *rest);
  *rest = (*rest)[n] == '|' ? *rest + n + 1 : NULL;
  return true;
}

static inline bool data_true(data_cell cell) {
  return cell != NULL && strcmp(cell, "true") == 0;
}

static inline enum error_class data_class(data_cell name) {
  enum error_class class = CLASS_NONE;
  if (name != NULL && !error_class_from_name(str_from(name), &class))
    fail_msg("there is no class %s", name);
  return class;
}

static inline long data_number(data_cell cell) {
  return cell != NULL ? strtol(cell, NULL, 10) : 0;
}

/* Returns which of the words, separated by a blank, the cell is, from 0; 0 for none. */
static inline unsigned data_among(data_cell cell, const char *words) {
  size_t n = cell != NULL ? strlen(cell) : 0;
  for (unsigned i = 0; cell != NULL && *words != '\0'; i++) {
    size_t length = strcspn(words, " ");
    if (length == n && memcmp(words, cell, n) == 0)
      return i;
    words += length + (words[length] == ' ');
  }
  if (cell != NULL)
    fail_msg("row without a known word: %s", cell);
  return 0;
}

#endif
