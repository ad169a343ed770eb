/* confine.c - puts a program under Landlock's rulesets and a seccomp filter before it is executed.
 *
 * DESIGN. Landlock holds files, TCP ports, signals and tracing; it does so by the ruleset alone, so
 * nothing of it stands here. The filter closes what Landlock has no word for, or did not have when
 * it was new: other namespaces (in which a program would be its own root), the keyring, the ways to
 * sockets that are no TCP, and calls of a machine's owner, which root could make else. It looks at
 * numbers only, never at memory, which another thread could change. clone3 has its flags in memory:
 * it is said not to exist, and the C libraries take clone instead. */
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

/* Numbers of system calls that Debian 12's headers may lack; one for all machines since Linux 5. */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

#if defined(__x86_64__)
#define CONFINE_ARCH AUDIT_ARCH_X86_64
enum { CONFINE_X32 = 0x40000000 }; /* this bit in a number: another table of calls */
#elif defined(__aarch64__)
#define CONFINE_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef CONFINE_ARCH

enum {
  NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                   CLONE_NEWPID | CLONE_NEWNET,
  NEW_TIME = 0x80 /* CLONE_NEWTIME: of unshare only */
};

/* Keys outlive the call, the rest belongs to a machine's owner: refused whatever else is allowed.
 */
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

/* Namespaces and what is mounted in them. */
static const int mounts[] = {SYS_mount,  SYS_umount2,    SYS_pivot_root, SYS_setns,
                             SYS_fsopen, SYS_move_mount, SYS_open_tree,  SYS_fsmount};

struct filter_code {
  struct sock_filter code[160];
  size_t n;
};

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

/* The number of the call is loaded. */
static void refuse_call(struct filter_code *p, long call, int number) {
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
  refuse(p, number);
}

static size_t argument(int i) {
  return offsetof(struct seccomp_data, args) + (size_t)i * sizeof(uint64_t); /* its low half */
}

/* Refuses a call whose first argument has one of these bits. */
static void refuse_bits(struct filter_code *p, long call, uint32_t bits) {
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4);
  filter_load(p, argument(0));
  filter_put(p, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
  refuse(p, EPERM);
  filter_load(p, offsetof(struct seccomp_data, nr));
}

/* Lets no socket be made of the families that reach further than they may. */
static void filter_sockets(struct filter_code *p, unsigned held) {
  if ((held & (SHIM_NO_INTERNET | SHIM_NO_SOCKETS)) == 0)
    return;
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, held & SHIM_NO_INTERNET ? 5 : 4);
  filter_load(p, argument(0));
  if (held & SHIM_NO_INTERNET) {
    bool named = (held & SHIM_NO_SOCKETS) == 0;
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 2, 0); /* what interfaces there are */
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, named ? AF_UNIX : AF_NETLINK, 1, 0);
  } else {
    filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1);
  }
  refuse(p, EACCES);
  filter_load(p, offsetof(struct seccomp_data, nr));
}

/* Injecting keys into a terminal that is held open. */
static void filter_terminals(struct filter_code *p) {
  enum { TIOCSTI_ = 0x5412, TIOCLINUX_ = 0x541C };
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5);
  filter_load(p, argument(1));
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI_, 1, 0);
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX_, 0, 1);
  refuse(p, EPERM);
  filter_load(p, offsetof(struct seccomp_data, nr));
}

static void write_filter(struct filter_code *p, unsigned held) {
  filter_load(p, offsetof(struct seccomp_data, arch));
  filter_put(p, BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCH, 1, 0);
  refuse(p, ENOSYS); /* programs of another kind of machine, such as 32 bit: other numbers */
  filter_load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
  filter_put(p, BPF_JMP | BPF_JGE | BPF_K, CONFINE_X32, 0, 1);
  refuse(p, ENOSYS);
#endif
  for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
    refuse_call(p, never[i], EPERM);
  refuse_call(p, SYS_io_uring_setup, ENOSYS); /* it would make sockets behind our back */
  if ((held & SHIM_NAMESPACES) == 0) {
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++)
      refuse_call(p, mounts[i], EPERM);
    refuse_call(p, SYS_clone3, ENOSYS);
    refuse_bits(p, SYS_clone, NEW_NAMESPACES);
    refuse_bits(p, SYS_unshare, NEW_NAMESPACES | NEW_TIME);
  }
  filter_terminals(p);
  filter_sockets(p, held);
  filter_put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static bool set_filter(unsigned held) {
  struct filter_code p = {.n = 0};
  write_filter(&p, held);
  if (p.n > sizeof p.code / sizeof p.code[0]) {
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

/* Root keeps what a user has on files of all: what belongs to a machine's owner goes, with the next
 * execution. To be root in a namespace of users takes the right on files' capabilities, too. For
 * others there is nothing to drop, and no_new_privs lets them gain nothing. */
static void drop_capabilities(bool namespaces) {
  static const bool kept[] = {[CAP_CHOWN] = true,  [CAP_DAC_OVERRIDE] = true,
                              [CAP_FOWNER] = true, [CAP_FSETID] = true,
                              [CAP_KILL] = true,   [CAP_SETGID] = true,
                              [CAP_SETUID] = true, [CAP_NET_BIND_SERVICE] = true};
  for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
    if ((i >= sizeof kept / sizeof kept[0] || !kept[i]) && !(namespaces && i == CAP_SETFCAP))
      (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

bool confine(unsigned held) {
  if (held & SHIM_FILTER)
    drop_capabilities((held & SHIM_NAMESPACES) != 0);
  /* The few first: the second copies what the first left. */
  if ((held & SHIM_RULES) != 0 && (syscall(SYS_landlock_restrict_self, SHIM_FD_WRITES, 0) != 0 ||
                                   syscall(SYS_landlock_restrict_self, SHIM_FD_READS, 0) != 0))
    return false;
  return (held & SHIM_FILTER) == 0 || set_filter(held);
}
