/* Writes markup, and escapes everything but tags. */
#include "web/html.h"

#include "base/log.h"
#include "base/resource.h"
#include "web/sanitize.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

void html_literal(struct html *h, const char *markup, size_t n) {
  buf_append(h->out, markup, n);
  for (size_t i = n; i-- > 0;)
    if (markup[i] == '<' || markup[i] == '>') {
      h->in_tag = markup[i] == '<';
      return;
    }
}

static void put_escaped(struct html *h, struct str text) {
  buf_auto_t cleaned = {0};
  sanitize_text(&cleaned, text);
  const char *p = buf_c(&cleaned), *end = p + cleaned.n;
  while (p < end) {
    size_t run = strcspn(p, "&<>\"'`");
    buf_append(h->out, p, run);
    p += run;
    if (p < end)
      buf_printf(h->out, "&#%d;", *p++);
  }
}

static bool may_be_written(const char *name) {
  static const char *const never[] = {"style",  "src",  "srcdoc",     "srcset",     "href",
                                      "action", "data", "formaction", "http-equiv", "content"};
  for (size_t i = 0; i < ARRAY_LEN(never); i++)
    if (strcmp(never[i], name) == 0)
      return false;
  return strncmp(name, LIT("on")) != 0;
}

void html_attr(struct html *h, const char *name, struct str text) {
  assert(h->in_tag);
  assert(may_be_written(name));
  buf_printf(h->out, " %s=\"", name);
  put_escaped(h, text);
  buf_putc(h->out, '"');
}

