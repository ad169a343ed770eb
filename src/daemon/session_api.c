/* Reads one session for a program. */
#include "daemon/session_api.h"

#include "audit/compare.h"
#include "audit/verified_reader.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/log.h"
#include "daemon/entry.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "host/worktree_changes.h"
#include "store/heads.h"
#include "store/inbox.h"
#include "store/index.h"
#include "view/judgment.h"
#include "view/raw.h"
#include "view/search.h"
#include "view/session_list.h"
#include "view/verification.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- lists --- */

struct standing { /* of a session that the daemon has */
  char id[STORE_ID_BYTES];
  bool queued;         /* it waits here, unless another program took its log (`alone`) */
  bool alone, resumed; /* nothing of it is in memory; a user resumed it */
  bool ours;           /* this daemon owns its log, and is about to release it */
  const char *message; /* in the arena, or NULL */
  size_t position;
  uint64_t bytes; /* of the log, when it was last read */
  json_t *told;   /* if it runs, its row from memory, newer than its log; else NULL */
};

struct list_ask {
  struct arena arena;
  struct store store;
  struct view_filter filter;
  struct standing *standing; /* by id */
  size_t count;
  char id[STORE_ID_BYTES]; /* of the session, when only one is asked for */
  struct heads **heads;    /* see heads_once */
};

enum { LOOK_BYTES = 64 * 1024 }; /* of a log that is read to its end, counted as one look */

static int standing_order(const void *a, const void *b) {
  return strcmp(((const struct standing *)a)->id, ((const struct standing *)b)->id);
}

static const struct standing *standing_of(const struct list_ask *l, const char *id) {
  struct standing wanted;
  print_into(wanted.id, sizeof wanted.id, "%s", id);
  return bsearch(&wanted, l->standing, l->count, sizeof wanted, standing_order);
}

static const char *list_api_keep(struct list_ask *l, const char *text) {
  return text != NULL ? arena_str(&l->arena, str_from(text)).p : NULL;
}

/* --- on the loop --- */

static void take_one(struct list_ask *l, const struct sessions *ss, const struct daemon_entry *e,
                     size_t position) {
  struct standing *s = &l->standing[l->count];
  struct api_status v = {.id = e->id, .summary = &e->summary};
  if (e->state == ENTRY_AFTER) /* many may wait, and its log says it too */
    return;
  if (entry_is_live(e) ? e->summary.seq == 0 : e->session == NULL && e->trouble == NULL)
    return;
  l->count++;
  memcpy(s->id, e->id, sizeof s->id);
  s->queued = entry_waits(e);
  s->alone = s->queued && e->session == NULL;
  s->resumed = e->wish == WISH_RESUME;
  s->ours = e->session != NULL;
  s->position = s->queued ? position : 0;
  s->bytes = e->summary.bytes;
  s->message = list_api_keep(l, entry_is_live(e) ? entry_message(e) : e->trouble);
  if (!entry_is_live(e) || s->queued)
    return;
  v.status = entry_status(e);
  v.message = s->message;
  json_auto_t *told = api_status_json(&v, ss);
  s->told = json_clone(told); /* it shares parts with the brief */
}

/* All are in the order of their ids, and so is the queue. */
static void take_standing(struct list_ask *l, const struct sessions *ss) {
  size_t position = 0;
  l->standing = xcalloc(ss->all.count + 1, sizeof *l->standing);
  for (size_t i = 0; i < ss->all.count; i++) {
    const struct daemon_entry *e = id_list_at(&ss->all, i);
    position += entry_waits(e);
    take_one(l, ss, e, position);
  }
}

/* --- in the pool --- */

/* Returns whether the session waits here. b is NULL if nothing is known of its log. */
static bool waits_here(const struct standing *s, const struct store_ref *ref,
                       const struct summary *b) {
  uint64_t bytes;
  if (s == NULL || !s->queued || !s->alone)
    return s != NULL && s->queued;
  if (store_is_owned(ref))
    return false;
  bool same = store_bytes(ref, &bytes) && bytes == s->bytes;
  return same || s->resumed || (b != NULL && summary_goes_on(b, store_is_address(ref->name)));
}

