/* bench.h - what the benches in C share: clocks, and the middle or the least of several runs.
 *
 * Every bench prints a line a figure, with its goal where there is one. */
#ifndef SEGUE_TESTS_BENCH_H
#define SEGUE_TESTS_BENCH_H

#include "base/buf.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static inline double bench_clock_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline double bench_now_s(void) {
  return bench_clock_s(CLOCK_MONOTONIC);
}

/* Processor time of this process. */
static inline double bench_cpu_s(void) {
  return bench_clock_s(CLOCK_PROCESS_CPUTIME_ID);
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

#endif
