/* human.h - internal to the core: questions to a person, and how long to wait for the answers.
 *
 *   if (human_hold(turn, core))                 the turn has something to ask, or waits for it
 *     return human_wait(s, turn);
 *   ...
 *   human_take(s)         EVENT_ANSWER
 *   human_stop(s)         everything left waits for people: nothing is held for them
 *
 * DESIGN. A question and its answer are records of their turn, each in the log before anybody is
 * told of it. A deadline is a time in the question's record: whoever runs or resumes the session
 * after that time takes the default, however long nothing ran. An answer may come while the session
 * is stopped; it starts nothing by itself, a resume does. Five kinds of question: `ask` (a
 * movement), `approve` (before one), `input` (a rule that requires it; the movement runs again),
 * `value` (a structured output that no model could make), `judge` (judges who do not agree; a
 * choice is a verdict). */
#ifndef SEGUE_CORE_HUMAN_H
#define SEGUE_CORE_HUMAN_H

#include "core/answer.h"
#include "core/step.h"
#include "judge/chain.h"

bool human_hold(const struct turn *turn, const struct core *core);
bool human_wait(struct step *s, struct turn *turn);
/* Asks; takes the question and adds its kind to it. */
void human_ask(struct step *s, struct turn *turn, const char *kind, json_t *question);
/* Asks which of the offered rules holds; why: the reason the judges gave no verdict. */
void human_ask_rule(struct step *s, struct turn *turn, const struct chain_spec *spec,
                    const char *why);
/* Takes the default answer if the question's time is over; false if the turn must wait on. */
bool human_take_due_default(struct step *s, struct turn *turn);
void human_take(struct step *s);
void human_stop(struct step *s);

#endif
