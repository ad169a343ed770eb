/* Checks `format` hostname (RFC 1123) and idn-hostname (RFC 5890 to 5893): labels, punycode,
 * contextual rules.
 *
 * The Unicode tables of the regular expression engine say which characters a label may have. Rules
 * that RFC 5892 derives from NFKC are approximated by leaving out the compatibility blocks, and a
 * joiner's neighbours are judged by their script. */
#include "schema/format.h"

#include <assert.h>

enum { HOST_BYTES_MAX = 253, LABEL_BYTES_MAX = 63 };

#define VIRAMA                                                                                     \
  "[\\x{94d}\\x{9cd}\\x{a4d}\\x{acd}\\x{b4d}\\x{bcd}\\x{c4d}\\x{ccd}\\x{d4d}\\x{dca}\\x{e3a}"      \
  "\\x{f84}\\x{1039}\\x{103a}\\x{1714}\\x{1734}\\x{17d2}\\x{1a60}\\x{1b44}\\x{1baa}\\x{1bab}"      \
  "\\x{a806}\\x{a8c4}\\x{a953}\\x{a9c0}\\x{aaf6}\\x{abed}]"

/* Matches a label with characters beyond ASCII, in PCRE2's syntax. */
static const char label_pattern[] =
    "^(?!\\p{M})(?!-)(?!.*-$)(?!..--)"
    "(?:(?!.*\\x{30fb})|(?=.*[\\p{sc:Hiragana}\\p{sc:Katakana}\\p{sc:Han}]))"
    "(?!.*[\\x{660}-\\x{669}].*[\\x{6f0}-\\x{6f9}])"
    "(?!.*[\\x{6f0}-\\x{6f9}].*[\\x{660}-\\x{669}])"
    "(?:(?![\\x{640}\\x{7fa}\\x{302e}\\x{302f}\\x{3031}-\\x{3035}\\x{303b}\\x{1100}-\\x{11ff}"
    "\\x{f900}-\\x{faff}\\x{fb00}-\\x{fdff}\\x{fe00}-\\x{fe1f}\\x{fe30}-\\x{ffef}])"
    "[-a-zA-Z\\p{Ll}\\p{Lo}\\p{Lm}\\p{Mn}\\p{Mc}\\p{Nd}\\x{6fd}\\x{6fe}\\x{f0b}\\x{3007}]"
    "|(?<=l)\\x{b7}(?=l)|\\x{375}(?=\\p{sc:Greek})|(?<=\\p{sc:Hebrew})[\\x{5f3}\\x{5f4}]"
    "|(?<=" VIRAMA ")[\\x{200c}\\x{200d}]|(?<=\\p{Arabic})\\x{200c}(?=\\p{Arabic})"
    "|\\x{30fb})+$";

/* Finds right-to-left characters: RFC 5893 restricts labels of names that have some. */
static const char rtl_pattern[] = "[\\p{bc:R}\\p{bc:AL}\\p{bc:AN}]";
static const char bidi_pattern[] =
    "^(?:(?!.*\\p{bc:EN}.*\\p{bc:AN})(?!.*\\p{bc:AN}.*\\p{bc:EN})[\\p{bc:R}\\p{bc:AL}]"
    "(?:[\\p{bc:R}\\p{bc:AL}\\p{bc:AN}\\p{bc:EN}\\p{bc:ES}\\p{bc:CS}\\p{bc:ET}\\p{bc:ON}\\p{bc:BN}"
    "\\p{bc:NSM}]*[\\p{bc:R}\\p{bc:AL}\\p{bc:EN}\\p{bc:AN}])?"
    "|\\p{bc:L}(?:[\\p{bc:L}\\p{bc:EN}\\p{bc:ES}\\p{bc:CS}\\p{bc:ET}\\p{bc:ON}\\p{bc:BN}\\p{bc:NSM}"
    "]*"
    "[\\p{bc:L}\\p{bc:EN}])?)\\p{bc:NSM}*$";

