/* floor - what any program has to do that keeps sessions as files, and nothing else:
 *
 *   floor list FOLDER      reads its names, and each one's size and time; prints how many there are
 *   floor read FOLDER      reads its logs, hashes each line in its chain, looks at each byte
 *   floor write LOG FOLDER COUNT THREADS
 *       writes the log again and again under other names, as a session would: what belongs together
 *       at once, each time synced, the folder after the first and the last; prints the seconds and
 *       the processor milliseconds of that */
#include "base/file.h"
#include "bench.h"
#include "store/line.h"
#include "store/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

enum { MAX_BATCHES = 4096, MAX_THREADS = 64 };

static void floor_list(const char *folder) {
  struct stat st;
  long n = 0;
  DIR *d = opendir(folder);
  bench_must(d != NULL, folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    n += fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
  closedir(d);
  printf("%ld\n", n);
}

static void floor_read(const char *folder) {
  struct store store;
  struct store_id *ids = NULL;
  size_t count = 0;
  unsigned long long seen = 0;
  struct err err;
  store_at(&store, folder);
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

static void write_log(long number) {
  char name[64];
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

static void *write_logs(void *unused) {
  long number;
  while ((number = atomic_fetch_add(&job.next, 1)) < job.count)
    write_log(number);
  return unused;
}

static void floor_write(const char *log, const char *folder, long count, long threads) {
  pthread_t ids[MAX_THREADS];
  struct err err;
  bench_must(threads > 0 && threads <= MAX_THREADS, "THREADS");
  bench_try(file_read(log, SIZE_MAX / 2, &job.bytes, &err), &err);
  find_batches();
  job.count = count;
  bench_must(mkdir(folder, 0700) == 0 && (job.folder = open(folder, O_RDONLY)) >= 0, folder);
  double begin = bench_now_s(), used = bench_cpu_s();
  for (long i = 0; i < threads; i++)
    bench_must(pthread_create(&ids[i], NULL, write_logs, NULL) == 0, "pthread_create");
  for (long i = 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  printf("%.6f %.3f\n", bench_now_s() - begin, (bench_cpu_s() - used) * 1e3);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "list") == 0)
    floor_list(argv[2]);
  else if (argc == 3 && strcmp(argv[1], "read") == 0)
    floor_read(argv[2]);
  else if (argc == 6 && strcmp(argv[1], "write") == 0)
    floor_write(argv[2], argv[3], strtol(argv[4], NULL, 10), strtol(argv[5], NULL, 10));
  else
    die("usage: floor list|read FOLDER, floor write LOG FOLDER COUNT THREADS");
  return 0;
}
