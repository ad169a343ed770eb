/* play.h - a session of the pure core played in memory: provider, clock and log are plain data.
 *
 *   play_init(&p, workflow_text, config_text)     both JSON, ' for "
 *   p.reply = ...; p.prepare = ...                else the script: p.script, key -> list of replies
 *   play_start(&p); play_run(&p);                 or event by event
 *   play_deinit(&p); play_over as the group's teardown
 *
 * After every decision: the records, written out and read back, are folded into a second core,
 * which must come to the same state; effects are checked against the log. A key is "movement" for
 * the movement's own call, "movement/reask" for the correction of its value,
 * "movement/check/provider" for an invariant, "movement/stage" for a judge's,
 * "movement/stage/reask" for a correction of that.
 */
#ifndef SEGUE_TESTS_PLAY_H
#define SEGUE_TESTS_PLAY_H

#include "core/apply.h"
#include "core/decide.h"
#include "format/json_object.h"
#include "support/core_out.h"
#include "support/data.h"

#include <stdlib.h>
#include <string.h>

enum { PLAY_PENDING = 64, PLAY_KEY_BYTES = 200, PLAY_RUN_STEPS = 20000 };

/* Things that can be due: a call wants to start, one that waited for its place gets it, a call
 * tells something or ends, was cancelled, a wait is over, git has done what was asked of it, runs
 * of a check or of hidden tests are over: the script's "taken", "ran", "found" (a list, as replies
 * are) and "hidden" say what they show. */
enum play_kind {
  PLAY_ASK,
  PLAY_ADMIT,
  PLAY_CALL,
  PLAY_CANCELLED,
  PLAY_TIMER,
  PLAY_WORKTREE,
  PLAY_RUNS
};

struct play_pending {
  enum play_kind kind;
  long call;
  int64_t due_ms;
  int told; /* pieces of news so far */
};

struct play {
  const char *title; /* in failure messages */
  struct core core, shadow;
  struct workflow *workflow;
  json_t *config, *script;
  bool holds;      /* it writes only its first record when it is started */
  json_t *log;     /* array of texts: the lines */
  json_t *records; /* the same read back */
  struct core_env env;
  struct play_pending pending[PLAY_PENDING];
  size_t pending_count;
  int64_t now_ms;
  unsigned entropy;
  struct buf blob; /* one text that is too long for a line, and its hash */
  char blob_sha256[SHA256_HEX];
  long started, cancelled, finished; /* effects met */
  long worktree_asks;                /* of git */
  bool git_fails;                    /* now and then */
  long prompts_missing;   /* prepare was asked about a call whose prompt is not at hand */
  struct buf last_prompt; /* of the last call that was started and has one */
  /* Fills an empty result; gets the token that prepare gave. */
  void (*reply)(struct play *p, const struct call_request *request, struct call_result *out);
  int64_t (*delay_ms)(struct play *p); /* until a call ends; NULL: 1 */
  /* May it start? NULL: all may. FALLBACK only when somebody is there to take over. */
  enum admission_answer (*admit)(struct play *p, const struct call_request *request,
                                 bool has_fallback);
  /* The k-th thing that a call tells before its end, of what kind; NULL: nothing more. New. */
  json_t *(*news)(struct play *p, const struct call_request *request, int k, const char **kind);
  long granted; /* call whose place is there, while its record is made durable */
  void *ctx;
  /* Set by play_decide for a test that breaks in between: records to keep before effects run. */
  struct core_out out;
};

#define PLAY_ANSWERS .summary = "test", .can_judge = true, .takes_model = true
static const struct capability play_providers[] = {
    {.name = "sim",
     .options = OPTION_ALL,
     .sessions = true,
     .forks = true,
     .structured = "prompt",
     PLAY_ANSWERS},
    {.name = "other", .sessions = true, .structured = "none", PLAY_ANSWERS},
    {.name = "third", .options = OPTION_SEED, .structured = "none", PLAY_ANSWERS},
    {.name = "tooled",
     .options = OPTION_ALL,
     .sessions = true,
     .structured = "tool",
     .judge_effort = "low",
     PLAY_ANSWERS},
    {.name = "command", .summary = "test", .structured = "none"},
    {0},
};

static struct chain_schemas play_schemas; /* compiled once; play_over gives them back */

static inline int play_over(void **state) { /* a group's teardown */
  (void)state;
  chain_schemas_deinit(&play_schemas);
  return 0;
}

/* ---- the state as text
 * ------------------------------------------------------------------------------ */

static inline json_t *play_text(const struct buf *b) {
  return json_stringn_nocheck(buf_c(b), b->n);
}

