#include "audit/summary.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static void line_clear(struct turn_line *line) {
  buf_deinit(&line->movement);
  buf_deinit(&line->provider);
  buf_deinit(&line->what);
  buf_deinit(&line->leads_to);
  buf_deinit(&line->method);
  buf_deinit(&line->why);
  *line = (struct turn_line){0};
}

static struct turn_line *find_turn(struct summary *s, const json_t *record) {
  long turn = (long)json_integer_value(json_object_get(record, "turn"));
  struct turn_line *line = s->open;
  while (line && line->turn != turn)
    line = line->next;
  return line;
}

static struct str last_line(struct str text) {
  struct str rest = str_trim(text), line = {"", 0};
  while (rest.p != NULL)
    line = str_next_line(&rest);
  return str_trim(line);
}

void summary_exit(const json_t *record, struct buf *out) {
  int signal = (int)json_integer_value(json_object_get(record, "signal"));
  const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;
  buf_printf(out, "exit %d", (int)json_integer_value(json_object_get(record, "exit")));
  if (name != NULL)
    buf_printf(out, ", killed by SIG%s", name);
  else if (signal > 0)
    buf_printf(out, ", killed by signal %d", signal);
}

static struct str last_line_of(const json_t *record, const char *key) {
  const json_t *text = json_object_get(record, key);
  return last_line((struct str){word(record, key), json_string_length(text)});
}

/* What a call did, in a few words: a command's status and last line, the files an agent changed. One
 * that printed nothing and failed says why on stderr. */
static void describe_call(struct turn_line *line, const json_t *record) {
  const json_t *exit_status = json_object_get(record, "exit");
  const json_t *files = json_object_get(record, "files");
  buf_clear(&line->what);
  if (json_is_integer(exit_status)) {
    struct str last = last_line_of(record, "text");
    if (last.n == 0 && json_integer_value(exit_status) != 0)
      last = last_line_of(record, "stderr");
    summary_exit(record, &line->what);
    if (last.n > 0) {
      buf_puts(&line->what, ", ");
      buf_str(&line->what, last);
    }
  } else if (json_array_size(files) > 0) {
    const json_t *file = json_array_get(files, 0);
    buf_printf(&line->what, "%s +%d -%d", word(file, "path"),
               (int)json_integer_value(json_object_get(file, "added")),
               (int)json_integer_value(json_object_get(file, "removed")));
    if (json_array_size(files) > 1)
      buf_printf(&line->what, " and %zu more", json_array_size(files) - 1);
  }
}

static void add_reason(struct buf *why, const char *reason) {
  if (reason[0] == '\0' || strstr(buf_c(why), reason) != NULL)
    return;
  if (why->n > 0)
    buf_puts(why, "; ");
  buf_puts(why, reason);
}

/* Why each stage before the last did not decide, and what the last one found. */
static void explain(struct buf *why, const json_t *record) {
  const json_t *stages = json_object_get(record, "stages");
  const char *method = word(record, "method");
  size_t i;
  json_t *stage;
  json_array_foreach(stages, i, stage) {
    const json_t *errors = json_object_get(stage, "errors");
    const char *class = word(stage, "class"), *outcome = word(stage, "outcome");
    /* of expressions the last one could not be evaluated; those before it were false */
    bool expression = strcmp(word(stage, "stage"), "when") == 0 && strcmp(outcome, "error") == 0;
    size_t first = expression && json_array_size(errors) > 0 ? json_array_size(errors) - 1 : 0;
    const char *error = json_string_value(json_array_get(errors, first));
    bool decided = i + 1 == json_array_size(stages) && strcmp(outcome, "matched") == 0;
    if (strcmp(outcome, "error") == 0 && class[0]) {
      struct buf text = {0};
      buf_printf(&text, "%s: %s", class, error ? error : "no answer");
      add_reason(why, text.p);
      buf_deinit(&text);
    } else if (strcmp(outcome, "skipped") == 0) {
      struct buf text = {0};
      buf_printf(&text, "%s skipped", word(stage, "stage"));
      add_reason(why, text.p);
      buf_deinit(&text);
    } else if (error != NULL) {
      add_reason(why, error);
    }
    if (!decided)
      continue;
    const char *found = word(stage, "extract_stage");
    if (strcmp(found, "code_block") == 0)
      add_reason(why, "found in a code block");
    else if (strcmp(found, "brace") == 0)
      add_reason(why, "found in prose");
    if (strstr(method, "_tag") != NULL)
      add_reason(why, word(stage, "tag"));
    else if (strcmp(method, "ai_judge") == 0) {
      char rule[32];
      (void)snprintf(rule, sizeof rule, "rule %d",
                     (int)json_integer_value(json_object_get(record, "rule")));
      add_reason(why, rule);
    }
  }
  if (json_is_true(json_object_get(record, "ambiguous")))
    add_reason(why, "ambiguous");
  if (json_is_null(json_object_get(record, "rule")))
    add_reason(why, word(record, "reason"));
}

