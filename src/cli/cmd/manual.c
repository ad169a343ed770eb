/* segue manual: prints a manual page, or writes them all, for those who install or package. */
#include "cli/manual.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct cli_option options[] = {
    {"all", 'a', "DIR", "write every page below DIR, as man1/segue.1", false},
    {"list", 'l', NULL, "print the names of the pages", false},
    {0},
};

static bool write_page(const char *folder, const char *name, struct err *err) {
  char path[4096];
  size_t n = strlen(name);
  int length = snprintf(path, sizeof path, "%s/man%c", folder, name[n - 1]);
  if (length < 0 || (size_t)length + n + 2 > sizeof path)
    return err_set(err, ERR_USAGE, "the name of the folder is too long");
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
  (void)snprintf(path + length, sizeof path - (size_t)length, "/%s", name);
  struct buf page = {0};
  FILE *file = manual_page(&page, name) ? fopen(path, "we") : NULL;
  bool ok = file != NULL && fwrite(page.p, 1, page.n, file) == page.n;
  ok = file != NULL && fclose(file) == 0 && ok;
  buf_deinit(&page);
  return ok || err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
}

static bool manual_write_all(const char *folder, struct err *err) {
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return err_set(err, ERR_IO, "%s: %s", folder, strerror(errno));
  const char *name;
  for (size_t i = 0; (name = manual_name(i)) != NULL; i++)
    if (!write_page(folder, name, err))
      return false;
  return true;
}

static int print_page(const char *word) {
  char name[64];
  struct buf page = {0};
  bool whole = strchr(word, '.') != NULL, main_page = strcmp(word, "segue") == 0;
  (void)snprintf(name, sizeof name, "%s%s%s", whole || main_page ? "" : "segue-", word,
                 whole ? "" : ".1");
  bool found = manual_page(&page, name);
  if (found)
    fwrite(page.p, 1, page.n, stdout);
  else
    fprintf(stderr, "segue manual: there is no such page: segue manual --list names them\n");
  buf_deinit(&page);
  return found ? STATUS_COMPLETE : STATUS_USAGE;
}

static int manual_run(int argc, char **argv) {
  struct cli_args args;
  struct err err;
  int status;
  if (!cli_parse(&cmd_manual, argc, argv, 0, 1, &args, &status))
    return status;
  const char *folder = cli_value(&args, "all"), *name;
  if (folder != NULL)
    return manual_write_all(folder, &err) ? STATUS_COMPLETE : cli_fail("manual", &err);
  if (!cli_flag(&args, "list"))
    return print_page(args.word_count > 0 ? args.words[0] : "segue");
  for (size_t i = 0; (name = manual_name(i)) != NULL; i++)
    puts(name);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_manual = {
    .name = "manual",
    .arguments = "[PAGE] [--all DIR]",
    .summary = "print a manual page (man -l - shows it), or write them all",
    .options = options,
    .run = manual_run,
};