static const char *list_api_stands(const void *ctx, const char *id) {
  const struct list_ask *l = ctx;
  const struct standing *s = standing_of(l, id);
  struct store_ref ref;
  if (s != NULL && s->told != NULL)
    return json_string_value(json_object_get(s->told, "status"));
  store_ref(&l->store, id, &ref);
  return waits_here(s, &ref, NULL) ? "queued" : NULL;
}

static const char *list_api_status(const struct standing *s, const struct store_ref *ref,
                                   const struct summary *b) {
  bool owned = !(s != NULL && s->ours) && store_is_owned(ref);
  if (waits_here(s, ref, b))
    return "queued";
  return owned ? summary_status(b) : summary_idle_status(b, store_is_address(ref->name));
}

/* Returns NULL if it is not wanted. */
static json_t *list_api_told(const json_t *told, const struct filter *wanted) {
  struct summary b = {.workflow = (char *)json_string_value(json_object_get(told, "workflow"))};
  const char *started = json_string_value(json_object_get(told, "started"));
  print_into(b.started, sizeof b.started, "%s", started != NULL ? started : "");
  bool is_wanted =
      summary_wanted(wanted->statuses, json_string_value(json_object_get(told, "status"))) &&
      filter_wants_summary(wanted, &b);
  return is_wanted ? json_incref((json_t *)told) : NULL;
}

/* Makes one row of the list, without looking at judgments or calls. Returns NULL if the log is
 * gone, or the session is not wanted or about to begin. */
static json_t *list_api_row(const struct list_ask *l, const char *id, const struct filter *wanted) {
  const struct standing *s = standing_of(l, id);
  struct store_ref ref;
  struct summary b;
  struct err err;
  json_t *out = NULL;
  store_ref(&l->store, id, &ref);
  if (s != NULL && s->told != NULL)
    return list_api_told(s->told, wanted);
  if (!summary_read(&b, &ref, &err) && !summary_unread(&b, &ref, heads_once(l->heads, &l->store)))
    return NULL;
  const char *status = list_api_status(s, &ref, &b);
  if (summary_wanted(wanted->statuses, status) && filter_wants_summary(wanted, &b))
    out = summary_json(&b, id, ref.name, status,
                       s != NULL && s->message != NULL ? s->message : b.message,
                       s != NULL && strcmp(status, "queued") == 0 ? s->position : 0);
  summary_deinit(&b);
  return out;
}

static void list_api_answer(struct read_job_answer *answer, json_t *list, const char *next) {
  json_auto_t *page = json_pack("{so}", "sessions", list);
  json_object_set_new(page, "next", next != NULL ? json_string(next) : json_null());
  json_write(page, &answer->body);
}

/* Returns NULL if it is not wanted, or not a session yet. Adds its cost to `looked`. x: NULL if all
 * sessions are wanted. */
static json_t *list_one(const struct list_ask *l, const char *id, struct index *x, size_t *looked) {
  const struct filter *wanted = &l->filter.select;
  const struct index_row *row = NULL;
  struct store_ref ref;
  uint64_t bytes = 0;
  if (x != NULL && standing_of(l, id) == NULL)
    row = index_row_of_list(x, id);
  if (row != NULL && row->passed_over)
    return NULL;
  ++*looked;
  json_t *session = list_api_row(l, id, wanted);
  if (session == NULL || row != NULL || (wanted->method == NULL && wanted->provider == NULL))
    return session;
  store_ref(&l->store, id, &ref);
  if (store_bytes(&ref, &bytes))
    *looked += (size_t)(bytes / LOOK_BYTES);
  if (filter_wants_log(wanted, &ref))
    return session;
  json_decref(session);
  return NULL;
}

/* Lists the newest first. A page ends when it is full, or when looking at more logs would keep
 * others waiting; `next` then says where to go on. */
