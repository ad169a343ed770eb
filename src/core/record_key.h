/* record_key.h - finds the members of records by name, for the code that makes and reads them;
 * internal. */
#ifndef SEGUE_CORE_RECORD_KEY_H
#define SEGUE_CORE_RECORD_KEY_H

#include "core/record.h"

/* Returns MEMBER_COUNT if no member has that name. */
enum member record_key_of(const char *name, size_t n);
bool record_key_is_tree(enum member key);
/* Puts the text of a list or an object, which lives as long as the draft. */
void record_put_raw(struct record_draft *d, enum member key, struct str text);

/* Builds a value from its text; NULL if it is not JSON. */
json_t *record_raw_tree(struct str text);

#endif
