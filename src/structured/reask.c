/* Decides what comes next between a model and the value asked of it. */
#include "structured/reask.h"

#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

static const char *const outcomes[REASK_OUTCOME_COUNT] = {
    [REASK_OUTCOME_VALID] = "valid",     [REASK_OUTCOME_PARSE] = "parse",
    [REASK_OUTCOME_SCHEMA] = "schema",   [REASK_OUTCOME_INVARIANT] = "invariant",
    [REASK_OUTCOME_REFUSED] = "refused", [REASK_OUTCOME_LENGTH] = "length",
};

static const struct {
  const char *name, *words;
} reasons[REASK_REASON_COUNT] = {
    [REASK_REASON_EXHAUSTED] = {"exhausted", "no correction was left"},
    [REASK_REASON_REPEATED] = {"repeated", "the correction brought the same errors back"},
    [REASK_REASON_REFUSED] = {"refused", "the model refused to answer"},
    [REASK_REASON_LENGTH] = {"length", "the answer was cut at its length limit"},
    [REASK_REASON_TOKENS] = {"tokens", "the limit on tokens was reached"},
    [REASK_REASON_TIME] = {"time", "the time limit was reached"},
};

static bool reask_outcome_from_name(const char *name, enum reask_outcome *out) {
  int i = str_index(str_from(name), outcomes, REASK_OUTCOME_COUNT);
  if (i >= 0)
    *out = (enum reask_outcome)i;
  return i >= 0;
}

const char *reask_reason_name(enum reask_reason reason) {
  return reason < REASK_REASON_COUNT ? reasons[reason].name : "?";
}

const char *reask_reason_words(enum reask_reason reason) {
  return reason < REASK_REASON_COUNT ? reasons[reason].words : "?";
}

/* --- checks that were recorded --- */

/* Returns a check's outcome; one that cannot be read counts as having found nothing. */
static enum reask_outcome check_outcome(const json_t *check) {
  enum reask_outcome outcome = REASK_OUTCOME_PARSE;
  (void)reask_outcome_from_name(json_string_value(json_at(check, "outcome")), &outcome);
  return outcome;
}

/* Returns true if a correction can fix what led to the outcome. */
static bool is_mendable(enum reask_outcome outcome) {
  return outcome == REASK_OUTCOME_PARSE || outcome == REASK_OUTCOME_SCHEMA ||
         outcome == REASK_OUTCOME_INVARIANT;
}

/* Returns the last check before `end` that a correction can fix, `end` if there is none. */
static size_t last_mendable(const json_t *checks, size_t end) {
  for (size_t i = end; i-- > 0;)
    if (is_mendable(check_outcome(json_array_get(checks, i))))
      return i;
  return end;
}

static size_t count_outcome(const json_t *checks, enum reask_outcome outcome) {
  size_t count = 0;
  for (size_t i = 0; i < json_array_size(checks); i++)
    count += check_outcome(json_array_get(checks, i)) == outcome;
  return count;
}

static bool same_errors(const json_t *a, const json_t *b) {
  return check_outcome(a) == check_outcome(b) &&
         json_same(json_at(a, "errors"), json_at(b, "errors")) &&
         json_int_at(a, "errors_dropped") == json_int_at(b, "errors_dropped");
}

/* --- reading a reply --- */

struct reask_reading {
  struct answer answer;
  enum reask_outcome outcome;
  json_t *errors; /* owned */
  size_t dropped;
  size_t run_next; /* the next invariant that must be run; SIZE_MAX: none */
  json_t *calls;   /* owned: those of the invariants that have run */
};

static const struct reask_run *run_of(const struct reask_run *runs, size_t count, size_t reply,
                                      size_t invariant) {
  for (size_t i = 0; i < count; i++)
    if (runs[i].reply == reply && runs[i].invariant == invariant)
      return &runs[i];
  return NULL;
}

