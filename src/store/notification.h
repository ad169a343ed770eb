/* notification.h - tells a person's own program what happened: one JSON object
 * (schemas/notice.json) for each event of a session that may be worth knowing.
 *
 *   summary_feed(&b, record); notification_of(&b, record, list)
 *       appends what of it is worth telling
 *   notification_stall(&b, ms, now_ms); notification_ready(...)       what no record says
 *
 * Pure. An `id` is the same whenever the same event is told again. `title` is one line, `text`
 * several; both are ready to send and safe for a terminal, and models' texts are cut. */
#ifndef SEGUE_STORE_NOTIFICATION_H
#define SEGUE_STORE_NOTIFICATION_H

#include "store/summary.h"

/* question, stop, stall, limit, budget, end, start, report; NULL ends the list. */
extern const char *const notification_events[];

/* Appends at most one notice. A stop by a person at the terminal (interrupted) is no news, nor is
 * one by a daemon that ends and will continue later (shutdown). */
void notification_of(const struct summary *b, const struct record *record, json_t *list);
/* Tells that a running call has been silent for this long. New. */
json_t *notification_stall(const struct summary *b, uint64_t silent_ms, int64_t now_ms);
/* Tells that a daemon is ready, with `waiting` sessions to continue. New. */
json_t *notification_ready(long waiting, int pid, int64_t now_ms);
/* Tells what sessions came to, as segue report --notify has it. New. */
json_t *notification_report(struct str title, struct str text, int64_t now_ms);

#endif
