/* Walks JSON text by a cursor. */
#include "json/pull.h"

#include "json/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pull pull_of(struct str text) {
  return (struct pull){.p = text.p, .end = text.p + text.n};
}

static bool pull_fail(struct pull *at) {
  at->bad = true;
  at->p = at->end;
  return false;
}

static void pull_white(struct pull *at) {
  while (at->p < at->end && (*at->p == ' ' || *at->p == '\t' || *at->p == '\r' || *at->p == '\n'))
    at->p++;
}

/* Moves past the closing quote; the cursor is on the opening one. */
static bool pull_cross_string(struct pull *at) {
  const char *from = at->p + 1;
  for (;;) {
    const char *quote = memchr(from, '"', (size_t)(at->end - from));
    if (quote == NULL)
      return pull_fail(at);
    const char *slash = quote;
    while (slash[-1] == '\\')
      slash--;
    from = quote + 1;
    if ((quote - slash) % 2 == 0) {
      at->p = from;
      return true;
    }
  }
}

static bool pull_cross_brackets(struct pull *at) {
  size_t depth = 0;
  while (at->p < at->end) {
    switch (*at->p) {
    case '"':
      if (!pull_cross_string(at))
        return false;
      continue;
    case '{':
    case '[':
      depth++;
      break;
    case '}':
    case ']':
      if (--depth == 0) {
        at->p++;
        return true;
      }
      break;
    default:
      break;
    }
    at->p++;
  }
  return pull_fail(at);
}

static bool pull_is_plain(char c) {
  return str_is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

static bool pull_cross(struct pull *at) {
  const char *from = at->p;
  at->first = false;
  if (at->p >= at->end)
    return pull_fail(at);
  if (*at->p == '"')
    return pull_cross_string(at);
  if (*at->p == '{' || *at->p == '[')
    return pull_cross_brackets(at);
  while (at->p < at->end && pull_is_plain(*at->p))
    at->p++;
  return at->p > from || pull_fail(at);
}

struct str pull_raw(struct pull *at) {
  pull_white(at);
  const char *from = at->p;
  if (!pull_cross(at))
    return (struct str){"", 0};
  return (struct str){from, (size_t)(at->p - from)};
}

void pull_skip(struct pull *at) {
  (void)pull_raw(at);
}

bool pull_open(struct pull *at, char bracket) {
  assert(bracket == '{' || bracket == '[');
  pull_white(at);
  if (at->p >= at->end)
    return pull_fail(at);
  if (*at->p != bracket) {
    pull_skip(at);
    return false;
  }
  at->p++;
  at->first = true;
  return true;
}

/* Moves to the next item, past the comma if one is due. Returns false at the closing bracket, which
 * is passed. */
static bool pull_next(struct pull *at, char close) {
  pull_white(at);
  if (at->p >= at->end)
    return pull_fail(at);
  if (*at->p == close) {
    at->p++;
    at->first = false;
    return false;
  }
  if (!at->first) {
    if (*at->p != ',')
      return pull_fail(at);
    at->p++;
    pull_white(at);
  }
  at->first = false;
  return at->p < at->end || pull_fail(at);
}

bool pull_item(struct pull *at) {
  return pull_next(at, ']');
}

bool pull_key(struct pull *at, struct str *key) {
  if (!pull_next(at, '}'))
    return false;
  if (*at->p != '"')
    return pull_fail(at);
  const char *from = at->p + 1;
  if (!pull_cross_string(at))
    return false;
  *key = (struct str){from, (size_t)(at->p - 1 - from)};
  pull_white(at);
  if (at->p >= at->end || *at->p != ':')
    return pull_fail(at);
  at->p++;
  return true;
}

bool pull_text(struct pull *at, struct str *raw) {
  struct str value = pull_raw(at);
  if (value.n < 2 || value.p[0] != '"')
    return false;
  *raw = (struct str){value.p + 1, value.n - 2};
  return true;
}

bool pull_integer(struct pull *at, int64_t *value) {
  struct str raw = pull_raw(at);
  long n;
  if (!str_to_long(raw, &n))
    return false;
  *value = n;
  return true;
}

bool pull_number(struct pull *at, double *value) {
  char text[64];
  struct str raw = pull_raw(at);
  if (raw.n == 0 || raw.n >= sizeof text || (raw.p[0] != '-' && (raw.p[0] < '0' || raw.p[0] > '9')))
    return false;
  memcpy(text, raw.p, raw.n);
  text[raw.n] = '\0';
  char *end;
  *value = strtod(text, &end);
  return *end == '\0';
}

bool pull_true(struct pull *at) {
  return str_eq_c(pull_raw(at), "true");
}

struct str pull_decode(struct str raw, struct buf *scratch) {
  struct jscan js;
  const char *p;
  size_t n, end;
  if (raw.n == 0 || memchr(raw.p, '\\', raw.n) == NULL)
    return raw;
  /* The byte after the raw ones is the closing quote, which pull_text and pull_key passed. */
  jscan_init(&js, raw.p, raw.n + 1);
  bool ok = jscan_string(&js, 0, &p, &n, &end) == JSCAN_OK;
  buf_clear(scratch);
  if (ok)
    buf_append(scratch, p, n);
  jscan_deinit(&js);
  return ok ? buf_view(scratch) : raw;
}
