/* Reads a session's log up to the start of a movement, for another session to begin there. */
#include "host/fork.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/apply.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/repo.h"
#include "host/key_leak.h"
#include "host/preflight.h"
#include "host/resume_options.h"
#include "store/reader.h"
#include "store/record_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- where --- */

struct fork_place {
  struct str movement;
  long run;           /* 0: the last one */
  uint64_t seq;       /* the seq of its turn_start; 0: none was found */
  struct buf entered; /* the choices, for a message */
};

static bool fork_parse_from(const char *from, struct fork_place *place, struct err *err) {
  const char *hash = strrchr(from, '#');
  *place = (struct fork_place){.movement = str_from(from)};
  if (hash == NULL)
    return true;
  place->movement.n = (size_t)(hash - from);
  return (str_to_long(str_from(hash + 1), &place->run) && place->run > 0) ||
         err_set(err, ERR_USAGE, "%.80s: runs are numbered from 1: MOVEMENT#N", from);
}

static bool fork_find(struct fork_place *place, const struct store_ref *ref, struct err *err) {
  static const char type[] = "\"turn_start\"";
  struct log_reader r;
  struct str line;
  if (!reader_open(&r, ref, err))
    return false;
  while (reader_next(&r, &line) && r.whole) {
    if (memmem(line.p, line.n, type, sizeof type - 1) == NULL)
      continue;
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (str_eq_c(json_view(json_object_get(record, "type")), "turn_start")) {
      struct str movement = json_view(json_object_get(record, "movement"));
      json_int_t run = json_integer_value(json_object_get(record, "movement_iteration"));
      if (place->entered.n < LIMIT_ERROR_TEXT_BYTES / 2)
        buf_printf(&place->entered, "%s" STR_FMT "#%" JSON_INTEGER_FORMAT,
                   place->entered.n > 0 ? ", " : "", STR_ARG(movement), run);
      if (str_eq(movement, place->movement) && (place->run == 0 || place->run == run))
        place->seq = (uint64_t)json_integer_value(json_object_get(record, "seq"));
    }
  }
  reader_close(&r);
  return true;
}

/* --- reading --- */

static bool fork_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  return store_blob_get(ctx, sha256, out, err);
}

/* Folds the records before `end`; all of them when it is 0. */
static bool fold_until(struct fork *f, const struct store_ref *ref, uint64_t end, struct err *err) {
  struct store store;
  const struct core_source source = {&store, fork_blob};
  struct log_reader r;
  struct str line;
  bool ok = true;
  store_of(ref, &store);
  if (!reader_open(&r, ref, err))
    return false;
  memcpy(f->hash, record_line_first_hash, sizeof f->hash);
  while (ok && (end == 0 || f->core.seq + 1 < end) && reader_next(&r, &line) && r.whole) {
    json_auto_t *record = record_line_parse(line, f->hash, err);
    ok = record != NULL && core_apply_json(&f->core, record, NULL, &source, err);
    if (ok && f->core.seq == 1) {
      const char *path = json_string_value(json_object_get(record, "workflow_path"));
      f->workflow_path = path ? xstrdup(path) : NULL;
      f->facets = json_incref(json_object_get(record, "facets"));
    }
  }
  reader_close(&r);
  return ok || err_wrap(err, "the log is damaged");
}

/* Keeps a text, in a blob if it needs one: the new session's log refers to that. */
static bool keep_text(struct text *text, struct str bytes, const struct store *store,
                      struct err *err) {
  buf_str(&text->bytes, bytes);
  return !text_needs_blob(bytes) || store_blob_put(store, bytes, text->blob, err);
}

static bool fork_stands_at(const struct fork *f, const struct fork_place *place, struct err *err) {
  const struct core *core = &f->core;
  const struct workflow *wf = core->workflow;
  bool waits = wf != NULL && core->has_next && core->next >= 0;
  bool is_run = waits && (place->run == 0 || place->run == core->movement_counts[core->next] + 1);
  if (is_run && !core->awaits_carried && core->turns == NULL &&
      str_eq(wf->movements[core->next].name, place->movement))
    return true;
  if (wf != NULL && workflow_find(wf, place->movement) < 0)
    return err_set(err, ERR_USAGE, "the workflow has no movement \"%.*s\": it entered %s",
                   (int)(place->movement.n < 80 ? place->movement.n : 80), place->movement.p,
                   buf_c(&place->entered));
  if (place->run > 0)
    return err_set(err, ERR_USAGE, "there was no run %ld of " STR_FMT ": it entered %s", place->run,
                   STR_ARG(place->movement), buf_c(&place->entered));
  return err_set(err, ERR_USAGE, STR_FMT " was not entered in this session: it entered %s",
                 STR_ARG(place->movement), buf_c(&place->entered));
}

