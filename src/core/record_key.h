/* Internal: members of records by name, for those who make and read them. */
#ifndef SEGUE_CORE_RECORD_KEY_H
#define SEGUE_CORE_RECORD_KEY_H

#include "core/record.h"

/* MEMBER_COUNT: there is none of that name. */
enum member record_key_of(const char *name, size_t n);
bool record_key_is_tree(enum member key);

#endif
