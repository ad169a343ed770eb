/* shim.c - owns the process tree of one provider call, and leaves nothing of it alive.
 *
 *   segue --- control (3), status (4) ---> shim --- setsid ---> program ---> whatever it starts
 *
 * DESIGN. The shim is a subreaper: every descendant whose parent dies becomes its child, also after
 * setsid and double forks. It waits for two things only: the end of file of the control pipe, and
 * the program's exit. It has no parent-death signal itself, because it must outlive segue to clean
 * up; the program has one, because it must not outlive the shim. All signals are blocked here, so
 * only SIGKILL and SIGSTOP reach the shim: segue inherits the tree then.
 *
 * The program, once dead, stays a zombie until the last sweep: until it is reaped its pid cannot be
 * given to another process, so the group kill can hit nobody else.
 *
 * One runs for each call in flight, so it is static, allocates nothing and uses no stdio streams.
 */
#include "base/limits.h"
#include "shim/exec.h"
#include "shim/port_forward.h"
#include "shim/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shim {
  pid_t program;
  bool program_exited; /* seen, not reaped */
  bool reaped;         /* its pid may be another's */
  const char *engine;  /* removes the container if the tree has to be ended; NULL: has none */
  int sigchld_fd;
  const struct shim_lease *lease; /* NULL: the store is in files and has no leases */
  uint64_t term;
  bool cut_off; /* the lease ended first, so the program's exit says nothing */
  int lease_fd; /* a timer for the end of the lease as last seen; -1: none */
};

/* Gives back pages. Start-up code touched most of the C library, and our loop needs few of its
 * pages; those that are only read come back from the page cache when needed. Without this a shim
 * weighs 0.7 MB. */
