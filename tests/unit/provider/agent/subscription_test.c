/* Limits of subscriptions: what is one, and when it is over. */
#include "provider/agent/subscription.h"

#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sunday, 22 November 2026, 12:00:00 UTC. */
static const int64_t noon_ms = 1795348800000;
enum { HOUR = 3600 * 1000 };

TEST(resets_are_read) {
  setenv("TZ", "UTC", 1);
  tzset();
  DATA_ROWS("provider/agent/subscription/resets_are_read.yaml", c, text, minutes) {
    int64_t got = subscription_reset_ms(str_from(c.text), noon_ms);
    if (got != (int64_t)data_number(c.minutes) * 60000)
      fail_msg("%s: %lld minutes", c.text, (long long)got / 60000);
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
  DATA_ROWS("provider/agent/subscription/results_that_are_limits.yaml", c, text, message, class,
            becomes, named) {
    AUTO(call_result_deinit) struct call_result r = {.class = data_class(c.class)};
    print_into(r.message, sizeof r.message, "%s", c.message);
    buf_puts(&r.text.bytes, c.text);
    subscription_check(&r, noon_ms);
    if (r.class != data_class(c.becomes) || (r.retry_after_ms > 0) != data_true(c.named))
      fail_msg("case %zu: %s, %lld", c.at, error_class_name(r.class), (long long)r.retry_after_ms);
  }
}
