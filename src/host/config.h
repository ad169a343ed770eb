/* config.h - the user's own configuration: $XDG_CONFIG_HOME/segue/config.yaml.
 *
 *   provider: claude        default backend of movements that name none
 *   model: ...              its model
 *   options: {temperature: 0.2}
 *   fallback: {claude: [codex, gemini]}   providers to ask when one cannot go on
 *   prices: {MODEL: {input: 3, output: 15, cached: 0.3}}   US dollars a million tokens
 *   notify: [PROGRAM, ...]  is told of questions, stops and ends, see notifier.h
 *   budget: {day: {cost: 20}}   what all sessions may use in a day, see daily_usage.h
 *   ask_above: {calls: 50}  how much a group may plan before it asks, see core/group.h
 *   workspace: worktree     where sessions work, see workspace_set.h
 *   wait_for_reset: off     a limit of hours stops the session instead
 *   wait_for_outage: 30m    how long a provider is waited for that is away, or off
 *   wait_for_background: 30m    how long a client's background work is waited for
 *   env: [NAME, ...]        variables that providers' processes get beside the standard ones
 *   facets: [FOLDER, ...]   where facets are looked for after the user's and the project's
 *   secrets: [NAME, ...]    variables that single movements may name, and only then get
 *   sandbox: guard          what confines agents and commands, see sandbox_config.h
 *   hidden_tests: {dir, command, ...}   see hidden_tests.h
 *   store: postgres://HOST/DATABASE   where sessions are kept instead of a folder
 *   words: [{class: quota, match: ...}]   what words for a failure mean, see provider/words.h
 *   providers: {NAME: {...}}  settings of single backends; each defines its own
 *
 * Only the user's file may set these: a project's .segue/ holds nothing but facets. A missing file
 * is an empty configuration. prompts/<language>/<name>.md beside it replace built-in templates.
 *
 * --- templates that replace nothing ---
 *
 * Finds the user's prompt templates that replace nothing.
 *
 * A file prompts/<language>/<name>.md beside config.yaml stands in for the built-in template of
 * that name (config.h reads them). Files with other names would never be read, so they are
 * reported. Hidden files, editors' copies (*~) and README files are ignored. */
#ifndef SEGUE_HOST_CONFIG_H
#define SEGUE_HOST_CONFIG_H

#include "base/err.h"

#include <jansson.h>

struct config {
  char *provider, *model;  /* NULL: not set */
  json_t *options;         /* or NULL */
  const char **env;        /* NULL-terminated, or NULL */
  json_t *sandbox;         /* from sandbox_read, or NULL */
  json_t *hidden_tests;    /* from hidden_tests_read, or NULL */
  json_t *facets;          /* list of absolute folders, or NULL */
  json_t *secrets;         /* list of names, or NULL */
  const char **hidden;     /* names of both, borrowed: NULL-terminated, or NULL */
  json_t *fallback;        /* name -> list of names, or NULL */
  json_t *workspace;       /* settings for worktrees, or NULL */
  json_t *notify;          /* from notify_config_set_read, or NULL */
  json_t *budget;          /* from day_set_read, or NULL */
  json_t *ask_above;       /* {calls, cost}, or NULL */
  json_t *prices;          /* model -> dollars, or NULL */
  json_t *shared_paths;    /* folder -> label of the workers that have it, or NULL */
  bool no_reset_wait;      /* wait_for_reset: off */
  json_t *outage_wait;     /* a duration, or false: off; or NULL */
  json_t *background_wait; /* a duration, or NULL */
  json_t *providers;       /* name -> settings, or NULL */
  json_t *templates;       /* "<language>/<name>.md" -> text, or NULL */
};

/* Describes a key of the file. The reader's checks and `segue config` use this one list. */
struct config_key {
  const char *name;     /* NULL ends the list */
  const char *value;    /* the default; NULL: none */
  const char *flag;     /* a command's flag that overrides it; or NULL */
  const char *variable; /* an environment variable that overrides it; or NULL */
  const char *what;
};
extern const struct config_key config_keys[];

/* Returns the content of the file, as written: a new reference, empty without a file. path: the
 * file's; "" if there is none. */
enum { CONFIG_PATH_BYTES = 1024 + 16 };
json_t *config_values(char path[CONFIG_PATH_BYTES], struct err *err);

/* Returns the address in `store`; "": there is none, or the file cannot be read, which config_load
 * reports. It is read once; the result stays the same. */
const char *config_store(void);

bool config_load(struct config *config, struct err *err) MUST_CHECK;
/* Returns the label of the workers that have this folder too; NULL: none is known. Borrowed. */
const char *config_shared_label(const struct config *config, const char *folder);
/* Writes its settings into the config of a session_start: default_provider, default_model,
 * default_options, templates, env, secrets. */
void config_resolve(const struct config *config, json_t *session_config);
/* Makes a configuration for a check that segue runs for a person, on what agents have made: with
 * the user's settings of now, and what commands inherit in that session or, without one (NULL), of
 * agents by default. New. */
json_t *config_for_check(const struct config *config, const json_t *session_config);
/* Adds the templates of another folder, DIR/<language>/<name>.md, over those it has. */
bool config_templates(struct config *config, const char *dir, struct err *err) MUST_CHECK;
void config_deinit(struct config *config);

/* --- templates that replace nothing --- */

/* Adds a warning for each file, with the name that was probably meant. */
void overrides_check(struct err_list *warnings);
/* Prints the same as warnings of the program. */
void overrides_warn(void);

#endif
