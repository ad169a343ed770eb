/* Reads a log to prove or show it. */
#include "audit/book.h"

#include "base/limits.h"
#include "base/log.h"
#include "schema/text.h"
#include "store/line.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool book_open(struct book *b, const struct store_ref *ref, bool places, struct err *err) {
  *b = (struct book){.keeps_places = places};
  if (!reader_open(&b->reader, ref, err))
    return false;
  b->open = true;
  memcpy(b->hash, line_first_hash, SHA256_HEX);
  b->ref = *ref;
  store_of(ref, &b->store);
  return true;
}

void book_lend(struct book *b, struct book_memory *memory) {
  assert(b->places == NULL);
  reader_lend(&b->reader, &memory->lines);
  b->places = memory->places;
  b->place_room = memory->place_room;
  *memory = (struct book_memory){0};
}

void book_take_back(struct book *b, struct book_memory *memory) {
  reader_take_back(&b->reader, &memory->lines);
  if (b->place_room * sizeof *b->places > LIMIT_LENT_BYTES)
    return;
  memory->places = b->places;
  memory->place_room = b->place_room;
  b->places = NULL;
  b->place_count = b->place_room = 0;
}

void book_memory_free(struct book_memory *memory) {
  buf_deinit(&memory->lines);
  free(memory->places);
  *memory = (struct book_memory){0};
}

static enum book_kind book_kind_of(const char *type) {
  if (str_starts(str_from(type), "session_"))
    return BOOK_SESSION;
  if (strcmp(type, "turn_start") == 0)
    return BOOK_TURN_START;
  return strcmp(type, "judgment") == 0 ? BOOK_JUDGMENT : BOOK_OTHER;
}

static void keep_place(struct book *b, uint64_t seq, long turn, const char *type, struct str line) {
  if (!b->keeps_places || seq > UINT32_MAX)
    return;
  if (b->place_count == b->place_room) {
    b->place_room = b->place_room + b->place_room / 4 + 256;
    b->places = xrealloc(b->places, b->place_room * sizeof *b->places);
  }
  b->places[b->place_count++] = (struct book_place){
      .seq = (uint32_t)seq,
      .offset = b->reader.offset,
      .bytes = (uint32_t)line.n,
      .turn = turn > 0 && turn <= UINT32_MAX ? (uint32_t)turn : 0,
      .kind = (uint8_t)book_kind_of(type ? type : ""),
  };
}

static void keep_json_place(struct book *b, const json_t *record, struct str line) {
  keep_place(b, (uint64_t)json_integer_value(json_object_get(record, "seq")),
             (long)json_integer_value(json_object_get(record, "turn")),
             json_string_value(json_object_get(record, "type")), line);
}

/* A broken chain has two causes, which the number in the line tells apart. */
static bool damaged(struct book *b, struct str line) {
  json_t *record = line_read(line, NULL);
  const json_t *seq = json_object_get(record, "seq");
  if (json_is_integer(seq) && json_integer_value(seq) != (json_int_t)b->records + 1) {
    char what[160];
    (void)snprintf(what, sizeof what, "%.159s", b->damage.text);
    (void)err_set(&b->damage, ERR_CORRUPT, "%s; its seq is %" JSON_INTEGER_FORMAT ", not %llu",
                  what, json_integer_value(seq), (unsigned long long)b->records + 1);
  }
  json_decref(record);
  b->state = BOOK_DAMAGED;
  b->line = line;
  return false;
}

static bool at_end(struct book *b) {
  if (b->reader.error != 0)
    (void)err_set_errno(&b->damage, b->reader.error, "it cannot be read");
  else if (b->reader.too_long)
    (void)err_set(&b->damage, ERR_CORRUPT, "it is longer than %u bytes, the limit of a line",
                  LIMIT_LOG_LINE_BYTES);
  b->state = b->reader.error != 0 || b->reader.too_long ? BOOK_DAMAGED : BOOK_END;
  b->line = (struct str){"", 0};
  return false;
}

bool book_line(struct book *b) {
  struct str line;
  if (b->state != BOOK_READING)
    return false;
  if (!reader_next(&b->reader, &line))
    return at_end(b);
  if (!b->reader.whole) {
    b->state = BOOK_TORN;
    b->torn_bytes = line.n;
    return false;
  }
  if (!line_check_hash(line, b->hash, &b->damage))
    return damaged(b, line);
  b->line = line;
  return true;
}

void book_accept(struct book *b, struct str line, uint64_t offset) {
  assert(b->state == BOOK_READING);
  line_hash(line, b->hash);
  b->line = line;
  b->reader.offset = offset;
}

