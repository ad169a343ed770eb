/* kept.h - the part of a program's stdout or stderr that is kept: without secrets, and within a
 * bound, both ends kept (base/head_tail.h). Secrets are removed before anything is cut, so that
 * none is cut in two.
 *
 *   kept_init, kept_push for each piece, kept_take at the end; kept_deinit */
#ifndef SEGUE_PROVIDER_KEPT_H
#define SEGUE_PROVIDER_KEPT_H

#include "base/head_tail.h"
#include "core/call.h"
#include "provider/redact.h"

struct kept {
  struct redactor redactor;
  struct buf piece; /* without secrets, on its way */
  struct head_tail bytes;
};

void kept_init(struct kept *k, const struct secrets *secrets, size_t max); /* secrets: borrowed */
void kept_push(struct kept *k, struct str piece);
/* Into an empty text; *dropped is how many bytes were cut out. k is empty afterwards, as after
 * kept_init. */
void kept_take(struct kept *k, struct text *text, uint64_t *dropped);
void kept_deinit(struct kept *k); /* accepts a zeroed one */

#endif
