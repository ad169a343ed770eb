/* Asks the questions of a batch, several at once, and prints the answers in order. */
#include "cli/ask_batch.h"

#include "base/log.h"
#include "cli/asking.h"
#include "cli/json_io.h"
#include "cli/ndjson_in.h"
#include "cli/schema_in.h"
#include "schema/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_PER_JOB = 4, RATE_STEPS = 3 }; /* answers held back until an earlier one is there */

struct slot {          /* a line whose answer was not printed yet */
  json_t *id, *result; /* result NULL: it is not there yet */
};

struct ask_tally {
  size_t lines, asked, refused; /* refused: no question could be made from the line */
  size_t judged;                /* asked, and either has a value or is known to have none */
  size_t by[RATE_STEPS];        /* values at attempt 1, 2, 3 */
  size_t values, late;          /* late: a value after more attempts, or a mended one */
  json_t *classes;              /* classes of first answers that failed -> count */
  json_t *troubles;             /* classes of errors of those not judged -> count */
};

struct ask_batch {
  const struct ask_batch_spec *spec;
  struct asking asking;
  struct ndjson_in in;
  struct slot *slots;         /* ring of `window` */
  size_t window, first, next; /* lines: [first, next) are in progress */
  bool ended;
  struct ask_tally tally;
};

/* --- the rates --- */

static void count_class(json_t *counts, const char *class) {
  json_int_t n = json_integer_value(json_object_get(counts, class));
  json_object_set_new(counts, class, json_integer(n + 1));
}

/* Returns true if the answer was judged: a backend's error or an interruption says nothing about
 * prompt, schema and model. */
static bool is_judged(const char *outcome) {
  return strcmp(outcome, "value") == 0 || strcmp(outcome, "failed") == 0 ||
         strcmp(outcome, "sentinel") == 0;
}

static void ask_batch_count(struct ask_tally *t, const json_t *result) {
  const json_t *first = json_array_get(json_object_get(result, "checks"), 0);
  const char *outcome = json_string_value(json_object_get(result, "outcome"));
  const char *class = json_string_value(json_object_get(first, "outcome"));
  size_t attempts = (size_t)json_integer_value(json_object_get(result, "attempts"));
  bool repaired = json_is_true(json_object_get(first, "repaired"));
  t->asked++;
  if (outcome == NULL || !is_judged(outcome)) {
    const char *trouble =
        json_string_value(json_object_get(json_object_get(result, "error"), "class"));
    count_class(t->troubles, trouble ? trouble : "error");
    return;
  }
  t->judged++;
  if (strcmp(outcome, "value") == 0) {
    t->values++;
    if (attempts >= 1 && attempts <= RATE_STEPS && !(attempts == 1 && repaired))
      t->by[attempts - 1]++;
    else
      t->late++;
  }
  if (first == NULL)
    class = json_string_value(json_object_get(result, "reason"));
  else if (class != NULL && strcmp(class, "valid") == 0)
    class = repaired ? "repaired" : NULL;
  if (class != NULL)
    count_class(t->classes, class);
}

