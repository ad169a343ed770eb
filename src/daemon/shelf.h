/* shelf.h - the tracks (view/track.h) of sessions being looked at, shared by all viewers, and what
 * their lists have read (store/listed.h).
 *
 *   shelf = shelf_new(loop)
 *   item = shelf_find(shelf, &ref)     made if there is none; held until
 *   shelf_let_go(item)
 *   listed = shelf_lend(shelf, &store)    to one page at a time; NULL: it is lent
 *   shelf_give_back(shelf, listed)        NULL is fine
 *   shelf_free(shelf)                  nothing is held; the loop runs once more
 *
 * From the loop only; a work function of the pool uses item->track while `busy` is its own
 * (reading.h). A track is dropped when nobody asked for it for LIMIT_SHELF_IDLE_MS; when there are
 * too many, or they are too big together, the least recently used one is dropped. What lists have
 * read is dropped when no list was asked for that long. */
#ifndef SEGUE_DAEMON_SHELF_H
#define SEGUE_DAEMON_SHELF_H

#include "base/list.h"
#include "store/listed.h"
#include "view/track.h"

#include <uv.h>

struct shelf {
  struct list items; /* most recently used first */
  uv_timer_t idle;
  struct listed *listed; /* or NULL */
  bool lent;
  uint64_t listed_ms; /* when it was given back */
};

struct shelf_item {
  struct list_node in_shelf;
  struct shelf *shelf;
  struct track *track;
  size_t bytes;  /* when it was last let go */
  unsigned held; /* requests */
  bool busy;
  uint64_t used_ms;
};

struct shelf *shelf_new(uv_loop_t *loop);
struct shelf_item *shelf_find(struct shelf *s, const struct store_ref *ref);
void shelf_let_go(struct shelf_item *item);
struct listed *shelf_lend(struct shelf *s, const struct store *store);
void shelf_give_back(struct shelf *s, struct listed *listed);
void shelf_free(struct shelf *s); /* NULL is fine */

#endif
