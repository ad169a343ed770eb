/* confine.h - turns the settings of a call's sandbox (core/sandbox.h) into what its program may
 * touch.
 *
 * The lists of what is secret and what builds keep are in confine_lists.c. The user's own (`read`,
 * `write` and `secret` of `sandbox` in config.yaml) are added to them; what those allow to be read
 * or written is allowed even if it would otherwise be secret.
 *
 *   ok = confine_call(&(struct confine_spec){...}, &held, &err)
 *                                    held.sandbox NULL: nothing confines it
 *   process_start(... .sandbox = held.sandbox ...); sandbox_free(held.sandbox)
 *   confine_end(&held)        when the program has ended
 *
 * Makes the folders of `state`, and those that build tools keep, if they are missing: inside a
 * sandbox nobody else could. */
#ifndef SEGUE_PROVIDER_CONFINE_H
#define SEGUE_PROVIDER_CONFINE_H

#include "http/proxy.h"
#include "os/sandbox.h"
#include "provider/provider.h"

struct confine_spec {
  const struct provider_env *env;
  const struct call_request *request;
  const char *cwd, *tmpdir;
  const char *const *argv, *const *envp;
  const json_t *state; /* a profile's: what the client keeps of its own; or NULL */
  const json_t *hosts; /* a profile's: what it reaches with network: api; or NULL */
  void (*refused)(void *ctx, const char *where); /* of http/proxy.h; until confine_end */
  void *ctx;
};

enum { CONFINE_ENGINE_FAILED = 125 }; /* of podman and docker: the container did not start */

struct confined {
  struct sandbox *sandbox;
  bool contained;             /* by an engine: one that fails exits with CONFINE_ENGINE_FAILED */
  struct proxy *proxy;        /* its way out with network: api; else NULL */
  struct stand_in *stand_ins; /* files that it must not create; or NULL */
};

/* False: the call must not start; err says what cannot be enforced. */
bool confine_call(const struct confine_spec *spec, struct confined *out,
                  struct err *err) MUST_CHECK;
/* Releases all but the sandbox. It may be called again. */
void confine_end(struct confined *held);

/* The limits of its program, as its call_start tells them. */
struct process_limits confine_limits(const struct call_request *request);

/* Notes in the result of a `contained` program that its engine failed; false: it did not. */
bool confine_engine_failed(bool contained, const struct process_result *p,
                           const struct call_request *request, struct call_result *r);

/* True if something will confine its program. */
bool confine_holds(const struct call_request *request);

/* confine_lists.c: paths, ~/ being the home folder; NULL-ended. */
extern const char *const confine_secrets[];      /* not read, and written by nobody */
extern const char *const confine_root_secrets[]; /* which only root could read */
struct confine_cache {
  const char *folder, *program; /* made if missing, for users who have the program; or NULL */
};
extern const struct confine_cache confine_caches[]; /* written with guard; ends with NULL */

#endif
