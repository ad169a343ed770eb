#include "audit/explain.h"

#include "audit/pen.h"
#include "audit/reread.h"
#include "audit/summary.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/workflow.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known while one turn is explained. */
struct story {
  const struct book *book;
  struct pen pen;
  json_t *records;           /* of the turn, in order; stops and resumes in between */
  json_t *start;             /* session_start */
  struct workflow *workflow; /* NULL when the record's does not build */
  const struct movement *movement;
  struct chain_schemas schemas;
  long turn, run;
  json_t *shown; /* calls that were shown, by number */
};

static const char *word(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static struct str view(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return (struct str){word(object, key), json_is_string(value) ? json_string_length(value) : 0};
}

static json_int_t number(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

static bool is_type(const json_t *record, const char *type) {
  return strcmp(word(record, "type"), type) == 0;
}

/* --- finding --- */

/* Counts the runs of a movement; the N-th (0: the last) is the one found. Names, when given, gathers
 * the movements that ran. */
static void count_runs(const struct book *book, struct str name, long nth,
                       struct explain_found *found, json_t *names) {
  for (size_t i = 0; i < book->place_count; i++) {
    struct err err;
    if (book->places[i].kind != BOOK_TURN_START)
      continue;
    json_t *record = book_get(book, book->places[i].seq, &err);
    struct str movement = view(record, "movement");
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
  count_runs(book, str_from(what), 0, found, names); /* a name may hold a # itself */
  if (found->turn == 0 && hash != NULL && str_to_long(str_from(hash + 1), &nth) && nth > 0)
    count_runs(book, (struct str){what, (size_t)(hash - what)}, nth, found, NULL);
  bool ok = found->turn != 0 || not_found(what, found, names, err);
  json_decref(names);
  return ok;
}

/* --- calls --- */

/* The size of a text in words: "1.2 KiB". */
static void put_bytes(struct buf *out, size_t n) {
  if (n < 1024)
    buf_printf(out, "%zu byte%s", n, n == 1 ? "" : "s");
  else if (n < 1024 * 1024)
    buf_printf(out, "%.1f KiB", (double)n / 1024);
  else
    buf_printf(out, "%.1f MiB", (double)n / (1024 * 1024));
}

/* A reference to a piece of another prompt is but the template's words again: its origin is shown
 * only in full. Where a task, an answer or a facet came from always is. */
static void put_part(struct story *s, const json_t *part) {
  const char *ref = json_string_value(json_object_get(part, "ref"));
  if (ref == NULL) {
    pen_text_more(&s->pen, (struct str){json_string_value(part), json_string_length(part)});
    return;
  }
  struct buf text = {0}, head = {0};
  struct err err = {0};
  const struct recall recall = book_recall(s->book);
  json_t *parts = json_pack("[O]", part);
  bool found = recall_parts(&recall, parts, &text, &err);
  buf_printf(&head, "record %s%s", ref, found ? ", " : ": ");
  if (found)
    put_bytes(&head, text.n);
  else
    buf_puts(&head, err.text);
  if (found && !s->pen.full && strstr(ref, "#/prompt/") != NULL)
    pen_text_more(&s->pen, buf_view(&text));
  else
    pen_text_from(&s->pen, buf_view(&head), buf_view(&text));
  json_decref(parts);
  buf_deinit(&text);
  buf_deinit(&head);
}

/* `start` is the call's first record that holds its prompt. */
static void put_prompt(struct story *s, const json_t *start) {
  const json_t *parts = json_object_get(start, "prompt");
  struct buf whole = {0}, size = {0};
  struct err err = {0};
  const struct recall recall = book_recall(s->book);
  size_t i;
  json_t *part;
  if (recall_parts(&recall, parts, &whole, &err))
    put_bytes(&size, whole.n);
  else
    buf_puts(&size, err.text);
  pen_line(&s->pen, 2, "asked: %s in %zu part%s%s", buf_c(&size), json_array_size(parts),
           json_array_size(parts) == 1 ? "" : "s",
           json_object_get(start, "schema") ? ", with a schema for the reply" : "");
  pen_text_begin(&s->pen);
  json_array_foreach(parts, i, part) {
    put_part(s, part);
  }
  pen_text_end(&s->pen);
  buf_deinit(&whole);
  buf_deinit(&size);
}

/* The answer's exact bytes, from the record or from its blob. */
static void answer_of(struct story *s, const json_t *end, struct buf *out) {
  struct err err = {0};
  const struct recall recall = book_recall(s->book);
  if (json_object_get(end, "text") == NULL || recall_text(&recall, end, "text", out, &err))
    return;
  pen_line(&s->pen, 2, "%s: this is the rendering in the log", err.text);
  buf_clear(out);
  buf_str(out, view(end, "text"));
}

/* How much there was of a text, and where it is. */
static void put_size_line(struct story *s, const char *title, json_int_t bytes, const char *blob,
                          json_int_t dropped) {
  struct buf size = {0};
  put_bytes(&size, (size_t)bytes);
  if (blob[0] != '\0')
    buf_printf(&size, ", kept in blobs/%.12s...", blob);
  if (dropped > 0)
    buf_printf(&size,
               ", %" JSON_INTEGER_FORMAT " more were cut at the limit: a line in it says where",
               dropped);
  pen_line(&s->pen, 2, "%s: %s", title, buf_c(&size));
  buf_deinit(&size);
}

static void put_answer(struct story *s, const char *title, const json_t *end, struct str text) {
  const json_t *structured = json_object_get(end, "structured");
  put_size_line(s, title, (json_int_t)text.n, word(end, "text_blob"), number(end, "dropped_bytes"));
  pen_text(&s->pen, text);
  if (structured != NULL) {
    char *dump = json_dump_text(structured, JSON_COMPACT | JSON_ENCODE_ANY);
    pen_line(&s->pen, 2, "as a value (%s): %s",
             word(end, "enforced")[0] ? word(end, "enforced") : "not enforced", dump ? dump : "");
    free(dump);
  }
  if (json_object_get(end, "stderr") != NULL) {
    struct str shown = view(end, "stderr");
    bool blob = json_object_get(end, "stderr_blob") != NULL;
    put_size_line(s, "stderr", blob ? number(end, "stderr_bytes") : (json_int_t)shown.n,
                  word(end, "stderr_blob"), number(end, "stderr_dropped_bytes"));
    pen_text(&s->pen, shown);
  }
}

/* Of one call: its attempts, gathered from the turn's records. */
struct call_view {
  const json_t *start; /* the first attempt's */
  const json_t *last;  /* the last attempt's call_start */
  const json_t *end;   /* the last attempt's call_end, or NULL */
  long attempts;
  json_int_t duration_ms;
};

static void call_of(const struct story *s, json_int_t call, struct call_view *out) {
  size_t i;
  json_t *record;
  *out = (struct call_view){0};
  json_array_foreach(s->records, i, record) {
    if (number(record, "call") != call)
      continue;
    if (is_type(record, "call_start")) {
      if (out->start == NULL)
        out->start = record;
      out->last = record;
      out->end = NULL;
      out->attempts++;
    } else if (is_type(record, "call_end")) {
      out->end = record;
      out->duration_ms += number(record, "duration_ms");
    }
  }
}

static void put_options(struct buf *out, const json_t *options) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)options, key, value) {
    char *text = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_printf(out, ", %s %s", key, text ? text : "");
    free(text);
  }
}

