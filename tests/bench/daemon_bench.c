/* The daemon: start to READY, memory, watchers, requests, large bodies and turns a second, the last
 * against a bare loop that appends and syncs the same bytes to as many files through the same pool.
 *
 * Each figure stands beside its goal; memory is compared with an empty program that is linked
 * against the same libraries. The client's HTTP is just enough to count answers. */
#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "os/tmpdir.h"
#include "store/brief.h"
#include "store/reader.h"
#include "store/store.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

extern char **environ;

enum {
  LIVE = 1000,
  WATCHERS = 1000,
  GETS = 40000,
  GET_CONNECTIONS = 8,
  SESSIONS = 16,
  TURNS = 300,
  STARTS = 11,
  ROUNDS = 5,
  ANSWER_BYTES = 2000,
  BODY_BYTES = 16000000,
};

static char *dir, sock[108];

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *values, size_t n) {
  qsort(values, n, sizeof *values, by_value);
  return values[n / 2];
}

/* --- processes --- */

static long rss_kib(pid_t pid) {
  char path[64], line[256];
  long kib = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmRSS: %ld", &kib) == 1)
      break;
  if (f)
    fclose(f);
  return kib;
}

static pid_t spawn(char *const argv[], int in, int err) {
  posix_spawn_file_actions_t actions;
  pid_t pid;
  posix_spawn_file_actions_init(&actions);
  if (in >= 0)
    posix_spawn_file_actions_adddup2(&actions, in, 0);
  if (err >= 0)
    posix_spawn_file_actions_adddup2(&actions, err, 2);
  if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
    die("cannot run %s", argv[0]);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

/* Returns when it says that it is ready; *took is how long that was. */
static pid_t start_daemon(const char *logs, const char *max_sessions, double *took) {
  char segue[] = SEGUE_BUILD_DIR "/segue", serve[] = "serve", l[] = "--logs", n[] = "-n",
       s[] = "--socket";
  char *const argv[] = {
      segue, serve, l, (char *)(uintptr_t)logs, n, (char *)(uintptr_t)max_sessions, s, sock, NULL};
  int out[2];
  char byte = 0;
  if (pipe2(out, O_CLOEXEC) != 0)
    die("no pipe");
  double start = now_s();
  pid_t pid = spawn(argv, -1, out[1]);
  close(out[1]);
  while (byte != '\n' && read(out[0], &byte, 1) == 1)
    ;
  *took = now_s() - start;
  if (byte != '\n')
    die("the daemon did not start");
  fcntl(out[0], F_SETFD, 0); /* stays open: the daemon may say more */
  return pid;
}

static void end_daemon(pid_t pid, int number) {
  int status;
  kill(pid, number);
  if (number == SIGTERM)
    kill(pid, number);
  waitpid(pid, &status, 0);
}

/* --- requests --- */

static int dial(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", sock);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
    die("cannot connect");
  return fd;
}

static void send_all(int fd, const char *p, size_t n) {
  while (n > 0) {
    ssize_t done = write(fd, p, n);
    if (done <= 0)
      die("the daemon hung up");
    p += done;
    n -= (size_t)done;
  }
}

/* One answer with a Content-Length; its body is parsed when `value` is asked for. */
static void receive(int fd, json_t **value) {
  static char text[1 << 20];
  size_t n = 0, want = sizeof text;
  while (n < want) {
    ssize_t got = read(fd, text + n, sizeof text - 1 - n);
    if (got <= 0)
      die("the daemon hung up");
    n += (size_t)got;
    text[n] = '\0';
    const char *end = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
    if (end != NULL && length != NULL)
      want = (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10);
  }
  if (strncmp(text, "HTTP/1.1 20", 11) != 0)
    die("refused: %s", text);
  if (value)
    *value = json_loads(strstr(text, "\r\n\r\n") + 4, 0, NULL);
}

static json_t *ask(int fd, const char *method, const char *path, const json_t *body) {
  struct buf request = {0};
  char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("");
  json_t *value = NULL;
  buf_printf(&request,
             "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             method, path, strlen(text), text);
  send_all(fd, request.p, request.n);
  receive(fd, &value);
  buf_deinit(&request);
  free(text);
  return value;
}

static long health(int fd, const char *key) {
  json_t *value = ask(fd, "GET", "/v1/health", NULL);
  long n = (long)json_integer_value(json_object_get(json_object_get(value, "sessions"), key));
  json_decref(value);
  return n;
}

/* --- sessions --- */

static json_t *make_body(int turns, int last_delay_ms) {
  char path[512], *filler = malloc(ANSWER_BYTES + 1);
  json_t *replies = json_array();
  memset(filler, 'w', ANSWER_BYTES);
  for (int i = 7; i < ANSWER_BYTES; i += 8)
    filler[i] = ' ';
  filler[ANSWER_BYTES] = '\0';
  json_array_append_new(replies, json_pack("{ss ss si}", "purpose", "execute", "text", filler,
                                           "times", last_delay_ms ? 1 : 0));
  if (last_delay_ms)
    json_array_append_new(replies, json_pack("{ss ss si si}", "purpose", "execute", "text", filler,
                                             "times", 0, "delay_ms", last_delay_ms));
  json_array_append_new(replies, json_pack("{ss s{ss si} si}", "purpose", "judge", "structured",
                                           "reason", "there is more", "step", 1, "times", 0));
  json_t *scenario = json_pack("{so}", "replies", replies);
  (void)snprintf(path, sizeof path, "%s/scenario-%d-%d.json", dir, turns, last_delay_ms);
  json_dump_file(scenario, path, 0);
  json_decref(scenario);
  free(filler);
  struct buf workflow = {0};
  buf_printf(&workflow,
             "name: bench\nprovider: script\nmax_movements: %d\nmovements:\n  - name: work\n"
             "    instruction: Go on with {task}.\n    rules:\n"
             "      - {condition: work is left, next: work}\n"
             "      - {condition: all is done, next: COMPLETE}\n",
             turns);
  json_t *body = json_pack("{s{ss} ss ss ss}", "workflow", "text", workflow.p, "task", "the queue",
                           "cwd", dir, "scenario", path);
  buf_deinit(&workflow);
  return body;
}

static void submit(int fd, const json_t *body, char id[64]) {
  json_t *value = ask(fd, "POST", "/v1/sessions", body);
  const char *got = json_string_value(json_object_get(value, "id"));
  if (got == NULL)
    die("refused: %s", json_string_value(json_object_get(value, "detail")));
  if (id)
    (void)snprintf(id, 64, "%s", got);
  json_decref(value);
}

static void wait_running(int fd, long n) {
  while (health(fd, "running") != n)
    (void)usleep(1000);
}

/* --- figures --- */

static void print_start(const char *what, double took_s, double goal_ms) {
  printf("%-46s %8.1f ms   goal %.0f\n", what, took_s * 1e3, goal_ms);
}

static void measure_start(void) {
  double times[STARTS];
  char logs[512];
  (void)snprintf(logs, sizeof logs, "%s/none", dir);
  for (int i = 0; i < STARTS; i++)
    end_daemon(start_daemon(logs, "16", &times[i]), SIGTERM);
  print_start("start to READY, no session", median(times, STARTS), 30);
}

static long measure_idle(void) {
  char probe[] = SEGUE_BUILD_DIR "/helpers/empty_probe", wait[] = "wait", logs[512];
  char *const argv[] = {probe, wait, NULL};
  int in[2], status;
  double took;
  if (pipe2(in, O_CLOEXEC) != 0)
    die("no pipe");
  pid_t empty = spawn(argv, in[0], -1);
  (void)usleep(100000);
  long floor = rss_kib(empty);
  close(in[1]);
  waitpid(empty, &status, 0);
  (void)snprintf(logs, sizeof logs, "%s/idle", dir);
  pid_t pid = start_daemon(logs, "16", &took);
  int fd = dial();
  (void)health(fd, "running");
  long idle = rss_kib(pid);
  printf("%-46s %8.2f MiB  goal 4 (%.1f and %.1f)\n", "idle, more than an empty program",
         (double)(idle - floor) / 1024, (double)idle / 1024, (double)floor / 1024);
  close(fd);
  end_daemon(pid, SIGTERM);
  return idle;
}

static void measure_live(long idle) {
  char logs[512];
  double took;
  json_t *body = make_body(50, 3600 * 1000);
  (void)snprintf(logs, sizeof logs, "%s/live", dir);
  pid_t pid = start_daemon(logs, "1000", &took);
  int fd = dial();
  double start = now_s();
  for (int i = 0; i < LIVE; i++)
    submit(fd, body, NULL);
  printf("%-46s %8.0f a second\n", "sessions submitted, one after the other",
         LIVE / (now_s() - start));
  wait_running(fd, LIVE);
  (void)usleep(500000);
  printf("%-46s %8.1f KiB  goal 32\n", "memory of each of 1,000 live sessions",
         (double)(rss_kib(pid) - idle) / LIVE);
  close(fd);
  end_daemon(pid, SIGKILL);
  pid = start_daemon(logs, "1000", &took);
  print_start("start to READY, 1,000 unfinished sessions", took, 1000);
  fd = dial();
  start = now_s();
  wait_running(fd, LIVE);
  printf("%-46s %8.1f ms\n", "and until all of them run again", (now_s() - start) * 1e3);
  (void)usleep(500000);
  printf("%-46s %8.1f KiB\n", "memory of each, recovered", (double)(rss_kib(pid) - idle) / LIVE);
  close(fd);
  end_daemon(pid, SIGKILL);
  json_decref(body);
}

static void measure_requests(void) {
  static int watchers[WATCHERS];
  char logs[512], id[64], request[256], byte[256];
  double took;
  json_t *body = make_body(50, 3600 * 1000);
  (void)snprintf(logs, sizeof logs, "%s/requests", dir);
  pid_t pid = start_daemon(logs, "16", &took);
  int fds[GET_CONNECTIONS];
  for (int i = 0; i < GET_CONNECTIONS; i++)
    fds[i] = dial();
  submit(fds[0], body, id);
  wait_running(fds[0], 1);
  (void)usleep(300000);
  int n = snprintf(request, sizeof request, "GET /v1/sessions/%s HTTP/1.1\r\nHost: x\r\n\r\n", id);
  double start = now_s();
  for (int i = 0; i < GETS / GET_CONNECTIONS; i++) {
    for (int c = 0; c < GET_CONNECTIONS; c++)
      send_all(fds[c], request, (size_t)n);
    for (int c = 0; c < GET_CONNECTIONS; c++)
      receive(fds[c], NULL);
  }
  printf("%-46s %8.0f a second  goal 5000\n", "GET /v1/sessions/ID", GETS / (now_s() - start));
  long before = rss_kib(pid);
  n = snprintf(request, sizeof request,
               "GET /v1/sessions/%s/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1000\r\n\r\n", id);
  for (int i = 0; i < WATCHERS; i++) {
    watchers[i] = dial();
    send_all(watchers[i], request, (size_t)n);
    if (read(watchers[i], byte, sizeof byte) <= 0)
      die("no stream");
  }
  (void)usleep(500000);
  printf("%-46s %8.2f MiB  goal 10\n", "1,000 idle watchers",
         (double)(rss_kib(pid) - before) / 1024);
  for (int i = 0; i < WATCHERS; i++)
    close(watchers[i]);
  end_daemon(pid, SIGKILL);
  json_decref(body);
}

/* --- large bodies --- */

/* The longest wait of another client from the body's last byte to its answer. */
static double wait_beside(int poster, int other, const struct buf *request) {
  static const char get[] = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n";
  char answer[4096];
  double worst = 0;
  struct pollfd done = {.fd = poster, .events = POLLIN};
  send_all(poster, request->p, request->n);
  do {
    double begin = now_s();
    send_all(other, get, sizeof get - 1);
    receive(other, NULL);
    worst = now_s() - begin > worst ? now_s() - begin : worst;
  } while (poll(&done, 1, 0) == 0);
  if (read(poster, answer, sizeof answer) <= 0 || strncmp(answer, "HTTP/1.1 4", 10) != 0)
    die("a bad body was taken");
  return worst;
}

static void measure_bodies(void) {
  static const struct {
    const char *what, *begin, *piece, *end;
  } rows[] = {{"small values", "{\"workflow\":[", "[],", "[]]}"},
              {"one text of escapes", "{\"task\":\"", "\\u0041", "\"}"},
              {"a scenario of small values", "", "  - {text: x}\\n", "\"}}"}};
  char logs[512], workflow[512];
  double took;
  (void)snprintf(logs, sizeof logs, "%s/bodies", dir);
  (void)snprintf(
      workflow, sizeof workflow,
      "{\"cwd\":\"%s\",\"workflow\":{\"text\":\"name: w\\nprovider: script\\nmovements:\\n"
      "  - {name: a, instruction: do it, rules: [{condition: x, next: COMPLETE}]}\\n\"},"
      "\"scenario\":{\"text\":\"replies:\\n",
      dir);
  pid_t pid = start_daemon(logs, "16", &took);
  int poster = dial(), other = dial();
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct buf body = {0}, request = {0};
    double waits[ROUNDS];
    char label[64];
    buf_puts(&body, rows[i].begin[0] ? rows[i].begin : workflow);
    while (body.n < BODY_BYTES)
      buf_puts(&body, rows[i].piece);
    buf_puts(&body, rows[i].end);
    buf_printf(&request,
               "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n",
               body.n);
    buf_str(&request, buf_view(&body));
    for (int round = 0; round < ROUNDS; round++)
      waits[round] = wait_beside(poster, other, &request);
    (void)snprintf(label, sizeof label, "others wait for 16 MB: %s", rows[i].what);
    printf("%-46s %8.1f ms   goal 50\n", label, median(waits, ROUNDS) * 1000);
    buf_deinit(&body);
    buf_deinit(&request);
  }
  close(poster);
  close(other);
  end_daemon(pid, SIGKILL);
}

/* --- turns a second --- */

struct bare { /* one file */
  uv_work_t work;
  uv_loop_t *loop;
  int fd;
  const size_t *groups;
  size_t at, count;
  const char *bytes;
};

static void bare_write(uv_work_t *work) {
  const struct bare *b = work->data;
  if (write(b->fd, b->bytes, b->groups[b->at]) != (ssize_t)b->groups[b->at] ||
      fdatasync(b->fd) != 0)
    die("the bare loop cannot write");
}

static void bare_next(uv_work_t *work, int status) {
  struct bare *b = work->data;
  (void)status;
  if (++b->at < b->count)
    uv_queue_work(b->loop, &b->work, bare_write, bare_next);
}

/* What was appended at once: a batch ends with a call's start or the session's end. */
static size_t read_groups(const char *path, size_t **groups) {
  struct reader r;
  struct str line;
  struct err err;
  size_t n = 0, bytes = 0;
  if (!reader_open(&r, path, &err))
    die("%s", err.text);
  *groups = NULL;
  while (reader_next(&r, &line)) {
    bytes += line.n + 1;
    bool ends = memmem(line.p, line.n < 160 ? line.n : 160, "\"call_start\"", 12) ||
                memmem(line.p, line.n < 160 ? line.n : 160, "\"session_end\"", 13) ||
                memmem(line.p, line.n < 160 ? line.n : 160, "\"session_start\"", 15);
    if (!ends)
      continue;
    *groups = xrealloc(*groups, (n + 1) * sizeof **groups);
    (*groups)[n++] = bytes;
    bytes = 0;
  }
  reader_close(&r);
  return n;
}

static double bare_loop(const size_t *groups, size_t count) {
  static int round; /* new files each time: writing over old ones costs differently */
  struct bare files[SESSIONS];
  uv_loop_t loop;
  size_t max = 0;
  char path[512];
  for (size_t i = 0; i < count; i++)
    max = groups[i] > max ? groups[i] : max;
  char *bytes = xmalloc(max);
  memset(bytes, 'x', max);
  uv_loop_init(&loop);
  round++;
  double start = now_s();
  for (int i = 0; i < SESSIONS; i++) {
    (void)snprintf(path, sizeof path, "%s/bare-%d-%d", dir, round, i);
    files[i] = (struct bare){.loop = &loop, .groups = groups, .count = count, .bytes = bytes};
    files[i].fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    files[i].work.data = &files[i];
    uv_queue_work(&loop, &files[i].work, bare_write, bare_next);
  }
  uv_run(&loop, UV_RUN_DEFAULT);
  double took = now_s() - start;
  for (int i = 0; i < SESSIONS; i++)
    close(files[i].fd);
  uv_loop_close(&loop);
  free(bytes);
  return took;
}

static double wall_of(const char *ts) {
  int h, m, s, ms;
  if (sscanf(ts + 11, "%d:%d:%d.%d", &h, &m, &s, &ms) != 4)
    die("no time in %s", ts);
  return h * 3600.0 + m * 60.0 + s + ms / 1e3;
}

/* From the first session's start to the last one's end, by their logs. */
static double daemon_turns(const char *logs, char id[64], double *cpu_s) {
  double took, first = 1e9, last = 0;
  struct brief_id *ids;
  size_t count;
  struct err err;
  struct rusage before, after;
  getrusage(RUSAGE_CHILDREN, &before);
  json_t *body = make_body(TURNS, 0);
  pid_t pid = start_daemon(logs, "16", &took);
  int fd = dial();
  for (int i = 0; i < SESSIONS; i++)
    submit(fd, body, id);
  while (health(fd, "running") > 0)
    (void)usleep(20000);
  close(fd);
  end_daemon(pid, SIGTERM);
  json_decref(body);
  getrusage(RUSAGE_CHILDREN, &after);
  *cpu_s = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
           (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6 +
           (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
           (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
  if (!brief_list(logs, &ids, &count, &err))
    die("%s", err.text);
  for (size_t i = 0; i < count && i < SESSIONS; i++) {
    char path[1024];
    struct brief b;
    (void)snprintf(path, sizeof path, "%s/%s.ndjson", logs, ids[i].id);
    if (!brief_read(&b, path, &err) || strcmp(b.status, "max_movements") != 0)
      die("a session did not end: %s", path);
    first = wall_of(b.started) < first ? wall_of(b.started) : first;
    last = wall_of(b.updated) > last ? wall_of(b.updated) : last;
    brief_deinit(&b);
  }
  free(ids);
  return last - first;
}

static void measure_turns(void) {
  double ratios[ROUNDS], rate = 0, bare_rate = 0;
  for (int i = 0; i < ROUNDS; i++) {
    char logs[512], path[1024], id[64];
    size_t *groups;
    double cpu_s;
    (void)snprintf(logs, sizeof logs, "%s/turns-%d", dir, i);
    double took = daemon_turns(logs, id, &cpu_s);
    (void)snprintf(path, sizeof path, "%s/%s.ndjson", logs, id);
    size_t count = read_groups(path, &groups);
    double bare = bare_loop(groups, count);
    free(groups);
    ratios[i] = bare / took;
    rate = SESSIONS * TURNS / took;
    bare_rate = SESSIONS * TURNS / bare;
    printf("  round %d: %.0f turns/s, bare %.0f, %zu syncs a session, %.0f us of CPU a turn\n",
           i + 1, rate, bare_rate, count, cpu_s * 1e6 / (SESSIONS * TURNS));
  }
  printf("%-46s %8.2f      goal 0.80 (median)\n", "turns/s of 16 sessions, against the bare loop",
         median(ratios, ROUNDS));
}

int main(int argc, char **argv) {
  struct err err;
  struct rlimit limit;
  char threads[8];
  (void)snprintf(threads, sizeof threads, "%u", store_pool_threads());
  setenv("UV_THREADPOOL_SIZE", threads, 1);
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  signal(SIGPIPE, SIG_IGN);
  dir = tmpdir_make(&err);
  if (dir == NULL)
    die("%s", err.text);
  setenv("XDG_CONFIG_HOME", dir, 1);
  (void)snprintf(sock, sizeof sock, "%s/s", dir);
  const char *only = argc > 1 ? argv[1] : "";
  if (!only[0] || strcmp(only, "start") == 0)
    measure_start();
  if (!only[0] || strcmp(only, "live") == 0)
    measure_live(measure_idle());
  if (!only[0] || strcmp(only, "requests") == 0)
    measure_requests();
  if (!only[0] || strcmp(only, "bodies") == 0)
    measure_bodies();
  if (!only[0] || strcmp(only, "turns") == 0)
    measure_turns();
  if (!tmpdir_remove(dir, &err))
    die("%s", err.text);
  free(dir);
  return 0;
}
