/* Holds an expression against the figures of a command, and writes its cases as JUnit XML. */
#include "cli/gate.h"

#include <errno.h>
#include <string.h>

bool gate_begin(struct gate *g, const char *command, const struct cli_args *args, struct err *err) {
  struct expr_error why;
  *g = (struct gate){
      .command = command, .text = cli_value(args, "fail-if"), .path = cli_value(args, "junit")};
  if (g->text != NULL)
    g->expr = expr_parse(&g->arena, g->text, strlen(g->text), EXPR_INVARIANT, &why);
  if (g->text != NULL && g->expr == NULL)
    return err_set(err, ERR_USAGE, "--fail-if, byte %zu: %.300s", why.offset + 1, why.text);
  if (g->path == NULL)
    return true;
  g->out = fopen(g->path, "we"); /* before anything is paid for */
  if (g->out == NULL)
    return err_set_errno(err, errno, "cannot write %s", g->path);
  g->cases = tmpfile();
  return g->cases != NULL || err_set_errno(err, errno, "no temporary file for --junit");
}

static void put_attribute(FILE *out, const char *before, const char *text) {
  fputs(before, out);
  cli_put_xml(out, text);
}

void gate_put(struct gate *g, const struct gate_case *one) {
  bool fails = one->why != NULL && one->skipped == NULL;
  if (g->cases == NULL)
    return;
  g->count++;
  g->failures += fails;
  g->skipped += one->skipped != NULL;
  put_attribute(g->cases, "  <testcase classname=\"", one->class ? one->class : g->command);
  put_attribute(g->cases, "\" name=\"", one->name);
  if (one->skipped != NULL) {
    put_attribute(g->cases, "\">\n    <skipped message=\"", one->skipped);
    fputs("\"/>\n  </testcase>\n", g->cases);
  } else if (fails) {
    put_attribute(g->cases, "\">\n    <failure type=\"", one->type ? one->type : "figures");
    put_attribute(g->cases, "\" message=\"", one->why);
    put_attribute(g->cases, "\">", one->body ? one->body : "");
    fputs("</failure>\n  </testcase>\n", g->cases);
  } else {
    fputs("\"/>\n", g->cases);
  }
}

void gate_case(struct gate *g, const char *name, const char *why) {
  gate_put(g, &(struct gate_case){.name = name, .why = why});
}

struct gate_names {
  struct gate *gate;
  const json_t *figures;
};

static void check_figure(void *ctx, const struct str *path, size_t n) {
  const struct gate_names *names = ctx;
  struct gate *g = names->gate;
  if (n == 0 || g->misused || json_object_getn(names->figures, path[0].p, path[0].n) != NULL)
    return;
  buf_auto_t known = {0};
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)names->figures, key, value) {
    buf_printf(&known, "%s%s", known.n > 0 ? ", " : "", key);
  }
  g->misused = true;
  cli_say(stderr, "segue %s: --fail-if: " STR_FMT " is no figure: there are %s\n", g->command,
          STR_ARG(path[0]), buf_c(&known));
}

void gate_check(struct gate *g, const char *name, json_t *owned_figures) {
  json_auto_t *figures = owned_figures;
  struct gate_names names = {g, figures};
  struct expr_error error;
  buf_auto_t why = {0};
  if (g->expr == NULL)
    return;
  expr_each_ref(g->expr, check_figure, &names);
  if (g->misused)
    return;
  switch (expr_eval(g->expr, figures, &error)) {
  case EXPR_FALSE:
    gate_case(g, name, NULL);
    return;
  case EXPR_TRUE:
    buf_printf(&why, "%s", g->text);
    break;
  case EXPR_ERROR:
    buf_printf(&why, "%s cannot be told: %s", g->text, error.text);
    break;
  }
  g->failed = true;
  cli_say(stderr, "segue %s: %s: %s\n", g->command, name, buf_c(&why));
  gate_case(g, name, buf_c(&why));
}

static bool gate_write(struct gate *g, struct err *err) {
  char piece[4096];
  size_t n;
  fprintf(g->out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"segue %s\" tests=\"%zu\" "
          "failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
          g->command, g->count, g->failures, g->skipped);
  rewind(g->cases);
  while ((n = fread(piece, 1, sizeof piece, g->cases)) > 0)
    (void)fwrite(piece, 1, n, g->out);
  fputs("</testsuite>\n", g->out);
  bool written = !ferror(g->out) && !ferror(g->cases);
  written = fclose(g->out) == 0 && written;
  (void)fclose(g->cases);
  return written || err_set_errno(err, errno, "cannot write %s", g->path);
}

int gate_end(struct gate *g, int status) {
  struct err err = {0};
  if (g->misused)
    status = STATUS_USAGE;
  else if (g->failed && status == STATUS_COMPLETE)
    status = STATUS_FAILED;
  if (g->cases != NULL && !gate_write(g, &err))
    status = cli_fail(g->command, &err);
  arena_deinit(&g->arena);
  return status;
}