/* Whether the attempt goes on with a conversation of the provider. */
static void put_session(struct story *s, const json_t *start) {
  const json_t *session = json_object_get(start, "session");
  if (json_is_true(json_object_get(session, "resumed")))
    pen_line(&s->pen, 2, "attempt %" JSON_INTEGER_FORMAT " goes on with conversation %s",
             number(start, "attempt"), word(session, "id"));
  else if (session != NULL)
    pen_line(&s->pen, 2, "attempt %" JSON_INTEGER_FORMAT " begins a new conversation: %s",
             number(start, "attempt"), word(session, "reason"));
}

static void put_admission(struct story *s, const json_t *record) {
  struct buf line = {0};
  buf_printf(&line, "%s: %s", word(record, "provider"), word(record, "answer"));
  if (word(record, "reason")[0])
    buf_printf(&line, " (%s)", word(record, "reason"));
  if (word(record, "until")[0])
    buf_printf(&line, " until %s", word(record, "until"));
  if (word(record, "fallback")[0])
    buf_printf(&line, ": %s", word(record, "fallback"));
  pen_line(&s->pen, 2, "%s", line.p);
  buf_deinit(&line);
}

static void put_event(struct story *s, const json_t *record) {
  char *data = json_dump_text(json_object_get(record, "data"), JSON_COMPACT | JSON_ENCODE_ANY);
  pen_line(&s->pen, 2, "%s %s", word(record, "event"), data ? data : "");
  free(data);
}

