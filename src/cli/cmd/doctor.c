/* segue doctor: says what stands in the way of running workflows here, and what to do about it. */
#include "audit/aggregate_cache.h"
#include "audit/aggregate_shared.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/capture.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "host/backends.h"
#include "host/config.h"
#include "host/daily_usage.h"
#include "host/paths.h"
#include "host/run_program.h"
#include "host/sandbox_config.h"
#include "host/single_session.h"
#include "os/random.h"
#include "os/sandbox_bwrap.h"
#include "os/sandbox_container.h"
#include "os/sandbox_rules.h"
#include "os/tmpdir.h"
#include "provider/agent/agent.h"
#include "provider/agent/driver.h"
#include "provider/agent/project_files.h"
#include "provider/probe.h"
#include "provider/registry.h"
#include "provider/sandbox_policy.h"

#include <dirent.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DOCTOR_INDENT = 9, ENGINE_WAIT_S = 10, DOCTOR_PROGRAMS = 8 };

enum finding_kind { FINDING_OK, FINDING_NOTE, FINDING_PROBLEM };

struct doctor_report {
  json_t *findings;
  bool json, colours, tries;
  const char *model; /* for what is tried; or NULL */
  size_t problems;
};

/* Prints a text in lines that fit, indented by that many columns. */
static void doctor_put(struct str text, size_t indent) {
  buf_auto_t safe = {0}, lines = {0};
  buf_safe(&safe, text, false);
  cli_wrap(&lines, buf_view(&safe), indent, indent, (size_t)cli_columns(STDOUT_FILENO));
  puts(buf_c(&lines));
}

/* Adds a finding and prints it, unless everything is printed as JSON. remedy: what to do, or
 * NULL. */
static void doctor_find(struct doctor_report *r, enum finding_kind kind, const char *what,
                        const char *text, const char *remedy) {
  static const char *const names[] = {"ok", "note", "problem"};
  static const enum colour colours[] = {COLOUR_GREEN, COLOUR_DIM, COLOUR_RED};
  r->problems += kind == FINDING_PROBLEM;
  json_array_append_new(r->findings,
                        json_pack("{s:s, s:o, s:o, s:o}", "state", names[kind], "what",
                                  json_io_string(what), "text", json_io_string(text), "remedy",
                                  remedy ? json_io_string(remedy) : json_null()));
  if (r->json)
    return;
  buf_auto_t said = buf_of("%s: %s", what, text);
  printf("%s%-8s%s ", cli_paint(r->colours, colours[kind]), names[kind],
         cli_paint(r->colours, COLOUR_NONE));
  doctor_put(buf_view(&said), DOCTOR_INDENT);
  if (remedy != NULL && remedy[0] != '\0') {
    printf("%*s-> ", DOCTOR_INDENT, "");
    doctor_put(str_from(remedy), DOCTOR_INDENT + 3);
  }
}

/* --- a provider tried ---
 *
 * Each try is a session of its own in an empty folder, and no log is kept: a failed one says
 * nothing of the next. It is read from the session's records, as anybody could read them. */

struct trying {
  struct doctor_report *r;
  const struct provider *provider;
  const struct provider_registry *registry;
  const struct config *user;
  const char *model; /* or NULL */
  char *folder;
  json_t *records; /* of the last session */
  struct single_session *solo;
  bool stopped;
};

static void try_on_record(void *ctx, const struct record *record, struct str line) {
  struct trying *t = ctx;
  (void)line;
  json_array_append_new(t->records, record_json(record));
}

static void try_on_finished(void *ctx, struct session *s) {
  struct trying *t = ctx;
  (void)s;
  single_session_finished(t->solo);
}

/* Runs a workflow to its end. given: the text that is judged; NULL: the agent works. */
static bool try_session(struct trying *t, json_t *owned_movements, const char *given,
                        struct err *err) {
  static const struct watcher watcher = {.record = try_on_record, .finished = try_on_finished};
  json_auto_t *movements = owned_movements;
  json_auto_t *doc =
      json_pack("{ss sO sO}", "name", "try", "initial_movement",
                json_object_get(json_array_get(movements, 0), "name"), "movements", movements);
  json_auto_t *config = json_pack("{ss ss ss* sb}", "provider", t->provider->capability.name, "cwd",
                                  t->folder, "model", t->model, "interactive", 0);
  config_resolve(t->user, config);
  json_object_set_new(config, "wait_for_outage", json_false());
  json_object_del(config, "fallback"); /* nobody else is tried */
  struct workflow *workflow = workflow_build(doc, err);
  struct single_session solo;
  if (workflow == NULL || !single_session_init(&solo, NULL, t->registry, err)) {
    workflow_unref(workflow);
    return false;
  }
  const struct session_params params = {
      .setup = {.cwd = t->folder}, .workflow = workflow, .task = STR(""), .config = config};
  t->solo = &solo;
  json_array_clear(t->records);
  solo.session = host_start(&solo.host, &params, &watcher, t, err);
  bool ok = solo.session != NULL;
  if (ok && given != NULL)
    host_answer(solo.session, str_from(given));
  if (ok)
    t->stopped = single_session_run(&solo, NULL, NULL) > 0;
  single_session_deinit(&solo);
  workflow_unref(workflow);
  return ok;
}

