/* Keeps tracks, and what lists have read, in memory for a while. */
#include "daemon/shelf.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/memory.h"
#include "view/folder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void shelf_drop(struct shelf_item *item) {
  assert(item->held == 0);
  list_remove(&item->shelf->items, &item->in_shelf);
  track_free(item->track);
  free(item);
}

/* Drops the least recently used items first, and never one that is held. */
static void shelf_trim(struct shelf *s, uint64_t now) {
  size_t bytes = 0, count = 0;
  LIST_EACH(struct shelf_item, item, in_shelf, &s->items) {
    bytes += item->bytes;
    count++;
    bool old = now - item->used_ms >= LIMIT_SHELF_IDLE_MS;
    bool over = count > LIMIT_SHELF_COUNT || (count > 1 && bytes > LIMIT_SHELF_BYTES);
    if (item->held > 0 || !(old || over))
      continue;
    bytes -= item->bytes;
    count--;
    shelf_drop(item);
  }
  if (s->listed != NULL && !s->lent && now - s->listed_ms >= LIMIT_SHELF_IDLE_MS) {
    listed_free(s->listed);
    s->listed = NULL;
    memory_give_back(0);
  }
  if (s->items.count == 0 && s->listed == NULL)
    uv_timer_stop(&s->idle);
}

static void shelf_on_idle(uv_timer_t *timer) {
  shelf_trim(timer->data, uv_now(timer->loop));
}

static void shelf_watch(struct shelf *s) {
  if (!uv_is_active((uv_handle_t *)&s->idle))
    uv_timer_start(&s->idle, shelf_on_idle, LIMIT_SHELF_IDLE_MS / 4, LIMIT_SHELF_IDLE_MS / 4);
}

struct listed *shelf_lend(struct shelf *s, const struct store *store) {
  if (s->lent || store_is_address(store->where))
    return NULL;
  if (s->listed == NULL)
    s->listed = view_folder_listed(store);
  s->lent = true;
  shelf_watch(s);
  return s->listed;
}

void shelf_give_back(struct shelf *s, struct listed *listed) {
  if (listed == NULL)
    return;
  assert(s->lent && listed == s->listed);
  s->lent = false;
  s->listed_ms = uv_now(s->idle.loop);
}

struct shelf_item *shelf_find(struct shelf *s, const struct store_ref *ref) {
  struct shelf_item *found = NULL;
  LIST_EACH(struct shelf_item, item, in_shelf, &s->items)
    if (strcmp(item->track->ref.name, ref->name) == 0)
      found = item;
  if (found != NULL) {
    list_remove(&s->items, &found->in_shelf);
  } else {
    found = xcalloc(1, sizeof *found);
    found->shelf = s;
    found->track = track_new(ref);
  }
  list_push_front(&s->items, &found->in_shelf);
  found->held++;
  shelf_watch(s);
  return found;
}

void shelf_let_go(struct shelf_item *item) {
  uint64_t now = uv_now(item->shelf->idle.loop);
  assert(item->held > 0);
  item->held--;
  item->used_ms = now;
  if (item->held == 0)
    item->bytes = track_bytes(item->track);
  shelf_trim(item->shelf, now);
}

struct shelf *shelf_new(uv_loop_t *loop) {
  struct shelf *s = xcalloc(1, sizeof *s);
  uv_timer_init(loop, &s->idle);
  s->idle.data = s;
  return s;
}

static void shelf_on_closed(uv_handle_t *handle) {
  free(handle->data);
}

void shelf_free(struct shelf *s) {
  if (s == NULL)
    return;
  LIST_EACH(struct shelf_item, item, in_shelf, &s->items)
    shelf_drop(item);
  assert(!s->lent);
  listed_free(s->listed);
  uv_close((uv_handle_t *)&s->idle, shelf_on_closed);
}
