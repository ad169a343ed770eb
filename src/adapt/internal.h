/* internal.h - declarations that the files of adapt share.
 *
 * DESIGN. A place of the canonical schema is a set of subschemas that all apply to the same value
 * (struct sum, made of entries of the compiled schema). adapt/merged.c merges such a set into one
 * struct adapt_view: references and allOf are followed, properties of the same name become sums of
 * their own. adapt/build.c turns a view into a schema of the dialect and a struct adapt_plan, the
 * map for values of that place. A sum is built once: reached through a $ref it goes into $defs,
 * otherwise it is shared.
 * Alternatives (anyOf, oneOf, if, dependentSchemas) are multiplied out, so that each branch is a
 * sum without alternatives.
 *
 * The validator decides which branch a value belongs to: the canonical program is run from the
 * branch's nodes, and the adapted branches are compiled into a program of their own (`shapes`).
 *
 * All structs live in one arena. A failure sticks in struct adapter, so builders need not check
 * each step; loops check adapter_stopped().
 */
#ifndef SEGUE_ADAPT_INTERNAL_H
#define SEGUE_ADAPT_INTERNAL_H

#include "adapt/adapt.h"
#include "schema/compiled.h"

#define KEEP(id) ((uint64_t)1 << (id))

/* Types of JSON Schema as a mask. "number" is both of the last two. */
enum {
  T_NULL = 1,
  T_BOOLEAN = 2,
  T_OBJECT = 4,
  T_ARRAY = 8,
  T_STRING = 16,
  T_INTEGER = 32,
  T_REAL = 64,
  T_NUMBER = T_INTEGER | T_REAL,
  T_ALL = 127
};

/* --- dialects (adapt/adapt.c) --- */

enum dialect_flag {
  ADAPT_ALL_REQUIRED = 1, /* every property in `required` */
  ADAPT_CLOSED = 2,       /* additionalProperties: false on every object */
  ADAPT_ROOT_OBJECT = 4,  /* the root is an object with properties, without alternatives */
  ADAPT_TYPE_LIST = 8,    /* "type" may be a list */
  ADAPT_ORDERING = 16,    /* propertyOrdering */
  ADAPT_WHOLE = 32,       /* takes JSON Schema as it is; only the root and references change */
  ADAPT_FREE = 64,        /* places without any constraint */
  ADAPT_GRAMMAR = 128,    /* llama.cpp's converter: bounds for integers only; patterns only as ^...$
                             without classes and look-around; tuples only of one length */
  ADAPT_ENUM_TEXTS = 256, /* enum of strings and numbers only */
  ADAPT_ITEMS_0_1 = 512,  /* minItems 0 or 1 only */
  ADAPT_DRAFT_07 = 1024   /* with ADAPT_WHOLE: no other keywords than those of draft 07 */
};
enum recursion { RECURSION_ANY, RECURSION_OPTIONAL, RECURSION_NONE };

/* 0: no limit */
struct dialect_limits {
  uint32_t nesting;          /* objects and arrays inside each other, the root counts */
  uint32_t properties;       /* of all objects together */
  uint32_t enum_values;      /* of all enums together */
  uint32_t name_characters;  /* of all property names, definition names, enum and const strings */
  uint32_t long_enum_values; /* an enum with more values than this ... */
  uint32_t long_enum_characters; /* ... has at most so many characters */
  uint32_t optional_properties;
  uint32_t unions;      /* places with anyOf or several types */
  uint32_t repetitions; /* larger minLength, maxLength, minItems and maxItems are only described */
  uint32_t schema_name; /* characters of [A-Za-z0-9_-] */
};

struct adapt_dialect {
  const char *name;
  unsigned flags;
  uint64_t keeps; /* keywords beyond type, properties, required, items, anyOf, enum, $ref, $defs */
  enum recursion recursion;
  const char *formats; /* one space apart */
  struct dialect_limits limits;
};

/* --- plans: from shape to shape (adapt/adapt.c) --- */

