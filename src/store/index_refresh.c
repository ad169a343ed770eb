/* Writes the index of a folder of logs: keeps valid rows, and reads the others from their logs. */
#include "store/index_file.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "format/json_object.h"
#include "judge/stage.h"
#include "store/brief.h"
#include "store/files_internal.h"
#include "store/reader.h"
#include "json/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct making {
  const struct store *store;
  struct index *old;
  struct index_row *rows;
  size_t count;
  struct buf texts;
  struct map places; /* where each text is */
  struct arena arena;
  bool changed, unsealed;
};

static uint32_t making_text(struct making *m, struct str text) {
  uint32_t at = (uint32_t)m->texts.n;
  if (map_add(&m->places, &m->arena, text, &at)) {
    buf_str(&m->texts, text);
    buf_putc(&m->texts, '\0');
  }
  return at;
}

/* --- one log --- */

static bool has_line(const struct buf *names, struct str name) {
  struct str rest = buf_view(names);
  while (rest.n > 0)
    if (str_eq(str_next_line(&rest), name))
      return true;
  return false;
}

/* Reads a name, which has no escapes; "": the record has no such member. */
static struct str text_of(struct str line, const char *member) {
  struct pull at = pull_of(line);
  struct str key, text = {0}, found = STR("");
  if (pull_open(&at, '{'))
    while (pull_key(&at, &key)) {
      if (!str_eq_c(key, member))
        pull_skip(&at);
      else if (pull_text(&at, &text))
        found = text;
    }
  return at.bad ? STR("") : found;
}

/* Reads which providers were called and how judgments were decided, only from lines that can say
 * so. Returns false at a method that this program does not know. */
static bool read_details(const struct store_ref *ref, struct buf *providers, uint16_t *methods) {
  struct log_reader r;
  struct str line;
  struct err err;
  bool known = true;
  if (!reader_open(&r, ref, &err))
    return false;
  while (reader_next(&r, &line) && r.whole) {
    bool judged = str_has(line, "\"type\":\"judgment\"");
    if (!judged && !str_has(line, "\"type\":\"call_start\""))
      continue;
    struct str name = text_of(line, judged ? "method" : "provider");
    enum judge_stage stage;
    if (judged && name.n > 0 && judge_stage_from_name(name, &stage))
      *methods = (uint16_t)(*methods | 1u << stage);
    else if (judged && name.n > 0)
      known = false;
    else if (!judged && name.n > 0 && !has_line(providers, name))
      buf_printf(providers, STR_FMT "\n", STR_ARG(name));
  }
  known = known && !r.too_long && r.error == 0;
  reader_close(&r);
  return known;
}

static bool is_for_good(const char *status) {
  static const char *const ends[] = {"complete", "abort", "cancelled"};
  for (size_t i = 0; i < ARRAY_LEN(ends); i++)
    if (strcmp(status, ends[i]) == 0)
      return true;
  return false;
}

static void take_use(struct index_row *row, const struct brief *b) {
  row->turns = b->turns > 0 ? (uint32_t)b->turns : 0;
  row->tokens = json_integer_value(json_at(b->spent, "input")) +
                json_integer_value(json_at(b->spent, "output"));
  row->cost_usd = json_number_value(json_at(b->spent, "cost_usd"));
}

static bool read_row(struct making *m, const char *id, struct index_row *row) {
  struct store_ref ref;
  struct brief b;
  struct err err;
  struct buf providers = {0};
  store_ref(m->store, id, &ref);
  if (!brief_read(&b, &ref, &err))
    return false;
  bool ok = record_time_parse(b.started, &row->started_ms) &&
            record_time_parse(b.updated, &row->updated_ms) &&
            read_details(&ref, &providers, &row->methods) &&
            sscanf(b.hash, "%16" SCNx64, &row->head) == 1;
  if (strcmp(b.status, "running") != 0)
    row->flags |= INDEX_OVER;
  if (is_for_good(b.status))
    row->flags |= INDEX_ENDED;
  if (brief_goes_on(&b))
    row->flags |= INDEX_GOES_ON;
  if (json_array_size(b.questions) > 0)
    row->flags |= INDEX_ASKS;
  row->seq = b.seq;
  take_use(row, &b);
  row->status = making_text(m, str_from(b.status));
  row->workflow = making_text(m, str_from(b.workflow));
  row->providers = making_text(m, buf_view(&providers));
  brief_deinit(&b);
  buf_deinit(&providers);
  return ok;
}

