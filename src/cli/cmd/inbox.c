/* segue inbox: lists what is waiting for people. */
#include "store/inbox.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "daemon/client.h"
#include "format/json_object.h"
#include "host/resume_options.h"

#include <stdlib.h>
#include <string.h>

/* Prints a text of several lines, each indented. */
static void inbox_put_text(struct str text) {
  while (text.n > 0) {
    buf_auto_t safe = {0};
    buf_safe(&safe, str_next_line(&text), false);
    printf("    %s\n", buf_c(&safe));
  }
}

static void inbox_put_list(const char *before, const json_t *list, bool numbered) {
  if (json_array_size(list) == 0)
    return;
  printf("    %s", before);
  JSON_EACH(list, i, v) {
    if (numbered)
      printf("%s%zu ", i > 0 ? "   " : "", i + 1);
    else
      printf("%s", i > 0 ? " " : "");
    cli_say(stdout, "%s", json_string_value(v) ? json_string_value(v) : "");
  }
  putchar('\n');
}

/* Shows what an approval would run. */
static void put_runs(const json_t *item) {
  const json_t *runs = json_object_get(item, "runs");
  if (runs == NULL)
    return;
  inbox_put_list("would run: ", json_object_get(runs, "command"), false);
  if (json_object_get(runs, "provider") != NULL)
    cli_say(stdout, "    would run: %s (%s)\n", cli_word(runs, "provider"),
            cli_word(runs, "permission"));
  const char *instruction = cli_word(runs, "instruction");
  if (instruction[0]) {
    printf("    with:\n");
    inbox_put_text(str_from(instruction));
  }
}

/* Shows what the session changed so far, as git diff --stat does. */
static void inbox_put_files(const json_t *files) {
  if (json_array_size(files) > 0)
    printf("    changed so far:\n");
  JSON_EACH(files, i, file) {
    const json_t *added = json_object_get(file, "added"),
                 *removed = json_object_get(file, "removed");
    const json_t *more = json_object_get(file, "more");
    if (more != NULL) {
      printf("      and %" JSON_INTEGER_FORMAT " more\n", json_integer_value(more));
      continue;
    }
    cli_say(stdout, "      %s", cli_word(file, "path"));
    if (added != NULL || removed != NULL)
      printf("  +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT, json_integer_value(added),
             json_integer_value(removed));
    putchar('\n');
  }
}

/* Adds the lines that the session changed, as `diff`. */
static void inbox_add_diff(const struct cli_args *args, json_t *item) {
  struct store store;
  struct store_ref ref;
  struct err ignored;
  buf_auto_t diff = {0}, safe = {0};
  bool cut = false;
  if (!resolve_id_store(cli_value(args, "logs"), &store, &ignored))
    return;
  store_ref(&store, cli_word(item, "id"), &ref);
  trees_diff(&ref, &diff, &cut);
  buf_safe(&safe, buf_view(&diff), true);
  if (safe.n > 0)
    json_object_set_new(item, "diff", json_stringn(safe.p, safe.n));
  if (cut)
    json_object_set_new(item, "diff_cut", json_true());
}

/* Prints one of several sessions that have stopped for the same cause. alone: with its command. */
static void inbox_put_stop(const json_t *item, bool alone) {
  cli_say(stdout, "  %s  %s  %s  since %s\n", cli_word(item, "id"), cli_word(item, "workflow"),
          cli_word(item, "movement"), cli_word(item, "since"));
  inbox_put_text(str_from(cli_word(item, "text")));
  inbox_put_files(json_object_get(item, "files"));
  inbox_put_text(str_from(cli_word(item, "diff")));
  if (alone)
    cli_say(stdout, "    %s\n", cli_word(item, "command"));
}

/* Prints the sessions that have stopped for one cause, if `first` is the first of them. */
static void inbox_put_stops(json_t *list, size_t first) {
  const char *cause = cli_word(json_array_get(list, first), "cause");
  size_t count = 0;
  JSON_EACH(list, i, item) {
    bool same = strcmp(cli_word(item, "cause"), cause) == 0;
    if (same && i < first)
      return;
    count += same;
  }
  const char *colon = strchr(cause, ':'); /* a class of errors of one provider */
  bool alone = count == 1 || colon == NULL;
  cli_say(stdout, "%zu x %s\n", count, cause);
  JSON_EACH(list, i, item) {
    if (strcmp(cli_word(item, "cause"), cause) == 0)
      inbox_put_stop(item, alone);
  }
  if (!alone)
    cli_say(stdout, "    %s%s%ssegue resume --all --reason %.*s\n",
            str_has(str_from(cause), "auth:") ? "segue doctor" : "",
            str_has(str_from(cause), "auth:") ? colon + 1 : "",
            str_has(str_from(cause), "auth:") ? ", then " : "", (int)(colon - cause), cause);
}

