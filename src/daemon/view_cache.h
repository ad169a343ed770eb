/* view_cache.h - the tracks (view/record_index.h) of sessions being looked at, shared by all
 * viewers.
 *
 *   view_cache = view_cache_new(loop)
 *   item = view_cache_find(view_cache, &ref)     made if there is none; held until
 *   view_cache_let_go(item)
 *   view_cache_free(view_cache)                  nothing is held; the loop runs once more
 *
 * From the loop only; a work function of the pool uses item->track while `busy` is its own
 * (read_job.h). A track is dropped when nobody asked for it for LIMIT_SHELF_IDLE_MS; when there are
 * too many, or they are too big together, the least recently used one is dropped. */
#ifndef SEGUE_DAEMON_VIEW_CACHE_H
#define SEGUE_DAEMON_VIEW_CACHE_H

#include "base/list.h"
#include "view/record_index.h"

#include <uv.h>

struct view_cache {
  struct list items; /* most recently used first */
  uv_timer_t idle;
};

struct view_cache_item {
  struct list_node in_shelf;
  struct view_cache *view_cache;
  struct record_index *track;
  size_t bytes;  /* when it was last let go */
  unsigned held; /* requests */
  bool busy;
  uint64_t used_ms;
};

struct view_cache *view_cache_new(uv_loop_t *loop);
struct view_cache_item *view_cache_find(struct view_cache *s, const struct store_ref *ref);
void view_cache_let_go(struct view_cache_item *item);
void view_cache_free(struct view_cache *s); /* NULL is fine */

#endif
