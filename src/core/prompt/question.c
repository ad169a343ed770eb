/* Builds the questions of a judge, and corrections. */
#include "core/prompt/internal.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "format/json_object.h"

#include <inttypes.h>

static void append_condition(struct buf *b, const struct rule *rule) {
  buf_str(b, rule->label);
  if (rule->appendix.n > 0) {
    buf_puts(b, "\n   ");
    struct str rest = str_trim(rule->appendix);
    while (rest.p != NULL) {
      buf_str(b, str_next_line(&rest));
      if (rest.p != NULL)
        buf_puts(b, "\n   ");
    }
  }
  buf_putc(b, '\n');
}

void prompt_criteria(struct buf *b, const struct chain_spec *spec, struct str tag_name, bool tags) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_shown(spec, offered);
  for (size_t i = 0; i < n; i++) {
    if (tags) {
      rule_tag(tag_name, offered[i]->number, b);
      buf_putc(b, ' ');
    } else {
      char number[STR_NUMBER_BYTES];
      buf_str(b, prompt_digits(number, offered[i]->number));
      buf_puts(b, ". ");
    }
    append_condition(b, offered[i]);
  }
}

/* Returns at most the last `max` bytes of a text, from the start of a character. */
static struct str end_of_text(struct str text, size_t max, bool *cut) {
  *cut = text.n > max;
  if (!*cut)
    return text;
  size_t from = utf8_ceil(text.p, text.n, text.n - max);
  return (struct str){text.p + from, text.n - from};
}

static const char *judge_template(enum judge_stage stage) {
  if (stage == STAGE_STRUCTURED_OUTPUT)
    return "judge_structured.md";
  return stage == STAGE_PHASE3_TAG ? "judge_tag.md" : "judge_ai.md";
}

/* Appends files such as "src/a.c +1 -1, logo.png". A file without numbers has no lines, or they are
 * unknown. */
static void append_files(struct buf *b, const json_t *files, int64_t more) {
  size_t i;
  const json_t *file;
  json_array_foreach((json_t *)files, i, file) {
    const json_t *added = json_at(file, "added");
    if (i == LIMIT_PROMPT_FILE_COUNT)
      break;
    buf_puts(b, i ? ", " : "");
    buf_safe(b, json_view(json_at(file, "path")), false);
    if (added != NULL)
      buf_printf(b, " +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT, json_integer_value(added),
                 json_integer_value(json_at(file, "removed")));
  }
  if (i < json_array_size(files) || more > 0)
    buf_printf(b, ", ... (%" PRId64 ")", (int64_t)json_array_size(files) + more);
}

