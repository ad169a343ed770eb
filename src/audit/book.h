/* book.h - reads a session log line by line from the start, checking each line against the chain
 * (hash, seq) before handing it out.
 *
 *   book_open(&b, &ref, places, &err)
 *   while ((record = book_next(&b)) != NULL) { ...; json_decref(record); }
 *   while (book_line(&b)) { ... b.line ...; book_keep(&b, &record); }     the same in steps
 *   b.state says why it stopped; b.damage what is wrong with record b.records + 1
 *   book_again(&b)             then book_next returns what was appended since
 *   book_get(&b, seq, &err)    an earlier record once more (needs `places`)
 *   book_close(&b)
 *
 * Memory: the longest line, and with `places` 24 bytes a record. Never writes, never locks. */
#ifndef SEGUE_AUDIT_BOOK_H
#define SEGUE_AUDIT_BOOK_H

#include "base/sha256.h"
#include "core/record.h"
#include "store/reader.h"
#include "store/recall.h"

#include <jansson.h>

enum book_state {
  BOOK_READING, /* there may be more */
  BOOK_END,     /* every line is sound and whole */
  BOOK_TORN,    /* a partial line follows the sound ones: torn_bytes */
  BOOK_DAMAGED  /* record `records + 1` is not what was written */
};

enum book_kind { BOOK_OTHER, BOOK_SESSION, BOOK_TURN_START, BOOK_JUDGMENT };

/* It is small, because a log has very many; a record whose number does not fit has no place. */
struct book_place {
  uint64_t offset;
  uint32_t seq;
  uint32_t bytes; /* without the newline; a line has at most LIMIT_LOG_LINE_BYTES */
  uint32_t turn;  /* 0: belongs to the session */
  uint8_t kind;   /* enum book_kind */
};

struct book {
  struct log_reader reader;
  struct store_ref ref;
  struct store store; /* holds the log and its blobs */
  bool open;
  char hash[SHA256_HEX];
  enum book_state state;
  uint64_t records; /* number of sound records */
  uint64_t end;     /* sound bytes of the log */
  uint64_t torn_bytes;
  struct str line; /* the last record returned, without its newline; valid until the next call */
  struct err damage;
  bool keeps_places;
  struct book_place *places; /* in the order in which the records were returned */
  size_t place_count, place_room;
};

/* Holds memory that one book after another uses, so that it is not freed and asked for again. */
struct book_memory {
  struct buf lines;
  struct book_place *places;
  size_t place_room;
};

bool book_open(struct book *b, const struct store_ref *ref, bool places,
               struct err *err) MUST_CHECK;
json_t *book_next(struct book *b); /* new reference or NULL */
/* These do the same in steps, for callers that parse lines themselves. book_line reads the next
 * line and checks only its hash and form; book_build parses it as book_next would (new reference,
 * or NULL: damaged); book_keep accepts the record and checks its number. False: b.state says
 * why. */
bool book_line(struct book *b);
json_t *book_build(struct book *b);
bool book_keep(struct book *b, const struct record *record);
/* Lends an open book memory before it is read, and takes it back, unless it has become large. */
void book_lend(struct book *b, struct book_memory *memory);
void book_take_back(struct book *b, struct book_memory *memory);
void book_memory_free(struct book_memory *memory);
/* Takes the next line from ahead.h, which has read and checked it, in place of book_line. */
void book_accept(struct book *b, struct str line, uint64_t offset);
/* Continues after BOOK_DAMAGED, from the damaged line on; nothing vouches for what it returns. */
json_t *book_next_unproven(struct book *b);
/* Looks for what was appended, also to a log that its owner replaced. False: the log is gone. */
bool book_again(struct book *b);
json_t *book_get(const struct book *b, uint64_t seq, struct err *err);
/* Fetches texts that are elsewhere in the log or in blobs. Borrows the book. */
struct recall book_recall(const struct book *b);
/* Tells whether a place such as "12#/text" holds a text; its blob is not looked at. */
bool book_has_text(const struct book *b, const char *place, struct err *err) MUST_CHECK;
/* Returns true while a process holds the log: the session is running. */
bool book_owned(const struct book *b);
void book_close(struct book *b);

#endif
