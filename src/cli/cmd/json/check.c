/* segue check: says whether a JSON value matches a schema, and if not, where and why. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/ndjson_in.h"
#include "cli/schema_in.h"
#include "format/json_object.h"
#include "host/run_program.h"
#include "schema/schema_lint.h"
#include "structured/invariant.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- invariants --- */

/* Invariants for commands, from --invariant and --invariants, run on a value.
 *
 * Commands are run, because the caller named them or the file that holds them; what comes with the
 * data (a line of a batch) may contain only expressions. */

/* Turns the first error into one of the command line: "FILE: $[1].expr: ...". */
static bool invariants_in_report(const char *from, struct schema_errors *errs, struct err *err) {
  err_set(err, ERR_USAGE, "%s%s%.120s: %.500s", from ? from : "", from ? ": " : "",
          errs->count ? errs->items[0].path : "$",
          errs->count ? errs->items[0].message : "not a list of invariants");
  schema_errors_deinit(errs);
  return false;
}

static bool append_file(json_t *all, const char *path, struct err *err) {
  struct schema_errors errs = {0};
  json_auto_t *list = json_io_file(path, JSON_IO_SCHEMA, err);
  if (list == NULL)
    return false;
  struct invariants *sound = invariants_compile(list, &errs, NULL);
  bool asks = invariants_need(sound, INVARIANT_AI);
  invariants_free(sound);
  if (sound == NULL)
    return invariants_in_report(path, &errs, err);
  if (asks) {
    return err_set(err, ERR_USAGE,
                   "%s: an ai invariant asks a model, but segue check asks none: leave it to a "
                   "command that has a provider",
                   path);
  }
  json_array_extend(all, list);
  return true;
}

/* Loads all of --invariants FILE (JSON or YAML, a list), then all of --invariant EXPR. Questions to
 * a model are refused: `why` says what to do instead. Prints the faults of an expression and
 * returns false with err set. */
static bool invariants_in_load(struct invariants **compiled, const struct cli_args *args,
                               struct err *err) {
  assert(*compiled == NULL);
  struct schema_errors errs = {0};
  json_auto_t *all = json_array();
  const char *given;
  bool ok = true;
  for (size_t i = 0; ok && (given = cli_values(args, "invariants", i)) != NULL; i++)
    ok = append_file(all, given, err);
  for (size_t i = 0; ok && (given = cli_values(args, "invariant", i)) != NULL; i++) {
    ok = cli_is_utf8("--invariant", given, err);
    json_auto_t *one = ok ? json_pack("[s]", given) : NULL;
    struct invariants *sound = ok ? invariants_compile(one, &errs, NULL) : NULL;
    if (ok && sound == NULL) {
      ok = false;
      err_set(err, ERR_USAGE, "--invariant: %.600s",
              errs.count ? errs.items[0].message : "no expression");
      schema_errors_deinit(&errs);
    }
    invariants_free(sound);
    json_array_extend(all, one);
  }
  if (ok && json_array_size(all) > 0) {
    *compiled = invariants_compile(all, &errs, NULL);
    ok = *compiled != NULL || invariants_in_report(NULL, &errs, err);
  }
  return ok;
}

static enum schema_status run_command(const struct invariant *is, const json_t *value,
                                      struct str input, struct schema_errors *errs,
                                      struct err *err) {
  const struct run_program_spec spec = {.argv = is->argv, .input = input};
  struct run_program_result result;
  enum schema_status status = SCHEMA_TOO_COMPLEX;
  if (run_program_run(&spec, &result, err)) {
    const struct invariant_output output = {result.exit_status, result.out.p, result.err.p,
                                            result.out.n, result.err.n};
    if (invariant_command_told(result.exit_status))
      status = invariant_command_result(is, value, &output, errs);
    else
      err_set(err, ERR_IO,
              "the command of an invariant, %s, was killed or did not run (exit status %d): "
              "nothing is known about the value",
              is->argv[0], result.exit_status);
  }
  run_program_result_deinit(&result);
  return status;
}

