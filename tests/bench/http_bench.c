/* What a call of a model API costs beside the bare thing: the whole provider path (build, send,
 * stream, parse, turn back, validate) against libcurl's multi interface on libuv fetching the same
 * bytes from the same server on loopback. CPU of this process only. Each measurement runs in a
 * process of its own; the server is another one. Goals: a plain reply at most 2 times the bare
 * probe; a stream of 8 events at most 80 us; 1,000 open streams in under 64 MiB; 10 MB at 25 MB/s or
 * more and within 11 times the cost of 1 MB; nothing left after 100,000 requests, one in ten cut.
 *
 * usage: http_bench [REQUESTS [bare|plain|events|leak IN_FLIGHT]]    one alone, for a profiler */
#include "base/limits.h"
#include "base/log.h"
#include "canned_server.h"
#include "format/json_pool.h"
#include "provider/api.h"
#include "provider/curl_load.h"

#include <dirent.h>
#include <malloc.h>
#include <time.h>

enum { ROUNDS = 3 };
enum { ANSWER_PLAIN, ANSWER_EVENTS, ANSWER_HOLD, ANSWER_1MB, ANSWER_10MB, ANSWER_CUT, ANSWERS };

static struct canned_answer answers[ANSWERS];
static struct canned_server server;
static long requests = 20000;

static double cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* --- the bytes --- */

/* The head that nginx puts before a file. */
static struct str with_head(struct buf *body, const char *type) {
  struct buf all = {0};
  buf_printf(&all,
             "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n"
             "Content-Type: %s\r\nContent-Length: %zu\r\nLast-Modified: Sat, 21 Nov 2026 11:00:00 "
             "GMT\r\nConnection: keep-alive\r\nETag: \"69203a90-1f4\"\r\nAccept-Ranges: "
             "bytes\r\n\r\n",
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
  answers[ANSWER_PLAIN].bytes = with_head(&b, "application/json");
  stream_head(&b);
  for (size_t i = 0; i < ARRAY_LEN(value); i++)
    delta(&b, value[i]);
  stream_tail(&b);
  answers[ANSWER_EVENTS].bytes = with_head(&b, "text/event-stream");
  buf_puts(&b,
           "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n");
  stream_head(&b);
  delta(&b, "half of ");
  answers[ANSWER_HOLD] = (struct canned_answer){{b.p, b.n}, .hold = true};
  b = (struct buf){0};
  for (int i = ANSWER_1MB; i <= ANSWER_10MB; i++) {
    size_t size = i == ANSWER_1MB ? 1000000 : 10000000;
    stream_head(&b);
    while (b.n < size)
      delta(&b, "twelve chars twelve chars twelve chars twelve chars");
    stream_tail(&b);
    answers[i].bytes = with_head(&b, "text/event-stream");
  }
  answers[ANSWER_CUT] = (struct canned_answer){answers[ANSWER_EVENTS].bytes, .cut_every = 10};
}

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
static double run_bare(int answer, long in_flight, long total) {
  char url[64];
  struct err err;
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", server.port, answer);
  bare.curl = curl_load(&err);
  bare.curl->global_init(CURL_GLOBAL_DEFAULT);
  uv_loop_init(&bare.loop);
  uv_timer_init(&bare.loop, &bare.timer);
  bare.multi = bare.curl->multi_init();
  bare.curl->multi_setopt(bare.multi, CURLMOPT_SOCKETFUNCTION, bare_socket);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_TIMERFUNCTION, bare_timer);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_MAXCONNECTS, in_flight + 16);
  bare.left = total;
  double begin = cpu_s();
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
  return (cpu_s() - begin) * 1e6 / (double)total;
}

/* --- the provider path --- */

struct load {
  uv_loop_t loop;
  struct provider_env env;
  struct provider_registry *registry;
  const struct provider *provider;
  json_t *settings, *schema;
  struct buf prompt;
  long left, open, ok, failed, cut, pieces;
  uint64_t bytes;
  bool cancels; /* one in ten is cancelled at a random piece */
};

