/* segue attest: says in a signed statement what a session's end rests on. */
#include "audit/verified_reader.h"
#include "base/file.h"
#include "cli/attestation.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/run.h"
#include "git/work.h"
#include "host/resume_options.h"
#include "os/clock.h"
#include "view/verification.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Holds what one pass over the log gathers: records of it, and what is made of them. */
struct attesting {
  json_t *start, *judgment, *committed, *evidence, *hidden, *end;
  json_t *turns;    /* turn -> movement */
  json_t *children; /* turn -> null, of children with a worktree of their own */
  json_t *commands; /* turn -> movement, of turns whose call is a command */
  json_t *checks;   /* movement -> its last exit and tests, and whether work followed */
  json_t *agents;   /* who worked: {provider, model} */
  json_t *places;   /* folders in which agents worked */
  json_t *unproved; /* sentences */
  bool changed;     /* there are changes that no commit has */
  uint64_t records;
  char head[SHA256_HEX];
  const char *seal;
};

static void attesting_deinit(struct attesting *a) {
  json_t *const owned[] = {a->start,  a->judgment, a->committed, a->evidence, a->hidden,
                           a->end,    a->turns,    a->children,  a->commands, a->checks,
                           a->agents, a->places,   a->unproved};
  for (size_t i = 0; i < ARRAY_LEN(owned); i++)
    json_decref(owned[i]);
}

static void attest_call_start(struct attesting *a, const json_t *r, const char *movement) {
  json_auto_t *agent = json_object();
  if (!str_eq_c(json_view_at(r, "purpose"), "execute"))
    return;
  if (str_eq_c(json_view_at(r, "provider"), "command")) {
    char turn[24];
    print_into(turn, sizeof turn, "%lld", (long long)json_int_at(r, "turn"));
    json_object_set_new(a->commands, turn, json_string(movement));
    return;
  }
  json_put_text(agent, "provider", json_view_at(r, "provider"));
  json_put_text(agent, "model", json_view_at(r, "model"));
  JSON_EACH(a->agents, i, other)
    if (json_same(other, agent))
      return;
  json_array_append(a->agents, agent);
}

/* Returns the members of a record that are among these words. */
static json_t *attest_members(const json_t *r, const char *words) {
  json_t *some = json_object();
  JSON_MEMBERS(r, name, value)
    if (str_among(str_from(name), words))
      json_object_set(some, name, value);
  return some;
}

static void attest_call_end(struct attesting *a, const json_t *r) {
  char turn[24];
  print_into(turn, sizeof turn, "%lld", (long long)json_int_at(r, "turn"));
  const char *movement = json_string_value(json_object_get(a->commands, turn));
  if (json_array_size(json_at(r, "files")) > 0 || json_at(r, "files_unknown") != NULL) {
    a->changed = true;
    JSON_MEMBERS(a->checks, name, check)
      json_put_true(check, "stale", true);
  }
  if (movement == NULL)
    return;
  json_object_set_new(a->checks, movement, attest_members(r, "exit tests error"));
}

static void attest_workspace(struct attesting *a, const json_t *r) {
  const json_t *data = json_at(r, "data");
  struct str event = json_view_at(r, "event");
  char turn[24];
  print_into(turn, sizeof turn, "%lld", (long long)json_int_at(r, "turn"));
  if (str_eq_c(event, "made"))
    json_array_append(a->places, json_at(data, "path"));
  if (str_eq_c(event, "made") && json_at(r, "turn") != NULL)
    json_object_set_new(a->children, turn, json_null());
  if (!str_eq_c(event, "committed") || json_object_get(a->children, turn) != NULL)
    return; /* a child's commit is not the session's */
  a->changed = false;
  if (json_is_string(json_at(data, "commit")) || json_is_string(json_at(data, "head")))
    json_keep(&a->committed, data);
}

