/* schema_in.h - schemas for commands: folders that stand for URIs, and schemas kept once compiled.
 *
 * registry_in: registry_in_deinit on a zeroed struct is fine; registry_in_options says to
 * schema_compile what a command's flags name. A document is read when a reference asks for
 * it: URI = prefix + path below the folder, of the longest prefix that fits. Nothing outside of the
 * folder is ever opened, by "..", by an absolute path or through a link.
 *
 * schema_in_line: the schema that a line of a batch names or holds.
 *
 * schema_cache: the schemas that a batch compiled, keyed by content. The result of schema_cache_get
 * is borrowed until the next call. */
#ifndef SEGUE_CLI_SCHEMA_IN_H
#define SEGUE_CLI_SCHEMA_IN_H

#include "base/err.h"
#include "base/resource.h"
#include "base/str.h"
#include "cli/cli.h"
#include "schema/schema.h"

#include <jansson.h>
#include <stdio.h>

enum {
  REGISTRY_IN_DIRS = 64,       /* folders */
  REGISTRY_IN_DOCUMENTS = 256, /* documents kept for later schemas of a batch */
  REGISTRY_IN_URI_BYTES = 4096,
  SCHEMA_CACHE_COUNT = 64,
  /* size of the kept schemas as text; a program is some 10 times as large; one larger schema is
   * kept alone */
  SCHEMA_CACHE_BYTES = 8 * 1024 * 1024,
};

struct registry_in {
  struct schema_registry *schemas; /* owned; NULL without folders */
  struct {
    struct str prefix; /* borrowed; empty: of references without a scheme */
    char *path;
    int fd;
  } dirs[REGISTRY_IN_DIRS];
  size_t dir_count;
  struct {
    char *uri;
    json_t *doc;
  } docs[REGISTRY_IN_DOCUMENTS];
  size_t doc_count;
  struct err err; /* the last document found that could not be read; code 0: none */
};

/* Takes the options of the group `registry`: the folders, borrowed, and how to compile by them. */
bool registry_in_options(struct registry_in *r, const struct cli_args *args,
                         struct schema_opts *opts, struct err *err) MUST_CHECK;
/* Lets references without a scheme lead to documents beside this file, and below; not for "-". */
void registry_in_beside(struct registry_in *r, const char *file, struct schema_opts *opts);
void registry_in_deinit(struct registry_in *r);

struct schema_cache {
  struct {
    char *text;
    size_t n;
    uint64_t hash, used;
    struct schema *schema;
  } items[SCHEMA_CACHE_COUNT];
  size_t count, bytes;
  uint64_t clock;
};

/* Returns NULL if it is not a schema; `errs` and `status` say why. */
const struct schema *schema_cache_get(struct schema_cache *cache, const json_t *doc,
                                      const struct schema_opts *opts, struct schema_errors *errs,
                                      enum schema_status *status) MUST_CHECK;
void schema_cache_deinit(struct schema_cache *cache);

/* Reads a file, standard input for -, or the compiled-in schema of that name (schemas/presets/ and
 * schemas/) if no such file exists. NULL: `err` says why, with line and column. */
json_t *schema_in_read(const char *word, struct err *err) MUST_CHECK;
/* Finds one of segue's own formats (schemas/: workflow, session-log, judgment, ...) as compiled in;
 * NULL: there is none of that name, or a file has that name. */
const struct resource *schema_in_own(const char *word);

/* Prints "FILE: $.a: message" for each error, made safe for a terminal. */
void schema_errors_print(FILE *to, const char *file, const struct schema_errors *errs);
/* Prints on stderr that the schema in `file` cannot be used, with its errors and that of the
 * registry. */
void schema_trouble_print(const char *command, const char *file, const struct schema_errors *errs,
                          enum schema_status status, const struct registry_in *registry);

/* Returns [{"path","pointer","keyword","message"}], never NULL. */
json_t *schema_errors_json(const struct schema_errors *errs);

/* Returns a line's own schema: the schema itself or the preset of that name, never a path, since
 * lines are data and open no files. A new reference, or NULL. */
json_t *schema_in_line(json_t *schema, struct err *err) MUST_CHECK;

#endif
