/* segue evidence: what a check shows about a piece of work, without a session. */
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "core/checks.h"
#include "core/movement_limits.h"
#include "core/worktree.h"
#include "evidence/runs.h"
#include "format/json_object.h"
#include "host/paths.h"
#include "host/run_program.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 64, SHOWN_FILES = 12, SHOWN_LINES = 8 };

struct evidencing {
  const char *subject; /* the word that names the work */
  struct runs_spec spec;
  struct tree_diff range; /* of a session */
  struct trees trees;
  char *cwd, *from, *to, *report; /* what the spec borrows */
  json_t *add, *leave, *links;
  char *folder; /* private */
  int slot;     /* its lock; -1: none */
  uint64_t wall_ms;
  struct evidence_runs runs;
};

/* --- what the words mean --- */

/* BASE..HEAD; BASE.. is the work as it stands in the folder; BASE...HEAD begins where they part. */
static bool work_of_range(struct evidencing *e, const char *word, const char *dots,
                          struct err *err) {
  bool apart = dots[2] == '.';
  const char *to = dots + (apart ? 3 : 2);
  e->cwd = getcwd(NULL, 0);
  if (e->cwd == NULL)
    return err_set_errno(err, errno, "cannot tell the current folder");
  e->from = xstrndup(word, (size_t)(dots - word));
  e->to = to[0] != '\0' ? xstrdup(to) : NULL;
  if (apart) {
    char *base = git_line(e->cwd, err, "merge-base", "--end-of-options", e->from,
                          e->to ? e->to : "HEAD", NULL);
    if (base == NULL)
      return err_set(err, ERR_NOT_FOUND, "%.200s has no common beginning", word);
    free(e->from);
    e->from = base;
  }
  e->spec.folder = e->cwd;
  e->spec.from = e->from;
  e->spec.to = e->to;
  return true;
}

/* The work of a session: from the commit at its start to its files, or its branch. */
static bool work_of_session(struct evidencing *e, const struct cli_args *args, struct err *err) {
  static const char *const settings[] = {"copy", "link"};
  struct store_ref ref;
  struct err none;
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, err) ||
      !trees_read(&e->trees, &ref, err))
    return false;
  const struct trees *t = &e->trees;
  const struct tree_item *own = trees_own(t, &none);
  if (own == NULL && t->base == NULL)
    return err_set(err, ERR_NOT_FOUND, "session %s has no commit at its start", t->session);
  if (own != NULL) {
    tree_diff_of(&e->range, t, own);
    e->spec.folder = file_is_folder(own->folder) ? own->folder : e->range.folder;
    e->spec.to = e->range.to[0] ? e->range.to : NULL;
  } else {
    e->spec.folder = t->cwd;
  }
  e->spec.from = own != NULL ? e->range.from : t->base;
  for (size_t i = 0; i < ARRAY_LEN(settings); i++)
    (void)json_array_extend(e->links, (json_t *)core_worktree_setting(t->config, settings[i]));
  return true;
}

static bool take_options(struct evidencing *e, const struct cli_args *args, struct err *err) {
  const char *value, *tests = cli_value(args, "tests"), *limit = cli_value(args, "timeout");
  struct str path = {0};
  e->spec.command = cli_value(args, "check");
  if (e->spec.command == NULL)
    return err_set(err, ERR_USAGE, "--check COMMAND is missing: what shows that the work is done");
  for (size_t i = 0; (value = cli_values(args, "check-files", i)) != NULL; i++) {
    bool not = strncmp(value, LIT("not:")) == 0;
    json_array_append_new(not ? e->leave : e->add, json_string(value + (not ? 4 : 0)));
  }
  for (size_t i = 0; (value = cli_values(args, "link", i)) != NULL; i++)
    json_array_append_new(e->links, json_string(value));
  if (tests != NULL && strcmp(tests, "auto") != 0) {
    if (!limits_check_tests(str_from(tests), err))
      return err_wrap(err, "--tests");
    (void)test_format_parse(str_from(tests), &e->spec.format, &path);
    if (!limits_check_cwd(path, err))
      return err_wrap(err, "--tests");
    e->spec.report = e->report = xstrndup(path.p, path.n);
  }
  if (limit != NULL && !limits_check_duration(str_from(limit), err))
    return err_wrap(err, "--timeout");
  e->wall_ms = (uint64_t)limits_duration_ms(str_from(limit), LIMIT_CALL_WALL_MS);
  e->spec.add = e->add;
  e->spec.leave = e->leave;
  e->spec.links = e->links;
  return true;
}

