/* Renders a schema for a model: as a prompt with one line per field, as types, as compact JSON; and
 * estimates what a text costs. */
#include "render/describe.h"

#include "render/describe_phrase.h"
#include "schema/compiled.h"

#include <assert.h>
#include <stdio.h>

/* --- as a prompt: one line per field --- */

enum { LEAF_LEVELS = 3 }; /* subschemas inside each other in one line */

/* Tells the standing of a place. A place in a branch of another (a form of it, what `then` adds) is
 * not all that is said about the value: its type and its fields may be described elsewhere, and
 * null may be forbidden there. */
enum stand { STAND_ALONE, STAND_BRANCH, STAND_IN_BRANCH };

enum presence { PRESENCE_NONE, PRESENCE_OPTIONAL, PRESENCE_REQUIRED };

struct shown {
  char *path;     /* where the structure was shown first; NULL: not yet */
  uint32_t lines; /* below its own */
  bool open;      /* it is being shown now */
};

struct telling {
  struct describer d; /* first: the phrases know no more */
  struct buf path;    /* the place being shown: "a.b[]" */
  struct buf nulls;
  struct map null_paths;
  struct shown *shown; /* by identity */
  size_t shown_count, shown_capacity;
  uint32_t lines;
  bool has_optional;
};

static void prompt_place(struct telling *p, struct place place, int level, enum stand stand,
                         enum presence presence);

static void prompt_say(struct telling *p, enum word word, const char *argument) {
  describe_say(p->d.language, word, argument, &p->d.out);
}

/* --- prompt: types --- */

static void put_leaf(struct describer *d, struct place place, enum stand stand, struct buf *out);

/* Puts "string or null", or "exactly one of these forms: ..." if a value could have several of
 * them. */
static void put_forms(struct describer *d, const struct op *op, struct buf *out) {
  const struct list_op *list = op->u.list;
  bool plain = op->code == OP_ANY_OF || describe_forms_disjoint(d, op);
  if (!plain) {
    describe_say(d->language, WORD_FORMS_ONE, "", out);
    buf_puts(out, ": ");
  }
  for (uint32_t i = 0; i < list->count && describe_going(d); i++) {
    if (i && plain)
      describe_say(d->language, WORD_OR, "", out);
    else if (i)
      buf_puts(out, " | ");
    put_leaf(d, outline_place(&d->walk, list->nodes[i]), STAND_ALONE, out);
  }
}

/* Puts the types and constraints of a place that fits on one line. */
static void prompt_head(struct describer *d, struct place place, const struct outline *outline,
                        enum stand stand, struct buf *out) {
  const struct op *forms = describe_type_forms(outline);
  bool untyped = stand == STAND_BRANCH && outline->types == TYPE_ANY;
  size_t before = out->n;
  buf_auto_t constraints = {0};
  if (outline->never)
    describe_say(d->language, WORD_NOTHING, "", out);
  else if (forms && describe_is_leaf(d, place, LEAF_LEVELS))
    put_forms(d, forms, out);
  else if (forms && stand != STAND_BRANCH)
    describe_say(d->language, forms->code == OP_ANY_OF ? WORD_FORMS_ANY : WORD_FORMS_ONE, "", out);
  else if (!untyped)
    describe_type_words(d, describe_shown_types(outline), out);
  describe_constraints(d, outline, stand != STAND_ALONE, &constraints);
  if (constraints.n) {
    buf_puts(out, out->n > before ? " [" : "[");
    buf_append(out, constraints.p, constraints.n);
    buf_puts(out, "]");
  } else if (untyped && !forms && !outline->field_count) {
    describe_say(d->language, WORD_ANY_VALUE, "", out);
  }
}

static void put_leaf(struct describer *d, struct place place, enum stand stand, struct buf *out) {
  struct outline outline;
  if (outline_of(&d->walk, place, &outline))
    prompt_head(d, place, &outline, stand, out);
}

static bool prompt_inside(struct describer *d, struct place place, struct buf *out) {
  if (out)
    put_leaf(d, place, STAND_BRANCH, out);
  return out || describe_is_leaf(d, place, LEAF_LEVELS);
}

/* --- prompt: lines --- */

static enum stand stand_inside(enum stand stand) {
  return stand == STAND_ALONE ? STAND_ALONE : STAND_IN_BRANCH;
}

static void open_line(struct telling *p, int level) {
  for (int i = 0; i < level; i++)
    buf_puts(&p->d.out, "  ");
  buf_puts(&p->d.out, "- ");
}

