/* audit_log.h - logs for tests, made by the core itself: what the core can write is what they hold.
 *
 *   drive_init(&d); drive_start(&d, workflow, task); drive_answer(&d, "..."), ...
 *   drive_write(&d) -> d.path; drive_deinit(&d)      in a folder of its own, removed at the end
 * Time goes on by 10 ms an event; random bytes are always the same. */
#ifndef SEGUE_TESTS_AUDIT_LOG_H
#define SEGUE_TESTS_AUDIT_LOG_H

#include "base/log.h"
#include "core/decide.h"
#include "format/json_write.h"
#include "store/record_line.h"
#include "store/store.h"
#include "support/core_out.h"
#include "support/folder.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVE_SESSION "01a1fb00-0000-7000-8000-000000000001"

struct drive {
  struct core core;
  struct chain_schemas schemas;
  struct core_env env;
  struct event ev;
  struct buf log;
  char hash[SHA256_HEX];
  json_t *records; /* as they were appended, without hash */
  char *dir, path[160];
};

static const struct capability drive_providers[] = {
    {.name = "script",
     .options = OPTION_ALL,
     .structured = "none",
     .can_judge = true,
     .takes_model = true},
    {.name = "command", .structured = "none"},
    {0},
};

static json_t *drive_prepare(void *ctx, const struct call_request *request,
                             const json_t *token_counts, const unsigned char entropy[16]) {
  (void)ctx;
  (void)token_counts;
  (void)entropy;
  return str_eq_c(request->provider, "script") ? json_integer(request->call) : NULL;
}

static inline void drive_init(struct drive *d) {
  struct err err;
  *d = (struct drive){.ev = {.time_ms = 1800000000000}};
  core_init(&d->core);
  assert_true(chain_schemas_init(&d->schemas, &err));
  d->env = (struct core_env){
      .providers = drive_providers, .schemas = &d->schemas, .prepare = drive_prepare};
  d->records = json_array();
  memcpy(d->hash, record_line_first_hash, SHA256_HEX);
  for (size_t i = 0; i < sizeof d->ev.entropy; i++)
    d->ev.entropy[i] = (unsigned char)(i * 17);
  d->dir = folder_make();
  print_into(d->path, sizeof d->path, "%s/%s.ndjson", d->dir, DRIVE_SESSION);
}

static inline void drive_take(struct drive *d, struct core_out *out) {
  for (size_t i = 0; i < out->record_count; i++) {
    record_line_compose(out->records[i], &d->log, d->hash);
    json_array_append_new(d->records, record_json(out->records[i]));
  }
  core_out_deinit(out);
}

static inline void drive_event(struct drive *d, struct event ev) {
  struct core_out out;
  ev.time_ms = d->ev.time_ms += 10;
  memcpy(ev.entropy, d->ev.entropy, sizeof ev.entropy);
  core_decide(&d->core, &ev, &d->env, &out);
  drive_take(d, &out);
}

static inline void drive_start(struct drive *d, const char *workflow, const char *task,
                               json_t *config) {
  struct err err;
  struct core_out out;
  AUTO(text_deinit) struct text text = {0};
  json_error_t where;
  json_auto_t *doc = json_loads(workflow, 0, &where);
  if (doc == NULL)
    fail_msg("%s", where.text);
  struct workflow *wf = workflow_build(doc, &err);
  if (wf == NULL)
    fail_msg("%s", err.text);
  buf_puts(&text.bytes, task);
  const struct core_params params = {.session = DRIVE_SESSION,
                                     .workflow = wf,
                                     .workflow_path = "flow.yaml",
                                     .task = &text,
                                     .config = config};
  core_start(&d->core, &params, &d->ev, &d->env, &out);
  drive_take(d, &out);
  workflow_unref(wf);
  json_decref(config);
}

/* The call that runs: the tests have one at a time. */
static inline long drive_running(const struct drive *d) {
  for (const struct turn *t = d->core.turns; t; t = t->next)
    for (const struct call *c = t->calls; c; c = c->next)
      if (c->state == CALL_RUNNING)
        return c->id;
  fail_msg("no call runs");
  return 0;
}

/* Takes the result. */
static inline void drive_result(struct drive *d, struct call_result *result) {
  struct event ev = {.kind = EVENT_CALL_END, .call = drive_running(d), .result = result};
  if (result->duration_ms == 0)
    result->duration_ms = 7;
  drive_event(d, ev);
  call_result_deinit(result);
}

static inline void drive_answer(struct drive *d, const char *text) {
  struct call_result result = {0};
  buf_puts(&result.text.bytes, text);
  drive_result(d, &result);
}

static inline void drive_exit(struct drive *d, int status, const char *text) {
  struct call_result result = {.has_exit = true, .exit = status};
  buf_puts(&result.text.bytes, text);
  drive_result(d, &result);
}

static inline void drive_error(struct drive *d, enum error_class class, const char *message) {
  struct call_result result = {.class = class};
  print_into(result.message, sizeof result.message, "%s", message);
  drive_result(d, &result);
}

/* After an error in passing: the wait of the call is over. */
static inline void drive_retry(struct drive *d) {
  for (const struct turn *t = d->core.turns; t; t = t->next)
    for (const struct call *c = t->calls; c; c = c->next)
      if (c->state == CALL_WAITING) {
        drive_event(d, (struct event){.kind = EVENT_TIMER, .call = c->id});
        return;
      }
  fail_msg("no call waits");
}

