/* text_plan.h - remembers what a schema's program asked about an object, for the next object with
 * the same members; internal.
 *
 * An object's keys, and the few words that tell kinds of objects apart (conditions), determine
 * which values a program looks at. A plan records, for an object that passed, these words, and for
 * each member's value the node that was asked and its answer. An object with the same keys in the
 * same order also passes if its words are the same and each of these nodes gives the same answer.
 * If no plan fits, the program decides.
 *
 *   text_trace_begin(&t); ... text_trace_value, text_trace_word ...
 *   text_plans_add(&p, &object, &t)
 *   place = text_plans_find(&p, &js, &object, &end)           its keys are known; or NULL
 *   for (plan = place->plans; plan; plan = plan->next) text_plan_fits(plan, &object) ...
 *   text_plans_deinit(&p) */
#ifndef SEGUE_SCHEMA_TEXT_PLAN_H
#define SEGUE_SCHEMA_TEXT_PLAN_H

#include "base/arena.h"
#include "base/buf.h"
#include "schema/text_find.h"

/* These suffice for records; larger tables only make it slower. */
enum { PLAN_STEPS_MAX = 192, PLAN_WORDS_MAX = 48, PLAN_PLACES_MAX = 1024, PLAN_KINDS_MAX = 8 };
enum { PLAN_TAKEN_COUNT = 4 };
/* Bytes of objects that are remembered: smaller ones are read as fast. The last is for all of them
 * together, because whoever writes logs chooses how many there are. */
enum { PLAN_TAKEN_LEAST = 256, PLAN_TAKEN_MOST = 256 * 1024, PLAN_TAKEN_ALL = 2 * 1024 * 1024 };

struct plan_step { /* says what a node must answer for a member's value */
  uint32_t node;
  uint8_t member;
  bool yes;
};

struct plan_word { /* says whether a member's text must be this word or another */
  struct str word; /* the schema's */
  uint8_t member;
  bool same;
};

struct text_trace { /* records one object; `over`: it cannot become a plan */
  struct plan_step steps[PLAN_STEPS_MAX];
  struct plan_word words[PLAN_WORDS_MAX];
  size_t step_count, word_count;
  bool over;
};

struct text_plan {
  const struct text_plan *next;
  const struct plan_step *steps;
  const struct plan_word *words;
  size_t step_count, word_count;
};

/* Holds a large object that passed, and the node that took it: one record of each log has its
 * workflow, and the logs of a folder have one of a few. */
struct plan_taken {
  struct buf text; /* empty: none */
  uint32_t node;
};

struct plan_place { /* stands for a sequence of keys; all known ones form a tree */
  struct str key;   /* "key": as in the text */
  struct plan_place *first, *sibling;
  const struct text_plan *plans; /* for objects that end here */
  size_t plan_count;
  struct plan_taken *taken; /* PLAN_TAKEN_COUNT, or NULL */
  size_t oldest;            /* the one of them to forget next */
};

struct text_plans {
  struct arena arena;
  struct plan_place root;
  size_t place_count;
  size_t taken_bytes;
};

void text_trace_begin(struct text_trace *t);
void text_trace_value(struct text_trace *t, size_t member, uint32_t node, bool yes);
void text_trace_word(struct text_trace *t, size_t member, struct str word, bool same);

/* Remembers an object that passed. */
void text_plans_add(struct text_plans *p, const struct text_object *object,
                    const struct text_trace *t);

/* Finds the members of the object at the start of js, if its keys are known and have no white space
 * between them; *end is the offset after it. NULL: they are not known. */
const struct plan_place *text_plans_find(struct text_plans *p, const struct jscan *js,
                                         struct text_object *object, size_t *end);

/* Remembers a value of such an object that passed a node, if it is large. */
void text_plan_take(struct text_plans *p, const struct text_value *v, uint32_t node);

/* True if the object's words are those of the plan. */
bool text_plan_fits(const struct text_plan *plan, const struct text_object *object);

void text_plans_deinit(struct text_plans *p);

#endif
