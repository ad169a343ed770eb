/* audit_api.h - GET /v1/audit: counts the judgments of the daemon's logs, with the filters of the
 * command. */
#ifndef SEGUE_DAEMON_AUDIT_API_H
#define SEGUE_DAEMON_AUDIT_API_H

#include "daemon/read_job.h"
#include "store/store.h"

extern const char *const audit_api_query[]; /* the arguments that it takes */
void audit_api_take(struct read_jobs *rs, struct server_request *r, const struct store *store);

#endif
