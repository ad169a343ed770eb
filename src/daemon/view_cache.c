/* Keeps tracks in memory for a while. */
#include "daemon/view_cache.h"

#include "base/limits.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void view_cache_drop(struct view_cache_item *item) {
  assert(item->held == 0);
  list_remove(&item->view_cache->items, &item->in_shelf);
  record_index_free(item->track);
  free(item);
}

/* Drops the least recently used items first, and never one that is held. */
static void view_cache_trim(struct view_cache *s, uint64_t now) {
  size_t bytes = 0, count = 0;
  LIST_EACH(struct view_cache_item, item, in_shelf, &s->items) {
    bytes += item->bytes;
    count++;
    bool old = now - item->used_ms >= LIMIT_SHELF_IDLE_MS;
    bool over = count > LIMIT_SHELF_COUNT || (count > 1 && bytes > LIMIT_SHELF_BYTES);
    if (item->held > 0 || !(old || over))
      continue;
    bytes -= item->bytes;
    count--;
    view_cache_drop(item);
  }
  if (s->items.count == 0)
    uv_timer_stop(&s->idle);
}

static void view_cache_on_idle(uv_timer_t *timer) {
  view_cache_trim(timer->data, uv_now(timer->loop));
}

static void view_cache_watch(struct view_cache *s) {
  if (!uv_is_active((uv_handle_t *)&s->idle))
    uv_timer_start(&s->idle, view_cache_on_idle, LIMIT_SHELF_IDLE_MS / 4, LIMIT_SHELF_IDLE_MS / 4);
}

struct view_cache_item *view_cache_find(struct view_cache *s, const struct store_ref *ref) {
  struct view_cache_item *found = NULL;
  LIST_EACH(struct view_cache_item, item, in_shelf, &s->items)
    if (strcmp(item->track->ref.name, ref->name) == 0)
      found = item;
  if (found != NULL) {
    list_remove(&s->items, &found->in_shelf);
  } else {
    found = xcalloc(1, sizeof *found);
    found->view_cache = s;
    found->track = record_index_new(ref);
  }
  list_push_front(&s->items, &found->in_shelf);
  found->held++;
  view_cache_watch(s);
  return found;
}

void view_cache_let_go(struct view_cache_item *item) {
  uint64_t now = uv_now(item->view_cache->idle.loop);
  assert(item->held > 0);
  item->held--;
  item->used_ms = now;
  if (item->held == 0)
    item->bytes = record_index_bytes(item->track);
  view_cache_trim(item->view_cache, now);
}

struct view_cache *view_cache_new(uv_loop_t *loop) {
  struct view_cache *s = xcalloc(1, sizeof *s);
  uv_timer_init(loop, &s->idle);
  s->idle.data = s;
  return s;
}

static void view_cache_on_closed(uv_handle_t *handle) {
  free(handle->data);
}

void view_cache_free(struct view_cache *s) {
  if (s == NULL)
    return;
  LIST_EACH(struct view_cache_item, item, in_shelf, &s->items)
    view_cache_drop(item);
  uv_close((uv_handle_t *)&s->idle, view_cache_on_closed);
}
