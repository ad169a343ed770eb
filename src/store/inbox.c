/* Gathers what waits for people from the logs of a store. */
#include "store/inbox.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "store/index.h"
#include "store/label.h"
#include "store/reader.h"

#include <stdlib.h>
#include <string.h>

enum { LAST_BYTES = 16 * 1024 };

static void add_questions(json_t *list, const json_t *questions, const json_t *spent,
                          const char *workflow, const char *id) {
  JSON_EACH(questions, i, question) {
    json_auto_t *item = json_pack("{ss}", "id", id);
    json_object_set_new(item, "workflow", json_string(workflow));
    json_object_update(item, question);
    bool approves = str_eq_c(json_view_at(item, "kind"), "approve");
    json_object_set_new(item, "cause", json_string(approves ? "approval" : "question"));
    json_object_set(item, "spent", (json_t *)spent);
    if (json_array_size(list) < LIMIT_INBOX_COUNT)
      json_array_append(list, item);
  }
}

/* Says in a word or two what a session waits for, and the command that goes on with it. */
static const struct {
  const char *reason, *cause, *command, *flag;
} causes[] = {{"protected", "protected files", "approve", ""},
              {"hidden_tests", "hidden tests", "approve", ""},
              {"head_moved", "HEAD was moved", "resume", ""},
              {"denied", "a command's sandbox", "resume", ""},
              {"rule_no_match", "no rule matched", "resume", " --rule N"},
              {"failed", "failed", "resume", " --rule N"},
              {"max_movements", "all turns are used", "resume", " --max-movements N"},
              {"budget", "budget", "resume", " --add-budget UNIT=N"},
              {"after", "another session", "resume", " --now"},
              {"poison", "crashed three times", "resume", ""}};

/* Says what a session that has stopped without a question waits for (entries with the same cause
 * are shown together), and how it goes on. */
static void put_cause(const struct summary *b, const char *id, struct buf *cause,
                      struct buf *command) {
  size_t i = 0;
  while (i < ARRAY_LEN(causes) && strcmp(causes[i].reason, b->stop_reason) != 0)
    i++;
  bool known = i < ARRAY_LEN(causes);
  const char *word = b->stop_class[0] ? b->stop_class : b->stop_reason;
  buf_puts(cause, known ? causes[i].cause : word);
  if (b->stop_provider != NULL)
    buf_printf(cause, ": %s", b->stop_provider);
  if (b->stop_provider != NULL && strcmp(b->stop_class, "auth") == 0)
    buf_printf(command, "segue doctor %s, then ", b->stop_provider);
  bool days = str_among(str_from(b->stop_of), "day store folder"); /* config.yaml bounds it */
  buf_printf(command, "segue %s %s%s", known ? causes[i].command : "resume", id,
             known && !days ? causes[i].flag : "");
}

static void inbox_add(json_t *list, const struct summary *b, const char *id) {
  add_questions(list, b->questions, b->spent, b->workflow, id);
  if (json_array_size(b->questions) > 0 || !summary_needs_person(b) ||
      json_array_size(list) >= LIMIT_INBOX_COUNT)
    return;
  buf_auto_t cause = {0}, command = {0};
  put_cause(b, id, &cause, &command);
  json_t *item =
      json_pack("{ss ss* ss* ss ss ss ss* ss ss sI sb}", "id", id, "workflow", b->workflow,
                "movement", b->movement, "kind", "stop", "status", b->status, "cause",
                buf_c(&cause), "text", b->message, "since", b->updated, "command", buf_c(&command),
                "seq", (json_int_t)b->seq, "submitted", (int)b->submitted);
  json_object_set(item, "spent", b->spent);
  json_array_append_new(list, item);
}

/* Reads the last line into `text`, if it is whole and not too long. */
static bool inbox_last_line(const struct store_ref *ref, struct buf *text, struct str *line) {
  struct log_reader r;
  struct err ignored;
  if (!reader_open(&r, ref, &ignored))
    return false;
  uint64_t size = reader_bytes(&r);
  size_t n = size < LAST_BYTES ? (size_t)size : LAST_BYTES;
  buf_clear(text);
  buf_reserve(text, n + 1);
  bool ok = n > 1 && reader_read_all(&r, size - n, text->p, n) && text->p[n - 1] == '\n';
  reader_close(&r);
  const char *before = ok ? memrchr(text->p, '\n', n - 1) : NULL;
  if (before != NULL)
    *line = (struct str){before + 1, (size_t)(text->p + n - 1 - (before + 1))};
  return before != NULL;
}

/* Adds what the last record says, which is all for a session that ended or stopped with a question.
 * False: read more. */
