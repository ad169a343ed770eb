/* Carries the state of a session over to one that is forked from it: into a record, and out of
 * that. */
#include "base/log.h"
#include "core/checks.h"
#include "core/fold.h"
#include "core/keys.h"
#include "core/monitor.h"
#include "core/report_file.h"
#include "core/steer.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <stdlib.h>

enum { MAX_COUNT = LIMIT_MOVEMENTS }; /* the most of anything that is counted there */

/* --- as a record --- */

/* Returns texts by name. A text that a record cannot hold as it is goes on in its readable form. */
static json_t *fork_state_kept(const struct kept_text *list) {
  json_t *texts = list != NULL ? json_object() : NULL;
  for (; list != NULL; list = list->next) {
    struct str text = buf_view(&list->text);
    json_object_set_new(texts, list->name,
                        text_needs_blob(text) ? text_render(text) : json_text(text));
  }
  return texts;
}

static json_t *worktrees_carry(const struct core *core) {
  json_t *branches = NULL;
  for (const struct worktree *w = core->worktrees; w; w = w->next) {
    if (w->committed != w->turn)
      continue;
    branches = branches ? branches : json_array();
    json_array_append_new(branches,
                          json_pack("{sI sI so so}", "turn", (json_int_t)w->turn, "group",
                                    (json_int_t)w->group, "movement",
                                    json_text(core->workflow->movements[w->movement].name),
                                    "branch", json_text(str_from(w->branch))));
  }
  return branches;
}

json_t *fork_state(const struct core *core) {
  json_t *runs = json_object(), *check = NULL;
  if (core->check.turn > 0)
    check = json_pack("{sI so si}", "turn", (json_int_t)core->check.turn, "movement",
                      json_text(core->workflow->movements[core->check.movement].name), "exit",
                      core->check.exit);
  for (size_t i = 0; i < core->workflow->movement_count; i++) {
    struct str name = core->workflow->movements[i].name;
    if (core->movement_counts[i] > 0)
      json_object_setn_new(runs, name.p, name.n, json_integer(core->movement_counts[i]));
  }
  return json_pack("{sI sI so sO sO sO sO* sO* so* so* so* so* so* so* so* so* so* so*}", "turns",
                   (json_int_t)core->turn_count, "iterations", (json_int_t)core->iteration_count,
                   "runs", runs, "values", core->structured, "conversations", core->sessions,
                   "tokens", core->token_counts, "totals", core->totals, "refused", core->refused,
                   "check", check, "checks", json_clone(core->gates), "touched",
                   json_clone(core->touched), "reports", fork_state_kept(core->reports),
                   "responses", fork_state_kept(core->responses), "loops", monitor_json(core),
                   "branches", worktrees_carry(core), "inputs", json_clone(core->inputs), "said",
                   prompt_said_texts(core->said), "error",
                   core->error.text.n > 0 ? json_text(buf_view(&core->error.text)) : NULL);
}

/* --- from it: outside data --- */

static bool is_count(const json_t *value) {
  return json_is_integer(value) && json_integer_value(value) >= 0 &&
         json_integer_value(value) <= MAX_COUNT;
}

static bool take_runs(const struct fold *f, json_t *runs) {
  JSON_MEMBERS(runs, name, count) {
    long index = workflow_find(f->core->workflow, str_from(name));
    if (index < 0 || !is_count(count))
      return fold_bad(f, "its runs are not of its workflow");
    f->core->movement_counts[index] = (long)json_integer_value(count);
  }
  return true;
}

static bool has_counts(json_t *of_one) {
  JSON_MEMBERS(of_one, key, count) {
    if (!is_count(count))
      return false;
  }
  JSON_EACH(of_one, i, count) {
    if (!is_count(count))
      return false;
  }
  return json_array_size(of_one) <= LIMIT_TOKEN_NUMBER;
}

/* Takes the counts of tokens, which must be numbers only. The session gets a copy of its own,
 * because it counts in place while it runs. */
static bool take_tokens(const struct fold *f, const json_t *tokens) {
  JSON_MEMBERS(tokens, provider, of_one) {
    if (!has_counts(of_one))
      return fold_bad(f, "its tokens are no counts");
  }
  json_decref(f->core->token_counts);
  f->core->token_counts = tokens ? json_clone(tokens) : json_object();
  return true;
}

static bool fork_state_take_check(const struct fold *f, const json_t *check) {
  if (check == NULL)
    return true;
  long index = workflow_find(f->core->workflow, json_view(json_at(check, "movement")));
  json_int_t exit_status = json_int_at(check, "exit");
  if (index < 0 || !is_count(json_at(check, "turn")) || exit_status < 0 || exit_status > MAX_COUNT)
    return fold_bad(f, "its check is not of its workflow");
  f->core->check.turn = (long)json_int_at(check, "turn");
  f->core->check.movement = (size_t)index;
  f->core->check.exit = (int)exit_status;
  return true;
}

