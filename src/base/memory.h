/* memory.h - memory that is never NULL: out of memory aborts, and the log makes that safe.
 *
 * Sizes that come from outside are checked against limits.h before they get here. */
#ifndef SEGUE_BASE_MEMORY_H
#define SEGUE_BASE_MEMORY_H

#include "base/err.h"

#include <stddef.h>

void *xmalloc(size_t n);
void *xcalloc(size_t count, size_t n);
void *xrealloc(void *p, size_t n);
/* Room for `need` items of `each` bytes, at least doubled when it grows:
 * list = xgrow(list, &capacity, count + 1, sizeof *list). */
void *xgrow(void *items, size_t *capacity, size_t need, size_t each);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *text_copy(const char *s); /* NULL gives NULL */
void text_free(char **text);
/* Declares a text that is freed at the end of its block. */
#define char_auto_t AUTO(text_free) char

#endif