/* Returns the n-th record of this type and, unless NULL, with this text under `key`; or NULL. */
static const json_t *try_record(const struct trying *t, const char *type, const char *key,
                                const char *text, size_t n) {
  JSON_EACH(t->records, i, record) {
    bool fits = str_eq_c(json_view_at(record, "type"), type) &&
                (key == NULL || str_eq_c(json_view_at(record, key), text));
    if (fits && n-- == 0)
      return record;
  }
  return NULL;
}

/* Returns how a call ended at its last attempt; NULL: it was not begun. */
static const json_t *try_end(const struct trying *t, const json_t *start) {
  const json_t *last = NULL;
  JSON_EACH(t->records, i, record)
    if (str_eq_c(json_view_at(record, "type"), "call_end") &&
        json_int_at(record, "call") == json_int_at(start, "call"))
      last = record;
  return last;
}

/* Appends where the profile says this: its line, or from whom it has it. */
static void try_put_place(const struct trying *t, const char *key, struct buf *out) {
  const struct profile *profile = provider_profile(t->provider);
  struct err ignored;
  enum transport transport;
  if (profile == NULL || !driver_transport(profile, t->provider->settings, &transport, &ignored))
    return;
  if (transport != TRANSPORT_EXEC)
    key = transport_name(transport);
  struct str rest = profile->source;
  for (size_t line = 1; rest.n > 0; line++) {
    struct str text = str_next_line(&rest);
    if (str_starts(text, key) && text.n > strlen(key) && text.p[strlen(key)] == ':') {
      buf_printf(out, "%s, %s, line %zu: ", key, profile->file, line);
      return;
    }
  }
  const char *base = cli_text(profile->keys, "extends");
  bool has = json_object_get(profile->keys, key) != NULL;
  buf_printf(out, "%s, %s%s: ", key, has ? "inherited from " : "which the profile lacks",
             has && base != NULL ? base : "");
}

/* Reports one thing that was seen. If it is not as it should be, key and advice say what to look at
 * in the profile. */
static void try_tell(struct trying *t, const char *what, bool ok, const char *said, const char *key,
                     const char *advice) {
  buf_auto_t name = buf_of("%s, %s", t->provider->capability.name, what), remedy = {0};
  if (!ok && advice != NULL) {
    try_put_place(t, key, &remedy);
    buf_puts(&remedy, advice);
  }
  doctor_find(t->r, ok ? FINDING_OK : FINDING_PROBLEM, buf_c(&name), said,
              remedy.n > 0 ? buf_c(&remedy) : NULL);
}

/* Appends ": 1.2 s, 11+7 tokens, $0.0123". */
static void try_put_use(const json_t *start, const json_t *end, struct buf *out) {
  const json_t *usage = json_object_get(end, "usage"), *cost = json_object_get(usage, "cost_usd");
  buf_puts(out, ": ");
  view_put_time(out, view_time(end) - view_time(start));
  if (json_object_get(usage, "input") != NULL)
    buf_printf(out, ", %lld+%lld tokens",
               (long long)json_integer_value(json_object_get(usage, "input")),
               (long long)json_integer_value(json_object_get(usage, "output")));
  if (cost != NULL)
    buf_printf(out, ", $%.4f%s", json_number_value(cost),
               json_object_get(usage, "cost_from") ? " by a list of prices" : "");
}

/* Tells a call that ended in an error. Returns whether it did, or was never made. */
static bool try_failed(struct trying *t, const char *what, const json_t *end) {
  const json_t *error = json_object_get(end, "error");
  const json_t *stop = try_record(t, "session_stop", NULL, NULL, 0);
  if (end != NULL && error == NULL)
    return false;
  buf_auto_t said = {0};
  if (error != NULL)
    buf_printf(&said, "%s: %s", cli_text(error, "class"), cli_text(error, "message"));
  else
    buf_printf(&said, "it was not called: %s", cli_word(stop, "message"));
  try_tell(t, what, false, buf_c(&said), "argv",
           "segue providers test shows what the profile makes of a recorded run");
  return true;
}

/* Tells whether an answer holds the word. */
static void try_tell_word(struct trying *t, const char *what, const json_t *start,
                          const char *nonce, const char *good, const char *bad,
                          const char *advice) {
  const json_t *end = try_end(t, start);
  buf_auto_t said = {0};
  if (try_failed(t, what, end))
    return;
  bool heard = strstr(cli_word(end, "text"), nonce) != NULL;
  buf_puts(&said, heard ? good : bad);
  if (!heard)
    (void)cli_fit(&said, str_from(cli_word(end, "text")), 80);
  try_put_use(start, end, &said);
  try_tell(t, what, heard, buf_c(&said), "argv", advice);
}

