/* The rendering `types`: "name?: type // constraints - description". A structure that is used more
 * than once, or inside itself, gets a name and stands below. */
#include "structured/describe_phrase.h"

#include <stdio.h>

struct named {
  uint32_t uses;
  char *name; /* NULL: shown where it is used */
  bool shown; /* or in the queue */
};

struct types {
  struct describer d;  /* first: the phrases know no more */
  struct named *named; /* by identity */
  size_t named_count, named_capacity;
  struct map names;
  struct place *queue; /* named places still to be shown */
  size_t queue_count, queue_capacity;
  bool counting;       /* the first of two passes: nothing is kept but the uses */
  struct text comment; /* of the place being shown, until there is a line's end for it */
};

enum { ONE_LINE = -1 }; /* instead of an indent */

static bool put_type(struct types *t, struct place place, int indent, bool nested,
                     struct text *out);

static void new_line(struct types *t, int indent, struct text *out) {
  if (t->comment.length) {
    schema_text_puts(out, " // ");
    schema_text_add(out, t->comment.bytes, t->comment.length);
    t->comment.length = 0;
  }
  schema_text_puts(out, "\n");
  for (int i = 0; i < indent; i++)
    schema_text_puts(out, "  ");
}

static void comment_add(struct types *t, const char *between, const struct text *text) {
  if (!text->length)
    return;
  schema_text_puts(&t->comment, t->comment.length ? between : "");
  schema_text_add(&t->comment, text->bytes, text->length);
}

/* --- names --- */

static struct named *named_at(struct types *t, uint32_t identity) {
  if (identity == NODE_NONE)
    return NULL;
  if (!schema_grow((void **)&t->named, &t->named_capacity, (size_t)identity + 1,
                   sizeof *t->named)) {
    walk_no_memory(&t->d.walk);
    return NULL;
  }
  while (t->named_count <= identity)
    t->named[t->named_count++] = (struct named){0};
  return &t->named[identity];
}

/* From the last part of where it stands: "#/$defs/address" is Address. */
static bool name_it(struct types *t, struct place place, struct named *named) {
  struct walk *walk = &t->d.walk;
  struct text where = {0}, name = {0};
  schema_entry_text(walk->schema, walk->schema->nodes[place.nodes[0]].entry, &where);
  const char *from = where.length ? strrchr(where.bytes, '/') : NULL;
  for (const char *p = from ? from + 1 : "Root"; *p && name.length < 40; p++) {
    bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
    bool digit = *p >= '0' && *p <= '9';
    char first = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    if (letter || (digit && name.length))
      schema_text_add(&name, name.length ? p : &first, 1);
  }
  if (!name.length)
    schema_text_puts(&name, "Type");
  size_t base = name.length;
  uint32_t known;
  for (unsigned n = 2; !name.failed && schema_map_get(&t->names, name.bytes, name.length, &known);
       n++) {
    name.length = base;
    schema_text_printf(&name, "%u", n);
    if (!walk_spend(walk, 1))
      break;
  }
  if (name.failed || where.failed ||
      !schema_map_put(&t->names, &walk->arena, name.bytes, name.length, 1) ||
      !(named->name = schema_arena_copy(&walk->arena, name.bytes, name.length)))
    walk_no_memory(walk);
  schema_text_deinit(&where);
  schema_text_deinit(&name);
  return walk->status == SCHEMA_OK;
}

static bool enqueue(struct types *t, struct place place) {
  if (!schema_grow((void **)&t->queue, &t->queue_capacity, t->queue_count + 1, sizeof *t->queue))
    return walk_no_memory(&t->d.walk);
  t->queue[t->queue_count++] = place;
  return true;
}

/* True if the place is done with: its name was put, or it was counted before. */
static bool put_name(struct types *t, struct place place, bool nested, struct text *out) {
  uint32_t identity = outline_identity(&t->d.walk, place);
  struct named *named = named_at(t, identity);
  if (!named || describe_is_leaf(&t->d, place, 2))
    return !describe_going(&t->d);
  if (t->counting)
    return ++named->uses > 1;
  if (named->uses < 2)
    return false;
  if (!named->name && !name_it(t, place, named))
    return true;
  schema_text_puts(out, named->name);
  const char *text = nested ? NULL : outline_own_description(&t->d.walk, place);
  if (text)
    render_sentence(text, &t->comment);
  if (!named->shown) {
    named->shown = true;
    enqueue(t, outline_target(&t->d.walk, place));
  }
  return true;
}

