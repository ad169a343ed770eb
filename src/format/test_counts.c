/* Reads the summaries of test programs. */
#include "format/test_counts.h"

#include "base/buf.h"
#include "base/log.h"

#include <assert.h>
#include <ctype.h>
#include <dlfcn.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

/* --- JUnit reports, read with expat --- */

/* The library is loaded by the first report, since only reports need it. */
static struct {
  __typeof__(XML_ParserCreate) *create;
  __typeof__(XML_ParserFree) *free;
  __typeof__(XML_Parse) *parse;
  __typeof__(XML_SetUserData) *set_user_data;
  __typeof__(XML_SetElementHandler) *set_elements;
  __typeof__(XML_SetStartDoctypeDeclHandler) *set_doctype;
  __typeof__(XML_StopParser) *stop;
  __typeof__(XML_GetCurrentLineNumber) *line;
  __typeof__(XML_GetErrorCode) *code;
  __typeof__(XML_ErrorString) *words;
  __typeof__(XML_ExpatVersion) *version; /* "expat_2.5.0" */
} expat;

static bool load_expat(struct err *err) {
  static const struct {
    const char *name;
    void *at;
  } symbols[] = {
      {"XML_ParserCreate", &expat.create},
      {"XML_ParserFree", &expat.free},
      {"XML_Parse", &expat.parse},
      {"XML_SetUserData", &expat.set_user_data},
      {"XML_SetElementHandler", &expat.set_elements},
      {"XML_SetStartDoctypeDeclHandler", &expat.set_doctype},
      {"XML_StopParser", &expat.stop},
      {"XML_GetCurrentLineNumber", &expat.line},
      {"XML_GetErrorCode", &expat.code},
      {"XML_ErrorString", &expat.words},
      {"XML_ExpatVersion", &expat.version},
  };
  void *library = dlopen("libexpat.so.1", RTLD_NOW | RTLD_LOCAL); /* counted: stays loaded */
  if (library == NULL)
    return err_set(err, ERR_NOT_FOUND,
                   "libexpat.so.1 is not installed, which reads JUnit reports: install libexpat1");
  for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
    void *found = dlsym(library, symbols[i].name);
    if (found == NULL)
      return err_set(err, ERR_NOT_FOUND, "libexpat.so.1 has no %s", symbols[i].name);
    memcpy(symbols[i].at, &found, sizeof found);
  }
  return true;
}

struct junit {
  struct test_counts counts;
  XML_Parser parser;
  bool in_case, failed, skipped, has_doctype;
};

/* Returns true for the name, whatever namespace stands before it. */
static bool is_named(const char *element, const char *name) {
  const char *colon = strrchr(element, ':');
  return strcmp(colon != NULL ? colon + 1 : element, name) == 0;
}

/* Googletest, ctest and others say it of a case in an attribute alone. */
static const char *const skipped_words[] = {"notrun", "disabled", "suppressed", "skipped", NULL};
static const char *const failed_words[] = {"fail", "failed", "error", NULL};

static bool attributes_say(const XML_Char **attributes, const char *const *words) {
  for (; attributes[0] != NULL; attributes += 2)
    for (size_t i = 0; words[i] != NULL; i++)
      if ((strcmp(attributes[0], "status") == 0 || strcmp(attributes[0], "result") == 0) &&
          strcmp(attributes[1], words[i]) == 0)
        return true;
  return false;
}

static void junit_on_start(void *ctx, const XML_Char *name, const XML_Char **attributes) {
  struct junit *j = ctx;
  bool failure = is_named(name, "failure") || is_named(name, "error");
  if (is_named(name, "testcase")) {
    j->in_case = true;
    j->failed = attributes_say(attributes, failed_words);
    j->skipped = attributes_say(attributes, skipped_words);
  } else if (j->in_case) {
    j->failed |= failure;
    j->skipped |= is_named(name, "skipped");
  } else if (failure) { /* of a whole suite */
    j->counts.failed++;
  }
}

static void junit_on_end(void *ctx, const XML_Char *name) {
  struct junit *j = ctx;
  if (!j->in_case || !is_named(name, "testcase"))
    return;
  j->in_case = false;
  if (j->failed)
    j->counts.failed++;
  else if (j->skipped)
    j->counts.skipped++;
  else
    j->counts.passed++;
}

