/* placeholder.h - puts files where a sandboxed program must not create its own, while it runs.
 *
 * A mount can only protect a path that exists. So a file that does nothing is made there, and is
 * removed when the last call that needs it has ended, in this process or in another: each holds a
 * shared lock on it. One left by a process that was killed is removed by the next call.
 *
 *   placeholder_add(&list, path, text)    before the program starts
 *   stand_ins_free(list)               when the program has ended */
#ifndef SEGUE_PROVIDER_PLACEHOLDER_H
#define SEGUE_PROVIDER_PLACEHOLDER_H

#include "base/str.h"

struct placeholder;

/* A file that is there with another text stays as it is. *list begins as NULL. */
void placeholder_add(struct placeholder **list, const char *path, struct str text);
void stand_ins_free(struct placeholder *list); /* NULL is fine */

#endif
