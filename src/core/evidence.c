/* Keeps what a check's runs show, and says it in words. */
#include "core/evidence.h"

#include "base/log.h"
#include "core/checks.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <stdlib.h>
#include <string.h>

enum { EVIDENCE_TOLD_FILES = 20 };

static const char *const basis_names[] = {"", "shown", "judged", "claimed", "person"};

const char *basis_name(enum basis basis) {
  return basis_names[basis];
}

/* Returns what the verdict of a model or a person rests on; NONE: nobody was asked. */
static enum basis basis_of_stage(enum judge_stage stage) {
  if (stage == STAGE_HUMAN)
    return BASIS_PERSON;
  if (stage == STAGE_PHASE1_TAG || stage == STAGE_AUTO_SELECT)
    return BASIS_CLAIMED;
  struct str method = str_from(judge_stage_match_method(stage));
  return str_among(method, "structured_output tag_fallback ai_judge") ? BASIS_JUDGED : BASIS_NONE;
}

enum basis evidence_basis(const struct core *core, const struct turn *turn,
                          enum judge_stage stage) {
  const json_t *found = turn->evidence.found ? turn->evidence.found : core->evidence.last;
  const struct movement *check = &core->workflow->movements[core->evidence.last_movement];
  const json_t *gate = json_object_getn(core->gates, check->name.p, check->name.n);
  bool fresh =
      found != NULL && (found == turn->evidence.found || !json_is_true(json_at(gate, "stale")));
  const char *contents = json_string_value(json_at(found, "contents"));
  const json_t *allowed = contents ? json_object_get(core->evidence.allowed, contents) : NULL;
  enum basis own = basis_of_stage(stage);
  if (fresh && str_eq_c(json_view(json_at(found, "evidence")), "shown"))
    return BASIS_SHOWN;
  bool accepted = json_is_true(allowed) || core->evidence.last_answer == EVIDENCE_ALLOW;
  if (own == BASIS_PERSON || (fresh && accepted))
    return BASIS_PERSON;
  if (own == BASIS_NONE && fresh && allowed != NULL)
    return BASIS_JUDGED;
  return own != BASIS_NONE ? own : (enum basis)core->evidence.said;
}

void evidence_judged(struct core *core, enum judge_stage stage, struct str basis) {
  enum basis own = basis_of_stage(stage);
  if (own != BASIS_NONE)
    core->evidence.said = (int)own;
  core->evidence.basis = BASIS_NONE;
  for (int i = 1; i < (int)ARRAY_LEN(basis_names); i++)
    if (str_eq_c(basis, basis_names[i]))
      core->evidence.basis = i;
}

const char *evidence_word(const struct core *core, const struct turn *turn) {
  const json_t *found = turn->evidence.found ? turn->evidence.found : core->evidence.last;
  return found != NULL ? json_string_value(json_at(found, "evidence")) : "unknown";
}

/* --- words --- */

static const char *in_language(bool ja, const char *japanese, const char *english) {
  return ja ? japanese : english;
}

static void put_run(const json_t *found, const char *which, bool ja, struct buf *out) {
  const json_t *run = json_object_get(json_at(found, "runs"), which);
  struct str end = json_view(json_at(run, "end")), counts = json_view(json_at(run, "counts"));
  json_int_t passed = json_int_at(run, "passed"), skipped = json_int_at(run, "skipped");
  json_int_t all = passed + json_int_at(run, "failed") + skipped;
  if (!str_eq_c(end, "exited")) {
    const char *why = in_language(ja, "実行できず", "could not be run");
    if (str_eq_c(end, "too_slow"))
      why = in_language(ja, "時間切れ", "too slow, and ended");
    buf_puts(out, why);
    return;
  }
  buf_printf(out, "%s%" JSON_INTEGER_FORMAT, in_language(ja, "終了コード ", "exit status "),
             json_int_at(run, "exit"));
  if (counts.n == 0 || str_eq_c(counts, "none")) {
    buf_puts(out, in_language(ja, "、テスト数なし", ", no counts"));
  } else {
    const char *said = in_language(ja, "自称 ", "said: ");
    buf_printf(out, "%s%s%" JSON_INTEGER_FORMAT "%s%" JSON_INTEGER_FORMAT "%s",
               in_language(ja, "、", ", "), str_eq_c(counts, "said") ? said : "", passed,
               in_language(ja, " / ", " of "), all, in_language(ja, " 件成功", " tests passed"));
  }
  if (skipped > 0)
    buf_printf(out, "%s%" JSON_INTEGER_FORMAT "%s", in_language(ja, "、", ", "), skipped,
               in_language(ja, " 件スキップ", " skipped"));
  if (json_at(run, "flaky") != NULL)
    buf_puts(out,
             in_language(ja, "（不安定：一度目は失敗）", " (flaky: it failed the first time)"));
}

