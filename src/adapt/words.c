/* Puts constraints into words, for what a dialect does not enforce. */
#include "adapt/internal.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

void adapt_words_add(struct adapt_words *words, const char *format, ...) {
  char one[ADAPT_VALUE_BYTES + 128];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(one, sizeof one, format, args);
  va_end(args);
  if (n <= 0 || words->text.n + (size_t)n > ADAPT_WORDS_BYTES)
    return;
  if ((size_t)n >= sizeof one)
    n = (int)utf8_floor(one, sizeof one - 1);
  buf_puts(&words->text, words->count++ ? "; " : "");
  buf_append(&words->text, one, (size_t)n);
}

/* Returns the value as a text to be freed, NULL if it is too long to put into words. */
static char *words_value(const json_t *value) {
  size_t length;
  if (adapt_size(value, ADAPT_VALUE_BYTES) > ADAPT_VALUE_BYTES)
    return NULL;
  char *text = adapt_json_text(value, &length);
  if (length > ADAPT_VALUE_BYTES || memchr(text, '\0', length)) {
    free(text);
    return NULL;
  }
  return text;
}

/* Lists the words before and after the value; without `after` the value is not shown. */
static const struct {
  enum keyword_id id;
  const char *before, *after;
  const char *after_one; /* after the value 1; NULL: the same */
} sentences[] = {
    {K_MINIMUM, "at least ", "", NULL},
    {K_MAXIMUM, "at most ", "", NULL},
    {K_EXCLUSIVE_MINIMUM, "greater than ", "", NULL},
    {K_EXCLUSIVE_MAXIMUM, "less than ", "", NULL},
    {K_MULTIPLE_OF, "a multiple of ", "", NULL},
    {K_MIN_LENGTH, "at least ", " characters", " character"},
    {K_MAX_LENGTH, "at most ", " characters", " character"},
    {K_PATTERN, "matches the regular expression ", "", NULL},
    {K_FORMAT, "format ", "", NULL},
    {K_MIN_ITEMS, "at least ", " items", " item"},
    {K_MAX_ITEMS, "at most ", " items", " item"},
    {K_UNIQUE_ITEMS, "no two items are equal", NULL, NULL},
    {K_CONTAINS, "has an item that matches the JSON Schema ", "", NULL},
    {K_MIN_CONTAINS, "at least ", " such items", " such item"},
    {K_MAX_CONTAINS, "at most ", " such items", " such item"},
    {K_MIN_PROPERTIES, "at least ", " properties", " property"},
    {K_MAX_PROPERTIES, "at most ", " properties", " property"},
    {K_PROPERTY_NAMES, "each property name matches the JSON Schema ", "", NULL},
    {K_DEPENDENT_REQUIRED, "properties that need others: ", "", NULL},
    {K_DEPENDENCIES, "properties that need others: ", "", NULL},
    {K_NOT, "does not match the JSON Schema ", "", NULL},
    {K_CONTENT_ENCODING, "encoded as ", "", NULL},
    {K_CONTENT_MEDIA_TYPE, "holds ", "", NULL},
    {K_CONTENT_SCHEMA, "holds JSON that matches the JSON Schema ", "", NULL},
    {K_ONE_OF, "exactly one alternative applies", NULL, NULL},
    {K_IF, "which alternative applies depends on the JSON Schema ", "", NULL},
};

void adapt_words_keyword(struct adapter *a, struct adapt_words *words, const struct view_word *word,
                         const char *why) {
  const char *name = word->keyword->name;
  if (word->id == K_UNIQUE_ITEMS && !json_is_true(word->value))
    return;
  for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
    if (sentences[i].id != word->id)
      continue;
    char *value = sentences[i].after ? words_value(word->value) : NULL;
    size_t before = words->count;
    if (!sentences[i].after)
      adapt_words_add(words, "%s", sentences[i].before);
    else if (value && (word->id == K_PATTERN || word->id == K_FORMAT) &&
             !strpbrk(json_string_value(word->value), "\n\r\t"))
      adapt_words_add(words, "%s%s", sentences[i].before, json_string_value(word->value));
    else if (value && sentences[i].after_one && !strcmp(value, "1"))
      adapt_words_add(words, "%s%s%s", sentences[i].before, value, sentences[i].after_one);
    else if (value)
      adapt_words_add(words, "%s%s%s", sentences[i].before, value, sentences[i].after);
    free(value);
    adapt_changed(a, word->entry, name, NULL,
                  words->count > before ? ADAPT_DESCRIBED : ADAPT_DROPPED, why);
    return;
  }
  adapt_changed(a, word->entry, name, NULL, ADAPT_DROPPED, why);
}

void adapt_words_put(json_t *schema, const struct adapt_view *view, struct adapt_words *words) {
  struct buf text = {0};
  if (schema && view->default_value) {
    char *value = words_value(view->default_value);
    if (value)
      adapt_words_add(words, "default: %s", value);
    free(value);
  }
  if (schema && json_array_size(view->examples)) {
    char *value = words_value(view->examples);
    if (value)
      adapt_words_add(words, "examples: %s", value);
    free(value);
  }
  if (schema && view->title)
    adapt_put(schema, "title", json_string_nocheck(view->title));
  if (view->description)
    buf_puts(&text, view->description);
  if (words->count) {
    buf_puts(&text, view->description && *view->description ? " (" : "(");
    buf_append(&text, words->text.p, words->text.n);
    buf_puts(&text, ")");
  }
  if (schema && text.n)
    adapt_put(schema, "description", json_string_nocheck(text.p));
  buf_deinit(&text);
  buf_deinit(&words->text);
  *words = (struct adapt_words){0};
}