static inline void play_put(json_t *object, const char *key, const json_t *value) {
  json_object_set_new(object, key, value ? json_incref((json_t *)value) : json_null());
}

static inline json_t *play_dump_call(const struct call *c) {
  json_t *o =
      json_pack("{sI si si si si si si sI sI ss? ss? sI sI so}", "id", (json_int_t)c->id, "attempt",
                c->attempt, "failures", c->failures, "state", (int)c->state, "purpose",
                (int)c->purpose, "stage", (int)c->stage, "class", (int)c->class, "wait_until_ms",
                (json_int_t)c->wait_until_ms, "duration_ms", (json_int_t)c->duration_ms, "provider",
                c->provider, "model", c->model, "timeout_ms", (json_int_t)c->timeout_ms,
                "prompt_seq", (json_int_t)c->prompt_seq, "text", play_text(&c->text));
  json_object_set_new(o, "tokens", json_integer(c->tokens));
  json_object_set_new(o, "invariant", json_integer(c->invariant));
  json_object_set_new(o, "exit", json_integer(c->has_exit ? c->exit : -1));
  json_object_set_new(o, "stderr", play_text(&c->error_text));
  json_object_set_new(o, "vote", json_integer(c->vote));
  json_object_set_new(o, "prompt_sha256", json_string(c->prompt_sha256));
  json_object_set_new(o, "outage", json_integer(c->outage.tries));
  json_object_set_new(o, "away_since", json_integer(c->outage.tries ? c->outage.since_ms : 0));
  play_put(o, "usage", c->usage);
  play_put(o, "options", c->options);
  play_put(o, "wanted", c->wanted);
  play_put(o, "token", c->token);
  play_put(o, "schema", c->schema);
  play_put(o, "structured", c->structured);
  json_object_update_new(o, json_pack("{ss? ss? sb sb sb si}", "provider_session",
                                      c->provider_session, "fallback", c->fallback, "forks",
                                      c->forks, "resumed", c->resumed, "session_lost",
                                      c->session_lost, "events", (int)c->event_count));
  return o;
}

static inline json_t *play_dump_joined(const struct joined *joined) {
  json_t *list = json_array();
  for (size_t i = 0; i < joined->count; i++) {
    json_array_append_new(list, json_integer((json_int_t)joined->joints[i].end));
    json_array_append_new(list, json_integer((json_int_t)joined->joints[i].seq));
  }
  return list;
}

static inline json_t *play_dump_part(const struct group_part *part) {
  json_t *o = json_pack("{si sb ss% so sI sb si sI}", "state", (int)part->state, "failed",
                        part->failed, "label", part->label.p, part->label.n, "text",
                        play_text(&part->text), "text_seq", (json_int_t)part->text_seq, "has_exit",
                        part->has_exit, "exit", part->exit, "turn", (json_int_t)part->turn);
  play_put(o, "structured", part->structured);
  return o;
}

static inline json_t *play_dump_turn(const struct core *core, const struct turn *t) {
  json_t *calls = json_array();
  for (const struct call *c = t->calls; c; c = c->next)
    json_array_append_new(calls, play_dump_call(c));
  json_t *o =
      json_pack("{sI sI sI sI si so so sb si si si ss?}", "id", (json_int_t)t->id, "movement",
                (json_int_t)t->movement, "iteration", (json_int_t)t->iteration,
                "movement_iteration", (json_int_t)t->movement_iteration, "phase", (int)t->phase,
                "calls", calls, "text", play_text(&t->text), "has_exit", t->has_exit, "exit",
                t->exit, "rule", t->rule, "failure", (int)t->failure, "reason", t->reason);
  play_put(o, "files", t->files);
  json_object_set_new(o, "text_seq", json_integer((json_int_t)t->text_seq));
  json_object_set_new(o, "escalated", json_boolean(t->escalated));
  play_put(o, "error", t->error);
  play_put(o, "checks", t->checks);
  play_put(o, "stages", t->stages);
  play_put(o, "structured", t->structured);
  json_object_set_new(o, "group", json_integer(t->group));
  json_object_set_new(o, "joined", play_dump_joined(&t->joined));
  json_t *parts = json_array();
  for (size_t i = 0; t->parts && i < core->workflow->movements[t->movement].child_count; i++)
    json_array_append_new(parts, play_dump_part(&t->parts[i]));
  json_object_set_new(o, "parts", parts);
  return o;
}

static inline json_t *play_dump_worktree(const struct worktree *w) {
  return json_pack("{sI si sb ss? ss? ss? ss? ss? sI sI}", "turn", (json_int_t)w->turn, "asked",
                   (int)w->asked, "made", w->made, "branch", w->branch, "base", w->base, "path",
                   w->path, "folder", w->folder, "message", w->message, "committing",
                   (json_int_t)w->committing, "committed", (json_int_t)w->committed);
}

