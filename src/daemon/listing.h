/* listing.h - GET /v1/sessions, one session that is not in memory, and the inbox, read in the pool.
 *
 *   listing_take(&readings, request, shelf, sessions, &wanted, limit)    the request is kept and
 *                                                                        answered
 *   listing_take_one(&readings, request, sessions, id)            the same, with one session
 *   listing_take_inbox(&readings, request, shelf, sessions)       GET /v1/inbox
 *
 * wanted: already checked; its texts are copied, as are `text`, `sort` and `before` of the request.
 * The state of the sessions is copied first, on the loop, and that of running ones in full, since
 * memory is newer than their logs. Sorted lists have a single page. What the shelf keeps of the
 * folder is used, and brought up to date, if no other list has it just then. */
#ifndef SEGUE_DAEMON_LISTING_H
#define SEGUE_DAEMON_LISTING_H

#include "daemon/reading.h"
#include "daemon/sessions.h"
#include "store/select.h"

void listing_take(struct readings *rs, struct server_request *r, struct shelf *shelf,
                  const struct sessions *ss, const struct select *wanted, size_t limit);
void listing_take_one(struct readings *rs, struct server_request *r, const struct sessions *ss,
                      const char *id);
void listing_take_inbox(struct readings *rs, struct server_request *r, struct shelf *shelf,
                        const struct sessions *ss);

#endif
