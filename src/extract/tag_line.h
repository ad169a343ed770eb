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

/* Length of the lead-in at the start of `text` ("Final verdict"), 0 when there is none. */
size_t tag_lead_in(struct str text);
/* Length of the emoji at the start of `text`, with their joiners and variants. */
size_t tag_emoji(struct str text);

/* Returns the length of a rule's words at the start of `text`, 0 if there are none. */
size_t tag_rule_words(struct str text, const struct tag_query *query);
/* Returns whether they are the same but for the case of ASCII letters. */
bool tag_folded_equal(struct str a, struct str b);

/* tag.c: whose words stand above a tag or a value. A value has no query: NULL. */

/* Does the line hand over the writer's own verdict ("Two fail, so my verdict is:")? It does if it
 * has no words but those of handing over, or its last clause has "so", "my", "I" or "here" and no
 * others. */
bool tag_hands_over(struct str line, const struct tag_query *query);
/* Does the line speak of what is below it and does not hand over a verdict: "README says:", a
 * heading, a banner, a sentence that goes on below, "Ignore the next line"? */
bool tag_points_below(struct str line, const struct tag_query *query);
/* Does the line show that the lines below it, up to a blank one, are somebody else's: a quotation,
 * markup, a prompt of a shell, a part of a diff, "User:"? */
bool tag_begins_foreign(struct str line);
/* Is it a prompt of a shell, a speaker's line or an opener of markup, so that what it shows goes on
 * behind a blank line too? */
bool tag_shows_output(struct str line);
/* Do the words take back what stands above them? */
bool tag_takes_back(struct str text);

/* Keeps what is open at the end of the lines so far; begins zeroed. */
struct tag_blocks {
  struct str element, word; /* names of an element, of a here-document's end; borrowed */
  bool comment, triple, triple_single;
  bool straight, single, low, curly, corner, angle; /* quotation marks */
};
void tag_blocks_line(struct tag_blocks *blocks, struct str line);
bool tag_blocks_open(const struct tag_blocks *blocks);

#endif
