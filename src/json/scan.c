/* Reads values: containers, literals and what may stand between them. */
#include "json/scan.h"

#include "base/str.h"
#include "base/utf8.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers: integers that fit, and the nearest double of all others --- */

/* These powers of ten are exact: a mantissa below 2^53 times or over one of them is rounded once,
 * so it is right (Clinger 1990). */
static const double pow10_exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { DIGITS_KEPT = 18 }; /* so many always fit 64 bits */

/* Reads a number by strtod. It reads the locale's decimal point, so the copy gets that one. */
static enum jscan_code slow_real(const char *s, size_t len, json_t **value) {
  buf_auto_t copy = {0};
  for (size_t i = 0; i < len; i++) {
    if (s[i] == '.')
      buf_puts(&copy, localeconv()->decimal_point);
    else
      buf_putc(&copy, s[i]);
  }
  double d = strtod(buf_c(&copy), NULL);
  if (!isfinite(d))
    return JSCAN_NUMBER_RANGE;
  *value = jscan_made(json_real(d));
  return JSCAN_OK;
}

/* Holds a number taken apart. The mantissa holds the first DIGITS_KEPT digits. */
struct jscan_parts {
  uint64_t mantissa;
  size_t digits;
  int exp10;
  bool minus, real;
};

static size_t read_digits(const char *text, size_t n, size_t i, struct jscan_parts *parts) {
  for (; i < n && str_is_digit(text[i]); i++, parts->digits++)
    if (parts->digits < DIGITS_KEPT) {
      parts->mantissa = parts->mantissa * 10 + (uint64_t)(text[i] - '0');
      parts->exp10 -= parts->real;
    }
  return i;
}

/* Reads an exponent, from after the e. */
static size_t read_exponent(const char *text, size_t n, size_t i, struct jscan_parts *parts) {
  enum { EXPONENT_MAX = 100000 }; /* beyond, more digits change nothing */
  bool minus = i < n && text[i] == '-';
  int e = 0;
  if (i < n && (text[i] == '-' || text[i] == '+'))
    i++;
  for (; i < n && str_is_digit(text[i]); i++)
    if (e < EXPONENT_MAX)
      e = e * 10 + (text[i] - '0');
  parts->exp10 += minus ? -e : e;
  return i;
}

/* Reads the parts of a number. Sets *end to after the number, or to where it fails. */
static enum jscan_code read_parts(const char *text, size_t n, size_t i, struct jscan_parts *parts,
                                  size_t *end) {
  parts->minus = i < n && text[i] == '-';
  size_t first = i + parts->minus;
  *end = first;
  if (first >= n)
    return JSCAN_TRUNCATED;
  if (!str_is_digit(text[first]))
    return JSCAN_SYNTAX;
  i = *end = read_digits(text, n, first, parts);
  if (parts->digits > 1 && text[first] == '0') {
    *end = first + 1;
    return JSCAN_SYNTAX;
  }
  if (i < n && text[i] == '.') {
    parts->real = true;
    i = *end = read_digits(text, n, i + 1, parts);
    if (text[i - 1] == '.')
      return i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
  }
  if (i < n && (text[i] == 'e' || text[i] == 'E')) {
    parts->real = true;
    i = *end = read_exponent(text, n, i + 1, parts);
    if (!str_is_digit(text[i - 1]))
      return i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
  }
  return JSCAN_OK;
}

