/* tag_line.h - decides whether one line has the form of a verdict (see tag.h). */
#ifndef SEGUE_EXTRACT_TAG_LINE_H
#define SEGUE_EXTRACT_TAG_LINE_H

#include "extract/tag.h"

/* Length of the tag at the start of `text`, 0 when there is none. */
size_t tag_match(struct str text, struct str name, long *number);

/* Does the line have the form? *tag: offset and length in the line, and the number. In a verdict
 * every mark of bold, italic or code must close; to cast doubt on one, it need not. */
bool tag_line_read(struct str line, const struct tag_query *query, bool verdict,
                   struct tag_place *tag);

/* Does the line give a bare number after a lead-in ("Verdict: 2", "Step: 2") or, with any_words,
 * after any words and a colon ("Scratch that: 2")? *place: offset and length in the line, and the
 * number. Such a line casts doubt on a value; it is not a verdict. */
bool tag_line_number(struct str line, const struct tag_query *query, bool any_words,
                     struct tag_place *place);

/* True if the line has only white space, a rule of at least three -, * or _, or emoji and
 * end-of-turn tokens. */
bool tag_line_is_empty(struct str line);

/* tag_words.c: what may stand before a tag. */

/* Length of the lead-in at the start of `text` ("Final verdict"), 0 when there is none. */
size_t tag_lead_in(struct str text);
/* Does the line refer to the line below it ("Ignore the next line")? */
bool tag_points_below(struct str line);
/* Length of the emoji at the start of `text`, with their joiners and variants. */
size_t tag_emoji(struct str text);
/* Length of the end-of-turn token at the start of `text` (</s>, <|im_end|>). */
size_t tag_token(struct str text);

#endif
