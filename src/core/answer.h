/* answer.h - finds the question of a session that a person's answer is for, and checks the answer.
 *
 *   core_answer_settle(core, &answer, now_ms, &err)      which question, and is it a valid answer?
 *   ... EVENT_ANSWER with it ...
 *   core_answer_deinit(&answer) */
#ifndef SEGUE_CORE_ANSWER_H
#define SEGUE_CORE_ANSWER_H

#include "core/state.h"

/* SAYS_STEER: it answers nothing, see core_steer_text_check. */
enum answer_says { SAYS_TEXT, SAYS_CHOICE, SAYS_APPROVE, SAYS_REJECT, SAYS_STEER };

struct core_answer {    /* all borrowed except value */
  const char *movement; /* NULL: the only movement that asks */
  uint64_t question;    /* record of the intended question; 0: whatever is asked now */
  enum answer_says says;
  struct str text;  /* the answer, or the reason for an approval or rejection */
  long choice;      /* SAYS_CHOICE: its number, from 1 */
  const json_t *by; /* {uid, name} */
  /* Set by core_answer_settle: */
  long turn;
  json_t *value; /* for a question with a schema; or NULL */
};

/* Checks an answer. ERR_INVALID: there was an answer before (err says by whom), the deadline has
 * passed, or nothing is asked; ERR_USAGE: this is no answer to the question. */
bool core_answer_settle(const struct core *core, struct core_answer *answer, int64_t now_ms,
                        struct err *err) MUST_CHECK;
void core_answer_deinit(struct core_answer *answer);
/* Counts the turns that wait for a person. */
size_t core_question_count(const struct core *core);

/* Lists the open questions as session_stop does, with texts cut. A new array, or NULL: none. */
json_t *core_questions(const struct core *core);
/* Returns one question as session_stop and inboxes list it, with long texts cut. */
json_t *core_question_item(const json_t *question, uint64_t seq, long turn, struct str movement,
                           struct str since, struct str until);

#endif