enum jscan_code jscan_number(const char *text, size_t n, size_t from, json_t **value, size_t *end) {
  struct jscan_parts parts = {0};
  assert(from < n);
  enum jscan_code code = read_parts(text, n, from, &parts, end);
  if (code != JSCAN_OK)
    return code;
  uint64_t m = parts.mantissa;
  if (!parts.real && parts.digits <= DIGITS_KEPT) {
    *value = jscan_made(json_integer(parts.minus ? -(json_int_t)m : (json_int_t)m));
    return JSCAN_OK;
  }
  if (!parts.real && parts.digits == DIGITS_KEPT + 1) {
    uint64_t u = m * 10 + (uint64_t)(text[*end - 1] - '0'); /* below 10^19 < 2^64 */
    uint64_t limit = (uint64_t)INT64_MAX + (parts.minus ? 1 : 0);
    if (u <= limit) {
      *value = jscan_made(json_integer(parts.minus ? (json_int_t)(0 - u) : (json_int_t)u));
      return JSCAN_OK;
    }
  }
  if (parts.real && parts.digits <= DIGITS_KEPT && m < (UINT64_C(1) << 53) && parts.exp10 >= -22 &&
      parts.exp10 <= 22) {
    double d = (double)m;
    if (parts.exp10 < 0)
      d /= pow10_exact[-parts.exp10];
    else
      d *= pow10_exact[parts.exp10];
    *value = jscan_made(json_real(parts.minus ? -d : d));
    return JSCAN_OK;
  }
  code = slow_real(text + from, *end - from, value);
  if (code == JSCAN_NUMBER_RANGE)
    *end = from;
  return code;
}

/* --- the content of strings: plain runs, escapes and text that is not ASCII --- */

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__SSE2__)

/* Returns a bit for each byte that is a quote, a backslash, a control character or not ASCII. */
static int plain_ends(__m128i v) {
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
  /* The comparison is signed: bytes from 0x80 on count as negative, so they are below a space,
   * too. */
  return _mm_movemask_epi8(
      _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                   _mm_cmplt_epi8(v, _mm_set1_epi8(0x20))));
}

#endif

/* Returns the first byte from i that is a quote, a backslash, a control character or not ASCII. */
static size_t jscan_plain_run(const char *text, size_t n, size_t i) {
#if defined(__SSE2__)
  while (i + 16 <= n) {
    int mask = plain_ends(_mm_loadu_si128((const __m128i *)(const void *)(text + i)));
    if (mask)
      return i + (size_t)__builtin_ctz((unsigned)mask);
    i += 16;
  }
#endif
  for (; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\' || c < 0x20 || c >= 0x80)
      break;
  }
  return i;
}

enum { PLAIN_BLOCK = 16 };

/* Copies what is plain of the next block, for which there is room. Returns how much that was. */
static size_t copy_plain(const char *text, size_t n, char *out) {
#if defined(__SSE2__)
  if (n >= PLAIN_BLOCK) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)text);
    int mask = plain_ends(v);
    _mm_storeu_si128((__m128i *)(void *)out, v);
    return mask ? (size_t)__builtin_ctz((unsigned)mask) : PLAIN_BLOCK;
  }
#endif
  size_t k = jscan_plain_run(text, n < PLAIN_BLOCK ? n : PLAIN_BLOCK, 0);
  memcpy(out, text, k);
  return k;
}

