/* Digests a log into what a list shows of a session. */
#include "store/summary.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/answer.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "store/heads.h"
#include "store/reader.h"
#include "json/pull.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 16 * 1024, TAIL_BYTES = 8 * 1024, TAIL_WHOLE_BYTES = 1024 * 1024 };

/* --- records --- */

static void summary_keep(char **slot, const char *text) {
  free(*slot);
  *slot = text[0] ? xstrdup(text) : NULL;
}

/* Copies as much as there is room for. */
static void copy_word(char *out, size_t room, const char *text) {
  size_t n = strnlen(text, room - 1);
  memcpy(out, text, n);
  out[n] = '\0';
}

/* True for the few records that matter: a daemon sees all records of all sessions. */
static bool matters(enum record_type type) {
  return type == RECORD_SESSION_START || type == RECORD_SESSION_STOP ||
         type == RECORD_SESSION_RESUME || type == RECORD_SESSION_END || type == RECORD_TURN_START ||
         type == RECORD_QUESTION || type == RECORD_ANSWER;
}

static bool is_time(const char *text) {
  int64_t ms;
  return record_time_parse(text, &ms);
}

static void summary_wait_for(struct summary *b, const char *what, const struct record *record,
                             const char *since) {
  const char *until = record_text_c(record, MEMBER_UNTIL);
  b->wait = xcalloc(1, sizeof *b->wait);
  copy_word(b->wait->what, sizeof b->wait->what, what);
  copy_word(b->wait->message, sizeof b->wait->message, record_text_c(record, MEMBER_MESSAGE));
  copy_word(b->wait->provider, sizeof b->wait->provider, record_text_c(record, MEMBER_PROVIDER));
  copy_word(b->wait->since, sizeof b->wait->since, since);
  copy_word(b->wait->until, sizeof b->wait->until, is_time(until) ? until : "");
}

static void summary_take_outage(struct summary_wait *w, const json_t *outage) {
  const char *since = json_word_at(outage, "since"), *until = json_word_at(outage, "until");
  if (!is_time(since))
    return;
  copy_word(w->provider, sizeof w->provider, json_word_at(outage, "provider"));
  copy_word(w->since, sizeof w->since, since);
  copy_word(w->gives_up, sizeof w->gives_up, is_time(until) ? until : "");
  w->tries = (int)json_integer_value(json_object_get(outage, "tries"));
}

/* Ends the wait, whatever the session has recorded; but the record may begin another wait. */
static void feed_wait(struct summary *b, const struct record *record) {
  char since[sizeof b->updated];
  int64_t now;
  bool told =
      record->type == RECORD_ADMISSION && str_eq_c(record_text(record, MEMBER_ANSWER), "wait");
  memcpy(since, told && b->wait ? b->wait->since : b->updated, sizeof since);
  free(b->wait);
  b->wait = NULL;
  if (told && is_time(since)) {
    summary_wait_for(b, record_text_c(record, MEMBER_REASON), record, since);
    summary_take_outage(b->wait, record_tree(record, MEMBER_OUTAGE));
  } else if (record_get(record, MEMBER_RETRY_IN_MS) != NULL && record_time_parse(since, &now)) {
    summary_wait_for(b, json_word_at(record_tree(record, MEMBER_ERROR), "class"), record, since);
    int64_t ms = record_number(record, MEMBER_RETRY_IN_MS); /* from a file: may be anything */
    record_time(now + (ms > 0 && ms < LIMIT_RESET_WAIT_MS ? ms : 0), b->wait->until);
    summary_take_outage(b->wait, record_tree(record, MEMBER_OUTAGE));
  }
}

/* Its first record says that it is to begin after others. What are no ids (owned) name none that is
 * there. */
static void summary_wait_after(struct summary *b, json_t *ids) {
  size_t i;
  const json_t *id;
  b->after = ids;
  json_array_foreach(ids, i, id) {
    if (json_string_length(id) == 0 || json_string_length(id) >= STORE_ID_BYTES)
      json_array_set_new(ids, i, json_string("none"));
  }
  if (i == 0)
    return;
  b->wait = xcalloc(1, sizeof *b->wait);
  copy_word(b->wait->what, sizeof b->wait->what, "after");
  copy_word(b->wait->since, sizeof b->wait->since, b->started);
}

static void summary_keep_spent(struct summary *b, const struct record *record) {
  json_decref(b->spent);
  b->spent = json_incref((json_t *)record_tree(record, MEMBER_SPENT));
}

