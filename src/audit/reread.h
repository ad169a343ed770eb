/* reread.h - reads a judge's reply once more and shows how: every place where the extractor saw
 * JSON and what became of it, and every tag the tag reader counts. It uses the raw reply, the
 * reader and the schema that judged; the stage's record remains what counts. */
#ifndef SEGUE_AUDIT_REREAD_H
#define SEGUE_AUDIT_REREAD_H

#include "audit/pen.h"
#include "judge/chain.h"

void reread_reply(struct pen *pen, const struct chain_schemas *schemas, enum judge_stage stage,
                  const struct chain_spec *spec, const json_t *structured, struct str text);

#endif
