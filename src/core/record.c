/* Makes, keeps, reads and writes records, each a flat list of members by number. */
#include "core/record.h"

#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "json/scan.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- names --- */

static const struct str type_names[] = {
#define TYPE_NAME(id, name) STR_INIT(name),
    RECORD_TYPES(TYPE_NAME)
#undef TYPE_NAME
};

enum { WRITTEN_BYTES = 32, KEY_SLOT_COUNT = 512 };

static const struct record_key {
  struct str name;
  char written[WRITTEN_BYTES]; /* ,"name": padded with zeros, so that it is always copied whole */
  uint8_t written_n;
  bool is_tree;
} keys[] = {
#define PLAIN_KEY(id, text) {STR_INIT(text), ",\"" text "\":", sizeof(text) + 3, false},
#define TREE_KEY(id, text)  {STR_INIT(text), ",\"" text "\":", sizeof(text) + 3, true},
    RECORD_MEMBERS(PLAIN_KEY, TREE_KEY)
#undef PLAIN_KEY
#undef TREE_KEY
};

const char *record_type_name(enum record_type type) {
  return type < RECORD_TYPE_COUNT ? type_names[type].p : "";
}

const char *record_member_name(enum member key) {
  return keys[key].name.p;
}

enum record_type record_type_named(struct str name) {
  size_t i = 0;
  while (i < RECORD_TYPE_COUNT && !str_eq(type_names[i], name))
    i++;
  return (enum record_type)i;
}

/* Maps the hash of a member's name to its number, from 1; 0 is an empty slot. */
static struct {
  pthread_once_t once;
  uint8_t slots[KEY_SLOT_COUNT];
} key_table = {.once = PTHREAD_ONCE_INIT};

static size_t key_slot(const char *name, size_t n) {
  if (n == 0)
    return 0;
  return (n * 37 + (unsigned char)name[0] * 5 + (unsigned char)name[n / 2] * 11 +
          (unsigned char)name[n - 1]) %
         KEY_SLOT_COUNT;
}

static void fill_key_table(void) {
  static_assert(MEMBER_COUNT < KEY_SLOT_COUNT / 2, "a search ends at an empty slot");
  for (size_t i = 0; i < MEMBER_COUNT; i++) {
    size_t at = key_slot(keys[i].name.p, keys[i].name.n);
    while (key_table.slots[at] != 0)
      at = (at + 1) % KEY_SLOT_COUNT;
    key_table.slots[at] = (uint8_t)(i + 1);
  }
}

/* Returns MEMBER_COUNT if no member has that name. */
static enum member record_key_of(const char *name, size_t n) {
  (void)pthread_once(&key_table.once, fill_key_table);
  for (size_t at = key_slot(name, n); key_table.slots[at] != 0; at = (at + 1) % KEY_SLOT_COUNT)
    if (str_eq(keys[key_table.slots[at] - 1].name, (struct str){name, n}))
      return (enum member)(key_table.slots[at] - 1);
  return MEMBER_COUNT;
}

/* --- times --- */

/* These tables give the digits of each number of a time, from the year to the milliseconds, and the
 * character after it. Logs hold and views read several times a turn: snprintf and sscanf would show
 * up in profiles. */
enum { TIME_NUMBERS = 7 };

static const int time_digits[TIME_NUMBERS] = {4, 2, 2, 2, 2, 2, 3};
static const char time_after[] = "--T::.Z";

void record_time(int64_t time_ms, char out[RECORD_TIME_BYTES]) {
  time_t seconds = (time_t)(time_ms / 1000);
  struct tm tm;
  gmtime_r(&seconds, &tm);
  const int numbers[] = {tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,           tm.tm_hour,
                         tm.tm_min,         tm.tm_sec,     (int)(time_ms % 1000)};
  char *at = out;
  for (size_t i = 0; i < TIME_NUMBERS; i++) {
    at += time_digits[i];
    for (int k = 1, rest = numbers[i]; k <= time_digits[i]; k++, rest /= 10)
      at[-k] = (char)('0' + rest % 10);
    *at++ = time_after[i];
  }
  *at = '\0';
}

