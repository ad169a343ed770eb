/* session_api.h - one session, for programs: GET .../view, .../turns, .../records and the like.
 *
 * The answers are those of `segue show ID --as view`, `segue show ID MOVEMENT#N --as view`, `segue
 * verify --json` and `segue compare --json`, or pieces of the log, read in the pool. A session is
 * read through its track (read_job.h), so that a second question costs only what it shows.
 *
 * --- what a session changed ---
 *
 * The lines that a session changed in its files, as git tells them now.
 *
 *   session_diff_take(&rs, &ask, r, &ref)    the request is kept
 *     ask.done(ask.ctx, r, &difference)    from the loop: answers it; not called if the client
 *                                          has left
 *
 * The log is read in the pool; git runs as a process of `processes` (NULL: it cannot be run),
 * without blocking the loop.
 *
 * --- lists ---
 *
 * GET /v1/sessions, one session that is not in memory, and the inbox, read in the
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
#ifndef SEGUE_DAEMON_SESSION_API_H
#define SEGUE_DAEMON_SESSION_API_H

#include "daemon/read_job.h"
#include "daemon/sessions.h"
#include "os/process.h"
#include "store/filter.h"
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

/* --- what a session changed --- */

struct session_diff {
  struct str diff;    /* bytes of files, as they are */
  bool cut;           /* there is more of it */
  size_t bytes;       /* of all that git told */
  bool more_files;    /* than git was asked about */
  const char *why;    /* git could not be asked; or NULL */
  uint64_t sound;     /* records of the log, if it was checked */
  const char *damage; /* what is wrong with the next one; NULL: nothing, or not checked */
};

typedef void (*session_diff_done)(void *ctx, struct server_request *r,
                                  const struct session_diff *difference);

struct session_diff_ask {
  struct process_table *processes;
  bool all;    /* up to LIMIT_TREE_DIFF_ALL_BYTES of it */
  size_t from; /* so many bytes are left out before it */
  bool checks; /* the log against its chain, which reads all of it */
  session_diff_done done;
  void *ctx;
};

void session_diff_take(struct read_jobs *rs, const struct session_diff_ask *ask,
                       struct server_request *r, const struct store_ref *ref);

/* --- lists --- */

void list_api_take(struct read_jobs *rs, struct server_request *r, const struct sessions *ss,
                   const struct filter *wanted, size_t limit);
void list_api_take_one(struct read_jobs *rs, struct server_request *r, const struct sessions *ss,
                       const char *id);
void list_api_take_inbox(struct read_jobs *rs, struct server_request *r, const struct sessions *ss);

#endif
