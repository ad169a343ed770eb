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
    {"Es gilt Regel 2.", 1, true},
    {"条件2が成り立つ", 1, true},
    {"2", 1, true},
    {"rule #2, clearly", 1, true},
    {"[REVIEW:2]", 1, true},
    {"2 of 40 tests fail", 1, true}, /* form does not tell a count from a choice */
    {"rule 7 holds", 1, false},      /* was not offered */
    {"version 2.1, a.c:2, v2, 2%, 1/2, -2", 1, false},
    {"it printed `2` and \"rule 2\"", 1, false},
    {"needs fix.", 1, true},
    {"So it NEEDS FIX", 1, true},
    {"needs fixing later, but not now", 1, false},
    {"nobody needs fix", 2, false},
    {"not approved", 2, true},
    {"not approved yet", 3, false}, /* inside of its own rule's words */
    {"approved", 1, false},
    {"99999999999999999999", 1, false},
    {"", 1, false},
};

static const struct {
  const char *words;
  long number;
  bool differ;
} given[] = {
    {"approved", 1, false},
    {"Approved.", 1, false},
    {"**needs fix**", 2, false},
    {"2. needs fix", 2, false},
    {"2: Needs Fix", 2, false},
    {"[REVIEW:2] needs fix", 2, false},
    {"1. needs fix", 2, true},
    {"needs fix", 1, true},
    {"not approved", 1, true},
    {"not approved", 3, true},
    {"not approved yet", 3, false},
    {"2needs fix", 2, true},
    {"none", 0, false},
    {"", 0, false},
    {"needs fix", 0, true},
    {"needs a fix", 2, true},
    {"whatever", 9, false}, /* the number was not offered */
};

TEST(a_reason_may_name_another_choice) {
  static const struct tag_words words[] = {
      {1, {"approved", 8}}, {2, {"needs fix", 9}}, {3, {"not approved yet", 16}}};
  const struct tag_query query = {STR("review"), STR(""), TAG_REPLY, words, ARRAY_LEN(words)};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (reason_contradicts(str_from(cases[i].reason), cases[i].number, &query) !=
        cases[i].contradicts)
      fail_msg("%s, and %ld", cases[i].reason, cases[i].number);
  for (size_t i = 0; i < ARRAY_LEN(given); i++)
    if (rule_words_differ(str_from(given[i].words), given[i].number, &query) != given[i].differ)
      fail_msg("%s, and %ld", given[i].words, given[i].number);
}
