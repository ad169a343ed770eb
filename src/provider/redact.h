/* redact.h - secrets never enter: the values of variables that a provider was given are replaced in
 * what it prints, before the bytes become an event, so that memory and log never differ.
 *
 * A value under LIMIT_SECRET_BYTES is too common a text to be one. It becomes «secret:NAME». */
#ifndef SEGUE_PROVIDER_REDACT_H
#define SEGUE_PROVIDER_REDACT_H

#include "base/buf.h"

/* names: NULL-ended, or NULL. Returns how many places were replaced. cut: the text was cut off at a
 * limit, so its end may be the beginning of a value: that is taken off too. */
size_t redact(struct buf *text, const char *const *names, bool cut);

#endif
