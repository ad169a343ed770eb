/* segue resume: resumes a stopped session, here or in the daemon. */
#include "audit/ask_trace.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/replies.h"
#include "cli/resolve_id.h"
#include "cli/session_post.h"
#include "cli/session_ui.h"
#include "format/json_object.h"
#include "host/backends.h"
#include "host/config.h"
#include "host/folder_lock.h"
#include "host/resume_options.h"
#include "host/single_session.h"
#include "os/clock.h"
#include "store/heads.h"
#include "store/reader.h"
#include "store/summary.h"
#include "store/worker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- by a worker --- */

/* Has a worker continue a stopped session of a shared store: writes the record that says so, and a
 * worker with a free place takes it. */

enum { LOOK_MS = 50 };

/* Makes segue resume without --daemon a worker itself: with the labels of --label, and those that
 * the user's shared_paths name, since their folders are here. */
static bool resuming_be(const struct cli_args *args, const struct config *user, struct err *err) {
  static const char *labels[LIMIT_STORE_LABEL_COUNT + 2];
  size_t count = 0;
  const char *word;
  for (size_t i = 0; (word = cli_values(args, "label", i)) != NULL; i++)
    if (count <= LIMIT_STORE_LABEL_COUNT)
      labels[count++] = word;
  JSON_MEMBERS(user->shared_paths, folder, label)
    if (count < LIMIT_STORE_LABEL_COUNT)
      labels[count++] = xstrdup(json_string_value(label)); /* for the program's life */
  labels[count] = NULL;
  const struct worker_options me = {.lease_ms = LIMIT_STORE_LEASE_MS, .labels = labels};
  return worker_be(&me, err);
}

struct resuming {
  const struct config *user;
  const struct provider_registry *registry;
  struct resume_options steer;
  struct replies replies;
  bool hurried; /* it runs, and its worker was told to try the login that it waits for */
};

static void resuming_on_record(void *ctx, const struct record *record, struct str line) {
  (void)line;
  if (record->type == RECORD_SESSION_RESUME)
    single_session_finished(ctx);
}

static void resuming_on_finished(void *ctx, struct session *s) {
  (void)s;
  single_session_finished(ctx);
}

static const struct watcher watcher = {.record = resuming_on_record,
                                       .finished = resuming_on_finished};

static const char CRASHED[] = "its worker died: resume it first, as it is";

/* Checks whether anything keeps the session from being continued like this, in the daemon's
 * words. */
static bool resuming_check(struct resuming *r, const struct core *core, struct err *err) {
  bool has_scenario = r->replies.has || json_object_get(core->config, "scenario") != NULL;
  if (core->status == SESSION_ENDED)
    return err_set(err, ERR_IO, "it has ended already: %s", session_outcome_name(core->outcome));
  if (!json_is_true(json_object_get(core->config, "submitted")))
    return err_set(err, ERR_IO, "it was started by segue run: segue resume continues it");
  if (core->status != SESSION_STOPPED && !core_waits(core))
    return !resume_options_says(&r->steer) || err_set(err, ERR_IO, CRASHED);
  return resume_options_settle(&r->steer, core, r->user, r->registry, has_scenario, err);
}

/* Takes the session, writes the record and lets go. Fails with ERR_LOCKED if it has an owner. */
static bool resuming_write(struct resuming *r, const struct store_ref *ref, struct err *err) {
  struct store store;
  struct single_session solo;
  store_of(ref, &store);
  if (!single_session_init(&solo, store.where, r->registry, err))
    return false;
  solo.store.lock_wait_ms = 0;
  solo.session = host_open(&solo.host, ref, &watcher, &solo, err);
  bool ok = solo.session != NULL && resuming_check(r, session_core(solo.session), err);
  if (ok && (session_core(solo.session)->status == SESSION_STOPPED ||
             core_waits(session_core(solo.session)))) {
    host_accept(solo.session, "user", &r->steer.core);
    (void)single_session_run(&solo, NULL, NULL);
    if (session_broken(solo.session) != NULL)
      ok = err_set(err, ERR_IO, "%s", session_broken(solo.session)->text);
  }
  single_session_deinit(&solo);
  return ok;
}

