/* Chooses the command and runs it. */
#include "base/limits.h"
#include "cli/cli.h"
#include "git/git.h"
#include "git/stand_in.h"
#include "host/config.h"
#include "host/sandbox_config.h"
#include "host/single_session.h"
#include "os/random.h"
#include "os/tmpdir.h"
#include "provider/sandbox_policy.h"
#include "store/store.h"
#include "store/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- standard output --- */

static int lost; /* errno of the first write that failed; 0 = none did */

/* Waits until a pipe has room for PIPE_BUF bytes: it is full after 64 KiB without a reader, and a
 * process blocked in write() acts on no signal. Once a session has been told to stop, this waits
 * LIMIT_OUTPUT_WAIT_MS more in all; then the rest is dropped, and the loop gets to the signal. */
static bool wait_for_room(void) {
  static int waited_ms; /* since a signal came */
  struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
  for (;;) {
    bool stopping = single_session_signalled(), dropped = waited_ms >= LIMIT_OUTPUT_WAIT_MS;
    int n = poll(&out, 1, dropped ? 0 : LIMIT_OUTPUT_LOOK_MS);
    if (n > 0 || (n < 0 && errno != EINTR))
      return n > 0;
    if (dropped) {
      errno = ETIMEDOUT;
      return false;
    }
    if (stopping && n == 0)
      waited_ms += LIMIT_OUTPUT_LOOK_MS;
  }
}

/* Writes everything, or returns less than n as stdio expects. The process at the other end may have
 * made a pipe non-blocking. */
static ssize_t write_all(void *cookie, const char *p, size_t n) {
  size_t done = 0;
  (void)cookie;
  while (done < n) {
    size_t piece = n - done < PIPE_BUF ? n - done : PIPE_BUF;
    ssize_t written = wait_for_room() ? write(STDOUT_FILENO, p + done, piece) : -1;
    if (written >= 0) {
      done += (size_t)written;
    } else if (errno != EINTR && errno != EAGAIN) {
      lost = lost != 0 ? lost : errno;
      break;
    }
  }
  return (ssize_t)done;
}

/* main calls these around every command. cli_begin comes before anything is opened or printed.
 * cli_end flushes stdout and returns `status`. If the output could not all be written, or
 * stdout is closed, it prints a message and turns STATUS_COMPLETE into STATUS_FAILED. A reader that
 * went away is not an error. */
static void cli_begin(void) {
  /* Opens standard descriptors that are closed: the next file would get their numbers, and a log
   * could be overwritten by output meant for a terminal. Standard output is then opened for reading
   * only, so that printing fails. */
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
  /* stdio says that a write failed, but not why once another call came in between. */
  FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_all});
  if (out == NULL)
    return;
  if (isatty(STDOUT_FILENO))
    (void)setvbuf(out, NULL, _IOLBF, 0);
  stdout = out;
}

static int cli_end(const char *command, int status) {
  assert(command != NULL);
  assert(status >= 0);
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  if (lost != EPIPE)
    fprintf(stderr, "segue %s: cannot write to standard output%s%s\n", command, lost ? ": " : "",
            lost ? strerror(lost) : "");
  return status == STATUS_COMPLETE ? STATUS_FAILED : status;
}

const struct cli_command *const cli_commands[] = {
#define COMMAND_ADDRESS(name) &cmd_##name,
    COMMANDS(COMMAND_ADDRESS)
#undef COMMAND_ADDRESS
        NULL,
};

static bool is_help(const char *word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Returns the command that the word after a noun means; NULL: something was printed instead. */
static const struct cli_command *verb_of(const struct cli_noun *noun, int argc, char **argv) {
  const struct cli_command *command = argc > 2 ? cli_find_verb(noun, argv[2]) : NULL;
  buf_auto_t safe = {0};
  if (command == NULL && (argc < 3 || is_help(argv[2]))) {
    cli_print_noun(noun);
  } else if (command == NULL) {
    (void)cli_fit(&safe, str_from(argv[2]), 100);
    fprintf(stderr, "segue: there is no %s %s\ntry: segue %s --help\n", noun->name, buf_c(&safe),
            noun->name);
  }
  return command;
}

static int report_unknown_command(const char *word) {
  const char *names[ARRAY_LEN(cli_commands)];
  size_t n = 0;
  for (size_t i = 0; cli_commands[i]; i++)
    names[n++] = cli_commands[i]->name;
  names[n] = NULL;
  const char *near = str_nearest(str_from(word), names);
  buf_auto_t safe = {0};
  (void)cli_fit(&safe, str_from(word), 100);
  fprintf(stderr, "segue: there is no command \"%s\"%s%s%s\ntry: segue help\n", buf_c(&safe),
          near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
  return STATUS_USAGE;
}

/* git runs for a command as it does for sessions: by the user's settings. */
static void configure_git(bool filters) {
  struct config config;
  struct err err;
  bool ok = config_load(&config, &err);
  const json_t *words = ok ? config.sandbox : NULL;
  git_now_as(ok && json_is_true(json_object_get(config.workspace, "hooks")),
             filters ? sandbox_resolve(words, NULL) : NULL);
  if (ok)
    config_deinit(&config);
}

int main(int argc, char **argv) {
  char threads[8];
  bool serves = argc > 1 && strcmp(argv[1], "serve") == 0;
  print_into(threads, sizeof threads, "%u", store_pool_threads(serves));
  setenv("UV_THREADPOOL_SIZE", threads, 0); /* before the pool is first used */
  json_set_alloc_funcs(xmalloc, free);      /* no JSON value lacks memory: see log.h */
  cli_begin();
  git_confine_by(sandbox_policy_for_git, configure_git);
  /* Seeds the tables of JSON objects, against keys that are made to collide; jansson would open
   * /dev/urandom for it. */
  size_t seed;
  if (random_try(&seed, sizeof seed))
    json_object_seed(seed);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* beyond a limit on file sizes the write fails and we go on */
  if (argc < 2)
    return cli_end("help", cli_run(&cmd_help, 1, argv));
  const char *word = argv[1];
  if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
    word = "version";
  if (is_help(word))
    word = "help";
  const struct cli_noun *noun = cli_find_noun(word);
  const struct cli_command *command = cli_find(word);
  if (noun != NULL && (command = verb_of(noun, argc, argv)) == NULL)
    return cli_end(word, argc > 2 && is_help(argv[2]) ? STATUS_COMPLETE : STATUS_USAGE);
  if (command == NULL)
    return report_unknown_command(word);
  int skipped = noun != NULL ? 2 : 1;
  int status = cli_run(command, argc - skipped, argv + skipped);
  worker_leave_all();
  stand_in_drop();
  tmpdir_leave();
  return cli_end(command->name, status);
}
