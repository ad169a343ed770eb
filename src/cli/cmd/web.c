/* segue web: opens the window in a browser. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "daemon/client.h"
#include "daemon/window/standalone.h"
#include "format/json_object.h"
#include "host/config.h"
#include "host/daily_usage.h"
#include "os/clock.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  CODE_LIFE_MS = LIMIT_WINDOW_CODE_MS,
  FAILS_WITHIN_MS = 1000, /* a browser that cannot open the file; one that can may stay */
};

/* The browser that is to open the page. */
struct browser {
  struct buf path; /* the file that leads to the page; or empty */
  pid_t pid;       /* 0: none was started */
  int status;      /* of one that ended */
  sigset_t before; /* the signals that were blocked before browser_hold */
};

struct web {
  const struct cli_args *args;
  struct provider_registry *registry; /* has the limits of a day; or NULL */
  struct daily_usage book;
  struct browser browser;
  struct store store;
};

/* --- the browser --- */

/* Writes a file of this user's alone that leads to the page: the code must not be in the arguments
 * of a program, which other users can see. */
static bool web_file(const char *url, const char *code, struct buf *path, struct err *err) {
  const char *folder = getenv("XDG_RUNTIME_DIR");
  if (folder == NULL || folder[0] != '/')
    folder = getenv("TMPDIR");
  buf_printf(path, "%s/segue-web-XXXXXX.html", folder && folder[0] == '/' ? folder : "/tmp");
  int fd = mkostemps(path->p, 5, O_CLOEXEC); /* made with mode 0600 */
  FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (file == NULL)
    return err_set_errno(err, errno, "cannot make %s", path->p);
  fprintf(file,
          "<!DOCTYPE html><meta charset=utf-8><title>segue</title>"
          "<meta name=referrer content=no-referrer>"
          "<meta http-equiv=refresh content=\"0;url=%s#%s\">"
          "<p><a href=\"%s#%s\">segue</a></p>\n",
          url, code, url, code);
  bool ok = !ferror(file);
  ok = fclose(file) == 0 && ok;
  return ok || err_set_errno(err, errno, "cannot write %s", path->p);
}

/* Those that end this program, and the one that tells the browser's end. */
static sigset_t browser_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

/* Blocks the signals that end this program: it must live to remove the file. */
static void browser_hold(struct browser *b) {
  const sigset_t set = browser_signals();
  (void)sigprocmask(SIG_BLOCK, &set, &b->before);
}

/* Delivers those that came since browser_hold. */
static void browser_let_go(struct browser *b) {
  (void)sigprocmask(SIG_SETMASK, &b->before, NULL);
}

/* The browser is not to inherit the signals that are blocked or ignored here. */
static bool browser_start(struct browser *b) {
  const char *named = getenv("BROWSER");
  char program[256];
  posix_spawnattr_t attributes;
  sigset_t usual;
  print_into(program, sizeof program, "%s", named && named[0] ? named : "xdg-open");
  char *argv[] = {program, b->path.p, NULL};
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &b->before);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int number = posix_spawnp(&b->pid, program, NULL, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  if (number != 0)
    b->pid = 0;
  return number == 0;
}

/* Waits so long, or until the browser fails or a signal wants to end this program, which stays to
 * be delivered by browser_let_go. leaves: any end of the browser is enough. */
static void browser_await(struct browser *b, uint64_t for_ms, bool leaves) {
  const uint64_t until_ms = clock_mono_ms() + for_ms;
  const sigset_t set = browser_signals();
  for (pid_t running = b->pid;;) {
    if (running > 0 && waitpid(running, &b->status, WNOHANG) == running)
      running = 0;
    uint64_t now_ms = clock_mono_ms();
    if (now_ms >= until_ms || (running == 0 && (leaves || b->status != 0)))
      return;
    const long left_ms = (long)(until_ms - now_ms);
    const struct timespec left = {left_ms / 1000, left_ms % 1000 * 1000000};
    int got = sigtimedwait(&set, NULL, &left);
    if (got > 0 && got != SIGCHLD) {
      (void)raise(got); /* blocked: it waits again */
      return;
    }
  }
}

