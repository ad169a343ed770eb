/* Reads the address of the proxy behind ours. */
#include "http/proxy.h"

#include "base/buf.h"

#include <string.h>

static char *base64_of(struct str bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  struct buf out = {0};
  for (size_t i = 0; i < bytes.n; i += 3) {
    unsigned group = 0;
    for (size_t k = 0; k < 3; k++)
      group = group << 8 | (i + k < bytes.n ? (unsigned char)bytes.p[i + k] : 0u);
    for (size_t k = 0; k < 4; k++)
      buf_putc(&out, i + k > bytes.n ? '=' : digits[group >> (18 - 6 * k) & 63]);
  }
  return buf_take(&out);
}

static int hex_pair(struct str text, size_t i) {
  int high = i + 2 < text.n ? str_hex_digit(text.p[i + 1]) : -1;
  int low = i + 2 < text.n ? str_hex_digit(text.p[i + 2]) : -1;
  return high >= 0 && low >= 0 ? high * 16 + low : -1;
}

void proxy_read_upstream(struct str url, char **where, char **credentials) {
  *where = *credentials = NULL;
  if (str_starts_fold(url, "http://"))
    url = (struct str){url.p + 7, url.n - 7};
  else if (str_has(url, "://"))
    return;
  while (url.n > 0 && url.p[url.n - 1] == '/')
    url.n--;
  const char *at = url.n > 0 ? memrchr(url.p, '@', url.n) : NULL;
  if (at != NULL) {
    const struct str user = {url.p, (size_t)(at - url.p)};
    struct buf plain = {0};
    for (size_t i = 0; i < user.n; i++) { /* %40 is an @ of a password */
      int escaped = user.p[i] == '%' ? hex_pair(user, i) : -1;
      buf_putc(&plain, escaped >= 0 ? (char)escaped : user.p[i]);
      i += escaped >= 0 ? 2 : 0;
    }
    *credentials = base64_of(buf_view(&plain));
    if (plain.n > 0)
      explicit_bzero(plain.p, plain.n);
    buf_deinit(&plain);
    url = (struct str){at + 1, url.n - user.n - 1};
  }
  struct buf text = {0};
  buf_str(&text, url);
  if (url.n > 0)
    *where = buf_take(&text);
  buf_deinit(&text);
}
