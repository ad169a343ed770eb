/* session_list.h - many sessions as they are shown: the status of each, in classes that matter to a
 * person, and all their judgments counted.
 *
 *   session_list_init(&f)
 *   session_list_read(&f, &store, &select, n, &err)    those that are wanted, newest first
 *   session_list_finish(&f)                    sorts the aggregate
 * or at a glance, without reading whole logs and without an aggregate
 *   session_list_page(&f, &store, &filter, &err)         a page of those that are wanted
 *   session_list_deinit(&f)
 * Each log is read whole and checked against the chain. Texts are raw and live in the arena. */
#ifndef SEGUE_VIEW_SESSION_LIST_H
#define SEGUE_VIEW_SESSION_LIST_H

#include "audit/aggregate.h"
#include "base/arena.h"
#include "store/filter.h"
#include "view/row.h"

struct session_list {
  struct arena arena;
  struct view_row *rows;
  size_t count, room;
  size_t left_out; /* number of older ones */
  size_t classes[VIEW_CLASS_COUNT];
  struct aggregate *aggregate; /* NULL at a glance */
  bool tasks_later;            /* tasks are read later, only for rows that stay */
  char next[40];               /* the next page begins after this id; "": there is none */
};

/* A filter says which sessions a person wants: "status:running since:7d workflow:demo words in the
 * task". */
enum view_sort {
  VIEW_SORT_NONE, /* newest first, in pages */
  VIEW_SORT_STARTED,
  VIEW_SORT_TOOK,
  VIEW_SORT_TURNS,
  VIEW_SORT_TOKENS,
  VIEW_SORT_COST,
  VIEW_SORT_COUNT
};
/* Reads an order: "tokens" has the most first, "-tokens" the least. False: there is no such
 * column. */
bool view_sort_read(const char *word, enum view_sort *sort, bool *least_first);
const char *view_sort_name(enum view_sort sort);

struct view_filter {
  struct filter select;
  enum view_sort sort; /* sorts the newest LIMIT_API_READ_COUNT as one page */
  bool least_first;
  /* NULL-terminated; each must be in the task, the workflow, the movement or the id */
  const char *words[8];
  char text[512];     /* all strings here point into it */
  const char *before; /* an id: only older ones; or NULL */
  size_t max;
  /* Returns the state that a daemon knows and the log does not say; NULL: the log says it. */
  const char *(*stands)(const void *ctx, const char *id);
  const void *ctx;
};
/* Reads the blank-separated words of a text and keeps them in the filter. */
bool view_filter_words(struct view_filter *f, const char *text, struct err *err) MUST_CHECK;
bool view_filter_read(struct view_filter *f, const char *text, int64_t now_ms,
                      struct err *err) MUST_CHECK;
bool session_list_page(struct session_list *f, const struct store *store,
                       const struct view_filter *filter, struct err *err) MUST_CHECK;

void session_list_init(struct session_list *f);
bool session_list_read(struct session_list *f, const struct store *store,
                       const struct filter *wanted, size_t max, struct err *err) MUST_CHECK;
void session_list_finish(struct session_list *f);
void session_list_deinit(struct session_list *f);

#endif
