/* tag.h - reads the tag [NAME:N] with which an agent or a judge names a rule.
 *
 * What counts is form alone: no word of any language is known here but the names of formats.
 *
 * An agent was told a word that is new for each turn, its mark, and is asked to write it behind the
 * tag. Only such a tag counts: whoever wrote it had read the question. It stands on the last line
 * that says something (has a letter or digit; reasoning sections and end-of-turn tokens apart):
 *
 *   [signs, or words that end in a colon, dash or arrow] TAG MARK [signs, or that rule's own words]
 *
 * - Between tag and mark are only signs, on that line, at most TAG_GAP_BYTES.
 * - A question mark, three dots, a strike-through, an open tick box or "<" beside it make it none;
 *   so do quotation marks, unless the tag is alone on its line. One element around it alone counts.
 * - The line above that says something must be closed: a heading, a list item, a row, a rule, a
 *   fence, or ended by a sentence's last sign. Not for commands.
 * - Another number with the mark, or a line of another rule's words alone, makes it ambiguous.
 *
 * Where no mark was asked, the last line must be the tag alone, in no fence, and no other line may
 * begin with another number's tag. A judge's reply must be the tag and nothing else.
 *
 * The name is matched literally, byte by byte, except that ASCII letters fold their case. N is
 * 1-based digits; 0 is not a rule; a number too large for a long saturates. */
#ifndef SEGUE_EXTRACT_TAG_H
#define SEGUE_EXTRACT_TAG_H

#include "base/limits.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum { TAG_MARK_BYTES = 4, TAG_GAP_BYTES = 16 };

enum tag_scope { TAG_REPLY, TAG_AGENT, TAG_COMMAND };

struct tag_words { /* the own words of rule `number` */
  long number;
  struct str words;
};

struct tag_query { /* all borrowed */
  struct str name; /* without brackets */
  struct str mark; /* empty: none was asked */
  enum tag_scope scope;
  const struct tag_words *words;
  size_t word_count;
};

struct tag_place {
  long number;
  size_t offset, length; /* range of the tag, in bytes */
  size_t line;           /* from 1 */
};

/* Says what became of the mark that was asked: it decides; it stands elsewhere; the last line's tag
 * has another word of its form; it is nowhere. */
enum tag_mark { TAG_UNASKED, TAG_PRESENT, TAG_ELSEWHERE, TAG_WRONG, TAG_MISSING, TAG_MARK_COUNT };

struct tag_result {
  bool found;     /* the text names `tag` */
  bool ambiguous; /* and `other` names another number */
  bool marked;    /* the tag has the mark */
  enum tag_mark mark;
  struct tag_place tag, other;
  /* Tags elsewhere in the text, which are not evidence. */
  struct tag_place mentions[LIMIT_TAG_MENTION_COUNT];
  size_t mention_count, mentions_dropped;
};

/* Work is linear in the text's length. */
void tag_read(struct str text, const struct tag_query *query, struct tag_result *out);

/* "present" "elsewhere" "wrong" "missing"; NULL for none */
const char *tag_mark_name(enum tag_mark mark);

/* Makes a mark of random bytes. Its first letter is one whose bit is not in `used` (bit 0: b), if
 * one is left. */
void tag_mark_make(const unsigned char random[TAG_MARK_BYTES], uint32_t used,
                   char out[TAG_MARK_BYTES + 1]);
/* Returns the bit of the mark's first letter; 0 if the word is no mark. */
uint32_t tag_mark_letter(struct str mark);

/* Copies the text without the line of a marked tag at its end. Returns false if it has none. */
bool tag_cut_marked(struct str *text, struct str name, struct str mark);

/* Returns whether they are the same but for the case of ASCII letters. */
bool tag_folded_equal(struct str a, struct str b);

/* Returns the text without the signs at both ends. */
struct str tag_without_signs(struct str s);

/* Length of the letter or digit of any script at the start of `s`, 0 if there is none. */
size_t tag_letter(struct str s);

#endif
