/* Warnings of schemas that are sound and still ask for trouble with a model. */
#include "schema/schema_lint.h"

#include "base/buf.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(warnings) {
  DATA_ROWS("schema/schema_lint/warnings.yaml", c, schema, warnings) {
    struct schema_errors found = {0};
    buf_auto_t all = {0};
    json_auto_t *doc = data_json(c.schema);
    schema_lint(doc, false, &found);
    for (size_t k = 0; k < found.count; k++)
      buf_printf(&all, "%s:%s ", found.items[k].path, found.items[k].keyword);
    if (strcmp(buf_c(&all), c.warnings) != 0)
      fail_msg("%s: %s", c.schema, buf_c(&all));
    schema_errors_deinit(&found);
    schema_lint(doc, true, &found);
    for (size_t k = 0; k < found.count; k++)
      assert_string_not_equal(found.items[k].keyword, "unbounded"); /* an invariant bounds it */
    schema_errors_deinit(&found);
  }
}

/* Branches that lead back to themselves double with each level; the look ends all the same. */
TEST(hostile_schemas_end) {
  AUTO(schema_errors_deinit) struct schema_errors found = {0};
  json_auto_t *doc =
      data_json("{'properties':{'a':{'$ref':'#/$defs/d'}},'required':['a'],'$defs':{'d':{"
                "'anyOf':[{'$ref':'#/$defs/d'},{'$ref':'#/$defs/d'},{'$ref':'#/$defs/e'}]},"
                "'e':{'allOf':[{'$ref':'#/$defs/d'},{'$ref':'#/$defs/d'}]}}}");
  schema_lint(doc, false, &found);
}