/* Puts "- (each item): " and what is there. `step` is what it adds to the path. */
static void put_labelled(struct telling *p, enum word label, const char *argument, const char *step,
                         struct place place, int level, enum stand stand) {
  size_t length = p->path.n;
  open_line(p, level);
  buf_puts(&p->d.out, "(");
  prompt_say(p, label, argument);
  buf_puts(&p->d.out, "): ");
  buf_puts(&p->path, step);
  prompt_place(p, place, level, stand, PRESENCE_NONE);
  p->path.n = length;
}

/* Does the same for a part that the line above does not contain yet. */
static void prompt_part(struct telling *p, enum word label, const char *argument, uint32_t node,
                        int level) {
  struct place place = outline_place(&p->d.walk, node);
  if (place.count && !describe_is_leaf(&p->d, place, LEAF_LEVELS))
    put_labelled(p, label, argument, "", place, level, STAND_BRANCH);
}

static void put_fields(struct telling *p, const struct outline *outline, int level,
                       enum stand stand) {
  for (uint32_t i = 0; i < outline->field_count; i++) {
    const struct outline_field *field = &outline->fields[i];
    size_t length = p->path.n;
    if (!describe_field_listed(&p->d, outline, field, stand != STAND_ALONE))
      continue;
    open_line(p, level);
    render_name(field->name, field->length, &p->d.out);
    buf_puts(&p->d.out, ": ");
    buf_puts(&p->path, length ? "." : "");
    render_name(field->name, field->length, &p->path);
    enum presence presence = stand == STAND_ALONE ? PRESENCE_OPTIONAL : PRESENCE_NONE;
    if (field->required)
      presence = PRESENCE_REQUIRED;
    p->has_optional |= presence == PRESENCE_OPTIONAL;
    prompt_place(p, field->place, level, stand_inside(stand), presence);
    p->path.n = length;
  }
}

static void put_other_fields(struct telling *p, const struct object_op *o, int level,
                             enum stand stand) {
  struct walk *walk = &p->d.walk;
  for (uint32_t i = 0; i < o->pattern_count; i++) {
    struct place place = outline_place(walk, o->patterns[i].node);
    buf_auto_t pattern = {0};
    if (outline_is_false(walk, place))
      continue;
    render_pattern(o->patterns[i].text, &pattern);
    put_labelled(p, WORD_FIELD_MATCHING, pattern.p, ".*", place, level, stand_inside(stand));
  }
  struct place other = outline_place(walk, o->additional);
  if (other.count && !outline_is_false(walk, other))
    put_labelled(p, WORD_ANY_OTHER_FIELD, "", ".*", other, level, stand_inside(stand));
  prompt_part(p, WORD_FIELD_NAMES, "", o->names, level);
}

static void put_items(struct telling *p, const struct outline *outline, int level,
                      enum stand stand) {
  struct walk *walk = &p->d.walk;
  uint32_t prefix = outline_prefix_count(outline);
  for (uint32_t i = 0; i < prefix; i++) {
    char number[16], step[24];
    snprintf(number, sizeof number, "%u", (unsigned)i + 1);
    snprintf(step, sizeof step, "[%u]", (unsigned)i);
    put_labelled(p, WORD_ITEM, number, step, outline_item(walk, outline, i), level,
                 stand_inside(stand));
  }
  struct place rest = outline_item(walk, outline, prefix);
  if (rest.count && !outline_is_false(walk, rest))
    put_labelled(p, prefix ? WORD_EACH_FURTHER_ITEM : WORD_EACH_ITEM, "", "[]", rest, level,
                 stand_inside(stand));
}

static void put_form_lines(struct telling *p, const struct op *op, int level, enum stand stand) {
  for (uint32_t i = 0; i < op->u.list->count; i++) {
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)i + 1);
    put_labelled(p, WORD_FORM, number, "", outline_place(&p->d.walk, op->u.list->nodes[i]), level,
                 stand);
  }
}

/* Puts the forms of a place that has a type of its own. */
static void put_further_forms(struct telling *p, const struct op *op, int level) {
  open_line(p, level);
  buf_puts(&p->d.out, "(");
  prompt_say(p, op->code == OP_ANY_OF ? WORD_FORMS_ANY : WORD_FORMS_ONE, "");
  buf_puts(&p->d.out, "):\n");
  p->lines++;
  put_form_lines(p, op, level + 1, STAND_BRANCH);
}

static void put_if_part(struct telling *p, enum word word, uint32_t node, int level) {
  if (node != NODE_NONE)
    put_labelled(p, word, "", "", outline_place(&p->d.walk, node), level, STAND_BRANCH);
}