static bool add_by_last(json_t *list, const char *id, struct str line) {
  static const char stop[] = "\"type\":\"session_stop\"", end[] = "\"type\":\"session_end\"";
  size_t n = line.n < 128 ? line.n : 128; /* only v, seq and ts come before it */
  if (memmem(line.p, n, end, sizeof end - 1) != NULL)
    return true;
  if (memmem(line.p, n, stop, sizeof stop - 1) == NULL)
    return false;
  json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  const json_t *questions = json_object_get(record, "questions");
  add_questions(list, questions, json_object_get(record, "spent"), NULL, id);
  return json_array_size(questions) > 0;
}

static void inbox_take_log(json_t *list, const struct store *store, const char *id,
                           struct buf *text) {
  struct store_ref ref;
  struct summary b;
  struct str line;
  struct err ignored;
  store_ref(store, id, &ref);
  if (inbox_last_line(&ref, text, &line) && add_by_last(list, id, line))
    return;
  if (!summary_read(&b, &ref, &ignored))
    return;
  if (!summary_is_over(&b) && !summary_is_stopped(&b))
    summary_look(&b, &ref);
  inbox_add(list, &b, id);
  summary_deinit(&b);
}

void inbox_add_log(json_t *list, const struct store *store, const char *id) {
  buf_auto_t text = {0};
  inbox_take_log(list, store, id, &text);
  const json_t *last = json_array_get(list, json_array_size(list) - 1);
  if (str_eq_c(json_view_at(last, "kind"), "stop"))
    json_array_remove(list, json_array_size(list) - 1);
}

static int by_since(const void *a, const void *b) {
  const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
  const char *at = json_string_value(json_object_get(x, "since"));
  const char *bt = json_string_value(json_object_get(y, "since"));
  return strcmp(at ? at : "", bt ? bt : "");
}

static json_t *inbox_sort(json_t *list) {
  size_t n = json_array_size(list);
  json_t **items = xcalloc(n + 1, sizeof *items), *sorted = json_array();
  for (size_t i = 0; i < n; i++)
    items[i] = json_array_get(list, i);
  qsort(items, n, sizeof *items, by_since);
  for (size_t i = 0; i < n; i++)
    json_array_append(sorted, items[i]);
  free(items);
  json_decref(list);
  return sorted;
}

/* --- dismissals --- */

static void on_dismissal(void *ctx, const struct label *label) {
  json_t *seqs = ctx;
  if (label->dismissed > 0)
    json_object_set_new(seqs, label->session, json_integer((json_int_t)label->dismissed));
}

/* Drops what was dismissed, unless something has happened since. */
static void drop_dismissed(const struct store *store, json_t *list) {
  struct err ignored;
  json_auto_t *seqs = json_object(); /* session -> record up to which it is dismissed */
  if (!labels_read(store, on_dismissal, seqs, &ignored))
    return; /* rather one too many than one too few */
  for (size_t i = json_array_size(list); i-- > 0;) {
    const json_t *item = json_array_get(list, i);
    const char *at = json_at(item, "question") != NULL ? "question" : "seq";
    if (json_int_at(item, at) <= json_int_at(seqs, json_string_value(json_at(item, "id"))))
      json_array_remove(list, i);
  }
}

bool inbox_dismiss(const struct store_ref *ref, const char *by, const char *why, struct err *err) {
  struct label label = {0};
  struct summary b;
  struct store store;
  if (!summary_read(&b, ref, err))
    return false;
  label.dismissed = b.seq;
  bool waits = json_array_size(b.questions) > 0 || summary_needs_person(&b);
  summary_deinit(&b);
  store_of(ref, &store);
  store_ref_id(ref, label.session);
  print_into(label.by, sizeof label.by, "%s", by);
  print_into(label.stratum, sizeof label.stratum, "%s", why);
  if (!waits)
    return err_set(err, ERR_NOT_FOUND, "%s does not wait for anybody", label.session);
  return labels_append(&store, &label, 1, err);
}

/* --- the list --- */

json_t *inbox_list(const struct store *store,
                   const struct summary *(*live)(void *ctx, const char *id), void *ctx,
                   struct err *err) {
  struct store_id *ids;
  size_t count;
  buf_auto_t text = {0};
  if (!store_list(store, &ids, &count, err))
    return NULL;
  json_t *list = json_array();
  struct index *x = index_open(store, NULL, INDEX_NOTHING);
  for (size_t i = count; i-- > 0;) {
    const struct summary *known = live ? live(ctx, ids[i].id) : NULL;
    const struct index_row *row = known == NULL ? index_row_of_list(x, ids[i].id) : NULL;
    if (known != NULL)
      inbox_add(list, known, ids[i].id);
    else if (row == NULL || (row->flags & INDEX_NEEDS))
      inbox_take_log(list, store, ids[i].id, &text);
  }
  index_close(x);
  free(ids);
  drop_dismissed(store, list);
  return inbox_sort(list);
}
