/* process_internal.h - the process runner from inside, for shims that stand by and for tests.
 *
 * Each callback becomes one process_event, which alone decides and changes the state. */
#ifndef SEGUE_OS_PROCESS_INTERNAL_H
#define SEGUE_OS_PROCESS_INTERNAL_H

#include "base/head_tail.h"
#include "base/limits.h"
#include "base/list.h"
#include "os/control_group.h"
#include "os/process.h"
#include "shim/protocol.h"

#include <limits.h>
#include <unistd.h>

/* The loop watches these for one process: our ends of four pipes, and the shim's pidfd, because
 * another process could hold the pipes open. */
enum channel_id {
  CHANNEL_IN,
  CHANNEL_OUT,
  CHANNEL_ERR,
  CHANNEL_STATUS,
  CHANNEL_EXIT,
  CHANNEL_COUNT
};

struct channel {
  struct process *process;
  int fd; /* -1 = closed, or never opened */
  uv_poll_t poll;
};

struct process {
  struct process_table *table;
  struct list_node in_table;
  enum process_state state;
  bool decided;   /* result.why is final */
  bool shim_done; /* it reported that the tree is dead */
  int open_handles;
  int control_fd;      /* closing it ends the tree; -1 = done */
  pid_t shim;          /* 0 = reaped */
  struct group *group; /* containing the program and all that it started; or NULL */
  bool continued;      /* the shim was stopped, and continued by us: once is enough */
  struct channel channels[CHANNEL_COUNT];
  uv_timer_t timer;
  uint64_t start_ms, output_ms, grace_end_ms;
  uint64_t timer_ms; /* when the timer is due */
  uint64_t wall_ms, stall_ms, closed_ms;
  const char *stdin_bytes;
  size_t stdin_n;
  struct buf queue;          /* of process_write, behind stdin_bytes */
  size_t queue_from;         /* bytes of it that are written */
  bool stdin_open;           /* more may come */
  struct head_tail out, err; /* until they are the result's */
  bool keep_nothing;
  process_output_cb on_output;
  process_end_cb on_end;
  void *ctx;
  struct process_result result;
};

/* Processes and threads that run as this user. */
unsigned long process_threads_of_user(void);

struct process_table {
  uv_loop_t *loop;
  struct list processes;
  struct list standbys; /* shims that are no process yet, or never became one */
  uv_signal_t child;    /* a shim may have been stopped */
  int open_handles;
  uv_timer_t sweep; /* runs while a lost shim's orphans are being killed */
  pid_t *inherited; /* children that were there before us */
  size_t inherited_count;
  char shim_path[PATH_MAX];
  char piece[LIMIT_PIPE_PIECE_BYTES]; /* every read of output lands here first */
};

enum event {
  EVENT_STARTED,
  EVENT_EXEC_FAILED,
  EVENT_FORK_FAILED,
  EVENT_EXITED,
  EVENT_OUTPUT_END,
  EVENT_TIME,
  EVENT_CANCEL,
  EVENT_ENOUGH,
  EVENT_SHIM_GONE,
  EVENT_SWEPT,
};

/* --- shims that stand by ---
 *
 * A warm shim is one that was started ahead of a call: its child has taken on the call's sandbox
 * and waits to be told its program.
 *
 * The kernel copies every rule of a sandbox for a process that takes it on, 0.3 ms for 1,000 rules
 * (measured, Linux 6.18), and a sandbox passes to another process only by fork. So for a call that
 * starts this way nothing is left to do but to execute its program.
 *
 *   s = warm_shim_new(table, ...)
 *   warm_shim_is_ready(s) && warm_shim_take(s, own)   when the call is there
 *   sandbox->warm_shim = s; process_start(...)   tells it its program; or
 *   warm_shim_free(s)                    nobody needed it: it ends, and so does its child
 *
 * It belongs to one session, because its child is born in that session's control group. It has a
 * folder which, renamed, is the call's own. If segue is killed, the shim sees its control socket
 * close, ends and removes that folder. */

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
void warm_shim_free(struct warm_shim *s); /* NULL is fine */

static inline void process_close_fd(int *fd) {
  if (*fd >= 0)
    (void)close(*fd);
  *fd = -1;
}

#endif
