/* internal.h - shared by the files of gbnf: the grammar as a tree, languages of strings, the state.
 *
 * DESIGN. A nonterminal is a set of schemas that one value must match, some of them negated
 * (gbnf/set.c). Such a set is broken down into *shapes* (gbnf/shape.c): references and `allOf` are
 * merged in, and each choice (`anyOf`, `oneOf`, `if`, `not`, dependencies) multiplies the shapes
 * until each is a plain list of constraints by type. Each type of a shape becomes a tree of grammar
 * nodes. What constrains a string or a property's name is a regular language, so it goes through
 * one automaton (gbnf/regex.c, gbnf/automaton.c, gbnf/language.c), which can intersect and negate.
 * Finite sets of values (`enum`, `const`) are filtered by the validator itself. Sets are processed
 * from a queue, so nesting costs no stack. Finally, rules that derive nothing finite are removed
 * and the rest is written (gbnf/write.c).
 *
 * Every function that can fail returns NULL or false with g->status set; its memory is in the
 * arena.
 */
#ifndef SEGUE_GBNF_INTERNAL_H
#define SEGUE_GBNF_INTERNAL_H

#include "gbnf/gbnf.h"
#include "schema/run.h"

enum {
  GB_SHAPES_MAX = 256,      /* shapes in one set */
  GB_DEPTH_MAX = 300,       /* schemas merged into each other, or choices in each other */
  GB_WORK_MAX = 2000000,    /* schemas merged in all, shapes looked at, ... */
  GB_NOT_BRANCHES_MAX = 12, /* ways not to match that are followed */
  GB_STATES_MAX = 3000,     /* states of one automaton */
  GB_MINIMISE_MAX = 300,    /* states up to which an automaton is minimised */
  GB_NFA_MAX = 12000,       /* states of one pattern */
  GB_SCRATCH_BYTES_MAX = 32 * 1024 * 1024, /* while one automaton is made */
  GB_MEMORY_BYTES_MAX = 128 * 1024 * 1024, /* memory of one grammar while it is made */
  GB_ATOMS_MAX = 600,           /* groups of characters that a set of patterns distinguishes */
  GB_PARTS_MAX = 24,            /* patterns that meet in one language */
  GB_COUNTED_STATES_MAX = 3000, /* positions times counts of an object with member counts */
  GB_MEMBERS_MAX = 1000000,     /* counted of an object without named members */
  GB_FRACTION_DIGITS = 20,      /* behind the point */
  GB_INTEGER_DIGITS = 16,       /* before it: beyond that, doubles and integers differ */
  GB_SAFE_DIGITS = 15,          /* decimals with this many digits are distinct doubles */
  GB_BOUND_DIGITS = 60          /* digits of a bound written out, on either side of the point */
};

/* --- the grammar as a tree --- */

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
  bool productive;
  bool reached;
};

/* --- what one value must match --- */

struct gb_atom { /* a schema, perhaps negated */
  uint32_t entry;
  bool negated;
  uint32_t reason;     /* negated: the entry with the keyword that wants it so */
  const char *keyword; /* static */
};
struct gb_set {
  const struct gb_atom *atoms; /* sorted, no duplicates */
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
  uint32_t entry;
  uint32_t scope;
  const char *name; /* NUL-terminated; of `length` */
  size_t length;
  const json_t *value;
  const json_t *patterns, *additional; /* those in an object's schema */
  const char *keyword;                 /* static; of what is negated */
  uint8_t kind;
  bool negated;
};
enum gb_choice { CHOICE_ANY, CHOICE_ONE, CHOICE_IF, CHOICE_NOT, CHOICE_REQUIRED, CHOICE_SCHEMA };
enum gb_spec { SPEC_MEMBERS, SPEC_UNEVALUATED, SPEC_NOT_MEMBER };