/* Adds the outcomes of what has run so far; sets run_next at the first that has not. */
static void check_runs(struct reask_reading *r, const struct reask_spec *spec, size_t reply,
                       const struct reask_run *runs, size_t run_count) {
  size_t n = invariants_count(spec->invariants);
  for (size_t i = 0; i < n; i++) {
    if (invariants_get(spec->invariants, i)->kind == INVARIANT_EXPR)
      continue;
    const struct reask_run *run = run_of(runs, run_count, reply, i);
    if (run == NULL) {
      r->run_next = i;
      return;
    }
    json_array_append_new(r->calls, json_integer(run->call));
    if (json_array_size(run->errors) == 0)
      continue;
    r->outcome = REASK_OUTCOME_INVARIANT;
    json_decref(r->errors);
    r->errors = json_clone(run->errors);
    answer_errors_sort(r->errors);
    return;
  }
}

static void plain_error(struct reask_reading *r, enum reask_outcome outcome, const char *message) {
  json_t *error = json_object();
  r->outcome = outcome;
  json_put(error, "path", json_string("$"));
  json_put(error, "pointer", json_string(""));
  json_put(error, "keyword", json_string(outcomes[outcome]));
  json_put(error, "message", json_string(message));
  json_array_append_new(r->errors, error);
}

/* Does an error name this value or, with `below`, something in it? */
static bool names_value(const json_t *errors, struct str pointer, bool below) {
  for (size_t i = 0; i < json_array_size(errors); i++) {
    struct str at = json_view_at(json_array_get(errors, i), "pointer");
    bool starts = at.n >= pointer.n && memcmp(at.p, pointer.p, pointer.n) == 0;
    if (starts && (at.n == pointer.n || (below && at.p[pointer.n] == '/')))
      return true;
  }
  return false;
}

/* Returns the corrected value with the items of lists of `before` that no error names. A new
 * reference. */
static json_t *with_good_items(const json_t *before, json_t *after, const json_t *errors,
                               struct buf *pointer) {
  size_t n = json_array_size(before), m = json_array_size(after), bad = 0, taken = 0;
  size_t length = pointer->n;
  json_t *made = json_clone_top(after);
  if (json_is_object(before) && json_is_object(after)) {
    JSON_MEMBERS(before, key, value) {
      json_t *own = json_object_get(after, key);
      buf_putc(pointer, '/');
      for (const char *c = key; *c != '\0'; c++)
        if (*c == '~' || *c == '/')
          buf_puts(pointer, *c == '~' ? "~0" : "~1");
        else
          buf_putc(pointer, *c);
      if (own != NULL)
        json_object_set_new(made, key, with_good_items(value, own, errors, pointer));
      pointer->n = length;
    }
  }
  for (size_t i = 0; i < n && json_is_array(after); i++) {
    buf_printf(pointer, "/%zu", i);
    bad += names_value(errors, buf_view(pointer), true);
    pointer->n = length;
  }
  if (!json_is_array(before) || !json_is_array(after) || (m != n && m != bad) ||
      names_value(errors, buf_view(pointer), false))
    return made;
  json_array_clear(made);
  for (size_t i = 0; i < n; i++) {
    json_t *item = json_array_get(before, i);
    buf_printf(pointer, "/%zu", i);
    if (names_value(errors, buf_view(pointer), true))
      json_array_append_new(made, with_good_items(item, json_array_get(after, m == n ? i : taken++),
                                                  errors, pointer));
    else
      json_array_append(made, item);
    pointer->n = length;
  }
  return made;
}

