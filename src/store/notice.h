/* notice.h - what a person's own program is told: one JSON object (schemas/notice.json) for each
 * thing that happened to a session and that a person may want to know.
 *
 *   brief_feed(&b, record); notice_of(&b, record, list)   appends what this record is worth telling
 *   notice_stall(&b, ms, now_ms); notice_ready(...)       what no record says
 *
 * Pure. An `id` is the same whenever the same thing is told again. `title` is one line, `text` are
 * some, both ready to be sent and safe for a terminal; texts of models are cut.
 * Source: issue of people who answer (notify). */
#ifndef SEGUE_STORE_NOTICE_H
#define SEGUE_STORE_NOTICE_H

#include "store/brief.h"

/* question, stop, stall, limit, budget, end, start; NULL ends the list. */
extern const char *const notice_events[];

/* Told at once only: a person at the terminal stopped it (interrupted), or a daemon that ends goes
 * on with it later (shutdown), is no news. */
void notice_of(const struct brief *b, const struct record *record, json_t *list);
/* Nothing was heard of what it runs for so long. New. */
json_t *notice_stall(const struct brief *b, uint64_t silent_ms, int64_t now_ms);
/* A daemon is ready; `waiting` sessions go on. New. */
json_t *notice_ready(long waiting, int pid, int64_t now_ms);

#endif
