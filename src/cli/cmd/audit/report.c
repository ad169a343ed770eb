/* segue report: writes one file about sessions, for people without segue. */
#include "web/report.h"
#include "audit/verified_reader.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "host/paths.h"
#include "os/clock.h"
#include "view/verification.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reporting {
  struct report_file report;
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

static bool report_store(struct reporting *r, const char *where, struct err *err) {
  struct store store;
  AUTO(session_list_deinit) struct session_list f = {0};
  store_at(&store, where);
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
  if (format != NULL && strcmp(format, "md") == 0)
    r->report.form = REPORT_MARKDOWN;
  else if (format != NULL && strcmp(format, "html") != 0)
    return err_set(err, ERR_USAGE, "--format %.40s: write html or md", format);
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
  if (ok && path == NULL && isatty(STDOUT_FILENO) == 1 && r.report.form == REPORT_HTML)
    ok = err_set(&err, ERR_USAGE, "give a file with -o FILE: HTML is for a browser");
  ok = ok && (r.verification = verification_new(&err)) != NULL;
  ok = ok && report_title(&r, args, &title, &err);
  if (ok) {
    r.report.session_count = args->word_count;
    report_begin(&r.report, buf_view(&title));
    ok = report_words(&r, args, &err);
    report_end(&r.report);
  }
  ok = ok && report_write(&r, path, &err);
  verification_free(r.verification);
  buf_deinit(&r.out);
  if (!ok)
    return cli_fail_with(STATUS_USAGE, "report", &err);
  if (r.bad > 0)
    fprintf(stderr, "segue report: %zu log%s not what was written; the report says which\n", r.bad,
            r.bad == 1 ? " is" : "s are");
  return r.bad > 0 ? STATUS_FAILED : STATUS_COMPLETE;
}

const struct cli_command cmd_report = {COMMAND_REPORT, .run = report_run};
