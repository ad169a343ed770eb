/* The table of words: every row is whole, and the user's come first. */
#include "provider/words.h"

#include "base/resource.h"
#include "format/json_object.h"
#include "support/test.h"

#include <string.h>

TEST(each_row_says_who_said_it_and_when) {
  const struct resource *r = resource_find("provider/words.json");
  json_auto_t *rows = json_loadb(r->p, r->n, 0, NULL);
  assert_true(json_array_size(rows) > 20);
  JSON_EACH(rows, i, row)
    if (json_view_at(row, "from").n == 0 || !str_starts(json_view_at(row, "seen"), "20"))
      fail_msg("row %zu of words.yaml", i + 1);
}

TEST(the_users_rows_come_first) {
  struct err err;
  size_t at;
  json_auto_t *rows = json_pack("[{ss ss} {ss s[s]}]", "class", "quota", "match", "^bork \\d+$",
                                "class", "refused", "code", "no_such_luck");
  assert_true(words_take(rows, &at, &err));
  assert_int_equal(words_find(STR(""), STR("Bork 17"), false, 0)->class, CLASS_QUOTA);
  assert_int_equal(words_find(STR("x\nNO_SUCH_LUCK"), STR(""), false, 0)->class, CLASS_REFUSED);
  assert_int_equal(words_find(STR(""), STR("out of credits"), false, 0)->class, CLASS_QUOTA);
  assert_true(words_take(NULL, &at, &err));
  assert_null(words_find(STR(""), STR("Bork 17"), false, 0));
}

TEST(bad_rows_are_refused) {
  static const struct {
    const char *row, *says;
  } cases[] = {
      {"{\"match\": \"x\"}", "class"},
      {"{\"class\": \"nothing\", \"match\": \"x\"}", "class"},
      {"{\"class\": \"auth\"}", "match"},
      {"{\"class\": \"auth\", \"match\": \"(\"}", "regular expression"},
      {"{\"class\": \"auth\", \"mtach\": \"x\"}", "unknown key"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_auto_t *row = json_loads(cases[i].row, 0, NULL),
                *rows = json_pack("[{ss ss} O]", "class", "auth", "match", "x", row);
    struct err err;
    size_t at = 0;
    assert_false(words_take(rows, &at, &err));
    assert_int_equal(at, 1);
    assert_non_null(strstr(err.text, cases[i].says));
  }
}
