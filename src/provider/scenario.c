#include "provider/scenario.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_size.h"
#include "format/yaml.h"
#include "structured/jscan.h"

#include <stdlib.h>
#include <string.h>

static const char *const reply_keys[] = {
    "movement", "purpose", "stage",  "contains",         "times", "text", "structured", "error",
    "delay_ms", "write",   "chunks", "provider_session", NULL};

static bool known(const char *key) {
  for (size_t i = 0; reply_keys[i]; i++)
    if (strcmp(key, reply_keys[i]) == 0)
      return true;
  return false;
}

static bool is_word(const json_t *reply, const char *key) {
  const json_t *value = json_object_get(reply, key);
  return value == NULL || json_is_string(value);
}

static bool is_count(const json_t *reply, const char *key) {
  const json_t *value = json_object_get(reply, key);
  return value == NULL || (json_is_integer(value) && json_integer_value(value) >= 0 &&
                           json_integer_value(value) <= 1000000000);
}

static bool check_reply(const json_t *reply, size_t number, const char *path, struct err *err) {
  const char *key, *what = NULL;
  json_t *value;
  enum call_purpose purpose;
  enum judge_stage stage;
  enum error_class class;
  if (!json_is_object(reply))
    return err_set(err, ERR_FILE, "%s: reply %zu is not a map: write keys such as text:", path,
                   number);
  json_object_foreach((json_t *)reply, key, value) {
    if (!known(key)) {
      const char *near = str_nearest(str_from(key), reply_keys);
      return err_set(err, ERR_FILE, "%s: reply %zu: unknown key \"%s\"%s%s%s", path, number, key,
                     near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
  }
  const char *words[] = {"movement", "purpose", "stage", "contains", "text", "provider_session"};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (!is_word(reply, words[i]))
      what = words[i];
  if (what)
    return err_set(err, ERR_FILE, "%s: reply %zu: %s must be a text: put it in quotes", path,
                   number, what);
  if (!is_count(reply, "times") || !is_count(reply, "delay_ms"))
    return err_set(err, ERR_FILE,
                   "%s: reply %zu: times and delay_ms must be whole numbers, 0 or more", path,
                   number);
  const char *name = json_string_value(json_object_get(reply, "purpose"));
  if (name && !call_purpose_from_name(str_from(name), &purpose))
    return err_set(err, ERR_FILE,
                   "%s: reply %zu: purpose \"%s\" is unknown: use execute, judge, reask or check",
                   path, number, name);
  name = json_string_value(json_object_get(reply, "stage"));
  if (name && !judge_stage_from_name(str_from(name), &stage))
    return err_set(
        err, ERR_FILE,
        "%s: reply %zu: stage \"%s\" is unknown: use structured_output, phase3_tag or ai_judge",
        path, number, name);
  const json_t *error = json_object_get(reply, "error");
  name = json_string_value(json_object_get(error, "class"));
  if (error && (!name || !error_class_from_name(str_from(name), &class)))
    return err_set(err, ERR_FILE,
                   "%s: reply %zu: error.class must be one of auth, quota, rate_limit, overloaded, "
                   "network, timeout, refused, length, bad_request, not_found, crashed, protocol, "
                   "cancelled",
                   path, number);
  if (error && !is_count(error, "retry_after_ms"))
    return err_set(err, ERR_FILE, "%s: reply %zu: error.retry_after_ms must be a whole number",
                   path, number);
  const json_t *write = json_object_get(reply, "write");
  if (write && !json_is_object(write))
    return err_set(err, ERR_FILE, "%s: reply %zu: write must be a map of path: content", path,
                   number);
  json_object_foreach((json_t *)write, key, value) {
    if (!json_is_string(value))
      return err_set(err, ERR_FILE, "%s: reply %zu: the content of %s must be a text", path, number,
                     key);
  }
  const json_t *chunks = json_object_get(reply, "chunks");
  bool texts = chunks == NULL || json_is_array(chunks);
  size_t i;
  json_array_foreach(chunks, i, value) texts = texts && json_is_string(value);
  if (!texts || (chunks && json_object_get(reply, "text")))
    return err_set(err, ERR_FILE, "%s: reply %zu: chunks must be a list of texts, instead of text",
                   path, number);
  if (!error && !chunks && !json_object_get(reply, "text") && !json_object_get(reply, "structured"))
    return err_set(err, ERR_FILE,
                   "%s: reply %zu: nothing is replied: write text, chunks, structured or error",
                   path, number);
  return true;
}

static struct str member(const json_t *reply, const char *key) {
  const json_t *value = json_object_get(reply, key);
  return (struct str){json_string_value(value), json_string_length(value)};
}

static struct scenario_matcher *read_matchers(const json_t *replies) {
  size_t i;
  json_t *reply;
  struct scenario_matcher *matchers = xcalloc(json_array_size(replies), sizeof *matchers);
  json_array_foreach(replies, i, reply) {
    const json_t *times = json_object_get(reply, "times");
    struct scenario_matcher *m = &matchers[i];
    *m = (struct scenario_matcher){.movement = member(reply, "movement"),
                                   .contains = member(reply, "contains"),
                                   .purpose = PURPOSE_COUNT,
                                   .stage = STAGE_COUNT,
                                   .times = times ? json_integer_value(times) : 1};
    (void)call_purpose_from_name(member(reply, "purpose"), &m->purpose);
    (void)judge_stage_from_name(member(reply, "stage"), &m->stage);
  }
  return matchers;
}

static bool holds_nul(const json_t *value) {
  const char *key;
  json_t *item;
  size_t i, n;
  if (json_is_string(value))
    return strlen(json_string_value(value)) != json_string_length(value);
  json_array_foreach(value, i, item) {
    if (holds_nul(item))
      return true;
  }
  json_object_keylen_foreach((json_t *)value, key, n, item) {
    if (strlen(key) != n || holds_nul(item))
      return true;
  }
  return false;
}

/* JSON, which is YAML too, some twenty times as fast; NULL when it is not that and nothing but that. */
static json_t *load_json(struct str text) {
  struct str trimmed = str_trim(text);
  struct json_size size = json_size(trimmed, LIMIT_YAML_DEPTH, LIMIT_YAML_NODE_COUNT);
  struct jscan js;
  struct jscan_result r;
  if (trimmed.n == 0 || trimmed.n > LIMIT_SCENARIO_BYTES || trimmed.p[0] != '{' ||
      size.values > LIMIT_YAML_NODE_COUNT || size.depth >= LIMIT_YAML_DEPTH)
    return NULL;
  jscan_init(&js, trimmed.p, trimmed.n);
  bool ok = jscan_value(&js, 0, &r) == JSCAN_OK && r.end == trimmed.n && !r.duplicate_key &&
            !holds_nul(r.value); /* the other reader names the place */
  jscan_deinit(&js);
  if (ok)
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
  const char *key;
  json_t *value;
  json_object_foreach(doc, key, value) {
    if (strcmp(key, "replies") != 0) {
      (void)err_set(err, ERR_FILE, "%s: unknown key \"%s\": a scenario has replies:", path, key);
      json_decref(doc);
      return false;
    }
  }
  json_t *replies = json_object_get(doc, "replies");
  bool ok = json_is_array(replies);
  if (!ok)
    (void)err_set(err, ERR_FILE, "%s: no replies: begin with \"replies:\" and a list", path);
  for (size_t i = 0; ok && i < json_array_size(replies); i++)
    ok = check_reply(json_array_get(replies, i), i + 1, path, err);
  if (ok) {
    scenario->replies = json_incref(replies);
    scenario->matchers = read_matchers(replies);
    sha256_hex(text.p, text.n, NULL, 0, scenario->sha256);
  }
  json_decref(doc);
  return ok;
}

bool scenario_load(struct scenario *scenario, const char *path, struct err *err) {
  struct buf bytes = {0};
  bool ok = file_read(path, LIMIT_SCENARIO_BYTES, &bytes, err) &&
            scenario_parse(scenario, path, buf_view(&bytes), err);
  buf_deinit(&bytes);
  return ok;
}

void scenario_deinit(struct scenario *scenario) {
  json_decref(scenario->replies);
  free(scenario->matchers);
  *scenario = (struct scenario){0};
}

static bool fits(const struct scenario_matcher *m, const struct call_request *request) {
  return (m->movement.p == NULL || str_eq(m->movement, request->movement)) &&
         (m->contains.p == NULL ||
          memmem(request->prompt.p, request->prompt.n, m->contains.p, m->contains.n) != NULL);
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
        fits(m, request))
      found = (long)i;
  }
  return found;
}
