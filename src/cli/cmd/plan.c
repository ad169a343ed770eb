/* segue plan: says what would run, before it costs anything. */
#include "host/plan.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/setup.h"
#include "core/budget.h"
#include "core/checks.h"
#include "format/json_object.h"
#include "host/check_paths.h"
#include "provider/probe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const roles[] = {"work", "judge", "vote", "correct"};

/* --- versions --- */

struct versions {
  const struct provider_registry *registry;
  struct backend_probe *probes;
};

static size_t plan_provider(const struct versions *v, const char *name) {
  const struct provider *p;
  size_t i = 0;
  while ((p = registry_at(v->registry, i)) != NULL && strcmp(p->capability.name, name) != 0)
    i++;
  return i;
}

static void plan_each_who(json_t *plan, void (*fn)(void *ctx, json_t *who), void *ctx) {
  JSON_EACH(json_object_get(plan, "movements"), i, movement) {
    for (size_t r = 0; r < ARRAY_LEN(roles); r++)
      JSON_EACH(json_object_get(movement, roles[r]), k, who)
        fn(ctx, who);
  }
}

struct plan_wanted {
  const struct versions *v;
  bool *wanted;
};

static void plan_want(void *ctx, json_t *who) {
  struct plan_wanted *w = ctx;
  w->wanted[plan_provider(w->v, cli_word(who, "provider"))] = true;
}

static void plan_put_version(void *ctx, json_t *who) {
  const struct versions *v = ctx;
  const struct backend_probe *p = &v->probes[plan_provider(v, cli_word(who, "provider"))];
  json_object_set_new(who, "version", p->version[0] ? json_io_string(p->version) : json_null());
  json_object_set_new(who, "problem",
                      p->state == PROBE_NO ? json_io_string(p->problem) : json_null());
}

static void plan_ask(json_t *plan, const struct provider_registry *registry, bool asks) {
  struct versions v = {.registry = registry};
  size_t count = 0;
  while (registry_at(registry, count) != NULL)
    count++;
  bool *wanted = xcalloc(count + 1, sizeof *wanted);
  struct plan_wanted w = {&v, wanted};
  plan_each_who(plan, plan_want, &w);
  v.probes = asks ? probe_some(registry, wanted) : probe_all(registry, false);
  plan_each_who(plan, plan_put_version, &v);
  free(v.probes);
  free(wanted);
}

/* Adds the files of each check whose passes are looked at. */
static void plan_put_checks(json_t *plan, const struct workflow *wf, const char *cwd) {
  JSON_EACH(json_object_get(plan, "movements"), i, movement) {
    const struct movement *m = &wf->movements[i];
    json_t *files = m->evidence && m->argv != NULL ? check_paths_list(cwd, m) : NULL;
    if (files != NULL)
      json_object_set_new(movement, "check_files", files);
  }
}

/* --- printing --- */

enum { PLAN_FILES = 20 };

struct plan_page {
  bool colours;
  int columns, width; /* the terminal's; the titles' */
};

/* Prints a row, and empties its text. */
static void plan_row(const struct plan_page *page, const char *title, enum colour colour,
                     struct buf *text) {
  buf_auto_t line = {0}, cell = {0};
  int used = cli_fit(&cell, str_from(title), page->width);
  (void)cli_fit(&line, buf_view(text), 10 * page->columns);
  printf("%s%s%s%*s  %s\n", cli_paint(page->colours, colour), buf_c(&cell),
         cli_paint(page->colours, COLOUR_NONE), page->width - used, "", buf_c(&line));
  buf_deinit(text);
}

/* Puts a sandbox: "strict by landlock, network none", or "off". */
static void plan_put_sandbox(struct buf *out, const json_t *sandbox) {
  buf_puts(out, cli_word(sandbox, "level"));
  if (cli_word(sandbox, "mechanism")[0])
    buf_printf(out, " by %s", cli_word(sandbox, "mechanism"));
  if (cli_word(sandbox, "image")[0])
    buf_printf(out, " in %s", cli_word(sandbox, "image"));
  if (cli_word(sandbox, "network")[0])
    buf_printf(out, ", network %s", cli_word(sandbox, "network"));
  if (cli_word(sandbox, "home")[0])
    buf_printf(out, ", home %s", cli_word(sandbox, "home"));
  if (cli_word(sandbox, "from")[0])
    buf_printf(out, " as of %s", cli_word(sandbox, "from"));
  const json_t *limits = json_object_get(sandbox, "limits");
  const long long memory = json_integer_value(json_object_get(limits, "memory"));
  const long long pids = json_integer_value(json_object_get(limits, "pids"));
  const double cpus = json_number_value(json_object_get(limits, "cpus"));
  if (memory > 0)
    buf_printf(out, ", memory %lld MiB", memory >> 20);
  if (cpus > 0)
    buf_printf(out, ", cpus %.3g", cpus);
  if (pids > 0)
    buf_printf(out, ", pids %lld", pids);
  if (limits != NULL)
    buf_printf(out, " by %s", cli_word(limits, "by"));
}

