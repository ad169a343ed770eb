/* report_file.h - says which of a movement's reports comes next, what a report's file holds, and
 * keeps the texts that later prompts show: reports by their file, answers by their movement.
 *
 * A movement's reports are made one after the other, once its own work is done and before it is
 * judged: a small machine beside the judge chain and reask.
 *
 *   call_end (its work) -> for each contract: call_start, call_end (purpose report) -> report
 *
 * The next step follows from the turn's calls and reports so far: ask for the next report, in the
 * agent's conversation if possible; ask again in a new one that is told what the agent said; keep
 * it as a record; or stop, resumably. A report that is the answer itself is just a record. The log
 * holds its bytes: the host writes the file after the record, and again if it is missing after a
 * crash. A file's content is the answer without surrounding blanks, and a newline.
 *
 * Pure; the lists of texts are part of the state (state.h). */
#ifndef SEGUE_CORE_REPORT_FILE_H
#define SEGUE_CORE_REPORT_FILE_H

#include "core/state.h"

enum report_action {
  REPORT_ASK,   /* make a call; fresh: in a new conversation */
  REPORT_WAIT,  /* a call is under way */
  REPORT_KEEP,  /* make a record: the call's answer, or the turn's if `call` is NULL */
  REPORT_FAILED /* the call brought no report, and another would not help */
};

struct report_step {
  enum report_action action;
  size_t number; /* the report's, from 1 */
  const struct contract *contract;
  bool fresh;
  const struct call *call;
};

/* Says what comes next. The turn's phase is TURN_REPORTING. */
void report_next(const struct movement *m, const struct turn *turn, struct report_step *step);

/* Computes the SHA-256 of the file that holds this answer. */
void contract_sha256(struct str answer, char out[SHA256_HEX]);
/* Appends the bytes of that file. */
void contract_content(struct str answer, struct buf *out);

/* Returns the text that a report keeps: a call's, or the turn's own answer without the line that
 * its mark signs. Borrowed from them. */
struct str report_answer(const struct core *core, const struct turn *turn, const struct call *call);
/* Cuts that line off the answer of a turn that ends, so that no prompt shows it; not off one that
 * stands in a blob, to which prompts only refer. */
void forget_signed_line(const struct core *core, struct turn *turn);

/* Returns the text of that name, NULL when there is none. */
const struct kept_text *kept_find(const struct kept_text *list, struct str name);
/* Appends a new text, or empties the one of that name, which remembers its former hash. */
struct kept_text *kept_put(struct kept_text **list, struct str name);
/* Moves the texts of `from` into `list`, where they replace older ones of the same name. */
void kept_move(struct kept_text **list, struct kept_text **from);

/* Frees the list and empties it. */
void kept_free(struct kept_text **list);

/* Keeps the answer of a finished turn if prompts name its movement. `text` is copied. */
void kept_answer(struct core *core, const struct movement *m, struct str text, uint64_t seq,
                 const struct joined *joined);

/* Visits every report as its file should be: published ones, then those of open turns, which are
 * newer. */
void kept_each_report(const struct core *core, void (*fn)(void *ctx, const struct kept_text *kept),
                      void *ctx);

/* Joins what a judge reads: the turn's judged reports, each under its name, and then its answer.
 * False: there is only the answer, and nothing was made. The caller frees joined->joints. */
bool kept_judged(const struct turn *turn, struct buf *text, struct joined *joined);

#endif
