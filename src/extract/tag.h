/* tag.h - reads the tag [NAME:N] with which an agent or a judge names a rule.
 *
 * What counts is a rule of form. The last line that holds more than ---, *** or emoji must read,
 * after at most three spaces and a list mark:
 *
 *   [emoji] [lead-in and : or dash] [arrow] TAG [. or !] [emoji, or that rule's own words]
 *
 * - Lead-ins are the words of tag_line.c ("Verdict", "Final status", "判定"); a heading of one #,
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
 * after it (tag_line.h: tag_line_number). *place: where. */
bool tag_number_beside(struct str text, size_t from, size_t to, long number,
                       const struct tag_query *query, struct tag_place *place);

#endif
