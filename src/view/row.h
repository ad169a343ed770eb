/* row.h - holds one session as a list shows it. */
#ifndef SEGUE_VIEW_ROW_H
#define SEGUE_VIEW_ROW_H

#include "base/str.h"
#include "judge/stage.h"

enum view_class {
  VIEW_FAILED, /* ended or stopped without the wanted result, or its log is bad */
  VIEW_WAITS,  /* waits for a person, a place, or somebody to run it */
  VIEW_RUNS,
  VIEW_DONE,
  VIEW_CANCELLED,
  VIEW_CLASS_COUNT
};
const char *view_class_name(enum view_class class); /* failed, waiting, ... */

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

#endif
