/* Names what the views hold as numbers. */
#include "view/number_format.h"

#include "base/utf8.h"
#include "core/record.h"
#include "format/json_object.h"
#include "view/session_list.h"
#include "view/session_view.h"

#include <assert.h>

const char *view_span_name(enum view_span_kind kind) {
  static const char *const names[VIEW_SPAN_KINDS] = {"work", "judging", "waiting", "retry",
                                                     "person"};
  return kind < VIEW_SPAN_KINDS ? names[kind] : "";
}

const char *view_bound_name(enum view_bound_kind kind) {
  static const char *const names[VIEW_BOUND_KINDS] = {
      "movements", "budget", "loop",    "same_movement", "same_failure",
      "same_tool", "call",   "timeout", "stall",         "deadline"};
  return kind < VIEW_BOUND_KINDS ? names[kind] : "";
}

bool view_bound_has_time(enum view_bound_kind kind) {
  return kind == VIEW_BOUND_DEADLINE || kind == VIEW_BOUND_TIMEOUT;
}

const char *view_chain_name(enum view_chain chain) {
  static const char *const names[] = {"sound", "torn", "bad"};
  return names[chain];
}

const char *view_class_name(enum view_class class) {
  static const char *const names[VIEW_CLASS_COUNT] = {"failed",  "asking",   "waiting",
                                                      "running", "finished", "cancelled"};
  return class < VIEW_CLASS_COUNT ? names[class] : "";
}

const char *skim_method_name(int method) {
  return method < STAGE_COUNT ? judge_stage_match_method((enum judge_stage)method) : "no rule";
}

int64_t view_time(const json_t *record) {
  int64_t ms;
  const char *text = json_string_value(json_at(record, "ts"));
  return text != NULL && record_time_parse(text, &ms) ? ms : 0;
}

void view_put_time(struct buf *out, int64_t ms) {
  assert(out != NULL);
  long long s = ms / 1000;
  if (ms < 100000)
    buf_printf(out, "%.1f s", (double)ms / 1000);
  else if (s < 3600)
    buf_printf(out, "%lld min %lld s", s / 60, s % 60);
  else
    buf_printf(out, "%lld h %lld min", s / 3600, s / 60 % 60);
}

void view_put_age(struct buf *out, int64_t ms) {
  long long s = ms < 0 ? 0 : ms / 1000;
  if (s < 60)
    buf_printf(out, "%lld s", s);
  else if (s < 3600)
    buf_printf(out, "%lld min", s / 60);
  else if (s < 2 * 86400)
    buf_printf(out, "%lld h", s / 3600);
  else
    buf_printf(out, "%lld days", s / 86400);
}

void view_put_when(struct buf *out, int64_t real_ms) {
  char text[RECORD_TIME_BYTES];
  if (real_ms <= 0) {
    buf_puts(out, "-");
    return;
  }
  record_time(real_ms, text);
  buf_printf(out, "%.10s %.8s UTC", text, text + 11);
}

void view_put_dollars(struct buf *out, double cost, bool priced, bool unpriced) {
  if (priced)
    buf_printf(out, "$%.4f%s", cost, unpriced ? "+" : "");
  else if (unpriced)
    buf_puts(out, "?");
}

void view_put_cost(struct buf *out, const struct spend *s) {
  view_put_dollars(out, (double)s->cost_nano / 1e9, s->priced > 0, s->unpriced > 0);
}

size_t view_fitting(struct str text, size_t max) {
  return text.n > max ? utf8_floor(text.p, max) : text.n;
}

struct str view_cut(struct arena *arena, struct str text, size_t max) {
  buf_auto_t noted = {0};
  if (text.n <= max)
    return arena_str(arena, text);
  size_t kept = view_fitting(text, max);
  buf_append(&noted, text.p, kept);
  buf_printf(&noted, "... (%zu bytes left out)", text.n - kept);
  return arena_str(arena, buf_view(&noted));
}

void view_put_proof(struct buf *out, const struct verify_result *r) {
  static const char *const seals[] = {"not sealed", "sealed", "sealed late"};
  unsigned long long records = r->records;
  if (r->state == VERIFY_BAD)
    buf_printf(
        out,
        "bad: record %llu is not what was written (%s); it and all that follows cannot be trusted",
        (unsigned long long)r->bad_record, r->why.text);
  else if (r->state == VERIFY_TORN)
    buf_printf(out, "verified up to record %llu; a torn tail of %llu bytes follows", records,
               (unsigned long long)r->torn_bytes);
  else
    buf_printf(out, "verified: %llu record%s, %s, %s", records, records == 1 ? "" : "s",
               verify_state_name(r->state), seals[r->seal]);
}
