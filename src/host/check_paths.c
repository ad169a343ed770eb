/* Marks changed files that are a check's own. */
#include "host/check_paths.h"

#include "base/log.h"
#include "core/checks.h"
#include "evidence/base.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "os/tmpdir.h"

#include <stdlib.h>
#include <string.h>

struct check_marking {
  char *private;
  struct base base;
  bool opened;
  struct file_listing files;
};

static void read_nothing(void *ctx, const struct file_listing *l, const size_t *which, size_t n,
                         struct buf *texts) {
  (void)ctx, (void)l, (void)which, (void)n, (void)texts;
}

/* Puts the path from the tree's top. */
static void path_from_top(const struct check_marking *k, struct str path, struct buf *out) {
  buf_clear(out);
  if (k->opened && k->base.within[0] != '\0')
    buf_printf(out, "%s/", k->base.within);
  buf_str(out, path);
}

/* Says of each file whether it is of this check. New. */
static enum check_file *find_by(struct check_marking *k, const struct movement *m) {
  bool shell = m->argv[0] != NULL && m->argv[1] != NULL && strcmp(m->argv[1], "-c") == 0;
  buf_auto_t line = {0}, folder = {0};
  for (size_t i = shell ? 2 : 0; m->argv[i] != NULL; i++)
    buf_printf(&line, "%s%s", line.n > 0 ? " " : "", m->argv[i]);
  path_from_top(k, m->cwd, &folder);
  while (folder.n > 0 && folder.p[folder.n - 1] == '/')
    folder.p[--folder.n] = '\0';
  const struct check_files_spec spec = {.command = buf_c(&line),
                                        .folder = buf_c(&folder),
                                        .add = json_at(m->check_files, "add"),
                                        .leave = json_at(m->check_files, "not")};
  enum check_file *why = xcalloc(k->files.count + 1, sizeof *why);
  check_files_find(&spec, &k->files, k->opened ? base_read : read_nothing, &k->base, why);
  return why;
}

static void mark_by(struct check_marking *k, const struct movement *m, json_t *files) {
  enum check_file *why = find_by(k, m);
  buf_auto_t path = {0};
  JSON_EACH(files, i, file) {
    path_from_top(k, json_view(json_at(file, "path")), &path);
    const struct listed_file *listed = listing_at(&k->files, buf_view(&path));
    if (listed != NULL && why[listed - k->files.files] != CHECK_FILE_NOT)
      json_put(file, "check", json_string(check_file_name(why[listed - k->files.files])));
  }
  free(why);
}

/* Lists the files as they are in the repository around a folder. False: err says why. */
static bool marking_open(struct check_marking *k, const char *cwd, struct err *err) {
  char tree[BASE_TREE_BYTES];
  k->private = tmpdir_make(err);
  k->opened = k->private != NULL && base_open(&k->base, cwd, k->private, err);
  return k->opened && base_take_all(&k->base, tree, err) &&
         base_list(&k->base, tree, &k->files, err);
}

static void marking_close(struct check_marking *k) {
  struct err err;
  listing_deinit(&k->files);
  base_close(&k->base);
  if (k->private != NULL && !tmpdir_remove(k->private, &err))
    log_warn("%s", err.text);
  free(k->private);
}

json_t *check_paths_list(const char *cwd, const struct movement *m) {
  struct check_marking k = {0};
  struct err err;
  json_t *out = NULL, *files = json_array();
  size_t count = 0;
  if (marking_open(&k, cwd, &err)) {
    enum check_file *why = find_by(&k, m);
    for (size_t i = 0; i < k.files.count; i++)
      if (why[i] != CHECK_FILE_NOT && ++count <= CHECK_PATHS_LISTED)
        json_array_append_new(files, json_pack("{so ss}", "path", json_text(k.files.files[i].path),
                                               "why", check_file_name(why[i])));
    free(why);
    out = json_pack("{sI sO}", "count", (json_int_t)count, "files", files);
  }
  json_decref(files);
  marking_close(&k);
  return out;
}

void check_paths_mark(const char *cwd, const struct workflow *wf, json_t *files) {
  struct check_marking k = {0};
  struct err err;
  if (!marking_open(&k, cwd, &err) && k.opened)
    log_warn("%s", err.text); /* names tell all the same */
  JSON_EACH(files, i, file) { /* one that was removed is in no listing */
    buf_auto_t path = {0};
    path_from_top(&k, json_view(json_at(file, "path")), &path);
    if (listing_at(&k.files, buf_view(&path)) == NULL)
      listing_add(&k.files, buf_view(&path), "100644", STR(""), 0);
    if (check_files_is_cache(buf_view(&path)))
      json_put(file, "cache", json_true());
  }
  for (size_t i = 0; i < wf->movement_count; i++)
    if (wf->movements[i].argv != NULL)
      mark_by(&k, &wf->movements[i], files);
  marking_close(&k);
}
