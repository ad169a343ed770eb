/* Collects failing answers and groups them. */
#include "audit/flaws.h"

#include "audit/flaws_internal.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- forms --- */

const char *flaws_shape(struct str text) {
  text = str_trim(text);
  if (text.n == 0)
    return "empty";
  char begin = text.p[0], end = text.p[text.n - 1];
  if (begin == '{' || begin == '[')
    return end == begin + 2 ? "json" : "json_cut"; /* ASCII: '}' is '{' + 2, ']' is '[' + 2 */
  if (str_has(text, "```"))
    return "fenced";
  return memchr(text.p, '{', text.n) != NULL ? "json_in_prose" : "prose";
}

/* Appends "$.items[3].name" as "$.items[*].name". */
static void flaws_path(struct str path, struct buf *out) {
  for (size_t i = 0; i < path.n; i++) {
    buf_putc(out, path.p[i]);
    if (path.p[i] != '[' || i + 1 == path.n || path.p[i + 1] < '0' || path.p[i + 1] > '9')
      continue;
    buf_putc(out, '*');
    while (i + 1 < path.n && path.p[i + 1] >= '0' && path.p[i + 1] <= '9')
      i++;
  }
}

/* --- groups --- */

static char *flaw_copy(struct str s) {
  return xstrndup(s.p, s.n < LIMIT_AUDIT_NAME_BYTES ? s.n : LIMIT_AUDIT_NAME_BYTES);
}

static struct flaw_group *flaw_group_of(struct flaws *f, const struct flaw *flaw, struct str path,
                                        struct str keyword, struct str message) {
  struct buf key = {.max = 1024};
  uint32_t at = (uint32_t)f->count;
  buf_printf(&key, "%s\n" STR_FMT "\n" STR_FMT "\n%s", flaw->stage ? flaw->stage : "",
             STR_ARG(path), STR_ARG(keyword), flaw->shape);
  bool known = map_get(&f->map, buf_view(&key), &at);
  if (!known && f->count < LIMIT_AUDIT_FLAW_COUNT) {
    map_put(&f->map, &f->arena, buf_view(&key), at);
    if ((f->count & (f->count - 1)) == 0)
      f->groups = xrealloc(f->groups, (f->count ? f->count * 2 : 1) * sizeof *f->groups);
    struct flaw_group *g = &f->groups[f->count++];
    *g = (struct flaw_group){.path = flaw_copy(path),
                             .keyword = flaw_copy(keyword),
                             .shape = flaw->shape,
                             .message = flaw_copy(message)};
    g->stage = flaw->stage ? flaw_copy(str_from(flaw->stage)) : NULL;
    flaw_name(f->log, flaw, g->example, sizeof g->example);
    known = true;
  }
  buf_deinit(&key);
  return known ? &f->groups[at] : NULL;
}

static void count_error(struct flaws *f, const struct flaw *flaw, const json_t *error) {
  struct buf path = {0};
  f->errors++;
  flaws_path(json_view(json_at(error, "path")), &path);
  struct flaw_group *g =
      flaw_group_of(f, flaw, buf_view(&path), json_view(json_at(error, "keyword")),
                    json_view(json_at(error, "message")));
  buf_deinit(&path);
  if (g == NULL) {
    f->left_out++;
    return;
  }
  g->count++;
  if (g->last_seen != f->answers) {
    g->last_seen = f->answers;
    g->answers++;
  }
}

static bool flaw_is_wanted(const struct flaws *f, const struct flaw *flaw) {
  const struct census *c = f->census;
  return flaw->time_ms >= c->since_ms && census_wants(c, CENSUS_WORKFLOW, f->log->workflow) &&
         census_wants(c, CENSUS_OUTCOME, f->log->outcome) &&
         census_wants(c, CENSUS_MOVEMENT, flaw->movement) &&
         census_wants(c, CENSUS_PROVIDER, flaw->provider) &&
         census_wants(c, CENSUS_MODEL, flaw->model) &&
         (c->wanted[CENSUS_METHOD] == NULL || census_wants(c, CENSUS_METHOD, flaw->stage)) &&
         (c->wanted[CENSUS_WORKER] == NULL ||
          (flaw->stage == NULL && census_wants(c, CENSUS_WORKER, flaw->provider)));
}

