/* Explains one turn: its rules, calls, stages and verdict, in the order of the log. */
#include "audit/explain.h"

#include "audit/explain_internal.h"
#include "base/log.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

/* --- finding --- */

/* Counts the runs of a movement and finds the N-th (0: the last). `names`, if given, gathers the
 * movements that ran. */
static void count_runs(const struct book *book, struct str name, long nth,
                       struct explain_found *found, json_t *names) {
  for (size_t i = 0; i < book->place_count; i++) {
    struct err err;
    if (book->places[i].kind != BOOK_TURN_START)
      continue;
    json_t *record = book_get(book, book->places[i].seq, &err);
    struct str movement = explain_view(record, "movement");
    if (names != NULL && movement.n > 0)
      json_object_setn_new(names, movement.p, movement.n, json_true());
    if (record != NULL && str_eq(movement, name)) {
      found->runs++;
      if (nth == 0 || nth == found->runs) {
        found->turn = book->places[i].turn;
        found->run = found->runs;
      }
    }
    json_decref(record);
  }
}

static bool not_found(const char *what, const struct explain_found *found, const json_t *names,
                      struct err *err) {
  struct buf list = {.max = 300};
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)names, name, value) {
    buf_printf(&list, "%s%s", list.n > 0 ? ", " : "", name);
  }
  if (found->runs > 0)
    (void)err_set(err, ERR_NOT_FOUND, "there is no %.160s: that movement ran %ld time%s", what,
                  found->runs, found->runs == 1 ? "" : "s");
  else
    (void)err_set(err, ERR_NOT_FOUND, "no movement \"%.160s\" ran in this session; what ran: %s",
                  what, list.n > 0 ? list.p : "nothing yet");
  buf_deinit(&list);
  return false;
}

bool explain_find(const struct book *book, const char *what, struct explain_found *found,
                  struct err *err) {
  const char *hash = strrchr(what, '#');
  json_t *names = json_object();
  long nth = 0;
  *found = (struct explain_found){0};
  count_runs(book, str_from(what), 0, found, names); /* a name may contain a # itself */
  if (found->turn == 0 && hash != NULL && str_to_long(str_from(hash + 1), &nth) && nth > 0)
    count_runs(book, (struct str){what, (size_t)(hash - what)}, nth, found, NULL);
  bool ok = found->turn != 0 || not_found(what, found, names, err);
  json_decref(names);
  return ok;
}

/* --- the turn --- */

/* Says whether there is anything to ask a model. */
static bool has_label(const struct movement *m) {
  for (size_t i = 0; i < m->rule_count; i++)
    if (m->rules[i].kind != RULE_WHEN)
      return true;
  return false;
}

static const char *rule_remark(const struct rule *rule) {
  if (rule->interactive_only)
    return "  (interactive only: hidden)";
  if (rule->kind == RULE_WHEN)
    return "  (never offered to a model)";
  return rule->appendix.n > 0 ? "  (shown with its appendix)" : "";
}

static void put_rules(struct story *s) {
  const struct movement *m = s->movement;
  struct buf stages = {0};
  if (m == NULL)
    return;
  pen_title(&s->pen, "rules");
  for (size_t i = 0; i < m->rule_count; i++) {
    const struct rule *rule = &m->rules[i];
    pen_line(&s->pen, 1, "%d  " STR_FMT "%s" STR_FMT "%s", rule->number, STR_ARG(rule->condition),
             rule->next.n > 0 ? "  > " : "", STR_ARG(rule->next), rule_remark(rule));
  }
  for (size_t i = 0; i < m->judge.stage_count && has_label(m); i++)
    buf_printf(&stages, "%s%s", i ? ", " : "", judge_stage_name(m->judge.stages[i]));
  if (stages.n > 0)
    pen_line(&s->pen, 1, "stages: %s", stages.p);
  buf_deinit(&stages);
}

/* Lists configured stages that had no turn because they were not needed. */
static void put_untried(struct story *s, const json_t *stages) {
  struct buf names = {0};
  bool may_judge = s->movement != NULL && has_label(s->movement);
  for (size_t i = 0; may_judge && i < s->movement->judge.stage_count; i++) {
    const char *name = judge_stage_name(s->movement->judge.stages[i]);
    bool tried = false;
    size_t k;
    json_t *stage;
    json_array_foreach(stages, k, stage) {
      tried |= strcmp(explain_word(stage, "stage"), name) == 0;
    }
    if (!tried)
      buf_printf(&names, "%s%s", names.n ? ", " : "", name);
  }
  if (names.n > 0)
    pen_line(&s->pen, 1, "not needed: %s", names.p);
  buf_deinit(&names);
}

