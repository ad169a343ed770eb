/* Which log a person means. */

#include "store/store.h"
#include "support/folder.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *dir;

static void put(const char *name, const char *content) {
  folder_put(dir, name, str_from(content));
}

static int setup(void **state) {
  (void)state;
  dir = folder_make();
  put("01990000-0000-7000-8000-00000000aaaa.ndjson", "{}\n");
  put("01990000-0000-7000-8000-00000000bbbb.ndjson", "{}\n");
  put("01991111-0000-7000-8000-000000000000.ndjson", "{}\n");
  put("01999999-0000-7000-8000-000000000000.ndjson", ""); /* had not begun */
  put("01991111-0000-7000-8000-000000000000.ndjson.torn", "x");
  put("notes.ndjson", "x\n");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

static const struct row {
  const char *word, *file; /* file NULL: refused with the text */
  enum err_code code;
  const char *text;
} rows[] = {
    {"last", "01991111-0000-7000-8000-000000000000.ndjson", ERR_NONE, ""},
    {"01991", "01991111-0000-7000-8000-000000000000.ndjson", ERR_NONE, ""},
    {"01991111-0000-7000-8000-000000000000", "01991111-0000-7000-8000-000000000000.ndjson",
     ERR_NONE, ""},
    {"01990000-0000-7000-8000-00000000a", "01990000-0000-7000-8000-00000000aaaa.ndjson", ERR_NONE,
     ""},
    {"0199", NULL, ERR_INVALID, "3 sessions"},
    {"01990000", NULL, ERR_INVALID, "2 sessions"},
    {"", NULL, ERR_INVALID, "3 sessions"},
    {"019999", "01999999-0000-7000-8000-000000000000.ndjson", ERR_NONE, ""},
    {"02", NULL, ERR_NOT_FOUND, "begins with \"02\""},
    {"notes", NULL, ERR_NOT_FOUND, "no session"},
    {"./nowhere", NULL, ERR_NOT_FOUND, "cannot open"},
    {"nowhere.ndjson", NULL, ERR_NOT_FOUND, "cannot open"},
};

TEST_WITH(setup, teardown, words_name_logs) {
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char wanted[512];
    struct store store;
    struct store_ref ref;
    struct err err = {0};
    store_at(&store, dir);
    bool ok = store_find(&store, rows[i].word, &ref, &err);
    if (ok != (rows[i].file != NULL))
      fail_msg("\"%s\": %s", rows[i].word, ok ? ref.name : err.text);
    if (ok) {
      print_into(wanted, sizeof wanted, "%s/%s", dir, rows[i].file);
      assert_string_equal(ref.name, wanted);
      continue;
    }
    if (err.code != rows[i].code || strstr(err.text, rows[i].text) == NULL)
      fail_msg("\"%s\": %s", rows[i].word, err.text);
  }
}

static bool find(const char *where, const char *word, struct store_ref *ref, struct err *err) {
  struct store store;
  store_at(&store, where);
  return store_find(&store, word, ref, err);
}

TEST_WITH(setup, teardown, a_path_is_a_path) {
  char path[512];
  struct store_ref ref;
  struct err err;
  print_into(path, sizeof path, "%s/notes.ndjson", dir);
  assert_true(find("/nowhere", path, &ref, &err));
  assert_string_equal(ref.name, path);
}

/* A file of the working directory, unless an id begins with its name. */
TEST_WITH(setup, teardown, a_word_may_be_a_file) {
  char before[512];
  struct store_ref ref;
  struct err err;
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(dir), 0);
  put("copy", "{}\n");
  put("01991", "{}\n");
  assert_true(find(".", "copy", &ref, &err));
  assert_string_equal(ref.name, "copy");
  assert_true(find("/nowhere", "copy", &ref, &err));
  assert_string_equal(ref.name, "copy");
  assert_true(find(".", "01991", &ref, &err));
  assert_string_equal(ref.name, "./01991111-0000-7000-8000-000000000000.ndjson");
  assert_int_equal(chdir(before), 0);
}

TEST_WITH(setup, teardown, a_folder_that_is_not_there) {
  struct store_ref ref;
  struct err err;
  assert_false(find("/nowhere/logs", "last", &ref, &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, "no session yet"));
}
