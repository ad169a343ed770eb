/* session_ui.h - runs one session on a loop of its own, watched by a person, a pipe or a script;
 * for run and resume.
 *
 *   ui_init(&ui, command, mode, logs, registry, &err)
 *   host_start or host_open with ui.solo.host, &ui.watcher, &ui  -> ui.solo.session
 *   status = ui_wait(&ui)      runs the loop until the session is over, prints, cleans up */
#ifndef SEGUE_CLI_SESSION_UI_H
#define SEGUE_CLI_SESSION_UI_H

#include "audit/turn_lines.h"
#include "cli/turns.h"
#include "host/notifier.h"
#include "host/single_session.h"
#include "host/stdin_reader.h"

struct cli_args;

/* Asks the person at the terminal a session's questions, one at a time, while it runs. End of input
 * leaves the rest for segue inbox. */
struct terminal_ask {
  struct single_session *solo;
  struct live *live;
  struct stdin_reader input;
  uint64_t question; /* the question shown; 0: none */
  uint64_t seen_seq; /* the last durable record */
  struct buf typed;
};

/* Returns true if a person is at both ends of the terminal. */
bool terminal_ask_can(void);

enum ui_mode { UI_LINES, UI_JSON, UI_QUIET };

/* Returns the mode that --json and --quiet ask for. */
enum ui_mode ui_mode_of(const struct cli_args *args);

struct ui {
  const char *command;
  enum ui_mode mode;
  struct turns_look look;
  struct live live; /* the turns that are open, on a terminal */
  bool away;        /* the last call that ended waits for a provider that is away */
  struct single_session solo;
  struct watcher watcher;
  struct turn_lines lines;
  struct terminal_ask asks; /* asks a person at the terminal */
  struct notifier notices;  /* notifies a program of theirs */
  struct summary summary;   /* feeds those two */
};

bool ui_init(struct ui *ui, const char *command, enum ui_mode mode, const char *logs,
             const struct provider_registry *registry, struct err *err) MUST_CHECK;
/* Takes -v, which also shows the agents' words on a terminal, and --wait-for-folder. Call it after
 * ui_init. */
bool ui_take_flags(struct ui *ui, const struct cli_args *args, struct err *err) MUST_CHECK;
/* Applies `notify` of the user's configuration: see host/notifier.h. Call it after ui_init. past:
 * the log that is continued, or NULL. */
void ui_notify(struct ui *ui, json_t *set, const struct store_ref *past);
int ui_wait(struct ui *ui);
void ui_close(struct ui *ui); /* nothing more will come: ui_wait returns at once */
/* Cleans up in place of ui_wait if there is no session. */
void ui_drop(struct ui *ui);

/* Prints on stderr why a question of segue ask has no value, with the errors and the last answer.
 * result: that of ask_trace_result. */
void ui_complain(const char *command, const json_t *result);

#endif
