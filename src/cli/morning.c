/* Says what sessions came to, by repository. */
#include "cli/morning.h"

#include "base/limits.h"
#include "cli/cli.h"
#include "cli/trees/session_trees.h"
#include "core/budget.h"
#include "core/record.h"
#include "core/spend.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/notifier.h"
#include "host/paths.h"
#include "host/single_session.h"
#include "os/clock.h"
#include "store/inbox.h"
#include "store/notification.h"
#include "view/number_format.h"

#include <stdlib.h>
#include <string.h>

/* --- one session --- */

static const char *morning_class(const char *status) {
  static const char *const classes[][2] = {{"complete", "done"},   {"needs_input", "needs"},
                                           {"running", "running"}, {"waiting", "running"},
                                           {"queued", "running"},  {"cancelled", "cancelled"}};
  for (size_t i = 0; i < ARRAY_LEN(classes); i++)
    if (strcmp(classes[i][0], status) == 0)
      return classes[i][1];
  return "stopped";
}

/* Puts whether the target has the session's work: its commits, or one that says it was squashed. */
static void put_merged(json_t *session, const struct trees *t) {
  struct err ignored;
  const struct tree_item *own = trees_own(t, &ignored);
  const char *target = t->main != NULL ? t->main : "HEAD";
  char grep[128];
  bool merged = false;
  if (own == NULL)
    return;
  json_put(session, "branch", json_text(str_from(own->branch)));
  char *tip = trees_tip(t->cwd, own->branch, &ignored);
  for (size_t i = json_array_size(t->commits); tip == NULL && i-- > 0;) { /* the branch is gone */
    const json_t *commit = json_array_get(t->commits, i);
    if (json_at(commit, "of") == NULL)
      tip = xstrdup(json_word_at(commit, "commit"));
  }
  if (tip == NULL || (own->base != NULL && strcmp(tip, own->base) == 0) ||
      !git_descends(t->cwd, target, tip, &merged, &ignored)) {
    free(tip);
    return; /* it made no commit, or git cannot tell */
  }
  print_into(grep, sizeof grep, "--grep=^Segue-Merged: %.72s$", tip);
  char_auto_t *squashed = git_line(t->cwd, &ignored, "log", "-1", "--format=%H", "--basic-regexp",
                                   grep, "--end-of-options", target, NULL);
  merged = merged || (squashed != NULL && squashed[0] != '\0');
  json_put(session, "merged", json_boolean(merged));
  free(tip);
}

/* Returns as much of a text's first line as one screen and one page have room for. */
static json_t *morning_line(struct str text) {
  enum { LINE_BYTES = 200 };
  struct str line = str_next_line(&text);
  line.n = view_fitting(line, LINE_BYTES);
  return json_text(line);
}

/* Puts what a person has to do, by the session's item of the inbox; one that stopped has a command
 * there, too. */
static void put_command(json_t *session, const json_t *inbox) {
  const char *id = json_word_at(session, "id");
  JSON_EACH(inbox, i, item) {
    buf_auto_t command = {0};
    if (strcmp(json_word_at(item, "id"), id) != 0)
      continue;
    bool approves = strcmp(json_word_at(item, "kind"), "approve") == 0;
    if (json_at(item, "command") != NULL)
      buf_puts(&command, json_word_at(item, "command"));
    else
      buf_printf(&command, "segue %s %s %s%s", approves ? "approve" : "answer", id,
                 json_word_at(item, "movement"), approves ? "" : " TEXT");
    json_put(session, "command", json_text(buf_view(&command)));
    json_put(session, "text", morning_line(json_view_at(item, "text")));
    return;
  }
}

static json_t *session_json(const struct summary *b, const char *id, const char *status,
                            const struct trees *t, const json_t *inbox) {
  json_t *s = json_pack("{ss so so ss ss}", "id", id, "workflow",
                        morning_line(str_from(b->workflow ? b->workflow : "")), "task",
                        morning_line(str_from(t->task ? t->task : "")), "class",
                        morning_class(status), "status", status);
  json_put_text(s, "basis", str_from(b->basis));
  if (b->message != NULL)
    json_put(s, "text", morning_line(str_from(b->message)));
  put_command(s, inbox);
  if (strcmp(status, "open") == 0) {
    buf_auto_t command = buf_of("segue resume %s", id);
    json_put(s, "command", json_text(buf_view(&command)));
  }
  json_object_set(s, "spent", b->spent);
  put_merged(s, t);
  return s;
}

