/* Reads moments and durations as vendors, clients and gateways write them. */
#include "provider/moment.h"

#include "base/err.h"
#include "base/file.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { ZONE_FILE_BYTES = 64 * 1024, DAY_S = 24 * 60 * 60 };

/* --- zones: files of tzdata (RFC 8536), whose transitions reach far into the future --- */

static int64_t big_endian(const char *p, size_t n) {
  uint64_t value = n == 8 || !((unsigned char)p[0] & 0x80) ? 0 : ~(uint64_t)0;
  for (size_t i = 0; i < n; i++)
    value = value << 8 | (unsigned char)p[i];
  return (int64_t)value;
}

enum { ZONE_HEAD = 44, ZONE_TYPE = 6 };
struct zone_counts {
  size_t utc, standard, leaps, times, types, chars;
};

static bool zone_head(struct str data, struct zone_counts *c) {
  size_t *out[] = {&c->utc, &c->standard, &c->leaps, &c->times, &c->types, &c->chars};
  if (data.n < ZONE_HEAD || memcmp(data.p, LIT("TZif")) != 0)
    return false;
  for (size_t i = 0; i < 6; i++) {
    int64_t n = big_endian(data.p + 20 + 4 * i, 4);
    if (n < 0 || n > ZONE_FILE_BYTES)
      return false;
    *out[i] = (size_t)n;
  }
  return true;
}

static size_t zone_size(const struct zone_counts *c, size_t time_bytes) {
  return ZONE_HEAD + c->times * (time_bytes + 1) + c->types * ZONE_TYPE + c->chars +
         c->leaps * (time_bytes + 4) + c->standard + c->utc;
}

/* Reads the seconds east of UTC at that moment. Returns false if the data does not tell. */
static bool zone_offset(struct str data, int64_t at_s, int64_t *out) {
  struct zone_counts c;
  if (!zone_head(data, &c) || zone_size(&c, 4) > data.n || data.p[4] < '2')
    return false;
  data = (struct str){data.p + zone_size(&c, 4), data.n - zone_size(&c, 4)};
  if (!zone_head(data, &c) || zone_size(&c, 8) > data.n || c.types == 0)
    return false;
  const char *times = data.p + ZONE_HEAD, *kinds = times + 8 * c.times, *types = kinds + c.times;
  size_t kind = 0;
  for (size_t i = 0; i < c.times && big_endian(times + 8 * i, 8) <= at_s; i++)
    kind = (unsigned char)kinds[i];
  if (kind >= c.types)
    return false;
  *out = big_endian(types + ZONE_TYPE * kind, 4);
  return true;
}

static bool read_zone(struct str name, struct buf *out) {
  char path[128];
  struct err err;
  if (name.n == 0 || name.n >= 64 || !isalpha((unsigned char)name.p[0]) ||
      str_span(name, "_+-/") != name.n)
    return false;
  print_into(path, sizeof path, "/usr/share/zoneinfo/" STR_FMT, STR_ARG(name));
  return file_read(path, ZONE_FILE_BYTES, out, &err);
}

/* --- words --- */

static void skip(struct str *c) {
  while (c->n > 0 && (c->p[0] == ' ' || c->p[0] == ','))
    *c = (struct str){c->p + 1, c->n - 1};
}

static bool take_word(struct str *c, const char *word) {
  skip(c);
  bool found = str_starts_fold(*c, word);
  if (found)
    *c = (struct str){c->p + strlen(word), c->n - strlen(word)};
  return found;
}

static bool take_number(struct str *c, int most, int *out) {
  int value = 0;
  size_t n = 0;
  skip(c);
  while (n < c->n && n < 4 && isdigit((unsigned char)c->p[n]))
    value = value * 10 + (c->p[n++] - '0');
  if (n == 0 || value > most)
    return false;
  *c = (struct str){c->p + n, c->n - n};
  *out = value;
  return true;
}

/* Takes the name that comes next, by its first three letters, with the rest of its word. */
static int take_name(struct str *c, const char *const *names, int count) {
  for (int i = 0; i < count; i++)
    if (take_word(c, names[i])) {
      while (c->n > 0 && isalpha((unsigned char)c->p[0]))
        *c = (struct str){c->p + 1, c->n - 1};
      return i;
    }
  return -1;
}

