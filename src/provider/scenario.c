/* Parses scenario files and picks the reply to a call. */
#include "provider/scenario.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "format/yaml.h"
#include "json/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const reply_keys[] = {
    "movement",   "purpose", "stage",    "contains",     "times",  "text",
    "structured", "error",   "delay_ms", "write",        "chunks", "provider_session",
    "usage",      "cost",    "tools",    "usage_so_far", "mark",   NULL};

static const char *const usage_keys[] = {"input",     "output",      "cached",
                                         "reasoning", "cache_write", NULL};

static const char *const error_keys[] = {"class", "retry_after_ms", "message", NULL};

/* Tells the place of a mistake: the key of a reply, or of its `in` if that is set, or its value. */
struct spot {
  size_t reply; /* 1-based; 0: the file's own map */
  const char *in, *key;
  bool is_key;
};

PRINTF_LIKE(3, 4)
static bool scenario_wrong(const struct spot *spot, struct err *err, const char *fmt, ...) {
  char text[sizeof err->text];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return err_set(err, ERR_FILE, "reply %zu: %s", spot->reply, text);
}

static bool check_keys(const json_t *map, const char *const *keys, struct spot *spot,
                       struct err *err) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)map, key, value) {
    if (str_is_one(str_from(key), keys))
      continue;
    spot->key = key;
    spot->is_key = true;
    return scenario_wrong(spot, err, "unknown key \"%s\"%s", key,
                          str_hint(str_from(key), keys).text);
  }
  return true;
}

static bool scenario_is_word(const json_t *reply, const char *key) {
  const json_t *value = json_object_get(reply, key);
  return value == NULL || json_is_string(value);
}

static bool scenario_is_flag(const json_t *reply, const char *key) {
  const json_t *value = json_object_get(reply, key);
  return value == NULL || json_is_boolean(value);
}

static bool scenario_is_count(const json_t *reply, const char *key) {
  const json_t *value = json_object_get(reply, key);
  return value == NULL || (json_is_integer(value) && json_integer_value(value) >= 0 &&
                           json_integer_value(value) <= 1000000000);
}

static bool check_types(const json_t *reply, struct spot *spot, struct err *err) {
  static const char *const words[] = {"movement", "purpose", "stage",
                                      "contains", "text",    "provider_session"};
  static const char *const counts[] = {"times", "delay_ms"};
  for (size_t i = 0; i < ARRAY_LEN(words); i++) {
    spot->key = words[i];
    if (!scenario_is_word(reply, words[i]))
      return scenario_wrong(spot, err, "%s must be a text: put it in quotes", words[i]);
  }
  spot->key = "mark";
  if (!scenario_is_flag(reply, "mark"))
    return scenario_wrong(spot, err, "mark must be true or false");
  for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
    spot->key = counts[i];
    if (!scenario_is_count(reply, counts[i]))
      return scenario_wrong(spot, err, "%s must be a whole number, 0 or more", counts[i]);
  }
  return true;
}

static bool check_matchers(const json_t *reply, struct spot *spot, struct err *err) {
  enum call_purpose purpose;
  enum judge_stage stage;
  const char *name = json_string_value(json_object_get(reply, "purpose"));
  spot->key = "purpose";
  if (name && !call_purpose_from_name(str_from(name), &purpose))
    return scenario_wrong(spot, err,
                          "purpose \"%s\" is unknown: use execute, judge, reask or check", name);
  name = json_string_value(json_object_get(reply, "stage"));
  spot->key = "stage";
  if (name && !judge_stage_from_name(str_from(name), &stage))
    return scenario_wrong(
        spot, err, "stage \"%s\" is unknown: use structured_output, phase3_tag or ai_judge", name);
  return true;
}

