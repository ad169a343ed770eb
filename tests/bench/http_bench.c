/* Measures what a call of a model API costs beside the bare thing: the whole provider path (build,
 * send, stream, parse, turn back, validate) against libcurl's multi interface on libuv fetching the
 * same bytes from the same server on loopback. CPU of this process only. Each measurement runs in a
 * process of its own; the server is another one. Goals: a plain reply at most 2 times the bare
 * probe; a stream of 8 events at most 80 us; 10 MB at 25 MB/s or more and within 11 times the cost
 * of 1 MB. */
#include "base/limits.h"
#include "bench.h"
#include "http/curl_load.h"
#include "provider/api/api.h"

#include <signal.h>
#include <sys/prctl.h>

enum { ROUNDS = 3 };
enum { ANSWER_PLAIN, ANSWER_EVENTS, ANSWER_1MB, ANSWER_10MB, ANSWERS };

enum { REQUESTS = 20000 };

static struct str answers[ANSWERS];
static int port; /* of the server: the digit behind its first slash chooses the answer */

/* --- the server --- */

struct client {
  uv_tcp_t tcp;
  struct buf in;
};

static void on_memory(uv_handle_t *handle, size_t wanted, uv_buf_t *out) {
  static char bytes[65536];
  (void)handle;
  (void)wanted;
  *out = uv_buf_init(bytes, sizeof bytes);
}

static void on_gone(uv_handle_t *handle) {
  buf_deinit(&((struct client *)handle->data)->in);
  free(handle->data);
}

static void on_written(uv_write_t *write, int status) {
  (void)status;
  free(write);
}

/* Each request, head and body, gets its answer; the connection stays. */
static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes) {
  struct client *c = stream->data;
  if (n < 0) {
    uv_close((uv_handle_t *)stream, on_gone);
    return;
  }
  buf_append(&c->in, bytes->base, (size_t)n);
  const char *end = strstr(buf_c(&c->in), "\r\n\r\n");
  const char *length = strcasestr(buf_c(&c->in), "content-length:");
  size_t body = length && end && length < end ? strtoul(length + 15, NULL, 10) : 0;
  if (end == NULL || c->in.n < (size_t)(end - c->in.p) + 4 + body)
    return;
  const struct str answer = answers[strchr(c->in.p, '/')[1] - '0'];
  uv_buf_t out = uv_buf_init((char *)(uintptr_t)answer.p, (unsigned)answer.n);
  buf_clear(&c->in);
  uv_write(xcalloc(1, sizeof(uv_write_t)), stream, &out, 1, on_written);
}

static void on_client(uv_stream_t *listener, int status) {
  struct client *c = xcalloc(1, sizeof *c);
  (void)status;
  c->tcp.data = c;
  uv_tcp_init(listener->loop, &c->tcp);
  if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0)
    die("a connection was not accepted");
  uv_tcp_nodelay(&c->tcp, 1);
  uv_read_start((uv_stream_t *)&c->tcp, on_memory, on_bytes);
}

/* A child that ends with this process. */
static void serve(void) {
  int ends[2];
  if (pipe(ends) != 0)
    die("no pipe");
  if (fork() == 0) {
    struct sockaddr_in at;
    int n = sizeof at;
    uv_loop_t loop;
    uv_tcp_t listener;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uv_loop_init(&loop);
    uv_tcp_init(&loop, &listener);
    uv_ip4_addr("127.0.0.1", 0, &at);
    uv_tcp_bind(&listener, (const struct sockaddr *)&at, 0);
    if (uv_listen((uv_stream_t *)&listener, 4096, on_client) != 0 ||
        uv_tcp_getsockname(&listener, (struct sockaddr *)&at, &n) != 0)
      die("no port to listen on");
    port = ntohs(at.sin_port);
    if (write(ends[1], &port, sizeof port) == (ssize_t)sizeof port)
      uv_run(&loop, UV_RUN_DEFAULT);
    _exit(1);
  }
  if (read(ends[0], &port, sizeof port) != (ssize_t)sizeof port)
    die("the server did not start");
}

/* --- the bytes --- */

/* A head such as web servers put before a file. */
static struct str with_head(struct buf *body, const char *type) {
  struct buf all = {0};
  buf_printf(&all,
             "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n"
             "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: keep-alive\r\n\r\n",
             type, body->n);
  buf_str(&all, buf_view(body));
  buf_deinit(body);
  size_t n = all.n;
  return (struct str){buf_take(&all), n};
}

static const char *const value[] = {"{\\\"reason\\\": ", "\\\"The tests pass ", "and the queue is ",
                                    "bounded.\\\", ", "\\\"step\\\": 2}"};

static void delta(struct buf *b, const char *text) {
  buf_printf(b,
             "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
             "\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}\n\n",
             text);
}