/* --- the private folder --- */

/* Takes the first folder that no other of these commands has: what a killed one left there goes. */
static bool take_folder(struct evidencing *e, struct err *err) {
  char state[PATHS_BYTES], path[PATHS_BYTES + 16], name[64];
  struct stat st;
  if (!paths_state("evidence", state, err))
    return false;
  for (unsigned i = 1; i <= SLOTS; i++) {
    print_into(path, sizeof path, "%s/%u.lock", state, i);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
      return err_set_errno(err, errno, "cannot open %.300s", path);
    if (fs_lock(fd) && fstat(fd, &st) == 0) {
      /* The lock's own number: several state folders may share one for temporary files. */
      print_into(name, sizeof name, "segue-evidence-%u-%llx", i, (unsigned long long)st.st_ino);
      e->slot = fd;
      e->folder = tmpdir_make_named(name, err);
      e->spec.private_dir = e->folder;
      return e->folder != NULL;
    }
    (void)close(fd);
  }
  return err_set(err, ERR_LIMIT, "%d of these commands are running", SLOTS);
}

static void evidencing_free(struct evidencing *e) {
  struct err err;
  runs_deinit(&e->runs);
  if (e->folder != NULL && !tmpdir_remove(e->folder, &err))
    log_warn("%s", err.text);
  if (e->slot >= 0)
    (void)close(e->slot);
  char *const texts[] = {e->cwd, e->from, e->to, e->report, e->folder};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(texts[i]);
  json_decref(e->add);
  json_decref(e->leave);
  json_decref(e->links);
  trees_deinit(&e->trees);
}

/* --- the runs --- */

static void run_check(struct evidencing *e) {
  struct evidence_runs *r = &e->runs;
  const struct run_program_spec spec = {.argv = r->argv, .folder = r->cwd, .wall_ms = e->wall_ms};
  AUTO(run_program_result_deinit) struct run_program_result result = {0};
  struct err err;
  uint64_t began = clock_mono_ms();
  bool ran = run_program_run(&spec, &result, &err);
  enum check_end end = ran ? CHECK_EXITED : CHECK_NOT_STARTED;
  if (!ran && err.code == ERR_LIMIT)
    end = CHECK_TOO_SLOW;
  runs_ended(r, end, result.exit_status, buf_view(&result.out), clock_mono_ms() - began,
             end == CHECK_NOT_STARTED ? err.text : NULL);
}

static bool run_all(struct evidencing *e, bool tell, struct err *err) {
  enum runs_step step;
  runs_begin(&e->runs, &e->spec);
  while ((step = runs_next(&e->runs)) != RUNS_DONE) {
    if (step == RUNS_PREPARE && !runs_prepare(&e->runs, err))
      return false;
    if (step == RUNS_CHECK && tell)
      cli_say(stderr, "segue evidence: running %s\n", runs_words(e->runs.at));
    if (step == RUNS_CHECK)
      run_check(e);
  }
  return true;
}

/* --- the result --- */

static int status_of(const struct evidence_runs *r) {
  enum counts_fall fall;
  bool passes = evidence_passes(&r->facts, &fall);
  switch (r->evidence) {
  case EVIDENCE_UNKNOWN:
    return STATUS_NO_RULE;
  case EVIDENCE_OLD_CHECK_FAILS:
    return STATUS_FAILED;
  case EVIDENCE_SHOWN:
    return passes ? STATUS_COMPLETE : STATUS_FAILED;
  case EVIDENCE_NO_CHANGE:
    return STATUS_ABORT;
  case EVIDENCE_NOT_SHOWN:
  case EVIDENCE_ONLY_CHECK_CHANGED:
    return passes ? STATUS_ABORT : STATUS_FAILED;
  }
  return STATUS_NO_RULE;
}

