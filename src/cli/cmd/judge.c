/* segue judge: judges one text without a workflow file. It makes a workflow of one command movement
 * and supplies its answer; the same core, host and chain do the rest. */
#include "base/file.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/setup.h"
#include "extract/tag.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/paths.h"
#include "host/single_session.h"

#include <string.h>
#include <unistd.h>

struct judging {
  struct single_session *solo;
  json_t *judgment; /* the record */
  json_t *stop;     /* session_stop or session_end */
};

static void judge_on_record(void *ctx, const struct record *record, struct str line) {
  struct judging *j = ctx;
  (void)line;
  if (record->type == RECORD_JUDGMENT)
    j->judgment = record_json(record);
  else if (record->type == RECORD_SESSION_STOP || record->type == RECORD_SESSION_END)
    j->stop = record_json(record);
}

static void judge_on_trouble(void *ctx, const char *message) {
  (void)ctx;
  cli_say(stderr, "segue judge: %s\n", message); /* it may hold a provider's words */
}

static void judge_on_finished(void *ctx, struct session *s) {
  struct judging *j = ctx;
  (void)s;
  single_session_finished(j->solo);
}

static bool build_workflow(struct setup *setup, const struct cli_args *args, struct err *err) {
  const char *name = cli_value_or(args, "name", "step"), *rule;
  const char *language = cli_value_or(args, "language", "en");
  const char *provider = cli_text(setup->config, "provider");
  if (provider == NULL)
    provider = setup->user.provider;
  const char *model = cli_value(args, "model");
  json_auto_t *rules = json_array(), *stages = NULL;
  long count = 0;
  bool ok = true;
  for (size_t i = 0; ok && (rule = cli_values(args, "rule", i)) != NULL; i++) {
    if (!utf8_valid(rule, strlen(rule)))
      ok = err_set(err, ERR_USAGE, "--rule %zu is not UTF-8", i + 1);
    else
      json_array_append_new(rules, json_pack("{ss ss}", "condition", rule, "next", "COMPLETE"));
  }
  if (ok && json_array_size(rules) == 0)
    ok = err_set(err, ERR_USAGE, "give at least one --rule");
  ok = ok && setup_stages(cli_value(args, "stages"), &stages, err);
  ok = ok && cli_number(args, "max-reasks", 0, LIMIT_REASK_COUNT, &count, err);
  if (ok && (!utf8_valid(name, strlen(name)) || strlen(name) > LIMIT_NAME_BYTES || !name[0]))
    ok = err_set(err, ERR_USAGE, "--name must be UTF-8, 1 to %u bytes", LIMIT_NAME_BYTES);
  if (ok && cli_value(args, "mark") != NULL &&
      tag_mark_letter(str_from(cli_value(args, "mark"))) == 0)
    ok = err_set(err, ERR_USAGE,
                 "--mark must be a consonant (not l or y) and three consonants or digits 2-9");
  if (ok && strcmp(language, "en") != 0 && strcmp(language, "ja") != 0)
    ok = err_set(err, ERR_USAGE, "--language must be en or ja");
  if (!ok)
    return false;
  json_t *judge = json_pack("{sO* ss* ss* sO*}", "stages", stages, "provider", provider, "model",
                            model ? model : setup->user.model, "options",
                            json_object_get(setup->config, "options"));
  if (cli_value(args, "max-reasks") != NULL)
    json_object_set_new(judge, "max_reasks", json_integer(count));
  const char *mark = cli_value(args, "mark");
  if (mark != NULL)
    json_object_set_new(setup->config, "mark", json_string(mark));
  json_auto_t *doc = json_pack("{ss ss ss s[{ss s[s] so sO}]}", "name", "judge", "language",
                               language, "initial_movement", name, "movements", "name", name,
                               "command", "given", "judge", judge, "rules", rules);
  setup->workflow = workflow_build(doc, err);
  if (setup->workflow == NULL) {
    /* "movements[0].rules[2].condition: ..." becomes the --rule that it comes from. */
    struct err raw = *err;
    int index, n = 0;
    if (sscanf(raw.text, "movements[0].rules[%d].condition: %n", &index, &n) == 1 && n > 0)
      err_set(err, ERR_USAGE, "--rule %d: %s", index + 1, raw.text + n);
    return false;
  }
  json_object_del(setup->config, "provider");
  json_object_del(setup->config, "model");
  return true;
}

