/* Explains one turn: its rules, calls, stages and verdict, in the order of the log. */
#include "audit/explain.h"

#include "audit/turn_lines.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/workflow.h"
#include "extract/extract.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/chain.h"
#include "judge/parse_reply.h"
#include "judge/stage.h"
#include "provider/denials.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Holds everything known while one turn is explained. */
struct story {
  const struct verified_reader *book;
  struct text_writer writer;
  json_t *records;           /* the turn's, in order, with stops and resumes among them */
  json_t *start;             /* session_start */
  struct workflow *workflow; /* NULL if the recorded one cannot be built */
  const struct movement *movement;
  struct chain_schemas schemas;
  long turn, run;
  json_t *shown;     /* calls already shown, by number */
  struct buf report; /* text that was judged, once needed */
  bool has_report;
  struct str mark; /* that its work was asked for; empty: none was */
};

/* --- words of a record --- */

static bool explain_is(const json_t *object, const char *key, const char *word) {
  return strcmp(json_word_at(object, key), word) == 0;
}

static bool explain_is_type(const json_t *record, const char *type) {
  return explain_is(record, "type", type);
}

/* Appends a member that is a text, or a number, if there is one. */
static void explain_put_word(struct buf *line, const char *before, const json_t *object,
                             const char *key, const char *behind) {
  const char *word = json_word_at(object, key);
  if (word[0] != '\0')
    buf_printf(line, "%s%s%s", before, word, behind);
}

static void explain_put_number(struct buf *line, const char *before, const json_t *object,
                               const char *key, const char *behind) {
  if (json_object_get(object, key) != NULL)
    buf_printf(line, "%s%" JSON_INTEGER_FORMAT "%s", before, json_int_at(object, key), behind);
}

static void explain_put_word_line(struct story *s, int depth, const char *before,
                                  const json_t *object, const char *key) {
  const char *word = json_word_at(object, key);
  if (word[0] != '\0')
    writer_line(&s->writer, depth, "%s%s", before, word);
}

/* Writes the line and frees it. */
static void put_line(struct story *s, int depth, struct buf *line) {
  writer_line(&s->writer, depth, "%s", buf_c(line));
  buf_deinit(line);
}

/* Gathers the attempts of one call from the turn's records. */
struct call_view {
  const json_t *start; /* first attempt's call_start */
  const json_t *last;  /* the last attempt's call_start */
  const json_t *end;   /* the last attempt's call_end, or NULL */
  long attempts;
  json_int_t duration_ms;
};

static void explain_call_of(const struct story *s, json_int_t call, struct call_view *out) {
  *out = (struct call_view){0};
  JSON_EACH(s->records, i, record) {
    if (json_int_at(record, "call") != call)
      continue;
    if (explain_is_type(record, "call_start")) {
      if (out->start == NULL)
        out->start = record;
      out->last = record;
      out->end = NULL;
      out->attempts++;
    } else if (explain_is_type(record, "call_end")) {
      json_int_t ms = json_int_at(record, "duration_ms");
      out->end = record;
      if (ms > 0 && ms < INT64_MAX - out->duration_ms) /* the log may come from anybody */
        out->duration_ms += ms;
    }
  }
}

/* --- finding --- */

struct run_word { /* a run as people write it: NAME, NAME ITEM, NAME#N, NAME ITEM#N */
  struct str name;
  long item, nth; /* 0: any; the last */
};

static bool run_was_judged(const struct verified_reader *book, size_t start) {
  for (size_t i = start + 1; i < book->place_count; i++)
    if (book->places[i].kind == VERIFIED_JUDGMENT &&
        book->places[i].turn == book->places[start].turn)
      return true;
  return false;
}

/* Counts the runs and finds the one that is meant; gathers what ran. */
static void count_runs(const struct verified_reader *book, const struct run_word *word, bool judged,
                       struct explain_found *found, json_t *names) {
  for (size_t i = 0; i < book->place_count; i++) {
    struct err err;
    if (book->places[i].kind != VERIFIED_TURN_START)
      continue;
    json_auto_t *record = verified_get(book, book->places[i].seq, &err);
    struct str movement = json_view_at(record, "movement");
    json_int_t item = json_int_at(record, "item");
    if (movement.n > 0)
      json_object_setn_new(names, movement.p, movement.n, json_true());
    if (record != NULL && str_eq(movement, word->name) && (word->item == 0 || word->item == item)) {
      found->runs++;
      if (word->nth ? word->nth == found->runs : !judged || run_was_judged(book, i)) {
        found->turn = book->places[i].turn;
        found->run = found->runs;
      }
    }
  }
}

/* Takes the last of a word's numbers off its name. False: it has none. */
static bool cut_number(struct run_word *word) {
  size_t at = word->name.n;
  while (at > 0 && word->name.p[at - 1] >= '0' && word->name.p[at - 1] <= '9')
    at--;
  if (at == 0 || at == word->name.n || (word->name.p[at - 1] != '#' && word->name.p[at - 1] != ' '))
    return false;
  long *number = word->name.p[at - 1] == '#' ? &word->nth : &word->item;
  struct str digits = {word->name.p + at, word->name.n - at};
  word->name.n = at - 1;
  return *number == 0 && str_to_long(digits, number) && *number > 0;
}

static bool not_found(const char *what, bool judged, const struct explain_found *found,
                      const json_t *names, struct err *err) {
  buf_auto_t list = {.max = 300};
  JSON_MEMBERS(names, name, value)
    buf_printf(&list, "%s%s", list.n > 0 ? ", " : "", name);
  if (found->runs > 0)
    err_set(err, ERR_NOT_FOUND, "there is no %.160s%s: that movement ran %ld time%s", what,
            judged ? " that was judged" : "", found->runs, found->runs == 1 ? "" : "s");
  else
    err_set(err, ERR_NOT_FOUND, "no movement \"%.160s\" ran in this session; what ran: %s", what,
            list.n > 0 ? list.p : "nothing yet");
  return false;
}

bool explain_find(const struct verified_reader *book, const char *what, bool judged,
                  struct explain_found *found, struct err *err) {
  struct run_word word = {.name = str_from(what)};
  json_auto_t *names = json_object();
  *found = (struct explain_found){0};
  do /* a name may end like this itself */
    count_runs(book, &word, judged, found, names);
  while (found->runs == 0 && cut_number(&word));
  return found->turn != 0 || not_found(what, judged, found, names, err);
}

/* --- what a sandbox denied --- */

enum { DENIED_SHOWN = 20 };

struct denial_story {
  struct story *s;
  const json_t *sandbox; /* of the call_start */
  const char *cwd;
  json_t *seen; /* what was reported, by its own words */
  size_t more;
};

static bool is_below(struct str path, const char *folder) {
  size_t n = strlen(folder);
  return n > 0 && path.n >= n && memcmp(path.p, folder, n) == 0 &&
         (path.n == n || path.p[n] == '/');
}

