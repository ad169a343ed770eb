/* Prints what lint found as GitHub's annotations and as SARIF. */
#include "cli/lint_report.h"

#include "base/buf.h"
#include "cli/json_io.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Escapes as the runner undoes it: % and line ends everywhere, : and , in properties. */
static void put_annotation(const char *text, bool property) {
  for (const char *c = text; *c != '\0'; c++)
    if (*c == '%' || *c == '\r' || *c == '\n' || (property && (*c == ':' || *c == ',')))
      printf("%%%02X", (unsigned)*c);
    else
      putchar(*c);
}

static const char *file_of(const struct err *err, const char *path) {
  return err->line > 0 && err->file[0] != '\0' ? err->file : path;
}

static void annotate(const char *level, const char *path, const struct err *err) {
  printf("::%s file=", level);
  put_annotation(file_of(err, path), true);
  printf(",line=%d,col=%d,title=segue lint::", err->line > 0 ? err->line : 1,
         err->column > 0 ? err->column : 1);
  put_annotation(err->text, false);
  putchar('\n');
}

void lint_report_github(const char *path, const struct err_list *errors,
                        const struct err_list *warnings) {
  for (size_t i = 0; i < errors->count; i++)
    annotate("error", path, &errors->items[i]);
  for (size_t i = 0; i < warnings->count; i++)
    annotate("warning", path, &warnings->items[i]);
}

/* Returns a path as a URI reference (RFC 3986), with the scheme if it is absolute. */
static json_t *uri_of(const char *path) {
  static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  struct buf uri = {0};
  if (path[0] == '/')
    buf_puts(&uri, "file://");
  for (const char *c = path; *c != '\0'; c++)
    if (strchr(safe, *c) != NULL)
      buf_append(&uri, c, 1);
    else
      buf_printf(&uri, "%%%02X", (unsigned char)*c);
  json_t *value = json_io_string(buf_c(&uri));
  buf_deinit(&uri);
  return value;
}

static json_t *sarif_result(const char *level, const char *path, const struct err *err) {
  json_t *region = json_pack("{si si}", "startLine", err->line > 0 ? err->line : 1, "startColumn",
                             err->column > 0 ? err->column : 1);
  return json_pack("{ss ss s{so} s[{s{s{so} so}}]}", "ruleId", level, "level", level, "message",
                   "text", json_io_string(err->text), "locations", "physicalLocation",
                   "artifactLocation", "uri", uri_of(file_of(err, path)), "region", region);
}

void lint_report_sarif(json_t *results, const char *path, const struct err_list *errors,
                       const struct err_list *warnings) {
  assert(json_is_array(results));
  for (size_t i = 0; i < errors->count; i++)
    json_array_append_new(results, sarif_result("error", path, &errors->items[i]));
  for (size_t i = 0; i < warnings->count; i++)
    json_array_append_new(results, sarif_result("warning", path, &warnings->items[i]));
}

void lint_report_sarif_end(json_t *results) {
  json_t *rules =
      json_pack("[{ss s{ss}} {ss s{ss}}]", "id", "error", "shortDescription", "text",
                "The workflow would not load or cannot run.", "id", "warning", "shortDescription",
                "text", "The workflow loads, but this part of it may not do what was meant.");
  json_t *driver =
      json_pack("{ss ss so}", "name", "segue lint", "version", SEGUE_VERSION, "rules", rules);
  json_t *document =
      json_pack("{ss ss s[{s{so} ss so}]}", "$schema",
                "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
                "driver", driver, "columnKind", "unicodeCodePoints", "results", results);
  assert(document != NULL);
  json_io_print(document, JSON_IO_COMPACT);
  json_decref(document);
}