static void inbox_put_item(const json_t *item) {
  const char *until = cli_word(item, "until"), *kind = cli_word(item, "kind");
  bool approves = strcmp(kind, "approve") == 0;
  cli_say(stdout, "%s  %s  %s  since %s", cli_word(item, "id"), cli_word(item, "workflow"),
          cli_word(item, "movement"), cli_word(item, "since"));
  if (until[0])
    cli_say(stdout, ", until %s (then %s)", until, cli_word(item, "default"));
  putchar('\n');
  inbox_put_text(str_from(cli_word(item, "text")));
  put_runs(item);
  inbox_put_files(json_object_get(item, "files"));
  inbox_put_text(str_from(cli_word(item, "diff")));
  if (json_is_true(json_object_get(item, "diff_cut")))
    printf("    ... and more than can be shown here\n");
  inbox_put_list("choices: ", json_object_get(item, "choices"), true);
  inbox_put_list("then: ", json_object_get(item, "blocks"), false);
  const json_t *spent = json_object_get(item, "spent");
  const json_t *cost = json_object_get(spent, "cost_usd");
  json_int_t calls = json_integer_value(json_object_get(spent, "calls"));
  if (spent != NULL && calls != 0) {
    printf("    so far: %" JSON_INTEGER_FORMAT " call%s", calls, PLURAL(calls));
    if (json_is_number(cost))
      printf(", $%.4f", json_number_value(cost));
    putchar('\n');
  }
  cli_say(stdout, "    segue %s %s %s%s\n", approves ? "approve|reject" : "answer",
          cli_word(item, "id"), cli_word(item, "movement"), approves ? "" : " ...");
}

/* Returns the open questions, NULL with err set. */
static json_t *inbox_items(const struct cli_args *args, struct err *err) {
  const char *logs = cli_value(args, "logs"), *socket = cli_value(args, "socket");
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  struct store store;
  json_t *list = NULL;
  if (logs == NULL && client_ask(socket, "GET", "/v1/inbox", NULL, &reply, err)) {
    if (!client_problem(&reply, err))
      list = json_incref(json_object_get(reply.value, "inbox"));
    return list;
  }
  if (logs == NULL && (socket != NULL || err->code != ERR_NOT_FOUND))
    return NULL;
  return resolve_id_store(logs, &store, err) ? inbox_list(&store, NULL, NULL, err) : NULL;
}

/* Takes sessions out of the list; their logs stay as they are. */
static int inbox_dismiss_all(const struct cli_args *args) {
  const char *why = cli_value(args, "why"), *user = getenv("USER");
  struct err err = {0};
  if (!resume_options_by_person("inbox dismiss", args->words[1], &err))
    return cli_fail("inbox", &err);
  for (size_t i = 1; i < args->word_count; i++) {
    struct store_ref ref;
    if (!resolve_id_session(args->words[i], cli_value(args, "logs"), NULL, &ref, &err) ||
        !inbox_dismiss(&ref, user ? user : "", why ? why : "", &err))
      return cli_fail("inbox", &err);
  }
  return STATUS_COMPLETE;
}

static int inbox_verb(const struct cli_args *args) {
  struct err err = {0};
  if (strcmp(args->words[0], "dismiss") == 0 && args->word_count > 1)
    return inbox_dismiss_all(args);
  err_set(&err, ERR_USAGE, "write segue inbox, or segue inbox dismiss ID ...");
  return cli_fail("inbox", &err);
}

static int inbox_run(const struct cli_args *args) {
  struct err err = {0};
  cli_errors_as_json(cli_flag(args, "json"));
  if (args->word_count > 0)
    return inbox_verb(args);
  json_auto_t *list = inbox_items(args, &err);
  if (list == NULL)
    return cli_fail("inbox", &err);
  JSON_EACH(list, i, item) {
    if (cli_flag(args, "diff"))
      inbox_add_diff(args, item);
    if (cli_flag(args, "json"))
      json_io_print(item, JSON_IO_COMPACT);
    else if (strcmp(cli_word(item, "kind"), "stop") == 0)
      inbox_put_stops(list, i);
    else
      inbox_put_item(item);
  }
  if (json_array_size(list) == 0 && !cli_flag(args, "json"))
    fprintf(stderr, "nothing is waiting for you\n");
  return STATUS_COMPLETE;
}

const struct cli_command cmd_inbox = {COMMAND_INBOX, .run = inbox_run};