static void list_api_plain_work(void *ctx, struct read_job_answer *answer) {
  const struct list_ask *l = ctx;
  const char *last = NULL;
  struct store_id *ids;
  size_t count, i = 0, looked = 0;
  if (!store_list(&l->store, &ids, &count, &answer->err)) {
    answer->status = 500;
    return;
  }
  json_t *list = json_array();
  struct index *x = NULL;
  if (filter_is_set(&l->filter.select))
    x = index_open(&l->store, &l->filter.select, INDEX_NOTHING);
  for (; i < count && json_array_size(list) < l->filter.max && looked < LIMIT_API_READ_COUNT; i++) {
    if (l->filter.before != NULL && strcmp(ids[i].id, l->filter.before) >= 0)
      continue;
    last = ids[i].id;
    json_t *session = list_one(l, last, x, &looked);
    json_array_append_new(list, session);
  }
  list_api_answer(answer, list, i < count ? last : NULL);
  index_close(x);
  free(ids);
}

static void list_api_work(void *ctx, struct read_job_answer *answer) {
  static const struct filter any;
  struct list_ask *l = ctx;
  AUTO(session_list_deinit) struct session_list f = {0};
  json_auto_t *list = json_array();
  json_t *row;
  if (session_list_page(&f, &l->store, &l->filter, &answer->err)) {
    for (size_t i = 0; i < f.count; i++)
      if ((row = list_api_row(l, f.rows[i].id, &any)) != NULL)
        json_array_append_new(list, row);
    list_api_answer(answer, json_incref(list), f.next[0] ? f.next : NULL);
  } else {
    answer->status = 500;
  }
}

static void list_api_one_work(void *ctx, struct read_job_answer *answer) {
  static const struct filter any;
  const struct list_ask *l = ctx;
  json_auto_t *session = list_api_row(l, l->id, &any);
  if (session != NULL) {
    json_write(session, &answer->body);
    return;
  }
  answer->status = 404;
  err_set(&answer->err, ERR_NOT_FOUND, "there is no session %s", l->id);
}

static void list_api_drop(void *ctx) {
  struct list_ask *l = ctx;
  for (size_t i = 0; i < l->count; i++)
    json_decref(l->standing[i].told);
  free(l->standing);
  heads_once_free(l->heads);
  free(l->heads);
  arena_deinit(&l->arena);
  free(l);
}

static bool list_api_reads(struct list_ask *l, const struct server_request *r, struct err *err) {
  const char *text = server_query(r, "text"), *sort = server_query(r, "sort");
  if (text != NULL && !view_filter_words(&l->filter, text, err))
    return false;
  if (sort != NULL && (!view_sort_read(sort, &l->filter.sort, &l->filter.least_first) ||
                       l->filter.sort == VIEW_SORT_NONE))
    return err_set(
        err, ERR_USAGE,
        "sort must be started, took, turns, tokens or cost; put - in front for smallest first");
  if (sort != NULL && l->filter.before != NULL)
    return err_set(err, ERR_USAGE, "a sorted list has no pages: leave out before or sort");
  return true;
}

void list_api_take(struct read_jobs *rs, struct server_request *r, const struct sessions *ss,
                   const struct filter *wanted, size_t limit) {
  struct err err = {0};
  struct list_ask *l = xmalloc(sizeof *l);
  *l = (struct list_ask){.store = *ss->env->store, .heads = xcalloc(1, sizeof *l->heads)};
  l->filter =
      (struct view_filter){.select = *wanted, .max = limit, .stands = list_api_stands, .ctx = l};
  l->filter.select.statuses = list_api_keep(l, wanted->statuses);
  l->filter.select.workflow = list_api_keep(l, wanted->workflow);
  l->filter.select.method = list_api_keep(l, wanted->method);
  l->filter.select.provider = list_api_keep(l, wanted->provider);
  l->filter.before = list_api_keep(l, server_query(r, "before"));
  if (!list_api_reads(l, r, &err)) {
    list_api_drop(l);
    server_problem(r, 400, NULL, "%s", err.text);
    return;
  }
  bool plain = l->filter.words[0] == NULL && l->filter.sort == VIEW_SORT_NONE;
  take_standing(l, ss);
  read_job_take(rs, r, plain ? list_api_plain_work : list_api_work, list_api_drop, l);
}

