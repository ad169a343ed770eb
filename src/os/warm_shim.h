/* warm_shim.h - a shim that was started ahead of a call: its child has taken on the call's sandbox
 * and waits to be told its program.
 *
 * The kernel copies every rule of a sandbox for a process that takes it on, 0.3 ms for 1,000 rules
 * (measured, Linux 6.18), and a sandbox passes to another process only by fork. So for a call that
 * starts this way nothing is left to do but to execute its program.
 *
 *   s = warm_shim_new(table, ...)
 *   warm_shim_is_ready(s) && warm_shim_take(s, own)
 *       when the call is there; else it starts like any
 *                                                 other
 *   warm_shim_tell(s, ...), warm_shim_hand_over(s)    for process_start; or
 *   warm_shim_free(s)                    nobody needed it: it ends, and so does its child
 *
 * It belongs to one session, because its child is born in that session's control group. It has a
 * folder which, renamed, is the call's own. If segue is killed, the shim sees its control socket
 * close, ends and removes that folder. Internal to os/. */
#ifndef SEGUE_OS_WARM_SHIM_H
#define SEGUE_OS_WARM_SHIM_H

#include "base/list.h"
#include "os/control_group.h"
#include "os/process.h"

/* A shim is made by a thread of the pool, because the thread that spawns a program has to wait
 * until that is executed. */
enum warm_shim_state {
  WARM_SHIM_MAKING,
  WARM_SHIM_READY,
  WARM_SHIM_UNWANTED, /* freed while it was being made */
  WARM_SHIM_ENDING,   /* freed, but its shim has not exited yet */
};

struct warm_shim {
  struct list_node in_table;
  struct process_table *table; /* NULL: that is gone */
  enum warm_shim_state state;
  uv_work_t work;
  unsigned held;
  int reads, writes; /* rulesets, until it is made */
  char *session, *folder, *shim_path;
  pid_t shim;
  int pidfd;           /* of the shim */
  int control, status; /* our ends of a socket and a pipe */
  struct group *group; /* or NULL: there is no place for groups */
};

/* Begins to make one for the next call of `session`. Takes over the ruleset of writes, which lacks
 * the call's own folder, and borrows that of reads. held: of enum shim_held. `name` is for the
 * folder, see tmpdir.h. */
struct warm_shim *warm_shim_new(struct process_table *t, const char *session, unsigned held,
                                int reads, int owned_writes, const char *name);
/* False: it is still being made, or has ended. */
bool warm_shim_is_ready(const struct warm_shim *s);
/* Gives it to the call whose own folder is `own`: its folder takes that one's place. False: that
 * one is not empty, or elsewhere. */
bool warm_shim_take(struct warm_shim *s, const char *own);
/* Tells the child its program, with descriptors for 0 to 2 (-1: /dev/null) and the folder to work
 * in (-1: ours). Returns an errno. */
int warm_shim_tell(struct warm_shim *s, const struct process_spec *spec, int cwd, const int fds[3],
                   const char *limits);
/* After that: frees all but what the process takes over: its shim, group and descriptors. */
void warm_shim_hand_over(struct warm_shim *s);
void warm_shim_free(struct warm_shim *s); /* NULL is fine */

/* For the table: frees those whose shim has exited; at its end waits for all. */
void warm_shim_reap(struct process_table *t);
void warm_shim_end_all(struct process_table *t);
/* Between these two, every shim that a thread has spawned is known by its pid. */
void warm_shim_hold_spawns(void);
void warm_shim_release_spawns(void);

#endif
