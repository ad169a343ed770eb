/* err.h - an error as a value: set where it is found, wrapped on the way up, printed at the top.
 *
 * No heap, no ownership: copy it, put it on the stack. Fallible functions return bool, take
 * `struct err *err` last and carry MUST_CHECK. `file`, `line` and `column` (1-based, 0 = none)
 * are for errors a user can mend in a file. */
#ifndef SEGUE_BASE_ERR_H
#define SEGUE_BASE_ERR_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN          __attribute__((noreturn))
/* Before a variable: its block ends with end(&variable), on whatever way it is left. */
#define AUTO(end)    __attribute__((cleanup(end)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum err_code {
  ERR_NONE = 0,
  ERR_USAGE,     /* wrong words on the command line */
  ERR_FILE,      /* a file's content is wrong: file, line, column are set */
  ERR_NOT_FOUND, /* a file, session or program is not there */
  ERR_IO,        /* the system refused: text holds strerror */
  ERR_FULL,      /* no space left */
  ERR_LOCKED,    /* another process owns it */
  ERR_CORRUPT,   /* bytes on disk are not what was written */
  ERR_LIMIT,     /* a bound of limits.h was met */
  ERR_INVALID,   /* a value that makes no sense */
};

struct err {
  enum err_code code;
  char file[256];
  int line, column;
  char text[768];
};

/* Sets code and text; clears the place. Always returns false, so: `return err_set(...)`. */
bool err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Does the same with a place in a file. */
bool err_set_at(struct err *err, enum err_code code, const char *file, int line, int column,
                const char *fmt, ...) PRINTF_LIKE(6, 7);
/* Puts "context: " before the text that is there. Always returns false. */
bool err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Appends what strerror says of `number`: "text: reason". ENOSPC and EDQUOT give ERR_FULL. */
bool err_set_errno(struct err *err, int number, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Says that a word is none of a NULL-ended list: `there is no status "complet": did you mean
 * complete? Write queued, running or complete`. An empty word is told as such. Always returns
 * false. */
bool err_no_such(struct err *err, const char *what, struct str word, const char *const *names);

/* A list of errors of one file, reported in one go. Bounded by LIMIT_FILE_ERROR_COUNT. */
struct err_list {
  struct err *items;
  size_t count, dropped;
};
void err_list_add(struct err_list *list, const struct err *err);
void err_list_deinit(struct err_list *list);

#endif
