/* Takes the making of a worktree, or a commit, through its steps, and tells the session. */
#include "host/worktree.h"

#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "core/movement_limits.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "git/git.h"
#include "git/repo.h"
#include "git/serve.h"
#include "git/submodules.h"
#include "git/work.h"
#include "host/paths.h"
#include "host/session.h"
#include "host/worktree_changes.h"
#include "provider/child.h"
#include "provider/provider.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A job is a list of steps, each one run of git. */
struct git_job {
  struct list_node in_session;
  struct session *session;
  worktree_over over;
  void (*then)(struct session *s, long turn, worktree_over over); /* instead of telling; or NULL */
  long turn;                                                      /* the child's, or 0 */
  const struct git_step *steps;
  size_t at;
  unsigned tries;
  size_t item; /* index in a step that is repeated */
  struct git git;
  struct err err;
  char *source; /* where the session works without a worktree */
  char *branch, *base, *path, *prefix, *message, *session_id;
  struct repo repo; /* repository of `source` */
  struct submodules *submodules;
  bool listed, exists, has_branch, has_name, has_lfs, staged, found;
  char *commit, *head, *on;
  struct buf names, ignored; /* left out, ./NAME and NUL each; those that git ignores by itself */
  struct buf links;          /* submodules, each with a NUL behind it */
  struct tree_setup {        /* of what a new worktree needs before its first call */
    struct arena arena;
    json_t *words;     /* see core_worktree_setup; or NULL */
    const char *entry; /* where what it keeps lies; NULL: nowhere */
    bool trusted;      /* begins at a commit that the user has, so that it may be kept */
    bool brought;      /* nothing is run: it was there */
    size_t at;         /* the next command */
    int64_t ms;
    struct provider_run *run;
    struct provider_env env;
    struct call_request request;
    json_t *sandbox, *links;
    struct buf told, failure;
  } setup;
  long number;  /* the turn whose work is committed */
  bool remakes; /* the worktree was there before: worktree_again */
  bool again;   /* may have been asked for before a crash */
  bool cancelled;
  json_t *adopted; /* the outcome of following HEAD */
  json_t *remotes; /* addresses by name */
};

/* In a step `ask` fills in what to run; false: there is nothing to run. `take` reads the answer;
 * false: err is set. Without it, what is named by `must` has to succeed; NULL: that does not
 * matter. A list ends with a step whose `ask` is NULL. */
struct git_step {
  bool (*ask)(struct git_job *job, struct git_ask *ask);
  bool (*take)(struct git_job *job, const struct git_answer *answer);
  const char *must;
};

enum { GIT_LIST_STEP = 2 }; /* index in git_make_steps of the step that lists worktrees */

/* --- what steps share --- */

static bool has_file(const char *folder, const char *name) {
  buf_auto_t path = buf_of("%s/%s", folder, name);
  return access(buf_c(&path), F_OK) == 0;
}

/* Returns a setting of the session's worktrees; borrowed, or NULL. */
static const json_t *git_job_setting(const struct git_job *job, const char *name) {
  return core_worktree_setting(job->session->core.config, name);
}

/* Returns false, with git's own words. */
static bool git_job_complain(struct git_job *job, const char *what,
                             const struct git_answer *answer) {
  buf_auto_t text = {0};
  git_complaint(answer, &text);
  err_set(&job->err, ERR_INVALID, "%.200s: %.280s", what, buf_c(&text));
  return false;
}

/* Returns the output without its one newline; owned. */
static char *git_line_of(const struct git_answer *answer) {
  size_t n = answer->out.n;
  if (n > 0 && answer->out.p[n - 1] == '\n')
    n--;
  return xstrndup(buf_c(&answer->out), n);
}

/* --- making a worktree --- */

static bool ask_base(struct git_job *job, struct git_ask *ask) {
  char *commit = NULL;
  if (asprintf(&commit, "%s^{commit}", job->base) < 0)
    BUG("out of memory");
  free(job->base);
  job->base = commit;
  GIT_ASK_SET(ask, job->source, "rev-parse", "--verify", "--quiet", "--end-of-options", job->base);
  return true;
}

static bool take_base(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit == 0) {
    free(job->base);
    job->base = git_line_of(answer);
    return true;
  }
  if (answer->err.n > 0)
    return git_job_complain(job, "workspace: worktree needs a git repository", answer);
  job->base[strlen(job->base) - strlen("^{commit}")] = '\0';
  if (strcmp(job->base, "HEAD") != 0)
    return err_set(&job->err, ERR_INVALID, "the base %.300s is not a commit here", job->base);
  return err_set(&job->err, ERR_INVALID,
                 "a worktree starts at a commit, but the repository of %.300s has none yet: commit "
                 "something first",
                 job->source);
}

static bool ask_prefix(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, job->source, "rev-parse", "--show-prefix");
  return true;
}

static bool take_prefix(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit != 0)
    return git_job_complain(job, "git rev-parse --show-prefix", answer);
  job->prefix = git_line_of(answer);
  size_t n = strlen(job->prefix);
  if (n > 0 && job->prefix[n - 1] == '/')
    job->prefix[n - 1] = '\0';
  return true;
}

static bool choose_path(struct git_job *job) {
  char folder[PATHS_BYTES];
  const char *set = json_string_value(git_job_setting(job, "folder"));
  struct buf path = {0};
  if (set == NULL && !paths_state("worktrees", folder, &job->err))
    return false;
  buf_printf(&path, "%s/%s", set ? set : folder, job->session_id);
  if (job->turn > 0)
    buf_printf(&path, "-%ld", job->turn);
  job->path = buf_take(&path);
  const char *top = buf_c(&job->repo.top);
  bool inside = job->repo.top.n > 0 && strncmp(job->path, top, strlen(top)) == 0 &&
                job->path[strlen(top)] == '/';
  struct stat st;
  job->exists = lstat(job->path, &st) == 0;
  const struct worktree *was = job->remakes ? core_worktree(&job->session->core, job->turn) : NULL;
  if (was != NULL && (job->exists || strcmp(job->path, was->path) != 0))
    return err_set(&job->err, ERR_NOT_FOUND, "%.300s is not where a worktree would be made again",
                   was->path);
  if (!utf8_valid(job->path, strlen(job->path)))
    return err_set(
        &job->err, ERR_INVALID,
        "the folder of worktrees is not UTF-8, so no log could name it: name another one "
        "with workspace: {folder: DIR} in config.yaml");
  return !inside || err_set(&job->err, ERR_INVALID,
                            "the worktree would be in the repository's own tree: %.300s: name "
                            "another folder with workspace: {folder: DIR} in config.yaml",
                            job->path);
}