/* A word that it could only know from its prompt, and in the same conversation from before. Returns
 * false if the rest cannot be tried. */
static bool try_words(struct trying *t, const char *nonce, struct err *err) {
  char say[160];
  print_into(say, sizeof say, "Answer with this word, and nothing else: %s", nonce);
  json_t *movements = json_pack(
      "[{ss ss ss s[{ss ss}]} {ss ss ss sb s[{ss ss}]}]", "name", "say", "session_key", "one",
      "instruction", say, "rules", "condition", "when(true)", "next", "again", "name", "again",
      "session_key", "one", "instruction",
      "Which word did you answer with before? Answer with it alone.", "pass_previous_response", 0,
      "rules", "condition", "when(true)", "next", "COMPLETE");
  if (!try_session(t, movements, NULL, err))
    return false;
  const json_t *start = try_record(t, "call_start", "purpose", "execute", 0);
  const json_t *first = try_end(t, start), *next = start;
  try_tell_word(
      t, "an answer", start, nonce, "it answers what its prompt asks",
      "its answer does not fit the prompt: ",
      "the prompt may not have reached it: it goes to standard input, or with stdin: none "
      "into the file {prompt_file}");
  if (first == NULL || json_object_get(first, "error") != NULL)
    return false;
  if (json_object_get(json_object_get(first, "usage"), "input") == NULL)
    doctor_find(t->r, FINDING_NOTE, "tokens", "it tells none: a budget counts nothing of its calls",
                NULL);
  for (size_t n = 1; next != NULL && json_int_at(next, "turn") == json_int_at(start, "turn"); n++)
    next = try_record(t, "call_start", "purpose", "execute", n);
  if (t->provider->capability.sessions &&
      try_record(t, "call_event", "event", "session", 0) == NULL)
    try_tell(t, "a conversation", false, "no event names its conversation, so none can go on",
             "events", "a rule with session: says where the id stands");
  else if (t->provider->capability.sessions)
    try_tell_word(t, "a conversation", next, nonce, "it goes on",
                  "it does not know what was said before: ",
                  "{session} must be where the client takes the id of a conversation");
  return true;
}

/* A file that it writes with a tool. */
static bool try_write(struct trying *t, const char *nonce, struct err *err) {
  char do_it[200], path[PATHS_BYTES];
  print_into(
      do_it, sizeof do_it,
      "Write the file note.txt in the working directory; its only line is %s. Use a tool for "
      "it, and say when it is done.",
      nonce);
  if (!try_session(t,
                   json_pack("[{ss ss ss s[{ss ss}]}]", "name", "write", "permission", "edit",
                             "instruction", do_it, "rules", "condition", "when(true)", "next",
                             "COMPLETE"),
                   NULL, err))
    return false;
  const json_t *start = try_record(t, "call_start", "purpose", "execute", 0);
  const json_t *end = try_end(t, start);
  if (try_failed(t, "a tool", end))
    return true;
  buf_auto_t content = {0}, said = {0};
  print_into(path, sizeof path, "%s/note.txt", t->folder);
  struct err ignored;
  bool wrote = file_read(path, LIMIT_INPUT_BYTES, &content, &ignored) &&
               strstr(buf_c(&content), nonce) != NULL;
  buf_puts(&said, wrote ? "it writes a file" : "it wrote no file");
  try_put_use(start, end, &said);
  try_tell(t, "a tool", wrote, buf_c(&said), "permission",
           "edit says what lets the client change files without asking");
  const struct profile *profile = provider_profile(t->provider);
  bool tells = profile != NULL && profile->dialect != DIALECT_TEXT;
  if (wrote && tells && try_record(t, "call_event", "event", "tool", 0) == NULL)
    try_tell(t, "a tool", false, "no event names the tool that it used", "events",
             "a rule with tool: says where a tool's name and id stand");
  return true;
}

/* A question of a judge with a schema. */
static bool try_judge(struct trying *t, struct err *err) {
  const char *name = t->provider->capability.name;
  if (!try_session(t,
                   json_pack("[{ss s[s] s{s[s] ss ss*} s[{ss ss} {ss ss}]}]", "name", "given",
                             "command", "given", "judge", "stages", "structured_output", "provider",
                             name, "model", t->model, "rules", "condition", "a test failed", "next",
                             "COMPLETE", "condition", "every test passed", "next", "COMPLETE"),
                   "I ran the tests: 12 of 12 passed, none failed.", err))
    return false;
  const json_t *start = try_record(t, "call_start", "purpose", "judge", 0);
  const json_t *end = try_end(t, start);
  if (try_failed(t, "a judge", end))
    return true;
  const json_t *judgment = try_record(t, "judgment", NULL, NULL, 0);
  const json_t *stage = json_array_get(json_object_get(judgment, "stages"), 0);
  const json_t *error = json_array_get(json_object_get(stage, "errors"), 0);
  json_int_t rule = json_integer_value(json_object_get(judgment, "rule"));
  const char *enforced = cli_text(end, "enforced");
  buf_auto_t said = {0};
  if (rule > 0)
    buf_printf(&said, "it chose rule %d%s; the schema was enforced by %s", (int)rule,
               rule == 2 ? "" : ", and 2 is right", enforced ? enforced : "nothing");
  else
    buf_printf(&said, "no verdict: %s", error ? json_string_value(error) : "its answer has none");
  try_put_use(start, end, &said);
  try_tell(t, "a judge", rule == 2, buf_c(&said), "schema",
           "by says how the client takes a schema; with by: none it stands in the prompt");
  return true;
}

