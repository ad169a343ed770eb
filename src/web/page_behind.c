/* Writes the judgments behind one number of the audit, and the same as data. */
#include "audit/behind.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <string.h>

static bool behind_ask(const struct page_ask *ask, struct behind *b, struct err *err) {
  long from = 0;
  const char *what = ask->what[0] != '\0' ? ask->what : behind_what_name(BEHIND_ALL);
  const char *of = ask->of[0] != '\0' ? ask->of : behind_table_name(CENSUS_ALL);
  if (!behind_table_read(of, &b->table) || !behind_what_read(what, &b->what))
    return err_set(err, ERR_NOT_FOUND, "the audit has no number \"%s\" of \"%s\"", what, of);
  if (ask->from[0] != '\0' && (!str_to_long(str_from(ask->from), &from) || from < 0))
    return err_set(err, ERR_NOT_FOUND, "there is no judgment %s in this list", ask->from);
  for (size_t k = 0; k < sizeof ask->keys / sizeof *ask->keys; k++)
    b->keys[k] = str_from(ask->keys[k]);
  b->from = (uint64_t)from;
  return true;
}

static bool behind_find(const struct page_ask *ask, struct behind *b, struct census *c,
                        struct err *err) {
  return census_filter_text(c, ask->q, ask->now_ms, err) && census_by(c, "day", err) &&
         (!store_exists(&ask->store) || behind_read_store(b, c, &ask->store, err));
}

/* --- what is listed --- */

static const char *unit_word(const struct behind *b) {
  if (b->table == BEHIND_CAUSES)
    return "session";
  return b->keyed != NULL && tally_by_stage(b->keyed) ? "stage" : "judgment";
}

static const char *behind_words(const struct behind *b) {
  bool stages = b->keyed != NULL && tally_by_stage(b->keyed);
  switch (b->what) {
  case BEHIND_DECIDED:
    return stages ? " that decided" : " by a rule";
  case BEHIND_LEFT:
    return stages ? " that did not decide" : " without a rule";
  case BEHIND_AMBIGUOUS:
    return " whose evidence named two rules";
  case BEHIND_UNSURE:
    return " in which a stage that reads a model's words did not decide";
  case BEHIND_UNREADABLE:
    return " whose answer could not be read";
  case BEHIND_ALL:
  case BEHIND_WHAT_COUNT:
    break;
  }
  return "";
}

static void put_address(struct html *h, const struct page_ask *ask) {
  HTML_LINK_MORE(h, "what", str_from(ask->what));
  HTML_LINK_MORE(h, "k1", str_from(ask->keys[0]));
  HTML_LINK_MORE(h, "k2", str_from(ask->keys[1]));
  HTML_LINK_MORE(h, "k3", str_from(ask->keys[2]));
  HTML_LINK_MORE(h, "q", str_from(ask->q));
}

static void put_kept(struct html *h, const char *name, const char *value) {
  if (value[0] == '\0')
    return;
  HTML(h, "<input type=hidden");
  HTML_ATTR(h, "name", str_from(name));
  HTML_ATTR(h, "value", str_from(value));
  HTML(h, ">");
}

static void put_behind_filter(struct html *h, const struct page_ask *ask) {
  HTML(h, "<form role=search data-filter>");
  put_kept(h, "of", ask->of);
  put_kept(h, "what", ask->what);
  put_kept(h, "k1", ask->keys[0]);
  put_kept(h, "k2", ask->keys[1]);
  put_kept(h, "k3", ask->keys[2]);
  HTML(h, "<label>Filter <input name=q size=60 autocomplete=off spellcheck=false");
  HTML_ATTR(h, "value", str_from(ask->q));
  HTML_ATTR(h, "placeholder", STR("since:7d workflow:NAME movement:NAME method:ai_judge"));
  HTML(h, "></label> <button>Show</button></form><p class=dim><a");
  if (ask->q[0] != '\0')
    HTML_LINK(h, "/audit?q=", str_from(ask->q), "");
  else
    HTML_LINK(h, "/audit", STR(""), "");
  HTML(h, ">All numbers</a>. As data: <a download");
  HTML_LINK(h, "/judgments.csv?of=", str_from(ask->of), "");
  put_address(h, ask);
  HTML(h, ">CSV</a>, <a download");
  HTML_LINK(h, "/judgments.json?of=", str_from(ask->of), "");
  put_address(h, ask);
  HTML(h, ">JSON</a></p>");
}

static void put_behind_sum(struct html *h, const struct behind *b) {
  HTML(h, "<p role=status>");
  html_printf(h, "%llu %s%s%s", (unsigned long long)b->total, unit_word(b),
              b->total == 1 ? "" : "s", behind_words(b));
  for (size_t k = 0; b->keyed != NULL && k < b->keyed->key_count; k++) {
    html_printf(h, ", %s ", tally_key_name(b->keyed->keys[k]));
    html_said(h, b->keys[k].n > 0 ? b->keys[k] : STR("-"));
  }
  if (b->table == BEHIND_CAUSES) {
    html_puts(h, ", not complete by cause ");
    html_said(h, b->keys[0]);
  }
  if (b->count > 0 && b->count < b->total)
    html_printf(h, ". Shown: %llu to %llu", (unsigned long long)b->from + 1,
                (unsigned long long)(b->from + b->count));
  HTML(h, ".</p>");
}

/* --- rows --- */