/* Everything that must come out of the log alike; prompts are not state. */
static inline json_t *play_dump(const struct core *core) {
  json_t *turns = json_array(), *methods = json_array(), *movements = json_array();
  for (const struct turn *t = core->turns; t; t = t->next)
    json_array_append_new(turns, play_dump_turn(core, t));
  for (int i = 0; i < STAGE_COUNT; i++)
    json_array_append_new(methods, json_integer(core->method_counts[i]));
  for (size_t i = 0; core->workflow && i < core->workflow->movement_count; i++)
    json_array_append_new(movements, json_integer(core->movement_counts[i]));
  json_t *o = json_pack("{ss sI si si ss ss si so so so sI sI sb si so sb sI}", "session",
                        core->session, "seq", (json_int_t)core->seq, "status", (int)core->status,
                        "outcome", (int)core->outcome, "stop_reason", buf_c(&core->stop_reason),
                        "stop_message", buf_c(&core->stop_message), "stop_class",
                        (int)core->stop_class, "turns", turns, "methods", methods, "movements",
                        movements, "turn_count", (json_int_t)core->turn_count, "call_count",
                        (json_int_t)core->call_count, "has_next", core->has_next, "next",
                        core->next, "last_text", play_text(&core->last_text), "has_last_text",
                        core->has_last_text, "texts", (json_int_t)core->texts.count);
  json_t *trees = json_array();
  json_array_append_new(trees, play_dump_worktree(&core->worktree));
  for (const struct worktree *w = core->worktrees; w; w = w->next)
    json_array_append_new(trees, play_dump_worktree(w));
  json_object_set_new(o, "worktrees", trees);
  json_object_set_new(o, "edits", json_boolean(core->edits));
  json_object_set_new(o, "ended", json_integer(core->ended.turn));
  play_put(o, "structured", core->structured);
  json_object_set_new(o, "iteration_count", json_integer(core->iteration_count));
  json_object_set_new(o, "last_joined", play_dump_joined(&core->last_joined));
  json_object_set_new(o, "last_text_seq", json_integer((json_int_t)core->last_text_seq));
  play_put(o, "token_counts", core->token_counts);
  play_put(o, "sessions", core->sessions);
  play_put(o, "schemas", core->schemas);
  play_put(o, "config", core->config);
  play_put(o, "reached", core->reached);
  json_object_set_new(o, "error", play_text(&core->error.text));
  return o;
}

static inline void play_same(const struct play *p, const struct core *a, const struct core *b,
                             const char *what) {
  json_auto_t *left = play_dump(a), *right = play_dump(b);
  if (!json_equal(left, right)) {
    char *l = json_dumps(left, JSON_SORT_KEYS | JSON_INDENT(1));
    char *r = json_dumps(right, JSON_SORT_KEYS | JSON_INDENT(1));
    size_t i = 0;
    while (l[i] && l[i] == r[i])
      i++;
    size_t from = i > 200 ? i - 200 : 0;
    fail_msg("%s: %s: the states differ:\n%.400s\n--- and\n%.400s", p->title, what, l + from,
             r + from);
  }
}

/* ---- the log
 * ---------------------------------------------------------------------------------------- */

static inline bool play_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct play *p = ctx;
  if (strcmp(sha256, p->blob_sha256) != 0)
    return err_set(err, ERR_NOT_FOUND, "no such blob");
  buf_append(out, p->blob.p, p->blob.n);
  return true;
}

/* Borrowed. */
static inline json_t *play_record(const struct play *p, size_t i) {
  return json_array_get(p->records, i);
}

static inline size_t play_lines(const struct play *p) {
  return json_array_size(p->log);
}

static inline void play_fold(struct play *p, struct core *core, size_t from) {
  const struct core_source source = {.ctx = p, .blob = play_blob};
  for (size_t i = from; i < play_lines(p); i++) {
    struct err err = {0};
    if (!core_apply_json(core, play_record(p, i), NULL, &source, &err))
      fail_msg("%s: the log does not fold: %s", p->title, err.text);
  }
}

static inline void play_write(struct play *p, const struct core_out *out, size_t keep) {
  for (size_t i = 0; i < out->record_count && i < keep; i++) {
    buf_auto_t line = {0};
    record_write(out->records[i], &line);
    json_t *back = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    assert_non_null(back);
    json_array_append_new(p->log, json_stringn(line.p, line.n));
    json_array_append_new(p->records, back);
  }
}

/* The k-th record of a type (0-based, from the end when negative), NULL when there is none.
 * Borrowed. */
