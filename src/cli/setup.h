/* setup.h - turns words on the command line into what a session needs: the workflow, the resolved
 * configuration, the scenario, the working directory. Used by run, prompt and lint. */
#ifndef SEGUE_CLI_SETUP_H
#define SEGUE_CLI_SETUP_H

#include "cli/cli.h"
#include "host/backends.h"
#include "host/config.h"
#include "host/host.h"
#include "host/preflight.h"

struct setup {
  struct config user;
  struct provider_registry *registry;
  struct workflow *workflow;
  struct workflow_marks *marks; /* places in its file */
  json_t *config;               /* session_start's */
  json_t *replace;              /* keys of the workflow that were given beside its file, or NULL */
  json_t *inputs;               /* for the workflow's params: name -> text */
  struct err hides;             /* what the workflow's file hides, see paths_workflow */
  bool starts;                  /* a session is to begin, so no param may lack its value */
  json_t *facets; /* the files that the workflow's facets came from; see workflow/facets.h */
  struct scenario scenario;
  bool has_scenario;
  char cwd[1024];
  char workflow_path[1024]; /* absolute */
};

/* Reads --stages: a list of ways to judge, each once. NULL sets nothing. */
bool setup_stages(const char *list, json_t **stages, struct err *err) MUST_CHECK;

/* Takes from the flags everything except the workflow. False: a message was printed, and *status is
 * the exit status. */
bool setup_flags(struct setup *setup, const struct cli_args *args, int *status);
/* Loads, lints and builds the workflow, and keeps its path. `word` is a path, or the name of a
 * workflow of the project, the user or segue (paths_workflow). True: there are no errors. */
bool setup_load(struct setup *setup, const char *word, struct err_list *errors,
                struct err_list *warnings);
/* Does the same, and prints all errors and warnings: all if asked, otherwise those of
 * preflight_warn. */
bool setup_workflow(struct setup *setup, const struct cli_args *args, const char *path,
                    bool warnings, int *status);
/* Returns whether this entry of `facets` belongs to that movement, or with NULL to any. */
bool setup_has_facet(const json_t *entry, const char *movement);
/* Prints a line for each file that a facet came from: for one movement, or with NULL for all. */
void setup_print_facets(const struct setup *setup, const char *movement, FILE *out);
/* Does the same for a session that is about to start, and reports everything that stands in its way
 * (host/preflight.h) at once. Reads the task too. */
bool setup_start(struct setup *setup, const struct cli_args *args, const char *word,
                 struct buf *task, int *status);
/* Says where and with what its sessions work; borrowed from the setup. */
struct session_setup setup_session(const struct setup *setup);
/* Gathers what its checks need. */
struct preflight setup_preflight_of(const struct setup *setup);
/* Checks that every movement's backend exists, takes its options and can do what is asked of it.
 * Whether it is installed shows in its calls. */
bool setup_preflight(const struct setup *setup, struct err *err) MUST_CHECK;
void setup_deinit(struct setup *setup);

/* Puts -O KEY=VALUE into `options` of the config. */
bool setup_options(const struct cli_args *args, json_t *config, struct err *err) MUST_CHECK;

/* Puts the options of the group `place` into the config, or the body of a request. */
bool setup_place(const struct cli_args *args, json_t *config, struct err *err) MUST_CHECK;

/* Puts --on into the config, or the body of a request; for a session that begins here also what the
 * user's shared_paths say of its folder. */
bool setup_on(const struct cli_args *args, json_t *config, struct err *err) MUST_CHECK;
bool setup_on_here(struct setup *setup, const struct cli_args *args, struct err *err) MUST_CHECK;

/* Reads a task from --task or --task-file (- is stdin); empty if neither is given. */
bool setup_task(const struct cli_args *args, struct buf *task, struct err *err) MUST_CHECK;
/* Notes in a configuration, or in a request, that a person typed the task: not a forge's text, no
 * file, no program that a session runs. After forge_task_take. */
void setup_task_typed(const struct cli_args *args, json_t *config);

/* Puts the given values into `inputs`. */
bool inputs_read(const struct cli_args *args, json_t *inputs, struct err *err) MUST_CHECK;

/* Asks for each param of the file that has neither a value nor a default, if standard input and
 * standard error are a terminal and neither --quiet nor --json was given; otherwise does
 * nothing. */
void inputs_ask(const struct cli_args *args, const char *path, json_t *inputs);

#endif
