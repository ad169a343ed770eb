#include "structured/reask.h"

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

const char *reask_outcome_name(enum reask_outcome outcome) {
  return outcome < REASK_OUTCOME_COUNT ? outcomes[outcome] : "?";
}

bool reask_outcome_from_name(const char *name, enum reask_outcome *out) {
  for (int i = 0; name != NULL && i < REASK_OUTCOME_COUNT; i++)
    if (strcmp(name, outcomes[i]) == 0) {
      *out = (enum reask_outcome)i;
      return true;
    }
  return false;
}

const char *reask_reason_name(enum reask_reason reason) {
  return reason < REASK_REASON_COUNT ? reasons[reason].name : "?";
}

const char *reask_reason_words(enum reask_reason reason) {
  return reason < REASK_REASON_COUNT ? reasons[reason].words : "?";
}

/* --- checks that were recorded --- */

/* A check that cannot be read counts as one that found nothing. */
static enum reask_outcome outcome_of(const json_t *check) {
  enum reask_outcome outcome = REASK_OUTCOME_PARSE;
  (void)reask_outcome_from_name(json_string_value(json_object_get(check, "outcome")), &outcome);
  return outcome;
}

/* What a correction can mend. */
static bool is_mendable(enum reask_outcome outcome) {
  return outcome == REASK_OUTCOME_PARSE || outcome == REASK_OUTCOME_SCHEMA ||
         outcome == REASK_OUTCOME_INVARIANT;
}

/* Of the checks before `end` the last one that a correction can mend; `end` when there is none. */
static size_t last_mendable(const json_t *checks, size_t end) {
  for (size_t i = end; i-- > 0;)
    if (is_mendable(outcome_of(json_array_get(checks, i))))
      return i;
  return end;
}

static size_t count_outcome(const json_t *checks, enum reask_outcome outcome) {
  size_t count = 0;
  for (size_t i = 0; i < json_array_size(checks); i++)
    count += outcome_of(json_array_get(checks, i)) == outcome;
  return count;
}

static bool same_errors(const json_t *a, const json_t *b) {
  return outcome_of(a) == outcome_of(b) &&
         json_equal(json_object_get(a, "errors"), json_object_get(b, "errors")) &&
         json_integer_value(json_object_get(a, "errors_dropped")) ==
             json_integer_value(json_object_get(b, "errors_dropped"));
}

/* --- reading a reply --- */

static bool put(json_t *object, const char *key, json_t *value) {
  return json_object_set_new_nocheck(object, key, value) == 0;
}

struct reading {
  struct answer answer;
  enum reask_outcome outcome;
  json_t *errors; /* owned */
  size_t dropped;
  size_t run_next; /* invariant that must be run; SIZE_MAX: none */
  json_t *calls;   /* owned: of the invariants that were run */
};

static void reading_deinit(struct reading *r) {
  answer_deinit(&r->answer);
  json_decref(r->errors);
  json_decref(r->calls);
}

static bool check_expressions(struct reading *r, const struct reask_spec *spec) {
  struct schema_errors found = {0};
  enum schema_status status = invariants_check(spec->invariants, r->answer.value, &found);
  bool ok = status != SCHEMA_OUT_OF_MEMORY;
  if (ok && status != SCHEMA_OK) {
    r->outcome = REASK_OUTCOME_INVARIANT;
    json_decref(r->errors);
    r->errors = answer_errors(&found, &r->dropped);
    ok = r->errors != NULL;
  }
  schema_errors_deinit(&found);
  return ok;
}

static const struct reask_run *run_of(const struct reask_run *runs, size_t count, size_t reply,
                                      size_t invariant) {
  for (size_t i = 0; i < count; i++)
    if (runs[i].reply == reply && runs[i].invariant == invariant)
      return &runs[i];
  return NULL;
}

/* The outcomes of what was run so far; sets run_next at the first that was not. */
static bool check_runs(struct reading *r, const struct reask_spec *spec, size_t reply,
                       const struct reask_run *runs, size_t run_count) {
  size_t n = invariants_count(spec->invariants);
  for (size_t i = 0; i < n; i++) {
    if (invariants_get(spec->invariants, i)->kind == INVARIANT_EXPR)
      continue;
    const struct reask_run *run = run_of(runs, run_count, reply, i);
    if (run == NULL) {
      r->run_next = i;
      return true;
    }
    if (json_array_append_new(r->calls, json_integer(run->call)) != 0)
      return false;
    if (json_array_size(run->errors) == 0)
      continue;
    r->outcome = REASK_OUTCOME_INVARIANT;
    json_decref(r->errors);
    r->errors = json_deep_copy(run->errors);
    return r->errors != NULL && answer_errors_sort(r->errors);
  }
  return true;
}

