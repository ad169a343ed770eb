/* segue pr: brings a session's branch to the forge, as a pull request. */
#include "audit/report_files.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/forge/forge.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "format/json_object.h"
#include "git/repo.h"
#include "store/reader.h"
#include "store/summary.h"

#include <stdlib.h>
#include <string.h>

struct pr {
  struct trees trees;
  const struct tree_item *own;
  struct forge forge;
  json_t *outputs;
  const char *to; /* the branch on the remote */
  struct buf title, body;
  bool lfs; /* contents of Git LFS are sent, too */
  char *url;
};

static bool pr_is_ready(const struct pr *p, struct err *err) {
  const struct trees *t = &p->trees;
  char range[192];
  if (!trees_is_settled(t, NULL, stderr, err))
    return false;
  print_into(range, sizeof range, "%.64s..refs/heads/%.110s", p->own->base, p->own->branch);
  char_auto_t *count =
      git_line(t->cwd, err, "rev-list", "--count", "--end-of-options", range, NULL);
  bool some = count != NULL && strcmp(count, "0") != 0;
  if (count != NULL && !some)
    err_set(err, ERR_NOT_FOUND, "session %s has no commits", t->session);
  return some;
}

/* --- its words --- */

static struct str output_of(const struct pr *p, const char *name) {
  return json_view(json_object_get(p->outputs, name));
}

static void pr_take_title(struct pr *p, const char *given) {
  struct str title = given ? str_from(given) : output_of(p, "title");
  if (title.n == 0)
    title = json_view(json_object_get(p->trees.source, "title"));
  if (title.n == 0)
    title = str_from(p->trees.task);
  if (title.n == 0)
    title = str_from(p->own->branch);
  struct str line = str_trim(str_next_line(&title));
  buf_safe(&p->title, line, false);
  if (p->title.n > LIMIT_FORGE_TITLE_BYTES)
    p->title.n = utf8_floor(p->title.p, LIMIT_FORGE_TITLE_BYTES);
}

/* Adds the newest of each report, if its file is as the log has it. */
static bool add_reports(struct pr *p, const struct store_ref *ref, struct err *err) {
  AUTO(report_files_deinit) struct report_files files = {0};
  AUTO(reader_close) struct log_reader r = {0};
  struct store store;
  struct str line;
  char folder[STORE_NAME_BYTES];
  if (!reader_open(&r, ref, err))
    return false;
  while (reader_next(&r, &line) && r.whole) {
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    report_files_note(&files, record);
  }
  store_of(ref, &store);
  report_files_look(&files, &store, p->trees.session);
  store_report_folder(&store, p->trees.session, folder);
  JSON_MEMBERS(files.newest, file, state) {
    buf_auto_t path = buf_of("%s/%s", folder, file), text = {0};
    struct err why;
    if (str_eq_c(json_view(state), "same") &&
        file_read(buf_c(&path), LIMIT_TASK_BYTES, &text, &why))
      buf_printf(&p->body, "%s" STR_FMT "\n", p->body.n > 0 ? "\n" : "",
                 STR_ARG(str_trim(buf_view(&text))));
  }
  return true;
}

static bool pr_take_body(struct pr *p, const struct store_ref *ref, const char *given,
                         struct err *err) {
  struct str body = output_of(p, "body");
  bool ok = true;
  if (given != NULL)
    ok = json_io_read(given, LIMIT_FORGE_BODY_BYTES, &p->body, err);
  else if (body.n > 0)
    buf_str(&p->body, body);
  else
    ok = add_reports(p, ref, err);
  if (ok && p->body.n == 0 && given == NULL)
    buf_str(&p->body, output_of(p, "summary"));
  if (p->body.n > LIMIT_FORGE_BODY_BYTES)
    p->body.n = utf8_floor(p->body.p, LIMIT_FORGE_BODY_BYTES);
  if (ok) {
    const json_t *source = p->trees.source;
    if (p->body.n > 0)
      buf_puts(&p->body, "\n\n");
    if (str_eq_c(json_view(json_object_get(source, "kind")), "issue"))
      buf_printf(&p->body, "Closes #%" JSON_INTEGER_FORMAT "\n\n",
                 json_integer_value(json_object_get(source, "number")));
    buf_printf(&p->body, "Segue-Session: %s\n", p->trees.session);
  }
  return ok;
}

/* --- the deed --- */

/* Nothing is pushed to an address that the remote got after the session began: an agent may write
 * the repository's configuration. */
static bool pr_address_stands(const struct pr *p, const char *remote, const char *url,
                              struct err *err) {
  const char *then = cli_text(p->trees.remotes, remote);
  char_auto_t *now = repo_address(str_from(url));
  if (p->trees.remotes == NULL || (then != NULL && strcmp(then, now) == 0))
    return true;
  return err_set(err, ERR_INVALID,
                 "remote %.80s leads to %.200s, and %s%.200s when the session began: nothing is "
                 "pushed. If you changed it, push %.80s yourself",
                 remote, now, then ? "led to " : "was not there", then ? then : "", p->own->branch);
}

/* Finds out whether the contents behind pointers of Git LFS are to be sent: no hook does it. Where
 * they belong elsewhere, or without git-lfs, it says how. */
