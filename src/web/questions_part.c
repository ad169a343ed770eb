/* Writes what waits for a person's answer, with the forms for it. */
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "web/html.h"
#include "web/parts.h"

#include <jansson.h>
#include <string.h>

/* --- the fields of an answer --- */

/* Writes the fields of an answer that a schema describes: one for each property with a plain form
 * (a text, a number, yes or no, one of several), and a JSON field for any other.
 *
 * page.mjs puts them together: data-key is the property as JSON, data-form says how the field's
 * value becomes JSON (text, or json: it already is JSON). The daemon checks the answer. */

enum { MAX_FIELDS = 40, MAX_WORDS = 50, LONG_TEXT = 200 };

/* Writes JSON in pure ASCII, which no cleaning changes. */
static void attr_json(struct html *h, bool key, const json_t *value) {
  char_auto_t *text = json_dump_text(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
  if (key)
    HTML_ATTR(h, "data-key", str_from(text ? text : ""));
  else
    HTML_ATTR(h, "value", str_from(text ? text : ""));
}

/* Writes the attributes that say which property a field is for, and whether it is required. */
static void field_is(struct html *h, const char *form, const char *property, bool required) {
  HTML_ATTR(h, "data-form", str_from(form));
  if (property != NULL) {
    json_auto_t *key = json_string(property);
    attr_json(h, true, key);
  }
  if (required)
    HTML(h, " required");
}

static bool is_type(const json_t *schema, const char *name) {
  return str_eq_c(json_view_at(schema, "type"), name);
}

static void put_word(struct html *h, const json_t *word, const json_t *otherwise) {
  HTML(h, "<option");
  attr_json(h, false, word);
  if (otherwise != NULL && json_same(word, otherwise))
    HTML(h, " selected");
  HTML(h, ">");
  if (json_is_string(word)) {
    html_text(h, json_view(word));
  } else {
    buf_auto_t text = {0};
    json_write(word, &text);
    html_text(h, buf_view(&text));
  }
  HTML(h, "</option>");
}

/* Writes a choice of one value from several. */
static void put_select(struct html *h, const json_t *words, const json_t *schema,
                       const char *property, bool required) {
  HTML(h, "<select");
  field_is(h, "json", property, required);
  HTML(h, "><option value=\"\"></option>");
  JSON_EACH(words, i, word)
    put_word(h, word, json_at(schema, "default"));
  HTML(h, "</select>");
}

static void number_attr(struct html *h, const json_t *schema, const char *key, bool least) {
  const json_t *bound = json_object_get(schema, key);
  if (!json_is_number(bound))
    return;
  if (least)
    HTML_FMT(h, " min=\"%.15g\"", json_number_value(bound));
  else
    HTML_FMT(h, " max=\"%.15g\"", json_number_value(bound));
}

static void put_text_field(struct html *h, const json_t *schema, const char *property,
                           bool required) {
  json_int_t max = json_int_at(schema, "maxLength");
  struct str otherwise = json_view_at(schema, "default");
  bool date = str_eq_c(json_view_at(schema, "format"), "date");
  bool line = date || json_at(schema, "pattern") != NULL || json_at(schema, "format") != NULL ||
              (max > 0 && max <= LONG_TEXT);
  if (line)
    HTML(h, "<input size=40 autocomplete=off");
  else
    HTML(h, "<textarea rows=2 cols=60");
  if (date)
    HTML(h, " type=date");
  if (max > 0)
    HTML_FMT(h, " maxlength=\"%lld\"", (long long)max);
  field_is(h, "text", property, required);
  if (line) {
    HTML_FMT(h, " value=\"%.*s\">", STR_ARG(otherwise));
    return;
  }
  HTML_FMT(h, ">%.*s</textarea>", STR_ARG(otherwise));
}

static void put_json_field(struct html *h, const json_t *schema, const char *property,
                           bool required) {
  buf_auto_t text = {0};
  if (json_at(schema, "default") != NULL)
    json_write(json_at(schema, "default"), &text);
  HTML(h, "<textarea rows=3 cols=60 spellcheck=false");
  field_is(h, "json", property, required);
  HTML_FMT(h, ">%.*s</textarea>", STR_ARG(buf_view(&text)));
  buf_clear(&text);
  json_write(schema, &text);
  HTML_FMT(h, "<br><span class=dim>as JSON that matches %.*s</span>", STR_ARG(buf_view(&text)));
}

/* Writes the field itself. With property NULL it is for the whole answer. */
static void put_field(struct html *h, const json_t *schema, const char *property, bool required) {
  const json_t *words = json_at(schema, "enum");
  size_t n = json_array_size(words);
  if (n > 0 && n <= MAX_WORDS) {
    put_select(h, words, schema, property, required);
  } else if (n == 0 && is_type(schema, "boolean")) {
    const json_t *otherwise = json_at(schema, "default");
    HTML(h, "<select");
    field_is(h, "json", property, required);
    HTML(h, "><option value=\"\"></option><option value=true");
    if (json_is_true(otherwise))
      HTML(h, " selected");
    HTML(h, ">yes</option><option value=false");
    if (json_is_false(otherwise))
      HTML(h, " selected");
    HTML(h, ">no</option></select>");
  } else if (n == 0 && (is_type(schema, "number") || is_type(schema, "integer"))) {
    const json_t *otherwise = json_at(schema, "default");
    HTML(h, "<input type=number");
    HTML_ATTR(h, "step", is_type(schema, "integer") ? STR("1") : STR("any"));
    number_attr(h, schema, "minimum", true);
    number_attr(h, schema, "maximum", false);
    if (json_is_number(otherwise))
      HTML_FMT(h, " value=\"%.15g\"", json_number_value(otherwise));
    field_is(h, "json", property, required);
    HTML(h, ">");
  } else if (n == 0 && is_type(schema, "string")) {
    put_text_field(h, schema, property, required);
  } else {
    put_json_field(h, schema, property, required);
  }
}

static bool field_is_required(const json_t *schema, const char *property) {
  JSON_EACH(json_at(schema, "required"), i, name)
    if (str_eq_c(json_view(name), property))
      return true;
  return false;
}

/* Writes a property's title, or else its name, then its field and description. */
static void put_property_field(struct html *h, const json_t *schema, const char *name,
                               bool required) {
  struct str title = json_view_at(schema, "title"), about = json_view_at(schema, "description");
  HTML_FMT(h, "<p><label><span class=name><bdi>%.*s</bdi>%s</span> ",
           STR_ARG(title.n > 0 ? title : str_from(name)), required ? "" : " (optional)");
  put_field(h, schema, name, required);
  HTML(h, "</label>");
  if (about.n > 0)
    HTML_FMT(h, "<br><span class=dim><bdi>%.*s</bdi></span>", STR_ARG(about));
  HTML(h, "</p>");
}

/* Returns whether an answer can have nothing but the schema's properties. */
static bool is_plain_object(const json_t *schema) {
  static const char *const others[] = {
      "$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties"};
  size_t n = json_object_size(json_at(schema, "properties"));
  for (size_t i = 0; i < ARRAY_LEN(others); i++)
    if (json_object_get(schema, others[i]) != NULL)
      return false;
  return is_type(schema, "object") && n > 0 && n <= MAX_FIELDS;
}

static void answer_form_fields(struct html *h, const json_t *schema) {
  if (!is_plain_object(schema)) {
    HTML(h, "<p><label>Answer<br>");
    put_field(h, schema, NULL, true);
    HTML(h, "</label></p>");
    return;
  }
  JSON_MEMBERS(json_object_get(schema, "properties"), name, of)
    put_property_field(h, of, name, field_is_required(schema, name));
}

/* --- questions --- */

static void put_said_list(struct html *h, const char *name, const json_t *list,
                          const char *between) {
  if (json_array_size(list) == 0)
    return;
  HTML_FMT(h, "<p class=dim>%s", name);
  JSON_EACH(list, i, text)
    HTML_FMT(h, "%s<bdi>%.*s</bdi>", i > 0 ? between : " ", STR_ARG(json_view(text)));
  HTML(h, "</p>");
}

/* Says what an approval would let run. */
static void put_would_run(struct html *h, const json_t *runs) {
  if (runs == NULL)
    return;
  put_said_list(h, "would run:", json_at(runs, "command"), " ");
  if (json_view_at(runs, "provider").n > 0)
    HTML_FMT(h, "<p class=dim>would ask <bdi>%.*s</bdi> with permission <bdi>%.*s</bdi></p>",
             STR_ARG(json_view_at(runs, "provider")), STR_ARG(json_view_at(runs, "permission")));
  if (json_view_at(runs, "instruction").n > 0)
    HTML_FMT(h, "<pre>%.*s</pre>", STR_ARG(json_view_at(runs, "instruction")));
}

/* Begins a form whose answer applies to this very question. */
static void begin_form(struct html *h, const json_t *item, const char *what) {
  HTML_FMT(h,
           "<form data-act=\"s/%s/%s\"><p><input type=hidden name=question data-number "
           "value=\"%lld\"><input type=hidden name=movement value=\"%.*s\">",
           json_view_at(item, "id").p, what, (long long)json_int_at(item, "question"),
           STR_ARG(json_view_at(item, "movement")));
}

static void put_answer_forms(struct html *h, const json_t *item) {
  if (str_eq_c(json_view_at(item, "kind"), "approve")) {
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
    HTML(h, "<label>Answer <select name=choice data-number>");
    JSON_EACH(json_at(item, "choices"), i, text)
      HTML_FMT(h, "<option value=\"%zu\">%.*s</option>", i + 1, STR_ARG(json_view(text)));
    HTML(h, "</select></label> <button>Answer</button></p></form>");
  } else if (json_at(item, "schema") != NULL) {
    HTML(h, "</p>");
    answer_form_fields(h, json_at(item, "schema"));
    HTML(h, "<p><button>Answer</button></p></form>");
  } else {
    HTML(h, "<label>Answer<br><textarea name=text rows=3 cols=70 required></textarea></label> "
            "<button>Answer</button></p></form>");
  }
}

void part_dismiss(struct html *h, const char *id, long long question) {
  HTML_FMT(
      h,
      "<details id=\"d-%s-%lld\"><summary>Dismiss</summary><form data-act=\"s/%s/dismiss\"><p>The "
      "session stays as it is, and is listed again when something new happens. <label>because "
      "<input name=why size=40 maxlength=150 required></label> <button>Dismiss</button></p>"
      "</form></details>",
      id, question, id);
}

/* Lists the files that the session has changed so far. */
static void put_asked_files(struct html *h, const json_t *item) {
  const json_t *files = json_at(item, "files");
  if (json_array_size(files) == 0)
    return;
  HTML(h, "<p class=dim>changed so far:</p><ul>");
  JSON_EACH(files, i, file) {
    HTML(h, "<li>");
    if (json_at(file, "more") != NULL)
      HTML_FMT(h, "and %lld more", (long long)json_int_at(file, "more"));
    else
      html_said(h, json_view_at(file, "path"));
    if (json_at(file, "added") != NULL || json_at(file, "removed") != NULL)
      HTML_FMT(h, " +%lld -%lld", (long long)json_int_at(file, "added"),
               (long long)json_int_at(file, "removed"));
    HTML(h, "</li>");
  }
  HTML(h, "</ul><p><a");
  HTML_LINK(h, "/s/", json_view_at(item, "id"), "/changes");
  HTML(h, ">Show the changed lines</a></p>");
}

static void put_last_words(struct html *h, const json_t *item) {
  long long turn = (long long)json_int_at(item, "words_turn");
  if (json_view_at(item, "words").n == 0)
    return;
  HTML_FMT(h,
           "<details id=\"last-%s-%lld\"><summary>Last words before the question, in turn "
           "%lld</summary><pre>",
           json_view_at(item, "id").p, (long long)json_int_at(item, "question"), turn);
  if (json_is_true(json_at(item, "words_cut")))
    html_puts(h, "... ");
  HTML_FMT(h, "%.*s</pre></details>", STR_ARG(json_view_at(item, "words")));
}

static void put_question(struct html *h, const json_t *item, bool acts, bool dismisses) {
  HTML_FMT(h, "<article id=\"q-%s-%lld\"><h2><a", json_view_at(item, "id").p,
           (long long)json_int_at(item, "question"));
  HTML_LINK(h, "/s/", json_view_at(item, "id"), "/");
  HTML_FMT(h, "><bdi>%.*s</bdi></a> in workflow <bdi>%.*s</bdi></h2>",
           STR_ARG(json_view_at(item, "movement")), STR_ARG(json_view_at(item, "workflow")));
  if (json_view_at(item, "task").n > 0)
    HTML_FMT(h, "<p class=dim>task: <bdi>%.*s</bdi></p>", STR_ARG(json_view_at(item, "task")));
  HTML_FMT(h, "<pre>%.*s</pre>", STR_ARG(json_view_at(item, "text")));
  put_would_run(h, json_at(item, "runs"));
  if (acts) /* in reach on a phone */
    put_answer_forms(h, item);
  HTML(h, "<p class=dim>asked ");
  part_time(h, json_view_at(item, "since"));
  if (json_view_at(item, "until").n > 0) {
    html_puts(h, ", until ");
    part_time(h, json_view_at(item, "until"));
    HTML_FMT(h, "; then: <bdi>%.*s</bdi>", STR_ARG(json_view_at(item, "default")));
  }
  buf_auto_t spent = {0};
  spend_print(json_at(item, "spent"), &spent);
  HTML_FMT(h, "%s%s", spent.n > 0 ? ". Used so far: " : "", buf_c(&spent));
  HTML(h, "</p>");
  put_asked_files(h, item);
  put_said_list(h, "what may follow:", json_at(item, "blocks"), ", ");
  put_last_words(h, item);
  if (dismisses)
    part_dismiss(h, json_view_at(item, "id").p, (long long)json_int_at(item, "question"));
  HTML(h, "</article>");
}

void part_questions(struct html *h, const json_t *list, bool acts, bool dismisses) {
  JSON_EACH(list, i, item) {
    struct str id = json_view_at(item, "id");
    if (!str_eq_c(json_view_at(item, "kind"), "stop") &&
        id.n == strspn(id.p, "0123456789abcdef-")) /* it becomes part of an address */
      put_question(h, item, acts, dismisses);
  }
}
