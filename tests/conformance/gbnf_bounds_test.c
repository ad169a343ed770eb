/* Pairs of bounds on numbers, as a property: every legal decimal of up to six digits derives from
 * the grammar, and every text that derives is legal, or a keyword of the bounds is listed as not
 * held.
 *
 * Bounds are inclusive, exclusive or absent, of numbers and integers, negative, equal, large and
 * tiny. The seed of a failure is in its message; SEGUE_LONG=1 tries all pairs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gbnf/gbnf.h"
#include "support/gbnf_grammar.h"
#include "support/test.h"
#include "json/scan.h"

enum { PAIRS = 1500, CANDIDATES = 60, DERIVED = 8 };

static const char *const numbers[] = {"0",
                                      "1",
                                      "2",
                                      "7",
                                      "9",
                                      "10",
                                      "99",
                                      "100",
                                      "101",
                                      "99999",
                                      "1000000",
                                      "0.25",
                                      "0.5",
                                      "0.1",
                                      "0.3",
                                      "0.30000000000000004",
                                      "0.3333333333333333",
                                      "0.999999",
                                      "1.000001",
                                      "1.5",
                                      "9.5",
                                      "99.5",
                                      "123.456",
                                      "0.0001",
                                      "1e-7",
                                      "1e-20",
                                      "1.5e-25",
                                      "1e-70",
                                      "5e-324",
                                      "1e12",
                                      "999999999999999",
                                      "1e15",
                                      "1e16",
                                      "9007199254740993",
                                      "1e18",
                                      "9223372036854775807",
                                      "1e19",
                                      "1e20",
                                      "123456789012345678901",
                                      "1e70",
                                      "1e300"};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

struct bound {
  int kind; /* 0: none, 1: inclusive, 2: exclusive */
  bool negative;
  size_t number;
};

static void bound_text(const struct bound *b, const char *name, char *out, size_t size) {
  char upper[16];
  *out = '\0';
  if (b->kind == 0)
    return;
  snprintf(upper, sizeof upper, "%c%s", name[0] == 'm' ? 'M' : name[0], name + 1);
  snprintf(out, size, ",\"%s%s\":%s%s", b->kind == 2 ? "exclusive" : "",
           b->kind == 2 ? upper : name, b->negative ? "-" : "", numbers[b->number]);
}

/* A decimal of up to six digits, a leading zero not counted: anywhere, or close to a bound. */
static void candidate(uint64_t *seed, const struct bound *near, char out[64]) {
  bool negative = grammar_random(seed) & 1;
  int whole = (int)(grammar_random(seed) % 7);
  int fraction = whole == 6 ? 0 : (int)(grammar_random(seed) % (uint64_t)(7 - whole));
  if (near->kind && grammar_random(seed) & 1) {
    double value = strtod(numbers[near->number], NULL) * (near->negative ? -1 : 1);
    double unit = 1;
    for (int i = 0; i < fraction; i++)
      unit /= 10;
    value += unit * ((double)(grammar_random(seed) % 5) - 2);
    if (value > -999999.5 && value < 999999.5) {
      snprintf(out, 64, "%.*f", fraction, value);
      size_t digits = 0;
      for (const char *p = out; *p; p++)
        digits += *p >= '0' && *p <= '9';
      if (digits <= 6 || (digits == 7 && strncmp(out + (*out == '-'), "0.", 2) == 0))
        return;
    }
  }
  char *p = out;
  if (negative)
    *p++ = '-';
  if (whole == 0)
    *p++ = '0';
  for (int i = 0; i < whole; i++)
    *p++ = (char)('0' + (i == 0 ? 1 + grammar_random(seed) % 9 : grammar_random(seed) % 10));
  if (fraction > 0)
    *p++ = '.';
  for (int i = 0; i < fraction; i++)
    *p++ = (char)('0' + (grammar_random(seed) % 3 == 0 ? 0 : grammar_random(seed) % 10));
  *p = '\0';
}

static bool legal(const struct schema *schema, const char *text) {
  json_auto_t *value = NULL;
  size_t end = 0, n = strlen(text);
  assert_int_equal(jscan_number(text, n, 0, &value, &end), JSCAN_OK);
  assert_int_equal(end, n);
  return schema_valid(schema, value);
}

static bool bounds_are_listed(const struct gbnf_result *r) {
  for (size_t i = 0; i < r->note_count; i++)
    if (strstr(r->notes[i].keyword, "inimum") || strstr(r->notes[i].keyword, "aximum"))
      return true;
  return false;
}

