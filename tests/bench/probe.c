/* probe - the least that anybody must do, for segue to be compared with; and what rooms do without
 * the program around them:
 *
 *   probe list FOLDER      reads its names, and each one's size and time; prints how many there are
 *   probe read FOLDER      reads its logs, hashes each line in its chain, looks at each byte
 *   probe write LOG FOLDER COUNT THREADS END...
 *       writes the log again and again under other names, as a session would: the bytes up to each
 *       END at once, each time synced, the folder after the first and the last; prints the seconds
 *       and the processor milliseconds of that
 *   probe append STORE LOGS BATCHES
 *       appends batches of 3 lines of 500 bytes to so many logs at once; prints batches a second
 *   probe spawn AT_ONCE COUNT
 *       starts /bin/true under the shim and collects it, with no more than is needed; prints how
 *       many a second
 *   probe check SCHEMA     checks judgments; prints the seconds, and those that it takes by hand
 *   probe extract FILE     extracts from a text; prints the seconds, and those of jansson */
#include "base/file.h"
#include "base/log.h"
#include "core/record.h"
#include "extract/extract.h"
#include "format/json_object.h"
#include "os/loop.h"
#include "os/process.h"
#include "schema/schema.h"
#include "shim/protocol.h"
#include "store/reader.h"
#include "store/record_line.h"
#include "store/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { MAX_THREADS = 64, LINES = 3, LINE_BYTES = 500, RUNS = 30, JUDGMENTS = 1000 };

static void must(bool ok, const char *what) {
  if (!ok)
    die("%s: %s", what, strerror(errno));
}

static void try(bool ok, const struct err *err) {
  if (!ok)
    die("%s", err->text);
}

static double now_s(void) {
  return (double)uv_hrtime() / 1e9;
}

