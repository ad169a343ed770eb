/* api_driver - calls of model APIs without a session, for tests/system/api_test.py and its like.
 *
 *   api_driver < input
 * The first line is the user's `providers:` settings as JSON; each line after it a call:
 *  {"id", "provider", "model", "prompt", "schema", "options", "timeout_ms", "cancel_ms", "purpose",
 *    "after": true}      after: only when all calls before it are over
 *    "repeat": 1000}     so often, one after the other; only the last one's end is told
 *   {"id", "provider", "probe": true}       whether it is there
 * Prints a line of JSON for each that ends, then one with what is left open and the microseconds of
 * the processor that the calls took. Exit 3: the loop does
 * not close clean. SEGUE_DRIVER_ENV names variables whose values are secrets, divided by commas. */
#include "base/log.h"
#include "format/json_write.h"
#include "provider/api/api.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct one {
  json_t *spec, *notes;
  struct buf text, thinking;
  struct call_request request;
  struct provider_run *run;
  const struct provider *provider;
  uv_timer_t cancel;
  size_t pieces;
  long repeats; /* still to come */
  bool has_timer;
};

static uv_loop_t loop;
static struct provider_env env = {.loop = &loop};
static struct provider_registry *registry;
static struct one calls[4096];
static size_t call_count, started, open_count;

static struct str text_of(const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  return (struct str){json_is_string(v) ? json_string_value(v) : "", json_string_length(v)};
}

static void start_one(struct one *one);
static void start_more(void);

static void on_news(void *ctx, const struct provider_news *news) {
  struct one *one = ctx;
  if (news->kind == NEWS_TEXT || news->kind == NEWS_THINKING) {
    buf_str(news->kind == NEWS_TEXT ? &one->text : &one->thinking, news->text);
    one->pieces++;
  } else {
    json_array_append(one->notes, json_object_get(news->data, "text"));
  }
}

static void on_done(void *ctx, struct call_result *r) {
  struct one *one = ctx;
  if (--one->repeats > 0 && r->class == CLASS_NONE) {
    call_result_deinit(r);
    open_count--;
    start_one(one);
    return;
  }
  json_auto_t *out = json_object();
  buf_auto_t line = {0};
  json_object_set(out, "id", json_object_get(one->spec, "id"));
  json_object_set_new(out, "class", json_string(error_class_name(r->class)));
  json_object_set_new(out, "message", json_text(str_from(r->message)));
  json_object_set_new(out, "retry_after_ms", json_integer(r->retry_after_ms));
  json_object_set_new(out, "bytes", json_integer((json_int_t)r->text.bytes.n));
  if (r->text.bytes.n <= 65536)
    json_object_set_new(out, "text", json_text(buf_view(&r->text.bytes)));
  if (one->text.n <= 65536)
    json_object_set_new(out, "told", json_text(buf_view(&one->text)));
  json_object_set_new(out, "thinking", json_text(buf_view(&one->thinking)));
  json_object_set_new(out, "pieces", json_integer((json_int_t)one->pieces));
  json_object_set(out, "notes", one->notes);
  json_object_set_new(out, "note", json_text(str_from(r->note)));
  json_object_set_new(out, "dropped", json_integer((json_int_t)r->dropped_bytes));
  if (r->structured)
    json_object_set(out, "structured", r->structured);
  if (r->usage)
    json_object_set(out, "usage", r->usage);
  if (r->enforced)
    json_object_set_new(out, "enforced", json_string(r->enforced));
  json_object_set_new(out, "duration_ms", json_integer(r->duration_ms));
  json_write(out, &line);
  puts(buf_c(&line));
  fflush(stdout);
  call_result_deinit(r);
  if (one->has_timer && !uv_is_closing((uv_handle_t *)&one->cancel))
    uv_close((uv_handle_t *)&one->cancel, NULL);
  one->run = NULL;
  open_count--;
  start_more();
}

static void on_cancel(uv_timer_t *timer) {
  struct one *one = timer->data;
  uv_close((uv_handle_t *)timer, NULL);
  if (one->run)
    one->provider->ops->cancel(one->run);
}

static void on_probe(void *ctx, struct api_probe_result *result) {
  struct one *one = ctx;
  json_t *out = json_pack("{sO ss ss sb si sI ss sO?}", "id", json_object_get(one->spec, "id"),
                          "class", error_class_name(result->class), "message", result->message,
                          "reachable", (int)result->reachable, "status", result->status,
                          "model_count", (json_int_t)result->model_count, "version",
                          result->version, "models", result->models);
  buf_auto_t line = {0};
  json_write(out, &line);
  puts(buf_c(&line));
  json_decref(out);
  open_count--;
  start_more();
}

