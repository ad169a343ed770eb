/* bench.h - what the benches share: clocks, the middle of several runs, memory, folders, children.
 *
 * Every bench prints a line a figure, with its goal where there is one. What is compared takes
 * turns, so that a busy moment hits both sides. */
#ifndef SEGUE_TESTS_BENCH_H
#define SEGUE_TESTS_BENCH_H

#include "base/buf.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline void bench_must(bool ok, const char *what) {
  if (!ok)
    die("%s: %s", what, strerror(errno));
}

static inline void bench_try(bool ok, const struct err *err) {
  if (!ok)
    die("%s", err->text);
}

static inline double bench_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time; who: RUSAGE_SELF, RUSAGE_CHILDREN. */
static inline double bench_cpu_s(int who) {
  struct rusage u;
  getrusage(who, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static inline int bench_by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts them. */
static inline double bench_quantile(double *values, size_t n, double q) {
  qsort(values, n, sizeof *values, bench_by_value);
  return values[(size_t)(q * (double)(n - 1) + 0.5)];
}

/* Two sides that were measured in turns: their medians, and side 0 over side 1, round by round. */
struct bench_pair {
  double side[2];
  double ratio, low, high; /* the median, the least, the greatest */
};

/* Each side goes first in every other round. Side 1 begins the round before them, which does not
 * count. */
static inline struct bench_pair bench_pairs(int rounds, double (*run)(void *ctx, int side),
                                            void *ctx) {
  struct bench_pair p;
  size_t n = (size_t)rounds;
  double *got = xmalloc(3 * n * sizeof *got);
  for (int i = -1; i < rounds; i++) {
    double pair[2];
    pair[i & 1] = run(ctx, i & 1);
    pair[!(i & 1)] = run(ctx, !(i & 1));
    for (int k = 0; i >= 0 && k < 3; k++)
      got[k * rounds + i] = k < 2 ? pair[k] : pair[0] / pair[1];
  }
  for (size_t k = 0; k < 2; k++)
    p.side[k] = bench_quantile(got + k * n, n, 0.5);
  p.ratio = bench_quantile(got + 2 * n, n, 0.5);
  p.low = got[2 * n];
  p.high = got[3 * n - 1];
  free(got);
  return p;
}

/* The least time of a statement, in seconds: it is run `runs` times. */
#define BENCH_BEST(runs, statement)                                                                \
  ({                                                                                               \
    double bench_best = 1e9;                                                                       \
    for (int bench_i = 0; bench_i < (runs); bench_i++) {                                           \
      double bench_begin = bench_now_s();                                                          \
      statement;                                                                                   \
      double bench_took = bench_now_s() - bench_begin;                                             \
      bench_best = bench_took < bench_best ? bench_took : bench_best;                              \
    }                                                                                              \
    bench_best;                                                                                    \
  })

/* The sum of a field of a file of /proc/PID, such as "status", "VmRSS:"; 0: it is not there. */
static inline long bench_kib(pid_t pid, const char *file, const char *field) {
  char path[64], line[256];
  long kib = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, field, strlen(field)) == 0)
      kib += strtol(line + strlen(field), NULL, 10);
  if (f)
    fclose(f);
  return kib;
}

/* Runs it in a process of its own, whose memory and descriptors are its own too. */
static inline double bench_apart(double (*run)(const void *), const void *ctx) {
  int ends[2], status;
  double result = -1;
  bench_must(pipe(ends) == 0, "pipe");
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    result = run(ctx);
    fflush(stdout);
    _exit(write(ends[1], &result, sizeof result) != (ssize_t)sizeof result);
  }
  close(ends[1]);
  if (read(ends[0], &result, sizeof result) != (ssize_t)sizeof result ||
      waitpid(pid, &status, 0) != pid || status != 0)
    die("a measurement failed");
  close(ends[0]);
  return result;
}

/* A new folder below another one. */
static inline void bench_folder(char *path, size_t size, const char *below) {
  (void)snprintf(path, size, "%s/segue-bench-XXXXXX", below);
  bench_must(mkdtemp(path) != NULL, path);
}

/* Runs a command of the shell in the folder. */
static inline void bench_shell(const char *folder, const char *command) {
  char text[500];
  (void)snprintf(text, sizeof text, "cd '%s' && %s", folder, command);
  bench_must(system(text) == 0, text);
}

static inline void bench_remove(const char *folder) {
  bench_shell(folder, "rm -rf \"$PWD\"");
}

/* The JSON Schema of a judge's answer. */
static const char bench_judgment[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\",\"enum\":[0,1,2]},"
    "\"reason\":{\"type\":\"string\"}},\"required\":[\"step\",\"reason\"],"
    "\"additionalProperties\":false}";

#endif
