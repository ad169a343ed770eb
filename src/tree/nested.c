/* Looks into the repositories below a working tree. */
#include "tree/nested.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void nested_note(struct tree *t, const char *path, const json_t *numbers) {
  json_t *file = json_object();
  json_put(file, "path", json_text(str_from(path)));
  json_object_update((json_t *)file, (json_t *)numbers);
  if (t->below == NULL)
    t->below = json_array();
  json_array_append_new(t->below, file);
}

static bool nested_is_known(const struct tree *t, const char *path) {
  for (size_t i = 0; i < t->nested_count; i++)
    if (strcmp(t->nested[i]->place, path) == 0)
      return true;
  return false;
}

/* Names the folder; false unless a repository begins there. */
static bool begins_there(const struct tree *t, const char *path, struct buf *dir) {
  struct buf git = {0};
  struct stat st;
  buf_printf(dir, "%s/%s", t->top, path);
  buf_printf(&git, "%s/.git", buf_c(dir));
  char *real = realpath(buf_c(dir), NULL);
  bool ok = real != NULL && strcmp(real, buf_c(dir)) == 0 && lstat(buf_c(&git), &st) == 0;
  free(real);
  buf_deinit(&git);
  return ok;
}

void nested_add(struct tree *t, const char *path) {
  char name[32];
  struct buf dir = {0};
  if (t->depth >= LIMIT_TREE_NESTED_DEPTH || t->nested_count >= LIMIT_TREE_NESTED ||
      nested_is_known(t, path) || !begins_there(t, path, &dir)) {
    buf_deinit(&dir);
    return;
  }
  if (t->is_after) {
    nested_note(t, path, NULL);
    buf_deinit(&dir);
    return;
  }
  (void)snprintf(name, sizeof name, "nested-%zu", t->nested_count);
  struct tree *child = tree_new(buf_c(&dir), name, NULL);
  buf_deinit(&dir);
  child->depth = t->depth + 1;
  child->inside = xstrdup(t->private_dir);
  child->place = xstrdup(path);
  for (size_t i = 1; i < ARRAY_LEN(child->skip.folders); i++)
    buf_str(&child->skip.folders[i], buf_view(&t->skip.folders[i]));
  t->nested = xrealloc(t->nested, (t->nested_count + 1) * sizeof *t->nested);
  t->nested[t->nested_count++] = child;
}

/* The file is anybody's, an agent's too: what it names is only looked for. */
void nested_add_modules(struct tree *t) {
  struct buf path = {0}, text = {0};
  struct err err;
  buf_printf(&path, "%s/.gitmodules", t->top);
  struct stat st;
  bool ok = lstat(buf_c(&path), &st) == 0 && S_ISREG(st.st_mode) &&
            file_read(buf_c(&path), LIMIT_REPO_FILE_BYTES, &text, &err);
  struct str rest = buf_view(&text);
  while (ok && rest.n > 0) {
    struct str line = str_trim(str_next_line(&rest));
    const char *is = line.n > 0 ? memchr(line.p, '=', line.n) : NULL;
    if (is == NULL || !str_eq_c(str_trim((struct str){line.p, (size_t)(is - line.p)}), "path"))
      continue;
    struct str value = str_trim((struct str){is + 1, line.n - (size_t)(is + 1 - line.p)});
    buf_clear(&path);
    buf_str(&path, value);
    if (value.n > 0 && !look_skips(&t->skip, t->top, buf_c(&path)))
      nested_add(t, buf_c(&path));
  }
  buf_deinit(&path);
  buf_deinit(&text);
}

/* --- steps --- */

struct tree *nested_current(const struct tree *t) {
  return t->nested_turn ? t->nested[t->nested_at] : NULL;
}

/* Takes over what changed in one that is done. */
static bool nested_take(struct tree *t, const struct tree *child, enum tree_step step) {
  struct stat st;
  size_t i;
  const json_t *file;
  if (step == TREE_FAILED && t->is_after && lstat(child->dir, &st) != 0) {
    nested_note(t, child->place, NULL);
    return true;
  }
  if (step == TREE_FAILED) {
    t->problem = child->problem;
    return false;
  }
  if (!t->is_after)
    return true;
  json_array_foreach(child->changed, i, file) {
    struct buf path = {0};
    buf_printf(&path, "%s/%s", child->place, json_string_value(json_object_get(file, "path")));
    json_auto_t *numbers = json_clone_top(file);
    json_object_del(numbers, "path");
    nested_note(t, buf_c(&path), numbers);
    buf_deinit(&path);
  }
  return true;
}

enum tree_step nested_onward(struct tree *t, enum tree_step step) {
  while (step == TREE_DONE || step == TREE_FAILED) {
    if (t->nested_turn) {
      bool taken = nested_take(t, t->nested[t->nested_at], step);
      t->nested_turn = taken && ++t->nested_at < t->nested_count;
      if (!taken)
        return TREE_FAILED;
    } else if (step == TREE_FAILED) {
      return TREE_FAILED;
    } else {
      t->nested_at = 0;
      t->nested_turn = t->nested_count > 0;
    }
    if (!t->nested_turn)
      return TREE_DONE;
    struct tree *child = t->nested[t->nested_at];
    step = t->is_after ? tree_again(child) : tree_begin(child);
  }
  return step;
}

void nested_deinit(struct tree *t) {
  for (size_t i = 0; i < t->nested_count; i++)
    tree_free(t->nested[i]);
  free(t->nested);
  json_decref(t->below);
}