/* Puts what earlier replies had right into the value of this one. */
static void keep_valid_items(struct answer *a, const struct reask_spec *spec,
                             const struct reask_reply *replies, size_t index) {
  AUTO(answer_deinit) struct answer before = {0};
  buf_auto_t pointer = {0};
  for (size_t i = index; i-- > 0 && before.value == NULL;) {
    answer_deinit(&before);
    if (replies[i].end != REASK_ANSWERED)
      continue;
    answer_read(&before, &spec->answer, replies[i].structured,
                replies[i].text ? replies[i].text : "", replies[i].n);
    keep_valid_items(&before, spec, replies, i);
  }
  if (a->value == NULL || before.value == NULL || before.outcome != ANSWER_SCHEMA)
    return;
  json_auto_t *made = with_good_items(before.value, a->value, before.errors, &pointer);
  struct answer checked;
  answer_read(&checked, &spec->answer, made, "", 0);
  json_keep(&a->value, checked.value);
  json_keep(&a->errors, checked.errors);
  a->outcome = checked.outcome;
  a->dropped = checked.dropped;
  answer_deinit(&checked);
}

static void reply_check(struct reask_reading *r, const struct reask_spec *spec,
                        const struct reask_reply *replies, size_t index,
                        const struct reask_run *runs, size_t run_count) {
  const struct reask_reply *reply = &replies[index];
  *r = (struct reask_reading){.run_next = SIZE_MAX, .errors = json_array(), .calls = json_array()};
  switch (reply->end) {
  case REASK_REFUSED:
    plain_error(r, REASK_OUTCOME_REFUSED, "the model refused to answer");
    return;
  case REASK_CUT:
    plain_error(r, REASK_OUTCOME_LENGTH, "the answer was cut at its length limit");
    return;
  case REASK_ANSWERED:
    break;
  }
  answer_read(&r->answer, &spec->answer, reply->structured, reply->text ? reply->text : "",
              reply->n);
  if (spec->keep_valid)
    keep_valid_items(&r->answer, spec, replies, index);
  json_keep(&r->errors, r->answer.errors);
  r->dropped = r->answer.dropped;
  switch (r->answer.outcome) {
  case ANSWER_PARSE:
    r->outcome = REASK_OUTCOME_PARSE;
    return;
  case ANSWER_SCHEMA:
    r->outcome = REASK_OUTCOME_SCHEMA;
    return;
  case ANSWER_VALID:
    r->outcome = REASK_OUTCOME_VALID;
    break;
  }
  AUTO(schema_errors_deinit) struct schema_errors found = {0};
  enum schema_status status = invariants_check(spec->invariants, r->answer.value, &found);
  if (status != SCHEMA_OK) {
    r->outcome = REASK_OUTCOME_INVARIANT;
    json_decref(r->errors);
    r->errors = answer_errors(&found, &r->dropped);
  }
  if (r->outcome == REASK_OUTCOME_VALID)
    check_runs(r, spec, index, runs, run_count);
}

static void reading_deinit(struct reask_reading *r) {
  answer_deinit(&r->answer);
  json_decref(r->errors);
  json_decref(r->calls);
}

/* Returns true if no constraint can have been at work on such an answer. */
static bool is_unenforced(const struct reask_reading *r) {
  bool loose = r->outcome == REASK_OUTCOME_PARSE;
  for (size_t i = 0; r->outcome == REASK_OUTCOME_SCHEMA && i < json_array_size(r->errors); i++) {
    const json_t *e = json_array_get(r->errors, i);
    struct str keyword = str_from(json_word_at(e, "keyword"));
    loose = loose || str_among(keyword, "required additionalProperties") ||
            (str_eq_c(keyword, "type") && json_word_at(e, "pointer")[0] == '\0');
  }
  return loose;
}