static void drop_pages(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const ElfW(Phdr) *header = (const void *)getauxval(AT_PHDR);
  for (size_t n = getauxval(AT_PHNUM); n > 0; n--, header++) {
    uintptr_t begin = header->p_vaddr / page * page;
    uintptr_t end = (header->p_vaddr + header->p_memsz + page - 1) / page * page;
    if (header->p_type == PT_LOAD && (header->p_flags & PF_W) == 0)
      (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
  }
}

static void tell(enum shim_message_type type, int value) {
  struct shim_message message = {.type = (int32_t)type, .value = value};
  while (write(SHIM_FD_STATUS, &message, sizeof message) < 0 && errno == EINTR)
    ; /* any other failure: segue is gone, and the control pipe says so too */
}

static int64_t now_ms(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Maps the page and notes the term in which the program starts. */
static bool lease_take(struct shim *s) {
  void *page = mmap(NULL, sizeof *s->lease, PROT_READ, MAP_SHARED, SHIM_FD_LEASE, 0);
  (void)close(SHIM_FD_LEASE);
  s->lease_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (page == MAP_FAILED || s->lease_fd < 0)
    return false;
  s->lease = page;
  s->term = atomic_load(&s->lease->term);
  return true;
}

/* Returns whether the lease is over, and sets the timer anew if it was extended. The clock also
 * counts while the machine sleeps. */
static bool lease_over(struct shim *s) {
  struct timespec t;
  if (s->lease == NULL)
    return false;
  uint64_t until = atomic_load(&s->lease->until_ms);
  (void)clock_gettime(CLOCK_BOOTTIME, &t);
  bool over = atomic_load(&s->lease->term) != s->term ||
              (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 >= until;
  const struct itimerspec due = {
      .it_value = {(time_t)(until / 1000), (long)(until % 1000) * 1000000}};
  if (!over)
    over = timerfd_settime(s->lease_fd, TFD_TIMER_ABSTIME, &due, NULL) != 0;
  if (over && s->lease_fd >= 0) {
    (void)close(s->lease_fd); /* a timer that is due would end every wait at once */
    s->lease_fd = -1;
  }
  return over;
}

/* Waits until a child dies, the lease ends, `fd` (-1: none) becomes readable, or `timeout_ms` (-1:
 * no limit) has passed. Returns true if `fd` is readable. */
static bool wait_event(const struct shim *s, int fd, int timeout_ms) {
  struct pollfd fds[3] = {{.fd = s->sigchld_fd, .events = POLLIN},
                          {.fd = fd, .events = POLLIN},
                          {.fd = s->lease_fd, .events = POLLIN}};
  struct signalfd_siginfo info;
  if (poll(fds, 3, timeout_ms) <= 0)
    return false;
  if (fds[0].revents != 0)
    /* SIGCHLDs are merged: one read takes them all */
    (void)!read(s->sigchld_fd, &info, sizeof info);
  return fds[1].revents != 0;
}

/* Reaps orphans, and notes whether the program died. */
static void look(struct shim *s) {
  while (!s->program_exited) {
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return;
    if (info.si_pid == s->program) {
      s->program_exited = true;
      bool exited = info.si_code == CLD_EXITED;
      int status = info.si_status;
      if (!s->cut_off)
        tell(SHIM_EXITED, exited ? W_EXITCODE(status, 0) : W_EXITCODE(0, status));
    } else {
      (void)waitpid(info.si_pid, NULL, 0);
    }
  }
}

static bool control_closed(void) {
  char byte;
  ssize_t n = read(SHIM_FD_CONTROL, &byte, 1);
  return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static void kill_child(void *ctx, pid_t pid) {
  (void)ctx;
  if (pid > 1)
    (void)kill(pid, SIGKILL);
}

/* Kills until no child is left. The children of a dying child become ours before it can be reaped,
 * so "no child" means "no descendant". */
static void sweep(struct shim *s) {
  for (;;) {
    int status;
    pid_t pid;
    if (!s->reaped)
      (void)kill(-s->program, SIGKILL);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid != s->program)
        continue;
      s->reaped = true;
      if (!s->program_exited && !s->cut_off)
        tell(SHIM_EXITED, status);
    }
    if (pid < 0 && errno == ECHILD)
      return;
    if (!shim_children_of_thread(getpid(), kill_child, NULL))
      (void)shim_children_by_scan(kill_child, NULL);
    (void)wait_event(s, -1, LIMIT_SWEEP_POLL_MS);
  }
}

/* Sends TERM to the program first, because some clients then clean up after their tools. A program
 * that has handed its work to a child and ignores TERM meanwhile obeys when the whole group gets
 * it. After the lease there is no waiting: another worker may have begun the same call. */
static void end_tree(struct shim *s) {
  int64_t begin_ms = now_ms(), due_ms = LIMIT_TERM_GROUP_MS;
  if (!s->program_exited && !lease_over(s)) {
    (void)kill(s->program, SIGTERM);
    (void)kill(s->program, SIGCONT); /* a stopped program could not obey */
  }
  while (!s->program_exited && !lease_over(s)) {
    int64_t left_ms = begin_ms + due_ms - now_ms();
    if (left_ms > 0) {
      (void)wait_event(s, -1, (int)left_ms);
      look(s);
    } else if (due_ms < LIMIT_TERM_GRACE_MS) {
      (void)kill(-s->program, SIGTERM);
      due_ms = LIMIT_TERM_GRACE_MS;
    } else {
      break;
    }
  }
  sweep(s);
}

/* Removes the container, which the killed engine left behind: docker's processes belong to its
 * daemon, not to us. */
static void remove_container(struct shim *s) {
  const char *name = getenv(SHIM_CONTAINER);
  const int64_t due_ms = now_ms() + LIMIT_CONTAINER_REMOVE_MS;
  sigset_t none;
  pid_t pid = name != NULL ? fork() : -1;
  if (pid == 0) {
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && nothing >= 0; fd++)
      (void)dup2(nothing, fd);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execl(s->engine, s->engine, "rm", "--force", name, (char *)NULL);
    _exit(127);
  }
  while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0 && now_ms() < due_ms)
    (void)wait_event(s, -1, LIMIT_SWEEP_POLL_MS);
  sweep(s);
}

/* Reports that the program could not be run. */
static void tell_failure(pid_t program, int fork_errno) {
  const struct program_failure why = program_failure();
  if (program > 0)
    (void)waitpid(program, NULL, 0);
  if (program < 0)
    tell(SHIM_FORK_FAILED, fork_errno);
  else if (why.held_errno != 0)
    tell(SHIM_UNHELD, why.held_errno);
  else
    tell(SHIM_EXEC_FAILED, why.exec_errno);
  tell(SHIM_DONE, 0);
}

/* Waits for the end of a prepared child's wait. False: it ended before it was told its program, or
 * segue wants none. */
