/* Compiles a checked profile into what the drivers work with, and loads the shipped profiles and
 * those of the user's folder. */
#include "provider/profile/profile.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "provider/profile/profile_keys.h"
#include "json/scan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const transport_names[] = {"exec", "native", "acp"};

const char *transport_name(enum transport transport) {
  return transport_names[transport];
}

bool transport_from_name(struct str name, enum transport *out) {
  int i = str_index(name, transport_names, TRANSPORT_COUNT);
  if (i >= 0)
    *out = (enum transport)i;
  return i >= 0;
}

/* --- enforcement --- */

/* Returns true for a value that says true: below `native` and `acp` each value of a profile is kept
 * as its text. */
static bool is_held_true(const json_t *said, const char *key) {
  const json_t *value = json_object_get(said, key);
  return json_is_true(value) || str_eq_c(json_view(value), "true");
}

static struct held held_said(const json_t *said) {
  static const char *const runs[] = {
      [HELD_RUN_NAMED] = "named", [HELD_RUN_ANY] = "any", [HELD_RUN_NONE] = "none"};
  static const char unknown[] = "its profile does not say what it does with this word (holds)";
  struct held held = {.edits = true, .looks = true, .run = HELD_RUN_ANY};
  const json_t *but = json_object_get(said, "but");
  if (said != NULL)
    held.looks = is_held_true(said, "looks");
  held.served = is_held_true(said, "served");
  for (int i = 0; said != NULL && i <= HELD_RUN_NONE; i++)
    if (str_eq_c(json_view(json_object_get(said, "run")), runs[i]))
      held.run = (enum held_run)i;
  for (int i = 0; i < PERMISSION_COUNT; i++) {
    held.but[i] = json_string_value(json_object_get(but, permission_name((enum permission)i)));
    if (said == NULL && i != PERMISSION_FULL)
      held.but[i] = unknown;
  }
  return held;
}

const json_t *profile_keys_of(const struct profile *p, enum transport transport) {
  if (transport == TRANSPORT_EXEC)
    return p->keys;
  return transport == TRANSPORT_NATIVE ? p->native : p->acp;
}

/* --- from checked keys to a profile; nothing can be wrong here any more --- */

static bool profile_is_word(const json_t *keys, const char *key, const char *word) {
  return str_eq_c(json_view_at(keys, key), word);
}

/* Returns as text again what YAML read as a number or a truth value. */
static struct str profile_words_of(struct arena *a, const json_t *value) {
  if (json_is_string(value))
    return json_view(value);
  char_auto_t *dump = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
  struct str out = arena_str(a, str_from(dump));
  return out;
}

static struct profile_value profile_value_of(struct arena *a, const json_t *value) {
  struct profile_value out = {0};
  if (value == NULL)
    return out;
  out.count = json_is_array(value) ? json_array_size(value) : 1;
  out.items = arena_array(a, out.count, sizeof *out.items);
  for (size_t i = 0; i < out.count; i++)
    out.items[i] = profile_words_of(a, json_is_array(value) ? json_array_get(value, i) : value);
  return out;
}

/* Compiles a pattern, which the profile owns. */
static struct pattern *profile_compile(struct profile *p, struct str text) {
  struct pattern *pattern = NULL;
  if (pattern_compile(text.p, text.n, &pattern, NULL) != PATTERN_OK)
    BUG("a checked pattern does not compile");
  p->compiled = xgrow(p->compiled, &p->compiled_room, p->compiled_count + 1, sizeof *p->compiled);
  p->compiled[p->compiled_count++] = pattern;
  return pattern;
}

/* The same of the text of a member, which YAML may have read as a number. NULL: there is none. */
static struct pattern *pattern_of(struct profile *p, const json_t *item, const char *key) {
  const json_t *text = json_object_get(item, key);
  return text ? profile_compile(p, profile_words_of(&p->arena, text)) : NULL;
}

static struct profile_matches matches_of(struct profile *p, const json_t *map) {
  struct profile_matches out = {.count = json_object_size(map)};
  size_t i = 0;
  out.items = arena_array(&p->arena, out.count, sizeof *out.items);
  JSON_MEMBERS((json_t *)map, pointer, value) {
    struct profile_match *m = &out.items[i++];
    struct str text = json_view(value);
    m->pointer = str_from(pointer);
    m->kind = MATCH_VALUES;
    if (json_is_string(value) && str_eq_c(text, "*")) {
      m->kind = MATCH_PRESENT;
    } else if (json_is_string(value) && text.n > 1 && text.p[0] == '~') {
      m->kind = MATCH_PATTERN;
      m->pattern = profile_compile(p, (struct str){text.p + 1, text.n - 1});
    } else {
      m->values = value;
    }
  }
  return out;
}

