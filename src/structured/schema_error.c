/* Errors and their words: for a person, and for a model that is to mend its output. */
#include "structured/schema_run.h"

#include <stdio.h>
#include <stdlib.h>

static void error_deinit(struct schema_error *error) {
  schema_release(error->path);
  schema_release(error->pointer);
  schema_release(error->schema_path);
  schema_release(error->message);
}

void schema_errors_deinit(struct schema_errors *errs) {
  for (size_t i = 0; i < errs->count; i++)
    error_deinit(&errs->items[i]);
  schema_release(errs->items);
  *errs = (struct schema_errors){0};
}

bool schema_errors_add(struct schema_errors *errors, char *path, char *pointer, char *schema_path,
                       const char *keyword, char *message) {
  struct schema_error error = {path, pointer, schema_path, keyword, message};
  bool whole = path && pointer && schema_path && message;
  for (size_t i = 0; whole && i < errors->count; i++)
    if (!strcmp(errors->items[i].pointer, pointer) && !strcmp(errors->items[i].message, message)) {
      error_deinit(&error); /* two parts of a schema may ask for the same */
      return true;
    }
  if (whole && errors->count < SCHEMA_ERRORS_MAX) {
    if (!errors->items)
      errors->items = schema_alloc(SCHEMA_ERRORS_MAX * sizeof *errors->items);
    if (errors->items) {
      errors->items[errors->count++] = error;
      return true;
    }
    whole = false;
  }
  error_deinit(&error);
  errors->dropped += whole;
  return whole;
}

static bool plain_name(const char *key, size_t n) {
  if (!n || (key[0] >= '0' && key[0] <= '9'))
    return false;
  for (size_t i = 0; i < n; i++) {
    char c = key[i];
    if (!(c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
          (c >= 'A' && c <= 'Z')))
      return false;
  }
  return true;
}

/* A path has as many levels as the value; only the innermost are kept of one that is absurdly deep.
 */
enum { PATH_LEVELS_MAX = 300 };

static size_t path_levels(const struct step *path, const struct step **levels) {
  size_t n = 0;
  for (; path && n < PATH_LEVELS_MAX; path = path->up)
    levels[n++] = path;
  return n;
}

void schema_path_text(const struct step *path, struct text *out) {
  const struct step *levels[PATH_LEVELS_MAX];
  size_t n = path_levels(path, levels);
  schema_text_puts(out, n && levels[n - 1]->up ? "$..." : "$");
  while (n--) {
    const struct step *step = levels[n];
    if (!step->key) {
      schema_text_printf(out, "[%zu]", step->n);
    } else if (plain_name(step->key, step->n)) {
      schema_text_puts(out, ".");
      schema_text_add(out, step->key, step->n);
    } else {
      schema_text_puts(out, "[");
      schema_quote_text(step->key, step->n, out);
      schema_text_puts(out, "]");
    }
  }
}

void schema_pointer_text(const struct step *path, struct text *out) {
  const struct step *levels[PATH_LEVELS_MAX];
  size_t n = path_levels(path, levels);
  schema_text_add(out, "", 0);
  while (n--) {
    const struct step *step = levels[n];
    schema_text_puts(out, "/");
    if (!step->key)
      schema_text_printf(out, "%zu", step->n);
    for (size_t i = 0; step->key && i < step->n; i++) {
      char c = step->key[i];
      if (c == '~' || c == '/')
        schema_text_puts(out, c == '~' ? "~0" : "~1");
      else
        schema_text_add(out, &c, 1);
    }
  }
}

void schema_entry_text(const struct schema *schema, uint32_t entry, struct text *out) {
  enum { LEVELS = SCHEMA_NESTING_MAX + 2 };
  const char *levels[LEVELS];
  size_t n = 0;
  schema_text_add(out, "", 0);
  if (entry >= schema->entry_count)
    return;
  uint32_t document = schema->resources[schema->entries[entry].resource].document;
  for (; schema->entries[entry].parent != entry && n < LEVELS;
       entry = schema->entries[entry].parent)
    levels[n++] = schema->entries[entry].suffix;
  if (document) {
    schema_text_puts(out, schema->documents[document].uri);
    schema_text_puts(out, "#");
  }
  while (n--)
    schema_text_puts(out, levels[n]);
}

/* A cut in the middle of a character is not made. */
static size_t whole_characters(const char *bytes, size_t length, size_t most) {
  if (length <= most)
    return length;
  while (most && ((unsigned char)bytes[most] & 0xc0) == 0x80)
    most--;
  return most;
}

