/* record.h - the records of a session log: made here, in one form, before they are applied.
 *
 * Every record: v, seq (from 1, no gaps), ts (RFC 3339, UTC, ms), type, then its own members; the
 * store adds `hash` last. schemas/session-log.json describes them all. */
#ifndef SEGUE_CORE_RECORD_H
#define SEGUE_CORE_RECORD_H

#include "base/str.h"
#include "core/texts.h"

#include <jansson.h>
#include <stdint.h>

enum { RECORD_VERSION = 1, RECORD_TIME_BYTES = 32 };

/* time: as record_time writes it; records of one decision share it. */
json_t *record_new(uint64_t seq, json_t *time, const char *type);

/* "2026-11-21T01:02:03.456Z"; milliseconds since 1970, UTC. */
void record_time(int64_t time_ms, char out[RECORD_TIME_BYTES]);
bool record_time_parse(const char *text, int64_t *time_ms);

/* Sets a member unless the text is empty. */
void record_set_str(json_t *record, const char *key, struct str value);

#endif
