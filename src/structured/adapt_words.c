/* Constraints in words, for what a dialect does not enforce. */
#include "structured/adapt_internal.h"

#include <stdarg.h>
#include <stdio.h>

void adapt_words_add(struct words *words, const char *format, ...) {
  char one[ADAPT_VALUE_BYTES + 128];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(one, sizeof one, format, args);
  va_end(args);
  if (n <= 0 || words->text.length + (size_t)n > ADAPT_WORDS_BYTES)
    return;
  if ((size_t)n >= sizeof one)
    n = (int)sizeof one - 1;
  while (n > 0 && n == (int)sizeof one - 1 && ((unsigned char)one[n - 1] & 0xc0) == 0x80)
    n--; /* no cut inside a character */
  if (n == 0)
    return;
  schema_text_puts(&words->text, words->count++ ? "; " : "");
  schema_text_add(&words->text, one, (size_t)n);
}

/* NULL: too long to say, or out of memory. Release with schema_release. */
static char *value_text(struct adapter *a, const json_t *value) {
  size_t length;
  char *text = adapt_size(value, ADAPT_VALUE_BYTES) > ADAPT_VALUE_BYTES
                   ? NULL
                   : adapt_json_text(a, value, &length);
  if (text && (length > ADAPT_VALUE_BYTES || memchr(text, '\0', length))) {
    schema_release(text);
    return NULL;
  }
  return text;
}

/* What stands before and after the value; without `after` the value is not shown. */
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

void adapt_words_keyword(struct adapter *a, struct words *words, const struct view_word *word,
                         const char *why) {
  const char *name = word->keyword->name;
  if (word->id == K_UNIQUE_ITEMS && !json_is_true(word->value))
    return;
  for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
    if (sentences[i].id != word->id)
      continue;
    char *value = sentences[i].after ? value_text(a, word->value) : NULL;
    size_t before = words->count;
    if (!sentences[i].after)
      adapt_words_add(words, "%s", sentences[i].before);
    else if (value && (word->id == K_PATTERN || word->id == K_FORMAT) &&
             !strpbrk(json_string_value(word->value), "\n\r\t"))
      adapt_words_add(words, "%s%s", sentences[i].before, json_string_value(word->value));
    else if (value)
      adapt_words_add(words, "%s%s%s", sentences[i].before, value,
                      sentences[i].after_one && !strcmp(value, "1") ? sentences[i].after_one
                                                                    : sentences[i].after);
    schema_release(value);
    adapt_changed(a, word->entry, name, NULL,
                  words->count > before ? ADAPT_DESCRIBED : ADAPT_DROPPED, why);
    return;
  }
  adapt_changed(a, word->entry, name, NULL, ADAPT_DROPPED, why);
}

void adapt_words_put(struct adapter *a, json_t *schema, const struct view *view,
                     struct words *words) {
  struct text text = {0};
  if (schema && view->default_value) {
    char *value = value_text(a, view->default_value);
    if (value)
      adapt_words_add(words, "default: %s", value);
    schema_release(value);
  }
  if (schema && json_array_size(view->examples)) {
    char *value = value_text(a, view->examples);
    if (value)
      adapt_words_add(words, "examples: %s", value);
    schema_release(value);
  }
  if (schema && view->title)
    adapt_put(a, schema, "title", adapt_string(a, view->title));
  if (view->description)
    schema_text_puts(&text, view->description);
  if (words->count) {
    schema_text_puts(&text, view->description && *view->description ? " (" : "(");
    schema_text_add(&text, words->text.bytes, words->text.length);
    schema_text_puts(&text, ")");
  }
  if (text.failed || words->text.failed)
    adapt_no_memory(a);
  else if (schema && text.length)
    adapt_put(a, schema, "description", adapt_string(a, text.bytes));
  schema_text_deinit(&text);
  schema_text_deinit(&words->text);
  *words = (struct words){0};
}
