/* Reads one reply of a model. */
#include "structured/reply_check.h"

#include "base/utf8.h"
#include "extract/schema_check.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

enum { NEAR_BYTES = 24 }; /* what is shown of the text where it breaks */

/* Returns a string of any bytes, cut to ANSWER_TEXT_MAX; what is not UTF-8 becomes '?'. */
static json_t *answer_text(const char *text) {
  char copy[ANSWER_TEXT_MAX + 4];
  size_t n = strlen(text), out = 0, i = 0;
  while (i < n && out < ANSWER_TEXT_MAX) {
    size_t length = utf8_decode(text + i, n - i, NULL);
    if (length == 0) {
      copy[out++] = '?';
      i++;
    } else if (out + length > ANSWER_TEXT_MAX) {
      break;
    } else {
      memcpy(copy + out, text + i, length);
      out += length;
      i += length;
    }
  }
  if (i < n && out > 3)
    while (out > ANSWER_TEXT_MAX - 3 || utf8_is_tail(copy[out]))
      out--; /* never inside a character */
  if (i < n) {
    memcpy(copy + out, LIT("..."));
    out += 3;
  }
  return json_stringn_nocheck(copy, out);
}

/* --- order --- */

static const char *answer_place(const json_t *errors, size_t i) {
  const char *pointer = json_string_value(json_object_get(json_array_get(errors, i), "pointer"));
  return pointer ? pointer : "";
}

void answer_errors_sort(json_t *errors) {
  size_t n = json_array_size(errors);
  for (size_t i = 1; i < n; i++) {
    size_t at = i;
    while (at > 0 &&
           schema_pointer_order(answer_place(errors, at - 1), answer_place(errors, i)) > 0)
      at--;
    if (at == i)
      continue;
    json_t *moved = json_incref(json_array_get(errors, i));
    json_array_remove(errors, i);
    json_array_insert_new(errors, at, moved);
  }
}

/* --- errors of a schema --- */

static json_t *error_json(const char *path, const char *pointer, const char *keyword,
                          const char *message) {
  json_t *error = json_object();
  json_put(error, "path", answer_text(path));
  json_put(error, "pointer", answer_text(pointer));
  json_put(error, "keyword", answer_text(keyword));
  json_put(error, "message", answer_text(message));
  return error;
}

/* Returns the errors, sorted before they are cut: the value's first ones count, in whatever order
 * they were found. */
json_t *answer_errors(const struct schema_errors *found, size_t *dropped) {
  size_t order[SCHEMA_ERRORS_MAX], count = 0;
  json_t *errors = json_array();
  for (size_t i = 0; i < found->count && count < SCHEMA_ERRORS_MAX; i++) {
    size_t at = count++;
    while (at > 0 &&
           schema_pointer_order(found->items[order[at - 1]].pointer, found->items[i].pointer) > 0) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = i;
  }
  for (size_t i = 0; i < count && i < ANSWER_ERRORS_MAX; i++) {
    const struct schema_error *e = &found->items[order[i]];
    json_array_append_new(errors, error_json(e->path, e->pointer, e->keyword, e->message));
  }
  *dropped = found->dropped + found->count - json_array_size(errors);
  return errors;
}

/* --- what no schema says --- */

/* Writes what is wrong with the first name that has U+0000: a reader that takes names as C strings
 * would see another name, and adapt_reverse tells so of a name that was given twice. Returns false
 * if none has. */
static bool nul_name_error(const json_t *value, char *message, size_t size) {
  size_t i, length;
  const char *key;
  json_t *item;
  json_array_foreach((json_t *)value, i, item)
    if (nul_name_error(item, message, size))
      return true;
  json_object_keylen_foreach((json_t *)value, key, length, item) {
    size_t n = strlen(key);
    if (n == length && !nul_name_error(item, message, size))
      continue;
    if (n == 0 && length == 1)
      print_into(message, size, "gives a name twice");
    else if (n + 1 == length && json_object_get(value, key) != NULL)
      print_into(message, size, "gives the name \"%.60s\" twice", key);
    else if (n < length)
      print_into(message, size, "has a member whose name holds U+0000");
    return true;
  }
  return false;
}

/* Returns the bound that the value breaks, NULL if it breaks none. */
static json_t *bounds_error(const struct answer_spec *spec, const json_t *value) {
  char message[120] = "";
  const char *keyword = "limit";
  if (spec->max_depth > 0 && json_depth(value, spec->max_depth) > spec->max_depth) {
    print_into(message, sizeof message, "is nested deeper than %zu levels", spec->max_depth);
  } else if (nul_name_error(value, message, sizeof message)) {
    keyword = "name";
  } else if (spec->max_bytes > 0) {
    size_t bytes = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    if (bytes > spec->max_bytes)
      print_into(message, sizeof message, "has %zu bytes; the limit is %zu", bytes,
                 spec->max_bytes);
  }
  return message[0] == '\0' ? NULL : error_json("$", "", keyword, message);
}

/* --- reading --- */

/* Takes the value over, checks it, and fills outcome and errors. */
static void take_value(struct answer *a, const struct answer_spec *spec, json_t *value,
                       const char *where) {
  AUTO(schema_errors_deinit) struct schema_errors found = {0};
  json_t *beyond = bounds_error(spec, value);
  enum schema_status status = beyond ? SCHEMA_INVALID : schema_check(spec->schema, value, &found);
  a->value = value;
  a->where = where;
  a->outcome = status == SCHEMA_OK ? ANSWER_VALID : ANSWER_SCHEMA;
  a->errors = answer_errors(&found, &a->dropped);
  if (beyond != NULL)
    json_array_append_new(a->errors, beyond);
  else if (status != SCHEMA_OK && json_array_size(a->errors) == 0)
    json_array_append_new(a->errors, error_json("$", "", "", schema_status_name(status)));
}

