/* bounds.h - tells what would stop a session, and how near it is to that: its limit of movements,
 * the budgets of the session, of open movements and of running calls, the time that such a call may
 * take, loop monitors, guards, deadlines of questions. Gathered while its records are read.
 *
 *   bounds_begin(&b, &arena, wf, config)    the first record
 *   bounds_feed(&b, v, record)              each later one, with its turn in v
 *   bounds_list(&b, v, &sum, &arena)        sets v->bounds, once its open turns are known
 *
 * The budget of the day is in no log: see host/daily_usage.h. All of it lives in arenas. */
#ifndef SEGUE_VIEW_BOUNDS_H
#define SEGUE_VIEW_BOUNDS_H

#include "view/session_view.h"

struct monitor;
struct loop_count;
struct bounds_movement;
struct call_bound;

/* Tells what would end open calls: the time that each may take, the budgets of a single call, a
 * tool used again and again. */
struct call_bounds {
  struct arena *arena; /* NULL: the workflow is not known, nothing is kept */
  struct call_bound *calls;
  size_t count, room;
};

struct bounds {
  long movements_max, of_workflow; /* MOVEMENTS_INFINITE, or a number */
  long iterations;                 /* turns except those of a group's children */
  int64_t begun;                   /* calls begun, without repeats */
  struct budget *budget;           /* the session's, with what was added; or NULL */
  struct bounds_movement *movements;
  size_t movement_count; /* 0: no movement has a budget or a stopping guard */
  size_t entered;        /* movement entered last, and how often in a row */
  long in_a_row;
  bool looped, spent; /* a guard stopped it; a budget stopped it */
  struct call_bounds calls;
  struct monitor *monitors;
  struct loop_count *loops;
  size_t monitor_count;
};

void bounds_begin(struct bounds *b, struct arena *arena, const struct workflow *wf,
                  const json_t *config);
void bounds_feed(struct bounds *b, const struct view_session *v, const json_t *record);
/* Sets v->bounds. all: use by finished calls. */
void bounds_list(const struct bounds *b, struct view_session *v, const struct spend *all,
                 struct arena *arena);

#endif
