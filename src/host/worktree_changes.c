/* Reads which worktrees a session had, and what it changed. */
#include "host/worktree_changes.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "git/repo.h"
#include "host/worktree.h"
#include "os/tmpdir.h"
#include "store/reader.h"
#include "store/summary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the log --- */

struct tree_reading {
  struct trees *t;
  json_t *turns; /* a turn's number, as text -> its movement */
};

static char *tree_text(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? xstrdup(text) : NULL;
}

static struct tree_item *tree_of(const struct trees *t, long turn) {
  for (size_t i = 0; i < t->count; i++)
    if (t->items[i].turn == turn)
      return &t->items[i];
  return NULL;
}

static const json_t *turn_start_of(const struct tree_reading *r, long turn) {
  char number[24];
  print_into(number, sizeof number, "%ld", turn);
  return json_object_get(r->turns, number);
}

static const char *turn_movement(const struct tree_reading *r, long turn) {
  const char *name = json_string_value(json_object_get(turn_start_of(r, turn), "movement"));
  return name ? name : "";
}

static void item_free(struct tree_item *item) {
  free(item->movement);
  free(item->branch);
  free(item->base);
  free(item->path);
  free(item->folder);
  json_decref(item->astray);
}

static void take_tree(struct tree_reading *r, const json_t *data, long turn) {
  struct trees *t = r->t;
  t->items = xrealloc(t->items, (t->count + 1) * sizeof *t->items);
  struct tree_item *item = &t->items[t->count++];
  *item = (struct tree_item){
      .turn = turn,
      .movement = turn > 0 ? xstrdup(turn_movement(r, turn)) : NULL,
      .item = (long)json_integer_value(json_object_get(turn_start_of(r, turn), "item")),
      .branch = tree_text(data, "branch"),
      .base = tree_text(data, "base"),
      .path = tree_text(data, "path"),
      .folder = tree_text(data, "folder")};
  if (item->branch && item->base && item->path && item->folder && tree_of(t, turn) == item)
    return;
  t->count--; /* not a record of ours */
  item_free(item);
}

static void take_workspace(struct tree_reading *r, const json_t *record) {
  struct trees *t = r->t;
  const char *event = json_string_value(json_object_get(record, "event"));
  const json_t *data = json_object_get(record, "data");
  long turn = (long)json_integer_value(json_object_get(record, "turn"));
  json_t *commit = json_object_get(data, "commit");
  if (event != NULL && strcmp(event, "made") == 0)
    take_tree(r, data, turn);
  const json_t *main = json_object_get(data, "main");
  if (turn == 0 && t->remotes == NULL)
    t->remotes = json_incref(json_object_get(data, "remotes"));
  if (turn == 0 && main != NULL && !t->has_main) {
    t->has_main = true;
    t->main = tree_text(main, "branch");
  }
  if (event == NULL || strcmp(event, "committed") != 0 || !json_is_string(commit))
    return;
  json_t *entry = json_pack("{sI ss sO}", "turn", (json_int_t)turn, "movement",
                            turn_movement(r, turn), "commit", commit);
  if (turn > 0 && tree_of(t, turn) != NULL)
    json_object_set_new(entry, "of", json_integer(turn));
  json_array_append_new(t->commits, entry);
}

static void take_start(struct trees *t, const json_t *record) {
  const char *task = json_string_value(json_object_get(record, "task"));
  const char *id = json_string_value(json_object_get(record, "session"));
  print_into(t->session, sizeof t->session, "%s", id ? id : "");
  t->cwd = tree_text(json_object_get(record, "config"), "cwd");
  t->task = xstrndup(task ? task : "", task ? strcspn(task, "\r\n") : 0);
  const json_t *config = json_object_get(record, "config");
  t->config = json_incref(json_object_get(record, "config"));
  t->source = json_incref(json_object_get(config, "source"));
  t->left_out = worktree_left_out(json_object_get(record, "workflow"), config);
}

