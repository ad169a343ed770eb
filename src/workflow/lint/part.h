/* part.h - internal to lint, shared by its files. lint.c reads the document and reports findings in
 * this order: flow.c follows the rules, loops.c the judges of loops; backends.c checks who works
 * and judges, rules.c the rules of one movement, group.c its children, structured.c values and
 * references to them, and reports.c references to reports and answers. */
#ifndef SEGUE_WORKFLOW_LINT_PART_H
#define SEGUE_WORKFLOW_LINT_PART_H

#include "base/arena.h"
#include "judge/rule.h"
#include "workflow/load.h"
#include "workflow/marks.h"

enum { TO_COMPLETE = -1, TO_ABORT = -2, TO_NOWHERE = -3 };

struct lint_rule {
  struct rule rule; /* label empty when there is none */
  bool parsed;
  size_t behind; /* the number of a rule before it that always holds, so that it never can; or 0 */
  long next;
};

struct lint_movement {
  const json_t *object;
  const char *name;
  size_t group, child; /* for a child: its group's place and its own there; else LINT_NO_GROUP */
  size_t first_child, child_count; /* for a group: its children stand together */
  long reject;                     /* where approve.on_reject leads, as the next of a rule */
  bool is_command, reachable, ends;
  struct lint_rule *rules;
  size_t rule_count;
};

struct lint {
  const json_t *doc;
  const struct workflow_marks *marks;
  const struct lint_env *env;
  struct err_list *errors, *warnings;
  struct arena arena;
  const char **names;                  /* the movements', then the ends', then NULL */
  struct lint_movement *movements;     /* the children behind all others */
  struct lint_movement globals;        /* global_rules, as the rules of no movement */
  size_t count, top_count, first_loop; /* the judges of loops are the last of all */
};

#define LINT_NO_GROUP ((size_t)-1)

/* Returns the text of a member, or `otherwise`. */
const char *lint_text(const json_t *object, const char *key, const char *otherwise);

/* Reports each finding once: an inherited key would be found again for every movement. */
void lint_report(struct lint *l, struct err_list *list, const char *path, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
const char *lint_path(const struct lint *l, char path[DOC_PATH_BYTES], size_t movement,
                      const char *key);

/* Returns the place of a rule's key. */
const char *lint_rule_path(const struct lint *l, char path[DOC_PATH_BYTES], size_t movement,
                           size_t rule, const char *key);

/* "did you mean NAME?" or the alternative, for the end of a message. */
const char *lint_suggestion(struct lint *l, const char *word, const char *const *names,
                            const char *otherwise);

/* flow.c checks where rules lead. lint_reach marks what can be reached, and reports nothing. */
void lint_flow(struct lint *l);
void lint_reach(struct lint *l);

/* rules.c checks the rules of one movement. */
void lint_rules(struct lint *l, size_t movement);
/* Evaluates an expression that holds only a run's own numbers; otherwise EXPR_FALSE. */
enum expr_value lint_try_out(const struct expr *when, bool *constant, struct expr_error *why);

/* Who works and who judges, of the workflow and of one movement: backends.c. */
void lint_backends(struct lint *l);
void lint_backends_of(struct lint *l, size_t movement);
/* Returns the backend of that name; NULL and an error if there is none. */
const struct capability *lint_provider(struct lint *l, const char *path, const char *name);

/* Reports what is wrong with a reference MOVEMENT.FIELD to a value; it stands between two words:
 * structured.c. */
void lint_reference(struct lint *l, const char *place, struct str path, const char *before,
                    const char *after);

/* loop_monitors: the judge of each is a movement, behind all others. loops.c. */
size_t lint_count_loops(const struct lint *l);
void lint_read_loops(struct lint *l);
/* Returns the movement of that place in the cycle of a loop; l->count if there is none. */
size_t lint_cycle(const struct lint *l, size_t loop, size_t place);
void lint_loops(struct lint *l);

/* group.c checks the children of a movement and the aggregates over them. */
void lint_group(struct lint *l, size_t movement);
/* votes.LABEL or parts in a condition of a movement, as it stands at `place`. */
void lint_votes(struct lint *l, const char *place, size_t movement, struct str root,
                struct str label);

/* The reports of a movement, and {report:FILE} and {response:MOVEMENT} in what its prompts are made
 * of: reports.c. */
void lint_reports(struct lint *l, size_t movement);

/* structured_output of a movement, and the variables in its instruction. */
void lint_structured(struct lint *l, size_t movement);
/* Checks a reference to a member of a movement's value, as it stands at `place`. */
void lint_member(struct lint *l, const char *place, size_t movement, const struct str *names,
                 size_t count);

#endif