enum plan_kind {
  PLAN_OPEN, /* being made */
  PLAN_SAME,
  PLAN_OBJECT, /* members; `rest` for what is not named: in `extra` as pairs, or as it is */
  PLAN_ARRAY,  /* rest: each item */
  PLAN_PAIRS,  /* rest: each value of [{"key","value"}] */
  PLAN_TUPLE,  /* members "item_0"...; rest: items of "rest", if `extra` */
  PLAN_TEXT,   /* any value as JSON text */
  PLAN_ENUM,   /* `texts`: those values of the enum that are sent as text */
  PLAN_UNION
};
enum { PLAN_NONE = UINT32_MAX };

struct item {
  uint32_t entry; /* of the canonical schema */
  uint32_t flags;
};
enum {
  ITEM_PLAIN = 1, /* its references, combinations and annotations do not count */
  ITEM_SEEN = 2   /* they were followed */
};
struct sum {
  struct item *items;
  uint32_t count, capacity;
  bool never; /* `false` is part of it */
};

struct plan_member {
  const char *name; /* of the object's property; of a tuple "item_N" */
  uint32_t plan;
  bool optional;    /* may be left out of the canonical value */
  bool null_absent; /* null in an answer means that it was left out */
  bool added;       /* not part of the canonical value */
};
struct plan_branch {
  uint32_t plan;
  struct sum sum;
  json_t *shape; /* owned by the adapted schema's list of shapes */
  uint32_t node; /* of `shapes`, once compiled */
};
struct adapt_plan {
  enum plan_kind kind;
  uint32_t count;
  struct plan_member *members;
  struct plan_branch *branches;
  uint32_t rest;     /* plan; PLAN_NONE: nothing beyond the members */
  const char *extra; /* property of the answer that holds what is not named */
  json_t *texts;     /* PLAN_ENUM: array of values, owned by the adapted schema's list */
};

struct adapted {
  struct arena arena;
  const struct adapt_dialect *dialect;
  struct schema *canonical; /* owned */
  struct schema *shapes;    /* owned; NULL if there are no branches to tell apart */
  json_t *schema;           /* owned */
  json_t *kept;             /* owned: array of what plans point to */
  struct adapt_plan *plans;
  size_t plan_count, plan_capacity;
  uint32_t root;
  const char *wrap; /* member of the answer that is the value; NULL: the answer is */
  const char *lead; /* with `wrap`: the member before it, for reasoning; else NULL */
  struct adapt_change *changes;
  size_t change_count, change_capacity;
};

/* --- building --- */

enum unit_state { UNIT_OPEN, UNIT_DONE, UNIT_NEVER };
struct unit { /* one sum, built */
  struct sum sum;
  enum unit_state state;
  json_t *schema; /* owned */
  size_t size;    /* JSON values in it */
  uint32_t plan;
  const char *name;  /* in $defs, where a reference to it exists; else NULL */
  unsigned descents; /* where it was begun */
};

struct adapter {
  struct adapted *out;
  const struct adapt_dialect *dialect;
  const struct adapt_opts *opts;
  struct adapt_error *error;
  enum adapt_status status;
  struct map entries; /* json_t * -> entry */
  struct map known;   /* bytes of a sum -> unit */
  struct map names;   /* of $defs */
  struct map changed; /* effect, keyword, pointer */
  struct unit *units;
  size_t unit_count, unit_capacity;
  size_t size; /* JSON values built */
  unsigned depth;
  uint32_t place;    /* entry that is being built */
  unsigned descents; /* members and items entered on the way to where we are */
  size_t recursions; /* references to open units so far */
};

/* Holds a built place. `schema` is a new reference; NULL if nothing can match, or after a failure.
 */
struct built {
  json_t *schema;
  uint32_t plan;
};

