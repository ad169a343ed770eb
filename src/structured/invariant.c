#include "structured/invariant.h"

#include "structured/expr.h"
#include "structured/jscan.h"
#include "structured/schema_run.h"

#include <stdio.h>

struct entry_of_list {
  struct invariant is;
  const struct expr *expr;
};

struct invariants {
  struct schema_arena arena;
  struct entry_of_list *items;
  size_t count;
};

static const char keyword[] = "invariant";

/* --- compiling --- */

struct building {
  struct invariants *list;
  struct schema_errors *errs;
  enum schema_status status;
};

static void *from_arena(void *arena, size_t bytes) {
  return schema_arena_get(arena, bytes);
}

static bool no_memory(struct building *b) {
  b->status = SCHEMA_OUT_OF_MEMORY;
  return false;
}

/* An error at list item `index`, member `name` (NULL: the item); takes `message`. */
static bool refuse(struct building *b, size_t index, const char *name, struct text *message) {
  struct text path = {0}, pointer = {0};
  if (b->status == SCHEMA_OK)
    b->status = SCHEMA_INVALID_SCHEMA;
  if (b->errs == NULL) {
    schema_text_deinit(message);
    return false;
  }
  schema_text_printf(&path, "$[%zu]%s%s", index, name ? "." : "", name ? name : "");
  schema_text_printf(&pointer, "/%zu%s%s", index, name ? "/" : "", name ? name : "");
  struct text place = {0};
  schema_text_puts(&place, "/invariants");
  if (pointer.bytes)
    schema_text_puts(&place, pointer.bytes);
  if (!schema_errors_add(b->errs, schema_text_take(&path), schema_text_take(&pointer),
                         schema_text_take(&place), keyword, schema_text_take(message)))
    return no_memory(b);
  return false;
}

static bool refuse_words(struct building *b, size_t index, const char *name, const char *words) {
  struct text message = {0};
  schema_text_puts(&message, words);
  return refuse(b, index, name, &message);
}

/* A member that must be a text within bounds; an absent one is fine and gives NULL. */
static bool get_text(struct building *b, size_t index, const json_t *object, const char *name,
                     const char **out) {
  const json_t *value = json_object_get(object, name);
  *out = NULL;
  if (value == NULL)
    return true;
  size_t n = json_string_length(value);
  if (!json_is_string(value) || n == 0)
    return refuse_words(b, index, name, "a text is needed here");
  if (n > INVARIANT_TEXT_MAX || memchr(json_string_value(value), '\0', n))
    return refuse_words(b, index, name, "the text is longer than 8 KiB or holds a NUL");
  *out = schema_arena_copy(&b->list->arena, json_string_value(value), n);
  return *out != NULL || no_memory(b);
}

static bool build_expr(struct building *b, struct entry_of_list *entry, const json_t *text,
                       const char *name) {
  const struct expr_memory memory = {from_arena, &b->list->arena};
  const char *bytes = json_string_value(text);
  size_t n = json_string_length(text);
  struct expr_error why;
  if (bytes == NULL)
    return refuse_words(b, entry->is.index, name, "an expression is a text");
  entry->is.kind = INVARIANT_EXPR;
  entry->is.text = schema_arena_copy(&b->list->arena, bytes, n);
  entry->expr = expr_parse(&memory, bytes, n, EXPR_INVARIANT, &why);
  if (entry->is.text == NULL || why.code == EXPR_OUT_OF_MEMORY)
    return no_memory(b);
  if (entry->expr)
    return true;
  struct text message = {0};
  schema_text_puts(&message, why.text);
  schema_text_printf(&message, " (at byte %zu of ", why.offset);
  schema_quote_text(bytes, n, &message);
  schema_text_puts(&message, ")");
  return refuse(b, entry->is.index, name, &message);
}

