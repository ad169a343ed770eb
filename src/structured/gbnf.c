/* The converter as a whole: schema in, grammar and list out. */
#include "structured/gbnf_internal.h"

#include <stdio.h>

bool gb_no_memory(struct gb *g) {
  if (g->status == GBNF_OK) /* what was given up for being too complex stays that */
    g->status = GBNF_OUT_OF_MEMORY;
  return false;
}

bool gb_too_complex(struct gb *g, const char *limit) {
  if (g->status == GBNF_OK) {
    g->status = GBNF_TOO_COMPLEX;
    g->limit = limit;
  }
  return false;
}

bool gb_spend(struct gb *g, int64_t work) {
  g->work += work;
  return g->work <= GB_WORK_MAX || gb_too_complex(g, "the schema takes too much work");
}

void *gb_get(struct gb *g, size_t size) {
  g->bytes += size;
  if (g->bytes > GB_MEMORY_BYTES_MAX) {
    gb_too_complex(g, "the schema takes too much memory");
    return NULL;
  }
  void *memory = schema_arena_get(&g->arena, size);
  if (!memory)
    gb_no_memory(g);
  return memory;
}

static bool note_add(struct gb *g, char *pointer, const char *keyword, const char *why) {
  if (!pointer ||
      !schema_grow((void **)&g->notes, &g->note_capacity, g->note_count + 1, sizeof *g->notes)) {
    schema_release(pointer);
    return gb_no_memory(g);
  }
  g->notes[g->note_count++] = (struct gbnf_note){pointer, keyword, why};
  return true;
}

bool gb_note(struct gb *g, uint32_t entry, const char *keyword, const char *why) {
  struct text key = {0};
  uint32_t known;
  if (g->quiet || g->note_count > GBNF_NOTES_MAX)
    return true;
  if (g->note_count == GBNF_NOTES_MAX) {
    struct text empty = {0};
    return note_add(g, schema_text_take(&empty), "", "and others: the list ends here");
  }
  if (entry != NODE_NONE)
    schema_entry_text(g->compiler.schema, entry, &key);
  else
    schema_text_puts(&key, "");
  size_t pointer = key.length;
  schema_text_puts(&key, "\n");
  schema_text_puts(&key, keyword);
  bool ok = !key.failed || gb_no_memory(g);
  bool fresh = ok && !schema_map_get(&g->noted, key.bytes, key.length, &known);
  if (fresh)
    ok = schema_map_put(&g->noted, &g->arena, key.bytes, key.length, 1) || gb_no_memory(g);
  if (ok && fresh) {
    struct text copy = {0};
    schema_text_add(&copy, key.bytes, pointer);
    ok = note_add(g, schema_text_take(&copy), keyword, why);
  }
  schema_text_deinit(&key);
  return ok;
}

/* All up to "</think>", then blank space: one state for each beginning of the end mark. */
static const struct gb_node *think_node(struct gb *g) {
  static const char end[] = "</think>";
  uint32_t states[sizeof end - 1];
  for (size_t i = 0; i + 1 < sizeof end; i++)
    if (!gb_rule_new(g, "think", NULL, &states[i]))
      return NULL;
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
    if (!g->rules[states[i]].node)
      return NULL;
  }
  return gb_seq(g, gb_word(g, "<think>"), gb_ref(g, states[0]));
}

static bool convert(struct gb *g, bool think, struct text *out) {
  static const char *const reserved[] = {"ws",       "hex",      "char",   "string",  "integer",
                                         "exponent", "unsigned", "number", "boolean", "null",
                                         "name",     "member",   "object", "array",   "value"};
  struct compiler *c = &g->compiler;
  uint32_t root;
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (!schema_map_put(&g->names, &g->arena, reserved[i], strlen(reserved[i]), 1))
      return gb_no_memory(g);
  if (!gb_rule_new(g, "root", NULL, &root))
    return false;
  struct gb_atom *atom = gb_get(g, sizeof *atom);
  if (!atom)
    return false;
  atom->entry = c->schema->resources[0].entry;
  struct gb_set set = gb_set_of(atom, 1);
  const struct gb_node *value = gb_set_node(g, &set, "json");
  const struct gb_node *before = think ? gb_maybe(g, "thinking", think_node(g)) : &gb_empty;
  g->rules[root].node = gb_seq(g, before, value, gb_space(g));
  if (!g->rules[root].node)
    return false;
  return gb_sets_build(g) && gb_write(g, root, out);
}

