/* data.h - test data from YAML or JSON files, and small readers for it. Fails the test on a bad
 * file. */
#ifndef SEGUE_TESTS_DATA_H
#define SEGUE_TESTS_DATA_H

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "format/yaml.h"
#include "support/test.h"

#include <jansson.h>
#include <stdio.h>

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

#endif
