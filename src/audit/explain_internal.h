/* explain_internal.h - shared by the parts of explain.h: the story of one turn while it is being
 * told. explain_call.c tells calls with their prompts and answers; explain_stage.c the stages of a
 * judgment, explain_value.c the checks of a value, explain_group.c the children of a group, and
 * explain.c the rest, in the order of the log. */
#ifndef SEGUE_AUDIT_EXPLAIN_INTERNAL_H
#define SEGUE_AUDIT_EXPLAIN_INTERNAL_H

#include "audit/book.h"
#include "audit/pen.h"
#include "core/workflow.h"
#include "judge/chain.h"

#include <jansson.h>

/* Holds everything known while one turn is explained. */
struct story {
  const struct book *book;
  struct pen pen;
  json_t *records;           /* the turn's, in order, with stops and resumes among them */
  json_t *start;             /* session_start */
  struct workflow *workflow; /* NULL if the recorded one cannot be built */
  const struct movement *movement;
  struct chain_schemas schemas;
  long turn, run;
  json_t *shown;     /* calls already shown, by number */
  struct buf report; /* text that was judged, once needed */
  bool has_report;
};

/* Return a member of a record: a text ("" if there is none), the same as a view, a number (or
 * 0). */
const char *explain_word(const json_t *object, const char *key);
struct str explain_view(const json_t *object, const char *key);
json_int_t explain_number(const json_t *object, const char *key);
bool explain_is_type(const json_t *record, const char *type);

/* Gathers the attempts of one call from the turn's records. */
struct call_view {
  const json_t *start; /* first attempt's call_start */
  const json_t *last;  /* the last attempt's call_start */
  const json_t *end;   /* the last attempt's call_end, or NULL */
  long attempts;
  json_int_t duration_ms;
};

void explain_call_of(const struct story *s, json_int_t call, struct call_view *out);
/* Appends the exact bytes of an answer, from the record or from its blob. */
void explain_answer_of(struct story *s, const json_t *end, struct buf *out);
/* Lists the paths that a sandboxed call was denied, according to its own output. */
void explain_denied(struct story *s, json_int_t call, const struct call_view *c);
/* Explains a call of the movement's own: its work, a correction of its value, an invariant's
 * check. */
void explain_own_call(struct story *s, const json_t *start);
/* Explains a judge call of a stage, and how its reply was read. */
void explain_judge_call(struct story *s, json_int_t call, enum judge_stage stage);
/* Returns the movement's rules as its judges were offered them. */
struct chain_spec explain_spec(struct story *s);
/* Says who a person is, from {uid, name}; NULL: nobody. */
void explain_person(struct story *s, const json_t *by);
void explain_stage(struct story *s, int index, const json_t *stage, const json_t *next);
/* Explains what the children of a group's turn found; nothing for other turns. */
void explain_children(struct story *s);
void explain_check(struct story *s, const json_t *check);
void explain_value(struct story *s, const json_t *record);

#endif
