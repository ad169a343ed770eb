/* Checks `format`: URIs, host names, dates and times, addresses, identifiers. */
#include "schema/format.h"

#include <assert.h>

/* --- hostname (RFC 1123) and idn-hostname (RFC 5890 to 5893) --- */

/* Checks `format` hostname (RFC 1123) and idn-hostname (RFC 5890 to 5893): labels, punycode,
 * contextual rules.
 *
 * The Unicode tables of the regular expression engine say which characters a label may have. Rules
 * that RFC 5892 derives from NFKC are approximated by leaving out the compatibility blocks, and a
 * joiner's neighbours are judged by their script. */

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
  if (str_is_digit(c))
    return (unsigned)(c - '0') + 26;
  return str_is_letter(c) ? (unsigned)(c | 32) - 'a' : (unsigned)BASE;
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

static bool schema_check_hostname(const char *text, size_t length) {
  return host(text, length, false);
}

static bool schema_check_idn_hostname(const char *text, size_t length) {
  return host(text, length, true);
}

/* --- uri, uri-reference (RFC 3986), iri, iri-reference (RFC 3987), uri-template (RFC 6570) --- */

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

static bool schema_check_ipv4(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  for (int i = 0; i < 4; i++) {
    const char *from = c.p;
    int value = 0;
    if (i && !schema_cursor_char(&c, '.'))
      return false;
    from = c.p;
    while (c.p < c.end && str_is_digit(*c.p) && c.p - from < 3)
      value = value * 10 + (*c.p++ - '0');
    if (c.p == from || value > 255 || (*from == '0' && c.p - from > 1))
      return false;
  }
  return c.p == c.end;
}

static bool schema_check_ipv6(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  int groups = 0;
  bool gap = false;
  if (length >= 2 && text[0] == ':' && text[1] == ':') {
    gap = true;
    c.p += 2;
    if (c.p == c.end)
      return true;
  }
  for (;;) {
    const char *from = c.p;
    while (c.p < c.end && is_hex(*c.p))
      c.p++;
    if (c.p < c.end && *c.p == '.')
      return groups + 2 <= (gap ? 7 : 8) && (gap || groups == 6) &&
             schema_check_ipv4(from, (size_t)(c.end - from));
    if (c.p == from || c.p - from > 4 || ++groups > 8)
      return false;
    if (c.p == c.end)
      return gap ? groups <= 7 : groups == 8;
    if (!schema_cursor_char(&c, ':'))
      return false;
    if (c.p < c.end && *c.p == ':') {
      if (gap)
        return false;
      gap = true;
      c.p++;
      if (c.p == c.end)
        return groups <= 7;
    }
  }
}

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
    if (!str_is_digit(p[i]))
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
         (str_is_letter(p[scheme]) ||
          (scheme && (str_is_digit(p[scheme]) || strchr("+-.", p[scheme])) && p[scheme])))
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

static bool schema_check_uri(const char *text, size_t length) {
  return uri_or_path(text, length, false, true);
}

static bool schema_check_uri_reference(const char *text, size_t length) {
  return uri_or_path(text, length, false, false);
}

static bool schema_check_iri(const char *text, size_t length) {
  return uri_or_path(text, length, true, true);
}

static bool schema_check_iri_reference(const char *text, size_t length) {
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
    while (c->p < c->end && str_is_digit(*c->p) && c->p - digits < 4)
      c->p++;
    return c->p > digits && *digits != '0';
  }
  schema_cursor_char(c, '*');
  return true;
}

static bool schema_check_uri_template(const char *text, size_t length) {
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

/* --- dates and times (RFC 3339), network and mail addresses, identifiers --- */

bool schema_cursor_digits(struct format_cursor *c, int count, int *value) {
  *value = 0;
  for (int i = 0; i < count; i++, c->p++) {
    if (c->p == c->end || !str_is_digit(*c->p))
      return false;
    *value = *value * 10 + (*c->p - '0');
  }
  return true;
}

bool schema_cursor_char(struct format_cursor *c, char wanted) {
  if (c->p == c->end || *c->p != wanted)
    return false;
  c->p++;
  return true;
}

static bool read_date(struct format_cursor *c) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int year, month, day;
  if (!schema_cursor_digits(c, 4, &year) || !schema_cursor_char(c, '-') ||
      !schema_cursor_digits(c, 2, &month) || !schema_cursor_char(c, '-') ||
      !schema_cursor_digits(c, 2, &day))
    return false;
  if (month < 1 || month > 12 || day < 1)
    return false;
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= days[month - 1] + (month == 2 && leap);
}

