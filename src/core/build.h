/* build.h - shared by the files of workflow_build. workflow.c builds movements, build/rules.c their
 * rules, build/group.c movements with children, and build/parts.c reports, loop judges, and which
 * movements prompts name. */
#ifndef SEGUE_CORE_BUILD_H
#define SEGUE_CORE_BUILD_H

#include "core/workflow.h"

#include "format/json_object.h"

enum { BUILD_PATH_BYTES = 64 };

struct build {
  struct workflow *wf;
  json_t *by_name; /* movement name -> index */
  struct err *err;
};

/* Builds all of a movement except its name and its children. */
bool build_movement(struct build *b, const json_t *object, const json_t *workflow_options,
                    const struct judge_config *judge, const char *path, struct movement *m);
/* Returns false, with the place and what is wrong there. */
bool build_fail(struct build *b, const char *path, const char *key, const char *what);

/* Returns a text or, if the key is missing, the empty view. Borrowed from the document. */
static inline struct str build_text(const json_t *object, const char *key) {
  const json_t *v = json_object_get(object, key);
  return v ? json_view(v) : STR("");
}

static inline bool build_bool(const json_t *object, const char *key, bool otherwise) {
  const json_t *v = json_object_get(object, key);
  return v ? json_is_true(v) : otherwise;
}

static inline json_int_t build_count(const json_t *object, const char *key, json_int_t otherwise) {
  const json_t *v = json_object_get(object, key);
  return v ? json_integer_value(v) : otherwise;
}

/* --- build/rules.c --- */

/* Reads the rules into m; the workflow's come first. */
bool build_rules(struct build *b, const json_t *list, const char *path, struct movement *m);
/* Finds where `name` leads, in the form of m->rule_next. */
bool build_next(struct build *b, struct str name, const char *path, const char *key, int *out);

/* --- build/group.c --- */

/* Builds the children of the movement at `index`, if it has any. */
bool build_group(struct build *b, const json_t *object, const json_t *options,
                 const struct judge_config *judge, size_t index);

/* --- build/parts.c --- */

bool build_monitors(struct build *b, const json_t *list, const json_t *options,
                    const struct judge_config *judge);

bool build_reports(struct build *b, const json_t *object, const char *path, struct movement *m);
/* Checks children that run at once: none may write another's file. */
bool build_siblings(struct build *b, const char *path, const struct movement *group);
/* Marks the movements whose answers a later prompt names. */
void build_answers(struct workflow *wf);

#endif
