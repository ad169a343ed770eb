/* Workflow files to documents: every data file, and hostile files. */
#include "workflow/load.h"

#include "base/limits.h"

#include "core/keys.h"
#include "core/workflow.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/load.h"
#include "support/test.h"
#include "support/workflow_data.h"

static struct workflow_source source_of(const char *path) {
  return (struct workflow_source){
      .path = path,
      .project_facets = WORKFLOW_DATA "/project",
      .home_facets = WORKFLOW_DATA "/home",
      .user_facets = WORKFLOW_DATA "/user",
      .named_by_user = strstr(path, "_found.") == NULL,
  };
}

static void load_one(const char *path, struct buf *out) {
  struct err_list errors = {0};
  const struct workflow_source source = source_of(path);
  json_auto_t *doc = workflow_load(&source, &errors);
  assert_int_equal(doc == NULL, errors.count > 0);
  list_errors(&errors, "", out);
  err_list_deinit(&errors);
  if (doc == NULL)
    return;
  char *text = json_dumps(doc, JSON_INDENT(1));
  buf_puts(out, text);
  buf_putc(out, '\n');
  free(text);
  struct err err = {0}; /* what loads can be built, but for where its rules lead */
  struct workflow *wf = workflow_build(doc, &err);
  if (wf == NULL)
    fail_msg("%s: %s", path, err.text);
  workflow_unref(wf);
}

TEST(files_load_as_expected) {
  assert_int_equal(run_workflow_data("load", load_one), 0);
}

TEST(the_stages_to_list_are_the_listable_ones) {
  const char *const *words = key_find(&judge_keys, STR("stages"))->words;
  for (int i = 0; i < STAGE_COUNT; i++)
    if (judge_stage_is_listable((enum judge_stage)i))
      assert_string_equal(*words++, judge_stage_name((enum judge_stage)i));
  assert_null(*words);
}

/* --- files made on the spot --- */

static char *dir;

static int make_dir(void **state) {
  (void)state;
  dir = folder_make();
  return 0;
}

