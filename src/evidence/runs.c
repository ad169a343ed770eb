/* Runs a check on the trees that show something. */
#include "evidence/runs.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/tmpdir.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
  const char *name, *words;
} runs_table[RUNS_COUNT] = {
    [RUNS_NOW] = {"now", "the check on the work"},
    [RUNS_BEFORE] = {"before", "the check before the work"},
    [RUNS_OLD_CHECK] = {"old_check", "the check as it was, on the work"},
    [RUNS_NEW_CHECK] = {"new_check", "the check as it is, on the code from before"},
};

const char *runs_words(enum runs_which which) {
  assert(which < RUNS_COUNT);
  return runs_table[which].words;
}

void runs_begin(struct evidence_runs *r, const struct runs_spec *spec) {
  *r = (struct evidence_runs){
      .spec = spec,
      .argv = {"sh", "-c",
               "unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR; exec sh -c \"$1\" 2>&1",
               "sh", spec->command}};
  r->facts.ignored_changed = spec->ignored_changed;
}

static void remove_copy(struct evidence_runs *r) {
  struct err err;
  if (r->copy != NULL && !tmpdir_remove(r->copy, &err))
    log_warn("%s", err.text); /* the next user of the private folder removes it */
  free(r->copy);
  free(r->cwd);
  r->copy = r->cwd = NULL;
}

void runs_deinit(struct evidence_runs *r) {
  remove_copy(r);
  base_close(&r->base);
  listing_deinit(&r->before);
  listing_deinit(&r->now);
  free(r->why_before);
  free(r->why_now);
  json_decref(r->changes);
  for (size_t i = 0; i < RUNS_COUNT; i++)
    buf_deinit(&r->last[i]);
  *r = (struct evidence_runs){0};
}

/* --- what differs --- */

struct difference {
  struct str *old_files, *new_files; /* of the check: as it was, as it is */
  size_t old_count, new_count, room_old, room_new;
};

static enum check_file why_at(const struct file_listing *l, const enum check_file *why,
                              struct str path) {
  const struct listed_file *file = listing_at(l, path);
  return file ? why[file - l->files] : CHECK_FILE_NOT;
}

/* Sorts one file that differs. What only a changed script names is no file of the old check. */
static void difference_add(struct evidence_runs *r, struct difference *d, struct str path) {
  enum check_file was = why_at(&r->before, r->why_before, path),
                  is = why_at(&r->now, r->why_now, path);
  bool fresh = is == CHECK_FILE_USUAL || is == CHECK_FILE_COMMAND || is == CHECK_FILE_ADDED;
  r->facts.changed = true;
  if (was == CHECK_FILE_NOT && is == CHECK_FILE_NOT) {
    r->facts.code_changed = true;
    return;
  }
  r->facts.check_changed = true;
  d->new_files = xgrow(d->new_files, &d->room_new, d->new_count + 1, sizeof *d->new_files);
  d->new_files[d->new_count++] = path;
  if (was == CHECK_FILE_NOT && !fresh)
    return;
  d->old_files = xgrow(d->old_files, &d->room_old, d->old_count + 1, sizeof *d->old_files);
  d->old_files[d->old_count++] = path;
}

static void find_difference(struct evidence_runs *r, struct difference *d) {
  for (size_t i = 0; i < r->now.count; i++) {
    const struct listed_file *now = &r->now.files[i], *was = listing_at(&r->before, now->path);
    if (was == NULL || strcmp(was->hash, now->hash) != 0 || strcmp(was->mode, now->mode) != 0)
      difference_add(r, d, now->path);
  }
  for (size_t i = 0; i < r->before.count; i++)
    if (listing_at(&r->now, r->before.files[i].path) == NULL)
      difference_add(r, d, r->before.files[i].path);
}

static void note_check_files(struct evidence_runs *r) {
  JSON_EACH(r->changes, i, file) {
    enum check_file why = why_at(&r->before, r->why_before, json_view_at(file, "path"));
    if (why == CHECK_FILE_NOT)
      why = why_at(&r->now, r->why_now, json_view_at(file, "path"));
    if (why != CHECK_FILE_NOT)
      json_put(file, "check", json_string(check_file_name(why)));
    if (listing_at(&r->before, json_view_at(file, "path")) == NULL)
      json_put(file, "new", json_true());
  }
}

/* --- the trees --- */

