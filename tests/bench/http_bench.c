/* Measures what a call of a model API costs beside the bare thing: the whole provider path (build,
 * send, stream, parse, turn back, validate) against libcurl's multi interface on libuv fetching the
 * same bytes from the same server on loopback. CPU of this process only. Each measurement runs in a
 * process of its own; the server is another one. Goals: a plain reply at most 2 times the bare
 * probe; a stream of 8 events at most 80 us; 10 MB at 25 MB/s or more and within 11 times the cost
 * of 1 MB. */
#include "base/limits.h"
#include "bench.h"
#include "daemon/mhd_load.h"
#include "http/curl_load.h"
#include "provider/api/api.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { ROUNDS = 3, REQUESTS = 20000 };
enum { ANSWER_PLAIN, ANSWER_EVENTS, ANSWER_1MB, ANSWER_10MB, ANSWERS };

static struct MHD_Response *answers[ANSWERS];
static int port; /* of the server: the digit behind its first slash chooses the answer */

/* --- the bytes --- */

static void answer_with(int i, struct buf *body, const char *type) {
  answers[i] = microhttpd.create_response_from_buffer(body->n, body->p, MHD_RESPMEM_MUST_FREE);
  microhttpd.add_response_header(answers[i], "Content-Type", type);
  *body = (struct buf){0}; /* the answer's now */
}

static const char *const value[] = {"{\\\"reason\\\": ", "\\\"The tests pass ", "and the queue is ",
                                    "bounded.\\\", ", "\\\"step\\\": 2}"};
static const char *const filler[] = {"twelve chars twelve chars twelve chars twelve chars"};

/* A stream of these pieces, again and again until it has so many bytes. */
static void answer_with_stream(int answer, const char *const *pieces, size_t count, size_t bytes) {
  struct buf b = {0};
  buf_puts(&b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\","
               "\"usage\":{\"input_tokens\":11,\"output_tokens\":1}}}\n\n");
  for (size_t i = 0; i < count || b.n < bytes; i++)
    buf_printf(&b,
               "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
               "\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}\n\n",
               pieces[i % count]);
  buf_puts(&b, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
               "\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\nevent: message_stop\ndata: "
               "{\"type\":\"message_stop\"}\n\n");
  answer_with(answer, &b, "text/event-stream");
}

static void make_answers(void) {
  struct buf b = {0};
  buf_puts(&b, "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"
               "\"text\",\"text\":\"");
  for (size_t i = 0; i < ARRAY_LEN(value); i++)
    buf_puts(&b, value[i]);
  buf_puts(&b, "\"}],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":11,"
               "\"output_tokens\":7}}");
  answer_with(ANSWER_PLAIN, &b, "application/json");
  answer_with_stream(ANSWER_EVENTS, value, ARRAY_LEN(value), 0);
  answer_with_stream(ANSWER_1MB, filler, 1, 1000000);
  answer_with_stream(ANSWER_10MB, filler, 1, 10000000);
}

/* --- the server --- */

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

/* A child that ends with this process. */
static void serve(void) {
  const struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct err err;
  int ends[2];
  bench_must(pipe(ends) == 0, "pipe");
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_try(mhd_load(&err), &err);
    make_answers();
    struct MHD_Daemon *daemon = microhttpd.start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, NULL, MHD_OPTION_SOCK_ADDR, &at,
        MHD_OPTION_CONNECTION_LIMIT, 4000u, MHD_OPTION_END);
    bench_must(daemon != NULL, "no port to listen on");
    port = microhttpd.get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    if (write(ends[1], &port, sizeof port) == (ssize_t)sizeof port)
      (void)pause();
    _exit(1);
  }
  bench_must(read(ends[0], &port, sizeof port) == (ssize_t)sizeof port, "the server");
}

/* A measurement, in a process of its own. */
struct task {
  int answer;
  long in_flight, total;
  bool large; /* no value is asked for */
};

/* --- the bare probe --- */

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