static bool ask_list(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, job->source, "worktree", "list", "--porcelain", "-z");
  return true;
}

static bool take_list(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit != 0)
    return git_job_complain(job, "git worktree list", answer);
  if (!choose_path(job))
    return false;
  for (size_t at = 0; at < answer->out.n; at += strlen(answer->out.p + at) + 1) {
    struct str entry = str_from(answer->out.p + at);
    job->listed |= str_starts(entry, "worktree ") && strcmp(entry.p + 9, job->path) == 0;
  }
  return true;
}

/* Removes what a crash left: the files first, so that git then removes what it knows of them. */
static bool ask_remove_files(struct git_job *job, struct git_ask *ask) {
  ask->other = true;
  GIT_ASK_SET(ask, "/", "rm", "-rf", "--", job->path);
  return job->exists;
}

static bool ask_remove(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, job->source, "worktree", "remove", "--force", "--force", job->path);
  return job->listed;
}

/* In its own worktree, and on its own branch, only the session is at work. */
static void git_drop_branch_lock(const struct git_job *job, const struct repo *repo) {
  buf_auto_t ref = buf_of("refs/heads/%s", job->branch);
  if (job->again && strstr(job->branch, job->session_id) != NULL)
    git_drop_lock(buf_c(&repo->common), buf_c(&ref));
}

static bool ask_branch(struct git_job *job, struct git_ask *ask) {
  char *ref = NULL;
  if (asprintf(&ref, "refs/heads/%s", job->branch) < 0)
    BUG("out of memory");
  git_drop_branch_lock(job, &job->repo);
  free(job->head);
  job->head = ref;
  GIT_ASK_SET(ask, job->source, "rev-parse", "--verify", "--quiet", "--end-of-options", job->head);
  return true;
}

/* Takes an existing branch if its name has the session's own id: it is from before a crash. */
static bool take_branch(struct git_job *job, const struct git_answer *answer) {
  job->has_branch = answer->exit == 0;
  if (!job->has_branch)
    return true;
  if (!job->remakes && strstr(job->branch, job->session_id) == NULL)
    return err_set(&job->err, ERR_INVALID,
                   "the branch %.300s exists already: put {id} into branch:, or name another one",
                   job->branch);
  free(job->base);
  job->base = git_line_of(answer);
  return true;
}

/* git fills the tree afterwards, when its own file `.git` is right: below. */
static bool ask_add(struct git_job *job, struct git_ask *ask) {
  const char *filled = job->git.programs ? "--checkout" : "--no-checkout";
  if (!job->git.programs && !repo_make_worktrees(&job->repo, &job->err))
    return false;
  if (job->has_branch)
    GIT_ASK_SET(ask, job->source, "worktree", "add", "--quiet", filled, job->path, job->branch);
  else
    GIT_ASK_SET(ask, job->source, "worktree", "add", "--quiet", filled, "--no-track", "-b",
                job->branch, job->path, job->base);
  return true;
}

static bool take_add(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit != 0)
    return git_job_complain(job, "git worktree add", answer);
  return job->git.programs || repo_worktree_made(&job->repo, job->path, &job->err);
}

static bool ask_fill(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, job->path, "reset", "--hard", "--quiet");
  return !job->git.programs;
}

/* Merges without a commit. The tree then has both sides, with git's marks where they conflict: the
 * session's first call finds them, and its commit is the merge. */
static bool ask_merge(struct git_job *job, struct git_ask *ask) {
  const json_t *merge = git_job_setting(job, "merge");
  if (merge == NULL || job->turn > 0 || job->remakes)
    return false;
  GIT_ASK_SET(ask, job->path, "merge", "--no-commit", "--no-ff", "--quiet", "--no-verify",
              "--no-stat", json_string_value(merge));
  return true;
}

/* Leaves a note of the merge, so that a movement that integrates may finish it too. */
static void note_merge(const struct git_job *job) {
  AUTO(repo_deinit) struct repo repo = {0};
  if (!repo_find(job->path, &repo))
    return;
  buf_auto_t path = buf_of("%s/" GIT_SEGUE_MERGE, buf_c(&repo.git_dir));
  FILE *file = fopen(buf_c(&path), "we");
  if (file != NULL) {
    (void)fputs(GIT_SEGUE_MERGE_CONFLICT, file);
    (void)fclose(file);
  }
}

static bool take_merge(struct git_job *job, const struct git_answer *answer) {
  bool conflict = answer->exit == 1 && answer->err.n == 0;
  if (answer->exit != 0 && !conflict)
    return git_job_complain(job, "git merge", answer);
  note_merge(job);
  return true;
}

/* Stays at its step until all submodules are there. A child begins where agents have worked. */
static bool ask_submodules(struct git_job *job, struct git_ask *ask) {
  if (!json_is_true(git_job_setting(job, "submodules")))
    return false;
  if (job->submodules == NULL)
    job->submodules =
        submodules_check_out(job->source, job->path, job->turn == 0 ? job->base : NULL);
  return submodules_next(job->submodules, ask);
}

static bool take_submodules(struct git_job *job, const struct git_answer *answer) {
  job->at--;
  return submodules_take(job->submodules, answer, &job->err);
}

/* Returns whether the path below the folder leads through folders only. A link could be made by the
 * repository, and lead anywhere. */
static bool has_plain_way(const char *folder, const char *path) {
  buf_auto_t part = {0};
  struct stat st;
  bool ok = true;
  for (const char *at = path + strlen(folder) + 1;
       ok && (at = strchr(at, '/')) != NULL && at[1] != '\0'; at++) {
    buf_clear(&part);
    buf_append(&part, path, (size_t)(at - path));
    ok = lstat(buf_c(&part), &st) == 0 && S_ISDIR(st.st_mode);
  }
  return ok;
}

/* Sets the paths of a file that git does not have and of its copy. Returns false if there is
 * nothing to copy. */
static bool file_paths(const struct git_job *job, const char *name, struct buf *from,
                       struct buf *to) {
  struct stat st;
  buf_printf(from, "%s/%s", job->repo.top.n > 0 ? buf_c(&job->repo.top) : job->source, name);
  buf_printf(to, "%s/%s", job->path, name);
  while (buf_c(to)[to->n - 1] == '/') /* a link cannot be made there */
    to->p[--to->n] = '\0';
  return lstat(buf_c(from), &st) == 0 && has_plain_way(job->path, buf_c(to)) &&
         lstat(buf_c(to), &st) != 0;
}

