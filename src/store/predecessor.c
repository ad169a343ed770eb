/* Says how sessions stand for those that are to begin after them. */
#include "store/predecessor.h"

#include "format/json_object.h"

#include <string.h>

enum predecessor predecessor_of(const struct summary *b, bool any_end) {
  if (strcmp(b->status, "complete") == 0)
    return PREDECESSOR_DONE;
  if (summary_is_over(b))
    return any_end ? PREDECESSOR_DONE : PREDECESSOR_NEVER;
  bool outcome = str_among(str_from(b->stop_reason), "rule_no_match max_movements failed");
  return any_end && outcome ? PREDECESSOR_DONE : PREDECESSOR_PENDING;
}

enum predecessor predecessor_read(const struct store *store, const char *id, bool any_end,
                                  char status[sizeof((struct summary *)NULL)->status]) {
  struct store_ref ref;
  struct summary b;
  struct err err;
  store_ref(store, id, &ref);
  if (summary_read(&b, &ref, &err)) {
    enum predecessor stands = predecessor_of(&b, any_end);
    memcpy(status, b.status, sizeof b.status);
    summary_deinit(&b);
    return stands;
  }
  bool gone = err.code == ERR_NOT_FOUND && !store_is_there(&ref);
  print_into(status, sizeof b.status, "%s", gone ? "removed" : "");
  return gone ? PREDECESSOR_NEVER : PREDECESSOR_PENDING;
}

void predecessor_why(const char *id, const char *status, struct buf *why) {
  bool gone = strcmp(status, "removed") == 0;
  buf_printf(why, "it was to begin after %.40s, which %s%s; segue resume --now begins it without",
             id, gone ? "was removed" : "ended: ", gone ? "" : status);
}

enum predecessor predecessors_read(const struct store *store, const struct summary *b,
                                   struct buf *why) {
  enum predecessor all = PREDECESSOR_DONE;
  if (!summary_waits(b))
    return all;
  char status[sizeof b->status];
  JSON_EACH(b->after, i, item) {
    const char *id = json_string_value(item);
    bool self = strcmp(id, b->session) == 0; /* only a forged log says that */
    enum predecessor one =
        self ? PREDECESSOR_PENDING : predecessor_read(store, id, b->after_any_end, status);
    if (one == PREDECESSOR_NEVER) {
      predecessor_why(id, status, why);
      return one;
    }
    all = one == PREDECESSOR_PENDING ? one : all;
  }
  return all;
}

json_t *predecessors_find(const struct store *store, const json_t *words, struct err *err) {
  json_t *ids = json_array();
  JSON_EACH(words, i, item) {
    const char *word = json_is_string(item) ? json_string_value(item) : "";
    struct store_ref ref;
    char id[STORE_ID_BYTES] = "";
    bool named = strspn(word, "0123456789abcdef-") == strlen(word) || strcmp(word, "last") == 0;
    err_set(err, ERR_NOT_FOUND, "there is no such session");
    if (!named || word[0] == '\0' || !store_find(store, word, &ref, err) || !store_is_there(&ref)) {
      err_wrap(err, "after \"%.40s\"", word);
      json_decref(ids);
      return NULL;
    }
    store_ref_id(&ref, id);
    json_array_append_new(ids, json_string(id));
  }
  return ids;
}
