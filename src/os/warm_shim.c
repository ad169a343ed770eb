/* Starts shims ahead of calls, tells them their programs, and ends those that nobody needed. */
#include "os/warm_shim.h"

#include "base/log.h"
#include "os/fs.h"
#include "os/lease.h"
#include "os/loop.h"
#include "os/process_internal.h"
#include "os/sandbox_rules.h"
#include "os/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- its start, in a thread --- */

/* Held from the spawn of a shim until it is known whose it is. */
static pthread_mutex_t spawning = PTHREAD_MUTEX_INITIALIZER;

void warm_shim_hold_spawns(void) {
  (void)pthread_mutex_lock(&spawning);
}

void warm_shim_release_spawns(void) {
  (void)pthread_mutex_unlock(&spawning);
}

/* Makes what segue and the shim have an end of each: the control socket and the status pipe. */
static bool warm_shim_connect(struct warm_shim *s, int fds[SHIM_FD_COUNT]) {
  int control[2], status[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0)
    return false;
  s->control = control[0];
  fds[SHIM_FD_CONTROL] = fs_above_shim(control[1]);
  if (fds[SHIM_FD_CONTROL] < 0 || pipe2(status, O_CLOEXEC) != 0)
    return false;
  s->status = status[0];
  fds[SHIM_FD_STATUS] = fs_above_shim(status[1]);
  return fds[SHIM_FD_STATUS] >= 0;
}

static bool warm_shim_spawn(struct warm_shim *s, int fds[SHIM_FD_COUNT]) {
  char words[16];
  unsigned held = s->held | SHIM_WAITS;
  const char *const argv[] = {SHIM_PROTOCOL, words, s->folder, NULL};
  const char *const envp[] = {NULL};
  if (s->group != NULL) {
    held |= SHIM_IN_GROUP;
    fds[SHIM_FD_GROUP] = group_fd(s->group);
  }
  fds[SHIM_FD_READS] = s->reads;
  fds[SHIM_FD_WRITES] = s->writes;
  fds[SHIM_FD_LEASE] = lease_fd();
  held |= fds[SHIM_FD_LEASE] >= 0 ? SHIM_LEASED : 0;
  print_into(words, sizeof words, "%u", held);
  warm_shim_hold_spawns();
  if (process_spawn(s->shim_path, fds, -1, argv, envp, &s->shim) == 0)
    s->pidfd = pidfd_open(s->shim, 0);
  warm_shim_release_spawns();
  return s->pidfd >= 0;
}

static void warm_shim_work(uv_work_t *work) {
  struct warm_shim *s = work->data;
  struct err ignored;
  int fds[SHIM_FD_COUNT];
  char *folder = tmpdir_make_named(s->folder, &ignored);
  free(s->folder);
  s->folder = folder;
  if (folder == NULL)
    return;
  for (int fd = 0; fd < SHIM_FD_COUNT; fd++)
    fds[fd] = -1;
  s->writes = sandbox_rules_complete(s->writes, folder, sandbox_version());
  s->group = group_new(s->session);
  bool ok = s->writes >= 0 && s->reads >= 0 && warm_shim_connect(s, fds) && warm_shim_spawn(s, fds);
  process_close_fd(&fds[SHIM_FD_CONTROL]);
  process_close_fd(&fds[SHIM_FD_STATUS]);
  if (!ok && s->shim == 0)
    (void)rmdir(folder); /* otherwise the shim does so */
}

static void warm_shim_after(uv_work_t *work, int status) {
  struct warm_shim *s = work->data;
  bool wanted = s->state == WARM_SHIM_MAKING;
  (void)status;
  process_close_fd(&s->reads);
  process_close_fd(&s->writes);
  s->state = WARM_SHIM_READY;
  if (!wanted)
    warm_shim_free(s);
}

