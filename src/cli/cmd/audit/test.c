/* segue test: runs judgments as a regression suite, cases against providers. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/json_io.h"
#include "cli/ndjson_in.h"
#include "cli/setup.h"
#include "format/json_object.h"
#include "host/single_session.h"
#include "judge/chain.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- one trial --- */

/* Makes one judgment of a case, as `segue judge` does, without keeping or logging anything.
 *
 * A case is a line of NDJSON: {"id"?, "text" or "report", "rules": ["approved", {"condition":
 * ...}], "expected"?: 0 to n, "movement"?}; "report" comes before "text". An answer from `segue
 * audit --errors --export` that is no judge's has "errors" and no "rules": it is read as no
 * judgment, and cannot be run. */

struct trial_case {
  json_t *line; /* the texts below are borrowed from it; owned */
  const char *id, *movement;
  struct str text;
  json_t *rules;    /* conditions; owned */
  bool no_judgment; /* an exported answer that should have given a movement's value */
  bool expects;
  long expected; /* 0: none of the rules */
};

struct trial_got {
  bool readable; /* false: no judge could be read or asked; `why` says more */
  bool stopped;  /* a signal ended it */
  long rule;     /* 0: none */
  char method[32];
  struct buf reply, why; /* a judge's last reply, as it came */
};

enum { PROVIDERS_MAX = 16, REPEAT_MAX = 100, ID_COLUMNS = 32, ID_MOST = 80, CELL_COLUMNS = 14 };

/* Names the results that one case can have with one provider. */
enum result { RESULT_PASS, RESULT_WRONG, RESULT_UNREADABLE, RESULT_FLAKY, RESULT_COUNT };
static const char *const result_names[RESULT_COUNT] = {"pass", "wrong", "unreadable", "flaky"};

struct cell {
  enum result result;
  long got[REPEAT_MAX];  /* rules; -1: unreadable */
  struct buf reply, why; /* those of the first miss */
  char method[32];
};

struct testing {
  struct setup *setup;
  const char *providers[PROVIDERS_MAX]; /* one may be NULL: the configured one */
  size_t provider_count;
  const char *model;
  json_t *stages; /* or NULL */
  long repeat;
  bool json, stopped;
  FILE *kept; /* the cases, checked */
  unsigned long long kept_lines;
  struct gate gate;
  int id_columns; /* the widest name so far: exported cases have long names whose ends count */
  size_t cases, skipped; /* skipped: exported answers that are not judgments */
  size_t results[PROVIDERS_MAX][RESULT_COUNT];
};

static const char *provider_name(const struct testing *t, size_t i) {
  return t->providers[i] ? t->providers[i] : "(configured)";
}

/* --- cases --- */

static bool trial_rules(struct trial_case *c, const json_t *rules, struct err *err) {
  c->rules = json_array();
  JSON_EACH(rules, i, rule) {
    json_t *condition = json_is_string(rule) ? rule : json_at(rule, "condition");
    if (!json_is_string(condition))
      return err_set(err, ERR_USAGE,
                     "\"rules\" must contain conditions: texts, or {\"condition\": text}");
    json_array_append(c->rules, condition);
  }
  return json_array_size(c->rules) > 0 ||
         err_set(err, ERR_USAGE, "\"rules\" must be a list of conditions");
}

static bool trial_case_read(struct trial_case *c, struct str line, struct err *err) {
  *c = (struct trial_case){.line = json_io_parse("case", line, err)};
  if (c->line == NULL)
    return false;
  const json_t *report = json_at(c->line, "report"), *expected = json_at(c->line, "expected");
  const json_t *text = report != NULL ? report : json_at(c->line, "text");
  if (!json_is_string(text))
    return err_set(err, ERR_USAGE, "\"text\" must be a string");
  c->text = json_view(text);
  c->id = json_string_value(json_at(c->line, "id"));
  c->movement = json_string_value(json_at(c->line, "movement"));
  c->no_judgment = json_is_array(json_at(c->line, "errors")) && json_at(c->line, "rules") == NULL;
  if (c->no_judgment)
    return true;
  if (!trial_rules(c, json_at(c->line, "rules"), err))
    return false;
  c->expects = expected != NULL;
  c->expected = (long)json_integer_value(expected);
  bool fits = c->expected >= 0 && c->expected <= (long)json_array_size(c->rules);
  return !c->expects || json_is_null(expected) || (json_is_integer(expected) && fits) ||
         err_set(err, ERR_USAGE,
                 "\"expected\" must be a rule's number, or 0 or null if none holds");
}