/* Any object as a line of a log. */
static inline void drive_line(const json_t *record, struct buf *out, char hash[SHA256_HEX]) {
  size_t start = out->n;
  json_write(record, out);
  record_line_close(out, start, hash);
}

static inline void drive_write(struct drive *d) {
  folder_write(d->path, buf_view(&d->log));
}

static inline void drive_deinit(struct drive *d) {
  core_deinit(&d->core);
  chain_schemas_deinit(&d->schemas);
  buf_deinit(&d->log);
  json_decref(d->records);
  folder_remove(d->dir);
}

/* ---- a session with everything in it
 * ------------------------------------------------------------------ */

static const char drive_workflow[] =
    "{\"name\":\"review-loop\",\"initial_movement\":\"check\",\"max_movements\":20,\"provider\":"
    "\"script\","
    "\"judge\":{\"max_reasks\":1},\"movements\":["
    "{\"name\":\"check\",\"command\":[\"make\",\"check\"],\"rules\":["
    "  {\"condition\":\"when(exit != 0)\",\"next\":\"ABORT\"},"
    "  {\"condition\":\"when(exit == 0)\",\"next\":\"review\"}]},"
    "{\"name\":\"review\",\"model\":\"small\",\"options\":{\"temperature\":0.5},"
    " \"persona\":\"You are a careful reviewer of small C programs.\",\"rules\":["
    "  {\"condition\":\"approved\",\"next\":\"COMPLETE\"},"
    "  {\"condition\":\"needs fix\",\"next\":\"fix\",\"appendix\":\"Say what is wrong.\"},"
    "  {\"condition\":\"ask a person\",\"next\":\"ABORT\",\"interactive_only\":true}]},"
    "{\"name\":\"fix\",\"edit\":true,\"rules\":["
    "  "
    "{\"condition\":\"fixed\",\"next\":\"review\"},{\"condition\":\"stuck\",\"next\":\"ABORT\"}]}]"
    "}";

static inline json_t *drive_config(void) {
  return json_pack("{ss sb ss s{ss ss} s{ss} s[s] s{sf}}", "cwd", "/somewhere", "interactive", 0,
                   "default_provider", "script", "scenario", "path", "replies.yaml", "sha256",
                   record_line_first_hash, "providers", "fix", "script", "env", "PATH", "options",
                   "temperature", 0.25);
}

/* review: an invalid value, a correction that names a hidden rule, a call that fails in passing, a
 * quoted tag, and at last a judge that is read. */
static inline void drive_first_review(struct drive *d) {
  drive_answer(d, "The test says `[REVIEW:1]`, but one case fails.\n\033[31mred\033[0m \xE2\x80\xAE"
                  "done\n");
  drive_answer(d, "{\"reason\": \"it fails\", \"step\": \"two\"}");
  drive_answer(d, "{\"reason\": \"ask\", \"step\": 3}");
  drive_error(d, CLASS_OVERLOADED, "try later");
  drive_retry(d);
  drive_answer(d, "I would fix it.");
  drive_answer(d, "I would fix it, as I said.");
  drive_answer(d, "```json\n{\"reason\": \"a case fails\", "
                  "\"matched_index\": 2}\n```\n");
}

/* fix: an answer that is not UTF-8, changed files, tokens; then a tag where a value was asked for.
 */
static inline void drive_fix(struct drive *d) {
  struct store store;
  struct err err;
  struct call_result result = {.has_exit = false, .duration_ms = 90, .dropped_bytes = 5};
  store_at(&store, d->dir);
  buf_append(&result.text.bytes, "fixed \xff it\n", 11);
  assert_true(store_blob_put(&store, buf_view(&result.text.bytes), result.text.blob, &err));
  buf_append(&result.error_text.bytes, "warn \xfe\n", 7);
  assert_true(
      store_blob_put(&store, buf_view(&result.error_text.bytes), result.error_text.blob, &err));
  result.files = json_pack("[{ss si si}]", "path", "a.c", "added", 1, "removed", 2);
  result.usage = json_pack("{si si si}", "input", 10, "output", 20, "cached", 5);
  print_into(result.provider_session, sizeof result.provider_session, "conv-1");
  print_into(result.note, sizeof result.note, "pipes held open");
  drive_result(d, &result);
  drive_answer(d, "**[FIX:1]**");
}

/* review again: the judge is not logged in, the session stops; resumed, it answers natively. */
static inline void drive_second_review(struct drive *d) {
  drive_answer(d, "All is well.");
  drive_error(d, CLASS_AUTH, "not logged in");
  assert_int_equal(d->core.status, SESSION_STOPPED);
  drive_event(d, (struct event){.kind = EVENT_RESUME, .reason = "user"});
  struct call_result result = {
      .structured = json_pack("{ss si}", "reason", "tests pass", "step", 1), .enforced = "native"};
  buf_puts(&result.text.bytes, "{\"reason\":\"tests pass\",\"step\":1}");
  drive_result(d, &result);
}

static inline void drive_everything(struct drive *d) {
  drive_init(d);
  drive_start(d, drive_workflow, "Mend the queue.\nIt loses its oldest item when it is full.",
              drive_config());
  drive_exit(d, 0, "5 of 5 pass\n");
  drive_first_review(d);
  drive_fix(d);
  drive_second_review(d);
  assert_int_equal(d->core.status, SESSION_ENDED);
}

#endif