static void tell_one(struct denial_story *t, struct str path, enum denial_kind kind) {
  buf_auto_t line = {0};
  if (kind == DENIAL_NETWORK && json_word_at(t->sandbox, "network")[0] == '\0')
    return; /* its sandbox allows it */
  if (kind == DENIAL_HIDDEN &&
      (!denial_hides(json_word_at(t->sandbox, "mechanism")) || is_below(path, t->cwd)))
    return;
  if (kind == DENIAL_NETWORK)
    buf_puts(&line, "the network");
  else
    buf_str(&line, path);
  bool seen = json_object_get(t->seen, buf_c(&line)) != NULL;
  if (!seen && json_object_size(t->seen) < DENIED_SHOWN) {
    json_object_set_new(t->seen, buf_c(&line), json_true());
    buf_puts(&line, kind == DENIAL_HIDDEN ? ": hidden or missing: " : ": ");
    /* Writes "write: [PATH] in sandbox of config.yaml". */
    const char *key = kind == DENIAL_WRITE ? "write" : "read";
    if (kind == DENIAL_NETWORK)
      buf_puts(&line, "network: api or open in the movement lets it");
    else if (str_has(path, ".segue/"))
      buf_puts(&line,
               "nobody may write below .segue, where your workflows are: no setting allows it");
    else if (str_has(path, "/.git/hooks") || str_has(path, "/.git/config"))
      buf_puts(&line, "nobody may write git's hooks and settings: no setting allows it");
    else if (is_below(path, t->cwd))
      buf_puts(&line, "permission: edit in the movement lets it write there");
    else if (str_starts(path, "../"))
      buf_printf(&line, "sandbox: {%s: [its absolute path]} in config.yaml allows it", key);
    else
      buf_printf(&line, "sandbox: {%s: [" STR_FMT "]} in config.yaml allows it%s", key,
                 STR_ARG(path), kind == DENIAL_ACCESS ? "; write: to write it" : "");
    if (json_object_size(t->seen) == 1)
      writer_line(&t->s->writer, 2, "denied, as it says, perhaps by its sandbox (%s by %s):",
                  json_word_at(t->sandbox, "level"), json_word_at(t->sandbox, "mechanism"));
    writer_line(&t->s->writer, 3, "%s", buf_c(&line));
  } else if (!seen) {
    t->more++;
  }
}

static void tell_text(struct denial_story *t, struct str text) {
  struct str path;
  enum denial_kind kind;
  while (denial_next(&text, &path, &kind))
    tell_one(t, path, kind);
}

/* Lists the paths that a sandboxed call was denied, according to its own output. */
static void explain_denied(struct story *s, json_int_t call, const struct call_view *c) {
  struct denial_story t = {.s = s,
                           .sandbox = json_object_get(c->last, "sandbox"),
                           .cwd = json_word_at(json_object_get(s->start, "config"), "cwd")};
  if (json_word_at(t.sandbox, "mechanism")[0] == '\0')
    return; /* nothing restricted it */
  t.seen = json_object();
  JSON_EACH(s->records, i, record) {
    const char *host = json_word_at(json_object_get(record, "data"), "denied");
    if (json_int_at(record, "call") == call && host[0] != '\0') {
      /* Our own proxy refused this host: this is no guess. */
      if (json_object_get(t.seen, host) == NULL) {
        json_object_set_new(t.seen, host, json_true());
        if (json_object_size(t.seen) == 1)
          writer_line(&t.s->writer, 2, "denied by its sandbox (network: api):");
        writer_line(&t.s->writer, 3, "%s: sandbox: {hosts: [%s]} in config.yaml allows it", host,
                    host);
      }
    }
  }
  json_object_clear(t.seen);
  JSON_EACH(s->records, i, record) {
    const json_t *data = json_object_get(record, "data");
    if (json_int_at(record, "call") == call && json_word_at(data, "output")[0] != '\0')
      tell_text(&t, json_view_at(data, "output"));
  }
  tell_text(&t, json_view_at(c->end, "stderr"));
  if (explain_is(c->last, "provider", "command"))
    tell_text(&t, json_view_at(c->end, "text"));
  if (t.more > 0)
    writer_line(&s->writer, 3, "and %zu more", t.more);
  json_decref(t.seen);
}

/* --- a reply, read again --- */

/* Reads a judge's reply once more and shows how: every place where the extractor saw JSON and what
 * became of it, and every tag the tag reader counts. It uses the raw reply, the reader and the
 * schema that judged; the stage's record remains what counts. */

enum { SNIPPET_BYTES = 80 };

struct outcome_words {
  const char *outcome, *words; /* ends with a NULL */
};

static const char *words_of(const struct outcome_words *table, const char *outcome,
                            const char *otherwise) {
  for (size_t i = 0; table[i].outcome != NULL; i++)
    if (strcmp(table[i].outcome, outcome) == 0)
      return table[i].words;
  return otherwise;
}

static const char *reread_outcome_words(const char *outcome) {
  static const struct outcome_words table[] = {
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
      {NULL, NULL}};
  return words_of(table, outcome, outcome);
}

/* Lists the searches that failed before the value was found, or all of them if it was not. */
static void put_vain(struct text_writer *writer, const struct extract_result *found) {
  static const char *const words[] = {[EXTRACT_DIRECT] = "the whole text is not JSON",
                                      [EXTRACT_CODE_BLOCK] = "no code block holds JSON",
                                      [EXTRACT_BRACE] = "there is no JSON between braces"};
  size_t end = found->stage == EXTRACT_NONE ? ARRAY_LEN(words) : (size_t)found->stage;
  for (size_t stage = EXTRACT_DIRECT; stage < end; stage++) {
    bool noted = false;
    for (size_t i = 0; i < found->note_count; i++)
      noted = noted || (size_t)found->notes[i].stage == stage;
    if (!noted)
      writer_line(writer, 2, "extractor: %s: %s", extract_stage_name((enum extract_stage)stage),
                  words[stage]);
  }
}

static void put_candidates(struct text_writer *writer, const struct schema *schema, const char *key,
                           struct str text) {
  /* The check is that of the judging code, so that the same candidate is the nearest. */
  struct parsed_reply_check reader = {schema, key};
  struct extract_check check = parsed_reply_extract_check(&reader);
  struct extract_opts opts = {
      .want = EXTRACT_WANT_OBJECT, .check = &check, .explain = true, .whole = true};
  AUTO(extract_result_deinit) struct extract_result found;
  (void)extract(text.p ? text.p : "", text.n, &opts, &found);
  if (found.note_count == 0)
    writer_line(writer, 2, "extractor: nothing in it looks like JSON");
  else if (found.notes_dropped == 0)
    put_vain(writer, &found);
  for (size_t i = 0; i < found.note_count; i++) {
    const struct extract_note *note = &found.notes[i];
    buf_auto_t line = buf_of("extractor: %s at byte %zu: %s", extract_stage_name(note->stage),
                             note->offset, reread_outcome_words(note->outcome));
    if (strcmp(note->outcome, "not_valid") == 0) {
      /* The candidate is JSON by itself; the schema's first error says why it rejects it. */
      AUTO(schema_errors_deinit) struct schema_errors errors = {0};
      json_auto_t *value = json_loadb(text.p + note->offset, note->length, JSON_DECODE_ANY, NULL);
      if (value != NULL && schema_check(schema, value, &errors) == SCHEMA_INVALID &&
          errors.count > 0)
        buf_printf(&line, " (%s: %s)", errors.items[0].path, errors.items[0].message);
    } else if (note->error_offset > 0)
      buf_printf(&line, " (at byte %zu)", note->error_offset);
    buf_puts(&line, ": ");
    size_t n = note->length ? note->length : text.n - note->offset;
    bool cut = n > SNIPPET_BYTES;
    if (cut)
      n = utf8_floor(text.p + note->offset, SNIPPET_BYTES);
    buf_append(&line, text.p + note->offset, n);
    if (cut)
      buf_puts(&line, "...");
    if (strcmp(note->outcome, "chosen") == 0)
      writer_mark_piece(writer, text, note->offset, note->length, TEXT_WRITER_PIECE);
    else
      writer_mark_piece(writer, text, note->offset, note->length, TEXT_WRITER_REFUSED);
    writer_line(writer, 2, "%s", line.p);
  }
  if (found.notes_dropped > 0)
    writer_line(writer, 2, "extractor: and %zu more", found.notes_dropped);
}

