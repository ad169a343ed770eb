/* Checks the lines of a log in several threads.
 *
 * DESIGN: pieces are numbered as they are cut, and piece n is in slot n % AHEAD_PIECE_COUNT. The
 * lock guards the reader, all numbers and the states of slots; a piece that is being read belongs
 * to the thread that cut it, and one that is ready to whoever calls ahead_next. */
#include "audit/ahead.h"

#include "base/log.h"
#include "base/sha256.h"
#include "store/line.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A log with a longer line is left to one reader: a line takes several times its size. */
enum { AHEAD_PIECE_COUNT = 4, AHEAD_LINE_BYTES = 2 * 1024 * 1024 };

enum { READ_BYTES = 128 * 1024, AHEAD_THREADS_MAX = AHEAD_PIECE_COUNT - 1 };

struct piece_line {
  size_t at, bytes; /* in the piece */
  size_t first, count;
  bool taken; /* these are its members */
};

enum piece_state { PIECE_FREE, PIECE_READING, PIECE_READY };

struct piece {
  enum piece_state state;
  struct buf bytes;
  uint64_t offset; /* in the log */
  char before[SHA256_HEX];
  struct piece_line *lines;
  struct schema_member *members;
  size_t line_count, line_room, member_count, member_room;
  size_t given; /* lines that were handed out */
};

struct ahead {
  const struct schema *schema;
  struct log_reader reader;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t threads[AHEAD_THREADS_MAX];
  size_t thread_count;
  struct schema_reader *own; /* for the caller's own checks */
  uint64_t offset;           /* start of the next piece */
  char before[SHA256_HEX];
  uint64_t cut, taken; /* pieces that were cut, and that were handed out to their end */
  bool ended, failed, stopped;
  struct piece pieces[AHEAD_PIECE_COUNT];
};

/* --- one piece --- */

static void piece_keep(struct piece *p, struct schema_reader *reader, struct str line, bool taken) {
  size_t n = 0;
  const struct schema_member *members = taken ? schema_reader_members(reader, &n) : NULL;
  if (p->line_count == p->line_room) {
    p->line_room = 2 * p->line_room + 64;
    p->lines = xrealloc(p->lines, p->line_room * sizeof *p->lines);
  }
  if (p->member_room - p->member_count < n) {
    p->member_room = 2 * p->member_room + n;
    p->members = xrealloc(p->members, p->member_room * sizeof *p->members);
  }
  p->lines[p->line_count++] = (struct piece_line){.at = (size_t)(line.p - p->bytes.p),
                                                  .bytes = line.n,
                                                  .first = p->member_count,
                                                  .count = n,
                                                  .taken = taken};
  if (n > 0)
    memcpy(p->members + p->member_count, members, n * sizeof *members);
  p->member_count += n;
}

/* Checks the lines of a piece. False: the hash of one is wrong. */
static bool piece_read(struct piece *p, struct schema_reader *reader) {
  const char *at = p->bytes.p, *end = at + p->bytes.n, *newline;
  char before[SHA256_HEX], hash[SHA256_HEX];
  struct err ignored;
  memcpy(before, p->before, SHA256_HEX);
  for (; at < end; at = newline + 1) {
    newline = memchr(at, '\n', (size_t)(end - at));
    struct str line = {at, (size_t)(newline - at)};
    if (!line_check(line, before, hash, &ignored))
      return false;
    piece_keep(p, reader, line, schema_reader_takes(reader, line));
    memcpy(before, hash, SHA256_HEX);
  }
  return true;
}

/* --- cutting --- */

/* Fills a piece with the next whole lines. False: the log has ended, or this cannot be done. */
static bool cut_lines(struct ahead *a, struct piece *p) {
  const char *newline = NULL;
  buf_clear(&p->bytes);
  while (newline == NULL) {
    if (p->bytes.n > AHEAD_LINE_BYTES)
      return false;
    buf_reserve(&p->bytes, READ_BYTES);
    ssize_t n =
        reader_read(&a->reader, a->offset + p->bytes.n, p->bytes.p + p->bytes.n, READ_BYTES);
    a->ended = n == 0 && p->bytes.n == 0;
    if (n <= 0)
      return false;
    newline = memrchr(p->bytes.p + p->bytes.n, '\n', (size_t)n);
    p->bytes.n += (size_t)n;
  }
  p->bytes.n = (size_t)(newline + 1 - p->bytes.p);
  const char *last = memrchr(p->bytes.p, '\n', p->bytes.n - 1);
  last = last != NULL ? last + 1 : p->bytes.p;
  memcpy(p->before, a->before, SHA256_HEX);
  const struct str line = {last, (size_t)(newline - last)};
  if (line_ends_well(line))
    line_hash(line, a->before);
  return line_ends_well(line);
}

/* Cuts the next piece, if there is a slot for it. Under the lock. */
static struct piece *ahead_cut(struct ahead *a) {
  struct piece *p = &a->pieces[a->cut % AHEAD_PIECE_COUNT];
  if (a->ended || a->failed || a->stopped || a->cut == a->taken + AHEAD_PIECE_COUNT)
    return NULL;
  p->offset = a->offset;
  if (!cut_lines(a, p)) {
    a->failed |= !a->ended;
    (void)pthread_cond_broadcast(&a->changed);
    return NULL;
  }
  a->offset += p->bytes.n;
  a->cut++;
  p->state = PIECE_READING;
  return p;
}

