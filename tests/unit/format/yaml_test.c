/* YAML with marks: types, places, what is refused and where, and the bounds on hostile files. */
#include "format/yaml.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/memory.h"
#include "support/data.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *parse_to_text(struct str text, size_t max_bytes) {
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  struct buf out = {0};
  const struct yaml_node *root = yaml_parse(&arena, "f", text, max_bytes, &errors);
  for (size_t i = 0; i < errors.count; i++)
    buf_printf(&out, "%s%d:%d: %s", i ? "\n" : "", errors.items[i].line, errors.items[i].column,
               errors.items[i].text);
  if (root == NULL)
    assert_true(errors.count > 0);
  if (root && errors.count == 0) {
    json_auto_t *v = yaml_to_json(root);
    char_auto_t *json = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_puts(&out, json);
  }
  return buf_take(&out);
}

TEST(values_follow_the_core_schema) {
  DATA_ROWS("format/yaml/values_follow_the_core_schema.yaml", c, yaml, json) {
    char_auto_t *got = parse_to_text(str_from(c.yaml), 4096);
    if (strcmp(got, c.json) != 0)
      fail_msg("%s\nexpected %s\ngot      %s", c.yaml, c.json, got);
  }
}

static const struct rejected_parameter {
  const char *yaml;
  const char *errors; /* the start of the messages, each in its line */
} refusals[] = {
    {"", "1:1: the file is empty: write at least one key and its value"},
    {" \n\n", "1:1: the file is empty: write at least one key and its value"},
    {"# nothing\n", "1:1: the file is empty: write at least one key and its value"},
    {"---\n...\n", NULL}, /* a document with nothing in it is null */
    {"a: 1\na: 2\nb: 1\nb: 2\n", "2:1: the key a appears twice (first in line 1): keep one\n"
                                 "4:1: the key b appears twice (first in line 3): keep one"},
    {"{a: 1, 'a': 2}", "1:8: the key a appears twice"},
    {"x: &x {a: 1}\ny:\n  <<: *x\n", "3:3: << (merge) is not supported"},
    {"a:\n\tb: 1\n", "2:1: a tab stands in the indentation: YAML wants spaces only"},
    {"a:\n  b: 1\n \tc: 2\n", "3:2: a tab stands in the indentation"},
    {"a: 1\n---\nb: 2\n", "2:1: a second document begins here"},
    {"a: [1, 2\nb: 3\n",
     "2:2: did not find expected ',' or ']', while parsing a flow sequence that "
     "begins in line 1: check"},
    {"a: 'open\n",
     "1:4: found unexpected end of stream, while scanning a quoted scalar that begins "
     "here: close it"},
    {"a: b: c", "1:5: a text that has \": \" in it needs quotes around it"},
    {"a: @x", "1:4: found character that cannot start any token"},
    {"a: *x", "1:4: *x refers to no anchor"},
    {"a: &x [*x]", "1:8: *x refers to no anchor that stands complete before it"},
    {"a: !thing 1", "1:4: the tag !thing is not used here: remove it"},
    {"a: !!binary abc", "1:4: the tag tag:yaml.org,2002:binary"},
    {"[a]: 1", "1:1: a key must be a text, not a list"},
    {"? \n: 1", "1:2: a key is empty"},
    {"a: .inf\nb: .NaN", "1:4: not a finite number: quote it if it is a text\n2:4: not a finite"},
    {"a: 99999999999999999999", "1:4: the number is too large"},
    {"a: 1e999", "1:4: the number is too large"},
    {"a: \"x\\0y\"", "1:4: the text holds a NUL character"},
    {"a: \"\\ud83d\\ude00\"", "1:"}, /* outside JSON libyaml decides */
    {"a: x\x01y", "1:5: the control character U+0001 may not stand here"},
    {"a: 1\nb: é\xC2\x9B[31m", "2:5: the control character U+009B"},
    {"a: 1\nb: \xff", "2:4: the bytes here are not UTF-8"},
    {"a: \xC3", "1:4: the bytes here are not UTF-8"},
    {"{\"a\": 1, \"a\": 2}", "1:10: the key a appears twice"},
    {"{\"a\": \"\\u0000\"}", "1:7: the text holds a NUL character"},
    {"{\"a\": 1", "1:1: did not find expected ',' or '}', while parsing a flow mapping that begins "
                  "here: close it"},
};

TEST(refusals_name_the_place) {
  for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
    char_auto_t *got = parse_to_text(str_from(refusals[i].yaml), 4096);
    const char *want = refusals[i].errors ? refusals[i].errors : "null";
    if (strncmp(got, want, strlen(want)) != 0)
      fail_msg("%s\nexpected %s\ngot      %s", refusals[i].yaml, want, got);
  }
  char *got = parse_to_text((struct str){"a: 1\nb\0c", 8}, 4096);
  assert_string_equal(got, "2:2: a NUL byte stands here, so this is not a text file: save it as "
                           "UTF-8 text");
  free(got);
  got = parse_to_text(STR("a: 12345"), 7);
  assert_non_null(strstr(got, "larger than 7 bytes"));
  free(got);
}

static void repeat(struct buf *b, const char *s, unsigned times) {
  while (times-- > 0)
    buf_puts(b, s);
}

