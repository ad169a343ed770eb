/* Which log a person means. */

#include "store/store.h"
#include "support/data.h"
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

TEST_WITH(setup, teardown, words_name_logs) {
  DATA_ROWS("store/find/words_name_logs.yaml", c, word, file, code, text) {
    char wanted[512];
    struct store store;
    struct store_ref ref;
    struct err err = {0};
    store_at(&store, dir);
    bool ok = store_find(&store, c.word, &ref, &err);
    if (ok != (c.file != NULL))
      fail_msg("\"%s\": %s", c.word, ok ? ref.name : err.text);
    if (ok) {
      print_into(wanted, sizeof wanted, "%s/%s", dir, c.file);
      assert_string_equal(ref.name, wanted);
      continue;
    }
    if (err.code !=
            data_among(c.code, "none usage file not_found io full locked corrupt limit invalid") ||
        strstr(err.text, c.text) == NULL)
      fail_msg("\"%s\": %s", c.word, err.text);
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
