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

size_t redact(struct buf *text, const char *const *names) {
  size_t count = 0;
  for (; names && *names && text->n > 0; names++) {
    const char *value = getenv(*names);
    if (value != NULL && strlen(value) >= LIMIT_SECRET_BYTES)
      count += replace(text, *names, value, strlen(value));
  }
  return count;
}
