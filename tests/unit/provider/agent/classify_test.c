/* Words and statuses of vendors to error classes. */

#include "base/err.h"
#include "provider/agent/classify.h"
#include "support/data.h"
#include "support/test.h"

TEST(words_mean_classes) {
  DATA_ROWS("provider/agent/classify/words_mean_classes.yaml", c, text, class) {
    enum error_class got = classify_of_words(str_from(c.text));
    if (got != data_class(c.class))
      fail_msg("\"%s\" is %s", c.text, error_class_name(got));
  }
}

TEST(statuses_are_found_in_messages) {
  DATA_ROWS("provider/agent/classify/statuses_are_found_in_messages.yaml", c, text, status) {
    int got = classify_status(str_from(c.text));
    if (got != (int)data_number(c.status))
      fail_msg("\"%s\" has %d", c.text, got);
  }
}

TEST(waits_are_found_in_messages) {
  DATA_ROWS("provider/agent/classify/waits_are_found_in_messages.yaml", c, text, ms)
    if (classify_retry_after_ms(str_from(c.text)) != (int64_t)data_number(c.ms))
      fail_msg("\"%s\"", c.text);
}

TEST(http_statuses_are_classes) {
  static const struct {
    int status;
    enum error_class class;
  } cases[] = {{200, CLASS_NONE},        {400, CLASS_BAD_REQUEST}, {401, CLASS_AUTH},
               {402, CLASS_QUOTA},       {403, CLASS_AUTH},        {404, CLASS_NOT_FOUND},
               {422, CLASS_BAD_REQUEST}, {429, CLASS_RATE_LIMIT},  {500, CLASS_OVERLOADED},
               {503, CLASS_OVERLOADED},  {529, CLASS_OVERLOADED},  {0, CLASS_NONE}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    assert_int_equal(classify_of_status(cases[i].status), cases[i].class);
}

TEST(a_log_says_more) {
  DATA_ROWS("provider/agent/classify/a_log_says_more.yaml", c, log, word, said) {
    buf_auto_t out = {0};
    classify_logged(str_from(c.log), str_from(c.word), &out);
    assert_string_equal(buf_c(&out), c.said);
  }
}
