/* Reads a judge's reply again, explaining each step. */
#include "audit/reread.h"

#include "base/log.h"
#include "base/utf8.h"
#include "extract/extract.h"
#include "format/json_write.h"
#include "judge/reading.h"

#include <stdlib.h>
#include <string.h>

enum { SNIPPET_BYTES = 80 };

struct check_ctx {
  const struct schema *schema;
  const char *key;
};

static bool check_valid(void *ctx, const json_t *value) {
  const struct check_ctx *check = ctx;
  return schema_valid(check->schema, value);
}

/* Checks as judge/reading.c does, so that the same candidate is the nearest. */
static int check_nearness(void *ctx, const json_t *value) {
  const struct check_ctx *check = ctx;
  return (json_object_get(value, check->key) != NULL) + (json_object_get(value, "reason") != NULL);
}

static bool reread_check_key(void *ctx, const char *key, size_t n) {
  const struct check_ctx *c = ctx;
  struct str name = {key, n};
  return str_eq_c(name, c->key) || str_eq_c(name, "reason");
}

static bool check_echo(void *ctx, const json_t *value) {
  (void)ctx;
  return json_is_object(json_object_get(value, "properties"));
}

static const char *reread_outcome_words(const char *outcome) {
  static const struct {
    const char *outcome, *words;
  } table[] = {
      {"chosen", "accepted"},
      {"nearest", "refused by the schema, the nearest to it: its errors count"},
      {"not_valid", "refused by the schema"},
      {"superseded", "passes, but a later one passes too, and the last counts"},
      {"wrong_root", "not an object"},
      {"empty", "empty"},
      {"broken", "broken JSON"},
      {"not_json", "not JSON"},
      {"inside_broken", "inside broken JSON, so it is not a candidate"},
      {"before_broken", "passes, but a broken piece with the same keys follows: a draft"},
      {"before_refused", "passes, but a refused piece with the same keys follows: a draft"},
      {"reasoning", "inside a reasoning section, so it is not an answer"},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (strcmp(table[i].outcome, outcome) == 0)
      return table[i].words;
  return outcome;
}

static void put_snippet(struct buf *out, struct str text, const struct extract_note *note) {
  size_t n = note->length ? note->length : text.n - note->offset;
  bool cut = n > SNIPPET_BYTES;
  if (cut)
    n = utf8_floor(text.p + note->offset, SNIPPET_BYTES);
  buf_append(out, text.p + note->offset, n);
  if (cut)
    buf_puts(out, "...");
}

/* Says why the schema rejects a candidate that is JSON by itself. */
static void put_refusal(struct buf *out, const struct schema *schema, struct str text,
                        const struct extract_note *note) {
  struct schema_errors errors = {0};
  json_t *value = json_loadb(text.p + note->offset, note->length, JSON_DECODE_ANY, NULL);
  if (value != NULL && schema_check(schema, value, &errors) == SCHEMA_INVALID && errors.count > 0)
    buf_printf(out, " (%s: %s)", errors.items[0].path, errors.items[0].message);
  schema_errors_deinit(&errors);
  json_decref(value);
}

/* Lists the searches that failed before the value was found, or all of them if it was not. */
static void put_vain(struct pen *pen, const struct extract_result *found) {
  static const char *const words[] = {[EXTRACT_DIRECT] = "the whole text is not JSON",
                                      [EXTRACT_CODE_BLOCK] = "no code block holds JSON",
                                      [EXTRACT_BRACE] = "there is no JSON between braces"};
  size_t end = found->stage == EXTRACT_NONE ? ARRAY_LEN(words) : (size_t)found->stage;
  for (size_t stage = EXTRACT_DIRECT; stage < end; stage++) {
    bool noted = false;
    for (size_t i = 0; i < found->note_count; i++)
      noted = noted || (size_t)found->notes[i].stage == stage;
    if (!noted)
      pen_line(pen, 2, "extractor: %s: %s", extract_stage_name((enum extract_stage)stage),
               words[stage]);
  }
}

static void put_candidates(struct pen *pen, const struct schema *schema, const char *key,
                           struct str text) {
  struct check_ctx ctx = {schema, key};
  struct extract_check check = {&ctx, check_valid, check_nearness, check_echo, reread_check_key};
  struct extract_opts opts = {
      .want = EXTRACT_WANT_OBJECT, .check = &check, .explain = true, .whole = true};
  struct extract_result found;
  (void)extract(text.p ? text.p : "", text.n, &opts, &found);
  if (found.note_count == 0)
    pen_line(pen, 2, "extractor: nothing in it looks like JSON");
  else if (found.notes_dropped == 0)
    put_vain(pen, &found);
  for (size_t i = 0; i < found.note_count; i++) {
    const struct extract_note *note = &found.notes[i];
    struct buf line = {0};
    buf_printf(&line, "extractor: %s at byte %zu: %s", extract_stage_name(note->stage),
               note->offset, reread_outcome_words(note->outcome));
    if (strcmp(note->outcome, "not_valid") == 0)
      put_refusal(&line, schema, text, note);
    else if (note->error_offset > 0)
      buf_printf(&line, " (at byte %zu)", note->error_offset);
    buf_puts(&line, ": ");
    put_snippet(&line, text, note);
    if (strcmp(note->outcome, "chosen") == 0)
      pen_mark_piece(pen, text, note->offset, note->length, PEN_PIECE);
    else
      pen_mark_piece(pen, text, note->offset, note->length, PEN_REFUSED);
    pen_line(pen, 2, "%s", line.p);
    buf_deinit(&line);
  }
  if (found.notes_dropped > 0)
    pen_line(pen, 2, "extractor: and %zu more", found.notes_dropped);
  extract_result_deinit(&found);
}

/* Writes the value that the judging code takes, and what its schema says about it. */
static void put_reading(struct pen *pen, const struct schema *schema, const char *key,
                        const json_t *structured, struct str text, struct str report) {
  struct reading reading;
  if (structured == NULL)
    put_candidates(pen, schema, key, text);
  reading_init(&reading, schema, key, structured, text, report);
  if (reading.value == NULL) {
    pen_line(pen, 2, "read as: no value (%s)", reading.missing);
  } else {
    char *dump = json_dump_text(reading.value, JSON_COMPACT | JSON_ENCODE_ANY);
    pen_line(pen, 2, "read as (%s): %s", reading.where, dump ? dump : "");
    free(dump);
    pen_line(pen, 2, "schema: %s", reading.valid ? "fits" : "does not fit");
    for (size_t i = 0; i < reading.errors.count; i++)
      pen_line(pen, 3, "%s: %s", reading.errors.items[i].path, reading.errors.items[i].message);
  }
  reading_deinit(&reading);
}

static void put_tag(struct pen *pen, const struct chain_spec *spec, enum judge_stage stage,
                    struct str text) {
  struct tag_result tag;
  bool found = chain_find_tag(spec, text, stage, &tag);
  if (found)
    pen_mark_piece(pen, text, tag.tag.offset, tag.tag.length, PEN_TAG);
  if (tag.ambiguous)
    pen_mark_piece(pen, text, tag.other.offset, tag.other.length, PEN_TAG);
  for (size_t i = 0; i < tag.mention_count; i++)
    pen_mark_piece(pen, text, tag.mentions[i].offset, tag.mentions[i].length, PEN_MENTION);
  if (found)
    pen_line(pen, 2, "tag: " STR_FMT " on line %zu%s", (int)tag.tag.length, text.p + tag.tag.offset,
             tag.tag.line, tag.ambiguous ? "; another line of this form names another rule" : "");
  if (tag.ambiguous)
    pen_line(pen, 2, "tag: " STR_FMT " on line %zu", (int)tag.other.length,
             text.p + tag.other.offset, tag.other.line);
  for (size_t i = 0; i < tag.mention_count; i++)
    pen_line(pen, 2, "tag: " STR_FMT " on line %zu is a mention: not evidence",
             (int)tag.mentions[i].length, text.p + tag.mentions[i].offset, tag.mentions[i].line);
  if (!found && tag.mention_count == 0)
    pen_line(pen, 2, "tag: none");
}

void reread_reply(struct pen *pen, const struct chain_schemas *schemas, enum judge_stage stage,
                  const struct chain_spec *spec, const json_t *structured, struct str text) {
  if (stage == STAGE_STRUCTURED_OUTPUT)
    put_reading(pen, schemas->judgment, "step", structured, text, spec->agent_text);
  else if (stage == STAGE_AI_JUDGE)
    put_reading(pen, schemas->evaluation, "matched_index", structured, text, spec->agent_text);
  if (stage == STAGE_STRUCTURED_OUTPUT || stage == STAGE_AI_JUDGE || stage == STAGE_PHASE3_TAG ||
      stage == STAGE_PHASE1_TAG)
    put_tag(pen, spec, stage, text);
}
