/* Replaces secrets in text that comes in pieces. */
#include "provider/redact.h"

#include "base/limits.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct redact_pattern {
  char *p;
  size_t n;
  size_t name; /* index */
  enum written {
    WRITTEN_PLAIN, /* the value; its bytes may be spelled in other ways: see spelled */
    WRITTEN_BASE64,
    WRITTEN_HEX, /* the value; its bytes are sought as two digits each */
  } written;
};

struct secrets {
  struct redact_pattern *patterns;
  size_t count, room;
  char **names;
  size_t name_count, name_room;
  bool starts[256]; /* some pattern starts with this byte */
};

struct secrets *secrets_new(void) {
  return xcalloc(1, sizeof(struct secrets));
}

void secrets_free(struct secrets *s) {
  if (s == NULL)
    return;
  for (size_t i = 0; i < s->count; i++) {
    explicit_bzero(s->patterns[i].p, s->patterns[i].n);
    free(s->patterns[i].p);
  }
  for (size_t i = 0; i < s->name_count; i++)
    free(s->names[i]);
  free(s->patterns);
  free(s->names);
  free(s);
}

bool secrets_are_empty(const struct secrets *s) {
  return s == NULL || s->count == 0;
}

static void add_pattern(struct secrets *s, const char *p, size_t n, enum written written) {
  if (n < LIMIT_SECRET_BYTES)
    return;
  s->patterns = xgrow(s->patterns, &s->room, s->count + 1, sizeof *s->patterns);
  s->patterns[s->count++] = (struct redact_pattern){xstrndup(p, n), n, s->name_count - 1, written};
  if (written == WRITTEN_HEX) {
    s->starts[(unsigned char)"0123456789abcdef"[(unsigned char)p[0] >> 4]] = true;
    s->starts[(unsigned char)"0123456789ABCDEF"[(unsigned char)p[0] >> 4]] = true;
    return;
  }
  s->starts[(unsigned char)p[0]] = true;
  if (written == WRITTEN_PLAIN)
    s->starts['%'] = s->starts['\\'] = s->starts['+'] = true;
}

/* Adds the characters that a base64 text has wherever `value` stands `offset` bytes (mod 3) into
 * it. The first and the last may depend on the neighbours and are left out. */
static void add_base64(struct secrets *s, struct str value, size_t offset, const char *last_two) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  size_t from = (offset * 8 + 5) / 6, to = (offset + value.n) * 8 / 6;
  buf_auto_t b = {0};
  for (size_t k = from; k < to; k++) {
    unsigned six = 0;
    for (size_t bit = k * 6; bit < k * 6 + 6; bit++) {
      size_t at = bit / 8 - offset;
      six = six << 1 | (((unsigned char)value.p[at] >> (7 - bit % 8)) & 1u);
    }
    buf_putc(&b, six < 62 ? digits[six] : last_two[six - 62]);
  }
  if (b.n > 0)
    add_pattern(s, b.p, b.n, WRITTEN_BASE64);
  if (b.n > 0)
    explicit_bzero(b.p, b.n);
}

void secrets_add(struct secrets *s, const char *name, struct str value) {
  assert(s != NULL);
  assert(name != NULL);
  if (value.n < LIMIT_SECRET_BYTES)
    return;
  s->names = xgrow(s->names, &s->name_room, s->name_count + 1, sizeof *s->names);
  s->names[s->name_count++] = xstrdup(name);
  add_pattern(s, value.p, value.n, WRITTEN_PLAIN);
  add_pattern(s, value.p, value.n, WRITTEN_HEX);
  for (size_t offset = 0; offset < 3; offset++) {
    add_base64(s, value, offset, "+/");
    add_base64(s, value, offset, "-_");
  }
}

void secrets_add_env(struct secrets *s, const char *const *names) {
  for (; names && *names; names++)
    secrets_add(s, *names, str_from(getenv(*names)));
}

static bool is_hex_of(struct str digits, unsigned char byte) {
  static const char hex[] = "0123456789abcdef";
  const char at[] = {hex[byte >> 4], hex[byte & 15]};
  for (size_t i = 0; i < digits.n && i < 2; i++)
    if ((digits.p[i] | 0x20) != at[i] && digits.p[i] != at[i])
      return false;
  return true;
}

/* Returns the length of `byte` written as prefix and two hexadecimal digits, 0 if it is not here.
 * Sets *partial if it may be, but the text ends. */
static size_t redact_escaped(unsigned char byte, const char *prefix, struct str text,
                             bool *partial) {
  size_t n = strlen(prefix), have = text.n < n ? text.n : n;
  struct str digits = {text.p + have, text.n - have};
  if (strncasecmp(text.p, prefix, have) != 0 || !is_hex_of(digits, byte))
    return 0;
  if (digits.n < 2)
    *partial = true;
  return digits.n < 2 ? 0 : n + 2;
}

