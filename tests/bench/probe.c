/* probe - the least that anybody must do, for segue to be compared with, and appends to a store:
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
 *       appends batches of 3 lines of 500 bytes to so many logs at once; prints batches a second */
#include "base/file.h"
#include "bench.h"
#include "core/record.h"
#include "http/curl_load.h"
#include "os/loop.h"
#include "store/line.h"
#include "store/reader.h"
#include "store/worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/stat.h>

enum { MAX_BATCHES = 4096, MAX_THREADS = 64, MAX_READY = 64, LINES = 3, LINE_BYTES = 500 };

static long number_of(const char *word) {
  long n = strtol(word, NULL, 10);
  bench_must(n > 0, word);
  return n;
}

static void list(char **words) {
  struct stat st;
  long n = 0;
  DIR *d = opendir(words[0]);
  bench_must(d != NULL, words[0]);
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
  bench_try(store_list(&store, &ids, &count, &err), &err);
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    struct log_reader r;
    struct str line;
    char hash[SHA256_HEX], next[SHA256_HEX];
    store_ref(&store, ids[i].id, &ref);
    memcpy(hash, line_first_hash, sizeof hash);
    bench_try(reader_open(&r, &ref, &err), &err);
    while (reader_next(&r, &line)) {
      bench_try(line_check(line, hash, next, &err), &err);
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
        bench_must(job.batches < MAX_BATCHES, "so many batches");
        job.ends[job.batches++] = (size_t)(end + 1 - job.bytes.p);
      }
  }
}

static void *write_logs(void *unused) {
  char name[64];
  for (long number; (number = atomic_fetch_add(&job.next, 1)) < job.count;) {
    (void)snprintf(name, sizeof name, "%ld.ndjson", number);
    int fd = openat(job.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
    bench_must(fd >= 0, name);
    for (size_t b = 0, from = 0; b < job.batches; from = job.ends[b++]) {
      size_t n = job.ends[b] - from;
      bench_must(write(fd, job.bytes.p + from, n) == (ssize_t)n && fdatasync(fd) == 0, name);
      if (b == 0 || b == job.batches - 1)
        bench_must(fsync(job.folder) == 0, "the folder");
    }
    close(fd);
  }
  return unused;
}

static void write_all(char **words) {
  pthread_t ids[MAX_THREADS];
  long threads = number_of(words[3]);
  struct err err;
  bench_must(threads <= MAX_THREADS, "THREADS");
  bench_try(file_read(words[0], SIZE_MAX / 2, &job.bytes, &err), &err);
  find_batches();
  job.count = number_of(words[2]);
  bench_must(mkdir(words[1], 0700) == 0 && (job.folder = open(words[1], O_RDONLY)) >= 0, words[1]);
  double begin = bench_now_s(), used = bench_cpu_s();
  for (long i = 0; i < threads; i++)
    bench_must(pthread_create(&ids[i], NULL, write_logs, NULL) == 0, "pthread_create");
  for (long i = 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  printf("%.6f %.3f\n", bench_now_s() - begin, (bench_cpu_s() - used) * 1e3);
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
  bench_try(bare.curl != NULL, &err);
  bare.curl->global_init(CURL_GLOBAL_DEFAULT);
  bare.multi = bare.curl->multi_init();
  bare.epoll = epoll_create1(EPOLL_CLOEXEC);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_TIMERFUNCTION, on_timer);
  bare.curl->multi_setopt(bare.multi, CURLMOPT_MAXCONNECTS, at_once + 16);
  double begin = bench_cpu_s();
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
      bench_must(m->data.result == CURLE_OK, words[0]);
      bare.curl->multi_remove_handle(bare.multi, easy);
      ended++;
      if (begun++ < total)
        bare.curl->multi_add_handle(bare.multi, easy);
    }
  }
  printf("%.3f\n", (bench_cpu_s() - begin) * 1e6 / (double)total);
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
  bench_try(result == STORE_OK, err);
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
  bench_try(worker_be(&options, &err) && store_open(&store, words[0], &err) &&
                loop_init(&loop, &err),
            &err);
  while (job.bytes.n < LINE_BYTES - 180)
    buf_puts(&job.bytes, "x");
  for (long i = 0; i < logs; i++) {
    struct writer *w = &writers[i];
    (void)snprintf(w->id, sizeof w->id, "0199000a-0000-7000-8000-%012x", (unsigned)i);
    w->log = store_create(&store, w->id, &err);
    bench_try(w->log != NULL, &err);
  }
  batches_left = batches;
  double begin = bench_now_s();
  for (long i = 0; i < logs; i++)
    write_next(&writers[i], STORE_OK, (struct str){0}, &err);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  printf("%.1f\n", (double)batches / (bench_now_s() - begin));
  for (long i = 0; i < logs; i++)
    store_close(writers[i].log);
  free(writers);
  worker_leave_all();
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int words;
    void (*run)(char **words);
  } deeds[] = {{"list", 1, list},
               {"read", 1, read_logs},
               {"write", 4, write_all},
               {"fetch", 3, fetch},
               {"append", 3, append}};
  for (size_t i = 0; i < ARRAY_LEN(deeds); i++)
    if (argc == deeds[i].words + 2 && strcmp(argv[1], deeds[i].name) == 0) {
      deeds[i].run(argv + 2);
      return 0;
    }
  die("usage: tests/bench/probe.c has it");
}
