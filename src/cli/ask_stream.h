/* ask_stream.h - the items of an array printed while a model still writes it.
 *
 * What is printed is always a beginning of the final value, or ask_stream_end says that it is not.
 * An item is printed when it is whole and passes what the schema says of items. When another answer
 * begins (a correction, a retry), its first items must be those that were printed; they are not
 * printed again, and one that differs ends the printing until the end. */
#ifndef SEGUE_CLI_ASK_STREAM_H
#define SEGUE_CLI_ASK_STREAM_H

#include "base/err.h"
#include "extract/items.h"
#include "schema/schema.h"

struct ask_stream {
  struct item_stream items;
  struct schema *schema; /* of an array with one item, or with the items so far */
  bool by_place;         /* what an item must be depends on its place */
  bool json;             /* {"index","item"} a line */
  json_t *printed;
};

/* The schema's root must be an array. */
bool ask_stream_init(struct ask_stream *s, const json_t *schema, bool json,
                     struct err *err) MUST_CHECK;
void ask_stream_deinit(struct ask_stream *s);

void ask_stream_begin(struct ask_stream *s); /* another answer */
void ask_stream_piece(struct ask_stream *s, const char *p, size_t n);
/* Prints what is left of the final value. False: what was printed is not its beginning, or there is
 * no value (NULL) and something was printed. */
bool ask_stream_end(struct ask_stream *s, const json_t *value);

#endif
