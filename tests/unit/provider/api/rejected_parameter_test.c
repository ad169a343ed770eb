/* Servers' words about requests that they do not take, and what can be left out of them. */
#include "provider/api/rejected_parameter.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(parameters_are_found_by_field_and_by_words) {
  static const struct {
    const char *body, *param, *message, *found;
  } cases[] = {
      {"{\"temperature\":0}", "temperature", "no", "temperature"},
      {"{\"temperature\":0}", "", "`temperature` is deprecated for this model.", "temperature"},
      {"{\"temperature\":0}", "", "temperatures are high", NULL},
      {"{\"temperature\":0}", "messages", "temperature: too long", NULL},
      {"{\"temperature\":0}", "messages[0].content", "temperature: too long", NULL},
      {"{\"temperature\":0}", "body", "Unsupported value: 'temperature' is 0", "temperature"},
      {"{\"temperature\":0}", "unsupported_value", "temperature must be 1", "temperature"},
      {"{\"top_p\":1}", "temperature", "no", NULL},
      {"{\"reasoning\":{\"effort\":\"low\"}}", "reasoning.effort", "no", "reasoning"},
      {"{\"generationConfig\":{\"maxOutputTokens\":1}}", "",
       "at 'generation_config.max_output_tokens'", "maxOutputTokens"},
      {"{\"generationConfig\":{\"thinkingConfig\":{\"thinkingLevel\":\"low\"}}}", "",
       "Thinking level is not supported for this model.", "thinkingLevel"},
      {"{\"think\":\"low\"}", "", "\"llama3:8b\" does not support thinking", "think"},
      {"{\"options\":{\"num_ctx\":1}}", "", "num_ctx is not known", "num_ctx"},
      {"{\"max_tokens\":1}", "", "max_tokens: 8192 > 4096", NULL}, /* the one that is needed */
      {"{\"model\":\"m\",\"messages\":[]}", "model", "the model m is unknown", NULL},
      {"{\"text\":{}}", "text.format", "no", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct rejected_parameter refusal = {.param = cases[i].param,
                                               .message = cases[i].message};
    json_auto_t *body = json_loads(cases[i].body, 0, NULL);
    const char *found = rejected_parameter_parameter(&refusal, body, "max_tokens");
    if ((found == NULL) != (cases[i].found == NULL) ||
        (found != NULL && strcmp(found, cases[i].found) != 0))
      fail_msg("case %zu: %s", i, found ? found : "none");
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

TEST(words_about_the_schema_and_the_content) {
  static const struct {
    const char *param, *message;
    bool schema, content;
  } cases[] = {
      {"", "Invalid schema for response_format 'answer'", true, false},
      {"text.format.schema", "no", true, false},
      {"", "output_config.format: not supported", true, false},
      {"", "too many tools", true, false},
      {"", "prompt is too long: 300000 tokens > 200000 maximum", false, false},
      {"messages", "the schema in your prompt is odd", false, true},
      {"", "more information at example.org", false, false},
      {"model", "no", false, false},
      {"", "this model's maximum context length is 8192 tokens", false, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct rejected_parameter refusal = {.param = cases[i].param,
                                               .message = cases[i].message};
    if (rejected_parameter_is_about_schema(&refusal) != cases[i].schema ||
        rejected_parameter_is_about_content(&refusal) != cases[i].content)
      fail_msg("case %zu", i);
  }
}
