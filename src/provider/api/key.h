/* key.h - reads the key of a model API: from a variable of the environment, a file that nobody else
 * can read, or a program, named in the user's own configuration. It is read for each call, wiped
 * afterwards, and never part of a message.
 *
 * A program is one of the user's own: `pass show NAME`, a login helper.
 *
 *   if (!key_command_known(api, config, &key))
 *     key_command_ask(api, config, &waiter)     then waiter.done comes from the loop, once
 *   key_command_forget(api, config, key)        a server refused it: the next call asks again
 *   key_command_leave(api, &waiter)             true: done does not come; false: it will, soon
 *   key_commands_free(api)                      nobody waits; wipes what is kept
 *
 * It runs in the home folder, with segue's own environment and no input; the first line that it
 * prints is the key, kept in memory for as long as segue runs. All waiters with the same command
 * share one program. After a failure the next call asks again. */
#ifndef SEGUE_PROVIDER_API_KEY_H
#define SEGUE_PROVIDER_API_KEY_H

#include "provider/api/internal.h"

/* Appends the key to `out`, unless a program's is already there; appends nothing if none is set or
 * needed. False: err says what to set or what is wrong with the file. The first key that is read
 * switches core dumps of this process off. */
bool api_key_read(const struct api_config *config, struct buf *out, struct err *err) MUST_CHECK;
void api_key_wipe(struct buf *key);

struct key_waiter {
  struct key_waiter *next;
  /* Is called once. err: why there is no key; NULL: the key is known now. */
  void (*done)(struct key_waiter *waiter, const struct err *err);
  bool left;
};

/* Appends the key and returns true if a program has printed it before. */
bool key_command_known(const struct api *api, const struct api_config *config, struct buf *out);
void key_command_ask(struct api *api, const struct api_config *config, struct key_waiter *waiter);
bool key_command_leave(struct api *api, struct key_waiter *waiter);
void key_command_forget(struct api *api, const struct api_config *config, struct str key);
void key_commands_free(struct api *api);

#endif
