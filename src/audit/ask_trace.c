/* Gathers from the records of a question the content of its result. */
#include "audit/ask_trace.h"
#include "format/json_object.h"

#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

static json_t *call_entry(const struct ask_trace *t, json_int_t call) {
  char key[32];
  print_into(key, sizeof key, "%lld", (long long)call);
  return json_object_get(t->calls, key);
}

void ask_trace_feed(struct ask_trace *t, const json_t *record) {
  assert(record != NULL);
  const char *type = json_word_at(record, "type");
  if (t->calls == NULL) {
    t->calls = json_object();
    t->checks = json_array();
  }
  if (strcmp(type, "call_start") == 0) {
    const char *purpose = json_word_at(record, "purpose");
    char key[32];
    if (strcmp(purpose, "execute") == 0 || strcmp(purpose, "reask") == 0) {
      print_into(key, sizeof key, "%lld", (long long)json_int_at(record, "call"));
      if (json_object_get(t->calls, key) == NULL)
        json_object_set_new(t->calls, key, json_object());
    }
  } else if (strcmp(type, "call_end") == 0) {
    json_t *entry = call_entry(t, json_int_at(record, "call"));
    const json_t *usage = json_object_get(record, "usage");
    t->tokens += json_int_at(usage, "input") + json_int_at(usage, "output");
    t->duration_ms += json_int_at(record, "duration_ms");
    if (entry != NULL) {
      json_object_set(entry, "text", json_object_get(record, "text"));
      json_object_set(entry, "error", json_object_get(record, "error"));
    }
  } else if (strcmp(type, "check") == 0) {
    static const char *const common[] = {"v", "seq", "ts", "type", "turn", "hash"};
    json_t *body = json_clone_top(record);
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
      json_object_del(body, common[i]);
    json_array_append_new(t->checks, body);
  } else if (strcmp(type, "structured") == 0) {
    json_decref(t->structured);
    t->structured = json_incref((json_t *)record);
  } else if (strcmp(type, "session_stop") == 0 || strcmp(type, "session_end") == 0) {
    json_decref(t->stop);
    t->stop = json_incref((json_t *)record);
  }
}

bool ask_trace_generates(const struct ask_trace *t, long call) {
  return call_entry(t, call) != NULL;
}

void ask_trace_deinit(struct ask_trace *t) {
  json_decref(t->calls);
  json_decref(t->checks);
  json_decref(t->structured);
  json_decref(t->stop);
  *t = (struct ask_trace){0};
}

bool ask_trace_is_of(const json_t *session_start) {
  const json_t *workflow = json_object_get(session_start, "workflow");
  const json_t *movements = json_object_get(workflow, "movements");
  const json_t *movement = json_array_get(movements, 0);
  return json_object_get(session_start, "workflow_path") == NULL && /* a file's has one */
         json_array_size(movements) == 1 && strcmp(json_word_at(workflow, "name"), "ask") == 0 &&
         strcmp(json_word_at(movement, "name"), "ask") == 0 &&
         json_object_get(movement, "structured_output") != NULL;
}

/* --- the result --- */

/* Finds the last answer, or the one that gave the value. */
static const json_t *raw_of(const struct ask_trace *t) {
  const json_t *raw = NULL;
  char wanted[32];
  print_into(wanted, sizeof wanted, "%lld", (long long)json_int_at(t->structured, "call"));
  JSON_MEMBERS(t->calls, key, entry) {
    const json_t *text = json_object_get(entry, "text");
    if (text != NULL && (raw == NULL || strcmp(key, wanted) != 0))
      raw = text;
    if (strcmp(key, wanted) == 0 && text != NULL)
      return text;
  }
  return raw;
}

static const char *outcome_of(const struct ask_trace *t, const struct err *broken) {
  if (t->structured != NULL)
    return json_word_at(t->structured, "outcome");
  return broken != NULL || json_word_at(t->stop, "class")[0] ? "error" : "stopped";
}

static const json_t *ask_trace_text_of(const struct ask_trace *t, const json_t *check) {
  char key[32];
  print_into(key, sizeof key, "%lld", (long long)json_int_at(check, "call"));
  return json_object_get(json_object_get(t->calls, key), "text");
}

json_t *ask_trace_result(const struct ask_trace *t, const struct err *broken) {
  static const char *const copied[] = {"first_pass", "failures", "reason", "message"};
  const json_t *value = json_object_get(t->structured, "value"), *raw = raw_of(t);
  const json_t *last = json_array_get(t->checks, json_array_size(t->checks) - 1);
  bool unchecked = t->structured == NULL && raw != NULL && ask_trace_text_of(t, last) != raw;
  const json_t *errors = unchecked ? NULL : json_object_get(last, "errors");
  json_t *result = json_object();
  json_object_set_new(result, "value", value ? json_incref((json_t *)value) : json_null());
  json_object_set_new(result, "raw", raw ? json_incref((json_t *)raw) : json_null());
  json_object_set_new(result, "attempts", json_integer((json_int_t)json_array_size(t->checks)));
  json_object_set_new(result, "outcome", json_string(outcome_of(t, broken)));
  for (size_t i = 0; i < ARRAY_LEN(copied); i++)
    if (json_object_get(t->structured, copied[i]) != NULL)
      json_object_set(result, copied[i], json_object_get(t->structured, copied[i]));
  if (t->structured == NULL) {
    /* There is neither a value nor a verdict on it: the backend, a signal or the disk is why. */
    json_t *error = json_object();
    const char *class = broken ? "log" : json_word_at(t->stop, "class");
    if (class[0] == '\0')
      class = json_word_at(t->stop, "reason");
    json_object_set_new(error, "class", json_string(class[0] ? class : "stopped"));
    json_object_set_new(
        error, "message",
        json_text(str_from(broken ? broken->text : json_word_at(t->stop, "message"))));
    json_object_set_new(result, "error", error);
  }
  json_object_set_new(result, "errors", errors ? json_incref((json_t *)errors) : json_array());
  /* Each answer is listed with its content and its outcome. */
  json_t *list = json_array();
  JSON_EACH(t->checks, i, check) {
    json_t *item = json_clone_top(check);
    const json_t *text = ask_trace_text_of(t, check);
    json_object_set_new(item, "raw", text ? json_incref((json_t *)text) : json_null());
    json_array_append_new(list, item);
  }
  json_put_true(result, "ambiguous", value && json_is_true(json_at(last, "ambiguous")));
  json_object_set_new(result, "checks", list);
  json_put_count(result, "tokens", t->tokens);
  json_object_set_new(result, "duration_ms", json_integer(t->duration_ms));
  return result;
}

bool ask_trace_has_value(const json_t *result) {
  assert(json_is_object(result));
  const char *outcome = json_string_value(json_object_get(result, "outcome"));
  return outcome && (strcmp(outcome, "value") == 0 || strcmp(outcome, "sentinel") == 0);
}
