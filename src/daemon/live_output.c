/* Receives what the agents of a daemon's session say. */
#include "daemon/live_output.h"

#include "base/limits.h"
#include "daemon/socket.h"
#include "os/clock.h"
#include "os/peer.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LIVE_OUTPUT_AGAIN_MS = 1000, LIVE_OUTPUT_HEAD_BYTES = 8192, LIVE_OUTPUT_READ_BYTES = 16384 };

static bool live_output_on_event(void *ctx, struct str type, struct str data) {
  const struct listening *l = ctx;
  if (!str_eq_c(type, "delta"))
    return true;
  json_auto_t *piece = json_loadb(data.p, data.n, JSON_ALLOW_NUL, NULL);
  const json_t *text = json_object_get(piece, "text");
  const char *kind = json_string_value(json_object_get(piece, "kind"));
  if (json_is_string(text) && kind != NULL)
    l->on_words(l->ctx, (long)json_integer_value(json_object_get(piece, "turn")),
                (long)json_integer_value(json_object_get(piece, "call")),
                strcmp(kind, "thinking") == 0,
                (struct str){json_string_value(text), json_string_length(text)});
  return true;
}

void live_output_deinit(struct listening *l) {
  if (l->fd >= 0)
    close(l->fd);
  l->fd = -1;
  buf_deinit(&l->head);
  sse_deinit(&l->sse);
  l->in_body = false;
  l->again_ms = clock_mono_ms() + LIVE_OUTPUT_AGAIN_MS;
}

/* HTTP/1.0 sends the body as it is, without chunks, and ends it with the connection. */
static bool live_output_ask(const struct listening *l, uint64_t seen_seq) {
  char ask[256];
  int n = snprintf(ask, sizeof ask,
                   "GET /v1/sessions/%.40s/events HTTP/1.0\r\nHost: segue\r\n"
                   "Last-Event-ID: %llu\r\n\r\n",
                   l->session, (unsigned long long)seen_seq);
  return send(l->fd, ask, (size_t)n, MSG_NOSIGNAL) == n;
}

/* If nobody answers there, or somebody else does, the session is followed by its log alone. */
static void live_output_open(struct listening *l, uint64_t seen_seq) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  struct timeval wait = {.tv_sec = 1};
  struct err ignored;
  if (clock_mono_ms() < l->again_ms)
    return;
  bool ok = socket_find(l->socket, to.sun_path, &ignored) && socket_may_ask(to.sun_path, &ignored);
  l->fd = ok ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  if (l->fd >= 0)
    (void)setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  ok = l->fd >= 0 && connect(l->fd, (struct sockaddr *)&to, sizeof to) == 0 &&
       peer_is_own_user(l->fd) && live_output_ask(l, seen_seq);
  if (!ok)
    live_output_deinit(l);
  else
    sse_init(&l->sse, LIMIT_LOG_LINE_BYTES, live_output_on_event, l);
}

/* Returns false if the answer is not one to listen to. */
static bool live_output_take(struct listening *l, struct str bytes) {
  if (l->in_body)
    return sse_feed(&l->sse, bytes);
  buf_str(&l->head, bytes);
  const char *end = memmem(buf_c(&l->head), l->head.n, LIT("\r\n\r\n"));
  if (end == NULL)
    return l->head.n < LIVE_OUTPUT_HEAD_BYTES;
  const char *space = memchr(l->head.p, ' ', l->head.n);
  if (space == NULL || strncmp(space, LIT(" 200")) != 0)
    return false;
  l->in_body = true;
  size_t at = (size_t)(end - l->head.p) + 4;
  bool more = sse_feed(&l->sse, (struct str){l->head.p + at, l->head.n - at});
  buf_deinit(&l->head);
  return more;
}

void live_output_hear(struct listening *l, uint64_t seen_seq) {
  char bytes[LIVE_OUTPUT_READ_BYTES];
  if (l->fd < 0)
    live_output_open(l, seen_seq);
  while (l->fd >= 0) {
    ssize_t n = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return;
    if (n <= 0 || !live_output_take(l, (struct str){bytes, (size_t)n}))
      live_output_deinit(l);
  }
}

void live_output_init(struct listening *l, const char *socket, const char *session,
                      live_output_fn on_words, void *ctx) {
  *l = (struct listening){
      .socket = socket, .session = session, .on_words = on_words, .ctx = ctx, .fd = -1};
}