/* --- questions --- */

static void summary_drop_question(struct summary *b, json_int_t turn) {
  for (size_t i = json_array_size(b->questions); i-- > 0;) {
    const json_t *item = json_array_get(b->questions, i);
    if (json_integer_value(json_object_get(item, "turn")) == turn)
      json_array_remove(b->questions, i);
  }
}

static void summary_on_question(struct summary *b, const struct record *record) {
  long turn = (long)record_number(record, MEMBER_TURN);
  if (b->questions == NULL)
    b->questions = json_array();
  summary_drop_question(b, turn);
  json_array_append_new(b->questions,
                        core_question_item(record_tree(record, MEMBER_QUESTION), record->seq, turn,
                                           record_text(record, MEMBER_MOVEMENT), record->ts,
                                           record_text(record, MEMBER_UNTIL)));
}

int64_t summary_due_ms(const struct summary *b) {
  int64_t due = 0, ms;
  JSON_EACH(b->questions, i, item) {
    if (record_time_parse(json_word_at(item, "until"), &ms) && (due == 0 || ms < due))
      due = ms;
  }
  return due;
}

bool summary_asks(const struct summary *b, uint64_t question) {
  JSON_EACH(b->questions, i, item) {
    if (json_integer_value(json_object_get(item, "question")) == (json_int_t)question)
      return true;
  }
  return false;
}

static void summary_on_stop(struct summary *b, const struct record *record) {
  struct str reason = record_text(record, MEMBER_REASON), class = record_text(record, MEMBER_CLASS);
  const json_t *list = record_tree(record, MEMBER_QUESTIONS); /* all that there are */
  json_decref(b->questions);
  b->questions = json_is_array(list) ? json_clone_top(list) : NULL;
  b->answered = false;
  copy_word(b->status, sizeof b->status, session_stop_status(reason, class));
  copy_word(b->stop_reason, sizeof b->stop_reason, record_text_c(record, MEMBER_REASON));
  copy_word(b->stop_class, sizeof b->stop_class, record_text_c(record, MEMBER_CLASS));
  copy_word(b->stop_of, sizeof b->stop_of, json_word_at(record_tree(record, MEMBER_BUDGET), "of"));
  summary_keep(&b->stop_provider, record_text_c(record, MEMBER_PROVIDER));
  summary_keep(&b->message, record_text_c(record, MEMBER_MESSAGE));
  summary_keep_spent(b, record);
  if (str_eq_c(class, "crashed")) {
    long turn = (long)record_number(record, MEMBER_TURN);
    b->broken_count = turn == b->broken_turn ? b->broken_count + 1 : 1;
    b->broken_turn = turn;
  }
}

void summary_feed(struct summary *b, const struct record *record) {
  b->seq = record->seq;
  copy_word(b->updated, sizeof b->updated, record->ts.p);
  bool pauses = record->type == RECORD_SESSION_STOP || record->type == RECORD_SESSION_RESUME;
  if (record->type == RECORD_ADMISSION || record->type == RECORD_CALL_END ||
      (b->wait != NULL && !pauses)) /* a call that waited goes on waiting after a resume */
    feed_wait(b, record);
  if (!b->partial && !matters(record->type))
    return;
  long turn = (long)record_number(record, MEMBER_TURN);
  b->turns = turn > b->turns ? turn : b->turns;
  if (record->type == RECORD_SESSION_START) {
    copy_word(b->session, sizeof b->session, record_text_c(record, MEMBER_SESSION));
    copy_word(b->started, sizeof b->started, record->ts.p);
    copy_word(b->status, sizeof b->status, "running");
    summary_keep(&b->workflow, json_word_at(record_tree(record, MEMBER_WORKFLOW), "name"));
    const json_t *config = record_tree(record, MEMBER_CONFIG);
    summary_keep(&b->folder, json_word_at(config, "cwd"));
    summary_keep(&b->user, json_word_at(config, "user"));
    b->submitted = json_is_true(json_object_get(config, "submitted"));
    summary_keep(&b->unique, json_word_at(config, "unique"));
    copy_word(b->not_after, sizeof b->not_after, json_word_at(config, "not_after"));
    b->after_any_end = json_is_true(json_object_get(config, "after_any_end"));
    summary_wait_after(b, json_clone_top(json_object_get(config, "after")));
  } else if (record->type == RECORD_TURN_START) {
    summary_keep(&b->movement, record_text_c(record, MEMBER_MOVEMENT));
  } else if (record->type == RECORD_QUESTION) {
    summary_on_question(b, record);
  } else if (record->type == RECORD_ANSWER) {
    summary_drop_question(b, turn);
    b->answered |= summary_is_stopped(b);
  } else if (record->type == RECORD_SESSION_STOP) {
    summary_on_stop(b, record);
  } else if (record->type == RECORD_SESSION_RESUME) {
    copy_word(b->status, sizeof b->status, "running");
    b->stop_reason[0] = b->stop_class[0] = '\0';
    b->answered = false;
    summary_keep(&b->message, "");
  } else if (record->type == RECORD_SESSION_END) {
    json_decref(b->outputs);
    b->outputs = json_incref((json_t *)record_tree(record, MEMBER_OUTPUTS));
    json_decref(b->methods);
    b->methods = json_incref((json_t *)record_tree(record, MEMBER_METHODS));
    copy_word(b->status, sizeof b->status, record_text_c(record, MEMBER_OUTCOME));
    copy_word(b->basis, sizeof b->basis, record_text_c(record, MEMBER_BASIS));
    b->stop_reason[0] = b->stop_class[0] = '\0';
    json_decref(b->questions);
    b->questions = NULL;
    summary_keep(&b->message, record_text_c(record, MEMBER_MESSAGE));
    summary_keep_spent(b, record);
  }
}

