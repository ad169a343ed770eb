/* segue ask: asks a model for a value that fits a schema: generate, extract, validate, correct. */
#include "audit/ask_trace.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/ndjson_in.h"
#include "cli/schema_in.h"
#include "cli/session_ui.h"
#include "cli/setup.h"
#include "extract/items.h"
#include "extract/schema_check.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "host/paths.h"
#include "host/session_pool.h"
#include "schema/schema.h"
#include "structured/reask.h"
#include "workflow/schemas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- items as they come --- */

/* Prints the items of an array while a model is still writing it.
 *
 * The output is always a prefix of the final value; if it is not, ask_stream_end says so. An item
 * is printed once it is complete and valid. When another answer begins (a correction, a retry),
 * its first items must equal those already printed; they are not repeated, and the first that
 * differs stops the printing until the end. */

struct ask_stream {
  struct item_stream items;
  struct schema *schema; /* for an array with one item, or with the items so far */
  bool by_place;         /* the index decides what an item may be */
  bool json;             /* {"index","item"} a line */
  json_t *printed;
};

/* Begins; the schema's root must be an array. */
static bool ask_stream_init(struct ask_stream *s, const json_t *schema, bool json,
                            struct err *err) {
  assert(schema != NULL);
  json_auto_t *doc = json_clone(schema);
  json_t *root = (json_t *)extract_schema_root(doc);
  *s = (struct ask_stream){.json = json, .printed = json_array()};
  item_stream_init(&s->items, LIMIT_STRUCTURED_BYTES);
  bool is_array = extract_schema_want(doc) == EXTRACT_WANT_ARRAY;
  s->by_place =
      json_object_get(root, "prefixItems") != NULL || json_is_array(json_object_get(root, "items"));
  /* These keywords are about the array as a whole rather than its items. */
  static const char *const keys[] = {"minItems",    "maxItems",    "uniqueItems",     "contains",
                                     "minContains", "maxContains", "unevaluatedItems"};
  for (size_t i = 0; i < ARRAY_LEN(keys); i++)
    json_object_del(root, keys[i]);
  if (is_array)
    s->schema = schema_compile(doc, NULL, NULL, NULL);
  return s->schema != NULL ||
         err_set(err, ERR_USAGE,
                 "--stream prints the items of an array: the schema's root must have type: array");
}

static void print_item(struct ask_stream *s, const json_t *item) {
  if (s->json) {
    json_io_put(
        json_pack("{sI sO}", "index", (json_int_t)json_array_size(s->printed), "item", item));
  } else {
    json_io_print(item, JSON_IO_COMPACT);
  }
  (void)fflush(stdout);
  json_array_append(s->printed, (json_t *)item);
}

static bool passes(const struct ask_stream *s, const json_t *item) {
  json_auto_t *array = s->by_place ? json_clone_top(s->printed) : json_array();
  json_array_append(array, (json_t *)item);
  return schema_valid(s->schema, array);
}

static bool on_item(void *ctx, const json_t *item) {
  struct ask_stream *s = ctx;
  const json_t *before = json_array_get(s->printed, s->items.count);
  if (before != NULL)
    return json_same(before, item);
  if (!passes(s, item))
    return false;
  print_item(s, item);
  return true;
}

/* Prints the rest of the final value. False: what was printed is not a prefix of it, or there is no
 * value (NULL) and something was printed. */
static bool ask_stream_end(struct ask_stream *s, const json_t *value) {
  assert(s->schema != NULL);
  size_t n = json_array_size(s->printed);
  if (!json_is_array(value))
    return n == 0;
  for (size_t i = 0; i < n; i++)
    if (!json_same(json_array_get(s->printed, i), json_array_get(value, i)))
      return false;
  for (size_t i = n; i < json_array_size(value); i++)
    print_item(s, json_array_get(value, i));
  return true;
}

/* --- questions --- */

/* Runs questions whose answers must fit a schema, several at once on one loop. Each is a session of
 * a workflow with one movement, with the same records and recovery as any other.
 *
 *   asking_init(&a, &setup, logs, jobs, &err)   then set ctx and the callbacks
 *   signals = session_pool_run(&a.several)      calls room(), to start questions, until `closing`
 *   session_pool_deinit(&a.several)
 *
 * The first signal stops what runs (answered() comes for each, without a value) and starts nothing
 * more. */