struct moment {
  int year, month, day, weekday; /* -1: not named */
  int later;                     /* days: 1 for tomorrow; -1: not named */
  int hour, minute, second;
};

/* Takes "p.m." or "PM". */
static bool take_half(struct str *c, char half) {
  const char plain[] = {half, 'm', '\0'}, dotted[] = {half, '.', 'm', '.', '\0'};
  return take_word(c, dotted) || take_word(c, plain);
}

/* Takes a time of day: "3pm", "2:30pm", "3:05 PM", "15:00", "15:00:30", "noon". */
static bool take_time(struct str *c, struct moment *m) {
  struct str start = *c;
  bool exact = false;
  if (take_word(c, "noon") || take_word(c, "midnight")) {
    m->hour = start.n - c->n > strlen(" noon") ? 24 : 12;
    return true;
  }
  if (!take_number(c, 23, &m->hour))
    return false;
  if (c->n > 0 && c->p[0] == ':') {
    *c = (struct str){c->p + 1, c->n - 1};
    exact = take_number(c, 59, &m->minute);
    if (exact && c->n > 0 && c->p[0] == ':') {
      *c = (struct str){c->p + 1, c->n - 1};
      exact = take_number(c, 60, &m->second);
    }
  }
  bool pm = take_half(c, 'p');
  if ((pm || take_half(c, 'a')) && m->hour >= 1 && m->hour <= 12) {
    m->hour = m->hour % 12 + (pm ? 12 : 0);
    return true;
  }
  if (!exact)
    *c = start;
  return exact;
}

/* Takes a day: "25" or "25th", but not the hour of "3pm" or "15:00". */
static bool take_day(struct str *c, struct moment *m) {
  static const char *const endings[] = {"st", "nd", "rd", "th"};
  struct str start = *c;
  int day;
  if (!take_number(c, 31, &day) || day == 0)
    return false;
  bool ends = false;
  for (size_t i = 0; i < ARRAY_LEN(endings) && !ends; i++)
    ends = c->n > 0 && isalpha((unsigned char)c->p[0]) && take_word(c, endings[i]);
  if (!ends && c->n > 0 && c->p[0] != ' ' && c->p[0] != ',') {
    *c = start;
    return false;
  }
  m->day = day;
  return true;
}

/* Takes "2026-11-25", with a T or a space behind. */
static bool take_iso_date(struct str *c, struct moment *m) {
  struct str start = *c;
  int year, month, day;
  if (take_number(c, 9999, &year) && year >= 2000 && take_word(c, "-") &&
      take_number(c, 12, &month) && month > 0 && take_word(c, "-") && take_number(c, 31, &day) &&
      day > 0) {
    *m = (struct moment){.year = year, .month = month - 1, .day = day, .weekday = -1, .later = -1};
    (void)take_word(c, "T");
    return true;
  }
  *c = start;
  return false;
}

/* Takes a date: "Nov 25", "Nov 25th, 2026", "25 Nov 2026". */
static bool take_date(struct str *c, struct moment *m) {
  static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                       "jul", "aug", "sep", "oct", "nov", "dec"};
  struct str start = *c;
  bool first = take_day(c, m);
  m->month = take_name(c, months, 12);
  if (m->month >= 0 && (first || take_day(c, m))) {
    struct str before = *c;
    int year;
    if (take_number(c, 9999, &year) && year >= 2000)
      m->year = year;
    else
      *c = before;
    return true;
  }
  *c = start;
  bool named = m->month >= 0;
  m->month = m->day = -1;
  return !named; /* a month without a day is no date */
}

/* Takes a moment: "Nov 25 at 3pm", "Monday 12:00 AM", "tomorrow, 3pm", "3pm". Returns false if no
 * time is named. */
static bool take_moment(struct str *c, struct moment *m) {
  static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  *m = (struct moment){.year = -1, .month = -1, .day = -1, .weekday = -1, .later = -1};
  (void)(take_word(c, "at ") || take_word(c, "on "));
  if (!take_iso_date(c, m)) {
    if (take_word(c, "today"))
      m->later = 0;
    else if (take_word(c, "tomorrow"))
      m->later = 1;
    m->weekday = take_name(c, days, 7);
    if (!take_date(c, m))
      return false;
  }
  (void)take_word(c, "at ");
  return take_time(c, m) || m->month >= 0 || m->weekday >= 0;
}

