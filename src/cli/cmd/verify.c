/* segue verify: checks whether logs are what was written. */
#include "audit/verify.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/attestation.h"
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/run.h"
#include "git/work.h"
#include "os/clock.h"
#include "store/heads.h"
#include "store/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- signatures --- */

/* Checks that PATH.sig is a signature over the file by one of the signers, made for the namespace
 * segue-heads. */
static bool signed_check(const char *path, struct str text, const char *signers, struct err *err) {
  const struct ssh_check check = {.signers = signers, .name_space = "segue-heads"};
  char name[SSH_SIGNER_BYTES];
  enum attestation_state ignored;
  buf_auto_t sig_path = buf_of("%s.sig", path), signature = {0};
  return file_read(buf_c(&sig_path), LIMIT_HEADS_BYTES, &signature, err) &&
         (ssh_check(&check, text, buf_view(&signature), name, &ignored, err) ||
          err_wrap(err, "%s.sig is not a signature of %s by one of the signers", path, path));
}

/* Finds out about which commit an attestation must be. */
static bool attested_commit(const char *word, char commit[COMMIT_BYTES], struct err *err) {
  size_t n = strlen(word);
  if ((n == 40 || n == 64) && strspn(word, "0123456789abcdef") == n) {
    print_into(commit, COMMIT_BYTES, "%s", word);
    return true;
  }
  buf_auto_t rev = buf_of("%s^{commit}", word);
  char_auto_t *found =
      git_line(".", err, "rev-parse", "--verify", "--quiet", "--end-of-options", buf_c(&rev), NULL);
  if (found == NULL)
    return err_set(err, ERR_USAGE, "there is no commit %.100s here: name one with --commit", word);
  print_into(commit, COMMIT_BYTES, "%s", found);
  return true;
}

static void tell_attested(const struct cli_args *args, const char *path, const char *commit,
                          const struct attestation_found *found, const struct err *why) {
  const json_t *p = json_at(found->statement, "predicate"), *judge = json_at(p, "judge");
  bool ok = found->state == ATTESTATION_OK;
  if (cli_flag(args, "json")) {
    json_io_put(json_pack("{ss sb ss ss ss* ss* sO*}", "attestation", path, "ok", ok, "state",
                          attestation_state_name(found->state), "commit", commit, "error",
                          ok ? NULL : why->text, "signer", ok ? found->signer : NULL, "statement",
                          ok ? found->statement : NULL));
    return;
  }
  bool colours = cli_colours(STDOUT_FILENO);
  printf("%s%s%s  ", cli_paint(colours, ok ? COLOUR_GREEN : COLOUR_RED),
         attestation_state_name(found->state), cli_paint(colours, COLOUR_NONE));
  if (!ok) {
    cli_say(stdout, "%s  %s\n", path, why->text);
    return;
  }
  cli_say(stdout, "commit %.12s  %s by %s (%s), signed by %s\n", commit, json_word_at(p, "basis"),
          json_word_at(judge, "provider")[0] ? json_word_at(judge, "provider") : "no model",
          json_word_at(judge, "method"), found->signer);
  JSON_EACH(json_at(p, "not_proved"), i, doubt)
    cli_say(stdout, "  not proved: %s\n", json_view(doubt).p);
}

/* Gives what --fail-if may name: the predicate, and how old it is. */
static json_t *attested_figures(const json_t *statement) {
  json_t *figures = json_clone_top(json_at(statement, "predicate"));
  int64_t attested_ms;
  if (record_time_parse(json_word_at(figures, "attested"), &attested_ms))
    json_object_set_new(figures, "age_hours",
                        json_real((double)(clock_real_ms() - attested_ms) / 3600000));
  return figures;
}

