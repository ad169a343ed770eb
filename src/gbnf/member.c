/* Makes members of objects: what a name's value must match, and the names that no schema spells
 * out. */
#include "gbnf/internal.h"

#include <assert.h>

enum { NAME_KINDS_MAX = 64 };

struct atoms {
  struct gb_atom *items;
  size_t count, capacity;
  bool never;
};

/* Adds a schema. `by` is what negates it, NULL if nothing does. */
static bool atom_add(struct gb *g, struct atoms *atoms, const json_t *schema,
                     const struct gb_link *by) {
  uint32_t entry;
  bool possible = gb_child(g, schema, &entry);
  if (entry == NODE_NONE) {
    atoms->never = atoms->never || possible == (by != NULL);
    return true;
  }
  atoms->items = xgrow(atoms->items, &atoms->capacity, atoms->count + 1, sizeof *atoms->items);
  atoms->items[atoms->count++] =
      by ? (struct gb_atom){entry, true, by->entry, by->keyword} : (struct gb_atom){.entry = entry};
  return true;
}

static bool pattern_has(struct gb *g, const char *pattern, size_t pattern_length, const char *name,
                        size_t length) {
  const struct compiler *c = &g->compiler;
  struct pattern_scratch scratch = {0};
  uint32_t index;
  if (!map_get(&c->patterns, (struct str){pattern, pattern_length}, &index))
    return false;
  enum pattern_result result = pattern_match(c->schema->patterns[index], &scratch, name, length);
  pattern_scratch_deinit(&scratch);
  if (!gb_spend(g, (int64_t)(scratch.cost / 8 + 1)))
    return false;
  if (result == PATTERN_TOO_COMPLEX)
    return gb_too_complex(g, "a pattern takes too much work");
  return result == PATTERN_MATCH;
}

/* Holds a name in question: a known one, or all those that match the same patterns. */
struct name_question {
  const char *name; /* NULL: any other */
  size_t length;
  uint32_t accepts; /* the parts of the language that hold */
  const struct pattern_part {
    const struct gb_link *spec;
    const char *text;
    int part; /* -1: not in the language */
  } * parts;
  size_t part_count;
};

static bool question_matches(struct gb *g, const struct name_question *q,
                             const struct gb_link *spec, const char *text, size_t length) {
  if (q->name)
    return pattern_has(g, text, length, q->name, q->length);
  for (size_t i = 0; i < q->part_count; i++)
    if (q->parts[i].spec == spec && q->parts[i].text == text)
      return q->parts[i].part >= 0 && q->accepts >> q->parts[i].part & 1;
  return false;
}

/* Adds what one schema says. Sets *covered if it says something. */
static bool ask(struct gb *g, const struct name_question *q, const struct gb_link *spec,
                struct atoms *atoms, bool *covered) {
  json_t *patterns = (json_t *)spec->patterns;
  const json_t *known = q->name ? json_object_getn(spec->value, q->name, q->length) : NULL;
  *covered = known != NULL;
  if (known && atoms && !atom_add(g, atoms, known, NULL))
    return false;
  for (void *at = json_object_iter(patterns); at; at = json_object_iter_next(patterns, at)) {
    if (!question_matches(g, q, spec, json_object_iter_key(at), json_object_iter_key_len(at)))
      continue;
    *covered = true;
    if (atoms && !atom_add(g, atoms, json_object_iter_value(at), NULL))
      return false;
  }
  if (!*covered && spec->additional) {
    *covered = true;
    if (atoms && !atom_add(g, atoms, spec->additional, NULL))
      return false;
  }
  return g->status == GBNF_OK;
}

static bool member_unevaluated(struct gb *g, const struct name_question *q,
                               const struct gb_shape *s, const struct gb_link *spec) {
  for (const struct gb_link *other = s->members; other; other = other->next) {
    bool covered = false;
    if (other == spec || !gb_scope_within(g, other->scope, spec->scope))
      continue;
    if (other->kind == SPEC_UNEVALUATED && other->scope != spec->scope)
      return false;
    if (other->kind == SPEC_MEMBERS && (!ask(g, q, other, NULL, &covered) || covered))
      return false;
  }
  return true;
}

static struct gb_set question_answer(struct gb *g, const struct name_question *q,
                                     const struct gb_shape *s) {
  struct atoms atoms = {0};
  struct gb_set set = {.never = true};
  bool ok = true, covered;
  for (const struct gb_link *spec = s->members; ok && spec; spec = spec->next) {
    switch ((enum gb_spec)spec->kind) {
    case SPEC_MEMBERS:
      ok = ask(g, q, spec, &atoms, &covered);
      break;
    case SPEC_UNEVALUATED:
      if (member_unevaluated(g, q, s, spec))
        ok = atom_add(g, &atoms, spec->additional, NULL);
      break;
    case SPEC_NOT_MEMBER:
      if (q->name && q->length == spec->length && !memcmp(q->name, spec->name, q->length))
        ok = atom_add(g, &atoms, spec->value, spec);
      break;
    }
    ok = ok && g->status == GBNF_OK;
  }
  struct gb_atom *kept = ok ? gb_get(g, (atoms.count + 1) * sizeof *kept) : NULL;
  if (kept) {
    if (atoms.count)
      memcpy(kept, atoms.items, atoms.count * sizeof *kept);
    set = gb_set_of(kept, atoms.count);
    set.never = set.never || atoms.never;
  }
  free(atoms.items);
  return set;
}

