/* segue config: prints every setting with its value and where that comes from. */
#include "host/config.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "host/paths.h"

#include <stdlib.h>
#include <string.h>

struct config_row {
  const char *name, *flag, *variable, *what;
  json_t *value;      /* owned; NULL: none */
  const char *origin; /* default, a file, a variable; NULL: nobody set one */
};

static void put_config_row(json_t *list, const struct config_row *s) {
  json_array_append_new(list, json_pack("{ssss*ss*ssss*so?}", "key", s->name, "flag", s->flag,
                                        "variable", s->variable, "what", s->what, "origin",
                                        s->origin, "value", s->value));
}

static void put_file_keys(json_t *list, const json_t *values, const char *path) {
  for (const struct config_key *k = config_keys; k->name; k++) {
    const json_t *value = json_object_get(values, k->name);
    struct config_row s = {
        .name = k->name, .flag = k->flag, .variable = k->variable, .what = k->what};
    const char *said = k->variable ? getenv(k->variable) : NULL;
    if (said != NULL) {
      s.value = json_io_string(said);
      s.origin = k->variable;
    } else if (value != NULL) {
      /* Headers and queries of a backend may hold keys: their names are enough. */
      json_t *copy = json_clone(value);
      JSON_MEMBERS(copy, name, settings) {
        static const char *const secret[] = {"headers", "query"};
        for (size_t i = 0; i < ARRAY_LEN(secret); i++) {
          JSON_MEMBERS(json_object_get(settings, secret[i]), key, hidden)
            json_object_set_new(json_object_get(settings, secret[i]), key, json_string("(hidden)"));
        }
      }
      s.value = copy;
      s.origin = path;
    } else if (k->value != NULL) {
      s.value = json_string(k->value);
      s.origin = "default";
    }
    put_config_row(list, &s);
  }
}

/* Puts the places, which no file can set. */
static void put_places(json_t *list) {
  char logs[PATHS_BYTES], dir[PATHS_BYTES];
  struct err err;
  const char *from = getenv("SEGUE_LOGS") ? "SEGUE_LOGS" : "XDG_STATE_HOME";
  struct config_row s = {
      .name = "logs", .flag = "--logs", .variable = "SEGUE_LOGS", .what = "where session logs are"};
  if (paths_logs(NULL, logs, &err)) {
    s.value = json_io_string(logs);
    s.origin = getenv(from) ? from : "default";
  }
  put_config_row(list, &s);
  s = (struct config_row){.name = "config",
                          .variable = "XDG_CONFIG_HOME",
                          .what = "the folder of config.yaml, profiles and facets"};
  if (paths_config(dir, &err)) {
    s.value = json_io_string(dir);
    s.origin = getenv("XDG_CONFIG_HOME") ? "XDG_CONFIG_HOME" : "default";
  }
  put_config_row(list, &s);
  s = (struct config_row){.name = "colours",
                          .variable = "NO_COLOR",
                          .what = "on terminals; CLICOLOR_FORCE=1: also in a pipe",
                          .value = json_string("auto")};
  s.origin = "default";
  if (getenv("NO_COLOR") != NULL) {
    json_decref(s.value);
    s.value = json_string("off");
    s.origin = "NO_COLOR";
  }
  put_config_row(list, &s);
}

static int config_run(const struct cli_args *args) {
  AUTO(config_deinit) struct config config = {0};
  struct err err = {0};
  char path[CONFIG_PATH_BYTES];
  if (args->word_count == 1 && strcmp(args->words[0], "show") != 0) {
    fprintf(stderr, "segue config: there is only segue config show\n");
    return STATUS_USAGE;
  }
  if (!config_load(&config, &err)) /* reported as everywhere else */
    return cli_fail("config", &err);
  json_auto_t *values = config_values(path, &err), *list = json_array();
  if (values == NULL)
    return cli_fail("config", &err);
  put_file_keys(list, values, path);
  put_places(list);
  if (cli_flag(args, "json")) {
    json_io_put(json_pack("{ss*sO}", "file", path[0] ? path : NULL, "settings", list));
  } else {
    JSON_EACH(list, i, s) {
      const json_t *value = json_object_get(s, "value");
      const char *origin = cli_text(s, "origin");
      bool is_plain = json_is_string(value) || json_is_null(value);
      char_auto_t *text = is_plain ? NULL : json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
      const char *shown = text ? text : json_string_value(value);
      buf_auto_t safe = {0};
      buf_safe(&safe, str_from(shown ? shown : "-"), false);
      printf("%-15s %-40s %s\n", cli_text(s, "key"), buf_c(&safe), origin ? origin : "not set");
    }
  }
  return STATUS_COMPLETE;
}

const struct cli_command cmd_config = {COMMAND_CONFIG, .run = config_run};
