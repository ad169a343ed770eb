/* segue import: takes workflow files of takt over into .segue. */
#include "workflow/import.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/setup.h"
#include "cli/trust.h"
#include "format/json_object.h"
#include "format/yaml.h"
#include "host/paths.h"
#include "os/fs.h"
#include "os/tmpdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes a file below FOLDER/.segue, through no link. */
static bool import_put(const char *folder, const char *name, struct str text, bool *kept,
                       struct err *err) {
  char top[PATHS_BYTES], below[PATHS_BYTES];
  print_into(below, sizeof below, ".segue/%.900s", name);
  for (char *slash = strchr(below, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (!init_make_folder(folder, below, err))
      return false;
    *slash = '/';
  }
  print_into(top, sizeof top, "%.900s/.segue", folder);
  int root = fs_open_folder(top);
  int fd = root < 0 ? -1 : fs_open_beneath(root, name, O_WRONLY | O_CREAT | O_EXCL);
  *kept = fd < 0 && errno == EEXIST; /* it is the same: import.h */
  bool ok = *kept || (fd >= 0 && init_write_all(fd, text)) ||
            err_set_errno(err, errno, "cannot write .segue/%s", name);
  fs_close(fd);
  fs_close(root);
  return ok;
}

static bool import_write(const char *folder, const json_t *files, json_t *told, struct err *err) {
  bool ok = true, kept;
  JSON_MEMBERS(files, name, text) {
    ok = ok && import_put(folder, name, json_view(text), &kept, err);
    if (ok && told != NULL)
      json_array_append_new(cli_member(told, kept ? "kept" : "written"), json_string(name));
  }
  return ok;
}

/* Loads what the import makes of each workflow, and adds "loads" and "errors" to its entry. */
static bool import_check(const struct cli_args *args, const char *stage, const struct import *i) {
  AUTO(setup_deinit) struct setup setup = {0};
  int status;
  bool all = true;
  if (!setup_flags(&setup, args, &status))
    return false;
  print_into(setup.cwd, sizeof setup.cwd, "%s", stage);
  JSON_EACH(i->workflows, k, entry) {
    AUTO(err_list_deinit) struct err_list errors = {0};
    AUTO(err_list_deinit) struct err_list warnings = {0};
    char path[PATHS_BYTES + 64];
    json_t *list = json_array();
    print_into(path, sizeof path, "%.900s/.segue/%s", stage, cli_text(entry, "to"));
    bool ok = setup_load(&setup, path, &errors, &warnings);
    for (size_t n = 0; n < errors.count; n++) {
      struct err *e = &errors.items[n];
      const char *below = fs_below(e->file, stage);
      json_array_append_new(list, json_pack("{ss si si so}", "file", below ? below + 1 : e->file,
                                            "line", e->line, "column", e->column, "message",
                                            json_io_string(e->text)));
    }
    json_object_set_new(entry, "loads", json_boolean(ok));
    json_object_set_new(entry, "errors", list);
    all = all && ok;
  }
  return all;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Imports each workflow of a folder, in the order of their names. */
static size_t import_folder(struct import *i, const char *folder) {
  char *paths[LIMIT_CALL_COUNT];
  size_t n = 0;
  DIR *dir = opendir(folder);
  const struct dirent *entry;
  while (dir != NULL && n < LIMIT_CALL_COUNT && (entry = readdir(dir)) != NULL) {
    struct str name = str_from(entry->d_name);
    if (name.p[0] != '.' && (str_ends(name, ".yaml") || str_ends(name, ".yml")))
      paths[n++] = arena_printf(&i->arena, "%s/%s", folder, entry->d_name);
  }
  if (dir != NULL)
    closedir(dir);
  qsort(paths, n, sizeof *paths, by_name);
  for (size_t k = 0; k < n; k++)
    import_workflow(i, paths[k]);
  return n;
}

/* Sets the folders of facets, in the language of the takt folder's own configuration. */
static void import_language(struct import *i, const char *takt, const char *cwd) {
  char path[PATHS_BYTES + 16];
  buf_auto_t text = {0};
  struct err err;
  print_into(path, sizeof path, "%.1000s/config.yaml", takt);
  if (!file_read(path, LIMIT_WORKFLOW_BYTES, &text, &err))
    buf_clear(&text);
  json_auto_t *config = yaml_load(path, buf_view(&text), LIMIT_WORKFLOW_BYTES, &err);
  i->japanese = str_eq_c(json_view_at(config, "language"), "ja");
  const char *word = i->japanese ? "ja" : "en";
  paths_facets_of_takt(cwd, path);
  i->builtins = path[0] ? arena_printf(&i->arena, "%s/%s", path, word) : "";
  paths_shipped_facets(path);
  i->own = path[0] ? arena_printf(&i->arena, "%s/%s", path, word) : "";
}

static json_t *counts_of(const struct import *i) {
  json_int_t same = 0, changed = 0, impossible = 0;
  JSON_MEMBERS(i->lines, file, lines) {
    (void)file;
    JSON_EACH(lines, k, line) {
      const char *result = cli_text(line, "result");
      same += strcmp(result, "same") == 0;
      changed += strcmp(result, "changed") == 0;
      impossible += strcmp(result, "impossible") == 0;
    }
  }
  return json_pack("{sI sI sI}", "same", same, "changed", changed, "impossible", impossible);
}

static void import_say(const struct import *i, const json_t *told, bool dry) {
  JSON_MEMBERS(i->lines, file, lines) {
    cli_say(stdout, "%s\n", file);
    JSON_EACH(lines, k, line) {
      const char *in = cli_text(line, "in"), *why = cli_text(line, "why");
      cli_say(stdout, "  %4d  %-10s  %s%s%s%s%s\n", (int)json_int_at(line, "line"),
              cli_text(line, "result"), in, in[0] ? ": " : "", cli_text(line, "key"),
              why ? ": " : "", why ? why : "");
    }
  }
  putchar('\n');
  JSON_EACH(i->workflows, k, entry) {
    bool loads = json_is_true(json_object_get(entry, "loads"));
    cli_say(stdout, "%s  %s -> .segue/%s\n", loads ? "loads " : "broken", cli_text(entry, "from"),
            cli_text(entry, "to"));
    JSON_EACH(json_object_get(entry, "errors"), n, error)
      cli_say(stdout, "        %s:%d: %s\n", cli_text(error, "file"),
              (int)json_int_at(error, "line"), cli_text(error, "message"));
  }
  json_auto_t *counts = counts_of(i);
  printf("\n%d the same, %d changed, %d not possible; %s%d file%s written, %d kept\n",
         (int)json_int_at(counts, "same"), (int)json_int_at(counts, "changed"),
         (int)json_int_at(counts, "impossible"), dry ? "--dry-run: " : "",
         (int)json_array_size(json_object_get(told, "written")),
         PLURAL(json_array_size(json_object_get(told, "written"))),
         (int)json_array_size(json_object_get(told, "kept")));
}

/* Finds the takt folder of what was named, and imports it. Returns how many workflows it has. */
static size_t import_all(struct import *i, const char *named, char takt[PATHS_BYTES]) {
  char workflows[PATHS_BYTES + 16];
  print_into(takt, PATHS_BYTES, "%.1000s", named);
  if (!file_is_folder(named)) { /* a file: its folder, or that of workflows/ or pieces/ */
    char *slash = strrchr(takt, '/');
    print_into(slash ? slash : takt, 2, "%s", slash ? "" : ".");
    slash = strrchr(takt, '/');
    if (slash != NULL && (strcmp(slash, "/workflows") == 0 || strcmp(slash, "/pieces") == 0))
      *slash = '\0';
    import_language(i, takt, i->project);
    import_workflow(i, named);
    return 1;
  }
  print_into(workflows, sizeof workflows, "%.1000s/.takt", named);
  if (strcmp(named, ".") == 0)
    print_into(workflows, sizeof workflows, ".takt");
  if (file_is_folder(workflows))
    print_into(takt, PATHS_BYTES, "%.1000s", workflows);
  import_language(i, takt, i->project);
  print_into(workflows, sizeof workflows, "%.1000s/workflows", takt);
  size_t n = import_folder(i, workflows);
  print_into(workflows, sizeof workflows, "%.1000s/pieces", takt);
  return n + import_folder(i, workflows);
}

static int import_run(const struct cli_args *args) {
  struct err err = {0};
  char takt[PATHS_BYTES], home[PATHS_BYTES] = "";
  const char *cwd = cli_value_or(args, "cwd", "."), *user = getenv("HOME");
  const char *named = args->word_count > 1 ? args->words[1] : cwd;
  bool dry = cli_flag(args, "dry-run"), json = cli_flag(args, "json"), loads = false;
  cli_errors_as_json(json);
  if (strcmp(args->words[0], "takt") != 0)
    return cli_refuse("import", "\"%.80s\" cannot be imported: write takt", args->words[0]);
  if (access(named, R_OK) != 0)
    return cli_refuse("import", "cannot read %.300s: %s", named, strerror(errno));
  if (user != NULL)
    print_into(home, sizeof home, "%.1000s/.takt", user);
  struct import i = {.takt = takt, .home = home, .project = cwd};
  import_begin(&i);
  size_t n = import_all(&i, named, takt);
  bool ok = n > 0 || err_set(&err, ERR_USAGE, "there is no workflow in %.300s", named);
  char_auto_t *stage = ok ? tmpdir_make(&err) : NULL;
  json_auto_t *told = json_pack("{s[] s[]}", "written", "kept");
  ok = stage != NULL && import_write(stage, i.files, NULL, &err);
  if (ok)
    loads = import_check(args, stage, &i) && json_array_size(i.workflows) == n;
  ok = ok && (dry || import_write(cwd, i.files, told, &err));
  if (stage != NULL && !tmpdir_remove(stage, &err))
    ok = false;
  if (ok && json) {
    json_object_update_new(told, counts_of(&i));
    json_object_set(told, "workflows", i.workflows);
    json_object_set(told, "lines", i.lines);
    json_io_print(told, JSON_IO_COMPACT);
  } else if (ok) {
    import_say(&i, told, dry);
  }
  import_deinit(&i);
  return ok && !loads ? STATUS_FAILED : cli_done("import", ok, &err);
}

const struct cli_command cmd_import = {COMMAND_IMPORT, .run = import_run};