/* Tries one provider: four calls, and a fifth that judges. */
static void doctor_try(struct doctor_report *r, const struct provider_registry *registry,
                       const struct config *user, const struct provider *provider) {
  struct err err = {0};
  struct trying t = {.r = r,
                     .provider = provider,
                     .registry = registry,
                     .user = user,
                     .model = r->model,
                     .folder = tmpdir_make(&err),
                     .records = json_array()};
  uint32_t word;
  bool ok = t.folder != NULL;
  char nonce[24];
  random_fill(&word, sizeof word);
  print_into(nonce, sizeof nonce, "kestrel-%08x", (unsigned)word);
  ok = ok && try_words(&t, nonce, &err);
  if (ok && !t.stopped && provider->capability.touches_files)
    ok = try_write(&t, nonce, &err);
  if (ok && !t.stopped && provider->capability.can_judge)
    ok = try_judge(&t, &err);
  ok = (t.folder == NULL || tmpdir_remove(t.folder, &err)) && ok;
  if (!ok && err.text[0] != '\0')
    try_tell(&t, "a try", false, err.text, "", NULL);
  free(t.folder);
  json_decref(t.records);
}

/* --- backends --- */

/* Checks one provider. `asked_for` says that the command named it. `agent` says how to install the
 * agent whose name a model API has taken here, or is NULL. */
static void look_at_provider(struct doctor_report *r, const struct provider *provider,
                             const struct backend_probe *p, bool asked_for, const char *wanted,
                             const char *agent) {
  const char *name = provider->capability.name;
  bool is_wanted = wanted != NULL && strcmp(wanted, name) == 0;
  char what[160], text[1200], remedy[800];
  print_into(what, sizeof what, "provider %s", name);
  if (p->state != PROBE_NO) {
    print_into(text, sizeof text, "%s%s%s%s%s", p->has_program ? "installed" : p->kind,
               p->version[0] ? ", version " : "", p->version, p->login[0] ? ", " : "", p->login);
    doctor_find(r, FINDING_OK, what, text, NULL);
    return;
  }
  print_into(text, sizeof text, "%s%s", p->problem, is_wanted ? " (config.yaml names it)" : "");
  print_into(remedy, sizeof remedy, "%s%s%s", p->remedy,
             agent ? "; or install the agent of that name: " : "", agent ? agent : "");
  doctor_find(
      r, asked_for || is_wanted || p->version_old || p->broken ? FINDING_PROBLEM : FINDING_NOTE,
      what, text, remedy);
}

/* Reports a provider whose calls would be refused in this folder. */
static void look_at_project(struct doctor_report *r, const struct provider *provider,
                            const char *wanted) {
  const struct profile *profile = provider_profile(provider);
  const char *name = provider->capability.name;
  enum transport transport;
  char what[160], here[PATHS_BYTES];
  struct err err;
  if (profile == NULL || !driver_transport(profile, provider->settings, &transport, &err) ||
      getcwd(here, sizeof here) == NULL ||
      project_files_check(profile, transport, provider->settings, here, &err))
    return;
  print_into(what, sizeof what, "provider %s in this folder", name);
  doctor_find(r, wanted != NULL && strcmp(wanted, name) == 0 ? FINDING_PROBLEM : FINDING_NOTE, what,
              err.text, NULL);
}

/* Reports which of readonly, edit and full the provider does not enforce. */
static void look_at_permissions(struct doctor_report *r, const struct provider *provider) {
  char what[160];
  for (int i = 0; i < PERMISSION_COUNT && provider_profile(provider) != NULL; i++) {
    buf_auto_t gap = {0};
    if (capability_gap(&provider->capability, (enum permission)i, true, &gap)) {
      print_into(what, sizeof what, "provider %s, permission %s", provider->capability.name,
                 permission_name((enum permission)i));
      doctor_find(r, FINDING_NOTE, what, buf_c(&gap), NULL);
    }
  }
}

static const char *agent_besides(const struct provider_registry *registry,
                                 const struct provider *provider) {
  const struct profile *profile = backends_profile(registry, provider->capability.name);
  bool besides = profile != NULL && provider_profile(provider) == NULL;
  return besides ? cli_text(profile->keys, "install") : NULL;
}

