/* Puts errors into words, for a person and for a model that has to correct its output. */
#include "schema/validate.h"

#include "format/json_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- errors in words --- */

static void error_deinit(struct schema_error *error) {
  free(error->path);
  free(error->pointer);
  free(error->schema_path);
  free(error->message);
}

void schema_errors_deinit(struct schema_errors *errs) {
  for (size_t i = 0; i < errs->count; i++)
    error_deinit(&errs->items[i]);
  free(errs->items);
  *errs = (struct schema_errors){0};
}

bool schema_errors_add(struct schema_errors *errors, char *path, char *pointer, char *schema_path,
                       const char *keyword, char *message) {
  struct schema_error error = {path, pointer, schema_path, keyword, message};
  assert(path && pointer && schema_path && keyword && message);
  for (size_t i = 0; i < errors->count; i++)
    if (!strcmp(errors->items[i].pointer, pointer) && !strcmp(errors->items[i].message, message)) {
      error_deinit(&error); /* two parts of a schema may require the same */
      return true;
    }
  if (errors->count == SCHEMA_ERRORS_MAX) {
    error_deinit(&error);
    errors->dropped++;
    return true;
  }
  if (!errors->items)
    errors->items = xmalloc(SCHEMA_ERRORS_MAX * sizeof *errors->items);
  errors->items[errors->count++] = error;
  return true;
}

int schema_pointer_order(const char *a, const char *b) {
  while (*a && *b) {
    if (str_is_digit(*a) && str_is_digit(*b)) {
      size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
      if (na != nb)
        return na < nb ? -1 : 1;
      int order = memcmp(a, b, na);
      if (order != 0)
        return order;
      a += na;
      b += nb;
      continue;
    }
    if (*a == '/' && *b != '/')
      return -1;
    if (*a != '/' && *b == '/')
      return 1;
    if (*a != *b)
      return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
    a++;
    b++;
  }
  return (*a != '\0') - (*b != '\0');
}

void schema_errors_sort(struct schema_errors *errors, size_t from) {
  for (size_t i = from + 1; i < errors->count; i++) {
    struct schema_error moved = errors->items[i];
    size_t at = i;
    for (; at > from && schema_pointer_order(errors->items[at - 1].pointer, moved.pointer) > 0;
         at--)
      errors->items[at] = errors->items[at - 1];
    errors->items[at] = moved;
  }
}

static bool plain_name(const char *key, size_t n) {
  if (!n || str_is_digit(key[0]))
    return false;
  for (size_t i = 0; i < n; i++) {
    char c = key[i];
    if (!(c == '_' || c == '$' || str_is_digit(c) || str_is_letter(c)))
      return false;
  }
  return true;
}

/* A path has as many levels as the value; if there are absurdly many, only the innermost are
 * kept. */
enum { PATH_LEVELS_MAX = 300 };

static size_t path_levels(const struct path_step *path, const struct path_step **levels) {
  size_t n = 0;
  for (; path && n < PATH_LEVELS_MAX; path = path->up)
    levels[n++] = path;
  return n;
}

void schema_step_text(const struct path_step *step, struct buf *out) {
  if (plain_name(step->key, step->n)) {
    buf_puts(out, ".");
    buf_append(out, step->key, step->n);
  } else {
    buf_puts(out, "[");
    schema_quote_text(step->key, step->n, out);
    buf_puts(out, "]");
  }
}

void schema_path_text(const struct path_step *path, struct buf *out) {
  const struct path_step *levels[PATH_LEVELS_MAX];
  size_t n = path_levels(path, levels);
  buf_puts(out, n && levels[n - 1]->up ? "$..." : "$");
  while (n--) {
    if (levels[n]->key)
      schema_step_text(levels[n], out);
    else
      buf_printf(out, "[%zu]", levels[n]->n);
  }
}

void schema_pointer_text(const struct path_step *path, struct buf *out) {
  const struct path_step *levels[PATH_LEVELS_MAX];
  size_t n = path_levels(path, levels);
  buf_append(out, "", 0);
  while (n--) {
    const struct path_step *step = levels[n];
    buf_puts(out, "/");
    if (!step->key)
      buf_printf(out, "%zu", step->n);
    for (size_t i = 0; step->key && i < step->n; i++) {
      char c = step->key[i];
      if (c == '~' || c == '/')
        buf_puts(out, c == '~' ? "~0" : "~1");
      else
        buf_append(out, &c, 1);
    }
  }
}