void list_api_take_one(struct read_jobs *rs, struct server_request *r, const struct sessions *ss,
                       const char *id) {
  struct list_ask *l = xmalloc(sizeof *l);
  const struct daemon_entry *e = sessions_find(ss, id);
  *l = (struct list_ask){.store = *ss->env->store, .heads = xcalloc(1, sizeof *l->heads)};
  memcpy(l->id, id, sizeof l->id);
  l->standing = xcalloc(1, sizeof *l->standing);
  if (e != NULL)
    take_one(l, ss, e, entry_position(e));
  read_job_take(rs, r, list_api_one_work, list_api_drop, l);
}

/* --- the inbox --- */

struct inbox_live { /* a session whose state in memory is newer than its log */
  char id[STORE_ID_BYTES];
  struct summary summary; /* its questions, and what belongs to them */
};

struct inbox_ask {
  struct store store;
  struct inbox_live *running;
  size_t count;
};

static const struct summary *inbox_running(void *ctx, const char *id) {
  const struct inbox_ask *ask = ctx;
  for (size_t i = 0; i < ask->count; i++)
    if (strcmp(ask->running[i].id, id) == 0)
      return &ask->running[i].summary;
  return NULL;
}

static void inbox_work(void *ctx, struct read_job_answer *answer) {
  struct inbox_ask *ask = ctx;
  json_t *list = inbox_list(&ask->store, inbox_running, ask, &answer->err);
  if (list == NULL) {
    answer->status = 500;
    return;
  }
  json_auto_t *page = json_pack("{so}", "inbox", list);
  json_write(page, &answer->body);
}

static void inbox_drop(void *ctx) {
  struct inbox_ask *ask = ctx;
  for (size_t i = 0; i < ask->count; i++)
    summary_deinit(&ask->running[i].summary);
  free(ask->running);
  free(ask);
}

void list_api_take_inbox(struct read_jobs *rs, struct server_request *r,
                         const struct sessions *ss) {
  const struct list *running = &ss->lists[LIST_RUNNING];
  struct inbox_ask *ask = xmalloc(sizeof *ask);
  *ask = (struct inbox_ask){.store = *ss->env->store};
  ask->running = xcalloc(running->count + 1, sizeof *ask->running);
  LIST_EACH(struct daemon_entry, e, in_state, (struct list *)running) {
    struct inbox_live *one = &ask->running[ask->count];
    if (e->session == NULL)
      continue;
    ask->count++;
    memcpy(one->id, e->id, sizeof one->id);
    one->summary.questions = json_clone(e->summary.questions);
    one->summary.spent = json_clone(e->summary.spent);
    one->summary.workflow = e->summary.workflow != NULL ? xstrdup(e->summary.workflow) : NULL;
  }
  read_job_take(rs, r, inbox_work, inbox_drop, ask);
}

/* --- what a session changed --- */

struct session_diff_job {
  struct read_jobs *rs;
  struct server_request *request; /* NULL: its client has left */
  struct store_ref ref;
  struct trees trees;
  struct tree_diff lines; /* borrows from trees */
  bool known, last;       /* there are changes; git is asked for them now */
  struct git git;
  struct session_diff_ask how;
  size_t bytes; /* of what git told */
  uint64_t sound;
  struct err damage,
      unread; /* with a code: what the log lacks, why nothing is known of its trees */
};

static void session_diff_drop(void *what) {
  struct session_diff_job *job = what;
  git_deinit(&job->git);
  tree_diff_deinit(&job->lines);
  trees_deinit(&job->trees);
  free(job);
}

static void session_diff_over(struct session_diff_job *job, struct str diff, bool cut,
                              const char *why) {
  const char *damage = job->damage.code != ERR_NONE ? job->damage.text : NULL;
  const struct session_diff difference = {.diff = diff,
                                          .cut = cut,
                                          .bytes = job->bytes,
                                          .more_files = job->trees.more_paths || job->lines.more,
                                          .why = why,
                                          .sound = job->sound,
                                          .damage = damage};
  read_jobs_end_more(job->rs);
  if (job->request != NULL)
    job->how.done(job->how.ctx, job->request, &difference);
  session_diff_drop(job);
}

