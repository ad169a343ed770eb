#include "core/record.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void record_time(int64_t time_ms, char out[RECORD_TIME_BYTES]) {
  time_t seconds = (time_t)(time_ms / 1000);
  struct tm tm;
  gmtime_r(&seconds, &tm);
  size_t n = strftime(out, RECORD_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
  (void)snprintf(out + n, RECORD_TIME_BYTES - n, ".%03dZ", (int)(time_ms % 1000));
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

json_t *record_new(uint64_t seq, int64_t time_ms, const char *type) {
  char ts[RECORD_TIME_BYTES];
  record_time(time_ms, ts);
  return json_pack("{si sI ss ss}", "v", RECORD_VERSION, "seq", (json_int_t)seq, "ts", ts, "type",
                   type);
}

void record_set_str(json_t *record, const char *key, struct str value) {
  if (value.n > 0)
    json_object_set_new(record, key, json_stringn(value.p, value.n));
}
