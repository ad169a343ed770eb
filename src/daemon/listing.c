/* Lists sessions by what only their logs say. */
#include "daemon/listing.h"

#include "base/arena.h"
#include "base/log.h"
#include "format/json_write.h"
#include "view/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct standing { /* of a session that the daemon has */
  char id[STORE_ID_BYTES];
  const char *status, *message; /* literal or in the arena; message may be NULL */
  size_t position;
};

struct list_ask {
  struct arena arena;
  struct store store;
  struct view_filter filter;
  struct standing *standing;
  size_t count;
};

static const struct standing *standing_of(const struct list_ask *l, const char *id) {
  for (size_t i = 0; i < l->count; i++)
    if (strcmp(l->standing[i].id, id) == 0)
      return &l->standing[i];
  return NULL;
}

static const char *listing_stands(const void *ctx, const char *id) {
  const struct standing *s = standing_of(ctx, id);
  return s != NULL ? s->status : NULL;
}

static const char *listing_keep(struct list_ask *l, const char *text) {
  return text != NULL ? arena_str(&l->arena, str_from(text)).p : NULL;
}

static void take_standing(struct list_ask *l, const struct sessions *ss) {
  static const enum entry_state states[] = {ENTRY_WRITING, ENTRY_QUEUED, ENTRY_BROKEN,
                                            ENTRY_RUNNING};
  size_t count = 0;
  for (size_t k = 0; k < ARRAY_LEN(states); k++)
    count += ss->lists[states[k]].count;
  l->standing = xcalloc(count + 1, sizeof *l->standing);
  for (size_t k = 0; k < ARRAY_LEN(states); k++)
    LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[states[k]]) {
      struct standing *s = &l->standing[l->count++];
      memcpy(s->id, e->id, sizeof s->id);
      s->status = entry_status(e);
      s->message = listing_keep(l, entry_message(e));
      s->position = entry_position(e);
    }
}

/* One line of the list; NULL: its log is gone, or bad. */
static json_t *listing_row(const struct list_ask *l, const struct view_row *row) {
  const struct standing *s = standing_of(l, row->id);
  struct store_ref ref;
  struct brief b;
  struct err err;
  store_ref(&l->store, row->id, &ref);
  if (!brief_read(&b, &ref, &err))
    return NULL;
  json_t *out = brief_json(&b, row->id, ref.name, row->status.p,
                           s != NULL && s->message != NULL ? s->message : b.message,
                           s != NULL ? s->position : 0);
  brief_deinit(&b);
  return out;
}

static void listing_work(void *ctx, struct reading_answer *answer) {
  struct list_ask *l = ctx;
  struct view_folder f = {0};
  json_t *list = json_array(), *row;
  if (view_folder_page(&f, &l->store, &l->filter, &answer->err)) {
    for (size_t i = 0; i < f.count; i++)
      if ((row = listing_row(l, &f.rows[i])) != NULL)
        json_array_append_new(list, row);
    json_auto_t *page = json_pack("{sO}", "sessions", list);
    json_object_set_new(page, "next", f.next[0] ? json_string(f.next) : json_null());
    json_write(page, &answer->body);
  } else {
    answer->status = 500;
  }
  json_decref(list);
  view_folder_deinit(&f);
}

static void listing_drop(void *ctx) {
  struct list_ask *l = ctx;
  free(l->standing);
  arena_deinit(&l->arena);
  free(l);
}

static bool listing_reads(struct list_ask *l, const struct server_request *r, struct err *err) {
  const char *text = server_query(r, "text"), *sort = server_query(r, "sort");
  if (text != NULL && !view_filter_words(&l->filter, text, err))
    return false;
  if (sort != NULL && (!view_sort_read(sort, &l->filter.sort, &l->filter.least_first) ||
                       l->filter.sort == VIEW_SORT_NONE))
    return err_set(err, ERR_USAGE,
                   "sort must be started, took, turns, tokens or cost, with - before it for the "
                   "least first");
  if (sort != NULL && l->filter.before != NULL)
    return err_set(err, ERR_USAGE, "a sorted list has no pages: before goes without sort");
  return true;
}

void listing_take(struct readings *rs, struct server_request *r, const struct sessions *ss,
                  const struct select *wanted, size_t limit) {
  struct err err = {0};
  struct list_ask *l = xmalloc(sizeof *l);
  *l = (struct list_ask){.store = *ss->env->store};
  l->filter =
      (struct view_filter){.select = *wanted, .max = limit, .stands = listing_stands, .ctx = l};
  l->filter.select.statuses = listing_keep(l, wanted->statuses);
  l->filter.select.workflow = listing_keep(l, wanted->workflow);
  l->filter.select.method = listing_keep(l, wanted->method);
  l->filter.select.provider = listing_keep(l, wanted->provider);
  l->filter.before = listing_keep(l, server_query(r, "before"));
  if (!listing_reads(l, r, &err)) {
    listing_drop(l);
    server_problem(r, 400, NULL, "%s", err.text);
    return;
  }
  take_standing(l, ss);
  reading_take(rs, r, listing_work, listing_drop, l);
}