static bool plain_error(struct reading *r, enum reask_outcome outcome, const char *message) {
  json_t *error = json_object();
  r->outcome = outcome;
  if (error != NULL && put(error, "path", json_string("$")) &&
      put(error, "pointer", json_string("")) &&
      put(error, "keyword", json_string(outcomes[outcome])) &&
      put(error, "message", json_string(message)))
    return json_array_append_new(r->errors, error) == 0;
  json_decref(error);
  return false;
}

static bool read_reply(struct reading *r, const struct reask_spec *spec,
                       const struct reask_reply *reply, size_t index, const struct reask_run *runs,
                       size_t run_count) {
  *r = (struct reading){.run_next = SIZE_MAX, .errors = json_array(), .calls = json_array()};
  if (r->errors == NULL || r->calls == NULL)
    return false;
  switch (reply->end) {
  case REASK_REFUSED:
    return plain_error(r, REASK_OUTCOME_REFUSED, "the model refused to answer");
  case REASK_CUT:
    return plain_error(r, REASK_OUTCOME_LENGTH, "the answer was cut at its length limit");
  case REASK_ANSWERED:
    break;
  }
  if (!answer_read(&r->answer, &spec->answer, reply->structured, reply->text ? reply->text : "",
                   reply->n))
    return false;
  r->outcome = r->answer.outcome == ANSWER_VALID   ? REASK_OUTCOME_VALID
               : r->answer.outcome == ANSWER_PARSE ? REASK_OUTCOME_PARSE
                                                   : REASK_OUTCOME_SCHEMA;
  json_decref(r->errors);
  r->errors = json_incref(r->answer.errors);
  r->dropped = r->answer.dropped;
  if (r->outcome != REASK_OUTCOME_VALID)
    return true;
  if (!check_expressions(r, spec))
    return false;
  return r->outcome != REASK_OUTCOME_VALID || check_runs(r, spec, index, runs, run_count);
}

static json_t *check_object(const struct reading *r, size_t index, long call) {
  const struct answer *a = &r->answer;
  bool valid = r->outcome == REASK_OUTCOME_VALID;
  json_t *o = json_object();
  bool ok = o != NULL && put(o, "number", json_integer((json_int_t)index + 1)) &&
            put(o, "call", json_integer(call)) &&
            put(o, "outcome", json_string(outcomes[r->outcome]));
  if (ok && a->where != NULL)
    ok = put(o, "extract_stage", json_string(a->where));
  if (ok && a->repaired)
    ok = put(o, "repaired", json_true()) && put(o, "repairs", json_incref(a->repairs));
  if (ok && a->truncated)
    ok = put(o, "truncated", json_true());
  if (ok && valid)
    ok = put(o, "first_pass", json_boolean(index == 0 && !a->repaired));
  if (ok && json_array_size(r->calls) > 0)
    ok = put(o, "runs", json_incref(r->calls));
  ok = ok && put(o, "errors", json_incref(r->errors));
  if (ok && r->dropped > 0)
    ok = put(o, "errors_dropped", json_integer((json_int_t)r->dropped));
  if (ok)
    return o;
  json_decref(o);
  return NULL;
}

/* --- deciding --- */

static bool fail(struct reask_step *step, enum reask_reason reason, const json_t *check) {
  step->action = REASK_FAILED;
  step->reason = reason;
  step->errors = json_deep_copy(json_object_get(check, "errors"));
  if (step->errors == NULL)
    step->errors = json_array();
  return step->errors != NULL;
}

static bool correct(struct reask_step *step, const json_t *checks, size_t wrong) {
  const json_t *errors = json_object_get(json_array_get(checks, wrong), "errors");
  step->action = REASK_CORRECT;
  step->reply = wrong;
  step->errors = json_array();
  bool ok = step->errors != NULL;
  for (size_t i = 0; ok && i < json_array_size(errors) && i < REASK_ERRORS_SHOWN; i++)
    ok = json_array_append(step->errors, json_array_get(errors, i)) == 0;
  return ok;
}

/* Tokens or time used up; true with step filled. */
static bool spent(const struct reask_spec *spec, const struct reask_reply *replies, size_t n,
                  const struct reask_run *runs, size_t run_count, enum reask_reason *reason) {
  int64_t ms = 0, tokens = 0;
  for (size_t i = 0; i < n; i++) {
    ms += replies[i].duration_ms;
    tokens += replies[i].tokens;
  }
  for (size_t i = 0; i < run_count; i++) {
    ms += runs[i].duration_ms;
    tokens += runs[i].tokens;
  }
  *reason =
      spec->max_tokens > 0 && tokens >= spec->max_tokens ? REASK_REASON_TOKENS : REASK_REASON_TIME;
  return (spec->max_tokens > 0 && tokens >= spec->max_tokens) ||
         (spec->max_ms > 0 && ms >= spec->max_ms);
}

