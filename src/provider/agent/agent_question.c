/* Keeps what an agent asked and tells it with the answer. */
#include "provider/agent/agent_question.h"

#include "base/limits.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <string.h>

static void question_tell(struct driver *d, struct str tool, struct str title, bool allowed,
                          struct str reason) {
  struct buf message = {.max = LIMIT_ERROR_TEXT_BYTES};
  buf_str(&message, title);
  if (!allowed && reason.n > 0) {
    buf_puts(&message, message.n > 0 ? ": " : "");
    buf_str(&message, reason);
  }
  stream_permission(d, tool, allowed, buf_view(&message));
  buf_deinit(&message);
}

static void question_drop(struct questions *q, size_t i) {
  json_decref(q->open[i].id);
  json_decref(q->open[i].what);
  q->count--;
  memmove(&q->open[i], &q->open[i + 1], (q->count - i) * sizeof q->open[0]);
}

static void tell_open(struct questions *q, size_t i, bool allowed) {
  const json_t *what = q->open[i].what;
  question_tell(q->d, json_view_at(what, "tool"), json_view_at(what, "title"), allowed,
                json_view_at(what, "reason"));
  question_drop(q, i);
}

void question_ask(struct questions *q, const json_t *id, const struct question *question) {
  if (!q->recorded) {
    question_tell(q->d, question->tool, question->title, question->allowed,
                  str_from(question->reason));
    return;
  }
  if (q->count == ARRAY_LEN(q->open))
    tell_open(q, 0, json_is_true(json_object_get(q->open[0].what, "allowed")));
  q->open[q->count].id = json_incref((json_t *)id);
  q->open[q->count++].what =
      json_pack("{s:o, s:o, s:s, s:b}", "tool", json_text(question->tool), "title",
                json_text(question->title), "reason", question->reason ? question->reason : "",
                "allowed", question->allowed);
}

void question_answered(struct questions *q, const json_t *id, bool allowed) {
  for (size_t i = 0; i < q->count; i++)
    if (json_same(q->open[i].id, id)) {
      tell_open(q, i, allowed);
      return;
    }
}

void question_end(struct questions *q) {
  while (q->count > 0)
    tell_open(q, 0, json_is_true(json_object_get(q->open[0].what, "allowed")));
}

void questions_deinit(struct questions *q) {
  while (q->count > 0)
    question_drop(q, q->count - 1);
}