static void put_percent(struct html *h, struct str part) {
  for (size_t i = 0; i < part.n; i++) {
    unsigned char c = (unsigned char)part.p[i];
    bool plain =
        (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' || c == '_';
    if (plain)
      buf_putc(h->out, (char)c);
    else
      buf_printf(h->out, "%%%02X", c);
  }
}

void html_link(struct html *h, const char *before, struct str part, const char *behind) {
  assert(h->in_tag);
  assert(before[0] == '#' || strchr(before, ':') == NULL);
  buf_puts(h->out, " href=\"");
  if (before[0] == '/') {
    assert(h->root != NULL);
    buf_puts(h->out, h->root);
    before++;
  }
  buf_puts(h->out, before);
  put_percent(h, part);
  buf_printf(h->out, "%s\"", behind);
}

void html_link_more(struct html *h, const char *name, struct str value) {
  assert(h->in_tag);
  assert(h->out->n > 0);
  assert(h->out->p[h->out->n - 1] == '"');
  if (value.n == 0)
    return;
  h->out->n--;
  buf_printf(h->out, "&amp;%s=", name);
  put_percent(h, value);
  buf_putc(h->out, '"');
}

void html_link_query(struct html *h, const char *name, const char *sign, const char *value,
                     struct str q) {
  assert(h->in_tag);
  buf_printf(h->out, " href=\"?%s=%s", name, sign);
  put_percent(h, str_from(value));
  if (q.n > 0) {
    buf_puts(h->out, "&amp;q=");
    put_percent(h, q);
  }
  buf_putc(h->out, '"');
}

void html_link2(struct html *h, struct str id, struct str turn) {
  assert(h->in_tag);
  assert(h->root != NULL);
  buf_printf(h->out, " href=\"%ss/", h->root);
  put_percent(h, id);
  buf_putc(h->out, '/');
  put_percent(h, turn);
  buf_putc(h->out, '"');
}

void html_link_text(struct html *h, struct str session, struct str ref, size_t from) {
  assert(h->in_tag);
  assert(h->root != NULL);
  buf_puts(h->out, " href=\"");
  if (session.n > 0) {
    buf_printf(h->out, "%ss/", h->root);
    put_percent(h, session);
    buf_putc(h->out, '/');
  }
  buf_puts(h->out, "text?ref=");
  put_percent(h, ref);
  if (from > 0)
    buf_printf(h->out, "&amp;from=%zu", from);
  buf_putc(h->out, '"');
}

void html_src(struct html *h, const char *name) {
  assert(h->in_tag);
  assert(h->root != NULL);
  buf_printf(h->out, " src=\"%s%s\"", h->root, name);
}

void html_text(struct html *h, struct str text) {
  assert(!h->in_tag);
  put_escaped(h, text);
}

void html_puts(struct html *h, const char *text) {
  html_text(h, str_from(text));
}

/* Appends the value of the conversion behind a '%' and returns what follows it in the format. */
static const char *html_put_value(struct buf *out, const char *fmt, va_list *ap) {
  int precision = -1;
  if (fmt[0] == '.' && fmt[1] == '*') {
    precision = va_arg(*ap, int);
    fmt += 2;
  } else if (fmt[0] == '.') {
    precision = 0;
    for (fmt++; *fmt >= '0' && *fmt <= '9'; fmt++)
      precision = 10 * precision + (*fmt - '0');
  }
  size_t size = strspn(fmt, "lz");
  fmt += size;
  switch (*fmt) {
  case 's': {
    const char *text = va_arg(*ap, const char *);
    buf_str(out, precision < 0 ? str_from(text) : (struct str){text, (size_t)precision});
    break;
  }
  case 'c':
    buf_putc(out, (char)va_arg(*ap, int));
    break;
  case 'd':
    if (size == 0)
      buf_printf(out, "%d", va_arg(*ap, int));
    else if (size == 1)
      buf_printf(out, "%ld", va_arg(*ap, long));
    else
      buf_printf(out, "%lld", va_arg(*ap, long long));
    break;
  case 'u':
    if (size == 0)
      buf_printf(out, "%u", va_arg(*ap, unsigned));
    else if (size == 1)
      buf_printf(out, "%lu", va_arg(*ap, unsigned long));
    else
      buf_printf(out, "%llu", va_arg(*ap, unsigned long long));
    break;
  case 'f':
    buf_printf(out, "%.*f", precision, va_arg(*ap, double));
    break;
  case 'g':
    buf_printf(out, "%.*g", precision, va_arg(*ap, double));
    break;
  default:
    BUG("html_format does not know %%%c", *fmt);
  }
  return fmt + 1;
}

/* Aborts unless the value that follows in a tag stands between quotes, in an attribute that may be
 * written; an address may have a number in it. n: bytes of the format before it. */
static void check_attribute(const char *fmt, size_t n, bool number) {
  char name[32] = "";
  const char *quote = memrchr(fmt, '"', n);
  assert(quote != NULL && quote > fmt && quote[-1] == '=');
  const char *from = quote - 1;
  while (from > fmt && from[-1] != ' ')
    from--;
  print_into(name, sizeof name, "%.*s", (int)(quote - 1 - from), from);
  assert(may_be_written(name) || (number && strcmp(name, "href") == 0));
}

void html_format(struct html *h, const char *fmt, ...) {
  buf_auto_t value = {0};
  va_list ap;
  va_start(ap, fmt);
  for (const char *from = fmt, *at; *from != '\0'; from = at) {
    size_t n = strcspn(from, "%");
    html_literal(h, from, n);
    at = from + n;
    if (at[0] == '\0' || at[1] == '%') {
      html_literal(h, at, at[0] != '\0');
      at += at[0] != '\0' ? 2 : 0;
      continue;
    }
    size_t before = (size_t)(at - fmt);
    bool said = n >= strlen("<bdi>") && strncmp(at - strlen("<bdi>"), LIT("<bdi>")) == 0;
    buf_clear(&value);
    at = html_put_value(&value, at + 1, &ap);
    if (h->in_tag)
      check_attribute(fmt, before, at[-1] == 'd' || at[-1] == 'u');
    /* A file has many that say nothing. */
    if (said && value.n == 0 && h->root == NULL && strncmp(at, LIT("</bdi>")) == 0) {
      h->out->n -= strlen("<bdi>");
      h->out->p[h->out->n] = '\0';
      at += strlen("</bdi>");
    }
    put_escaped(h, buf_view(&value));
  }
  va_end(ap);
}

void html_said(struct html *h, struct str text) {
  HTML_FMT(h, "<bdi>%.*s</bdi>", STR_ARG(text));
}

void html_resource(struct html *h, const char *name) {
  const struct resource *r = resource_find(name);
  assert(r != NULL);
  buf_append(h->out, r->p, r->n);
}
