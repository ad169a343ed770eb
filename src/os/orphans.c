/* Finds processes in /proc by their environment, their mark or their shim, and ends some. */
#include "os/orphans.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/control_group.h"
#include "os/fs.h"
#include "os/lease.h"
#include "shim/protocol.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PASS_COUNT = 20, CHUNK_BYTES = 16 * 1024, PROC_PATH_BYTES = 64 };

struct process_seen {
  pid_t pid, parent;
  unsigned long long started; /* tells processes apart that had the same number */
  bool marked;
};

struct scan {
  const char *variable; /* in the environment, of n bytes */
  size_t n;
  unsigned long long mark; /* see shim_mark_of; 0: none */
  uint64_t term;           /* the term of the lease that makes the session ours */
  struct process_seen *seen;
  size_t count;
  struct buf bytes;
};

static bool read_proc(pid_t pid, const char *name, struct buf *out) {
  char path[PROC_PATH_BYTES];
  print_into(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  buf_clear(out);
  if (fd < 0)
    return false;
  ssize_t n = 1;
  while (n > 0 && out->n < LIMIT_ENVIRON_BYTES) {
    buf_reserve(out, CHUNK_BYTES);
    n = read(fd, out->p + out->n, CHUNK_BYTES);
    out->n += n > 0 ? (size_t)n : 0;
  }
  close(fd);
  return n >= 0;
}

/* Returns what follows `wanted` in a file of the process, NULL if that is not there. */
static const char *read_behind(pid_t pid, const char *name, const char *wanted, struct buf *bytes) {
  if (!read_proc(pid, name, bytes))
    return NULL;
  buf_putc(bytes, '\0');
  const char *at = memmem(bytes->p, bytes->n, wanted, strlen(wanted));
  return at != NULL ? at + strlen(wanted) : NULL;
}

static bool read_stat(pid_t pid, struct process_seen *out, struct buf *bytes) {
  long parent = 0;
  *out = (struct process_seen){.pid = pid};
  if (!read_proc(pid, "stat", bytes) || bytes->n == 0)
    return false;
  bytes->p[bytes->n - 1] = '\0';
  const char *rest = strrchr(bytes->p, ')'); /* a name may contain anything */
  if (rest == NULL || sscanf(rest + 1,
                             " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                             "%*d %*d %*d %llu",
                             &parent, &out->started) != 2)
    return false;
  out->parent = (pid_t)parent;
  return true;
}

static struct process_seen *find_seen(const struct scan *s, pid_t pid) {
  for (size_t i = 0; i < s->count; i++)
    if (s->seen[i].pid == pid)
      return &s->seen[i];
  return NULL;
}

/* Returns the mark, or 0. The kernel tells it of all processes of this user at once, but not of
 * programs that changed their user. */
static unsigned long long orphan_mark(pid_t pid, struct buf *bytes) {
  static const char title[] = "Max realtime timeout";
  unsigned long long soft, hard;
  struct rlimit limit;
  if (prlimit(pid, RLIMIT_RTTIME, NULL, &limit) == 0)
    return limit.rlim_max;
  if (!read_proc(pid, "limits", bytes) || bytes->n == 0)
    return 0;
  bytes->p[bytes->n - 1] = '\0';
  const char *at = strstr(bytes->p, title);
  return at != NULL && sscanf(at + sizeof title - 1, " %llu %llu", &soft, &hard) == 2 ? hard : 0;
}

/* Recognizes a process by its environment, which it may have emptied, or by its mark. */
static bool orphan_is_of_session(struct scan *s, pid_t pid) {
  if (s->mark != 0 && orphan_mark(pid, &s->bytes) == s->mark)
    return true;
  const char *rest = read_behind(pid, "environ", s->variable, &s->bytes);
  return rest != NULL && *rest == '\0' &&
         (rest == s->bytes.p + s->n || rest[-(long)s->n - 1] == '\0');
}

/* Calls `each` for every process of this user until it returns true. Returns whether one did. */
static bool orphan_each(struct scan *s, bool (*each)(struct scan *s, pid_t pid)) {
  struct stat st;
  bool found = false;
  DIR *d = opendir("/proc");
  if (d == NULL)
    return false;
  for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
    long pid = strtol(e->d_name, NULL, 10);
    if (pid > 1 && fstatat(dirfd(d), e->d_name, &st, 0) == 0 && st.st_uid == geteuid())
      found = each(s, (pid_t)pid);
  }
  closedir(d);
  return found;
}

static bool orphan_note(struct scan *s, pid_t pid) {
  if (s->count % 64 == 0)
    s->seen = xrealloc(s->seen, (s->count + 64) * sizeof *s->seen);
  struct process_seen *seen = &s->seen[s->count];
  if (!read_stat(pid, seen, &s->bytes))
    return false;
  s->count++;
  seen->marked = orphan_is_of_session(s, pid);
  return false;
}

/* Ends a process by its descriptor: its number may meanwhile be another's. After the lease the
 * process may be the new owner's. */
static bool end_one(const struct process_seen *seen, uint64_t term, uint64_t until_ms,
                    struct buf *bytes) {
  int fd = pidfd_open(seen->pid, 0);
  if (fd < 0)
    return false;
  struct process_seen again;
  bool same = read_stat(seen->pid, &again, bytes) && again.started == seen->started;
  same = same && !lease_is_over(term);
  if (same && pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0) {
    struct pollfd over = {.fd = fd, .events = POLLIN};
    uint64_t now = clock_mono_ms();
    (void)poll(&over, 1, now < until_ms ? (int)(until_ms - now) : 0);
  }
  close(fd);
  return same;
}