static bool resuming_goes_on(const struct store_ref *ref) {
  AUTO(summary_deinit) struct summary b = {0};
  struct err ignored;
  if (!summary_read(&b, ref, &ignored))
    return false;
  return summary_goes_on(&b, store_is_address(ref->name));
}

/* Returns true if the session runs, waits for a login, and its worker was told to try it now. */
static bool resuming_hurries(const struct store_ref *ref) {
  AUTO(summary_deinit) struct summary b = {0};
  struct err ignored;
  return summary_read(&b, ref, &ignored) && summary_waits_for_login(&b) &&
         worker_hurry(ref, &ignored);
}

/* Asks for the resume in the session's row, unless something is said with it: a verdict or a
 * setting has no place there. */
static bool resuming_ask(struct resuming *r, const struct store_ref *ref, bool *asked,
                         struct err *err) {
  char state[16];
  if (*asked || resume_options_says(&r->steer))
    return true;
  if (!worker_ask(ref, "resume", state, err))
    return false;
  *asked = true;
  r->hurried = strcmp(state, "going") == 0 && resuming_hurries(ref);
  return strcmp(state, "going") != 0 || r->hurried ||
         err_set(err, ERR_IO, "it is running: there is nothing to resume");
}

static bool resuming_do(struct resuming *r, const struct store_ref *ref, struct err *err) {
  uint64_t until = clock_mono_ms() + LIMIT_STORE_ANSWER_MS;
  bool asked = false;
  while (!resuming_write(r, ref, err)) {
    if (err->code != ERR_LOCKED || !resuming_ask(r, ref, &asked, err))
      return false;
    if (r->hurried || (asked && resuming_goes_on(ref))) /* hurried, it may have ended by now */
      return true;
    if (clock_mono_ms() >= until && asked)
      return err_set(err, ERR_LOCKED, "asked; its worker has not answered yet");
    if (clock_mono_ms() >= until)
      return false;
    (void)usleep(LOOK_MS * 1000);
  }
  return true;
}

static bool resuming_take(const struct cli_args *args, const json_t *body, char id[STORE_ID_BYTES],
                          struct err *err) {
  AUTO(config_deinit) struct config user = {0};
  struct resuming r = {.user = &user};
  struct store_ref ref;
  struct provider_registry *registry = NULL;
  const char *scenario = cli_value(args, "scenario");
  bool ok = resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, err) &&
            config_load(&user, err) && (registry = backends_new(&user, err)) != NULL;
  r.registry = registry;
  ok = ok && resume_options_parse(&r.steer, body, registry, err) &&
       (scenario == NULL || replies_take(&r.replies, scenario, r.steer.changed, err)) &&
       resuming_do(&r, &ref, err);
  if (ok)
    store_ref_id(&ref, id);
  replies_deinit(&r.replies);
  resume_options_deinit(&r.steer);
  registry_free(registry);
  return ok;
}

/* Resumes for segue resume --daemon with a store. body: as in POST .../resume. Prints the session's
 * id and returns the exit status. */
static int resuming_run(const struct cli_args *args, const json_t *body) {
  char id[STORE_ID_BYTES] = "";
  struct err err = {0};
  cli_errors_as_json(cli_flag(args, "json"));
  if (!resuming_take(args, body, id, &err))
    return cli_fail("resume", &err);
  if (cli_flag(args, "json"))
    printf("{\"id\":\"%s\",\"status\":\"queued\"}\n", id);
  else if (!cli_flag(args, "quiet"))
    puts(id);
  return STATUS_COMPLETE;
}

/* --- the command --- */

