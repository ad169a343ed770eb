/* tag.h - reads the tag [NAME:N] with which an agent or a judge names a rule.
 *
 * What counts is a rule of form. The last line that holds more than ---, *** or emoji must read,
 * after at most three spaces and a list mark:
 *
 *   [emoji] [lead-in and : or dash] [arrow] TAG [. or !] [emoji, or that rule's own words]
 *
 * - Lead-ins are the words of tag.c ("Verdict", "Final status", "判定"); a heading of one #,
 *   which may be a comment, needs one.
 * - In a row below another row of a table, the cell before the tag's is a lead-in.
 * - The rule's own words may be in parentheses or after a dash.
 * - Bold, italic and inline code may wrap any part.
 * - One space after the tag's colon, a byte order mark before the text, end-of-turn tokens at its
 *   end and a signature ("-- ", then one short line) are allowed.
 * - Anything else on the line, even a control or invisible character, makes it no verdict.
 *
 * The line does not count where it may be somebody else's:
 * - in a fence or in reasoning (<think> and its relatives); a judge's reply may be a single fence;
 * - while a quotation, """, an element, a comment or a here-document is open;
 * - below a line, with no blank line between, that begins as quotations, markup, diffs, prompts of
 *   a shell or speakers do; an indented line belongs to what is above it, even across a blank line;
 * - if the last line above that says something is a prompt, a heading, a banner, ends in a colon or
 *   leaves its sentence open, unless its words do nothing but hand over the writer's own verdict;
 *   or if it speaks of what is below ("Ignore the next line").
 *
 * Another line of the form, or a lead-in with another rule's number or words, makes it ambiguous.
 *
 * The name is matched literally, byte by byte, except that ASCII letters fold their case. N is
 * 1-based ASCII digits; 0 is not a rule; a number too large for a long
 * saturates. */
#ifndef SEGUE_EXTRACT_TAG_H
#define SEGUE_EXTRACT_TAG_H

#include "base/limits.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum tag_scope { TAG_REPLY, TAG_AGENT };

struct tag_words { /* the own words of rule `number` */
  long number;
  struct str words;
};

struct tag_query { /* all borrowed */
  struct str name; /* without brackets */
  enum tag_scope scope;
  const struct tag_words *words;
  size_t word_count;
};

struct tag_place {
  long number;
  size_t offset, length; /* range of the tag, in bytes */
  size_t line;           /* from 1 */
};

struct tag_result {
  bool found;     /* the last line names `tag` */
  bool ambiguous; /* and `other`, a line of the same form outside fences, names another number */
  struct tag_place tag, other;
  /* Tags elsewhere in the text, which are not evidence. */
  struct tag_place mentions[LIMIT_TAG_MENTION_COUNT];
  size_t mention_count, mentions_dropped;
};

/* Returns whether a rule of that number is offered. */
bool tag_is_offered(const struct tag_query *query, long number);
/* Work is linear in the text's length. */
void tag_read(struct str text, const struct tag_query *query, struct tag_result *out);

/* Finds a line that contradicts the number of the value at [from, to): the line above it or one
 * after it (tag_line_number). *place: where. */
bool tag_number_beside(struct str text, size_t from, size_t to, long number,
                       const struct tag_query *query, struct tag_place *place);

/* --- what a reader of values asks too --- */

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
