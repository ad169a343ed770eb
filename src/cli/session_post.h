/* session_post.h - sends requests about one session to the daemon, and fills their bodies from
 * flags. Commands that work without a daemon read the flags here too. A flag that was not given
 * adds no member. */
#ifndef SEGUE_CLI_SESSION_POST_H
#define SEGUE_CLI_SESSION_POST_H

#include "cli/cli.h"
#include "daemon/client.h"

/* Sends POST /v1/sessions/WORD/ACTION. socket: --socket or NULL. body may be NULL. False: err says
 * why, or why the daemon refused. Deinit the reply in any case. */
bool session_post(const char *socket, const char *word, const char *action, const json_t *body,
                  struct client_reply *reply, struct err *err) MUST_CHECK;
/* Does the same with the word and the flags --socket, --scenario, --logs, --json and --quiet;
 * prints the answer or the error, and returns the exit status. */
int session_post_told(const struct cli_args *args, const char *action, json_t *body);

/* Adds a path, always absolute, because the daemon runs in another folder. */
bool body_path(json_t *body, const char *key, const char *flag, const char *path,
               struct err *err) MUST_CHECK;
/* Adds a member with the flag's name, with _ for -. */
bool body_text(const struct cli_args *args, json_t *body, const char *flag,
               struct err *err) MUST_CHECK;
bool body_number(const struct cli_args *args, json_t *body, const char *flag, const char *key,
                 struct err *err) MUST_CHECK;
/* Adds --provider P and MOVEMENT=P. */
bool body_providers(const struct cli_args *args, json_t *body, struct err *err) MUST_CHECK;

/* Adds --judge P and --yes, which only a person says. */
bool body_judge(const struct cli_args *args, json_t *body, struct err *err) MUST_CHECK;
/* Adds what --budget UNIT=N and --max-movements set in place of the workflow's own. */
bool body_replace(const struct cli_args *args, json_t *body, struct err *err) MUST_CHECK;
/* Adds --add-budget UNIT=N, MOVEMENT.UNIT=N. */
bool body_budget(const struct cli_args *args, json_t *body, struct err *err) MUST_CHECK;
bool body_steer(const struct cli_args *args, json_t *body, struct err *err) MUST_CHECK;

#endif
