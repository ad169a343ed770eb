/* Chooses what to repair, and takes a repaired value only if it is plausible. */
#include "base/log.h"
#include "extract/fix_copy.h"
#include "extract/internal.h"
#include "extract/repair.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Holds a repaired candidate. One that passes the check is preferred, then the first found in the
 * order of places. */
struct fix {
  struct repair_result r;
  json_t *value; /* owned: r.value, or what was unwrapped from it */
  size_t start;
  bool fenced, unwrapped;
};

static void fix_drop(struct fix *f) {
  json_decref(f->value);
  repair_result_deinit(&f->r);
  *f = (struct fix){0};
}

/* Returns true if one of these repairs happened. */
static bool has_repair(const struct fix *f, const char *const *names) {
  for (size_t i = 0; i < f->r.repairs_listed; i++)
    for (size_t k = 0; names[k]; k++)
      if (strcmp(f->r.repairs[i].name, names[k]) == 0)
        return true;
  return false;
}

/* Returns true if a repaired value looks like data, as it must without a schema: prose and source
 * code have brackets too. */
static bool fix_plausible(const struct extract_pass *p, const struct repair_job *job,
                          const struct fix *f) {
  if (f->r.code_like)
    return false;
  static const char *const stray[] = {"stray_text", NULL}; /* {name} is a placeholder, {} is not */
  bool whole = job->from == p->trim_start && f->r.end >= p->trim_end;
  if (json_is_object(f->value))
    return f->r.key_count > 0 || (whole && !f->r.truncated && !has_repair(f, stray));
  size_t next = f->r.end;
  /* "[text](link)" and "[1]: a footnote" are no data. */
  if (next < job->limit && job->text[job->from] == '[' &&
      (job->text[next] == '(' || job->text[next] == ':'))
    return false;
  return json_array_size(f->value) > 0 || job->from == p->trim_start;
}

/* Runs the job. Returns true if its value is acceptable and now in *f. */
static bool fix_attempt(struct extract_pass *p, const struct repair_job *job, bool fenced,
                        struct fix *f) {
  struct repair_job own = *job;
  own.said_only = p->opts->check != NULL; /* a schema may allow null: it would vouch for it */
  *f = (struct fix){.start = job->from, .fenced = fenced};
  bool read = repair_value(&own, p->repair_work, &f->r);
  p->repair_work -= f->r.work_used;
  if (!read) {
    fix_drop(f);
    return false;
  }
  bool ok;
  if (p->opts->check) {
    const struct extract_check *check = p->opts->check;
    bool echo = check->is_schema_echo && check->is_schema_echo(check->ctx, f->r.value);
    ok = !echo && extract_unwrap(p, f->r.value, &f->value) == EXTRACT_WITHIN_VALID;
    f->unwrapped = f->value != f->r.value;
  } else {
    f->value = json_incref(f->r.value);
    ok = extract_root_ok(p->opts->want, f->value) && fix_plausible(p, job, f);
  }
  size_t note =
      extract_note_add(p, job->from, f->r.end, extract_stage_of(p, job->from, f->r.end, fenced),
                       ok ? "repaired" : "repair_refused", 0);
  if (note != SIZE_MAX)
    p->out->notes[note].repaired = true;
  if (!ok)
    fix_drop(f);
  return ok;
}

static size_t skip_blank(const struct extract_pass *p, size_t i, size_t limit) {
  while (i < limit && jscan_one_of(" \t\r\n", p->text[i]) && p->text[i])
    i++;
  return i;
}

/* Translates the offsets of a repair that ran on a copy, and makes the reason for the copy the
 * first repair. */
static void fix_relocate(struct fix *f, const struct fix_copy *copy, size_t from, const char *why) {
  f->start = from;
  f->r.end = copy->at[f->r.end];
  struct extract_repair *told = xcalloc(f->r.repairs_listed + 1, sizeof *told);
  told[0] = (struct extract_repair){why, from};
  for (size_t k = 0; k < f->r.repairs_listed; k++)
    told[k + 1] = (struct extract_repair){f->r.repairs[k].name, copy->at[f->r.repairs[k].offset]};
  free(f->r.repairs);
  f->r.repairs = told;
  f->r.repairs_listed++;
  f->r.repair_count++;
}