/* --- types --- */

static void open_member(struct types *t, bool *first, int indent, struct text *out) {
  if (indent != ONE_LINE)
    new_line(t, indent + 1, out);
  else
    schema_text_puts(out, *first ? "" : ", ");
  *first = false;
}

static bool put_member(struct types *t, struct place place, int indent, struct text *out) {
  schema_text_puts(out, ": ");
  return put_type(t, place, indent == ONE_LINE ? ONE_LINE : indent + 1, indent == ONE_LINE, out);
}

static bool put_other_members(struct types *t, const struct object_op *o, bool *first, int indent,
                              struct text *out) {
  struct walk *walk = &t->d.walk;
  for (uint32_t i = 0; i < o->pattern_count; i++) {
    struct place place = outline_place(walk, o->patterns[i].node);
    if (outline_is_false(walk, place))
      continue;
    open_member(t, first, indent, out);
    schema_text_puts(out, "[/");
    render_pattern(o->patterns[i].text, out);
    schema_text_puts(out, "/]");
    if (!put_member(t, place, indent, out))
      return false;
  }
  struct place other = outline_place(walk, o->additional);
  if (!other.count || outline_is_false(walk, other))
    return describe_going(&t->d);
  open_member(t, first, indent, out);
  schema_text_puts(out, "[string]");
  return put_member(t, other, indent, out);
}

static bool put_object(struct types *t, const struct outline *outline, int indent,
                       struct text *out) {
  size_t before = out->length;
  bool first = true;
  schema_text_puts(out, "{");
  for (uint32_t i = 0; i < outline->field_count; i++) {
    const struct outline_field *field = &outline->fields[i];
    if (!describe_field_listed(&t->d, outline, field, false))
      continue;
    open_member(t, &first, indent, out);
    render_name(field->name, field->length, out);
    schema_text_puts(out, field->required ? "" : "?");
    if (!put_member(t, field->place, indent, out))
      return false;
  }
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_OBJECT &&
        !put_other_members(t, outline->ops[i]->u.object, &first, indent, out))
      return false;
  if (first) {
    out->length = before;
    schema_text_puts(out, "object");
    return describe_going(&t->d);
  }
  if (indent != ONE_LINE)
    new_line(t, indent, out);
  schema_text_puts(out, "}");
  return describe_going(&t->d);
}

/* In parentheses where "[]" would not belong to all of it. */
static bool put_item(struct types *t, struct place place, int indent, struct text *out) {
  size_t from = out->length;
  if (!put_type(t, place, indent, true, out))
    return false;
  bool simple = out->length > from;
  int depth = 0;
  for (size_t i = from; simple && i < out->length; i++) {
    char c = out->bytes[i];
    depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
    simple = depth > 0 || (c != '|' && c != ' ' && c != '"');
  }
  if (simple)
    return true;
  struct text whole = {0};
  schema_text_add(&whole, out->bytes + from, out->length - from);
  out->length = from;
  schema_text_puts(out, "(");
  schema_text_add(out, whole.bytes ? whole.bytes : "", whole.length);
  schema_text_puts(out, ")");
  out->failed |= whole.failed;
  schema_text_deinit(&whole);
  return describe_going(&t->d);
}

static bool put_array(struct types *t, const struct outline *outline, int indent,
                      struct text *out) {
  struct walk *walk = &t->d.walk;
  uint32_t prefix = outline_prefix_count(outline);
  struct place rest = outline_item(walk, outline, prefix);
  bool closed = outline_is_false(walk, rest);
  if (!prefix) {
    if (!rest.count || closed)
      schema_text_puts(out, closed ? "[]" : "any[]");
    else if (put_item(t, rest, indent, out))
      schema_text_puts(out, "[]");
    return describe_going(&t->d);
  }
  schema_text_puts(out, "[");
  for (uint32_t i = 0; i < prefix; i++) {
    schema_text_puts(out, i ? ", " : "");
    if (!put_type(t, outline_item(walk, outline, i), indent, true, out))
      return false;
  }
  if (!closed) {
    schema_text_puts(out, ", ...");
    if (rest.count ? !put_item(t, rest, indent, out) : (schema_text_puts(out, "any"), false))
      return false;
    schema_text_puts(out, "[]");
  }
  schema_text_puts(out, "]");
  return describe_going(&t->d);
}