/* Prints one line of names for each kind of absent backend that nobody asked for. */
static void doctor_put_absent(struct doctor_report *r, const struct provider_registry *registry,
                              const struct backend_probe *probes, const bool *listed) {
  static const char *const whats[] = {
      [ABSENCE_PROGRAM] = "agents that are not installed",
      [ABSENCE_SETTING] = "agents whose program you have to name",
      [ABSENCE_KEY] = "model APIs without a key",
      [ABSENCE_SERVER] = "model servers that do not answer",
  };
  bool any = false;
  for (size_t kind = ABSENCE_PROGRAM; kind < ARRAY_LEN(whats); kind++) {
    buf_auto_t names = {0};
    const struct provider *p;
    for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++)
      if (listed[i] && probes[i].absence == kind)
        buf_printf(&names, "%s%s", names.n > 0 ? ", " : "", p->capability.name);
    if (names.n > 0)
      doctor_find(r, FINDING_NOTE, whats[kind], buf_c(&names), NULL);
    any = any || names.n > 0;
  }
  if (any)
    printf("         -> segue doctor NAME explains how to set one up\n");
}

/* Takes the backends that the words name, or all without words. Returns false if a word names
 * none. */
static bool doctor_take_words(const struct provider_registry *registry, const struct cli_args *args,
                              bool *taken, size_t count) {
  struct err err;
  for (size_t i = 0; i < count; i++)
    taken[i] = args->word_count == 0;
  for (size_t w = 0; w < args->word_count; w++) {
    size_t i = 0;
    while (i < count && strcmp(registry_at(registry, i)->capability.name, args->words[w]) != 0)
      i++;
    if (i == count) {
      (void)registry_unknown(registry, str_from(args->words[w]), &err);
      (void)cli_fail(args->command->name, &err);
      return false;
    }
    taken[i] = true;
  }
  return true;
}

static size_t doctor_tell_each(struct doctor_report *r, const struct provider_registry *registry,
                               const struct config *user, const struct backend_probe *probes,
                               const bool *taken, const bool *listed, bool named) {
  const char *wanted = user->provider;
  const struct provider *p;
  size_t usable = 0;
  for (int pass = 0; pass < 2; pass++) /* first what is installed or was named */
    for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++) {
      bool first = probes[i].state != PROBE_NO ||
                   (wanted != NULL && strcmp(wanted, p->capability.name) == 0);
      if (!taken[i] || listed[i] || first != (pass == 0))
        continue;
      look_at_provider(r, p, &probes[i], named, wanted, agent_besides(registry, p));
      if (probes[i].state != PROBE_NO) {
        look_at_project(r, p, wanted);
        look_at_permissions(r, p);
        if (r->tries)
          doctor_try(r, registry, user, p);
      }
      usable += strcmp(probes[i].kind, "built-in") != 0 && probes[i].state == PROBE_OK;
    }
  return usable;
}

/* Reports the backends named in `args`, or all of them. Backends that are here, that the user's
 * configuration names, or that can be repaired get a section each; the absent ones share a line of
 * names, unless --all or JSON is wanted. False: there is no such backend, and a message was
 * printed. */
static bool doctor_providers(struct doctor_report *r, const struct provider_registry *registry,
                             const struct config *user, const struct cli_args *args) {
  size_t count = 0;
  while (registry_at(registry, count) != NULL)
    count++;
  bool *taken = xcalloc(count + 1, sizeof *taken), *listed = xcalloc(count + 1, sizeof *listed);
  bool ok = doctor_take_words(registry, args, taken, count), named = args->word_count > 0;
  if (ok) {
    bool quick = cli_flag(args, "quick"), short_form = !named && !r->json && !cli_flag(args, "all");
    struct backend_probe *probes = quick ? probe_all(registry, false) : probe_some(registry, taken);
    for (size_t i = 0; i < count && short_form; i++) {
      const char *name = registry_at(registry, i)->capability.name;
      listed[i] = probes[i].absence != ABSENCE_NONE &&
                  json_object_get(user->providers, name) == NULL &&
                  (user->provider == NULL || strcmp(user->provider, name) != 0);
    }
    size_t usable = doctor_tell_each(r, registry, user, probes, taken, listed, named);
    doctor_put_absent(r, registry, probes, listed);
    if (user->provider != NULL && registry_find(registry, str_from(user->provider)) == NULL)
      doctor_find(r, FINDING_PROBLEM, "config.yaml", "provider names a backend that does not exist",
                  "segue providers lists the backends");
    if (usable == 0 && !named)
      doctor_find(r, FINDING_PROBLEM, "providers", "no agent or API can be used here",
                  "install one of the agents above, or give an API its key");
    free(probes);
  }
  free(taken);
  free(listed);
  return ok;
}

/* --- the command --- */

