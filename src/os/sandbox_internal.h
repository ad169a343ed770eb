/* sandbox_internal.h - a sandbox that is another program's words: for the files of sandbox_*. */
#ifndef SEGUE_OS_SANDBOX_INTERNAL_H
#define SEGUE_OS_SANDBOX_INTERNAL_H

#include "base/arena.h"
#include "os/sandbox.h"

/* Makes such a sandbox. held: of enum shim_held. It takes the arena in which the words are. */
struct sandbox *sandbox_of_words(unsigned held, struct arena **arena);
/* Before the program's own, NULL-ended; envp NULL: the program's. */
void sandbox_set_words(struct sandbox *s, const char *const *words, const char *const *envp);

#endif