static void put_dependent(struct telling *p, const struct op *op, int level) {
  struct walk *walk = &p->d.walk;
  struct place place = outline_place(walk, op->node);
  buf_auto_t name = {0};
  if (!place.count || outline_is_false(walk, place))
    return;
  render_name(op->u.dependency->name, op->u.dependency->length, &name);
  put_labelled(p, WORD_WITH_FIELD, name.p, "", place, level, STAND_BRANCH);
}

static void put_unevaluated(struct telling *p, const struct op *op, int level, enum stand stand) {
  struct place place = outline_place(&p->d.walk, op->node);
  bool items = op->code == OP_UNEVALUATED_ITEMS;
  if (place.count && !outline_is_false(&p->d.walk, place))
    put_labelled(p, items ? WORD_ANY_OTHER_ITEM : WORD_ANY_OTHER_FIELD, "", items ? "[]" : ".*",
                 place, level, stand_inside(stand));
}

static void put_below_op(struct telling *p, struct place place, const struct outline *outline,
                         const struct op *op, int level, enum stand stand) {
  switch ((enum op_code)op->code) {
  case OP_FALSE:
  case OP_ENUM:
  case OP_MINIMUM:
  case OP_MAXIMUM:
  case OP_EXCLUSIVE_MINIMUM:
  case OP_EXCLUSIVE_MAXIMUM:
  case OP_MULTIPLE_OF:
  case OP_MIN_LENGTH:
  case OP_MAX_LENGTH:
  case OP_PATTERN:
  case OP_FORMAT:
  case OP_MIN_ITEMS:
  case OP_MAX_ITEMS:
  case OP_UNIQUE:
  case OP_ITEMS: /* put_items, for all of them at once */
  case OP_MIN_PROPERTIES:
  case OP_MAX_PROPERTIES:
  case OP_DEPENDENT_REQUIRED:
  case OP_REF:
  case OP_DYNAMIC_REF:
  case OP_ALL_OF:
    return;
  case OP_OBJECT:
    put_other_fields(p, op->u.object, level, stand);
    return;
  case OP_CONTAINS:
    prompt_part(p, WORD_CONTAINED, "", op->u.contains->node, level);
    return;
  case OP_ANY_OF:
  case OP_ONE_OF: {
    bool leaf = describe_is_leaf(&p->d, place, LEAF_LEVELS);
    if (op != describe_type_forms(outline) || (stand == STAND_BRANCH && !leaf))
      put_further_forms(p, op, level);
    else if (!leaf)
      put_form_lines(p, op, level, STAND_ALONE);
    return;
  }
  case OP_NOT:
    prompt_part(p, WORD_NOT, "", op->node, level);
    return;
  case OP_IF: {
    const struct if_op *o = op->u.branch;
    if (o->then_node != NODE_NONE || o->else_node != NODE_NONE)
      put_if_part(p, WORD_IF, o->condition, level);
    put_if_part(p, WORD_THEN, o->then_node, level);
    put_if_part(p, WORD_ELSE, o->else_node, level);
    return;
  }
  case OP_DEPENDENT_SCHEMA:
    put_dependent(p, op, level);
    return;
  case OP_UNEVALUATED_ITEMS:
  case OP_UNEVALUATED_PROPERTIES:
    put_unevaluated(p, op, level, stand);
    return;
  }
}

static void put_below(struct telling *p, struct place place, const struct outline *outline,
                      int level, enum stand stand) {
  unsigned types = describe_shown_types(outline);
  if (outline->never || !describe_going(&p->d))
    return;
  if (types >> JSON_OBJECT & 1)
    put_fields(p, outline, level, stand);
  if (types >> JSON_ARRAY & 1)
    put_items(p, outline, level, stand);
  for (uint32_t i = 0; i < outline->op_count && describe_going(&p->d); i++)
    if (outline->ops[i]->applies & types)
      put_below_op(p, place, outline, outline->ops[i], level, stand);
}

/* --- prompt: null, and structures shown before --- */

static void note_null(struct telling *p, struct place place, const struct outline *outline) {
  uint32_t first = 1;
  if (!describe_admits_null(&p->d, place, outline))
    return;
  buf_append(&p->path, "", 0); /* ends it: it was cut */
  const char *path = p->path.p;
  if (!map_add(&p->null_paths, &p->d.walk.arena, buf_view(&p->path), &first))
    return;
  if (p->nulls.n <= DESCRIBE_NULL_BYTES) {
    buf_puts(&p->nulls, p->nulls.n ? ", " : "");
    if (!p->path.n || !strcmp(path, "[]"))
      describe_say(p->d.language, p->path.n ? WORD_EACH_ITEM : WORD_NULL_WHOLE, "", &p->nulls);
    else
      buf_append(&p->nulls, path, p->path.n);
  }
}

