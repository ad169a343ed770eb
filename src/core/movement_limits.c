/* Reads what bounds a movement's calls. */
#include "core/movement_limits.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/value_ref.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "format/test_counts.h"

#include <ctype.h>
#include <string.h>

static const struct {
  const char *name;
  long ms;
} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

/* Reads a duration. Returns its milliseconds, -1 if it is none or exceeds `most` milliseconds. */
static long limits_ms_of(struct str text, long most) {
  size_t digits = 0;
  long number;
  while (digits < text.n && isdigit((unsigned char)text.p[digits]))
    digits++;
  const struct str unit = {text.p + digits, text.n - digits};
  if (digits > 9 || !str_to_long((struct str){text.p, digits}, &number))
    return -1;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (str_eq_c(unit, units[i].name) && number > 0 && number <= most / units[i].ms)
      return number * units[i].ms;
  return -1;
}

long limits_duration_ms(struct str text, long otherwise) {
  long ms = text.n > 0 ? limits_ms_of(text, LIMIT_DURATION_MS) : -1;
  return ms > 0 ? ms : otherwise;
}

long limits_deadline_ms(struct str text) {
  long ms = text.n > 0 ? limits_ms_of(text, LIMIT_DEADLINE_MS) : -1;
  return ms > 0 ? ms : 0;
}

bool limits_check_deadline(struct str text, struct err *err) {
  return limits_deadline_ms(text) > 0 ||
         err_set(err, ERR_INVALID,
                 "must be a duration of at most 90d: write a number with s, m, h or d, such as 8h");
}

bool limits_check_duration(struct str text, struct err *err) {
  return limits_ms_of(text, LIMIT_DURATION_MS) > 0 ||
         err_set(err, ERR_INVALID,
                 "must be a duration of 1ms to 24h: write a number with ms, s, m or h, such as "
                 "90s");
}

bool limits_check_wait(struct str text, struct err *err) {
  return str_eq_c(text, "off") || limits_ms_of(text, LIMIT_DURATION_MS) > 0 ||
         err_set(err, ERR_INVALID, "must be off, or a duration of 1ms to 24h, such as 30m");
}

int64_t limits_memory_bytes(struct str text) {
  enum { LEAST_M = 16, UNIT = 1024 };
  static const char memory_units[] = "MGT";
  const int64_t most_m = (int64_t)UNIT * UNIT * UNIT;
  int64_t n = 0;
  if (text.n < 2 || text.n > 12)
    return 0;
  for (size_t i = 0; i < text.n - 1; i++) {
    if (text.p[i] < '0' || text.p[i] > '9')
      return 0;
    n = n * 10 + (text.p[i] - '0');
  }
  const char *unit = memchr(memory_units, text.p[text.n - 1], sizeof memory_units - 1);
  for (const char *u = memory_units; unit != NULL && u < unit; u++)
    n *= UNIT; /* at most eleven digits, far from an overflow */
  return unit == NULL || n < LEAST_M || n > most_m ? 0 : n * UNIT * UNIT;
}

bool limits_check_memory(struct str text, struct err *err) {
  return limits_memory_bytes(text) > 0 ||
         err_set(err, ERR_INVALID,
                 "must be an amount of 16M to 1024T: write a whole number with M, G or T, such as "
                 "4G");
}

bool limits_check_tests(struct str text, struct err *err) {
  enum test_format format;
  struct str path, name = text;
  if (test_format_parse(text, &format, &path))
    return true;
  if (format == TESTS_JUNIT)
    return err_set(err, ERR_INVALID, "names no report: write junit:PATH");
  if (format != TESTS_NONE)
    return err_set(err, ERR_INVALID, "takes no path with %s: write %s", test_format_name(format),
                   test_format_name(format));
  for (size_t i = 0; i < name.n; i++)
    if (name.p[i] == ':')
      name.n = i;
  const char *near = str_nearest(name, test_format_names);
  if (near != NULL)
    return err_set(err, ERR_INVALID, "knows no \"%.*s\": did you mean %s?", (int)name.n, name.p,
                   near);
  return err_set(
      err, ERR_INVALID,
      "knows no \"%.*s\": write auto, ctest, pytest, go, cargo, jest, tap, unittest, node "
      "or junit:PATH",
      (int)name.n, name.p);
}

bool limits_check_cwd(struct str text, struct err *err) {
  bool leaves = text.n > 0 && text.p[0] == '/';
  for (size_t at = 0; at < text.n; at++) {
    size_t n = 0;
    while (at + n < text.n && text.p[at + n] != '/')
      n++;
    leaves = leaves || str_eq_c((struct str){text.p + at, n}, "..");
    at += n;
  }
  return !leaves || err_set(err, ERR_INVALID,
                            "leaves the session's working directory: name a folder below it");
}

void limits_cwd(const struct workflow *wf, const struct movement *m, const json_t *values,
                struct buf *out) {
  static const char before[] = "{" PROMPT_STRUCTURED;
  struct str rest = m->cwd;
  while (rest.n > 0) {
    const char *end = memchr(rest.p, '}', rest.n);
    struct prompt_ref ref;
    if (!str_starts(rest, before) || end == NULL) {
      buf_putc(out, rest.p[0]);
      rest = (struct str){rest.p + 1, rest.n - 1};
      continue;
    }
    const char *name = rest.p + strlen(before);
    if (prompt_ref_parse((struct str){name, (size_t)(end - name)}, wf, &ref)) {
      const json_t *value =
          prompt_ref_value(&ref, json_object_getn(values, ref.movement.p, ref.movement.n));
      if (json_is_string(value))
        buf_str(out, json_view(value));
      else if (value != NULL && !json_is_null(value))
        json_write(value, out);
    }
    rest = (struct str){end + 1, rest.n - (size_t)(end + 1 - rest.p)};
  }
}

/* --- budgets --- */

static const char *const budget_units[BUDGET_UNITS] = {"tokens", "cost", "time", "calls",
                                                       "movements"};

const char *budget_unit_name(enum budget_unit unit) {
  return budget_units[unit];
}

enum budget_unit budget_unit_of(struct str name) {
  enum budget_unit unit = BUDGET_TOKENS;
  while (unit < BUDGET_UNITS && !str_eq_c(name, budget_units[unit]))
    unit++;
  return unit;
}

int64_t budget_amount(const json_t *value, enum budget_unit unit) {
  double usd = json_number_value(value);
  bool dollars;
  switch (unit) {
  case BUDGET_TOKENS:
  case BUDGET_CALLS:
  case BUDGET_MOVEMENTS:
    return json_is_integer(value) ? json_integer_value(value) : -1;
  case BUDGET_COST:
    dollars = json_is_number(value) && usd >= 0 && usd <= LIMIT_COST_USD;
    /* Rounded by hand: libm's function would load that library at each start. */
    return dollars ? (int64_t)(usd * BUDGET_NANO + 0.5) : -1;
  case BUDGET_TIME:
    return json_is_string(value) ? limits_duration_ms(json_view(value), -1) : -1;
  case BUDGET_UNITS:
    break;
  }
  BUG("no unit of a budget: %d", (int)unit);
}

void budget_read(const json_t *object, struct budget *out) {
  const json_t *call = json_at(object, "call");
  for (int u = 0; u < BUDGET_UNITS; u++) {
    out->limit[u] = budget_amount(json_object_get(object, budget_units[u]), (enum budget_unit)u);
    out->call[u] = budget_amount(json_object_get(call, budget_units[u]), (enum budget_unit)u);
  }
  out->stops = str_eq_c(json_view_at(object, "on_exceed"), "stop");
}