/* Reads a piece that was cut, and takes the lock again. */
static void ahead_read(struct ahead *a, struct piece *p, struct schema_reader *reader) {
  (void)pthread_mutex_unlock(&a->lock);
  bool ok = piece_read(p, reader);
  (void)pthread_mutex_lock(&a->lock);
  a->failed |= !ok;
  p->state = PIECE_READY;
  (void)pthread_cond_broadcast(&a->changed);
}

static void *ahead_main(void *arg) {
  struct ahead *a = arg;
  struct schema_reader *reader = schema_reader_new(a->schema);
  (void)pthread_mutex_lock(&a->lock);
  while (!a->ended && !a->failed && !a->stopped) {
    struct piece *p = ahead_cut(a);
    if (p != NULL)
      ahead_read(a, p, reader);
    else if (!a->ended && !a->failed)
      (void)pthread_cond_wait(&a->changed, &a->lock);
  }
  (void)pthread_mutex_unlock(&a->lock);
  schema_reader_free(reader);
  return NULL;
}

/* --- from outside --- */

struct ahead *ahead_new(const struct schema *schema, const struct store_ref *ref) {
  struct ahead *a = xcalloc(1, sizeof *a);
  struct err ignored;
  long wanted = sysconf(_SC_NPROCESSORS_ONLN) - 1;
  a->schema = schema;
  memcpy(a->before, line_first_hash, SHA256_HEX);
  if (!reader_open(&a->reader, ref, &ignored)) {
    free(a);
    return NULL;
  }
  (void)pthread_mutex_init(&a->lock, NULL);
  (void)pthread_cond_init(&a->changed, NULL);
  a->own = schema_reader_new(schema);
  if (wanted > AHEAD_THREADS_MAX)
    wanted = AHEAD_THREADS_MAX;
  do {
    if (pthread_create(&a->threads[a->thread_count], NULL, ahead_main, a) != 0)
      break;
    a->thread_count++;
  } while ((long)a->thread_count < wanted);
  if (a->thread_count > 0)
    return a;
  ahead_free(a);
  return NULL;
}

/* Waits for the next piece, and helps meanwhile. NULL: there is none. */
static struct piece *ahead_wait(struct ahead *a) {
  struct piece *p = &a->pieces[a->taken % AHEAD_PIECE_COUNT];
  (void)pthread_mutex_lock(&a->lock);
  while (!a->failed && p->state != PIECE_READY && !(a->ended && a->cut == a->taken)) {
    struct piece *next = ahead_cut(a);
    if (next != NULL)
      ahead_read(a, next, a->own);
    else if (!a->failed && p->state == PIECE_READING)
      (void)pthread_cond_wait(&a->changed, &a->lock);
  }
  bool ready = !a->failed && p->state == PIECE_READY;
  (void)pthread_mutex_unlock(&a->lock);
  return ready ? p : NULL;
}

static void ahead_done(struct ahead *a, struct piece *p) {
  p->line_count = p->member_count = p->given = 0;
  (void)pthread_mutex_lock(&a->lock);
  p->state = PIECE_FREE;
  a->taken++;
  (void)pthread_cond_broadcast(&a->changed);
  (void)pthread_mutex_unlock(&a->lock);
}

bool ahead_next(struct ahead *a, struct ahead_line *line) {
  struct piece *p = &a->pieces[a->taken % AHEAD_PIECE_COUNT];
  if (p->given > 0 && p->given == p->line_count) {
    ahead_done(a, p);
    p = &a->pieces[a->taken % AHEAD_PIECE_COUNT];
  }
  if (p->given == 0)
    p = ahead_wait(a);
  if (p == NULL)
    return false;
  const struct piece_line *l = &p->lines[p->given++];
  *line = (struct ahead_line){.text = {p->bytes.p + l->at, l->bytes},
                              .offset = p->offset + l->at,
                              .members = l->taken ? p->members + l->first : NULL,
                              .count = l->count};
  return true;
}

bool ahead_is_whole(struct ahead *a) {
  (void)pthread_mutex_lock(&a->lock); /* where one piece failed, others may still be cut */
  bool whole = a->ended && !a->failed;
  (void)pthread_mutex_unlock(&a->lock);
  return whole;
}

void ahead_free(struct ahead *a) {
  if (a == NULL)
    return;
  (void)pthread_mutex_lock(&a->lock);
  a->stopped = true;
  (void)pthread_cond_broadcast(&a->changed);
  (void)pthread_mutex_unlock(&a->lock);
  while (a->thread_count > 0)
    (void)pthread_join(a->threads[--a->thread_count], NULL);
  for (size_t i = 0; i < AHEAD_PIECE_COUNT; i++) {
    struct piece *p = &a->pieces[i];
    free(p->lines);
    free(p->members);
    buf_deinit(&p->bytes);
  }
  schema_reader_free(a->own);
  (void)pthread_cond_destroy(&a->changed);
  (void)pthread_mutex_destroy(&a->lock);
  reader_close(&a->reader);
  free(a);
}
