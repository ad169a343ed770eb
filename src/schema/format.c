/* Checks `format`: URIs, host names, dates and times, addresses, identifiers. */
#include "schema/format.h"

#include <assert.h>
#include <stdatomic.h>

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
#define LABEL_PATTERN                                                                              \
  "^(?!\\p{M})(?!-)(?!.*-$)(?!..--)"                                                               \
  "(?:(?!.*\\x{30fb})|(?=.*[\\p{sc:Hiragana}\\p{sc:Katakana}\\p{sc:Han}]))"                        \
  "(?!.*[\\x{660}-\\x{669}].*[\\x{6f0}-\\x{6f9}])"                                                 \
  "(?!.*[\\x{6f0}-\\x{6f9}].*[\\x{660}-\\x{669}])"                                                 \
  "(?:(?![\\x{640}\\x{7fa}\\x{302e}\\x{302f}\\x{3031}-\\x{3035}\\x{303b}\\x{1100}-\\x{11ff}"       \
  "\\x{f900}-\\x{faff}\\x{fb00}-\\x{fdff}\\x{fe00}-\\x{fe1f}\\x{fe30}-\\x{ffef}])"                 \
  "[-a-zA-Z\\p{Ll}\\p{Lo}\\p{Lm}\\p{Mn}\\p{Mc}\\p{Nd}\\x{6fd}\\x{6fe}\\x{f0b}\\x{3007}]"           \
  "|(?<=l)\\x{b7}(?=l)|\\x{375}(?=\\p{sc:Greek})|(?<=\\p{sc:Hebrew})[\\x{5f3}\\x{5f4}]"            \
  "|(?<=" VIRAMA ")[\\x{200c}\\x{200d}]|(?<=\\p{Arabic})\\x{200c}(?=\\p{Arabic})"                  \
  "|\\x{30fb})+$"

/* Finds right-to-left characters: RFC 5893 restricts labels of names that have some. */
#define RTL_PATTERN "[\\p{bc:R}\\p{bc:AL}\\p{bc:AN}]"
#define BIDI_PATTERN                                                                               \
  "^(?:(?!.*\\p{bc:EN}.*\\p{bc:AN})(?!.*\\p{bc:AN}.*\\p{bc:EN})[\\p{bc:R}\\p{bc:AL}]"              \
  "(?:[\\p{bc:R}\\p{bc:AL}\\p{bc:AN}\\p{bc:EN}\\p{bc:ES}\\p{bc:CS}\\p{bc:ET}\\p{bc:ON}\\p{bc:BN}"  \
  "\\p{bc:NSM}]*[\\p{bc:R}\\p{bc:AL}\\p{bc:EN}\\p{bc:AN}])?"                                       \
  "|\\p{bc:L}(?:[\\p{bc:L}\\p{bc:EN}\\p{bc:ES}\\p{bc:CS}\\p{bc:ET}\\p{bc:ON}\\p{bc:BN}\\p{bc:NSM}" \
  "]*"                                                                                             \
  "[\\p{bc:L}\\p{bc:EN}])?)\\p{bc:NSM}*$"

/* Matches all of a text, in PCRE2's syntax. It is compiled when it is first asked for, and kept. */
struct own_pattern {
  const char *text;
  struct pattern *_Atomic compiled;
};

static struct own_pattern label_form = {.text = LABEL_PATTERN}, rtl_form = {.text = RTL_PATTERN},
                          bidi_form = {.text = BIDI_PATTERN};

