/* Makes an example in one pass: fixed values and placeholders, each checked where it stands. What
 * would have to be searched for, a text for a pattern, stands there in words. */
#include "render/example.h"
#include "format/json_value.h"
#include "render/describe_phrase.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum {
  ATTEMPTS_MAX = 5000, /* choices of forms in one example */
  FORMS_TRIED = 64,    /* in one anyOf or oneOf */
  INSIDE_ITSELF = 2,   /* how often a structure may stand inside itself, where it must */
  MULTIPLES_TRIED = 400
};

struct maker {
  struct walk walk;
  uint8_t *active; /* identity -> how often it is being made now */
  size_t active_count, active_capacity;
  int level;
  bool strict;       /* nothing may be made inside itself: what is being made can be left out */
  unsigned attempts; /* choices of forms still allowed */
  unsigned made;     /* values so far */
  unsigned in_words; /* texts in words so far: what holds one cannot be checked */
  struct example_trouble *trouble;
  int trouble_level;
};

/* Makes a value that all of `place` accepts, or that has words in it. NULL: none was found, or
 * walk.status is set. `variant`: how many suitable values to pass over, for items that must
 * differ. */
static json_t *make_place(struct maker *m, struct place place, unsigned variant);

/* Takes `value`. Returns it if the place accepts it and no variant is left to pass over. */
static json_t *example_keep(struct maker *m, struct place place, json_t *value, unsigned *variant) {
  if (outline_accepts(&m->walk, place, value)) {
    if (!*variant)
      return value;
    --*variant;
  }
  json_decref(value);
  return NULL;
}

static void example_trouble_set(struct maker *m, struct place place, const char *why) {
  buf_auto_t where = {0};
  if (place.count)
    schema_entry_text(m->walk.schema, m->walk.origin[place.nodes[0]], &where);
  snprintf(m->trouble->pointer, sizeof m->trouble->pointer, "%s", buf_c(&where));
  snprintf(m->trouble->message, sizeof m->trouble->message, "%s", why);
}

/* Returns "<text that matches PATTERN>". */
static json_t *text_in_words(struct maker *m, struct place place, const char *pattern) {
  if (!m->in_words++) {
    example_trouble_set(m, place, "no text is searched for that matches the pattern");
    m->trouble_level = INT_MAX;
  }
  return json_sprintf("<text that matches %s>", pattern);
}

/* --- fixed values, and those that the author gave --- */

static json_t *keep_copy(struct maker *m, struct place place, const json_t *value,
                         unsigned *variant) {
  if (m->walk.status != SCHEMA_OK || !value)
    return NULL;
  return example_keep(m, place, json_clone(value), variant);
}

static json_t *make_fixed(struct maker *m, struct place place, const struct op *op,
                          unsigned variant) {
  const json_t *all = op->u.options->all;
  json_t *value = NULL;
  if (!strcmp(op->keyword, "const"))
    return keep_copy(m, place, all, &variant);
  for (size_t i = 0, n = json_array_size(all); !value && i < n; i++)
    value = keep_copy(m, place, json_array_get(all, i), &variant);
  return value;
}

static json_t *make_given(struct maker *m, struct place place, const struct outline *outline,
                          unsigned variant) {
  json_t *value = NULL;
  for (uint32_t i = 0; !value && i < outline->flat.count; i++) {
    const json_t *examples = outline_raw(&m->walk, outline->flat.nodes[i], "examples");
    for (size_t k = 0, n = json_array_size(examples); !value && k < n && k < FORMS_TRIED; k++)
      value = keep_copy(m, place, json_array_get(examples, k), &variant);
    if (!value)
      value =
          keep_copy(m, place, outline_raw(&m->walk, outline->flat.nodes[i], "default"), &variant);
  }
  return value;
}

/* Takes the most that a `least` keyword asks for, and the least that a `most` keyword allows. */
static void example_range(const struct outline *outline, enum op_code least_op,
                          enum op_code most_op, size_t *least, size_t *most) {
  *least = 0;
  *most = SIZE_MAX;
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code == least_op && op->u.count > *least)
      *least = (size_t)op->u.count;
    if (op->code == most_op && op->u.count < *most)
      *most = (size_t)op->u.count;
  }
}

