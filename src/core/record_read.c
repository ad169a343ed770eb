/* Reads records back: from JSON, and from its text. */
#include "base/log.h"
#include "core/record.h"
#include "core/record_key.h"
#include "format/json_object.h"
#include "schema/text.h"
#include "json/scan.h"

#include <assert.h>
#include <string.h>

static void put_json(struct record_draft *d, enum member key, json_t *value) {
  if (record_key_is_tree(key))
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

/* Copies the members that only a stage or check record has. */
static json_t *own_members(const json_t *record) {
  json_t *body = json_object(), *source = (json_t *)record;
  for (void *at = json_object_iter(source); at; at = json_object_iter_next(source, at))
    if (!is_common((struct str){json_object_iter_key(at), json_object_iter_key_len(at)}))
      json_object_setn_new_nocheck(body, json_object_iter_key(at), json_object_iter_key_len(at),
                                   json_incref(json_object_iter_value(at)));
  return body;
}

void record_read(struct record_draft *d, const json_t *json) {
  struct record *r = &d->record;
  *r = (struct record){.version = json_integer_value(json_at(json, "v")),
                       .seq = (uint64_t)json_integer_value(json_at(json, "seq")),
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
  r->body = own_members(json);
}

/* --- its text --- */

json_t *record_raw_tree(struct str text) {
  struct jscan js;
  struct jscan_result found;
  jscan_init(&js, text.p, text.n);
  bool ok = jscan_value(&js, 0, &found) == JSCAN_OK;
  jscan_deinit(&js);
  return ok ? found.value : NULL;
}

/* Returns the member's value, NULL if it is not JSON. */
static json_t *member_tree(const struct schema_member *m) {
  size_t quote = m->type == JSON_STRING; /* one in front of the value, one behind it */
  return record_raw_tree((struct str){m->value.p - quote, m->value.n + 2 * quote});
}

/* Returns the decoded text, NUL-terminated. There is room for it. */
static struct str member_text(const struct schema_member *m, struct buf *texts) {
  size_t from = texts->n;
  if (m->type != JSON_STRING)
    return STR("");
  if (m->escaped)
    jscan_decode(m->value, texts);
  else
    buf_append(texts, m->value.p, m->value.n);
  struct str text = {texts->p + from, texts->n - from};
  buf_putc(texts, '\0');
  return text;
}

static bool record_put_member(struct record_draft *d, enum member key,
                              const struct schema_member *m, struct buf *texts) {
  long number;
  if (!record_key_is_tree(key) && m->type == JSON_STRING)
    record_put_text(d, key, member_text(m, texts));
  else if (!record_key_is_tree(key) && m->type == JSON_INTEGER && str_to_long(m->value, &number))
    record_put_number(d, key, number);
  else if (m->type == JSON_OBJECT || m->type == JSON_ARRAY)
    record_put_raw(d, key, m->value);
  else {
    json_t *value = member_tree(m);
    if (value == NULL)
      return false;
    put_json(d, key, value);
    json_decref(value);
  }
  return true;
}

static int64_t member_number(const struct schema_member *m) {
  long number;
  return m->type == JSON_INTEGER && str_to_long(m->value, &number) ? number : 0;
}

/* Reads v, seq, ts and type. */
static void read_common(struct record *r, const struct schema_member *m, struct buf *texts) {
  if (IS(m->key, "v"))
    r->version = member_number(m);
  else if (IS(m->key, "seq"))
    r->seq = (uint64_t)member_number(m);
  else if (IS(m->key, "ts"))
    r->ts = member_text(m, texts);
  else if (IS(m->key, "type"))
    r->type_name = member_text(m, texts);
}

bool record_read_members(struct record_draft *d, const struct schema_member *members, size_t n,
                         const struct record_workflow *known, struct buf *texts) {
  struct record *r = &d->record;
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++)
    bytes += members[i].value.n + 32; /* more than decoding adds */
  assert(texts->n == 0 && texts->max == 0);
  buf_reserve(texts, bytes); /* so that texts do not move */
  *r = (struct record){.ts = STR(""), .type_name = STR(""), .members = d->members};
  for (size_t i = 0; i < n; i++)
    if (members[i].key.n <= COMMON_BYTES)
      read_common(r, &members[i], texts);
  r->type = record_type_named(r->type_name);
  if (r->type < RECORD_TYPE_COUNT)
    r->type_name = str_from(record_type_name(r->type));
  bool whole = r->type == RECORD_STAGE || r->type == RECORD_CHECK;
  r->body = whole ? json_object() : NULL;
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) {
    const struct schema_member *m = &members[i];
    enum member key = record_key_of(m->key.p, m->key.n);
    if (whole && !is_common(m->key))
      ok = json_object_setn_new_nocheck(r->body, m->key.p, m->key.n, member_tree(m)) == 0;
    else if (key == MEMBER_WORKFLOW && known != NULL && str_eq(m->value, known->text))
      put_json(d, key, known->tree);
    else if (key < MEMBER_COUNT && (!whole || key == MEMBER_TURN))
      ok = record_put_member(d, key, m, texts);
  }
  return ok;
}

/* --- references --- */

/* Calls `fn` if the value is {"ref": place}. */
static bool tell_ref(const json_t *value, size_t element, record_ref_fn fn, void *ctx) {
  const char *place = json_string_value(json_at(value, "ref"));
  return place == NULL || fn(ctx, element, place);
}

static size_t raw_space(struct str text, size_t at) {
  while (at < text.n && memchr(" \t\r\n", text.p[at], 4) != NULL)
    at++;
  return at;
}

/* Crosses the texts of a list, which are most of it, and builds only the other elements. */
static bool each_raw_ref(struct str list, record_ref_fn fn, void *ctx) {
  struct jscan js;
  struct jscan_result found;
  bool ok = true, escaped;
  size_t at = raw_space(list, 1);
  jscan_init(&js, list.p, list.n);
  for (size_t i = 0; ok && at > 0 && at < list.n && list.p[at] != ']'; i++) {
    if (list.p[at] == '"') {
      at = jscan_cross(list.p, list.n, at + 1, &escaped);
    } else if (jscan_value(&js, at, &found) == JSCAN_OK) {
      ok = tell_ref(found.value, i, fn, ctx);
      json_decref(found.value);
      at = found.end;
    } else {
      break;
    }
    at = raw_space(list, at);
    if (at < list.n && list.p[at] == ',')
      at = raw_space(list, at + 1);
  }
  jscan_deinit(&js);
  return ok;
}

bool record_each_ref(const struct record *r, enum member key, record_ref_fn fn, void *ctx) {
  const struct record_member *m = record_get(r, key);
  size_t i;
  json_t *element;
  if (m != NULL && m->kind == RECORD_RAW)
    return m->is.text.p[0] != '[' || each_raw_ref(m->is.text, fn, ctx);
  json_array_foreach(record_tree(r, key), i, element) {
    if (!tell_ref(element, i, fn, ctx))
      return false;
  }
  return true;
}