/* Copies one entry, and stays at its step until all are copied. */
static bool ask_copy(struct git_job *job, struct git_ask *ask) {
  const json_t *names = git_job_setting(job, "copy");
  for (; job->item < json_array_size(names); job->item++) {
    struct buf from = {0}, to = {0};
    bool wanted = file_paths(job, json_string_value(json_array_get(names, job->item)), &from, &to);
    free(job->commit);
    free(job->head);
    job->commit = buf_take(&from);
    job->head = buf_take(&to);
    if (!wanted)
      continue;
    ask->other = true;
    GIT_ASK_SET(ask, "/", "cp", "-a", "--", job->commit, job->head);
    return true;
  }
  return false;
}

static bool take_copy(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit != 0)
    return git_job_complain(job, "workspace: copy", answer);
  job->item++;
  job->at--;
  return true;
}

static bool link_files(struct git_job *job, struct git_ask *ask) {
  const json_t *names = git_job_setting(job, "link");
  (void)ask;
  JSON_EACH(names, i, name) {
    buf_auto_t from = {0}, to = {0};
    if (file_paths(job, json_string_value(name), &from, &to) &&
        symlink(buf_c(&from), buf_c(&to)) != 0)
      err_set_errno(&job->err, errno, "workspace: link: %.200s", buf_c(&to));
  }
  return false;
}

/* --- setting it up --- */

static void find_repository(const char *folder, struct repo *repo) {
  char_auto_t *real = realpath(folder, NULL);
  struct err none; /* the first step says what is missing */
  if (!repo_enter(real ? real : folder, repo, &none))
    *repo = (struct repo){0};
}

/* Adds the names of what is kept to a command for the worktree. False: the folder of one is a link,
 * which may lead anywhere, or there is none. */
static bool setup_put_kept(struct git_job *job, struct git_ask *ask, size_t at) {
  const json_t *names = json_object_get(job->setup.words, "keep");
  bool ok = job->setup.entry != NULL && !job->setup.brought;
  JSON_EACH(names, i, name) {
    ask->words[at + i] = json_string_value(name);
    ask->words[at + i + 1] = NULL;
    ok = ok && has_plain_way(job->path, arena_printf(&job->setup.arena, "%s/%s", job->path,
                                                     json_string_value(name)));
  }
  return ok;
}

static bool ask_setup_key(struct git_job *job, struct git_ask *ask) {
  const struct core *core = &job->session->core;
  json_decref(job->setup.words);
  job->setup.words = core_worktree_setup(core->workflow->doc, core->config);
  GIT_ASK_SET(ask, job->path, "ls-files", "--stage", "-z", "--");
  JSON_EACH(json_object_get(job->setup.words, "key"), i, key) {
    ask->words[4 + i] = arena_printf(&job->setup.arena, ":(top,glob)%s", json_string_value(key));
    ask->words[5 + i] = NULL;
  }
  return json_object_get(job->setup.words, "keep") != NULL;
}

/* Results are kept for others only if the commands ran what the user has: children, and
 * sessions on a branch of an agent's, run an agent's files. */
static bool take_setup_key(struct git_job *job, const struct git_answer *answer) {
  char folder[PATHS_BYTES], hash[SHA256_HEX];
  buf_auto_t text = {0};
  struct repo_head users;
  if (answer->exit != 0)
    return git_job_complain(job, "setup: key", answer);
  if (!paths_state("setup", folder, &job->err))
    return false;
  char_auto_t *words = json_dump_text(job->setup.words, JSON_SORT_KEYS | JSON_COMPACT);
  buf_printf(&text, "%s\n%s\n", buf_c(&job->repo.common), words);
  sha256_hex(text.p, text.n, answer->out.p, answer->out.n, hash);
  job->setup.entry = arena_printf(&job->setup.arena, "%s/%s", folder, hash);
  repo_read_head(&job->repo, &users);
  job->setup.trusted = job->turn == 0 && strcmp(job->base, users.commit) == 0;
  return true;
}

/* Asks to copy what was kept, unless git, a copy or a link has it already. */
static bool ask_setup_bring(struct git_job *job, struct git_ask *ask) {
  ask->other = true;
  GIT_ASK_SET(ask, job->path, "sh", "-c",
              "e=$1; shift; i=0; touch -c -- \"$e\" && [ -e \"$e\" ] || exit\n"
              "for p; do p=${p%/}; [ ! -e \"$p\" ] && [ ! -L \"$p\" ] || exit; done\n"
              "for p; do [ ! -e \"$e/$i\" ] || cp -a --reflink=auto -T -- \"$e/$i\" \"${p%/}\" ||\n"
              "{ rm -rf -- \"$@\"; exit 1; }; i=$((i + 1)); done",
              "sh", job->setup.entry);
  return setup_put_kept(job, ask, 5);
}

static bool take_setup_bring(struct git_job *job, const struct git_answer *answer) {
  job->setup.brought = answer->exit == 0;
  return true;
}

static struct str setup_end(struct str text) {
  size_t at = text.n > LIMIT_SETUP_TEXT_BYTES ? text.n - LIMIT_SETUP_TEXT_BYTES : 0;
  at = utf8_ceil(text.p, text.n, at);
  return (struct str){text.p + at, text.n - at};
}

static const char *setup_command(const struct git_job *job) {
  return json_string_value(json_array_get(json_object_get(job->setup.words, "run"), job->setup.at));
}

static void job_next(struct git_job *job);
static void job_over(struct git_job *job);

/* A worktree that could not be set up is removed: no record would tell of it, so nobody else
 * would. */
static bool ask_undo(struct git_job *job, struct git_ask *ask) {
  (void)ask_remove(job, ask);
  return true;
}

static bool ask_undo_branch(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, job->source, "branch", "-D", "--quiet", "--", job->branch);
  return !job->has_branch;
}

static bool ask_undone(struct git_job *job, struct git_ask *ask) {
  (void)ask;
  return err_set(&job->err, ERR_INVALID, "setup failed");
}

static const struct git_step git_undo_steps[] = {
    {ask_undo, NULL, NULL}, {ask_undo_branch, NULL, NULL}, {ask_undone, NULL, NULL}, {0}};

/* Goes on after one command. */
static void on_setup(void *ctx, struct call_result *result) {
  struct git_job *job = ctx;
  struct tree_setup *setup = &job->setup;
  struct str output = str_trim(buf_view(&result->text.bytes));
  if (result->class != CLASS_NONE)
    output = str_from(result->message);
  setup->run = NULL;
  setup->ms += result->duration_ms;
  buf_printf(&setup->told, "$ %s\n" STR_FMT "\n", setup_command(job), STR_ARG(output));
  if (result->class != CLASS_NONE || result->exit != 0) {
    job->steps = git_undo_steps;
    job->at = 0;
    buf_printf(&setup->failure, "setup: %.200s ended with %d:\n" STR_FMT, setup_command(job),
               result->exit, STR_ARG(setup_end(output)));
  }
  call_result_deinit(result);
  setup->at++;
  if (job->cancelled)
    job_over(job);
  else
    job_next(job);
}

