/* probe - the least that anybody must do, for segue to be compared with; and what rooms do without
 * the program around them:
 *
 *   probe list FOLDER      reads its names, and each one's size and time; prints how many there are
 *   probe read FOLDER      reads its logs, hashes each line in its chain, looks at each byte
 *   probe write LOG FOLDER COUNT THREADS
 *       writes the log again and again under other names, as a session would: what belongs together
 *       at once, each time synced, the folder after the first and the last; prints the seconds and
 *       the processor milliseconds of that
 *   probe fetch URL IN_FLIGHT TOTAL
 *       fetches with bare libcurl; prints the processor time of one in microseconds
 *   probe append STORE LOGS BATCHES
 *       appends batches of 3 lines of 500 bytes to so many logs at once; prints batches a second
 *   probe spawn own|bare AT_ONCE EACH MEGABYTES
 *       starts /bin/true under the shim and collects it, through os/process or with no more than is
 *       needed, with so much memory; prints how many a second, and the milliseconds of each start
 *   probe library
 *       checks, extracts, and tells schemas; prints what that costs on one core, with goals */
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "core/record.h"
#include "extract/extract.h"
#include "gbnf/gbnf.h"
#include "http/curl_load.h"
#include "os/loop.h"
#include "os/process.h"
#include "render/describe.h"
#include "render/example.h"
#include "schema/schema.h"
#include "shim/protocol.h"
#include "store/line.h"
#include "store/reader.h"
#include "store/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { MAX_BATCHES = 4096, MAX_THREADS = 64, MAX_READY = 64, LINES = 3, LINE_BYTES = 500 };
enum {
  MAX_SPAWNS = 10000,
  RUNS = 15,
  JUDGMENTS = 1000,
  SCAN_BYTES = 16 << 20,
  TREE_BYTES = 1000000
};

static void must(bool ok, const char *what) {
  if (!ok)
    die("%s: %s", what, strerror(errno));
}

static void try(bool ok, const struct err *err) {
  if (!ok)
    die("%s", err->text);
}

static double clock_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double now_s(void) {
  return clock_s(CLOCK_MONOTONIC);
}

/* Processor time of this process. */
static double cpu_s(void) {
  return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static long number_of(const char *word) {
  long n = strtol(word, NULL, 10);
  must(n > 0, word);
  return n;
}

static void list(char **words) {
  struct stat st;
  long n = 0;
  DIR *d = opendir(words[0]);
  must(d != NULL, words[0]);
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    n += fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
  closedir(d);
  printf("%ld\n", n);
}

static void read_logs(char **words) {
  struct store store;
  struct store_id *ids = NULL;
  size_t count = 0;
  unsigned long long seen = 0;
  struct err err;
  store_at(&store, words[0]);
  try(store_list(&store, &ids, &count, &err), &err);
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    struct log_reader r;
    struct str line;
    char hash[SHA256_HEX], next[SHA256_HEX];
    store_ref(&store, ids[i].id, &ref);
    memcpy(hash, line_first_hash, sizeof hash);
    try(reader_open(&r, &ref, &err), &err);
    while (reader_next(&r, &line)) {
      try(line_check(line, hash, next, &err), &err);
      memcpy(hash, next, sizeof hash);
      for (size_t k = 0; k < line.n; k++)
        seen += line.p[k] == '"';
    }
    reader_close(&r);
  }
  free(ids);
  printf("%llu\n", seen);
}

/* --- writing --- */

static struct {
  struct buf bytes;
  size_t ends[MAX_BATCHES], batches;
  int folder;
  long count;
  atomic_long next;
} job;

/* Where batches end: a session begins, or starts a call, or ends. */
static void find_batches(void) {
  static const char *const last[] = {"session_start", "call_start", "session_end"};
  const char *end;
  for (const char *p = job.bytes.p; (end = strchr(p, '\n')) != NULL; p = end + 1) {
    const char *type = strstr(p, "\"type\":\"");
    for (size_t i = 0; i < ARRAY_LEN(last); i++)
      if (type && strncmp(type + 8, last[i], strlen(last[i])) == 0) {
        must(job.batches < MAX_BATCHES, "so many batches");
        job.ends[job.batches++] = (size_t)(end + 1 - job.bytes.p);
      }
  }
}

