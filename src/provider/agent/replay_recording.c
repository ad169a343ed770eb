/* Feeds a recorded run to its driver again. */
#include "provider/agent/replay_recording.h"

#include "base/head_tail.h"
#include "base/limits.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <string.h>

/* Returns the word of argv that comes before {schema} or {schema_file}, such as --json-schema. */
static const char *schema_flag(const json_t *words) {
  const char *before = NULL;
  JSON_EACH(words, i, item) {
    const char *word = json_string_value(item);
    if (json_is_array(item)) {
      const char *found = schema_flag(item);
      if (found != NULL)
        return found;
    } else if (strstr(word, "{schema") != NULL) {
      return before;
    }
    before = word;
  }
  return NULL;
}

/* Returns the schema that was asked for, if any: its text if argv has it; a file's content is not
 * in the recording. */
static json_t *asked_schema(const struct transcript *t, const struct profile *profile) {
  const char *flag = schema_flag(profile->argv);
  const char *value = flag ? transcript_flag(t, flag) : NULL;
  json_t *schema = value ? json_loads(value, 0, NULL) : NULL;
  if (json_is_object(schema))
    return schema;
  json_decref(schema);
  return value ? json_object() : NULL;
}

/* Returns the body of an answer over HTTP, "200 {...}", or the whole text. */
static struct str replay_body_of(struct str text) {
  bool status = text.n > 4 && text.p[3] == ' ';
  for (size_t i = 0; status && i < 3; i++)
    status = str_is_digit(text.p[i]);
  return status ? (struct str){text.p + 4, text.n - 4} : text;
}

static void feed(const struct transcript *t, const struct driver_ops *ops, struct driver *d) {
  if (!t->driven) {
    ops->output(d, 1, t->out);
    ops->output(d, 2, t->err);
    return;
  }
  for (size_t i = 0; i < t->line_count; i++) {
    const struct transcript_line *line = &t->lines[i];
    bool received = line->mark == TRANSCRIPT_RECEIVED || line->mark == TRANSCRIPT_SSE;
    int fd = line->mark == TRANSCRIPT_STDERR ? 2 : 0;
    if (received)
      fd = 1;
    if (line->mark == TRANSCRIPT_SENT && ops->sent != NULL)
      ops->sent(d, line->text);
    if (fd == 0)
      continue;
    ops->output(d, fd, replay_body_of(line->text));
    ops->output(d, fd, STR("\n"));
  }
}

bool replay(const struct transcript *t, const struct profile *profile, enum transport transport,
            void (*news)(void *ctx, const struct provider_news *news), void *ctx,
            struct call_result *result, struct err *err) {
  const struct driver_ops *ops = driver_find(profile, transport, err);
  *result = (struct call_result){0};
  if (ops == NULL)
    return false;
  if (t->driven && transport == TRANSPORT_EXEC)
    return err_set(err, ERR_INVALID,
                   "this recording is of a driven run: give --transport native or acp");
  json_t *schema = asked_schema(t, profile);
  const struct call_request request = {
      .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT, .schema = schema};
  const struct agent_call call = {.request = &request,
                                  .cwd = "/",
                                  .tmpdir = "/",
                                  .session = "",
                                  .new_session = "",
                                  .schema = schema};
  const struct driver_host host = {.news = news, .ctx = ctx};
  enum process_end why = t->timed_out ? PROCESS_END_STALL_LIMIT : PROCESS_END_EXITED;
  const struct process_result process = {.why = why,
                                         .started = true,
                                         .exit_code = t->driven && !t->has_end ? 0 : t->exit_code,
                                         .signal = t->signal};
  struct head_tail err_text;
  struct driver *d = ops->open(profile, &call, &host);
  head_tail_init(&err_text, LIMIT_STDERR_BYTES);
  head_tail_append(&err_text, t->err);
  result->error_text.bytes = head_tail_finish(&err_text);
  feed(t, ops, d);
  ops->end(d, &process, result);
  ops->close(d);
  json_decref(schema);
  return true;
}

static void replay_put_text(json_t *object, const char *name, const char *text) {
  json_object_set_new(object, name, text[0] ? json_text(str_from(text)) : json_null());
}

json_t *replay_news_json(const struct provider_news *news) {
  json_t *out = json_pack("{s:s}", "event", provider_news_name(news->kind));
  if (news->kind == NEWS_TEXT || news->kind == NEWS_THINKING) {
    json_object_set_new(out, "text", json_text(news->text));
  } else if (news->kind == NEWS_SESSION) {
    json_object_set(out, "id", json_object_get(news->data, "provider_session"));
  } else {
    json_object_update_missing(out, (json_t *)news->data);
  }
  return out;
}

json_t *replay_end_json(const struct call_result *r) {
  json_t *out = json_pack("{s:s, s:s}", "event", "end", "class",
                          r->class == CLASS_NONE ? "ok" : error_class_name(r->class));
  json_object_set_new(out, "text", json_text(buf_view(&r->text.bytes)));
  json_object_set_new(out, "structured", r->structured ? json_incref(r->structured) : json_null());
  json_object_set_new(out, "enforced", r->enforced ? json_string(r->enforced) : json_null());
  replay_put_text(out, "session", r->provider_session);
  json_object_set_new(out, "usage", r->usage ? json_incref(r->usage) : json_null());
  json_object_set_new(out, "retry_after_ms",
                      r->retry_after_ms > 0 ? json_integer(r->retry_after_ms) : json_null());
  replay_put_text(out, "message", r->message);
  replay_put_text(out, "note", r->note);
  return out;
}
