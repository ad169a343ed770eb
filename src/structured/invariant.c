/* Checks invariants: expressions, what commands printed, the words of failures. */
#include "structured/invariant.h"

#include "base/utf8.h"
#include "expr/expr.h"
#include "format/json_object.h"
#include "schema/validate.h"
#include "json/scan.h"

#include <assert.h>

#define INVARIANT_KEYWORD "invariant"

struct list_entry {
  struct invariant is;
  const struct expr *expr; /* INVARIANT_EXPR */
};

struct invariants {
  struct arena arena;
  struct list_entry *items;
  size_t count;
};

/* --- places in a value, given as paths or as JSON Pointers --- */

/* Holds both forms of a place, to which the caller adds its steps one at a time. */
struct place_writer {
  struct buf path, pointer;
  const json_t *at; /* NULL: unknown */
  bool known;
};

static void put_step(struct place_writer *w, const char *key, size_t n) {
  bool digits = n > 0 && n < 10 && (n == 1 || key[0] != '0');
  for (size_t i = 0; i < n && digits; i++)
    digits = str_is_digit(key[i]);
  bool is_index = digits && (!w->known || json_is_array(w->at));
  size_t index = 0;
  for (size_t i = 0; i < n && is_index; i++)
    index = index * 10 + (size_t)(key[i] - '0');
  struct path_step step = {NULL, is_index ? NULL : key, is_index ? index : n};
  buf_auto_t one = {0};
  schema_path_text(&step, &one); /* "$.key" or "$[3]" */
  buf_puts(&w->path, one.p + 1);
  one.n = 0;
  schema_pointer_text(&step, &one);
  buf_puts(&w->pointer, one.p);
  if (w->at)
    w->at = is_index ? json_array_get(w->at, index) : json_object_getn(w->at, key, n);
}

/* Reads a path such as $.a[0]["b c"].d; the $ and the first dot may be left out. */
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
      while (i < n && str_is_digit(text[i]))
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

static bool place_is_text(const char *text, size_t n) {
  for (size_t i = 0, length; i < n; i += length)
    if ((length = utf8_decode(text + i, n - i, NULL)) == 0 || text[i] == '\0')
      return false;
  return true;
}

void invariant_place(const char *text, size_t n, const json_t *value, char **path, char **pointer) {
  struct place_writer w = {.at = value, .known = value != NULL};
  buf_puts(&w.path, "$");
  buf_append(&w.pointer, "", 0);
  bool sound = n <= INVARIANT_TEXT_MAX && place_is_text(text, n);
  if (sound && n > 0 && text[0] == '/') {
    for (size_t i = 0; i < n;) {
      buf_auto_t key = {0};
      for (i++; i < n && text[i] != '/'; i++) /* skips the / */
        if (text[i] == '~' && i + 1 < n && (text[i + 1] == '0' || text[i + 1] == '1'))
          buf_puts(&key, text[++i] == '0' ? "~" : "/");
        else
          buf_append(&key, text + i, 1);
      buf_append(&key, "", 0);
      put_step(&w, key.p, key.n);
    }
  } else {
    sound = sound && path_steps(&w, text, n);
  }
  if (!sound) {
    w.path.n = w.pointer.n = 0;
    buf_puts(&w.path, "$");
    buf_append(&w.pointer, "", 0);
  }
  *path = buf_take(&w.path);
  *pointer = buf_take(&w.pointer);
}

/* --- a list from JSON --- */

struct invariant_building {
  struct invariants *list;
  struct schema_errors *errs;
  enum schema_status status;
};

/* Refuses an invariant. Takes path, pointer and message. Always returns false. */
static bool refuse_at(struct invariant_building *b, struct buf *path, struct buf *pointer,
                      struct buf *message) {
  buf_auto_t place = {0};
  b->status = SCHEMA_INVALID_SCHEMA;
  buf_printf(&place, "/invariants%s", buf_c(pointer));
  if (b->errs)
    schema_errors_add(b->errs, buf_take(path), buf_take(pointer), buf_take(&place),
                      INVARIANT_KEYWORD, buf_take(message));
  buf_deinit(path);
  buf_deinit(pointer);
  buf_deinit(message);
  return false;
}

/* Adds an error at list item `index`, member `name` (NULL: the item); takes `message`. */
static bool invariants_refuse(struct invariant_building *b, size_t index, const char *name,
                              struct buf *message) {
  struct buf path = buf_of("$[%zu]", index), pointer = buf_of("/%zu", index);
  if (name) {
    buf_printf(&path, ".%s", name);
    buf_printf(&pointer, "/%s", name);
  }
  return refuse_at(b, &path, &pointer, message);
}