json_t *book_build(struct book *b) {
  json_t *record = line_record(b->line, &b->damage);
  if (record == NULL)
    (void)damaged(b, b->line);
  return record;
}

static bool is_next(struct book *b, uint64_t seq) {
  if (seq != b->records + 1) {
    (void)err_set(&b->damage, ERR_CORRUPT, "it is not the next record");
    return damaged(b, b->line);
  }
  b->records++;
  b->end = b->reader.offset + b->line.n + 1;
  return true;
}

bool book_keep(struct book *b, const struct record *record) {
  if (!is_next(b, record->seq))
    return false;
  keep_place(b, record->seq, (long)record_number(record, MEMBER_TURN), record->type_name.p,
             b->line);
  return true;
}

json_t *book_next(struct book *b) {
  json_t *record = book_line(b) ? book_build(b) : NULL;
  if (record == NULL)
    return NULL;
  if (!is_next(b, (uint64_t)json_integer_value(json_object_get(record, "seq")))) {
    json_decref(record);
    return NULL;
  }
  keep_json_place(b, record, b->line);
  return record;
}

json_t *book_next_unproven(struct book *b) {
  if (b->state != BOOK_DAMAGED)
    return NULL;
  for (;;) {
    struct str line = b->line;
    b->line = (struct str){NULL, 0};
    if (line.p == NULL && !reader_next(&b->reader, &line))
      return NULL;
    json_t *record = line.n > 0 ? line_read(line, NULL) : NULL;
    uint64_t last = b->place_count > 0 ? b->places[b->place_count - 1].seq : b->records;
    json_int_t seq = json_integer_value(json_object_get(record, "seq"));
    if (record != NULL && seq > 0 && (uint64_t)seq > last) {
      keep_json_place(b, record, line);
      return record;
    }
    json_decref(record);
  }
}

bool book_again(struct book *b) {
  if (!reader_again(&b->reader))
    return false;
  if (b->state != BOOK_DAMAGED)
    b->state = BOOK_READING;
  return true;
}

static const struct book_place *find_place(const struct book *b, uint64_t seq) {
  size_t low = 0, high = b->place_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (b->places[middle].seq < seq)
      low = middle + 1;
    else
      high = middle;
  }
  return low < b->place_count && b->places[low].seq == seq ? &b->places[low] : NULL;
}

/* Finds the line of a record again. It may be read into `memory`. False: there is no such record,
 * or it cannot be read. */
static bool book_reread(const struct book *b, uint64_t seq, struct buf *memory, struct str *line) {
  const struct book_place *place = find_place(b, seq);
  if (place == NULL)
    return false;
  *line = (struct str){reader_held(&b->reader, place->offset, place->bytes), place->bytes};
  if (line->p != NULL)
    return true;
  buf_reserve(memory, place->bytes);
  line->p = memory->p;
  return reader_read_all(&b->reader, place->offset, memory->p, place->bytes);
}

json_t *book_get(const struct book *b, uint64_t seq, struct err *err) {
  struct buf memory = {0};
  struct str line;
  if (find_place(b, seq) == NULL) {
    (void)err_set(err, ERR_CORRUPT, "record %llu is not in the log", (unsigned long long)seq);
    return NULL;
  }
  json_t *record = book_reread(b, seq, &memory, &line) ? line_read(line, NULL) : NULL;
  buf_deinit(&memory);
  if (record == NULL)
    (void)err_set(err, ERR_CORRUPT, "record %llu cannot be read again", (unsigned long long)seq);
  return record;
}

static json_t *recall_record(void *ctx, uint64_t seq, struct err *err) {
  return book_get(ctx, seq, err);
}

struct recall book_recall(const struct book *b) {
  return (struct recall){(void *)b, recall_record, &b->store};
}

bool book_has_text(const struct book *b, const char *place, struct err *err) {
  const struct recall recall = book_recall(b);
  struct buf memory = {0};
  struct str line;
  char *pointer;
  uint64_t seq = strtoull(place, &pointer, 10);
  bool named = place[0] >= '1' && place[0] <= '9' && str_starts(str_from(pointer), "#/");
  bool has = named && book_reread(b, seq, &memory, &line) && schema_text_has(line, pointer + 2);
  buf_deinit(&memory);
  return has || recall_has(&recall, place, err);
}

bool book_owned(const struct book *b) {
  return reader_is_owned(&b->reader);
}

void book_close(struct book *b) {
  if (b->open)
    reader_close(&b->reader);
  free(b->places);
  *b = (struct book){0};
}
