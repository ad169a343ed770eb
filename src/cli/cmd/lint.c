/* segue lint: checks workflow files. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/setup.h"

#include <assert.h>
#include <string.h>

/* --- formats of others --- */

/* Prints lint's findings in the formats of others: workflow commands of GitHub Actions
 * (docs.github.com, "Workflow commands": ::error file=,line=,col=::message, a line each) and SARIF
 * 2.1.0 (OASIS), which code scanning and editors read: one document for all files.
 *
 * A problem without a place in the file is put on the first line, because both formats need one. */

/* Escapes as the runner undoes it: % and line ends everywhere, : and , in properties. */
static void put_annotation(const char *text, bool property) {
  for (const char *c = text; *c != '\0'; c++)
    if (*c == '%' || *c == '\r' || *c == '\n' || (property && (*c == ':' || *c == ',')))
      printf("%%%02X", (unsigned)*c);
    else
      putchar(*c);
}

static const char *file_of(const struct err *err, const char *path) {
  return err->line > 0 && err->file[0] != '\0' ? err->file : path;
}

static void annotate(const char *level, const char *path, const struct err *err) {
  printf("::%s file=", level);
  put_annotation(file_of(err, path), true);
  printf(",line=%d,col=%d,title=segue lint::", err->line > 0 ? err->line : 1,
         err->column > 0 ? err->column : 1);
  put_annotation(err->text, false);
  putchar('\n');
}

/* Returns a path as a URI reference (RFC 3986), with the scheme if it is absolute. */
static json_t *uri_of(const char *path) {
  buf_auto_t uri = {0};
  if (path[0] == '/')
    buf_puts(&uri, "file://");
  cli_put_encoded(&uri, path, "/");
  return json_io_string(buf_c(&uri));
}

static json_t *sarif_result(const char *level, const char *path, const struct err *err) {
  json_t *region = json_pack("{si si}", "startLine", err->line > 0 ? err->line : 1, "startColumn",
                             err->column > 0 ? err->column : 1);
  return json_pack("{ss ss s{so} s[{s{s{so} so}}]}", "ruleId", level, "level", level, "message",
                   "text", json_io_string(err->text), "locations", "physicalLocation",
                   "artifactLocation", "uri", uri_of(file_of(err, path)), "region", region);
}

/* --- the command --- */

enum lint_format { LINT_TEXT, LINT_JSON, LINT_GITHUB, LINT_SARIF, LINT_UNKNOWN };
static const char *const format_names[] = {"text", "json", "github", "sarif"};

static json_t *lint_list_json(const struct err_list *list) {
  json_t *array = json_array();
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(array, cli_error_json(&list->items[i]));
  return array;
}

/* Lints one file for a program to read. */
static bool lint_one(struct setup *setup, const char *path, enum lint_format format, bool quiet,
                     json_t *results) {
  struct err_list errors = {0}, warnings = {0}, none = {0};
  bool ok = setup_load(setup, path, &errors, &warnings);
  const struct err_list *told = quiet ? &none : &warnings;
  if (format == LINT_JSON) {
    json_io_put(json_pack(
        "{so sb so sO so so}", "file", json_io_string(path), "ok", ok, "movements",
        ok ? json_integer((json_int_t)setup->workflow->movement_count) : json_null(), "facets",
        setup->facets, "errors", lint_list_json(&errors), "warnings", lint_list_json(told)));
  } else if (format == LINT_GITHUB) {
    for (size_t i = 0; i < errors.count; i++)
      annotate("error", path, &errors.items[i]);
    for (size_t i = 0; i < told->count; i++)
      annotate("warning", path, &told->items[i]);
  } else {
    assert(json_is_array(results));
    for (size_t i = 0; i < errors.count; i++)
      json_array_append_new(results, sarif_result("error", path, &errors.items[i]));
    for (size_t i = 0; i < told->count; i++)
      json_array_append_new(results, sarif_result("warning", path, &told->items[i]));
  }
  err_list_deinit(&errors);
  err_list_deinit(&warnings);
  return ok;
}

static void lint_forget(struct setup *setup) {
  workflow_unref(setup->workflow);
  setup->workflow = NULL;
}

static int lint_for_programs(struct setup *setup, const struct cli_args *args,
                             enum lint_format format) {
  int worst = STATUS_COMPLETE;
  json_t *results = format == LINT_SARIF ? json_array() : NULL;
  for (size_t i = 0; i < args->word_count; i++) {
    if (!lint_one(setup, args->words[i], format, cli_flag(args, "quiet"), results))
      worst = STATUS_USAGE;
    lint_forget(setup);
  }
  if (results != NULL) {
    json_t *rules =
        json_pack("[{ss s{ss}} {ss s{ss}}]", "id", "error", "shortDescription", "text",
                  "The workflow would not load or cannot run.", "id", "warning", "shortDescription",
                  "text", "The workflow loads, but this part of it may not do what was meant.");
    json_t *driver =
        json_pack("{ss ss so}", "name", "segue lint", "version", SEGUE_VERSION, "rules", rules);
    json_t *document =
        json_pack("{ss ss s[{s{so} ss so}]}", "$schema",
                  "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs",
                  "tool", "driver", driver, "columnKind", "unicodeCodePoints", "results", results);
    assert(document != NULL);
    json_io_put(document);
  }
  return worst;
}

static int lint_for_people(struct setup *setup, const struct cli_args *args) {
  int worst = STATUS_COMPLETE, status;
  for (size_t i = 0; i < args->word_count; i++) {
    if (!setup_workflow(setup, args, args->words[i], !cli_flag(args, "quiet"), &status)) {
      worst = status;
      continue;
    }
    if (!cli_flag(args, "quiet")) {
      cli_say(stdout, "ok  %s  %zu movement%s\n", args->words[i], setup->workflow->movement_count,
              PLURAL(setup->workflow->movement_count));
      setup_print_facets(setup, NULL, stdout);
    }
    lint_forget(setup);
  }
  return worst;
}

static enum lint_format format_of(const struct cli_args *args) {
  const char *name = cli_value(args, "format");
  enum lint_format format = LINT_TEXT;
  if (name == NULL)
    return cli_flag(args, "json") ? LINT_JSON : LINT_TEXT;
  while (format < LINT_UNKNOWN && strcmp(name, format_names[format]) != 0)
    format++;
  return format;
}

static int lint_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  int status;
  enum lint_format format = format_of(args);
  if (format == LINT_UNKNOWN || (format != LINT_JSON && cli_flag(args, "json"))) {
    fprintf(stderr, "segue lint: --format is one of text, json, github and sarif; --json is json\n"
                    "try: segue help lint\n");
    return STATUS_USAGE;
  }
  cli_errors_as_json(format == LINT_JSON);
  if (setup_flags(&setup, args, &status)) {
    if (format == LINT_TEXT)
      status = lint_for_people(&setup, args);
    else
      status = lint_for_programs(&setup, args, format);
  }
  return status;
}

const struct cli_command cmd_lint = {COMMAND_LINT, .run = lint_run};
