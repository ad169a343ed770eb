/* Shows a session that runs in this process, and waits for its end. */
#include "cli/session_ui.h"

#include "base/limits.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/turns.h"
#include "core/answer.h"
#include "core/budget.h"
#include "host/paths.h"
#include "os/clock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum ui_mode ui_mode_of(const struct cli_args *args) {
  if (cli_flag(args, "json"))
    return UI_JSON;
  return cli_flag(args, "quiet") ? UI_QUIET : UI_LINES;
}

static void session_ui_say_wait(int64_t ms, const char *class) {
  printf("  waiting %lld s: %s (Ctrl-C stops; segue resume continues later)\n",
         (long long)(ms / 1000), class);
}

/* Reports a wait that a person would take for a hang: the live line shows it, a pipe gets a
 * line. */
static void say_long_wait(const struct record *record) {
  const json_t *error = record_tree(record, MEMBER_ERROR);
  int64_t ms = record_number(record, MEMBER_RETRY_IN_MS);
  const char *until = record_text_c(record, MEMBER_UNTIL);
  const char *message = record_text_c(record, MEMBER_MESSAGE);
  const char *reason =
      record_text_c(record, MEMBER_REASON); /* a question with a deadline has none */
  if (record->type == RECORD_ADMISSION && message[0]) {
    fputs("  waiting: ", stdout);
    cli_put_safe(stdout, message);
    fputs(" (Ctrl-C stops)\n", stdout);
  } else if (ms >= LIMIT_LONG_WAIT_MS)
    session_ui_say_wait(ms, json_string_value(json_object_get(error, "class")));
  else if (until[0])
    printf("  waiting until %s%s%s\n", until, reason[0] ? ": " : "", reason);
  else
    return;
  fflush(stdout);
}

/* Says what a resumed session is still waiting for, as it was said when the wait began. */
static void say_old_waits(const struct core *core) {
  int64_t now_ms = clock_real_ms();
  for (const struct turn *turn = core->turns; turn != NULL; turn = turn->next)
    for (const struct call *call = turn->calls; call != NULL; call = call->next)
      if (call->state == CALL_WAITING && call->wait_until_ms - now_ms >= LIMIT_LONG_WAIT_MS)
        session_ui_say_wait(call->wait_until_ms - now_ms, error_class_name(call->class));
  fflush(stdout);
}

/* Returns true if the record matters: without lines to print, the summary only needs to know how
 * the session goes. */
static bool is_needed(const struct ui *ui, enum record_type type) {
  return ui->mode == UI_LINES || type == RECORD_SESSION_START || type == RECORD_SESSION_STOP ||
         type == RECORD_SESSION_RESUME || type == RECORD_SESSION_END || type == RECORD_TURN_START ||
         type == RECORD_JUDGMENT;
}

/* Prints what a guard reports: work that goes in circles. */
static void say_note(struct ui *ui, const struct record *record) {
  struct buf text = {0};
  buf_safe(&text, record_text(record, MEMBER_NOTE), false);
  live_clear(&ui->live);
  if (text.n > 0)
    printf("  guard: %s\n", buf_c(&text));
  buf_deinit(&text);
}

/* Prints that four fifths of a budget are used, or that it does not see what a provider uses. */
static void say_budget(struct ui *ui, const struct record *record) {
  const json_t *notes = record_tree(record, MEMBER_BUDGET), *note;
  size_t i;
  json_array_foreach(notes, i, note) {
    struct buf text = {0};
    budget_note_tell(note, &text);
    live_clear(&ui->live);
    printf("  %s\n", buf_c(&text));
    buf_deinit(&text);
  }
}