/* These ways write the text anew before it is read, in the order in which they are tried. */
static const struct fix_way {
  bool (*copy)(struct fix_copy *c, const char *text, size_t from, size_t limit);
  const char *name;
  bool plain; /* only if nothing about quotes is in doubt then */
} fix_ways[] = {{fix_copy_unescaped, "escaped_text", false},
                {fix_copy_unquoted, "quoted_lines", false},
                {fix_copy_entities, "html_entities", false},
                {fix_copy_punctuation, "punctuation", true}},
  *const fix_punctuation = &fix_ways[3];

static bool fix_by_copy(struct extract_pass *p, const struct repair_job *job,
                        const struct fix_way *way, bool fenced, struct fix *f) {
  static const char *const doubtful[] = {
      "unescaped_quote", "missing_quote", "unquoted_value", "unquoted_key",
      "missing_colon",   "stray_text",    "wrong_bracket",  NULL};
  struct fix_copy copy = {0};
  size_t work = 4 * (job->limit - job->from);
  if (p->repair_work < work || job->limit > UINT32_MAX)
    return false;
  p->repair_work -= work;
  bool ok = way->copy(&copy, p->text, job->from, job->limit);
  if (ok) {
    struct repair_job inner = *job;
    inner.text = copy.text.p;
    inner.from = 0;
    inner.limit = copy.text.n;
    ok = fix_attempt(p, &inner, fenced, f);
  }
  if (ok && way->plain && has_repair(f, doubtful)) {
    fix_drop(f);
    ok = false;
  }
  if (ok)
    fix_relocate(f, &copy, job->from, way->name);
  fix_copy_deinit(&copy);
  return ok;
}

static void fix_take(struct extract_pass *p, struct fix *f) {
  struct extract_result *out = p->out;
  out->value = json_incref(f->value);
  out->valid = true;
  out->repaired = f->r.repair_count > 0;
  out->truncated = f->r.truncated;
  out->unwrapped = f->unwrapped;
  out->offset = f->start;
  out->length = f->r.end - f->start;
  out->stage = extract_stage_of(p, f->start, f->r.end, f->fenced);
  out->repairs = f->r.repairs;
  out->repairs_listed = f->r.repairs_listed;
  out->repair_count = f->r.repair_count;
  f->r.repairs = NULL;
}

static bool quoted_key_at(const struct extract_pass *p, size_t i, size_t limit) {
  if (i >= limit || p->text[i] != '"')
    return false;
  size_t end = limit - i > REPAIR_KEY_MAX ? i + REPAIR_KEY_MAX : limit, k = i + 1;
  while (k < end && p->text[k] != '"' && p->text[k] != '\n')
    k += p->text[k] == '\\' ? 2 : 1;
  if (k >= end || p->text[k] != '"')
    return false;
  k++;
  while (k < end && (p->text[k] == ' ' || p->text[k] == '\t'))
    k++;
  return k < end && p->text[k] == ':';
}

static bool wide_bracket_at(const struct extract_pass *p, size_t i, size_t limit) {
  static const char *const brackets[] = {"\xEF\xBD\x9B", "\xEF\xBC\xBB"}; /* full-width { and [ */
  return limit - i > 3 &&
         (memcmp(p->text + i, brackets[0], 3) == 0 || memcmp(p->text + i, brackets[1], 3) == 0);
}

/* Repairs places that no bracket marks: members whose opening brace is lost, a tuple, several
 * values in a row, full-width brackets. */
static bool fix_text(struct extract_pass *p, size_t from, size_t limit, bool fenced,
                     struct fix *f) {
  from = skip_blank(p, from, limit);
  if (from >= limit)
    return false;
  struct repair_job job = {.text = p->text, .from = from, .limit = limit};
  if (quoted_key_at(p, from, limit)) {
    job.members = true;
    return fix_attempt(p, &job, fenced, f);
  }
  if (p->text[from] == '(' && (fenced || from == p->trim_start))
    return fix_attempt(p, &job, fenced, f);
  if (wide_bracket_at(p, from, limit) && (fenced || from == p->trim_start))
    return fix_by_copy(p, &job, fix_punctuation, fenced, f);
  return false;
}