static bool check_error(const json_t *error, struct spot *spot, struct err *err) {
  enum error_class class;
  const char *name = json_string_value(json_object_get(error, "class"));
  if (error == NULL)
    return true;
  spot->key = "error";
  if (json_is_object(error)) {
    spot->in = "error";
    if (!check_keys(error, error_keys, spot, err))
      return false;
    spot->key = "class";
  }
  if (!name || !error_class_from_name(str_from(name), &class))
    return scenario_wrong(
        spot, err,
        "error.class must be one of auth, quota, rate_limit, overloaded, network, "
        "timeout, refused, length, bad_request, not_found, crashed, protocol, cancelled");
  spot->key = "retry_after_ms";
  if (!scenario_is_count(error, "retry_after_ms"))
    return scenario_wrong(spot, err, "error.retry_after_ms must be a whole number, 0 or more");
  spot->key = "message";
  if (!scenario_is_word(error, "message"))
    return scenario_wrong(spot, err, "error.message must be a text: put it in quotes");
  spot->in = NULL;
  return true;
}

static bool check_write(const json_t *write, struct spot *spot, struct err *err) {
  const char *key;
  json_t *value;
  spot->key = "write";
  if (write && !json_is_object(write))
    return scenario_wrong(spot, err, "write must be a map of path: content");
  spot->in = "write";
  json_object_foreach((json_t *)write, key, value) {
    spot->key = key;
    if (!json_is_string(value))
      return scenario_wrong(spot, err, "the content of %s must be a text", key);
  }
  spot->in = NULL;
  return true;
}

static bool check_chunks(const json_t *reply, struct spot *spot, struct err *err) {
  const json_t *chunks = json_object_get(reply, "chunks");
  bool texts = chunks == NULL || json_is_array(chunks);
  size_t i;
  json_t *value;
  json_array_foreach(chunks, i, value)
    texts = texts && json_is_string(value);
  spot->key = "chunks";
  if (!texts || (chunks && json_object_get(reply, "text")))
    return scenario_wrong(spot, err, "chunks must be a list of texts, instead of text");
  return true;
}

/* Checks `usage`, or `usage_so_far`: what is reported before the answer, as by backends that count
 * while they work. */
static bool check_counts(const json_t *reply, const char *name, const char *example,
                         struct spot *spot, struct err *err) {
  const json_t *usage = json_object_get(reply, name);
  spot->key = name;
  if (usage == NULL)
    return true;
  if (!json_is_object(usage))
    return scenario_wrong(spot, err, "%s must be a map, such as %s", name, example);
  spot->in = name;
  if (!check_keys(usage, usage_keys, spot, err))
    return false;
  for (size_t i = 0; usage_keys[i] != NULL; i++) {
    spot->key = usage_keys[i];
    if (!scenario_is_count(usage, usage_keys[i]))
      return scenario_wrong(spot, err, "%s.%s must be a whole number, 0 or more", name,
                            usage_keys[i]);
  }
  spot->in = NULL;
  return true;
}

static bool check_cost(const json_t *cost, struct spot *spot, struct err *err) {
  spot->key = "cost";
  double usd = json_number_value(cost);
  if (cost != NULL && (!json_is_number(cost) || usd < 0 || usd > LIMIT_COST_USD))
    return scenario_wrong(spot, err, "cost must be a number of US dollars, 0 or more");
  return true;
}

/* Returns true for a tool: a name, or what was run and what came of it. */
static bool scenario_is_tool(const json_t *tool) {
  static const char *const keys[] = {"name", "argument", "exit", "output", NULL};
  const char *key;
  json_t *value;
  bool fine = json_is_string(tool) || json_is_string(json_object_get(tool, "name"));
  json_object_foreach((json_t *)tool, key, value) {
    bool number = strcmp(key, "exit") == 0;
    fine = fine && str_is_one(str_from(key), keys) &&
           (number ? json_is_integer(value) : json_is_string(value));
  }
  return fine;
}

static bool check_tools(const json_t *tools, struct spot *spot, struct err *err) {
  const json_t *tool;
  size_t i;
  bool fine = tools == NULL || json_is_array(tools);
  json_array_foreach((json_t *)tools, i, tool)
    fine = fine && scenario_is_tool(tool);
  spot->key = "tools";
  return fine || scenario_wrong(spot, err,
                                "tools must be a list of names, such as [Read, Bash], or of maps "
                                "such as {name: Bash, argument: make, exit: 2, output: \"...\"}");
}