/* Writes the value that the judging code takes, and what its schema says about it. */
static void put_reading(struct text_writer *writer, const struct schema *schema, const char *key,
                        const json_t *structured, struct str text, struct str report) {
  AUTO(parsed_reply_deinit) struct parsed_reply reading;
  if (structured == NULL)
    put_candidates(writer, schema, key, text);
  parsed_reply_init(&reading, schema, key, structured, text, report);
  if (reading.value == NULL) {
    writer_line(writer, 2, "read as: no value (%s)", reading.missing);
  } else {
    char_auto_t *dump = json_dump_text(reading.value, JSON_COMPACT | JSON_ENCODE_ANY);
    writer_line(writer, 2, "read as (%s): %s", reading.where, dump ? dump : "");
    writer_line(writer, 2, "schema: %s", reading.valid ? "fits" : "does not fit");
    for (size_t i = 0; i < reading.errors.count; i++)
      writer_line(writer, 3, "%s: %s", reading.errors.items[i].path,
                  reading.errors.items[i].message);
  }
}

static void put_tag(struct text_writer *writer, const struct chain_spec *spec,
                    enum judge_stage stage, struct str text) {
  struct tag_result tag;
  bool found = chain_find_tag(spec, text, stage, &tag);
  if (found)
    writer_mark_piece(writer, text, tag.tag.offset, tag.tag.length, TEXT_WRITER_TAG);
  if (tag.ambiguous)
    writer_mark_piece(writer, text, tag.other.offset, tag.other.length, TEXT_WRITER_TAG);
  for (size_t i = 0; i < tag.mention_count; i++)
    writer_mark_piece(writer, text, tag.mentions[i].offset, tag.mentions[i].length,
                      TEXT_WRITER_MENTION);
  if (found)
    writer_line(writer, 2, "tag: " STR_FMT " on line %zu%s", (int)tag.tag.length,
                text.p + tag.tag.offset, tag.tag.line,
                tag.ambiguous ? "; another line of this form names another rule" : "");
  if (tag.ambiguous)
    writer_line(writer, 2, "tag: " STR_FMT " on line %zu", (int)tag.other.length,
                text.p + tag.other.offset, tag.other.line);
  for (size_t i = 0; i < tag.mention_count; i++)
    writer_line(writer, 2, "tag: " STR_FMT " on line %zu is a mention: not evidence",
                (int)tag.mentions[i].length, text.p + tag.mentions[i].offset, tag.mentions[i].line);
  if (!found && tag.mention_count == 0)
    writer_line(writer, 2, "tag: none");
}

static void reread_reply(struct text_writer *writer, const struct chain_schemas *schemas,
                         enum judge_stage stage, const struct chain_spec *spec,
                         const json_t *structured, struct str text) {
  writer_reading(writer, true);
  if (stage == STAGE_STRUCTURED_OUTPUT)
    put_reading(writer, schemas->judgment, "step", structured, text, spec->agent_text);
  else if (stage == STAGE_AI_JUDGE)
    put_reading(writer, schemas->evaluation, "matched_index", structured, text, spec->agent_text);
  if (stage == STAGE_STRUCTURED_OUTPUT || stage == STAGE_AI_JUDGE || stage == STAGE_PHASE3_TAG ||
      stage == STAGE_PHASE1_TAG)
    put_tag(writer, spec, stage, text);
  writer_reading(writer, false);
}

/* --- calls --- */

/* Writes a part of a prompt. A reference to a piece of another prompt only repeats the template's
 * words: its origin is shown only in full. The origin of a task, an answer or a facet is always
 * shown. */
static void put_part(struct story *s, const json_t *part) {
  const char *ref = json_string_value(json_object_get(part, "ref"));
  if (ref == NULL) {
    writer_text_more(&s->writer, (struct str){json_string_value(part), json_string_length(part)});
    return;
  }
  buf_auto_t text = {0}, head = {0};
  struct err err = {0};
  const struct resolve recall = verified_recall(s->book);
  json_auto_t *parts = json_pack("[O]", part);
  bool found = resolve_parts(&recall, parts, &text, &err);
  buf_printf(&head, "record %s%s", ref, found ? ", " : ": ");
  if (found)
    buf_put_size(&head, text.n);
  else
    buf_puts(&head, err.text);
  if (found && !s->writer.full && strstr(ref, "#/prompt/") != NULL)
    writer_text_more(&s->writer, buf_view(&text));
  else
    writer_text_from(&s->writer, buf_view(&head), buf_view(&text));
}

/* Writes "asked: 1.2 KiB in 7 parts, with a schema for the reply". The prompt follows, or `hint`
 * says how to see it. */
static void put_asked(struct story *s, const json_t *start, const char *hint) {
  const json_t *parts = json_object_get(start, "prompt");
  size_t count = json_array_size(parts);
  buf_auto_t whole = {0}, line = {0};
  struct err err = {0};
  const struct resolve recall = verified_recall(s->book);
  bool found = resolve_parts(&recall, parts, &whole, &err);
  if (found) {
    buf_put_size(&line, whole.n);
    buf_puts(&line, " in ");
  }
  buf_printf(&line, "%zu part%s", count, count == 1 ? "" : "s");
  if (!found)
    buf_printf(&line, ", some of which are missing (%s)", err.text);
  if (json_object_get(start, "schema") != NULL)
    buf_puts(&line, ", with a schema for the reply");
  writer_line(&s->writer, 2, "asked: %s%s", buf_c(&line), hint);
}

/* Writes the prompt. `start` is the call's first record that holds it. */
static void put_prompt(struct story *s, const json_t *start) {
  put_asked(s, start, "");
  writer_text_begin(&s->writer);
  JSON_EACH(json_object_get(start, "prompt"), i, part)
    put_part(s, part);
  writer_text_end(&s->writer);
}

/* Gets the exact bytes of an answer, from the record or from its blob. */
static void explain_answer_of(struct story *s, const json_t *end, struct buf *out) {
  struct err err = {0};
  const struct resolve recall = verified_recall(s->book);
  if (json_object_get(end, "text") == NULL || resolve_text(&recall, end, "text", out, &err))
    return;
  writer_line(&s->writer, 2, "%s: this is the rendering in the log", err.text);
  buf_clear(out);
  buf_str(out, json_view_at(end, "text"));
}

/* Writes how much there was of a text, and where it is. */
static void put_size_line(struct story *s, const char *title, json_int_t bytes, const char *blob,
                          json_int_t dropped) {
  buf_auto_t size = {0};
  buf_put_size(&size, (size_t)bytes);
  if (blob[0] != '\0')
    buf_printf(&size, ", kept in blobs/%.12s...", blob);
  if (dropped > 0)
    buf_printf(&size,
               ", %" JSON_INTEGER_FORMAT " more were cut at the limit: a line in it says where",
               dropped);
  writer_line(&s->writer, 2, "%s: %s", title, buf_c(&size));
}

/* Lists the requests of a call that needed several. */
static void put_requests(struct story *s, const json_t *requests) {
  JSON_EACH(requests, i, r) {
    static const char *const texts[] = {"appended", "reasoning", "text", "error"};
    writer_line(&s->writer, 2, "request %zu asked to %s", i + 1, json_word_at(r, "asked"));
    for (size_t k = 0; k < ARRAY_LEN(texts); k++)
      if (json_view_at(r, texts[k]).n > 0) {
        writer_line(&s->writer, 3, "%s:", texts[k]);
        writer_text(&s->writer, json_view_at(r, texts[k]));
      }
  }
}

