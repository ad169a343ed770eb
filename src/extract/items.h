/* items.h - reports the items of a top-level array while a model is still writing it, each at its
 * last byte.
 *
 *   struct item_stream s;
 *   item_stream_init(&s, max_item_bytes);
 *   item_stream_feed(&s, piece, n, fn, ctx)       for each piece, of any size
 *   item_stream_end(&s, fn, ctx)                  at the end of the text
 *   item_stream_deinit(&s)
 *
 * The array is the first that opens at the start of a line, outside of reasoning sections
 * (extract.h), and whose first item `fn` takes; what follows it is ignored. The strict scanner
 * decides what an item is. An item is borrowed for the call. `fn` says whether it accepts the item:
 * if the first item is refused, the rest of that array is skipped and a later array may be the one;
 * after any other refused item, or a broken one, nothing more is reported.
 *
 * A reported item need not be part of the final value: a model may change its mind. Whoever passes
 * items on must compare in the end.
 *
 * Memory: one item. No I/O, no assert on data. */
#ifndef SEGUE_EXTRACT_ITEMS_H
#define SEGUE_EXTRACT_ITEMS_H

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum item_stream_state {
  ITEM_STREAM_TEXT,      /* before the array */
  ITEM_STREAM_REASONING, /* inside a reasoning section */
  ITEM_STREAM_ITEM,      /* an item, or the array's end, is next */
  ITEM_STREAM_COMMA,     /* a comma or the array's end is next */
  ITEM_STREAM_DONE,      /* the array is over */
  ITEM_STREAM_BROKEN     /* it cannot be followed any further */
};

typedef bool (*item_stream_fn)(void *ctx, const json_t *item);

struct item_stream {
  enum item_stream_state state;
  struct buf text; /* text not yet decided */
  size_t max;
  size_t at;    /* in text: looked at so far */
  size_t item;  /* start of the item that is open; SIZE_MAX: none is */
  size_t depth; /* open brackets of that item */
  bool in_string, escaped;
  bool line_start;   /* only white space since the line began */
  size_t count;      /* items taken */
  size_t look_again; /* bytes at which a reasoning section is searched for its end again */
};

void item_stream_init(struct item_stream *s, size_t max_item_bytes);
void item_stream_deinit(struct item_stream *s);

void item_stream_feed(struct item_stream *s, const char *p, size_t n, item_stream_fn fn, void *ctx);
void item_stream_end(struct item_stream *s, item_stream_fn fn, void *ctx);

#endif
