/* Keeps the states, the lists and the order of the daemon's sessions, and says how one stands. */
#include "daemon/entry.h"

#include "base/limits.h"
#include "base/memory.h"
#include "format/json_object.h"
#include "host/host.h"
#include "os/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- things in the order of their ids --- */

size_t id_list_before(const struct id_list *list, const char *id) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(list->items[list->first + middle], id) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void *id_list_at(const struct id_list *list, size_t i) {
  return i < list->count ? list->items[list->first + i] : NULL;
}

void *id_list_find(const struct id_list *list, const char *id) {
  void *item = id_list_at(list, id_list_before(list, id));
  return item != NULL && strcmp(item, id) == 0 ? item : NULL;
}

/* Makes room behind the last one. Moving all to the beginning pays only when at least half of the
 * room is there: then it happens once in so many removals as it moves pointers. */
static void id_list_reserve(struct id_list *list) {
  if (list->first + list->count < list->cap)
    return;
  if (list->first > 0 && list->first >= list->cap / 2) {
    memmove(list->items, list->items + list->first, list->count * sizeof *list->items);
    list->first = 0;
  } else {
    list->items = xgrow(list->items, &list->cap, list->cap + 1, sizeof *list->items);
  }
}

void id_list_add(struct id_list *list, void *item) {
  assert(id_list_find(list, item) == NULL);
  size_t i = id_list_before(list, item);
  if (list->first > 0 && i < list->count / 2) {
    list->first--;
    memmove(list->items + list->first, list->items + list->first + 1, i * sizeof *list->items);
  } else {
    id_list_reserve(list);
    void **at = list->items + list->first + i;
    memmove(at + 1, at, (list->count - i) * sizeof *list->items);
  }
  list->items[list->first + i] = item;
  list->count++;
}

void id_list_remove(struct id_list *list, const void *item) {
  size_t i = id_list_before(list, item);
  assert(id_list_at(list, i) == item);
  void **at = list->items + list->first;
  if (i < list->count / 2) {
    memmove(at + 1, at, i * sizeof *list->items);
    list->first++;
  } else {
    memmove(at + i, at + i + 1, (list->count - i - 1) * sizeof *list->items);
  }
  list->count--;
}

void id_list_deinit(struct id_list *list) {
  free(list->items);
  *list = (struct id_list){0};
}

/* --- when stopped sessions go on without an answer ---
 *
 * Nothing of them is in memory but the id and the time. The clock is checked at least every
 * LIMIT_DEADLINE_LOOK_MS, because machines sleep and clocks jump. */

static void deadlines_on_timer(uv_timer_t *timer);

static void deadlines_arm(struct deadlines *d) {
  int64_t first = INT64_MAX, now = clock_real_ms();
  for (size_t i = 0; i < d->count; i++)
    first = d->items[i].due_ms < first ? d->items[i].due_ms : first;
  if (first == INT64_MAX || uv_is_closing((uv_handle_t *)&d->timer)) {
    uv_timer_stop(&d->timer);
    return;
  }
  int64_t wait = first > now ? first - now : 0;
  if (wait > LIMIT_DEADLINE_LOOK_MS)
    wait = LIMIT_DEADLINE_LOOK_MS;
  uv_timer_start(&d->timer, deadlines_on_timer, (uint64_t)wait, 0);
}

static void deadlines_on_timer(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  struct deadlines *d = &ss->deadlines;
  int64_t now = clock_real_ms();
  for (size_t i = 0; i < d->count;) {
    if (d->items[i].due_ms > now) {
      i++;
      continue;
    }
    const struct deadline due = d->items[i];
    d->items[i] = d->items[--d->count];
    d->due(ss, due.id); /* may add another item */
  }
  deadlines_arm(d);
}

void deadlines_note(struct deadlines *d, const char *id, const struct summary *b) {
  int64_t due = b->submitted && summary_is_stopped(b) && !b->answered ? summary_due_ms(b) : 0;
  for (size_t i = 0; i < d->count; i++)
    if (strcmp(d->items[i].id, id) == 0) {
      d->items[i] = d->items[--d->count];
      break;
    }
  if (due == 0)
    return;
  d->items = xgrow(d->items, &d->cap, d->count + 1, sizeof *d->items);
  print_into(d->items[d->count].id, STORE_ID_BYTES, "%s", id);
  d->items[d->count++].due_ms = due;
  deadlines_arm(d);
}

