/* Files that stand in for others while calls run. */
#include "provider/placeholder.h"

#include "support/folder.h"
#include "support/test.h"

static bool is_there(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0;
}

TEST(last_call_removes_it) {
  char *dir = folder_make();
  const char *path = folder_path(dir, "commondir");
  struct placeholder *one = NULL, *two = NULL;
  placeholder_add(&one, path, STR(".\n"));
  placeholder_add(&two, path, STR(".\n"));
  stand_ins_free(one);
  assert_true(is_there(path));
  stand_ins_free(two);
  assert_false(is_there(path));
  folder_remove(dir);
}

TEST(left_one_is_removed_later) {
  char *dir = folder_make();
  const char *path = folder_path(dir, "commondir");
  struct placeholder *one = NULL;
  folder_put(dir, "commondir", STR(".\n")); /* as by a process that was killed */
  placeholder_add(&one, path, STR(".\n"));
  stand_ins_free(one);
  assert_false(is_there(path));
  folder_remove(dir);
}

TEST(others_stay) {
  char *dir = folder_make();
  const char *texts[] = {"../..\n", "a text that is longer"};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    struct placeholder *one = NULL;
    folder_put(dir, "commondir", str_from(texts[i]));
    placeholder_add(&one, folder_path(dir, "commondir"), STR(".\n"));
    assert_null(one);
    assert_true(is_there(folder_path(dir, "commondir")));
  }
  folder_remove(dir);
}

/* A link leads nowhere, and a program that changed the file keeps what it wrote. */
TEST(odd_ones) {
  char *dir = folder_make();
  const char *link = folder_path(dir, "link"), *path = folder_path(dir, "file");
  struct placeholder *one = NULL;
  assert_int_equal(symlink("elsewhere", link), 0);
  placeholder_add(&one, link, STR(""));
  assert_null(one);
  assert_false(is_there(folder_path(dir, "elsewhere")));
  placeholder_add(&one, path, STR(""));
  assert_non_null(one);
  folder_write(path, STR("set"));
  stand_ins_free(one);
  assert_true(is_there(path));
  folder_remove(dir);
}