static void count_flaw(struct flaws *f, const struct flaw *flaw) {
  size_t i;
  json_t *error;
  if (!flaw_is_wanted(f, flaw))
    return;
  f->answers++;
  json_array_foreach(flaw->errors, i, error) {
    count_error(f, flaw, error);
  }
  if (f->on_case != NULL) {
    json_t *item = flaw_case(f->log, flaw);
    f->on_case(f->ctx, item);
    json_decref(item);
  }
}

/* --- logs --- */

void flaws_read(struct flaws *f, const struct store_ref *ref) {
  struct flaw_log log;
  f->log = &log;
  enum rows_log state = flaw_log_read(&log, ref);
  f->logs[state]++;
  f->left_out += log.left_out;
  bool counts = state == ROWS_SOUND || state == ROWS_TORN;
  log.schemas = f->has_schemas ? &f->schemas : NULL;
  for (size_t i = 0; counts && i < log.flaw_count; i++)
    if (log.flaws[i].joint != NULL)
      flaw_split(&log, &log.flaws[i]);
  for (size_t i = 0; counts && i < log.flaw_count; i++)
    count_flaw(f, &log.flaws[i]);
  flaw_log_deinit(&log);
  f->log = NULL;
}

static void flaws_read_one(void *ctx, const struct store_ref *ref) {
  flaws_read(ctx, ref);
}

bool flaws_read_store(struct flaws *f, const struct store *store, struct err *err) {
  return store_each(store, f, flaws_read_one, err);
}

struct flaws *flaws_new(const struct census *census) {
  struct flaws *f = xcalloc(1, sizeof *f);
  assert(census != NULL);
  f->census = census;
  struct err err;
  f->has_schemas = chain_schemas_init(&f->schemas, &err);
  return f;
}

static int flaw_order(const void *a, const void *b) {
  const struct flaw_group *x = a, *y = b;
  if (x->count != y->count)
    return x->count < y->count ? 1 : -1;
  return strcmp(x->keyword, y->keyword) ? strcmp(x->keyword, y->keyword) : strcmp(x->path, y->path);
}

void flaws_sort(struct flaws *f) {
  if (f->count > 1)
    qsort(f->groups, f->count, sizeof *f->groups, flaw_order);
}

json_t *flaws_json(const struct flaws *f) {
  json_t *list = json_array(), *logs = json_object();
  for (size_t i = 0; i < f->count; i++) {
    const struct flaw_group *g = &f->groups[i];
    json_array_append_new(list, json_pack("{so so so ss sI sI so ss}", "stage",
                                          g->stage ? json_text(str_from(g->stage)) : json_null(),
                                          "path", json_text(str_from(g->path)), "keyword",
                                          json_text(str_from(g->keyword)), "shape", g->shape,
                                          "count", (json_int_t)g->count, "answers",
                                          (json_int_t)g->answers, "message",
                                          json_text(str_from(g->message)), "example", g->example));
  }
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    json_object_set_new(logs, rows_log_name((enum rows_log)i),
                        json_integer((json_int_t)f->logs[i]));
  return json_pack("{so s{sI sI sI so}}", "errors", list, "totals", "answers",
                   (json_int_t)f->answers, "errors", (json_int_t)f->errors, "left_out",
                   (json_int_t)f->left_out, "logs", logs);
}

void flaws_free(struct flaws *f) {
  if (f == NULL)
    return;
  for (size_t i = 0; i < f->count; i++) {
    free(f->groups[i].stage);
    free(f->groups[i].path);
    free(f->groups[i].keyword);
    free(f->groups[i].message);
  }
  free(f->groups);
  if (f->has_schemas)
    chain_schemas_deinit(&f->schemas);
  map_deinit(&f->map);
  arena_deinit(&f->arena);
  free(f);
}
