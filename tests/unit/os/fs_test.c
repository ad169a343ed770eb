/* Files stay beneath their folder, with openat2 and without; locks belong to a descriptor. */
#include "os/fs.h"

#include "base/err.h"
#include "support/folder.h"
#include "support/leave.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* out/secret, in/file, in/sub/deep, in/fifo, and links in `in`. */
static char *make_tree(void) {
  char path[4096];
  char *top = folder_make();
  static const char *const folders[] = {"out", "in", "in/sub"};
  static const char *const files[] = {"out/secret", "in/file", "in/sub/deep"};
  static const char *const links[][2] = {{"in/inner", "sub/deep"},
                                         {"in/outer", "../out/secret"},
                                         {"in/up", ".."},
                                         {"in/root", "/etc/passwd"}};
  for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
    print_into(path, sizeof path, "%s/%s", top, folders[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    print_into(path, sizeof path, "%s/%s", top, files[i]);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
  }
  for (size_t i = 0; i < ARRAY_LEN(links); i++) {
    print_into(path, sizeof path, "%s/%s", top, links[i][0]);
    assert_int_equal(symlink(links[i][1], path), 0);
  }
  print_into(path, sizeof path, "%s/in/fifo", top);
  assert_int_equal(mkfifo(path, 0600), 0);
  return top;
}

/* 0, or the errno of opening it. */
static int outcome(int folder, const char *path, int flags) {
  int fd = fs_open_beneath(folder, path, flags), number = errno;
  if (fd < 0)
    return number;
  bool closes = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
  close(fd);
  return closes ? 0 : -1;
}

static const struct {
  const char *path;
  int flags, with_openat2, without;
} cases[] = {
    {"file", O_RDONLY, 0, 0},
    {"sub/deep", O_RDONLY, 0, 0},
    {"sub//deep", O_RDONLY, 0, 0},
    {"sub", O_PATH | O_DIRECTORY, 0, 0},
    {"fifo", O_RDONLY, 0, 0}, /* waits for no writer */
    {"inner", O_RDONLY, 0, ELOOP},
    {"made", O_WRONLY | O_CREAT, 0, 0},
    {"missing", O_RDONLY, ENOENT, ENOENT},
    {"missing/deep", O_RDONLY, ENOENT, ENOENT},
    {"file/deep", O_RDONLY, ENOTDIR, ENOTDIR},
    {"outer", O_RDONLY, EXDEV, ELOOP},
    {"up/out/secret", O_RDONLY, EXDEV, ENOTDIR},
    {"root", O_RDONLY, EXDEV, ELOOP},
    {"../out/secret", O_RDONLY, EXDEV, EXDEV},
    {"sub/../../out/secret", O_RDONLY, EXDEV, EXDEV},
    {"/etc/passwd", O_RDONLY, EXDEV, EXDEV},
};

TEST(the_kernel_keeps_it_beneath) {
  char *top = make_tree(), path[4096];
  print_into(path, sizeof path, "%s/in", top);
  int folder = fs_open_folder(path);
  assert_true(folder >= 0);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    int got = outcome(folder, cases[i].path, cases[i].flags);
    if (got != cases[i].with_openat2 && got != cases[i].without) /* a sandbox may forbid openat2 */
      fail_msg("%s: %s", cases[i].path, strerror(got));
  }
  int sub = fs_open_folder_beneath(folder, "sub");
  assert_int_equal(outcome(sub, "deep", O_RDONLY), 0);
  assert_int_equal(fs_open_folder_beneath(folder, "file"), -1);
  assert_int_equal(errno, ENOTDIR);
  close(sub);
  close(folder);
  assert_int_equal(fs_open_folder("/dev/null"), -1);
  assert_int_equal(errno, ENOTDIR);
  folder_remove(top);
}

/* From here on this process knows no openat2. */
static void forbid_openat2(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {ARRAY_LEN(code), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

TEST(an_old_kernel_keeps_it_beneath) {
  char *top = make_tree(), path[4096];
  print_into(path, sizeof path, "%s/in", top);
  int folder = fs_open_folder(path), status = 0;
  assert_true(folder >= 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    forbid_openat2();
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
      int got = outcome(folder, cases[i].path, cases[i].flags);
      if (got != cases[i].without)
        print_message("%s: %s\n", cases[i].path, strerror(got)), bad = 1;
    }
    leave(bad);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  close(folder);
  folder_remove(top);
  if (WEXITSTATUS(status) == 77)
    skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(locks_belong_to_a_descriptor) {
  char *top = make_tree(), path[4096], again[FS_PATH_BYTES];
  print_into(path, sizeof path, "%s/in/file", top);
  int first = open(path, O_RDWR | O_CLOEXEC);
  assert_true(first >= 0);
  fs_path_of(first, again);
  assert_int_equal(unlink(path), 0); /* by the descriptor: the name may be gone */
  int second = open(again, O_RDWR | O_CLOEXEC);
  assert_true(second >= 0);
  assert_false(fs_is_locked(second));
  assert_true(fs_lock(first));
  assert_true(fs_lock(first)); /* its own is no hindrance */
  assert_false(fs_is_locked(first));
  assert_true(fs_is_locked(second));
  assert_false(fs_lock(second));
  assert_true(fs_lock_is_taken(errno));
  assert_false(fs_lock_is_taken(EBADF));
  close(first);
  assert_true(fs_lock(second));
  close(second);
  folder_remove(top);
}

/* As a program that was forked and not executed yet holds what its parent had locked. */
TEST(a_lock_that_is_going_is_waited_for) {
  char *top = make_tree(), path[4096];
  int ends[2];
  char c;
  print_into(path, sizeof path, "%s/in/file", top);
  int held = open(path, O_RDWR | O_CLOEXEC), wanted = open(path, O_RDWR | O_CLOEXEC);
  assert_true(held >= 0 && wanted >= 0 && pipe(ends) == 0);
  assert_true(fs_lock(held));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    close(wanted); /* it is not the child's to wait for */
    (void)!read(ends[0], &c, 1);
    (void)poll(NULL, 0, 20);
    leave(0);
  }
  close(held);
  assert_false(fs_lock(wanted)); /* the child has it */
  assert_false(fs_lock_within(wanted, 0));
  assert_true(fs_lock_is_taken(errno));
  assert_false(fs_lock_within(wanted, 10));
  assert_int_equal(write(ends[1], "x", 1), 1);
  assert_true(fs_lock_within(wanted, 60000));
  assert_int_equal(waitpid(child, NULL, 0), child);
  close(wanted);
  close(ends[0]);
  close(ends[1]);
  folder_remove(top);
}

TEST(two_files_swap) {
  char *top = make_tree(), a[4096], b[4096];
  struct stat before, after;
  print_into(a, sizeof a, "%s/in/file", top);
  print_into(b, sizeof b, "%s/out/secret", top);
  assert_int_equal(stat(a, &before), 0);
  assert_true(fs_swap(a, b));
  assert_int_equal(stat(b, &after), 0);
  assert_int_equal(before.st_ino, after.st_ino);
  assert_int_equal(unlink(a), 0);
  assert_false(fs_swap(a, b));
  assert_int_equal(errno, ENOENT);
  folder_remove(top);
}
