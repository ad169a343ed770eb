/* Checks `format` uri, uri-reference (RFC 3986), iri, iri-reference (RFC 3987), uri-template (RFC
 * 6570). */
#include "schema/format.h"

/* Checks that each character is in `allowed`, unreserved or percent-encoded; in an IRI also beyond
 * ASCII. */
static bool all_of(const char *p, size_t n, const char *allowed, bool iri) {
  for (size_t i = 0; i < n; i++) {
    char c = p[i];
    if (c == '%') {
      if (n - i < 3 || !is_hex(p[i + 1]) || !is_hex(p[i + 2]))
        return false;
      i += 2;
    } else if ((unsigned char)c >= 0x80) {
      if (!iri)
        return false;
    } else if (!is_alnum(c) && (c == '\0' || (!strchr("-._~", c) && !strchr(allowed, c)))) {
      return false;
    }
  }
  return true;
}

#define SUB_DELIMS "!$&'()*+,;="

static bool check_ip_literal(const char *p, size_t n) {
  if (n && (p[0] == 'v' || p[0] == 'V')) { /* "v" 1*HEX "." 1*( unreserved / sub-delims / ":" ) */
    size_t i = 1;
    while (i < n && is_hex(p[i]))
      i++;
    return i > 1 && i + 1 < n && p[i] == '.' && !memchr(p, '%', n) &&
           all_of(p + i + 1, n - i - 1, SUB_DELIMS ":", false);
  }
  return schema_check_ipv6(p, n);
}

static bool check_authority(const char *p, size_t n, bool iri) {
  const char *at = memchr(p, '@', n);
  if (at) {
    if (!all_of(p, (size_t)(at - p), SUB_DELIMS ":", iri))
      return false;
    n -= (size_t)(at + 1 - p);
    p = at + 1;
  }
  size_t host = 0;
  if (n && p[0] == '[') {
    const char *close = memchr(p, ']', n);
    if (!close || !check_ip_literal(p + 1, (size_t)(close - p) - 1))
      return false;
    host = (size_t)(close + 1 - p);
  } else {
    while (host < n && p[host] != ':')
      host++;
    if (!all_of(p, host, SUB_DELIMS, iri))
      return false;
  }
  if (host < n && p[host] != ':')
    return false;
  for (size_t i = host + 1; i < n; i++)
    if (!is_decimal(p[i]))
      return false;
  return true;
}

static bool uri_or_path(const char *p, size_t n, bool iri, bool absolute) {
  const char *fragment = memchr(p, '#', n);
  if (fragment) {
    size_t before = (size_t)(fragment - p);
    if (!all_of(fragment + 1, n - before - 1, SUB_DELIMS ":@/?", iri))
      return false;
    n = before;
  }
  const char *query = memchr(p, '?', n);
  if (query) {
    size_t before = (size_t)(query - p);
    if (!all_of(query + 1, n - before - 1, SUB_DELIMS ":@/?", iri))
      return false;
    n = before;
  }
  size_t scheme = 0;
  while (scheme < n &&
         (is_alpha(p[scheme]) ||
          (scheme && (is_decimal(p[scheme]) || strchr("+-.", p[scheme])) && p[scheme])))
    scheme++;
  bool has_scheme = scheme && scheme < n && p[scheme] == ':';
  if (has_scheme) {
    p += scheme + 1;
    n -= scheme + 1;
  } else if (absolute) {
    return false;
  }
  if (n >= 2 && p[0] == '/' && p[1] == '/') {
    const char *path = memchr(p + 2, '/', n - 2);
    size_t authority = path ? (size_t)(path - p) - 2 : n - 2;
    if (!check_authority(p + 2, authority, iri))
      return false;
    p += 2 + authority;
    n -= 2 + authority;
  } else if (!has_scheme) { /* the first segment of a relative path has no colon */
    const char *colon = memchr(p, ':', n), *slash = memchr(p, '/', n);
    if (colon && (!slash || colon < slash))
      return false;
  }
  return all_of(p, n, SUB_DELIMS ":@/", iri);
}

bool schema_check_uri(const char *text, size_t length) {
  return uri_or_path(text, length, false, true);
}

bool schema_check_uri_reference(const char *text, size_t length) {
  return uri_or_path(text, length, false, false);
}

bool schema_check_iri(const char *text, size_t length) {
  return uri_or_path(text, length, true, true);
}

bool schema_check_iri_reference(const char *text, size_t length) {
  return uri_or_path(text, length, true, false);
}

static bool read_variable(struct format_cursor *c) {
  const char *from = c->p;
  bool dot = true; /* a dot may not come first, last, or twice */
  while (c->p < c->end) {
    if (*c->p == '.') {
      if (dot)
        return false;
      dot = true;
      c->p++;
    } else if (is_alnum(*c->p) || *c->p == '_') {
      dot = false;
      c->p++;
    } else if (*c->p == '%' && c->end - c->p >= 3 && is_hex(c->p[1]) && is_hex(c->p[2])) {
      dot = false;
      c->p += 3;
    } else {
      break;
    }
  }
  if (c->p == from || dot)
    return false;
  if (schema_cursor_char(c, ':')) {
    const char *digits = c->p;
    while (c->p < c->end && is_decimal(*c->p) && c->p - digits < 4)
      c->p++;
    return c->p > digits && *digits != '0';
  }
  schema_cursor_char(c, '*');
  return true;
}

bool schema_check_uri_template(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  while (c.p < c.end) {
    unsigned char ch = (unsigned char)*c.p;
    if (ch == '{') {
      c.p++;
      if (c.p < c.end && *c.p && strchr("+#./;?&=,!@|", *c.p))
        c.p++;
      do {
        if (!read_variable(&c))
          return false;
      } while (schema_cursor_char(&c, ','));
      if (!schema_cursor_char(&c, '}'))
        return false;
    } else if (ch == '%') {
      if (c.end - c.p < 3 || !is_hex(c.p[1]) || !is_hex(c.p[2]))
        return false;
      c.p += 3;
    } else if (ch <= 0x20 || ch == 0x7f || strchr("\"<>\\^`}|", ch)) {
      return false;
    } else {
      c.p++;
    }
  }
  return true;
}
