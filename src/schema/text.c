/* Runs a schema's program over JSON text. */
#include "schema/text.h"

#include "schema/run.h"
#include "schema/text_find.h"
#include "schema/text_plan.h"

#include <string.h>

enum {
  TEXT_DEPTH_MAX = 48, /* deeper texts are left to the code that builds trees */
  TEXT_MATCHES = 8,    /* most remembered matches */
  TEXT_GUESSES = 512,
  TEXT_HOPS = 8, /* references followed at a time */
  /* up to this many properties are looked up one by one, without a walk over the members */
  TEXT_FEW = 3
};

enum text_verdict { TEXT_NO, TEXT_YES, TEXT_UNSURE };

struct text_match {
  const struct pattern *pattern;
  size_t n;
  char text[32];
};

struct text_guess {
  const struct object_op *object;
  const struct property *property;
};

struct schema_reader {
  struct text_guess guesses[TEXT_GUESSES];
  struct text_match matches[TEXT_MATCHES];
  struct vm vm;
  struct jscan scan;
  struct buf decoded;
  int depth;
  struct text_object root;
  struct text_plans plans; /* plans for roots that were taken */
  struct text_trace trace;
  struct schema_member members[TEXT_MEMBERS_MAX];
};

static enum text_verdict value_ok(struct schema_reader *r, uint32_t index, struct text_value *v);

/* --- all of its kinds --- */

static enum text_verdict said(bool ok) {
  return ok ? TEXT_YES : TEXT_NO;
}

/* Builds the value and checks it as schema.h does, which is rare. */
static enum text_verdict check_built(struct schema_reader *r, uint32_t index,
                                     struct text_value *v) {
  size_t from = (size_t)(v->text.p - r->scan.text) - (v->type == JSON_STRING);
  struct jscan_result found;
  size_t levels = 0;
  for (size_t i = 0; !v->read && i < v->text.n; i++)
    levels += v->text.p[i] == '{' || v->text.p[i] == '[';
  /* so deep that the value might be refused altogether */
  if (levels > JSCAN_DEPTH_MAX - TEXT_DEPTH_MAX || jscan_value(&r->scan, from, &found) != JSCAN_OK)
    return TEXT_UNSURE;
  bool ok = schema_run_node(&r->vm, index, found.value, NULL);
  json_decref(found.value);
  if (found.duplicate_key || r->vm.trouble != SCHEMA_OK)
    return TEXT_UNSURE;
  v->read = true;
  return said(ok);
}

/* Asks the branches of allOf, anyOf and oneOf, whatever kind of value they are about. */
struct text_asked {
  enum text_verdict (*branch)(struct schema_reader *r, uint32_t index, void *subject);
  void *subject;
};

static enum text_verdict combination(struct schema_reader *r, const struct op *op,
                                     const struct text_asked *asked) {
  const struct list_op *list = op->u.list;
  uint32_t yes = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    enum text_verdict one = asked->branch(r, list->nodes[i], asked->subject);
    if (one == TEXT_UNSURE || (one == TEXT_NO && op->code == OP_ALL_OF))
      return one;
    yes += one == TEXT_YES;
    if (yes > 0 && op->code == OP_ANY_OF)
      break;
  }
  return said(op->code == OP_ONE_OF ? yes == 1 : yes > 0 || op->code == OP_ALL_OF);
}

static enum text_verdict negated(enum text_verdict verdict) {
  return verdict == TEXT_UNSURE ? verdict : said(verdict == TEXT_NO);
}

static enum text_verdict branch_ok(struct schema_reader *r, uint32_t index, void *subject) {
  return value_ok(r, index, subject);
}

/* --- strings, numbers and words --- */

