/* hidden_tests.h - holds a session that is about to be complete until tests have passed that no
 * agent can read.
 *
 * `hidden_tests` of its configuration has them (host/hidden_tests.h runs them). They run once all
 * turns are over: EFFECT_HIDDEN, then EVENT_HIDDEN and a record `hidden_tests` with the result. If
 * they do not pass, the session stops for a person, and no agent is told: a resume lets it be
 * complete. After a crash before the record they run again. Pure. */
#ifndef SEGUE_CORE_HIDDEN_TESTS_H
#define SEGUE_CORE_HIDDEN_TESTS_H

#include "base/buf.h"

#include <jansson.h>

struct core;
struct step;

/* True: the session waits for them before its end. */
bool hidden_hold_next(struct step *s);
void hidden_event(struct step *s);

/* Appends "7 of 12 hidden tests passed", or what else a result says. */
void hidden_tell(const json_t *result, struct buf *out);

#endif
