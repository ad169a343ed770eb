/* file.h - reads a whole small file into memory, checking its size first, and writes one. */
#ifndef SEGUE_BASE_FILE_H
#define SEGUE_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Regular files only: a folder, FIFO or device is an error and never blocks. More than max bytes is
 * ERR_LIMIT. Appends to `out`. */
bool file_read(const char *path, size_t max, struct buf *out, struct err *err) MUST_CHECK;
/* The same from an open descriptor (a pipe, stdin) to its end. */
bool file_read_fd(int fd, const char *name, size_t max, struct buf *out,
                  struct err *err) MUST_CHECK;
/* NULL is none. */
bool file_is_folder(const char *path);
/* Writes a file that must not be there yet, for this user alone. */
bool file_write_new(const char *path, struct str content, struct err *err) MUST_CHECK;

#endif
