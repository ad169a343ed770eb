/* segue store: looks after a shared store. */
#include "store/store.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/removal.h"
#include "format/json_object.h"
#include "store/copy.h"
#include "store/shared.h"

#include <stdlib.h>
#include <string.h>

static int store_init(const struct cli_args *args, const char *url) {
  buf_auto_t out = {0};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  if (shared_init(url, cli_flag(args, "dry-run"), &out, &err))
    fwrite(buf_c(&out), 1, out.n, stdout);
  else
    status = cli_fail("store", &err);
  return status;
}

static void print_worker(const json_t *worker) {
  double lease = json_number_value(json_object_get(worker, "lease_s"));
  cli_say(stdout, "worker    %s  holds %d  ", cli_word(worker, "name"),
          (int)json_integer_value(json_object_get(worker, "holds")));
  if (lease > 0)
    printf("lease ends in %.1f s ", lease);
  else
    printf("lease expired %.1f s ago ", -lease);
  JSON_EACH(json_object_get(worker, "labels"), i, label)
    cli_say(stdout, " %s", json_string_value(label));
  putchar('\n');
}

/* Prints the workers, those that are over and hold nothing only as a number: the store keeps them
 * for a day. */
static void print_workers(const json_t *workers) {
  size_t over = 0;
  JSON_EACH(workers, i, worker) {
    if (json_number_value(json_object_get(worker, "lease_s")) > 0 ||
        json_integer_value(json_object_get(worker, "holds")) > 0)
      print_worker(worker);
    else
      over++;
  }
  if (over > 0)
    printf("worker    %zu ended within the last day, and hold nothing\n", over);
}

static int store_status(const struct cli_args *args, const char *url) {
  struct err err = {0};
  json_t *status = shared_status(url, &err);
  if (status == NULL)
    return cli_fail("store", &err);
  if (cli_flag(args, "json")) {
    json_io_put(status);
    return STATUS_COMPLETE;
  }
  printf("store     %s  version %d, PostgreSQL %s\n", cli_word(status, "store"),
         (int)json_integer_value(json_object_get(status, "version")), cli_word(status, "server"));
  fputs("sessions ", stdout);
  JSON_MEMBERS(json_object_get(status, "sessions"), state, value)
    printf(" %s %d", state, (int)json_integer_value(value));
  if (json_object_size(json_object_get(status, "sessions")) == 0)
    fputs(" none", stdout);
  printf("\nrecords   %lld\n", (long long)json_integer_value(json_object_get(status, "records")));
  printf("bytes    ");
  JSON_MEMBERS(json_object_get(status, "bytes"), state, value)
    printf(" %s %lld", state, (long long)json_integer_value(value));
  putchar('\n');
  print_workers(json_object_get(status, "workers"));
  JSON_EACH(json_object_get(status, "providers"), i, value) {
    const json_t *limit = json_object_get(value, "limit");
    double cools = json_number_value(json_object_get(value, "cools_s"));
    cli_say(stdout, "provider  %s", cli_word(value, "name"));
    if (json_is_integer(limit))
      printf("  %d of %d places taken", (int)json_integer_value(json_object_get(value, "taken")),
             (int)json_integer_value(limit));
    if (cools > 0)
      printf("  left alone for %.1f s", cools);
    putchar('\n');
  }
  json_decref(status);
  return STATUS_COMPLETE;
}

/* Reads a limit; "none" gives 0. */
static bool limit_read(const char *word, unsigned *slots, struct err *err) {
  char *end;
  unsigned long n = strtoul(word, &end, 10);
  if (strcmp(word, "none") == 0)
    n = 0;
  else if (word[0] < '0' || word[0] > '9' || *end != '\0' || n == 0 || n > LIMIT_CONCURRENCY)
    return err_set(err, ERR_USAGE, "\"%.40s\" is not a number of calls at once (1 to %u, or none)",
                   word, LIMIT_CONCURRENCY);
  *slots = (unsigned)n;
  return true;
}

