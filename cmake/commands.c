/* commands YAML OUT - a build tool: src/cli/commands.yaml as a header that defines COMMANDS, the list
 * of all; COMMAND_NAME for each, the members of its struct cli_command that are words and not code;
 * COMMAND_PAGES and COMMAND_FIRST, how help groups them; and COMMAND_NOUNS. */
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/resource.h"
#include "format/yaml.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct resource resource_table[] = {{0, 0, 0}}; /* none is compiled in here */

enum { MOST_BYTES = 1024 * 1024 };

/* A text of JSON is one of C, but for \u, which no help needs. */
static void put_text(struct buf *out, const char *text, size_t n) {
  json_t *value = json_stringn(text, n);
  char *quoted = json_dumps(value, JSON_ENCODE_ANY);
  buf_puts(out, quoted);
  free(quoted);
  json_decref(value);
}

static void put_member(struct buf *out, const json_t *command, const char *member) {
  const json_t *text = json_object_get(command, member);
  if (text == NULL)
    return;
  buf_printf(out, ", .%s = ", member);
  put_text(out, json_string_value(text), json_string_length(text));
}

/* Puts "-t, --task TEXT (repeats)". */
static void put_option(struct buf *out, const char *key, const char *help) {
  static const char repeats[] = " (repeats)";
  size_t n = strlen(key), name;
  char letter = key[1] != '-' ? key[1] : '\0';
  bool again = n > strlen(repeats) && strcmp(key + n - strlen(repeats), repeats) == 0;
  n -= again ? strlen(repeats) : 0;
  key = strstr(key, "--");
  if (key == NULL || help == NULL)
    die("an option needs a long name and a text");
  n -= letter != '\0' ? strlen("-t, --") : strlen("--");
  key += strlen("--");
  name = strcspn(key, " ");
  name = name < n ? name : n;
  buf_puts(out, "{");
  put_text(out, key, name);
  buf_printf(out, letter != '\0' ? ", '%c', " : ", 0, ", letter);
  if (name < n)
    put_text(out, key + name + 1, n - name - 1);
  else
    buf_puts(out, "NULL");
  buf_puts(out, ", ");
  put_text(out, help, strlen(help));
  buf_printf(out, ", %s}, ", again ? "true" : "false");
}

static void put_options(struct buf *out, const json_t *groups, const json_t *options) {
  const char *key;
  json_t *help;
  json_object_foreach((json_t *)options, key, help) {
    if (key[0] == '-') {
      put_option(out, key, json_string_value(help));
    } else if (strcmp(key, "store") == 0) {
      put_option(out, "-l, --logs DIR", json_string_value(help));
      put_option(out, "--store URL", "use this shared store instead: postgres://HOST/DATABASE");
    } else {
      if (json_object_get(groups, key) == NULL)
        die("there is no group %s", key);
      put_options(out, groups, json_object_get(groups, key));
    }
  }
}

static void put_bound(struct buf *out, const json_t *words, size_t i) {
  const json_t *bound = json_array_get(words, i);
  buf_printf(out, json_is_string(bound) ? "CLI_WORDS" : "%lld",
             (long long)json_integer_value(bound));
}

/* Puts "NOUN VERB" of a command that has one, else its name. */
static void put_spoken(struct buf *out, const json_t *nouns, const char *command) {
  const char *noun, *verb;
  json_t *of, *name;
  json_object_foreach((json_t *)nouns, noun, of) {
    json_object_foreach(json_object_get(of, "verbs"), verb, name) {
      if (strcmp(json_string_value(name), command) == 0) {
        buf_printf(out, ", .spoken = \"%s %s\"", noun, verb);
        return;
      }
    }
  }
  buf_printf(out, ", .spoken = \"%s\"", command);
}

static void put_nouns(struct buf *out, const json_t *nouns) {
  const char *noun, *verb;
  json_t *of, *name;
  buf_puts(out, "\n#define COMMAND_NOUNS ");
  json_object_foreach((json_t *)nouns, noun, of) {
    buf_printf(out, "{\"%s\", ", noun);
    const json_t *summary = json_object_get(of, "summary");
    put_text(out, json_string_value(summary), json_string_length(summary));
    buf_puts(out, ", {");
    json_object_foreach(json_object_get(of, "verbs"), verb, name) {
      buf_printf(out, "{\"%s\", \"%s\"}, ", verb, json_string_value(name));
    }
    buf_puts(out, "}}, ");
  }
}

/* Puts the names of the first page, with "" between its groups. */
static void put_first(struct buf *out, const json_t *groups) {
  size_t i, k;
  const json_t *group, *name;
  buf_puts(out, "\n#define COMMAND_FIRST ");
  json_array_foreach(groups, i, group) {
    if (i > 0)
      buf_puts(out, "\"\", ");
    json_array_foreach(group, k, name) {
      buf_printf(out, "\"%s\", ", json_string_value(name));
    }
  }
}

static void put_command(struct buf *out, const json_t *root, const char *name,
                        const json_t *command) {
  const json_t *words = json_object_get(command, "words");
  buf_puts(out, "#define COMMAND_");
  for (const char *p = name; *p; p++)
    buf_putc(out, (char)toupper((unsigned char)*p));
  buf_printf(out, " .name = \"%s\", .words = {", name);
  put_bound(out, words, 0);
  buf_puts(out, ", ");
  put_bound(out, words, 1);
  buf_puts(out, "}");
  put_spoken(out, json_object_get(root, "nouns"), name);
  put_member(out, command, "arguments");
  put_member(out, command, "summary");
  put_member(out, command, "help");
  buf_puts(out, ", .options = (const struct cli_option[]){");
  put_options(out, json_object_get(root, "groups"), json_object_get(command, "options"));
  buf_puts(out, "{0}}\n");
}

static void put_page(struct buf *out, const char *title, const json_t *names) {
  size_t i;
  const json_t *name;
  buf_printf(out, "{\"%s\", {", title);
  json_array_foreach(names, i, name) {
    buf_printf(out, "\"%s\", ", json_string_value(name));
  }
  buf_puts(out, "}}, ");
}

int main(int argc, char **argv) {
  struct buf in = {0}, out = {0};
  struct err err;
  const char *name;
  json_t *command, *names;
  if (argc != 3)
    die("usage: commands YAML OUT");
  if (!file_read(argv[1], MOST_BYTES, &in, &err))
    die("%s", err.text);
  json_t *root = yaml_load(argv[1], buf_view(&in), MOST_BYTES, &err);
  if (root == NULL)
    die("%s:%d:%d: %s", argv[1], err.line, err.column, err.text);
  buf_puts(&out, "#define COMMANDS(COMMAND)");
  json_object_foreach(json_object_get(root, "commands"), name, command) {
    buf_printf(&out, " COMMAND(%s)", name);
  }
  buf_puts(&out, "\n#define COMMAND_PAGES ");
  json_object_foreach(json_object_get(root, "pages"), name, names) {
    put_page(&out, name, names);
  }
  put_first(&out, json_object_get(root, "first"));
  put_nouns(&out, json_object_get(root, "nouns"));
  buf_putc(&out, '\n');
  json_object_foreach(json_object_get(root, "commands"), name, command) {
    put_command(&out, root, name, command);
  }
  FILE *f = fopen(argv[2], "w");
  if (f == NULL || fwrite(out.p, 1, out.n, f) != out.n || fclose(f) != 0)
    die("%s cannot be written", argv[2]);
  json_decref(root);
  buf_deinit(&in);
  buf_deinit(&out);
  return 0;
}