static bool build_command(struct building *b, struct entry_of_list *entry, const json_t *words) {
  size_t count = json_array_size(words), i;
  if (count == 0 || count > INVARIANT_ARGV_MAX)
    return refuse_words(b, entry->is.index, "command",
                        "a command is a list of words, like [\"./check.sh\", \"--strict\"]");
  const char **argv = schema_arena_get(&b->list->arena, (count + 1) * sizeof *argv);
  struct text all = {0};
  if (argv == NULL)
    return no_memory(b);
  for (i = 0; i < count; i++) {
    const json_t *word = json_array_get(words, i);
    size_t n = json_string_length(word);
    if (!json_is_string(word) || n > INVARIANT_TEXT_MAX || (i == 0 && n == 0) ||
        memchr(json_string_value(word), '\0', n)) {
      schema_text_deinit(&all);
      return refuse_words(b, entry->is.index, "command",
                          "each word of a command is a text of at most 8 KiB without NUL");
    }
    argv[i] = schema_arena_copy(&b->list->arena, json_string_value(word), n);
    if (argv[i] == NULL)
      break;
    schema_text_puts(&all, i ? " " : "");
    schema_text_add(&all, argv[i], n);
  }
  entry->is.kind = INVARIANT_COMMAND;
  entry->is.argv = argv;
  entry->is.text =
      all.failed || i < count ? NULL : schema_arena_copy(&b->list->arena, all.bytes, all.length);
  schema_text_deinit(&all);
  return entry->is.text != NULL || no_memory(b);
}

static bool build_place(struct building *b, struct entry_of_list *entry, const json_t *object) {
  const char *given;
  char *path, *pointer;
  if (!get_text(b, entry->is.index, object, "path", &given))
    return false;
  if (given == NULL)
    return true;
  if (!invariant_place(given, strlen(given), NULL, &path, &pointer))
    return no_memory(b);
  bool sound = *pointer != '\0' || strcmp(given, "$") == 0;
  entry->is.pointer = schema_arena_copy(&b->list->arena, pointer, strlen(pointer));
  schema_release(path);
  schema_release(pointer);
  if (!sound)
    return refuse_words(b, entry->is.index, "path", "write a JSON Pointer like /total or $.total");
  return entry->is.pointer != NULL || no_memory(b);
}

static bool build_object(struct building *b, struct entry_of_list *entry, const json_t *object) {
  static const char *const kinds[] = {"expr", "command", "ai"};
  const json_t *kind = NULL;
  size_t which = 0;
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    bool known = !strcmp(key, "message") || !strcmp(key, "path");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
      if (!strcmp(key, kinds[i])) {
        known = true;
        if (kind)
          return refuse_words(b, entry->is.index, NULL,
                              "only one of expr, command and ai can stand in one invariant");
        kind = value;
        which = i;
      }
    if (!known)
      return refuse_words(b, entry->is.index, NULL,
                          "an invariant has expr, command or ai, and message and path");
  }
  if (kind == NULL)
    return refuse_words(b, entry->is.index, NULL, "one of expr, command and ai is needed");
  if (!get_text(b, entry->is.index, object, "message", &entry->is.message) ||
      !build_place(b, entry, object))
    return false;
  if (which == 0)
    return build_expr(b, entry, kind, "expr");
  if (which == 1)
    return build_command(b, entry, kind);
  entry->is.kind = INVARIANT_AI;
  return get_text(b, entry->is.index, object, "ai", &entry->is.text);
}

