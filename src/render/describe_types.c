/* Renders a schema as types: "name?: type // constraints - description". A structure that is used
 * more than once, or inside itself, gets a name and stands below. */
#include "render/describe_phrase.h"

#include <assert.h>
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
  bool counting;      /* the first of two passes: nothing is kept but the uses */
  struct buf comment; /* that of the place being shown, until there is a line's end for it */
};

enum { ONE_LINE = -1 }; /* instead of an indent */

static bool put_type(struct types *t, struct place place, int indent, bool nested, struct buf *out);

static void types_line(struct types *t, int indent, struct buf *out) {
  if (t->comment.n) {
    buf_puts(out, " // ");
    buf_append(out, t->comment.p, t->comment.n);
    t->comment.n = 0;
  }
  buf_puts(out, "\n");
  for (int i = 0; i < indent; i++)
    buf_puts(out, "  ");
}

static void comment_add(struct types *t, const char *between, const struct buf *text) {
  if (!text->n)
    return;
  buf_puts(&t->comment, t->comment.n ? between : "");
  buf_append(&t->comment, text->p, text->n);
}

/* --- names --- */

static struct named *named_at(struct types *t, uint32_t identity) {
  if (identity == NODE_NONE)
    return NULL;
  t->named = xgrow(t->named, &t->named_capacity, (size_t)identity + 1, sizeof *t->named);
  while (t->named_count <= identity)
    t->named[t->named_count++] = (struct named){0};
  return &t->named[identity];
}

/* Names a structure by the last part of its place: "#/$defs/address" is Address. */
static bool name_structure(struct types *t, struct place place, struct named *named) {
  struct walk *walk = &t->d.walk;
  struct buf where = {0}, name = {0};
  schema_entry_text(walk->schema, walk->schema->nodes[place.nodes[0]].entry, &where);
  const char *from = where.n ? strrchr(where.p, '/') : NULL;
  for (const char *p = from ? from + 1 : "Root"; *p && name.n < 40; p++) {
    bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
    bool digit = *p >= '0' && *p <= '9';
    char first = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    if (letter || (digit && name.n))
      buf_append(&name, name.n ? p : &first, 1);
  }
  if (!name.n)
    buf_puts(&name, "Type");
  size_t base = name.n;
  uint32_t taken = 1;
  for (unsigned n = 2;
       !map_add(&t->names, &walk->arena, buf_view(&name), &taken) && walk_spend(walk, 1); n++) {
    name.n = base;
    buf_printf(&name, "%u", n);
  }
  named->name = arena_strndup(&walk->arena, name.p, name.n);
  buf_deinit(&where);
  buf_deinit(&name);
  return walk->status == SCHEMA_OK;
}

static void enqueue(struct types *t, struct place place) {
  t->queue = xgrow(t->queue, &t->queue_capacity, t->queue_count + 1, sizeof *t->queue);
  t->queue[t->queue_count++] = place;
}

/* Returns true if the place is done with: its name was put, or it was counted before. */
static bool put_name(struct types *t, struct place place, bool nested, struct buf *out) {
  uint32_t identity = outline_identity(&t->d.walk, place);
  struct named *named = named_at(t, identity);
  if (!named || describe_is_leaf(&t->d, place, 2))
    return !describe_going(&t->d);
  if (t->counting)
    return ++named->uses > 1;
  if (named->uses < 2)
    return false;
  if (!named->name && !name_structure(t, place, named))
    return true;
  buf_puts(out, named->name);
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

static void open_member(struct types *t, bool *first, int indent, struct buf *out) {
  if (indent != ONE_LINE)
    types_line(t, indent + 1, out);
  else
    buf_puts(out, *first ? "" : ", ");
  *first = false;
}

static bool put_member(struct types *t, struct place place, int indent, struct buf *out) {
  buf_puts(out, ": ");
  return put_type(t, place, indent == ONE_LINE ? ONE_LINE : indent + 1, indent == ONE_LINE, out);
}

static bool put_other_members(struct types *t, const struct object_op *o, bool *first, int indent,
                              struct buf *out) {
  struct walk *walk = &t->d.walk;
  for (uint32_t i = 0; i < o->pattern_count; i++) {
    struct place place = outline_place(walk, o->patterns[i].node);
    if (outline_is_false(walk, place))
      continue;
    open_member(t, first, indent, out);
    buf_puts(out, "[/");
    render_pattern(o->patterns[i].text, out);
    buf_puts(out, "/]");
    if (!put_member(t, place, indent, out))
      return false;
  }
  struct place other = outline_place(walk, o->additional);
  if (!other.count || outline_is_false(walk, other))
    return describe_going(&t->d);
  open_member(t, first, indent, out);
  buf_puts(out, "[string]");
  return put_member(t, other, indent, out);
}

static bool put_object(struct types *t, const struct outline *outline, int indent,
                       struct buf *out) {
  size_t before = out->n;
  bool first = true;
  buf_puts(out, "{");
  for (uint32_t i = 0; i < outline->field_count; i++) {
    const struct outline_field *field = &outline->fields[i];
    if (!describe_field_listed(&t->d, outline, field, false))
      continue;
    open_member(t, &first, indent, out);
    render_name(field->name, field->length, out);
    buf_puts(out, field->required ? "" : "?");
    if (!put_member(t, field->place, indent, out))
      return false;
  }
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_OBJECT &&
        !put_other_members(t, outline->ops[i]->u.object, &first, indent, out))
      return false;
  if (first) {
    out->n = before;
    buf_puts(out, "object");
    return describe_going(&t->d);
  }
  if (indent != ONE_LINE)
    types_line(t, indent, out);
  buf_puts(out, "}");
  return describe_going(&t->d);
}