static json_t *check_object(const struct reask_reading *r, size_t index, long call, bool enforced) {
  const struct answer *a = &r->answer;
  bool valid = r->outcome == REASK_OUTCOME_VALID;
  json_t *o = json_object();
  json_put(o, "number", json_integer((json_int_t)index + 1));
  json_put(o, "call", json_integer(call));
  json_put(o, "outcome", json_string(outcomes[r->outcome]));
  json_put_true(o, "unenforced", enforced && is_unenforced(r));
  json_put_true(o, "ambiguous", a->ambiguous);
  if (a->where != NULL)
    json_put(o, "extract_stage", json_string(a->where));
  json_put_true(o, "repaired", a->repaired);
  if (a->repairs != NULL)
    json_put(o, "repairs", json_incref(a->repairs));
  json_put_true(o, "truncated", a->truncated);
  if (valid)
    json_put(o, "first_pass", json_boolean(index == 0 && !a->repaired));
  if (json_array_size(r->calls) > 0)
    json_put(o, "runs", json_incref(r->calls));
  json_put(o, "errors", json_incref(r->errors));
  json_put_count(o, "errors_dropped", (json_int_t)r->dropped);
  return o;
}

/* --- deciding --- */

static void reask_fail(struct reask_step *step, enum reask_reason reason, const json_t *check) {
  const json_t *errors = json_at(check, "errors");
  step->action = REASK_FAILED;
  step->reason = reason;
  step->errors = errors ? json_clone(errors) : json_array();
}

/* Returns true if tokens or time are used up; *reason says which. */
static bool budget_spent(const struct reask_spec *spec, const struct reask_reply *replies, size_t n,
                         const struct reask_run *runs, size_t run_count,
                         enum reask_reason *reason) {
  int64_t ms = 0, tokens = 0;
  for (size_t i = 0; i < n; i++) {
    ms += replies[i].duration_ms;
    tokens += replies[i].tokens;
  }
  for (size_t i = 0; i < run_count; i++) {
    ms += runs[i].duration_ms;
    tokens += runs[i].tokens;
  }
  bool no_tokens = spec->max_tokens > 0 && tokens >= spec->max_tokens;
  *reason = no_tokens ? REASK_REASON_TOKENS : REASK_REASON_TIME;
  return no_tokens || (spec->max_ms > 0 && ms >= spec->max_ms);
}

/* Returns true, with the reason, if the last of `n` replies, all of them read, is the end; false if
 * another may be asked for. */
static bool is_over(const struct reask_spec *spec, const json_t *checks, size_t n,
                    enum reask_reason *reason) {
  const json_t *last = json_array_get(checks, n - 1);
  size_t cuts = count_outcome(checks, REASK_OUTCOME_LENGTH), mendable = 0;
  switch (check_outcome(last)) {
  case REASK_OUTCOME_REFUSED:
    *reason = REASK_REASON_REFUSED;
    return true;
  case REASK_OUTCOME_LENGTH:
    *reason = REASK_REASON_LENGTH;
    return cuts > 1 || !spec->can_raise;
  case REASK_OUTCOME_VALID:
  case REASK_OUTCOME_PARSE:
  case REASK_OUTCOME_SCHEMA:
  case REASK_OUTCOME_INVARIANT:
  case REASK_OUTCOME_COUNT:
    break;
  }
  for (size_t i = 0; i < n; i++)
    mendable += is_mendable(check_outcome(json_array_get(checks, i)));
  *reason = REASK_REASON_EXHAUSTED;
  if (mendable > (size_t)spec->max_reasks)
    return true;
  size_t before = last_mendable(checks, n - 1);
  *reason = REASK_REASON_REPEATED;
  return before < n - 1 && same_errors(json_array_get(checks, before), last);
}