static bool check_reply(const json_t *reply, struct spot *spot, struct err *err) {
  if (!json_is_object(reply))
    return err_set(err, ERR_FILE, "reply %zu is not a map: write keys such as text:", spot->reply);
  if (!check_keys(reply, reply_keys, spot, err) || !check_types(reply, spot, err) ||
      !check_matchers(reply, spot, err) ||
      !check_error(json_object_get(reply, "error"), spot, err) ||
      !check_write(json_object_get(reply, "write"), spot, err) || !check_chunks(reply, spot, err) ||
      !check_counts(reply, "usage", "{input: 900, output: 20}", spot, err) ||
      !check_cost(json_object_get(reply, "cost"), spot, err) ||
      !check_tools(json_object_get(reply, "tools"), spot, err) ||
      !check_counts(reply, "usage_so_far", "{input: 900, output: 30}", spot, err))
    return false;
  spot->key = NULL;
  if (!json_object_get(reply, "error") && !json_object_get(reply, "chunks") &&
      !json_object_get(reply, "text") && !json_object_get(reply, "structured"))
    return scenario_wrong(spot, err, "the reply is empty: write text, chunks, structured or error");
  return true;
}

static bool check_document(const json_t *doc, struct spot *spot, struct err *err) {
  const char *key;
  json_t *value;
  const json_t *replies = json_object_get(doc, "replies");
  json_object_foreach((json_t *)doc, key, value) {
    spot->key = key;
    spot->is_key = true;
    if (strcmp(key, "replies") != 0)
      return err_set(err, ERR_FILE, "unknown key \"%s\": a scenario has replies:", key);
  }
  *spot = (struct spot){.key = "replies"};
  if (!json_is_array(replies))
    return err_set(err, ERR_FILE, "no replies: begin with \"replies:\" and a list");
  for (size_t i = 0; i < json_array_size(replies); i++) {
    *spot = (struct spot){.reply = i + 1};
    if (!check_reply(json_array_get(replies, i), spot, err))
      return false;
  }
  return true;
}

static const struct yaml_node *scenario_child(const struct yaml_node *map, const char *key,
                                              bool is_key) {
  for (size_t i = 0; key && map->kind == YAML_MAP && i < map->count; i++)
    if (str_eq_c(map->pairs[i].key->text, key))
      return is_key ? map->pairs[i].key : map->pairs[i].value;
  return map;
}

static struct scenario_matcher *read_matchers(const json_t *replies) {
  size_t i;
  json_t *reply;
  struct scenario_matcher *matchers = xcalloc(json_array_size(replies), sizeof *matchers);
  json_array_foreach(replies, i, reply) {
    const json_t *times = json_object_get(reply, "times");
    struct scenario_matcher *m = &matchers[i];
    /* An empty name is that of calls without a movement; without a name any will do. */
    const json_t *movement = json_object_get(reply, "movement");
    *m = (struct scenario_matcher){.movement =
                                       movement ? json_view(movement) : (struct str){NULL, 0},
                                   .contains = json_view_at(reply, "contains"),
                                   .purpose = PURPOSE_COUNT,
                                   .stage = STAGE_COUNT,
                                   .times = times ? json_integer_value(times) : 1};
    (void)call_purpose_from_name(json_view_at(reply, "purpose"), &m->purpose);
    (void)judge_stage_from_name(json_view_at(reply, "stage"), &m->stage);
  }
  return matchers;
}

static bool holds_nul(const json_t *value) {
  const char *key;
  json_t *item;
  size_t i, n;
  if (json_is_string(value))
    return strlen(json_string_value(value)) != json_string_length(value);
  json_array_foreach(value, i, item)
    if (holds_nul(item))
      return true;
  json_object_keylen_foreach((json_t *)value, key, n, item)
    if (strlen(key) != n || holds_nul(item))
      return true;
  return false;
}

