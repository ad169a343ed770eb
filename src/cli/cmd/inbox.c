/* segue inbox: lists what is waiting for people. */
#include "store/inbox.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "daemon/client.h"

#include <string.h>

static const struct cli_option options[] = {
    {"json", 0, NULL, "print one JSON object per line, with texts up to 2,000 bytes", false},
    {"diff", 'd', NULL, "also show the lines that each session has changed so far", false},
    CLI_STORE_OPTIONS("read this log folder instead of asking the daemon"),
    {"socket", 'S', "PATH", "the daemon's control socket", false},
    {0},
};

/* Prints a text of several lines, each indented. */
static void inbox_put_text(struct str text) {
  while (text.n > 0) {
    buf_auto_t safe = {0};
    buf_safe(&safe, str_next_line(&text), false);
    printf("    %s\n", buf_c(&safe));
  }
}

static void inbox_put_list(const char *before, const json_t *list, bool numbered) {
  size_t i;
  const json_t *v;
  if (json_array_size(list) == 0)
    return;
  printf("    %s", before);
  json_array_foreach((json_t *)list, i, v) {
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
  size_t i;
  const json_t *file;
  if (json_array_size(files) > 0)
    printf("    changed so far:\n");
  json_array_foreach((json_t *)files, i, file) {
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
  const json_t *cost = json_object_get(spent, "cost");
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

static int inbox_run(const struct cli_args *args) {
  struct err err = {0};
  size_t i;
  json_t *item;
  cli_errors_as_json(cli_flag(args, "json"));
  json_auto_t *list = inbox_items(args, &err);
  if (list == NULL)
    return cli_fail("inbox", &err);
  json_array_foreach(list, i, item) {
    if (cli_flag(args, "diff"))
      inbox_add_diff(args, item);
    if (cli_flag(args, "json"))
      json_io_print(item, JSON_IO_COMPACT);
    else
      inbox_put_item(item);
  }
  if (json_array_size(list) == 0 && !cli_flag(args, "json"))
    fprintf(stderr, "nothing is waiting for you\n");
  return STATUS_COMPLETE;
}

const struct cli_command cmd_inbox = {
    .name = "inbox",
    .arguments = "[options]",
    .summary = "list what is waiting for a person",
    .help = "For each question: the session, how long it has been waiting, what would run, the "
            "choices, where the session can go next, and what it has used so far; the longest "
            "wait comes first. A waiting session takes up no slot and no process. Reply with "
            "segue answer, approve or reject. Without a daemon the log folder is read.",
    .options = options,
    .run = inbox_run,
};
