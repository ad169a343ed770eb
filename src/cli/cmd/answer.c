/* segue answer, approve, reject: answers what a session is waiting for. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/session_post.h"
#include "host/backends.h"
#include "host/resume_options.h"
#include "host/single_session.h"
#include "store/summary.h"

#include <string.h>

/* --- answering --- */

/* Gives an answer from the command line to the daemon that keeps the session or, without one,
 * writes it to the session's log. */

/* All three have these options. */
#define REPLYING_OPTIONS                                                                           \
  {"name", 0, "NAME", "who is answering, shown as says NAME (default: your user name)", false},    \
      {"question", 0, "N", "answer only if this is the question: its record (from inbox --json)",  \
       false},                                                                                     \
      {"resume", 'r', NULL, "continue it here if no daemon does", false},                          \
      {"yes", 'y', NULL, "do not ask whether another folder's session is meant", false},           \
      {"json", 0, NULL, "print the session, or the error, as one line of JSON", false},            \
      {"logs", 'l', "DIR", "the session's log folder", false},                                     \
      {"store", 0, "URL", "use this shared store instead: postgres://HOST/DATABASE", false}, {     \
    "socket", 'S', "PATH", "the daemon's control socket", false                                    \
  }

/* --- on the log itself --- */

static void replying_on_record(void *ctx, const struct record *record, struct str line) {
  (void)line;
  if (record->type == RECORD_ANSWER)
    single_session_finished(ctx);
}

static void replying_on_finished(void *ctx, struct session *s) {
  (void)s;
  single_session_finished(ctx);
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
  struct single_session solo;
  uint64_t question;
  store_of(ref, &store);
  if (!single_session_init(&solo, store.where, registry, err))
    return false;
  struct session *s = host_open(&solo.host, ref, &watcher, &solo, err);
  solo.session = s;
  bool ok = s != NULL && host_reply(s, answer, &question, err);
  if (!ok && err->code == ERR_INVALID) /* like the daemon's 409 */
    err->code = ERR_IO;
  if (ok)
    (void)single_session_run(&solo, NULL, NULL);
  const struct err *broken = ok ? session_broken(s) : NULL;
  if (broken != NULL) {
    *err = *broken;
    ok = false;
  }
  single_session_deinit(&solo);
  return ok;
}

static bool reply_here(const struct store_ref *ref, const char *action, const json_t *body,
                       struct err *err) {
  AUTO(config_deinit) struct config user = {0};
  AUTO(parsed_answer_deinit) struct parsed_answer said = {0};
  struct provider_registry *registry = NULL;
  enum answer_says says = SAYS_TEXT;
  if (strcmp(action, "answer") != 0)
    says = strcmp(action, "approve") == 0 ? SAYS_APPROVE : SAYS_REJECT;
  bool ok = parsed_answer_parse(&said, body, says, err) && config_load(&user, err) &&
            (registry = backends_new(&user, err)) != NULL &&
            reply_in_log(ref, &said.core, registry, err);
  registry_free(registry);
  return ok;
}

/* --- to the daemon --- */

/* Sends the reply to the daemon. Returns false with ERR_NOT_FOUND if there is none or it does not
 * know the session. */
static bool reply_there(const struct cli_args *args, const char *id, const char *action,
                        const json_t *body, json_t **session, struct err *err) {
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  bool ok = session_post(cli_value(args, "socket"), id, action, body, &reply, err);
  *session = ok ? json_incref(reply.value) : NULL;
  return ok;
}

/* --- both --- */

/* Tells what came of the reply, or resumes the session if --resume is given. `there` is the session
 * as the daemon gave it, or NULL. */
