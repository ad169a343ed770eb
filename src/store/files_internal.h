/* files_internal.h - a log file as the parts of store.h know it: files.c makes, locks and appends,
 * attach.c reads one back and mends its end, blob.c keeps what is too long for a line. */
#ifndef SEGUE_STORE_FILES_INTERNAL_H
#define SEGUE_STORE_FILES_INTERNAL_H

#include "store/store.h"

struct store_log {
  struct store *store;
  char *path;
  int fd;
  uint64_t durable_bytes; /* what a sync has confirmed */
  uint64_t seq;           /* of the last durable record */
  char hash[SHA256_HEX];  /* of the last durable record */
  bool sync_dir;          /* the file is new: its name is not durable yet */
  bool broken;
  uint64_t syncs;
  uint64_t *offsets; /* by seq - 1, of an attached log: for store_read */
  size_t offset_count;
  uint64_t folded_bytes; /* where the last of them ends */
  /* the batch in flight, or kept after STORE_FULL */
  struct buf batch;
  uint64_t batch_seq;
  char batch_hash[SHA256_HEX];
  bool in_flight;
  uv_work_t work;
  enum store_result result;
  struct err *err; /* of the last append, NULL when it went well */
  store_done_fn done;
  void *done_ctx;
};

struct store_log *files_log_new(struct store *store, const char *path, int fd);
/* The lock dies with the descriptor, so with its owner. */
bool files_lock(int fd, const char *path, struct err *err) MUST_CHECK;
/* All of it from byte `at` on; false: errno says why. */
bool files_write_all(int fd, const char *p, size_t n, uint64_t at) MUST_CHECK;
bool files_sync_dir(const char *dir) MUST_CHECK;

#endif
