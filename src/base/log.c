#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void log_warn(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fputs("segue: ", stderr);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
}

void die(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fputs("segue: ", stderr);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
  exit(1);
}

void bug_at(const char *file, int line, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "segue: bug at %s:%d: ", file, line);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
  abort();
}

static void *check(void *p) {
  if (p == NULL) {
    fputs("segue: out of memory\n", stderr);
    abort();
  }
  return p;
}

void *xmalloc(size_t n) {
  return check(malloc(n ? n : 1));
}

void *xcalloc(size_t count, size_t n) {
  return check(calloc(count ? count : 1, n ? n : 1));
}

void *xrealloc(void *p, size_t n) {
  return check(realloc(p, n ? n : 1));
}

char *xstrdup(const char *s) {
  return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n) {
  char *copy = xmalloc(n + 1);
  memcpy(copy, s, n);
  copy[n] = '\0';
  return copy;
}
