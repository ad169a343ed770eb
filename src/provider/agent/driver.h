/* driver.h - the conversation with one agent while its program runs: bytes in, bytes and news out.
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
 * One profile has up to three drivers, one a transport, under one provider name. */
#ifndef SEGUE_PROVIDER_AGENT_DRIVER_H
#define SEGUE_PROVIDER_AGENT_DRIVER_H

#include "provider/agent/policy.h"
#include "provider/profile/profile.h"
#include "provider/provider.h"
#include "provider/redact.h"

/* Some agents are HTTP servers on this machine (ops->password_env): requests replace stdin. What is
 * sent is copied; each request gets at least one reply, from the loop. */
struct driver_request {
  int id;           /* the driver's own; its reply carries it */
  const char *path; /* "/session" */
  struct str body;  /* JSON, of a POST; p NULL: a GET */
  bool events;      /* the reply is a stream of events: each comes by ops->event */
};
struct driver_reply {
  int id;
  enum error_class class; /* CLASS_NONE: a reply came, whatever its status */
  int status;
  bool begun;          /* a stream with status 200 has begun; another reply is its end */
  struct str body;     /* whole, unless it is a stream */
  const char *message; /* of an error; else NULL */
};

/* A driver may call these from within its own functions. A replay has only news; the others may be
 * NULL, and a driver must cope. */
struct driver_host {
  void (*news)(void *ctx, const struct provider_news *news);
  bool (*write)(void *ctx, struct str bytes); /* to stdin; false: nobody reads */
  void (*close_stdin)(void *ctx);
  void (*answered)(void *ctx); /* the final event was there: the program may end by itself, for
                                  LIMIT_AGENT_FINAL_GRACE_MS, and is ended then */
  void (*give_up)(void *ctx);  /* nothing more can help: end the program now */
  /* These are set for an agent that is a server; otherwise NULL. */
  void (*serves_at)(void *ctx, unsigned port); /* on 127.0.0.1: before the first request */
  void (*request)(void *ctx, const struct driver_request *request);
  void (*wake)(void *ctx, uint64_t ms); /* ops->woke then, in the place of an earlier one; 0: not */
  void (*progress)(void *ctx);          /* it works, though it prints nothing: it does not stall */
  const struct secrets *secrets;        /* see redact.h; outlives the driver; or NULL */
  void *ctx;
};

struct driver; /* each driver's own */

/* The bounds by which a call's questions are answered. */
struct policy driver_policy(const struct agent_call *call);

struct driver_ops {
  const char *name; /* as `native: {driver: NAME}` says; "exec" and "acp" for those */
  enum transport transport;
  bool keeps_stdin;         /* it writes as it goes; else stdin_bytes of the command are all */
  const char *password_env; /* its program is a server, and this variable its password; or NULL */
  struct driver *(*open)(const struct profile *profile, const struct agent_call *call,
                         const struct driver_host *host);
  void (*output)(struct driver *d, int fd, struct str bytes);
  void (*reply)(struct driver *d, const struct driver_reply *reply); /* these: of a server */
  void (*event)(struct driver *d, struct str data);
  void (*woke)(struct driver *d);
  void (*sent)(struct driver *d, struct str line); /* or NULL */
  bool (*interrupt)(struct driver *d); /* false, or NULL: it cannot; the program gets TERM */
  /* `process` is why and how the program ended, with its stderr; the rest is the driver's. */
  void (*end)(struct driver *d, const struct process_result *process, struct call_result *result);
  void (*close)(struct driver *d);
};

extern const struct driver_ops driver_exec;   /* stream.c: by the profile's `events` */
extern const struct driver_ops driver_acp;    /* acp.c: the Agent Client Protocol, version 1 */
extern const struct driver_ops driver_claude; /* claude.c: stream-json with its control protocol */
extern const struct driver_ops driver_codex;  /* codex.c: codex app-server */

extern const struct driver_ops driver_opencode; /* opencode_serve.c: opencode serve */

/* The driver of a profile for a transport: NULL, and err says why, when it has none. */
const struct driver_ops *driver_find(const struct profile *profile, enum transport transport,
                                     struct err *err);

#endif