struct gb_shape {
  unsigned types;
  unsigned named; /* types that some schema named */
  bool integral;
  bool fractional;                 /* no integer */
  const json_t *minimum, *maximum; /* NULL: none */
  bool minimum_exclusive, maximum_exclusive;
  uint32_t number_entry;
  struct gb_limit min_length, max_length, min_items, max_items, min_members, max_members;
  bool finite; /* it is one of `values` */
  const struct gb_link *values, *not_values;
  const struct gb_link *patterns, *formats;
  const struct gb_link *items, *members, *required, *forbidden, *names;
  const struct gb_link *multiples, *unique, *contains; /* only listed */
  const struct gb_link *merged;                        /* schemas already merged */
  const struct gb_link *choices;                       /* not made yet */
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
  struct map sets;       /* atoms -> rule */
  struct map classes;    /* ranges -> rule */
  struct map strings;    /* constraints -> rule */
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
  bool loose; /* too many combinations: further choices are only listed */
  bool quiet; /* only a trial: notes are not taken */
};
struct gb_job {
  struct gb_set set;
  uint32_t rule;
};

bool gb_too_complex(struct gb *g, const char *limit);
bool gb_spend(struct gb *g, int64_t work); /* false: too much in all */
void *gb_get(struct gb *g, size_t size);
/* Lists a keyword of an entry, once. */
void gb_note(struct gb *g, uint32_t entry, const char *keyword, const char *why);

/* gbnf/node.c. NULL if a bound was hit; a NULL kid gives NULL. */
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
bool gb_rule_new(struct gb *g, const char *name, const struct gb_node *node, uint32_t *rule);
/* Shared rules: "char", "string", "number", "integer", "value", "ws", ... */
const struct gb_node *gb_primitive(struct gb *g, const char *name);
const struct gb_node *gb_space(struct gb *g);

/* gbnf/literal.c: a string or any value as JSON. `integers`: no "1.0" for 1. */
const struct gb_node *gb_string_literal(struct gb *g, const char *text, size_t length);
const struct gb_node *gb_value_literal(struct gb *g, const json_t *value, bool integers);

/* gbnf/set.c */
struct gb_set gb_set_of(struct gb_atom *atoms, size_t count); /* sorts them in place */
/* Returns a reference to the rule of a set, which is made when its turn comes. `name`: the
 * rule's. */
const struct gb_node *gb_set_node(struct gb *g, const struct gb_set *set, const char *name);
bool gb_sets_build(struct gb *g);
enum { GB_NAME_BYTES = 40 };
/* Makes a name of letters, digits and dashes similar to `name`, with room for a suffix. */
void gb_rule_name(char out[GB_NAME_BYTES], const char *name);
bool gb_matches(struct gb *g, const struct gb_atom *atoms, size_t count, const json_t *value);

/* gbnf/merge.c: schemas into a shape */
#define GB_NO_SCOPE UINT32_MAX
bool gb_merge(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t scope);
/* Reads a subschema: false if it is `false`; *entry is NODE_NONE if it is `true`. */
bool gb_child(struct gb *g, const json_t *schema, uint32_t *entry);
bool gb_link_add(struct gb *g, const struct gb_link **list, struct gb_link link);
size_t gb_link_count(const struct gb_link *list);
/* Returns the list in the order of adding, in the arena; NULL if that is used up. */
const struct gb_link **gb_links(struct gb *g, const struct gb_link *list, size_t *count);
bool gb_scope_within(const struct gb *g, uint32_t scope, uint32_t outer);
uint64_t gb_count_of(const json_t *value);
unsigned gb_type_of(const json_t *value);
unsigned gb_types_of(const json_t *type, bool *integral);

/* gbnf/not.c: a schema that must not match. If that cannot be enforced, `keyword` of the entry
 * `reason` is listed. */
bool gb_merge_not(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t reason,
                  const char *keyword);
size_t gb_not_branches(struct gb *g, const struct gb_link *choice);
bool gb_not_branch(struct gb *g, struct gb_shape *shape, const struct gb_link *choice,
                   size_t branch);

/* gbnf/shape.c: choices, until plain shapes are left */
struct gb_shapes {
  struct gb_shape *items;
  size_t count, capacity;
};
/* The caller releases out->items, either way. */
bool gb_shapes_of(struct gb *g, const struct gb_set *set, struct gb_shapes *out);

/* gbnf/number.c, gbnf/string.c, gbnf/array.c, gbnf/object.c: one type of a shape */
const struct gb_node *gb_number(struct gb *g, const struct gb_shape *shape);
const struct gb_node *gb_string(struct gb *g, const struct gb_shape *shape, const char *name);
const struct gb_node *gb_array(struct gb *g, const struct gb_shape *shape, const char *name);
const struct gb_node *gb_object(struct gb *g, const struct gb_shape *shape, const char *name);
/* gbnf/member.c: what the value of a member must match */
struct gb_set gb_member_set(struct gb *g, const struct gb_shape *shape, const char *name,
                            size_t length);