static int verify_attestation(const struct cli_args *args, struct gate *gate) {
  const char *path = cli_value(args, "attestation");
  const struct ssh_check check = {.signers = cli_value(args, "allowed-signers"),
                                  .revoked = cli_value(args, "revoked"),
                                  .name_space = ATTESTATION_NAMESPACE};
  struct attestation_found found = {0};
  char commit[COMMIT_BYTES];
  buf_auto_t text = {0};
  struct err err = {0};
  if (check.signers == NULL || args->word_count > 0)
    return cli_refuse("verify", "--attestation needs --allowed-signers, and no session");
  if (!file_read(path, ATTESTATION_BYTES, &text, &err) ||
      (access(check.signers, R_OK) != 0 &&
       !err_set_errno(&err, errno, "cannot open %s", check.signers)) ||
      (attestation_is_within(check.signers, ".", false) &&
       !err_set(&err, ERR_USAGE,
                "%s is in the tree that is checked, whose authors could have written it: keep the "
                "signers elsewhere",
                check.signers)) ||
      !attested_commit(cli_value_or(args, "commit", "HEAD"), commit, &err))
    return cli_fail_with(STATUS_USAGE, "verify", &err);
  bool ok = attestation_check(buf_view(&text), &check, commit, &found, &err);
  if (!ok && found.state == ATTESTATION_OK) {
    json_decref(found.statement);
    return cli_fail("verify", &err);
  }
  gate_case(gate, path, ok ? NULL : err.text);
  tell_attested(args, path, commit, &found, &err);
  if (ok)
    gate_check(gate, path, attested_figures(found.statement));
  json_decref(found.statement);
  return ok ? STATUS_COMPLETE : STATUS_FAILED;
}

/* --- the command --- */

struct verifying {
  struct verifier *verifier;
  bool json, coloured, bad, missing;
  bool folders; /* a folder was read: totals are printed */
  size_t counts[VERIFY_STATE_COUNT], gone;
  char where[STORE_PATH_BYTES]; /* the store that `ledger` belongs to; "": none yet */
  struct heads ledger;
  struct heads now; /* the same, once it was looked at again */
  bool looked_again;
  struct heads kept; /* --heads */
  struct ledger_end anchor;
  const char *kept_path; /* or NULL */
  struct gate gate;
};

static bool is_ok(const struct verify_result *r) {
  return r->state == VERIFY_COMPLETE || r->state == VERIFY_OPEN || r->state == VERIFY_EMPTY;
}

static const char *verify_verdict(const struct verify_result *r) {
  if (r->state == VERIFY_COMPLETE || r->state == VERIFY_OPEN)
    return "ok";
  return verify_state_name(r->state);
}

static const char *seal_name(enum verify_seal seal) {
  static const char *const names[] = {"unsealed", "sealed", "sealed late"};
  return names[seal];
}

static void verify_print_json(json_t *object) {
  char_auto_t *line = json_dump_text(object, JSON_COMPACT | JSON_ENSURE_ASCII);
  printf("%s\n", line ? line : "{}");
  json_decref(object);
}

static void print_json(const char *path, const struct verify_result *r) {
  json_t *object =
      json_pack("{s:s? s:b s:s s:I}", "session", r->session[0] ? r->session : NULL, "ok", is_ok(r),
                "state", verify_state_name(r->state), "records", (json_int_t)r->records);
  json_t *file = json_string(path); /* NULL when the path is not UTF-8 */
  if (is_ok(r) && r->state != VERIFY_EMPTY)
    json_object_set_new(object, "seal", json_string(seal_name(r->seal)));
  if (file != NULL)
    json_object_set_new(object, "file", file);
  if (r->reports[0] != '\0')
    json_object_set_new(object, "reports",
                        json_pack("{sI sI ss}", "changed", (json_int_t)r->reports_changed,
                                  "missing", (json_int_t)r->reports_missing, "files", r->reports));
  if (r->state == VERIFY_TORN)
    json_object_set_new(object, "torn_bytes", json_integer((json_int_t)r->torn_bytes));
  if (r->state == VERIFY_BAD) {
    json_object_set_new(object, "bad_record", json_integer((json_int_t)r->bad_record));
    json_object_set_new(object, "error", json_string(r->why.text));
  }
  verify_print_json(object);
}

