/* Parses command lines, prints errors with their place, and fits text to a terminal. */
#include "cli/cli.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/json_io.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/config.h"
#include "store/store.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option help_option = {"help", 'h', NULL, "show this help", false};

static const char *given_value(const struct cli_args *args, const char *name) {
  const char *value = NULL;
  for (size_t i = 0; i < args->given_count; i++)
    if (strcmp(args->given[i].option->name, name) == 0)
      value = args->given[i].value;
  return value;
}

static const struct cli_option *find_long(const struct cli_command *command, struct str name) {
  if (str_eq_c(name, "help"))
    return &help_option;
  for (const struct cli_option *o = command->options; o && o->name; o++)
    if (str_eq_c(name, o->name))
      return o;
  return NULL;
}

static const struct cli_option *find_letter(const struct cli_command *command, char letter) {
  if (letter == 'h')
    return &help_option;
  for (const struct cli_option *o = command->options; o && o->name; o++)
    if (o->letter == letter)
      return o;
  return NULL;
}

static bool usage(const struct cli_command *command, int *status, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

static bool usage(const struct cli_command *command, int *status, const char *fmt, ...) {
  buf_auto_t text = {0};
  char raw[512];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(raw, sizeof raw, fmt, ap);
  va_end(ap);
  buf_safe(&text, str_from(raw), false);
  fprintf(stderr, "segue %s: %s\ntry: segue help %s\n", command->name, text.p, command->name);
  *status = STATUS_USAGE;
  return false;
}

static bool unknown_option(const struct cli_command *command, int *status, struct str name) {
  const char *names[64] = {"help"};
  size_t n = 1;
  for (const struct cli_option *o = command->options; o && o->name && n < 63; o++)
    names[n++] = o->name;
  const char *near = str_nearest(name, names);
  return usage(command, status, "there is no option --%.*s%s%s%s", (int)name.n, name.p,
               near ? ": did you mean --" : "", near ? near : "", near ? "?" : "");
}

struct parsing {
  const struct cli_command *command;
  int argc, at; /* the argument being read */
  char **argv;
  struct cli_args *out;
  int *status;
};

/* Takes one option. `value` is what was written with it; NULL means the next argument, if it takes
 * one. */
static bool take_option(struct parsing *p, const struct cli_option *option, const char *value) {
  struct cli_args *out = p->out;
  if (option == &help_option) {
    cli_print_help(p->command);
    *p->status = STATUS_COMPLETE;
    return false;
  }
  if (option->argument != NULL && value == NULL) {
    if (p->at + 1 == p->argc)
      return usage(p->command, p->status, "--%s needs %s", option->name, option->argument);
    value = p->argv[++p->at];
  }
  if (!option->repeats && option->argument && given_value(out, option->name) != NULL)
    return usage(p->command, p->status, "--%s is given twice", option->name);
  if (out->given_count == ARRAY_LEN(out->given))
    return usage(p->command, p->status, "too many options");
  out->given[out->given_count].option = option;
  out->given[out->given_count++].value = value;
  return true;
}

static bool take_long(struct parsing *p, const char *arg) {
  const char *equals = strchr(arg, '=');
  struct str name = {arg + 2, equals ? (size_t)(equals - arg) - 2 : strlen(arg + 2)};
  const struct cli_option *option = find_long(p->command, name);
  if (option == NULL)
    return unknown_option(p->command, p->status, name);
  if (equals && option->argument == NULL)
    return usage(p->command, p->status, "--%s takes no value", option->name);
  return take_option(p, option, equals ? equals + 1 : NULL);
}

/* Returns the bytes of a character, so that one that is not ASCII is shown whole. */
static int letter_bytes(const char *at) {
  size_t n = utf8_decode(at, strlen(at), NULL);
  return n > 0 ? (int)n : 1;
}

/* Reads "-q", "-qt TEXT", "-qtTEXT": flags first; the rest after an option with a value is the
 * value. */
static bool take_letters(struct parsing *p, const char *arg) {
  for (const char *letter = arg + 1; *letter; letter++) {
    const struct cli_option *option = find_letter(p->command, *letter);
    if (option == NULL)
      return usage(p->command, p->status, "there is no option -%.*s", letter_bytes(letter), letter);
    bool ends = option->argument != NULL;
    if (!take_option(p, option, ends && letter[1] ? letter + 1 : NULL))
      return false;
    if (ends)
      break;
  }
  return true;
}

const char *cli_store(const struct cli_args *args) {
  const char *store = given_value(args, "store");
  bool takes_one = find_long(args->command, STR("store")) != NULL;
  if (store == NULL && takes_one)
    store = getenv("SEGUE_STORE");
  if (store == NULL && takes_one && getenv("SEGUE_LOGS") == NULL)
    store = config_store();
  return store && store[0] ? store : NULL;
}

static bool parse(const struct cli_command *command, int argc, char **argv, struct cli_args *out,
                  int *status) {
  assert(argc > 0);
  assert(command->words.least <= command->words.most);
  struct parsing p = {command, argc, 1, argv, out, status};
  bool only_words = false;
  *out = (struct cli_args){.command = command, .words = argv};
  for (; p.at < argc; p.at++) {
    char *arg = argv[p.at];
    if (only_words || arg[0] != '-' || arg[1] == '\0') {
      if (out->word_count == command->words.most)
        return usage(command, status, "too many arguments: \"%.100s\"%s", arg,
                     find_long(command, STR("task")) ? ": write the task after --task" : "");
      out->words[out->word_count++] = arg;
    } else if (strcmp(arg, "--") == 0) {
      only_words = true;
    } else if (!(arg[1] == '-' ? take_long(&p, arg) : take_letters(&p, arg))) {
      return false;
    }
  }
  if (out->word_count < command->words.least)
    return usage(command, status, "missing argument: segue %s %s", command->spoken,
                 command->arguments);
  const char *store = cli_store(out);
  if (store != NULL && given_value(out, "logs") == NULL && !store_is_address(store))
    return usage(command, status,
                 "\"%.80s\" is not a store's address: write postgres://HOST/DATABASE", store);
  return true;
}

int cli_run(const struct cli_command *command, int argc, char **argv) {
  struct cli_args args;
  int status;
  if (parse(command, argc, argv, &args, &status))
    return command->run(&args);
  return status == STATUS_USAGE && command->misused != NULL ? command->misused(argc, argv) : status;
}

bool cli_flag(const struct cli_args *args, const char *name) {
  assert(name != NULL);
  for (size_t i = 0; i < args->given_count; i++)
    if (strcmp(args->given[i].option->name, name) == 0)
      return true;
  return false;
}

const char *cli_values(const struct cli_args *args, const char *name, size_t index) {
  assert(name != NULL);
  for (size_t i = 0; i < args->given_count; i++)
    if (strcmp(args->given[i].option->name, name) == 0 && index-- == 0)
      return args->given[i].value;
  return NULL;
}

const char *cli_value(const struct cli_args *args, const char *name) {
  assert(name != NULL);
  const char *value = given_value(args, name);
  return value == NULL && strcmp(name, "logs") == 0 ? cli_store(args) : value;
}

const char *cli_value_or(const struct cli_args *args, const char *name, const char *otherwise) {
  const char *value = cli_value(args, name);
  return value != NULL ? value : otherwise;
}

const struct cli_command *cli_find(const char *name) {
  assert(name != NULL);
  for (size_t i = 0; cli_commands[i]; i++)
    if (strcmp(cli_commands[i]->name, name) == 0)
      return cli_commands[i];
  return NULL;
}

enum { READABLE_COLUMNS = 92 };

size_t cli_help_columns(void) {
  int columns = cli_columns(STDOUT_FILENO);
  return columns > READABLE_COLUMNS ? READABLE_COLUMNS : (size_t)columns;
}

void cli_wrap(struct buf *out, struct str text, size_t used, size_t indent, size_t columns) {
  bool begins = true; /* nothing stands on this line that a space would part from */
  while (text.n > 0) {
    const char *space = memchr(text.p, ' ', text.n);
    size_t n = space ? (size_t)(space - text.p) : text.n;
    if (!begins && used + 1 + n > columns) {
      buf_printf(out, "\n%*s", (int)indent, "");
      used = indent;
      begins = true;
    }
    if (!begins)
      buf_putc(out, ' ');
    buf_append(out, text.p, n);
    used += n + !begins;
    begins = false;
    n += space != NULL;
    text = (struct str){text.p + n, text.n - n};
  }
}

void cli_wrap_help(struct buf *out, const char *text, size_t columns) {
  while (*text != '\0') {
    size_t n = strcspn(text, "\n");
    if (text[0] == ' ')
      buf_append(out, text, n);
    else
      cli_wrap(out, (struct str){text, n}, 0, 0, columns);
    buf_putc(out, '\n');
    text += n + (text[n] == '\n');
  }
}

void cli_print_help(const struct cli_command *command) {
  buf_auto_t out = {0};
  size_t columns = cli_help_columns();
  buf_printf(&out, command->arguments[0] != '\0' ? "segue %s " : "segue %s", command->spoken);
  cli_wrap(&out, str_from(command->arguments), out.n, 8, columns);
  buf_putc(&out, '\n');
  cli_wrap_help(&out, command->summary, columns);
  if (command->help) {
    buf_putc(&out, '\n');
    cli_wrap_help(&out, command->help, columns);
  }
  if (command->options && command->options->name)
    buf_putc(&out, '\n');
  for (const struct cli_option *o = command->options; o && o->name; o++) {
    /* On a narrow screen an option's description goes below it. */
    enum { BESIDE = 29, BELOW = 8, NARROW = 64 };
    size_t begin = out.n, indent = columns < NARROW ? BELOW : BESIDE;
    if (o->letter != 0)
      buf_printf(&out, "  -%c, --%s", o->letter, o->name);
    else
      buf_printf(&out, "      --%s", o->name);
    if (o->argument != NULL)
      buf_printf(&out, " %s", o->argument);
    size_t used = columns < NARROW ? 0 : out.n - begin;
    buf_printf(&out, "%s%*s", columns < NARROW ? "\n" : "",
               used < indent ? (int)(indent - used) : 1, "");
    cli_wrap(&out, str_from(o->help), used < indent ? indent : used + 1, indent, columns);
    buf_putc(&out, '\n');
  }
  fputs(buf_c(&out), stdout);
  if (command->print_more)
    command->print_more();
}

void cli_say(FILE *out, const char *fmt, ...) {
  char_auto_t *text = NULL;
  buf_auto_t safe = {0};
  va_list ap;
  va_start(ap, fmt);
  int n = vasprintf(&text, fmt, ap);
  va_end(ap);
  if (n < 0)
    die("out of memory");
  bool ends = str_ends(str_from(fmt), "\n");
  buf_safe(&safe, (struct str){text, (size_t)n - ends}, false);
  fprintf(out, "%s%s", buf_c(&safe), ends ? "\n" : "");
}

void cli_put_rule(struct buf *out, long rule) {
  if (rule > 0)
    buf_printf(out, "rule %ld", rule);
  else
    buf_puts(out, "no rule");
}

bool cli_is_utf8(const char *flag, const char *text, struct err *err) {
  return utf8_valid(text, strlen(text)) ||
         err_set(err, ERR_USAGE, "%s: \"%.200s\" is not UTF-8", flag, text);
}

static bool errors_as_json; /* for the one command that this process runs */

bool cli_number(const struct cli_args *args, const char *option, long least, long most, long *out,
                struct err *err) {
  const char *text = cli_value(args, option);
  if (text == NULL)
    return true;
  return (str_to_long(str_from(text), out) && *out >= least && *out <= most) ||
         err_set(err, ERR_USAGE, "--%s %.40s: write a number from %ld to %ld", option, text, least,
                 most);
}

void cli_put_encoded(struct buf *out, const char *text, const char *also) {
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (strchr("-._~", c) || strchr(also, c) || (c >= '0' && c <= '9') ||
        ((c | 32) >= 'a' && (c | 32) <= 'z'))
      buf_putc(out, (char)c);
    else
      buf_printf(out, "%%%02X", c);
  }
}

