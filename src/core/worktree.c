/* Decides when a worktree is made and when its work is committed, and folds the results. */
#include "core/worktree.h"

#include "base/log.h"
#include "base/utf8.h"
#include "core/fold.h"
#include "core/group.h"
#include "core/step.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SUBJECT_BYTES = 72 };

/* --- settings --- */

const json_t *core_worktree_setting(const json_t *config, const char *name) {
  const json_t *own = json_object_get(json_at(config, "workspace"), name);
  return own ? own : json_object_get(json_at(config, "default_workspace"), name);
}

#define setting_text(config, from, name) json_view(json_at(json_at(config, from), name))

enum workspace_mode core_workspace_mode(const struct workflow *wf, const json_t *config) {
  enum workspace_mode mode = WORKSPACE_UNSET;
  if (workspace_mode_from_name(setting_text(config, "workspace", "mode"), &mode))
    return mode;
  if (wf->workspace != WORKSPACE_UNSET)
    return wf->workspace;
  (void)workspace_mode_from_name(setting_text(config, "default_workspace", "mode"), &mode);
  return mode == WORKSPACE_UNSET ? WORKSPACE_HERE : mode;
}

enum commit_when core_commit_when(const struct workflow *wf, const json_t *config) {
  enum commit_when when = COMMIT_UNSET;
  if (commit_when_from_name(setting_text(config, "workspace", "commit"), &when))
    return when;
  if (wf->commit != COMMIT_UNSET)
    return wf->commit;
  if (commit_when_from_name(setting_text(config, "default_workspace", "commit"), &when))
    return when;
  return core_workspace_mode(wf, config) == WORKSPACE_WORKTREE ? COMMIT_END : COMMIT_OFF;
}

/* --- names and messages --- */

