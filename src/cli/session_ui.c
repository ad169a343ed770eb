#include "cli/session_ui.h"

#include "base/limits.h"
#include "cli/cli.h"
#include "cli/turns.h"
#include "host/paths.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void clear_live(const struct ui *ui) {
  if (ui->live) {
    fputs("\r\033[K", stdout);
    fflush(stdout);
  }
}

static void on_record(void *ctx, const json_t *record, struct str line) {
  struct ui *ui = ctx;
  const struct turn_line *turn = summary_feed(&ui->summary, record);
  const char *type = json_string_value(json_object_get(record, "type"));
  if (ui->mode == UI_JSON) {
    fwrite(line.p, 1, line.n, stdout);
    fflush(stdout);
  }
  if (strcmp(type, "turn_start") == 0)
    ui->turn_started = uv_now(&ui->loop);
  if (turn != NULL && ui->mode == UI_LINES) {
    clear_live(ui);
    turns_print(stdout, turn, ui->colours, ui->columns);
  }
}

static void on_trouble(void *ctx, const char *message) {
  struct ui *ui = ctx;
  struct buf text = {0};
  clear_live(ui);
  buf_safe(&text, str_from(message), false);
  fprintf(stderr, "segue %s: %s\n", ui->command, text.p);
  buf_deinit(&text);
}

/* Closes what keeps the loop alive; it ends when the last handle is gone. */
void ui_close(struct ui *ui) {
  if (ui->closed)
    return;
  ui->closed = true;
  uv_close((uv_handle_t *)&ui->sigint, NULL);
  uv_close((uv_handle_t *)&ui->sigterm, NULL);
  uv_close((uv_handle_t *)&ui->spinner, NULL);
}

static void on_finished(void *ctx, struct session *s) {
  (void)s;
  ui_close(ctx);
}

static void on_signal(uv_signal_t *handle, int number) {
  struct ui *ui = handle->data;
  if (++ui->signals > 1)
    _exit(STATUS_INTERRUPTED); /* now: shims end what still runs, the log ends where it is */
  if (ui->session != NULL)
    host_stop(ui->session, number == SIGINT ? "interrupted" : "terminated",
              number == SIGINT ? "SIGINT" : "SIGTERM");
}

static void on_spin(uv_timer_t *timer) {
  struct ui *ui = timer->data;
  struct buf out = {0};
  if (ui->summary.activity.n == 0)
    return;
  turns_live(&out, &ui->summary, ui->tick++, (double)(uv_now(&ui->loop) - ui->turn_started) / 1000,
             ui->colours, ui->columns);
  fprintf(stdout, "\r\033[K%s", out.p);
  fflush(stdout);
  buf_deinit(&out);
}

bool ui_init(struct ui *ui, const char *command, enum ui_mode mode, const char *logs,
             struct err *err) {
  char dir[PATHS_BYTES];
  *ui = (struct ui){.command = command,
                    .mode = mode,
                    .colours = cli_colours(STDOUT_FILENO),
                    .columns = cli_columns(STDOUT_FILENO),
                    .watcher = {on_record, on_trouble, on_finished}};
  const char *term = getenv("TERM");
  ui->live = mode == UI_LINES && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
  if (!paths_logs(logs, dir, err) || !store_open(&ui->store, dir, err))
    return false;
  if (uv_loop_init(&ui->loop) != 0)
    return err_set(err, ERR_IO, "no event loop could be made");
  if (!host_init(&ui->host, &ui->loop, &ui->store, err)) {
    uv_loop_close(&ui->loop);
    return false;
  }
  uv_signal_init(&ui->loop, &ui->sigint);
  uv_signal_init(&ui->loop, &ui->sigterm);
  uv_timer_init(&ui->loop, &ui->spinner);
  ui->sigint.data = ui->sigterm.data = ui->spinner.data = ui;
  uv_signal_start(&ui->sigint, on_signal, SIGINT);
  uv_signal_start(&ui->sigterm, on_signal, SIGTERM);
  if (ui->live)
    uv_timer_start(&ui->spinner, on_spin, LIMIT_SPINNER_MS, LIMIT_SPINNER_MS);
  return true;
}

void ui_drop(struct ui *ui) {
  ui_close(ui);
  host_deinit(&ui->host);
  uv_run(&ui->loop, UV_RUN_DEFAULT);
  int left = uv_loop_close(&ui->loop);
  assert(left == 0);
  (void)left;
  summary_deinit(&ui->summary);
}

/* As short as it can be from here: a path below the current folder is shown relative. */
static const char *shown_path(const char *path) {
  char cwd[PATHS_BYTES];
  if (getcwd(cwd, sizeof cwd) == NULL)
    return path;
  size_t n = strlen(cwd);
  return strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static int finish(struct ui *ui) {
  const struct err *broken = session_broken(ui->session);
  const struct core *core = session_core(ui->session);
  const char *path = session_path(ui->session);
  clear_live(ui);
  if (broken != NULL) {
    struct buf text = {0};
    buf_safe(&text, str_from(broken->text), false);
    fprintf(stderr, "segue %s: %s\n", ui->command, text.p);
    buf_deinit(&text);
    if (ui->summary.session[0])
      fprintf(stderr, "the log ends at its last durable record; go on with: segue resume %s\n",
              shown_path(path));
    return ui->signals > 0 ? STATUS_INTERRUPTED : STATUS_FAILED;
  }
  if (ui->mode == UI_LINES) {
    turns_print_end(stdout, &ui->summary, shown_path(path), ui->colours, ui->columns);
    if (core->status == SESSION_STOPPED)
      printf("  go on with: segue resume %s\n", shown_path(path));
  } else if (ui->mode == UI_QUIET && core->status == SESSION_STOPPED) {
    struct buf text = {0};
    buf_safe(&text, buf_view(&ui->summary.message), false);
    fprintf(stderr, "segue %s: stopped: %s\n", ui->command, buf_c(&text));
    buf_deinit(&text);
  }
  return ui->signals > 0 && core->status == SESSION_STOPPED ? STATUS_INTERRUPTED
                                                            : turns_status(&ui->summary);
}

int ui_wait(struct ui *ui) {
  uv_run(&ui->loop, UV_RUN_DEFAULT);
  ui_close(ui);
  int status = finish(ui);
  session_free(ui->session);
  ui->session = NULL;
  ui_drop(ui);
  if (fflush(stdout) != 0 || ferror(stdout))
    return status == STATUS_COMPLETE ? STATUS_FAILED : status; /* the output went nowhere */
  return status;
}
