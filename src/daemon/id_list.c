/* Keeps things in the order of their ids. */
#include "daemon/id_list.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

size_t id_list_before(const struct id_list *list, const char *id) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(list->items[list->first + middle], id) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void *id_list_at(const struct id_list *list, size_t i) {
  return i < list->count ? list->items[list->first + i] : NULL;
}

void *id_list_find(const struct id_list *list, const char *id) {
  void *item = id_list_at(list, id_list_before(list, id));
  return item != NULL && strcmp(item, id) == 0 ? item : NULL;
}

/* Makes room behind the last one. Moving all to the beginning pays only when at least half of the
 * room is there: then it happens once in so many removals as it moves pointers. */
static void id_list_reserve(struct id_list *list) {
  if (list->first + list->count < list->cap)
    return;
  if (list->first > 0 && list->first >= list->cap / 2) {
    memmove(list->items, list->items + list->first, list->count * sizeof *list->items);
    list->first = 0;
  } else {
    list->items = xgrow(list->items, &list->cap, list->cap + 1, sizeof *list->items);
  }
}

void id_list_add(struct id_list *list, void *item) {
  assert(id_list_find(list, item) == NULL);
  size_t i = id_list_before(list, item);
  if (list->first > 0 && i < list->count / 2) {
    list->first--;
    memmove(list->items + list->first, list->items + list->first + 1, i * sizeof *list->items);
  } else {
    id_list_reserve(list);
    void **at = list->items + list->first + i;
    memmove(at + 1, at, (list->count - i) * sizeof *list->items);
  }
  list->items[list->first + i] = item;
  list->count++;
}

void id_list_remove(struct id_list *list, const void *item) {
  size_t i = id_list_before(list, item);
  assert(id_list_at(list, i) == item);
  void **at = list->items + list->first;
  if (i < list->count / 2) {
    memmove(at + 1, at, i * sizeof *list->items);
    list->first++;
  } else {
    memmove(at + i, at + i + 1, (list->count - i - 1) * sizeof *list->items);
  }
  list->count--;
}

void id_list_deinit(struct id_list *list) {
  free(list->items);
  *list = (struct id_list){0};
}
