/* Servers' words about requests that they do not take, and what can be left out of them. */
#include "provider/api/rejected_parameter.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(parameters_are_found_by_field_and_by_words) {
  DATA_ROWS("provider/api/rejected_parameter/parameters_are_found_by_field_and_by_words.yaml", c,
            body, param, message, found) {
    const struct rejected_parameter refusal = {.param = c.param, .message = c.message};
    json_auto_t *body = json_loads(c.body, 0, NULL);
    const char *found = rejected_parameter_parameter(&refusal, body, "max_tokens");
    if ((found == NULL) != (c.found == NULL) || (found != NULL && strcmp(found, c.found) != 0))
      fail_msg("case %zu: %s", c.at, found ? found : "none");
  }
}

TEST(a_parameter_is_left_out_wherever_it_stands) {
  json_auto_t *body = json_loads("{\"temperature\":1,\"options\":{\"temperature\":1},"
                                 "\"generationConfig\":{\"temperature\":1,\"seed\":2}}",
                                 0, NULL);
  json_auto_t *left = json_loads("{\"generationConfig\":{\"seed\":2}}", 0, NULL);
  rejected_parameter_leave_out(body, "temperature");
  assert_true(json_equal(body, left));
}

TEST(words_about_the_schema_and_the_model) {
  DATA_ROWS("provider/api/rejected_parameter/words_about_the_schema_and_the_model.yaml", c, param,
            message, schema, model) {
    const struct rejected_parameter refusal = {.param = c.param, .message = c.message};
    if (rejected_parameter_is_about_schema(&refusal) != data_true(c.schema) ||
        rejected_parameter_is_about_model(&refusal) != data_true(c.model))
      fail_msg("case %zu", c.at);
  }
}