/* --- by repository --- */

static json_t *repository_in(json_t *list, const char *folder) {
  JSON_EACH(list, i, one)
    if (strcmp(json_word_at(one, "folder"), folder) == 0)
      return one;
  json_t *made = json_pack("{ss s{} s[]}", "folder", folder, "spent", "sessions");
  json_array_append_new(list, made);
  return made;
}

static bool in_inbox(const json_t *inbox, const char *id) {
  JSON_EACH(inbox, i, item)
    if (strcmp(json_word_at(item, "id"), id) == 0)
      return true;
  return false;
}

/* Adds a session, if it is wanted. */
static bool morning_add(json_t *morning, const struct store *store, const char *id,
                        const struct filter *wanted, const json_t *inbox) {
  AUTO(summary_deinit) struct summary b = {0};
  AUTO(trees_deinit) struct trees t = {0};
  struct filter any = *wanted;
  struct store_ref ref;
  struct err ignored;
  int64_t last;
  any.since_ms = 0;
  store_ref(store, id, &ref);
  if (!summary_read(&b, &ref, &ignored) || !filter_wants_summary(&any, &b))
    return false;
  const char *status = summary_status(&b);
  if (!store_is_owned(&ref))
    status = summary_idle_status(&b, store_is_address(store->where));
  bool late = record_time_parse(b.updated, &last) && last >= wanted->since_ms;
  if (!summary_wanted(wanted->statuses, status) || !(late || in_inbox(inbox, id)) ||
      !trees_read(&t, &ref, &ignored))
    return false;
  char folder[PATHS_BYTES];
  paths_project(t.cwd, folder);
  json_t *repository = repository_in(json_object_get(morning, "repositories"), folder);
  json_array_append_new(json_object_get(repository, "sessions"),
                        session_json(&b, id, status, &t, inbox));
  spend_sum(json_object_get(repository, "spent"), b.spent);
  spend_sum(json_object_get(morning, "spent"), b.spent);
  return true;
}

json_t *morning_read(const struct store *store, const struct filter *wanted, json_t *budgets,
                     struct err *err) {
  struct store_id *ids = NULL;
  size_t count = 0, added = 0;
  char since[RECORD_TIME_BYTES], until[RECORD_TIME_BYTES];
  json_auto_t *inbox = inbox_list(store, NULL, NULL, err);
  if (inbox == NULL || !store_list(store, &ids, &count, err)) {
    json_decref(budgets);
    return NULL;
  }
  record_time(wanted->since_ms, since);
  record_time(clock_real_ms(), until);
  json_t *morning = json_pack("{ss* ss s{} so s[]}", "since", wanted->since_ms > 0 ? since : NULL,
                              "until", until, "spent", "budgets", budgets, "repositories");
  for (size_t i = 0; i < count && added < LIMIT_REPORT_ROW_COUNT; i++)
    added += morning_add(morning, store, ids[i].id, wanted, inbox);
  json_object_set_new(morning, "sessions", json_integer((json_int_t)added));
  free(ids);
  return morning;
}

/* --- as text --- */

static void morning_text(struct buf *out, const char *before, struct str text) {
  buf_puts(out, before);
  buf_safe(out, text, false);
}