static void put_answer(struct story *s, const char *title, const json_t *end, struct str text) {
  const json_t *structured = json_object_get(end, "structured");
  put_size_line(s, title, (json_int_t)text.n, json_word_at(end, "text_blob"),
                json_int_at(end, "dropped_bytes"));
  writer_text(&s->writer, text);
  put_requests(s, json_object_get(end, "requests"));
  if (structured != NULL) {
    char_auto_t *dump = json_dump_text(structured, JSON_COMPACT | JSON_ENCODE_ANY);
    const char *enforced = json_word_at(end, "enforced");
    writer_line(&s->writer, 2, "as a value (%s): %s", enforced[0] ? enforced : "not enforced",
                dump ? dump : "");
  }
  if (json_object_get(end, "stderr") != NULL) {
    struct str shown = json_view_at(end, "stderr");
    bool blob = json_object_get(end, "stderr_blob") != NULL;
    put_size_line(s, "stderr", blob ? json_int_at(end, "stderr_bytes") : (json_int_t)shown.n,
                  json_word_at(end, "stderr_blob"), json_int_at(end, "stderr_dropped_bytes"));
    writer_text(&s->writer, shown);
  }
}

/* Explains a missing answer: the session's state says whether one may still come. */
static void put_no_answer(struct story *s) {
  const json_t *last = NULL;
  JSON_EACH(s->records, i, record)
    if (strncmp(json_word_at(record, "type"), LIT("session_")) == 0)
      last = record;
  const char *why = " yet";
  if (explain_is_type(last, "session_end"))
    why = ": the session ended";
  else if (explain_is_type(last, "session_stop"))
    why = ": the session stopped";
  writer_line(&s->writer, 2, "no answer%s", why);
}

/* Writes " (away since TIME, waited for until TIME)". */
static void explain_put_outage(struct buf *line, const json_t *record) {
  const json_t *outage = json_object_get(record, "outage");
  const char *until = json_word_at(outage, "until");
  if (outage != NULL)
    buf_printf(line, " (away since %s, waited for until %s)", json_word_at(outage, "since"),
               until[0] != '\0' ? until : "somebody logs in");
}

static void put_admission(struct story *s, const json_t *record) {
  struct buf line =
      buf_of("%s: %s", json_word_at(record, "provider"), json_word_at(record, "answer"));
  explain_put_word(&line, " (", record, "reason", ")");
  explain_put_word(&line, ": ", record, "message", "");
  explain_put_word(&line, " until ", record, "until", "");
  explain_put_outage(&line, record);
  explain_put_word(&line, ": ", record, "fallback", "");
  put_line(s, 2, &line);
}

/* Writes "tool Bash: make test", or "tool Bash ended, exit 2" with the first and last lines
 * below. */
static void put_tool(struct story *s, const json_t *data) {
  buf_auto_t line = {0};
  const char *argument = json_word_at(data, "argument");
  bool ends = explain_is(data, "state", "end");
  /* The end of a tool's use often gives only its id, not its name. */
  const char *id = json_word_at(data, "id"), *name = json_word_at(data, "name");
  JSON_EACH(s->records, i, record) {
    const json_t *other = json_object_get(record, "data");
    if (name[0] == '\0' && id[0] != '\0' && strcmp(json_word_at(other, "id"), id) == 0)
      name = json_word_at(other, "name");
  }
  buf_printf(&line, "tool %s%s", name, ends ? " ended" : "");
  if (json_is_true(json_object_get(data, "failed")))
    buf_puts(&line, ", failed");
  explain_put_number(&line, ", exit ", data, "exit", "");
  if (argument[0] != '\0')
    buf_printf(&line, ": %s", argument);
  writer_line(&s->writer, 2, "%s", buf_c(&line));
  if (json_word_at(data, "output")[0] != '\0')
    writer_text(&s->writer, str_from(json_word_at(data, "output")));
}

static void put_event(struct story *s, const json_t *record) {
  const char *text = json_word_at(json_object_get(record, "data"), "text");
  if (explain_is(record, "event", "tool")) {
    put_tool(s, json_object_get(record, "data"));
    return;
  }
  if (explain_is(record, "event", "note") && text[0] != '\0') {
    writer_line(&s->writer, 2, "note: %s", text);
    return;
  }
  char_auto_t *data =
      json_dump_text(json_object_get(record, "data"), JSON_COMPACT | JSON_ENCODE_ANY);
  writer_line(&s->writer, 2, "%s %s", json_word_at(record, "event"), data ? data : "");
}

static void put_failures(struct story *s, json_int_t call) {
  JSON_EACH(s->records, i, record) {
    const json_t *error = json_object_get(record, "error");
    struct buf line = {0};
    if (json_int_at(record, "call") != call)
      continue;
    if (explain_is_type(record, "call_start") && json_int_at(record, "repeats") > 0)
      writer_line(&s->writer, 2,
                  "attempt %" JSON_INTEGER_FORMAT " repeats attempt %" JSON_INTEGER_FORMAT
                  ": it is not known whether that one was answered",
                  json_int_at(record, "attempt"), json_int_at(record, "repeats"));
    if (explain_is_type(record, "call_start")) {
      /* The attempt may continue a conversation of the provider. */
      const json_t *session = json_object_get(record, "session");
      if (json_is_true(json_object_get(session, "resumed")))
        writer_line(&s->writer, 2,
                    "attempt %" JSON_INTEGER_FORMAT " goes on with %sconversation %s",
                    json_int_at(record, "attempt"),
                    json_is_true(json_object_get(session, "forked")) ? "a copy of " : "",
                    json_word_at(session, "id"));
      else if (session != NULL)
        writer_line(&s->writer, 2, "attempt %" JSON_INTEGER_FORMAT " begins a new conversation: %s",
                    json_int_at(record, "attempt"), json_word_at(session, "reason"));
    } else if (explain_is_type(record, "admission"))
      put_admission(s, record);
    else if (explain_is_type(record, "call_event"))
      put_event(s, record);
    if (error == NULL)
      continue;
    buf_printf(&line, "attempt %" JSON_INTEGER_FORMAT " failed: %s: %s",
               json_int_at(record, "attempt"), json_word_at(error, "class"),
               json_word_at(error, "message"));
    explain_put_number(&line, "; again in ", record, "retry_in_ms", " ms");
    explain_put_outage(&line, record);
    explain_put_word(&line, "; ", record, "fallback", " takes over");
    put_line(s, 2, &line);
  }
}

static void put_usage(struct buf *out, const json_t *usage) {
  static const char *const keys[] = {"input", "output", "cached", "reasoning"};
  for (size_t i = 0; i < ARRAY_LEN(keys); i++)
    if (json_object_get(usage, keys[i]) != NULL)
      buf_printf(out, ", %" JSON_INTEGER_FORMAT " tokens %s", json_int_at(usage, keys[i]), keys[i]);
  const char *told = json_word_at(usage, "told");
  if (told[0] != '\0')
    buf_printf(out, ", tokens told: %s", told);
  const json_t *cost = json_object_get(usage, "cost_usd");
  if (json_is_number(cost))
    buf_printf(out, ", cost $%.4f", json_number_value(cost));
  else if (json_is_object(usage))
    buf_puts(out, ", cost unknown");
}

/* Writes "call 7  script  model  2 attempts, 12 ms, 100 tokens input". */
static void put_call_head(struct story *s, json_int_t call, const struct call_view *c) {
  buf_auto_t line =
      buf_of("call %" JSON_INTEGER_FORMAT "  %s", call, json_word_at(c->last, "provider"));
  explain_put_word(&line, "  ", c->last, "model", "");
  if (explain_is(c->start, "purpose", "reask"))
    buf_puts(&line, "  asked to correct the earlier reply");
  buf_printf(&line, "  %ld attempt%s, %" JSON_INTEGER_FORMAT " ms", c->attempts,
             c->attempts == 1 ? "" : "s", c->duration_ms);
  JSON_MEMBERS(json_object_get(c->last, "options"), key, value) {
    char_auto_t *text = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_printf(&line, ", %s %s", key, text ? text : "");
  }
  put_usage(&line, json_object_get(c->end, "usage"));
  explain_put_word(&line, ", conversation ", c->end, "provider_session", "");
  writer_line(&s->writer, 1, "%s", line.p);
  explain_put_word_line(s, 2, "note: ", c->end, "note");
}

