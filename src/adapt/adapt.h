/* adapt.h - one schema in the dialect of a provider, and the provider's answers back.
 *
 * Every provider accepts only part of JSON Schema, and no two accept the same part. adapt() turns
 * the canonical schema into one that the provider accepts and that asks for the same values,
 * perhaps in another shape. It reports what became of each keyword, and keeps what is needed to
 * turn an answer back. Whatever the provider promises, check what adapt_reverse returns against the
 * canonical schema.
 *
 * Calling order: adapt, adapted_schema (send it), adapt_reverse for each answer, adapted_free.
 *
 * The mapping depends on schema, dialect and options alone, so these three are all that has to be
 * stored: the same three give the same result, byte for byte.
 *
 * What is rewritten, where a dialect needs it, and turned back without loss:
 *   - a root that is not a plain object       -> {"value": ...}, an array {"items": ...}
 *   - an optional property                    -> required, and may be null
 *   - named values of any name (maps)         -> [{"key": ..., "value": ...}, ...]
 *   - the rest of a partly named object       -> such a list in one more property
 *   - a tuple                                 -> {"item_0": ..., "item_1": ..., "rest": [...]}
 *   - any value at all                         -> its JSON as text
 *   - enum values that are arrays or objects  -> their JSON as text
 *   - oneOf, if, dependentSchemas             -> anyOf;  allOf and $ref with siblings -> merged
 *   - const                                   -> enum;   other documents -> $defs
 *
 * Null. Where an optional property was made required, null means "left out" and is removed again,
 * but only if the canonical schema does not admit null there. If it does, null is a value and
 * stays; the report then says that the property can no longer be left out.
 *
 * Size, depth and work are bounded (ADAPT_TOO_COMPLEX). A schema that the dialect cannot express in
 * any shape is ADAPT_UNSUPPORTED; one that exceeds a provider's limit is ADAPT_LIMIT, and the error
 * names the limit, the place and the number. */
#ifndef SEGUE_ADAPT_ADAPT_H
#define SEGUE_ADAPT_ADAPT_H

#include "schema/schema.h"

enum {
  ADAPT_DEPTH_MAX = 128,     /* subschemas inside each other, in either schema */
  ADAPT_UNITS_MAX = 20000,   /* different places of the canonical schema */
  ADAPT_SIZE_MAX = 200000,   /* JSON values in the adapted schema */
  ADAPT_BRANCHES_MAX = 1024, /* alternatives of one place, after nested ones are multiplied out */
  ADAPT_WORK_MAX = 2000000,  /* values visited while turning one answer back */
  ADAPT_ANSWER_DEPTH_MAX = 512, /* levels of arrays and objects in an answer */
  ADAPT_WORDS_BYTES = 4000,     /* of constraints in words, in one description */
  ADAPT_VALUE_BYTES = 400       /* of one JSON value or pattern in such words */
};

enum adapt_status {
  ADAPT_OK,
  ADAPT_INVALID_SCHEMA, /* the canonical schema is not sound */
  ADAPT_UNSUPPORTED,    /* the dialect cannot hold it */
  ADAPT_LIMIT,          /* expressible, but over a limit of the provider */
  ADAPT_TOO_COMPLEX     /* a bound above was hit */
};
/* Returns "ok", "invalid_schema", "unsupported", "limit" or "too_complex". */
const char *adapt_status_name(enum adapt_status status);

struct adapt_error {
  enum adapt_status status;
  char pointer[512];     /* in the canonical schema; for a limit, in the adapted one */
  const char *keyword;   /* static; "" if none is to blame */
  const char *limit;     /* static name of the limit, ADAPT_LIMIT only: "nesting", ...; else NULL */
  size_t found, allowed; /* ADAPT_LIMIT only, in the limit's unit */
  char message[512];     /* a sentence, without the pointer */
};

struct adapt_dialect; /* a row of the table of dialects; static */

/* "openai", "openai-chat", "codex", "openrouter", "anthropic", "gemini", "ollama", "llamacpp",
 * "lmstudio", "vllm", "claude", "qwen", "opencode"; NULL if no dialect has that name. */
const struct adapt_dialect *adapt_dialect_find(const char *name);
/* Returns the index-th in the order above; NULL after the last. */
const struct adapt_dialect *adapt_dialect_at(size_t index);

struct adapt_opts {
  const struct schema_registry *registry; /* for references to other documents; may be NULL */
  const char *default_draft;              /* as in schema_opts */
  const char
      *schema_name; /* sent beside the schema; checked, where the dialect has a rule; or NULL */
  const char *reasoning; /* name of a text that comes first in the root object, so that a model can
                              think before it answers: moved there if the schema has it, else added,
                              and taken out of the answer again; or NULL */
  bool words_only; /* bounds, lengths, patterns and formats only in words, for models that fail on
                      them although the dialect has them */
};

enum adapt_effect {
  ADAPT_REWRITTEN, /* the same values in another shape */
  ADAPT_DESCRIBED, /* not enforced by the provider, said in a description */
  ADAPT_DROPPED,   /* not enforced by the provider, and not said either */
  ADAPT_NARROWED   /* the provider is asked for fewer values than the canonical schema admits */
};
/* Returns "rewritten", "described", "dropped" or "narrowed". */
const char *adapt_effect_name(enum adapt_effect effect);

struct adapt_change {
  const char *pointer; /* the keyword's place in the canonical schema, or that of the subschema
                          which lacks it; in another document after its URI and '#' */
  const char *keyword; /* static */
  enum adapt_effect effect;
  const char *why; /* static */
};

struct adapted;

/* Returns NULL on failure; `error` (may be NULL) says why. `opts` may be NULL. Keeps no reference
 * to its arguments. */
struct adapted *adapt(const json_t *doc, const struct adapt_dialect *dialect,
                      const struct adapt_opts *opts, struct adapt_error *error)
    __attribute__((warn_unused_result));
void adapted_free(struct adapted *adapted);

const json_t *adapted_schema(const struct adapted *adapted); /* borrowed */
/* In the order of the adapted schema; a keyword appears once for each effect it has. */
size_t adapted_change_count(const struct adapted *adapted);
const struct adapt_change *adapted_change_at(const struct adapted *adapted, size_t index);

/* On ADAPT_OK *value is a new reference. Where pairs give one name twice, the second member is
 * called by that name and U+0000, which no answer may have (structured/reply_check.h), so that
 * nothing is lost unseen; a text of JSON that gives a name twice becomes a member called U+0000. An
 * answer without the adapted shape is turned back as far as possible and otherwise left alone; the
 * canonical schema then says what is wrong. */
enum adapt_status adapt_reverse(const struct adapted *adapted, const json_t *answer, json_t **value)
    __attribute__((warn_unused_result));

#endif
