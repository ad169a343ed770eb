/* Compiles ECMA-262 patterns with PCRE2, and matches within limits on steps and memory. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "schema/pattern.h"

#include "schema/ecma.h"
#include "schema/support.h"

#include <assert.h>
#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>

/* Most patterns in real schemas are simple enough to match without an engine. */
enum pattern_kind { KIND_REGEX, KIND_ALWAYS, KIND_PREFIX, KIND_EQUAL, KIND_CONTAINS, KIND_REPEAT };

struct pattern {
  enum pattern_kind kind;
  bool anchored;         /* tried only at the first position */
  bool quick;            /* compiled to machine code */
  size_t literal_length; /* for KIND_REPEAT the number of repetitions */
  char *literal;         /* for KIND_REPEAT 256 bytes, 1 for each allowed byte */
  pcre2_code *code;
};

static void *hook_malloc(PCRE2_SIZE size, void *unused) {
  (void)unused;
  return xmalloc(size);
}

static void hook_free(void *ptr, void *unused) {
  (void)unused;
  free(ptr);
}

/* --- compiling --- */

static bool literal(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (!text[i] || strchr("\\^$.|?*+()[]{}", text[i]))
      return false;
  return true;
}

static bool compile_simple(struct pattern *p, const char *text, size_t length) {
  bool begins = length && text[0] == '^', ends = false;
  const char *from = text + begins;
  size_t n = length - begins;
  if (n && from[n - 1] == '$' && literal(from, n - 1)) {
    ends = true;
    n--;
  }
  if (n == 2 && !memcmp(from, LIT(".*")) && !ends)
    n = 0;
  if (!literal(from, n) || (ends && !begins))
    return false;
  p->kind = KIND_CONTAINS;
  if (ends)
    p->kind = KIND_EQUAL;
  else if (!n)
    p->kind = KIND_ALWAYS;
  else if (begins)
    p->kind = KIND_PREFIX;
  p->literal_length = n;
  p->literal = xstrndup(from, n);
  return true;
}

static enum pattern_status compile_regex(struct pattern *p, const char *source, size_t length,
                                         struct pattern_error *error) {
  int code;
  PCRE2_SIZE offset;
  pcre2_general_context *general = pcre2_general_context_create(hook_malloc, hook_free, NULL);
  pcre2_compile_context *context = pcre2_compile_context_create(general);
  pcre2_set_parens_nest_limit(context, PATTERN_NESTING_MAX + 1);
  p->code = pcre2_compile((PCRE2_SPTR)source, length,
                          PCRE2_UTF | PCRE2_MATCH_UNSET_BACKREF | PCRE2_DOLLAR_ENDONLY |
                              PCRE2_NEVER_BACKSLASH_C,
                          &code, &offset, context);
  pcre2_compile_context_free(context);
  pcre2_general_context_free(general);
  if (p->code) {
    uint32_t options = 0;
    pcre2_pattern_info(p->code, PCRE2_INFO_ALLOPTIONS, &options);
    p->anchored = (options & PCRE2_ANCHORED) != 0;
    return PATTERN_OK;
  }
  if (pcre2_get_error_message(code, (PCRE2_UCHAR *)error->text, sizeof error->text) < 0)
    error->text[sizeof error->text - 1] = '\0';
  return PATTERN_INVALID;
}

/* Compiles a class of ASCII letters, digits and ranges with a count and nothing else, such as
 * ^[0-9a-f]{64}$. */
