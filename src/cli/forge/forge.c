/* Asks gh or glab, and pushes a branch. */
#include "cli/forge/forge.h"

#include "base/limits.h"
#include "base/log.h"
#include "cli/forge/ask.h"
#include "cli/trees/trees.h"
#include "format/json_write.h"
#include "provider/probe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- which one --- */

static bool has_program(const char *name) {
  char path[PATH_MAX];
  return probe_find_program(name, path, sizeof path);
}

static char *choose_remote(const char *folder, const char *wanted, struct err *err) {
  char *names = trees_line(folder, err, "remote", NULL);
  char *found = NULL;
  struct str rest = str_from(names ? names : "");
  size_t n = 0;
  if (names == NULL)
    return NULL;
  while (rest.n > 0) {
    struct str line = str_trim(str_next_line(&rest));
    bool is = str_eq_c(line, wanted ? wanted : "origin");
    if (line.n > 0 && (is || (wanted == NULL && n == 0))) {
      free(found);
      found = xstrndup(line.p, line.n);
    }
    n++;
    if (is)
      n = 1;
    if (is)
      break;
  }
  free(names);
  if (found != NULL && n == 1)
    return found;
  free(found);
  if (wanted != NULL)
    (void)err_set(err, ERR_NOT_FOUND, "there is no remote %.100s in %.300s", wanted, folder);
  else if (n == 0)
    (void)err_set(err, ERR_NOT_FOUND, "%.300s has no remote: git remote add origin URL", folder);
  else
    (void)err_set(err, ERR_USAGE,
                  "%.300s has several remotes and none is origin: give --remote NAME", folder);
  return NULL;
}

bool forge_find(struct forge *f, const char *folder, const char *remote, struct err *err) {
  *f = (struct forge){.folder = xstrdup(folder)};
  f->remote = choose_remote(folder, remote, err);
  if (f->remote != NULL)
    f->url = trees_line(folder, err, "remote", "get-url", "--push", "--", f->remote, NULL);
  if (f->url == NULL) {
    forge_deinit(f);
    return false;
  }
  bool gh = has_program("gh"), glab = has_program("glab");
  f->is_glab = glab && (!gh || strstr(f->url, "gitlab") != NULL);
  if (gh || glab)
    return true;
  forge_deinit(f);
  return err_set(err, ERR_NOT_FOUND,
                 "issues and pull requests are read with gh or glab, and neither is in PATH: "
                 "install the one for your forge and log in (gh auth login)");
}

void forge_deinit(struct forge *f) {
  free(f->folder);
  free(f->remote);
  free(f->url);
  *f = (struct forge){0};
}

/* --- asking --- */

static const char *const passed[] = {
    "GH_TOKEN",        "GITHUB_TOKEN",    "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN",
    "GH_HOST",         "GH_CONFIG_DIR",   "GITLAB_TOKEN",        "GITLAB_ACCESS_TOKEN",
    "OAUTH_TOKEN",     "GITLAB_HOST",     "GITLAB_URI",          "GL_HOST",
    "GLAB_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",     "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",   "HTTPS_PROXY",     "https_proxy",         "NO_PROXY",
    "no_proxy",        "SSL_CERT_FILE",   "SSL_CERT_DIR",        NULL};

/* Runs the forge's program. `words` ends with NULL and leaves out the program. Returns false if it
 * failed: err has its words. The caller frees the answer. */
static bool forge_program(const struct forge *f, const char *const *words, struct str input,
                          struct git_answer *answer, struct err *err) {
  struct git_ask ask = {.folder = f->folder,
                        .other = true,
                        .input = input,
                        .pass = passed,
                        .extra = {"GH_PROMPT_DISABLED=1", "NO_PROMPT=1", "NO_COLOR=1",
                                  "GH_NO_UPDATE_NOTIFIER=1", "GLAB_CHECK_UPDATE=false"}};
  size_t n = 0;
  ask.words[n++] = f->is_glab ? "glab" : "gh";
  for (size_t i = 0; words[i] != NULL; i++) {
    assert(n + 1 < GIT_WORDS);
    ask.words[n++] = words[i];
  }
  if (!git_now(&ask, answer, err))
    return false;
  if (answer->exit == 0 && !answer->out.cut)
    return true;
  struct buf why = {0};
  git_complaint(answer, &why);
  (void)err_set(err, ERR_INVALID, "%s: %.400s", ask.words[0],
                answer->out.cut ? "the answer is too long" : buf_c(&why));
  buf_deinit(&why);
  git_answer_deinit(answer);
  return false;
}