static double percent(size_t part, size_t whole) {
  return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* Returns one end of the 95 % confidence interval of a rate, in percent (Wilson, 1927): the
 * farthest rate within 1.96 standard deviations of the count, found by bisection. */
static double rate_bound(size_t part, size_t whole, bool upper) {
  const double deviations = 1.96 * 1.96, rate = (double)part / (double)whole;
  double low = upper ? rate : 0, high = upper ? 1 : rate;
  for (int i = 0; i < 40; i++) {
    double middle = (low + high) / 2, off = rate - middle;
    bool within = off * off * (double)whole <= deviations * middle * (1 - middle);
    if (within == upper)
      low = middle;
    else
      high = middle;
  }
  return 100 * (upper ? high : low);
}

static const char *advice_on(double failing) {
  if (failing < 1)
    return "under 1 % fail at first: you can do without corrections and let these fail";
  if (failing <= 10)
    return "1 to 10 % fail at first: corrections are the right remedy";
  return "over 10 % fail at first: improve the prompt, the schema or the model first";
}

/* Advises on the share of first answers that fail, or says that there are too few; nothing if
 * nothing is known. */
static void put_advice(const struct ask_tally *t, struct buf *out) {
  size_t failed = t->judged - t->by[0];
  if (t->judged == 0)
    return;
  double low = rate_bound(failed, t->judged, false), high = rate_bound(failed, t->judged, true);
  const char *advice = advice_on(low);
  if (advice == advice_on(high))
    buf_puts(out, advice);
  else
    buf_printf(out, "too few answers for advice: going by these %zu, %.1f to %.1f %% fail at first",
               t->judged, low, high);
}

static json_t *summary_of(const struct ask_tally *t) {
  size_t one = t->by[0] + t->by[1], two = one + t->by[2];
  struct buf advice = {0};
  put_advice(t, &advice);
  json_t *said = advice.n > 0 ? json_string(buf_c(&advice)) : NULL;
  buf_deinit(&advice);
  json_t *rates = json_pack("{sf sf sf}", "first_pass", percent(t->by[0], t->judged), "after_one",
                            percent(one, t->judged), "after_two", percent(two, t->judged));
  return json_pack("{sI sI sI sI so sO sO so*}", "asked", (json_int_t)t->asked, "values",
                   (json_int_t)t->values, "bad_lines", (json_int_t)t->refused, "not_answered",
                   (json_int_t)(t->asked - t->judged), "percent", rates, "failed_first", t->classes,
                   "not_answered_by", t->troubles, "advice", said);
}

static void put_counts(struct buf *out, const json_t *counts) {
  const char *class;
  json_t *n;
  json_object_foreach((json_t *)counts, class, n) {
    buf_printf(out, " %s %d", class, (int)json_integer_value(n));
  }
  buf_putc(out, '\n');
}

static void print_rates(const struct ask_tally *t, bool json) {
  struct buf text = {0};
  if (json) {
    json_t *line = json_pack("{so}", "summary", summary_of(t));
    json_io_print(line, JSON_IO_COMPACT);
    json_decref(line);
    return;
  }
  size_t one = t->by[0] + t->by[1], two = one + t->by[2];
  buf_printf(&text, "%zu asked", t->asked);
  if (t->judged > 0 || t->asked == 0) {
    buf_printf(&text, ": first pass %.1f %%, after one correction %.1f %%, after two %.1f %%",
               percent(t->by[0], t->judged), percent(one, t->judged), percent(two, t->judged));
    buf_printf(&text, "; no value %.1f %%", percent(t->judged - t->values, t->judged));
  }
  buf_putc(&text, '\n');
  if (json_object_size(t->classes) > 0) {
    buf_puts(&text, "first answers that failed:");
    put_counts(&text, t->classes);
  }
  if (t->asked > t->judged) {
    buf_printf(&text, "%zu without an end%s:", t->asked - t->judged,
               t->judged > 0 ? ", not in these rates" : "");
    put_counts(&text, t->troubles);
  }
  if (t->refused > 0)
    buf_printf(&text, "%zu line%s could not be asked\n", t->refused, t->refused == 1 ? "" : "s");
  size_t before = text.n;
  put_advice(t, &text);
  if (text.n > before)
    buf_putc(&text, '\n');
  (void)fflush(stdout);
  fputs(buf_c(&text), stderr);
  buf_deinit(&text);
}

/* --- out, in order --- */

static struct slot *ask_batch_slot_of(struct ask_batch *b, size_t line) {
  return &b->slots[line % b->window];
}

static void print_ready(struct ask_batch *b) {
  bool any = false;
  while (b->first < b->next && ask_batch_slot_of(b, b->first)->result != NULL) {
    struct slot *slot = ask_batch_slot_of(b, b->first++);
    json_t *line = json_object();
    json_object_set_new(line, "id", slot->id);
    json_object_update(line, slot->result);
    json_io_print(line, JSON_IO_COMPACT);
    json_decref(line);
    json_decref(slot->result);
    *slot = (struct slot){0};
    any = true;
  }
  if (any)
    (void)fflush(stdout);
}

static void ask_batch_on_answered(void *ctx, const struct ask_job *job) {
  struct ask_batch *b = ctx;
  struct slot *slot = ask_batch_slot_of(b, job->index);
  assert(job->index >= b->first && job->index < b->next);
  assert(slot->result == NULL);
  slot->result = ask_result(job);
  ask_batch_count(&b->tally, slot->result);
  print_ready(b);
}

/* --- in --- */

/* Refuses a line that makes no question. */
static void ask_batch_refuse(struct ask_batch *b, struct slot *slot, const char *code,
                             const char *message) {
  json_t *errors = json_pack("[{ss sI so}]", "code", code, "line", (json_int_t)b->in.number,
                             "message", json_io_string(message));
  slot->result = json_pack("{sn sn si ss so s[]}", "value", "raw", "attempts", 0, "outcome",
                           "bad_line", "errors", errors, "checks");
  b->tally.refused++;
}

/* Builds the workflow with the line's own schema or, if it has none, with that of all lines. */
static struct workflow *ask_batch_workflow_of(const struct ask_batch *b, json_t *schema,
                                              struct err *err) {
  if (schema == NULL || json_is_null(schema)) {
    if (b->spec->workflow != NULL)
      return workflow_ref(b->spec->workflow);
    (void)err_set(err, ERR_USAGE, "\"schema\" is missing, and no --schema was given");
    return NULL;
  }
  json_t *own = schema_in_line(schema, err);
  struct workflow *workflow = own ? b->spec->workflow_of(b->spec->ctx, own, err) : NULL;
  json_decref(own);
  return workflow;
}

static void ask_line(struct ask_batch *b, const json_t *object, struct slot *slot) {
  const json_t *prompt = json_object_get(object, "prompt");
  json_t *schema = json_object_get(object, "schema");
  struct err err = {0};
  json_decref(slot->id);
  slot->id =
      json_object_get(object, "id") ? json_incref(json_object_get(object, "id")) : json_null();
  if (!json_is_string(prompt) || json_string_length(prompt) == 0) {
    ask_batch_refuse(b, slot, "bad_line", "\"prompt\" must be a string that is not empty");
    return;
  }
  if (json_string_length(prompt) > LIMIT_TASK_BYTES) {
    ask_batch_refuse(b, slot, "bad_line", "\"prompt\" is over its limit of 8 MiB");
    return;
  }
  struct workflow *workflow = ask_batch_workflow_of(b, schema, &err);
  if (workflow == NULL ||
      !asking_start(&b->asking, workflow,
                    (struct str){json_string_value(prompt), json_string_length(prompt)},
                    b->next - 1, &err))
    ask_batch_refuse(b, slot, "schema", err.text);
  workflow_unref(workflow);
}

static void ask_batch_take_line(struct ask_batch *b, struct str line) {
  assert(b->next - b->first < b->window);
  struct slot *slot = ask_batch_slot_of(b, b->next++);
  struct err err = {0};
  b->tally.lines++;
  slot->id = json_null();
  if (b->in.too_long) {
    ask_batch_refuse(b, slot, "line_limit", "the line is longer than 64 MiB");
    return;
  }
  json_t *object = json_io_parse("line", line, &err);
  if (object == NULL) {
    char message[sizeof err.text + 32];
    (void)snprintf(message, sizeof message, "column %d: %s", err.column, err.text);
    ask_batch_refuse(b, slot, "bad_line", message);
  } else if (!json_is_object(object)) {
    ask_batch_refuse(b, slot, "bad_line", "the line is not an object {\"id\",\"prompt\"}");
  } else {
    ask_line(b, object, slot);
  }
  json_decref(object);
}

static void ask_batch_on_room(void *ctx) {
  struct ask_batch *b = ctx;
  struct str line;
  while (!b->ended && asking_room(&b->asking) > 0 && b->next - b->first < b->window &&
         !ferror(stdout)) {
    if (ndjson_in_idle(&b->in) && !asking_input(&b->asking, b->in.fd))
      break;
    if (ndjson_in_next(&b->in, &line))
      ask_batch_take_line(b, line);
    else
      b->ended = true;
    print_ready(b);
  }
  if (b->ended || ferror(stdout))
    asking_close(&b->asking);
}

int ask_batch(const struct setup *setup, const struct ask_batch_spec *spec) {
  assert(spec->path != NULL);
  assert(spec->jobs > 0);
  assert(spec->workflow_of != NULL);
  struct ask_batch b = {.spec = spec, .window = spec->jobs * WINDOW_PER_JOB};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  if (!ndjson_in_open(&b.in, spec->path, &err)) {
    (void)cli_fail("ask", &err);
    return STATUS_USAGE;
  }
  if (!asking_init(&b.asking, "ask", setup, spec->logs, spec->jobs, &err)) {
    ndjson_in_close(&b.in);
    (void)cli_fail("ask", &err);
    return STATUS_FAILED;
  }
  b.slots = xcalloc(b.window, sizeof *b.slots);
  b.tally.classes = json_object();
  b.tally.troubles = json_object();
  b.asking.ctx = &b;
  b.asking.room = ask_batch_on_room;
  b.asking.answered = ask_batch_on_answered;
  if (asking_run(&b.asking) > 0)
    status = STATUS_INTERRUPTED;
  print_ready(&b);
  print_rates(&b.tally, spec->json);
  if (b.in.error != 0) {
    (void)err_set_errno(&err, b.in.error, "cannot read %s", spec->path);
    (void)cli_fail("ask", &err);
    status = STATUS_FAILED;
  }
  asking_deinit(&b.asking);
  ndjson_in_close(&b.in);
  for (size_t i = 0; i < b.window; i++) {
    json_decref(b.slots[i].id);
    json_decref(b.slots[i].result);
  }
  free(b.slots);
  json_decref(b.tally.classes);
  json_decref(b.tally.troubles);
  return status;
}