/* --- sessions that begin after others --- */

struct predecessor_entry {
  char id[STORE_ID_BYTES]; /* first, for id_list_find */
  struct list waiting;     /* struct after_link */
  uint64_t bytes;          /* of its log at the last look */
  bool telling;            /* it stays for that long */
};

static void after_link_drop(struct id_list *all, struct after_link *link) {
  struct predecessor_entry *p = link->of;
  if (p == NULL)
    return;
  list_remove(&p->waiting, &link->in_waiting);
  link->of = NULL;
  if (p->waiting.count > 0 || p->telling)
    return;
  id_list_remove(all, p);
  free(p);
}

static void after_drop(struct daemon_entry *e) {
  for (size_t i = 0; i < e->after_count; i++)
    after_link_drop(&e->sessions->predecessors, &e->after[i]);
  free(e->after);
  e->after = NULL;
  e->after_count = 0;
  if (e->in_never.list != NULL)
    list_remove(&e->sessions->never, &e->in_never);
}

static void after_link_add(struct daemon_entry *e, const char *id) {
  struct id_list *all = &e->sessions->predecessors;
  struct predecessor_entry *p = id_list_find(all, id);
  for (size_t i = 0; i < e->after_count; i++)
    if (p != NULL && e->after[i].of == p)
      return;
  if (p == NULL) {
    p = xcalloc(1, sizeof *p);
    print_into(p->id, sizeof p->id, "%.36s", id);
    id_list_add(all, p);
  }
  struct after_link *link = &e->after[e->after_count++];
  *link = (struct after_link){.of = p, .entry = e};
  list_push_back(&p->waiting, &link->in_waiting);
}

static void after_give_up(struct daemon_entry *e, const char *id, const char *status) {
  struct buf why = {0};
  predecessor_why(id, status, &why);
  free(e->never);
  e->never = buf_take(&why);
  e->stands = PREDECESSOR_NEVER;
  after_drop(e);
  list_push_back(&e->sessions->never, &e->in_never);
}

enum predecessor entry_look_after(struct daemon_entry *e) {
  const struct sessions *ss = e->sessions;
  if (!summary_waits(&e->summary))
    return PREDECESSOR_DONE;
  if (ss->shared || e->stands != PREDECESSOR_PENDING) /* a shared store has said so */
    return e->stands;
  after_drop(e);
  e->after = xcalloc(json_array_size(e->summary.after), sizeof *e->after);
  JSON_EACH(e->summary.after, i, item) {
    const char *id = json_string_value(item);
    char status[sizeof e->summary.status];
    enum predecessor one = predecessor_read(ss->env->store, id, e->summary.after_any_end, status);
    if (one == PREDECESSOR_NEVER) {
      after_give_up(e, id, status);
      return one;
    }
    if (one == PREDECESSOR_PENDING)
      after_link_add(e, id);
  }
  if (e->after_count > 0)
    return PREDECESSOR_PENDING;
  after_drop(e);
  e->stands = PREDECESSOR_DONE;
  return PREDECESSOR_DONE;
}

static void after_tell(struct daemon_entry *e, struct after_link *link, const char *id,
                       const struct summary *b) {
  enum predecessor stands = PREDECESSOR_NEVER;
  if (b != NULL)
    stands = predecessor_of(b, e->summary.after_any_end);
  if (stands == PREDECESSOR_NEVER)
    after_give_up(e, id, b != NULL ? b->status : "removed");
  if (stands != PREDECESSOR_DONE)
    return;
  after_link_drop(&e->sessions->predecessors, link);
  for (size_t i = 0; i < e->after_count; i++)
    if (e->after[i].of != NULL)
      return;
  e->stands = PREDECESSOR_DONE;
  entry_set_state(e, ENTRY_QUEUED);
  e->sessions->changed(e->sessions->ctx, e);
}

