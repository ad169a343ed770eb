/* Shows a session that runs in this process, and waits for its end. */
#include "cli/session_ui.h"

#include "base/limits.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "core/answer.h"
#include "core/budget.h"
#include "core/movement_limits.h"
#include "format/json_object.h"
#include "host/paths.h"
#include "host/resume_options.h"
#include "os/clock.h"
#include "os/orphans.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- questions at the terminal --- */

bool terminal_ask_can(void) {
  bool held;
  char_auto_t *program = orphan_program((long)getpid(), &held);
  return program == NULL && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

static const struct turn *asking_turn(const struct terminal_ask *a) {
  const struct turn *turn = session_core(a->solo->session)->turns;
  while (turn != NULL && (turn->question == NULL || turn->question_seq != a->question))
    turn = turn->next;
  return turn;
}

static bool wants_approval(const struct turn *turn) {
  return str_eq_c(json_view(json_at(turn->question, "kind")), "approve");
}

static void ask_put_lines(struct str text) {
  while (text.n > 0) {
    buf_auto_t safe = {0};
    buf_safe(&safe, str_next_line(&text), false);
    printf("  %s\n", buf_c(&safe));
  }
}

static void ask_put_prompt(const struct turn *turn) {
  size_t n = json_array_size(json_at(turn->question, "choices"));
  if (wants_approval(turn))
    printf("  approve? [y/n, and why] ");
  else if (n > 0)
    printf("  answer [1-%zu] ", n);
  else
    printf("  answer: ");
  fflush(stdout);
}

static void ask_show(const struct terminal_ask *a, const struct turn *turn) {
  const struct core *core = session_core(a->solo->session);
  const json_t *runs = json_at(turn->question, "runs");
  const json_t *choices = json_at(turn->question, "choices");
  live_clear(a->live);
  cli_say(stdout, "%s asks:\n", core->workflow->movements[turn->movement].name.p);
  ask_put_lines(json_view(json_at(turn->question, "text")));
  if (runs != NULL) {
    printf("  it would run:");
    JSON_EACH(json_at(runs, "command"), i, v)
      cli_say(stdout, " %s", json_string_value(v));
    if (json_at(runs, "provider") != NULL)
      cli_say(stdout, " %s", json_view(json_at(runs, "provider")).p);
    putchar('\n');
    ask_put_lines(json_view(json_at(runs, "instruction")));
  }
  JSON_EACH(choices, i, v)
    cli_say(stdout, "  %zu  %s\n", i + 1, json_string_value(v));
  ask_put_prompt(turn);
}

/* Reads a verdict such as "y", "yes go on" or "n too early". */
static bool ask_read_verdict(struct str line, struct core_answer *answer) {
  size_t n = 0;
  while (n < line.n && line.p[n] != ' ')
    n++;
  struct str word = {line.p, n};
  bool yes = str_eq_c(word, "y") || str_eq_c(word, "yes");
  answer->says = yes ? SAYS_APPROVE : SAYS_REJECT;
  answer->text = str_trim((struct str){line.p + n, line.n - n});
  return yes || str_eq_c(word, "n") || str_eq_c(word, "no");
}

static void ask_take_line(struct terminal_ask *a, struct str line) {
  const struct turn *turn = asking_turn(a);
  struct core_answer answer = {.says = SAYS_TEXT, .question = a->question, .text = line};
  struct err err = {0};
  uint64_t question;
  long number;
  if (turn == NULL) /* it was answered elsewhere or by its deadline */
    return;
  json_auto_t *by = resume_options_person();
  answer.by = by;
  bool readable = true;
  if (wants_approval(turn)) {
    readable = ask_read_verdict(line, &answer);
  } else if (json_at(turn->question, "choices") != NULL && str_to_long(line, &number)) {
    answer.says = SAYS_CHOICE;
    answer.choice = number;
  }
  a->question = 0; /* its record, and the next question, come within host_reply */
  if (!readable || !host_reply(a->solo->session, &answer, &question, &err)) {
    a->question = answer.question;
    if (err.text[0] != '\0')
      fprintf(stderr, "  %s\n", err.text);
    ask_put_prompt(turn);
  }
}

static void terminal_ask_look(struct terminal_ask *a, uint64_t seq);

static void ask_on_input(void *ctx, const char *bytes, size_t n) {
  struct terminal_ask *a = ctx;
  if (n == 0) {
    /* The person has nothing more to say: the session waits as it does without a terminal. */
    a->question = 0;
    a->solo->host.attended = false;
    stdin_reader_pause(&a->input);
    putchar('\n');
    host_stop(a->solo->session, "question", "it waits for an answer: segue inbox");
    return;
  }
  buf_append(&a->typed, bytes, n);
  const char *end;
  uint64_t asked =
      a->question; /* what was typed before the next one was shown does not answer it */
  while (a->question > 0 && a->question == asked &&
         (end = memchr(a->typed.p, '\n', a->typed.n)) != NULL) {
    struct str line = {a->typed.p, (size_t)(end - a->typed.p)};
    struct buf rest = {0};
    buf_append(&rest, end + 1, a->typed.n - line.n - 1);
    ask_take_line(a, str_trim(line));
    buf_deinit(&a->typed);
    a->typed = rest;
  }
  if (a->question != asked)
    buf_clear(&a->typed);
  if (a->question == 0)
    terminal_ask_look(a, a->seen_seq);
}

static void terminal_ask_look(struct terminal_ask *a, uint64_t seq) {
  a->seen_seq = seq;
  if (!a->input.is_open || !a->solo->host.attended || a->solo->session == NULL)
    return;
  if (seq < session_recovered(a->solo->session))
    seq = session_recovered(a->solo->session);
  const struct turn *turn = session_core(a->solo->session)->turns;
  if (a->question > 0 && asking_turn(a) == NULL) {
    printf("\n  answered meanwhile\n");
    a->question = 0;
  }
  while (turn != NULL && (turn->question == NULL || turn->question_seq > seq))
    turn = turn->next;
  if (turn == NULL && a->question == 0)
    stdin_reader_pause(&a->input);
  if (turn == NULL || a->question > 0)
    return;
  a->question = turn->question_seq;
  buf_clear(&a->typed);
  stdin_reader_forget(); /* what was typed before it was shown is no answer */
  ask_show(a, turn);
  stdin_reader_listen(&a->input);
}

static void terminal_ask_close(struct terminal_ask *a) {
  stdin_reader_close(&a->input);
  buf_deinit(&a->typed);
}

/* --- the session --- */

enum ui_mode ui_mode_of(const struct cli_args *args) {
  if (cli_flag(args, "json"))
    return UI_JSON;
  return cli_flag(args, "quiet") ? UI_QUIET : UI_LINES;
}

/* Says that a provider is away: when that begins, and where no live line shows it, before each
 * long pause. */
static void say_outage(struct ui *ui, const struct record *record) {
  buf_auto_t text = {0};
  bool away = turn_lines_outage(record, &text);
  int64_t ms = record_number(record, MEMBER_RETRY_IN_MS);
  if (away && (!ui->away || (!ui->live.on && ms >= LIMIT_LONG_WAIT_MS))) {
    live_clear(&ui->live);
    cli_say(stdout, "  waiting: %s" LOOK_HOW_TO_LEAVE "\n", buf_c(&text));
    fflush(stdout);
  }
  ui->away = away;
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
    cli_say(stdout, "  waiting: %s (Ctrl-C stops)\n", message);
  } else if (ms >= LIMIT_LONG_WAIT_MS && record_tree(record, MEMBER_OUTAGE) == NULL) {
    session_ui_say_wait(ms, cli_text(error, "class"));
  } else if (until[0]) {
    printf("  waiting until %s%s%s\n", until, reason[0] ? ": " : "", reason);
  } else {
    return;
  }
  fflush(stdout);
}

