/* Reads what a person says when resuming a session, and settles it against the session. */
#include "host/resume_options.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "host/preflight.h"
#include "host/sandbox_config.h"
#include "os/orphans.h"
#include "os/tmpdir.h"

#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- parse_answer ---
 *
 * Reads a person's answer to a question, from a request or from flags.
 *
 *   parsed_answer_parse(&said, body, says, &err)
 *       members of POST .../answer, .../approve, .../reject, .../steer
 *   host_reply(session, &said.core, &err)
 *   parsed_answer_deinit(&said)                       accepts a zeroed one
 *
 * The answer counts as given by the user that this process runs as; `name` in the body is the name
 * that the person gives, such as the sender of a mail. */

static const char *const answer_members[] = {"movement", "question", "text",
                                             "choice",   "name",     NULL};
static const char *const verdict_members[] = {"movement", "question", "reason", "name", NULL};
static const char *const steer_members[] = {"text", "name", NULL};

bool resume_options_members_known(const json_t *body, const char *where, const char *const *members,
                                  struct err *err) {
  JSON_MEMBERS(body, key, value) {
    size_t i = 0;
    while (members[i] != NULL && strcmp(members[i], key) != 0)
      i++;
    const char *near = members[i] ? NULL : str_nearest(str_from(key), members);
    if (members[i] == NULL)
      return err_set(err, ERR_INVALID, "unknown member \"%s%.80s\"%s%s%s%s", where, key,
                     near ? ": did you mean \"" : "", near ? where : "", near ? near : "",
                     near ? "\"?" : "");
  }
  return true;
}

static bool parsed_answer_members_known(const json_t *body, const char *const *members,
                                        struct err *err) {
  if (!resume_options_members_known(body, "", members, err))
    return false;
  JSON_MEMBERS(body, key, value) {
    bool number = strcmp(key, "question") == 0 || strcmp(key, "choice") == 0;
    if (number && (!json_is_integer(value) || json_integer_value(value) < 1))
      return err_set(err, ERR_INVALID, "%s must be a number from 1", key);
    if (!number && !json_is_string(value))
      return err_set(err, ERR_INVALID, "%s must be a text", key);
    if (!number && memchr(json_string_value(value), '\0', json_string_length(value)) != NULL)
      return err_set(err, ERR_INVALID, "%s must be a text without NUL", key);
  }
  return true;
}

static bool parsed_answer_take_name(struct parsed_answer *said, struct err *err) {
  struct str name = json_view(json_at(said->body, "name"));
  said->by = resume_options_person();
  said->core.by = said->by;
  if (json_at(said->body, "name") == NULL)
    return true;
  if (str_trim(name).n == 0 || name.n > LIMIT_NAME_BYTES || str_has_control(name))
    return err_set(err, ERR_INVALID, "name must be one line of 1 to %u bytes", LIMIT_NAME_BYTES);
  if (!str_eq(name, json_view(json_at(said->by, "name"))))
    json_put(said->by, "user", json_incref(json_at(said->by, "name")));
  json_put(said->by, "name", json_incref(json_at(said->body, "name")));
  return true;
}

static bool parsed_answer_take_answer(struct parsed_answer *said, enum answer_says says,
                                      struct err *err) {
  const json_t *text = json_at(said->body, "text"), *choice = json_at(said->body, "choice");
  if ((text == NULL) == (choice == NULL))
    return err_set(err, ERR_INVALID,
                   says == SAYS_STEER ? "give a text" : "give either text or choice");
  said->core.text = json_view(text);
  if (choice != NULL) {
    json_int_t number = json_integer_value(choice);
    said->core.says = SAYS_CHOICE;
    said->core.choice = number < LIMIT_CHOICE_COUNT ? (long)number : (long)LIMIT_CHOICE_COUNT + 1;
  }
  return true;
}