/* Tells those that are to begin after this session how it stands; b NULL: it is gone. */
static void after_tell_all(struct sessions *ss, const char *id, const struct summary *b) {
  struct predecessor_entry *p = id_list_find(&ss->predecessors, id);
  struct list_node *next;
  if (p == NULL)
    return;
  p->telling = true;
  for (struct list_node *node = p->waiting.first; node != NULL; node = next) {
    struct after_link *link = LIST_ITEM(node, struct after_link, in_waiting);
    next = node->next;
    after_tell(link->entry, link, id, b);
  }
  p->telling = false;
  if (p->waiting.count > 0)
    return;
  id_list_remove(&ss->predecessors, p);
  free(p);
}

/* Looks at the log of one that this daemon does not run. Its length mostly tells that nothing
 * happened. */
static void after_look_at(struct sessions *ss, struct predecessor_entry *p) {
  const struct daemon_entry *e = sessions_find(ss, p->id);
  struct store_ref ref;
  struct summary b;
  struct err err;
  uint64_t bytes;
  store_ref(ss->env->store, p->id, &ref);
  if (e != NULL && e->session != NULL)
    return;
  if (!store_bytes(&ref, &bytes)) {
    if (!store_is_there(&ref))
      after_tell_all(ss, p->id, NULL);
  } else if (bytes != p->bytes && summary_read(&b, &ref, &err)) {
    p->bytes = bytes;
    after_tell_all(ss, p->id, &b);
    summary_deinit(&b);
  }
}

bool sessions_look_after(struct sessions *ss) {
  const struct id_list *all = &ss->predecessors;
  for (size_t i = all->count; i-- > 0;) {
    struct predecessor_entry *p = id_list_at(all, i);
    if (p != NULL) /* several may go with one */
      after_look_at(ss, p);
  }
  return all->count > 0;
}

/* --- states and lists --- */

static const struct {
  enum entry_list list;
  unsigned next;
} entry_states[] = {
#define ES(name)                   (1u << ENTRY_##name)
#define ES_ROW(name, list_, next_) {.list = LIST_##list_, .next = (next_)},
    ENTRY_STATES(ES_ROW)
#undef ES_ROW
};

static struct list *entry_list_of(const struct daemon_entry *e) {
  return &e->sessions->lists[entry_states[e->state].list];
}

/* Finds its place by the ids. The queue can be long, so it is searched; in the other lists a
 * session nearly always goes last. */
static void entry_link(struct daemon_entry *e) {
  struct list *list = entry_list_of(e);
  struct list_node *after = list->last;
  if (entry_waits(e)) {
    struct id_list *queue = &e->sessions->queue;
    size_t before = id_list_before(queue, e->id);
    struct daemon_entry *last = before > 0 ? id_list_at(queue, before - 1) : NULL;
    id_list_add(queue, e);
    after = last != NULL ? &last->in_state : NULL;
  } else {
    while (after != NULL && strcmp(LIST_ITEM(after, struct daemon_entry, in_state)->id, e->id) > 0)
      after = after->prev;
  }
  list_insert(list, after, &e->in_state);
  if (e->state == ENTRY_HELD)
    id_list_add(&e->sessions->held, e);
}

static void entry_unlink(struct daemon_entry *e) {
  if (e->state == ENTRY_AFTER)
    after_drop(e);
  if (entry_waits(e))
    id_list_remove(&e->sessions->queue, e);
  list_remove(entry_list_of(e), &e->in_state);
  if (e->state == ENTRY_HELD)
    id_list_remove(&e->sessions->held, e);
}

void entry_set_state(struct daemon_entry *e, enum entry_state state) {
  assert(entry_states[e->state].next & (1u << state));
  entry_unlink(e);
  e->state = state;
  e->sessions->asking |= state == ENTRY_OVER && e->summary.questions != NULL;
  entry_link(e);
  if (state == ENTRY_OVER)
    after_tell_all(e->sessions, e->id, &e->summary);
}

struct daemon_entry *sessions_find(const struct sessions *ss, const char *id) {
  return id_list_find(&ss->all, id);
}

