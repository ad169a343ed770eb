/* Sums records up, one line per turn. */
#include "audit/turn_lines.h"

#include "base/list.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/checks.h"
#include "core/evidence.h"
#include "core/head.h"
#include "core/hidden_tests.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "judge/stage.h"
#include "provider/denials.h"

#include <stdlib.h>
#include <string.h>

static void line_clear(struct turn_line *line) {
  buf_deinit(&line->movement);
  buf_deinit(&line->provider);
  buf_deinit(&line->what);
  buf_deinit(&line->leads_to);
  buf_deinit(&line->method);
  buf_deinit(&line->why);
  buf_deinit(&line->now);
  buf_deinit(&line->tool);
  buf_deinit(&line->reason);
  buf_deinit(&line->hint);
  spends_deinit(&line->spends);
  *line = (struct turn_line){0};
}

/* Counts how many of a group's children have begun or ended. */
static void count_child(struct turn_lines *s, long group, int over, int begun) {
  for (struct turn_line *line = s->open; line != NULL && group > 0; line = line->next)
    if (line->turn == group) {
      line->ran += over;
      line->runs += begun - over;
      buf_clear(&line->now);
      buf_printf(&line->now, "%ld judged, %ld at work", line->ran, line->runs);
    }
}

/* Returns the last line that says something; make's own last words are about its rule and not about
 * what went wrong. */
static struct str last_line(struct str text) {
  struct str rest = str_trim(text), last = {"", 0};
  while (rest.p != NULL) {
    struct str line = str_trim(str_next_line(&rest));
    bool echo = str_starts(line, "make: *** ") || str_starts(line, "make[");
    if (line.n > 0 && !(echo && last.n > 0))
      last = line;
  }
  return last;
}

void turn_lines_exit(int status, int signal, struct buf *out) {
  const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;
  buf_printf(out, "exit %d", status);
  if (name != NULL)
    buf_printf(out, ", killed by SIG%s", name);
  else if (signal > 0)
    buf_printf(out, ", killed by signal %d", signal);
}

/* Describes in a few words what a call did: a command's status and last line, and the files it
 * changed. If it failed and printed nothing, stderr says why. */
static void describe_call(struct turn_line *line, const struct record *record) {
  buf_clear(&line->what);
  if (record_is_number(record, MEMBER_EXIT)) {
    int status = (int)record_number(record, MEMBER_EXIT);
    struct str last = last_line(record_text(record, MEMBER_TEXT));
    const json_t *tests = record_tree(record, MEMBER_TESTS);
    if (last.n == 0 && status != 0)
      last = last_line(record_text(record, MEMBER_STDERR));
    turn_lines_exit(status, (int)record_number(record, MEMBER_SIGNAL), &line->what);
    if (tests != NULL && (json_at(tests, "none") == NULL || json_at(tests, "fell") != NULL)) {
      /* ", no pass: 12 passed, 1 failed": says so if an exit of 0 was not a pass. */
      const char *problem = json_word_at(tests, "problem");
      buf_puts(&line->what, status == 0 && checks_is_no_pass(tests) ? ", no pass: " : ", ");
      if (problem[0] != '\0')
        buf_puts(&line->what, problem);
      else
        checks_tests(tests, &line->what);
    } else if (last.n > 0) {
      buf_puts(&line->what, ", ");
      buf_str(&line->what, last);
    }
  }
  const char *sep = line->what.n > 0 ? "; " : "";
  buf_auto_t head = {0};
  head_tell(record_tree(record, MEMBER_HEAD), &head);
  if (head.n > 0)
    buf_printf(&line->what, "%s%s", sep, buf_c(&head));
  /* "src/a.c +1 -1 and 2 more" */
  const json_t *files = record_tree(record, MEMBER_FILES), *file = json_array_get(files, 0);
  if (json_is_array(files) && file == NULL && line->edits && line->what.n == 0)
    buf_puts(&line->what, "no file changed");
  if (file == NULL || record_is_true(record, MEMBER_FILES_SHARED))
    return;
  size_t more = json_array_size(files) - 1 + (size_t)record_number(record, MEMBER_FILES_MORE);
  buf_puts(&line->what, line->what.n > 0 ? "; " : "");
  buf_puts(&line->what, json_word_at(file, "path"));
  if (json_object_get(file, "added") != NULL)
    buf_printf(&line->what, " +%d -%d", (int)json_int_at(file, "added"),
               (int)json_int_at(file, "removed"));
  if (more > 0)
    buf_printf(&line->what, " and %zu more", more);
}