static void try_bounds(const struct bound *low, const struct bound *high, bool integer,
                       uint64_t seed) {
  char minimum[80], maximum[80], text[256];
  bound_text(low, "minimum", minimum, sizeof minimum);
  bound_text(high, "maximum", maximum, sizeof maximum);
  snprintf(text, sizeof text, "{\"type\":\"%s\"%s%s}", integer ? "integer" : "number", minimum,
           maximum);
  size_t n = strlen(text);
  struct jscan js;
  struct jscan_result read;
  jscan_init(&js, text, n);
  assert_int_equal(jscan_value(&js, 0, &read), JSCAN_OK);
  jscan_deinit(&js);
  struct schema *schema = schema_compile(read.value, NULL, NULL, NULL);
  struct gbnf_result r;
  struct grammar *grammar = NULL;
  char error[160];
  enum gbnf_status status = gbnf_convert(read.value, NULL, &r);
  if (status == GBNF_OK) {
    grammar = grammar_new(r.text, error);
    if (!grammar)
      fail_msg("%s: %s\n%s", text, error, r.text);
  } else {
    assert_int_equal(status, GBNF_UNSATISFIABLE);
  }
  bool listed = bounds_are_listed(&r);
  uint64_t random = seed;
  for (int i = 0; i < CANDIDATES; i++) {
    char decimal[64];
    candidate(&random, i & 1 ? low : high, decimal);
    if (integer && strchr(decimal, '.'))
      continue; /* an integer is written without a fraction */
    if (decimal[0] == '-' && strspn(decimal, "-0.") == strlen(decimal))
      continue; /* nobody writes -0 */
    bool derives = grammar && grammar_match(grammar, decimal, strlen(decimal));
    bool is_legal = legal(schema, decimal);
    if (derives != is_legal && !listed)
      fail_msg("seed %llu: %s: %s is %s and %s\n%s", (unsigned long long)seed, text, decimal,
               is_legal ? "legal" : "not legal", derives ? "derives" : "does not derive",
               grammar ? r.text : r.refusal);
  }
  for (int i = 0; grammar && i < DERIVED; i++) {
    size_t length;
    char_auto_t *made = grammar_derive(grammar, &random, 40, &length);
    made[strcspn(made, " \n\t")] = '\0';
    if (!legal(schema, made) && !listed)
      fail_msg("seed %llu: %s: %s derives and is not legal\n%s", (unsigned long long)seed, text,
               made, r.text);
  }
  grammar_free(grammar);
  gbnf_result_deinit(&r);
  schema_free(schema);
  json_decref(read.value);
}

TEST(the_grammar_takes_what_the_bounds_allow) {
  uint64_t random = 16;
  bool all = getenv("SEGUE_LONG") != NULL;
  for (size_t i = 0; i < (all ? (size_t)NUMBERS * NUMBERS : PAIRS); i++) {
    uint64_t pick = all ? i : grammar_random(&random);
    for (uint64_t way = 0; way < 18; way++) {
      if (!all && grammar_random(&random) % 9)
        continue;
      struct bound low = {(int)(way % 3), grammar_random(&random) % 3 == 0, pick % NUMBERS};
      struct bound high = {(int)(way / 3 % 3), low.negative && grammar_random(&random) & 1,
                           pick / NUMBERS % NUMBERS};
      if (grammar_random(&random) % 16 == 0)
        high = (struct bound){high.kind, low.negative, low.number};
      try_bounds(&low, &high, way >= 9, random);
    }
  }
}

TEST(two_exclusive_bounds_leave_what_is_between) {
  json_auto_t *doc =
      json_pack("{s:s,s:i,s:i}", "type", "number", "exclusiveMinimum", 0, "exclusiveMaximum", 1);
  AUTO(gbnf_result_deinit) struct gbnf_result r;
  assert_int_equal(gbnf_convert(doc, NULL, &r), GBNF_OK);
  assert_int_equal(r.note_count, 0);
  char error[160];
  struct grammar *grammar = grammar_new(r.text, error);
  assert_non_null(grammar);
  static const char *const in[] = {"0.25", "0.5", "0.50", "0.000001", "0.999999", "0.100000"};
  static const char *const out[] = {"0", "0.0", "0.000000", "1", "1.0", "1.000001", "-0.25", ".5"};
  for (size_t i = 0; i < sizeof in / sizeof *in; i++)
    assert_true(grammar_match(grammar, in[i], strlen(in[i])));
  for (size_t i = 0; i < sizeof out / sizeof *out; i++)
    assert_false(grammar_match(grammar, out[i], strlen(out[i])));
  grammar_free(grammar);
}
