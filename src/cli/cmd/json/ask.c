/* segue ask: asks a model for a value that fits a schema: generate, extract, validate, correct. */
#include "base/file.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/ask_batch.h"
#include "cli/ask_stream.h"
#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "format/json_value.h"
#include "host/paths.h"
#include "structured/reask.h"
#include "workflow/schemas.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"schema", 'S', "FILE|NAME", "the value's JSON Schema, or the name of a built-in one", false},
    {"invariant", 'i', "EXPR",
     "what must hold beyond the schema, such as sum(items[].price) == total", true},
    {"invariants", 'I', "FILE",
     "a file that lists them: expressions, {command: [..]}, {ai: question}", false},
    {"max-reasks", 'n', "N", "how many corrections to ask for at most (default 2)", false},
    {"on-failure", 0, "error|sentinel",
     "what to do without a value: fail (default), or print a sentinel", false},
    {"example", 'e', NULL, "show an example of the schema's shape in the prompt", false},
    {"repair", 'r', NULL, "repair broken JSON before asking again", false},
    {"assert-format", 'f', NULL, "check format (email, date-time, uri, ...), not only note it",
     false},
    {"reask-provider", 0, "P", "backend for corrections (default: the one that answered)", false},
    {"reask-model", 0, "MODEL", "model for corrections", false},
    {"token-budget", 0, "N", "ask for no correction once all calls have used this many tokens",
     false},
    {"time-budget-ms", 0, "MS", "how long all calls together may take, in milliseconds", false},
    {"stream", 0, NULL, "print each item of a top-level array as it arrives", false},
    {"batch", 'b', "FILE|-", "ask each line {\"id\",\"prompt\",\"schema\"?} of this NDJSON", false},
    {"jobs", 'j', "N", "with --batch: how many to ask at once (default 4)", false},
    {"language", 0, "en|ja", "language of segue's own text around the prompt", false},
    {"schema-as", 0, "prompt|types|json",
     "how the schema is described to a backend without a schema mode (default prompt)", false},
    SETUP_OPTIONS,
    {"logs", 'l', "DIR", "keep session logs in this folder", false},
    {"json", 0, NULL, "print the whole result: value, attempts, checks, raw answers", false},
    {0},
};

/* --- the workflow --- */

struct ask_question { /* everything except the schema */
  json_t *structured; /* structured_output without its schema */
  const char *language;
  const char *schema_as; /* or NULL */
};

static json_t *schema_named(const char *word, struct err *err) {
  struct str text = str_from(word);
  if (str_starts(str_trim(text), "{"))
    return json_io_text("--schema", text, JSON_IO_SCHEMA, err);
  if (!preset_is_name(text))
    return json_io_file(word, JSON_IO_SCHEMA, err);
  json_t *schema = preset_schema(text);
  if (schema == NULL)
    (void)err_set(err, ERR_USAGE,
                  "there is no built-in schema \"%.80s\": use %s, or a path such as ./%.80s", word,
                  preset_names(), word);
  return schema;
}

static struct workflow *ask_workflow_of(void *ctx, json_t *schema, struct err *err) {
  const struct ask_question *q = ctx;
  json_t *structured = json_clone_top(q->structured);
  json_object_set(structured, "schema", schema);
  json_t *doc =
      json_pack("{ss ss ss* s[{ss ss sb so s{s[s]} s[{ss ss}]}]}", "name", "ask", "language",
                q->language, "schema_as", q->schema_as, "movements", "name", "ask", "instruction",
                "{task}", "bare_prompt", 1, "structured_output", structured, "judge", "stages",
                "phase1_tag", "rules", "condition", "answered", "next", "COMPLETE");
  struct workflow *workflow = workflow_build(doc, err);
  json_decref(doc);
  const char *place = "movements[0].structured_output.";
  size_t n = strlen(place);
  if (workflow == NULL && strncmp(err->text, place, n) == 0) /* the user wrote no such file */
    memmove(err->text, err->text + n, strlen(err->text) - n + 1);
  return workflow;
}

/* --- flags --- */

static bool number_flag(const struct cli_args *args, const char *flag, long min, long max,
                        const char *key, json_t *into, struct err *err) {
  const char *text = cli_value(args, flag);
  long value;
  if (text == NULL)
    return true;
  if (!str_to_long(str_from(text), &value) || value < min || value > max)
    return err_set(err, ERR_USAGE, "--%s must be a whole number from %ld to %ld", flag, min, max);
  json_object_set_new(into, key, json_integer(value));
  return true;
}