/* Says why this stage decided, or why it did not. */
static void append_note(const json_t *stage, struct buf *out) {
  const char *outcome = cli_text(stage, "outcome");
  const char *error = json_string_value(json_array_get(json_object_get(stage, "errors"), 0));
  const char *reason = cli_text(stage, "reason"), *tag = cli_text(stage, "tag");
  const char *class = cli_text(stage, "class");
  const char *text = reason ? reason : tag;
  if (strcmp(outcome, "matched") != 0) {
    buf_printf(out, "%s%s", class ? class : "", class && error ? ": " : "");
    if (error || class)
      text = error;
  }
  (void)cli_fit(out, str_from(text ? text : ""), 200);
}

static void print_judgment(const struct judging *j, bool colours) {
  buf_auto_t text = {0};
  const json_t *rule = json_object_get(j->judgment, "rule");
  if (json_is_integer(rule)) {
    buf_printf(&text, "%s%d%s  ", cli_paint(colours, COLOUR_BOLD), (int)json_integer_value(rule),
               cli_paint(colours, COLOUR_NONE));
    (void)cli_fit(&text, str_from(cli_text(j->judgment, "condition")), 200);
    buf_printf(&text, "  %s%s", cli_text(j->judgment, "match_method"),
               json_is_true(json_object_get(j->judgment, "ambiguous")) ? "  ambiguous" : "");
  } else {
    buf_puts(&text, "none  ");
    (void)cli_fit(&text, str_from(cli_text(j->judgment, "reason")), 200);
  }
  buf_putc(&text, '\n');
  JSON_EACH(json_object_get(j->judgment, "stages"), i, stage) {
    buf_printf(&text, "   %-18s %-12s ", cli_text(stage, "stage"), cli_text(stage, "outcome"));
    append_note(stage, &text);
    while (text.n > 0 && text.p[text.n - 1] == ' ')
      text.n--;
    buf_putc(&text, '\n');
  }
  fwrite(text.p, 1, text.n, stdout);
}

static void judge_print_record(const json_t *record) {
  buf_auto_t line = {0};
  json_write(record, &line); /* as the log has it: nothing in it controls a terminal */
  buf_putc(&line, '\n');
  fwrite(line.p, 1, line.n, stdout);
}

static int judge_text(const struct setup *setup, const struct cli_args *args, struct str text,
                      struct err *err) {
  static const struct watcher watcher = {
      .record = judge_on_record, .trouble = judge_on_trouble, .finished = judge_on_finished};
  struct single_session solo;
  struct judging j = {.solo = &solo};
  char dir[PATHS_BYTES];
  const char *logs = cli_value(args, "logs");
  int status = STATUS_FAILED;
  if ((logs && !paths_logs(logs, dir, err)) ||
      !single_session_init(&solo, logs ? dir : NULL, setup->registry, err)) {
    return cli_fail_with(STATUS_FAILED, "judge", err);
  }
  const struct session_params params = {
      .setup = {.cwd = setup->cwd, .scenario = setup->has_scenario ? &setup->scenario : NULL},
      .workflow = setup->workflow,
      .task = STR(""),
      .config = setup->config};
  struct session *s = solo.session = host_start(&solo.host, &params, &watcher, &j, err);
  if (s == NULL) {
    (void)cli_fail("judge", err);
  } else {
    host_answer(s, text);
    int signals = single_session_run(&solo, NULL, NULL);
    if (session_broken(s) != NULL) {
      (void)cli_fail("judge", session_broken(s));
    } else if (j.judgment == NULL) {
      const char *reason = cli_text(j.stop, "reason");
      cli_say(stderr, "segue judge: %s: %s\n", reason ? reason : "failed",
              cli_word(j.stop, "message"));
      if (j.stop != NULL && cli_flag(args, "json"))
        judge_print_record(j.stop);
      status = signals > 0 ? STATUS_INTERRUPTED : STATUS_FAILED;
    } else {
      const char *failure = cli_text(j.judgment, "failure");
      status = STATUS_COMPLETE;
      if (failure != NULL)
        status = strcmp(failure, "rule_no_match") == 0 ? STATUS_NO_RULE : STATUS_FAILED;
      if (cli_flag(args, "json"))
        judge_print_record(j.judgment);
      else if (!cli_flag(args, "quiet"))
        print_judgment(&j, cli_colours(STDOUT_FILENO));
    }
  }
  single_session_deinit(&solo);
  json_decref(j.judgment);
  json_decref(j.stop);
  return status;
}

static int judge_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  buf_auto_t text = {0};
  struct err err = {0};
  int status;
  if (!setup_flags(&setup, args, &status))
    return status;
  if (!build_workflow(&setup, args, &err) || !setup_preflight(&setup, &err) ||
      !file_read_fd(STDIN_FILENO, "standard input", LIMIT_OUTPUT_BYTES, &text, &err))
    return cli_fail("judge", &err);
  return judge_text(&setup, args, buf_view(&text), &err);
}

const struct cli_command cmd_judge = {COMMAND_JUDGE, .run = judge_run};