/* Holds the setting that the session ran in, found again from its first record. */
struct found {
  struct resume_options steer;
  struct replies replies;
  char cwd[1024];
  const char **env;
};

static bool resume_choose(void *ctx, const json_t *config, struct session_setup *setup,
                          struct err *err) {
  struct found *f = ctx;
  const json_t *env = json_object_get(config, "env");
  const char *cwd = cli_text(config, "cwd");
  if (!file_is_folder(cwd))
    return err_set(err, ERR_NOT_FOUND, "the working directory %.300s is gone", cwd ? cwd : "");
  if (strlen(cwd) >= sizeof f->cwd)
    return err_set(err, ERR_USAGE, "the working directory %.100s... is too long: %zu bytes", cwd,
                   strlen(cwd));
  print_into(f->cwd, sizeof f->cwd, "%s", cwd);
  if (!replies_find(&f->replies, config, err))
    return false;
  f->env = xcalloc(json_array_size(env) + 1, sizeof *f->env);
  JSON_EACH(env, i, name) {
    f->env[i] = json_string_value(name); /* lives with the session's config */
  }
  *setup = (struct session_setup){
      .cwd = f->cwd, .pass_env = f->env, .scenario = replies_scenario(&f->replies)};
  return true;
}

/* Returns the first record, NULL if there is none to read. */
static json_t *read_start(const struct store_ref *ref) {
  AUTO(reader_close) struct log_reader r = {0};
  struct str line;
  struct err err;
  if (!reader_open(&r, ref, &err))
    return NULL;
  return reader_next(&r, &line) ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
}

/* Returns true for the first record of `segue rejudge` or `segue judge`; the latter's workflow is
 * generated and in no file: see cmd_judge. */
static bool is_of_judge(const json_t *start) {
  const json_t *workflow = json_object_get(start, "workflow");
  const json_t *movement = json_array_get(json_object_get(workflow, "movements"), 0);
  if (json_object_get(json_object_get(start, "config"), "rejudges") != NULL)
    return true;
  return start != NULL && json_object_get(start, "workflow_path") == NULL &&
         strcmp(cli_word(workflow, "name"), "judge") == 0 &&
         str_among(json_view(json_array_get(json_object_get(movement, "command"), 0)),
                   "given ./given");
}

/* Returns true if the session ended before the text that it judges was in the log. A command that
 * is never run stands in for it. */
static bool lacks_its_text(const struct store_ref *ref) {
  AUTO(reader_close) struct log_reader r = {0};
  struct str line;
  struct err err;
  bool lacks = false;
  if (!reader_open(&r, ref, &err))
    return false;
  for (bool first = true; (first || lacks) && reader_next(&r, &line); first = false) {
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    const char *type = cli_word(record, "type");
    bool answers = strcmp(type, "call_end") == 0 && json_object_get(record, "error") == NULL;
    lacks = first ? is_of_judge(record) : !answers && strcmp(type, "session_end") != 0;
  }
  return lacks;
}

/* Feeds the turns already in the log, so that the closing line counts all of them. For a session
 * that ended, --json prints its last record. */
static void feed_past(struct ui *ui, const struct store_ref *ref, uint64_t records, bool ended) {
  AUTO(reader_close) struct log_reader r = {0};
  struct str line;
  struct err err;
  if (!reader_open(&r, ref, &err))
    return;
  while (records-- > 0 && reader_next(&r, &line)) {
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (record)
      (void)turn_lines_feed_json(&ui->lines, record);
    if (records == 0 && ended && ui->mode == UI_JSON)
      printf(STR_FMT "\n", STR_ARG(line));
  }
}

/* Prints what `segue ask` would have, from the finished log of its question. A session that stopped
 * without a verdict has already said why. */
