/* segue report: says what sessions came to in one screen, or writes one file about them, for people
 * without segue. */
#include "web/report.h"
#include "audit/verified_reader.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/morning.h"
#include "cli/resolve_id.h"
#include "format/json_write.h"
#include "host/config.h"
#include "host/daily_usage.h"
#include "host/paths.h"
#include "os/clock.h"
#include "store/shared.h"
#include "view/verification.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reporting {
  struct report_file report;
  bool text, json; /* what sessions came to, in one screen, instead of a file */
  json_t *told;    /* notify of the configuration, with --notify; or NULL */
  bool notifies;
  struct buf out;
  struct verification *verification;
  struct filter wanted;
  const char *logs;
  size_t bad; /* logs that are not what was written */
};

static size_t text_max(const struct view_session *v) {
  size_t max = LIMIT_REPORT_TEXT_SHARE / (v->turn_count + 1);
  if (max > LIMIT_REPORT_TEXT_BYTES)
    return LIMIT_REPORT_TEXT_BYTES;
  return max < LIMIT_REPORT_TEXT_LEAST ? LIMIT_REPORT_TEXT_LEAST : max;
}

static bool report_all_turns(struct reporting *r, const struct view_session *v,
                             const struct store_ref *ref, struct err *err) {
  AUTO(verified_close) struct verified_reader book = {0};
  bool ok = true;
  if (!verified_open(&book, ref, true, err))
    return false;
  verified_rest(&book);
  for (size_t i = 0; i < v->turn_count && ok; i++) {
    AUTO(view_judgment_deinit) struct view_judgment told = {0};
    if (v->turns[i].unproven || !report_wants(&r->report))
      continue;
    ok = view_judgment_read(&told, &book, v->turns[i].turn, text_max(v), text_max(v) / 8, err);
    if (ok)
      report_turn(&r->report, &v->turns[i], &told);
  }
  return ok;
}

static bool report_one(struct reporting *r, const struct store_ref *ref, struct err *err) {
  AUTO(view_session_deinit) struct view_session v = {0};
  struct verify_result verification;
  if (!view_session_read(&v, ref, err))
    return false;
  bool ok = verification_read(r->verification, ref, &verification, err);
  if (ok) {
    r->bad += verification.state == VERIFY_BAD;
    fit_session(&v, r->report.session_count);
    report_session(&r->report, &v, &verification);
    ok = report_all_turns(r, &v, ref, err);
    report_session_end(&r->report);
  }
  return ok;
}

/* Returns the limits of a day and how much of each is used: the store's own, if it is shared. */
static json_t *report_budgets(struct reporting *r, const struct store *store) {
  AUTO(config_deinit) struct config config = {0};
  AUTO(daily_usage_deinit) struct daily_usage book;
  struct err ignored;
  daily_usage_init(&book);
  if (!config_load(&config, &ignored))
    return json_array();
  struct provider_registry *registry = registry_new(NULL);
  day_set_keep(registry, config.budget);
  const struct day_limits *limits = day_set_of(registry);
  json_t *list = daily_usage_json(&book, limits, store);
  json_auto_t *status = store_folder(store) == NULL ? shared_status(store->where, &ignored) : NULL;
  for (size_t i = 0; status != NULL && limits != NULL && i < limits->count; i++)
    day_limit_json(&limits->of[i], json_object_get(status, "spent"), list);
  json_decref(r->told);
  r->told = json_incref(config.notify);
  registry_free(registry);
  return list;
}

static bool report_morning_of(struct reporting *r, const struct store *store, struct err *err) {
  json_auto_t *morning = morning_read(store, &r->wanted, report_budgets(r, store), err);
  if (morning == NULL || (r->notifies && !morning_notify(morning, r->told, err)))
    return false;
  if (r->json)
    json_write(morning, &r->out);
  else if (r->text)
    morning_tell(morning, cli_colours(STDOUT_FILENO), &r->out);
  else if (r->report.form == REPORT_HTML)
    report_morning(&r->report, morning);
  if (r->json)
    buf_putc(&r->out, '\n');
  return true;
}

static bool report_store(struct reporting *r, const char *where, struct err *err) {
  struct store store;
  AUTO(session_list_deinit) struct session_list f = {0};
  store_at(&store, where);
  if (!report_morning_of(r, &store, err))
    return false;
  if (r->text || r->json)
    return true;
  session_list_init(&f);
  bool ok = session_list_read(&f, &store, &r->wanted, LIMIT_REPORT_ROW_COUNT, err);
  if (ok) {
    for (size_t i = 0; i < f.count; i++)
      r->bad += str_eq_c(f.rows[i].status, "bad");
    session_list_finish(&f);
    fit_folder(&f);
    report_overview(&r->report, &f, str_from(where));
  }
  return ok;
}

static bool report_word(struct reporting *r, const char *word, struct err *err) {
  struct store_ref ref;
  if (file_is_folder(word))
    return report_store(r, word, err);
  return resolve_id_session(word, r->logs, NULL, &ref, err) && report_one(r, &ref, err);
}

/* Writes the report. It holds what logs hold, so others on this machine need not read it. An
 * earlier file stays until the new one is whole. */
