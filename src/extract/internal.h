/* internal.h - shared by the files of this room: marks of reasoning, elements, white space. */
#ifndef SEGUE_EXTRACT_INTERNAL_H
#define SEGUE_EXTRACT_INTERNAL_H

#include "extract/extract.h"
#include "json/scan.h"

/* At text[i], which is '<', '[' or 0xE2: an opener sets *closed to the offset after its closer, or
 * SIZE_MAX when it has none. A closer sets *closed to the offset after it. */
enum extract_tag { EXTRACT_TAG_NO, EXTRACT_TAG_OPENER, EXTRACT_TAG_CLOSER };
enum extract_tag extract_tag_at(const char *text, size_t n, size_t i, size_t *closed);

/* Returns the text without the white space at its ends, BOM, ZWSP and NBSP included. */
struct str extract_trim(struct str text);

/* Length of the start tag, at the start of s, of an element that answers come in (<final>); or 0 */
size_t extract_element(struct str s);
/* Returns the text, trimmed, behind the reasoning sections that it begins with. */
struct str extract_behind_reasoning(struct str text);

#endif