static void print_word(const struct verifying *v, const char *word, bool ok) {
  printf("%s%s%s  ", cli_paint(v->coloured, ok ? COLOUR_GREEN : COLOUR_RED), word,
         cli_paint(v->coloured, COLOUR_NONE));
}

static void verify_print_line(const struct verifying *v, const char *path,
                              const struct verify_result *r) {
  bool ok = is_ok(r);
  unsigned long long records = r->records;
  print_word(v, verify_verdict(r), ok);
  cli_say(stdout, "%s", r->session[0] && ok ? r->session : path);
  switch (r->state) {
  case VERIFY_COMPLETE:
  case VERIFY_OPEN:
    printf("  %llu record%s, %s, %s\n", records, PLURAL(records), verify_state_name(r->state),
           seal_name(r->seal));
    break;
  case VERIFY_EMPTY:
    printf("  no records: the session had not started\n");
    break;
  case VERIFY_TORN:
    printf("  %llu record%s, open, with a torn tail of %llu byte%s\n", records, PLURAL(records),
           (unsigned long long)r->torn_bytes, PLURAL(r->torn_bytes));
    break;
  case VERIFY_BAD:
    cli_say(stdout, "  record %llu: %s\n", (unsigned long long)r->bad_record, r->why.text);
    break;
  }
  if (r->reports[0] != '\0')
    printf("    reports that differ from the log: %s\n", r->reports);
}

/* Prints what is wrong with a whole store rather than with a log. */
static void print_trouble(struct verifying *v, const char *word, const char *what,
                          const char *why) {
  v->bad = true;
  v->gone += strcmp(word, "missing") == 0;
  gate_case(&v->gate, what, why);
  if (v->json) {
    verify_print_json(json_pack("{ss sb ss ss}", strcmp(word, "missing") == 0 ? "session" : "of",
                                what, "ok", 0, "state", word, "error", why));
    return;
  }
  print_word(v, word, false);
  cli_say(stdout, "%s  %s\n", what, why);
}

/* Loads the ledger of a store, before its logs are read. */
static bool load_ledger(struct verifying *v, const struct store *store, struct err *err) {
  char text[sizeof v->ledger.end.why.text + 32];
  if (strcmp(v->where, store->where) == 0)
    return true;
  heads_deinit(&v->ledger);
  heads_deinit(&v->now);
  v->looked_again = false;
  print_into(v->where, sizeof v->where, "%s", store->where);
  if (!heads_load(&v->ledger, store, v->kept_path ? &v->anchor : NULL, err))
    return false;
  if (v->ledger.end.damaged) {
    print_into(text, sizeof text, "entry %llu: %s", (unsigned long long)v->ledger.end.entries + 1,
               v->ledger.end.why.text);
    print_trouble(v, "bad", "ledger", text);
  } else if (!v->ledger.anchored) {
    print_trouble(v, "bad", "ledger", "it is not the ledger that the heads came from");
  }
  return true;
}

/* Holds a log that has been verified, or could not be. */
struct verified {
  struct store_ref ref;
  bool opened;
  bool gone; /* it was removed since it was listed */
  bool read; /* it waits to be told */
  struct verify_result result;
  struct err err; /* where it was not opened */
};

static bool log_is_gone(const struct store_ref *ref) {
  AUTO(reader_close) struct log_reader r = {0};
  struct err err = {0};
  if (!reader_open(&r, ref, &err))
    return err.code == ERR_NOT_FOUND;
  return false;
}

static void verify_read(const struct verifying *v, struct verified *log) {
  const struct heads *heads[] = {&v->ledger, &v->kept};
  log->opened =
      verify_log(v->verifier, &log->ref, heads, ARRAY_LEN(heads), &log->result, &log->err);
}