/* Runs the next command, if there is one, as the workflow's own programs are run or, where those
 * inherit nothing, as an agent's program would be: what it runs is the repository's. */
static bool ask_setup_run(struct git_job *job, struct git_ask *ask) {
  static const struct held held = {.edits = true, .run = HELD_RUN_ANY};
  static const struct capability agents = {.name = "setup", .held = &held};
  struct tree_setup *setup = &job->setup;
  const struct session *s = job->session;
  const json_t *config = s->core.config;
  const struct provider_sink sink = {.done = on_setup, .ctx = job};
  struct repo main = {0};
  if (setup_command(job) == NULL || setup->brought)
    return false;
  find_repository(s->env.cwd, &main);
  const char *top = main.top.n > 0 ? buf_c(&main.top) : s->env.cwd;
  GIT_ASK_SET(ask, "/", "env", arena_printf(&setup->arena, "SEGUE_WORKTREE=%s", job->path),
              arena_printf(&setup->arena, "SEGUE_MAIN=%s", top), "sh", "-c", setup_command(job));
  repo_deinit(&main);
  const char **argv = arena_array(&setup->arena, 7, sizeof *argv);
  memcpy(argv, ask->words, 7 * sizeof *argv);
  json_decref(setup->sandbox);
  json_decref(setup->links);
  setup->links = json_pack("[s]", "."); /* SEGUE_MAIN is read */
  bool inherits = json_object_get(json_object_get(config, "sandbox"), "inherited") != NULL;
  setup->sandbox = sandbox_of_call(config, NULL, inherits ? NULL : &agents, inherits);
  setup->env = s->env;
  setup->env.cwd = job->path;
  setup->env.secrets = json_object_get(config, "secrets");
  setup->env.sandbox = json_object_get(config, "sandbox");
  setup->env.links = setup->links;
  setup->env.own_folders = s->own_folders;
  uint64_t ms = (uint64_t)limits_duration_ms(json_view_at(setup->words, "timeout"), LIMIT_SETUP_MS);
  setup->request = (struct call_request){.session = job->session_id,
                                         .turn = job->turn,
                                         .call = -1 - job->turn,
                                         .attempt = 1,
                                         .argv = argv,
                                         .edit = true,
                                         .timeout_ms = ms,
                                         .stall_ms = ms,
                                         .gates = true,
                                         .sandbox = setup->sandbox};
  setup->run = provider_command.ops->start(&provider_command, &setup->env, &setup->request, &sink);
  return true;
}

/* Asks to keep what the commands made, and removes what was used least. */
static bool ask_setup_keep(struct git_job *job, struct git_ask *ask) {
  ask->other = true;
  GIT_ASK_SET(
      ask, job->path, "sh", "-c",
      "e=$1; t=$e.$$; most=$2; count=$3; shift 3; i=0; mkdir -- \"$t\" || exit\n"
      "for p; do p=${p%/}; [ ! -e \"$p\" ] || [ -L \"$p\" ] ||\n"
      "cp -a --reflink=auto -T -- \"$p\" \"$t/$i\" || break; i=$((i + 1)); done\n"
      "[ $i = $# ] && [ \"$(du -sk \"$t\" | cut -f1)\" -le $most ] && mv -T -- \"$t\" \"$e\"\n"
      "rm -rf -- \"$t\"; cd -- \"${e%/*}\" || exit\n"
      "ls -t | tail -n +$((count + 1)) | xargs -r rm -rf --\n"
      "find . -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf -- {} +",
      "sh", job->setup.entry, arena_printf(&job->setup.arena, "%d", LIMIT_SETUP_KEPT_KIB),
      arena_printf(&job->setup.arena, "%d", LIMIT_SETUP_KEPT_COUNT));
  return setup_put_kept(job, ask, 7) && job->setup.trusted;
}

static void put_setup(const struct tree_setup *setup, json_t *data) {
  if (setup->brought)
    json_object_set_new(data, "setup", json_pack("{sb}", "cached", 1));
  else if (setup->words != NULL)
    json_object_set_new(data, "setup",
                        json_pack("{sb si sf so sO*}", "cached", 0, "exit", 0, "seconds",
                                  (double)setup->ms / 1000, "output",
                                  json_text(setup_end(str_trim(buf_view(&setup->told)))), "sandbox",
                                  setup->sandbox));
}

/* Notes where remotes lead before an agent could change that: segue pr pushes nowhere else. */
static bool ask_remotes(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, job->source, "remote", "--verbose");
  return true;
}

/* Each line is "NAME\tADDRESS (push)", or "(fetch)". */
static bool take_remotes(struct git_job *job, const struct git_answer *answer) {
  json_decref(job->remotes);
  job->remotes = json_object();
  for (struct str rest = buf_view(&answer->out); rest.n > 0 && answer->exit == 0;) {
    struct str line = str_next_line(&rest);
    const char *tab = memchr(line.p, '\t', line.n);
    if (tab == NULL || !str_ends(line, " (push)"))
      continue;
    size_t n = (size_t)(tab - line.p);
    char_auto_t *address = repo_address((struct str){tab + 1, line.n - n - 1 - strlen(" (push)")});
    json_object_setn_new(job->remotes, line.p, n, json_text(str_from(address)));
  }
  return true;
}

static const struct git_step git_make_steps[] = {
    {ask_base, take_base, NULL},
    {ask_prefix, take_prefix, NULL},
    [GIT_LIST_STEP] = {ask_list, take_list, NULL},
    {ask_remove_files, NULL, NULL},
    {ask_remove, NULL, NULL},
    {ask_branch, take_branch, NULL},
    {ask_add, take_add, NULL},
    {ask_fill, NULL, "git reset --hard"},
    {ask_merge, take_merge, NULL},
    {ask_submodules, take_submodules, NULL},
    {ask_remotes, take_remotes, NULL},
    {ask_copy, take_copy, NULL},
    {link_files, NULL, NULL},
    {ask_setup_key, take_setup_key, NULL},
    {ask_setup_bring, take_setup_bring, NULL},
    {ask_setup_run, NULL, NULL},
    {ask_setup_keep, NULL, NULL},
    {0},
};

/* Returns EVENT_WORKTREE's data after all steps. New. Calls work in the same folder below the top
 * as the session does, even if git has no file in it. */