/* Refuses a document type: a report needs none, and entities can grow without bound. */
static void on_doctype(void *ctx, const XML_Char *name, const XML_Char *system_id,
                       const XML_Char *public_id, int has_internal) {
  struct junit *j = ctx;
  (void)name, (void)system_id, (void)public_id, (void)has_internal;
  j->has_doctype = true;
  (void)expat.stop(j->parser, XML_FALSE);
}

bool test_counts_junit(struct str xml, struct test_counts *add, struct err *err) {
  enum { PIECE = 1 << 20 };
  struct junit j = {0};
  bool ok = true;
  if (!load_expat(err))
    return false;
  j.parser = expat.create(NULL);
  if (j.parser == NULL)
    die("out of memory");
  expat.set_user_data(j.parser, &j);
  expat.set_elements(j.parser, junit_on_start, junit_on_end);
  expat.set_doctype(j.parser, on_doctype);
  for (size_t at = 0; ok && at <= xml.n; at += PIECE) {
    size_t n = xml.n - at < PIECE ? xml.n - at : PIECE;
    ok = expat.parse(j.parser, xml.p + at, (int)n, at + n == xml.n) == XML_STATUS_OK;
    if (at + n == xml.n)
      break;
  }
  const char *why = j.has_doctype ? "a document type is not taken" : NULL;
  if (!ok && why == NULL)
    why = expat.words(expat.code(j.parser));
  if (!ok)
    err_set(err, ERR_INVALID, "line %lu: %s", (unsigned long)expat.line(j.parser), why);
  expat.free(j.parser);
  if (!ok)
    return false;
  add->passed += j.counts.passed;
  add->failed += j.counts.failed;
  add->skipped += j.counts.skipped;
  return true;
}

const char *junit_library(void) {
  struct err ignored;
  if (!load_expat(&ignored))
    return NULL;
  const char *version = expat.version();
  return version + strcspn(version, "0123456789");
}

/* --- summaries --- */

const char *const test_format_names[] = {"ctest",    "pytest", "go",    "cargo", "jest", "tap",
                                         "unittest", "node",   "junit", "auto",  NULL};

const char *test_format_name(enum test_format format) {
  return format == TESTS_NONE ? "none" : test_format_names[format - 1];
}

bool test_format_parse(struct str text, enum test_format *format, struct str *path) {
  struct str name = str_cut(&text, ':');
  *format =
      (enum test_format)(str_index(name, test_format_names, str_count(test_format_names)) + 1);
  *path = text.p ? text : STR("");
  return *format != TESTS_NONE && (*format == TESTS_JUNIT ? path->n > 0 : text.p == NULL);
}

/* --- words --- */

/* Returns the number in front of a word: "3 passed" in "1 failed, 3 passed". -1: there is none. */
static long number_before(struct str line, const char *word) {
  size_t word_n = strlen(word);
  for (size_t i = 0; i + word_n <= line.n; i++) {
    size_t end = i, from;
    if (memcmp(line.p + i, word, word_n) != 0 || i == 0 || line.p[i - 1] != ' ')
      continue;
    if (i + word_n < line.n && isalpha((unsigned char)line.p[i + word_n]) &&
        line.p[i + word_n] != 's')
      continue;
    end--;
    for (from = end; from > 0 && isdigit((unsigned char)line.p[from - 1]); from--)
      ;
    long value;
    if (from < end && str_to_long((struct str){line.p + from, end - from}, &value))
      return value;
  }
  return -1;
}

/* Returns the number behind the words; -1: there is none. */
static long number_after(struct str line, const char *words) {
  const char *at = memmem(line.p, line.n, words, strlen(words));
  size_t from = at ? (size_t)(at - line.p) + strlen(words) : line.n, n = from;
  long value;
  while (n < line.n && isdigit((unsigned char)line.p[n]))
    n++;
  return str_to_long((struct str){line.p + from, n - from}, &value) ? value : -1;
}

static long or_zero(long number) {
  return number > 0 ? number : 0;
}

static bool has_prefix(struct str line, const char *prefix, struct str *rest) {
  if (!str_drop(&line, prefix))
    return false; /* *rest stays what it was */
  *rest = line;
  return true;
}

