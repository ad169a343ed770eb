/* Mends broken texts of many kinds, labelled before they were run (tests/data/extract/mend.ndjson),
 * and random values with random damage: the value comes out, or nothing. */
#include "extract/extract.h"
#include "support/data.h"
#include "json/scan.h"

#include "base/buf.h"
#include "base/memory.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_PERCENT = 92, WRONG_PERCENT = 3 }; /* of the labelled texts */

static json_t *mend_parse(const char *text, size_t n) {
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r;
  jscan_init(&js, text, n);
  assert_int_equal(jscan_value(&js, 0, &r), JSCAN_OK);
  return r.value;
}

/* Numbers by value. */
static bool mend_same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b))
    return json_number_value(a) == json_number_value(b);
  if (json_typeof(a) != json_typeof(b) || json_array_size(a) != json_array_size(b) ||
      json_object_size(a) != json_object_size(b))
    return false;
  for (size_t i = 0; i < json_array_size(a); i++)
    if (!mend_same(json_array_get(a, i), json_array_get(b, i)))
      return false;
  const char *key;
  size_t n;
  json_t *member;
  json_object_keylen_foreach((json_t *)a, key, n, member) {
    const json_t *other = json_object_getn(b, key, n);
    if (other == NULL || !mend_same(member, other))
      return false;
  }
  return json_is_object(a) || json_is_array(a) || json_equal(a, b);
}

static json_t *mended(const char *text, size_t n, enum extract_want want) {
  const struct extract_opts opts = {.want = want, .repair = true};
  AUTO(extract_result_deinit) struct extract_result r;
  (void)extract(text, n, &opts, &r);
  json_t *value = json_incref(r.value);
  return value;
}

static bool is_label(const json_t *c, const json_t *value) {
  const json_t *accept = json_object_get(c, "accept");
  bool right = mend_same(json_object_get(c, "expected"), value);
  for (size_t i = 0; i < json_array_size(accept); i++)
    right = right || mend_same(json_array_get(accept, i), value);
  return right;
}