static inline const json_t *play_find(const struct play *p, const char *type, int k) {
  size_t n = play_lines(p);
  for (size_t i = 0; i < n; i++) {
    const json_t *record = play_record(p, k < 0 ? n - 1 - i : i);
    bool same = str_eq_c(data_get(record, "type"), type);
    if (same && (k < 0 ? ++k == 0 : k-- == 0))
      return record;
  }
  return NULL;
}

/* Where that record is, from 0 on. */
static inline size_t play_index(const struct play *p, const char *type, int k) {
  const json_t *record = play_find(p, type, k);
  if (record == NULL)
    fail_msg("%s: no such record: %s", p->title, type);
  return (size_t)json_integer_value(json_object_get(record, "seq")) - 1;
}

static inline int play_count(const struct play *p, const char *type) {
  int n = 0;
  for (size_t i = 0; i < play_lines(p); i++)
    n += str_eq_c(data_get(play_record(p, i), "type"), type);
  return n;
}

static inline void play_fold_to(const struct play *p, struct core *core, size_t n) {
  struct err err = {0};
  core_init(core);
  for (size_t i = 0; i < n; i++)
    if (!core_apply_json(core, play_record(p, i), NULL, NULL, &err))
      fail_msg("%s: record %zu: %s", p->title, i + 1, err.text);
}

/* Behind those before it, the record `at` with these members changed (null: taken away) is refused
 * for that reason. */
static inline void play_refuses(const struct play *p, size_t at, const char *changes,
                                const char *error) {
  json_t *record = json_deep_copy(play_record(p, at)), *other = data_json(changes);
  AUTO(core_deinit) struct core core;
  struct err err = {0};
  JSON_MEMBERS(other, key, v) {
    if (json_is_null(v))
      json_object_del(record, key);
    else
      json_object_set(record, key, v);
  }
  play_fold_to(p, &core, at);
  bool ok = core_apply_json(&core, record, NULL, NULL, &err);
  if (ok || strstr(err.text, error) == NULL)
    fail_msg("%s: record %zu %s: %s", p->title, at + 1, changes, ok ? "taken" : err.text);
  assert_true(err.code == ERR_CORRUPT || at == 0);
  json_decref(record);
  json_decref(other);
}

/* "turn_start call_start ..." from record `from` on (0-based). Owned by the caller. */
static inline char *play_types(const struct play *p, size_t from) {
  struct buf b = {0};
  for (size_t i = from; i < play_lines(p); i++) {
    const json_t *record = play_record(p, i);
    buf_printf(&b, "%s%s", b.n ? " " : "", json_string_value(json_object_get(record, "type")));
  }
  return buf_take(&b);
}

/* ---- the provider
 * ----------------------------------------------------------------------------------- */

static inline void play_key(const struct call_request *r, char key[PLAY_KEY_BYTES]) {
  int n = snprintf(key, PLAY_KEY_BYTES, "%.*s", (int)r->movement.n, r->movement.p);
  if (r->stage != STAGE_COUNT)
    n += snprintf(key + n, (size_t)(PLAY_KEY_BYTES - n), "/%s", judge_stage_name(r->stage));
  if (r->purpose == PURPOSE_REASK)
    print_into(key + n, (size_t)(PLAY_KEY_BYTES - n), "/reask");
  if (r->purpose == PURPOSE_CHECK)
    print_into(key + n, (size_t)(PLAY_KEY_BYTES - n), "/check/%.*s", (int)r->provider.n,
               r->provider.p);
}

/* Which reply: [key, how many replies of this key were used before]. */
static inline json_t *play_prepare(void *ctx, const struct call_request *request,
                                   const json_t *token_counts, const unsigned char entropy[16]) {
  struct play *p = ctx;
  char key[PLAY_KEY_BYTES];
  json_int_t n = 0;
  (void)entropy;
  play_key(request, key);
  if (request->prompt.n == 0)
    p->prompts_missing++;
  (void)token_counts; /* replies are used up whichever provider took them */
  JSON_MEMBERS(p->core.token_counts, provider, counts)
    JSON_MEMBERS(counts, used, count) {
      json_auto_t *token = json_loads(used, JSON_DECODE_ANY, NULL);
      if (str_eq_c(data_str(json_array_get(token, 0)), key))
        n += json_integer_value(count);
    }
  return json_pack("[sI]", key, n);
}

static inline void play_set_text(struct play *p, struct text *text, struct str s) {
  buf_append(&text->bytes, s.p, s.n);
  if (!text_needs_blob(s))
    return;
  sha256_hex(s.p, s.n, NULL, 0, text->blob);
  memcpy(p->blob_sha256, text->blob, sizeof p->blob_sha256);
  buf_clear(&p->blob);
  buf_append(&p->blob, s.p, s.n);
}

