/* Says on stderr what the program has to say about itself. */
#include "base/log.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Writes one line, in which nothing steers a terminal: it may hold names of files and what programs
 * said. */
static void say(const char *before, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void say(const char *before, const char *fmt, va_list ap) {
  char raw[2048];
  buf_auto_t safe = {0};
  (void)vsnprintf(raw, sizeof raw, fmt, ap);
  buf_safe(&safe, str_from(raw), false);
  fprintf(stderr, "segue: %s%s\n", before, buf_c(&safe));
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