static void trial_case_deinit(struct trial_case *c) {
  json_decref(c->line);
  json_decref(c->rules);
  *c = (struct trial_case){0};
}

/* --- running --- */

struct trial {
  struct single_session solo;
  struct trial_got *got;
};

static void trial_on_record(void *ctx, const struct record *record, struct str line) {
  struct trial_got *got = ((struct trial *)ctx)->got;
  (void)line;
  if (record->type == RECORD_CALL_END) { /* the first answer is the text that is judged */
    buf_clear(&got->reply);
    if (record_number(record, MEMBER_CALL) > 1)
      buf_str(&got->reply, record_text(record, MEMBER_TEXT));
  } else if (record->type == RECORD_JUDGMENT) {
    got->readable = chain_was_decided(record_tree(record, MEMBER_STAGES));
    got->rule = (long)record_number(record, MEMBER_RULE);
    print_into(got->method, sizeof got->method, "%s", record_text_c(record, MEMBER_METHOD));
    buf_str(&got->why, record_text(record, MEMBER_REASON));
  } else if (record->type == RECORD_SESSION_STOP && !got->readable) {
    buf_str(&got->why, record_text(record, MEMBER_MESSAGE));
  }
}

static void trial_on_finished(void *ctx, struct session *s) {
  (void)s;
  single_session_finished(&((struct trial *)ctx)->solo);
}

static struct workflow *trial_workflow(const struct trial_case *c, const struct testing *t,
                                       size_t provider, struct err *err) {
  const char *name = c->movement && c->movement[0] ? c->movement : "step";
  json_t *rules = json_array();
  json_t *judge =
      json_pack("{ss* ss* sO* sO*}", "provider", t->providers[provider], "model", t->model,
                "stages", t->stages, "options", json_object_get(t->setup->config, "options"));
  JSON_EACH(c->rules, i, condition) {
    json_array_append_new(rules, json_pack("{sO ss}", "condition", condition, "next", "COMPLETE"));
  }
  json_t *doc =
      json_pack("{ss ss s[{ss s[s] so so}]}", "name", "test", "initial_movement", name, "movements",
                "name", name, "command", "given", "judge", judge, "rules", rules);
  struct workflow *wf = workflow_build(doc, err);
  json_decref(doc);
  return wf;
}

static bool trial_session(const struct trial_case *c, struct setup *setup, struct trial_got *got,
                          struct err *err) {
  /* The stop reports a trouble. */
  static const struct watcher watcher = {.record = trial_on_record, .finished = trial_on_finished};
  struct trial t = {.got = got};
  if (!single_session_init(&t.solo, NULL, setup->registry, err))
    return false;
  const struct session_params params = {
      .setup = {.cwd = setup->cwd, .scenario = setup->has_scenario ? &setup->scenario : NULL},
      .workflow = setup->workflow,
      .task = STR(""),
      .config = setup->config};
  struct session *s = t.solo.session = host_start(&t.solo.host, &params, &watcher, &t, err);
  bool ok = s != NULL;
  if (ok) {
    host_answer(s, c->text);
    got->stopped = single_session_run(&t.solo, NULL, NULL) > 0;
    ok = session_broken(s) == NULL;
    if (!ok)
      *err = *session_broken(s);
  }
  single_session_deinit(&t.solo);
  return ok;
}

