/* reader.h - reads a log without owning it, line by line, in bounded memory.
 *
 *   reader_open(&r, &ref, &err); while (reader_next(&r, &line)) ...; reader_close(&r)
 * A line is valid until the next call. The last one may lack its newline: `whole` says so. */
#ifndef SEGUE_STORE_READER_H
#define SEGUE_STORE_READER_H

#include "store/store.h"

struct store_raw;

struct log_reader {
  struct store_raw *raw;
  const struct store_ops *ops;
  struct buf buffer;
  size_t line_at;  /* start of the last returned line, in the buffer */
  size_t start;    /* start of what has not been returned, in the buffer */
  uint64_t offset; /* start of the last returned line, in the log */
  bool eof, whole; /* whole: the last returned line ended with a newline */
  size_t max;      /* longest line in bytes: LIMIT_LOG_LINE_BYTES, or as set after opening */
  bool too_long;   /* a line was longer: reading ended */
  int error;       /* errno of a failed read, or 0 */
};

bool reader_open(struct log_reader *r, const struct store_ref *ref, struct err *err) MUST_CHECK;
bool reader_next(struct log_reader *r, struct str *line);
/* Looks for what was appended since, even in a log that its owner replaced (after a failed sync:
 * the durable part is the same). Returns false if the log is gone. */
bool reader_again(struct log_reader *r);
/* Continues from a byte where a line begins. */
void reader_from(struct log_reader *r, uint64_t at);
/* Frees its memory; reading then continues where it was. Lines from it are no longer valid. */
void reader_free_buffer(struct log_reader *r);
bool reader_is_owned(const struct log_reader *r);
/* Tells which records the log must have, where the store keeps that apart from them: a shared
 * store's row knows the last record of its log. It is what was true when the log was opened.
 * Returns false if only the log knows. */
struct reader_due {
  uint64_t records;
  char hash[SHA256_HEX]; /* of the last of them */
};
bool reader_due(const struct log_reader *r, struct reader_due *due);
void reader_close(struct log_reader *r);

/* These access the log's bytes, whatever was read as lines: how many there are now; read up to
 * `max` (0 at the end, -1 with errno); read all n. */
uint64_t reader_bytes(const struct log_reader *r);
ssize_t reader_read(const struct log_reader *r, uint64_t at, char *out, size_t max);
bool reader_read_all(const struct log_reader *r, uint64_t at, char *out, size_t n) MUST_CHECK;

/* Returns these bytes if they are in memory because lines near them were read; else NULL. Valid
 * until the next call that reads a line. */
const char *reader_held(const struct log_reader *r, uint64_t at, size_t n);

/* Finds the first newline in the bytes [at, until). Without one it returns `until`, or where the
 * log ends. */
uint64_t reader_line_end(const struct log_reader *r, uint64_t at, uint64_t until);

/* Marks a place between two records. */
struct reader_place {
  uint64_t at;  /* byte */
  uint64_t seq; /* seq of the record that begins there */
};
/* Moves a place past record `seq`, but not past byte `end`. */
void reader_skip(const struct log_reader *r, struct reader_place *place, uint64_t seq,
                 uint64_t end);

#endif
