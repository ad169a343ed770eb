/* Finds secrets in a program's environment and command line. */
#include "provider/secret_find.h"

#include "base/err.h"
#include "base/limits.h"
#include "format/json_object.h"

#include <jansson.h>

#include <string.h>
#include <strings.h>

/* Returns true if one of the words is in the name (at its end, when at_end is set), in any case. */
static bool secret_find_holds(struct str name, const char *const *words, bool at_end) {
  for (; *words != NULL; words++) {
    size_t n = strlen(*words);
    for (size_t i = at_end && name.n >= n ? name.n - n : 0; i + n <= name.n; i++)
      if (strncasecmp(name.p + i, *words, n) == 0)
        return true;
  }
  return false;
}

static bool is_secret_variable(struct str name) {
  static const char *const words[] = {"KEY",        "TOKEN",      "SECRET", "PASSWORD", "PASSWD",
                                      "PASSPHRASE", "CREDENTIAL", "COOKIE", NULL};
  return secret_find_holds(name, words, false);
}

/* Returns true for members and options that hold a secret: "env_key" and "key_file" name a key but
 * are not one. */
static bool is_secret_member(struct str name) {
  static const char *const words[] = {"api_key",       "api-key",     "apikey",     "access_key",
                                      "token",         "secret",      "secret_key", "secret-key",
                                      "private_key",   "private-key", "password",   "passphrase",
                                      "authorization", "cookie",      NULL};
  return secret_find_holds(name, words, true);
}

/* Returns true for a text that begins like the keys of well-known services. */
static bool looks_like_key(struct str value) {
  static const char *const begins[] = {"sk-",    "sk_",   "rk_",   "gsk_",       "xai-",  "pplx-",
                                       "hf_",    "ghp_",  "gho_",  "ghu_",       "ghs_",  "npm_",
                                       "glpat-", "AKIA",  "ASIA",  "AIza",       "ya29.", "eyJ",
                                       "xoxb-",  "xoxp-", "xapp-", "github_pat_"};
  enum { SHORTEST = 16 };
  if (value.n < SHORTEST)
    return false;
  for (size_t i = 0; i < value.n; i++)
    if ((unsigned char)value.p[i] <= ' ' || strchr("/\\{}\"", value.p[i]) != NULL)
      return false;
  for (size_t i = 0; i < ARRAY_LEN(begins); i++)
    if (str_starts(value, begins[i]))
      return true;
  return false;
}

static struct str without_quotes(struct str value) {
  value = str_trim(value);
  if (value.n >= 2 && (value.p[0] == '"' || value.p[0] == '\'') &&
      value.p[value.n - 1] == value.p[0])
    value = (struct str){value.p + 1, value.n - 2};
  for (size_t i = 0; i < 2; i++) {
    static const char *const schemes[] = {"Bearer ", "Basic "};
    size_t n = strlen(schemes[i]);
    if (value.n > n && str_starts_fold(value, schemes[i]))
      value = str_trim((struct str){value.p + n, value.n - n});
  }
  return value;
}

static void add_members(struct secrets *s, const char *name, const json_t *value, int depth) {
  if (depth > (int)LIMIT_POINTER_STEPS)
    return;
  for (size_t i = 0; i < json_array_size(value); i++)
    add_members(s, name, json_array_get(value, i), depth + 1);
  JSON_MEMBERS(value, key, member) {
    struct str text = json_view(member);
    if (json_is_string(member) && (is_secret_member(str_from(key)) || looks_like_key(text)))
      secrets_add(s, name, without_quotes(text));
    add_members(s, name, member, depth + 1);
  }
}

static void secret_find_add_value(struct secrets *s, const char *name, struct str value,
                                  bool by_name) {
  struct str bare = without_quotes(value);
  if (by_name)
    secrets_add(s, name, value);
  if ((by_name && bare.n < value.n) || looks_like_key(bare))
    secrets_add(s, name, bare);
  /* Adds the password of scheme://user:PASSWORD@host. */
  for (size_t i = 0; i + 3 < value.n; i++) {
    if (!str_starts((struct str){value.p + i, value.n - i}, "://"))
      continue;
    size_t from = i + 3, to = from, colon = 0;
    while (to < value.n && strchr("/?# \t\"", value.p[to]) == NULL && value.p[to] != '@') {
      if (value.p[to] == ':' && colon == 0)
        colon = to;
      to++;
    }
    if (to < value.n && value.p[to] == '@' && colon > 0)
      secrets_add(s, name, (struct str){value.p + colon + 1, to - colon - 1});
    i = to > i ? to - 1 : i;
  }
  if (bare.n > 0 && (bare.p[0] == '{' || bare.p[0] == '[')) {
    json_t *document = json_loadb(bare.p, bare.n, 0, NULL);
    add_members(s, name, document, 0);
    json_decref(document);
  }
}

void secrets_find_in_environment(struct secrets *s, const char *const *envp,
                                 const char *const *declared) {
  for (; envp && *envp; envp++) {
    const char *equals = strchr(*envp, '=');
    struct str name = {*envp, equals ? (size_t)(equals - *envp) : 0};
    struct buf label = {0};
    if (equals == NULL)
      continue;
    buf_str(&label, name);
    secret_find_add_value(s, buf_c(&label), str_from(equals + 1),
                          (declared != NULL && str_is_one(name, declared)) ||
                              is_secret_variable(name));
    buf_deinit(&label);
  }
}

void secrets_find_in_words(struct secrets *s, const char *const *words) {
  struct str option = {0}; /* the word before, when its name says that a secret follows */
  for (; words && *words; words++) {
    const char *equals = strchr(*words, '=');
    struct str word = str_from(*words),
               name = {word.p, equals ? (size_t)(equals - word.p) : word.n};
    struct buf label = {0};
    if (word.n > LIMIT_SECRET_WORD_BYTES) /* a schema */
      continue;
    bool by_name = equals != NULL && is_secret_member(name);
    bool follows = option.n > 0 && word.n > 0 && word.p[0] != '-';
    if (follows)
      name = option;
    while (name.n > 0 && name.p[0] == '-')
      name = (struct str){name.p + 1, name.n - 1};
    buf_str(&label, equals || follows ? name : STR("argument"));
    secret_find_add_value(s, buf_c(&label), equals && !follows ? str_from(equals + 1) : word,
                          by_name || follows);
    buf_deinit(&label);
    option = (struct str){0};
    if (equals == NULL && word.n > 1 && word.p[0] == '-' && is_secret_member(word))
      option = word;
  }
}

static bool is_random_enough(struct str word) {
  enum { SHORTEST = 24, DIGITS = 3, CAPITALS = 3 };
  size_t digits = 0, capitals = 0, dots = 0;
  for (size_t i = 0; i < word.n; i++) {
    digits += str_is_digit(word.p[i]);
    capitals += word.p[i] >= 'A' && word.p[i] <= 'Z';
    dots += word.p[i] == '.';
  }
  return word.n >= SHORTEST && digits >= DIGITS && capitals >= CAPITALS && dots <= 2;
}

bool secret_is_written_in(struct str text) {
  for (size_t i = 0; i < text.n;) {
    size_t n = str_span((struct str){text.p + i, text.n - i}, "-_.");
    struct str word = {text.p + i, n};
    if (looks_like_key(word) && is_random_enough(word))
      return true;
    i += n + 1;
  }
  return false;
}