bool fork_read(struct fork *f, const struct store_ref *ref, const char *from, struct err *err) {
  struct fork_place place = {0};
  struct store store;
  *f = (struct fork){0};
  core_init(&f->core);
  store_of(ref, &store);
  f->store = store;
  bool ok = fork_parse_from(from, &place, err) && fork_find(&place, ref, err) &&
            fold_until(f, ref, place.seq, err) && fork_stands_at(f, &place, err) &&
            keep_text(&f->task, buf_view(&f->core.task), &store, err) &&
            keep_text(&f->text, buf_view(&f->core.last_text), &store, err);
  buf_deinit(&place.entered);
  if (ok)
    f->workflow = workflow_ref(f->core.workflow);
  return ok;
}

static bool fork_stand_at(struct fork *f, const char *movement, struct err *err) {
  struct core *core = &f->core;
  long index = core->workflow ? workflow_find(core->workflow, str_from(movement)) : -1;
  if (core->awaits_carried || core->turns != NULL)
    return err_set(err, ERR_USAGE,
                   "session %s is in the middle of a movement: segue resume it first",
                   core->session);
  if (index < 0 || (size_t)index >= core->workflow->top_count)
    return err_set(err, ERR_USAGE, "the workflow has no movement \"%.80s\"", movement);
  core->next = (int)index;
  core->has_next = true;
  return true;
}

bool fork_read_end(struct fork *f, const struct store_ref *ref, const char *movement,
                   struct err *err) {
  struct store store;
  *f = (struct fork){0};
  core_init(&f->core);
  store_of(ref, &store);
  f->store = store;
  bool ok = fold_until(f, ref, 0, err) && fork_stand_at(f, movement, err) &&
            keep_text(&f->task, buf_view(&f->core.task), &store, err) &&
            keep_text(&f->text, buf_view(&f->core.last_text), &store, err);
  if (ok)
    f->workflow = workflow_ref(f->core.workflow);
  return ok;
}

/* --- what is to be different --- */

/* Lints the changed document, which was linted as a whole when its session began. */
static bool fork_lint(const json_t *doc, const struct provider_registry *registry,
                      struct err *err) {
  AUTO(err_list_deinit) struct err_list errors = {0}, warnings = {0};
  const struct lint_env env = {.providers = registry_capabilities(registry)};
  workflow_lint(doc, NULL, &env, &errors, &warnings);
  bool ok = errors.count == 0;
  if (!ok)
    *err = errors.items[0];
  return ok;
}

bool fork_set_instruction(struct fork *f, struct str text, const struct config *user,
                          const struct provider_registry *registry, struct err *err) {
  if (text.n == 0 || text_needs_blob(text))
    return err_set(err, ERR_USAGE, "the instruction must be a text in UTF-8 of 1 to %u bytes",
                   LIMIT_INLINE_TEXT_BYTES);
  json_auto_t *doc = json_clone(f->workflow->doc);
  json_t *movement = json_array_get(json_object_get(doc, "movements"), (size_t)f->core.next);
  json_object_set_new(movement, "instruction", json_stringn(text.p, text.n));
  struct workflow *workflow = NULL;
  if (keys_check(doc, STR(""), user->hidden, "another instruction", err) &&
      fork_lint(doc, registry, err))
    workflow = workflow_build(doc, err);
  if (workflow == NULL)
    return err_wrap(err, "the new instruction");
  workflow_unref(f->workflow);
  f->workflow = workflow;
  free(f->workflow_path); /* that file holds another workflow */
  f->workflow_path = NULL;
  return true;
}

/* Returns whether a turn is left for the movement it begins with. */
static bool fork_has_turn(const struct fork *f, struct err *err) {
  const struct core as = {.workflow = f->workflow,
                          .config = f->config,
                          .iteration_count = f->core.iteration_count,
                          .has_next = true,
                          .next = f->core.next};
  return !core_is_at_max(&as) ||
         err_set(err, ERR_USAGE,
                 "the session has had its %ld turns there: give --max-movements with a higher "
                 "number, or infinite",
                 as.iteration_count);
}

