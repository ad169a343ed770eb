/* The loop between a model and a value, case by case: tests/data/reask, whose README.md says what a
 * case holds. And every ready schema with its samples. */
#include "base/memory.h"
#include "base/resource.h"
#include "format/json_object.h"
#include "structured/reask.h"
#include "support/cases.h"
#include "support/test.h"
#include "workflow/schemas.h"
#include "json/scan.h"

#include <stdlib.h>
#include <string.h>

enum { REPLIES_MAX = 16, STEPS_MAX = 100 };

/* --- one case --- */

struct world {
  const json_t *c;
  json_t *schema;
  struct reask_spec spec;
  struct reask_reply replies[REPLIES_MAX];
  struct reask_run runs[REPLIES_MAX];
  size_t reply_count, run_count;
  json_t *checks, *run_errors;
  struct buf steps;
};

static void add_word(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_word(struct world *w, const char *fmt, ...) {
  char word[120];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(word, sizeof word, fmt, ap);
  va_end(ap);
  buf_printf(&w->steps, "%s%s", w->steps.n ? ", " : "", word);
}

static bool set_up(struct world *w, const json_t *c) {
  const json_t *schema = json_object_get(c, "schema");
  const json_t *reasks = json_object_get(c, "max_reasks");
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  *w = (struct world){.c = c, .checks = json_array(), .run_errors = json_array()};
  w->schema =
      json_is_string(schema) ? preset_schema(data_str(schema)) : json_incref((json_t *)schema);
  w->spec = (struct reask_spec){
      .answer = {.schema = schema_compile(w->schema, NULL, NULL, NULL),
                 .document = w->schema,
                 .repair = json_is_true(json_object_get(c, "repair")),
                 .max_bytes = (size_t)json_integer_value(json_object_get(c, "max_bytes")),
                 .max_depth = (size_t)json_integer_value(json_object_get(c, "max_depth"))},
      .max_reasks = reasks ? (int)json_integer_value(reasks) : REASK_DEFAULT_COUNT,
      .can_raise = json_is_true(json_object_get(c, "can_raise")),
      .max_ms = json_integer_value(json_object_get(c, "max_ms")),
      .max_tokens = json_integer_value(json_object_get(c, "max_tokens"))};
  if (json_object_get(c, "invariants") != NULL) {
    w->spec.invariants = invariants_compile(json_object_get(c, "invariants"), &errors, NULL);
    if (w->spec.invariants == NULL)
      complain("its invariants: %s", errors.count ? errors.items[0].message : "");
  }
  if (w->spec.answer.schema == NULL)
    complain("its schema does not compile");
  return w->spec.answer.schema != NULL;
}

static void tear_down(struct world *w) {
  schema_free((struct schema *)w->spec.answer.schema);
  invariants_free((struct invariants *)w->spec.invariants);
  json_decref(w->schema);
  json_decref(w->checks);
  json_decref(w->run_errors);
  buf_deinit(&w->steps);
}

static bool take_reply(struct world *w) {
  const json_t *reply = json_array_get(json_object_get(w->c, "replies"), w->reply_count);
  if (str_eq_c(data_get(reply, "end"), "lost")) {
    w->spec.out_of_time = true;
    return true;
  }
  if (reply == NULL || w->reply_count == REPLIES_MAX) {
    complain("wants reply %zu after: %s", w->reply_count + 1, buf_c(&w->steps));
    return false;
  }
  struct str text = json_is_string(reply) ? data_str(reply) : data_get(reply, "text");
  struct str end = data_get(reply, "end");
  enum reask_end how = str_eq_c(end, "cut") ? REASK_CUT : REASK_ANSWERED;
  if (str_eq_c(end, "refused"))
    how = REASK_REFUSED;
  w->replies[w->reply_count] =
      (struct reask_reply){.call = (long)w->reply_count + 1,
                           .end = how,
                           .text = text.p,
                           .n = text.n,
                           .structured = json_object_get(reply, "structured"),
                           .duration_ms = json_integer_value(json_object_get(reply, "ms")),
                           .tokens = json_integer_value(json_object_get(reply, "tokens"))};
  w->reply_count++;
  return true;
}

/* runs: a list of texts a run, which become errors at the root. */
static bool take_run(struct world *w, const struct reask_step *step) {
  const json_t *texts = json_array_get(json_object_get(w->c, "runs"), w->run_count);
  json_t *errors = json_array();
  json_array_append_new(w->run_errors, errors);
  if (texts == NULL || w->run_count == REPLIES_MAX || step->value == NULL) {
    complain("wants run %zu after: %s", w->run_count + 1, buf_c(&w->steps));
    return false;
  }
  JSON_EACH(texts, i, text) {
    json_array_append_new(errors, json_pack("{ss ss ss sO}", "path", "$", "pointer", "", "keyword",
                                            "invariant", "message", text));
  }
  w->runs[w->run_count++] = (struct reask_run){.call = 100 + (long)w->run_count,
                                               .reply = step->reply,
                                               .invariant = step->invariant,
                                               .errors = errors};
  return true;
}

static void expect_told(const struct world *w, const struct reask_step *step) {
  const json_t *told = json_object_get(w->c, "told");
  buf_auto_t got = {0}, wanted = {0};
  if (told == NULL || json_array_size(w->checks) != 1)
    return;
  JSON_EACH(step->errors, i, error) {
    buf_printf(&got, "%s: %s\n", json_string_value(json_object_get(error, "path")),
               json_string_value(json_object_get(error, "message")));
  }
  if (step->more > 0)
    buf_printf(&got, "and %zu more\n", step->more);
  JSON_EACH(told, i, line)
    buf_printf(&wanted, "%s\n", json_string_value(line));
  if (!str_eq(buf_view(&got), buf_view(&wanted)))
    complain("told:\n%s    instead of:\n%s", buf_c(&got), buf_c(&wanted));
}

static void expect_closing(const struct world *w, const struct reask_step *step) {
  const json_t *wanted = json_object_get(w->c, "value");
  json_t *closing = reask_close(w->checks, step);
  if (wanted != NULL && !json_equal(wanted, step->value)) {
    char_auto_t *got = json_dumps(step->value, JSON_COMPACT | JSON_ENCODE_ANY);
    complain("another value: %s", got ? got : "none");
  }
  JSON_MEMBERS(json_object_get(w->c, "closing"), key, value) {
    char_auto_t *got = json_dumps(json_object_get(closing, key), JSON_COMPACT | JSON_ENCODE_ANY);
    if (!json_equal(json_object_get(closing, key), value))
      complain("closing: %s is %s", key, got ? got : "not there");
  }
  json_decref(closing);
}

static const char *raised(const struct reask_step *step) {
  return step->raise ? " raised" : "";
}

/* False when it is over. */
static bool one_step(struct world *w) {
  struct reask_step step, again;
  bool more = true;
  reask_next(&w->spec, w->checks, w->replies, w->reply_count, w->runs, w->run_count, &step);
  reask_next(&w->spec, w->checks, w->replies, w->reply_count, w->runs, w->run_count, &again);
  assert_int_equal(step.action, again.action); /* it remembers nothing */
  assert_true(step.object == NULL || json_equal(step.object, again.object));
  switch (step.action) {
  case REASK_GENERATE:
    add_word(w, "generate%s", raised(&step));
    more = take_reply(w);
    break;
  case REASK_CORRECT:
    add_word(w, "correct %zu%s", step.reply + 1, raised(&step));
    if (json_array_size(step.errors) > REASK_ERRORS_SHOWN)
      complain("%zu errors told", json_array_size(step.errors));
    expect_told(w, &step);
    more = take_reply(w);
    break;
  case REASK_RUN:
    add_word(w, "run %zu", step.invariant + 1);
    more = take_run(w, &step);
    break;
  case REASK_CHECKED:
    add_word(w, "%s", json_string_value(json_object_get(step.object, "outcome")));
    json_array_append(w->checks, step.object);
    break;
  case REASK_VALUE:
    add_word(w, "value");
    expect_closing(w, &step);
    more = false;
    break;
  case REASK_FAILED:
    add_word(w, "failed %s", reask_reason_name(step.reason));
    expect_closing(w, &step);
    more = false;
    break;
  }
  reask_step_deinit(&step);
  reask_step_deinit(&again);
  return more;
}

static void run_case(const json_t *c) {
  static const char *const keys[] = {"name",   "note",      "schema",  "invariants", "max_reasks",
                                     "repair", "can_raise", "max_ms",  "max_tokens", "max_bytes",
                                     "steps",  "max_depth", "replies", "runs",       "told",
                                     "value",  "closing",   NULL};
  struct world w;
  check_keys(c, keys);
  if (set_up(&w, c)) {
    int steps = 0;
    while (steps < STEPS_MAX && one_step(&w))
      steps++;
    if (steps == STEPS_MAX)
      complain("no end: %.300s", buf_c(&w.steps));
    if (!str_eq(data_get(c, "steps"), buf_view(&w.steps)))
      complain("went: %s", buf_c(&w.steps));
  }
  tear_down(&w);
}

TEST(cases_go_as_written) {
  cases_run("reask", 20, run_case);
}

/* --- ready schemas --- */

static void read_sample(const char *name, const char *end, struct buf *out) {
  char path[512];
  struct err err = {0};
  print_into(path, sizeof path, SEGUE_SOURCE_DIR "/schemas/presets/samples/%s%s", name, end);
  if (!file_read(path, DATA_FILE_BYTES, out, &err))
    fail_msg("%s", err.text);
}

/* Tells what the loop makes of one reply with no corrections left. */
static enum reask_action outcome_of(const struct reask_spec *spec, struct str text,
                                    struct reask_step *step) {
  const struct reask_reply reply = {.call = 1, .text = text.p, .n = text.n};
  json_auto_t *checks = json_array();
  reask_next(spec, checks, &reply, 1, NULL, 0, step);
  assert_int_equal(step->action, REASK_CHECKED);
  json_array_append(checks, step->object);
  reask_step_deinit(step);
  reask_next(spec, checks, &reply, 1, NULL, 0, step);
  return step->action;
}

TEST(every_ready_schema_takes_the_good_and_refuses_the_bad) {
  static const char *const names[] = {"sentiment", "address", "meeting", "entities", "product"};
  assert_string_equal(preset_names(), "address, entities, meeting, product, sentiment");
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    json_auto_t *doc = preset_schema(str_from(names[i]));
    struct reask_step step;
    buf_auto_t text = {0}, said = {0};
    assert_non_null(doc);
    struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
    assert_non_null(schema);
    const struct reask_spec spec = {.answer = {.schema = schema, .document = doc}};
    read_sample(names[i], ".txt", &text);
    assert_true(text.n > 20);
    read_sample(names[i], ".good.json", &said);
    assert_int_equal(outcome_of(&spec, buf_view(&said), &step), REASK_VALUE);
    if (strcmp(names[i], "entities") == 0) { /* its places are places of the text */
      JSON_EACH(json_object_get(step.value, "entities"), k, entity) {
        struct str name = data_get(entity, "text");
        size_t start = (size_t)json_integer_value(json_object_get(entity, "start"));
        assert_int_equal(json_integer_value(json_object_get(entity, "end")), start + name.n);
        assert_memory_equal(text.p + start, name.p, name.n);
      }
    }
    reask_step_deinit(&step);
    buf_clear(&said);
    read_sample(names[i], ".bad.json", &said);
    assert_int_equal(outcome_of(&spec, buf_view(&said), &step), REASK_FAILED);
    assert_int_equal(step.reason, REASK_REASON_EXHAUSTED);
    assert_true(json_array_size(step.errors) >= 2);
    reask_step_deinit(&step);
    schema_free(schema);
  }
}