/* A reply as scripts have it: a text, or {"text", "structured", "error", "message",
 * "retry_after_ms", "exit", "session", "tokens", "ms", "stderr", "files", "more"}. */
static inline void play_fill(struct play *p, const json_t *reply, struct call_result *out) {
  const char *class = json_string_value(json_object_get(reply, "error"));
  const json_t *exit_status = json_object_get(reply, "exit");
  play_set_text(p, &out->text, json_is_string(reply) ? data_str(reply) : data_get(reply, "text"));
  out->structured = json_incref(json_object_get(reply, "structured"));
  out->files = json_incref(json_object_get(reply, "files"));
  out->files_more = (size_t)json_integer_value(json_object_get(reply, "more"));
  const char *unknown = json_string_value(json_object_get(reply, "files_unknown"));
  print_into(out->files_unknown, sizeof out->files_unknown, "%s", unknown ? unknown : "");
  struct str session = data_get(reply, "session");
  print_into(out->provider_session, sizeof out->provider_session, STR_FMT, STR_ARG(session));
  out->has_exit = exit_status != NULL;
  out->exit = (int)json_integer_value(exit_status);
  out->duration_ms = 3 + json_integer_value(json_object_get(reply, "ms"));
  if (json_object_get(reply, "tokens") != NULL)
    out->usage = json_pack("{sO}", "output", json_object_get(reply, "tokens"));
  if (json_object_get(reply, "stderr") != NULL)
    play_set_text(p, &out->error_text, data_get(reply, "stderr"));
  if (class == NULL)
    return;
  if (!error_class_from_name(str_from(class), &out->class))
    fail_msg("no error class %s", class);
  print_into(out->message, sizeof out->message, STR_FMT, STR_ARG(data_get(reply, "message")));
  out->retry_after_ms = json_integer_value(json_object_get(reply, "retry_after_ms"));
}

/* An answer that ends in a tag is signed, as its question asks. */
static inline void play_sign(const struct call_request *request, struct call_result *out) {
  struct str text = buf_view(&out->text.bytes);
  if (request->mark.n > 0 && text.n > 3 && text.p[text.n - 1] == ']' &&
      str_is_digit(text.p[text.n - 2]))
    buf_printf(&out->text.bytes, " " STR_FMT, STR_ARG(request->mark));
}

/* The list's last reply stands for all after it. */
static inline void play_scripted(struct play *p, const struct call_request *request,
                                 struct call_result *out) {
  const char *key = json_string_value(json_array_get(request->token, 0));
  size_t n = (size_t)json_integer_value(json_array_get(request->token, 1));
  const json_t *list = json_object_get(p->script, key), *reply = list;
  const char *again = request->stage != STAGE_COUNT ? strstr(key, "/reask") : NULL;
  if (list == NULL && again != NULL) /* it says the same again */
    reply = list = json_object_getn(p->script, key, (size_t)(again - key));
  if (list == NULL)
    fail_msg("%s: a call %s that no reply is written for", p->title, key);
  if (json_is_array(list)) {
    assert_true(json_array_size(list) > 0);
    reply = json_array_get(list, n < json_array_size(list) ? n : json_array_size(list) - 1);
  }
  play_fill(p, reply, out);
}

/* ---- a session
 * --------------------------------------------------------------------------------------- */

static inline void play_init(struct play *p, const char *title, const char *workflow,
                             const char *config, const char *script) {
  struct err err = {0};
  *p = (struct play){.title = title,
                     .log = json_array(),
                     .records = json_array(),
                     .now_ms = 1795132800000,
                     .reply = play_scripted,
                     .config = data_json(config ? config : "{'default_provider':'sim'}"),
                     .script = data_json(script ? script : "{}")};
  json_auto_t *doc = data_json(workflow);
  p->workflow = workflow_build(doc, &err);
  if (p->workflow == NULL)
    fail_msg("%s: %s", title, err.text);
  if (play_schemas.judgment == NULL && !chain_schemas_init(&play_schemas, &err))
    fail_msg("%s", err.text);
  p->env = (struct core_env){
      .providers = play_providers, .schemas = &play_schemas, .prepare = play_prepare, .ctx = p};
  core_init(&p->core);
  core_init(&p->shadow);
}

static inline void play_deinit(struct play *p) {
  core_out_deinit(&p->out);
  core_deinit(&p->core);
  core_deinit(&p->shadow);
  workflow_unref(p->workflow);
  json_decref(p->config);
  json_decref(p->script);
  json_decref(p->log);
  json_decref(p->records);
  buf_deinit(&p->blob);
  buf_deinit(&p->last_prompt);
}

