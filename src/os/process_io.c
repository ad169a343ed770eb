/* Reads from a process's pipes and from its shim, keeps what it reads, and turns it into events. */
#include "os/process_internal.h"

#include "base/log.h"
#include "os/clock.h"
#include "shim/protocol.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A pipe holds at most so many pieces, whatever its owner set. */
enum { DRAIN_PIECE_COUNT = 16 };

static void read_status(struct channel *c);

static void on_poll_closed(uv_handle_t *handle) {
  struct channel *c = handle->data;
  process_handle_closed(c->process);
}

void process_channel_close(struct channel *c) {
  if (c->fd < 0)
    return;
  uv_close((uv_handle_t *)&c->poll, on_poll_closed); /* stops watching at once ... */
  process_close_fd(&c->fd);                          /* ... so this is safe, and stdin needs it */
}

/* --- output --- */

/* Reads one piece. Returns false if nothing is there now, or it has ended (then the channel is
 * closed). */
static bool read_output(struct channel *c) {
  struct process *p = c->process;
  char *piece = p->table->piece;
  bool is_out = c == &p->channels[CHANNEL_OUT];
  ssize_t n = read(c->fd, piece, LIMIT_PIPE_PIECE_BYTES);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n <= 0) {
    process_channel_close(c);
    return false;
  }
  p->output_ms = clock_mono_ms();
  p->result.started = true; /* in case the shim dies before it can say so */
  if (!p->keep_nothing)
    head_tail_append(is_out ? &p->out : &p->err, (struct str){piece, (size_t)n});
  if (p->on_output != NULL)
    p->on_output(p->ctx, is_out ? 1 : 2, (struct str){piece, (size_t)n});
  return true;
}

void process_drain_output(struct process *p) {
  for (enum channel_id id = CHANNEL_OUT; id <= CHANNEL_ERR; id++)
    for (int i = 0; i < DRAIN_PIECE_COUNT && p->channels[id].fd >= 0; i++)
      if (!read_output(&p->channels[id]))
        break;
}

static void on_output_ready(uv_poll_t *poll, int status, int events) {
  struct channel *c = poll->data;
  (void)events;
  if (!read_output(c) && status < 0)
    process_channel_close(c);
  if (c->fd < 0)
    process_event(c->process, EVENT_OUTPUT_END);
}

/* --- input --- */

bool process_write_input(struct process *p, int fd, bool *gone) {
  bool queued = p->stdin_n == 0;
  const char *from = queued ? p->queue.p + p->queue_from : p->stdin_bytes;
  size_t left = queued ? p->queue.n - p->queue_from : p->stdin_n;
  if (left == 0)
    return true;
  ssize_t n = write(fd, from, left < LIMIT_PIPE_PIECE_BYTES ? left : LIMIT_PIPE_PIECE_BYTES);
  if (n < 0) {
    *gone = errno != EAGAIN && errno != EINTR;
    return false;
  }
  if (queued) {
    p->queue_from += (size_t)n;
    if (p->queue_from == p->queue.n) {
      buf_clear(&p->queue);
      p->queue_from = 0;
    }
  } else {
    p->stdin_bytes += n;
    p->stdin_n -= (size_t)n;
  }
  return p->stdin_n == 0 && p->queue.n == 0;
}

static void on_input_ready(uv_poll_t *poll, int status, int events) {
  struct channel *c = poll->data;
  struct process *p = c->process;
  bool gone = status < 0;
  (void)events;
  bool written = !gone && process_write_input(p, c->fd, &gone);
  if (gone || (written && !p->stdin_open))
    process_channel_close(c);
  else if (written)
    (void)uv_poll_stop(poll); /* until process_write has more */
}

bool process_write(struct process *p, struct str bytes) {
  struct channel *c = &p->channels[CHANNEL_IN];
  if (c->fd < 0 || !p->stdin_open || p->queue.n - p->queue_from + bytes.n > LIMIT_STDIN_QUEUE_BYTES)
    return false;
  if (p->queue_from > 0) {
    memmove(p->queue.p, p->queue.p + p->queue_from, p->queue.n - p->queue_from);
    p->queue.n -= p->queue_from;
    p->queue_from = 0;
  }
  buf_str(&p->queue, bytes);
  return uv_poll_start(&c->poll, UV_WRITABLE, on_input_ready) == 0;
}

