/* dialect.h - speaks one wire language of a model API, as two pure functions: from a question to
 * the bytes of a request, and from the pieces of a reply to its content. No network, no clock, no
 * environment.
 *
 *   dialect->build(&ask, &wire, &err)           then wire_deinit
 *   reply_init(&reply, dialect, ...)            see reply.h: it finds the events in the bytes
 *   dialect->event(&reply, doc)                 one event or line of a stream
 *   dialect->whole(&reply, doc)                 the whole document of a reply that is no stream
 *
 * A dialect knows the wire only. The caller (provider/api/api.h) decides which rung of the ladder
 * is tried, how the schema is adapted and where the key comes from. */
#ifndef SEGUE_PROVIDER_API_DIALECT_H
#define SEGUE_PROVIDER_API_DIALECT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/capability.h"

#include <jansson.h>

/* Says how a schema is enforced, strongest first. */
enum rung {
  RUNG_NATIVE,  /* the backend's own schema mode */
  RUNG_GRAMMAR, /* our GBNF */
  RUNG_TOOL,    /* a forced tool whose arguments have the schema */
  RUNG_JSON,    /* "some JSON", the schema in the prompt */
  RUNG_PROMPT,  /* the schema in the prompt, nothing else */
  RUNG_COUNT
};
#define RUNG_BIT(rung) (1u << (rung))
const char *rung_name(enum rung rung); /* "native", "grammar", "tool", "json", "prompt" */
bool rung_from_name(struct str name, enum rung *out);
/* Returns the first of `rungs` (bits) at or below `from`; RUNG_COUNT: there is none. */
enum rung rung_at_or_below(unsigned rungs, enum rung from);

/* Backends that speak the same dialect differ in these: data of a preset. */
enum dialect_quirk {
  QUIRK_MAX_COMPLETION_TOKENS = 1u << 0, /* chat: max_completion_tokens, not max_tokens */
  QUIRK_REQUIRE_PARAMETERS = 1u << 1,    /* OpenRouter: only hosts that know every parameter */
  QUIRK_REASONING_OBJECT = 1u << 2,      /* OpenRouter: reasoning: {effort} */
  QUIRK_STRUCTURED_OUTPUTS = 1u << 3,    /* vLLM: structured_outputs in the body */
  QUIRK_TEMPLATE_KWARGS = 1u << 4,       /* llama.cpp, vLLM: chat_template_kwargs.enable_thinking */
  QUIRK_NO_USAGE_OPTION = 1u << 5,       /* stream_options is not understood */
  QUIRK_CACHE_KEY = 1u << 7,             /* OpenAI's own: prompt_cache_key */
  QUIRK_RANDOM_SEED = 1u << 8,           /* Mistral: random_seed, not seed */
  QUIRK_THINKING_OBJECT = 1u << 9,       /* DeepSeek: thinking: {type} */
  QUIRK_API_KEY = 1u << 10,              /* Azure: the key in the header api-key */
  QUIRK_GENERATE = 1u << 6,              /* Ollama: /api/generate; llama.cpp: /completion */
};

struct ask { /* everything borrowed */
  struct str model, prompt;
  size_t head_n;         /* bytes that the prompt shares with other calls; 0: unknown */
  struct str family;     /* calls with the same shared beginning; n 0: unknown */
  const json_t *options; /* the workflow's: temperature, seed, max_tokens, effort; or NULL */
  /* members for the body under the backend's own names (Ollama: for its `options`), which never
   * replace ours; or NULL */
  const json_t *extra;
  const json_t *schema; /* adapted; NULL: no schema, and rung means nothing */
  enum rung rung;
  struct str grammar;       /* with RUNG_GRAMMAR: GBNF */
  const json_t *think;      /* true, false or a level ("low"); NULL: the backend's default */
  const json_t *keep_alive; /* Ollama; or NULL */
  struct str key;           /* n 0: none */
  unsigned quirks;          /* QUIRK_* */
  bool stream;
  const char *version;   /* version of Anthropic's API */
  const json_t *without; /* names of parameters that this model refuses; or NULL */
};

enum { WIRE_HEADERS = 8 + LIMIT_HTTP_OWN_HEADERS };

struct wire {                      /* a request, below the base URL */
  struct buf path;                 /* "/v1/messages" */
  char *headers[WIRE_HEADERS + 1]; /* "Name: value", NULL-terminated; one of them holds the key */
  struct buf body;
};
void wire_deinit(struct wire *wire); /* wipes the headers */

struct reply;

struct dialect {
  const char *name;         /* the word after `type:` */
  unsigned rungs;           /* RUNG_BITs that it can express */
  unsigned options;         /* OPTION_* */
  const char *judge_effort; /* default effort of a judge; NULL: none */
  long max_tokens;          /* what a stream asks for where nobody says; 0: nothing */
  bool lines;               /* its stream is NDJSON, not server-sent events */
  bool model_needed;        /* no request without a model */
  const char *needed;       /* a parameter that no request may lack; or NULL */
  bool local;               /* engines whose templates may open a <think> block by themselves */
  bool (*build)(const struct ask *ask, struct wire *wire, struct err *err);
  void (*event)(struct reply *reply, const json_t *doc);
  void (*whole)(struct reply *reply, const json_t *doc);
};

extern const struct dialect dialect_anthropic, dialect_openai_responses, dialect_openai_chat,
    dialect_gemini, dialect_ollama, dialect_llamacpp;

/* --- for the dialects --- */

#define ASK_TOOL "answer" /* the name of the tool of RUNG_TOOL, and of the schema */

void wire_header(struct wire *wire, const char *name, struct str value);
/* Adds "Authorization: Bearer KEY"; nothing if there is no key. */
void wire_bearer(struct wire *wire, struct str key);
/* Does so, or adds the key in the header that these quirks want. */
void wire_key(struct wire *wire, unsigned quirks, struct str key);
/* Adds the version of the API and the key, as Anthropic wants them. */
void anthropic_headers(struct wire *wire, const char *version, struct str key);
/* Puts a text into a URL, so that nothing in it leads elsewhere. */
void wire_encoded(struct buf *out, struct str text);
/* Writes the body without the parameters to leave out, and frees `owned_body`; returns true. */
bool wire_body(struct wire *wire, const struct ask *ask, json_t *owned_body);
/* Returns whether the parameter is left out. */
bool ask_lacks(const struct ask *ask, const char *name);
/* Puts the option, if set, under its name in the body. */
void ask_option(const struct ask *ask, const char *option, json_t *body, const char *key);
/* Adds those members of `extra` that the body lacks. */
void ask_extra(const struct ask *ask, json_t *body);
/* Puts an object into the body unless it is empty; takes it. */
void ask_put(json_t *body, const char *key, json_t *owned);
/* Returns the length of the head that a turn's judges share: their prompts begin with its report,
 * which ends at the second line of its fence. */
size_t ask_shared_head(const struct call_request *request, struct str prompt);
/* Returns {"role": "user", "content": prompt} in an array. */
json_t *ask_messages(const struct ask *ask);
static inline bool ask_rung(const struct ask *ask, enum rung rung) {
  return ask->schema != NULL && ask->rung == rung;
}

#endif
