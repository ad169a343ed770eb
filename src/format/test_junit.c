/* Reads a JUnit report with expat and counts its cases. */
#include "base/log.h"
#include "format/test_counts.h"

#include <dlfcn.h>
#include <expat.h>
#include <string.h>

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
    (void)err_set(err, ERR_INVALID, "line %lu: %s", (unsigned long)expat.line(j.parser), why);
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
