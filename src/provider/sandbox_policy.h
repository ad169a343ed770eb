/* sandbox_policy.h - turns the settings of a call's sandbox (core/sandbox_settings.h) into what its
 * program may touch.
 *
 * The lists of what is secret and what builds keep are in sandbox_policy.c. The user's own (`read`,
 * `write` and `secret` of `sandbox` in config.yaml) are added to them; what those allow to be read
 * or written is allowed even if it would otherwise be secret.
 *
 *   process = sandbox_policy_start(&(struct sandbox_policy_spec){...}, ..., &held, &err)
 *   sandbox_policy_end(&held)        when the program has ended
 *
 * Makes the folders of `state`, and those that build tools keep, if they are missing: inside a
 * sandbox nobody else could. */
#ifndef SEGUE_PROVIDER_SANDBOX_POLICY_H
#define SEGUE_PROVIDER_SANDBOX_POLICY_H

#include "http/proxy.h"
#include "os/sandbox.h"
#include "provider/provider.h"

struct sandbox_policy_spec {
  const struct provider_env *env;
  const struct call_request *request;
  const char *cwd, *tmpdir;
  const char *const *argv, *const *envp;
  const json_t *state;        /* a profile's: what the client keeps of its own; or NULL */
  const json_t *hosts;        /* a profile's: what it reaches with network: api; or NULL */
  struct provider_sink *sink; /* told where it was refused to go, until sandbox_policy_end */
};

enum { SANDBOX_POLICY_ENGINE_FAILED = 125 }; /* of podman and docker: the container did not start */

/* Has the configuration for the check of a session's `segue integrate`: "sandbox" and "env". */
#define SANDBOX_POLICY_CHECK "SEGUE_CHECK_SANDBOX"

struct confined {
  bool contained;      /* by an engine: one that fails exits with SANDBOX_POLICY_ENGINE_FAILED */
  struct proxy *proxy; /* its way out with network: api; else NULL */
  struct placeholder *stand_ins; /* files that it must not create; or NULL */
};

/* Starts a call's program within what may hold it, and its limits; `how` says the rest. NULL: it
 * must not start, or could not; err says why. */
struct process *sandbox_policy_start(const struct sandbox_policy_spec *spec,
                                     const struct process_spec *how, process_output_cb on_output,
                                     process_end_cb on_end, void *ctx, struct confined *held,
                                     struct err *err) MUST_CHECK;
/* Makes what holds segue's own git in this folder, as guard does, but without network: it writes
 * below these only. words: a session's `sandbox`. NULL without an error: nothing holds it. */
struct sandbox *sandbox_policy_for_git(const json_t *words, const char *cwd,
                                       const char *const *writes, struct err *err);
/* It may be called again. */
void sandbox_policy_end(struct confined *held);

/* Notes in the result of a `contained` program that its engine failed; false: it did not. */
bool sandbox_policy_engine_failed(bool contained, const struct process_result *p,
                                  const struct call_request *request, struct call_result *r);

/* Says what a program was denied that failed within its sandbox, as far as its own words tell
 * (`text`, provider/denials.h), and which setting allows it. Counts are only paths that its lists
 * deny and that its user could use without them, and a network that it does not have: that is no
 * proof, since Landlock tells nobody. False: nothing is known, and `why` is unchanged. */
bool sandbox_policy_denied(const struct sandbox_policy_spec *spec, struct str text,
                           struct buf *why);

/* True if something will confine its program. */
bool sandbox_policy_holds(const struct call_request *request);

/* Reports to the log what it tried that only a person may do. */
void sandbox_policy_tried(const struct provider_sink *sink, const char *tmpdir);

#endif
