/* Searches all texts of a session for a text. */
#include "view/search.h"

#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

enum { AROUND_BYTES = 80, NEEDLE_BYTES = 400, HITS_A_TEXT = 5 };

struct finding {
  struct view_search *found;
  const struct verified_reader *book;
  const struct verified_reader_place *place;
  const json_t *record;
  char needle[NEEDLE_BYTES + 1];
  size_t n;
  struct buf pointer;
};

/* Finds the longest piece of the needle that occurs unchanged in a line of JSON. Each escape of
 * json_write begins with one of four bytes: if the needle has one, nothing beyond ASCII is used. */
static void plain_piece(const char *needle, char piece[NEEDLE_BYTES + 1]) {
  size_t best = 0, best_n = 0, from = 0;
  unsigned most = strpbrk(needle, "\xC2\xD8\xE2\xEF") != NULL ? 0x7E : 0xFF;
  for (size_t i = 0;; i++) {
    unsigned char c = (unsigned char)needle[i];
    if (c >= 0x20 && c != '"' && c != '\\' && c != '/' && c != 0x7F && c <= most)
      continue;
    if (i - from > best_n) {
      best = from;
      best_n = i - from;
    }
    from = i + 1;
    if (c == '\0')
      break;
  }
  memcpy(piece, needle + best, best_n);
  piece[best_n] = '\0';
}

/* Returns a piece of a text that begins and ends between characters, without line breaks. */
static struct str excerpt(struct view_search *found, const char *p, size_t from, size_t to) {
  while (from < to && ((unsigned char)p[from] & 0xC0) == 0x80)
    from++;
  char *copy = arena_strndup(&found->arena, p + from, to - from);
  size_t n = utf8_floor(copy, to - from);
  for (size_t i = 0; i < n; i++)
    if (copy[i] == '\n' || copy[i] == '\r' || copy[i] == '\t' || copy[i] == '\0')
      copy[i] = ' ';
  return (struct str){copy, n};
}

static void keep_hit(struct finding *f, const char *text, size_t text_n, size_t at) {
  struct view_search *found = f->found;
  if (found->count == found->max) {
    found->more = true;
    return;
  }
  size_t end = at + f->n;
  size_t until = text_n - end > AROUND_BYTES ? end + AROUND_BYTES : text_n;
  found->hits[found->count++] = (struct view_hit){
      .seq = f->place->seq,
      .turn = f->place->turn,
      .type = arena_str(&found->arena, json_view_at(f->record, "type")),
      .place = arena_str(&found->arena, buf_view(&f->pointer)),
      .offset = at,
      .before = excerpt(found, text, at > AROUND_BYTES ? at - AROUND_BYTES : 0, at),
      .that = excerpt(found, text, at, end),
      .after = excerpt(found, text, end, until)};
}

static bool has_another(const char *from, const char *end, const char *needle) {
  for (; from < end; from += strlen(from) + 1)
    if (strcasestr(from, needle) != NULL)
      return true;
  return false;
}

static void find_in_text(struct finding *f, const char *text, size_t n) {
  size_t hits = 0;
  for (const char *from = text; from < text + n && hits < HITS_A_TEXT;) {
    const char *at = strcasestr(from, f->needle);
    if (at == NULL) {
      from += strlen(from) + 1; /* behind a NUL there may be more */
      continue;
    }
    keep_hit(f, text, n, (size_t)(at - text));
    hits++;
    from = at + f->n;
    if (hits == HITS_A_TEXT && !f->found->more)
      f->found->hits[f->found->count - 1].more = has_another(from, text + n, f->needle);
  }
}

static void find_in_blob(struct finding *f, const char *key, const json_t *blob) {
  buf_auto_t text = {0};
  struct err ignored;
  size_t n = strlen(key);
  if (n < 6 || strcmp(key + n - 5, "_blob") != 0 || !json_is_string(blob))
    return;
  size_t kept = f->pointer.n;
  buf_printf(&f->pointer, "/%.*s", (int)(n - 5), key);
  if (store_blob_get(&f->book->store, json_string_value(blob), &text, &ignored))
    find_in_text(f, buf_c(&text), text.n);
  f->pointer.n = kept;
  f->pointer.p[kept] = '\0';
}

static void find_in_value(struct finding *f, const json_t *value);

