/* workflow_keys SCHEMA OUT - a build tool: the properties of schemas/workflow.json as the tables of
 * core/keys.h, so that a key is described in one place. A definition with properties is a set of
 * keys; every other one is a type that keys have, and its name leads to the type's check. */
#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/resource.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct resource resource_table[] = {{0, 0, 0}}; /* none is compiled in here */

enum { MOST_BYTES = 1024 * 1024 };
static json_t *root, *defs;

/* A text of one line whose value is checked by a function. */
static const struct {
  const char *type, *c;
} checked[] = {
    {"duration", "KEY_LINE, .check = limits_check_duration"},
    {"deadline", "KEY_LINE, .check = limits_check_deadline"},
    {"wait", "KEY_LINE, .check = limits_check_wait"},
    {"memory", "KEY_LINE, .check = limits_check_memory"},
    {"tests", "KEY_LINE, .check = limits_check_tests"},
    {"folder", "KEY_LINE, .check = limits_check_cwd"},
    {"branch", "KEY_LINE, .check = key_check_branch"},
    {"file", "KEY_NAME, .check = key_check_file"},
};

/* Which texts a key of type facet or section names, by the beginning of its name. */
static const char *facet_of(const char *key) {
  static const char *const kinds[][2] = {{"persona", "FACET_PERSONA"},
                                         {"polic", "FACET_POLICY"},
                                         {"knowledge", "FACET_KNOWLEDGE"},
                                         {"instruction", "FACET_INSTRUCTION"}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strncmp(key, kinds[i][0], strlen(kinds[i][0])) == 0)
      return kinds[i][1];
  return "FACET_OUTPUT_CONTRACT";
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

static bool is_set(const json_t *definition) {
  return json_object_get(definition, "properties") != NULL;
}

/* The name of the definition that a schema refers to, "" if it refers to none. */
static const char *definition_of(const json_t *schema) {
  const char *ref = text_of(schema, "$ref");
  return strncmp(ref, "#/$defs/", 8) == 0 && strchr(ref + 8, '/') == NULL ? ref + 8 : "";
}

/* Finds what a schema says by a keyword: itself, in its type, or in what it is one of or a list of.
 * A set of keys speaks for itself: for "$ref", its name is what is found. */
static const json_t *says(const json_t *schema, const char *keyword) {
  const json_t *found = json_object_get(schema, keyword), *one;
  const json_t *type = json_object_get(defs, definition_of(schema));
  bool wants_set = strcmp(keyword, "$ref") == 0;
  size_t i;
  if (wants_set ? is_set(type) : found != NULL)
    return found;
  found = is_set(type) ? NULL : type;
  found = found != NULL ? says(found, keyword) : NULL;
  json_array_foreach(json_object_get(schema, "anyOf"), i, one) {
    found = found != NULL ? found : says(one, keyword);
  }
  one = json_object_get(schema, "items");
  return found == NULL && one != NULL ? says(one, keyword) : found;
}

static bool lists(const json_t *names, const char *name) {
  size_t i;
  const json_t *one;
  json_array_foreach(names, i, one) {
    if (strcmp(json_string_value(one), name) == 0)
      return true;
  }
  return false;
}

/* Required is what the set says, what a movement needs that uses no fragment (the last of its
 * choices), and what may stand under another name instead (the first of two). */
static bool is_required(const json_t *set, const char *name) {
  const json_t *any = json_object_get(set, "anyOf"), *rule;
  const json_t *last = json_array_get(any, json_array_size(any) - 1);
  size_t i;
  json_array_foreach(json_object_get(set, "allOf"), i, rule) {
    const json_t *first = json_array_get(json_object_get(rule, "oneOf"), 0);
    if (lists(json_object_get(first, "required"), name))
      return true;
  }
  return lists(json_object_get(set, "required"), name) ||
         lists(json_object_get(last, "required"), name);
}

/* --- examples --- */

/* Whether YAML reads a text as it stands as that text, also within a list. */
static bool is_plain(const char *text) {
  static const char *const taken[] = {"true", "false", "null"};
  for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
    if (strcmp(text, taken[i]) == 0)
      return false;
  return strpbrk(text, ",[]{}#:\n") == NULL && strchr("*&!|>%@`\"'-?~ .", text[0]) == NULL &&
         text[strspn(text, "0123456789.")] != '\0';
}

static void put_json(struct buf *out, const json_t *value) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
  buf_puts(out, text);
  free(text);
}