/* Matches, and remembers what matched last: times and the like repeat in records. */
static bool pattern_ok(struct schema_reader *r, const struct pattern *pattern, struct str text) {
  struct text_match *last = &r->matches[(uintptr_t)pattern / 64 % TEXT_MATCHES];
  if (last->pattern == pattern && str_eq((struct str){last->text, last->n}, text))
    return true;
  bool ok = schema_run_pattern(&r->vm, pattern, text.p, text.n);
  if (ok && text.n <= sizeof last->text) {
    *last = (struct text_match){.pattern = pattern, .n = text.n};
    memcpy(last->text, text.p, text.n);
  }
  return ok;
}

static bool word_in(const struct enum_op *o, const struct text_value *v, struct str text) {
  if (v->type != JSON_STRING)
    return o->simple >> v->type & 1;
  for (uint32_t i = 0; i < o->string_count; i++)
    if (o->strings[i].length == text.n && !memcmp(o->strings[i].text, text.p, text.n))
      return true;
  return false;
}

/* Checks the decoded string `text`. Unsure: a tree has to be built. */
static enum text_verdict scalar_op(struct schema_reader *r, const struct op *op,
                                   const struct text_value *v, struct str text) {
  bool integer = v->type == JSON_INTEGER;
  switch ((int)op->code) {
  case OP_ENUM:
    return integer ? TEXT_UNSURE : said(word_in(op->u.options, v, text));
  case OP_MINIMUM:
  case OP_MAXIMUM: {
    if (!integer || !json_is_integer(op->u.value))
      return TEXT_UNSURE;
    int64_t bound = json_integer_value(op->u.value);
    return said(op->code == OP_MINIMUM ? v->number >= bound : v->number <= bound);
  }
  case OP_MIN_LENGTH:
    return said(text.n / 4 >= op->u.count || utf8_count(text.p, text.n) >= op->u.count);
  case OP_MAX_LENGTH:
    return said(text.n <= op->u.count || utf8_count(text.p, text.n) <= op->u.count);
  case OP_PATTERN:
    return said(pattern_ok(r, op->u.pattern, text));
  default:
    return TEXT_UNSURE;
  }
}

static enum text_verdict enum_of_one(const struct op *op, const struct text_value *v) {
  const struct enum_op *o = op->u.options;
  if (v->type != JSON_INTEGER || o->integer_count != o->other_count)
    return TEXT_UNSURE;
  for (uint32_t i = 0; i < o->integer_count; i++)
    if (o->integers[i] == v->number)
      return TEXT_YES;
  return TEXT_NO;
}

static enum text_verdict scalar_ok(struct schema_reader *r, const struct node *node, uint32_t index,
                                   struct text_value *v) {
  const struct op *op = &r->vm.schema->ops[node->first], *end = op + node->count;
  struct str text = v->text;
  bool decoded = !v->escaped;
  for (; op < end; op++) {
    enum text_verdict verdict;
    if (!(op->applies >> v->type & 1))
      continue;
    if (op->code == OP_REF) {
      verdict = value_ok(r, op->node, v);
    } else if (op->code == OP_ALL_OF || op->code == OP_ANY_OF || op->code == OP_ONE_OF) {
      verdict = combination(r, op, &(struct text_asked){branch_ok, v});
    } else if (op->code == OP_ENUM && v->type == JSON_INTEGER) {
      verdict = enum_of_one(op, v);
    } else {
      if (!decoded) {
        buf_clear(&r->decoded);
        jscan_decode(v->text, &r->decoded);
        text = buf_view(&r->decoded);
        decoded = true;
      }
      verdict = scalar_op(r, op, v, text);
    }
    if (verdict == TEXT_UNSURE)
      return check_built(r, index, v);
    if (verdict == TEXT_NO)
      return TEXT_NO;
  }
  return TEXT_YES;
}

/* --- lists --- */

