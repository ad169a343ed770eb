/* fix_copy.h - copies a stretch of text without something that covers all of it, so that it can be
 * read as JSON: a level of escapes, mail quotation, HTML entities, foreign punctuation.
 *
 *   struct fix_copy c = {0};
 *   if (fix_copy_punctuation(&c, text, from, limit)) ... c.text, c.at[i] ...
 *   fix_copy_deinit(&c)                                                    in every case
 *
 * False: there is nothing of the kind. c.at has the offset in the text for each byte of the copy
 * and for its end. Linear. A text of 4 GiB or more is not copied. */
#ifndef SEGUE_EXTRACT_FIX_COPY_H
#define SEGUE_EXTRACT_FIX_COPY_H

#include "base/buf.h"

struct fix_copy {
  struct buf text;
  uint32_t *at; /* owned */
  size_t room;
};

/* {\"a\": \"b\"}: every quote is escaped once too often */
bool fix_copy_unescaped(struct fix_copy *c, const char *text, size_t from, size_t limit);
/* > {"a": 1, > "b": 2}: every line begins with the mark, including the first */
bool fix_copy_unquoted(struct fix_copy *c, const char *text, size_t from, size_t limit);
/* {&quot;a&quot;: 1} */
bool fix_copy_entities(struct fix_copy *c, const char *text, size_t from, size_t limit);
/* Outside of strings, full-width punctuation, semicolons for commas, and \n that was meant to be a
 * line break. */
bool fix_copy_punctuation(struct fix_copy *c, const char *text, size_t from, size_t limit);
void fix_copy_deinit(struct fix_copy *c);

#endif
