/* Takes trees of a repository into a private one, and checks them out of it. */
#include "evidence/base.h"

#include "base/memory.h"
#include "format/json_write.h"
#include "git/run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- git in the private repository --- */

struct base_git {
  const char *index; /* a name in the private folder */
  const char *top;   /* the working tree; NULL: none */
  struct str input;
};

/* Runs git there; words end with NULL. The answer is the caller's. */
static bool base_git(const struct base *b, const struct base_git *how, const char *const *words,
                     struct git_answer *answer, struct err *err) {
  static const char *const author[][2] = {{"user.name", "segue"},
                                          {"user.email", "segue@localhost"}};
  buf_auto_t dir = {0}, tree = {0}, index = {0};
  json_auto_t *settings = json_array();
  size_t n = 0;
  buf_printf(&dir, "GIT_DIR=%s", b->folder);
  buf_printf(&tree, "GIT_WORK_TREE=%s", how->top ? how->top : b->folder);
  buf_printf(&index, "GIT_INDEX_FILE=%s/%s", b->folder, how->index ? how->index : "index");
  struct git_ask ask = {.folder = "/", /* the private one may be in a repository */
                        .input = how->input,
                        .extra = {buf_c(&dir), buf_c(&tree), buf_c(&index),
                                  "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"},
                        .settings = settings};
  for (size_t i = 0; i < ARRAY_LEN(author); i++)
    json_array_append_new(settings, json_pack("[ss]", author[i][0], author[i][1]));
  if (how->top != NULL) {
    ask.words[n++] = "-C";
    ask.words[n++] = how->top;
  }
  for (size_t i = 0; words[i] != NULL; i++)
    ask.words[n++] = words[i];
  if (!git_now(&ask, answer, err))
    return false;
  if (answer->exit == 0 && !answer->out.cut)
    return true;
  if (answer->out.cut)
    return err_set(err, ERR_LIMIT, "git %.40s: the tree has too many files", words[0]);
  char what[60];
  print_into(what, sizeof what, "git %.40s", words[0]);
  (void)git_complain(what, answer, err);
  err->code = ERR_CORRUPT; /* something cannot be read */
  return false;
}

#define GIT_WORDS_OF(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool base_did(const struct base *b, const struct base_git *how, const char *const *words,
                     struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  return base_git(b, how, words, &answer, err);
}

/* Does the same for an answer that is an object's id. */
static bool base_id(const struct base *b, const struct base_git *how, const char *const *words,
                    char id[BASE_TREE_BYTES], struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!base_git(b, how, words, &answer, err))
    return false;
  struct str line = str_trim(buf_view(&answer.out));
  print_into(id, BASE_TREE_BYTES, "%.*s", STR_ARG(line));
  return line.n < BASE_TREE_BYTES && line.n >= 40;
}

static void drop_index(const struct base *b, const char *name) {
  buf_auto_t path = {0};
  buf_printf(&path, "%s/%s", b->folder, name);
  (void)unlink(buf_c(&path));
}

