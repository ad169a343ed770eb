/* links.h - checks what a record says about other records and the workflow: places of texts
 * (12#/text), the record that holds a prompt, numbers of calls, the rule that was chosen and where
 * it leads, counts. The chain proves that nobody changed a record afterwards; this proves that what
 * a record points at is there, whoever wrote it.
 *
 *   struct links links = {0};                            once a log
 *   links_check(&links, book, core, record, &err)      each record, in order, before it is applied:
 *                                                        `core` is the fold of those before it
 *
 * The book must keep `places`, and the record must have passed the schema. False: err says which
 * member is wrong. Memory is fixed: a text that is referred to is read from the file again. */
#ifndef SEGUE_AUDIT_LINKS_H
#define SEGUE_AUDIT_LINKS_H

#include "audit/book.h"
#include "core/record.h"
#include "core/state.h"

enum { LINKS_KNOWN_COUNT = 256 }; /* places already checked: prompts share most of theirs */

struct links {
  char known[LINKS_KNOWN_COUNT][TEXTS_PLACE_BYTES];
};

bool links_check(struct links *links, const struct book *book, const struct core *core,
                 const struct record *record, struct err *err) MUST_CHECK;

#endif
