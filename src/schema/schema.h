/* schema.h - compiles a JSON Schema once into a flat program and runs it on jansson values.
 *
 * Drafts 2020-12, 2019-09 and 07 (06 is read as 07), chosen by `$schema`, 2020-12 by default. All
 * required keywords are supported, including `$dynamicRef`, `$recursiveRef`, `unevaluated*` and
 * `$vocabulary`. Never any I/O: a reference leads into the schema itself, into a metaschema (built
 * in) or into the caller's registry.
 *
 * Calling order: (registry_new, registry_add ..., then) schema_compile, then schema_valid or
 * schema_check any number of times, from any thread at once, then schema_free, then registry_free.
 *
 * Ownership: schema_compile copies what it needs; the caller keeps `doc`, the registry and every
 * value. Errors belong to the caller, who calls schema_errors_deinit. A zeroed struct schema_errors
 * is empty.
 *
 * Errors: data never trips an assertion. Depth, work, errors and regex effort are bounded; a bound
 * that was hit is SCHEMA_TOO_COMPLEX, which is not a verdict.
 *
 * Errors say in words what was expected and what is there, for a person or a model to act on.
 * `format` is an annotation unless asked for; an unknown format or keyword is ignored, as the
 * drafts say.
 *
 * Rules from: json-schema.org drafts 2020-12, 2019-09 and 07, and JSON-Schema-Test-Suite.
 */
#ifndef SEGUE_SCHEMA_SCHEMA_H
#define SEGUE_SCHEMA_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct schema; /* compiled, immutable, shareable between threads */

struct schema_error {
  char *path;    /* where in the value: "$.user.email"; of a schema error: where in the schema */
  char *pointer; /* the same place as a JSON Pointer: "/user/email" */
  /* the failed keyword: "/properties/user/properties/email/type"; outside the compiled document
   * after the document's URI and '#' */
  char *schema_path;
  const char *keyword; /* static: "maximum"; "" for a `false` schema */
  char *message; /* "1.5 is greater than the maximum 1"; the full line is path + ": " + message */
};

/* Holds at most SCHEMA_ERRORS_MAX items. A check sorts its own by their place in the value
 * (schema_pointer_order), at one place in the fixed order of the keywords. `dropped` counts those
 * beyond the maximum. */
struct schema_errors {
  struct schema_error *items;
  size_t count, dropped;
};

enum {
  SCHEMA_ERRORS_MAX = 64,       /* errors kept of one check */
  SCHEMA_NESTING_MAX = 512,     /* levels of arrays and objects in a schema document */
  SCHEMA_DEPTH_MAX = 2048,      /* schemas entered inside each other in one check: 2 MiB of stack */
  SCHEMA_NODES_MAX = 200000,    /* subschemas in one program */
  SCHEMA_DOCUMENTS_MAX = 1000,  /* documents that references may draw into one program */
  SCHEMA_DYNAMIC_MAX = 1000000, /* names of dynamic references times resources */
  SCHEMA_PATTERN_BYTES_MAX = 64 * 1024 * 1024, /* size of all compiled patterns of a program */
  /* up to this size they are made quicker to match, which multiplies most patterns' memory by 10 */
  SCHEMA_QUICK_BYTES_MAX = 8 * 1024 * 1024,
  SCHEMA_WORK_MAX = 20000000,      /* units of work of one check, each some 20 ns */
  SCHEMA_MESSAGE_VALUE_BYTES = 100 /* most bytes shown of a value in a message */
};

enum schema_status {
  SCHEMA_OK,             /* compiled; valid */
  SCHEMA_INVALID_SCHEMA, /* the schema itself is wrong: errors say where */
  SCHEMA_INVALID,        /* the value does not match: errors say where */
  SCHEMA_TOO_COMPLEX     /* neither valid nor invalid: the last error says which bound was hit */
};

struct schema_registry;

struct schema_opts {
  bool assert_formats; /* `format` is checked; otherwise only where a vocabulary asks for it */
  const struct schema_registry *registry; /* may be NULL; used during schema_compile only */
  const char *default_draft;              /* URI for schemas without `$schema`; NULL: 2020-12 */
};

/* Compiles `doc`. `opts`, `errs` and `status` may be NULL. Returns NULL on failure, with the reason
 * in `status`. */
struct schema *schema_compile(const json_t *doc, const struct schema_opts *opts,
                              struct schema_errors *errs, enum schema_status *status)
    __attribute__((warn_unused_result));
void schema_free(struct schema *schema);

/* Checks on the fast path: it collects no errors, and counts a bound that was hit as not valid. */
bool schema_valid(const struct schema *schema, const json_t *value);

/* Checks the value and collects errors. `errs` may be NULL; errors that it already holds stay and
 * count towards the maximum. */
enum schema_status schema_check(const struct schema *schema, const json_t *value,
                                struct schema_errors *errs);

/* Compares JSON Pointers part by part, indexes as numbers: /items/2 comes before /items/10. */
int schema_pointer_order(const char *a, const char *b);

/* Frees all items and leaves an empty struct; accepts a zeroed one. */
void schema_errors_deinit(struct schema_errors *errs);

/* Returns a status as a word: "ok", "invalid_schema", "invalid", "too_complex". */
const char *schema_status_name(enum schema_status status);

/* Returns true if `doc` is an object with at least one keyword that can constrain a value (`type`,
 * `enum`, `$ref`, ...; `title`, `$comment` or `$defs` alone do not count). For callers who refuse
 * {"invalid":"schema"} and {}. */
bool schema_has_known_keyword(const json_t *doc);

/* Returns true if this module checks `format`. */
bool schema_format_known(const char *format);

/* A registry maps URIs to JSON documents. It is not thread-safe while it is being filled. */
struct schema_registry *schema_registry_new(void) __attribute__((warn_unused_result));
void schema_registry_free(struct schema_registry *registry);

/* Takes a new reference to `doc`, which must not change afterwards. A document with an absolute
 * `$id` is also found under that. A later document with the same URI is ignored. */
void schema_registry_add(struct schema_registry *registry, const char *uri, json_t *doc);

/* Is called for each absolute URI (without fragment) that is not in the registry. Returns a new
 * reference, or NULL. A caller can map a URI prefix to a folder this way; the library itself reads
 * nothing. */
typedef json_t *(*schema_load_fn)(void *arg, const char *uri);
void schema_registry_set_loader(struct schema_registry *registry, schema_load_fn load, void *arg);

#endif