/* Puts an item, in parentheses if "[]" would not belong to all of it. */
static bool put_item(struct types *t, struct place place, int indent, struct buf *out) {
  size_t from = out->n;
  if (!put_type(t, place, indent, true, out))
    return false;
  bool simple = out->n > from;
  int depth = 0;
  for (size_t i = from; simple && i < out->n; i++) {
    char c = out->p[i];
    depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
    simple = depth > 0 || (c != '|' && c != ' ' && c != '"');
  }
  if (simple)
    return true;
  struct buf whole = {0};
  buf_append(&whole, out->p + from, out->n - from);
  out->n = from;
  buf_puts(out, "(");
  buf_append(out, whole.p ? whole.p : "", whole.n);
  buf_puts(out, ")");
  buf_deinit(&whole);
  return describe_going(&t->d);
}

static bool put_array(struct types *t, const struct outline *outline, int indent, struct buf *out) {
  struct walk *walk = &t->d.walk;
  uint32_t prefix = outline_prefix_count(outline);
  struct place rest = outline_item(walk, outline, prefix);
  bool closed = outline_is_false(walk, rest);
  if (!prefix) {
    if (!rest.count || closed)
      buf_puts(out, closed ? "[]" : "any[]");
    else if (put_item(t, rest, indent, out))
      buf_puts(out, "[]");
    return describe_going(&t->d);
  }
  buf_puts(out, "[");
  for (uint32_t i = 0; i < prefix; i++) {
    buf_puts(out, i ? ", " : "");
    if (!put_type(t, outline_item(walk, outline, i), indent, true, out))
      return false;
  }
  if (!closed) {
    buf_puts(out, ", ...");
    if (rest.count ? !put_item(t, rest, indent, out) : (buf_puts(out, "any"), false))
      return false;
    buf_puts(out, "[]");
  }
  buf_puts(out, "]");
  return describe_going(&t->d);
}

static void put_bar(bool *first, struct buf *out) {
  buf_puts(out, *first ? "" : " | ");
  *first = false;
}

static bool put_types(struct types *t, const struct outline *outline, int indent, struct buf *out) {
  unsigned types = describe_shown_types(outline);
  bool first = true;
  if (types == TYPE_ANY) {
    buf_puts(out, "any");
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
      buf_puts(out, names[i].name);
    }
  return true;
}

/* Puts the values of every enum and const; those of a second one follow a "&". */
static bool put_values(const struct outline *outline, struct buf *out) {
  bool any = false;
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code != OP_ENUM)
      continue;
    const json_t *all = op->u.options->all;
    bool constant = !strcmp(op->keyword, "const"), first = true;
    buf_puts(out, any ? " & " : "");
    any = true;
    for (size_t k = 0, n = constant ? 1 : json_array_size(all); k < n; k++) {
      put_bar(&first, out);
      render_json(constant ? all : json_array_get(all, k), true, out);
    }
    if (first)
      buf_puts(out, "never");
  }
  return any;
}

static bool types_expression(struct types *t, const struct outline *outline, int indent,
                             struct buf *out) {
  const struct op *forms = describe_type_forms(outline);
  if (outline->never) {
    buf_puts(out, "never");
    return true;
  }
  if (put_values(outline, out))
    return describe_going(&t->d);
  if (!forms)
    return put_types(t, outline, indent, out);
  for (uint32_t i = 0; i < forms->u.list->count; i++) {
    buf_puts(out, i ? " | " : "");
    if (!put_type(t, outline_place(&t->d.walk, forms->u.list->nodes[i]), indent, true, out))
      return false;
  }
  return describe_going(&t->d);
}