static void put_failures(struct story *s, json_int_t call) {
  size_t i;
  json_t *record;
  json_array_foreach(s->records, i, record) {
    const json_t *error = json_object_get(record, "error");
    struct buf line = {0};
    if (number(record, "call") != call)
      continue;
    if (is_type(record, "call_start") && number(record, "repeats") > 0)
      pen_line(&s->pen, 2,
               "attempt %" JSON_INTEGER_FORMAT " repeats attempt %" JSON_INTEGER_FORMAT
               ": nothing says whether that one was answered",
               number(record, "attempt"), number(record, "repeats"));
    if (is_type(record, "call_start"))
      put_session(s, record);
    else if (is_type(record, "admission"))
      put_admission(s, record);
    else if (is_type(record, "call_event"))
      put_event(s, record);
    if (error == NULL)
      continue;
    buf_printf(&line, "attempt %" JSON_INTEGER_FORMAT " failed: %s: %s", number(record, "attempt"),
               word(error, "class"), word(error, "message"));
    if (json_object_get(record, "retry_in_ms") != NULL)
      buf_printf(&line, "; again in %" JSON_INTEGER_FORMAT " ms", number(record, "retry_in_ms"));
    if (word(record, "fallback")[0])
      buf_printf(&line, "; %s takes over", word(record, "fallback"));
    pen_line(&s->pen, 2, "%s", line.p);
    buf_deinit(&line);
  }
}

static void put_usage(struct buf *out, const json_t *usage) {
  static const char *const keys[] = {"input", "output", "cached"};
  for (size_t i = 0; i < ARRAY_LEN(keys); i++)
    if (json_object_get(usage, keys[i]) != NULL)
      buf_printf(out, ", %" JSON_INTEGER_FORMAT " tokens %s", number(usage, keys[i]), keys[i]);
  const json_t *cost = json_object_get(usage, "cost_usd"); /* only where the backend tells it */
  if (json_is_number(cost))
    buf_printf(out, ", cost $%.4f", json_number_value(cost));
  else if (json_is_object(usage))
    buf_puts(out, ", cost unknown");
}

/* "call 7  script  model  2 attempts, 12 ms, 100 tokens input" */
static void put_call_head(struct story *s, json_int_t call, const struct call_view *c) {
  struct buf line = {0};
  buf_printf(&line, "call %" JSON_INTEGER_FORMAT "  %s", call, word(c->last, "provider"));
  if (word(c->last, "model")[0])
    buf_printf(&line, "  %s", word(c->last, "model"));
  if (strcmp(word(c->start, "purpose"), "reask") == 0)
    buf_puts(&line, "  asked to correct the reply before");
  buf_printf(&line, "  %ld attempt%s, %" JSON_INTEGER_FORMAT " ms", c->attempts,
             c->attempts == 1 ? "" : "s", c->duration_ms);
  put_options(&line, json_object_get(c->last, "options"));
  put_usage(&line, json_object_get(c->end, "usage"));
  if (word(c->end, "provider_session")[0])
    buf_printf(&line, ", conversation %s", word(c->end, "provider_session"));
  pen_line(&s->pen, 1, "%s", line.p);
  if (word(c->end, "note")[0])
    pen_line(&s->pen, 2, "note: %s", word(c->end, "note"));
  buf_deinit(&line);
}