/* Returns the value of four hexadecimal digits at text[i], or -1. */
static int hex4(const char *text, size_t n, size_t i) {
  if (n - i < 4)
    return -1;
  int v = 0;
  for (size_t k = 0; k < 4; k++) {
    int d = str_hex_digit(text[i + k]);
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  return v;
}

/* Returns what the byte after a backslash stands for, 0 for u or an unknown one. */
static char simple_escape(char c) {
  static const char plain[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                  ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
  return plain[(unsigned char)c];
}

/* Reads an escape; text[*i] is the byte after the backslash. Moves *i past the escape. */
static enum jscan_code read_escape(const char *text, size_t n, size_t *i, char out[4],
                                   size_t *len) {
  if (*i >= n)
    return JSCAN_TRUNCATED;
  char c = text[*i], plain = simple_escape(c);
  if (plain) {
    out[0] = plain;
    *len = 1;
    ++*i;
    return JSCAN_OK;
  }
  if (c != 'u')
    return JSCAN_ESCAPE;
  int v = hex4(text, n, *i + 1);
  if (v < 0)
    return n - *i < 5 ? JSCAN_TRUNCATED : JSCAN_ESCAPE;
  uint32_t cp = (uint32_t)v;
  *i += 5;
  if (n - *i >= 6 && text[*i] == '\\' && text[*i + 1] == 'u') {
    int low = hex4(text, n, *i + 2);
    if (low >= 0 && utf8_join(cp, (uint32_t)low, &cp))
      *i += 6;
  }
  *len = utf8_put(out, cp);
  return JSCAN_OK;
}

/* Returns the end of the run of text that is not ASCII at text[i], i itself if it is ill-formed
 * there. */
static size_t wide_run(const char *text, size_t n, size_t i) {
  while (i < n && (unsigned char)text[i] >= 0x80) {
    size_t k = utf8_decode(text + i, n - i, NULL);
    if (k == 0)
      break;
    i += k;
  }
  return i;
}

/* Decodes plain runs and escapes of one byte, one after the other, from the run [*copied, i) on, as
 * long as there is room. Returns the offset behind the last. */
static size_t simple_run(struct jscan *js, size_t i, size_t *copied) {
  struct buf *b = &js->decoded;
  if (b->n + (i - *copied) + 1 >= b->cap)
    return i;
  if (i > *copied)
    memcpy(b->p + b->n, js->text + *copied, i - *copied);
  b->n += i - *copied;
  *copied = i;
  while (i + 1 < js->n && b->n + PLAIN_BLOCK < b->cap) {
    if (js->text[i] == '\\') {
      char plain = simple_escape(js->text[i + 1]);
      if (!plain)
        break;
      b->p[b->n++] = plain;
      i += 2;
      continue;
    }
    size_t k = copy_plain(js->text + i, js->n - i, b->p + b->n);
    if (k == 0)
      break;
    b->n += k;
    i += k;
  }
  *copied = i;
  return i;
}

enum jscan_code jscan_string(struct jscan *js, size_t from, const char **p, size_t *len,
                             size_t *end) {
  const char *text = js->text;
  size_t n = js->n, i = from, copied = from;
  assert(from <= n);
  js->decoded.n = 0;
  for (;;) {
    i = jscan_plain_run(text, n, i);
    *end = i;
    if (i >= n)
      return JSCAN_TRUNCATED;
    unsigned char c = (unsigned char)text[i];
    if (c == '"')
      break;
    if (c < 0x20)
      return JSCAN_CONTROL;
    if (c >= 0x80) {
      i = wide_run(text, n, i);
      if (i == *end)
        return JSCAN_UTF8;
      continue;
    }
    i = simple_run(js, i, &copied);
    if (i >= n || text[i] != '\\')
      continue;
    char out[UTF8_BYTES_MAX];
    size_t out_len = 0, at = i + 1;
    enum jscan_code code = read_escape(text, n, &at, out, &out_len);
    *end = i;
    if (code != JSCAN_OK)
      return code;
    buf_append(&js->decoded, text + copied, i - copied);
    buf_append(&js->decoded, out, out_len);
    i = copied = at;
  }
  if (copied > from) {
    buf_append(&js->decoded, text + copied, i - copied);
    *p = js->decoded.p;
    *len = js->decoded.n;
  } else {
    *p = text + from;
    *len = i - from;
  }
  *end = i + 1;
  return JSCAN_OK;
}

/* --- values: containers, literals and what may stand between them --- */

bool jscan_one_of(const char *set, char c) {
  return c && strchr(set, c);
}

void jscan_init(struct jscan *js, const char *text, size_t n) {
  assert(text != NULL || n == 0);
  *js = (struct jscan){.text = text, .n = n};
  js->skip_left = n > SIZE_MAX / 8 ? n : 4 * n + 65536;
}

void jscan_deinit(struct jscan *js) {
  buf_deinit(&js->decoded);
  buf_deinit(&js->decoded_key);
  *js = (struct jscan){0};
}

const char *jscan_code_name(enum jscan_code code) {
  static const char *const names[] = {[JSCAN_OK] = "ok",
                                      [JSCAN_SYNTAX] = "syntax",
                                      [JSCAN_TRUNCATED] = "truncated",
                                      [JSCAN_CONTROL] = "control_character",
                                      [JSCAN_ESCAPE] = "bad_escape",
                                      [JSCAN_UTF8] = "bad_utf8",
                                      [JSCAN_DEPTH] = "depth_limit",
                                      [JSCAN_NUMBER_RANGE] = "number_range"};
  return names[code];
}

size_t jscan_skip(struct jscan *js, size_t from, size_t depth) {
  const char *text = js->text;
  assert(from <= js->n);
  size_t n = js->n - from > js->skip_left ? from + js->skip_left : js->n;
  size_t i = from, end = SIZE_MAX;
  for (; i < n; i++) {
    char c = text[i];
    if (c == '{' || c == '[') {
      depth++;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) {
        end = i + 1;
        break;
      }
    } else if (c == '"') {
      for (i++; i < n && text[i] != '"'; i++)
        if (text[i] == '\\')
          i++;
    }
  }
  js->skip_left -= (i < n ? i : n) - from;
  return end;
}

static size_t jscan_after_space(const char *text, size_t n, size_t i) {
  while (i < n && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t'))
    i++;
  return i;
}

static bool jscan_literal(const char *text, size_t n, size_t i, const char *word, size_t len) {
  return n - i >= len && memcmp(text + i, word, len) == 0;
}

/* Returns how a token is bad. A literal may be cut by the end of the text: "tru". */
static enum jscan_code jscan_bad_token(const char *text, size_t n, size_t i, size_t *at) {
  static const char *const words[] = {"true", "false", "null"};
  *at = i;
  for (size_t w = 0; w < 3; w++) {
    size_t k = 0;
    while (i + k < n && words[w][k] && text[i + k] == words[w][k])
      k++;
    if (k && i + k == n) {
      *at = n;
      return JSCAN_TRUNCATED;
    }
  }
  return JSCAN_SYNTAX;
}

struct jscan_frame {
  json_t *container; /* borrowed: each is already inside its parent */
  bool object;
  size_t members; /* those of an object that were read so far */
};

/* Puts v, which it consumes, into the innermost container, or makes it the root. */
static void jscan_place(struct jscan_frame *top, json_t **root, const char *key, size_t key_len,
                        json_t *v) {
  int failed = 0;
  if (!top)
    *root = v;
  else if (top->object)
    failed = json_object_setn_new_nocheck(top->container, key, key_len, v);
  else
    failed = json_array_append_new(top->container, v);
  if (v == NULL || failed)
    BUG("out of memory");
}

enum jscan_code jscan_value(struct jscan *js, size_t from, struct jscan_result *out) {
  const char *const text = js->text;
  const size_t n = js->n;
  assert(from <= n);
  struct jscan_frame stack[JSCAN_DEPTH_MAX];
  size_t depth = 0, i = from;
  json_t *root = NULL;
  const char *key = NULL;
  size_t key_len = 0;
  enum jscan_code code = JSCAN_SYNTAX;
  *out = (struct jscan_result){.last_string = SIZE_MAX};

value: /* at the first byte of a value; key is set when the innermost container is an object */
  if (i >= n) {
    code = JSCAN_TRUNCATED;
    goto fail;
  }
  json_t *v = NULL;
  struct jscan_frame *top = depth ? &stack[depth - 1] : NULL;
  switch (text[i]) {
  case '{':
  case '[': {
    bool object = text[i] == '{';
    if (depth == JSCAN_DEPTH_MAX) {
      size_t end = jscan_skip(js, i, depth);
      out->closed = end != SIZE_MAX;
      out->end = out->closed ? end : 0;
      code = JSCAN_DEPTH;
      goto fail;
    }
    /* An opener in prose is refused before anything is allocated. */
    size_t next = jscan_after_space(text, n, i + 1);
    if (object && depth == 0 && next < n && text[next] != '"' && text[next] != '}') {
      i = next;
      goto fail;
    }
    v = object ? json_object() : json_array();
    jscan_place(top, &root, key, key_len, v);
    stack[depth++] = (struct jscan_frame){v, object, 0};
    out->last_string = SIZE_MAX;
    i = next;
    if (i < n && text[i] == (object ? '}' : ']'))
      goto close;
    if (object)
      goto member;
    goto value;
  }
  case '"': {
    const char *p;
    size_t len, end;
    out->last_string = i;
    code = jscan_string(js, i + 1, &p, &len, &end);
    if (code != JSCAN_OK) {
      i = end;
      goto fail;
    }
    v = json_stringn_nocheck(p, len);
    i = end;
    break;
  }
  case '-':
  case '0':
  case '1':
  case '2':
  case '3':
  case '4':
  case '5':
  case '6':
  case '7':
  case '8':
  case '9': {
    size_t end;
    out->last_string = SIZE_MAX;
    code = jscan_number(text, n, i, &v, &end);
    i = end;
    if (code != JSCAN_OK)
      goto fail;
    break;
  }
  default:
    out->last_string = SIZE_MAX;
    if (jscan_literal(text, n, i, "true", 4)) {
      v = json_true();
      i += 4;
    } else if (jscan_literal(text, n, i, "false", 5)) {
      v = json_false();
      i += 5;
    } else if (jscan_literal(text, n, i, "null", 4)) {
      v = json_null();
      i += 4;
    } else {
      code = jscan_bad_token(text, n, i, &i);
      goto fail;
    }
  }
  jscan_place(top, &root, key, key_len, v);
  if (!depth)
    goto done;

next:
  i = jscan_after_space(text, n, i);
  code = JSCAN_TRUNCATED;
  if (i >= n)
    goto fail;
  code = JSCAN_SYNTAX;
  if (text[i] == ',') {
    out->last_string = SIZE_MAX;
    i = jscan_after_space(text, n, i + 1);
    if (stack[depth - 1].object)
      goto member;
    goto value;
  }
  if (text[i] != (stack[depth - 1].object ? '}' : ']'))
    goto fail;

close: /* at the closer of the innermost container */
  i++;
  out->last_string = SIZE_MAX;
  depth--;
  out->duplicate_key |=
      stack[depth].object && json_object_size(stack[depth].container) < stack[depth].members;
  if (depth)
    goto next;

done:
  out->value = root;
  out->end = i;
  return JSCAN_OK;

member: /* at the opening quote of a key */
  code = i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
  if (i >= n || text[i] != '"')
    goto fail;
  stack[depth - 1].members++;
  {
    size_t end;
    out->last_string = i;
    code = jscan_string(js, i + 1, &key, &key_len, &end);
    i = code == JSCAN_OK ? jscan_after_space(text, n, end) : end;
    if (code == JSCAN_OK && key == js->decoded.p) {
      /* The key is stored after its value, which may need decoding too. */
      struct buf b = js->decoded;
      js->decoded = js->decoded_key;
      js->decoded_key = b;
    }
    if (code != JSCAN_OK)
      goto fail;
    code = i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
    if (i >= n || text[i] != ':')
      goto fail;
    out->member_seen = true;
    out->last_string = SIZE_MAX;
    i = jscan_after_space(text, n, i + 1);
    goto value;
  }

fail:
  json_decref(root);
  out->offset = i;
  return code;
}

enum jscan_code jscan_whole(struct str text, struct jscan_result *out) {
  struct jscan js;
  jscan_init(&js, text.p, text.n);
  enum jscan_code code = jscan_value(&js, 0, out);
  jscan_deinit(&js);
  if (code != JSCAN_OK || out->end == text.n)
    return code;
  json_decref(out->value);
  out->value = NULL;
  out->offset = out->end;
  return JSCAN_SYNTAX;
}