/* Copies what stands at the offset, on one line and without what could end the quotes. */
static void near_text(const char *text, size_t n, size_t offset, char out[NEAR_BYTES + 8]) {
  size_t end = offset + NEAR_BYTES < n ? offset + NEAR_BYTES : n, at = 0;
  while (end > offset && end < n && utf8_is_tail(text[end]))
    end--;
  for (size_t i = offset; i < end; i++) {
    unsigned char c = (unsigned char)text[i];
    out[at++] = (char)(c < 0x20 || c == 0x7F || c == '`' ? ' ' : c);
  }
  out[at] = '\0';
}

static void parse_error(struct answer *a, const struct extract_result *r, const char *text,
                        size_t n) {
  bool placed = r->error.code == EXTRACT_ERR_SYNTAX || r->error.code == EXTRACT_ERR_TRUNCATED ||
                r->error.code == EXTRACT_ERR_DEPTH_LIMIT ||
                r->error.code == EXTRACT_ERR_NUMBER_RANGE;
  char message[EXTRACT_MESSAGE_BYTES + 160], near[NEAR_BYTES + 8];
  size_t line = 0, column = 0, offset = r->error.offset < n ? r->error.offset : n;
  bool blank = str_trim((struct str){text, n}).n == 0;
  if (placed) {
    line = column = 1;
    for (size_t i = 0; i < offset; i++) {
      if (text[i] == '\n') {
        ++line;
        column = 1;
      } else if (!utf8_is_tail(text[i])) {
        ++column;
      }
    }
    near_text(text, n, offset, near);
    print_into(message, sizeof message, "byte %zu (line %zu, column %zu): %s%s%s%s", offset, line,
               column, r->error.message, near[0] ? ", before `" : "", near, near[0] ? "`" : "");
  } else {
    print_into(message, sizeof message, "%s", blank ? "the reply is empty" : r->error.message);
  }
  json_t *error = error_json("$", "", extract_code_name(r->error.code), message);
  if (placed) {
    json_put(error, "offset", json_integer((json_int_t)offset));
    json_put(error, "line", json_integer((json_int_t)line));
    json_put(error, "column", json_integer((json_int_t)column));
  }
  a->outcome = ANSWER_PARSE;
  a->truncated = r->error.code == EXTRACT_ERR_TRUNCATED;
  a->errors = json_array();
  json_array_append_new(a->errors, error);
}

/* Returns true if the text ends inside the value, so that more than a bracket may be missing. */
static bool is_cut(const struct extract_result *r) {
  static const char names[] = "truncated dropped_member dropped_item";
  bool cut = false;
  for (size_t i = 0; r->truncated && i < r->repairs_listed; i++)
    cut = cut || str_among(str_from(r->repairs[i].name), names);
  return cut;
}

static void answer_read_text(struct answer *a, const struct answer_spec *spec, const char *text,
                             size_t n) {
  struct extract_schema asked = {spec->document, spec->schema};
  const struct extract_check check = extract_schema_check(&asked);
  struct extract_opts opts = {.want = extract_schema_want(spec->document),
                              .check = &check,
                              .repair = spec->repair,
                              .whole = true};
  struct extract_result r;
  enum extract_status status = extract(text, n, &opts, &r);
  if (status == EXTRACT_NOT_FOUND && r.error.code == EXTRACT_ERR_WRONG_ROOT) {
    extract_result_deinit(&r); /* another root: the schema best says what is wrong */
    opts.want = EXTRACT_WANT_ANY;
    (void)extract(text, n, &opts, &r);
  }
  a->ambiguous = r.ambiguous;
  if (is_cut(&r)) {
    r.error.code = EXTRACT_ERR_TRUNCATED;
    r.error.offset = n;
    print_into(r.error.message, sizeof r.error.message, "the text ends inside the value");
    parse_error(a, &r, text, n);
  } else if (r.value != NULL) {
    a->repaired = r.repaired;
    a->truncated = r.truncated;
    if (r.repaired || r.duplicate_key) {
      a->repairs = json_array();
      if (r.duplicate_key)
        json_array_append_new(a->repairs, json_string("duplicate_key"));
      for (size_t i = 0; i < r.repairs_listed && i < ANSWER_ERRORS_MAX; i++)
        json_array_append_new(a->repairs, json_string(r.repairs[i].name));
    }
    take_value(a, spec, json_incref(r.value), extract_stage_name(r.stage));
  } else {
    parse_error(a, &r, text, n);
  }
  extract_result_deinit(&r);
}

void answer_read(struct answer *a, const struct answer_spec *spec, const json_t *structured,
                 const char *text, size_t n) {
  assert(a != NULL && spec != NULL);
  struct answer other = {0};
  assert(spec->schema != NULL && text != NULL);
  *a = (struct answer){0};
  if (structured == NULL) {
    answer_read_text(a, spec, text, n);
    return;
  }
  take_value(a, spec, json_incref((json_t *)structured), "native");
  if (a->outcome == ANSWER_VALID)
    return;
  answer_read_text(&other, spec, text, n);
  if (other.outcome == ANSWER_VALID) {
    answer_deinit(a);
    *a = other;
  } else {
    answer_deinit(&other);
  }
}

void answer_deinit(struct answer *a) {
  json_decref(a->value);
  json_decref(a->repairs);
  json_decref(a->errors);
  *a = (struct answer){0};
}
