#include "core/record.h"

#include "format/json_object.h"
#include "format/json_write.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Writes `digits` decimal digits and returns what follows them. */
static char *put_digits(char *at, int value, int digits) {
  for (int i = digits - 1; i >= 0; i--) {
    at[i] = (char)('0' + value % 10);
    value /= 10;
  }
  return at + digits;
}

void record_time(int64_t time_ms, char out[RECORD_TIME_BYTES]) {
  static const char after[] = "--T::.Z"; /* what follows each number */
  time_t seconds = (time_t)(time_ms / 1000);
  struct tm tm;
  gmtime_r(&seconds, &tm);
  const int numbers[] = {tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,           tm.tm_hour,
                         tm.tm_min,         tm.tm_sec,     (int)(time_ms % 1000)};
  char *at = out;
  for (size_t i = 0; i < 7; i++) { /* a log writes several a turn: snprintf would be seen */
    at = put_digits(at, numbers[i], i == 0 ? 4 : i == 6 ? 3 : 2);
    *at++ = after[i];
  }
  *at = '\0';
}

bool record_time_parse(const char *text, int64_t *time_ms) {
  struct tm tm = {0};
  int ms, used = 0;
  if (text == NULL ||
      sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
             &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &used) != 7 ||
      used == 0 || text[used] != '\0')
    return false;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  *time_ms = (int64_t)timegm(&tm) * 1000 + ms;
  return true;
}

json_t *record_new(uint64_t seq, json_t *time, const char *type) {
  json_t *record = json_object();
  json_put(record, "v", json_integer(RECORD_VERSION));
  json_put(record, "seq", json_integer((json_int_t)seq));
  json_put(record, "ts", json_incref(time));
  json_put(record, "type", json_string_nocheck(type));
  return record;
}

void record_set_str(json_t *record, const char *key, struct str value) {
  if (value.n > 0)
    json_object_set_new_nocheck(record, key, json_text(value));
}