json_t *cli_member(json_t *object, const char *name) {
  json_t *member = json_object_get(object, name);
  if (member == NULL && json_object_set_new(object, name, member = json_object()) != 0)
    return NULL;
  return member;
}

void cli_errors_as_json(bool on) {
  errors_as_json = on;
}

json_t *cli_error_json(const struct err *err) {
  json_t *error = json_pack("{so}", "message", json_io_string(err->text));
  if (err->line > 0) {
    json_object_set_new(error, "file", json_io_string(err->file));
    json_object_set_new(error, "line", json_integer(err->line));
    json_object_set_new(error, "column", json_integer(err->column));
  }
  return error;
}

void cli_tell_json(const struct err *err) {
  if (!errors_as_json)
    return;
  json_io_put(json_pack("{so}", "error", cli_error_json(err)));
}

int cli_fail(const char *command, const struct err *err) {
  assert(command != NULL);
  assert(err != NULL);
  buf_auto_t text = {0};
  if (err->line > 0) {
    cli_print_file_error(err, "error");
  } else {
    buf_safe(&text, str_from(err->text), true);
    fprintf(stderr, "segue %s: %s\n", command, buf_c(&text));
    cli_tell_json(err);
  }
  bool by_user = err->code == ERR_USAGE || err->code == ERR_FILE || err->code == ERR_NOT_FOUND ||
                 err->code == ERR_LIMIT || err->code == ERR_INVALID;
  return by_user ? STATUS_USAGE : STATUS_FAILED;
}