static void add_reason(struct buf *why, const char *reason) {
  if (reason[0] == '\0' || strstr(buf_c(why), reason) != NULL)
    return;
  if (why->n > 0)
    buf_puts(why, "; ");
  buf_puts(why, reason);
}

/* Explains why each stage before the last did not decide, and what the last one found. */
static void turn_lines_explain(struct turn_line *line, const struct record *record) {
  struct buf *why = &line->why;
  const json_t *stages = record_tree(record, MEMBER_STAGES);
  const char *method = record_text_c(record, MEMBER_METHOD);
  JSON_EACH(stages, i, stage) {
    const json_t *errors = json_object_get(stage, "errors");
    const char *class = json_word_at(stage, "class"), *outcome = json_word_at(stage, "outcome");
    /* the last expression could not be evaluated; those before it were false */
    bool expression =
        strcmp(json_word_at(stage, "stage"), "when") == 0 && strcmp(outcome, "error") == 0;
    size_t first = expression && json_array_size(errors) > 0 ? json_array_size(errors) - 1 : 0;
    const char *error = json_string_value(json_array_get(errors, first));
    bool decided = i + 1 == json_array_size(stages) && strcmp(outcome, "matched") == 0;
    if (strcmp(outcome, "error") == 0 && class[0]) {
      buf_auto_t text = buf_of("%s: %s", class, error ? error : "no answer");
      add_reason(why, text.p);
    } else if (strcmp(outcome, "skipped") == 0) {
      buf_auto_t text =
          buf_of(STR_FMT " skipped", STR_ARG(judge_stage_words(json_view_at(stage, "stage"))));
      add_reason(why, text.p);
    } else if (error != NULL) {
      add_reason(why, error);
    }
    if (!decided)
      continue;
    buf_clear(&line->reason);
    if (json_object_get(stage, "provider") != NULL) /* somebody judged */
      buf_puts(&line->reason, json_word_at(stage, "reason"));
    const char *found = json_word_at(stage, "extract_stage");
    if (strcmp(found, "code_block") == 0)
      add_reason(why, "found in a code block");
    else if (strcmp(found, "brace") == 0)
      add_reason(why, "found in prose");
    if (strstr(method, "_tag") != NULL)
      add_reason(why, json_word_at(stage, "tag"));
    else if (strcmp(method, "ai_judge") == 0) {
      char rule[32];
      print_into(rule, sizeof rule, "rule %d", (int)record_number(record, MEMBER_RULE));
      add_reason(why, rule);
    }
  }
  if (record_is_true(record, MEMBER_AMBIGUOUS))
    add_reason(why, "ambiguous");
  if (!record_is_number(record, MEMBER_RULE))
    add_reason(why, record_text_c(record, MEMBER_REASON));
}

static int64_t line_duration(const struct turn_line *line) {
  return line->heard_ms > line->started_ms ? line->heard_ms - line->started_ms : 0;
}

int64_t turn_lines_duration(const struct turn_lines *s) {
  int64_t sum = s->duration_ms;
  for (const struct turn_line *line = s->open; line != NULL; line = line->next)
    sum += line_duration(line);
  return sum;
}

/* Ends a line and frees its place among the open ones. */
static const struct turn_line *finish_line(struct turn_lines *s, struct turn_line *line) {
  CHAIN_REMOVE(s->open, line);
  line->duration_ms = line_duration(line);
  s->duration_ms += line->duration_ms;
  line_clear(&s->done);
  s->done = *line;
  s->done.next = NULL;
  free(line);
  return &s->done;
}

/* Ends a child of a group that failed: there is nothing to judge. */
static const struct turn_line *on_turn_end(struct turn_lines *s, struct turn_line *line,
                                           const struct record *record) {
  struct str next = record_text(record, MEMBER_NEXT);
  count_child(s, line->group, 0, -1);
  buf_str(&line->leads_to, next.n > 0 ? next : STR("-"));
  buf_str(&line->method, record_text(record, MEMBER_OUTCOME));
  add_reason(&line->why, record_text_c(record, MEMBER_MESSAGE));
  return finish_line(s, line);
}