/* Returns true if the record matters: without lines to print, the summary only needs to know how
 * the session goes. */
static bool is_needed(const struct ui *ui, enum record_type type) {
  return ui->mode == UI_LINES || type == RECORD_SESSION_START || type == RECORD_SESSION_STOP ||
         type == RECORD_SESSION_RESUME || type == RECORD_SESSION_END || type == RECORD_TURN_START ||
         type == RECORD_JUDGMENT;
}

/* Prints that four fifths of a budget are used, or that it does not see what a provider uses. */
static void say_budget(struct ui *ui, const struct record *record) {
  const json_t *notes = record_tree(record, MEMBER_BUDGET);
  JSON_EACH(notes, i, note) {
    buf_auto_t text = {0};
    budget_note_tell(note, &text);
    live_clear(&ui->live);
    printf("  %s\n", buf_c(&text));
  }
}

/* Says where the session's work is, and what became of it. */
static void say_worktree(const struct record *record) {
  const char *event = record_text_c(record, MEMBER_EVENT);
  const json_t *data = record_tree(record, MEMBER_DATA);
  const char *path = cli_text(data, "path");
  const json_t *on = json_object_get(data, "branch"); /* null: HEAD is detached */
  const char *branch = json_string_value(on), *commit = cli_text(data, "commit");
  const char *head = cli_text(data, "head");
  const json_t *setup = json_object_get(data, "setup");
  if (strcmp(event, "make") == 0 && setup != NULL) {
    const char *first = json_string_value(json_array_get(json_object_get(setup, "run"), 0));
    cli_say(stdout, "  sets up a worktree: %s ...", first ? first : "");
  } else if (strcmp(event, "made") == 0 && path != NULL && branch != NULL) {
    cli_say(stdout, "  works in %s on branch %s", resolve_id_shown(path), branch);
    if (json_is_true(json_object_get(setup, "cached")))
      printf(", set up as before");
    else if (setup != NULL)
      printf(", set up in %.1f s", json_number_value(json_object_get(setup, "seconds")));
  } else if (strcmp(event, "committed") == 0 && (commit != NULL || (on != NULL && head != NULL))) {
    printf("  %s %.10s", commit ? "committed" : "stands at", commit ? commit : head);
    if (on != NULL)
      cli_say(stdout, " on %s", branch ? branch : "a detached HEAD");
  } else {
    return;
  }
  putchar('\n');
  fflush(stdout);
}

