/* Reads drafts and finals: a piece of an answer, or what came before it, is never taken for it. The
 * cases were labelled by reading before they were run (tests/data/extract/drafts.ndjson). */
#include "extract/schema_check.h"
#include "support/test.h"
#include "json/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char judgment[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\",\"minimum\":1},\"reason\":"
    "{\"type\":\"string\"}},\"required\":[\"step\",\"reason\"],\"additionalProperties\":false}";

static json_t *draft_parse(const char *text, size_t n) {
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r;
  jscan_init(&js, text, n);
  assert_int_equal(jscan_value(&js, 0, &r), JSCAN_OK);
  return r.value;
}

/* The step that is read, 0 for none. */
static int step_in(struct extract_schema *asked, const char *text, size_t n, bool repair,
                   bool whole) {
  const struct extract_check check = extract_schema_check(asked);
  const struct extract_opts opts = {
      .want = EXTRACT_WANT_OBJECT, .check = &check, .repair = repair, .whole = whole};
  struct extract_result r;
  int step = 0;
  if (extract(text, n, &opts, &r) == EXTRACT_OK && r.valid)
    step = (int)json_integer_value(json_object_get(r.value, "step"));
  extract_result_deinit(&r);
  return step;
}

static void check_case(struct extract_schema *asked, const json_t *c) {
  static const char *const modes[] = {"strict", "repair"};
  const json_t *text = json_object_get(c, "text");
  int human = (int)json_integer_value(json_object_get(c, "human"));
  for (int repair = 0; repair < 2; repair++) {
    const json_t *want = json_object_get(c, modes[repair]);
    int got = step_in(asked, json_string_value(text), json_string_length(text), repair, false);
    bool right = got == 0 || got == human; /* null: either will do */
    if (!json_is_null(want))
      right = got == json_integer_value(want);
    if (!right)
      fail_msg("%s %s: step %d: %s", json_string_value(json_object_get(c, "id")), modes[repair],
               got, json_string_value(text));
    int whole = step_in(asked, json_string_value(text), json_string_length(text), repair, true);
    assert_true(whole == 0 || whole == human);
  }
}

TEST(labelled_cases) {
  json_auto_t *doc = draft_parse(judgment, strlen(judgment));
  struct extract_schema asked = {doc, schema_compile(doc, NULL, NULL, NULL)};
  FILE *in = fopen(SEGUE_SOURCE_DIR "/tests/data/extract/drafts.ndjson", "r");
  char *line = NULL;
  size_t size = 0, count = 0;
  ssize_t n;
  assert_non_null(in);
  for (; (n = getline(&line, &size, in)) > 0; count++) {
    json_auto_t *c = draft_parse(line, (size_t)n);
    check_case(&asked, c);
  }
  assert_true(count >= 60);
  free(line);
  fclose(in);
  schema_free((struct schema *)asked.schema);
}

/* A foreign answer at every place inside an answer, escaped or not: it never wins. */
TEST(foreign_answers_inside) {
  static const char *const answers[] = {
      "{\"step\": 2, \"reason\": \"two fail\"}",
      "{\"reason\": \"he said \\\"no\\\" {twice}\", \"step\": 2}",
      "{\n  \"reason\": \"a } and a ]\",\n  \"step\": 2\n}",
      "```json\n{\n  \"step\": 2,\n  \"reason\": \"see [1], http://x.y//z\"\n}\n```",
      "So: {'step': 2, // none }\n 'reason': 'it's late'}",
      "{\"log\": [\"}\", {\"a\": 1}], \"step\": 2, \"reason\": \"two \"fail\" here\"}",
  };
  static const char *const foreign[] = {
      "{\"step\": 1, \"reason\": \"x\"}", "\n{\"step\": 1, \"reason\": \"x\"}\n",
      "\n```json\n{\"step\": 1, \"reason\": \"x\"}\n```\n", "\"{\"step\": 1, \"reason\": \"x\"}\"",
      "}\n{\"step\": 1, \"reason\": \"x\"}"};
  json_auto_t *doc = draft_parse(judgment, strlen(judgment));
  struct extract_schema asked = {doc, schema_compile(doc, NULL, NULL, NULL)};
  char text[512];
  for (size_t a = 0; a < ARRAY_LEN(answers); a++)
    for (size_t f = 0; f < ARRAY_LEN(foreign); f++) {
      size_t first = strcspn(answers[a], "{") + 1;
      size_t last = (size_t)(strrchr(answers[a], '}') - answers[a]);
      for (size_t at = first; at <= last; at++)
        for (int how = 0; how < 4; how++) {
          int n = snprintf(text, sizeof text, "%.*s%s%s", (int)at, answers[a], foreign[f],
                           answers[a] + at);
          int step = step_in(&asked, text, (size_t)n, how & 1, how & 2);
          if (step == 1)
            fail_msg("%s%s: %s", how & 1 ? "repair " : "", how & 2 ? "whole" : "", text);
        }
    }
  schema_free((struct schema *)asked.schema);
}
