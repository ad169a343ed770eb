/* Draws sessions on a terminal of their own, again and again. */
#include "cli/watch.h"

#include "base/limits.h"
#include "base/log.h"
#include "cli/cli.h"
#include "os/clock.h"
#include "os/fs.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { MARK_COLUMNS = 2, FRAME_ROWS = 3, ANSWER_BYTES = 1024, KEY_CTRL_C = 3, KEY_ESCAPE = 27 };

struct watch_screen {
  const struct watch_ops *ops;
  struct termios was;
  json_t *sessions;
  char chosen[48]; /* id of the row that keys are about */
  size_t first;    /* first row shown */
  int rows, columns;
  char said[160]; /* what went wrong with the last list */
};

static volatile sig_atomic_t watch_ended; /* a signal asks to end; SIGWINCH only wakes poll */

static void watch_on_signal(int number) {
  watch_ended |= number != SIGWINCH;
}

static void watch_write(const char *text) {
  fputs(text, stdout);
  fflush(stdout);
}

/* Takes the terminal: keys come singly and unseen, and the shell's screen is kept. */
static void watch_enter(struct watch_screen *w) {
  struct termios raw = w->was;
  raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO | ISIG);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  watch_write("\033[?1049h\033[?25l\033[?7l"); /* a row that is too long is cut */
}

static void watch_leave(const struct watch_screen *w) {
  watch_write("\033[?7h\033[?25h\033[?1049l");
  (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &w->was);
}

static const char *watch_id(const struct watch_screen *w, size_t i) {
  return cli_word(json_array_get(w->sessions, i), "id");
}

/* Returns the row of the chosen session, or the nearest one when it is no longer listed. */
static size_t watch_at(const struct watch_screen *w) {
  for (size_t i = 0; i < json_array_size(w->sessions); i++)
    if (strcmp(watch_id(w, i), w->chosen) == 0)
      return i;
  return 0;
}

static void watch_choose(struct watch_screen *w, size_t at) {
  size_t count = json_array_size(w->sessions);
  if (at >= count)
    at = count > 0 ? count - 1 : 0;
  print_into(w->chosen, sizeof w->chosen, "%s", watch_id(w, at));
}

static void watch_list(struct watch_screen *w) {
  struct err err = {0};
  json_t *sessions = w->ops->list(w->ops->ctx, &err);
  print_into(w->said, sizeof w->said, "%s", sessions == NULL ? "cannot be listed: segue ls" : "");
  if (sessions == NULL)
    return;
  json_decref(w->sessions);
  w->sessions = sessions;
  watch_choose(w, watch_at(w));
}

static void watch_draw(struct watch_screen *w) {
  static const char keys[] =
      "q quit  Enter open  a answer  y approve  n reject  c cancel  j k move";
  struct winsize size;
  buf_auto_t out = {0};
  w->columns = cli_columns(STDOUT_FILENO);
  w->rows = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
  size_t at = watch_at(w), room = w->rows > FRAME_ROWS ? (size_t)(w->rows - FRAME_ROWS) : 1;
  if (at < w->first || at >= w->first + room)
    w->first = at < w->first ? at : at - room + 1;
  buf_puts(&out, "\033[H  ");
  w->ops->row(w->ops->ctx, NULL, w->columns - MARK_COLUMNS, &out);
  buf_puts(&out, "\033[K\n");
  for (size_t i = w->first; i < w->first + room && i < json_array_size(w->sessions); i++) {
    buf_puts(&out, i == at ? "> " : "  ");
    w->ops->row(w->ops->ctx, json_array_get(w->sessions, i), w->columns - MARK_COLUMNS, &out);
    buf_puts(&out, "\033[K\n");
  }
  buf_puts(&out, "\033[J");
  if (json_array_size(w->sessions) == 0)
    buf_puts(&out, "  no session: begin one with segue until, run or submit\n");
  buf_printf(&out, "\033[%d;1H", w->rows);
  (void)cli_fit(&out, str_from(w->said[0] != '\0' ? w->said : keys), w->columns - 1);
  watch_write(buf_c(&out));
}

/* Asks for a line of text on the shell's screen. False: there is none. */
static bool watch_ask(const char *what, char text[ANSWER_BYTES]) {
  printf("%s: ", what);
  fflush(stdout);
  if (fgets(text, ANSWER_BYTES, stdin) == NULL)
    text[0] = '\0';
  text[strcspn(text, "\n")] = '\0';
  clearerr(stdin);
  return text[0] != '\0';
}

/* Runs segue with these words on the terminal, and waits for it. */
static void watch_spawn(const struct watch_screen *w, const char *const words[]) {
  char program[PATH_MAX];
  const char *argv[16] = {"segue"};
  size_t n = 1;
  pid_t pid;
  for (; *words != NULL; words++)
    argv[n++] = *words;
  for (const char *const *where = w->ops->where; where != NULL && *where != NULL; where++)
    argv[n++] = *where;
  assert(n < ARRAY_LEN(argv));
  if (!fs_own_program(program, sizeof program) ||
      posix_spawn(&pid, program, NULL, NULL, (char *const *)(size_t)argv, environ) != 0)
    return;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
}