static void take_object(json_t **slot, const json_t *value) {
  if (!json_is_object(value))
    return;
  json_decref(*slot);
  *slot = json_clone(value);
}

static void take_kept(struct kept_text **list, json_t *texts) {
  JSON_MEMBERS(texts, name, text) {
    struct kept_text *kept = kept_put(list, str_from(name));
    buf_str(&kept->text, json_view(text));
    contract_sha256(json_view(text), kept->sha256);
  }
}

static bool are_reports(const json_t *texts) {
  struct err err;
  JSON_MEMBERS(texts, name, text) {
    if (!json_is_string(text) || !key_check_file(str_from(name), &err))
      return false;
  }
  return true;
}

/* Takes the answers of people that prompts show, by movement. */
static bool take_inputs(const struct fold *f, const json_t *inputs) {
  JSON_MEMBERS(inputs, name, text) {
    if (workflow_find(f->core->workflow, str_from(name)) < 0 || !json_is_string(text) ||
        json_string_length(text) > LIMIT_INPUTS_BYTES)
      return fold_bad(f, "its answers are not of its workflow");
  }
  take_object(&f->core->inputs, inputs);
  return true;
}

static bool take_branch_of(struct core *core, const json_t *entry) {
  long movement = workflow_find(core->workflow, json_view(json_at(entry, "movement")));
  json_int_t turn = json_int_at(entry, "turn");
  json_int_t group = json_int_at(entry, "group");
  const char *branch = json_string_value(json_at(entry, "branch"));
  if (movement < 0 || turn < 1 || turn > LIMIT_MOVEMENTS || group < 1 || group >= turn ||
      branch == NULL)
    return false;
  struct worktree **end = &core->worktrees, *w = xcalloc(1, sizeof *w);
  while (*end != NULL)
    end = &(*end)->next;
  *w = (struct worktree){.turn = (long)turn,
                         .group = (long)group,
                         .movement = (size_t)movement,
                         .committed = (long)turn,
                         .branch = xstrdup(branch)};
  *end = w;
  return true;
}

bool apply_carried(const struct fold *f) {
  struct core *core = f->core;
  const json_t *state = fold_tree(f, MEMBER_STATE);
  long next = workflow_find(core->workflow, fold_text(f, MEMBER_MOVEMENT));
  if (!core->awaits_carried)
    return fold_bad(f, "its session takes nothing over");
  if (next < 0)
    return fold_bad(f, "its movement is not in the workflow");
  const json_t *iterations = json_at(state, "iterations");
  if (!is_count(json_at(state, "turns")) || !is_count(iterations))
    return fold_bad(f, "its turns are no count");
  if (!take_runs(f, json_at(state, "runs")) || !take_tokens(f, json_at(state, "tokens")) ||
      !fork_state_take_check(f, json_at(state, "check")) ||
      !take_inputs(f, json_at(state, "inputs")))
    return false;
  take_object(&core->structured, json_at(state, "values"));
  take_object(&core->sessions, json_at(state, "conversations"));
  take_object(&core->totals, json_at(state, "totals"));
  take_object(&core->refused, json_at(state, "refused"));
  checks_take(core, json_at(state, "checks"));
  take_object(&core->touched, json_at(state, "touched"));
  steer_carry(core, json_at(state, "said"));
  buf_set(&core->error.text, json_view(json_at(state, "error")));
  if (!are_reports(json_at(state, "reports")))
    return fold_bad(f, "its reports are no files");
  take_kept(&core->reports, json_at(state, "reports"));
  take_kept(&core->responses, json_at(state, "responses"));
  const json_t *branches = json_at(state, "branches");
  for (size_t i = 0; i < json_array_size(branches); i++)
    if (!take_branch_of(core, json_array_get(branches, i)))
      return fold_bad(f, "its branches are not of its workflow");
  if (!monitor_take(core, json_at(state, "loops")))
    return fold_bad(f, "its loops are not of its workflow");
  if (fold_has(f, MEMBER_TEXT)) {
    if (!fold_take_text(f, MEMBER_TEXT, &core->last_text))
      return false;
    core->has_last_text = true;
    core->last_text_seq = core->seq + 1; /* the number of this record */
  }
  core->turn_count = (long)json_int_at(state, "turns");
  core->iteration_count = (long)json_integer_value(iterations);
  core->next = (int)next;
  core->awaits_carried = false;
  core->carried = true;
  return true;
}
