/* segue audit: counts the judgments of many sessions. */
#include "audit/aggregate.h"
#include "audit/aggregate_cache.h"
#include "audit/format_errors.h"
#include "cli/audit_filters.h"
#include "cli/audit_show.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "host/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static const struct cli_option options[] = {
    {"by", 'b', "KEY,...",
     "count by: method, match_method, movement, workflow, provider, model, worker, worker_model, "
     "schema, outcome, rule, day, stage, reason, to",
     false},
    AUDIT_FILTER_OPTIONS,
    {"errors", 'e', NULL,
     "group the answers that did not have the required form: by path, keyword, form", false},
    {"export", 'x', "FILE",
     "write each of those answers as a case for extract --batch and check --batch", false},
    {"kept", 'k', NULL, "reuse what was read of logs that stopped or ended; read only what is new",
     false},
    {"json", 'j', NULL, "print one JSON object: groups and totals", false},
    {"csv", 0, NULL, "print the groups as CSV", false},
    {"logs", 'l', "DIR", "log folder to look up IDs in, or to read as a whole if none are given",
     false},
    {"store", 0, "URL", "use this shared store instead: postgres://HOST/DATABASE", false},
    {0},
};

static bool census_take_store(void *ctx, const struct store *store, struct err *err) {
  return aggregate_read_store(ctx, store, err);
}

static bool census_take_log(void *ctx, const struct store_ref *ref, struct err *err) {
  (void)err;
  (void)aggregate_read(ctx, ref);
  return true;
}

/* Prints a piece of a line of JSON: a large folder has more groups than one tree should hold. */
static void print_piece(const char *before, json_t *value) {
  struct buf text = {0};
  json_io_write(value, JSON_IO_COMPACT, &text);
  printf("%s%s", before, buf_c(&text));
  buf_deinit(&text);
  json_decref(value);
}

static void audit_print_json(const struct aggregate *c) {
  json_t *group;
  fputs("{\"groups\":[", stdout);
  for (size_t i = 0; (group = aggregate_group_json(c, i)) != NULL; i++)
    print_piece(i > 0 ? "," : "", group);
  print_piece("],\"totals\":", aggregate_totals_json(c));
  puts("}");
}

static void audit_print(struct aggregate *c, const struct cli_args *args) {
  aggregate_sort(c);
  if (cli_flag(args, "json")) {
    audit_print_json(c);
  } else if (cli_flag(args, "csv")) {
    audit_show_csv(c);
    audit_show_apart(c, stderr);
  } else if (c->tables[AGGREGATE_BY].key_count > 0) {
    audit_show_groups(c);
    audit_show_apart(c, stderr);
  } else {
    audit_show_screen(c);
  }
}

/* --- errors --- */

struct exporting {
  FILE *file;
  size_t count;
};

static void export_case(void *ctx, json_t *item) {
  struct exporting *e = ctx;
  struct buf line = {0};
  json_io_write(item, JSON_IO_COMPACT, &line);
  fprintf(e->file, "%s\n", buf_c(&line));
  e->count++;
  buf_deinit(&line);
}

/* Opens the file of cases. They hold what logs hold: others on this machine need not read them. */
static bool export_open(struct exporting *e, const char *path, struct err *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  e->file = fd >= 0 ? fdopen(fd, "w") : NULL;
  return e->file != NULL || err_set_errno(err, errno, "cannot write %s", path);
}

static bool export_close(struct exporting *e, const char *path, struct err *err) {
  bool ok = !ferror(e->file);
  ok = fclose(e->file) == 0 && ok;
  if (!ok)
    return err_set_errno(err, errno, "cannot write %s", path);
  fprintf(stderr, "%zu case%s in %s\n", e->count, e->count == 1 ? "" : "s", path);
  return true;
}

static bool flaws_take_store(void *ctx, const struct store *store, struct err *err) {
  return format_errors_read_store(ctx, store, err);
}

static bool flaws_take_log(void *ctx, const struct store_ref *ref, struct err *err) {
  (void)err;
  format_errors_read(ctx, ref);
  return true;
}

static int audit_errors(const struct aggregate *c, const struct cli_args *args, const char *logs) {
  const char *path = cli_value(args, "export");
  struct exporting e = {0};
  struct err err = {0};
  struct format_errors *f = format_errors_new(c);
  bool ok = path == NULL || export_open(&e, path, &err);
  if (path != NULL && ok) {
    f->on_case = export_case;
    f->ctx = &e;
  }
  const struct resolve_id_each each = {flaws_take_store, flaws_take_log, f};
  ok = ok && resolve_id_take_all(args->words, args->word_count, logs, &each, &err);
  if (e.file != NULL)
    ok = export_close(&e, path, &err) && ok;
  format_errors_sort(f);
  if (ok && cli_flag(args, "json")) {
    json_t *told = format_errors_json(f);
    json_io_print(told, JSON_IO_COMPACT);
    json_decref(told);
  } else if (ok) {
    audit_show_flaws(f);
  }
  format_errors_free(f);
  return ok ? STATUS_COMPLETE : cli_fail("audit", &err);
}

