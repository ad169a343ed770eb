/* Counts what a user's sessions use in a day. */
#include "host/daily_usage.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"
#include "format/json_object.h"
#include "host/paths.h"
#include "os/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* --- the budget of a day ---
 *
 * Reads `budget` of the user's configuration: what all of this user's sessions
 * together, and single providers, may use in a day.
 *
 *   budget:
 *     day: {tokens: 2000000, cost: 20, time: 8h, calls: 500}
 *     providers: {claude: {cost: 10}}          also for a day
 *     store: {day: {cost: 50}}                 all sessions of a store, whoever runs them
 *     folders: {~/api: {day: {cost: 10}}}      those that were begun there or below
 *
 *   limits = day_set_read(path, node, &err)     checked, each error at its place
 *   day_set_keep(registry, limits)              takes it; it is freed with the registry
 *   day_set_of(registry)                        NULL: days are not bounded
 *
 * Units are those of core/budget.h, without movements. */

static const char *const day_units[] = {"tokens", "cost", "time", "calls", NULL};

static bool day_unit_check(const char *path, const struct yaml_pair *pair, struct err *err) {
  static const char *const wanted[] = {"it must be a whole number of tokens, 1 or more",
                                       "it must be a number of US dollars above 0, such as 20",
                                       "it must be a duration of 1ms to 24h, such as 8h",
                                       "it must be a whole number of calls, 1 or more"};
  size_t i = 0;
  while (day_units[i] != NULL && !str_eq_c(pair->key->text, day_units[i]))
    i++;
  if (day_units[i] == NULL) {
    const char *near = str_nearest(pair->key->text, day_units);
    return yaml_unknown(err, path, pair->key, "a day's budget has no", near,
                        "use tokens, cost, time or calls");
  }
  struct budget budget;
  json_t *one = json_object(), *value = yaml_to_json(pair->value);
  json_object_set_new(one, day_units[i], value);
  budget_read(one, &budget);
  json_decref(one);
  static const enum budget_unit units[] = {BUDGET_TOKENS, BUDGET_COST, BUDGET_TIME, BUDGET_CALLS};
  return budget.limit[units[i]] > 0 || yaml_wrong(err, path, pair->value, "%s", wanted[i]);
}

static bool day_amounts_check(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP || node->count == 0)
    return yaml_wrong(
        err, path, node,
        "it must be a map of what may be used in a day, such as {tokens: 2000000, cost: 20}");
  for (size_t i = 0; i < node->count; i++)
    if (!day_unit_check(path, &node->pairs[i], err))
      return false;
  return true;
}

/* Checks {day: AMOUNTS}. */
static bool day_check(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP || node->count != 1 || !str_eq_c(node->pairs[0].key->text, "day"))
    return yaml_wrong(err, path, node, "it must say what may be used in a day: {day: {cost: 10}}");
  return day_amounts_check(path, node->pairs[0].value, err);
}

/* Checks a map of names, or of folders, to amounts. */
static bool day_names_check(const char *path, const struct yaml_node *node, bool folders,
                            struct err *err) {
  if (node->kind != YAML_MAP && folders)
    return yaml_wrong(err, path, node,
                      "folders must be a map of folders to what may be used in a day, such as "
                      "{~/api: {day: {cost: 10}}}");
  if (node->kind != YAML_MAP)
    return yaml_wrong(err, path, node,
                      "providers must be a map of names to what each may use in a day, such as "
                      "{claude: {cost: 10}}");
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_pair *pair = &node->pairs[i];
    if (folders && !str_starts(pair->key->text, "/") && !str_starts(pair->key->text, "~/"))
      return yaml_wrong(err, path, pair->key, "it must be an absolute path, or begin with ~/");
    if (!(folders ? day_check : day_amounts_check)(path, pair->value, err))
      return false;
  }
  return true;
}

json_t *day_set_read(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP) {
    (void)yaml_wrong(err, path, node,
                     "budget must be a map: {day: {tokens: 2000000, cost: 20}, providers: "
                     "{claude: {cost: 10}}}");
    return NULL;
  }
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_pair *pair = &node->pairs[i];
    bool ok, folders = str_eq_c(pair->key->text, "folders");
    if (str_eq_c(pair->key->text, "day"))
      ok = day_amounts_check(path, pair->value, err);
    else if (folders || str_eq_c(pair->key->text, "providers"))
      ok = day_names_check(path, pair->value, folders, err);
    else if (str_eq_c(pair->key->text, "store"))
      ok = day_check(path, pair->value, err);
    else
      ok = yaml_wrong(err, path, pair->key,
                      "budget in a configuration has day, providers, store and folders: write "
                      "{day: {cost: 20}}");
    if (!ok)
      return NULL;
  }
  return yaml_to_json(node);
}

