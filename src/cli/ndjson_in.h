/* ndjson_in.h - reads NDJSON line by line from a file, a pipe or standard input, in bounded memory.
 *
 *   ndjson_in_open(&in, path, &err); while (ndjson_in_next(&in, &line)) ...; ndjson_in_close(&in)
 *   then look at in.error.
 *
 * A line is valid until the next call and comes without its end (LF or CRLF); blank lines and a
 * byte order mark at the start are skipped. A line over NDJSON_LINE_BYTES comes as an empty view
 * with `too_long` set, and reading continues after it. ndjson_in_idle says that the next call may
 * wait for input: the time to flush what was answered. */
#ifndef SEGUE_CLI_NDJSON_IN_H
#define SEGUE_CLI_NDJSON_IN_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

/* Limits one line. A text of LIMIT_OUTPUT_BYTES, what one call may say, fits with its JSON
 * escapes. */
#define NDJSON_LINE_BYTES (64u * 1024u * 1024u)

struct ndjson_in {
  int fd;
  bool owned; /* fd is ours to close */
  struct buf buffer;
  size_t start;              /* start, in the buffer, of what was not returned yet */
  unsigned long long number; /* number of the last returned line, from 1, counting blank ones */
  bool eof, too_long;
  int error; /* errno of a failed read, 0 */
};

/* Opens a file; NULL and "-" are standard input. A folder is an error. */
bool ndjson_in_open(struct ndjson_in *in, const char *path, struct err *err) MUST_CHECK;
bool ndjson_in_next(struct ndjson_in *in, struct str *line);
bool ndjson_in_idle(const struct ndjson_in *in);
void ndjson_in_close(struct ndjson_in *in);

/* Reads the object that a line is; `form` shows it. NULL: err says why not, and *code in a word. */
json_t *ndjson_in_object(const struct ndjson_in *in, struct str line, const char *form,
                         const char **code, struct err *err);

/* Answers each line of a file with one line on standard output; `answer` fills the empty object
 * `out`. Returns the exit status; failures are printed for the command. */
int ndjson_in_answer(const char *command, const char *path, void *ctx,
                     void (*answer)(void *ctx, const struct ndjson_in *in, struct str line,
                                    json_t *out));

#endif
