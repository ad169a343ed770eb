/* steer.h - reads what a person says when resuming a session: a verdict, other providers, more
 * turns.
 *
 *   steer_parse(&st, body, registry, &err)       members as POST .../resume has them
 *   steer_set_scenario(&st, scenario)            the caller has read it
 *   steer_settle(&st, core, &user, registry, has_scenario, &err)     against the session as it is
 *   host_go(..., &st.core, ...) or host_accept(..., &st.core)
 *   steer_deinit(&st)                            accepts a zeroed one
 *
 * Otherwise the session continues with the user's present configuration. */
#ifndef SEGUE_HOST_STEER_H
#define SEGUE_HOST_STEER_H

#include "core/decide.h"
#include "host/config.h"
#include "provider/registry.h"

struct steer {
  struct core_steer core; /* borrows from below */
  json_t *by, *config, *changed;
  char *why;
  unsigned browser; /* of the window, in which it was said; 0: none */
};

/* Checks that there are only these members (NULL-terminated); otherwise err says which was probably
 * meant. */
bool steer_known_members(const json_t *body, const char *const *members,
                         struct err *err) MUST_CHECK;
/* Reads the members rule, why, max_movements, add_budget, provider, providers, model,
 * judge_provider; scenario is left to the caller. body NULL: nothing is said. ERR_INVALID: the body
 * is wrong. */
bool steer_parse(struct steer *st, const json_t *body, const struct provider_registry *registry,
                 struct err *err) MUST_CHECK;
/* Does the same for a fork, without a verdict; from, instruction and cwd are left to the caller. */
bool steer_parse_fork(struct steer *st, const json_t *body,
                      const struct provider_registry *registry, struct err *err) MUST_CHECK;
void steer_set_scenario(struct steer *st, json_t *scenario); /* taken: {path, sha256} */
/* True if the body says more than that the session continues. */
bool steer_says(const struct steer *st);
/* Makes the config and the person; checks that the session can be resumed in this way. */
bool steer_settle(struct steer *st, const struct core *core, const struct config *user,
                  const struct provider_registry *registry, bool has_scenario,
                  struct err *err) MUST_CHECK;
void steer_deinit(struct steer *st);

/* Returns the user that this process runs as: {uid, name}. A new reference. */
json_t *steer_person(void);
/* Adds the window's browser in which that person said it; 0: none. */
void steer_set_browser(json_t *by, unsigned browser);
/* Checks that the movements in `providers` are the workflow's. */
bool steer_movements_known(const json_t *changed, const struct workflow *workflow,
                           struct err *err) MUST_CHECK;
/* Returns a session's config, updated from the user's present configuration, with `changed` on top.
 * A new reference. */
json_t *steer_config(const json_t *config, const struct config *user, const json_t *changed);

#endif