static void day_limits_free(void *owned) {
  struct day_limits *limits = owned;
  for (size_t i = 0; i < limits->count; i++) {
    free(limits->of[i].name);
    free(limits->of[i].folder);
  }
  free(limits->of);
  free(limits);
}

static void add_limit(struct day_limits *limits, enum budget_of of, const char *name,
                      const json_t *amounts) {
  struct day_limit *limit = &limits->of[limits->count++];
  *limit = (struct day_limit){.of = of, .name = xstrdup(name)};
  budget_read(amounts, &limit->budget);
  if (of != BUDGET_OF_FOLDER)
    return;
  const char *home = getenv("HOME");
  buf_auto_t path = {0};
  buf_printf(&path, "%s%s", name[0] == '~' && home != NULL ? home : "", name + (name[0] == '~'));
  limit->folder = realpath(buf_c(&path), NULL); /* sessions have real paths */
  if (limit->folder == NULL)
    limit->folder = buf_take(&path);
  for (size_t n = strlen(limit->folder); n > 1 && limit->folder[n - 1] == '/'; n--)
    limit->folder[n - 1] = '\0';
}

void day_set_keep(struct provider_registry *registry, const json_t *budget) {
  const json_t *of = json_at(budget, "providers"), *folders = json_at(budget, "folders");
  const json_t *store = json_at(json_at(budget, "store"), "day");
  if (json_object_size(budget) == 0)
    return;
  struct day_limits *limits = xcalloc(1, sizeof *limits);
  budget_read(json_at(budget, "day"), &limits->all);
  limits->of = xcalloc(json_object_size(of) + json_object_size(folders) + 1, sizeof *limits->of);
  JSON_MEMBERS(of, name, one)
    add_limit(limits, BUDGET_OF_DAY, name, one);
  if (store != NULL)
    add_limit(limits, BUDGET_OF_STORE, "", store);
  JSON_MEMBERS(folders, folder, day)
    add_limit(limits, BUDGET_OF_FOLDER, folder, json_at(day, "day"));
  registry_keep(registry, limits, day_limits_free);
}

const struct day_limits *day_set_of(const struct provider_registry *registry) {
  return registry_kept(registry, day_limits_free);
}

/* --- daily_usage --- */

enum { DAY_NAME_BYTES = 16, DAY_LINE_BYTES = 256, DAY_KEY_BYTES = 160, SOFT_OF = 5 };
static const char store_prefix[] = "store:", folder_prefix[] = "folder:"; /* no name has a colon */
static const int64_t day_most = (int64_t)1 << 50;

void daily_usage_init(struct daily_usage *book) {
  *book = (struct daily_usage){0};
}

void daily_usage_deinit(struct daily_usage *book) {
  if (book->fd > 0)
    (void)close(book->fd);
  for (size_t i = 0; i < book->count; i++)
    free(book->sums[i].provider);
  free(book->sums);
  *book = (struct daily_usage){0};
}

static struct day_sum *sum_of(struct daily_usage *book, struct str provider, bool make) {
  for (size_t i = 0; i < book->count; i++)
    if (str_eq_c(provider, book->sums[i].provider))
      return &book->sums[i];
  if (!make)
    return NULL;
  book->sums = xrealloc(book->sums, (book->count + 1) * sizeof *book->sums);
  book->sums[book->count] = (struct day_sum){.provider = xstrndup(provider.p, provider.n)};
  return &book->sums[book->count++];
}

static void sum_add(struct day_sum *sum, const int64_t used[BUDGET_UNITS]) {
  for (int u = 0; u < BUDGET_UNITS; u++)
    if (used[u] > 0 && used[u] < day_most && sum->used[u] < day_most)
      sum->used[u] += used[u];
}

/* name: a provider, or the key of a store or a folder, for which its use is counted, too. */
static void book_take(struct daily_usage *book, struct str name, const int64_t used[BUDGET_UNITS]) {
  sum_add(sum_of(book, name, true), used);
  if (!str_starts(name, store_prefix) && !str_starts(name, folder_prefix))
    sum_add(sum_of(book, STR(""), true), used);
}

