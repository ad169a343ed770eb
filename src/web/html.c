/* Writes markup, and escapes everything but tags. */
#include "web/html.h"

#include "base/log.h"
#include "base/resource.h"
#include "web/sanitize.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
  struct buf cleaned = {0};
  sanitize_text(&cleaned, text);
  const char *p = buf_c(&cleaned), *end = p + cleaned.n;
  while (p < end) {
    size_t run = strcspn(p, "&<>\"'`");
    buf_append(h->out, p, run);
    p += run;
    if (p < end)
      buf_printf(h->out, "&#%d;", *p++);
  }
  buf_deinit(&cleaned);
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

static char *html_format(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
static char *html_format(const char *fmt, va_list ap) {
  char *made = NULL;
  if (vasprintf(&made, fmt, ap) < 0)
    die("out of memory");
  return made;
}

void html_attr_printf(struct html *h, const char *name, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *made = html_format(fmt, ap);
  va_end(ap);
  html_attr(h, name, str_from(made));
  free(made);
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

void html_printf(struct html *h, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *made = html_format(fmt, ap);
  va_end(ap);
  html_puts(h, made);
  free(made);
}

void html_said(struct html *h, struct str text) {
  if (text.n == 0 && h->root == NULL)
    return; /* a file has many */
  HTML(h, "<bdi>");
  html_text(h, text);
  HTML(h, "</bdi>");
}

void html_resource(struct html *h, const char *name) {
  const struct resource *r = resource_find(name);
  assert(r != NULL);
  buf_append(h->out, r->p, r->n);
}
