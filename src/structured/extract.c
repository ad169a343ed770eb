#include "extract.h"
#include "extract_internal.h"

#include <stdint.h>
#include <stdio.h>
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

/* white space, and what copying adds to it: BOM, ZWSP, NBSP */
static size_t space_len(const char *text, size_t n, size_t i) {
  unsigned char c = (unsigned char)text[i];
  if (c == ' ' || (c >= '\t' && c <= '\r'))
    return 1;
  if (c == 0xC2 && n - i >= 2 && (unsigned char)text[i + 1] == 0xA0)
    return 2;
  if (n - i >= 3 && (memcmp(text + i, "\xEF\xBB\xBF", 3) == 0 || /* BOM */
                     memcmp(text + i, "\xE2\x80\x8B", 3) == 0))  /* ZWSP */
    return 3;
  return 0;
}

static void trim(struct extract_pass *p) {
  size_t i = 0, end = p->n, len;
  while (i < end && (len = space_len(p->text, end, i)))
    i += len;
  for (bool again = true; again && end > i;) {
    again = false;
    for (size_t k = 1; k <= 3 && end >= i + k; k++)
      if (space_len(p->text, end, end - k) == k) {
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

static void regions_limit(struct extract_pass *p, size_t limit) {
  size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
  for (size_t k = 0; k < count; k++)
    if (p->regions[k].limit == SIZE_MAX)
      p->regions[k].limit = limit;
}

/* a strict attempt at the bracket text[i] failed; returns where to go on */
static size_t broken(struct extract_pass *p, size_t i, enum jscan_code code,
                     const struct jscan_result *r) {
  bool inside = i < p->inside_until;
  bool object = p->text[i] == '{';
  bool hard = code == JSCAN_DEPTH || code == JSCAN_NUMBER_RANGE;
  bool loose = !r->member_seen && !hard && object && extract_loose_member(p->text, p->n, i);
  bool sure = r->member_seen || hard || loose;
  if (!inside && (sure || extract_line_start(p, i) || (!object && extract_item_next(p, i)))) {
    size_t end = r->closed ? r->end : SIZE_MAX;
    /* brackets of prose at the start of a line: a value of its own when it ends the line as well */
    bool block = !sure && !object && i == p->trim_start;
    if (!r->closed && (sure || block))
      end = jscan_skip(&p->js, i, 0);
    if (end != SIZE_MAX && end < r->offset)
      end = r->offset;
    struct extract_region *region = region_add(p, i);
    region->fail = r->offset;
    region->sure = sure;
    region->code = code;
    extract_note_add(p, i, end == SIZE_MAX ? i : end,
                     extract_stage_of(p, i, end == SIZE_MAX ? i : end, p->fence_open),
                     hard   ? jscan_code_name(code)
                     : sure ? "broken"
                            : "not_json",
                     r->offset);
    if (hard) {
      p->hard_code = code;
      p->hard_offset = r->offset;
    }
    bool quoted = r->member_seen || hard;
    bool fence_next = r->offset < p->n && (p->text[r->offset] == '`' || p->text[r->offset] == '~');
    if (quoted && end == SIZE_MAX) {
      p->inside_until = p->n;
      p->inside_fail = r->offset;
      p->inside_unclosed = true;
    } else if (end != SIZE_MAX && (sure || (block && end >= p->trim_end && !fence_next))) {
      p->inside_until = end;
      p->inside_unclosed = false;
    }
  }
  if (r->closed)
    return r->end;
  /* A string directly before the failure may have been prose between two quotes: what is in it is
   * still undecided. Every stretch between quotes is looked into so at most once, because later
   * attempts start behind its start. */
  if (!r->member_seen && r->last_string != SIZE_MAX && r->last_string >= i)
    return r->last_string + 1;
  return r->offset > i ? r->offset : i + 1;
}

static void forget_candidates(struct extract_pass *p) {
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
  p->fence_start = SIZE_MAX;
}

/* a run of three or more ` or ~; returns the offset after it */
static size_t fence(struct extract_pass *p, size_t i) {
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
  if (p->inside_unclosed && extract_line_start(p, i) && p->inside_until > i) {
    p->inside_until = i;
    p->inside_unclosed = false;
  }
  return k;
}

static void pass(struct extract_pass *p) {
  const char *text = p->text;
  size_t n = p->n, i = p->trim_start;
  while (!p->oom && (i = extract_next_mark(text, n, i)) < n) {
    char c = text[i];
    if (c == '`' || c == '~') {
      if (i + 1 < n && text[i + 1] != c)
        i++;
      else
        i = fence(p, i);
      continue;
    }
    if (c != '{' && (i >= p->inside_until || p->inside_unclosed)) {
      size_t closed = 0;
      enum extract_tag tag = extract_tag_at(text, n, i, &closed);
      if (tag == EXTRACT_TAG_OPENER) {
        regions_limit(p, i);
        if (closed == SIZE_MAX) {
          p->segment_limit = i;
          p->reasoning_open = true;
          return;
        }
        p->segment_start = i = closed;
        p->inside_until = 0;
        continue;
      }
      if (tag == EXTRACT_TAG_CLOSER) {
        forget_candidates(p);
        p->segment_start = i = closed;
        p->fence_open = false;
        continue;
      }
    }
    if (c != '{' && c != '[') {
      i++;
      continue;
    }
    /* a run of braces: only the last can open an object */
    if (c == '{' && i > 0 && text[i - 1] == '{')
      while (i + 1 < n && text[i + 1] == '{')
        i++;
    if (c == '{' && p->empty_refused && !p->fence_open && i + 1 < n && text[i + 1] == '}') {
      i += 2; /* one verdict on the empty object is enough */
      continue;
    }
    if (extract_plainly_prose(p, i)) {
      i++;
      continue;
    }
    if (p->inside_unclosed && i < p->inside_until && extract_prose_between(p, p->inside_fail, i))
      p->inside_until = i;
    struct jscan_result r;
    enum jscan_code code = jscan_value(&p->js, i, &r);
    if (code == JSCAN_OK && extract_checkbox(p, i, r.end)) {
      json_decref(r.value);
      i = r.end;
    } else if (code == JSCAN_OK) {
      extract_candidate(p, i, r.end, r.value, i < p->inside_until);
      i = r.end;
    } else if (code == JSCAN_OUT_OF_MEMORY) {
      p->oom = true;
    } else {
      i = broken(p, i, code, &r);
    }
  }
}

/* text that is one string, number or literal; true when it was, whatever came of it */
static bool direct_scalar(struct extract_pass *p) {
  size_t i = p->trim_start;
  if (i >= p->trim_end || !jscan_one_of("\"-0123456789tfn", p->text[i]) || !p->text[i])
    return false;
  struct jscan_result r;
  enum jscan_code code = jscan_value(&p->js, i, &r);
  if (code == JSCAN_OUT_OF_MEMORY)
    p->oom = true;
  if (code != JSCAN_OK)
    return code == JSCAN_OUT_OF_MEMORY;
  if (r.end != p->trim_end) {
    json_decref(r.value);
    return false;
  }
  extract_candidate(p, i, r.end, r.value, false);
  return true;
}

static void give(struct extract_pass *p, struct extract_slot *s, bool valid) {
  struct extract_result *out = p->out;
  out->value = s->value;
  out->stage = s->stage;
  out->valid = valid;
  out->unwrapped = s->unwrapped;
  out->offset = s->offset;
  out->length = s->length;
  if (s->note < out->note_count)
    out->notes[s->note].outcome = valid ? "chosen" : "nearest";
  s->value = NULL;
}

static void fail(struct extract_result *out, enum extract_code code, size_t offset,
                 const char *what) {
  out->error.code = code;
  out->error.offset = offset;
  snprintf(out->error.message, sizeof out->error.message, "%s", what);
}

static void explain_failure(struct extract_pass *p) {
  struct extract_result *out = p->out;
  if (p->hard_code == JSCAN_DEPTH) {
    fail(out, EXTRACT_ERR_DEPTH_LIMIT, p->hard_offset,
         "the value is nested deeper than 256 levels");
    return;
  }
  if (p->hard_code == JSCAN_NUMBER_RANGE) {
    fail(out, EXTRACT_ERR_NUMBER_RANGE, p->hard_offset,
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
    fail(out, cut ? EXTRACT_ERR_TRUNCATED : EXTRACT_ERR_SYNTAX, last->fail, "");
    snprintf(out->error.message, sizeof out->error.message,
             cut ? "the JSON value that starts at byte %zu is cut off (%s)"
                 : "the JSON value that starts at byte %zu is broken (%s)",
             last->start, jscan_code_name(last->code));
  } else if (p->wrong_root_seen) {
    fail(out, EXTRACT_ERR_WRONG_ROOT, p->wrong_root_offset,
         p->opts->want == EXTRACT_WANT_OBJECT  ? "the JSON value is not an object"
         : p->opts->want == EXTRACT_WANT_ARRAY ? "the JSON value is not an array"
                                               : "the JSON value does not pass the check");
  } else if (p->echo_seen) {
    fail(out, EXTRACT_ERR_NOT_VALID, 0, "the text repeats the schema instead of answering");
  } else if (p->reasoning_open) {
    fail(out, EXTRACT_ERR_REASONING, p->segment_limit,
         "the text ends inside a reasoning section, before any answer");
  } else {
    fail(out, EXTRACT_ERR_NO_JSON, 0, "the text holds no JSON value");
  }
}

static void choose(struct extract_pass *p) {
  const struct extract_opts *opts = p->opts;
  if (p->valid.value) {
    give(p, &p->valid, true);
  } else if (!opts->check && p->plain.value) {
    give(p, &p->plain, true);
  } else if (opts->repair && p->hard_code == JSCAN_OK && extract_fix(p)) {
    return;
  } else if (p->oom) {
    return;
  } else if (!opts->check && p->empty.value) {
    give(p, &p->empty, true);
  } else if (p->near.value) {
    fail(p->out, EXTRACT_ERR_NOT_VALID, p->near.offset, "the value does not pass the check");
    give(p, &p->near, false);
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
  trim(&p);
  p.segment_start = p.trim_start;
  if (!direct_scalar(&p))
    pass(&p);
  if (!p.oom)
    choose(&p);
  jscan_deinit(&p.js);
  extract_slot_drop(&p.valid);
  extract_slot_drop(&p.plain);
  extract_slot_drop(&p.empty);
  extract_slot_drop(&p.near);
  if (p.oom) {
    extract_result_deinit(out);
    return EXTRACT_OUT_OF_MEMORY;
  }
  return out->value ? EXTRACT_OK : EXTRACT_NOT_FOUND;
}

void extract_result_deinit(struct extract_result *r) {
  json_decref(r->value);
  jscan_free(r->repairs);
  jscan_free(r->notes);
  *r = (struct extract_result){0};
}
