/* describe_words.h - every word that a rendering says, in each language. */
#ifndef SEGUE_RENDER_DESCRIBE_WORDS_H
#define SEGUE_RENDER_DESCRIBE_WORDS_H

#include "render/describe.h"
#include "schema/support.h"

enum word {
  WORD_RETURN,
  WORD_RETURN_PLAIN,
  WORD_RETURN_SCHEMA,
  WORD_NULL_ONLY,
  WORD_NULL_MARKED,
  WORD_NULL_TYPED,
  WORD_NULL_NEVER,
  WORD_NULL_WHOLE,
  WORD_MAY_LEAVE_OUT,
  WORD_NO_INVENTING,
  WORD_EXAMPLE,
  WORD_REQUIRED,
  WORD_OPTIONAL,
  WORD_WHOLE,
  WORD_EACH_ITEM,
  WORD_EACH_FURTHER_ITEM,
  WORD_ITEM,
  WORD_ANY_OTHER_FIELD,
  WORD_ANY_OTHER_ITEM,
  WORD_FIELD_MATCHING,
  WORD_FIELD_NAMES,
  WORD_CONTAINED,
  WORD_FORM,
  WORD_FORMS_ANY,
  WORD_FORMS_ONE,
  WORD_NOT,
  WORD_IF,
  WORD_THEN,
  WORD_ELSE,
  WORD_WITH_FIELD,
  WORD_SAME_AS,
  WORD_OR,
  WORD_OBJECT,
  WORD_ARRAY,
  WORD_STRING,
  WORD_NUMBER,
  WORD_INTEGER,
  WORD_BOOLEAN,
  WORD_NULL,
  WORD_VALUE,
  WORD_ANY_VALUE,
  WORD_NOTHING,
  WORD_ONE_OF,
  WORD_CONST,
  WORD_MULTIPLE_OF,
  WORD_MIN_LENGTH,
  WORD_MAX_LENGTH,
  WORD_PATTERN,
  WORD_FORMAT,
  WORD_ENCODING,
  WORD_MEDIA_TYPE,
  WORD_MIN_ITEMS,
  WORD_MAX_ITEMS,
  WORD_UNIQUE,
  WORD_NO_OTHER_ITEMS,
  WORD_NO_ITEMS,
  WORD_MIN_CONTAINS,
  WORD_MAX_CONTAINS,
  WORD_CONTAINS,
  WORD_MIN_FIELDS,
  WORD_MAX_FIELDS,
  WORD_NO_OTHER_FIELDS,
  WORD_NO_FIELD_MATCHING,
  WORD_MUST_HAVE,
  WORD_WITH_MUST_HAVE,
  WORD_WITH_FORBIDDEN,
  WORD_FORBIDDEN,
  WORD_COUNT
};

/* Beside the languages: English in few tokens, where a line is a comment and no sentence. */
enum { DESCRIBE_TERSE = DESCRIBE_JAPANESE + 1 };

/* Adds the words to `out`; {} in them is `argument`, and of {one|many} the first if `argument` is
 * "1". */
void describe_say(enum describe_language language, enum word word, const char *argument,
                  struct buf *out);

#endif