/* --- strings --- */

/* Lists values that formats accept; '#' is a digit that varies. */
static const char *const samples[][2] = {
    {"date", "2000-01-1#"},
    {"date-time", "2000-01-1#T12:00:00Z"},
    {"duration", "P#D"},
    {"email", "name#@example.com"},
    {"hostname", "host#.example.com"},
    {"idn-email", "name#@example.com"},
    {"idn-hostname", "host#.example.com"},
    {"ipv4", "192.0.2.#"},
    {"ipv6", "2001:db8::#"},
    {"iri", "https://example.com/#"},
    {"iri-reference", "/path/#"},
    {"json-pointer", "/#"},
    {"regex", "^#$"},
    {"relative-json-pointer", "#"},
    {"time", "12:00:0#Z"},
    {"uri", "https://example.com/#"},
    {"uri-reference", "/path/#"},
    {"uri-template", "/path/#/{id}"},
    {"uuid", "00000000-0000-4000-8000-00000000000#"},
};

struct wanted {
  size_t least, most; /* code points */
  const char *format; /* a hint, or asserted */
  const char *word;   /* of the placeholder */
  struct buf patterns;
};

static struct wanted string_wanted(struct maker *m, const struct outline *outline) {
  struct wanted wanted = {0};
  example_range(outline, OP_MIN_LENGTH, OP_MAX_LENGTH, &wanted.least, &wanted.most);
  bool untyped = outline->types == TYPE_ANY;
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code == OP_PATTERN)
      buf_printf(&wanted.patterns, wanted.patterns.n ? " and %s" : "%s", op->text);
    untyped = untyped && !(op->applies != TYPE_ANY && op->applies >> JSON_STRING & 1);
  }
  for (uint32_t i = 0; i < outline->flat.count && !wanted.format; i++)
    wanted.format = json_string_value(outline_raw(&m->walk, outline->flat.nodes[i], "format"));
  wanted.word = untyped ? "any" : "string";
  return wanted;
}

/* Makes "<string>" or "<string 2>", filled with dots if it is too short; if it is too long, some of
 * its letters. */
static json_t *make_placeholder(struct maker *m, struct place place, const struct wanted *wanted,
                                const char *word, unsigned variant) {
  unsigned none = 0;
  buf_auto_t text = buf_of(variant ? "<%s %u>" : "<%s>", word, variant + 1);
  size_t cut = text.n > wanted->most, length = text.n - 2 * cut;
  if (cut && length > wanted->most)
    length = wanted->most;
  text.n = cut + length;
  for (; length < wanted->least || (cut && length < wanted->most); length++)
    buf_puts(&text, ".");
  json_t *value = json_stringn(text.p + cut, length);
  return value ? example_keep(m, place, value, &none) : NULL;
}

/* Makes a value that a format accepts, filled up at its end. */
static json_t *make_sample(struct maker *m, struct place place, const struct wanted *wanted,
                           unsigned variant) {
  unsigned none = 0;
  buf_auto_t text = {0};
  for (size_t i = 0; i < sizeof samples / sizeof *samples && wanted->format; i++)
    if (!strcmp(samples[i][0], wanted->format))
      buf_puts(&text, samples[i][1]);
  for (size_t i = 0; i < text.n; i++)
    if (text.p[i] == '#')
      text.p[i] = (char)('1' + variant % 9);
  while (text.n && text.n < wanted->least)
    buf_puts(&text, "x");
  json_t *value = text.n ? json_stringn(text.p, text.n) : NULL;
  return value ? example_keep(m, place, value, &none) : NULL;
}

