/* Makes the notices that a person's program receives. */
#include "store/notification.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "core/budget.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <string.h>

const char *const notification_events[] = {"question", "stop",  "stall",  "limit", "budget",
                                           "end",      "start", "report", NULL};

/* Holds a notice in the making: its object and its lines. */
struct notification_draft {
  const struct summary *summary;
  json_t *object;
  struct buf title, text;
};

static void notification_begin(struct notification_draft *d, const struct summary *b,
                               const char *event, const char *ts) {
  *d = (struct notification_draft){.summary = b, .object = json_object()};
  d->title.max = LIMIT_NOTICE_TITLE_BYTES;
  d->text.max = LIMIT_NOTICE_TEXT_BYTES;
  json_put(d->object, "v", json_integer(1));
  json_put(d->object, "event", json_string(event));
  json_put(d->object, "time", json_text(str_from(ts)));
  if (b == NULL)
    return;
  json_put(d->object, "session", json_text(str_from(b->session)));
  if (b->workflow != NULL)
    json_put(d->object, "workflow", json_text(str_from(b->workflow)));
  if (b->movement != NULL)
    json_put(d->object, "movement", json_text(str_from(b->movement)));
  json_put(d->object, "status", json_text(str_from(summary_status(b))));
  buf_puts(&d->title, "segue: ");
  buf_safe(&d->title, str_from(b->workflow ? b->workflow : "a session"), false);
}

static json_t *notification_cut(struct buf *text) {
  text->n = utf8_floor(text->p ? text->p : "", text->n);
  json_t *value = json_text(str_trim(buf_view(text)));
  buf_deinit(text);
  return value;
}

/* Ends a notice. part: another thing of the record that gets its own notice, or "". */
static json_t *notification_end(struct notification_draft *d, uint64_t seq, const char *part) {
  buf_auto_t id = {0};
  if (d->summary != NULL) {
    buf_printf(&id, "%s:%llu%s", d->summary->session, (unsigned long long)seq, part);
    json_put(d->object, "id", json_text(buf_view(&id)));
  }
  json_put(d->object, "title", notification_cut(&d->title));
  json_put(d->object, "text", notification_cut(&d->text));
  return d->object;
}

static void notification_line(struct notification_draft *d, const char *before, struct str text) {
  if (text.n == 0)
    return;
  buf_puts(&d->text, before);
  buf_safe(&d->text, text, true);
  buf_putc(&d->text, '\n');
}

static void notification_put_spent(struct notification_draft *d) {
  const json_t *spent = d->summary->spent, *cost = json_at(spent, "cost_usd");
  json_int_t calls = json_integer_value(json_at(spent, "calls"));
  if (spent == NULL)
    return;
  json_put(d->object, "spent", json_incref((json_t *)spent));
  if (calls > 0)
    buf_printf(&d->text, "%" JSON_INTEGER_FORMAT " call%s", calls, calls == 1 ? "" : "s");
  if (calls > 0 && json_is_number(cost))
    buf_printf(&d->text, ", $%.4f", json_number_value(cost));
  if (calls > 0)
    buf_putc(&d->text, '\n');
}

/* --- questions --- */

static json_t *of_question(const struct summary *b, const struct record *record) {
  struct notification_draft d;
  json_int_t turn = (json_int_t)record_number(record, MEMBER_TURN);
  const json_t *item = NULL;
  for (size_t k = 0; k < json_array_size(b->questions) && item == NULL; k++)
    if (json_integer_value(json_at(json_array_get(b->questions, k), "turn")) == turn)
      item = json_array_get(b->questions, k);
  struct str movement = json_view(json_at(item, "movement")), until;
  bool approves = str_eq_c(json_view(json_at(item, "kind")), "approve");
  if (item == NULL)
    return NULL;
  notification_begin(&d, b, "question", record->ts.p);
  json_put(d.object, "movement", json_text(movement));
  json_put(d.object, "question", json_clone(item));
  buf_puts(&d.title, approves ? " asks for approval: " : " asks: ");
  buf_safe(&d.title, movement, false);
  notification_line(&d, "", json_view(json_at(item, "text")));
  JSON_EACH(json_at(item, "choices"), i, choice) {
    buf_printf(&d.text, "  %zu ", i + 1);
    notification_line(&d, "", json_view(choice));
  }
  until = json_view(json_at(item, "until"));
  notification_line(&d, "until ", until);
  buf_printf(&d.text, "segue %s %s ", approves ? "approve" : "answer", b->session);
  notification_line(&d, "", movement);
  return notification_end(&d, record->seq, "");
}

