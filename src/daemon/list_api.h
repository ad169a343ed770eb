/* list_api.h - GET /v1/sessions, one session that is not in memory, and the inbox, read in the
 * pool.
 *
 *   list_api_take(&readings, request, sessions, &wanted, limit)    the request is kept and
 *                                                                        answered
 *   list_api_take_one(&readings, request, sessions, id)            the same, with one session
 *   list_api_take_inbox(&readings, request, sessions)       GET /v1/inbox
 *
 * wanted: already checked; its texts are copied, as are `text`, `sort` and `before` of the request.
 * The state of the sessions is copied first, on the loop, and that of running ones in full, since
 * memory is newer than their logs. Sorted lists have a single page. */
#ifndef SEGUE_DAEMON_LIST_API_H
#define SEGUE_DAEMON_LIST_API_H

#include "daemon/read_job.h"
#include "daemon/sessions.h"
#include "store/filter.h"

void list_api_take(struct read_jobs *rs, struct server_request *r, const struct sessions *ss,
                   const struct filter *wanted, size_t limit);
void list_api_take_one(struct read_jobs *rs, struct server_request *r, const struct sessions *ss,
                       const char *id);
void list_api_take_inbox(struct read_jobs *rs, struct server_request *r, const struct sessions *ss);

#endif