static void count_method(struct summary *s, const char *method) {
  if (s->methods == NULL)
    s->methods = json_object();
  json_int_t n = json_integer_value(json_object_get(s->methods, method));
  json_object_set_new(s->methods, method, json_integer(n + 1));
}

static const struct turn_line *on_judgment(struct summary *s, const json_t *record) {
  struct turn_line *line = find_turn(s, record), **at = &s->open;
  if (line == NULL)
    return NULL;
  while (*at != line)
    at = &(*at)->next;
  *at = line->next;
  bool decided = json_is_integer(json_object_get(record, "rule"));
  buf_puts(&line->leads_to, decided ? word(record, "next") : "-");
  buf_puts(&line->method, decided ? word(record, "match_method") : word(record, "failure"));
  explain(&line->why, record);
  line->judged = decided;
  if (decided)
    count_method(s, line->method.p);
  line_clear(&s->done);
  s->done = *line;
  s->done.next = NULL;
  free(line);
  buf_clear(&s->activity);
  return &s->done;
}

static void on_call_start(struct summary *s, const json_t *record) {
  struct turn_line *line = find_turn(s, record);
  const char *stage = word(record, "stage"), *provider = word(record, "provider");
  if (line == NULL)
    return;
  line->calls++;
  buf_clear(&s->activity);
  buf_printf(&s->activity, "%s  %s", buf_c(&line->movement), provider);
  const char *purpose = word(record, "purpose");
  if (stage[0])
    buf_printf(&s->activity, "  judging: %s", stage);
  else if (strcmp(purpose, "reask") == 0)
    buf_puts(&s->activity, "  correcting");
  else if (strcmp(purpose, "check") == 0)
    buf_puts(&s->activity, "  checking");
  if (json_integer_value(json_object_get(record, "attempt")) > 1)
    buf_printf(&s->activity, "  attempt %d",
               (int)json_integer_value(json_object_get(record, "attempt")));
  if (strcmp(purpose, "execute") == 0) {
    buf_clear(&line->provider);
    buf_puts(&line->provider, provider);
  }
}

/* How the value was made: in the place of what the calls did, which says less. */
static void describe_value(struct turn_line *line, const json_t *record) {
  int attempts = (int)json_integer_value(json_object_get(record, "attempts"));
  buf_clear(&line->what);
  if (strcmp(word(record, "outcome"), "value") != 0)
    buf_printf(&line->what, "no value: %s", word(record, "reason"));
  else if (json_is_true(json_object_get(record, "first_pass")))
    buf_puts(&line->what, "value at once");
  else if (attempts == 1)
    buf_puts(&line->what, "value, repaired");
  else
    buf_printf(&line->what, "value at attempt %d", attempts);
  line->has_value = true;
}