static void put_verdict(struct story *s, const json_t *judgment) {
  const json_t *stages = json_object_get(judgment, "stages");
  const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
  pen_title(&s->pen, "verdict");
  if (!json_is_integer(json_object_get(judgment, "rule"))) {
    pen_line(&s->pen, 1, "no rule: %s: %s", explain_word(judgment, "failure"),
             explain_word(judgment, "reason"));
    return;
  }
  pen_line(&s->pen, 1, "rule %" JSON_INTEGER_FORMAT "  %s  > %s", explain_number(judgment, "rule"),
           explain_word(judgment, "condition"), explain_word(judgment, "next"));
  if (last != NULL && explain_number(last, "rule") > 0 &&
      explain_number(last, "rule") != explain_number(judgment, "rule"))
    pen_line(&s->pen, 1,
             "%s named rule %" JSON_INTEGER_FORMAT
             "; of the rules with that label this is the first whose guard holds",
             explain_word(last, "stage"), explain_number(last, "rule"));
  pen_line(&s->pen, 1, "tag %s  method %s  match_method %s%s", explain_word(judgment, "tag"),
           explain_word(judgment, "method"), explain_word(judgment, "match_method"),
           json_is_true(json_object_get(judgment, "ambiguous")) ? "  ambiguous" : "");
  put_untried(s, stages);
}

static void put_head(struct story *s, const json_t *judgment, const json_t *start) {
  struct buf line = {0};
  buf_printf(&line, "turn %ld  %s  run %" JSON_INTEGER_FORMAT, s->turn,
             explain_word(start, "movement"), explain_number(start, "movement_iteration"));
  if (judgment == NULL)
    buf_puts(&line, "  not judged yet");
  else if (json_is_integer(json_object_get(judgment, "rule")))
    buf_printf(&line, "  > %s  %s", explain_word(judgment, "next"),
               explain_word(judgment, "match_method"));
  else
    buf_printf(&line, "  %s", explain_word(judgment, "failure"));
  pen_title(&s->pen, "%s", line.p);
  buf_deinit(&line);
}

/* Finds the next stage record after the i-th, before a stop or the judgment of the turn. */
static const json_t *stage_after(const struct story *s, size_t i) {
  for (size_t k = i + 1; k < json_array_size(s->records); k++) {
    const json_t *record = json_array_get(s->records, k);
    if (explain_is_type(record, "stage"))
      return record;
    if (explain_is_type(record, "judgment") || explain_is_type(record, "session_stop") ||
        explain_is_type(record, "session_resume"))
      return NULL;
  }
  return NULL;
}

/* Returns true for stops after which no earlier judging counts. */
static bool judges_anew(const char *reason) {
  static const char *const reasons[] = {"judge_unavailable", "judge_split", "rule_no_match",
                                        "failed"};
  bool found = false;
  for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
    found |= strcmp(reasons[i], reason) == 0;
  return found;
}

static void put_resume(struct story *s, const json_t *record) {
  const json_t *changed = json_object_get(record, "changed");
  struct buf text = {0};
  pen_title(&s->pen, "resumed  %s  %s", explain_word(record, "reason"), explain_word(record, "ts"));
  explain_person(s, json_object_get(record, "by"));
  if (changed != NULL) {
    json_write(changed, &text);
    pen_line(&s->pen, 1, "changed: %s", buf_c(&text));
  }
  buf_deinit(&text);
}

