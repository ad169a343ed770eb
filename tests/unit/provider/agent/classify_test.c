/* Words and statuses of vendors to error classes. */

#include "base/err.h"
#include "provider/agent/classify.h"
#include "support/test.h"

TEST(words_mean_classes) {
  static const struct {
    const char *text;
    enum error_class class;
  } cases[] = {
      {"Incorrect API key provided", CLASS_AUTH},
      {"Please run /login", CLASS_AUTH},
      {"Rate limit reached. Please try again in 1.2s.", CLASS_RATE_LIMIT},
      {"exceeded retry limit, last status: 429 Too Many Requests", CLASS_RATE_LIMIT},
      {"You've hit your usage limit. Try again in 3 hours.", CLASS_RATE_LIMIT},
      {"Your credit balance is too low to access the API", CLASS_QUOTA},
      {"You exceeded your current quota, please check your plan and billing details", CLASS_QUOTA},
      {"You exceeded your current quota. Please retry in 37.5s.", CLASS_NONE}, /* it comes back */
      {"You have exhausted your daily quota on this model. Switch to another /auth method",
       CLASS_QUOTA},
      {"You have exhausted your capacity. Your quota will reset after 2h3m4s.", CLASS_RATE_LIMIT},
      {"Please set an Auth method in your settings.json", CLASS_AUTH},
      {"[API Error: mock NOT_FOUND]", CLASS_NOT_FOUND},
      {"status: PERMISSION_DENIED", CLASS_AUTH},
      {"Codex ran out of room in the model's context window.", CLASS_BAD_REQUEST},
      {"Selected model is at capacity. Please try a different model.", CLASS_OVERLOADED},
      {"We're currently experiencing high demand", CLASS_OVERLOADED},
      {"connect ECONNREFUSED 127.0.0.1:1", CLASS_NETWORK},
      {"stream disconnected before completion: error sending request", CLASS_NETWORK},
      {"error decoding response body: unexpected EOF during chunk size line", CLASS_NETWORK},
      {"The model response was blocked due to safety settings.", CLASS_REFUSED},
      {"Incomplete response returned, reason: max_output_tokens", CLASS_LENGTH},
      {"API Error: Claude's response exceeded the 32000 output token maximum", CLASS_LENGTH},
      {"prompt is too long: 250000 tokens > 200000 maximum", CLASS_BAD_REQUEST},
      {"The model does not exist", CLASS_NOT_FOUND},
      {"models/x is not found for API version v1beta, or is not supported", CLASS_NOT_FOUND},
      {"No conversation found with session ID: 9", CLASS_NOT_FOUND},
      {"error: unknown option '--x'", CLASS_BAD_REQUEST},
      {"WARNING: Refusing to create helper binaries under temporary dir", CLASS_NONE},
      {"Something went wrong", CLASS_NONE},
      {"", CLASS_NONE},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    enum error_class got = classify_of_words(str_from(cases[i].text));
    if (got != cases[i].class)
      fail_msg("\"%s\" is %s", cases[i].text, error_class_name(got));
  }
}

TEST(statuses_are_found_in_messages) {
  static const struct {
    const char *text;
    int status;
  } cases[] = {
      {"unexpected status 401 Unauthorized: Incorrect API key, url: http://127.0.0.1:8400/v1", 401},
      {"exceeded retry limit, last status: 429 Too Many Requests", 429},
      {"Failed to authenticate. API Error: 403 forbidden", 403},
      {"[API Error: {\"error\":{\"code\":401,\"message\":\"no\"}}]", 401},
      {"[API Error: 401 Incorrect API key provided]", 401},
      {"401 Incorrect API key provided", 401},
      {"Authentication failed with provider (HTTP 401).", 401},
      {"  status: 503\n", 503},
      {"listening on port 4040", 0},
      {"error 4001", 0},
      {"error: 1 of 500 tests failed", 0},
      {"status code=529", 529},
      {"", 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    int got = classify_status(str_from(cases[i].text));
    if (got != cases[i].status)
      fail_msg("\"%s\" has %d", cases[i].text, got);
  }
}

TEST(waits_are_found_in_messages) {
  static const struct {
    const char *text;
    int64_t ms;
  } cases[] = {
      {"Please try again in 1.2s.", 1200},
      {"Please retry in 37.5s.", 37500},
      {"try again in 800ms", 800},
      {"Try again in 5 minutes", 300000},
      {"or try again in 2 days 3 hours", 172800000},
      {"retry after 30 seconds", 30000},
      {"Retry-After: 120", 120000},
      {"usually temporary, try again in a moment", 0},
      {"try again in ", 0},
      {"try again in 99999999999999999999999 days", 0},
      {"", 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (classify_retry_after_ms(str_from(cases[i].text)) != cases[i].ms)
      fail_msg("\"%s\"", cases[i].text);
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
  static const struct {
    const char *log, *word, *said;
  } cases[] = {
      {"a=1 ref=e7 error=\"Model not found: x\" cause=\"...\"", "e7", "Model not found: x"},
      {"ref=e7 error=\"a \\\"b\\\" c\" x=y", "e7", "a \"b\" c"},
      {"ref=e7 error=plain x=y\nref=e8 error=other", "e7", "plain"},
      {"e7 first\n  e7 and last \nnothing", "e7", "e7 and last"},
      {"ref=e7 error=\"never closed", "e7", "\"never"},
      {"ref=e7 error=", "e7", ""},
      {"ref=e7 error=7", "e8", ""},
      {"ref=e7 error=7", "", ""},
      {"", "e7", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t out = {0};
    classify_logged(str_from(cases[i].log), str_from(cases[i].word), &out);
    assert_string_equal(buf_c(&out), cases[i].said);
  }
}