static void take_tree_record(struct tree_reading *r, const json_t *record) {
  struct str type = json_view(json_object_get(record, "type"));
  char number[24];
  if (str_eq_c(type, "session_start") && r->t->cwd == NULL) {
    take_start(r->t, record);
  } else if (str_eq_c(type, "carried")) {
    print_into(r->t->parent, sizeof r->t->parent, "%s",
               json_word_at(json_object_get(record, "parent"), "session"));
    r->t->carried = (long)json_int_at(json_object_get(record, "state"), "turns");
  } else if (str_eq_c(type, "turn_start")) {
    print_into(number, sizeof number, "%" JSON_INTEGER_FORMAT,
               json_integer_value(json_object_get(record, "turn")));
    json_object_set_new(r->turns, number,
                        json_pack("{sO* sO*}", "movement", json_object_get(record, "movement"),
                                  "item", json_object_get(record, "item")));
  } else if (str_eq_c(type, "workspace")) {
    take_workspace(r, record);
  } else if (str_eq_c(type, "call_end")) {
    const json_t *head = json_object_get(record, "head"), *others = json_object_get(head, "others");
    struct tree_item *item = tree_of(r->t, (long)json_int_at(record, "turn"));
    item = item ? item : tree_of(r->t, 0);
    if (item != NULL && others != NULL && item->astray == NULL)
      item->astray = json_array();
    if (item != NULL && others != NULL)
      json_array_extend(item->astray, (json_t *)others);
    if (r->t->base == NULL)
      r->t->base = tree_text(json_object_get(head, "was"), "commit");
    JSON_EACH(json_object_get(record, "files"), i, file) {
      json_t *path = json_object_get(file, "path");
      bool there = !json_is_string(path);
      JSON_EACH(r->t->paths, k, known)
        there = there || json_same(known, path);
      if (there)
        continue;
      if (json_array_size(r->t->paths) < LIMIT_TREE_PATH_COUNT)
        json_array_append(r->t->paths, path);
      else
        r->t->more_paths = true;
    }
  }
}

/* Returns true if the line may be about trees. Others are not parsed, because answers are long. */
static bool tells_of_trees(struct str line) {
  static const char *const types[] = {"\"session_start\"", "\"carried\"",  "\"turn_start\"",
                                      "\"workspace\"",     "\"files\":[{", "\"was\":{",
                                      "\"others\":[{"};
  for (size_t i = 0; i < ARRAY_LEN(types); i++)
    if (memmem(line.p, line.n, types[i], strlen(types[i])) != NULL)
      return true;
  return false;
}

bool trees_read(struct trees *t, const struct store_ref *ref, struct err *err) {
  struct tree_reading reading = {t, json_object()};
  struct log_reader r;
  struct str line;
  struct summary summary;
  *t = (struct trees){
      .ref = *ref, .commits = json_array(), .paths = json_array(), .owned = store_is_owned(ref)};
  bool ok = summary_read(&summary, ref, err);
  if (ok) {
    print_into(t->status, sizeof t->status, "%s", summary.status);
    summary_deinit(&summary);
  }
  ok = ok && reader_open(&r, ref, err);
  while (ok && reader_next(&r, &line) && r.whole) {
    json_t *record = tells_of_trees(line) ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
    take_tree_record(&reading, record);
    json_decref(record);
  }
  if (ok)
    reader_close(&r);
  json_decref(reading.turns);
  if (ok && t->cwd == NULL)
    ok = err_set(err, ERR_INVALID, "its log does not say where it worked");
  if (!ok)
    trees_deinit(t);
  return ok;
}

bool trees_read_parent(const struct trees *t, struct trees *parent) {
  enum { FORKS = 64 }; /* a forged log may name itself */
  struct store store;
  struct store_ref ref;
  struct err ignored;
  *parent = (struct trees){0};
  if (t->parent[0] == '\0' || t->forks == FORKS)
    return false;
  store_of(&t->ref, &store);
  store_ref(&store, t->parent, &ref);
  if (!trees_read(parent, &ref, &ignored))
    return false;
  parent->forks = t->forks + 1;
  for (size_t i = parent->count; i-- > 0;)
    if (parent->items[i].turn > t->carried) {
      item_free(&parent->items[i]);
      parent->items[i] = parent->items[--parent->count];
    }
  if (parent->carried > t->carried)
    parent->carried = t->carried;
  return true;
}