static int print_answer(const struct store_ref *ref, enum ui_mode mode, int status) {
  AUTO(ask_trace_deinit) struct ask_trace told = {0};
  AUTO(reader_close) struct log_reader r = {0};
  struct str line;
  struct err err;
  if (!reader_open(&r, ref, &err))
    return status;
  while (reader_next(&r, &line) && r.whole) {
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (record)
      ask_trace_feed(&told, record);
  }
  if (told.structured != NULL) {
    json_auto_t *result = ask_trace_result(&told, NULL);
    bool has_value = ask_trace_has_value(result);
    status = has_value ? STATUS_COMPLETE : STATUS_FAILED;
    if (has_value && mode != UI_QUIET)
      json_io_print(json_object_get(result, "value"),
                    isatty(STDOUT_FILENO) == 1 ? JSON_IO_TERMINAL : JSON_IO_COMPACT);
    else if (!has_value)
      ui_complain("resume", result);
  }
  return status;
}

/* Seals the stop or end that a crash kept out of the ledger. */
static void seal_late(struct host *host, const struct summary *b) {
  AUTO(heads_deinit) struct heads heads = {0};
  struct err err;
  if (!heads_load(&heads, host->store, NULL, &err)) {
    log_warn("%s", err.text);
    return;
  }
  ledger_writer_add_late(&host->sealer, &heads, b, true);
}

/* Turns the flags into members, as the daemon's API takes them. */
static bool resume_body(const struct cli_args *args, json_t *body, struct err *err) {
  if (cli_flag(args, "no-lock"))
    json_object_set_new(body, "lock", json_false());
  if (cli_flag(args, "now"))
    json_object_set_new(body, "now", json_true());
  return body_number(args, body, "rule", "rule", err) && body_text(args, body, "why", err) &&
         body_steer(args, body, err) && body_budget(args, body, err);
}

/* Queues the session like a submitted one. */
static int resume_there(const struct cli_args *args, json_t *body) {
  const char *logs = cli_value(args, "logs");
  bool shared = logs != NULL && store_is_address(logs) && cli_value(args, "socket") == NULL;
  if (!cli_flag(args, "cut"))
    return shared ? resuming_run(args, body) : session_post_told(args, "resume", body);
  return cli_refuse("resume", "--cut only works for a resume in this terminal: leave out --daemon");
}

/* Refuses a log whose end is gone: the ledger holds a later record of the session than the log.
 * Without this, the lost part would be judged again silently. */
static bool resume_is_whole(const struct store *store, const struct summary *before,
                            struct err *err) {
  AUTO(heads_deinit) struct heads heads = {0};
  struct err ignored = {0};
  bool whole = true;
  if (heads_load(&heads, store, NULL, &ignored)) {
    const struct ledger_entry *last = heads_last(&heads, before->session);
    if (last != NULL && last->seq > before->seq)
      whole = err_set(err, ERR_CORRUPT,
                      "the log is damaged, its end is missing: the ledger has record %llu, the log "
                      "ends with record %llu; segue resume --cut continues anyway",
                      (unsigned long long)last->seq, (unsigned long long)before->seq);
  }
  return whole;
}

/* Opens the session and lets it go on as the flags say. Returns false if it cannot: err says
 * why. */
static bool resume_open(struct ui *ui, struct found *found, const struct store_ref *ref,
                        const struct config *user, struct err *err) {
  struct host *host = &ui->solo.host;
  struct session *s = host_open(host, ref, &ui->watcher, ui, err);
  if (s == NULL)
    return false;
  const struct core *core = session_core(s);
  const char *outcome = session_outcome_name(core->outcome);
  bool ended = core->status == SESSION_ENDED;
  bool has_scenario = found->replies.has || json_object_get(core->config, "scenario") != NULL;
  bool only_replies = found->steer.core.rule == 0 &&
                      json_object_size(found->steer.changed) == (found->replies.has ? 1u : 0u);
  bool ok = !ended || only_replies ||
            err_set(err, ERR_USAGE, "the session has ended for good: %s", outcome);
  ok = ok && (ended ||
              resume_options_settle(&found->steer, core, user, host->registry, has_scenario, err));
  ok = ok && host_go(s, resume_choose, found, "user", &found->steer.core, err);
  if (ok)
    ui->solo.session = s;
  else
    session_free(s);
  return ok;
}

