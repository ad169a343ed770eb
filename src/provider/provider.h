/* provider.h - a backend that answers calls, behind one interface.
 *
 * Order: prepare (pure, before the call's record: its token makes the call repeatable), then start
 * once that record is durable; exactly one done comes from the loop, never from within start or
 * cancel. cancel may come at any time until done; done then has class cancelled, unless the answer
 * was already there. The request is borrowed for prepare and until done for start. */
#ifndef SEGUE_PROVIDER_PROVIDER_H
#define SEGUE_PROVIDER_PROVIDER_H

#include "core/call.h"
#include "core/capability.h"
#include "os/process.h"
#include "provider/scenario.h"

#include <uv.h>

/* What the calls of one session share; owned by the host, constant while calls are open. */
struct provider_env {
  uv_loop_t *loop;
  struct process_table *processes; /* NULL: nothing is started (tests, segue prompt) */
  const char *cwd;                 /* where agents work: absolute */
  const char *const *pass_env;     /* names copied into children's environment, or NULL */
  const struct scenario *scenario; /* of the script provider, or NULL */
};

struct provider_run; /* a call that was started */

/* Takes the result over (call_result_deinit). */
typedef void (*provider_done_fn)(void *ctx, struct call_result *result);

struct provider_ops {
  struct capability capability;
  json_t *(*prepare)(const struct provider_env *env, const struct call_request *request,
                     const json_t *token_counts, const unsigned char entropy[16]); /* or NULL */
  struct provider_run *(*start)(const struct provider_env *env, const struct call_request *request,
                                provider_done_fn done, void *ctx);
  void (*cancel)(struct provider_run *run);
};

extern const struct provider_ops provider_script, provider_command;

/* NULL when there is none of that name. */
const struct provider_ops *provider_find(struct str name);
/* The capabilities of all, ending with a NULL name: for lint, help and the core. */
const struct capability *provider_capabilities(void);

/* True when every option is one that the provider takes, with a value of its type; else err names
 * the option and what to do. `options` may be NULL. */
bool provider_check_options(const struct capability *capability, const json_t *options,
                            struct err *err) MUST_CHECK;

#endif
