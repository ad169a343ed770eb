/* A judge's reply to a checked value: where it was found, whether the whole schema holds. */
#include "judge/parse_reply.h"

#include "base/memory.h"
#include "judge/chain.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

static struct chain_schemas schemas;

struct reading_case {
  const char *structured, *text; /* ' for " in both; structured may be NULL */
  const char *where;             /* NULL: no value */
  bool valid;
  const char *says; /* a piece of `missing` or of the first error */
};

static const char in_report[] = "so {'reason':'it is','step':1}";

static const struct reading_case cases[] = {
    {"{'step':1,'reason':'r'}", "", "native", true, ""},
    {"{'step':1,'reason':'r'}", "{'step':2,'reason':'r'}", "native", true, ""},
    {"{'step':'1','reason':'r'}", "{'step':2,'reason':'r'}", "native", false, "step"},
    {"{'step':1}", "", "native", false, "reason"},
    {"{'step':1,'reason':'r','x':1}", "", "native", false, "x"},
    {"{'step':-1,'reason':'r'}", "", "native", false, "step"},
    {"{'step':1.5,'reason':'r'}", "", "native", false, "step"},
    {"[]", "", "native", false, ""},
    {"7", "", "native", false, ""},
    {NULL, "{'step':1,'reason':'r'}", "direct", true, ""},
    {NULL, "  {'reason':'r','step':0}\n", "direct", true, ""},
    {NULL, "```json\n{'step':1,'reason':'r'}\n```\n", "code_block", true, ""},
    {NULL, "<think>so</think>{'step':1,'reason':'r'}", "brace", true, ""},
    {NULL, "I say: {'step':1,'reason':'r'}", NULL, false, "give the JSON alone"},
    {NULL, "{'step':1,'reason':'it is'}", NULL, false, "stands in the report"},
    {NULL, "{'step':1,'reason':'r'}\n{'step':2,'reason':'r'}", NULL, false, "different rules"},
    {NULL, "{'step':1,'reason':'r','step':2}", NULL, false, "given twice"},
    {NULL, "{'step':1,'reason':'<one or two sentences from the evidence>'}", NULL, false,
     "leaves the form unfilled"},
    {NULL, "{'step':1,'reason':' '}", NULL, false, "leaves the form unfilled"},
    {"{'step':1,'reason':''}", "{'step':1,'reason':'r'}", NULL, false, "leaves the form unfilled"},
    {NULL, "{'step':1,'reason':'r'}\n{'step':2,'reas", NULL, false, "cut off"},
    {NULL, "{'step':1}", "direct", false, "reason"},
    {NULL, "{'step':1}\n{'step':2,'reason':'r'}", NULL, false, "different rules"},
    {NULL, "{'step':2,'reason':'r'} and {'note':1}", NULL, false, "give the JSON alone"},
    {NULL, "[{'step':'two'}]", "direct", false, ""},
    {NULL, "", NULL, false, "the reply is empty"},
    {NULL, " \n\t", NULL, false, "the reply is empty"},
    {NULL, "I cannot say.", NULL, false, "no JSON in the reply"},
    {NULL, "{'step':1,'reason':'it goes", NULL, false, "cut off"},
    {NULL, "[1]", NULL, false, ""},
    {NULL, "{'type':'object','properties':{'step':{}}}", NULL, false, ""}, /* the schema itself */
};

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
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const struct reading_case *c = &cases[i];
    json_auto_t *structured = c->structured ? data_json(c->structured) : NULL;
    char_auto_t *text = with_quotes(c->text), *report = with_quotes(in_report);
    struct parsed_reply r;
    parsed_reply_init(&r, schemas.judgment, "step", structured, str_from(text), str_from(report));
    const char *says = r.errors.count == 0 ? "" : r.errors.items[0].message;
    if (r.value == NULL)
      says = r.missing;
    if ((r.value == NULL) != (c->where == NULL) || r.valid != c->valid ||
        (c->where && strcmp(r.where, c->where) != 0))
      fail_msg("%s | %s: %s, valid %d, %s", c->structured ? c->structured : "", text,
               r.value ? r.where : "nothing", r.valid, says);
    const char *path = r.errors.count ? r.errors.items[0].path : "";
    if (strstr(says, c->says) == NULL && strstr(path, c->says) == NULL)
      fail_msg("%s | %s: %s: %s", c->structured ? c->structured : "", text, path, says);
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