static void session_diff_next(struct session_diff_job *job);

static void session_diff_on_answer(void *ctx, struct git_answer *answer) {
  struct session_diff_job *job = ctx;
  buf_auto_t diff = {0};
  size_t max = job->how.all ? LIMIT_TREE_DIFF_ALL_BYTES : LIMIT_TREE_DIFF_BYTES;
  if (job->request != NULL && answer->ran && !job->last) {
    tree_diff_take(&job->lines, answer);
    session_diff_next(job);
    return;
  }
  bool cut = trees_take_diff(answer, job->how.from, max, &diff) || job->trees.more_paths;
  job->bytes = answer->exit == 0 ? answer->out.n : 0;
  session_diff_over(job, buf_view(&diff), cut, answer->ran ? NULL : buf_c(&answer->err));
}

static void session_diff_next(struct session_diff_job *job) {
  static const char *const options[] = {"--no-color", NULL};
  struct git_ask ask;
  struct err err;
  job->last = !tree_diff_next(&job->lines, &ask);
  if (job->last)
    tree_diff_ask(&job->lines, options, &ask);
  if (!git_ask(&job->git, &ask, session_diff_on_answer, job, &err))
    session_diff_over(job, STR(""), false, err.text);
}

static void session_diff_on_gone(void *ctx) {
  struct session_diff_job *job = ctx;
  job->request = NULL;
  git_cancel(&job->git);
}

static void session_diff_ask(void *what, struct server_request *r) {
  struct session_diff_job *job = what;
  job->request = r;
  read_jobs_begin_more(job->rs);
  server_keep(r, session_diff_on_gone, job);
  if (job->unread.code != ERR_NONE)
    session_diff_over(job, STR(""), false, job->unread.text);
  else if (!job->known)
    session_diff_over(job, STR(""), false, NULL);
  else if (job->git.processes == NULL)
    session_diff_over(job, STR(""), false, "no program can be run here");
  else
    session_diff_next(job);
}

static void session_diff_check(struct session_diff_job *job) {
  AUTO(verified_close) struct verified_reader book = {0};
  struct err ignored; /* who reads the trees says so */
  if (!verified_open(&book, &job->ref, false, &ignored))
    return;
  verified_rest(&book);
  job->sound = book.records;
  if (book.state == VERIFIED_DAMAGED)
    job->damage = book.damage;
}

static void session_diff_read(void *what, struct read_job_answer *answer) {
  struct session_diff_job *job = what;
  answer->hand_on = session_diff_ask;
  if (job->how.checks)
    session_diff_check(job);
  struct err err = {0};
  bool ok = trees_read(&job->trees, &job->ref, &err);
  job->known = ok && tree_diff_begin(&job->lines, &job->trees, &job->unread);
  if (ok)
    return;
  if (job->damage.code != ERR_NONE) { /* a page says that, and gives this as the reason */
    job->unread = err;
    return;
  }
  answer->err = err;
  answer->status = err.code == ERR_NOT_FOUND ? 404 : 500;
}

void session_diff_take(struct read_jobs *rs, const struct session_diff_ask *ask,
                       struct server_request *r, const struct store_ref *ref) {
  assert(ask->done != NULL);
  struct session_diff_job *job = xcalloc(1, sizeof *job);
  job->rs = rs;
  job->ref = *ref;
  job->how = *ask;
  git_begin(&job->git, ask->processes);
  read_job_take(rs, r, session_diff_read, session_diff_drop, job);
}

enum { FIND_BYTES = 401, REF_BYTES = 256 };

const char *const session_api_page_query[] = {"after", "limit", NULL};
const char *const session_api_text_query[] = {"ref", "offset", "limit", NULL};
const char *const session_api_find_query[] = {"text", NULL};

struct looking {
  struct store_ref ref, other; /* other: the second of the two being compared */
  const struct store *store;   /* of the two, whose words `text` and `place` are then */
  struct record_index *track;  /* borrowed while it is read; NULL: the log itself */
  enum session_api what;
  long number, after, limit;
  char text[FIND_BYTES];
  char place[REF_BYTES];
};

