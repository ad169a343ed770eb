/* Recognizes the limits of subscriptions and reads when they are reset. */
#include "provider/agent/subscription.h"

#include "base/file.h"
#include "base/limits.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { ZONE_FILE_BYTES = 64 * 1024, WORDS_BYTES = 300, DAY_S = 24 * 60 * 60 };

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
  if (data.n < ZONE_HEAD || memcmp(data.p, "TZif", 4) != 0)
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

/* Seconds east of UTC at that moment. */
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

static bool is_zone_name(struct str name) {
  for (size_t i = 0; i < name.n; i++)
    if (!isalnum((unsigned char)name.p[i]) && !strchr("_+-/", name.p[i]))
      return false;
  return name.n > 0 && name.n < 64 && isalpha((unsigned char)name.p[0]);
}

static bool read_zone(struct str name, struct buf *out) {
  char path[128];
  struct err err;
  if (!is_zone_name(name))
    return false;
  (void)snprintf(path, sizeof path, "/usr/share/zoneinfo/" STR_FMT, STR_ARG(name));
  return file_read(path, ZONE_FILE_BYTES, out, &err);
}

/* --- words --- */

struct subscription_cursor {
  struct str rest;
};

static void skip(struct subscription_cursor *c) {
  while (c->rest.n > 0 && (c->rest.p[0] == ' ' || c->rest.p[0] == ','))
    c->rest = (struct str){c->rest.p + 1, c->rest.n - 1};
}

static bool take_word(struct subscription_cursor *c, const char *word) {
  size_t n = strlen(word);
  skip(c);
  if (c->rest.n < n || strncasecmp(c->rest.p, word, n) != 0)
    return false;
  c->rest = (struct str){c->rest.p + n, c->rest.n - n};
  return true;
}

static bool take_number(struct subscription_cursor *c, int most, int *out) {
  int value = 0;
  size_t n = 0;
  skip(c);
  while (n < c->rest.n && n < 4 && isdigit((unsigned char)c->rest.p[n]))
    value = value * 10 + (c->rest.p[n++] - '0');
  if (n == 0 || value > most)
    return false;
  c->rest = (struct str){c->rest.p + n, c->rest.n - n};
  *out = value;
  return true;
}

/* Which of the names comes next, by its first three letters; the rest of the word goes with it. */
static int take_name(struct subscription_cursor *c, const char *const *names, int count) {
  for (int i = 0; i < count; i++)
    if (take_word(c, names[i])) {
      while (c->rest.n > 0 && isalpha((unsigned char)c->rest.p[0]))
        c->rest = (struct str){c->rest.p + 1, c->rest.n - 1};
      return i;
    }
  return -1;
}

struct moment {
  int month, day, weekday; /* -1: not named */
  int hour, minute;
};

/* "3pm", "2:30pm", "3:05 PM", "15:00". */
static bool take_time(struct subscription_cursor *c, struct moment *m) {
  struct subscription_cursor start = *c;
  bool exact = false;
  if (!take_number(c, 23, &m->hour))
    return false;
  if (c->rest.n > 0 && c->rest.p[0] == ':') {
    c->rest = (struct str){c->rest.p + 1, c->rest.n - 1};
    exact = take_number(c, 59, &m->minute);
  }
  bool pm = take_word(c, "pm");
  if ((pm || take_word(c, "am")) && m->hour >= 1 && m->hour <= 12) {
    m->hour = m->hour % 12 + (pm ? 12 : 0);
    return true;
  }
  if (!exact)
    *c = start;
  return exact;
}

/* "Nov 25 at 3pm", "Monday 12:00 AM", "3pm"; false: no time at all. */
static bool take_moment(struct subscription_cursor *c, struct moment *m) {
  static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                       "jul", "aug", "sep", "oct", "nov", "dec"};
  static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  int year;
  *m = (struct moment){.day = -1};
  (void)(take_word(c, "at ") || take_word(c, "on "));
  m->weekday = take_name(c, days, 7);
  m->month = take_name(c, months, 12);
  if (m->month >= 0 && !take_number(c, 31, &m->day))
    return false;
  struct subscription_cursor before = *c;
  if (m->month >= 0 && (!take_number(c, 9999, &year) || year < 2000))
    *c = before;
  (void)take_word(c, "at ");
  return take_time(c, m) || m->month >= 0 || m->weekday >= 0;
}

/* --- a moment in a zone --- */

struct zone {
  struct str data; /* n 0: the local one */
};

static int64_t to_utc(const struct zone *zone, struct tm *tm) {
  if (zone->data.n == 0) {
    tm->tm_isdst = -1;
    return mktime(tm);
  }
  int64_t wall = timegm(tm), offset = 0;
  for (int i = 0; i < 2 && zone_offset(zone->data, wall - offset, &offset); i++)
    ;
  return wall - offset;
}

