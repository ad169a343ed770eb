/* Runs git once and waits. */
#include "git/run.h"

#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>

static bool run_words(const char *folder, struct git_answer *answer, struct err *err,
                      va_list words) {
  struct git_ask ask = {.folder = folder};
  for (size_t n = 0; (ask.words[n] = va_arg(words, const char *)) != NULL; n++)
    assert(n + 1 < GIT_WORDS);
  return git_now(&ask, answer, err);
}

bool git_complain(const char *what, const struct git_answer *answer, struct err *err) {
  buf_auto_t why = {0};
  git_complaint(answer, &why);
  err_set(err, ERR_INVALID, "%.150s: %.350s", what, buf_c(&why));
  return false;
}

bool git_run(const char *folder, struct git_answer *answer, struct err *err, ...) {
  va_list words;
  va_start(words, err);
  bool ok = run_words(folder, answer, err, words);
  va_end(words);
  return ok;
}

bool git_asked(const char *what, const struct git_ask *ask, struct git_answer *answer,
               struct err *err) {
  return git_now(ask, answer, err) && (answer->exit == 0 || git_complain(what, answer, err));
}

bool git_told(const char *folder, struct git_answer *answer, struct err *err, ...) {
  va_list words;
  va_start(words, err);
  bool ok = run_words(folder, answer, err, words);
  va_end(words);
  return ok && (answer->exit == 0 || git_complain("git", answer, err));
}

bool git_descends(const char *folder, const char *commit, const char *from, bool *yes,
                  struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  *yes = false;
  if (!git_run(folder, &answer, err, "merge-base", "--is-ancestor", from, commit, NULL))
    return false;
  *yes = answer.exit == 0;
  return answer.exit <= 1 || git_complain("git merge-base", &answer, err);
}

char *git_line(const char *folder, struct err *err, ...) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  va_list words;
  va_start(words, err);
  bool ok = run_words(folder, &answer, err, words);
  va_end(words);
  if (!ok || (answer.exit != 0 && !git_complain("git", &answer, err)))
    return NULL;
  struct str text = str_trim(buf_view(&answer.out));
  return xstrndup(text.p ? text.p : "", text.n);
}

bool git_did(const char *folder, struct err *err, ...) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  va_list words;
  va_start(words, err);
  bool ok = run_words(folder, &answer, err, words);
  va_end(words);
  return ok && (answer.exit == 0 || git_complain("git", &answer, err));
}
