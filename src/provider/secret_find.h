/* secret_find.h - which values in a program's environment and command line are secrets.
 *
 * A value is a secret by its name (it holds KEY, TOKEN, SECRET, PASSWORD or the like), by its form
 * (what vendors' keys begin with), or by its place: a password in an address, a member with such a
 * name in JSON. It does not matter how it got there: passed on from our environment, or written in
 * the user's settings or profile. */
#ifndef SEGUE_PROVIDER_SECRET_FIND_H
#define SEGUE_PROVIDER_SECRET_FIND_H

#include "provider/redact.h"

/* Looks through "NAME=value" entries; both lists are NULL-ended, or NULL. Values of `declared`
 * names are secrets whatever they look like. */
void secrets_find_in_environment(struct secrets *secrets, const char *const *envp,
                                 const char *const *declared);
/* Looks through words: "--api-key=VALUE", "--token" "VALUE", "x.api_key=VALUE", and keys that
 * stand alone. */
void secrets_find_in_words(struct secrets *secrets, const char *const *words);
/* Does the text hold a word that looks like a key of a well-known service? A key has letters,
 * digits and some length, so prose about keys (sk-..., ghp_YOURKEY) does not count. */
bool secret_is_written_in(struct str text);

#endif
