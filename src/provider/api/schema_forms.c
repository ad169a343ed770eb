/* Adapts schemas to model APIs and turns their answers back. */
#include "provider/api/schema_forms.h"

#include "adapt/adapt.h"
#include "base/limits.h"
#include "base/log.h"
#include "extract/schema_check.h"
#include "extract/whole_reply.h"
#include "format/json_value.h"
#include "gbnf/gbnf.h"
#include "schema/schema.h"
#include "json/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct api_schema {
  struct api_schema *next;
  unsigned refs;
  json_t *canonical;
  const struct preset *preset;
  bool reasoning;
  struct schema *compiled; /* NULL: it is unsound, and nothing is checked here */
  struct adapted *adapted;
  struct gbnf_result grammar;
  struct gbnf_opts grammar_opts;
  char why[400]; /* why it could not be adapted */
  bool grammar_made;
};

struct api_schemas {
  struct api_schema *first; /* the one that was used last */
  size_t count;
};

struct api_schemas *api_schemas_new(void) {
  return xcalloc(1, sizeof(struct api_schemas));
}

void api_schema_unref(struct api_schema *s) {
  assert(s == NULL || s->refs > 0);
  if (s == NULL || --s->refs > 0)
    return;
  json_decref(s->canonical);
  schema_free(s->compiled);
  adapted_free(s->adapted);
  gbnf_result_deinit(&s->grammar);
  free(s);
}

void api_schemas_free(struct api_schemas *schemas) {
  while (schemas->first) {
    struct api_schema *s = schemas->first;
    schemas->first = s->next;
    api_schema_unref(s);
  }
  free(schemas);
}

static struct api_schema *api_schema_make(const json_t *canonical, const struct preset *preset,
                                          bool reasoning) {
  struct api_schema *s = xcalloc(1, sizeof *s);
  const struct adapt_opts opts = {.reasoning = reasoning ? "reasoning" : NULL};
  struct adapt_error error;
  s->refs = 1;
  s->canonical = json_incref((json_t *)canonical);
  s->preset = preset;
  s->reasoning = reasoning;
  s->compiled = schema_compile(canonical, NULL, NULL, NULL);
  const struct adapt_dialect *dialect = adapt_dialect_find(preset->name);
  if (dialect == NULL) /* a preset of a dialect that others have, too */
    dialect = adapt_dialect_find(preset->dialect->name);
  s->adapted = adapt(canonical, dialect, &opts, &error);
  if (s->adapted == NULL)
    print_into(s->why, sizeof s->why, "the schema cannot be written for %s: %.80s%s%.250s",
               preset->name, error.pointer, error.pointer[0] ? ": " : "", error.message);
  size_t bytes = s->adapted ? json_dumpb(adapted_schema(s->adapted), NULL, 0, JSON_COMPACT) : 0;
  if (bytes > LIMIT_SCHEMA_SENT_BYTES) {
    print_into(s->why, sizeof s->why, "the schema for %s has %zu bytes; at most %u are sent",
               preset->name, bytes, LIMIT_SCHEMA_SENT_BYTES);
    adapted_free(s->adapted);
    s->adapted = NULL;
  }
  return s;
}

struct api_schema *api_schema_get(struct api_schemas *schemas, const json_t *canonical,
                                  const struct preset *preset, bool reasoning) {
  assert(canonical != NULL);
  struct api_schema **at = &schemas->first, *s;
  while ((s = *at) != NULL && (s->preset != preset || s->reasoning != reasoning ||
                               (s->canonical != canonical && !json_same(s->canonical, canonical))))
    at = &s->next;
  if (s != NULL) {
    *at = s->next;
  } else {
    s = api_schema_make(canonical, preset, reasoning);
    if (schemas->count == LIMIT_API_SCHEMA_COUNT) { /* the last one has gone unused for longest */
      at = &schemas->first;
      while ((*at)->next)
        at = &(*at)->next;
      api_schema_unref(*at);
      *at = NULL;
      schemas->count--;
    }
    schemas->count++;
  }
  s->next = schemas->first;
  schemas->first = s;
  s->refs++;
  return s;
}

const json_t *api_schema_adapted(const struct api_schema *s) {
  return s->adapted ? adapted_schema(s->adapted) : NULL;
}

struct str api_schema_grammar(struct api_schema *s, bool think, bool opened) {
  struct gbnf_opts opts = {.think = think, .thinking = think && opened};
  if (!s->grammar_made || opts.think != s->grammar_opts.think ||
      opts.thinking != s->grammar_opts.thinking) {
    s->grammar_made = true;
    s->grammar_opts = opts;
    gbnf_result_deinit(&s->grammar);
    enum gbnf_status status = gbnf_convert(s->canonical, &opts, &s->grammar);
    assert((status == GBNF_OK) == (s->grammar.text != NULL));
    if (s->grammar.length > LIMIT_SCHEMA_SENT_BYTES) {
      gbnf_result_deinit(&s->grammar);
      s->grammar.refusal = xstrdup("the grammar has over 64 KiB");
    }
  }
  return (struct str){s->grammar.text ? s->grammar.text : "",
                      s->grammar.text ? s->grammar.length : 0};
}

