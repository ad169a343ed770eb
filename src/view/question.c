/* Looks up what belongs to a question. */
#include "view/question.h"

#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "store/reader.h"

#include <assert.h>
#include <string.h>

enum { QUESTION_TAIL_BYTES = 64 * 1024, QUESTION_TASK_BYTES = 200 };

/* Finds the movement of that name that has `of` (NULL: anything). Documents have a bounded
 * depth. */
static const json_t *movement_in(const json_t *value, struct str name, const char *of) {
  const json_t *found = NULL, *own = json_object_get(value, "name");
  if (json_is_string(own) && str_eq(json_view(own), name) &&
      (of == NULL || json_object_get(value, of) != NULL))
    return value;
  JSON_MEMBERS(value, key, inner)
    if (found == NULL)
      found = movement_in(inner, name, of);
  JSON_EACH(value, i, inner)
    if (found == NULL)
      found = movement_in(inner, name, of);
  return found;
}

/* Finds a child, whose name follows its group's. */
static const json_t *child_in(const json_t *movements, struct str name, const char *of) {
  const char *dot = memrchr(name.p, '.', name.n);
  if (dot == NULL)
    return NULL;
  struct str group = {name.p, (size_t)(dot - name.p)}, child = {dot + 1, name.n - group.n - 1};
  return movement_in(movement_in(movements, group, NULL), child, of);
}

/* Returns the first record, which holds the workflow. */
static json_t *first_record(const struct store_ref *ref) {
  AUTO(reader_close) struct log_reader r = {0};
  struct str line;
  struct err ignored;
  json_t *record = NULL;
  if (!reader_open(&r, ref, &ignored))
    return NULL;
  if (reader_next(&r, &line) && r.whole)
    record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  return record;
}

/* Takes the end of what was said last, if the line itself has it. */
static void question_take_words(json_t *item, struct str line) {
  static const char type[] = "\"type\":\"call_end\"";
  if (memmem(line.p, line.n < 128 ? line.n : 128, type, sizeof type - 1) == NULL)
    return;
  json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  struct str text = str_trim(json_view_at(record, "text"));
  if (text.n > LIMIT_ASKED_WORDS) {
    size_t left_out = text.n - LIMIT_ASKED_WORDS;
    while (left_out < text.n && ((unsigned char)text.p[left_out] & 0xC0) == 0x80)
      left_out++;
    text = (struct str){text.p + left_out, text.n - left_out};
    json_put(item, "words_cut", json_true());
  } else if (text.n > 0) {
    json_object_del(item, "words_cut");
  }
  if (text.n > 0) {
    json_put(item, "words", json_text(text));
    json_put(item, "words_turn", json_integer(json_int_at(record, "turn")));
  }
}

static void add_words(json_t *item, const struct store_ref *ref) {
  AUTO(reader_close) struct log_reader r = {0};
  struct err ignored;
  buf_auto_t tail = {0};
  if (!reader_open(&r, ref, &ignored))
    return;
  uint64_t size = reader_bytes(&r);
  size_t n = size < QUESTION_TAIL_BYTES ? (size_t)size : QUESTION_TAIL_BYTES;
  buf_reserve(&tail, n + 1);
  if (reader_read_all(&r, size - n, tail.p, n)) {
    struct str rest = {tail.p, n};
    if (n < size)
      (void)str_next_line(&rest); /* it may have begun before */
    while (rest.n > 0)
      question_take_words(item, str_next_line(&rest));
  }
}

void view_asked_add(const struct store *store, json_t *list) {
  assert(store != NULL);
  struct store_ref ref;
  JSON_EACH(list, i, item) {
    const char *id = json_string_value(json_at(item, "id"));
    if (id == NULL)
      continue;
    store_ref(store, id, &ref);
    json_auto_t *record = first_record(&ref);
    /* Names the session by its workflow and the first line of its task. */
    struct str task = str_trim(json_view_at(record, "task"));
    struct str first = str_trim(str_next_line(&task));
    if (first.n > QUESTION_TASK_BYTES)
      first.n = utf8_floor(first.p, QUESTION_TASK_BYTES);
    json_put_text(item, "task", first);
    if (json_at(item, "workflow") == NULL &&
        json_is_string(json_at(json_at(record, "workflow"), "name")))
      json_object_set(item, "workflow", json_object_get(json_at(record, "workflow"), "name"));
    struct str kind = json_view_at(item, "kind"), name = json_view_at(item, "movement");
    bool asks = str_eq_c(kind, "ask"), makes = str_eq_c(kind, "value");
    if (name.n > 0 && (asks || makes) && json_at(item, "choices") == NULL) {
      const char *of = asks ? "ask" : "structured_output";
      const json_t *movements = json_at(json_at(record, "workflow"), "movements");
      const json_t *movement = movement_in(movements, name, of);
      if (movement == NULL)
        movement = child_in(movements, name, of);
      json_t *schema = json_object_get(json_object_get(movement, of), "schema");
      if (json_is_object(schema))
        json_object_set(item, "schema", schema);
    }
    add_words(item, &ref);
  }
}