/* A draft before a broken final, a piece of a broken answer: the value is what the reader means, or
 * a correction is asked for. */
TEST(a_draft_is_never_the_value) {
  json_auto_t *doc =
      data_json("{'type':'object','properties':{'step':{'type':'integer','minimum':1},"
                "'reason':{'type':'string'}},'required':['step','reason'],"
                "'additionalProperties':false}");
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  size_t values = 0, corrections = 0;
  buf_auto_t file = {0};
  struct err err = {0};
  assert_true(file_read(SEGUE_SOURCE_DIR "/tests/data/extract/drafts.ndjson", DATA_FILE_BYTES,
                        &file, &err));
  for (struct str rest = buf_view(&file); rest.n > 0;) {
    struct str line = str_next_line(&rest);
    json_auto_t *c = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    const json_t *want = json_object_get(c, "strict"), *human = json_object_get(c, "human");
    AUTO(reask_step_deinit) struct reask_step step;
    const struct reask_spec spec = {.answer = {.schema = schema, .document = doc}, .max_reasks = 1};
    enum reask_action action = outcome_of(&spec, json_view(json_object_get(c, "text")), &step);
    if (action == REASK_VALUE) {
      values++;
      assert_true(json_equal(json_object_get(step.value, "step"), human));
    } else {
      corrections++;
      assert_int_equal(action, REASK_CORRECT);
      assert_true(json_array_size(step.errors) > 0);
    }
    if (json_integer_value(want) == 0 && json_is_integer(want))
      assert_int_equal(action, REASK_CORRECT);
  }
  assert_true(values >= 10 && corrections >= 30);
  schema_free(schema);
}
