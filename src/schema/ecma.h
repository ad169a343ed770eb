/* ecma.h - the one parser of ECMA-262 regular expressions (unicode mode), to trees; internal.
 *
 * ecma_parse makes the tree in the caller's arena, which also has to outlive the text. The tree is
 * walked to compile a pattern (schema/ecma.c) and to make a grammar (gbnf/bnf_text.c).
 *
 * Syntax of other engines is refused; an escaped punctuation mark and a lone bracket or brace stand
 * for themselves, as in browsers. Rules from: ECMA-262 section 22.2.1 and annex B.
 */
#ifndef SEGUE_SCHEMA_ECMA_H
#define SEGUE_SCHEMA_ECMA_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#include <stdint.h>

#define ECMA_NO_END UINT32_MAX /* the `max` of an open-ended repetition */

enum {
  ECMA_REPEAT_MAX = 65535, /* as many as PCRE2 takes */
  ECMA_MEMBER_RANGES = 11  /* most ranges of one member */
};

enum ecma_kind {
  ECMA_SEQ,    /* all kids in order; without kids: the empty text */
  ECMA_ALT,    /* one kid */
  ECMA_CLASS,  /* one character */
  ECMA_REPEAT, /* its kid, min to max times */
  ECMA_GROUP,  /* its kid, captured as `number` */
  ECMA_BACK,   /* the text of group `number` once more */
  ECMA_LOOK,   /* looks whether its kid matches ahead or behind */
  ECMA_BEGIN,
  ECMA_END,
  ECMA_EDGE /* word boundary */
};

struct ecma_range {
  uint32_t low, high;
};

/* A member of a class is a range, one of the sets d D w W s S, or a Unicode property p P. */
struct ecma_member {
  const struct ecma_member *next;
  char set; /* its letter; 0: a range */
  struct ecma_range range;
  /* kind of property, static: "" (a category or a binary property), "sc:", "scx:" */
  const char *scheme;
  struct str name;
};

struct ecma_node {
  enum ecma_kind kind;
  bool negated; /* CLASS, LOOK, EDGE */
  bool behind;  /* LOOK */
  bool lazy;    /* REPEAT */
  uint32_t min, max, number;
  struct str name; /* name of the group, also in its references; may be empty */
  const struct ecma_member *members;
  const struct ecma_node *kids, *next; /* the first kid; the next kid of the same node */
};

struct ecma_error {
  const char *text; /* static */
  size_t offset;    /* bytes into the pattern */
};

/* Returns the root. NULL: `text` is no pattern, and *error says why. */
const struct ecma_node *ecma_parse(struct str text, struct arena *arena, struct ecma_error *error);

/* Lists the ranges of a member, sorted; a property has none. */
size_t ecma_member_ranges(const struct ecma_member *member,
                          struct ecma_range out[ECMA_MEMBER_RANGES]);

/* Writes the pattern in PCRE2's syntax. */
void ecma_to_pcre(const struct ecma_node *root, struct buf *out);

#endif
