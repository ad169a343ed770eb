/* Resolves and decodes URIs as in RFC 3986. */
#include "schema/support.h"

#include "base/str.h"

#include <string.h>

/* A reference has five parts (RFC 3986, appendix B); `p` is NULL where a part is absent. */
struct part {
  const char *p;
  size_t n;
};
struct uri {
  struct part scheme, authority, path, query, fragment;
};

static bool scheme_char(char c, bool first) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
    return true;
  return !first && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.');
}

static struct uri uri_split(const char *s) {
  struct uri uri = {0};
  size_t n = 0;
  while (scheme_char(s[n], n == 0))
    n++;
  if (n && s[n] == ':') {
    uri.scheme = (struct part){s, n};
    s += n + 1;
  }
  if (s[0] == '/' && s[1] == '/') {
    s += 2;
    uri.authority = (struct part){s, strcspn(s, "/?#")};
    s += uri.authority.n;
  }
  uri.path = (struct part){s, strcspn(s, "?#")};
  s += uri.path.n;
  if (*s == '?') {
    s++;
    uri.query = (struct part){s, strcspn(s, "#")};
    s += uri.query.n;
  }
  if (*s == '#')
    uri.fragment = (struct part){s + 1, strlen(s + 1)};
  return uri;
}

/* Applies RFC 3986 5.2.4 to `out` from `start` on. */
static void remove_dot_segments(struct buf *out, size_t start) {
  char *path = out->p + start;
  size_t n = out->n - start, write = 0, read = 0;
  bool absolute = n && path[0] == '/';
  while (read < n) {
    size_t from = read;
    if (path[read] == '/')
      read++;
    size_t name = read;
    while (read < n && path[read] != '/')
      read++;
    size_t length = read - name;
    bool last = read == n;
    bool dot = length == 1 && path[name] == '.';
    bool dots = length == 2 && path[name] == '.' && path[name + 1] == '.';
    if (!dot && !dots) {
      memmove(path + write, path + from, read - from);
      write += read - from;
      continue;
    }
    if (dots) {
      while (write && path[write - 1] != '/')
        write--;
      if (write)
        write--;
    }
    if (last && (absolute || write))
      path[write++] = '/';
  }
  out->n = start + write;
  path[write] = '\0';
}

static void add_part(struct buf *out, const char *before, struct part part, const char *after) {
  if (!part.p)
    return;
  buf_puts(out, before);
  buf_append(out, part.p, part.n);
  buf_puts(out, after);
}

void schema_uri_resolve(const char *base_text, const char *reference, struct buf *out) {
  struct uri base = uri_split(base_text), ref = uri_split(reference), to = ref;
  bool merge = false;
  buf_append(out, "", 0);
  if (!ref.scheme.p) {
    to.scheme = base.scheme;
    if (!ref.authority.p) {
      to.authority = base.authority;
      if (!ref.path.n) {
        to.path = base.path;
        if (!ref.query.p)
          to.query = base.query;
      } else {
        merge = ref.path.p[0] != '/';
      }
    }
  }
  add_part(out, "", to.scheme, ":");
  add_part(out, "//", to.authority, "");
  size_t start = out->n;
  if (merge) {
    size_t keep = base.path.n;
    while (keep && base.path.p[keep - 1] != '/')
      keep--;
    if (!keep && base.authority.p)
      buf_puts(out, "/");
    buf_append(out, base.path.p, keep);
  }
  buf_append(out, to.path.p, to.path.n);
  if (ref.path.n && (to.authority.p || merge || ref.path.p[0] == '/'))
    remove_dot_segments(out, start);
  add_part(out, "?", to.query, "");
  add_part(out, "#", ref.fragment, "");
}

size_t schema_uri_without_fragment(const char *uri) {
  return strcspn(uri, "#");
}

void schema_uri_decode(const char *bytes, size_t length, struct buf *out) {
  buf_append(out, "", 0);
  for (size_t i = 0; i < length; i++) {
    char c = bytes[i];
    if (c == '%' && i + 2 < length && str_hex_digit(bytes[i + 1]) >= 0 &&
        str_hex_digit(bytes[i + 2]) >= 0) {
      c = (char)(str_hex_digit(bytes[i + 1]) * 16 + str_hex_digit(bytes[i + 2]));
      i += 2;
    }
    buf_putc(out, c);
  }
}
