/* ask_stream.h - prints the items of an array while a model is still writing it.
 *
 * The output is always a prefix of the final value; if it is not, ask_stream_end says so. An item
 * is printed once it is complete and valid. When another answer begins (a correction, a retry), its
 * first items must equal those already printed; they are not repeated, and the first that differs
 * stops the printing until the end. */
#ifndef SEGUE_CLI_ASK_STREAM_H
#define SEGUE_CLI_ASK_STREAM_H

#include "base/err.h"
#include "extract/items.h"
#include "schema/schema.h"

struct ask_stream {
  struct item_stream items;
  struct schema *schema; /* for an array with one item, or with the items so far */
  bool by_place;         /* the index decides what an item may be */
  bool json;             /* {"index","item"} a line */
  json_t *printed;
};

/* Begins; the schema's root must be an array. */
bool ask_stream_init(struct ask_stream *s, const json_t *schema, bool json,
                     struct err *err) MUST_CHECK;
void ask_stream_deinit(struct ask_stream *s);

void ask_stream_begin(struct ask_stream *s); /* another answer begins */
void ask_stream_piece(struct ask_stream *s, const char *p, size_t n);
/* Prints the rest of the final value. False: what was printed is not a prefix of it, or there is no
 * value (NULL) and something was printed. */
bool ask_stream_end(struct ask_stream *s, const json_t *value);

#endif
