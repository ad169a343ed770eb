/* segue init: writes a starter workflow with its facets into the project. */
#include "base/resource.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/trust.h"
#include "format/json_object.h"
#include "os/fs.h"
#include "workflow/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STARTER "workflows/starter/"

struct init {
  const char *name;
  int folder; /* .segue */
  json_t *written, *kept;
};

bool init_make_folder(const char *parent, const char *name, struct err *err) {
  char path[1024];
  struct stat st;
  if (snprintf(path, sizeof path, "%s/%s", parent, name) >= (int)sizeof path)
    return err_set(err, ERR_USAGE, "--cwd: the path is too long");
  if (mkdir(path, 0755) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make %s", path);
  return (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) ||
         err_set(err, ERR_IO, "%s is no folder of its own: segue writes through no link", path);
}

/* Puts the starter's text with the workflow's name in it. */
static void init_fill_in(struct str text, const char *name, struct buf *out) {
  static const char mark[] = "@NAME@";
  const char *at = memmem(text.p, text.n, mark, strlen(mark));
  size_t n = at ? (size_t)(at - text.p) : text.n;
  buf_append(out, text.p, n);
  if (at == NULL)
    return;
  buf_puts(out, name);
  buf_append(out, at + strlen(mark), text.n - n - strlen(mark));
}

void init_starter(const char *name, struct buf *out) {
  const struct resource *r = resource_find(STARTER "workflow.yaml");
  init_fill_in((struct str){r->p, r->n}, name, out);
}

bool init_write_all(int fd, struct str text) {
  while (text.n > 0) {
    ssize_t n = write(fd, text.p, text.n);
    if (n < 0)
      return false;
    text = (struct str){text.p + n, text.n - (size_t)n};
  }
  return true;
}

/* Leaves an existing file alone, except the workflow itself, which is refused. */
static bool init_put_file(struct init *init, const char *path, struct str text, bool must_be_new,
                          struct err *err) {
  int fd = fs_open_beneath(init->folder, path, O_WRONLY | O_CREAT | O_EXCL);
  if (fd < 0 && errno == EEXIST && !must_be_new) {
    json_array_append_new(init->kept, json_sprintf(".segue/%s", path));
    return true;
  }
  if (fd < 0 && errno == EEXIST)
    return err_set(err, ERR_USAGE, ".segue/%s exists already: segue init NAME writes another one",
                   path);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot write .segue/%s", path);
  bool ok = init_write_all(fd, text) || err_set_errno(err, errno, "cannot write .segue/%s", path);
  close(fd);
  json_array_append_new(init->written, json_sprintf(".segue/%s", path));
  return ok;
}

static bool put_starter(struct init *init, const struct resource *r, struct err *err) {
  const char *rest = r->name + strlen(STARTER), *slash = strchr(rest, '/');
  buf_auto_t text = {0};
  char path[256];
  if (slash == NULL)
    print_into(path, sizeof path, "workflows/%s.yaml", init->name);
  else
    print_into(path, sizeof path, "facets/%s", rest);
  init_fill_in((struct str){r->p, r->n}, init->name, &text);
  return init_put_file(init, path, buf_view(&text), slash == NULL, err);
}

static bool init_make_folders(const char *cwd, struct err *err) {
  static const char *const folders[] = {".segue",
                                        ".segue/workflows",
                                        ".segue/facets",
                                        ".segue/facets/personas",
                                        ".segue/facets/policies",
                                        ".segue/facets/instructions"};
  for (size_t i = 0; i < ARRAY_LEN(folders); i++)
    if (!init_make_folder(cwd, folders[i], err))
      return false;
  return true;
}

/* Writes the workflow first: if that is refused, nothing else is written. */
static bool init_write(struct init *init, const char *cwd, struct err *err) {
  char path[1024];
  const struct resource *workflow = resource_find(STARTER "workflow.yaml"),
                        *schema = resource_find("schemas/workflow.json");
  if (workflow == NULL || schema == NULL)
    BUG("the starter is not compiled in");
  if (!init_make_folders(cwd, err))
    return false;
  print_into(path, sizeof path, "%s/.segue", cwd);
  init->folder = fs_open_folder(path);
  if (init->folder < 0)
    return err_set_errno(err, errno, "cannot open %s", path);
  bool ok =
      put_starter(init, workflow, err) &&
      init_put_file(init, "workflow.schema.json", (struct str){schema->p, schema->n}, false, err);
  for (const struct resource *r = resource_table; ok && r->name; r++)
    if (strncmp(r->name, STARTER, strlen(STARTER)) == 0 && r != workflow)
      ok = put_starter(init, r, err);
  close(init->folder);
  return ok;
}

static int init_run(const struct cli_args *args) {
  struct err err = {0};
  bool json = cli_flag(args, "json");
  cli_errors_as_json(json);
  struct init init = {.name = args->word_count > 0 ? args->words[0] : "work",
                      .written = json_array(),
                      .kept = json_array()};
  bool ok = (scope_is_param(str_from(init.name)) && init.name[0] != '-') ||
            err_set(&err, ERR_USAGE,
                    "\"%.80s\" cannot be the name of a workflow: use letters, digits, _ and -",
                    init.name);
  ok = ok && init_write(&init, cli_value_or(args, "cwd", "."), &err);
  if (ok && json) {
    json_io_put(
        json_pack("{ss sO sO}", "workflow", init.name, "written", init.written, "kept", init.kept));
  } else if (ok) {
    JSON_EACH(init.written, i, path)
      printf("wrote  %s\n", json_string_value(path));
    JSON_EACH(init.kept, i, path)
      printf("kept   %s\n", json_string_value(path));
    printf("\nnext:\n  segue lint %s\n  segue plan %s --input 'check=make test' --task 'Fix the "
           "first failing test'\n  segue run %s --input 'check=make test' --task 'Fix the first "
           "failing test'\n",
           init.name, init.name, init.name);
  }
  json_decref(init.written);
  json_decref(init.kept);
  return cli_done("init", ok, &err);
}

const struct cli_command cmd_init = {COMMAND_INIT, .run = init_run};