struct one {
  struct load *load;
  struct call_request request;
  struct provider_run *run;
  long cancel_at;
};

static void start_one(struct load *l);

static void on_news(void *ctx, const struct provider_news *news) {
  struct one *one = ctx;
  one->load->pieces += news->kind == NEWS_TEXT;
  if (one->cancel_at > 0 && --one->cancel_at == 0)
    one->load->provider->ops->cancel(one->run);
}

static void on_done(void *ctx, struct call_result *r) {
  struct one *one = ctx;
  struct load *l = one->load;
  one->run = NULL;
  bool wrong = l->schema && r->class == CLASS_NONE &&
               json_integer_value(json_object_get(r->structured, "step")) != 2;
  if (wrong || (r->class != CLASS_NONE && r->class != CLASS_NETWORK && r->class != CLASS_CANCELLED))
    die("a call failed: %s %s", error_class_name(r->class), r->message);
  l->ok += r->class == CLASS_NONE;
  l->cut += r->class == CLASS_NETWORK || r->class == CLASS_CANCELLED;
  l->bytes += r->text.bytes.n;
  call_result_deinit(r);
  free(one);
  l->open--;
  start_one(l);
}

static void start_one(struct load *l) {
  const struct provider_sink sink = {on_news, on_done, NULL};
  if (l->left == 0)
    return;
  l->left--;
  l->open++;
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
  if (l->cancels && rand() % 20 == 0)
    one->cancel_at = 1 + rand() % 6;
  struct provider_sink own = sink;
  own.ctx = one;
  one->run = l->provider->ops->start(l->provider, &l->env, &one->request, &own);
}

static void load_init(struct load *l, int answer, bool structured) {
  char url[64];
  struct err err = {0};
  (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", server.port, answer);
  *l = (struct load){0};
  uv_loop_init(&l->loop);
  l->settings = json_pack("{s{ss ss si}}", "bench", "type", "anthropic", "base_url", url,
                          "concurrency", 1000);
  l->registry = registry_new(l->settings);
  if (!api_register(l->registry, l->settings, &err))
    die("%s", err.text);
  l->provider = registry_find(l->registry, STR("bench"));
  l->env.loop = &l->loop;
  l->env.api = api_new(&l->loop);
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

static double run_provider(int answer, long in_flight, long total) {
  struct load l;
  load_init(&l, answer, true);
  double begin = cpu_s();
  load_run(&l, in_flight, total);
  double us = (cpu_s() - begin) * 1e6 / (double)total;
  load_deinit(&l);
  return us;
}

/* CPU of a whole answer, in seconds. */
static double run_large(int answer, long in_flight, long total) {
  struct load l;
  (void)in_flight;
  load_init(&l, answer, false);
  double begin = cpu_s();
  load_run(&l, 1, total);
  double s = (cpu_s() - begin) / (double)total;
  load_deinit(&l);
  return s;
}

static long status_kib(const char *key) {
  char line[256];
  long kib = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, key, strlen(key)) == 0)
      kib = atol(line + strlen(key));
  if (f)
    fclose(f);
  return kib;
}

/* Resident memory while all streams are open, in MiB. */
static struct load *held;
static double held_mib;

static void on_enough(uv_timer_t *timer) {
  (void)timer;
  if (held->pieces < held->open)
    return;
  held_mib = (double)status_kib("VmRSS:") / 1024;
  uv_stop(&held->loop);
}

static double run_held(int answer, long in_flight, long total) {
  struct load l;
  uv_timer_t poll;
  (void)total;
  load_init(&l, answer, true);
  held = &l;
  uv_timer_init(&l.loop, &poll);
  uv_timer_start(&poll, on_enough, 10, 10);
  load_run(&l, in_flight, in_flight);
  return held_mib;
}

static long count_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  long n = 0;
  while (dir && readdir(dir))
    n++;
  if (dir)
    closedir(dir);
  return n;
}

