/* A judge's reply to a checked value: where it was found, whether the whole schema holds. */
#include "judge/parse_reply.h"

#include "base/memory.h"
#include "judge/chain.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

static struct chain_schemas schemas;

static const char in_report[] = "so {'reason':'it is','step':1}";

static char *with_quotes(const char *text) {
  char *copy = strdup(text);
  for (char *p = copy; *p; p++)
    if (*p == '\'')
      *p = '"';
  return copy;
}

TEST(replies_are_read_and_checked) {
  struct err err = {0};
  assert_true(chain_schemas_init(&schemas, &err));
  DATA_ROWS("judge/parse_reply/replies_are_read_and_checked.yaml", c, structured, text, where,
            valid, says) {
    json_auto_t *structured = c.structured ? data_json(c.structured) : NULL;
    char_auto_t *text = with_quotes(c.text), *report = with_quotes(in_report);
    struct parsed_reply r;
    parsed_reply_init(&r, schemas.judgment, "step", structured, str_from(text), str_from(report));
    const char *says = r.errors.count == 0 ? "" : r.errors.items[0].message;
    if (r.value == NULL)
      says = r.missing;
    if ((r.value == NULL) != (c.where == NULL) || r.valid != data_true(c.valid) ||
        (c.where && strcmp(r.where, c.where) != 0))
      fail_msg("%s | %s: %s, valid %d, %s", c.structured ? c.structured : "", text,
               r.value ? r.where : "nothing", r.valid, says);
    const char *path = r.errors.count ? r.errors.items[0].path : "";
    if (strstr(says, c.says) == NULL && strstr(path, c.says) == NULL)
      fail_msg("%s | %s: %s: %s", c.structured ? c.structured : "", text, path, says);
    assert_true(r.valid == (r.value && r.errors.count == 0));
    parsed_reply_deinit(&r);
    parsed_reply_deinit(&r);
  }
  chain_schemas_deinit(&schemas);
}

TEST(the_evaluation_has_its_own_key) {
  struct err err = {0};
  struct parsed_reply r;
  assert_true(chain_schemas_init(&schemas, &err));
  parsed_reply_init(&r, schemas.evaluation, "matched_index", NULL,
                    STR("{\"matched_index\": 2, \"reason\": \"r\"}"), STR(""));
  assert_true(r.valid);
  assert_int_equal(json_integer_value(json_object_get(r.value, "matched_index")), 2);
  parsed_reply_deinit(&r);
  parsed_reply_init(&r, schemas.evaluation, "matched_index", NULL, (struct str){NULL, 0}, STR(""));
  assert_null(r.value);
  parsed_reply_deinit(&r);
  chain_schemas_deinit(&schemas);
}