/* Pairs a word of a profile with what it stands for; the last pair has no word. */
struct choice {
  const char *word;
  int value;
};

static const struct choice ends[] = {{"ok", STREAM_END_OK}, {"error", STREAM_END_ERROR}, {0}};

static const struct choice scopes[] = {{"request", USAGE_OF_REQUEST},
                                       {"turn", USAGE_OF_TURN},
                                       {"conversation", USAGE_OF_CONVERSATION},
                                       {0}};

static const struct choice stderr_kinds[] = {
    {"retry", STDERR_RETRY}, {"permission", STDERR_PERMISSION}, {0}};
static const struct choice notice_kinds[] = {{"retry", NOTICE_RETRY}, {"note", NOTICE_NOTE}, {0}};

static const struct choice aboves[] = {
    {"repository", PROJECT_ABOVE_REPOSITORY}, {"root", PROJECT_ABOVE_ROOT}, {0}};

static const struct choice schema_ways[] = {
    {"text", SCHEMA_BY_TEXT}, {"file", SCHEMA_BY_FILE}, {0}};

static const struct choice outputs[] = {
    {"json", DIALECT_JSON}, {"text", DIALECT_TEXT}, {"acp", DIALECT_ACP}, {0}};

static unsigned choice_of(const json_t *keys, const char *key, const struct choice *choices,
                          unsigned otherwise) {
  for (const struct choice *c = choices; c->word != NULL; c++)
    if (profile_is_word(keys, key, c->word))
      return (unsigned)c->value;
  return otherwise;
}

static void read_rule(struct profile *p, const json_t *keys, struct profile_rule *r) {
  /* The members of a set are in the order of the table of keys, which is that of the enums. */
  const struct {
    const char *name, *members[USAGE_FIELDS + 1];
    struct profile_value *out;
    bool *has;
  } sets[] = {
      {"tool", {"name", "id", "state", "failed", "input", "output", "exit"}, r->tool, &r->has_tool},
      {"usage",
       {"input", "output", "cached", "reasoning", "cache_write", "cost", "all_input", "all_output"},
       r->usage,
       &r->has_usage},
      {"background", {"id", "what", "state", "all"}, r->background, &r->has_background},
      {"retry", {"attempt", "of", "delay_ms", "status", "reason"}, r->retry, &r->has_retry},
      {"permission", {"tool", "answer", "message"}, r->permission, &r->has_permission},
      {"error", {"status", "kind", "message", "retry_after_ms", "log"}, r->error, &r->has_error}};
  const struct {
    const char *name;
    struct profile_value *value;
  } values[] = {
      {"session", &r->session},   {"delta", &r->delta},     {"cumulative", &r->cumulative},
      {"thinking", &r->thinking}, {"message", &r->message}, {"message_id", &r->message_id},
      {"note", &r->note},         {"text", &r->text},       {"structured", &r->structured}};
  for (size_t i = 0; i < ARRAY_LEN(values); i++)
    *values[i].value = profile_value_of(&p->arena, json_object_get(keys, values[i].name));
  for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
    const json_t *set = json_object_get(keys, sets[i].name);
    *sets[i].has = set != NULL;
    for (size_t k = 0; sets[i].members[k] != NULL; k++)
      sets[i].out[k] = profile_value_of(&p->arena, json_object_get(set, sets[i].members[k]));
  }
  r->when = matches_of(p, json_object_get(keys, "when"));
  r->unless = matches_of(p, json_object_get(keys, "unless"));
  r->where = matches_of(p, json_object_get(keys, "where"));
  r->each = json_view(json_object_get(keys, "each"));
  r->usage_of =
      (enum usage_scope)choice_of(json_object_get(keys, "usage"), "of", scopes, USAGE_OF_CALL);
  r->end = (enum profile_end)choice_of(keys, "end", ends, STREAM_END_NONE);
}

static enum error_class profile_class_of(const json_t *value) {
  enum error_class class = CLASS_NONE;
  if (json_is_string(value))
    (void)error_class_from_name(json_view(value), &class);
  return class;
}