bool parsed_answer_parse(struct parsed_answer *said, const json_t *body, enum answer_says says,
                         struct err *err) {
  bool verdict = says == SAYS_APPROVE || says == SAYS_REJECT;
  *said = (struct parsed_answer){.core = {.says = says, .text = STR("")}};
  said->body = body ? json_clone(body) : json_object();
  if (!json_is_object(said->body))
    return err_set(err, ERR_INVALID, "the body must be an object, such as {\"text\": \"yes\"}");
  const char *const *members = verdict ? verdict_members : answer_members;
  if (!parsed_answer_members_known(said->body, says == SAYS_STEER ? steer_members : members, err) ||
      !parsed_answer_take_name(said, err))
    return false;
  said->core.movement = json_string_value(json_at(said->body, "movement"));
  said->core.question = (uint64_t)json_integer_value(json_at(said->body, "question"));
  if (!verdict)
    return parsed_answer_take_answer(said, says, err);
  said->core.text = json_view(json_at(said->body, "reason"));
  return true;
}

void parsed_answer_deinit(struct parsed_answer *said) {
  core_answer_deinit(&said->core);
  json_decref(said->body);
  json_decref(said->by);
  *said = (struct parsed_answer){0};
}

/* --- reading --- */

/* These lists name the members of a resume, those of a fork, and those of both. */
static const char *const resume_members[] = {
    "rule",      "why",      "max_movements", "provider", "model", "judge_provider",
    "providers", "scenario", "add_budget",    "lock",     "now",   NULL};
static const char *const fork_members[] = {
    "from",  "instruction",    "cwd",       "max_movements", "provider",
    "model", "judge_provider", "providers", "scenario",      NULL};

static bool resume_options_take_rule(struct resume_options *st, const json_t *body,
                                     struct err *err) {
  const json_t *rule = json_object_get(body, "rule"), *why = json_object_get(body, "why");
  json_int_t number = json_integer_value(rule);
  if (rule != NULL && (number < 1 || number > LIMIT_RULE_COUNT))
    return err_set(err, ERR_INVALID, "rule must be a rule's number, from 1");
  if (why != NULL && rule == NULL)
    return err_set(err, ERR_INVALID, "why needs rule");
  if (why != NULL && (!json_is_string(why) || json_string_length(why) > LIMIT_WHY_BYTES ||
                      strlen(json_string_value(why)) != json_string_length(why)))
    return err_set(err, ERR_INVALID, "why must be a text without NUL, of at most %u bytes",
                   LIMIT_WHY_BYTES);
  st->core.rule = (int)number;
  st->why = why ? xstrdup(json_string_value(why)) : NULL;
  return true;
}

static bool check_max(const json_t *body, struct err *err) {
  json_t *max = json_object_get(body, "max_movements");
  bool fits = max == NULL || str_eq_c(json_view(max), "infinite") ||
              (json_integer_value(max) >= 1 && json_integer_value(max) <= LIMIT_MOVEMENTS);
  return fits ||
         err_set(err, ERR_INVALID, "max_movements must be a number from 1 to %u, or infinite",
                 LIMIT_MOVEMENTS);
}

/* Checks a provider that is named; `where` says which member it is. */
static bool check_provider(const json_t *name, const char *where, bool executes,
                           const struct provider_registry *registry, struct err *err) {
  struct str word = json_view(name);
  if (word.n == 0)
    return err_set(err, ERR_INVALID, "%.80s must be a provider's name", where);
  if (str_eq_c(word, "command") && executes)
    return err_set(err, ERR_INVALID,
                   "provider command runs the command: of a movement; it cannot be chosen for "
                   "other movements");
  if (registry_find(registry, word) != NULL)
    return true;
  (void)registry_unknown(registry, word, err);
  err->code = ERR_INVALID; /* the value may come from a request */
  return false;
}