/* Makes the case the workflow of the setup, until trial_over. */
static bool trial_begin(const struct trial_case *c, const struct testing *t, size_t provider,
                        struct err *err) {
  assert(c->rules != NULL);
  struct setup *setup = t->setup;
  json_object_del(setup->config, "provider");
  json_object_del(setup->config, "model");
  setup->workflow = trial_workflow(c, t, provider, err);
  return setup->workflow != NULL && setup_preflight(setup, err);
}

static void trial_over(struct setup *setup) {
  workflow_unref(setup->workflow);
  setup->workflow = NULL;
}

/* Returns whether the judges can answer at all, as far as that is seen without asking them. */
static bool trial_ready(const struct setup *setup, struct err *err) {
  struct preflight p = setup_preflight_of(setup);
  p.looks = p.answered = true;
  return preflight_passes(&p, err);
}

/* Says what would keep a case from being run: its rules, the provider. */
static bool trial_check(const struct trial_case *c, const struct testing *t, size_t provider,
                        struct err *err) {
  bool ok = trial_begin(c, t, provider, err) && trial_ready(t->setup, err);
  trial_over(t->setup);
  return ok;
}

/* Makes the judgment. Takes provider and model out of the config of the setup. */
static bool trial_run(const struct trial_case *c, const struct testing *t, size_t provider,
                      struct trial_got *got, struct err *err) {
  *got = (struct trial_got){.reply = {.max = LIMIT_JUDGE_TEXT_BYTES}};
  bool ok = trial_begin(c, t, provider, err) && trial_session(c, t->setup, got, err);
  trial_over(t->setup);
  return ok;
}

static void trial_got_deinit(struct trial_got *got) {
  buf_deinit(&got->reply);
  buf_deinit(&got->why);
}

/* --- the command --- */

/* --- one cell --- */

static bool is_right(const struct trial_case *c, long got) {
  return c->expects ? got == c->expected : got >= 0;
}

static enum result result_of(const struct trial_case *c, const struct cell *cell, long n) {
  long right = 0, unreadable = 0;
  bool same = true;
  for (long i = 0; i < n; i++) {
    right += is_right(c, cell->got[i]);
    unreadable += cell->got[i] < 0;
    same &= cell->got[i] == cell->got[0];
  }
  if (!same)
    return RESULT_FLAKY;
  if (right == n)
    return RESULT_PASS;
  return unreadable > 0 ? RESULT_UNREADABLE : RESULT_WRONG;
}

static bool test_cell(struct testing *t, const struct trial_case *c, size_t provider,
                      struct cell *cell, struct err *err) {
  bool missed = false;
  for (long i = 0; i < t->repeat; i++) {
    struct trial_got got;
    if (!trial_run(c, t, provider, &got, err)) {
      trial_got_deinit(&got);
      return false;
    }
    t->stopped |= got.stopped;
    cell->got[i] = got.readable ? got.rule : -1;
    bool other = !c->expects && cell->got[i] != cell->got[0];
    if (!missed && (other || !is_right(c, cell->got[i]))) {
      missed = true;
      buf_str(&cell->reply, buf_view(&got.reply));
      buf_str(&cell->why, buf_view(&got.why));
      print_into(cell->method, sizeof cell->method, "%s", got.method);
    }
    trial_got_deinit(&got);
    if (t->stopped)
      return err_set(err, ERR_USAGE, "interrupted");
  }
  cell->result = result_of(c, cell, t->repeat);
  return true;
}

/* --- telling --- */

static void got_text(const struct testing *t, const struct cell *cell, struct buf *out) {
  for (long i = 0; i < t->repeat; i++) {
    if (i > 0 && cell->result != RESULT_FLAKY)
      break;
    buf_puts(out, i > 0 ? "," : "");
    if (cell->got[i] < 0)
      buf_puts(out, "?");
    else
      buf_printf(out, "%ld", cell->got[i]);
  }
}

