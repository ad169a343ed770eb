/* Reads what worktrees a session had, and asks git about them. */
#include "cli/trees/trees.h"

#include "base/log.h"
#include "cli/cli.h"
#include "format/json_object.h"
#include "host/paths.h"
#include "store/brief.h"
#include "store/reader.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the log --- */

struct tree_reading {
  struct trees *t;
  json_t *turns; /* number, as text -> movement */
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
  (void)snprintf(number, sizeof number, "%ld", turn);
  return json_object_get(r->turns, number);
}

static const char *turn_movement(const struct tree_reading *r, long turn) {
  const char *name = json_string_value(json_object_get(turn_start_of(r, turn), "movement"));
  return name ? name : "";
}

static long turn_item(const struct tree_reading *r, long turn) {
  return (long)json_integer_value(json_object_get(turn_start_of(r, turn), "item"));
}

static void take_tree(struct tree_reading *r, const json_t *data, long turn) {
  struct trees *t = r->t;
  t->items = xrealloc(t->items, (t->count + 1) * sizeof *t->items);
  struct tree_item *item = &t->items[t->count++];
  *item = (struct tree_item){.turn = turn,
                             .movement = turn > 0 ? xstrdup(turn_movement(r, turn)) : NULL,
                             .item = turn_item(r, turn),
                             .branch = tree_text(data, "branch"),
                             .base = tree_text(data, "base"),
                             .path = tree_text(data, "path"),
                             .folder = tree_text(data, "folder")};
  if (item->branch && item->base && item->path && item->folder && tree_of(t, turn) == item)
    return;
  t->count--; /* no record of ours */
  free(item->movement);
  free(item->branch);
  free(item->base);
  free(item->path);
  free(item->folder);
}

static void take_workspace(struct tree_reading *r, const json_t *record) {
  struct trees *t = r->t;
  const char *event = json_string_value(json_object_get(record, "event"));
  const json_t *data = json_object_get(record, "data");
  long turn = (long)json_integer_value(json_object_get(record, "turn"));
  json_t *commit = json_object_get(data, "commit");
  if (event != NULL && strcmp(event, "made") == 0)
    take_tree(r, data, turn);
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
  (void)snprintf(t->session, sizeof t->session, "%s", id ? id : "");
  t->cwd = tree_text(json_object_get(record, "config"), "cwd");
  t->task = xstrndup(task ? task : "", task ? strcspn(task, "\r\n") : 0);
  t->source = json_incref(json_object_get(json_object_get(record, "config"), "source"));
}

static void take_tree_record(struct tree_reading *r, const json_t *record) {
  struct str type = json_view(json_object_get(record, "type"));
  char number[24];
  if (str_eq_c(type, "session_start") && r->t->cwd == NULL) {
    take_start(r->t, record);
  } else if (str_eq_c(type, "turn_start")) {
    (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(record, "turn")));
    json_object_set_new(r->turns, number,
                        json_pack("{sO* sO*}", "movement", json_object_get(record, "movement"),
                                  "item", json_object_get(record, "item")));
  } else if (str_eq_c(type, "workspace")) {
    take_workspace(r, record);
  }
}