/* Takes the unit of a duration, a whole word, and returns its milliseconds; 0: it is none. */
static double take_unit(struct str *c) {
  static const struct {
    const char *names;
    double ms;
  } units[] = {{"ms msec msecs millisecond milliseconds", 1},
               {"s sec secs second seconds", 1e3},
               {"m min mins minute minutes", 6e4},
               {"h hr hrs hour hours", 36e5},
               {"d day days", 864e5},
               {"w week weeks", 6048e5}};
  struct str word = *c;
  word.n = 0;
  while (word.n < c->n && isalpha((unsigned char)c->p[word.n]))
    word.n++;
  char folded[16] = "";
  for (size_t i = 0; i < word.n && word.n < sizeof folded; i++)
    folded[i] = str_lower(word.p[i]);
  for (size_t i = 0; i < ARRAY_LEN(units); i++)
    if (word.n > 0 && str_among(str_from(folded), units[i].names)) {
      *c = (struct str){c->p + word.n, c->n - word.n};
      return units[i].ms;
    }
  return 0;
}

/* Takes one number of a duration with its unit: "1.2s", "4 hours", "an hour". */
static bool take_part(struct str *c, double *sum_ms) {
  struct str at = *c;
  char digits[24];
  size_t n = 0;
  skip(&at);
  while (n < at.n && n + 1 < sizeof digits &&
         (isdigit((unsigned char)at.p[n]) || (n > 0 && at.p[n] == '.'))) {
    digits[n] = at.p[n];
    n++;
  }
  digits[n] = '\0';
  at = (struct str){at.p + n, at.n - n};
  double value = strtod(digits, NULL);
  if (n == 0 && (take_word(&at, "an ") || take_word(&at, "a ") || take_word(&at, "one ")))
    n = 1, value = 1;
  while (at.n > 0 && at.p[0] == ' ')
    at = (struct str){at.p + 1, at.n - 1};
  double unit_ms = n > 0 ? take_unit(&at) : 0;
  if (unit_ms > 0)
    *c = at;
  *sum_ms += value * unit_ms;
  return unit_ms > 0;
}

/* Takes a duration such as "3 days, 4 hours and 12 minutes", "2h 5m" or "3h5m0.2s" and returns
 * milliseconds, rounded up, since it is useless to come back too early; 0: there is none. */
static int64_t take_duration(struct str *c) {
  double sum_ms = 0;
  while (take_part(c, &sum_ms))
    (void)take_word(c, "and ");
  return sum_ms < 1e13 ? (int64_t)ceil(sum_ms) : 0;
}

/* --- a moment in a zone --- */

struct zone {
  bool fixed;      /* `offset` counts; else `data` does */
  int64_t offset;  /* seconds east of UTC */
  struct str data; /* tzdata's rules; n 0: the local zone */
};

static bool zone_offset_at(const struct zone *zone, int64_t at_s, int64_t *out) {
  *out = zone->offset;
  return zone->fixed || zone_offset(zone->data, at_s, out);
}

static int64_t to_utc(const struct zone *zone, struct tm *tm) {
  if (!zone->fixed && zone->data.n == 0) {
    tm->tm_isdst = -1;
    return mktime(tm);
  }
  int64_t wall = timegm(tm), offset = 0;
  for (int i = 0; i < 2 && zone_offset_at(zone, wall - offset, &offset); i++)
    ;
  return wall - offset;
}

