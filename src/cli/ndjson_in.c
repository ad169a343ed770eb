/* Reads lines of JSON as they come, none of them longer than its bound. */
#include "cli/ndjson_in.h"

#include "cli/cli.h"
#include "cli/json_io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024 };

bool ndjson_in_open(struct ndjson_in *in, const char *path, struct err *err) {
  struct stat st;
  *in = (struct ndjson_in){.fd = STDIN_FILENO};
  if (path == NULL || strcmp(path, "-") == 0)
    return true;
  in->owned = true;
  in->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (in->fd < 0)
    return err_set_errno(err, errno, "cannot read %s", path);
  if (fstat(in->fd, &st) == 0 && S_ISDIR(st.st_mode)) {
    ndjson_in_close(in);
    return err_set(err, ERR_IO, "%s is a folder, not a file", path);
  }
  return true;
}

/* Reads on; at the end of the input nothing is added. */
static void read_chunk(struct ndjson_in *in) {
  buf_reserve(&in->buffer, CHUNK_BYTES);
  ssize_t n;
  do
    n = read(in->fd, in->buffer.p + in->buffer.n, CHUNK_BYTES);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    in->error = errno;
  if (n <= 0)
    in->eof = true;
  else
    in->buffer.n += (size_t)n;
}

/* Returns the next line with its end, or false. A line that is too long is dropped while it is
 * read. */
static bool whole_line(struct ndjson_in *in, struct str *line) {
  size_t seen = 0;
  in->too_long = false;
  for (;;) {
    size_t rest = in->buffer.n - in->start;
    const char *from = buf_c(&in->buffer) + in->start;
    const char *nl = rest > seen ? memchr(from + seen, '\n', rest - seen) : NULL;
    if (nl != NULL || (in->eof && (rest > 0 || in->too_long))) {
      *line = (struct str){from, nl ? (size_t)(nl - from) : rest};
      in->start += line->n + (nl != NULL);
      in->too_long = in->too_long || line->n > NDJSON_LINE_BYTES;
      return true;
    }
    if (in->eof)
      return false;
    if (rest > NDJSON_LINE_BYTES) {
      in->too_long = true;
      in->start = in->buffer.n = rest = 0;
    } else if (in->start > 0) {
      memmove(in->buffer.p, from, rest);
      in->buffer.n = rest;
      in->start = 0;
    }
    seen = rest;
    read_chunk(in);
  }
}

bool ndjson_in_next(struct ndjson_in *in, struct str *line) {
  assert(in->fd >= 0);
  while (whole_line(in, line)) {
    in->number++;
    if (in->too_long) {
      *line = STR("");
      return true;
    }
    if (in->number == 1 && str_starts(*line, "\xEF\xBB\xBF"))
      *line = (struct str){line->p + 3, line->n - 3};
    *line = str_trim(*line);
    if (line->n > 0)
      return true;
  }
  return false;
}

bool ndjson_in_idle(const struct ndjson_in *in) {
  assert(in->start <= in->buffer.n);
  size_t rest = in->buffer.n - in->start;
  return rest == 0 || memchr(in->buffer.p + in->start, '\n', rest) == NULL;
}

void ndjson_in_close(struct ndjson_in *in) {
  if (in->owned && in->fd >= 0)
    close(in->fd);
  buf_deinit(&in->buffer);
  *in = (struct ndjson_in){.fd = -1};
}

json_t *ndjson_in_object(const struct ndjson_in *in, struct str line, const char *form,
                         const char **code, struct err *err) {
  struct err why = {0};
  *code = in->too_long ? "line_limit" : "bad_line";
  json_t *object = in->too_long ? NULL : json_io_parse("line", line, &why);
  if (json_is_object(object))
    return object;
  if (in->too_long)
    err_set(err, ERR_LIMIT, "the line is longer than %u MiB", NDJSON_LINE_BYTES >> 20);
  else if (object == NULL)
    err_set(err, ERR_INVALID, "column %d: %s", why.column, why.text);
  else
    err_set(err, ERR_INVALID, "the line is not an object %s", form);
  json_decref(object);
  return NULL;
}

int ndjson_in_answer(const char *command, const char *path, void *ctx,
                     void (*answer)(void *ctx, const struct ndjson_in *in, struct str line,
                                    json_t *out)) {
  struct ndjson_in in;
  struct err err = {0};
  struct str line;
  if (!ndjson_in_open(&in, path, &err))
    return cli_fail_with(STATUS_USAGE, command, &err);
  while (!ferror(stdout) && ndjson_in_next(&in, &line)) {
    json_auto_t *out = json_object();
    answer(ctx, &in, line, out);
    json_io_print(out, JSON_IO_COMPACT);
    if (ndjson_in_idle(&in))
      (void)fflush(stdout);
  }
  int status = STATUS_COMPLETE;
  if (in.error != 0) {
    err_set_errno(&err, in.error, "cannot read %s", path ? path : "standard input");
    status = cli_fail_with(STATUS_FAILED, command, &err);
  }
  ndjson_in_close(&in);
  return status;
}
