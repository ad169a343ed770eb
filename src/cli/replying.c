/* Takes an answer from the command line to its session. */
#include "cli/replying.h"

#include "base/log.h"
#include "cli/find.h"
#include "cli/json_io.h"
#include "cli/session_post.h"
#include "host/backends.h"
#include "host/said.h"
#include "host/solo.h"
#include "store/brief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- on the log itself --- */

static void replying_on_record(void *ctx, const struct record *record, struct str line) {
  (void)line;
  if (record->type == RECORD_ANSWER)
    solo_finished(ctx);
}

static void replying_on_finished(void *ctx, struct session *s) {
  (void)s;
  solo_finished(ctx);
}

static void replying_on_trouble(void *ctx, const char *message) {
  (void)ctx;
  log_warn("%s", message);
}

static const struct watcher watcher = {
    .record = replying_on_record, .trouble = replying_on_trouble, .finished = replying_on_finished};

/* Opens the log, writes the answer and lets go of it. */
static bool reply_in_log(const struct store_ref *ref, struct core_answer *answer,
                         const struct provider_registry *registry, struct err *err) {
  struct store store;
  struct solo solo;
  uint64_t question;
  store_of(ref, &store);
  if (!solo_init(&solo, store.where, registry, err))
    return false;
  struct session *s = host_open(&solo.host, ref, &watcher, &solo, err);
  solo.session = s;
  bool ok = s != NULL && host_reply(s, answer, &question, err);
  if (!ok && err->code == ERR_INVALID) /* like the daemon's 409 */
    err->code = ERR_IO;
  if (ok)
    (void)solo_run(&solo, NULL, NULL);
  const struct err *broken = ok ? session_broken(s) : NULL;
  if (broken != NULL) {
    *err = *broken;
    ok = false;
  }
  solo_deinit(&solo);
  return ok;
}

static bool reply_here(const struct store_ref *ref, const char *action, const json_t *body,
                       struct err *err) {
  struct config user = {0};
  struct said said = {0};
  struct provider_registry *registry = NULL;
  enum answer_says says = SAYS_TEXT;
  if (strcmp(action, "answer") != 0)
    says = strcmp(action, "approve") == 0 ? SAYS_APPROVE : SAYS_REJECT;
  bool ok = said_parse(&said, body, says, err) && config_load(&user, err) &&
            (registry = backends_new(&user, err)) != NULL &&
            reply_in_log(ref, &said.core, registry, err);
  registry_free(registry);
  config_deinit(&user);
  said_deinit(&said);
  return ok;
}

/* --- to the daemon --- */

/* Sends the reply to the daemon. Returns false with ERR_NOT_FOUND if there is none or it does not
 * know the session. */
static bool reply_there(const struct cli_args *args, const char *id, const char *action,
                        const json_t *body, json_t **session, struct err *err) {
  struct client_reply reply = {0};
  bool ok = session_post(cli_value(args, "socket"), id, action, body, &reply, err);
  *session = ok ? json_incref(reply.value) : NULL;
  client_reply_deinit(&reply);
  return ok;
}

/* --- both --- */

static int resume_it(const struct cli_args *args, const char *log) {
  char *words[] = {(char *)"resume", (char *)log, (char *)"--json", NULL};
  return cmd_resume.run(cli_flag(args, "json") ? 3 : 2, words);
}

/* Tells what came of the reply, or resumes the session if --resume is given. `there` is the session
 * as the daemon gave it, or NULL. */
static int replying_tell(const struct cli_args *args, const char *action,
                         const struct store_ref *ref, const json_t *there) {
  static const char *const done[] = {"answered", "approved", "rejected"};
  const char *word = done[0];
  struct brief b = {0};
  struct err ignored;
  bool known = there == NULL && brief_read(&b, ref, &ignored);
  bool waits_for_daemon = there != NULL || (known && b.submitted);
  int status = STATUS_COMPLETE;
  if (strcmp(action, "answer") != 0)
    word = strcmp(action, "approve") == 0 ? done[1] : done[2];
  if (cli_flag(args, "resume") && there == NULL) {
    status = resume_it(args, ref->name);
  } else if (cli_flag(args, "json")) {
    json_t *session = json_incref((json_t *)there);
    if (there == NULL)
      session = brief_json(&b, b.session, ref->name, brief_status(&b), b.message, 0);
    json_io_print(session, JSON_IO_COMPACT);
    json_decref(session);
  } else {
    const char *id = json_string_value(json_object_get(there, "id"));
    printf("%s  ", word);
    cli_put_safe(stdout, id ? id : b.session);
    putchar('\n');
    if (!waits_for_daemon) {
      char log_id[STORE_ID_BYTES];
      printf("  continue with: segue resume ");
      cli_put_safe(stdout, find_word_for(ref->name, log_id));
      putchar('\n');
    } else if (there == NULL) {
      printf("  it continues when its daemon runs\n");
    }
  }
  brief_deinit(&b);
  return status;
}

int replying_run(const struct cli_args *args, const char *action, const json_t *body) {
  const char *socket = cli_value(args, "socket");
  char id[STORE_ID_BYTES] = "";
  struct store_ref ref;
  struct err err = {0}, none = {0};
  json_t *session = NULL;
  cli_errors_as_json(cli_flag(args, "json"));
  bool found = find_session(args->words[0], cli_value(args, "logs"), socket, &ref, &err);
  if (found)
    store_ref_id(&ref, id);
  bool there = found && id[0] && reply_there(args, id, action, body, &session, &none);
  bool asks_here = found && !there && (id[0] == '\0' || none.code == ERR_NOT_FOUND) && !socket;
  if (found && !there && !asks_here)
    err = none;
  bool ok = there || (asks_here && reply_here(&ref, action, body, &err));
  int status = ok ? replying_tell(args, action, &ref, session) : cli_fail(action, &err);
  json_decref(session);
  return status;
}