static enum text_verdict walk_items(struct schema_reader *r, const struct items_op *o,
                                    const struct text_value *v, size_t *count) {
  const struct jscan *js = &r->scan;
  size_t at = text_space(js, (size_t)(v->text.p - js->text) + 1);
  *count = 0;
  if (at < js->n && js->text[at] == ']')
    return TEXT_YES;
  for (;; ++*count) {
    struct text_value item;
    uint32_t index = o != NULL && o->rest != NODE_NONE ? o->rest : NODE_TRUE;
    if (o != NULL && *count < o->prefix_count)
      index = o->prefix[*count];
    at = text_find_value(js, at, &item);
    enum text_verdict verdict = at > 0 ? value_ok(r, index, &item) : TEXT_UNSURE;
    if (verdict != TEXT_YES)
      return verdict;
    at = text_space(js, at);
    if (at < js->n && js->text[at] == ']')
      break;
    if (at >= js->n || js->text[at] != ',')
      return TEXT_UNSURE;
    at = text_space(js, at + 1);
  }
  ++*count;
  return TEXT_YES;
}

static enum text_verdict array_op(struct schema_reader *r, const struct op *op,
                                  struct text_value *v) {
  size_t count;
  enum text_verdict verdict;
  switch ((int)op->code) {
  case OP_ITEMS:
    return walk_items(r, op->u.items, v, &count);
  case OP_MIN_ITEMS:
  case OP_MAX_ITEMS:
    verdict = walk_items(r, NULL, v, &count);
    if (verdict != TEXT_YES)
      return verdict;
    return said(op->code == OP_MIN_ITEMS ? count >= op->u.count : count <= op->u.count);
  case OP_REF:
    return value_ok(r, op->node, v);
  case OP_ALL_OF:
  case OP_ANY_OF:
  case OP_ONE_OF:
    return combination(r, op, &(struct text_asked){branch_ok, v});
  default:
    return TEXT_UNSURE;
  }
}

static enum text_verdict array_ok(struct schema_reader *r, const struct node *node, uint32_t index,
                                  struct text_value *v) {
  const struct op *op = &r->vm.schema->ops[node->first], *end = op + node->count;
  size_t count;
  for (; op < end; op++) {
    if (!(op->applies >> JSON_ARRAY & 1))
      continue;
    enum text_verdict verdict = array_op(r, op, v);
    if (verdict == TEXT_UNSURE)
      return check_built(r, index, v);
    if (verdict == TEXT_NO)
      return TEXT_NO;
    v->read |= op->code == OP_ITEMS;
  }
  enum text_verdict read = v->read ? TEXT_YES : walk_items(r, NULL, v, &count);
  v->read |= read == TEXT_YES;
  return read;
}

/* --- objects --- */

static bool text_has_all(struct text_object *object, const struct enum_string *names,
                         uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (text_member(object, (struct str){names[i].text, names[i].length}) == NULL)
      return false;
  return true;
}

/* Guesses that members come in the same order as last time, as in records of one type. */
static const struct property *text_property(struct schema_reader *r, const struct object_op *o,
                                            size_t place, struct str key) {
  struct text_guess *guess = &r->guesses[((uintptr_t)o / 64 * 7 + place) % TEXT_GUESSES];
  if (guess->object == o && guess->property->length == key.n &&
      memcmp(guess->property->name, key.p, key.n) == 0)
    return guess->property;
  const struct property *p = schema_find_property(&r->vm, o, key.p, key.n);
  if (p != NULL)
    *guess = (struct text_guess){o, p};
  return p;
}

/* Returns the node behind references: several places of a schema may refer to one. */
static uint32_t referred(const struct schema_reader *r, uint32_t index) {
  const struct schema *schema = r->vm.schema;
  for (int hops = 0; hops < TEXT_HOPS; hops++) {
    const struct node *node = &schema->nodes[index];
    const struct op *op = &schema->ops[node->first];
    if (node->count != 1 || node->tracks || op->code != OP_REF || op->applies != TYPE_ANY ||
        node->types != TYPE_ANY)
      break;
    index = op->node;
  }
  return index;
}