static const struct turn_line *on_judgment(struct turn_lines *s, struct turn_line *line,
                                           const struct record *record) {
  bool decided = record_is_number(record, MEMBER_RULE);
  count_child(s, line->group, 1, 0);
  /* a child leads nowhere, so it says what it found */
  struct str next = record_text(record, MEMBER_NEXT);
  next = next.n > 0 ? next : record_text(record, MEMBER_CONDITION);
  buf_str(&line->leads_to, decided ? next : STR("-"));
  buf_puts(&line->method, record_text_c(record, decided ? MEMBER_MATCH_METHOD : MEMBER_FAILURE));
  turn_lines_explain(line, record);
  add_reason(&line->why, buf_c(&line->hint));
  line->judged = decided;
  if (decided) {
    if (s->methods == NULL)
      s->methods = json_object();
    json_int_t n = json_integer_value(json_object_get(s->methods, line->method.p));
    json_object_set_new(s->methods, line->method.p, json_integer(n + 1));
  }
  return finish_line(s, line);
}

static void turn_lines_on_call_start(struct turn_line *line, const struct record *record) {
  const char *stage = record_text_c(record, MEMBER_STAGE);
  const char *provider = record_text_c(record, MEMBER_PROVIDER);
  const char *by = json_word_at(record_tree(record, MEMBER_SANDBOX), "mechanism");
  line->calls++;
  line->is_held = by[0] != '\0';
  line->hides = denial_hides(by);
  buf_clear(&line->now);
  buf_clear(&line->tool);
  line->away = false;
  line->told_tokens = 0;
  buf_puts(&line->now, provider);
  const char *purpose = record_text_c(record, MEMBER_PURPOSE);
  if (stage[0])
    buf_printf(&line->now, "  judging: " STR_FMT, STR_ARG(judge_stage_words(str_from(stage))));
  else if (strcmp(purpose, "reask") == 0)
    buf_puts(&line->now, "  correcting");
  else if (strcmp(purpose, "check") == 0)
    buf_puts(&line->now, "  checking");
  if (record_number(record, MEMBER_ATTEMPT) > 1)
    buf_printf(&line->now, "  attempt %d", (int)record_number(record, MEMBER_ATTEMPT));
  if (strcmp(purpose, "execute") == 0) {
    buf_clear(&line->provider);
    buf_puts(&line->provider, provider);
  }
}

/* Describes how the value was made, instead of what the calls did, which says less. */
static void describe_value(struct turn_line *line, const struct record *record) {
  int attempts = (int)record_number(record, MEMBER_ATTEMPTS);
  buf_clear(&line->what);
  if (strcmp(record_text_c(record, MEMBER_OUTCOME), "value") != 0)
    buf_printf(&line->what, "no value: %s", record_text_c(record, MEMBER_REASON));
  else if (record_is_true(record, MEMBER_FIRST_PASS))
    buf_puts(&line->what, "value at once");
  else if (attempts == 1)
    buf_puts(&line->what, "value, repaired");
  else
    buf_printf(&line->what, "value at attempt %d", attempts);
  line->has_value = true;
}

static void took_over(struct turn_line *line, const struct record *record, const char *why) {
  const char *fallback = record_text_c(record, MEMBER_FALLBACK);
  buf_auto_t text = {0};
  if (fallback[0] == '\0')
    return;
  buf_printf(&text, "%s: %s took over", why, fallback);
  add_reason(&line->why, text.p);
}

/* Returns the columns for the names of a movement and its children, which are indented. */
static int name_columns(const json_t *movement) {
  const char *name = json_word_at(movement, "name");
  int own = (int)utf8_count(name, strlen(name)), most = own;
  JSON_EACH(json_object_get(movement, "parallel"), i, child) {
    const char *of_child = json_word_at(child, "name");
    int columns = own + 3 + (int)utf8_count(of_child, strlen(of_child));
    if (json_object_get(movement, "for_each") != NULL)
      columns += 4; /* a space and the item's number */
    most = columns > most ? columns : most;
  }
  return most;
}

