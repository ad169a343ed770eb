/* resume_flags.h - the options with which `segue resume` continues a stopped session. */
#ifndef SEGUE_AUDIT_RESUME_FLAGS_H
#define SEGUE_AUDIT_RESUME_FLAGS_H

#include "base/buf.h"
#include "base/str.h"

#include <jansson.h>

/* Appends what must or can be given after a stop with this status: " --max-movements N",
 * " --add-budget tokens=N", or nothing. budget: the record of a budget that was used up, or NULL.
 */
void resume_flags(struct str status, const json_t *budget, struct buf *out);

#endif
