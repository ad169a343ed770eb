/* record_line.h - one record as the line of a log: its exact bytes and the hash that chains it.
 *
 * A line is the record as compact JSON with `hash` as its last member, and a newline. The hash is
 * SHA-256 over the previous record's hash (64 hex characters; 64 zeros at first) and this line's
 * bytes before `,"hash"`. So a missing, changed, reordered or added record is found. */
#ifndef SEGUE_STORE_RECORD_LINE_H
#define SEGUE_STORE_RECORD_LINE_H

#include "base/buf.h"
#include "base/sha256.h"
#include "core/record.h"

#include <jansson.h>

extern const char record_line_first_hash[SHA256_HEX]; /* 64 zeros */

/* Appends the line to `out`; `hash` holds the previous hash and then this line's. */
void record_line_compose(const struct record *record, struct buf *out, char hash[SHA256_HEX]);
/* Does the same for a record already in `out` from `start` on, as a non-empty JSON object. */
void record_line_close(struct buf *out, size_t start, char hash[SHA256_HEX]);

/* Returns whether the line ends in a hash, right or wrong. */
bool record_line_ends_well(struct str line);
/* Checks a line (without its newline): its form, and its hash against the hash of the record
 * before. Then `hash` is this line's; the two must not be the same memory. */
bool record_line_check(struct str line, const char before[SHA256_HEX], char hash[SHA256_HEX],
                       struct err *err) MUST_CHECK;
/* Splits a line (without its newline) and checks its form and hash against `hash`, which then holds
 * this line's. Returns the parsed record, owned by the caller, or NULL with err (no prefix, one
 * sentence). */
json_t *record_line_parse(struct str line, char hash[SHA256_HEX], struct err *err);
/* These do the same in two steps: the hash, and the record. */
bool record_line_check_hash(struct str line, char hash[SHA256_HEX], struct err *err) MUST_CHECK;
json_t *record_line_record(struct str line, struct err *err);
/* Reads a line whose hash does not matter here. Returns the record, owned by the caller; NULL: it
 * is not a JSON object. *duplicate (or NULL): a member occurs twice, and the last one counts. */
json_t *record_line_read(struct str line, bool *duplicate);

#endif
