/* Compares the rows of a shared store with its logs. */
#include "store/shared.h"

#include "base/log.h"
#include "store/line.h"
#include "store/postgres/shared.h"
#include "store/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log_end { /* according to its lines */
  uint64_t seq, bytes;
  char hash[SHA256_HEX];
  struct err why; /* code ERR_NONE: all are sound */
};

static bool read_end(const struct store_ref *ref, struct log_end *end, struct err *err) {
  struct log_reader r;
  struct str line;
  *end = (struct log_end){0};
  memcpy(end->hash, line_first_hash, SHA256_HEX);
  if (!reader_open(&r, ref, err))
    return false;
  while (end->why.code == ERR_NONE && reader_next(&r, &line)) {
    char hash[SHA256_HEX];
    struct err why = {0};
    if (!r.whole || !line_check(line, end->hash, hash, &why)) {
      (void)err_set(&end->why, ERR_CORRUPT, "record %llu is damaged: %s",
                    (unsigned long long)end->seq + 1, r.whole ? why.text : "it has no end");
      break;
    }
    memcpy(end->hash, hash, SHA256_HEX);
    end->seq++;
    end->bytes = r.offset + line.n + 1;
  }
  bool ok = r.error == 0 || err_set_errno(err, r.error, "cannot read %s", ref->name);
  reader_close(&r);
  return ok;
}

/* Corrects a row directly, which only the owner of the tables may do. */
static bool mend_row(struct pg_base *pg, const char *id, const struct log_end *end,
                     struct err *err) {
  char seq[24], bytes[24];
  enum conn_failure failure;
  (void)snprintf(seq, sizeof seq, "%llu", (unsigned long long)end->seq);
  (void)snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)end->bytes);
  const struct conn_arg args[] = {arg_text(id), arg_text(seq), arg_text(bytes),
                                  arg_text(end->hash)};
  PGresult *answer = base_ask(pg,
                              "UPDATE segue.session SET seq = $2::bigint, bytes = $3::bigint, hash "
                              "= decode($4, 'hex') WHERE id = $1::uuid AND state <> 'held'",
                              args, ARRAY_LEN(args), false, &failure, err);
  conn_free(answer);
  return answer != NULL;
}

static bool check_one(struct store *store, struct pg_base *pg, const PGresult *rows, int i,
                      bool mend, struct shared_finding *found, char text[256], struct err *err) {
  struct store_ref ref;
  struct log_end end;
  shared_ref(store, conn_text(rows, i, 0), &ref);
  if (!read_end(&ref, &end, err))
    return false;
  *found = (struct shared_finding){.session = conn_text(rows, i, 0), .records = end.seq};
  bool agrees = end.seq == conn_number(rows, i, 1) && end.bytes == conn_number(rows, i, 2) &&
                strcmp(end.hash, conn_text(rows, i, 3)) == 0;
  if (end.why.code != ERR_NONE)
    (void)snprintf(text, 256, "%.250s", end.why.text);
  else if (!agrees)
    (void)snprintf(text, 256, "its row says %llu records, its log has %llu",
                   (unsigned long long)conn_number(rows, i, 1), (unsigned long long)end.seq);
  else
    return true;
  found->problem = text;
  if (!mend || end.why.code != ERR_NONE)
    return true;
  found->mended = mend_row(pg, found->session, &end, err);
  return found->mended;
}

bool shared_check(const char *url, bool mend,
                  void (*each)(void *ctx, const struct shared_finding *finding), void *ctx,
                  struct err *err) {
  struct store store;
  enum conn_failure failure;
  char text[256];
  store_at(&store, url);
  struct pg_base *pg = base_of(url, err);
  PGresult *rows = NULL;
  if (pg != NULL)
    rows = base_ask(pg,
                    "SELECT id, seq, bytes, encode(hash, 'hex') FROM segue.session "
                    "WHERE state <> 'held' AND seq > 0 ORDER BY id",
                    NULL, 0, false, &failure, err);
  bool ok = rows != NULL;
  for (int i = 0; ok && i < conn_rows(rows); i++) {
    struct shared_finding found;
    ok = check_one(&store, pg, rows, i, mend, &found, text, err);
    if (ok)
      each(ctx, &found);
  }
  conn_free(rows);
  return ok;
}
