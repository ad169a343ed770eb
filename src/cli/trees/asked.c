/* Reads what a session that asks has changed so far. */
#include "cli/trees/asked.h"

#include "cli/trees/trees.h"

#include <string.h>

enum { ASKED_PATHS = 12 };

/* Whole lines of it. */
static void asked_take(struct str text, struct buf *out, bool *cut) {
  *cut = text.n > ASKED_DIFF_BYTES;
  if (*cut) {
    const char *last = memrchr(text.p, '\n', ASKED_DIFF_BYTES);
    text.n = last != NULL ? (size_t)(last + 1 - text.p) : 0;
  }
  buf_str(out, text);
}

void asked_diff(const struct store_ref *ref, const json_t *files, struct buf *out, bool *cut) {
  struct trees t = {0};
  struct err ignored;
  struct git_answer answer;
  size_t i, n = 7;
  const json_t *file;
  *cut = false;
  if (json_array_size(files) == 0 || !trees_read(&t, ref, &ignored))
    return;
  const struct tree_item *own = trees_own(&t, &ignored);
  bool there = own != NULL && trees_is_there(own->path);
  struct git_ask ask = {.folder = there ? own->path : t.cwd,
                        .words = {"diff", "--no-ext-diff", "--no-textconv", "--no-color",
                                  "--relative", there ? own->base : "HEAD", "--"},
                        .extra = {"GIT_LITERAL_PATHSPECS=1"}};
  json_array_foreach((json_t *)files, i, file) {
    const char *path = json_string_value(json_object_get(file, "path"));
    if (path != NULL && n < 7 + ASKED_PATHS)
      ask.words[n++] = path;
    else
      *cut = true;
  }
  bool more = *cut;
  if (n > 7 && ask.folder != NULL && git_now(&ask, &answer, &ignored)) {
    if (answer.exit == 0)
      asked_take(buf_view(&answer.out), out, cut);
    git_answer_deinit(&answer);
  }
  *cut = *cut || more;
  trees_deinit(&t);
}
