#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const char exit_help[] =
    "  0  COMPLETE (of other commands: done, nothing to complain about)\n"
    "  1  failed, or stopped resumably: segue resume goes on\n"
    "  2  bad usage or file\n"
    "  3  ABORT\n"
    "  4  no rule matched\n"
    "  5  max_movements was reached\n"
    "  6  cancelled\n"
    "130  interrupted (after a clean, logged stop)\n";

static void first_page(void) {
  printf("segue " SEGUE_VERSION ": runs coding agents through the movements of a workflow, judges\n"
         "after each one where to go next, and keeps the proof of every judgment.\n\n"
         "usage: segue COMMAND [arguments]\n\n");
  for (size_t i = 0; cli_commands[i]; i++)
    if (!cli_commands[i]->hidden)
      printf("  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
  printf("\n  segue run review.yaml --task 'mend the queue' --scenario replies.yaml\n"
         "  segue show last review     one judgment in full\n\n"
         "segue help COMMAND explains one; segue help exit lists the exit statuses.\n");
}

static int run(int argc, char **argv) {
  struct cli_args args;
  int status;
  if (argc <= 1) {
    first_page();
    return STATUS_COMPLETE;
  }
  if (!cli_parse(&cmd_help, argc, argv, 0, 1, &args, &status))
    return status;
  if (args.word_count == 0) {
    first_page();
    return STATUS_COMPLETE;
  }
  if (strcmp(args.words[0], "exit") == 0) {
    fputs(exit_help, stdout);
    return STATUS_COMPLETE;
  }
  const struct cli_command *command = cli_find(args.words[0]);
  if (command == NULL) {
    struct buf safe = {0};
    (void)cli_fit(&safe, str_from(args.words[0]), 100);
    fprintf(stderr, "segue help: there is no command \"%s\"\n", buf_c(&safe));
    buf_deinit(&safe);
    return STATUS_USAGE;
  }
  cli_print_help(command);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_help = {
    .name = "help",
    .arguments = "[COMMAND|exit]",
    .summary = "explain a command, or the exit statuses",
    .run = run,
};