static void tell_verified(struct verifying *v, const struct verified *log) {
  if (!log->opened) {
    (void)cli_fail("verify", &log->err);
    v->missing = true;
    return;
  }
  if (v->json)
    print_json(log->ref.name, &log->result);
  else
    verify_print_line(v, log->ref.name, &log->result);
  v->bad |= !is_ok(&log->result);
  v->counts[log->result.state]++;
  bool bad = log->result.state == VERIFY_BAD;
  const char *why = bad ? log->result.why.text : verify_state_name(log->result.state);
  gate_case(&v->gate, log->ref.name, is_ok(&log->result) ? NULL : why);
}

/* --- a folder's logs, several at once --- */

enum { VERIFY_LOGS_AHEAD = 256, VERIFY_THREADS_MAX = 16 };

/* Holds the logs of a store while several threads read them. They are told in their order, each as
 * soon as those before it are; so many may be read before one that takes long. */
struct batch {
  const struct verifying *v;
  const struct store *store;
  const struct store_id *ids;
  size_t count;
  struct verified *slots; /* log i is in slot i % VERIFY_LOGS_AHEAD */
  pthread_mutex_t lock;   /* of all below, and `read` of the slots */
  pthread_cond_t changed;
  size_t next; /* the log to be read next */
  size_t told; /* logs that were told */
};

static struct verified *slot_of(const struct batch *batch, size_t i) {
  return &batch->slots[i % VERIFY_LOGS_AHEAD];
}

/* Reads the next log, if there is one and a slot for it. The lock is held, but not meanwhile. */
static bool read_next(struct batch *batch) {
  size_t i = batch->next;
  if (i == batch->count || i == batch->told + VERIFY_LOGS_AHEAD)
    return false;
  batch->next++;
  (void)pthread_mutex_unlock(&batch->lock);
  struct verified *log = slot_of(batch, i);
  *log = (struct verified){0};
  store_ref(batch->store, batch->ids[i].id, &log->ref);
  verify_read(batch->v, log);
  if (!log->opened)
    log->gone = log->err.code == ERR_NOT_FOUND;
  else if (log->result.state != VERIFY_COMPLETE) /* it may have been removed while it was read */
    log->gone = log_is_gone(&log->ref);
  (void)pthread_mutex_lock(&batch->lock);
  slot_of(batch, i)->read = true;
  if (i == batch->told)
    (void)pthread_cond_broadcast(&batch->changed);
  return true;
}

static void *read_logs(void *arg) {
  struct batch *batch = arg;
  (void)pthread_mutex_lock(&batch->lock);
  while (batch->next < batch->count)
    if (!read_next(batch))
      (void)pthread_cond_wait(&batch->changed, &batch->lock);
  (void)pthread_mutex_unlock(&batch->lock);
  return NULL;
}

/* Tells the logs; this thread reads too, so without others it only takes longer. */
static void tell_logs(struct verifying *v, struct batch *batch, struct buf *gone) {
  (void)pthread_mutex_lock(&batch->lock);
  while (batch->told < batch->count) {
    size_t i = batch->told;
    struct verified *log = slot_of(batch, i);
    if (!log->read) {
      if (!read_next(batch))
        (void)pthread_cond_wait(&batch->changed, &batch->lock);
      continue;
    }
    (void)pthread_mutex_unlock(&batch->lock);
    if (log->gone)
      buf_append(gone, &batch->ids[i], sizeof batch->ids[i]);
    else
      tell_verified(v, log);
    (void)pthread_mutex_lock(&batch->lock);
    log->read = false;
    if (batch->next == batch->told++ + VERIFY_LOGS_AHEAD)
      (void)pthread_cond_broadcast(&batch->changed);
  }
  (void)pthread_mutex_unlock(&batch->lock);
}

/* Reads and tells the logs with a thread for each processor. Appends to `gone` the ids of those
 * that were removed. */