void schema_entry_text(const struct schema *schema, uint32_t entry, struct buf *out) {
  enum { LEVELS = SCHEMA_NESTING_MAX + 2 };
  const char *levels[LEVELS];
  size_t n = 0;
  buf_append(out, "", 0);
  if (entry >= schema->entry_count)
    return;
  uint32_t document = schema->resources[schema->entries[entry].resource].document;
  for (; schema->entries[entry].parent != entry && n < LEVELS;
       entry = schema->entries[entry].parent)
    levels[n++] = schema->entries[entry].suffix;
  if (document) {
    buf_puts(out, schema->documents[document].uri);
    buf_puts(out, "#");
  }
  while (n--)
    buf_puts(out, levels[n]);
}

void schema_quote_text(const char *bytes, size_t length, struct buf *out) {
  size_t shown = length;
  if (length > SCHEMA_MESSAGE_VALUE_BYTES)
    shown = utf8_floor(bytes, SCHEMA_MESSAGE_VALUE_BYTES);
  buf_puts(out, "\"");
  for (size_t i = 0; i < shown; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c == '"' || c == '\\')
      buf_printf(out, "\\%c", c);
    else if (c == '\n')
      buf_puts(out, "\\n");
    else if (c == '\t')
      buf_puts(out, "\\t");
    else if (c < 0x20 || c == 0x7f)
      buf_printf(out, "\\u%04x", c);
    else
      buf_append(out, bytes + i, 1);
  }
  buf_puts(out, shown < length ? "...\"" : "\"");
}

static void add_value(const json_t *value, struct buf *out, size_t start, int levels) {
  bool full = out->n - start > SCHEMA_MESSAGE_VALUE_BYTES || !levels;
  switch (json_typeof(value)) {
  case JSON_OBJECT: {
    const char *before = "{";
    for (void *at = json_object_iter((json_t *)value); at && !full;
         at = json_object_iter_next((json_t *)value, at)) {
      buf_puts(out, before);
      schema_quote_text(json_object_iter_key(at), json_object_iter_key_len(at), out);
      buf_puts(out, ":");
      add_value(json_object_iter_value(at), out, start, levels - 1);
      before = ",";
      full = out->n - start > SCHEMA_MESSAGE_VALUE_BYTES;
    }
    if (*before == '{')
      buf_puts(out, "{");
    buf_puts(out, full ? "...}" : "}");
    return;
  }
  case JSON_ARRAY: {
    buf_puts(out, "[");
    for (size_t i = 0, n = json_array_size(value); i < n && !full; i++) {
      buf_puts(out, i ? "," : "");
      add_value(json_array_get(value, i), out, start, levels - 1);
      full = out->n - start > SCHEMA_MESSAGE_VALUE_BYTES;
    }
    buf_puts(out, full ? "...]" : "]");
    return;
  }
  case JSON_STRING:
    schema_quote_text(json_string_value(value), json_string_length(value), out);
    return;
  case JSON_INTEGER:
  case JSON_REAL:
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    json_write(value, out);
    return;
  }
}

void schema_value_text(const json_t *value, struct buf *out) {
  add_value(value, out, out->n, 4);
}

void schema_types_text(unsigned types, struct buf *out) {
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
      buf_puts(out, first ? "" : " or ");
      buf_puts(out, names[i].name);
      first = false;
    }
  if (first)
    buf_puts(out, "nothing");
}

void schema_found_text(const json_t *value, struct buf *out) {
  schema_types_text(json_is_number(value) ? TYPE_NUMBER : 1u << json_typeof(value), out);
  if (json_is_null(value))
    return;
  buf_puts(out, " ");
  schema_value_text(value, out);
}

void schema_report_text(struct vm *vm, const struct node *node, const char *keyword,
                        struct buf *message) {
  struct buf path = {0}, pointer = {0}, place = {0};
  schema_path_text(vm->path, &path);
  schema_pointer_text(vm->path, &pointer);
  schema_entry_text(vm->schema, node->entry, &place);
  buf_printf(&place, "%s%s", *keyword ? "/" : "", keyword);
  schema_errors_add(vm->errors, buf_take(&path), buf_take(&pointer), buf_take(&place), keyword,
                    buf_take(message));
}

