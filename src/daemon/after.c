/* Keeps which sessions wait for which, and lets them begin. */
#include "daemon/after.h"

#include "base/limits.h"
#include "base/memory.h"
#include "daemon/entry.h"
#include "daemon/sessions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct predecessor_entry {
  char id[STORE_ID_BYTES]; /* first, for id_list_find */
  struct list waiting;     /* struct after_link */
  uint64_t bytes;          /* of its log at the last look */
};

static void after_on_looks(uv_timer_t *timer);

void after_init(struct after_index *x, uv_loop_t *loop, struct sessions *ss) {
  *x = (struct after_index){.awaited = xcalloc(1, sizeof *x->awaited)};
  uv_timer_init(loop, &x->looks);
  x->looks.data = ss;
}

void after_close(struct after_index *x) {
  assert(x->awaited->count == 0);
  id_list_deinit(x->awaited);
  free(x->awaited);
  uv_close((uv_handle_t *)&x->looks, NULL);
}

/* --- the index --- */

static void after_link_drop(struct after_link *link) {
  struct after_index *x = &link->entry->sessions->after;
  struct predecessor_entry *a = link->awaited;
  if (a == NULL)
    return;
  list_remove(&a->waiting, &link->in_awaited);
  link->awaited = NULL;
  if (a->waiting.count > 0 || a == x->telling)
    return;
  id_list_remove(x->awaited, a);
  free(a);
}

void after_drop(struct daemon_entry *e) {
  for (size_t i = 0; i < e->after_count; i++)
    after_link_drop(&e->after[i]);
  free(e->after);
  e->after = NULL;
  e->after_count = 0;
  if (e->in_never.list != NULL)
    list_remove(&e->sessions->after.never, &e->in_never);
}

static void after_link_add(struct daemon_entry *e, const char *id) {
  struct after_index *x = &e->sessions->after;
  struct predecessor_entry *a = id_list_find(x->awaited, id);
  for (size_t i = 0; i < e->after_count; i++)
    if (a != NULL && e->after[i].awaited == a)
      return;
  if (a == NULL) {
    a = xcalloc(1, sizeof *a);
    print_into(a->id, sizeof a->id, "%.36s", id);
    id_list_add(x->awaited, a);
  }
  struct after_link *link = &e->after[e->after_count++];
  *link = (struct after_link){.awaited = a, .entry = e};
  list_push_back(&a->waiting, &link->in_awaited);
  if (!uv_is_active((uv_handle_t *)&x->looks))
    uv_timer_start(&x->looks, after_on_looks, LIMIT_AFTER_LOOK_MS, LIMIT_AFTER_LOOK_MS);
}

/* Its end will not come: it is to be stopped with that sentence. */
static void after_give_up(struct daemon_entry *e, const char *id, const char *status) {
  struct buf why = {0};
  predecessor_why(id, status, &why);
  free(e->never);
  e->never = buf_take(&why);
  e->stands = PREDECESSOR_NEVER;
  after_drop(e);
  list_push_back(&e->sessions->after.never, &e->in_never);
  sessions_soon(e->sessions);
}

enum predecessor after_look(struct daemon_entry *e) {
  const struct sessions *ss = e->sessions;
  size_t i;
  const json_t *item;
  if (!summary_waits(&e->summary))
    return PREDECESSOR_DONE;
  if (ss->shared || e->stands != PREDECESSOR_PENDING) /* a shared store has said so */
    return e->stands;
  after_drop(e);
  e->after = xcalloc(json_array_size(e->summary.after), sizeof *e->after);
  json_array_foreach(e->summary.after, i, item) {
    const char *id = json_string_value(item);
    const struct daemon_entry *other = id != NULL ? sessions_find(ss, id) : NULL;
    char status[sizeof e->summary.status] = "";
    enum predecessor one = PREDECESSOR_PENDING;
    if (other != NULL && other->session != NULL)
      one = predecessor_of(&other->summary, e->summary.after_any_end);
    else if (id != NULL)
      one = predecessor_read(ss->env->store, id, e->summary.after_any_end, status);
    if (one == PREDECESSOR_NEVER) {
      after_give_up(e, id, other != NULL && status[0] == '\0' ? other->summary.status : status);
      return one;
    }
    if (one == PREDECESSOR_PENDING && id != NULL)
      after_link_add(e, id);
  }
  if (e->after_count > 0)
    return PREDECESSOR_PENDING;
  after_drop(e);
  e->stands = PREDECESSOR_DONE;
  return PREDECESSOR_DONE;
}

