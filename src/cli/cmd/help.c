/* segue help: lists the commands, or shows the help of one. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const char exit_help[] =
    "  0  COMPLETE (of other commands: done, nothing to complain about)\n"
    "  1  failed, stopped resumably (segue resume goes on), or what it printed was lost\n"
    "  2  bad usage or file\n"
    "  3  ABORT\n"
    "  4  no rule matched (stopped: segue resume --rule N is your verdict)\n"
    "  5  max_movements was reached (stopped: segue resume --max-movements N)\n"
    "  6  cancelled\n"
    "130  interrupted (after a clean, logged stop)\n";

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

static void first_page(void) {
  printf("usage: segue COMMAND [arguments]\n"
         "Runs coding agents through workflows, judges where to go next, keeps the proof.\n\n");
  for (size_t i = 0; cli_commands[i]; i++)
    if (!cli_commands[i]->hidden && !cli_commands[i]->minor)
      printf("  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
  printf("\nsegue help COMMAND explains one; also help exit, help expressions.\n");
}

static int help_run(int argc, char **argv) {
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
  for (size_t i = 0; i < ARRAY_LEN(topics); i++)
    if (strcmp(args.words[0], topics[i].name) == 0) {
      fputs(topics[i].text, stdout);
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
    .arguments = "[COMMAND|exit|expressions]",
    .summary = "explain a command, the exit statuses, or expressions",
    .run = help_run,
    .minor = true,
};
