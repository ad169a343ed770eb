/* Writes a session's log again and again under other names, in five groups, each synced, the folder
 * after the first and the last: what any program does that keeps sessions as files.
 *
 * usage: submit_floor LOG FOLDER COUNT THREADS       prints seconds and processor milliseconds */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GROUPS = 5, MAX_THREADS = 64 };

static struct {
  char *bytes;
  size_t ends[GROUPS];
  const char *folder;
  int folder_fd;
  long count;
  atomic_long next;
} floor_work;

static void floor_die(const char *what) {
  perror(what);
  exit(1);
}

/* Cuts the log into groups of as many lines each. */
static void floor_read(const char *path) {
  struct stat st;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &st) != 0)
    floor_die(path);
  size_t n = (size_t)st.st_size, lines = 0, seen = 0, group = 0;
  floor_work.bytes = malloc(n);
  if (floor_work.bytes == NULL || read(fd, floor_work.bytes, n) != (ssize_t)n)
    floor_die(path);
  close(fd);
  for (size_t i = 0; i < n; i++)
    lines += floor_work.bytes[i] == '\n';
  for (size_t i = 0; i < n; i++) {
    seen += floor_work.bytes[i] == '\n';
    if (floor_work.bytes[i] == '\n' && seen == lines * (group + 1) / GROUPS)
      floor_work.ends[group++] = i + 1;
  }
}

static void floor_one(long number) {
  char name[64];
  (void)snprintf(name, sizeof name, "%ld.ndjson", number);
  int fd = openat(floor_work.folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
  if (fd < 0)
    floor_die(name);
  for (size_t g = 0, from = 0; g < GROUPS; from = floor_work.ends[g++]) {
    size_t n = floor_work.ends[g] - from;
    if (write(fd, floor_work.bytes + from, n) != (ssize_t)n || fdatasync(fd) != 0)
      floor_die(name);
    if ((g == 0 || g == GROUPS - 1) && fsync(floor_work.folder_fd) != 0)
      floor_die(floor_work.folder);
  }
  close(fd);
}

static void *floor_thread(void *unused) {
  long number;
  while ((number = atomic_fetch_add(&floor_work.next, 1)) < floor_work.count)
    floor_one(number);
  return unused;
}

static double floor_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  pthread_t threads[MAX_THREADS];
  if (argc != 5 || atoi(argv[4]) < 1 || atoi(argv[4]) > MAX_THREADS)
    return 2;
  floor_read(argv[1]);
  floor_work.folder = argv[2];
  floor_work.count = atol(argv[3]);
  if (mkdir(argv[2], 0700) != 0 || (floor_work.folder_fd = open(argv[2], O_RDONLY)) < 0)
    floor_die(argv[2]);
  double begin = floor_now();
  for (int i = 0; i < atoi(argv[4]); i++)
    if (pthread_create(&threads[i], NULL, floor_thread, NULL) != 0)
      floor_die("pthread_create");
  for (int i = 0; i < atoi(argv[4]); i++)
    pthread_join(threads[i], NULL);
  double took = floor_now() - begin;
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double ms = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
              (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
  printf("%.6f %.3f\n", took, ms);
  return 0;
}
