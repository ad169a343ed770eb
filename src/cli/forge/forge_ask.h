/* forge_ask.h - inside forge/: runs the forge's program with an environment made from nothing but
 * what its login needs. */
#ifndef SEGUE_CLI_FORGE_ASK_H
#define SEGUE_CLI_FORGE_ASK_H

#include "cli/forge/forge.h"
#include "host/git.h"

/* words: NULL-ended, without the program. False: it failed, err has its words. The answer is the
 * caller's. */
bool forge_program(const struct forge *f, const char *const *words, struct str input,
                   struct git_answer *answer, struct err *err) MUST_CHECK;
/* The same, whose answer is JSON; NULL: err is set. */
json_t *forge_json(const struct forge *f, const char *const *words, struct str input,
                   struct err *err);

#endif
