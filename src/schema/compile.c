/* Compiles indexed entries to a program: works through the queue of nodes, then finishes the
 * whole. */
#include "schema/run.h"

#include "format/json_value.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool schema_compile_stopped(const struct compiler *c) {
  return c->status == SCHEMA_TOO_COMPLEX;
}

/* Turns "/properties/a b/0" into "$.properties[\"a b\"][0]". */
static char *path_of_pointer(const char *pointer) {
  struct buf out = {0}, token = {0};
  buf_puts(&out, "$");
  for (const char *p = pointer; *p == '/';) {
    token.n = 0;
    buf_append(&token, "", 0);
    for (p++; *p && *p != '/'; p++) {
      if (*p == '~' && (p[1] == '0' || p[1] == '1'))
        buf_append(&token, *++p == '0' ? "~" : "/", 1);
      else
        buf_append(&token, p, 1);
    }
    bool digits = token.n && token.n < 10 && strspn(token.p, "0123456789") == token.n;
    struct path_step step = {NULL, token.p, token.n};
    struct buf one = {0};
    if (digits)
      buf_printf(&out, "[%s]", token.p);
    else
      schema_path_text(&step, &one);
    if (one.n > 1)
      buf_append(&out, one.p + 1, one.n - 1);
    buf_deinit(&one);
  }
  buf_deinit(&token);
  return buf_take(&out);
}

static void error_at(struct compiler *c, uint32_t entry, const char *suffix, const char *keyword,
                     char *message) {
  struct buf place = {0};
  schema_entry_text(c->schema, entry, &place);
  buf_puts(&place, suffix);
  const char *pointer = buf_c(&place);
  bool foreign = *pointer != '\0' && *pointer != '/';
  char *path = foreign ? xstrdup(pointer) : path_of_pointer(pointer);
  char *copy = xstrdup(pointer);
  schema_errors_add(c->errors, path, copy, buf_take(&place), keyword, message);
}

bool schema_compile_error(struct compiler *c, uint32_t entry, const char *suffix,
                          const char *keyword, const char *format, ...) {
  char line[400];
  va_list args;
  if (schema_compile_stopped(c))
    return false;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  c->status = SCHEMA_INVALID_SCHEMA;
  error_at(c, entry, suffix, keyword, xstrdup(line));
  return false;
}

bool schema_compile_too_complex(struct compiler *c, const char *what) {
  if (schema_compile_stopped(c))
    return false;
  c->status = SCHEMA_TOO_COMPLEX;
  error_at(c, NODE_NONE, "", "", xstrdup(what));
  return false;
}

struct pattern *schema_compile_pattern(struct compiler *c, uint32_t entry, const char *suffix,
                                       const char *keyword, const char *text, size_t length) {
  struct schema *s = c->schema;
  struct pattern_error error = {0};
  uint32_t index;
  if (map_get(&c->patterns, (struct str){text, length}, &index))
    return s->patterns[index];
  struct pattern *pattern = NULL;
  if (pattern_compile(text, length, &pattern, &error) != PATTERN_OK) {
    schema_compile_error(c, entry, suffix, keyword, "not a regular expression: %s at byte %zu",
                         error.text, error.offset);
    return NULL;
  }
  s->pattern_bytes += pattern_bytes(pattern);
  if (s->pattern_bytes > SCHEMA_PATTERN_BYTES_MAX) {
    pattern_free(pattern);
    schema_compile_too_complex(c, "the patterns of the schema take more than 64 MiB, compiled");
    return NULL;
  }
  if (s->pattern_bytes <= SCHEMA_QUICK_BYTES_MAX) {
    s->pattern_bytes -= pattern_bytes(pattern);
    pattern_speed_up(pattern);
    s->pattern_bytes += pattern_bytes(pattern);
  }
  s->patterns = xgrow(s->patterns, &s->pattern_capacity, s->pattern_count + 1, sizeof *s->patterns);
  index = (uint32_t)s->pattern_count++;
  s->patterns[index] = pattern;
  map_put(&c->patterns, &s->arena, (struct str){text, length}, index);
  return pattern;
}

struct op *schema_compile_op(struct compiler *c, enum op_code code, unsigned applies,
                             const char *keyword) {
  assert(keyword);
  struct schema *s = c->schema;
  s->ops = xgrow(s->ops, &s->op_capacity, s->op_count + 1, sizeof *s->ops);
  struct op *op = &s->ops[s->op_count++];
  *op = (struct op){
      .code = (uint8_t)code, .applies = (uint8_t)applies, .node = NODE_NONE, .keyword = keyword};
  return op;
}

