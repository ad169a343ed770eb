/* evidence_steps.h - asks for the runs of a check, and decides what follows from what they show
 * (evidence.h). For decide.c. */
#ifndef SEGUE_CORE_EVIDENCE_STEPS_H
#define SEGUE_CORE_EVIDENCE_STEPS_H

#include "core/step.h"

/* Return true if nothing else may begin: before the next movement; before this turn is judged,
 * where `more` says whether a record was made. */
bool evidence_hold_next(struct step *s);
bool evidence_hold_turn(struct step *s, struct turn *turn, bool *more);
/* Handles EVENT_EVIDENCE; asks for everything that was asked for before a resume. */
void evidence_event(struct step *s);
void evidence_resume(struct step *s);

#endif
