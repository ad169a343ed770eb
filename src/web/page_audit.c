/* Writes the page that counts judgments, and the same as data. */
#include "audit/agree.h"
#include "audit/census.h"
#include "format/json_write.h"
#include "web/page_session.h"
#include "web/parts.h"

static void put_audit_filter(struct html *h, const struct page_ask *ask) {
  HTML(h, "<form role=search data-filter><label>Filter <input name=q size=60 autocomplete=off "
          "spellcheck=false");
  HTML_ATTR(h, "value", str_from(ask->q));
  HTML_ATTR(h, "placeholder",
            STR("since:7d workflow:NAME movement:NAME method:ai_judge model:NAME"));
  HTML(h, "></label> <button>Show</button></form><p class=dim>As data: <a download");
  HTML_LINK(h, "/audit.csv?q=", str_from(ask->q), "");
  HTML(h, ">CSV</a>, <a download");
  HTML_LINK(h, "/audit.json?q=", str_from(ask->q), "");
  HTML(h, ">JSON</a>, or <code>segue audit</code></p>");
}

/* Compares raters with the verdicts, if somebody labelled or rejudged any. */
static bool put_agreement(struct html *h, const struct page_ask *ask, struct census *c,
                          struct err *err) {
  struct agree *a = agree_new(c);
  bool ok = agree_labels(a, &ask->store, err) && agree_rejudged(a, &ask->store, err);
  if (ok && a->label_count + a->again.count > 0) {
    ok = agree_read_store(a, &ask->store, err);
    agree_sort(a);
    if (ok)
      part_agree(h, a);
  }
  agree_free(a);
  return ok;
}

static void put_audit_trouble(struct html *h, const struct err *err) {
  HTML(h, "<p class=banner role=alert>");
  html_said(h, str_from(err->text));
  HTML(h, "</p>");
}

unsigned page_audit(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct census *c = census_new();
  struct err err = {0};
  bool filtered = census_filter_text(c, ask->q, ask->now_ms, &err) && census_by(c, "day", &err);
  bool there = filtered && store_exists(&ask->store);
  if (there && !census_read_store(c, &ask->store, &err)) {
    census_free(c);
    return page_problem(ask, out, &err);
  }
  census_sort(c);
  page_begin(&h, "Audit", NULL);
  put_audit_filter(&h, ask);
  if (!filtered)
    put_audit_trouble(&h, &err);
  HTML(&h, "<h2>Judgments</h2>");
  part_audit(&h, c, str_from(ask->q));
  if (there && !put_agreement(&h, ask, c, &err))
    put_audit_trouble(&h, &err);
  part_end_page(&h);
  census_free(c);
  return 200;
}

static void audit_put_json(const struct census *c, struct buf *out) {
  json_t *value;
  buf_puts(out, "{\"groups\":[");
  for (size_t i = 0; (value = census_group_json(c, i)) != NULL; i++) {
    buf_puts(out, i > 0 ? "," : "");
    json_write(value, out);
    json_decref(value);
  }
  buf_puts(out, "],\"totals\":");
  value = census_totals_json(c);
  json_write(value, out);
  json_decref(value);
  buf_puts(out, "}\n");
}

unsigned page_audit_data(const struct page_ask *ask, struct buf *out) {
  struct census *c = census_new();
  struct err err = {0};
  bool ok = census_filter_text(c, ask->q, ask->now_ms, &err) &&
            census_by(c, "match_method", &err) &&
            (!store_exists(&ask->store) || census_read_store(c, &ask->store, &err));
  census_sort(c);
  if (ok && ask->kind == PAGE_AUDIT_CSV)
    census_csv(c, out);
  else if (ok)
    audit_put_json(c, out);
  census_free(c);
  return ok ? 200 : page_problem(ask, out, &err);
}
