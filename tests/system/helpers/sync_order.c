/* sync_order.c - a library for LD_PRELOAD that tells in which order segue writes, syncs and acts.
 *
 * Each call becomes one line of the file that SYNC_ORDER names, tab-separated, in the order in
 * which the calls were made (a sync, a rename and a new file: done):
 *
 *   open INO PATH        a file that is made or was there
 *   mkdir PATH
 *   write INO OFFSET N   offset -1: at the end
 *   cut INO N            ftruncate
 *   sync+ INO PATH       a sync begins, sync- INO PATH: it went well
 *   rename OLD NEW       unlink PATH
 *   spawn                a program is about to be started
 *   out N                bytes for standard output
 *   send HEX             the first bytes for a socket
 *
 * Only processes called segue tell; what they start does not. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SENT_BYTES = 2048 };

static int trace = -1;

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("SYNC_ORDER");
  if (path == NULL || strcmp(program_invocation_short_name, "segue") != 0)
    return;
  trace = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
  char line[2 * SENT_BYTES + PATH_MAX];
  va_list args;
  if (trace < 0)
    return;
  int kept = errno;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n > 0 && syscall(SYS_write, trace, line, (size_t)n) != n)
    abort();
  errno = kept;
}

/* The file behind a descriptor; false when it is none or a device, pipe or socket. */
static bool known(int fd, unsigned long *ino, char path[PATH_MAX]) {
  char link[40];
  struct stat st;
  int kept = errno;
  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  bool ok = trace >= 0 && fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
  ssize_t n = ok ? readlink(link, path, PATH_MAX - 1) : -1;
  errno = kept;
  if (n < 0)
    return false;
  path[n] = '\0';
  *ino = (unsigned long)st.st_ino;
  return true;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(int fd) {
  unsigned long ino;
  char path[PATH_MAX];
  if (fd >= 0 && known(fd, &ino, path))
    tell("open\t%lu\t%s\n", ino, path);
  return fd;
}

static mode_t mode_of(int flags, va_list args) {
  return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, args);
  va_end(args);
  return opened(REAL(open)(path, flags, mode));
}

int openat(int dir, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, args);
  va_end(args);
  return opened(REAL(openat)(dir, path, flags, mode));
}

int mkdir(const char *path, mode_t mode) {
  char real[PATH_MAX];
  int rc = REAL(mkdir)(path, mode);
  if (rc == 0 && realpath(path, real) != NULL)
    tell("mkdir\t%s\n", real);
  return rc;
}

static void tell_write(int fd, long long at, size_t n) {
  unsigned long ino;
  char path[PATH_MAX];
  if (known(fd, &ino, path))
    tell("write\t%lu\t%lld\t%zu\n", ino, at, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
  tell_write(fd, at, n);
  return REAL(pwrite)(fd, bytes, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n) {
  tell_write(fd, -1, n);
  return REAL(write)(fd, bytes, n);
}

int ftruncate(int fd, off_t n) {
  unsigned long ino;
  char path[PATH_MAX];
  if (known(fd, &ino, path))
    tell("cut\t%lu\t%lld\n", ino, (long long)n);
  return REAL(ftruncate)(fd, n);
}

static int synced(int fd, int (*sync)(int)) {
  unsigned long ino;
  char path[PATH_MAX];
  if (!known(fd, &ino, path))
    return sync(fd);
  tell("sync+\t%lu\t%s\n", ino, path);
  int rc = sync(fd);
  if (rc == 0)
    tell("sync-\t%lu\t%s\n", ino, path);
  return rc;
}

int fsync(int fd) {
  return synced(fd, REAL(fsync));
}

int fdatasync(int fd) {
  return synced(fd, REAL(fdatasync));
}

int rename(const char *from, const char *to) {
  int rc = REAL(rename)(from, to);
  if (rc == 0)
    tell("rename\t%s\t%s\n", from, to);
  return rc;
}

int unlink(const char *path) {
  int rc = REAL(unlink)(path);
  if (rc == 0)
    tell("unlink\t%s\n", path);
  return rc;
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attr, char *const argv[], char *const env[]) {
  tell("spawn\n");
  return REAL(posix_spawn)(pid, path, actions, attr, argv, env);
}

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *file) {
  if (file == stdout)
    tell("out\t%zu\n", size * n);
  return REAL(fwrite)(bytes, size, n, file);
}

__attribute__((format(printf, 1, 0))) static int print(const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  tell("out\t%d\n", vsnprintf(NULL, 0, format, again));
  va_end(again);
  return vfprintf(stdout, format, args);
}

/* AddressSanitizer's printf, which stands before ours, calls it. */
__attribute__((format(printf, 1, 0))) int vprintf(const char *format, va_list args) {
  return print(format, args);
}

int printf(const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = print(format, args);
  va_end(args);
  return n;
}

/* printf becomes this where copies are checked (_FORTIFY_SOURCE). */
int __printf_chk(int flag, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __printf_chk(int flag, const char *format, ...) {
  va_list args;
  (void)flag;
  va_start(args, format);
  int n = print(format, args);
  va_end(args);
  return n;
}

static void tell_sent(const void *bytes, size_t n) {
  char hex[2 * SENT_BYTES + 1];
  const unsigned char *p = bytes;
  n = n < SENT_BYTES ? n : SENT_BYTES;
  for (size_t i = 0; i < n; i++)
    (void)snprintf(hex + 2 * i, 3, "%02x", p[i]);
  hex[2 * n] = '\0';
  tell("send\t%s\n", hex);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags) {
  tell_sent(bytes, n);
  return REAL(send)(fd, bytes, n, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to,
               socklen_t to_bytes) {
  tell_sent(bytes, n);
  return REAL(sendto)(fd, bytes, n, flags, to, to_bytes);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  for (size_t i = 0; i < message->msg_iovlen; i++)
    tell_sent(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
  return REAL(sendmsg)(fd, message, flags);
}