/* Says where the session's work is, and what became of it. */
static void say_worktree(const struct record *record) {
  const char *event = record_text_c(record, MEMBER_EVENT);
  const json_t *data = record_tree(record, MEMBER_DATA);
  const char *path = json_string_value(json_object_get(data, "path"));
  const char *branch = json_string_value(json_object_get(data, "branch"));
  const char *commit = json_string_value(json_object_get(data, "commit"));
  if (strcmp(event, "made") == 0 && path != NULL && branch != NULL) {
    fputs("  works in ", stdout);
    cli_put_safe(stdout, find_shown(path));
    fputs(" on branch ", stdout);
    cli_put_safe(stdout, branch);
  } else if (strcmp(event, "committed") == 0 && commit != NULL) {
    printf("  committed %.10s", commit);
  } else {
    return;
  }
  putchar('\n');
  fflush(stdout);
}

static void session_ui_on_record(void *ctx, const struct record *record, struct str line) {
  struct ui *ui = ctx;
  enum record_type type = record->type;
  const struct turn_line *turn = is_needed(ui, type) ? summary_feed(&ui->summary, record) : NULL;
  if (ui->mode == UI_JSON) {
    fwrite(line.p, 1, line.n, stdout);
    fflush(stdout);
  }
  brief_feed(&ui->brief, record);
  notices_on_record(&ui->notices, &ui->brief, record);
  ui->look.names = ui->summary.names;
  if (ui->mode == UI_LINES && type != RECORD_SESSION_STOP)
    say_budget(ui, record);
  if (ui->mode == UI_LINES && type == RECORD_TURN_START)
    say_note(ui, record);
  if (type == RECORD_CALL_END)
    live_text_over(&ui->live);
  if (type == RECORD_WORKSPACE && ui->mode == UI_LINES) {
    live_clear(&ui->live);
    say_worktree(record);
  }
  if (ui->mode == UI_LINES && !ui->live.on && type == RECORD_SESSION_RESUME)
    say_old_waits(session_core(ui->solo.session));
  else if (ui->mode == UI_LINES && !ui->live.on)
    say_long_wait(record);
  if (turn != NULL && ui->mode == UI_LINES) {
    live_clear(&ui->live);
    turns_print(stdout, turn, &ui->look);
  }
  terminal_ask_look(&ui->asks, record->seq);
}

static void session_ui_on_trouble(void *ctx, const char *message) {
  struct ui *ui = ctx;
  struct buf text = {0};
  live_clear(&ui->live);
  buf_safe(&text, str_from(message), false);
  fprintf(stderr, "segue %s: %s\n", ui->command, text.p);
  buf_deinit(&text);
}

void ui_close(struct ui *ui) {
  assert(ui->solo.session != NULL);
  terminal_ask_close(&ui->asks);
  solo_finished(&ui->solo);
}

static void session_ui_on_finished(void *ctx, struct session *s) {
  struct ui *ui = ctx;
  (void)s;
  terminal_ask_close(&ui->asks);
  solo_finished(&ui->solo);
}

static void session_ui_on_delta(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct ui *ui = ctx;
  summary_hear(&ui->summary, turn, clock_real_ms());
  if (!thinking)
    live_text(&ui->live, call, text);
}

static void session_ui_on_tick(void *ctx, uint64_t now_ms) {
  struct ui *ui = ctx;
  (void)now_ms;
  if (!terminal_ask_shows(&ui->asks))
    live_draw(&ui->live, &ui->summary);
}

bool ui_init(struct ui *ui, const char *command, enum ui_mode mode, const char *logs,
             const struct provider_registry *registry, struct err *err) {
  assert(command != NULL);
  assert(registry != NULL);
  char dir[PATHS_BYTES];
  *ui = (struct ui){.command = command,
                    .mode = mode,
                    .look = turns_look_of(STDOUT_FILENO),
                    .watcher = {.record = session_ui_on_record,
                                .trouble = session_ui_on_trouble,
                                .delta = session_ui_on_delta,
                                .finished = session_ui_on_finished}};
  live_init(&ui->live, &ui->look, false);
  if (mode != UI_LINES)
    ui->live.on = false;
  if (!paths_logs(logs, dir, err) || !solo_init(&ui->solo, dir, registry, err))
    return false;
  notices_init(&ui->notices, &ui->solo.loop, ui->solo.host.processes, NULL);
  if (mode == UI_LINES)
    terminal_ask_init(&ui->asks, &ui->solo, &ui->live);
  return true;
}

