/* index_file.h - the format of the index's file, shared by its reader and its writer (index.h). */
#ifndef SEGUE_STORE_INDEX_FILE_H
#define SEGUE_STORE_INDEX_FILE_H

#include "store/index.h"

#define INDEX_NAME "sessions.index"

enum index_section { SECTION_ROWS, SECTION_TEXTS, SECTION_COUNT = 8 }; /* the rest: not used yet */

struct index_head {
  char magic[8];  /* "segueix\n" */
  uint32_t order; /* 0x01020304 as this machine writes it */
  uint32_t version, row_bytes, zero;
  uint64_t sum; /* checksum of all that follows */
  struct {
    uint64_t at, bytes;
  } sections[SECTION_COUNT];
};

enum { INDEX_VERSION = 4, INDEX_ORDER = 0x01020304 };
static const char index_magic[8] = {'s', 'e', 'g', 'u', 'e', 'i', 'x', '\n'};

/* Extends a checksum by n bytes; begin with 0. It finds accidents, not intent. */
uint64_t index_sum(uint64_t sum, const void *bytes, size_t n);
/* Reads the 128 bits of an id. Returns false if it is no id. */
bool index_bits(const char *id, uint64_t out[2]);
int index_compare(const uint64_t a[2], const uint64_t b[2]);

struct index {
  int dir; /* folder of the logs; -1: rows are not checked against them */
  struct buf file;
  const struct index_row *rows;
  size_t count;
  const char *texts;
  size_t texts_bytes;
};

/* Returns the row of an id, whatever became of its log. */
const struct index_row *index_find(const struct index *x, const uint64_t id[2]);
/* Gets the present size and time of a log. */
bool index_stat(int dir, const char *id, uint64_t *bytes, int64_t *time_ns);

#endif
