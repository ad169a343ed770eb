/* Walks through a text once, tries each bracket, and chooses. */
#include "extract/extract.h"
#include "extract/internal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *extract_stage_name(enum extract_stage stage) {
  switch (stage) {
  case EXTRACT_NONE:
    return "none";
  case EXTRACT_DIRECT:
    return "direct";
  case EXTRACT_CODE_BLOCK:
    return "code_block";
  case EXTRACT_BRACE:
    return "brace";
  }
  return "?";
}

const char *extract_code_name(enum extract_code code) {
  switch (code) {
  case EXTRACT_ERR_NONE:
    return "none";
  case EXTRACT_ERR_NO_JSON:
    return "no_json";
  case EXTRACT_ERR_SYNTAX:
    return "syntax";
  case EXTRACT_ERR_TRUNCATED:
    return "truncated";
  case EXTRACT_ERR_DEPTH_LIMIT:
    return "depth_limit";
  case EXTRACT_ERR_NUMBER_RANGE:
    return "number_range";
  case EXTRACT_ERR_WRONG_ROOT:
    return "wrong_root";
  case EXTRACT_ERR_NOT_VALID:
    return "not_valid";
  case EXTRACT_ERR_REASONING:
    return "reasoning_only";
  case EXTRACT_ERR_DRAFT:
    return "draft";
  }
  return "?";
}

bool extract_want_parse(const char *name, enum extract_want *want) {
  static const char *const names[] = {"any", "object", "array"};
  for (size_t i = 0; i < 3; i++)
    if (strcmp(name, names[i]) == 0) {
      *want = (enum extract_want)i;
      return true;
    }
  return false;
}

size_t extract_space(const char *text, size_t n, size_t i) {
  unsigned char c = (unsigned char)text[i];
  if (c == ' ' || (c >= '\t' && c <= '\r'))
    return 1;
  if (c == 0xC2 && n - i >= 2 && (unsigned char)text[i + 1] == 0xA0)
    return 2;
  if (n - i >= 3 && (memcmp(text + i, LIT("\xEF\xBB\xBF")) == 0 || /* BOM */
                     memcmp(text + i, LIT("\xE2\x80\x8B")) == 0))  /* ZWSP */
    return 3;
  return 0;
}

static void extract_trim(struct extract_pass *p) {
  size_t i = 0, end = p->n, len;
  while (i < end && (len = extract_space(p->text, end, i)))
    i += len;
  for (bool again = true; again && end > i;) {
    again = false;
    for (size_t k = 1; k <= 3 && end >= i + k; k++)
      if (extract_space(p->text, end, end - k) == k) {
        end -= k;
        again = true;
        break;
      }
  }
  p->trim_start = i;
  p->trim_end = end;
}

static struct extract_region *region_add(struct extract_pass *p, size_t start) {
  struct extract_region *r = &p->regions[p->region_count++ % EXTRACT_REGIONS_MAX];
  *r = (struct extract_region){.start = start, .limit = SIZE_MAX, .fenced = p->fence_open};
  return r;
}

/* Looks at the text between the last sound value and `to`: a key of the answer in it turns what
 * came before into a draft. */
static void extract_gap(struct extract_pass *p, size_t to) {
  if (to > p->gap_start && extract_key_between(p, p->gap_start, to, p->gap_broken))
    extract_refuse_drafts(p, "before_broken");
  p->gap_start = to;
  p->gap_broken = false;
}

/* Leaves the broken value whose end is unknown: from i on, candidates no longer count as its
 * pieces, unless it may be the answer itself and its fence has not ended. */
static void extract_release(struct extract_pass *p, size_t i, bool fence_ends) {
  if (!fence_ends && extract_key_between(p, p->inside_start, i, true))
    return;
  p->inside_until = i;
  p->inside_unclosed = false;
}

/* Returns true if a quoted key and its colon stand before i. */
static bool member_value(const struct extract_pass *p, size_t i) {
  const char *t = p->text;
  bool colon = false;
  for (; i > p->gap_start && (t[i - 1] == ' ' || t[i - 1] == ':' || t[i - 1] == '\n'); i--)
    colon = colon || t[i - 1] == ':';
  return colon && i > p->gap_start && t[i - 1] == '"';
}

