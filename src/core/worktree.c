/* Decides when a worktree is made and when its work is committed. */
#include "core/worktree.h"

#include "base/utf8.h"
#include "core/step.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

enum { SUBJECT_BYTES = 72 };

/* --- settings --- */

const json_t *core_worktree_setting(const json_t *config, const char *name) {
  const json_t *own = json_object_get(json_at(config, "workspace"), name);
  return own ? own : json_object_get(json_at(config, "default_workspace"), name);
}

json_t *core_worktree_setup(const json_t *doc, const json_t *config) {
  json_t *set = json_object_get(doc, "setup");
  if (set == NULL)
    set = (json_t *)core_worktree_setting(config, "setup");
  return json_is_array(set) ? json_pack("{sO}", "run", set) : json_incref(set);
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
  const char *id = memmem(text.p, text.n, "{id}", strlen("{id}"));
  if (id != NULL)
    text.n = (size_t)(id - text.p);
  put_branch_of(text, wf, STR(""), out);
  return id == NULL;
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
  buf_auto_t branch = {0};
  struct record_draft d;
  struct str from = base ? json_view(base) : STR("HEAD");
  if (turn != NULL && core->worktree.branch != NULL)
    from = str_from(core->worktree.branch);
  put_branch_of(branch_template(core->workflow, core->config), core->workflow,
                str_from(core->session), &branch);
  if (turn != NULL) {
    buf_putc(&branch, '-');
    put_plain(&branch, core->workflow->movements[turn->movement].name);
    buf_printf(&branch, "-%ld", turn->id);
  }
  step_record(s, &d, RECORD_WORKSPACE);
  if (turn != NULL)
    record_put_number(&d, MEMBER_TURN, turn->id);
  worktree_ask(s, &d, "make",
               json_pack("{so so so*}", "branch", json_text(buf_view(&branch)), "base",
                         json_text(from), "setup",
                         core_worktree_setup(core->workflow->doc, core->config)),
               turn ? turn->id : 0);
}

static void ask_commit(struct step *s, long turn, size_t movement, bool at_end, long of) {
  buf_auto_t message = {0};
  struct record_draft d;
  put_commit_message(s->core, movement, at_end, turn, &message);
  step_record(s, &d, RECORD_WORKSPACE);
  record_put_number(&d, MEMBER_TURN, turn);
  worktree_ask(s, &d, "commit", json_pack("{so}", "message", json_text(buf_view(&message))), of);
}

/* Has the branch moved to where an agent's HEAD is. */
static bool ask_adopt(struct step *s, const struct worktree *w) {
  struct record_draft d;
  if (!w->strays)
    return false;
  step_record(s, &d, RECORD_WORKSPACE);
  if (w->turn > 0)
    record_put_number(&d, MEMBER_TURN, w->turn);
  worktree_ask(s, &d, "adopt", json_pack("{ss* ss*}", "commit", w->head, "branch", w->branch),
               w->turn);
  return true;
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
  if (ask_adopt(s, &core->worktree))
    return true;
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
  if (own->asked == WORKTREE_IDLE && !ask_adopt(s, own))
    ask_commit(s, turn->id, turn->movement, false, turn->id);
  return true;
}

void worktree_event(struct step *s) {
  const struct worktree *w = core_worktree(s->core, s->ev->call);
  struct turn *turn = s->ev->call > 0 ? core_turn(s->core, s->ev->call) : NULL;
  if (w == NULL || w->asked == WORKTREE_IDLE || (turn == NULL && s->ev->call > 0))
    return;
  if (s->ev->message != NULL && turn != NULL) {
    step_end_child(s, turn, ALL_ANY_ERROR, str_from(s->ev->message), CLASS_CRASHED);
  } else if (s->ev->message != NULL) {
    step_stop(s, "workspace", NULL, CLASS_NONE, str_from(s->ev->message), NULL);
  } else {
    struct record_draft d;
    static const char *const ends[] = {[WORKTREE_MAKING] = "made",
                                       [WORKTREE_COMMITTING] = "committed",
                                       [WORKTREE_ADOPTING] = "adopted"};
    long number = w->asked == WORKTREE_COMMITTING ? w->committing : w->turn;
    step_record(s, &d, RECORD_WORKSPACE);
    if (number > 0)
      record_put_number(&d, MEMBER_TURN, number);
    record_put_word(&d, MEMBER_EVENT, ends[w->asked]);
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