static void plan_put_who(struct buf *out, const json_t *who) {
  const char *model = cli_word(who, "model"), *version = cli_word(who, "version");
  const char *transport = cli_word(who, "transport");
  buf_puts(out, cli_word(who, "provider"));
  if (version[0])
    buf_printf(out, " %s", version);
  if (model[0])
    buf_printf(out, ", model %s", model);
  if (transport[0])
    buf_printf(out, ", %s", transport);
  if (cli_word(who, "problem")[0])
    buf_puts(out, " (not usable)");
  const json_t *sandbox = json_object_get(who, "sandbox");
  if (sandbox != NULL) {
    buf_puts(out, ", sandbox ");
    plan_put_sandbox(out, sandbox);
  }
}

/* Puts providers: "claude 2.1, exec; else codex", or a panel's with commas. */
static void plan_put_list(struct buf *out, const json_t *list, const char *between) {
  JSON_EACH(list, i, who) {
    if (i > 0)
      buf_puts(out, between);
    plan_put_who(out, who);
  }
}

static void plan_put_words(struct buf *out, const json_t *list, const char *between) {
  JSON_EACH(list, i, word)
    buf_printf(out, "%s%s", i > 0 ? between : "", json_string_value(word));
}

static void plan_print_judge(const struct plan_page *page, const json_t *m) {
  const json_t *judge = json_object_get(m, "judge"), *votes = json_object_get(m, "vote");
  const json_t *correct = json_object_get(m, "correct");
  struct buf text = {0};
  if (judge != NULL || votes != NULL) {
    buf_puts(&text, "judged by ");
    plan_put_list(&text, judge ? judge : votes, judge ? ", else " : " and ");
    if (votes != NULL)
      buf_printf(&text, " (%d must agree)", (int)json_integer_value(json_object_get(m, "agree")));
    buf_puts(&text, ": ");
    plan_put_words(&text, json_object_get(m, "stages"), ", ");
    plan_row(page, "", COLOUR_NONE, &text);
  }
  if (correct != NULL) {
    buf_printf(
        &text, "value corrected up to %d times by ",
        (int)json_integer_value(json_object_get(json_object_get(m, "limits"), "max_reasks")));
    plan_put_list(&text, correct, ", else ");
    plan_row(page, "", COLOUR_NONE, &text);
  }
}

/* Prints where an agent's permission departs from the word, and which variables the movement
 * gets. */
static void plan_print_more(const struct plan_page *page, const json_t *m) {
  const json_t *work = json_object_get(m, "work"), *secrets = json_object_get(m, "secrets");
  struct buf text = {0};
  JSON_EACH(work, i, who) {
    const char *gap = cli_word(who, "permission_gap");
    if (gap[0] == '\0')
      continue;
    buf_printf(&text, "%s, %s: %s", cli_word(who, "provider"), cli_word(m, "permission"), gap);
    plan_row(page, "", COLOUR_NONE, &text);
  }
  if (json_array_size(secrets) > 0) {
    buf_puts(&text, "gets ");
    plan_put_words(&text, secrets, ", ");
    plan_row(page, "", COLOUR_NONE, &text);
  }
}

/* Prints which files are the check's: a change of theirs is looked at. */
static void plan_print_check(const struct plan_page *page, const json_t *check) {
  static const struct {
    const char *why, *words;
  } kinds[] = {{"usual_name", "by usual names"},
               {"command", "read by the command"},
               {"beside", "named by those, beside them"},
               {"data", "named by those, as data"},
               {"added", "added"}};
  struct buf text = {0};
  if (check == NULL)
    return;
  buf_printf(&text, "files of the check: %lld",
             (long long)json_integer_value(json_object_get(check, "count")));
  plan_row(page, "", COLOUR_NONE, &text);
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
    size_t n = 0;
    JSON_EACH(json_object_get(check, "files"), k, file) {
      if (strcmp(cli_word(file, "why"), kinds[i].why) != 0)
        continue;
      if (n++ < PLAN_FILES)
        buf_printf(&text, "%s%s", n > 1 ? ", " : kinds[i].words, n > 1 ? "" : ": ");
      if (n <= PLAN_FILES)
        protect_put_file(file, &text);
    }
    if (n > PLAN_FILES)
      buf_printf(&text, " and %zu more", n - PLAN_FILES);
    if (n > 0)
      plan_row(page, "", COLOUR_NONE, &text);
  }
}