static void on_session_start(struct turn_lines *s, const struct record *record) {
  print_into(s->session, sizeof s->session, "%.39s", record_text_c(record, MEMBER_SESSION));
  print_into(s->started, sizeof s->started, "%.31s", record->ts.p);
  print_into(s->status, sizeof s->status, "running");
  buf_puts(&s->workflow, json_word_at(record_tree(record, MEMBER_WORKFLOW), "name"));
  buf_puts(&s->cwd, json_word_at(record_tree(record, MEMBER_CONFIG), "cwd"));
  JSON_EACH(json_object_get(record_tree(record, MEMBER_WORKFLOW), "movements"), i, movement) {
    int columns = name_columns(movement);
    s->names = columns > s->names ? columns : s->names;
    const char *permission = json_word_at(movement, "permission");
    bool edits = json_is_true(json_object_get(movement, "edit")) ||
                 strcmp(permission, "edit") == 0 || strcmp(permission, "full") == 0;
    if (s->editors == NULL)
      s->editors = json_object();
    if (edits)
      json_object_set_new(s->editors, json_word_at(movement, "name"), json_true());
  }
}

static void on_turn_start(struct turn_lines *s, const struct record *record) {
  struct turn_line *line = xcalloc(1, sizeof *line);
  line->turn = (long)record_number(record, MEMBER_TURN);
  line->run = (int)record_number(record, MEMBER_MOVEMENT_ITERATION);
  line->is_child = record_is_number(record, MEMBER_PARENT_TURN);
  line->group = (long)record_number(record, MEMBER_PARENT_TURN);
  buf_str(&line->movement, record_text(record, MEMBER_MOVEMENT));
  line->edits = json_object_get(s->editors, buf_c(&line->movement)) != NULL;
  if (record_is_number(record, MEMBER_ITEM))
    buf_printf(&line->movement, " %lld", (long long)record_number(record, MEMBER_ITEM));
  count_child(s, line->group, 0, 1);
  (void)record_time_parse(record->ts.p, &line->started_ms);
  line->heard_ms = line->started_ms;
  line->next = s->open;
  s->open = line;
  s->turns++;
}

static int64_t turn_lines_tokens(const json_t *usage) {
  json_int_t in = json_int_at(usage, "input"), out = json_int_at(usage, "output");
  const json_int_t most = (json_int_t)1 << 40;
  return (in > 0 && in < most ? in : 0) + (out > 0 && out < most ? out : 0);
}

/* Keeps the first hint at what the sandbox may have denied. */
static void hear_denied(const struct turn_lines *s, struct turn_line *line, struct str text) {
  if (line->is_held && line->hint.n == 0)
    (void)denial_hint(text, buf_c(&s->cwd), line->hides, &line->hint);
}

/* While it runs, a call reports the tool it uses, what the tool works on, and tokens. */
static void turn_lines_on_event(const struct turn_lines *s, struct turn_line *line,
                                const struct record *record) {
  static const char *const arguments[] = {"argument", "command", "title", "input"};
  const json_t *data = record_tree(record, MEMBER_DATA);
  struct str event = record_text(record, MEMBER_EVENT);
  if (str_eq_c(event, "usage") && turn_lines_tokens(data) > 0)
    line->told_tokens = turn_lines_tokens(data);
  if (json_word_at(data, "tried")[0] != '\0')
    add_reason(&line->why, json_word_at(data, "text"));
  line->tried |= json_word_at(data, "tried")[0] != '\0';
  const char *name = json_word_at(data, "name");
  if (str_eq_c(event, "tool"))
    hear_denied(s, line, json_view_at(data, "output"));
  if (!str_eq_c(event, "tool") || name[0] == '\0')
    return;
  const char *argument = "";
  for (size_t i = 0; i < ARRAY_LEN(arguments) && argument[0] == '\0'; i++)
    argument = json_word_at(data, arguments[i]);
  /* The end of a tool's use does not repeat what it worked on. */
  if (argument[0] == '\0' && strcmp(json_word_at(data, "state"), "end") == 0 &&
      str_starts(buf_view(&line->tool), name))
    return;
  buf_clear(&line->tool);
  buf_puts(&line->tool, name);
  if (argument[0] != '\0')
    buf_printf(&line->tool, " %.200s", argument);
}

void turn_lines_hear(struct turn_lines *s, long turn, int64_t now_ms) {
  for (struct turn_line *line = s->open; line != NULL; line = line->next)
    if (line->turn == turn && now_ms > line->heard_ms)
      line->heard_ms = now_ms;
}

void turn_lines_output(struct turn_lines *s, long turn, struct str text) {
  struct turn_line *line = s->open;
  while (line != NULL && line->turn != turn)
    line = line->next;
  if (line == NULL || !str_eq_c(buf_view(&line->provider), "command"))
    return;
  text = str_trim(text);
  size_t n = text.n;
  while (n > 0 && text.p[n - 1] != '\n' && text.p[n - 1] != '\r')
    n--;
  if (text.n == 0)
    return;
  buf_clear(&line->tool);
  buf_str(&line->tool, (struct str){text.p + n, text.n - n});
}

