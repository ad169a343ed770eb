/* folder.h - many sessions as they are shown: the status of each, in classes that matter to a
 * person, and all their judgments counted.
 *
 *   view_folder_init(&f)
 *   view_folder_read(&f, &store, &select, n, &err)    those that are wanted, newest first
 *   view_folder_finish(&f)                    sorts the census
 * or at a glance, without reading whole logs and without a census
 *   view_folder_page(&f, &store, &filter, &err)         a page of those that are wanted
 *   view_folder_deinit(&f)
 * Each log is read whole and checked against the chain. Texts are raw and live in the arena. */
#ifndef SEGUE_VIEW_FOLDER_H
#define SEGUE_VIEW_FOLDER_H

#include "audit/census.h"
#include "base/arena.h"
#include "store/listed.h"
#include "store/select.h"
#include "view/row.h"

struct view_folder {
  struct arena arena;
  struct view_row *rows;
  size_t count, room;
  size_t left_out; /* older ones */
  size_t classes[VIEW_CLASS_COUNT];
  struct census *census; /* NULL at a glance */
  bool tasks_later;      /* they are read of those rows only that stay */
  char next[40];         /* where the next page begins: the id before it; "": there is none */
};

/* Says which sessions a person wants: "status:running since:7d workflow:demo words in the task". */
enum view_sort {
  VIEW_SORT_NONE, /* newest first, in pages */
  VIEW_SORT_STARTED,
  VIEW_SORT_TOOK,
  VIEW_SORT_TURNS,
  VIEW_SORT_TOKENS,
  VIEW_SORT_COST,
  VIEW_SORT_COUNT
};
/* "tokens": the most first; "-tokens": the least. False: there is no such column. */
bool view_sort_read(const char *word, enum view_sort *sort, bool *least_first);
const char *view_sort_name(enum view_sort sort);

struct view_filter {
  struct select select;
  enum view_sort sort; /* of what was looked at: the newest LIMIT_API_READ_COUNT; then one page */
  bool least_first;
  const char *words[8]; /* in the task, the workflow, the movement or the id; up to NULL */
  char text[512];       /* all of these point into it */
  const char *before;   /* an id: only older ones; or NULL */
  size_t max;
  struct listed *listed; /* of view_folder_listed: kept from page to page; or NULL */
  /* The state of a session that a daemon has, if its log does not say it; NULL: the log does. */
  const char *(*stands)(const void *ctx, const char *id);
  const void *ctx;
};
/* Takes the words of a text, with blanks between. It stays with the filter. */
bool view_filter_words(struct view_filter *f, const char *text, struct err *err) MUST_CHECK;
bool view_filter_read(struct view_filter *f, const char *text, int64_t now_ms,
                      struct err *err) MUST_CHECK;
/* Keeps for further pages what one has read of this store; listed_free frees it. */
struct listed *view_folder_listed(const struct store *store);
bool view_folder_page(struct view_folder *f, const struct store *store,
                      const struct view_filter *filter, struct err *err) MUST_CHECK;

void view_folder_init(struct view_folder *f);
bool view_folder_read(struct view_folder *f, const struct store *store, const struct select *wanted,
                      size_t max, struct err *err) MUST_CHECK;
void view_folder_finish(struct view_folder *f);
void view_folder_deinit(struct view_folder *f);

#endif