static uint32_t node_add(struct compiler *c, uint32_t entry) {
  struct schema *s = c->schema;
  if (s->node_count >= SCHEMA_NODES_MAX) {
    schema_compile_too_complex(c, "too many subschemas");
    return NODE_NONE;
  }
  s->nodes = xgrow(s->nodes, &s->node_capacity, s->node_count + 1, sizeof *s->nodes);
  s->nodes[s->node_count] = (struct node){.types = TYPE_ANY, .entry = entry};
  return (uint32_t)s->node_count++;
}

uint32_t schema_compile_node_of(struct compiler *c, uint32_t entry) {
  assert(entry < c->schema->entry_count);
  struct schema *s = c->schema;
  struct schema_entry *at = &s->entries[entry];
  if (at->node != NODE_NONE)
    return at->node;
  if (json_is_true(at->schema))
    return at->node = NODE_TRUE;
  c->queue = xgrow(c->queue, &c->queue_capacity, c->queue_count + 1, sizeof *c->queue);
  uint32_t node = node_add(c, entry);
  if (node == NODE_NONE)
    return NODE_NONE;
  s->entries[entry].node = node;
  s->nodes[node].resource = at->resource;
  s->resources[at->resource].used = true;
  c->queue[c->queue_count++] = entry;
  return node;
}

uint32_t schema_compile_child(struct compiler *c, uint32_t entry, const json_t *schema,
                              const char *keyword, const char *member) {
  uint32_t child;
  if (json_is_true(schema) || (json_is_object(schema) && !json_object_size(schema)))
    return NODE_TRUE;
  if (json_is_object(schema) && schema_index_find(c, schema, &child))
    return schema_compile_node_of(c, child);
  char *suffix = schema_pointer_suffix(c, keyword, member);
  if (!schema_index_schema(c, schema, entry, suffix, c->schema->entries[entry].resource, &child))
    return NODE_NONE;
  return schema_compile_node_of(c, child);
}

static void compile_queue(struct compiler *c) {
  while (c->queue_done < c->queue_count && !c->misshapen && !schema_compile_stopped(c))
    schema_compile_entry(c, c->queue[c->queue_done++]);
}

/* Compiles all used resources that have the anchor of a dynamic reference, until no new one turns
 * up. */
static bool compile_dynamic(struct compiler *c) {
  struct schema *s = c->schema;
  size_t nodes;
  do {
    nodes = s->node_count;
    if (c->dynamic_name_count * s->resource_count > SCHEMA_DYNAMIC_MAX)
      return schema_compile_too_complex(c, "too many dynamic anchors");
    for (size_t name = 0; name < c->dynamic_name_count; name++)
      for (uint32_t r = 0; r < s->resource_count; r++) {
        const char *text = c->dynamic_names[name];
        uint32_t entry;
        if (s->resources[r].used &&
            schema_anchor_find(&c->dynamic_anchors, r, text, strlen(text), &entry))
          schema_compile_node_of(c, entry);
      }
    compile_queue(c);
  } while (s->node_count != nodes && c->status == SCHEMA_OK);
  if (c->status != SCHEMA_OK || !c->dynamic_name_count)
    return c->status == SCHEMA_OK;
  size_t size = c->dynamic_name_count * s->resource_count;
  s->dynamic = arena_alloc(&s->arena, size * sizeof *s->dynamic);
  for (size_t i = 0; i < size; i++) {
    const char *text = c->dynamic_names[i / s->resource_count];
    uint32_t entry;
    s->dynamic[i] = NODE_NONE;
    if (schema_anchor_find(&c->dynamic_anchors, (uint32_t)(i % s->resource_count), text,
                           strlen(text), &entry))
      s->dynamic[i] = s->entries[entry].node;
  }
  s->dynamic_count = c->dynamic_name_count;
  return true;
}

/* Returns the k-th node that `node` always applies to its own value; NODE_NONE after the last. */
static uint32_t unconditional(const struct schema *s, uint32_t node, uint32_t k) {
  for (uint32_t i = 0; i < s->nodes[node].count; i++) {
    const struct op *op = &s->ops[s->nodes[node].first + i];
    if (op->code == OP_REF) {
      if (k-- == 0)
        return op->node;
    } else if (op->code == OP_ALL_OF) {
      if (k < op->u.list->count)
        return op->u.list->nodes[k];
      k -= op->u.list->count;
    }
  }
  return NODE_NONE;
}

