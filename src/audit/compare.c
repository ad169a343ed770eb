/* Aligns two sessions turn by turn. */
#include "audit/compare.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t most = (int64_t)1 << 40; /* a log may hold any number */

/* --- reading --- */

static struct compare_turn *compare_turn_of(struct compare_side *side, const json_t *record) {
  long turn = (long)json_int_at(record, "turn");
  for (size_t i = side->count; i > 0; i--)
    if (side->turns[i - 1].turn == turn)
      return &side->turns[i - 1];
  return NULL;
}

static json_t *keep(const json_t *record, const char *key) {
  json_t *value = json_object_get(record, key);
  return json_is_string(value) ? json_incref(value) : NULL;
}

static int64_t compare_count(const json_t *object, const char *key) {
  json_int_t n = json_int_at(object, key);
  return n < 0 || n > most ? 0 : n;
}

/* Hashes an answer without the mark that its turn asked for: it differs each time. */
static void hash_unmarked(struct str text, struct str mark, char out[SHA256_HEX]) {
  struct str tail = {text.p + text.n, 0};
  for (size_t i = mark.n > 0 && text.n >= mark.n ? text.n - mark.n + 1 : 0; i-- > 0;)
    if (memcmp(text.p + i, mark.p, mark.n) == 0) {
      tail = (struct str){text.p + i + mark.n, text.n - i - mark.n};
      text.n = i;
      break;
    }
  sha256_hex(text.p, text.n, tail.p, tail.n, out);
}

/* `works` has the turn's calls that are not a judge's, with their numbers as keys. */
static void compare_on_call_end(struct compare_side *side, const json_t *record,
                                const json_t *works) {
  struct compare_turn *turn = compare_turn_of(side, record);
  const json_t *usage = json_at(record, "usage");
  double usd = json_number_value(json_at(usage, "cost_usd"));
  char key[24];
  if (turn == NULL)
    return;
  int64_t cost = usd > 0 && usd <= LIMIT_COST_USD ? (int64_t)(usd * 1e9 + 0.5) : 0;
  int64_t tokens = compare_count(usage, "input") + compare_count(usage, "output");
  turn->ms += compare_count(record, "duration_ms");
  turn->tokens += tokens;
  turn->cost_nano += cost;
  side->ms += compare_count(record, "duration_ms");
  side->tokens += tokens;
  side->cost_nano += cost;
  JSON_EACH(json_at(record, "files"), i, file) {
    const char *path = json_string_value(json_at(file, "path"));
    json_t *known = path ? json_object_get(turn->files, path) : NULL;
    json_int_t added = compare_count(file, "added"), removed = compare_count(file, "removed");
    if (path != NULL)
      json_object_set_new(turn->files, path,
                          json_pack("[II]", added + json_integer_value(json_array_get(known, 0)),
                                    removed + json_integer_value(json_array_get(known, 1))));
  }
  print_into(key, sizeof key, "%lld", (long long)compare_count(record, "call"));
  struct str text = json_view_at(record, "text");
  const char *blob = json_string_value(json_at(record, "text_blob"));
  if (json_object_get(works, key) == NULL || json_at(record, "error") != NULL)
    return;
  turn->text_seq = (uint64_t)compare_count(record, "seq");
  if (blob != NULL && strlen(blob) == SHA256_HEX - 1)
    memcpy(turn->text_sha256, blob, SHA256_HEX);
  else
    hash_unmarked(text, json_view(json_object_get(works, key)), turn->text_sha256);
}

static void compare_on_session(struct compare_side *side, const json_t *record, const char *type) {
  if (strcmp(type, "session_start") == 0) {
    struct str id = json_view_at(record, "session"), hash = json_view_at(record, "workflow_sha256");
    if (id.n < sizeof side->session)
      print_into(side->session, sizeof side->session, STR_FMT, STR_ARG(id));
    if (hash.n == SHA256_HEX - 1)
      memcpy(side->workflow_sha256, hash.p, SHA256_HEX);
    json_decref(side->workflow);
    side->workflow = keep(json_at(record, "workflow"), "name");
    return;
  }
  json_decref(side->outcome);
  side->outcome = strcmp(type, "session_end") == 0 ? keep(record, "outcome") : NULL;
  if (strcmp(type, "session_stop") == 0)
    side->outcome = json_string(
        session_stop_status(json_view_at(record, "reason"), json_view_at(record, "class")));
}

