/* session_budget.h - what a day's budgets say of a session's calls: the user's book
 * (daily_usage.h), and the caps that all workers of a shared store count together (store/caps.h).
 * Internal to the host.
 *
 *   session_budget_refuses, _notes, _count      of core_env; ctx is the session
 *   session_budget_ask(open, waited, then)      before a call starts; then: now or from the loop
 *
 * A cap of a shared store that was reached refuses each later call of the session at once. */
#ifndef SEGUE_HOST_SESSION_BUDGET_H
#define SEGUE_HOST_SESSION_BUDGET_H

#include "host/session.h"

bool session_budget_refuses(void *session, struct str provider, bool begun, struct budget_hit *hit);
bool session_budget_notes(void *session, struct str provider, struct budget_hit *hit);
void session_budget_count(void *session, const struct call *call, const struct spend *spend);

/* refused: why the call must not start; NULL: it may, unless it was cancelled meanwhile. */
typedef void (*session_budget_fn)(struct open_call *open, const char *refused);
/* waited: it waited for its place, and others may have used up the day since it was taken. */
void session_budget_ask(struct open_call *open, bool waited, session_budget_fn then);

#endif