/* Counts one folder, and reads only what is new. */
static bool audit_kept(struct aggregate *c, const struct cli_args *args, struct err *err) {
  const char *logs = cli_value(args, "logs");
  struct aggregate_cache_told told = {0};
  char where[PATHS_BYTES];
  struct store store;
  if (!paths_logs(args->word_count > 0 ? args->words[0] : logs, where, err))
    return false;
  store_at(&store, where);
  if (!store_exists(&store) && args->word_count == 0 && logs == NULL)
    return true;
  if (!aggregate_cache_read(c, &store, &told, err))
    return false;
  fprintf(stderr,
          "%llu logs counted from earlier results, %llu read; without --kept all are checked\n",
          (unsigned long long)told.known, (unsigned long long)told.read);
  return true;
}

/* Returns true if kept rows can answer; otherwise says why all logs are read. */
static bool kept_can(const struct cli_args *args) {
  const char *why = NULL;
  if (cli_flag(args, "errors"))
    why = "--errors";
  else if (args->word_count > 1 || (args->word_count == 1 && !resolve_id_is_store(args->words[0])))
    why = "anything but one folder";
  if (why != NULL)
    fprintf(stderr, "segue audit: --kept has no counts for %s, so all logs are read\n", why);
  return why == NULL;
}

static int audit(int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_audit, argc, argv, 0, CLI_WORDS, &args, &status))
    return status;
  const char *logs = cli_value(&args, "logs");
  cli_errors_as_json(cli_flag(&args, "json"));
  struct aggregate *c = aggregate_new();
  const struct resolve_id_each each = {census_take_store, census_take_log, c};
  status = STATUS_COMPLETE;
  bool errors = cli_flag(&args, "errors");
  const char *by = cli_value(&args, "by");
  if (cli_flag(&args, "json") && cli_flag(&args, "csv"))
    err_set(&err, ERR_USAGE, "--json and --csv cannot be combined");
  if (errors && (cli_flag(&args, "csv") || by != NULL))
    err_set(&err, ERR_USAGE, "--errors cannot be combined with --by or --csv");
  if (!errors && cli_value(&args, "export") != NULL)
    err_set(&err, ERR_USAGE, "--export needs --errors");
  c->only_by = by != NULL && !cli_flag(&args, "json");
  bool kept = err.code == ERR_NONE && cli_flag(&args, "kept") && kept_can(&args);
  if (err.code != ERR_NONE || !audit_filters(c, &args, &err) ||
      (by != NULL && !aggregate_by(c, by, &err)) || (kept && !audit_kept(c, &args, &err)) ||
      (args.word_count == 0 && !errors && !kept &&
       !resolve_id_take_all(NULL, 0, logs, &each, &err))) {
    status = cli_fail("audit", &err);
    aggregate_free(c);
    return status;
  }
  if (errors) {
    status = audit_errors(c, &args, logs);
    aggregate_free(c);
    return status;
  }
  bool counted = args.word_count == 0 || kept;
  for (size_t i = 0; !kept && i < args.word_count; i++)
    if (resolve_id_take(args.words[i], logs, &each, &err))
      counted = true;
    else
      status = cli_fail("audit", &err);
  if (counted)
    audit_print(c, &args);
  aggregate_free(c);
  return status;
}

const struct cli_command cmd_audit = {
    .name = "audit",
    .arguments = "[FOLDER|ID|FILE...] [options]",
    .summary = "count judgments: what decided them, what did not and why, what they cost",
    .help =
        "Reads logs (by default all of the log folder) and counts their judgments. Every line "
        "is checked against the hash chain: logs that were tampered with, and files that are "
        "no logs, are counted separately and do not affect the figures. Filters can be "
        "combined; most take several values, separated by commas.\n"
        "Without --by it prints one screen. With stage, reason or to among the keys it counts "
        "stages instead of judgments.\n"
        "--errors groups the model answers that did not have the required form; --export "
        "writes each of them as a line of JSON: text, schema, errors and model, and for a "
        "judge also the rules and the report.\n"
        "--kept reuses what it read of logs that have stopped or ended, and does not read these "
        "again: for one folder, without --errors; otherwise all logs are read.\n"
        "unsure: a stage that reads a model's words did not decide; it cost what would not "
        "have been asked otherwise. Percentiles are exact up to 64 values, and within 1 % "
        "beyond that.",
    .options = options,
    .run = audit,
};
