/* Chooses the command and runs it. */
#include "base/limits.h"
#include "base/log.h"
#include "cli/cli.h"
#include "os/random.h"
#include "os/tmpdir.h"
#include "store/store.h"
#include "store/worker.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_command *const cli_commands[] = {
    /* One line for each, so that two changes seldom meet. */
    /* clang-format off */
    &cmd_run,
    &cmd_resume,
    &cmd_fork,
    &cmd_diff,
    &cmd_merge,
    &cmd_integrate,
    &cmd_pr,
    &cmd_discard,
    &cmd_worktrees,
    &cmd_submit,
    &cmd_serve,
    &cmd_ls,
    &cmd_show,
    &cmd_cancel,
    &cmd_inbox,
    &cmd_answer,
    &cmd_approve,
    &cmd_reject,
    &cmd_judge,
    &cmd_ask,
    &cmd_verify,
    &cmd_audit,
    &cmd_report,
    &cmd_web,
    &cmd_replay,
    &cmd_rejudge,
    &cmd_test,
    &cmd_compare,
    &cmd_agree,
    &cmd_label,
    &cmd_heads,
    &cmd_rm,
    &cmd_store,
    &cmd_init,
    &cmd_facets,
    &cmd_lint,
    &cmd_plan,
    &cmd_prompt,
    &cmd_graph,
    &cmd_extract,
    &cmd_check,
    &cmd_schema,
    &cmd_providers,
    &cmd_doctor,
    &cmd_config,
    &cmd_version,
    &cmd_completion,
    &cmd_mcp,
    &cmd_hook,
    &cmd_manual,
    &cmd_help,
    NULL,
    /* clang-format on */
};

static int report_unknown_command(const char *word) {
  const char *names[ARRAY_LEN(cli_commands)];
  size_t n = 0;
  for (size_t i = 0; cli_commands[i]; i++)
    names[n++] = cli_commands[i]->name;
  names[n] = NULL;
  const char *near = str_nearest(str_from(word), names);
  struct buf safe = {0};
  (void)cli_fit(&safe, str_from(word), 100);
  fprintf(stderr, "segue: there is no command \"%s\"%s%s%s\ntry: segue help\n", buf_c(&safe),
          near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
  buf_deinit(&safe);
  return STATUS_USAGE;
}

/* Seeds the tables of JSON objects, against keys that are made to collide; jansson would open
 * /dev/urandom for it. */
static void seed_tables(void) {
  size_t seed;
  if (random_try(&seed, sizeof seed))
    json_object_seed(seed);
}

int main(int argc, char **argv) {
  char threads[8];
  bool serves = argc > 1 && strcmp(argv[1], "serve") == 0;
  (void)snprintf(threads, sizeof threads, "%u", store_pool_threads(serves));
  setenv("UV_THREADPOOL_SIZE", threads, 0); /* before the pool is first used */
  json_set_alloc_funcs(xmalloc, free);      /* no JSON value lacks memory: see log.h */
  cli_begin();
  seed_tables();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* beyond a limit on file sizes the write fails and we go on */
  if (argc < 2)
    return cli_end("help", cmd_help.run(1, argv));
  const char *word = argv[1];
  if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
    word = "version";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
    word = "help";
  const struct cli_command *command = cli_find(word);
  if (command == NULL)
    return report_unknown_command(word);
  int status = command->run(argc - 1, argv + 1);
  worker_leave_all();
  tmpdir_leave();
  return cli_end(command->name, status);
}
