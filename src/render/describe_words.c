/* Holds every word that a rendering says, in each language. */
#include "render/describe_words.h"

#include <assert.h>

static const char *const words[][WORD_COUNT] = {
#define ENGLISH(id, english, japanese)  [WORD_##id] = english,
#define JAPANESE(id, english, japanese) [WORD_##id] = japanese,
    [DESCRIBE_ENGLISH] = {DESCRIBE_WORDS(ENGLISH)},
    [DESCRIBE_JAPANESE] = {DESCRIBE_WORDS(JAPANESE)},
#undef ENGLISH
#undef JAPANESE
    /* A word that is missing here is as in English. */
    [DESCRIBE_TERSE] =
        {
            [WORD_FORMS_ANY] = "any of",
            [WORD_FORMS_ONE] = "exactly one of",
            [WORD_FIELD_NAMES] = "names",
            [WORD_MIN_LENGTH] = "length >= {}",
            [WORD_MAX_LENGTH] = "length <= {}",
            [WORD_MIN_ITEMS] = "items >= {}",
            [WORD_MAX_ITEMS] = "items <= {}",
            [WORD_UNIQUE] = "unique items",
            [WORD_MIN_CONTAINS] = "contained items >= {}",
            [WORD_MAX_CONTAINS] = "contained items <= {}",
            [WORD_MIN_FIELDS] = "fields >= {}",
            [WORD_MAX_FIELDS] = "fields <= {}",
        },
};

void describe_say(enum describe_language language, enum word word, const char *argument,
                  struct buf *out) {
  assert(word < WORD_COUNT && argument != NULL);
  const char *said = words[language][word];
  for (const char *p = said ? said : words[DESCRIBE_ENGLISH][word]; *p;) {
    const char *brace = strchr(p, '{'), *close = brace ? strchr(brace, '}') : NULL;
    if (!brace || !close) {
      buf_puts(out, p);
      return;
    }
    buf_append(out, p, (size_t)(brace - p));
    const char *bar = memchr(brace, '|', (size_t)(close - brace));
    if (!bar)
      buf_puts(out, argument);
    else if (!strcmp(argument, "1"))
      buf_append(out, brace + 1, (size_t)(bar - brace - 1));
    else
      buf_append(out, bar + 1, (size_t)(close - bar - 1));
    p = close + 1;
  }
}

bool describe_language_find(const char *name, enum describe_language *language) {
  static const char *const names[] = {[DESCRIBE_ENGLISH] = "en", [DESCRIBE_JAPANESE] = "ja"};
  int i = str_index(str_from(name), names, ARRAY_LEN(names));
  if (i >= 0)
    *language = (enum describe_language)i;
  return i >= 0;
}