static void options_text(const json_t *options, const char *keyword, struct buf *out) {
  enum { OPTIONS_SHOWN = 24 };
  if (!strcmp(keyword, "const")) {
    buf_puts(out, " is not ");
    schema_value_text(options, out);
    return;
  }
  size_t n = json_array_size(options);
  buf_puts(out, n == 1 ? " is not " : " is not one of ");
  for (size_t i = 0; i < n; i++) {
    buf_puts(out, i ? ", " : "");
    if (i == OPTIONS_SHOWN) {
      buf_puts(out, "...");
      break;
    }
    schema_value_text(json_array_get(options, i), out);
  }
}

static void count_message(const json_t *value, const struct op *op, struct buf *out) {
  static const char *const units[3][2] = {
      {"character", "characters"}, {"item", "items"}, {"property", "properties"}};
  bool least = op->keyword[1] == 'i'; /* minLength, minItems, minProperties */
  size_t has = json_object_size(value), kind = 2;
  if (json_is_string(value)) {
    has = utf8_count(json_string_value(value), json_string_length(value));
    kind = 0;
    schema_value_text(value, out);
    buf_puts(out, " ");
  } else if (json_is_array(value)) {
    has = json_array_size(value);
    kind = 1;
  }
  buf_printf(out, "has %zu %s, %s %zu %s %s", has, units[kind][has != 1],
             least ? "at least" : "at most", (size_t)op->u.count, op->u.count == 1 ? "is" : "are",
             least ? "needed" : "allowed");
}

static void number_message(const json_t *value, const char *is, const json_t *wanted,
                           struct buf *out) {
  schema_value_text(value, out);
  buf_puts(out, is);
  schema_value_text(wanted, out);
}

static void message_text(struct vm *vm, const struct op *op, const json_t *value, struct buf *out) {
  size_t first = 0, second = 0;
  int64_t work = vm->work;
  switch ((int)op->code) {
  case OP_FALSE:
    if (!vm->path)
      buf_puts(out, "no value is allowed");
    else
      buf_puts(out, vm->path->key ? "the property is not allowed" : "the item is not allowed");
    return;
  case OP_ENUM:
    schema_value_text(value, out);
    options_text(op->u.options->all, op->keyword, out);
    return;
  case OP_MINIMUM:
    number_message(value, " is less than the minimum ", op->u.value, out);
    return;
  case OP_MAXIMUM:
    number_message(value, " is greater than the maximum ", op->u.value, out);
    return;
  case OP_EXCLUSIVE_MINIMUM:
    number_message(value, " is not greater than ", op->u.value, out);
    return;
  case OP_EXCLUSIVE_MAXIMUM:
    number_message(value, " is not less than ", op->u.value, out);
    return;
  case OP_MULTIPLE_OF:
    number_message(value, " is not a multiple of ", op->u.value, out);
    return;
  case OP_PATTERN:
    schema_value_text(value, out);
    buf_puts(out, " does not match the pattern ");
    buf_puts(out, op->text);
    return;
  case OP_FORMAT:
    schema_value_text(value, out);
    buf_printf(out, " is not a valid %s (%s)", op->text, schema_format_form(op->u.format));
    return;
  case OP_UNIQUE:
    schema_value_unique(value, &first, &second, &work);
    buf_printf(out, "the items %zu and %zu are equal", first, second);
    return;
  case OP_NOT:
    schema_value_text(value, out);
    buf_puts(out, " matches what is forbidden by \"not\"");
    return;
  default:
    count_message(value, op, out);
    return;
  }
}

void schema_report(struct vm *vm, const struct node *node, const struct op *op,
                   const json_t *value) {
  struct buf message = {0};
  if (vm->work < 0)
    return;
  if (!op) {
    buf_puts(&message, "expected ");
    schema_types_text(node->types & ~(unsigned)TYPE_INTEGRAL, &message);
    buf_puts(&message, ", found ");
    schema_found_text(value, &message);
    schema_report_text(vm, node, "type", &message);
    return;
  }
  message_text(vm, op, value, &message);
  schema_report_text(vm, node, op->keyword, &message);
}
