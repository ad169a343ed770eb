/* Limits of subscriptions: what is one, and when it is over. */
#include "provider/agent/subscription.h"

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
      {"resets 2026-11-25T15:00:30+09:00", 3 * 1440 - 360},
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
    int64_t got = subscription_reset_ms(str_from(cases[i].text), noon_ms);
    if (got != cases[i].minutes * 60000)
      fail_msg("%s: %lld minutes", cases[i].text, (long long)got / 60000);
  }
}

TEST(the_local_zone_counts_where_none_is_named) {
  setenv("TZ", "JST-9", 1);
  tzset();
  assert_int_equal(subscription_reset_ms(STR("resets 10pm"), noon_ms), HOUR);
  setenv("TZ", "UTC", 1);
  tzset();
}

/* In summer New York is an hour nearer to UTC than in winter. */
TEST(zones_have_summers) {
  const int64_t july_ms = noon_ms - 140ll * 24 * HOUR;
  assert_int_equal(subscription_reset_ms(STR("resets 9am (America/New_York)"), july_ms), HOUR);
  assert_int_equal(subscription_reset_ms(STR("resets 9am (America/New_York)"), noon_ms), 2 * HOUR);
}

TEST(results_that_are_limits) {
  static const struct {
    const char *text, *message;
    enum error_class class, becomes;
    bool named;
  } cases[] = {
      {"You've hit your session limit \xc2\xb7 resets 3pm (UTC)\n", "", CLASS_NONE,
       CLASS_RATE_LIMIT, true},
      {"", "You've hit your weekly limit \xc2\xb7 resets 3pm (UTC)", CLASS_CRASHED,
       CLASS_RATE_LIMIT, true},
      {"", "5-hour limit reached \xe2\x88\x99 resets 8pm", CLASS_OVERLOADED, CLASS_RATE_LIMIT,
       true},
      {"You're out of extra usage", "", CLASS_NONE, CLASS_RATE_LIMIT, false},
      {"Opus weekly limit reached \xe2\x88\x99 resets Nov 25, 3pm (UTC)", "", CLASS_NONE,
       CLASS_RATE_LIMIT, true},
      {"You have reached your weekly usage limit. It resets 3pm (UTC).", "", CLASS_NONE,
       CLASS_RATE_LIMIT, true},
      {"", "API Error: You've hit your session limit \xc2\xb7 resets 3pm (UTC)\n/upgrade",
       CLASS_CRASHED, CLASS_RATE_LIMIT, true},
      {"",
       "You've hit your usage limit. Upgrade to Pro (https://example.com), or try again in 2 "
       "hours.",
       CLASS_CRASHED, CLASS_RATE_LIMIT, true},
      {"", "You have exhausted your daily quota on this model. Your quota will reset after 3h5m3s.",
       CLASS_CRASHED, CLASS_RATE_LIMIT, true},
      {"", "429 usage limit for your plan, resets 3pm (UTC)", CLASS_RATE_LIMIT, CLASS_RATE_LIMIT,
       true},
      {"The rate limit reached its bound in the test, which resets 3 counters.", "", CLASS_NONE,
       CLASS_NONE, false},
      {"Rate limit reached in three of the tests; I mended them.", "", CLASS_NONE, CLASS_NONE,
       false},
      {"The page says: You've hit your session limit \xc2\xb7 resets 3pm (UTC)", "", CLASS_NONE,
       CLASS_NONE, false},
      {"You've hit your session limit \xc2\xb7 resets 3pm (UTC)\nis what the user reads.", "",
       CLASS_NONE, CLASS_NONE, false},
      {"You've hit your stride.", "", CLASS_NONE, CLASS_NONE, false},
      {"", "cancelled", CLASS_CANCELLED, CLASS_CANCELLED, false},
      {"", "", CLASS_NONE, CLASS_NONE, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AUTO(call_result_deinit) struct call_result r = {.class = cases[i].class};
    print_into(r.message, sizeof r.message, "%s", cases[i].message);
    buf_puts(&r.text.bytes, cases[i].text);
    subscription_check(&r, noon_ms);
    if (r.class != cases[i].becomes || (r.retry_after_ms > 0) != cases[i].named)
      fail_msg("case %zu: %s, %lld", i, error_class_name(r.class), (long long)r.retry_after_ms);
  }
}