static void build(struct building *b, const json_t *list) {
  if (!json_is_array(list) || json_array_size(list) > INVARIANTS_MAX) {
    struct text message = {0};
    schema_text_printf(&message,
                       "invariants are a list of at most %d expressions and objects with expr, "
                       "command or ai",
                       INVARIANTS_MAX);
    b->status = SCHEMA_INVALID_SCHEMA;
    if (b->errs) {
      struct text path = {0}, none = {0}, place = {0};
      schema_text_puts(&path, "$");
      schema_text_puts(&place, "/invariants");
      if (!schema_errors_add(b->errs, schema_text_take(&path), schema_text_take(&none),
                             schema_text_take(&place), keyword, schema_text_take(&message)))
        (void)no_memory(b);
    }
    schema_text_deinit(&message);
    return;
  }
  size_t n = json_array_size(list);
  b->list->items = schema_arena_get(&b->list->arena, (n + 1) * sizeof *b->list->items);
  if (b->list->items == NULL) {
    (void)no_memory(b);
    return;
  }
  for (size_t i = 0; i < n && b->status != SCHEMA_OUT_OF_MEMORY; i++) {
    struct entry_of_list *entry = &b->list->items[i];
    const json_t *item = json_array_get(list, i);
    entry->is.index = i;
    if (json_is_string(item))
      (void)build_expr(b, entry, item, NULL);
    else if (json_is_object(item))
      (void)build_object(b, entry, item);
    else
      (void)refuse_words(b, i, NULL,
                         "an invariant is an expression or an object with expr, command or ai");
    b->list->count = i + 1;
  }
}

struct invariants *invariants_compile(const json_t *list, struct schema_errors *errs,
                                      enum schema_status *status) {
  struct building b = {.list = schema_alloc(sizeof *b.list), .errs = errs};
  if (b.list) {
    memset(b.list, 0, sizeof *b.list);
    build(&b, list);
  } else {
    (void)no_memory(&b);
  }
  if (status)
    *status = b.status;
  if (b.status == SCHEMA_OK)
    return b.list;
  invariants_free(b.list);
  return NULL;
}

void invariants_free(struct invariants *invariants) {
  if (invariants == NULL)
    return;
  schema_arena_deinit(&invariants->arena);
  schema_release(invariants);
}

size_t invariants_count(const struct invariants *invariants) {
  return invariants ? invariants->count : 0;
}

const struct invariant *invariants_get(const struct invariants *invariants, size_t index) {
  return index < invariants_count(invariants) ? &invariants->items[index].is : NULL;
}

bool invariants_need(const struct invariants *invariants, enum invariant_kind kind) {
  for (size_t i = 0; i < invariants_count(invariants); i++)
    if (invariants->items[i].is.kind == kind)
      return true;
  return false;
}

/* --- places --- */

/* Steps of a place, one at a time; the caller adds them to both forms. */
struct place_writer {
  struct text path, pointer;
  const json_t *at; /* NULL: not known */
  bool known;
};

static void put_step(struct place_writer *w, const char *key, size_t n) {
  bool digits = n > 0 && n < 10 && (n == 1 || key[0] != '0');
  for (size_t i = 0; i < n && digits; i++)
    digits = key[i] >= '0' && key[i] <= '9';
  bool is_index = digits && (!w->known || json_is_array(w->at));
  size_t index = 0;
  for (size_t i = 0; i < n && is_index; i++)
    index = index * 10 + (size_t)(key[i] - '0');
  struct step step = {NULL, is_index ? NULL : key, is_index ? index : n};
  struct text one = {0};
  schema_path_text(&step, &one); /* "$.key" or "$[3]" */
  if (one.failed)
    w->path.failed = true;
  else
    schema_text_puts(&w->path, one.bytes + 1);
  one.length = 0;
  schema_pointer_text(&step, &one);
  if (one.failed)
    w->pointer.failed = true;
  else
    schema_text_puts(&w->pointer, one.bytes);
  schema_text_deinit(&one);
  if (w->at)
    w->at = is_index ? json_array_get(w->at, index) : json_object_getn(w->at, key, n);
}

static bool pointer_steps(struct place_writer *w, const char *text, size_t n) {
  for (size_t i = 0; i < n;) {
    struct text key = {0};
    size_t from = ++i; /* behind the / */
    for (; i < n && text[i] != '/'; i++)
      if (text[i] == '~' && i + 1 < n && (text[i + 1] == '0' || text[i + 1] == '1'))
        schema_text_puts(&key, text[++i] == '0' ? "~" : "/");
      else
        schema_text_add(&key, text + i, 1);
    (void)from;
    schema_text_add(&key, "", 0);
    if (key.failed)
      w->path.failed = true;
    else
      put_step(w, key.bytes, key.length);
    schema_text_deinit(&key);
  }
  return true;
}