/* Runs the expressions and then, if those and the schema hold, the commands one by one. SCHEMA_OK,
 * SCHEMA_INVALID or SCHEMA_TOO_COMPLEX as invariants_check has it. False: a command could not be
 * run, err says which and why. Out of memory ends the program. */
static bool invariants_in_check(const struct invariants *invariants, const json_t *value,
                                bool schema_holds, enum schema_status *status,
                                struct schema_errors *errs, struct err *err) {
  assert(value != NULL);
  assert(status != NULL);
  *status = invariants_check(invariants, value, errs);
  bool run = *status == SCHEMA_OK && schema_holds && invariants_need(invariants, INVARIANT_COMMAND);
  buf_auto_t input = {0};
  bool ok = true;
  if (run) {
    json_io_write(value, JSON_IO_COMPACT, &input);
    buf_putc(&input, '\n');
  }
  for (size_t i = 0; run && ok && i < invariants_count(invariants); i++) {
    const struct invariant *is = invariants_get(invariants, i);
    if (is->kind != INVARIANT_COMMAND)
      continue;
    enum schema_status one = run_command(is, value, buf_view(&input), errs, err);
    ok = one != SCHEMA_TOO_COMPLEX;
    *status = one == SCHEMA_OK ? *status : one;
  }
  return ok;
}

/* --- the command --- */

struct checking {
  struct schema_opts opts;
  struct registry_in registry;
  struct invariants *invariants; /* owned; NULL: none */
  bool json;
};

static const char *last_message(const struct schema_errors *errs, const char *otherwise) {
  return errs->count > 0 ? errs->items[errs->count - 1].message : otherwise;
}

/* ---- schemas that cannot be used ---- */

static json_t *schema_trouble_json(const struct checking *c, const struct schema_errors *errs,
                                   enum schema_status status) {
  buf_auto_t text = {0};
  if (errs->count > 0)
    buf_printf(&text, "%s: %s", errs->items[0].path, errs->items[0].message);
  json_t *registry = c->registry.err.code != ERR_NONE ? json_io_string(c->registry.err.text) : NULL;
  return json_pack("{ss so so so*}", "code", schema_status_name(status), "message",
                   json_io_string(buf_c(&text)), "errors", schema_errors_json(errs), "registry",
                   registry);
}

static void print_schema_trouble(const struct checking *c, const char *path,
                                 const struct schema_errors *errs, enum schema_status status) {
  if (c->json)
    json_io_put(json_pack("{so sn s[] so}", "schema", json_io_string(path), "valid", "errors",
                          "error", schema_trouble_json(c, errs, status)));
  schema_trouble_print("check", path, errs, status, &c->registry);
}

static void put_unknown(json_t *out, json_t *owned_error) {
  json_auto_t *members = json_pack("{sn s[] so}", "valid", "errors", "error", owned_error);
  json_object_update(out, members);
}

static void check_refuse(json_t *out, const char *code, const char *message) {
  put_unknown(out, json_pack("{ss so}", "code", code, "message", json_io_string(message)));
}

/* Puts what a schema and the invariants say of a value. */
static void check_put_verdict(json_t *out, enum schema_status status,
                              const struct schema_errors *errs) {
  json_object_set_new(out, "valid", json_boolean(status == SCHEMA_OK));
  json_object_set_new(out, "errors", schema_errors_json(errs));
  if (errs->dropped > 0)
    json_object_set_new(out, "errors_dropped", json_integer((json_int_t)errs->dropped));
}

/* ---- instances ---- */

static void print_verdict(const struct checking *c, const char *file, enum schema_status status,
                          const struct schema_errors *errs) {
  if (c->json) {
    json_t *object = json_pack("{so}", "file", json_io_string(file));
    check_put_verdict(object, status, errs);
    if (status == SCHEMA_TOO_COMPLEX) {
      json_object_set_new(object, "valid", json_null());
      json_object_set_new(object, "error",
                          json_pack("{ss so}", "code", schema_status_name(status), "message",
                                    json_io_string(last_message(errs, ""))));
    }
    json_io_put(object);
    return;
  }
  if (status == SCHEMA_OK) {
    bool colours = cli_colours(STDOUT_FILENO);
    printf("%sok%s ", cli_paint(colours, COLOUR_GREEN), cli_paint(colours, COLOUR_NONE));
    cli_say(stdout, "%s\n", file);
    return;
  }
  schema_errors_print(stdout, file, errs);
  if (status == SCHEMA_TOO_COMPLEX)
    cli_say(stdout, "%s: too complex to check: neither valid nor invalid\n", file);
}