bool schema_cursor_zone(struct format_cursor *c, int *minutes) {
  int hour, minute, sign = 0;
  *minutes = 0;
  if (schema_cursor_char(c, 'Z') || schema_cursor_char(c, 'z'))
    return true;
  if (schema_cursor_char(c, '+'))
    sign = -1;
  else if (schema_cursor_char(c, '-'))
    sign = 1;
  if (!sign || !schema_cursor_digits(c, 2, &hour) || !schema_cursor_char(c, ':') ||
      !schema_cursor_digits(c, 2, &minute) || hour > 23 || minute > 59)
    return false;
  *minutes = sign * (hour * 60 + minute);
  return true;
}

static bool read_time(struct format_cursor *c) {
  int hour, minute, second, away, unused;
  if (!schema_cursor_digits(c, 2, &hour) || !schema_cursor_char(c, ':') ||
      !schema_cursor_digits(c, 2, &minute) || !schema_cursor_char(c, ':') ||
      !schema_cursor_digits(c, 2, &second))
    return false;
  if (schema_cursor_char(c, '.')) {
    if (!schema_cursor_digits(c, 1, &unused))
      return false;
    while (c->p < c->end && str_is_digit(*c->p))
      c->p++;
  }
  if (!schema_cursor_zone(c, &away))
    return false;
  if (hour > 23 || minute > 59 || second > 60)
    return false;
  int utc = (hour * 60 + minute + away + 2 * 1440) % 1440;
  return second < 60 || utc == 1439; /* a leap second is the last second of a UTC day */
}

static bool check_date(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  return read_date(&c) && c.p == c.end;
}

static bool check_time(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  return read_time(&c) && c.p == c.end;
}

static bool check_date_time(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  return read_date(&c) && (schema_cursor_char(&c, 'T') || schema_cursor_char(&c, 't')) &&
         read_time(&c) && c.p == c.end;
}

/* Reads numbers with units in the order of `units`; no unit between two present ones may be missing
 * (RFC 3339, appendix A). */
static bool read_units(struct format_cursor *c, const char *units) {
  const char *last = NULL;
  while (c->p < c->end && str_is_digit(*c->p)) {
    while (c->p < c->end && str_is_digit(*c->p))
      c->p++;
    const char *unit = c->p < c->end ? strchr(units, *c->p) : NULL;
    if (!unit || !*unit || (last && unit != last + 1))
      return false;
    last = unit;
    c->p++;
  }
  return last != NULL;
}

static bool check_duration(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  if (!schema_cursor_char(&c, 'P') || c.p == c.end)
    return false;
  if (c.end[-1] == 'W')
    return read_units(&c, "W") && c.p == c.end;
  if (*c.p != 'T' && !read_units(&c, "YMD"))
    return false;
  if (schema_cursor_char(&c, 'T') && !read_units(&c, "HMS"))
    return false;
  return c.p == c.end;
}

static bool check_uuid(const char *text, size_t length) {
  if (length != 36)
    return false;
  for (size_t i = 0; i < length; i++) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex(text[i]))
      return false;
  }
  return true;
}

static bool check_json_pointer(const char *text, size_t length) {
  if (length && text[0] != '/')
    return false;
  for (size_t i = 0; i < length; i++)
    if (text[i] == '~' && (i + 1 == length || (text[i + 1] != '0' && text[i + 1] != '1')))
      return false;
  return true;
}

static bool check_relative_json_pointer(const char *text, size_t length) {
  size_t n = 0;
  while (n < length && str_is_digit(text[n]))
    n++;
  if (!n || (text[0] == '0' && n > 1))
    return false;
  return (n + 1 == length && text[n] == '#') || check_json_pointer(text + n, length - n);
}

