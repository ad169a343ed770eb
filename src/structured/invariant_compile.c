/* Compiles a list of invariants from JSON. */
#include "structured/invariant_internal.h"

struct invariant_building {
  struct invariants *list;
  struct schema_errors *errs;
  enum schema_status status;
};

/* Refuses an invariant. Takes path, pointer and message. Always returns false. */
static bool refuse_at(struct invariant_building *b, struct buf *path, struct buf *pointer,
                      struct buf *message) {
  struct buf place = {0};
  b->status = SCHEMA_INVALID_SCHEMA;
  buf_printf(&place, "/invariants%s", buf_c(pointer));
  if (b->errs)
    schema_errors_add(b->errs, buf_take(path), buf_take(pointer), buf_take(&place),
                      INVARIANT_KEYWORD, buf_take(message));
  buf_deinit(&place);
  buf_deinit(path);
  buf_deinit(pointer);
  buf_deinit(message);
  return false;
}

/* Adds an error at list item `index`, member `name` (NULL: the item); takes `message`. */
static bool invariants_refuse(struct invariant_building *b, size_t index, const char *name,
                              struct buf *message) {
  struct buf path = {0}, pointer = {0};
  buf_printf(&path, "$[%zu]", index);
  buf_printf(&pointer, "/%zu", index);
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
  struct buf message = {0};
  buf_puts(&message, why.text);
  buf_printf(&message, " (at byte %zu of ", why.offset);
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
  struct buf all = {0};
  for (i = 0; i < count; i++) {
    const json_t *word = json_array_get(words, i);
    size_t n = json_string_length(word);
    if (!json_is_string(word) || n > INVARIANT_TEXT_MAX || (i == 0 && n == 0) ||
        memchr(json_string_value(word), '\0', n)) {
      buf_deinit(&all);
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
  buf_deinit(&all);
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
