/* log.h - what the program says about itself, on stderr; and the two ways it ends in trouble.
 *
 * Each message is one line, made safe for a terminal (buf_safe). `die` is for "cannot start" (exit
 * 1), BUG for what can only be our own mistake (abort: the log makes that safe). Out of memory
 * aborts, so allocation helpers never return NULL; sizes that come from outside are checked against
 * limits.h before they get here. */
#ifndef SEGUE_BASE_LOG_H
#define SEGUE_BASE_LOG_H

#include "base/err.h"

#include <stddef.h>

void log_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
void die(const char *fmt, ...) PRINTF_LIKE(1, 2) NORETURN;
void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4) NORETURN;
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

void *xmalloc(size_t n);
void *xcalloc(size_t count, size_t n);
void *xrealloc(void *p, size_t n);
/* Room for `need` items of `each` bytes, at least doubled when it grows:
 * list = xgrow(list, &capacity, count + 1, sizeof *list). */
void *xgrow(void *items, size_t *capacity, size_t need, size_t each);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
void text_free(char **text);
/* Declares a text that is freed at the end of its block. */
#define char_auto_t AUTO(text_free) char

#endif
