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
#include "shim/port_forward.h"
#include "shim/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- how a child becomes the program of a call ---
 *
 *   pid = program_execute(argv, held, limits)   returns when it is executed, or never will be
 *
 *   pid = program_prepare(held, &begun)     at once: the child takes on its sandbox, and waits
 *   shim_program comes on SHIM_FD_CONTROL   the child takes it, and writes the term to `begun`
 *   `begun` ends                            the program is executed, or never will be
 *
 *   *failure                                then: why it is not, if the child could say
 *
 * held: of enum shim_held. limits: ":MEMORY:PIDS:CPUS" or nothing. Both return -1 with errno set if
 * there is no child. */

/* --- Landlock and seccomp --- */

/* Puts a program under Landlock's rulesets and a seccomp filter before it is executed.
 *
 * DESIGN. Landlock restricts files, TCP ports, signals and tracing by the ruleset alone, so
 * nothing about it is written here. The filter closes what Landlock cannot express, or could not
 * when it was new: other namespaces (in which a program would be its own root), the keyring,
 * ways to sockets other than TCP, and calls reserved for a machine's owner, which root could
 * otherwise make. It looks only at numbers, never at memory, which another thread could change.
 * clone3 has its flags in memory: the filter says that it does not exist, and C libraries use
 * clone instead. */

/* Debian 12's headers may lack these system calls; since Linux 5 their numbers are the same
 * everywhere. */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

#if defined(__x86_64__)
#define CONFINE_ARCH AUDIT_ARCH_X86_64
enum { CONFINE_X32 = 0x40000000 }; /* a call with this bit is from another table */
#elif defined(__aarch64__)
#define CONFINE_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef CONFINE_ARCH

enum {
  NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                   CLONE_NEWPID | CLONE_NEWNET,
  NEW_TIME = 0x80 /* CLONE_NEWTIME: only for unshare */
};

/* These are always refused: keys outlive the call, and the rest is for a machine's owner. */
static const int never[] = {
    SYS_add_key,     SYS_keyctl,
    SYS_request_key, SYS_bpf,
    SYS_reboot,      SYS_perf_event_open,
    SYS_kexec_load,  SYS_kexec_file_load,
    SYS_init_module, SYS_finit_module,
    SYS_acct,        SYS_delete_module,
    SYS_swapon,      SYS_open_by_handle_at,
    SYS_swapoff,     SYS_settimeofday,
    SYS_quotactl,    SYS_clock_settime,
    SYS_userfaultfd,
};

/* These make namespaces, or mount in them. */
static const int mounts[] = {SYS_mount,  SYS_umount2,    SYS_pivot_root, SYS_setns,
                             SYS_fsopen, SYS_move_mount, SYS_open_tree,  SYS_fsmount};

/* A rule names a call that is not simply allowed. */
struct filter_rule {
  int call;
  enum { REFUSED, NOT_THERE, WITHOUT_BITS, NO_TYPING, OWN_LIMITS, SOME_SOCKETS } how;
  uint32_t bits; /* refused in its first argument */
};

struct filter_code {
  struct sock_filter code[200];
  size_t n;
  struct filter_rule rules[64];
  size_t rule_count;
  unsigned held;
};

/* Keeps rules sorted by number. The filter is a search tree, because the kernel runs it once for
 * every existing call number when it takes the filter. */
static void filter_add(struct filter_code *p, struct filter_rule rule) {
  size_t at = p->rule_count;
  if (at == sizeof p->rules / sizeof p->rules[0])
    return; /* write_filter notices that they are full */
  for (; at > 0 && p->rules[at - 1].call > rule.call; at--)
    p->rules[at] = p->rules[at - 1];
  p->rules[at] = rule;
  p->rule_count++;
}

static void filter_put(struct filter_code *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf) {
  if (p->n < sizeof p->code / sizeof p->code[0])
    p->code[p->n] = (struct sock_filter){code, jt, jf, k};
  p->n++;
}

static void filter_load(struct filter_code *p, size_t offset) {
  filter_put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void refuse(struct filter_code *p, int number) {
  filter_put(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)number, 0, 0);
}

