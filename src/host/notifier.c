/* Runs the program that receives notices. */
#include "host/notifier.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/movement_limits.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "store/notification.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- which notifications a user wants --- */

static const char *const notify_config_keys[] = {"command", "on", "env", "stall", "timeout", NULL};

static bool notify_config_words(json_t *set, const char *path, const struct yaml_node *node,
                                struct err *err) {
  static const char *const wanted = "notify must be a command as a list of words, such as "
                                    "[notify-send, segue], or a map with it: {command: [...]}";
  if (node->kind != YAML_LIST || node->count == 0 || node->count > LIMIT_NOTICE_WORDS)
    return yaml_wrong(err, path, node, "%s", wanted);
  for (size_t i = 0; i < node->count; i++)
    if (node->items[i]->kind == YAML_LIST || node->items[i]->kind == YAML_MAP ||
        (i == 0 && node->items[i]->text.n == 0))
      return yaml_wrong(err, path, node->items[i], "%s", wanted);
  json_t *words = json_array();
  for (size_t i = 0; i < node->count; i++)
    json_array_append_new(words, json_stringn(node->items[i]->text.p, node->items[i]->text.n));
  json_object_set_new(set, "command", words);
  return true;
}

static bool is_event(struct str word) {
  for (size_t i = 0; notification_events[i] != NULL; i++)
    if (str_eq_c(word, notification_events[i]))
      return true;
  return false;
}

static bool notify_config_on(json_t *set, const char *path, const struct yaml_node *node,
                             struct err *err) {
  if (node->kind != YAML_LIST || node->count == 0)
    return yaml_wrong(
        err, path, node,
        "on must be a list of events: question, stop, stall, limit, budget, end, start");
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (is_event(item->text))
      continue;
    const char *near = str_nearest(item->text, notification_events);
    return yaml_wrong(
        err, path, item,
        "\"%.40s\" is not an event: use question, stop, stall, limit, budget, end or start%s%s%s",
        item->text.p, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
  }
  json_object_set_new(set, "on", yaml_to_json(node));
  return true;
}

static bool read_duration(json_t *set, const char *key, const char *path,
                          const struct yaml_node *node, struct err *err) {
  struct err why = {0};
  if (!limits_check_duration(node->text, &why))
    return yaml_wrong(err, path, node, "it %.200s", why.text);
  json_object_set_new(set, key, json_integer(limits_duration_ms(node->text, 0)));
  return true;
}

static bool read_notice_key(json_t *set, const char *path, const struct yaml_pair *pair,
                            struct err *err) {
  struct str key = pair->key->text;
  if (str_eq_c(key, "command"))
    return notify_config_words(set, path, pair->value, err);
  if (str_eq_c(key, "on"))
    return notify_config_on(set, path, pair->value, err);
  if (str_eq_c(key, "env")) {
    if (pair->value->kind != YAML_LIST || pair->value->count > LIMIT_SECRET_COUNT)
      return yaml_wrong(err, path, pair->value,
                        "env must be a list of at most 32 names of variables");
    for (size_t i = 0; i < pair->value->count; i++)
      if (pair->value->items[i]->kind != YAML_TEXT || !str_is_variable(pair->value->items[i]->text))
        return yaml_wrong(err, path, pair->value->items[i],
                          "env takes names only: the values come from the environment");
    json_object_set_new(set, "env", yaml_to_json(pair->value));
    return true;
  }
  if (str_eq_c(key, "stall"))
    return read_duration(set, "stall_ms", path, pair->value, err);
  if (str_eq_c(key, "timeout"))
    return read_duration(set, "timeout_ms", path, pair->value, err);
  const char *near = str_nearest(key, notify_config_keys);
  return yaml_unknown(err, path, pair->key, "notify has no key", near,
                      "use command, on, env, stall or timeout");
}

static void set_defaults(json_t *set) {
  json_t *all = json_array();
  for (size_t i = 0; notification_events[i] != NULL; i++)
    json_array_append_new(all, json_string(notification_events[i]));
  json_t *defaults =
      json_pack("{so s[] sI sI}", "on", all, "env", "stall_ms", (json_int_t)LIMIT_NOTICE_STALL_MS,
                "timeout_ms", (json_int_t)LIMIT_NOTICE_RUN_MS);
  json_object_update_missing(set, defaults);
  json_decref(defaults);
}

json_t *notify_config_set_read(const char *path, const struct yaml_node *node, struct err *err) {
  json_t *set = json_object();
  bool ok = true;
  if (node->kind == YAML_MAP) {
    for (size_t i = 0; ok && i < node->count; i++)
      ok = read_notice_key(set, path, &node->pairs[i], err);
    if (ok && json_object_get(set, "command") == NULL)
      ok = yaml_wrong(err, path, node, "notify needs its command, a list of words");
  } else {
    ok = notify_config_words(set, path, node, err);
  }
  if (ok) {
    set_defaults(set);
    return set;
  }
  json_decref(set);
  return NULL;
}

