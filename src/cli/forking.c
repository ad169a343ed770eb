/* Runs a session that begins where another was. */
#include "cli/forking.h"

#include "base/file.h"
#include "cli/cli.h"
#include "cli/replies.h"
#include "host/backends.h"
#include "host/fork.h"
#include "host/paths.h"
#include "host/resume_options.h"

/* Holds everything that is gathered before the session begins. */
struct forking {
  struct fork fork;
  struct resume_options steer;
  struct replies replies;
  const char **env;
  json_t *body;
};

static bool fork_prepare(struct forking *k, const struct fork_wish *w, const struct config *user,
                         const struct provider_registry *registry, struct err *err) {
  const char *scenario = w->scenario;
  const json_t *instruction = json_object_get(k->body, "instruction");
  const char *cwd = cli_text(k->body, "cwd");
  bool (*read)(struct fork *, const struct store_ref *, const char *, struct err *) = fork_read;
  if (w->at_end)
    read = fork_read_end;
  if (!read(&k->fork, w->ref, w->from, err) ||
      !resume_options_parse_fork(&k->steer, k->body, registry, err))
    return false;
  if (scenario != NULL && !replies_take(&k->replies, scenario, k->steer.changed, err))
    return false;
  if (instruction != NULL &&
      !fork_set_instruction(
          &k->fork, (struct str){json_string_value(instruction), json_string_length(instruction)},
          user, registry, err))
    return false;
  const struct fork_place_wish place = {
      .more = w->more, .source = w->source, .base = w->base, .merge = w->merge};
  fork_wish_place(&k->fork, &place);
  if (!fork_settle(&k->fork, k->steer.changed, cwd, user, registry, k->replies.has, err) ||
      !replies_find(&k->replies, k->fork.config, err))
    return false;
  cwd = cli_text(k->fork.config, "cwd");
  return file_is_folder(cwd) ||
         err_set(err, ERR_NOT_FOUND, "the working directory %.300s is gone", cwd ? cwd : "");
}

static int fork_begin(struct forking *k, struct fork_wish *w, const char *where,
                      const struct config *user, const struct provider_registry *registry) {
  struct ui ui;
  struct err err = {0};
  if (!ui_init(&ui, w->command, w->mode, where, registry, &err))
    return cli_fail_with(STATUS_FAILED, w->command, &err);
  ui_notify(&ui, user->notify, NULL);
  struct session_params params = {.setup = {.cwd = cli_text(k->fork.config, "cwd"),
                                            .pass_env = k->env,
                                            .scenario = replies_scenario(&k->replies)}};
  fork_params(&k->fork, &params);
  ui.solo.session = host_start(&ui.solo.host, &params, &ui.watcher, &ui, &err);
  if (ui.solo.session == NULL) {
    (void)cli_fail(w->command, &err);
    ui_drop(&ui);
    return STATUS_FAILED;
  }
  if (w->mode == UI_LINES) {
    const struct core *core = &k->fork.core;
    struct str name = core->workflow->movements[core->next].name;
    buf_auto_t text = {0};
    buf_safe(&text, name, false);
    fprintf(
        stderr,
        "segue %s: starts with %s, after record %llu of %s; files and agents' conversations are "
        "as they are now, not as they were then\n",
        w->command, buf_c(&text), (unsigned long long)core->seq, core->session);
  }
  (void)store_ref_named(session_log_name(ui.solo.session), &w->made);
  paths_note_last(session_log_name(ui.solo.session),
                  json_string_value(json_object_get(k->fork.config, "cwd")));
  return ui_wait(&ui);
}

int forking_run(struct fork_wish *w) {
  struct forking k = {.body = w->body};
  AUTO(config_deinit) struct config user = {0};
  struct provider_registry *registry = NULL;
  struct err err = {0};
  struct store store;
  int status;
  w->made = (struct store_ref){0};
  store_of(w->ref, &store);
  if (config_load(&user, &err) && (registry = backends_new(&user, &err)) != NULL &&
      fork_prepare(&k, w, &user, registry, &err)) {
    backends_warn(registry);
    k.env = user.env;
    status = fork_begin(&k, w, store.where, &user, registry);
  } else {
    status = cli_fail(w->command, &err);
  }
  replies_deinit(&k.replies);
  resume_options_deinit(&k.steer);
  fork_deinit(&k.fork);
  registry_free(registry);
  return status;
}