struct warm_shim *warm_shim_new(struct process_table *t, const char *session, unsigned held,
                                int reads, int owned_writes, const char *name) {
  struct warm_shim *s = xcalloc(1, sizeof *s);
  s->table = t;
  s->held = held;
  s->reads = fcntl(reads, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  s->writes = owned_writes;
  s->session = xstrdup(session);
  s->folder = xstrdup(name);
  s->shim_path = xstrdup(t->shim_path);
  s->control = s->status = s->pidfd = -1;
  s->work.data = s;
  list_push_front(&t->standbys, &s->in_table);
  loop_work(t->loop, &s->work, warm_shim_work, warm_shim_after);
  return s;
}

/* --- its use --- */

bool warm_shim_is_ready(const struct warm_shim *s) {
  struct pollfd exited = {.fd = s->pidfd, .events = POLLIN};
  return s->state == WARM_SHIM_READY && s->pidfd >= 0 && poll(&exited, 1, 0) == 0;
}

bool warm_shim_take(struct warm_shim *s, const char *own) {
  return rename(s->folder, own) == 0;
}

enum { WORD_BYTES = 128 * 1024 }; /* the kernel's limit for one (MAX_ARG_STRLEN, linux/binfmts.h) */

/* Appends the words. False: one is too long for any program. */
static bool warm_shim_put_words(struct buf *out, const char *const *words, uint32_t *count) {
  bool ok = true;
  for (*count = 0; words[*count] != NULL; ++*count) {
    size_t n = strlen(words[*count]) + 1;
    buf_append(out, words[*count], n);
    ok = ok && n <= WORD_BYTES;
  }
  return ok;
}

/* Writes the words of argv and of the environment into a file without a name; -1: errno. */
static int warm_shim_words(const struct process_spec *spec, struct shim_program *told) {
  struct buf words = {0};
  bool fit = warm_shim_put_words(&words, spec->argv, &told->argc);
  fit = warm_shim_put_words(&words, spec->envp, &told->envc) && fit;
  size_t pointers = ((size_t)told->argc + told->envc) * sizeof(char *);
  fit = fit && words.n + pointers <= (size_t)sysconf(_SC_ARG_MAX);
  int fd = fit ? memfd_create("words", MFD_CLOEXEC) : -1;
  if (!fit)
    errno = E2BIG;
  if (fd >= 0 && write(fd, words.p, words.n) != (ssize_t)words.n)
    process_close_fd(&fd);
  buf_deinit(&words);
  return fd;
}

/* Sends the message. Returns an errno, but not if the shim has ended: its pidfd tells that. */
static int warm_shim_send(const struct warm_shim *s, struct shim_program *told,
                          const int fds[SHIM_PROGRAM_FDS]) {
  _Alignas(struct cmsghdr) char room[CMSG_SPACE(SHIM_PROGRAM_FDS * sizeof(int))] = {0};
  struct iovec bytes = {told, sizeof *told};
  struct msghdr message = {
      .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(SHIM_PROGRAM_FDS * sizeof(int));
  memcpy(CMSG_DATA(rights), fds, SHIM_PROGRAM_FDS * sizeof(int));
  if (sendmsg(s->control, &message, MSG_NOSIGNAL) >= 0 || errno == EPIPE || errno == ECONNRESET)
    return 0;
  return errno;
}

int warm_shim_tell(struct warm_shim *s, const struct process_spec *spec, int cwd, const int fds[3],
                   const char *limits) {
  struct shim_program told = {0};
  int given[SHIM_PROGRAM_FDS] = {fds[0], fds[1], fds[2], cwd, -1};
  int nothing = -1, here = -1, number = 0;
  if (fds[0] < 0)
    given[0] = nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (cwd < 0)
    given[SHIM_PROGRAM_CWD] = here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  bool enters = faccessat(given[SHIM_PROGRAM_CWD], ".", X_OK, AT_EACCESS) == 0;
  given[SHIM_PROGRAM_WORDS] = enters ? warm_shim_words(spec, &told) : -1;
  print_into(told.limits, sizeof told.limits, "%s", limits);
  told.term = lease_term();
  number = given[0] < 0 || given[SHIM_PROGRAM_WORDS] < 0 ? errno : warm_shim_send(s, &told, given);
  (void)kill(s->shim, SIGCONT); /* whoever stopped it did so before anybody watched */
  process_close_fd(&nothing);
  process_close_fd(&here);
  process_close_fd(&given[SHIM_PROGRAM_WORDS]);
  return number;
}

void warm_shim_hand_over(struct warm_shim *s) {
  if (s->table != NULL)
    list_remove(&s->table->standbys, &s->in_table);
  free(s->session);
  free(s->folder);
  free(s->shim_path);
  free(s);
}

/* --- its end --- */

/* Frees it if its shim has exited. What the shim left, if it was killed, is swept up. */
static void warm_shim_reap_one(struct warm_shim *s, int how) {
  int status = 0;
  if (s->shim > 0 && waitpid(s->shim, &status, how) == 0)
    return;
  if (status != 0 && s->table != NULL)
    process_sweep(s->table);
  if (s->shim > 0)
    (void)rmdir(s->folder); /* if the shim could not */
  process_close_fd(&s->pidfd);
  group_free(s->group);
  warm_shim_hand_over(s);
}

/* Waits for its shim, which needs a moment. */
static void warm_shim_end_now(struct warm_shim *s) {
  struct pollfd exited = {.fd = s->pidfd, .events = POLLIN};
  int rc = 0;
  do
    rc = poll(&exited, 1, s->pidfd >= 0 ? LIMIT_STANDBY_END_MS : 0);
  while (rc < 0 && errno == EINTR);
  if (s->shim > 0 && rc != 1)
    (void)kill(s->shim, SIGKILL);
  warm_shim_reap_one(s, 0);
}

void warm_shim_free(struct warm_shim *s) {
  if (s == NULL)
    return;
  if (s->state == WARM_SHIM_MAKING) {
    s->state = WARM_SHIM_UNWANTED;
    return;
  }
  s->state = WARM_SHIM_ENDING;
  process_close_fd(&s->control);
  process_close_fd(&s->status);
  if (s->shim > 0)
    (void)kill(s->shim, SIGCONT); /* a stopped one could not end */
  if (s->table == NULL)
    warm_shim_end_now(s);
  else
    warm_shim_reap_one(s, WNOHANG);
}

void warm_shim_reap(struct process_table *t) {
  LIST_EACH(struct warm_shim, s, in_table, &t->standbys)
    if (s->state == WARM_SHIM_ENDING)
      warm_shim_reap_one(s, WNOHANG);
}

void warm_shim_end_all(struct process_table *t) {
  LIST_EACH(struct warm_shim, s, in_table, &t->standbys) {
    if (s->state == WARM_SHIM_ENDING) {
      warm_shim_end_now(s);
    } else { /* it ends once it is made */
      list_remove(&t->standbys, &s->in_table);
      s->table = NULL;
    }
  }
}