static bool open_trees(struct evidence_runs *r, struct err *err) {
  const struct runs_spec *spec = r->spec;
  char *before = r->trees[RUNS_BEFORE], *now = r->trees[RUNS_NOW];
  if (!base_open(&r->base, spec->folder, spec->private_dir, err))
    return false;
  if (spec->from_tree != NULL)
    print_into(before, BASE_TREE_BYTES, "%s", spec->from_tree);
  else if (!base_of_commit(&r->base, spec->from, before, err))
    return false;
  if (spec->base_only) {
    print_into(now, BASE_TREE_BYTES, "%s", before);
    return base_list(&r->base, before, &r->before, err);
  }
  bool ok = spec->to == NULL && base_take_all(&r->base, now, err);
  if (spec->to != NULL)
    ok = base_of_commit(&r->base, spec->to, now, err);
  return ok && base_list(&r->base, before, &r->before, err) &&
         base_list(&r->base, now, &r->now, err) &&
         (r->changes = base_changes(&r->base, before, now, err)) != NULL;
}

static bool make_trees(struct evidence_runs *r, struct err *err) {
  struct difference d = {0};
  const struct check_files_spec files = {.command = r->spec->command,
                                         .folder = r->base.within,
                                         .add = r->spec->add,
                                         .leave = r->spec->leave};
  r->why_before = xcalloc(r->before.count + 1, sizeof *r->why_before);
  r->why_now = xcalloc(r->now.count + 1, sizeof *r->why_now);
  if (r->spec->base_only)
    return true;
  check_files_find(&files, &r->before, base_read, &r->base, r->why_before);
  check_files_find(&files, &r->now, base_read, &r->base, r->why_now);
  find_difference(r, &d);
  note_check_files(r);
  bool ok = base_mix(&r->base, r->trees[RUNS_NOW], &r->before, d.old_files, d.old_count,
                     r->trees[RUNS_OLD_CHECK], err) &&
            base_mix(&r->base, r->trees[RUNS_BEFORE], &r->now, d.new_files, d.new_count,
                     r->trees[RUNS_NEW_CHECK], err);
  free(d.old_files);
  free(d.new_files);
  return ok;
}

/* Links what git ignores and the check needs, and removes a report from before. */
static bool furnish_copy(struct evidence_runs *r, struct err *err) {
  JSON_EACH(r->spec->links, i, name) {
    buf_auto_t from = {0}, to = {0};
    buf_printf(&from, "%s/%s", buf_c(&r->base.repo.top), json_string_value(name));
    buf_printf(&to, "%s/%s", r->copy, json_string_value(name));
    while (to.n > 1 && to.p[to.n - 1] == '/')
      to.p[--to.n] = '\0';
    if (access(buf_c(&from), F_OK) == 0 && access(buf_c(&to), F_OK) != 0 &&
        symlink(buf_c(&from), buf_c(&to)) != 0)
      return err_set(err, ERR_IO, "cannot link %.300s", buf_c(&to));
  }
  if (r->spec->format == TESTS_JUNIT) {
    buf_auto_t report = {0};
    buf_printf(&report, "%s/%s", r->cwd, r->spec->report);
    (void)unlink(buf_c(&report));
  }
  return true;
}

static bool make_copy(struct evidence_runs *r, struct err *err) {
  buf_auto_t copy = {0}, cwd = {0};
  remove_copy(r);
  buf_printf(&copy, "%s/copy-%u", r->spec->private_dir, ++r->copies);
  buf_printf(&cwd, "%s%s%s", buf_c(&copy), r->base.within[0] ? "/" : "", r->base.within);
  r->copy = buf_take(&copy);
  r->cwd = buf_take(&cwd);
  if (!base_check_out(&r->base, r->trees[r->at], r->copy, err))
    return false;
  if (access(r->cwd, F_OK) != 0) /* the folder is not there in this tree */
    (void)mkdir(r->cwd, 0700);
  return furnish_copy(r, err);
}

/* A tree that cannot be read back was lost, which is a result; anything else is an error. */
static bool is_lost(struct evidence_runs *r, const struct err *err) {
  if (err->code == ERR_CORRUPT) {
    r->facts.lost = true;
    r->problem = *err;
  }
  return r->facts.lost;
}

bool runs_prepare(struct evidence_runs *r, struct err *err) {
  *err = (struct err){0};
  if (!r->opened) {
    r->opened = (open_trees(r, err) && make_trees(r, err)) || is_lost(r, err);
    return r->opened;
  }
  r->prepared = make_copy(r, err);
  return r->prepared || is_lost(r, err);
}