static json_t *git_job_made(struct git_job *job) {
  buf_auto_t folder = {0};
  buf_puts(&folder, job->path);
  for (char *part = job->prefix; part != NULL && *part != '\0';) {
    char *slash = strchr(part, '/');
    size_t n = slash ? (size_t)(slash - part) : strlen(part);
    buf_putc(&folder, '/');
    buf_append(&folder, part, n);
    if (mkdir(buf_c(&folder), 0755) != 0 && errno != EEXIST)
      err_set_errno(&job->err, errno, "cannot make %.300s", buf_c(&folder));
    part = slash ? slash + 1 : NULL;
  }
  json_t *data = json_pack("{ss ss so so so*}", "branch", job->branch, "base", job->base, "path",
                           json_text(str_from(job->path)), "folder", json_text(buf_view(&folder)),
                           "remotes", job->remotes);
  job->remotes = NULL;
  put_setup(&job->setup, data);
  struct repo_head at;
  repo_read_head(&job->repo, &at);
  json_object_set_new(data, "main",
                      json_pack("{so ss*}", "branch",
                                at.branch[0] ? json_text(str_from(at.branch)) : json_null(),
                                "commit", at.commit[0] ? at.commit : NULL));
  return data;
}

/* --- committing --- */

static void drop_locks(const struct git_job *job) {
  AUTO(repo_deinit) struct repo repo = {0};
  if (!job->again || job->path == NULL || !repo_find(job->path, &repo))
    return;
  git_drop_lock(buf_c(&repo.git_dir), "index");
  git_drop_lock(buf_c(&repo.git_dir), "HEAD");
  git_drop_branch_lock(job, &repo);
}

static const char *commit_folder(const struct git_job *job) {
  return job->path ? job->path : job->source;
}

/* Asks for the last commit: ours may be there from before a crash. */
static bool ask_last(struct git_job *job, struct git_ask *ask) {
  drop_locks(job);
  GIT_ASK_SET(ask, commit_folder(job), "log", "-1",
              "--format=%H%n%(trailers:key=Segue-Session,valueonly,separator=%x20)%n"
              "%(trailers:key=Segue-Turn,valueonly,separator=%x20)");
  return true;
}

static bool take_last(struct git_job *job, const struct git_answer *answer) {
  struct str rest = buf_view(&answer->out), hash = str_next_line(&rest);
  struct str session = str_trim(str_next_line(&rest)), turn = str_trim(str_next_line(&rest));
  long number;
  if (answer->exit == 128 && answer->err.n > 0 && job->path == NULL &&
      strstr(buf_c(&answer->err), "not a git repository") != NULL)
    return git_job_complain(job, "commit: needs a git repository", answer);
  job->found = answer->exit == 0 && str_eq_c(session, job->session_id) &&
               str_to_long(turn, &number) && number == job->number;
  if (job->found)
    job->commit = xstrndup(hash.p, hash.n);
  return true;
}

static json_t *left_out_of(const struct git_job *job) {
  return worktree_left_out(job->session->core.workflow->doc, job->session->core.config);
}

/* Takes out of the index what was copied or linked into the tree, and an agent's own git add has
 * staged. A name that begins with a colon means itself behind "./". */
static bool ask_unstaging(struct git_job *job, struct git_ask *ask) {
  json_t *names = job->path ? left_out_of(job) : NULL;
  buf_auto_t path = {0};
  buf_deinit(&job->names);
  JSON_EACH(names, i, name) {
    buf_printf(&path, "%s/%s", commit_folder(job), json_string_value(name));
    if (has_plain_way(commit_folder(job), buf_c(&path)))
      buf_printf(&job->names, "./%s%c", json_string_value(name), '\0');
    buf_clear(&path);
  }
  json_decref(names);
  ask->input = buf_view(&job->names);
  ask->extra[0] = "GIT_LITERAL_PATHSPECS=1";
  GIT_ASK_SET(ask, commit_folder(job), "reset", "--quiet", "--pathspec-from-file=-",
              "--pathspec-file-nul");
  return !job->found && job->names.n > 0;
}

/* Asks which of them git ignores by itself: git add refuses to hear of those. */
static bool ask_ignored(struct git_job *job, struct git_ask *ask) {
  ask->input = buf_view(&job->names);
  GIT_ASK_SET(ask, commit_folder(job), "check-ignore", "--no-index", "-z", "--stdin");
  return !job->found && job->names.n > 0;
}

static bool take_ignored(struct git_job *job, const struct git_answer *answer) {
  buf_str(&job->ignored, buf_view(&answer->out));
  return answer->exit <= 1 || git_job_complain(job, "git check-ignore", answer);
}

/* Finds the submodules. git add would start a git in each, which reads its configuration. */
static bool ask_links(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, commit_folder(job), "ls-files", "--stage", "--full-name", "-z", "--", ":(top)");
  return !job->found && !job->git.programs;
}

/* Each entry is "MODE HASH STAGE\tPATH". */
static bool take_links(struct git_job *job, const struct git_answer *answer) {
  buf_clear(&job->links);
  for (size_t at = 0; at < answer->out.n; at += strlen(answer->out.p + at) + 1) {
    const char *entry = answer->out.p + at, *path = strchr(entry, '\t');
    if (path != NULL && strncmp(entry, LIT("160000 ")) == 0)
      buf_append(&job->links, path + 1, strlen(path));
  }
  if (answer->out.cut)
    return err_set(&job->err, ERR_LIMIT, "the repository has too many files for segue's commits");
  return answer->exit == 0 || git_job_complain(job, "git ls-files", answer);
}

/* Stages the commits that they stand on. */
static bool ask_staging_links(struct git_job *job, struct git_ask *ask) {
  ask->input = buf_view(&job->links);
  GIT_ASK_SET(ask, job->path ? job->path : buf_c(&job->repo.top), "update-index", "--remove", "-z",
              "--stdin");
  return !job->found && job->links.n > 0;
}

/* Stages everything else. The list of what git ignores has the order of the names. */
static bool ask_staging(struct git_job *job, struct git_ask *ask) {
  struct buf paths = {0};
  const char *ignored = buf_c(&job->ignored);
  buf_append(&paths, ":(top)", sizeof ":(top)");
  for (size_t at = 0; at < job->names.n; at += strlen(job->names.p + at) + 1) {
    if (strcmp(job->names.p + at, ignored) == 0)
      ignored += strlen(ignored) + 1;
    else
      buf_printf(&paths, ":(exclude,literal)%s%c", job->names.p + at, '\0');
  }
  for (size_t at = 0; at < job->links.n; at += strlen(job->links.p + at) + 1)
    buf_printf(&paths, ":(top,exclude,literal)%s%c", job->links.p + at, '\0');
  size_t n = paths.n;
  free(job->head);
  job->head = buf_take(&paths);
  ask->input = (struct str){job->head, n};
  /* also what lies outside of a sparse checkout: the agent made it there */
  GIT_ASK_SET(ask, commit_folder(job), "add", "--all", "--sparse", "--pathspec-from-file=-",
              "--pathspec-file-nul");
  return !job->found;
}

