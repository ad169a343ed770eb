/* flaws_internal.h - collects the failing answers of one log and writes each as a case. */
#ifndef SEGUE_AUDIT_FLAWS_INTERNAL_H
#define SEGUE_AUDIT_FLAWS_INTERNAL_H

#include "audit/book.h"
#include "audit/rows.h"
#include "judge/chain.h"

struct flaw_call {
  long turn, call;
  bool works;                   /* it does the movement's own work */
  bool answered;                /* its last attempt was */
  uint64_t start_seq, end_seq;  /* records of its first attempt, and of its last answer */
  const char *provider, *model; /* model may be NULL; owned by the log's words */
  const char *shape;
};

struct flaw { /* a failing answer */
  long turn, call;
  int64_t time_ms;
  uint64_t start_seq, end_seq, report_seq; /* report: the judged answer; 0: none */
  const char *movement, *provider, *model; /* NULL where not known; owned by the log's words */
  const char *stage, *shape;
  json_t *errors; /* [{"path", "keyword", "message"}]; owned; NULL until flaw_split */
  /* The first answer of a judge who was asked to correct itself has the stage's error texts
   * (owned), how many answers failed, the stage's outcome, and if a later answer was good. */
  json_t *joint;
  size_t joint_count;
  enum stage_outcome joint_outcome;
  bool joint_mended;
};

struct flaw_log {
  struct book book;
  json_t *words; /* texts of records, kept while the log is read */
  json_t *workflow_doc;
  char session[40];
  const char *workflow, *outcome; /* NULL: not known */
  struct flaw_call *calls;
  size_t call_count, call_room;
  struct flaw *flaws;
  size_t flaw_count;
  uint64_t left_out;
  const struct chain_schemas *schemas; /* borrowed, for flaw_split; NULL: none could be made */
};

/* Reads a whole log. Its flaws count only if it is sound or torn. */
enum rows_log flaw_log_read(struct flaw_log *log, const struct store_ref *ref);
void flaw_log_deinit(struct flaw_log *log);

/* Gives the errors of a flaw with `joint` to it and to the answers after it that failed. */
void flaw_split(const struct flaw_log *log, struct flaw *first);
/* Parses an error of a stage, a text such as "$.step: expected integer, found string". */
json_t *flaw_stage_error(struct str text, struct str reason);

/* Writes "SESSION/TURN/CALL". */
void flaw_name(const struct flaw_log *log, const struct flaw *flaw, char *out, size_t n);
/* Returns the case that flaws.h describes, as a new reference. */
json_t *flaw_case(const struct flaw_log *log, const struct flaw *flaw);

#endif
