/* evidence.h - what runs of a check show about a session's work, and what follows from that.
 *
 * A command movement with `evidence` (and each gate with it) is a check. Records of type
 * `evidence`, each before its deed:
 *
 *   take    before the first movement in which an agent may edit: the tree as it is, the base
 *   taken   its id; or that there is none, since there is no repository
 *   run     the check on the base, in a copy, beside the agent's first call
 *   ran     its result
 *   look    the check has just passed, and nothing follows from it yet: run what shows something
 *   found   what that showed, and what follows ("goes"):
 *             on     the rules lead on
 *             back   the check counts as failed, so they lead back; the next prompt says why
 *             judge  a judge is asked what the task allows; after `judged` on, or ask
 *             ask    a person is asked: back, allow (these contents of these files), stop
 *   judged  what that judge said, with its stages as in a judgment
 *
 * The host makes the runs (host/evidence_job.h). A result is that of evidence/runs.h as JSON. An
 * older check result counts for later prompts and for the session's end until a file changes. */
#ifndef SEGUE_CORE_EVIDENCE_H
#define SEGUE_CORE_EVIDENCE_H

#include "core/fold.h"
#include "core/prompt.h"
#include "format/json_object.h"

/* An end rests on one of these, which is derived from the records before it. */
enum basis { BASIS_NONE, BASIS_SHOWN, BASIS_JUDGED, BASIS_CLAIMED, BASIS_PERSON };
const char *basis_name(enum basis basis); /* "shown"; NONE: "" */

/* Returns what an end rests on if this turn's verdict, found in that stage, leads to it. */
enum basis evidence_basis(const struct core *core, const struct turn *turn, enum judge_stage stage);
/* Notes the verdict; `basis` is the record's word, or empty. */
void evidence_judged(struct core *core, enum judge_stage stage, struct str basis);

bool evidence_apply(const struct fold *f);
/* Takes a person's answer to the turn's question. */
void evidence_answered(struct core *core, struct turn *turn, long choice);
/* A person chooses one of these; a found word leads "on", "back" or to "ask". */
enum { EVIDENCE_BACK = 1, EVIDENCE_ALLOW, EVIDENCE_STOP };
static inline bool evidence_goes(const json_t *found, const char *where) {
  return str_eq_c(json_view_at(found, "goes"), where);
}
/* A judge of the task is to be asked, or is being asked. It sees the task, the names of changed
 * files of the check that the base has, and how many are new: nothing that an agent wrote. */
static inline bool evidence_judges(const struct turn *turn) {
  return evidence_goes(turn->evidence.found, "judge") && turn->evidence.judged == NULL;
}
/* Returns the movement whose judge is asked: a check has none, so it is that of the first agent who
 * may edit. For other questions: the turn's own. */
size_t evidence_judge_of(const struct core *core, const struct turn *turn);
/* A person is to be asked. */
static inline bool evidence_asks(const struct turn *turn) {
  const json_t *judged = turn->evidence.judged;
  return evidence_goes(turn->evidence.found, "ask") ||
         (judged != NULL && !json_is_true(json_at(judged, "allows")));
}
/* Appends those files, as that judge is told. */
void evidence_put_task_files(const struct core *core, const struct turn *turn, struct buf *out);
static inline struct str evidence_found_word(const json_t *found) {
  return json_view_at(found, "evidence");
}

/* Returns true if the turn's check passed, and yet counts as failed. */
static inline bool evidence_sent_back(const struct turn *turn) {
  return evidence_goes(turn->evidence.found, "back") || turn->evidence.answer == EVIDENCE_BACK;
}
/* Returns the question to a person. New. judged: what a judge of the task said; or NULL. */
json_t *evidence_question(const json_t *found, const json_t *judged);

/* Returns what rules see: the word of this turn's check, or of the last one; "unknown": there is
 * none. */
const char *evidence_word(const struct core *core, const struct turn *turn);
/* Appends what a judge is told; nothing if no check was looked at. */
void evidence_tell(const struct core *core, const struct turn *turn, struct buf *out);
/* The same of a record's data, for people. ja: in Japanese. */
void evidence_words_of(const json_t *found, bool ja, struct buf *out);
/* Puts in front of an agent's prompt why its work was sent back, if it was; in front of one that
 * only reads, what a judge is told. */
void evidence_put_first(const struct core *core, const struct turn *turn, struct prompt *prompt);

#endif