static void *write_logs(void *unused) {
  char name[64];
  for (long number; (number = atomic_fetch_add(&job.next, 1)) < job.count;) {
    (void)snprintf(name, sizeof name, "%ld.ndjson", number);
    int fd = openat(job.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
    must(fd >= 0, name);
    for (size_t b = 0, from = 0; b < job.batches; from = job.ends[b++]) {
      size_t n = job.ends[b] - from;
      must(write(fd, job.bytes.p + from, n) == (ssize_t)n && fdatasync(fd) == 0, name);
      if (b == 0 || b == job.batches - 1)
        must(fsync(job.folder) == 0, "the folder");
    }
    close(fd);
  }
  return unused;
}

static void write_all(char **words) {
  pthread_t ids[MAX_THREADS];
  long threads = number_of(words[3]);
  struct err err;
  must(threads <= MAX_THREADS, "THREADS");
  try(file_read(words[0], SIZE_MAX / 2, &job.bytes, &err), &err);
  find_batches();
  job.count = number_of(words[2]);
  must(mkdir(words[1], 0700) == 0 && (job.folder = open(words[1], O_RDONLY)) >= 0, words[1]);
  double begin = now_s(), used = cpu_s();
  for (long i = 0; i < threads; i++)
    must(pthread_create(&ids[i], NULL, write_logs, NULL) == 0, "pthread_create");
  for (long i = 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  printf("%.6f %.3f\n", now_s() - begin, (cpu_s() - used) * 1e3);
}

/* --- fetching --- */

static struct {
  const struct curl_api *curl;
  CURLM *multi;
  int epoll, wait_ms; /* -1: for ever */
} bare;

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known) {
  struct epoll_event event = {.data.fd = fd};
  int change = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  (void)easy;
  (void)ctx;
  event.events |= what & CURL_POLL_IN ? EPOLLIN : 0;
  event.events |= what & CURL_POLL_OUT ? EPOLLOUT : 0;
  if (what == CURL_POLL_REMOVE)
    change = EPOLL_CTL_DEL;
  else
    bare.curl->multi_assign(bare.multi, fd, &bare);
  (void)epoll_ctl(bare.epoll, change, fd, &event);
  return 0;
}

static int on_timer(CURLM *multi, long ms, void *ctx) {
  (void)multi;
  (void)ctx;
  bare.wait_ms = (int)ms;
  return 0;
}

static size_t on_body(char *p, size_t one, size_t n, void *ctx) {
  (void)p;
  (void)ctx;
  return one * n;
}

/* Waits once, and lets libcurl do what there is to do. */
static void step(void) {
  struct epoll_event ready[MAX_READY];
  int running, n = epoll_wait(bare.epoll, ready, MAX_READY, bare.wait_ms);
  for (int i = 0; i < n; i++)
    bare.curl->multi_socket_action(bare.multi, ready[i].data.fd, 0, &running);
  if (n == 0 || bare.wait_ms == 0) {
    bare.wait_ms = -1;
    bare.curl->multi_socket_action(bare.multi, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

static void fetch(char **words) {
  struct err err;
  long at_once = number_of(words[1]), total = number_of(words[2]), begun = 0, ended = 0;
  CURLMsg *m;
  int left;
  bare.curl = curl_load(&err);
  try(bare.curl != NULL, &err);
  bare.curl->global_init(CURL_GLOBAL_DEFAULT);
  bare.multi = bare.curl->multi_init();
  bare.epoll = epoll_create1(EPOLL_CLOEXEC);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_TIMERFUNCTION, on_timer);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_MAXCONNECTS, at_once + 16);
  double begin = cpu_s();
  for (; begun < at_once; begun++) {
    CURL *easy = bare.curl->easy_init();
    bare.curl->easy_setopt(easy, CURLOPT_URL, words[0]);
    bare.curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    bare.curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bare.curl->easy_setopt(easy, CURLOPT_NOPROXY, "*");
    bare.curl->multi_add_handle(bare.multi, easy);
  }
  while (ended < total) {
    step();
    while ((m = bare.curl->multi_info_read(bare.multi, &left)) != NULL) {
      CURL *easy = m->easy_handle;
      must(m->data.result == CURLE_OK, words[0]);
      bare.curl->multi_remove_handle(bare.multi, easy);
      ended++;
      if (begun++ < total)
        bare.curl->multi_add_handle(bare.multi, easy);
    }
  }
  printf("%.3f\n", (cpu_s() - begin) * 1e6 / (double)total);
}

/* --- appending --- */

struct writer {
  struct store_log *log;
  char id[STORE_ID_BYTES];
};
static uv_loop_t loop;
static long batches_left;

static struct record *note(uint64_t seq, const char *id) {
  struct record_draft d;
  json_t *json = json_pack("{si sI ss ss ss ss%}", "v", 1, "seq", (json_int_t)seq, "ts",
                           "2026-01-01T00:00:00.000Z", "type", seq == 1 ? "session_start" : "note",
                           "session", id, "text", job.bytes.p, job.bytes.n);
  record_read(&d, json);
  struct record *record = record_keep(&d);
  json_decref(json);
  return record;
}

static void write_next(void *ctx, enum store_result result, struct str lines,
                       const struct err *err) {
  struct writer *w = ctx;
  struct record *records[LINES];
  uint64_t seq = store_log_seq(w->log) + 1;
  (void)lines;
  try(result == STORE_OK, err);
  if (batches_left-- <= 0)
    return;
  for (size_t i = 0; i < LINES; i++)
    records[i] = note(seq + i, w->id);
  store_append(w->log, &loop, seq, records, LINES, write_next, w);
  for (size_t i = 0; i < LINES; i++)
    record_free(records[i]);
}

static void append(char **words) {
  const struct worker_options options = {.lease_ms = 30000};
  struct store store;
  struct err err;
  long logs = number_of(words[1]), batches = number_of(words[2]);
  struct writer *writers = xcalloc((size_t)logs, sizeof *writers);
  try(worker_be(&options, &err) && store_open(&store, words[0], &err) && loop_init(&loop, &err),
      &err);
  while (job.bytes.n < LINE_BYTES - 180)
    buf_puts(&job.bytes, "x");
  for (long i = 0; i < logs; i++) {
    struct writer *w = &writers[i];
    (void)snprintf(w->id, sizeof w->id, "0199000a-0000-7000-8000-%012x", (unsigned)i);
    w->log = store_create(&store, w->id, &err);
    try(w->log != NULL, &err);
  }
  batches_left = batches;
  double begin = now_s();
  for (long i = 0; i < logs; i++)
    write_next(&writers[i], STORE_OK, (struct str){0}, &err);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  printf("%.1f\n", (double)batches / (now_s() - begin));
  for (long i = 0; i < logs; i++)
    store_close(writers[i].log);
  free(writers);
  worker_leave_all();
}

/* --- spawning --- */

static const char *const true_argv[] = {"/bin/true", NULL};

static struct {
  uv_loop_t loop;
  struct process_table *table;
  const char *const *envp;
  posix_spawnattr_t attr;
  char shim[4096];
  long each;
  int begun, left;
  double start_ms[MAX_SPAWNS];
} spawns;

static void on_end(void *ctx, struct process_result *result);

static void start_one(void) {
  const struct process_spec spec = {.argv = true_argv, .cwd = "/", .envp = spawns.envp};
  struct err err;
  double begin = now_s();
  try(process_start(spawns.table, &spec, NULL, on_end, NULL, &err) != NULL, &err);
  spawns.start_ms[spawns.begun++] = (now_s() - begin) * 1e3;
}

static void on_end(void *ctx, struct process_result *result) {
  (void)ctx;
  must(result->exit_code == 0, true_argv[0]);
  if (spawns.left-- > 0)
    start_one();
}

static void spawn_own(long at_once) {
  spawns.left = (int)(at_once * (spawns.each - 1));
  for (long i = 0; i < at_once; i++)
    start_one();
  (void)uv_run(&spawns.loop, UV_RUN_DEFAULT);
}

enum { BARE_OUT, BARE_ERR, BARE_STATUS, BARE_CONTROL, BARE_PIPES, MAX_AT_ONCE = 16 };
struct bare_call {
  pid_t pid;           /* 0 = free */
  int fds[BARE_PIPES]; /* our ends; -1 = closed */
};

/* Returns its pid, and in fds our ends of its pipes. */
static pid_t bare_start(int fds[BARE_PIPES]) {
  static const int shim_fds[] = {1, 2, SHIM_FD_STATUS, SHIM_FD_CONTROL};
  const char *argv[] = {SHIM_PROTOCOL, "0", true_argv[0], NULL};
  int theirs[BARE_PIPES];
  posix_spawn_file_actions_t actions;
  pid_t pid;
  (void)posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < BARE_PIPES; i++) {
    int ends[2], our_end = i == BARE_CONTROL;
    must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    theirs[i] = ends[!our_end];
    fds[i] = ends[our_end];
    (void)posix_spawn_file_actions_adddup2(&actions, theirs[i], shim_fds[i]);
  }
  (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_addclosefrom_np(&actions, SHIM_FD_STATUS + 1);
  (void)posix_spawn_file_actions_addchdir_np(&actions, "/");
  must(posix_spawn(&pid, spawns.shim, &actions, &spawns.attr, (char *const *)argv,
                   (char *const *)spawns.envp) == 0,
       "posix_spawn");
  (void)posix_spawn_file_actions_destroy(&actions);
  for (int i = 0; i < BARE_PIPES; i++)
    (void)close(theirs[i]);
  return pid;
}

static void bare_close(struct bare_call *call, int i) {
  if (call->fds[i] >= 0)
    (void)close(call->fds[i]);
  call->fds[i] = -1;
}

/* Reads what is there; true when it is over and reaped. */
static bool bare_step(struct bare_call *call, const struct pollfd *ready) {
  static char bytes[LIMIT_PIPE_PIECE_BYTES];
  const struct shim_message *m = (const void *)bytes;
  siginfo_t info;
  for (int i = BARE_OUT; i <= BARE_STATUS; i++) {
    if (call->fds[i] < 0 || ready[i].revents == 0)
      continue;
    ssize_t n = read(call->fds[i], bytes, sizeof bytes);
    if (n <= 0)
      bare_close(call, i);
    else if (i == BARE_STATUS && m[(size_t)n / sizeof *m - 1].type != SHIM_STARTED)
      bare_close(call, BARE_CONTROL); /* it exited: sweep */
  }
  if (call->fds[BARE_STATUS] >= 0)
    return false;
  must(waitid(P_PID, (id_t)call->pid, &info, WEXITED) == 0, "waitid");
  for (int i = 0; i < BARE_PIPES; i++)
    bare_close(call, i);
  call->pid = 0;
  return true;
}

static void spawn_bare(long at_once) {
  struct bare_call calls[MAX_AT_ONCE] = {0};
  struct pollfd fds[MAX_AT_ONCE * BARE_CONTROL];
  long left = at_once * spawns.each;
  for (long done = 0; done < at_once * spawns.each;) {
    for (long j = 0; j < at_once; j++) {
      if (calls[j].pid == 0 && left-- > 0)
        calls[j].pid = bare_start(calls[j].fds);
      for (int i = 0; i < BARE_CONTROL; i++)
        fds[j * BARE_CONTROL + i] =
            (struct pollfd){.fd = calls[j].pid != 0 ? calls[j].fds[i] : -1, .events = POLLIN};
    }
    must(poll(fds, (nfds_t)(at_once * BARE_CONTROL), -1) > 0, "poll");
    for (long j = 0; j < at_once; j++)
      if (calls[j].pid != 0)
        done += bare_step(&calls[j], &fds[j * BARE_CONTROL]);
  }
}

static void spawn(char **words) {
  struct arena arena = {0};
  struct err err;
  sigset_t none, all;
  long at_once = number_of(words[1]);
  size_t megabytes = strtoul(words[3], NULL, 10);
  must(at_once <= MAX_AT_ONCE && at_once * number_of(words[2]) <= MAX_SPAWNS, "so many");
  while (open("/dev/null", O_RDWR | O_CLOEXEC) < SHIM_FD_STATUS)
    ; /* no pipe gets one of the shim's numbers */
  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  (void)posix_spawnattr_init(&spawns.attr);
  (void)posix_spawnattr_setflags(&spawns.attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                                   POSIX_SPAWN_SETSIGMASK);
  (void)posix_spawnattr_setsigdefault(&spawns.attr, &all);
  (void)posix_spawnattr_setsigmask(&spawns.attr, &none);
  try(loop_init(&spawns.loop, &err), &err);
  spawns.table = process_table_new(&spawns.loop, &err);
  spawns.envp = process_env_build(&arena, NULL, NULL, NULL, &err);
  try(spawns.table != NULL && spawns.envp != NULL &&
          process_find_shim(spawns.shim, sizeof spawns.shim, &err),
      &err);
  char *memory = memset(xmalloc((megabytes << 20) + 1), 1, (megabytes << 20) + 1);
  void (*side)(long) = strcmp(words[0], "own") == 0 ? spawn_own : spawn_bare;
  spawns.each = 1;
  side(at_once); /* warm */
  spawns.begun = 0;
  spawns.each = number_of(words[2]);
  double begin = now_s();
  side(at_once);
  printf("%.1f\n", (double)(at_once * spawns.each) / (now_s() - begin));
  for (int i = 0; i < spawns.begun; i++)
    printf("%.4f\n", spawns.start_ms[i]);
  free(memory);
  arena_deinit(&arena);
}

/* --- the library: checking --- */

/* The least time of a statement, in seconds: it is run `runs` times. */
#define BEST(runs, statement)                                                                      \
  ({                                                                                               \
    double best_ = 1e9;                                                                            \
    for (int i_ = 0; i_ < (runs); i_++) {                                                          \
      double begin_ = now_s();                                                                     \
      statement;                                                                                   \
      double took_ = now_s() - begin_;                                                             \
      best_ = took_ < best_ ? took_ : best_;                                                       \
    }                                                                                              \
    best_;                                                                                         \
  })

static const char judgment_schema[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\",\"enum\":[0,1,2]},"
    "\"reason\":{\"type\":\"string\"}},\"required\":[\"step\",\"reason\"],"
    "\"additionalProperties\":false}";

/* The same by hand. */
static bool judgment_walk(const json_t *value) {
  bool step = false, reason = false;
  const char *key;
  json_t *member;
  json_object_foreach((json_t *)value, key, member) {
    json_int_t n = json_integer_value(member);
    if (!strcmp(key, "step"))
      step = json_is_integer(member) && n >= 0 && n <= 2;
    else if (!strcmp(key, "reason"))
      reason = json_is_string(member);
    else
      return false;
  }
  return json_is_object(value) && step && reason;
}

static void checking(void) {
  static json_t *values[JUDGMENTS];
  size_t good = 0;
  for (int i = 0; i < JUDGMENTS; i++)
    values[i] = json_pack("{si ss}", "step", i % 3, "reason", "the tests pass and nothing is left");
  struct schema *schema = schema_compile(json_loads(judgment_schema, 0, NULL), NULL, NULL, NULL);
  double walk = BEST(100, for (int i = 0; i < JUDGMENTS; i++) good += judgment_walk(values[i]));
  double ours =
      BEST(100, for (int i = 0; i < JUDGMENTS; i++) good += schema_valid(schema, values[i]));
  must(good == 200 * JUDGMENTS, "a judgment was refused");
  printf("check  a judgment: %.1f ns, by hand %.1f ns: %.2f times (goal 2.5)\n",
         ours * 1e9 / JUDGMENTS, walk * 1e9 / JUDGMENTS, ours / walk);
}

/* --- extracting --- */

static void extract_once(struct str text) {
  struct extract_result r;
  (void)extract(text.p, text.n, NULL, &r);
  extract_result_deinit(&r);
}

/* Texts of so many bytes, a piece again and again; a tree is an array of pieces. */
static void extracting(void) {
  static const struct {
    const char *what, *piece;
    size_t bytes;
    bool tree;
  } cases[] = {
      {"plain prose",
       "The quick review found nothing to change; every test passes, and the build is clean on "
       "both compilers. It\xE2\x80\x99s ready.\n",
       SCAN_BYTES, false},
      {"prose with markdown",
       "See `main.c` and [the notes](docs/notes.md) for **details**, x < y, and the {option} "
       "switch; the rest of this long line is text.\n",
       SCAN_BYTES, false},
      {"a tree of objects",
       ",{\"id\":17,\"name\":\"item \\\"17\\\" {x}\",\"tags\":[\"a\",\"b\"],\"score\":1.97,"
       "\"note\":\"a longer text that is there to be copied, with a brace } and more\"}",
       TREE_BYTES, true},
      {"a tree of strings",
       ",\"A paragraph of text such as a model writes into a string. It has no escapes but runs on "
       "for a while, so that copying is what it costs to read it.\"",
       TREE_BYTES, true}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct buf text = {0};
    buf_puts(&text, cases[i].tree ? "[0" : "");
    while (text.n < cases[i].bytes)
      buf_puts(&text, cases[i].piece);
    buf_puts(&text, cases[i].tree ? "]" : "");
    double ours = BEST(RUNS, extract_once(buf_view(&text)));
    printf("extract %-20s %7.0f MB/s", cases[i].what, (double)text.n / ours / 1e6);
    if (cases[i].tree)
      printf(", %.2f times json_loads (goal 1.50)\n",
             BEST(RUNS, json_decref(json_loadb(text.p, text.n, 0, NULL))) / ours);
    else
      printf(" (goal 900)\n");
    buf_deinit(&text);
  }
}

/* --- schemas --- */

enum form { PROMPT_EN, PROMPT_JA, TYPES, JSON, JSON_BARE, EXAMPLE, FORMS };
static const char *const form_names[FORMS] = {"prompt", "Japanese", "types",
                                              "JSON",   "bare",     "example"};

/* The text, NULL if there is none. */
static char *render(const struct schema *schema, enum form form) {
  const enum describe_language language = form == PROMPT_JA ? DESCRIBE_JAPANESE : DESCRIBE_ENGLISH;
  char *text = NULL;
  bool ok;
  if (form <= PROMPT_JA)
    ok = describe_prompt(schema, language, &text) == SCHEMA_OK;
  else if (form == TYPES)
    ok = describe_types(schema, &text) == SCHEMA_OK;
  else if (form == EXAMPLE)
    ok = example_anchor(schema, language, &text) == EXAMPLE_OK;
  else
    ok = describe_json(schema, form == JSON, &text) == SCHEMA_OK;
  return ok ? text : NULL;
}

static void convert(const json_t *doc) {
  struct gbnf_result result;
  must(gbnf_convert(doc, NULL, &result) != GBNF_INVALID_SCHEMA, "a grammar");
  gbnf_result_deinit(&result);
}

/* Estimated tokens of each rendering, and the milliseconds that it takes. */
static void tell(const char *name, const json_t *doc) {
  struct schema *schema = NULL;
  char *indented = json_dumps(doc, JSON_INDENT(2));
  double ms = 1e3 * BEST(RUNS, schema_free(schema); schema = schema_compile(doc, NULL, NULL, NULL));
  must(schema != NULL, name);
  printf("%-27s %6zu bytes: compile %.2f, grammar %.2f ms (goal 20)\n"
         "  tokens and ms: indented %zu",
         name, strlen(indented), ms, 1e3 * BEST(RUNS, convert(doc)), describe_tokens(indented));
  for (enum form form = PROMPT_EN; form < FORMS; form++) {
    char *text = NULL;
    ms = 1e3 * BEST(RUNS, describe_free(text); text = render(schema, form));
    printf(", %s %zu %.2f", form_names[form], text ? describe_tokens(text) : 0, ms);
    describe_free(text);
  }
  printf("\n");
  free(indented);
  schema_free(schema);
}

static void library(char **words) {
  (void)words;
  checking();
  extracting();
  for (const struct resource *r = resource_table; r->name; r++) {
    json_t *doc = !strncmp(r->name, "schemas/", 8) ? json_loadb(r->p, r->n, 0, NULL) : NULL;
    if (doc)
      tell(r->name + 8, doc);
    json_decref(doc);
  }
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int words;
    void (*run)(char **words);
  } deeds[] = {{"list", 1, list},      {"read", 1, read_logs}, {"write", 4, write_all},
               {"fetch", 3, fetch},    {"append", 3, append},  {"spawn", 4, spawn},
               {"library", 0, library}};
  for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
    if (argc == deeds[i].words + 2 && strcmp(argv[1], deeds[i].name) == 0) {
      deeds[i].run(argv + 2);
      return 0;
    }
  die("usage: tests/bench/probe.c has it");
}
