/* Cuts the bytes of a log into lines. */
#include "store/reader.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/backend.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, LONG_BYTES = 1024 * 1024 };

static _Thread_local bool reads_nothing;

void store_reads_nothing(bool nothing) {
  reads_nothing = nothing;
}

bool reader_open(struct log_reader *r, const struct store_ref *ref, struct err *err) {
#ifdef SEGUE_FAULTS /* only in a test build: others would rather wait than end */
  assert(!reads_nothing);
#endif
  *r = (struct log_reader){
      .ops = ref->ops, .raw = ref->ops->raw_open(ref, err), .max = LIMIT_LOG_LINE_BYTES};
  return r->raw != NULL;
}

/* Reads more. Lines already returned make room only when it is needed, not at every line. */
static bool read_more(struct log_reader *r) {
  if (r->line_at > 0) {
    memmove(r->buffer.p, r->buffer.p + r->line_at, r->buffer.n - r->line_at);
    r->buffer.n -= r->line_at;
    r->line_at = r->start = 0;
  }
  buf_reserve(&r->buffer, CHUNK_BYTES);
  ssize_t n = reader_read(r, r->offset + r->buffer.n, r->buffer.p + r->buffer.n, CHUNK_BYTES);
  if (n < 0)
    r->error = errno;
  if (n > 0)
    r->buffer.n += (size_t)n;
  r->eof = n <= 0;
  return n > 0;
}

uint64_t reader_line_end(const struct log_reader *r, uint64_t at, uint64_t until) {
  char *chunk = xmalloc(CHUNK_BYTES);
  while (at < until) {
    uint64_t want = until - at < CHUNK_BYTES ? until - at : CHUNK_BYTES;
    ssize_t n = reader_read(r, at, chunk, (size_t)want);
    const char *nl = n > 0 ? memchr(chunk, '\n', (size_t)n) : NULL;
    if (n <= 0)
      break;
    at += (uint64_t)(nl != NULL ? nl - chunk : n);
    if (nl != NULL)
      break;
  }
  free(chunk);
  return at;
}

bool reader_next(struct log_reader *r, struct str *line) {
  size_t scanned = 0;
  bool looked = false;
  assert(r->raw != NULL && r->start >= r->line_at);
  r->offset += r->start - r->line_at;
  r->line_at = r->start;
  for (;;) {
    size_t n = r->buffer.n - r->line_at; /* from the start of the line */
    const char *begin = n > 0 ? r->buffer.p + r->line_at : NULL;
    const char *nl = n > scanned ? memchr(begin + scanned, '\n', n - scanned) : NULL;
    if (nl != NULL) {
      *line = (struct str){begin, (size_t)(nl - begin)};
      r->start = r->line_at + line->n + 1;
      r->whole = true;
      return true;
    }
    scanned = n;
    /* Whether the line exceeds the maximum is checked before there is memory for it. */
    if (scanned > r->max ||
        (!looked && scanned > LONG_BYTES &&
         reader_line_end(r, r->offset + n, r->offset + r->max + 1) > r->offset + r->max)) {
      r->too_long = true;
      return false;
    }
    looked = scanned > LONG_BYTES;
    if (!r->eof && read_more(r))
      continue;
    if (n == 0)
      return false;
    *line = (struct str){r->buffer.p + r->line_at, n};
    r->start = r->buffer.n;
    r->whole = false;
    return true;
  }
}

void reader_from(struct log_reader *r, uint64_t at) {
  buf_clear(&r->buffer);
  r->offset = at;
  r->start = r->line_at = 0;
  r->eof = false;
}

bool reader_again(struct log_reader *r) {
  bool replaced;
  if (!r->ops->raw_again(r->raw, &replaced))
    return false;
  r->eof = false;
  if (!r->whole) /* half of the line was returned: now it comes whole */
    r->start = r->line_at;
  if (replaced)
    reader_from(r, r->offset + r->start - r->line_at);
  return true;
}

void reader_free_buffer(struct log_reader *r) {
  reader_from(r, r->offset + (r->whole ? r->start - r->line_at : 0));
  buf_deinit(&r->buffer);
}

bool reader_is_owned(const struct log_reader *r) {
  return r->ops->raw_is_owned(r->raw);
}

bool reader_due(const struct log_reader *r, struct reader_due *due) {
  return r->ops->raw_due != NULL && r->ops->raw_due(r->raw, due);
}

void reader_close(struct log_reader *r) {
  if (r->raw != NULL)
    r->ops->raw_close(r->raw);
  buf_deinit(&r->buffer);
  *r = (struct log_reader){0};
}

uint64_t reader_bytes(const struct log_reader *r) {
  return r->ops->raw_bytes(r->raw);
}

ssize_t reader_read(const struct log_reader *r, uint64_t at, char *out, size_t max) {
  return r->ops->raw_read(r->raw, at, out, max);
}

bool reader_read_all(const struct log_reader *r, uint64_t at, char *out, size_t n) {
  while (n > 0) {
    ssize_t got = reader_read(r, at, out, n);
    if (got <= 0)
      return false;
    out += got;
    at += (uint64_t)got;
    n -= (size_t)got;
  }
  return true;
}

const char *reader_held(const struct log_reader *r, uint64_t at, size_t n) {
  uint64_t from = r->offset - r->line_at; /* of the buffer, in the log */
  bool held = r->buffer.n > 0 && at >= from && at + n <= from + r->buffer.n;
  return held ? r->buffer.p + (at - from) : NULL;
}

void reader_skip(const struct log_reader *r, struct reader_place *place, uint64_t seq,
                 uint64_t end) {
  char *chunk = xmalloc(CHUNK_BYTES);
  while (place->seq <= seq && place->at < end) {
    ssize_t n = reader_read(r, place->at, chunk, CHUNK_BYTES);
    if (n <= 0)
      break;
    const char *stop = chunk + n, *from = chunk;
    while (place->seq <= seq && from < stop) {
      const char *nl = memchr(from, '\n', (size_t)(stop - from));
      from = nl ? nl + 1 : stop;
      place->seq += nl != NULL;
    }
    place->at += (uint64_t)(from - chunk);
  }
  free(chunk);
}