static bool ask_staged(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, commit_folder(job), "diff", "--cached", "--quiet", "--no-ext-diff");
  return !job->found;
}

/* Returns true if a merge is in progress: its commit is made even if nothing has changed. */
static bool is_merging(const struct git_job *job) {
  AUTO(repo_deinit) struct repo repo = {0};
  return job->path != NULL && repo_find(job->path, &repo) &&
         has_file(buf_c(&repo.git_dir), "MERGE_HEAD");
}

static bool take_staged(struct git_job *job, const struct git_answer *answer) {
  job->staged = answer->exit != 0 || is_merging(job);
  return answer->exit < 2 || git_job_complain(job, "git diff", answer);
}

/* --- content over a pointer of Git LFS, where no filter makes a pointer of it --- */

#define LFS_POINTER "version https://git-lfs.github.com/spec/"

/* The names of files are from the top on. */
static const char *commit_top(const struct git_job *job) {
  return job->path || job->repo.top.n == 0 ? commit_folder(job) : buf_c(&job->repo.top);
}

/* Asks which files had the text of a pointer, and have it no more. */
static bool ask_raw(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, commit_top(job), "diff", "--cached", "--name-only", "-z", "--no-renames",
              "--no-ext-diff", "--no-textconv", "--diff-filter=M", "-S" LFS_POINTER);
  return job->staged;
}

static bool take_raw(struct git_job *job, const struct git_answer *answer) {
  buf_set(&job->names, answer->exit == 0 ? buf_view(&answer->out) : STR(""));
  return answer->exit == 0 || git_job_complain(job, "git diff", answer);
}

static bool ask_lfs(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, commit_folder(job), "config", "--name-only", "--get-regexp",
              "^filter\\.lfs\\.(clean|process)$");
  return job->staged && job->names.n > 0;
}

static bool take_lfs(struct git_job *job, const struct git_answer *answer) {
  job->has_lfs = answer->exit == 0;
  return true;
}

static bool ask_attribute(struct git_job *job, struct git_ask *ask) {
  ask->input = buf_view(&job->names);
  GIT_ASK_SET(ask, commit_top(job), "check-attr", "-z", "--stdin", "filter");
  return job->staged && !job->has_lfs && job->names.n > 0;
}

/* Refuses a file that .gitattributes still gives to LFS: the answer is NAME, filter, VALUE. */
static bool take_attribute(struct git_job *job, const struct git_answer *answer) {
  for (struct str rest = buf_view(&answer->out); rest.n > 0;) {
    buf_auto_t path = {0}, text = {0};
    struct stat st;
    struct err none;
    struct str name = str_cut(&rest, '\0');
    (void)str_cut(&rest, '\0');
    bool raw = str_eq_c(str_cut(&rest, '\0'), "lfs");
    buf_printf(&path, "%s/" STR_FMT, commit_top(job), STR_ARG(name));
    raw =
        raw && lstat(buf_c(&path), &st) == 0 && S_ISREG(st.st_mode) &&
        !(file_read(buf_c(&path), 1024, &text, &none) && str_starts(buf_view(&text), LFS_POINTER));
    if (raw)
      return err_set(&job->err, ERR_INVALID,
                     "%.*s is an LFS pointer in git and would be committed as %lld raw bytes: git "
                     "lfs install has it committed as a pointer",
                     (int)(name.n < 300 ? name.n : 300), name.p, (long long)st.st_size);
  }
  return answer->exit == 0 || git_job_complain(job, "git check-attr", answer);
}

/* Has the filter make pointers of what was staged when there was none: git add looks at no file
 * whose time it knows. */
static bool ask_renormalize(struct git_job *job, struct git_ask *ask) {
  ask->input = buf_view(&job->names);
  ask->extra[0] = "GIT_LITERAL_PATHSPECS=1";
  GIT_ASK_SET(ask, commit_top(job), "add", "--renormalize", "--pathspec-from-file=-",
              "--pathspec-file-nul");
  return job->staged && job->has_lfs && job->names.n > 0;
}

static bool ask_identity(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, commit_folder(job), "config", "user.email");
  return job->staged;
}

static bool take_identity(struct git_job *job, const struct git_answer *answer) {
  job->has_name = answer->exit == 0;
  return true;
}

static bool ask_commit_now(struct git_job *job, struct git_ask *ask) {
  const char *author = json_string_value(git_job_setting(job, "author"));
  struct buf by = {0};
  size_t n;
  ask->input = str_from(job->message);
  GIT_ASK_SET(ask, commit_folder(job), "commit", "--quiet", "--cleanup=verbatim", "--file=-",
              "--no-status", job->git.programs ? "--verify" : "--no-verify");
  for (n = 0; ask->words[n] != NULL; n++)
    ;
  if (author != NULL) {
    buf_printf(&by, "--author=%s", author);
    free(job->prefix);
    job->prefix = buf_take(&by);
    ask->words[n] = job->prefix;
  }
  if (!job->has_name)
    git_sign_as_nobody(ask);
  return job->staged;
}

static bool ask_head(struct git_job *job, struct git_ask *ask) {
  GIT_ASK_SET(ask, commit_folder(job), "rev-parse", "HEAD", "--symbolic-full-name", "HEAD");
  return true;
}

/* Keeps the branch that HEAD is on, too, which is not always where it was. */
static bool take_head(struct git_job *job, const struct git_answer *answer) {
  struct str rest = buf_view(&answer->out), head = str_next_line(&rest), on = str_trim(rest);
  free(job->head);
  job->head = answer->exit == 0 ? xstrndup(head.p, head.n) : NULL;
  if (job->staged && job->head != NULL)
    job->commit = xstrdup(job->head);
  if (str_starts(on, "refs/heads/"))
    job->on = xstrndup(on.p + strlen("refs/heads/"), on.n - strlen("refs/heads/"));
  return true;
}

static const struct git_step git_commit_steps[] = {
    {ask_last, take_last, NULL},
    {ask_unstaging, NULL, "git add"},
    {ask_ignored, take_ignored, NULL},
    {ask_links, take_links, NULL},
    {ask_staging, NULL, "git add"},
    {ask_staging_links, NULL, "git update-index"},
    {ask_staged, take_staged, NULL},
    {ask_raw, take_raw, NULL},
    {ask_lfs, take_lfs, NULL},
    {ask_attribute, take_attribute, NULL},
    {ask_renormalize, NULL, "git add"},
    {ask_identity, take_identity, NULL},
    {ask_commit_now, NULL, "git commit"},
    {ask_head, take_head, NULL},
    {0},
};

