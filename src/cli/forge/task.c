/* Makes issues and pull requests into tasks. */
#include "cli/forge/task.h"

#include "base/log.h"
#include "cli/trees/trees.h"
#include "format/json_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool forge_task_read(struct forge_task *got, const char *folder, const char *issue, const char *pr,
                     struct err *err) {
  char real[PATH_MAX];
  long number;
  *got = (struct forge_task){0};
  if (issue != NULL && pr != NULL)
    return err_set(err, ERR_USAGE, "give --issue or --pr, not both");
  if (!forge_number(issue ? issue : pr, &number, err))
    return false;
  if (realpath(folder, real) == NULL)
    return err_set(err, ERR_USAGE, "%.300s is not a folder", folder);
  if (!forge_find(&got->forge, real, NULL, err) ||
      !forge_read(&got->forge, issue ? FORGE_ISSUE : FORGE_PR, number, &got->item, err))
    return false;
  got->source = forge_source(&got->item);
  return true;
}

static void forge_task_put(const struct forge_task *got, struct buf *task) {
  bool pr = got->item.kind == FORGE_PR;
  if (task->n == 0)
    buf_printf(task, pr ? "Work on pull request %ld." : "Resolve issue %ld.", got->item.number);
  buf_puts(task, "\n\n");
  forge_quote(&got->item, task);
}

void forge_task_deinit(struct forge_task *got) {
  forge_deinit(&got->forge);
  forge_item_deinit(&got->item);
  json_decref(got->source);
  buf_deinit(&got->text);
  free(got->fetched);
  *got = (struct forge_task){0};
}

const char *forge_task_base(struct forge_task *got, const char *branch) {
  char ref[512];
  struct err err;
  const char *folder = got->forge.folder;
  free(got->fetched);
  got->fetched = forge_fetch(&got->forge, got->item.number, &err);
  if (got->fetched == NULL)
    log_warn("the pull request's commits could not be fetched: %s", err.text);
  if (got->fetched == NULL || branch == NULL)
    return got->fetched;
  (void)snprintf(ref, sizeof ref, "refs/heads/%.450s", branch);
  char *ours =
      trees_line(folder, &err, "rev-parse", "--verify", "--quiet", "--end-of-options", ref, NULL);
  char *said = NULL;
  if (ours != NULL)
    said = trees_line(folder, &err, "merge-base", "--is-ancestor", got->fetched, ours, NULL);
  if (said != NULL) { /* what has not been pushed yet is on our branch */
    free(got->fetched);
    got->fetched = ours;
    ours = NULL;
  }
  free(said);
  free(ours);
  return got->fetched;
}

static void forge_take_base(struct forge_task *got, json_t *config) {
  const char *base = got->item.kind == FORGE_PR ? forge_task_base(got, NULL) : NULL;
  json_t *set = json_object_get(config, "workspace");
  if (base == NULL || json_object_get(set, "base") != NULL)
    return;
  if (set == NULL) {
    set = json_object();
    json_object_set_new(config, "workspace", set);
  }
  json_object_set_new(set, "base", json_string(base));
}

bool forge_task_take(const struct cli_args *args, struct buf *task, json_t *config,
                     struct err *err) {
  const char *issue = cli_value(args, "issue"), *pr = cli_value(args, "pr");
  const char *cwd = cli_value(args, "cwd");
  struct forge_task got;
  if (issue == NULL && pr == NULL)
    return true;
  bool ok = forge_task_read(&got, cwd ? cwd : ".", issue, pr, err);
  if (ok) {
    forge_task_put(&got, task);
    forge_take_base(&got, config);
    json_object_set(config, "source", got.source);
  } else {
    (void)err_wrap(err, issue ? "--issue" : "--pr");
    err->code = ERR_USAGE;
  }
  forge_task_deinit(&got);
  return ok;
}