/* --- the order of the runs --- */

/* Without its own files, or without a test that was run, there is nothing to compare with. Only the
 * base is asked, which the work cannot change. */
static void look_at_base(struct evidence_runs *r, struct str output) {
  const struct check_run *before = &r->facts.runs[RUNS_BEFORE];
  const struct test_counts *tests = &before->counts.tests;
  const struct check_files_spec files = {.command = r->spec->command, .folder = r->base.within};
  if (before->end == CHECK_EXITED && before->exit != 0 && before->counts.kind == COUNTS_NONE)
    r->facts.no_old_check = before->exit == 126 || before->exit == 127 ||
                            check_files_missed(&files, &r->before, output);
  else if (before->end == CHECK_EXITED && before->exit != 0)
    r->facts.no_old_check = tests->passed + tests->failed + tests->skipped == 0;
}

/* Returns what is to be run next; RUNS_COUNT: nothing. */
static enum runs_which needs(const struct evidence_runs *r) {
  const struct evidence_facts *f = &r->facts;
  if (r->spec->base_only)
    return f->lost || f->runs[RUNS_BEFORE].end != CHECK_NOT_RUN ? RUNS_COUNT : RUNS_BEFORE;
  if (f->lost || (!f->changed && !f->ignored_changed))
    return RUNS_COUNT;
  if (f->runs[RUNS_NOW].end == CHECK_NOT_RUN)
    return RUNS_NOW;
  if (f->runs[RUNS_BEFORE].end == CHECK_NOT_RUN)
    return RUNS_BEFORE;
  enum runs_which old = evidence_old_check(f);
  if (f->runs[old].end == CHECK_NOT_RUN)
    return old;
  if (!f->no_old_check && !r->repeated && f->runs[old].end == CHECK_EXITED &&
      !evidence_run_passes(f, &f->runs[old]))
    return old; /* once more */
  bool fresh = evidence_needs_new_check(f) && f->runs[RUNS_NEW_CHECK].end == CHECK_NOT_RUN;
  return fresh ? RUNS_NEW_CHECK : RUNS_COUNT;
}

/* Takes the result of a run on the same tree. */
static bool take_known(struct evidence_runs *r, enum runs_which which) {
  for (enum runs_which i = 0; i < RUNS_COUNT; i++) {
    struct check_run *other = &r->facts.runs[i], *run = &r->facts.runs[which];
    if (i == which || run->end != CHECK_NOT_RUN || other->end == CHECK_NOT_RUN ||
        strcmp(r->trees[i], r->trees[which]) != 0 || r->facts.ignored_changed)
      continue;
    *run = *other;
    buf_set(&r->last[which], buf_view(&r->last[i]));
    return true;
  }
  return false;
}

enum runs_step runs_next(struct evidence_runs *r) {
  if (!r->opened)
    return RUNS_PREPARE;
  if (r->prepared)
    return RUNS_CHECK;
  enum runs_which next;
  while ((next = needs(r)) != RUNS_COUNT && take_known(r, next))
    ;
  if (next == RUNS_COUNT) {
    remove_copy(r);
    r->evidence = evidence_of(&r->facts);
    return RUNS_DONE;
  }
  r->at = next;
  r->again = r->facts.runs[next].end != CHECK_NOT_RUN;
  return RUNS_PREPARE;
}

/* --- a run's end --- */

static void read_counts(const struct evidence_runs *r, struct str output,
                        struct check_counts *counts) {
  const struct runs_spec *spec = r->spec;
  struct err ignored;
  if (spec->format == TESTS_NONE || spec->format == TESTS_AUTO) {
    counts_find(output, counts);
    return;
  }
  *counts = (struct check_counts){.format = spec->format};
  bool found;
  if (spec->format == TESTS_JUNIT) {
    buf_auto_t path = {0}, text = {0};
    buf_printf(&path, "%s/%s", r->cwd, spec->report);
    found = file_read(buf_c(&path), LIMIT_REPORT_BYTES, &text, &ignored) &&
            test_counts_junit(buf_view(&text), &counts->tests, &ignored);
  } else {
    found = test_counts_read(spec->format, output, &counts->tests);
  }
  counts->kind = found ? COUNTS_MEASURED : COUNTS_NONE;
}

