/* segue manual: prints a manual page, or writes them all, for those who install or package. */
#include "base/resource.h"
#include "cli/cli.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- the pages --- */

/* Writes the manual pages from the tables that the parser, the help and the checks use, so that no
 * page can disagree with the program.
 *
 * Pages: segue(1), one for each command, segue-workflow(5) from schemas/workflow.json,
 * segue-log(5) from schemas/session-log.json. The language is man(7)'s. */

/* ---- man(7) ---- */

/* Writes text so that each character means itself, whatever roff makes of it (groff_char(7)). */
static void manual_escaped(struct buf *out, struct str text) {
  if (text.n > 0 && (text.p[0] == '.' || text.p[0] == '\''))
    buf_puts(out, "\\&");
  for (size_t i = 0; i < text.n; i++)
    switch (text.p[i]) {
    case '\\':
      buf_puts(out, "\\e");
      break;
    case '-':
      buf_puts(out, "\\-");
      break;
    case '\'':
      buf_puts(out, "\\(aq");
      break;
    case '`':
      buf_puts(out, "\\(ga");
      break;
    case '^':
      buf_puts(out, "\\(ha");
      break;
    case '~':
      buf_puts(out, "\\(ti");
      break;
    case '\n':
      buf_putc(out, ' ');
      break;
    default:
      buf_putc(out, text.p[i]);
    }
}

static void manual_line(struct buf *out, const char *text) {
  manual_escaped(out, str_from(text));
  buf_putc(out, '\n');
}

static void section(struct buf *out, const char *title) {
  buf_printf(out, ".SH %s\n", title);
}

/* Writes the paragraphs of a help text, one on each line. Indented lines stay as they are. */
static void put_paragraphs(struct buf *out, const char *text) {
  bool as_is = false, follows = false;
  while (*text != '\0') {
    size_t n = strcspn(text, "\n");
    bool indented = n > 0 && text[0] == ' ';
    if (indented != as_is) {
      buf_puts(out, indented ? ".RS 4\n.nf\n" : ".fi\n.RE\n");
      as_is = indented;
    }
    if (n == 0)
      buf_puts(out, ".PP\n");
    else if (follows && !indented)
      buf_puts(out, ".br\n");
    follows = n > 0 && !indented;
    manual_escaped(out, (struct str){text + (indented ? strspn(text, " ") : 0),
                                     n - (indented ? strspn(text, " ") : 0)});
    if (n > 0)
      buf_putc(out, '\n');
    text += n + (text[n] == '\n');
  }
  if (as_is)
    buf_puts(out, ".fi\n.RE\n");
}

static void head(struct buf *out, const char *page, const char *number, const char *summary) {
  buf_printf(out, ".TH \"%s\" \"%s\" \"\" \"segue\" \"segue\"\n.ad l\n.nh\n", page, number);
  section(out, "NAME");
  manual_escaped(out, str_from(page));
  buf_puts(out, " \\- ");
  manual_line(out, summary);
}

/* ---- commands ---- */

static void manual_options(struct buf *out, const struct cli_option *options) {
  if (options == NULL || options->name == NULL)
    return;
  section(out, "OPTIONS");
  for (const struct cli_option *o = options; o->name; o++) {
    buf_puts(out, ".TP\n");
    if (o->letter)
      buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
    buf_puts(out, "\\fB\\-\\-");
    manual_escaped(out, str_from(o->name));
    buf_puts(out, "\\fR");
    if (o->argument) {
      buf_puts(out, " \\fI");
      manual_escaped(out, str_from(o->argument));
      buf_puts(out, "\\fR");
    }
    buf_putc(out, '\n');
    manual_line(out, o->help);
  }
}

static void put_exits(struct buf *out) {
  section(out, "EXIT STATUS");
  buf_puts(out, ".nf\n");
  for (const char *at = help_topic("exit"); *at != '\0';) {
    size_t n = strcspn(at, "\n");
    manual_escaped(out, (struct str){at, n});
    buf_putc(out, '\n');
    at += n + (at[n] == '\n');
  }
  buf_puts(out, ".fi\n");
}

static void command_page(struct buf *out, const struct cli_command *command) {
  char page[64];
  print_into(page, sizeof page, "segue-%s", command->name);
  head(out, page, "1", command->summary);
  section(out, "SYNOPSIS");
  buf_printf(out, "\\fBsegue %s\\fR ", command->name);
  manual_line(out, command->arguments ? command->arguments : "");
  if (command->help) {
    section(out, "DESCRIPTION");
    put_paragraphs(out, command->help);
  }
  manual_options(out, command->options);
  put_exits(out);
  section(out, "SEE ALSO");
  buf_puts(out, "\\fBsegue\\fR(1), \\fBsegue\\-workflow\\fR(5), \\fBsegue\\-log\\fR(5)\n");
}

