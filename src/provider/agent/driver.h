/* driver.h - holds the conversation with one agent while its program runs: bytes in, bytes and news
 * out.
 *
 * A driver is a pure, incremental machine over one call: it starts nothing and waits for nothing.
 * agent.c runs the program and feeds it; `segue providers test` feeds it a recording instead.
 *
 *   d = ops->open(call, profile, host)     may write the first bytes
 *   ops->output(d, fd, bytes)              pieces of stdout (1) and stderr (2), cut anywhere
 *   ops->sent(d, line)                     a replay only: what the recorded client wrote
 *   ops->reply(d, reply), event, woke      of an agent that is a server: see below
 *   ops->interrupt(d)                      the call is cancelled: ask the agent politely
 *   ops->end(d, process, result)           the program is gone: fills the result
 *   ops->close(d)
 *
 * One profile has up to three drivers, one for each transport, under one provider name. */
#ifndef SEGUE_PROVIDER_AGENT_DRIVER_H
#define SEGUE_PROVIDER_AGENT_DRIVER_H

#include "provider/agent/permission_policy.h"
#include "provider/profile/profile.h"
#include "provider/provider.h"
#include "provider/redact.h"

/* Some agents are HTTP servers on this machine (ops->password_env): requests replace stdin. What is
 * sent is copied; each request gets at least one reply, from the loop. */
struct driver_request {
  int id;           /* the driver's own; its reply carries it */
  const char *path; /* "/session" */
  struct str body;  /* JSON for a POST; p NULL: a GET */
  bool events;      /* the reply is a stream of events: each comes by ops->event */
};
struct driver_reply {
  int id;
  enum error_class class; /* CLASS_NONE: a reply came, whatever its status */
  int status;
  bool begun;          /* a stream with status 200 has begun; another reply is its end */
  struct str body;     /* whole, unless it is a stream */
  const char *message; /* an error's; else NULL */
};

/* A driver may call these from within its own functions. In a replay only news is set; a driver
 * must cope with NULL for the others. */
struct driver_host {
  void (*news)(void *ctx, const struct provider_news *news);
  bool (*write)(void *ctx, struct str bytes); /* to stdin; false: nobody reads */
  void (*close_stdin)(void *ctx);
  /* The final event came: the program may end by itself within LIMIT_AGENT_FINAL_GRACE_MS, and is
   * ended after that. */
  void (*answered)(void *ctx);
  /* It did, but the client works on: it has LIMIT_AGENT_BACKGROUND_MS from the first such time, and
   * less if it does nothing, unless it is in another turn and waits for its model. */
  void (*awaits)(void *ctx, bool turn);
  void (*give_up)(void *ctx); /* nothing more can help: end the program now */
  /* These are set for an agent that is a server; otherwise NULL. */
  void (*serves_at)(void *ctx, unsigned port); /* on 127.0.0.1: before the first request */
  void (*request)(void *ctx, const struct driver_request *request);
  /* calls ops->woke then, replacing an earlier time; 0: never */
  void (*wake)(void *ctx, uint64_t ms);
  void (*progress)(void *ctx);   /* it works without printing: this is no stall */
  const struct secrets *secrets; /* see redact.h; outlives the driver; or NULL */
  void *ctx;
};

struct driver; /* each driver has its own */

/* Answers a question by the limits of its call. *reason: as of permission_policy_allows. */
bool driver_allows(const struct agent_call *call, const struct permission_policy_ask *ask,
                   const char **reason);

struct driver_ops {
  const char *name; /* as in `native: {driver: NAME}`, or "exec" or "acp" */
  enum transport transport;
  bool keeps_stdin; /* it writes as it goes; else the command's stdin_bytes are all */
  /* the program is a server, whose password is in this variable; or NULL */
  const char *password_env;
  struct driver *(*open)(const struct profile *profile, const struct agent_call *call,
                         const struct driver_host *host);
  void (*output)(struct driver *d, int fd, struct str bytes);
  void (*reply)(struct driver *d, const struct driver_reply *reply); /* these are for a server */
  void (*event)(struct driver *d, struct str data);
  void (*woke)(struct driver *d);
  void (*sent)(struct driver *d, struct str line); /* or NULL */
  /* Tells the agent what a person says, unless its turn is over. The news that it was read carries
   * the key. NULL: its protocol has no way. */
  void (*steer)(struct driver *d, uint64_t key, struct str text);
  bool (*interrupt)(struct driver *d); /* false, or NULL: it cannot; the program gets TERM */
  /* Fills the result. `process` says why and how the program ended, with its stderr. */
  void (*end)(struct driver *d, const struct process_result *process, struct call_result *result);
  void (*close)(struct driver *d);
};

extern const struct driver_ops driver_exec;   /* stream.c: by the profile's `events` */
extern const struct driver_ops driver_acp;    /* acp.c: the Agent Client Protocol, version 1 */
extern const struct driver_ops driver_claude; /* claude.c: stream-json with its control protocol */
extern const struct driver_ops driver_codex;  /* codex.c: codex app-server */

extern const struct driver_ops driver_opencode; /* opencode_serve.c: opencode serve */

/* Returns the driver of a profile for a transport; NULL, with err, if there is none. */
const struct driver_ops *driver_find(const struct profile *profile, enum transport transport,
                                     struct err *err);

/* Resolves the setting `transport` for this profile. False: err says why it is impossible. */
bool driver_transport(const struct profile *profile, const json_t *settings, enum transport *out,
                      struct err *err) MUST_CHECK;

#endif