/* Asks a node about a member, and traces the answer if the object is the root. */
static enum text_verdict traced_ok(struct schema_reader *r, uint32_t index,
                                   struct text_object *object, const struct text_value *at) {
  size_t i = (size_t)(at - object->values);
  if (object != &r->root)
    return value_ok(r, index, &object->values[i]);
  index = referred(r, index);
  enum text_verdict verdict = value_ok(r, index, &object->values[i]);
  r->trace.over |= verdict == TEXT_UNSURE;
  text_trace_value(&r->trace, i, index, verdict == TEXT_YES);
  return verdict;
}

/* Checks an object by looking up its properties: a condition looks at one or two of many
 * members. */
static enum text_verdict few_ok(struct schema_reader *r, const struct object_op *o,
                                struct text_object *object) {
  for (uint32_t i = 0; i < o->count; i++) {
    const struct property *p = &o->properties[i];
    struct text_value *v = text_member(object, (struct str){p->name, p->length});
    if (v == NULL && p->required_bit)
      return TEXT_NO;
    if (v == NULL || p->node == NODE_NONE)
      continue;
    enum text_verdict verdict = traced_ok(r, p->node, object, v);
    if (verdict != TEXT_YES)
      return verdict;
  }
  return TEXT_YES;
}

static enum text_verdict members_ok(struct schema_reader *r, const struct object_op *o,
                                    struct text_object *object) {
  uint64_t seen = 0;
  if (o->pattern_count > 0 || o->names != NODE_NONE)
    return TEXT_UNSURE;
  if (!text_has_all(object, o->required_rest, o->required_rest_count))
    return TEXT_NO;
  if (o->additional == NODE_NONE && o->count <= TEXT_FEW)
    return few_ok(r, o, object);
  for (size_t i = 0; i < object->count; i++) {
    const struct property *p = text_property(r, o, i, object->keys[i]);
    uint32_t index = p != NULL ? p->node : NODE_NONE;
    if (p != NULL && p->required_bit)
      seen |= (uint64_t)1 << (p->required_bit - 1);
    if (index == NODE_NONE && o->additional_is_false)
      return TEXT_NO;
    if (index == NODE_NONE)
      index = o->additional;
    if (index == NODE_NONE)
      continue;
    enum text_verdict verdict = traced_ok(r, index, object, &object->values[i]);
    if (verdict != TEXT_YES)
      return verdict;
  }
  return said((seen & o->required_mask) == o->required_mask);
}

static bool has_dependencies(const struct dependency_op *o, struct text_object *object) {
  return text_member(object, (struct str){o->name, o->length}) == NULL ||
         text_has_all(object, o->required, o->count);
}

static enum text_verdict members_of(struct schema_reader *r, uint32_t index, void *object);

/* Finds the member by which conditions tell objects apart. Many in a row use the same one. */
static const struct text_value *text_kind(struct text_object *object, const char *key) {
  bool same = object->kind_key != NULL && strcmp(object->kind_key, key) == 0;
  if (!same) {
    object->kind_key = key;
    object->kind = text_member(object, str_from(key));
  }
  return object->kind;
}

/* Traces what a condition found in the root. A missing member shows in the keys. */
static void note_word(struct schema_reader *r, const struct text_object *object,
                      const struct text_value *v, struct str word, bool same) {
  if (object != &r->root || v == NULL)
    return;
  r->trace.over |= v->type != JSON_STRING || v->escaped;
  text_trace_word(&r->trace, (size_t)(v - object->values), word, same);
}

static enum text_verdict either(struct schema_reader *r, const struct if_op *o,
                                struct text_object *object) {
  enum text_verdict holds;
  if (o->key != NULL) {
    const struct text_value *v = text_kind(object, o->key);
    if (v != NULL && v->escaped)
      return TEXT_UNSURE;
    holds = said(v != NULL && v->type == JSON_STRING && str_eq(v->text, o->word));
    note_word(r, object, v, o->word, holds == TEXT_YES);
  } else {
    holds = members_of(r, o->condition, object);
  }
  if (holds == TEXT_UNSURE)
    return holds;
  uint32_t next = holds == TEXT_YES ? o->then_node : o->else_node;
  return next == NODE_NONE ? TEXT_YES : members_of(r, next, object);
}

