/* Writes the providers and the daemon, as GET /v1/providers reports them. */
#include "core/record.h"
#include "format/json_object.h"
#include "view/words.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <stdio.h>
#include <string.h>

static struct str provider_word(const json_t *p, const char *key) {
  return json_view(json_object_get(p, key));
}

/* Writes what holds calls back now, such as "cooldown, 4 min 10 s left". */
static void put_countdown(struct html *h, const struct page_ask *ask, const char *what,
                          struct str until) {
  struct buf left = {0};
  char text[RECORD_TIME_BYTES];
  int64_t ms;
  if (until.n == 0 || until.n >= sizeof text)
    return;
  memcpy(text, until.p, until.n);
  text[until.n] = '\0';
  if (!record_time_parse(text, &ms))
    return;
  view_put_time(&left, ms > ask->now_ms ? ms - ask->now_ms : 0);
  HTML(h, "<span class=\"status warn\" ");
  HTML_ATTR(h, "title", until);
  HTML(h, ">\xE2\x97\x86 ");
  html_printf(h, "%s, %s left", what, buf_c(&left));
  HTML(h, "</span><br>");
  buf_deinit(&left);
}

static void put_state(struct html *h, const struct page_ask *ask, const json_t *p) {
  struct str circuit = provider_word(p, "circuit");
  put_countdown(h, ask, "cooldown", provider_word(p, "cooldown_until"));
  put_countdown(h, ask, "circuit open", provider_word(p, "circuit_until"));
  if (str_eq_c(circuit, "trying"))
    HTML(h, "<span class=\"status warn\">\xE2\x97\x86 the next call will try it</span><br>");
  if (json_is_false(json_at(p, "usable"))) {
    HTML(h, "<span class=\"status dim\">\xE2\x97\x8B not usable</span>");
    if (provider_word(p, "problem").n > 0) {
      HTML(h, "<br><span class=dim>");
      html_said(h, provider_word(p, "problem"));
      HTML(h, "</span>");
    }
  } else if (json_is_null(json_at(p, "usable")) && provider_word(p, "cooldown_until").n == 0) {
    HTML(h, "<span class=\"status dim\">\xE2\x97\x8B unknown until its next call</span>");
  } else if (str_eq_c(circuit, "closed") && provider_word(p, "cooldown_until").n == 0) {
    HTML(h, "<span class=\"status good\">\xE2\x9C\x93 ready</span>");
  }
}

static void put_provider_errors(struct html *h, const json_t *p) {
  const json_t *last = json_at(p, "last_error");
  const char *class;
  json_t *n;
  const char *gap = "";
  json_object_foreach(json_object_get(p, "errors"), class, n) {
    html_printf(h, "%s%s %lld", gap, class, (long long)json_integer_value(n));
    gap = ", ";
  }
  if (!json_is_object(last))
    return;
  HTML(h, "<br><span class=dim>last ");
  part_time(h, provider_word(last, "at"));
  html_puts(h, ": ");
  html_said(h, provider_word(last, "message"));
  HTML(h, "</span>");
}

static void put_provider(struct html *h, const struct page_ask *ask, const json_t *p) {
  long long places = json_integer_value(json_at(p, "places"));
  HTML(h, "<tr");
  html_attr_printf(h, "id", "p-%.*s", STR_ARG(provider_word(p, "name")));
  HTML(h, "><th scope=row>");
  html_said(h, provider_word(p, "name"));
  HTML(h, "</th><td>");
  put_state(h, ask, p);
  HTML(h, "</td><td class=n>");
  html_printf(h, "%lld", (long long)json_integer_value(json_at(p, "calls")));
  if (places > 0)
    html_printf(h, " of %lld", places);
  HTML(h, "</td><td class=n>");
  html_printf(h, "%lld", (long long)json_integer_value(json_at(p, "waiting")));
  HTML(h, "</td><td>");
  put_provider_errors(h, p);
  HTML(h, "</td><td>");
  html_said(h, provider_word(p, "kind"));
  HTML(h, "<br><span class=dim>");
  html_said(h, provider_word(p, "program"));
  HTML(h, "</span></td><td>");
  html_said(h, provider_word(p, "version"));
  HTML(h, "</td><td>");
  html_said(h, provider_word(p, "login"));
  HTML(h, "</td></tr>");
}