static void find_comment(struct types *t, struct place place, const struct outline *outline,
                         struct buf *out) {
  const struct op *forms = describe_type_forms(outline);
  const char *text = outline_description(&t->d.walk, place, outline);
  describe_constraints(&t->d, place, outline, false, out);
  if (forms && forms->code == OP_ONE_OF && !describe_forms_disjoint(&t->d, forms)) {
    buf_puts(out, out->n ? ", " : "");
    describe_say(t->d.language, WORD_FORMS_ONE, "", out);
  }
  if (text) {
    buf_puts(out, out->n ? " - " : "");
    render_sentence(text, out);
  }
}

/* Puts a type. `nested`: it has no line of its own, so what would be its comment stands in
 * parentheses, or after the brace that it opens. */
static bool put_type(struct types *t, struct place place, int indent, bool nested,
                     struct buf *out) {
  struct outline outline;
  struct buf comment = {0}, own = {0};
  if (out->n > DESCRIBE_BYTES_MAX)
    t->d.walk.status = SCHEMA_TOO_COMPLEX;
  if (!describe_going(&t->d) || put_name(t, place, nested, out))
    return describe_going(&t->d);
  if (!outline_of(&t->d.walk, place, &outline))
    return false;
  t->d.level++;
  find_comment(t, place, &outline, &comment);
  bool opens = indent != ONE_LINE && describe_shown_types(&outline) >> JSON_OBJECT & 1 &&
               outline.field_count && !describe_type_forms(&outline);
  bool inside = nested && !opens && comment.n;
  if (!inside)
    comment_add(t, "; ", &comment);
  bool ok = types_expression(t, &outline, inside ? ONE_LINE : indent, &own);
  if (inside) {
    buf_puts(out, "(");
    buf_append(out, own.p ? own.p : "", own.n);
    buf_puts(out, ": ");
    buf_append(out, comment.p, comment.n);
    buf_puts(out, ")");
  } else {
    buf_append(out, own.p ? own.p : "", own.n);
  }
  if (own.n > DESCRIBE_BYTES_MAX)
    t->d.walk.status = SCHEMA_TOO_COMPLEX;
  buf_deinit(&comment);
  buf_deinit(&own);
  t->d.level--;
  return ok && describe_going(&t->d);
}

static bool types_inside(struct describer *d, struct place place, struct buf *out) {
  struct types *t = (struct types *)d;
  if (!out)
    return true;
  struct buf outer = t->comment;
  t->comment = (struct buf){0};
  bool ok = put_type(t, place, ONE_LINE, true, out);
  buf_deinit(&t->comment);
  t->comment = outer;
  return ok;
}

/* Puts a named structure, with its name. */
static bool put_named(struct types *t, struct place place) {
  struct named *named = named_at(t, outline_identity(&t->d.walk, place));
  struct outline outline;
  struct buf comment = {0};
  if (!named || !outline_of(&t->d.walk, place, &outline))
    return false;
  buf_puts(&t->d.out, named->name);
  buf_puts(&t->d.out, ": ");
  find_comment(t, place, &outline, &comment);
  comment_add(t, "; ", &comment);
  buf_deinit(&comment);
  bool ok = types_expression(t, &outline, 0, &t->d.out);
  types_line(t, 0, &t->d.out);
  return ok;
}

/* Puts the root and, as they turn up, the named structures. */
static bool put_all(struct types *t, bool counting) {
  t->counting = counting;
  t->d.out.n = 0;
  t->comment.n = 0;
  bool ok = put_type(t, outline_root(&t->d.walk), 0, false, &t->d.out);
  if (!ok)
    return false;
  struct named *root = named_at(t, outline_identity(&t->d.walk, outline_root(&t->d.walk)));
  if (!describe_going(&t->d))
    return false;
  if (root && root->shown)
    t->d.out.n = 0; /* the root is the first one with a name: no line says it alone */
  else
    types_line(t, 0, &t->d.out);
  for (size_t i = 0; ok && i < t->queue_count; i++)
    ok = put_named(t, t->queue[i]);
  return ok && describe_going(&t->d);
}

enum schema_status describe_types(const struct schema *schema, char **text) {
  assert(schema != NULL && text != NULL);
  struct types t = {.d = {.language = (enum describe_language)DESCRIBE_TERSE,
                          .put_inside = types_inside,
                          .all_inside = true,
                          .values_elsewhere = true}};
  *text = NULL;
  bool ok = walk_init(&t.d.walk, schema) && put_all(&t, true) && put_all(&t, false);
  if (ok)
    *text = buf_take(&t.d.out);
  enum schema_status status = t.d.walk.status;
  buf_deinit(&t.d.out);
  buf_deinit(&t.comment);
  map_deinit(&t.names);
  free(t.named);
  free(t.queue);
  walk_deinit(&t.d.walk);
  return status;
}
