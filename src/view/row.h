/* row.h - one session in a list, as it is shown. */
#ifndef SEGUE_VIEW_ROW_H
#define SEGUE_VIEW_ROW_H

#include "base/str.h"
#include "view/skim.h"

enum view_class {
  VIEW_FAILED, /* ended, or stopped, without what was wanted; or its log is bad */
  VIEW_WAITS,  /* for a person, a place, or somebody to run it */
  VIEW_RUNS,
  VIEW_DONE,
  VIEW_CANCELLED,
  VIEW_CLASS_COUNT
};
const char *view_class_name(enum view_class class); /* failed, waiting, ... */

struct view_row {
  enum view_class class;
  char id[40];
  struct str log, workflow, task; /* task: its first line */
  struct str movement;            /* entered last */
  struct str providers;           /* that it called, with commas, as its last stop or end says */
  size_t asks;                    /* questions that wait for a person */
  struct str status, message;
  struct str wait;                /* what keeps it from its next call; or empty */
  int64_t wait_ms;                /* since when; real time */
  bool retries;                   /* it waits for its next attempt, not for a place */
  bool ambiguous, fell_back;      /* a judgment was; another provider took over a call of it */
  long methods[SKIM_METHODS];     /* judgments by the stage that decided; all 0: not known */
  bool last_methods;              /* these are of its last records only */
  bool submitted;                 /* to a daemon, which can go on with it */
  struct str proof;               /* sound, torn, tampered, ... as segue audit calls it */
  int64_t started_ms, updated_ms; /* real time */
  long turns;
  int64_t tokens;
  double cost_usd;       /* of what is known */
  bool priced, unpriced; /* a cost is known; there are calls of which it is not */
};

#endif