static void put_turn(struct story *s) {
  const json_t *judgment = NULL, *start = NULL;
  json_int_t last_own = 0;
  int index = 0;
  size_t i;
  json_t *record;
  json_array_foreach(s->records, i, record) {
    if (explain_is_type(record, "judgment"))
      judgment = record;
    if (explain_is_type(record, "turn_start"))
      start = record;
  }
  put_head(s, judgment, start);
  put_rules(s);
  explain_children(s);
  json_array_foreach(s->records, i, record) {
    if (explain_is_type(record, "call_start") && explain_word(record, "stage")[0] == '\0' &&
        explain_number(record, "call") > last_own) {
      last_own = explain_number(record, "call");
      explain_own_call(s, record);
    } else if (explain_is_type(record, "check")) {
      explain_check(s, record);
    } else if (explain_is_type(record, "structured")) {
      explain_value(s, record);
    } else if (explain_is_type(record, "stage")) {
      explain_stage(s, ++index, record, stage_after(s, i));
    } else if (explain_is_type(record, "session_stop")) {
      if (judges_anew(explain_word(record, "reason")))
        index = 0; /* the stages of its judgment are counted anew, too */
      pen_title(&s->pen, "stopped  %s  %s", explain_word(record, "reason"),
                explain_word(record, "ts"));
      if (explain_word(record, "class")[0] || explain_word(record, "message")[0])
        pen_line(&s->pen, 1, "%s%s%s", explain_word(record, "class"),
                 explain_word(record, "class")[0] ? ": " : "", explain_word(record, "message"));
      if (json_object_get(record, "question") != NULL)
        pen_line(&s->pen, 1, "question: %s",
                 explain_word(json_object_get(record, "question"), "text"));
    } else if (explain_is_type(record, "session_end")) {
      pen_title(&s->pen, "ended  %s  %s", explain_word(record, "outcome"),
                explain_word(record, "ts"));
      if (explain_word(record, "message")[0])
        pen_line(&s->pen, 1, "%s", explain_word(record, "message"));
    } else if (explain_is_type(record, "session_resume")) {
      put_resume(s, record);
      if (json_object_get(record, "verdict") != NULL)
        index = 0;
    } else if (explain_is_type(record, "judgment")) {
      put_verdict(s, record);
    }
  }
  bool is_group = s->movement != NULL && s->movement->child_count > 0;
  if (last_own == 0 && !is_group)
    pen_line(&s->pen, 1, "nothing ran yet");
}

/* --- gathering --- */

/* Gathers the turn's records, and the session's stops and resumes while it was open. */
static bool explain_gather(struct story *s, struct err *err) {
  const struct book *book = s->book;
  size_t last = 0;
  bool open = false, judged = false;
  for (size_t i = 0; i < book->place_count; i++)
    if (book->places[i].turn == s->turn && book->places[i].kind != BOOK_SESSION) {
      last = i;
      judged |= book->places[i].kind == BOOK_JUDGMENT;
    }
  if (!judged)
    last = book->place_count; /* still open: its stops count */
  for (size_t i = 0; i < book->place_count && i <= last; i++) {
    const struct book_place *place = &book->places[i];
    open |= place->turn == s->turn;
    if (!open || (place->turn != s->turn && place->kind != BOOK_SESSION))
      continue;
    json_t *record = book_get(book, place->seq, err);
    if (record == NULL)
      return false;
    json_array_append_new(s->records, record);
  }
  return json_array_size(s->records) > 0 ||
         err_set(err, ERR_NOT_FOUND, "there is no turn %ld", s->turn);
}

static void build(struct story *s) {
  struct err err = {0};
  s->start = book_get(s->book, 1, &err);
  json_t *doc = json_object_get(s->start, "workflow");
  s->workflow = doc ? workflow_build(doc, &err) : NULL;
  const json_t *first = json_array_get(s->records, 0);
  long index = s->workflow ? workflow_find(s->workflow, explain_view(first, "movement")) : -1;
  s->movement = index >= 0 ? &s->workflow->movements[index] : NULL;
}

bool explain_turn(const struct book *book, long turn, const struct explain_opts *opts,
                  struct buf *out, struct err *err) {
  struct story s = {.book = book, .turn = turn, .records = json_array(), .shown = json_object()};
  assert(book->keeps_places);
  pen_init(&s.pen, out, opts->full || opts->sink != NULL, opts->columns);
  s.pen.sink = opts->sink;
  bool ok = chain_schemas_init(&s.schemas, err);
  if (ok) {
    ok = explain_gather(&s, err);
    if (ok) {
      build(&s);
      put_turn(&s);
    }
    chain_schemas_deinit(&s.schemas);
    buf_deinit(&s.report);
  }
  workflow_unref(s.workflow);
  json_decref(s.start);
  json_decref(s.records);
  json_decref(s.shown);
  return ok;
}