void summary_deinit(struct summary *b) {
  free(b->workflow);
  free(b->folder);
  free(b->user);
  free(b->movement);
  free(b->message);
  free(b->unique);
  free(b->stop_provider);
  free(b->wait);
  json_decref(b->after);
  json_decref(b->spent);
  json_decref(b->outputs);
  json_decref(b->methods);
  json_decref(b->questions);
  *b = (struct summary){0};
}

static void summary_set_text(json_t *object, const char *key, const char *text) {
  json_object_set_new(object, key, text ? json_text(str_from(text)) : json_null());
}

const char *summary_status(const struct summary *b) {
  return b->wait != NULL && strcmp(b->status, "running") == 0 ? "waiting" : b->status;
}

static bool summary_is_to_come(const char *time) {
  int64_t ms;
  return record_time_parse(time, &ms) && ms > clock_real_ms();
}

const char *summary_idle_status(const struct summary *b, bool shared) {
  if (strcmp(b->status, "running") != 0 || summary_waits(b))
    return summary_status(b);
  return shared && b->submitted ? "queued" : "open";
}

/* Says which sessions it waits for. */
static void summary_say_after(const struct summary *b, struct buf *out) {
  size_t i;
  const json_t *id;
  buf_puts(out, b->after_any_end ? "waits for the end of " : "waits until ");
  json_array_foreach((json_t *)b->after, i, id) {
    buf_printf(out, "%s%.40s", i > 0 ? ", " : "", json_string_value(id));
  }
  if (!b->after_any_end)
    buf_puts(out, i > 1 ? " are complete" : " is complete");
}

void summary_say_wait(const struct summary *b, struct buf *out) {
  const struct summary_wait *w = b->wait;
  if (strcmp(w->what, "after") == 0)
    summary_say_after(b, out);
  else if (strcmp(w->what, "concurrency") == 0)
    buf_printf(out, "all places at %s are taken", w->provider);
  else if (strcmp(w->what, "seats") == 0)
    buf_printf(out, "all places at %s that the workers of the store share are taken", w->provider);
  else if (strcmp(w->what, "cooldown") == 0)
    buf_printf(out, "%s asked to be left alone until %s", w->provider, w->until);
  else if (strcmp(w->what, "circuit_open") == 0)
    buf_printf(out, "%s does not answer: asked again %s%s", w->provider,
               w->until[0] ? "at " : "soon", w->until);
  else if (w->tries > 0) /* what others try meanwhile is not in this log */
    buf_printf(out, "%s: %s since %s, next try %s%s, until %s%s", w->provider, w->what, w->since,
               summary_is_to_come(w->until) ? "at " : "soon, by one session for all",
               summary_is_to_come(w->until) ? w->until : "",
               w->gives_up[0] ? w->gives_up : "somebody logs in: segue doctor ",
               w->gives_up[0] ? "" : w->provider);
  else if (w->message[0])
    buf_puts(out, w->message);
  else
    buf_printf(out, "%s: asked again at %s", w->what, w->until);
}

