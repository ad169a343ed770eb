/* verify.h - checks that a log is what was written: chain, sequence, schema, order of the session's
 * records, hash of the workflow, blobs, whether what a record refers to exists (links.h), and
 * whether the records fold to a session that can be resumed.
 *
 *   v = verifier_new(&err)
 *   verify_log(v, &ref, heads, n, &result, &err)   any number of times; false: it cannot be opened
 *   verifier_free(v)
 *
 * A log is sound up to its first bad record; nothing after that is read. The chain cannot detect a
 * log cut off at the end of a record, or rewritten as a whole; the heads can, and so can the row of
 * a shared store. Memory: the session's state, as while it ran, and 40 bytes a record.
 */
#ifndef SEGUE_AUDIT_VERIFY_H
#define SEGUE_AUDIT_VERIFY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct store_ref;
struct heads;

enum { VERIFY_STATE_COUNT = 5 };
enum verify_state {
  VERIFY_COMPLETE, /* ends with session_end */
  VERIFY_OPEN,     /* sound, without session_end: running, stopped or crashed */
  VERIFY_EMPTY,    /* no whole record and no piece of one: killed before it had begun */
  VERIFY_TORN,     /* open, with a partial line at its end, which the chain does not cover */
  VERIFY_BAD
};

enum verify_seal {
  VERIFY_UNSEALED,
  VERIFY_SEALED,     /* its last record is the one in the ledger, or in a list of heads */
  VERIFY_SEALED_LATE /* the same, but the ledger recorded it only when the session was seen again */
};

struct verify_result {
  enum verify_state state;
  enum verify_seal seal;
  char session[40];    /* "" before its first record is known */
  uint64_t records;    /* number of sound records */
  uint64_t bad_record; /* number of the first bad record (records + 1); 0: none is bad */
  uint64_t torn_bytes;
  struct err why; /* fault of the bad record */
  /* Report files that differ from the log. They do not make the log unsound. */
  size_t reports_changed, reports_missing;
  char reports[400]; /* "plan.md (changed), work.md (missing)", perhaps cut; or "" */
};

struct verifier; /* the compiled schema */
struct verifier *verifier_new(struct err *err);
void verifier_free(struct verifier *v);

/* Checks a log. heads: what the ledger, and lists kept elsewhere, say of sessions; read them before
 * the log. */
bool verify_log(const struct verifier *v, const struct store_ref *ref,
                const struct heads *const *heads, size_t heads_count, struct verify_result *out,
                struct err *err) MUST_CHECK;

const char *verify_state_name(enum verify_state state); /* complete, open, empty, torn, bad */

#endif
