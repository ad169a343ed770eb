/* Makes strings: free ones by their length, constrained ones through one automaton. */
#include "gbnf/internal.h"

#include <inttypes.h>

enum { LENGTH_MAX = 1000000 }; /* code points; a bound beyond is listed */

static const struct gb_node *quoted(struct gb *g, const struct gb_node *body) {
  return gb_seq(g, gb_word(g, "\""), body, gb_word(g, "\""));
}

static void note_lengths(struct gb *g, const struct gb_shape *s, const char *why) {
  if (s->min_length.value)
    gb_note(g, s->min_length.entry, "minLength", why);
  if (s->max_length.value != UINT64_MAX)
    gb_note(g, s->max_length.entry, "maxLength", why);
}

static const struct gb_node *by_length(struct gb *g, const struct gb_shape *s, const char *name) {
  uint64_t min = s->min_length.value, max = s->max_length.value;
  if (!min && max == UINT64_MAX)
    return gb_primitive(g, "string");
  if (min > LENGTH_MAX) {
    gb_note(g, s->min_length.entry, "minLength", "more than 1,000,000 characters");
    min = LENGTH_MAX;
  }
  if (max > LENGTH_MAX && max != UINT64_MAX) {
    gb_note(g, s->max_length.entry, "maxLength", "more than 1,000,000 characters");
    max = UINT64_MAX;
  }
  return quoted(g, gb_repeat(g, name, gb_primitive(g, "char"), min, max));
}

static enum gb_added add_patterns(struct gb *g, struct gb_language *l, const struct gb_shape *s) {
  for (const struct gb_link *p = s->patterns; p; p = p->next) {
    const char *why;
    switch (gb_language_pattern(g, l, json_string_value(p->value), json_string_length(p->value),
                                p->negated, true, &why)) {
    case GB_ADDED:
      break;
    case GB_ADDED_NOT:
      gb_note(g, p->entry, p->negated ? p->keyword : "pattern", why);
      break;
    case GB_ADDED_FAILED:
      return GB_ADDED_FAILED;
    }
  }
  return GB_ADDED;
}

/* Adds a format. It is held if the schema names the type, or its vocabulary asserts formats. */
static bool add_format(struct gb *g, struct gb_language *l, const struct gb_shape *s,
                       const struct gb_link *f) {
  const char *format = json_string_value(f->value), *why;
  const struct schema *schema = g->compiler.schema;
  bool whole = false;
  bool asserted =
      schema->resources[schema->entries[f->entry].resource].vocabularies & VOCAB_FORMAT_ASSERTION;
  if (!schema_format_known(format))
    return true;
  if (!asserted && !(s->named & T_STRING)) {
    gb_note(g, f->entry, "format", "without a type it is taken as an annotation");
    return true;
  }
  const char *pattern = gb_format_pattern(format, &whole);
  if (pattern)
    switch (gb_language_pattern(g, l, pattern, strlen(pattern), false, true, &why)) {
    case GB_ADDED:
      break;
    case GB_ADDED_NOT:
      whole = false;
      break;
    case GB_ADDED_FAILED:
      return false;
    }
  if (!pattern)
    gb_note(g, f->entry, "format", "this format is kept by the validator only");
  else if (!whole)
    gb_note(g, f->entry, "format", "limits on lengths are kept by the validator only");
  return true;
}

static bool add_not_values(struct gb *g, struct gb_language *l, const struct gb_shape *s) {
  size_t n = 0, count = gb_link_count(s->not_values);
  const struct gb_link **texts = gb_get(g, (count + 1) * sizeof *texts);
  if (!texts)
    return false;
  for (const struct gb_link *v = s->not_values; v; v = v->next) {
    if (!json_is_string(v->value))
      continue;
    struct gb_link *copy = gb_get(g, sizeof *copy);
    if (!copy)
      return false;
    copy->name = json_string_value(v->value);
    copy->length = json_string_length(v->value);
    copy->entry = v->entry;
    texts[n++] = copy;
  }
  if (!n)
    return true;
  switch (gb_language_texts(g, l, texts, n, true)) {
  case GB_ADDED:
    return true;
  case GB_ADDED_NOT:
    gb_note(g, s->not_values->entry, s->not_values->keyword, "too many patterns meet");
    return true;
  case GB_ADDED_FAILED:
    return false;
  }
  return false;
}

