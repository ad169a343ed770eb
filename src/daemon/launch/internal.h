/* internal.h - shared by the parts of daemon/launch.h: a request's body while a launch is made.
 *
 * launch.c makes one from a submitted session's body, or again from a log, with fields.c,
 * load_workflow.c and keep_scenario.c for a part of the body each; again.c makes one from a request
 * about another session (resume, fork), and questions.c from questions that are answered at
 * once. */
#ifndef SEGUE_DAEMON_LAUNCH_INTERNAL_H
#define SEGUE_DAEMON_LAUNCH_INTERNAL_H

#include "daemon/launch.h"
#include "host/preflight.h"

struct workflow_marks;

struct shared_scenario {
  struct shared_scenario *next;
  unsigned references;
  struct scenario scenario;
};

struct launch_body {
  struct launch *l;
  const json_t *body;
  struct err *err;
  struct err_list *errors;
  struct workflow_marks *marks; /* of the workflow's file */
  struct err_list *warnings;    /* or NULL: not wanted */
  bool lints;                   /* only the workflow is checked, not what would run it */
  bool runs;                    /* a session is to begin, not just described */
};

/* Returns a member as text; NULL when it is missing. *ok turns false when it is something else. */
const char *launch_text_of(const struct launch_body *p, const char *key, bool *ok);
/* Refuses an object with an unknown member, because a misspelt one must not pass for a missing one.
 * `where`, with a dot, precedes the name in the message; "" for the body itself. */
bool launch_members_known(const struct launch_body *p, const json_t *object, const char *where,
                          const char *const members[]);
/* Reads a member that is an absolute path, or {"text": ...}, which leaves *path NULL. */
bool launch_path_or_text(const struct launch_body *p, const char *key, const char **path,
                         const json_t **text);
bool launch_is_folder(const char *path);

/* Reads the body of a session into the launch. Frees nothing: marks are the caller's. */
bool launch_read(struct launch_body *p) MUST_CHECK;
struct preflight launch_flight(const struct launch_body *p);
/* Put members into the launch's config: its turn (which others keep it from running, and until when
 * it may begin) and its place (where it works, and what others may do there meanwhile). */
bool launch_take_text(const struct launch_body *p, const char *key);
bool launch_take_cwd(const struct launch_body *p);
bool launch_take_providers(const struct launch_body *p);
bool launch_take_provider(const struct launch_body *p);
bool launch_take_turn(const struct launch_body *p);
bool launch_take_options(const struct launch_body *p);
bool launch_take_place(const struct launch_body *p);
/* Puts the workflow of the body into the launch: load_workflow.c. */
bool launch_take_workflow(struct launch_body *p);
/* Keeps the bytes as a blob of the store, named sha256. */
bool launch_keep_blob(const struct launch_body *p, struct str bytes, char sha256[SHA256_HEX]);

/* Scenarios (keep_scenario.c): the body's goes into the config and the launch; one named by a log's
 * config comes from the file if that is unchanged, otherwise from the kept bytes. */
bool launch_take_scenario(const struct launch_body *p);
bool launch_scenario_again(struct launch *l, struct err *err);
/* Returns a reference to the scenario used last: successive requests mostly bring the same one. */
struct shared_scenario *launch_newest_scenario(const struct launch_env *env);
void launch_share_scenario(struct launch *l);
void launch_drop_scenario(struct launch_env *env, struct shared_scenario *s); /* NULL is fine */

/* Borrows from l->config, which lives as long as the launch. */
void launch_use_config(struct launch *l);

#endif