json_t *forge_json(const struct forge *f, const char *const *words, struct str input,
                   struct err *err) {
  struct git_answer answer;
  json_error_t why;
  if (!forge_program(f, words, input, &answer, err))
    return NULL;
  json_t *value = json_loadb(buf_c(&answer.out), answer.out.n, JSON_ALLOW_NUL, &why);
  if (value == NULL)
    (void)err_set(err, ERR_INVALID, "%s %s did not answer with JSON: %.200s",
                  f->is_glab ? "glab" : "gh", words[0], why.text);
  git_answer_deinit(&answer);
  return value;
}

/* --- pushing --- */

/* Returns the settings that let git push with the user's own password helpers, from files outside
 * an agent's repository. The first, empty one removes the repository's. */
static json_t *push_settings(const struct forge *f) {
  static const char *const scopes[] = {"--system", "--global"};
  json_t *settings = json_pack("[[ss]]", "credential.helper", "");
  for (size_t s = 0; s < ARRAY_LEN(scopes); s++) {
    struct git_answer answer;
    struct err err;
    if (!trees_git(f->folder, &answer, &err, "config", scopes[s], "--null", "--get-regexp",
                   "^credential\\.", NULL))
      continue;
    for (size_t at = 0; at < answer.out.n && json_array_size(settings) < LIMIT_GIT_DRIVER_COUNT;) {
      const char *entry = answer.out.p + at, *value = strchr(entry, '\n');
      if (value != NULL) {
        json_t *key = json_stringn(entry, (size_t)(value - entry));
        json_array_append_new(settings,
                              json_pack("[os]", key ? key : json_string("segue.none"), value + 1));
      }
      at += strnlen(entry, answer.out.n - at) + 1;
    }
    git_answer_deinit(&answer);
  }
  return settings;
}

/* Sets the user's ssh, which must ask nobody. */
static void put_ssh(const struct forge *f, struct buf *out) {
  struct err err;
  char *own = trees_line(f->folder, &err, "config", "--global", "core.sshCommand", NULL);
  buf_printf(out, "GIT_SSH_COMMAND=%s", own && own[0] ? own : "ssh -o BatchMode=yes");
  free(own);
}

/* Runs git with the remote's address. Where it goes, and what runs for it, is for the user to
 * say. */
static bool go_there(const struct forge *f, struct git_ask *ask, struct err *err) {
  struct buf ssh = {0};
  struct git_answer answer;
  json_t *settings = push_settings(f);
  put_ssh(f, &ssh);
  ask->folder = f->folder;
  ask->pass = passed;
  ask->settings = settings;
  ask->extra[0] = "GIT_ALLOW_PROTOCOL=https:ssh:file";
  ask->extra[1] = buf_c(&ssh);
  bool ok = git_now(ask, &answer, err);
  if (ok && answer.exit != 0) {
    struct buf why = {0};
    buf_safe(&why, str_trim(buf_view(&answer.err)), true);
    ok = err_set(err, ERR_INVALID, "git %s, %.100s: %.380s", ask->words[0], f->remote, buf_c(&why));
    buf_deinit(&why);
  }
  git_answer_deinit(&answer);
  json_decref(settings);
  buf_deinit(&ssh);
  return ok;
}

bool forge_push(const struct forge *f, const char *branch, const char *to, struct err *err) {
  struct buf spec = {0};
  buf_printf(&spec, "refs/heads/%s:refs/heads/%s", branch, to);
  struct git_ask ask = {.words = {"push", "--quiet", "--no-verify", "--no-signed",
                                  "--no-follow-tags", "--recurse-submodules=no",
                                  "--receive-pack=git-receive-pack", "--", f->url, buf_c(&spec),
                                  NULL}};
  bool ok = go_there(f, &ask, err);
  buf_deinit(&spec);
  return ok;
}

