/* Counts what hidden tests said. */
#include "audit/hidden_gap.h"

#include "base/buf.h"
#include "base/memory.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "store/reader.h"

#include <stdlib.h>
#include <string.h>

static void gap_add(json_t *at, const char *key, json_int_t n) {
  json_object_set_new(at, key, json_integer(json_integer_value(json_object_get(at, key)) + n));
}

static void gap_add_tests(json_t *agent, const char *which, const json_t *tests) {
  json_int_t passed = json_int_at(tests, "passed"), all = passed + json_int_at(tests, "failed");
  if (all == 0)
    return;
  if (json_object_get(agent, which) == NULL)
    json_object_set_new(agent, which, json_object());
  gap_add(json_object_get(agent, which), "passed", passed);
  gap_add(json_object_get(agent, which), "tests", all);
}

static void gap_add_record(struct hidden_gap *g, const json_t *record) {
  const json_t *data = json_at(record, "data");
  buf_auto_t key = {0};
  buf_str(&key, json_view(json_at(record, "provider")));
  buf_putc(&key, '\n');
  buf_str(&key, json_view(json_at(record, "model")));
  json_t *agent = json_object_get(g->agents, buf_c(&key));
  if (agent == NULL) {
    agent = json_pack("{sO* sO* sI sI}", "provider", json_at(record, "provider"), "model",
                      json_at(record, "model"), "sessions", (json_int_t)0, "passed", (json_int_t)0);
    json_object_set_new(g->agents, buf_c(&key), agent);
  }
  if (json_at(data, "problem") != NULL) {
    gap_add(agent, "not_run", 1);
    return;
  }
  gap_add(agent, "sessions", 1);
  gap_add(agent, "passed", json_is_true(json_at(data, "passes")));
  gap_add_tests(agent, "visible", json_at(data, "visible"));
  gap_add_tests(agent, "hidden", json_at(data, "tests"));
}

void hidden_gap_read(struct hidden_gap *g, const struct store_ref *ref) {
  static const char type[] = "\"type\":\"hidden_tests\"";
  struct log_reader r;
  struct err ignored;
  struct str line;
  bool found = false;
  if (!reader_open(&r, ref, &ignored))
    return;
  while (!found && reader_next(&r, &line)) {
    size_t n = line.n < 128 ? line.n : 128; /* only v, seq and ts come before it */
    if (memmem(line.p, n, type, sizeof type - 1) == NULL)
      continue;
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    found = record != NULL;
    if (found)
      gap_add_record(g, record);
  }
  reader_close(&r);
}

static int by_sessions(const void *a, const void *b) {
  const json_t *const *x = a, *const *y = b;
  json_int_t m = json_int_at(*x, "sessions"), n = json_int_at(*y, "sessions");
  return (m < n) - (m > n);
}

json_t *hidden_gap_json(const struct hidden_gap *g) {
  size_t count = 0;
  json_t *list = json_array(), **agents = xcalloc(json_object_size(g->agents) + 1, sizeof *agents);
  JSON_MEMBERS(g->agents, key, agent) {
    json_int_t sessions = json_int_at(agent, "sessions");
    (void)key;
    if (sessions > 0)
      json_object_set_new(agent, "gap",
                          json_real(1 - (double)json_int_at(agent, "passed") / (double)sessions));
    agents[count++] = agent;
  }
  qsort(agents, count, sizeof *agents, by_sessions);
  for (size_t i = 0; i < count; i++)
    json_array_append(list, agents[i]);
  free(agents);
  return list;
}
