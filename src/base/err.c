/* Makes errors: set where they are found, wrapped on the way up. */
#include "base/err.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void err_set_text(struct err *err, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void err_set_text(struct err *err, const char *fmt, va_list ap) {
  (void)vsnprintf(err->text, sizeof err->text, fmt, ap);
}

bool err_set(struct err *err, enum err_code code, const char *fmt, ...) {
  va_list ap;
  if (err == NULL)
    return false;
  err->code = code;
  err->file[0] = '\0';
  err->line = err->column = 0;
  va_start(ap, fmt);
  err_set_text(err, fmt, ap);
  va_end(ap);
  return false;
}

bool err_set_at(struct err *err, enum err_code code, const char *file, int line, int column,
                const char *fmt, ...) {
  va_list ap;
  if (err == NULL)
    return false;
  err->code = code;
  print_into(err->file, sizeof err->file, "%s", file);
  err->line = line;
  err->column = column;
  va_start(ap, fmt);
  err_set_text(err, fmt, ap);
  va_end(ap);
  return false;
}

bool err_wrap(struct err *err, const char *fmt, ...) {
  buf_auto_t whole = {.max = sizeof err->text - 1};
  char context[sizeof err->text];
  va_list ap;
  if (err == NULL)
    return false;
  va_start(ap, fmt);
  (void)vsnprintf(context, sizeof context, fmt, ap);
  va_end(ap);
  buf_puts(&whole, context);
  buf_puts(&whole, ": ");
  buf_puts(&whole, err->text);
  memcpy(err->text, whole.p, whole.n + 1);
  return false;
}

static enum err_code err_code_of(int number) {
  if (number == ENOSPC || number == EDQUOT)
    return ERR_FULL;
  return number == ENOENT ? ERR_NOT_FOUND : ERR_IO;
}

bool err_set_errno(struct err *err, int number, const char *fmt, ...) {
  char reason[128];
  va_list ap;
  if (err == NULL)
    return false;
  err->code = err_code_of(number);
  err->file[0] = '\0';
  err->line = err->column = 0;
  va_start(ap, fmt);
  err_set_text(err, fmt, ap);
  va_end(ap);
  size_t n = strlen(err->text);
  print_into(err->text + n, sizeof err->text - n, ": %s",
             strerror_r(number, reason, sizeof reason));
  return false;
}

bool err_no_such(struct err *err, const char *what, struct str word, const char *const *names) {
  const char *near = word.n > 0 ? str_nearest(word, names) : NULL;
  buf_auto_t text = {.max = sizeof err->text - 1};
  if (word.n > 0)
    buf_printf(&text, "there is no %s \"%.*s\": ", what, (int)(word.n < 40 ? word.n : 40), word.p);
  else
    buf_printf(&text, "an empty word is no %s: ", what);
  if (near != NULL)
    buf_printf(&text, "did you mean %s? ", near);
  buf_puts(&text, "write ");
  for (size_t i = 0; names[i] != NULL; i++) {
    const char *before = names[i + 1] == NULL ? " or " : ", ";
    buf_printf(&text, "%s%s", i > 0 ? before : "", names[i]);
  }
  err_set(err, ERR_USAGE, "%s", buf_c(&text));
  return false;
}

void err_list_add(struct err_list *list, const struct err *err) {
  if (list->count >= LIMIT_FILE_ERROR_COUNT) {
    list->dropped++;
    return;
  }
  list->items = xrealloc(list->items, (list->count + 1) * sizeof *list->items);
  list->items[list->count++] = *err;
}

void err_list_deinit(struct err_list *list) {
  free(list->items);
  *list = (struct err_list){0};
}