static void put_yaml(struct buf *out, const json_t *value) {
  const char *key, *between = "";
  json_t *one;
  size_t i;
  if (json_is_object(value)) {
    json_object_foreach((json_t *)value, key, one) {
      buf_printf(out, "%s%s: ", *between ? between : "{", key);
      put_yaml(out, one);
      between = ", ";
    }
    buf_putc(out, '}');
  } else if (json_is_array(value)) {
    json_array_foreach(value, i, one) {
      buf_puts(out, i > 0 ? ", " : "[");
      put_yaml(out, one);
    }
    buf_putc(out, ']');
  } else if (json_is_string(value) && is_plain(json_string_value(value))) {
    buf_puts(out, json_string_value(value));
  } else {
    put_json(out, value);
  }
}

/* --- tables --- */

/* A text of JSON is one of C, but for \u, which no description needs. */
static void put_text(struct buf *out, const char *member, const char *text) {
  json_t *value = json_string(text);
  buf_printf(out, ", .%s = ", member);
  put_json(out, value);
  json_decref(value);
}

static void put_type(struct buf *out, const char *key, const json_t *schema) {
  const char *type = definition_of(schema), *plain = text_of(schema, "type");
  const json_t *choice = json_object_get(schema, "anyOf");
  if (is_set(json_object_get(defs, type)) ||
      is_set(json_object_get(defs, definition_of(json_array_get(choice, 1)))))
    buf_puts(out, "KEY_SET");
  else if (*type == '\0' && says(schema, "$ref") != NULL)
    buf_puts(out, "KEY_SET_LIST");
  else if (*type == '\0' && *plain == '\0')
    buf_puts(out, choice != NULL ? "KEY_COUNT" : "KEY_CHOICE");
  else if (strcmp(plain, "string") == 0)
    buf_puts(out, "KEY_TEXT");
  else if (strcmp(plain, "boolean") == 0)
    buf_puts(out, "KEY_BOOL");
  else {
    for (size_t i = 0; i < sizeof checked / sizeof checked[0]; i++)
      if (strcmp(checked[i].type, type) == 0) {
        buf_puts(out, checked[i].c);
        return;
      }
    buf_puts(out, "KEY_");
    for (const char *p = *type ? type : plain; *p; p++)
      buf_putc(out, (char)toupper((unsigned char)*p));
    if (strcmp(type, "facet") == 0 || strcmp(type, "section") == 0)
      buf_printf(out, ", .facet = %s", facet_of(key));
  }
}

/* The bounds of a number, or of how many there are in a list. */
static void put_bound(struct buf *out, const char *member, const json_t *schema, const char *number,
                      const char *count) {
  const json_t *bound = says(schema, number);
  bound = bound != NULL ? bound : says(schema, count);
  if (bound != NULL) {
    buf_printf(out, ", .%s = ", member);
    put_json(out, bound);
  }
}

static void put_words(struct buf *out, const json_t *words) {
  size_t i;
  const json_t *word;
  buf_puts(out, ", .words = (const char *const[]){");
  json_array_foreach(words, i, word) {
    put_json(out, word);
    buf_puts(out, ", ");
  }
  buf_puts(out, "NULL}");
}

/* Other names of a key are references to it: the first is its alias, the next an older one. */
static void put_other_names(struct buf *out, const json_t *set, const char *key) {
  const char *members[] = {"alias", "older"}, *other;
  const json_t *schema;
  size_t n = 0;
  json_object_foreach(json_object_get(set, "properties"), other, schema) {
    const char *ref = text_of(schema, "$ref"), *name = strrchr(ref, '/');
    if (*definition_of(schema) == '\0' && name != NULL && strcmp(name + 1, key) == 0)
      put_text(out, members[n++], other);
  }
}