/* Finds the agent's own last message, which its judges were shown and phase1_tag reads. */
static void learn_report(struct story *s) {
  s->has_report = true;
  JSON_EACH(s->records, i, record) {
    struct call_view c;
    if (!explain_is_type(record, "call_start") || json_word_at(record, "stage")[0] != '\0' ||
        explain_is(record, "purpose", "check"))
      continue;
    explain_call_of(s, json_int_at(record, "call"), &c);
    if (json_at(record, "mark") != NULL)
      s->mark = json_view_at(record, "mark");
    if (c.end != NULL && json_object_get(c.end, "error") == NULL) {
      buf_clear(&s->report);
      explain_answer_of(s, c.end, &s->report);
    }
  }
}

/* Returns the movement's rules as its judges were offered them. */
static struct chain_spec explain_spec(struct story *s) {
  struct chain_spec spec = {.schemas = &s->schemas, .movement = STR("")};
  if (!s->has_report)
    learn_report(s);
  spec.agent_text = buf_view(&s->report);
  if (s->movement != NULL) {
    spec.rules = s->movement->rules;
    spec.rule_count = s->movement->rule_count;
    spec.interactive = json_is_true(json_at(json_at(s->start, "config"), "interactive"));
    spec.movement = s->movement->own_name;
    spec.mark = s->mark;
    bool given = json_at(json_at(s->start, "config"), "mark") != NULL;
    spec.own_scope = s->movement->argv != NULL && !given ? TAG_COMMAND : TAG_AGENT;
  }
  return spec;
}

/* Explains one judge call of a stage, and how its reply was read. */
static void explain_judge_call(struct story *s, json_int_t call, enum judge_stage stage) {
  struct call_view c;
  buf_auto_t text = {0};
  char key[32];
  print_into(key, sizeof key, "%" JSON_INTEGER_FORMAT, call);
  explain_call_of(s, call, &c);
  if (c.start == NULL) {
    writer_line(&s->writer, 1, "call %" JSON_INTEGER_FORMAT " is not in the log", call);
    return;
  }
  bool again = json_object_get(s->shown, key) != NULL;
  if (again) {
    writer_line(&s->writer, 1, "call %" JSON_INTEGER_FORMAT ", shown above", call);
  } else {
    json_object_set_new(s->shown, key, json_true());
    put_call_head(s, call, &c);
    put_prompt(s, c.start);
    put_failures(s, call);
  }
  if (c.end == NULL) {
    put_no_answer(s);
  } else if (json_object_get(c.end, "text") != NULL) {
    bool failed = json_object_get(c.end, "error") != NULL;
    explain_answer_of(s, c.end, &text);
    if (!again)
      put_answer(s, failed ? "said before it failed" : "answered", c.end, buf_view(&text));
    const struct chain_spec spec = explain_spec(s);
    if (!failed)
      reread_reply(&s->writer, &s->schemas, stage, &spec, json_object_get(c.end, "structured"),
                   buf_view(&text));
  }
}

/* Writes a call's title: what it is, and its program if it runs one. */
static void put_own_head(struct story *s, const json_t *start, json_int_t call,
                         const struct call_view *c) {
  bool command = explain_is(start, "provider", "command");
  bool checks = explain_is(start, "purpose", "check");
  const struct structured_config *so = s->movement ? s->movement->structured : NULL;
  json_int_t index = json_int_at(start, "invariant");
  bool known = checks && so && index >= 1 && (size_t)index <= invariants_count(so->invariants);
  const struct invariant *invariant =
      known ? invariants_get(so->invariants, (size_t)index - 1) : NULL;
  const char *const *argv = s->movement ? s->movement->argv : NULL;
  if (invariant != NULL)
    argv = invariant->argv;
  if (checks)
    writer_title(&s->writer, "invariant %" JSON_INTEGER_FORMAT "  %s", index,
                 invariant ? invariant->text : "");
  else if (explain_is(start, "purpose", "reask"))
    writer_title(&s->writer, "correction");
  else
    writer_title(&s->writer, "%s", command ? "command" : "agent");
  put_call_head(s, call, c);
  if (command && argv != NULL) {
    buf_auto_t line = {0};
    for (; *argv != NULL; argv++)
      buf_printf(&line, " %s", *argv);
    writer_line(&s->writer, 2, "runs:%s", buf_c(&line));
  }
}

static void put_files(struct story *s, const char *how, const json_t *files) {
  JSON_EACH(files, i, file) {
    if (json_object_get(file, "added") == NULL)
      writer_line(&s->writer, 2, "%s %s", how, json_word_at(file, "path"));
    else
      writer_line(&s->writer, 2, "%s %s +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT, how,
                  json_word_at(file, "path"), json_int_at(file, "added"),
                  json_int_at(file, "removed"));
  }
}

static void put_changed(struct story *s, const json_t *end) {
  put_files(s, "before it, something else changed", json_object_get(end, "files_between"));
  bool known = json_object_get(end, "files") != NULL;
  if (json_object_get(end, "files_shared") != NULL)
    writer_line(&s->writer, 2, "others worked in the tree at the same time; %s",
                known ? "some of this may be theirs:" : "the last of them has what changed");
  put_files(s, "changed", json_object_get(end, "files"));
  if (json_object_get(end, "files_more") != NULL)
    writer_line(&s->writer, 2, "changed %" JSON_INTEGER_FORMAT " more files",
                json_int_at(end, "files_more"));
}

/* Explains a call of the movement's own: its work, a correction of its value, the check of an
 * invariant. */
static void explain_own_call(struct story *s, const json_t *start) {
  struct call_view c;
  buf_auto_t text = {0};
  json_int_t call = json_int_at(start, "call");
  explain_call_of(s, call, &c);
  size_t parts = json_array_size(json_object_get(c.start, "prompt"));
  put_own_head(s, start, call, &c);
  if (parts > 0 && (s->writer.full || c.end == NULL))
    put_prompt(s, c.start);
  else if (parts > 0)
    put_asked(s, c.start, parts == 1 ? " (--full shows it)" : " (--full shows them)");
  put_failures(s, call);
  if (c.end == NULL) {
    put_no_answer(s);
    return;
  }
  if (json_object_get(c.end, "exit") != NULL) {
    buf_auto_t how = {0};
    turn_lines_exit((int)json_int_at(c.end, "exit"), (int)json_int_at(c.end, "signal"), &how);
    writer_line(&s->writer, 2, "%s", buf_c(&how));
  }
  put_changed(s, c.end);
  if (json_object_get(c.end, "text") != NULL) {
    explain_answer_of(s, c.end, &text);
    put_answer(s, json_object_get(c.end, "error") ? "said before it failed" : "answered", c.end,
               buf_view(&text));
  }
  explain_denied(s, call, &c);
}

/* --- stages --- */

static const char *stage_outcome_words(const json_t *stage) {
  bool no_match = explain_is(stage, "outcome", "no_match");
  if (no_match && explain_is(stage, "stage", "phase1_tag"))
    return "No tag in the agent's own message counts";
  if (no_match && explain_is(stage, "stage", "phase3_tag"))
    return "The reply named no rule by a tag";

  static const struct outcome_words table[] = {
      {"no_match", "Its answer was readable and named no rule"},
      {"unreadable", "Nothing in the reply could be read as an answer"},
      {"invalid", "The value in the reply does not fit its schema"},
      {"out_of_range", "It named a rule that does not exist"},
      {"hidden", "It named a rule that was not offered"},
      {"error", "No answer came"},
      {"ambiguous", "Its evidence names two rules and decides nothing"},
      {"skipped", "It would have met the same error at the provider"},
      {NULL, NULL}};
  return words_of(table, json_word_at(stage, "outcome"), "It named a rule");
}

