/* find.h - which log a person means: a path, a whole id, a unique prefix of one, or `last`. A word
 * with a slash or .ndjson at its end is a path; any other is one when no id begins with it. */
#ifndef SEGUE_STORE_FIND_H
#define SEGUE_STORE_FIND_H

#include "base/err.h"

#include <stddef.h>

/* dir: the log folder. Writes the path of the log. */
bool store_find(const char *dir, const char *word, char *out, size_t out_bytes,
                struct err *err) MUST_CHECK;

#endif
