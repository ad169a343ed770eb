/* Writes the pages on which a person labels judgments: the queue, and one judgment without its
 * verdict. label.mjs puts one after the other into the page of the queue. */
#include "audit/label_queue.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "web/page_session.h"
#include "web/parts.h"

#include <string.h>

enum { TEXT_SHOWN = 16 * 1024, TASK_SHOWN = 600, FILES_SHOWN = 12 };

/* --- the queue --- */

/* Writes what label.mjs sends back with an answer; the stratum says what is drawn, nobody is shown
 * it. */
static void put_queue(struct html *h, const struct page_ask *ask, const struct label_queue *q) {
  json_auto_t *list = json_array();
  buf_auto_t text = {0};
  size_t labelled = 0;
  for (size_t i = 0; i < q->draw.count; i++) {
    struct label label;
    label_queue_label(q, i, 0, &label);
    if (label_queue_has(q, i))
      labelled++;
    else
      json_array_append_new(list, json_pack("{ss sI so sI}", "session", label.session, "turn",
                                            (json_int_t)label.turn, "stratum",
                                            json_text(str_from(label.stratum)), "population",
                                            (json_int_t)label.population));
  }
  json_write(list, &text);
  HTML_FMT(h, "<p id=queue data-labelled=\"%zu\" data-as=\"%s\" data-queue=\"%.*s\">", labelled,
           ask->as, STR_ARG(buf_view(&text)));
  if (q->draw.count == 0)
    HTML(h, "No judgment matches.</p>");
  else if (labelled == q->draw.count)
    HTML(h, "All are labelled: <code>segue agree --wrong</code> says how often verdicts are "
            "wrong.</p>");
  else if (!ask->acts)
    HTML(h, "This page can only be read here: label with <code>segue label --queue</code>.</p>");
  else
    HTML_FMT(h, "%zu of %zu labelled</p><article id=judged></article>", labelled, q->draw.count);
}

unsigned page_label(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct aggregate *c = aggregate_new();
  struct err err = {0};
  long want = LABEL_QUEUE_USUAL;
  struct label_queue q = {.by = ask->as};
  page_begin(&h, "Label", NULL);
  HTML_FMT(&h,
           "<form role=search><label>Your name <input name=as size=16 autocomplete=off "
           "maxlength=60 value=\"%s\"></label> <label>How many <input name=count size=5 "
           "inputmode=numeric value=\"%s\"></label> ",
           ask->as, ask->from);
  page_filter(&h, ask, "movement:review rule:1 since:7d");
  if (ask->from[0] != '\0' &&
      (!str_to_long(str_from(ask->from), &want) || want < 1 || want > SAMPLE_MOST))
    err_set(&err, ERR_USAGE, "how many: write a number from 1 to %d", SAMPLE_MOST);
  q.want = (size_t)want;
  if (err.code == ERR_NONE && aggregate_filter_text(c, ask->q, ask->now_ms, &err) &&
      (!store_exists(&ask->store) || label_queue_draw(&q, &ask->store, c, &err)))
    put_queue(&h, ask, &q);
  if (err.code != ERR_NONE)
    page_trouble(&h, &err);
  HTML(&h, "<p class=dim>Keys: 1-9 the rule that holds, 0 none of them, s skip for now, u back to "
           "the one before. The verdict is not shown. Answers are kept beside the logs, and none "
           "is taken away: if you answer once more, the later answer counts.</p><script "
           "type=module");
  HTML_SRC(&h, "label.mjs");
  HTML(&h, "></script>");
  part_end_page(&h);
  label_queue_deinit(&q);
  aggregate_free(c);
  return 200;
}

/* --- one judgment --- */

static void put_label_work(struct html *h, const struct page_ask *ask,
                           const struct call_result *work) {
  struct str text = buf_view(&work->text.bytes);
  size_t cut = text.n > TEXT_SHOWN ? text.n - TEXT_SHOWN : 0;
  cut = cut > 0 ? utf8_floor(text.p, cut) : 0;
  if (cut > 0)
    HTML_FMT(h, "<p class=origin>%zu bytes before</p>", cut);
  HTML_FMT(h, "<pre class=live tabindex=0>%.*s</pre><p class=dim>", (int)(text.n - cut),
           text.p + cut);
  if (work->has_exit)
    HTML_FMT(h, "It ended with exit status %d. ", work->exit);
  if (work->tests != NULL)
    HTML_FMT(h, "Tests: %lld passed, %lld failed. ", (long long)json_int_at(work->tests, "passed"),
             (long long)json_int_at(work->tests, "failed"));
  JSON_EACH(work->files, i, file) {
    if (i < FILES_SHOWN)
      HTML_FMT(h, "%s<bdi>%.*s</bdi>",
               i > 0 ? ", " : "Changed: ", STR_ARG(json_view_at(file, "path")));
  }
  size_t files = json_array_size(work->files) + work->files_more;
  if (files > FILES_SHOWN)
    HTML_FMT(h, " and %zu more", files - FILES_SHOWN);
  if (files > 0) {
    HTML(h, " <a");
    HTML_LINK(h, "/s/", str_from(ask->id), "/changes");
    HTML(h, ">the changed lines</a>");
  }
  HTML(h, "</p></section>");
}

static void put_choices(struct html *h, const struct movement *m) {
  HTML(h, "<section><h2>Which rule holds?</h2><p class=choices>");
  for (size_t i = 0; i < m->rule_count; i++) {
    const struct rule *r = &m->rules[i];
    struct str text = r->kind == RULE_WHEN ? r->when_text : r->label;
    HTML_FMT(h, "<button type=button data-rule=\"%d\"><kbd>%d</kbd> %s<bdi>%.*s</bdi></button>",
             r->number, r->number, r->kind == RULE_WHEN ? "(an expression) " : "", STR_ARG(text));
  }
  HTML(h, "<button type=button data-rule=\"0\"><kbd>0</kbd> none of them</button></p><p "
          "class=choices><button type=button data-key=s><kbd>s</kbd> skip</button><button "
          "type=button data-key=u><kbd>u</kbd> back</button></p></section>");
}

unsigned page_label_case(const struct page_ask *ask, struct buf *out) {
  struct html h = page_html(ask, out);
  struct rejudge_case *made = NULL;
  struct err err = {0};
  long turn = 0;
  bool ok = (str_to_long(str_from(ask->turn), &turn) && turn > 0) ||
            err_set(&err, ERR_NOT_FOUND, "%.20s is not the number of a turn", ask->turn);
  if (!ok || !label_queue_case(&ask->store, ask->id, turn, &made, &err))
    return page_problem(ask, out, &err);
  page_begin(&h, "Judgment to label", NULL);
  HTML_FMT(&h,
           "<article id=judged><section><p><b><bdi>%.*s</bdi></b>, workflow "
           "<bdi>%.*s</bdi>, turn %ld",
           STR_ARG(made->core.workflow->movements[0].name), STR_ARG(made->core.workflow->name),
           turn);
  size_t task = made->task.n > TASK_SHOWN ? utf8_floor(made->task.p, TASK_SHOWN) : made->task.n;
  if (task > 0)
    HTML_FMT(&h, "; task: <bdi>%.*s</bdi>", (int)task, made->task.p);
  HTML(&h, "</p>");
  put_label_work(&h, ask, &made->answer);
  put_choices(&h, &made->core.workflow->movements[0]);
  HTML(&h, "</article>");
  part_end_page(&h);
  rejudge_case_free(made);
  return 200;
}