/* Reports that the schema, the only thing given, is sound, and what may go wrong with a model. */
static void print_sound(const struct checking *c, const char *file, const json_t *doc) {
  AUTO(schema_errors_deinit) struct schema_errors warnings = {0};
  schema_lint(doc, c->invariants != NULL, &warnings);
  if (c->json) {
    json_io_put(json_pack("{so sb s[] so}", "file", json_io_string(file), "valid", 1, "errors",
                          "warnings", schema_errors_json(&warnings)));
  } else {
    const struct schema_errors none = {0};
    print_verdict(c, file, SCHEMA_OK, &none);
    for (size_t i = 0; i < warnings.count; i++)
      cli_say(stdout, "%s: warning: %s: %s\n", file, warnings.items[i].path,
              warnings.items[i].message);
  }
}

/* Reports a file without JSON as not valid, and an unreadable one as bad usage. */
static int unreadable(const struct checking *c, const char *file, const struct err *err) {
  if (err->line == 0)
    return cli_fail_with(STATUS_USAGE, "check", err);
  if (c->json) {
    json_io_put(json_pack("{so sb s[] s{ss si si so}}", "file", json_io_string(file), "valid", 0,
                          "errors", "error", "code", "not_json", "line", err->line, "column",
                          err->column, "message", json_io_string(err->text)));
  } else {
    cli_say(stdout, "%s:%d:%d: %s\n", file, err->line, err->column, err->text);
  }
  return STATUS_FAILED;
}

/* Adds what the invariants find to what the schema found; NULL means that there are none. Sets err
 * if a command could not be run. */
static void check_invariants(const struct invariants *invariants, const json_t *value,
                             enum schema_status *status, struct schema_errors *errs,
                             struct err *err) {
  enum schema_status more;
  if (*status != SCHEMA_TOO_COMPLEX && err->code == ERR_NONE &&
      invariants_in_check(invariants, value, *status == SCHEMA_OK, &more, errs, err))
    *status = more > *status ? more : *status;
}

static int check_instance(const struct checking *c, const struct schema *schema, const char *file) {
  struct err err = {0};
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  json_auto_t *value = json_io_file(file, JSON_IO_VALUE, &err);
  if (value == NULL)
    return unreadable(c, file, &err);
  enum schema_status status = schema_check(schema, value, &errs);
  check_invariants(c->invariants, value, &status, &errs, &err);
  if (err.code == ERR_NONE) {
    print_verdict(c, file, status, &errs);
  } else {
    if (c->json) {
      json_t *object = json_pack("{so}", "file", json_io_string(file));
      check_refuse(object, "command", err.text);
      json_io_put(object);
    }
    (void)cli_fail("check", &err);
  }
  if (err.code != ERR_NONE)
    return STATUS_USAGE;
  return status == SCHEMA_OK ? STATUS_COMPLETE : STATUS_FAILED;
}

/* Returns true if standard input is a terminal or /dev/null. */
static bool nothing_comes_in(void) {
  struct stat input, null;
  return isatty(STDIN_FILENO) || (fstat(STDIN_FILENO, &input) == 0 && S_ISCHR(input.st_mode) &&
                                  stat("/dev/null", &null) == 0 && input.st_rdev == null.st_rdev);
}

