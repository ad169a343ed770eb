/* Renders a schema as a prompt: one line per field. */
#include "render/describe_phrase.h"

#include <assert.h>
#include <stdio.h>

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

static bool prompt_place(struct telling *p, struct place place, int level, enum stand stand,
                         enum presence presence);

static void prompt_say(struct telling *p, enum word word, const char *argument) {
  describe_say(p->d.language, word, argument, &p->d.out);
}

/* --- types --- */

static bool put_leaf(struct describer *d, struct place place, enum stand stand, struct buf *out);

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
static bool prompt_head(struct describer *d, struct place place, const struct outline *outline,
                        enum stand stand, struct buf *out) {
  const struct op *forms = describe_type_forms(outline);
  bool untyped = stand == STAND_BRANCH && outline->types == TYPE_ANY;
  size_t before = out->n;
  struct buf constraints = {0};
  if (outline->never)
    describe_say(d->language, WORD_NOTHING, "", out);
  else if (forms && describe_is_leaf(d, place, LEAF_LEVELS))
    put_forms(d, forms, out);
  else if (forms && stand != STAND_BRANCH)
    describe_say(d->language, forms->code == OP_ANY_OF ? WORD_FORMS_ANY : WORD_FORMS_ONE, "", out);
  else if (!untyped)
    describe_type_words(d, describe_shown_types(outline), out);
  describe_constraints(d, place, outline, stand != STAND_ALONE, &constraints);
  if (constraints.n) {
    buf_puts(out, out->n > before ? " [" : "[");
    buf_append(out, constraints.p, constraints.n);
    buf_puts(out, "]");
  } else if (untyped && !forms && !outline->field_count) {
    describe_say(d->language, WORD_ANY_VALUE, "", out);
  }
  buf_deinit(&constraints);
  return describe_going(d);
}

static bool put_leaf(struct describer *d, struct place place, enum stand stand, struct buf *out) {
  struct outline outline;
  return outline_of(&d->walk, place, &outline) && prompt_head(d, place, &outline, stand, out);
}

static bool prompt_inside(struct describer *d, struct place place, struct buf *out) {
  if (out)
    return put_leaf(d, place, STAND_BRANCH, out);
  return describe_is_leaf(d, place, LEAF_LEVELS);
}

/* --- lines --- */

static enum stand stand_inside(enum stand stand) {
  return stand == STAND_ALONE ? STAND_ALONE : STAND_IN_BRANCH;
}

static void open_line(struct telling *p, int level) {
  for (int i = 0; i < level; i++)
    buf_puts(&p->d.out, "  ");
  buf_puts(&p->d.out, "- ");
}

/* Puts "- (each item): " and what is there. `step` is what it adds to the path. */
static bool put_labelled(struct telling *p, enum word label, const char *argument, const char *step,
                         struct place place, int level, enum stand stand) {
  size_t length = p->path.n;
  open_line(p, level);
  buf_puts(&p->d.out, "(");
  prompt_say(p, label, argument);
  buf_puts(&p->d.out, "): ");
  buf_puts(&p->path, step);
  bool ok = prompt_place(p, place, level, stand, PRESENCE_NONE);
  p->path.n = length;
  return ok;
}

/* Does the same for a part that the line above does not contain yet. */
static bool prompt_part(struct telling *p, enum word label, const char *argument, uint32_t node,
                        int level) {
  struct place place = outline_place(&p->d.walk, node);
  if (!place.count || describe_is_leaf(&p->d, place, LEAF_LEVELS))
    return describe_going(&p->d);
  return put_labelled(p, label, argument, "", place, level, STAND_BRANCH);
}

static bool put_fields(struct telling *p, const struct outline *outline, int level,
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
    bool ok = prompt_place(p, field->place, level, stand_inside(stand), presence);
    p->path.n = length;
    if (!ok)
      return false;
  }
  return true;
}

static bool put_other_fields(struct telling *p, const struct object_op *o, int level,
                             enum stand stand) {
  struct walk *walk = &p->d.walk;
  for (uint32_t i = 0; i < o->pattern_count; i++) {
    struct place place = outline_place(walk, o->patterns[i].node);
    struct buf pattern = {0};
    if (outline_is_false(walk, place))
      continue;
    render_pattern(o->patterns[i].text, &pattern);
    bool ok =
        put_labelled(p, WORD_FIELD_MATCHING, pattern.p, ".*", place, level, stand_inside(stand));
    buf_deinit(&pattern);
    if (!ok)
      return false;
  }
  struct place other = outline_place(walk, o->additional);
  if (other.count && !outline_is_false(walk, other) &&
      !put_labelled(p, WORD_ANY_OTHER_FIELD, "", ".*", other, level, stand_inside(stand)))
    return false;
  return o->names == NODE_NONE || prompt_part(p, WORD_FIELD_NAMES, "", o->names, level);
}

