/* Explains calls: what was asked, and what came back. */
#include "audit/explain_internal.h"
#include "audit/reread.h"
#include "audit/summary.h"
#include "base/log.h"
#include "format/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *explain_word(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

struct str explain_view(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return (struct str){explain_word(object, key),
                      json_is_string(value) ? json_string_length(value) : 0};
}

json_int_t explain_number(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

bool explain_is_type(const json_t *record, const char *type) {
  return strcmp(explain_word(record, "type"), type) == 0;
}

/* Writes a part of a prompt. A reference to a piece of another prompt only repeats the template's
 * words: its origin is shown only in full. The origin of a task, an answer or a facet is always
 * shown. */
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
    buf_put_size(&head, text.n);
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

/* Writes "asked: 1.2 KiB in 7 parts, with a schema for the reply". The prompt follows, or `hint`
 * says how to see it. */
static void put_asked(struct story *s, const json_t *start, const char *hint) {
  const json_t *parts = json_object_get(start, "prompt");
  size_t count = json_array_size(parts);
  struct buf whole = {0}, line = {0};
  struct err err = {0};
  const struct recall recall = book_recall(s->book);
  bool found = recall_parts(&recall, parts, &whole, &err);
  if (found) {
    buf_put_size(&line, whole.n);
    buf_puts(&line, " in ");
  }
  buf_printf(&line, "%zu part%s", count, count == 1 ? "" : "s");
  if (!found)
    buf_printf(&line, ", some of which are missing (%s)", err.text);
  if (json_object_get(start, "schema") != NULL)
    buf_puts(&line, ", with a schema for the reply");
  pen_line(&s->pen, 2, "asked: %s%s", buf_c(&line), hint);
  buf_deinit(&whole);
  buf_deinit(&line);
}

/* Writes the prompt. `start` is the call's first record that holds it. */
static void put_prompt(struct story *s, const json_t *start) {
  size_t i;
  json_t *part;
  put_asked(s, start, "");
  pen_text_begin(&s->pen);
  json_array_foreach(json_object_get(start, "prompt"), i, part) {
    put_part(s, part);
  }
  pen_text_end(&s->pen);
}

/* Gets the exact bytes of an answer, from the record or from its blob. */
void explain_answer_of(struct story *s, const json_t *end, struct buf *out) {
  struct err err = {0};
  const struct recall recall = book_recall(s->book);
  if (json_object_get(end, "text") == NULL || recall_text(&recall, end, "text", out, &err))
    return;
  pen_line(&s->pen, 2, "%s: this is the rendering in the log", err.text);
  buf_clear(out);
  buf_str(out, explain_view(end, "text"));
}

/* Writes how much there was of a text, and where it is. */
static void put_size_line(struct story *s, const char *title, json_int_t bytes, const char *blob,
                          json_int_t dropped) {
  struct buf size = {0};
  buf_put_size(&size, (size_t)bytes);
  if (blob[0] != '\0')
    buf_printf(&size, ", kept in blobs/%.12s...", blob);
  if (dropped > 0)
    buf_printf(&size,
               ", %" JSON_INTEGER_FORMAT " more were cut at the limit: a line in it says where",
               dropped);
  pen_line(&s->pen, 2, "%s: %s", title, buf_c(&size));
  buf_deinit(&size);
}

/* Lists the requests of a call that needed several. */
static void put_requests(struct story *s, const json_t *requests) {
  size_t i;
  const json_t *r;
  json_array_foreach((json_t *)requests, i, r) {
    static const char *const texts[] = {"appended", "reasoning", "text", "error"};
    pen_line(&s->pen, 2, "request %zu asked to %s", i + 1, explain_word(r, "asked"));
    for (size_t k = 0; k < ARRAY_LEN(texts); k++)
      if (explain_view(r, texts[k]).n > 0) {
        pen_line(&s->pen, 3, "%s:", texts[k]);
        pen_text(&s->pen, explain_view(r, texts[k]));
      }
  }
}

static void put_answer(struct story *s, const char *title, const json_t *end, struct str text) {
  const json_t *structured = json_object_get(end, "structured");
  put_size_line(s, title, (json_int_t)text.n, explain_word(end, "text_blob"),
                explain_number(end, "dropped_bytes"));
  pen_text(&s->pen, text);
  put_requests(s, json_object_get(end, "requests"));
  if (structured != NULL) {
    char *dump = json_dump_text(structured, JSON_COMPACT | JSON_ENCODE_ANY);
    pen_line(&s->pen, 2, "as a value (%s): %s",
             explain_word(end, "enforced")[0] ? explain_word(end, "enforced") : "not enforced",
             dump ? dump : "");
    free(dump);
  }
  if (json_object_get(end, "stderr") != NULL) {
    struct str shown = explain_view(end, "stderr");
    bool blob = json_object_get(end, "stderr_blob") != NULL;
    put_size_line(s, "stderr", blob ? explain_number(end, "stderr_bytes") : (json_int_t)shown.n,
                  explain_word(end, "stderr_blob"), explain_number(end, "stderr_dropped_bytes"));
    pen_text(&s->pen, shown);
  }
}

/* Explains a missing answer: the session's state says whether one may still come. */
static void put_no_answer(struct story *s) {
  const json_t *last = NULL;
  size_t i;
  json_t *record;
  json_array_foreach(s->records, i, record) {
    if (strncmp(explain_word(record, "type"), LIT("session_")) == 0)
      last = record;
  }
  const char *why = " yet";
  if (explain_is_type(last, "session_end"))
    why = ": the session ended";
  else if (explain_is_type(last, "session_stop"))
    why = ": the session stopped";
  pen_line(&s->pen, 2, "no answer%s", why);
}

void explain_call_of(const struct story *s, json_int_t call, struct call_view *out) {
  size_t i;
  json_t *record;
  *out = (struct call_view){0};
  json_array_foreach(s->records, i, record) {
    if (explain_number(record, "call") != call)
      continue;
    if (explain_is_type(record, "call_start")) {
      if (out->start == NULL)
        out->start = record;
      out->last = record;
      out->end = NULL;
      out->attempts++;
    } else if (explain_is_type(record, "call_end")) {
      json_int_t ms = explain_number(record, "duration_ms");
      out->end = record;
      if (ms > 0 && ms < INT64_MAX - out->duration_ms) /* the log may come from anybody */
        out->duration_ms += ms;
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

/* Says whether the attempt continues a conversation of the provider. */
static void put_session(struct story *s, const json_t *start) {
  const json_t *session = json_object_get(start, "session");
  if (json_is_true(json_object_get(session, "resumed")))
    pen_line(&s->pen, 2, "attempt %" JSON_INTEGER_FORMAT " goes on with %sconversation %s",
             explain_number(start, "attempt"),
             json_is_true(json_object_get(session, "forked")) ? "a copy of " : "",
             explain_word(session, "id"));
  else if (session != NULL)
    pen_line(&s->pen, 2, "attempt %" JSON_INTEGER_FORMAT " begins a new conversation: %s",
             explain_number(start, "attempt"), explain_word(session, "reason"));
}

static void put_admission(struct story *s, const json_t *record) {
  struct buf line = {0};
  buf_printf(&line, "%s: %s", explain_word(record, "provider"), explain_word(record, "answer"));
  if (explain_word(record, "reason")[0])
    buf_printf(&line, " (%s)", explain_word(record, "reason"));
  if (explain_word(record, "message")[0])
    buf_printf(&line, ": %s", explain_word(record, "message"));
  if (explain_word(record, "until")[0])
    buf_printf(&line, " until %s", explain_word(record, "until"));
  if (explain_word(record, "fallback")[0])
    buf_printf(&line, ": %s", explain_word(record, "fallback"));
  pen_line(&s->pen, 2, "%s", line.p);
  buf_deinit(&line);
}

/* Finds a tool's name: the end of its use often gives only its id. */
static const char *tool_name_of(const struct story *s, const json_t *data) {
  const char *id = explain_word(data, "id"), *name = explain_word(data, "name");
  size_t i;
  json_t *record;
  json_array_foreach(s->records, i, record) {
    const json_t *other = json_object_get(record, "data");
    if (name[0] == '\0' && id[0] != '\0' && strcmp(explain_word(other, "id"), id) == 0)
      name = explain_word(other, "name");
  }
  return name;
}

/* Writes "tool Bash: make test", or "tool Bash ended, exit 2" with the first and last lines
 * below. */
static void put_tool(struct story *s, const json_t *data) {
  struct buf line = {0};
  const char *argument = explain_word(data, "argument");
  bool ends = strcmp(explain_word(data, "state"), "end") == 0;
  buf_printf(&line, "tool %s%s", tool_name_of(s, data), ends ? " ended" : "");
  if (json_is_true(json_object_get(data, "failed")))
    buf_puts(&line, ", failed");
  if (json_object_get(data, "exit") != NULL)
    buf_printf(&line, ", exit %" JSON_INTEGER_FORMAT, explain_number(data, "exit"));
  if (argument[0] != '\0')
    buf_printf(&line, ": %s", argument);
  pen_line(&s->pen, 2, "%s", buf_c(&line));
  if (explain_word(data, "output")[0] != '\0')
    pen_text(&s->pen, str_from(explain_word(data, "output")));
  buf_deinit(&line);
}

static void put_event(struct story *s, const json_t *record) {
  const char *text = explain_word(json_object_get(record, "data"), "text");
  if (strcmp(explain_word(record, "event"), "tool") == 0) {
    put_tool(s, json_object_get(record, "data"));
    return;
  }
  if (strcmp(explain_word(record, "event"), "note") == 0 && text[0] != '\0') {
    pen_line(&s->pen, 2, "note: %s", text);
    return;
  }
  char *data = json_dump_text(json_object_get(record, "data"), JSON_COMPACT | JSON_ENCODE_ANY);
  pen_line(&s->pen, 2, "%s %s", explain_word(record, "event"), data ? data : "");
  free(data);
}

static void put_failures(struct story *s, json_int_t call) {
  size_t i;
  json_t *record;
  json_array_foreach(s->records, i, record) {
    const json_t *error = json_object_get(record, "error");
    struct buf line = {0};
    if (explain_number(record, "call") != call)
      continue;
    if (explain_is_type(record, "call_start") && explain_number(record, "repeats") > 0)
      pen_line(&s->pen, 2,
               "attempt %" JSON_INTEGER_FORMAT " repeats attempt %" JSON_INTEGER_FORMAT
               ": it is not known whether that one was answered",
               explain_number(record, "attempt"), explain_number(record, "repeats"));
    if (explain_is_type(record, "call_start"))
      put_session(s, record);
    else if (explain_is_type(record, "admission"))
      put_admission(s, record);
    else if (explain_is_type(record, "call_event"))
      put_event(s, record);
    if (error == NULL)
      continue;
    buf_printf(&line, "attempt %" JSON_INTEGER_FORMAT " failed: %s: %s",
               explain_number(record, "attempt"), explain_word(error, "class"),
               explain_word(error, "message"));
    if (json_object_get(record, "retry_in_ms") != NULL)
      buf_printf(&line, "; again in %" JSON_INTEGER_FORMAT " ms",
                 explain_number(record, "retry_in_ms"));
    if (explain_word(record, "fallback")[0])
      buf_printf(&line, "; %s takes over", explain_word(record, "fallback"));
    pen_line(&s->pen, 2, "%s", line.p);
    buf_deinit(&line);
  }
}

static void put_usage(struct buf *out, const json_t *usage) {
  static const char *const keys[] = {"input", "output", "cached", "reasoning"};
  for (size_t i = 0; i < ARRAY_LEN(keys); i++)
    if (json_object_get(usage, keys[i]) != NULL)
      buf_printf(out, ", %" JSON_INTEGER_FORMAT " tokens %s", explain_number(usage, keys[i]),
                 keys[i]);
  const char *told = explain_word(usage, "told");
  if (told[0] != '\0')
    buf_printf(out, ", tokens told: %s", told);
  const json_t *cost = json_object_get(usage, "cost_usd");
  if (json_is_number(cost))
    buf_printf(out, ", cost $%.4f", json_number_value(cost));
  else if (json_is_object(usage))
    buf_puts(out, ", cost unknown");
}

/* Writes "call 7  script  model  2 attempts, 12 ms, 100 tokens input". */
static void put_call_head(struct story *s, json_int_t call, const struct call_view *c) {
  struct buf line = {0};
  buf_printf(&line, "call %" JSON_INTEGER_FORMAT "  %s", call, explain_word(c->last, "provider"));
  if (explain_word(c->last, "model")[0])
    buf_printf(&line, "  %s", explain_word(c->last, "model"));
  if (strcmp(explain_word(c->start, "purpose"), "reask") == 0)
    buf_puts(&line, "  asked to correct the earlier reply");
  buf_printf(&line, "  %ld attempt%s, %" JSON_INTEGER_FORMAT " ms", c->attempts,
             c->attempts == 1 ? "" : "s", c->duration_ms);
  put_options(&line, json_object_get(c->last, "options"));
  put_usage(&line, json_object_get(c->end, "usage"));
  if (explain_word(c->end, "provider_session")[0])
    buf_printf(&line, ", conversation %s", explain_word(c->end, "provider_session"));
  pen_line(&s->pen, 1, "%s", line.p);
  if (explain_word(c->end, "note")[0])
    pen_line(&s->pen, 2, "note: %s", explain_word(c->end, "note"));
  buf_deinit(&line);
}

/* Explains one judge call of a stage, and how its reply was read. */
void explain_judge_call(struct story *s, json_int_t call, enum judge_stage stage) {
  struct call_view c;
  struct buf text = {0};
  char key[32];
  (void)snprintf(key, sizeof key, "%" JSON_INTEGER_FORMAT, call);
  explain_call_of(s, call, &c);
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
    put_no_answer(s);
  } else if (json_object_get(c.end, "text") != NULL) {
    bool failed = json_object_get(c.end, "error") != NULL;
    explain_answer_of(s, c.end, &text);
    if (!again)
      put_answer(s, failed ? "said before it failed" : "answered", c.end, buf_view(&text));
    const struct chain_spec spec = explain_spec(s);
    if (!failed)
      reread_reply(&s->pen, &s->schemas, stage, &spec, json_object_get(c.end, "structured"),
                   buf_view(&text));
  }
  buf_deinit(&text);
}

static void put_argv(struct story *s, const char *const *argv) {
  struct buf line = {0};
  for (; *argv != NULL; argv++)
    buf_printf(&line, " %s", *argv);
  pen_line(&s->pen, 2, "runs:%s", buf_c(&line));
  buf_deinit(&line);
}

/* Writes a call's title: what it is, and its program if it runs one. */
static void put_own_head(struct story *s, const json_t *start, json_int_t call,
                         const struct call_view *c) {
  bool command = strcmp(explain_word(start, "provider"), "command") == 0;
  bool checks = strcmp(explain_word(start, "purpose"), "check") == 0;
  const struct structured_config *so = s->movement ? s->movement->structured : NULL;
  json_int_t index = explain_number(start, "invariant");
  bool known = checks && so && index >= 1 && (size_t)index <= invariants_count(so->invariants);
  const struct invariant *invariant =
      known ? invariants_get(so->invariants, (size_t)index - 1) : NULL;
  const char *const *argv = s->movement ? s->movement->argv : NULL;
  if (invariant != NULL)
    argv = invariant->argv;
  if (checks)
    pen_title(&s->pen, "invariant %" JSON_INTEGER_FORMAT "  %s", index,
              invariant ? invariant->text : "");
  else if (strcmp(explain_word(start, "purpose"), "reask") == 0)
    pen_title(&s->pen, "correction");
  else
    pen_title(&s->pen, "%s", command ? "command" : "agent");
  put_call_head(s, call, c);
  if (command && argv != NULL)
    put_argv(s, argv);
}

static void put_changed(struct story *s, const json_t *end) {
  size_t i;
  json_t *file;
  if (json_object_get(end, "files_shared") != NULL)
    pen_line(&s->pen, 2, "others worked in the tree at the same time; some of this may be theirs:");
  json_array_foreach(json_object_get(end, "files"), i, file) {
    if (json_object_get(file, "added") == NULL)
      pen_line(&s->pen, 2, "changed %s", explain_word(file, "path"));
    else
      pen_line(&s->pen, 2, "changed %s +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT,
               explain_word(file, "path"), explain_number(file, "added"),
               explain_number(file, "removed"));
  }
  if (json_object_get(end, "files_more") != NULL)
    pen_line(&s->pen, 2, "changed %" JSON_INTEGER_FORMAT " more files",
             explain_number(end, "files_more"));
}

/* Explains a call of the movement's own: its work, a correction of its value, the check of an
 * invariant. */
void explain_own_call(struct story *s, const json_t *start) {
  struct call_view c;
  struct buf text = {0};
  json_int_t call = explain_number(start, "call");
  explain_call_of(s, call, &c);
  size_t parts = json_array_size(json_object_get(c.start, "prompt"));
  put_own_head(s, start, call, &c);
  if (parts > 0 && (s->pen.full || c.end == NULL))
    put_prompt(s, c.start);
  else if (parts > 0)
    put_asked(s, c.start, parts == 1 ? " (--full shows it)" : " (--full shows them)");
  put_failures(s, call);
  if (c.end == NULL) {
    put_no_answer(s);
    return;
  }
  if (json_object_get(c.end, "exit") != NULL) {
    struct buf how = {0};
    summary_exit((int)json_integer_value(json_object_get(c.end, "exit")),
                 (int)json_integer_value(json_object_get(c.end, "signal")), &how);
    pen_line(&s->pen, 2, "%s", buf_c(&how));
    buf_deinit(&how);
  }
  put_changed(s, c.end);
  if (json_object_get(c.end, "text") != NULL) {
    explain_answer_of(s, c.end, &text);
    put_answer(s, json_object_get(c.end, "error") ? "said before it failed" : "answered", c.end,
               buf_view(&text));
  }
  explain_denied(s, call, &c);
  buf_deinit(&text);
}