bool day_limit_counts(const struct day_limit *limit, const struct day_call *call) {
  size_t n = limit->folder != NULL ? strlen(limit->folder) : 0;
  if (limit->of != BUDGET_OF_FOLDER)
    return limit->of == BUDGET_OF_STORE;
  return call->folder != NULL && strncmp(call->folder, limit->folder, n) == 0 &&
         (call->folder[n] == '\0' || call->folder[n] == '/' || n == 1);
}

/* Writes the key under which a limit's sum is kept. Returns false if it does not count for the
 * call. A path becomes a hash: it may hold anything, and a line of the book is short. */
static bool limit_key(const struct day_limit *limit, const struct day_call *call,
                      char out[DAY_KEY_BYTES]) {
  char sha256[SHA256_HEX];
  char_auto_t *store = NULL;
  const char *path = limit->folder;
  if (limit->of == BUDGET_OF_DAY) {
    print_into(out, DAY_KEY_BYTES, "%s", limit->name);
    return str_eq_c(call->provider, limit->name);
  }
  const char *kept = store_folder(call->store);
  if ((call->store != NULL && kept == NULL) || !day_limit_counts(limit, call))
    return false;
  if (limit->of == BUDGET_OF_STORE) {
    store = kept != NULL ? realpath(kept, NULL) : NULL; /* however each process names it */
    path = store != NULL ? store : kept;
  }
  if (path == NULL)
    return false;
  sha256_hex(path, strlen(path), "", 0, sha256);
  print_into(out, DAY_KEY_BYTES, "%s%.32s",
             limit->of == BUDGET_OF_STORE ? store_prefix : folder_prefix, sha256);
  return true;
}

/* --- the file --- */

static bool is_old(const char *name, const char *oldest) {
  int year, month, day, n = 0;
  return sscanf(name, "%4d-%2d-%2d%n", &year, &month, &day, &n) == 3 && name[n] == '\0' &&
         strcmp(name, oldest) < 0;
}

static void book_remove_old(const char *folder, int64_t now_ms) {
  char oldest[DAY_NAME_BYTES], path[PATHS_BYTES + DAY_NAME_BYTES + 8];
  time_t then = (time_t)(now_ms / 1000) - (time_t)LIMIT_DAY_BOOK_KEPT * 24 * 60 * 60;
  struct tm parts;
  DIR *dir = opendir(folder);
  if (dir == NULL)
    return;
  (void)localtime_r(&then, &parts);
  (void)strftime(oldest, sizeof oldest, "%Y-%m-%d", &parts);
  for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
    if (is_old(e->d_name, oldest)) {
      print_into(path, sizeof path, "%s/%.15s", folder, e->d_name);
      (void)unlink(path);
    }
  (void)closedir(dir);
}

/* Opens today's file, once a day. */
static void book_turn(struct daily_usage *book) {
  int64_t now_ms = clock_real_ms();
  char folder[PATHS_BYTES], name[DAY_NAME_BYTES], path[PATHS_BYTES + DAY_NAME_BYTES + 8];
  struct err err;
  struct tm parts;
  time_t now = (time_t)(now_ms / 1000);
  if (book->ends_ms > 0 && now_ms < book->ends_ms)
    return;
  daily_usage_deinit(book);
  (void)localtime_r(&now, &parts);
  (void)strftime(name, sizeof name, "%Y-%m-%d", &parts);
  parts.tm_mday++;
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  parts.tm_isdst = -1;
  time_t ends = mktime(&parts);
  book->ends_ms = ends > now ? (int64_t)ends * 1000 : now_ms + LIMIT_DISK_RETRY_MS;
  if (!paths_state("spent", folder, &err))
    return;
  print_into(path, sizeof path, "%s/%s", folder, name);
  int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    log_warn("%s: %s: daily budgets count only this process", path, strerror(errno));
    return;
  }
  book->fd = fd;
  book_remove_old(folder, now_ms);
}

/* Reads a line "tokens nanodollars milliseconds calls provider". */
static void book_read_line(struct daily_usage *book, struct str line) {
  int64_t used[BUDGET_UNITS] = {0};
  int at = 0;
  char text[DAY_LINE_BYTES];
  if (line.n == 0 || line.n >= sizeof text)
    return;
  print_into(text, sizeof text, STR_FMT, STR_ARG(line));
  if (sscanf(text, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n", &used[BUDGET_TOKENS],
             &used[BUDGET_COST], &used[BUDGET_TIME], &used[BUDGET_CALLS], &at) == 4 &&
      at > 0 && text[at] != '\0')
    book_take(book, str_from(text + at), used);
}

