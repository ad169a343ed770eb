/* Errors as values: set, placed, wrapped, collected, always within their bounds. */
#include "base/err.h"

#include "base/limits.h"
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

TEST(setting_and_wrapping) {
  struct err err = {.line = 7};
  assert_false(err_set(&err, ERR_LIMIT, "%d is too many", 3));
  assert_int_equal(err.code, ERR_LIMIT);
  assert_int_equal(err.line, 0);
  assert_string_equal(err.text, "3 is too many");
  assert_false(err_wrap(&err, "movement %s", "a"));
  assert_string_equal(err.text, "movement a: 3 is too many");
  assert_int_equal(err.code, ERR_LIMIT);
  assert_false(err_set_at(&err, ERR_FILE, "w.yaml", 3, 9, "no"));
  assert_string_equal(err.file, "w.yaml");
  assert_int_equal(err.line, 3);
  assert_int_equal(err.column, 9);
  assert_false(err_set(NULL, ERR_IO, "nobody asks"));
  assert_false(err_set_at(NULL, ERR_IO, "f", 1, 1, "nobody asks"));
  assert_false(err_wrap(NULL, "nobody"));
  assert_false(err_set_errno(NULL, EIO, "nobody"));
}

TEST(long_texts_are_cut) {
  struct err err = {0};
  char text[3000];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  err_set(&err, ERR_INVALID, "%s", text);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  for (int i = 0; i < 5; i++)
    err_wrap(&err, "%s", text);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  err_set_at(&err, ERR_FILE, text, 1, 1, "%s", text);
  assert_int_equal(strlen(err.file), sizeof err.file - 1);
  err_set_errno(&err, EIO, "%s", text);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

TEST(system_errors_have_codes) {
  static const struct {
    int number;
    enum err_code code;
  } cases[] = {{ENOSPC, ERR_FULL},
               {EDQUOT, ERR_FULL},
               {ENOENT, ERR_NOT_FOUND},
               {EIO, ERR_IO},
               {EACCES, ERR_IO}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct err err = {0};
    assert_false(err_set_errno(&err, cases[i].number, "cannot open %s", "x"));
    assert_int_equal(err.code, cases[i].code);
    assert_memory_equal(err.text, "cannot open x: ", 15);
    assert_true(strlen(err.text) > 15);
  }
}

TEST(a_wrong_word_is_told_with_the_right_ones) {
  static const char *const names[] = {"open", "complete", "abort", NULL};
  struct err err = {0};
  assert_false(err_no_such(&err, "status", STR("complet"), names));
  assert_string_equal(err.text,
                      "there is no status \"complet\": did you mean complete? write open, "
                      "complete or abort");
  assert_int_equal(err.code, ERR_USAGE);
  assert_false(err_no_such(&err, "status", STR("x,y"), names));
  assert_string_equal(err.text, "there is no status \"x,y\": write open, complete or abort");
  assert_false(err_no_such(&err, "status", STR(""), names));
  assert_string_equal(err.text, "an empty word is no status: write open, complete or abort");
  assert_false(err_no_such(NULL, "status", STR("x"), names));
}

TEST(a_list_has_an_end) {
  struct err_list list = {0};
  struct err err;
  for (unsigned i = 0; i < LIMIT_FILE_ERROR_COUNT + 7; i++) {
    err_set(&err, ERR_FILE, "%u", i);
    err_list_add(&list, &err);
  }
  assert_int_equal(list.count, LIMIT_FILE_ERROR_COUNT);
  assert_int_equal(list.dropped, 7);
  assert_string_equal(list.items[3].text, "3");
  err_list_deinit(&list);
  err_list_deinit(&list);
  assert_int_equal(list.count, 0);
}