static json_t *make_string(struct maker *m, struct place place, const struct outline *outline,
                           unsigned variant) {
  struct wanted wanted = string_wanted(m, outline);
  json_t *value = NULL;
  if (wanted.least > EXAMPLE_STRING_BYTES || wanted.least > wanted.most) {
    buf_deinit(&wanted.patterns);
    return NULL;
  }
  if (wanted.format && strlen(wanted.format) < 64)
    value = make_placeholder(m, place, &wanted, wanted.format, variant);
  if (!value)
    value = make_placeholder(m, place, &wanted, wanted.word, variant);
  if (!value)
    value = make_sample(m, place, &wanted, variant);
  if (!value && wanted.patterns.n)
    value = make_given(m, place, outline, variant);
  if (!value && wanted.patterns.n && !variant)
    value = text_in_words(m, place, buf_c(&wanted.patterns));
  buf_deinit(&wanted.patterns);
  return value;
}

/* --- numbers --- */

static json_t *try_number(struct maker *m, struct place place, double number, bool integer,
                          unsigned *variant) {
  const double edge = 9007199254740992.0; /* 2^53: integers below are exact */
  if (!isfinite(number) || m->walk.status != SCHEMA_OK)
    return NULL;
  if (number >= -edge && number <= edge && (double)(json_int_t)number == number)
    return example_keep(m, place, json_integer((json_int_t)number), variant);
  if (integer && number >= -edge && number <= edge)
    return NULL;
  return example_keep(m, place, json_real(number), variant);
}

/* Tries 0, the bounds and their neighbours, what is between them, and multiples. */
static json_t *make_number(struct maker *m, struct place place, const struct outline *outline,
                           unsigned variant) {
  bool integer = !(outline->types & 1 << JSON_REAL);
  double low = -INFINITY, high = INFINITY, step = 0;
  json_t *value = try_number(m, place, 0, integer, &variant);
  for (uint32_t i = 0; !value && i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    bool is_low = op->code == OP_MINIMUM || op->code == OP_EXCLUSIVE_MINIMUM;
    bool is_high = op->code == OP_MAXIMUM || op->code == OP_EXCLUSIVE_MAXIMUM;
    double bound = json_number_value(op->u.value);
    if (op->code == OP_MULTIPLE_OF)
      step = bound > step ? bound : step;
    if (is_low && bound > low)
      low = bound;
    if (is_high && bound < high)
      high = bound;
    for (int by = 0; !value && (is_low || is_high) && by < 3; by++) {
      json_int_t exact = json_integer_value(op->u.value), near = by == 2 ? -1 : by;
      if (json_is_integer(op->u.value) && exact > INT64_MIN && exact < INT64_MAX)
        value = example_keep(m, place, json_integer(exact + near), &variant);
      else
        value = try_number(m, place, bound + (double)near, integer, &variant);
    }
  }
  if (!value && isfinite(low) && isfinite(high))
    value = try_number(m, place, low / 2 + high / 2, integer, &variant);
  step = step > 0 ? step : 1;
  double from = low > 0 ? floor(low / step) : 0;
  for (int i = 0; !value && i < MULTIPLES_TRIED && m->walk.status == SCHEMA_OK; i++)
    value = try_number(m, place, high < 0 ? (ceil(high / step) - i) * step : (from + i) * step,
                       integer, &variant);
  return value;
}

/* --- arrays --- */

static bool members_hold(const json_t *array, const json_t *value) {
  for (size_t i = 0, n = json_array_size(array); i < n; i++)
    if (json_same(json_array_get(array, i), value))
      return true;
  return false;
}

/* Makes an item; one that is not in the array yet, if they must differ. */
static json_t *make_item(struct maker *m, struct place place, const json_t *array, bool unique) {
  unsigned count = (unsigned)json_array_size(array);
  json_t *item = make_place(m, place, 0);
  for (unsigned i = 0; unique && item && members_hold(array, item) && i < 2; i++) {
    json_decref(item);
    item = make_place(m, place, count + i); /* those before are taken, most likely */
  }
  return item;
}