enum cli_said cli_asks(const char *question) {
  char answer[16] = "";
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return CLI_SAID_NOTHING;
  fprintf(stderr, "%s [y/N] ", question);
  bool yes = fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
  return yes ? CLI_SAID_YES : CLI_SAID_NO;
}

int cli_done(const char *command, bool ok, const struct err *err) {
  return ok ? STATUS_COMPLETE : cli_fail(command, err);
}

int cli_fail_with(int status, const char *command, const struct err *err) {
  (void)cli_fail(command, err);
  return status;
}

int cli_refuse(const char *command, const char *fmt, ...) {
  struct err err;
  char text[sizeof err.text];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  err_set(&err, ERR_USAGE, "%s", text);
  return cli_fail(command, &err);
}

/* Returns how many bytes of a line come before the column, which counts characters from 1. */
static size_t column_offset(struct str line, int column) {
  size_t at = 0;
  for (int i = 1; i < column && at < line.n; i++) {
    size_t n = utf8_decode(line.p + at, line.n - at, NULL);
    at += n > 0 ? n : 1;
  }
  return at;
}

bool cli_line_of(const struct err *err, struct buf *out, size_t *at) {
  buf_auto_t text = {0};
  struct err ignored;
  bool found = false;
  if (file_read(err->file, LIMIT_WORKFLOW_BYTES, &text, &ignored)) {
    struct str rest = buf_view(&text), line;
    for (int i = 1; rest.p != NULL && !found; i++) {
      line = str_next_line(&rest);
      if (i == err->line) {
        buf_str(out, line);
        *at = column_offset(line, err->column);
        found = true;
      }
    }
  }
  return found;
}

