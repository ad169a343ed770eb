/* Reads all(...) and any(...) into expressions. */
#include "judge/all_any.h"

#include "base/limits.h"

#include <assert.h>
#include <string.h>

struct argument_reader {
  struct arena *arena;
  const char *start, *at, *end; /* the text between the parentheses */
  const char *name;
  struct all_any *out;
  struct err *err;
};

static bool all_any_fail(struct argument_reader *r, const char *what) {
  return err_set(r->err, ERR_INVALID, "%s(...) %s", r->name, what);
}

static void skip_spaces(struct argument_reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
    r->at++;
}

static bool read_quoted(struct argument_reader *r, struct buf *label) {
  r->at++;
  while (r->at < r->end && *r->at != '"') {
    if (*r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '"' || r->at[1] == '\\'))
      r->at++;
    buf_putc(label, *r->at++);
  }
  if (r->at == r->end)
    return all_any_fail(r, "has a quote that stays open: close it");
  r->at++;
  return true;
}

/* Reads one label and the comma behind it. */
static bool read_argument(struct argument_reader *r) {
  struct buf label = {0};
  bool ok = true;
  if (r->out->count == LIMIT_GROUP_COUNT)
    return all_any_fail(r, "has too many labels");
  if (r->at < r->end && *r->at == '"') {
    ok = read_quoted(r, &label);
  } else {
    const char *from = r->at;
    while (r->at < r->end && *r->at != ',')
      r->at++;
    buf_str(&label, str_trim((struct str){from, (size_t)(r->at - from)}));
  }
  struct str text = str_trim(buf_view(&label));
  if (ok && text.n == 0)
    ok = all_any_fail(r, "has an empty place: write a label there, or remove the comma");
  if (ok)
    r->out->labels[r->out->count++] = arena_str(r->arena, text);
  buf_deinit(&label);
  skip_spaces(r);
  if (ok && r->at < r->end && *r->at != ',')
    ok = all_any_fail(r, "has words behind a quoted label: write a comma between two labels");
  return ok;
}

bool all_any_parse(struct arena *arena, struct str text, struct all_any *out, size_t *error_offset,
                   struct err *err) {
  assert(text.n > strlen("all(") && (str_starts(text, "all(") || str_starts(text, "any(")));
  *out = (struct all_any){.all = text.p[1] == 'l'};
  out->labels = arena_array(arena, LIMIT_GROUP_COUNT, sizeof *out->labels);
  struct argument_reader r = {.arena = arena,
                              .start = text.p,
                              .at = text.p + strlen("all("),
                              .end = text.p + text.n - 1,
                              .name = out->all ? "all" : "any",
                              .out = out,
                              .err = err};
  bool ok = *r.end == ')' || all_any_fail(&r, "has no closing ): close it");
  while (ok) {
    skip_spaces(&r);
    ok = read_argument(&r);
    if (r.at == r.end)
      break;
    r.at++; /* the comma */
  }
  *error_offset = (size_t)(r.at - r.start);
  return ok;
}

static void put_literal(struct str label, struct buf *out) {
  buf_putc(out, '"');
  for (size_t i = 0; i < label.n; i++) {
    if (label.p[i] == '"' || label.p[i] == '\\')
      buf_putc(out, '\\');
    buf_putc(out, label.p[i]);
  }
  buf_putc(out, '"');
}

void all_any_expression(const struct all_any *a, struct buf *out) {
  assert(a->count > 0);
  if (a->all && a->count == 1) {
    buf_puts(out, "parts.length > 0 && !exists(parts, item.label != ");
    put_literal(a->labels[0], out);
    buf_putc(out, ')');
    return;
  }
  if (a->all)
    buf_printf(out, "parts.length == %zu", a->count);
  for (size_t i = 0; i < a->count; i++) {
    if (a->all)
      buf_printf(out, " && parts[%zu].label == ", i);
    else
      buf_printf(out, "%sexists(parts, item.label == ", i > 0 ? " || " : "");
    put_literal(a->labels[i], out);
    buf_puts(out, a->all ? "" : ")");
  }
}