static void find_in_member(struct finding *f, const char *name, const json_t *value) {
  size_t kept = f->pointer.n;
  buf_printf(&f->pointer, "/%s", name);
  find_in_value(f, value);
  f->pointer.n = kept;
  f->pointer.p[kept] = '\0';
}

static void find_in_object(struct finding *f, json_t *object) {
  for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
    const char *key = json_object_iter_key(at);
    const json_t *member = json_object_iter_value(at);
    /* If there is a blob, the record itself has only a piece of its text. */
    char blob[64];
    print_into(blob, sizeof blob, "%s_blob", key);
    if (!json_is_string(json_object_get(object, blob)))
      find_in_member(f, key, member);
    find_in_blob(f, key, member);
  }
}

static void find_in_value(struct finding *f, const json_t *value) {
  char index[24];
  if (json_is_string(value))
    find_in_text(f, json_string_value(value), json_string_length(value));
  if (json_is_object(value))
    find_in_object(f, (json_t *)(uintptr_t)value);
  JSON_EACH(value, i, member) {
    print_into(index, sizeof index, "%zu", i);
    find_in_member(f, index, member);
  }
}

static bool find_in_line(struct finding *f, const char *piece, char *line, struct err *err) {
  const struct verified_reader_place *place = f->place;
  if (!reader_read_all(&f->book->reader, place->offset, line, place->bytes))
    return err_set(err, ERR_CORRUPT, "record %llu cannot be read again",
                   (unsigned long long)place->seq);
  line[place->bytes] = '\0';
  if (strcasestr(line, piece) == NULL && strstr(line, "_blob\":\"") == NULL)
    return true;
  json_auto_t *record = json_loadb(line, place->bytes, JSON_ALLOW_NUL, NULL);
  f->record = record;
  find_in_value(f, record);
  return true;
}

bool view_search_read(struct view_search *found, const struct verified_reader *book,
                      struct str needle, size_t max, struct err *err) {
  assert(found != NULL && book != NULL);
  struct finding f = {.found = found, .book = book, .n = needle.n};
  char piece[NEEDLE_BYTES + 1];
  size_t longest = 0;
  bool ok = true;
  *found = (struct view_search){.max = max};
  if (needle.n == 0 || needle.n > NEEDLE_BYTES || memchr(needle.p, '\0', needle.n) != NULL)
    return err_set(err, ERR_USAGE, "give a text to look for, of up to %d bytes", NEEDLE_BYTES);
  memcpy(f.needle, needle.p, needle.n);
  plain_piece(f.needle, piece);
  found->hits = arena_array(&found->arena, max, sizeof *found->hits);
  for (size_t i = 0; i < book->place_count; i++)
    longest = book->places[i].bytes > longest ? book->places[i].bytes : longest;
  char_auto_t *line = xmalloc(longest + 1);
  buf_puts(&f.pointer, "");
  buf_reserve(&f.pointer, 64);
  for (size_t i = 0; ok && i < book->place_count && !found->more; i++) {
    f.place = &book->places[i];
    ok = find_in_line(&f, piece, line, err);
  }
  buf_deinit(&f.pointer);
  if (!ok)
    view_search_deinit(found);
  return ok;
}

json_t *view_search_json(const struct view_search *found) {
  json_t *list = json_array();
  for (size_t i = 0; i < found->count; i++) {
    const struct view_hit *hit = &found->hits[i];
    char ref[32];
    buf_auto_t place = {0};
    print_into(ref, sizeof ref, "%llu#", (unsigned long long)hit->seq);
    buf_printf(&place, "%s" STR_FMT, ref, STR_ARG(hit->place));
    json_t *one = json_object();
    json_put(one, "seq", json_integer((json_int_t)hit->seq));
    json_put(one, "turn", hit->turn > 0 ? json_integer(hit->turn) : json_null());
    json_put(one, "type", json_text(hit->type));
    json_put(one, "ref", json_text(buf_view(&place)));
    json_put(one, "offset", json_integer((json_int_t)hit->offset));
    json_put(one, "before", json_text(hit->before));
    json_put(one, "found", json_text(hit->that));
    json_put(one, "after", json_text(hit->after));
    json_put_true(one, "more", hit->more);
    json_array_append_new(list, one);
  }
  return json_pack("{so sb}", "found", list, "more", found->more);
}

void view_search_deinit(struct view_search *found) {
  arena_deinit(&found->arena);
  *found = (struct view_search){0};
}
