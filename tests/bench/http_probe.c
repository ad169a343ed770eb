/* http_probe - bare libcurl that fetches a URL: its multi interface on libuv, and nothing kept; and
 * the server that it fetches from.
 *
 *   http_probe URL IN_FLIGHT TOTAL
 *       prints the processor time of one in microseconds
 *   http_probe serve FILE...
 *       http://127.0.0.1:PORT/N gives the file with that number, from 0; prints the port, and ends
 *       with its standard input */
#include "base/file.h"
#include "bench.h"
#include "daemon/mhd_load.h"
#include "http/curl_load.h"

#include <netinet/in.h>
#include <uv.h>

/* --- the server --- */

enum { FILES_MAX = 10 };
static struct MHD_Response *answers[FILES_MAX];

/* Each request, head and body, gets its answer; the connection stays. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *n, void **seen) {
  bool whole = *seen != NULL && *n == 0;
  (void)ctx;
  (void)method;
  (void)version;
  (void)body;
  *seen = connection;
  *n = 0;
  return whole ? microhttpd.queue_response(connection, 200, answers[url[1] - '0']) : MHD_YES;
}

static void serve(char **paths, int count) {
  const struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct err err;
  bench_must(count <= FILES_MAX, "so many files");
  bench_try(mhd_load(&err), &err);
  for (int i = 0; i < count; i++) {
    struct buf b = {0};
    bench_try(file_read(paths[i], SIZE_MAX / 2, &b, &err), &err);
    bool events = str_starts(buf_view(&b), "event:");
    answers[i] = microhttpd.create_response_from_buffer(b.n, b.p, MHD_RESPMEM_PERSISTENT);
    microhttpd.add_response_header(answers[i], "Content-Type",
                                   events ? "text/event-stream" : "application/json");
  }
  struct MHD_Daemon *daemon = microhttpd.start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, NULL, MHD_OPTION_SOCK_ADDR, &at,
      MHD_OPTION_CONNECTION_LIMIT, 4000u, MHD_OPTION_END);
  bench_must(daemon != NULL, "no port to listen on");
  printf("%d\n", microhttpd.get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
  fflush(stdout);
  (void)getchar();
}

/* --- the client --- */

static struct {
  uv_loop_t loop;
  uv_timer_t timer;
  const struct curl_api *curl;
  CURLM *multi;
  long left, open;
} bare;

struct bare_socket {
  uv_poll_t poll;
  curl_socket_t fd;
};

static void bare_drain(void) {
  CURLMsg *m;
  int left;
  while ((m = bare.curl->multi_info_read(bare.multi, &left)) != NULL) {
    CURL *easy = m->easy_handle;
    bench_must(m->data.result == CURLE_OK, "a bare request");
    bare.curl->multi_remove_handle(bare.multi, easy);
    if (bare.left > 0) {
      bare.left--;
      bare.curl->multi_add_handle(bare.multi, easy);
    } else {
      bare.open--;
      bare.curl->easy_cleanup(easy);
    }
  }
  if (bare.open == 0)
    uv_stop(&bare.loop);
}

static void bare_on_poll(uv_poll_t *poll, int status, int events) {
  const struct bare_socket *s = poll->data;
  int running, flags = status < 0 ? CURL_CSELECT_ERR : 0;
  flags |= (events & UV_READABLE ? CURL_CSELECT_IN : 0);
  flags |= (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
  bare.curl->multi_socket_action(bare.multi, s->fd, flags, &running);
  bare_drain();
}

static void bare_on_timer(uv_timer_t *timer) {
  int running;
  (void)timer;
  bare.curl->multi_socket_action(bare.multi, CURL_SOCKET_TIMEOUT, 0, &running);
  bare_drain();
}

static int bare_timer(CURLM *multi, long ms, void *ctx) {
  (void)multi;
  (void)ctx;
  if (ms < 0)
    uv_timer_stop(&bare.timer);
  else
    uv_timer_start(&bare.timer, bare_on_timer, (uint64_t)ms, 0);
  return 0;
}

static void bare_closed(uv_handle_t *handle) {
  free(handle->data);
}

static int bare_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned) {
  struct bare_socket *s = assigned;
  (void)easy;
  (void)ctx;
  if (what == CURL_POLL_REMOVE) {
    if (s) {
      uv_poll_stop(&s->poll);
      uv_close((uv_handle_t *)&s->poll, bare_closed);
      bare.curl->multi_assign(bare.multi, fd, NULL);
    }
    return 0;
  }
  if (s == NULL) {
    s = xcalloc(1, sizeof *s);
    s->fd = fd;
    s->poll.data = s;
    uv_poll_init_socket(&bare.loop, &s->poll, fd);
    bare.curl->multi_assign(bare.multi, fd, s);
  }
  uv_poll_start(&s->poll,
                (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0),
                bare_on_poll);
  return 0;
}

static size_t bare_body(char *p, size_t one, size_t n, void *ctx) {
  (void)p;
  (void)ctx;
  return one * n;
}

int main(int argc, char **argv) {
  struct err err;
  if (argc > 2 && strcmp(argv[1], "serve") == 0) {
    serve(argv + 2, argc - 2);
    return 0;
  }
  if (argc != 4)
    die("usage: http_probe URL IN_FLIGHT TOTAL, http_probe serve FILE...");
  bare.open = strtol(argv[2], NULL, 10);
  bare.left = strtol(argv[3], NULL, 10) - bare.open;
  bare.curl = curl_load(&err);
  bench_try(bare.curl != NULL, &err);
  bare.curl->global_init(CURL_GLOBAL_DEFAULT);
  uv_loop_init(&bare.loop);
  uv_timer_init(&bare.loop, &bare.timer);
  bare.multi = bare.curl->multi_init();
  bare.curl->multi_setopt(bare.multi, CURLMOPT_SOCKETFUNCTION, bare_socket);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_TIMERFUNCTION, bare_timer);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_MAXCONNECTS, bare.open + 16);
  double begin = bench_cpu_s();
  for (long i = 0; i < bare.open; i++) {
    CURL *easy = bare.curl->easy_init();
    bare.curl->easy_setopt(easy, CURLOPT_URL, argv[1]);
    bare.curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, bare_body);
    bare.curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bare.curl->easy_setopt(easy, CURLOPT_NOPROXY, "*");
    bare.curl->multi_add_handle(bare.multi, easy);
  }
  uv_run(&bare.loop, UV_RUN_DEFAULT);
  printf("%.3f\n", (bench_cpu_s() - begin) * 1e6 / strtod(argv[3], NULL));
  return 0;
}