/* Reads JSON, which is YAML too, some twenty times as fast; NULL if the text is anything else. */
static json_t *load_json(struct str text) {
  struct str trimmed = str_trim(text);
  struct json_size size = json_size(trimmed, LIMIT_YAML_DEPTH, LIMIT_YAML_NODE_COUNT);
  struct jscan_result r;
  if (trimmed.n == 0 || trimmed.n > LIMIT_SCENARIO_BYTES || trimmed.p[0] != '{' ||
      size.values > LIMIT_YAML_NODE_COUNT || size.depth >= LIMIT_YAML_DEPTH)
    return NULL;
  if (jscan_whole(trimmed, &r) == JSCAN_OK && !r.duplicate_key &&
      !holds_nul(r.value)) /* the other reader names the place */
    return r.value;
  json_decref(r.value);
  return NULL;
}

bool scenario_parse(struct scenario *scenario, const char *path, struct str text, struct err *err) {
  *scenario = (struct scenario){0};
  json_t *doc = load_json(text);
  if (doc == NULL)
    doc = yaml_load(path, text, LIMIT_SCENARIO_BYTES, err);
  if (doc == NULL)
    return false;
  struct spot spot = {0};
  bool ok = check_document(doc, &spot, err);
  if (!ok) {
    /* Puts the place before the text: the file is read once more, with its marks kept. */
    struct arena arena = {0};
    struct err_list none = {0};
    const struct yaml_node *node = yaml_parse(&arena, path, text, LIMIT_SCENARIO_BYTES, &none);
    if (node != NULL && spot.reply > 0) {
      node = scenario_child(node, "replies", false);
      if (node->kind == YAML_LIST && spot.reply <= node->count)
        node = scenario_child(node->items[spot.reply - 1], spot.in, false);
    }
    if (node != NULL)
      node = scenario_child(node, spot.key, spot.is_key);
    struct err told = *err;
    err_set_at(err, told.code, path, node ? node->line : 1, node ? node->column : 1, "%s",
               told.text);
    err_list_deinit(&none);
    arena_deinit(&arena);
  } else {
    scenario->replies = json_incref(json_object_get(doc, "replies"));
    scenario->matchers = read_matchers(scenario->replies);
    sha256_hex(text.p, text.n, NULL, 0, scenario->sha256);
  }
  json_decref(doc);
  return ok;
}

bool scenario_load(struct scenario *scenario, const char *path, struct err *err) {
  buf_auto_t bytes = {0};
  return file_read(path, LIMIT_SCENARIO_BYTES, &bytes, err) &&
         scenario_parse(scenario, path, buf_view(&bytes), err);
}

void scenario_deinit(struct scenario *scenario) {
  json_decref(scenario->replies);
  free(scenario->matchers);
  *scenario = (struct scenario){0};
}

static bool has_uses(const struct scenario_matcher *m, const json_t *uses, size_t index) {
  return m->times == 0 || json_integer_value(json_array_get(uses, index)) < m->times;
}

long scenario_pick(const struct scenario *scenario, const struct call_request *request,
                   const json_t *uses, size_t *used) {
  size_t count = json_array_size(scenario->replies), first = used ? *used : 0;
  long found = -1;
  while (first < count && !has_uses(&scenario->matchers[first], uses, first))
    first++;
  if (used != NULL)
    *used = first;
  for (size_t i = first; i < count && found < 0; i++) {
    const struct scenario_matcher *m = &scenario->matchers[i];
    if ((m->purpose == PURPOSE_COUNT || m->purpose == request->purpose) &&
        (m->stage == STAGE_COUNT || m->stage == request->stage) && has_uses(m, uses, i) &&
        (m->movement.p == NULL || str_eq(m->movement, request->movement)) &&
        (m->contains.n == 0 ||
         memmem(request->prompt.p, request->prompt.n, m->contains.p, m->contains.n) != NULL))
      found = (long)i;
  }
  return found;
}
