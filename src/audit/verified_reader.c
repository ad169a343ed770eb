/* Reads a log to prove or show it. */
#include "audit/verified_reader.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "store/record_line.h"

#include <stdlib.h>
#include <string.h>

bool verified_open(struct verified_reader *b, const struct store_ref *ref, bool places,
                   struct err *err) {
  *b = (struct verified_reader){.keeps_places = places};
  if (!reader_open(&b->reader, ref, err))
    return false;
  b->open = true;
  memcpy(b->hash, record_line_first_hash, SHA256_HEX);
  b->ref = *ref;
  store_of(ref, &b->store);
  return true;
}

static enum verified_reader_kind verified_kind_of(const char *type) {
  if (str_starts(str_from(type), "session_"))
    return VERIFIED_SESSION;
  if (strcmp(type, "turn_start") == 0)
    return VERIFIED_TURN_START;
  return strcmp(type, "judgment") == 0 ? VERIFIED_JUDGMENT : VERIFIED_OTHER;
}

static void keep_place(struct verified_reader *b, const json_t *record, struct str line) {
  const char *type = json_string_value(json_object_get(record, "type"));
  uint64_t seq = (uint64_t)json_int_at(record, "seq");
  json_int_t turn = json_int_at(record, "turn");
  if (!b->keeps_places || seq > UINT32_MAX)
    return;
  if (b->place_count == b->place_room) {
    b->place_room = b->place_room + b->place_room / 4 + 256;
    b->places = xrealloc(b->places, b->place_room * sizeof *b->places);
  }
  b->places[b->place_count++] = (struct verified_reader_place){
      .seq = (uint32_t)seq,
      .offset = b->reader.offset,
      .bytes = (uint32_t)line.n,
      .turn = turn > 0 && turn <= UINT32_MAX ? (uint32_t)turn : 0,
      .kind = (uint8_t)verified_kind_of(type ? type : ""),
  };
}

/* A broken chain has two causes, which the number in the line tells apart. */
static bool damaged(struct verified_reader *b, struct str line) {
  json_auto_t *record = record_line_read(line, NULL);
  const json_t *seq = json_object_get(record, "seq");
  if (json_is_integer(seq) && json_integer_value(seq) != (json_int_t)b->records + 1) {
    char what[160];
    print_into(what, sizeof what, "%.159s", b->damage.text);
    err_set(&b->damage, ERR_CORRUPT, "%s; its seq is %" JSON_INTEGER_FORMAT ", not %llu", what,
            json_integer_value(seq), (unsigned long long)b->records + 1);
  }
  b->state = VERIFIED_DAMAGED;
  b->line = line;
  return false;
}

/* Reads the next line and checks its hash and form. */
static bool next_line(struct verified_reader *b) {
  struct str line;
  if (b->state != VERIFIED_READING)
    return false;
  if (!reader_next(&b->reader, &line)) {
    if (b->reader.error != 0)
      err_set_errno(&b->damage, b->reader.error, "it cannot be read");
    else if (b->reader.too_long)
      err_set(&b->damage, ERR_CORRUPT, "it is longer than %u bytes, the limit of a line",
              LIMIT_LOG_LINE_BYTES);
    b->state = b->reader.error != 0 || b->reader.too_long ? VERIFIED_DAMAGED : VERIFIED_END;
    b->line = (struct str){"", 0};
    return false;
  }
  if (!b->reader.whole) {
    b->state = VERIFIED_TORN;
    b->torn_bytes = line.n;
    return false;
  }
  if (!record_line_check_hash(line, b->hash, &b->damage))
    return damaged(b, line);
  b->line = line;
  return true;
}

json_t *verified_next(struct verified_reader *b) {
  json_t *record = next_line(b) ? record_line_record(b->line, &b->damage) : NULL;
  if (record == NULL) {
    if (b->state == VERIFIED_READING)
      (void)damaged(b, b->line);
    return NULL;
  }
  if ((uint64_t)json_int_at(record, "seq") != b->records + 1) {
    err_set(&b->damage, ERR_CORRUPT, "it is not the next record");
    (void)damaged(b, b->line);
    json_decref(record);
    return NULL;
  }
  b->records++;
  b->end = b->reader.offset + b->line.n + 1;
  keep_place(b, record, b->line);
  return record;
}