static int64_t resolve(const struct moment *m, const struct zone *zone, int64_t now_s) {
  struct tm now = {0}, at;
  int64_t offset = 0;
  time_t local = (time_t)now_s;
  if (zone->data.n == 0) {
    (void)localtime_r(&local, &now);
  } else {
    if (!zone_offset(zone->data, now_s, &offset))
      return 0;
    local += (time_t)offset;
    (void)gmtime_r(&local, &now);
  }
  at = (struct tm){.tm_year = now.tm_year,
                   .tm_mon = m->month >= 0 ? m->month : now.tm_mon,
                   .tm_mday = m->month >= 0 ? m->day : now.tm_mday,
                   .tm_hour = m->hour,
                   .tm_min = m->minute};
  if (m->month < 0 && m->weekday >= 0)
    at.tm_mday += (m->weekday - now.tm_wday + 7) % 7;
  struct tm asked = at;
  int64_t utc = to_utc(zone, &at);
  if (utc > now_s)
    return utc;
  if (m->month >= 0) /* in December they speak of January; of a day that is just over they do not */
    asked.tm_year += utc < now_s - 30 * DAY_S;
  else
    asked.tm_mday += m->weekday >= 0 ? 7 : 1;
  return to_utc(zone, &asked);
}

int64_t subscription_reset_ms(struct str text, int64_t now_ms) {
  static const char *const heads[] = {"resets ", "reset at ", "try again at "};
  int64_t now_s = now_ms / 1000, at = 0;
  const char *bar = memrchr(text.p ? text.p : "", '|', text.n);
  for (size_t i = 0; i < sizeof heads / sizeof *heads && at == 0; i++) {
    size_t n = strlen(heads[i]);
    for (size_t k = 0; k + n <= text.n && at == 0; k++) {
      struct subscription_cursor c = {.rest = {text.p + k + n, text.n - k - n}};
      struct moment m;
      struct buf data = {0};
      if (strncasecmp(text.p + k, heads[i], n) != 0 || !take_moment(&c, &m))
        continue;
      struct zone zone = {{"", 0}};
      bool known = true;
      if (take_word(&c, "(")) {
        const char *end = memchr(c.rest.p, ')', c.rest.n);
        struct str name = {c.rest.p, end ? (size_t)(end - c.rest.p) : 0};
        known = read_zone(name, &data);
        zone.data = buf_view(&data);
      } else if (take_word(&c, "utc")) {
        known = read_zone(STR("UTC"), &data);
        zone.data = buf_view(&data);
      }
      if (known)
        at = resolve(&m, &zone, now_s);
      buf_deinit(&data);
    }
  }
  if (at == 0 && bar != NULL) {
    struct str digits = {bar + 1, (size_t)(text.p + text.n - bar - 1)};
    char number[16] = {0};
    if (digits.n >= 9 && digits.n < sizeof number) {
      memcpy(number, digits.p, digits.n);
      at = strtoll(number, NULL, 10);
    }
  }
  return at > now_s && at < now_s + 366ll * DAY_S ? (at - now_s) * 1000 : 0;
}

/* The words of the clients, at the head of a text of one short line. */
static bool is_limit(struct str text) {
  static const char *const heads[] = {
      "You've hit your ",           "You\xe2\x80\x99ve hit your ",
      "You're out of extra usage",  "You\xe2\x80\x99re out of extra usage",
      "Claude usage limit reached", "Claude AI usage limit reached",
      "Session limit reached",      "Weekly limit reached",
      "Usage limit reached"};
  if (text.n == 0 || text.n > WORDS_BYTES || memchr(text.p, '\n', text.n) != NULL)
    return false;
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    size_t n = strlen(heads[i]);
    if (text.n >= n && strncasecmp(text.p, heads[i], n) == 0)
      return i > 1 || memmem(text.p, text.n, "limit", 5) != NULL;
  }
  size_t digits = 0; /* "5-hour limit reached" */
  while (digits < text.n && isdigit((unsigned char)text.p[digits]))
    digits++;
  static const char hours[] = "-hour limit reached";
  return digits > 0 && text.n - digits >= sizeof hours - 1 &&
         strncasecmp(text.p + digits, hours, sizeof hours - 1) == 0;
}

void subscription_check(struct call_result *r, int64_t now_ms) {
  struct str text = r->class == CLASS_NONE ? buf_view(&r->text.bytes) : str_from(r->message);
  if (r->structured != NULL || r->class == CLASS_CANCELLED || r->class == CLASS_TIMEOUT)
    return;
  text = str_trim(text);
  if (!is_limit(text))
    return;
  char words[WORDS_BYTES + 1];
  (void)snprintf(words, sizeof words, STR_FMT, STR_ARG(text));
  int64_t reset_ms = subscription_reset_ms(text, now_ms);
  call_result_fail(r, CLASS_RATE_LIMIT, "%s", words);
  if (reset_ms > 0)
    r->retry_after_ms = reset_ms;
}