static void show_head(const struct testing *t) {
  buf_auto_t line = {0};
  (void)cli_cell(&line, STR("case"), t->id_columns, t->id_columns);
  for (size_t i = 0; i < t->provider_count; i++) {
    buf_putc(&line, ' ');
    (void)cli_cell(&line, str_from(provider_name(t, i)), CELL_COLUMNS, CELL_COLUMNS);
  }
  puts(buf_c(&line));
}

static void show_case(struct testing *t, const struct trial_case *c, const char *id,
                      const struct cell *cells) {
  bool colours = cli_colours(STDOUT_FILENO);
  buf_auto_t line = {0};
  buf_auto_t name = {0};
  int wide = cli_fit(&name, str_from(id), ID_MOST);
  bool first = t->id_columns == 0;
  t->id_columns = wide > t->id_columns ? wide : t->id_columns;
  if (t->id_columns < ID_COLUMNS)
    t->id_columns = ID_COLUMNS;
  if (first)
    show_head(t);
  (void)cli_cell(&line, str_from(id), t->id_columns, t->id_columns);
  for (size_t i = 0; i < t->provider_count; i++) {
    buf_auto_t text = {0};
    bool pass = cells[i].result == RESULT_PASS;
    buf_printf(&text, "%s", result_names[cells[i].result]);
    if (!pass) {
      buf_putc(&text, ' ');
      got_text(t, &cells[i], &text);
    }
    buf_printf(&line, " %s", cli_paint(colours, pass ? COLOUR_GREEN : COLOUR_RED));
    (void)cli_cell(&line, buf_view(&text), CELL_COLUMNS, CELL_COLUMNS);
    buf_puts(&line, cli_paint(colours, COLOUR_NONE));
  }
  puts(buf_c(&line));
  for (size_t i = 0; i < t->provider_count; i++) {
    if (cells[i].result == RESULT_PASS)
      continue;
    buf_auto_t miss = {0};
    buf_puts(&miss, "    ");
    (void)cli_fit(&miss, str_from(provider_name(t, i)), 20);
    if (c->expects)
      buf_printf(&miss, ", expected %ld", c->expected);
    buf_puts(&miss, ": ");
    (void)cli_fit(&miss, buf_view(cells[i].reply.n > 0 ? &cells[i].reply : &cells[i].why), 160);
    puts(buf_c(&miss));
  }
}

static void print_cell_json(const struct testing *t, const struct trial_case *c, const char *id,
                            size_t provider, const struct cell *cell) {
  json_t *got = json_array();
  for (long i = 0; i < t->repeat; i++)
    json_array_append_new(got, cell->got[i] < 0 ? json_null() : json_integer(cell->got[i]));
  json_t *told =
      json_pack("{so so ss so so}", "id", json_io_string(id), "provider",
                json_io_string(provider_name(t, provider)), "result", result_names[cell->result],
                "expected", c->expects ? json_integer(c->expected) : json_null(), "got", got);
  if (cell->result != RESULT_PASS) {
    json_object_set_new(told, "reply", json_io_string(buf_c(&cell->reply)));
    json_object_set_new(told, "why", json_io_string(buf_c(&cell->why)));
  }
  json_io_put(told);
}

static void test_put_case(struct testing *t, const struct trial_case *c, const char *id, size_t i,
                          const struct cell *cell) {
  buf_auto_t got = {0}, why = {0};
  struct gate_case one = {.class = provider_name(t, i), .name = id};
  if (cell->result != RESULT_PASS) {
    got_text(t, cell, &got);
    if (c->expects)
      buf_printf(&why, "expected %ld, ", c->expected);
    buf_printf(&why, "got %s", buf_c(&got));
    one.type = result_names[cell->result];
    one.why = buf_c(&why);
    one.body = buf_c(cell->reply.n > 0 ? &cell->reply : &cell->why);
  }
  gate_put(&t->gate, &one);
}

/* --- cases --- */