/* Prints the line and a caret under its column; for a long line, the part around the column. */
static void print_place(const struct err *err, struct str line, size_t at, bool colours) {
  enum { WIDTH = 120, BEFORE = 80, KEPT = 60 }; /* columns: in all, before the caret */
  static const struct str ellipsis = STR_INIT("\xE2\x80\xA6");
  buf_auto_t shown = {0}, before = {0};
  if (line.n > 0 && line.p[line.n - 1] == '\r')
    line.n--;
  int used = cli_fit(&before, (struct str){line.p, at}, INT_MAX);
  if (used > BEFORE) {
    size_t from = column_offset(line, err->column - KEPT);
    buf_clear(&before);
    buf_str(&shown, ellipsis);
    used = 1 + cli_fit(&before, (struct str){line.p + from, at - from}, INT_MAX);
    line = (struct str){line.p + from, line.n - from};
  }
  (void)cli_fit(&shown, line, WIDTH - (shown.n > 0));
  fprintf(stderr, "%5d | %s\n", err->line, buf_c(&shown));
  if (used < WIDTH)
    fprintf(stderr, "      | %*s%s^%s\n", used, "", cli_paint(colours, COLOUR_GREEN),
            cli_paint(colours, COLOUR_NONE));
}

void cli_print_file_error(const struct err *err, const char *severity) {
  bool colours = cli_colours(STDERR_FILENO);
  buf_auto_t line = {0}, text = {0}, file = {0};
  size_t at = 0;
  buf_safe(&file, str_from(err->file), false);
  buf_safe(&text, str_from(err->text), true);
  fprintf(stderr, "%s%s:%d:%d:%s %s%s%s%s%s\n", cli_paint(colours, COLOUR_BOLD), buf_c(&file),
          err->line, err->column, cli_paint(colours, COLOUR_NONE),
          cli_paint(colours, severity[0] == 'w' ? COLOUR_YELLOW : COLOUR_RED),
          strcmp(severity, "error") == 0 ? "" : severity,
          strcmp(severity, "error") == 0 ? "" : ": ", cli_paint(colours, COLOUR_NONE),
          buf_c(&text));
  if (strcmp(severity, "error") == 0)
    cli_tell_json(err);
  if (cli_line_of(err, &line, &at))
    print_place(err, buf_view(&line), at, colours);
}