static bool check_regex(const char *text, size_t length) {
  struct pattern *pattern;
  bool ok = pattern_compile(text, length, &pattern, NULL) == PATTERN_OK;
  pattern_free(pattern);
  return ok;
}

/* Checks the part before the last @: a dot-atom or a quoted string (RFC 5321 4.1.2). */
static bool mail_local(const char *p, size_t n, bool international) {
  if (!n || n > 64)
    return false;
  if (p[0] == '"') {
    if (n < 2 || p[n - 1] != '"')
      return false;
    for (size_t i = 1; i + 1 < n; i++) {
      unsigned char c = (unsigned char)p[i];
      if (c == '\\' && ++i + 1 >= n)
        return false;
      if (c == '"' || c < 0x20 || c == 0x7f || (c >= 0x80 && !international))
        return false;
    }
    return true;
  }
  for (size_t i = 0; i < n; i++) {
    bool atom = is_alnum(p[i]) || (p[i] && strchr("!#$%&'*+-/=?^_`{|}~", p[i])) ||
                (international && (unsigned char)p[i] >= 0x80);
    if (p[i] == '.' ? i == 0 || i + 1 == n || p[i - 1] == '.' : !atom)
      return false;
  }
  return true;
}

static bool mail(const char *text, size_t length, bool international) {
  const char *at = NULL;
  for (size_t i = 0; i < length; i++)
    if (text[i] == '@')
      at = text + i;
  if (!at || !mail_local(text, (size_t)(at - text), international))
    return false;
  const char *domain = at + 1;
  size_t n = (size_t)(text + length - domain);
  if (n > 2 && domain[0] == '[' && domain[n - 1] == ']') {
    if (n > 7 && !strncmp(domain, LIT("[IPv6:")))
      return schema_check_ipv6(domain + 6, n - 7);
    return schema_check_ipv4(domain + 1, n - 2);
  }
  return international ? schema_check_idn_hostname(domain, n) : schema_check_hostname(domain, n);
}

static bool check_email(const char *text, size_t length) {
  return mail(text, length, false);
}

static bool check_idn_email(const char *text, size_t length) {
  return mail(text, length, true);
}

static const struct format {
  const char *name;
  format_check check;
  const char *form; /* what to write, for a message */
} formats[] = {
    {"date", check_date, "YYYY-MM-DD, a day that exists"},
    {"date-time", check_date_time, "YYYY-MM-DDThh:mm:ss, then Z or an offset such as +09:00"},
    {"duration", check_duration, "such as P1DT12H30M"},
    {"email", check_email, "such as name@example.org"},
    {"hostname", schema_check_hostname, "such as www.example.org"},
    {"idn-email", check_idn_email, "such as name@example.org"},
    {"idn-hostname", schema_check_idn_hostname, "such as www.example.org"},
    {"ipv4", schema_check_ipv4, "four numbers up to 255, such as 192.0.2.1"},
    {"ipv6", schema_check_ipv6, "such as 2001:db8::1"},
    {"iri", schema_check_iri, "with its scheme, such as https://example.org/a"},
    {"iri-reference", schema_check_iri_reference, "such as https://example.org/a or ../a"},
    {"json-pointer", check_json_pointer, "empty, or such as /items/0"},
    {"regex", check_regex, "as ECMA-262 has it"},
    {"relative-json-pointer", check_relative_json_pointer, "such as 1/items"},
    {"time", check_time, "hh:mm:ss, then Z or an offset such as +09:00"},
    {"uri", schema_check_uri, "with its scheme, such as https://example.org/a"},
    {"uri-reference", schema_check_uri_reference, "such as https://example.org/a or ../a"},
    {"uri-template", schema_check_uri_template, "such as https://example.org/{name}"},
    {"uuid", check_uuid, "8-4-4-4-12 hexadecimal digits"},
};

static const struct format *format_named(const char *name) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (!strcmp(name, formats[i].name))
      return &formats[i];
  return NULL;
}

format_check schema_format_find(const char *name) {
  const struct format *format = format_named(name);
  return format ? format->check : NULL;
}

const char *schema_format_form(const char *name) {
  const struct format *format = format_named(name);
  assert(format);
  return format->form;
}

bool schema_format_known(const char *format) {
  return schema_format_find(format) != NULL;
}