static bool put_items(struct telling *p, const struct outline *outline, int level,
                      enum stand stand) {
  struct walk *walk = &p->d.walk;
  uint32_t prefix = outline_prefix_count(outline);
  for (uint32_t i = 0; i < prefix; i++) {
    char number[16], step[24];
    snprintf(number, sizeof number, "%u", (unsigned)i + 1);
    snprintf(step, sizeof step, "[%u]", (unsigned)i);
    if (!put_labelled(p, WORD_ITEM, number, step, outline_item(walk, outline, i), level,
                      stand_inside(stand)))
      return false;
  }
  struct place rest = outline_item(walk, outline, prefix);
  if (!rest.count || outline_is_false(walk, rest))
    return describe_going(&p->d);
  return put_labelled(p, prefix ? WORD_EACH_FURTHER_ITEM : WORD_EACH_ITEM, "", "[]", rest, level,
                      stand_inside(stand));
}

static bool put_form_lines(struct telling *p, const struct op *op, int level, enum stand stand) {
  for (uint32_t i = 0; i < op->u.list->count; i++) {
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)i + 1);
    if (!put_labelled(p, WORD_FORM, number, "", outline_place(&p->d.walk, op->u.list->nodes[i]),
                      level, stand))
      return false;
  }
  return true;
}

/* Puts the forms of a place that has a type of its own. */
static bool put_further_forms(struct telling *p, const struct op *op, int level) {
  open_line(p, level);
  buf_puts(&p->d.out, "(");
  prompt_say(p, op->code == OP_ANY_OF ? WORD_FORMS_ANY : WORD_FORMS_ONE, "");
  buf_puts(&p->d.out, "):\n");
  p->lines++;
  return put_form_lines(p, op, level + 1, STAND_BRANCH);
}

static bool put_if(struct telling *p, const struct if_op *o, int level) {
  struct walk *walk = &p->d.walk;
  if (o->then_node == NODE_NONE && o->else_node == NODE_NONE)
    return true;
  return put_labelled(p, WORD_IF, "", "", outline_place(walk, o->condition), level, STAND_BRANCH) &&
         (o->then_node == NODE_NONE ||
          put_labelled(p, WORD_THEN, "", "", outline_place(walk, o->then_node), level,
                       STAND_BRANCH)) &&
         (o->else_node == NODE_NONE ||
          put_labelled(p, WORD_ELSE, "", "", outline_place(walk, o->else_node), level,
                       STAND_BRANCH));
}

static bool put_dependent(struct telling *p, const struct op *op, int level) {
  struct walk *walk = &p->d.walk;
  struct place place = outline_place(walk, op->node);
  struct buf name = {0};
  if (!place.count || outline_is_false(walk, place))
    return describe_going(&p->d);
  render_name(op->u.dependency->name, op->u.dependency->length, &name);
  bool ok = put_labelled(p, WORD_WITH_FIELD, name.p, "", place, level, STAND_BRANCH);
  buf_deinit(&name);
  return ok;
}

static bool put_unevaluated(struct telling *p, const struct op *op, int level, enum stand stand) {
  struct place place = outline_place(&p->d.walk, op->node);
  bool items = op->code == OP_UNEVALUATED_ITEMS;
  if (!place.count || outline_is_false(&p->d.walk, place))
    return describe_going(&p->d);
  return put_labelled(p, items ? WORD_ANY_OTHER_ITEM : WORD_ANY_OTHER_FIELD, "",
                      items ? "[]" : ".*", place, level, stand_inside(stand));
}