static int replying_tell(const struct cli_args *args, const char *action,
                         const struct store_ref *ref, const json_t *there) {
  static const char *const done[] = {"answered", "approved", "rejected"};
  const char *word = done[0];
  AUTO(summary_deinit) struct summary b = {0};
  struct err ignored;
  bool known = there == NULL && summary_read(&b, ref, &ignored);
  bool waits_for_daemon = there != NULL || (known && b.submitted);
  int status = STATUS_COMPLETE;
  if (strcmp(action, "answer") != 0)
    word = strcmp(action, "approve") == 0 ? done[1] : done[2];
  if (cli_flag(args, "resume") && there == NULL) {
    char *words[] = {(char *)"resume", (char *)ref->name, (char *)"--json", NULL};
    status = cli_run(&cmd_resume, cli_flag(args, "json") ? 3 : 2, words);
  } else if (cli_flag(args, "json")) {
    json_t *session = json_incref((json_t *)there);
    if (there == NULL)
      session = summary_json(&b, b.session, ref->name, summary_status(&b), b.message, 0);
    json_io_put(session);
  } else {
    const char *id = cli_text(there, "id");
    cli_say(stdout, "%s  %s\n", word, id ? id : b.session);
    if (!waits_for_daemon) {
      char log_id[STORE_ID_BYTES];
      cli_say(stdout, "  continue with: segue resume %s\n", resolve_id_word_for(ref->name, log_id));
    } else if (there == NULL) {
      printf("  it continues when its daemon runs\n");
    }
  }
  return status;
}

/* Sends an answer. action: answer, approve or reject; body: as in its request. Prints the result
 * and returns the exit status. */
static int replying_run(const struct cli_args *args, const char *action, const json_t *body) {
  const char *socket = cli_value(args, "socket");
  char id[STORE_ID_BYTES] = "";
  struct store_ref ref;
  struct err err = {0}, none = {0};
  json_auto_t *session = NULL;
  cli_errors_as_json(cli_flag(args, "json"));
  bool found = resume_options_by_person(action, args->words[0], &err) &&
               resolve_id_session(args->words[0], cli_value(args, "logs"), socket, &ref, &err) &&
               resolve_id_sure(args, &ref, &err);
  if (found)
    store_ref_id(&ref, id);
  bool there = found && id[0] && reply_there(args, id, action, body, &session, &none);
  bool asks_here = found && !there && (id[0] == '\0' || none.code == ERR_NOT_FOUND) && !socket;
  if (found && !there && !asks_here)
    err = none;
  bool ok = there || (asks_here && reply_here(&ref, action, body, &err));
  return ok ? replying_tell(args, action, &ref, session) : cli_fail(action, &err);
}

/* --- the command --- */

static const struct cli_option answer_options[] = {
    {"choice", 'c', "N", "answer with the N-th choice instead of TEXT", false},
    {"file", 'f', "FILE",
     "answer with the text in this file (- for standard input) instead of TEXT", false},
    REPLYING_OPTIONS,
    {0},
};

static const struct cli_option verdict_options[] = {
    {"reason", 0, "TEXT", "the reason; if a movement is rejected, this is its answer", false},
    REPLYING_OPTIONS,
    {0},
};

/* Puts the members that all three commands have. */
static bool answer_common(const struct cli_args *args, const char *movement, json_t *body,
                          struct err *err) {
  if (movement != NULL && !cli_is_utf8("MOVEMENT", movement, err))
    return false;
  if (movement != NULL)
    json_object_set_new(body, "movement", json_string(movement));
  return body_text(args, body, "name", err) && body_number(args, body, "question", "question", err);
}

static bool answer_file(const char *path, json_t *body, struct err *err) {
  buf_auto_t text = {0};
  bool ok = json_io_read(path, LIMIT_ANSWER_BYTES, &text, err);
  if (ok && text.n > 0 && text.p[text.n - 1] == '\n')
    text.n--;
  json_t *value = ok ? json_stringn(buf_c(&text), text.n) : NULL;
  if (ok && value == NULL)
    ok = err_set(err, ERR_USAGE, "--file %.200s is not UTF-8", path);
  if (ok)
    json_object_set_new(body, "text", value);
  return ok;
}

