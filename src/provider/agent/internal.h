/* internal.h - shared by the two halves of a call to an agent: agent.c (its process, from start to
 * end) and host.c (what its driver may do meanwhile). */
#ifndef SEGUE_PROVIDER_AGENT_INTERNAL_H
#define SEGUE_PROVIDER_AGENT_INTERNAL_H

#include "provider/agent/driver.h"
#include "provider/agent/schema_place.h"
#include "provider/agent/server.h"
#include "provider/confine.h"
#include "provider/kept.h"

struct agent_run {
  struct provider_run base;
  const struct provider *self;
  const struct provider_env *env;
  const struct profile *profile;
  const struct driver_ops *ops;
  struct driver *driver;
  struct provider_sink sink;
  struct agent_call call;
  struct agent_command command;
  const char *const *envp;
  struct secrets *secrets;        /* those in envp and the command line */
  struct kept err;                /* its stderr */
  struct process *process;        /* NULL: not started, or gone */
  struct confined held;           /* confines it; its sandbox is freed */
  struct process_result ended_as; /* a server's end, while its last replies are still read */
  struct agent_server *server;    /* NULL: its program is no server */
  char *password;                 /* the server's */
  uv_timer_t timer;               /* reports a start that failed; then the grace after the answer */
  uv_work_t cleanup;
  struct call_result result;
  struct schema_place schema;
  struct arena arena;
  char *tmpdir;
  uint64_t stall_ms, idle_ms; /* limits without output; with output but no content */
  uint64_t content_ms;        /* time of the last content */
  bool idled;                 /* it was ended for lack of content */
  bool ended;                 /* the process is gone */
  struct buf first;           /* bytes that the driver wrote before there was a process */
  bool cancelled, last_word;  /* asked to stop; its stdin was closed as well */
  bool restarted;             /* restarted with a conversation that was there already */
  bool asks_version;          /* the process is --version, not the agent */
};

struct driver_host agent_host_of(struct agent_run *run);
/* Makes the client's side for a program that is a server, with its password; does nothing for
 * others. */
bool agent_make_server(struct agent_run *run, struct err *err) MUST_CHECK;
/* Is called by run->timer when the time for a last word is over. */
void agent_on_grace_over(uv_timer_t *timer);

#endif
