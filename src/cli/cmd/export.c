/* segue export: gives sessions to programs that show traces, as spans of OpenTelemetry. */
#include "audit/otlp.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/backends.h"
#include "host/config.h"
#include "http/http.h"
#include "provider/registry.h"
#include "store/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADERS_MAX = 16 };

struct exporter {
  const char *to; /* a URL, or a file's name */
  FILE *file;     /* NULL: it is a URL */
  struct buf url;
  struct buf headers[HEADERS_MAX];
  const char *header_list[HEADERS_MAX + 1];
  struct otlp_how how;
  int64_t since_ms;
  bool failed, broken; /* broken: nothing more can be written */
};

static void exporter_fail(struct exporter *e, const struct err *err) {
  e->failed = true;
  (void)cli_fail("export", err);
}

/* Sends spans to a collector. It may have taken only some of them. */
static bool export_post(struct exporter *e, const struct buf *body, struct err *err) {
  buf_auto_t reply = {0};
  int status;
  const struct http_request request = {.url = buf_c(&e->url),
                                       .post = true,
                                       .headers = e->header_list,
                                       .body = buf_view(body),
                                       .connect_ms = LIMIT_HTTP_CONNECT_MS,
                                       .total_ms = LIMIT_OTLP_MS,
                                       .max_bytes = LIMIT_OTLP_REPLY_BYTES};
  if (!http_now(&request, &reply, &status, err))
    return false;
  if (status < 200 || status > 299)
    return err_set(err, ERR_IO, "%.200s answers with status %d: %.300s", buf_c(&e->url), status,
                   buf_c(&reply));
  json_auto_t *said = json_loadb(buf_c(&reply), reply.n, 0, NULL);
  const json_t *partial = json_at(said, "partialSuccess"), *n = json_at(partial, "rejectedSpans");
  bool some = json_integer_value(n) > 0 || !str_among(json_view(n), " 0");
  return !some || err_set(err, ERR_IO, "%.200s took only some spans: %.300s", buf_c(&e->url),
                          json_word_at(partial, "errorMessage"));
}

static bool export_batch(void *ctx, json_t *owned_request) {
  struct exporter *e = ctx;
  buf_auto_t text = {0};
  struct err err;
  json_write(owned_request, &text);
  json_decref(owned_request);
  if (e->file != NULL)
    fprintf(e->file, "%s\n", buf_c(&text));
  else if (!export_post(e, &text, &err)) {
    exporter_fail(e, &err);
    e->broken = true;
  }
  return !e->broken;
}

static void export_log(void *ctx, const struct store_ref *ref) {
  struct exporter *e = ctx;
  AUTO(summary_deinit) struct summary summary = {0};
  struct err err = {0};
  int64_t updated_ms;
  if (e->broken)
    return;
  if (e->since_ms > 0 && summary_read(&summary, ref, &err) &&
      record_time_parse(summary.updated, &updated_ms) && updated_ms < e->since_ms)
    return;
  if (!otlp_read(ref, &e->how, &err))
    exporter_fail(e, &err);
}

static bool export_header(struct exporter *e, size_t n, const char *fmt, struct str text) {
  if (n == HEADERS_MAX)
    return false;
  buf_puts(&e->headers[n], fmt);
  buf_percent_decoded(&e->headers[n], text);
  e->header_list[n] = buf_c(&e->headers[n]);
  return memchr(e->headers[n].p, '\n', e->headers[n].n) == NULL &&
         memchr(e->headers[n].p, '\r', e->headers[n].n) == NULL;
}

/* Reads OTEL_EXPORTER_OTLP_HEADERS: NAME=VALUE,... in percent encoding, as OpenTelemetry has it. */
static bool export_headers(struct exporter *e, struct err *err) {
  size_t n = 0;
  bool ok = export_header(e, n++, "Content-Type: application/json", STR(""));
  const char *given = getenv("OTEL_EXPORTER_OTLP_HEADERS");
  for (const char *at = given != NULL ? given : ""; ok && *at != '\0';) {
    size_t all = strcspn(at, ","), name = strcspn(at, "=,");
    buf_auto_t begin = buf_of("%.*s: ", (int)name, at);
    ok = name > 0 && name < all &&
         export_header(e, n++, buf_c(&begin), (struct str){at + name + 1, all - name - 1});
    at += all + (at[all] == ',');
  }
  return ok ||
         err_set(err, ERR_USAGE, "OTEL_EXPORTER_OTLP_HEADERS is NAME=VALUE,... with at most %d",
                 HEADERS_MAX - 1);
}

/* Opens the file, which holds what logs hold, or takes the address of a collector. */
static bool exporter_open(struct exporter *e, struct err *err) {
  const char *rest = strstr(e->to, "://");
  if (str_starts(str_from(e->to), "http://") || str_starts(str_from(e->to), "https://")) {
    size_t host = strcspn(rest + 3, "/");
    bool bare = rest[3 + host] == '\0' || rest[4 + host] == '\0';
    buf_printf(&e->url, "%.*s%s", (int)(rest + 3 + host - e->to), e->to,
               bare ? "/v1/traces" : rest + 3 + host);
    return export_headers(e, err);
  }
  if (strcmp(e->to, "-") == 0) {
    e->file = stdout;
    return true;
  }
  int fd = open(e->to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  e->file = fd >= 0 ? fdopen(fd, "w") : NULL;
  return e->file != NULL || err_set_errno(err, errno, "cannot write %s", e->to);
}

static bool exporter_close(struct exporter *e, struct err *err) {
  bool ok = e->file == NULL || fflush(e->file) == 0;
  if (e->file != NULL && e->file != stdout)
    ok = fclose(e->file) == 0 && ok;
  buf_deinit(&e->url);
  for (size_t i = 0; i < HEADERS_MAX; i++)
    buf_deinit(&e->headers[i]);
  return ok || err_set_errno(err, errno, "cannot write %s", e->to);
}

static int export_run(const struct cli_args *args) {
  AUTO(config_deinit) struct config config = {0};
  struct err err = {0};
  struct exporter e = {.to = cli_value(args, "otlp")};
  if (e.to == NULL)
    return cli_refuse("export", "write --otlp FILE or --otlp URL, such as http://localhost:4318");
  struct provider_registry *registry =
      config_load(&config, &err) ? backends_new(&config, &err) : NULL;
  if (registry == NULL)
    return cli_fail("export", &err);
  e.how = (struct otlp_how){.backends = registry_capabilities(registry),
                            .reasons = cli_flag(args, "reasons"),
                            .batch = export_batch,
                            .ctx = &e};
  const struct resolve_id_each each = {.log = export_log, .ctx = &e};
  bool ok =
      resolve_id_since(cli_value(args, "since"), &e.since_ms, &err) && exporter_open(&e, &err) &&
      resolve_id_take_all(args->words, args->word_count, cli_value(args, "logs"), &each, &err);
  ok = (exporter_close(&e, &err) || !ok) && ok;
  registry_free(registry);
  if (!ok)
    return cli_fail("export", &err);
  return e.failed ? STATUS_FAILED : STATUS_COMPLETE;
}

const struct cli_command cmd_export = {COMMAND_EXPORT, .run = export_run};