void trees_deinit(struct trees *t) {
  for (size_t i = 0; i < t->count; i++)
    item_free(&t->items[i]);
  free(t->items);
  json_decref(t->remotes);
  free(t->cwd);
  free(t->task);
  json_decref(t->config);
  free(t->main);
  free(t->base);
  json_decref(t->source);
  json_decref(t->commits);
  json_decref(t->paths);
  json_decref(t->left_out);
  *t = (struct trees){0};
}

const struct tree_item *trees_own(const struct trees *t, struct err *err) {
  const struct tree_item *own = tree_of(t, 0);
  if (own == NULL)
    err_set(err, ERR_NOT_FOUND,
            "session %s has no branch of its own: it worked in %.300s; --workspace worktree "
            "gives one",
            t->session, t->cwd);
  return own;
}

/* --- the diff --- */

void trees_where(const struct trees *t, const struct tree_item *item, struct work_where *where) {
  *where = (struct work_where){.session = t->session,
                               .repo = t->cwd,
                               .worktree = item->path,
                               .branch = item->branch,
                               .base = item->base,
                               .astray = item->astray,
                               .left_out = t->left_out};
}

/* Copies the index, so that new files can be made known to git without a change to its own. */
static bool make_index(struct tree_diff *d, struct err *err) {
  buf_auto_t from = {0}, name = {0}, bytes = {0};
  struct repo repo;
  struct err none;
  if (d->to[0] != '\0' || d->index != NULL || d->more)
    return true;
  char *real = realpath(d->folder, NULL);
  bool found = real != NULL && repo_find(real, &repo);
  free(real);
  if (!found) /* git says so */
    return true;
  buf_printf(&from, "%s/index", buf_c(&repo.git_dir));
  repo_deinit(&repo);
  bool there = access(buf_c(&from), F_OK) == 0;
  if (there && !file_read(buf_c(&from), LIMIT_TREE_INDEX_BYTES, &bytes, &none)) {
    d->more = true; /* then new files are not shown */
    return true;
  }
  d->own = tmpdir_make(err);
  if (d->own == NULL)
    return false;
  buf_printf(&name, "GIT_INDEX_FILE=%s/index", d->own);
  d->index = buf_take(&name);
  return !there || file_write_new(d->index + strlen("GIT_INDEX_FILE="), buf_view(&bytes), err);
}

void tree_diff_of(struct tree_diff *d, const struct trees *t, const struct tree_item *item) {
  bool there = file_is_folder(item->path);
  *d = (struct tree_diff){.folder = there ? item->path : t->cwd, .left_out = t->left_out};
  print_into(d->from, sizeof d->from, "%s", item->base);
  if (!there)
    print_into(d->to, sizeof d->to, "refs/heads/%s", item->branch);
}

bool tree_diff_begin(struct tree_diff *d, const struct trees *t, struct err *err) {
  const struct tree_item *own = tree_of(t, 0);
  size_t commits = json_array_size(t->commits);
  bool files = json_array_size(t->paths) > 0;
  *d = (struct tree_diff){.folder = t->cwd};
  *err = (struct err){0};
  if (own != NULL) {
    tree_diff_of(d, t, own);
  } else if (commits > 0 && (!files || t->more_paths)) {
    print_into(d->from, sizeof d->from, "%.64s^",
               json_word_at(json_array_get(t->commits, 0), "commit"));
    print_into(d->to, sizeof d->to, "%.64s",
               json_word_at(json_array_get(t->commits, commits - 1), "commit"));
  } else if (files) {
    print_into(d->from, sizeof d->from, "HEAD");
    d->paths = t->paths;
    d->relative = true;
  } else {
    return false;
  }
  if (own == NULL && t->base != NULL)
    print_into(d->from, sizeof d->from, "%s", t->base);
  return make_index(d, err);
}

