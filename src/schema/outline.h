/* outline.h - tells what a compiled schema says about one place, including references and allOf;
 * internal.
 *
 * A place is a conjunction: the nodes that all apply to one value. outline_of gathers what they
 * say: the remaining types, every op except references and allOf, and an object's fields, each with
 * its own conjunction. The renderings and the example are made from outlines; as they switch over
 * enum op_code, none of them can forget a keyword.
 *
 * Calling order: walk_init, outline_of any number of times, walk_deinit. Outlines live in the
 * walk's arena. A function that returns false or NULL has set walk.status to SCHEMA_TOO_COMPLEX;
 * after that all of them fail. */
#ifndef SEGUE_SCHEMA_OUTLINE_H
#define SEGUE_SCHEMA_OUTLINE_H

#include "schema/validate.h"

enum {
  OUTLINE_WORK_MAX = 2000000, /* limit of nodes, ops and fields visited in one walk */
  OUTLINE_CHECK_WORK = 200000 /* units of work for one outline_accepts */
};

struct walk {
  const struct schema *schema;
  struct arena arena;
  uint32_t *origin; /* node -> the entry where it stands (node.entry is what it refers to) */
  uint32_t *seen;   /* entry -> the last clock that saw it */
  uint32_t clock;
  struct map places; /* entries of a place, as key -> its identity */
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
  bool declared; /* declared by `properties` somewhere; else only required */
  struct place place;
};

struct outline {
  struct place flat; /* all nodes, with those that references and allOf add; no NODE_TRUE */
  unsigned types;    /* type mask */
  bool never;        /* a `false` schema, or no type is left */
  bool has_format;   /* asserted or not */
  unsigned forms;    /* type mask of all alternatives that have a type of their own */
  const struct op **ops;
  uint32_t op_count;
  struct outline_field *fields; /* in the order of the schema */
  uint32_t field_count;
};

void walk_init(struct walk *walk, const struct schema *schema);
void walk_deinit(struct walk *walk);
bool walk_spend(struct walk *walk, int64_t work); /* false: too complex */

struct place outline_root(struct walk *walk);
/* Makes a place of one node; NODE_TRUE and NODE_NONE allow anything. */
struct place outline_place(struct walk *walk, uint32_t node);
struct place outline_join(struct walk *walk, struct place a, struct place b);
bool outline_of(struct walk *walk, struct place place, struct outline *out);

/* Returns the place of a member that is no field of `outline`: all patterns that match its name,
 * and each additionalProperties that still applies. */
struct place outline_member(struct walk *walk, const struct outline *outline, const char *name,
                            size_t length);
/* Returns the place of item `index` of an array. */
struct place outline_item(struct walk *walk, const struct outline *outline, size_t index);
/* Counts the items that have a schema of their own (prefixItems, or items as a list). */
uint32_t outline_prefix_count(const struct outline *outline);

/* Returns whether the value satisfies all nodes of the place; false also when that takes too much
 * work. */
bool outline_accepts(struct walk *walk, struct place place, const json_t *value);

/* Returns true if the place admits nothing because of a `false` schema. */
bool outline_is_false(const struct walk *walk, struct place place);

/* Returns the type mask that keywords hint at in a schema without `type`: `properties` hints at
 * object. 0: no hint. */
unsigned outline_hint(const struct outline *outline);

/* Returns the description of the place, or else its title, or else those of what it refers to.
 * NULL: there is none. */
const char *outline_description(const struct walk *walk, struct place place,
                                const struct outline *outline);
/* Returns the description beside a reference: the place's own, not its target's. */
const char *outline_own_description(const struct walk *walk, struct place place);
/* Returns the place referred to, without what stands beside the reference. */
struct place outline_target(struct walk *walk, struct place place);
/* Returns the value of any keyword as written, in the node or in what it refers to. */
const json_t *outline_raw(const struct walk *walk, uint32_t node, const char *keyword);

/* Returns the identity of a place, a number from 0 that is equal wherever the same schemas apply;
 * it serves to detect recursion. NODE_NONE: the place allows anything, or walk.status is set. */
uint32_t outline_identity(struct walk *walk, struct place place);

#endif
