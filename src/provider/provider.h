/* provider.h - a backend that answers calls, behind one interface.
 *
 * Order: prepare (pure, before the call's record: its token makes the call repeatable), then
 * start once that record is durable; any number of news and exactly one done come from the loop,
 * never from within start or cancel. cancel may come at any time until done; done then has class
 * cancelled, unless the answer was already there. The request is borrowed for prepare and until
 * done for start; the provider and the environment outlive the call. */
#ifndef SEGUE_PROVIDER_PROVIDER_H
#define SEGUE_PROVIDER_PROVIDER_H

#include "core/call.h"
#include "core/capability.h"
#include "os/process.h"
#include "provider/scenario.h"

#include <uv.h>

struct api; /* provider/api/api.h */

/* The calls of one session share this; owned by the host, constant while calls are open. */
struct provider_env {
  uv_loop_t *loop;
  struct process_table *processes; /* NULL: nothing is started (tests, segue prompt) */
  struct ruleset_cache *sandboxes; /* those of earlier calls (os/sandbox.h); or NULL */
  const char *cwd;                 /* where agents work: absolute */
  const char *const *pass_env;     /* names copied into children's environment, or NULL */
  const json_t *secrets; /* names of variables that a call may name, see call_env.h; or NULL */
  const json_t *sandbox; /* of the session's configuration, see host/sandbox_config.h; or NULL */
  const json_t *links;   /* names in the main checkout to which a worktree links; or NULL */
  const char *const *own_folders;  /* where segue keeps its own: not for agents; or NULL */
  const struct scenario *scenario; /* of the script provider, or NULL */
  size_t *scenario_used;           /* see scenario_pick; one a session, or NULL */
  struct api *api;                 /* of the model APIs over HTTP; NULL: there is no network */
};

/* A call can report these before its end. */
enum provider_news_kind {
  NEWS_TEXT,       /* a piece of the answer as it comes: for those who watch, never a record */
  NEWS_THINKING,   /* the same of its reasoning */
  NEWS_SESSION,    /* data {"provider_session": id}; this and all below become records */
  NEWS_TOOL,       /* a tool was used: {"name", ...} */
  NEWS_USAGE,      /* tokens so far */
  NEWS_RETRY,      /* the backend tries again by itself */
  NEWS_PERMISSION, /* it asked whether it may do something, and what was answered */
  NEWS_NOTE,       /* something an auditor should know: {"text"} */
  NEWS_STEER,      /* its agent has read what a person said: {"said": the key that came with it} */
};
const char *provider_news_name(enum provider_news_kind kind); /* "text", "session", ... */

struct provider_news {
  enum provider_news_kind kind;
  struct str text;    /* of text and thinking: UTF-8, possibly cut between two characters' pieces */
  const json_t *data; /* object, of all others */
};

/* Where a call reports; copied by start. Everything is borrowed for the callback but the result,
 * which done takes over (call_result_deinit). */
struct provider_sink {
  void (*news)(void *ctx, const struct provider_news *news);
  void (*done)(void *ctx, struct call_result *result);
  void *ctx;
};

/* Tells news; takes the data, which may be NULL. A sink without `news` wants none. */
void provider_tell(const struct provider_sink *sink, enum provider_news_kind kind, struct str text,
                   json_t *owned_data);

struct provider;

/* A started call: a provider's own struct for it begins with this. */
struct provider_run {
  const struct provider *provider;
};

struct provider_ops {
  json_t *(*prepare)(const struct provider *self, const struct provider_env *env,
                     const struct call_request *request, const json_t *token_counts,
                     const unsigned char entropy[16]); /* or NULL */
  struct provider_run *(*start)(const struct provider *self, const struct provider_env *env,
                                const struct call_request *request,
                                const struct provider_sink *sink);
  void (*cancel)(struct provider_run *run);
  /* Returns whether the backend, as it is set up, has a channel for what a person says while a call
   * runs; NULL: none has. */
  bool (*can_steer)(const struct provider *self);
  /* Hands it a text. `key` comes back with the news that the agent has read it, if it does. */
  void (*steer)(struct provider_run *run, uint64_t key, struct str text);
};

/* Describes one backend. Constant once it is in a registry. */
struct provider {
  struct capability capability;
  const struct provider_ops *ops;
  const void *data;       /* what its ops were given to work with, such as a profile; or NULL */
  const json_t *settings; /* the user's own for it: `providers: {NAME: {...}}`; or NULL */
};

extern const struct provider provider_script, provider_command;

/* True if the provider takes every option and each value has the right type; otherwise err names
 * the option and what to do. `options` may be NULL. */
bool provider_check_options(const struct capability *capability, const json_t *options,
                            struct err *err) MUST_CHECK;

#endif
