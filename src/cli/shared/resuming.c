/* Lets a stopped session of a shared store go on, in whatever worker has a place.
 *
 * DESIGN. If nobody owns the session, this program takes it, writes that it goes on and lets go;
 * then the store has it in its queue. If it has an owner, which is just stopping it or no longer
 * answers, it is asked for by a word in its row: whoever takes it next does what is asked, even
 * when this program is long gone. */
#include "cli/shared/resuming.h"

#include "base/limits.h"
#include "base/log.h"
#include "cli/find.h"
#include "cli/json_io.h"
#include "cli/replies.h"
#include "host/backends.h"
#include "host/solo.h"
#include "host/steer.h"
#include "os/clock.h"
#include "store/brief.h"
#include "store/worker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 50 };

bool resuming_be(const struct cli_args *args, const struct config *user, struct err *err) {
  static const char *labels[LIMIT_STORE_LABEL_COUNT + 2];
  size_t count = 0;
  const char *folder, *word;
  json_t *label;
  for (size_t i = 0; (word = cli_values(args, "label", i)) != NULL; i++)
    if (count <= LIMIT_STORE_LABEL_COUNT)
      labels[count++] = word;
  json_object_foreach(user->shared_paths, folder, label) {
    if (count < LIMIT_STORE_LABEL_COUNT)
      labels[count++] = xstrdup(json_string_value(label)); /* for the program's life */
  }
  labels[count] = NULL;
  const struct worker_options me = {.lease_ms = LIMIT_STORE_LEASE_MS, .labels = labels};
  return worker_be(&me, err);
}

struct resuming {
  const struct config *user;
  const struct provider_registry *registry;
  struct steer steer;
  struct replies replies;
};

static void resuming_on_record(void *ctx, const struct record *record, struct str line) {
  (void)line;
  if (record->type == RECORD_SESSION_RESUME)
    solo_finished(ctx);
}

static void resuming_on_finished(void *ctx, struct session *s) {
  (void)s;
  solo_finished(ctx);
}

static const struct watcher watcher = {.record = resuming_on_record,
                                       .finished = resuming_on_finished};

static const char CRASHED[] = "its worker died: resume it first, as it is";

/* Checks whether anything keeps the session from being continued like this, in the daemon's
 * words. */
static bool resuming_check(struct resuming *r, const struct core *core, struct err *err) {
  bool has_scenario = r->replies.has || json_object_get(core->config, "scenario") != NULL;
  if (core->status == SESSION_ENDED)
    return err_set(err, ERR_IO, "it has ended already: %s", session_outcome_name(core->outcome));
  if (!json_is_true(json_object_get(core->config, "submitted")))
    return err_set(err, ERR_IO, "it was started by segue run: segue resume continues it");
  if (core->status != SESSION_STOPPED)
    return !steer_says(&r->steer) || err_set(err, ERR_IO, CRASHED);
  return steer_settle(&r->steer, core, r->user, r->registry, has_scenario, err);
}

/* Takes the session, writes the record and lets go. Fails with ERR_LOCKED if it has an owner. */
static bool resuming_write(struct resuming *r, const struct store_ref *ref, struct err *err) {
  struct store store;
  struct solo solo;
  store_of(ref, &store);
  if (!solo_init(&solo, store.where, r->registry, err))
    return false;
  solo.store.lock_wait_ms = 0;
  solo.session = host_open(&solo.host, ref, &watcher, &solo, err);
  bool ok = solo.session != NULL && resuming_check(r, session_core(solo.session), err);
  if (ok && session_core(solo.session)->status == SESSION_STOPPED) {
    host_accept(solo.session, "user", &r->steer.core);
    (void)solo_run(&solo, NULL, NULL);
    if (session_broken(solo.session) != NULL)
      ok = err_set(err, ERR_IO, "%s", session_broken(solo.session)->text);
  }
  solo_deinit(&solo);
  return ok;
}

static bool resuming_goes_on(const struct store_ref *ref) {
  struct brief b;
  struct err ignored;
  if (!brief_read(&b, ref, &ignored))
    return false;
  bool goes = brief_goes_on(&b);
  brief_deinit(&b);
  return goes;
}

/* Asks for the resume in the session's row, unless something is said with it: a verdict or a
 * setting has no place there. */
static bool resuming_ask(const struct resuming *r, const struct store_ref *ref, bool *asked,
                         struct err *err) {
  char state[16];
  if (*asked || steer_says(&r->steer))
    return true;
  if (!worker_ask(ref, "resume", state, err))
    return false;
  *asked = true;
  return strcmp(state, "going") != 0 ||
         err_set(err, ERR_IO, "it is running: there is nothing to resume");
}

static bool resuming_do(struct resuming *r, const struct store_ref *ref, struct err *err) {
  uint64_t until = clock_mono_ms() + LIMIT_STORE_ANSWER_MS;
  bool asked = false;
  while (!resuming_write(r, ref, err)) {
    if (err->code != ERR_LOCKED || !resuming_ask(r, ref, &asked, err))
      return false;
    if (asked && resuming_goes_on(ref))
      return true;
    if (clock_mono_ms() >= until && asked)
      return err_set(err, ERR_LOCKED, "asked; its worker has not answered yet");
    if (clock_mono_ms() >= until)
      return false;
    (void)usleep(LOOK_MS * 1000);
  }
  return true;
}

static bool resuming_take(const struct cli_args *args, const json_t *body, char id[STORE_ID_BYTES],
                          struct err *err) {
  struct config user = {0};
  struct resuming r = {.user = &user};
  struct store_ref ref;
  struct provider_registry *registry = NULL;
  const char *scenario = cli_value(args, "scenario");
  bool ok = find_session(args->words[0], cli_value(args, "logs"), NULL, &ref, err) &&
            config_load(&user, err) && (registry = backends_new(&user, err)) != NULL;
  r.registry = registry;
  ok = ok && steer_parse(&r.steer, body, registry, err) &&
       (scenario == NULL || replies_take(&r.replies, scenario, r.steer.changed, err)) &&
       resuming_do(&r, &ref, err);
  if (ok)
    store_ref_id(&ref, id);
  replies_deinit(&r.replies);
  steer_deinit(&r.steer);
  registry_free(registry);
  config_deinit(&user);
  return ok;
}

int resuming_run(const struct cli_args *args, const json_t *body) {
  char id[STORE_ID_BYTES] = "";
  struct err err = {0};
  cli_errors_as_json(cli_flag(args, "json"));
  if (!resuming_take(args, body, id, &err))
    return cli_fail("resume", &err);
  if (cli_flag(args, "json"))
    printf("{\"id\":\"%s\",\"status\":\"queued\"}\n", id);
  else if (!cli_flag(args, "quiet"))
    puts(id);
  return STATUS_COMPLETE;
}