/* Returns a slot, which may move when others are asked for. */
static struct shown *shown_at(struct telling *p, uint32_t identity) {
  if (identity == NODE_NONE)
    return NULL;
  p->shown = xgrow(p->shown, &p->shown_capacity, (size_t)identity + 1, sizeof *p->shown);
  while (p->shown_count <= identity)
    p->shown[p->shown_count++] = (struct shown){0};
  return &p->shown[identity];
}

static void shown_open(struct telling *p, struct shown *shown) {
  if (!shown->path)
    shown->path = arena_strndup(&p->d.walk.arena, buf_c(&p->path), p->path.n);
  shown->open = true;
}

static void say_same(struct telling *p, const char *path) {
  buf_auto_t whole = {0};
  if (!*path) {
    describe_say(p->d.language, WORD_WHOLE, "", &whole);
    path = whole.p;
  }
  buf_puts(&p->d.out, ", ");
  prompt_say(p, WORD_SAME_AS, path);
}

/* Puts the descriptions. A structure that was shown before keeps only this place's own. */
static void put_tail(struct telling *p, struct place place, const struct outline *outline,
                     enum presence presence, bool again) {
  const char *text = outline_own_description(&p->d.walk, place);
  if (!again)
    text = outline_description(&p->d.walk, place, outline);
  if (presence != PRESENCE_NONE) {
    buf_puts(&p->d.out, " (");
    prompt_say(p, presence == PRESENCE_REQUIRED ? WORD_REQUIRED : WORD_OPTIONAL, "");
    buf_puts(&p->d.out, ")");
  }
  if (text) {
    buf_puts(&p->d.out, " - ");
    render_sentence(text, &p->d.out);
  }
}

/* Puts the rest of a line that has been begun, and the lines below it, at `level` + 1. */
static void prompt_place(struct telling *p, struct place place, int level, enum stand stand,
                         enum presence presence) {
  struct outline outline;
  uint32_t identity = outline_identity(&p->d.walk, place);
  struct shown *shown = shown_at(p, identity);
  bool again = shown && (shown->open || (shown->path && shown->lines > DESCRIBE_REPEAT_LINES));
  p->d.level = level + 1;
  if (!outline_of(&p->d.walk, place, &outline))
    return;
  prompt_head(&p->d, place, &outline, stand, &p->d.out);
  if (!describe_going(&p->d))
    return;
  if (again)
    say_same(p, shown->path);
  put_tail(p, place, &outline, presence, again);
  while (p->d.out.n && p->d.out.p[p->d.out.n - 1] == ' ')
    p->d.out.n--;
  buf_puts(&p->d.out, "\n");
  p->lines++;
  if (stand == STAND_ALONE)
    note_null(p, place, &outline);
  if (again)
    return;
  if (shown)
    shown_open(p, shown);
  uint32_t before = p->lines;
  put_below(p, place, &outline, level + 1, stand);
  shown = shown_at(p, identity);
  if (shown) {
    shown->open = false;
    shown->lines = p->lines - before;
  }
}

/* --- prompt: the whole --- */

static void put_sentence(struct telling *p, enum word word, const char *argument) {
  if (p->d.out.p[p->d.out.n - 1] != '\n' && p->d.language == DESCRIBE_ENGLISH)
    buf_puts(&p->d.out, " ");
  prompt_say(p, word, argument);
}

static void put_closing(struct telling *p, bool scalar) {
  if (p->nulls.n > DESCRIBE_NULL_BYTES)
    put_sentence(p, WORD_NULL_MARKED, "");
  else if (p->nulls.n)
    put_sentence(p, WORD_NULL_ONLY, p->nulls.p);
  else if (!scalar)
    put_sentence(p, WORD_NULL_NEVER, "");
  if (p->has_optional)
    put_sentence(p, WORD_MAY_LEAVE_OUT, "");
  put_sentence(p, WORD_NO_INVENTING, "");
  buf_puts(&p->d.out, "\n");
}

static enum word describe_kind(unsigned types) {
  static const struct {
    unsigned types;
    enum word word;
  } kinds[] = {{1 << JSON_OBJECT, WORD_OBJECT}, {1 << JSON_ARRAY, WORD_ARRAY},
               {1 << JSON_STRING, WORD_STRING}, {1 << JSON_INTEGER, WORD_INTEGER},
               {TYPE_NUMBER, WORD_NUMBER},      {TYPE_BOOLEAN, WORD_BOOLEAN},
               {1 << JSON_NULL, WORD_NULL}};
  types &= TYPE_ANY;
  for (size_t i = 0; types && i < ARRAY_LEN(kinds); i++)
    if (!(types & ~kinds[i].types))
      return kinds[i].word;
  return WORD_VALUE;
}