static bool check_providers(const json_t *body, const struct provider_registry *registry,
                            struct err *err) {
  json_t *providers = json_object_get(body, "providers");
  if (providers == NULL)
    return true;
  if (!json_is_object(providers))
    return err_set(err, ERR_INVALID, "providers must be an object of movement: provider");
  JSON_MEMBERS(providers, movement, name)
    if (!check_provider(name, movement, true, registry, err))
      return false;
  return true;
}

static bool parse_members(struct resume_options *st, const json_t *body, const char *const *members,
                          const struct provider_registry *registry, struct err *err) {
  static const char *const changes[] = {
      "max_movements", "provider", "judge_provider", "providers", "model", "add_budget", "lock"};
  *st = (struct resume_options){.changed = json_object()};
  if (body == NULL)
    return true;
  if (!json_is_object(body))
    return err_set(err, ERR_INVALID, "the body must be an object, such as {\"provider\": \"x\"}");
  const json_t *provider = json_object_get(body, "provider");
  const json_t *judge = json_object_get(body, "judge_provider");
  const json_t *model = json_object_get(body, "model");
  for (size_t i = 0; i < ARRAY_LEN(changes); i++)
    json_object_set(st->changed, changes[i], json_object_get(body, changes[i]));
  if (!resume_options_members_known(body, "", members, err) ||
      !resume_options_take_rule(st, body, err) || !check_max(body, err) ||
      (provider != NULL && !check_provider(provider, "provider", true, registry, err)) ||
      (judge != NULL && !check_provider(judge, "judge_provider", false, registry, err)) ||
      !check_providers(body, registry, err))
    return false;
  return model == NULL || json_string_length(model) > 0 ||
         err_set(err, ERR_INVALID, "model must be a model's name");
}

bool resume_options_parse(struct resume_options *st, const json_t *body,
                          const struct provider_registry *registry, struct err *err) {
  if (!parse_members(st, body, resume_members, registry, err))
    return false;
  /* Which amounts are allowed depends on the session, see resume_options_settle. */
  const json_t *added = json_object_get(body, "add_budget"), *lock = json_object_get(body, "lock");
  const json_t *now = json_object_get(body, "now");
  if (now != NULL && !json_is_true(now))
    return err_set(err, ERR_INVALID, "now must be true: leave it out to wait for other sessions");
  if (now != NULL)
    json_object_set_new(st->changed, "after", json_array());
  if (added != NULL && (!json_is_object(added) || json_object_size(added) == 0 ||
                        json_object_size(added) > LIMIT_ADD_BUDGET_COUNT))
    return err_set(err, ERR_INVALID, "add_budget must be an object, such as {\"tokens\": 100000}");
  return lock == NULL || json_is_false(lock) ||
         err_set(err, ERR_INVALID, "lock must be false: leave it out for the folder's lock");
}

bool resume_options_parse_fork(struct resume_options *st, const json_t *body,
                               const struct provider_registry *registry, struct err *err) {
  return parse_members(st, body, fork_members, registry, err);
}

void resume_options_set_scenario(struct resume_options *st, json_t *scenario) {
  json_object_set_new(st->changed, "scenario", scenario);
}

bool resume_options_says(const struct resume_options *st) {
  return st->core.rule > 0 || json_object_size(st->changed) > 0;
}

/* --- settling --- */

bool resume_options_refuse(const char *program, const char *command, const char *word,
                           struct err *err) {
  char line[LIMIT_NAME_BYTES], path[PATH_MAX];
  int rc = program[0] == '/' ? -1 : 0;
  print_into(line, sizeof line, "segue %s %.80s", command, word);
  for (unsigned i = 0; rc != 0 && i < LIMIT_TMPDIR_NOTE_COUNT; i++) {
    print_into(path, sizeof path, TMPDIR_NOTE, program, i);
    rc = symlink(line, path);
  }
  return err_set(err, ERR_IO, "only a person may do that: a program that a session runs tried %s",
                 line);
}

