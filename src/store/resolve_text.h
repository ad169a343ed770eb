/* resolve_text.h - restores texts that a log stores once: from parts, references and blobs to
 * bytes.
 *
 * A part of a prompt is a string or {"ref": "12#/text"}: sequence number and JSON Pointer. If the
 * record says that its text is in a blob, the reference means the blob's bytes. */
#ifndef SEGUE_STORE_RESOLVE_TEXT_H
#define SEGUE_STORE_RESOLVE_TEXT_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

struct store;

struct resolve {
  void *ctx;
  json_t *(*record)(void *ctx, uint64_t seq, struct err *err); /* new reference or NULL */
  const struct store *store;                                   /* has the blobs */
};

/* Appends the bytes of a prompt's parts to `out`. */
bool resolve_parts(const struct resolve *recall, const json_t *parts, struct buf *out,
                   struct err *err) MUST_CHECK;
/* Returns whether a place such as "12#/text" holds a text; its blob is not looked at. */
bool resolve_has(const struct resolve *recall, const char *place, struct err *err) MUST_CHECK;
/* Appends the text `key` of a record, inline or from its blob. */
bool resolve_text(const struct resolve *recall, const json_t *record, const char *key,
                  struct buf *out, struct err *err) MUST_CHECK;

#endif