static void put_unit_word(struct html *h, const struct behind *b, uint32_t word) {
  struct str text = names_text(&b->census->names, word);
  HTML(h, "<td>");
  html_said(h, text.n > 0 ? text : STR("-"));
  HTML(h, "</td>");
}

static void put_session_cell(struct html *h, const struct behind_unit *u) {
  HTML(h, "<td><a");
  HTML_LINK(h, "/s/", str_from(u->session), "/");
  HTML(h, "><code>");
  html_text(h, str_from(u->session));
  HTML(h, "</code></a></td>");
}

static void put_behind_judgment(struct html *h, const struct behind *b,
                                const struct behind_unit *u) {
  struct buf turn = {0};
  struct str movement = names_text(&b->census->names, u->movement);
  buf_printf(&turn, "%ld", u->turn);
  HTML(h, "<th scope=row><a");
  html_link2(h, str_from(u->session), buf_view(&turn));
  HTML(h, ">");
  html_said(h, movement.n > 0 ? movement : STR("-"));
  html_printf(h, ", turn %s", buf_c(&turn));
  HTML(h, "</a></th>");
  buf_deinit(&turn);
}

static void put_unit_row(struct html *h, const struct behind *b, const struct behind_unit *u) {
  HTML(h, "<tr>");
  if (u->turn > 0)
    put_behind_judgment(h, b, u);
  put_session_cell(h, u);
  put_unit_word(h, b, u->workflow);
  HTML(h, "<td>");
  part_when(h, u->time_ms);
  HTML(h, "</td>");
  put_unit_word(h, b, u->outcome);
  if (u->turn > 0) {
    HTML(h, "<td class=n>");
    if (u->rule > 0)
      html_printf(h, "%u", (unsigned)u->rule);
    else
      html_puts(h, "none");
    HTML(h, "</td>");
    put_unit_word(h, b, u->match_method != NAMES_NONE ? u->match_method : u->method);
    if (b->keyed != NULL && tally_by_stage(b->keyed)) {
      put_unit_word(h, b, u->stage);
      put_unit_word(h, b, u->reason);
      put_unit_word(h, b, u->to);
    }
    put_unit_word(h, b, u->provider);
    put_unit_word(h, b, u->model);
  }
  HTML(h, "</tr>");
}

static void put_units(struct html *h, const struct behind *b) {
  HTML(h, "<div class=wide tabindex=0 role=region aria-label=judgments><table><thead><tr>");
  if (b->table != BEHIND_CAUSES)
    HTML(h, "<th scope=col>judgment</th>");
  HTML(h, "<th scope=col>session</th><th scope=col>workflow</th><th scope=col>when</th>"
          "<th scope=col>its session</th>");
  if (b->table != BEHIND_CAUSES)
    HTML(h, "<th scope=col class=n>rule</th><th scope=col>decided by</th>");
  if (b->keyed != NULL && tally_by_stage(b->keyed))
    HTML(h, "<th scope=col>stage</th><th scope=col>why it did not decide</th>"
            "<th scope=col>tried next</th>");
  if (b->table != BEHIND_CAUSES)
    HTML(h, "<th scope=col>provider</th><th scope=col>model</th>");
  HTML(h, "</tr></thead><tbody>");
  for (size_t i = 0; i < b->count; i++)
    put_unit_row(h, b, &b->units[i]);
  HTML(h, "</tbody></table></div>");
}

static void put_further(struct html *h, const struct page_ask *ask, const struct behind *b) {
  struct buf from = {0};
  if (b->from + b->count >= b->total)
    return;
  buf_printf(&from, "%llu", (unsigned long long)(b->from + b->count));
  HTML(h, "<p><a");
  HTML_LINK(h, "/judgments?of=", str_from(ask->of), "");
  put_address(h, ask);
  HTML_LINK_MORE(h, "from", buf_view(&from));
  HTML(h, ">Further ones</a></p>");
  buf_deinit(&from);
}

unsigned page_behind(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct behind b = {.max = LIMIT_WINDOW_ROW_COUNT};
  struct census *c = census_new();
  struct err err = {0};
  if (!behind_ask(ask, &b, &err)) {
    census_free(c);
    return page_problem(ask, out, &err);
  }
  bool ok = behind_find(ask, &b, c, &err);
  page_begin(&h, b.table == BEHIND_CAUSES ? "Incomplete sessions" : "Judgments behind a number",
             NULL);
  put_behind_filter(&h, ask);
  if (!ok) {
    HTML(&h, "<p class=banner role=alert>");
    html_said(&h, str_from(err.text));
    HTML(&h, "</p>");
  } else {
    put_behind_sum(&h, &b);
    if (b.count > 0)
      put_units(&h, &b);
    put_further(&h, ask, &b);
  }
  part_end_page(&h);
  behind_deinit(&b);
  census_free(c);
  return 200;
}

unsigned page_behind_data(const struct page_ask *ask, struct buf *out) {
  struct behind b = {.max = LIMIT_WINDOW_LISTED_COUNT};
  struct census *c = census_new();
  struct err err = {0};
  bool ok = behind_ask(ask, &b, &err) && behind_find(ask, &b, c, &err);
  if (ok && ask->kind == PAGE_BEHIND_CSV)
    behind_csv(&b, out);
  else if (ok)
    behind_json(&b, out);
  behind_deinit(&b);
  census_free(c);
  return ok ? 200 : page_problem(ask, out, &err);
}
