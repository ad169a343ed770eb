/* driver.h - how one agent is spoken to while its program runs: bytes in, bytes and news out.
 *
 * A driver is a pure, incremental machine over one call: it starts nothing and waits for nothing.
 * agent.c runs the program and feeds it; `segue providers test` feeds it a recording instead.
 *
 *   d = ops->open(call, profile, host)     may write the first bytes
 *   ops->output(d, fd, bytes)              pieces of stdout (1) and stderr (2), cut anywhere
 *   ops->sent(d, line)                     a replay only: what the recorded client wrote
 *   ops->interrupt(d)                      the call is cancelled: ask the agent politely
 *   ops->end(d, process, result)           the program is gone: what came of it
 *   ops->close(d)
 *
 * One profile has up to three drivers, one a transport, under one provider name. */
#ifndef SEGUE_PROVIDER_DRIVER_H
#define SEGUE_PROVIDER_DRIVER_H

#include "provider/profile.h"
#include "provider/provider.h"
#include "provider/redact.h"

/* What a driver may do, from within its own functions. A replay has news only; the others may then
 * be NULL, and a driver must cope. */
struct driver_host {
  void (*news)(void *ctx, const struct provider_news *news);
  bool (*write)(void *ctx, struct str bytes); /* to stdin; false: nobody reads */
  void (*close_stdin)(void *ctx);
  void (*answered)(void *ctx);   /* the final event was there: the program may end by itself, for
                                  LIMIT_AGENT_FINAL_GRACE_MS, and is ended then */
  void (*give_up)(void *ctx);    /* nothing that comes can help: end the program now */
  const struct secrets *secrets; /* see redact.h; outlives the driver; or NULL */
  void *ctx;
};

struct driver; /* each driver's own */

struct driver_ops {
  const char *name; /* as `native: {driver: NAME}` says; "exec" and "acp" for those */
  enum transport transport;
  bool replay_only; /* it reads recordings: nothing is run yet */
  bool keeps_stdin; /* it writes as it goes; else stdin_bytes of the command are all */
  struct driver *(*open)(const struct profile *profile, const struct agent_call *call,
                         const struct driver_host *host);
  void (*output)(struct driver *d, int fd, struct str bytes);
  void (*sent)(struct driver *d, struct str line); /* or NULL */
  bool (*interrupt)(struct driver *d); /* false, or NULL: it cannot; the program gets TERM */
  /* `process` is why and how the program ended, with its stderr; text and value are the driver's. */
  void (*end)(struct driver *d, const struct process_result *process, struct call_result *result);
  void (*close)(struct driver *d);
};

extern const struct driver_ops driver_exec;   /* stream.c: by the profile's `events` */
extern const struct driver_ops driver_acp;    /* acp.c: the Agent Client Protocol, version 1 */
extern const struct driver_ops driver_claude; /* claude.c: stream-json with its control protocol */
extern const struct driver_ops driver_codex;  /* codex.c: codex app-server */

extern const struct driver_ops driver_opencode; /* opencode.c: what opencode serve says */

/* The driver of a profile for a transport: NULL, and err says why, when it has none. */
const struct driver_ops *driver_find(const struct profile *profile, enum transport transport,
                                     struct err *err);

#endif
