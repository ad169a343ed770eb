/* listing.h - GET /v1/sessions with text or sort, for which the logs are read: in the pool.
 *
 *   listing_take(&readings, request, sessions, &wanted, limit)    the request is kept and answered
 *
 * wanted: already checked; its texts are copied, as are `text`, `sort` and `before` of the request.
 * How the sessions stand is taken down first, on the loop. Sorted lists have no further page. */
#ifndef SEGUE_DAEMON_LISTING_H
#define SEGUE_DAEMON_LISTING_H

#include "daemon/reading.h"
#include "daemon/sessions.h"
#include "store/select.h"

void listing_take(struct readings *rs, struct server_request *r, const struct sessions *ss,
                  const struct select *wanted, size_t limit);

#endif
