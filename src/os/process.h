/* process.h - runs a provider program: feeds it stdin, collects what it prints, and ends it
 * together with everything it started.
 *
 * Order: process_table_new once per program (one at a time: children belong to the whole operating
 * system process), then process_start any number of times; each ends in exactly one on_end call,
 * made from the loop, never from within process_start or process_cancel. process_table_free comes
 * after the last on_end; its memory is freed in the next iteration of the loop.
 *
 * Between us and the program stands a shim (src/shim/shim.c), one a call, which owns the tree:
 * on_end comes only when no descendant is left, when the shim was reaped and every handle is
 * closed. If the shim is killed, we inherit its orphans (subreaper) and kill them here. If we are
 * killed, the shim sees its control pipe close and does the same.
 *
 * Nobody else in the program may start processes, wait for them with waitpid(-1) or ignore SIGCHLD.
 * SIGPIPE is ignored process-wide from process_table_new on; children get default signals and an
 * empty mask. All times are milliseconds on the monotonic clock. Not thread-safe: loop thread only.
 */
#ifndef SEGUE_OS_PROCESS_H
#define SEGUE_OS_PROCESS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

/* Finds the shim (beside our executable, else ../libexec/segue/ from there, else $SEGUE_SHIM, which
 * is for tests) and makes us a subreaper. Children that we already have (inherited over exec) are
 * noted and never touched. NULL: err says what is missing and where it was looked for. */
struct process_table;
struct tree_work;
struct process_table *process_table_new(uv_loop_t *loop, struct err *err) MUST_CHECK;
void process_table_free(struct process_table *t); /* NULL is fine; no process may be left */
/* Tells where the shim is, found as above. */
bool process_find_shim(char *path, size_t size, struct err *err) MUST_CHECK;

struct sandbox;
/* Bounds on a program and all that it starts; 0: no limit. by_group: enforced on all together by
 * its control group; if the group cannot, it is not started. Otherwise by what a process inherits:
 * memory (private and writable) of each process, pids of this user including those already running
 * (root is exempt), processors by affinity, rounded up. */
#define LIMITS_BY_GROUP "cgroup" /* their names in configurations and logs */
#define LIMITS_BY_BIRTH "rlimits"
struct process_limits {
  uint64_t memory_bytes;
  uint32_t pids, milli_cpus;
  bool by_group;
};

/* Describes the program to run. Everything is borrowed: argv, cwd, envp and sandbox until
 * process_start returns, stdin_bytes until on_end. */
struct process_spec {
  const char *const *argv; /* NULL-ended; argv[0] without a slash is looked up in envp's PATH */
  const char *cwd;         /* the working directory; NULL = ours */
  const char *const *envp; /* the complete environment, see process_env_build */
  struct sandbox *sandbox; /* what confines it, see sandbox.h; NULL: nothing */
  struct process_limits limits;
  const char *stdin_bytes; /* prompts go here, never into argv (other users see argv) */
  size_t stdin_n;          /* 0: stdin is /dev/null, unless stdin_open */
  bool stdin_open;    /* stdin stays open after stdin_bytes: process_write, process_close_stdin */
  size_t stdout_max;  /* bytes kept, 0 = LIMIT_OUTPUT_BYTES; see head_tail.h */
  size_t stderr_max;  /* bytes kept, 0 = LIMIT_STDERR_BYTES */
  bool keep_nothing;  /* on_output keeps what matters; out and err of the result stay empty */
  uint64_t wall_ms;   /* the whole run, 0 = no limit */
  uint64_t stall_ms;  /* without a byte on stdout or stderr, 0 = no limit */
  uint64_t closed_ms; /* stdout at its end and nothing on stderr for this long: ended as by
                         process_finish_early; 0 = a program may close it and go on */
};

/* Why a process ended: recorded when we decide, never derived from a signal. */
enum process_end {
  PROCESS_END_EXITED,       /* by itself; exit_code or signal says how */
  PROCESS_END_EXEC_FAILED,  /* the program could not be executed: exec_errno */
  PROCESS_END_SPAWN_FAILED, /* the shim could not create a process: exec_errno (EAGAIN, ENOMEM) */
  PROCESS_END_WALL_LIMIT,
  PROCESS_END_STALL_LIMIT,
  PROCESS_END_CANCELLED,
  PROCESS_END_SHIM_LOST, /* somebody killed the shim; its tree is dead */
};
const char *process_end_name(enum process_end why); /* "exited", "wall_limit", ... */

