/* confine.c - puts a program under Landlock's rulesets and a seccomp filter before it is executed.
 *
 * DESIGN. Landlock restricts files, TCP ports, signals and tracing by the ruleset alone, so
 * nothing about it is written here. The filter closes what Landlock cannot express, or could not
 * when it was new: other namespaces (in which a program would be its own root), the keyring,
 * ways to sockets other than TCP, and calls reserved for a machine's owner, which root could
 * otherwise make. It looks only at numbers, never at memory, which another thread could change.
 * clone3 has its flags in memory: the filter says that it does not exist, and C libraries use
 * clone instead. */
#include "shim/confine.h"

#include "shim/protocol.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Refuses to inject keystrokes into a terminal that is held open. */
static void filter_terminals(struct filter_code *p) {
  enum { TIOCSTI_ = 0x5412, TIOCLINUX_ = 0x541C };
  filter_load(p, argument(1));
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI_, 1, 0);
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX_, 0, 1);
  refuse(p, EPERM);
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
  case NO_TYPING:
    filter_terminals(p);
    break;
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

bool confine(unsigned held) {
  if ((held & SHIM_FILTER) != 0 && !drop_capabilities((held & SHIM_NAMESPACES) != 0))
    return false;
  /* The smaller ruleset comes first: the second call copies what the first left. */
  if ((held & SHIM_RULES) != 0 && (syscall(SYS_landlock_restrict_self, SHIM_FD_WRITES, 0) != 0 ||
                                   syscall(SYS_landlock_restrict_self, SHIM_FD_READS, 0) != 0))
    return false;
  return (held & SHIM_FILTER) == 0 || set_filter(held);
}
