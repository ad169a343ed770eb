/* fork.h - begins a session where another one was, by reading that one's log up to a movement's
 * start.
 *
 *   fork_read(&f, &ref, "review#2", &err)        the state before that run of review
 *   fork_set_instruction(&f, text, &err)         optionally: another one for that movement
 *   fork_settle(&f, changed, cwd, &user, registry, has_scenario, &err)
 *   host_start with fork_params(&f, &params)     f lives until the session was begun
 *   fork_deinit(&f)                              accepts a zeroed one
 *
 * Nothing is called again, and the parent's log is not changed. The new session's log holds all
 * that it needs (core/fork_state.c). What agents did to the working tree stays done, and their
 * conversations keep everything said in them.
 *
 * Reading may run in the loop's pool: it touches only `f` and files. */
#ifndef SEGUE_HOST_FORK_H
#define SEGUE_HOST_FORK_H

#include "host/config.h"
#include "host/host.h"

struct fork {
  struct core core; /* the parent's state at that point */
  char hash[SHA256_HEX];
  struct text text, task;
  struct workflow *workflow; /* the parent's, or with another instruction */
  char *workflow_path;       /* or NULL */
  json_t *facets;            /* or NULL */
  json_t *config;
  json_t *place;   /* for config: source, base, merge; or NULL */
  struct buf more; /* text for the task */
  struct store store;
  struct core_parent parent;
};

/* Reads up to `from`: MOVEMENT (its last run) or MOVEMENT#N. ERR_USAGE: there is no such run. */
bool fork_read(struct fork *f, const struct store_ref *ref, const char *from,
               struct err *err) MUST_CHECK;
/* Reads the state at the session's end, for any movement of its workflow. */
bool fork_read_end(struct fork *f, const struct store_ref *ref, const char *movement,
                   struct err *err) MUST_CHECK;
bool fork_set_instruction(struct fork *f, struct str text, const struct config *user,
                          const struct provider_registry *registry, struct err *err) MUST_CHECK;
/* Asks for changes to its task and its worktree, before fork_settle; copied. */
struct fork_place_wish {
  struct str more;   /* appended to the task; may be empty */
  json_t *source;    /* config.source; or NULL: the parent's */
  const char *base;  /* start of its worktree; NULL: the parent's branch */
  const char *merge; /* a commit that is merged into it before its first call; or NULL */
};
void fork_wish_place(struct fork *f, const struct fork_place_wish *wish);
/* Makes the new session's settings. changed: members as of struct resume_options; cwd: another
 * working directory, or NULL. */
bool fork_settle(struct fork *f, const json_t *changed, const char *cwd, const struct config *user,
                 const struct provider_registry *registry, bool has_scenario,
                 struct err *err) MUST_CHECK;
/* These give the state taken over, and everything that host_start needs but the setup. Borrowed
 * from f. */
const struct core_parent *fork_parent(struct fork *f);
void fork_params(struct fork *f, struct session_params *params);
void fork_deinit(struct fork *f);

#endif