/* --- the formats: each is given the lines in order; a command may run several programs --- */

struct test_reading {
  struct test_counts counts;
  bool found;
  long planned;            /* of tap: -1 until it was told */
  long summed;             /* of tap: the number of tests in prove's last line; -1: there is none */
  long tests, packages[2]; /* of go: failed, passed */
  long failed_tests;
  long outside; /* of ctest: skipped, and not in its sum */
  long programs_begun, programs_over;
  long files_failed; /* of jest: they could not be run, or had errors outside of tests */
};

/* Counts a program that said that it begins and gave no summary as failed. */
static void programs_end(struct test_reading *r) {
  if (r->programs_begun > r->programs_over)
    r->counts.failed += r->programs_begun - r->programs_over;
}

static void ctest_line(struct test_reading *r, struct str line) {
  long failed = number_before(line, "tests failed"), all = -1;
  if (failed < 0)
    failed = number_before(line, "test failed");
  bool disabled = str_has(line, "***Not Run (Disabled)");
  struct str rest = line;
  r->programs_begun += str_starts(line, "Test project ");
  if (str_has(line, "No tests were found!!!")) {
    r->found = true;
    r->programs_over++;
    return;
  }
  if (disabled || str_has(line, "***Skipped")) {
    r->counts.skipped++;
    r->outside += disabled; /* "100% of 2" are two beside those */
    return;
  }
  if (failed < 0 || !str_has(line, "tests passed") || !str_has(line, "out of "))
    return;
  while (rest.n > 0 && !str_starts(rest, "out of "))
    rest = (struct str){rest.p + 1, rest.n - 1};
  if (!str_to_long(str_trim((struct str){rest.p + 7, rest.n - 7}), &all) || all < failed)
    return;
  r->found = true;
  r->programs_over++;
  r->counts.failed += failed;
  r->counts.passed += all - failed;
}

static void pytest_line(struct test_reading *r, struct str line) {
  /* '=' and blanks can stand before a summary. */
  struct str text = str_trim(line);
  while (text.n > 0 && (text.p[0] == '=' || text.p[0] == ' ')) {
    text.p++;
    text.n--;
  }
  bool none = str_starts(text, "no tests ran");
  r->programs_begun += str_starts(text, "test session starts");
  if (!none && (text.n == 0 || !isdigit((unsigned char)text.p[0]) || !str_has(text, " in ")))
    return;
  long passed = number_before(text, "passed"), failed = number_before(text, "failed");
  long errors = number_before(text, "error"), skipped = number_before(text, "skipped");
  if (!none && passed < 0 && failed < 0 && errors < 0 && skipped < 0 &&
      number_before(text, "deselected") < 0 && number_before(text, "xfailed") < 0)
    return;
  r->found = true;
  r->programs_over++;
  r->counts.passed += or_zero(passed) + or_zero(number_before(text, "xpassed"));
  r->counts.failed += or_zero(failed) + or_zero(errors);
  r->counts.skipped += or_zero(skipped) + or_zero(number_before(text, "xfailed"));
}

static void go_line(struct test_reading *r, struct str line) {
  struct str text = str_trim(line);
  bool is_json = str_starts(text, "{") && str_has(text, "\"Action\":");
  if (is_json) {
    if (!str_has(text, "\"Test\":") && str_has(text, "\"Action\":\"fail\""))
      r->packages[0]++;
    if (str_has(text, "\"Test\":")) {
      bool passed = str_has(text, "\"Action\":\"pass\""),
           failed = str_has(text, "\"Action\":\"fail\"");
      r->counts.skipped += str_has(text, "\"Action\":\"skip\"");
      r->counts.passed += passed;
      r->failed_tests += failed;
      r->tests += passed || failed;
    }
  }
  bool passed = str_starts(text, "--- PASS:"), failed = str_starts(text, "--- FAIL:");
  r->tests += passed;
  r->counts.passed += passed;
  r->failed_tests += failed;
  r->counts.skipped += str_starts(text, "--- SKIP:");
  bool ok = str_starts(line, "ok  \t"), bad = str_starts(line, "FAIL\t");
  bool empty = str_has(line, "[no tests to run]") || str_has(line, "[no test files]");
  r->packages[1] += ok && !empty;
  r->packages[0] += bad;
  r->found |= is_json || passed || failed || ok || bad || empty;
}

