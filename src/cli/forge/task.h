/* task.h - makes a task from an issue or a pull request: --issue N, --pr N.
 *
 *   forge_task_read(&got, folder, issue, pr, &err)    one of the two is NULL; asks the forge
 *   forge_task_deinit(&got)                           accepts a zeroed one */
#ifndef SEGUE_CLI_FORGE_TASK_H
#define SEGUE_CLI_FORGE_TASK_H

#include "cli/cli.h"
#include "cli/forge/forge.h"

#define FORGE_TASK_OPTIONS                                                                         \
  {"issue", 0, "N", "take this issue as the task, read with gh or glab; its text is quoted",       \
   false},                                                                                         \
  {                                                                                                \
    "pr", 0, "N", "take this pull request as the task, in the same way, and work on its commits",  \
        false                                                                                      \
  }

struct forge_task {
  struct forge forge;
  struct forge_item item;
  json_t *source;
  struct buf text;
  char *fetched; /* a pull request's commit; or NULL */
};

bool forge_task_read(struct forge_task *got, const char *folder, const char *issue, const char *pr,
                     struct err *err) MUST_CHECK;
void forge_task_deinit(struct forge_task *got);
/* Returns where work on the pull request begins: its commit, or our own branch if that contains it.
 * NULL: neither is known. */
const char *forge_task_base(struct forge_task *got, const char *branch);

/* Takes those options if given: appends to the task, and sets in `config` (or the body of a
 * request) the source and where a worktree begins. */
bool forge_task_take(const struct cli_args *args, struct buf *task, json_t *config,
                     struct err *err) MUST_CHECK;

#endif