static void stream_head(struct buf *b) {
  buf_puts(b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\","
              "\"usage\":{\"input_tokens\":11,\"output_tokens\":1}}}\n\n");
}

static void stream_tail(struct buf *b) {
  buf_puts(b, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
              "\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\nevent: message_stop\ndata: "
              "{\"type\":\"message_stop\"}\n\n");
}

static void make_answers(void) {
  struct buf b = {0};
  buf_puts(&b, "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"
               "\"text\",\"text\":\"");
  for (size_t i = 0; i < ARRAY_LEN(value); i++)
    buf_puts(&b, value[i]);
  buf_puts(&b, "\"}],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":11,"
               "\"output_tokens\":7}}");
  answers[ANSWER_PLAIN] = with_head(&b, "application/json");
  stream_head(&b);
  for (size_t i = 0; i < ARRAY_LEN(value); i++)
    delta(&b, value[i]);
  stream_tail(&b);
  answers[ANSWER_EVENTS] = with_head(&b, "text/event-stream");
  for (int i = ANSWER_1MB; i <= ANSWER_10MB; i++) {
    size_t size = i == ANSWER_1MB ? 1000000 : 10000000;
    stream_head(&b);
    while (b.n < size)
      delta(&b, "twelve chars twelve chars twelve chars twelve chars");
    stream_tail(&b);
    answers[i] = with_head(&b, "text/event-stream");
  }
}

/* A measurement, in a process of its own. */
struct task {
  int answer;
  long in_flight, total;
  bool large; /* no value is asked for */
};

/* --- the bare probe --- */

struct bare {
  uv_loop_t loop;
  uv_timer_t timer;
  const struct curl_api *curl;
  CURLM *multi;
  long left, open, bad;
};

struct bare_socket {
  uv_poll_t poll;
  curl_socket_t fd;
};

static void bare_drain(struct bare *b) {
  CURLMsg *m;
  int left;
  while ((m = b->curl->multi_info_read(b->multi, &left)) != NULL) {
    CURL *easy = m->easy_handle;
    b->bad += m->data.result != CURLE_OK;
    b->curl->multi_remove_handle(b->multi, easy);
    if (b->left > 0) {
      b->left--;
      b->curl->multi_add_handle(b->multi, easy);
    } else {
      b->open--;
      b->curl->easy_cleanup(easy);
    }
  }
  if (b->open == 0)
    uv_stop(&b->loop);
}

static struct bare bare;

static void bare_on_poll(uv_poll_t *poll, int status, int events) {
  const struct bare_socket *s = poll->data;
  int running, flags = status < 0 ? CURL_CSELECT_ERR : 0;
  flags |= (events & UV_READABLE ? CURL_CSELECT_IN : 0);
  flags |= (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
  bare.curl->multi_socket_action(bare.multi, s->fd, flags, &running);
  bare_drain(&bare);
}

static void bare_on_timer(uv_timer_t *timer) {
  int running;
  (void)timer;
  bare.curl->multi_socket_action(bare.multi, CURL_SOCKET_TIMEOUT, 0, &running);
  bare_drain(&bare);
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

/* CPU of one request, in us. */
static double run_bare(const void *ctx) {
  const struct task *t = ctx;
  long in_flight = t->in_flight, total = t->total;
  char url[64];
  struct err err;
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", port, t->answer);
  bare.curl = curl_load(&err);
  bare.curl->global_init(CURL_GLOBAL_DEFAULT);
  uv_loop_init(&bare.loop);
  uv_timer_init(&bare.loop, &bare.timer);
  bare.multi = bare.curl->multi_init();
  bare.curl->multi_setopt(bare.multi, CURLMOPT_SOCKETFUNCTION, bare_socket);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_TIMERFUNCTION, bare_timer);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_MAXCONNECTS, in_flight + 16);
  bare.left = total;
  double begin = bench_cpu_s(RUSAGE_SELF);
  for (long i = 0; i < in_flight; i++) {
    CURL *easy = bare.curl->easy_init();
    bare.curl->easy_setopt(easy, CURLOPT_URL, url);
    bare.curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, bare_body);
    bare.curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bare.curl->easy_setopt(easy, CURLOPT_NOPROXY, "*");
    bare.left--;
    bare.open++;
    bare.curl->multi_add_handle(bare.multi, easy);
  }
  uv_run(&bare.loop, UV_RUN_DEFAULT);
  if (bare.bad > 0)
    die("%ld bare requests failed", bare.bad);
  return (bench_cpu_s(RUSAGE_SELF) - begin) * 1e6 / (double)total;
}

/* --- the provider path --- */

struct load {
  uv_loop_t loop;
  struct provider_env env;
  struct provider_registry *registry;
  const struct provider *provider;
  json_t *settings, *schema;
  struct buf prompt;
  long left;
};

struct one {
  struct load *load;
  struct call_request request;
};