static bool was_run(const json_t *found, const char *which) {
  struct str end = json_view(json_at(json_object_get(json_at(found, "runs"), which), "end"));
  return end.n > 0 && !str_eq_c(end, "not_run");
}

/* Appends names of files, those of the check or all. Returns how many there are. */
static size_t put_found_files(const json_t *found, bool check, struct buf *out) {
  size_t n = 0;
  JSON_EACH(json_at(found, "files"), i, file) {
    if (check && json_at(file, "check") == NULL)
      continue;
    if (n++ >= EVIDENCE_TOLD_FILES)
      continue;
    buf_puts(out, n > 1 ? ", " : "");
    protect_put_file(file, out);
  }
  json_int_t more = json_int_at(found, "files_more");
  if (n > EVIDENCE_TOLD_FILES || (more > 0 && !check))
    buf_printf(out, ", ... (%" JSON_INTEGER_FORMAT ")", (json_int_t)n + (check ? 0 : more));
  return n;
}

/* Appends one line of what was measured, if that run was made. */
static void put_measured(const json_t *found, const char *which, const char *words, bool ja,
                         struct buf *out) {
  if (!was_run(found, which))
    return;
  buf_puts(out, words);
  put_run(found, which, ja, out);
  buf_puts(out, in_language(ja, "。\n", ".\n"));
}

static void put_ignored(const json_t *found, bool ja, struct buf *out) {
  const json_t *ignored = json_at(found, "ignored");
  if (json_array_size(ignored) == 0)
    return;
  buf_puts(out, in_language(ja, "- git が無視するファイルの変更：",
                            "- Files changed that git ignores: "));
  for (size_t i = 0; i < json_array_size(ignored) && i < EVIDENCE_TOLD_FILES; i++) {
    json_auto_t *file = json_pack("{sO}", "path", json_array_get(ignored, i));
    buf_puts(out, i > 0 ? ", " : "");
    protect_put_file(file, out);
  }
  buf_puts(out, in_language(ja, "。\n", ".\n"));
}

void evidence_words_of(const json_t *found, bool ja, struct buf *out) {
  buf_auto_t files = {0}, check = {0};
  if (put_found_files(found, false, &files) > 0)
    buf_printf(out, "%s%s",
               in_language(ja, "- セッション開始から最後の検査までに変更されたファイル：",
                           "- Files changed from the session's start to its last check: "),
               buf_c(&files));
  else
    buf_puts(out, in_language(ja, "- セッション開始から最後の検査までに変更されたファイルはない",
                              "- No file was changed from the session's start to its last check"));
  if (put_found_files(found, true, &check) > 0)
    buf_printf(out, "%s%s",
               in_language(ja, "。うち検査自身のファイル：", ". Of these, files of the check: "),
               buf_c(&check));
  buf_puts(out, in_language(ja, "。\n", ".\n"));
  put_ignored(found, ja, out);
  put_measured(found, "before",
               in_language(ja, "- 作業前の検査：", "- The check before the work: "), ja, out);
  put_measured(found, "now", in_language(ja, "- 現在の検査：", "- The check now: "), ja, out);
  put_measured(found, "old_check",
               in_language(ja, "- 作業前の検査をこの作業に対して実行：",
                           "- The check as it was before the work, run on this work: "),
               ja, out);
  put_measured(found, "new_check",
               in_language(ja, "- 現在の検査を作業前のコードに対して実行：",
                           "- The check as it is now, run on the code from before: "),
               ja, out);
  if (str_among(evidence_found_word(found), "not_shown only_check_changed"))
    buf_puts(out,
             in_language(ja, "- 検査は作業について何も示していない。\n",
                         "- The check shows nothing about the work: it passes without it, too.\n"));
}

void evidence_tell(const struct core *core, const struct turn *turn, struct buf *out) {
  const json_t *found = turn->evidence.found ? turn->evidence.found : core->evidence.last;
  if (found != NULL)
    evidence_words_of(found, workflow_language(core->workflow) == DESCRIBE_JAPANESE, out);
}

/* --- sent back --- */