/* Writes to what is there and no file: a pipe, or a device such as /dev/null. It must stay. */
static bool report_write_into(const struct reporting *r, const char *path, struct err *err) {
  FILE *file = fopen(path, "we");
  bool ok = file != NULL && fwrite(buf_c(&r->out), 1, r->out.n, file) == r->out.n;
  ok = (file != NULL && fclose(file) == 0) && ok;
  return ok || err_set_errno(err, errno, "cannot write %s", path);
}

static bool report_write(const struct reporting *r, const char *path, struct err *err) {
  buf_auto_t draft = {0};
  struct stat st;
  if (path != NULL && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
    return report_write_into(r, path, err);
  if (path == NULL) {
    fwrite(buf_c(&r->out), 1, r->out.n, stdout);
    return true; /* cli_end says when it could not be written */
  }
  buf_printf(&draft, "%s.XXXXXX", path);
  int fd = mkstemp(draft.p);
  FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
  bool ok = file != NULL && fwrite(buf_c(&r->out), 1, r->out.n, file) == r->out.n;
  ok = (file != NULL && fclose(file) == 0) && ok;
  ok = ok && rename(draft.p, path) == 0;
  int error = errno;
  if (!ok && fd >= 0)
    (void)unlink(draft.p);
  return ok || err_set_errno(err, error, "cannot write %s", path);
}

/* Puts the title. Returns false if the one session that was named does not exist. */
static bool report_title(const struct reporting *r, const struct cli_args *args, struct buf *out,
                         struct err *err) {
  char id[STORE_ID_BYTES];
  struct store_ref ref;
  if (args->word_count != 1 || file_is_folder(args->words[0])) {
    buf_puts(out, "segue: sessions");
    return true;
  }
  if (!resolve_id_session(args->words[0], r->logs, NULL, &ref, err))
    return false;
  store_ref_id(&ref, id);
  buf_printf(out, "segue: session %s", id);
  return true;
}

static bool report_options(struct reporting *r, const struct cli_args *args, struct err *err) {
  const char *format = cli_value(args, "format");
  struct err why;
  bool folders = true;
  for (size_t i = 0; i < args->word_count; i++)
    folders = folders && file_is_folder(args->words[i]);
  r->json = cli_flag(args, "json");
  r->notifies = cli_flag(args, "notify");
  r->text = folders && cli_value(args, "output") == NULL && !r->json;
  if (format != NULL)
    r->text = strcmp(format, "text") == 0;
  if (format != NULL && strcmp(format, "md") == 0)
    r->report.form = REPORT_MARKDOWN;
  else if (format != NULL && !r->text && strcmp(format, "html") != 0)
    return err_set(err, ERR_USAGE, "--format %.40s: write text, html or md", format);
  if (!folders && (r->text || r->json || r->notifies))
    return err_set(err, ERR_USAGE,
                   "text, --json and --notify are for folders: segue show has a "
                   "session");
  r->logs = cli_value(args, "logs");
  r->wanted.workflow = cli_value(args, "workflow");
  r->wanted.statuses = cli_value(args, "status");
  return resolve_id_since(cli_value(args, "since"), &r->wanted.since_ms, err) &&
         (filter_check(&r->wanted, &why) || err_set(err, why.code, "--%s", why.text));
}

static bool report_words(struct reporting *r, const struct cli_args *args, struct err *err) {
  char where[PATHS_BYTES];
  for (size_t i = 0; i < args->word_count; i++)
    if (!report_word(r, args->words[i], err))
      return false;
  return args->word_count > 0 || (paths_logs(r->logs, where, err) && report_store(r, where, err));
}

static int report_run(const struct cli_args *args) {
  struct err err = {0};
  buf_auto_t title = {0};
  struct reporting r = {.report = {.now_ms = clock_real_ms()}};
  const char *path = cli_value(args, "output");
  if (path != NULL && strcmp(path, "-") == 0) /* as other programs understand it */
    path = NULL;
  r.report.out = &r.out;
  bool ok = report_options(&r, args, &err);
  bool screen = r.text || r.json;
  if (ok && path == NULL && isatty(STDOUT_FILENO) == 1 && r.report.form == REPORT_HTML && !screen)
    ok = err_set(&err, ERR_USAGE, "give a file with -o FILE: HTML is for a browser");
  ok = ok && (r.verification = verification_new(&err)) != NULL;
  ok = ok && report_title(&r, args, &title, &err);
  if (ok) {
    r.report.session_count = args->word_count;
    if (!screen)
      report_begin(&r.report, buf_view(&title));
    ok = report_words(&r, args, &err);
    if (!screen)
      report_end(&r.report);
  }
  ok = ok && report_write(&r, path, &err);
  verification_free(r.verification);
  json_decref(r.told);
  buf_deinit(&r.out);
  if (!ok)
    return cli_fail_with(STATUS_USAGE, "report", &err);
  if (r.bad > 0)
    fprintf(stderr, "segue report: %zu log%s not what was written; the report says which\n", r.bad,
            r.bad == 1 ? " is" : "s are");
  return r.bad > 0 ? STATUS_FAILED : STATUS_COMPLETE;
}

const struct cli_command cmd_report = {COMMAND_REPORT, .run = report_run};