static void attest_take(struct attesting *a, json_t *r) {
  struct str type = json_view_at(r, "type");
  char turn[24];
  print_into(turn, sizeof turn, "%lld", (long long)json_int_at(r, "turn"));
  if (str_eq_c(type, "session_start")) {
    json_keep(&a->start, r);
    json_array_append(a->places, json_at(json_at(r, "config"), "cwd"));
  } else if (str_eq_c(type, "turn_start")) {
    json_object_set(a->turns, turn, json_at(r, "movement"));
  } else if (str_eq_c(type, "call_start")) {
    attest_call_start(a, r, json_string_value(json_object_get(a->turns, turn)));
  } else if (str_eq_c(type, "call_end")) {
    attest_call_end(a, r);
  } else if (str_eq_c(type, "workspace")) {
    attest_workspace(a, r);
  } else if (str_eq_c(type, "judgment") && str_eq_c(json_view_at(r, "next"), "COMPLETE")) {
    json_keep(&a->judgment, r); /* a group's child has one before its group: the last one counts */
  } else if (str_eq_c(type, "evidence") && str_eq_c(json_view_at(r, "event"), "found")) {
    json_keep(&a->evidence, json_at(r, "data"));
  } else if (str_eq_c(type, "hidden_tests")) {
    json_keep(&a->hidden, json_at(r, "data"));
  } else if (str_eq_c(type, "session_end")) {
    json_keep(&a->end, r);
  }
}

/* Reads the log, which must be sound and at its end. */
static bool attest_read(struct attesting *a, const struct store_ref *ref, struct err *err) {
  static const char *const seals[] = {"unsealed", "sealed", "sealed late"};
  struct verified_reader b = {0};
  struct verify_result result;
  struct verification *p = verification_new(err);
  json_t *r;
  bool ok = p != NULL && verification_read(p, ref, &result, err);
  verification_free(p);
  if (!ok || !verified_open(&b, ref, false, err))
    return false;
  while ((r = verified_next(&b)) != NULL) {
    attest_take(a, r);
    json_decref(r);
  }
  a->records = b.records;
  memcpy(a->head, b.hash, sizeof a->head);
  ok = b.state == VERIFIED_END && result.state == VERIFY_COMPLETE && result.records == b.records;
  verified_close(&b);
  a->seal = seals[result.seal];
  if (!ok)
    return err_set(err, ERR_CORRUPT,
                   "its log is not whole or not what was written: see segue verify");
  if (!str_eq_c(json_view_at(a->end, "outcome"), "complete"))
    return err_set(err, ERR_INVALID,
                   "it did not end as complete, but as %.40s: there is nothing to attest",
                   json_word_at(a->end, "outcome"));
  return true;
}

static void attest_doubt(struct attesting *a, bool is, const char *what, const char *why) {
  if (is)
    json_array_append_new(a->unproved, json_sprintf("%s: %s", what, why));
}

/* Says what the session does not show. */
static void attest_doubts(struct attesting *a) {
  const char *basis = json_word_at(a->end, "basis");
  const char *evidence = json_word_at(a->evidence, "evidence");
  const char *level = json_word_at(json_at(json_at(a->start, "config"), "sandbox"), "level");
  attest_doubt(a, strcmp(basis, "shown") != 0, "that the work does it, which no check shows",
               basis[0] != '\0' ? basis : "of unknown basis");
  attest_doubt(a, evidence[0] != '\0' && strcmp(evidence, "shown") != 0,
               "that the check asks for the work", evidence);
  attest_doubt(a, json_object_size(a->checks) == 0, "that anything runs", "no command checked it");
  JSON_MEMBERS(a->checks, name, check) {
    attest_doubt(a, json_is_true(json_at(check, "stale")), "that a check passes on later changes",
                 name);
    attest_doubt(a, json_int_at(check, "exit") != 0 || json_at(check, "error") != NULL,
                 "that a check passes, whose last run failed", name);
  }
  attest_doubt(a, a->hidden != NULL && !json_is_true(json_at(a->hidden, "passes")),
               "that hidden tests pass", "they did not");
  attest_doubt(a, json_object_size(a->children) > 0, "that the commit has all of the work",
               "children had worktrees of their own");
  attest_doubt(a, strcmp(a->seal, "unsealed") == 0, "that the log was not rewritten", a->seal);
  attest_doubt(a, strcmp(level, "off") == 0, "what agents touched besides", "they had no sandbox");
  attest_doubt(a, true, "that what was recorded is true",
               "whoever runs segue can record what they like");
}

/* Finds the commit: the one that the session made, or that a person names. */
static bool attest_commit(struct attesting *a, const char *named, char commit[COMMIT_BYTES],
                          struct err *err) {
  const char *made = json_word_at(a->committed, "commit");
  if (made[0] == '\0')
    made = json_word_at(a->committed, "head");
  if (named == NULL && (made[0] == '\0' || a->changed))
    return err_set(err, ERR_USAGE,
                   "the session %s: name the commit that has its work with --commit",
                   made[0] == '\0' ? "made no commit" : "went on after its last commit");
  const char *cwd = json_word_at(json_at(a->start, "config"), "cwd");
  buf_auto_t word = buf_of("%s^{commit}", named != NULL ? named : made);
  char_auto_t *found = git_line(cwd, err, "rev-parse", "--verify", "--quiet", "--end-of-options",
                                buf_c(&word), NULL);
  if (found == NULL)
    return err_wrap(err, "there is no commit %.80s in %.200s", named != NULL ? named : made, cwd);
  print_into(commit, COMMIT_BYTES, "%s", found);
  if (strcmp(commit, made) != 0 || a->changed)
    attest_doubt(a, true, "that the commit is the session's work", "a person named it");
  return true;
}

