/* segue help: lists the commands, or shows the help of one. */
#include "cli/cli.h"
#include "cli/help_key.h"

#include <string.h>

static const char exit_help[] =
    "  0  COMPLETE (for other commands: done, no problems found)\n  1  failed, stopped resumably "
    "(segue resume continues), or its output was lost\n  2  bad usage or file\n  3  ABORT\n  4  no "
    "rule matched (stopped: segue resume --rule N is your verdict)\n  5  max_movements was reached "
    "(stopped: segue resume --max-movements N)\n  6  cancelled\n  7  it needs input: a question, "
    "an approval, a protected "
    "file, a budget, a login (segue inbox)\n130  interrupted (after a clean, "
    "logged stop)\n";

static const char expressions_help[] =
    "An invariant is an expression about one JSON value that must be true (segue check "
    "--invariant):\n"
    "\n"
    "  sum(items[].price) == total             end > start\n"
    "  all(items, price > 0 && count <= 99)    status in [\"open\", \"closed\"]\n"
    "  unique(items[].id)                      discount == null || discount < price\n"
    "  sum(items, price * count) == total      name.length <= 40 && matches(zip, r\"^\\d{5}$\")\n"
    "\n"
    "Names      members of the value: total, address.zip, items[0], items[-1] (the last), $[\"odd "
    "name\"];\n"
    "           $ (or root) is the value itself\n"
    "[]         each item: items[].price, orders[].lines[].price (one flat list)\n"
    "Numbers    + - * / %, decimal with 34 digits: 0.1 + 0.2 == 0.3, 7 / 2 is 3.5. Integers are "
    "exact;\n"
    "           any other result compares with a tolerance of one part in 10^15\n"
    "Compare    == != < <= > >= of numbers or texts. Two RFC 3339 dates or date-times compare as\n"
    "           instants (a date is its first instant in UTC), other texts by code point. Nothing "
    "is\n"
    "           converted: 5 is not \"5\"\n"
    "Combine    && || ! ( ), x in [1, 2], x in list, \"part\" in text, \"name\" in object, x not "
    "in ...\n"
    "Texts      \"...\" or '...', with the escapes of JSON; r\"...\" without; + joins two\n"
    "Items      all(list, condition), any or exists, none, one; names are members of the item "
    "then,\n"
    "           item (or @) is the item itself, $.name a member of the whole value. A name "
    "between\n"
    "           keeps the names as they are: all(items, i, i.price <= limit)\n"
    "Totals     sum, avg, min, max of a list, or of an expression on each item: sum(items, price * "
    "n);\n"
    "           count(list), count(list, condition), sum(filter(list, condition), price)\n"
    "Functions  length (size, len; also x.length), contains, unique, filter, map, has, abs,\n"
    "           default(x, otherwise), round(n, digits), floor, ceil, startsWith, endsWith,\n"
    "           matches(text, \"pattern\"), is_date(x); f(x, y) may be written x.f(y)\n"
    "Null       what is missing is null. null equals null alone; any other use of it does not "
    "hold:\n"
    "           write has(x), x == null || ... or default(x, 0) where a field may be missing\n"
    "\n"
    "A when(...) of a workflow takes == != < <= > >= && || ! ( ), contains(list, value),\n"
    "exists(list, condition on item) and is_date(x), on exit, last_exit, iteration,\n"
    "movement_iteration, changed, files, tests.passed, checks.MOVEMENT.exit and\n"
    "structured.MOVEMENT.FIELD; there < and its like need numbers, and a missing field is an\n"
    "error.\n";

static const struct {
  const char *name, *text;
} topics[] = {{"exit", exit_help}, {"expressions", expressions_help}};

const char *help_topic(const char *name) {
  for (size_t i = 0; i < ARRAY_LEN(topics); i++)
    if (strcmp(name, topics[i].name) == 0)
      return topics[i].text;
  return NULL;
}

/* Groups the commands by purpose. Those not named here are listed last. */
static const struct {
  const char *title, *names[12];
} help_groups[] = {
    {"Start and steer", {"run", "submit", "resume", "fork", "cancel", "serve"}},
    {"Look", {"ls", "show", "web", "report", "verify", "heads", "rm"}},
    {"Answer", {"inbox", "answer", "approve", "reject"}},
    {"Branches of sessions", {"diff", "merge", "discard", "pr", "worktrees", "integrate"}},
    {"Write workflows", {"init", "lint", "plan", "prompt", "graph", "facets"}},
    {"Count and test judgments",
     {"audit", "judge", "test", "rejudge", "replay", "compare", "agree", "label"}},
    {"Read JSON out of models", {"extract", "check", "schema", "ask"}},
    {"Set up",
     {"doctor", "providers", "config", "store", "hook", "mcp", "completion", "manual", "version",
      "help"}},
};

static bool is_grouped(const char *name) {
  for (size_t g = 0; g < ARRAY_LEN(help_groups); g++)
    for (size_t i = 0; help_groups[g].names[i]; i++)
      if (strcmp(name, help_groups[g].names[i]) == 0)
        return true;
  return false;
}

static void print_summary(const struct cli_command *command) {
  enum { BESIDE = 14 };
  buf_auto_t line = {0};
  buf_printf(&line, "  %-11s ", command->name);
  cli_wrap(&line, str_from(command->summary), BESIDE, BESIDE, cli_help_columns());
  puts(buf_c(&line));
}

static void print_wrapped(const char *text) {
  buf_auto_t out = {0};
  cli_wrap_help(&out, text, cli_help_columns());
  fputs(buf_c(&out), stdout);
}

static void first_page(void) {
  print_wrapped("usage: segue COMMAND [arguments]\nRuns coding agents through workflows, judges "
                "where to go next, and keeps the proof.");
  for (size_t g = 0; g < ARRAY_LEN(help_groups); g++) {
    bool is_first = true;
    for (size_t i = 0; help_groups[g].names[i]; i++) {
      const struct cli_command *command = cli_find(help_groups[g].names[i]);
      if (command == NULL)
        continue;
      if (is_first)
        printf("\n%s\n", help_groups[g].title);
      is_first = false;
      print_summary(command);
    }
  }
  bool more = false;
  for (size_t i = 0; cli_commands[i]; i++) {
    if (cli_commands[i]->hidden || is_grouped(cli_commands[i]->name))
      continue;
    if (!more)
      printf("\nMore\n");
    more = true;
    print_summary(cli_commands[i]);
  }
  print_wrapped("\nsegue help COMMAND, or KEY of a workflow, explains it; also exit, expressions.");
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
    first_page();
    return STATUS_COMPLETE;
  }
  const char *topic = help_topic(args->words[0]);
  if (topic != NULL) {
    fputs(topic, stdout);
    return STATUS_COMPLETE;
  }
  const struct cli_command *command = cli_find(args->words[0]);
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

const struct cli_command cmd_help = {
    .name = "help",
    .arguments = "[COMMAND|[key] KEY|exit|expressions]",
    .words = {0, 2},
    .summary = "explain a command, a key of a workflow, the exit statuses, or expressions",
    .run = help_run,
};