static bool put_below_op(struct telling *p, struct place place, const struct outline *outline,
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
    return true;
  case OP_OBJECT:
    return put_other_fields(p, op->u.object, level, stand);
  case OP_CONTAINS:
    return prompt_part(p, WORD_CONTAINED, "", op->u.contains->node, level);
  case OP_ANY_OF:
  case OP_ONE_OF:
    if (op != describe_type_forms(outline))
      return put_further_forms(p, op, level);
    if (stand == STAND_BRANCH && !describe_is_leaf(&p->d, place, LEAF_LEVELS))
      return put_further_forms(p, op, level);
    return describe_is_leaf(&p->d, place, LEAF_LEVELS) || put_form_lines(p, op, level, STAND_ALONE);
  case OP_NOT:
    return prompt_part(p, WORD_NOT, "", op->node, level);
  case OP_IF:
    return put_if(p, op->u.branch, level);
  case OP_DEPENDENT_SCHEMA:
    return put_dependent(p, op, level);
  case OP_UNEVALUATED_ITEMS:
  case OP_UNEVALUATED_PROPERTIES:
    return put_unevaluated(p, op, level, stand);
  }
  return true;
}

static bool put_below(struct telling *p, struct place place, const struct outline *outline,
                      int level, enum stand stand) {
  unsigned types = describe_shown_types(outline);
  if (outline->never || !describe_going(&p->d))
    return describe_going(&p->d);
  if (types >> JSON_OBJECT & 1 && !put_fields(p, outline, level, stand))
    return false;
  if (types >> JSON_ARRAY & 1 && !put_items(p, outline, level, stand))
    return false;
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->applies & types &&
        !put_below_op(p, place, outline, outline->ops[i], level, stand))
      return false;
  return true;
}

/* --- null, and structures shown before --- */