static void look_at_logs(struct doctor_report *r) {
  char dir[PATHS_BYTES];
  struct err err;
  struct stat st;
  if (!paths_logs(NULL, dir, &err)) {
    doctor_find(r, FINDING_PROBLEM, "logs", err.text, "set HOME, or SEGUE_LOGS to a folder");
    return;
  }
  bool exists = stat(dir, &st) == 0;
  if (exists && !S_ISDIR(st.st_mode))
    doctor_find(r, FINDING_PROBLEM, "logs", dir,
                "this is not a folder: remove it, or set SEGUE_LOGS to another one");
  else if (exists && access(dir, W_OK | X_OK) != 0)
    doctor_find(
        r, FINDING_PROBLEM, "logs", dir,
        "the folder is not writable: change its permissions, or set SEGUE_LOGS to another one");
  else
    doctor_find(r, FINDING_OK, "logs", dir, NULL);
}

/* Says of each client how many turns have shown whether it writes the mark of its tag. */
static void look_at_marks(struct doctor_report *r) {
  char dir[PATHS_BYTES];
  struct err err;
  struct store store;
  struct aggregate_cache_told told = {0};
  struct aggregate_client client;
  if (!paths_logs(NULL, dir, &err) || !store_open(&store, dir, &err) || !store_exists(&store))
    return;
  struct aggregate *c = aggregate_new();
  bool shared = store_is_address(store.where);
  if ((shared ? aggregate_shared_read : aggregate_cache_read)(c, &store, &told, &err))
    aggregate_sort(c);
  for (size_t at = 0; aggregate_next_client(c, &at, &client);) {
    buf_auto_t text = {0};
    aggregate_client_text(&client, &text);
    doctor_find(r, FINDING_OK, "marks", buf_c(&text), NULL);
  }
  aggregate_free(c);
}

static bool is_docker(const char *engine) {
  return strcmp(engine, SANDBOX_DOCKER) == 0;
}

/* Asks a program that runs containers whether it can: docker's daemon may be down or refuse this
 * user (of which its info makes no error), podman lack what it needs. False: `why` was set. */
static bool engine_answers(const char *name, char *path, struct buf *why) {
  char *argv[] = {path, is_docker(name) ? "version" : "info", NULL};
  struct program engine = {.argv = argv, .timeout_s = ENGINE_WAIT_S};
  struct err err = {0};
  bool ran = program_run(&engine, &err), ok = ran && engine.status == 0 && !engine.timed_out;
  struct str words = sandbox_engine_words(buf_view(&engine.errors));
  if (!ran)
    buf_printf(why, "%s", err.text);
  else if (engine.timed_out)
    buf_printf(why, "%s %s did not end within %d s", name, argv[1], ENGINE_WAIT_S);
  else if (words.n > 0)
    buf_printf(why, "%s: %.*s", name, (int)words.n, words.p);
  else
    buf_printf(why, "%s %s gave status %d", name, argv[1], engine.status);
  buf_deinit(&engine.out);
  buf_deinit(&engine.errors);
  return ok;
}

/* Says what runs containers here. wanted: agents are to run in one. */
static void look_at_containers(struct doctor_report *r, const struct config *user, bool wanted,
                               bool quick) {
  static const char *const of_docker =
      "start docker's daemon, or let this user call it: until then there is no sandbox: container";
  const enum finding_kind failed = wanted ? FINDING_PROBLEM : FINDING_NOTE;
  const char *none, *engine = sandbox_engine(user->sandbox, &none);
  char path[256];
  buf_auto_t why = {0};
  if (engine == NULL)
    doctor_find(r, failed, "containers", none, "without it there is no sandbox: container");
  else if (quick || !sandbox_find_engine(engine, path, sizeof path) ||
           engine_answers(engine, path, &why))
    doctor_find(r, FINDING_OK, "containers", engine, NULL);
  else
    doctor_find(r, failed, "containers", buf_c(&why),
                is_docker(engine) ? of_docker : "until it works there is no sandbox: container");
}

/* Lists the programs of PATH that are closed with guard: such as those that lie loose in the home
 * folder, or that a link in a project's folder leads to. */
static void look_at_path(struct doctor_report *r, const json_t *sandbox) {
  static const char *const none[] = {NULL};
  const struct provider_env env = {.sandbox = sandbox};
  const struct call_request request = {0};
  const struct sandbox_policy_spec spec = {
      .env = &env, .request = &request, .cwd = "/usr", .argv = none, .envp = none};
  json_auto_t *rules = sandbox_policy_rules(&spec, SANDBOX_GUARD, NULL);
  buf_auto_t path = {0}, closed = {0};
  size_t count = 0;
  process_search_path(getenv("PATH"), &path);
  for (struct str rest = buf_view(&path); rest.p != NULL;) {
    struct str part = str_cut(&rest, ':');
    char folder[PATHS_BYTES], program[2 * PATHS_BYTES];
    print_into(folder, sizeof folder, STR_FMT, STR_ARG(part));
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
      print_into(program, sizeof program, "%s/%s", folder, entry->d_name);
      char_auto_t *real = entry->d_type == DT_DIR ? NULL : realpath(program, NULL);
      const char *access_word = real ? cli_text(sandbox_policy_rule(rules, real), "access") : NULL;
      if (access_word == NULL || strcmp(access_word, "closed") != 0 || access(real, X_OK) != 0)
        continue;
      if (++count <= DOCTOR_PROGRAMS)
        buf_printf(&closed, "%s%s", closed.n > 0 ? ", " : "", program);
    }
    if (dir != NULL)
      (void)closedir(dir);
  }
  if (count > DOCTOR_PROGRAMS)
    buf_printf(&closed, " and %zu more", count - DOCTOR_PROGRAMS);
  if (count > 0)
    doctor_find(r, FINDING_NOTE, "programs of PATH that guard closes", buf_c(&closed),
                "name their folders in sandbox: {read: [...]} of config.yaml, if agents need them");
}

