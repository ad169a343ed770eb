/* Converts a schema to a grammar and a list. */
#include "gbnf/gbnf.h"

#include "gbnf/internal.h"

#include <stdio.h>

/* Makes all up to "</think>", then blank space: one state for each beginning of the end mark. */
static const struct gb_node *think_node(struct gb *g, bool opened) {
  static const char end[] = "</think>";
  uint32_t states[sizeof end - 1];
  for (size_t i = 0; i + 1 < sizeof end; i++)
    states[i] = gb_rule_new(g, "think", NULL);
  for (size_t i = 0; i + 1 < sizeof end; i++) {
    char other[16];
    snprintf(other, sizeof other, i ? "[^<%c]" : "[^%c]", end[i]);
    bool last = end[i + 1] == '\0';
    const struct gb_node *on = gb_seq(
        g, gb_literal(g, &end[i], 1),
        last ? gb_repeat(g, "blank", gb_class(g, "[ \\t\\r\\n]"), 0, 8) : gb_ref(g, states[i + 1]));
    const struct gb_node *off = gb_seq(g, gb_class(g, other), gb_ref(g, states[0]));
    const struct gb_node *again = i ? gb_seq(g, gb_word(g, "<"), gb_ref(g, states[1])) : &gb_never;
    g->rules[states[i]].node = gb_alt(g, off, on, again);
  }
  const struct gb_node *mark = gb_word(g, "<think>");
  return gb_seq(g, opened ? gb_maybe(g, "mark", mark) : mark, gb_ref(g, states[0]));
}

static void convert(struct gb *g, const struct gbnf_opts *opts, struct buf *out) {
  gb_primitives_reserve(g);
  uint32_t root = gb_rule_new(g, "root", NULL);
  const struct gb_node *value = gb_schema_node(g, "json");
  const struct gb_node *before = &gb_empty;
  if (opts && (opts->think || opts->thinking))
    before = gb_maybe(g, "thinking", think_node(g, opts->thinking));
  const struct gb_node *all = gb_seq(g, before, value, gb_space(g));
  g->rules[root].node = all; /* the rules may have moved */
  gb_sets_build(g);
  if (g->status == GBNF_OK)
    gb_write(g, root, out);
}

static void say_refusal(struct gb *g, const struct schema_errors *errors, struct gbnf_result *out) {
  struct buf words = {0}, pointer = {0};
  switch (g->status) {
  case GBNF_OK:
    return;
  case GBNF_INVALID_SCHEMA:
    if (errors->count) {
      buf_puts(&words, errors->items[0].message);
      buf_puts(&pointer, errors->items[0].pointer);
    } else {
      buf_puts(&words, "the schema is not valid");
    }
    break;
  case GBNF_UNSATISFIABLE:
    buf_puts(&words, "no finite value matches the schema");
    break;
  case GBNF_TOO_COMPLEX:
    buf_puts(&words, g->limit ? g->limit : "the schema is too complex");
    break;
  }
  out->refusal = buf_take(&words);
  out->refusal_pointer = buf_take(&pointer);
}

static void release(struct gb *g) {
  map_deinit(&g->names);
  map_deinit(&g->sets);
  map_deinit(&g->classes);
  map_deinit(&g->patterns);
  map_deinit(&g->noted);
  map_deinit(&g->primitives);
  free(g->rules);
  free(g->jobs);
  free(g->scopes);
  schema_compiler_deinit(&g->compiler);
  schema_free(g->compiler.schema);
  arena_deinit(&g->arena);
}

static enum gbnf_status gbnf_status_of(enum schema_status status) {
  static const enum gbnf_status same[] = {[SCHEMA_OK] = GBNF_OK,
                                          [SCHEMA_INVALID_SCHEMA] = GBNF_INVALID_SCHEMA,
                                          [SCHEMA_INVALID] = GBNF_INVALID_SCHEMA,
                                          [SCHEMA_TOO_COMPLEX] = GBNF_TOO_COMPLEX};
  return same[status];
}

enum gbnf_status gbnf_convert(const json_t *doc, const struct gbnf_opts *opts,
                              struct gbnf_result *out) {
  struct schema_opts schema_opts = {0};
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  buf_auto_t text = {0};
  struct gb *g = xcalloc(1, sizeof *g); /* GBNF_OK */
  *out = (struct gbnf_result){0};
  if (opts) {
    schema_opts.registry = opts->registry;
    schema_opts.default_draft = opts->default_draft;
  }
  g->compiler = (struct compiler){.opts = &schema_opts, .errors = &errors, .status = SCHEMA_OK};
  if (!schema_compiler_run(&g->compiler, doc))
    g->status = gbnf_status_of(g->compiler.status);
  else
    convert(g, opts, &text);
  if (g->status == GBNF_OK) {
    out->length = text.n;
    out->text = buf_take(&text);
  }
  say_refusal(g, &errors, out);
  out->notes = g->notes;
  out->note_count = g->note_count;
  enum gbnf_status status = g->status;
  release(g);
  free(g);
  return status;
}

void gbnf_result_deinit(struct gbnf_result *result) {
  for (size_t i = 0; i < result->note_count; i++)
    free(result->notes[i].pointer);
  free(result->notes);
  free(result->text);
  free(result->refusal);
  free(result->refusal_pointer);
  *result = (struct gbnf_result){0};
}

const char *gbnf_status_name(enum gbnf_status status) {
  static const char *const names[] = {[GBNF_OK] = "ok",
                                      [GBNF_INVALID_SCHEMA] = "invalid_schema",
                                      [GBNF_UNSATISFIABLE] = "unsatisfiable",
                                      [GBNF_TOO_COMPLEX] = "too_complex"};
  return names[status];
}