static void add_quoted(const char *bytes, size_t length, struct text *out) {
  schema_text_puts(out, "\"");
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c == '"' || c == '\\')
      schema_text_printf(out, "\\%c", c);
    else if (c == '\n')
      schema_text_puts(out, "\\n");
    else if (c == '\t')
      schema_text_puts(out, "\\t");
    else if (c < 0x20 || c == 0x7f)
      schema_text_printf(out, "\\u%04x", c);
    else
      schema_text_add(out, bytes + i, 1);
  }
}

void schema_quote_text(const char *bytes, size_t length, struct text *out) {
  size_t shown = whole_characters(bytes, length, SCHEMA_MESSAGE_VALUE_BYTES);
  add_quoted(bytes, shown, out);
  schema_text_puts(out, shown < length ? "...\"" : "\"");
}

static void number_text(const json_t *value, struct text *out) {
  char text[40];
  if (json_is_integer(value)) {
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  } else {
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, json_real_value(value));
      if (strtod(text, NULL) == json_real_value(value))
        break;
    }
    if (!strpbrk(text, ".en"))
      strcat(text, ".0");
  }
  schema_text_puts(out, text);
}

static void add_value(const json_t *value, struct text *out, size_t start, int levels) {
  bool full = out->length - start > SCHEMA_MESSAGE_VALUE_BYTES || !levels;
  switch (json_typeof(value)) {
  case JSON_OBJECT: {
    const char *before = "{";
    for (void *at = json_object_iter((json_t *)value); at && !full;
         at = json_object_iter_next((json_t *)value, at)) {
      schema_text_puts(out, before);
      schema_quote_text(json_object_iter_key(at), json_object_iter_key_len(at), out);
      schema_text_puts(out, ":");
      add_value(json_object_iter_value(at), out, start, levels - 1);
      before = ",";
      full = out->length - start > SCHEMA_MESSAGE_VALUE_BYTES;
    }
    if (*before == '{')
      schema_text_puts(out, "{");
    schema_text_puts(out, full ? "...}" : "}");
    return;
  }
  case JSON_ARRAY: {
    schema_text_puts(out, "[");
    for (size_t i = 0, n = json_array_size(value); i < n && !full; i++) {
      schema_text_puts(out, i ? "," : "");
      add_value(json_array_get(value, i), out, start, levels - 1);
      full = out->length - start > SCHEMA_MESSAGE_VALUE_BYTES;
    }
    schema_text_puts(out, full ? "...]" : "]");
    return;
  }
  case JSON_STRING:
    schema_quote_text(json_string_value(value), json_string_length(value), out);
    return;
  case JSON_INTEGER:
  case JSON_REAL:
    number_text(value, out);
    return;
  case JSON_TRUE:
    schema_text_puts(out, "true");
    return;
  case JSON_FALSE:
    schema_text_puts(out, "false");
    return;
  case JSON_NULL:
    schema_text_puts(out, "null");
    return;
  }
}

void schema_value_text(const json_t *value, struct text *out) {
  add_value(value, out, out->length, 4);
}

void schema_types_text(unsigned types, struct text *out) {
  static const struct {
    unsigned bits;
    const char *name;
  } names[] = {{1 << JSON_OBJECT, "object"},   {1 << JSON_ARRAY, "array"},
               {1 << JSON_STRING, "string"},   {TYPE_NUMBER, "number"},
               {1 << JSON_INTEGER, "integer"}, {1 << JSON_REAL, "number"},
               {TYPE_BOOLEAN, "boolean"},      {1 << JSON_TRUE, "boolean"},
               {1 << JSON_FALSE, "boolean"},   {1 << JSON_NULL, "null"}};
  bool first = true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if ((types & names[i].bits) == names[i].bits) {
      types &= ~names[i].bits;
      schema_text_puts(out, first ? "" : " or ");
      schema_text_puts(out, names[i].name);
      first = false;
    }
  if (first)
    schema_text_puts(out, "nothing");
}

void schema_found_text(const json_t *value, struct text *out) {
  schema_types_text(json_is_number(value) ? TYPE_NUMBER : 1u << json_typeof(value), out);
}

void schema_report_text(struct vm *vm, const struct node *node, const char *suffix,
                        const char *keyword, struct text *message) {
  struct text path = {0}, pointer = {0}, place = {0};
  schema_path_text(vm->path, &path);
  schema_pointer_text(vm->path, &pointer);
  schema_entry_text(vm->schema, node->entry, &place);
  schema_text_puts(&place, suffix);
  if (!schema_errors_add(vm->errors, schema_text_take(&path), schema_text_take(&pointer),
                         schema_text_take(&place), keyword, schema_text_take(message)))
    schema_run_trouble(vm, SCHEMA_OUT_OF_MEMORY, "");
}