static void go_end(struct test_reading *r) {
  if (r->tests == 0)
    r->counts.passed = r->packages[1];
  r->counts.failed = r->failed_tests > 0 ? r->failed_tests : r->packages[0];
}

static void cargo_line(struct test_reading *r, struct str line) {
  bool result = str_has(line, "test result: "), next = str_has(line, " tests run: ");
  bool begins = str_starts(line, "running ");
  r->programs_begun += begins && (str_ends(line, " tests") || str_ends(line, " test"));
  r->programs_over += result;
  if (!result && !next && number_before(line, "test run:") < 0)
    return;
  r->found = true;
  r->counts.passed += or_zero(number_before(line, "passed"));
  r->counts.failed += or_zero(number_before(line, "failed")) +
                      or_zero(number_before(line, "exec failed")) +
                      or_zero(number_before(line, "timed out"));
  r->counts.skipped += or_zero(number_before(line, result ? "ignored" : "skipped"));
}

static void jest_line(struct test_reading *r, struct str line) {
  struct str text = str_trim(line), rest;
  if (has_prefix(text, "Test Suites:", &rest) || has_prefix(text, "Test Files  ", &rest))
    r->files_failed += or_zero(number_before(rest, "failed"));
  if (has_prefix(text, "Errors  ", &rest))
    r->files_failed += or_zero(number_before(rest, "error"));
  if (!has_prefix(text, "Tests:", &rest) && !has_prefix(text, "Tests  ", &rest) &&
      !has_prefix(text, "No tests found", &rest) && !has_prefix(text, "No test files found", &rest))
    return;
  r->found = true;
  r->counts.passed += or_zero(number_before(rest, "passed"));
  r->counts.failed += or_zero(number_before(rest, "failed"));
  r->counts.skipped +=
      or_zero(number_before(rest, "skipped")) + or_zero(number_before(rest, "todo"));
}

/* Counts a file with a failed test as failed, too. */
static void jest_end(struct test_reading *r) {
  if (r->counts.failed == 0)
    r->counts.failed = r->files_failed;
}

/* Returns what follows the last '#' that stands apart: "ok 3 - see \\#12 # SKIP no net". */
static struct str tap_directive(struct str line) {
  for (size_t i = line.n; i-- > 1;)
    if (line.p[i] == '#' && line.p[i - 1] == ' ')
      return str_trim((struct str){line.p + i + 1, line.n - i - 1});
  return STR("");
}

static void tap_line(struct test_reading *r, struct str line) {
  struct str rest;
  if (has_prefix(line, "1..", &rest)) {
    size_t n = 0;
    while (n < rest.n && isdigit((unsigned char)rest.p[n]))
      n++;
    long planned;
    if (str_to_long((struct str){rest.p, n}, &planned)) {
      r->planned = or_zero(r->planned) + planned; /* several programs may have been run */
      r->found = true;
    }
    return;
  }
  /* prove says "ok" of each file, too, which is no test; without -v it has numbers at the end. */
  long seen = r->counts.passed + r->counts.failed + r->counts.skipped;
  if (str_eq_c(line, "ok") && r->planned >= 0 && seen >= r->planned)
    return;
  if (str_starts(line, "Files="))
    r->found |= (r->summed = number_after(line, ", Tests=")) >= 0;
  if (str_has(line, " subtests failed."))
    r->failed_tests = or_zero(number_after(line, " test programs. "));
  bool bad = has_prefix(line, "not ok", &rest), ok = !bad && has_prefix(line, "ok", &rest);
  if (has_prefix(line, "Bail out!", &rest)) {
    r->counts.failed++;
    r->found = true;
  }
  if ((!ok && !bad) || (rest.n > 0 && rest.p[0] != ' '))
    return;
  struct str directive = tap_directive(rest);
  r->found = true;
  if (str_starts_fold(directive, "skip") || (bad && str_starts_fold(directive, "todo")))
    r->counts.skipped++;
  else if (bad)
    r->counts.failed++;
  else
    r->counts.passed++;
}

