/* A list of invariants as JSON to the compiled one. */
#include "structured/invariant_internal.h"

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
                         schema_text_take(&place), INVARIANT_KEYWORD, schema_text_take(message)))
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

static bool build_expr(struct building *b, struct list_entry *entry, const json_t *text,
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

static bool build_command(struct building *b, struct list_entry *entry, const json_t *words) {
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

static bool build_place(struct building *b, struct list_entry *entry, const json_t *object) {
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

static bool build_object(struct building *b, struct list_entry *entry, const json_t *object) {
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
                             schema_text_take(&place), INVARIANT_KEYWORD,
                             schema_text_take(&message)))
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