bool turn_lines_outage(const struct record *record, struct buf *out) {
  const json_t *outage = record_tree(record, MEMBER_OUTAGE);
  char next[RECORD_TIME_BYTES];
  int64_t now_ms, wait_ms = record_number(record, MEMBER_RETRY_IN_MS);
  enum { HOURS_AT = 11 }; /* in a time of day: hh:mm:ss follow */
  const char *since = json_word_at(outage, "since"), *until = json_word_at(outage, "until");
  const char *provider = json_word_at(outage, "provider"), *at = next;
  bool queued = str_eq_c(record_text(record, MEMBER_ANSWER), "wait");
  const char *class = json_word_at(record_tree(record, MEMBER_ERROR), "class");
  if (!queued && record_get(record, MEMBER_RETRY_IN_MS) == NULL)
    return false;
  if (!record_time_parse(record->ts.p, &now_ms) || strlen(since) < HOURS_AT || wait_ms < 0 ||
      wait_ms > LIMIT_OUTAGE_MAX_MS)
    return false;
  record_time(now_ms + wait_ms, next);
  if (queued) {
    at = record_text_c(record, MEMBER_UNTIL);
    class = record_text_c(record, MEMBER_REASON);
  }
  buf_printf(out, "%s: %s since %.8sZ, next try ", provider, class, since + HOURS_AT);
  if (strlen(at) < HOURS_AT)
    buf_puts(out, "soon");
  else
    buf_printf(out, "%.8sZ", at + HOURS_AT);
  if (strlen(until) < HOURS_AT)
    buf_printf(out, ", until somebody logs in: segue doctor %s", provider);
  else
    buf_printf(out, ", until %.8sZ", until + HOURS_AT);
  return true;
}

static void turn_lines_on_call_end(struct turn_lines *s, struct turn_line *line,
                                   const struct record *record) {
  const char *class = json_word_at(record_tree(record, MEMBER_ERROR), "class");
  const json_t *usage = record_tree(record, MEMBER_USAGE);
  int64_t ms = record_number(record, MEMBER_DURATION_MS);
  if (ms < 0 || ms >= (int64_t)1 << 40)
    ms = 0;
  spends_add(&s->spends, PURPOSE_EXECUTE, STR(""), STR(""), usage, ms);
  if (line == NULL)
    return;
  if (line->calls > 0 && line->what.n == 0 && !line->has_value)
    describe_call(line, record);
  hear_denied(s, line, record_text(record, MEMBER_STDERR));
  if (record_is_number(record, MEMBER_EXIT)) /* of a command, whose words are no model's */
    hear_denied(s, line, record_text(record, MEMBER_TEXT));
  took_over(line, record, class);
  spends_add(&line->spends, PURPOSE_EXECUTE, STR(""), STR(""), usage, ms);
  line->told_tokens = 0;
  buf_clear(&line->tool);
  buf_clear(&line->now);
  line->away = turn_lines_outage(record, &line->now);
  if (!line->away && record_get(record, MEMBER_RETRY_IN_MS) != NULL)
    buf_printf(&line->now, "  %s, again in %.1f s", class,
               (double)record_number(record, MEMBER_RETRY_IN_MS) / 1000);
}

static void on_admission(struct turn_line *line, const struct record *record) {
  const char *reason = record_text_c(record, MEMBER_REASON),
             *message = record_text_c(record, MEMBER_MESSAGE),
             *until = record_text_c(record, MEMBER_UNTIL);
  if (line)
    took_over(line, record, reason);
  if (line == NULL)
    return;
  buf_auto_t away = {0};
  line->away = turn_lines_outage(record, &away);
  if (line->away) {
    buf_clear(&line->now);
    buf_str(&line->now, buf_view(&away));
  } else if (str_eq_c(record_text(record, MEMBER_ANSWER), "wait"))
    buf_printf(&line->now, "  waits: %s%s%s", message[0] ? message : reason,
               until[0] ? " until " : "", until);
}

