#include "base/limits.h"
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_command *const cli_commands[] = {
    &cmd_run,     &cmd_resume, &cmd_judge,   &cmd_show,       &cmd_verify, &cmd_lint, &cmd_prompt,
    &cmd_extract, &cmd_check,  &cmd_version, &cmd_completion, &cmd_help,   NULL,
};

static int unknown(const char *word) {
  const char *names[32];
  size_t n = 0;
  for (size_t i = 0; cli_commands[i]; i++)
    names[n++] = cli_commands[i]->name;
  names[n] = NULL;
  const char *near = str_nearest(str_from(word), names);
  struct buf safe = {0};
  buf_safe(&safe, str_from(word), false);
  fprintf(stderr, "segue: there is no command \"%.100s\"%s%s%s\ntry: segue help\n", safe.p,
          near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
  buf_deinit(&safe);
  return STATUS_USAGE;
}

int main(int argc, char **argv) {
  char threads[8];
  (void)snprintf(threads, sizeof threads, "%d", LIMIT_POOL_THREADS);
  setenv("UV_THREADPOOL_SIZE", threads, 0); /* before the pool's first use */
  signal(SIGPIPE, SIG_IGN);
  if (argc < 2)
    return cmd_help.run(1, argv);
  const char *word = argv[1];
  if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
    word = "version";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
    word = "help";
  const struct cli_command *command = cli_find(word);
  return command ? command->run(argc - 1, argv + 1) : unknown(word);
}