static void put_back_words(const json_t *found, bool ja, struct buf *out) {
  struct str word = evidence_found_word(found), last = json_view(json_at(found, "last"));
  buf_auto_t files = {0};
  if (str_eq_c(word, "no_change")) {
    buf_puts(out, in_language(
                      ja,
                      "検査は成功したが、このセッションで変更されたファイルはない。依頼された作業を"
                      "行うか、何もしなくてよい理由を述べること。\n",
                      "The check passes, but no file was changed in this session. Do what the task "
                      "asks for, or say why nothing is to be done.\n"));
    return;
  }
  buf_puts(out,
           in_language(
               ja, "検査は、このセッションで変更された検査自身のファイルによってのみ成功する。\n",
               "The check passes only with what this session changed in the check itself.\n"));
  if (put_found_files(found, true, &files) > 0)
    buf_printf(out, "%s%s\n", in_language(ja, "変更：", "changed: "), buf_c(&files));
  put_ignored(found, ja, out);
  put_measured(found, "old_check",
               in_language(ja, "作業前の検査をこの作業に対して実行：",
                           "the check as it was, on this work: "),
               ja, out);
  if (last.n > 0)
    buf_printf(out, "\n" STR_FMT "\n\n", STR_ARG(last));
  buf_puts(out,
           in_language(
               ja,
               "検査のファイルを元に戻し、検査が示すことをコードで直すこと。依頼がその変更を"
               "求めているなら、そのままにしてそう述べること。人が判断する。\n",
               "Put the check's files back as they were, and mend in the code what they show. If "
               "the task itself asks for their change, leave them and say so: a person will "
               "look.\n"));
}

void evidence_put_first(const struct core *core, const struct turn *turn, struct prompt *prompt) {
  const json_t *found = core->evidence.last;
  const struct movement *m = core_movement(core, turn);
  bool back = evidence_goes(found, "back") || core->evidence.last_answer == EVIDENCE_BACK;
  bool ja = workflow_language(core->workflow) == DESCRIBE_JAPANESE;
  bool now = core->evidence.last_turn == core->ended.turn;
  if (found == NULL || m->argv != NULL || m->bare_prompt || (m->edit && !(back && now)))
    return;
  buf_auto_t words = {0};
  if (m->edit) {
    put_back_words(found, ja, &words);
  } else {
    buf_puts(&words,
             in_language(ja, "セッション開始から現在までの実測。報告の主張はこれを覆さない：\n",
                         "Measured from the start of the session to now; no claim of a report "
                         "outweighs it:\n"));
    evidence_words_of(found, ja, &words);
  }
  buf_puts(&words, "\n---\n\n");
  prompt_put_first(buf_view(&words), prompt);
}

/* --- the question --- */

size_t evidence_judge_of(const struct core *core, const struct turn *turn) {
  const struct workflow *wf = core->workflow;
  size_t own = turn->movement, i = 0;
  if (!evidence_judges(turn) || wf->movements[own].judge.provider.n > 0)
    return own;
  while (i < wf->movement_count && (wf->movements[i].argv != NULL || !wf->movements[i].edit))
    i++;
  return i < wf->movement_count ? i : own;
}

void evidence_put_task_files(const struct core *core, const struct turn *turn, struct buf *out) {
  bool ja = workflow_language(core->workflow) == DESCRIBE_JAPANESE;
  size_t fresh = 0;
  JSON_EACH(json_at(turn->evidence.found, "files"), i, file) {
    if (json_at(file, "check") == NULL)
      continue;
    if (json_at(file, "new") != NULL) {
      fresh++; /* its name is an agent's */
      continue;
    }
    json_auto_t *named = json_pack("{sO}", "path", json_at(file, "path"));
    buf_puts(out, "- ");
    protect_put_file(named, out);
    buf_putc(out, '\n');
  }
  if (fresh > 0)
    buf_printf(out, "- %s%zu\n", in_language(ja, "新しいファイル：", "new files: "), fresh);
}

json_t *evidence_question(const json_t *found, const json_t *judged) {
  struct str word = evidence_found_word(found);
  bool check = json_is_true(json_at(found, "check_changed"));
  static const char *const check_words[] = {
      "The check passes only with files that git ignores, or passes less than before.",
      "The check passes only with its own files as the agent left them."};
  const char *head = "It cannot be told what the check shows: its runs on copies failed.";
  buf_auto_t text = {0}, files = {0};
  if (str_eq_c(word, "old_check_fails"))
    head = check_words[check];
  else if (str_eq_c(word, "only_check_changed"))
    head = "Only files of the check were changed, and they pass on the code from before, too. Is "
           "that what you asked for?";
  else if (str_eq_c(word, "not_shown"))
    head = "The check was changed, and passes on the code from before, too.";
  else if (str_eq_c(word, "no_change"))
    head = "The check passes, but no file was changed. Was nothing to be done?";
  buf_printf(&text, "%s\n", head);
  if (put_found_files(found, check, &files) > 0)
    buf_printf(&text, "  changed: %s\n", buf_c(&files));
  put_ignored(found, false, &text);
  put_measured(found, "before", "  the check before the work: ", false, &text);
  put_measured(found, "old_check", "  the check as it was, on this work: ", false, &text);
  put_measured(found, "new_check", "  the check as it is, on the code from before: ", false, &text);
  struct str problem = json_view(json_at(found, "problem"));
  if (problem.n > 0)
    buf_printf(&text, "  " STR_FMT "\n", STR_ARG(problem));
  if (judged != NULL)
    buf_puts(&text, "  a judge who was shown only the task: ");
  struct str reason = json_view_at(judged, "reason");
  if (reason.n > 0)
    json_write(json_at(judged, "reason"), &text);
  else if (judged != NULL)
    buf_puts(&text, "no readable answer");
  buf_puts(&text, judged != NULL ? "\n" : "");
  buf_puts(&text, "back: the agent is told. allow: these contents of these files. stop: it ends.");
  return json_pack("{so s[sss]}", "text", json_text(buf_view(&text)), "choices", "back", "allow",
                   "stop");
}