/* Returns true for a branch about another kind of object: records have one for each type. */
static bool is_for_others(struct schema_reader *r, uint32_t index, struct text_object *object) {
  const struct node *node = &r->vm.schema->nodes[index];
  const struct op *op = &r->vm.schema->ops[node->first];
  if (node->count != 1 || node->tracks || op->code != OP_IF || op->u.branch->key == NULL ||
      op->u.branch->else_node != NODE_NONE)
    return false;
  const struct text_value *v = text_kind(object, op->u.branch->key);
  struct str word = op->u.branch->word;
  bool others = v != NULL && v->type == JSON_STRING && !v->escaped &&
                (v->text.n != word.n || v->text.p[0] != word.p[0] || !str_eq(v->text, word));
  if (others)
    note_word(r, object, v, word, false);
  return others;
}

static enum text_verdict branch_of(struct schema_reader *r, uint32_t index, void *object) {
  return is_for_others(r, index, object) ? TEXT_YES : members_of(r, index, object);
}

static enum text_verdict object_op(struct schema_reader *r, const struct op *op,
                                   struct text_object *object) {
  switch ((int)op->code) {
  case OP_OBJECT:
    return members_ok(r, op->u.object, object);
  case OP_DEPENDENT_REQUIRED:
    return said(has_dependencies(op->u.dependency, object));
  case OP_MIN_PROPERTIES:
    return said(object->count >= op->u.count);
  case OP_MAX_PROPERTIES:
    return said(object->count <= op->u.count);
  case OP_REF:
    return members_of(r, op->node, object);
  case OP_ALL_OF:
  case OP_ANY_OF:
  case OP_ONE_OF:
    return combination(r, op, &(struct text_asked){branch_of, object});
  case OP_NOT:
    return negated(members_of(r, op->node, object));
  case OP_IF:
    return either(r, op->u.branch, object);
  default:
    return TEXT_UNSURE;
  }
}

/* Asks a node about an object whose members were found. */
static enum text_verdict members_of(struct schema_reader *r, uint32_t index, void *object) {
  const struct node *node = &r->vm.schema->nodes[index];
  const struct op *op = &r->vm.schema->ops[node->first], *end = op + node->count;
  if (!(node->types >> JSON_OBJECT & 1))
    return TEXT_NO;
  if (node->tracks || --r->vm.work < 0)
    return TEXT_UNSURE;
  enum text_verdict verdict = TEXT_YES;
  for (; verdict == TEXT_YES && op < end; op++)
    if (op->applies >> JSON_OBJECT & 1)
      verdict = object_op(r, op, object);
  return verdict;
}

/* Also reads the members that no node asked about. */
static enum text_verdict read_rest(struct schema_reader *r, struct text_object *object) {
  for (size_t i = 0; i < object->count; i++)
    if (!object->values[i].read && value_ok(r, NODE_TRUE, &object->values[i]) != TEXT_YES)
      return TEXT_UNSURE;
  return TEXT_YES;
}

static enum text_verdict object_ok(struct schema_reader *r, uint32_t index, struct text_value *v) {
  struct text_object object;
  if (text_find_members(&r->scan, (size_t)(v->text.p - r->scan.text), &object) == 0)
    return TEXT_UNSURE;
  enum text_verdict verdict = members_of(r, index, &object);
  if (verdict == TEXT_UNSURE)
    return check_built(r, index, v);
  if (verdict == TEXT_YES)
    verdict = read_rest(r, &object);
  v->read |= verdict == TEXT_YES;
  return verdict;
}