/* Returns 0, which no fork names, for a head that cannot be read. */
static uint64_t compare_head_of(const char *hash) {
  uint64_t head = 0;
  return hash != NULL && sscanf(hash, "%16" SCNx64, &head) == 1 ? head : 0;
}

static void compare_record(struct compare_side *side, const json_t *record, json_t *works) {
  const char *type = json_string_value(json_at(record, "type"));
  if (type == NULL)
    return;
  if (strcmp(type, "carried") == 0) {
    const json_t *parent = json_at(record, "parent");
    struct str id = json_view_at(parent, "session"), hash = json_view_at(parent, "hash");
    if (id.n < sizeof side->fork.session && hash.n == SHA256_HEX - 1) {
      print_into(side->fork.session, sizeof side->fork.session, STR_FMT, STR_ARG(id));
      memcpy(side->fork.hash, hash.p, SHA256_HEX);
      side->fork.seq = (uint64_t)compare_count(parent, "seq");
      side->fork.turns = (long)compare_count(json_at(record, "state"), "turns");
    }
  } else if (strcmp(type, "turn_start") == 0) {
    side->turns = xgrow(side->turns, &side->room, side->count + 1, sizeof *side->turns);
    struct compare_turn *turn = &side->turns[side->count++];
    *turn = (struct compare_turn){.turn = (long)json_int_at(record, "turn"),
                                  .movement = keep(record, "movement"),
                                  .unproven = side->book.state == VERIFIED_DAMAGED,
                                  .files = json_object()};
    json_object_clear(works);
  } else if (strcmp(type, "call_start") == 0) {
    struct compare_turn *turn = compare_turn_of(side, record);
    char key[24];
    if (turn != NULL && json_at(record, "stage") == NULL) {
      print_into(key, sizeof key, "%lld", (long long)compare_count(record, "call"));
      const json_t *mark = json_at(record, "mark");
      json_object_set_new(works, key, mark ? json_incref((json_t *)mark) : json_true());
      if (turn->worker == NULL)
        turn->worker = keep(record, "provider");
    }
  } else if (strcmp(type, "call_end") == 0) {
    compare_on_call_end(side, record, works);
  } else if (strcmp(type, "judgment") == 0) {
    struct compare_turn *turn = compare_turn_of(side, record);
    if (turn != NULL && !turn->judged) {
      turn->judged = true;
      turn->rule = (long)compare_count(record, "rule");
      turn->next = keep(record, "next");
      turn->method = keep(record, "method");
      turn->judge = keep(record, "provider");
    }
  } else if (strncmp(type, LIT("session_")) == 0) {
    compare_on_session(side, record, type);
  }
}

bool compare_log(struct compare_side *side, const struct store_ref *ref, struct err *err) {
  json_t *record, *works = json_object();
  *side = (struct compare_side){0};
  struct verified_reader *book = &side->book;
  bool ok = verified_open(book, ref, true, err);
  while (ok && (record = verified_next(book)) != NULL) {
    bool newer = json_int_at(record, "v") > RECORD_VERSION;
    if (newer && side->newer == 0)
      side->newer = book->records;
    side->heads = xgrow(side->heads, &side->head_room, side->head_count + 1, sizeof *side->heads);
    /* only of sound ones: it proves what a fork shares */
    side->heads[side->head_count++] = compare_head_of(json_string_value(json_at(record, "hash")));
    compare_record(side, record, works);
    json_decref(record);
  }
  while (ok && (record = verified_next_unproven(book)) != NULL) {
    compare_record(side, record, works);
    json_decref(record);
  }
  json_decref(works);
  return ok;
}

bool compare_sound(const struct compare_side *side, struct err *err) {
  const struct verified_reader *book = &side->book;
  if (side->newer > 0)
    return err_set(err, ERR_CORRUPT,
                   "%.200s: record %llu: its version is newer than this program reads",
                   book->ref.name, (unsigned long long)side->newer);
  return book->state != VERIFIED_DAMAGED ||
         err_set(err, ERR_CORRUPT, "%.200s: record %llu: %.400s", book->ref.name,
                 (unsigned long long)book->records + 1, book->damage.text);
}