static bool pr_look_for_lfs(struct pr *p, struct err *err) {
  const char *cwd = p->trees.cwd, *branch = p->own->branch;
  AUTO(git_answer_deinit) struct git_answer filter = {0}, elsewhere = {0};
  buf_auto_t file = buf_of("%s:.lfsconfig", branch);
  char_auto_t *pointers =
      git_line(cwd, err, "diff", "--name-only", "--no-ext-diff", "--diff-filter=AM",
               "-G^oid sha256:[0-9a-f]*$", p->own->base, branch, "--", NULL);
  if (pointers == NULL || pointers[0] == '\0')
    return pointers != NULL;
  if (!git_run(cwd, &filter, err, "config", "filter.lfs.clean", NULL) ||
      !git_run(cwd, &elsewhere, err, "cat-file", "blob", buf_c(&file), NULL))
    return false;
  p->lfs = filter.exit == 0 && !str_has(buf_view(&elsewhere.out), "url");
  if (!p->lfs)
    cli_say(stderr,
            "segue: it has files of Git LFS, whose contents this does not push: "
            "git lfs push %s %s does\n",
            p->forge.remote, branch);
  return true;
}

static bool pr_may_push(struct pr *p, bool json, struct err *err) {
  const struct forge *f = &p->forge;
  char_auto_t *shown = repo_address(str_from(f->url));
  char_auto_t *up = f->owner != NULL ? forge_address(f, "upstream", err) : NULL;
  if (!pr_address_stands(p, f->remote, f->url, err) ||
      (f->owner != NULL && (up == NULL || !pr_address_stands(p, "upstream", up, err))))
    return false;
  if (!json)
    cli_say(stderr, "pushing %s to %s\n", p->own->branch, shown);
  return pr_look_for_lfs(p, err);
}

/* Sends the pull request. A fork with --pr continues the branch of the one that its parent made. */
static bool pr_send(struct pr *p, const struct cli_args *args, bool *made, struct err *err) {
  const json_t *source = p->trees.source;
  const char *head = cli_text(source, "branch");
  bool again = json_is_true(json_object_get(source, "ours")) && head != NULL;
  p->to = again ? head : p->own->branch;
  if ((p->lfs && !forge_push_lfs(&p->forge, p->own->branch, err)) ||
      !forge_push(&p->forge, p->own->branch, p->to, err))
    return false;
  p->url = forge_opened(&p->forge, p->to, err);
  if (p->url != NULL || err->code != ERR_NONE)
    return p->url != NULL;
  const struct forge_request request = {.branch = p->to,
                                        .base = cli_value(args, "into"),
                                        .title = buf_view(&p->title),
                                        .body = buf_view(&p->body),
                                        .draft = cli_flag(args, "draft")};
  p->url = forge_open(&p->forge, &request, err);
  *made = p->url != NULL;
  return *made || err_wrap(err, "its branch is pushed, but the pull request was not opened");
}

static void pr_tell(const struct pr *p, bool made, bool json) {
  if (json) {
    json_io_put(json_pack("{ss ss so sb}", "session", p->trees.session, "branch", p->to, "url",
                          json_io_string(p->url), "opened", made));
    return;
  }
  cli_say(stdout, "%s%s\n", p->url, made ? "" : " (it was already open; its branch was pushed)");
}

static bool pr_read(struct pr *p, const struct store_ref *ref, struct err *err) {
  AUTO(summary_deinit) struct summary summary = {0};
  if (!trees_read(&p->trees, ref, err) || (p->own = trees_own(&p->trees, err)) == NULL ||
      !summary_read(&summary, ref, err))
    return false;
  p->outputs = json_incref(summary.outputs);
  return true;
}

/* A fork goes on from what agents did before its own start: the addresses are those of the first
 * session that is still there. Returns them, new; NULL: none knows them. */
static json_t *pr_first_remotes(const struct trees *t) {
  AUTO(trees_deinit) struct trees parent = {0};
  json_t *found = trees_read_parent(t, &parent) ? pr_first_remotes(&parent) : NULL;
  return found ? found : json_incref(t->remotes);
}

static int pr_run(const struct cli_args *args) {
  struct store_ref ref;
  struct pr p = {0};
  struct err err = {0};
  bool made = false;
  cli_errors_as_json(cli_flag(args, "json"));
  bool ok = resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err) &&
            resolve_id_sure(args, &ref, &err) && pr_read(&p, &ref, &err) && pr_is_ready(&p, &err) &&
            pr_take_body(&p, &ref, cli_value(args, "body"), &err) &&
            forge_find(&p.forge, p.trees.cwd, cli_value(args, "remote"), &err);
  json_t *first = ok ? pr_first_remotes(&p.trees) : NULL;
  if (first != NULL) {
    json_decref(p.trees.remotes);
    p.trees.remotes = first;
  }
  ok = ok && pr_may_push(&p, cli_flag(args, "json"), &err);
  if (ok)
    pr_take_title(&p, cli_value(args, "title"));
  ok = ok && pr_send(&p, args, &made, &err);
  if (ok)
    pr_tell(&p, made, cli_flag(args, "json"));
  trees_deinit(&p.trees);
  forge_deinit(&p.forge);
  json_decref(p.outputs);
  buf_deinit(&p.title);
  buf_deinit(&p.body);
  free(p.url);
  return cli_done("pr", ok, &err);
}

const struct cli_command cmd_pr = {COMMAND_PR, .run = pr_run};