static void read_lists(struct profile *p) {
  struct arena *a = &p->arena;
  const json_t *rules = json_object_get(p->keys, "events");
  const json_t *patterns = json_object_get(p->keys, "patterns");
  const json_t *lines = json_object_get(p->keys, "stderr");
  const json_t *notices = json_object_get(p->acp, "notices");
  json_t *item;
  p->rules = arena_array(a, json_array_size(rules), sizeof *p->rules);
  p->patterns = arena_array(a, json_array_size(patterns), sizeof *p->patterns);
  p->stderr_rules = arena_array(a, json_array_size(lines), sizeof *p->stderr_rules);
  p->notices = arena_array(a, json_array_size(notices), sizeof *p->notices);
  json_array_foreach(rules, p->rule_count, item)
    read_rule(p, item, &p->rules[p->rule_count]);
  json_array_foreach(patterns, p->pattern_count, item) {
    p->patterns[p->pattern_count].pattern = pattern_of(p, item, "match");
    p->patterns[p->pattern_count].class = profile_class_of(json_object_get(item, "class"));
  }
  json_array_foreach(lines, p->stderr_rule_count, item) {
    struct profile_stderr *line = &p->stderr_rules[p->stderr_rule_count];
    line->pattern = pattern_of(p, item, "match");
    line->after = json_string_value(json_object_get(item, "after"));
    line->kind = choice_of(item, "is", stderr_kinds, STDERR_NOTE);
  }
  json_array_foreach(notices, p->notice_count, item) {
    p->notices[p->notice_count].pattern = pattern_of(p, item, "match");
    p->notices[p->notice_count].kind = choice_of(item, "is", notice_kinds, NOTICE_ERROR);
  }
}

/* Returns one bit for each transport, or all if none is named. */
static unsigned transports_of(const json_t *names) {
  unsigned bits = names ? 0 : ~0u;
  enum transport transport;
  for (size_t i = 0; i < json_array_size(names); i++)
    if (transport_from_name(json_view(json_array_get(names, i)), &transport))
      bits |= 1u << transport;
  return bits;
}

static void read_project_files(struct profile *p) {
  const json_t *files = json_object_get(p->keys, "project_files");
  p->project_file_count = json_array_size(files);
  p->project_files = arena_array(&p->arena, p->project_file_count, sizeof *p->project_files);
  for (size_t i = 0; i < p->project_file_count; i++) {
    const json_t *item = json_array_get(files, i);
    struct profile_project_file *file = &p->project_files[i];
    file->path = json_string_value(json_object_get(item, "path"));
    file->above = choice_of(item, "above", aboves, PROJECT_ABOVE_NONE);
    file->allowed = json_object_get(item, "allowed");
    file->transports = transports_of(json_object_get(item, "transports"));
    file->refused = json_object_get(item, "refused");
    file->variables = pattern_of(p, item, "refused_variables");
    file->does = json_string_value(json_object_get(item, "does"));
  }
}

/* Returns true if this template asks for the placeholder. */
static bool profile_mentions(const json_t *words, const char *placeholder) {
  const char *key;
  json_t *item;
  size_t i;
  bool found = json_is_string(words) && strstr(json_string_value(words), placeholder) != NULL;
  json_array_foreach(words, i, item)
    found = found || profile_mentions(item, placeholder);
  json_object_foreach((json_t *)words, key, item)
    found = found || strstr(key, placeholder) != NULL || profile_mentions(item, placeholder);
  return found;
}

bool profile_forks(const struct profile *p, enum transport transport) {
  const json_t *keys = profile_keys_of(p, transport);
  return is_held_true(keys, "forks") || profile_mentions(json_object_get(keys, "argv"), "{?fork}");
}

/* Returns the bits of the options that a list names. */
static unsigned profile_options_of(const json_t *names) {
  unsigned bits = 0;
  for (size_t i = 0; i < json_array_size(names); i++) {
    struct str name = json_view(json_array_get(names, i));
    int bit = str_index(name, option_names, str_count(option_names));
    bits |= bit < 0 ? 0 : 1u << bit;
  }
  return bits;
}

