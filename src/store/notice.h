/* notice.h - tells a person's own program what happened: one JSON object (schemas/notice.json) for
 * each event of a session that may be worth knowing.
 *
 *   brief_feed(&b, record); notice_of(&b, record, list)   appends what of it is worth telling
 *   notice_stall(&b, ms, now_ms); notice_ready(...)       what no record says
 *
 * Pure. An `id` is the same whenever the same event is told again. `title` is one line, `text`
 * several; both are ready to send and safe for a terminal, and models' texts are cut. */
#ifndef SEGUE_STORE_NOTICE_H
#define SEGUE_STORE_NOTICE_H

#include "store/brief.h"

/* question, stop, stall, limit, budget, end, start; NULL ends the list. */
extern const char *const notice_events[];

/* Appends at most one notice. A stop by a person at the terminal (interrupted) is no news, nor is
 * one by a daemon that ends and will continue later (shutdown). */
void notice_of(const struct brief *b, const struct record *record, json_t *list);
/* Tells that a running call has been silent for this long. New. */
json_t *notice_stall(const struct brief *b, uint64_t silent_ms, int64_t now_ms);
/* Tells that a daemon is ready, with `waiting` sessions to continue. New. */
json_t *notice_ready(long waiting, int pid, int64_t now_ms);

#endif