static json_t *attest_judge(const struct attesting *a) {
  json_t *judge = attest_members(a->judgment, "turn movement rule condition method match_method "
                                              "provider model reader prompt_sha256");
  json_put(judge, "stages",
           json_integer((json_int_t)json_array_size(json_at(a->judgment, "stages"))));
  return judge;
}

static json_t *attest_statement(const struct attesting *a, const char *commit) {
  char now[RECORD_TIME_BYTES], task[SHA256_HEX];
  struct str words = json_view_at(a->start, "task");
  record_time(clock_real_ms(), now);
  sha256_hex(words.p, words.n, "", 0, task);
  json_t *predicate =
      json_pack("{sO ss sO* sO* s{sO* sO*} ss sO* so sO sO sO sO s{sI ss ss}}", "session",
                json_at(a->start, "session"), "attested", now, "ended", json_at(a->end, "ts"),
                "outcome", json_at(a->end, "outcome"), "workflow", "name",
                json_at(json_at(a->start, "workflow"), "name"), "sha256",
                json_at(a->start, "workflow_sha256"), "task_sha256", task, "basis",
                json_at(a->end, "basis"), "judge", attest_judge(a), "agents", a->agents, "checks",
                a->checks, "not_proved", a->unproved, "versions", json_at(a->start, "versions"),
                "log", "records", (json_int_t)a->records, "head", a->head, "seal", a->seal);
  if (a->evidence != NULL)
    json_object_set(predicate, "evidence", json_at(a->evidence, "evidence"));
  if (a->hidden != NULL)
    json_object_set(predicate, "hidden_tests", a->hidden);
  return json_pack("{ss s[{ss s{ss}}] ss so}", "_type", "https://in-toto.io/Statement/v1",
                   "subject", "name", "commit", "digest", "gitCommit", commit, "predicateType",
                   ATTESTATION_PREDICATE, "predicate", predicate);
}

/* Refuses a key that lies where an agent of the session could have read it. */
static bool attest_key_is_apart(const struct attesting *a, const char *key, struct err *err) {
  if (access(key, F_OK) != 0)
    return err_set(err, ERR_NOT_FOUND, "there is no key %s: name one with --key", key);
  JSON_EACH(a->places, i, place)
    if (attestation_is_within(key, json_view(place).p, true))
      return err_set(err, ERR_USAGE,
                     "agents of the session could read the key %s: keep it elsewhere, such as in "
                     "~/.ssh",
                     key);
  return true;
}

static int attest(const struct cli_args *args) {
  AUTO(attesting_deinit)
  struct attesting a = {.turns = json_object(),
                        .children = json_object(),
                        .commands = json_object(),
                        .checks = json_object(),
                        .agents = json_array(),
                        .places = json_array(),
                        .unproved = json_array()};
  struct err err = {0};
  struct store_ref ref;
  char commit[COMMIT_BYTES];
  const char *home = getenv("HOME"), *path = cli_value(args, "output");
  buf_auto_t key = buf_of("%s/.ssh/id_ed25519", home != NULL ? home : ""), envelope = {0};
  if (!resume_options_by_person("attest", args->words[0], &err) ||
      !resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err) ||
      !attest_read(&a, &ref, &err) ||
      !attest_key_is_apart(&a, cli_value_or(args, "key", buf_c(&key)), &err) ||
      !attest_commit(&a, cli_value(args, "commit"), commit, &err))
    return cli_fail("attest", &err);
  attest_doubts(&a);
  json_auto_t *statement = attest_statement(&a, commit);
  if (!attestation_sign(statement, cli_value_or(args, "key", buf_c(&key)), &envelope, &err) ||
      (path != NULL && !file_write_new(path, buf_view(&envelope), &err)))
    return cli_fail("attest", &err);
  if (path == NULL)
    fputs(buf_c(&envelope), stdout);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_attest = {COMMAND_ATTEST, .run = attest};