static void main_page(struct buf *out) {
  head(out, "segue", "1",
       "run coding agents through workflows, judge where to go next, and keep the proof");
  section(out, "SYNOPSIS");
  buf_puts(out, "\\fBsegue\\fR \\fICOMMAND\\fR [arguments]\n");
  section(out, "DESCRIPTION");
  buf_puts(
      out,
      "Runs coding agents through the movements of a workflow. After each movement it judges which "
      "rule holds: first by structured output, then by a tag, then by an AI that weighs the "
      "conditions. Every judgment is in a session log, with the method that decided it.\n");
  section(out, "COMMANDS");
  for (size_t i = 0; cli_commands[i]; i++) {
    if (cli_commands[i]->hidden)
      continue;
    buf_puts(out, ".TP\n\\fBsegue\\-");
    manual_escaped(out, str_from(cli_commands[i]->name));
    buf_puts(out, "\\fR(1)\n");
    manual_line(out, cli_commands[i]->summary);
  }
  put_exits(out);
  section(out, "FILES");
  buf_puts(out, ".TP\n\\fI~/.config/segue/config.yaml\\fR\nthe user\\(aqs configuration\n"
                ".TP\n\\fI~/.local/state/segue/logs\\fR\nthe session logs, unless SEGUE_LOGS names "
                "another folder\n"
                ".TP\n\\fI.segue/\\fR\na project\\(aqs own workflows and facets\n");
  section(out, "ENVIRONMENT");
  buf_puts(out,
           ".TP\n\\fBSEGUE_LOGS\\fR\nthe folder of session logs\n.TP\n\\fBSEGUE_STORE\\fR\na "
           "shared store to use instead: postgres://HOST/DATABASE\n.TP\n\\fBXDG_CONFIG_HOME\\fR, "
           "\\fBXDG_STATE_HOME\\fR, \\fBXDG_RUNTIME_DIR\\fR\nwhere the configuration, the logs and "
           "the daemon\\(aqs socket are\n.TP\n\\fBNO_COLOR\\fR, \\fBCOLUMNS\\fR\nno colours; how "
           "wide the terminal is\n");
  section(out, "SEE ALSO");
  buf_puts(out, "\\fBsegue\\-workflow\\fR(5), \\fBsegue\\-log\\fR(5), \\fBsegue help\\fR\n");
}

/* ---- formats ---- */

/* A value's type, or that of the definition it refers to. */
static const json_t *manual_type(const json_t *defs, const json_t *value) {
  const char *definition = strrchr(cli_word(value, "$ref"), '/');
  if (definition != NULL)
    value = json_object_get(defs, definition + 1);
  return json_object_get(value, "type");
}

static void manual_keys(struct buf *out, const json_t *schema, const json_t *defs) {
  JSON_MEMBERS(json_object_get(schema, "properties"), key, value) {
    buf_puts(out, ".TP\n\\fB");
    manual_escaped(out, str_from(key));
    buf_puts(out, "\\fR  \\fI");
    const json_t *type = manual_type(defs, value), *words = json_object_get(value, "enum");
    if (json_is_string(type))
      manual_escaped(out, str_from(json_string_value(type)));
    for (size_t i = 0; i < json_array_size(words) && json_is_string(json_array_get(words, i));
         i++) {
      buf_puts(out, i ? ", " : "one of: ");
      manual_escaped(out, str_from(json_string_value(json_array_get(words, i))));
    }
    buf_puts(out, "\\fR\n");
    manual_line(out, cli_word(value, "description"));
    /* An example gets a line of its own, as it would stand in a file. */
    const json_t *example = json_array_get(json_object_get(value, "examples"), 0);
    char *text = example ? json_dump_text(example, JSON_ENCODE_ANY) : NULL;
    if (text != NULL) {
      buf_puts(out, ".br\n");
      manual_escaped(out, str_from(key));
      buf_puts(out, ": ");
      manual_line(out, text);
      free(text);
    }
  }
}