static bool refuse_words(struct invariant_building *b, size_t index, const char *name,
                         const char *words) {
  struct buf message = {0};
  buf_puts(&message, words);
  return invariants_refuse(b, index, name, &message);
}

/* Reads a member that must be a text within bounds; an absent one is fine and gives NULL. */
static bool invariants_text(struct invariant_building *b, size_t index, const json_t *object,
                            const char *name, const char **out) {
  const json_t *value = json_object_get(object, name);
  *out = NULL;
  if (value == NULL)
    return true;
  size_t n = json_string_length(value);
  if (!json_is_string(value) || n == 0)
    return refuse_words(b, index, name, "a text is needed here");
  if (n > INVARIANT_TEXT_MAX || memchr(json_string_value(value), '\0', n))
    return refuse_words(b, index, name, "the text is longer than 8 KiB or holds a NUL");
  *out = arena_strndup(&b->list->arena, json_string_value(value), n);
  return true;
}

static bool build_expr(struct invariant_building *b, struct list_entry *entry, const json_t *text,
                       const char *name) {
  const char *bytes = json_string_value(text);
  size_t n = json_string_length(text);
  struct expr_error why;
  if (bytes == NULL)
    return refuse_words(b, entry->is.index, name, "an expression is a text");
  entry->is.kind = INVARIANT_EXPR;
  entry->is.text = arena_strndup(&b->list->arena, bytes, n);
  entry->expr = expr_parse(&b->list->arena, bytes, n, EXPR_INVARIANT, &why);
  if (entry->expr)
    return true;
  struct buf message = buf_of("%s (at byte %zu of ", why.text, why.offset);
  schema_quote_text(bytes, n, &message);
  buf_puts(&message, ")");
  return invariants_refuse(b, entry->is.index, name, &message);
}

static bool build_command(struct invariant_building *b, struct list_entry *entry,
                          const json_t *words) {
  size_t count = json_array_size(words), i;
  if (count == 0 || count > INVARIANT_ARGV_MAX)
    return refuse_words(b, entry->is.index, "command",
                        "a command is a list of words, like [\"./check.sh\", \"--strict\"]");
  const char **argv = arena_array(&b->list->arena, count + 1, sizeof *argv);
  buf_auto_t all = {0};
  for (i = 0; i < count; i++) {
    const json_t *word = json_array_get(words, i);
    size_t n = json_string_length(word);
    if (!json_is_string(word) || n > INVARIANT_TEXT_MAX || (i == 0 && n == 0) ||
        memchr(json_string_value(word), '\0', n)) {
      return refuse_words(b, entry->is.index, "command",
                          "each word of a command is a text of at most 8 KiB without NUL");
    }
    argv[i] = arena_strndup(&b->list->arena, json_string_value(word), n);
    buf_puts(&all, i ? " " : "");
    buf_append(&all, argv[i], n);
  }
  entry->is.kind = INVARIANT_COMMAND;
  entry->is.argv = argv;
  entry->is.text = arena_strndup(&b->list->arena, all.p, all.n);
  return true;
}

static bool build_place(struct invariant_building *b, struct list_entry *entry,
                        const json_t *object) {
  const char *given;
  char *path, *pointer;
  if (!invariants_text(b, entry->is.index, object, "path", &given))
    return false;
  if (given == NULL)
    return true;
  invariant_place(given, strlen(given), NULL, &path, &pointer);
  bool sound = *pointer != '\0' || strcmp(given, "$") == 0;
  entry->is.pointer = arena_strdup(&b->list->arena, pointer);
  free(path);
  free(pointer);
  if (!sound)
    return refuse_words(b, entry->is.index, "path", "write a JSON Pointer like /total or $.total");
  return true;
}

static bool build_object(struct invariant_building *b, struct list_entry *entry,
                         const json_t *object) {
  static const char *const kinds[] = {"expr", "command", "ai"};
  const json_t *kind = NULL;
  int which = 0;
  JSON_MEMBERS((uintptr_t)object, key, value) {
    int i = str_index(str_from(key), kinds, ARRAY_LEN(kinds));
    if (i < 0 && strcmp(key, "message") != 0 && strcmp(key, "path") != 0)
      return refuse_words(b, entry->is.index, NULL,
                          "an invariant has expr, command or ai, and message and path");
    if (i >= 0 && kind)
      return refuse_words(b, entry->is.index, NULL,
                          "only one of expr, command and ai can stand in one invariant");
    if (i >= 0) {
      kind = value;
      which = i;
    }
  }
  if (kind == NULL)
    return refuse_words(b, entry->is.index, NULL, "one of expr, command and ai is needed");
  if (!invariants_text(b, entry->is.index, object, "message", &entry->is.message) ||
      !build_place(b, entry, object))
    return false;
  if (which == 0)
    return build_expr(b, entry, kind, "expr");
  if (which == 1)
    return build_command(b, entry, kind);
  entry->is.kind = INVARIANT_AI;
  return invariants_text(b, entry->is.index, object, "ai", &entry->is.text);
}

