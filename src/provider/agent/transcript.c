/* Reads recorded runs of clients. */
#include "provider/agent/transcript.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static const char stdout_mark[] = "--- stdout ---";
static const char stderr_mark[] = "--- stderr ---";

/* Returns where the line `mark` begins, which may end with CR LF, NULL if there is none; `after` is
 * what follows it. */
static const char *find_line(struct str text, const char *mark, const char **after) {
  size_t n = strlen(mark);
  for (const char *at = text.p, *end = text.p + text.n; at != NULL && at < end;) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (newline != NULL && (size_t)(newline - at) >= n && memcmp(at, mark, n) == 0 &&
        (at + n == newline || (at + n + 1 == newline && at[n] == '\r'))) {
      *after = newline + 1;
      return at;
    }
    at = newline ? newline + 1 : NULL;
  }
  return NULL;
}

/* Returns a part without the newline that the recorder adds to each. */
static struct str transcript_part(const char *from, const char *to) {
  size_t n = (size_t)(to - from);
  if (n > 0 && from[n - 1] == '\n')
    n -= n > 1 && from[n - 2] == '\r' ? 2 : 1;
  return (struct str){from, n};
}

static bool read_header(struct transcript *t, const char *path, struct str line, struct err *err) {
  struct str body = str_trim((struct str){line.p + 1, line.n - 1});
  json_error_t at;
  if (body.n == 0 || body.p[0] != '{')
    return true;
  t->header = json_loadb(body.p, body.n, 0, &at);
  if (t->header == NULL)
    return err_set_at(err, ERR_FILE, path, 1, at.column + (int)(body.p - line.p),
                      "the header is not a JSON object: %s", at.text);
  const json_t *exit = json_object_get(t->header, "exit");
  t->timed_out = json_is_true(json_object_get(t->header, "timed_out"));
  t->has_end = json_is_integer(exit);
  json_int_t status = json_integer_value(exit);
  if (exit != NULL && !json_is_null(exit) && (!t->has_end || status < -64 || status > 255))
    return err_set_at(err, ERR_FILE, path, 1, 1, "exit must be an integer from -64 to 255");
  t->exit_code = status < 0 ? -1 : (int)status;
  t->signal = status < 0 ? (int)-status : 0;
  return true;
}

static bool transcript_read_mark(struct str *rest, enum transcript_mark *mark) {
  static const struct {
    const char *word;
    enum transcript_mark mark;
  } marks[] = {{"> ", TRANSCRIPT_SENT},   {"< ", TRANSCRIPT_RECEIVED},
               {"! ", TRANSCRIPT_STDERR}, {"sse data: ", TRANSCRIPT_SSE},
               {"sse ", TRANSCRIPT_SSE},  {"log ", TRANSCRIPT_NOTE},
               {"# ", TRANSCRIPT_NOTE}};
  for (size_t i = 0; i < ARRAY_LEN(marks); i++)
    if (str_drop(rest, marks[i].word)) {
      *mark = marks[i].mark;
      return true;
    }
  return false;
}

/* Reads a line such as "12 < text"; false if it does not begin like that. */
static bool transcript_read_line(struct str line, struct transcript_line *out) {
  *out = (struct transcript_line){.text = line};
  return str_to_long(str_cut(&out->text, ' '), &out->ms) && out->ms >= 0 &&
         transcript_read_mark(&out->text, &out->mark);
}

static bool read_lines(struct transcript *t, const char *path, struct str rest, struct err *err) {
  size_t cap = 0;
  int number = 1;
  t->driven = true;
  while (rest.p != NULL && rest.n > 0) {
    struct str line = str_next_line(&rest);
    struct transcript_line read;
    number++;
    if (!transcript_read_line(line, &read)) {
      if (t->line_count == 0 && str_trim(line).n > 0)
        return err_set_at(err, ERR_FILE, path, number, 1,
                          "expected \"--- stdout ---\" or a line such as \"12 < {...}\"");
      if (t->line_count > 0) { /* the text above continues */
        struct transcript_line *last = &t->lines[t->line_count - 1];
        last->text.n = (size_t)(line.p + line.n - last->text.p);
      }
      continue;
    }
    t->lines = xgrow(t->lines, &cap, t->line_count + 1, sizeof *t->lines);
    t->lines[t->line_count++] = read;
  }
  return true;
}

bool transcript_load(struct transcript *t, const char *path, struct err *err) {
  *t = (struct transcript){.exit_code = -1};
  bool ok = file_read(path, LIMIT_TRANSCRIPT_BYTES, &t->bytes, err);
  struct str rest = buf_view(&t->bytes);
  if (ok && (rest.n == 0 || rest.p[0] != '#'))
    ok = err_set_at(err, ERR_FILE, path, 1, 1, "line 1 of a recording begins with # {");
  struct str line = ok ? str_next_line(&rest) : rest;
  ok = ok && read_header(t, path, line, err);
  const char *after = NULL;
  const char *out = ok && rest.p ? find_line(rest, stdout_mark, &after) : NULL;
  if (ok && out == NULL) {
    ok = read_lines(t, path, rest, err);
  } else if (ok) {
    const char *end = t->bytes.p + t->bytes.n;
    out = after;
    const char *mark = find_line((struct str){out, (size_t)(end - out)}, stderr_mark, &after);
    t->out = transcript_part(out, mark ? mark : end);
    t->err = mark ? transcript_part(after, end) : (struct str){end, 0};
    if (!t->has_end && !t->timed_out)
      ok = err_set_at(err, ERR_FILE, path, 1, 1, "the header has no \"exit\"");
  }
  if (!ok)
    transcript_deinit(t);
  return ok;
}

void transcript_deinit(struct transcript *t) {
  json_decref(t->header);
  buf_deinit(&t->bytes);
  free(t->lines);
  *t = (struct transcript){0};
}

const char *transcript_flag(const struct transcript *t, const char *flag) {
  const json_t *argv = json_object_get(t->header, "argv");
  for (size_t i = 0; i + 1 < json_array_size(argv); i++) {
    const char *word = json_string_value(json_array_get(argv, i));
    if (word != NULL && strcmp(word, flag) == 0)
      return json_string_value(json_array_get(argv, i + 1));
  }
  return NULL;
}