/* Writes one sentence: why the next stage was tried, or why none was. */
static void put_why(struct story *s, const json_t *stage, const json_t *next) {
  struct buf line = {0};
  bool matched = explain_is(stage, "outcome", "matched");
  bool failed = explain_is(stage, "outcome", "error");
  if ((matched && next == NULL) || json_object_get(stage, "vote") != NULL)
    return;      /* a single vote leads nowhere */
  if (matched) { /* by a when() rule before the label it named */
    writer_line(&s->writer, 1,
                "A when() rule that stands before that label is true, so it decides.");
    return;
  }
  if (explain_is(stage, "stage", "when"))
    buf_puts(&line, failed ? "An expression cannot be evaluated" : "No when() rule is true");
  else
    buf_puts(&line, stage_outcome_words(stage));
  if (failed && json_word_at(stage, "class")[0])
    buf_printf(&line, " (%s)", json_word_at(stage, "class"));
  if (next == NULL)
    buf_puts(&line, ", and no stage was left.");
  else if (explain_is(next, "outcome", "skipped"))
    buf_printf(&line, "; the next, " STR_FMT ", was skipped after the provider's %s error.",
               STR_ARG(judge_stage_words(json_view_at(next, "stage"))),
               json_word_at(next, "class"));
  else if (explain_is(next, "stage", "auto_select"))
    buf_puts(&line, ", so the only label left was selected.");
  else
    buf_printf(&line, ", so the next was tried: " STR_FMT ".",
               STR_ARG(judge_stage_words(json_view_at(next, "stage"))));
  put_line(s, 1, &line);
}

static void put_stage_head(struct story *s, int index, const json_t *stage) {
  buf_auto_t line = {0};
  size_t calls = json_array_size(json_object_get(stage, "calls"));
  buf_printf(&line, "stage %d  " STR_FMT "  %s", index,
             STR_ARG(judge_stage_words(json_view_at(stage, "stage"))),
             json_word_at(stage, "outcome"));
  explain_put_word(&line, " (", stage, "class", ")");
  explain_put_number(&line, "  vote ", stage, "vote", "");
  explain_put_number(&line, "  rule ", stage, "rule", "");
  explain_put_word(&line, "  ", stage, "tag", "");
  if (json_is_true(json_object_get(stage, "ambiguous")))
    buf_puts(&line, "  ambiguous");
  if (explain_is(stage, "outcome", "skipped"))
    buf_puts(&line, "  not tried");
  else if (calls > 0)
    buf_printf(&line, "  %zu call%s, %" JSON_INTEGER_FORMAT " ms", calls, calls == 1 ? "" : "s",
               json_int_at(stage, "duration_ms"));
  else
    buf_puts(&line, "  no call");
  writer_title(&s->writer, "%s", line.p);
}

/* Says who a person is, from {uid, name}; NULL: nobody. */
static void explain_person(struct story *s, const json_t *by) {
  buf_auto_t where = {0};
  if (!json_is_object(by))
    return;
  if (json_int_at(by, "window") > 0)
    buf_printf(&where, ", in the window, browser %" JSON_INTEGER_FORMAT, json_int_at(by, "window"));
  writer_line(&s->writer, 1, "by: %s%s (uid %" JSON_INTEGER_FORMAT ")%s",
              json_object_get(by, "user") ? "says " : "", json_word_at(by, "name"),
              json_int_at(by, "uid"), where.n > 0 ? where.p : "");
}

/* Names the rule that a candidate is for, with its condition: two numbers alone say little. */
static void put_rule_named(struct story *s, json_int_t number, struct buf *line) {
  const struct movement *m = s->movement;
  if (number == 0)
    buf_puts(line, "no rule");
  else
    buf_printf(line, "rule %" JSON_INTEGER_FORMAT, number);
  if (m == NULL || number < 1 || (size_t)number > m->rule_count)
    return;
  buf_printf(line, " (" STR_FMT ")", STR_ARG(m->rules[number - 1].condition));
}

/* Says what an ambiguous stage is torn between, and where each alternative is. */
static void put_doubt(struct story *s, const json_t *stage) {
  JSON_EACH(json_object_get(stage, "candidates"), i, candidate) {
    buf_auto_t line = {0};
    if (json_object_get(candidate, "rule") != NULL)
      put_rule_named(s, json_int_at(candidate, "rule"), &line);
    else
      buf_puts(&line, "a value without a rule");
    explain_put_number(&line, ", vote ", candidate, "vote", "");
    explain_put_word(&line, " of ", candidate, "provider", "");
    if (json_at(candidate, "stage") != NULL)
      buf_printf(&line, ", by " STR_FMT,
                 STR_ARG(judge_stage_words(json_view_at(candidate, "stage"))));
    if (json_word_at(candidate, "text")[0]) {
      buf_puts(&line, ": ");
      buf_str(&line, json_view_at(candidate, "text"));
    }
    explain_put_number(&line, " on line ", candidate, "line", "");
    writer_line(&s->writer, 1, "candidate %zu: " STR_FMT, i + 1, STR_ARG(buf_view(&line)));
  }
}

static void explain_stage(struct story *s, int index, const json_t *stage, const json_t *next) {
  enum judge_stage which = STAGE_COUNT;
  const json_t *errors = json_object_get(stage, "errors");
  (void)judge_stage_from_name(json_view_at(stage, "stage"), &which);
  put_stage_head(s, index, stage);
  JSON_EACH(json_object_get(stage, "calls"), i, value)
    explain_judge_call(s, json_integer_value(value), which);
  if (which == STAGE_PHASE1_TAG) {
    const struct chain_spec spec = explain_spec(s);
    reread_reply(&s->writer, &s->schemas, which, &spec, NULL, spec.agent_text);
  }
  writer_reading(&s->writer, true);
  explain_put_word_line(s, 1, "extract_stage: ", stage, "extract_stage");
  writer_reading(&s->writer, false);
  JSON_EACH(errors, i, value) {
    bool last = i + 1 == json_array_size(errors);
    bool failed = last && explain_is(stage, "outcome", "error");
    writer_line(&s->writer, 1, "%s: %s", which == STAGE_WHEN && !failed ? "evaluated" : "error",
                json_string_value(value));
  }
  put_doubt(s, stage);
  explain_put_word_line(s, 1, "reason: ", stage, "reason");
  explain_person(s, json_object_get(stage, "by"));
  put_why(s, stage, next);
}

/* --- values --- */

static const char *check_words(const char *outcome) {
  static const struct outcome_words table[] = {{"valid", "it passes"},
                                               {"parse", "no value could be read in it"},
                                               {"schema", "the schema refuses the value"},
                                               {"invariant", "an invariant does not hold"},
                                               {"refused", "the model refused to answer"},
                                               {"length", "it was cut at its length limit"},
                                               {NULL, NULL}};
  return words_of(table, outcome, "");
}

static void explain_check(struct story *s, const json_t *check) {
  writer_title(&s->writer, "check %" JSON_INTEGER_FORMAT "  %s  call %" JSON_INTEGER_FORMAT "  %s",
               json_int_at(check, "number"), json_word_at(check, "outcome"),
               json_int_at(check, "call"), check_words(json_word_at(check, "outcome")));
  explain_put_word_line(s, 1, "extract_stage: ", check, "extract_stage");
  JSON_EACH(json_object_get(check, "repairs"), i, name)
    writer_line(&s->writer, 1, "repaired: %s", json_string_value(name));
  JSON_EACH(json_object_get(check, "errors"), k, error)
    writer_line(&s->writer, 1, "error: %s%s%s",
                json_object_get(error, "offset") ? "" : json_word_at(error, "path"),
                json_object_get(error, "offset") ? "" : ": ", json_word_at(error, "message"));
  if (json_int_at(check, "errors_dropped") > 0)
    writer_line(&s->writer, 1, "and %" JSON_INTEGER_FORMAT " more",
                json_int_at(check, "errors_dropped"));
}