/* Says that the check passed before any work, so that its pass will show nothing. */
static void say_green_before(struct ui *ui, const struct record *record) {
  const json_t *run = json_object_get(record_tree(record, MEMBER_DATA), "run");
  if (!str_eq_c(record_text(record, MEMBER_EVENT), "ran") || json_object_get(run, "exit") == NULL ||
      json_int_at(run, "exit") != 0)
    return;
  live_clear(&ui->live);
  printf("  green already: the check passes before the work, which will be judged, not shown\n");
  fflush(stdout);
}

static void session_ui_on_record(void *ctx, const struct record *record, struct str line) {
  struct ui *ui = ctx;
  enum record_type type = record->type;
  const struct turn_line *turn = is_needed(ui, type) ? turn_lines_feed(&ui->lines, record) : NULL;
  if (ui->mode == UI_JSON) {
    fwrite(line.p, 1, line.n, stdout);
    fflush(stdout);
  }
  summary_feed(&ui->summary, record);
  notifier_on_record(&ui->notices, &ui->summary, record);
  ui->look.names = ui->lines.names;
  if (ui->mode == UI_QUIET && type == RECORD_ADMISSION &&
      str_eq_c(record_text(record, MEMBER_REASON), "folder") &&
      record_text_c(record, MEMBER_MESSAGE)[0]) /* it may be long: a cron job's mail says why */
    cli_say(stderr, "segue %s: waiting: %s\n", ui->command, record_text_c(record, MEMBER_MESSAGE));
  if (ui->mode == UI_LINES && type != RECORD_SESSION_STOP)
    say_budget(ui, record);
  if (ui->mode == UI_LINES && type == RECORD_TURN_START) {
    /* A guard reports work that goes in circles. */
    buf_auto_t text = {0};
    buf_safe(&text, record_text(record, MEMBER_NOTE), false);
    live_clear(&ui->live);
    if (text.n > 0)
      printf("  guard: %s\n", buf_c(&text));
  }
  if (type == RECORD_CALL_END)
    live_text_over(&ui->live);
  if ((type == RECORD_CALL_END || type == RECORD_ADMISSION) && ui->mode == UI_LINES)
    say_outage(ui, record);
  if (type == RECORD_EVIDENCE && ui->mode == UI_LINES)
    say_green_before(ui, record);
  if (type == RECORD_WORKSPACE && ui->mode == UI_LINES) {
    live_clear(&ui->live);
    say_worktree(record);
  }
  if (ui->mode == UI_LINES && !ui->live.on && type == RECORD_SESSION_RESUME) {
    const struct core *core = session_core(ui->solo.session);
    /* It says what it still waits for, as it was said when the wait began. */
    int64_t now_ms = clock_real_ms();
    for (const struct turn *waits = core->turns; waits != NULL; waits = waits->next)
      for (const struct call *call = waits->calls; call != NULL; call = call->next)
        if (call->state == CALL_WAITING && call->wait_until_ms - now_ms >= LIMIT_LONG_WAIT_MS)
          session_ui_say_wait(call->wait_until_ms - now_ms, error_class_name(call->class));
    fflush(stdout);
  } else if (ui->mode == UI_LINES && !ui->live.on) {
    say_long_wait(record);
  }
  if (turn != NULL && ui->mode == UI_LINES) {
    live_clear(&ui->live);
    turns_print_next(stdout, &ui->lines, turn, &ui->look);
  }
  terminal_ask_look(&ui->asks, record->seq);
}