/* Refuses a schema that applies itself to the same value: it would never end. */
static bool check_cycles(struct compiler *c) {
  struct schema *s = c->schema;
  size_t n = s->node_count;
  enum { NEW, OPEN, DONE };
  uint32_t *stack = xmalloc(n * sizeof *stack);
  uint32_t *next = xmalloc(n * sizeof *next);
  unsigned char *state = xcalloc(n, 1); /* NEW */
  bool ok = true;
  for (uint32_t root = 0; ok && root < n; root++) {
    size_t depth = 0;
    if (state[root] != NEW)
      continue;
    state[root] = OPEN;
    next[root] = 0;
    stack[depth++] = root;
    while (ok && depth) {
      uint32_t node = stack[depth - 1];
      uint32_t to = unconditional(s, node, next[node]++);
      if (to == NODE_NONE) {
        state[node] = DONE;
        depth--;
      } else if (state[to] == OPEN) {
        ok = schema_compile_error(c, s->nodes[node].entry, "", "$ref",
                                  "the schema refers to itself without an end");
      } else if (state[to] == NEW) {
        state[to] = OPEN;
        next[to] = 0;
        stack[depth++] = to;
      }
    }
  }
  free(stack);
  free(next);
  free(state);
  return ok;
}

/* Replaces a node that is only a reference by its target. No cycles are left by now. */
static void shorten_references(struct schema *s) {
  for (size_t i = 1; i < s->node_count; i++) {
    struct node *node = &s->nodes[i];
    while (node->count == 1 && node->types == TYPE_ANY && s->ops[node->first].code == OP_REF) {
      const struct node *target = &s->nodes[s->ops[node->first].node];
      if (s->dynamic && target->resource != node->resource)
        break;
      *node = *target;
    }
  }
}

void schema_free(struct schema *schema) {
  if (!schema)
    return;
  for (size_t i = 0; i < schema->pattern_count; i++)
    pattern_free(schema->patterns[i]);
  for (size_t i = 0; i < schema->document_count; i++)
    json_decref(schema->documents[i].root);
  free(schema->patterns);
  free(schema->documents);
  free(schema->entries);
  free(schema->resources);
  free(schema->ops);
  free(schema->nodes);
  arena_deinit(&schema->arena);
  free(schema);
}

static void compile_all(struct compiler *c, const json_t *doc) {
  struct schema *s = c->schema;
  uint8_t dialect = DIALECT_2020, vocabularies = VOCAB_ALL;
  uint32_t resource;
  if (node_add(c, 0) == NODE_NONE)
    return;
  json_t *copy = json_clone(doc);
  assert(copy); /* its depth was checked */
  if (c->opts && c->opts->default_draft &&
      !schema_dialect_find(c, c->opts->default_draft, &dialect, &vocabularies, 0)) {
    json_decref(copy);
    schema_compile_error(c, NODE_NONE, "", "$schema", "\"%.200s\" is not a draft known here",
                         c->opts->default_draft);
    return;
  }
  if (!schema_index_document(c, copy, "", dialect, vocabularies, &resource))
    return;
  s->root = schema_compile_node_of(c, s->resources[resource].entry);
  compile_queue(c);
  if (c->status == SCHEMA_OK && compile_dynamic(c) && check_cycles(c))
    shorten_references(s);
}

bool schema_compiler_run(struct compiler *c, const json_t *doc) {
  c->schema = xcalloc(1, sizeof *c->schema);
  if (!doc)
    schema_compile_error(c, NODE_NONE, "", "", "there is no schema");
  else if (schema_value_too_deep(doc, SCHEMA_NESTING_MAX)) /* before the copy, which recurses */
    schema_compile_too_complex(c, "the schema is nested too deeply");
  else
    compile_all(c, doc);
  return c->status == SCHEMA_OK;
}

void schema_compiler_deinit(struct compiler *c) {
  map_deinit(&c->uris);
  map_deinit(&c->anchors);
  map_deinit(&c->dynamic_anchors);
  map_deinit(&c->places);
  map_deinit(&c->patterns);
  free(c->queue);
  free(c->dynamic_names);
  c->queue = NULL;
  c->dynamic_names = NULL;
}

struct schema *schema_compile(const json_t *doc, const struct schema_opts *opts,
                              struct schema_errors *errs, enum schema_status *status) {
  struct schema_errors own = {0};
  struct compiler c = {.opts = opts, .errors = errs ? errs : &own, .status = SCHEMA_OK};
  schema_compiler_run(&c, doc);
  schema_errors_deinit(&own);
  schema_compiler_deinit(&c);
  if (status)
    *status = c.status;
  if (c.status == SCHEMA_OK)
    return c.schema;
  schema_free(c.schema);
  return NULL;
}
