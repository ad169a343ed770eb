/* Makes the control socket and decides who may speak on it. */
#include "daemon/socket.h"

#include "base/file.h"
#include "base/limits.h"
#include "host/paths.h"
#include "os/fs.h"
#include "os/orphans.h"
#include "os/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool socket_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

bool socket_path(const char *option, char path[SOCKET_PATH_BYTES], struct err *err) {
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  char dir[64];
  int n;
  if (option != NULL && option[0] == '\0') /* not given, as with the folder of logs */
    option = NULL;
  print_into(dir, sizeof dir, "/run/user/%ld", (long)geteuid());
  if (option != NULL && option[0] == '/')
    n = snprintf(path, SOCKET_PATH_BYTES, "%s", option);
  else if (option != NULL) {
    char cwd[SOCKET_PATH_BYTES];
    if (getcwd(cwd, sizeof cwd) == NULL)
      return err_set(err, ERR_USAGE,
                     "--socket: give an absolute path: below the current folder it is longer than "
                     "a socket's name may be");
    n = snprintf(path, SOCKET_PATH_BYTES, "%s/%s", cwd, option);
  } else if (runtime != NULL && runtime[0] == '/')
    n = snprintf(path, SOCKET_PATH_BYTES, "%s/segue/segue.sock", runtime);
  else if (socket_is_folder(dir))
    n = snprintf(path, SOCKET_PATH_BYTES, "%s/segue/segue.sock", dir);
  else
    n = snprintf(path, SOCKET_PATH_BYTES, "/tmp/segue-%ld/segue.sock", (long)geteuid());
  return n < SOCKET_PATH_BYTES ||
         err_set(err, ERR_USAGE,
                 "the path of the control socket is longer than the %d bytes that a socket's "
                 "name may have: give a shorter one with --socket",
                 SOCKET_PATH_BYTES - 1);
}

/* --- where it was last --- */

static bool socket_note_path(char path[PATHS_BYTES]) {
  const char *home = getenv("HOME");
  if (home == NULL || home[0] != '/' || strlen(home) > PATHS_BYTES / 2)
    return false;
  print_into(path, PATHS_BYTES, "%s/.local/state/segue/daemon", home);
  return true;
}

void socket_note(const char *path, const char *logs) {
  char note[PATHS_BYTES], made[PATHS_BYTES + 24];
  struct err ignored;
  buf_auto_t text = {0};
  if (!socket_note_path(note) || !paths_make_folders_of(note))
    return;
  print_into(made, sizeof made, "%s.%ld", note, (long)getpid());
  buf_printf(&text, "%s\n%s\n", path, logs);
  (void)unlink(made);
  if (file_write_new(made, buf_view(&text), &ignored) && rename(made, note) != 0)
    (void)unlink(made);
}