void process_close_stdin(struct process *p) {
  struct channel *c = &p->channels[CHANNEL_IN];
  p->stdin_open = false;
  if (c->fd >= 0 && p->stdin_n == 0 && p->queue.n == 0)
    process_channel_close(c);
}

/* --- the shim --- */

/* Reaps the shim. Until this waitid its pid is ours and nobody else's. */
static void reap_shim(struct process *p, int options) {
  siginfo_t info = {0};
  if (p->shim == 0 ||
      (waitid(P_PID, (id_t)p->shim, &info, WEXITED | options) == 0 && info.si_pid == 0))
    return; /* not yet */
  process_channel_close(&p->channels[CHANNEL_EXIT]);
  p->shim = 0;
  if (p->channels[CHANNEL_STATUS].fd >= 0) /* its last words may still be in the pipe */
    read_status(&p->channels[CHANNEL_STATUS]);
  if (info.si_code != CLD_EXITED || info.si_status != 0)
    p->shim_done = false; /* whoever wrote it did not live to finish */
  process_event(p, EVENT_SHIM_GONE);
}

static void read_status(struct channel *c) {
  struct process *p = c->process;
  struct process_result *r = &p->result;
  struct shim_message messages[8];
  ssize_t n = read(c->fd, messages, sizeof messages);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0) {
    process_channel_close(c);
    if (p->channels[CHANNEL_EXIT].fd < 0) /* without a pidfd the pipe reports the shim's death */
      reap_shim(p, 0);                    /* which takes only microseconds now */
    return;
  }
  for (size_t i = 0; i < (size_t)n / sizeof messages[0]; i++) {
    int value = messages[i].value;
    switch (messages[i].type) {
    case SHIM_STARTED:
      r->started = true;
      process_event(p, EVENT_STARTED);
      break;
    case SHIM_EXEC_FAILED:
      r->exec_errno = value;
      process_event(p, EVENT_EXEC_FAILED);
      break;
    case SHIM_UNHELD:
      r->exec_errno = value;
      r->unheld = true;
      process_event(p, EVENT_EXEC_FAILED);
      break;
    case SHIM_FORK_FAILED:
      r->exec_errno = value;
      process_event(p, EVENT_FORK_FAILED);
      break;
    case SHIM_EXITED:
      r->exit_code = WIFEXITED(value) ? WEXITSTATUS(value) : -1;
      r->signal = WIFSIGNALED(value) ? WTERMSIG(value) : 0;
      process_event(p, EVENT_EXITED);
      break;
    case SHIM_DONE:
      p->shim_done = true;
      break;
    default: /* not sent by our shim */
      break;
    }
  }
}

static void on_status_ready(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  read_status(poll->data);
}

static void on_shim_exit(uv_poll_t *poll, int status, int events) {
  struct channel *c = poll->data;
  (void)status;
  (void)events;
  reap_shim(c->process, WNOHANG);
}

/* --- handles --- */

void process_channel_open(struct process *p, enum channel_id id, int fd) {
  static const struct {
    int events;
    uv_poll_cb callback;
  } watched[] = {
      [CHANNEL_IN] = {UV_WRITABLE, on_input_ready},
      [CHANNEL_OUT] = {UV_READABLE, on_output_ready},
      [CHANNEL_ERR] = {UV_READABLE, on_output_ready},
      [CHANNEL_STATUS] = {UV_READABLE, on_status_ready},
      [CHANNEL_EXIT] = {UV_READABLE, on_shim_exit},
  };
  struct channel *c = &p->channels[id];
  c->fd = fd;
  c->poll.data = c;
  int rc = uv_poll_init(p->table->loop, &c->poll, fd); /* makes fd non-blocking */
  if (rc == 0)
    rc = uv_poll_start(&c->poll, watched[id].events, watched[id].callback);
  if (rc != 0) /* no kernel memory is like no memory of our own */
    die("cannot watch a descriptor: %s", uv_strerror(rc));
  p->open_handles++;
}