static bool engine_match(const char *pattern, const char *text, size_t length) {
  struct pattern *compiled;
  struct pattern_scratch scratch = {0};
  enum pattern_status status = pattern_compile_engine(pattern, strlen(pattern), &compiled);
  assert(status == PATTERN_OK); /* the patterns are our own */
  bool ok = pattern_match(compiled, &scratch, text, length) != PATTERN_NO_MATCH;
  pattern_scratch_deinit(&scratch);
  pattern_free(compiled);
  return ok;
}

/* --- punycode, RFC 3492 --- */

enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700, BIAS = 72, FIRST = 128 };

static unsigned puny_adapt(unsigned delta, unsigned points, bool first) {
  unsigned k = 0;
  delta = first ? delta / DAMP : delta / 2;
  delta += delta / points;
  for (; delta > ((BASE - T_MIN) * T_MAX) / 2; k += BASE)
    delta /= BASE - T_MIN;
  return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

static unsigned threshold(unsigned k, unsigned bias) {
  if (k <= bias)
    return T_MIN;
  return k >= bias + T_MAX ? (unsigned)T_MAX : k - bias;
}

static unsigned puny_digit(char c) {
  if (is_decimal(c))
    return (unsigned)(c - '0') + 26;
  return is_alpha(c) ? (unsigned)(c | 32) - 'a' : (unsigned)BASE;
}

/* Decodes into `points`; returns 0 if it is not punycode. */
static size_t puny_decode(const char *text, size_t length, uint32_t *points) {
  size_t n = 0, in = 0;
  for (size_t i = length; i-- > 0;)
    if (text[i] == '-') {
      for (; n < i; n++)
        points[n] = (unsigned char)text[n];
      in = i + 1;
      break;
    }
  unsigned code = FIRST, index = 0, bias = BIAS;
  while (in < length) {
    unsigned before = index, weight = 1;
    for (unsigned k = BASE;; k += BASE) {
      if (in == length)
        return 0;
      char c = text[in++];
      unsigned digit = puny_digit(c);
      if (digit >= BASE || digit > (0x7fffffff - index) / weight)
        return 0;
      index += digit * weight;
      unsigned t = threshold(k, bias);
      if (digit < t)
        break;
      if (weight > 0x7fffffff / (BASE - t))
        return 0;
      weight *= BASE - t;
    }
    unsigned count = (unsigned)n + 1;
    bias = puny_adapt(index - before, count, before == 0);
    code += index / count;
    index %= count;
    if (code > UTF8_LAST || utf8_is_surrogate(code) || n >= LABEL_BYTES_MAX)
      return 0;
    memmove(points + index + 1, points + index, (n - index) * sizeof *points);
    points[index++] = code;
    n++;
  }
  return n;
}

/* Encodes to `out`, without "xn--". Returns the length; LABEL_BYTES_MAX + 1: too long. */
static size_t puny_encode(const uint32_t *points, size_t n, char *out) {
  size_t length = 0, done = 0;
  for (size_t i = 0; i < n; i++)
    if (points[i] < FIRST && length < LABEL_BYTES_MAX)
      out[length++] = (char)points[i];
  done = length;
  size_t basic = length;
  if (basic)
    out[length++] = '-';
  unsigned code = FIRST, delta = 0, bias = BIAS;
  while (done < n) {
    uint32_t next = UINT32_MAX;
    for (size_t i = 0; i < n; i++)
      if (points[i] >= code && points[i] < next)
        next = points[i];
    delta += (next - code) * ((unsigned)done + 1);
    code = next;
    for (size_t i = 0; i < n; i++) {
      delta += points[i] < code;
      if (points[i] != code)
        continue;
      unsigned q = delta;
      for (unsigned k = BASE;; k += BASE) {
        unsigned t = threshold(k, bias);
        unsigned digit = q < t ? q : t + (q - t) % (BASE - t);
        if (length > LABEL_BYTES_MAX)
          return length;
        out[length++] = (char)(digit < 26 ? 'a' + digit : '0' + digit - 26);
        if (q < t)
          break;
        q = (q - t) / (BASE - t);
      }
      bias = puny_adapt(delta, (unsigned)done + 1, done == basic);
      delta = 0;
      done++;
    }
    delta++;
    code++;
  }
  return length;
}

/* --- labels --- */

/* Holds a name being read: its labels in Unicode, and its length on the wire. */
struct name {
  char text[4 * (HOST_BYTES_MAX + 2)];
  size_t length;
  size_t wire; /* bytes, with a dot counted after each label */
  bool international;
};

static void add_label(struct name *name, const uint32_t *points, size_t n) {
  for (size_t i = 0; i < n; i++)
    name->length += utf8_put(name->text + name->length, points[i]);
  name->text[name->length++] = '.';
}

static bool check_u_label(struct name *name, const uint32_t *points, size_t n) {
  size_t from = name->length;
  name->international = true;
  add_label(name, points, n);
  return engine_match(label_pattern, name->text + from, name->length - from - 1);
}

/* Checks an "xn--..." label: it must decode to a label that encodes to the same again. */
static bool check_a_label(struct name *name, const char *text, size_t length) {
  uint32_t points[LABEL_BYTES_MAX + 2];
  char again[LABEL_BYTES_MAX + 8];
  size_t n = puny_decode(text + 4, length - 4, points);
  if (!n || puny_encode(points, n, again) != length - 4)
    return false;
  for (size_t i = 0; i < length - 4; i++)
    if ((again[i] | 32) != (text[4 + i] | 32))
      return false;
  return check_u_label(name, points, n);
}

static bool check_host_label(struct name *name, const char *text, size_t length) {
  uint32_t points[LABEL_BYTES_MAX + 2];
  char encoded[LABEL_BYTES_MAX + 8];
  size_t n = 0, wire = length;
  bool ascii = true;
  for (size_t i = 0; i < length; n++) {
    if (n >= LABEL_BYTES_MAX)
      return false;
    size_t bytes = utf8_decode(text + i, length - i, &points[n]);
    if (!bytes)
      return false;
    i += bytes;
    ascii = ascii && points[n] < 0x80;
  }
  if (!n)
    return false;
  if (!ascii)
    wire = puny_encode(points, n, encoded) + 4;
  name->wire += wire + 1;
  if (wire > LABEL_BYTES_MAX || name->wire > HOST_BYTES_MAX + 1)
    return false;
  if (!ascii)
    return check_u_label(name, points, n);
  if (text[0] == '-' || text[length - 1] == '-')
    return false;
  for (size_t i = 0; i < length; i++)
    if (!is_alnum(text[i]) && text[i] != '-')
      return false;
  if (length >= 4 && text[2] == '-' && text[3] == '-')
    return (text[0] | 32) == 'x' && (text[1] | 32) == 'n' && check_a_label(name, text, length);
  add_label(name, points, n);
  return true;
}

static bool check_bidi(const struct name *name) {
  if (!name->international || !engine_match(rtl_pattern, name->text, name->length))
    return true;
  for (size_t from = 0, i = 0; i < name->length; i++)
    if (name->text[i] == '.') {
      if (!engine_match(bidi_pattern, name->text + from, i - from))
        return false;
      from = i + 1;
    }
  return true;
}

/* Returns the length of the label separator at `text`, 0 if there is none. */
static size_t separator(const char *text, size_t length, bool international) {
  static const char *const dots[] = {"\xe3\x80\x82", "\xef\xbc\x8e", "\xef\xbd\xa1"};
  if (text[0] == '.')
    return 1;
  for (size_t i = 0; international && length >= 3 && i < sizeof dots / sizeof *dots; i++)
    if (!memcmp(text, dots[i], 3))
      return 3;
  return 0;
}

static bool host(const char *text, size_t length, bool international) {
  struct name name;
  size_t from = 0;
  name.length = name.wire = 0;
  name.international = false;
  if (!length || length > 4 * HOST_BYTES_MAX)
    return false;
  for (size_t i = 0; i < length;) {
    size_t dot = separator(text + i, length - i, international);
    if ((unsigned char)text[i] >= 0x80 && !international)
      return false;
    if (dot) {
      if (!check_host_label(&name, text + from, i - from))
        return false;
      from = i + dot;
    }
    i += dot ? dot : 1;
  }
  return check_host_label(&name, text + from, length - from) && check_bidi(&name);
}

bool schema_check_hostname(const char *text, size_t length) {
  return host(text, length, false);
}

bool schema_check_idn_hostname(const char *text, size_t length) {
  return host(text, length, true);
}