/* Says who answered what, instead of what a call did. */
static void turn_lines_on_answer(struct turn_line *line, const struct record *record) {
  const json_t *by = record_tree(record, MEMBER_BY);
  const char *name = json_word_at(by, "name");
  struct str text = record_text(record, MEMBER_TEXT), word = record_text(record, MEMBER_ANSWER);
  bool decides = str_eq_c(word, "approve") || str_eq_c(word, "reject");
  buf_clear(&line->now);
  if (line->what.n > 0)
    buf_puts(&line->what, "; ");
  buf_printf(&line->what, "%s%s: ", json_object_get(by, "user") ? "says " : "",
             by != NULL ? name : "by the deadline");
  if (decides)
    buf_printf(&line->what, STR_FMT "%s", STR_ARG(word), text.n > 0 ? ": " : "");
  buf_str(&line->what, str_next_line(&text));
}

/* --- what people said --- */

void turn_lines_put_said(const json_t *said, struct buf *out) {
  const json_t *by = json_at(said, "by"), *call = json_at(said, "call");
  buf_printf(out, "%s%s said: ", json_at(by, "user") ? "one who says " : "",
             json_word_at(by, "name"));
  buf_str(out, json_view_at(said, "text"));
  long long number = json_integer_value(call);
  if (call == NULL)
    buf_puts(out, " (no call has read it yet)");
  else if (json_is_true(json_at(said, "read")))
    buf_printf(out, " (reached call %lld)", number);
  else
    buf_printf(out, " (in the prompt of call %lld)", number);
}

static void turn_lines_on_steer(struct turn_lines *s, struct turn_line *line,
                                const struct record *record) {
  struct str text = record_text(record, MEMBER_TEXT);
  const json_t *by = record_tree(record, MEMBER_BY);
  if (s->said == NULL)
    s->said = json_array();
  json_array_append_new(s->said, json_pack("{sI so so sO}", "said", (json_int_t)record->seq, "text",
                                           json_text(text), "at", json_text(record->ts), "by", by));
  if (line == NULL)
    return;
  buf_printf(&line->what, "%s%s says: ", line->what.n > 0 ? "; " : "", json_word_at(by, "name"));
  buf_str(&line->what, str_next_line(&text));
}

static void turn_lines_on_evidence(struct turn_lines *s, struct turn_line *line,
                                   const struct record *record) {
  const json_t *data = record_tree(record, MEMBER_DATA);
  if (record->type == RECORD_HIDDEN_TESTS) {
    hidden_tell(data, &s->evidence);
    buf_puts(&s->evidence, ".\n");
  }
  if (record->type != RECORD_EVIDENCE || line == NULL || json_at(data, "evidence") == NULL)
    return;
  struct str word = json_view_at(data, "evidence");
  buf_clear(&s->evidence);
  evidence_words_of(data, false, &s->evidence);
  if (line->what.n < LIMIT_NAME_BYTES)
    buf_printf(&line->what, "%s" STR_FMT, line->what.n > 0 ? ", " : "", STR_ARG(word));
}

/* Notes what a person said, or which call has it: in its prompt, or read while it ran. */
static void turn_lines_on_said(struct turn_lines *s, struct turn_line *line,
                               const struct record *record) {
  turn_lines_on_evidence(s, line, record);
  if (record->type == RECORD_STEER)
    turn_lines_on_steer(s, line, record);
  if (s->said == NULL)
    return;
  const json_t *event = json_at(record_tree(record, MEMBER_DATA), "said");
  const json_t *given = record_tree(record, MEMBER_SAID);
  for (size_t i = 0; (event != NULL || given != NULL) && i < json_array_size(s->said); i++) {
    json_t *said = json_array_get(s->said, i), *number = json_object_get(said, "said");
    bool read = event != NULL && json_same(event, number), has = read;
    for (size_t k = 0; k < json_array_size(given); k++)
      has = has || json_same(json_array_get(given, k), number);
    if (has)
      json_object_set_new(said, "call", json_integer(record_number(record, MEMBER_CALL)));
    if (has)
      json_object_set_new(said, "read", json_boolean(read));
  }
}

static void turn_lines_keep_spent(struct turn_lines *s, const struct record *record) {
  print_into(s->basis, sizeof s->basis, "%.15s", record_text_c(record, MEMBER_BASIS));
  json_decref(s->spent);
  s->spent = json_incref((json_t *)record_tree(record, MEMBER_SPENT));
}