/* $.a[0]["b c"].d; the $ and the first dot may be left out. */
static bool path_steps(struct place_writer *w, const char *text, size_t n) {
  size_t i = 0;
  if (n && text[0] == '$')
    i = 1;
  for (bool first = i == 0; i < n; first = false) {
    if (text[i] == '[' && i + 1 < n && (text[i + 1] == '"' || text[i + 1] == '\'')) {
      char quote = text[i + 1];
      size_t from = i + 2;
      for (i = from; i < n && text[i] != quote; i++)
        ;
      if (i + 1 >= n || text[i + 1] != ']')
        return false;
      put_step(w, text + from, i - from);
      i += 2;
    } else if (text[i] == '[') {
      size_t from = ++i;
      while (i < n && text[i] >= '0' && text[i] <= '9')
        i++;
      if (i == from || i >= n || text[i] != ']')
        return false;
      put_step(w, text + from, i - from);
      i++;
    } else if (first || text[i] == '.') {
      size_t from = text[i] == '.' ? ++i : i;
      while (i < n && text[i] != '.' && text[i] != '[')
        i++;
      if (i == from)
        return false;
      put_step(w, text + from, i - from);
    } else {
      return false;
    }
  }
  return true;
}

static bool is_text(const char *text, size_t n) {
  for (size_t i = 0, length; i < n; i += length)
    if ((length = jscan_utf8(text, n, i)) == 0 || text[i] == '\0')
      return false;
  return true;
}

bool invariant_place(const char *text, size_t n, const json_t *value, char **path, char **pointer) {
  struct place_writer w = {.at = value, .known = value != NULL};
  schema_text_puts(&w.path, "$");
  schema_text_add(&w.pointer, "", 0);
  bool sound = n <= INVARIANT_TEXT_MAX && is_text(text, n) &&
               (n > 0 && text[0] == '/' ? pointer_steps(&w, text, n) : path_steps(&w, text, n));
  if (!sound && !w.path.failed && !w.pointer.failed) {
    w.path.length = w.pointer.length = 0;
    schema_text_puts(&w.path, "$");
    schema_text_add(&w.pointer, "", 0);
  }
  *path = schema_text_take(&w.path);
  *pointer = schema_text_take(&w.pointer);
  if (*path && *pointer)
    return true;
  schema_release(*path);
  schema_release(*pointer);
  *path = *pointer = NULL;
  return false;
}

/* --- failures --- */

/* Adds one error; takes what is given, any of which may be NULL for want of memory. */
static enum schema_status add_error(const struct invariant *is, char *path, char *pointer,
                                    struct text *message, struct schema_errors *errs) {
  struct text place = {0};
  schema_text_printf(&place, "/invariants/%zu", is->index);
  return schema_errors_add(errs, path, pointer, schema_text_take(&place), keyword,
                           schema_text_take(message))
             ? SCHEMA_INVALID
             : SCHEMA_OUT_OF_MEMORY;
}

static void put_expression(const struct invariant *is, struct text *out) {
  size_t n = strlen(is->text), shown = n < 200 ? n : 200;
  while (shown < n && shown > 0 && ((unsigned char)is->text[shown] & 0xc0) == 0x80)
    shown--;
  for (size_t i = 0; i < shown; i++) /* an expression may be written over several lines */
    schema_text_add(out, is->text[i] == '\n' || is->text[i] == '\r' ? " " : is->text + i, 1);
  schema_text_puts(out, shown < n ? "..." : "");
}

