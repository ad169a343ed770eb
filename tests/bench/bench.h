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

/* Measures two sides in turns, each going first in every other round; a round before them does not
 * count. The medians go to medians[2]; returns the median of side 0 over side 1, round by round. */
static inline double bench_pairs(int rounds, double (*run)(void *ctx, int side), void *ctx,
                                 double medians[2]) {
  double *got = xmalloc(3 * (size_t)rounds * sizeof *got);
  for (int i = -1; i < rounds; i++) {
    double pair[2];
    pair[i & 1] = run(ctx, i & 1);
    pair[!(i & 1)] = run(ctx, !(i & 1));
    for (int k = 0; i >= 0 && k < 3; k++)
      got[k * rounds + i] = k < 2 ? pair[k] : pair[0] / pair[1];
  }
  for (int k = 0; k < 2; k++)
    medians[k] = bench_quantile(got + k * rounds, (size_t)rounds, 0.5);
  double ratio = bench_quantile(got + 2 * rounds, (size_t)rounds, 0.5);
  free(got);
  return ratio;
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
  if (pipe(ends) != 0)
    die("no pipe");
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

#endif