/* Returns how many bytes at the head of `text` stand for `byte`, other than itself, as in a URL or
 * a form (%2F, + for a space) or a JSON string (\u002f, \/); 0 if none do. Encoders differ in which
 * bytes they write so: it may be any byte of a value. */
static size_t spelled(unsigned char byte, struct str text, bool *partial) {
  if (text.p[0] == '%')
    return redact_escaped(byte, "%", text, partial);
  if (text.p[0] == '+')
    return byte == ' ' ? 1 : 0;
  if (text.p[0] != '\\')
    return 0;
  if (text.n > 1 && (unsigned char)text.p[1] == byte && strchr("/\"\\", byte) != NULL)
    return 2;
  return redact_escaped(byte, "\\u00", text, partial);
}

/* Returns how many bytes at the head of `text` spell the value, 0 if they do not. */
static size_t match_value(const struct redact_pattern *p, struct str text, bool *partial) {
  size_t at = 0;
  for (size_t i = 0; i < p->n; i++) {
    unsigned char byte = (unsigned char)p->p[i];
    if (at == text.n) {
      *partial = true;
      return 0;
    }
    size_t n = spelled(byte, (struct str){text.p + at, text.n - at}, partial);
    if (n == 0 && (unsigned char)text.p[at] == byte)
      n = 1;
    if (n == 0)
      return 0;
    at += n;
  }
  return at;
}

/* Returns the length of one piece of what may stand between two characters of an encoded value:
 * white space of wrapped lines and columns, as it is or as a JSON string says it (\n, and \\n in a
 * string within one); in hex also what writers of bytes put there (61:62, 0x61, 0x62, \x61\x62). */
static size_t redact_filling(struct str text, bool hex, bool *partial) {
  enum { BACKSLASHES = 8 };
  size_t n = 0;
  if (text.p[0] == '\0')
    return 0;
  if (strchr(hex ? " \t\r\n:," : " \t\r\n", text.p[0]) != NULL)
    return 1;
  if (hex && str_starts_fold(text, "0x"))
    return 2;
  while (n < text.n && n < BACKSLASHES && text.p[n] == '\\')
    n++;
  if (n == text.n)
    *partial = true;
  if (n == 0 || n == text.n || text.p[n] == '\0')
    return 0;
  bool escape = strchr(hex ? "nrtx" : "nrt", text.p[n]) != NULL;
  return escape ? n + 1 : 0;
}

static struct str redact_skip(struct str text, bool hex, bool *partial) {
  enum { GAP_BYTES = 64 };
  const char *start = text.p;
  while (text.n > 0 && text.p - start < GAP_BYTES) {
    size_t n = redact_filling(text, hex, partial);
    if (n == 0)
      break;
    text = (struct str){text.p + n, text.n - n};
  }
  return text;
}

static size_t match_base64(const struct redact_pattern *p, struct str text, bool *partial) {
  struct str rest = text;
  for (size_t i = 0; i < p->n; i++) {
    if (i > 0)
      rest = redact_skip(rest, false, partial);
    if (rest.n == 0)
      *partial = true;
    if (rest.n == 0 || rest.p[0] != p->p[i])
      return 0;
    rest = (struct str){rest.p + 1, rest.n - 1};
  }
  return text.n - rest.n;
}

/* Skips the offset with which od and xxd begin each line. */
static struct str skip_offset(struct str text, bool *partial) {
  enum { DIGITS_MIN = 6, DIGITS_MAX = 16 };
  size_t n = 0;
  while (n < text.n && n < DIGITS_MAX && strchr("0123456789abcdefABCDEF", text.p[n]) != NULL &&
         text.p[n] != '\0')
    n++;
  if (n == text.n)
    *partial = true;
  if (n < DIGITS_MIN || n == text.n || (text.p[n] != ' ' && text.p[n] != ':'))
    return text;
  return redact_skip((struct str){text.p + n, text.n - n}, true, partial);
}

static size_t match_hex(const struct redact_pattern *p, struct str text, bool *partial) {
  struct str rest = text;
  for (size_t i = 0; i < p->n; i++) {
    struct str at = i > 0 ? redact_skip(rest, true, partial) : rest;
    if (at.n < rest.n && !is_hex_of(at, (unsigned char)p->p[i]))
      at = skip_offset(at, partial);
    if (!is_hex_of(at, (unsigned char)p->p[i]))
      return 0;
    if (at.n < 2) {
      *partial = true;
      return 0;
    }
    rest = (struct str){at.p + 2, at.n - 2};
  }
  return text.n - rest.n;
}

/* Matches one pattern. The value's own bytes are the common case, and are never read as an
 * escape. */