/* Returns what the array must contain and does not yet: the item's place beside `place`. */
static bool example_contains(struct maker *m, const struct outline *outline, const json_t *array,
                             struct place *place) {
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code != OP_CONTAINS)
      continue;
    struct place wanted = outline_place(&m->walk, op->u.contains->node);
    uint64_t have = 0;
    for (size_t k = 0, n = json_array_size(array); k < n; k++)
      have += outline_accepts(&m->walk, wanted, json_array_get(array, k));
    if (have < op->u.contains->min) {
      *place = outline_join(&m->walk, *place, wanted);
      return true;
    }
  }
  return false;
}

static json_t *make_array(struct maker *m, struct place place, const struct outline *outline,
                          unsigned variant) {
  size_t least, most, usual = outline_prefix_count(outline);
  bool unique = false, strict = m->strict;
  unsigned before = m->in_words;
  example_range(outline, OP_MIN_ITEMS, OP_MAX_ITEMS, &least, &most);
  for (uint32_t i = 0; i < outline->op_count; i++)
    unique |= outline->ops[i]->code == OP_UNIQUE;
  if (least > most || least > EXAMPLE_ITEMS_MAX)
    return NULL;
  usual = (least > usual ? least : usual) + variant;
  json_t *array = json_array();
  for (size_t i = 0; i < most && i < EXAMPLE_ITEMS_MAX && m->walk.status == SCHEMA_OK; i++) {
    struct place item_place = outline_item(&m->walk, outline, i);
    bool contains = example_contains(m, outline, array, &item_place);
    if (!contains && i >= (usual ? usual : 1))
      break;
    m->strict = strict || (!contains && i >= least);
    json_t *item = make_item(m, item_place, array, unique);
    m->strict = strict;
    if (!item)
      break;
    json_array_append_new(array, item);
  }
  unsigned none = 0;
  if (m->in_words != before && json_array_size(array) >= least)
    return array;
  return example_keep(m, place, array, &none);
}

/* --- objects --- */

/* Adds a member. Returns false if it could not be made; nothing was added then. */
static bool add_member(struct maker *m, json_t *object, const char *name, size_t length,
                       struct place place, bool needed) {
  bool strict = m->strict;
  if (m->walk.status != SCHEMA_OK || (!needed && m->made > EXAMPLE_VALUES_USUAL))
    return false;
  m->strict = strict || !needed;
  json_t *value = make_place(m, place, 0);
  m->strict = strict;
  if (value)
    json_object_setn_new(object, name, length, value);
  return value != NULL;
}

/* Adds what the members that are there make necessary. */
static bool add_dependent(struct maker *m, json_t *object, const struct outline *outline) {
  for (bool added = true; added;) {
    added = false;
    for (uint32_t i = 0; i < outline->op_count; i++) {
      const struct dependency_op *d = outline->ops[i]->u.dependency;
      if (outline->ops[i]->code != OP_DEPENDENT_REQUIRED ||
          !json_object_getn(object, d->name, d->length))
        continue;
      for (uint32_t k = 0; k < d->count; k++) {
        const char *name = d->required[k].text;
        size_t length = d->required[k].length;
        if (json_object_getn(object, name, length))
          continue;
        if (!add_member(m, object, name, length, outline_member(&m->walk, outline, name, length),
                        true))
          return false;
        added = true;
      }
    }
  }
  return m->walk.status == SCHEMA_OK;
}

/* Adds a member under a name of no meaning: "<key>", or one that the schema of names admits. */
static bool add_other(struct maker *m, json_t *object, const struct outline *outline) {
  struct place names = {NULL, 0};
  unsigned number = (unsigned)json_object_size(object), none = 0;
  char plain[32];
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_OBJECT)
      names =
          outline_join(&m->walk, names, outline_place(&m->walk, outline->ops[i]->u.object->names));
  snprintf(plain, sizeof plain, number ? "<key %u>" : "<key>", number + 1);
  json_auto_t *name = example_keep(m, names, json_string(plain), &none);
  if (!name)
    name = make_place(m, names, number);
  const char *text = json_string_value(name);
  size_t length = json_string_length(name);
  return text && !json_object_getn(object, text, length) &&
         add_member(m, object, text, length, outline_member(&m->walk, outline, text, length),
                    false);
}

