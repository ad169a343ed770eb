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
  char *schema_path;   /* the keyword that said so: "/properties/user/properties/email/type"; in a
                          document   other than the compiled one, after its URI and '#' */
  const char *keyword; /* static: "maximum"; "" for a `false` schema */
  char *message; /* "1.5 is greater than the maximum 1"; the full line is path + ": " + message */
};

/* At most SCHEMA_ERRORS_MAX items: those of a check by their place in the value
 * (schema_pointer_order), at one place in the fixed order of the keywords. `dropped` counts those
 * beyond the maximum. */
struct schema_errors {
  struct schema_error *items;
  size_t count;
  size_t dropped;
};

enum {
  SCHEMA_ERRORS_MAX = 64,   /* errors kept of one check */
  SCHEMA_NESTING_MAX = 512, /* levels of arrays and objects in a schema document */
  SCHEMA_DEPTH_MAX =
      2048, /* schemas entered inside each other while checking one value; some 2 MiB of stack */
  SCHEMA_NODES_MAX = 200000,    /* subschemas in one program */
  SCHEMA_DOCUMENTS_MAX = 1000,  /* documents that references may draw into one program */
  SCHEMA_DYNAMIC_MAX = 1000000, /* names of dynamic references times resources */
  SCHEMA_PATTERN_BYTES_MAX = 64 * 1024 * 1024, /* of all compiled patterns of one program */
  SCHEMA_QUICK_BYTES_MAX = 8 * 1024 * 1024, /* the same, up to which they are made quicker to match:
                                               that multiplies the memory of most by 10 */
  SCHEMA_WORK_MAX = 20000000,               /* units of work of one check, each some 20 ns */
  SCHEMA_MESSAGE_VALUE_BYTES = 100          /* of a value shown in a message */
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

/* Compiles `doc`. `opts`, `errs` and `status` may be NULL. NULL if it failed, with the reason in
 * `status`. */
struct schema *schema_compile(const json_t *doc, const struct schema_opts *opts,
                              struct schema_errors *errs, enum schema_status *status)
    __attribute__((warn_unused_result));
void schema_free(struct schema *schema);

/* Fast path: no errors collected; a bound that was hit counts as not valid. */
bool schema_valid(const struct schema *schema, const json_t *value);

/* `errs` may be NULL; what it held before is kept and counted against the maximum. */
enum schema_status schema_check(const struct schema *schema, const json_t *value,
                                struct schema_errors *errs);

/* JSON Pointers part by part, indexes as numbers: /items/2 before /items/10. */
int schema_pointer_order(const char *a, const char *b);

/* Leaves an empty struct; accepts a zeroed one. */
void schema_errors_deinit(struct schema_errors *errs);

/* A word for a status: "ok", "invalid_schema", "invalid", "too_complex". */
const char *schema_status_name(enum schema_status status);

/* True if `doc` is an object with at least one keyword that can constrain a value (`type`, `enum`,
 * `$ref`,
 * ...; not `title`, `$comment` or `$defs` alone). For callers who refuse {"invalid":"schema"} and
 * {}. */
bool schema_has_known_keyword(const json_t *doc);

/* True if `format` has a check here. */
bool schema_format_known(const char *format);

/* Registry: URIs and the JSON documents they stand for. Not thread-safe while it is being filled.
 */
struct schema_registry *schema_registry_new(void) __attribute__((warn_unused_result));
void schema_registry_free(struct schema_registry *registry);

/* The registry takes its own reference to `doc`; do not change it afterwards. A document with an
 * absolute `$id` is found under that too. A later document of the same URI is ignored. */
void schema_registry_add(struct schema_registry *registry, const char *uri, json_t *doc);

/* Called for each absolute URI (without fragment) that is not in the registry. Returns a new
 * reference, or NULL. This is how the caller maps a URI prefix to a folder; the library itself
 * reads nothing. */
typedef json_t *(*schema_load_fn)(void *arg, const char *uri);
void schema_registry_set_loader(struct schema_registry *registry, schema_load_fn load, void *arg);

#endif
