/* Judges by the evidence what came of a run: an answer, or an error with its class. */
#include "provider/agent/stream_internal.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "provider/agent/evidence.h"
#include "provider/ended.h"

#include <stdio.h>
#include <string.h>

/* --- classes --- */

static enum error_class class_of_patterns(struct driver *d, struct str text) {
  for (size_t i = 0; text.n > 0 && i < d->profile->pattern_count; i++)
    if (pattern_match(d->profile->patterns[i].pattern, &d->scratch, text.p, text.n) ==
        PATTERN_MATCH)
      return d->profile->patterns[i].class;
  return CLASS_NONE;
}

static enum error_class class_of_kind_names(struct str kinds) {
  enum error_class class = CLASS_NONE;
  while (kinds.p != NULL && kinds.n > 0) {
    struct str word = str_next_line(&kinds);
    if (word.n > 0 && error_class_from_name(word, &class) && class != CLASS_NONE)
      return class;
  }
  return CLASS_NONE;
}

/* Classifies trouble: by the profile's own words first, then by what every vendor's statuses and
 * words mean. */
static enum error_class class_of_trouble(struct driver *d) {
  const struct trouble *t = &d->trouble;
  struct str message = buf_view(&t->message), kinds = buf_view(&t->kinds);
  int status = t->status > 0 ? t->status : evidence_status(message);
  enum error_class class = t->class;
  if (class == CLASS_NONE)
    class = class_of_patterns(d, message);
  if (class == CLASS_NONE && (evidence_of_quota(message) || evidence_of_quota(kinds)))
    class = CLASS_QUOTA;
  if (class == CLASS_NONE && status > 0)
    class = profile_status_class(d->profile, status);
  if (class == CLASS_NONE)
    class = evidence_of_status(status);
  if (class == CLASS_NONE)
    class = class_of_kind_names(kinds);
  if (class == CLASS_NONE)
    class = evidence_of_words(message);
  if (class == CLASS_NONE)
    class = evidence_of_words(kinds);
  return class;
}

/* --- the end --- */

/* Makes one line of a text: white space becomes a space, and a terminal's escape sequences go. */
static void tidy(char *text) {
  char *to = text;
  text[escapes_drop(text, strlen(text))] = '\0';
  for (const char *from = text; *from != '\0'; from++) {
    if ((unsigned char)*from > ' ') {
      *to++ = *from;
    } else if (to > text && to[-1] != ' ') {
      *to++ = ' ';
    }
  }
  while (to > text && to[-1] == ' ')
    to--;
  *to = '\0';
}

static int stream_end_shown(struct str text) {
  return (int)(text.n > 400 ? utf8_floor(text.p, 400) : text.n);
}

/* Looks for a JSON document on stderr, where some clients print their last one after an error. */
static void look_at_stderr(struct driver *d, struct str text) {
  size_t tries = 0;
  for (size_t i = 0; i < text.n && d->end == STREAM_END_NONE && tries < 32; i++)
    if (text.p[i] == '{' && (i == 0 || text.p[i - 1] == '\n')) {
      tries++;
      (void)stream_read_value(d, (struct str){text.p + i, text.n - i});
    }
}

static struct str evidence_part(struct str text) {
  if (text.n > LIMIT_EVIDENCE_BYTES)
    text = (struct str){text.p + (text.n - LIMIT_EVIDENCE_BYTES), LIMIT_EVIDENCE_BYTES};
  return text;
}

/* Returns the most telling line of stderr: the one that gave away the class, else the last. */
static struct str telling_line(struct str text, enum error_class class) {
  struct str last = {0}, rest = text;
  while (rest.p != NULL && rest.n > 0) {
    struct str line = str_trim(str_next_line(&rest));
    if (line.n == 0)
      continue;
    last = line;
    if (class != CLASS_NONE && evidence_of_words(line) == class)
      return line;
  }
  return last;
}

static void read_retry_after(struct driver *d, struct str text, struct call_result *r) {
  if (r->class != CLASS_RATE_LIMIT && r->class != CLASS_OVERLOADED)
    return;
  r->retry_after_ms =
      d->trouble.retry_after_ms > 0 ? d->trouble.retry_after_ms : evidence_retry_after_ms(text);
}