unsigned api_schema_rungs(struct api_schema *s, unsigned rungs, const char **why) {
  *why = NULL;
  if (s->adapted == NULL && (rungs & (RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_TOOL)))) {
    *why = s->why;
    rungs &= ~(RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_TOOL));
  }
  if ((rungs & RUNG_BIT(RUNG_GRAMMAR)) && !(rungs & RUNG_BIT(RUNG_NATIVE)) &&
      (s->grammar_made ? !s->grammar.text : !api_schema_grammar(s, false, false).n)) {
    *why = s->grammar.refusal ? s->grammar.refusal : "the schema has no grammar";
    rungs &= ~RUNG_BIT(RUNG_GRAMMAR);
  }
  return rungs;
}

/* Returns true if the errors say that no constraint was at work. Missing and unknown members and a
 * wrong root are what every constraint prevents; a number out of bounds is not. */
static bool is_loose(const struct schema_errors *errors) {
  for (size_t i = 0; i < errors->count; i++) {
    const struct schema_error *e = &errors->items[i];
    if (strcmp(e->keyword, "required") == 0 || strcmp(e->keyword, "additionalProperties") == 0 ||
        (strcmp(e->keyword, "type") == 0 && e->pointer[0] == '\0'))
      return true;
  }
  return false;
}

/* Returns the answer in the canonical shape, checked. New reference, never NULL. */
static json_t *read_answer(struct api_schema *s, enum rung rung, const json_t *answer,
                           enum api_fit *fit) {
  json_t *value = NULL;
  struct schema_errors errors = {0};
  bool adapted = s->adapted != NULL && (rung == RUNG_NATIVE || rung == RUNG_TOOL);
  enum adapt_status status = adapted ? adapt_reverse(s->adapted, answer, &value) : ADAPT_OK;
  if (!adapted || status != ADAPT_OK)
    value = json_incref((json_t *)answer);
  if (s->compiled == NULL || schema_valid(s->compiled, value)) {
    *fit = API_FIT_VALID;
    return value;
  }
  (void)schema_check(s->compiled, value, &errors);
  *fit = is_loose(&errors) ? API_FIT_LOOSE : API_FIT_WRONG;
  schema_errors_deinit(&errors);
  return value;
}

/* Returns a new reference to the value, if the whole text is one. Sets *bad if it is one that
 * cannot be held, such as a number beyond all bounds, which grammars do allow, or that gives a key
 * twice. */
static json_t *whole_value(struct str text, bool *bad) {
  struct jscan_result found;
  enum jscan_code code = jscan_whole(str_trim(text), &found);
  *bad = code == JSCAN_NUMBER_RANGE || code == JSCAN_DEPTH ||
         (code == JSCAN_OK && found.duplicate_key);
  if (!*bad)
    return found.value;
  json_decref(found.value);
  return NULL;
}

struct asked {
  struct api_schema *schema;
  enum rung rung;
};

static bool is_fit(void *ctx, const json_t *value) {
  const struct asked *asked = ctx;
  enum api_fit fit;
  json_decref(read_answer(asked->schema, asked->rung, value, &fit));
  return fit == API_FIT_VALID;
}

static bool is_answer_key(void *ctx, const char *key, size_t n) {
  const struct asked *asked = ctx;
  return extract_schema_key(asked->schema->canonical, key, n);
}

void api_schema_find(struct api_schema *s, enum rung rung, struct str text,
                     struct api_value *found) {
  bool bad;
  json_auto_t *answer = whole_value(text, &bad);
  *found = (struct api_value){.fit = bad ? API_FIT_WRONG : API_FIT_LOOSE};
  if (answer != NULL)
    found->value = read_answer(s, rung, answer, &found->fit);
  else if (!bad) {
    /* Reads a text that is more than a value. What it wraps is the answer; a value among words is
     * left to the caller, who knows what the words may mean. */
    struct asked asked = {s, rung};
    const struct extract_check check = {.ctx = &asked, .valid = is_fit, .is_key = is_answer_key};
    struct whole_reply sole;
    whole_reply_read(&sole, text, &check, (struct str){0});
    const json_t *there = sole.place_count == 1 ? sole.places[0].value : NULL;
    if (sole.outcome == WHOLE_REPLY_VALID ||
        (sole.outcome == WHOLE_REPLY_WORDS && is_fit(&asked, there))) {
      json_t *value = read_answer(s, rung, there, &found->fit);
      if (sole.alone)
        found->value = json_incref(value);
      else if (!json_same(value, there)) /* nobody else can turn it back */
        found->fit = API_FIT_LOOSE;
      json_decref(value);
    } else if (sole.alone &&
               (sole.outcome == WHOLE_REPLY_AMBIGUOUS || sole.outcome == WHOLE_REPLY_PLACEHOLDER)) {
      found->fit = API_FIT_WRONG;
    }
    whole_reply_deinit(&sole);
  }
}
