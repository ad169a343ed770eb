/* compiled.h - defines keywords, the compiled program, and the compiler's state; internal.
 *
 * DESIGN. Documents are indexed first (schema/subschemas.c): every subschema becomes an entry with
 * its place, resource and anchors, and the shape of each keyword is checked. Then the entries that
 * can be reached are compiled to nodes (schema/compile.c). References are resolved on the way
 * (schema/subschemas.c), which may draw in and index further documents. To run a program
 * (schema/validate.c): a node is a type mask and a run of ops over one instance; keywords that
 * share one walk over the members of an object or array share one op. Everything compiled lives in
 * one arena.
 *
 * Errors are found by running the same program a second time, with a list to add to: the fast path
 * pays for one branch, taken only when a check has already failed. */
#ifndef SEGUE_SCHEMA_COMPILED_H
#define SEGUE_SCHEMA_COMPILED_H

#include "schema/support.h"

/* --- keywords (schema/keyword.c) --- */

enum dialect { DIALECT_07 = 1, DIALECT_2019 = 2, DIALECT_2020 = 4 };
enum vocabulary {
  VOCAB_CORE = 1,
  VOCAB_APPLICATOR = 2,
  VOCAB_UNEVALUATED = 4,
  VOCAB_VALIDATION = 8,
  VOCAB_FORMAT_ASSERTION = 16,
  VOCAB_ANNOTATION = 32,
  VOCAB_ALL = 47 /* without format assertion */
};
enum shape {
  SHAPE_ANY,
  SHAPE_SCHEMA,
  SHAPE_SCHEMA_LIST,
  SHAPE_SCHEMA_OR_LIST,
  SHAPE_SCHEMA_MAP,
  SHAPE_PATTERN_MAP,
  SHAPE_DEPENDENCIES,
  SHAPE_TYPE,
  SHAPE_LIST,
  SHAPE_NUMBER,
  SHAPE_POSITIVE,
  SHAPE_COUNT,
  SHAPE_STRING,
  SHAPE_PATTERN,
  SHAPE_BOOL,
  SHAPE_STRING_LIST,
  SHAPE_STRING_LIST_MAP
};
enum keyword_id {
  K_ID,
  K_SCHEMA,
  K_REF,
  K_ANCHOR,
  K_DYNAMIC_REF,
  K_DYNAMIC_ANCHOR,
  K_RECURSIVE_REF,
  K_RECURSIVE_ANCHOR,
  K_VOCABULARY,
  K_COMMENT,
  K_DEFS,
  K_DEFINITIONS,
  K_ALL_OF,
  K_ANY_OF,
  K_ONE_OF,
  K_NOT,
  K_IF,
  K_THEN,
  K_ELSE,
  K_DEPENDENT_SCHEMAS,
  K_DEPENDENCIES,
  K_PREFIX_ITEMS,
  K_ITEMS,
  K_ADDITIONAL_ITEMS,
  K_CONTAINS,
  K_PROPERTIES,
  K_PATTERN_PROPERTIES,
  K_ADDITIONAL_PROPERTIES,
  K_PROPERTY_NAMES,
  K_UNEVALUATED_ITEMS,
  K_UNEVALUATED_PROPERTIES,
  K_TYPE,
  K_ENUM,
  K_CONST,
  K_MULTIPLE_OF,
  K_MAXIMUM,
  K_EXCLUSIVE_MAXIMUM,
  K_MINIMUM,
  K_EXCLUSIVE_MINIMUM,
  K_MAX_LENGTH,
  K_MIN_LENGTH,
  K_PATTERN,
  K_MAX_ITEMS,
  K_MIN_ITEMS,
  K_UNIQUE_ITEMS,
  K_MAX_CONTAINS,
  K_MIN_CONTAINS,
  K_MAX_PROPERTIES,
  K_MIN_PROPERTIES,
  K_REQUIRED,
  K_DEPENDENT_REQUIRED,
  K_FORMAT,
  K_CONTENT_ENCODING,
  K_CONTENT_MEDIA_TYPE,
  K_CONTENT_SCHEMA,
  KEYWORD_COUNT
};
struct keyword {
  const char *name;
  uint8_t id;
  uint8_t shape;
  uint8_t dialects;
  uint8_t vocabulary;
};
const struct keyword *schema_keyword_find(const char *name, unsigned dialect);
/* Returns the keyword of any draft that is a slip away from the word; NULL: none is. */
const char *schema_keyword_nearest(struct str word);

/* --- the program --- */

