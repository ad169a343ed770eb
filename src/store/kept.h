/* kept.h - results that programs compute from the logs of a store and keep beside them: never the
 * truth, and rebuilt when missing. With files: audit/NAME below the logs.
 *
 *   store_kept_prepare(&store)              before the first stamp
 *   store_kept_get(&store, name, &bytes)    false: there is none written by this user
 *   store_kept_put(&store, name, bytes)     whole or not at all; not synced
 *   store_kept_stamp(&store)                changes when a log is added or removed; 0: not known
 */
#ifndef SEGUE_STORE_KEPT_H
#define SEGUE_STORE_KEPT_H

#include "store/store.h"

bool store_kept_get(const struct store *store, const char *name, struct buf *bytes) MUST_CHECK;
bool store_kept_put(const struct store *store, const char *name, struct str bytes);
int64_t store_kept_stamp(const struct store *store);
/* Makes the folder of such files. To do so later would change the stamp. */
void store_kept_prepare(const struct store *store);

#endif