size_t sessions_running(const struct sessions *ss) {
  return ss->lists[LIST_RUNNING].count + ss->lists[LIST_OPENING].count;
}

size_t sessions_queued(const struct sessions *ss) {
  return ss->lists[LIST_QUEUE].count;
}

struct daemon_entry *entry_make(struct sessions *ss, enum entry_state state) {
  struct daemon_entry *e = xcalloc(1, sizeof *e);
  e->sessions = ss;
  e->state = state;
  return e;
}

void entry_add(struct daemon_entry *e, const char *id) {
  print_into(e->id, sizeof e->id, "%.36s", id);
  id_list_add(&e->sessions->all, e);
  entry_link(e);
}

struct daemon_entry *entry_new(struct sessions *ss, const char *id, enum entry_state state) {
  struct daemon_entry *e = entry_make(ss, state);
  entry_add(e, id);
  return e;
}

void entry_free(struct daemon_entry *e) {
  assert(e->session == NULL && !feed_watched(e->feed));
  if (e->id[0] != '\0') {
    id_list_remove(&e->sessions->all, e);
    entry_unlink(e);
  }
  entry_set_key(e, NULL);
  feed_free(e->feed);
  launch_deinit(&e->launch);
  summary_deinit(&e->summary);
  free(e->trouble);
  free(e->never);
  free(e);
}

void entry_set_trouble(struct daemon_entry *e, const char *text) {
  char *copy = text ? xstrdup(text) : NULL;
  free(e->trouble);
  e->trouble = copy;
}

bool entry_ends(const struct daemon_entry *e) {
  return e->wish == WISH_CANCEL || e->wish == WISH_LEAVE;
}

void entry_forget_wish(struct daemon_entry *e, enum entry_wish wish) {
  if (e->wish == wish)
    e->wish = WISH_NONE;
}

void entry_set_owner(struct daemon_entry *e, enum entry_owner owner) {
  if (e->owner != OWNER_CLAIMED)
    e->owner = owner;
}

void entry_ref(const struct daemon_entry *e, struct store_ref *ref) {
  store_ref(e->sessions->env->store, e->id, ref);
}

/* --- status --- */

const char *entry_status(const struct daemon_entry *e) {
  switch (e->state) {
  case ENTRY_STARTING:
  case ENTRY_RESUMING:
  case ENTRY_ANSWERING:
  case ENTRY_HELD:
  case ENTRY_QUEUED:
  case ENTRY_OPENING:
    return "queued";
  case ENTRY_AFTER:
    return "waiting";
  case ENTRY_RUNNING:
    if (summary_is_over(&e->summary))
      return e->summary.status;
    if (e->session && session_paused(e->session))
      return "paused";
    return e->summary.wait ? "waiting" : "running";
  case ENTRY_BROKEN:
    return "paused";
  case ENTRY_OVER:
  case ENTRY_FAILED:
    break;
  }
  return e->summary.status;
}

const char *entry_message(const struct daemon_entry *e) {
  const char *paused = e->session && e->state != ENTRY_BROKEN ? session_paused(e->session) : NULL;
  if (paused)
    return paused;
  return e->trouble ? e->trouble : e->summary.message;
}

bool entry_is_elsewhere(const struct daemon_entry *e) {
  struct store_ref ref;
  uint64_t bytes;
  if ((e->state != ENTRY_QUEUED && e->state != ENTRY_AFTER) || e->session != NULL ||
      e->sessions->shared) /* it was claimed */
    return false;
  entry_ref(e, &ref);
  return store_is_owned(&ref) || (store_bytes(&ref, &bytes) && bytes != e->summary.bytes);
}

bool entry_waits(const struct daemon_entry *e) {
  return entry_states[e->state].list == LIST_QUEUE;
}

bool entry_is_live(const struct daemon_entry *e) {
  enum entry_list list = entry_states[e->state].list;
  return list != LIST_WRITING && list != LIST_OVER;
}

size_t entry_position(const struct daemon_entry *e) {
  return entry_waits(e) ? id_list_before(&e->sessions->queue, e->id) + 1 : 0;
}