static int remove_dir(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

static const char *in_dir(const char *name) {
  return folder_path(dir, name);
}

static void write_file(const char *name, const char *p, size_t n) {
  folder_put(dir, name, (struct str){p, n});
}

static void refused(const char *name, const char *message) {
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct workflow_source source = {.path = in_dir(name), .named_by_user = true};
  assert_null(workflow_load(&source, &errors));
  assert_true(errors.count > 0);
  if (strstr(errors.items[0].text, message) == NULL)
    fail_msg("%s: %s", name, errors.items[0].text);
}

TEST(what_is_no_file_is_refused) {
  refused("missing.yaml", "No such file");
  assert_int_equal(mkdir(in_dir("folder.yaml"), 0700), 0);
  refused("folder.yaml", "is a folder, not a file");
  assert_int_equal(mkfifo(in_dir("fifo.yaml"), 0600), 0);
  refused("fifo.yaml", "is a device or pipe"); /* and does not hang */
  assert_int_equal(symlink("/dev/zero", in_dir("zero.yaml")), 0);
  refused("zero.yaml", "is a device or pipe");
  write_file("binary.yaml",
             "\x7f"
             "ELF\0\1\2",
             7);
  refused("binary.yaml", "not a text file");
  write_file("latin1.yaml", "name: caf\xe9\n", 11);
  refused("latin1.yaml", "not UTF-8");
}

TEST(sizes_are_bounded) {
  buf_auto_t text = {0};
  while (text.n <= LIMIT_WORKFLOW_BYTES)
    buf_puts(&text, "# a long comment, a long comment, a long comment, a long comment\n");
  write_file("big.yaml", text.p, text.n);
  refused("big.yaml", "larger than");
  buf_clear(&text);
  buf_puts(&text, "name: w\nmovements:\n");
  for (int i = 0; i <= (int)LIMIT_MOVEMENT_COUNT; i++)
    buf_printf(&text, "- {name: m%d, rules: [{condition: x, next: COMPLETE}]}\n", i);
  write_file("many.yaml", text.p, text.n);
  refused("many.yaml", "movements has more than 1000 entries");
  buf_clear(&text);
  buf_puts(&text, "name: w\nmovements:\n- name: a\n  rules:\n");
  for (int i = 0; i <= (int)LIMIT_RULE_COUNT; i++)
    buf_puts(&text, "  - {condition: x, next: COMPLETE}\n");
  write_file("rules.yaml", text.p, text.n);
  refused("rules.yaml", "rules has more than 100 entries");
  buf_clear(&text);
  buf_puts(&text, "name: w\n");
  for (int i = 0; i < 60; i++)
    buf_printf(&text, "wrong%d: 1\n", i);
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct workflow_source source = {.path = "w", .text = text.p, .n = text.n};
  assert_null(workflow_load(&source, &errors));
  assert_int_equal(errors.count, LIMIT_FILE_ERROR_COUNT);
  assert_int_equal(errors.dropped, 61 - LIMIT_FILE_ERROR_COUNT);
}

TEST(facet_files_are_only_read_where_they_may_be) {
  struct buf huge = {0};
  while (huge.n <= LIMIT_FACET_BYTES)
    buf_puts(&huge, "0123456789abcdef");
  write_file("huge.md", huge.p, huge.n);
  buf_deinit(&huge);
  write_file("nul.md", "a\0b", 3);
  write_file("latin1.md", "\xe9", 1);
  assert_int_equal(symlink("/etc/passwd", in_dir("link.md")), 0);
  assert_int_equal(symlink("/etc", in_dir("linked")), 0);
  assert_int_equal(mkfifo(in_dir("pipe.md"), 0600), 0);
  assert_int_equal(mkdir(in_dir("folder.md"), 0700), 0);
  assert_int_equal(mkdir(in_dir("personas"), 0700), 0);
  assert_int_equal(symlink("/etc/passwd", in_dir("personas/stolen.md")), 0);
  DATA_ROWS("workflow/load/facet_files_are_only_read_where_they_may_be.yaml", c, value, message) {
    char text[256];
    int n =
        snprintf(text, sizeof text,
                 "name: w\nmovements:\n- name: a\n  persona: %s\n  rules: [{condition: x, next: "
                 "COMPLETE}]\n",
                 c.value);
    write_file("w.yaml", text, (size_t)n);
    refused("w.yaml", c.message);
  }
}

/* The persona that a workflow at `file` below `root` names, in the arena of nobody: freed by the
 * caller; NULL: it does not load, and `why` is its first error. */
static char *persona_of(char *root, const char *file, const char *value, struct err *why) {
  char text[256];
  AUTO(err_list_deinit) struct err_list errors = {0};
  print_into(text, sizeof text,
             "name: w\nmovements:\n- name: a\n  persona: %s\n  instruction: Do it.\n"
             "  rules: [{condition: x, next: COMPLETE}]\n",
             value);
  folder_put(root, file, str_from(text));
  const struct workflow_source source = {.path = folder_path(root, file), .named_by_user = true};
  json_auto_t *doc = workflow_load(&source, &errors);
  char *persona = NULL;
  if (doc == NULL)
    *why = errors.items[0];
  else
    persona = strdup(json_string_value(
        json_object_get(json_array_get(json_object_get(doc, "movements"), 0), "persona")));
  return persona;
}

TEST(facets_lie_above_a_folder_of_workflows) {
  char *root = folder_make();
  folder_put(root, ".takt/personas/coder.md", STR("a coder\n"));
  folder_put(root, ".takt/facets/personas/tester.md", STR("a tester\n"));
  folder_put(root, "secret.md", STR("secret\n"));
  folder_put(root, "open/personas/coder.md", STR("somebody's\n"));
  assert_int_equal(symlink("../secret.md", folder_path(root, ".takt/link.md")), 0);
  assert_int_equal(chmod(folder_path(root, "open"), 0777), 0);
  DATA_ROWS("workflow/load/facets_lie_above_a_folder_of_workflows.yaml", c, file, value, text,
            error) {
    struct err why = {0};
    char_auto_t *persona = persona_of(root, c.file, c.value, &why);
    if (c.text != NULL && persona == NULL)
      fail_msg("%s %s: %s", c.file, c.value, why.text);
    if (c.text != NULL)
      assert_string_equal(persona, c.text);
    else if (persona != NULL || strstr(why.text, c.error) == NULL)
      fail_msg("%s %s: %s", c.file, c.value, persona ? persona : why.text);
  }
  folder_remove(root);
}

TEST(facets_of_a_file_are_bounded_together) {
  buf_auto_t text = {0};
  write_file("large.txt", "x y", 3);
  struct buf large = {0};
  while (large.n < 200000)
    buf_puts(&large, "some words here ");
  write_file("large.txt", large.p, large.n);
  buf_deinit(&large);
  buf_puts(&text, "name: w\nmovements:\n- name: a\n  rules: [{condition: x, next: COMPLETE}]\n"
                  "  knowledge: [large.txt");
  for (int i = 0; i < 50000; i++)
    buf_puts(&text, ", large.txt");
  buf_puts(&text, "]\n");
  write_file("sum.yaml", text.p, text.n);
  refused("sum.yaml", "bytes together: shorten them");
}

TEST_GROUP(make_dir, remove_dir)