static bool test_case(struct testing *t, struct str line, unsigned long long number,
                      struct err *err) {
  AUTO(trial_case_deinit) struct trial_case c = {0};
  struct cell *cells = xcalloc(t->provider_count, sizeof *cells);
  char id[64];
  bool ok = trial_case_read(&c, line, err);
  print_into(id, sizeof id, "line %llu", number);
  const char *name = ok && c.id != NULL ? c.id : id;
  bool judged = ok && !c.no_judgment;
  struct gate_case left_out = {.name = name, .skipped = "no judgment: a movement's value"};
  for (size_t i = 0; ok && !judged && i < t->provider_count; i++) {
    left_out.class = provider_name(t, i);
    gate_put(&t->gate, &left_out);
  }
  for (size_t i = 0; ok && judged && i < t->provider_count; i++)
    ok = test_cell(t, &c, i, &cells[i], err);
  for (size_t i = 0; ok && judged && i < t->provider_count; i++) {
    t->results[i][cells[i].result]++;
    if (t->json)
      print_cell_json(t, &c, name, i, &cells[i]);
    test_put_case(t, &c, name, i, &cells[i]);
  }
  if (ok && judged && !t->json)
    show_case(t, &c, name, cells);
  t->cases += ok && judged;
  t->skipped += ok && !judged;
  for (size_t i = 0; i < t->provider_count; i++) {
    buf_deinit(&cells[i].reply);
    buf_deinit(&cells[i].why);
  }
  free(cells);
  return ok || err_wrap(err, "line %llu", number);
}

/* Checks a case as far as this is possible without asking anybody. */
static bool check_case(struct testing *t, struct str line, unsigned long long number,
                       struct err *err) {
  AUTO(trial_case_deinit) struct trial_case c = {0};
  bool ok = trial_case_read(&c, line, err);
  for (size_t i = 0; ok && !c.no_judgment && i < t->provider_count; i++)
    ok = trial_check(&c, t, i, err);
  return ok || err_wrap(err, "line %llu", number);
}

/* Does something with each line of the cases. */
static bool each_case(struct testing *t, struct ndjson_in *in, const char *path,
                      bool (*one)(struct testing *t, struct str line, unsigned long long number,
                                  struct err *err),
                      struct err *err) {
  struct str line;
  bool ok = true;
  while (ok && ndjson_in_next(in, &line)) {
    if (in->too_long)
      ok = err_set(err, ERR_LIMIT, "line %llu is too long", in->number);
    else
      ok = one(t, line, in->number, err);
    for (; ok && t->kept_lines < in->number; t->kept_lines++) /* its number stays the same */
      if (t->kept_lines + 1 < in->number || fwrite(line.p, 1, line.n, t->kept) == line.n)
        putc('\n', t->kept);
  }
  if (ok && in->error != 0)
    ok = err_set_errno(err, in->error, "cannot read %s", path);
  ndjson_in_close(in);
  return ok;
}

/* Runs the cases. All are checked before the first call is paid for, and kept meanwhile: standard
 * input is read once. */
static bool test_cases(struct testing *t, const char *path, struct err *err) {
  struct ndjson_in in;
  if (!ndjson_in_open(&in, path, err))
    return false;
  t->kept = tmpfile();
  if (t->kept == NULL) {
    ndjson_in_close(&in);
    return err_set_errno(err, errno, "no temporary file for the cases");
  }
  if (!each_case(t, &in, path, check_case, err))
    return false;
  if (fflush(t->kept) != 0 || ferror(t->kept) || fseek(t->kept, 0, SEEK_SET) != 0)
    return err_set_errno(err, errno, "cannot keep the cases in a temporary file");
  in = (struct ndjson_in){.fd = fileno(t->kept)};
  if (!each_case(t, &in, path, test_case, err))
    return false;
  if (t->cases > 0)
    return true;
  if (t->skipped == 0) /* a suite that tests nothing must not pass */
    return err_set(err, ERR_USAGE, "%s holds no case", path);
  return err_set(err, ERR_USAGE,
                 "%s holds no judgment: %zu answers that were to be a movement's value (check them "
                 "with: segue check --batch)",
                 path, t->skipped);
}

