/* Tells where calls left HEAD. */
#include "core/head.h"

#include "base/log.h"
#include "base/utf8.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_DIGITS = 10, HEAD_NAME = 32 };

/* "main (0123456789)" */
static void put_place(const json_t *place, struct buf *out) {
  struct str commit = json_view(json_at(place, "commit"));
  const json_t *branch = json_at(place, "branch");
  struct str name = json_view(branch);
  bool odd = false; /* git allows no such name, but the file may hold anything */
  for (size_t i = 0; i < name.n; i++)
    odd |= (unsigned char)name.p[i] <= ' ';
  bool cut = name.n > HEAD_NAME;
  if (cut)
    name.n = utf8_floor(name.p, HEAD_NAME);
  if (odd || !json_is_string(branch))
    buf_puts(out, odd ? "no branch" : "a detached HEAD");
  else
    buf_safe(out, name, false);
  buf_puts(out, cut && !odd ? "..." : "");
  if (commit.n > 0)
    buf_printf(out, " (%.*s)", (int)(commit.n < HEAD_DIGITS ? commit.n : HEAD_DIGITS), commit.p);
}

static bool is_on_another(const json_t *was, const json_t *is) {
  return was != NULL && !json_same(json_at(was, "branch"), json_at(is, "branch"));
}

void head_tell(const json_t *head, struct buf *out) {
  const json_t *was = json_at(head, "was"), *main = json_at(head, "main");
  const char *work = json_word_at(head, "work");
  size_t began = out->n;
  if (json_word_at(was, "commit")[0] != '\0' && (is_on_another(was, head) || work[0] != '\0')) {
    buf_puts(out, "HEAD is at ");
    put_place(head, out);
    buf_puts(out, ", was at ");
    put_place(was, out);
  } else if (work[0] != '\0') {
    buf_puts(out, "HEAD is at ");
    put_place(head, out);
  }
  if (strcmp(work, "ahead") == 0)
    buf_puts(out, ": the session's branch follows");
  else if (strcmp(work, "rewritten") == 0)
    buf_puts(out, ": commits were rewritten, the session's branch follows");
  else if (strcmp(work, "left_behind") == 0)
    buf_printf(out, ": commits up to %.10s are left behind", json_word_at(head, "lacks"));
  JSON_EACH(json_at(head, "others"), i, place) {
    buf_puts(out, out->n > began ? "; " : "");
    put_place(place, out);
    buf_puts(out, " has commits that HEAD lacks");
  }
  if (main == NULL)
    return;
  buf_puts(out, out->n > began ? "; " : "");
  if (json_same(json_at(head, "main_was"), main)) {
    buf_puts(out, "it wrote to the index of the repository's own tree");
    return;
  }
  bool own = json_is_true(json_at(head, "main_by_call"));
  buf_puts(out, own ? "it changed" : "meanwhile its user changed");
  buf_puts(out, " the repository's own tree, from ");
  put_place(json_at(head, "main_was"), out);
  buf_puts(out, " to ");
  put_place(main, out);
}

bool head_refuses(const struct core *core, const struct turn *turn, struct buf *why) {
  struct str name = core->workflow->movements[turn->movement].name;
  bool left = strcmp(json_word_at(turn->head, "work"), "left_behind") == 0;
  bool own = json_is_true(json_at(turn->head, "main_by_call"));
  if (turn->head_let_be || (!left && !own))
    return false;
  buf_printf(why, "\"" STR_FMT "\": ", STR_ARG(name));
  head_tell(turn->head, why);
  buf_puts(why, left ? "; bring them back" : "; put it back");
  buf_puts(why, ", or resume to go on from here");
  return true;
}

static void head_keep(char **slot, const json_t *text) {
  free(*slot);
  *slot = json_is_string(text) ? xstrdup(json_string_value(text)) : NULL;
}

void head_take(struct core *core, struct turn *turn, const json_t *head) {
  struct worktree *w = core_worktree(core, turn->id);
  const char *work = json_word_at(head, "work");
  if (head == NULL)
    return;
  json_decref(turn->head);
  turn->head = json_incref((json_t *)head);
  if (w == NULL || !w->made)
    w = &core->worktree;
  if (!w->made && w->base == NULL)
    head_keep(&w->base, json_at(json_at(head, "was"), "commit"));
  head_keep(&w->head, json_at(head, "commit"));
  head_keep(&w->on, json_at(head, "branch"));
  w->strays = w->made && (strcmp(work, "ahead") == 0 || strcmp(work, "rewritten") == 0);
}
