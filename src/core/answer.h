/* answer.h - a person's answer: finds the question of a session that it is for, and checks it.
 *
 *   core_answer_settle(core, &answer, now_ms, &err)      which question, and is it a valid answer?
 *   ... EVENT_ANSWER with it ...
 *   core_answer_deinit(&answer) */
#ifndef SEGUE_CORE_ANSWER_H
#define SEGUE_CORE_ANSWER_H

#include "core/state.h"

enum answer_says { SAYS_TEXT, SAYS_CHOICE, SAYS_APPROVE, SAYS_REJECT };

struct core_answer {    /* all borrowed but value */
  const char *movement; /* NULL: the only one that asks */
  uint64_t question;    /* the record of the question that is meant; 0: whatever is asked now */
  enum answer_says says;
  struct str text;  /* the answer, or why it is approved or rejected */
  long choice;      /* SAYS_CHOICE: its number, from 1 */
  const json_t *by; /* {uid, name} */
  /* Set by core_answer_settle: */
  long turn;
  json_t *value; /* of a question with a schema; or NULL */
};

/* ERR_INVALID: it was answered already (err says by whom), its deadline has passed, or nothing is
 * asked; ERR_USAGE: this is not an answer to it. */
bool core_answer_settle(const struct core *core, struct core_answer *answer, int64_t now_ms,
                        struct err *err) MUST_CHECK;
void core_answer_deinit(struct core_answer *answer);
/* Counts the turns that wait for a person. */
size_t core_question_count(const struct core *core);

/* Lists what is asked now, as session_stop lists it: texts cut. A new array, or NULL: nothing. */
json_t *core_questions(const struct core *core);
/* One question as session_stop and inboxes list it; long texts are cut. */
json_t *core_question_item(const json_t *question, uint64_t seq, long turn, struct str movement,
                           struct str since, struct str until);

#endif