static int check_files(struct checking *c, const struct cli_args *args) {
  struct err err = {0};
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status;
  const char *path = args->words[0];
  bool input = strcmp(path, "-") == 0;
  int worst = STATUS_COMPLETE;
  json_auto_t *doc = schema_in_read(path, &err);
  if (doc == NULL)
    return cli_fail_with(STATUS_USAGE, "check", &err);
  registry_in_beside(&c->registry, path, &c->opts);
  struct schema *schema = schema_compile(doc, &c->opts, &errs, &status);
  if (schema != NULL && schema_says_nothing(doc, &errs)) {
    schema_free(schema);
    schema = NULL;
    status = SCHEMA_INVALID_SCHEMA;
  }
  if (schema == NULL)
    print_schema_trouble(c, path, &errs, status);
  if (schema == NULL)
    return STATUS_USAGE;
  for (size_t i = 1; i < args->word_count; i++) {
    int one = check_instance(c, schema, args->words[i]);
    worst = one > worst ? one : worst;
  }
  if (args->word_count == 1 && !input && !nothing_comes_in())
    worst = check_instance(c, schema, "-");
  else if (args->word_count == 1)
    print_sound(c, path, doc);
  schema_free(schema);
  return worst;
}

/* ---- a batch ---- */

struct check_batch {
  struct checking *checking;
  struct schema_cache cache;
  const json_t *given; /* SCHEMA, for lines that have none; borrowed */
};

/* Reads a line's invariants; on false `out` says what is wrong with them. */
static bool line_invariants(const json_t *list, struct invariants **own, struct schema_errors *errs,
                            json_t *out) {
  buf_auto_t text = {0};
  *own = invariants_compile(list, errs, NULL);
  if (*own != NULL && !invariants_need(*own, INVARIANT_COMMAND) &&
      !invariants_need(*own, INVARIANT_AI))
    return true;
  if (*own != NULL)
    buf_puts(&text, "a line may contain only expressions: give commands with --invariants FILE");
  else if (errs->count > 0)
    buf_printf(&text, "%s: %s", errs->items[errs->count - 1].path,
               errs->items[errs->count - 1].message);
  check_refuse(out, "bad_invariants", buf_c(&text));
  invariants_free(*own);
  return false;
}

static void check_data(struct check_batch *b, const json_t *in, const json_t *data, json_t *out) {
  const json_t *doc = json_object_get(in, "schema");
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status;
  const json_t *list = json_object_get(in, "invariants");
  const struct schema *schema = NULL;
  if (doc == NULL)
    doc = b->given;
  if ((doc == NULL && list == NULL) || data == NULL) {
    check_refuse(out, "bad_line",
                 doc || list ? "the line has no \"data\"" : "the line has no \"schema\"");
    return;
  }
  b->checking->registry.err.code = ERR_NONE;
  if (doc != NULL)
    schema = schema_cache_get(&b->cache, doc, &b->checking->opts, &errs, &status);
  if (doc != NULL && schema == NULL) {
    put_unknown(out, schema_trouble_json(b->checking, &errs, status));
    return;
  }
  struct err err = {0};
  struct invariants *own = NULL;
  if (list != NULL && !line_invariants(list, &own, &errs, out))
    return;
  status = schema ? schema_check(schema, data, &errs) : SCHEMA_OK;
  check_invariants(own, data, &status, &errs, &err);
  check_invariants(b->checking->invariants, data, &status, &errs, &err);
  invariants_free(own);
  if (err.code != ERR_NONE) {
    check_refuse(out, "command", err.text);
  } else if (status == SCHEMA_TOO_COMPLEX) {
    check_refuse(out, schema_status_name(status),
                 last_message(&errs, "the check needs too much work"));
  } else {
    check_put_verdict(out, status, &errs);
  }
}

/* Checks a line's "data"; or its "text", as a model gave it and segue audit --errors exports it. */
static void check_answer(struct check_batch *b, const json_t *in, json_t *out) {
  const json_t *data = json_object_get(in, "data"), *text = json_object_get(in, "text");
  struct err err = {0};
  if (json_object_get(in, "id") != NULL)
    json_object_set(out, "id", json_object_get(in, "id"));
  if (data != NULL || !json_is_string(text)) {
    check_data(b, in, data, out);
    return;
  }
  json_auto_t *read = json_io_parse("text", json_view(text), &err);
  if (read != NULL) {
    check_data(b, in, read, out);
  } else {
    json_object_set_new(out, "valid", json_false());
    json_object_set_new(out, "errors",
                        json_pack("[{ss ss ss so}]", "path", "$", "pointer", "", "keyword", "parse",
                                  "message", json_io_string(err.text)));
  }
}

