/* resume_options.h - reads what a person says when resuming a session: a verdict, other providers,
 * more turns.
 *
 *   resume_options_parse(&st, body, registry, &err)       members as POST .../resume has them
 *   resume_options_set_scenario(&st, scenario)            the caller has read it
 *   resume_options_settle(&st, core, &user, registry, has_scenario, &err)
 *       against the session as it is
 *   host_go(..., &st.core, ...) or host_accept(..., &st.core)
 *   resume_options_deinit(&st)                            accepts a zeroed one
 *
 * Otherwise the session continues with the user's present configuration. */
#ifndef SEGUE_HOST_RESUME_OPTIONS_H
#define SEGUE_HOST_RESUME_OPTIONS_H

#include "core/answer.h"
#include "core/decide.h"
#include "host/config.h"
#include "provider/registry.h"

struct parsed_answer {
  struct core_answer core; /* borrows from below */
  json_t *body, *by;
};

/* Reads a body. says: SAYS_TEXT for an answer of either kind. ERR_INVALID: the body is wrong. */
bool parsed_answer_parse(struct parsed_answer *said, const json_t *body, enum answer_says says,
                         struct err *err) MUST_CHECK;
void parsed_answer_deinit(struct parsed_answer *said);

struct resume_options {
  struct core_steer core; /* borrows from below */
  json_t *by, *config, *changed;
  char *why;
  unsigned browser; /* of the window, in which it was said; 0: none */
};

/* Reads the members rule, why, now, max_movements, add_budget, provider, providers, model,
 * judge_provider; scenario is left to the caller. body NULL: nothing is said. ERR_INVALID: the body
 * is wrong. */
bool resume_options_parse(struct resume_options *st, const json_t *body,
                          const struct provider_registry *registry, struct err *err) MUST_CHECK;
/* Does the same for a fork, without a verdict; from, instruction and cwd are left to the caller. */
bool resume_options_parse_fork(struct resume_options *st, const json_t *body,
                               const struct provider_registry *registry,
                               struct err *err) MUST_CHECK;
void resume_options_set_scenario(struct resume_options *st,
                                 json_t *scenario); /* taken: {path, sha256} */
/* True if the body says more than that the session continues. */
bool resume_options_says(const struct resume_options *st);
/* Makes the config and the person; checks that the session can be resumed in this way, by a person
 * if that accepts changed protected files. */
bool resume_options_settle(struct resume_options *st, const struct core *core,
                           const struct config *user, const struct provider_registry *registry,
                           bool has_scenario, struct err *err) MUST_CHECK;
void resume_options_deinit(struct resume_options *st);

/* Only a person answers, labels, and resumes with a word. False: this process is a program of a
 * session, whose log will say that it tried this command (os/tmpdir.h). */
bool resume_options_by_person(const char *command, const char *word, struct err *err) MUST_CHECK;
/* Does the same for another program, see orphan_program. Returns false. */
bool resume_options_refuse(const char *program, const char *command, const char *word,
                           struct err *err);
/* Returns the user that this process runs as: {uid, name}. A new reference. */
json_t *resume_options_person(void);
/* Adds the window's browser in which that person said it; 0: none. */
void resume_options_set_browser(json_t *by, unsigned browser);
/* Checks that the movements in `providers` are the workflow's. */
bool resume_options_movements_known(const json_t *changed, const struct workflow *workflow,
                                    struct err *err) MUST_CHECK;
/* Returns a session's config, updated from the user's present configuration, with `changed` on top.
 * A new reference. */
json_t *resume_options_config(const json_t *config, const struct config *user,
                              const json_t *changed);

/* Refuses an object with an unknown member, because a misspelt one must not pass for a missing one.
 * `where`, with a dot, precedes the name in the message; "" for the body of a request itself. */
bool resume_options_members_known(const json_t *body, const char *where, const char *const *members,
                                  struct err *err) MUST_CHECK;

#endif