/* Brackets of full width open a value where the text or a fence begins, never within prose. */
TEST(full_width_brackets) {
  static const struct {
    const char *text, *value; /* NULL: nothing may come out */
  } cases[] = {{"｛\"a\"：1，\"b\"：［1，2］｝", "{\"a\":1,\"b\":[1,2]}"},
               {"［1，2］", "[1,2]"},
               {"Here:\n```json\n｛\"a\"：1｝\n```", "{\"a\":1}"},
               {"｛注意｝", NULL},
               {"［注］これは", NULL},
               {"それは｛\"a\"：1｝です", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_auto_t *value = mended(cases[i].text, strlen(cases[i].text), EXTRACT_WANT_ANY);
    json_auto_t *wanted =
        cases[i].value ? mend_parse(cases[i].value, strlen(cases[i].value)) : NULL;
    assert_true(wanted == NULL ? value == NULL : value != NULL && mend_same(wanted, value));
  }
}

/* A repair never rewrites what stands within a string, whatever its quotes. */
TEST(strings_stay_as_they_are) {
  static const struct {
    const char *text, *value; /* NULL: nothing may come out */
  } cases[] = {
      {"{\"sql\": `select 1; drop table x;`, \"n\": 1}",
       "{\"sql\": \"select 1; drop table x;\", \"n\": 1}"},
      {"{\"t\": `时间：10，done`}", "{\"t\": \"时间：10，done\"}"},
      {"{«a»: «x；y», «b»: 1}", "{\"a\": \"x；y\", \"b\": 1}"},
      {"{n: 1, code: \"if (x) {\"};", "{\"n\": 1, \"code\": \"if (x) {\"}"},
      {"{\\\"path\\\": \\\"f() {\\\"}", "{\"path\": \"f() {\"}"},
      {"{\"cmd\": \"gcc \\\n  a.c\"}", "{\"cmd\": \"gcc \\\\\\n  a.c\"}"},
      {"{「why」: 「ok」}", "{\"why\": \"ok\"}"},
      {"{\"a\": \"x\", b：1}", "{\"a\": \"x\", \"b\": 1}"},
      {"{\"a\": 0x1F}", "{\"a\": 31}"},
      {"<function=f><parameter=path>\na.c\n</parameter><parameter=n>\n3\n</parameter></function>",
       "{\"path\": \"a.c\", \"n\": \"3\"}"},
      {"<invoke name=\"f\"><parameter name=\"path\">a.c</parameter></invoke>",
       "{\"path\": \"a.c\"}"},
      {"call:f{path:<|\"|>a.c<|\"|>}", "{\"path\": \"a.c\"}"},
      {"｛＂a＂：＂x＂，＂n＂：１｝", "{\"a\": \"x\", \"n\": 1}"},
      {"{＂a＂：＂x，y＂，＂b＂：［1，2］}", "{\"a\": \"x，y\", \"b\": [1, 2]}"},
      {"{「a」：「x，y」，「b」：1}", "{\"a\": \"x，y\", \"b\": 1}"},
      {"{『a』: 『x; y』, \"b\": 2}", "{\"a\": \"x; y\", \"b\": 2}"},
      {"{\"a\": `x {y}; z`, b: 2}", "{\"a\": \"x {y}; z\", \"b\": 2}"},
      {"const x = {n: 1, s: \"a; b\"};", "{\"n\": 1, \"s\": \"a; b\"}"},
      {"{\"a\\nb\": 1, \"c\": \"d\",}", "{\"a\\nb\": 1, \"c\": \"d\"}"},
      {"{\\\"k\\\": \\\"a \\\\\\\"q\\\\\\\" b\\\"}", "{\"k\": \"a \\\"q\\\" b\"}"},
      {"{\"r\":\"{\\\\\"a\\\\\":1}\",\"n\":1}", "{\"r\": \"{\\\"a\\\":1}\", \"n\": 1}"},
      {"{\"r\":\"[\\\\\",\"n\":1,}", "{\"r\": \"[\\\\\", \"n\": 1}"},
      {"{\"cmd\": \"a \\\n b\", }", "{\"cmd\": \"a \\\\\\n b\"}"},
      {"{\"a\": «он сказал; да», \"b\": 1,}", "{\"a\": \"он сказал; да\", \"b\": 1}"},
      {"{\"a\": “x；y”; \"b\": 1}", "{\"a\": \"x；y\", \"b\": 1}"},
      {"{a：1，b：「二」}", "{\"a\": 1, \"b\": \"二\"}"},
      {"{\"a\": 0xff, \"b\": 1}", "{\"a\": 255, \"b\": 1}"},
      {"<function=f><parameter=a>1</parameter></function><function=f><parameter=a>2</parameter></"
       "function>",
       NULL},
      {"<invoke name=\"f\"><parameter name=\"a\">cut", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_auto_t *value = mended(cases[i].text, strlen(cases[i].text), EXTRACT_WANT_ANY);
    json_auto_t *wanted =
        cases[i].value ? mend_parse(cases[i].value, strlen(cases[i].value)) : NULL;
    if (wanted == NULL ? value != NULL : value == NULL || !mend_same(wanted, value))
      fail_msg("%s", cases[i].text);
  }
}

TEST(labelled_texts) {
  FILE *in = fopen(SEGUE_SOURCE_DIR "/tests/data/extract/mend.ndjson", "r");
  char *line = NULL;
  size_t size = 0, count = 0, exact = 0, wrong = 0;
  ssize_t n;
  assert_non_null(in);
  for (; (n = getline(&line, &size, in)) > 0; count++) {
    json_auto_t *c = mend_parse(line, (size_t)n);
    const json_t *text = json_object_get(c, "text"), *expected = json_object_get(c, "expected");
    enum extract_want want = EXTRACT_WANT_ANY;
    if (!json_is_null(expected))
      want = json_is_object(expected) ? EXTRACT_WANT_OBJECT : EXTRACT_WANT_ARRAY;
    json_auto_t *value = mended(json_string_value(text), json_string_length(text), want);
    bool right = value ? is_label(c, value) : json_is_null(expected);
    exact += right;
    if (!right && value != NULL) {
      wrong++;
      print_message("wrong: %s\n", json_string_value(text));
    }
  }
  print_message("%zu texts: exact %zu, wrong %zu\n", count, exact, wrong);
  assert_true(count >= 150);
  assert_true(exact * 100 >= count * EXACT_PERCENT && wrong * 100 <= count * WRONG_PERCENT);
  free(line);
  fclose(in);
}

/* --- random values, random damage --- */

static uint64_t mend_state;

static unsigned pick(unsigned n) {
  mend_state = mend_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(mend_state >> 33) % n;
}

static const char *const words[] = {"alpha",
                                    "beta two",
                                    "it works",
                                    "a, b",
                                    "c: d",
                                    "",
                                    "1",
                                    "true",
                                    "[x]",
                                    "{y}",
                                    "a;b",
                                    "\xE6\x97\xA5",
                                    "50%",
                                    "line one.",
                                    "C#",
                                    "http://x.y/z?a=1",
                                    "tab\there",
                                    "m\nl",
                                    "end\n",
                                    "it's",
                                    "(maybe)",
                                    "null",
                                    "- item",
                                    "e.g. \"q\"",
                                    "na\xC3\xAFve",
                                    "x\xEF\xBC\x9By\xEF\xBC\x9Az",
                                    "if (x) {",
                                    "f(\"{\"); }"};
static const char *const keys[] = {"id", "name", "step", "a", "b_c", "first-name", "list of"};

static json_t *random_value(unsigned depth) {
  unsigned kind = pick(depth > 0 ? 10 : 6);
  if (kind < 3)
    return json_string(words[pick(ARRAY_LEN(words))]);
  if (kind == 3)
    return json_integer((json_int_t)pick(2000) - 1000);
  if (kind == 4)
    return json_real((double)pick(100) + 0.25);
  if (kind == 5)
    return pick(3) ? json_boolean(pick(2)) : json_null();
  bool object = kind < 8;
  json_t *v = object ? json_object() : json_array();
  for (unsigned n = pick(4) + (depth == 3); n > 0; n--)
    if (object)
      json_object_set_new(v, keys[pick(ARRAY_LEN(keys))], random_value(depth - 1));
    else
      json_array_append_new(v, random_value(depth - 1));
  return v;
}

/* Tokens of a JSON text: a string with its quotes, a mark, a scalar, white space. */
static size_t token_end(const char *t, size_t i) {
  if (t[i] == '"') {
    for (i++; t[i] != '"'; i++)
      i += t[i] == '\\';
    return i + 1;
  }
  if (strchr("{}[],:", t[i]))
    return i + 1;
  size_t blank = strspn(t + i, " \n");
  return i + (blank ? blank : strcspn(t + i, "{}[],: \n\""));
}

enum damage {
  TRAILING_COMMAS,
  TWO_COMMAS,
  SEMICOLONS,
  FULL_WIDTH,
  ENTITIES,
  ESCAPED,
  CURLY,
  PYTHON,
  WRITTEN_LINES,
  RAW_LINES,
  COMMENTS,
  NO_CLOSERS,
  ELLIPSES,
  TICKS,
  GUILLEMETS,
  CORNERS,
  ASSIGNMENT,
  DAMAGES
};

static void put_string(struct buf *out, const char *t, size_t n, enum damage how) {
  static const char *const quotes[DAMAGES][2] = {
      [ENTITIES] = {"&quot;", "&quot;"},          [ESCAPED] = {"\\\"", "\\\""},
      [CURLY] = {"\xE2\x80\x9C", "\xE2\x80\x9D"}, [TICKS] = {"`", "`"},
      [GUILLEMETS] = {"\xC2\xAB", "\xC2\xBB"},    [CORNERS] = {"\xE3\x80\x8C", "\xE3\x80\x8D"}};
  bool other = quotes[how][0] != NULL;
  if (how == ASSIGNMENT && t[n] == ':' && strcspn(t + 1, "\" -") == n - 2) {
    buf_append(out, t + 1, n - 2);
    return;
  }
  buf_puts(out, other ? quotes[how][0] : "\"");
  for (size_t i = 1; i + 1 < n; i++) {
    if (how == ENTITIES && (t[i] == '"' || t[i] == '&'))
      buf_puts(out, t[i] == '"' ? "&quot;" : "&amp;");
    else if (how == ESCAPED && (t[i] == '"' || t[i] == '\\'))
      buf_printf(out, "\\%c", t[i]);
    else if (how >= TICKS && how <= CORNERS && t[i] == '\\' && t[i + 1] == '"')
      buf_putc(out, t[++i]);
    else if (how == RAW_LINES && t[i] == '\\' && t[i + 1] == 'n')
      buf_putc(out, t[i++] ? '\n' : ' ');
    else
      buf_putc(out, t[i]);
  }
  buf_puts(out, other ? quotes[how][1] : "\"");
}

static void put_mark(struct buf *out, char mark, char before, enum damage how) {
  bool filled = !strchr("{[,:", before);
  if (how == FULL_WIDTH && (mark == ',' || mark == ':')) {
    buf_puts(out, mark == ',' ? "\xEF\xBC\x8C" : "\xEF\xBC\x9A");
    return;
  }
  if (how == SEMICOLONS && mark == ',')
    mark = ';';
  if (strchr("}]", mark) && filled && how == TRAILING_COMMAS)
    buf_putc(out, ',');
  if (strchr("}]", mark) && filled && how == ELLIPSES)
    buf_puts(out, ", ...");
  buf_putc(out, mark);
  if (mark == ',' && how == TWO_COMMAS)
    buf_putc(out, ',');
  if (mark == ',' && how == COMMENTS)
    buf_puts(out, pick(2) ? " // see \"x\", [1\n" : " /* a, b } */");
}

/* The text with every token damaged that this kind of damage is about. */
static void put_damaged(struct buf *out, const char *t, enum damage how) {
  char before = ':';
  buf_puts(out, how == ASSIGNMENT ? "const x = " : "");
  for (size_t i = 0, end; t[i]; i = end) {
    end = token_end(t, i);
    if (t[i] == '"')
      put_string(out, t + i, end - i, how);
    else if (strchr("{}[],:", t[i]))
      put_mark(out, t[i], before, how);
    else if (strchr(" \n", t[i]))
      buf_puts(out, how == WRITTEN_LINES && t[i] == '\n' ? "\\n" : " ");
    else if (how == PYTHON && t[i] == 'n')
      buf_puts(out, "None");
    else if (how == PYTHON && strchr("tf", t[i]))
      buf_puts(out, t[i] == 't' ? "True" : "False");
    else
      buf_append(out, t + i, end - i);
    if (!strchr(" \n", t[i]))
      before = t[i];
  }
  buf_puts(out, how == ASSIGNMENT ? ";" : "");
  while (how == NO_CLOSERS && out->n > 1 && strchr("}] ", out->p[out->n - 1]) && pick(4))
    out->p[--out->n] = '\0';
  if (how == NO_CLOSERS)
    buf_putc(out, '\n'); /* else a number is left out, of which more may be missing */
}

/* Damage that leaves no doubt: the value itself comes out. */
TEST(plain_damage_is_mended) {
  static const char *const names[] = {
      "trailing commas", "two commas", "semicolons",    "full width", "entities",  "escaped",
      "curly",           "python",     "written lines", "raw lines",  "comments",  "no closers",
      "ellipses",        "ticks",      "guillemets",    "corners",    "assignment"};
  mend_state = 20;
  for (unsigned round = 0; round < 6000; round++) {
    enum damage how = (enum damage)(round % DAMAGES);
    json_t *value = NULL;
    buf_auto_t text = {0};
    do {
      json_decref(value);
      value = random_value(3);
    } while (!(json_is_object(value) && json_object_size(value) > 0) &&
             !(json_is_array(value) && json_array_size(value) > 0 && how != CURLY &&
               (how < TICKS || how > CORNERS))); /* prose begins like such a list */
    char_auto_t *dump = json_dumps(value, pick(2) ? JSON_INDENT(2) : 0);
    put_damaged(&text, dump, how);
    enum extract_want want = json_is_object(value) ? EXTRACT_WANT_OBJECT : EXTRACT_WANT_ARRAY;
    json_auto_t *got = mended(text.p, text.n, want);
    if (got != NULL && !mend_same(got, value))
      fail_msg("round %u, %s: another value: %s", round, names[how], text.p);
    json_decref(value);
  }
}