/* Puts the answer as a whole: its own line only if that says more than the first sentence. */
static void put_root(struct telling *p) {
  struct place root = outline_root(&p->d.walk);
  struct outline outline;
  buf_auto_t kind = {0}, below = {0};
  if (!outline_of(&p->d.walk, root, &outline))
    return;
  enum word word = describe_kind(describe_shown_types(&outline));
  bool scalar = word != WORD_OBJECT && word != WORD_ARRAY && word != WORD_VALUE;
  prompt_place(p, root, -1, STAND_ALONE, PRESENCE_NONE);
  if (!describe_going(&p->d))
    return;
  describe_say(p->d.language, word, "", &kind);
  const char *end = strchr(p->d.out.p, '\n');
  size_t first = (size_t)(end - p->d.out.p);
  bool plain = word != WORD_VALUE && first == kind.n && !memcmp(p->d.out.p, kind.p, first);
  buf_append(&below, end + 1, p->d.out.n - first - 1);
  p->d.out.n = first;
  buf_auto_t head = p->d.out;
  p->d.out = (struct buf){0};
  prompt_say(p, below.n ? WORD_RETURN : WORD_RETURN_PLAIN, kind.p);
  buf_puts(&p->d.out, "\n\n");
  if (!plain) {
    buf_puts(&p->d.out, "(");
    prompt_say(p, WORD_WHOLE, "");
    buf_puts(&p->d.out, "): ");
    buf_append(&p->d.out, head.p, head.n);
    buf_puts(&p->d.out, "\n");
  }
  if (below.n)
    buf_append(&p->d.out, below.p, below.n);
  if (!plain || below.n)
    buf_puts(&p->d.out, "\n");
  put_closing(p, scalar);
}

enum schema_status describe_prompt(const struct schema *schema, enum describe_language language,
                                   char **text) {
  assert(schema != NULL && text != NULL);
  struct telling p = {.d = {.language = language, .put_inside = prompt_inside}};
  *text = NULL;
  walk_init(&p.d.walk, schema);
  put_root(&p);
  enum schema_status status = p.d.walk.status;
  if (status == SCHEMA_OK)
    *text = buf_take(&p.d.out);
  buf_deinit(&p.d.out);
  buf_deinit(&p.path);
  buf_deinit(&p.nulls);
  map_deinit(&p.null_paths);
  free(p.shown);
  walk_deinit(&p.d.walk);
  return status;
}

/* --- prompt: the request --- */

const char *const describe_form_names[] = {
    [DESCRIBE_AS_PROMPT] = "prompt",
    [DESCRIBE_AS_TYPES] = "types",
    [DESCRIBE_AS_JSON] = "json",
    [DESCRIBE_AS_COUNT] = NULL,
};

bool describe_form_find(const char *name, enum describe_form *form) {
  int i = str_index(str_from(name), describe_form_names, DESCRIBE_AS_COUNT);
  if (i >= 0)
    *form = (enum describe_form)i;
  return i >= 0;
}

static enum word root_kind(const struct schema *schema) {
  AUTO(walk_deinit) struct walk walk;
  struct outline outline;
  enum word kind = WORD_VALUE;
  walk_init(&walk, schema);
  if (outline_of(&walk, outline_root(&walk), &outline))
    kind = describe_kind(describe_shown_types(&outline));
  return kind;
}

void describe_request(const struct schema *schema, enum describe_form form,
                      enum describe_language language, struct buf *out) {
  assert(schema != NULL && form < DESCRIBE_AS_COUNT && out != NULL);
  char *text = NULL;
  buf_auto_t kind = {0};
  if (form == DESCRIBE_AS_PROMPT && describe_prompt(schema, language, &text) == SCHEMA_OK) {
    buf_puts(out, text);
    describe_free(text);
    return;
  }
  bool types = form == DESCRIBE_AS_TYPES && describe_types(schema, &text) == SCHEMA_OK;
  if (!types)
    (void)describe_json(schema, true, &text);
  describe_say(language, root_kind(schema), "", &kind);
  describe_say(language, types ? WORD_RETURN : WORD_RETURN_SCHEMA, buf_c(&kind), out);
  buf_printf(out, "\n\n%s\n", text);
  describe_say(language, WORD_NULL_TYPED, "", out);
  buf_puts(out, " ");
  describe_say(language, WORD_NO_INVENTING, "", out);
  buf_puts(out, "\n");
  describe_free(text);
}

void describe_free(char *text) {
  free(text);
}