struct process_result {
  enum process_end why;
  bool started;         /* the program was executed */
  bool unheld;          /* with EXEC_FAILED: the kernel refused its sandbox */
  int exec_errno;       /* 0 unless the end is EXEC_FAILED or SPAWN_FAILED */
  int exit_code;        /* -1: killed by a signal, or no status was seen */
  int signal;           /* 0: not killed by one */
  struct buf out, err;  /* cut and dropped say what is missing; buf_take is allowed in on_end */
  bool memory_reached;  /* the kernel killed one of its processes for its limit of memory */
  bool ended_early;     /* by process_finish_early or closed_ms; exit_code, signal: its reaction */
  bool pipes_held;      /* something held stdout or stderr open after the exit; it was killed */
  bool stdin_unread;    /* not all of stdin could be written; by itself that is no failure */
  bool survivors;       /* LIMIT_SWEEP_WAIT_MS was over and something could not be killed */
  uint64_t duration_ms; /* until the program's exit was seen, or else until the tree was dead */
};

/* Called for every piece of output as it comes, whatever is kept; fd is 1 or 2. The bytes are
 * borrowed for the call. process_cancel is allowed in it; output may still come after that. */
typedef void (*process_output_cb)(void *ctx, int fd, struct str bytes);
/* The result is borrowed for the call; the process is gone afterwards. Starting another one in it
 * is allowed. */
typedef void (*process_end_cb)(void *ctx, struct process_result *result);

/* Says why the program of a result with EXEC_FAILED could not be run, in words that follow "cannot
 * run PROGRAM: ". cwd as in the spec. True: there is a file of that name. */
bool process_why_not(const struct process_result *result, const char *program, const char *cwd,
                     char *out, size_t size);

/* NULL: nothing was started, err says why, on_end will not come (bad cwd, no descriptors left). A
 * missing program shows later: on_end with EXEC_FAILED. on_output may be NULL. */
struct process;
struct process *process_start(struct process_table *t, const struct process_spec *spec,
                              process_output_cb on_output, process_end_cb on_end, void *ctx,
                              struct err *err) MUST_CHECK;

/* Writes more to a stdin started with stdin_open; the bytes are copied. What cannot be written yet
 * is queued, up to LIMIT_STDIN_QUEUE_BYTES. False: the queue is full and nothing was kept, or stdin
 * is closed. */
bool process_write(struct process *p, struct str bytes);
/* Closes its stdin once everything queued is written. */
void process_close_stdin(struct process *p);
/* Measures what its tree has done so far (tree_work.h). */
void process_measure(const struct process *p, struct tree_work *out);
/* The program is working though it prints nothing: restarts the stall limit. */
void process_note_progress(struct process *p);
/* Ends a program whose answer is complete: like process_cancel, but as PROCESS_END_EXITED with the
 * program's own reaction to TERM. Does nothing if it has already ended. */
void process_finish_early(struct process *p);

/* Sends TERM to the program and, after LIMIT_TERM_GRACE_MS, KILL to all that is left; then on_end
 * comes with CANCELLED, unless the end was already decided. May be called repeatedly until
 * on_end. */
void process_cancel(struct process *p);

/* The states of a process: X(state, the states it may move to). Only process_set_state() moves
 * it. */
#define PROCESS_STATES(X)                                                                          \
  /* the shim was spawned; no word yet from it */                                                  \
  X(STARTING, PS(RUNNING) | PS(ENDING) | PS(ORPHANED) | PS(CLOSING))                               \
  /* the program was executed */                                                                   \
  X(RUNNING, PS(EXITED) | PS(ENDING) | PS(ORPHANED) | PS(CLOSING))                                 \
  /* it exited; stdout or stderr is still open, for LIMIT_EXIT_GRACE_MS at most */                 \
  X(EXITED, PS(ENDING) | PS(ORPHANED) | PS(CLOSING))                                               \
  /* the control pipe is closed: the shim ends the tree, then itself */                            \
  X(ENDING, PS(ORPHANED) | PS(CLOSING))                                                            \
  /* the shim is dead without having finished: we kill what it left */                             \
  X(ORPHANED, PS(CLOSING))                                                                         \
  /* the tree is dead; the handles are being closed, then on_end */                                \
  X(CLOSING, PS(ENDED))                                                                            \
  X(ENDED, 0)

enum process_state {
#define PS_ENUM(name, next) PROCESS_STATE_##name,
  PROCESS_STATES(PS_ENUM)
#undef PS_ENUM
};

/* The folders of a PATH in which programs are looked for. Empty and relative entries are left out:
 * with them, a program found in the working directory, where agents write, would run with our keys.
 * If none is left (or given is NULL), the system's own folders are used. */
void process_search_path(const char *given, struct buf *out);

/* Builds a complete environment from nothing: PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TZ
 * as far as we have them, TERM=dumb, TMPDIR=tmpdir (NULL: none), then `extra_names` copied from our
 * environment where set, then `assignments` ("NAME=value"); the last one of a name wins. Both lists
 * are NULL-ended or NULL. SEGUE_*, NOTIFY_SOCKET and the like are never copied, only assigned; a
 * PATH always passes through process_search_path. Everything lives in `a`. NULL: an entry is not a
 * name or not an assignment. */
const char *const *process_env_build(struct arena *a, const char *tmpdir,
                                     const char *const *extra_names, const char *const *assignments,
                                     struct err *err) MUST_CHECK;

#endif
