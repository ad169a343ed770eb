/* segue lint: checks workflow files. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/lint_report.h"
#include "cli/setup.h"

#include <stdio.h>
#include <string.h>

enum lint_format { LINT_TEXT, LINT_JSON, LINT_GITHUB, LINT_SARIF, LINT_UNKNOWN };
static const char *const format_names[] = {"text", "json", "github", "sarif"};

static const struct cli_option options[] = {
    {"provider", 'p', "P|MOVEMENT=P", "check as if run with this provider", true},
    {"json", 0, NULL,
     "print a JSON object for each file: ok, errors and warnings with their places", false},
    {"format", 0, "FORMAT", "text, json, github (annotations of a job) or sarif (2.1.0)", false},
    {"quiet", 'q', NULL, "print errors only, no warnings", false},
    {0},
};

static json_t *lint_list_json(const struct err_list *list) {
  json_t *array = json_array();
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(array, cli_error_json(&list->items[i]));
  return array;
}

static void print_object(const struct setup *setup, const char *path, bool ok,
                         const struct err_list *errors, const struct err_list *warnings) {
  json_t *object = json_pack(
      "{so sb so sO so so}", "file", json_io_string(path), "ok", ok, "movements",
      ok ? json_integer((json_int_t)setup->workflow->movement_count) : json_null(), "facets",
      setup->facets, "errors", lint_list_json(errors), "warnings", lint_list_json(warnings));
  json_io_print(object, JSON_IO_COMPACT);
  json_decref(object);
}

/* Lints one file for a program to read. */
static bool lint_one(struct setup *setup, const char *path, enum lint_format format, bool quiet,
                     json_t *results) {
  struct err_list errors = {0}, warnings = {0}, none = {0};
  bool ok = setup_load(setup, path, &errors, &warnings);
  const struct err_list *told = quiet ? &none : &warnings;
  if (format == LINT_JSON)
    print_object(setup, path, ok, &errors, told);
  else if (format == LINT_GITHUB)
    lint_report_github(path, &errors, told);
  else
    lint_report_sarif(results, path, &errors, told);
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
  if (results != NULL)
    lint_report_sarif_end(results);
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
      fputs("ok  ", stdout);
      cli_put_safe(stdout, args->words[i]);
      printf("  %zu movement%s\n", setup->workflow->movement_count,
             setup->workflow->movement_count == 1 ? "" : "s");
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

static int lint_run(int argc, char **argv) {
  struct cli_args args;
  struct setup setup;
  int status;
  if (!cli_parse(&cmd_lint, argc, argv, 1, CLI_WORDS, &args, &status))
    return status;
  enum lint_format format = format_of(&args);
  if (format == LINT_UNKNOWN || (format != LINT_JSON && cli_flag(&args, "json"))) {
    fprintf(stderr, "segue lint: --format is one of text, json, github and sarif; --json is json\n"
                    "try: segue help lint\n");
    return STATUS_USAGE;
  }
  cli_errors_as_json(format == LINT_JSON);
  if (setup_flags(&setup, &args, &status)) {
    if (format == LINT_TEXT)
      status = lint_for_people(&setup, &args);
    else
      status = lint_for_programs(&setup, &args, format);
  }
  setup_deinit(&setup);
  return status;
}

const struct cli_command cmd_lint = {
    .name = "lint",
    .arguments = "WORKFLOW...",
    .summary = "check workflow files and show every error with its place",
    .help = "Reports what the format forbids, and mistakes in a well-formed file: an unknown "
            "next, unreachable movements, movements that cannot end, missing facets, a judge that "
            "cannot judge.\n"
            "--format github annotates the lines of a change in a GitHub Actions job; --format "
            "sarif prints one document for code scanning and editors.\n"
            "Exit: 0 no errors, 2 errors. schemas/workflow.json describes the format to editors.",
    .options = options,
    .run = lint_run,
};
