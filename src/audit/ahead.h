/* ahead.h - reads a long log ahead of the one who folds its records. The log is cut into pieces of
 * whole lines; threads, and the one who asks while he would have to wait, check the lines of a
 * piece (hash, schema) and find their members. Each line carries its hash at its end, so pieces
 * need nothing from each other but the hash in front of their first line.
 *
 *   struct ahead *a = ahead_new(schema, &ref)     NULL: no thread could be started, or no log
 *   while (ahead_next(a, &line)) ...              in the order of the log
 *   ahead_is_whole(a)                             true: the log ended, and every line was sound
 *   ahead_free(a)
 *
 * It says nothing of a line that is not sound: where it ends early, the log is to be read from the
 * start by somebody who explains what he finds (book.h). It also ends at a line of more than 2 MiB,
 * and at a piece of a line at the end. Values are not built ahead: memory that one thread takes and
 * another gives back costs more than is saved. Memory: four pieces of 128 KiB, or of a line that is
 * longer, and 40 bytes for each member of their records. */
#ifndef SEGUE_AUDIT_AHEAD_H
#define SEGUE_AUDIT_AHEAD_H

#include "schema/text.h"
#include "store/reader.h"

struct ahead;

struct ahead_line { /* valid until the next one is asked for */
  struct str text;  /* without its newline; its hash is right */
  uint64_t offset;  /* in the log */
  /* These are a valid record's. NULL: its text was not enough to see that it is valid. */
  const struct schema_member *members;
  size_t count;
};

/* Borrows the schema. */
struct ahead *ahead_new(const struct schema *schema, const struct store_ref *ref);
bool ahead_next(struct ahead *a, struct ahead_line *line);
bool ahead_is_whole(struct ahead *a);
void ahead_free(struct ahead *a); /* accepts NULL */

#endif