static void note_patterns(struct gb *g, const struct gb_shape *s) {
  static const char why[] = "the patterns are too large for a grammar";
  for (const struct gb_link *p = s->patterns; p; p = p->next)
    gb_note(g, p->entry, p->negated ? p->keyword : "pattern", why);
  for (const struct gb_link *f = s->formats; f; f = f->next)
    gb_note(g, f->entry, "format", why);
  for (const struct gb_link *v = s->not_values; v; v = v->next)
    if (json_is_string(v->value))
      gb_note(g, v->entry, v->keyword, why);
}

static const struct gb_node *by_language(struct gb *g, const struct gb_shape *s,
                                         const struct gb_language *l, const char *name) {
  struct gb_automaton a;
  uint32_t parts = ((uint32_t)1 << l->part_count) - 1;
  uint32_t mask = parts | GB_LENGTH_BIT;
  enum gb_built built = gb_automaton_build(g, l, s->min_length.value, s->max_length.value, &a);
  if (built == GB_BUILT_TOO_LARGE && (s->min_length.value || s->max_length.value != UINT64_MAX)) {
    built = gb_automaton_build(g, l, 0, UINT64_MAX, &a);
    if (built == GB_BUILT)
      note_lengths(g, s, "together with a pattern or format it is too large for a grammar");
  }
  switch (built) {
  case GB_BUILT:
    break;
  case GB_BUILT_TOO_LARGE:
    note_patterns(g, s);
    return by_length(g, s, name);
  case GB_BUILT_FAILED:
    return NULL;
  }
  const struct gb_node *body = gb_automaton_node(g, &a, mask, mask, name);
  return body ? quoted(g, body) : NULL;
}

static const struct gb_node *make(struct gb *g, const struct gb_shape *s, const char *name) {
  struct gb_language l = {0};
  bool ok = add_patterns(g, &l, s) == GB_ADDED;
  for (const struct gb_link *f = s->formats; ok && f; f = f->next)
    ok = add_format(g, &l, s, f);
  ok = ok && add_not_values(g, &l, s);
  const struct gb_node *node = NULL;
  if (ok)
    node = l.part_count ? by_language(g, s, &l, name) : by_length(g, s, name);
  gb_language_deinit(&l);
  return node;
}

static void key_add(struct buf *key, char kind, const json_t *value) {
  buf_append(key, &kind, 1);
  buf_printf(key, "%zu:", json_string_length(value));
  buf_append(key, json_string_value(value), json_string_length(value));
}

static const char *rule_name(const struct gb_shape *s, const char *name) {
  bool whole;
  const char *format = s->patterns ? NULL : json_string_value(s->formats->value);
  return format && gb_format_pattern(format, &whole) ? format : name;
}

/* Makes a string. The same constraints make the same rule, if nothing was listed on the way. */
const struct gb_node *gb_string(struct gb *g, const struct gb_shape *s, const char *name) {
  struct buf key = {0};
  const struct gb_node *node = NULL;
  size_t notes = g->note_count;
  uint32_t rule;
  if (s->not_values || (!s->patterns && !s->formats))
    return make(g, s, name);
  buf_printf(&key, "%d %" PRIu64 " %" PRIu64, (s->named & T_STRING) != 0, s->min_length.value,
             s->max_length.value);
  for (const struct gb_link *p = s->patterns; p; p = p->next)
    key_add(&key, p->negated ? '!' : 'p', p->value);
  for (const struct gb_link *f = s->formats; f; f = f->next)
    key_add(&key, 'f', f->value);
  if (map_get(&g->strings, buf_view(&key), &rule))
    node = gb_ref(g, rule);
  else
    node = make(g, s, name);
  if (node && node->kind == GB_SEQ && notes == g->note_count &&
      gb_rule_new(g, rule_name(s, name), node, &rule)) {
    node = gb_ref(g, rule);
    map_put(&g->strings, &g->arena, buf_view(&key), rule);
  }
  buf_deinit(&key);
  return g->status == GBNF_OK ? node : NULL;
}
