/* segue help: lists the commands, or shows the help of one. */
#include "base/resource.h"
#include "cli/cli.h"
#include "cli/help_key.h"

#include <string.h>

const char *help_topic(const char *name) {
  char path[64];
  print_into(path, sizeof path, "cli/topics/%s.txt", name);
  const struct resource *topic = resource_find(path);
  return topic != NULL ? topic->p : NULL;
}

const struct cli_noun cli_nouns[] = {COMMAND_NOUNS{0}};

const struct cli_noun *cli_find_noun(const char *name) {
  for (const struct cli_noun *noun = cli_nouns; noun->name != NULL; noun++)
    if (strcmp(noun->name, name) == 0)
      return noun;
  return NULL;
}

const struct cli_command *cli_find_verb(const struct cli_noun *noun, const char *verb) {
  for (size_t i = 0; noun->verbs[i].verb != NULL; i++)
    if (strcmp(noun->verbs[i].verb, verb) == 0 || strcmp(noun->verbs[i].command, verb) == 0)
      return cli_find(noun->verbs[i].command);
  return NULL;
}

/* Groups the commands by purpose. Those not named here are listed last. */
static const struct { const char *title, *names[16]; } help_pages[] = {COMMAND_PAGES};

static bool is_grouped(const char *name) {
  for (size_t g = 0; g < ARRAY_LEN(help_pages); g++)
    for (size_t i = 0; help_pages[g].names[i]; i++)
      if (strcmp(name, help_pages[g].names[i]) == 0)
        return true;
  return false;
}

static void print_summary(const char *name, const char *summary, size_t beside) {
  buf_auto_t line = buf_of("  %-*s ", (int)beside - 3, name);
  cli_wrap(&line, str_from(summary), beside, beside, cli_help_columns());
  puts(buf_c(&line));
}

static void print_wrapped(const char *text) {
  buf_auto_t out = {0};
  cli_wrap_help(&out, text, cli_help_columns());
  fputs(buf_c(&out), stdout);
}

static void print_head(void) {
  print_wrapped("usage: segue COMMAND [arguments]\nRuns coding agents through workflows, judges "
                "where to go next, keeps the proof.");
}

static void first_page(void) {
  static const char *const names[] = {COMMAND_FIRST NULL};
  print_head();
  putchar('\n');
  for (size_t i = 0; names[i] != NULL; i++) {
    const struct cli_command *command = cli_find(names[i]);
    const struct cli_noun *noun = cli_find_noun(names[i]);
    if (names[i][0] == '\0')
      putchar('\n');
    else
      print_summary(names[i], command != NULL ? command->summary : noun->summary, 10);
  }
  print_wrapped(
      "\nsegue help COMMAND, or KEY of a workflow, explains it; --all lists all commands.");
}

static void all_pages(void) {
  enum { BESIDE = 20 };
  print_head();
  for (size_t g = 0; g < ARRAY_LEN(help_pages); g++) {
    printf("\n%s\n", help_pages[g].title);
    for (size_t i = 0; help_pages[g].names[i]; i++) {
      const struct cli_command *command = cli_find(help_pages[g].names[i]);
      if (command != NULL)
        print_summary(command->spoken, command->summary, BESIDE);
    }
  }
  bool more = false;
  for (size_t i = 0; cli_commands[i]; i++) {
    if (cli_commands[i]->hidden || is_grouped(cli_commands[i]->name))
      continue;
    if (!more)
      printf("\nMore\n");
    more = true;
    print_summary(cli_commands[i]->spoken, cli_commands[i]->summary, BESIDE);
  }
  print_wrapped("\nsegue help COMMAND, or KEY of a workflow, explains it; also exit, expressions.");
}

void cli_print_noun(const struct cli_noun *noun) {
  printf("segue %s VERB [arguments]\n", noun->name);
  for (size_t i = 0; noun->verbs[i].verb != NULL; i++)
    print_summary(noun->verbs[i].verb, cli_find(noun->verbs[i].command)->summary, 13);
}

static int say_key(const char *name) {
  buf_auto_t text = {0}, safe = {0};
  const char *near;
  bool found = help_key(&text, name, &near);
  (void)cli_fit(&safe, str_from(name), 100);
  if (found)
    fputs(buf_c(&text), stdout);
  else
    fprintf(stderr,
            "segue help: there is no command and no key \"%s\"%s%s%s\n"
            "try: segue help, for the commands; man segue-workflow, for the keys\n",
            buf_c(&safe), near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
  return found ? STATUS_COMPLETE : STATUS_USAGE;
}

static int help_run(const struct cli_args *args) {
  if (args->word_count == 2 && strcmp(args->words[0], "key") == 0)
    return say_key(args->words[1]);
  if (args->word_count == 0) {
    if (cli_flag(args, "all"))
      all_pages();
    else
      first_page();
    return STATUS_COMPLETE;
  }
  const struct cli_noun *noun = cli_find_noun(args->words[0]);
  if (noun != NULL && args->word_count == 1) {
    cli_print_noun(noun);
    return STATUS_COMPLETE;
  }
  const char *topic = help_topic(args->words[0]);
  if (topic != NULL) {
    fputs(topic, stdout);
    return STATUS_COMPLETE;
  }
  const struct cli_command *command =
      noun != NULL ? cli_find_verb(noun, args->words[1]) : cli_find(args->words[0]);
  if (command == NULL)
    return say_key(args->words[0]);
  cli_print_help(command);
  buf_auto_t ignored = {0};
  if (help_key(&ignored, command->name, NULL)) {
    buf_clear(&ignored);
    buf_printf(&ignored, "\nIt is a key of a workflow, too: segue help key %s", command->name);
    print_wrapped(buf_c(&ignored));
  }
  return STATUS_COMPLETE;
}

const struct cli_command cmd_help = {COMMAND_HELP, .run = help_run};
