/* segue prompt: shows exactly what would be sent. */
#include "core/prompt.h"
#include "cli/json_io.h"
#include "cli/setup.h"
#include "format/json_object.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool prompt_number(const struct cli_args *args, const char *name, long *out,
                          struct err *err) {
  const char *text = cli_value(args, name);
  *out = 1;
  if (text && (!str_to_long(str_from(text), out) || *out < 1))
    return err_set(err, ERR_USAGE, "--%s %.40s: write a number from 1", name, text);
  return true;
}

/* Returns the rules in the order in which a vote sees them: [1, 2, 3]. New reference. */
static json_t *order_of(const struct chain_spec *spec, const struct movement *m, int vote) {
  const struct rule **shown = xcalloc(spec->rule_count + 1, sizeof(struct rule *));
  struct chain_spec asked = *spec;
  json_t *order = json_array();
  asked.rotation = m->judge.rotates ? vote - 1 : 0;
  for (size_t i = 0, n = chain_shown(&asked, shown); i < n; i++)
    json_array_append_new(order, json_integer(shown[i]->number));
  free(shown);
  return order;
}

/* Returns each judge of the movement's panel with the order in which it sees the rules. New
 * reference. */
static json_t *panel_votes(const struct chain_spec *spec, const struct movement *m) {
  json_t *votes = json_array();
  JSON_EACH(m->judge.panel, i, name) {
    json_array_append_new(votes, json_pack("{si sO so}", "vote", (int)i + 1, "provider", name,
                                           "rules", order_of(spec, m, (int)i + 1)));
  }
  return votes;
}

static void note_panel(const json_t *votes, long shown) {
  fprintf(stderr, "segue prompt: note: %zu judges vote; this is what vote %ld is asked\n",
          json_array_size(votes), shown);
  JSON_EACH(votes, i, vote) {
    fprintf(stderr, "  vote %zu, %s: rules in the order", i + 1, cli_text(vote, "provider"));
    JSON_EACH(json_object_get(vote, "rules"), k, number)
      fprintf(stderr, "%s%" JSON_INTEGER_FORMAT, k > 0 ? ", " : " ", json_integer_value(number));
    fputc('\n', stderr);
  }
}

/* Notes that the question is shown although it would be asked only with one more rule. */
static void note_unasked(const struct chain_spec *spec, enum judge_stage stage) {
  const struct rule **offered = xcalloc(spec->rule_count + 1, sizeof(struct rule *));
  size_t labels = chain_offered(spec, offered);
  bool named = false;
  for (size_t i = 0; i < spec->stage_count; i++)
    named = named || spec->stages[i] == stage;
  free(offered);
  if (labels < 2)
    fprintf(stderr,
            "segue prompt: note: this is never asked, because the movement has %s and no model "
            "judges it\n",
            labels == 0 ? "no label to choose from" : "only one label");
  else if (!named)
    fprintf(stderr, "segue prompt: note: this is never asked, because judge.stages leaves out %s\n",
            judge_stage_name(stage));
}

/* Renders a judge's question. Sets *votes to a new reference if several judges vote. */
static bool render_judge(const struct cli_args *args, const struct setup *setup,
                         struct prompt_view *view, enum judge_stage stage, struct prompt *out,
                         json_t **votes, struct err *err) {
  const struct movement *m = view->movement;
  size_t index = (size_t)(m - setup->workflow->movements), judges = json_array_size(m->judge.panel);
  long vote;
  struct chain_spec spec = {.rules = m->rules,
                            .rule_count = m->rule_count,
                            .movement = m->own_name,
                            .joined = m->child_count > 0,
                            .stages = m->judge.stages,
                            .stage_count = m->judge.stage_count};
  if (!prompt_number(args, "vote", &vote, err))
    return false;
  if (cli_value(args, "vote") != NULL && judges == 0)
    return err_set(err, ERR_USAGE, "--vote %ld: no panel judges this movement", vote);
  if ((size_t)vote > judges && judges > 0)
    return err_set(err, ERR_USAGE, "--vote %ld: write 1 to %zu, the judges on the panel", vote,
                   judges);
  view->by_tool =
      core_judges_by_tool(setup->workflow, setup->config, index, judges > 0 ? (int)vote : 0,
                          registry_capabilities(setup->registry));
  if (judges > 0) {
    *votes = panel_votes(&spec, m);
    if (m->judge.rotates)
      spec.rotation = (int)vote - 1;
    if (!cli_flag(args, "json"))
      note_panel(*votes, vote);
  }
  prompt_judge(view, &spec, stage, out);
  note_unasked(&spec, stage);
  return true;
}

/* Refuses a movement with children: it asks nobody. */
static bool refuse_group(const struct workflow *wf, const struct movement *m, struct err *err) {
  buf_auto_t names = {.max = 200};
  for (size_t i = 0; i < m->child_count; i++)
    buf_printf(&names, "%s" STR_FMT, i > 0 ? ", " : "",
               STR_ARG(wf->movements[m->first_child + i].name));
  err_set(err, ERR_USAGE,
          STR_FMT " does no work of its own: name a child (%s), or --stage for its judge",
          STR_ARG(m->name), buf_c(&names));
  return false;
}