bool notify_config_set_wants(const json_t *set, const char *event) {
  const json_t *on = json_object_get(set, "on");
  JSON_EACH(on, i, word) {
    if (strcmp(json_string_value(word), event) == 0)
      return true;
  }
  return false;
}

struct queued_notice {
  struct list_node in_queue;
  char session[STORE_ID_BYTES]; /* "": of none */
  uint64_t seq;
  json_t *notification;
};

static struct queued_notice *queue_first(const struct notifier *n) {
  return LIST_FIRST(struct queued_notice, in_queue, &n->queue);
}

static struct queued_notice *queue_second(const struct notifier *n) {
  struct queued_notice *second = NULL;
  LIST_EACH(struct queued_notice, q, in_queue, &n->queue) {
    if (q == queue_first(n))
      continue;
    second = q;
    break;
  }
  return second;
}

/* --- what was told --- */

static void notifier_keep(struct notifier *n) {
  struct err err;
  if (n->store != NULL && !notification_cursor_save(&n->told, n->store, clock_real_ms(), &err))
    log_warn("notify: %s", err.text);
}

/* Drops a notice that was told or is given up. */
static void drop_queued(struct notifier *n, struct queued_notice *q) {
  uint64_t next = 0;
  assert(q != NULL);
  list_remove(&n->queue, &q->in_queue);
  LIST_EACH(struct queued_notice, other, in_queue, &n->queue)
    if (next == 0 && strcmp(other->session, q->session) == 0)
      next = other->seq;
  if (q->session[0] && n->store != NULL)
    notification_cursor_told(&n->told, q->session, q->seq, next, clock_real_ms());
  json_decref(q->notification);
  free(q);
}

static void drop_first(struct notifier *n) {
  drop_queued(n, queue_first(n));
  n->tries = 0;
}

static void queue_notice(struct notifier *n, const char *session, uint64_t seq,
                         json_t *notification) {
  struct queued_notice *q = xcalloc(1, sizeof *q);
  print_into(q->session, sizeof q->session, "%s", session);
  q->seq = seq;
  q->notification = notification;
  list_push_back(&n->queue, &q->in_queue);
  if (session[0] && n->store != NULL)
    notification_cursor_expect(&n->told, session, seq);
  if (n->queue.count <= LIMIT_NOTICE_COUNT)
    return;
  log_warn("notify: more than %u notices are waiting: an old one is dropped", LIMIT_NOTICE_COUNT);
  drop_queued(n, queue_second(n)); /* the first may be just being told */
}

/* --- the program --- */

static void tell_next(struct notifier *n);

static void notifier_on_timer(uv_timer_t *timer) {
  tell_next(timer->data);
}

/* Tries later to tell a notice that could not be told now, or gives it up. */
static void try_later(struct notifier *n, const char *why) {
  const char *program = json_string_value(json_array_get(json_object_get(n->set, "command"), 0));
  uint64_t wait = (uint64_t)LIMIT_NOTICE_BASE_MS << n->tries;
  wait = wait < LIMIT_NOTICE_AGAIN_MS ? wait : LIMIT_NOTICE_AGAIN_MS;
  n->tries++;
  if (n->store == NULL || n->tries >= LIMIT_NOTICE_TRY_COUNT) {
    log_warn("notify: %.200s %s: given up", program, why);
    drop_first(n);
    notifier_keep(n);
    tell_next(n);
    return;
  }
  if (n->tries == 1)
    log_warn("notify: %.200s %s: tried again", program, why);
  uv_timer_start(&n->again, notifier_on_timer, wait, 0);
}

static void notifier_on_end(void *ctx, struct process_result *p) {
  struct notifier *n = ctx;
  n->process = NULL;
  if (n->closed)
    return;
  if (p->why == PROCESS_END_EXITED && p->exit_code == 0 && p->signal == 0) {
    drop_first(n);
    notifier_keep(n);
    tell_next(n);
    return;
  }
  buf_auto_t why = {0};
  const json_t *words = json_object_get(n->set, "command");
  struct str line = str_trim(buf_view(&p->err));
  char text[160];
  if (p->why == PROCESS_END_EXEC_FAILED) {
    (void)process_why_not(p, json_string_value(json_array_get(words, 0)), "/", text, sizeof text);
    buf_printf(&why, "cannot be run: %s", text);
  } else if (p->why == PROCESS_END_EXITED && p->signal == 0) {
    buf_printf(&why, "ended with status %d%s", p->exit_code, line.n > 0 ? ": " : "");
    line.n = line.n < 200 ? line.n : 200;
    buf_safe(&why, line, false);
  } else {
    buf_printf(&why, "was ended (%s)", process_end_name(p->why));
  }
  try_later(n, buf_c(&why));
}

/* Returns NAME=VALUE without the bytes that a variable cannot hold. */
static const char *assignment(struct arena *arena, const char *name, const json_t *notification,
                              const char *key) {
  struct str value = json_view(json_object_get(notification, key));
  buf_auto_t text = buf_of("%s=", name);
  buf_safe(&text, value, true);
  return arena_strndup(arena, buf_c(&text), text.n);
}

