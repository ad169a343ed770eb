/* cli.h - the command line: one table of commands, one way to read options, the exit statuses.
 *
 * A command is a file cli/cmd/NAME.c with a `const struct cli_command`. The list of them and their
 * words, with their options, are in cli/commands.yaml, from which the parser, the help and the
 * completion all come; COMMAND_NAME are its members that are words, made when segue is built:
 *
 *   const struct cli_command cmd_name = {COMMAND_NAME, .run = name_run}; */
#ifndef SEGUE_CLI_CLI_H
#define SEGUE_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/commands.h"
#include "view/number_format.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum exit_status { /* documented in `segue help exit` and docs/configuration.md */
                   STATUS_COMPLETE = 0,
                   STATUS_FAILED = 1, /* failed, or stopped resumably */
                   STATUS_USAGE = 2,  /* bad usage or file */
                   STATUS_ABORT = 3,
                   STATUS_NO_RULE = 4,
                   STATUS_MAX_MOVEMENTS = 5,
                   STATUS_CANCELLED = 6,
                   STATUS_NEEDS_INPUT = 7,
                   STATUS_INTERRUPTED = 130 /* after a clean, logged stop */
};

struct cli_option {
  const char *name;     /* long name without dashes; NULL ends the table */
  char letter;          /* short name or 0 */
  const char *argument; /* NULL: a flag; else its word in help: FILE, NAME=VALUE, ... */
  const char *help;
  bool repeats; /* may be given more than once */
};

struct cli_args;

enum { CLI_WORDS = INT_MAX }; /* any number of words */

struct cli_command {
  const char *name;
  const char *spoken; /* as help shows it: its noun and verb, or its name */
  const char *arguments;
  struct {
    size_t least, most;
  } words; /* how many it takes */
  const char *summary;
  const char *help; /* after the usage line, see cli_wrap_help; may be NULL */
  const struct cli_option *options;
  int (*run)(const struct cli_args *args);
  int (*misused)(int argc, char **argv); /* the status of bad usage; NULL: STATUS_USAGE */
  void (*print_more)(void);              /* at the end of the help; may be NULL */
  bool hidden;
};

/* NULL-terminated, in the order of the help */
extern const struct cli_command *const cli_commands[];
const struct cli_command *cli_find(const char *name);

/* A word under which commands stand together: segue NOUN VERB. */
struct cli_noun {
  const char *name, *summary;
  struct {
    const char *verb, *command;
  } verbs[8]; /* ends with a NULL, as the list of nouns does */
};
extern const struct cli_noun cli_nouns[];
const struct cli_noun *cli_find_noun(const char *name);
/* Returns the command of a noun's verb; NULL: it has none of that name. */
const struct cli_command *cli_find_verb(const struct cli_noun *noun, const char *verb);
void cli_print_noun(const struct cli_noun *noun); /* its help */

/* Holds the arguments as given. Values are borrowed from argv. */
struct cli_args {
  const struct cli_command *command;
  struct {
    const struct cli_option *option;
    const char *value; /* NULL for a flag */
  } given[128];
  size_t given_count;
  char **words; /* the rest, in order; cli_run moves them to the front of argv */
  size_t word_count;
};

/* Reads argv against the command's table and runs it; argv[0] is the command's name. On bad usage,
 * or after --help, it prints instead. Returns what main must return. */
int cli_run(const struct cli_command *command, int argc, char **argv);
bool cli_flag(const struct cli_args *args, const char *name);
const char *cli_value(const struct cli_args *args, const char *name); /* the last one; or NULL */
/* Returns `otherwise` if it is not given. */
const char *cli_value_or(const struct cli_args *args, const char *name, const char *otherwise);
/* Returns --store, or SEGUE_STORE, or the configuration's `store` (after SEGUE_LOGS), if the
 * command has that option; otherwise NULL. Without --logs such a command's value of "logs" is this
 * store, since a store may be named in place of a folder. */
const char *cli_store(const struct cli_args *args);
/* Returns the i-th value of a repeating option, NULL after the last. */
const char *cli_values(const struct cli_args *args, const char *name, size_t i);

/* Returns the texts of `segue help exit` and the like; NULL: there is no such topic. */
const char *help_topic(const char *name);

/* Reads the whole number of an option, if it is given. False: it is none, or out of the range. */
bool cli_number(const struct cli_args *args, const char *option, long least, long most, long *out,
                struct err *err) MUST_CHECK;