static bool read_invariants(const struct cli_args *args, json_t *into, struct err *err) {
  const char *file = cli_value(args, "invariants"), *text;
  json_t *list = file ? json_io_file(file, JSON_IO_SCHEMA, err) : json_array();
  if (list == NULL)
    return false;
  if (!json_is_array(list)) {
    json_decref(list);
    return err_set(err, ERR_USAGE, "%.200s is not a list of invariants", file);
  }
  for (size_t i = 0; (text = cli_values(args, "invariant", i)) != NULL; i++)
    json_array_append_new(list, json_io_string(text));
  if (json_array_size(list) > 0)
    json_object_set(into, "invariants", list);
  json_decref(list);
  return true;
}

static bool read_reask(const struct cli_args *args, const struct setup *setup, json_t *into,
                       struct err *err) {
  const char *provider = cli_value(args, "reask-provider"), *model = cli_value(args, "reask-model");
  if (provider == NULL && model == NULL)
    return true;
  json_t *reask = json_object();
  json_object_set_new(into, "reask", reask);
  if (provider != NULL) {
    const struct capability *cap =
        capability_find(registry_capabilities(setup->registry), str_from(provider));
    if (cap == NULL || !cap->can_judge)
      return err_set(err, ERR_USAGE, "--reask-provider %.80s: %s", provider,
                     cap ? "it cannot correct an answer" : "there is no such provider");
    json_object_set_new(reask, "provider", json_string(provider));
  }
  if (model != NULL && !cli_is_utf8("--reask-model", model, err))
    return false;
  if (model != NULL)
    json_object_set_new(reask, "model", json_string(model));
  return true;
}

static bool read_question(const struct cli_args *args, const struct setup *setup,
                          struct ask_question *q, struct err *err) {
  const char *on_failure = cli_value(args, "on-failure"), *language = cli_value(args, "language");
  q->language = language ? language : "en";
  if (strcmp(q->language, "en") != 0 && strcmp(q->language, "ja") != 0)
    return err_set(err, ERR_USAGE, "--language must be en or ja");
  q->schema_as = cli_value(args, "schema-as");
  enum describe_form form;
  if (q->schema_as && !describe_form_find(q->schema_as, &form))
    return err_set(err, ERR_USAGE, "--schema-as must be prompt, types or json");
  if (on_failure && strcmp(on_failure, "error") != 0 && strcmp(on_failure, "sentinel") != 0)
    return err_set(err, ERR_USAGE, "--on-failure must be error or sentinel");
  json_object_set_new(q->structured, "on_failure", json_string(on_failure ? on_failure : "error"));
  if (cli_flag(args, "example"))
    json_object_set_new(q->structured, "example", json_true());
  if (cli_flag(args, "repair"))
    json_object_set_new(q->structured, "repair", json_true());
  if (cli_flag(args, "assert-format"))
    json_object_set_new(q->structured, "assert_format", json_true());
  if (!number_flag(args, "max-reasks", 0, LIMIT_REASK_COUNT, "max_reasks", q->structured, err) ||
      !number_flag(args, "token-budget", 1, LIMIT_TOKEN_BUDGET, "token_budget", q->structured,
                   err) ||
      !number_flag(args, "time-budget-ms", 1, LIMIT_CALL_WALL_MS, "time_budget_ms", q->structured,
                   err))
    return false;
  if (json_integer_value(json_object_get(q->structured, "max_reasks")) > REASK_WARN_COUNT)
    fprintf(stderr, "segue ask: warning: what %d corrections did not fix, more of them rarely do\n",
            REASK_WARN_COUNT);
  return read_invariants(args, q->structured, err) && read_reask(args, setup, q->structured, err);
}

/* --- one question --- */

struct single {
  struct asking asking;
  struct workflow *workflow;
  struct str prompt;
  struct ask_stream *stream; /* or NULL */
  json_t *result;
  struct err err;
  char path[PATHS_BYTES]; /* where its log is */
};

static void ask_on_room(void *ctx) {
  struct single *s = ctx;
  if (!asking_start(&s->asking, s->workflow, s->prompt, 0, &s->err))
    s->err.code = s->err.code ? s->err.code : ERR_IO;
  asking_close(&s->asking);
}

static void ask_on_answered(void *ctx, const struct ask_job *job) {
  struct single *s = ctx;
  s->result = ask_result(job);
  (void)snprintf(s->path, sizeof s->path, "%s", session_log_name(job->session));
}

