/* protocol.h - what segue and its shim agree on: descriptors, messages, and how children are
 * listed.
 *
 * The shim is started as `segue-shim/6 HELD PROGRAM [ARG...]`. Its descriptors are:
 *   0-2  the program's stdin, stdout and stderr
 *   3    the read end of the control pipe, on which nothing is ever sent: its end of file means
 *        "end the tree", whether segue closed it or died. With SHIM_WAITS it is a socket
 *   4    the write end of the status pipe
 *   5    with SHIM_IN_GROUP the folder of the control group in which the program is to be born
 *   6, 7 with SHIM_RULES the program's two Landlock rulesets
 *   8    with SHIM_LEASED the page of struct shim_lease: the tree is killed without grace when the
 *        lease's time is over or its term has changed
 * HELD is a sum of enum shim_held, in decimal. It may be followed by `:MEMORY:PIDS:CPUS`, limits
 * that the program is born with: bytes of data of a process, processes of the user, processors; 0
 * means no limit. Everything that HELD asks for is in force before the program is executed, or the
 * program is not executed. Status messages have a fixed size below PIPE_BUF, so each is written and
 * read whole:
 *   STARTED pid, then EXITED status, then (after end of file on 3) DONE 0; or
 *   EXEC_FAILED errno, UNHELD errno or FORK_FAILED errno, then DONE 0.
 * After DONE the shim exits and has no descendant left.
 *
 * As `segue-shim/6 HELD FOLDER` with SHIM_WAITS it is started ahead of a call. Its child takes on
 * what HELD asks for, and waits for one message on the control socket: struct shim_program with
 * the descriptors of enum shim_program_fd. From then on all is as above. Until then it says
 * nothing; if the socket is closed it ends and removes FOLDER, an empty folder that is the call's
 * own once it has another name.
 *
 * As `segue-shim forward SOCKET BYPASS PROGRAM [ARG...]` it does another job: see
 * port_forward.h. */
#ifndef SEGUE_SHIM_PROTOCOL_H
#define SEGUE_SHIM_PROTOCOL_H

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define SHIM_PROTOCOL "segue-shim/6" /* argv[0]: both sides must have the same version */
/* The shim's name, by which the processes below it are known; no program there can change it. */
#define SHIM_RUNS       "segue-shim"
#define SHIM_HOLDS      "segue-holds"     /* the same if a sandbox holds the program */
#define SHIM_FORWARDS   "forward"         /* argv[1] */
#define SHIM_CONTAINER  "SEGUE_CONTAINER" /* this variable holds its name */
#define SHIM_FD_CONTROL 3
#define SHIM_FD_STATUS  4
#define SHIM_FD_GROUP   5
#define SHIM_FD_READS   6
#define SHIM_FD_WRITES  7
#define SHIM_FD_LEASE   8
#define SHIM_FD_COUNT   9

enum shim_held {
  SHIM_IN_GROUP = 1,
  SHIM_RULES = 2,       /* Landlock limits reading and writing */
  SHIM_FILTER = 4,      /* seccomp: no new namespaces, no keys, no calls for the machine's owner */
  SHIM_NO_INTERNET = 8, /* with FILTER: only sockets within the machine */
  SHIM_NO_SOCKETS = 16, /* with FILTER: socket() makes no Unix sockets */
  SHIM_NAMESPACES = 32, /* with FILTER: new namespaces are allowed */
  SHIM_LEASED = 128,    /* segue extends the tree's life again and again */
  /* The program is podman or docker and makes the container SHIM_CONTAINER. It may gain privileges;
   * what it leaves of the container is removed. */
  SHIM_CONTAINED = 256,
  SHIM_EMPTY_NETWORK = 512, /* with FILTER: no sockets but those that a network namespace holds */
  SHIM_LIMITED = 64,        /* the group sets limits: no program starts outside it */
  SHIM_WAITS = 1024,        /* the program is told later */
};

enum { SHIM_LIMITS_BYTES = 64 };

/* 0-2 are the program's stdin, stdout and stderr. WORDS is a memory file: the words of argv and
 * then of the environment, each with its zero byte. */