/* Runs the session to its end in this process. `asks` says that it is a question of `segue ask`. */
static int resume_here(struct ui *ui, struct found *found, const struct store_ref *ref,
                       const struct config *user, const struct cli_args *args, bool asks) {
  bool cut = cli_flag(args, "cut");
  AUTO(summary_deinit) struct summary before = {0};
  struct err err = {0};
  int status;
  assert(ui->solo.session == NULL);
  json_auto_t *person = resume_options_person();
  bool known = !cut && summary_read(&before, ref, &err);
  ui->solo.host.cut_by = cut ? cli_text(person, "name") : NULL;
  if ((known && !resume_is_whole(ui->solo.host.store, &before, &err)) ||
      !resume_open(ui, found, ref, user, &err)) {
    status = cli_fail("resume", &err);
    ui_drop(ui);
  } else {
    bool ended = session_core(ui->solo.session)->status == SESSION_ENDED;
    if (known)
      seal_late(&ui->solo.host, &before);
    feed_past(ui, ref, session_recovered(ui->solo.session), ended);
    if (ended)
      ui_close(ui);
    status = ui_wait(ui);
    if (asks)
      status = print_answer(ref, ui_mode_of(args), status);
  }
  return status;
}

/* Resumes the session with all that it needs: the log, the user's configuration and the
 * backends. */
static int resume_found(const struct cli_args *args, const struct store_ref *ref,
                        const struct config *user, const struct provider_registry *registry,
                        json_t *body) {
  struct found found = {0};
  struct ui ui;
  struct store store;
  struct err err = {0};
  const char *scenario = cli_value(args, "scenario");
  enum ui_mode mode = cli_flag(args, "all") ? UI_QUIET : ui_mode_of(args);
  int status;
  store_of(ref, &store);
  json_auto_t *start = mode == UI_JSON ? NULL : read_start(ref);
  bool asks = ask_trace_is_of(start);
  bool ok = resume_options_parse(&found.steer, body, registry, &err) &&
            (scenario == NULL || replies_take(&found.replies, scenario, found.steer.changed, &err));
  if (ok && lacks_its_text(ref))
    ok = err_set(&err, ERR_IO, "the log ends before the text that is to be judged: judge it again");
  if (!ok) {
    status = cli_fail("resume", &err);
  } else if (!ui_init(&ui, "resume", asks ? UI_QUIET : mode, store.where, registry, &err)) {
    status = cli_fail_with(STATUS_FAILED, "resume", &err);
  } else if (!ui_take_flags(&ui, args, &err)) {
    ui_drop(&ui);
    status = cli_fail("resume", &err);
  } else {
    ui_notify(&ui, user->notify, ref);
    status = resume_here(&ui, &found, ref, user, args, asks);
  }
  replies_deinit(&found.replies);
  free(found.env);
  resume_options_deinit(&found.steer);
  return status;
}

static int resume_local(const struct cli_args *args, json_t *body) {
  AUTO(config_deinit) struct config user = {0};
  struct provider_registry *registry = NULL;
  struct err err = {0};
  struct store_ref ref;
  int status;
  if (cli_value(args, "socket"))
    return cli_refuse("resume", "--socket needs --daemon");
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err))
    return cli_fail("resume", &err);
  if (!config_load(&user, &err) || !resuming_be(args, &user, &err) || !worker_fits(&ref, &err) ||
      (registry = backends_new(&user, &err)) == NULL) {
    status = cli_fail("resume", &err);
  } else {
    backends_warn(registry);
    status = resume_found(args, &ref, &user, registry, body);
  }
  registry_free(registry);
  return status;
}

