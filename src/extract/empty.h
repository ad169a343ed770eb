/* empty.h - recognizes an answer that says nothing: empty, white space, or reasoning alone. */
#ifndef SEGUE_EXTRACT_EMPTY_H
#define SEGUE_EXTRACT_EMPTY_H

#include "base/str.h"

/* Reasoning (<think> and its relatives, see extract/context.c) at the start that never ends counts
 * as reasoning alone. Work is linear in the text's length. */
bool extract_says_nothing(struct str text);

#endif