/* Adds a member for each kind of name that the schema describes, if it names no field; and as many
 * as there must be. */
static void add_others(struct maker *m, json_t *object, const struct outline *outline, size_t least,
                       size_t most) {
  bool describe = !outline->field_count;
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code != OP_OBJECT)
      continue;
    for (uint32_t k = 0; k < op->u.object->pattern_count; k++) {
      const struct pattern_property *p = &op->u.object->patterns[k];
      struct place member = outline_place(&m->walk, p->node);
      if (json_object_size(object) >= (describe ? most : least) ||
          outline_is_false(&m->walk, member))
        continue;
      json_auto_t *name = text_in_words(m, member, p->text);
      if (!add_member(m, object, json_string_value(name), json_string_length(name), member, false))
        m->in_words--;
    }
    if (describe && outline_place(&m->walk, op->u.object->additional).count &&
        !json_object_size(object) && most)
      add_other(m, object, outline);
  }
  while (json_object_size(object) < least && add_other(m, object, outline))
    continue;
}

/* Makes an object with every field that can be made; `bare`: with those that must be there. */
static json_t *example_members(struct maker *m, const struct outline *outline, bool bare) {
  size_t least, most, needed = 0;
  json_t *object = json_object();
  example_range(outline, OP_MIN_PROPERTIES, OP_MAX_PROPERTIES, &least, &most);
  for (uint32_t i = 0; i < outline->field_count; i++)
    needed += outline->fields[i].required;
  bool ok = least <= EXAMPLE_ITEMS_MAX;
  for (uint32_t i = 0; ok && i < outline->field_count; i++) {
    const struct outline_field *f = &outline->fields[i];
    needed -= f->required;
    if (f->required || (!bare && json_object_size(object) + needed < most))
      ok = add_member(m, object, f->name, f->length, f->place, f->required) || !f->required;
  }
  ok = ok && add_dependent(m, object, outline);
  if (ok && (!bare || least))
    add_others(m, object, outline, least, most);
  if (ok)
    return object;
  json_decref(object);
  return NULL;
}

static json_t *make_object(struct maker *m, struct place place, const struct outline *outline,
                           unsigned variant) {
  unsigned before = m->in_words;
  json_t *value = NULL;
  for (int bare = 0; !value && bare < 2 && m->walk.status == SCHEMA_OK; bare++) {
    unsigned left = variant;
    m->in_words = before;
    value = example_members(m, outline, bare);
    if (value && (m->in_words == before || variant))
      value = example_keep(m, place, value, &left);
  }
  return value;
}

/* --- types --- */

static json_t *make_kind(struct maker *m, struct place place, const struct outline *outline,
                         unsigned types, unsigned variant) {
  json_t *value = NULL;
  if (!(types & outline->types) || m->walk.status != SCHEMA_OK)
    return NULL;
  if (types & 1 << JSON_OBJECT)
    return make_object(m, place, outline, variant);
  if (types & 1 << JSON_ARRAY)
    return make_array(m, place, outline, variant);
  if (types & 1 << JSON_STRING)
    return make_string(m, place, outline, variant);
  if (types & TYPE_NUMBER)
    return make_number(m, place, outline, variant);
  if (types & 1 << JSON_NULL)
    return example_keep(m, place, json_null(), &variant);
  value = example_keep(m, place, json_false(), &variant);
  return value ? value : example_keep(m, place, json_true(), &variant);
}