enum op_code {
  OP_FALSE,
  OP_ENUM, /* and const */
  OP_MINIMUM,
  OP_MAXIMUM,
  OP_EXCLUSIVE_MINIMUM,
  OP_EXCLUSIVE_MAXIMUM,
  OP_MULTIPLE_OF,
  OP_MIN_LENGTH,
  OP_MAX_LENGTH,
  OP_PATTERN,
  OP_FORMAT,
  OP_MIN_ITEMS,
  OP_MAX_ITEMS,
  OP_UNIQUE,
  OP_ITEMS,
  OP_CONTAINS,
  OP_MIN_PROPERTIES,
  OP_MAX_PROPERTIES,
  OP_OBJECT,
  OP_DEPENDENT_REQUIRED,
  OP_DEPENDENT_SCHEMA,
  OP_REF,
  OP_DYNAMIC_REF,
  OP_ALL_OF,
  OP_ANY_OF,
  OP_ONE_OF,
  OP_NOT,
  OP_IF,
  OP_UNEVALUATED_ITEMS,
  OP_UNEVALUATED_PROPERTIES
};

enum { NODE_TRUE = 0, NODE_NONE = UINT32_MAX };

/* A type mask has a bit 1 << json_type for each type, and one for reals without a fraction. */
enum {
  TYPE_INTEGRAL = 1 << 8,
  TYPE_NUMBER = 1 << JSON_INTEGER | 1 << JSON_REAL,
  TYPE_BOOLEAN = 1 << JSON_TRUE | 1 << JSON_FALSE,
  TYPE_ANY = 255
};

struct op {
  uint8_t code;
  uint8_t applies;     /* type mask without TYPE_INTEGRAL */
  uint16_t index;      /* depends on the op: which dynamic name, ... */
  uint32_t node;       /* the subschema, where there is one */
  const char *keyword; /* static: for messages */
  union {
    uint64_t count;
    const json_t *value;
    const struct enum_op *options;
    const struct object_op *object;
    const struct items_op *items;
    const struct contains_op *contains;
    const struct list_op *list;
    const struct if_op *branch;
    const struct dependency_op *dependency;
    const struct pattern *pattern;
    struct format *format;
  } u;
  const char *text; /* pattern or format name, for messages */
};

struct node {
  uint32_t first;    /* index into ops */
  uint32_t count;    /* number of ops; 0: the type mask is all there is */
  uint16_t types;    /* type mask */
  uint8_t tracks;    /* 1: has unevaluated*, so it keeps track of members */
  uint32_t resource; /* for the dynamic scope */
  uint32_t entry;    /* its place in the schema */
};

struct enum_string {
  const char *text;
  size_t length;
};
struct enum_op {
  const json_t *all;           /* array */
  struct enum_string *strings; /* unsorted; looked up in `table` if many */
  uint32_t string_count;
  uint32_t *table; /* string index + 1; NULL if few */
  uint32_t table_mask;
  int64_t *integers;
  uint32_t integer_count;
  const json_t **others; /* values other than strings, integers, true, false and null */
  uint32_t other_count;
  uint8_t simple; /* mask of true, false, null */
};

struct property {
  const char *name;
  size_t length;
  uint32_t node;        /* NODE_NONE: only required, not declared */
  uint8_t required_bit; /* 0: not required, else bit + 1 */
};
struct pattern_property {
  const struct pattern *pattern;
  const char *text;
  uint32_t node;
};
struct object_op {
  struct property *properties;
  uint32_t count;
  uint32_t *table; /* property index + 1; NULL if few */
  uint32_t table_mask;
  uint64_t required_mask;
  struct enum_string *required_rest; /* required names that the mask has no bits for */
  uint32_t required_rest_count;
  struct pattern_property *patterns;
  uint32_t pattern_count;
  uint32_t additional; /* NODE_NONE: absent */
  bool additional_is_false;
  uint32_t names; /* propertyNames; NODE_NONE: absent */
};

struct items_op {
  uint32_t *prefix;
  uint32_t prefix_count;
  const char *prefix_keyword;
  uint32_t rest; /* NODE_NONE: absent */
  const char *rest_keyword;
};
struct contains_op {
  uint32_t node;
  uint64_t min, max;
  bool marks; /* counts as evaluated (2020-12) */
  bool has_min;
};
struct list_op {
  uint32_t count;
  uint32_t nodes[];
};
struct if_op {
  uint32_t condition, then_node, else_node;
  const char *key; /* the condition is that an object's member `key` is `word`; or NULL */
  struct str word;
};
struct dependency_op {
  const char *name;
  size_t length;
  uint32_t count;
  struct enum_string required[];
};

struct schema_resource {
  const char *uri; /* without fragment; "" if it has none */
  const json_t *root;
  uint32_t entry;
  uint32_t document;
  uint8_t dialect;
  uint8_t vocabularies;
  bool used; /* it has nodes */
};
struct schema_entry {
  const json_t *schema;
  const char *suffix; /* JSON Pointer below the parent entry */
  uint32_t parent;    /* entry; a document's root is its own parent */
  uint32_t resource;
  uint32_t node;
};
struct document {
  json_t *root; /* owned */
  const char *uri;
};