static json_t *git_job_committed(const struct git_job *job) {
  json_t *data = json_pack("{ss? ss*}", "commit", job->commit, "head", job->head);
  bool own = job->path ? job->on != NULL && strcmp(job->on, job->branch) == 0 : job->commit == NULL;
  if (job->head != NULL && !own)
    json_object_set_new(data, "branch", job->on ? json_text(str_from(job->on)) : json_null());
  return data;
}

/* --- following HEAD --- */

/* Moves the branch to where the worktree's HEAD is. In the pool: git is waited for. */
static void adopt_work(void *ctx) {
  struct git_job *job = ctx;
  const struct work_where where = {.session = job->session_id,
                                   .repo = job->source,
                                   .worktree = job->path,
                                   .branch = job->branch,
                                   .base = job->base,
                                   .commits_only = true};
  AUTO(work_deinit) struct work w = {0};
  if (!work_find(&where, &w, &job->err))
    return;
  json_auto_t *from = w.tip[0] ? json_string(w.tip) : json_null();
  bool follows = w.state == WORK_AHEAD || w.state == WORK_REWRITTEN;
  if (w.state == WORK_LEFT_BEHIND)
    err_set(&job->err, ERR_INVALID, "commits of %.200s up to %.10s are left behind by HEAD (%.10s)",
            job->branch, w.tip, w.head);
  else if (!follows || work_adopt(&where, &w, &job->err))
    job->adopted = json_pack("{ss sO ss}", "branch", job->branch, "from", from, "commit", w.head);
  json_auto_t *kept = json_array(); /* what git knows of the folder goes when it is made again */
  struct work_where stays = where;
  stays.branch = NULL;
  if (job->then != NULL && job->err.code == ERR_NONE)
    (void)!work_keep(&stays, &w, kept, &job->err);
  JSON_EACH(kept, i, ref)
    log_warn("%.10s is on no other branch and stays as %s", json_word_at(ref, "commit"),
             json_word_at(ref, "ref"));
}

/* --- a job: its steps, and what the session hears --- */

static void job_free(struct git_job *job) {
  list_remove(&job->session->jobs, &job->in_session);
  git_deinit(&job->git);
  repo_deinit(&job->repo);
  submodules_free(job->submodules);
  char *const texts[] = {job->source,  job->branch,     job->base,   job->path, job->prefix,
                         job->message, job->session_id, job->commit, job->head, job->on};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(texts[i]);
  buf_deinit(&job->names);
  buf_deinit(&job->ignored);
  buf_deinit(&job->links);
  buf_deinit(&job->setup.told);
  buf_deinit(&job->setup.failure);
  json_decref(job->setup.words);
  json_decref(job->setup.sandbox);
  json_decref(job->setup.links);
  arena_deinit(&job->setup.arena);
  json_decref(job->adopted);
  json_decref(job->remotes);
  free(job);
}

static void tell_job(void *ctx) {
  struct git_job *job = ctx;
  struct session *s = job->session;
  if (job->then != NULL && !job->cancelled && job->err.code == ERR_NONE) {
    void (*then)(struct session * s, long turn, worktree_over over) = job->then;
    worktree_over told = job->over;
    long turn = job->turn;
    job_free(job);
    then(s, turn, told);
    return;
  }
  bool makes = job->steps == git_make_steps, wanted = !job->cancelled;
  buf_auto_t message = {0};
  json_auto_t *data = NULL;
  if (wanted && job->err.code == ERR_NONE && job->steps == NULL)
    data = json_incref(job->adopted);
  else if (wanted && job->err.code == ERR_NONE)
    data = makes ? git_job_made(job) : git_job_committed(job);
  buf_puts(&message, job->setup.failure.n > 0 ? buf_c(&job->setup.failure) : job->err.text);
  struct event ev = {.kind = EVENT_WORKTREE,
                     .call = job->turn,
                     .news = data,
                     .message = job->err.code == ERR_NONE ? NULL : buf_c(&message)};
  worktree_over over = job->over;
  job_free(job);
  over(s, wanted ? &ev : NULL);
}

/* In a pool thread. Whatever a commit names of a submodule is in the main repository's store from
 * then on, whoever merges the branch. What cannot be, `merge` and `discard` say, and do nothing. */
static void keep_submodules(void *ctx) {
  const struct git_job *job = ctx;
  const struct submodules_where where = {job->session_id, job->source, job->path, NULL};
  struct err err = {0};
  json_auto_t *kept = json_array();
  if (!submodules_keep(&where, kept, &err))
    log_warn("%s", err.text);
}

static void job_over(struct git_job *job) {
  AUTO(repo_deinit) struct repo repo = {0};
  bool keeps = !job->cancelled && job->steps == git_commit_steps && job->path != NULL &&
               repo_find(job->path, &repo) && has_file(buf_c(&repo.git_dir), "modules");
  if (keeps)
    git_serve_do(job->git.sandbox, keep_submodules, tell_job, job);
  else
    tell_job(job);
}

/* Returns true if git met files that another session's git was just making, and gave up: the job
 * starts again from the list. */
static bool meets_another(struct git_job *job, const struct git_answer *answer) {
  enum { TRIES = 20 };
  if (job->cancelled || job->steps != git_make_steps || !answer->ran || answer->exit != 128 ||
      job->tries >= TRIES || strstr(buf_c(&answer->err), "/commondir") == NULL)
    return false;
  job->tries++;
  job->listed = false;
  free(job->path);
  job->path = NULL;
  job->at = GIT_LIST_STEP;
  return true;
}

static void on_answer(void *ctx, struct git_answer *answer) {
  struct git_job *job = ctx;
  bool ok = !job->cancelled;
  if (meets_another(job, answer)) {
    job_next(job);
    return;
  }
  if (ok && !answer->ran)
    ok = err_set(&job->err, ERR_IO, "%.400s", buf_c(&answer->err));
  const struct git_step *step = &job->steps[job->at];
  if (ok && step->take != NULL)
    ok = step->take(job, answer);
  else if (ok && step->must != NULL && answer->exit != 0)
    ok = git_job_complain(job, step->must, answer);
  job->at++;
  if (ok)
    job_next(job);
  else
    job_over(job);
}

static void job_next(struct git_job *job) {
  for (; job->err.code == ERR_NONE && job->steps[job->at].ask != NULL; job->at++) {
    struct git_ask ask = {0};
    if (!job->steps[job->at].ask(job, &ask))
      continue;
    if (job->setup.run != NULL)
      return; /* on_setup goes on */
    if (git_ask(&job->git, &ask, on_answer, job, &job->err))
      return;
  }
  job_over(job);
}

