/* Makes strings and values as the model may write them. */
#include "gbnf/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Writes a string as JSON; with `ascii`, all beyond ASCII as \u escapes. Sets *foreign if there was
 * some. */
static void escape(struct buf *out, const char *text, size_t length, bool ascii, bool *foreign) {
  const char *short_forms = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (size_t i = 0, n; i < length; i += n) {
    const char *found = NULL;
    uint32_t c;
    n = utf8_decode(text + i, length - i, &c);
    assert(n); /* JSON strings are well-formed */
    for (const char *s = short_forms; *s && !found; s += 2)
      found = (uint32_t)*s == c ? s : NULL;
    if (found) {
      buf_printf(out, "\\%c", found[1]);
    } else if (c < 0x20) {
      buf_printf(out, "\\u%04x", (unsigned)c);
    } else if (c < 0x80 || !ascii) {
      buf_append(out, text + i, n);
    } else if (c < 0x10000) {
      buf_printf(out, "\\u%04x", (unsigned)c);
    } else {
      buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                 (unsigned)(0xdc00 + (c & 0x3ff)));
    }
    *foreign = *foreign || c >= 0x80;
  }
}

const struct gb_node *gb_string_literal(struct gb *g, const char *text, size_t length) {
  struct buf raw = {0}, ascii = {0};
  bool foreign = false;
  buf_puts(&raw, "\"");
  escape(&raw, text, length, false, &foreign);
  buf_puts(&raw, "\"");
  buf_puts(&ascii, "\"");
  if (foreign)
    escape(&ascii, text, length, true, &foreign);
  buf_puts(&ascii, "\"");
  const struct gb_node *node = gb_literal(g, raw.p, raw.n);
  if (node && foreign)
    node = gb_alt(g, node, gb_literal(g, ascii.p, ascii.n));
  buf_deinit(&raw);
  buf_deinit(&ascii);
  return node;
}

/* Makes a number. A model might spell it in many ways that are equal; the grammar has the shortest
 * decimals only, and for an integer also ".0". */
static const struct gb_node *number_literal(struct gb *g, const json_t *value, bool integers) {
  char text[64];
  if (json_is_integer(value)) {
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  } else {
    double real = json_real_value(value);
    if (schema_value_is_integral(value) && fabs(real) < 1e15) {
      snprintf(text, sizeof text, "%.0f", real == 0 ? 0.0 : real);
    } else {
      for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, real);
        if (strtod(text, NULL) == real)
          break;
      }
    }
  }
  const struct gb_node *node = gb_word(g, text);
  /* It is exact as a double, too. */
  bool exact = !json_is_integer(value) || (json_integer_value(value) <= 9007199254740992 &&
                                           json_integer_value(value) >= -9007199254740992);
  if (!integers && exact && !strpbrk(text, ".eE"))
    node = gb_seq(g, node, gb_maybe(g, "zero", gb_word(g, ".0")));
  return node;
}

static const struct gb_node *array_literal(struct gb *g, const json_t *value, bool integers) {
  size_t n = json_array_size(value);
  const struct gb_node *node = gb_seq(g, gb_word(g, "["), gb_space(g));
  for (size_t i = 0; node && i < n; i++) {
    node = gb_seq(g, node, gb_value_literal(g, json_array_get(value, i), integers), gb_space(g));
    if (i + 1 < n)
      node = gb_seq(g, node, gb_word(g, ","), gb_space(g));
  }
  return gb_seq(g, node, gb_word(g, "]"));
}

struct literal_member {
  const char *name;
  size_t length;
  const json_t *value;
};

static const struct gb_node *object_in_order(struct gb *g, const struct literal_member *members,
                                             const size_t *order, size_t n, bool integers) {
  const struct gb_node *node = gb_seq(g, gb_word(g, "{"), gb_space(g));
  for (size_t i = 0; node && i < n; i++) {
    const struct literal_member *m = &members[order[i]];
    node = gb_seq(g, node, gb_string_literal(g, m->name, m->length), gb_space(g), gb_word(g, ":"),
                  gb_space(g), gb_value_literal(g, m->value, integers), gb_space(g));
    if (i + 1 < n)
      node = gb_seq(g, node, gb_word(g, ","), gb_space(g));
  }
  return gb_seq(g, node, gb_word(g, "}"));
}

/* Makes an object. Nobody can know in which order a model writes the members of a fixed value: if
 * there are only a few, any order will do. */
static const struct gb_node *object_literal(struct gb *g, const json_t *value, bool integers) {
  static const size_t orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                      {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
  size_t n = json_object_size(value), i = 0;
  struct literal_member *members = gb_get(g, (n + 1) * sizeof *members);
  size_t *order = gb_get(g, (n + 1) * sizeof *order);
  if (!members || !order)
    return NULL;
  for (void *at = json_object_iter((json_t *)value); at;
       at = json_object_iter_next((json_t *)value, at), i++) {
    members[i] = (struct literal_member){json_object_iter_key(at), json_object_iter_key_len(at),
                                         json_object_iter_value(at)};
    order[i] = i;
  }
  const struct gb_node *node = object_in_order(g, members, order, n, integers);
  size_t orders_count = n == 2 || n == 3 ? n * (n - 1) : 1;
  for (size_t k = 1; node && k < orders_count; k++)
    node = gb_alt(g, node, object_in_order(g, members, orders[k], n, integers));
  return node;
}

const struct gb_node *gb_value_literal(struct gb *g, const json_t *value, bool integers) {
  if (!gb_spend(g, 1))
    return NULL;
  switch (json_typeof(value)) {
  case JSON_STRING:
    return gb_string_literal(g, json_string_value(value), json_string_length(value));
  case JSON_INTEGER:
  case JSON_REAL:
    return number_literal(g, value, integers);
  case JSON_ARRAY:
    return array_literal(g, value, integers);
  case JSON_OBJECT:
    return object_literal(g, value, integers);
  case JSON_TRUE:
    return gb_word(g, "true");
  case JSON_FALSE:
    return gb_word(g, "false");
  case JSON_NULL:
    return gb_word(g, "null");
  }
  return NULL;
}