static void put_key(struct buf *out, const json_t *set, const char *key, const json_t *schema) {
  const json_t *whole = schema, *choice = json_object_get(schema, "anyOf");
  bool or_null = strcmp(text_of(json_array_get(choice, 1), "type"), "null") == 0;
  if (or_null)
    schema = json_array_get(choice, 0);
  buf_printf(out, "    {\"%s\", ", key);
  if (json_is_true(json_object_get(schema, "deprecated")))
    buf_puts(out, "KEY_NOTED");
  else
    put_type(out, key, schema);
  put_other_names(out, set, key);
  if (is_required(set, key))
    buf_puts(out, ", .required = true");
  if (or_null)
    buf_puts(out, ", .or_null = true");
  if (json_is_true(says(schema, "const")))
    buf_puts(out, ", .or_true = true");
  const char *member = or_null ? NULL : strrchr(text_of(json_array_get(choice, 0), "$ref"), '/');
  if (member != NULL && *definition_of(json_array_get(choice, 0)) == '\0')
    put_text(out, "or_member", member + 1);
  put_bound(out, "min", schema, "minimum", "minItems");
  put_bound(out, "max", schema, "maximum", "maxItems");
  if (says(schema, "enum") != NULL)
    put_words(out, says(schema, "enum"));
  const char *of = json_string_value(says(schema, "$ref"));
  if (of != NULL)
    buf_printf(out, ", .set = &%s_keys", strrchr(of, '/') + 1);
  const char *value = text_of(json_object_get(defs, definition_of(schema)), "description");
  if (*value != '\0')
    put_text(out, "value", value);
  const json_t *example = json_array_get(json_object_get(whole, "examples"), 0);
  if (example != NULL) {
    struct buf text = {0};
    put_yaml(&text, example);
    put_text(out, "example", buf_c(&text));
    buf_deinit(&text);
  }
  put_text(out, "description", text_of(whole, "description"));
  buf_puts(out, "},\n");
}

static void put_set(struct buf *out, const char *id, const char *what, const json_t *set) {
  const char *key;
  const json_t *schema;
  buf_printf(out, "\nstatic const struct key %s_list[] = {\n", id);
  json_object_foreach(json_object_get(set, "properties"), key, schema) {
    if (*text_of(schema, "$ref") == '\0' || *definition_of(schema) != '\0')
      put_key(out, set, key, schema);
  }
  buf_printf(out, "    {0},\n};\nconst struct key_set %s_keys = {\"%s\", %s_list};\n", id, what,
             id);
}

int main(int argc, char **argv) {
  struct buf in = {0}, out = {0};
  struct err err;
  const char *id;
  const json_t *set;
  if (argc != 3)
    die("usage: workflow_keys SCHEMA OUT");
  if (!file_read(argv[1], MOST_BYTES, &in, &err))
    die("%s", err.text);
  json_error_t wrong;
  root = json_loadb(in.p, in.n, JSON_REJECT_DUPLICATES, &wrong);
  if (root == NULL)
    die("%s:%d: %s", argv[1], wrong.line, wrong.text);
  defs = json_object_get(root, "$defs");
  buf_puts(&out, "#include \"core/keys.h\"\n#include \"core/movement_limits.h\"\n");
  put_set(&out, "workflow", "a workflow", root);
  json_object_foreach(defs, id, set) {
    if (is_set(set))
      put_set(&out, id, text_of(set, "title"), set);
  }
  FILE *f = fopen(argv[2], "w");
  if (f == NULL || fwrite(out.p, 1, out.n, f) != out.n || fclose(f) != 0)
    die("%s cannot be written", argv[2]);
  json_decref(root);
  buf_deinit(&in);
  buf_deinit(&out);
  return 0;
}