/* All replies are read and the last one is not the value. */
static bool go_on(const struct reask_spec *spec, const json_t *checks, struct reask_step *step,
                  const struct reask_reply *replies, size_t n, const struct reask_run *runs,
                  size_t run_count) {
  const json_t *last = json_array_get(checks, n - 1);
  enum reask_outcome outcome = outcome_of(last);
  enum reask_reason reason;
  size_t cuts = count_outcome(checks, REASK_OUTCOME_LENGTH);
  size_t wrong = last_mendable(checks, n), mendable = 0;
  for (size_t i = 0; i < n; i++)
    mendable += is_mendable(outcome_of(json_array_get(checks, i)));
  step->reply = n - 1;
  step->raise = cuts > 0;
  if (outcome == REASK_OUTCOME_REFUSED)
    return fail(step, REASK_REASON_REFUSED, last);
  if (outcome == REASK_OUTCOME_LENGTH && (cuts > 1 || !spec->can_raise))
    return fail(step, REASK_REASON_LENGTH, last);
  if (outcome != REASK_OUTCOME_LENGTH && mendable > (size_t)spec->max_reasks)
    return fail(step, REASK_REASON_EXHAUSTED, last);
  if (outcome != REASK_OUTCOME_LENGTH) {
    size_t before = last_mendable(checks, n - 1);
    if (before < n - 1 && same_errors(json_array_get(checks, before), last))
      return fail(step, REASK_REASON_REPEATED, last);
  }
  if (spent(spec, replies, n, runs, run_count, &reason))
    return fail(step, reason, last);
  if (wrong < n)
    return correct(step, checks, wrong);
  step->action = REASK_GENERATE; /* the first one was cut */
  return true;
}

static bool next(const struct reask_spec *spec, const json_t *checks,
                 const struct reask_reply *replies, size_t n, const struct reask_run *runs,
                 size_t run_count, struct reask_step *step) {
  size_t done = json_array_size(checks);
  if (spec->out_of_time)
    return fail(step, REASK_REASON_TIME, json_array_get(checks, done > 0 ? done - 1 : 0));
  if (n == 0) {
    step->action = REASK_GENERATE;
    return true;
  }
  bool is_value = done >= n && outcome_of(json_array_get(checks, n - 1)) == REASK_OUTCOME_VALID;
  if (done >= n && !is_value)
    return go_on(spec, checks, step, replies, n, runs, run_count);
  size_t index = done < n ? done : n - 1;
  struct reading r;
  bool ok = read_reply(&r, spec, &replies[index], index, runs, run_count);
  step->reply = index;
  if (ok && is_value) {
    step->action = REASK_VALUE;
    step->value = json_incref(r.answer.value);
    if (step->value == NULL) /* the record says that it was there, the reply does not hold it */
      ok = fail(step, REASK_REASON_EXHAUSTED, json_array_get(checks, index));
  } else if (ok && r.run_next != SIZE_MAX) {
    step->action = REASK_RUN;
    step->invariant = r.run_next;
    step->value = json_incref(r.answer.value);
  } else if (ok) {
    step->action = REASK_CHECKED;
    step->object = check_object(&r, index, replies[index].call);
    ok = step->object != NULL;
  }
  reading_deinit(&r);
  return ok;
}

enum reask_status reask_next(const struct reask_spec *spec, const json_t *checks,
                             const struct reask_reply *replies, size_t reply_count,
                             const struct reask_run *runs, size_t run_count,
                             struct reask_step *step) {
  *step = (struct reask_step){0};
  return next(spec, checks, replies, reply_count, runs, run_count, step) ? REASK_OK
                                                                         : REASK_OUT_OF_MEMORY;
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
  bool first_pass = json_is_true(json_object_get(first, "first_pass"));
  bool ok = o != NULL && failures != NULL;
  for (int i = 0; ok && i < REASK_OUTCOME_COUNT; i++) {
    size_t count = count_outcome(checks, (enum reask_outcome)i);
    if (i != REASK_OUTCOME_VALID && count > 0)
      ok = put(failures, outcomes[i], json_integer((json_int_t)count));
  }
  ok = ok && put(o, "attempts", json_integer((json_int_t)json_array_size(checks))) &&
       put(o, "first_pass", json_boolean(first_pass)) && put(o, "failures", json_incref(failures));
  if (ok && step->action == REASK_FAILED)
    ok = put(o, "reason", json_string(reask_reason_name(step->reason))) &&
         put(o, "errors", json_incref(step->errors));
  json_decref(failures);
  if (ok)
    return o;
  json_decref(o);
  return NULL;
}