static const char *const *notifier_env(const struct notifier *n, const json_t *notification,
                                       struct arena *arena, struct err *err) {
  const json_t *given = json_object_get(n->set, "env"), *name;
  const char **names = arena_array(arena, json_array_size(given) + 1, sizeof *names);
  size_t i;
  json_array_foreach(given, i, name) {
    names[i] = json_string_value(name);
  }
  names[i] = NULL;
  const char *const assigned[] = {assignment(arena, "SEGUE_NOTICE_EVENT", notification, "event"),
                                  assignment(arena, "SEGUE_NOTICE_ID", notification, "id"),
                                  assignment(arena, "SEGUE_NOTICE_TITLE", notification, "title"),
                                  assignment(arena, "SEGUE_NOTICE_TEXT", notification, "text"),
                                  NULL};
  return process_env_build(arena, NULL, names, assigned, err);
}

static void start_telling(struct notifier *n, struct arena *arena) {
  const json_t *words = json_object_get(n->set, "command");
  const struct queued_notice *q = queue_first(n);
  const char *argv[LIMIT_NOTICE_WORDS + 1] = {NULL}, *home = getenv("HOME");
  struct err err = {0};
  JSON_EACH(words, i, word)
    argv[i] = json_string_value(word);
  buf_clear(&n->line);
  json_write(q->notification, &n->line);
  buf_putc(&n->line, '\n');
  const struct process_spec spec = {
      .argv = argv,
      .cwd = home != NULL && access(home, X_OK) == 0 ? home : "/",
      .envp = notifier_env(n, q->notification, arena, &err),
      .stdin_bytes = n->line.p,
      .stdin_n = n->line.n,
      .stdout_max = LIMIT_INVARIANT_OUTPUT_BYTES,
      .stderr_max = LIMIT_INVARIANT_OUTPUT_BYTES,
      .wall_ms = (uint64_t)json_integer_value(json_object_get(n->set, "timeout_ms"))};
  if (spec.envp != NULL)
    n->process = process_start(n->processes, &spec, NULL, notifier_on_end, n, &err);
  if (n->process == NULL)
    try_later(n, err.text);
}

static void tell_next(struct notifier *n) {
  AUTO(arena_deinit) struct arena arena = {0};
  if (n->closed || n->process != NULL || uv_is_active((const uv_handle_t *)&n->again))
    return;
  if (n->set != NULL && n->queue.count > 0)
    start_telling(n, &arena);
}

/* --- from outside --- */

bool notifier_wants(const struct notifier *n, const char *event) {
  return n->set != NULL && notify_config_set_wants(n->set, event);
}

/* Queues a notice if it is wanted. The notice is borrowed. */
static void notifier_take(void *ctx, const char *session, json_t *notification, uint64_t seq) {
  struct notifier *n = ctx;
  if (notifier_wants(n, json_string_value(json_object_get(notification, "event"))))
    queue_notice(n, session, seq, json_incref(notification));
}

void notifier_on_record(struct notifier *n, const struct summary *b, const struct record *record) {
  json_t *list;
  if (n->set == NULL || n->closed)
    return;
  list = json_array();
  notification_of(b, record, list);
  JSON_EACH(list, i, notification)
    notifier_take(n, b->session, notification, record->seq);
  json_decref(list);
  tell_next(n);
}

void notifier_put(struct notifier *n, json_t *notification) {
  if (!n->closed)
    notifier_take(n, "", notification, 0);
  json_decref(notification);
  tell_next(n);
}

void notifier_recover(struct notifier *n) {
  if (n->set == NULL && n->store != NULL)
    notification_cursor_forget(n->store);
  if (n->set == NULL || n->store == NULL)
    return;
  notification_cursor_missed(&n->told, n->store, notifier_take, n);
  notifier_keep(n);
  tell_next(n);
}

void notifier_use(struct notifier *n, json_t *set) {
  json_decref(n->set);
  n->set = json_incref(set);
  tell_next(n);
}

void notifier_init(struct notifier *n, uv_loop_t *loop, struct process_table *processes,
                   const struct store *store) {
  assert(processes != NULL);
  *n = (struct notifier){.loop = loop, .processes = processes, .store = store};
  uv_timer_init(loop, &n->again);
  n->again.data = n;
  if (store != NULL)
    notification_cursor_load(&n->told, store);
}

void notifier_drain(struct notifier *n) {
  while (n->queue.count > 0)
    (void)uv_run(n->loop, UV_RUN_ONCE);
}

void notifier_close(struct notifier *n) {
  if (n->closed)
    return;
  n->closed = true;
  if (n->process != NULL)
    process_cancel(n->process);
  uv_close((uv_handle_t *)&n->again, NULL);
}

void notifier_deinit(struct notifier *n) {
  assert(n->process == NULL);
  LIST_EACH(struct queued_notice, q, in_queue, &n->queue) {
    list_remove(&n->queue, &q->in_queue);
    json_decref(q->notification);
    free(q);
  }
  buf_deinit(&n->line);
  json_decref(n->set);
  notification_cursor_deinit(&n->told);
  *n = (struct notifier){0};
}
