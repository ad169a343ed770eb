#include "extract_internal.h"
#include "repair.h"

#include <stdint.h>
#include <string.h>

/* A repaired candidate. Order of preference: passing the check, else the first found in the order
 * of places. */
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

/* Was anything but blanks in it left out? {name} is a placeholder, {} an empty object. */
static bool has_stray_text(const struct fix *f) {
  for (size_t i = 0; i < f->r.repairs_listed; i++)
    if (strcmp(f->r.repairs[i].name, "stray_text") == 0)
      return true;
  return false;
}

/* Without a schema a repaired value must look like data: prose and source code have brackets too.
 */
static bool plausible(const struct extract_pass *p, const struct repair_job *job,
                      const struct fix *f) {
  if (f->r.code_like)
    return false;
  bool whole = job->from == p->trim_start && f->r.end >= p->trim_end;
  if (json_is_object(f->value))
    return f->r.key_count > 0 || (whole && !f->r.truncated && !has_stray_text(f));
  size_t next = f->r.end;
  /* [text](link), [1]: a footnote */
  if (next < job->limit && job->text[job->from] == '[' &&
      (job->text[next] == '(' || job->text[next] == ':'))
    return false;
  return json_array_size(f->value) > 0 || job->from == p->trim_start;
}

/* runs the job; true when its value is acceptable and now in *f */
static bool attempt(struct extract_pass *p, const struct repair_job *job, bool fenced,
                    struct fix *f) {
  struct repair_job own = *job;
  own.said_only = p->opts->check != NULL; /* a schema may allow null: it would vouch for it */
  *f = (struct fix){.start = job->from, .fenced = fenced};
  enum repair_status st = repair_value(&own, p->repair_work, &f->r);
  p->repair_work -= f->r.work_used;
  if (st == REPAIR_OUT_OF_MEMORY)
    p->oom = true;
  if (st != REPAIR_OK) {
    fix_drop(f);
    return false;
  }
  bool ok;
  if (p->opts->check) {
    const struct extract_check *check = p->opts->check;
    bool echo = check->is_schema_echo && check->is_schema_echo(check->ctx, f->r.value);
    f->value = echo ? NULL : extract_unwrap(p, f->r.value, 0);
    f->unwrapped = f->value != f->r.value;
    ok = f->value != NULL;
  } else {
    f->value = json_incref(f->r.value);
    ok = extract_root_ok(p->opts->want, f->value) && plausible(p, job, f);
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

/* the repair ran on a changed copy of the text at job->from: offsets in the copy mean nothing to
 * the caller */
static void relocate(struct extract_pass *p, struct fix *f, const struct repair_job *job,
                     const char *why) {
  f->start = job->from;
  f->r.end = job->limit;
  struct extract_repair *one = jscan_realloc(NULL, (f->r.repairs_listed + 1) * sizeof *one);
  if (!one) {
    p->oom = true;
    return;
  }
  one[0] = (struct extract_repair){why, job->from};
  for (size_t k = 0; k < f->r.repairs_listed; k++)
    one[k + 1] = (struct extract_repair){f->r.repairs[k].name, job->from};
  jscan_free(f->r.repairs);
  f->r.repairs = one;
  f->r.repairs_listed++;
  f->r.repair_count++;
}

/* Text in which every quote is escaped once too often, {\"a\": \"b\"}: takes one level off and
 * starts again. */
static bool attempt_escaped(struct extract_pass *p, const struct repair_job *job, bool fenced,
                            struct fix *f) {
  size_t i = job->from + 1;
  while (i < job->limit &&
         (jscan_one_of(" \t\r\n[{", job->text[i]) ||
          (job->text[i] == '\\' && i + 1 < job->limit && job->text[i + 1] == 'n'))) {
    if (!job->text[i])
      break;
    i += job->text[i] == '\\' ? 2 : 1;
  }
  if (i + 1 >= job->limit || job->text[i] != '\\' || job->text[i + 1] != '"')
    return false;
  size_t n = job->limit - job->from, w = 0;
  char *copy = jscan_realloc(NULL, n + 1);
  if (!copy) {
    p->oom = true;
    return false;
  }
  for (i = job->from; i < job->limit; i++) {
    char c = job->text[i];
    if (c == '\\' && i + 1 < job->limit) {
      char d = job->text[i + 1];
      if (d == '"' || d == '\\' || d == '/') {
        c = d;
        i++;
      } else if (d == 'n' || d == 't' || d == 'r') {
        c = d == 'n' ? '\n' : d == 't' ? '\t' : '\r';
        i++;
      }
    }
    copy[w++] = c;
  }
  struct repair_job inner = *job;
  inner.text = copy;
  inner.from = 0;
  inner.limit = w;
  bool ok = attempt(p, &inner, fenced, f);
  if (ok)
    relocate(p, f, job, "escaped_text");
  if (p->oom)
    fix_drop(f);
  jscan_free(copy);
  return ok && !p->oom;
}

/* Mail quotation: each line of the value starts with "> ", as does the line on which it begins. */
static bool attempt_quoted(struct extract_pass *p, const struct repair_job *job, bool fenced,
                           struct fix *f) {
  size_t line = job->from;
  while (line > 0 && p->text[line - 1] != '\n')
    line--;
  line = skip_blank(p, line, job->from);
  if (p->text[line] != '>')
    return false;
  size_t w = 0;
  char *copy = jscan_realloc(NULL, job->limit - job->from + 1);
  if (!copy) {
    p->oom = true;
    return false;
  }
  for (size_t i = job->from; i < job->limit;) {
    char c = p->text[i++];
    copy[w++] = c;
    if (c != '\n')
      continue;
    size_t mark = skip_blank(p, i, job->limit);
    if (mark < job->limit && p->text[mark] == '>')
      i = mark + 1;
  }
  struct repair_job inner = *job;
  inner.text = copy;
  inner.from = 0;
  inner.limit = w;
  bool ok = attempt(p, &inner, fenced, f);
  jscan_free(copy);
  if (ok)
    relocate(p, f, job, "quoted_lines");
  if (p->oom)
    fix_drop(f);
  return ok && !p->oom;
}

static void take(struct extract_pass *p, struct fix *f) {
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

/* places that no bracket marks: members whose opening brace is lost, a tuple, several values in a
 * row */
static bool fix_text(struct extract_pass *p, size_t from, size_t limit, bool fenced,
                     struct fix *f) {
  from = skip_blank(p, from, limit);
  if (from >= limit)
    return false;
  struct repair_job job = {.text = p->text, .from = from, .limit = limit};
  if (quoted_key_at(p, from, limit)) {
    job.members = true;
    return attempt(p, &job, fenced, f);
  }
  if (p->text[from] == '(' && (fenced || from == p->trim_start))
    return attempt(p, &job, fenced, f);
  return false;
}

/* objects one after the other, with nothing else in the text, where an array is wanted */
static bool fix_sequence(struct extract_pass *p, size_t from, size_t limit, struct fix *f) {
  size_t i = skip_blank(p, from, limit);
  if (i >= limit || !jscan_one_of("{/#\"0123456789", p->text[i]) || !p->text[i])
    return false;
  struct repair_job job = {.text = p->text, .from = i, .limit = limit};
  job.sequence = true;
  if (!attempt(p, &job, false, f))
    return false;
  if (json_is_array(f->value) && json_array_size(f->value) > 1)
    return true;
  fix_drop(f);
  return false;
}

/* all readings of one place, the likelier first */
static bool attempt_place(struct extract_pass *p, struct repair_job *job, bool fenced,
                          struct fix *f) {
  if (attempt_escaped(p, job, fenced, f) || p->oom)
    return !p->oom;
  if (attempt_quoted(p, job, fenced, f) || p->oom)
    return !p->oom;
  if (attempt(p, job, fenced, f) || p->oom)
    return !p->oom;
  if (!p->opts->check)
    return false;
  job->zeros = true; /* the schema may want a number where 007 stands */
  return attempt(p, job, fenced, f);
}

bool extract_fix(struct extract_pass *p) {
  struct fix best = {0}, f;
  bool found = false;
  size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
  size_t limit_of_text = p->segment_limit;
  /* one allowance for all places together, so that the whole stays linear */
  p->repair_work = p->n > SIZE_MAX / (2 * REPAIR_WORK_FACTOR)
                       ? SIZE_MAX
                       : p->n * REPAIR_WORK_FACTOR + REPAIR_WORK_MIN;
  if (p->opts->want == EXTRACT_WANT_ARRAY)
    found = fix_sequence(p, p->segment_start, limit_of_text, &best);
  /* the last place first; surely JSON before perhaps JSON, in a fence before outside */
  for (int rank = 0; rank < 4 && !found && !p->oom; rank++) {
    for (size_t k = 0; k < count && !p->oom; k++) {
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
      if (attempt_place(p, &job, region->fenced, &f)) {
        best = f;
        found = true;
        break;
      }
    }
  }
  if (!found && !p->oom && p->fence_start != SIZE_MAX)
    found = fix_text(p, p->fence_start, limit_of_text, true, &best);
  if (!found && !p->oom)
    found = fix_text(p, p->segment_start, limit_of_text, false, &best);
  if (found && !p->oom)
    take(p, &best);
  fix_drop(&best);
  return found && !p->oom;
}