/* Appends a text as a part of an address: what is neither plain nor in `also` as %XX. */
void cli_put_encoded(struct buf *out, const char *text, const char *also);

/* Returns the object that is a member of another; one that is missing is added. Borrowed. */
json_t *cli_member(json_t *object, const char *name);

/* Prints words of the program's own and text from outside, made safe for a terminal (buf_safe). A
 * line end counts only at the end of `fmt`. */
void cli_say(FILE *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Appends "rule 2", or "no rule" for 0. */
void cli_put_rule(struct buf *out, long rule);
/* Returns false if the value of `flag` is not UTF-8, so that no record could hold it. */
bool cli_is_utf8(const char *flag, const char *text, struct err *err) MUST_CHECK;

/* Prints each error from now on also on standard output, one line each: {"error":{"message",
 * "file", "line", "column"}}. For commands that were called with --json. */
void cli_errors_as_json(bool on);
void cli_tell_json(const struct err *err); /* does so when it is on */
/* Asks a question with [y/N] on the terminal. */
enum cli_said { CLI_SAID_NO, CLI_SAID_YES, CLI_SAID_NOTHING /* there is no terminal */ };
enum cli_said cli_asks(const char *question);

/* Writes text for XML 1.0, which has no place for control characters, U+FFFE and U+FFFF, nor for
 * bytes that are no UTF-8. */
void cli_put_xml(FILE *out, const char *text);

json_t *cli_error_json(const struct err *err); /* {"message", ...}: a new reference */
/* Prints "segue COMMAND: message" and returns the status for that error. */
int cli_fail(const char *command, const struct err *err);
/* Returns the status of a command that is done if `ok`; otherwise does so. */
int cli_done(const char *command, bool ok, const struct err *err);
/* Does so and returns another status. */
int cli_fail_with(int status, const char *command, const struct err *err);
/* Does so for a wrong use, which the format describes. */
int cli_refuse(const char *command, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Prints file:line:column: text, the line itself, and a caret. */
void cli_print_file_error(const struct err *err, const char *severity);
/* Reads the line that an error in a file points at, and the byte of its column into *at; false if
 * it cannot be read. */
bool cli_line_of(const struct err *err, struct buf *line, size_t *at) MUST_CHECK;
void cli_print_help(const struct cli_command *command);

/* Colours are used only on a terminal, without NO_COLOR and unless TERM is dumb. */
enum colour {
  COLOUR_NONE,
  COLOUR_BOLD,
  COLOUR_DIM,
  COLOUR_RED,
  COLOUR_GREEN,
  COLOUR_YELLOW,
  COLOUR_MAGENTA,
  COLOUR_CYAN
};
bool cli_colours(int fd);
const char *cli_paint(bool colours, enum colour colour); /* the escape, or "" */
int cli_columns(int fd); /* COLUMNS, else the terminal's width, else 80 within limits.h */

/* Returns the columns for help on standard output: the terminal's, but no more than reads well. */
size_t cli_help_columns(void);

/* Appends the words of a text without line ends. A word that would pass `columns` begins a new line
 * after `indent` spaces; a word wider than a line stays whole on a line of its own. `used` columns
 * of the first line are taken. Ends without a line end. Widths are bytes, so it is for our own
 * texts. */
void cli_wrap(struct buf *out, struct str text, size_t used, size_t indent, size_t columns);

/* Appends a help text. Each of its lines is a paragraph and is wrapped; a line that begins with a
 * space is an example or a table, and is kept as it is. */
void cli_wrap_help(struct buf *out, const char *text, size_t columns);

/* Appends text cut to `columns` display columns (ends in an ellipsis when cut), made safe. Returns
 * the columns used. */
int cli_fit(struct buf *out, struct str text, int columns);
/* Does the same for a cell of a table, which spaces make at least `width` columns wide. */
int cli_cell(struct buf *out, struct str text, int width, int columns);

/* Returns the text of a member, NULL if it is none; or "". */
const char *cli_text(const json_t *object, const char *key);
const char *cli_word(const json_t *object, const char *key);
/* Makes a list of texts of words that stand between commas; white space around them is left out. */
json_t *cli_list(const char *words);

#define COMMAND_DECLARED(name) extern const struct cli_command cmd_##name;
COMMANDS(COMMAND_DECLARED)
#undef COMMAND_DECLARED

#endif
