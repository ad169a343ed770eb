/* Limits, marks and confines the child, and executes the program. */
#include "shim/exec.h"

#include "shim/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Writes the filter. False: there is no room. */
static bool write_filter(struct filter_code *p) {
  filter_load(p, offsetof(struct seccomp_data, arch));
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCH, 1, 0);
  refuse(p, ENOSYS); /* other architectures, such as 32 bit, number calls otherwise */
  filter_load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
  filter_put(p, BPF_JMP | BPF_JGE | BPF_K, CONFINE_X32, 0, 1);
  refuse(p, ENOSYS);
#endif
  filter_rules(p);
  filter_tree(p, 0, p->rule_count);
  return p->n <= sizeof p->code / sizeof p->code[0] &&
         p->rule_count < sizeof p->rules / sizeof p->rules[0];
}

static bool set_filter(unsigned held) {
  struct filter_code p = {.held = held};
  if (!write_filter(&p)) {
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