static int64_t resolve(const struct moment *m, const struct zone *zone, int64_t now_s) {
  struct tm now = {0}, at;
  int64_t offset = 0;
  time_t local = (time_t)now_s;
  if (!zone->fixed && zone->data.n == 0) {
    (void)localtime_r(&local, &now);
  } else {
    if (!zone_offset_at(zone, now_s, &offset))
      return 0;
    local += (time_t)offset;
    (void)gmtime_r(&local, &now);
  }
  at = (struct tm){.tm_year = m->year >= 0 ? m->year - 1900 : now.tm_year,
                   .tm_mon = m->month >= 0 ? m->month : now.tm_mon,
                   .tm_mday = m->month >= 0 ? m->day : now.tm_mday,
                   .tm_hour = m->hour,
                   .tm_min = m->minute,
                   .tm_sec = m->second};
  if (m->month < 0 && m->later >= 0)
    at.tm_mday += m->later;
  else if (m->month < 0 && m->weekday >= 0)
    at.tm_mday += (m->weekday - now.tm_wday + 7) % 7;
  struct tm asked = at;
  int64_t utc = to_utc(zone, &at);
  if (m->month >= 0 && at.tm_mday != asked.tm_mday && m->hour < 24)
    return 0; /* there is no such day */
  if (utc > now_s || m->year >= 0 || m->later >= 0)
    return utc;
  if (m->month >= 0) /* in December they name days of January, but never one that is just over */
    asked.tm_year += utc < now_s - 30 * DAY_S;
  else
    asked.tm_mday += m->weekday >= 0 ? 7 : 1;
  return to_utc(zone, &asked);
}

/* Finds a zone that clients name without a place. Ambiguous ones are left out, except those of the
 * USA. */
static bool zone_named(struct str name, struct zone *zone) {
  static const struct {
    const char *name;
    int hours;
  } zones[] = {{"UTC", 0},  {"GMT", 0},  {"Z", 0},    {"EST", -5}, {"EDT", -4},
               {"CST", -6}, {"CDT", -5}, {"MST", -7}, {"MDT", -6}, {"PST", -8},
               {"PDT", -7}, {"CET", 1},  {"CEST", 2}, {"JST", 9},  {"KST", 9}};
  for (size_t i = 0; i < ARRAY_LEN(zones); i++)
    if (str_eq_fold(name, zones[i].name)) {
      *zone = (struct zone){.fixed = true, .offset = zones[i].hours * INT64_C(3600)};
      return true;
    }
  return false;
}

/* Takes an offset: "+9", "-08:00", "+0530". */
static bool take_offset(struct str *c, struct zone *zone) {
  struct str start = *c;
  int hours, minutes = 0;
  if (c->n == 0 || (c->p[0] != '+' && c->p[0] != '-'))
    return false;
  int sign = c->p[0] == '-' ? -1 : 1;
  *c = (struct str){c->p + 1, c->n - 1};
  bool ok = c->n > 0 && c->p[0] != ' ' && take_number(c, 1400, &hours);
  if (ok && hours > 14) {
    minutes = hours % 100;
    hours /= 100;
  } else if (ok && take_word(c, ":")) {
    ok = take_number(c, 59, &minutes);
  }
  if (!ok) {
    *c = start;
    return false;
  }
  *zone = (struct zone){.fixed = true, .offset = sign * (hours * INT64_C(3600) + minutes * 60)};
  return true;
}

/* Takes the zone behind a time: "(Asia/Tokyo)", "(UTC+9)", "PST", "Z", "+09:00"; without one it is
 * the local zone. Returns false if it names an unknown one. The caller owns `data`. */
static bool take_zone(struct str *c, struct buf *data, struct zone *zone) {
  *zone = (struct zone){.data = STR("")};
  if (take_offset(c, zone))
    return true;
  bool quoted = take_word(c, "(");
  size_t n = 0;
  skip(c);
  while (n < c->n && isalpha((unsigned char)c->p[n]))
    n++;
  struct str name = {c->p, n};
  struct str behind = {c->p + n, c->n - n};
  if (zone_named(name, zone)) {
    struct zone moved;
    if (take_offset(&behind, &moved))
      *zone = moved;
    return true;
  }
  if (!quoted)
    return true; /* it is a word of the sentence */
  const char *end = memchr(c->p, ')', c->n);
  name.n = end ? (size_t)(end - c->p) : 0;
  bool known = read_zone(name, data);
  zone->data = buf_view(data);
  return known;
}