/* Repairs objects one after the other, with nothing else in the text, where an array is wanted. */
static bool fix_sequence(struct extract_pass *p, size_t from, size_t limit, struct fix *f) {
  size_t i = skip_blank(p, from, limit);
  if (i >= limit || !jscan_one_of("{/#\"0123456789", p->text[i]) || !p->text[i])
    return false;
  struct repair_job job = {.text = p->text, .from = i, .limit = limit};
  job.sequence = true;
  if (!fix_attempt(p, &job, false, f))
    return false;
  if (json_is_array(f->value) && json_array_size(f->value) > 1)
    return true;
  fix_drop(f);
  return false;
}

/* Returns true if the text goes on with members or items where the value is said to end: then the
 * end is wrong. Surplus brackets are allowed if only words, or nothing, follow them. */
static bool fix_goes_on(const struct extract_pass *p, const struct fix *f, size_t limit) {
  size_t i = skip_blank(p, f->r.end < limit ? f->r.end : limit, limit);
  bool more = false;
  while (i < limit && jscan_one_of(",:}])", p->text[i])) {
    more = true;
    i = skip_blank(p, i + 1, limit);
  }
  return more && i < limit && jscan_one_of("\"'{[-0123456789", p->text[i]);
}

/* Tries all readings of one place, the likelier ones first. */
static bool fix_place(struct extract_pass *p, struct repair_job *job, bool fenced, struct fix *f) {
  for (size_t k = 0; k < sizeof fix_ways / sizeof *fix_ways; k++)
    if (fix_by_copy(p, job, &fix_ways[k], fenced, f))
      return true;
  if (fix_attempt(p, job, fenced, f))
    return true;
  if (!p->opts->check)
    return false;
  job->zeros = true; /* the schema may want a number where 007 stands */
  return fix_attempt(p, job, fenced, f);
}

/* Returns true if a key of the answer follows what was repaired, which then was a draft. */
static bool fix_is_draft(const struct extract_pass *p, const struct fix *f, size_t limit) {
  size_t end = f->r.end < limit ? f->r.end : limit;
  return extract_key_between(p, end, limit, true) ||
         (limit < p->segment_limit &&
          extract_key_between(p, p->segment_start, p->segment_limit, true));
}

bool extract_fix(struct extract_pass *p) {
  struct fix best = {0}, f;
  bool found = false;
  size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
  size_t limit_of_text = p->segment_limit;
  /* All places together have one allowance, so that the whole stays linear. */
  p->repair_work = SIZE_MAX;
  if (p->n <= SIZE_MAX / (2 * REPAIR_WORK_FACTOR))
    p->repair_work = p->n * REPAIR_WORK_FACTOR + REPAIR_WORK_MIN;
  if (p->opts->want == EXTRACT_WANT_ARRAY)
    found = fix_sequence(p, p->segment_start, limit_of_text, &best);
  /* The last place comes first; what is surely JSON before what may be, in a fence before
   * outside. */
  for (int rank = 0; rank < 4 && !found; rank++) {
    for (size_t k = 0; k < count; k++) {
      const struct extract_region *region =
          &p->regions[(p->region_count - 1 - k) % EXTRACT_REGIONS_MAX];
      if (region->sure != (rank < 2) || region->fenced != (rank % 2 == 0))
        continue;
      if (region->code == JSCAN_DEPTH || region->code == JSCAN_NUMBER_RANGE)
        continue;
      struct repair_job job = {.text = p->text, .from = region->start};
      job.limit = region->limit < limit_of_text ? region->limit : limit_of_text;
      if (job.limit <= job.from)
        continue;
      if (fix_place(p, &job, region->fenced, &f)) {
        if (fix_goes_on(p, &f, job.limit) || (p->region_count > k + 1 && f.r.end < job.limit &&
                                              extract_stray_closer(p, f.r.end, job.limit))) {
          fix_drop(&f); /* it is a piece of something larger */
          continue;
        }
        if (fix_is_draft(p, &f, job.limit)) {
          fix_drop(&f);
          return false;
        }
        best = f;
        found = true;
        break;
      }
    }
  }
  if (!found && p->fence_start != SIZE_MAX)
    found = fix_text(p, p->fence_start, limit_of_text, true, &best);
  if (!found)
    found = fix_text(p, p->segment_start, limit_of_text, false, &best);
  if (found && fix_is_draft(p, &best, limit_of_text)) {
    fix_drop(&best);
    return false;
  }
  if (found)
    fix_take(p, &best);
  fix_drop(&best);
  return found;
}
