/* Removes from a text what nobody should read. */
#include "web/sanitize.h"

#include "base/utf8.h"

#include <string.h>

static bool is_invisible(uint32_t cp) {
  return cp == 0x00AD || cp == 0x034F || cp == 0x115F || cp == 0x1160 || cp == 0x17B4 ||
         cp == 0x17B5 || (cp >= 0x180B && cp <= 0x180F) || cp == 0x200B || cp == 0x2028 ||
         cp == 0x2029 || (cp >= 0x2060 && cp <= 0x2065) || (cp >= 0x206A && cp <= 0x206F) ||
         cp == 0x3164 || cp == 0xFEFF || cp == 0xFFA0 || (cp >= 0xFFF0 && cp <= 0xFFFB) ||
         (cp >= 0x1D173 && cp <= 0x1D17A) || (cp >= 0xE0000 && cp <= 0xE0FFF);
}

static void put_cp(struct buf *out, uint32_t cp) {
  char bytes[UTF8_BYTES_MAX];
  buf_append(out, bytes, utf8_put(bytes, cp));
}

static void put_clean(struct buf *out, uint32_t cp, uint32_t before) {
  bool joiner = cp == 0x200C || cp == 0x200D;
  if (cp == '\n' || cp == '\t')
    buf_putc(out, (char)cp);
  else if (cp < 0x20)
    put_cp(out, 0x2400 + cp);
  else if (cp == 0x7F)
    put_cp(out, 0x2421);
  else if ((cp > 0x7F && cp < 0xA0) || utf8_is_bidi(cp) || is_invisible(cp) ||
           (joiner && before < 0x0300))
    buf_printf(out, "\xE2\x9F\xA8U+%04X\xE2\x9F\xA9", (unsigned)cp);
  else if ((cp >= 0xFDD0 && cp <= 0xFDEF) || (cp & 0xFFFE) == 0xFFFE)
    put_cp(out, 0xFFFD);
  else
    put_cp(out, cp);
}

/* Counts the bytes from `at` that need no check: printable ASCII and newlines. */
static size_t sanitize_run(struct str text, size_t at) {
  size_t n = at;
  while (n < text.n && ((text.p[n] >= ' ' && text.p[n] < 0x7F) || text.p[n] == '\n'))
    n++;
  return n - at;
}

void sanitize_text(struct buf *out, struct str text) {
  buf_auto_t copy = {0};
  uint32_t before = 0;
  if (text.n > 0 && memchr(text.p, '\x1B', text.n) != NULL) {
    buf_str(&copy, text);
    text = (struct str){copy.p, escapes_drop(copy.p, copy.n)};
  }
  for (size_t i = 0; i < text.n;) {
    size_t run = sanitize_run(text, i);
    uint32_t cp = 0xFFFD;
    if (run > 0) {
      buf_append(out, text.p + i, run);
      before = 0;
      i += run;
      continue;
    }
    size_t n = utf8_decode(text.p + i, text.n - i, &cp);
    if (n == 0)
      put_cp(out, 0xFFFD);
    else if (cp != '\r' || i + 1 == text.n || text.p[i + 1] != '\n')
      put_clean(out, cp, before);
    before = cp;
    i += n > 0 ? n : 1;
  }
}
