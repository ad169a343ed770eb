/* Writes what waits for a person's answer, with the forms for it. */
#include "core/record.h"
#include "format/json_object.h"
#include "view/words.h"
#include "web/answer_form.h"
#include "web/parts.h"

#include <string.h>

static struct str question_word(const json_t *item, const char *key) {
  return json_view(json_object_get(item, key));
}

static void put_said_list(struct html *h, const char *name, const json_t *list,
                          const char *between) {
  size_t i;
  json_t *text;
  if (json_array_size(list) == 0)
    return;
  HTML(h, "<p class=dim>");
  html_puts(h, name);
  json_array_foreach(list, i, text) {
    html_puts(h, i > 0 ? between : " ");
    html_said(h, json_view(text));
  }
  HTML(h, "</p>");
}

/* Says what an approval would let run. */
static void put_would_run(struct html *h, const json_t *runs) {
  if (runs == NULL)
    return;
  put_said_list(h, "would run:", json_at(runs, "command"), " ");
  if (question_word(runs, "provider").n > 0) {
    HTML(h, "<p class=dim>would ask ");
    html_said(h, question_word(runs, "provider"));
    html_puts(h, " with permission ");
    html_said(h, question_word(runs, "permission"));
    HTML(h, "</p>");
  }
  if (question_word(runs, "instruction").n > 0) {
    HTML(h, "<pre>");
    html_text(h, question_word(runs, "instruction"));
    HTML(h, "</pre>");
  }
}

/* Begins a form whose answer applies to this very question. */
static void begin_form(struct html *h, const json_t *item, const char *what) {
  HTML(h, "<form");
  html_attr_printf(h, "data-act", "s/%s/%s", question_word(item, "id").p, what);
  HTML(h, "><p><input type=hidden name=question data-number");
  html_attr_printf(h, "value", "%lld", (long long)json_integer_value(json_at(item, "question")));
  HTML(h, "><input type=hidden name=movement");
  HTML_ATTR(h, "value", question_word(item, "movement"));
  HTML(h, ">");
}

static void put_choices(struct html *h, const json_t *item) {
  size_t i;
  json_t *text;
  HTML(h, "<label>Answer <select name=choice data-number>");
  json_array_foreach(json_at(item, "choices"), i, text) {
    HTML(h, "<option");
    html_attr_printf(h, "value", "%zu", i + 1);
    HTML(h, ">");
    html_text(h, json_view(text));
    HTML(h, "</option>");
  }
  HTML(h, "</select></label> <button>Answer</button></p></form>");
}

static void put_answer_forms(struct html *h, const json_t *item) {
  if (str_eq_c(question_word(item, "kind"), "approve")) {
    begin_form(h, item, "approve");
    HTML(h, "<label>because <input name=reason size=40 maxlength=4000></label> "
            "<button>Approve</button></p></form>");
    begin_form(h, item, "reject");
    HTML(h, "<label>because <input name=reason size=40 maxlength=4000></label> "
            "<button>Reject</button></p></form>");
    return;
  }
  begin_form(h, item, "answer");
  if (json_array_size(json_at(item, "choices")) > 0) {
    put_choices(h, item);
  } else if (json_at(item, "schema") != NULL) {
    HTML(h, "</p>");
    answer_form_fields(h, json_at(item, "schema"));
    HTML(h, "<p><button>Answer</button></p></form>");
  } else {
    HTML(h, "<label>Answer<br><textarea name=text rows=3 cols=70 required></textarea></label> "
            "<button>Answer</button></p></form>");
  }
}

/* Lists the files that the session has changed so far. */
static void put_asked_files(struct html *h, const json_t *item) {
  size_t i;
  json_t *file;
  const json_t *files = json_at(item, "files");
  if (json_array_size(files) == 0)
    return;
  HTML(h, "<p class=dim>changed so far:</p><ul>");
  json_array_foreach(files, i, file) {
    HTML(h, "<li>");
    if (json_at(file, "more") != NULL)
      html_printf(h, "and %lld more", (long long)json_integer_value(json_at(file, "more")));
    else
      html_said(h, question_word(file, "path"));
    if (json_at(file, "added") != NULL || json_at(file, "removed") != NULL)
      html_printf(h, " +%lld -%lld", (long long)json_integer_value(json_at(file, "added")),
                  (long long)json_integer_value(json_at(file, "removed")));
    HTML(h, "</li>");
  }
  HTML(h, "</ul><p><a");
  HTML_LINK(h, "/s/", question_word(item, "id"), "/changes");
  HTML(h, ">Show the changed lines</a></p>");
}

static void put_last_words(struct html *h, const json_t *item) {
  long long turn = (long long)json_integer_value(json_at(item, "words_turn"));
  if (question_word(item, "words").n == 0)
    return;
  HTML(h, "<details");
  html_attr_printf(h, "id", "last-%s-%lld", question_word(item, "id").p,
                   (long long)json_integer_value(json_at(item, "question")));
  HTML(h, "><summary>");
  html_printf(h, "Last words before the question, in turn %lld", turn);
  HTML(h, "</summary><pre>");
  if (json_is_true(json_at(item, "words_cut")))
    html_puts(h, "... ");
  html_text(h, question_word(item, "words"));
  HTML(h, "</pre></details>");
}

static void put_question(struct html *h, const json_t *item, bool acts) {
  HTML(h, "<article");
  html_attr_printf(h, "id", "q-%s-%lld", question_word(item, "id").p,
                   (long long)json_integer_value(json_at(item, "question")));
  HTML(h, "><h2><a");
  HTML_LINK(h, "/s/", question_word(item, "id"), "/");
  HTML(h, ">");
  html_said(h, question_word(item, "movement"));
  HTML(h, "</a> in workflow ");
  html_said(h, question_word(item, "workflow"));
  HTML(h, "</h2>");
  if (question_word(item, "task").n > 0) {
    HTML(h, "<p class=dim>task: ");
    html_said(h, question_word(item, "task"));
    HTML(h, "</p>");
  }
  HTML(h, "<pre>");
  html_text(h, question_word(item, "text"));
  HTML(h, "</pre><p class=dim>asked ");
  part_time(h, question_word(item, "since"));
  if (question_word(item, "until").n > 0) {
    html_puts(h, ", until ");
    part_time(h, question_word(item, "until"));
    html_puts(h, "; then: ");
    html_said(h, question_word(item, "default"));
  }
  struct buf spent = {0};
  spend_print(json_at(item, "spent"), &spent);
  html_printf(h, "%s%s", spent.n > 0 ? ". Used so far: " : "", buf_c(&spent));
  buf_deinit(&spent);
  HTML(h, "</p>");
  put_would_run(h, json_at(item, "runs"));
  put_asked_files(h, item);
  put_said_list(h, "what may follow:", json_at(item, "blocks"), ", ");
  put_last_words(h, item);
  if (acts)
    put_answer_forms(h, item);
  HTML(h, "</article>");
}

void part_questions(struct html *h, const json_t *list, bool acts) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    struct str id = question_word(item, "id");
    if (id.n == strspn(id.p, "0123456789abcdef-")) /* it becomes part of an address */
      put_question(h, item, acts);
  }
}
