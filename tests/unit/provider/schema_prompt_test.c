/* The end of a prompt for a backend without an option for schemas. */

#include "provider/schema_prompt.h"
#include "support/data.h"
#include "support/test.h"

TEST(the_schema_stands_there_once) {
  DATA_ROWS("provider/schema_prompt/the_schema_stands_there_once.yaml", c, prompt, schema, form,
            language, wanted) {
    buf_auto_t prompt = {0};
    json_auto_t *schema = json_loads(c.schema, 0, NULL);
    const struct call_request request = {.schema = schema,
                                         .schema_as = data_among(c.form, "prompt types json"),
                                         .language = data_among(c.language, "english japanese")};
    buf_puts(&prompt, c.prompt);
    schema_prompt_append(&prompt, &request);
    assert_string_equal(buf_c(&prompt), c.wanted);
    schema_prompt_append(&prompt, &request);
    assert_string_equal(buf_c(&prompt), c.wanted);
  }
}