static inline bool adapter_stopped(const struct adapter *a) {
  return a->status != ADAPT_OK;
}
/* Only the first failure is kept. All return false. `entry` may be NODE_NONE. */
bool adapt_fail(struct adapter *a, enum adapt_status status, uint32_t entry, const char *keyword,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
void adapt_changed(struct adapter *a, uint32_t entry, const char *keyword, const char *member,
                   enum adapt_effect effect, const char *why);
/* Appends a step of a JSON Pointer, escaped. */
void adapt_put_step(struct buf *out, const char *key);
/* Sets a member, takes the value. */
void adapt_put(json_t *object, const char *key, json_t *value);
/* Makes an object schema with these members and no others. Takes both. */
json_t *adapt_closed_object(const struct adapter *a, json_t *properties, json_t *required);
/* Returns a value as compact JSON; free() it. */
char *adapt_json_text(const json_t *value, size_t *length);
/* Counts the JSON values in `value`, up to `most` + 1. */
size_t adapt_size(const json_t *value, size_t most);

/* --- views (adapt/merged.c) --- */

bool adapt_sum_add(struct adapter *a, struct sum *sum, uint32_t entry, uint32_t flags);
/* Adds a subschema as it stands below a keyword: true, false or an object. */
bool adapt_sum_schema(struct adapter *a, struct sum *sum, const json_t *schema);
/* Adds to the sum what the entry's reference leads to. */
bool adapt_follow(struct adapter *a, uint32_t entry, const char *keyword, struct sum *sum);
unsigned adapt_type_of(const json_t *value);      /* one of T_... */
unsigned adapt_types_of(const json_t *values);    /* those of the items of a list */
unsigned adapt_keyword_types(enum keyword_id id); /* what a keyword is about; 0: any value */
enum schema_status adapt_sum_check(const struct adapted *adapted, const struct sum *sum,
                                   const json_t *value);
/* The same while building; also false if the check itself failed, which sticks. */
bool adapt_sum_accepts(struct adapter *a, const struct sum *sum, const json_t *value);

struct view_property {
  const char *name;
  struct sum sum;
  bool required;
  uint32_t entry; /* where it is declared or required */
};
struct view_group { /* alternatives */
  struct sum *branches;
  uint32_t count;
  const char *keyword;
  uint32_t entry;
};
struct view_word { /* a keyword that applies, with its value */
  enum keyword_id id;
  const struct keyword *keyword;
  const json_t *value;
  uint32_t entry;
};
struct adapt_view {
  struct sum flat;    /* every subschema that applies, references and allOf followed */
  uint32_t reference; /* the sum was one reference to this entry, apart from annotations; or
                             NODE_NONE */
  unsigned types;     /* T_... */
  bool typed;         /* by `type`, enum or const; otherwise by the types its keywords apply to */
  bool never;
  json_t *options; /* the values of enum and const that all parts accept, owned by out->kept;
                             NULL: no such keyword */
  uint32_t option_entry;
  bool option_is_const;
  const char *title, *description; /* the outermost */
  const json_t *default_value, *examples;
  struct view_word *words; /* assertions other than those that have a member here */
  size_t word_count, word_capacity;
  struct view_property *properties;
  size_t property_count, property_capacity;
  struct sum extra;     /* of properties not named */
  bool extra_open;      /* no part says anything about them */
  bool extra_closed;    /* there may be none */
  struct sum *patterns; /* subschemas by pattern, then `extra` */
  uint32_t pattern_count, extra_entry;
  struct sum *prefix;
  uint32_t prefix_count, prefix_entry;
  struct sum items; /* beyond the prefix */
  bool items_closed;
  bool items_open; /* no part says anything about them */
  struct view_group *groups;
  size_t group_count, group_capacity;
};
/* Fills the view, all of it in the arena. Returns false after a failure. */
bool adapt_view(struct adapter *a, const struct sum *sum, struct adapt_view *view);
/* Finds the tightest count of a keyword such as minItems in all parts. False: there is none. */
bool adapt_view_count(const struct adapt_view *view, enum keyword_id id, uint64_t *count);

/* --- words (adapt/build.c) --- */

/* The description: the schema's own words, then the constraints. */
struct adapt_words {
  struct buf text;
  size_t count;
};

/* --- the rest --- */

/* adapt/build.c */
struct built adapt_build(struct adapter *a, const struct sum *sum);
uint32_t adapt_plan_new(struct adapter *a, enum plan_kind kind);
static inline bool adapt_plan_same(const struct adapter *a, uint32_t plan) {
  return plan != PLAN_NONE && a->out->plans[plan].kind == PLAN_SAME;
}
static inline bool adapt_has(const struct adapter *a, enum dialect_flag flag) {
  return a->dialect->flags & flag;
}

#endif