static void morning_session(const json_t *s, struct buf *out) {
  const json_t *merged = json_at(s, "merged");
  buf_puts(out, "    ");
  buf_puts(out, json_word_at(s, "id"));
  morning_text(out, "  ", json_view_at(s, "workflow"));
  if (json_at(s, "basis") != NULL)
    morning_text(out, "  ", json_view_at(s, "basis"));
  if (merged != NULL)
    buf_puts(out, json_is_true(merged) ? "  merged" : "  not merged");
  morning_text(out, "  ", json_view_at(s, "task"));
  buf_putc(out, '\n');
  struct str why = json_view_at(s, "text");
  if (why.n == 0 && strcmp(json_word_at(s, "class"), "stopped") == 0)
    why = json_view_at(s, "status");
  if (why.n > 0) {
    morning_text(out, "        ", why);
    buf_putc(out, '\n');
  }
  if (json_at(s, "command") != NULL)
    buf_printf(out, "        %s\n", json_word_at(s, "command"));
  else if (json_is_false(merged) && strcmp(json_word_at(s, "class"), "done") == 0)
    buf_printf(out, "        segue branch merge %s\n", json_word_at(s, "id"));
}

void morning_tell(const json_t *morning, bool colours, struct buf *out) {
  static const struct {
    const char *class, *words;
    enum colour colour;
  } classes[] = {{"needs", "needs you", COLOUR_MAGENTA},
                 {"stopped", "stopped", COLOUR_YELLOW},
                 {"done", "done", COLOUR_GREEN},
                 {"running", "running", COLOUR_CYAN},
                 {"cancelled", "cancelled", COLOUR_DIM}};
  long long sessions = (long long)json_int_at(morning, "sessions");
  buf_printf(out, "%lld session%s", sessions, PLURAL(sessions));
  if (json_at(morning, "since") != NULL)
    buf_printf(out, " since %s", json_word_at(morning, "since"));
  buf_auto_t all = {0};
  spend_print(json_at(morning, "spent"), &all);
  buf_printf(out, "%s%s\n", all.n > 0 ? ", " : "", buf_c(&all));
  JSON_EACH(json_at(morning, "repositories"), r, repository) {
    buf_auto_t spent = {0};
    spend_print(json_at(repository, "spent"), &spent);
    morning_text(out, "\n", json_view_at(repository, "folder"));
    buf_printf(out, "%s%s\n", spent.n > 0 ? "  " : "", buf_c(&spent));
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
      bool told = false;
      JSON_EACH(json_at(repository, "sessions"), k, s) {
        if (strcmp(json_word_at(s, "class"), classes[i].class) != 0)
          continue;
        if (!told)
          buf_printf(out, "  %s%s%s\n", cli_paint(colours, classes[i].colour), classes[i].words,
                     cli_paint(colours, COLOUR_NONE));
        told = true;
        morning_session(s, out);
      }
    }
  }
  JSON_EACH(json_at(morning, "budgets"), i, budget) {
    buf_puts(out, i == 0 ? "\n" : "");
    budget_note_tell(budget, out);
    buf_putc(out, '\n');
  }
}

/* --- as a notice --- */

static size_t morning_count(const json_t *morning, const char *class) {
  size_t n = 0;
  JSON_EACH(json_at(morning, "repositories"), r, repository)
    JSON_EACH(json_at(repository, "sessions"), i, s)
      n += strcmp(json_word_at(s, "class"), class) == 0;
  return n;
}

bool morning_notify(const json_t *morning, json_t *set, struct err *err) {
  struct single_session solo;
  struct notifier notices;
  buf_auto_t text = {0};
  if (set == NULL || !notify_config_set_wants(set, "report"))
    return err_set(err, ERR_USAGE, "--notify needs notify in config.yaml, and report in its on");
  struct provider_registry *registry = registry_new(NULL);
  if (!single_session_init(&solo, NULL, registry, err)) {
    registry_free(registry);
    return false;
  }
  buf_auto_t title =
      buf_of("segue: %zu done, %zu need you, %zu stopped", morning_count(morning, "done"),
             morning_count(morning, "needs"), morning_count(morning, "stopped"));
  morning_tell(morning, false, &text);
  notifier_init(&notices, &solo.loop, solo.host.processes, NULL);
  notifier_use(&notices, set);
  notifier_put(&notices, notification_report(buf_view(&title), buf_view(&text), clock_real_ms()));
  notifier_drain(&notices);
  notifier_close(&notices);
  single_session_deinit(&solo);
  notifier_deinit(&notices);
  registry_free(registry);
  return true;
}