/* --- the fold --- */

static bool evidence_take_tree(const struct fold *f, const json_t *data) {
  struct core *core = f->core;
  const char *tree = json_string_value(json_at(data, "tree"));
  if (!core->evidence.asked || core->evidence.tree != NULL || core->evidence.off)
    return fold_bad(f, "nobody asked for it");
  core->evidence.off = json_is_true(json_at(data, "none"));
  if (core->evidence.off)
    return true;
  core->evidence.tree = xstrdup(tree ? tree : "");
  core->evidence.origin = xstrdup(core->session);
  return true;
}

static bool take_found(const struct fold *f, struct turn *turn, json_t *data) {
  struct core *core = f->core;
  if (turn == NULL || !turn->evidence.asked || turn->evidence.found != NULL)
    return fold_bad(f, "nobody asked for it");
  if (evidence_found_word(data).n == 0)
    return fold_bad(f, "it has no word");
  turn->evidence.found = json_incref(data);
  json_decref(core->evidence.last);
  core->evidence.last = json_incref(data);
  core->evidence.last_turn = turn->id;
  core->evidence.last_movement = turn->movement;
  core->evidence.last_answer = 0;
  core->evidence.went_back |= evidence_goes(data, "back");
  return true;
}

/* Contents that somebody allowed are not asked about again. */
static void allow_contents(struct core *core, const struct turn *turn, bool by_person) {
  const char *contents = json_string_value(json_at(turn->evidence.found, "contents"));
  if (contents == NULL)
    return;
  if (core->evidence.allowed == NULL)
    core->evidence.allowed = json_object();
  json_object_set_new(core->evidence.allowed, contents, json_boolean(by_person));
}

static bool take_task_judgment(const struct fold *f, struct turn *turn, json_t *data) {
  if (turn == NULL || !evidence_judges(turn) || data == NULL)
    return fold_bad(f, "nobody asked for it");
  turn->evidence.judged = json_incref(data);
  for (const struct call *call = turn->calls; call != NULL; call = call->next)
    turn->evidence.judged_to =
        call->id > turn->evidence.judged_to ? call->id : turn->evidence.judged_to;
  if (json_is_true(json_at(data, "allows")))
    allow_contents(f->core, turn, false);
  return true;
}

bool evidence_apply(const struct fold *f) {
  struct core *core = f->core;
  struct str event = fold_text(f, MEMBER_EVENT);
  json_t *data = fold_tree(f, MEMBER_DATA);
  struct turn *turn = core_turn(core, (long)fold_number(f, MEMBER_TURN));
  if (str_eq_c(event, "take")) {
    bool again = core->evidence.asked;
    core->evidence.asked = true;
    return !again || fold_bad(f, "the base was asked for");
  }
  if (str_eq_c(event, "taken"))
    return evidence_take_tree(f, data);
  if (str_eq_c(event, "run")) {
    long check = workflow_find(core->workflow, fold_text(f, MEMBER_MOVEMENT));
    if (check < 0 || core->evidence.run > 0)
      return fold_bad(f, "that check is not run on the base");
    core->evidence.run = check + 1;
    return true;
  }
  if (str_eq_c(event, "ran")) {
    if (core->evidence.run == 0 || core->evidence.before != NULL || data == NULL)
      return fold_bad(f, "nobody asked for it");
    core->evidence.before = json_incref(data);
    return true;
  }
  if (str_eq_c(event, "look")) {
    if (turn == NULL || turn->phase != TURN_JUDGING || turn->evidence.asked)
      return fold_bad(f, "its turn is not to be looked at");
    turn->evidence.asked = true;
    return true;
  }
  if (str_eq_c(event, "judged"))
    return take_task_judgment(f, turn, data);
  return str_eq_c(event, "found") ? take_found(f, turn, data) : fold_bad(f, "its event is unknown");
}

void evidence_answered(struct core *core, struct turn *turn, long choice) {
  turn->evidence.answer = choice;
  core->evidence.last_answer = choice;
  if (choice == EVIDENCE_ALLOW)
    allow_contents(core, turn, true);
}
