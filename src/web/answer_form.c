/* Writes the fields of an answer that a schema describes. */
#include "web/answer_form.h"

#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <stdlib.h>

enum { MAX_FIELDS = 40, MAX_WORDS = 50, LONG_TEXT = 200 };

/* Writes JSON in pure ASCII, which no cleaning changes. */
static void attr_json(struct html *h, bool key, const json_t *value) {
  char *text = json_dump_text(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
  if (key)
    HTML_ATTR(h, "data-key", str_from(text ? text : ""));
  else
    HTML_ATTR(h, "value", str_from(text ? text : ""));
  free(text);
}

/* Writes the attributes that say which property a field is for, and whether it is required. */
static void field_is(struct html *h, const char *form, const char *property, bool required) {
  HTML_ATTR(h, "data-form", str_from(form));
  if (property != NULL) {
    json_t *key = json_string(property);
    attr_json(h, true, key);
    json_decref(key);
  }
  if (required)
    HTML(h, " required");
}

static bool is_type(const json_t *schema, const char *name) {
  return str_eq_c(json_view(json_at(schema, "type")), name);
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
    struct buf text = {0};
    json_write(word, &text);
    html_text(h, buf_view(&text));
    buf_deinit(&text);
  }
  HTML(h, "</option>");
}

/* Writes a choice of one value from several. */
static void put_select(struct html *h, const json_t *words, const json_t *schema,
                       const char *property, bool required) {
  size_t i;
  json_t *word;
  HTML(h, "<select");
  field_is(h, "json", property, required);
  HTML(h, "><option value=\"\"></option>");
  json_array_foreach((json_t *)words, i, word) {
    put_word(h, word, json_at(schema, "default"));
  }
  HTML(h, "</select>");
}

static void put_flag_field(struct html *h, const json_t *schema, const char *property,
                           bool required) {
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
}

static void number_attr(struct html *h, const json_t *schema, const char *key, bool least) {
  const json_t *bound = json_object_get(schema, key);
  if (!json_is_number(bound))
    return;
  if (least)
    html_attr_printf(h, "min", "%.15g", json_number_value(bound));
  else
    html_attr_printf(h, "max", "%.15g", json_number_value(bound));
}

static void put_number_field(struct html *h, const json_t *schema, const char *property,
                             bool required) {
  const json_t *otherwise = json_at(schema, "default");
  HTML(h, "<input type=number");
  HTML_ATTR(h, "step", is_type(schema, "integer") ? STR("1") : STR("any"));
  number_attr(h, schema, "minimum", true);
  number_attr(h, schema, "maximum", false);
  if (json_is_number(otherwise))
    html_attr_printf(h, "value", "%.15g", json_number_value(otherwise));
  field_is(h, "json", property, required);
  HTML(h, ">");
}

static void put_text_field(struct html *h, const json_t *schema, const char *property,
                           bool required) {
  json_int_t max = json_integer_value(json_at(schema, "maxLength"));
  struct str otherwise = json_view(json_at(schema, "default"));
  bool date = str_eq_c(json_view(json_at(schema, "format")), "date");
  bool line = date || json_at(schema, "pattern") != NULL || json_at(schema, "format") != NULL ||
              (max > 0 && max <= LONG_TEXT);
  if (line)
    HTML(h, "<input size=40 autocomplete=off");
  else
    HTML(h, "<textarea rows=2 cols=60");
  if (date)
    HTML(h, " type=date");
  if (max > 0)
    html_attr_printf(h, "maxlength", "%lld", (long long)max);
  field_is(h, "text", property, required);
  if (line) {
    HTML_ATTR(h, "value", otherwise);
    HTML(h, ">");
    return;
  }
  HTML(h, ">");
  html_text(h, otherwise);
  HTML(h, "</textarea>");
}

static void put_json_field(struct html *h, const json_t *schema, const char *property,
                           bool required) {
  struct buf text = {0};
  if (json_at(schema, "default") != NULL)
    json_write(json_at(schema, "default"), &text);
  HTML(h, "<textarea rows=3 cols=60 spellcheck=false");
  field_is(h, "json", property, required);
  HTML(h, ">");
  html_text(h, buf_view(&text));
  HTML(h, "</textarea>");
  buf_clear(&text);
  json_write(schema, &text);
  HTML(h, "<br><span class=dim>as JSON that matches ");
  html_text(h, buf_view(&text));
  HTML(h, "</span>");
  buf_deinit(&text);
}

/* Writes the field itself. With property NULL it is for the whole answer. */
static void put_field(struct html *h, const json_t *schema, const char *property, bool required) {
  const json_t *words = json_at(schema, "enum");
  size_t n = json_array_size(words);
  if (n > 0 && n <= MAX_WORDS)
    put_select(h, words, schema, property, required);
  else if (n == 0 && is_type(schema, "boolean"))
    put_flag_field(h, schema, property, required);
  else if (n == 0 && (is_type(schema, "number") || is_type(schema, "integer")))
    put_number_field(h, schema, property, required);
  else if (n == 0 && is_type(schema, "string"))
    put_text_field(h, schema, property, required);
  else
    put_json_field(h, schema, property, required);
}

static bool field_is_required(const json_t *schema, const char *property) {
  size_t i;
  json_t *name;
  json_array_foreach(json_at(schema, "required"), i, name) {
    if (str_eq_c(json_view(name), property))
      return true;
  }
  return false;
}

/* Writes a property's title, or else its name, then its field and description. */
static void put_property_field(struct html *h, const json_t *schema, const char *name,
                               bool required) {
  struct str title = json_view(json_at(schema, "title"));
  struct str about = json_view(json_at(schema, "description"));
  HTML(h, "<p><label><span class=name>");
  html_said(h, title.n > 0 ? title : str_from(name));
  html_puts(h, required ? "" : " (optional)");
  HTML(h, "</span> ");
  put_field(h, schema, name, required);
  HTML(h, "</label>");
  if (about.n > 0) {
    HTML(h, "<br><span class=dim>");
    html_said(h, about);
    HTML(h, "</span>");
  }
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

void answer_form_fields(struct html *h, const json_t *schema) {
  const char *name;
  json_t *of;
  if (!is_plain_object(schema)) {
    HTML(h, "<p><label>Answer<br>");
    put_field(h, schema, NULL, true);
    HTML(h, "</label></p>");
    return;
  }
  json_object_foreach(json_object_get(schema, "properties"), name, of) {
    put_property_field(h, of, name, field_is_required(schema, name));
  }
}