static bool format_page(struct buf *out, const char *page, const char *resource,
                        const char *summary) {
  const struct resource *r = resource_find(resource);
  json_auto_t *schema = r ? json_loadb(r->p, r->n, 0, NULL) : NULL;
  if (schema == NULL)
    return false;
  head(out, page, "5", summary);
  section(out, "DESCRIPTION");
  manual_line(out, cli_word(schema, "description"));
  buf_puts(out, ".PP\n");
  manual_keys(out, schema, json_object_get(schema, "$defs"));
  JSON_MEMBERS(json_object_get(schema, "$defs"), name, definition) {
    if (json_object_size(json_object_get(definition, "properties")) == 0)
      continue;
    buf_printf(out, ".SH \"");
    manual_escaped(out, str_from(name));
    buf_puts(out, "\"\n");
    if (json_object_get(definition, "description") != NULL)
      manual_line(out, cli_word(definition, "description"));
    manual_keys(out, definition, json_object_get(schema, "$defs"));
  }
  section(out, "SEE ALSO");
  buf_puts(out, "\\fBsegue\\fR(1), \\fBsegue schema\\fR prints the whole JSON Schema\n");
  return true;
}

/* ---- the pages ---- */

static const struct {
  const char *file, *page, *resource, *summary;
} formats[] = {
    {"segue-workflow.5", "segue-workflow", "schemas/workflow.json", "the format of workflow files"},
    {"segue-log.5", "segue-log", "schemas/session-log.json", "the format of session logs"}};

/* Returns the file name of page i, such as "segue-run.1"; NULL after the last. Valid until the next
 * call. */
static const char *manual_name(size_t i) {
  static char name[64];
  if (i == 0)
    return "segue.1";
  if (i <= ARRAY_LEN(formats))
    return formats[i - 1].file;
  i -= 1 + ARRAY_LEN(formats);
  for (size_t c = 0; cli_commands[c]; c++)
    if (!cli_commands[c]->hidden && i-- == 0) {
      print_into(name, sizeof name, "segue-%s.1", cli_commands[c]->name);
      return name;
    }
  return NULL;
}

/* Appends the page of that name; false: there is none. */
static bool manual_page(struct buf *out, const char *name) {
  assert(name != NULL);
  if (strcmp(name, "segue.1") == 0) {
    main_page(out);
    return true;
  }
  for (size_t i = 0; i < ARRAY_LEN(formats); i++)
    if (strcmp(name, formats[i].file) == 0)
      return format_page(out, formats[i].page, formats[i].resource, formats[i].summary);
  for (size_t c = 0; cli_commands[c]; c++) {
    char file[64];
    print_into(file, sizeof file, "segue-%s.1", cli_commands[c]->name);
    if (!cli_commands[c]->hidden && strcmp(name, file) == 0) {
      command_page(out, cli_commands[c]);
      return true;
    }
  }
  return false;
}

/* --- the command --- */

static bool write_page(const char *folder, const char *name, struct err *err) {
  char path[4096];
  size_t n = strlen(name);
  int length = snprintf(path, sizeof path, "%s/man%c", folder, name[n - 1]);
  if (length < 0 || (size_t)length + n + 2 > sizeof path)
    return err_set(err, ERR_USAGE, "the name of the folder is too long");
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
  print_into(path + length, sizeof path - (size_t)length, "/%s", name);
  buf_auto_t page = {0};
  FILE *file = manual_page(&page, name) ? fopen(path, "we") : NULL;
  bool ok = file != NULL && fwrite(page.p, 1, page.n, file) == page.n;
  ok = file != NULL && fclose(file) == 0 && ok;
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
  buf_auto_t page = {0};
  bool whole = strchr(word, '.') != NULL, main_page = strcmp(word, "segue") == 0;
  print_into(name, sizeof name, "%s%s%s", whole || main_page ? "" : "segue-", word,
             whole ? "" : ".1");
  bool found = manual_page(&page, name);
  if (found)
    fwrite(page.p, 1, page.n, stdout);
  else
    fprintf(stderr, "segue manual: there is no such page: segue manual --list names them\n");
  return found ? STATUS_COMPLETE : STATUS_USAGE;
}

static int manual_run(const struct cli_args *args) {
  struct err err;
  const char *folder = cli_value(args, "all"), *name;
  if (folder != NULL)
    return manual_write_all(folder, &err) ? STATUS_COMPLETE : cli_fail("manual", &err);
  if (!cli_flag(args, "list"))
    return print_page(args->word_count > 0 ? args->words[0] : "segue");
  for (size_t i = 0; (name = manual_name(i)) != NULL; i++)
    puts(name);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_manual = {COMMAND_MANUAL, .run = manual_run};
