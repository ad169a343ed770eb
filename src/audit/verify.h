/* verify.h - is a log what was written? Chain, sequence, schema, order of the session's records,
 * hash of the workflow, blobs, whether what a record refers to is there (links.h), and whether the
 * records fold to a session that can be resumed.
 *
 *   v = verifier_new(&err)
 *   verify_file(v, path, &result, &err)     any number of times; false: it cannot be opened
 *   verifier_free(v)
 *
 * A log is sound up to its first bad record; behind that nothing is looked at. What the chain cannot
 * find is a log cut off at the end of a record: it verifies as open. Memory: the session's state, as
 * while it ran, and 40 bytes a record. */
#ifndef SEGUE_AUDIT_VERIFY_H
#define SEGUE_AUDIT_VERIFY_H

#include "base/err.h"

#include <stdint.h>

enum verify_state {
  VERIFY_COMPLETE, /* ends with session_end */
  VERIFY_OPEN,     /* sound, without session_end: running, stopped or crashed */
  VERIFY_TORN,     /* open, and a piece of a line stands at its end: the chain does not cover it */
  VERIFY_BAD
};

struct verify_result {
  enum verify_state state;
  char session[40];    /* "" before its first record is known */
  uint64_t records;    /* sound ones */
  uint64_t bad_record; /* number of the first bad one (records + 1), 0 when none is bad */
  uint64_t torn_bytes;
  struct err why; /* of the bad record */
};

struct verifier; /* the compiled schema */
struct verifier *verifier_new(struct err *err);
void verifier_free(struct verifier *v);

bool verify_file(const struct verifier *v, const char *path, struct verify_result *out,
                 struct err *err) MUST_CHECK;

const char *verify_state_name(enum verify_state state); /* complete, open, torn, bad */

#endif
