/* Tests that what is written as YAML is read back as the same value. */
#include "format/yaml_write.h"
#include "support/test.h"

#include "base/arena.h"
#include "base/limits.h"
#include "format/json_value.h"
#include "format/yaml.h"

#include <string.h>

static json_t *again(const json_t *value) {
  buf_auto_t text = {0};
  struct err err;
  yaml_write(value, &text);
  json_t *read = yaml_load("written", buf_view(&text), LIMIT_WORKFLOW_BYTES, &err);
  if (read == NULL || !json_same(read, value))
    print_message("%s\n%s", read ? "another value" : err.text, buf_c(&text));
  return read;
}

TEST(values_are_the_same_when_they_are_read) {
  static const char *const values[] = {
      "{}",
      "[]",
      "{\"a\": {}, \"b\": []}",
      "[[], {}, [[1, 2], {\"a\": [{}]}]]",
      "[{\"a\": 1, \"b\": [{\"c\": \"d\"}, 3]}, [\"x\"], null, true, 1.5, -2]",
      "{\"true\": \"true\", \"1\": \"1\", \"~\": \"~\", \"No\": \"No\", \"a: b\": \"a: b\"}",
      "{\"a\": \"line\\nline\", \"b\": \"line\\n\\n line\\n\", \"c\": \"x\\n\\n\\n\", \"d\": "
      "\"\\n\"}",
      "{\"a\": \" x\\ny\", \"b\": \"\\tx\\ny\", \"c\": \"x\\n\\ty \\n z\", \"d\": \"x\\r\\ny\"}",
      "[\"x\\n\\n\", \"- a\\n- b\", \"# a\", \"a #b\", \"{x}\", \"[x]\", \"&a\", \"*a\", \"!a\", "
      "\"%a\", \"@a\"]",
      "[\"\", \" \", \"'\", \"\\\"\", \"\\\\\", \"\\u007f\\u0085\\u2028\\ufeff\", \"\\u0001\", "
      "\"a\\u0001\\nb\"]",
      "{\"\\u8a08\\u753b\": \"\\u8a08\\u753b\\u3092\\n\\u7acb\\u3066\\u308b\\n\", \"e\": "
      "\"\\ud83d\\ude00\"}",
      "{\"rules\": [{\"condition\": \"all(\\\"a\\\", \\\"b\\\")\", \"next\": \"COMPLETE\"}]}",
      "{\"long\": [\"aaaaaaaaaaaaaaaaaaaaaaaaaaaa\", \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\", "
      "\"cccccccccccc\"]}",
      "[1e300, 0.1, 12345678901234567, \"1e3\", \"0x10\", \".5\", \"null\", \"Null\", \"nul\", "
      "\"y\"]",
  };
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    json_auto_t *value = json_loads(values[i], 0, NULL);
    assert_non_null(value);
    json_auto_t *read = again(value);
    assert_non_null(read);
    assert_true(json_same(read, value));
  }
}

TEST(a_person_can_read_it) {
  json_auto_t *value =
      json_pack("{ss s[{ss s[ss] ss}]}", "name", "review", "movements", "name", "look", "policy",
                "small", "strict", "instruction", "Look at it.\nSay why.\n");
  buf_auto_t text = {0};
  yaml_write(value, &text);
  assert_string_equal(buf_c(&text), "name: review\nmovements:\n  - name: look\n"
                                    "    policy: [small, strict]\n    instruction: |\n"
                                    "      Look at it.\n      Say why.\n");
}
