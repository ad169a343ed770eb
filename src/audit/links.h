/* links.h - what a record says of other records and of the workflow, held against them: places of
 * texts (12#/text), the record that holds a prompt, numbers of calls, the rule that was chosen and
 * where it leads, counts. The chain proves that nobody changed a record afterwards; this proves
 * that what a record points at is there, whoever wrote it.
 *
 *   struct links links = {0};                            once a log
 *   links_check(&links, book, core, record, &err)      each record, in order, before it is applied:
 *                                                        `core` is what those before it fold to
 *
 * The book keeps `places`. The record has passed the schema. False: err says which member is wrong.
 * Memory: fixed. A text that is referred to is read once more from the file. */
#ifndef SEGUE_AUDIT_LINKS_H
#define SEGUE_AUDIT_LINKS_H

#include "audit/book.h"
#include "core/state.h"

enum { LINKS_KNOWN_COUNT = 256 }; /* places that are not looked at again: prompts share most */

struct links {
  char known[LINKS_KNOWN_COUNT][TEXTS_PLACE_BYTES];
};

bool links_check(struct links *links, const struct book *book, const struct core *core,
                 const json_t *record, struct err *err) MUST_CHECK;

#endif