/* One judge call of a stage, with what its reply was read as. */
static void put_judge_call(struct story *s, json_int_t call, enum judge_stage stage) {
  struct call_view c;
  struct buf text = {0};
  char key[32];
  (void)snprintf(key, sizeof key, "%" JSON_INTEGER_FORMAT, call);
  call_of(s, call, &c);
  if (c.start == NULL) {
    pen_line(&s->pen, 1, "call %" JSON_INTEGER_FORMAT " is not in the log", call);
    return;
  }
  bool again = json_object_get(s->shown, key) != NULL;
  if (again) {
    pen_line(&s->pen, 1, "call %" JSON_INTEGER_FORMAT ", shown above", call);
  } else {
    json_object_set_new(s->shown, key, json_true());
    put_call_head(s, call, &c);
    put_prompt(s, c.start);
    put_failures(s, call);
  }
  if (c.end == NULL) {
    pen_line(&s->pen, 2, "no answer yet");
  } else if (json_object_get(c.end, "text") != NULL) {
    bool failed = json_object_get(c.end, "error") != NULL;
    answer_of(s, c.end, &text);
    if (!again)
      put_answer(s, failed ? "said before it failed" : "answered", c.end, buf_view(&text));
    if (!failed)
      reread_reply(&s->pen, &s->schemas, stage, s->movement ? s->movement->name : STR(""),
                   json_object_get(c.end, "structured"), buf_view(&text));
  }
  buf_deinit(&text);
}

/* --- stages --- */

