/* morning.h - what sessions came to, by repository, in one screen: `segue report` without a file,
 * the head of a folder's page, and one notice.
 *
 *   morning = morning_read(&store, &wanted, budgets, &err)   a new object, or NULL
 *   morning_tell(morning, colours, &text)
 *   morning_notify(morning, set, &err)                       by the user's `notify`
 *
 * {since?, until, sessions, spent, budgets, repositories: [{folder, spent, sessions: [{id,
 * workflow, task, class, status, basis?, text?, command?, branch?, merged?, spent?}]}]}. class:
 * done, needs (a person), stopped, running or cancelled. Also sessions that began earlier are
 * there: those that wait for a person, and those in which something happened since. merged is what
 * git finds in the branch that was checked out at the session's start. Reads logs and asks git;
 * blocking. */
#ifndef SEGUE_CLI_MORNING_H
#define SEGUE_CLI_MORNING_H

#include "base/buf.h"
#include "store/filter.h"

/* budgets: of daily_usage_json; owned. */
json_t *morning_read(const struct store *store, const struct filter *wanted, json_t *budgets,
                     struct err *err);
void morning_tell(const json_t *morning, bool colours, struct buf *out);
bool morning_notify(const json_t *morning, json_t *set, struct err *err) MUST_CHECK;

#endif