/* Appends what else there is to say than the word: why the check is no pass, what is unknown. */
static void tell_remarks(const struct evidence_runs *r, const char *before, struct buf *out) {
  static const char *const falls[] = {"", "the check prints no counts any more",
                                      "fewer tests pass, or are run, than before",
                                      "more tests are skipped than before"};
  const struct check_run *now = &r->facts.runs[RUNS_NOW];
  enum counts_fall fall;
  bool passes = evidence_passes(&r->facts, &fall);
  if (now->end == CHECK_EXITED && now->exit != 0)
    buf_printf(out,
               "%sThe check fails on a clean copy of the work. What git ignores is not there: "
               "--link has it.\n",
               before);
  else if (now->end == CHECK_EXITED && !passes)
    buf_printf(out, "%sThe check is no pass, though its exit status is 0: %s.\n", before,
               fall == COUNTS_HOLD ? "tests failed" : falls[fall]);
  else if (r->evidence == EVIDENCE_OLD_CHECK_FAILS)
    buf_printf(out, "%sIt passes only with its own files as the work left them.\n", before);
  if (r->evidence == EVIDENCE_NOT_SHOWN && passes)
    buf_printf(out, "%sIt passes without the work, too.\n", before);
  if (r->facts.no_old_check)
    buf_printf(out, "%sThe check could not be run before the work, so there is no old one.\n",
               before);
  if (r->problem.code != ERR_NONE) {
    buf_printf(out, "%s", before);
    buf_safe(out, str_from(r->problem.text), false);
    buf_putc(out, '\n');
  }
}

/* Appends each run with its result: a row of a table. */
static void tell_runs(const struct evidence_runs *r, bool markdown, struct buf *out) {
  static const enum runs_which order[] = {RUNS_BEFORE, RUNS_NOW, RUNS_OLD_CHECK, RUNS_NEW_CHECK};
  for (size_t i = 0; i < ARRAY_LEN(order); i++) {
    const struct check_run *run = &r->facts.runs[order[i]];
    if (run->end == CHECK_NOT_RUN)
      continue;
    buf_printf(out, markdown ? "| %s | " : "  %-48s", runs_words(order[i]));
    evidence_put_run(run, out);
    buf_puts(out, markdown ? " |\n" : "\n");
  }
}

static void tell_files(const struct evidence_runs *r, const char *before, struct buf *out) {
  for (int check = 1; check >= 0; check--) {
    size_t shown = 0, all = 0;
    JSON_EACH(r->changes, i, file) {
      if ((json_at(file, "check") != NULL) != (check == 1))
        continue;
      if (all++ >= SHOWN_FILES)
        continue;
      if (shown++ == 0)
        buf_printf(out, "%s%s", before, check ? "changed, of the check: " : "changed: ");
      else
        buf_puts(out, ", ");
      protect_put_file(file, out);
    }
    if (all > shown)
      buf_printf(out, " and %zu more", all - shown);
    if (all > 0)
      buf_putc(out, '\n');
  }
}

/* Appends the last lines of the run that decided against the work. */
static void tell_last(const struct evidence_runs *r, const char *before, struct buf *out) {
  struct str text = buf_view(&r->last[evidence_old_check(&r->facts)]);
  const char *from = text.p + text.n;
  for (int lines = 0; text.n > 0 && from > text.p; from--)
    if (from[-1] == '\n' && ++lines == SHOWN_LINES)
      break;
  for (struct str rest = {from, text.n > 0 ? (size_t)(text.p + text.n - from) : 0}; rest.n > 0;) {
    struct str line = str_next_line(&rest);
    buf_printf(out, "%s" STR_FMT "\n", before, STR_ARG(line));
  }
}