static const char *outcome_words(const json_t *stage) {
  bool no_match = strcmp(word(stage, "outcome"), "no_match") == 0;
  if (no_match && strcmp(word(stage, "stage"), "phase1_tag") == 0)
    return "No tag in the agent's own message counts";
  if (no_match && strcmp(word(stage, "stage"), "phase3_tag") == 0)
    return "The reply named no rule by a tag";

  static const struct {
    const char *outcome, *words;
  } table[] = {
      {"no_match", "Its answer was readable and named no rule"},
      {"unreadable", "Nothing in the reply could be read as an answer"},
      {"invalid", "The value in the reply does not fit its schema"},
      {"out_of_range", "It named a rule that does not exist"},
      {"hidden", "It named a rule that was not offered"},
      {"error", "No answer came"},
      {"skipped", "It would have met the same trouble at the provider"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (strcmp(table[i].outcome, word(stage, "outcome")) == 0)
      return table[i].words;
  return "It named a rule";
}

/* One sentence: why the next stage was tried, or why none was. */
static void put_why(struct story *s, const json_t *stage, const json_t *next) {
  struct buf line = {0};
  bool matched = strcmp(word(stage, "outcome"), "matched") == 0;
  if (matched && next == NULL)
    return;
  if (matched) { /* a when() rule that stands before the label it named */
    pen_line(&s->pen, 1, "A when() rule that stands before that label is true, so it decides.");
    return;
  }
  if (strcmp(word(stage, "stage"), "when") == 0)
    buf_puts(&line, strcmp(word(stage, "outcome"), "error") == 0
                        ? "An expression cannot be evaluated"
                        : "No when() rule is true");
  else
    buf_puts(&line, outcome_words(stage));
  if (strcmp(word(stage, "outcome"), "error") == 0 && word(stage, "class")[0])
    buf_printf(&line, " (%s)", word(stage, "class"));
  if (next == NULL)
    buf_puts(&line, ", and no stage was left.");
  else if (strcmp(word(next, "outcome"), "skipped") == 0)
    buf_printf(&line, "; %s was skipped after the provider's %s error.", word(next, "stage"),
               word(next, "class"));
  else if (strcmp(word(next, "stage"), "auto_select") == 0)
    buf_puts(&line, ", so the only label left was selected.");
  else
    buf_printf(&line, ", so %s was tried.", word(next, "stage"));
  pen_line(&s->pen, 1, "%s", line.p);
  buf_deinit(&line);
}

static void put_stage_head(struct story *s, int index, const json_t *stage) {
  struct buf line = {0};
  size_t calls = json_array_size(json_object_get(stage, "calls"));
  buf_printf(&line, "stage %d  %s  %s", index, word(stage, "stage"), word(stage, "outcome"));
  if (word(stage, "class")[0])
    buf_printf(&line, " (%s)", word(stage, "class"));
  if (json_object_get(stage, "rule") != NULL)
    buf_printf(&line, "  rule %" JSON_INTEGER_FORMAT, number(stage, "rule"));
  if (word(stage, "tag")[0])
    buf_printf(&line, "  %s", word(stage, "tag"));
  if (json_is_true(json_object_get(stage, "ambiguous")))
    buf_puts(&line, "  ambiguous");
  if (strcmp(word(stage, "outcome"), "skipped") == 0)
    buf_puts(&line, "  not tried");
  else if (calls > 0)
    buf_printf(&line, "  %zu call%s, %" JSON_INTEGER_FORMAT " ms", calls, calls == 1 ? "" : "s",
               number(stage, "duration_ms"));
  else
    buf_puts(&line, "  no call");
  pen_title(&s->pen, "%s", line.p);
  buf_deinit(&line);
}

/* The agent's own last message: what phase1_tag reads. */
static void reread_agent(struct story *s) {
  size_t i;
  json_t *record;
  struct buf text = {0};
  json_array_foreach(s->records, i, record) {
    struct call_view c;
    if (!is_type(record, "call_start") || word(record, "stage")[0] != '\0' ||
        strcmp(word(record, "purpose"), "check") == 0)
      continue;
    call_of(s, number(record, "call"), &c);
    if (c.end != NULL && json_object_get(c.end, "error") == NULL) {
      buf_clear(&text);
      answer_of(s, c.end, &text);
    }
  }
  reread_reply(&s->pen, &s->schemas, STAGE_PHASE1_TAG, s->movement ? s->movement->name : STR(""),
               NULL, buf_view(&text));
  buf_deinit(&text);
}

static void put_stage(struct story *s, int index, const json_t *stage, const json_t *next) {
  enum judge_stage which = STAGE_COUNT;
  const json_t *errors = json_object_get(stage, "errors");
  size_t i;
  json_t *value;
  (void)judge_stage_from_name(view(stage, "stage"), &which);
  put_stage_head(s, index, stage);
  json_array_foreach(json_object_get(stage, "calls"), i, value) {
    put_judge_call(s, json_integer_value(value), which);
  }
  if (which == STAGE_PHASE1_TAG)
    reread_agent(s);
  if (word(stage, "extract_stage")[0])
    pen_line(&s->pen, 1, "extract_stage: %s", word(stage, "extract_stage"));
  json_array_foreach(errors, i, value) {
    pen_line(&s->pen, 1, "%s: %s",
             which == STAGE_WHEN && strcmp(word(stage, "outcome"), "error") != 0 ? "evaluated"
                                                                                 : "error",
             json_string_value(value));
  }
  if (word(stage, "reason")[0])
    pen_line(&s->pen, 1, "reason: %s", word(stage, "reason"));
  put_why(s, stage, next);
}

/* The stage record after the i-th record, before the session stopped or the turn was judged. */
static const json_t *stage_after(const struct story *s, size_t i) {
  for (size_t k = i + 1; k < json_array_size(s->records); k++) {
    const json_t *record = json_array_get(s->records, k);
    if (is_type(record, "stage"))
      return record;
    if (is_type(record, "judgment") || is_type(record, "session_stop") ||
        is_type(record, "session_resume"))
      return NULL;
  }
  return NULL;
}

/* --- the turn --- */

static void put_rules(struct story *s) {
  const struct movement *m = s->movement;
  struct buf stages = {0};
  if (m == NULL)
    return;
  pen_title(&s->pen, "rules");
  for (size_t i = 0; i < m->rule_count; i++) {
    const struct rule *rule = &m->rules[i];
    pen_line(&s->pen, 1, "%d  " STR_FMT "  > " STR_FMT "%s", rule->number, STR_ARG(rule->condition),
             STR_ARG(rule->next),
             rule->interactive_only    ? "  (interactive only: hidden)"
             : rule->kind == RULE_WHEN ? "  (never offered to a model)"
             : rule->appendix.n > 0    ? "  (shown with its appendix)"
                                       : "");
  }
  for (size_t i = 0; i < m->judge.stage_count; i++)
    buf_printf(&stages, "%s%s", i ? ", " : "", judge_stage_name(m->judge.stages[i]));
  pen_line(&s->pen, 1, "stages: %s", buf_c(&stages));
  buf_deinit(&stages);
}

static void put_argv(struct story *s, const char *const *argv) {
  struct buf line = {0};
  for (; *argv != NULL; argv++)
    buf_printf(&line, " %s", *argv);
  pen_line(&s->pen, 2, "runs:%s", buf_c(&line));
  buf_deinit(&line);
}

/* What the call is, as a title, and the program where it runs one. */
static void put_own_head(struct story *s, const json_t *start, json_int_t call,
                         const struct call_view *c) {
  bool command = strcmp(word(start, "provider"), "command") == 0;
  bool checks = strcmp(word(start, "purpose"), "check") == 0;
  const struct structured_config *so = s->movement ? s->movement->structured : NULL;
  json_int_t index = number(start, "invariant");
  const struct invariant *invariant =
      checks && so && index >= 1 && (size_t)index <= invariants_count(so->invariants)
          ? invariants_get(so->invariants, (size_t)index - 1)
          : NULL;
  const char *const *argv = invariant ? invariant->argv : s->movement ? s->movement->argv : NULL;
  if (checks)
    pen_title(&s->pen, "invariant %" JSON_INTEGER_FORMAT "  %s", index,
              invariant ? invariant->text : "");
  else
    pen_title(&s->pen, "%s",
              strcmp(word(start, "purpose"), "reask") == 0 ? "correction"
              : command                                    ? "command"
                                                           : "agent");
  put_call_head(s, call, c);
  if (command && argv != NULL)
    put_argv(s, argv);
}

/* A call of the movement's own: its work, a correction of its value, the check of an invariant. */
static void put_own(struct story *s, const json_t *start) {
  struct call_view c;
  struct buf text = {0};
  json_int_t call = number(start, "call");
  call_of(s, call, &c);
  size_t parts = json_array_size(json_object_get(c.start, "prompt"));
  put_own_head(s, start, call, &c);
  if (parts > 0 && (s->pen.full || c.end == NULL))
    put_prompt(s, c.start);
  else if (parts > 0)
    pen_line(&s->pen, 2, "asked: %zu part%s (--full shows them)", parts, parts == 1 ? "" : "s");
  put_failures(s, call);
  if (c.end == NULL) {
    pen_line(&s->pen, 2, "no answer yet");
    return;
  }
  if (json_object_get(c.end, "exit") != NULL) {
    struct buf how = {0};
    summary_exit(c.end, &how);
    pen_line(&s->pen, 2, "%s", buf_c(&how));
    buf_deinit(&how);
  }
  size_t i;
  json_t *file;
  json_array_foreach(json_object_get(c.end, "files"), i, file) {
    pen_line(&s->pen, 2, "changed %s +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT,
             word(file, "path"), number(file, "added"), number(file, "removed"));
  }
  if (json_object_get(c.end, "text") != NULL) {
    answer_of(s, c.end, &text);
    put_answer(s, json_object_get(c.end, "error") ? "said before it failed" : "answered", c.end,
               buf_view(&text));
  }
  buf_deinit(&text);
}

/* --- the value --- */

static const char *check_words(const char *outcome) {
  static const struct {
    const char *outcome, *words;
  } table[] = {
      {"valid", "it passes"},
      {"parse", "no value could be read in it"},
      {"schema", "the schema refuses the value"},
      {"invariant", "an invariant does not hold"},
      {"refused", "the model refused to answer"},
      {"length", "it was cut at its length limit"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (strcmp(table[i].outcome, outcome) == 0)
      return table[i].words;
  return "";
}

static void put_errors(struct story *s, const json_t *errors) {
  size_t i;
  json_t *error;
  json_array_foreach(errors, i, error) {
    pen_line(&s->pen, 1, "error: %s%s%s",
             json_object_get(error, "offset") ? "" : word(error, "path"),
             json_object_get(error, "offset") ? "" : ": ", word(error, "message"));
  }
}

static void put_check(struct story *s, const json_t *check) {
  size_t i;
  json_t *name;
  pen_title(&s->pen, "check %" JSON_INTEGER_FORMAT "  %s  call %" JSON_INTEGER_FORMAT "  %s",
            number(check, "number"), word(check, "outcome"), number(check, "call"),
            check_words(word(check, "outcome")));
  if (word(check, "extract_stage")[0])
    pen_line(&s->pen, 1, "extract_stage: %s", word(check, "extract_stage"));
  json_array_foreach(json_object_get(check, "repairs"), i, name) {
    pen_line(&s->pen, 1, "repaired: %s", json_string_value(name));
  }
  put_errors(s, json_object_get(check, "errors"));
  if (number(check, "errors_dropped") > 0)
    pen_line(&s->pen, 1, "and %" JSON_INTEGER_FORMAT " more", number(check, "errors_dropped"));
}

static void put_value(struct story *s, const json_t *record) {
  const json_t *value = json_object_get(record, "value");
  const char *kind;
  json_t *count;
  struct buf line = {0};
  bool found = strcmp(word(record, "outcome"), "value") == 0;
  buf_printf(&line, "%s%s  %" JSON_INTEGER_FORMAT " attempt%s",
             found ? "value" : "no value: ", found ? "" : word(record, "outcome"),
             number(record, "attempts"), number(record, "attempts") == 1 ? "" : "s");
  if (json_is_true(json_object_get(record, "first_pass")))
    buf_puts(&line, "  first pass");
  json_object_foreach(json_object_get(record, "failures"), kind, count) {
    buf_printf(&line, "  %s %" JSON_INTEGER_FORMAT, kind, json_integer_value(count));
  }
  pen_title(&s->pen, "%s", line.p);
  buf_deinit(&line);
  if (word(record, "message")[0])
    pen_line(&s->pen, 1, "%s: %s", word(record, "reason"), word(record, "message"));
  if (value != NULL) {
    struct buf text = {0};
    json_write(value, &text);
    pen_text(&s->pen, buf_view(&text));
    buf_deinit(&text);
  }
}

/* Configured stages that had no turn: they were not needed. */
static void put_untried(struct story *s, const json_t *stages) {
  struct buf names = {0};
  for (size_t i = 0; s->movement && i < s->movement->judge.stage_count; i++) {
    const char *name = judge_stage_name(s->movement->judge.stages[i]);
    bool tried = false;
    size_t k;
    json_t *stage;
    json_array_foreach(stages, k, stage) {
      tried |= strcmp(word(stage, "stage"), name) == 0;
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
    pen_line(&s->pen, 1, "no rule: %s: %s", word(judgment, "failure"), word(judgment, "reason"));
    return;
  }
  pen_line(&s->pen, 1, "rule %" JSON_INTEGER_FORMAT "  %s  > %s", number(judgment, "rule"),
           word(judgment, "condition"), word(judgment, "next"));
  if (last != NULL && number(last, "rule") > 0 && number(last, "rule") != number(judgment, "rule"))
    pen_line(&s->pen, 1,
             "%s named rule %" JSON_INTEGER_FORMAT
             "; of the rules with that label this is the first whose guard holds",
             word(last, "stage"), number(last, "rule"));
  pen_line(&s->pen, 1, "tag %s  method %s  match_method %s  ambiguous %s", word(judgment, "tag"),
           word(judgment, "method"), word(judgment, "match_method"),
           json_is_true(json_object_get(judgment, "ambiguous")) ? "yes" : "no");
  put_untried(s, stages);
}

static void put_head(struct story *s, const json_t *judgment, const json_t *start) {
  struct buf line = {0};
  buf_printf(&line, "turn %ld  %s  run %" JSON_INTEGER_FORMAT, s->turn, word(start, "movement"),
             number(start, "movement_iteration"));
  if (judgment == NULL)
    buf_puts(&line, "  not judged yet");
  else if (json_is_integer(json_object_get(judgment, "rule")))
    buf_printf(&line, "  > %s  %s", word(judgment, "next"), word(judgment, "match_method"));
  else
    buf_printf(&line, "  %s", word(judgment, "failure"));
  pen_title(&s->pen, "%s", line.p);
  buf_deinit(&line);
}

static void put_turn(struct story *s) {
  const json_t *judgment = NULL, *start = NULL;
  json_int_t last_own = 0;
  int index = 0;
  size_t i;
  json_t *record;
  json_array_foreach(s->records, i, record) {
    if (is_type(record, "judgment"))
      judgment = record;
    if (is_type(record, "turn_start"))
      start = record;
  }
  put_head(s, judgment, start);
  put_rules(s);
  json_array_foreach(s->records, i, record) {
    if (is_type(record, "call_start") && word(record, "stage")[0] == '\0' &&
        number(record, "call") > last_own) {
      last_own = number(record, "call");
      put_own(s, record);
    } else if (is_type(record, "check")) {
      put_check(s, record);
    } else if (is_type(record, "structured")) {
      put_value(s, record);
    } else if (is_type(record, "stage")) {
      put_stage(s, ++index, record, stage_after(s, i));
    } else if (is_type(record, "session_stop")) {
      pen_title(&s->pen, "stopped  %s  %s", word(record, "reason"), word(record, "ts"));
      if (word(record, "class")[0] || word(record, "message")[0])
        pen_line(&s->pen, 1, "%s%s%s", word(record, "class"), word(record, "class")[0] ? ": " : "",
                 word(record, "message"));
      if (json_object_get(record, "question") != NULL)
        pen_line(&s->pen, 1, "question: %s", word(json_object_get(record, "question"), "text"));
    } else if (is_type(record, "session_resume")) {
      pen_title(&s->pen, "resumed  %s  %s", word(record, "reason"), word(record, "ts"));
    } else if (is_type(record, "judgment")) {
      put_verdict(s, record);
    }
  }
  if (last_own == 0)
    pen_line(&s->pen, 1, "nothing ran yet");
}

/* --- gathering --- */

/* The turn's records, and the stops and resumes of the session while it was open. */
static bool gather(struct story *s, struct err *err) {
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
  long index = s->workflow ? workflow_find(s->workflow, view(first, "movement")) : -1;
  s->movement = index >= 0 ? &s->workflow->movements[index] : NULL;
}

bool explain_turn(const struct book *book, long turn, const struct explain_opts *opts,
                  struct buf *out, struct err *err) {
  struct story s = {.book = book, .turn = turn, .records = json_array(), .shown = json_object()};
  assert(book->keeps_places);
  pen_init(&s.pen, out, opts->full, opts->columns);
  bool ok = chain_schemas_init(&s.schemas, err);
  if (ok) {
    ok = gather(&s, err);
    if (ok) {
      build(&s);
      put_turn(&s);
    }
    chain_schemas_deinit(&s.schemas);
  }
  workflow_unref(s.workflow);
  json_decref(s.start);
  json_decref(s.records);
  json_decref(s.shown);
  return ok;
}
