/* segue completion: prints what a shell needs to complete segue's words. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* Words come from the tables that the parser uses. */
static void print_options(const struct cli_command *command, const char *prefix) {
  for (const struct cli_option *o = command->options; o && o->name; o++)
    printf("%s--%s", prefix, o->name);
}

static bool takes_provider(const struct cli_command *command) {
  for (const struct cli_option *o = command->options; o && o->name; o++)
    if (strcmp(o->name, "provider") == 0)
      return true;
  return false;
}

static void bash(void) {
  printf("_segue() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} words\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"");
  for (size_t i = 0; cli_commands[i]; i++)
    printf("%s%s", i ? " " : "", cli_commands[i]->name);
  printf("\"\n  else\n    case ${COMP_WORDS[1]} in\n");
  for (size_t i = 0; cli_commands[i]; i++) {
    printf("      %s) words=\"--help", cli_commands[i]->name);
    print_options(cli_commands[i], " ");
    printf("\" ;;\n");
  }
  printf("    esac\n  fi\n"
         "  case ${COMP_WORDS[COMP_CWORD-1]} in --provider|-p) "
         "words=$(segue providers --names 2>/dev/null); "
         "mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"); return ;; esac\n"
         "  case $cur in -*) ;; *) [ \"$COMP_CWORD\" -gt 1 ] && { compopt -o default; "
         "COMPREPLY=(); return; } ;; esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n"
         "complete -F _segue segue\n");
}

static void zsh(void) {
  printf("#compdef segue\n_segue() {\n  if (( CURRENT == 2 )); then\n    _values command");
  for (size_t i = 0; cli_commands[i]; i++)
    printf(" '%s[%s]'", cli_commands[i]->name, cli_commands[i]->summary);
  printf("\n    return\n  fi\n  case $words[2] in\n");
  for (size_t i = 0; cli_commands[i]; i++) {
    printf("    %s) _arguments '*:file:_files' --help", cli_commands[i]->name);
    print_options(cli_commands[i], " ");
    if (takes_provider(cli_commands[i]))
      printf("':provider:($(segue providers --names 2>/dev/null))'");
    printf(" ;;\n");
  }
  printf("  esac\n}\ncompdef _segue segue\n");
}

static void fish(void) {
  for (size_t i = 0; cli_commands[i]; i++) {
    const struct cli_command *c = cli_commands[i];
    printf("complete -c segue -n __fish_use_subcommand -a %s -d '%s'\n", c->name, c->summary);
    for (const struct cli_option *o = c->options; o && o->name; o++)
      printf("complete -c segue -n '__fish_seen_subcommand_from %s' -l %s%s%s -d '%s'\n", c->name,
             o->name, o->argument ? " -r" : "",
             strcmp(o->name, "provider") == 0 ? " -f -a '(segue providers --names)'" : "", o->help);
  }
}

static int completion_run(int argc, char **argv) {
  struct cli_args args;
  int status;
  if (!cli_parse(&cmd_completion, argc, argv, 1, 1, &args, &status))
    return status;
  if (strcmp(args.words[0], "bash") == 0)
    bash();
  else if (strcmp(args.words[0], "zsh") == 0)
    zsh();
  else if (strcmp(args.words[0], "fish") == 0)
    fish();
  else {
    fprintf(stderr, "segue completion: write bash, zsh or fish\n");
    return STATUS_USAGE;
  }
  return STATUS_COMPLETE;
}

const struct cli_command cmd_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "print a completion script: eval \"$(segue completion bash)\"",
    .run = completion_run,
    .minor = true,
};