/* Returns the milliseconds until the moment that begins here, or of the duration; 0: none does. */
static int64_t moment_at(struct str c, int64_t now_ms, bool bare) {
  static const char *const fillers[] = {"your ",     "access ",
                                        "will ",     "be ",
                                        "is ",       "it ",
                                        "again ",    "usage ",
                                        "limit ",    "limits ",
                                        "on ",       "in ",
                                        "by ",       "after ",
                                        "within ",   "until ",
                                        "before ",   "for ",
                                        "about ",    "at ",
                                        "around ",   "approximately ",
                                        "next ",     "available ",
                                        "quota ",    "the ",
                                        "restored ", ":",
                                        "=",         "\""};
  struct moment m;
  struct zone zone;
  buf_auto_t data = {0};
  for (size_t i = 0; i < ARRAY_LEN(fillers); i++)
    if (take_word(&c, fillers[i])) {
      bare |= strchr(":=", fillers[i][0]) != NULL;
      i = SIZE_MAX; /* from the first again */
    }
  struct str at = c;
  int64_t left = take_duration(&at);
  if (left > 0)
    return left;
  if (bare && c.n > 0 && isdigit((unsigned char)c.p[0])) {
    struct str number = {c.p, 0};
    while (number.n < c.n && (isdigit((unsigned char)c.p[number.n]) || c.p[number.n] == '.'))
      number.n++;
    if (number.n == c.n || !strchr(":-/apAPT", c.p[number.n]))
      return moment_of_value(number, now_ms);
  }
  if (!take_moment(&c, &m) || !take_zone(&c, &data, &zone))
    return 0;
  int64_t at_s = resolve(&m, &zone, now_ms / 1000);
  return at_s > 0 ? at_s * 1000 - now_ms : 0;
}

static int64_t moment_bounded(int64_t ms) {
  return ms > 0 && ms < 366ll * DAY_S * 1000 ? ms : 0;
}

int64_t moment_of_value(struct str value, int64_t now_ms) {
  enum { SOME_EPOCH_S = 1000000000 }; /* 2001: anything less is a duration */
  char text[64];
  struct tm tm = {0};
  value = str_trim(value);
  if (value.n == 0 || value.n >= sizeof text)
    return 0;
  memcpy(text, value.p, value.n);
  text[value.n] = '\0';
  char *end;
  double n = strtod(text, &end);
  if (end != text && *end == '\0') {
    if (!(n > 0 && n < 1e17))
      return 0;
    double ms = n >= 1e3 * SOME_EPOCH_S ? n : n * 1000;
    return moment_bounded((int64_t)ceil(n >= SOME_EPOCH_S ? ms - (double)now_ms : ms));
  }
  const char *rest = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm); /* RFC 9110 */
  if (rest != NULL && *rest == '\0')
    return moment_bounded((int64_t)timegm(&tm) * 1000 - now_ms);
  return moment_bounded(moment_at(value, now_ms, false));
}

int64_t moment_in_text(struct str text, int64_t now_ms) {
  /* A moment stands behind these, or behind a word that begins so. */
  static const char *const heads[] = {"reset", "try again", "retry",     "regain", "available",
                                      "renew", "refresh",   "replenish", "refill", "wait",
                                      "until", "come back", "restored",  "resume"};
  int64_t ms = 0;
  const char *bar = memrchr(text.p ? text.p : "", '|', text.n);
  for (size_t i = 0; i < ARRAY_LEN(heads) && ms == 0; i++) {
    size_t n = strlen(heads[i]);
    for (size_t k = 0; k + n < text.n && ms == 0; k++) {
      if (strncasecmp(text.p + k, heads[i], n) != 0 ||
          (k > 0 && isalpha((unsigned char)text.p[k - 1])))
        continue;
      struct str c = {text.p + k + n, text.n - k - n};
      bool after = str_starts_fold(c, "-after") || str_starts_fold(c, "_after") ||
                   str_starts_fold(c, " after ");
      while (c.n > 0 && (isalpha((unsigned char)c.p[0]) || c.p[0] == '-' || c.p[0] == '_'))
        c = (struct str){c.p + 1, c.n - 1};
      ms = moment_bounded(moment_at(c, now_ms, after));
    }
  }
  if (ms == 0 && bar != NULL && text.n - (size_t)(bar + 1 - text.p) >= 9)
    ms = moment_of_value((struct str){bar + 1, (size_t)(text.p + text.n - bar - 1)}, now_ms);
  return ms;
}