static bool own_match(struct own_pattern *own, const char *text, size_t length) {
  struct pattern *compiled = atomic_load(&own->compiled), *others = NULL;
  AUTO(pattern_scratch_deinit) struct pattern_scratch scratch = {0};
  if (!compiled) {
    enum pattern_status status = pattern_compile_engine(own->text, strlen(own->text), &compiled);
    assert(status == PATTERN_OK);
    pattern_speed_up(compiled);
    if (!atomic_compare_exchange_strong(&own->compiled, &others, compiled)) {
      pattern_free(compiled); /* another thread was first */
      compiled = others;
    }
  }
  return pattern_match(compiled, &scratch, text, length) != PATTERN_NO_MATCH;
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
  return own_match(&label_form, name->text + from, name->length - from - 1);
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
    if (!str_is_letter(text[i]) && !str_is_digit(text[i]) && text[i] != '-')
      return false;
  if (length >= 4 && text[2] == '-' && text[3] == '-')
    return (text[0] | 32) == 'x' && (text[1] | 32) == 'n' && check_a_label(name, text, length);
  add_label(name, points, n);
  return true;
}

static bool check_bidi(const struct name *name) {
  if (!name->international || !own_match(&rtl_form, name->text, name->length))
    return true;
  for (size_t from = 0, i = 0; i < name->length; i++)
    if (name->text[i] == '.') {
      if (!own_match(&bidi_form, name->text + from, i - from))
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

/* --- dates and times (RFC 3339) --- */

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
  if (!schema_cursor_zone(c, &away) || hour > 23 || minute > 59 || second > 60)
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

static bool check_regex(const char *text, size_t length) {
  struct pattern *pattern;
  bool ok = pattern_compile(text, length, &pattern, NULL) == PATTERN_OK;
  pattern_free(pattern);
  return ok;
}

/* --- forms: of a mail address (RFC 5321), a URI (RFC 3986), an IRI (RFC 3987) ... --- */

/* X is what else a character may be. Nothing that was taken is given back: a long text costs no
 * more than its length. */
#define BEYOND       "\\x{80}-\\x{10ffff}"
#define HEX          "[0-9A-Fa-f]"
#define ESCAPED      "%" HEX HEX
#define ALL_OF(X)    "(?:[A-Za-z0-9._~!$&'()*+,;=" X "-]++|" ESCAPED ")*+"
#define IP_FUTURE    "[vV]" HEX "++\\.[A-Za-z0-9._~!$&'()*+,;=:-]++"
#define HOST(X)      "(?:\\[(?:" FORMAT_IPV6 "|" IP_FUTURE ")\\]|" ALL_OF(X) ")"
#define AUTHORITY(X) "//(?:" ALL_OF(":" X) "@)?" HOST(X) "(?::\\d*+)?(?![^/?#])"
#define HIERARCHY(X) "(?:" AUTHORITY(X) "|(?!//))" ALL_OF(":@/" X)
#define TAIL(X)      "(?:\\?" ALL_OF(":@/?" X) ")?(?:#" ALL_OF(":@/?" X) ")?$"
#define SCHEME       "[A-Za-z][A-Za-z0-9+.-]*+:"
#define URI(X)       "^" SCHEME HIERARCHY(X) TAIL(X)
/* The first step of a relative path has no colon. */
#define REFERENCE(X) "^(?:" SCHEME "|(?=//)|(?![^/?#:]*+:))" HIERARCHY(X) TAIL(X)
#define VARIABLE     "(?:\\w|" ESCAPED ")++(?:\\.(?:\\w|" ESCAPED ")++)*+(?::[1-9]\\d{0,3}|\\*)?"
#define TEMPLATE                                                                                   \
  "^(?:[^\\x00-\\x20\\x7f\"<>\\\\^`{}|%]++|" ESCAPED "|\\{[+#./;?&=,!@|]?" VARIABLE                \
  "(?:," VARIABLE ")*+\\})*+$"
#define UNITS(A, B, C)                                                                             \
  "(?:\\d++" A "(?:\\d++" B "(?:\\d++" C ")?)?|\\d++" B "(?:\\d++" C ")?|\\d++" C ")"
#define CLOCK    "T" UNITS("H", "M", "S")
#define DURATION "^P(?:\\d++W|" UNITS("Y", "M", "D") "(?:" CLOCK ")?|" CLOCK ")$"
#define POINTER  "(?:/(?:[^/~]++|~[01])*+)*+$"
#define ATOM(X)  "[A-Za-z0-9!#$%&'*+/=?^_`{|}~" X "-]++"
/* The part before the last @: atoms, or a quoted string. */
#define MAILBOX(X)                                                                                 \
  "^(?:" ATOM(X) "(?:\\." ATOM(X) ")*+|\"(?:[ !#-\\[\\]-~" X "]|\\\\[\\x00-\\x7f" X "])*+\")$"

static bool mail(const char *text, size_t length, bool international) {
  static struct own_pattern mailbox = {.text = MAILBOX("")},
                            international_mailbox = {.text = MAILBOX(BEYOND)},
                            address = {.text = "^\\[(?:IPv6:" FORMAT_IPV6 "|" FORMAT_IPV4 ")\\]$"};
  const char *at = length ? memrchr(text, '@', length) : NULL;
  size_t local = at ? (size_t)(at - text) : 0, n = length - local - 1;
  return at && local <= 64 &&
         own_match(international ? &international_mailbox : &mailbox, text, local) &&
         (own_match(&address, at + 1, n) || host(at + 1, n, international));
}

static bool check_email(const char *text, size_t length) {
  return mail(text, length, false);
}

static bool check_idn_email(const char *text, size_t length) {
  return mail(text, length, true);
}

static struct format {
  const char *name;
  const char *form;                               /* what to write, for a message */
  bool (*check)(const char *text, size_t length); /* NULL: all is in the pattern */
  struct own_pattern pattern;
} formats[] = {
    {"date", "YYYY-MM-DD, a day that exists", check_date, {0}},
    {"date-time", "YYYY-MM-DDThh:mm:ss, then Z or an offset such as +09:00", check_date_time, {0}},
    {"duration", "such as P1DT12H30M", NULL, {DURATION, NULL}},
    {"email", "such as name@example.org", check_email, {0}},
    {"hostname", "such as www.example.org", schema_check_hostname, {0}},
    {"idn-email", "such as name@example.org", check_idn_email, {0}},
    {"idn-hostname", "such as www.example.org", schema_check_idn_hostname, {0}},
    {"ipv4", "four numbers up to 255, such as 192.0.2.1", NULL, {"^" FORMAT_IPV4 "$", NULL}},
    {"ipv6", "such as 2001:db8::1", NULL, {"^" FORMAT_IPV6 "$", NULL}},
    {"iri", "with its scheme, such as https://example.org/a", NULL, {URI(BEYOND), NULL}},
    {"iri-reference", "such as https://example.org/a or ../a", NULL, {REFERENCE(BEYOND), NULL}},
    {"json-pointer", "empty, or such as /items/0", NULL, {"^" POINTER, NULL}},
    {"regex", "as ECMA-262 has it", check_regex, {0}},
    {"relative-json-pointer",
     "such as 1/items",
     NULL,
     {"^(?:0|[1-9]\\d*+)(?:#$|" POINTER ")", NULL}},
    {"time", "hh:mm:ss, then Z or an offset such as +09:00", check_time, {0}},
    {"uri", "with its scheme, such as https://example.org/a", NULL, {URI(""), NULL}},
    {"uri-reference", "such as https://example.org/a or ../a", NULL, {REFERENCE(""), NULL}},
    {"uri-template", "such as https://example.org/{name}", NULL, {TEMPLATE, NULL}},
    {"uuid",
     "8-4-4-4-12 hexadecimal digits",
     NULL,
     {"^" HEX "{8}(?:-" HEX "{4}){3}-" HEX "{12}$", NULL}},
};

struct format *schema_format_find(const char *name) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (!strcmp(name, formats[i].name))
      return &formats[i];
  return NULL;
}

bool schema_format_valid(struct format *format, const char *text, size_t length) {
  return format->check ? format->check(text, length) : own_match(&format->pattern, text, length);
}

const char *schema_format_form(const struct format *format) {
  return format->form;
}

bool schema_format_known(const char *format) {
  return schema_format_find(format) != NULL;
}
