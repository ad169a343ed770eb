/* lookup.h - one session, for programs: GET .../view, .../turns, .../records and the like.
 *
 * The answers are those of `segue show ID --as view`, `segue show ID MOVEMENT#N --as view`, `segue
 * verify --json` and `segue compare --json`, or pieces of the log, read in the pool. A session is
 * read through its track (shelf.h), so that a second question costs only what it shows. */
#ifndef SEGUE_DAEMON_LOOKUP_H
#define SEGUE_DAEMON_LOOKUP_H

#include "daemon/reading.h"
#include "store/store.h"

enum lookup {
  LOOKUP_VIEW,
  LOOKUP_TURNS,
  LOOKUP_TURN,
  LOOKUP_CALL,
  LOOKUP_TEXT,
  LOOKUP_RECORDS,
  LOOKUP_FIND,
  LOOKUP_INTEGRITY
};

/* The request's parts and query say which piece; a wrong one is answered with an error. */
void lookup_take(struct readings *rs, struct server_request *r, struct shelf *shelf,
                 const struct store_ref *ref, enum lookup what);
/* Both sides in full, each named by an id, a unique prefix of one, or `last`. */
void lookup_compare(struct readings *rs, struct server_request *r, const struct store *store,
                    const char *a, const char *b);

extern const char *const lookup_page_query[]; /* after, limit */
extern const char *const lookup_text_query[]; /* ref, offset, limit */
extern const char *const lookup_find_query[]; /* text */

#endif