static enum schema_status check_expr(const struct entry_of_list *entry, const json_t *value,
                                     struct schema_errors *errs) {
  const struct invariant *is = &entry->is;
  struct expr_finding found;
  struct expr_error why;
  struct text message = {0};
  if (errs == NULL) {
    enum expr_value verdict = expr_eval(entry->expr, value, &why);
    return verdict == EXPR_TRUE             ? SCHEMA_OK
           : verdict == EXPR_FALSE          ? SCHEMA_INVALID
           : why.code == EXPR_TOO_COMPLEX   ? SCHEMA_TOO_COMPLEX
           : why.code == EXPR_OUT_OF_MEMORY ? SCHEMA_OUT_OF_MEMORY
                                            : SCHEMA_INVALID;
  }
  enum expr_value verdict = expr_explain(entry->expr, value, &found, &why);
  if (verdict == EXPR_TRUE)
    return SCHEMA_OK;
  if (why.code == EXPR_OUT_OF_MEMORY)
    return SCHEMA_OUT_OF_MEMORY;
  if (is->message) {
    schema_text_puts(&message, is->message);
    schema_text_puts(&message, " (");
    put_expression(is, &message);
    schema_text_puts(&message, ": ");
    schema_text_puts(&message, found.text);
    schema_text_puts(&message, ")");
  } else {
    schema_text_puts(&message, "invariant ");
    put_expression(is, &message);
    schema_text_puts(&message, verdict == EXPR_FALSE ? " does not hold: " : " cannot be checked: ");
    schema_text_puts(&message, found.text);
  }
  schema_release(found.text);
  if (is->pointer) { /* declared: before what was found */
    schema_release(found.path);
    schema_release(found.pointer);
    if (!invariant_place(is->pointer, strlen(is->pointer), value, &found.path, &found.pointer)) {
      schema_text_deinit(&message);
      return SCHEMA_OUT_OF_MEMORY;
    }
  }
  enum schema_status status = add_error(is, found.path, found.pointer, &message, errs);
  return status == SCHEMA_INVALID && why.code == EXPR_TOO_COMPLEX ? SCHEMA_TOO_COMPLEX : status;
}

enum schema_status invariants_check(const struct invariants *invariants, const json_t *value,
                                    struct schema_errors *errs) {
  enum schema_status worst = SCHEMA_OK;
  for (size_t i = 0; i < invariants_count(invariants); i++) {
    const struct entry_of_list *entry = &invariants->items[i];
    if (entry->is.kind != INVARIANT_EXPR)
      continue;
    enum schema_status status = check_expr(entry, value, errs);
    if (status == SCHEMA_OUT_OF_MEMORY || status == SCHEMA_TOO_COMPLEX)
      return status;
    worst = status > worst ? status : worst;
  }
  return worst;
}

/* Bytes from outside as one line of a message: bounded, controls and what is not UTF-8 as '?'. */
static void put_bytes(const char *bytes, size_t n, struct text *out) {
  size_t shown = 0;
  bool blank = false;
  while (n > 0 && jscan_one_of(" \t\r\n", bytes[n - 1]))
    n--;
  for (size_t i = 0, length; i < n; i += length) {
    unsigned char c = (unsigned char)bytes[i];
    bool space = jscan_one_of(" \t\r\n", (char)c);
    length = jscan_utf8(bytes, n, i);
    bool plain = length > 0 && c >= 0x20 && c != 0x7f &&
                 !(c == 0xc2 && ((unsigned char)bytes[i + 1] & 0xe0) == 0x80);
    length = length ? length : 1;
    if (space && (blank || shown == 0))
      continue;
    blank = space;
    if (shown + length > INVARIANT_OUTPUT_MESSAGE_BYTES) {
      schema_text_puts(out, "...");
      return;
    }
    if (plain && !space)
      schema_text_add(out, bytes + i, length);
    else
      schema_text_puts(out, space ? " " : "?");
    shown += plain ? length : 1;
  }
}

