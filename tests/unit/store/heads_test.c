/* Heads of sessions as `segue heads` prints them: which records count, and lines that are none. */

#include "store/heads.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define ID_A          "01990000-0000-7000-8000-00000000aaaa"
#define ID_B          "01990000-0000-7000-8000-00000000bbbb"
#define HASH          "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD(id, seq) "{\"session\":\"" id "\",\"seq\":" seq ",\"hash\":\"" HASH "\"}\n"

TEST(heads_are_found_by_session) {
  AUTO(heads_deinit) struct heads h;
  struct ledger_end anchor;
  struct err err;
  size_t n;
  assert_true(heads_parse(&h,
                          str_from(HEAD(ID_B, "9") HEAD(ID_A, "4")
                                       HEAD(ID_B, "12") "{\"ledger\":3,\"hash\":\"" HASH "\"}"),
                          &anchor, &err));
  assert_int_equal(anchor.entries, 3);
  assert_string_equal(anchor.hash, HASH);
  const struct ledger_entry *of = heads_of(&h, ID_B, &n);
  assert_int_equal(n, 2);
  assert_int_equal(of[0].seq, 9);
  assert_int_equal(of[1].seq, 12);
  assert_int_equal(heads_last(&h, ID_A)->seq, 4);
  assert_false(heads_ended(&h, ID_A)); /* a list does not say so */
  assert_null(heads_of(&h, "01990000-0000-7000-8000-00000000aaab", &n));
  assert_int_equal(n, 0);
  assert_null(heads_last(&h, ""));
}

TEST(no_lines_are_no_heads) {
  AUTO(heads_deinit) struct heads h;
  struct ledger_end anchor;
  struct err err;
  size_t n;
  assert_true(heads_parse(&h, str_from(""), &anchor, &err));
  assert_int_equal(anchor.entries, 0);
  assert_null(heads_of(&h, ID_A, &n));
}

static const char *const wrong[] = {
    "\n",
    "[]\n",
    "{}\n",
    "{\"session\":\"" ID_A "\",\"seq\":4,\"hash\":\"" HASH "\"\n",
    "{\"session\":\"" ID_A "\",\"seq\":4}\n",
    "{\"session\":\"" ID_A "\",\"seq\":4,\"hash\":\"0123\"}\n",
    "{\"session\":\"" ID_A "\",\"seq\":4,\"hash\":\"" HASH "0\"}\n",
    "{\"session\":\"" ID_A "\",\"hash\":\"" HASH "\"}\n",
    "{\"session\":7,\"seq\":4,\"hash\":\"" HASH "\"}\n",
    "{\"ledger\":-1,\"hash\":\"" HASH "\"}\n",
    "{\"ledger\":\"3\",\"hash\":\"" HASH "\"}\n",
    HEAD("01990000", "4"),
    HEAD(ID_A "0", "4"),
    HEAD("01990000-0000-7000-8000-\\u0000000aaaa", "4"),
    HEAD(ID_A, "0"),
    HEAD(ID_A, "-1"),
    HEAD(ID_A, "1.5"),
    HEAD(ID_A, "\"4\""),
    HEAD(ID_A, "99999999999999999999"),
};

TEST(other_lines_are_refused) {
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
    char text[1024];
    struct heads h;
    struct ledger_end anchor;
    struct err err = {0};
    print_into(text, sizeof text, "%s%s", HEAD(ID_A, "3"), wrong[i]);
    if (heads_parse(&h, str_from(text), &anchor, &err))
      fail_msg("accepted: %s", wrong[i]);
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.text, "line 2 is not a session's head"));
    assert_null(h.items);
  }
}
