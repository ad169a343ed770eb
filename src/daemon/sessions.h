/* sessions.h - the daemon's sessions: waiting, running and over.
 *
 *   sessions_init(&ss, host, &launch_env, max_running, changed, ctx)
 *   sessions_recover(&ss, &err)            queues all that were submitted and are unfinished
 *   e = sessions_submit(&ss, &launch, &err)
 *   sessions_drain(&ss); ...; sessions_stop(&ss)     stop calling; stop now
 *   sessions_close(&ss)                    sessions_busy says 0
 *
 * DESIGN. The queue is the store: a submitted session has its first record on disk before the
 * answer leaves, and everything that is submitted and unfinished is in the queue, in the order of
 * the ids, which is the order of submission. A log is locked only while its session runs, so
 * nothing is held for those that wait; but a daemon of a shared store keeps those that it will
 * begin in a moment, since giving them to the store's queue costs as much as a turn. How many that
 * are depends on how quickly places became free just now; if none did, all go to the queue at once,
 * where any worker may take them. Reading back and starting happens a few at a time, from the loop.
 *
 * A log that failed is not the end of its session: after a pause it is taken over like after a
 * crash. */
#ifndef SEGUE_DAEMON_SESSIONS_H
#define SEGUE_DAEMON_SESSIONS_H

#include "daemon/entry.h"

void sessions_init(struct sessions *ss, struct host *host, struct launch_env *env,
                   struct events *events, size_t max_running,
                   void (*changed)(void *ctx, struct daemon_entry *e), void *ctx);
/* Returns how many wait; -1: the folder cannot be read. */
long sessions_recover(struct sessions *ss, struct err *err);
/* With a shared store: stops watching it, which sessions_recover began. Before sessions_close. */
void sessions_unshare(struct sessions *ss);
void sessions_close(struct sessions *ss); /* then run the loop once more */

/* Takes the launch over, also when it fails. `changed` comes when it is durable or failed. */
struct daemon_entry *sessions_submit(struct sessions *ss, struct launch *launch, struct err *err);

/* Takes up a session not known here, because another program runs or ran it, to look at it or
 * cancel it. Its state is OVER. */
struct daemon_entry *sessions_adopt(struct sessions *ss, const char *id, struct err *err);

/* Takes over the status of a session in a shared store. Returns its entry, made if there was
 * none. */
struct daemon_entry *sessions_update(struct sessions *ss, struct status_snapshot *s);

/* Ends it for good; `changed` comes when that is durable, or cannot be written: it is then
 * `cancelled`, unfinished, and broken or paused, and ends as soon as it can be written in our
 * lifetime. False: ERR_LOCKED, another program owns it; ERR_INVALID, it has ended; or its log
 * cannot be used.
 */
bool sessions_cancel(struct sessions *ss, struct daemon_entry *e, struct err *err) MUST_CHECK;
/* The client that waited for its answer has left: cancels it, once that can be written. */
void sessions_leave(struct sessions *ss, struct daemon_entry *e);

/* Queues again a session that is over and unfinished (or waits, but was continued elsewhere): at
 * once if the next daemon would continue it too and the steer adds nothing (it is settled here),
 * otherwise once that is durable. Until then it is WRITING, then `changed` comes; if it could not
 * be written, it is still stopped. Refused: ERR_LOCKED, another program owns it; ERR_INVALID, it
 * has ended or was never submitted; ERR_LIMIT, the queue is full; ERR_USAGE, it cannot continue
 * like this; or its log cannot be used. With a shared store, after sessions_update. */
void sessions_resume(struct sessions *ss, struct daemon_entry *e, struct entry_ask *ask);

/* Gives a person's answer to its question. The answer is on disk once its brief no longer asks
 * ask->question and `changed` came; if it is broken or over with the question open, it is not.
 * Refused: ERR_INVALID, ERR_USAGE, not an answer, see core_answer_settle; ERR_LOCKED, another
 * program owns it, or it is just being written; or its log cannot be used. With a shared store,
 * after sessions_update. */
void sessions_answer(struct sessions *ss, struct daemon_entry *e, struct entry_ask *ask);

static inline void entry_ask_deinit(struct entry_ask *ask) {
  resume_options_deinit(&ask->steer);
  parsed_answer_deinit(&ask->said);
}
void entry_watch(struct daemon_entry *e, struct server_request *r, uint64_t last_seq);

size_t sessions_busy(const struct sessions *ss); /* in memory: the daemon must not end */
void sessions_drain(struct sessions *ss);
void sessions_stop(struct sessions *ss, const char *message);

/* Has the loop look at the queue and free what is over. */
void sessions_soon(struct sessions *ss);
/* Its log failed with `why`: opens it again after a pause. False: that makes no sense, or no longer
 * does. */
bool entry_mend_later(struct daemon_entry *e, const struct err *why);
/* Opens a broken one again as soon as the loop gets to it; this try is not counted. */
void entry_mend_soon(struct daemon_entry *e);

#endif