bool resume_options_by_person(const char *command, const char *word, struct err *err) {
  bool held;
  char_auto_t *program = orphan_program((long)getpid(), &held);
  return program == NULL || resume_options_refuse(program, command, word, err);
}

json_t *resume_options_person(void) {
  char name[64];
  const struct passwd *user = getpwuid(geteuid());
  if (user != NULL && user->pw_name[0] && utf8_valid(user->pw_name, strlen(user->pw_name)))
    print_into(name, sizeof name, "%s", user->pw_name);
  else
    print_into(name, sizeof name, "uid %ld", (long)geteuid());
  return json_pack("{sI ss}", "uid", (json_int_t)geteuid(), "name", name);
}

void resume_options_set_browser(json_t *by, unsigned browser) {
  if (browser > 0)
    json_object_set_new(by, "window", json_integer(browser));
}

json_t *resume_options_config(const json_t *config, const struct config *user,
                              const json_t *changed) {
  static const char *const own[] = {"cwd",           "provider",    "providers",  "model",
                                    "options",       "interactive", "submitted",  "judge_provider",
                                    "max_movements", "scenario",    "workspace",  "lock",
                                    "source",        "on",          "may_change", "task_typed"};
  json_t *now = json_object();
  for (size_t i = 0; i < ARRAY_LEN(own); i++)
    json_object_set(now, own[i], json_object_get(config, own[i]));
  if (json_object_get(changed, "provider") != NULL) { /* they were meant for the earlier one */
    json_object_del(now, "providers");
    json_object_del(now, "model");
  }
  config_resolve(user, now);
  sandbox_keep_inherited(config, now);
  sandbox_make_ready(now);
  json_object_update(now, (json_t *)changed);
  json_object_del(now, "add_budget"); /* not a setting: it is added once */
  return now;
}

bool resume_options_movements_known(const json_t *changed, const struct workflow *workflow,
                                    struct err *err) {
  const json_t *providers = json_object_get(changed, "providers");
  JSON_MEMBERS(providers, movement, name) {
    if (workflow_find(workflow, str_from(movement)) < 0)
      return err_set(err, ERR_USAGE, "the workflow has no movement \"%.80s\"", movement);
  }
  return true;
}

bool resume_options_settle(struct resume_options *st, const struct core *core,
                           const struct config *user, const struct provider_registry *registry,
                           bool has_scenario, struct err *err) {
  bool accepts = str_among(buf_view(&core->stop_reason), SESSION_STOPS_TO_ACCEPT);
  bool waits = core_waits(core) || str_eq_c(buf_view(&core->stop_reason), "after");
  bool lets_go = json_object_get(st->changed, "after") != NULL;
  if (waits && !lets_go)
    return err_set(
        err, ERR_USAGE,
        "it is to begin after other sessions: segue resume --now begins it without them");
  if (lets_go && !waits)
    return err_set(err, ERR_USAGE, "it waits for no other session: leave out --now");
  if (!resume_options_movements_known(st->changed, core->workflow, err) ||
      (accepts && !resume_options_by_person("resume", core->session, err)))
    return false;
  st->by = resume_options_person();
  resume_options_set_browser(st->by, st->browser);
  st->config = resume_options_config(core->config, user, st->changed);
  st->core = (struct core_steer){.by = st->by,
                                 .config = st->config,
                                 .changed = st->changed,
                                 .rule = st->core.rule,
                                 .why = st->why};
  const struct preflight p = {.workflow = core->workflow,
                              .config = st->config,
                              .registry = registry,
                              .has_scenario = has_scenario};
  return core_steer_check(core, &st->core, err) &&
         (json_object_size(st->changed) == 0 || preflight_passes(&p, err));
}

void resume_options_deinit(struct resume_options *st) {
  json_decref(st->by);
  json_decref(st->config);
  json_decref(st->changed);
  free(st->why);
  *st = (struct resume_options){0};
}
