/* key_leak.h - refuses a session whose own texts hold one of the user's keys, before they are
 * logged.
 *
 * What providers say is searched for secrets as it comes in (provider/redact.h). Task, workflow and
 * facets are logged as they are and sent to models: a key in them is most likely a mistake, which
 * nothing can undo later. It looks for the secrets of this process's environment and for words that
 * look like a vendor's key. */
#ifndef SEGUE_HOST_KEY_LEAK_H
#define SEGUE_HOST_KEY_LEAK_H

#include "base/err.h"
#include "base/str.h"

#include <jansson.h>

/* `doc`: a resolved workflow, or NULL. declared: names of variables that are secret whatever their
 * name suggests, or NULL. The error says which key is where, and gives `insist`, the words that let
 * it pass. */
bool keys_check(const json_t *doc, struct str task, const char *const *declared, const char *insist,
                struct err *err) MUST_CHECK;

#endif