/* Each hostile text is refused, and quickly: the test's own time limit is the proof. */
TEST(hostile_files_are_refused) {
  buf_auto_t text = {0};
  buf_puts(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
  for (int i = 1; i < 12; i++) {
    buf_printf(&text, "a%d: &a%d [", i, i);
    for (int k = 0; k < 10; k++)
      buf_printf(&text, "%s*a%d", k ? ", " : "", i - 1);
    buf_puts(&text, "]\n");
  }
  char *got = parse_to_text(buf_view(&text), LIMIT_WORKFLOW_BYTES);
  assert_non_null(strstr(got, "more than 200000 values, aliases expanded"));
  free(got);

  buf_clear(&text); /* few nodes, many bytes */
  buf_puts(&text, "a: &a ");
  repeat(&text, "0123456789abcdef", 40000);
  buf_puts(&text, "\nb: [*a");
  repeat(&text, ", *a", 1000);
  buf_puts(&text, "]\n");
  got = parse_to_text(buf_view(&text), LIMIT_WORKFLOW_BYTES);
  assert_non_null(strstr(got, "use fewer aliases"));
  free(got);

  static const char *const nests[] = {"[", "{a: ", "- ", "? "};
  for (size_t i = 0; i < ARRAY_LEN(nests); i++) {
    buf_clear(&text);
    repeat(&text, nests[i], 10000);
    got = parse_to_text(buf_view(&text), LIMIT_WORKFLOW_BYTES);
    assert_non_null(strstr(got, "nested more than 64 deep"));
    free(got);
  }

  buf_clear(&text); /* depth through aliases */
  buf_puts(&text, "a0: &a0 [1]\n");
  for (int i = 1; i < 100; i++)
    buf_printf(&text, "a%d: &a%d [*a%d]\n", i, i, i - 1);
  got = parse_to_text(buf_view(&text), LIMIT_WORKFLOW_BYTES);
  assert_non_null(strstr(got, "nested more than 64 deep"));
  free(got);

  buf_clear(&text); /* many keys: no quadratic search */
  for (int i = 0; i < 60000; i++)
    buf_printf(&text, "key%d: 1\n", i);
  got = parse_to_text(buf_view(&text), LIMIT_WORKFLOW_BYTES);
  assert_true(got[0] == '{');
  free(got);
}

TEST(depth_64_is_fine) {
  buf_auto_t text = {0};
  repeat(&text, "[", LIMIT_YAML_DEPTH);
  repeat(&text, "]", LIMIT_YAML_DEPTH);
  char_auto_t *got = parse_to_text(buf_view(&text), 4096);
  assert_int_equal(strlen(got), 2 * LIMIT_YAML_DEPTH);
}

TEST(places_are_characters_from_one) {
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct yaml_node *root = yaml_parse(
      &arena, "f", STR("é: 日本 x\nb: 'quo ted'\nc: \"e\\tsc\"\nd:\n  - |\n    block\n  - - two\n"),
      4096, &errors);
  static const struct {
    const char *key;
    size_t offset;
    int line, column;
  } cases[] = {
      {"é", 0, 1, 4}, {"é", 6, 1, 6}, {"é", 7, 1, 7}, {"b", 0, 2, 5},   {"b", 4, 2, 9},
      {"c", 0, 3, 4}, {"c", 3, 3, 4}, {"d", 0, 5, 3}, {"b", 99, 2, 12},
  };
  assert_non_null(root);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    int line, column;
    const struct yaml_node *node = yaml_get(root, cases[i].key);
    assert_non_null(node);
    yaml_place(node, cases[i].offset, &line, &column);
    assert_int_equal(line, cases[i].line);
    assert_int_equal(column, cases[i].column);
  }
  const struct yaml_node *d = yaml_get(root, "d");
  assert_int_equal(d->items[0]->line, 5);
  assert_int_equal(d->items[0]->column, 5);
  assert_int_equal(d->items[1]->items[0]->column, 7);
  assert_null(yaml_get(root, "nope"));
  assert_null(yaml_get(d, "nope"));
}

/* More keys than are compared one by one. */
TEST(many_keys_are_told_apart) {
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  buf_auto_t text = {0};
  for (int i = 1; i <= 100; i++)
    buf_printf(&text, "key%d: %d\n", i, i);
  buf_puts(&text, "key3: 0\nkey101: 0\nkey99: 0\nkey101: 0\n");
  const struct yaml_node *root = yaml_parse(&arena, "f", buf_view(&text), text.n, &errors);
  assert_non_null(root);
  assert_int_equal(root->count, 101);
  assert_int_equal(errors.count, 3);
  static const int lines[][2] = {{101, 3}, {103, 99}, {104, 102}}; /* where, first in */
  for (size_t i = 0; i < 3; i++) {
    char first[40];
    print_into(first, sizeof first, "(first in line %d)", lines[i][1]);
    assert_int_equal(errors.items[i].line, lines[i][0]);
    assert_non_null(strstr(errors.items[i].text, first));
  }
}

TEST(yaml_load_gives_the_first_error) {
  struct err err = {0};
  json_auto_t *v = yaml_load("s.yaml", STR("a: [1]"), 100, &err);
  assert_int_equal(json_array_size(json_object_get(v, "a")), 1);
  assert_null(yaml_load("s.yaml", STR("a: 1\na: 2"), 100, &err));
  assert_string_equal(err.file, "s.yaml");
  assert_int_equal(err.line, 2);
}
