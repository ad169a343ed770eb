#include "cli/cli.h"
#include "cli/session_post.h"

#include <stdio.h>

static const struct cli_option options[] = {
    {"socket", 'S', "PATH", "the daemon's control socket", false},
    {0},
};

static int cancel(const char *socket, const char *word) {
  struct client_reply reply = {0};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  if (!session_post(socket, word, "cancel", &reply, &err)) {
    status = cli_fail("cancel", &err);
  } else {
    printf("cancelled  ");
    cli_put_safe(stdout, session_post_id(&reply));
    putchar('\n');
  }
  client_reply_deinit(&reply);
  return status;
}

static int run(int argc, char **argv) {
  struct cli_args args;
  int status, worst = STATUS_COMPLETE;
  if (!cli_parse(&cmd_cancel, argc, argv, 1, CLI_WORDS, &args, &status))
    return status;
  for (size_t i = 0; i < args.word_count; i++) {
    status = cancel(cli_value(&args, "socket"), args.words[i]);
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
    .run = run,
};
