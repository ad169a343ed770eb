/* ahead.h - reads a long log ahead of the caller that folds its records. The log is cut into pieces
 * of whole lines. Threads, and the caller whenever it would have to wait, check the lines of a
 * piece (hash, schema) and find their members. Each line ends with its hash, so a piece needs
 * nothing from the others but the hash in front of its first line.
 *
 *   struct ahead *a = ahead_new(schema, &ref)     NULL: no thread could be started, or no log
 *   while (ahead_next(a, &line)) ...              in the order of the log
 *   ahead_is_whole(a)                             true: the log ended, and every line was sound
 *   ahead_free(a)
 *
 * It says nothing about an unsound line: if it ends early, read the log from the start with book.h,
 * which says what is wrong. It also ends at a line of more than 2 MiB, and at a partial line at the
 * end. Values are not built ahead: memory that one thread takes and another gives back costs more
 * than is saved. Memory: four pieces of 128 KiB, or of a longer line, and 40 bytes for each member
 * of their records. */
#ifndef SEGUE_AUDIT_AHEAD_H
#define SEGUE_AUDIT_AHEAD_H

#include "schema/text.h"
#include "store/reader.h"

struct ahead;

struct ahead_line { /* valid until the next call */
  struct str text;  /* without its newline; its hash is right */
  uint64_t offset;  /* in the log */
  /* The members of a valid record. NULL: its text alone did not show that it is valid. */
  const struct schema_member *members;
  size_t count;
};

/* Borrows the schema. */
struct ahead *ahead_new(const struct schema *schema, const struct store_ref *ref);
bool ahead_next(struct ahead *a, struct ahead_line *line);
bool ahead_is_whole(struct ahead *a);
void ahead_free(struct ahead *a); /* accepts NULL */

#endif
