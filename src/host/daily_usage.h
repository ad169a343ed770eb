/* daily_usage.h - counts what all sessions of this user used today, across processes and restarts.
 *
 *   daily_usage_init(&book)                                 opens nothing
 *   daily_usage_take(&book, limits, &call, &hit)     a call begins, unless that returns true
 *   daily_usage_refuses(&book, limits, &call, &hit)  may a call that has begun make an attempt?
 *   daily_usage_add(&book, limits, &call, amounts)   an attempt of it ended
 *   daily_usage_near(&book, limits, &call, &hit)     four fifths are used: true once a day
 *   daily_usage_used(&book, provider, amounts)       provider empty: all together
 *   daily_usage_deinit(&book)
 *
 * DESIGN. The book is a file for each day (by the machine's own time zone) in the user's state
 * folder, `spent/DATE`: one line for each addition and each limit that it counts for, appended with
 * one write. Before it answers, a process reads on from where it was. A call is taken under a lock
 * on that file, so of two that would reach a number of calls only one begins; the lock ends with
 * its process. A line is written when a call's record is decided, so a crash never loses what was
 * used. Where a day is bounded, it is synced before a call is allowed. A torn or foreign line is
 * ignored. Without a state folder, only this process's use counts. Files older than
 * LIMIT_DAY_BOOK_KEPT are removed. The provider `command` is never counted and never refused: a
 * program costs nothing. The limits of a shared store and its folders are in that store
 * (store/caps.h), not here.
 *
 * Single-threaded; small reads and writes, on the loop. */
#ifndef SEGUE_HOST_DAILY_USAGE_H
#define SEGUE_HOST_DAILY_USAGE_H

#include "core/budget.h"
#include "format/yaml.h"
#include "provider/registry.h"
#include "store/store.h"

#include <sys/types.h>

struct day_limits {
  struct budget all;
  struct day_limit {
    enum budget_of of; /* BUDGET_OF_DAY: a provider's; BUDGET_OF_STORE; BUDGET_OF_FOLDER */
    char *name;        /* the provider; "" for the store; the folder as it is written */
    char *folder;      /* its path; or NULL */
    struct budget budget;
  } * of;
  size_t count;
};

struct day_call { /* all borrowed */
  struct str provider;
  const struct store *store; /* where its session is kept; or NULL; a shared one counts by itself */
  const char *folder;        /* where its session was begun; or NULL */
};
/* Returns whether a limit of a store or a folder counts for the call. */
bool day_limit_counts(const struct day_limit *limit, const struct day_call *call);

/* Returns a new JSON object with the keys as they are written, checked. NULL: err is set. */
json_t *day_set_read(const char *path, const struct yaml_node *node, struct err *err);

/* Keeps a result of day_set_read; NULL is fine. */
void day_set_keep(struct provider_registry *registry, const json_t *budget);
const struct day_limits *day_set_of(const struct provider_registry *registry);

struct day_sum {
  char *provider; /* "": all providers */
  int64_t used[BUDGET_UNITS];
  bool told[BUDGET_UNITS];
};

struct daily_usage {
  int fd;          /* 0: none */
  int64_t at;      /* read up to here */
  int64_t synced;  /* what is before it is on the disk */
  int64_t ends_ms; /* real time at which the day ends; 0: no day has begun */
  struct day_sum *sums;
  size_t count;
  char tail[512]; /* rest of an incomplete line */
  size_t tail_bytes;
};

void daily_usage_init(struct daily_usage *book);
void daily_usage_deinit(struct daily_usage *book);

bool daily_usage_take(struct daily_usage *book, const struct day_limits *limits,
                      const struct day_call *call, struct budget_hit *hit);
bool daily_usage_refuses(struct daily_usage *book, const struct day_limits *limits,
                         const struct day_call *call, struct budget_hit *hit);
void daily_usage_add(struct daily_usage *book, const struct day_limits *limits,
                     const struct day_call *call, const int64_t used[BUDGET_UNITS]);
bool daily_usage_near(struct daily_usage *book, const struct day_limits *limits,
                      const struct day_call *call, struct budget_hit *hit);
void daily_usage_used(struct daily_usage *book, struct str provider, int64_t used[BUDGET_UNITS]);

/* Returns each limit and how much of it is used, of the store where it is kept (or NULL): an array
 * of budgets as session_stop has them. New. */
json_t *daily_usage_json(struct daily_usage *book, const struct day_limits *limits,
                         const struct store *store);
/* Appends the same of a limit that a shared store counts (shared_status, `spent`). */
void day_limit_json(const struct day_limit *limit, const json_t *spent, json_t *list);

#endif
