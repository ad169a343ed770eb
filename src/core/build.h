/* build.h - inside workflow_build: what its files share. workflow.c builds movements and rules,
 * build_parts.c their reports, the judges of loops, and who is named in prompts. */
#ifndef SEGUE_CORE_BUILD_H
#define SEGUE_CORE_BUILD_H

#include "core/workflow.h"

enum { BUILD_PATH_BYTES = 64 };

struct build {
  struct workflow *wf;
  json_t *by_name; /* movement name -> index */
  struct err *err;
};

/* Everything of a movement but its name and its children. */
bool build_movement(struct build *b, const json_t *object, const json_t *workflow_options,
                    const struct judge_config *judge, const char *path, struct movement *m);
/* False, with the place and what is wrong there. */
bool build_fail(struct build *b, const char *path, const char *key, const char *what);

/* --- build_parts.c --- */

bool build_monitors(struct build *b, const json_t *list, const json_t *options,
                    const struct judge_config *judge);

bool build_reports(struct build *b, const json_t *object, const char *path, struct movement *m);
/* Children run at once: none may write another's file. */
bool build_siblings(struct build *b, const char *path, const struct movement *group);
/* Marks the movements whose answers a later prompt names. */
void build_answers(struct workflow *wf);

#endif
