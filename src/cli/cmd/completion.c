/* segue completion: prints what a shell needs to complete words, and answers its questions. */
#include "cli/cli.h"
#include "cli/complete.h"

#include <stdio.h>
#include <string.h>

static const struct cli_option options[] = {
    {"for", 0, NULL, "used by the scripts: the words after \"segue\", the last one unfinished",
     false},
    {0},
};

/* Each script asks `segue completion --for -- WORD...` and shows the answer (complete.h). */
static const char bash_script[] =
    "_segue() {\n"
    "  local line cur=${COMP_WORDS[COMP_CWORD]} words=(\"${COMP_WORDS[@]:1:COMP_CWORD}\")\n"
    "  COMPREPLY=()\n"
    "  while IFS= read -r line; do\n"
    "    if [ \"$line\" = :files ]; then compopt -o default 2>/dev/null\n"
    "      mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "    else COMPREPLY+=(\"${line%%$'\\t'*}\"); fi\n"
    "  done < <(segue completion --for -- \"${words[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _segue segue\n";

static const char zsh_script[] =
    "#compdef segue\n"
    "_segue() {\n"
    "  local line files=0\n"
    "  local -a found\n"
    "  while IFS= read -r line; do\n"
    "    if [[ $line == :files ]]; then files=1\n"
    "    else found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\"); fi\n"
    "  done < <(segue completion --for -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "  (( ${#found} )) && _describe segue found\n"
    "  (( files )) && _files\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _segue ]; then _segue \"$@\"; else compdef _segue segue; fi\n";

static const char fish_script[] =
    "function __segue_complete\n"
    "  set -l words (commandline -opc) (commandline -ct)\n"
    "  for line in (segue completion --for -- $words[2..-1] 2>/dev/null)\n"
    "    if test \"$line\" = :files\n"
    "      __fish_complete_path (commandline -ct)\n"
    "    else\n"
    "      echo $line\n"
    "    end\n"
    "  end\n"
    "end\n"
    "complete -c segue -f -a '(__segue_complete)'\n";

static int completion_run(int argc, char **argv) {
  static const struct {
    const char *shell, *script;
  } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
  struct cli_args args;
  int status;
  if (!cli_parse(&cmd_completion, argc, argv, 0, CLI_WORDS, &args, &status))
    return status;
  if (cli_flag(&args, "for")) {
    complete_words(args.words, args.word_count, stdout);
    return STATUS_COMPLETE;
  }
  for (size_t i = 0; args.word_count == 1 && i < ARRAY_LEN(scripts); i++)
    if (strcmp(args.words[0], scripts[i].shell) == 0) {
      fputs(scripts[i].script, stdout);
      return STATUS_COMPLETE;
    }
  fprintf(stderr, "segue completion: write bash, zsh or fish\n");
  return STATUS_USAGE;
}

const struct cli_command cmd_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "print a completion script: eval \"$(segue completion bash)\"",
    .help = "Completes the sessions, workflows, movements and providers that exist at that "
            "moment.\n"
            "bash: put eval \"$(segue completion bash)\" in ~/.bashrc. zsh: the same in ~/.zshrc, "
            "after compinit. fish: segue completion fish > ~/.config/fish/completions/segue.fish",
    .options = options,
    .run = completion_run,
};