static void put_bar(bool *first, struct text *out) {
  schema_text_puts(out, *first ? "" : " | ");
  *first = false;
}

static bool put_types(struct types *t, const struct outline *outline, int indent,
                      struct text *out) {
  unsigned types = describe_shown_types(outline);
  bool first = true;
  if (types == TYPE_ANY) {
    schema_text_puts(out, "any");
    return true;
  }
  if (types >> JSON_OBJECT & 1) {
    put_bar(&first, out);
    if (!put_object(t, outline, indent, out))
      return false;
  }
  if (types >> JSON_ARRAY & 1) {
    put_bar(&first, out);
    if (!put_array(t, outline, indent, out))
      return false;
  }
  static const struct {
    unsigned types;
    const char *name;
  } names[] = {{1 << JSON_STRING, "string"},
               {1 << JSON_REAL, "number"},
               {1 << JSON_INTEGER, "integer"},
               {TYPE_BOOLEAN, "boolean"},
               {1 << JSON_NULL, "null"}};
  if (types & 1 << JSON_REAL)
    types &= ~(1u << JSON_INTEGER);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (types & names[i].types) {
      put_bar(&first, out);
      schema_text_puts(out, names[i].name);
    }
  return true;
}

/* The values of every enum and const; those of a second one stand behind "&". */
static bool put_values(const struct outline *outline, struct text *out) {
  bool any = false;
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code != OP_ENUM)
      continue;
    const json_t *all = op->u.options->all;
    bool constant = !strcmp(op->keyword, "const"), first = true;
    schema_text_puts(out, any ? " & " : "");
    any = true;
    for (size_t k = 0, n = constant ? 1 : json_array_size(all); k < n; k++) {
      put_bar(&first, out);
      render_json(constant ? all : json_array_get(all, k), true, out);
    }
    if (first)
      schema_text_puts(out, "never");
  }
  return any;
}

static bool put_expression(struct types *t, const struct outline *outline, int indent,
                           struct text *out) {
  const struct op *forms = describe_type_forms(outline);
  if (outline->never) {
    schema_text_puts(out, "never");
    return true;
  }
  if (put_values(outline, out))
    return describe_going(&t->d);
  if (!forms)
    return put_types(t, outline, indent, out);
  for (uint32_t i = 0; i < forms->u.list->count; i++) {
    schema_text_puts(out, i ? " | " : "");
    if (!put_type(t, outline_place(&t->d.walk, forms->u.list->nodes[i]), indent, true, out))
      return false;
  }
  return describe_going(&t->d);
}

static void find_comment(struct types *t, struct place place, const struct outline *outline,
                         struct text *out) {
  const struct op *forms = describe_type_forms(outline);
  const char *text = outline_description(&t->d.walk, place, outline);
  describe_constraints(&t->d, place, outline, false, out);
  if (forms && forms->code == OP_ONE_OF && !describe_forms_disjoint(&t->d, forms)) {
    schema_text_puts(out, out->length ? ", " : "");
    describe_say(t->d.language, WORD_FORMS_ONE, "", out);
  }
  if (text) {
    schema_text_puts(out, out->length ? " - " : "");
    render_sentence(text, out);
  }
}

/* `nested`: no line is its own, so what would be its comment stands in parentheses, or behind the
 * brace that it opens. */
