/* Chooses what to repair, and takes a repaired value only if it is plausible. */
#include "base/buf.h"
#include "base/log.h"
#include "base/utf8.h"
#include "extract/internal.h"
#include "extract/repair.h"
#include "json/scan.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fix_copy {
  struct buf text;
  uint32_t *at; /* owned */
  size_t room;
};

/* --- copies of a stretch of text ---
 *
 * A copy leaves out what covers all of the text, so that it can be read as JSON: a level of
 * escapes, mail quotation, HTML entities, foreign punctuation. False: there is nothing of the kind.
 * c->at has the offset in the text for each byte of the copy and for its end. Linear. A text of
 * 4 GiB or more is not copied. */

/* Puts bytes that stand for what is at `at` in the text; n may be 0, for the end. */
static void copy_put(struct fix_copy *c, const char *p, size_t n, size_t at) {
  c->at = xgrow(c->at, &c->room, c->text.n + n + 1, sizeof *c->at);
  for (size_t i = 0; i < n; i++)
    c->at[c->text.n + i] = (uint32_t)at;
  buf_append(&c->text, p, n);
  c->at[c->text.n] = (uint32_t)at + 1;
}

static void copy_end(struct fix_copy *c, size_t limit) {
  copy_put(c, "", 0, limit);
  c->at[c->text.n] = (uint32_t)limit;
}

static bool copy_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns the byte that \n, \t or \r at text[i] stands for, else NUL. */
static char line_escape(const char *text, size_t i, size_t limit) {
  static const char table[] = "n\nt\tr\r";
  if (i + 1 >= limit || text[i] != '\\' || !jscan_one_of("ntr", text[i + 1]))
    return '\0';
  return strchr(table, text[i + 1])[1];
}

/* {\"a\": \"b\"}: every quote is escaped once too often */
static bool fix_copy_unescaped(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  assert(from < limit);
  const char *quote = memchr(text + from, '"', limit - from);
  size_t i = quote ? (size_t)(quote - text) : from;
  if (i < from + 2 || text[i - 1] != '\\')
    return false;
  size_t before = i - 1;
  while (before > from && (copy_blank(text[before - 1]) ||
                           (before > from + 1 && line_escape(text, before - 2, limit) != '\0')))
    before -= copy_blank(text[before - 1]) ? 1 : 2;
  if (before == from || !jscan_one_of("[{,:", text[before - 1]))
    return false;
  for (i = from; i < limit; i++) {
    char line = line_escape(text, i, limit);
    if (line != '\0') {
      copy_put(c, &line, 1, i++);
    } else if (text[i] == '\\' && i + 1 < limit && jscan_one_of("\"\\/", text[i + 1])) {
      copy_put(c, text + i + 1, 1, i);
      i++;
    } else {
      copy_put(c, text + i, 1, i);
    }
  }
  copy_end(c, limit);
  return true;
}

/* > {"a": 1, > "b": 2}: every line begins with the mark, including the first */
static bool fix_copy_unquoted(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  size_t line = from;
  while (line > 0 && text[line - 1] != '\n')
    line--;
  while (line < from && copy_blank(text[line]))
    line++;
  if (text[line] != '>')
    return false;
  for (size_t i = from; i < limit;) {
    copy_put(c, text + i, 1, i);
    if (text[i++] != '\n')
      continue;
    size_t mark = i;
    while (mark < limit && copy_blank(text[mark]))
      mark++;
    if (mark < limit && text[mark] == '>')
      i = mark + 1;
  }
  copy_end(c, limit);
  return true;
}

/* --- HTML entities --- */

enum { ENTITY_BYTES = 10 };

/* Reads the entity at text[i]: its character goes to `out`, with the length of both. Returns false
 * if there is none. */
static bool entity_at(const char *text, size_t i, size_t limit, char out[UTF8_BYTES_MAX],
                      size_t *out_n, size_t *length) {
  static const struct {
    const char *name;
    char c;
  } names[] = {{"quot", '"'}, {"apos", '\''}, {"amp", '&'}, {"lt", '<'}, {"gt", '>'}};
  char word[ENTITY_BYTES + 1] = "";
  size_t n = 0;
  if (text[i] != '&')
    return false;
  while (i + 1 + n < limit && n < ENTITY_BYTES && text[i + 1 + n] != ';') {
    word[n] = text[i + 1 + n];
    n++;
  }
  if (n == 0 || i + 1 + n >= limit || text[i + 1 + n] != ';')
    return false;
  *length = n + 2;
  *out_n = 1;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strcmp(names[k].name, word) == 0) {
      out[0] = names[k].c;
      return true;
    }
  if (word[0] != '#')
    return false;
  bool hex = word[1] == 'x' || word[1] == 'X';
  const char *digits = word + (hex ? 2 : 1);
  if (*digits == '\0' || digits[strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789")])
    return false;
  unsigned long cp = strtoul(digits, NULL, hex ? 16 : 10);
  if (cp == 0 || cp > UTF8_LAST)
    return false;
  *out_n = utf8_put(out, (uint32_t)cp);
  return true;
}

/* {&quot;a&quot;: 1} */
static bool fix_copy_entities(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  char out[UTF8_BYTES_MAX];
  size_t i = from, n, length;
  assert(from < limit);
  while (i < limit && !jscan_one_of("\"&", text[i]))
    i++;
  size_t before = i;
  while (before > from && copy_blank(text[before - 1]))
    before--;
  if (i >= limit || before == from || !jscan_one_of("[{,:", text[before - 1]) ||
      !entity_at(text, i, limit, out, &n, &length) || n != 1 || !jscan_one_of("\"'", out[0]))
    return false;
  for (i = from; i < limit;) {
    if (entity_at(text, i, limit, out, &n, &length)) {
      copy_put(c, out, n, i);
      i += length;
    } else {
      copy_put(c, text + i, 1, i);
      i++;
    }
  }
  copy_end(c, limit);
  return true;
}

/* --- punctuation --- */

/* Returns the ASCII punctuation that the bytes at text[i] were meant to be, NUL for none. */
static char foreign_mark(const char *text, size_t i, size_t limit, size_t *length) {
  static const struct {
    const char *bytes;
    char c;
  } marks[] = {{"\xEF\xBC\x9A", ':'}, {"\xEF\xBC\x8C", ','},
               {"\xEF\xBC\x9B", ','}, {"\xE3\x80\x81", ','},
               {"\xEF\xBD\x9B", '{'}, {"\xEF\xBD\x9D", '}'},
               {"\xEF\xBC\xBB", '['}, {"\xEF\xBC\xBD", ']'},
               {"\xEF\xBC\x82", '"'}, {";", ','}};
  if (!jscan_one_of(";\\\xEF\xE3", text[i]))
    return '\0';
  for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
    *length = strlen(marks[k].bytes);
    if (limit - i >= *length && memcmp(text + i, marks[k].bytes, *length) == 0)
      return marks[k].c;
  }
  *length = 2;
  return line_escape(text, i, limit) != '\0' ? ' ' : '\0';
}

