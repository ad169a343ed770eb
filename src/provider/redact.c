#include "provider/redact.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

static size_t replace(struct buf *text, const char *name, const char *value, size_t value_n) {
  struct buf out = {0};
  size_t from = 0, count = 0;
  const char *hit;
  while (text->n - from >= value_n &&
         (hit = memmem(text->p + from, text->n - from, value, value_n)) != NULL) {
    buf_append(&out, text->p + from, (size_t)(hit - text->p) - from);
    buf_printf(&out, "\xC2\xABsecret:%s\xC2\xBB", name);
    from = (size_t)(hit - text->p) + value_n;
    count++;
  }
  if (count > 0) {
    buf_append(&out, text->p + from, text->n - from);
    buf_deinit(text);
    *text = out;
  }
  return count;
}

/* Takes the beginning of a value off the end of a text. */
static size_t trim_tail(struct buf *text, const char *value, size_t value_n) {
  for (size_t n = value_n - 1 < text->n ? value_n - 1 : text->n; n > 0; n--)
    if (memcmp(text->p + text->n - n, value, n) == 0) {
      text->n -= n;
      text->p[text->n] = '\0';
      return 1;
    }
  return 0;
}

size_t redact(struct buf *text, const char *const *names, bool cut) {
  size_t count = 0;
  for (; names && *names && text->n > 0; names++) {
    const char *value = getenv(*names);
    if (value == NULL || strlen(value) < LIMIT_SECRET_BYTES)
      continue;
    count += replace(text, *names, value, strlen(value));
    count += cut && text->n > 0 ? trim_tail(text, value, strlen(value)) : 0;
  }
  return count;
}