static void filter_allow(struct filter_code *p) {
  filter_put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static size_t argument(int i) {
  return offsetof(struct seccomp_data, args) + (size_t)i * sizeof(uint64_t); /* the low half */
}

/* Refuses sockets of families that reach further than allowed. */
static void filter_sockets(struct filter_code *p) {
  filter_load(p, argument(0));
  if (p->held & SHIM_NO_INTERNET) {
    bool named = (p->held & SHIM_NO_SOCKETS) == 0;
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 2, 0); /* lists interfaces */
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, named ? AF_UNIX : AF_NETLINK, 1, 0);
  } else if (p->held & SHIM_EMPTY_NETWORK) { /* AF_VSOCK leads to the host of a virtual machine */
    static const uint32_t held_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    const uint8_t n = sizeof held_families / sizeof held_families[0];
    for (uint8_t i = 0; i < n; i++)
      filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, held_families[i], n - i, 0);
  } else {
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1);
  }
  refuse(p, EACCES);
  filter_allow(p);
}

/* Refuses to set the limits of a named process, even if it is the caller: Landlock does not prevent
 * it, and a limit on processor time ends segue or a neighbour. Limits may be read. */
static void filter_limits(struct filter_code *p) {
  filter_load(p, argument(0));
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, 0);
  filter_load(p, argument(2)); /* a pointer to the new limit */
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
  filter_load(p, argument(2) + sizeof(uint32_t));
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
  refuse(p, EPERM);
  filter_allow(p);
}

/* Writes the code of a rule, which ends in a verdict. */
static void filter_rule_code(struct filter_code *p, const struct filter_rule *rule) {
  switch (rule->how) {
  case REFUSED:
    refuse(p, EPERM);
    break;
  case NOT_THERE:
    refuse(p, ENOSYS);
    break;
  case WITHOUT_BITS:
    filter_load(p, argument(0));
    filter_put(p, BPF_JMP | BPF_JSET | BPF_K, rule->bits, 0, 1);
    refuse(p, EPERM);
    filter_allow(p);
    break;
  case NO_TYPING: { /* refuses to inject keystrokes into a terminal that is held open */
    enum { TIOCSTI_ = 0x5412, TIOCLINUX_ = 0x541C };
    filter_load(p, argument(1));
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI_, 1, 0);
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX_, 0, 1);
    refuse(p, EPERM);
    filter_allow(p);
    break;
  }
  case OWN_LIMITS:
    filter_limits(p);
    break;
  case SOME_SOCKETS:
    filter_sockets(p);
    break;
  }
}

/* Writes the tree of rules from..to-1 for the loaded number; numbers without a rule are allowed. */
static void filter_tree(struct filter_code *p, size_t from, size_t to) {
  enum { IN_A_ROW = 3 };
  size_t branch = p->n, middle = from + (to - from) / 2;
  if (to - from > IN_A_ROW) {
    filter_put(p, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)p->rules[middle].call, 0, 0);
    filter_tree(p, from, middle);
    if (branch < sizeof p->code / sizeof p->code[0])
      p->code[branch].jt = (uint8_t)(p->n - branch - 1); /* there are fewer than 256 instructions */
    filter_tree(p, middle, to);
    return;
  }
  for (size_t i = from; i < to; i++) {
    branch = p->n;
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)p->rules[i].call, 0, 0);
    filter_rule_code(p, &p->rules[i]);
    if (branch < sizeof p->code / sizeof p->code[0])
      p->code[branch].jf = (uint8_t)(p->n - branch - 1);
  }
  filter_allow(p);
}

static void filter_rules(struct filter_code *p) {
  for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
    filter_add(p, (struct filter_rule){.call = never[i], .how = REFUSED});
  /* otherwise it would make sockets behind our back */
  filter_add(p, (struct filter_rule){.call = SYS_io_uring_setup, .how = NOT_THERE});
  filter_add(p, (struct filter_rule){.call = SYS_ioctl, .how = NO_TYPING});
  filter_add(p, (struct filter_rule){.call = SYS_prlimit64, .how = OWN_LIMITS});
  if (p->held & (SHIM_NO_INTERNET | SHIM_NO_SOCKETS | SHIM_EMPTY_NETWORK))
    filter_add(p, (struct filter_rule){.call = SYS_socket, .how = SOME_SOCKETS});
  if (p->held & SHIM_NAMESPACES)
    return;
  for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++)
    filter_add(p, (struct filter_rule){.call = mounts[i], .how = REFUSED});
  filter_add(p, (struct filter_rule){.call = SYS_clone3, .how = NOT_THERE});
  filter_add(p, (struct filter_rule){SYS_clone, WITHOUT_BITS, NEW_NAMESPACES});
  filter_add(p, (struct filter_rule){SYS_unshare, WITHOUT_BITS, NEW_NAMESPACES | NEW_TIME});
}

