/* segue answer, approve, reject: answers what a session is waiting for. segue steer: says something
 * to one that works. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/session_post.h"
#include "core/state.h"
#include "format/json_object.h"
#include "host/backends.h"
#include "host/resume_options.h"
#include "host/single_session.h"
#include "os/clock.h"
#include "store/reader.h"
#include "store/summary.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- answering --- */

/* Gives an answer from the command line to the daemon that keeps the session or, without one,
 * writes it to the session's log. */

/* --- on the log itself --- */

static void replying_on_record(void *ctx, const struct record *record, struct str line) {
  (void)line;
  if (record->type == RECORD_ANSWER || record->type == RECORD_STEER)
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

/* Opens the log, writes the answer and lets go of it. *said: what was said, as the daemon tells it;
 * NULL: it is an answer. */
static bool reply_in_log(const struct store_ref *ref, struct core_answer *answer,
                         const struct provider_registry *registry, json_t **said, struct err *err) {
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
  if (ok && answer->says == SAYS_STEER) {
    long will = core_steer_will(session_core(s));
    *said = json_pack("{ss sI so*}", "session", session_core(s)->session, "said",
                      (json_int_t)question, "next", will > 0 ? json_integer(will) : NULL);
  }
  single_session_deinit(&solo);
  return ok;
}

static bool reply_here(const struct store_ref *ref, const char *action, const json_t *body,
                       json_t **told, struct err *err) {
  AUTO(config_deinit) struct config user = {0};
  AUTO(parsed_answer_deinit) struct parsed_answer said = {0};
  struct provider_registry *registry = NULL;
  enum answer_says says = SAYS_TEXT;
  if (strcmp(action, "steer") == 0)
    says = SAYS_STEER;
  else if (strcmp(action, "answer") != 0)
    says = strcmp(action, "approve") == 0 ? SAYS_APPROVE : SAYS_REJECT;
  bool ok = parsed_answer_parse(&said, body, says, err) && config_load(&user, err) &&
            (registry = backends_new(&user, err)) != NULL &&
            reply_in_log(ref, &said.core, registry, told, err);
  registry_free(registry);
  return ok;
}

/* Keeps it in a shared store for the worker that has the session. */
static bool say_elsewhere(const struct store_ref *ref, const json_t *body, json_t **told,
                          struct err *err) {
  AUTO(parsed_answer_deinit) struct parsed_answer said = {0};
  if (!parsed_answer_parse(&said, body, SAYS_STEER, err))
    return false;
  json_auto_t *what =
      json_pack("{sO sO}", "text", json_object_get(said.body, "text"), "by", said.by);
  bool ok = worker_say(ref, what, err);
  if (ok)
    *told = json_pack("{ss}", "session", ref->name);
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

/* --- what was said while a call runs --- */

/* Returns whether the record says that the call has read it; *over: that it will not. */
static bool says_read(struct str line, json_int_t said, json_int_t call, bool *over) {
  json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  struct str type = json_view_at(record, "type");
  bool ends = str_eq_c(type, "call_end") && json_int_at(record, "call") == call;
  *over |=
      json_int_at(record, "seq") > said && (ends || str_among(type, "session_stop session_end"));
  return str_eq_c(type, "call_event") &&
         json_int_at(json_object_get(record, "data"), "said") == said;
}

/* Waits until the call has read it; false: it ended before, or has yet to read it. */
static bool wait_until_read(const struct store_ref *ref, json_int_t said, json_int_t call,
                            bool *over) {
  struct log_reader r;
  struct str line;
  struct err ignored;
  const struct timespec pause = {.tv_nsec = LIMIT_STEER_POLL_MS * 1000000};
  uint64_t until_ms = clock_mono_ms() + LIMIT_STEER_WAIT_MS;
  bool read = false;
  if (!reader_open(&r, ref, &ignored))
    return false;
  do {
    while (!read && !*over && reader_next(&r, &line) && r.whole)
      read = says_read(line, said, call, over);
    if (!read && !*over)
      (void)nanosleep(&pause, NULL);
  } while (!read && !*over && clock_mono_ms() < until_ms && reader_again(&r));
  reader_close(&r);
  return read;
}

static int print_said(const struct cli_args *args, const struct store_ref *ref, json_t *told) {
  json_int_t call = json_int_at(told, "call"), next = json_int_at(told, "next");
  bool over = false;
  bool read = call > 0 && !cli_flag(args, "no-wait") &&
              wait_until_read(ref, json_int_at(told, "said"), call, &over);
  if (call > 0)
    json_object_set_new(told, "reached", json_boolean(read));
  if (cli_flag(args, "json"))
    json_io_print(told, JSON_IO_COMPACT);
  else if (json_object_get(told, "said") == NULL)
    printf("its worker will tell it; segue show says when that was read\n");
  else if (read)
    printf("reached call %" JSON_INTEGER_FORMAT "\n", call);
  else if (call > 0 && !over)
    printf("call %" JSON_INTEGER_FORMAT " was told and has not read it yet; if it ends before, the "
           "next call of work will have it\n",
           call);
  else if (next > 0)
    printf("call %" JSON_INTEGER_FORMAT " will have it\n", next);
  else
    printf("the next call of work will have it\n");
  return STATUS_COMPLETE;
}

/* Sends an answer. action: answer, approve, reject or steer; body: as in its request. Prints the
 * result and returns the exit status. */
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
  bool says = strcmp(action, "steer") == 0;
  bool ok = there || (asks_here && reply_here(&ref, action, body, &session, &err));
  if (!ok && says && asks_here && err.code == ERR_LOCKED)
    ok = say_elsewhere(&ref, body, &session, &none);
  if (!ok && says && asks_here && err.code == ERR_LOCKED)
    err_set(&err, ERR_IO,
            "it runs in another program (segue run), and cannot be told anything there: stop it "
            "with Ctrl-C, steer it, and resume it. A daemon's sessions (segue submit) can be told "
            "while they run");
  if (ok && says)
    return print_said(args, &ref, session);
  return ok ? replying_tell(args, action, &ref, session) : cli_fail(action, &err);
}

/* --- the command --- */

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

static int steer_run(const struct cli_args *args) {
  struct err err = {0};
  const char *file = cli_value(args, "file");
  const char *text = args->word_count > 1 ? args->words[1] : NULL;
  json_auto_t *body = json_object();
  if (text == NULL && file == NULL && !isatty(STDIN_FILENO))
    file = "-";
  bool ok = (text == NULL) != (file == NULL) ||
            err_set(&err, ERR_USAGE, "what do you want to say? give one of TEXT and --file FILE");
  ok = ok && body_text(args, body, "name", &err);
  if (ok && text == NULL)
    ok = answer_file(file, body, &err);
  else if (ok)
    ok = cli_is_utf8("TEXT", text, &err) &&
         json_object_set_new(body, "text", json_string(text)) == 0;
  return ok ? replying_run(args, "steer", body) : cli_fail("steer", &err);
}

/* Returns true if the session stopped because a movement changed a protected file, or for hidden
 * tests. That is not a question: resuming it accepts what it is. */
static bool stopped_to_accept(const struct cli_args *args, struct store_ref *ref, bool *submitted) {
  AUTO(summary_deinit) struct summary b = {0};
  struct err ignored;
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), cli_value(args, "socket"), ref,
                          &ignored) ||
      !summary_read(&b, ref, &ignored))
    return false;
  bool is = summary_is_stopped(&b) && str_among(str_from(b.stop_reason), SESSION_STOPS_TO_ACCEPT);
  *submitted = b.submitted;
  return is;
}

static int approve_run(const struct cli_args *args) {
  char id[STORE_ID_BYTES];
  struct store_ref ref;
  bool submitted;
  if (args->word_count == 1 && stopped_to_accept(args, &ref, &submitted)) {
    const char *socket = cli_value(args, "socket");
    char *words[8] = {(char *)"resume", ref.name};
    int n = 2;
    struct err err = {0};
    if (!resolve_id_sure(args, &ref, &err))
      return cli_fail("approve", &err);
    if (submitted && !cli_flag(args, "resume")) {
      store_ref_id(&ref, id); /* a daemon knows no files */
      words[1] = id;
      words[n++] = (char *)"--daemon";
    }
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

const struct cli_command cmd_answer = {COMMAND_ANSWER, .run = said_run};

const struct cli_command cmd_steer = {COMMAND_STEER, .run = steer_run};

const struct cli_command cmd_approve = {COMMAND_APPROVE, .run = approve_run};

const struct cli_command cmd_reject = {COMMAND_REJECT, .run = said_run};