enum { ASKING_JOBS_DEFAULT = 4, ASKING_JOBS_MAX = 64 };

struct asking;

struct ask_job { /* a question, with what its records told */
  struct list_node in_jobs;
  struct asking *asking;
  size_t index; /* the caller's */
  struct session *session;
  bool finished;
  struct ask_trace told;
};

struct asking {
  const struct setup *setup;
  struct session_pool several;
  struct watcher watcher;
  struct list jobs;
  size_t max;
  bool closing, stopped;
  void *ctx;
  /* More questions can be started: any number up to asking_room(), none now, or `closing`. */
  void (*room)(void *ctx);
  void (*answered)(void *ctx, const struct ask_job *job);
  /* Is told that a generation begins (text.p NULL), or that a piece of it came. May be NULL. */
  void (*delta)(void *ctx, const struct ask_job *job, struct str text);
};

static void asking_on_record(void *ctx, const struct record *record, struct str line) {
  struct ask_job *job = ctx;
  long call = (long)record_number(record, MEMBER_CALL);
  json_auto_t *json = record_json(record);
  (void)line;
  ask_trace_feed(&job->told, json);
  if (job->asking->delta && record->type == RECORD_CALL_START &&
      ask_trace_generates(&job->told, call))
    job->asking->delta(job->asking->ctx, job, (struct str){NULL, 0});
}

static void asking_on_trouble(void *ctx, const char *message) {
  (void)ctx;
  cli_say(stderr, "segue ask: %s\n", message);
}

static void asking_on_delta(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct ask_job *job = ctx;
  (void)turn;
  if (!thinking && job->asking->delta && ask_trace_generates(&job->told, call))
    job->asking->delta(job->asking->ctx, job, text);
}

/* --- the loop --- */

static void asking_job_free(struct ask_job *job) {
  session_free(job->session);
  ask_trace_deinit(&job->told);
  free(job);
}

/* Collects finished jobs, asks for more, or ends. */
static void on_turn(void *ctx) {
  struct asking *a = ctx;
  LIST_EACH(struct ask_job, job, in_jobs, &a->jobs) {
    if (!job->finished)
      continue;
    list_remove(&a->jobs, &job->in_jobs);
    a->answered(a->ctx, job);
    asking_job_free(job);
  }
  if (!a->closing && !a->stopped)
    a->room(a->ctx);
  if (a->jobs.count == 0 && (a->closing || a->stopped))
    session_pool_close(&a->several);
}

static void asking_on_finished(void *ctx, struct session *s) {
  struct ask_job *job = ctx;
  (void)s;
  job->finished = true;
  session_pool_wake(&job->asking->several);
}

static void asking_on_stop(void *ctx, const char *reason, const char *message, bool cancel) {
  struct asking *a = ctx;
  a->stopped = true;
  LIST_EACH(struct ask_job, job, in_jobs, &a->jobs) {
    if (!job->finished)
      session_pool_end(job->session, reason, message, cancel);
  }
}

/* logs NULL: nothing is kept. */
static bool asking_init(struct asking *a, const struct setup *setup, const char *logs, size_t jobs,
                        struct err *err) {
  assert(setup != NULL);
  assert(jobs > 0 && jobs <= ASKING_JOBS_MAX);
  char dir[PATHS_BYTES];
  *a = (struct asking){.setup = setup,
                       .max = jobs,
                       .watcher = {.record = asking_on_record,
                                   .trouble = asking_on_trouble,
                                   .delta = asking_on_delta,
                                   .finished = asking_on_finished}};
  if ((logs && !paths_logs(logs, dir, err)) ||
      !session_pool_init(&a->several, logs ? dir : NULL, setup->registry, jobs == 1, err))
    return false;
  a->several.ctx = a;
  a->several.turn = on_turn;
  a->several.stop = asking_on_stop;
  return true;
}

static size_t asking_room(const struct asking *a) {
  assert(a->jobs.count <= a->max);
  return a->closing || a->stopped ? 0 : a->max - a->jobs.count;
}

