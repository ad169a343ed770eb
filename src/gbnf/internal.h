/* internal.h - shared by the files of gbnf: the grammar as a tree, shapes of a value, the state.
 *
 * DESIGN. A nonterminal is a set of schemas that one value must match (gbnf/set.c). Such a set is
 * broken down into *shapes* (gbnf/set.c): references and `allOf` are merged in, and each
 * choice (`anyOf`, `oneOf`, `if`, dependencies) multiplies the shapes until each is a plain list of
 * constraints by type. Each type of a shape becomes a tree of grammar nodes. A grammar can neither
 * negate nor intersect, and the answer is validated anyway: so what must not match is only listed,
 * unless the shape is apart from it by itself, and of several patterns one is written. Finite sets
 * of values (`enum`, `const`) are filtered by the validator itself. Sets are processed from a
 * queue, so nesting costs no stack. Finally, rules that derive nothing finite are removed and the
 * rest is written (gbnf/rule_tree.c).
 *
 * The grammar may be wider than the schema where a keyword is listed (gb_note), and never narrower.
 *
 * A function that meets a bound sets g->status, and what it returns then is of no use; the loops
 * over much end at that. All memory is in the arena.
 */
#ifndef SEGUE_GBNF_INTERNAL_H
#define SEGUE_GBNF_INTERNAL_H

#include "base/str.h"
#include "gbnf/gbnf.h"
#include "schema/validate.h"

enum {
  GB_DEPTH_MAX = 300,                      /* schemas merged into each other */
  GB_WORK_MAX = 2000000,                   /* schemas merged in all, shapes looked at, ... */
  GB_MEMORY_BYTES_MAX = 128 * 1024 * 1024, /* memory of one grammar while it is made */
  GB_COUNT_MAX = 1000000                   /* counted items, members, characters */
};

/* --- the grammar as a tree (gbnf/rule_tree.c) --- */

enum gb_kind {
  GB_NEVER,   /* derives nothing */
  GB_LITERAL, /* bytes as the model writes them */
  GB_CLASS,   /* a terminal in GBNF syntax: "[0-9]" */
  GB_REF,
  GB_SEQ, /* kids in order; without kids: the empty text */
  GB_ALT,
  GB_REPEAT
};
struct gb_node {
  enum gb_kind kind;
  uint32_t rule;     /* GB_REF */
  uint32_t count;    /* number of kids */
  uint64_t min, max; /* GB_REPEAT; UINT64_MAX: no end */
  const char *text;  /* GB_LITERAL, GB_CLASS */
  size_t length;
  const struct gb_node **kids;
};
struct gb_rule {
  const char *name;
  const struct gb_node *node; /* NULL: not made yet */
  bool productive, reached;
};

/* --- what one value must match --- */

struct gb_set {
  const uint32_t *entries; /* of schemas; sorted, no duplicates */
  size_t count;
  bool never;
};

enum {
  T_NULL = 1,
  T_TRUE = 2,
  T_FALSE = 4,
  T_NUMBER = 8,
  T_STRING = 16,
  T_ARRAY = 32,
  T_OBJECT = 64,
  T_ALL = 127
};

struct gb_limit { /* a count and its source */
  uint64_t value;
  uint32_t entry;
};
struct gb_link { /* a list that shapes share; the newest comes first */
  const struct gb_link *next;
  uint32_t entry, scope;
  const char *name; /* NUL-terminated; of `length` */
  size_t length;
  const json_t *value;
  const json_t *patterns, *additional; /* those in an object's schema */
  const char *keyword;                 /* static; what is listed if it is not held */
  uint8_t kind;                        /* enum choice_kind */
  bool unevaluated;                    /* it is about what no other schema speaks of */
};

struct gb_shape {
  unsigned types;
  unsigned named; /* types that some schema named */
  bool integral;
  const json_t *minimum, *maximum; /* NULL: none */
  bool minimum_exclusive, maximum_exclusive;
  uint32_t number_entry;
  struct gb_limit min_length, max_length, min_items, max_items, min_members, max_members;
  bool finite; /* it is one of `values` */
  const struct gb_link *values, *not_values, *patterns, *formats;
  const struct gb_link *items, *members, *required, *forbidden, *names;
  const struct gb_link *multiples, *unique, *contains; /* only listed */
  const struct gb_link *merged;                        /* schemas already merged */
  const struct gb_link *choices;                       /* not made yet */
  const struct gb_link *others;                        /* schemas that must not match as well */
};

/* --- the converter --- */

