/* forge_ask.h - inside forge/: runs the forge's program with an environment made from nothing but
 * what its login needs. */
#ifndef SEGUE_CLI_FORGE_ASK_H
#define SEGUE_CLI_FORGE_ASK_H

#include "cli/forge/forge.h"
#include "host/git.h"

/* The same, whose answer is JSON; NULL: err is set. */
json_t *forge_json(const struct forge *f, const char *const *words, struct str input,
                   struct err *err);

#endif