/* Processor time of this process. */
static double cpu_s(void) {
  return (double)clock() / CLOCKS_PER_SEC;
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
    memcpy(hash, record_line_first_hash, sizeof hash);
    try(reader_open(&r, &ref, &err), &err);
    while (reader_next(&r, &line)) {
      try(record_line_check(line, hash, next, &err), &err);
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
  char **ends; /* of batches, as words; NULL behind the last */
  int folder;
  long count;
  atomic_long next;
} job;

static void *write_logs(void *unused) {
  char name[64];
  for (long number; (number = atomic_fetch_add(&job.next, 1)) < job.count;) {
    print_into(name, sizeof name, "%ld.ndjson", number);
    int fd = openat(job.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
    must(fd >= 0, name);
    size_t from = 0;
    for (char **end = job.ends; *end; end++) {
      size_t n = (size_t)number_of(*end) - from;
      must(write(fd, job.bytes.p + from, n) == (ssize_t)n && fdatasync(fd) == 0, name);
      if (from == 0 || end[1] == NULL)
        must(fsync(job.folder) == 0, "the folder");
      from += n;
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
  job.ends = words + 4;
  job.count = number_of(words[2]);
  must(mkdir(words[1], 0700) == 0 && (job.folder = open(words[1], O_RDONLY)) >= 0, words[1]);
  double begin = now_s(), used = cpu_s();
  for (long i = 0; i < threads; i++)
    must(pthread_create(&ids[i], NULL, write_logs, NULL) == 0, "pthread_create");
  for (long i = 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  printf("%.6f %.3f\n", now_s() - begin, (cpu_s() - used) * 1e3);
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
  record_begin(&d, seq, STR("2026-01-01T00:00:00.000Z"),
               seq == 1 ? RECORD_SESSION_START : RECORD_CALL_EVENT);
  record_put_text(&d, MEMBER_SESSION, str_from(id));
  record_put_text(&d, MEMBER_TEXT, buf_view(&job.bytes));
  return record_keep(&d);
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
    print_into(w->id, sizeof w->id, "0199000a-0000-7000-8000-%012x", (unsigned)i);
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

enum { BARE_OUT, BARE_ERR, BARE_STATUS, BARE_CONTROL, BARE_PIPES, MAX_AT_ONCE = 16 };
struct bare_call {
  pid_t pid;
  int fds[BARE_PIPES]; /* our ends */
};

/* Returns what to wait for: the shim's words. */
static struct pollfd bare_start(struct bare_call *call, const char *shim) {
  static const int shim_fds[] = {1, 2, SHIM_FD_STATUS, SHIM_FD_CONTROL};
  const char *argv[] = {SHIM_PROTOCOL, "0", "/bin/true", NULL};
  int theirs[BARE_PIPES];
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  (void)posix_spawn_file_actions_init(&actions);
  (void)posix_spawnattr_init(&attr);
  (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
  for (int i = 0; i < BARE_PIPES; i++) {
    int ends[2], our_end = i == BARE_CONTROL;
    must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    theirs[i] = ends[!our_end];
    call->fds[i] = ends[our_end];
    (void)posix_spawn_file_actions_adddup2(&actions, theirs[i], shim_fds[i]);
  }
  must(posix_spawn(&call->pid, shim, &actions, &attr, (char *const *)argv, environ) == 0,
       "posix_spawn");
  (void)posix_spawn_file_actions_destroy(&actions);
  for (int i = 0; i < BARE_PIPES; i++)
    (void)close(theirs[i]);
  return (struct pollfd){.fd = call->fds[BARE_STATUS], .events = POLLIN};
}

/* Takes in what the shim says: at the program's exit it is to end what is left. Returns true when
 * it has said its last word and the call is collected. */
static bool bare_step(struct bare_call *call) {
  struct shim_message m;
  siginfo_t info;
  if (read(call->fds[BARE_STATUS], &m, sizeof m) > 0) {
    if (m.type == SHIM_EXITED)
      (void)close(call->fds[BARE_CONTROL]);
    return false;
  }
  for (int i = BARE_OUT; i <= BARE_STATUS; i++) {
    while (read(call->fds[i], &m, sizeof m) > 0)
      ;
    (void)close(call->fds[i]);
  }
  must(waitid(P_PID, (id_t)call->pid, &info, WEXITED) == 0, "waitid");
  return true;
}

static void spawn(char **words) {
  struct bare_call calls[MAX_AT_ONCE];
  struct pollfd status[MAX_AT_ONCE];
  char shim[4096];
  struct err err;
  long at_once = number_of(words[0]), count = number_of(words[1]), begun = 0, ended = 0;
  must(at_once <= MAX_AT_ONCE && at_once <= count, "so many");
  try(process_find_shim(shim, sizeof shim, &err), &err);
  while (open("/dev/null", O_RDWR | O_CLOEXEC) < SHIM_FD_STATUS)
    ; /* no pipe gets one of the shim's numbers */
  double begin = now_s();
  for (; begun < at_once; begun++)
    status[begun] = bare_start(&calls[begun], shim);
  while (ended < count) {
    must(poll(status, (nfds_t)at_once, -1) > 0, "poll");
    for (long i = 0; i < at_once; i++) {
      if (status[i].revents == 0 || !bare_step(&calls[i]))
        continue;
      ended++;
      status[i].fd = -1;
      if (begun++ < count)
        status[i] = bare_start(&calls[i], shim);
    }
  }
  printf("%.1f\n", (double)count / (now_s() - begin));
}

/* --- the library --- */

/* The least time of a statement, in seconds. */
#define BEST(statement)                                                                            \
  ({                                                                                               \
    double best_ = 1e9;                                                                            \
    for (int i_ = 0; i_ < RUNS; i_++) {                                                            \
      double begin_ = now_s();                                                                     \
      statement;                                                                                   \
      double took_ = now_s() - begin_;                                                             \
      best_ = took_ < best_ ? took_ : best_;                                                       \
    }                                                                                              \
    best_;                                                                                         \
  })

/* Checks a judgment by hand: a step of 0 to 2 and a reason, no other member. */
static bool judgment_walk(const json_t *value) {
  bool step = false, reason = false;
  JSON_MEMBERS(value, key, member) {
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

static void check(char **words) {
  static json_t *values[JUDGMENTS];
  struct schema *schema = schema_compile(json_loads(words[0], 0, NULL), NULL, NULL, NULL);
  size_t good = 0;
  for (int i = 0; i < JUDGMENTS; i++)
    values[i] = json_pack("{si ss}", "step", i % 3, "reason", "the tests pass and nothing is left");
  double walk = BEST(for (int i = 0; i < JUDGMENTS; i++) good += judgment_walk(values[i]));
  double ours = BEST(for (int i = 0; i < JUDGMENTS; i++) good += schema_valid(schema, values[i]));
  must(good == 2 * RUNS * JUDGMENTS, "a judgment is refused");
  printf("%.9f %.9f\n", ours, walk);
}

static void extract_once(struct str text) {
  struct extract_result r;
  (void)extract(text.p, text.n, NULL, &r);
  extract_result_deinit(&r);
}

static void extract_text(char **words) {
  struct buf text = {0};
  struct err err;
  try(file_read(words[0], SIZE_MAX / 2, &text, &err), &err);
  double ours = BEST(extract_once(buf_view(&text)));
  double jansson = BEST(json_decref(json_loadb(text.p, text.n, 0, NULL)));
  printf("%.9f %.9f\n", ours, jansson);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int words;
    void (*run)(char **words);
  } deeds[] = {{"list", 1, list},           {"read", 1, read_logs}, {"write", 4, write_all},
               {"append", 3, append},       {"spawn", 2, spawn},    {"check", 1, check},
               {"extract", 1, extract_text}};
  for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
    if (argc >= deeds[i].words + 2 && strcmp(argv[1], deeds[i].name) == 0) {
      deeds[i].run(argv + 2);
      return 0;
    }
  die("usage: tests/bench/probe.c has it");
}
