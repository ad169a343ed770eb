/* segue cancel: ends sessions of the daemon, or of a shared store, for good. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/session_post.h"
#include "cli/session_ui.h"
#include "host/backends.h"
#include "os/clock.h"
#include "store/summary.h"
#include "store/worker.h"

#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 50 };

/* --- of a shared store --- */

/* Cancels a session that nobody runs: takes it, writes the end and lets go. */
static int cancel_here(const struct store_ref *ref, struct err *err) {
  AUTO(config_deinit) struct config user = {0};
  struct store store;
  struct ui ui;
  int status = STATUS_FAILED;
  store_of(ref, &store);
  struct provider_registry *registry = config_load(&user, err) ? backends_new(&user, err) : NULL;
  if (registry != NULL && ui_init(&ui, "cancel", UI_QUIET, store.where, registry, err)) {
    ui.solo.session = host_open(&ui.solo.host, ref, &ui.watcher, &ui, err);
    if (ui.solo.session == NULL) {
      ui_drop(&ui);
    } else {
      host_cancel(ui.solo.session, "cancelled by request");
      status = ui_wait(&ui);
    }
  }
  registry_free(registry);
  return status;
}

static bool is_cancelled(const struct store_ref *ref) {
  AUTO(summary_deinit) struct summary b = {0};
  struct err ignored;
  if (!summary_read(&b, ref, &ignored))
    return false;
  return summary_is_over(&b);
}

static bool cancel_shared(const struct store_ref *ref, struct err *err) {
  char state[16];
  if (!worker_ask(ref, "cancel", state, err))
    return false;
  if (strcmp(state, "ended") == 0 || strcmp(state, "gone") == 0)
    return err_set(err, ERR_INVALID, "it has ended");
  /* Waits for the session's owner to write the end; if the owner dies it is up to us. Returns false
   * if it did not happen in time. */
  uint64_t until = clock_mono_ms() + LIMIT_STORE_ANSWER_MS;
  while (!is_cancelled(ref)) {
    if (!store_is_owned(ref) && !is_cancelled(ref))
      return cancel_here(ref, err) == STATUS_CANCELLED;
    if (clock_mono_ms() >= until)
      return err_set(err, ERR_LOCKED, "asked; its worker has not answered yet");
    (void)usleep(LOOK_MS * 1000);
  }
  return true;
}

static int cancel_in_store(const struct cli_args *args, const char *word) {
  char id[STORE_ID_BYTES];
  struct store_ref ref;
  struct err err = {0};
  if (!resolve_id_session(word, cli_store(args), NULL, &ref, &err) ||
      !resolve_id_sure(args, &ref, &err))
    return cli_fail("cancel", &err);
  store_ref_id(&ref, id);
  if (!cancel_shared(&ref, &err)) {
    int status = cli_fail("cancel", &err);
    return err.code == ERR_INVALID ? STATUS_FAILED : status;
  }
  if (cli_flag(args, "json"))
    printf("{\"id\":\"%s\",\"status\":\"cancelled\"}\n", id);
  else
    printf("cancelled  %s\n", id);
  return STATUS_COMPLETE;
}

/* --- of the daemon --- */

static int cancel(const struct cli_args *args, const char *word) {
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  char id[STORE_ID_BYTES] = "";
  struct store_ref ref;
  struct err err = {0};
  int status = STATUS_COMPLETE;
  const char *socket = cli_value(args, "socket");
  if (!resolve_id_session(word, NULL, socket, &ref, &err) || !resolve_id_sure(args, &ref, &err))
    return cli_fail("cancel", &err);
  store_ref_id(&ref, id); /* that one is meant, whatever is the last one meanwhile */
  if (!session_post(socket, id[0] ? id : word, "cancel", NULL, &reply, &err)) {
    status = cli_fail("cancel", &err);
  } else if (cli_flag(args, "json")) {
    json_io_print(reply.value, JSON_IO_COMPACT);
  } else {
    cli_say(stdout, "cancelled  %s\n", cli_word(reply.value, "id"));
  }
  return status;
}

static int cancel_run(const struct cli_args *args) {
  int status, worst = STATUS_COMPLETE;
  cli_errors_as_json(cli_flag(args, "json"));
  for (size_t i = 0; i < args->word_count; i++) {
    if (cli_store(args) != NULL && cli_value(args, "socket") == NULL)
      status = cancel_in_store(args, args->words[i]);
    else
      status = cancel(args, args->words[i]);
    worst = status != STATUS_COMPLETE ? status : worst;
  }
  return worst;
}

const struct cli_command cmd_cancel = {COMMAND_CANCEL, .run = cancel_run};