bool record_time_parse(const char *text, int64_t *time_ms) {
  int numbers[TIME_NUMBERS];
  const char *at = text;
  if (text == NULL)
    return false;
  for (size_t i = 0; i < TIME_NUMBERS; i++) {
    numbers[i] = 0;
    for (int k = 0; k < time_digits[i]; k++, at++) {
      if (*at < '0' || *at > '9')
        return false;
      numbers[i] = numbers[i] * 10 + (*at - '0');
    }
    if (*at++ != time_after[i])
      return false;
  }
  if (*at != '\0' || numbers[0] < 1 || numbers[1] < 1 || numbers[1] > 12)
    return false;
  /* The days since 1970 in the Gregorian calendar. A year that begins in March has its odd day at
   * its end. */
  int64_t early = numbers[1] <= 2, y = numbers[0] - early, m = numbers[1] - 3 + 12 * early;
  int64_t before_1970 = 719468; /* days from March of year 0 */
  int64_t days =
      365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 - before_1970 + numbers[2] - 1;
  int64_t seconds = ((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5];
  *time_ms = seconds * 1000 + numbers[6];
  return true;
}

/* --- making --- */

void record_begin(struct record_draft *d, uint64_t seq, struct str ts, enum record_type type) {
  d->record = (struct record){.version = RECORD_VERSION,
                              .seq = seq,
                              .ts = ts,
                              .type = type,
                              .type_name = type_names[type],
                              .members = d->members};
}

static struct record_member *record_add(struct record_draft *d, enum member key,
                                        enum record_kind kind) {
  assert(d->record.count < MEMBER_COUNT);
  struct record_member *m = &d->members[d->record.count++];
  m->key = (uint8_t)key;
  m->kind = (uint8_t)kind;
  return m;
}

void record_put_number(struct record_draft *d, enum member key, int64_t number) {
  record_add(d, key, RECORD_NUMBER)->is.number = number;
}

void record_put_bool(struct record_draft *d, enum member key, bool value) {
  (void)record_add(d, key, value ? RECORD_TRUE : RECORD_FALSE);
}

void record_put_null(struct record_draft *d, enum member key) {
  (void)record_add(d, key, RECORD_NULL);
}

void record_put_word(struct record_draft *d, enum member key, const char *word) {
  record_add(d, key, RECORD_WORD)->is.text = str_from(word);
}

void record_put_text(struct record_draft *d, enum member key, struct str text) {
  record_add(d, key, RECORD_TEXT)->is.text = text;
}

void record_put_bytes(struct record_draft *d, enum member key, struct str bytes) {
  if (bytes.n == 0)
    return;
  if (utf8_valid(bytes.p, bytes.n))
    record_put_text(d, key, bytes);
  else
    record_put_tree(d, key, json_text(bytes));
}

void record_put_ref(struct record_draft *d, enum member key, const char *place) {
  record_add(d, key, RECORD_REF)->is.text = str_from(place);
}

void record_put_parts(struct record_draft *d, enum member key, const struct record_part *parts,
                      size_t n) {
  struct record_member *m = record_add(d, key, RECORD_PARTS);
  m->is.prompt.parts = parts;
  m->is.prompt.n = n;
}

void record_put_tree(struct record_draft *d, enum member key, json_t *value) {
  if (value != NULL)
    record_add(d, key, RECORD_TREE)->is.tree = value;
}

void record_put_body(struct record_draft *d, json_t *object) {
  d->record.body = object;
}

/* --- keeping --- */

static bool has_text(const struct record_member *m) {
  return m->kind == RECORD_TEXT || m->kind == RECORD_REF;
}

/* Returns the bytes of the record's parts, which come first, and of its texts, each with a NUL. */
static size_t text_bytes(const struct record *r) {
  size_t n = r->ts.n + 1 + (r->type < RECORD_TYPE_COUNT ? 0 : r->type_name.n + 1);
  for (size_t i = 0; i < r->count; i++) {
    const struct record_member *m = &r->members[i];
    if (has_text(m))
      n += m->is.text.n + 1;
    for (size_t k = 0; m->kind == RECORD_PARTS && k < m->is.prompt.n; k++)
      n += m->is.prompt.parts[k].text.n + 1 + sizeof *m->is.prompt.parts;
  }
  return n;
}

static struct str copy_text(struct str text, char **at) {
  struct str copy = {*at, text.n};
  if (text.n > 0)
    memcpy(*at, text.p, text.n);
  (*at)[text.n] = '\0';
  *at += text.n + 1;
  return copy;
}

struct record *record_keep(struct record_draft *d) {
  const struct record *from = &d->record;
  size_t members_bytes = from->count * sizeof *from->members;
  struct record *r = xmalloc(sizeof *r + members_bytes + text_bytes(from));
  struct record_member *members = (struct record_member *)(r + 1);
  *r = *from;
  r->members = members;
  if (members_bytes > 0)
    memcpy(members, d->members, members_bytes);
  struct record_part *parts = (struct record_part *)(members + from->count);
  char *at = (char *)parts;
  for (size_t i = 0; i < r->count; i++)
    if (members[i].kind == RECORD_PARTS)
      at += members[i].is.prompt.n * sizeof *parts;
  r->ts = copy_text(from->ts, &at);
  if (r->type == RECORD_TYPE_COUNT)
    r->type_name = copy_text(from->type_name, &at);
  for (size_t i = 0; i < r->count; i++) {
    struct record_member *m = &members[i];
    if (has_text(m))
      m->is.text = copy_text(m->is.text, &at);
    if (m->kind != RECORD_PARTS)
      continue;
    for (size_t k = 0; k < m->is.prompt.n; k++)
      parts[k] = (struct record_part){copy_text(m->is.prompt.parts[k].text, &at),
                                      m->is.prompt.parts[k].is_ref};
    m->is.prompt.parts = parts;
    parts += m->is.prompt.n;
  }
  return r;
}

static void let_trees_go(const struct record *r) {
  for (size_t i = 0; i < r->count; i++)
    if (r->members[i].kind == RECORD_TREE)
      json_decref(r->members[i].is.tree);
  json_decref(r->body);
}

void record_free(struct record *record) {
  if (record == NULL)
    return;
  let_trees_go(record);
  free(record);
}

/* --- looking at --- */

void record_drop(struct record_draft *d) {
  let_trees_go(&d->record);
  d->record.count = 0;
  d->record.body = NULL;
}

int64_t record_number(const struct record *r, enum member key) {
  const struct record_member *m = record_get(r, key);
  return m != NULL && m->kind == RECORD_NUMBER ? m->is.number : 0;
}

struct str record_text(const struct record *r, enum member key) {
  const struct record_member *m = record_get(r, key);
  if (m != NULL && (m->kind == RECORD_TEXT || m->kind == RECORD_WORD))
    return m->is.text;
  return m != NULL && m->kind == RECORD_TREE ? json_view(m->is.tree) : STR("");
}

const char *record_text_c(const struct record *r, enum member key) {
  return record_text(r, key).p;
}

bool record_is_number(const struct record *r, enum member key) {
  const struct record_member *m = record_get(r, key);
  return m != NULL && m->kind == RECORD_NUMBER;
}

bool record_is_true(const struct record *r, enum member key) {
  const struct record_member *m = record_get(r, key);
  return m != NULL && m->kind == RECORD_TRUE;
}

json_t *record_tree(const struct record *r, enum member key) {
  const struct record_member *m = record_get(r, key);
  return m != NULL && m->kind == RECORD_TREE ? m->is.tree : NULL;
}

bool record_ref(const struct record *r, enum member key, struct str *place) {
  const struct record_member *m = record_get(r, key);
  const json_t *ref = NULL;
  if (m != NULL && m->kind == RECORD_TREE && json_object_size(m->is.tree) == 1)
    ref = json_at(m->is.tree, "ref");
  bool is_ref = m != NULL && m->kind == RECORD_REF;
  *place = is_ref ? m->is.text : json_view(ref);
  return is_ref || json_is_string(ref);
}

bool record_part(const struct record *r, size_t k, struct str *text) {
  const struct record_member *m = record_get(r, MEMBER_PROMPT);
  *text = STR("");
  if (m != NULL && m->kind == RECORD_PARTS) {
    if (k < m->is.prompt.n && !m->is.prompt.parts[k].is_ref)
      *text = m->is.prompt.parts[k].text;
    return k < m->is.prompt.n;
  }
  if (m == NULL || m->kind != RECORD_TREE)
    return false;
  *text = json_view(json_array_get(m->is.tree, k));
  return k < json_array_size(m->is.tree);
}

/* --- as JSON --- */

static void write_ref(struct str place, struct buf *out) {
  buf_puts(out, "{\"ref\":");
  json_write_string(place, out);
  buf_putc(out, '}');
}

/* Appends a literal. There must be room for it. */
#define write_literal(out, text)                                                                   \
  (memcpy((out)->p + (out)->n, (text), sizeof(text)), (out)->n += sizeof(text) - 1)

/* Writes a text that contains nothing to escape. */
static void write_word(struct str word, struct buf *out) {
  buf_reserve(out, word.n + 3);
  char *at = out->p + out->n;
  at[0] = '"';
  memcpy(at + 1, word.p, word.n);
  at[1 + word.n] = '"';
  at[2 + word.n] = '\0';
  out->n += word.n + 2;
}

static void write_member(const struct record_member *m, struct buf *out) {
  buf_reserve(out, WRITTEN_BYTES + STR_NUMBER_BYTES);
  memcpy(out->p + out->n, keys[m->key].written, WRITTEN_BYTES);
  out->n += keys[m->key].written_n;
  switch ((enum record_kind)m->kind) {
  case RECORD_NUMBER:
    out->n += str_from_number(out->p + out->n, m->is.number);
    break;
  case RECORD_TEXT:
    json_write_string(m->is.text, out);
    break;
  case RECORD_WORD:
    write_word(m->is.text, out);
    break;
  case RECORD_TRUE:
    write_literal(out, "true");
    break;
  case RECORD_FALSE:
    write_literal(out, "false");
    break;
  case RECORD_NULL:
    write_literal(out, "null");
    break;
  case RECORD_TREE:
    json_write(m->is.tree, out);
    break;
  case RECORD_REF:
    write_ref(m->is.text, out);
    break;
  case RECORD_PARTS:
    for (size_t i = 0; i < m->is.prompt.n; i++) {
      buf_putc(out, i == 0 ? '[' : ',');
      if (m->is.prompt.parts[i].is_ref)
        write_ref(m->is.prompt.parts[i].text, out);
      else
        json_write_string(m->is.prompt.parts[i].text, out);
    }
    buf_puts(out, m->is.prompt.n > 0 ? "]" : "[]");
    break;
  }
}

void record_write(const struct record *r, struct buf *out) {
  assert(out->max == 0);
  buf_reserve(out, 64 + 2 * STR_NUMBER_BYTES);
  write_literal(out, "{\"v\":");
  out->n += str_from_number(out->p + out->n, r->version);
  write_literal(out, ",\"seq\":");
  out->n += str_from_number(out->p + out->n, (int64_t)r->seq);
  write_literal(out, ",\"ts\":");
  json_write_string(r->ts, out);
  buf_reserve(out, 64);
  write_literal(out, ",\"type\":");
  if (r->type < RECORD_TYPE_COUNT)
    write_word(r->type_name, out);
  else
    json_write_string(r->type_name, out);
  for (size_t i = 0; i < r->count; i++)
    write_member(&r->members[i], out);
  if (r->body != NULL)
    json_write_members(r->body, out);
  buf_putc(out, '}');
}

json_t *record_json(const struct record *r) {
  buf_auto_t text = {0};
  struct jscan_result found;
  record_write(r, &text);
  if (jscan_whole(buf_view(&text), &found) != JSCAN_OK) /* jansson's refuses U+0000 in names */
    BUG("a record that is not JSON");
  return found.value;
}

/* --- reading back --- */

static void put_json(struct record_draft *d, enum member key, json_t *value) {
  if (keys[key].is_tree)
    record_put_tree(d, key, json_incref(value));
  else if (json_is_integer(value))
    record_put_number(d, key, json_integer_value(value));
  else if (json_is_string(value))
    record_put_text(d, key, (struct str){json_string_value(value), json_string_length(value)});
  else if (json_is_boolean(value))
    record_put_bool(d, key, json_is_true(value));
  else if (json_is_null(value))
    record_put_null(d, key);
  else /* the log may say anything: the member is there, but nothing in it can be used */
    record_put_tree(d, key, json_incref(value));
}

void record_put_members(struct record_draft *d, const json_t *object) {
  json_t *source = (json_t *)object;
  for (void *at = json_object_iter(source); at; at = json_object_iter_next(source, at)) {
    enum member key = record_key_of(json_object_iter_key(at), json_object_iter_key_len(at));
    if (key < MEMBER_COUNT)
      put_json(d, key, json_object_iter_value(at));
  }
}

/* Compares in place: a call for each of the names would be most of the work. */
#define IS(key, literal)                                                                           \
  ((key).n == sizeof(literal) - 1 && memcmp((key).p, literal, sizeof(literal) - 1) == 0)

enum { COMMON_BYTES = 4 }; /* the length of the longest name that all records have */

static bool is_common(struct str key) {
  return IS(key, "v") || IS(key, "seq") || IS(key, "ts") || IS(key, "type") || IS(key, "turn") ||
         IS(key, "hash");
}

void record_read(struct record_draft *d, const json_t *json) {
  struct record *r = &d->record;
  *r = (struct record){.version = json_int_at(json, "v"),
                       .seq = (uint64_t)json_int_at(json, "seq"),
                       .ts = json_view(json_at(json, "ts")),
                       .type_name = json_view(json_at(json, "type")),
                       .members = d->members};
  r->type = record_type_named(r->type_name);
  if (r->type < RECORD_TYPE_COUNT)
    r->type_name = str_from(record_type_name(r->type));
  if (r->type != RECORD_STAGE && r->type != RECORD_CHECK) {
    record_put_members(d, json);
    return;
  }
  json_t *turn = json_at(json, "turn");
  if (turn != NULL)
    put_json(d, MEMBER_TURN, turn);
  json_t *body = json_object(), *source = (json_t *)json;
  for (void *at = json_object_iter(source); at; at = json_object_iter_next(source, at))
    if (!is_common((struct str){json_object_iter_key(at), json_object_iter_key_len(at)}))
      json_object_setn_new_nocheck(body, json_object_iter_key(at), json_object_iter_key_len(at),
                                   json_incref(json_object_iter_value(at)));
  r->body = body;
}

/* --- references --- */

bool record_each_ref(const struct record *r, enum member key, record_ref_fn fn, void *ctx) {
  JSON_EACH(record_tree(r, key), i, element) {
    const char *place = json_string_value(json_at(element, "ref"));
    if (!(place == NULL || fn(ctx, i, place)))
      return false;
  }
  return true;
}