struct gb_names {               /* of the members that a schema does not name */
  struct gb_kind_of_name {      /* those that match the same patterns */
    const struct gb_node *name; /* with its quotes */
    struct gb_set set;
  } * kinds;
  size_t count;
};
/* `taken`: names that are written separately, or never. */
bool gb_names_of(struct gb *g, const struct gb_shape *shape, const struct gb_link *const *taken,
                 size_t taken_count, const char *rule, struct gb_names *out);

/* --- languages of strings --- */

struct gb_range {
  uint32_t low, high;
};
struct gb_chars { /* sorted, apart from each other */
  const struct gb_range *ranges;
  size_t count;
};

/* gbnf/regex.c: patterns as trees over the language's sets of characters */
enum gb_regex_kind { RX_EMPTY, RX_CHARS, RX_SEQ, RX_ALT, RX_REPEAT, RX_BEGIN, RX_END };
struct gb_regex {
  enum gb_regex_kind kind;
  uint32_t chars;    /* RX_CHARS: index into the language's */
  uint32_t min, max; /* RX_REPEAT; UINT32_MAX: no end */
  const struct gb_regex *left, *right;
};
struct gb_part {
  const struct gb_regex *regex; /* found anywhere in the string */
  bool negated;                 /* ... or nowhere */
  bool must;                    /* strings that fail it are not wanted */
};
struct gb_language { /* zeroed; gb_language_deinit at the end */
  struct gb_part parts[GB_PARTS_MAX];
  size_t part_count;
  const struct gb_chars **chars; /* all sets of all parts */
  size_t chars_count, chars_capacity;
  struct map known; /* ranges -> index into chars */
};
enum gb_added { GB_ADDED, GB_ADDED_NOT, GB_ADDED_FAILED };
/* Adds a pattern: one part, plus one for each look-ahead it begins with. GB_ADDED_NOT: no automaton
 * can express it; *why (static) says which part. */
enum gb_added gb_language_pattern(struct gb *g, struct gb_language *l, const char *text,
                                  size_t length, bool negated, bool must, const char **why);
/* Adds a part: one of the texts of `names`, as a whole. GB_ADDED_NOT: too many. */
enum gb_added gb_language_texts(struct gb *g, struct gb_language *l,
                                const struct gb_link *const *names, size_t count, bool negated);
void gb_language_deinit(struct gb_language *l);

/* gbnf/automaton.c */
#define GB_DEAD       UINT32_MAX
#define GB_LENGTH_BIT (UINT32_C(1) << 31)
struct gb_automaton {
  size_t states, atoms;  /* state 0 is the first */
  uint32_t *next;        /* [state * atoms + atom]; GB_DEAD: none */
  uint32_t *accepts;     /* bit i: part i holds if the string ends here; GB_LENGTH_BIT: so does its
                            length */
  struct gb_chars *sets; /* one for each atom */
};
enum gb_built { GB_BUILT, GB_BUILT_TOO_LARGE, GB_BUILT_FAILED };
/* All in g's arena. */
enum gb_built gb_automaton_build(struct gb *g, const struct gb_language *l, uint64_t min_length,
                                 uint64_t max_length, struct gb_automaton *out);

/* gbnf/language.c: an automaton as a grammar. The strings that end where accepts & mask == wanted,
 * as JSON without the quotes. */
const struct gb_node *gb_automaton_node(struct gb *g, const struct gb_automaton *a, uint32_t mask,
                                        uint32_t wanted, const char *name);

/* gbnf/chars.c */
struct str gb_chars_key(const struct gb_chars *chars); /* its bytes, for a map */
/* Sorts and joins `ranges`, in place; without the surrogates. */
const struct gb_chars *gb_chars_new(struct gb *g, struct gb_range *ranges, size_t count,
                                    bool inverted);
/* One character of a set, in its JSON spellings. */
const struct gb_node *gb_chars_node(struct gb *g, const struct gb_chars *chars);

/* gbnf/format.c: the pattern of a format; NULL: none. *whole: it covers all that the validator
 * checks. */
const char *gb_format_pattern(const char *format, bool *whole);

/* gbnf/write.c */
bool gb_write(struct gb *g, uint32_t root, struct buf *out);

#endif
