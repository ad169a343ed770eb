/* reader.h - reads a log line by line, from the start, in bounded memory.
 *
 *   reader_open(&r, path, &err); while (reader_next(&r, &line)) ...; reader_close(&r)
 * A line is valid until the next call. The last one may lack its newline: `whole` says so. */
#ifndef SEGUE_STORE_READER_H
#define SEGUE_STORE_READER_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct reader {
  int fd;
  struct buf buffer;
  size_t start;    /* of what is not given out yet */
  uint64_t offset; /* in the file, of the line given out last */
  bool eof, whole; /* whole: the last line given out ended with a newline */
  bool too_long;   /* a line is over LIMIT_LOG_LINE_BYTES: reading ended */
  int error;       /* errno of a failed read, 0 */
};

bool reader_open(struct reader *r, const char *path, struct err *err) MUST_CHECK;
bool reader_next(struct reader *r, struct str *line);
/* Looks again for what was appended since (show --follow). */
void reader_again(struct reader *r);
void reader_close(struct reader *r);

#endif