/* Returns true if the name matches all of propertyNames. */
static bool name_allowed(struct gb *g, const struct gb_shape *s, const char *name, size_t length) {
  for (const struct gb_link *f = s->forbidden; f; f = f->next)
    if (f->length == length && !memcmp(f->name, name, length))
      return false;
  for (const struct gb_link *n = s->names; n; n = n->next) {
    struct gb_atom atom = {0};
    if (!gb_child(g, n->value, &atom.entry))
      return false;
    if (atom.entry == NODE_NONE)
      continue;
    json_t *value = json_stringn_nocheck(name, length);
    assert(value);
    bool ok = gb_matches(g, &atom, 1, value);
    json_decref(value);
    if (!ok)
      return false;
  }
  return true;
}

struct gb_set gb_member_set(struct gb *g, const struct gb_shape *shape, const char *name,
                            size_t length) {
  struct name_question q = {.name = name, .length = length};
  if (!name_allowed(g, shape, name, length))
    return (struct gb_set){.never = true};
  return question_answer(g, &q, shape);
}

/* --- names that no schema spells out --- */

struct naming {
  struct gb_language language;
  struct pattern_part *parts;
  size_t part_count;
  uint64_t min, max; /* length */
  bool none;         /* no name is possible */
};

/* Gathers the constraints of propertyNames, as far as they are about a plain string. */
static bool names_constraints(struct gb *g, const struct gb_shape *s, struct naming *n) {
  for (const struct gb_link *link = s->names; link; link = link->next) {
    uint32_t entry;
    if (!gb_child(g, link->value, &entry)) {
      n->none = true;
      continue;
    }
    if (entry == NODE_NONE)
      continue;
    struct gb_atom atom = {.entry = entry};
    struct gb_set set = {&atom, 1, false};
    struct gb_shapes shapes = {0};
    bool ok = gb_shapes_of(g, &set, &shapes);
    bool known = ok && shapes.count <= 1;
    const struct gb_shape *shape = known && shapes.count ? &shapes.items[0] : NULL;
    if (known && (!shape || !(shape->types & T_STRING)))
      n->none = true;
    for (const struct gb_link *p = shape ? shape->patterns : NULL; ok && p; p = p->next) {
      const char *why;
      enum gb_added added =
          gb_language_pattern(g, &n->language, json_string_value(p->value),
                              json_string_length(p->value), p->negated, true, &why);
      if (added == GB_ADDED_NOT)
        gb_note(g, link->entry, "propertyNames", why);
      ok = added != GB_ADDED_FAILED;
    }
    if (shape && shape->min_length.value > n->min)
      n->min = shape->min_length.value;
    if (shape && shape->max_length.value < n->max)
      n->max = shape->max_length.value;
    if (shape && shape->finite) {
      size_t count = 0;
      const struct gb_link **texts = gb_get(g, (gb_link_count(shape->values) + 1) * sizeof *texts);
      for (const struct gb_link *v = texts ? shape->values : NULL; v; v = v->next) {
        struct gb_link *text = json_is_string(v->value) ? gb_get(g, sizeof *text) : NULL;
        if (!text)
          continue;
        text->name = json_string_value(v->value);
        text->length = json_string_length(v->value);
        texts[count++] = text;
      }
      n->none = n->none || !count;
      ok = ok && g->status == GBNF_OK &&
           (!count || gb_language_texts(g, &n->language, texts, count, false) == GB_ADDED);
    }
    if (ok && (!known || (shape && (shape->formats || shape->not_values))))
      gb_note(g, link->entry, "propertyNames", "names of this kind are kept by the validator only");
    free(shapes.items);
    if (!ok)
      return false;
  }
  return true;
}