/* Judges a run without a final event: by stderr and, the last and weakest sign, the exit status. */
static void judge_exit(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct str text = evidence_part(str_trim(buf_view(&r->error_text.bytes)));
  enum error_class class = CLASS_NONE;
  if (p->signal > 0) {
    call_result_fail(r, CLASS_CRASHED, "it was killed by signal %d before its final event",
                     p->signal);
    return;
  }
  if (p->exit_code != 0) {
    class = class_of_patterns(d, text);
    if (class == CLASS_NONE && evidence_status(text) > 0)
      class = evidence_of_status(evidence_status(text));
    if (class == CLASS_NONE)
      class = evidence_of_words(text);
    if (class == CLASS_NONE)
      class = profile_exit_class(d->profile, p->exit_code);
    if (class == CLASS_NONE && d->event_count == 0 && (p->exit_code == 126 || p->exit_code == 127))
      class = CLASS_NOT_FOUND; /* shells and env say so of a program or its interpreter */
  }
  struct str line = telling_line(text, class);
  if (class != CLASS_NONE)
    call_result_fail(r, class, "%.*s", stream_end_shown(line), line.p ? line.p : "");
  else if (p->exit_code != 0)
    call_result_fail(r, CLASS_CRASHED, "it ended with exit status %d and no final event%s%.*s",
                     p->exit_code, line.n > 0 ? ": " : "", stream_end_shown(line),
                     line.p ? line.p : "");
  else
    call_result_fail(r, CLASS_PROTOCOL, "it ended with exit status 0 but without its final event");
  read_retry_after(d, text, r);
}

/* Replaces the event's words by the log's about the same error. */
static void look_up_log(struct driver *d, struct str log) {
  struct buf reason = {.max = LIMIT_EVIDENCE_BYTES};
  evidence_logged(log, buf_view(&d->trouble.log), &reason);
  if (reason.n > 0) {
    buf_clear(&d->trouble.message);
    buf_str(&d->trouble.message, buf_view(&reason));
  }
  buf_deinit(&reason);
}

static void judge_trouble(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct str text = evidence_part(str_trim(buf_view(&r->error_text.bytes)));
  look_up_log(d, text);
  struct str message = str_trim(buf_view(&d->trouble.message));
  enum error_class class = class_of_trouble(d);
  if (class == CLASS_NONE && message.n == 0) { /* an error, but not which: stderr may say */
    class = class_of_patterns(d, text);
    class = class == CLASS_NONE ? evidence_of_words(text) : class;
    message = telling_line(text, class);
  }
  if (class == CLASS_NONE && p->why == PROCESS_END_EXITED && p->signal == 0)
    class = profile_exit_class(d->profile, p->exit_code);
  call_result_fail(r, class == CLASS_NONE ? CLASS_CRASHED : class, "%.*s",
                   stream_end_shown(message), message.p ? message.p : "");
  read_retry_after(d, message, r);
}

enum error_class stream_retry_class(struct driver *d) {
  struct str why = buf_view(&d->retry);
  int status = d->retry_status > 0 ? d->retry_status : d->trouble.status;
  if (why.n == 0)
    return CLASS_NONE;
  enum error_class class = class_of_patterns(d, why);
  if (class == CLASS_NONE &&
      (evidence_of_quota(why) || evidence_of_quota(buf_view(&d->trouble.message))))
    class = CLASS_QUOTA;
  if (class == CLASS_NONE)
    class = profile_status_class(d->profile, status);
  if (class == CLASS_NONE)
    class = evidence_of_status(status);
  return class == CLASS_NONE ? evidence_of_words(why) : class;
}

/* Judges a run that we ended without an answer. If the last thing it reported was why it was
 * retrying, that is what went wrong. */
static void judge_silence(struct driver *d, const struct process_result *p, struct call_result *r) {
  const char *what = "it was ended before its answer";
  if (p->why == PROCESS_END_WALL_LIMIT)
    what = "it did not end in time";
  else if (p->why == PROCESS_END_STALL_LIMIT)
    what = "it stopped printing";
  struct str why = buf_view(&d->retry);
  enum error_class class = stream_retry_class(d);
  call_result_fail(r, class == CLASS_NONE ? CLASS_TIMEOUT : class, "%s%s%.*s", what,
                   why.n > 0 ? "; it was trying again by itself: " : "", stream_end_shown(why),
                   buf_c(&d->retry));
  read_retry_after(d, why, r);
  if (r->retry_after_ms == 0)
    read_retry_after(d, evidence_part(str_trim(buf_view(&r->error_text.bytes))), r);
}

static void judge_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  switch (p->why) {
  case PROCESS_END_EXITED:
    if (d->trouble.there && d->end != STREAM_END_OK)
      judge_trouble(d, p, r);
    else if (p->ended_early && d->retry.n > 0)
      judge_silence(d, p, r);
    else if (p->ended_early && !d->ends_by_exit)
      call_result_fail(r, CLASS_PROTOCOL,
                       "it closed its output without its final event and did not end");
    else if (!d->ends_by_exit || (p->exit_code != 0 && !p->ended_early))
      judge_exit(d, p, r);
    else if (d->event_count == 0 && !d->is_text)
      call_result_fail(r, CLASS_PROTOCOL, "it ended with exit status 0, but printed no event");
    break;
  case PROCESS_END_EXEC_FAILED:
    call_result_fail(r, CLASS_NOT_FOUND, "cannot run %s: %s",
                     d->profile->program ? d->profile->program : d->profile->capability.name,
                     strerror(p->exec_errno));
    break;
  case PROCESS_END_WALL_LIMIT:
  case PROCESS_END_STALL_LIMIT:
    judge_silence(d, p, r);
    break;
  case PROCESS_END_SPAWN_FAILED:
  case PROCESS_END_CANCELLED:
  case PROCESS_END_SHIM_LOST:
    ended_fail(r, p);
    break;
  }
}