size_t orphan_end(const char *session) {
  char wanted[128];
  uint64_t term = lease_term();
  size_t all = lease_is_over(term) ? 0 : group_end_all(session);
  uint64_t until_ms = clock_mono_ms() + LIMIT_LEFTOVER_WAIT_MS;
  buf_auto_t bytes = {0};
  int n = snprintf(wanted, sizeof wanted, ORPHAN_VARIABLE "=%s", session);
  for (int pass = 0; pass < PASS_COUNT && clock_mono_ms() < until_ms; pass++) {
    struct scan s = {
        .variable = wanted, .n = (size_t)n, .mark = shim_mark_of(session), .term = term};
    size_t ended = 0;
    /* Most often none is the session's: who their parents are is asked only if there is one. */
    if (orphan_each(&s, orphan_is_of_session)) {
      (void)orphan_each(&s, orphan_note);
      /* Marks their descendants too, but never us or our ancestors. */
      for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < s.count; i++) {
          const struct process_seen *parent = find_seen(&s, s.seen[i].parent);
          if (!s.seen[i].marked && parent != NULL && parent->marked)
            s.seen[i].marked = more = true;
        }
      }
      for (struct process_seen *own = find_seen(&s, getpid()); own != NULL;
           own = find_seen(&s, own->parent))
        own->marked = false;
      for (size_t i = 0; i < s.count; i++)
        if (s.seen[i].marked)
          ended += end_one(&s.seen[i], s.term, until_ms, &bytes);
    }
    free(s.seen);
    buf_deinit(&s.bytes);
    all += ended;
    if (ended == 0)
      break;
  }
  return all;
}

char *orphan_program(long process, bool *held) {
  enum { ABOVE = 256, MARK_BITS = 40 }; /* the most ancestors that are followed; 12 days */
  const pid_t own = (pid_t)process;
  buf_auto_t bytes = {0};
  struct process_seen seen = {.parent = own};
  pid_t pid = own, shim = 0;
  bool found = *held = false;
  for (int i = 0; shim == 0 && pid > 1 && (i == 0 || pid != getpid()); i++, pid = seen.parent) {
    unsigned long long mark = orphan_mark(pid, &bytes);
    found |= mark != RLIM_INFINITY && mark >> MARK_BITS != 0; /* even lowered nobody else's */
    bool seen_now = i < ABOVE && read_stat(pid, &seen, &bytes);
    if (!seen_now && kill(pid, 0) != 0 && errno == EPERM)
      break; /* another user's, which /proc may hide; a shim is not */
    *held = !seen_now || strstr(bytes.p, "(" SHIM_HOLDS ")") != NULL;
    bool runs = *held || strstr(bytes.p, "(" SHIM_RUNS ")") != NULL;
    if (runs && (*held || read_behind(pid, "environ", "SEGUE_NOTICE_EVENT=", &bytes) == NULL))
      shim = pid; /* else the user's own program, that is told of events */
  }
  const char *group = read_behind(own, "cgroup", "/segue-", &bytes);
  found |= shim != 0 || (group != NULL && strspn(group, "0123456789abcdef-") > 36);
  found |= read_behind(own, "environ", ORPHAN_VARIABLE "=", &bytes) != NULL;
  const char *folder = found ? read_behind(shim, "environ", "TMPDIR=", &bytes) : NULL;
  if (found && (folder == NULL || strstr(folder, "/segue-") == NULL))
    folder = read_behind(own, "environ", "TMPDIR=", &bytes); /* a standby has the daemon's */
  if (folder == NULL || strstr(folder, "/segue-") == NULL)
    folder = "";
  char *program = found ? xstrdup(folder) : NULL;
  return program;
}

void orphan_end_tracer(long process) {
  enum { ABOVE = 256 };
  buf_auto_t bytes = {0};
  const char *at = read_behind((pid_t)process, "status", "TracerPid:", &bytes);
  const pid_t tracer = at != NULL ? (pid_t)strtol(at, NULL, 10) : 0;
  struct process_seen seen = {.parent = tracer};
  for (int i = 0; tracer > 1 && i < ABOVE && seen.parent > 1 && seen.parent != process; i++)
    if (!read_stat(seen.parent, &seen, &bytes))
      return;
  if (tracer > 1 && seen.parent == process)
    (void)kill(tracer, SIGKILL);
}

bool orphan_at_work(const char *folder, const char *program, const struct stat *file) {
  DIR *all = opendir("/proc");
  bool held = false;
  struct buf name = {0};
  for (struct dirent *entry; all && !held && (entry = readdir(all)) != NULL;) {
    char path[PROC_PATH_BYTES], cwd[PATH_MAX] = "";
    pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
    struct stat st;
    print_into(path, sizeof path, "/proc/%ld/cwd", (long)pid);
    if (pid <= 0 || readlink(path, cwd, sizeof cwd - 1) < 0)
      continue;
    held = fs_below(cwd, folder) != NULL && read_proc(pid, "comm", &name) &&
           str_starts(buf_view(&name), program);
    print_into(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *open_files = file ? opendir(path) : NULL;
    for (struct dirent *fd; open_files && !held && (fd = readdir(open_files)) != NULL;)
      held = fstatat(dirfd(open_files), fd->d_name, &st, 0) == 0 && st.st_ino == file->st_ino &&
             st.st_dev == file->st_dev;
    if (open_files != NULL)
      closedir(open_files);
  }
  if (all != NULL)
    closedir(all);
  buf_deinit(&name);
  return held;
}
