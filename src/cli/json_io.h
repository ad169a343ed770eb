/* json_io.h - reads files for commands, and reads and writes JSON.
 *
 * Reading is jscan's: everything RFC 8259 allows, which is more than jansson's own reader accepts
 * (lone surrogates become U+FFFD, integers beyond 64 bits become reals, \u0000 is kept). A value
 * nested deeper than JSCAN_DEPTH_MAX is left to jansson and its 2,048 levels. Writing gives a real
 * in the fewest digits that read back as the same number. */
#ifndef SEGUE_CLI_JSON_IO_H
#define SEGUE_CLI_JSON_IO_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

/* a document, a schema or a text given whole; as long as a line of NDJSON (ndjson_in.h) */
#define JSON_IO_BYTES (64u * 1024u * 1024u)

/* Reads a whole file, or standard input if path is "-". */
bool json_io_read(const char *path, size_t max, struct buf *out, struct err *err) MUST_CHECK;

/* Reads one value with only white space around it: a new reference, or NULL with the place. The
 * error shows `name`. */
json_t *json_io_parse(const char *name, struct str text, struct err *err) MUST_CHECK;

enum json_io_kind {
  JSON_IO_VALUE,  /* JSON; YAML when the name ends in .yaml or .yml */
  JSON_IO_SCHEMA, /* also YAML when the text does not begin as JSON does */
};

/* Reads a whole file, or standard input if path is "-". */
json_t *json_io_file(const char *path, enum json_io_kind kind, struct err *err) MUST_CHECK;
json_t *json_io_text(const char *name, struct str text, enum json_io_kind kind,
                     struct err *err) MUST_CHECK;

enum json_io_form {
  JSON_IO_COMPACT,  /* one line, also for readers that take U+2028 or NEL for a line's end */
  JSON_IO_TERMINAL, /* indented; what could steer a terminal becomes \u escapes */
};
void json_io_write(const json_t *value, enum json_io_form form, struct buf *out);

/* Makes a JSON string of any bytes; bytes that are not UTF-8 become visible escapes. Never NULL. */
json_t *json_io_string(const char *text);

/* Prints to stdout; failures show in ferror(stdout) and cli_end. */
void json_io_print(const json_t *value, enum json_io_form form);
/* Prints it on one line, and takes it. */
void json_io_put(json_t *owned_value);

#endif
