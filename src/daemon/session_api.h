/* session_api.h - one session, for programs: GET .../view, .../turns, .../records and the like.
 *
 * The answers are those of `segue show ID --as view`, `segue show ID MOVEMENT#N --as view`, `segue
 * verify --json` and `segue compare --json`, or pieces of the log, read in the pool. A session is
 * read through its track (read_job.h), so that a second question costs only what it shows. */
#ifndef SEGUE_DAEMON_SESSION_API_H
#define SEGUE_DAEMON_SESSION_API_H

#include "daemon/read_job.h"
#include "store/store.h"

enum session_api {
  SESSION_API_VIEW,
  SESSION_API_TURNS,
  SESSION_API_TURN,
  SESSION_API_CALL,
  SESSION_API_TEXT,
  SESSION_API_RECORDS,
  SESSION_API_FIND,
  SESSION_API_INTEGRITY
};

/* The request's parts and query say which piece; a wrong one is answered with an error. */
void session_api_take(struct read_jobs *rs, struct server_request *r, struct view_cache *view_cache,
                      const struct store_ref *ref, enum session_api what);
/* Both sides in full, each named by an id, a unique prefix of one, or `last`. */
void session_api_compare(struct read_jobs *rs, struct server_request *r, const struct store *store,
                         const char *a, const char *b);

extern const char *const session_api_page_query[]; /* after, limit */
extern const char *const session_api_text_query[]; /* ref, offset, limit */
extern const char *const session_api_find_query[]; /* text */

#endif