/* --- what happens to those that they wait for --- */

static void after_tell(struct after_link *link, const char *id, enum predecessor stands,
                       const char *status) {
  struct daemon_entry *e = link->entry;
  if (stands == PREDECESSOR_NEVER)
    after_give_up(e, id, status);
  if (stands != PREDECESSOR_DONE)
    return;
  after_link_drop(link);
  for (size_t i = 0; i < e->after_count; i++)
    if (e->after[i].awaited != NULL)
      return;
  e->stands = PREDECESSOR_DONE;
  entry_set_state(e, ENTRY_QUEUED);
  e->sessions->changed(e->sessions->ctx, e);
  sessions_soon(e->sessions);
}

/* b NULL: it is gone. */
static void after_tell_all(struct sessions *ss, struct predecessor_entry *a,
                           const struct summary *b) {
  struct list_node *next;
  ss->after.telling = a;
  for (struct list_node *node = a->waiting.first; node != NULL; node = next) {
    struct after_link *link = LIST_ITEM(node, struct after_link, in_awaited);
    next = node->next;
    bool any_end = link->entry->summary.after_any_end;
    after_tell(link, a->id, b != NULL ? predecessor_of(b, any_end) : PREDECESSOR_NEVER,
               b != NULL ? b->status : "removed");
  }
  ss->after.telling = NULL;
  if (a->waiting.count > 0)
    return;
  id_list_remove(ss->after.awaited, a);
  free(a);
}

void after_told(struct sessions *ss, const char *id, const struct summary *b) {
  struct predecessor_entry *a = id_list_find(ss->after.awaited, id);
  if (a != NULL)
    after_tell_all(ss, a, b);
}

struct daemon_entry *after_next_never(struct sessions *ss) {
  struct list_node *first = ss->after.never.first;
  return first != NULL ? LIST_ITEM(first, struct daemon_entry, in_never) : NULL;
}

/* Looks at the log of one that this daemon does not run. */
static void after_look_at(struct sessions *ss, struct predecessor_entry *a) {
  const struct daemon_entry *e = sessions_find(ss, a->id);
  struct store_ref ref;
  struct summary b;
  struct err err;
  uint64_t bytes = 0;
  if (e != NULL && e->session != NULL)
    return;
  store_ref(ss->env->store, a->id, &ref);
  bool there = store_bytes(&ref, &bytes);
  if (there && bytes == a->bytes)
    return;
  a->bytes = bytes;
  if (!there && !store_is_there(&ref)) {
    after_tell_all(ss, a, NULL);
  } else if (summary_read(&b, &ref, &err)) {
    after_tell_all(ss, a, &b);
    summary_deinit(&b);
  }
}

static void after_on_looks(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  struct after_index *x = &ss->after;
  if (x->awaited->count == 0) {
    uv_timer_stop(timer);
    return;
  }
  size_t count =
      x->awaited->count < LIMIT_AFTER_LOOK_COUNT ? x->awaited->count : LIMIT_AFTER_LOOK_COUNT;
  for (size_t i = 0; i < count && x->awaited->count > 0; i++) {
    struct predecessor_entry *a = id_list_at(x->awaited, x->next % x->awaited->count);
    x->next = x->next % x->awaited->count;
    after_look_at(ss, a);
    x->next += id_list_at(x->awaited, x->next) == a; /* else it has gone, and another is there */
  }
}