/* Says what confines agents here. */
static void look_at_sandbox(struct doctor_report *r, const struct config *user, bool quick) {
  json_auto_t *sandbox = sandbox_resolve(user->sandbox, user->providers);
  const char *level = cli_text(sandbox, "level"), *why;
  (void)sandbox_mechanism(user->sandbox, &why);
  const json_t *mechanisms = json_object_get(sandbox, "mechanisms");
  const char *by = json_string_value(json_object_get(mechanisms, level));
  const bool off = strcmp(level, "off") == 0;
  char text[400];
  int version = sandbox_version();
  print_into(text, sizeof text, "agents run with %s%s%s (Landlock %d: files%s%s%s); limits by %s",
             level, by ? " by " : "", by ? by : "", version, version >= 4 ? ", TCP" : "",
             version >= 6 ? ", signals, abstract sockets" : "",
             version < 3 ? "; a file that must not be written can still be truncated" : "",
             cli_text(sandbox, "limits_by"));
  char place[256];
  const char *no = sandbox_bwrap_why_not(place, sizeof place);
  if (no == NULL)
    doctor_find(r, FINDING_OK, "bubblewrap", place, NULL);
  else
    doctor_find(
        r, FINDING_NOTE, "bubblewrap", no,
        "without it there is no mechanism: bwrap, and network: api works only in containers");
  if (sandbox_bwrap_alone())
    doctor_find(r, FINDING_NOTE, "AppArmor",
                "it allows user namespaces only to /usr/bin/bwrap and a few others: clients' own "
                "sandboxes (codex, browsers) fail here, and podman needs its package",
                "let segue sandbox them, which needs no namespaces: sandbox: guard");
  look_at_containers(r, user, strcmp(level, "container") == 0, quick);
  if (strcmp(level, "guard") == 0)
    look_at_path(r, sandbox);
  if (why == NULL)
    doctor_find(r, off ? FINDING_NOTE : FINDING_OK, "sandbox", text, NULL);
  else if (off)
    doctor_find(r, FINDING_NOTE, "sandbox", why, "agents run without one");
  else
    doctor_find(r, FINDING_PROBLEM, "sandbox", why,
                "write sandbox: off in config.yaml, or use a kernel that has it");
}

static void file_problem(struct doctor_report *r, const char *what, const struct err *err,
                         const char *remedy) {
  char text[1100];
  if (err->file[0] != '\0')
    print_into(text, sizeof text, "%s:%d:%d: %s", err->file, err->line, err->column, err->text);
  else
    print_into(text, sizeof text, "%s", err->text);
  doctor_find(r, FINDING_PROBLEM, what, text, remedy);
}

static void look_at_configuration(struct doctor_report *r) {
  char dir[PATHS_BYTES], path[PATHS_BYTES + 16], text[PATHS_BYTES + 64];
  struct err err;
  if (!paths_config(dir, &err))
    return;
  print_into(path, sizeof path, "%s/config.yaml", dir);
  bool is_there = access(path, F_OK) == 0;
  print_into(text, sizeof text, "%s%s", path, is_there ? "" : " (does not exist; none is needed)");
  doctor_find(r, FINDING_OK, "configuration", text, NULL);
}

/* Says how much of each daily limit is used. */
static void look_at_day(struct doctor_report *r, const struct provider_registry *registry) {
  static const char *const until =
      "sessions stop before their next call until midnight: raise budget in config.yaml, or resume "
      "them tomorrow";
  struct daily_usage book;
  daily_usage_init(&book);
  json_auto_t *day = daily_usage_json(&book, day_set_of(registry));
  daily_usage_deinit(&book);
  JSON_EACH(day, i, one) {
    buf_auto_t text = {0};
    bool over = json_number_value(json_object_get(one, "used")) >=
                json_number_value(json_object_get(one, "limit"));
    budget_note_tell(one, &text);
    doctor_find(r, over ? FINDING_NOTE : FINDING_OK, "budget", buf_c(&text), over ? until : NULL);
  }
}

/* Reports that a daemon of the user's service manager ends with the last login, unless the user
 * lingers. */