static void plan_print_movement(const struct plan_page *page, const json_t *m) {
  const json_t *command = json_object_get(m, "command");
  const char *asks = cli_word(m, "asks");
  struct buf text = {0};
  if (!json_is_true(json_object_get(m, "reachable"))) {
    buf_puts(&text, "no rule leads here");
  } else if (asks[0]) {
    buf_printf(&text, "asks a person: %s", asks);
  } else if (json_is_array(command)) {
    plan_put_words(&text, command, " ");
    const json_t *sandbox = json_object_get(m, "sandbox");
    if (strcmp(cli_word(sandbox, "level"), "off") != 0 ||
        json_object_get(sandbox, "limits") != NULL) {
      buf_puts(&text, ", sandbox ");
      plan_put_sandbox(&text, sandbox);
    }
  } else {
    plan_put_list(&text, json_object_get(m, "work"), ", else ");
    buf_printf(&text, "  %s", cli_word(m, "permission"));
    if (json_array_size(json_object_get(m, "run")) > 0) {
      buf_puts(&text, ", runs ");
      plan_put_words(&text, json_object_get(m, "run"), ", ");
    }
  }
  if (json_is_true(json_object_get(m, "approve")))
    buf_puts(&text, ", after approval by a person");
  buf_puts(&text, "  > ");
  plan_put_words(&text, json_object_get(m, "next"), ", ");
  plan_row(page, cli_word(m, "name"), COLOUR_BOLD, &text);
  plan_print_more(page, m);
  plan_print_check(page, json_object_get(m, "check_files"));
  plan_print_judge(page, m);
}

static void plan_print_history(const struct plan_page *page, const json_t *history) {
  static const char *const ranks[] = {"p50", "p90"};
  for (size_t i = 0; history != NULL && i < ARRAY_LEN(ranks); i++) {
    struct buf text = {0};
    const json_t *cost = json_object_get(json_object_get(history, "cost_usd"), ranks[i]);
    const json_t *tokens = json_object_get(json_object_get(history, "tokens"), ranks[i]);
    const json_t *time = json_object_get(json_object_get(history, "duration_ms"), ranks[i]);
    buf_printf(&text, "%s of the last %d: ", ranks[i],
               (int)json_integer_value(json_object_get(history, "runs")));
    view_put_time(&text, (int64_t)json_number_value(time));
    buf_printf(&text, ", %.0f tokens", json_number_value(tokens));
    if (cost != NULL)
      buf_printf(&text, ", $%.4f", json_number_value(cost));
    else
      buf_puts(&text, ", cost unknown");
    plan_row(page, i == 0 ? "used" : "", COLOUR_DIM, &text);
  }
}

static void plan_print_worst(const struct plan_page *page, const json_t *plan) {
  const json_t *calls = json_object_get(plan, "calls"),
               *max = json_object_get(plan, "max_movements");
  const json_t *cost = json_object_get(plan, "cost");
  const json_t *answers = json_object_get(cost, "answers_usd");
  struct buf text = {0};
  bool calls_none = json_is_integer(calls) && json_integer_value(calls) == 0;
  if (json_is_integer(max))
    buf_printf(&text, "at most %lld turn%s", (long long)json_integer_value(max),
               PLURAL(json_integer_value(max)));
  else
    buf_puts(&text, "any number of turns");
  if (calls_none)
    buf_puts(&text, ", no calls to providers");
  else if (json_is_integer(calls))
    buf_printf(&text, ", at most %lld call%s to providers", (long long)json_integer_value(calls),
               PLURAL(json_integer_value(calls)));
  else
    buf_puts(&text, ", any number of calls");
  if (!calls_none)
    buf_puts(&text, " (not counting repeats after network errors)");
  plan_row(page, "limits", COLOUR_DIM, &text);
  if (json_is_number(answers)) {
    buf_printf(&text, "at most $%.4f for answers; the prompts come on top",
               json_number_value(answers));
  } else if (json_array_size(json_object_get(cost, "unknown")) > 0) {
    buf_puts(&text, "not bounded: ");
    plan_put_words(&text, json_object_get(cost, "unknown"), "; ");
  }
  if (text.n > 0)
    plan_row(page, "cost", COLOUR_DIM, &text);
}