char *forge_fetch(const struct forge *f, long number, struct err *err) {
  char spec[64];
  (void)snprintf(spec, sizeof spec,
                 f->is_glab ? "refs/merge-requests/%ld/head" : "refs/pull/%ld/head", number);
  struct git_ask ask = {.words = {"fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
                                  "--no-write-commit-graph", "--upload-pack=git-upload-pack", "--",
                                  f->url, spec, NULL}};
  if (!go_there(f, &ask, err))
    return NULL;
  return trees_line(f->folder, err, "rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}",
                    NULL);
}

/* --- opening --- */

/* Puts a branch's name into an address, percent-encoded. */
static void forge_put_encoded(struct buf *out, const char *text) {
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '_' || c == '.' || c == '~';
    if (plain)
      buf_putc(out, (char)c);
    else
      buf_printf(out, "%%%02X", c);
  }
}

char *forge_opened(const struct forge *f, const char *branch, struct err *err) {
  struct buf path = {0};
  const char *const gh[] = {"pr",   "list",   "--head", branch, "--state",
                            "open", "--json", "url",    NULL};
  buf_puts(&path, "projects/:fullpath/merge_requests?state=opened&source_branch=");
  forge_put_encoded(&path, branch);
  const char *const glab[] = {"api", buf_c(&path), NULL};
  *err = (struct err){0};
  json_t *list = forge_json(f, f->is_glab ? glab : gh, STR(""), err);
  const char *url =
      json_string_value(json_object_get(json_array_get(list, 0), f->is_glab ? "web_url" : "url"));
  char *found = url ? xstrdup(url) : NULL;
  json_decref(list);
  buf_deinit(&path);
  return found;
}

static char *open_gh(const struct forge *f, const struct forge_request *r, const char *title,
                     struct err *err) {
  const char *words[16] = {"pr",      "create", "--head",      r->branch,
                           "--title", title,    "--body-file", "-"};
  size_t n = 8;
  struct git_answer answer;
  if (r->draft)
    words[n++] = "--draft";
  if (r->base != NULL) {
    words[n++] = "--base";
    words[n++] = r->base;
  }
  if (!forge_program(f, words, r->body, &answer, err))
    return NULL;
  struct str rest = buf_view(&answer.out), line = STR("");
  while (rest.n > 0) { /* the address is the last line */
    struct str next = str_trim(str_next_line(&rest));
    line = next.n > 0 ? next : line;
  }
  char *url = xstrndup(line.p ? line.p : "", line.n);
  git_answer_deinit(&answer);
  return url;
}

static char *open_glab(const struct forge *f, const struct forge_request *r, const char *title,
                       struct err *err) {
  static const char *const project[] = {"api", "projects/:fullpath", NULL};
  static const char *const words[] = {
      "api",     "--method", "POST",     "projects/:fullpath/merge_requests",
      "--input", "-",        "--header", "Content-Type: application/json",
      NULL};
  json_t *about = r->base ? NULL : forge_json(f, project, STR(""), err);
  const char *base = r->base;
  if (base == NULL)
    base = json_string_value(json_object_get(about, "default_branch"));
  if (base == NULL) {
    json_decref(about);
    return NULL;
  }
  json_t *body = json_pack("{ss ss ss so}", "source_branch", r->branch, "target_branch", base,
                           "title", title, "description", json_stringn(r->body.p, r->body.n));
  char *text = json_dump_text(body, JSON_COMPACT), *found = NULL;
  json_t *made = forge_json(f, words, str_from(text), err);
  const char *url = json_string_value(json_object_get(made, "web_url"));
  if (url != NULL)
    found = xstrdup(url);
  else if (made != NULL)
    (void)err_set(err, ERR_INVALID, "glab opened no merge request: its answer has no address");
  free(text);
  json_decref(made);
  json_decref(body);
  json_decref(about);
  return found;
}

char *forge_open(const struct forge *f, const struct forge_request *r, struct err *err) {
  struct buf title = {0};
  buf_printf(&title, "%s" STR_FMT, f->is_glab && r->draft ? "Draft: " : "", STR_ARG(r->title));
  char *url = f->is_glab ? open_glab(f, r, buf_c(&title), err) : open_gh(f, r, buf_c(&title), err);
  buf_deinit(&title);
  return url;
}