static void read_capability(struct profile *p) {
  const json_t *schema = json_object_get(p->keys, "schema");
  const json_t *enforced = json_object_get(schema, "enforced");
  p->schema_by = choice_of(schema, "by", schema_ways, SCHEMA_BY_NONE);
  p->schema_dialect = json_string_value(json_object_get(schema, "dialect"));
  p->structured_is_text = profile_is_word(schema, "value", "text");
  p->capability.can_judge = true;
  p->capability.touches_files = true;
  p->capability.sessions = profile_mentions(p->argv, "{session}") || p->dialect == DIALECT_ACP;
  p->capability.structured = enforced ? json_string_value(enforced) : "native";
  if (p->schema_by == SCHEMA_BY_NONE)
    p->capability.structured = "prompt";
  p->capability.takes_model = p->dialect == DIALECT_ACP || profile_mentions(p->argv, "{model}") ||
                              profile_mentions(p->native, "{model}") ||
                              profile_mentions(json_object_get(p->keys, "env"), "{model}");
  p->capability.options = profile_options_of(json_object_get(p->keys, "options"));
  p->capability.judge_effort = json_string_value(json_object_get(p->keys, "judge_effort"));
}

static void profile_build(struct profile *p) {
  const json_t *keys = p->keys;
  struct {
    const char *name;
    uint64_t *out, otherwise;
  } times[] = {{"stall_ms", &p->stall_ms, LIMIT_CALL_STALL_MS},
               {"judge_stall_ms", &p->judge_stall_ms, LIMIT_JUDGE_STALL_MS}};
  p->capability.summary = json_string_value(json_object_get(keys, "summary"));
  p->program = json_string_value(json_object_get(keys, "program"));
  p->argv = json_object_get(keys, "argv");
  p->native = json_object_get(keys, "native");
  p->acp = json_object_get(keys, "acp");
  p->prompt_on_stdin = !profile_is_word(keys, "stdin", "none");
  p->prompt_max_chars = (long)json_integer_value(json_object_get(keys, "prompt_max_chars"));
  p->chooses_session = json_is_true(json_object_get(keys, "chooses_session"));
  p->max_turns = (long)json_integer_value(json_object_get(keys, "max_turns"));
  p->max_requests = (long)json_integer_value(json_object_get(keys, "max_requests"));
  const json_t *retries = json_object_get(keys, "client_retries");
  p->client_retries = retries ? (long)json_integer_value(retries) : -1;
  for (size_t i = 0; i < ARRAY_LEN(times); i++) {
    const json_t *given = json_object_get(keys, times[i].name);
    *times[i].out = given ? (uint64_t)json_integer_value(given) : times[i].otherwise;
  }
  p->dialect = choice_of(keys, "output", outputs, DIALECT_JSON_LINES);
  p->preferred = TRANSPORT_EXEC;
  if (json_object_get(keys, "transport") != NULL)
    (void)transport_from_name(json_view(json_object_get(keys, "transport")), &p->preferred);
  else if (p->dialect == DIALECT_ACP)
    p->preferred = TRANSPORT_ACP;
  p->text_of_all = profile_is_word(keys, "text", "all") || p->dialect == DIALECT_TEXT;
  p->empty = profile_class_of(json_object_get(keys, "empty"));
  if (p->empty == CLASS_NONE)
    p->empty = CLASS_PROTOCOL;
  read_capability(p);
  for (int i = 0; i < TRANSPORT_COUNT; i++)
    p->holds[i] = held_said(json_object_get(profile_keys_of(p, (enum transport)i), "holds"));
  p->capability.held = &p->holds[p->preferred];
  p->capability.forks = profile_forks(p, p->preferred);
  read_lists(p);
  read_project_files(p);
  bool tells = p->preferred != TRANSPORT_EXEC; /* another's driver reads tokens itself */
  p->ends_by_exit = true;
  for (size_t i = 0; i < p->rule_count; i++) {
    tells |= p->rules[i].has_usage;
    p->capability.tells_cost |= p->rules[i].usage[USAGE_COST].count > 0;
    p->ends_by_exit &= p->rules[i].end != STREAM_END_OK;
  }
  p->capability.tells_no_tokens = !tells;
  if (p->dialect == DIALECT_TEXT)
    p->ends_by_exit = true;
  else if (json_object_get(keys, "ends") != NULL)
    p->ends_by_exit = profile_is_word(keys, "ends", "exit");
}

/* --- loading --- */

static bool fail_at(struct err_list *errors, const char *file, const struct yaml_node *at,
                    const char *text) {
  struct err err;
  err_set_at(&err, ERR_FILE, file, at ? at->line : 1, at ? at->column : 1, "%s", text);
  err_list_add(errors, &err);
  return false;
}