static bool wait_until_begun(struct shim *s, int begun) {
  struct pollfd fds[3] = {{.fd = begun, .events = POLLIN},
                          {.fd = s->sigchld_fd, .events = POLLIN},
                          {.fd = SHIM_FD_CONTROL, .events = POLLRDHUP}};
  struct signalfd_siginfo info;
  bool told = false;
  for (;;) {
    if (poll(fds, 3, -1) <= 0)
      continue;
    if (fds[0].revents != 0 && read(begun, &s->term, sizeof s->term) != sizeof s->term)
      return told;
    told = told || fds[0].revents != 0;
    if (fds[1].revents != 0 && read(s->sigchld_fd, &info, sizeof info) > 0)
      (void)kill(s->program, SIGCONT); /* a stopped child would keep the call waiting */
    if (fds[0].revents == 0 && fds[1].revents == 0)
      return false; /* the other end of the socket is closed */
  }
}

static bool wait_until_told(struct shim *s, int begun) {
  drop_pages();
  bool told = wait_until_begun(s, begun);
  (void)close(begun);
  return told;
}

/* Starts the child. False: there is nothing to watch; what there was to say is said. */
static bool shim_begin(struct shim *s, char **argv, unsigned held, const char *limits) {
  int begun = -1;
  bool waits = (held & SHIM_WAITS) != 0;
  s->program = waits ? program_prepare(held, &begun) : program_execute(argv, held, limits);
  int fork_errno = errno;
  if (held & SHIM_RULES) {
    (void)close(SHIM_FD_READS);
    (void)close(SHIM_FD_WRITES);
  }
  for (int fd = 0; fd <= 2; fd++) /* ours would keep the pipes open */
    (void)close(fd);
  if (chdir("/") != 0) /* keeps no directory busy, unless / cannot be entered */
    errno = 0;
  if (waits && (s->program < 0 || !wait_until_told(s, begun))) {
    if (s->program > 0)
      sweep(s);
    (void)rmdir(argv[0]); /* it has this name until a call takes it */
    return false;
  }
  const struct program_failure why = program_failure();
  if (s->program > 0 && why.exec_errno == 0 && why.held_errno == 0)
    return true;
  tell_failure(s->program, fork_errno);
  return false;
}

int main(int argc, char **argv) {
  static const char usage[] = "segue-shim: started by segue for each provider call, not by hand\n";
  struct shim s = {.lease_fd = -1};
  sigset_t all;

  if (argc > 3 && strcmp(argv[1], SHIM_FORWARDS) == 0)
    port_forward(argv + 2);
  if (argc < 3 || strcmp(argv[0], SHIM_PROTOCOL) != 0) {
    (void)!write(2, usage, sizeof usage - 1);
    return 2;
  }
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int fd = SHIM_FD_CONTROL; fd <= SHIM_FD_LEASE; fd++) /* what only fills a hole, too */
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);

  char *limits;
  unsigned held = (unsigned)strtoul(argv[1], &limits, 10);
  (void)prctl(PR_SET_NAME, (held & SHIM_FILTER) != 0 ? SHIM_HOLDS : SHIM_RUNS);
  s.engine = (held & SHIM_CONTAINED) != 0 ? argv[2] : NULL;
  sigset_t chld;
  (void)sigemptyset(&chld);
  (void)sigaddset(&chld, SIGCHLD);
  s.sigchld_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
  if ((held & SHIM_LEASED) != 0 && !lease_take(&s)) {
    tell_failure(-1, errno);
    return 0;
  }
  if (!shim_begin(&s, argv + 2, held, limits))
    return 0;
  tell(SHIM_STARTED, s.program);

  look(&s); /* for deaths before anybody waited */
  if (!s.program_exited)
    drop_pages();
  while (!lease_over(&s) && (!wait_event(&s, SHIM_FD_CONTROL, -1) || !control_closed()))
    look(&s);
  look(&s);
  s.cut_off = !s.program_exited && lease_over(&s);
  bool ended_early = !s.program_exited || lease_over(&s);
  end_tree(&s);
  if (ended_early && s.engine != NULL)
    remove_container(&s);
  if (s.cut_off) /* a worker that has just extended its lease sees a shim that died */
    return 3;
  tell(SHIM_DONE, 0);
  return 0;
}