/* Releases the session's folder to others; the session itself stays as it is. */
static int resume_release(const struct cli_args *args) {
  struct store_ref ref;
  struct err err = {0};
  char id[STORE_ID_BYTES];
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err))
    return cli_fail("resume", &err);
  store_ref_id(&ref, id);
  return folder_release(id, &err) ? STATUS_COMPLETE : cli_fail("resume", &err);
}

/* --- many --- */

static const char OUTAGES[] = "network overloaded rate_limit";

/* Returns what a session that could go on has stopped for: the class of an error, the reason of its
 * stop, or crash. NULL: it has ended, or somebody runs it. */
static const char *stopped_for(const struct summary *b, const struct store_ref *ref) {
  if (summary_is_over(b) || b->status[0] == '\0' || store_is_owned(ref))
    return NULL;
  if (!summary_is_stopped(b)) /* a worker takes what was submitted to a shared store */
    return b->submitted && store_is_address(ref->name) ? NULL : "crash";
  if (b->answered)
    return NULL;
  return b->stop_class[0] ? b->stop_class : b->stop_reason;
}

/* Without --reason: what broke by itself, and can go on without a person's choice. */
static bool resumes_it(const struct cli_args *args, const struct summary *b, const char *cause) {
  const char *word = cli_values(args, "reason", 0);
  if (word == NULL)
    return !summary_is_stopped(b) || !session_stop_is_for_person(str_from(b->stop_reason));
  for (size_t i = 0; (word = cli_values(args, "reason", i)) != NULL; i++)
    if (strcmp(word, cause) == 0 || strcmp(word, b->stop_reason) == 0 ||
        (strcmp(word, "outage") == 0 && str_among(str_from(cause), OUTAGES)))
      return true;
  return false;
}

static bool reasons_check(const struct cli_args *args, struct err *err) {
  static const char known[] =
      "outage crash interrupted terminated shutdown provider_error judge_unavailable "
      "check_unavailable question escalated looping budget protected hidden_tests head_moved "
      "denied poison "
      "rule_no_match "
      "max_movements failed";
  enum error_class ignored;
  const char *word;
  for (size_t i = 0; (word = cli_values(args, "reason", i)) != NULL; i++)
    if (!str_among(str_from(word), known) && !error_class_from_name(str_from(word), &ignored))
      return err_set(err, ERR_USAGE,
                     "--reason %.40s is not known: it is the class of an error (auth, quota ...) "
                     "or one of %s",
                     word, known);
  return true;
}

/* Returns true if the daemon has the sessions of that store. */
static bool daemon_has(const struct cli_args *args, const struct store *store) {
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  struct err ignored;
  return !store_is_address(store->where) &&
         client_ask(cli_value(args, "socket"), "GET", "/v1/health", NULL, &reply, &ignored) &&
         strcmp(cli_word(reply.value, "logs"), store->where) == 0;
}

/* Resumes one of many: through its daemon or worker if it was submitted to one, else here, to its
 * end. */
static int resume_one(const struct cli_args *args, const struct store_ref *ref, bool submitted,
                      bool daemon, struct err *err) {
  char id[STORE_ID_BYTES];
  char *words[] = {id, NULL};
  struct cli_args one = *args;
  json_auto_t *nothing = json_object();
  store_ref_id(ref, id);
  one.words = words;
  one.word_count = 1;
  if (submitted && daemon) {
    AUTO(client_reply_deinit) struct client_reply reply = {0};
    bool ok = session_post(cli_value(args, "socket"), id, "resume", NULL, &reply, err);
    return ok ? STATUS_COMPLETE : STATUS_FAILED;
  }
  if (submitted && store_is_address(ref->name))
    return resuming_take(&one, nothing, id, err) ? STATUS_COMPLETE : STATUS_FAILED;
  return resume_local(&one, nothing);
}

