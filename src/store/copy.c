/* Copies a session from one store to another: first its blobs, then its lines, as they are. */
#include "store/copy.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/backend.h"
#include "store/reader.h"
#include "store/record_line.h"
#include "store/summary.h"

#include <stdlib.h>
#include <string.h>

enum { COPY_CHUNK_BYTES = 64 * 1024 };

/* --- blobs --- */

static bool copy_blobs_of(struct str line, const struct store *from, const struct store *to,
                          struct err *err) {
  char sha256[SHA256_HEX], put[SHA256_HEX];
  bool ok = true;
  while (ok && store_next_blob(&line, sha256)) {
    buf_auto_t bytes = {0};
    ok =
        store_blob_get(from, sha256, &bytes, err) && store_blob_put(to, buf_view(&bytes), put, err);
  }
  return ok;
}

/* --- the source --- */

struct source_end {
  uint64_t records, bytes;
  char hash[SHA256_HEX];
};

/* Checks the whole source before anything is written. */
static bool check_source(const struct store_ref *ref, struct source_end *end, struct err *err) {
  struct log_reader r;
  struct str line;
  bool ok = true;
  *end = (struct source_end){0};
  memcpy(end->hash, record_line_first_hash, SHA256_HEX);
  if (!reader_open(&r, ref, err))
    return false;
  while (ok && reader_next(&r, &line)) {
    char hash[SHA256_HEX];
    struct err why = {.text = "it has no end"};
    ok = r.whole && record_line_check(line, end->hash, hash, &why);
    if (!ok) {
      err_set(err, ERR_CORRUPT, "record %llu of %s is damaged: %s: it is not copied",
              (unsigned long long)end->records + 1, ref->name, why.text);
      break;
    }
    memcpy(end->hash, hash, SHA256_HEX);
    end->records++;
    end->bytes = r.offset + line.n + 1;
  }
  if (ok && r.error != 0)
    ok = err_set_errno(err, r.error, "cannot read %s", ref->name);
  reader_close(&r);
  return ok;
}

/* Returns whether both begin with the same `bytes` bytes. */
static bool begins_alike(const struct store_ref *a, const struct store_ref *b, uint64_t bytes,
                         struct err *err) {
  struct log_reader ra, rb;
  if (!reader_open(&ra, a, err))
    return false;
  if (!reader_open(&rb, b, err)) {
    reader_close(&ra);
    return false;
  }
  char *one = xmalloc(2 * COPY_CHUNK_BYTES), *two = one + COPY_CHUNK_BYTES;
  bool alike = true;
  for (uint64_t at = 0; alike && at < bytes;) {
    uint64_t left = bytes - at;
    size_t n = left < COPY_CHUNK_BYTES ? (size_t)left : COPY_CHUNK_BYTES;
    alike = reader_read_all(&ra, at, one, n) && reader_read_all(&rb, at, two, n) &&
            memcmp(one, two, n) == 0;
    at += n;
  }
  free(one);
  reader_close(&ra);
  reader_close(&rb);
  return alike || err_set(err, ERR_INVALID, "%s already exists there, with other records", b->name);
}

/* --- the target --- */

/* Appends what is in log->batch. */
static bool copy_flush(struct store_log *log, uint64_t seq, const char *hash, struct err *err) {
  if (log->batch.n == 0)
    return true;
  log->batch_seq = seq;
  memcpy(log->batch_hash, hash, SHA256_HEX);
  if (log->ops->append_now(log, err) != STORE_OK)
    return false;
  log->bytes += log->batch.n;
  log->seq = seq;
  memcpy(log->hash, hash, SHA256_HEX);
  buf_clear(&log->batch);
  return true;
}

/* Copies each line after those that the target has. */
static bool copy_lines(struct store *to, const struct store_ref *ref, struct store_log *log,
                       struct err *err) {
  struct log_reader r;
  struct str line;
  struct store from;
  uint64_t seq = log->seq;
  char hash[SHA256_HEX], next[SHA256_HEX];
  store_of(ref, &from);
  if (!reader_open(&r, ref, err))
    return false;
  reader_from(&r, log->bytes);
  memcpy(hash, log->hash, SHA256_HEX);
  bool ok = true;
  while (ok && reader_next(&r, &line)) {
    if (log->batch.n + line.n > LIMIT_STORE_PIPELINE_BYTES)
      ok = copy_flush(log, seq, hash, err);
    ok = ok && record_line_check(line, hash, next, err) && copy_blobs_of(line, &from, to, err);
    buf_str(&log->batch, line);
    buf_putc(&log->batch, '\n');
    memcpy(hash, next, SHA256_HEX);
    seq += ok;
  }
  ok = ok && copy_flush(log, seq, hash, err);
  if (ok && r.error != 0)
    ok = err_set_errno(err, r.error, "cannot read %s", ref->name);
  reader_close(&r);
  buf_clear(&log->batch);
  return ok;
}

/* Returns the labels that the session asks of its workers, for the target's queue; or NULL. */
static json_t *copy_labels(const struct store_ref *ref) {
  struct log_reader r;
  struct str line;
  struct err ignored;
  json_t *on = NULL;
  if (!reader_open(&r, ref, &ignored))
    return NULL;
  if (reader_next(&r, &line)) {
    json_auto_t *first = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    on = json_incref(json_object_get(json_object_get(first, "config"), "on"));
  }
  reader_close(&r);
  return on;
}

/* Returns whether the source's records may continue the target's `bytes` bytes of the session.
 * Whoever moves a session must own the target even if it is whole. */