static void tap_end(struct test_reading *r) {
  long seen = r->counts.passed + r->counts.failed + r->counts.skipped;
  if (r->planned < 0 && r->summed >= 0)
    r->counts = (struct test_counts){.passed = or_zero(r->summed - r->failed_tests),
                                     .failed = r->failed_tests};
  else if (r->planned < 0) /* it ended before it told one */
    r->counts.failed++;
  else
    r->counts.failed += labs(r->planned - seen);
}

/* "Ran 6 tests in 0.001s", and then "OK (skipped=1)" or "FAILED (failures=1, errors=2)". */
static void unittest_line(struct test_reading *r, struct str line) {
  struct str rest;
  if (has_prefix(line, "Ran ", &rest) && str_has(rest, " test")) {
    long ran = number_before(line, "test");
    r->found |= ran >= 0;
    r->programs_begun += ran >= 0;
    r->tests = or_zero(ran);
    return;
  }
  if (r->programs_begun == r->programs_over ||
      (!has_prefix(line, "OK", &rest) && !has_prefix(line, "FAILED", &rest) &&
       !has_prefix(line, "NO TESTS RAN", &rest)))
    return;
  long failed = 0, skipped = 0;
  (void)str_cut(&rest, '(');
  while (rest.p != NULL && rest.n > 0) {
    struct str value = str_trim(str_cut(&rest, ',')), name = str_cut(&value, '=');
    long number;
    if (value.n > 0 && value.p[value.n - 1] == ')')
      value.n--;
    if (!str_to_long(value, &number))
      continue;
    if (str_eq_c(name, "failures") || str_eq_c(name, "errors") ||
        str_eq_c(name, "unexpected successes"))
      failed += number;
    else if (str_eq_c(name, "skipped") || str_eq_c(name, "expected failures"))
      skipped += number;
  }
  r->programs_over++;
  r->counts.failed += failed;
  r->counts.skipped += skipped;
  r->counts.passed += or_zero(r->tests - failed - skipped);
}

/* "# pass 5" or "\u2139 pass 5", one line for each number. */
static void node_line(struct test_reading *r, struct str line) {
  long number;
  if (!str_drop(&line, "# ") && !str_drop(&line, "\u2139 "))
    return;
  struct str name = str_cut(&line, ' ');
  if (line.p == NULL || !str_to_long(str_trim(line), &number) || number < 0)
    return; /* tape has two spaces in "# pass  5" */
  r->found |= str_eq_c(name, "tests");
  if (str_eq_c(name, "pass"))
    r->counts.passed += number;
  else if (str_eq_c(name, "fail") || str_eq_c(name, "cancelled"))
    r->counts.failed += number;
  else if (str_eq_c(name, "skipped") || str_eq_c(name, "todo"))
    r->counts.skipped += number;
}

static void ctest_end(struct test_reading *r) {
  long among = r->counts.skipped - r->outside;
  r->counts.passed -= among < r->counts.passed ? among : r->counts.passed;
  programs_end(r);
}

static const struct {
  void (*line)(struct test_reading *r, struct str line);
  void (*end)(struct test_reading *r);
} readers[TESTS_COUNT] = {
    [TESTS_CTEST] = {ctest_line, ctest_end}, [TESTS_PYTEST] = {pytest_line, programs_end},
    [TESTS_GO] = {go_line, go_end},          [TESTS_CARGO] = {cargo_line, programs_end},
    [TESTS_JEST] = {jest_line, jest_end},    [TESTS_TAP] = {tap_line, tap_end},
    [TESTS_NODE] = {node_line, NULL},        [TESTS_UNITTEST] = {unittest_line, programs_end},
};

bool test_counts_read(enum test_format format, struct str text, struct test_counts *out) {
  assert(out != NULL);
  struct test_reading r = {.planned = -1, .summed = -1};
  char_auto_t *copy = xstrndup(text.p, text.n);
  struct str rest = {copy, escapes_drop(copy, text.n)};
  while (rest.p != NULL && rest.n > 0 && readers[format].line != NULL) {
    struct str line = str_next_line(&rest);
    if (line.n > 0 && line.p[line.n - 1] == '\r')
      line.n--;
    readers[format].line(&r, line);
  }
  if (r.found && readers[format].end != NULL)
    readers[format].end(&r);
  *out = r.counts;
  return r.found;
}
