/* segue answer, approve, reject: answers what a session is waiting for. */
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/replying.h"
#include "cli/session_post.h"
#include "store/brief.h"

#include <string.h>
#include <unistd.h>

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
  struct buf text = {0};
  bool ok;
  if (strcmp(path, "-") == 0)
    ok = file_read_fd(STDIN_FILENO, "standard input", LIMIT_ANSWER_BYTES, &text, err);
  else
    ok = file_read(path, LIMIT_ANSWER_BYTES, &text, err);
  if (ok && text.n > 0 && text.p[text.n - 1] == '\n')
    text.n--;
  json_t *value = ok ? json_stringn(buf_c(&text), text.n) : NULL;
  if (ok && value == NULL)
    ok = err_set(err, ERR_USAGE, "--file %.200s is not UTF-8", path);
  if (ok)
    json_object_set_new(body, "text", value);
  buf_deinit(&text);
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

static int answer_run(int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_answer, argc, argv, 1, 3, &args, &status))
    return status;
  json_t *body = json_object();
  bool ok = answer_body(&args, body, &err);
  status = ok ? replying_run(&args, "answer", body) : cli_fail("answer", &err);
  json_decref(body);
  return status;
}

static int verdict_run(const struct cli_command *command, int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  int status;
  if (!cli_parse(command, argc, argv, 1, 2, &args, &status))
    return status;
  json_t *body = json_object();
  const char *movement = args.word_count > 1 ? args.words[1] : NULL;
  bool ok = answer_common(&args, movement, body, &err) && body_text(&args, body, "reason", &err);
  status = ok ? replying_run(&args, command->name, body) : cli_fail(command->name, &err);
  json_decref(body);
  return status;
}

/* Returns true if the session stopped because a movement changed a protected file. That is not a
 * question: resuming it accepts the change. */
static bool stopped_protected(const struct cli_args *args, struct store_ref *ref, bool *submitted) {
  struct brief b;
  struct err ignored;
  if (!find_session(args->words[0], cli_value(args, "logs"), cli_value(args, "socket"), ref,
                    &ignored) ||
      !brief_read(&b, ref, &ignored))
    return false;
  bool is = brief_is_stopped(&b) && strcmp(b.stop_reason, "protected") == 0;
  *submitted = b.submitted;
  brief_deinit(&b);
  return is;
}

static int approve_protected(const struct cli_args *args, struct store_ref *ref, bool submitted) {
  const char *socket = cli_value(args, "socket");
  char *words[8] = {(char *)"resume", ref->name};
  int n = 2;
  if (submitted && !cli_flag(args, "resume"))
    words[n++] = (char *)"--daemon";
  if (submitted && !cli_flag(args, "resume") && socket != NULL) {
    words[n++] = (char *)"--socket";
    words[n++] = (char *)socket;
  }
  if (cli_flag(args, "json"))
    words[n++] = (char *)"--json";
  return cmd_resume.run(n, words);
}

static int approve_run(int argc, char **argv) {
  struct cli_args args;
  struct store_ref ref;
  bool submitted;
  int status;
  if (!cli_parse(&cmd_approve, argc, argv, 1, 2, &args, &status))
    return status;
  if (args.word_count == 1 && stopped_protected(&args, &ref, &submitted))
    return approve_protected(&args, &ref, submitted);
  return verdict_run(&cmd_approve, argc, argv);
}

static int reject_run(int argc, char **argv) {
  return verdict_run(&cmd_reject, argc, argv);
}

const struct cli_command cmd_answer = {
    .name = "answer",
    .arguments = "ID [MOVEMENT] TEXT|--choice N|--file FILE",
    .summary = "answer a session's question",
    .help = "ID is an id, a unique prefix of one, or last; MOVEMENT says which question you "
            "answer where several are open. segue inbox lists them. The answer, with who gave it "
            "and when, is in the session's log before this command returns. A daemon then "
            "continues the session; without one, run segue resume, or pass --resume here. If two "
            "people answer, the second is told who came first.\n"
            "Exit: 0 answered, 1 already answered, or nothing is asked or can be answered, 2 the "
            "answer does not fit the question, or there is no such session.",
    .options = answer_options,
    .run = answer_run,
};

const struct cli_command cmd_approve = {
    .name = "approve",
    .arguments = "ID [MOVEMENT] [--reason TEXT]",
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
    .summary = "refuse what is waiting for approval",
    .help = "Works like segue approve, but the movement does not run: the session continues where "
            "its on_reject leads, by default to ABORT.",
    .options = verdict_options,
    .run = reject_run,
};