static void book_read(struct daily_usage *book) {
  book_turn(book);
  while (book->fd > 0) {
    ssize_t n = pread(book->fd, book->tail + book->tail_bytes, sizeof book->tail - book->tail_bytes,
                      book->at);
    if (n <= 0)
      return;
    book->at += n;
    book->tail_bytes += (size_t)n;
    char *from = book->tail, *end;
    size_t left = book->tail_bytes;
    while ((end = memchr(from, '\n', left)) != NULL) {
      book_read_line(book, (struct str){from, (size_t)(end - from)});
      left -= (size_t)(end + 1 - from);
      from = end + 1;
    }
    bool foreign = left == sizeof book->tail; /* no line of ours is that long */
    book->tail_bytes = foreign ? 0 : left;
    memmove(book->tail, from, book->tail_bytes);
  }
}

/* Brings to the disk all that the book says of earlier calls, before another one starts because of
 * it: after a power failure the day's budget is not spent again. Others' lines are synced, too. */
static void book_sync(struct daily_usage *book) {
  if (book->fd <= 0 || book->synced == book->at)
    return;
  book->synced = book->at;
  if (fsync(book->fd) != 0)
    log_warn("the day's sums of what was used cannot be synced: %s", strerror(errno));
}

static bool book_leaves_out(struct str provider) {
  return str_eq_c(provider, "command");
}

/* Adds to one sum: a line of its own, or to this process alone if that cannot be written. */
static void book_put(struct daily_usage *book, struct str name, const int64_t used[BUDGET_UNITS],
                     struct buf *lines) {
  if (book->fd <= 0 || name.n >= DAY_KEY_BYTES)
    book_take(book, name, used);
  else
    buf_printf(lines, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " " STR_FMT "\n",
               used[BUDGET_TOKENS], used[BUDGET_COST], used[BUDGET_TIME], used[BUDGET_CALLS],
               STR_ARG(name));
}

static void book_add(struct daily_usage *book, const struct day_limits *limits,
                     const struct day_call *call, const int64_t used[BUDGET_UNITS]) {
  char key[DAY_KEY_BYTES];
  buf_auto_t lines = {0};
  book_put(book, call->provider, used, &lines);
  for (size_t i = 0; limits != NULL && i < limits->count; i++)
    if (limits->of[i].of != BUDGET_OF_DAY && limit_key(&limits->of[i], call, key))
      book_put(book, str_from(key), used, &lines);
  if (lines.n == 0 || write(book->fd, lines.p, lines.n) == (ssize_t)lines.n)
    return; /* it is read back like the others' */
  struct str rest = buf_view(&lines);
  while (rest.n > 0)
    book_read_line(book, str_next_line(&rest));
}

void daily_usage_add(struct daily_usage *book, const struct day_limits *limits,
                     const struct day_call *call, const int64_t used[BUDGET_UNITS]) {
  if (book_leaves_out(call->provider))
    return;
  book_turn(book);
  book_add(book, limits, call, used);
}

/* --- limits --- */

/* Finds the first unit of a limit that is reached, or near. */
static bool find_reached_limit(struct daily_usage *book, const struct budget *budget,
                               const char *key, bool begun, bool near, struct budget_hit *hit) {
  struct day_sum *sum = sum_of(book, str_from(key), false);
  for (int u = 0; sum != NULL && u < BUDGET_UNITS; u++) {
    int64_t limit = budget->limit[u];
    bool used = near ? sum->used[u] >= limit - limit / SOFT_OF : sum->used[u] >= limit;
    if (limit <= 0 || !used || (begun && u == BUDGET_CALLS) || (near && sum->told[u]))
      continue;
    sum->told[u] = sum->told[u] || near;
    hit->unit = (enum budget_unit)u;
    hit->used = sum->used[u];
    hit->limit = limit;
    return true;
  }
  return false;
}

