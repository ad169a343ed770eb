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
      {"You exceeded your current quota. Please retry in 37.5s.",
       CLASS_QUOTA}, /* until its time is read */
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
      /* money, however it is said */
      {"Your organization is out of usage credits.", CLASS_QUOTA},
      {"You hit your spend cap set in your workspace. Increase your spend cap.", CLASS_QUOTA},
      {"Your prepayment credits are depleted.", CLASS_QUOTA},
      {"Account balance exhausted, please top up", CLASS_QUOTA},
      {"You have run out of credits", CLASS_QUOTA},
      {"Free usage exceeded, subscribe to Go", CLASS_QUOTA},
      {"Your subscription has expired", CLASS_QUOTA},
      {"Your free trial has ended", CLASS_QUOTA},
      {"Not enough funds on this account", CLASS_QUOTA},
      {"You\xe2\x80\x99ve used all your monthly credits", CLASS_QUOTA},
      /* access */
      {"This organization has been disabled.", CLASS_AUTH},
      {"Your account was suspended for violating our usage policies", CLASS_AUTH},
      {"User location is not supported for the API use.", CLASS_AUTH},
      {"The API key has expired", CLASS_AUTH},
      {"Your refresh token was already used. Please sign in again.", CLASS_AUTH},
      {"Your session has expired, please log in", CLASS_AUTH},
      /* policy */
      {"This content was flagged for possible cybersecurity risk.", CLASS_REFUSED},
      {"Your request was rejected as a result of our safety system.", CLASS_REFUSED},
      {"Output blocked by content filtering policy", CLASS_REFUSED},
      {"Input data may contain content that violates our usage guidelines", CLASS_REFUSED},
      /* the prompt */
      {"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
       CLASS_BAD_REQUEST},
      {"Input is too long for requested model.", CLASS_BAD_REQUEST},
      {"image exceeds 5 MB maximum", CLASS_BAD_REQUEST},
      /* models */
      {"The model `x` has been decommissioned and is no longer supported", CLASS_NOT_FOUND},
      {"model \"qwen9\" not found, try pulling it first", CLASS_NOT_FOUND},
      {"claude-2 was retired", CLASS_NONE},
      /* no reasons */
      {"content type text/plain was rejected", CLASS_NONE},
      {"the position of token ( is invalid", CLASS_NONE},
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

/* Sunday, 22 November 2026, 12:00:00 UTC. */
static const int64_t noon_ms = 1795348800000;

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
    classify_settle(&r, noon_ms);
    if (r.class != cases[i].becomes || (r.retry_after_ms > 0) != cases[i].named)
      fail_msg("case %zu: %s, %lld", i, error_class_name(r.class), (long long)r.retry_after_ms);
  }
}

TEST(fields_come_before_words_and_words_before_statuses) {
  static const struct {
    const char *codes, *message, *param;
    enum error_class by_status, class;
    bool elsewhere;
  } cases[] = {
      {"cyber_policy_violation\ninvalid_request_error", "no", "", CLASS_BAD_REQUEST, CLASS_REFUSED,
       false},
      {"invalid_request_error", "Insufficient balance", "", CLASS_BAD_REQUEST, CLASS_QUOTA, false},
      {"invalid_request_error", "Something is odd", "", CLASS_BAD_REQUEST, CLASS_BAD_REQUEST, true},
      {"invalid_request_error", "prompt is too long", "", CLASS_BAD_REQUEST, CLASS_BAD_REQUEST,
       false},
      {"", "too large for tokens a minute: request too large", "", CLASS_RATE_LIMIT,
       CLASS_RATE_LIMIT, false},
      {"", "this model does not exist with it", "seed", CLASS_BAD_REQUEST, CLASS_BAD_REQUEST, true},
      {"permission_error", "You used all available credits", "", CLASS_AUTH, CLASS_QUOTA, false},
      {"permission_error", "no", "", CLASS_NONE, CLASS_AUTH, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct meaning m =
        classify_failure(&(struct failure_said){.by_status = cases[i].by_status,
                                                .codes = str_from(cases[i].codes),
                                                .message = str_from(cases[i].message),
                                                .param = str_from(cases[i].param)});
    if (m.class != cases[i].class || m.elsewhere != cases[i].elsewhere)
      fail_msg("%s: %s", cases[i].message, error_class_name(m.class));
  }
}

TEST(what_the_model_wrote_is_no_report) {
  AUTO(call_result_deinit) struct call_result r = {.by_model = true};
  buf_puts(&r.text.bytes, "You've hit your session limit \xc2\xb7 resets 3pm (UTC)");
  classify_settle(&r, noon_ms);
  assert_int_equal(r.class, CLASS_NONE);
  r.by_model = false;
  classify_settle(&r, noon_ms);
  assert_int_equal(r.class, CLASS_RATE_LIMIT);
}