static void start_one(struct load *l);

static void on_news(void *ctx, const struct provider_news *news) {
  (void)ctx;
  (void)news;
}

static void on_done(void *ctx, struct call_result *r) {
  struct one *one = ctx;
  struct load *l = one->load;
  bool wrong = l->schema && json_integer_value(json_object_get(r->structured, "step")) != 2;
  if (wrong || r->class != CLASS_NONE)
    die("a call failed: %s %s", error_class_name(r->class), r->message);
  call_result_deinit(r);
  free(one);
  start_one(l);
}

static void start_one(struct load *l) {
  if (l->left == 0)
    return;
  l->left--;
  struct one *one = xcalloc(1, sizeof *one);
  one->load = l;
  one->request = (struct call_request){.session = "bench",
                                       .turn = 1,
                                       .call = 1,
                                       .attempt = 1,
                                       .purpose = PURPOSE_JUDGE,
                                       .stage = STAGE_COUNT,
                                       .provider = STR("bench"),
                                       .model = STR("m"),
                                       .prompt = buf_view(&l->prompt),
                                       .schema = l->schema,
                                       .timeout_ms = 600000};
  const struct provider_sink sink = {on_news, on_done, one};
  (void)l->provider->ops->start(l->provider, &l->env, &one->request, &sink);
}

static void load_init(struct load *l, int answer, bool structured) {
  char url[64];
  struct err err = {0};
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", port, answer);
  *l = (struct load){0};
  uv_loop_init(&l->loop);
  l->settings = json_pack("{s{ss ss si}}", "bench", "type", "anthropic", "base_url", url,
                          "concurrency", 1000);
  l->registry = registry_new(l->settings);
  if (!api_register(l->registry, l->settings, &err))
    die("%s", err.text);
  l->provider = registry_find(l->registry, STR("bench"));
  l->env.loop = &l->loop;
  l->env.api = api_new(&l->loop, NULL);
  if (structured)
    l->schema = json_loads(
        "{\"type\":\"object\",\"properties\":{\"reason\":{\"type\":\"string\"},\"step\":{\"type\":"
        "\"integer\",\"enum\":[0,1,2]}},\"required\":[\"reason\",\"step\"],"
        "\"additionalProperties\":false}",
        0, NULL);
  while (l->prompt.n < 1000) /* a judge's question about a short report */
    buf_puts(&l->prompt, "Which condition does the report fulfil? \"Judge\" only by evidence.\n");
}

static void load_run(struct load *l, long in_flight, long total) {
  l->left = total;
  for (long i = 0; i < in_flight; i++)
    start_one(l);
  uv_run(&l->loop, UV_RUN_DEFAULT);
}

static void load_deinit(struct load *l) {
  api_free(l->env.api);
  uv_run(&l->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&l->loop) != 0)
    die("the loop does not close clean");
  registry_free(l->registry);
  json_decref(l->settings);
  json_decref(l->schema);
  buf_deinit(&l->prompt);
}

static double run_provider(const void *ctx) {
  const struct task *t = ctx;
  struct load l;
  load_init(&l, t->answer, !t->large);
  double begin = bench_cpu_s(RUSAGE_SELF);
  load_run(&l, t->in_flight, t->total);
  double us = (bench_cpu_s(RUSAGE_SELF) - begin) * 1e6 / (double)t->total;
  load_deinit(&l);
  return us;
}

static double least(double (*run)(const void *), const struct task *task) {
  double best = 1e9;
  for (int round = 0; round < ROUNDS; round++) { /* the quietest: others work here too */
    double us = bench_apart(run, task);
    best = us < best ? us : best;
  }
  return best;
}

int main(void) {
  static const long flights[] = {1, 64, 1000};
  const struct rlimit limit = {4096, 4096};
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  make_answers();
  serve();
  printf("in flight   bare us   plain us   ratio   8 events us\n");
  for (size_t i = 0; i < ARRAY_LEN(flights); i++) {
    const struct task plain = {ANSWER_PLAIN, flights[i], REQUESTS, false},
                      events = {ANSWER_EVENTS, flights[i], REQUESTS, false};
    double bare_us = least(run_bare, &plain), plain_us = least(run_provider, &plain);
    printf("%9ld   %7.1f   %8.1f   %5.2f   %11.1f\n", flights[i], bare_us, plain_us,
           plain_us / bare_us, least(run_provider, &events));
  }
  const struct task one_mb = {ANSWER_1MB, 1, 50, true}, ten_mb = {ANSWER_10MB, 1, 5, true};
  double one = bench_apart(run_provider, &one_mb), ten = bench_apart(run_provider, &ten_mb);
  printf("10 MB of events: %.0f MB/s of CPU, %.1f times the cost of 1 MB\n", 1e7 / ten, ten / one);
  return 0;
}
