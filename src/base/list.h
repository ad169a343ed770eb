/* list.h - an intrusive doubly linked list; each item knows which list it is in.
 *
 *   struct job { struct list_node in_queue; ... };
 *   struct list queue = {0};
 *   list_push_back(&queue, &job->in_queue);
 *   LIST_EACH(struct job, j, in_queue, &queue)
 *     if (is_done(j))
 *       list_remove(&queue, &j->in_queue);
 *
 * A zeroed list is empty, and a zeroed node is in no list. Nothing is allocated or freed here. An
 * item can be in several lists, with a node for each. A list with items, and an item in a list,
 * must not move in memory. Adding an item twice, or removing it from a list it is not in, is a bug
 * and aborts. Two helpers for chains follow: items with just a `next`. */
#ifndef SEGUE_BASE_LIST_H
#define SEGUE_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list_node {
  struct list_node *prev, *next;
  struct list *list; /* the list it is in, or NULL */
};

struct list {
  struct list_node *first, *last;
  size_t count;
};

static inline bool list_holds(const struct list *list, const struct list_node *node) {
  assert(list != NULL);
  return node->list == list;
}

/* Inserts behind `after`; NULL: at the front. */
static inline void list_insert(struct list *list, struct list_node *after, struct list_node *node) {
  assert(node->list == NULL);
  assert(after == NULL || list_holds(list, after));
  node->list = list;
  node->prev = after;
  node->next = after != NULL ? after->next : list->first;
  *(node->prev != NULL ? &node->prev->next : &list->first) = node;
  *(node->next != NULL ? &node->next->prev : &list->last) = node;
  list->count++;
}

static inline void list_push_front(struct list *list, struct list_node *node) {
  list_insert(list, NULL, node);
}

static inline void list_push_back(struct list *list, struct list_node *node) {
  list_insert(list, list->last, node);
}

static inline void list_remove(struct list *list, struct list_node *node) {
  assert(list_holds(list, node));
  assert(list->count > 0);
  *(node->prev != NULL ? &node->prev->next : &list->first) = node->next;
  *(node->next != NULL ? &node->next->prev : &list->last) = node->prev;
  *node = (struct list_node){0};
  list->count--;
}

static inline void *list_item(const struct list_node *node, size_t offset) {
  return node != NULL ? (char *)(size_t)node - offset : NULL;
}

/* The item whose `member` this node is; NULL of NULL. */
#define LIST_ITEM(node, type, member)  ((type *)list_item((node), offsetof(type, member)))
#define LIST_FIRST(type, member, list) LIST_ITEM((list)->first, type, member)
#define LIST_LAST(type, member, list)  LIST_ITEM((list)->last, type, member)

/* Goes from first to last. The body may remove the current item, but not the next one. */
#define LIST_EACH(type, item, member, list)                                                        \
  for (type *item = LIST_FIRST(type, member, list), *item##_next = NULL;                           \
       item != NULL && (item##_next = LIST_ITEM(item->member.next, type, member), true);           \
       item = item##_next)

/* Removes an item from a chain linked by `next` alone. The item must be in it. For short chains
 * with rare removals. */
#define CHAIN_REMOVE(first, item)                                                                  \
  do {                                                                                             \
    __typeof__(&(first)) chain_at = &(first);                                                      \
    while (*chain_at != (item)) {                                                                  \
      assert(*chain_at != NULL);                                                                   \
      chain_at = &(*chain_at)->next;                                                               \
    }                                                                                              \
    *chain_at = (item)->next;                                                                      \
  } while (0)

/* Appends an item whose `next` is NULL. */
#define CHAIN_APPEND(first, item)                                                                  \
  do {                                                                                             \
    __typeof__(&(first)) chain_at = &(first);                                                      \
    while (*chain_at != NULL)                                                                      \
      chain_at = &(*chain_at)->next;                                                               \
    *chain_at = (item);                                                                            \
  } while (0)

#endif