static bool patterns_add(struct gb *g, const struct gb_shape *s, struct naming *n) {
  size_t room = 0;
  for (const struct gb_link *spec = s->members; spec; spec = spec->next)
    room += spec->kind == SPEC_MEMBERS ? json_object_size(spec->patterns) : 0;
  n->parts = gb_get(g, (room + 1) * sizeof *n->parts);
  if (!n->parts)
    return false;
  for (const struct gb_link *spec = s->members; spec; spec = spec->next) {
    json_t *patterns = spec->kind == SPEC_MEMBERS ? (json_t *)spec->patterns : NULL;
    for (void *at = json_object_iter(patterns); at; at = json_object_iter_next(patterns, at)) {
      struct pattern_part part = {spec, json_object_iter_key(at), -1};
      size_t before = n->language.part_count;
      const char *why;
      switch (gb_language_pattern(g, &n->language, part.text, json_object_iter_key_len(at), false,
                                  false, &why)) {
      case GB_ADDED:
        part.part = (int)before;
        if (n->language.part_count == before + 1)
          break;
        n->language.part_count = before; /* look-aheads: more than one bit */
        part.part = -1;
        why = "the pattern looks around";
        /* fall through */
      case GB_ADDED_NOT:
        gb_note(g, spec->entry, "patternProperties", why);
        break;
      case GB_ADDED_FAILED:
        return false;
      }
      n->parts[n->part_count++] = part;
    }
  }
  return true;
}

static bool kind_add(struct gb *g, const struct gb_shape *s, const struct naming *n,
                     const struct gb_automaton *a, uint32_t mask, uint32_t accepts,
                     const char *rule, struct gb_names *out) {
  struct name_question q = {.accepts = accepts, .parts = n->parts, .part_count = n->part_count};
  struct gb_set set = question_answer(g, &q, s);
  if (g->status != GBNF_OK)
    return false;
  if (set.never)
    return true;
  const struct gb_node *name =
      a ? gb_automaton_node(g, a, mask, accepts, rule) : gb_primitive(g, "name");
  if (a && name)
    name = gb_seq(g, gb_word(g, "\""), name, gb_word(g, "\""));
  if (!name)
    return false;
  out->kinds[out->count++] = (struct gb_kind_of_name){name, set};
  return true;
}

static bool kinds_of_names(struct gb *g, const struct gb_shape *s, const struct naming *n,
                           const struct gb_automaton *a, const char *rule, struct gb_names *out) {
  uint32_t parts = ((uint32_t)1 << n->language.part_count) - 1, must = GB_LENGTH_BIT;
  uint32_t seen[NAME_KINDS_MAX];
  size_t count = 0;
  for (size_t i = 0; i < n->language.part_count; i++)
    must |= n->language.parts[i].must ? (uint32_t)1 << i : 0;
  for (size_t state = 0; state < a->states; state++) {
    uint32_t accepts = a->accepts[state] & (parts | GB_LENGTH_BIT);
    bool known = (accepts & must) != must;
    for (size_t i = 0; i < count && !known; i++)
      known = seen[i] == accepts;
    if (known)
      continue;
    if (count == NAME_KINDS_MAX)
      return gb_too_complex(g, "too many patterns meet in the names of properties");
    seen[count++] = accepts;
    if (!kind_add(g, s, n, a, parts | GB_LENGTH_BIT, accepts, rule, out))
      return false;
  }
  return true;
}

static bool name_kinds(struct gb *g, const struct gb_shape *s, struct naming *n,
                       const struct gb_link *const *taken, size_t taken_count, const char *rule,
                       struct gb_names *out) {
  struct gb_automaton a;
  if (!names_constraints(g, s, n))
    return false;
  if (n->none)
    return true;
  if (taken_count)
    switch (gb_language_texts(g, &n->language, taken, taken_count, true)) {
    case GB_ADDED:
      break;
    case GB_ADDED_NOT:
      return gb_too_complex(g, "too many patterns meet in the names of properties");
    case GB_ADDED_FAILED:
      return false;
    }
  if (!patterns_add(g, s, n))
    return false;
  if (!n->language.part_count && !n->min && n->max == UINT64_MAX)
    return kind_add(g, s, n, NULL, 0, 0, rule, out);
  static const char no_zero[] = "^[^\\u0000]*$";
  const char *why;
  if (gb_language_pattern(g, &n->language, no_zero, strlen(no_zero), false, true, &why) != GB_ADDED)
    return gb_too_complex(g, "too many patterns meet in the names of properties");
  switch (gb_automaton_build(g, &n->language, n->min, n->max, &a)) {
  case GB_BUILT:
    return kinds_of_names(g, s, n, &a, rule, out);
  case GB_BUILT_TOO_LARGE: /* narrower than the schema, never wrong */
    gb_note(g, s->members ? s->members->entry : s->names->entry, "additionalProperties",
            "the names are too many for a grammar: no further properties are written");
    return true;
  case GB_BUILT_FAILED:
    return false;
  }
  return false;
}

bool gb_names_of(struct gb *g, const struct gb_shape *shape, const struct gb_link *const *taken,
                 size_t taken_count, const char *rule, struct gb_names *out) {
  struct naming n = {.max = UINT64_MAX};
  out->count = 0;
  out->kinds = gb_get(g, NAME_KINDS_MAX * sizeof *out->kinds);
  bool ok = out->kinds && name_kinds(g, shape, &n, taken, taken_count, rule, out);
  gb_language_deinit(&n.language);
  return ok;
}