static void explain_value(struct story *s, const json_t *record) {
  const json_t *value = json_object_get(record, "value");
  buf_auto_t line = {0};
  bool found = explain_is(record, "outcome", "value");
  buf_printf(&line, "%s%s  %" JSON_INTEGER_FORMAT " attempt%s",
             found ? "value" : "no value: ", found ? "" : json_word_at(record, "outcome"),
             json_int_at(record, "attempts"), json_int_at(record, "attempts") == 1 ? "" : "s");
  if (json_is_true(json_object_get(record, "first_pass")))
    buf_puts(&line, "  first pass");
  const char *before = "  failed: ";
  JSON_MEMBERS(json_object_get(record, "failures"), kind, count) {
    buf_printf(&line, "%s%s %" JSON_INTEGER_FORMAT, before, kind, json_integer_value(count));
    before = ", ";
  }
  writer_title(&s->writer, "%s", line.p);
  if (json_word_at(record, "message")[0])
    writer_line(&s->writer, 1, "%s: %s", json_word_at(record, "reason"),
                json_word_at(record, "message"));
  if (value != NULL) {
    buf_auto_t text = {0};
    json_write(value, &text);
    writer_text(&s->writer, buf_view(&text));
  }
}

/* --- the children of a group --- */

enum { SHOWN_CHILDREN = 40 }; /* without --full */

struct told_child {
  long turn;
  uint64_t start, judged, last; /* places of records; judged: 0, none */
};

struct told_children {
  struct told_child *items;
  size_t count;
};

static bool is_child_of(const struct story *s, uint64_t seq) {
  struct err err;
  json_auto_t *start = verified_get(s->book, seq, &err);
  return start != NULL && json_int_at(start, "parent_turn") == s->turn;
}

/* Finds the children. Turns are numbered as they begin, so the list is in order. */
static void find_children(const struct story *s, struct told_children *c) {
  for (size_t i = 0; i < s->book->place_count; i++) {
    const struct verified_reader_place *place = &s->book->places[i];
    size_t low = 0, high = c->count;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (c->items[middle].turn < place->turn)
        low = middle + 1;
      else
        high = middle;
    }
    struct told_child *child =
        low < c->count && c->items[low].turn == place->turn ? &c->items[low] : NULL;
    bool starts = place->kind == VERIFIED_TURN_START && place->turn > s->turn;
    if (starts && child == NULL && is_child_of(s, place->seq)) {
      if (c->count % 64 == 0)
        c->items = xrealloc(c->items, (c->count + 64) * sizeof *c->items);
      child = &c->items[c->count++];
      *child = (struct told_child){.turn = place->turn, .start = place->seq};
    }
    if (child != NULL)
      child->last = place->seq;
    if (child != NULL && place->kind == VERIFIED_JUDGMENT)
      child->judged = place->seq;
  }
}

static void put_child(struct story *s, const struct told_child *child) {
  struct err err;
  json_auto_t *start = verified_get(s->book, child->start, &err);
  json_auto_t *judged = child->judged > 0 ? verified_get(s->book, child->judged, &err) : NULL;
  json_auto_t *last = verified_get(s->book, child->last, &err);
  buf_auto_t name = {0};
  buf_puts(&name, json_word_at(start, "movement"));
  if (json_int_at(start, "item") > 0)
    buf_printf(&name, " %" JSON_INTEGER_FORMAT, json_int_at(start, "item"));
  if (json_word_at(last, "outcome")[0] != '\0')
    writer_line(&s->writer, 1, "turn %ld  %s  %s: %s", child->turn, buf_c(&name),
                json_word_at(last, "outcome"), json_word_at(last, "message"));
  else if (judged != NULL)
    writer_line(&s->writer, 1, "turn %ld  %s  %s  (" STR_FMT ")", child->turn, buf_c(&name),
                json_word_at(judged, "condition"),
                STR_ARG(judge_stage_words(json_view_at(judged, "match_method"))));
  else
    writer_line(&s->writer, 1, "turn %ld  %s  is at work", child->turn, buf_c(&name));
}

/* Explains what the children of a group's turn found; nothing for other turns. */
static void explain_children(struct story *s) {
  struct told_children c = {0};
  if (s->movement == NULL || s->movement->child_count == 0)
    return;
  find_children(s, &c);
  writer_title(&s->writer, "children");
  for (size_t i = 0; i < c.count && (s->writer.full || i < SHOWN_CHILDREN); i++)
    put_child(s, &c.items[i]);
  if (!s->writer.full && c.count > SHOWN_CHILDREN)
    writer_line(&s->writer, 1, "and %zu more (--full shows them)", c.count - SHOWN_CHILDREN);
  if (c.count == 0)
    writer_line(&s->writer, 1, "none began");
  free(c.items);
}

/* --- the turn --- */

/* Says whether there is anything to ask a model. */
static bool has_label(const struct movement *m) {
  for (size_t i = 0; i < m->rule_count; i++)
    if (m->rules[i].kind != RULE_WHEN)
      return true;
  return false;
}

static const char *rule_remark(const struct rule *rule) {
  if (rule->interactive_only)
    return "  (interactive only: hidden)";
  if (rule->kind == RULE_WHEN)
    return "  (never offered to a model)";
  return rule->appendix.n > 0 ? "  (shown with its appendix)" : "";
}

static void put_rules(struct story *s) {
  const struct movement *m = s->movement;
  buf_auto_t stages = {0};
  if (m == NULL)
    return;
  writer_title(&s->writer, "rules");
  for (size_t i = 0; i < m->rule_count; i++) {
    const struct rule *rule = &m->rules[i];
    writer_line(&s->writer, 1, "%d  " STR_FMT "%s" STR_FMT "%s", rule->number,
                STR_ARG(rule->condition), rule->next.n > 0 ? "  > " : "", STR_ARG(rule->next),
                rule_remark(rule));
  }
  for (size_t i = 0; i < m->judge.stage_count && has_label(m); i++)
    buf_printf(&stages, "%s" STR_FMT, i ? ", then " : "",
               STR_ARG(judge_stage_words(str_from(judge_stage_name(m->judge.stages[i])))));
  if (stages.n > 0)
    writer_line(&s->writer, 1, "judged by: %s", stages.p);
}

/* Lists configured stages that had no turn because they were not needed. */
static void put_untried(struct story *s, const json_t *stages) {
  buf_auto_t names = {0};
  bool may_judge = s->movement != NULL && has_label(s->movement);
  for (size_t i = 0; may_judge && i < s->movement->judge.stage_count; i++) {
    const char *name = judge_stage_name(s->movement->judge.stages[i]);
    bool tried = false;
    JSON_EACH(stages, k, stage)
      tried |= strcmp(json_word_at(stage, "stage"), name) == 0;
    if (!tried)
      buf_printf(&names, "%s" STR_FMT, names.n ? ", " : "",
                 STR_ARG(judge_stage_words(str_from(name))));
  }
  if (names.n > 0)
    writer_line(&s->writer, 1, "not needed: %s", names.p);
}