void verified_rest(struct verified_reader *b) {
  for (json_t *record; (record = verified_next(b)) != NULL;)
    json_decref(record);
}

bool verified_is_damaged(const struct store_ref *ref, uint64_t *left, size_t *skipped) {
  AUTO(verified_close) struct verified_reader book = {0};
  struct err err;
  uint64_t bytes;
  if (!store_bytes(ref, &bytes))
    return false;
  if (bytes > *left || !verified_open(&book, ref, false, &err)) {
    if (skipped != NULL)
      ++*skipped;
    return false;
  }
  *left -= bytes;
  verified_rest(&book);
  return book.state == VERIFIED_DAMAGED;
}

json_t *verified_next_unproven(struct verified_reader *b) {
  if (b->state != VERIFIED_DAMAGED)
    return NULL;
  for (;;) {
    struct str line = b->line;
    b->line = (struct str){NULL, 0};
    if (line.p == NULL && !reader_next(&b->reader, &line))
      return NULL;
    json_t *record = line.n > 0 ? record_line_read(line, NULL) : NULL;
    uint64_t last = b->place_count > 0 ? b->places[b->place_count - 1].seq : b->records;
    json_int_t seq = json_int_at(record, "seq");
    if (record != NULL && seq > 0 && (uint64_t)seq > last) {
      keep_place(b, record, line);
      return record;
    }
    json_decref(record);
  }
}

bool verified_again(struct verified_reader *b) {
  if (!reader_again(&b->reader))
    return false;
  if (b->state != VERIFIED_DAMAGED)
    b->state = VERIFIED_READING;
  return true;
}

static const struct verified_reader_place *find_place(const struct verified_reader *b,
                                                      uint64_t seq) {
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
static bool verified_reread(const struct verified_reader *b, uint64_t seq, struct buf *memory,
                            struct str *line) {
  const struct verified_reader_place *place = find_place(b, seq);
  if (place == NULL)
    return false;
  *line = (struct str){reader_held(&b->reader, place->offset, place->bytes), place->bytes};
  if (line->p != NULL)
    return true;
  buf_reserve(memory, place->bytes);
  line->p = memory->p;
  return reader_read_all(&b->reader, place->offset, memory->p, place->bytes);
}

json_t *verified_get(const struct verified_reader *b, uint64_t seq, struct err *err) {
  buf_auto_t memory = {0};
  struct str line;
  if (find_place(b, seq) == NULL) {
    err_set(err, ERR_CORRUPT, "record %llu is not in the log", (unsigned long long)seq);
    return NULL;
  }
  json_t *record = verified_reread(b, seq, &memory, &line) ? record_line_read(line, NULL) : NULL;
  if (record == NULL)
    err_set(err, ERR_CORRUPT, "record %llu cannot be read again", (unsigned long long)seq);
  return record;
}

static json_t *recall_record(void *ctx, uint64_t seq, struct err *err) {
  return verified_get(ctx, seq, err);
}

struct resolve verified_recall(const struct verified_reader *b) {
  return (struct resolve){(void *)b, recall_record, &b->store};
}

bool verified_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct verified_reader *b = ctx;
  return store_blob_get(&b->store, sha256, out, err);
}

bool verified_has_text(const struct verified_reader *b, const char *place, struct err *err) {
  const struct resolve recall = verified_recall(b);
  return resolve_has(&recall, place, err);
}

bool verified_owned(const struct verified_reader *b) {
  return reader_is_owned(&b->reader);
}

void verified_close(struct verified_reader *b) {
  if (b->open)
    reader_close(&b->reader);
  free(b->places);
  *b = (struct verified_reader){0};
}
