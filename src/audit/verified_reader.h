/* verified_reader.h - reads a session log line by line from the start, checking each line against
 * the chain (hash, seq) before handing it out.
 *
 *   verified_open(&b, &ref, places, &err)
 *   while ((record = verified_next(&b)) != NULL) { ...; json_decref(record); }
 *   b.state says why it stopped; b.damage what is wrong with record b.records + 1
 *   verified_again(&b)             then verified_next returns what was appended since
 *   verified_get(&b, seq, &err)    an earlier record once more (needs `places`)
 *   verified_close(&b)
 *
 * Memory: the longest line, and with `places` 24 bytes a record. Never writes, never locks. */
#ifndef SEGUE_AUDIT_VERIFIED_READER_H
#define SEGUE_AUDIT_VERIFIED_READER_H

#include "base/sha256.h"
#include "core/record.h"
#include "store/reader.h"
#include "store/resolve_text.h"

#include <jansson.h>

enum verified_reader_state {
  VERIFIED_READING, /* there may be more */
  VERIFIED_END,     /* every line is sound and whole */
  VERIFIED_TORN,    /* a partial line follows the sound ones: torn_bytes */
  VERIFIED_DAMAGED  /* record `records + 1` is not what was written */
};

enum verified_reader_kind {
  VERIFIED_OTHER,
  VERIFIED_SESSION,
  VERIFIED_TURN_START,
  VERIFIED_JUDGMENT
};

/* It is small, because a log has very many; a record whose number does not fit has no place. */
struct verified_reader_place {
  uint64_t offset;
  uint32_t seq;
  uint32_t bytes; /* without the newline; a line has at most LIMIT_LOG_LINE_BYTES */
  uint32_t turn;  /* 0: belongs to the session */
  uint8_t kind;   /* enum verified_reader_kind */
};

struct verified_reader {
  struct log_reader reader;
  struct store_ref ref;
  struct store store; /* holds the log and its blobs */
  bool open;
  char hash[SHA256_HEX];
  enum verified_reader_state state;
  uint64_t records; /* number of sound records */
  uint64_t end;     /* sound bytes of the log */
  uint64_t torn_bytes;
  struct str line; /* the last record returned, without its newline; valid until the next call */
  struct err damage;
  bool keeps_places;
  struct verified_reader_place *places; /* in the order in which the records were returned */
  size_t place_count, place_room;
};

bool verified_open(struct verified_reader *b, const struct store_ref *ref, bool places,
                   struct err *err) MUST_CHECK;
json_t *verified_next(struct verified_reader *b); /* new reference or NULL */
void verified_rest(struct verified_reader *b);    /* passes over what is left */
/* Reads a log for a list: is it damaged? *left: bytes of logs that may still be checked; one that
 * is longer is not, and *skipped counts it (NULL is fine). */
bool verified_is_damaged(const struct store_ref *ref, uint64_t *left, size_t *skipped);
/* Continues after VERIFIED_DAMAGED, from the damaged line on; nothing vouches for what it
 * returns. */
json_t *verified_next_unproven(struct verified_reader *b);
/* Looks for what was appended, also to a log that its owner replaced. False: the log is gone. */
bool verified_again(struct verified_reader *b);
json_t *verified_get(const struct verified_reader *b, uint64_t seq, struct err *err);
/* Fetches texts that are elsewhere in the log or in blobs. Borrows the book. */
struct resolve verified_recall(const struct verified_reader *b);
/* core_source.blob, whose ctx is a verified_reader. */
bool verified_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) MUST_CHECK;
/* Tells whether a place such as "12#/text" holds a text; its blob is not looked at. */
bool verified_has_text(const struct verified_reader *b, const char *place,
                       struct err *err) MUST_CHECK;
/* Returns true while a process holds the log: the session is running. */
bool verified_owned(const struct verified_reader *b);
void verified_close(struct verified_reader *b);

#endif
