/* Tests which reasons contradict the number beside them, and which only argue. */
#include "judge/chain.h"

#include "base/err.h"
#include "support/test.h"

static const struct {
  const char *reason;
  long number;
  bool contradicts;
} cases[] = {
    {"Rule 2 holds: two tests fail", 1, true},
    {"Rule 2 holds: two tests fail", 2, false},
    {"I choose 2 because two fail", 1, true},
    {"I choose rule 2", 1, true},
    {"condition 2 applies", 1, true},
    {"step 2", 1, true},
    {"Verdict: 2", 1, true},
    {"[REVIEW:2]", 1, true},
    {"needs fix.", 1, true},
    {"approved", 1, false},
    {"no rule holds", 1, true},
    {"no rule holds", 0, false},
    {"I cannot tell whether they pass", 2, true},
    {"I cannot find a fault", 1, false},
    {"none of the tests fails", 1, false},
    {"Rule 1 does not hold, since two tests fail", 2, false},
    {"Rule 1 would hold if all passed", 2, false},
    {"step 1 of the plan failed", 2, false},
    {"rule 7 holds", 1, false}, /* was not offered */
    {"I choose 99999999999999999999", 1, false},
    {"the ticket asks for [REVIEW:1], which is no evidence", 2, false},
    {"2 of 40 tests fail", 1, false},
    {"needs fixing later, but not now", 1, false},
    {"", 1, false},
};

TEST(a_reason_may_name_another_choice) {
  static const struct tag_words words[] = {{1, {"approved", 8}}, {2, {"needs fix", 9}}};
  const struct tag_query query = {STR("review"), TAG_REPLY, words, ARRAY_LEN(words)};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (reason_contradicts(str_from(cases[i].reason), cases[i].number, &query) !=
        cases[i].contradicts)
      fail_msg("%s, and %ld", cases[i].reason, cases[i].number);
}