/* --- stops and ends --- */

static json_t *of_stop(const struct summary *b, const struct record *record) {
  const char *reason = record_text_c(record, MEMBER_REASON);
  bool budget = strcmp(reason, "budget") == 0;
  struct notification_draft d;
  notification_begin(&d, b, budget ? "budget" : "stop", record->ts.p);
  json_put(d.object, "reason", json_text(str_from(reason)));
  if (budget && record_tree(record, MEMBER_BUDGET) != NULL)
    json_put(d.object, "budget", json_incref(record_tree(record, MEMBER_BUDGET)));
  buf_puts(&d.title, " stopped: ");
  buf_safe(&d.title, str_from(reason), false);
  notification_line(&d, "", record_text(record, MEMBER_MESSAGE));
  notification_put_spent(&d);
  if (str_eq_c(record_text(record, MEMBER_CLASS), "auth")) {
    json_put(d.object, "provider", json_text(record_text(record, MEMBER_PROVIDER)));
    notification_line(&d, "log in: segue doctor ", record_text(record, MEMBER_PROVIDER));
  }
  buf_printf(&d.text, "segue resume %s\n", b->session);
  return notification_end(&d, record->seq, "");
}

static json_t *of_end(const struct summary *b, const struct record *record) {
  struct notification_draft d;
  notification_begin(&d, b, "end", record->ts.p);
  json_put(d.object, "outcome", json_text(str_from(b->status)));
  buf_puts(&d.title, strcmp(b->status, "complete") == 0 ? " is " : " ended: ");
  buf_safe(&d.title, str_from(b->status), false);
  notification_line(&d, "", record_text(record, MEMBER_MESSAGE));
  notification_put_spent(&d);
  buf_printf(&d.text, "segue show %s\n", b->session);
  return notification_end(&d, record->seq, "");
}

/* --- waits and budgets --- */

static json_t *of_wait(const struct summary *b, const struct record *record) {
  struct notification_draft d;
  const char *until = b->wait->gives_up[0] ? b->wait->gives_up : b->wait->until;
  notification_begin(&d, b, "limit", record->ts.p);
  json_put(d.object, "reason", json_text(str_from(b->wait->what)));
  if (b->wait->provider[0])
    json_put(d.object, "provider", json_text(str_from(b->wait->provider)));
  json_put(d.object, "until", json_text(str_from(until)));
  buf_puts(&d.title, " waits for ");
  buf_safe(&d.title, str_from(b->wait->provider[0] ? b->wait->provider : "its provider"), false);
  buf_printf(&d.text, "until %s: ", until);
  notification_line(&d, "", str_from(b->wait->what));
  if (b->wait->tries > 0)
    buf_printf(&d.text, "since %s, next try %s\n", b->wait->since, b->wait->until);
  notification_line(&d, "", str_from(b->wait->message));
  return notification_end(&d, record->seq, ":wait");
}

static bool waits_long(const struct summary *b, const struct record *record) {
  int64_t now, until;
  bool may = record->type == RECORD_ADMISSION || record->type == RECORD_CALL_END;
  if (may && b->wait != NULL && b->wait->tries > 0) /* once, not before each attempt */
    return b->wait->tries == LIMIT_NOTICE_OUTAGE && record->type == RECORD_CALL_END &&
           b->wait->gives_up[0] != '\0';
  return may && b->wait != NULL && record_time_parse(record->ts.p, &now) &&
         record_time_parse(b->wait->until, &until) && until - now >= LIMIT_NOTICE_LONG_MS;
}

