/* otlp.h - a session as spans of OpenTelemetry, in OTLP's JSON form, with the names that its
 * conventions for generative AI have: one pass over the log, each record checked against the chain.
 *
 *   otlp_read(&ref, &how, &err)     calls how.batch with {"resourceSpans": [...]}, in order
 *
 * The trace is the session's id, and a span's id a hash of what it is of, so that the same log
 * gives the same bytes each time. Texts of prompts and answers are left out. docs/otlp.md has the
 * names. Memory: LIMIT_OTLP_SPAN_COUNT spans, and those that are open. Blocking. */
#ifndef SEGUE_AUDIT_OTLP_H
#define SEGUE_AUDIT_OTLP_H

#include "base/err.h"
#include "core/capability.h"
#include "store/store.h"

#include <jansson.h>

struct otlp_how {
  const struct capability *backends; /* which of them are agents; ends with a NULL name */
  bool reasons;                      /* with what judges gave as their reason */
  bool (*batch)(void *ctx, json_t *owned_request); /* false: no more is wanted */
  void *ctx;
};

/* False: the log cannot be opened, or is damaged after what was passed on. */
bool otlp_read(const struct store_ref *ref, const struct otlp_how *how, struct err *err) MUST_CHECK;

#endif