/* Returns the offset after white space. */
static size_t skip_past(const struct extract_pass *p, size_t i) {
  while (i < p->n && jscan_one_of(" \t\r\n", p->text[i]))
    i++;
  return i;
}

/* Returns true if a list breaks where data does and prose does not: at a comment after an item, or
 * at a quote escaped once too often. */
static bool list_breaks(const struct extract_pass *p, size_t i, size_t at) {
  if (at + 1 >= p->n)
    return false;
  if (p->text[at] == '/' && jscan_one_of("/*", p->text[at + 1]))
    return at > skip_past(p, i + 1);
  return p->text[at] == '\\' && p->text[at + 1] == '"';
}

/* Makes candidates before `end` pieces of the broken value at i; SIZE_MAX means that its end is not
 * known. */
static void hide_inside(struct extract_pass *p, size_t i, size_t end, size_t fail) {
  p->inside_unclosed = end == SIZE_MAX;
  if (end == SIZE_MAX) {
    const char *nul = memchr(p->text + i, '\0', p->n - i); /* the text ends there */
    end = nul ? (size_t)(nul - p->text) : p->n;
  }
  p->inside_until = end;
  p->inside_start = i;
  p->inside_fail = fail;
  p->inside_fenced = p->fence_open;
}

/* Remembers the place at i, which is not strict JSON, for repair and for what is inside it. */
static void broken_place(struct extract_pass *p, size_t i, enum jscan_code code,
                         const struct jscan_result *r, bool sure) {
  bool hard = code == JSCAN_DEPTH || code == JSCAN_NUMBER_RANGE;
  size_t end = r->closed ? r->end : SIZE_MAX;
  /* Brackets of prose at the start of a line are a value of their own if they end the line as
   * well. */
  bool block = !sure && p->text[i] == '[' && i == p->trim_start;
  if (!r->closed && sure)
    end = extract_piece_end(p, i, r->offset);
  else if (!r->closed && block)
    end = jscan_skip(&p->js, i, 0);
  if (end != SIZE_MAX && end < r->offset)
    end = r->offset;
  struct extract_region *region = region_add(p, i);
  region->fail = r->offset;
  region->sure = sure;
  region->code = code;
  p->broken_seen = p->broken_seen || sure || r->offset > skip_past(p, i + 1);
  p->gap_broken = p->gap_broken || sure;
  const char *outcome = sure ? "broken" : "not_json";
  if (hard) {
    outcome = jscan_code_name(code);
    p->hard_code = code;
    p->hard_offset = r->offset;
  }
  size_t shown = end == SIZE_MAX ? i : end;
  extract_note_add(p, i, shown, extract_stage_of(p, i, shown, p->fence_open), outcome, r->offset);
  bool fence_next = r->offset < p->n && jscan_one_of("`~", p->text[r->offset]);
  if (sure || (block && end != SIZE_MAX && end >= p->trim_end && !fence_next))
    hide_inside(p, i, end, r->offset);
}

/* Goes on after a strict attempt at the bracket text[i] has failed. Returns where. */
static size_t extract_broken(struct extract_pass *p, size_t i, enum jscan_code code,
                             const struct jscan_result *r) {
  bool object = p->text[i] == '{';
  bool hard = code == JSCAN_DEPTH || code == JSCAN_NUMBER_RANGE;
  bool loose = !r->member_seen && !hard && object && extract_loose_member(p->text, p->n, i);
  bool sure = r->member_seen || hard || loose || (!object && list_breaks(p, i, r->offset));
  if (i >= p->inside_until) {
    bool cut = code == JSCAN_TRUNCATED && object && extract_item_next(p, i);
    if (cut && p->opts->check && p->opts->check->is_key)
      extract_refuse_drafts(p, "before_broken"); /* whatever its keys were to be */
    if (sure || extract_line_start(p, i) || (!object && extract_item_next(p, i)))
      broken_place(p, i, code, r, sure);
  }
  if (r->closed)
    return r->end;
  if (r->offset + 1 < p->n && p->text[r->offset] == '/' &&
      jscan_one_of("/*", p->text[r->offset + 1]))
    return extract_comment_end(p->text, p->n, r->offset); /* brackets in a comment are words */
  /* A string directly before the failure may have been prose between two quotes, so what is in it
   * is still undecided. Each stretch between quotes is searched at most once like this, because
   * later attempts start after its start. */
  if (!r->member_seen && r->last_string != SIZE_MAX && r->last_string >= i)
    return r->last_string + 1;
  return r->offset > i ? r->offset : i + 1;
}

