/* landlock.h - Landlock's calls and numbers, for kernels newer than the headers that we are built
 * with. Names and values as in Linux 6.15's include/uapi/linux/landlock.h; the kernel says at run
 * time (LANDLOCK_CREATE_RULESET_VERSION) how far it goes:
 *   1 files (5.13)   2 renaming to another folder (5.19)   3 truncating (6.2)   4 TCP ports (6.7)
 *   5 ioctl of devices (6.10)   6 signals and abstract sockets (6.12)   7 audit (6.15)
 * Here they begin with LL_, so that they clash with no header's. */
#ifndef SEGUE_OS_LANDLOCK_H
#define SEGUE_OS_LANDLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#endif

enum { LL_CREATE_RULESET_VERSION = 1, LL_RULE_PATH_BENEATH = 1 };

enum ll_access {
  LL_EXECUTE = 1 << 0,
  LL_WRITE_FILE = 1 << 1,
  LL_READ_FILE = 1 << 2,
  LL_READ_DIR = 1 << 3,
  LL_REMOVE_DIR = 1 << 4,
  LL_REMOVE_FILE = 1 << 5,
  LL_MAKE_CHAR = 1 << 6,
  LL_MAKE_DIR = 1 << 7,
  LL_MAKE_REG = 1 << 8,
  LL_MAKE_SOCK = 1 << 9,
  LL_MAKE_FIFO = 1 << 10,
  LL_MAKE_BLOCK = 1 << 11,
  LL_MAKE_SYM = 1 << 12,
  LL_REFER = 1 << 13,     /* from 2 on; denied by every ruleset that does not allow it */
  LL_TRUNCATE = 1 << 14,  /* from 3 on */
  LL_IOCTL_DEV = 1 << 15, /* from 5 on */
};
enum { LL_NET_BIND_TCP = 1 << 0, LL_NET_CONNECT_TCP = 1 << 1 };            /* from 4 on */
enum { LL_SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, LL_SCOPE_SIGNAL = 1 << 1 }; /* from 6 on */

struct ll_ruleset { /* an older kernel takes a longer one whose rest is zero */
  uint64_t fs, net, scoped;
};
struct ll_path {
  uint64_t allowed;
  int32_t parent_fd;
} __attribute__((packed));

static inline int ll_create(const struct ll_ruleset *ruleset) {
  return (int)syscall(SYS_landlock_create_ruleset, ruleset, sizeof *ruleset, 0);
}

static inline int ll_version(void) {
  return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_RULESET_VERSION);
}

static inline int ll_allow(int ruleset, int path, uint64_t rights) {
  const struct ll_path rule = {.allowed = rights, .parent_fd = path};
  return (int)syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &rule, 0);
}

#endif
