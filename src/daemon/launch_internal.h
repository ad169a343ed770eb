/* launch_internal.h - what the parts of launch.h share: a request's body while a launch is made.
 *
 * launch.c makes one from a submitted session's body or again from a log; launch_again.c from what
 * is said about another session: a resume, a fork; launch_question.c from questions that are
 * answered at once. */
#ifndef SEGUE_DAEMON_LAUNCH_INTERNAL_H
#define SEGUE_DAEMON_LAUNCH_INTERNAL_H

#include "daemon/launch.h"
#include "host/preflight.h"

struct workflow_marks;

struct launch_body {
  struct launch *l;
  const json_t *body;
  struct err *err;
  struct err_list *errors;
  struct workflow_marks *marks; /* of the workflow's file */
  struct err_list *warnings;    /* or NULL: nobody wants them */
  char key[SHA256_HEX];         /* of a workflow that can be remembered; or "" */
  bool remembered, anew;        /* it was; it is not to be */
  bool lints;                   /* the workflow alone is looked at, not what would run it */
};

/* A member as text; NULL when it is missing. *ok turns false when it is something else. */
const char *launch_text_of(const struct launch_body *p, const char *key, bool *ok);
/* A misspelt member must not look like none. `where` with a dot stands before the name in the
 * message; "" for the body itself. */
bool launch_members_known(const struct launch_body *p, const json_t *object, const char *where,
                          const char *const members[]);
/* The body of a session: fills the launch. Frees nothing: marks are the caller's. */
bool launch_read(struct launch_body *p) MUST_CHECK;
struct preflight launch_flight(const struct launch_body *p);
/* Members into the config of the launch; of scenario also the launch's own. */
bool launch_take_cwd(const struct launch_body *p);
bool launch_take_scenario(const struct launch_body *p);
/* Borrows from l->config, which lives as long as the launch. */
void launch_use_config(struct launch *l);

#endif