static const struct {
  const char *name;
  unsigned types;
} kinds[] = {{"string", 1 << JSON_STRING}, {"object", 1 << JSON_OBJECT}, {"array", 1 << JSON_ARRAY},
             {"number", TYPE_NUMBER},      {"integer", TYPE_NUMBER},     {"boolean", TYPE_BOOLEAN},
             {"null", 1 << JSON_NULL}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Makes a value of the first type that can be: what the keywords hint at, then the types in the
 * order in which the schema lists them; null comes last. */
static json_t *make_types(struct maker *m, struct place place, const struct outline *outline,
                          unsigned variant) {
  const struct op *fixed = describe_fixed(outline);
  const json_t *list = NULL;
  if (fixed)
    return make_fixed(m, place, fixed, variant);
  unsigned hint = outline->types == TYPE_ANY ? outline_hint(outline) : 0;
  json_t *value = NULL;
  for (size_t i = 0; !value && i < KINDS; i++)
    if (kinds[i].types & hint)
      value = make_kind(m, place, outline, kinds[i].types, variant);
  for (uint32_t i = 0; i < outline->flat.count && !list; i++)
    list = outline_raw(&m->walk, outline->flat.nodes[i], "type");
  for (size_t k = 0, n = json_array_size(list); k < n && !value; k++)
    for (size_t i = 0; i + 1 < KINDS && !value; i++)
      if (!strcmp(kinds[i].name, json_string_value(json_array_get(list, k))))
        value = make_kind(m, place, outline, kinds[i].types, variant);
  for (size_t i = 0; !value && i < KINDS; i++)
    value = make_kind(m, place, outline, kinds[i].types, variant);
  return value;
}

/* --- forms --- */

struct decided { /* ops for which a form was chosen */
  const struct op *op;
  const struct decided *up;
};

/* Returns the first op that leaves a choice and is not decided yet. */
static const struct op *next_choice(const struct outline *outline, const struct decided *decided) {
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    const struct decided *d = decided;
    if (op->code != OP_ANY_OF && op->code != OP_ONE_OF && op->code != OP_IF &&
        op->code != OP_DEPENDENT_SCHEMA)
      continue;
    while (d && d->op != op)
      d = d->up;
    if (!d)
      return op;
  }
  return NULL;
}

/* Sets the k-th way in which a value can satisfy `op`, as what else applies to it; an `if` is left
 * alone first. Returns false if there is none. */
static bool example_choice(struct maker *m, const struct op *op, uint32_t k, struct place *more) {
  struct walk *walk = &m->walk;
  *more = (struct place){NULL, 0};
  if (op->code == OP_ANY_OF || op->code == OP_ONE_OF) {
    if (k < op->u.list->count && k < FORMS_TRIED)
      *more = outline_place(walk, op->u.list->nodes[k]);
    return k < op->u.list->count && k < FORMS_TRIED;
  }
  if (op->code == OP_DEPENDENT_SCHEMA) {
    if (k == 0)
      *more = outline_place(walk, op->node);
    return k < 2;
  }
  const struct if_op *o = op->u.branch;
  if (k == 1)
    *more =
        outline_join(walk, outline_place(walk, o->condition), outline_place(walk, o->then_node));
  else if (k == 2)
    *more = outline_place(walk, o->else_node);
  return k < 3;
}

/* Makes a value. `whole` is what it must satisfy, `place` that and the forms chosen so far. A value
 * without words comes before one with them. */
static json_t *make_chosen(struct maker *m, struct place whole, struct place place,
                           const struct decided *decided, unsigned variant, int choices) {
  struct outline outline;
  json_t *found = NULL;
  unsigned before = m->in_words, words = before;
  if (choices > EXAMPLE_LEVELS_MAX || !outline_of(&m->walk, place, &outline) || outline.never)
    return NULL;
  const struct op *op = next_choice(&outline, decided);
  if (!op)
    return make_types(m, whole, &outline, variant);
  struct decided now = {op, decided};
  struct place more;
  for (uint32_t k = 0; m->attempts && example_choice(m, op, k, &more); k++) {
    m->attempts--;
    m->in_words = before;
    json_t *value =
        make_chosen(m, whole, outline_join(&m->walk, place, more), &now, variant, choices + 1);
    if (value && (!found || m->in_words == before)) {
      json_decref(found);
      found = value;
      words = m->in_words;
    } else {
      json_decref(value);
    }
    if (found && words == before)
      break;
  }
  m->in_words = words;
  return found;
}

/* --- places --- */

