/* counts.h - GET /v1/audit: counts the judgments of the daemon's logs, with the filters of the
 * command. */
#ifndef SEGUE_DAEMON_COUNTS_H
#define SEGUE_DAEMON_COUNTS_H

#include "daemon/reading.h"
#include "store/store.h"

extern const char *const counts_query[]; /* the arguments that it takes */
void counts_take(struct readings *rs, struct server_request *r, const struct store *store);

#endif
