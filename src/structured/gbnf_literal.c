/* Strings and values as the model may write them. */
#include "structured/gbnf_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t code_point(const char **p) {
  const unsigned char *s = (const unsigned char *)*p;
  unsigned n = *s < 0x80 ? 1 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
  uint32_t c = n == 1 ? *s : *s & (0x7fu >> n);
  for (unsigned i = 1; i < n; i++)
    c = c << 6 | (s[i] & 0x3f);
  *p += n;
  return c;
}

/* JSON text of a string; `ascii`: all beyond ASCII as \u escapes. *foreign: there was any. */
static void escape(struct text *out, const char *text, size_t length, bool ascii, bool *foreign) {
  const char *short_forms = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (const char *p = text, *end = text + length; p < end;) {
    const char *from = p;
    uint32_t c = code_point(&p);
    const char *found = NULL;
    for (const char *s = short_forms; *s && !found; s += 2)
      found = (uint32_t)*s == c ? s : NULL;
    if (found) {
      schema_text_printf(out, "\\%c", found[1]);
    } else if (c < 0x20) {
      schema_text_printf(out, "\\u%04x", (unsigned)c);
    } else if (c < 0x80 || !ascii) {
      schema_text_add(out, from, (size_t)(p - from));
    } else if (c < 0x10000) {
      schema_text_printf(out, "\\u%04x", (unsigned)c);
    } else {
      schema_text_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                         (unsigned)(0xdc00 + (c & 0x3ff)));
    }
    *foreign = *foreign || c >= 0x80;
  }
}

const struct gb_node *gb_string_literal(struct gb *g, const char *text, size_t length) {
  struct text raw = {0}, ascii = {0};
  bool foreign = false;
  schema_text_puts(&raw, "\"");
  escape(&raw, text, length, false, &foreign);
  schema_text_puts(&raw, "\"");
  schema_text_puts(&ascii, "\"");
  if (foreign)
    escape(&ascii, text, length, true, &foreign);
  schema_text_puts(&ascii, "\"");
  const struct gb_node *node = NULL;
  if (raw.failed || ascii.failed)
    gb_no_memory(g);
  else
    node = gb_literal(g, raw.bytes, raw.length);
  if (node && foreign)
    node = gb_alt(g, node, gb_literal(g, ascii.bytes, ascii.length));
  schema_text_deinit(&raw);
  schema_text_deinit(&ascii);
  return node;
}

/* A number equals a value however it is written; here: as its shortest decimals, and an integer
 * also with ".0". */
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
  /* as a double, too */
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

struct member {
  const char *name;
  size_t length;
  const json_t *value;
};

static const struct gb_node *object_in_order(struct gb *g, const struct member *members,
                                             const size_t *order, size_t n, bool integers) {
  const struct gb_node *node = gb_seq(g, gb_word(g, "{"), gb_space(g));
  for (size_t i = 0; node && i < n; i++) {
    const struct member *m = &members[order[i]];
    node = gb_seq(g, node, gb_string_literal(g, m->name, m->length), gb_space(g), gb_word(g, ":"),
                  gb_space(g), gb_value_literal(g, m->value, integers), gb_space(g));
    if (i + 1 < n)
      node = gb_seq(g, node, gb_word(g, ","), gb_space(g));
  }
  return gb_seq(g, node, gb_word(g, "}"));
}

/* The members of a value in a schema have no order that anyone could know: few of them are taken in
 * any. */
static const struct gb_node *object_literal(struct gb *g, const json_t *value, bool integers) {
  static const size_t orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                      {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
  size_t n = json_object_size(value), i = 0;
  struct member *members = gb_get(g, (n ? n : 1) * sizeof *members);
  size_t *order = members ? gb_get(g, (n ? n : 1) * sizeof *order) : NULL;
  if (!order)
    return NULL;
  for (void *at = json_object_iter((json_t *)value); at;
       at = json_object_iter_next((json_t *)value, at), i++) {
    members[i] = (struct member){json_object_iter_key(at), json_object_iter_key_len(at),
                                 json_object_iter_value(at)};
    order[i] = i;
  }
  const struct gb_node *node = object_in_order(g, members, order, n, integers);
  size_t more = n == 2 ? 2 : n == 3 ? 6 : 1;
  for (size_t k = 1; node && k < more; k++)
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