bool compare_text(const struct compare_side *side, const struct compare_turn *turn, struct buf *out,
                  struct err *err) {
  if (turn->text_seq == 0)
    return true;
  const struct resolve recall = verified_recall(&side->book);
  json_auto_t *record = verified_get(&side->book, turn->text_seq, err);
  return record != NULL && resolve_text(&recall, record, "text", out, err);
}

void compare_side_deinit(struct compare_side *side) {
  for (size_t i = 0; i < side->count; i++) {
    json_decref(side->turns[i].movement);
    json_decref(side->turns[i].next);
    json_decref(side->turns[i].method);
    json_decref(side->turns[i].judge);
    json_decref(side->turns[i].worker);
    json_decref(side->turns[i].files);
  }
  free(side->turns);
  free(side->heads);
  json_decref(side->workflow);
  json_decref(side->outcome);
  verified_close(&side->book);
  *side = (struct compare_side){0};
}

/* --- aligning --- */

static bool same_text(const json_t *a, const json_t *b) {
  return a == b || (a != NULL && b != NULL && json_same(a, b));
}

static struct compare_row compare_row_of(const struct compare_turn *a,
                                         const struct compare_turn *b) {
  struct compare_row row = {.a = a, .b = b};
  if (a == NULL || b == NULL || !same_text(a->movement, b->movement)) {
    row.differs = COMPARE_ONLY_ONE;
    return row;
  }
  if (a->judged != b->judged || a->rule != b->rule || !same_text(a->next, b->next))
    row.differs |= COMPARE_VERDICT;
  if (!same_text(a->method, b->method))
    row.differs |= COMPARE_METHOD;
  if (strcmp(a->text_sha256, b->text_sha256) != 0)
    row.differs |= COMPARE_TEXT;
  if (!json_same(a->files, b->files))
    row.differs |= COMPARE_FILES;
  return row;
}

static size_t turns_up_to(const struct compare_side *side, long last) {
  size_t n = 0;
  while (n < side->count && side->turns[n].turn <= last)
    n++;
  return n;
}

static bool forked_from(const struct compare_side *child, const struct compare_side *parent) {
  return child->fork.session[0] != '\0' && strcmp(child->fork.session, parent->session) == 0;
}

const struct compare_side *compare_shared(const struct compare_side *a,
                                          const struct compare_side *b, size_t *turns,
                                          bool *proven) {
  const struct compare_side *parent = NULL, *child = NULL;
  if (forked_from(b, a))
    parent = a, child = b;
  else if (forked_from(a, b))
    parent = b, child = a;
  *turns = 0;
  *proven = true;
  if (parent == NULL)
    return NULL;
  const struct compare_fork *fork = &child->fork;
  *proven = fork->seq > 0 && fork->seq <= parent->head_count &&
            parent->heads[fork->seq - 1] == compare_head_of(fork->hash);
  if (*proven)
    *turns = turns_up_to(parent, fork->turns);
  return parent;
}

/* Fills table[i][k] with the length of the longest common sequence of a's turns from i on and b's
 * from k on. */
static uint16_t *common_of(const struct compare_side *a, const struct compare_side *b) {
  size_t width = b->count + 1;
  uint16_t *table = xcalloc((a->count + 1) * width, sizeof *table);
  for (size_t i = a->count; i-- > 0;)
    for (size_t k = b->count; k-- > 0;) {
      uint16_t down = table[(i + 1) * width + k], right = table[i * width + k + 1];
      uint16_t best = down > right ? down : right;
      if (same_text(a->turns[i].movement, b->turns[k].movement))
        best = (uint16_t)(table[(i + 1) * width + k + 1] + 1);
      table[i * width + k] = best;
    }
  return table;
}

