/* Reads the answer to a question from its session's log. */
#include "daemon/question.h"

#include "audit/ask_told.h"
#include "daemon/server.h"
#include "format/json_write.h"
#include "store/reader.h"

#include <string.h>

/* This gathers what the session's log says. */
struct question_told {
  json_t *judgment, *stop; /* the last of each, or NULL */
  struct ask_told ask;
};

static bool question_is(const json_t *record, const char *type) {
  const char *found = json_string_value(json_object_get(record, "type"));
  return found != NULL && strcmp(found, type) == 0;
}

static void question_keep(json_t **slot, json_t *record) {
  json_decref(*slot);
  *slot = json_incref(record);
}

static bool read_told(const struct daemon_entry *e, struct question_told *told, struct err *err) {
  struct store_ref ref;
  struct log_reader r;
  struct str line;
  entry_ref(e, &ref);
  if (!reader_open(&r, &ref, err))
    return false;
  while (reader_next(&r, &line) && r.whole) {
    json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (record != NULL)
      ask_told_feed(&told->ask, record);
    if (question_is(record, "judgment"))
      question_keep(&told->judgment, record);
    else if (question_is(record, "session_stop") || question_is(record, "session_end"))
      question_keep(&told->stop, record);
    json_decref(record);
  }
  reader_close(&r);
  return true;
}

/* Nothing was answered: whoever was asked is away, or the session was stopped. */
static void question_stop(struct server_request *r, const struct daemon_entry *e,
                          const json_t *stop) {
  const char *message = json_string_value(json_object_get(stop, "message"));
  const char *reason = json_string_value(json_object_get(stop, "reason"));
  json_t *members = json_pack("{ss ss*}", "session", e->id, "reason", reason);
  server_problem(r, 502, members, "%s: %s", reason ? reason : e->brief.status,
                 message ? message : "there is no answer");
}

void question_reply(struct server_request *r, const struct daemon_entry *e, bool judges) {
  struct question_told told = {0};
  struct err err = {0};
  if (!read_told(e, &told, &err)) {
    server_problem(r, 500, NULL, "%s", err.text);
  } else if (judges && told.judgment != NULL) {
    server_reply_json(r, 200, json_pack("{ss sO}", "session", e->id, "judgment", told.judgment));
  } else if (!judges && told.ask.structured != NULL) {
    json_t *result = ask_told_result(&told.ask, NULL);
    json_object_set_new(result, "session", json_string(e->id));
    server_reply_json(r, 200, result);
  } else {
    question_stop(r, e, told.stop);
  }
  json_decref(told.judgment);
  json_decref(told.stop);
  ask_told_deinit(&told.ask);
}