void fork_wish_place(struct fork *f, const struct fork_place_wish *wish) {
  f->place =
      json_pack("{sO* ss* ss*}", "source", wish->source, "base", wish->base, "merge", wish->merge);
  buf_str(&f->more, wish->more);
}

/* Appends where the parent's work is: HEAD of its worktree, or its branch, if they are the same or
 * the worktree is gone. */
static void put_work(const struct worktree *own, struct buf *out) {
  struct repo repo;
  struct repo_head head = {0};
  char_auto_t *real = realpath(own->path, NULL);
  if (real != NULL && repo_find(real, &repo)) {
    if (strcmp(buf_c(&repo.top), real) == 0)
      repo_read_head(&repo, &head);
    repo_deinit(&repo);
  }
  bool elsewhere = head.commit[0] != '\0' && strcmp(head.branch, own->branch) != 0;
  buf_puts(out, elsewhere ? head.commit : own->branch);
}

/* Lets the worktree begin where the parent's work is. */
static void settle_place(struct fork *f) {
  const struct worktree *own = &f->core.worktree;
  buf_auto_t work = {0};
  json_auto_t *set = json_clone(json_object_get(f->config, "workspace"));
  set = set ? set : json_object();
  json_object_del(set, "merge");
  if (own->made) {
    put_work(own, &work);
    json_object_set_new(set, "base", json_text(buf_view(&work)));
  }
  if (own->made && strstr(own->branch, f->core.session) == NULL) /* it has that name already */
    json_object_set_new(set, "branch", json_string("segue/{id}"));
  static const char *const members[] = {"base", "merge"};
  for (size_t i = 0; i < ARRAY_LEN(members); i++)
    json_object_set(set, members[i], json_object_get(f->place, members[i]));
  if (json_object_size(set) > 0)
    json_object_set(f->config, "workspace", set);
  json_object_set(f->config, "source", json_object_get(f->place, "source"));
}

static bool settle_task(struct fork *f, struct err *err) {
  if (f->more.n == 0)
    return true;
  buf_auto_t task = {0};
  buf_printf(&task, STR_FMT "\n\n" STR_FMT, STR_ARG(buf_view(&f->task.bytes)),
             STR_ARG(buf_view(&f->more)));
  buf_clear(&f->more);
  text_deinit(&f->task);
  f->task = (struct text){0};
  bool ok = task.n <= LIMIT_TASK_BYTES ||
            err_set(err, ERR_LIMIT, "the task is larger than %u bytes", LIMIT_TASK_BYTES);
  return ok && keep_text(&f->task, buf_view(&task), &f->store, err);
}

bool fork_settle(struct fork *f, const json_t *changed, const char *cwd, const struct config *user,
                 const struct provider_registry *registry, bool has_scenario, struct err *err) {
  json_decref(f->config);
  f->config = resume_options_config(f->core.config, user, changed);
  json_object_del(f->config, "submitted");
  json_object_del(f->config, "report_dir");
  settle_place(f);
  if (!settle_task(f, err))
    return false;
  json_object_set_new(f->config, "cwd", json_string(cwd));
  const struct preflight p = {.workflow = f->workflow,
                              .config = f->config,
                              .registry = registry,
                              .has_scenario =
                                  has_scenario || json_object_get(f->config, "scenario") != NULL,
                              .has_task = f->task.bytes.n > 0,
                              .looks = true};
  return resume_options_movements_known(changed, f->workflow, err) && fork_has_turn(f, err) &&
         preflight_passes(&p, err);
}

const struct core_parent *fork_parent(struct fork *f) {
  f->parent = (struct core_parent){&f->core, f->hash, &f->text};
  return &f->parent;
}

void fork_params(struct fork *f, struct session_params *params) {
  params->workflow = f->workflow;
  params->workflow_path = f->workflow_path;
  params->task = buf_view(&f->task.bytes);
  params->task_blob = f->task.blob;
  params->config = f->config;
  params->facets = f->facets;
  params->parent = fork_parent(f);
}

void fork_deinit(struct fork *f) {
  core_deinit(&f->core);
  text_deinit(&f->text);
  text_deinit(&f->task);
  workflow_unref(f->workflow);
  free(f->workflow_path);
  json_decref(f->facets);
  json_decref(f->config);
  json_decref(f->place);
  buf_deinit(&f->more);
  *f = (struct fork){0};
}