static void options_text(const json_t *options, const char *keyword, struct text *out) {
  enum { OPTIONS_SHOWN = 24 };
  if (!strcmp(keyword, "const")) {
    schema_text_puts(out, " is not ");
    schema_value_text(options, out);
    return;
  }
  size_t n = json_array_size(options);
  schema_text_puts(out, n == 1 ? " is not " : " is not one of ");
  for (size_t i = 0; i < n; i++) {
    schema_text_puts(out, i ? ", " : "");
    if (i == OPTIONS_SHOWN) {
      schema_text_puts(out, "...");
      break;
    }
    schema_value_text(json_array_get(options, i), out);
  }
}

static void count_message(const json_t *value, const struct op *op, struct text *out) {
  static const char *const units[3][2] = {
      {"character", "characters"}, {"item", "items"}, {"property", "properties"}};
  bool least = op->keyword[1] == 'i'; /* minLength, minItems, minProperties */
  size_t has = json_object_size(value), kind = 2;
  if (json_is_string(value)) {
    has = schema_value_code_points(json_string_value(value), json_string_length(value));
    kind = 0;
    schema_value_text(value, out);
    schema_text_puts(out, " ");
  } else if (json_is_array(value)) {
    has = json_array_size(value);
    kind = 1;
  }
  schema_text_printf(out, "has %zu %s, %s %zu %s %s", has, units[kind][has != 1],
                     least ? "at least" : "at most", (size_t)op->u.count,
                     op->u.count == 1 ? "is" : "are", least ? "needed" : "allowed");
}

static void message_text(struct vm *vm, const struct op *op, const json_t *value,
                         struct text *out) {
  size_t first = 0, second = 0;
  int64_t work = vm->work;
  switch ((int)op->code) {
  case OP_FALSE:
    schema_text_puts(out, !vm->path       ? "no value is allowed"
                          : vm->path->key ? "the property is not allowed"
                                          : "the item is not allowed");
    return;
  case OP_ENUM:
    schema_value_text(value, out);
    options_text(op->u.options->all, op->keyword, out);
    return;
  case OP_MINIMUM:
  case OP_MAXIMUM:
  case OP_EXCLUSIVE_MINIMUM:
  case OP_EXCLUSIVE_MAXIMUM:
  case OP_MULTIPLE_OF:
    schema_value_text(value, out);
    schema_text_puts(out, op->code == OP_MINIMUM             ? " is less than the minimum "
                          : op->code == OP_MAXIMUM           ? " is greater than the maximum "
                          : op->code == OP_EXCLUSIVE_MINIMUM ? " is not greater than "
                          : op->code == OP_EXCLUSIVE_MAXIMUM ? " is not less than "
                                                             : " is not a multiple of ");
    schema_value_text(op->u.value, out);
    return;
  case OP_PATTERN:
    schema_value_text(value, out);
    schema_text_puts(out, " does not match the pattern ");
    schema_text_puts(out, op->text);
    return;
  case OP_FORMAT:
    schema_value_text(value, out);
    schema_text_puts(out, " is not a valid ");
    schema_text_puts(out, op->text);
    return;
  case OP_UNIQUE:
    schema_value_unique(value, &first, &second, &work);
    schema_text_printf(out, "the items %zu and %zu are equal", first, second);
    return;
  case OP_NOT:
    schema_value_text(value, out);
    schema_text_puts(out, " matches what is forbidden by \"not\"");
    return;
  default:
    count_message(value, op, out);
    return;
  }
}

void schema_report(struct vm *vm, const struct node *node, const struct op *op,
                   const json_t *value) {
  struct text message = {0};
  if (vm->work < 0)
    return;
  if (!op) {
    schema_text_puts(&message, "expected ");
    schema_types_text(node->types & TYPE_INTEGRAL ? node->types & ~(unsigned)TYPE_INTEGRAL
                                                  : node->types,
                      &message);
    schema_text_puts(&message, ", found ");
    if (json_is_real(value) && node->types & TYPE_INTEGRAL)
      schema_value_text(value, &message);
    else
      schema_found_text(value, &message);
    schema_report_text(vm, node, "/type", "type", &message);
    return;
  }
  char suffix[40];
  snprintf(suffix, sizeof suffix, "%s%s", *op->keyword ? "/" : "", op->keyword);
  message_text(vm, op, value, &message);
  schema_report_text(vm, node, suffix, op->keyword, &message);
}