static bool note_null(struct telling *p, struct place place, const struct outline *outline) {
  uint32_t first = 1;
  if (!describe_admits_null(&p->d, place, outline))
    return describe_going(&p->d);
  buf_append(&p->path, "", 0); /* ends it: it was cut */
  const char *path = p->path.p;
  if (!map_add(&p->null_paths, &p->d.walk.arena, buf_view(&p->path), &first))
    return true;
  if (p->nulls.n <= DESCRIBE_NULL_BYTES) {
    buf_puts(&p->nulls, p->nulls.n ? ", " : "");
    if (!p->path.n || !strcmp(path, "[]"))
      describe_say(p->d.language, p->path.n ? WORD_EACH_ITEM : WORD_NULL_WHOLE, "", &p->nulls);
    else
      buf_append(&p->nulls, path, p->path.n);
  }
  return true;
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
  struct buf whole = {0};
  if (!*path) {
    describe_say(p->d.language, WORD_WHOLE, "", &whole);
    path = whole.p;
  }
  buf_puts(&p->d.out, ", ");
  prompt_say(p, WORD_SAME_AS, path);
  buf_deinit(&whole);
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
static bool prompt_place(struct telling *p, struct place place, int level, enum stand stand,
                         enum presence presence) {
  struct outline outline;
  uint32_t identity = outline_identity(&p->d.walk, place);
  struct shown *shown = shown_at(p, identity);
  bool again = shown && (shown->open || (shown->path && shown->lines > DESCRIBE_REPEAT_LINES));
  p->d.level = level + 1;
  if (!outline_of(&p->d.walk, place, &outline) ||
      !prompt_head(&p->d, place, &outline, stand, &p->d.out))
    return false;
  if (again)
    say_same(p, shown->path);
  put_tail(p, place, &outline, presence, again);
  while (p->d.out.n && p->d.out.p[p->d.out.n - 1] == ' ')
    p->d.out.n--;
  buf_puts(&p->d.out, "\n");
  p->lines++;
  if (stand == STAND_ALONE && !note_null(p, place, &outline))
    return false;
  if (again)
    return describe_going(&p->d);
  if (shown)
    shown_open(p, shown);
  uint32_t before = p->lines;
  bool ok = put_below(p, place, &outline, level + 1, stand);
  shown = shown_at(p, identity);
  if (shown) {
    shown->open = false;
    shown->lines = p->lines - before;
  }
  return ok && describe_going(&p->d);
}

/* --- the whole --- */

static void put_sentence(struct telling *p, enum word word, const char *argument, bool first) {
  if (!first && p->d.language == DESCRIBE_ENGLISH)
    buf_puts(&p->d.out, " ");
  prompt_say(p, word, argument);
}

static void put_closing(struct telling *p, bool scalar) {
  bool first = true;
  if (p->nulls.n > DESCRIBE_NULL_BYTES)
    put_sentence(p, WORD_NULL_MARKED, "", first);
  else if (p->nulls.n)
    put_sentence(p, WORD_NULL_ONLY, p->nulls.p, first);
  else if (!scalar)
    put_sentence(p, WORD_NULL_NEVER, "", first);
  first = scalar && !p->nulls.n;
  if (p->has_optional)
    put_sentence(p, WORD_MAY_LEAVE_OUT, "", first);
  put_sentence(p, WORD_NO_INVENTING, "", first && !p->has_optional);
  buf_puts(&p->d.out, "\n");
}

static enum word describe_kind(unsigned types) {
  types &= TYPE_ANY;
  switch (types) {
  case 1 << JSON_OBJECT:
    return WORD_OBJECT;
  case 1 << JSON_ARRAY:
    return WORD_ARRAY;
  case 1 << JSON_STRING:
    return WORD_STRING;
  case 1 << JSON_INTEGER:
    return WORD_INTEGER;
  case 1 << JSON_NULL:
    return WORD_NULL;
  default:
    break;
  }
  if (types && !(types & ~(unsigned)TYPE_NUMBER))
    return WORD_NUMBER;
  if (types && !(types & ~(unsigned)TYPE_BOOLEAN))
    return WORD_BOOLEAN;
  return WORD_VALUE;
}

/* Puts the answer as a whole: its own line only if that says more than the first sentence. */
static bool put_root(struct telling *p) {
  struct place root = outline_root(&p->d.walk);
  struct outline outline;
  struct buf kind = {0}, below = {0};
  if (!outline_of(&p->d.walk, root, &outline))
    return false;
  enum word word = describe_kind(describe_shown_types(&outline));
  bool scalar = word != WORD_OBJECT && word != WORD_ARRAY && word != WORD_VALUE;
  bool plain = false;
  describe_say(p->d.language, word, "", &kind);
  p->lines = 0;
  bool ok = prompt_place(p, root, -1, STAND_ALONE, PRESENCE_NONE);
  if (ok) {
    const char *end = strchr(p->d.out.p, '\n');
    size_t first = (size_t)(end - p->d.out.p);
    plain = word != WORD_VALUE && first == kind.n && !memcmp(p->d.out.p, kind.p, first);
    buf_append(&below, end + 1, p->d.out.n - first - 1);
    p->d.out.n = first;
    struct buf head = p->d.out;
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
    buf_deinit(&head);
  }
  buf_deinit(&kind);
  buf_deinit(&below);
  return ok && describe_going(&p->d);
}

enum schema_status describe_prompt(const struct schema *schema, enum describe_language language,
                                   char **text) {
  assert(schema != NULL && text != NULL);
  struct telling p = {.d = {.language = language, .put_inside = prompt_inside}};
  *text = NULL;
  bool ok = walk_init(&p.d.walk, schema) && put_root(&p);
  if (ok)
    *text = buf_take(&p.d.out);
  enum schema_status status = p.d.walk.status;
  buf_deinit(&p.d.out);
  buf_deinit(&p.path);
  buf_deinit(&p.nulls);
  map_deinit(&p.null_paths);
  free(p.shown);
  walk_deinit(&p.d.walk);
  return status;
}

/* --- the request --- */

const char *const describe_form_names[] = {
    [DESCRIBE_AS_PROMPT] = "prompt",
    [DESCRIBE_AS_TYPES] = "types",
    [DESCRIBE_AS_JSON] = "json",
    [DESCRIBE_AS_COUNT] = NULL,
};

bool describe_form_find(const char *name, enum describe_form *form) {
  for (int i = 0; i < DESCRIBE_AS_COUNT; i++)
    if (!strcmp(name, describe_form_names[i])) {
      *form = (enum describe_form)i;
      return true;
    }
  return false;
}

static enum word root_kind(const struct schema *schema) {
  struct walk walk;
  struct outline outline;
  enum word kind = WORD_VALUE;
  if (walk_init(&walk, schema) && outline_of(&walk, outline_root(&walk), &outline))
    kind = describe_kind(describe_shown_types(&outline));
  walk_deinit(&walk);
  return kind;
}

void describe_request(const struct schema *schema, enum describe_form form,
                      enum describe_language language, struct buf *out) {
  assert(schema != NULL && out != NULL);
  char *text = NULL;
  struct buf kind = {0};
  assert(schema != NULL && form < DESCRIBE_AS_COUNT);
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
  buf_puts(out, "\n\n");
  buf_puts(out, text);
  buf_puts(out, "\n");
  describe_say(language, WORD_NULL_TYPED, "", out);
  buf_puts(out, " ");
  describe_say(language, WORD_NO_INVENTING, "", out);
  buf_puts(out, "\n");
  buf_deinit(&kind);
  describe_free(text);
}

void describe_free(char *text) {
  free(text);
}