static enum schema_status report_at(const struct invariant *is, const json_t *value,
                                    const char *place, size_t place_n, const char *reason, size_t n,
                                    bool own_words, struct schema_errors *errs) {
  struct text message = {0};
  char *path, *pointer;
  if (errs == NULL)
    return SCHEMA_INVALID;
  if (is->message) {
    schema_text_puts(&message, is->message);
  } else if (!own_words) {
    schema_text_puts(&message, "invariant ");
    put_expression(is, &message);
    schema_text_puts(&message, " does not hold");
  }
  size_t before = message.length;
  schema_text_puts(&message, is->message ? " (" : before ? ": " : "");
  size_t start = message.length;
  put_bytes(reason, n, &message);
  if (message.length == start && !message.failed && message.bytes) { /* nothing was said */
    message.length = before;
    message.bytes[before] = '\0';
  } else if (is->message) {
    schema_text_puts(&message, ")");
  }
  if (place_n == 0 && is->pointer) {
    place = is->pointer;
    place_n = strlen(place);
  }
  if (!invariant_place(place, place_n, value, &path, &pointer)) {
    schema_text_deinit(&message);
    return SCHEMA_OUT_OF_MEMORY;
  }
  return add_error(is, path, pointer, &message, errs);
}

enum schema_status invariant_report(const struct invariant *invariant, const json_t *value,
                                    const char *reason, size_t n, struct schema_errors *errs) {
  return report_at(invariant, value, "", 0, reason, n, false, errs);
}

/* --- what a command printed --- */

/* {"path" or "pointer", "message"}; false if the line is something else, or for want of memory. */
static bool read_line(const char *line, size_t n, json_t **out, bool *out_of_memory) {
  struct jscan js;
  struct jscan_result result;
  jscan_init(&js, line, n);
  enum jscan_code code = jscan_value(&js, 0, &result);
  jscan_deinit(&js);
  *out_of_memory = code == JSCAN_OUT_OF_MEMORY;
  if (code != JSCAN_OK)
    return false;
  while (result.end < n && jscan_one_of(" \t\r\n", line[result.end]))
    result.end++;
  if (result.end == n && json_is_string(json_object_get(result.value, "message"))) {
    *out = result.value;
    return true;
  }
  json_decref(result.value);
  return false;
}

static enum schema_status report_line(const struct invariant *is, const json_t *value,
                                      const json_t *line, struct schema_errors *errs) {
  const json_t *message = json_object_get(line, "message"),
               *place = json_object_get(line, "pointer");
  if (!json_is_string(place))
    place = json_object_get(line, "path");
  return report_at(is, value, json_is_string(place) ? json_string_value(place) : "",
                   json_string_length(place), json_string_value(message),
                   json_string_length(message), true, errs);
}

enum schema_status invariant_command_result(const struct invariant *invariant, const json_t *value,
                                            const struct invariant_output *output,
                                            struct schema_errors *errs) {
  bool any = false, out_of_memory = false;
  if (output->exit_status == 0)
    return SCHEMA_OK;
  for (size_t i = 0, end; i < output->out_n; i = end + 1) {
    const char *newline = memchr(output->out + i, '\n', output->out_n - i);
    json_t *line = NULL;
    end = newline ? (size_t)(newline - output->out) : output->out_n;
    while (i < end && jscan_one_of(" \t\r", output->out[i]))
      i++;
    if (i == end || output->out[i] != '{' ||
        !read_line(output->out + i, end - i, &line, &out_of_memory)) {
      if (out_of_memory)
        return SCHEMA_OUT_OF_MEMORY;
      continue;
    }
    any = true;
    enum schema_status status = report_line(invariant, value, line, errs);
    json_decref(line);
    if (status != SCHEMA_INVALID)
      return status;
  }
  if (any)
    return SCHEMA_INVALID;
  bool use_out = false;
  for (size_t i = 0; i < output->out_n && !use_out; i++)
    use_out = !jscan_one_of(" \t\r\n", output->out[i]);
  const char *bytes = use_out ? output->out : output->err;
  size_t n = use_out ? output->out_n : output->err_n;
  struct text words = {0};
  schema_text_printf(&words, "exit status %d", output->exit_status);
  schema_text_puts(&words, n ? ": " : "");
  if (n)
    put_bytes(bytes, n, &words);
  if (words.failed) {
    schema_text_deinit(&words);
    return SCHEMA_OUT_OF_MEMORY;
  }
  enum schema_status status = invariant_report(invariant, value, words.bytes, words.length, errs);
  schema_text_deinit(&words);
  return status;
}
