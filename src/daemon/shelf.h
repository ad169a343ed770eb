/* shelf.h - the tracks (view/track.h) of sessions being looked at, shared by all viewers.
 *
 *   shelf = shelf_new(loop)
 *   item = shelf_find(shelf, &ref)     made if there is none; held until
 *   shelf_let_go(item)
 *   shelf_free(shelf)                  nothing is held; the loop runs once more
 *
 * From the loop only; a work function of the pool uses item->track while `busy` is its own
 * (reading.h). A track is dropped when nobody asked for it for LIMIT_SHELF_IDLE_MS; when there are
 * too many, or they are too big together, the least recently used one is dropped. */
#ifndef SEGUE_DAEMON_SHELF_H
#define SEGUE_DAEMON_SHELF_H

#include "base/list.h"
#include "view/track.h"

#include <uv.h>

struct shelf {
  struct list items; /* most recently used first */
  uv_timer_t idle;
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
void shelf_free(struct shelf *s); /* NULL is fine */

#endif