static bool set_filter(unsigned held) {
  struct filter_code p = {.held = held};
  /* Writes the filter. False: there is no room. */
  filter_load(&p, offsetof(struct seccomp_data, arch));
  filter_put(&p, BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCH, 1, 0);
  refuse(&p, ENOSYS); /* other architectures, such as 32 bit, number calls otherwise */
  filter_load(&p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
  filter_put(&p, BPF_JMP | BPF_JGE | BPF_K, CONFINE_X32, 0, 1);
  refuse(&p, ENOSYS);
#endif
  filter_rules(&p);
  filter_tree(&p, 0, p.rule_count);
  if (p.n > sizeof p.code / sizeof p.code[0] ||
      p.rule_count >= sizeof p.rules / sizeof p.rules[0]) {
    errno = E2BIG;
    return false;
  }
  const struct sock_fprog filter = {.len = (unsigned short)p.n, .filter = p.code};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

#else

static bool set_filter(unsigned held) { /* no table of calls for this kind of machine */
  (void)held;
  errno = ENOSYS;
  return false;
}

#endif

/* Drops the root privileges that belong to a machine's owner; root keeps access to everybody's
 * files. With no_new_privs no exec regains them, so this one call has the effect of emptying the
 * bounding set. Becoming root in a user namespace also needs CAP_SETFCAP. Other users have nothing
 * to drop. */
static bool drop_capabilities(bool namespaces) {
  static const unsigned kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                                  CAP_KILL,  CAP_SETGID,       CAP_SETUID, CAP_NET_BIND_SERVICE};
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct has[2] = {{0}};
  uint32_t mask = 0; /* all of them are below 32 */
  for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
    mask |= 1u << kept[i];
  if (namespaces)
    mask |= 1u << CAP_SETFCAP;
  if (syscall(SYS_capget, &header, has) != 0)
    return false;
  if (((has[0].permitted | has[0].inheritable) & ~mask) == 0 && has[1].permitted == 0 &&
      has[1].inheritable == 0)
    return true;
  has[0].permitted &= mask;
  has[0].effective &= mask;
  has[0].inheritable &= mask;
  has[1] = (struct __user_cap_data_struct){0};
  return syscall(SYS_capset, &header, has) == 0;
}

/* `held` is a sum of enum shim_held. no_new_privs must be set before. On false errno says why; the
 * process may then be partly confined and must not continue. */
static bool confine(unsigned held) {
  if ((held & SHIM_FILTER) != 0 && !drop_capabilities((held & SHIM_NAMESPACES) != 0))
    return false;
  /* The smaller ruleset comes first: the second call copies what the first left. */
  if ((held & SHIM_RULES) != 0 && (syscall(SYS_landlock_restrict_self, SHIM_FD_WRITES, 0) != 0 ||
                                   syscall(SYS_landlock_restrict_self, SHIM_FD_READS, 0) != 0))
    return false;
  return (held & SHIM_FILTER) == 0 || set_filter(held);
}

/* --- the child --- */

/* The child writes why it never became the program: after vfork it shares our memory, after fork
 * this page. */
struct failure {
  volatile int exec_errno, held_errno;
};
static struct failure own_failure, *failure = &own_failure;

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

static pid_t program_execute(char **argv, unsigned held, const char *limits) {
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

static pid_t program_prepare(unsigned held, int *begun) {
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

/* --- the tree --- */

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
  if (program > 0)
    (void)waitpid(program, NULL, 0);
  if (program < 0)
    tell(SHIM_FORK_FAILED, fork_errno);
  else if (failure->held_errno != 0)
    tell(SHIM_UNHELD, failure->held_errno);
  else
    tell(SHIM_EXEC_FAILED, failure->exec_errno);
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
  if (s->program > 0 && failure->exec_errno == 0 && failure->held_errno == 0)
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