static inline struct event play_event(struct play *p, enum event_kind kind) {
  struct event ev = {.kind = kind, .time_ms = p->now_ms};
  for (size_t i = 0; i < sizeof ev.entropy; i++)
    ev.entropy[i] = (unsigned char)((p->entropy * 2654435761u) >> (i % 4 * 8));
  p->entropy++;
  return ev;
}

/* The call_start that an effect carries out must be in the log, and not be ended. */
static inline void play_check_start(const struct play *p, long call, int attempt) {
  bool open = false;
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *record = play_record(p, i);
    if (json_integer_value(json_object_get(record, "call")) == call &&
        json_integer_value(json_object_get(record, "attempt")) == attempt)
      open = !str_eq_c(data_get(record, "type"), "call_end");
  }
  if (!open)
    fail_msg("%s: call %ld is started without its record", p->title, call);
}

/* The text at a place like "12#/workflow/movements/0/persona". */
static inline struct str play_place(const struct play *p, const char *place) {
  char *at, name[64];
  const json_t *value = play_record(p, (size_t)strtoull(place, &at, 10) - 1), *holder = NULL;
  while (value && *at == (holder ? '/' : '#')) {
    at += holder ? 1 : 2;
    print_into(name, sizeof name, "%.*s", (int)strcspn(at, "/"), at);
    at += strcspn(at, "/");
    holder = value;
    if (json_is_array(holder))
      value = json_array_get(holder, strtoul(name, NULL, 10));
    else
      value = json_object_get(holder, name);
  }
  if (!json_is_string(value))
    fail_msg("%s: no text at %s", p->title, place);
  print_into(name + strlen(name), sizeof name - strlen(name), "_blob");
  return json_object_get(holder, name) ? buf_view(&p->blob) : data_str(value);
}

static inline void play_recall(const struct play *p, const struct call *call, struct buf *out) {
  const json_t *record = play_record(p, (size_t)call->prompt_seq - 1);
  JSON_EACH(json_object_get(record, "prompt"), i, part) {
    const char *place = json_string_value(json_object_get(part, "ref"));
    buf_str(out, place ? play_place(p, place) : data_str(part));
  }
}

/* The log's account of a prompt is, byte by byte, what is sent. */
static inline void play_check_prompt(const struct play *p, const struct call *call) {
  buf_auto_t whole = {0};
  play_recall(p, call, &whole);
  if (!str_eq(buf_view(&whole), buf_view(&call->prompt)))
    fail_msg("%s: the log tells another prompt of call %ld:\n%s\n--- sent:\n%s", p->title, call->id,
             buf_c(&whole), buf_c(&call->prompt));
}

static inline struct play_pending *play_pend(struct play *p, enum play_kind kind, long call,
                                             int64_t delay_ms) {
  assert_true(p->pending_count < PLAY_PENDING);
  struct play_pending *pending = &p->pending[p->pending_count++];
  *pending = (struct play_pending){kind, call, p->now_ms + (delay_ms > 0 ? delay_ms : 0), 0};
  return pending;
}

static inline int64_t play_delay(struct play *p) {
  return p->delay_ms ? p->delay_ms(p) : 1;
}

static inline void play_drop(struct play *p, size_t i) {
  for (p->pending_count--; i < p->pending_count; i++)
    p->pending[i] = p->pending[i + 1];
}