static bool fill_in(struct profile *p, const struct yaml_node *root, profile_find_fn find,
                    void *ctx, struct err_list *errors) {
  const struct yaml_node *extends = yaml_get(root, "extends");
  if (extends == NULL)
    return true;
  const struct profile *base = find ? find(ctx, extends->text) : NULL;
  if (base == NULL)
    return fail_at(errors, p->file, extends, "there is no profile of this name to extend");
  if (base->broken != NULL)
    return fail_at(errors, p->file, extends, "the profile of this name has a mistake of its own");
  JSON_MEMBERS(base->keys, key, value)
    if (json_object_get(p->keys, key) == NULL && strcmp(key, "extends") != 0)
      json_object_set(p->keys, key, value);
  const char *name;
  json_t *own;
  void *next;
  json_object_foreach_safe(p->keys, next, name, own) if (json_is_null(own)) /* not inherited */
      json_object_del(p->keys, name);
  return true;
}

/* Checks what can be missing only from the profile as a whole. */
static bool check_whole(const struct profile *p, const struct yaml_node *root,
                        struct err_list *errors) {
  const json_t *keys = p->keys;
  bool text = profile_is_word(keys, "output", "text"), acp = profile_is_word(keys, "output", "acp");
  if (json_object_get(keys, "summary") == NULL)
    return fail_at(errors, p->file, root, "a profile needs summary: one line for people");
  if (acp && json_object_get(keys, "acp") == NULL)
    return fail_at(errors, p->file, root, "output: acp needs acp: {argv: [...]}");
  if (!acp && json_object_get(keys, "argv") == NULL)
    return fail_at(errors, p->file, root, "a profile needs argv: the words after the program");
  if (!acp && !text && json_array_size(json_object_get(keys, "events")) == 0)
    return fail_at(errors, p->file, root, "a profile needs events: what its lines mean");
  const json_t *schema = json_object_get(keys, "schema");
  const char *asked = NULL, *missing = NULL;
  if (profile_is_word(schema, "by", "text")) {
    asked = "{schema}";
    missing = "schema by text: argv must have {schema} somewhere";
  } else if (profile_is_word(schema, "by", "file")) {
    asked = "{schema_file}";
    missing = "schema by file: argv must have {schema_file} somewhere";
  }
  if (asked != NULL && !profile_mentions(json_object_get(keys, "argv"), asked))
    return fail_at(errors, p->file, yaml_get(root, "schema") ? yaml_get(root, "schema") : root,
                   missing);
  if (profile_is_word(keys, "stdin", "none") &&
      !profile_mentions(json_object_get(keys, "argv"), "{prompt_file}"))
    return fail_at(errors, p->file, yaml_get(root, "stdin") ? yaml_get(root, "stdin") : root,
                   "without stdin the prompt must come through {prompt_file}: arguments can be "
                   "read by every user of the machine");
  return true;
}

/* Returns the same texts everywhere, whatever YAML read them as: words of argv, values of set. */
static json_t *plain(const json_t *value, bool keep_types) {
  json_t *out;
  if (keep_types || json_is_string(value) || json_is_null(value))
    return json_incref((json_t *)value);
  if (json_is_object(value)) {
    out = json_object();
    JSON_MEMBERS(value, key, item)
      json_object_set_new(out, key, plain(item, strcmp(key, "meta") == 0));
    return out;
  }
  if (json_is_array(value)) {
    out = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
      json_array_append_new(out, plain(json_array_get(value, i), false));
    return out;
  }
  char_auto_t *dump = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
  out = json_string(dump);
  return out;
}

static json_t *plain_keys(const json_t *document) {
  static const char *const texts[] = {"argv",  "env",    "files", "permission",    "version",
                                      "login", "native", "acp",   "no_background", NULL};
  json_t *out = json_object();
  JSON_MEMBERS((json_t *)document, key, value) {
    json_object_set_new(out, key, plain(value, !str_is_one(str_from(key), texts)));
  }
  return out;
}