static void check_one_line(void *ctx, const struct ndjson_in *in, struct str line, json_t *out) {
  struct check_batch *b = ctx;
  struct err err = {0};
  char message[sizeof err.text + 64];
  if (in->too_long) {
    print_into(message, sizeof message, "line %llu is longer than %u MiB", in->number,
               NDJSON_LINE_BYTES >> 20);
    check_refuse(out, "line_limit", message);
    return;
  }
  json_auto_t *object = json_io_parse("line", line, &err);
  if (object == NULL) {
    print_into(message, sizeof message, "line %llu, column %d: %s", in->number, err.column,
               err.text);
    check_refuse(out, "bad_line", message);
  } else if (!json_is_object(object)) {
    print_into(message, sizeof message, "line %llu is not an object {\"schema\",\"data\"}",
               in->number);
    check_refuse(out, "bad_line", message);
  } else {
    check_answer(b, object, out);
  }
}

/* Checks lines. The words are SCHEMA for lines without one, or - for none; then files of lines. */
static int check_batch(struct checking *c, const struct cli_args *args) {
  struct check_batch b = {.checking = c};
  struct err err = {0};
  json_t *given = NULL;
  int worst = STATUS_COMPLETE;
  if (args->word_count > 0 && strcmp(args->words[0], "-") != 0) {
    given = schema_in_read(args->words[0], &err);
    if (given == NULL) {
      (void)cli_fail("check", &err);
      fprintf(stderr,
              "with --batch the first argument is the schema for lines without one: write\nsegue "
              "check --batch - LINES.ndjson, or give the lines on standard input\n");
      return STATUS_USAGE;
    }
    AUTO(schema_errors_deinit) struct schema_errors errs = {0};
    enum schema_status status;
    if (schema_cache_get(&b.cache, given, &c->opts, &errs, &status) == NULL) {
      print_schema_trouble(c, args->words[0], &errs, status);
      worst = STATUS_USAGE;
    }
  }
  b.given = given;
  if (worst == STATUS_COMPLETE && args->word_count < 2)
    worst = ndjson_in_answer("check", "-", &b, check_one_line);
  for (size_t i = 1; i < args->word_count && worst != STATUS_FAILED; i++) {
    int one = ndjson_in_answer("check", args->words[i], &b, check_one_line);
    worst = one > worst ? one : worst;
  }
  schema_cache_deinit(&b.cache);
  json_decref(given);
  return worst;
}

/* ---- the command ---- */

static bool check_prepare(struct checking *c, const struct cli_args *args, struct err *err) {
  c->json = cli_flag(args, "json");
  c->opts.assert_formats = cli_flag(args, "assert-format") || cli_flag(args, "formats");
  if (!registry_in_options(&c->registry, args, &c->opts, err) ||
      !invariants_in_load(&c->invariants, args, err))
    return false;
  size_t inputs = 0;
  for (size_t i = 0; i < args->word_count; i++)
    inputs += strcmp(args->words[i], "-") == 0 && !(i == 0 && cli_flag(args, "batch"));
  if (inputs > 1)
    return err_set(err, ERR_USAGE, "only one file can be - (standard input)");
  return true;
}

static int check_run(const struct cli_args *args) {
  struct checking c = {0};
  struct err err = {0};
  int status;
  bool batch = cli_flag(args, "batch");
  if (args->word_count == 0 && !batch)
    err_set(&err, ERR_USAGE, "missing argument: segue check %s", cmd_check.arguments);
  else
    (void)check_prepare(&c, args, &err);
  if (err.code != ERR_NONE) {
    status = cli_fail_with(STATUS_USAGE, "check", &err);
  } else {
    status = batch ? check_batch(&c, args) : check_files(&c, args);
  }
  registry_in_deinit(&c.registry);
  invariants_free(c.invariants);
  return status;
}

const struct cli_command cmd_check = {COMMAND_CHECK, .run = check_run};