/* Returns the item with which the child of a for_each is shown: the first, if the file has the
 * list. */
static json_t *shown_item(const struct workflow *wf, const struct movement *m) {
  const struct movement *group = m->group != NO_GROUP ? &wf->movements[m->group] : NULL;
  if (group == NULL || group->for_each == NULL)
    return NULL;
  json_t *item = json_incref(json_array_get(group->for_each, 0));
  return item != NULL ? item : json_string("(an item)");
}

static bool render(const struct cli_args *args, const struct setup *setup, struct prompt *out,
                   json_t **votes, struct err *err) {
  const char *stage_name = cli_value(args, "stage"), *previous = cli_value(args, "previous");
  const char *answer = cli_value(args, "answer");
  buf_auto_t task = {0};
  enum judge_stage stage;
  long index = workflow_find(setup->workflow, str_from(args->words[1]));
  if (index < 0) {
    const char **names = xcalloc(setup->workflow->movement_count + 1, sizeof *names);
    for (size_t i = 0; i < setup->workflow->movement_count; i++)
      names[i] = setup->workflow->movements[i].name.p;
    const char *near = str_nearest(str_from(args->words[1]), names);
    err_set(err, ERR_USAGE, "the workflow has no movement \"%.80s\"%s%s%s", args->words[1],
            near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    free(names);
    return false;
  }
  const struct movement *m = &setup->workflow->movements[index];
  struct prompt_view view = {.workflow = setup->workflow,
                             .max_movements = setup->workflow->max_movements,
                             .movement = m,
                             .mark = STR("k7wd"), /* a sample: each turn draws its own */
                             .overrides = setup->user.templates,
                             .previous = str_from(previous),
                             .has_previous = previous != NULL,
                             .answer = answer ? str_from(answer) : STR("(the agent's report)"),
                             .nonce = "0000000000000000"};
  if (!prompt_number(args, "iteration", &view.iteration, err) ||
      !prompt_number(args, "movement-iteration", &view.movement_iteration, err))
    return false;
  if (!setup_task(args, &task, err))
    return false;
  view.task = buf_view(&task);
  view.shows_schema = core_prompt_schema(setup->workflow, setup->config, (size_t)index,
                                         registry_capabilities(setup->registry));
  struct str provider, model;
  core_backend(setup->workflow, setup->config, (size_t)index, &provider, &model);
  const struct capability *cap = capability_find(registry_capabilities(setup->registry), provider);
  view.held = cap ? cap->held : NULL;
  bool ok = true;
  json_auto_t *item = shown_item(setup->workflow, m);
  if (item != NULL) {
    view.item = item;
    view.index = 1;
  }
  if (stage_name == NULL && m->child_count > 0) {
    ok = refuse_group(setup->workflow, m, err);
  } else if (stage_name == NULL) {
    prompt_execute(&view, out);
  } else if (!judge_stage_from_name(str_from(stage_name), &stage) ||
             (stage != STAGE_STRUCTURED_OUTPUT && stage != STAGE_PHASE3_TAG &&
              stage != STAGE_AI_JUDGE)) {
    ok = err_set(err, ERR_USAGE, "--stage %.40s%s: write structured_output, phase3_tag or ai_judge",
                 stage_name, strcmp(stage_name, "phase1_tag") == 0 ? " asks nothing" : "");
  } else {
    ok = render_judge(args, setup, &view, stage, out, votes, err);
  }
  return ok;
}

static json_t *facets_of(const struct setup *setup, const char *movement) {
  json_t *list = json_array();
  JSON_EACH(setup->facets, i, entry)
    if (setup_has_facet(entry, movement))
      json_array_append(list, entry);
  return list;
}

static int prompt_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  AUTO(prompt_deinit) struct prompt prompt = {0};
  json_auto_t *votes = NULL; /* those of a panel */
  struct err err = {0};
  int status;
  cli_errors_as_json(cli_flag(args, "json"));
  if (!setup_flags(&setup, args, &status) ||
      !setup_workflow(&setup, args, args->words[0], false, &status))
    return status;
  if (!render(args, &setup, &prompt, &votes, &err))
    return cli_fail("prompt", &err);
  if (cli_flag(args, "json")) {
    const char *stage = cli_value(args, "stage");
    json_io_put(json_pack("{so ss? so so so*}", "movement", json_io_string(args->words[1]), "stage",
                          stage, "prompt", json_io_string(buf_c(&prompt.bytes)), "facets",
                          facets_of(&setup, args->words[1]), "votes", json_incref(votes)));
  } else {
    buf_auto_t safe = {0};
    setup_print_facets(&setup, args->words[1], stderr);
    struct str bytes = buf_view(&prompt.bytes);
    if (isatty(STDOUT_FILENO)) { /* exact bytes to a pipe, nothing that controls a terminal */
      buf_safe(&safe, bytes, true);
      bytes = buf_view(&safe);
    }
    fwrite(bytes.p, 1, bytes.n, stdout);
    if (isatty(STDOUT_FILENO) && (bytes.n == 0 || bytes.p[bytes.n - 1] != '\n'))
      putchar('\n');
  }
  return STATUS_COMPLETE;
}

const struct cli_command cmd_prompt = {COMMAND_PROMPT, .run = prompt_run};