static void invariants_build(struct invariant_building *b, const json_t *list) {
  if (!json_is_array(list) || json_array_size(list) > INVARIANTS_MAX) {
    struct buf message = {0}, path = {0}, pointer = {0};
    buf_printf(&message,
               "invariants are a list of at most %d expressions and objects with expr, "
               "command or ai",
               INVARIANTS_MAX);
    buf_puts(&path, "$");
    (void)refuse_at(b, &path, &pointer, &message);
    return;
  }
  size_t n = json_array_size(list);
  b->list->items = arena_array(&b->list->arena, n + 1, sizeof *b->list->items);
  for (size_t i = 0; i < n; i++) {
    struct list_entry *entry = &b->list->items[i];
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
  struct invariant_building b = {.list = xcalloc(1, sizeof *b.list), .errs = errs};
  invariants_build(&b, list);
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
  arena_deinit(&invariants->arena);
  free(invariants);
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

/* --- the check --- */

/* Adds an error. Takes path, pointer and message. */
static void invariant_add_error(const struct invariant *is, char *path, char *pointer,
                                struct buf *message, struct schema_errors *errs) {
  struct buf place = buf_of("/invariants/%zu", is->index);
  schema_errors_add(errs, path, pointer, buf_take(&place), INVARIANT_KEYWORD, buf_take(message));
}

static void invariant_put_expression(const struct invariant *is, struct buf *out) {
  size_t n = strlen(is->text), shown = n < 200 ? n : 200;
  while (shown < n && shown > 0 && utf8_is_tail(is->text[shown]))
    shown--;
  for (size_t i = 0; i < shown; i++) /* an expression may be written over several lines */
    buf_putc(out, is->text[i] == '\n' || is->text[i] == '\r' ? ' ' : is->text[i]);
  buf_puts(out, shown < n ? "..." : "");
}

static enum schema_status check_expr(const struct list_entry *entry, const json_t *value,
                                     struct schema_errors *errs) {
  const struct invariant *is = &entry->is;
  struct expr_finding found;
  struct expr_error why;
  struct buf message = {0};
  enum expr_value verdict = expr_explain(entry->expr, value, errs ? &found : NULL, &why);
  if (verdict == EXPR_TRUE)
    return SCHEMA_OK;
  enum schema_status status = why.code == EXPR_TOO_COMPLEX ? SCHEMA_TOO_COMPLEX : SCHEMA_INVALID;
  if (errs == NULL)
    return status;
  if (is->message) {
    buf_printf(&message, "%s (", is->message);
    invariant_put_expression(is, &message);
    buf_printf(&message, ": %s)", found.text);
  } else {
    buf_puts(&message, "invariant ");
    invariant_put_expression(is, &message);
    buf_printf(&message, "%s%s",
               verdict == EXPR_FALSE ? " does not hold: " : " cannot be checked: ", found.text);
  }
  free(found.text);
  if (is->pointer) { /* declared: before what was found */
    free(found.path);
    free(found.pointer);
    invariant_place(is->pointer, strlen(is->pointer), value, &found.path, &found.pointer);
  }
  invariant_add_error(is, found.path, found.pointer, &message, errs);
  return status;
}

enum schema_status invariants_check(const struct invariants *invariants, const json_t *value,
                                    struct schema_errors *errs) {
  enum schema_status worst = SCHEMA_OK;
  for (size_t i = 0; i < invariants_count(invariants); i++) {
    const struct list_entry *entry = &invariants->items[i];
    if (entry->is.kind != INVARIANT_EXPR)
      continue;
    enum schema_status status = check_expr(entry, value, errs);
    if (status == SCHEMA_TOO_COMPLEX)
      return status;
    if (status == SCHEMA_INVALID)
      worst = status;
  }
  return worst;
}

/* Puts bytes from outside as one line of a message: bounded, with '?' for controls and what is not
 * UTF-8. */
static void invariant_put_bytes(const char *bytes, size_t n, struct buf *out) {
  size_t shown = 0;
  bool blank = false;
  while (n > 0 && jscan_one_of(" \t\r\n", bytes[n - 1]))
    n--;
  for (size_t i = 0, length; i < n; i += length) {
    unsigned char c = (unsigned char)bytes[i];
    bool space = jscan_one_of(" \t\r\n", (char)c);
    length = utf8_decode(bytes + i, n - i, NULL);
    bool plain = length > 0 && c >= 0x20 && c != 0x7f &&
                 !(c == 0xc2 && ((unsigned char)bytes[i + 1] & 0xe0) == 0x80);
    length = length ? length : 1;
    if (space && (blank || shown == 0))
      continue;
    blank = space;
    if (shown + length > INVARIANT_OUTPUT_MESSAGE_BYTES) {
      buf_puts(out, "...");
      return;
    }
    if (plain && !space)
      buf_append(out, bytes + i, length);
    else
      buf_puts(out, space ? " " : "?");
    shown += plain ? length : 1;
  }
}

static void report_at(const struct invariant *is, const json_t *value, struct str place,
                      struct str reason, bool own_words, struct schema_errors *errs) {
  struct buf message = {0};
  char *path, *pointer;
  if (errs == NULL)
    return;
  if (is->message) {
    buf_puts(&message, is->message);
  } else if (!own_words) {
    buf_puts(&message, "invariant ");
    invariant_put_expression(is, &message);
    buf_puts(&message, " does not hold");
  }
  size_t before = message.n;
  if (is->message)
    buf_puts(&message, " (");
  else if (before > 0)
    buf_puts(&message, ": ");
  size_t start = message.n;
  invariant_put_bytes(reason.p, reason.n, &message);
  if (message.n == start) { /* the message is empty */
    message.n = before;
    buf_puts(&message, "");
  } else if (is->message) {
    buf_puts(&message, ")");
  }
  if (place.n == 0 && is->pointer)
    place = str_from(is->pointer);
  invariant_place(place.p, place.n, value, &path, &pointer);
  invariant_add_error(is, path, pointer, &message, errs);
}

void invariant_report(const struct invariant *invariant, const json_t *value, const char *reason,
                      size_t n, struct schema_errors *errs) {
  report_at(invariant, value, STR(""), (struct str){reason, n}, false, errs);
}

/* --- what a command printed --- */

/* Reads {"path" or "pointer", "message"}; NULL if the line is something else. */
static json_t *invariant_read_line(const char *line, size_t n) {
  struct jscan_result result;
  (void)jscan_whole((struct str){line, n}, &result);
  if (json_is_string(json_at(result.value, "message")))
    return result.value;
  json_decref(result.value);
  return NULL;
}

/* Turns each line that is an error into one; false if there is none. */
static bool report_lines(const struct invariant *is, const json_t *value, struct str out,
                         struct schema_errors *errs) {
  bool any = false;
  for (struct str rest = out; rest.p != NULL;) {
    struct str text = str_trim(str_next_line(&rest));
    json_t *line = text.n > 0 && *text.p == '{' ? invariant_read_line(text.p, text.n) : NULL;
    if (line == NULL)
      continue;
    any = true;
    const json_t *place = json_at(line, "pointer");
    if (!json_is_string(place))
      place = json_at(line, "path");
    report_at(is, value, json_view(place), json_view_at(line, "message"), true, errs);
    json_decref(line);
  }
  return any;
}

bool invariant_command_told(int exit_status) {
  enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, KILLED = 128, LAST_SIGNAL = 31 };
  return exit_status != NOT_EXECUTABLE && exit_status != NOT_FOUND &&
         (exit_status <= KILLED || exit_status > KILLED + LAST_SIGNAL);
}

enum schema_status invariant_command_result(const struct invariant *invariant, const json_t *value,
                                            const struct invariant_output *output,
                                            struct schema_errors *errs) {
  assert(output->out != NULL || output->out_n == 0);
  assert(output->err != NULL || output->err_n == 0);
  if (output->exit_status == 0)
    return SCHEMA_OK;
  struct str out = {output->out, output->out_n};
  if (report_lines(invariant, value, out, errs))
    return SCHEMA_INVALID;
  if (str_trim(out).n == 0)
    out = (struct str){output->err, output->err_n};
  buf_auto_t words = buf_of("exit status %d", output->exit_status);
  if (out.n > 0) {
    buf_puts(&words, ": ");
    invariant_put_bytes(out.p, out.n, &words);
  }
  invariant_report(invariant, value, words.p, words.n, errs);
  return SCHEMA_INVALID;
}
