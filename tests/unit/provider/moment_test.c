/* Moments and durations in the words of vendors and clients. */
#include "provider/moment.h"

#include "base/err.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sunday, 22 November 2026, 12:00:00 UTC. */
static const int64_t noon_ms = 1795348800000;
enum { HOUR = 3600 * 1000 };

TEST(resets_are_read) {
  static const struct {
    const char *text;
    int64_t minutes; /* from noon; 0: not understood */
  } cases[] = {
      {"You've hit your session limit \xc2\xb7 resets 3pm (UTC)", 180},
      {"You've hit your session limit \xc2\xb7 resets 11am (UTC)", 23 * 60},
      {"You're out of extra usage \xc2\xb7 resets 2:30pm (Asia/Tokyo)", 17 * 60 + 30},
      {"5-hour limit reached \xe2\x88\x99 resets 8pm", 8 * 60},
      {"5-hour limit reached \xe2\x88\x99 resets 12am (UTC)", 12 * 60},
      {"You've hit your weekly limit \xc2\xb7 resets Nov 25 at 3pm (UTC)", 3 * 1440 + 180},
      {"You've hit your weekly limit \xc2\xb7 resets Nov 25, 3pm (America/New_York)",
       3 * 1440 + 180 + 300},
      {"You've hit your weekly limit \xc2\xb7 resets Jan 2, 2027, 9:15am (UTC)", 41 * 1440 - 165},
      {"You've hit your weekly limit \xc2\xb7 resets Wednesday 12:00 AM (UTC)", 2 * 1440 + 720},
      {"You've hit your weekly limit \xc2\xb7 resets Sunday 9:00 (UTC)", 7 * 1440 - 180},
      {"You've hit your usage limit. Try again at 3:05 PM.", 185},
      {"Claude AI usage limit reached|1795352400", 60},
      /* other forms of a moment */
      {"limit reached, reset 3pm (UTC)", 180},
      {"resets today at 3pm (UTC)", 180},
      {"resets tomorrow at 3pm (UTC)", 1440 + 180},
      {"resets tomorrow, 11:00 (UTC)", 1440 - 60},
      {"resets at noon (Asia/Tokyo)", 15 * 60},
      {"resets at midnight UTC", 12 * 60},
      {"try again at Nov 25th, 2026 3:05 PM.", 3 * 1440 + 185},
      {"resets 25 Nov at 3pm (UTC)", 3 * 1440 + 180},
      {"resets 25 November 2026, 15:00 (UTC)", 3 * 1440 + 180},
      {"resets 2026-11-25 15:00 UTC", 3 * 1440 + 180},
      {"resets at 2026-11-25T15:00:00Z", 3 * 1440 + 180},
      {"resets 2026-11-25T15:00:00+09:00", 3 * 1440 - 360},
      {"resets 2026-02-30 15:00 UTC", 0},
      {"resets 3 p.m. (UTC)", 180},
      {"resets 3pm UTC", 180},
      {"resets 3pm (GMT+9)", 18 * 60},
      {"resets 8pm (UTC+05:30)", 150},
      {"resets 8am (UTC-8)", 4 * 60},
      {"resets 9am PST", 5 * 60},
      {"resets 9am (EDT)", 60},
      {"resets 10pm JST", 60},
      {"resets in 3 hours", 180},
      {"resets in 2h 5m", 125},
      {"Your quota will reset after 3h5m0s.", 185},
      {"or try again in 1 day 4 hours 23 minutes.", 1440 + 263},
      {"try again in 5 days", 5 * 1440},
      {"You will regain access on 2026-12-01 at 00:00 UTC.", 8 * 1440 + 720},
      {"Your allowance will reset on 2026-12-02.", 9 * 1440 + 720},
      {"Limits reset: 2026-11-23T00:00:00Z", 720},
      {"Your quota will be replenished at 3pm (UTC)", 180},
      {"resets in a while", 0},
      {"resets in 9999 days", 0},
      {"You've hit your session limit \xc2\xb7 resets 3pm (Nowhere/Atlantis)", 0},
      {"You've hit your session limit \xc2\xb7 resets 3pm (../../etc/passwd)", 0},
      {"You've hit your session limit \xc2\xb7 resets soon", 0},
      {"You've hit your session limit \xc2\xb7 resets 77pm (UTC)", 0},
      {"Claude AI usage limit reached|1", 0},
      {"", 0},
  };
  setenv("TZ", "UTC", 1);
  tzset();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t got = moment_in_text(str_from(cases[i].text), noon_ms);
    if (got != cases[i].minutes * 60000)
      fail_msg("%s: %lld minutes", cases[i].text, (long long)got / 60000);
  }
}

TEST(the_local_zone_counts_where_none_is_named) {
  setenv("TZ", "JST-9", 1);
  tzset();
  assert_int_equal(moment_in_text(STR("resets 10pm"), noon_ms), HOUR);
  setenv("TZ", "UTC", 1);
  tzset();
}

/* In summer New York is an hour nearer to UTC than in winter. */
TEST(zones_have_summers) {
  const int64_t july_ms = noon_ms - 140ll * 24 * HOUR;
  assert_int_equal(moment_in_text(STR("resets 9am (America/New_York)"), july_ms), HOUR);
  assert_int_equal(moment_in_text(STR("resets 9am (America/New_York)"), noon_ms), 2 * HOUR);
}

TEST(waits_are_found_in_messages) {
  static const struct {
    const char *text;
    int64_t ms;
  } cases[] = {
      {"Please try again in 1.2s.", 1200},
      {"Please retry in 37.5s.", 37500},
      {"resets 2026-11-22T12:00:40Z", 40000},
      {"try again in 800ms", 800},
      {"Try again in 5 minutes", 300000},
      {"or try again in 2 days 3 hours", 183600000},
      {"retry after 30 seconds", 30000},
      {"Retry-After: 120", 120000},
      {"usually temporary, try again in a moment", 0},
      {"Please retry after 4 seconds.", 4000},
      {"Please try again in 3 hours 20 minutes.", 12000000},
      {"try again in 1 hour 5 minutes", 3900000},
      {"try again in 1h30m", 5400000},
      {"Please wait 20 seconds before retrying", 20000},
      {"It will be available again in about an hour.", 3600000},
      {"{\"retry_after\": 30}", 30000},
      {"try again in 3 months", 0},
      {"the refresh token was used 3 times", 0},
      {"your preset 5 minutes", 0},
      {"try again in ", 0},
      {"try again in 99999999999999999999999 days", 0},
      {"", 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (moment_in_text(str_from(cases[i].text), noon_ms) != cases[i].ms)
      fail_msg("\"%s\"", cases[i].text);
}

TEST(values_are_read) {
  static const struct {
    const char *text;
    int64_t ms;
  } cases[] = {
      {"2", 2000},
      {"0.5", 500},
      {"3.07s", 3070},
      {"6m0s", 360000},
      {"1795352400", HOUR},
      {"1795352400000", HOUR},
      {"0", 0},
      {"-5", 0},
      {"1795340000", 0},
      {"soon", 0},
      {"", 0},
      {"2026-11-22T13:00:00Z", HOUR},
      {"Sun, 22 Nov 2026 13:00:00 GMT", HOUR},
      {"12am (America/Los_Angeles)", 20 * HOUR},
      {"1e300", 0},
      {"nan", 0},
      {"in 1 hour", HOUR},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (moment_of_value(str_from(cases[i].text), noon_ms) != cases[i].ms)
      fail_msg("\"%s\": %lld", cases[i].text,
               (long long)moment_of_value(str_from(cases[i].text), noon_ms));
}