const struct turn_line *summary_feed(struct summary *s, const json_t *record) {
  const char *type = word(record, "type"), *ts = word(record, "ts");
  size_t ts_n = strnlen(ts, sizeof s->last_ts - 1);
  memcpy(s->last_ts, ts, ts_n); /* each record: snprintf would be seen */
  s->last_ts[ts_n] = '\0';
  if (strcmp(type, "session_start") == 0) {
    (void)snprintf(s->session, sizeof s->session, "%.39s", word(record, "session"));
    (void)snprintf(s->started, sizeof s->started, "%.31s", word(record, "ts"));
    (void)snprintf(s->status, sizeof s->status, "running");
    buf_puts(&s->workflow, word(json_object_get(record, "workflow"), "name"));
  } else if (strcmp(type, "turn_start") == 0) {
    struct turn_line *line = xcalloc(1, sizeof *line);
    line->turn = (long)json_integer_value(json_object_get(record, "turn"));
    line->run = (int)json_integer_value(json_object_get(record, "movement_iteration"));
    buf_puts(&line->movement, word(record, "movement"));
    line->next = s->open;
    s->open = line;
    s->turns++;
  } else if (strcmp(type, "call_start") == 0) {
    on_call_start(s, record);
  } else if (strcmp(type, "call_end") == 0) {
    struct turn_line *line = find_turn(s, record);
    if (line && line->calls > 0 && line->what.n == 0 && !line->has_value)
      describe_call(line, record);
    if (line && word(record, "fallback")[0]) {
      struct buf text = {0};
      buf_printf(&text, "%s: %s took over", word(json_object_get(record, "error"), "class"),
                 word(record, "fallback"));
      add_reason(&line->why, text.p);
      buf_deinit(&text);
    }
    if (json_object_get(record, "retry_in_ms"))
      buf_printf(&s->activity, "  %s, again in %.1f s",
                 word(json_object_get(record, "error"), "class"),
                 (double)json_integer_value(json_object_get(record, "retry_in_ms")) / 1000);
  } else if (strcmp(type, "admission") == 0) {
    struct turn_line *line = find_turn(s, record);
    const char *reason = word(record, "reason");
    if (line && word(record, "fallback")[0]) {
      struct buf text = {0};
      buf_printf(&text, "%s: %s took over", reason, word(record, "fallback"));
      add_reason(&line->why, text.p);
      buf_deinit(&text);
    }
    if (strcmp(word(record, "answer"), "wait") == 0)
      buf_printf(&s->activity, "  waits: %s%s%s", reason, word(record, "until")[0] ? " until " : "",
                 word(record, "until"));
  } else if (strcmp(type, "structured") == 0) {
    struct turn_line *line = find_turn(s, record);
    if (line != NULL)
      describe_value(line, record);
  } else if (strcmp(type, "judgment") == 0) {
    return on_judgment(s, record);
  } else if (strcmp(type, "session_resume") == 0) {
    (void)snprintf(s->status, sizeof s->status, "running");
    buf_clear(&s->message);
    buf_clear(&s->stop_class);
  } else if (strcmp(type, "session_stop") == 0) {
    (void)snprintf(s->status, sizeof s->status, "stopped");
    buf_clear(&s->message);
    buf_clear(&s->stop_class);
    buf_puts(&s->stop_class, word(record, "class"));
    const struct turn_line *line = find_turn(s, record);
    if (line != NULL) /* where it happened */
      buf_printf(&s->message, "%s: ", buf_c(&line->movement));
    if (strcmp(word(record, "reason"), "provider_error") != 0)
      buf_printf(&s->message, "%s: ", word(record, "reason"));
    buf_puts(&s->message, word(record, "message"));
  } else if (strcmp(type, "session_end") == 0) {
    (void)snprintf(s->status, sizeof s->status, "%.31s", word(record, "outcome"));
    buf_clear(&s->message);
    buf_puts(&s->message, word(record, "message"));
  }
  return NULL;
}

void summary_methods(const struct summary *s, struct buf *out) {
  const char *method;
  json_t *count;
  json_object_foreach(s->methods, method, count) {
    buf_printf(out, "%s%s %d", out->n > 0 ? "  " : "", method, (int)json_integer_value(count));
  }
}

void summary_deinit(struct summary *s) {
  while (s->open) {
    struct turn_line *next = s->open->next;
    line_clear(s->open);
    free(s->open);
    s->open = next;
  }
  line_clear(&s->done);
  buf_deinit(&s->workflow);
  buf_deinit(&s->message);
  buf_deinit(&s->stop_class);
  buf_deinit(&s->activity);
  json_decref(s->methods);
  *s = (struct summary){0};
}