/* --- as types: "name?: type // constraints - description"; a structure that is used more than
 * once, or inside itself, gets a name and stands below --- */

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

static void put_type(struct types *t, struct place place, int indent, bool nested, struct buf *out);

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

/* --- types: names --- */

static struct named *named_at(struct types *t, uint32_t identity) {
  if (identity == NODE_NONE)
    return NULL;
  t->named = xgrow(t->named, &t->named_capacity, (size_t)identity + 1, sizeof *t->named);
  while (t->named_count <= identity)
    t->named[t->named_count++] = (struct named){0};
  return &t->named[identity];
}

/* Names a structure by the last part of its place: "#/$defs/address" is Address. */
static void name_structure(struct types *t, struct place place, struct named *named) {
  struct walk *walk = &t->d.walk;
  buf_auto_t where = {0}, name = {0};
  schema_entry_text(walk->schema, walk->schema->nodes[place.nodes[0]].entry, &where);
  const char *from = where.n ? strrchr(where.p, '/') : NULL;
  for (const char *p = from ? from + 1 : "Root"; *p && name.n < 40; p++) {
    bool letter = str_is_letter(*p) || *p == '_';
    bool digit = str_is_digit(*p);
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
  if (!named->name)
    name_structure(t, place, named);
  buf_puts(out, named->name);
  const char *text = nested ? NULL : outline_own_description(&t->d.walk, place);
  if (text)
    render_sentence(text, &t->comment);
  if (!named->shown) {
    named->shown = true;
    t->queue = xgrow(t->queue, &t->queue_capacity, t->queue_count + 1, sizeof *t->queue);
    t->queue[t->queue_count++] = outline_target(&t->d.walk, place);
  }
  return true;
}

/* --- types: places --- */

static void open_member(struct types *t, bool *first, int indent, struct buf *out) {
  if (indent != ONE_LINE)
    types_line(t, indent + 1, out);
  else
    buf_puts(out, *first ? "" : ", ");
  *first = false;
}

static void put_member(struct types *t, struct place place, int indent, struct buf *out) {
  buf_puts(out, ": ");
  put_type(t, place, indent == ONE_LINE ? ONE_LINE : indent + 1, indent == ONE_LINE, out);
}

static void put_other_members(struct types *t, const struct object_op *o, bool *first, int indent,
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
    put_member(t, place, indent, out);
  }
  struct place other = outline_place(walk, o->additional);
  if (!other.count || outline_is_false(walk, other))
    return;
  open_member(t, first, indent, out);
  buf_puts(out, "[string]");
  put_member(t, other, indent, out);
}

static void put_object(struct types *t, const struct outline *outline, int indent,
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
    put_member(t, field->place, indent, out);
  }
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_OBJECT)
      put_other_members(t, outline->ops[i]->u.object, &first, indent, out);
  if (first) {
    out->n = before;
    buf_puts(out, "object");
    return;
  }
  if (indent != ONE_LINE)
    types_line(t, indent, out);
  buf_puts(out, "}");
}

/* Puts the type of items, in parentheses if "[]" would not belong to all of it. */
static void put_items_type(struct types *t, struct place place, int indent, struct buf *out) {
  size_t from = out->n;
  if (!place.count) {
    buf_puts(out, "any");
    return;
  }
  put_type(t, place, indent, true, out);
  bool simple = out->n > from;
  int depth = 0;
  for (size_t i = from; simple && i < out->n; i++) {
    char c = out->p[i];
    depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
    simple = depth > 0 || (c != '|' && c != ' ' && c != '"');
  }
  if (simple)
    return;
  buf_auto_t whole = {0};
  buf_append(&whole, out->p + from, out->n - from);
  out->n = from;
  buf_puts(out, "(");
  buf_append(out, whole.p ? whole.p : "", whole.n);
  buf_puts(out, ")");
}

static void put_array(struct types *t, const struct outline *outline, int indent, struct buf *out) {
  struct walk *walk = &t->d.walk;
  uint32_t prefix = outline_prefix_count(outline);
  struct place rest = outline_item(walk, outline, prefix);
  bool closed = outline_is_false(walk, rest);
  if (!prefix) {
    if (!closed)
      put_items_type(t, rest, indent, out);
    buf_puts(out, "[]");
    return;
  }
  buf_puts(out, "[");
  for (uint32_t i = 0; i < prefix; i++) {
    buf_puts(out, i ? ", " : "");
    put_type(t, outline_item(walk, outline, i), indent, true, out);
  }
  if (!closed) {
    buf_puts(out, ", ...");
    put_items_type(t, rest, indent, out);
    buf_puts(out, "[]");
  }
  buf_puts(out, "]");
}

