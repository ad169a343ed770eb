/* reread.h - a judge's reply read once more, aloud: every place where the extractor saw JSON and
 * what became of it, and every tag the tag reader counts. Made again from the raw reply with the
 * reader and the schema that judged; the record of the stage stays what counts. */
#ifndef SEGUE_AUDIT_REREAD_H
#define SEGUE_AUDIT_REREAD_H

#include "audit/pen.h"
#include "judge/chain.h"

void reread_reply(struct pen *pen, const struct chain_schemas *schemas, enum judge_stage stage,
                  const struct chain_spec *spec, const json_t *structured, struct str text);

#endif