static struct git_job *job_new(struct session *s, const struct worktree *w, long turn,
                               const struct git_step *steps, worktree_over over) {
  struct git_job *job = xcalloc(1, sizeof *job);
  bool inner = turn > 0 && s->core.worktree.made, makes = steps == git_make_steps;
  job->session = s;
  job->over = over;
  job->turn = turn;
  job->steps = steps;
  job->remakes = makes && w->made;
  job->source = xstrdup(inner && !job->remakes ? s->core.worktree.folder : s->env.cwd);
  job->session_id = xstrdup(s->core.session);
  job->branch = text_copy(w->branch);
  job->base = text_copy(job->remakes && w->head ? w->head : w->base);
  if (steps == git_commit_steps) {
    free(job->base);
    job->base = NULL;
  }
  job->path = text_copy(makes ? NULL : w->path);
  job->message = text_copy(w->message);
  job->number = w->committing;
  job->again = s->recovered_seq > 0;
  find_repository(job->source, &job->repo);
  git_begin(&job->git, s->host->processes);
  job->git.programs = json_is_true(git_job_setting(job, "hooks"));
  job->git.sandbox = json_object_get(s->core.config, "sandbox");
  list_push_back(&s->jobs, &job->in_session);
  changes_expect(&s->host->trees);
  return job;
}

static void begin_commit(struct session *s, long turn, worktree_over over) {
  job_next(job_new(s, core_worktree(&s->core, turn), turn, git_commit_steps, over));
}

static void make_again(struct session *s, long turn, worktree_over over) {
  const struct worktree *w = core_worktree(&s->core, turn);
  struct git_job *job = job_new(s, w, turn, git_make_steps, over);
  job->then = w->asked == WORKTREE_COMMITTING ? begin_commit : NULL;
  job_next(job);
}

/* git still knows where the HEAD of one that is gone was: the branch follows that first. */
void worktree_again(struct session *s, long turn, worktree_over over) {
  const struct worktree *w = core_worktree(&s->core, turn);
  assert(w != NULL && w->made);
  struct git_job *job = job_new(s, w, turn, NULL, over);
  job->then = make_again;
  git_serve_do(job->git.sandbox, adopt_work, tell_job, job);
}

void worktree_start(struct session *s, long turn, worktree_over over) {
  const struct worktree *w = core_worktree(&s->core, turn);
  struct stat st;
  if (w == NULL || w->asked == WORKTREE_IDLE || s->core.status != SESSION_RUNNING)
    return;
  if (w->asked == WORKTREE_ADOPTING) {
    struct git_job *job = job_new(s, w, turn, NULL, over);
    git_serve_do(job->git.sandbox, adopt_work, tell_job, job);
  } else if (w->asked == WORKTREE_MAKING)
    job_next(job_new(s, w, turn, git_make_steps, over));
  else if (w->made && lstat(w->path, &st) != 0 && errno == ENOENT)
    worktree_again(s, turn, over);
  else
    begin_commit(s, turn, over);
}

void worktree_cancel(struct session *s) {
  LIST_EACH(struct git_job, job, in_session, &s->jobs) {
    job->cancelled = true;
    git_cancel(&job->git);
    if (job->setup.run != NULL)
      provider_command.ops->cancel(job->setup.run);
  }
}

/* --- before a start --- */

/* Checks that the session could do more than stop at once. */
static bool branch_is_free(const struct workflow *wf, const json_t *config, const struct repo *repo,
                           struct err *err) {
  buf_auto_t branch = {0};
  bool fixed = core_branch_fixed(wf, config, &branch), taken = false;
  for (size_t i = 0; i < branch.n && !taken; i++)
    if (branch.p[i] == '/') {
      branch.p[i] = '\0';
      taken = repo_has_branch(repo, branch.p);
      if (taken)
        err_set(err, ERR_INVALID,
                "the branch %.200s exists, so that none can begin with %.200s/: name another one "
                "with --branch, or branch:",
                branch.p, branch.p);
      branch.p[i] = '/';
    }
  if (!taken && fixed && (taken = repo_has_branch(repo, buf_c(&branch))))
    err_set(err, ERR_INVALID,
            "the branch %.300s exists already: put {id} into branch:, or name another one",
            buf_c(&branch));
  return !taken;
}

json_t *worktree_left_out(const json_t *doc, const json_t *config) {
  json_auto_t *setup = core_worktree_setup(doc, config);
  json_t *names = json_array();
  const json_t *const lists[] = {core_worktree_setting(config, "copy"),
                                 core_worktree_setting(config, "link"),
                                 json_object_get(setup, "keep")};
  for (size_t k = 0; k < ARRAY_LEN(lists); k++)
    JSON_EACH(lists[k], i, entry) {
      struct str name = json_view(entry);
      while (str_starts(name, "./"))
        name = (struct str){name.p + 2, name.n - 2};
      while (str_ends(name, "/"))
        name.n--;
      if (name.n > 0 && !str_eq_c(name, "."))
        json_array_append_new(names, json_text(name));
    }
  return names;
}

bool worktree_check(const json_t *config, const struct workflow *wf, struct err *err) {
  const char *cwd = json_string_value(json_at(config, "cwd"));
  bool wanted = core_workspace_mode(wf, config) == WORKSPACE_WORKTREE;
  const char *key = "workspace: worktree";
  AUTO(repo_deinit) struct repo repo = {0};
  for (size_t i = 0; !wanted && i < wf->movement_count; i++)
    wanted = wf->movements[i].own_worktree;
  if (!wanted && core_commit_when(wf, config) != COMMIT_OFF) {
    wanted = true;
    key = "commit";
  }
  if (!wanted || cwd == NULL)
    return true;
  char git[PATHS_BYTES];
  if (!program_find("git", git, sizeof git))
    return err_set(err, ERR_NOT_FOUND, "%s needs git, which is not in PATH: install it", key);
  char_auto_t *real = realpath(cwd, NULL);
  bool found = repo_find(real ? real : cwd, &repo),
       bare = !found && has_file(cwd, "HEAD") && has_file(cwd, "objects") && has_file(cwd, "refs");
  if (bare)
    buf_puts(&repo.common, real ? real : cwd);
  bool ok = found || bare ||
            err_set(err, ERR_INVALID,
                    "%s needs a git repository, and %.300s is in none: git init, or "
                    "workspace: here",
                    key, cwd);
  if (ok && core_workspace_mode(wf, config) == WORKSPACE_WORKTREE)
    ok = branch_is_free(wf, config, &repo, err);
  return ok;
}
