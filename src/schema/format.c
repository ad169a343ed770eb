/* Checks `format`: dates and times (RFC 3339), network and mail addresses, identifiers. URIs are in
 * schema/format_uri.c, host names in schema/format_host.c. */
#include "schema/format.h"

#include <assert.h>
#include <stdio.h>

bool schema_cursor_digits(struct format_cursor *c, int count, int *value) {
  *value = 0;
  for (int i = 0; i < count; i++, c->p++) {
    if (c->p == c->end || !is_decimal(*c->p))
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
    while (c->p < c->end && is_decimal(*c->p))
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
  while (c->p < c->end && is_decimal(*c->p)) {
    while (c->p < c->end && is_decimal(*c->p))
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

static bool schema_check_ipv4(const char *text, size_t length) {
  struct format_cursor c = {text, text + length};
  for (int i = 0; i < 4; i++) {
    const char *from = c.p;
    int value = 0;
    if (i && !schema_cursor_char(&c, '.'))
      return false;
    from = c.p;
    while (c.p < c.end && is_decimal(*c.p) && c.p - from < 3)
      value = value * 10 + (*c.p++ - '0');
    if (c.p == from || value > 255 || (*from == '0' && c.p - from > 1))
      return false;
  }
  return c.p == c.end;
}

bool schema_check_ipv6(const char *text, size_t length) {
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
  while (n < length && is_decimal(text[n]))
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

static bool atom_char(char c, bool international) {
  return is_alnum(c) || (c && strchr("!#$%&'*+-/=?^_`{|}~", c)) ||
         (international && (unsigned char)c >= 0x80);
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
    if (p[i] == '.' ? i == 0 || i + 1 == n || p[i - 1] == '.' : !atom_char(p[i], international))
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