struct gb {
  struct compiler compiler;
  struct arena arena;
  enum gbnf_status status;
  const char *limit; /* static: which bound */
  struct gb_rule *rules;
  size_t rule_count, rule_capacity;
  struct map names;      /* rule name -> how many have it */
  struct map sets;       /* entries -> rule */
  struct map classes;    /* ranges -> rule */
  struct map patterns;   /* pattern and lengths -> rule, and whether the lengths are held */
  struct map noted;      /* pointer and keyword -> note */
  struct map primitives; /* name -> rule */
  struct gb_job *jobs;
  size_t job_count, job_capacity, job_done;
  struct gbnf_note *notes;
  size_t note_count, note_capacity;
  uint32_t *scopes; /* parent of each scope of unevaluated* */
  size_t scope_count, scope_capacity;
  int64_t work;
  size_t bytes; /* memory in the arena */
  unsigned depth;
  bool loose;  /* too many combinations: further choices are only listed */
  bool quiet;  /* only a trial: notes are not taken */
  bool missed; /* ... and there would have been one */
  bool naming; /* strings are names of members: without U+0000, which many readers refuse there */
};
struct gb_job {
  struct gb_set set;
  uint32_t rule;
};

void gb_too_complex(struct gb *g, const char *limit);
bool gb_spend(struct gb *g, int64_t work); /* false: too much in all, or the status is set */
void *gb_get(struct gb *g, size_t size);
size_t gb_link_count(const struct gb_link *list);
/* Returns the list in the order of adding, in the arena. */
const struct gb_link **gb_links(struct gb *g, const struct gb_link *list, size_t *count);
/* Lists a keyword of an entry, once. */
void gb_note(struct gb *g, uint32_t entry, const char *keyword, const char *why);

/* gbnf/rule_tree.c. Once the status is set, lists and repetitions are gb_never. */
extern const struct gb_node gb_never, gb_empty;
const struct gb_node *gb_literal(struct gb *g, const char *text, size_t length);
const struct gb_node *gb_word(struct gb *g, const char *text);
const struct gb_node *gb_class(struct gb *g, const char *text);
const struct gb_node *gb_ref(struct gb *g, uint32_t rule);
const struct gb_node *gb_list(struct gb *g, enum gb_kind kind, const struct gb_node *const *kids,
                              size_t count);
#define gb_seq(g, ...)                                                                             \
  gb_list((g), GB_SEQ, (const struct gb_node *const[]){__VA_ARGS__},                               \
          sizeof((const struct gb_node *const[]){__VA_ARGS__}) / sizeof(const struct gb_node *))
#define gb_alt(g, ...)                                                                             \
  gb_list((g), GB_ALT, (const struct gb_node *const[]){__VA_ARGS__},                               \
          sizeof((const struct gb_node *const[]){__VA_ARGS__}) / sizeof(const struct gb_node *))
/* Counts beyond llama.cpp's maximum are split; `name` is for the rules that this may need. */
const struct gb_node *gb_repeat(struct gb *g, const char *name, const struct gb_node *kid,
                                uint64_t min, uint64_t max);
const struct gb_node *gb_maybe(struct gb *g, const char *name, const struct gb_node *kid);
/* Returns the node itself if it is small, else a reference to a rule of its own. */
const struct gb_node *gb_named(struct gb *g, const char *name, const struct gb_node *node);
uint32_t gb_rule_new(struct gb *g, const char *name, const struct gb_node *node);
/* A string, or any value, as JSON. `integers`: no "1.0" for 1. */
const struct gb_node *gb_string_literal(struct gb *g, const char *text, size_t length);
const struct gb_node *gb_value_literal(struct gb *g, const json_t *value, bool integers);
/* Shared rules: "char", "string", "number", "integer", "value", "ws", ... */
const struct gb_node *gb_primitive(struct gb *g, const char *name);
void gb_primitives_reserve(struct gb *g); /* their names are for them alone */
const struct gb_node *gb_space(struct gb *g);
/* Writes the rules that derive something and are reached from `root`. */
void gb_write(struct gb *g, uint32_t root, struct buf *out);

/* gbnf/set.c */
/* Returns a reference to the rule of the whole schema, which gb_sets_build makes with all others
 * that it needs. `name`: the rule's. */
const struct gb_node *gb_schema_node(struct gb *g, const char *name);
void gb_sets_build(struct gb *g);

/* gbnf/number.c, gbnf/bnf_text.c: one type of a shape */
const struct gb_node *gb_number(struct gb *g, const struct gb_shape *shape);
const struct gb_node *gb_string(struct gb *g, const struct gb_shape *shape, const char *name);

/* gbnf/bnf_text.c: a pattern as the rule of a quoted string */
struct gb_pattern {
  const char *text;
  size_t length;
  const char *name;  /* of its rules */
  uint64_t min, max; /* the length that is asked for besides */
  bool fits;         /* set: whatever is written has that length */
  const char *why;   /* set, static: what no grammar can express */
};
/* NULL: p->why is set, or the status of g. */
const struct gb_node *gb_pattern_node(struct gb *g, struct gb_pattern *p);
/* Makes any string but the given ones. NULL: they are too many. */
const struct gb_node *gb_except(struct gb *g, struct str *texts, size_t count);

#endif