static json_t *wait_json(const struct summary *b) {
  const struct summary_wait *w = b->wait;
  json_t *object = json_object();
  summary_set_text(object, "for", w->what);
  summary_set_text(object, "provider", w->provider[0] ? w->provider : NULL);
  summary_set_text(object, "since", w->since);
  summary_set_text(object, "until", w->until[0] ? w->until : NULL);
  if (w->gives_up[0])
    summary_set_text(object, "gives_up", w->gives_up);
  if (strcmp(w->what, "after") == 0)
    json_object_set(object, "sessions", b->after);
  return object;
}

json_t *summary_json(const struct summary *b, const char *id, const char *log, const char *status,
                     const char *message, size_t position) {
  json_t *object = json_pack("{ss ss ss}", "id", id, "status", status, "origin",
                             b->submitted ? "daemon" : "run");
  summary_set_text(object, "workflow", b->workflow);
  summary_set_text(object, "movement", b->movement);
  if (b->folder != NULL)
    summary_set_text(object, "folder", b->folder);
  if (b->user != NULL)
    summary_set_text(object, "user", b->user);
  bool waits = strcmp(status, "waiting") == 0 && b->wait != NULL;
  buf_auto_t why = {0};
  if (waits)
    summary_say_wait(b, &why);
  summary_set_text(object, "message", waits ? buf_c(&why) : message);
  json_object_set_new(object, "turns", json_integer(b->turns));
  json_object_set_new(object, "seq", json_integer((json_int_t)b->seq));
  summary_set_text(object, "started", b->started);
  summary_set_text(object, "updated", b->updated);
  if (position > 0)
    json_object_set_new(object, "position", json_integer((json_int_t)position));
  if (waits)
    json_object_set_new(object, "waiting", wait_json(b));
  json_object_set(object, "spent", b->spent);
  json_object_set(object, "outputs", b->outputs);
  if (b->basis[0] != '\0')
    summary_set_text(object, "basis", b->basis);
  summary_set_text(object, "log", log);
  return object;
}