/* Does what a key asks for, with the shell's screen in place. */
static void watch_act(struct watch_screen *w, char key) {
  char text[ANSWER_BYTES] = "";
  const char *show[] = {"show", w->chosen, NULL}, *approve[] = {"approve", w->chosen, NULL};
  const char *answer[] = {"answer", w->chosen, text, NULL};
  const char *reject[] = {"reject", w->chosen, "--reason", text, NULL};
  const char *cancel[] = {"cancel", w->chosen, NULL};
  const char *what = NULL;
  if (key == 'a')
    what = "Answer (nothing: back)";
  else if (key == 'n')
    what = "Reject, because (nothing: back)";
  else if (key == 'c')
    what = "Cancel it for good? (yes)";
  watch_leave(w);
  watch_spawn(w, show);
  if (what != NULL && !watch_ask(what, text))
    key = '\0';
  if (key == 'a')
    watch_spawn(w, answer);
  else if (key == 'y')
    watch_spawn(w, approve);
  else if (key == 'n')
    watch_spawn(w, reject);
  else if (key == 'c' && strcmp(text, "yes") == 0)
    watch_spawn(w, cancel);
  if (key != '\0')
    (void)watch_ask("Enter goes back", text);
  watch_enter(w);
  watch_list(w);
}

/* Takes one key; an arrow counts as the letter or digit behind its escape. Returns false to end. */
static bool watch_key(struct watch_screen *w, char key, bool arrow) {
  size_t at = watch_at(w), page = w->rows > FRAME_ROWS ? (size_t)(w->rows - FRAME_ROWS) : 1;
  if (!arrow && (key == 'q' || key == KEY_CTRL_C))
    return false;
  if (json_array_size(w->sessions) == 0)
    return true;
  if (arrow ? key == 'B' : key == 'j')
    watch_choose(w, at + 1);
  else if (arrow ? key == 'A' : key == 'k')
    watch_choose(w, at > 0 ? at - 1 : 0);
  else if (arrow ? key == '6' : key == ' ')
    watch_choose(w, at + page);
  else if (arrow && key == '5')
    watch_choose(w, at > page ? at - page : 0);
  else if (!arrow && (key == 'g' || key == 'G'))
    watch_choose(w, key == 'g' ? 0 : SIZE_MAX);
  else if (!arrow && key != '\0' && strchr("\r\naync", key) != NULL)
    watch_act(w, key);
  return true;
}

/* Takes what was typed. Returns false to end. */
static bool watch_keys(struct watch_screen *w) {
  char keys[16];
  ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
  bool on = n > 0 || (n < 0 && errno == EINTR);
  for (ssize_t i = 0; on && i < n; i++) {
    bool arrow = keys[i] == KEY_ESCAPE && i + 2 < n && keys[i + 1] == '[';
    i += arrow ? 2 : 0;
    on = watch_key(w, keys[i], arrow);
    for (; arrow && keys[i] >= '0' && keys[i] <= '9' && i + 1 < n; i++) /* 5~ and 6~ */
      ;
  }
  return on;
}

static void watch_go_on(struct watch_screen *w) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  bool on = true;
  int64_t next_ms = (int64_t)clock_mono_ms() + LIMIT_LS_WATCH_MS;
  while (on && !watch_ended) {
    watch_draw(w);
    int64_t left = next_ms - (int64_t)clock_mono_ms();
    if (left > 0 && poll(&input, 1, (int)left) > 0)
      on = watch_keys(w);
    if ((int64_t)clock_mono_ms() < next_ms)
      continue;
    watch_list(w);
    next_ms = (int64_t)clock_mono_ms() + LIMIT_LS_WATCH_MS;
  }
}

bool watch_run(const struct watch_ops *ops, struct err *err) {
  static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGWINCH};
  struct watch_screen w = {.ops = ops};
  const char *term = getenv("TERM");
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || term == NULL ||
      strcmp(term, "dumb") == 0 || tcgetattr(STDIN_FILENO, &w.was) != 0)
    return err_set(err, ERR_USAGE,
                   "--watch needs a terminal: write segue ls, or segue ls --json for a program");
  w.sessions = ops->list(ops->ctx, err);
  if (w.sessions == NULL)
    return false;
  watch_choose(&w, 0);
  for (size_t i = 0; i < ARRAY_LEN(signals); i++)
    (void)sigaction(signals[i], &(struct sigaction){.sa_handler = watch_on_signal}, NULL);
  watch_enter(&w);
  watch_go_on(&w);
  watch_leave(&w);
  json_decref(w.sessions);
  return true;
}