enum shim_program_fd { SHIM_PROGRAM_CWD = 3, SHIM_PROGRAM_WORDS, SHIM_PROGRAM_FDS };

struct shim_program {
  uint64_t term; /* of the lease; 0: there is none */
  uint32_t argc, envc;
  char limits[SHIM_LIMITS_BYTES]; /* as behind HELD */
};

enum shim_message_type {
  SHIM_STARTED = 1, /* value: the pid of the program, also its session and process group */
  SHIM_EXEC_FAILED, /* value: errno */
  SHIM_FORK_FAILED, /* value: errno */
  SHIM_UNHELD,      /* value: errno of the step that should have confined the program */
  SHIM_EXITED,      /* value: wait status of the program, for WIFEXITED and the like */
  SHIM_DONE,        /* value: 0 */
};

struct shim_message {
  int32_t type;
  int32_t value;
};

/* Only segue writes it. Read until_ms before term: then until_ms belongs to that term. */
struct shim_lease {
  _Atomic uint64_t term;
  _Atomic uint64_t until_ms; /* CLOCK_BOOTTIME */
};

/* Returns a session's mark on its programs: their limit of real-time seconds, too high to limit
 * anything. Whatever they start inherits it, even with another environment, and only root can raise
 * it again. 0: `session` is no session id. */
static inline uint64_t shim_mark_of(const char *session) {
  uint64_t mark = 0;
  size_t digits = 0;
  for (; *session != '\0'; session++) {
    const char *at = strchr("0123456789abcdef", *session);
    if (at == NULL && *session != '-')
      return 0;
    if (at == NULL)
      continue;
    mark = mark << 4 | (uint64_t)(at - "0123456789abcdef");
    digits++;
  }
  return digits == 32 ? (mark & (((uint64_t)1 << 60) - 1)) | (uint64_t)1 << 62 : 0;
}

/* The next two functions list the children of this process: they call `each` for every child. They
 * may miss children that come or go meanwhile, so callers repeat until nothing is left. They use no
 * heap and little stack. */
typedef void (*shim_child_cb)(void *ctx, pid_t pid);

/* Reads the children file of one thread: quick, but not in every kernel (CONFIG_PROC_CHILDREN). */
static inline bool shim_children_of_thread(pid_t thread, shim_child_cb each, void *ctx) {
  char path[64], bytes[1024];
  (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)thread);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  pid_t pid = 0;
  ssize_t n;
  while ((n = read(fd, bytes, sizeof bytes)) > 0) {
    for (ssize_t i = 0; i < n; i++) {
      if (bytes[i] >= '0' && bytes[i] <= '9') {
        pid = pid * 10 + (bytes[i] - '0');
      } else if (pid > 0) {
        each(ctx, pid);
        pid = 0;
      }
    }
  }
  (void)close(fd);
  return true;
}

/* Returns the parent of a process, 0 when it is gone. The name in the file may hold spaces and
 * brackets. */
static inline pid_t shim_parent_of(pid_t pid) {
  char path[64], bytes[512];
  (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  ssize_t n = read(fd, bytes, sizeof bytes - 1);
  (void)close(fd);
  if (n <= 0)
    return 0;
  bytes[n] = '\0';
  const char *after = strrchr(bytes, ')'); /* ") S 4711 ..." */
  return after != NULL && strlen(after) > 4 ? (pid_t)strtol(after + 4, NULL, 10) : 0;
}

/* Looks at every process there is. */
static inline bool shim_children_by_scan(shim_child_cb each, void *ctx) {
  _Alignas(struct dirent64) char bytes[2048];
  pid_t self = getpid();
  int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t n;
  while ((n = getdents64(fd, bytes, sizeof bytes)) > 0) {
    for (ssize_t at = 0; at < n;) {
      const struct dirent64 *entry = (const struct dirent64 *)(const void *)(bytes + at);
      pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
      if (pid > 1 && shim_parent_of(pid) == self)
        each(ctx, pid);
      at += entry->d_reclen;
    }
  }
  (void)close(fd);
  return n == 0;
}

#endif