static bool put_type(struct types *t, struct place place, int indent, bool nested,
                     struct text *out) {
  struct outline outline;
  struct text comment = {0}, own = {0};
  if (out->length > DESCRIBE_BYTES_MAX)
    t->d.walk.status = SCHEMA_TOO_COMPLEX;
  if (!describe_going(&t->d) || put_name(t, place, nested, out))
    return describe_going(&t->d);
  if (!outline_of(&t->d.walk, place, &outline))
    return false;
  t->d.level++;
  find_comment(t, place, &outline, &comment);
  bool opens = indent != ONE_LINE && describe_shown_types(&outline) >> JSON_OBJECT & 1 &&
               outline.field_count && !describe_type_forms(&outline);
  bool inside = nested && !opens && comment.length;
  if (!inside)
    comment_add(t, "; ", &comment);
  bool ok = put_expression(t, &outline, inside ? ONE_LINE : indent, &own);
  if (inside) {
    schema_text_puts(out, "(");
    schema_text_add(out, own.bytes ? own.bytes : "", own.length);
    schema_text_puts(out, ": ");
    schema_text_add(out, comment.bytes, comment.length);
    schema_text_puts(out, ")");
  } else {
    schema_text_add(out, own.bytes ? own.bytes : "", own.length);
  }
  if (own.length > DESCRIBE_BYTES_MAX)
    t->d.walk.status = SCHEMA_TOO_COMPLEX;
  if (comment.failed || own.failed)
    walk_no_memory(&t->d.walk);
  schema_text_deinit(&comment);
  schema_text_deinit(&own);
  t->d.level--;
  return ok && describe_going(&t->d);
}

static bool put_inside(struct describer *d, struct place place, struct text *out) {
  struct types *t = (struct types *)d;
  if (!out)
    return true;
  struct text outer = t->comment;
  t->comment = (struct text){0};
  bool ok = put_type(t, place, ONE_LINE, true, out);
  outer.failed |= t->comment.failed;
  schema_text_deinit(&t->comment);
  t->comment = outer;
  return ok;
}

/* A named structure, with its name. */
static bool put_named(struct types *t, struct place place) {
  struct named *named = named_at(t, outline_identity(&t->d.walk, place));
  struct outline outline;
  struct text comment = {0};
  if (!named || !outline_of(&t->d.walk, place, &outline))
    return false;
  schema_text_puts(&t->d.out, named->name);
  schema_text_puts(&t->d.out, ": ");
  find_comment(t, place, &outline, &comment);
  comment_add(t, "; ", &comment);
  if (comment.failed)
    walk_no_memory(&t->d.walk);
  schema_text_deinit(&comment);
  bool ok = put_expression(t, &outline, 0, &t->d.out);
  new_line(t, 0, &t->d.out);
  return ok;
}

/* The root, and as they turn up, what has a name. */
static bool put_all(struct types *t, bool counting) {
  t->counting = counting;
  t->d.out.length = 0;
  t->comment.length = 0;
  bool ok = put_type(t, outline_root(&t->d.walk), 0, false, &t->d.out);
  if (!ok)
    return false;
  struct named *root = named_at(t, outline_identity(&t->d.walk, outline_root(&t->d.walk)));
  if (!describe_going(&t->d))
    return false;
  if (root && root->shown)
    t->d.out.length = 0; /* the root is the first that has a name: no line says it alone */
  else
    new_line(t, 0, &t->d.out);
  for (size_t i = 0; ok && i < t->queue_count; i++)
    ok = put_named(t, t->queue[i]);
  return ok && describe_going(&t->d);
}

enum schema_status describe_types(const struct schema *schema, char **text) {
  struct types t = {.d = {.language = (enum describe_language)DESCRIBE_TERSE,
                          .put_inside = put_inside,
                          .all_inside = true,
                          .values_elsewhere = true}};
  *text = NULL;
  bool ok = walk_init(&t.d.walk, schema) && put_all(&t, true) && put_all(&t, false);
  if (t.comment.failed)
    ok = walk_no_memory(&t.d.walk);
  if (ok && !(*text = schema_text_take(&t.d.out)))
    walk_no_memory(&t.d.walk);
  enum schema_status status = t.d.walk.status;
  schema_text_deinit(&t.d.out);
  schema_text_deinit(&t.comment);
  schema_map_deinit(&t.names);
  schema_release(t.named);
  schema_release(t.queue);
  walk_deinit(&t.d.walk);
  return status;
}
