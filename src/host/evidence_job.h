/* evidence_job.h - makes what core/evidence.h asks for: takes the base, runs checks on copies.
 *
 *   evidence_start(s, turn, over)   EFFECT_EVIDENCE; `over` comes from the loop with
 *                                   EVENT_EVIDENCE, once
 *   evidence_cancel(s)              ends it; `over` still comes, with NULL
 *   evidence_clean(s, over)         after the session's end: removes its private folder
 *
 * A session has at most one (s->evidence). Git, hashing and copying are done in a pool thread, the
 * check is a call of the provider `command` under the check's own sandbox. A job that is cut off
 * leaves a private folder, which the next one of the session uses and its end removes.
 *
 * A result on the base is kept by tree, command and sandbox in the user's state folder, so sessions
 * that begin at the same tree run it once. */
#ifndef SEGUE_HOST_EVIDENCE_JOB_H
#define SEGUE_HOST_EVIDENCE_JOB_H

#include "core/decide.h"
#include "host/session.h"

typedef void (*evidence_over)(struct session *s, struct event *ev);

void evidence_start(struct session *s, long turn, evidence_over over);
void evidence_cancel(struct session *s);
void evidence_clean(struct session *s, evidence_over over);

#endif