/* Appends a name as part of a branch's name: what git refuses there becomes a dash. */
static void put_plain(struct buf *out, struct str name) {
  for (size_t i = 0; i < name.n; i++) {
    unsigned char c = (unsigned char)name.p[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    bool inner = (c == '-' || c == '_' || c == '.') && out->n > 0 && out->p[out->n - 1] != '.';
    bool first = out->n == 0 || out->p[out->n - 1] == '/';
    if (letter || c >= 0x80 || (inner && !first && i + 1 < name.n))
      buf_putc(out, (char)c);
    else
      buf_putc(out, first ? '_' : '-');
  }
}

bool worktree_check_branch(struct str text, struct err *err) {
  static const char *const refused[] = {"..", "//", "@{", "/.", "~",  "^",
                                        ":",  "?",  "*",  "[",  "\\", " "};
  bool ok = text.n > 0 && text.p[0] != '-' && text.p[0] != '/' && text.p[0] != '.' &&
            text.p[text.n - 1] != '/' && text.p[text.n - 1] != '.';
  for (size_t i = 0; ok && i < ARRAY_LEN(refused); i++)
    ok = memmem(text.p, text.n, refused[i], strlen(refused[i])) == NULL;
  return ok || err_set(err, ERR_INVALID,
                       "must be the name of a branch, in which {id} is the session's and "
                       "{workflow} its workflow's, such as segue/{id}");
}

struct template_value {
  const char *name;
  struct str text;
};

static void put_template(struct buf *out, struct str text, const struct template_value *values,
                         bool plain) {
  while (text.n > 0) {
    const struct template_value *found = NULL;
    for (const struct template_value *v = values; v->name && found == NULL; v++)
      if (str_starts(text, v->name))
        found = v;
    if (found == NULL) {
      buf_putc(out, text.p[0]);
      text = (struct str){text.p + 1, text.n - 1};
      continue;
    }
    if (plain)
      put_plain(out, found->text);
    else
      buf_str(out, found->text);
    text = (struct str){text.p + strlen(found->name), text.n - strlen(found->name)};
  }
}

/* Returns the template of the branch's name: flags of a start come first, then the workflow, then
 * the user's configuration. */
static struct str branch_template(const struct workflow *wf, const json_t *config) {
  const json_t *set = core_worktree_setting(config, "branch");
  if (json_at(json_at(config, "workspace"), "branch") == NULL && wf->branch.n > 0)
    return wf->branch;
  return set ? json_view(set) : STR("segue/{id}");
}

static void put_branch_of(struct str text, const struct workflow *wf, struct str id,
                          struct buf *out) {
  const struct template_value values[] = {{"{id}", id}, {"{workflow}", wf->name}, {NULL, STR("")}};
  put_template(out, text, values, true);
}

bool core_branch_fixed(const struct workflow *wf, const json_t *config, struct buf *out) {
  struct str text = branch_template(wf, config);
  if (memmem(text.p, text.n, "{id}", strlen("{id}")) != NULL)
    return false;
  put_branch_of(text, wf, STR(""), out);
  return true;
}

static void put_branch(const struct core *core, const struct turn *turn, struct buf *out) {
  put_branch_of(branch_template(core->workflow, core->config), core->workflow,
                str_from(core->session), out);
  if (turn == NULL)
    return;
  buf_putc(out, '-');
  put_plain(out, core->workflow->movements[turn->movement].name);
  buf_printf(out, "-%ld", turn->id);
}

static void put_commit_message(const struct core *core, size_t movement, bool at_end, long turn,
                               struct buf *out) {
  const json_t *set = core_worktree_setting(core->config, "message");
  struct str rest = buf_view(&core->task), task = str_trim(str_next_line(&rest));
  if (task.n > SUBJECT_BYTES)
    task.n = utf8_floor(task.p, SUBJECT_BYTES);
  struct str name = core->workflow->movements[movement].name;
  struct str text = set ? json_view(set) : STR("{movement}: {task}");
  char number[24];
  print_into(number, sizeof number, "%ld", turn);
  if (set == NULL && task.n == 0)
    text = STR("{workflow}: {movement}");
  else if (set == NULL && at_end)
    text = STR("{task}");
  const struct template_value values[] = {{"{id}", str_from(core->session)},
                                          {"{workflow}", core->workflow->name},
                                          {"{movement}", name},
                                          {"{task}", task},
                                          {"{turn}", str_from(number)},
                                          {NULL, STR("")}};
  put_template(out, text, values, false);
  buf_printf(out, "\n\nSegue-Session: %s\nSegue-Turn: %ld\n", core->session, turn);
}

/* --- the state --- */

struct worktree *core_worktree(const struct core *core, long turn) {
  struct worktree *w = core->worktrees;
  if (turn == 0)
    return (struct worktree *)&core->worktree;
  while (w != NULL && w->turn != turn)
    w = w->next;
  return w;
}

const char *core_turn_folder(const struct core *core, const struct turn *turn) {
  const struct worktree *own = core_worktree(core, turn->id);
  if (own != NULL && own->made)
    return own->folder;
  return core->worktree.made ? core->worktree.folder : NULL;
}

bool core_worktree_busy(const struct core *core) {
  bool busy = core->worktree.asked != WORKTREE_IDLE;
  for (const struct worktree *w = core->worktrees; w && !busy; w = w->next)
    busy = w->asked != WORKTREE_IDLE;
  return busy;
}

static bool is_of_group(const struct worktree *w, const struct workflow *wf, long group) {
  return w->committed == w->turn && wf->movements[w->movement].group == group;
}

void worktree_put_branches(const struct worktree *list, const struct workflow *wf, struct str group,
                           struct buf *out) {
  long index = workflow_find(wf, group), run = 0;
  for (const struct worktree *w = list; w; w = w->next)
    if (is_of_group(w, wf, index) && w->group > run)
      run = w->group;
  for (long after = 0;;) { /* the list is not sorted by turn, so each pass finds the next one */
    const struct worktree *next = NULL;
    for (const struct worktree *w = list; w; w = w->next)
      if (is_of_group(w, wf, index) && w->group == run && w->turn > after &&
          (next == NULL || w->turn < next->turn))
        next = w;
    if (next == NULL)
      return;
    buf_printf(out, "%s\n", next->branch);
    after = next->turn;
  }
}

json_t *worktrees_carry(const struct core *core) {
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

static bool take_branch_of(struct core *core, const json_t *entry) {
  long movement = workflow_find(core->workflow, json_view(json_at(entry, "movement")));
  json_int_t turn = json_integer_value(json_at(entry, "turn"));
  json_int_t group = json_integer_value(json_at(entry, "group"));
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

bool worktrees_take(struct core *core, const json_t *branches) {
  const json_t *entry;
  size_t i;
  json_array_foreach((json_t *)branches, i, entry) {
    if (!take_branch_of(core, entry))
      return false;
  }
  return true;
}

static void worktree_clear(struct worktree *w) {
  free(w->branch);
  free(w->base);
  free(w->path);
  free(w->folder);
  free(w->message);
}

void worktrees_deinit(struct core *core) {
  worktree_clear(&core->worktree);
  core->worktree = (struct worktree){0};
  for (struct worktree *w = core->worktrees, *next; w; w = next) {
    next = w->next;
    worktree_clear(w);
    free(w);
  }
  core->worktrees = NULL;
}

/* --- the decision --- */

static void worktree_ask(struct step *s, struct record_draft *d, const char *what, json_t *data,
                         long of) {
  record_put_word(d, MEMBER_EVENT, what);
  record_put_tree(d, MEMBER_DATA, data);
  step_emit(s, d);
  step_effect(s, EFFECT_WORKTREE, of, 0);
}

static void ask_make(struct step *s, const struct turn *turn) {
  const struct core *core = s->core;
  const json_t *base = core_worktree_setting(core->config, "base");
  struct buf branch = {0};
  struct record_draft d;
  struct str from = base ? json_view(base) : STR("HEAD");
  if (turn != NULL && core->worktree.branch != NULL)
    from = str_from(core->worktree.branch);
  put_branch(core, turn, &branch);
  step_record(s, &d, RECORD_WORKSPACE);
  if (turn != NULL)
    record_put_number(&d, MEMBER_TURN, turn->id);
  worktree_ask(
      s, &d, "make",
      json_pack("{so so}", "branch", json_text(buf_view(&branch)), "base", json_text(from)),
      turn ? turn->id : 0);
  buf_deinit(&branch);
}

static void ask_commit(struct step *s, long turn, size_t movement, bool at_end, long of) {
  struct buf message = {0};
  struct record_draft d;
  put_commit_message(s->core, movement, at_end, turn, &message);
  step_record(s, &d, RECORD_WORKSPACE);
  record_put_number(&d, MEMBER_TURN, turn);
  worktree_ask(s, &d, "commit", json_pack("{so}", "message", json_text(buf_view(&message))), of);
  buf_deinit(&message);
}

static bool commit_is_due(const struct core *core) {
  const struct workflow *wf = core->workflow;
  if (core->ended.turn == 0 || core->worktree.committed >= core->ended.turn)
    return false;
  if (core->next < 0)
    return core_commit_when(wf, core->config) != COMMIT_OFF;
  const struct movement *m = &wf->movements[core->ended.movement];
  return (m->edit || m->argv != NULL || m->child_count > 0) &&
         core_commit_when(wf, core->config) == COMMIT_MOVEMENT;
}

bool worktree_hold_next(struct step *s) {
  const struct core *core = s->core;
  if (core->worktree.asked != WORKTREE_IDLE)
    return true;
  if (!core->worktree.made && core->next >= 0 &&
      core_workspace_mode(core->workflow, core->config) == WORKSPACE_WORKTREE) {
    ask_make(s, NULL);
    return true;
  }
  if (!commit_is_due(core))
    return false;
  bool at_end = core_commit_when(core->workflow, core->config) == COMMIT_END;
  ask_commit(s, core->ended.turn, core->ended.movement, at_end, 0);
  return true;
}

bool worktree_hold_child(struct step *s, struct turn *turn) {
  const struct worktree *own = core_worktree(s->core, turn->id);
  assert(turn->group > 0);
  if (!s->core->workflow->movements[turn->movement].own_worktree || (own != NULL && own->made))
    return false;
  if (own == NULL && !s->env->draining)
    ask_make(s, turn);
  return true;
}

bool worktree_child_commits(struct step *s, struct turn *turn) {
  const struct worktree *own = core_worktree(s->core, turn->id);
  if (own == NULL || !own->made || own->committed == turn->id)
    return false;
  if (own->asked == WORKTREE_IDLE)
    ask_commit(s, turn->id, turn->movement, false, turn->id);
  return true;
}

void worktree_event(struct step *s) {
  const struct worktree *w = core_worktree(s->core, s->ev->call);
  struct turn *turn = s->ev->call > 0 ? core_turn(s->core, s->ev->call) : NULL;
  if (w == NULL || w->asked == WORKTREE_IDLE || (turn == NULL && s->ev->call > 0))
    return;
  if (s->ev->message != NULL && turn != NULL) {
    group_fail_child(s, turn, CLASS_CRASHED, str_from(s->ev->message));
  } else if (s->ev->message != NULL) {
    step_stop(s, "workspace", NULL, CLASS_NONE, str_from(s->ev->message), NULL);
  } else {
    struct record_draft d;
    bool made = w->asked == WORKTREE_MAKING;
    long number = made ? w->turn : w->committing;
    step_record(s, &d, RECORD_WORKSPACE);
    if (number > 0)
      record_put_number(&d, MEMBER_TURN, number);
    record_put_word(&d, MEMBER_EVENT, made ? "made" : "committed");
    record_put_tree(&d, MEMBER_DATA, json_incref((json_t *)s->ev->news));
    step_emit(s, &d);
  }
}

void worktree_resume(struct step *s) {
  if (s->core->worktree.asked != WORKTREE_IDLE)
    step_effect(s, EFFECT_WORKTREE, 0, 0);
  for (const struct worktree *w = s->core->worktrees; w; w = w->next)
    if (w->asked != WORKTREE_IDLE)
      step_effect(s, EFFECT_WORKTREE, w->turn, 0);
}

/* --- the fold: outside data --- */

static void worktree_keep(char **slot, const json_t *data, const char *name) {
  const char *text = json_string_value(json_object_get(data, name));
  free(*slot);
  *slot = text ? xstrdup(text) : NULL;
}

static struct worktree *worktree_new(struct core *core, const struct turn *turn) {
  struct worktree *w = xcalloc(1, sizeof *w);
  w->turn = turn->id;
  w->group = turn->group;
  w->movement = turn->movement;
  w->next = core->worktrees;
  core->worktrees = w;
  return w;
}

static bool take_make(const struct fold *f, long number) {
  struct core *core = f->core;
  const struct turn *turn = number > 0 ? core_turn(core, number) : NULL;
  struct worktree *w = &core->worktree;
  if (number > 0 && (turn == NULL || turn->group == 0 || core_worktree(core, number) != NULL))
    return fold_bad(f, "that turn takes no worktree");
  if (number == 0 && w->made)
    return fold_bad(f, "the session has its worktree");
  if (turn != NULL)
    w = worktree_new(core, turn);
  worktree_keep(&w->branch, fold_tree(f, MEMBER_DATA), "branch");
  worktree_keep(&w->base, fold_tree(f, MEMBER_DATA), "base");
  w->asked = WORKTREE_MAKING;
  return w->branch != NULL || fold_bad(f, "it names no branch");
}

bool apply_workspace(const struct fold *f) {
  struct str event = fold_text(f, MEMBER_EVENT);
  long number = (long)fold_number(f, MEMBER_TURN);
  struct worktree *w = core_worktree(f->core, number);
  if (str_eq_c(event, "make"))
    return take_make(f, number);
  if (w == NULL)
    w = &f->core->worktree;
  if (str_eq_c(event, "made")) {
    const json_t *data = fold_tree(f, MEMBER_DATA);
    if (w->asked != WORKTREE_MAKING)
      return fold_bad(f, "nobody asked for it");
    worktree_keep(&w->branch, data, "branch");
    worktree_keep(&w->base, data, "base");
    worktree_keep(&w->path, data, "path");
    worktree_keep(&w->folder, data, "folder");
    w->asked = WORKTREE_IDLE;
    w->made =
        w->branch && w->base && w->path && w->folder && w->path[0] == '/' && w->folder[0] == '/';
    return w->made || fold_bad(f, "it does not say where the worktree is");
  }
  if (str_eq_c(event, "committed")) {
    if (w->asked != WORKTREE_COMMITTING)
      return fold_bad(f, "nobody asked for it");
    w->asked = WORKTREE_IDLE;
    w->committed = w->committing;
    worktree_keep(&w->message, NULL, "");
    return true;
  }
  if (!str_eq_c(event, "commit"))
    return fold_bad(f, "its event is unknown");
  if (w->asked != WORKTREE_IDLE || number <= w->committed)
    return fold_bad(f, "there is nothing to commit");
  worktree_keep(&w->message, fold_tree(f, MEMBER_DATA), "message");
  w->committing = number;
  w->asked = WORKTREE_COMMITTING;
  return w->message != NULL || fold_bad(f, "it has no message");
}