static json_t *look_turns(const struct looking *l) {
  const struct view_session *v = &l->track->view;
  json_auto_t *all = view_session_json(v);
  json_t *turns = json_object_get(all, "turns"), *list = json_array();
  long last = 0;
  bool more = false;
  JSON_EACH(turns, i, turn) {
    long number = (long)json_integer_value(json_at(turn, "turn"));
    if (number <= l->after)
      continue;
    more = (long)json_array_size(list) == l->limit;
    if (more)
      break;
    json_array_append(list, turn);
    last = number;
  }
  return json_pack("{so so}", "turns", list, "next", more ? json_integer(last) : json_null());
}

static json_t *look_integrity(const struct looking *l, struct err *err) {
  struct verify_result r;
  struct verification *verification = verification_new(err);
  bool ok = verification != NULL && verification_read(verification, &l->ref, &r, err);
  verification_free(verification);
  if (!ok)
    return NULL;
  bool sound = r.state == VERIFY_COMPLETE || r.state == VERIFY_OPEN || r.state == VERIFY_EMPTY;
  json_t *out = json_pack("{ss sb ss sI sb}", "session", r.session, "ok", sound, "state",
                          verify_state_name(r.state), "records", (json_int_t)r.records, "sealed",
                          r.seal != VERIFY_UNSEALED);
  if (r.state == VERIFY_TORN)
    json_put(out, "torn_bytes", json_integer((json_int_t)r.torn_bytes));
  if (r.state == VERIFY_BAD) {
    json_put(out, "bad_record", json_integer((json_int_t)r.bad_record));
    json_put(out, "error", json_text(str_from(r.why.text)));
  }
  return out;
}

static json_t *session_api_value(const struct looking *l, struct err *err) {
  if (l->track != NULL && !record_index_read(l->track, err))
    return NULL;
  switch (l->what) {
  case SESSION_API_VIEW:
    return view_session_json(&l->track->view);
  case SESSION_API_TURNS:
    return look_turns(l);
  case SESSION_API_TURN: {
    struct view_judgment told;
    if (!view_judgment_read(&told, &l->track->book, l->number, LIMIT_LOOKUP_TEXT_BYTES,
                            LIMIT_LOOKUP_TEXT_BYTES, err))
      return NULL;
    json_t *view = view_judgment_json(&told);
    view_judgment_deinit(&told);
    return view;
  }
  case SESSION_API_CALL:
    return view_call_json(&l->track->book, l->number, LIMIT_LOOKUP_PAGE_BYTES, err);
  case SESSION_API_TEXT:
    return view_text_json(&l->track->book, l->place, (size_t)l->after, (size_t)l->limit, err);
  case SESSION_API_RECORDS:
    return view_raws_json(&l->track->book, (uint64_t)l->after, (size_t)l->limit,
                          LIMIT_LOOKUP_PAGE_BYTES, err);
  case SESSION_API_FIND: {
    struct view_search found;
    if (!view_search_read(&found, &l->track->book, str_from(l->text), LIMIT_WINDOW_FOUND_COUNT,
                          err))
      return NULL;
    json_t *out = view_search_json(&found);
    view_search_deinit(&found);
    return out;
  }
  case SESSION_API_INTEGRITY:
    break;
  }
  return look_integrity(l, err);
}

static void session_api_answer(struct read_job_answer *answer, json_t *value) {
  if (value == NULL) {
    answer->status = 500;
    if (answer->err.code == ERR_NOT_FOUND)
      answer->status = 404;
    else if (answer->err.code == ERR_USAGE)
      answer->status = 400;
    return;
  }
  json_write(value, &answer->body);
  json_decref(value);
}

static void session_api_work(void *what, struct read_job_answer *answer) {
  session_api_answer(answer, session_api_value(what, &answer->err));
}

static bool compare_find(const struct looking *l, const char *word, struct store_ref *ref,
                         struct err *err) {
  char id[STORE_ID_BYTES];
  if (!status_snapshot_find(l->store, word, id, err))
    return err_set(err, ERR_NOT_FOUND, "there is no session %.80s", word);
  store_ref(l->store, id, ref);
  return true;
}

