/* segue store: looks after a shared store. */
#include "store/store.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "store/shared.h"
#include "store/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"store", 0, "URL", "the store: postgres://HOST/DATABASE (or SEGUE_STORE)", false},
    {"dry-run", 0, NULL, "init: print the SQL instead of running it", false},
    {"mend", 0, NULL, "check: write rows anew that say something else than their sound log", false},
    {"json", 0, NULL, "print JSON", false},
    {0},
};

static const char *url_of(const struct cli_args *args, struct err *err) {
  const char *url = cli_value(args, "store");
  if (url == NULL)
    url = getenv("SEGUE_STORE");
  if (url == NULL || url[0] == '\0') {
    (void)err_set(err, ERR_USAGE, "say which store: --store postgres://HOST/DATABASE");
    return NULL;
  }
  return url;
}

static int store_init(const struct cli_args *args, const char *url) {
  struct buf out = {0};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  if (shared_init(url, cli_flag(args, "dry-run"), &out, &err))
    fwrite(buf_c(&out), 1, out.n, stdout);
  else
    status = cli_fail("store", &err);
  buf_deinit(&out);
  return status;
}

static const char *store_word(const json_t *object, const char *key) {
  const char *word = json_string_value(json_object_get(object, key));
  return word ? word : "";
}

static void print_worker(const json_t *worker) {
  size_t i;
  json_t *label;
  double lease = json_number_value(json_object_get(worker, "lease_s"));
  printf("worker    ");
  cli_put_safe(stdout, store_word(worker, "name"));
  printf("  holds %d  ", (int)json_integer_value(json_object_get(worker, "holds")));
  if (lease > 0)
    printf("lease ends in %.1f s ", lease);
  else
    printf("lease over for %.1f s ", -lease);
  json_array_foreach(json_object_get(worker, "labels"), i, label) {
    putchar(' ');
    cli_put_safe(stdout, json_string_value(label));
  }
  putchar('\n');
}

static int store_status(const struct cli_args *args, const char *url) {
  struct err err = {0};
  size_t i;
  const char *state;
  json_t *value, *status = shared_status(url, &err);
  if (status == NULL)
    return cli_fail("store", &err);
  if (cli_flag(args, "json")) {
    json_io_print(status, JSON_IO_COMPACT);
    json_decref(status);
    return STATUS_COMPLETE;
  }
  printf("store     %s  version %d, PostgreSQL %s\n", store_word(status, "store"),
         (int)json_integer_value(json_object_get(status, "version")), store_word(status, "server"));
  printf("sessions ");
  json_object_foreach(json_object_get(status, "sessions"), state, value) {
    printf(" %s %d", state, (int)json_integer_value(value));
  }
  printf("\nrecords   %lld\n", (long long)json_integer_value(json_object_get(status, "records")));
  printf("bytes    ");
  json_object_foreach(json_object_get(status, "bytes"), state, value) {
    printf(" %s %lld", state, (long long)json_integer_value(value));
  }
  putchar('\n');
  json_array_foreach(json_object_get(status, "workers"), i, value) {
    print_worker(value);
  }
  json_decref(status);
  return STATUS_COMPLETE;
}

struct store_checking {
  size_t sessions, problems;
  bool json;
};

static void on_finding(void *ctx, const struct shared_finding *f) {
  struct store_checking *c = ctx;
  c->sessions++;
  c->problems += f->problem != NULL && !f->mended;
  if (c->json) {
    json_t *line = json_pack("{ss sI ss* sb}", "session", f->session, "records",
                             (json_int_t)f->records, "problem", f->problem, "mended", f->mended);
    json_io_print(line, JSON_IO_COMPACT);
    json_decref(line);
  } else if (f->problem != NULL) {
    printf("%s  %s%s\n", f->session, f->problem, f->mended ? ": mended" : "");
  }
}

static int store_check(const struct cli_args *args, const char *url) {
  struct store_checking c = {.json = cli_flag(args, "json")};
  struct err err = {0};
  if (!shared_check(url, cli_flag(args, "mend"), on_finding, &c, &err))
    return cli_fail("store", &err);
  if (!c.json)
    printf("%zu session%s, %zu with a problem\n", c.sessions, c.sessions == 1 ? "" : "s",
           c.problems);
  return c.problems == 0 ? STATUS_COMPLETE : STATUS_FAILED;
}

static const struct {
  const char *name;
  int (*run)(const struct cli_args *args, const char *url);
} verbs[] = {{"init", store_init}, {"status", store_status}, {"check", store_check}};

static int store_run(int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_store, argc, argv, 1, 1, &args, &status))
    return status;
  cli_errors_as_json(cli_flag(&args, "json"));
  const char *url = url_of(&args, &err);
  if (url == NULL)
    return cli_fail("store", &err);
  for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
    if (strcmp(args.words[0], verbs[i].name) == 0)
      return verbs[i].run(&args, url);
  (void)err_set(&err, ERR_USAGE, "\"%.40s\" is none of init, status, check", args.words[0]);
  return cli_fail("store", &err);
}

const struct cli_command cmd_store = {
    .name = "store",
    .arguments = "init|status|check [options]",
    .summary = "look after a store that several machines share",
    .help =
        "init makes the tables in a PostgreSQL database (14 or newer), or brings them up to date.\n"
        "status tells version, workers, sessions and sizes. check holds each session's row "
        "against\n"
        "its log. A password never stands in the URL: use ~/.pgpass, PGPASSWORD, a service file "
        "or\n"
        "a client certificate. Servers elsewhere must prove who they are (sslmode=verify-full)\n"
        "unless the URL says otherwise.\n"
        "Exit: 0 done, 1 check found a problem or the store does not answer, 2 bad usage.",
    .options = options,
    .run = store_run,
};