static void ask_on_delta(void *ctx, const struct ask_job *job, struct str text) {
  struct single *s = ctx;
  (void)job;
  if (s->stream == NULL)
    return;
  if (text.p == NULL)
    ask_stream_begin(s->stream);
  else
    ask_stream_piece(s->stream, text.p, text.n);
}

static int print_result(struct single *s, bool json) {
  bool terminal = isatty(STDOUT_FILENO) == 1;
  enum json_io_form form = terminal ? JSON_IO_TERMINAL : JSON_IO_COMPACT;
  int status = ask_told_has_value(s->result) ? STATUS_COMPLETE : STATUS_FAILED;
  const json_t *value = json_object_get(s->result, "value");
  bool is_value =
      str_eq_c(str_from(json_string_value(json_object_get(s->result, "outcome"))), "value");
  if (s->stream != NULL && !ask_stream_end(s->stream, is_value ? value : NULL)) {
    fprintf(stderr, "segue ask: %zu item%s printed that the final answer does not start with\n",
            json_array_size(s->stream->printed),
            json_array_size(s->stream->printed) == 1 ? " was" : "s were");
    status = STATUS_FAILED;
  }
  if (json)
    json_io_print(s->result, form);
  else if (ask_told_has_value(s->result) && !(s->stream != NULL && is_value))
    json_io_print(value, form);
  if (!ask_told_has_value(s->result))
    asking_complain("ask", s->result);
  return status;
}

static int ask_one(const struct setup *setup, const struct cli_args *args, struct str prompt,
                   struct ask_stream *stream) {
  struct single s = {.workflow = setup->workflow, .prompt = prompt, .stream = stream};
  const char *logs = cli_value(args, "logs");
  int status = STATUS_FAILED;
  if (!asking_init(&s.asking, "ask", setup, logs, 1, &s.err)) {
    (void)cli_fail("ask", &s.err);
    return STATUS_FAILED;
  }
  s.asking.ctx = &s;
  s.asking.room = ask_on_room;
  s.asking.answered = ask_on_answered;
  s.asking.delta = ask_on_delta;
  int signals = asking_run(&s.asking);
  if (s.result != NULL) {
    status = print_result(&s, cli_flag(args, "json"));
    if (logs != NULL)
      paths_note_last(s.path);
  } else if (s.err.code != ERR_NONE) {
    (void)cli_fail("ask", &s.err);
  }
  asking_deinit(&s.asking);
  json_decref(s.result);
  return signals > 0 && status != STATUS_COMPLETE ? STATUS_INTERRUPTED : status;
}

/* --- the command --- */

static bool read_prompt(const struct cli_args *args, struct buf *prompt, struct err *err) {
  const char *word = args->word_count > 0 ? args->words[0] : "-";
  if (strcmp(word, "-") != 0)
    buf_puts(prompt, word);
  else if (!file_read_fd(STDIN_FILENO, "standard input", LIMIT_TASK_BYTES, prompt, err))
    return false;
  if (str_trim(buf_view(prompt)).n == 0)
    return err_set(err, ERR_USAGE,
                   "there is no prompt: give it as an argument or on standard input");
  return utf8_valid(prompt->p, prompt->n) || err_set(err, ERR_USAGE, "the prompt is not UTF-8");
}

static int batch(const struct cli_args *args, struct setup *setup, struct ask_question *q,
                 bool has_schema) {
  struct err err = {0};
  json_t *jobs = json_object();
  bool ok = number_flag(args, "jobs", 1, ASKING_JOBS_MAX, "jobs", jobs, &err);
  const json_t *given = json_object_get(jobs, "jobs");
  size_t count = given ? (size_t)json_integer_value(given) : ASKING_JOBS_DEFAULT;
  json_decref(jobs);
  if (!ok)
    return cli_fail("ask", &err);
  const struct ask_batch_spec spec = {.path = cli_value(args, "batch"),
                                      .logs = cli_value(args, "logs"),
                                      .jobs = count,
                                      .json = cli_flag(args, "json"),
                                      .workflow = has_schema ? setup->workflow : NULL,
                                      .workflow_of = ask_workflow_of,
                                      .ctx = q};
  return ask_batch(setup, &spec);
}

