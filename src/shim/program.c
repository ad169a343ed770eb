/* Limits, marks and confines the child, and executes the program. */
#include "shim/program.h"

#include "shim/confine.h"
#include "shim/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The child writes why it never became the program: after vfork it shares our memory, after fork
 * this page. */
struct failure {
  volatile int exec_errno, held_errno;
};
static struct failure own_failure, *failure = &own_failure;

struct program_failure program_failure(void) {
  return (struct program_failure){failure->exec_errno, failure->held_errno};
}

static bool share_failure(void) {
  void *page =
      mmap(NULL, sizeof *failure, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return false;
  failure = page;
  return true;
}

static bool limit_one(__rlimit_resource_t what, unsigned long long most) {
  struct rlimit old;
  if (most == 0 || getrlimit(what, &old) != 0)
    return most == 0;
  const struct rlimit new = {most < old.rlim_max ? most : old.rlim_max,
                             most < old.rlim_max ? most : old.rlim_max};
  return setrlimit(what, &new) == 0;
}

/* Leaves the program `most` processors. The first is chosen by pid, so that calls do not all share
 * the same ones. */
static bool limit_processors(unsigned long long most) {
  cpu_set_t all, some;
  if (most == 0 || sched_getaffinity(0, sizeof all, &all) != 0)
    return most == 0;
  if (most >= (unsigned long long)CPU_COUNT(&all))
    return true;
  CPU_ZERO(&some);
  for (size_t at = (size_t)getpid() % CPU_SETSIZE; most > 0; at = (at + 1) % CPU_SETSIZE)
    if (CPU_ISSET(at, &all)) {
      CPU_SET(at, &some);
      most--;
    }
  return sched_setaffinity(0, sizeof some, &some) == 0;
}

/* Sets the limits of ":MEMORY:PIDS:CPUS", if given. */
static bool limit(const char *words) {
  unsigned long long most[3] = {0};
  for (int i = 0; i < 3 && *words == ':'; i++) {
    char *end;
    most[i] = strtoull(words + 1, &end, 10);
    words = end;
  }
  return limit_one(RLIMIT_DATA, most[0]) && limit_one(RLIMIT_NPROC, most[1]) &&
         limit_processors(most[2]);
}

/* Marks the program, so that survivors can be found whatever they do to their environment. */
static void mark_program(void) {
  const char *session = getenv("SEGUE_SESSION");
  rlim_t mark = session != NULL ? shim_mark_of(session) : 0;
  const struct rlimit own = {mark, mark};
  if (mark != 0)
    (void)setrlimit(RLIMIT_RTTIME, &own);
}

static void refuse_to_hold(void) {
  failure->held_errno = errno;
  _exit(127);
}

/* Makes the child one that ends with the shim and has nothing but what `held` leaves it. */
static void settle(pid_t shim, unsigned held) {
  static const struct rlimit no_core = {0, 0};
  (void)setsid();
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != shim) /* segue-shim died before prctl */
    _exit(127);
  /* an engine's helpers need privileges; the programs inside get none */
  if ((held & SHIM_CONTAINED) == 0)
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  (void)setrlimit(RLIMIT_CORE, &no_core);
  if (!confine(held))
    refuse_to_hold();
}

static void allow_signals(void) {
  sigset_t none;
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL); /* exec already reset our dispositions */
}

__attribute__((noreturn)) static void become(char **argv, const char *limits) {
  if (!limit(limits))
    refuse_to_hold();
  (void)execvp(argv[0], argv);
  failure->exec_errno = errno;
  _exit(127);
}

/* --- a program that is known --- */

/* Starts the child in the control group: moving it there later would wait for the whole kernel
 * (RCU). With CLONE_VFORK it returns, as vfork does, once the child has executed the program or
 * ended, but the child's memory is a copy. -1: there is no group, or the kernel is too old. */