static bool is_curly(const char *text, size_t i, size_t limit) {
  return limit - i >= 3 && memcmp(text + i, LIT("\xE2\x80")) == 0 &&
         (unsigned char)text[i + 2] >= 0x98 && (unsigned char)text[i + 2] <= 0x9F;
}

/* Returns the offset after the string that opens at text[i], the limit if nothing closes it. */
static size_t behind_string(const char *text, size_t i, size_t limit) {
  bool curly = is_curly(text, i, limit);
  char open = text[i];
  for (i += curly ? 3 : 1; i < limit; i++) {
    if (text[i] == '\\')
      i++;
    else if (curly && is_curly(text, i, limit))
      return i + 3;
    else if (!curly && text[i] == open)
      return i + 1;
  }
  return limit;
}

/* Outside of strings, full-width punctuation, semicolons for commas, and \n that was meant to be a
 * line break. */
static bool fix_copy_punctuation(struct fix_copy *c, const char *text, size_t from, size_t limit) {
  size_t changes = 0, depth = 0, first = from, length;
  assert(from < limit);
  while (first < limit && foreign_mark(text, first, limit, &length) == '\0')
    first++;
  if (first == limit)
    return false;
  for (size_t i = from; i < limit;) {
    if (text[i] == '"' || text[i] == '\'' || is_curly(text, i, limit)) {
      for (size_t end = behind_string(text, i, limit); i < end; i++)
        copy_put(c, text + i, 1, i);
      continue;
    }
    char mark = foreign_mark(text, i, limit, &length);
    if (mark != '\0') {
      changes++;
      copy_put(c, &mark, 1, i);
    } else {
      mark = text[i];
      length = 1;
      copy_put(c, &mark, 1, i);
    }
    i += length;
    depth += mark == '{' || mark == '[';
    if ((mark == '}' || mark == ']') && (depth == 0 || --depth == 0)) {
      copy_end(c, i); /* another text follows */
      return changes > 0;
    }
  }
  copy_end(c, limit);
  return changes > 0;
}

/* --- the choice --- */

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
  static const char *const cut[] = {"dropped_member", NULL};
  bool whole = job->from == p->trim_start && f->r.end >= p->trim_end;
  if (json_is_object(f->value))
    return f->r.key_count > 0 ||
           (whole && (!f->r.truncated || has_repair(f, cut)) && !has_repair(f, stray));
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
  own.last = job->last || (job->text == p->text && job->limit == p->n);
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
    inner.last = job->limit == p->n;
    inner.text = copy.text.p;
    inner.from = 0;
    inner.limit = copy.text.n;
    ok = fix_attempt(p, &inner, fenced, f);
  }
  if (ok && way->plain && has_repair(f, doubtful)) {
    fix_drop(f);
    ok = false;
  }
  if (ok) {
    /* The offsets of a repair that ran on a copy are translated, and the reason for the copy is the
     * first repair. */
    f->start = job->from;
    f->r.end = copy.at[f->r.end];
    struct extract_repair *told = xcalloc(f->r.repairs_listed + 1, sizeof *told);
    told[0] = (struct extract_repair){way->name, job->from};
    for (size_t k = 0; k < f->r.repairs_listed; k++)
      told[k + 1] = (struct extract_repair){f->r.repairs[k].name, copy.at[f->r.repairs[k].offset]};
    free(f->r.repairs);
    f->r.repairs = told;
    f->r.repairs_listed++;
    f->r.repair_count++;
  }
  buf_deinit(&copy.text);
  free(copy.at);
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
  static const char *const brackets[] = {"\xEF\xBD\x9B", "\xEF\xBC\xBB"}; /* full-width { and [ */
  bool wide = limit - from > 3 && (memcmp(p->text + from, brackets[0], 3) == 0 ||
                                   memcmp(p->text + from, brackets[1], 3) == 0);
  if (wide && (fenced || from == p->trim_start))
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
