/* ndjson.h - newline-delimited JSON, cut into its lines as the bytes come. It does not parse them.
 *
 *   ndjson_init(&nd, max_line_bytes, on_line, ctx)
 *   ndjson_feed(&nd, bytes) ...   pieces of any length
 *   ndjson_end(&nd)               a last line without a newline counts too
 *   ndjson_deinit(&nd)
 *
 * A CR before the LF does not belong to the line; lines of white space are skipped. */
#ifndef SEGUE_FORMAT_NDJSON_H
#define SEGUE_FORMAT_NDJSON_H

#include "base/buf.h"

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
