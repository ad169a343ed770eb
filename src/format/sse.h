/* sse.h - server-sent events (WHATWG HTML, "text/event-stream"), read as the bytes come.
 *
 *   sse_init(&sse, max_event_bytes, on_event, ctx)
 *   sse_feed(&sse, bytes) ...     pieces of any length, one byte too
 *   sse_end(&sse)                 the stream is over
 *   sse_deinit(&sse)
 *
 * Lines end in LF, CR LF or CR; a byte order mark at the start, comments and unknown fields are
 * ignored; several data lines are joined by LF. `id` and `retry` are of no use here: nothing is
 * resumed. One difference: a last event without its blank line is still reported, since some
 * servers leave it out; a standard reader drops it. */
#ifndef SEGUE_FORMAT_SSE_H
#define SEGUE_FORMAT_SSE_H

#include "base/buf.h"

/* type: the event's name, "" when none was sent. Both views are borrowed for the call. False: stop
 * reading. Must not feed the same reader. */
typedef bool (*sse_event_fn)(void *ctx, struct str type, struct str data);

struct sse {
  struct buf line, data, type;
  sse_event_fn on_event;
  void *ctx;
  size_t max_bytes; /* limit of one event: its data, and each of its lines */
  bool after_cr, past_start, has_data;
  bool stopped;  /* the callback said so */
  bool over_max; /* an event was larger than max_bytes */
};

void sse_init(struct sse *sse, size_t max_event_bytes, sse_event_fn on_event, void *ctx);
/* Returns false once it has stopped, for over_max or at the callback's wish; the rest is not
 * read. */
bool sse_feed(struct sse *sse, struct str bytes) MUST_CHECK;
bool sse_end(struct sse *sse) MUST_CHECK;
void sse_deinit(struct sse *sse);

/* --- newline-delimited JSON --- */

/* Receives a line, borrowed for the call. Returns false to stop reading. */
typedef bool (*ndjson_line_fn)(void *ctx, struct str line);

struct ndjson {
  struct buf line;
  ndjson_line_fn on_line;
  void *ctx;
  size_t max_bytes;
  bool stopped;  /* the callback said so */
  bool over_max; /* a line was longer than max_bytes */
};

void ndjson_init(struct ndjson *nd, size_t max_line_bytes, ndjson_line_fn on_line, void *ctx);

/* Returns false once it has stopped; the rest is not read. */
bool ndjson_feed(struct ndjson *nd, struct str bytes) MUST_CHECK;

bool ndjson_end(struct ndjson *nd) MUST_CHECK;

void ndjson_deinit(struct ndjson *nd);

#endif
