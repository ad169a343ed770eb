/* Estimates how many tokens a model makes of a text. */
#include "render/describe.h"

/* Counts runs of characters as a byte-pair reader cuts them: a word of up to eight letters is one
 * token and each four further letters one more, three digits are one, up to four marks are one, a
 * blank before a word is free, an indent is one, and so is each character beyond ASCII. Measured on
 * 37 renderings of ten schemas: 0.95 to 1.16 times what cl100k_base makes of them. */
size_t describe_tokens(const char *text) {
  size_t tokens = 0;
  for (const unsigned char *p = (const unsigned char *)text; *p;) {
    size_t n = 0;
    if ((*p | 32) >= 'a' && (*p | 32) <= 'z') {
      while ((p[n] | 32) >= 'a' && (p[n] | 32) <= 'z')
        n++;
      tokens += n <= 8 ? 1 : 1 + (n - 3) / 4;
    } else if (*p >= '0' && *p <= '9') {
      while (p[n] >= '0' && p[n] <= '9')
        n++;
      tokens += (n + 2) / 3;
    } else if (*p == ' ' || *p == '\n') {
      while (p[n] == ' ' || p[n] == '\n')
        n++;
      tokens += n > 1 || *p == '\n';
    } else if (*p >= 0x80) {
      n = 1;
      tokens += *p >= 0xc0;
    } else {
      while (n < 4 && p[n] > ' ' && p[n] < 0x7f && !((p[n] | 32) >= 'a' && (p[n] | 32) <= 'z') &&
             !(p[n] >= '0' && p[n] <= '9'))
        n++;
      n = n ? n : 1;
      tokens++;
    }
    p += n;
  }
  return tokens;
}
