/* launch.h - everything a session is started with, made from a request or read back from its log.
 *
 *   launch_init(&l, env)                         with the configuration as it is now
 *   launch_parse(&l, kind, body, &err, &errors)  the body of a request
 *   launch_share(&l)                             shares what other sessions have too
 *   launch_again(&l, env, config, &err)          from the config of a session_start, without these
 *   launch_deinit(&l)                            when no session uses it any longer
 *
 * launch_parse may run in the loop's pool: it touches only `l` and things that do not change while
 * `l` holds a reference to them. All others are for the loop.
 *
 * Scenarios are shared by their hash. A scenario's bytes are kept in the blobs of the store, so
 * that a session can go on after the file changed. */
#ifndef SEGUE_DAEMON_LAUNCH_H
#define SEGUE_DAEMON_LAUNCH_H

#include "base/sha256.h"
#include "host/backends.h"
#include "host/fork.h"
#include "host/host.h"
#include "host/resume_options.h"

/* The user's configuration and the backends made from it; each reading makes a new generation. */
struct generation {
  unsigned references;
  struct config user;
  struct provider_registry *registry;
};

/* NULL: it is wrong, err says where. Returns one reference. */
struct generation *generation_new(struct err *err);
struct generation *generation_ref(struct generation *g);
void generation_unref(struct generation *g); /* NULL is fine */

struct shared_scenario;
struct launch_env {
  struct generation *generation; /* of what starts now */
  struct store *store;
  struct workflow_cache *workflows;
  struct shared_scenario *scenarios; /* all that are in use */
};

/* The session from which another is forked. */
struct launch_about {
  struct store_ref log;
  struct fork fork;
};

/* Which answer its client waits for. */
enum launch_asks { ASKS_SESSION, ASKS_JUDGMENT, ASKS_VALUE, ASKS_NOTHING };

struct launch {
  struct launch_env *env;
  struct generation *generation;
  struct shared_scenario *scenario; /* or NULL */
  struct shared_scenario *known;    /* of others, perhaps the same; or NULL */
  json_t *config;                   /* of session_start */
  bool skips;                       /* skipped if another one with its key runs */
  bool asks_more;                   /* than a sandbox gives, by a word that is not remembered */
  const char **pass_env;            /* names within config */
  struct session_setup setup;       /* all of it, in the host's form */
  /* of a new session only: */
  struct workflow *workflow;
  char *workflow_path; /* or NULL */
  json_t *facets;      /* of session_start; see workflow/facets.h */
  struct buf task;
  char task_blob[SHA256_HEX]; /* the blob that already has the task, or "" */
  /* only for a question that is answered when it is over: */
  enum launch_asks asks;
  struct buf given; /* ASKS_JUDGMENT: the text that is judged */
  json_t *answer;   /* ASKS_NOTHING: nothing is started, this is the answer */
  /* only for a session that is resumed or forked: */
  struct resume_options steer;
  struct parsed_answer said;  /* of an answer to a question */
  struct launch_about *about; /* or NULL */
};

void launch_init(struct launch *l, struct launch_env *env);
/* The bodies of requests, in schemas/api.json. */
enum launch_kind {
  LAUNCH_SESSION, /* POST /v1/sessions */
  LAUNCH_FORK,    /* .../fork: l.about was made */
  LAUNCH_JUDGE,
  LAUNCH_ASK,
  LAUNCH_LINT, /* the answer is l.answer, as of a plan */
  LAUNCH_PLAN,
  LAUNCH_STEER,  /* .../resume: l.steer */
  LAUNCH_ANSWER, /* l.said, as of the next three */
  LAUNCH_APPROVE,
  LAUNCH_REJECT,
  LAUNCH_SAY /* .../steer */
};
/* False: the request is wrong. errors: everything that keeps its workflow from running, with places
 * in its file; otherwise see err. */
bool launch_parse(struct launch *l, enum launch_kind kind, const json_t *body, struct err *err,
                  struct err_list *errors) MUST_CHECK;
/* Returns a list of errors as the API tells it: a new array. */
json_t *launch_errors_json(const struct err_list *errors);

/* Finds the scenario that its config names, unless the fork brought one. From the loop. */
bool launch_find_scenario(struct launch *l, struct err *err) MUST_CHECK;
void launch_share(struct launch *l);
/* False: it cannot continue, err says why; `l` is as after launch_deinit. */
bool launch_again(struct launch *l, struct launch_env *env, json_t *config,
                  struct err *err) MUST_CHECK;
/* Releases what only a start needs: workflow, task. */
void launch_started(struct launch *l);
void launch_deinit(struct launch *l);

/* Returns the members of a request that stand in place of the workflow's own keys. New. */
json_t *launch_replaced(const json_t *body);

#endif
