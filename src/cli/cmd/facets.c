/* segue facets: lists the facets that workflows can name, and what shadows what. */
#include "workflow/facets.h"
#include "base/arena.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "format/json_object.h"
#include "host/config.h"
#include "host/paths.h"

#include <string.h>

/* Finds the facets beside the workflow's file and above it. */
static bool beside_workflow(struct facets *f, struct arena *arena, const char *word,
                            const char *cwd, struct err *err) {
  char found[PATHS_BYTES];
  const char *path = paths_workflow(word, cwd, found, err);
  if (path == NULL)
    return false;
  FILE *file = fopen(path, "r");
  if (file == NULL)
    return err_set(err, ERR_USAGE, "there is no file %.300s", word);
  fclose(file);
  facets_beside(f, arena, path);
  return true;
}

static bool comes_with_runner(const json_t *entry) {
  const char *from = cli_text(entry, "from");
  return strcmp(from, "segue") == 0 || strcmp(from, "takt") == 0;
}

/* Prints the names that takt and segue have of a kind, those that nothing hides. */
static void print_shipped(const json_t *list, const char *kind, const char *from) {
  buf_auto_t names = {0};
  JSON_EACH(list, i, entry)
    if (strcmp(cli_text(entry, "kind"), kind) == 0 && strcmp(cli_text(entry, "from"), from) == 0 &&
        json_object_get(entry, "shadowed_by") == NULL)
      buf_printf(&names, "%s%s", names.n > 0 ? ", " : "", cli_text(entry, "name"));
  if (names.n == 0)
    return;
  buf_auto_t line = {0}, safe = {0};
  buf_safe(&safe, buf_view(&names), false);
  buf_printf(&line, "  %s's: ", from);
  cli_wrap(&line, buf_view(&safe), line.n, 4, cli_help_columns());
  puts(buf_c(&line));
}

static void print_facets(const json_t *list) {
  const char *last = "";
  JSON_EACH(list, i, entry) {
    const char *kind = cli_text(entry, "kind"), *by = cli_text(entry, "shadowed_by");
    if (strcmp(kind, last) != 0) {
      printf("%s%s\n", i > 0 ? "\n" : "", kind);
      print_shipped(list, kind, "takt");
      print_shipped(list, kind, "segue");
    }
    last = kind;
    if (comes_with_runner(entry))
      continue;
    buf_auto_t name = {0};
    buf_safe(&name, str_from(cli_text(entry, "name")), false);
    printf("  %-24s %-9s ", buf_c(&name), cli_text(entry, "from"));
    cli_say(stdout, "%s\n", cli_text(entry, "file"));
    if (by != NULL)
      cli_say(stdout, "  %-24s           shadowed by %s\n", "", by);
  }
}

/* Lists the further folders, those of takt and segue in a language. */
static void list_further_folders(const struct config *config, const char *cwd, const char *language,
                                 struct facets_more *more, char takt[PATHS_BYTES + 16],
                                 char own[PATHS_BYTES + 16]) {
  char folder[PATHS_BYTES];
  const char *word = language ? language : "en";
  size_t n = 0;
  JSON_EACH(config->facets, i, path)
    more[n++] = (struct facets_more){"config", json_string_value(path)};
  paths_facets_of_takt(cwd, folder);
  print_into(takt, PATHS_BYTES + 16, "%s/%s/facets", folder, word);
  if (folder[0] != '\0')
    more[n++] = (struct facets_more){"takt", takt};
  paths_shipped_facets(folder);
  print_into(own, PATHS_BYTES + 16, "%s/%s", folder, word);
  if (folder[0] != '\0')
    more[n++] = (struct facets_more){"segue", own};
}

static int facets_run(const struct cli_args *args) {
  struct err err = {0};
  AUTO(arena_deinit) struct arena arena = {0};
  char project[PATHS_BYTES], foreign[PATHS_BYTES], home[PATHS_BYTES], config[PATHS_BYTES],
      user[PATHS_BYTES + 16] = "";
  const char *cwd = cli_value_or(args, "cwd", ".");
  cli_errors_as_json(cli_flag(args, "json"));
  paths_project_facets(cwd, project, foreign);
  paths_home_facets(home);
  if (paths_config(config, &err))
    print_into(user, sizeof user, "%s/facets", config);
  AUTO(config_deinit) struct config settings = {0};
  if (!config_load(&settings, &err))
    return cli_fail("facets", &err);
  struct facets_more more[LIMIT_FACET_FOLDER_COUNT + 3] = {0};
  char takt[PATHS_BYTES + 16], own[PATHS_BYTES + 16];
  list_further_folders(&settings, cwd, cli_value(args, "language"), more, takt, own);
  struct facets facets = {.more = more,
                          .foreign = true,
                          .project = project[0] ? project : NULL,
                          .home = home[0] ? home : NULL,
                          .user = user[0] ? user : NULL};
  if (args->word_count > 0 && !beside_workflow(&facets, &arena, args->words[0], cwd, &err))
    return cli_fail("facets", &err);
  json_auto_t *list = facets_list(&facets);
  if (cli_flag(args, "json"))
    json_io_print(list, JSON_IO_COMPACT);
  else
    print_facets(list);
  if (json_array_size(list) == 0 && !cli_flag(args, "json"))
    fprintf(stderr, "segue facets: none; segue init writes some, segue facets WORKFLOW lists those "
                    "beside a workflow\n");
  if (foreign[0])
    fprintf(stderr,
            "segue facets: %s is ignored: it belongs to another user, or others can write to it\n",
            foreign);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_facets = {COMMAND_FACETS, .run = facets_run};