static void compare_work(void *what, struct read_job_answer *answer) {
  struct looking *l = what;
  AUTO(compare_side_deinit) struct compare_side a = {0}, b = {0};
  json_t *told = NULL;
  size_t count;
  struct err *err = &answer->err;
  if (compare_find(l, l->text, &l->ref, err) && compare_find(l, l->place, &l->other, err) &&
      compare_log(&a, &l->ref, err) && compare_sound(&a, err) && compare_log(&b, &l->other, err) &&
      compare_sound(&b, err)) {
    struct compare_row *rows = compare_align(&a, &b, &count);
    told = compare_json(&a, &b, rows, count);
    free(rows);
  }
  session_api_answer(answer, told);
}

/* --- requests --- */

/* str_to_long takes eighteen digits. */
static const long LOOK_MOST = 999999999999999999;

/* Returns false if it has answered the request. */
static bool session_api_number(struct server_request *r, const char *name, long least, long most,
                               long *number) {
  const char *given = server_query(r, name);
  if (given == NULL)
    return true;
  if (str_to_long(str_from(given), number) && *number >= least && *number <= most)
    return true;
  server_problem(r, 400, NULL, "%s must be a number from %ld to %ld", name, least, most);
  return false;
}

static bool look_numbered(struct server_request *r, struct looking *l, const char *what) {
  const char *word = server_part2(r);
  if (str_to_long(str_from(word), &l->number) && l->number > 0)
    return true;
  server_problem(r, 404, NULL, "\"%s\" is not the number of a %s", word, what);
  return false;
}

static bool look_word(struct server_request *r, const char *name, char *out, size_t size) {
  const char *given = server_query(r, name);
  if (given != NULL && given[0] != '\0' && strlen(given) < size) {
    memcpy(out, given, strlen(given) + 1);
    return true;
  }
  server_problem(r, 400, NULL, "give %s, of up to %zu bytes", name, size - 1);
  return false;
}

static bool look_asked(struct server_request *r, struct looking *l) {
  switch (l->what) {
  case SESSION_API_TURN:
    return look_numbered(r, l, "turn");
  case SESSION_API_CALL:
    return look_numbered(r, l, "call");
  case SESSION_API_TURNS:
  case SESSION_API_RECORDS:
    l->limit = 100;
    return session_api_number(r, "after", 0, LOOK_MOST, &l->after) &&
           session_api_number(r, "limit", 1, LIMIT_API_PAGE_COUNT, &l->limit);
  case SESSION_API_TEXT:
    l->limit = 64L * 1024;
    return look_word(r, "ref", l->place, sizeof l->place) &&
           session_api_number(r, "offset", 0, LOOK_MOST, &l->after) &&
           session_api_number(r, "limit", 1, LIMIT_LOOKUP_TEXT_BYTES, &l->limit);
  case SESSION_API_FIND:
    return look_word(r, "text", l->text, sizeof l->text);
  case SESSION_API_VIEW:
  case SESSION_API_INTEGRITY:
    break;
  }
  return true;
}

void session_api_take(struct read_jobs *rs, struct server_request *r, struct view_cache *view_cache,
                      const struct store_ref *ref, enum session_api what) {
  struct looking *l = xcalloc(1, sizeof *l);
  l->ref = *ref;
  l->what = what;
  if (!look_asked(r, l)) {
    free(l);
    return;
  }
  struct view_cache_item *item =
      what != SESSION_API_INTEGRITY ? view_cache_find(view_cache, ref) : NULL;
  l->track = item != NULL ? item->track : NULL;
  read_job_take_of(rs, r, item, session_api_work, free, l);
}

void session_api_compare(struct read_jobs *rs, struct server_request *r, const struct store *store,
                         const char *a, const char *b) {
  struct looking *l = xcalloc(1, sizeof *l);
  l->store = store;
  print_into(l->text, sizeof l->text, "%s", a);
  print_into(l->place, sizeof l->place, "%s", b);
  read_job_take(rs, r, compare_work, free, l);
}