bool cli_colours(int fd) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  const char *force = getenv("CLICOLOR_FORCE"); /* also into a pipe, such as into less -R */
  if (force != NULL && force[0] != '\0' && strcmp(force, "0") != 0)
    return no_color == NULL || no_color[0] == '\0';
  return isatty(fd) && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
         strcmp(term, "dumb") != 0;
}

const char *cli_paint(bool colours, enum colour colour) {
  static const char *const escapes[] = {
      [COLOUR_NONE] = "\033[0m",     [COLOUR_BOLD] = "\033[1m",   [COLOUR_DIM] = "\033[2m",
      [COLOUR_RED] = "\033[31m",     [COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
      [COLOUR_MAGENTA] = "\033[35m", [COLOUR_CYAN] = "\033[36m"};
  return colours ? escapes[colour] : "";
}

int cli_columns(int fd) {
  const char *given = getenv("COLUMNS");
  struct winsize size;
  long n = 0;
  if ((given == NULL || !str_to_long(str_from(given), &n)) && ioctl(fd, TIOCGWINSZ, &size) == 0)
    n = size.ws_col;
  if (n <= 0)
    n = isatty(fd) ? 80 : LIMIT_TERM_COLUMNS;
  if (n < LIMIT_TERM_MIN_COLUMNS)
    return LIMIT_TERM_MIN_COLUMNS;
  return n > LIMIT_TERM_COLUMNS ? LIMIT_TERM_COLUMNS : (int)n;
}

int cli_fit(struct buf *out, struct str text, int columns) {
  assert(out != NULL);
  buf_auto_t safe = {0};
  int used = 0;
  buf_safe(&safe, text, false);
  size_t i = 0, cut = 0;
  while (i < safe.n) {
    uint32_t cp = ' ';
    size_t n = utf8_decode(safe.p + i, safe.n - i, &cp);
    int width = utf8_width(cp);
    if (used + width > columns)
      break;
    used += width;
    i += n ? n : 1;
    if (used < columns)
      cut = i;
  }
  if (i < safe.n && columns > 0) {
    used = 0;
    for (size_t k = 0; k < cut;) {
      uint32_t cp = ' ';
      size_t n = utf8_decode(safe.p + k, safe.n - k, &cp);
      used += utf8_width(cp);
      k += n ? n : 1;
    }
    buf_append(out, safe.p, cut);
    buf_puts(out, "\xE2\x80\xA6"); /* an ellipsis */
    used++;
  } else {
    buf_append(out, buf_c(&safe), safe.n);
  }
  return used;
}

int cli_cell(struct buf *out, struct str text, int width, int columns) {
  int used = cli_fit(out, text, columns);
  for (; used < width; used++)
    buf_putc(out, ' ');
  return used;
}

const char *cli_text(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

const char *cli_word(const json_t *object, const char *key) {
  return json_view_at(object, key).p;
}

json_t *cli_list(const char *words) {
  json_t *list = json_array();
  for (const char *at = words; at != NULL; at = *at == ',' ? at + 1 : NULL) {
    size_t n = strcspn(at, ",");
    json_array_append_new(list, json_text(str_trim((struct str){at, n})));
    at += n;
  }
  return list;
}

void cli_put_xml(FILE *out, const char *text) {
  size_t n = strlen(text), used;
  for (size_t i = 0; i < n; i += used) {
    uint32_t cp;
    used = utf8_decode(text + i, n - i, &cp);
    bool odd = used == 0 || (cp < ' ' && cp != '\n' && cp != '\t') || cp == 0xFFFE || cp == 0xFFFF;
    if (used == 0)
      used = 1;
    if (odd)
      putc('?', out);
    else if (cp == '&')
      fputs("&amp;", out);
    else if (cp == '<')
      fputs("&lt;", out);
    else if (cp == '>')
      fputs("&gt;", out);
    else if (cp == '"')
      fputs("&quot;", out);
    else
      (void)fwrite(text + i, 1, used, out);
  }
}
