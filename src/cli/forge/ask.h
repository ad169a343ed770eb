/* ask.h - runs the forge's program with an environment made from nothing but what its login
 * needs; internal to forge/. */
#ifndef SEGUE_CLI_FORGE_ASK_H
#define SEGUE_CLI_FORGE_ASK_H

#include "cli/forge/forge.h"
#include "host/git.h"

/* Does the same for an answer in JSON; NULL: err is set. */
json_t *forge_json(const struct forge *f, const char *const *words, struct str input,
                   struct err *err);

#endif
