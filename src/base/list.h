/* list.h - a doubly linked list through its items, which know the list that they are in.
 *
 *   struct job { struct list_node in_queue; ... };
 *   struct list queue = {0};
 *   list_push_back(&queue, &job->in_queue);
 *   LIST_EACH(struct job, j, in_queue, &queue)
 *     if (is_done(j))
 *       list_remove(&queue, &j->in_queue);
 *
 * A zeroed list is empty and a zeroed node is in none. Nothing is allocated or freed here. An item
 * can be in several lists, with a node for each. Neither a list that holds something nor an item in
 * one may move in memory. Adding what is in a list already, or taking out what is not in this one,
 * is a bug and aborts. Below are two helpers for chains: items with a `next` and nothing else. */
#ifndef SEGUE_BASE_LIST_H
#define SEGUE_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list_node {
  struct list_node *prev, *next;
  struct list *list; /* the one that it is in, or NULL */
};

struct list {
  struct list_node *first, *last;
  size_t count;
};

static inline bool list_holds(const struct list *list, const struct list_node *node) {
  assert(list != NULL);
  return node->list == list;
}

/* Behind `after`; NULL: at the front. */
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

/* From first to last. The body may take out the item that it is at, but not the next one. */
#define LIST_EACH(type, item, member, list)                                                        \
  for (type *item = LIST_FIRST(type, member, list), *item##_next = NULL;                           \
       item != NULL && (item##_next = LIST_ITEM(item->member.next, type, member), true);           \
       item = item##_next)

/* Takes an item out of a chain whose items are linked by `next` alone: short ones, whose items
 * nobody takes out often. It must be there. */
#define CHAIN_REMOVE(first, item)                                                                  \
  do {                                                                                             \
    __typeof__(&(first)) chain_at = &(first);                                                      \
    while (*chain_at != (item)) {                                                                  \
      assert(*chain_at != NULL);                                                                   \
      chain_at = &(*chain_at)->next;                                                               \
    }                                                                                              \
    *chain_at = (item)->next;                                                                      \
  } while (0)

/* Puts an item, whose `next` is NULL, behind the last one. */
#define CHAIN_APPEND(first, item)                                                                  \
  do {                                                                                             \
    __typeof__(&(first)) chain_at = &(first);                                                      \
    while (*chain_at != NULL)                                                                      \
      chain_at = &(*chain_at)->next;                                                               \
    *chain_at = (item);                                                                            \
  } while (0)

#endif