static void verify_logs(struct verifying *v, const struct store *store, const struct store_id *ids,
                        size_t count, struct buf *gone) {
  struct batch batch = {.v = v, .store = store, .ids = ids, .count = count};
  pthread_t threads[VERIFY_THREADS_MAX];
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  size_t started = 0, wanted = processors > 0 ? (size_t)processors : 1;
  if (wanted > VERIFY_THREADS_MAX)
    wanted = VERIFY_THREADS_MAX;
  if (wanted > count)
    wanted = count;
  batch.slots = xcalloc(VERIFY_LOGS_AHEAD, sizeof *batch.slots);
  (void)pthread_mutex_init(&batch.lock, NULL);
  (void)pthread_cond_init(&batch.changed, NULL);
  while (started + 1 < wanted && pthread_create(&threads[started], NULL, read_logs, &batch) == 0)
    started++;
  tell_logs(v, &batch, gone);
  while (started > 0)
    (void)pthread_join(threads[--started], NULL);
  (void)pthread_cond_destroy(&batch.changed);
  (void)pthread_mutex_destroy(&batch.lock);
  free(batch.slots);
}

static int id_order(const void *key, const void *id) {
  return strcmp(((const struct store_id *)id)->id, key); /* newest first */
}

static void print_missing(struct verifying *v, const struct ledger_entry *entry) {
  char text[80];
  print_into(text, sizeof text, "its record %llu is known, but its log is missing",
             (unsigned long long)entry->seq);
  print_trouble(v, "missing", entry->session, text);
}

/* Returns true if a person removed the log. The ledger says so before a log goes, thus perhaps only
 * since it was loaded. */
static bool is_removed(struct verifying *v, const char *session) {
  struct store store;
  struct err err;
  if (!v->looked_again) {
    store_at(&store, v->where);
    v->looked_again = true;
    if (!heads_load(&v->now, &store, NULL, &err))
      v->now = (struct heads){0};
  }
  const struct ledger_entry *last = heads_last(&v->now, session);
  return last != NULL && last->kind == LEDGER_REMOVED;
}

static void find_missing(struct verifying *v, const struct heads *heads, const struct store_id *ids,
                         size_t count) {
  for (size_t i = 0; i < heads->count; i++) {
    const struct ledger_entry *entry = &heads->items[i];
    bool last = i + 1 == heads->count || strcmp(entry[1].session, entry->session) != 0;
    if (!last || entry->kind == LEDGER_REMOVED ||
        bsearch(entry->session, ids, count, sizeof *ids, id_order) != NULL)
      continue;
    const struct ledger_entry *known = heads_last(&v->ledger, entry->session);
    if (known != NULL && (known->kind == LEDGER_REMOVED || heads != &v->ledger))
      continue; /* a person did it, or the ledger said so already */
    if (!is_removed(v, entry->session))
      print_missing(v, entry);
  }
}

/* Reports logs that were gone when they were to be read, unless a person removed them. */
static void tell_gone(struct verifying *v, const struct store_id *ids, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (is_removed(v, ids[i].id))
      continue;
    const struct heads *all[] = {&v->now, &v->ledger, &v->kept};
    const struct ledger_entry *entry = NULL;
    for (size_t k = 0; entry == NULL && k < ARRAY_LEN(all); k++)
      entry = heads_last(all[k], ids[i].id);
    if (entry != NULL)
      print_missing(v, entry);
  }
}

static void verify_store(struct verifying *v, const char *where) {
  struct store store;
  struct store_id *ids;
  buf_auto_t gone = {0};
  size_t count;
  struct err err = {0};
  store_at(&store, where);
  if (!load_ledger(v, &store, &err) || !store_list(&store, &ids, &count, &err)) {
    (void)cli_fail("verify", &err);
    v->missing = true;
    return;
  }
  v->folders = true;
  verify_logs(v, &store, ids, count, &gone);
  tell_gone(v, (const struct store_id *)(const void *)gone.p, gone.n / sizeof *ids);
  if (count == 0 && !store_is_address(where))
    cli_say(
        stderr,
        "segue verify: no file in %s has a session's id as its name; name logs with other names "
        "one by one\n",
        where);
  find_missing(v, &v->ledger, ids, count);
  find_missing(v, &v->kept, ids, count);
  free(ids);
}

