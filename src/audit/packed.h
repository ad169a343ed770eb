/* packed.h - counts as bytes, for this machine and this program only: the form in which
 * census_kept.h writes and reads them. Readers check every bound; the writer adds a checksum. */
#ifndef SEGUE_AUDIT_PACKED_H
#define SEGUE_AUDIT_PACKED_H

#include "audit/tally.h"
#include "base/buf.h"

struct packed { /* reads bytes; bad once they are too short or unexpected */
  struct str rest;
  bool bad;
};

void packed_put(struct buf *out, const void *bytes, size_t n);
void packed_put_number(struct buf *out, uint64_t n);
void packed_take(struct packed *in, void *bytes, size_t n); /* zeros when there are no more */
uint64_t packed_take_number(struct packed *in);

/* Writes all words, to be mapped to their numbers in another list. */
void packed_put_names(struct buf *out, const struct name_list *names);
/* Reads words; map[n] is the new number of word n; free() it. *count: how many there are. */
uint32_t *packed_take_names(struct packed *in, struct name_list *names, uint32_t *count);

void packed_put_table(struct buf *out, const struct tally_table *t);
/* Reads into an empty table with its keys. */
void packed_take_table(struct packed *in, struct tally_table *t, const uint32_t *map,
                       uint32_t count);

#endif