static uint8_t *active_at(struct maker *m, uint32_t identity) {
  if (identity == NODE_NONE)
    return NULL;
  m->active = xgrow(m->active, &m->active_capacity, (size_t)identity + 1, 1);
  while (m->active_count <= identity)
    m->active[m->active_count++] = 0;
  return &m->active[identity];
}

static json_t *make_place(struct maker *m, struct place place, unsigned variant) {
  struct outline outline;
  json_t *value;
  bool strict = m->strict;
  uint32_t identity = outline_identity(&m->walk, place);
  uint8_t *active = active_at(m, identity);
  uint8_t times = active ? *active : 0;
  if (m->walk.status != SCHEMA_OK || times >= INSIDE_ITSELF || (times && strict) ||
      m->level >= EXAMPLE_LEVELS_MAX || !walk_spend(&m->walk, 1))
    return NULL;
  if (active)
    ++*active;
  m->level++;
  m->made++;
  m->strict = strict || times; /* if possible so that it is not needed again further in */
  value = make_chosen(m, place, place, NULL, variant, 0);
  m->strict = strict;
  if (!value && !times && !variant && outline_of(&m->walk, place, &outline)) {
    value = make_given(m, place, &outline, 0);
    if (!value && m->level >= m->trouble_level && place.count && !m->strict) {
      const char *why = "no value was found that fits here";
      if (outline.never)
        why = "the schema admits no value here";
      m->trouble_level = m->level;
      example_trouble_set(m, place, why);
    }
  }
  m->level--;
  if (active) /* the array may have moved */
    m->active[identity]--;
  return value;
}

/* --- the whole --- */

static enum example_status outcome(struct maker *m, const struct schema *schema, json_t **value) {
  enum schema_status status = m->walk.status;
  if (status == SCHEMA_OK)
    status = *value ? schema_check(schema, *value, NULL) : SCHEMA_INVALID;
  if (status == SCHEMA_OK && !m->in_words)
    return EXAMPLE_OK;
  if (status != SCHEMA_TOO_COMPLEX && *value && m->in_words)
    return EXAMPLE_WORDS;
  json_decref(*value);
  *value = NULL;
  return status == SCHEMA_TOO_COMPLEX ? EXAMPLE_TOO_COMPLEX : EXAMPLE_NONE;
}

enum example_status example_make(const struct schema *schema, json_t **value,
                                 struct example_trouble *trouble) {
  assert(schema != NULL && value != NULL);
  struct example_trouble unused;
  struct maker m = {.attempts = ATTEMPTS_MAX, .trouble = trouble ? trouble : &unused};
  *value = NULL;
  *m.trouble = (struct example_trouble){"", ""};
  walk_init(&m.walk, schema);
  *value = make_place(&m, outline_root(&m.walk), 0);
  enum example_status status = outcome(&m, schema, value);
  if (status == EXAMPLE_TOO_COMPLEX)
    *m.trouble = (struct example_trouble){"", "the example takes too much work"};
  else if (status == EXAMPLE_NONE && !*m.trouble->message)
    *m.trouble = (struct example_trouble){"", "no value was found that fits"};
  free(m.active);
  walk_deinit(&m.walk);
  return status;
}

enum example_status example_anchor(const struct schema *schema, enum describe_language language,
                                   char **text) {
  json_t *value;
  struct buf out = {0};
  enum example_status status = example_make(schema, &value, NULL);
  *text = NULL;
  if (status != EXAMPLE_OK && status != EXAMPLE_WORDS)
    return status;
  describe_say(language, WORD_EXAMPLE, "", &out);
  buf_puts(&out, "\n");
  render_json(value, false, &out);
  buf_puts(&out, "\n");
  json_decref(value);
  *text = buf_take(&out);
  return status;
}

const char *example_status_name(enum example_status status) {
  static const char *const names[] = {[EXAMPLE_OK] = "ok",
                                      [EXAMPLE_WORDS] = "in_words",
                                      [EXAMPLE_NONE] = "no_example",
                                      [EXAMPLE_TOO_COMPLEX] = "too_complex"};
  return names[status];
}
