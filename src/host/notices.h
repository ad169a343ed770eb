/* notices.h - tells a person's own program what happens to sessions, one notice at a time and in
 * order.
 *
 *   notices_init(&n, loop, processes, store)      store NULL: nothing is kept for a next start
 *   notices_use(&n, set)                          see notice_set.h; NULL: nobody is told, or no
 *                                                 longer
 *   notices_recover(&n)                           what the last process did not get to tell
 *   notices_on_record(&n, &brief, record)         a durable record, already fed to the brief
 *   notices_put(&n, notice)                       one without a record; takes it
 *   notices_close(&n)                             the rest is for the next start; run the loop then
 *   notices_deinit(&n)
 *
 * DESIGN. The program gets the notice (schemas/notice.json) as a line on its standard input, and
 * SEGUE_NOTICE_EVENT, _ID, _TITLE and _TEXT in its environment; exit 0 means that it arrived.
 * Otherwise it is retried after 1 s, then twice as long each time up to LIMIT_NOTICE_AGAIN_MS, and
 * given up after LIMIT_NOTICE_TRY_COUNT; without a store, where nothing can go on later, at once.
 * Others wait meanwhile, at most LIMIT_NOTICE_COUNT. A session never waits for any of this. With a
 * store a notice is delivered at least once: see store/notified.h. The program runs under the shim,
 * in the user's home, with the standard environment and what its setting `env` names.
 */
#ifndef SEGUE_HOST_NOTICES_H
#define SEGUE_HOST_NOTICES_H

#include "base/list.h"
#include "os/process.h"
#include "store/brief.h"
#include "store/notified.h"

struct notices {
  uv_loop_t *loop;
  struct process_table *processes;
  const struct store *store; /* or NULL */
  json_t *set;               /* or NULL */
  struct list queue;         /* struct queued_notice */
  struct process *process;   /* gets the first notice */
  struct buf line;           /* input for it */
  uv_timer_t again;
  unsigned tries; /* tries of the first notice */
  struct notified told;
  bool closed;
};

void notices_init(struct notices *n, uv_loop_t *loop, struct process_table *processes,
                  const struct store *store);
void notices_use(struct notices *n, json_t *set);
void notices_recover(struct notices *n);
void notices_on_record(struct notices *n, const struct brief *b, const struct record *record);
void notices_put(struct notices *n, json_t *notice);
bool notices_wants(const struct notices *n, const char *event);
bool notices_telling(const struct notices *n); /* its program runs */
void notices_close(struct notices *n);
void notices_deinit(struct notices *n);

#endif