struct schema {
  struct arena arena;
  struct node *nodes;
  size_t node_count, node_capacity;
  struct op *ops;
  size_t op_count, op_capacity;
  struct schema_resource *resources;
  size_t resource_count, resource_capacity;
  struct schema_entry *entries;
  size_t entry_count, entry_capacity;
  struct document *documents;
  size_t document_count, document_capacity;
  struct pattern **patterns; /* owned */
  size_t pattern_count, pattern_capacity;
  size_t pattern_bytes; /* total of all patterns, compiled */
  uint32_t *dynamic; /* [name * resource_count + resource] -> node; NULL if no dynamic reference is
                        used */
  uint32_t root;
};

/* --- compiling --- */

struct compiler {
  struct schema *schema;
  const struct schema_opts *opts;
  struct schema_errors *errors; /* never NULL */
  enum schema_status status;    /* the first thing that went wrong */
  struct map uris;              /* absolute URI -> resource */
  struct map anchors;           /* "resource#name" -> entry */
  struct map dynamic_anchors;   /* "resource#name" -> entry */
  struct map places;            /* json_t * -> entry */
  struct map patterns;          /* text -> index into schema->patterns */
  const char **dynamic_names;
  size_t dynamic_name_count, dynamic_name_capacity;
  uint32_t *queue; /* entries whose nodes are to be compiled */
  size_t queue_count, queue_capacity, queue_done;
  bool misshapen; /* a keyword's value has the wrong kind: nothing more may be compiled */
};

/* These two also serve callers that look at the indexed documents; c->opts and c->errors are set
 * before. The caller owns c->schema and calls schema_free, also after a failure. */
bool schema_compiler_run(struct compiler *c, const json_t *doc);
void schema_compiler_deinit(struct compiler *c);
/* Returns true for {"type": "string"}, as some generators write `propertyNames` for each map. */
bool schema_names_any(const json_t *names);
/* Gets the keywords of an entry, by keyword_id, that its dialect and vocabularies know; `true` and
 * `false` have none. */
void schema_entry_keywords(const struct schema *s, uint32_t entry,
                           const json_t *have[KEYWORD_COUNT]);

/* schema/subschemas.c */
/* Reports an error of the schema at `suffix` below `entry`. Always returns false. */
bool schema_compile_error(struct compiler *c, uint32_t entry, const char *suffix,
                          const char *keyword, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool schema_compile_too_complex(struct compiler *c, const char *what);
struct pattern *schema_compile_pattern(struct compiler *c, uint32_t entry, const char *suffix,
                                       const char *keyword, const char *text, size_t length);
/* Returns true if the schema is too complex, so that it is no use going on. */
bool schema_compile_stopped(const struct compiler *c);

/* Takes `root`, also when it fails. */
bool schema_index_document(struct compiler *c, json_t *root, const char *uri, uint8_t dialect,
                           uint8_t vocabularies, uint32_t *resource);
bool schema_index_schema(struct compiler *c, const json_t *schema, uint32_t parent,
                         const char *suffix, uint32_t resource, uint32_t *entry);
bool schema_index_find(const struct compiler *c, const json_t *schema, uint32_t *entry);
bool schema_anchor_find(const struct map *map, uint32_t resource, const char *name, size_t length,
                        uint32_t *entry);
/* Returns "/keyword/member", escaped, in the arena; `member` may be NULL. */
char *schema_pointer_suffix(struct compiler *c, const char *keyword, const char *member);

struct target {
  uint32_t entry;
  const char *dynamic_name; /* the dynamic anchor that led to it (arena), else NULL */
};
bool schema_ref_resolve(struct compiler *c, uint32_t entry, const char *keyword,
                        const char *reference, struct target *target);
bool schema_dialect_find(struct compiler *c, const char *uri, uint8_t *dialect,
                         uint8_t *vocabularies, unsigned level);

/* Hashes a name for the tables of a program: its two ends are quick to hash and tell most names
 * apart. */
static inline uint32_t bytes_hash(const char *bytes, size_t length) {
  uint64_t a = 0, b = 0;
  if (length >= 8) {
    memcpy(&a, bytes, 8);
    memcpy(&b, bytes + length - 8, 8);
  } else if (length >= 4) {
    memcpy(&a, bytes, 4);
    memcpy(&b, bytes + length - 4, 4);
  } else if (length) {
    a = (unsigned char)bytes[0] | (uint64_t)(unsigned char)bytes[length / 2] << 8 |
        (uint64_t)(unsigned char)bytes[length - 1] << 16;
  }
  uint64_t h = (a ^ length * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  h = (h ^ h >> 32 ^ b) * 0xc4ceb9fe1a85ec53u;
  return (uint32_t)(h >> 32);
}

#endif
