#include "provider/redact.h"

#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

struct pattern {
  char *p;
  size_t n;
  size_t name; /* index */
  bool encoded;
};

struct secrets {
  struct pattern *patterns;
  size_t count;
  char **names;
  size_t name_count;
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

static void add_pattern(struct secrets *s, const char *p, size_t n, bool encoded) {
  if (n < LIMIT_SECRET_BYTES)
    return;
  s->patterns = xrealloc(s->patterns, (s->count + 1) * sizeof *s->patterns);
  s->patterns[s->count++] = (struct pattern){xstrndup(p, n), n, s->name_count - 1, encoded};
  s->starts[(unsigned char)p[0]] = true;
}

static void add_percent_encoded(struct secrets *s, struct str value, const char *digits) {
  struct buf b = {0};
  for (size_t i = 0; i < value.n; i++) {
    unsigned char c = (unsigned char)value.p[i];
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
        c == '.' || c == '_' || c == '~') {
      buf_putc(&b, (char)c);
    } else {
      buf_putc(&b, '%');
      buf_putc(&b, digits[c >> 4]);
      buf_putc(&b, digits[c & 15]);
    }
  }
  if (b.n != value.n)
    add_pattern(s, b.p, b.n, true);
  explicit_bzero(b.p, b.n);
  buf_deinit(&b);
}

/* The characters that a base64 text has wherever `value` stands `offset` bytes (mod 3) into it: the
 * first and the last may depend on the neighbours and are left out. */
static void add_base64(struct secrets *s, struct str value, size_t offset, const char *last_two) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  size_t from = (offset * 8 + 5) / 6, to = (offset + value.n) * 8 / 6;
  struct buf b = {0};
  for (size_t k = from; k < to; k++) {
    unsigned six = 0;
    for (size_t bit = k * 6; bit < k * 6 + 6; bit++) {
      size_t at = bit / 8 - offset;
      six = six << 1 | (((unsigned char)value.p[at] >> (7 - bit % 8)) & 1u);
    }
    buf_putc(&b, six < 62 ? digits[six] : last_two[six - 62]);
  }
  if (b.n > 0)
    add_pattern(s, b.p, b.n, true);
  if (b.n > 0)
    explicit_bzero(b.p, b.n);
  buf_deinit(&b);
}

void secrets_add(struct secrets *s, const char *name, struct str value) {
  if (value.n < LIMIT_SECRET_BYTES)
    return;
  s->names = xrealloc(s->names, (s->name_count + 1) * sizeof *s->names);
  s->names[s->name_count++] = xstrdup(name);
  add_pattern(s, value.p, value.n, false);
  add_percent_encoded(s, value, "0123456789ABCDEF");
  add_percent_encoded(s, value, "0123456789abcdef");
  for (size_t offset = 0; offset < 3; offset++) {
    add_base64(s, value, offset, "+/");
    add_base64(s, value, offset, "-_");
  }
}

void secrets_add_env(struct secrets *s, const char *const *names) {
  for (; names && *names; names++)
    secrets_add(s, *names, str_from(getenv(*names)));
}

/* The longest pattern at the head of `text`; *partial: the text may be the beginning of one. */
static const struct pattern *match(const struct secrets *s, struct str text, bool *partial) {
  const struct pattern *best = NULL;
  *partial = false;
  for (size_t i = 0; i < s->count; i++) {
    const struct pattern *p = &s->patterns[i];
    size_t n = p->n < text.n ? p->n : text.n;
    if (p->p[0] != text.p[0] || memcmp(p->p, text.p, n) != 0)
      continue;
    if (p->n > text.n)
      *partial = true;
    else if (best == NULL || p->n > best->n)
      best = p;
  }
  return best;
}

/* Copies text to out with values replaced. Returns the offset from which the text may be the
 * beginning of a value, text.n when nothing is: that part is not copied. */
static size_t filter(const struct secrets *s, struct str text, struct buf *out, size_t *count) {
  size_t from = 0, i = 0;
  while (i < text.n) {
    bool partial = false;
    const struct pattern *p = NULL;
    if (s->starts[(unsigned char)text.p[i]])
      p = match(s, (struct str){text.p + i, text.n - i}, &partial);
    if (partial) /* a longer one first: it may still come true */
      break;
    if (p == NULL) {
      i++;
      continue;
    }
    buf_append(out, text.p + from, i - from);
    buf_printf(out, "\xC2\xABsecret:%s\xC2\xBB", s->names[p->name]);
    i += p->n;
    from = i;
    ++*count;
  }
  buf_append(out, text.p + from, i - from);
  return i;
}

/* Would this end of a text give something of a value away? The first characters of an encoded one are
 * too common to tell. */
static bool gives_away(const struct secrets *s, struct str tail) {
  for (size_t i = 0; i < s->count; i++) {
    const struct pattern *p = &s->patterns[i];
    if (p->n > tail.n && memcmp(p->p, tail.p, tail.n) == 0 &&
        (!p->encoded || tail.n >= LIMIT_SECRET_BYTES / 2))
      return true;
  }
  return false;
}

/* What was held back, now that no more comes: its first byte belongs to no value, or one that is
 * whole. */
static void release(const struct secrets *s, struct str held, bool cut, struct buf *out,
                    size_t *count) {
  while (held.n > 0) {
    if (cut && gives_away(s, held)) {
      ++*count;
      return;
    }
    bool partial;
    const struct pattern *p = match(s, held, &partial);
    size_t used = 1;
    if (p != NULL) {
      buf_printf(out, "\xC2\xABsecret:%s\xC2\xBB", s->names[p->name]);
      used = p->n;
      ++*count;
    } else {
      buf_putc(out, held.p[0]);
    }
    held = (struct str){held.p + used, held.n - used};
    used = filter(s, held, out, count);
    held = (struct str){held.p + used, held.n - used};
  }
}

size_t secrets_hide(const struct secrets *s, struct buf *text, bool cut) {
  struct buf out = {0};
  size_t count = 0;
  if (secrets_are_empty(s) || text->n == 0)
    return 0;
  size_t end = filter(s, buf_view(text), &out, &count);
  release(s, (struct str){text->p + end, text->n - end}, cut, &out, &count);
  if (count > 0) {
    explicit_bzero(text->p, text->n);
    buf_deinit(text);
    *text = out;
  } else {
    buf_deinit(&out);
  }
  return count;
}

void redactor_init(struct redactor *r, const struct secrets *secrets) {
  *r = (struct redactor){.secrets = secrets};
}

void redactor_push(struct redactor *r, struct str piece, struct buf *out) {
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
    release(r->secrets, buf_view(&r->held), false, out, &count);
  buf_clear(&r->held);
}

void redactor_deinit(struct redactor *r) {
  if (r->held.cap > 0)
    explicit_bzero(r->held.p, r->held.cap);
  buf_deinit(&r->held);
  *r = (struct redactor){0};
}

size_t redact(struct buf *text, const char *const *names, bool cut) {
  if (names == NULL || *names == NULL || text->n == 0)
    return 0;
  struct secrets *s = secrets_new();
  secrets_add_env(s, names);
  size_t count = secrets_hide(s, text, cut);
  secrets_free(s);
  return count;
}
