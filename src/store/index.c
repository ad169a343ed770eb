/* Reads the index of a folder of logs, and says which of its rows are still valid. */
#include "store/index_file.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/backend.h"

#include <assert.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- helpers --- */

uint64_t index_sum(uint64_t sum, const void *bytes, size_t n) {
  const unsigned char *p = bytes;
  for (; n > 0;) {
    uint64_t word = 0;
    size_t part = n < sizeof word ? n : sizeof word;
    memcpy(&word, p, part);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
    p += part;
    n -= part;
  }
  return sum;
}

bool index_bits(const char *id, uint64_t out[2]) {
  size_t digits = 0;
  out[0] = out[1] = 0;
  for (size_t i = 0; i < STORE_ID_BYTES - 1; i++) {
    char c = id[i];
    if (c == '-' && (i == 8 || i == 13 || i == 18 || i == 23))
      continue;
    bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && !(c >= 'a' && c <= 'f'))
      return false;
    uint64_t *half = &out[digits++ / 16];
    *half = *half << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
  }
  return digits == 32 && id[STORE_ID_BYTES - 1] == '\0';
}

int index_compare(const uint64_t a[2], const uint64_t b[2]) {
  int i = a[0] == b[0];
  return a[i] < b[i] ? -1 : a[i] > b[i];
}

bool index_stat(int dir, const char *id, uint64_t *bytes, int64_t *time_ns) {
  char name[STORE_ID_BYTES + 8];
  struct stat st;
  memcpy(name, id, STORE_ID_BYTES - 1);
  memcpy(name + STORE_ID_BYTES - 1, ".ndjson", sizeof ".ndjson");
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
    return false;
  *bytes = (uint64_t)st.st_size;
  *time_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
  return true;
}

/* --- reading --- */

static bool read_whole(int fd, struct buf *out) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
      st.st_size < (off_t)sizeof(struct index_head) || st.st_size > (off_t)LIMIT_INDEX_BYTES)
    return false;
  size_t size = (size_t)st.st_size;
  buf_reserve(out, size);
  while (out->n < size) {
    ssize_t n = pread(fd, out->p + out->n, size - out->n, (off_t)out->n);
    if (n <= 0)
      return false;
    out->n += (size_t)n;
  }
  return true;
}

static bool section_fits(const struct index_head *head, enum index_section i, size_t size) {
  uint64_t at = head->sections[i].at, bytes = head->sections[i].bytes;
  return at % sizeof(uint64_t) == 0 && at <= size && bytes <= size - at;
}

/* Checks every offset and the order of the rows in advance: later nothing is checked. */
static bool rows_are_sound(const struct index *x) {
  if (x->texts_bytes == 0 || x->texts[x->texts_bytes - 1] != '\0')
    return false;
  for (size_t i = 0; i < x->count; i++) {
    const struct index_row *r = &x->rows[i];
    if (r->status >= x->texts_bytes || r->workflow >= x->texts_bytes ||
        r->providers >= x->texts_bytes || (i > 0 && index_compare(r[-1].id, r->id) >= 0))
      return false;
  }
  return true;
}

static bool index_take(struct index *x) {
  struct index_head head;
  memcpy(&head, x->file.p, sizeof head);
  if (memcmp(head.magic, index_magic, sizeof head.magic) != 0 || head.order != INDEX_ORDER ||
      head.version != INDEX_VERSION || head.zero != 0 ||
      head.row_bytes != sizeof(struct index_row) || !section_fits(&head, SECTION_ROWS, x->file.n) ||
      !section_fits(&head, SECTION_TEXTS, x->file.n) ||
      head.sections[SECTION_ROWS].bytes % sizeof(struct index_row) != 0)
    return false;
  size_t summed = offsetof(struct index_head, sections);
  if (index_sum(0, x->file.p + summed, x->file.n - summed) != head.sum)
    return false;
  const char *rows = x->file.p + head.sections[SECTION_ROWS].at;
  x->rows = (const void *)rows;
  x->count = head.sections[SECTION_ROWS].bytes / sizeof(struct index_row);
  x->texts = x->file.p + head.sections[SECTION_TEXTS].at;
  x->texts_bytes = head.sections[SECTION_TEXTS].bytes;
  return rows_are_sound(x);
}

struct index *index_open(const struct store *store) {
  struct index *x = xcalloc(1, sizeof *x);
  x->dir = -1;
  if (store->ops != &files_ops)
    return x;
  x->dir = open(store->where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int fd =
      x->dir < 0 ? -1 : openat(x->dir, INDEX_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  bool ok = fd >= 0 && read_whole(fd, &x->file) && index_take(x);
  if (fd >= 0)
    close(fd);
  if (!ok) {
    x->count = 0;
    buf_deinit(&x->file);
  }
  return x;
}

void index_close(struct index *x) {
  if (x == NULL)
    return;
  if (x->dir >= 0)
    close(x->dir);
  buf_deinit(&x->file);
  free(x);
}

const struct index_row *index_find(const struct index *x, const uint64_t id[2]) {
  size_t low = 0, high = x->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (index_compare(x->rows[middle].id, id) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < x->count && index_compare(x->rows[low].id, id) == 0 ? &x->rows[low] : NULL;
}

const struct index_row *index_row(const struct index *x, const char *id) {
  uint64_t bits[2], bytes;
  int64_t time_ns;
  const struct index_row *row = index_bits(id, bits) ? index_find(x, bits) : NULL;
  if (row == NULL || !index_stat(x->dir, id, &bytes, &time_ns) || row->bytes != bytes ||
      row->time_ns != time_ns)
    return NULL;
  return row;
}

const char *index_text(const struct index *x, uint32_t at) {
  assert(at < x->texts_bytes);
  return x->texts + at;
}