static bool limit_name_check(const char *name, struct err *err) {
  bool ok = name[0] != '\0' && strlen(name) <= LIMIT_POOL_BYTES;
  for (const char *p = name; *p; p++)
    ok = ok && (unsigned char)*p > ' ' && *p != 127;
  if (ok && !utf8_valid(name, strlen(name)))
    return err_set(err, ERR_USAGE, "the name of a provider or pool is UTF-8 text");
  return ok || err_set(err, ERR_USAGE,
                       "the name of a provider or pool has no spaces and at most %u bytes",
                       LIMIT_POOL_BYTES);
}

static int store_limit(const struct cli_args *args, const char *url) {
  struct err err = {0};
  unsigned slots = 0;
  bool ok = args->word_count == 3 ||
            err_set(&err, ERR_USAGE,
                    "name the provider and the limit: segue store limit PROVIDER N|none");
  if (!ok || !limit_name_check(args->words[1], &err) || !limit_read(args->words[2], &slots, &err) ||
      !shared_limit(url, args->words[1], slots, &err))
    return cli_fail("store", &err);
  if (cli_flag(args, "json")) {
    json_io_put(json_pack("{ss so}", "provider", args->words[1], "limit",
                          slots > 0 ? json_integer(slots) : json_null()));
  } else if (slots > 0) {
    printf("%s: %u call%s at once over all workers\n", args->words[1], slots, PLURAL(slots));
  } else {
    printf("%s: no limit\n", args->words[1]);
  }
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
    json_io_put(json_pack("{ss sI ss* sb}", "session", f->session, "records",
                          (json_int_t)f->records, "problem", f->problem, "mended", f->mended));
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
    printf("%zu session%s, %zu with a problem\n", c.sessions, PLURAL(c.sessions), c.problems);
  return c.problems == 0 ? STATUS_COMPLETE : STATUS_FAILED;
}

static int store_prune(const struct cli_args *args, const char *url) {
  struct err err = {0};
  struct store store;
  struct session_removal r = {.stopped = cli_flag(args, "stopped"),
                              .only_told = cli_flag(args, "dry-run")};
  const char *age = cli_value(args, "older-than");
  bool ok = age != NULL || err_set(&err, ERR_USAGE, "give an age: --older-than 30d");
  if (!ok || !store_open(&store, url, &err))
    return cli_fail("store", &err);
  r.blobs = r.only_told ? json_object() : shared_unused_blobs(url, &err);
  if (r.blobs == NULL)
    return cli_fail("store", &err);
  int worst = removal_take_old(&r, &store, age, "store"), swept = STATUS_COMPLETE;
  if (worst == STATUS_USAGE) { /* the age cannot be read */
    json_decref(r.blobs);
    return worst;
  }
  if (!r.only_told && !shared_tidy(url, &err))
    swept = cli_fail("store", &err);
  else if (!r.only_told)
    swept = removal_sweep(&r, &store, "store");
  bool refused = swept != STATUS_COMPLETE && r.removed == 0; /* the error says all */
  if (!refused && cli_flag(args, "json"))
    printf("{\"removed\":%ld,\"dry_run\":%s}\n", r.removed, r.only_told ? "true" : "false");
  else if (!refused)
    printf("%ld %s\n", r.removed, r.only_told ? "would be removed" : "removed");
  json_decref(r.blobs);
  return swept == STATUS_COMPLETE ? worst : swept;
}

/* --- from store to store --- */

struct store_copying {
  const struct cli_args *args;
  struct store *to;
  size_t copied, there, left, failed;
};

/* Copies one session. `named` says that the user named it, so that leaving it is a failure. */
static void store_copy_one(struct store_copying *c, const struct store_ref *ref, bool named) {
  struct err err = {0};
  switch (copy_log(c->to, ref, cli_flag(c->args, "move"), &err)) {
  case COPY_DONE:
    c->copied++;
    return;
  case COPY_THERE:
    c->there++;
    return;
  case COPY_LEFT:
    c->left++;
    if (!named)
      return;
    break;
  case COPY_GONE:
    if (!named)
      return;
    break;
  case COPY_FAILED:
    break;
  }
  c->failed++;
  (void)cli_fail("store", &err);
}

/* Copies the sessions of a store or, with `aside`, those that an earlier move had set aside,
 * perhaps as the last thing it did. */