void ui_verbose(struct ui *ui, const struct cli_args *args) {
  ui->live.verbose = cli_flag(args, "verbose");
}

void ui_notify(struct ui *ui, json_t *set, const struct store_ref *past) {
  struct err ignored;
  bool known = set != NULL && past != NULL && brief_read(&ui->brief, past, &ignored);
  (void)known; /* without it, notices lack names */
  notices_use(&ui->notices, set);
}

void ui_drop(struct ui *ui) {
  terminal_ask_close(&ui->asks);
  notices_close(&ui->notices);
  solo_deinit(&ui->solo);
  notices_deinit(&ui->notices);
  brief_deinit(&ui->brief);
  summary_deinit(&ui->summary);
  live_deinit(&ui->live);
}

/* Returns true if the script provider had no reply for a call: the same scenario would stop the
 * session again. */
static bool lacks_replies(const struct core *core) {
  for (const struct turn *turn = core->turns; turn != NULL; turn = turn->next)
    for (const struct call *call = turn->calls; call != NULL; call = call->next)
      if (call->state == CALL_FAILED && call->class == CLASS_NOT_FOUND &&
          strcmp(call->provider, "script") == 0)
        return true;
  return false;
}

static void print_resume(FILE *out, const char *before, const char *path, const char *flags) {
  char id[STORE_ID_BYTES];
  fprintf(out, "%s: segue resume ", before);
  cli_put_safe(out, find_word_for(path, id));
  fprintf(out, "%s\n", flags);
}

static int finish(struct ui *ui, int signals) {
  const struct err *broken = session_broken(ui->solo.session);
  const struct core *core = session_core(ui->solo.session);
  const char *path = session_log_name(ui->solo.session);
  live_clear(&ui->live);
  if (broken != NULL) {
    struct buf text = {0};
    buf_safe(&text, str_from(broken->text), false);
    fprintf(stderr, "segue %s: %s\n", ui->command, text.p);
    buf_deinit(&text);
    if (ui->summary.session[0])
      print_resume(stderr, "the log ends at its last durable record; continue with", path, "");
    return signals > 0 ? STATUS_INTERRUPTED : STATUS_FAILED;
  }
  if (ui->mode == UI_LINES) {
    turns_print_end(stdout, &ui->summary, find_shown(path), &ui->look);
    struct buf flags = {0};
    if (lacks_replies(core))
      buf_puts(&flags, " --scenario FILE");
    else
      buf_puts(&flags, summary_resume_flags(&ui->summary));
    if (core->status == SESSION_STOPPED && core_question_count(core) > 0)
      printf("  answer with: segue inbox, then segue answer %s\n", core->session);
    else if (core->status == SESSION_STOPPED)
      print_resume(stdout, "  continue with", path, buf_c(&flags));
    buf_deinit(&flags);
  } else if (ui->mode == UI_QUIET && core->status == SESSION_STOPPED) {
    struct buf text = {0};
    buf_safe(&text, buf_view(&ui->summary.message), false);
    fprintf(stderr, "segue %s: stopped: %s\n", ui->command, buf_c(&text));
    buf_deinit(&text);
  }
  if (signals > 0 && core->status == SESSION_STOPPED)
    return STATUS_INTERRUPTED;
  return turns_status(&ui->summary);
}

int ui_wait(struct ui *ui) {
  assert(ui->solo.session != NULL);
  terminal_ask_look(&ui->asks, ui->asks.seen_seq); /* asked before the session was known here */
  int signals = solo_run(&ui->solo, ui->live.on ? session_ui_on_tick : NULL, ui);
  int status = finish(ui, signals);
  ui_drop(ui);
  return status;
}
