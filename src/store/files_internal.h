/* files_internal.h - what files.c lends to sidecar.c, which keeps other files in a log folder than
 * logs. */
#ifndef SEGUE_STORE_FILES_INTERNAL_H
#define SEGUE_STORE_FILES_INTERNAL_H

#include "store/backend.h"

/* Writes all of it from byte `at` on; false: errno says why. */
bool files_write_all(int fd, const char *p, size_t n, uint64_t at) MUST_CHECK;
bool files_sync_dir(const char *dir) MUST_CHECK;

#endif
