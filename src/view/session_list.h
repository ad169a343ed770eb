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
#include "judge/stage.h"
#include "store/filter.h"

enum view_class {
  VIEW_FAILED, /* ended or stopped without the wanted result, or its log is bad */
  VIEW_NEEDS,  /* a person must choose before it goes on */
  VIEW_WAITS,  /* waits for a place, a time, or somebody to run it */
  VIEW_RUNS,
  VIEW_DONE,
  VIEW_CANCELLED,
  VIEW_CLASS_COUNT
};
const char *view_class_name(enum view_class class); /* failed, waiting, ... */
enum view_class view_class_of(const char *status);
const char *view_class_statuses(enum view_class class); /* as a filter names them */

/* A row counts judgments by the stage that decided; the last: no stage did. */
enum { SKIM_NO_RULE = STAGE_COUNT, SKIM_METHODS };
/* Returns the match method of judgments by this stage; "no rule". */
const char *skim_method_name(int method);

struct view_row {
  enum view_class class;
  char id[40];
  struct str log, workflow, task; /* task: only its first line */
  struct str movement;            /* last movement entered */
  struct str providers;           /* those called, comma-separated, as its last stop or end says */
  size_t asks;                    /* number of open questions to a person */
  struct str status, message;
  struct str wait;                /* what keeps it from its next call, or empty */
  int64_t wait_ms;                /* real time since which it waits */
  bool retries;                   /* it waits for its next attempt, not for a place */
  bool ambiguous, fell_back;      /* a judgment was ambiguous; another provider took over a call */
  long methods[SKIM_METHODS];     /* judgments by the stage that decided; all 0: not known */
  bool last_methods;              /* the methods are those of its last records only */
  bool submitted;                 /* submitted to a daemon, which can continue it */
  struct str verification;        /* sound, torn, tampered, ... in the words of segue audit */
  int64_t started_ms, updated_ms; /* real time */
  long turns;
  int64_t tokens;
  double cost_usd;       /* sum of the known costs */
  bool priced, unpriced; /* some calls have a known cost; some do not */
};

struct session_list {
  struct arena arena;
  struct view_row *rows;
  size_t count, room;
  size_t left_out;                  /* number of older ones */
  size_t classes[VIEW_CLASS_COUNT]; /* of `rows` */
  size_t all[VIEW_CLASS_COUNT];     /* at a glance, of the store, whatever the filter wants; */
  bool all_known;                   /* not without an index, where there are many */
  struct aggregate *aggregate;      /* NULL at a glance, where only short logs are checked: */
  uint64_t proof_left;              /* bytes that still may be */
  bool tasks_later;                 /* tasks are read later, only for rows that stay */
  char next[40];                    /* the next page begins after this id; "": there is none */
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
