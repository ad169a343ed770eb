/* Recorded runs of real clients through the shipped profiles:
 * tests/data/transcripts-expected says what must come out. */
#include "support/data.h"

#include "format/json_write.h"

#include "base/sha256.h"
#include "provider/agent/replay_recording.h"
#include "provider/profile/profile.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

struct heard {
  struct buf pieces; /* joined by \x1f */
  json_t *tools, *asked, *ran, *exits;
  size_t retries, permissions;
  char session[128];
};

static void on_news(void *ctx, const struct provider_news *news) {
  struct heard *h = ctx;
  const char *name = json_string_value(json_object_get(news->data, "name"));
  const char *state = json_string_value(json_object_get(news->data, "state"));
  switch (news->kind) {
  case NEWS_TEXT:
    assert_true(news->text.n > 0);
    buf_str(&h->pieces, news->text);
    buf_putc(&h->pieces, '\x1f');
    break;
  case NEWS_TOOL:
    /* a client that tells of tools only when they are over is heard then */
    if (name != NULL &&
        (state == NULL || strcmp(state, "start") == 0 || json_array_size(h->tools) == 0))
      json_array_append_new(h->tools, json_string(name));
    if (json_object_get(news->data, "argument") != NULL)
      json_array_append(h->ran, json_object_get(news->data, "argument"));
    if (json_object_get(news->data, "exit") != NULL)
      json_array_append(h->exits, json_object_get(news->data, "exit"));
    break;
  case NEWS_STEER: /* nobody was told anything */
    assert_true(false);
    break;
  case NEWS_RETRY:
    h->retries++;
    break;
  case NEWS_PERMISSION:
    h->permissions++;
    json_array_append(h->asked, json_object_get(news->data, "tool"));
    break;
  case NEWS_SESSION:
    snprintf(h->session, sizeof h->session, "%s",
             json_string_value(json_object_get(news->data, "provider_session")));
    break;
  case NEWS_THINKING:
  case NEWS_USAGE:
  case NEWS_NOTE:
    break;
  }
}

static const char *recordings(void) {
  static char path[1024];
  const char *dir = getenv("SEGUE_SHARED");
  snprintf(path, sizeof path, "%s/data/transcripts", dir ? dir : SEGUE_SOURCE_DIR "/../shared");
  return path;
}

static void fail_case(const json_t *expected, const char *what, const char *got) {
  fail_msg("%s: %s: got %s, expected %s", json_string_value(json_object_get(expected, "file")),
           what, got,
           json_dump_text(json_object_get(expected, what), JSON_COMPACT | JSON_ENCODE_ANY));
}

static void check_text(const json_t *expected, const char *what, const char *got) {
  const json_t *wanted = json_object_get(expected, what);
  const char *text = json_is_string(wanted) ? json_string_value(wanted) : "";
  if (wanted != NULL && strcmp(text, got) != 0)
    fail_case(expected, what, got);
}

static void check_number(const json_t *expected, const char *what, json_int_t got) {
  const json_t *wanted = json_object_get(expected, what);
  char text[32];
  snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, got);
  if (wanted != NULL && json_integer_value(wanted) != got)
    fail_case(expected, what, text);
}