/* Sets what git is asked: these words, then `--` and the paths. */
static void ask_there(const struct tree_diff *d, const char *const *words, struct git_ask *ask) {
  size_t n = 0;
  *ask = (struct git_ask){.folder = d->folder, .extra = {"GIT_LITERAL_PATHSPECS=1", d->index}};
  for (; words[n] != NULL; n++)
    ask->words[n] = words[n];
  ask->words[n++] = "--";
  JSON_EACH(d->paths, i, path)
    ask->words[n++] = json_string_value(path);
}

bool tree_diff_next(struct tree_diff *d, struct git_ask *ask) {
  static const char *const list[] = {"ls-files", "--others", "--exclude-standard", "-z", NULL};
  if (d->index == NULL || d->added)
    return false;
  if (!d->listed) {
    ask_there(d, list, ask);
    return true;
  }
  *ask = (struct git_ask){
      .folder = d->folder,
      .words = {"add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul", NULL},
      .extra = {"GIT_LITERAL_PATHSPECS=1", d->index},
      .input = buf_view(&d->fresh)};
  d->added = true;
  return d->fresh.n > 0;
}

void tree_diff_take(struct tree_diff *d, const struct git_answer *answer) {
  size_t count = 0;
  bool added = d->listed; /* that was the answer */
  d->listed = true;
  d->more = d->more || answer->exit != 0 || answer->out.cut;
  for (size_t at = 0; !added && at < answer->out.n;) {
    struct str name = {answer->out.p + at, strnlen(answer->out.p + at, answer->out.n - at)};
    bool skip = str_ends(name, "/"); /* a repository of its own */
    JSON_EACH(d->left_out, i, known) {
      struct str rest = name;
      skip =
          skip || (str_drop(&rest, json_string_value(known)) && (rest.n == 0 || rest.p[0] == '/'));
    }
    if (!skip && ++count <= LIMIT_TREE_TOLD)
      buf_append(&d->fresh, name.p, name.n + 1);
    at += name.n + 1;
  }
  d->more = d->more || count > LIMIT_TREE_TOLD;
}

void tree_diff_ask(const struct tree_diff *d, const char *const *options, struct git_ask *ask) {
  const char *words[16] = {"diff", "--no-ext-diff", "--no-textconv"};
  size_t n = 3;
  while (*options != NULL)
    words[n++] = *options++;
  if (d->relative)
    words[n++] = "--relative";
  words[n++] = "--end-of-options";
  words[n++] = d->from;
  if (d->to[0] != '\0')
    words[n++] = d->to;
  ask_there(d, words, ask);
}

bool tree_diff_now(struct tree_diff *d, const char *const *options, struct git_answer *answer,
                   struct err *err) {
  struct git_ask ask;
  if (!make_index(d, err))
    return false;
  while (tree_diff_next(d, &ask)) {
    AUTO(git_answer_deinit) struct git_answer before = {0};
    if (!git_now(&ask, &before, err))
      return false;
    tree_diff_take(d, &before);
  }
  tree_diff_ask(d, options, &ask);
  return git_now(&ask, answer, err);
}

void tree_diff_deinit(struct tree_diff *d) {
  struct err ignored;
  if (d->own != NULL)
    (void)!tmpdir_remove(d->own, &ignored);
  free(d->own);
  free(d->index);
  buf_deinit(&d->fresh);
  *d = (struct tree_diff){0};
}

bool trees_take_diff(const struct git_answer *answer, size_t from, size_t max, struct buf *out) {
  struct str text = buf_view(&answer->out);
  if (answer->exit != 0 || from >= text.n)
    return false;
  text = (struct str){text.p + from, text.n - from};
  bool cut = text.n > max;
  if (cut) {
    const char *last = memrchr(text.p, '\n', max);
    text.n = last != NULL ? (size_t)(last + 1 - text.p) : max;
  }
  buf_str(out, text);
  return cut;
}