static void forget_candidates(struct extract_pass *p) {
  if (p->opts->answers)
    extract_answers_deinit(p->opts->answers);
  extract_slot_drop(&p->valid);
  extract_slot_drop(&p->plain);
  extract_slot_drop(&p->empty);
  extract_slot_drop(&p->near);
  for (size_t k = 0; k < p->out->note_count; k++)
    p->out->notes[k].outcome = "reasoning";
  p->region_count = 0;
  p->hard_code = JSCAN_OK;
  p->wrong_root_seen = false;
  p->inside_until = 0;
  p->broken_seen = p->other_seen = p->gap_broken = p->draft_seen = false;
  p->fence_start = SIZE_MAX;
}

/* Reads a run of three or more ` or ~; returns the offset after it. */
static size_t extract_fence(struct extract_pass *p, size_t i) {
  char c = p->text[i];
  size_t k = i;
  while (k < p->n && p->text[k] == c)
    k++;
  if (k - i < 3 || (c == '~' && !extract_line_start(p, i)))
    return k;
  size_t eol = k;
  while (eol < p->n && p->text[eol] != '\n' && eol - k < 40)
    eol++;
  size_t info = k;
  while (info < eol && (p->text[info] == ' ' || p->text[info] == '\t' || p->text[info] == '\r'))
    info++;
  bool named = info < eol && ((p->text[info] >= 'a' && p->text[info] <= 'z') ||
                              (p->text[info] >= 'A' && p->text[info] <= 'Z'));
  p->fence_open = named || !p->fence_open;
  if (p->fence_open) {
    p->fence_start = named ? info : k;
    while (named && p->fence_start < eol && !jscan_one_of(" \t\r\n{[(\"", p->text[p->fence_start]))
      p->fence_start++;
  }
  if (p->inside_unclosed && extract_line_start(p, i) && p->inside_until > i)
    extract_release(p, i, p->inside_fenced && !p->fence_open);
  return k;
}

/* Passes the mark of a reasoning section at *i, or the whole section. Returns false if there is
 * none. */
static bool pass_reasoning(struct extract_pass *p, size_t *i) {
  size_t closed = 0;
  switch (extract_tag_at(p->text, p->n, *i, &closed)) {
  case EXTRACT_TAG_NO:
    return false;
  case EXTRACT_TAG_OPENER: {
    size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
    for (size_t k = 0; k < count; k++)
      if (p->regions[k].limit == SIZE_MAX)
        p->regions[k].limit = *i;
    extract_gap(p, *i);
    if (closed == SIZE_MAX) {
      p->segment_limit = *i;
      p->reasoning_open = true;
      *i = p->n;
      return true;
    }
    break;
  }
  case EXTRACT_TAG_CLOSER:
    forget_candidates(p);
    p->fence_open = false;
    break;
  }
  p->segment_start = p->gap_start = *i = closed;
  p->inside_until = 0;
  return true;
}

