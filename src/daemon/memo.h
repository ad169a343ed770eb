/* memo.h - remembers from the last requests of one generation the workflows they spelled out and
 * the blobs known to be on disk, since clients submit the same ones again and again.
 *
 * A workflow is remembered once it was fully checked. Its hash is then known, so nothing writes to
 * it any more and threads may share it. One thread at a time. */
#ifndef SEGUE_DAEMON_MEMO_H
#define SEGUE_DAEMON_MEMO_H

#include "base/sha256.h"
#include "core/workflow.h"

#include <stdint.h>

struct memo;
struct memo *memo_new(void);
void memo_free(struct memo *memo); /* NULL is fine */

/* Returns a new reference, or NULL. */
struct workflow *memo_find(const struct memo *memo, const char key[SHA256_HEX]);
void memo_put(struct memo *memo, const char key[SHA256_HEX], struct workflow *workflow);

/* Was the workflow of that key found fit to run under the setting with this hash within
 * LIMIT_PREFLIGHT_FRESH_MS? now_ms: from any monotonic clock. */
bool memo_is_fit(const struct memo *memo, const char key[SHA256_HEX],
                 const char setting[SHA256_HEX], int64_t now_ms);
void memo_set_fit(struct memo *memo, const char key[SHA256_HEX], const char setting[SHA256_HEX],
                  int64_t now_ms);

bool memo_has_blob(const struct memo *memo, const char sha256[SHA256_HEX]);
void memo_put_blob(struct memo *memo, const char sha256[SHA256_HEX]);

#endif