static bool store_copy_list(struct store_copying *c, const struct store *from, bool aside,
                            struct err *err) {
  struct store_id *ids;
  size_t count;
  bool listed =
      aside ? copy_list_moved(from, false, &ids, &count, err) : store_list(from, &ids, &count, err);
  if (!listed)
    return false;
  for (size_t i = count; i-- > 0;) {
    struct store_ref ref;
    store_ref(from, ids[i].id, &ref);
    store_copy_one(c, &ref, false);
  }
  free(ids);
  return true;
}

static bool store_copy_all(struct store_copying *c, const struct store *from, struct err *err) {
  return (!cli_flag(c->args, "move") || store_copy_list(c, from, true, err)) &&
         store_copy_list(c, from, false, err);
}

static bool store_copy_word(struct store_copying *c, const struct store *from, const char *word,
                            struct err *err) {
  struct store_ref ref;
  if (!store_find(from, word, &ref, err))
    return false;
  store_copy_one(c, &ref, true);
  return true;
}

static int store_copy_end(const struct store_copying *c, bool ok, const struct err *err) {
  int status = ok ? STATUS_COMPLETE : cli_fail("store", err);
  if (!ok && c->copied + c->there + c->left + c->failed == 0)
    return status; /* nothing was copied: no counts */
  if (cli_flag(c->args, "json"))
    printf("{\"copied\":%zu,\"there\":%zu,\"left\":%zu,\"failed\":%zu}\n", c->copied, c->there,
           c->left, c->failed);
  else
    printf("%zu copied, %zu already there%s\n", c->copied, c->there,
           c->left > 0 ? "; unfinished ones stay (--move includes them)" : "");
  return c->failed > 0 ? STATUS_FAILED : status;
}

static int store_export(const struct cli_args *args, const char *url) {
  struct err err = {0};
  struct store from, to;
  size_t n = args->word_count;
  if (n < 2)
    return cli_refuse("store", "name a folder: segue store export [ID...] DIR");
  store_at(&from, url);
  if (!store_open(&to, args->words[n - 1], &err))
    return cli_fail("store", &err);
  struct store_copying c = {.args = args, .to = &to};
  bool ok = n > 2 || store_copy_all(&c, &from, &err);
  for (size_t i = 1; ok && i < n - 1; i++)
    ok = store_copy_word(&c, &from, args->words[i], &err);
  return store_copy_end(&c, ok, &err);
}

static int store_import(const struct cli_args *args, const char *url) {
  struct err err = {0};
  struct store to;
  bool ok = store_open(&to, url, &err);
  struct store_copying c = {.args = args, .to = &to};
  if (ok && args->word_count < 2)
    ok = err_set(&err, ERR_USAGE, "name what to import: segue store import DIR|FILE...");
  if (!ok)
    return cli_fail("store", &err);
  for (size_t i = 1; ok && i < args->word_count; i++) {
    const char *word = args->words[i];
    struct store from;
    struct store_ref ref;
    store_at(&from, word);
    if (file_is_folder(word))
      ok = store_copy_all(&c, &from, &err);
    else if (store_ref_named(word, &ref))
      store_copy_one(&c, &ref, true);
    else
      ok = err_set(&err, ERR_LIMIT, "the path is too long");
  }
  return store_copy_end(&c, ok, &err);
}

static const struct {
  const char *name;
  int (*run)(const struct cli_args *args, const char *url);
  bool words; /* more of them */
} verbs[] = {{"init", store_init, false},   {"status", store_status, false},
             {"check", store_check, false}, {"prune", store_prune, false},
             {"limit", store_limit, true},  {"export", store_export, true},
             {"import", store_import, true}};

static int store_run(const struct cli_args *args) {
  cli_errors_as_json(cli_flag(args, "json"));
  const char *url = cli_store(args);
  if (url == NULL)
    return cli_refuse("store", "name the store: --store postgres://HOST/DATABASE");
  for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
    if (strcmp(args->words[0], verbs[i].name) == 0 && (verbs[i].words || args->word_count == 1))
      return verbs[i].run(args, url);
  return cli_refuse(
      "store",
      "\"%.40s\" is not one of init, status, check, prune (without further arguments), "
      "limit, export, import",
      args->words[0]);
}

const struct cli_command cmd_store = {COMMAND_STORE, .run = store_run};