/* Reads the bracket at i; returns where to go on. */
static size_t pass_bracket(struct extract_pass *p, size_t i) {
  const char *text = p->text;
  struct jscan_result r;
  /* In a run of braces only the last one can open an object. */
  if (text[i] == '{' && i > 0 && text[i - 1] == '{')
    while (i + 1 < p->n && text[i + 1] == '{')
      i++;
  if (text[i] == '{' && p->empty_refused && !p->fence_open && i + 1 < p->n && text[i + 1] == '}')
    return i + 2; /* one verdict on the empty object is enough */
  if (extract_plainly_prose(p, i))
    return i + 1;
  if (p->inside_unclosed && i < p->inside_until && extract_prose_between(p, p->inside_fail, i))
    extract_release(p, i, false);
  enum jscan_code code = jscan_value(&p->js, i, &r);
  if (code != JSCAN_OK)
    return extract_broken(p, i, code, &r);
  if (extract_checkbox(p, i, r.end)) {
    json_decref(r.value);
    return r.end;
  }
  if (i >= p->inside_until) {
    p->broken_seen = p->broken_seen || member_value(p, i);
    extract_gap(p, i);
    p->gap_start = r.end;
  }
  extract_candidate(p, i, &r, i < p->inside_until);
  return r.end;
}

static void extract_walk(struct extract_pass *p) {
  size_t i = p->trim_start;
  while ((i = extract_next_mark(p->text, p->n, i)) < p->n) {
    char c = p->text[i];
    if (c == '`' || c == '~') {
      bool run = i + 1 >= p->n || p->text[i + 1] == c;
      i = run ? extract_fence(p, i) : i + 1;
    } else if (c != '{' && (i >= p->inside_until || p->inside_unclosed) && pass_reasoning(p, &i)) {
      continue;
    } else if (c == '{' || c == '[') {
      i = pass_bracket(p, i);
    } else {
      i++;
    }
  }
}

/* Reads text that is one string, number or literal. Returns true if it was, whatever came of it. */
static bool direct_scalar(struct extract_pass *p) {
  size_t i = p->trim_start;
  if (i >= p->trim_end || !jscan_one_of("\"-0123456789tfn", p->text[i]) || !p->text[i])
    return false;
  struct jscan_result r;
  enum jscan_code code = jscan_value(&p->js, i, &r);
  if (code != JSCAN_OK)
    return false;
  if (r.end != p->trim_end) {
    json_decref(r.value);
    return false;
  }
  p->gap_start = r.end;
  extract_candidate(p, i, &r, false);
  return true;
}

static void extract_give(struct extract_pass *p, struct extract_slot *s, bool valid) {
  struct extract_result *out = p->out;
  out->value = s->value;
  out->stage = s->stage;
  out->valid = valid;
  out->unwrapped = s->unwrapped;
  out->duplicate_key = s->duplicate_key;
  out->offset = s->offset;
  out->length = s->length;
  if (s->note < out->note_count)
    out->notes[s->note].outcome = valid ? "chosen" : "nearest";
  s->value = NULL;
}

static void extract_fail(struct extract_result *out, enum extract_code code, size_t offset,
                         const char *what) {
  out->error.code = code;
  out->error.offset = offset;
  snprintf(out->error.message, sizeof out->error.message, "%s", what);
}

static const char *const root_messages[] = {
    [EXTRACT_WANT_ANY] = "the JSON value does not pass the check",
    [EXTRACT_WANT_OBJECT] = "the JSON value is not an object",
    [EXTRACT_WANT_ARRAY] = "the JSON value is not an array"};