/* Reads ID [MOVEMENT] TEXT, without TEXT where a flag brings it. */
static bool answer_body(const struct cli_args *args, json_t *body, struct err *err) {
  const char *file = cli_value(args, "file"), *choice = cli_value(args, "choice");
  bool flagged = file != NULL || choice != NULL;
  size_t texts = flagged ? 0 : 1;
  const char *movement = args->word_count > 1 + texts ? args->words[1] : NULL;
  if (file != NULL && choice != NULL)
    return err_set(err, ERR_USAGE, "give one of TEXT, --choice and --file");
  if (args->word_count < 1 + texts)
    return err_set(err, ERR_USAGE, "what is the answer? give TEXT, --choice N or --file FILE");
  if (args->word_count > 2 + texts)
    return err_set(err, ERR_USAGE, "too many words: put a text of several words in quotes");
  if (!answer_common(args, movement, body, err) ||
      !body_number(args, body, "choice", "choice", err))
    return false;
  if (file != NULL)
    return answer_file(file, body, err);
  const char *text = flagged ? NULL : args->words[args->word_count - 1];
  if (text != NULL && !cli_is_utf8("TEXT", text, err))
    return false;
  if (text != NULL)
    json_object_set_new(body, "text", json_string(text));
  return true;
}

/* Runs answer, approve and reject. */
static int said_run(const struct cli_args *args) {
  struct err err = {0};
  const char *command = args->command->name;
  const char *movement = args->word_count > 1 ? args->words[1] : NULL;
  json_auto_t *body = json_object();
  bool ok;
  if (args->command == &cmd_answer)
    ok = answer_body(args, body, &err);
  else
    ok = answer_common(args, movement, body, &err) && body_text(args, body, "reason", &err);
  return ok ? replying_run(args, command, body) : cli_fail(command, &err);
}

/* Returns true if the session stopped because a movement changed a protected file. That is not a
 * question: resuming it accepts the change. */
static bool stopped_protected(const struct cli_args *args, struct store_ref *ref, bool *submitted) {
  AUTO(summary_deinit) struct summary b = {0};
  struct err ignored;
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), cli_value(args, "socket"), ref,
                          &ignored) ||
      !summary_read(&b, ref, &ignored))
    return false;
  bool is = summary_is_stopped(&b) && strcmp(b.stop_reason, "protected") == 0;
  *submitted = b.submitted;
  return is;
}

static int approve_run(const struct cli_args *args) {
  struct store_ref ref;
  bool submitted;
  if (args->word_count == 1 && stopped_protected(args, &ref, &submitted)) {
    const char *socket = cli_value(args, "socket");
    char *words[8] = {(char *)"resume", ref.name};
    int n = 2;
    struct err err = {0};
    if (!resolve_id_sure(args, &ref, &err))
      return cli_fail("approve", &err);
    if (submitted && !cli_flag(args, "resume"))
      words[n++] = (char *)"--daemon";
    if (submitted && !cli_flag(args, "resume") && socket != NULL) {
      words[n++] = (char *)"--socket";
      words[n++] = (char *)socket;
    }
    if (cli_flag(args, "json"))
      words[n++] = (char *)"--json";
    return cli_run(&cmd_resume, n, words);
  }
  return said_run(args);
}

const struct cli_command cmd_answer = {
    .name = "answer",
    .arguments = "ID [MOVEMENT] TEXT|--choice N|--file FILE",
    .words = {1, 3},
    .summary = "answer a session's question",
    .help = "ID is an id, a unique prefix of one, or last; MOVEMENT says which question you "
            "answer where several are open. segue inbox lists them. The answer, with who gave it "
            "and when, is in the session's log before this command returns. A daemon then "
            "continues the session; without one, run segue resume, or pass --resume here. If two "
            "people answer, the second is told who came first. A program that a session runs is "
            "refused.\n"
            "Exit: 0 answered, 1 already answered, or nothing is asked or can be answered, 2 the "
            "answer does not fit the question, or there is no such session.",
    .options = answer_options,
    .run = said_run,
};

const struct cli_command cmd_approve = {
    .name = "approve",
    .arguments = "ID [MOVEMENT] [--reason TEXT]",
    .words = {1, 2},
    .summary = "let a session run what is waiting for approval",
    .help = "Works like segue answer, for a movement with approve; segue inbox shows what would "
            "run. It also resumes a session that stopped because a movement changed protected "
            "files.",
    .options = verdict_options,
    .run = approve_run,
};

const struct cli_command cmd_reject = {
    .name = "reject",
    .arguments = "ID [MOVEMENT] [--reason TEXT]",
    .words = {1, 2},
    .summary = "refuse what is waiting for approval",
    .help = "Works like segue approve, but the movement does not run: the session continues where "
            "its on_reject leads, by default to ABORT.",
    .options = verdict_options,
    .run = said_run,
};
