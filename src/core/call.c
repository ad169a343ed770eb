/* Names purposes, permissions and error classes, and frees what a call gave back. */
#include "core/call.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const purposes[PURPOSE_COUNT] = {
    [PURPOSE_EXECUTE] = "execute", [PURPOSE_REPORT] = "report",       [PURPOSE_JUDGE] = "judge",
    [PURPOSE_REASK] = "reask",     [PURPOSE_CHECK] = "check",         [PURPOSE_SELECT] = "select",
    [PURPOSE_LOOP] = "loop",       [PURPOSE_DECOMPOSE] = "decompose",
};

static const struct {
  const char *name;
  bool falls_back, is_transient;
} classes[CLASS_COUNT] = {
    [CLASS_NONE] = {"ok", false, false},
    [CLASS_AUTH] = {"auth", true, false},
    [CLASS_QUOTA] = {"quota", true, false},
    [CLASS_RATE_LIMIT] = {"rate_limit", true, true},
    [CLASS_OVERLOADED] = {"overloaded", true, true},
    [CLASS_NETWORK] = {"network", true, true},
    [CLASS_TIMEOUT] = {"timeout", true, false},
    [CLASS_REFUSED] = {"refused", false, false},
    [CLASS_LENGTH] = {"length", false, false},
    [CLASS_BAD_REQUEST] = {"bad_request", false, false},
    [CLASS_NOT_FOUND] = {"not_found", true, false},
    [CLASS_CRASHED] = {"crashed", true, false},
    [CLASS_PROTOCOL] = {"protocol", true, false},
    [CLASS_CANCELLED] = {"cancelled", false, false},
    [CLASS_LOOPING] = {"looping", false, false},
    [CLASS_BUDGET] = {"budget", false, false},
    [CLASS_DENIED] = {"denied", false, false},
};

const char *call_purpose_name(enum call_purpose purpose) {
  assert(purpose < PURPOSE_COUNT);
  return purposes[purpose];
}

bool call_purpose_from_name(struct str name, enum call_purpose *out) {
  int i = str_index(name, purposes, PURPOSE_COUNT);
  if (i >= 0)
    *out = (enum call_purpose)i;
  return i >= 0;
}

const char *error_class_name(enum error_class class) {
  assert(class < CLASS_COUNT);
  return classes[class].name;
}

bool error_class_is_for_person(enum error_class class) {
  return class == CLASS_AUTH || class == CLASS_QUOTA || class == CLASS_BUDGET ||
         class == CLASS_DENIED || class == CLASS_CANCELLED;
}

bool error_class_from_name(struct str name, enum error_class *out) {
  for (int i = CLASS_NONE + 1; i < CLASS_COUNT; i++)
    if (str_eq_c(name, classes[i].name)) {
      *out = (enum error_class)i;
      return true;
    }
  return false;
}

static const char *const admissions[] = {"wait", "admitted", "use_fallback"};

const char *admission_name(enum admission_answer admission) {
  return admissions[admission];
}

bool admission_from_name(struct str name, enum admission_answer *out) {
  int i = str_index(name, admissions, ADMISSION_COUNT);
  if (i >= 0)
    *out = (enum admission_answer)i;
  return i >= 0;
}

const char *const permission_names[] = {"readonly", "edit", "full", NULL};

const char *permission_name(enum permission permission) {
  return permission_names[permission];
}

bool permission_from_name(struct str name, enum permission *out) {
  int i = str_index(name, permission_names, PERMISSION_COUNT);
  if (i >= 0)
    *out = (enum permission)i;
  return i >= 0;
}

const char *const sandbox_level_names[] = {"off", "guard", "strict", "container", NULL};
const char *const sandbox_network_names[] = {"open", "api", "none", NULL};

const char *sandbox_level_name(enum sandbox_level level) {
  return sandbox_level_names[level];
}

bool sandbox_level_from_name(struct str name, enum sandbox_level *out) {
  int i = str_index(name, sandbox_level_names, SANDBOX_LEVEL_COUNT);
  if (i >= 0)
    *out = (enum sandbox_level)i;
  return i >= 0;
}

const char *sandbox_network_name(enum sandbox_network network) {
  return sandbox_network_names[network];
}

bool sandbox_network_from_name(struct str name, enum sandbox_network *out) {
  int i = str_index(name, sandbox_network_names, SANDBOX_NETWORK_COUNT);
  if (i >= 0)
    *out = (enum sandbox_network)i;
  return i >= 0;
}

bool error_class_falls_back(enum error_class class) {
  return classes[class].falls_back;
}

bool error_class_is_transient(enum error_class class) {
  return classes[class].is_transient;
}

void text_deinit(struct text *text) {
  buf_deinit(&text->bytes);
  text->blob[0] = '\0';
}

bool text_needs_blob(struct str s) {
  return s.n > LIMIT_INLINE_TEXT_BYTES || !utf8_valid(s.p, s.n);
}

/* Appends UTF-8 with each ill-formed byte as \xNN; NUL stays (it is valid JSON). */
static void append_readable(struct buf *b, struct str s) {
  for (size_t i = 0; i < s.n;) {
    size_t len = utf8_decode(s.p + i, s.n - i, NULL);
    if (len == 0) {
      buf_printf(b, "\\x%02x", (unsigned char)s.p[i]);
      len = 1;
    } else {
      buf_append(b, s.p + i, len);
    }
    i += len;
  }
}

json_t *text_render(struct str s) {
  buf_auto_t b = {0};
  if (s.n <= LIMIT_RENDER_BYTES) {
    append_readable(&b, s);
  } else {
    size_t half = LIMIT_RENDER_BYTES / 2, head = utf8_floor(s.p, half),
           tail = utf8_ceil(s.p, s.n, s.n - half);
    append_readable(&b, (struct str){s.p, head});
    buf_printf(&b, "\n[... %zu bytes ...]\n", tail - head);
    append_readable(&b, (struct str){s.p + tail, s.n - tail});
  }
  return json_stringn(b.p ? b.p : "", b.n);
}

void call_result_deinit(struct call_result *result) {
  text_deinit(&result->text);
  text_deinit(&result->error_text);
  json_decref(result->structured);
  json_decref(result->files);
  json_decref(result->files_between);
  json_decref(result->head);
  json_decref(result->git_seen);
  json_decref(result->tests);
  json_decref(result->usage);
  json_decref(result->unfinished);
  json_decref(result->outlived);
  json_decref(result->requests);
  *result = (struct call_result){0};
}

void call_result_fail(struct call_result *result, enum error_class class, const char *fmt, ...) {
  va_list ap;
  result->class = class;
  va_start(ap, fmt);
  (void)vsnprintf(result->message, sizeof result->message, fmt, ap);
  va_end(ap);
  result->message[utf8_floor(result->message, strlen(result->message))] = '\0';
}
