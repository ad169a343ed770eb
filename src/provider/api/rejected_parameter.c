/* Reads which part of a request a server would not take, and leaves it out. */
#include "provider/api/rejected_parameter.h"

#include "base/err.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* These members of a request hold parameters. */
static const char *const holders[] = {"options",   "generationConfig",     "output_config",
                                      "reasoning", "chat_template_kwargs", "thinkingConfig"};

/* Returns a member of the request that holds parameters, or NULL. */
static json_t *holder_of(const json_t *body, const char *name) {
  json_t *found = json_object_get(body, name);
  return found ? found : json_object_get(json_object_get(body, "generationConfig"), name);
}

/* Without these a request would be a different question, or lose its form, which is up to the
 * ladder. */
static const char *const essential[] = {
    /* what is asked */
    "model", "messages", "input", "contents", "prompt", "system", "stream",
    /* the form of the answer */
    "tools", "tool_choice", "toolConfig", "format", "response_format", "text", "structured_outputs",
    "grammar", "json_schema", "responseMimeType", "responseJsonSchema",
    /* what holds them */
    "options", "output_config", "generationConfig", "provider", NULL};

static bool is_word_byte(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* Returns true if `word` is a whole word of the text. Servers write a name as it is, with
 * underscores (generation_config.max_output_tokens) or in words: those of the text may be left
 * out. */
static bool has_word(const char *text, const char *word) {
  for (const char *at = text; *at != '\0'; at++) {
    const char *t = at, *w = word;
    if (at > text && is_word_byte(at[-1]))
      continue;
    while (*w != '\0' && *t != '\0') {
      if (tolower((unsigned char)*t) == tolower((unsigned char)*w))
        w++;
      else if (*t != '_' && *t != ' ')
        break;
      t++;
    }
    if (*w == '\0' && strncasecmp(t, "ing", 3) == 0) /* "does not support thinking" */
      t += 3;
    if (*w == '\0' && !is_word_byte(*t))
      return true;
  }
  return false;
}

static const char *named_member(const char *text, const json_t *object) {
  const char *name, *found = NULL;
  json_t *value;
  json_object_foreach((json_t *)object, name, value)
    if (found == NULL && !str_is_one(str_from(name), essential) && has_word(text, name))
      found = name;
  return found;
}

/* Returns true if the field is one that no request may lack, such as "messages[0].content". */
static bool names_essential(const char *param) {
  for (size_t i = 0; essential[i] != NULL; i++)
    if (has_word(param, essential[i]))
      return true;
  return false;
}

static const char *named_anywhere(const char *text, const json_t *body) {
  const char *found = named_member(text, body);
  for (size_t i = 0; i < ARRAY_LEN(holders) && found == NULL; i++)
    found = named_member(text, holder_of(body, holders[i]));
  return found;
}

const char *rejected_parameter_parameter(const struct rejected_parameter *refusal,
                                         const json_t *body, const char *needed) {
  const char *found = named_anywhere(refusal->param, body);
  /* Gateways fill the field with words of their own ("body"): then the message counts. */
  if (found == NULL && !names_essential(refusal->param))
    found = named_anywhere(refusal->message, body);
  if (found != NULL && needed != NULL && strcmp(found, needed) == 0)
    return NULL;
  return found;
}

/* Returns true if a word of the text begins with one of these: "information" has no "format". */
static bool has_any(const struct rejected_parameter *refusal, const char *const *words,
                    size_t count) {
  const char *text = refusal->param[0] != '\0' ? refusal->param : refusal->message;
  for (size_t i = 0; i < count; i++)
    for (const char *at = strcasestr(text, words[i]); at; at = strcasestr(at + 1, words[i]))
      if (at == text || !isalpha((unsigned char)at[-1]))
        return true;
  return false;
}

bool rejected_parameter_is_about_schema(const struct rejected_parameter *refusal) {
  static const char *const words[] = {"schema",   "format", "grammar",  "structured",
                                      "tool",     "guided", "function", "constrain",
                                      "response", "strict", "json",     "additionalProperties"};
  return has_any(refusal, words, ARRAY_LEN(words));
}

bool rejected_parameter_is_about_content(const struct rejected_parameter *refusal) {
  static const char *const contents[] = {"messages", "input", "contents", "prompt", "system"};
  for (size_t i = 0; i < ARRAY_LEN(contents); i++)
    if (has_word(refusal->param, contents[i]))
      return true;
  return false;
}

long rejected_parameter_most(const struct rejected_parameter *refusal, long than) {
  enum { LEAST = 256 };
  const char *text = refusal->message;
  long found = 0;
  if (str_starts(str_from(text), "HTTP "))
    text += strspn(text, "HTP 0123456789");
  if (strcasestr(refusal->param, "tokens") == NULL &&
      (strcasestr(text, "max") == NULL || strcasestr(text, "token") == NULL))
    return 0;
  while (*(text += strcspn(text, "0123456789")) != '\0') {
    char *end;
    long n = strtol(text, &end, 10);
    if (n >= LEAST && n < than && n > found)
      found = n;
    text = end;
  }
  return found;
}

void rejected_parameter_leave_out(json_t *body, const char *name) {
  json_object_del(body, name);
  for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
    json_t *holder = holder_of(body, holders[i]);
    if (holder == NULL || json_object_get(holder, name) == NULL)
      continue;
    json_object_del(holder, name);
    if (json_object_size(holder) == 0) {
      json_object_del(json_object_get(body, "generationConfig"), holders[i]);
      json_object_del(body, holders[i]);
    }
  }
}