/* Returns false if it could not be started. */
static bool asking_start(struct asking *a, struct workflow *workflow, struct str prompt,
                         size_t index, struct err *err) {
  assert(workflow != NULL);
  assert(asking_room(a) > 0);
  const struct setup *setup = a->setup;
  struct ask_job *job = xcalloc(1, sizeof *job);
  const struct session_params params = {
      .setup = setup_session(setup), .workflow = workflow, .task = prompt, .config = setup->config};
  job->asking = a;
  job->index = index;
  job->session = host_start(&a->several.solo.host, &params, &a->watcher, job, err);
  if (job->session == NULL) {
    asking_job_free(job);
    return false;
  }
  list_push_front(&a->jobs, &job->in_jobs);
  return true;
}

/* --- the workflow --- */

struct ask_question { /* everything except the schema */
  json_t *structured; /* structured_output without its schema */
  const char *language;
  const char *schema_as; /* or NULL */
};

static struct workflow *ask_workflow_of(const struct ask_question *q, json_t *schema,
                                        struct err *err) {
  json_t *structured = json_clone_top(q->structured);
  json_object_set(structured, "schema", schema);
  json_t *doc =
      json_pack("{ss ss ss* s[{ss ss sb so s{s[s]} s[{ss ss}]}]}", "name", "ask", "language",
                q->language, "schema_as", q->schema_as, "movements", "name", "ask", "instruction",
                "{task}", "bare_prompt", 1, "structured_output", structured, "judge", "stages",
                "phase1_tag", "rules", "condition", "answered", "next", "COMPLETE");
  struct workflow *workflow = workflow_build(doc, err);
  json_decref(doc);
  const char *place = "movements[0].structured_output.";
  size_t n = strlen(place);
  if (workflow == NULL && strncmp(err->text, place, n) == 0) /* the user wrote no such file */
    memmove(err->text, err->text + n, strlen(err->text) - n + 1);
  return workflow;
}

/* --- many questions --- */

/* Answers many questions from NDJSON: lines {"id","prompt","schema"?} in, lines
 * {"id","value","raw","attempts",...} out, in the same order, a few at once; also reports how
 * often the first answer was right. `schema` is a schema or the name of a preset. */

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
  const struct ask_question *question;
  struct workflow *workflow; /* for lines without a schema; NULL: every line must have one */
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