static void put_verdict(struct story *s, const json_t *judgment) {
  const json_t *stages = json_object_get(judgment, "stages");
  const json_t *last = json_array_get(stages, json_array_size(stages) - 1);
  writer_title(&s->writer, "verdict");
  if (!json_is_integer(json_object_get(judgment, "rule"))) {
    writer_line(&s->writer, 1, STR_FMT ": %s",
                STR_ARG(judge_stage_words(json_view_at(judgment, "failure"))),
                json_word_at(judgment, "reason"));
    return;
  }
  writer_line(&s->writer, 1, "rule %" JSON_INTEGER_FORMAT "  %s  > %s",
              json_int_at(judgment, "rule"), json_word_at(judgment, "condition"),
              json_word_at(judgment, "next"));
  if (last != NULL && json_int_at(last, "rule") > 0 &&
      json_int_at(last, "rule") != json_int_at(judgment, "rule"))
    writer_line(&s->writer, 1,
                "it named rule %" JSON_INTEGER_FORMAT
                "; of the rules with that label this is the first whose guard holds",
                json_int_at(last, "rule"));
  writer_line(&s->writer, 1, "by: " STR_FMT "  %s%s",
              STR_ARG(judge_stage_words(json_view_at(judgment, "method"))),
              json_word_at(judgment, "tag"),
              json_is_true(json_object_get(judgment, "ambiguous")) ? "  ambiguous" : "");
  writer_reading(&s->writer, true);
  writer_line(&s->writer, 1, "in the log: method %s  match_method %s",
              json_word_at(judgment, "method"), json_word_at(judgment, "match_method"));
  writer_reading(&s->writer, false);
  put_untried(s, stages);
}

static void put_head(struct story *s, const json_t *judgment, const json_t *start) {
  buf_auto_t line =
      buf_of("turn %ld  %s  run %" JSON_INTEGER_FORMAT, s->turn, json_word_at(start, "movement"),
             json_int_at(start, "movement_iteration"));
  if (judgment == NULL)
    buf_puts(&line, "  not judged yet");
  else if (json_is_integer(json_object_get(judgment, "rule")))
    buf_printf(&line, "  > %s  " STR_FMT, json_word_at(judgment, "next"),
               STR_ARG(judge_stage_words(json_view_at(judgment, "match_method"))));
  else
    buf_printf(&line, "  " STR_FMT, STR_ARG(judge_stage_words(json_view_at(judgment, "failure"))));
  writer_title(&s->writer, "%s", line.p);
}

/* Finds the next stage record after the i-th, before a stop or the judgment of the turn. */
static const json_t *stage_after(const struct story *s, size_t i) {
  for (size_t k = i + 1; k < json_array_size(s->records); k++) {
    const json_t *record = json_array_get(s->records, k);
    if (explain_is_type(record, "stage"))
      return record;
    if (explain_is_type(record, "judgment") || explain_is_type(record, "session_stop") ||
        explain_is_type(record, "session_resume"))
      return NULL;
  }
  return NULL;
}

static void put_resume(struct story *s, const json_t *record) {
  const json_t *changed = json_object_get(record, "changed");
  buf_auto_t text = {0};
  writer_title(&s->writer, "resumed  %s  %s", json_word_at(record, "reason"),
               json_word_at(record, "ts"));
  explain_person(s, json_object_get(record, "by"));
  if (changed != NULL) {
    json_write(changed, &text);
    writer_line(&s->writer, 1, "changed: %s", buf_c(&text));
  }
}

static void put_turn(struct story *s) {
  const json_t *judgment = NULL, *start = NULL;
  json_int_t last_own = 0;
  int index = 0;
  JSON_EACH(s->records, i, record) {
    if (explain_is_type(record, "judgment"))
      judgment = record;
    if (explain_is_type(record, "turn_start"))
      start = record;
  }
  put_head(s, judgment, start);
  put_rules(s);
  explain_children(s);
  JSON_EACH(s->records, i, record) {
    if (explain_is_type(record, "call_start") && json_word_at(record, "stage")[0] == '\0' &&
        json_int_at(record, "call") > last_own) {
      last_own = json_int_at(record, "call");
      explain_own_call(s, record);
    } else if (explain_is_type(record, "check")) {
      explain_check(s, record);
    } else if (explain_is_type(record, "structured")) {
      explain_value(s, record);
    } else if (explain_is_type(record, "stage")) {
      explain_stage(s, ++index, record, stage_after(s, i));
    } else if (explain_is_type(record, "session_stop")) {
      /* After these stops no earlier judging counts. */
      static const char *const reasons[] = {"judge_unavailable", "judge_split", "rule_no_match",
                                            "failed"};
      bool found = false;
      for (size_t k = 0; k < ARRAY_LEN(reasons); k++)
        found |= strcmp(reasons[k], json_word_at(record, "reason")) == 0;
      if (found)
        index = 0; /* the stages of its judgment are counted anew, too */
      writer_title(&s->writer, "stopped  %s  %s", json_word_at(record, "reason"),
                   json_word_at(record, "ts"));
      if (json_word_at(record, "class")[0] || json_word_at(record, "message")[0])
        writer_line(&s->writer, 1, "%s%s%s", json_word_at(record, "class"),
                    json_word_at(record, "class")[0] ? ": " : "", json_word_at(record, "message"));
      if (json_object_get(record, "question") != NULL)
        writer_line(&s->writer, 1, "question: %s",
                    json_word_at(json_object_get(record, "question"), "text"));
    } else if (explain_is_type(record, "session_end")) {
      writer_title(&s->writer, "ended  %s  %s", json_word_at(record, "outcome"),
                   json_word_at(record, "ts"));
      explain_put_word_line(s, 1, "", record, "message");
    } else if (explain_is_type(record, "session_resume")) {
      put_resume(s, record);
      if (json_object_get(record, "verdict") != NULL)
        index = 0;
    } else if (explain_is_type(record, "judgment")) {
      put_verdict(s, record);
    }
  }
  bool is_group = s->movement != NULL && s->movement->child_count > 0;
  if (last_own == 0 && !is_group)
    writer_line(&s->writer, 1, "nothing ran yet");
}

/* --- gathering --- */

/* Gathers the turn's records, and the session's stops and resumes while it was open. */
static bool explain_gather(struct story *s, struct err *err) {
  const struct verified_reader *book = s->book;
  size_t last = 0;
  bool open = false, judged = false;
  for (size_t i = 0; i < book->place_count; i++)
    if (book->places[i].turn == s->turn && book->places[i].kind != VERIFIED_SESSION) {
      last = i;
      judged |= book->places[i].kind == VERIFIED_JUDGMENT;
    }
  if (!judged)
    last = book->place_count; /* still open: its stops count */
  for (size_t i = 0; i < book->place_count && i <= last; i++) {
    const struct verified_reader_place *place = &book->places[i];
    open |= place->turn == s->turn;
    if (!open || (place->turn != s->turn && place->kind != VERIFIED_SESSION))
      continue;
    json_t *record = verified_get(book, place->seq, err);
    if (record == NULL)
      return false;
    json_array_append_new(s->records, record);
  }
  return json_array_size(s->records) > 0 ||
         err_set(err, ERR_NOT_FOUND, "there is no turn %ld", s->turn);
}

static void build(struct story *s) {
  struct err err = {0};
  s->start = verified_get(s->book, 1, &err);
  json_t *doc = json_object_get(s->start, "workflow");
  s->workflow = doc ? workflow_build(doc, &err) : NULL;
  const json_t *first = json_array_get(s->records, 0);
  long index = s->workflow ? workflow_find(s->workflow, json_view_at(first, "movement")) : -1;
  s->movement = index >= 0 ? &s->workflow->movements[index] : NULL;
}

bool explain_turn(const struct verified_reader *book, long turn, const struct explain_opts *opts,
                  struct buf *out, struct err *err) {
  struct story s = {.book = book, .turn = turn, .records = json_array(), .shown = json_object()};
  assert(book->keeps_places);
  writer_init(&s.writer, out, opts->full || opts->sink != NULL, opts->columns);
  s.writer.sink = opts->sink;
  bool ok = chain_schemas_init(&s.schemas, err);
  if (ok) {
    ok = explain_gather(&s, err);
    if (ok) {
      build(&s);
      put_turn(&s);
    }
    chain_schemas_deinit(&s.schemas);
    buf_deinit(&s.report);
  }
  workflow_unref(s.workflow);
  json_decref(s.start);
  json_decref(s.records);
  json_decref(s.shown);
  return ok;
}