static pid_t fork_into_group(unsigned flags) {
  struct clone_args args = {
      .flags = CLONE_INTO_CGROUP | flags, .exit_signal = SIGCHLD, .cgroup = SHIM_FD_GROUP};
  if (fcntl(SHIM_FD_GROUP, F_SETFD, FD_CLOEXEC) != 0)
    return -1;
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
  if (pid != 0)
    (void)close(SHIM_FD_GROUP);
  return pid;
}

pid_t program_execute(char **argv, unsigned held, const char *limits) {
  pid_t shim = getpid();
  pid_t pid = (held & SHIM_IN_GROUP) != 0 && share_failure() ? fork_into_group(CLONE_VFORK) : -1;
  if (pid < 0 && (held & SHIM_LIMITED) != 0)
    return -1;
  if (pid < 0)
    pid = vfork(); /* returns when the child has executed the program or ended */
  if (pid == 0) {
    mark_program(); /* first: root needs a capability to raise the mark of an outer session */
    settle(shim, held);
    allow_signals();
    become(argv, limits);
  }
  return pid;
}

/* --- a program that is told later --- */

/* Takes the message and its descriptors. False: segue is gone, or needs no program. */
static bool receive(struct shim_program *told, int fds[SHIM_PROGRAM_FDS]) {
  _Alignas(struct cmsghdr) char room[CMSG_SPACE(SHIM_PROGRAM_FDS * sizeof(int))];
  struct iovec bytes = {told, sizeof *told};
  struct msghdr message = {
      .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  ssize_t n;
  while ((n = recvmsg(SHIM_FD_CONTROL, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
    ;
  const struct cmsghdr *rights = n == sizeof *told ? CMSG_FIRSTHDR(&message) : NULL;
  if (rights == NULL || rights->cmsg_type != SCM_RIGHTS ||
      rights->cmsg_len != CMSG_LEN(SHIM_PROGRAM_FDS * sizeof(int)))
    return false;
  memcpy(fds, CMSG_DATA(rights), SHIM_PROGRAM_FDS * sizeof(int));
  return true;
}

/* Splits the words, one after the other each with its zero byte, into argv and the environment. */
static char **split_words(const struct shim_program *told, int fd) {
  struct stat st;
  size_t count = (size_t)told->argc + told->envc, at = 0;
  if (told->argc == 0 || fstat(fd, &st) != 0 || st.st_size <= 0)
    return NULL;
  char *words = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  char **argv = mmap(NULL, (count + 2) * sizeof *argv, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (words == MAP_FAILED || argv == MAP_FAILED || words[st.st_size - 1] != '\0')
    return NULL;
  for (size_t i = 0; i < count && at < (size_t)st.st_size; i++) {
    argv[i < told->argc ? i : i + 1] = words + at;
    at += strlen(words + at) + 1;
  }
  environ = argv + told->argc + 1;
  return argv;
}

__attribute__((noreturn)) static void wait_and_become(int begun) {
  struct shim_program told;
  int fds[SHIM_PROGRAM_FDS];
  allow_signals(); /* one that comes now ends it, and segue sees that */
  if (!receive(&told, fds))
    _exit(127);
  (void)!write(begun, &told.term, sizeof told.term);
  told.limits[sizeof told.limits - 1] = '\0';
  char **argv = split_words(&told, fds[SHIM_PROGRAM_WORDS]);
  bool ok = argv != NULL && fchdir(fds[SHIM_PROGRAM_CWD]) == 0;
  for (int fd = 0; fd <= 2 && ok; fd++)
    ok = dup2(fds[fd], fd) == fd;
  if (ok)
    mark_program();
  if (ok)
    become(argv, told.limits);
  failure->exec_errno = errno;
  _exit(127);
}

pid_t program_prepare(unsigned held, int *begun) {
  int ends[2];
  pid_t shim = getpid();
  if (!share_failure() || pipe2(ends, O_CLOEXEC) != 0)
    return -1;
  pid_t pid = (held & SHIM_IN_GROUP) != 0 ? fork_into_group(0) : fork();
  if (pid == 0) {
    (void)close(ends[0]);
    settle(shim, held);
    wait_and_become(ends[1]);
  }
  *begun = ends[0];
  (void)close(ends[1]);
  return pid;
}