/* Decides what follows when all replies are read and the last one is not the value. */
static void reask_go_on(const struct reask_spec *spec, const json_t *checks,
                        struct reask_step *step, const struct reask_reply *replies, size_t n,
                        const struct reask_run *runs, size_t run_count) {
  enum reask_reason reason;
  size_t wrong = last_mendable(checks, n);
  assert(n > 0 && json_array_size(checks) >= n);
  step->reply = n - 1;
  step->raise = count_outcome(checks, REASK_OUTCOME_LENGTH) > 0;
  if (is_over(spec, checks, n, &reason) ||
      budget_spent(spec, replies, n, runs, run_count, &reason)) {
    reask_fail(step, reason, json_array_get(checks, n - 1));
  } else if (wrong < n) {
    const json_t *check = json_array_get(checks, wrong), *errors = json_at(check, "errors");
    json_int_t dropped = json_int_at(check, "errors_dropped");
    step->action = REASK_CORRECT;
    step->reply = wrong;
    step->errors = json_array();
    for (size_t i = 0; i < json_array_size(errors) && i < REASK_ERRORS_SHOWN; i++)
      json_array_append(step->errors, json_array_get(errors, i));
    step->more = json_array_size(errors) - json_array_size(step->errors);
    if (spec->keep_valid && wrong > 0) {
      struct reask_reading r;
      reply_check(&r, spec, replies, wrong, runs, run_count);
      json_keep(&step->value, r.answer.value);
      reading_deinit(&r);
    }
    if (dropped > 0) /* the log says so */
      step->more += (size_t)dropped;
  } else {
    step->action = REASK_GENERATE; /* the first one was cut */
  }
}

void reask_next(const struct reask_spec *spec, const json_t *checks,
                const struct reask_reply *replies, size_t n, const struct reask_run *runs,
                size_t run_count, struct reask_step *step) {
  size_t done = json_array_size(checks);
  assert(json_is_array(checks));
  *step = (struct reask_step){0};
  if (spec->out_of_time) {
    reask_fail(step, REASK_REASON_TIME, json_array_get(checks, done > 0 ? done - 1 : 0));
    return;
  }
  if (n == 0) {
    step->action = REASK_GENERATE;
    return;
  }
  bool is_value = done >= n && check_outcome(json_array_get(checks, n - 1)) == REASK_OUTCOME_VALID;
  if (done >= n && !is_value) {
    reask_go_on(spec, checks, step, replies, n, runs, run_count);
    return;
  }
  size_t index = done < n ? done : n - 1;
  struct reask_reading r;
  reply_check(&r, spec, replies, index, runs, run_count);
  step->reply = index;
  if (is_value && r.answer.value != NULL) {
    step->action = REASK_VALUE;
    step->value = json_incref(r.answer.value);
  } else if (is_value) { /* the record says that it was there, but the reply does not hold it */
    reask_fail(step, REASK_REASON_EXHAUSTED, json_array_get(checks, index));
  } else if (r.run_next != SIZE_MAX) {
    step->action = REASK_RUN;
    step->invariant = r.run_next;
    step->value = json_incref(r.answer.value);
  } else {
    step->action = REASK_CHECKED;
    step->object = check_object(&r, index, replies[index].call, replies[index].enforced);
  }
  reading_deinit(&r);
}

void reask_step_deinit(struct reask_step *step) {
  json_decref(step->value);
  json_decref(step->object);
  json_decref(step->errors);
  *step = (struct reask_step){0};
}

json_t *reask_close(const json_t *checks, const struct reask_step *step) {
  json_t *o = json_object(), *failures = json_object();
  const json_t *first = json_array_get(checks, 0);
  bool first_pass = json_is_true(json_at(first, "first_pass"));
  for (int i = 0; i < REASK_OUTCOME_COUNT; i++) {
    size_t count = count_outcome(checks, (enum reask_outcome)i);
    if (i != REASK_OUTCOME_VALID && count > 0)
      json_object_set_new_nocheck(failures, outcomes[i], json_integer((json_int_t)count));
  }
  json_int_t unenforced = 0;
  JSON_EACH(checks, i, check)
    unenforced += json_is_true(json_at(check, "unenforced"));
  json_put_count(failures, "unenforced", unenforced);
  json_put(o, "attempts", json_integer((json_int_t)json_array_size(checks)));
  json_put(o, "first_pass", json_boolean(first_pass));
  json_put(o, "failures", failures);
  if (step->action == REASK_FAILED) {
    json_put(o, "reason", json_string(reask_reason_name(step->reason)));
    json_put(o, "errors", json_incref(step->errors));
  }
  return o;
}