static bool compile_repeat(struct pattern *p, const char *text, size_t length) {
  enum { TIMES_MAX = 1000 };
  const char *at = text + 2, *end = text + length;
  char may[256] = {0};
  size_t times = 0;
  if (length < 8 || memcmp(text, LIT("^[")) != 0 || end[-2] != '}' || end[-1] != '$')
    return false;
  for (; isalnum((unsigned char)*at); at++) {
    unsigned char from = (unsigned char)*at, to = from;
    if (at[1] == '-' && isalnum((unsigned char)at[2]))
      to = (unsigned char)*(at += 2);
    if (from > to)
      return false;
    memset(may + from, 1, (size_t)(to - from) + 1);
  }
  if (at == text + 2 || *at++ != ']' || *at++ != '{' || *at == '0')
    return false;
  for (; str_is_digit(*at) && times <= TIMES_MAX; at++)
    times = times * 10 + (size_t)(*at - '0');
  if (at != end - 2 || times == 0 || times > TIMES_MAX)
    return false;
  p->kind = KIND_REPEAT;
  p->literal_length = times;
  p->literal = xmalloc(sizeof may);
  memcpy(p->literal, may, sizeof may);
  return true;
}

enum pattern_status pattern_compile(const char *text, size_t length, struct pattern **pattern,
                                    struct pattern_error *error) {
  assert(text != NULL || length == 0);
  struct pattern_error unused;
  struct pattern *p = xcalloc(1, sizeof *p);
  *pattern = NULL;
  error = error ? error : &unused;
  *error = (struct pattern_error){0};
  if (compile_simple(p, text, length) || compile_repeat(p, text, length)) {
    *pattern = p;
    return PATTERN_OK;
  }
  AUTO(arena_deinit) struct arena arena = {0};
  struct ecma_error wrong;
  enum pattern_status status = PATTERN_INVALID;
  const struct ecma_node *root = ecma_parse((struct str){text, length}, &arena, &wrong);
  if (!root) {
    snprintf(error->text, sizeof error->text, "%s", wrong.text);
    error->offset = wrong.offset;
  } else {
    buf_auto_t translated = {0};
    ecma_to_pcre(root, &translated);
    status = compile_regex(p, translated.p, translated.n, error);
    error->offset = length;
  }
  if (status == PATTERN_OK)
    *pattern = p;
  else
    pattern_free(p);
  return status;
}

void pattern_speed_up(struct pattern *pattern) {
  assert(pattern);
  if (pattern->code)
    pattern->quick = pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE) == 0;
}

size_t pattern_bytes(const struct pattern *pattern) {
  size_t code = 0, quick = 0;
  if (pattern->code) {
    pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &code);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_JITSIZE, &quick);
  }
  return sizeof *pattern + pattern->literal_length + code + quick;
}

enum pattern_status pattern_compile_engine(const char *text, size_t length,
                                           struct pattern **pattern) {
  struct pattern_error error;
  struct pattern *p = xcalloc(1, sizeof *p); /* KIND_REGEX */
  *pattern = NULL;
  enum pattern_status status = compile_regex(p, text, length, &error);
  if (status == PATTERN_OK)
    *pattern = p;
  else
    pattern_free(p);
  return status;
}

void pattern_free(struct pattern *pattern) {
  if (!pattern)
    return;
  pcre2_code_free(pattern->code);
  free(pattern->literal);
  free(pattern);
}

/* --- matching --- */

/* Match data and context are allocated from the scratch itself, so a match with a compiled engine
 * allocates nothing. */
static void *scratch_malloc(PCRE2_SIZE size, void *data) {
  struct pattern_scratch *scratch = data;
  size_t rounded = (size + 15) & ~(size_t)15;
  if (rounded <= sizeof scratch->memory - scratch->used) {
    void *at = scratch->memory + scratch->used;
    scratch->used += rounded;
    return at;
  }
  return xmalloc(size);
}

static void scratch_free(void *ptr, void *data) {
  struct pattern_scratch *scratch = data;
  unsigned char *at = ptr;
  if (at && (at < scratch->memory || at >= scratch->memory + sizeof scratch->memory))
    free(ptr);
}

static void scratch_prepare(struct pattern_scratch *scratch) {
  if (scratch->match_data)
    return;
  pcre2_general_context *general =
      pcre2_general_context_create(scratch_malloc, scratch_free, scratch);
  scratch->match_context = pcre2_match_context_create(general);
  scratch->match_data = pcre2_match_data_create(1, general);
  pcre2_general_context_free(general);
  pcre2_set_heap_limit(scratch->match_context, 1024); /* KiB */
}