static enum text_verdict value_ok(struct schema_reader *r, uint32_t index, struct text_value *v) {
  const struct node *node = &r->vm.schema->nodes[index];
  enum text_verdict verdict;
  if (v->type == JSON_REAL)
    return node->count == 0 && node->types >> JSON_REAL & 1 ? TEXT_YES : check_built(r, index, v);
  if (!(node->types >> v->type & 1))
    return TEXT_NO;
  if (node->count == 0 && v->read)
    return TEXT_YES;
  if (r->depth == TEXT_DEPTH_MAX || --r->vm.work < 0)
    return TEXT_UNSURE;
  r->depth++;
  if (v->type == JSON_OBJECT)
    verdict = object_ok(r, index, v);
  else if (v->type == JSON_ARRAY)
    verdict = node->tracks ? check_built(r, index, v) : array_ok(r, node, index, v);
  else
    verdict = scalar_ok(r, node, index, v);
  r->depth--;
  return verdict;
}

/* --- from outside --- */

struct schema_reader *schema_reader_new(const struct schema *schema) {
  struct schema_reader *r = xcalloc(1, sizeof *r);
  r->vm.schema = schema;
  return r;
}

void schema_reader_free(struct schema_reader *r) {
  if (r == NULL)
    return;
  pattern_scratch_deinit(&r->vm.scratch);
  jscan_deinit(&r->scan);
  buf_deinit(&r->decoded);
  text_plans_deinit(&r->plans);
  free(r);
}

static bool step_passes(struct schema_reader *r, const struct plan_step *step) {
  struct text_value *v = &r->root.values[step->member];
  if (v->taken != NULL && step->yes && step->node == v->taken->node)
    return true;
  return value_ok(r, step->node, v) == said(step->yes);
}

/* Asks about this object what the plan recorded of an earlier one. */
static bool plan_passes(struct schema_reader *r, const struct text_plan *plan) {
  for (size_t i = 0; i < plan->step_count; i++)
    if (!step_passes(r, &plan->steps[i]))
      return false;
  if (read_rest(r, &r->root) != TEXT_YES)
    return false;
  for (size_t i = 0; i < plan->step_count; i++)
    if (plan->steps[i].yes)
      text_plan_take(&r->plans, &r->root.values[plan->steps[i].member], plan->steps[i].node);
  return true;
}

static bool is_planned(struct schema_reader *r, size_t n) {
  size_t end;
  const struct plan_place *place = text_plans_find(&r->plans, &r->scan, &r->root, &end);
  const struct text_plan *plan = place != NULL && end == n ? place->plans : NULL;
  while (plan != NULL && !text_plan_fits(plan, &r->root))
    plan = plan->next;
  return plan != NULL && plan_passes(r, plan);
}

bool schema_reader_takes(struct schema_reader *r, struct str text) {
  if (r->vm.schema->dynamic != NULL || text.n == 0 || text.p[0] != '{')
    return false;
  jscan_deinit(&r->scan);
  jscan_init(&r->scan, text.p, text.n);
  r->vm.work = SCHEMA_WORK_MAX;
  r->vm.trouble = SCHEMA_OK;
  r->depth = 0;
  if (is_planned(r, text.n))
    return r->vm.trouble == SCHEMA_OK;
  if (r->vm.trouble != SCHEMA_OK) /* the program would meet it too */
    return false;
  r->vm.work = SCHEMA_WORK_MAX;
  text_trace_begin(&r->trace);
  bool takes = text_find_members(&r->scan, 0, &r->root) == text.n &&
               members_of(r, r->vm.schema->root, &r->root) == TEXT_YES &&
               read_rest(r, &r->root) == TEXT_YES && r->vm.trouble == SCHEMA_OK;
  if (takes)
    text_plans_add(&r->plans, &r->root, &r->trace);
  return takes;
}

const struct schema_member *schema_reader_members(const struct schema_reader *r, size_t *count) {
  struct schema_member *out = ((struct schema_reader *)r)->members;
  for (size_t i = 0; i < r->root.count; i++) {
    const struct text_value *v = &r->root.values[i];
    out[i] = (struct schema_member){r->root.keys[i], v->text, v->type, v->escaped};
  }
  *count = r->root.count;
  return out;
}
