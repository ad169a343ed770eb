/* Which files are a check's: small trees, a command, and what must come out. */
#include "evidence/check_files.h"
#include "support/data.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files in a text: NAME or NAME+x, "|" and the content; ";" between files. */
static const char *texts_of[64];

static void tree_of(const char *files, struct file_listing *l, struct arena *a) {
  for (struct str rest = str_from(files); rest.p != NULL && rest.n > 0;) {
    struct str text = str_cut(&rest, ';'), name = str_cut(&text, '|');
    bool executable = str_ends(name, "+x");
    name.n -= executable ? 2 : 0;
    texts_of[l->count] = arena_strndup(a, text.p ? text.p : "", text.n);
    listing_add(l, name, executable ? "100755" : "100644", STR("1234"), (long)text.n);
  }
}

static void read_texts(void *ctx, const struct file_listing *l, const size_t *which, size_t n,
                       struct buf *texts) {
  (void)ctx, (void)l;
  for (size_t i = 0; i < n; i++)
    buf_puts(&texts[i], texts_of[which[i]]);
}

TEST(files_of_a_check_are_found) {
  DATA_ROWS("evidence/check_files/files_of_a_check_are_found.yaml", r, command, folder, add, leave,
            files, wanted) {
    AUTO(listing_deinit) struct file_listing l = {0};
    AUTO(arena_deinit) struct arena a = {0};
    buf_auto_t got = {0};
    json_auto_t *add = json_array(), *leave = json_array();
    if (r.add != NULL)
      json_array_append_new(add, json_string(r.add));
    if (r.leave != NULL)
      json_array_append_new(leave, json_string(r.leave));
    const struct check_files_spec spec = {
        .command = r.command, .folder = r.folder, .add = add, .leave = leave};
    tree_of(r.files, &l, &a);
    enum check_file why[64];
    check_files_find(&spec, &l, read_texts, NULL, why);
    for (size_t k = 0; k < l.count; k++)
      if (why[k] != CHECK_FILE_NOT)
        buf_printf(&got, "%s%s", got.n > 0 ? " " : "", l.files[k].path.p);
    if (strcmp(buf_c(&got), r.wanted) != 0)
      fail_msg("row %zu (%s): %s", r.at, r.command, buf_c(&got));
  }
}

TEST(a_check_that_was_not_there_is_told_from_one_that_fails) {
  DATA_ROWS("evidence/check_files/a_check_that_was_not_there_is_told_from_one_that_fails.yaml", c,
            command, files, output, missed) {
    AUTO(listing_deinit) struct file_listing l = {0};
    AUTO(arena_deinit) struct arena a = {0};
    const struct check_files_spec spec = {.command = c.command, .folder = ""};
    tree_of(c.files, &l, &a);
    if (check_files_missed(&spec, &l, str_from(c.output)) != data_true(c.missed))
      fail_msg("row %zu", c.at);
  }
}