static void judge_answer(struct driver *d, const struct process_result *p, struct call_result *r) {
  bool empty = str_trim(buf_view(&r->text.bytes)).n == 0 && r->structured == NULL;
  if (empty && d->thought && d->denied.n == 0)
    call_result_fail(r, CLASS_PROTOCOL, "it ended without an error, but printed only reasoning");
  else if (empty)
    call_result_fail(
        r, d->profile->empty, "it ended without an error, but also without an answer%s%.*s",
        d->denied.n ? ": " : "", stream_end_shown(buf_view(&d->denied)), buf_c(&d->denied));
  else if (p->ended_early && d->end == STREAM_END_NONE)
    (void)snprintf(r->note, sizeof r->note,
                   "it closed its output and did not end by itself: it was ended");
  else if (p->why == PROCESS_END_EXITED && p->exit_code > 0)
    (void)snprintf(r->note, sizeof r->note, "exit status %d after the final event", p->exit_code);
}

/* Makes the client's words one line of a message. */
static void tidy_message(const struct driver *d, const struct process_result *p,
                         struct call_result *r) {
  tidy(r->message);
  if (r->message[0] == '\0' && d->trouble.there)
    call_result_fail(r, r->class, "the client reports an error and does not say which");
  else if (r->message[0] == '\0')
    call_result_fail(r, r->class, "it ended with exit status %d", p->exit_code);
}

static void take_buf(struct buf *to, struct buf *from) {
  *to = *from;
  *from = (struct buf){0};
  to->max = 0;
}

static void give_text(struct driver *d, struct call_result *r) {
  struct buf *text = d->text_of_all ? &d->all : &d->last;
  if (d->is_text) {
    r->text.bytes = head_tail_finish(&d->printed);
    r->dropped_bytes = r->text.bytes.dropped;
    return;
  }
  if (d->has_text) {
    take_buf(&r->text.bytes, &d->text);
  } else {
    bool own = d->told.n > 0; /* a message that was not finished, or pieces only */
    if (own && d->text_of_all)
      stream_add_message(text, &d->told);
    take_buf(&r->text.bytes, own && !d->text_of_all ? &d->told : text);
  }
  r->dropped_bytes = r->text.bytes.dropped;
  buf_say_cut(&r->text.bytes);
}

static void give_structured(struct driver *d, struct call_result *r) {
  struct str text = str_trim(buf_view(&r->text.bytes));
  if (d->structured == NULL && d->schema_asked && d->profile->structured_is_text && text.n > 0 &&
      text.n <= LIMIT_STRUCTURED_BYTES && (text.p[0] == '{' || text.p[0] == '['))
    d->structured = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
  r->structured = d->structured;
  d->structured = NULL;
}

void stream_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  stream_take_rest(d);
  if (p->why == PROCESS_END_EXITED && d->end == STREAM_END_NONE && !d->is_text && d->own == NULL &&
      d->event_count == 0)
    look_at_stderr(d, evidence_part(buf_view(&r->error_text.bytes)));
  give_text(d, r);
  if (d->schema_asked && r->enforced == NULL)
    r->enforced = d->profile->capability.structured;
  (void)snprintf(r->provider_session, sizeof r->provider_session, "%s", d->session);
  r->usage = json_incref(d->usage);
  if (d->line_too_long)
    call_result_fail(r, CLASS_PROTOCOL, "a line of its output is longer than %u bytes",
                     LIMIT_AGENT_LINE_BYTES);
  else if (d->end != STREAM_END_OK)
    judge_end(d, p, r);
  if (r->class == CLASS_NONE) {
    give_structured(d, r);
    judge_answer(d, p, r);
    if (!d->text_told && r->structured == NULL && r->text.bytes.n > 0)
      stream_tell(d, NEWS_TEXT, buf_view(&r->text.bytes), NULL); /* those who watch see it too */
  }
  if (r->class != CLASS_NONE)
    tidy_message(d, p, r);
  if (d->garbage_count > 0 && r->note[0] == '\0')
    (void)snprintf(r->note, sizeof r->note, "%zu line%s of its output %s no JSON", d->garbage_count,
                   d->garbage_count == 1 ? "" : "s", d->garbage_count == 1 ? "was" : "were");
}