static size_t test_sum(struct testing *t) {
  size_t missed = 0;
  for (size_t i = 0; i < t->provider_count; i++) {
    const size_t *n = t->results[i];
    missed += n[RESULT_WRONG] + n[RESULT_UNREADABLE] + n[RESULT_FLAKY];
    gate_check(&t->gate, provider_name(t, i),
               json_pack("{sI sI sI sI sI sI}", "cases", (json_int_t)t->cases, "pass",
                         (json_int_t)n[RESULT_PASS], "wrong", (json_int_t)n[RESULT_WRONG],
                         "unreadable", (json_int_t)n[RESULT_UNREADABLE], "flaky",
                         (json_int_t)n[RESULT_FLAKY], "skipped", (json_int_t)t->skipped));
    if (t->json) {
      json_io_put(
          json_pack("{so sI sI sI sI sI sI}", "provider", json_io_string(provider_name(t, i)),
                    "cases", (json_int_t)t->cases, "pass", (json_int_t)n[RESULT_PASS], "wrong",
                    (json_int_t)n[RESULT_WRONG], "unreadable", (json_int_t)n[RESULT_UNREADABLE],
                    "flaky", (json_int_t)n[RESULT_FLAKY], "skipped", (json_int_t)t->skipped));
      continue;
    }
    if (i == 0)
      putchar('\n');
    cli_say(stdout, "sum: %s: %zu of %zu pass, %zu wrong, %zu unreadable, %zu flaky\n",
            provider_name(t, i), n[RESULT_PASS], t->cases, n[RESULT_WRONG], n[RESULT_UNREADABLE],
            n[RESULT_FLAKY]);
  }
  if (t->skipped > 0 && !t->json)
    printf(
        "skipped: %zu answer%s that %s to be a movement's value and are no judgments; leave them "
        "out with: segue audit --errors --method structured_output,ai_judge --export FILE\n",
        t->skipped, PLURAL(t->skipped), t->skipped == 1 ? "was" : "were");
  return missed;
}

/* --- the command --- */

static bool test_options(struct testing *t, const struct cli_args *args, struct err *err) {
  const char *provider;
  t->json = cli_flag(args, "json");
  t->model = cli_value(args, "model") ? cli_value(args, "model") : t->setup->user.model;
  for (; (provider = cli_values(args, "provider", t->provider_count)) != NULL;
       t->provider_count++) {
    if (t->provider_count == PROVIDERS_MAX || strchr(provider, '=') != NULL)
      return err_set(err, ERR_USAGE, "--provider: write up to %d names", PROVIDERS_MAX);
    t->providers[t->provider_count] = provider;
  }
  if (t->provider_count == 0)
    t->providers[t->provider_count++] = t->setup->user.provider;
  t->repeat = 1;
  return cli_number(args, "repeat", 1, REPEAT_MAX, &t->repeat, err) &&
         setup_stages(cli_value(args, "stages"), &t->stages, err);
}

static int test_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  struct testing t = {.setup = &setup};
  struct err err = {0};
  int status;
  cli_errors_as_json(cli_flag(args, "json"));
  if (!setup_flags(&setup, args, &status))
    return status;
  bool ok = gate_begin(&t.gate, "test", args, &err) && test_options(&t, args, &err) &&
            test_cases(&t, args->words[0], &err);
  bool fails = ok && test_sum(&t) > 0 && t.gate.expr == NULL; /* else the expression decides */
  status = ok && !fails ? STATUS_COMPLETE : STATUS_FAILED;
  if (!ok)
    status = cli_fail("test", &err);
  if (t.stopped)
    status = STATUS_INTERRUPTED;
  if (t.kept != NULL)
    (void)fclose(t.kept);
  json_decref(t.stages);
  return gate_end(&t.gate, status);
}

const struct cli_command cmd_test = {COMMAND_TEST, .run = test_run};