bool socket_noted(char path[SOCKET_PATH_BYTES], char logs[PATHS_BYTES]) {
  char note[PATHS_BYTES];
  struct err ignored;
  struct stat st;
  buf_auto_t text = {0};
  int fd = socket_note_path(note) ? open(note, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
  bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
            (st.st_mode & 022) == 0 && file_read_fd(fd, note, PATHS_BYTES, &text, &ignored);
  fs_close(fd);
  struct str rest = buf_view(&text), first = str_next_line(&rest), second = str_next_line(&rest);
  ok = ok && first.n > 0 && first.p[0] == '/' && first.n < SOCKET_PATH_BYTES && second.n > 0;
  if (ok) {
    print_into(path, SOCKET_PATH_BYTES, STR_FMT, STR_ARG(first));
    print_into(logs, PATHS_BYTES, STR_FMT, STR_ARG(second));
  }
  return ok;
}

bool socket_find(const char *option, char path[SOCKET_PATH_BYTES], struct err *err) {
  char noted[SOCKET_PATH_BYTES], logs[PATHS_BYTES];
  struct stat st;
  if (!socket_path(option, path, err))
    return false;
  bool chosen = (option != NULL && option[0] != '\0') || getenv("XDG_RUNTIME_DIR") != NULL;
  if (!chosen && lstat(path, &st) != 0 && socket_noted(noted, logs))
    print_into(path, SOCKET_PATH_BYTES, "%s", noted);
  return true;
}

static void socket_folder_of(const char *socket, char dir[SOCKET_PATH_BYTES]) {
  print_into(dir, SOCKET_PATH_BYTES, "%s", socket);
  char *slash = strrchr(dir, '/');
  slash[slash == dir ? 1 : 0] = '\0';
}

/* The folder must be ours and closed to others, who could otherwise put their own socket there. */
static bool check_folder(const char *dir, struct err *err) {
  struct stat st;
  if (lstat(dir, &st) != 0)
    return err_set_errno(err, errno, "cannot use the folder %s", dir);
  if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
    return err_set(err, ERR_INVALID,
                   "%s, where the control socket goes, is not your own folder: give another place "
                   "with --socket",
                   dir);
  if ((st.st_mode & 077) != 0)
    return err_set(err, ERR_INVALID,
                   "other users can enter %s, where the control socket goes: run chmod 700 %s, or "
                   "give another place with --socket",
                   dir, dir);
  return true;
}

static bool own_folder(const char *socket, struct err *err) {
  char dir[SOCKET_PATH_BYTES];
  socket_folder_of(socket, dir);
  if (mkdir(dir, 0700) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make the folder %s of the control socket", dir);
  return check_folder(dir, err);
}

static struct sockaddr_un address_of(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, path, strlen(path));
  return address;
}

static bool is_answered(const char *path) {
  struct sockaddr_un address = address_of(path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return true; /* unknown: nothing is removed */
  bool answered = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
                  errno == EAGAIN; /* its queue is full */
  close(fd);
  return answered;
}

static bool in_use(struct err *err, const char *path) {
  return err_set(err, ERR_LOCKED,
                 "a daemon is already running: it answers on %s; give another --socket and --logs, "
                 "or stop it first",
                 path);
}

static bool take_lock(struct control_socket *s, struct err *err) {
  char path[SOCKET_PATH_BYTES + 8];
  print_into(path, sizeof path, "%s.lock", s->path);
  s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (s->lock_fd < 0)
    return err_set_errno(err, errno, "cannot make %s", path);
  if (fs_lock(s->lock_fd))
    return true;
  if (fs_lock_is_taken(errno))
    return in_use(err, s->path);
  return err_set_errno(err, errno, "cannot lock %s", path);
}

static bool clear_stale(const char *path, struct err *err) {
  struct stat st;
  if (lstat(path, &st) != 0)
    return errno == ENOENT || err_set_errno(err, errno, "cannot use %s", path);
  if (!S_ISSOCK(st.st_mode))
    return err_set(err, ERR_INVALID, "%s exists and is not a socket: give another --socket", path);
  if (is_answered(path))
    return in_use(err, path);
  return unlink(path) == 0 || err_set_errno(err, errno, "cannot replace the old socket %s", path);
}

static bool bind_socket(struct control_socket *s, struct err *err) {
  struct sockaddr_un address = address_of(s->path);
  s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s->fd < 0)
    return err_set_errno(err, errno, "cannot make a socket");
  mode_t mask = umask(0177);
  bool bound = bind(s->fd, (const struct sockaddr *)&address, sizeof address) == 0;
  int number = errno;
  (void)umask(mask);
  if (!bound)
    return err_set_errno(err, number, "cannot make the control socket %s", s->path);
  if (listen(s->fd, LIMIT_API_BACKLOG_COUNT) != 0)
    return err_set_errno(err, errno, "cannot listen on %s", s->path);
  return true;
}

bool socket_listen(struct control_socket *s, const char *path, struct err *err) {
  *s = (struct control_socket){.fd = -1, .lock_fd = -1};
  print_into(s->path, sizeof s->path, "%s", path);
  bool ok = own_folder(path, err) && take_lock(s, err) && clear_stale(path, err);
  ok = ok && bind_socket(s, err);
  if (!ok) {
    s->path[0] = '\0'; /* not ours to remove */
    socket_close(s);
  }
  return ok;
}

int socket_accept(const struct control_socket *s) {
  int fd = peer_accept(s->fd);
  if (fd < 0)
    return -1;
  bool own = peer_is_own_user(fd), held;
  free(orphan_program(peer_process(fd), &held));
  if (own && !held)
    return fd;
  close(fd);
  errno = own ? EACCES : EPERM;
  return -1;
}

bool socket_may_ask(const char *path, struct err *err) {
  char dir[SOCKET_PATH_BYTES];
  socket_folder_of(path, dir);
  if (access(dir, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return true; /* nobody is there, as connecting will say */
  return check_folder(dir, err);
}

void socket_close(struct control_socket *s) {
  if (s->fd >= 0 && s->path[0])
    (void)unlink(s->path);
  if (s->fd >= 0)
    close(s->fd);
  if (s->lock_fd >= 0)
    close(s->lock_fd);
  s->fd = s->lock_fd = -1;
}