/* Returns true for a program that is not installed here and that no call waits for. */
static bool is_absent(const json_t *p) {
  return json_is_false(json_at(p, "installed")) && json_integer_value(json_at(p, "waiting")) == 0;
}

static void put_absent(struct html *h, const struct page_ask *ask) {
  size_t i, count = 0;
  json_t *p;
  json_array_foreach(json_object_get(ask->about, "providers"), i, p) {
    count += is_absent(p);
  }
  if (count == 0)
    return;
  HTML(h, "<details id=absent><summary>");
  html_printf(h, "%zu not installed", count);
  HTML(h, "</summary><dl>");
  json_array_foreach(json_object_get(ask->about, "providers"), i, p) {
    char name[64];
    if (!is_absent(p))
      continue;
    (void)snprintf(name, sizeof name, STR_FMT, STR_ARG(provider_word(p, "name")));
    part_fact(h, name, provider_word(p, "problem"));
  }
  HTML(h, "</dl></details>");
}

static void fact_number(struct html *h, const char *name, const json_t *value) {
  struct buf text = {0};
  if (json_is_integer(value))
    buf_printf(&text, "%lld", (long long)json_integer_value(value));
  part_fact(h, name, buf_view(&text));
  buf_deinit(&text);
}

static void put_daemon(struct html *h, const json_t *d) {
  const json_t *free_bytes = json_at(d, "disk_free_bytes");
  struct buf text = {0};
  if (json_is_integer(free_bytes))
    buf_printf(&text, "%.1f GB free", (double)json_integer_value(free_bytes) / 1e9);
  HTML(h, "<h2>Daemon</h2><dl>");
  part_fact(h, "version", provider_word(d, "version"));
  part_fact(h, "status", provider_word(d, "status"));
  HTML(h, "<dt>started</dt><dd>");
  part_time(h, provider_word(d, "started"));
  HTML(h, "</dd>");
  fact_number(h, "process", json_at(d, "pid"));
  fact_number(h, "running", json_at(json_at(d, "sessions"), "running"));
  fact_number(h, "queued", json_at(json_at(d, "sessions"), "queued"));
  fact_number(h, "limit", json_at(json_at(d, "sessions"), "max"));
  part_fact(h, "logs", provider_word(d, "logs"));
  part_fact(h, "disk", buf_view(&text));
  HTML(h, "</dl>");
  buf_deinit(&text);
}

unsigned page_providers(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct err err = {0};
  size_t i;
  json_t *p;
  if (ask->about == NULL) {
    (void)err_set(&err, ERR_NOT_FOUND,
                  "no daemon is running here: segue providers lists the providers");
    return page_problem(ask, out, &err);
  }
  page_begin(&h, "Providers", "events");
  HTML(&h, "<div class=wide tabindex=0 role=region aria-label=Providers><table><thead><tr>"
           "<th scope=col>provider</th><th scope=col>state</th><th scope=col class=n>calls now</th>"
           "<th scope=col class=n>waiting</th><th scope=col>errors in the last hour</th>"
           "<th scope=col>kind, program</th><th scope=col>version</th><th "
           "scope=col>login</th></tr></thead><tbody>");
  for (int usable = 1; usable >= 0; usable--)
    json_array_foreach(json_object_get(ask->about, "providers"), i, p) {
      if (!is_absent(p) && json_is_false(json_at(p, "usable")) == !usable)
        put_provider(&h, ask, p);
    }
  HTML(&h, "</tbody></table></div>");
  put_absent(&h, ask);
  put_daemon(&h, json_at(ask->about, "daemon"));
  part_end_page(&h);
  return 200;
}