static void refuse(struct gb *g, const struct schema_errors *errors, struct gbnf_result *out) {
  struct text words = {0}, pointer = {0};
  switch (g->status) {
  case GBNF_OK:
    return;
  case GBNF_INVALID_SCHEMA:
    if (errors->count) {
      schema_text_puts(&words, errors->items[0].message);
      schema_text_puts(&pointer, errors->items[0].pointer);
    } else {
      schema_text_puts(&words, "the schema is not valid");
    }
    break;
  case GBNF_UNSATISFIABLE:
    schema_text_puts(&words, "no finite value matches the schema");
    break;
  case GBNF_TOO_COMPLEX:
    schema_text_puts(&words, g->limit ? g->limit : "the schema is too complex");
    break;
  case GBNF_OUT_OF_MEMORY:
    schema_text_puts(&words, "out of memory");
    break;
  }
  schema_text_puts(&pointer, "");
  out->refusal = schema_text_take(&words);
  out->refusal_pointer = schema_text_take(&pointer);
}

static void release(struct gb *g) {
  schema_map_deinit(&g->names);
  schema_map_deinit(&g->sets);
  schema_map_deinit(&g->classes);
  schema_map_deinit(&g->strings);
  schema_map_deinit(&g->noted);
  schema_map_deinit(&g->primitives);
  schema_release(g->rules);
  schema_release(g->jobs);
  schema_release(g->scopes);
  schema_compiler_deinit(&g->compiler);
  schema_free(g->compiler.schema);
  schema_arena_deinit(&g->arena);
}

static enum gbnf_status status_of(enum schema_status status) {
  switch (status) {
  case SCHEMA_OK:
    return GBNF_OK;
  case SCHEMA_INVALID_SCHEMA:
  case SCHEMA_INVALID:
    return GBNF_INVALID_SCHEMA;
  case SCHEMA_TOO_COMPLEX:
    return GBNF_TOO_COMPLEX;
  case SCHEMA_OUT_OF_MEMORY:
    return GBNF_OUT_OF_MEMORY;
  }
  return GBNF_OK;
}

enum gbnf_status gbnf_convert(const json_t *doc, const struct gbnf_opts *opts,
                              struct gbnf_result *out) {
  struct schema_opts schema_opts = {0};
  struct schema_errors errors = {0};
  struct text text = {0};
  struct gb *g = schema_alloc(sizeof *g);
  *out = (struct gbnf_result){0};
  if (!g)
    return GBNF_OUT_OF_MEMORY;
  *g = (struct gb){.status = GBNF_OK};
  if (opts) {
    schema_opts.registry = opts->registry;
    schema_opts.default_draft = opts->default_draft;
  }
  g->compiler = (struct compiler){.opts = &schema_opts, .errors = &errors, .status = SCHEMA_OK};
  if (!schema_compiler_run(&g->compiler, doc))
    g->status = status_of(g->compiler.status);
  else
    convert(g, opts && opts->think, &text);
  if (g->status == GBNF_OK) {
    out->length = text.length;
    out->text = schema_text_take(&text);
    if (!out->text)
      gb_no_memory(g);
  }
  refuse(g, &errors, out);
  schema_text_deinit(&text);
  schema_errors_deinit(&errors);
  out->notes = g->notes;
  out->note_count = g->note_count;
  enum gbnf_status status = g->status;
  release(g);
  schema_release(g);
  return status;
}

void gbnf_result_deinit(struct gbnf_result *result) {
  for (size_t i = 0; i < result->note_count; i++)
    schema_release(result->notes[i].pointer);
  schema_release(result->notes);
  schema_release(result->text);
  schema_release(result->refusal);
  schema_release(result->refusal_pointer);
  *result = (struct gbnf_result){0};
}

const char *gbnf_status_name(enum gbnf_status status) {
  switch (status) {
  case GBNF_OK:
    return "ok";
  case GBNF_INVALID_SCHEMA:
    return "invalid_schema";
  case GBNF_UNSATISFIABLE:
    return "unsatisfiable";
  case GBNF_TOO_COMPLEX:
    return "too_complex";
  case GBNF_OUT_OF_MEMORY:
    return "out_of_memory";
  }
  return "";
}
