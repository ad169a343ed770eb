/* Makes strings and numbers for examples: a placeholder, else what fits. */
#include "render/example_internal.h"
#include "render/pattern_sample.h"

#include <stdio.h>
#include <stdlib.h>

enum {
  SEEDS = 120,        /* samples of one pattern */
  WHOLE_SEARCHES = 8, /* so many of them in all lengths */
  EXTRAS = 18,        /* lengths */
  NUMBER_STEPS = 400  /* multiples */
};

/* --- strings --- */

struct wanted {
  size_t least, most; /* code points */
  const char *format; /* a hint, or asserted */
  unsigned patterns;
  bool untyped;
};

/* Lists values that formats accept; '#' is a digit that varies. */
static const char *const samples[][2] = {
    {"date", "2000-01-1#"},
    {"date-time", "2000-01-1#T12:00:00Z"},
    {"duration", "P#D"},
    {"email", "name#@example.com"},
    {"hostname", "host#.example.com"},
    {"idn-email", "name#@example.com"},
    {"idn-hostname", "host#.example.com"},
    {"ipv4", "192.0.2.#"},
    {"ipv6", "2001:db8::#"},
    {"iri", "https://example.com/#"},
    {"iri-reference", "/path/#"},
    {"json-pointer", "/#"},
    {"regex", "^#$"},
    {"relative-json-pointer", "#"},
    {"time", "12:00:0#Z"},
    {"uri", "https://example.com/#"},
    {"uri-reference", "/path/#"},
    {"uri-template", "/path/#/{id}"},
    {"uuid", "00000000-0000-4000-8000-00000000000#"},
};

static struct wanted string_wanted(struct maker *m, const struct outline *outline) {
  struct wanted wanted = {.most = SIZE_MAX, .untyped = outline->types == TYPE_ANY};
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code == OP_MIN_LENGTH && op->u.count > wanted.least)
      wanted.least = op->u.count < SIZE_MAX ? (size_t)op->u.count : SIZE_MAX;
    if (op->code == OP_MAX_LENGTH && op->u.count < wanted.most)
      wanted.most = (size_t)op->u.count;
    wanted.patterns += op->code == OP_PATTERN;
    wanted.untyped = wanted.untyped && !(op->applies != TYPE_ANY && op->applies >> JSON_STRING & 1);
  }
  for (uint32_t i = 0; i < outline->flat.count && !wanted.format; i++)
    wanted.format = json_string_value(outline_raw(&m->walk, outline->flat.nodes[i], "format"));
  return wanted;
}

static json_t *try_text(struct maker *m, struct place place, const struct buf *text,
                        unsigned *variant) {
  json_t *value = json_stringn(text->p ? text->p : "", text->n);
  return value ? example_keep(m, place, value, variant) : NULL;
}

/* Makes "<string>", cut or filled to a length; if it is cut, only the letters without the
 * brackets. */
static json_t *try_fitted(struct maker *m, struct place place, const char *word, size_t length,
                          unsigned *variant) {
  struct buf text = {0};
  size_t n = strlen(word);
  if (n <= length)
    buf_puts(&text, word);
  else if (n - 2 >= length)
    buf_append(&text, word + 1, length);
  else
    buf_append(&text, word + 1, n - 2);
  while (text.n < length)
    buf_append(&text, LIT("."));
  json_t *value = try_text(m, place, &text, variant);
  buf_deinit(&text);
  return value;
}

static json_t *try_placeholder(struct maker *m, struct place place, const struct wanted *wanted,
                               const char *word, unsigned *variant) {
  struct buf text = {0};
  json_t *value = NULL;
  unsigned last = *variant + 1, none = 0;
  for (unsigned i = *variant ? 0 : 1; !value && i <= last && m->walk.status == SCHEMA_OK; i++) {
    unsigned number = i ? i : last; /* the last is most likely the one that is asked for */
    unsigned *left = i ? variant : &none;
    text.n = 0;
    buf_puts(&text, "<");
    buf_puts(&text, word);
    if (number > 1)
      buf_printf(&text, " %u", number);
    buf_puts(&text, ">");
    value = try_text(m, place, &text, left);
    if (!value && !wanted->patterns) {
      size_t length = utf8_count(text.p, text.n);
      if (length < wanted->least)
        value = try_fitted(m, place, text.p, wanted->least, left);
      else if (length > wanted->most)
        value = try_fitted(m, place, text.p, wanted->most, left);
    }
  }
  buf_deinit(&text);
  return value;
}

/* Tries a sample. A short value is filled up in front and behind: one of the two may keep the
 * format. */
