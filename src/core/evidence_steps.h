/* evidence_steps.h - asks for the runs of a check, and decides what follows from what they show
 * (evidence.h). For decide.c. */
#ifndef SEGUE_CORE_EVIDENCE_STEPS_H
#define SEGUE_CORE_EVIDENCE_STEPS_H

#include "core/step.h"

/* Return true if nothing else may begin: before the next movement; before this turn is judged,
 * where `more` says whether a record was made. */
bool evidence_hold_next(struct step *s);
bool evidence_hold_turn(struct step *s, struct turn *turn, bool *more);
/* The question to a judge of the task (evidence_judges), and the record of what came of it. */
struct chain_spec evidence_task_spec(const struct step *s, const struct turn *turn);
void evidence_task_judged(struct step *s, const struct turn *turn, const struct chain_step *step,
                          const json_t *stages);
/* Handles EVENT_EVIDENCE; asks for everything that was asked for before a resume. */
void evidence_event(struct step *s);
void evidence_resume(struct step *s);

#endif
