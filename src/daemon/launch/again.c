/* Makes launches from another session: to resume it or to fork it. */
#include "daemon/launch/internal.h"

#include "base/log.h"

#include <string.h>

bool launch_parse_steer(struct launch *l, const json_t *body, struct err *err,
                        struct err_list *errors) {
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors};
  l->config = json_object();
  if (!resume_options_parse(&l->steer, body, l->generation->registry, err) ||
      !launch_take_scenario(&p))
    return false;
  if (l->scenario != NULL)
    resume_options_set_scenario(&l->steer, json_incref(json_object_get(l->config, "scenario")));
  return true;
}

bool launch_parse_answer(struct launch *l, const json_t *body, struct err *err,
                         struct err_list *errors) {
  (void)errors;
  return parsed_answer_parse(&l->said, body, SAYS_TEXT, err);
}

bool launch_parse_approve(struct launch *l, const json_t *body, struct err *err,
                          struct err_list *errors) {
  (void)errors;
  return parsed_answer_parse(&l->said, body, SAYS_APPROVE, err);
}

bool launch_parse_reject(struct launch *l, const json_t *body, struct err *err,
                         struct err_list *errors) {
  (void)errors;
  return parsed_answer_parse(&l->said, body, SAYS_REJECT, err);
}

/* Reads which other folder to work in, if the request names one. */
static const char *fork_cwd(const struct launch_body *p, bool *ok) {
  if (json_object_get(p->body, "cwd") == NULL)
    return NULL;
  *ok = launch_take_cwd(p);
  return json_string_value(json_object_get(p->l->config, "cwd"));
}

static bool fork_instruction(const struct launch_body *p) {
  const json_t *text = json_object_get(p->body, "instruction");
  const struct generation *now = p->l->generation;
  if (text == NULL)
    return true;
  if (!json_is_string(text))
    return err_set(p->err, ERR_INVALID, "instruction must be a text");
  return fork_set_instruction(&p->l->about->fork,
                              (struct str){json_string_value(text), json_string_length(text)},
                              &now->user, now->registry, p->err);
}

/* The launch takes its state from the fork, as a submitted session takes it from the body. */
static bool use_fork(struct launch *l, const char *cwd, struct err *err) {
  const struct generation *now = l->generation;
  struct fork *f = &l->about->fork;
  if (!fork_settle(f, l->steer.changed, cwd, &now->user, now->registry, false, err))
    return false;
  json_decref(l->config);
  l->config = json_incref(f->config);
  json_object_set_new(l->config, "interactive", json_false());
  json_object_set_new(l->config, "submitted", json_true());
  l->workflow = workflow_ref(f->workflow);
  l->workflow_path = f->workflow_path ? xstrdup(f->workflow_path) : NULL;
  l->facets = json_incref(f->facets);
  buf_str(&l->task, buf_view(&f->task.bytes));
  memcpy(l->task_blob, f->task.blob, sizeof l->task_blob);
  launch_use_config(l);
  return true;
}

bool launch_parse_fork(struct launch *l, const json_t *body, struct err *err,
                       struct err_list *errors) {
  struct launch_body p = {.l = l, .body = body, .err = err, .errors = errors};
  bool ok = true;
  const char *from = launch_text_of(&p, "from", &ok);
  l->config = json_object();
  if (ok && from == NULL)
    ok = err_set(err, ERR_INVALID, "from must say where to start: MOVEMENT, or MOVEMENT#N");
  ok = ok && resume_options_parse_fork(&l->steer, body, l->generation->registry, err) &&
       launch_take_scenario(&p);
  const char *cwd = ok ? fork_cwd(&p, &ok) : NULL;
  if (ok && l->scenario != NULL)
    resume_options_set_scenario(&l->steer, json_incref(json_object_get(l->config, "scenario")));
  return ok && fork_read(&l->about->fork, &l->about->log, from, err) && fork_instruction(&p) &&
         use_fork(l, cwd, err);
}