static void session_ui_on_trouble(void *ctx, const char *message) {
  struct ui *ui = ctx;
  buf_auto_t text = {0};
  live_clear(&ui->live);
  buf_safe(&text, str_from(message), false);
  fprintf(stderr, "segue %s: %s\n", ui->command, text.p);
}

void ui_close(struct ui *ui) {
  assert(ui->solo.session != NULL);
  terminal_ask_close(&ui->asks);
  single_session_finished(&ui->solo);
}

static void session_ui_on_finished(void *ctx, struct session *s) {
  (void)s;
  ui_close(ctx);
}

static void session_ui_on_delta(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct ui *ui = ctx;
  turn_lines_hear(&ui->lines, turn, clock_real_ms());
  turn_lines_output(&ui->lines, turn, text);
  if (!thinking)
    live_text(&ui->live, call, text);
}

static void session_ui_on_tick(void *ctx, uint64_t now_ms) {
  struct ui *ui = ctx;
  (void)now_ms;
  if (ui->asks.question <= 0)
    live_draw(&ui->live, &ui->lines);
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
  ui->look.own = true;
  live_init(&ui->live, &ui->look, false);
  if (mode != UI_LINES)
    ui->live.on = false;
  if (!paths_logs(logs, dir, err) || !single_session_init(&ui->solo, dir, registry, err))
    return false;
  ui->solo.host.wait_for_kept_ms = 0;
  notifier_init(&ui->notices, &ui->solo.loop, ui->solo.host.processes, NULL);
  if (mode == UI_LINES) {
    ui->asks = (struct terminal_ask){
        .solo = &ui->solo, .live = &ui->live, .typed = {.max = 2 * LIMIT_ANSWER_BYTES}};
    if (terminal_ask_can() &&
        stdin_reader_init(&ui->asks.input, &ui->solo, ask_on_input, &ui->asks))
      ui->solo.host.attended = true;
  }
  return true;
}

bool ui_take_flags(struct ui *ui, const struct cli_args *args, struct err *err) {
  const char *wait = cli_value(args, "wait-for-folder");
  ui->live.verbose = cli_flag(args, "verbose");
  if (wait == NULL)
    return true;
  if (!limits_check_duration(str_from(wait), err)) {
    err->code = ERR_USAGE;
    return err_wrap(err, "--wait-for-folder");
  }
  ui->solo.host.wait_for_kept_ms = (uint64_t)limits_duration_ms(str_from(wait), 0);
  return true;
}