bool entry_is_silent(struct daemon_entry *e, uint64_t after_ms, uint64_t *silence_ms) {
  uint64_t now = uv_now(e->sessions->host->loop);
  bool works = e->state == ENTRY_RUNNING && e->summary.wait == NULL &&
               !summary_is_over(&e->summary) && !summary_is_stopped(&e->summary) &&
               session_paused(e->session) == NULL && json_array_size(e->summary.questions) == 0;
  if (!works || e->heard_ms == UINT64_MAX || now - e->heard_ms < after_ms)
    return false;
  *silence_ms = now - e->heard_ms;
  e->heard_ms = UINT64_MAX;
  return true;
}

/* --- sessions with one key (unique) --- */

struct entry_key {
  char key[LIMIT_NAME_BYTES + 1]; /* first, for id_list_find */
  struct list entries;            /* the earliest known first */
};

void entry_set_key(struct daemon_entry *e, const char *key) {
  struct id_list *keys = &e->sessions->keys;
  struct entry_key *k = e->key;
  if (k != NULL && key != NULL && strcmp(k->key, key) == 0)
    return;
  if (k != NULL)
    list_remove(&k->entries, &e->in_key);
  if (k != NULL && k->entries.count == 0) {
    id_list_remove(keys, k);
    free(k);
  }
  e->key = NULL;
  if (key == NULL || strlen(key) > LIMIT_NAME_BYTES) /* no longer one can be submitted */
    return;
  e->key = id_list_find(keys, key);
  if (e->key == NULL) {
    e->key = xcalloc(1, sizeof *e->key);
    memcpy(e->key->key, key, strlen(key));
    id_list_add(keys, e->key);
  }
  list_push_back(&e->key->entries, &e->in_key);
}

/* runs: only one that has its turn. */
static struct daemon_entry *find_with_key(struct entry_key *k, const struct daemon_entry *other,
                                          bool runs) {
  if (k == NULL)
    return NULL;
  LIST_EACH(struct daemon_entry, e, in_key, &k->entries) {
    enum entry_list list = entry_states[e->state].list;
    bool turn = list == LIST_RUNNING || list == LIST_OPENING || list == LIST_BROKEN;
    if (e != other && (turn || (!runs && list != LIST_OVER)) && !summary_is_over(&e->summary))
      return e;
  }
  return NULL;
}

struct daemon_entry *sessions_with_key(const struct sessions *ss, const char *key) {
  struct entry_key *k = id_list_find(&ss->keys, key);
  struct daemon_entry *running = find_with_key(k, NULL, true);
  return running != NULL ? running : find_with_key(k, NULL, false);
}

bool entry_waits_for_same(const struct daemon_entry *e) {
  return find_with_key(e->key, e, true) != NULL;
}

/* --- how it stands in its store --- */

bool status_snapshot_find(const struct store *store, const char *word, char id[STORE_ID_BYTES],
                          struct err *err) {
  struct store_ref ref;
  bool named = strspn(word, "0123456789abcdef-") == strlen(word) || strcmp(word, "last") == 0;
  if (!named)
    return err_set(err, ERR_NOT_FOUND, "that is not a session's id");
  if (!store_find(store, word, &ref, err)) /* a whole id, too */
    return false;
  store_ref_id(&ref, id);
  return true;
}

static bool status_snapshot_read(struct status_snapshot *s, const struct store_ref *ref,
                                 struct err *err) {
  s->owned = store_is_owned(ref); /* before reading: the last records precede the release */
  return summary_read(&s->summary, ref, err);
}

bool status_snapshot_take(struct status_snapshot *s, const struct store *store, const char *word,
                          bool settles, struct err *err) {
  struct store_ref ref;
  uint64_t until = clock_mono_ms() + LIMIT_STORE_SETTLE_MS;
  *s = (struct status_snapshot){0};
  /* a whole id, not a prefix or `last` */
  if (strlen(word) == STORE_ID_BYTES - 1 && strspn(word, "0123456789abcdef-") == strlen(word))
    store_ref(store, word, &ref);
  else if (!store_find(store, word, &ref, err))
    return false;
  store_ref_id(&ref, s->id);
  bool ok = status_snapshot_read(s, &ref, err);
  while (ok && settles && s->owned && summary_is_stopped(&s->summary) && clock_mono_ms() < until) {
    (void)usleep(LIMIT_STORE_SETTLE_LOOK_MS * 1000);
    summary_deinit(&s->summary);
    ok = status_snapshot_read(s, &ref, err);
  }
  return ok;
}