static bool day_hits(struct daily_usage *book, const struct day_limits *limits,
                     const struct day_call *call, bool begun, bool near, struct budget_hit *hit) {
  char key[DAY_KEY_BYTES];
  if (limits == NULL || book_leaves_out(call->provider))
    return false;
  book_read(book);
  *hit = (struct budget_hit){.of = BUDGET_OF_DAY};
  bool hits = find_reached_limit(book, &limits->all, "", begun, near, hit);
  for (size_t i = 0; !hits && i < limits->count; i++)
    if (limit_key(&limits->of[i], call, key)) {
      hit->of = limits->of[i].of;
      hit->provider = str_from(limits->of[i].name);
      hits = find_reached_limit(book, &limits->of[i].budget, key, begun, near, hit);
    }
  return hits;
}

bool daily_usage_refuses(struct daily_usage *book, const struct day_limits *limits,
                         const struct day_call *call, struct budget_hit *hit) {
  bool refuses = day_hits(book, limits, call, true, false, hit);
  if (!refuses && limits != NULL)
    book_sync(book);
  return refuses;
}

bool daily_usage_take(struct daily_usage *book, const struct day_limits *limits,
                      const struct day_call *call, struct budget_hit *hit) {
  static const int64_t one[BUDGET_UNITS] = {[BUDGET_CALLS] = 1};
  if (limits == NULL || book_leaves_out(call->provider))
    return false;
  book_turn(book);
  bool locked = book->fd > 0 && flock(book->fd, LOCK_EX) == 0;
  bool refuses = day_hits(book, limits, call, false, false, hit);
  if (!refuses) {
    book_add(book, limits, call, one);
    book_read(book); /* its own line, too, which is synced before the call */
  }
  if (locked)
    (void)flock(book->fd, LOCK_UN);
  if (!refuses)
    book_sync(book);
  return refuses;
}

bool daily_usage_near(struct daily_usage *book, const struct day_limits *limits,
                      const struct day_call *call, struct budget_hit *hit) {
  return day_hits(book, limits, call, false, true, hit);
}

void daily_usage_used(struct daily_usage *book, struct str provider, int64_t used[BUDGET_UNITS]) {
  book_read(book);
  const struct day_sum *sum = sum_of(book, provider, false);
  for (int u = 0; u < BUDGET_UNITS; u++)
    used[u] = sum != NULL ? sum->used[u] : 0;
}

static void put_day_limits(const struct budget *budget, const int64_t used[BUDGET_UNITS],
                           struct budget_hit hit, json_t *list) {
  for (int u = 0; u < BUDGET_UNITS; u++)
    if (budget->limit[u] > 0) {
      hit.unit = (enum budget_unit)u;
      hit.used = used[u];
      hit.limit = budget->limit[u];
      json_array_append_new(list, budget_json(&hit));
    }
}

static void add_day_limits(struct daily_usage *book, const struct budget *budget, const char *key,
                           struct budget_hit hit, json_t *list) {
  int64_t used[BUDGET_UNITS];
  daily_usage_used(book, str_from(key), used);
  put_day_limits(budget, used, hit, list);
}

void day_limit_json(const struct day_limit *limit, const json_t *spent, json_t *list) {
  int64_t used[BUDGET_UNITS] = {0};
  if (limit->of == BUDGET_OF_DAY)
    return;
  JSON_EACH(spent, i, one)
    for (int u = 0; u < BUDGET_MOVEMENTS && strcmp(json_word_at(one, "cap"), limit->name) == 0;
         u++) {
      const json_t *n = json_object_get(one, budget_unit_name((enum budget_unit)u));
      used[u] = (int64_t)(json_number_value(n) * (u == BUDGET_COST ? BUDGET_NANO : 1) + 0.5);
    }
  put_day_limits(&limit->budget, used,
                 (struct budget_hit){.of = limit->of, .provider = str_from(limit->name)}, list);
}

json_t *daily_usage_json(struct daily_usage *book, const struct day_limits *limits,
                         const struct store *store) {
  json_t *list = json_array();
  if (limits == NULL)
    return list;
  add_day_limits(book, &limits->all, "", (struct budget_hit){.of = BUDGET_OF_DAY}, list);
  for (size_t i = 0; i < limits->count; i++) {
    const struct day_limit *limit = &limits->of[i];
    const struct day_call call = {str_from(limit->name), store, limit->folder};
    const struct budget_hit hit = {.of = limit->of, .provider = call.provider};
    char key[DAY_KEY_BYTES];
    if (limit_key(limit, &call, key))
      add_day_limits(book, &limit->budget, key, hit, list);
  }
  return list;
}