static inline void play_effects(struct play *p) {
  for (size_t i = 0; i < p->out.effect_count; i++) {
    const struct effect *e = &p->out.effects[i];
    struct turn *turn;
    struct call *call;
    switch (e->kind) {
    case EFFECT_START_CALL:
      call = core_call(&p->core, e->call, &turn);
      assert_non_null(call);
      play_check_start(p, e->call, call->attempt);
      play_check_prompt(p, call);
      if (call->prompt.n > 0) {
        buf_clear(&p->last_prompt);
        buf_append(&p->last_prompt, call->prompt.p, call->prompt.n);
      }
      if (p->admit != NULL && p->granted != e->call) {
        (void)play_pend(p, PLAY_ASK, e->call, 0);
        break;
      }
      p->granted = 0;
      p->started++;
      (void)play_pend(p, PLAY_CALL, e->call, play_delay(p));
      break;
    case EFFECT_TIMER:
      (void)play_pend(p, PLAY_TIMER, e->call, e->delay_ms);
      break;
    case EFFECT_STEER:    /* the script cannot be told */
    case EFFECT_END_CALL: /* its answer comes first, as it may */
      break;
    case EFFECT_CANCEL_CALL:
      p->cancelled++;
      for (size_t k = p->pending_count; k-- > 0;)
        if (p->pending[k].call == e->call)
          play_drop(p, k);
      (void)play_pend(p, PLAY_CANCELLED, e->call, 1);
      break;
    case EFFECT_WORKTREE: /* numbers below 0 are no call's */
      assert_true(core_worktree(&p->core, e->call)->asked != WORKTREE_IDLE);
      (void)play_pend(p, PLAY_WORKTREE, -1 - e->call, 1);
      break;
    case EFFECT_HIDDEN: /* starts nothing if they run already */
      for (size_t k = 0; k < p->pending_count; k++)
        if (p->pending[k].kind == PLAY_RUNS)
          p->pending[k--] = p->pending[--p->pending_count];
      play_pend(p, PLAY_RUNS, -1, 1)->told = 1;
      break;
    case EFFECT_EVIDENCE: /* numbers below 0 are no call's */
      (void)play_pend(p, PLAY_RUNS, -1 - e->call, 1);
      break;
    case EFFECT_REPORTS: /* files are the host's */
      break;
    case EFFECT_FINISHED:
      p->finished++;
      p->pending_count = 0; /* the host disarms what still waits */
      p->granted = 0;
      assert_true(p->core.status == SESSION_STOPPED || p->core.status == SESSION_ENDED);
      break;
    }
  }
  core_out_deinit(&p->out);
}

/* Takes the decision's records into the log, checks the fold, runs the effects. */
static inline void play_commit(struct play *p) {
  size_t from = play_lines(p);
  play_write(p, &p->out, SIZE_MAX);
  play_fold(p, &p->shadow, from);
  play_same(p, &p->core, &p->shadow, "live and folded");
  play_effects(p);
}

static inline void play_decide_start(struct play *p) {
  AUTO(text_deinit) struct text task = {0};
  struct event ev = play_event(p, EVENT_RESUME);
  buf_puts(&task.bytes,
           "Mend the queue so that every test passes, and say what was wrong with it.");
  struct core_params params = {.session = "01990000-0000-7000-8000-000000000001",
                               .workflow = p->workflow,
                               .task = &task,
                               .config = p->config,
                               .hold = p->holds};
  core_start(&p->core, &params, &ev, &p->env, &p->out);
}

static inline void play_start(struct play *p) {
  play_decide_start(p);
  play_commit(p);
}

static inline void play_decide(struct play *p, const struct event *ev) {
  core_decide(&p->core, ev, &p->env, &p->out);
}

static inline void play_send(struct play *p, enum event_kind kind, const char *reason,
                             const char *message) {
  struct event ev = play_event(p, kind);
  ev.reason = reason;
  ev.message = message;
  play_decide(p, &ev);
  play_commit(p);
}

/* git answers: each third time it fails, where the test wants that. */
static inline void play_decide_worktree(struct play *p, long turn) {
  const struct worktree *w = core_worktree(&p->core, turn);
  struct event ev = play_event(p, EVENT_WORKTREE);
  json_t *data = json_pack("{ss ss}", "commit", "c0ffee", "head", "c0ffee");
  if (w->asked == WORKTREE_MAKING) {
    json_decref(data);
    data = json_pack("{ss ss ss ss}", "branch", w->branch, "base", "c0ffee", "path", "/trees/own",
                     "folder", "/trees/own/sub");
  }
  ev.call = turn;
  ev.news = data;
  p->worktree_asks++;
  if (p->git_fails && p->worktree_asks % 3 == 1)
    ev.message = "git would not";
  play_decide(p, &ev);
  json_decref(data);
}

/* Tells what runs showed, as the script has it: of a list, what this session has not had yet. */
static inline void play_decide_runs(struct play *p, long turn, bool hidden) {
  struct event ev = play_event(p, hidden ? EVENT_HIDDEN : EVENT_EVIDENCE);
  const char *key = p->core.evidence.run > 0 ? "ran" : "taken";
  size_t had = 0;
  for (size_t i = 0; i < play_lines(p); i++)
    had += str_eq_c(data_get(play_record(p, i), "event"), "found");
  if (hidden)
    key = "hidden";
  else if (turn > 0)
    key = "found";
  const json_t *list = json_object_get(p->script, key);
  size_t last = json_array_size(list) > 0 ? json_array_size(list) - 1 : 0;
  had = had < last ? had : last;
  const json_t *said = json_is_array(list) ? json_array_get(list, had) : list;
  json_auto_t *news = said ? json_deep_copy(said) : json_object();
  ev.call = turn;
  ev.news = news;
  play_decide(p, &ev);
}