static void start_one(struct one *one) {
  struct call_request *r = &one->request;
  const struct provider_sink sink = {one->repeats > 0 ? NULL : on_news, on_done, one};
  json_int_t cancel_ms = json_integer_value(json_object_get(one->spec, "cancel_ms"));
  *r = (struct call_request){.session = "driver",
                             .attempt = 1,
                             .purpose = PURPOSE_JUDGE,
                             .stage = STAGE_COUNT,
                             .provider = text_of(one->spec, "provider"),
                             .model = text_of(one->spec, "model"),
                             .options = json_object_get(one->spec, "options"),
                             .prompt = text_of(one->spec, "prompt"),
                             .schema = json_object_get(one->spec, "schema")};
  (void)call_purpose_from_name(text_of(one->spec, "purpose"), &r->purpose);
  r->timeout_ms = (uint64_t)json_integer_value(json_object_get(one->spec, "timeout_ms"));
  if (one->notes == NULL)
    one->notes = json_array();
  one->provider = registry_find(registry, r->provider);
  if (one->provider == NULL)
    die("there is no provider %.*s", (int)r->provider.n, r->provider.p);
  open_count++;
  if (json_is_true(json_object_get(one->spec, "probe"))) {
    if (!api_probe(env.api, one->provider, on_probe, one))
      die("%.*s is no model API", (int)r->provider.n, r->provider.p);
    return;
  }
  one->run = one->provider->ops->start(one->provider, &env, r, &sink);
  if (cancel_ms > 0) {
    one->has_timer = true;
    uv_timer_init(&loop, &one->cancel);
    one->cancel.data = one;
    uv_timer_start(&one->cancel, on_cancel, (uint64_t)cancel_ms, 0);
  } else if (json_is_integer(json_object_get(one->spec, "cancel_ms"))) {
    one->provider->ops->cancel(one->run);
  }
}

static void start_more(void) {
  while (started < call_count) {
    struct one *one = &calls[started];
    if (open_count > 0 && json_is_true(json_object_get(one->spec, "after")))
      return;
    started++;
    one->repeats = (long)json_integer_value(json_object_get(one->spec, "repeat"));
    start_one(one);
  }
}

static size_t count_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  size_t n = 0;
  while (dir && readdir(dir))
    n++;
  if (dir)
    closedir(dir);
  return n;
}

int main(void) {
  char *line = NULL, *names = getenv("SEGUE_DRIVER_ENV");
  const char *pass[16] = {NULL};
  size_t cap = 0, n = 0;
  struct err err = {0};
  uv_loop_init(&loop);
  size_t before = count_descriptors();
  for (char *name = names ? strtok(names, ",") : NULL; name && n < 15; name = strtok(NULL, ","))
    pass[n++] = name;
  env.pass_env = pass;
  if (getline(&line, &cap, stdin) < 0)
    die("no settings on standard input");
  json_auto_t *settings = json_loads(line, 0, NULL);
  registry = registry_new(settings);
  if (!api_register(registry, settings, &err)) {
    puts(err.text);
    registry_free(registry);
    free(line);
    return 2;
  }
  struct process_table *table = process_table_new(&loop, &err);
  if (table == NULL)
    die("%s", err.text);
  env.api = api_new(&loop, table);
  while (getline(&line, &cap, stdin) > 0 && call_count < ARRAY_LEN(calls))
    calls[call_count++].spec = json_loads(line, 0, NULL);
  free(line);
  clock_t begin = clock();
  start_more();
  uv_run(&loop, UV_RUN_DEFAULT);
  double cpu_us = (double)(clock() - begin) * 1e6 / CLOCKS_PER_SEC;
  process_table_free(table);
  api_free(env.api);
  uv_run(&loop, UV_RUN_DEFAULT);
  printf("{\"open\": %zu, \"descriptors\": %zd, \"cpu_us\": %.0f}\n", open_count,
         (ssize_t)count_descriptors() - (ssize_t)before, cpu_us);
  for (size_t i = 0; i < call_count; i++) {
    json_decref(calls[i].spec);
    json_decref(calls[i].notes);
    buf_deinit(&calls[i].text);
    buf_deinit(&calls[i].thinking);
  }
  registry_free(registry);
  return uv_loop_close(&loop) == 0 && open_count == 0 ? 0 : 3;
}