/* CPU of one request, in us. */
static double run_bare(const struct task *t) {
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
  bare.curl->multi_setopt(bare.multi, CURLMOPT_MAXCONNECTS, t->in_flight + 16);
  bare.left = t->total;
  double begin = bench_cpu_s();
  for (long i = 0; i < t->in_flight; i++) {
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
  return (bench_cpu_s() - begin) * 1e6 / (double)t->total;
}

/* --- the provider path --- */

static struct load {
  uv_loop_t loop;
  struct provider_env env;
  const struct provider *provider;
  json_t *schema; /* of the value that is asked for, if any */
  struct buf prompt;
  long left;
} load;

static void start_one(void);

static void on_done(void *request, struct call_result *r) {
  if (r->class != CLASS_NONE)
    die("a call failed: %s %s", error_class_name(r->class), r->message);
  if (load.schema && json_integer_value(json_object_get(r->structured, "step")) != 2)
    die("a call gave another value");
  call_result_deinit(r);
  free(request);
  start_one();
}

static void start_one(void) {
  if (load.left == 0)
    return;
  load.left--;
  struct call_request *request = xcalloc(1, sizeof *request);
  *request = (struct call_request){.session = "bench",
                                   .turn = 1,
                                   .call = 1,
                                   .attempt = 1,
                                   .purpose = PURPOSE_JUDGE,
                                   .stage = STAGE_COUNT,
                                   .provider = STR("bench"),
                                   .model = STR("m"),
                                   .prompt = buf_view(&load.prompt),
                                   .schema = load.schema,
                                   .timeout_ms = 600000};
  const struct provider_sink sink = {.done = on_done, .ctx = request};
  (void)load.provider->ops->start(load.provider, &load.env, request, &sink);
}

/* CPU of one call, in us. */
static double run_provider(const struct task *t) {
  char url[64];
  struct err err = {0};
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", port, t->answer);
  json_t *settings = json_pack("{s{ss ss si}}", "bench", "type", "anthropic", "base_url", url,
                               "concurrency", 1000);
  struct provider_registry *registry = registry_new(settings);
  uv_loop_init(&load.loop);
  bench_try(api_register(registry, settings, &err), &err);
  load.provider = registry_find(registry, STR("bench"));
  load.env = (struct provider_env){.loop = &load.loop, .api = api_new(&load.loop, NULL)};
  load.schema = t->large ? NULL : json_loads(bench_judgment, 0, NULL);
  while (load.prompt.n < 1000) /* a judge's question about a short report */
    buf_puts(&load.prompt, "Which condition does the report fulfil? \"Judge\" only by evidence.\n");
  load.left = t->total;
  double begin = bench_cpu_s();
  for (long i = 0; i < t->in_flight; i++)
    start_one();
  uv_run(&load.loop, UV_RUN_DEFAULT);
  double us = (bench_cpu_s() - begin) * 1e6 / (double)t->total;
  api_free(load.env.api);
  uv_run(&load.loop, UV_RUN_DEFAULT);
  bench_must(uv_loop_close(&load.loop) == 0, "the loop does not close clean");
  registry_free(registry);
  json_decref(settings);
  json_decref(load.schema);
  buf_deinit(&load.prompt);
  return us;
}

/* Runs a measurement in a process of its own, whose memory and descriptors are its own too. */
static double apart(double (*run)(const struct task *), const struct task *task) {
  int ends[2], status;
  double us = -1;
  bench_must(pipe(ends) == 0, "pipe");
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    us = run(task);
    _exit(write(ends[1], &us, sizeof us) != (ssize_t)sizeof us);
  }
  close(ends[1]);
  if (read(ends[0], &us, sizeof us) != (ssize_t)sizeof us || waitpid(pid, &status, 0) != pid ||
      status != 0)
    die("a measurement failed");
  close(ends[0]);
  return us;
}

static double least(double (*run)(const struct task *), const struct task *task) {
  double us[ROUNDS];
  for (int round = 0; round < ROUNDS; round++)
    us[round] = apart(run, task);
  return bench_quantile(us, ROUNDS, 0); /* the quietest: others work here too */
}

int main(void) {
  static const long flights[] = {1, 64, 1000};
  const struct rlimit limit = {4096, 4096};
  (void)setrlimit(RLIMIT_NOFILE, &limit);
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
  double one = apart(run_provider, &one_mb), ten = apart(run_provider, &ten_mb);
  printf("10 MB of events: %.0f MB/s of CPU, %.1f times the cost of 1 MB\n", 1e7 / ten, ten / one);
  return 0;
}