static void tell_result(const struct evidencing *e, struct buf *out) {
  const struct evidence_runs *r = &e->runs;
  buf_printf(out, "%s: %s\n", evidence_name(r->evidence), evidence_words(r->evidence));
  tell_remarks(r, "  ", out);
  tell_files(r, "  ", out);
  tell_runs(r, false, out);
  if (status_of(r) == STATUS_FAILED)
    tell_last(r, "    | ", out);
}

static void put_markdown(const struct evidencing *e, struct buf *out) {
  const struct evidence_runs *r = &e->runs;
  buf_printf(out, "**%s**: %s\n\n", evidence_name(r->evidence), evidence_words(r->evidence));
  tell_remarks(r, "- ", out);
  tell_files(r, "- ", out);
  if (r->facts.changed)
    buf_puts(out, "\n| run | result |\n|---|---|\n");
  tell_runs(r, true, out);
  if (status_of(r) == STATUS_FAILED) {
    buf_puts(out, "\n");
    tell_last(r, "    ", out);
  }
}

static void tell_result_json(const struct evidencing *e) {
  const struct evidence_runs *r = &e->runs;
  json_t *value = runs_result(r), *files = json_array();
  for (size_t i = 0; r->why_now != NULL && i < r->now.count; i++)
    if (r->why_now[i] != CHECK_FILE_NOT)
      json_array_append_new(files,
                            json_pack("{so ss}", "path", json_io_string(r->now.files[i].path.p),
                                      "why", check_file_name(r->why_now[i])));
  json_object_set_new(value, "subject", json_io_string(e->subject));
  json_object_set_new(value, "check", json_io_string(e->spec.command));
  json_object_set_new(value, "check_files", files);
  json_io_put(value);
}

static bool write_junit(const struct evidencing *e, const char *path, struct err *err) {
  const struct evidence_runs *r = &e->runs;
  bool good = status_of(r) == STATUS_COMPLETE;
  buf_auto_t text = {0};
  FILE *out = fopen(path, "we");
  if (out == NULL)
    return err_set_errno(err, errno, "cannot write %.300s", path);
  tell_result(e, &text);
  fprintf(out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"segue evidence\" "
          "tests=\"1\" failures=\"%d\" errors=\"0\" skipped=\"0\">\n  <testcase "
          "classname=\"evidence\" name=\"",
          !good);
  cli_put_xml(out, e->subject);
  fputs(good ? "\"/>\n" : "\">\n    <failure type=\"", out);
  if (!good) {
    fprintf(out, "%s\" message=\"%s\">", evidence_name(r->evidence), evidence_words(r->evidence));
    cli_put_xml(out, buf_c(&text));
    fputs("</failure>\n  </testcase>\n", out);
  }
  fputs("</testsuite>\n", out);
  bool written = !ferror(out);
  written = fclose(out) == 0 && written;
  return written || err_set_errno(err, errno, "cannot write %.300s", path);
}

static int evidence_run(const struct cli_args *args) {
  const char *word = args->words[0], *dots = strstr(word, ".."), *junit = cli_value(args, "junit");
  bool json = cli_flag(args, "json"), markdown = cli_flag(args, "md");
  struct evidencing e = {.subject = word,
                         .slot = -1,
                         .add = json_array(),
                         .leave = json_array(),
                         .links = json_array()};
  struct err err = {0};
  cli_errors_as_json(json);
  bool ok =
      take_options(&e, args, &err) &&
      (dots != NULL ? work_of_range(&e, word, dots, &err) : work_of_session(&e, args, &err)) &&
      take_folder(&e, &err) && run_all(&e, cli_colours(STDERR_FILENO), &err) &&
      (junit == NULL || write_junit(&e, junit, &err));
  int status = ok ? status_of(&e.runs) : STATUS_USAGE;
  buf_auto_t text = {0};
  if (ok && json)
    tell_result_json(&e);
  else if (ok && markdown)
    put_markdown(&e, &text);
  else if (ok)
    tell_result(&e, &text);
  fputs(buf_c(&text), stdout);
  evidencing_free(&e);
  return ok ? status : cli_fail_with(STATUS_USAGE, "evidence", &err);
}

const struct cli_command cmd_evidence = {COMMAND_EVIDENCE, .run = evidence_run};