void status_snapshot_deinit(struct status_snapshot *s) {
  summary_deinit(&s->summary);
  *s = (struct status_snapshot){0};
}

/* --- from memory, if that is newer --- */

bool api_status_is_unfinished(const struct summary *b) {
  return strcmp(b->status, "running") == 0;
}

void api_status_deinit(struct api_status *v) {
  status_snapshot_deinit(&v->own);
}

static bool is_known(const struct daemon_entry *e) {
  bool ended = e->summary.seq > 0 && summary_is_over(&e->summary);
  return (entry_is_live(e) || ended) && !entry_is_elsewhere(e);
}

bool api_status_is_in_memory(const struct sessions *ss, const char *id) {
  const struct daemon_entry *e = sessions_find(ss, id);
  return e != NULL && e->summary.seq > 0 && is_known(e);
}

/* As its last records say, and who has it. What is unfinished and nobody's waits for a worker, or
 * (with files, or if it was never submitted) for somebody who resumes it. */
static void api_status_set(struct api_status *v, const struct sessions *ss,
                           const struct daemon_entry *e, bool owned) {
  const struct summary *b = v->summary;
  v->message = e != NULL && e->trouble != NULL ? e->trouble : b->message;
  v->status = owned ? summary_status(b) : summary_idle_status(b, ss->shared);
  if (e != NULL && entry_waits(e) && !owned &&
      (e->wish == WISH_RESUME || summary_goes_on(b, ss->shared))) {
    v->status = "queued";
    v->position = entry_position(e);
  }
}

bool api_status_of(struct api_status *v, const struct sessions *ss, const char *id,
                   struct err *err) {
  const struct daemon_entry *e = sessions_find(ss, id);
  struct store_ref ref;
  *v = (struct api_status){.id = id};
  if (e != NULL && e->summary.seq == 0)
    return err_set(err, ERR_NOT_FOUND, "%s is not written yet", id);
  if (ss->shared && e == NULL)
    return err_set(err, ERR_NOT_FOUND, "there is no session %s here", id);
  if (e != NULL && is_known(e)) {
    v->summary = &e->summary;
    v->status = entry_status(e);
    v->message = entry_message(e);
    v->position = entry_position(e);
    return true;
  }
  bool here = e != NULL && e->session != NULL; /* about to be freed */
  if (ss->shared) {
    v->summary = &e->summary; /* since the last look at the store, for which nobody waits here */
    api_status_set(v, ss, e, !here && e->owner == OWNER_OTHER);
    return true;
  }
  store_ref(ss->env->store, id, &ref);
  if (!status_snapshot_read(&v->own, &ref, err))
    return false;
  v->summary = &v->own.summary;
  api_status_set(v, ss, e, !here && v->own.owned);
  return true;
}

json_t *api_status_json(const struct api_status *v, const struct sessions *ss) {
  struct store_ref ref;
  struct summary b = *v->summary;
  struct summary_wait wait;
  if (b.wait != NULL && b.wait->tries > 0) { /* the next try is any session's */
    const struct admission_away *away =
        admission_away_of(&ss->host->gate.admission, str_from(b.wait->provider));
    uint64_t now_ms = uv_now(ss->host->loop);
    wait = *b.wait;
    b.wait = &wait;
    if (away != NULL && away->class != CLASS_NONE)
      record_time(clock_real_ms() +
                      (away->next_ms > now_ms ? (int64_t)(away->next_ms - now_ms) : 0),
                  wait.until);
  }
  store_ref(ss->env->store, v->id, &ref);
  return summary_json(&b, v->id, ref.name, v->status, v->message, v->position);
}