static bool copy_check_target(const struct store_ref *ref, const struct store_ref *there,
                              const struct source_end *end, bool moves, uint64_t *bytes,
                              struct err *err) {
  *bytes = 0;
  if (!store_is_there(there) || !store_bytes(there, bytes) || *bytes == 0)
    return true;
  if ((moves || *bytes < end->bytes) && store_is_owned(there))
    return err_set(err, ERR_LOCKED, "%s already exists there, and somebody has it", there->name);
  if (*bytes > end->bytes)
    return err_set(err, ERR_INVALID, "%s already exists there, and has more records", there->name);
  return begins_alike(ref, there, *bytes, err);
}

static bool copy_set_aside(struct store_log *source, const char *place, struct err *err) {
  return source == NULL || source->ops->set_aside(source, place, err);
}

/* Copies into transit, so that a part is never taken for the log. source: to be moved, and set
 * aside before the copy arrives; NULL: the session has ended, and stays. */
static enum copy_result copy_through(struct store *to, const struct store_ref *ref,
                                     struct store_log *source, const char *id,
                                     const struct source_end *end, struct err *err) {
  struct store_ref there;
  struct store_move move = {.begins = true};
  char place[STORE_NAME_BYTES];
  store_ref(to, id, &there);
  to->ops->place(to, place);
  if (!copy_check_target(ref, &there, end, source != NULL, &move.bytes, err))
    return COPY_FAILED;
  if (move.bytes == end->bytes && to->ops->stand(&there) == STAND_GOES_ON)
    return copy_set_aside(source, place, err) ? COPY_THERE : COPY_FAILED;
  json_auto_t *on = copy_labels(ref);
  move.on = on;
  struct store_log *log = to->ops->move_in(to, id, &move, err);
  bool ok = log != NULL && copy_lines(to, ref, log, err) && copy_set_aside(source, place, err) &&
            log->ops->arrive(log, err);
  store_close(log);
  return ok ? COPY_DONE : COPY_FAILED;
}

/* --- moves --- */

/* Owns the source from before the copy until it is set aside. */
static enum copy_result copy_moving(struct store *to, const struct store_ref *ref, const char *id,
                                    struct err *err) {
  struct store from;
  struct store_mend mend = {0};
  struct source_end end;
  enum copy_result result = COPY_FAILED;
  store_of(ref, &from);
  struct store_log *log = store_attach(&from, ref, NULL, NULL, &mend, err);
  if (log == NULL)
    return COPY_FAILED;
  if (check_source(ref, &end, err))
    result = copy_through(to, ref, log, id, &end, err);
  store_close(log);
  return result;
}

/* Takes the log in transit, and lets it arrive if it is the one that was set aside. */
static enum copy_result move_finish(struct store *to, const struct store_ref *aside, const char *id,
                                    struct err *err) {
  struct source_end end;
  struct store_move move = {0};
  if (!check_source(aside, &end, err))
    return COPY_FAILED;
  move.bytes = end.bytes;
  struct store_log *log = to->ops->move_in(to, id, &move, err);
  bool ok = log != NULL;
  if (ok && (log->seq != end.records || memcmp(log->hash, end.hash, SHA256_HEX) != 0))
    ok = err_set(err, ERR_CORRUPT, "%s is not what was set aside as %s", log->name, aside->name);
  ok = ok && log->ops->arrive(log, err);
  store_close(log);
  return ok ? COPY_DONE : COPY_FAILED;
}

/* Continues a move whose source is set aside. */
static enum copy_result copy_moved(struct store *to, const struct store_ref *aside, const char *id,
                                   const char *moved_to, struct err *err) {
  struct store_ref there;
  char place[STORE_NAME_BYTES];
  to->ops->place(to, place);
  if (strcmp(place, moved_to) != 0) {
    err_set(err, ERR_INVALID, "session %s was moved to %s", id,
            moved_to[0] != '\0' ? moved_to : "another store");
    return COPY_GONE;
  }
  store_ref(to, id, &there);
  enum store_stand stand = to->ops->stand(&there);
  if (stand == STAND_IN_TRANSIT)
    return move_finish(to, aside, id, err);
  if (stand == STAND_GOES_ON)
    return COPY_THERE;
  err_set(err, ERR_INVALID, "session %s was moved to %s, and is not there any more", id, moved_to);
  return COPY_GONE;
}

enum copy_result copy_log(struct store *to, const struct store_ref *ref, bool move,
                          struct err *err) {
  struct summary b;
  struct source_end end;
  struct store_ref aside;
  char id[STORE_ID_BYTES], moved_to[STORE_NAME_BYTES];
  bool is_aside = move && ref->ops->set_aside_to(ref, &aside, moved_to);
  if (!summary_read(&b, is_aside ? &aside : ref, err))
    return COPY_FAILED;
  print_into(id, sizeof id, "%.36s", b.session);
  bool over = summary_is_over(&b);
  summary_deinit(&b);
  if (strlen(id) != STORE_ID_BYTES - 1 || strspn(id, "0123456789abcdef-") != strlen(id)) {
    err_set(err, ERR_CORRUPT, "%s is not the log of a session: it names none", ref->name);
    return COPY_FAILED;
  }
  if (is_aside)
    return copy_moved(to, &aside, id, moved_to, err);
  if (!over && !move) {
    err_set(err, ERR_INVALID,
            "%s has not ended, and can continue in only one place: --move moves it there", id);
    return COPY_LEFT;
  }
  if (!over)
    return copy_moving(to, ref, id, err);
  return check_source(ref, &end, err) ? copy_through(to, ref, NULL, id, &end, err) : COPY_FAILED;
}

bool copy_list_moved(const struct store *store, bool in_transit, struct store_id **ids,
                     size_t *count, struct err *err) {
  enum store_stand stand = in_transit ? STAND_IN_TRANSIT : STAND_SET_ASIDE;
  *ids = NULL;
  *count = 0;
  return store->ops->list_stand == NULL || store->ops->list_stand(store, stand, ids, count, err);
}
