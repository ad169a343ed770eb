/* Makes requests to the daemon from flags, and asks it to do something to one session. */
#include "cli/session_post.h"

#include "base/str.h"
#include "cli/json_io.h"
#include "host/resume_options.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool session_post(const char *socket, const char *word, const char *action, const json_t *body,
                  struct client_reply *reply, struct err *err) {
  assert(word != NULL);
  assert(action != NULL);
  char path[256];
  bool plain = strspn(word, "0123456789abcdef-") == strlen(word) || strcmp(word, "last") == 0;
  *reply = (struct client_reply){0};
  if (!plain || strlen(word) == 0 || strlen(word) > 36)
    return err_set(err, ERR_USAGE, "\"%.80s\" is not a session's id", word);
  print_into(path, sizeof path, "/v1/sessions/%s/%s", word, action);
  return client_ask(socket, "POST", path, body, reply, err) && !client_problem(reply, err);
}

int session_post_told(const struct cli_args *args, const char *action, json_t *body) {
  const char *scenario = cli_value(args, "scenario");
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  bool ok = cli_value(args, "logs") == NULL ||
            err_set(&err, ERR_USAGE, "the daemon has its own log folder: leave out --logs");
  ok = ok && (scenario == NULL || body_path(body, "scenario", "--scenario", scenario, &err)) &&
       session_post(cli_value(args, "socket"), args->words[0], action,
                    json_object_size(body) > 0 ? body : NULL, &reply, &err);
  if (!ok) {
    status = cli_fail(action, &err);
  } else if (cli_flag(args, "json")) {
    json_io_print(reply.value, JSON_IO_COMPACT);
  } else if (!cli_flag(args, "quiet")) {
    cli_say(stdout, "%s\n", cli_word(reply.value, "id"));
  }
  return status;
}

bool body_path(json_t *body, const char *key, const char *flag, const char *path, struct err *err) {
  char *real = realpath(path, NULL);
  if (real == NULL)
    return err_set(err, ERR_USAGE, "%s %.300s does not exist", flag, path);
  bool ok = cli_is_utf8(flag, real, err);
  if (ok)
    json_object_set_new(body, key, json_string(real));
  free(real);
  return ok;
}
bool body_text(const struct cli_args *args, json_t *body, const char *flag, struct err *err) {
  const char *value = cli_value(args, flag);
  char key[64];
  if (value == NULL)
    return true;
  size_t n = strlen(flag);
  for (size_t i = 0; i <= n && i < sizeof key; i++)
    key[i] = flag[i] == '-' ? '_' : flag[i];
  if (!cli_is_utf8(flag, value, err))
    return false;
  json_object_set_new(body, key, json_string(value));
  return true;
}

bool body_providers(const struct cli_args *args, json_t *body, struct err *err) {
  const char *word;
  for (size_t i = 0; (word = cli_values(args, "provider", i)) != NULL; i++) {
    const char *equals = strrchr(word, '=');
    if (!cli_is_utf8("--provider", word, err))
      return false;
    if (equals == NULL) {
      json_object_set_new(body, "provider", json_string(word));
      continue;
    }
    json_object_setn_new(cli_member(body, "providers"), word, (size_t)(equals - word),
                         json_string(equals + 1));
  }
  return true;
}

bool body_number(const struct cli_args *args, json_t *body, const char *flag, const char *key,
                 struct err *err) {
  const char *value = cli_value(args, flag);
  long n;
  if (value == NULL)
    return true;
  if (!str_to_long(str_from(value), &n))
    return err_set(err, ERR_USAGE, "--%s must be a whole number", flag);
  json_object_set_new(body, key, json_integer(n));
  return true;
}

/* Returns an amount as a number if it is one. Which units take texts is decided by whoever knows
 * the workflow. */
static json_t *amount_of(const char *text) {
  char *end;
  long n;
  if (str_to_long(str_from(text), &n))
    return json_integer(n);
  double real = strtod(text, &end);
  bool number = end != text && *end == '\0' && isfinite(real);
  return number ? json_real(real) : json_string(text);
}

/* Adds the amounts of a flag, UNIT=N each, to the member `key`. */
static bool body_amounts(const struct cli_args *args, json_t *body, const char *flag,
                         const char *key, struct err *err) {
  const char *word;
  for (size_t i = 0; (word = cli_values(args, flag, i)) != NULL; i++) {
    const char *equals = strrchr(word, '=');
    if (!cli_is_utf8(flag, word, err))
      return false;
    if (equals == NULL || equals == word)
      return err_set(err, ERR_USAGE, "--%s %.80s: write UNIT=N, such as tokens=100000", flag, word);
    json_object_setn_new(cli_member(body, key), word, (size_t)(equals - word),
                         amount_of(equals + 1));
  }
  return true;
}

bool body_budget(const struct cli_args *args, json_t *body, struct err *err) {
  return body_amounts(args, body, "add-budget", "add_budget", err);
}

static bool body_max_movements(const struct cli_args *args, json_t *body, struct err *err) {
  const char *max = cli_value(args, "max-movements");
  bool infinite = max != NULL && strcmp(max, "infinite") == 0;
  if (infinite)
    json_object_set_new(body, "max_movements", json_string(max));
  return infinite || body_number(args, body, "max-movements", "max_movements", err);
}

bool body_judge(const struct cli_args *args, json_t *body, struct err *err) {
  const char *judge = cli_value(args, "judge");
  if (judge != NULL && !cli_is_utf8("--judge", judge, err))
    return false;
  if (judge != NULL)
    json_object_set_new(body, "judge_provider", json_string(judge));
  if (!cli_flag(args, "yes"))
    return true;
  json_object_set_new(body, "ask_above", json_false());
  return resume_options_by_person(args->command->name, "--yes", err);
}

bool body_replace(const struct cli_args *args, json_t *body, struct err *err) {
  return body_amounts(args, body, "budget", "budget", err) && body_max_movements(args, body, err);
}

bool body_steer(const struct cli_args *args, json_t *body, struct err *err) {
  return body_max_movements(args, body, err) && body_providers(args, body, err) &&
         body_text(args, body, "model", err) && body_judge(args, body, err);
}