static void put_bar(bool *first, struct buf *out) {
  buf_puts(out, *first ? "" : " | ");
  *first = false;
}

static void put_types(struct types *t, const struct outline *outline, int indent, struct buf *out) {
  unsigned types = describe_shown_types(outline);
  bool first = true;
  if (types == TYPE_ANY) {
    buf_puts(out, "any");
    return;
  }
  if (types >> JSON_OBJECT & 1) {
    put_bar(&first, out);
    put_object(t, outline, indent, out);
  }
  if (types >> JSON_ARRAY & 1) {
    put_bar(&first, out);
    put_array(t, outline, indent, out);
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

static void types_expression(struct types *t, const struct outline *outline, int indent,
                             struct buf *out) {
  const struct op *forms = describe_type_forms(outline);
  if (outline->never) {
    buf_puts(out, "never");
    return;
  }
  if (put_values(outline, out))
    return;
  if (!forms)
    put_types(t, outline, indent, out);
  for (uint32_t i = 0; forms && i < forms->u.list->count; i++) {
    buf_puts(out, i ? " | " : "");
    put_type(t, outline_place(&t->d.walk, forms->u.list->nodes[i]), indent, true, out);
  }
}

static void find_comment(struct types *t, struct place place, const struct outline *outline,
                         struct buf *out) {
  const struct op *forms = describe_type_forms(outline);
  const char *text = outline_description(&t->d.walk, place, outline);
  describe_constraints(&t->d, outline, false, out);
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
static void put_type(struct types *t, struct place place, int indent, bool nested,
                     struct buf *out) {
  struct outline outline;
  buf_auto_t comment = {0}, own = {0};
  if (out->n > DESCRIBE_BYTES_MAX)
    t->d.walk.status = SCHEMA_TOO_COMPLEX;
  if (!describe_going(&t->d) || put_name(t, place, nested, out) ||
      !outline_of(&t->d.walk, place, &outline))
    return;
  t->d.level++;
  find_comment(t, place, &outline, &comment);
  bool opens = indent != ONE_LINE && describe_shown_types(&outline) >> JSON_OBJECT & 1 &&
               outline.field_count && !describe_type_forms(&outline);
  bool inside = nested && !opens && comment.n;
  if (!inside)
    comment_add(t, "; ", &comment);
  types_expression(t, &outline, inside ? ONE_LINE : indent, &own);
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
  t->d.level--;
}

static bool types_inside(struct describer *d, struct place place, struct buf *out) {
  struct types *t = (struct types *)d;
  if (!out)
    return true;
  struct buf outer = t->comment;
  t->comment = (struct buf){0};
  put_type(t, place, ONE_LINE, true, out);
  buf_deinit(&t->comment);
  t->comment = outer;
  return true;
}

/* Puts a named structure, with its name. */
static void put_named(struct types *t, struct place place) {
  struct named *named = named_at(t, outline_identity(&t->d.walk, place));
  struct outline outline;
  buf_auto_t comment = {0};
  if (!named || !outline_of(&t->d.walk, place, &outline))
    return;
  buf_puts(&t->d.out, named->name);
  buf_puts(&t->d.out, ": ");
  find_comment(t, place, &outline, &comment);
  comment_add(t, "; ", &comment);
  types_expression(t, &outline, 0, &t->d.out);
  types_line(t, 0, &t->d.out);
}

/* Puts the root and, as they turn up, the named structures. */
static void put_all(struct types *t, bool counting) {
  t->counting = counting;
  t->d.out.n = 0;
  t->comment.n = 0;
  put_type(t, outline_root(&t->d.walk), 0, false, &t->d.out);
  struct named *root = named_at(t, outline_identity(&t->d.walk, outline_root(&t->d.walk)));
  if (root && root->shown)
    t->d.out.n = 0; /* the root is the first one with a name: no line says it alone */
  else
    types_line(t, 0, &t->d.out);
  for (size_t i = 0; i < t->queue_count && describe_going(&t->d); i++)
    put_named(t, t->queue[i]);
}

enum schema_status describe_types(const struct schema *schema, char **text) {
  assert(schema != NULL && text != NULL);
  struct types t = {.d = {.language = (enum describe_language)DESCRIBE_TERSE,
                          .put_inside = types_inside,
                          .all_inside = true,
                          .values_elsewhere = true}};
  *text = NULL;
  walk_init(&t.d.walk, schema);
  put_all(&t, true);
  put_all(&t, false);
  enum schema_status status = t.d.walk.status;
  if (status == SCHEMA_OK)
    *text = buf_take(&t.d.out);
  buf_deinit(&t.d.out);
  buf_deinit(&t.comment);
  map_deinit(&t.names);
  free(t.named);
  free(t.queue);
  walk_deinit(&t.d.walk);
  return status;
}

/* --- as compact JSON, with or without its annotations --- */

struct compact {
  struct buf *out;
  bool annotated;
  unsigned dialect;
};

static void compact_schema(const struct compact *c, const json_t *schema);

static bool is_annotation(const char *name) {
  return str_among(str_from(name), "title description default examples deprecated readOnly "
                                   "writeOnly $comment");
}

static void put_key(struct buf *out, bool *first, void *at) {
  buf_puts(out, *first ? "" : ",");
  *first = false;
  render_quoted(json_object_iter_key(at), json_object_iter_key_len(at), out);
  buf_puts(out, ":");
}

/* Puts members that are schemas; others (the lists of `dependencies`) stay as they are. */
static void put_map(const struct compact *c, const json_t *map) {
  bool first = true;
  buf_puts(c->out, "{");
  for (void *at = json_object_iter((json_t *)map); at;
       at = json_object_iter_next((json_t *)map, at)) {
    put_key(c->out, &first, at);
    compact_schema(c, json_object_iter_value(at));
  }
  buf_puts(c->out, "}");
}

static void put_list(const struct compact *c, const json_t *list) {
  buf_puts(c->out, "[");
  for (size_t i = 0, n = json_array_size(list); i < n; i++) {
    buf_puts(c->out, i ? "," : "");
    compact_schema(c, json_array_get(list, i));
  }
  buf_puts(c->out, "]");
}

static void compact_value(const struct compact *c, const struct keyword *keyword,
                          const json_t *value) {
  switch (keyword ? (int)keyword->shape : SHAPE_ANY) {
  case SHAPE_SCHEMA:
  case SHAPE_SCHEMA_LIST:
  case SHAPE_SCHEMA_OR_LIST:
    if (json_is_array(value))
      put_list(c, value);
    else
      compact_schema(c, value);
    return;
  case SHAPE_SCHEMA_MAP:
  case SHAPE_PATTERN_MAP:
  case SHAPE_DEPENDENCIES:
    put_map(c, value);
    return;
  default:
    render_json(value, false, c->out);
  }
}

static void compact_schema(const struct compact *c, const json_t *schema) {
  bool first = true;
  if (!json_is_object(schema)) {
    render_json(schema, false, c->out);
    return;
  }
  buf_puts(c->out, "{");
  for (void *at = json_object_iter((json_t *)schema); at;
       at = json_object_iter_next((json_t *)schema, at)) {
    const char *name = json_object_iter_key(at);
    if (!c->annotated && is_annotation(name))
      continue;
    put_key(c->out, &first, at);
    compact_value(c, schema_keyword_find(name, c->dialect), json_object_iter_value(at));
  }
  buf_puts(c->out, "}");
}

enum schema_status describe_json(const struct schema *schema, bool keep, char **text) {
  assert(schema != NULL && text != NULL);
  struct buf out = {0};
  struct compact c = {&out, keep, schema->resources[0].dialect};
  compact_schema(&c, schema->documents[0].root);
  buf_puts(&out, "\n");
  *text = buf_take(&out);
  return SCHEMA_OK;
}

/* --- how many tokens a model makes of a text --- */

/* Counts runs of characters as a byte-pair reader cuts them: a word of up to eight letters is one
 * token and each four further letters one more, three digits are one, up to four marks are one, a
 * blank before a word is free, an indent is one, and so is each character beyond ASCII. Measured on
 * 37 renderings of ten schemas: 0.95 to 1.16 times what cl100k_base makes of them. */
size_t describe_tokens(const char *text) {
  size_t tokens = 0;
  for (const char *p = text; *p;) {
    size_t n = 0;
    if (str_is_letter(*p)) {
      while (str_is_letter(p[n]))
        n++;
      tokens += n <= 8 ? 1 : 1 + (n - 3) / 4;
    } else if (str_is_digit(*p)) {
      while (str_is_digit(p[n]))
        n++;
      tokens += (n + 2) / 3;
    } else if (*p == ' ' || *p == '\n') {
      while (p[n] == ' ' || p[n] == '\n')
        n++;
      tokens += n > 1 || *p == '\n';
    } else if (*p & 0x80) {
      n = 1;
      tokens += !utf8_is_tail(*p);
    } else {
      while (n < 4 && p[n] > ' ' && p[n] < 0x7f && !str_is_letter(p[n]) && !str_is_digit(p[n]))
        n++;
      n = n ? n : 1;
      tokens++;
    }
    p += n;
  }
  return tokens;
}