struct profile *profile_load(const char *name, const char *file, struct str text,
                             profile_find_fn find, void *ctx, struct err_list *errors) {
  struct profile *p = xcalloc(1, sizeof *p);
  struct arena nodes = {0};
  size_t before = errors->count + errors->dropped;
  p->file = arena_strdup(&p->arena, file);
  p->capability.name = arena_strdup(&p->arena, name);
  p->source = arena_str(&p->arena, text);
  const struct yaml_node *root = yaml_parse(&nodes, p->file, text, LIMIT_PROFILE_BYTES, errors);
  bool ok = root != NULL && errors->count + errors->dropped == before &&
            profile_check(p->file, root, errors);
  if (ok) {
    json_t *document = yaml_to_json(root);
    p->keys = plain_keys(document);
    json_decref(document);
    ok = fill_in(p, root, find, ctx, errors) && check_whole(p, root, errors);
  }
  if (ok)
    profile_build(p);
  arena_deinit(&nodes);
  if (!ok) {
    profile_free(p);
    return NULL;
  }
  return p;
}

/* Returns profiles/NAME.FORM as compiled in; form: json or yaml. */
static struct str profile_shipped_text(const char *name, const char *form) {
  char path[128];
  print_into(path, sizeof path, "provider/profiles/%s.%s", name, form);
  const struct resource *r = resource_find(path);
  if (r == NULL)
    BUG("%s is not there", path);
  return (struct str){r->p, r->n};
}

/* Reads a shipped document with our own scanner: jansson's takes four times as long, at every
 * start. */
static json_t *profile_document(const char *name) {
  struct jscan_result result;
  if (jscan_whole(str_trim(profile_shipped_text(name, "json")), &result) != JSCAN_OK)
    BUG("what is compiled in is no JSON");
  return result.value;
}

const struct profile *profile_ready(const struct profile *profile) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  struct profile *p = (struct profile *)profile; /* made by profile_shipped, where it is pending */
  if (profile == NULL)
    return NULL;
  pthread_mutex_lock(&mutex);
  if (p->pending) {
    json_t *document = profile_document(p->capability.name);
    p->source = profile_shipped_text(p->capability.name, "yaml");
    p->keys = plain_keys(document);
    json_decref(document);
    profile_build(p);
    p->pending = false;
  }
  pthread_mutex_unlock(&mutex);
  return p;
}

/* Stands for a file with a mistake: nothing but its name, its source and `why`, which is copied.
 * Its calls fail with that; other backends are unaffected. */
static struct profile *profile_broken(const char *name, const char *file, const struct err *why) {
  struct profile *p = xcalloc(1, sizeof *p);
  struct err *copy = arena_alloc(&p->arena, sizeof *copy);
  *copy = *why;
  p->broken = copy;
  p->file = arena_strdup(&p->arena, file);
  p->keys = json_object();
  p->capability = (struct capability){.name = arena_strdup(&p->arena, name),
                                      .summary = "a profile with a mistake in its file",
                                      .can_judge = true,
                                      .structured = "prompt",
                                      .takes_model = true,
                                      .options = ~0u}; /* which ones it would take is not known */
  return p;
}

void profile_free(struct profile *p) {
  if (p == NULL)
    return;
  for (size_t i = 0; i < p->compiled_count; i++)
    pattern_free(p->compiled[i]);
  free(p->compiled);
  json_decref(p->keys);
  arena_deinit(&p->arena);
  free(p);
}

static enum error_class lookup(const struct profile *p, const char *map, struct str word) {
  return profile_class_of(json_object_getn(json_object_get(p->keys, map), word.p, word.n));
}

enum error_class profile_class(const struct profile *p, struct str word) {
  return word.n > 0 ? lookup(p, "classes", word) : CLASS_NONE;
}

enum error_class profile_status_class(const struct profile *p, int status) {
  char text[16];
  print_into(text, sizeof text, "%d", status);
  return lookup(p, "classes", str_from(text));
}

enum error_class profile_exit_class(const struct profile *p, int exit) {
  char text[16];
  print_into(text, sizeof text, "%d", exit);
  return lookup(p, "exits", str_from(text));
}

/* --- shipped profiles --- */

static const struct {
  const char *key;
  size_t offset;
} abilities[] = {
    {"can_judge", offsetof(struct capability, can_judge)},
    {"takes_model", offsetof(struct capability, takes_model)},
    {"sessions", offsetof(struct capability, sessions)},
    {"forks", offsetof(struct capability, forks)},
    {"tells_no_tokens", offsetof(struct capability, tells_no_tokens)},
    {"tells_cost", offsetof(struct capability, tells_cost)},
};

