/* session_ui.h - runs one session on a loop of its own, watched by a person, a pipe or a script;
 * for run and resume.
 *
 *   ui_init(&ui, command, mode, logs, registry, &err)
 *   host_start or host_open with ui.solo.host, &ui.watcher, &ui  -> ui.solo.session
 *   status = ui_wait(&ui)      runs the loop until the session is over, prints, cleans up */
#ifndef SEGUE_CLI_SESSION_UI_H
#define SEGUE_CLI_SESSION_UI_H

#include "audit/summary.h"
#include "cli/live.h"
#include "cli/terminal_ask.h"
#include "host/notices.h"
#include "host/solo.h"

struct cli_args;

enum ui_mode { UI_LINES, UI_JSON, UI_QUIET };

/* Returns the mode that --json and --quiet ask for. */
enum ui_mode ui_mode_of(const struct cli_args *args);

struct ui {
  const char *command;
  enum ui_mode mode;
  struct turns_look look;
  struct live live; /* the turns that are open, on a terminal */
  struct solo solo;
  struct watcher watcher;
  struct summary summary;
  struct terminal_ask asks; /* asks a person at the terminal */
  struct notices notices;   /* notifies a program of theirs */
  struct brief brief;       /* feeds those two */
};

bool ui_init(struct ui *ui, const char *command, enum ui_mode mode, const char *logs,
             const struct provider_registry *registry, struct err *err) MUST_CHECK;
/* Also shows the agents' words on a terminal (-v). Call it after ui_init. */
void ui_verbose(struct ui *ui, const struct cli_args *args);
/* Applies `notify` of the user's configuration: see host/notices.h. Call it after ui_init. past:
 * the log that is continued, or NULL. */
void ui_notify(struct ui *ui, json_t *set, const struct store_ref *past);
int ui_wait(struct ui *ui);
void ui_close(struct ui *ui); /* nothing more will come: ui_wait returns at once */
/* Cleans up in place of ui_wait if there is no session. */
void ui_drop(struct ui *ui);

#endif
