/* api_status.h - how one session stands, as the control API shows it; and how a request gets to it.
 *
 *   api_status_of(&v, sessions, id, &err); api_status_json(&v, sessions); api_status_deinit(&v)
 *   status_snapshot_take(&s, store, word, settles, &err)
 *       blocking; then sessions_update, on the loop
 *   status_snapshot_deinit(&s)                               accepts a zeroed one
 *
 * DESIGN. Every request about one session takes this way:
 *
 *   1. its word (an id, a unique prefix of one, `last`) becomes an id: on the loop with files, in
 *      the pool with a shared store, after which the request is handled again (read_job_find);
 *   2. if memory is newer than the log (api_status_is_in_memory: it waits or runs here, or has
 *       ended),
 *      memory answers;
 *   3. otherwise its log does: the loop reads the first and the last records of a file, but must
 *      not wait for a shared store, so the pool takes a snapshot and sessions_update makes it what
 *      memory has;
 *   4. what is inside of it (turns, calls, records) is read in the pool, see session_api.h.
 *
 * Requests that do something (cancel, resume, answer, fork, watch) go the same way up to 3 and then
 * act on the entry; control.c has them. Lists are another matter, see list_api.h. */
#ifndef SEGUE_DAEMON_API_STATUS_H
#define SEGUE_DAEMON_API_STATUS_H

#include "daemon/sessions.h"

/* The status of a session in its store. */
struct status_snapshot {
  char id[STORE_ID_BYTES];
  bool owned; /* some program or worker has it */
  struct summary summary;
};

/* Finds the whole id of a session in the store. Blocking. */
bool status_snapshot_find(const struct store *store, const char *word, char id[STORE_ID_BYTES],
                          struct err *err) MUST_CHECK;
/* word: as store_find takes it. settles: a session whose last record says that it stopped, and that
 * a worker still has, is about to be let go of, so this waits for that, for a while. ERR_NOT_FOUND:
 * there is no such session. */
bool status_snapshot_take(struct status_snapshot *s, const struct store *store, const char *word,
                          bool settles, struct err *err) MUST_CHECK;
void status_snapshot_deinit(struct status_snapshot *s);

struct api_status {
  const char *id;
  const struct summary *summary;
  const char *status, *message;
  size_t position;
  struct status_snapshot own; /* if it was read from the log */
};

/* False: there is no such session, or no longer. With a shared store, only memory is asked:
 * sessions_update first. */
bool api_status_of(struct api_status *v, const struct sessions *ss, const char *id,
                   struct err *err);
/* True if it can be shown without its log. */
bool api_status_is_in_memory(const struct sessions *ss, const char *id);
json_t *api_status_json(const struct api_status *v, const struct sessions *ss); /* a new object */
void api_status_deinit(struct api_status *v);
/* True if it has neither ended nor stopped. */
bool api_status_is_unfinished(const struct summary *b);

#endif