/* Requests that end in all ways; what is left in descriptors and bytes afterwards. */
static void run_leak(int answer, long in_flight, long total) {
  struct load l;
  load_init(&l, answer, true); /* the allocator keeps small pieces: let it have its fill of them */
  l.cancels = true;
  load_run(&l, in_flight, total / 4);
  load_deinit(&l);
  long descriptors = count_descriptors();
  size_t bytes = mallinfo2().uordblks;
  load_init(&l, answer, true);
  l.cancels = true;
  load_run(&l, in_flight, total);
  long ended = l.ok + l.cut, cut = l.cut;
  load_deinit(&l);
  descriptors = count_descriptors() - descriptors;
  long left = (long)mallinfo2().uordblks - (long)bytes;
  printf("%ld calls, %ld cut or cancelled: descriptors %+ld, bytes %+ld\n", ended, cut, descriptors,
         left);
  fflush(stdout);
}

/* In a process of its own. */
static double apart(double (*run)(int, long, long), int answer, long in_flight, long total) {
  int pipes[2];
  double result = -1;
  if (pipe(pipes) != 0)
    die("no pipe");
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    result = run(answer, in_flight, total);
    if (write(pipes[1], &result, sizeof result) != (ssize_t)sizeof result)
      _exit(1);
    _exit(0);
  }
  close(pipes[1]);
  if (read(pipes[0], &result, sizeof result) != (ssize_t)sizeof result)
    die("a measurement failed");
  close(pipes[0]);
  waitpid(pid, NULL, 0);
  return result;
}

static void keep_least(double *least, double value_us) {
  if (value_us < *least)
    *least = value_us;
}

int main(int argc, char **argv) {
  struct rlimit limit;
  json_pool_use(); /* as the program does */
  if (argc > 1)
    requests = atol(argv[1]);
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  make_answers();
  canned_start(&server, answers);
  if (argc > 3) {
    long n = atol(argv[3]);
    if (strcmp(argv[2], "leak") == 0)
      run_leak(ANSWER_CUT, n, requests);
    else
      printf("%.1f us\n", strcmp(argv[2], "bare") == 0 ? run_bare(ANSWER_PLAIN, n, requests)
                          : strcmp(argv[2], "plain") == 0
                              ? run_provider(ANSWER_PLAIN, n, requests)
                              : run_provider(ANSWER_EVENTS, n, requests));
    canned_stop(&server);
    return 0;
  }
  static const long flights[] = {1, 64, 1000};
  printf("in flight   bare us   plain us   ratio   8 events us\n");
  for (size_t i = 0; i < ARRAY_LEN(flights); i++) {
    double bare_us = 1e9, plain = 1e9, events = 1e9;
    for (int round = 0; round < ROUNDS; round++) { /* the quietest of each: others work here too */
      keep_least(&bare_us, apart(run_bare, ANSWER_PLAIN, flights[i], requests));
      keep_least(&plain, apart(run_provider, ANSWER_PLAIN, flights[i], requests));
      keep_least(&events, apart(run_provider, ANSWER_EVENTS, flights[i], requests));
    }
    printf("%9ld   %7.1f   %8.1f   %5.2f   %11.1f\n", flights[i], bare_us, plain, plain / bare_us,
           events);
  }
  printf("1,000 streams open: %.1f MiB resident\n", apart(run_held, ANSWER_HOLD, 1000, 1000));
  double one = apart(run_large, ANSWER_1MB, 1, 50), ten = apart(run_large, ANSWER_10MB, 1, 5);
  printf("10 MB of events: %.0f MB/s of CPU, %.1f times the cost of 1 MB\n", 10.0 / ten, ten / one);
  canned_stop(&server);
  char count[32];
  (void)snprintf(count, sizeof count, "%ld", requests * 5);
  fflush(stdout);
  /* Pieces that the allocator keeps for a thread would count as left. */
  setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
  execl("/proc/self/exe", argv[0], count, "leak", "64", (char *)NULL);
  die("the last measurement could not be started");
}