/* Prints "7 logs: 5 complete, 1 open, 1 bad; 1 missing" after the single results. */
static void print_sum(struct verifying *v, bool shown) {
  size_t logs = 0;
  buf_auto_t text = {0};
  json_auto_t *states = json_object();
  for (size_t i = 0; i < VERIFY_STATE_COUNT; i++) {
    const char *name = verify_state_name((enum verify_state)i);
    json_object_set_new(states, name, json_integer((json_int_t)v->counts[i]));
    if (v->counts[i] > 0)
      buf_printf(&text, "%s%zu %s", text.n > 0 ? ", " : ": ", v->counts[i], name);
    logs += v->counts[i];
  }
  if (v->gone > 0)
    buf_printf(&text, "; %zu missing", v->gone);
  json_t *figures = json_clone_top(states);
  json_object_set_new(figures, "logs", json_integer((json_int_t)logs));
  json_object_set_new(figures, "missing", json_integer((json_int_t)v->gone));
  gate_check(&v->gate, "all logs", figures);
  if (!shown)
    return;
  if (v->json)
    verify_print_json(json_pack("{ss sb sI sO sI}", "of", "sum", "ok", !v->bad && !v->missing,
                                "logs", (json_int_t)logs, "states", states, "missing",
                                (json_int_t)v->gone));
  else
    printf("%zu log%s%s\n", logs, PLURAL(logs), buf_c(&text));
}

static bool load_kept(struct verifying *v, const struct cli_args *args, struct err *err) {
  const char *signers = cli_value(args, "signed");
  buf_auto_t text = {0};
  v->kept_path = cli_value(args, "heads");
  if (signers != NULL && v->kept_path == NULL)
    return err_set(err, ERR_USAGE, "--signed needs --heads");
  if (v->kept_path == NULL)
    return true;
  return file_read(v->kept_path, LIMIT_HEADS_BYTES, &text, err) &&
         (signers == NULL || signed_check(v->kept_path, buf_view(&text), signers, err)) &&
         heads_parse(&v->kept, buf_view(&text), &v->anchor, err);
}

static int verify(const struct cli_args *args) {
  struct verifying v = {0};
  struct err err = {0};
  v.json = cli_flag(args, "json");
  v.coloured = cli_colours(STDOUT_FILENO);
  cli_errors_as_json(v.json && cli_value(args, "attestation") != NULL);
  if (cli_value(args, "attestation") != NULL && gate_begin(&v.gate, "verify", args, &err))
    return gate_end(&v.gate, verify_attestation(args, &v.gate));
  if (err.code == ERR_NONE && args->word_count == 0)
    err_set(&err, ERR_USAGE, "name sessions, logs or folders of logs");
  if (err.code != ERR_NONE || !gate_begin(&v.gate, "verify", args, &err) ||
      !load_kept(&v, args, &err) || (v.verifier = verifier_new(&err)) == NULL)
    return gate_end(&v.gate, cli_fail("verify", &err));
  for (size_t i = 0; i < args->word_count; i++) {
    struct store_ref ref;
    if (resolve_id_is_store(args->words[i])) {
      verify_store(&v, args->words[i]);
    } else if (resolve_id_session(args->words[i], cli_value(args, "logs"), NULL, &ref, &err)) {
      struct verified log = {.ref = ref};
      struct store store;
      store_of(&ref, &store);
      if (load_ledger(&v, &store, &log.err))
        verify_read(&v, &log);
      tell_verified(&v, &log);
    } else {
      (void)cli_fail("verify", &err);
      v.missing = true;
    }
  }
  print_sum(&v, v.folders);
  heads_deinit(&v.ledger);
  heads_deinit(&v.now);
  heads_deinit(&v.kept);
  verifier_free(v.verifier);
  int status = v.missing ? STATUS_USAGE : STATUS_COMPLETE;
  return gate_end(&v.gate, v.bad ? STATUS_FAILED : status);
}

const struct cli_command cmd_verify = {COMMAND_VERIFY, .run = verify};