static json_t *try_sample(struct maker *m, struct place place, const struct wanted *wanted,
                          const char *sample, unsigned *variant) {
  struct buf text = {0};
  json_t *value = NULL;
  for (unsigned digit = 0; !value && digit < 9 && m->walk.status == SCHEMA_OK; digit++)
    for (int way = 0; !value && way < 3; way++) {
      text.n = 0;
      size_t length = strlen(sample),
             fill = way && length < wanted->least ? wanted->least - length : 0;
      if (way && !fill)
        break;
      for (size_t i = 0; way == 1 && i < fill; i++)
        buf_puts(&text, "x");
      for (const char *p = sample; *p; p++) {
        char c = *p == '#' ? (char)('1' + digit) : *p;
        buf_append(&text, &c, 1);
      }
      for (size_t i = 0; way == 2 && i < fill; i++)
        buf_puts(&text, "x");
      value = try_text(m, place, &text, variant);
    }
  buf_deinit(&text);
  return value;
}

/* Returns the k-th number of extra repetitions for a sample that is `missing` characters too short:
 * as if one part repeated, two, three, four; then powers of two, for repetitions inside
 * repetitions. */
static size_t extra_for(size_t missing, size_t k) {
  if (k == 0)
    return 0;
  if (k <= 4)
    return (missing + k - 1) / k;
  return (size_t)1 << (k - 5);
}

static json_t *try_pattern(struct maker *m, struct place place, const struct wanted *wanted,
                           const char *pattern, unsigned *variant) {
  struct buf text = {0};
  json_t *value = NULL;
  size_t length = strlen(pattern);
  for (uint32_t seed = 0; !value && seed < SEEDS && m->walk.status == SCHEMA_OK; seed++) {
    size_t missing = 0;
    for (size_t k = 0; !value && k < (seed < WHOLE_SEARCHES ? EXTRAS : 5u); k++) {
      text.n = 0;
      buf_append(&text, "", 0);
      bool made =
          pattern_sample(pattern, length, seed, extra_for(missing, k), EXAMPLE_STRING_BYTES, &text);
      size_t points = utf8_count(text.p, text.n);
      if (!walk_spend(&m->walk, 1 + (int64_t)((length + text.n) / 16)))
        break;
      if (made && points >= wanted->least && points <= wanted->most)
        value = try_text(m, place, &text, variant);
      if (k == 0)
        missing = points < wanted->least ? wanted->least - points : 0;
      if (!missing)
        break;
    }
  }
  buf_deinit(&text);
  return value;
}

/* Tries samples of all patterns one after the other: each is looked for anywhere, if it has no
 * anchors. */
static json_t *try_together(struct maker *m, struct place place, const struct outline *outline,
                            unsigned *variant) {
  struct buf text = {0};
  json_t *value = NULL;
  for (uint32_t seed = 0; !value && seed < SEEDS && m->walk.status == SCHEMA_OK; seed++) {
    bool ok = walk_spend(&m->walk, 1 + outline->op_count);
    text.n = 0;
    for (uint32_t i = 0; ok && i < outline->op_count; i++) {
      const struct op *op = outline->ops[seed & 1 ? outline->op_count - 1 - i : i];
      if (op->code == OP_PATTERN)
        ok = pattern_sample(op->text, strlen(op->text), seed / 2, 0, EXAMPLE_STRING_BYTES, &text);
    }
    if (ok)
      value = try_text(m, place, &text, variant);
  }
  buf_deinit(&text);
  return value;
}

json_t *example_string(struct maker *m, struct place place, const struct outline *outline,
                       unsigned variant) {
  struct wanted wanted = string_wanted(m, outline);
  json_t *value = NULL;
  if (wanted.least > EXAMPLE_STRING_BYTES || wanted.least > wanted.most)
    return NULL;
  if (wanted.format && strlen(wanted.format) < 64)
    value = try_placeholder(m, place, &wanted, wanted.format, &variant);
  if (!value)
    value = try_placeholder(m, place, &wanted, wanted.untyped ? "any" : "string", &variant);
  for (size_t i = 0; !value && wanted.format && i < sizeof samples / sizeof *samples; i++)
    if (!strcmp(samples[i][0], wanted.format))
      value = try_sample(m, place, &wanted, samples[i][1], &variant);
  for (uint32_t i = 0; !value && i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_PATTERN)
      value = try_pattern(m, place, &wanted, outline->ops[i]->text, &variant);
  if (!value && wanted.patterns > 1)
    value = try_together(m, place, outline, &variant);
  return value;
}