/* Puts a map of amounts as it was written: "tokens 1000, time 90m". */
static void put_amounts(struct buf *text, const json_t *limits) {
  const char *before = "";
  JSON_MEMBERS(limits, key, value) {
    buf_printf(text, "%s%s ", before, key);
    before = ", ";
    if (json_is_object(value))
      put_amounts(text, value);
    else if (json_is_string(value))
      buf_puts(text, json_string_value(value));
    else
      buf_printf(text, "%.15g", json_number_value(value));
  }
}

static void plan_print_budget(const struct plan_page *page, const json_t *budget) {
  const json_t *limits = json_object_get(budget, "limits");
  const json_t *unseen = json_object_get(budget, "unseen");
  struct buf text = {0};
  JSON_EACH(limits, i, one) {
    const char *movement = cli_text(one, "movement");
    buf_printf(&text, "%s: ", movement ? movement : "session");
    put_amounts(&text, json_object_get(one, "limits"));
    plan_row(page, i == 0 ? "budget" : "", COLOUR_DIM, &text);
  }
  if (json_array_size(unseen) == 0)
    return;
  buf_puts(&text, "not seen: ");
  plan_put_words(&text, unseen, "; ");
  plan_row(page, "", COLOUR_DIM, &text);
}

/* Prints each limit on what this user may use today. */
static void plan_print_day(const struct plan_page *page, const json_t *day) {
  JSON_EACH(day, i, one) {
    struct buf text = {0};
    budget_note_tell(one, &text);
    plan_row(page, i == 0 ? "day" : "", COLOUR_DIM, &text);
  }
}

/* Prints the files that facets came from. */
static void plan_print_facets(const struct plan_page *page, const json_t *facets) {
  JSON_EACH(facets, i, entry) {
    struct buf text = {0};
    const char *from = cli_word(entry, "from");
    buf_puts(&text, cli_word(entry, "file"));
    if (strcmp(from, "workflow") != 0)
      buf_printf(&text, " (%s)", strcmp(from, "project") == 0 ? "the project's" : "yours");
    plan_row(page, cli_word(entry, "kind"), COLOUR_DIM, &text);
  }
}

static void plan_print(const json_t *plan) {
  struct plan_page page = {cli_colours(STDOUT_FILENO), cli_columns(STDOUT_FILENO), 8};
  struct buf text = {0};
  JSON_EACH(json_object_get(plan, "movements"), i, m) {
    int name = (int)strlen(cli_word(m, "name"));
    page.width = name > page.width ? name : page.width;
  }
  page.width = page.width > 24 ? 24 : page.width;
  buf_puts(&text, cli_word(plan, "workflow"));
  plan_row(&page, "workflow", COLOUR_DIM, &text);
  JSON_EACH(json_object_get(plan, "movements"), i, m)
    plan_print_movement(&page, m);
  if (json_object_get(plan, "commands") != NULL) {
    buf_puts(&text, "setup, invariants and checks of merges: sandbox ");
    plan_put_sandbox(&text, json_object_get(plan, "commands"));
    plan_row(&page, "commands", COLOUR_DIM, &text);
  }
  plan_print_facets(&page, json_object_get(plan, "facets"));
  plan_print_worst(&page, plan);
  plan_print_budget(&page, json_object_get(plan, "budget"));
  plan_print_day(&page, json_object_get(plan, "day"));
  plan_put_words(&text, json_object_get(plan, "env"), ", ");
  if (text.n > 0)
    plan_row(&page, "env", COLOUR_DIM, &text);
  const json_t *history = json_object_get(plan, "history");
  plan_print_history(&page, json_is_object(history) ? history : NULL);
}

static int plan_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  struct store store;
  buf_auto_t task = {0};
  struct err err = {0};
  int status;
  cli_errors_as_json(cli_flag(args, "json"));
  if (!setup_flags(&setup, args, &status))
    return status;
  status = STATUS_COMPLETE;
  (void)setup_start(&setup, args, args->words[0], &task, &status);
  if (setup.workflow == NULL)
    return status;
  bool has_logs = resolve_id_store(cli_value(args, "logs"), &store, &err);
  const struct preflight p = setup_preflight_of(&setup);
  json_auto_t *plan = plan_json(&p, has_logs ? &store : NULL);
  plan_ask(plan, setup.registry, !cli_flag(args, "quick"));
  if (!cli_flag(args, "quick"))
    plan_put_checks(plan, setup.workflow, setup.cwd);
  (void)json_object_set(plan, "facets", setup.facets);
  if (cli_flag(args, "json"))
    json_io_print(plan, JSON_IO_TERMINAL);
  else
    plan_print(plan);
  return status;
}

const struct cli_command cmd_plan = {COMMAND_PLAN, .run = plan_run};
