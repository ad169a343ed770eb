/* Reads what a person types. */
#include "host/stdin_reader.h"

#include <errno.h>
#include <termios.h>
#include <unistd.h>

static void stdin_reader_on_ready(uv_poll_t *poll, int status, int events) {
  const struct stdin_reader *in = poll->data;
  char bytes[4096];
  (void)events;
  ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  in->typed(in->ctx, bytes, n > 0 ? (size_t)n : 0);
}

bool stdin_reader_init(struct stdin_reader *in, struct single_session *solo,
                       void (*typed)(void *ctx, const char *bytes, size_t n), void *ctx) {
  *in = (struct stdin_reader){.typed = typed, .ctx = ctx};
  in->is_open = uv_poll_init(&solo->loop, &in->poll, STDIN_FILENO) == 0;
  in->poll.data = in;
  return in->is_open;
}

void stdin_reader_listen(struct stdin_reader *in) {
  if (in->is_open)
    uv_poll_start(&in->poll, UV_READABLE, stdin_reader_on_ready);
}

void stdin_reader_forget(void) {
  (void)tcflush(STDIN_FILENO, TCIFLUSH); /* this fails where there is no terminal */
}

void stdin_reader_pause(struct stdin_reader *in) {
  if (in->is_open)
    uv_poll_stop(&in->poll);
}

void stdin_reader_close(struct stdin_reader *in) {
  if (in->is_open)
    uv_close((uv_handle_t *)&in->poll, NULL);
  in->is_open = false;
}
