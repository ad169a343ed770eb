/* internal.h - the two halves of a call to an agent: agent.c (its process, from start to end) and
 * host.c (what its driver may do meanwhile) share. */
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
  struct secrets *secrets;        /* of envp and the command line */
  struct kept err;                /* its stderr */
  struct process *process;        /* NULL: not started, or gone */
  struct confined held;           /* what confines it; its sandbox is freed */
  struct process_result ended_as; /* of a server whose last replies are still read */
  struct agent_server *server;    /* NULL: its program is none */
  char *password;                 /* of the server */
  uv_timer_t timer;               /* reports a start that failed; then the grace after the answer */
  uv_work_t cleanup;
  struct call_result result;
  struct schema_place schema;
  struct arena arena;
  char *tmpdir;
  uint64_t stall_ms, idle_ms; /* without output; with output but no content */
  uint64_t content_ms;        /* when it told more than signs of life */
  bool idled;                 /* and that ended it */
  bool ended;                 /* the process is gone */
  struct buf first;           /* what the driver wrote before there was a process */
  bool cancelled, last_word;  /* asked to stop; and told by the end of its stdin, too */
  bool restarted;             /* with a conversation that was there already */
  bool asks_version;          /* the process is another one: --version */
};

struct driver_host agent_host_of(struct agent_run *run);
/* The client's side of a program that is a server, and its password; nothing for others. */
bool agent_make_server(struct agent_run *run, struct err *err) MUST_CHECK;
/* run->timer calls it: the time for a last word is over. */
void agent_on_grace_over(uv_timer_t *timer);

#endif
