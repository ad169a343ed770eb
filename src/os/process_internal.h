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
  struct ruleset_cache *sandboxes;
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

/* Spawns a shim with these descriptors, by its numbers (-1: /dev/null, or none at the end), which
 * are all above them. Returns an errno; cwd -1: ours. From any thread. */
int process_spawn(const char *shim_path, const int fds[SHIM_FD_COUNT], int cwd,
                  const char *const *argv, const char *const *envp, pid_t *pid);

/* Looks for orphans from the next iteration of the loop until there are none: EVENT_SWEPT for each
 * process in ORPHANED. */
void process_sweep(struct process_table *t);

static inline void process_close_fd(int *fd) {
  if (*fd >= 0)
    (void)close(*fd);
  *fd = -1;
}

#endif