struct compare_row *compare_align(const struct compare_side *a, const struct compare_side *b,
                                  size_t *count) {
  struct compare_row *rows = xcalloc(a->count + b->count + 1, sizeof *rows);
  bool small = a->count <= COMPARE_ALIGN_COUNT && b->count <= COMPARE_ALIGN_COUNT;
  uint16_t *table = small ? common_of(a, b) : NULL;
  size_t width = b->count + 1;
  /* The turns that the fork took over come first. */
  size_t turns;
  bool proven;
  const struct compare_side *parent = compare_shared(a, b, &turns, &proven);
  for (size_t i = 0; i < turns; i++) {
    const struct compare_turn *turn = &parent->turns[i];
    rows[i] = (struct compare_row){
        .a = parent == a ? turn : NULL, .b = parent == b ? turn : NULL, .differs = COMPARE_SHARED};
  }
  *count = turns;
  size_t i = *count > 0 && rows[0].a != NULL ? *count : 0;
  size_t k = *count > 0 && rows[0].b != NULL ? *count : 0;
  for (; i < a->count || k < b->count; (*count)++) {
    bool both = i < a->count && k < b->count;
    bool same = both && same_text(a->turns[i].movement, b->turns[k].movement);
    bool first = both && table != NULL && table[(i + 1) * width + k] >= table[i * width + k + 1];
    if (same)
      rows[*count] = compare_row_of(&a->turns[i++], &b->turns[k++]);
    else if (k == b->count || (both && (table == NULL || first)))
      rows[*count] = compare_row_of(&a->turns[i++], NULL);
    else
      rows[*count] = compare_row_of(NULL, &b->turns[k++]);
  }
  free(table);
  return rows;
}

const struct compare_row *compare_parting(const struct compare_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++)
    if ((rows[i].differs & (COMPARE_ONLY_ONE | COMPARE_VERDICT)) != 0)
      return &rows[i];
  return NULL;
}

size_t compare_judged(const struct compare_row *rows, size_t count, bool judged) {
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    bool any = (rows[i].a != NULL && rows[i].a->judged) || (rows[i].b != NULL && rows[i].b->judged);
    n += any == judged;
  }
  return n;
}

/* --- output --- */

static json_t *turn_json(const struct compare_turn *t) {
  if (t == NULL)
    return json_null();
  return json_pack("{sI so sO* sO* sO* sO* sI sI sf sO}", "turn", (json_int_t)t->turn, "rule",
                   t->rule > 0 ? json_integer(t->rule) : json_null(), "next", t->next, "method",
                   t->method, "provider", t->judge, "worker", t->worker, "duration_ms",
                   (json_int_t)t->ms, "tokens", (json_int_t)t->tokens, "cost_usd",
                   (double)t->cost_nano / 1e9, "files", t->files);
}

static json_t *row_json(const struct compare_row *row) {
  static const char *const names[] = {"only_one", "verdict", "method", "text", "files"};
  bool shared = (row->differs & COMPARE_SHARED) != 0;
  const struct compare_turn *any = row->a ? row->a : row->b;
  json_t *differs = json_array();
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (row->differs & (1u << i))
      json_array_append_new(differs, json_string(names[i]));
  return json_pack("{sO* so so so so*}", "movement", any->movement, "differs", differs, "a",
                   turn_json(row->a), "b", turn_json(row->b), "shared",
                   shared ? json_true() : NULL);
}

static json_t *side_json(const struct compare_side *side) {
  return json_pack("{so sO* so sI sI sI sf}", "session", json_text(str_from(side->session)),
                   "workflow", side->workflow, "outcome",
                   side->outcome ? json_incref(side->outcome) : json_string("open"), "turns",
                   (json_int_t)side->count, "duration_ms", (json_int_t)side->ms, "tokens",
                   (json_int_t)side->tokens, "cost_usd", (double)side->cost_nano / 1e9);
}

static json_t *shared_json(const struct compare_side *a, const struct compare_side *b) {
  size_t turns;
  bool proven;
  const struct compare_side *parent = compare_shared(a, b, &turns, &proven);
  if (parent == NULL)
    return json_null();
  return json_pack("{ss sI sb}", "parent", parent == a ? "a" : "b", "turns", (json_int_t)turns,
                   "proven", proven);
}

json_t *compare_json(const struct compare_side *a, const struct compare_side *b,
                     const struct compare_row *rows, size_t count) {
  const struct compare_row *parting = compare_parting(rows, count);
  json_t *turns = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(turns, row_json(&rows[i]));
  return json_pack("{so so sb so so so}", "a", side_json(a), "b", side_json(b), "same_workflow",
                   strcmp(a->workflow_sha256, b->workflow_sha256) == 0, "shared", shared_json(a, b),
                   "parting", parting ? json_integer((json_int_t)(parting - rows)) : json_null(),
                   "turns", turns);
}