void pattern_scratch_deinit(struct pattern_scratch *scratch) {
  if (scratch->match_data)
    pcre2_match_data_free(scratch->match_data);
  if (scratch->match_context)
    pcre2_match_context_free(scratch->match_context);
  scratch->match_data = scratch->match_context = NULL;
  scratch->used = 0;
}

static int engine_run(const struct pattern *p, struct pattern_scratch *scratch, const char *text,
                      size_t length, uint32_t steps) {
  pcre2_set_match_limit(scratch->match_context, steps);
  int result = pcre2_match(p->code, (PCRE2_SPTR)text, length, 0, 0, scratch->match_data,
                           scratch->match_context);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT)
    result = pcre2_match(p->code, (PCRE2_SPTR)text, length, 0, PCRE2_NO_JIT, scratch->match_data,
                         scratch->match_context);
  return result;
}

static enum pattern_result match_regex(const struct pattern *p, struct pattern_scratch *scratch,
                                       const char *text, size_t length) {
  enum { FEW_STEPS = 500, STEPS_A_UNIT = 400, SLOW = 10 }; /* measured: 7 to 40 times */
  scratch_prepare(scratch);
  /* The engine counts steps anew at each start position, so the limit shrinks as the text grows. At
   * first it gets few steps, which nearly always suffice and cost the caller's budget little. It
   * gets many only if those run out. */
  size_t starts = p->anchored ? 1 : length + 1;
  size_t most = PATTERN_TOTAL_STEPS_MAX / starts + 1;
  most = most < PATTERN_STEPS_MAX ? most : PATTERN_STEPS_MAX;
  size_t few = 10 + 20 * FEW_STEPS / starts;
  few = few < FEW_STEPS ? few : FEW_STEPS;
  few = few < most ? few : most;
  scratch->cost += 4 + length / 16 + starts * few / 4000;
  int result = engine_run(p, scratch, text, length, (uint32_t)few);
  if (result == PCRE2_ERROR_MATCHLIMIT && most > few) {
    scratch->cost += starts * most / STEPS_A_UNIT * 4 * (p->quick ? 1 : SLOW);
    result = engine_run(p, scratch, text, length, (uint32_t)most);
  }
  if (result >= 0)
    return PATTERN_MATCH;
  if (result == PCRE2_ERROR_NOMATCH ||
      (result <= PCRE2_ERROR_UTF8_ERR1 && result >= PCRE2_ERROR_UTF8_ERR21))
    return PATTERN_NO_MATCH;
  return PATTERN_TOO_COMPLEX;
}

static bool text_contains(const char *text, size_t length, const char *part, size_t n) {
  if (!n)
    return true;
  for (const char *end = text + length; (size_t)(end - text) >= n; text++) {
    text = memchr(text, part[0], (size_t)(end - text) - n + 1);
    if (!text)
      return false;
    if (!memcmp(text, part, n))
      return true;
  }
  return false;
}

enum pattern_result pattern_match(const struct pattern *pattern, struct pattern_scratch *scratch,
                                  const char *text, size_t length) {
  assert(pattern && scratch);
  size_t n = pattern->literal_length;
  bool ok = true;
  switch (pattern->kind) {
  case KIND_REGEX:
    return match_regex(pattern, scratch, text, length);
  case KIND_ALWAYS:
    break;
  case KIND_PREFIX:
    ok = length >= n && !memcmp(text, pattern->literal, n);
    break;
  case KIND_EQUAL:
    ok = length == n && !memcmp(text, pattern->literal, n);
    break;
  case KIND_REPEAT:
    ok = length == n;
    for (size_t i = 0; ok && i < n; i++)
      ok = pattern->literal[(unsigned char)text[i]];
    break;
  case KIND_CONTAINS:
    scratch->cost += length / 16;
    ok = text_contains(text, length, pattern->literal, n);
    break;
  }
  return ok ? PATTERN_MATCH : PATTERN_NO_MATCH;
}
