/* Says on stderr what the program has to say about itself; allocates, or aborts. */
#include "base/log.h"

#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes one line, in which nothing steers a terminal: it may hold names of files and what programs
 * said. */
static void say(const char *before, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void say(const char *before, const char *fmt, va_list ap) {
  char raw[2048];
  struct buf safe = {0};
  (void)vsnprintf(raw, sizeof raw, fmt, ap);
  buf_safe(&safe, str_from(raw), false);
  fprintf(stderr, "segue: %s%s\n", before, buf_c(&safe));
  buf_deinit(&safe);
}

void log_warn(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  say("", fmt, ap);
  va_end(ap);
}

void die(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  say("", fmt, ap);
  va_end(ap);
  exit(1);
}

void bug_at(const char *file, int line, const char *fmt, ...) {
  char place[128];
  va_list ap;
  print_into(place, sizeof place, "bug at %s:%d: ", file, line);
  va_start(ap, fmt);
  say(place, fmt, ap);
  va_end(ap);
  abort();
}

static void *log_check(void *p) {
  if (p == NULL) {
    fputs("segue: out of memory\n", stderr);
    abort();
  }
  return p;
}

void *xmalloc(size_t n) {
  return log_check(malloc(n ? n : 1));
}

void *xcalloc(size_t count, size_t n) {
  return log_check(calloc(count ? count : 1, n ? n : 1));
}

void *xrealloc(void *p, size_t n) {
  return log_check(realloc(p, n ? n : 1));
}

void *xgrow(void *items, size_t *capacity, size_t need, size_t each) {
  assert(each > 0);
  if (need <= *capacity)
    return items;
  size_t wanted = *capacity ? *capacity * 2 : 8;
  while (wanted < need)
    wanted *= 2;
  assert(wanted <= SIZE_MAX / 2 / each);
  *capacity = wanted;
  return xrealloc(items, wanted * each);
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

void text_free(char **text) {
  free(*text);
}