/* Appends the options that must or can be given with `segue resume` after a stop with this status:
 * " --max-movements N", " --add-budget tokens=N", or nothing. budget: the record of a budget that
 * was used up, or NULL. */
static void resume_flags(struct str status, struct str class, bool names_model,
                         const json_t *budget, struct buf *out) {
  if (budget != NULL) {
    /* No option raises a call's budget, which begins anew with the next call, or a day's, which
     * ends by itself. */
    struct str of = json_view_at(budget, "of");
    if (str_eq_c(of, "session") || str_eq_c(of, "movement")) {
      struct str movement = json_view_at(budget, "movement");
      buf_puts(out, " --add-budget ");
      if (movement.n > 0)
        buf_printf(out, STR_FMT ".", STR_ARG(movement));
      buf_str(out, json_view_at(budget, "unit"));
      buf_puts(out, "=N");
    }
  } else if (str_eq_c(status, "max_movements"))
    buf_puts(out, " --max-movements N");
  else if (str_eq_c(class, "auth"))
    buf_puts(out, " (after its login or key: segue doctor)");
  else if (names_model && (str_eq_c(class, "not_found") || str_eq_c(class, "bad_request")))
    buf_puts(out, " -m MODEL");
  else if (str_eq_c(status, "rule_no_match") || str_eq_c(status, "failed"))
    buf_puts(out, " (or with your verdict: --rule N)");
}

const char *turn_lines_resume_flags(const struct turn_lines *s) {
  return buf_c(&s->resume_flags);
}

json_t *turn_lines_spent(const struct turn_lines *s) {
  return s->spent != NULL ? json_incref(s->spent) : spends_json(&s->spends);
}

/* line: the turn in which it happened, or NULL. */
static void on_session_stop(struct turn_lines *s, const struct turn_line *line,
                            const struct record *record) {
  const char *reason = record_text_c(record, MEMBER_REASON);
  struct str class = record_text(record, MEMBER_CLASS);
  const char *status = session_stop_status(str_from(reason), class);
  bool tells_all = strcmp(status, reason) == 0;
  turn_lines_keep_spent(s, record);
  print_into(s->status, sizeof s->status, "%s", status);
  s->resumable = true;
  s->asks = strcmp(reason, "question") == 0;
  s->answered = false;
  buf_clear(&s->message);
  buf_clear(&s->stop_class);
  buf_str(&s->stop_class, class);
  if (line != NULL && !tells_all)
    buf_printf(&s->message, "%s: ", buf_c(&line->movement));
  if (strcmp(reason, "provider_error") != 0 && !tells_all)
    buf_printf(&s->message, "%s: ", reason);
  buf_str(&s->message, record_text(record, MEMBER_MESSAGE));
  buf_clear(&s->resume_flags);
  if (strcmp(reason, "after") == 0)
    buf_puts(&s->resume_flags, " --now");
  else
    resume_flags(str_from(s->status), class, strcasestr(buf_c(&s->message), "model") != NULL,
                 record_tree(record, MEMBER_BUDGET), &s->resume_flags);
}

static void on_session_resume(struct turn_lines *s) {
  print_into(s->status, sizeof s->status, "running");
  s->resumable = s->answered = false;
  /* A turn that was judged without a rule opens again: it waits for another judgment. */
  if (s->done.turn != 0 && !s->done.judged) {
    struct turn_line *line = xmalloc(sizeof *line);
    *line = s->done;
    s->done = (struct turn_line){0};
    buf_clear(&line->leads_to);
    buf_clear(&line->method);
    buf_clear(&line->why);
    line->next = s->open;
    s->open = line;
  }
  buf_clear(&s->message);
  buf_clear(&s->resume_flags);
  buf_clear(&s->stop_class);
  json_decref(s->spent); /* it goes on: use is summed up here again */
  s->spent = NULL;
}

static void turn_lines_on_report(struct turn_line *line, const struct record *record) {
  if (line != NULL)
    buf_printf(&line->what, "%s%.128s", line->what.n > 0 ? ", " : "",
               record_text_c(record, MEMBER_FILE));
}

static void turn_lines_on_end(struct turn_lines *s, const struct record *record) {
  turn_lines_keep_spent(s, record);
  print_into(s->status, sizeof s->status, "%.31s", record_text_c(record, MEMBER_OUTCOME));
  print_into(s->basis, sizeof s->basis, "%.15s", record_text_c(record, MEMBER_BASIS));
  buf_clear(&s->message);
  buf_str(&s->message, record_text(record, MEMBER_MESSAGE));
}