void ui_notify(struct ui *ui, json_t *set, const struct store_ref *past) {
  struct err ignored;
  bool known = set != NULL && past != NULL && summary_read(&ui->summary, past, &ignored);
  (void)known; /* without it, notices lack names */
  notifier_use(&ui->notices, set);
}

void ui_drop(struct ui *ui) {
  terminal_ask_close(&ui->asks);
  notifier_close(&ui->notices);
  single_session_deinit(&ui->solo);
  notifier_deinit(&ui->notices);
  summary_deinit(&ui->summary);
  turn_lines_deinit(&ui->lines);
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
  cli_say(out, "%s: segue resume %s%s\n", before, resolve_id_word_for(path, id), flags);
}

static int finish(struct ui *ui, int signals) {
  const struct err *broken = session_broken(ui->solo.session);
  const struct core *core = session_core(ui->solo.session);
  const char *path = session_log_name(ui->solo.session);
  live_clear(&ui->live);
  if (broken != NULL) {
    session_ui_on_trouble(ui, broken->text);
    if (ui->lines.session[0])
      print_resume(stderr, "the log ends at its last durable record; continue with", path, "");
    return signals > 0 ? STATUS_INTERRUPTED : STATUS_FAILED;
  }
  if (ui->mode == UI_LINES) {
    turns_print_end(stdout, &ui->lines, resolve_id_shown(path), &ui->look);
    buf_auto_t flags = {0};
    if (lacks_replies(core))
      buf_puts(&flags, " --scenario FILE");
    else
      buf_puts(&flags, turn_lines_resume_flags(&ui->lines));
    if (core->status == SESSION_STOPPED && core_question_count(core) > 0)
      printf("  answer with: segue inbox, then segue answer %s\n", core->session);
    else if (core->status == SESSION_STOPPED)
      print_resume(stdout, "  continue with", path, buf_c(&flags));
  } else if (ui->mode == UI_QUIET && core->status == SESSION_STOPPED) {
    buf_auto_t text = {0};
    buf_safe(&text, buf_view(&ui->lines.message), false);
    bool asks = turns_status(&ui->lines) == STATUS_NEEDS_INPUT;
    fprintf(stderr, "segue %s: %s: %s\n", ui->command, asks ? "needs input" : "stopped",
            buf_c(&text));
  }
  if (signals > 0 && core->status == SESSION_STOPPED)
    return STATUS_INTERRUPTED;
  return turns_status(&ui->lines);
}

int ui_wait(struct ui *ui) {
  assert(ui->solo.session != NULL);
  terminal_ask_look(&ui->asks, ui->asks.seen_seq); /* asked before the session was known here */
  int signals = single_session_run(&ui->solo, ui->live.on ? session_ui_on_tick : NULL, ui);
  int status = finish(ui, signals);
  ui_drop(ui);
  return status;
}

void ui_complain(const char *command, const json_t *result) {
  assert(json_is_object(result));
  const char *message = cli_text(result, "message");
  const json_t *error = json_object_get(result, "error"), *raw = json_object_get(result, "raw");
  const json_t *errors = json_object_get(result, "errors");
  buf_auto_t text = {0}, safe = {0};
  if (error != NULL)
    buf_printf(&text, "segue %s: %s: %s\n", command, cli_text(error, "class"),
               cli_text(error, "message"));
  else
    buf_printf(&text, "segue %s: %s\n", command, message ? message : "no value");
  if (json_array_size(errors) > 0)
    buf_puts(&text, "errors of the last answer:\n");
  JSON_EACH(errors, i, item) {
    const char *path = cli_text(item, "path");
    buf_printf(&text, "  %s: %s\n", path ? path : "$", cli_text(item, "message"));
  }
  if (json_is_string(raw) && json_string_length(raw) > 0) {
    buf_puts(&text, "the last answer:\n");
    buf_append(&text, json_string_value(raw), json_string_length(raw));
    buf_putc(&text, '\n');
  }
  buf_safe(&safe, buf_view(&text), true);
  fputs(buf_c(&safe), stderr);
}