static void look_at_linger(struct doctor_report *r) {
  const struct passwd *user = getpwuid(getuid());
  char path[PATHS_BYTES];
  if (access("/run/systemd/system", F_OK) != 0 || user == NULL || getuid() == 0)
    return;
  print_into(path, sizeof path, "/var/lib/systemd/linger/%.200s", user->pw_name);
  if (access(path, F_OK) == 0)
    doctor_find(r, FINDING_OK, "services", "your services run without a login, and after a reboot",
                NULL);
  else
    doctor_find(r, FINDING_NOTE, "services",
                "your daemons and timers end when you log out, and after a reboot they wait until "
                "you log in",
                "loginctl enable-linger");
}

/* Runs a command as a workflow's commands are run, and without a sandbox, and says what differs. */
static int compare_sandbox(const char *command, const struct config *user, struct err *err) {
  json_auto_t *config = config_for_check(user, NULL);
  json_auto_t *held = sandbox_of_call(config, NULL, NULL, true);
  const char *argv[] = {"sh", "-c", "exec sh -c \"$1\" 2>&1", "sh", command, NULL};
  char folder[PATHS_BYTES];
  int exits[2];
  if (held == NULL || getcwd(folder, sizeof folder) == NULL) {
    err_set(err, ERR_INVALID, "commands run without a sandbox here: there is nothing to compare");
    return STATUS_USAGE;
  }
  for (size_t i = 0; i < ARRAY_LEN(exits); i++) {
    AUTO(run_program_result_deinit) struct run_program_result result = {0};
    const struct run_program_spec spec = {.argv = argv,
                                          .folder = folder,
                                          .wall_ms = LIMIT_CALL_WALL_MS,
                                          .held = i == 0 ? held : NULL,
                                          .config = config};
    if (!run_program_run(&spec, &result, err))
      return STATUS_USAGE;
    exits[i] = result.exit_status;
    cli_say(stdout, "%s: exit %d\n", i == 0 ? cli_text(held, "level") : "off", exits[i]);
    if (exits[i] != 0)
      cli_say(stdout, STR_FMT "\n", STR_ARG(str_trim(buf_view(&result.out))));
    if (result.denied.n > 0)
      cli_say(stdout, "%s\n", buf_c(&result.denied));
  }
  puts(exits[0] == exits[1] ? "both end alike" : "they differ");
  return exits[0] == exits[1] ? STATUS_COMPLETE : STATUS_FAILED;
}

static int doctor_run(const struct cli_args *args) {
  AUTO(config_deinit) struct config user = {0};
  struct err err = {0};
  bool known = true;
  const char *command = cli_value(args, "sandbox");
  if (command != NULL) {
    bool read = config_load(&user, &err);
    int status = read ? compare_sandbox(command, &user, &err) : STATUS_USAGE;
    return status == STATUS_USAGE ? cli_fail("doctor", &err) : status;
  }
  if (cli_flag(args, "try") && args->word_count == 0)
    return cli_refuse("doctor", "--try calls a model: name the backends to try");
  struct doctor_report r = {.findings = json_array(),
                            .json = cli_flag(args, "json"),
                            .colours = cli_colours(1),
                            .tries = cli_flag(args, "try"),
                            .model = cli_value(args, "model")};
  look_at_logs(&r);
  if (!cli_flag(args, "quick"))
    look_at_marks(&r);
  /* Every agent runs under the shim, which is looked for where the process table looks. */
  char path[PATHS_BYTES];
  struct err missing;
  if (process_find_shim(path, sizeof path, &missing))
    doctor_find(&r, FINDING_OK, "shim", path, NULL);
  else
    doctor_find(&r, FINDING_PROBLEM, "shim", missing.text, "install segue again");
  look_at_linger(&r);
  AUTO(err_list_deinit) struct err_list warnings = {0};
  overrides_check(&warnings);
  for (size_t i = 0; i < warnings.count; i++)
    doctor_find(&r, FINDING_PROBLEM, "prompts", warnings.items[i].text,
                "rename the file, or remove it");
  if (!config_load(&user, &err)) {
    file_problem(&r, "configuration", &err, "correct the file, or remove it");
  } else {
    look_at_configuration(&r);
    look_at_sandbox(&r, &user, cli_flag(args, "quick"));
    struct provider_registry *registry = backends_new(&user, &err);
    if (registry == NULL)
      file_problem(&r, "profiles and settings", &err, "correct the file, or remove it");
    if (registry != NULL)
      look_at_day(&r, registry);
    if (registry != NULL)
      known = doctor_providers(&r, registry, &user, args);
    registry_free(registry);
  }
  if (r.json) {
    json_auto_t *out = json_pack("{s:b, s:O}", "ok", r.problems == 0, "findings", r.findings);
    json_io_print(out, JSON_IO_TERMINAL);
  }
  json_decref(r.findings);
  if (!known)
    return STATUS_USAGE;
  return r.problems == 0 ? STATUS_COMPLETE : STATUS_FAILED;
}

const struct cli_command cmd_doctor = {COMMAND_DOCTOR, .run = doctor_run};
