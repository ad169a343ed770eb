/* key.h - reads the key of a model API: from a variable of the environment, a file that nobody else
 * can read, or a program (key_command.h), named in the user's own configuration. It is read for
 * each call, wiped afterwards, and never part of a message. */
#ifndef SEGUE_PROVIDER_API_KEY_H
#define SEGUE_PROVIDER_API_KEY_H

#include "base/buf.h"
#include "provider/api/preset.h"

/* Appends the key to `out`, unless a program's is already there; appends nothing if none is set or
 * needed. False: err says what to set or what is wrong with the file. The first key that is read
 * switches core dumps of this process off. */
bool api_key_read(const struct api_config *config, struct buf *out, struct err *err) MUST_CHECK;
void api_key_wipe(struct buf *key);

#endif