/* --- numbers --- */

static json_t *try_real(struct maker *m, struct place place, double number, bool integer,
                        unsigned *variant) {
  const double edge = 9007199254740992.0; /* 2^53: integers below are exact */
  json_t *value = NULL;
  if (!(number > -1e308 && number < 1e308))
    return NULL;
  if (number >= -edge && number <= edge && (double)(json_int_t)number == number)
    value = json_integer((json_int_t)number);
  else if (!integer || number < -edge || number > edge)
    value = json_real(number);
  else
    return NULL;
  return example_keep(m, place, value, variant);
}

static json_t *try_integer(struct maker *m, struct place place, json_int_t number,
                           unsigned *variant) {
  return example_keep(m, place, json_integer(number), variant);
}

struct number_bounds {
  bool has_low, has_high;
  double low, high;
  json_int_t exact[4]; /* integers that are bounds, which a double may not hold */
  size_t exact_count;
  double steps[4]; /* multipleOf */
  size_t step_count;
};

static struct number_bounds number_bounds(const struct outline *outline) {
  struct number_bounds b = {0};
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    bool low = op->code == OP_MINIMUM || op->code == OP_EXCLUSIVE_MINIMUM;
    bool high = op->code == OP_MAXIMUM || op->code == OP_EXCLUSIVE_MAXIMUM;
    if (op->code == OP_MULTIPLE_OF && b.step_count < sizeof b.steps / sizeof *b.steps)
      b.steps[b.step_count++] = json_number_value(op->u.value);
    if (!low && !high)
      continue;
    double value = json_number_value(op->u.value);
    if (low && (!b.has_low || value > b.low))
      b.low = value;
    if (high && (!b.has_high || value < b.high))
      b.high = value;
    b.has_low |= low;
    b.has_high |= high;
    if (json_is_integer(op->u.value) && b.exact_count < sizeof b.exact / sizeof *b.exact)
      b.exact[b.exact_count++] = json_integer_value(op->u.value);
  }
  return b;
}

static double whole_number(double number) { /* towards 0; large numbers are whole */
  return number > -9e15 && number < 9e15 ? (double)(int64_t)number : number;
}

/* Tries multiples from the lower bound upwards, from the upper one downwards, or around 0. */
static json_t *try_multiples(struct maker *m, struct place place, const struct number_bounds *b,
                             double step, bool integer, unsigned *variant) {
  double from = 0;
  if (b->has_low && b->low > 0)
    from = whole_number(b->low / step);
  else if (b->has_high && b->high < 0)
    from = whole_number(b->high / step);
  double way = b->has_high && b->high < 0 ? -1 : 1;
  json_t *value = NULL;
  for (int i = 0; !value && i < NUMBER_STEPS && m->walk.status == SCHEMA_OK; i++) {
    double number = (from + way * i) * step;
    if (!(number < 1e300 && number > -1e300))
      break;
    value = try_real(m, place, number, integer, variant);
  }
  return value;
}

json_t *example_number(struct maker *m, struct place place, const struct outline *outline,
                       bool integer, unsigned variant) {
  struct number_bounds b = number_bounds(outline);
  double low = b.has_high ? b.high - 1000 : 0;
  if (b.has_low)
    low = b.low;
  double high = b.has_high ? b.high : low + 1000;
  double range = high - low;
  json_t *value = try_real(m, place, 0, integer, &variant);
  for (size_t i = 0; !value && i < b.step_count; i++)
    value = try_multiples(m, place, &b, b.steps[i], integer, &variant);
  for (size_t i = 0; !value && i < b.step_count && i + 1 < b.step_count; i++)
    value = try_multiples(m, place, &b, b.steps[i] * b.steps[i + 1], integer, &variant);
  for (size_t i = 0; !value && i < b.exact_count; i++) {
    value = try_integer(m, place, b.exact[i], &variant);
    if (!value && b.exact[i] < INT64_MAX)
      value = try_integer(m, place, b.exact[i] + 1, &variant);
    if (!value && b.exact[i] > INT64_MIN)
      value = try_integer(m, place, b.exact[i] - 1, &variant);
  }
  if (!value)
    value = try_multiples(m, place, &b, 1, integer, &variant);
  if (!value && b.has_low)
    value = try_real(m, place, low, integer, &variant);
  if (!value && b.has_high)
    value = try_real(m, place, high, integer, &variant);
  for (int i = 1; !value && !integer && i < 64 && m->walk.status == SCHEMA_OK; i++)
    value = try_real(m, place, low + range * i / 64, false, &variant);
  return value;
}