static void render_question(const struct prompt_nested *nested, struct prompt *out) {
  const struct prompt_view *v = nested->view;
  struct buf criteria = {0}, tags = {0}, none = {0};
  char exit_status[STR_NUMBER_BYTES], check_turn[STR_NUMBER_BYTES], check_exit[STR_NUMBER_BYTES];
  struct buf files = {0};
  bool unchanged = v->files != NULL && json_array_size(v->files) == 0 && !v->files_lost;
  bool measured =
      v->has_exit || v->check.n > 0 || v->checks.n > 0 || v->files != NULL || v->files_lost;
  append_files(&files, v->files, v->files_more);
  bool ai = nested->stage == STAGE_AI_JUDGE;
  prompt_criteria(&criteria, nested->spec, v->movement->own_name, false);
  rule_tag(ai ? STR("judge") : v->movement->own_name, 0, &none);
  if (nested->stage == STAGE_PHASE3_TAG || !v->by_tool)
    prompt_criteria(&tags, nested->spec, ai ? STR("judge") : v->movement->own_name, true);
  struct buf readable = {0};
  bool cut; /* the outcome stands at the end of a report */
  struct str answer = end_of_text(v->answer, LIMIT_JUDGE_TEXT_BYTES, &cut);
  if (!utf8_valid(answer.p, answer.n)) {
    buf_safe(&readable, answer, true);
    answer = buf_view(&readable);
  }
  const struct template_var vars[] = {
      {STR("workflow"), v->workflow->name},
      {STR("movement"), v->movement->name},
      {STR("description"), v->movement->description},
      {STR("criteria"), buf_view(&criteria)},
      {STR("tags"), buf_view(&tags)},
      {STR("none"), buf_view(&none)},
      {STR("tool"), prompt_yes_if(v->by_tool)},
      {STR("report"), answer},
      {STR("cut"), prompt_yes_if(cut)},
      {STR("measured"), prompt_yes_if(measured)},
      {STR("exit"), v->has_exit ? prompt_digits(exit_status, v->exit) : STR("")},
      {STR("check"), v->check},
      {STR("check_turn"), prompt_digits(check_turn, v->check_turn)},
      {STR("check_exit"), prompt_digits(check_exit, v->check_exit)},
      {STR("checks"), v->checks},
      {STR("tests"), v->tests},
      {STR("no_pass"), prompt_yes_if(v->no_pass)},
      {STR("files"), buf_view(&files)},
      {STR("unchanged"), prompt_yes_if(unchanged)},
      {STR("lost"), prompt_yes_if(v->files_lost)},
      {STR("fence"), str_from(v->nonce)},
      {{NULL, 0}, {NULL, 0}},
  };
  struct prompt_sink sink = {out, NULL, v};
  prompt_render(judge_template(nested->stage), vars, &sink);
  buf_deinit(&readable);
  buf_deinit(&files);
  buf_deinit(&criteria);
  buf_deinit(&none);
  buf_deinit(&tags);
}

void prompt_judge(const struct prompt_view *v, const struct chain_spec *spec,
                  enum judge_stage stage, struct prompt *out) {
  struct prompt_nested nested = {.view = v, .spec = spec, .stage = stage};
  prompt_init(out, v->answer.n);
  render_question(&nested, out);
}

void prompt_reask(const struct prompt_view *view, const struct prompt_correction *c,
                  struct prompt *out) {
  struct prompt_view shown = *view;
  struct prompt_nested nested = {.name = STR("question"),
                                 .render = c->spec ? render_question : prompt_render_execute,
                                 .view = &shown,
                                 .spec = c->spec,
                                 .stage = c->stage};
  const struct structured_config *so = view->movement->structured;
  struct schema *judged = c->spec ? schema_compile(c->schema, NULL, NULL, NULL) : NULL;
  struct schema_told told;
  struct buf list = {0}, readable = {0};
  char more[STR_NUMBER_BYTES];
  size_t i;
  json_t *error;
  bool cut;
  json_array_foreach(c->errors, i, error) {
    buf_printf(&list, "- %s\n", json_string_value(error));
  }
  struct str output = end_of_text(c->output, LIMIT_REASK_OUTPUT_BYTES, &cut);
  if (cut) /* the log holds the whole text */
    shown.bad_seq = 0;
  if (shown.bad_seq == 0 && !utf8_valid(output.p, output.n)) {
    buf_safe(&readable, output, true);
    output = buf_view(&readable);
  }
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  struct template_var vars[SCHEMA_VARS + 8] = {
      {STR("question"), STR("nested")},
      {STR("bad_output"), output},
      {STR("cut"), prompt_yes_if(cut)},
      {STR("errors"), buf_view(&list)},
      {STR("more"), c->more > 0 ? prompt_digits(more, (long)c->more) : STR("")},
      {STR("fence"), str_from(view->nonce)},
  };
  prompt_tell_schema(view, c->spec ? judged : so->schema, c->schema, &told, vars + 6);
  struct prompt_sink sink = {out, &nested, &shown};
  prompt_render("reask.md", vars, &sink);
  schema_told_deinit(&told);
  schema_free(judged);
  buf_deinit(&list);
  buf_deinit(&readable);
}