json_t *profile_about(const struct profile *p) {
  const struct capability *c = &p->capability;
  json_t *about = json_pack("{ss}", "summary", c->summary), *options = json_array();
  if (p->program != NULL)
    json_object_set_new(about, "program", json_string(p->program));
  for (unsigned bit = 0; option_names[bit] != NULL; bit++)
    if (c->options & (1u << bit))
      json_array_append_new(options, json_string(option_names[bit]));
  json_object_set_new(about, "options", options);
  for (size_t i = 0; i < ARRAY_LEN(abilities); i++)
    json_object_set_new(about, abilities[i].key,
                        json_boolean(*(const bool *)((const char *)c + abilities[i].offset)));
  json_object_set_new(about, "structured", json_string(c->structured));
  json_object_set(about, "holds", json_object_get(profile_keys_of(p, p->preferred), "holds"));
  if (c->judge_effort != NULL)
    json_object_set_new(about, "judge_effort", json_string(c->judge_effort));
  return about;
}

/* Makes a profile that is compiled in. Its capability and program come from `about` (the entry of
 * profiles/index.json under `name`; both are borrowed for its life). The rest is made on demand:
 * most runs use one profile, and making all would be half of a start. It is not checked here,
 * because tests check the shipped ones. Shipped profiles extend no other. */
static struct profile *profile_shipped(const char *name, const json_t *about) {
  struct profile *p = xcalloc(1, sizeof *p);
  p->file = "built in";
  p->capability.name = name;
  p->capability.summary = json_string_value(json_object_get(about, "summary"));
  p->capability.structured = json_string_value(json_object_get(about, "structured"));
  p->capability.options = profile_options_of(json_object_get(about, "options"));
  p->capability.judge_effort = json_string_value(json_object_get(about, "judge_effort"));
  p->capability.touches_files = true;
  p->about = held_said(json_object_get(about, "holds"));
  p->capability.held = &p->about;
  for (size_t i = 0; i < ARRAY_LEN(abilities); i++)
    *(bool *)((char *)&p->capability + abilities[i].offset) =
        json_is_true(json_object_get(about, abilities[i].key));
  p->program = json_string_value(json_object_get(about, "program"));
  p->pending = true;
  return p;
}

/* --- loading --- */

struct profiles {
  json_t *index; /* what is known of the shipped ones before they are made */
  struct profile **items;
  size_t count, room;
  struct profile **replaced; /* shipped ones that a file replaces: it may extend them */
  size_t replaced_count, replaced_room;
};

static void profiles_put(struct profiles *p, struct profile *profile) {
  p->items = xgrow(p->items, &p->room, p->count + 1, sizeof(struct profile *));
  p->items[p->count++] = profile;
}

static const struct profile *find_in(struct profile *const *list, size_t count, struct str name) {
  for (size_t i = 0; i < count; i++)
    if (str_eq_c(name, list[i]->capability.name))
      return list[i];
  return NULL;
}

const struct profile *profiles_find(const struct profiles *p, struct str name) {
  return profile_ready(find_in(p->items, p->count, name));
}

const struct profile *profiles_peek(const struct profiles *p, size_t i) {
  return i < p->count ? p->items[i] : NULL;
}

/* Finds a shipped profile by its own name, even where a file replaces it: a file may extend what it
 * replaces. */
static const struct profile *find_base(void *ctx, struct str name) {
  const struct profiles *p = ctx;
  const struct profile *found = find_in(p->replaced, p->replaced_count, name);
  return found ? profile_ready(found) : profiles_find(p, name);
}

static bool profiles_is_name(const char *name) {
  struct str all = str_from(name);
  return all.n > 0 && strchr("0123456789-_", name[0]) == NULL && str_span(all, "-_") == all.n;
}

static void profiles_add_error(struct err_list *errors, const char *path, const struct err *err) {
  struct err placed = *err;
  if (placed.file[0] == '\0')
    err_set_at(&placed, ERR_FILE, path, 1, 1, "%s", err->text);
  err_list_add(errors, &placed);
}

/* Reads a profile from its file. The profile is broken if the file has a mistake. */
static struct profile *read_profile(struct profiles *p, const char *path, const char *name) {
  buf_auto_t text = {0};
  struct err err = {0};
  AUTO(err_list_deinit) struct err_list mistakes = {0};
  struct profile *read = NULL;
  bool ok = file_read(path, LIMIT_PROFILE_BYTES, &text, &err);
  if (ok && !utf8_valid(text.p, text.n))
    ok = err_set(&err, ERR_FILE, "it is not UTF-8 text");
  if (ok)
    read = profile_load(name, path, buf_view(&text), find_base, p, &mistakes);
  else
    profiles_add_error(&mistakes, path, &err);
  if (read == NULL)
    read = profile_broken(name, path, &mistakes.items[0]);
  return read;
}