static void check(const json_t *expected, const struct call_result *r, const struct heard *h) {
  const json_t *pieces = json_object_get(expected, "pieces");
  const json_t *usage = json_object_get(expected, "usage");
  const json_t *structured = json_object_get(expected, "structured");
  const char *message = json_string_value(json_object_get(expected, "message"));
  buf_auto_t joined = {0};
  check_text(expected, "class", r->class == CLASS_NONE ? "ok" : error_class_name(r->class));
  check_text(expected, "text", buf_c(&r->text.bytes));
  check_text(expected, "session", h->session);
  assert_string_equal(h->session, r->provider_session);
  check_number(expected, "retries", (json_int_t)h->retries);
  check_number(expected, "permissions", (json_int_t)h->permissions);
  if (json_object_get(expected, "asked") != NULL &&
      !json_equal(json_object_get(expected, "asked"), h->asked))
    fail_case(expected, "asked", "other tools");
  check_number(expected, "retry_after_ms", r->retry_after_ms);
  if (structured != NULL && !json_equal(structured, r->structured ? r->structured : json_null()))
    fail_case(expected, "structured", r->structured ? "another value" : "none");
  if (json_object_get(expected, "ran") != NULL &&
      !json_equal(json_object_get(expected, "ran"), h->ran))
    fail_case(expected, "ran", json_dump_text(h->ran, JSON_COMPACT));
  if (json_object_get(expected, "exits") != NULL &&
      !json_equal(json_object_get(expected, "exits"), h->exits))
    fail_case(expected, "exits", json_dump_text(h->exits, JSON_COMPACT));
  if (json_object_get(expected, "tools") != NULL &&
      !json_equal(json_object_get(expected, "tools"), h->tools))
    fail_case(expected, "tools", json_dump_text(h->tools, JSON_COMPACT));
  for (size_t i = 0; i < json_array_size(pieces); i++)
    buf_printf(&joined, "%s\x1f", json_string_value(json_array_get(pieces, i)));
  if (pieces != NULL && !str_eq(buf_view(&joined), buf_view(&h->pieces)))
    fail_case(expected, "pieces", buf_c(&h->pieces));
  json_t *told =
      json_pack("[O?O?]", json_object_get(r->usage, "input"), json_object_get(r->usage, "output"));
  if (usage != NULL && !json_equal(usage, told))
    fail_case(expected, "usage", json_dump_text(told, JSON_COMPACT));
  json_decref(told);
  if (message != NULL && strstr(r->message, message) == NULL)
    fail_case(expected, "message", r->message);
  assert_true((r->class == CLASS_NONE) == (r->message[0] == '\0'));
  assert_true(strchr(r->message, '\n') == NULL && strchr(r->message, '\033') == NULL);
}

static bool is_the_one(const json_t *expected, const struct transcript *t) {
  char hash[SHA256_HEX];
  const char *wanted = json_string_value(json_object_get(expected, "sha256"));
  sha256_hex(t->bytes.p, t->bytes.n, NULL, 0, hash);
  return strncmp(hash, wanted, strlen(wanted)) == 0;
}

static void run_case(const struct profile *profile, const json_t *expected, size_t *skipped) {
  AUTO(transcript_deinit) struct transcript t = {0};
  struct call_result r;
  struct heard h = {
      .tools = json_array(), .asked = json_array(), .ran = json_array(), .exits = json_array()};
  struct err err;
  char path[2048];
  enum transport transport = TRANSPORT_EXEC;
  const char *spoken = json_string_value(json_object_get(expected, "transport"));
  assert_true(spoken == NULL || transport_from_name(str_from(spoken), &transport));
  snprintf(path, sizeof path, "%s/%s", recordings(),
           json_string_value(json_object_get(expected, "file")));
  if (!transcript_load(&t, path, &err) || !is_the_one(expected, &t)) {
    *skipped += 1;
  } else {
    if (!replay(&t, profile, transport, on_news, &h, &r, &err))
      fail_msg("%s: %s", path, err.text);
    check(expected, &r, &h);
    call_result_deinit(&r);
  }
  json_decref(h.tools);
  json_decref(h.asked);
  json_decref(h.ran);
  json_decref(h.exits);
  buf_deinit(&h.pieces);
}

TEST(recordings_mean_what_they_say) {
  static const char *const names[] = {"claude",  "codex", "opencode", "gemini", "qwen",
                                      "copilot", "pi",    "acp",      "native"};
  AUTO(err_list_deinit) struct err_list errors = {0};
  struct profiles *profiles = profiles_load(NULL, &errors);
  size_t count = 0, skipped = 0;
  assert_non_null(profiles);
  for (size_t n = 0; n < ARRAY_LEN(names); n++) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/transcripts-expected/%s.yaml", SEGUE_SOURCE_DIR,
             names[n]);
    json_auto_t *cases = data_load(path);
    for (size_t i = 0; i < json_array_size(cases); i++, count++) {
      const json_t *expected = json_array_get(cases, i);
      const char *own = json_string_value(json_object_get(expected, "profile"));
      run_case(profiles_find(profiles, str_from(own ? own : names[n])), expected, &skipped);
    }
  }
  profiles_free(profiles);
  print_message("%zu recordings, %zu skipped\n", count, skipped);
  if (skipped == count)
    skip();
}