static bool write_line(const char *folder, const char *name, int flags, const char *text,
                       struct err *err) {
  buf_auto_t path = {0};
  buf_printf(&path, "%s/%s", folder, name);
  int fd = open(buf_c(&path), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  int number = errno;
  if (fd >= 0)
    (void)close(fd);
  return ok || err_set_errno(err, number, "cannot write %.300s", buf_c(&path));
}

/* Lets the folder's repository use the objects of another one. */
static bool borrow(const char *git_dir, const char *objects_of, struct err *err) {
  buf_auto_t line = {0};
  buf_printf(&line, "%s/objects\n", objects_of);
  return write_line(git_dir, "objects/info/alternates", O_APPEND, buf_c(&line), err);
}

bool base_open(struct base *b, const char *folder, const char *private_dir, struct err *err) {
  char_auto_t *real = realpath(folder, NULL);
  *b = (struct base){0};
  if (real == NULL)
    return err_set_errno(err, errno, "cannot open %.300s", folder);
  if (!repo_enter(real, &b->repo, err))
    return false;
  if (b->repo.common.n == 0 || b->repo.top.n == 0) {
    base_close(b);
    return err_set(err, ERR_NOT_FOUND, "%.300s is in no working tree of git", folder);
  }
  const char *within = real + b->repo.top.n;
  b->within = xstrdup(within[0] == '/' ? within + 1 : within);
  b->folder = xstrdup(private_dir);
  buf_auto_t head = {0};
  buf_printf(&head, "%s/HEAD", private_dir);
  return access(buf_c(&head), F_OK) == 0 ||
         (repo_stand_in(&b->repo, private_dir, false, err) &&
          write_line(private_dir, "info/attributes", O_TRUNC,
                     "* -text -ident !eol !filter !working-tree-encoding\n", err));
}

void base_close(struct base *b) {
  repo_deinit(&b->repo);
  free(b->folder);
  free(b->within);
  *b = (struct base){0};
}

/* --- submodules: their files count as the repository's own --- */

static bool take_files(struct base *b, const struct repo *repo, unsigned depth,
                       char tree[BASE_TREE_BYTES], struct err *err);
static bool tree_of_commit(struct base *b, const struct repo *repo, const char *commit,
                           unsigned depth, char tree[BASE_TREE_BYTES], struct err *err);

/* Puts the files of one submodule in its place. commit: which files; NULL: as they are. */
static bool put_submodule(struct base *b, const struct repo *around, const char *index,
                          const char *path, const char *commit, unsigned depth, struct err *err) {
  const struct base_git how = {.index = index};
  buf_auto_t folder = {0}, prefix = {0}, dot_git = {0};
  char tree[BASE_TREE_BYTES];
  struct repo repo = {0};
  buf_printf(&folder, "%s/%s", buf_c(&around->top), path);
  buf_printf(&dot_git, "%s/.git", buf_c(&folder));
  buf_printf(&prefix, "--prefix=%s/", path);
  if (!base_did(b, &how, GIT_WORDS_OF("update-index", "--force-remove", "--", path), err))
    return false;
  if (access(buf_c(&dot_git), F_OK) != 0)
    return true; /* it is not checked out */
  if (depth == 0)
    return err_set(err, ERR_LIMIT, "%.300s: submodules are nested too deeply", path);
  bool ok = repo_enter(buf_c(&folder), &repo, err) && borrow(b->folder, buf_c(&repo.common), err);
  if (ok && commit != NULL)
    ok = tree_of_commit(b, &repo, commit, depth - 1, tree, err);
  else if (ok)
    ok = take_files(b, &repo, depth - 1, tree, err);
  ok = ok && base_did(b, &how, GIT_WORDS_OF("read-tree", buf_c(&prefix), tree), err);
  repo_deinit(&repo);
  return ok || err_wrap(err, "submodule %.200s", path);
}

static bool put_submodules(struct base *b, const struct repo *repo, const char *index,
                           bool committed, unsigned depth, struct err *err) {
  const struct base_git how = {.index = index};
  AUTO(git_answer_deinit) struct git_answer list = {0};
  if (!base_git(b, &how, GIT_WORDS_OF("ls-files", "--stage", "-z"), &list, err))
    return false;
  for (size_t at = 0; at < list.out.n; at += strlen(list.out.p + at) + 1) {
    const char *entry = list.out.p + at, *path = strchr(entry, '\t');
    char commit[BASE_TREE_BYTES];
    if (path == NULL || sscanf(entry, "160000 %71s", commit) != 1)
      continue;
    if (!put_submodule(b, repo, index, path + 1, committed ? commit : NULL, depth, err))
      return false;
  }
  return true;
}

/* --- trees --- */

/* Files that git knows though it would ignore them are not among those that it adds. */
static bool add_ignored(struct base *b, const struct base_git *how, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer list = {0};
  if (!git_run(how->top, &list, err, "ls-files", "-z", "-i", "-c", "--exclude-standard", NULL))
    return false;
  if (list.exit != 0)
    return git_complain("git ls-files", &list, err);
  struct base_git again = *how;
  again.input = buf_view(&list.out);
  return list.out.n == 0 ||
         base_did(b, &again, GIT_WORDS_OF("update-index", "--add", "--remove", "-z", "--stdin"),
                  err);
}

static bool take_files(struct base *b, const struct repo *repo, unsigned depth,
                       char tree[BASE_TREE_BYTES], struct err *err) {
  char index[32];
  print_into(index, sizeof index, "index.take.%u", depth);
  const struct base_git how = {.index = index, .top = buf_c(&repo->top)};
  drop_index(b, index);
  return base_did(b, &how, GIT_WORDS_OF("add", "-A", "."), err) && add_ignored(b, &how, err) &&
         put_submodules(b, repo, index, false, depth, err) &&
         base_id(b, &how, GIT_WORDS_OF("write-tree"), tree, err);
}

bool base_take_all(struct base *b, char tree[BASE_TREE_BYTES], struct err *err) {
  assert(b->folder != NULL);
  return take_files(b, &b->repo, BASE_DEPTH, tree, err);
}

static bool tree_of_commit(struct base *b, const struct repo *repo, const char *commit,
                           unsigned depth, char tree[BASE_TREE_BYTES], struct err *err) {
  char index[32], name[BASE_TREE_BYTES + 8];
  print_into(index, sizeof index, "index.commit.%u", depth);
  print_into(name, sizeof name, "%s^{tree}", commit);
  const struct base_git how = {.index = index};
  drop_index(b, index);
  return base_did(b, &how, GIT_WORDS_OF("read-tree", name), err) &&
         put_submodules(b, repo, index, true, depth, err) &&
         base_id(b, &how, GIT_WORDS_OF("write-tree"), tree, err);
}

bool base_of_commit(struct base *b, const char *revision, char tree[BASE_TREE_BYTES],
                    struct err *err) {
  buf_auto_t name = {0};
  assert(b->folder != NULL);
  buf_printf(&name, "%s^{commit}", revision);
  char_auto_t *commit = git_line(buf_c(&b->repo.top), err, "rev-parse", "--verify", "--quiet",
                                 "--end-of-options", buf_c(&name), NULL);
  bool is_id = strlen(revision) >= 40 && strspn(revision, "0123456789abcdef") == strlen(revision);
  if (commit == NULL)
    return err_set(err, is_id ? ERR_CORRUPT : ERR_NOT_FOUND, "there is no commit %.200s", revision);
  return tree_of_commit(b, &b->repo, commit, BASE_DEPTH, tree, err);
}

bool base_list(struct base *b, const char *tree, struct file_listing *out, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer list = {0};
  if (!base_git(b, &(struct base_git){0}, GIT_WORDS_OF("ls-tree", "-r", "-l", "-z", tree), &list,
                err))
    return false;
  for (size_t at = 0; at < list.out.n; at += strlen(list.out.p + at) + 1) {
    const char *entry = list.out.p + at, *path = strchr(entry, '\t');
    char mode[8], hash[BASE_TREE_BYTES];
    long size;
    if (path != NULL && sscanf(entry, "%7s %*s %71s %ld", mode, hash, &size) == 3)
      listing_add(out, str_from(path + 1), mode, str_from(hash), size);
  }
  return true;
}

bool base_mix(struct base *b, const char *tree, const struct file_listing *other,
              const struct str *files, size_t count, char out[BASE_TREE_BYTES], struct err *err) {
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  buf_auto_t lines = {0};
  struct base_git how = {.index = "index.mix"};
  drop_index(b, how.index);
  for (int pass = 0; pass < 2; pass++) /* those that go first: a folder may take their place */
    for (size_t i = 0; i < count; i++) {
      const struct listed_file *file = listing_at(other, files[i]);
      if ((file == NULL) == (pass == 0))
        buf_printf(&lines, "%s %.*s\t" STR_FMT "%c", file ? file->mode : "0", (int)strlen(tree),
                   file ? file->hash : zeros, STR_ARG(files[i]), '\0');
    }
  print_into(out, BASE_TREE_BYTES, "%s", tree);
  if (count == 0)
    return true;
  if (!base_did(b, &how, GIT_WORDS_OF("read-tree", tree), err))
    return false;
  how.input = buf_view(&lines);
  return base_did(b, &how, GIT_WORDS_OF("update-index", "-z", "--index-info"), err) &&
         base_id(b, &how, GIT_WORDS_OF("write-tree"), out, err);
}

/* Makes of the copy a repository with one commit, so that git lists its files. */
static bool make_repository(struct base *b, const char *tree, const char *copy, const char *index,
                            struct err *err) {
  buf_auto_t dot_git = {0}, from = {0}, to = {0};
  char commit[BASE_TREE_BYTES];
  buf_printf(&dot_git, "%s/.git", copy);
  buf_printf(&from, "%s/%s", b->folder, index);
  buf_printf(&to, "%s/index", buf_c(&dot_git));
  if (mkdir(buf_c(&dot_git), 0700) != 0)
    return err_set_errno(err, errno, "cannot make %.300s", buf_c(&dot_git));
  if (!repo_stand_in(&b->repo, buf_c(&dot_git), false, err) ||
      !borrow(buf_c(&dot_git), b->folder, err) ||
      !base_id(b, &(struct base_git){0}, GIT_WORDS_OF("commit-tree", tree, "-m", "as it is"),
               commit, err) ||
      !write_line(buf_c(&dot_git), "HEAD", O_TRUNC, commit, err))
    return false;
  return rename(buf_c(&from), buf_c(&to)) == 0 ||
         err_set_errno(err, errno, "cannot move %.300s", buf_c(&from));
}

bool base_check_out(struct base *b, const char *tree, const char *copy, struct err *err) {
  const struct base_git out = {.index = "index.out", .top = copy},
                        back = {.index = "index.back", .top = copy};
  char found[BASE_TREE_BYTES];
  assert(b->folder != NULL);
  drop_index(b, out.index);
  drop_index(b, back.index);
  if (mkdir(copy, 0700) != 0)
    return err_set_errno(err, errno, "cannot make %.300s", copy);
  if (!base_did(b, &out, GIT_WORDS_OF("read-tree", tree), err) ||
      !base_did(b, &out, GIT_WORDS_OF("checkout-index", "-a", "-f", "-q"), err) ||
      !base_did(b, &back, GIT_WORDS_OF("add", "-A", "-f", "."), err) ||
      !base_id(b, &back, GIT_WORDS_OF("write-tree"), found, err))
    return false;
  if (strcmp(found, tree) != 0)
    return err_set(err, ERR_CORRUPT, "the copy is %.12s, and %.12s was recorded", found, tree);
  return make_repository(b, tree, copy, back.index, err);
}

/* --- texts --- */

void base_read(void *ctx, const struct file_listing *l, const size_t *which, size_t n,
               struct buf *texts) {
  struct base *b = ctx;
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t names = {0};
  struct err ignored;
  for (size_t i = 0; i < n; i++)
    buf_printf(&names, "%s\n", l->files[which[i]].hash);
  if (!base_git(b, &(struct base_git){.input = buf_view(&names)},
                GIT_WORDS_OF("cat-file", "--batch"), &answer, &ignored))
    return;
  struct str rest = buf_view(&answer.out);
  for (size_t i = 0; i < n && rest.n > 0; i++) {
    struct str head = str_next_line(&rest);
    const char *space = memrchr(head.p, ' ', head.n);
    long size;
    if (!str_starts(head, l->files[which[i]].hash) || space == NULL ||
        !str_to_long((struct str){space + 1, head.n - (size_t)(space + 1 - head.p)}, &size) ||
        size < 0 || (size_t)size >= rest.n)
      continue; /* it is missing */
    buf_append(&texts[i], rest.p, (size_t)size);
    rest = (struct str){rest.p + size + 1, rest.n - (size_t)size - 1};
  }
}

json_t *base_changes(struct base *b, const char *from, const char *to, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer list = {0};
  if (!base_git(b, &(struct base_git){0},
                GIT_WORDS_OF("diff-tree", "-r", "--numstat", "-z", "--no-renames", "--no-ext-diff",
                             "--no-textconv", from, to),
                &list, err))
    return NULL;
  json_t *files = json_array();
  for (size_t at = 0; at < list.out.n; at += strlen(list.out.p + at) + 1) {
    const char *entry = list.out.p + at, *tab = strchr(entry, '\t');
    const char *path = tab ? strchr(tab + 1, '\t') : NULL;
    long added, removed;
    if (path == NULL)
      continue;
    json_t *file = json_object();
    json_object_set_new(file, "path", json_text(str_from(path + 1)));
    if (sscanf(entry, "%ld\t%ld", &added, &removed) == 2) {
      json_object_set_new(file, "added", json_integer(added));
      json_object_set_new(file, "removed", json_integer(removed));
    }
    json_array_append_new(files, file);
  }
  return files;
}