/* Decides on the pending thing that is due first; play_commit is the caller's. */
static inline void play_decide_next(struct play *p) {
  size_t first = 0;
  assert_true(p->pending_count > 0);
  for (size_t i = 1; i < p->pending_count; i++)
    if (p->pending[i].due_ms < p->pending[first].due_ms)
      first = i;
  struct play_pending due = p->pending[first];
  play_drop(p, first);
  if (due.due_ms > p->now_ms)
    p->now_ms = due.due_ms;
  if (due.kind == PLAY_WORKTREE) {
    play_decide_worktree(p, -1 - due.call);
    return;
  }
  if (due.kind == PLAY_RUNS) {
    play_decide_runs(p, -1 - due.call, due.told > 0);
    return;
  }
  struct event ev = play_event(p, EVENT_TIMER);
  AUTO(call_result_deinit) struct call_result result = {0};
  json_auto_t *news = NULL;
  struct turn *turn = NULL;
  struct call *call = core_call(&p->core, due.call, &turn);
  struct call_request request;
  ev.call = due.call;
  if (call == NULL) { /* its turn ended while it waited: the host tells it nevertheless */
    ev.kind = EVENT_TIMER;
    play_decide(p, &ev);
    return;
  }
  core_request(&p->core, turn, call, &request);
  if (due.kind == PLAY_ASK) {
    ev.kind = EVENT_ADMISSION;
    ev.admission = p->admit(p, &request, core_next_backend(&p->core, turn, call).n > 0);
    ev.reason = ev.admission == ADMISSION_FALLBACK ? "cooldown" : "concurrency";
    if (ev.admission == ADMISSION_WAIT)
      (void)play_pend(p, PLAY_ADMIT, due.call, play_delay(p));
  } else if (due.kind == PLAY_ADMIT) {
    ev.kind = EVENT_ADMISSION;
    ev.admission = ADMISSION_ADMITTED;
    p->granted = due.call;
  } else if (due.kind == PLAY_CALL) {
    ev.kind = EVENT_CALL_NEWS;
    news = p->news ? p->news(p, &request, due.told, &ev.news_kind) : NULL;
    ev.news = news;
    if (news != NULL)
      play_pend(p, PLAY_CALL, due.call, 1)->told = due.told + 1;
  }
  if (due.kind == PLAY_CANCELLED) {
    ev.kind = EVENT_CALL_END;
    call_result_fail(&result, CLASS_CANCELLED, "cancelled");
    ev.result = &result;
  }
  if (due.kind == PLAY_CALL && news == NULL) {
    ev.kind = EVENT_CALL_END;
    p->reply(p, &request, &result);
    play_sign(&request, &result);
    ev.result = &result;
  }
  if (due.kind == PLAY_ASK && ev.admission == ADMISSION_ADMITTED) { /* no record is made of that */
    p->started++;
    (void)play_pend(p, PLAY_CALL, due.call, play_delay(p));
    p->out = (struct core_out){0};
  } else {
    play_decide(p, &ev);
  }
}

static inline void play_step(struct play *p) {
  play_decide_next(p);
  play_commit(p);
}

/* Until nothing is pending. */
static inline void play_run(struct play *p) {
  for (int i = 0; p->pending_count > 0; i++) {
    if (i == PLAY_RUN_STEPS)
      fail_msg("%s: it goes on for ever", p->title);
    play_step(p);
  }
}

static inline void play_to_end(struct play *p) {
  play_start(p);
  play_run(p);
}

static inline void play_all(struct play *p, const char *title, const char *workflow,
                            const char *config, const char *script) {
  play_init(p, title, workflow, config, script);
  play_to_end(p);
}

static inline void play_send_and_run(struct play *p, enum event_kind kind, const char *reason,
                                     const char *message) {
  play_send(p, kind, reason, message);
  play_run(p);
}

/* The process dies: of the decision that waits to be written, `keep` records reach the disk and no
 * effect runs. A new core folds the log, and the host reads the prompts of open calls back. The
 * caller sends EVENT_RESUME (or starts anew when the log is empty). */
static inline void play_crash(struct play *p, size_t keep) {
  play_write(p, &p->out, keep);
  core_out_deinit(&p->out);
  p->pending_count = 0;
  p->granted = 0;
  core_deinit(&p->core);
  core_deinit(&p->shadow);
  core_init(&p->core);
  core_init(&p->shadow);
  play_fold(p, &p->core, 0);
  play_fold(p, &p->shadow, 0);
  for (struct turn *t = p->core.turns; t; t = t->next) /* prepare may look at them */
    for (struct call *c = t->calls; c; c = c->next)
      if (c->state != CALL_DONE)
        play_recall(p, c, &c->prompt);
}

#endif
