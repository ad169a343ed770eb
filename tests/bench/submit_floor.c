/* Writes a session's log again and again under other names, in five groups, each synced, the folder
 * after the first and the last: what any program does that keeps sessions as files.
 *
 * usage: submit_floor LOG FOLDER COUNT THREADS       prints seconds and processor milliseconds */
#include "base/file.h"
#include "bench.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

enum { GROUPS = 5, MAX_THREADS = 64 };

static struct {
  struct buf bytes;
  size_t ends[GROUPS];
  int folder;
  long count;
  atomic_long next;
} floor_work;

/* Cuts the log into groups of as many lines each. */
static void floor_read(const char *path) {
  struct err err;
  size_t lines = 0, seen = 0, group = 0;
  const struct buf *b = &floor_work.bytes;
  bench_try(file_read(path, SIZE_MAX / 2, &floor_work.bytes, &err), &err);
  for (size_t i = 0; i < b->n; i++)
    lines += b->p[i] == '\n';
  for (size_t i = 0; i < b->n; i++) {
    seen += b->p[i] == '\n';
    if (b->p[i] == '\n' && seen == lines * (group + 1) / GROUPS)
      floor_work.ends[group++] = i + 1;
  }
}

static void floor_one(long number) {
  char name[64];
  (void)snprintf(name, sizeof name, "%ld.ndjson", number);
  int fd = openat(floor_work.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
  bench_must(fd >= 0, name);
  for (size_t g = 0, from = 0; g < GROUPS; from = floor_work.ends[g++]) {
    size_t n = floor_work.ends[g] - from;
    bench_must(write(fd, floor_work.bytes.p + from, n) == (ssize_t)n && fdatasync(fd) == 0, name);
    bench_must((g > 0 && g < GROUPS - 1) || fsync(floor_work.folder) == 0, "the folder");
  }
  close(fd);
}

static void *floor_thread(void *unused) {
  long number;
  while ((number = atomic_fetch_add(&floor_work.next, 1)) < floor_work.count)
    floor_one(number);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t threads[MAX_THREADS];
  long n = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
  if (n < 1 || n > MAX_THREADS)
    return 2;
  floor_read(argv[1]);
  floor_work.count = strtol(argv[3], NULL, 10);
  bench_must(mkdir(argv[2], 0700) == 0 && (floor_work.folder = open(argv[2], O_RDONLY)) >= 0,
             argv[2]);
  double begin = bench_now_s();
  for (long i = 0; i < n; i++)
    bench_must(pthread_create(&threads[i], NULL, floor_thread, NULL) == 0, "pthread_create");
  for (long i = 0; i < n; i++)
    pthread_join(threads[i], NULL);
  printf("%.6f %.3f\n", bench_now_s() - begin, bench_cpu_s(RUSAGE_SELF) * 1e3);
  return 0;
}
