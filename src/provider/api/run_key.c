/* Brings the key of a call: at once from a variable or a file, later from a program. */
#include "provider/api/key.h"
#include "provider/api/run_internal.h"

#include <stddef.h>

static bool run_take_key(struct api_run *run) {
  const struct api_config *config = run->config;
  struct err err = {0};
  if (!api_key_read(config, &run->key, &err)) {
    run_fail(run, CLASS_AUTH, "%s", err.text);
    return false;
  }
  secrets_add(run->secrets, config->key_env ? config->key_env : config->name, buf_view(&run->key));
  return run_ask_first(run);
}

static void run_on_key(struct key_waiter *waiter, const struct err *err) {
  struct api_run *run = (struct api_run *)((char *)waiter - offsetof(struct api_run, waiter));
  bool known = err == NULL && key_command_known(run->api, run->config, &run->key);
  if (run->cancelled)
    run_fail(run, CLASS_CANCELLED, "cancelled");
  else if (!known)
    run_fail(run, CLASS_AUTH, "provider %s has no key: %s", run->config->name,
             err ? err->text : "its program printed no key");
  if (run->cancelled || !known || !run_take_key(run))
    run_finish(run);
}

static void ask_program(struct api_run *run) {
  run_set_state(run, RUN_STATE_KEY);
  run->waiter.done = run_on_key;
  key_command_ask(run->api, run->config, &run->waiter);
}

bool run_with_key(struct api_run *run) {
  if (run->config->key_command == NULL)
    return run_take_key(run);
  run->key_was_kept = key_command_known(run->api, run->config, &run->key);
  if (run->key_was_kept)
    return run_take_key(run);
  ask_program(run);
  return true;
}

bool run_ask_key_again(struct api_run *run) {
  if (!run->key_was_kept || run->cancelled)
    return false;
  run_note(run, "%.300s: key_command is asked for another key", run->result.message);
  run->result.class = CLASS_NONE;
  run->result.message[0] = '\0';
  run->key_was_kept = false;
  key_command_forget(run->api, run->config, buf_view(&run->key));
  api_key_wipe(&run->key);
  run_end_request(run);
  ask_program(run);
  return true;
}
