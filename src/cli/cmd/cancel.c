/* segue cancel: ends sessions of the daemon for good. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/session_post.h"

#include <stdio.h>

static const struct cli_option options[] = {
    {"json", 0, NULL, "print the session, or the error, as a JSON object a line", false},
    {"socket", 'S', "PATH", "the daemon's control socket", false},
    {0},
};

static int cancel(const struct cli_args *args, const char *word) {
  struct client_reply reply = {0};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  if (!session_post(cli_value(args, "socket"), word, "cancel", NULL, &reply, &err)) {
    status = cli_fail("cancel", &err);
  } else if (cli_flag(args, "json")) {
    json_io_print(reply.value, JSON_IO_COMPACT);
  } else {
    printf("cancelled  ");
    cli_put_safe(stdout, session_post_id(&reply));
    putchar('\n');
  }
  client_reply_deinit(&reply);
  return status;
}

static int cancel_run(int argc, char **argv) {
  struct cli_args args;
  int status, worst = STATUS_COMPLETE;
  if (!cli_parse(&cmd_cancel, argc, argv, 1, CLI_WORDS, &args, &status))
    return status;
  cli_errors_as_json(cli_flag(&args, "json"));
  for (size_t i = 0; i < args.word_count; i++) {
    status = cancel(&args, args.words[i]);
    worst = status != STATUS_COMPLETE ? status : worst;
  }
  return worst;
}

const struct cli_command cmd_cancel = {
    .name = "cancel",
    .arguments = "ID...",
    .summary = "end sessions of the daemon for good",
    .help =
        "ID is an id, a unique beginning of one, or last. What runs is ended with all that it\n"
        "started. A session of `segue run` is cancelled in its terminal, with Ctrl-\\.\n"
        "Exit: 0 cancelled, 1 it has ended already or cannot be, 2 there is none, or no daemon.",
    .options = options,
    .run = cancel_run,
};