bool summary_wanted(const char *filter, const char *status) {
  size_t n = strlen(status);
  for (const char *at = filter; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
    if (strncmp(at, status, n) == 0 && (at[n] == ',' || at[n] == '\0'))
      return true;
  return filter == NULL;
}

bool summary_wants_ended(const char *filter) {
  static const char *const ended[] = {"complete",  "abort",  "rule_no_match", "max_movements",
                                      "cancelled", "failed", "bad",           NULL};
  bool wants = filter == NULL;
  for (size_t i = 0; ended[i]; i++)
    wants = wants || summary_wanted(filter, ended[i]);
  return wants;
}

bool summary_waits_for_login(const struct summary *b) {
  return b->wait != NULL && strcmp(b->wait->what, "auth") == 0;
}

bool summary_waits(const struct summary *b) {
  return b->submitted && b->seq == 1 && json_array_size(b->after) > 0;
}

bool summary_goes_on(const struct summary *b, bool shared) {
  enum { BROKEN_MOST = 3 }; /* then it is the program's own fault */
  bool lost = strcmp(b->stop_class, "crashed") == 0 && b->broken_count < BROKEN_MOST;
  bool stays = shared && summary_is_stopped(b) && !lost && strcmp(b->stop_reason, "shutdown") != 0;
  return b->submitted && !summary_is_over(b) &&
         (b->answered ||
          (!stays && strcmp(b->stop_class, "auth") != 0 && /* somebody has to log in first */
           !session_stop_is_for_person(str_from(b->stop_reason))));
}

bool summary_is_over(const struct summary *b) {
  return strcmp(b->status, "running") != 0 && b->status[0] != '\0' && !summary_is_stopped(b);
}

bool summary_needs_person(const struct summary *b) {
  return summary_is_stopped(b) && !b->answered &&
         !str_among(str_from(b->stop_reason), "interrupted terminated shutdown");
}

bool summary_is_stopped(const struct summary *b) {
  return b->stop_reason[0] != '\0';
}

/* --- logs --- */

static bool read_at(const struct log_reader *r, uint64_t from, size_t n, struct buf *out) {
  buf_clear(out);
  buf_reserve(out, n);
  out->n = n;
  return reader_read_all(r, from, out->p, n);
}

/* Holds all that is needed of a session's first line and of most others: no tree is built from
 * them. */
struct glance {
  struct str ts, type, movement, hash, session, name, folder, user, unique, not_after, after;
  int64_t seq, turn;
  bool submitted, after_any_end;
  bool whole; /* more is needed, or the line is not plain */
};

static bool glance_plain(struct pull *at, struct glance *g, struct str *text) {
  bool ok = pull_text(at, text);
  g->whole = g->whole || !ok || memchr(text->p, '\\', text->n) != NULL;
  return ok;
}

/* Reads the name of a workflow, or from a configuration where and by whom it was begun, whether it
 * was submitted and when it may run. */
static void glance_into(struct pull *at, struct glance *g, struct str key) {
  struct str inner;
  bool workflow = str_eq_c(key, "workflow");
  if (!pull_open(at, '{'))
    return;
  while (pull_key(at, &inner)) {
    if (workflow && str_eq_c(inner, "name"))
      (void)glance_plain(at, g, &g->name);
    else if (!workflow && str_eq_c(inner, "submitted"))
      g->submitted = pull_true(at);
    else if (!workflow && str_eq_c(inner, "cwd"))
      (void)glance_plain(at, g, &g->folder);
    else if (!workflow && str_eq_c(inner, "user"))
      (void)glance_plain(at, g, &g->user);
    else if (!workflow && str_eq_c(inner, "unique"))
      (void)glance_plain(at, g, &g->unique);
    else if (!workflow && str_eq_c(inner, "not_after"))
      (void)glance_plain(at, g, &g->not_after);
    else if (!workflow && str_eq_c(inner, "after"))
      g->after = pull_raw(at);
    else if (!workflow && str_eq_c(inner, "after_any_end"))
      g->after_any_end = pull_true(at);
    else
      pull_skip(at);
  }
}

static void glance_take(struct pull *at, struct glance *g, struct str key) {
  if (str_eq_c(key, "seq"))
    g->whole = !pull_integer(at, &g->seq) || g->whole;
  else if (str_eq_c(key, "turn"))
    g->whole = !pull_integer(at, &g->turn) || g->whole;
  else if (str_eq_c(key, "ts"))
    (void)glance_plain(at, g, &g->ts);
  else if (str_eq_c(key, "type"))
    (void)glance_plain(at, g, &g->type);
  else if (str_eq_c(key, "movement"))
    (void)glance_plain(at, g, &g->movement);
  else if (str_eq_c(key, "hash"))
    (void)glance_plain(at, g, &g->hash);
  else if (str_eq_c(key, "workflow") || str_eq_c(key, "config"))
    glance_into(at, g, key);
  else if (str_eq_c(key, "session"))
    (void)glance_plain(at, g, &g->session);
  else
    pull_skip(at);
  g->whole = g->whole || str_eq_c(key, "retry_in_ms");
}

/* Glances at a line. False: it must be read as a whole. */
static bool glance_at(struct str line, struct glance *g) {
  struct pull at = pull_of(line);
  struct str key;
  *g = (struct glance){0};
  if (pull_open(&at, '{'))
    while (pull_key(&at, &key))
      glance_take(&at, g, key);
  return !at.bad && !g->whole && g->type.n > 0 && g->ts.n > 0 && g->seq > 0 && at.p == at.end;
}

static void summary_copy_text(char *out, size_t room, struct str text) {
  size_t n = text.n < room - 1 ? text.n : room - 1;
  if (n > 0)
    memcpy(out, text.p, n);
  out[n] = '\0';
}

static bool feed_first_whole(struct summary *b, struct str line) {
  json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  struct record_draft d;
  record_read(&d, record);
  bool ok = d.record.type == RECORD_SESSION_START;
  if (ok)
    summary_feed(b, &d.record);
  copy_word(b->hash, sizeof b->hash, json_word_at(record, "hash"));
  record_drop(&d);
  return ok;
}

static bool feed_first(struct summary *b, struct str line) {
  struct glance g;
  if (!glance_at(line, &g) || record_type_named(g.type) != RECORD_SESSION_START || g.name.n == 0)
    return feed_first_whole(b, line);
  b->seq = (uint64_t)g.seq;
  summary_copy_text(b->updated, sizeof b->updated, g.ts);
  summary_copy_text(b->started, sizeof b->started, g.ts);
  summary_copy_text(b->session, sizeof b->session, g.session);
  summary_copy_text(b->hash, sizeof b->hash, g.hash);
  copy_word(b->status, sizeof b->status, "running");
  b->workflow = xstrndup(g.name.p, g.name.n);
  b->folder = g.folder.n > 0 ? xstrndup(g.folder.p, g.folder.n) : NULL;
  b->user = g.user.n > 0 ? xstrndup(g.user.p, g.user.n) : NULL;
  b->submitted = g.submitted;
  b->unique = g.unique.n > 0 ? xstrndup(g.unique.p, g.unique.n) : NULL;
  summary_copy_text(b->not_after, sizeof b->not_after, g.not_after);
  b->after_any_end = g.after_any_end;
  summary_wait_after(b, g.after.n > 0 ? json_loadb(g.after.p, g.after.n, 0, NULL) : NULL);
  return true;
}

/* Feeds the first line, if it is whole. */
static bool feed_head(struct summary *b, const struct log_reader *r, uint64_t size,
                      struct buf *text) {
  size_t have = HEAD_BYTES < size ? HEAD_BYTES : (size_t)size;
  if (!read_at(r, 0, have, text))
    return false;
  const char *nl = memchr(text->p, '\n', text->n);
  uint64_t end = (uint64_t)(nl != NULL ? nl - text->p : 0);
  if (nl == NULL) {
    uint64_t until = size < LIMIT_LOG_LINE_BYTES ? size : LIMIT_LOG_LINE_BYTES;
    end = reader_line_end(r, have, until);
    if (end >= until || !read_at(r, 0, (size_t)end, text))
      return false;
  }
  return feed_first(b, (struct str){text->p, (size_t)end});
}

static bool feed_line_whole(struct summary *b, struct str line) {
  json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  struct record_draft d;
  record_read(&d, record);
  const char *movement = record_text_c(&d.record, MEMBER_MOVEMENT);
  bool names = movement[0] != '\0';
  const char *hash = json_string_value(json_object_get(record, "hash"));
  if (record != NULL)
    summary_feed(b, &d.record);
  copy_word(b->hash, sizeof b->hash, hash ? hash : "");
  if (names)
    summary_keep(&b->movement, movement);
  record_drop(&d);
  return names;
}

static bool feed_line(struct summary *b, struct str line) {
  struct glance g;
  if (!glance_at(line, &g))
    return feed_line_whole(b, line);
  enum record_type type = record_type_named(g.type);
  if ((matters(type) && type != RECORD_TURN_START) || type == RECORD_ADMISSION)
    return feed_line_whole(b, line);
  b->seq = (uint64_t)g.seq;
  b->turns = (long)g.turn > b->turns ? (long)g.turn : b->turns;
  summary_copy_text(b->updated, sizeof b->updated, g.ts);
  summary_copy_text(b->hash, sizeof b->hash, g.hash);
  free(b->wait); /* it records something, so it no longer waits */
  b->wait = NULL;
  if (g.movement.n > 0) {
    free(b->movement);
    b->movement = xstrndup(g.movement.p, g.movement.n);
  }
  return g.movement.n > 0;
}

/* Feeds the whole lines that begin after the line that byte `from` is in, one in memory at a time.
 * Returns true if one names the movement. */
static bool feed_lines(struct summary *b, struct log_reader *r, uint64_t from, uint64_t size) {
  struct str line;
  bool names = false;
  uint64_t end = reader_line_end(r, from, size);
  b->bytes = end < size ? end + 1 : from;
  reader_from(r, end < size ? end + 1 : size);
  while (reader_next(r, &line) && r->whole) {
    names = feed_line(b, line) || names;
    b->bytes = r->offset + line.n + 1;
  }
  return names;
}

/* Feeds the last whole lines; reads more until one names the movement, or all are read. */
static bool feed_tail(struct summary *b, struct log_reader *r, uint64_t size, struct buf *text) {
  b->partial = true;
  for (uint64_t want = TAIL_BYTES;; want *= 8) {
    bool last = want >= LIMIT_LOG_LINE_BYTES;
    if (last)
      want = LIMIT_LOG_LINE_BYTES;
    uint64_t from = want < size ? size - want : 0;
    if (want > TAIL_WHOLE_BYTES) {
      if (feed_lines(b, r, from, size) || from == 0 || last)
        return r->error == 0;
      continue;
    }
    if (!read_at(r, from, (size_t)(size - from), text))
      return false;
    size_t end = text->n;
    while (end > 0 && text->p[end - 1] != '\n')
      end--;
    b->bytes = from + end;
    const char *begin = from == 0 ? text->p : memchr(text->p, '\n', end);
    if (from > 0 && begin != NULL)
      begin++;
    struct str rest = {begin, begin ? (size_t)(text->p + end - begin) : 0};
    bool names = false;
    if (from == 0)
      (void)str_next_line(&rest); /* the first line was already fed */
    while (rest.p != NULL && rest.n > 0)
      names = feed_line(b, str_next_line(&rest)) || names;
    if (from == 0 || names)
      return true;
  }
}

/* Returns when a session was made, from the id in its log's name: milliseconds since 1970. Readers
 * rely on times even in a damaged log. */
static int64_t made_ms(const struct store_ref *ref) {
  unsigned long long high = 0, low = 0;
  char id[STORE_ID_BYTES];
  store_ref_id(ref, id);
  (void)sscanf(id, "%8llx-%4llx-", &high, &low);
  return (int64_t)(high << 16 | low);
}

static void mend_times(struct summary *b, const struct store_ref *ref) {
  if (!is_time(b->started))
    record_time(made_ms(ref), b->started);
  if (!is_time(b->updated))
    copy_word(b->updated, sizeof b->updated, b->started);
}

bool summary_read(struct summary *b, const struct store_ref *ref, struct err *err) {
  struct log_reader r;
  buf_auto_t text = {0};
  *b = (struct summary){0};
  if (!reader_open(&r, ref, err))
    return false;
  uint64_t size = reader_bytes(&r);
  bool ok = feed_head(b, &r, size, &text) && feed_tail(b, &r, size, &text);
  bool has_line = ok || reader_line_end(&r, 0, size) < size;
  reader_close(&r);
  b->partial = false;
  if (ok)
    return mend_times(b, ref), true;
  summary_deinit(b);
  return err_set(err, ERR_NOT_FOUND,
                 has_line ? "%s is not the log of a session" : "%s holds no session yet",
                 ref->name);
}

void summary_look(struct summary *b, const struct store_ref *ref) {
  AUTO(summary_deinit) struct summary whole = {0};
  struct log_reader r;
  struct str line;
  struct err err;
  if (!reader_open(&r, ref, &err))
    return;
  while (reader_next(&r, &line)) {
    struct record_draft d;
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    record_read(&d, record);
    if (record != NULL)
      summary_feed(&whole, &d.record);
    record_drop(&d);
  }
  reader_close(&r);
  json_decref(b->questions);
  b->questions = whole.questions;
  whole.questions = NULL;
}

/* Returns why it is bad, or NULL: nothing whole was ever written. */
static const char *why_unread(const struct log_reader *r, bool begun, const struct heads *heads,
                              const char *id) {
  const struct ledger_entry *last = heads != NULL ? heads_last(heads, id) : NULL;
  if (r->error != 0)
    return "its log cannot be read: segue verify";
  if (begun || r->too_long)
    return "its first record has been changed: segue verify";
  return last != NULL && last->kind != LEDGER_REMOVED ? "its records are gone: segue verify" : NULL;
}

bool summary_unread(struct summary *b, const struct store_ref *ref, const struct heads *heads) {
  char id[STORE_ID_BYTES];
  struct log_reader r = {0};
  struct str line;
  struct err err;
  uint64_t bytes;
  const char *bad = "its log cannot be read: segue verify";
  *b = (struct summary){0};
  store_ref_id(ref, id);
  if (reader_open(&r, ref, &err)) {
    bool begun = reader_next(&r, &line) && r.whole;
    bad = why_unread(&r, begun, heads, id);
    bool owned = reader_is_owned(&r);
    reader_close(&r);
    int64_t age_ms = clock_real_ms() - made_ms(ref);
    bool just_made = age_ms >= 0 && age_ms < LIMIT_START_MOMENT_MS; /* it may not be locked yet */
    if (begun ? summary_read(b, ref, &err) : owned || (bad == NULL && just_made))
      return begun; /* its owner has written meanwhile, or is about to */
  } else if (!store_bytes(ref, &bytes)) {
    return false;
  }
  copy_word(b->status, sizeof b->status, bad != NULL ? "bad" : "empty");
  summary_keep(&b->message, bad != NULL ? bad : "killed before it had begun: segue rm removes it");
  mend_times(b, ref);
  return true;
}