bool trees_read(struct trees *t, const struct store_ref *ref, struct err *err) {
  static const char *const types[] = {"\"session_start\"", "\"turn_start\"", "\"workspace\""};
  struct tree_reading reading = {t, json_object()};
  struct log_reader r;
  struct str line;
  struct brief brief;
  *t = (struct trees){.commits = json_array(), .owned = store_is_owned(ref)};
  bool ok = brief_read(&brief, ref, err);
  if (ok) {
    (void)snprintf(t->status, sizeof t->status, "%s", brief.status);
    brief_deinit(&brief);
  }
  ok = ok && reader_open(&r, ref, err);
  while (ok && reader_next(&r, &line) && r.whole) {
    bool wanted = false;
    for (size_t i = 0; i < ARRAY_LEN(types) && !wanted; i++)
      wanted = memmem(line.p, line.n, types[i], strlen(types[i])) != NULL;
    json_t *record = wanted ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
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

void trees_deinit(struct trees *t) {
  for (size_t i = 0; i < t->count; i++) {
    free(t->items[i].movement);
    free(t->items[i].branch);
    free(t->items[i].base);
    free(t->items[i].path);
    free(t->items[i].folder);
  }
  free(t->items);
  free(t->cwd);
  free(t->task);
  json_decref(t->source);
  json_decref(t->commits);
  *t = (struct trees){0};
}

static bool worked_on(const struct store_ref *ref, const char *branch) {
  struct trees t;
  struct err err;
  if (!trees_read(&t, ref, &err))
    return false;
  const struct tree_item *own = tree_of(&t, 0);
  bool is = own != NULL && strcmp(own->branch, branch) == 0;
  trees_deinit(&t);
  return is;
}

bool trees_find_branch(const char *branch, const char *logs, struct store_ref *ref,
                       struct err *err) {
  char where[PATHS_BYTES];
  struct store store;
  struct store_id *ids = NULL;
  size_t count = 0;
  bool found = false;
  if (!paths_logs(logs, where, err))
    return false;
  store_at(&store, where);
  if (store_exists(&store) && !store_list(&store, &ids, &count, err))
    return false;
  for (int named = 1; named >= 0 && !found; named--) /* first those whose id it has */
    for (size_t i = 0; i < count && !found; i++)
      if ((strstr(branch, ids[i].id) != NULL) == (named == 1)) {
        store_ref(&store, ids[i].id, ref);
        found = worked_on(ref, branch);
      }
  free(ids);
  return found || err_set(err, ERR_NOT_FOUND, "no session worked on branch %.200s", branch);
}

const struct tree_item *trees_own(const struct trees *t, struct err *err) {
  const struct tree_item *own = tree_of(t, 0);
  if (own == NULL)
    (void)err_set(err, ERR_NOT_FOUND,
                  "session %s has no branch of its own: it worked in %.300s; --workspace worktree "
                  "gives one",
                  t->session, t->cwd);
  return own;
}

/* --- git --- */

static bool ask_git(const char *folder, struct git_answer *answer, struct err *err, va_list words) {
  struct git_ask ask = {.folder = folder};
  const char *word;
  size_t n = 0;
  while ((word = va_arg(words, const char *)) != NULL) {
    assert(n + 1 < GIT_WORDS);
    ask.words[n++] = word;
  }
  return git_now(&ask, answer, err);
}

bool trees_git(const char *folder, struct git_answer *answer, struct err *err, ...) {
  va_list words;
  va_start(words, err);
  bool ok = ask_git(folder, answer, err, words);
  va_end(words);
  return ok;
}

char *trees_line(const char *folder, struct err *err, ...) {
  struct git_answer answer;
  va_list words;
  char *line = NULL;
  va_start(words, err);
  bool ok = ask_git(folder, &answer, err, words);
  va_end(words);
  if (!ok)
    return NULL;
  if (answer.exit == 0) {
    struct str text = str_trim(buf_view(&answer.out));
    line = xstrndup(text.p ? text.p : "", text.n);
  } else {
    struct buf why = {0};
    git_complaint(&answer, &why);
    (void)err_set(err, ERR_INVALID, "git: %.400s", buf_c(&why));
    buf_deinit(&why);
  }
  git_answer_deinit(&answer);
  return line;
}

bool trees_is_dirty(const char *folder) {
  struct git_answer answer;
  struct err err;
  if (!trees_is_there(folder) || !trees_git(folder, &answer, &err, "status", "--porcelain", NULL))
    return false;
  bool dirty = answer.exit == 0 && answer.out.n > 0;
  git_answer_deinit(&answer);
  return dirty;
}

void trees_sign_as_nobody(struct git_ask *ask) {
  static const char *const nobody[] = {"GIT_AUTHOR_NAME=segue", "GIT_AUTHOR_EMAIL=segue@localhost",
                                       "GIT_COMMITTER_NAME=segue",
                                       "GIT_COMMITTER_EMAIL=segue@localhost"};
  struct err err;
  char *mail = trees_line(ask->folder, &err, "config", "user.email", NULL);
  for (size_t i = 0; mail == NULL && i < ARRAY_LEN(nobody); i++)
    ask->extra[i] = nobody[i];
  free(mail);
}

int trees_merge(const char *folder, const char *commit, const char *branch,
                struct git_answer *answer, struct err *err) {
  char message[512];
  struct git_ask ask = {.folder = folder,
                        .words = {"merge", "--no-ff", "--no-edit", "--no-verify",
                                  "--no-verify-signatures", "--quiet", "--no-stat", "-m", message,
                                  commit, NULL}};
  (void)snprintf(message, sizeof message, "Merge %.450s", branch);
  trees_sign_as_nobody(&ask);
  return git_now(&ask, answer, err) ? 0 : -1;
}

bool trees_commit(const char *folder, struct err *err, ...) {
  struct git_ask ask = {.folder = folder, .words = {"commit", "--quiet", "--no-verify"}};
  struct git_answer answer;
  const char *word;
  size_t n = 3;
  va_list words;
  va_start(words, err);
  while ((word = va_arg(words, const char *)) != NULL) {
    assert(n + 1 < GIT_WORDS);
    ask.words[n++] = word;
  }
  va_end(words);
  trees_sign_as_nobody(&ask);
  if (!git_now(&ask, &answer, err))
    return false;
  bool ok = answer.exit == 0;
  struct buf why = {0};
  git_complaint(&answer, &why);
  if (!ok)
    (void)err_set(err, ERR_INVALID, "git commit: %.400s", buf_c(&why));
  buf_deinit(&why);
  git_answer_deinit(&answer);
  return ok;
}

bool trees_is_there(const char *folder) {
  struct stat st;
  return stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
}

bool trees_discard(const struct trees *t, bool branches, struct err *err) {
  bool ok = true;
  for (size_t i = 0; ok && i < t->count; i++) {
    const struct tree_item *item = &t->items[i];
    char *said = NULL;
    if (trees_is_there(item->path)) {
      said = trees_line(t->cwd, err, "worktree", "remove", "--force", "--force", item->path, NULL);
      ok = said != NULL;
      free(said);
    } else { /* git may still know of it */
      free(trees_line(t->cwd, err, "worktree", "prune", NULL));
    }
    struct err ignored;
    if (ok && branches)
      free(trees_line(t->cwd, &ignored, "branch", "-D", "--quiet", "--", item->branch, NULL));
  }
  return ok;
}

/* Other branches that hold its tip: a line each, its own among them. */
bool trees_drop_branch(const struct trees *t, const struct tree_item *item) {
  char ref[512];
  struct err err;
  (void)snprintf(ref, sizeof ref, "refs/heads/%.450s", item->branch);
  char *tip =
      trees_line(t->cwd, &err, "rev-parse", "--verify", "--quiet", "--end-of-options", ref, NULL);
  if (tip == NULL)
    return true; /* it is gone */
  char *holders = trees_line(t->cwd, &err, "for-each-ref", "--contains", tip, "--format=x",
                             "refs/heads", "refs/remotes", "refs/tags", NULL);
  bool others = holders != NULL && strchr(holders, '\n') != NULL;
  free(holders);
  free(tip);
  if (others)
    free(trees_line(t->cwd, &err, "branch", "-D", "--quiet", "--", item->branch, NULL));
  return others;
}

bool trees_sure(const char *question, bool yes, struct err *err) {
  char answer[16] = "";
  if (yes)
    return true;
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return err_set(err, ERR_USAGE, "nobody is there to be asked: give --yes");
  fputs(question, stderr);
  fputs(" [y/N] ", stderr);
  bool said = fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
  return said || err_set(err, ERR_USAGE, "nothing was done");
}
