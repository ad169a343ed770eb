/* outline.h - what a compiled schema says about one place, references and allOf included; internal.
 *
 * A place is a conjunction: the nodes that all apply to one value. outline_of gathers what they
 * say: the remaining types, every op except references and allOf, and the fields of an object with
 * the conjunction of each. The renderings and the example are made from that; as they switch over
 * enum op_code, none of them can forget a keyword.
 *
 * Calling order: walk_init, outline_of any number of times, walk_deinit. Outlines live in the
 * walk's arena. A function that returns false or NULL has set walk.status to SCHEMA_TOO_COMPLEX;
 * once it is set, all of them fail.
 */
#ifndef SEGUE_SCHEMA_OUTLINE_H
#define SEGUE_SCHEMA_OUTLINE_H

#include "schema/run.h"

enum {
  OUTLINE_WORK_MAX = 2000000, /* nodes, ops and fields looked at in one walk */
  OUTLINE_CHECK_WORK = 200000 /* units of work of one check of a value at a place */
};

struct walk {
  const struct schema *schema;
  struct arena arena;
  uint32_t *origin; /* node -> the entry where it stands (a node's own is what it refers to) */
  uint32_t *seen;   /* entry -> the last clock that saw it */
  uint32_t clock;
  struct map places; /* entries of a place -> its identity */
  int64_t work;
  enum schema_status status;
};

struct place {
  const uint32_t *nodes;
  uint32_t count; /* 0: anything */
};

struct outline_field {
  const char *name;
  size_t length;
  bool required;
  bool declared; /* by `properties` somewhere; else it is only required */
  struct place place;
};

struct outline {
  struct place flat; /* all nodes, with those that references and allOf add; no NODE_TRUE */
  unsigned types;    /* type mask */
  bool never;        /* a `false` schema, or no type is left */
  bool has_format;   /* asserted or not */
  const struct op **ops;
  uint32_t op_count;
  struct outline_field *fields; /* in the order of the schema */
  uint32_t field_count;
};

bool walk_init(struct walk *walk, const struct schema *schema);
void walk_deinit(struct walk *walk);
bool walk_spend(struct walk *walk, int64_t work); /* false: too complex */

struct place outline_root(struct walk *walk);
/* One node as a place; NODE_TRUE and NODE_NONE are anything. */
struct place outline_place(struct walk *walk, uint32_t node);
struct place outline_join(struct walk *walk, struct place a, struct place b);
bool outline_of(struct walk *walk, struct place place, struct outline *out);

/* The place of a member that is no field of `outline`: every pattern that matches the name, and
 * every additionalProperties that remains. */
struct place outline_member(struct walk *walk, const struct outline *outline, const char *name,
                            size_t length);
/* The place of the item `index` of an array. */
struct place outline_item(struct walk *walk, const struct outline *outline, size_t index);
/* Items that have a schema of their own (prefixItems, or items as a list). */
uint32_t outline_prefix_count(const struct outline *outline);

/* Does the value satisfy all nodes of the place? Also false when that takes too much work. */
bool outline_accepts(struct walk *walk, struct place place, const json_t *value);

/* True if the place admits nothing: it has a `false` schema. */
bool outline_is_false(const struct walk *walk, struct place place);

/* Type mask that the keywords hint at, for a schema without `type`: `properties` means object.
 * 0: no hint. */
unsigned outline_hint(const struct outline *outline);

/* Returns the description or else the title of the place, or else of what it refers to. NULL: none.
 * */
const char *outline_description(const struct walk *walk, struct place place,
                                const struct outline *outline);
/* Returns the description beside a reference: the place's own, not its target's. */
const char *outline_own_description(const struct walk *walk, struct place place);
/* Returns the place referred to, without what stands beside the reference. */
struct place outline_target(struct walk *walk, struct place place);
/* Returns the value of any keyword as written, in the node or in what it refers to. */
const json_t *outline_raw(const struct walk *walk, uint32_t node, const char *keyword);

/* A number, from 0, for what the place says, equal wherever the same schemas apply; this is how
 * recursion is detected. NODE_NONE: anything, or walk.status is set. */
uint32_t outline_identity(struct walk *walk, struct place place);

#endif