static bool web_failed(int status, struct err *err) {
  char how[64];
  if (WIFSIGNALED(status))
    print_into(how, sizeof how, "was ended by signal %d", WTERMSIG(status));
  else
    print_into(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
  return err_set(err, ERR_NOT_FOUND,
                 "the browser %s: run segue web --no-open and open the address that it prints",
                 how);
}

/* Prints the way in, or opens it: b->path then is the file that is to be removed later. Call it
 * after browser_hold. */
static bool web_show(const struct cli_args *args, const char *url, const char *code,
                     struct browser *b, struct err *err) {
  if (cli_flag(args, "no-open") ||
      !(getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL ||
        getenv("BROWSER") != NULL)) {
    printf("%s#%s\n", url, code);
    fflush(stdout);
    fputs("segue web: open this address within a minute; its code works once\n", stderr);
    return true;
  }
  if (!web_file(url, code, &b->path, err))
    return false;
  if (browser_start(b)) {
    fprintf(stderr, "segue web: %s (if no browser opens: segue web --no-open)\n", url);
    return true;
  }
  return err_set(
      err, ERR_NOT_FOUND,
      "no browser could be started: run segue web --no-open and open the address that it prints");
}

/* --- with a daemon --- */

/* Shows the page, and stays until a browser has read the file, which it then removes. */
static bool web_show_daemon(const struct cli_args *args, const char *url, const char *code,
                            struct err *err) {
  struct browser b = {0};
  browser_hold(&b);
  bool ok = web_show(args, url, code, &b, err);
  if (b.pid > 0)
    browser_await(&b, CODE_LIFE_MS / 6, false);
  if (b.path.n > 0)
    (void)unlink(b.path.p);
  buf_deinit(&b.path);
  browser_let_go(&b);
  return ok && (b.status == 0 || web_failed(b.status, err));
}

/* Asks the daemon for the page; returns -1 if there is none. */
static int web_daemon(const struct cli_args *args, struct err *err) {
  bool revoke = cli_flag(args, "revoke");
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  json_auto_t *body =
      json_pack("{sb sb}", "read_only", cli_flag(args, "read-only"), "revoke", revoke);
  bool asked = client_ask(cli_value(args, "socket"), "POST", "/v1/web/codes", body, &reply, err);
  if (!asked)
    return -1;
  if (client_problem(&reply, err))
    return cli_fail("web", err);
  int status = STATUS_COMPLETE;
  const char *url = json_string_value(json_at(reply.value, "url"));
  const char *code = json_string_value(json_at(reply.value, "code"));
  if (revoke)
    fputs("segue web: all browsers are signed out\n", stderr);
  else if (url == NULL || code == NULL || !web_show_daemon(args, url, code, err))
    status = cli_fail("web", err);
  return status;
}

/* --- without one --- */

static bool web_show_alone(void *ctx, const char *url, const char *code, struct err *err) {
  struct web *web = ctx;
  struct browser *b = &web->browser;
  char shown[STORE_SHOWN_BYTES];
  browser_hold(b);
  bool ok = web_show(web->args, url, code, b, err);
  if (b->pid > 0)
    browser_await(b, FAILS_WITHIN_MS, true);
  browser_let_go(b); /* the loop takes what came */
  if (!ok || (b->status != 0 && !web_failed(b->status, err)))
    return false;
  cli_say(stderr, "segue web: shows %s until Ctrl-C, and changes nothing\n",
          store_shown(web->store.where, shown));
  return true;
}

static json_t *web_day(void *ctx) {
  struct web *web = ctx;
  if (web->registry == NULL)
    return NULL;
  return daily_usage_json(&web->book, day_set_of(web->registry), &web->store);
}

/* Finds the limits of the day. A configuration that cannot be read hides its limits, and nothing
 * else. */
static void web_find_limits(struct web *web) {
  AUTO(config_deinit) struct config config = {0};
  struct err err;
  daily_usage_init(&web->book);
  if (!config_load(&config, &err))
    return;
  web->registry = registry_new(NULL);
  day_set_keep(web->registry, config.budget);
}

static int web_alone(const struct cli_args *args, struct err *err) {
  struct web web = {.args = args};
  const char *logs = cli_value(args, "logs");
  web_find_limits(&web);
  bool ok = resolve_id_store(logs, &web.store, err);
  /* A folder that somebody named must be there; the usual one is made by the first session. */
  if (ok && logs != NULL && !store_exists(&web.store))
    ok = err_set(err, ERR_NOT_FOUND, "there is no log folder %.400s", web.store.where);
  ok = ok && window_alone(web.store.where, cli_value(args, "http"), cli_flag(args, "read-only"),
                          web_show_alone, web_day, &web, err);
  if (web.browser.path.n > 0)
    (void)unlink(web.browser.path.p);
  buf_deinit(&web.browser.path);
  registry_free(web.registry);
  daily_usage_deinit(&web.book);
  return ok ? STATUS_COMPLETE : cli_fail("web", err);
}

static int web_run(const struct cli_args *args) {
  struct err err = {0};
  int status;
  bool alone = cli_value(args, "logs") != NULL || cli_value(args, "http") != NULL;
  if (alone && cli_flag(args, "revoke"))
    return cli_refuse("web", "--revoke is for a daemon: leave out --logs and --http");
  if (alone)
    return web_alone(args, &err);
  status = web_daemon(args, &err);
  if (status >= 0)
    return status;
  if (err.code != ERR_NOT_FOUND || cli_value(args, "socket") != NULL || cli_flag(args, "revoke"))
    return cli_fail("web", &err);
  return web_alone(args, &err);
}

const struct cli_command cmd_web = {COMMAND_WEB, .run = web_run};