static void resume_tell(const struct cli_args *args, const struct store_ref *ref,
                        const struct summary *before, const char *cause, const char *now,
                        const char *problem) {
  char id[STORE_ID_BYTES];
  const char *why = before->message ? before->message : "";
  store_ref_id(ref, id);
  if (cli_flag(args, "json")) {
    json_auto_t *line = json_pack("{ss ss* ss ss}", "id", id, "workflow", before->workflow,
                                  "reason", cause, "status", now);
    json_object_set_new(line, "message", json_io_string(problem ? problem : why));
    if (before->stop_provider != NULL)
      json_object_set_new(line, "provider", json_io_string(before->stop_provider));
    json_io_print(line, JSON_IO_COMPACT);
  } else if (!cli_flag(args, "quiet") || problem != NULL) {
    cli_say(stdout, "%s  %s%s%s  %s%s%s\n", id, cause, before->stop_provider ? ": " : "",
            before->stop_provider ? before->stop_provider : "", now, problem || why[0] ? ": " : "",
            problem ? problem : why);
  }
  fflush(stdout);
}

static int resume_all(const struct cli_args *args) {
  struct store store;
  struct store_id *ids = NULL;
  struct err err = {0};
  size_t count = 0, found = 0;
  int status = STATUS_COMPLETE;
  if (!reasons_check(args, &err) || !resolve_id_store(cli_value(args, "logs"), &store, &err) ||
      (store_exists(&store) && !store_list(&store, &ids, &count, &err)))
    return cli_fail("resume", &err);
  bool daemon = daemon_has(args, &store), dry = cli_flag(args, "dry-run");
  while (count-- > 0 && status != STATUS_INTERRUPTED) {
    AUTO(summary_deinit) struct summary b = {0}, after = {0};
    struct store_ref ref;
    store_ref(&store, ids[count].id, &ref);
    const char *cause = summary_read(&b, &ref, &err) ? stopped_for(&b, &ref) : NULL;
    if (cause == NULL || !resumes_it(args, &b, cause))
      continue;
    found++;
    if (dry) {
      resume_tell(args, &ref, &b, cause, summary_status(&b), NULL);
      continue;
    }
    err = (struct err){0};
    int one = resume_one(args, &ref, b.submitted, daemon, &err);
    bool queued = b.submitted && (daemon || store_is_address(store.where));
    bool ok = err.code == ERR_NONE && (queued || summary_read(&after, &ref, &err));
    const char *now = queued ? "queued" : summary_status(&after);
    resume_tell(args, &ref, &b, cause, ok ? now : "failed", ok ? after.message : err.text);
    if (status == STATUS_COMPLETE || one == STATUS_INTERRUPTED)
      status = one;
  }
  free(ids);
  if (found == 0 && !cli_flag(args, "quiet"))
    fputs("segue resume: no such session is stopped\n", stderr);
  return status;
}

static int resume_resume(const struct cli_args *args) {
  struct err err = {0};
  bool all = cli_flag(args, "all");
  if (all != (args->word_count == 0))
    return cli_refuse("resume", all ? "--all takes no session" : "give a session, or --all");
  if (!all && (cli_values(args, "reason", 0) != NULL || cli_flag(args, "dry-run")))
    return cli_refuse("resume", "--reason and --dry-run need --all");
  json_auto_t *body = json_object();
  bool read = resume_body(args, body, &err);
  bool release = cli_flag(args, "release");
  bool says = release || cli_flag(args, "cut") || json_object_size(body) > 0;
  if (!read || (says && !all && !resume_options_by_person("resume", args->words[0], &err)))
    return cli_fail("resume", &err);
  if (all && says)
    return cli_refuse("resume", "--all says nothing with it: leave out --rule and settings");
  if (all)
    return resume_all(args);
  if (release)
    return resume_release(args);
  return cli_flag(args, "daemon") ? resume_there(args, body) : resume_local(args, body);
}

const struct cli_command cmd_resume = {COMMAND_RESUME, .run = resume_resume};
