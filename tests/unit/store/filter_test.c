/* Which sessions a list wants: the words for it, refusals, both ends of a log, and all of it. */

#include "store/filter.h"
#include "support/folder.h"
#include "support/log_ref.h"
#include "support/test.h"

#include <string.h>

enum { NOW_MS = 1000000000, DAY_MS = 86400000 };

static const struct {
  const char *text;
  int64_t since_ms;
} times[] = {
    {"0s", NOW_MS},
    {"90m", NOW_MS - 90 * 60000},
    {"12h", NOW_MS - DAY_MS / 2},
    {"3d", NOW_MS - 3 * DAY_MS},
    {"1w", NOW_MS - 7 * DAY_MS},
    {"1970-01-03", 2 * DAY_MS},
    {"2024-02-29", 1709164800000},
    {"1970-01-01T00:00:01.500Z", 1500},
};

static const char *const no_times[] = {
    "",
    "d",
    "90",
    "-1h",
    "1.5h",
    "3y",
    "1000000s",
    "1 h",
    "2026-13-01",
    "2026-02-30",
    "2025-02-29",
    "2026-1-31",
    "2026/01/31",
    "1970-01-01T00:00:00Z",
    "1970-01-01T25:00:00.000Z",
    "yesterday",
};

TEST(times_can_be_written_in_several_ways) {
  struct err err = {0};
  for (size_t i = 0; i < ARRAY_LEN(times); i++) {
    int64_t since_ms = -1;
    if (!filter_since(times[i].text, NOW_MS, &since_ms, &err) || since_ms != times[i].since_ms)
      fail_msg("%s: %lld", times[i].text, (long long)since_ms);
  }
}

TEST(other_times_are_refused) {
  for (size_t i = 0; i < ARRAY_LEN(no_times); i++) {
    struct err err = {0};
    int64_t since_ms;
    if (filter_since(no_times[i], NOW_MS, &since_ms, &err))
      fail_msg("\"%s\" is taken for a time", no_times[i]);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.text, no_times[i]));
  }
}

static const struct {
  struct filter select;
  const char *text; /* of the error; NULL: it is fine */
} checks[] = {
    {{0}, NULL},
    {{.method = "ai_judge"}, NULL},
    {{.statuses = "running,paused,complete"}, NULL},
    {{.method = "tag_fallback"}, "method tag_fallback: write"},
    {{.method = ""}, "method : write"},
    {{.statuses = ""}, "status: an empty word is no status: write queued, running, waiting"},
    {{.statuses = "running,"}, "status: an empty word is no status: write"},
    {{.statuses = "run"}, "there is no status \"run\": did you mean running? write queued, "},
    {{.statuses = "foo"},
     "no status \"foo\": write queued, running, waiting, paused, needs_input, stopped, open, "
     "complete, abort, rule_no_match, max_movements, cancelled, failed, bad or "
     "empty"},
    {{.statuses = "running, paused"}, "there is no status \" paused\""},
    {{.method = "when", .statuses = "done"}, "there is no status \"done\""},
};

TEST(words_that_mean_nothing_are_refused) {
  for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
    struct err err = {0};
    bool ok = filter_check(&checks[i].select, &err);
    if (ok != (checks[i].text == NULL))
      fail_msg("check %zu: %s", i, ok ? "is accepted" : err.text);
    if (!ok && strstr(err.text, checks[i].text) == NULL)
      fail_msg("check %zu: %s", i, err.text);
  }
}

TEST(each_word_leaves_some_out) {
  static const struct filter none = {0};
  static const struct filter some[] = {
      {.statuses = "open"}, {.since_ms = 1},   {.workflow = "w"},
      {.method = "when"},   {.provider = "p"},
  };
  assert_false(filter_is_set(&none));
  for (size_t i = 0; i < ARRAY_LEN(some); i++)
    assert_true(filter_is_set(&some[i]));
}

TEST(both_ends_of_a_log_may_decide) {
  struct summary b = {.started = "1970-01-02T00:00:00.000Z"}, unnamed = b, damaged = b;
  char name[] = "review";
  b.workflow = name;
  damaged.started[0] = '\0';
  assert_true(filter_wants_summary(&(struct filter){0}, &unnamed));
  assert_true(filter_wants_summary(&(struct filter){.since_ms = DAY_MS}, &b));
  assert_false(filter_wants_summary(&(struct filter){.since_ms = DAY_MS + 1}, &b));
  assert_false(filter_wants_summary(&(struct filter){.since_ms = 1}, &damaged));
  assert_true(filter_wants_summary(&(struct filter){.workflow = "review"}, &b));
  assert_false(filter_wants_summary(&(struct filter){.workflow = "revie"}, &b));
  assert_false(filter_wants_summary(&(struct filter){.workflow = "review"}, &unnamed));
}

/* One line is not JSON, others have the words in members that do not count. */
static const char log_text[] =
    "{\"type\":\"call_start\",\"provider\":\"codex\"}\n"
    "{\"type\":\"judgment\",\"method\":\"phase1_tag\"}\n"
    "{\"type\":\"judgment\",\"method\":\n"
    "{\"type\":\"judgment\",\"note\":\"ai_judge\",\"provider\":\"claude\"}\n"
    "{\"type\":\"call_end\",\"provider\":\"gemini\"}\n"
    "{\"type\":\"call_start\",\"provider\":7}\n";

static const struct {
  struct filter select;
  bool wanted;
} wants[] = {
    {{0}, true},
    {{.workflow = "not looked at"}, true},
    {{.method = "phase1_tag"}, true},
    {{.provider = "codex"}, true},
    {{.method = "phase1_tag", .provider = "codex"}, true},
    {{.method = "ai_judge"}, false},
    {{.provider = "claude"}, false},
    {{.provider = "gemini"}, false},
    {{.method = "ai_judge", .provider = "codex"}, false},
    {{.method = "phase1_tag", .provider = "claude"}, false},
};

TEST(a_whole_log_may_decide) {
  char *dir = folder_make();
  char path[512];
  folder_put(dir, "log", str_from(log_text));
  print_into(path, sizeof path, "%s/log", dir);
  for (size_t i = 0; i < ARRAY_LEN(wants); i++)
    if (filter_wants_log(&wants[i].select, log_ref(path)) != wants[i].wanted)
      fail_msg("log %zu", i);
  folder_remove(dir);
  assert_false(filter_wants_log(&(struct filter){.method = "when"}, log_ref(path)));
}