/* Returns why a file's name cannot be a provider's, NULL if it can. */
static const char *misnamed(const char *file, const char *name) {
  if (str_ends(str_from(file), ".yml"))
    return "write .yaml at its end";
  if (strlen(name) > LIMIT_NAME_BYTES)
    return "it is too long";
  if (!profiles_is_name(name))
    return "use letters, digits, - and _, a letter first";
  if (strcmp(name, "script") == 0 || strcmp(name, "command") == 0)
    return "it is built in";
  return NULL;
}

static void load_file(struct profiles *p, const char *path, const char *file) {
  char name[NAME_MAX + 1];
  print_into(name, sizeof name, "%s", file);
  *strrchr(name, '.') = '\0';
  const char *why = misnamed(file, name);
  if (why != NULL) {
    /* It is a broken profile, under its file's name, which no provider can have for its dot. */
    char shown[NAME_MAX + 1];
    struct err err;
    print_into(shown, sizeof shown, "%s", file);
    for (char *c = shown; *c != '\0'; c++)
      if (*c < ' ' || *c > '~')
        *c = '?';
    err_set_at(&err, ERR_FILE, path, 1, 1, "\"%.140s\" cannot be the name of a profile's file: %s",
               shown, why);
    profiles_put(p, profile_broken(shown, path, &err));
    return;
  }
  struct profile *read = read_profile(p, path, name);
  for (size_t i = 0; i < p->count; i++)
    if (strcmp(p->items[i]->capability.name, name) == 0) {
      p->replaced =
          xgrow(p->replaced, &p->replaced_room, p->replaced_count + 1, sizeof(struct profile *));
      p->replaced[p->replaced_count++] = p->items[i];
      p->items[i] = read;
      return;
    }
  profiles_put(p, read);
}

/* Loads those again that failed: a file may extend one whose name comes after its own. */
static void load_again(struct profiles *p) {
  for (bool better = true; better;) {
    better = false;
    for (size_t i = 0; i < p->count; i++) {
      struct profile *old = p->items[i];
      if (old->broken == NULL || !profiles_is_name(old->capability.name))
        continue;
      p->items[i] = read_profile(p, old->file, old->capability.name);
      better |= p->items[i]->broken == NULL;
      profile_free(old);
    }
  }
}

static void load_folder(struct profiles *p, const char *folder, struct err_list *errors) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, NULL, alphasort);
  struct err err;
  if (count < 0 && errno != ENOENT && errno != ENOTDIR) {
    err_set_errno(&err, errno, "cannot read the folder");
    profiles_add_error(errors, folder, &err);
  }
  for (int i = 0; i < count; i++) {
    struct str file = str_from(entries[i]->d_name); /* it may be a backup, a README or the like */
    bool is_profile = file.p[0] != '.' && (str_ends(file, ".yaml") || str_ends(file, ".yml"));
    if (is_profile && i < (int)LIMIT_PROFILE_COUNT) {
      struct buf path = {0};
      buf_printf(&path, "%s/%s", folder, entries[i]->d_name);
      load_file(p, buf_c(&path), entries[i]->d_name);
      buf_deinit(&path);
    }
    free(entries[i]);
  }
  free(entries);
  load_again(p);
}

struct profiles *profiles_load(const char *folder, struct err_list *errors) {
  struct profiles *p = xcalloc(1, sizeof *p);
  size_t before = errors->count + errors->dropped;
  p->index = profile_document("index");
  JSON_MEMBERS(p->index, name, about)
    profiles_put(p, profile_shipped(name, about));
  if (folder != NULL)
    load_folder(p, folder, errors);
  if (errors->count + errors->dropped == before)
    return p;
  profiles_free(p);
  return NULL;
}

void profiles_free(struct profiles *p) {
  if (p == NULL)
    return;
  for (size_t i = 0; i < p->count; i++)
    profile_free(p->items[i]);
  for (size_t i = 0; i < p->replaced_count; i++)
    profile_free(p->replaced[i]);
  free(p->items);
  free(p->replaced);
  json_decref(p->index);
  free(p);
}