static size_t match_one(const struct redact_pattern *p, struct str text, bool *partial) {
  if (p->written == WRITTEN_HEX)
    return match_hex(p, text, partial);
  if (p->written == WRITTEN_BASE64)
    return match_base64(p, text, partial);
  size_t n = p->n < text.n ? p->n : text.n;
  if (p->p[0] == text.p[0] && memcmp(p->p, text.p, n) == 0) {
    if (n == p->n)
      return n;
    *partial = true;
  }
  return match_value(p, text, partial);
}

/* Returns the length of the longest value at the head of `text`, 0 if there is none. Sets *partial
 * if the text may be the beginning of one. */
static size_t redact_match(const struct secrets *s, struct str text, size_t *name, bool *partial) {
  size_t best = 0;
  *partial = false;
  for (size_t i = 0; i < s->count; i++) {
    size_t n = match_one(&s->patterns[i], text, partial);
    if (n > best) {
      best = n;
      *name = s->patterns[i].name;
    }
  }
  return best;
}

/* Copies text to out with values replaced. Returns the offset from which the text may be the
 * beginning of a value, text.n when nothing is: that part is not copied. */
static size_t filter(const struct secrets *s, struct str text, struct buf *out, size_t *count) {
  size_t from = 0, i = 0;
  while (i < text.n) {
    bool partial = false;
    size_t name = 0, n = 0;
    if (s->starts[(unsigned char)text.p[i]])
      n = redact_match(s, (struct str){text.p + i, text.n - i}, &name, &partial);
    if (partial) /* a longer one may still match */
      break;
    if (n == 0) {
      i++;
      continue;
    }
    buf_append(out, text.p + from, i - from);
    buf_printf(out, "\xC2\xABsecret:%s\xC2\xBB", s->names[name]);
    i += n;
    from = i;
    ++*count;
  }
  buf_append(out, text.p + from, i - from);
  return i;
}

/* Releases what was held back, now that no more comes: its first byte belongs to no value, or
 * one that is whole. */
static void redact_release(const struct secrets *s, struct str held, struct buf *out,
                           size_t *count) {
  while (held.n > 0) {
    bool partial;
    size_t name = 0, used = redact_match(s, held, &name, &partial);
    if (used > 0) {
      buf_printf(out, "\xC2\xABsecret:%s\xC2\xBB", s->names[name]);
      ++*count;
    } else {
      buf_putc(out, held.p[0]);
      used = 1;
    }
    held = (struct str){held.p + used, held.n - used};
    used = filter(s, held, out, count);
    held = (struct str){held.p + used, held.n - used};
  }
}

size_t secrets_hide(const struct secrets *s, struct buf *text) {
  struct buf out = {0};
  size_t count = 0;
  if (secrets_are_empty(s) || text->n == 0)
    return 0;
  size_t end = filter(s, buf_view(text), &out, &count);
  redact_release(s, (struct str){text->p + end, text->n - end}, &out, &count);
  if (count > 0) {
    explicit_bzero(text->p, text->n);
    buf_deinit(text);
    *text = out;
  } else {
    buf_deinit(&out);
  }
  return count;
}

const char *secrets_first(const struct secrets *s, struct str text) {
  for (size_t i = 0; !secrets_are_empty(s) && i < text.n; i++) {
    bool partial;
    size_t name;
    if (s->starts[(unsigned char)text.p[i]] &&
        redact_match(s, (struct str){text.p + i, text.n - i}, &name, &partial) > 0)
      return s->names[name];
  }
  return NULL;
}

void redactor_init(struct redactor *r, const struct secrets *secrets) {
  *r = (struct redactor){.secrets = secrets};
}

void redactor_push(struct redactor *r, struct str piece, struct buf *out) {
  assert(out != &r->held);
  size_t count = 0;
  if (secrets_are_empty(r->secrets)) {
    buf_str(out, piece);
    return;
  }
  if (r->held.n > 0) {
    struct buf all = r->held;
    r->held = (struct buf){0};
    buf_str(&all, piece);
    size_t end = filter(r->secrets, buf_view(&all), out, &count);
    buf_append(&r->held, all.p + end, all.n - end);
    explicit_bzero(all.p, all.n);
    buf_deinit(&all);
    return;
  }
  size_t end = filter(r->secrets, piece, out, &count);
  if (end < piece.n)
    buf_append(&r->held, piece.p + end, piece.n - end);
}

void redactor_flush(struct redactor *r, struct buf *out) {
  size_t count = 0;
  if (r->held.n > 0)
    redact_release(r->secrets, buf_view(&r->held), out, &count);
  buf_clear(&r->held);
}

void redactor_deinit(struct redactor *r) {
  if (r->held.cap > 0)
    explicit_bzero(r->held.p, r->held.cap);
  buf_deinit(&r->held);
  *r = (struct redactor){0};
}