static json_t *of_budget(const struct summary *b, const struct record *record, const json_t *note) {
  struct notification_draft d;
  buf_auto_t line = {0};
  notification_begin(&d, b, "budget", record->ts.p);
  json_put(d.object, "budget", json_incref((json_t *)note));
  budget_note_tell(note, &line);
  buf_puts(&d.title, ", four fifths of a budget are used");
  notification_line(&d, "", buf_view(&line));
  return notification_end(&d, record->seq, ":budget");
}

void notification_of(const struct summary *b, const struct record *record, json_t *list) {
  json_t *notification = NULL;
  /* Such a stop was reported already, will continue by itself, or was done by the person to
   * notify. */
  bool known =
      record->type == RECORD_SESSION_STOP &&
      str_among(record_text(record, MEMBER_REASON), "question escalated shutdown interrupted");
  if (record->type == RECORD_QUESTION)
    notification = of_question(b, record);
  else if (record->type == RECORD_SESSION_STOP && !known)
    notification = of_stop(b, record);
  else if (record->type == RECORD_SESSION_END)
    notification = of_end(b, record);
  else if (waits_long(b, record))
    notification = of_wait(b, record);
  json_array_append_new(list, notification);
  if (record->type != RECORD_SESSION_STOP) {
    const json_t *notes = record_tree(record, MEMBER_BUDGET);
    JSON_EACH(notes, i, note) {
      if (str_eq_c(json_view(json_at(note, "level")), "soft"))
        json_array_append_new(list, of_budget(b, record, note));
    }
  }
}

/* --- without a record --- */

json_t *notification_stall(const struct summary *b, uint64_t silent_ms, int64_t now_ms) {
  struct notification_draft d;
  char now[RECORD_TIME_BYTES];
  unsigned long long minutes = (silent_ms + 30000) / 60000;
  record_time(now_ms, now);
  notification_begin(&d, b, "stall", now);
  json_put(d.object, "silent_ms", json_integer((json_int_t)silent_ms));
  buf_puts(&d.title, " is silent");
  buf_printf(&d.text, "nothing was heard for %llu %s of ",
             minutes > 0 ? minutes : (unsigned long long)silent_ms,
             minutes > 0 ? "minutes" : "milliseconds");
  notification_line(&d, "", str_from(b->movement ? b->movement : "its movement"));
  buf_printf(&d.text, "segue show %s --follow\nsegue cancel %s\n", b->session, b->session);
  return notification_end(&d, b->seq, ":stall");
}

json_t *notification_ready(long waiting, int pid, int64_t now_ms) {
  struct notification_draft d;
  buf_auto_t id = {0};
  char now[RECORD_TIME_BYTES];
  record_time(now_ms, now);
  notification_begin(&d, NULL, "start", now);
  buf_printf(&id, "start:%d:%s", pid, now);
  json_put(d.object, "id", json_text(buf_view(&id)));
  json_put(d.object, "waiting", json_integer(waiting));
  buf_puts(&d.title, "segue serve is ready");
  buf_printf(&d.text, "%ld session%s go%s on\n", waiting, waiting == 1 ? "" : "s",
             waiting == 1 ? "es" : "");
  return notification_end(&d, 0, "");
}

json_t *notification_report(struct str title, struct str text, int64_t now_ms) {
  struct notification_draft d;
  char now[RECORD_TIME_BYTES];
  record_time(now_ms, now);
  notification_begin(&d, NULL, "report", now);
  buf_auto_t id = buf_of("report:%s", now);
  json_put(d.object, "id", json_text(buf_view(&id)));
  buf_str(&d.title, title);
  buf_safe(&d.text, text, true);
  return notification_end(&d, 0, "");
}
