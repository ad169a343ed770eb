/* Counts what a JSON text would be as a tree, before it is read. */
#include "format/json_size.h"

#include <string.h>

/* Returns the place after the string's closing quote: the first one with an even number of
 * backslashes before it. `from` is after the opening quote. */
static const char *skip_string(const char *from, const char *end) {
  for (const char *p = from; (p = memchr(p, '"', (size_t)(end - p))) != NULL; p++) {
    const char *slash = p;
    while (slash > from && slash[-1] == '\\')
      slash--;
    if ((p - slash) % 2 == 0)
      return p + 1;
  }
  return end;
}

struct json_size json_size(struct str text, size_t max_depth, size_t max_values) {
  struct json_size size = {0, 1};
  const char *p = text.p, *end = text.p + text.n;
  size_t depth = 0;
  while (p < end && size.depth <= max_depth && size.values <= max_values) {
    switch (*p++) {
    case '"':
      p = skip_string(p, end);
      break;
    case '[':
    case '{':
      size.values++;
      depth++;
      size.depth = depth > size.depth ? depth : size.depth;
      break;
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    case ',':
      size.values++;
      break;
    default:
      break;
    }
  }
  return size;
}
