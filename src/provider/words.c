/* Reads the table of words and finds the row that fits. */
#include "provider/words.h"

#include "base/log.h"
#include "base/resource.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "schema/pattern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_BYTES = 300, TEXT_BYTES = 64 * 1024, ROWS = 1000 };

struct words_table {
  json_t *document; /* owns the texts of the rows */
  struct words_row *rows;
  size_t count;
};

static struct words_table users, shipped;

static void words_free(struct words_table *table) {
  for (size_t i = 0; i < table->count; i++)
    pattern_free(table->rows[i].pattern);
  free(table->rows);
  json_decref(table->document);
  *table = (struct words_table){0};
}

static bool words_read_row(struct words_row *row, const json_t *keys, struct err *err) {
  static const char *const known[] = {"class", "match", "code", "weak", "alone",
                                      "lasts", "until", "from", "seen", NULL};
  struct str match = json_view_at(keys, "match");
  struct pattern_error why = {0};
  JSON_MEMBERS(keys, key, value) {
    (void)value;
    if (!str_is_one(str_from(key), known))
      return err_set(err, ERR_INVALID,
                     "unknown key \"%.40s\": use class, match, code, weak, alone, "
                     "lasts, until, from or seen",
                     key);
  }
  if (!error_class_from_name(json_view_at(keys, "class"), &row->class))
    return err_set(err, ERR_INVALID, "class must be a class of errors, such as quota or auth");
  row->codes = json_object_get(keys, "code");
  row->weak = json_is_true(json_object_get(keys, "weak"));
  row->alone = json_is_true(json_object_get(keys, "alone"));
  row->lasts = json_is_true(json_object_get(keys, "lasts"));
  row->until = json_string_value(json_object_get(keys, "until"));
  if ((match.n == 0) != (row->codes != NULL))
    return err_set(err, ERR_INVALID,
                   "it needs match, a regular expression, or code, a list of words");
  if (match.n > 0 && pattern_compile(match.p, match.n, &row->pattern, &why) != PATTERN_OK)
    return err_set(err, ERR_INVALID, "match is not a regular expression: %s", why.text);
  return true;
}

static bool words_read(struct words_table *table, const json_t *rows, size_t *at, struct err *err) {
  words_free(table);
  *at = 0;
  if (rows != NULL && (!json_is_array(rows) || json_array_size(rows) > ROWS))
    return err_set(err, ERR_INVALID, "words must be a list of {class: CLASS, match: PATTERN}");
  *table = (struct words_table){.document = json_incref((json_t *)rows),
                                .rows = xcalloc(json_array_size(rows) + 1, sizeof *table->rows)};
  for (; *at < json_array_size(rows); ++*at, table->count++)
    if (!words_read_row(&table->rows[*at], json_array_get(rows, *at), err)) {
      words_free(table);
      return false;
    }
  return true;
}

bool words_take(const json_t *rows, size_t *at, struct err *err) {
  return words_read(&users, rows, at, err);
}

static void words_read_shipped(void) {
  const struct resource *r = resource_find("provider/words.json");
  struct err err;
  size_t at;
  assert(r != NULL);
  json_auto_t *rows = json_loadb(r->p, r->n, 0, NULL);
  if (!words_read(&shipped, rows, &at, &err))
    BUG("words.yaml, row %zu: %s", at + 1, err.text);
}

/* Appends the text in small letters, with one kind of apostrophe. */
static void words_fold(struct str text, struct buf *out) {
  static const char curly[] = "\xe2\x80\x99";
  bool valid;
  text.n = text.n < TEXT_BYTES ? text.n : utf8_floor(text.p, TEXT_BYTES);
  valid = utf8_valid(text.p, text.n);
  for (size_t i = 0; i < text.n; i++) {
    if (text.n - i >= 3 && memcmp(text.p + i, curly, 3) == 0) {
      buf_putc(out, '\'');
      i += 2;
    } else {
      buf_putc(out, valid || (unsigned char)text.p[i] < 0x80 ? str_lower(text.p[i]) : ' ');
    }
  }
}

static bool words_has_code(const json_t *codes, struct str lines) {
  while (lines.n > 0) {
    struct str line = str_trim(str_next_line(&lines));
    JSON_EACH(codes, i, code)
      if (str_eq(line, json_view(code)))
        return true;
  }
  return false;
}

/* Returns the first row of a table that fits the codes, or that fits the text where there are
 * none. */
static const struct words_row *words_in(const struct words_table *table, struct str codes,
                                        struct str text, const struct words_row *like,
                                        unsigned skip) {
  const struct words_row *found = NULL;
  struct pattern_scratch scratch = {0};
  for (size_t i = 0; i < table->count && found == NULL; i++) {
    const struct words_row *row = &table->rows[i];
    if (row->weak != like->weak || row->alone != like->alone || (skip & 1u << row->class))
      continue;
    if (row->codes != NULL && words_has_code(row->codes, codes))
      found = row;
    else if (row->codes == NULL && text.n > 0 &&
             pattern_match(row->pattern, &scratch, text.p, text.n) == PATTERN_MATCH)
      found = row;
  }
  pattern_scratch_deinit(&scratch);
  return found;
}

static const struct words_row *words_fit(struct str codes, struct str text,
                                         const struct words_row *like, unsigned skip) {
  buf_auto_t folded_codes = {0}, folded = {0};
  if (shipped.rows == NULL)
    words_read_shipped();
  words_fold(codes, &folded_codes);
  words_fold(text, &folded);
  const struct words_row *found =
      words_in(&users, buf_view(&folded_codes), buf_view(&folded), like, skip);
  return found ? found : words_in(&shipped, buf_view(&folded_codes), buf_view(&folded), like, skip);
}

const struct words_row *words_find(struct str codes, struct str text, bool weak, unsigned skip) {
  return words_fit(codes, text, &(struct words_row){.weak = weak}, skip);
}

const struct words_row *words_report(struct str answer) {
  answer = str_trim(answer);
  if (answer.n == 0 || answer.n > REPORT_BYTES || memchr(answer.p, '\n', answer.n) != NULL)
    return NULL;
  return words_fit(STR(""), answer, &(struct words_row){.alone = true}, 0);
}
