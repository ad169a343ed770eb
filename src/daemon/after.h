/* after.h - sessions that are to begin after others: an index from each of those to the sessions
 * that wait for it.
 *
 *   after_init(&ss->after, loop, ss); after_close(&ss->after)
 *   switch (after_look(e))                  in a folder of logs, before its turn
 *   after_told(ss, id, &summary)            that session ended, stopped, or was looked at
 *   after_drop(e)                           it no longer waits: entry_set_state does that
 *   e = after_next_never(ss)                one that waits in vain, to be stopped
 *
 * DESIGN. A session that waits is in the state AFTER, outside of the queue. The end of a session
 * finds those that wait for it in O(log n), whatever else waits. The logs of sessions that this
 * daemon does not run are looked at every LIMIT_AFTER_LOOK_MS, whose length mostly tells that
 * nothing happened. A shared store has such an index itself (session.after). */
#ifndef SEGUE_DAEMON_AFTER_H
#define SEGUE_DAEMON_AFTER_H

#include "base/list.h"
#include "store/predecessor.h"

#include <uv.h>

struct daemon_entry;
struct sessions;

struct after_link { /* from one that waits to one that it waits for */
  struct list_node in_awaited;
  struct predecessor_entry *awaited; /* NULL: not any more */
  struct daemon_entry *entry;
};

struct id_list;
struct after_index {
  struct id_list *awaited;           /* struct predecessor_entry */
  struct list never;                 /* struct daemon_entry */
  struct predecessor_entry *telling; /* whose waiting ones are just being told */
  size_t next;                       /* the first that is looked at then */
  uv_timer_t looks;
};

void after_init(struct after_index *x, uv_loop_t *loop, struct sessions *ss);
void after_close(struct after_index *x); /* when no session is left */

/* Says whether it may begin. PENDING: it is in the index from now on. NEVER: e->never says why. */
enum predecessor after_look(struct daemon_entry *e);
void after_told(struct sessions *ss, const char *id, const struct summary *b);
void after_drop(struct daemon_entry *e);
/* Returns NULL if there is none (any more). */
struct daemon_entry *after_next_never(struct sessions *ss);

#endif
