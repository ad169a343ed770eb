/* The user's configuration: what is read, and what is refused with its place. */

#include "base/memory.h"
#include "host/config.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *dir;

static void make(const char *name) {
  assert_int_equal(mkdir(folder_path(dir, name), 0700), 0);
}

static void put(const char *name, const char *content, size_t n) {
  folder_put(dir, name, (struct str){content, n});
}

static int setup(void **state) {
  (void)state;
  dir = folder_make();
  make("segue");
  return setenv("XDG_CONFIG_HOME", dir, 1);
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

TEST_WITH(setup, teardown, nothing_is_an_empty_configuration) {
  static const char *const texts[] = {"", "\n  \n", NULL};
  struct config c;
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    if (texts[i])
      put("segue/config.yaml", texts[i], strlen(texts[i]));
    else
      (void)unsetenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char_auto_t *kept = home ? strdup(home) : NULL;
    if (texts[i] == NULL)
      (void)unsetenv("HOME");
    assert_true(config_load(&c, &err));
    assert_null(c.provider);
    assert_null(c.model);
    assert_null(c.options);
    assert_null(c.env);
    assert_null(c.templates);
    config_deinit(&c);
    if (kept)
      (void)setenv("HOME", kept, 1);
  }
}

TEST_WITH(setup, teardown, all_keys_are_read) {
  static const char text[] = "# mine\n"
                             "provider: script\n"
                             "model: big-one\n"
                             "options: {temperature: 0.5, seed: 7}\n"
                             "env: [EDITOR, LC_ALL]\n";
  AUTO(config_deinit) struct config c;
  struct err err;
  put("segue/config.yaml", text, sizeof text - 1);
  make("segue/prompts");
  make("segue/prompts/en");
  make("segue/prompts/ja");
  put("segue/prompts/en/execute.md", "mine {task}", 11);
  put("segue/prompts/ja/reask.md", "\xE3\x82\x82\xE3\x81\x86", 6);
  if (!config_load(&c, &err))
    fail_msg("%s", err.text);
  assert_string_equal(c.provider, "script");
  assert_string_equal(c.model, "big-one");
  assert_int_equal(json_integer_value(json_object_get(c.options, "seed")), 7);
  assert_true(json_real_value(json_object_get(c.options, "temperature")) == 0.5);
  assert_string_equal(c.env[0], "EDITOR");
  assert_string_equal(c.env[1], "LC_ALL");
  assert_null(c.env[2]);
  assert_int_equal(json_object_size(c.templates), 2);
  assert_string_equal(json_string_value(json_object_get(c.templates, "en/execute.md")),
                      "mine {task}");
}

TEST_WITH(setup, teardown, mistakes_have_their_place) {
  DATA_ROWS("host/config/mistakes_have_their_place.yaml", row, text, line, column, error) {
    struct config c;
    struct err err = {0};
    put("segue/config.yaml", row.text, strlen(row.text));
    if (config_load(&c, &err))
      fail_msg("%s: accepted", row.text);
    assert_int_equal(err.code, ERR_FILE);
    assert_non_null(strstr(err.file, "config.yaml"));
    if ((int)data_number(row.line) &&
        (err.line != (int)data_number(row.line) || err.column != (int)data_number(row.column)))
      fail_msg("%s: at %d:%d: %s", row.text, err.line, err.column, err.text);
    if (strstr(err.text, row.error) == NULL)
      fail_msg("%s: %s", row.text, err.text);
    config_deinit(&c); /* leaves and accepts a zeroed one */
  }
}

TEST_WITH(setup, teardown, a_template_that_is_no_text) {
  struct config c;
  struct err err = {0};
  make("segue/prompts");
  make("segue/prompts/en");
  put("segue/prompts/en/execute.md", "\xFF\xFE", 2);
  assert_false(config_load(&c, &err));
  assert_non_null(strstr(err.text, "is not UTF-8"));
}

TEST_WITH(setup, teardown, a_file_that_is_too_big) {
  struct config c;
  struct err err = {0};
  char_auto_t *big = malloc(100000);
  memset(big, '#', 100000);
  put("segue/config.yaml", big, 100000);
  assert_false(config_load(&c, &err));
  assert_int_equal(err.code, ERR_LIMIT);
}

/* --- files of prompts/ that replace nothing --- */

TEST_WITH(setup, teardown, overrides_that_replace_nothing) {
  struct err_list warnings = {0};
  overrides_check(&warnings); /* there is no such folder */
  assert_int_equal(warnings.count, 0);
  make("segue/prompts");
  make("segue/prompts/en");
  make("segue/prompts/ja");
  make("segue/prompts/de");
  overrides_check(&warnings);
  assert_int_equal(warnings.count, 1);
  assert_non_null(
      strstr(warnings.items[0].text, "prompts/de replaces no prompt: the languages are"));
  err_list_deinit(&warnings);
  DATA_ROWS("host/config/overrides_that_replace_nothing.yaml", c, file, warning) {
    char name[128];
    print_into(name, sizeof name, "segue/prompts/%s", c.file);
    put(name, "x", 1);
    AUTO(err_list_deinit) struct err_list found = {0};
    overrides_check(&found);
    bool told = found.count == (c.warning ? 2 : 1); /* de/ and this one */
    for (size_t k = 0; k < found.count && c.warning; k++)
      told = told && (strstr(found.items[k].text, c.warning) != NULL ||
                      strstr(found.items[k].text, "prompts/de") != NULL);
    if (!told)
      fail_msg("%s: %zu: %s", c.file, found.count, found.items[found.count - 1].text);
    char path[800];
    print_into(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
  }
}
