/* Draws what a person is to label, and leaves out what is labelled. */
#include "audit/label_queue.h"

#include <string.h>

static void queue_key(struct buf *key, const struct label *label) {
  buf_printf(key, "%s %ld %s", label->session, label->turn, label->stratum);
}

static void queue_on_known(void *ctx, const struct label *label) {
  struct label_queue *q = ctx;
  buf_auto_t key = {0};
  if (strcmp(label->by, q->by) != 0 || label->population == 0)
    return;
  queue_key(&key, label);
  map_put(&q->done, &q->arena, buf_view(&key), 1);
}

bool label_queue_draw(struct label_queue *q, const struct store *store, struct aggregate *aggregate,
                      struct err *err) {
  struct store beside;
  uint32_t second = DICTIONARY_NONE;
  q->again.names = &aggregate->names;
  if (!q->even && !store_is_address(store->where) && /* nothing is judged again there */
      (!rejudged_store(store, &beside, err) || !rejudged_read(&q->again, &beside, err)))
    return false;
  if ((!q->even && !rejudged_second(&q->again, q->second, &second, err)) ||
      !sample_init(&q->draw, aggregate, q->even ? q->keys : "rule,method,basis", q->want,
                   q->seed != NULL ? q->seed : "", err))
    return false;
  q->draw.again = q->even ? NULL : &q->again;
  q->draw.second = second;
  return store_each(store, &q->draw, sample_read, err) && sample_end(&q->draw, err) &&
         labels_read(store, queue_on_known, q, err);
}

void label_queue_label(const struct label_queue *q, size_t i, long rule, struct label *out) {
  const struct sample_turn *turn = &q->draw.turns[i];
  buf_auto_t stratum = {.max = LABEL_STRATUM_BYTES - 1};
  *out = (struct label){.turn = turn->turn, .rule = rule};
  memcpy(out->session, turn->session, sizeof out->session);
  print_into(out->by, sizeof out->by, "%s", q->by);
  out->population = sample_stratum(&q->draw, turn, &stratum);
  print_into(out->stratum, sizeof out->stratum, "%s", buf_c(&stratum));
}

/* Labels of another sample have other weights: only those of this stratum count. */
bool label_queue_has(const struct label_queue *q, size_t i) {
  struct label label;
  buf_auto_t key = {0};
  uint32_t value;
  label_queue_label(q, i, 0, &label);
  queue_key(&key, &label);
  return map_get(&q->done, buf_view(&key), &value);
}

bool label_queue_case(const struct store *store, const char *session, long turn,
                      struct rejudge_case **out, struct err *err) {
  const struct rejudge_as as = {.max_reasks = -1};
  struct store_ref ref;
  store_ref(store, session, &ref);
  struct rejudge_reading *reading = rejudge_open(&ref, &turn, 1, &as, err);
  bool ok = reading != NULL && rejudge_next(reading, out, err);
  rejudge_close(reading);
  return ok;
}

void label_queue_deinit(struct label_queue *q) {
  sample_deinit(&q->draw);
  rejudged_deinit(&q->again);
  map_deinit(&q->done);
  arena_deinit(&q->arena);
}
