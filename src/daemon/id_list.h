/* id_list.h - things in the order of their ids, found and counted by binary search.
 *
 *   struct thing { char id[STORE_ID_BYTES]; ... };       the id comes first
 *   id_list_add(&list, &thing); id_list_remove(&list, &thing)
 *   id_list_find(&list, id); id_list_before(&list, id)
 *   id_list_deinit(&list)                                frees nothing of the things
 *
 * A zeroed list is empty. The list borrows the things, whose ids must not change meanwhile. Adding
 * an id twice, or removing a thing that is not there, is a bug and aborts.
 *
 * DESIGN. Ids are in the order of submission, so a queue of them grows at its end and shrinks at
 * its beginning: both take O(log n) for the search and move nothing. In between, the pointers on
 * the shorter side move, of ten thousand at most 40 KB. */
#ifndef SEGUE_DAEMON_ID_LIST_H
#define SEGUE_DAEMON_ID_LIST_H

#include <stddef.h>

struct id_list {
  void **items;
  size_t first, count; /* items[first] is the smallest; there is room in front of it */
  size_t cap;
};

/* Returns how many ids come before this one, which need not be in the list. */
size_t id_list_before(const struct id_list *list, const char *id);
void *id_list_find(const struct id_list *list, const char *id); /* NULL: it is not there */
void *id_list_at(const struct id_list *list, size_t i);         /* NULL: it has no so many */
void id_list_add(struct id_list *list, void *item);
void id_list_remove(struct id_list *list, const void *item);
void id_list_deinit(struct id_list *list);

#endif