static int single(const struct cli_args *args, struct setup *setup, const json_t *schema) {
  struct ask_stream stream;
  struct buf prompt = {0};
  struct err err = {0};
  bool streams = cli_flag(args, "stream");
  int status;
  bool ok = !streams || ask_stream_init(&stream, schema, cli_flag(args, "json"), &err);
  if (ok && read_prompt(args, &prompt, &err))
    status = ask_one(setup, args, buf_view(&prompt), streams ? &stream : NULL);
  else
    status = cli_fail("ask", &err);
  if (streams)
    ask_stream_deinit(&stream);
  buf_deinit(&prompt);
  return status;
}

static bool check_flags(const struct cli_args *args, struct err *err) {
  bool batches = cli_value(args, "batch") != NULL;
  if (batches && cli_flag(args, "stream"))
    return err_set(err, ERR_USAGE, "--stream works for one question, not with --batch");
  if (batches && args->word_count > 0)
    return err_set(err, ERR_USAGE,
                   "--batch reads its prompts from the file: do not give another one");
  if (!batches && cli_value(args, "jobs") != NULL)
    return err_set(err, ERR_USAGE, "--jobs needs --batch");
  if (!batches && cli_value(args, "schema") == NULL)
    return err_set(err, ERR_USAGE, "give --schema FILE, or the name of a built-in one: %s",
                   preset_names());
  return true;
}

static bool has_provider(const struct setup *setup, struct err *err) {
  struct str provider, model;
  core_backend(setup->workflow, setup->config, 0, &provider, &model);
  return provider.n > 0 ||
         err_set(
             err, ERR_USAGE,
             "which provider should be asked? Give --provider, or set one in the configuration");
}

static int ask_run(int argc, char **argv) {
  struct cli_args args;
  struct setup setup;
  struct ask_question q = {.structured = json_object()};
  struct err err = {0};
  json_t *schema = NULL;
  int status;
  if (!cli_parse(&cmd_ask, argc, argv, 0, 1, &args, &status)) {
    json_decref(q.structured);
    return status;
  }
  if (!setup_flags(&setup, &args, &status))
    goto out;
  const char *name = cli_value(&args, "schema");
  bool ok = check_flags(&args, &err) && read_question(&args, &setup, &q, &err);
  if (ok)
    schema = name ? schema_named(name, &err) : json_pack("{ss}", "type", "object");
  if ((!ok || schema == NULL) && err.code == ERR_IO)
    err.code = ERR_INVALID; /* the user named a folder or a device instead of a file */
  if (ok && schema != NULL)
    setup.workflow = ask_workflow_of(&q, schema, &err);
  if (setup.workflow == NULL || !has_provider(&setup, &err) || !setup_preflight(&setup, &err))
    status = cli_fail("ask", &err);
  else if (cli_value(&args, "batch") != NULL)
    status = batch(&args, &setup, &q, name != NULL);
  else
    status = single(&args, &setup, schema);
out:
  json_decref(schema);
  json_decref(q.structured);
  setup_deinit(&setup);
  return status;
}

const struct cli_command cmd_ask = {
    .name = "ask",
    .arguments = "--schema FILE [PROMPT|-] [options]",
    .summary = "ask a model for a value that fits a schema",
    .help = "  segue ask --schema sentiment 'The cable is short, but I love it.'\n"
            "segue looks for the value in the answer and checks it against the schema and the "
            "invariants. If something is wrong, a new conversation gets the schema, the task, the "
            "answer and the errors, and corrects it. It stops when the same errors come back, "
            "after a refusal, and when corrections, tokens or time run out; an answer that was "
            "cut off at its length limit is requested once more with twice the limit. Ready "
            "schemas: address, entities, meeting, product, sentiment.\n"
            "--batch: for each line {\"id\",\"prompt\",\"schema\"?} (a schema, or the name of a "
            "ready one) it prints a line "
            "{\"id\",\"value\"|null,\"raw\",\"attempts\",\"outcome\",\"errors\",\"checks\",...}, "
            "in the same order, and at the end how many first answers passed, and what to make of "
            "it.\n"
            "--stream: prints each item once it is complete and valid; at the end it checks that "
            "the final value begins with these items.\n"
            "--on-failure sentinel prints {\"sentinel\":{\"reason\",\"attempts\",\"errors\"}}.\n"
            "Exit: 0 a value (or a sentinel; always with --batch), 1 none: stderr has the last "
            "answer and its errors, 2 bad usage, file or schema, 130 interrupted.",
    .options = options,
    .run = ask_run,
};