static void turn_lines_on_question(struct turn_line *line, const struct record *record) {
  struct str text = json_view_at(record_tree(record, MEMBER_QUESTION), "text");
  if (line == NULL)
    return;
  buf_clear(&line->now);
  buf_puts(&line->now, "asks: ");
  buf_str(&line->now, str_next_line(&text));
}

/* Notes the record's time, and returns the open line of its turn; NULL: there is none. */
static struct turn_line *turn_lines_at(struct turn_lines *s, const struct record *record) {
  long turn = (long)record_number(record, MEMBER_TURN);
  struct turn_line *line = s->open;
  while (line && line->turn != turn)
    line = line->next;
  size_t ts_n = strnlen(record->ts.p, sizeof s->last_ts - 1);
  memcpy(s->last_ts, record->ts.p, ts_n); /* for each record: snprintf would cost too much */
  s->last_ts[ts_n] = '\0';
  if (line != NULL)
    (void)record_time_parse(record->ts.p, &line->heard_ms);
  return line;
}

const struct turn_line *turn_lines_feed(struct turn_lines *s, const struct record *record) {
  struct turn_line *line = turn_lines_at(s, record);
  turn_lines_on_said(s, line, record);
  switch (record->type) {
  case RECORD_SESSION_START:
    on_session_start(s, record);
    break;
  case RECORD_TURN_START:
    on_turn_start(s, record);
    break;
  case RECORD_CALL_START:
    if (line != NULL)
      turn_lines_on_call_start(line, record);
    break;
  case RECORD_CALL_END:
    turn_lines_on_call_end(s, line, record);
    break;
  case RECORD_ADMISSION:
    on_admission(line, record);
    break;
  case RECORD_STRUCTURED:
    if (line != NULL)
      describe_value(line, record);
    break;
  case RECORD_QUESTION:
    turn_lines_on_question(line, record);
    break;
  case RECORD_ANSWER:
    s->answered = s->resumable;
    if (line != NULL)
      turn_lines_on_answer(line, record);
    break;
  case RECORD_JUDGMENT:
    return line != NULL ? on_judgment(s, line, record) : NULL;
  case RECORD_TURN_END:
    return line != NULL ? on_turn_end(s, line, record) : NULL;
  case RECORD_SESSION_RESUME:
    on_session_resume(s);
    break;
  case RECORD_SESSION_STOP:
    on_session_stop(s, line, record);
    break;
  case RECORD_SESSION_END:
    turn_lines_on_end(s, record);
    break;
  case RECORD_CARRIED:
  case RECORD_CALL_EVENT:
    if (line != NULL)
      turn_lines_on_event(s, line, record);
    break;
  case RECORD_REPORT:
    turn_lines_on_report(line, record);
    break;
  case RECORD_EVIDENCE:
  case RECORD_HIDDEN_TESTS:
  case RECORD_STEER:
  case RECORD_WORKSPACE:
  case RECORD_CHECK:
  case RECORD_STAGE:
  case RECORD_TYPE_COUNT:
    break;
  }
  return NULL;
}

const struct turn_line *turn_lines_feed_json(struct turn_lines *s, const json_t *json) {
  struct record_draft d;
  record_read(&d, json);
  const struct turn_line *line = turn_lines_feed(s, &d.record);
  record_drop(&d);
  return line;
}

void turn_lines_methods(const struct turn_lines *s, struct buf *out) {
  JSON_MEMBERS(s->methods, method, count)
    buf_printf(out, "%s" STR_FMT " %d", out->n > 0 ? "  " : "",
               STR_ARG(judge_stage_words(str_from(method))), (int)json_integer_value(count));
}

void turn_lines_deinit(struct turn_lines *s) {
  while (s->open) {
    struct turn_line *next = s->open->next;
    line_clear(s->open);
    free(s->open);
    s->open = next;
  }
  line_clear(&s->done);
  buf_deinit(&s->workflow);
  buf_deinit(&s->cwd);
  buf_deinit(&s->message);
  buf_deinit(&s->evidence);
  buf_deinit(&s->stop_class);
  json_decref(s->editors);
  buf_deinit(&s->resume_flags);
  json_decref(s->methods);
  json_decref(s->spent);
  json_decref(s->said);
  spends_deinit(&s->spends);
  *s = (struct turn_lines){0};
}