void runs_ended(struct evidence_runs *r, enum check_end end, int exit, struct str output,
                uint64_t ms, const char *why) {
  struct check_run run = {.end = end, .exit = exit, .ms = ms};
  assert(r->prepared && end != CHECK_NOT_RUN);
  r->prepared = false;
  read_counts(r, output, &run.counts);
  if (why != NULL)
    err_set(&r->problem, ERR_IO, "%s", why);
  r->repeated |= r->again;
  if (r->again && !evidence_run_passes(&r->facts, &run))
    return; /* the first one stands */
  run.flaky = r->again;
  r->facts.runs[r->at] = run;
  struct str text = str_trim(output);
  size_t from = text.n > RUNS_LAST_BYTES ? text.n - RUNS_LAST_BYTES : 0;
  buf_clear(&r->last[r->at]);
  if (text.n > 0)
    buf_safe(&r->last[r->at], (struct str){text.p + from, text.n - from}, true);
  const struct check_files_spec files = {.command = r->spec->command, .folder = r->base.within};
  if (r->at == RUNS_BEFORE)
    look_at_base(r, output);
  else if (r->at == RUNS_OLD_CHECK && end == CHECK_EXITED && exit != 0 &&
           run.counts.kind == COUNTS_NONE) /* the base failed before it came to that file */
    r->facts.no_old_check |= check_files_missed(&files, &r->before, output);
}

/* --- the result --- */

static const char *const run_kinds[] = {"none", "said", "measured"};
static const char *const run_ends[] = {"not_run", "exited", "too_slow", "not_started"};

json_t *runs_run_json(const struct check_run *run) {
  json_t *value = json_pack("{ss}", "end", run_ends[run->end]);
  if (run->end != CHECK_EXITED)
    return value;
  json_object_set_new(value, "exit", json_integer(run->exit));
  json_object_set_new(value, "ms", json_integer((json_int_t)run->ms));
  json_object_set_new(value, "counts", json_string(run_kinds[run->counts.kind]));
  if (run->counts.kind == COUNTS_MEASURED)
    json_object_set_new(value, "format", json_string(test_format_name(run->counts.format)));
  if (run->counts.kind != COUNTS_NONE) {
    json_object_set_new(value, "passed", json_integer(run->counts.tests.passed));
    json_object_set_new(value, "failed", json_integer(run->counts.tests.failed));
    json_object_set_new(value, "skipped", json_integer(run->counts.tests.skipped));
  }
  if (run->flaky)
    json_object_set_new(value, "flaky", json_true());
  return value;
}

void runs_read_run(const json_t *value, struct check_run *run) {
  struct str end = json_view_at(value, "end"), counts = json_view_at(value, "counts"), path;
  *run = (struct check_run){.exit = (int)json_int_at(value, "exit"),
                            .ms = (uint64_t)json_int_at(value, "ms"),
                            .flaky = json_is_true(json_at(value, "flaky"))};
  for (size_t i = 0; i < ARRAY_LEN(run_ends); i++)
    if (str_eq_c(end, run_ends[i]))
      run->end = (enum check_end)i;
  for (size_t i = 0; i < ARRAY_LEN(run_kinds); i++)
    if (str_eq_c(counts, run_kinds[i]))
      run->counts.kind = (enum counts_kind)i;
  (void)test_format_parse(json_view_at(value, "format"), &run->counts.format, &path);
  run->counts.tests = (struct test_counts){.passed = (long)json_int_at(value, "passed"),
                                           .failed = (long)json_int_at(value, "failed"),
                                           .skipped = (long)json_int_at(value, "skipped")};
}

json_t *runs_result(const struct evidence_runs *r) {
  static const char *const falls[] = {"hold", "gone", "fewer", "more_skipped"};
  enum counts_fall fall;
  bool passes = evidence_passes(&r->facts, &fall);
  json_t *runs = json_object();
  for (enum runs_which i = 0; i < RUNS_COUNT; i++)
    json_object_set_new(runs, runs_table[i].name, runs_run_json(&r->facts.runs[i]));
  json_t *value =
      json_pack("{ss ss so so sb}", "evidence", evidence_name(r->evidence), "counts", falls[fall],
                "runs", runs, "files", r->changes ? json_incref(r->changes) : json_array(),
                "old_check", (int)!r->facts.no_old_check);
  if (r->facts.runs[RUNS_NOW].end == CHECK_EXITED)
    json_object_set_new(value, "passes", json_boolean(passes));
  if (r->problem.code != ERR_NONE)
    json_object_set_new(value, "problem", json_text(str_from(r->problem.text)));
  return value;
}
