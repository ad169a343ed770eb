/* Tests which reasons contradict the number beside them, and which only argue. */
#include "judge/chain.h"

#include "base/err.h"
#include "support/data.h"
#include "support/test.h"

TEST(a_reason_may_name_another_choice) {
  static const struct tag_words words[] = {
      {1, {"approved", 8}}, {2, {"needs fix", 9}}, {3, {"not approved yet", 16}}};
  const struct tag_query query = {STR("review"), STR(""), TAG_REPLY, words, ARRAY_LEN(words)};
  DATA_ROWS("judge/reason/a_reason_may_name_another_choice.yaml", c, reason, number, contradicts)
    if (reason_contradicts(str_from(c.reason), data_number(c.number), &query) !=
        data_true(c.contradicts))
      fail_msg("%s, and %ld", c.reason, data_number(c.number));
}
