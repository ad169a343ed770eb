/* Reads the inputs of a workflow from flags and from a person. */
#include "cli/inputs.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/str.h"
#include "workflow/load.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool put_file(json_t *inputs, struct str name, const char *path, struct err *err) {
  struct buf text = {0};
  if (!file_read(path, LIMIT_INPUT_BYTES, &text, err)) {
    err->code = ERR_USAGE;
    return err_wrap(err, "--input " STR_FMT, STR_ARG(name));
  }
  while (text.n > 0 && text.p[text.n - 1] == '\n')
    text.n--;
  json_t *value = json_stringn(text.n ? text.p : "", text.n);
  buf_deinit(&text);
  if (value == NULL)
    return err_set(err, ERR_USAGE, "--input " STR_FMT ": %.200s is not UTF-8", STR_ARG(name), path);
  json_object_setn_new(inputs, name.p, name.n, value);
  return true;
}

bool inputs_read(const struct cli_args *args, json_t *inputs, struct err *err) {
  const char *pair;
  for (size_t i = 0; (pair = cli_values(args, "input", i)) != NULL; i++) {
    const char *equals = strchr(pair, '=');
    if (!cli_is_utf8("--input", pair, err))
      return false;
    if (equals == NULL || equals == pair)
      return err_set(err, ERR_USAGE, "--input %.80s: write NAME=VALUE, or NAME=@FILE", pair);
    struct str name = {pair, (size_t)(equals - pair)};
    if (json_object_getn(inputs, name.p, name.n) != NULL)
      return err_set(err, ERR_USAGE, "--input " STR_FMT " is given twice", STR_ARG(name));
    if (equals[1] == '@') {
      if (!put_file(inputs, name, equals + 2, err))
        return false;
      continue;
    }
    json_object_setn_new(inputs, name.p, name.n, json_string(equals + 1));
  }
  return true;
}

static void inputs_ask_one(const json_t *param, json_t *inputs) {
  const char *name = json_string_value(json_object_get(param, "name"));
  const char *words = json_string_value(json_object_get(param, "description"));
  char *line = NULL;
  size_t room = 0;
  cli_put_safe(stderr, name);
  if (words != NULL) {
    fputs(" (", stderr);
    cli_put_safe(stderr, words);
    fputc(')', stderr);
  }
  fputs(": ", stderr);
  fflush(stderr);
  ssize_t n = getline(&line, &room, stdin);
  while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
    n--;
  json_t *value = n > 0 ? json_stringn(line, (size_t)n) : NULL;
  if (value != NULL)
    json_object_set_new(inputs, name, value);
  free(line);
}

void inputs_ask(const struct cli_args *args, const char *path, json_t *inputs) {
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) || cli_flag(args, "quiet") ||
      cli_flag(args, "json"))
    return;
  size_t i;
  const json_t *param;
  json_auto_t *params = workflow_params(path);
  json_array_foreach(params, i, param) {
    const char *name = json_string_value(json_object_get(param, "name"));
    if (json_object_get(param, "default") == NULL && json_object_get(inputs, name) == NULL)
      inputs_ask_one(param, inputs);
  }
}