static void ask_batch_count(struct ask_tally *t, const json_t *result) {
  const json_t *first = json_array_get(json_object_get(result, "checks"), 0);
  const char *outcome = cli_word(result, "outcome"), *class = cli_text(first, "outcome");
  size_t attempts = (size_t)json_integer_value(json_object_get(result, "attempts"));
  bool repaired = json_is_true(json_object_get(first, "repaired"));
  t->asked++;
  /* The answer was not judged: a backend's error or an interruption says nothing about prompt,
   * schema and model. */
  if (!str_among(str_from(outcome), "value failed sentinel")) {
    const char *trouble = cli_text(json_object_get(result, "error"), "class");
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
    class = cli_text(result, "reason");
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
  buf_auto_t advice = {0};
  put_advice(t, &advice);
  json_t *said = advice.n > 0 ? json_string(buf_c(&advice)) : NULL;
  json_t *rates = json_pack("{sf sf sf}", "first_pass", percent(t->by[0], t->judged), "after_one",
                            percent(one, t->judged), "after_two", percent(two, t->judged));
  return json_pack("{sI sI sI sI so sO sO so*}", "asked", (json_int_t)t->asked, "values",
                   (json_int_t)t->values, "bad_lines", (json_int_t)t->refused, "not_answered",
                   (json_int_t)(t->asked - t->judged), "percent", rates, "failed_first", t->classes,
                   "not_answered_by", t->troubles, "advice", said);
}

static void put_counts(struct buf *out, const json_t *counts) {
  JSON_MEMBERS(counts, class, n)
    buf_printf(out, " %s %d", class, (int)json_integer_value(n));
  buf_putc(out, '\n');
}

static void print_rates(const struct ask_tally *t, bool json) {
  buf_auto_t text = {0};
  if (json) {
    json_io_put(json_pack("{so}", "summary", summary_of(t)));
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
    buf_printf(&text, "%zu line%s could not be asked\n", t->refused, PLURAL(t->refused));
  size_t before = text.n;
  put_advice(t, &text);
  if (text.n > before)
    buf_putc(&text, '\n');
  (void)fflush(stdout);
  fputs(buf_c(&text), stderr);
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
    json_io_put(line);
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
  slot->result = ask_trace_result(&job->told, session_broken(job->session));
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
    if (b->workflow != NULL)
      return workflow_ref(b->workflow);
    err_set(err, ERR_USAGE, "\"schema\" is missing, and no --schema was given");
    return NULL;
  }
  json_auto_t *own = schema_in_line(schema, err);
  return own ? ask_workflow_of(b->question, own, err) : NULL;
}

static void ask_line(struct ask_batch *b, const json_t *object, struct slot *slot) {
  const json_t *prompt = json_object_get(object, "prompt");
  json_t *schema = json_object_get(object, "schema");
  struct err err = {0};
  json_decref(slot->id);
  slot->id =
      json_object_get(object, "id") ? json_incref(json_object_get(object, "id")) : json_null();
  if (json_view(prompt).n == 0) {
    ask_batch_refuse(b, slot, "bad_line", "\"prompt\" must be a string that is not empty");
    return;
  }
  if (json_string_length(prompt) > LIMIT_TASK_BYTES) {
    ask_batch_refuse(b, slot, "bad_line", "\"prompt\" is over its limit of 8 MiB");
    return;
  }
  struct workflow *workflow = ask_batch_workflow_of(b, schema, &err);
  if (workflow == NULL || !asking_start(&b->asking, workflow, json_view(prompt), b->next - 1, &err))
    ask_batch_refuse(b, slot, "schema", err.text);
  workflow_unref(workflow);
}

static void ask_batch_take_line(struct ask_batch *b, struct str line) {
  assert(b->next - b->first < b->window);
  struct slot *slot = ask_batch_slot_of(b, b->next++);
  struct err err = {0};
  const char *code;
  b->tally.lines++;
  slot->id = json_null();
  json_auto_t *object = ndjson_in_object(&b->in, line, "{\"id\",\"prompt\"}", &code, &err);
  if (object != NULL)
    ask_line(b, object, slot);
  else
    ask_batch_refuse(b, slot, code, err.text);
}

static void ask_batch_on_room(void *ctx) {
  struct ask_batch *b = ctx;
  struct str line;
  while (!b->ended && asking_room(&b->asking) > 0 && b->next - b->first < b->window &&
         !ferror(stdout)) {
    if (ndjson_in_idle(&b->in) && !session_pool_input(&b->asking.several, b->in.fd))
      break;
    if (ndjson_in_next(&b->in, &line))
      ask_batch_take_line(b, line);
    else
      b->ended = true;
    print_ready(b);
  }
  if (b->ended || ferror(stdout))
    b->asking.closing = true;
}

/* --- flags --- */

static json_t *schema_named(const char *word, struct err *err) {
  struct str text = str_from(word);
  if (str_starts(str_trim(text), "{"))
    return json_io_text("--schema", text, JSON_IO_SCHEMA, err);
  if (!preset_is_name(text))
    return json_io_file(word, JSON_IO_SCHEMA, err);
  json_t *schema = preset_schema(text);
  if (schema == NULL)
    err_set(err, ERR_USAGE,
            "there is no built-in schema \"%.80s\": use %s, or a path such as ./%.80s", word,
            preset_names(), word);
  return schema;
}

static bool number_flag(const struct cli_args *args, const char *flag, long min, long max,
                        const char *key, json_t *into, struct err *err) {
  long value;
  if (!cli_number(args, flag, min, max, &value, err))
    return false;
  if (cli_value(args, flag) != NULL)
    json_object_set_new(into, key, json_integer(value));
  return true;
}

static bool read_invariants(const struct cli_args *args, json_t *into, struct err *err) {
  const char *file = cli_value(args, "invariants"), *text;
  const char *schema = cli_value(args, "schema");
  const char *own = schema ? preset_invariant(str_from(schema)) : NULL;
  json_auto_t *list = file ? json_io_file(file, JSON_IO_SCHEMA, err) : json_array();
  if (list == NULL)
    return false;
  if (!json_is_array(list))
    return err_set(err, ERR_USAGE, "%.200s is not a list of invariants", file);
  for (size_t i = 0; (text = cli_values(args, "invariant", i)) != NULL; i++)
    json_array_append_new(list, json_io_string(text));
  if (own != NULL)
    json_array_append_new(list, json_string(own));
  if (json_array_size(list) > 0)
    json_object_set(into, "invariants", list);
  return true;
}

static bool read_reask(const struct cli_args *args, const struct setup *setup, json_t *into,
                       struct err *err) {
  const char *provider = cli_value(args, "reask-provider"), *model = cli_value(args, "reask-model");
  if (provider == NULL && model == NULL)
    return true;
  json_t *reask = json_object();
  json_object_set_new(into, "reask", reask);
  if (provider != NULL) {
    const struct capability *cap =
        capability_find(registry_capabilities(setup->registry), str_from(provider));
    if (cap == NULL || !cap->can_judge)
      return err_set(err, ERR_USAGE, "--reask-provider %.80s: %s", provider,
                     cap ? "it cannot correct an answer" : "there is no such provider");
    json_object_set_new(reask, "provider", json_string(provider));
  }
  if (model != NULL && !cli_is_utf8("--reask-model", model, err))
    return false;
  if (model != NULL)
    json_object_set_new(reask, "model", json_string(model));
  return true;
}

static bool read_question(const struct cli_args *args, const struct setup *setup,
                          struct ask_question *q, struct err *err) {
  const char *on_failure = cli_value(args, "on-failure"), *language = cli_value(args, "language");
  q->language = language ? language : "en";
  if (strcmp(q->language, "en") != 0 && strcmp(q->language, "ja") != 0)
    return err_set(err, ERR_USAGE, "--language must be en or ja");
  q->schema_as = cli_value(args, "schema-as");
  enum describe_form form;
  if (q->schema_as && !describe_form_find(q->schema_as, &form))
    return err_set(err, ERR_USAGE, "--schema-as must be prompt, types or json");
  if (on_failure && strcmp(on_failure, "error") != 0 && strcmp(on_failure, "sentinel") != 0)
    return err_set(err, ERR_USAGE, "--on-failure must be error or sentinel");
  json_object_set_new(q->structured, "on_failure", json_string(on_failure ? on_failure : "error"));
  if (cli_flag(args, "example"))
    json_object_set_new(q->structured, "example", json_true());
  if (cli_flag(args, "repair"))
    json_object_set_new(q->structured, "repair", json_true());
  if (cli_flag(args, "assert-format"))
    json_object_set_new(q->structured, "assert_format", json_true());
  if (cli_flag(args, "keep-valid"))
    json_object_set_new(q->structured, "keep_valid", json_true());
  if (!number_flag(args, "max-reasks", 0, LIMIT_REASK_COUNT, "max_reasks", q->structured, err) ||
      !number_flag(args, "token-budget", 1, LIMIT_TOKEN_BUDGET, "token_budget", q->structured,
                   err) ||
      !number_flag(args, "time-budget-ms", 1, LIMIT_CALL_WALL_MS, "time_budget_ms", q->structured,
                   err))
    return false;
  if (json_integer_value(json_object_get(q->structured, "max_reasks")) > REASK_WARN_COUNT)
    fprintf(stderr, "segue ask: warning: what %d corrections did not fix, more of them rarely do\n",
            REASK_WARN_COUNT);
  return read_invariants(args, q->structured, err) && read_reask(args, setup, q->structured, err);
}

/* --- one question --- */

struct single {
  struct asking asking;
  struct workflow *workflow;
  struct str prompt;
  struct ask_stream *stream; /* or NULL */
  json_t *result;
  struct err err;
  char path[PATHS_BYTES]; /* where its log is */
};

static void ask_on_room(void *ctx) {
  struct single *s = ctx;
  if (!asking_start(&s->asking, s->workflow, s->prompt, 0, &s->err))
    s->err.code = s->err.code ? s->err.code : ERR_IO;
  s->asking.closing = true;
}

static void ask_on_answered(void *ctx, const struct ask_job *job) {
  struct single *s = ctx;
  s->result = ask_trace_result(&job->told, session_broken(job->session));
  print_into(s->path, sizeof s->path, "%s", session_log_name(job->session));
}

static void ask_on_delta(void *ctx, const struct ask_job *job, struct str text) {
  struct single *s = ctx;
  (void)job;
  if (s->stream == NULL)
    return;
  assert(s->stream->schema != NULL);
  if (text.p == NULL) { /* another answer begins */
    item_stream_deinit(&s->stream->items);
    item_stream_init(&s->stream->items, LIMIT_STRUCTURED_BYTES);
  } else {
    item_stream_feed(&s->stream->items, text.p, text.n, on_item, s->stream);
  }
}

static int print_result(struct single *s, bool json) {
  bool terminal = isatty(STDOUT_FILENO) == 1;
  enum json_io_form form = terminal ? JSON_IO_TERMINAL : JSON_IO_COMPACT;
  int status = ask_trace_has_value(s->result) ? STATUS_COMPLETE : STATUS_FAILED;
  const json_t *value = json_object_get(s->result, "value");
  bool is_value = strcmp(cli_word(s->result, "outcome"), "value") == 0;
  if (s->stream != NULL && !ask_stream_end(s->stream, is_value ? value : NULL)) {
    fprintf(stderr, "segue ask: %zu item%s printed that the final answer does not start with\n",
            json_array_size(s->stream->printed),
            json_array_size(s->stream->printed) == 1 ? " was" : "s were");
    status = STATUS_FAILED;
  }
  if (json)
    json_io_print(s->result, form);
  else if (ask_trace_has_value(s->result) && !(s->stream != NULL && is_value))
    json_io_print(value, form);
  if (!ask_trace_has_value(s->result))
    ui_complain("ask", s->result);
  if (json_object_get(s->result, "ambiguous"))
    fputs("segue ask: another value that fits comes before it: this is the last one\n", stderr);
  return status;
}

static int ask_one(const struct setup *setup, const struct cli_args *args, struct str prompt,
                   struct ask_stream *stream) {
  struct single s = {.workflow = setup->workflow, .prompt = prompt, .stream = stream};
  const char *logs = cli_value(args, "logs");
  int status = STATUS_FAILED;
  if (!asking_init(&s.asking, setup, logs, 1, &s.err))
    return cli_fail_with(STATUS_FAILED, "ask", &s.err);
  s.asking.ctx = &s;
  s.asking.room = ask_on_room;
  s.asking.answered = ask_on_answered;
  s.asking.delta = ask_on_delta;
  int signals = session_pool_run(&s.asking.several);
  if (s.result != NULL) {
    status = print_result(&s, cli_flag(args, "json"));
    if (logs != NULL)
      paths_note_last(s.path, ".");
  } else if (s.err.code != ERR_NONE) {
    (void)cli_fail("ask", &s.err);
  }
  session_pool_deinit(&s.asking.several);
  json_decref(s.result);
  return signals > 0 && status != STATUS_COMPLETE ? STATUS_INTERRUPTED : status;
}

/* --- the command --- */

static bool read_prompt(const struct cli_args *args, struct buf *prompt, struct err *err) {
  const char *word = args->word_count > 0 ? args->words[0] : "-";
  if (strcmp(word, "-") != 0)
    buf_puts(prompt, word);
  else if (!file_read_fd(STDIN_FILENO, "standard input", LIMIT_TASK_BYTES, prompt, err))
    return false;
  if (str_trim(buf_view(prompt)).n == 0)
    return err_set(err, ERR_USAGE,
                   "there is no prompt: give it as an argument or on standard input");
  return utf8_valid(prompt->p, prompt->n) || err_set(err, ERR_USAGE, "the prompt is not UTF-8");
}

static int ask_batch(const struct cli_args *args, const struct setup *setup,
                     const struct ask_question *q, bool has_schema) {
  const char *path = cli_value(args, "batch");
  struct err err = {0};
  long jobs = ASKING_JOBS_DEFAULT;
  if (!cli_number(args, "jobs", 1, ASKING_JOBS_MAX, &jobs, &err))
    return cli_fail("ask", &err);
  size_t count = (size_t)jobs;
  struct ask_batch b = {.question = q,
                        .workflow = has_schema ? setup->workflow : NULL,
                        .window = count * WINDOW_PER_JOB};
  int status = STATUS_COMPLETE;
  if (!ndjson_in_open(&b.in, path, &err))
    return cli_fail_with(STATUS_USAGE, "ask", &err);
  if (!asking_init(&b.asking, setup, cli_value(args, "logs"), count, &err)) {
    ndjson_in_close(&b.in);
    return cli_fail_with(STATUS_FAILED, "ask", &err);
  }
  b.slots = xcalloc(b.window, sizeof *b.slots);
  b.tally.classes = json_object();
  b.tally.troubles = json_object();
  b.asking.ctx = &b;
  b.asking.room = ask_batch_on_room;
  b.asking.answered = ask_batch_on_answered;
  if (session_pool_run(&b.asking.several) > 0)
    status = STATUS_INTERRUPTED;
  print_ready(&b);
  print_rates(&b.tally, cli_flag(args, "json"));
  if (b.in.error != 0) {
    err_set_errno(&err, b.in.error, "cannot read %s", path);
    status = cli_fail_with(STATUS_FAILED, "ask", &err);
  }
  session_pool_deinit(&b.asking.several);
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

static int single(const struct cli_args *args, struct setup *setup, const json_t *schema) {
  struct ask_stream stream;
  buf_auto_t prompt = {0};
  struct err err = {0};
  bool streams = cli_flag(args, "stream");
  int status;
  bool ok = !streams || ask_stream_init(&stream, schema, cli_flag(args, "json"), &err);
  if (ok && read_prompt(args, &prompt, &err))
    status = ask_one(setup, args, buf_view(&prompt), streams ? &stream : NULL);
  else
    status = cli_fail("ask", &err);
  if (streams) {
    item_stream_deinit(&stream.items);
    schema_free(stream.schema);
    json_decref(stream.printed);
  }
  return status;
}

static bool check_flags(const struct cli_args *args, struct err *err) {
  bool batches = cli_value(args, "batch") != NULL;
  if (batches && cli_flag(args, "stream"))
    return err_set(err, ERR_USAGE, "--stream works for one question, not with --batch");
  if (batches && args->word_count > 0)
    return err_set(err, ERR_USAGE,
                   "--batch reads its prompts from the file: do not give another one");
  if (!batches && cli_value(args, "jobs") != NULL)
    return err_set(err, ERR_USAGE, "--jobs needs --batch");
  if (!batches && cli_value(args, "schema") == NULL)
    return err_set(err, ERR_USAGE, "give --schema FILE, or the name of a built-in one: %s",
                   preset_names());
  return true;
}

static bool has_provider(const struct setup *setup, struct err *err) {
  struct str provider, model;
  core_backend(setup->workflow, setup->config, 0, &provider, &model);
  return provider.n > 0 ||
         err_set(
             err, ERR_USAGE,
             "which provider should be asked? Give --provider, or set one in the configuration");
}

static int ask_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  json_auto_t *structured = json_object(), *schema = NULL;
  struct ask_question q = {.structured = structured};
  struct err err = {0};
  int status;
  if (!setup_flags(&setup, args, &status))
    return status;
  const char *name = cli_value(args, "schema");
  bool ok = check_flags(args, &err) && read_question(args, &setup, &q, &err);
  if (ok)
    schema = name ? schema_named(name, &err) : json_pack("{ss}", "type", "object");
  if ((!ok || schema == NULL) && err.code == ERR_IO)
    err.code = ERR_INVALID; /* the user named a folder or a device instead of a file */
  if (ok && schema != NULL)
    setup.workflow = ask_workflow_of(&q, schema, &err);
  if (setup.workflow == NULL || !has_provider(&setup, &err) || !setup_preflight(&setup, &err))
    return cli_fail("ask", &err);
  if (cli_value(args, "batch") != NULL)
    return ask_batch(args, &setup, &q, name != NULL);
  return single(args, &setup, schema);
}

const struct cli_command cmd_ask = {COMMAND_ASK, .run = ask_run};