static void explain_failure(struct extract_pass *p) {
  struct extract_result *out = p->out;
  if (p->hard_code == JSCAN_DEPTH) {
    extract_fail(out, EXTRACT_ERR_DEPTH_LIMIT, p->hard_offset,
                 "the value is nested deeper than 256 levels");
    return;
  }
  if (p->hard_code == JSCAN_NUMBER_RANGE) {
    extract_fail(out, EXTRACT_ERR_NUMBER_RANGE, p->hard_offset,
                 "a number is too large for a double-precision value");
    return;
  }
  size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
  const struct extract_region *last = NULL;
  for (size_t k = 0; k < count; k++) {
    const struct extract_region *r = &p->regions[(p->region_count - 1 - k) % EXTRACT_REGIONS_MAX];
    if (r->sure) {
      last = r;
      break;
    }
  }
  if (last) {
    bool cut = last->code == JSCAN_TRUNCATED;
    extract_fail(out, cut ? EXTRACT_ERR_TRUNCATED : EXTRACT_ERR_SYNTAX, last->fail, "");
    print_into(out->error.message, sizeof out->error.message,
               "the JSON value that starts at byte %zu is %s (%s)", last->start,
               cut ? "cut off" : "broken", jscan_code_name(last->code));
  } else if (p->wrong_root_seen) {
    extract_fail(out, EXTRACT_ERR_WRONG_ROOT, p->wrong_root_offset, root_messages[p->opts->want]);
  } else if (p->draft_seen) {
    extract_fail(out, EXTRACT_ERR_DRAFT, p->draft_offset,
                 "a value that passes is followed by one that does not: which one is meant?");
  } else if (p->echo_seen) {
    extract_fail(out, EXTRACT_ERR_NOT_VALID, 0, "the text repeats the schema instead of answering");
  } else if (p->reasoning_open) {
    extract_fail(out, EXTRACT_ERR_REASONING, p->segment_limit,
                 "the text ends inside a reasoning section, before any answer");
  } else {
    extract_fail(out, EXTRACT_ERR_NO_JSON, 0, "the text holds no JSON value");
  }
}

static void extract_choose(struct extract_pass *p) {
  const struct extract_opts *opts = p->opts;
  if (!p->reasoning_open)
    extract_gap(p, p->n);
  if (p->valid.value && (p->broken_seen || p->other_seen) &&
      extract_stray_closer(p, p->valid.offset + p->valid.length, p->segment_limit))
    extract_refuse_drafts(p, "inside_broken");
  if (p->plain.value && p->broken_seen &&
      extract_stray_closer(p, p->plain.offset + p->plain.length, p->segment_limit))
    extract_slot_drop(&p->plain);
  if (p->valid.value) {
    extract_give(p, &p->valid, true);
  } else if (!opts->check && p->plain.value) {
    extract_give(p, &p->plain, true);
  } else if (opts->repair && p->hard_code == JSCAN_OK && extract_fix(p)) {
    return;
  } else if (!opts->check && p->empty.value) {
    extract_give(p, &p->empty, true);
  } else if (p->near.value) {
    extract_fail(p->out, EXTRACT_ERR_NOT_VALID, p->near.offset,
                 "the value does not pass the check");
    extract_give(p, &p->near, false);
  } else {
    explain_failure(p);
  }
}

enum extract_status extract(const char *text, size_t n, const struct extract_opts *opts,
                            struct extract_result *out) {
  static const struct extract_opts any = {0};
  struct extract_pass p = {.text = text,
                           .n = n,
                           .opts = opts ? opts : &any,
                           .out = out,
                           .fence_start = SIZE_MAX,
                           .segment_limit = n,
                           .valid.note = SIZE_MAX,
                           .plain.note = SIZE_MAX,
                           .empty.note = SIZE_MAX,
                           .near.note = SIZE_MAX};
  *out = (struct extract_result){0};
  jscan_init(&p.js, text, n);
  p.piece_work = n > SIZE_MAX / 32 ? n : 16 * n + 65536;
  extract_trim(&p);
  p.segment_start = p.trim_start;
  if (!direct_scalar(&p))
    extract_walk(&p);
  extract_choose(&p);
  jscan_deinit(&p.js);
  extract_slot_drop(&p.valid);
  extract_slot_drop(&p.plain);
  extract_slot_drop(&p.empty);
  extract_slot_drop(&p.near);
  return out->value ? EXTRACT_OK : EXTRACT_NOT_FOUND;
}

void extract_answers_deinit(struct extract_answers *a) {
  for (size_t i = 0; i < a->count; i++)
    json_decref(a->items[i].value);
  free(a->items);
  *a = (struct extract_answers){0};
}

void extract_result_deinit(struct extract_result *r) {
  json_decref(r->value);
  free(r->repairs);
  free(r->notes);
  *r = (struct extract_result){0};
}