static void keep_row(struct making *m, const struct index_row *old, struct index_row *row) {
  *row = *old;
  row->status = making_text(m, str_from(index_text(m->old, old->status)));
  row->workflow = making_text(m, str_from(index_text(m->old, old->workflow)));
  row->providers = making_text(m, str_from(index_text(m->old, old->providers)));
}

/* --- all logs --- */

static void making_add(struct making *m, const char *id, size_t *budget, bool *more) {
  struct index_row row = {0};
  if (!index_bits(id, row.id) || !index_stat(m->old->dir, id, &row.bytes, &row.time_ns))
    return; /* stat comes before reading, so that a later append makes the row outdated */
  const struct index_row *old = index_find(m->old, row.id);
  if (old != NULL && old->bytes == row.bytes && old->time_ns == row.time_ns) {
    keep_row(m, old, &row);
  } else if (row.bytes == 0) {
    return;
  } else if (*budget == 0) {
    *more = true;
    return;
  } else {
    (*budget)--;
    m->changed = true;
    if (!read_row(m, id, &row))
      return;
  }
  m->unsealed = m->unsealed || ((row.flags & INDEX_OVER) && !(row.flags & INDEX_SEALED));
  m->rows[m->count++] = row;
}

static void mark_sealed(void *ctx, const struct ledger_entry *entry) {
  const struct index *x = ctx;
  uint64_t id[2], head;
  struct index_row *row =
      index_bits(entry->session, id) ? (struct index_row *)index_find(x, id) : NULL;
  if (row != NULL && row->seq == entry->seq && sscanf(entry->hash, "%16" SCNx64, &head) == 1 &&
      head == row->head)
    row->flags |= INDEX_SEALED;
}

static void making_seal(struct making *m) {
  struct index now = {.rows = m->rows, .count = m->count};
  struct ledger_end end;
  struct err err;
  if (!ledger_read(m->store, mark_sealed, &now, &end, &err))
    log_warn("%s", err.text); /* then the next start reads the ledger itself */
}

static bool making_write(const struct making *m) {
  size_t rows_bytes = m->count * sizeof *m->rows, summed = offsetof(struct index_head, sections);
  struct index_head head = {.order = INDEX_ORDER,
                            .version = INDEX_VERSION,
                            .row_bytes = sizeof(struct index_row),
                            .sections = {[SECTION_ROWS] = {sizeof head, rows_bytes},
                                         [SECTION_TEXTS] = {sizeof head + rows_bytes, m->texts.n}}};
  memcpy(head.magic, index_magic, sizeof head.magic);
  head.sum = index_sum(0, (const char *)&head + summed, sizeof head - summed);
  head.sum = index_sum(head.sum, m->rows, rows_bytes);
  head.sum = index_sum(head.sum, m->texts.p, m->texts.n);
  int fd = files_fresh_open(m->old->dir, INDEX_NAME);
  if (fd < 0)
    return false;
  bool whole = files_write_all(fd, (const char *)&head, sizeof head, 0) &&
               files_write_all(fd, (const char *)m->rows, rows_bytes, sizeof head) &&
               files_write_all(fd, m->texts.p, m->texts.n, sizeof head + rows_bytes);
  return files_fresh_put(m->old->dir, INDEX_NAME, fd, whole);
}

void index_refresh(const struct store *store, size_t budget, bool *more) {
  struct store_id *ids = NULL;
  size_t count = 0;
  struct err err;
  *more = false;
  if (store->ops != &files_ops || !store_list(store, &ids, &count, &err) ||
      count < LIMIT_INDEX_LEAST_COUNT) {
    free(ids);
    return;
  }
  struct making m = {.store = store, .old = index_open(store)};
  m.rows = xmalloc(count * sizeof *m.rows);
  (void)making_text(&m, STR("")); /* so that there is at least one */
  for (size_t i = count; i-- > 0;)
    making_add(&m, ids[i].id, &budget, more);
  free(ids);
  m.changed = m.changed || m.count != m.old->count;
  if (m.unsealed && !*more)
    making_seal(&m);
  if (m.changed || m.unsealed)
    (void)making_write(&m); /* if it fails, everything is read as before */
  index_close(m.old);
  free(m.rows);
  buf_deinit(&m.texts);
  map_deinit(&m.places);
  arena_deinit(&m.arena);
}
