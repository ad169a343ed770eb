/* Makes workflow files of segue's own out of takt's. */
#include "workflow/import.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/keys.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "format/yaml.h"
#include "format/yaml_write.h"
#include "os/fs.h"
#include "workflow/foreign_keys.h"
#include "workflow/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { IMPORT_PATH_BYTES = 4096 };
#define SAME       "same"
#define CHANGED    "changed"
#define IMPOSSIBLE "impossible"

/* A workflow that is being imported. */
struct imported {
  const char *path;
  const struct yaml_node *root; /* its params are filled in */
  struct facets facets;
  json_t *everywhere; /* policies of all its movements */
  json_t *doc;        /* what it becomes */
};

/* A map of a file whose keys are taken over one by one. */
struct taking {
  struct import *i;
  struct imported *f;
  const struct yaml_node *map;
  const char *in; /* the movement, for the report */
  bool child;     /* of a group */
  json_t *out;
};

/* Says what becomes of some keys, which stand one space apart. Without more they stay the same. */
struct fate {
  const char *keys;
  const char *as;    /* the value stays, under this name; or NULL */
  const char *words; /* these values have another word here: "theirs=ours ..."; or NULL */
  void (*take)(struct taking *t, const struct yaml_pair *pair); /* or NULL */
  const char *why;      /* they are left out, and this is to do instead; or NULL */
  const char *needless; /* they are left out, and the session goes the same way; or NULL */
};

/* --- the report --- */

static json_t *list_in(json_t *out, const char *key) {
  json_t *list = json_object_get(out, key);
  if (list != NULL && !json_is_array(list)) {
    json_t *one = json_pack("[O]", list);
    json_object_set_new(out, key, one);
  } else if (list == NULL) {
    json_object_set_new(out, key, json_array());
  }
  return json_object_get(out, key);
}

static bool is_after(const json_t *line, const struct yaml_node *node) {
  json_int_t number = json_int_at(line, "line");
  return number > node->line ||
         (number == node->line && json_int_at(line, "column") > node->column);
}

PRINTF_LIKE(6, 7)
static void import_tell(struct import *i, const struct yaml_node *node, const char *in,
                        struct str key, const char *result, const char *fmt, ...) {
  char why[768] = "";
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(why, sizeof why, fmt, ap);
  va_end(ap);
  json_t *line = json_pack("{si si ss so ss}", "line", node->line, "column", node->column, "in", in,
                           "key", json_text(key), "result", result);
  if (why[0] != '\0')
    json_put(line, "why", json_text(str_from(why)));
  json_t *lines = list_in(i->lines, node->origin ? node->origin->file : "");
  size_t at = json_array_size(lines);
  while (at > 0 && is_after(json_array_get(lines, at - 1), node))
    at--;
  bool said = false; /* by an earlier call of this file */
  for (size_t k = at; k > 0 && !said; k--)
    said = json_same(json_array_get(lines, k - 1), line);
  if (!said)
    json_array_insert(lines, at, line);
  json_decref(line);
}

static struct yaml_node place_of(const struct yaml_origin *origin, int line, int column) {
  return (struct yaml_node){.origin = origin, .line = line, .column = column};
}

/* --- files --- */

/* Returns the text of a key; empty: it has none. */
static struct str text_in(const struct yaml_node *map, const char *key) {
  const struct yaml_node *node = yaml_get(map, key);
  return node != NULL && node->kind == YAML_TEXT ? node->text : STR("");
}

static size_t list_count(const struct yaml_node *node) {
  return node != NULL && node->kind == YAML_LIST ? node->count : 0;
}

/* Reads a file beneath a folder. False: it is not there, or is unreadable, which was told. */
static bool import_read(struct import *i, const struct yaml_node *at, const char *folder,
                        const char *path, size_t max, struct buf *text) {
  struct err err = {0};
  int root = folder[0] ? fs_open_folder(folder) : -1;
  int fd = root < 0 ? -1 : fs_open_beneath(root, path, O_RDONLY), number = errno;
  fs_close(root);
  const char *why = strerror(number);
  if (number == EXDEV || number == ELOOP)
    why = "the path leads out of its folder: copy the file";
  if (fd < 0) {
    if (root >= 0 && number != ENOENT && number != ENOTDIR)
      import_tell(i, at, "", str_from(path), IMPOSSIBLE, "%s", why);
    return false;
  }
  bool ok = file_read_fd(fd, path, max, text, &err);
  close(fd);
  if (!ok)
    import_tell(i, at, "", str_from(path), IMPOSSIBLE, "%s", err.text);
  return ok;
}

/* Copies a tree with its origin, each {$param: NAME} replaced by its value; in a list the items of
 * a value that is a list take its place. params: a map, or NULL: nothing is replaced. */
static const struct yaml_node *with_params(struct import *i, const struct yaml_origin *origin,
                                           const struct yaml_node *params,
                                           const struct yaml_node *node) {
  const struct yaml_node *name =
      node->kind == YAML_MAP && node->count == 1 ? yaml_get(node, "$param") : NULL;
  if (name != NULL && params != NULL && name->kind == YAML_TEXT) {
    const struct yaml_node *value = yaml_get(params, name->text.p);
    if (value == NULL)
      import_tell(i, node, "", name->text, IMPOSSIBLE,
                  "this param has no value: give it one in args");
    return value;
  }
  struct yaml_node *copy = arena_alloc(&i->arena, sizeof *copy);
  *copy = *node;
  copy->origin = origin ? origin : node->origin;
  copy->count = 0;
  if (node->kind == YAML_LIST) {
    size_t room = node->count;
    copy->items = arena_array(&i->arena, room + 1, sizeof(void *));
    for (size_t k = 0; k < node->count; k++) {
      const struct yaml_node *item = with_params(i, origin, params, node->items[k]);
      bool spliced = item != NULL && item->kind == YAML_LIST && node->items[k]->kind == YAML_MAP;
      size_t n = spliced ? item->count : item != NULL;
      if (n > 1) {
        const struct yaml_node **more = arena_array(&i->arena, room += n, sizeof(void *));
        memcpy(more, copy->items, copy->count * sizeof(void *));
        copy->items = more;
      }
      for (size_t j = 0; j < n; j++)
        copy->items[copy->count++] = spliced ? item->items[j] : item;
    }
  } else if (node->kind == YAML_MAP) {
    copy->pairs = arena_array(&i->arena, node->count + 1, sizeof *copy->pairs);
    for (size_t k = 0; k < node->count; k++) {
      const struct yaml_node *value = with_params(i, origin, params, node->pairs[k].value);
      struct yaml_node *key = arena_alloc(&i->arena, sizeof *key);
      *key = *node->pairs[k].key;
      key->origin = copy->origin;
      if (value != NULL)
        copy->pairs[copy->count++] = (struct yaml_pair){key, value};
    }
  }
  return copy;
}

/* Reads a YAML file whose text is there; NULL: it holds no map, which was told. */
static const struct yaml_node *parse_file(struct import *i, const char *path, struct str text) {
  AUTO(err_list_deinit) struct err_list errors = {0};
  struct yaml_origin *origin = arena_alloc(&i->arena, sizeof *origin);
  origin->file = arena_strdup(&i->arena, path);
  const struct yaml_node *root = yaml_parse(&i->arena, origin->file, arena_str(&i->arena, text),
                                            LIMIT_WORKFLOW_BYTES, &errors);
  for (size_t k = 0; k < errors.count; k++) {
    struct yaml_node at = place_of(origin, errors.items[k].line, errors.items[k].column);
    import_tell(i, &at, "", STR(""), IMPOSSIBLE, "%s", errors.items[k].text);
  }
  struct yaml_node top = place_of(origin, 1, 1);
  if (root != NULL && root->kind != YAML_MAP)
    import_tell(i, &top, "", STR(""), IMPOSSIBLE, "the file is no map of keys and values");
  bool ok = root != NULL && root->kind == YAML_MAP && errors.count == 0;
  return ok ? with_params(i, origin, NULL, root) : NULL;
}

/* Finds a file by its name, or a path below the folder of the file that names it. Its path goes to
 * `path`. */
static bool import_find(struct import *i, const struct yaml_node *at, const char *beside,
                        struct str name, const char *const *subfolders, const char *const *ends,
                        char path[IMPORT_PATH_BYTES], struct buf *text) {
  const char *const roots[] = {i->takt, i->home, i->builtins};
  char below[IMPORT_PATH_BYTES];
  for (size_t e = 0; ends[e] != NULL && name.n > 0 && name.n < IMPORT_PATH_BYTES / 2; e++) {
    print_into(below, sizeof below, STR_FMT "%s", STR_ARG(name), ends[e]);
    print_into(path, IMPORT_PATH_BYTES, "%.2000s/%.2000s", beside, below);
    if (import_read(i, at, beside, below, LIMIT_WORKFLOW_BYTES, text))
      return true;
  }
  for (size_t r = 0; r < ARRAY_LEN(roots) && name.n < LIMIT_NAME_BYTES; r++)
    for (size_t s = 0; roots[r][0] != '\0' && subfolders[s] != NULL; s++)
      for (size_t e = 0; ends[e] != NULL; e++) {
        print_into(below, sizeof below, "%s/" STR_FMT "%s", subfolders[s], STR_ARG(name), ends[e]);
        print_into(path, IMPORT_PATH_BYTES, "%.2000s/%.2000s", roots[r], below);
        if (import_read(i, at, roots[r], below, LIMIT_WORKFLOW_BYTES, text))
          return true;
      }
  return false;
}

static const char *const yaml_ends[] = {"", ".yaml", ".yml", NULL};

static char *import_folder_of(struct import *i, const char *path) {
  const char *end = strrchr(path, '/');
  return end ? arena_strndup(&i->arena, path, (size_t)(end - path)) : arena_strdup(&i->arena, ".");
}

/* Puts a text among the files under the first of NAME, NAME-2, ... that no other text has. Returns
 * the name. */
static const char *import_put_file(struct import *i, const char *folder, struct str name,
                                   const char *end, struct str text) {
  char base[IMPORT_PATH_BYTES];
  print_into(base, sizeof base, "%.3000s/.segue", i->project);
  for (size_t number = 1;; number++) {
    const char *own = arena_str(&i->arena, name).p;
    if (number > 1)
      own = arena_printf(&i->arena, "%s-%zu", own, number);
    const char *path = arena_printf(&i->arena, "%s/%s%s", folder, own, end);
    const json_t *known = json_object_get(i->files, path);
    buf_auto_t there = {0};
    struct err err = {0};
    struct str other = json_view(known);
    int root = known ? -1 : fs_open_folder(base);
    int fd = root < 0 ? -1 : fs_open_beneath(root, path, O_RDONLY);
    bool is_there = known != NULL || fd >= 0;
    if (fd >= 0 && file_read_fd(fd, path, LIMIT_WORKFLOW_BYTES, &there, &err))
      other = buf_view(&there);
    bool is_free = !is_there || str_eq(other, text);
    fs_close(fd);
    fs_close(root);
    if (is_free) {
      json_object_set_new(i->files, path, json_text(text));
      return own;
    }
  }
}

/* --- keys --- */

#define AGENTS_OWN "it is set in segue's configuration or in the agent's own"
#define PROVIDERS  "claude-sdk=claude claude-terminal=claude mock=script cursor=cursor-agent"
#define TELL(t, pair, result, ...)                                                                 \
  import_tell((t)->i, (pair)->key, (t)->in, (pair)->key->text, (result), __VA_ARGS__)

/* Puts a value that stays into what is made, perhaps under another name or as another word. */
static void keep_value(struct taking *t, const struct fate *fate, const struct yaml_pair *pair) {
  const char *as = fate->as ? fate->as : pair->key->text.p;
  struct str words = str_from(fate->words), ours = STR("");
  while (ours.n == 0 && words.n > 0) {
    struct str theirs = str_cut(&words, '='), word = str_cut(&words, ' ');
    ours = str_eq(pair->value->text, theirs) ? word : ours;
  }
  if (json_object_get(t->out, as) == NULL)
    json_object_set_new(t->out, as, ours.n > 0 ? json_text(ours) : yaml_to_json(pair->value));
  if (ours.n > 0 || fate->as != NULL)
    TELL(t, pair, CHANGED, ours.n > 0 ? "it is " STR_FMT " here" : "it is written as " STR_FMT,
         STR_ARG(ours.n > 0 ? ours : str_from(as)));
  else
    TELL(t, pair, SAME, "%s", "");
}

static void take_keys(struct taking *t, const struct fate *fates) {
  for (size_t k = 0; k < t->map->count; k++) {
    const struct yaml_pair *pair = &t->map->pairs[k];
    const struct fate *fate = fates;
    while (fate->keys != NULL && !str_among(pair->key->text, fate->keys))
      fate++;
    if (fate->keys == NULL)
      TELL(t, pair, IMPOSSIBLE, "segue does not know this key: it is left out");
    else if (fate->why != NULL || fate->needless != NULL)
      TELL(t, pair, fate->why ? IMPOSSIBLE : CHANGED, "%s", fate->why ? fate->why : fate->needless);
    else if (fate->take != NULL)
      fate->take(t, pair);
    else
      keep_value(t, fate, pair);
  }
}

/* Says nothing about a key: something else speaks of it. */
static void take_elsewhere(struct taking *t, const struct yaml_pair *pair) {
  (void)t;
  (void)pair;
}

static void add_once(json_t *list, json_t *word) {
  bool found = false;
  JSON_EACH(list, k, other)
    found = found || json_same(other, word);
  if (!found)
    json_array_append(list, word);
  json_decref(word);
}

/* --- facets --- */

/* Returns what to write for a facet: the name of the file that it becomes, or its own words. */
static json_t *facet_of(struct taking *t, enum facet_kind kind, const struct yaml_node *node,
                        struct str key) {
  buf_auto_t text = {0};
  struct err err = {0};
  struct facets facets = t->f->facets;
  json_auto_t *found = json_array();
  char folder[64];
  facets.files = found;
  facets.movement = STR("import");
  if (node->kind != YAML_TEXT) {
    import_tell(t->i, node, t->in, key, IMPOSSIBLE, "%s is no text: write a name or a text",
                yaml_kind_name(node->kind));
    return NULL;
  }
  if (!scope_facet(NULL, &facets, kind, node->text, &text, &err)) {
    import_tell(t->i, node, t->in, key, IMPOSSIBLE, "%s", err.text);
    return json_text(node->text);
  }
  const json_t *entry = json_array_get(found, 0);
  struct str file = json_view_at(entry, "file"), from = json_view_at(entry, "from");
  bool is_words = file.n == 0 || memchr(node->text.p, '\n', node->text.n) != NULL ||
                  str_has(node->text, "{{include:");
  if (is_words) {
    import_tell(t->i, node, t->in, key, SAME, "%s", "");
    return json_text(buf_view(&text));
  }
  struct str name = {strrchr(file.p, '/') + 1, 0};
  name.n = (size_t)(file.p + file.n - name.p);
  if (str_ends(name, ".md") || str_ends(name, ".txt"))
    name.n -= str_ends(name, ".md") ? 3 : 4;
  buf_putc(&text, '\n');
  print_into(folder, sizeof folder, "facets/%s", facet_folder(kind));
  const char *own = import_put_file(t->i, folder, name, ".md", buf_view(&text));
  const char *why = str_eq_c(node->text, own) ? "" : "it is in ";
  if (str_eq_c(from, "takt"))
    why = "takt's own, copied to ";
  else if (str_eq_c(from, "segue"))
    why = "takt is not installed here; segue's own words are in ";
  if (why[0] != '\0')
    import_tell(t->i, node, t->in, key, CHANGED, "%s%s/%s.md", why, folder, own);
  else
    import_tell(t->i, node, t->in, key, SAME, "%s", "");
  return json_string(own);
}

/* Adds one facet or a list of them to what the movement has of that kind. */
static void add_facets(struct taking *t, enum facet_kind kind, const char *key,
                       const struct yaml_node *value) {
  size_t n = value != NULL && value->kind == YAML_LIST ? value->count : value != NULL;
  for (size_t k = 0; k < n; k++) {
    const struct yaml_node *one = value->kind == YAML_LIST ? value->items[k] : value;
    json_t *word = facet_of(t, kind, one, str_from(key));
    if (word != NULL)
      add_once(list_in(t->out, key), word);
  }
}

static void take_facet(struct taking *t, const struct yaml_pair *pair) {
  static const struct {
    const char *key, *as;
    enum facet_kind kind;
  } kinds[] = {{"persona", "persona", FACET_PERSONA},
               {"agent", "persona", FACET_PERSONA},
               {"policy", "policy", FACET_POLICY},
               {"knowledge", "knowledge", FACET_KNOWLEDGE},
               {"instruction_template", "instruction", FACET_INSTRUCTION},
               {"prompt", "instruction", FACET_INSTRUCTION},
               {"instruction", "instruction", FACET_INSTRUCTION},
               {"format", "format", FACET_OUTPUT_CONTRACT},
               {"order", "order", FACET_OUTPUT_CONTRACT}};
  size_t k = 0;
  struct str key = pair->key->text;
  while (!str_eq_c(key, kinds[k].key))
    k++;
  if (json_object_get(t->out, kinds[k].as) != NULL && !str_eq_c(key, kinds[k].key))
    return;
  if (!str_eq_c(key, kinds[k].as))
    import_tell(t->i, pair->key, t->in, key, CHANGED, "it is written as %s", kinds[k].as);
  if (pair->value->kind == YAML_LIST) {
    add_facets(t, kinds[k].kind, kinds[k].as, pair->value);
    return;
  }
  json_t *value = facet_of(t, kinds[k].kind, pair->value, key);
  if (value != NULL)
    json_object_set_new(t->out, kinds[k].as, value);
}

/* Adds all facets of a pool: nobody picks among them. */
static void take_pool(struct taking *t, const struct yaml_pair *pair) {
  static const char *const folders[] = {"facet-pools", NULL};
  struct str name = text_in(pair->value, "pool");
  const struct yaml_node *pool = yaml_get(yaml_get(t->f->root, "facet_pools"), name.p);
  const struct yaml_node *uses = yaml_get(pool, "uses");
  char path[IMPORT_PATH_BYTES];
  buf_auto_t text = {0};
  if (uses != NULL && import_find(t->i, uses, import_folder_of(t->i, t->f->path), uses->text,
                                  folders, yaml_ends, path, &text))
    pool = parse_file(t->i, path, buf_view(&text));
  const struct yaml_node *candidates = yaml_get(pool, "candidates");
  if (list_count(candidates) == 0) {
    TELL(t, pair, IMPOSSIBLE, "there is no such pool: name the movement's facets in it");
    return;
  }
  TELL(t, pair, CHANGED, "all facets of the pool are given: nobody picks among them");
  for (size_t k = 0; k < candidates->count; k++) {
    add_facets(t, FACET_POLICY, "policy", yaml_get(candidates->items[k], "policy"));
    add_facets(t, FACET_KNOWLEDGE, "knowledge", yaml_get(candidates->items[k], "knowledge"));
  }
}

/* --- rules --- */

/* Appends the words of all(...) or any(...), in plain quotes. False: they cannot be read. */
static bool put_words(struct str words, struct buf *out) {
  for (bool first = true; words.n > 0 || first; first = false) {
    buf_auto_t word = {0};
    words = str_trim(words);
    bool escaped = str_drop(&words, "\\\""), quoted = escaped || str_drop(&words, "\"");
    const char *end = quoted ? "\"" : ",";
    while (words.n > 0 && !str_starts(words, escaped ? "\\\"" : end)) {
      if (quoted && !escaped && words.p[0] == '\\' && words.n > 1)
        words = (struct str){words.p + 1, words.n - 1};
      buf_putc(&word, words.p[0]);
      words = (struct str){words.p + 1, words.n - 1};
    }
    if (quoted && !str_drop(&words, escaped ? "\\\"" : "\""))
      return false;
    struct str plain = str_trim(buf_view(&word));
    words = str_trim(words);
    if (plain.n == 0 || (words.n > 0 && !str_drop(&words, ",")))
      return false;
    buf_puts(out, first ? "\"" : ", \"");
    for (size_t k = 0; k < plain.n; k++)
      buf_printf(out, plain.p[k] == '"' || plain.p[k] == '\\' ? "\\%c" : "%c", plain.p[k]);
    buf_putc(out, '"');
  }
  return true;
}

/* Returns where the ")" of an opened "(" is, outside of quotes; the text's end: nowhere. */
static size_t closing(struct str s) {
  bool quoted = false;
  int open = 0;
  for (size_t k = 0; k < s.n; k++) {
    if (s.p[k] == '\\')
      k++;
    else if (s.p[k] == '"')
      quoted = !quoted;
    else if (!quoted && s.p[k] == '(')
      open++;
    else if (!quoted && s.p[k] == ')' && --open == 0)
      return k;
  }
  return s.n;
}

static void take_condition(struct taking *t, const struct yaml_pair *pair) {
  buf_auto_t made = {0};
  struct str given = str_trim(pair->value->text), plain = given;
  bool is_group = str_starts(given, "all(") || str_starts(given, "any(");
  if (str_eq_c(pair->key->text, "when") && !str_starts(given, "when(") && given.n > 0)
    buf_printf(&made, "when(" STR_FMT ")", STR_ARG(given));
  else if (foreign_keys_plain_condition(&t->i->arena, given, &plain))
    buf_str(&made, plain);
  else if (is_group) {
    size_t end = closing(given);
    buf_append(&made, given.p, 4);
    if (end == given.n || !put_words((struct str){given.p + 4, end - 4}, &made)) {
      import_tell(t->i, pair->value, t->in, pair->key->text, IMPOSSIBLE,
                  "this is no all(\"label\") and no any(\"label\"): correct it");
      buf_set(&made, given);
    } else {
      buf_append(&made, given.p + end, given.n - end);
    }
  } else {
    buf_str(&made, given);
  }
  struct str when = buf_view(&made);
  const char *at = memmem(when.p, when.n, LIT("when("));
  bool foreign = at != NULL && (strstr(at, "context.") != NULL || strstr(at, "effect.") != NULL ||
                                strstr(at, "companion.") != NULL);
  if (foreign)
    import_tell(
        t->i, pair->value, t->in, pair->key->text, IMPOSSIBLE,
        "segue has no context, effect or companion: let a command movement print the value, and "
        "write structured.MOVEMENT.FIELD or exit");
  else if (str_eq(when, pair->value->text) && str_eq_c(pair->key->text, "condition"))
    import_tell(t->i, pair->value, t->in, pair->key->text, SAME, "%s", "");
  else if (json_object_get(t->out, "condition") == NULL)
    import_tell(t->i, pair->value, t->in, pair->key->text, CHANGED, "condition: %.500s", when.p);
  if (!foreign && json_object_get(t->out, "condition") == NULL)
    json_put(t->out, "condition", json_text(when));
}

static const struct fate rule_fates[] = {
    {.keys = "condition when if", .take = take_condition},
    {.keys = "next return appendix requires_user_input interactive_only"},
    {0}};

/* Returns the rules of a list, those without a condition left out. */
static json_t *rules_from(struct taking *t, const struct yaml_node *list) {
  json_t *rules = json_array();
  for (size_t k = 0; k < list_count(list); k++) {
    struct taking rule = *t;
    rule.map = list->items[k];
    if (rule.map->kind != YAML_MAP)
      continue;
    rule.out = json_object();
    take_keys(&rule, rule_fates);
    if (t->child && json_object_del(rule.out, "next") == 0)
      import_tell(t->i, rule.map, t->in, STR("next"), CHANGED,
                  "it is left out: the group's rules say where to go");
    if (json_object_get(rule.out, "condition") != NULL)
      json_array_append(rules, rule.out);
    else
      import_tell(t->i, rule.map, t->in, STR("rules"), IMPOSSIBLE,
                  "a rule without a condition is left out");
    json_decref(rule.out);
  }
  return rules;
}

static void take_rules(struct taking *t, const struct yaml_pair *pair) {
  const struct yaml_node *self = yaml_get(pair->value, "self");
  json_put(t->out, "rules", rules_from(t, self ? self : pair->value));
}

/* --- monitors, reports, gates --- */

static const struct fate loop_judge_fates[] = {
    {.keys = "persona instruction instruction_template", .take = take_facet},
    {.keys = "model"},
    {.keys = "provider", .words = PROVIDERS},
    {.keys = "rules", .take = take_rules},
    {0}};

static void take_loop_judge(struct taking *t, const struct yaml_pair *pair) {
  struct taking judge = *t;
  judge.map = pair->value;
  judge.out = json_object();
  if (judge.map->kind == YAML_MAP)
    take_keys(&judge, loop_judge_fates);
  json_put(t->out, "judge", judge.out);
}

static const struct fate monitor_fates[] = {{.keys = "cycle threshold"},
                                            {.keys = "ignore_steps", .as = "ignore"},
                                            {.keys = "judge", .take = take_loop_judge},
                                            {0}};

static const struct fate report_fates[] = {
    {.keys = "name use_judge"}, {.keys = "format order", .take = take_facet}, {0}};

/* Takes each map of a list with the same keys; an item that is none stays as it is. */
static json_t *maps_of(struct taking *t, const struct yaml_node *list, const struct fate *fates,
                       const char *named) {
  json_t *made = json_array();
  for (size_t k = 0; k < list_count(list); k++) {
    struct taking item = *t;
    item.map = list->items[k];
    item.out = json_object();
    if (item.map->kind == YAML_MAP && yaml_get(item.map, named) != NULL) {
      take_keys(&item, fates);
      json_array_append_new(made, item.out);
    } else {
      json_decref(item.out);
      json_array_append_new(made, yaml_to_json(item.map));
    }
  }
  return made;
}

static void take_monitors(struct taking *t, const struct yaml_pair *pair) {
  json_t *list = list_in(t->out, "loop_monitors");
  json_auto_t *made = maps_of(t, pair->value, monitor_fates, "cycle");
  json_array_extend(list, made);
}

static void take_reports(struct taking *t, const struct yaml_pair *pair) {
  const struct yaml_node *list = yaml_get(pair->value, "report");
  json_put(
      t->out, "output_contracts",
      json_pack("{so}", "report", maps_of(t, list ? list : pair->value, report_fates, "name")));
}

/* A sentence becomes a policy, a command a gate. */
static void take_gates(struct taking *t, const struct yaml_pair *pair) {
  for (size_t k = 0; k < list_count(pair->value); k++) {
    const struct yaml_node *gate = pair->value->items[k], *time = yaml_get(gate, "timeout_ms");
    json_auto_t *given = yaml_to_json(gate);
    json_t *command = json_object_get(given, "command"), *made = NULL;
    bool fits = json_is_string(command) && !t->child;
    if (json_is_string(given))
      add_once(list_in(t->out, "policy"), json_incref(given));
    else if (fits)
      made = json_pack("{s[ssO] sO* sO*}", "command", "sh", "-c", command, "name",
                       json_object_get(given, "name"), "cwd", json_object_get(given, "cwd"));
    if (made != NULL && time != NULL && time->kind == YAML_INTEGER)
      json_put(made, "timeout", json_sprintf("%llds", (time->integer + 999) / 1000));
    if (made != NULL)
      json_array_append_new(list_in(t->out, "gates"), made);
    const char *why = made ? "it is a gate of the movement" : "the sentence is a policy";
    if (made == NULL && gate->kind != YAML_TEXT)
      import_tell(t->i, gate, t->in, pair->key->text, IMPOSSIBLE,
                  "let a command movement check the work");
    else
      import_tell(t->i, gate, t->in, pair->key->text, CHANGED, "%s", why);
  }
}

/* --- movements --- */

static void take_schema(struct taking *t, const struct yaml_pair *pair) {
  struct str ref = text_in(pair->value, "schema_ref");
  const struct yaml_node *path = yaml_get(yaml_get(t->f->root, "schemas"), ref.p);
  struct facets *facets = &t->f->facets;
  buf_auto_t text = {0};
  struct err err = {0};
  bool above = path != NULL && facets->above != NULL && str_starts(path->text, "../");
  if (path == NULL || path->kind != YAML_TEXT ||
      !import_read(t->i, path, above ? facets->above : facets->folder,
                   path->text.p + (above ? 3 : 0), LIMIT_WORKFLOW_BYTES, &text)) {
    TELL(t, pair, IMPOSSIBLE,
         "there is no such schema: write structured_output: {schema: FILE, on_failure: error}");
    return;
  }
  json_t *schema = yaml_load(path->text.p, buf_view(&text), LIMIT_WORKFLOW_BYTES, &err);
  if (schema == NULL) {
    import_tell(t->i, path, t->in, pair->key->text, IMPOSSIBLE, "%s", err.text);
    return;
  }
  TELL(t, pair, CHANGED,
       "the schema is in the movement; without a value the session ends as failed");
  json_put(t->out, "structured_output",
           json_pack("{so ss}", "schema", schema, "on_failure", "error"));
}

static void take_tools(struct taking *t, const struct yaml_pair *pair) {
  const struct yaml_node *list = pair->value;
  if (str_eq_c(pair->key->text, "provider_options"))
    list = yaml_get(yaml_get(list, "claude"), "allowed_tools");
  json_auto_t *tools = list && list->kind == YAML_LIST ? yaml_to_json(list) : NULL;
  if (tools != NULL)
    json_object_set(t->out, "", tools); /* until all keys are read: permission may come later */
  TELL(t, pair, CHANGED, "%s",
       tools ? "what writes is permission: edit, Bash(make *) is run: [make]" : AGENTS_OWN);
}

static void take_call(struct taking *t, const struct yaml_pair *pair);
static void take_children(struct taking *t, const struct yaml_pair *pair);

static const struct fate step_fates[] = {
    {.keys = "name description edit required_permission_mode model session_key "
             "pass_previous_response concurrency"},
    {.keys = "kind mode", .needless = "its other keys say what it is"},
    {.keys = "call", .take = take_call},
    {.keys = "persona agent policy knowledge instruction instruction_template prompt",
     .take = take_facet},
    {.keys = "permission_mode", .as = "required_permission_mode"},
    {.keys = "provider", .words = PROVIDERS},
    {.keys = "session", .words = "compact=continue"},
    {.keys = "rules", .take = take_rules},
    {.keys = "output_contracts", .take = take_reports},
    {.keys = "quality_gates", .take = take_gates},
    {.keys = "structured_output", .take = take_schema},
    {.keys = "parallel", .take = take_children},
    {.keys = "args team_leader", .take = take_elsewhere},
    {.keys = "dynamic_facets", .take = take_pool},
    {.keys = "allowed_tools provider_options", .take = take_tools},
    {.keys = "persona_name", .needless = "logs and pages name the movement"},
    {.keys = "tags", .needless = "name the movement's provider in it"},
    {.keys = "capabilities mcp mcp_servers", .needless = AGENTS_OWN},
    {.keys = "allow_git_commit", .needless = "write commit: movement or end at the top"},
    {.keys = "requires_user_input", .needless = "a session waits for its person, however long"},
    {.keys = "delay_before_ms", .why = "run sleep in a command movement before it"},
    {.keys = "system_inputs", .why = "let a command movement print it"},
    {.keys = "effects", .why = "let a command movement do it"},
    {.keys = "arpeggio", .why = "run segue ask --batch over the rows, or write for_each"},
    {.keys = "vars", .why = "write the values into the instruction"},
    {.keys = "overrides", .why = "write the keys into the workflow that is called"},
    {.keys = "completion_retry", .why = "let a rule lead back to the movement"},
    {.keys = "companion", .why = "let a movement of its own review the work"},
    {.keys = "promotion", .why = "list providers to fall back to"},
    {0}};

/* Lays the keys of `over` over those of `base`: maps are joined, anything else is replaced. */
static const struct yaml_node *laid_over(struct import *i, const struct yaml_node *base,
                                         const struct yaml_node *over) {
  struct yaml_node *made = arena_alloc(&i->arena, sizeof *made);
  if (base->kind != YAML_MAP || over->kind != YAML_MAP)
    return over;
  *made = *over;
  made->pairs = arena_array(&i->arena, base->count + over->count + 1, sizeof *made->pairs);
  made->count = 0;
  for (size_t k = 0; k < base->count; k++) {
    struct yaml_pair pair = base->pairs[k];
    const struct yaml_node *own = yaml_get(over, pair.key->text.p);
    if (own != NULL)
      pair.value = laid_over(i, pair.value, own);
    made->pairs[made->count++] = pair;
  }
  for (size_t k = 0; k < over->count; k++)
    if (yaml_get(base, over->pairs[k].key->text.p) == NULL)
      made->pairs[made->count++] = over->pairs[k];
  return made;
}

static struct yaml_node *map_with(struct import *i, const struct yaml_node *like, size_t room) {
  struct yaml_node *map = arena_alloc(&i->arena, sizeof *map);
  *map = (struct yaml_node){
      .kind = YAML_MAP, .origin = like->origin, .line = like->line, .column = like->column};
  map->pairs = arena_array(&i->arena, room + 1, sizeof *map->pairs);
  return map;
}

/* Returns the params of a file: those that are given, else what it declares as their default. */
static const struct yaml_node *params_of(struct import *i, const struct yaml_node *declared,
                                         const struct yaml_node *given) {
  size_t room = declared && declared->kind == YAML_MAP ? declared->count : 0;
  struct yaml_node none = {.kind = YAML_MAP};
  struct yaml_node *map = map_with(i, declared ? declared : &none, room);
  for (size_t k = 0; k < room; k++) {
    const struct yaml_pair *pair = &declared->pairs[k];
    const struct yaml_node *value = yaml_get(given, pair->key->text.p);
    if (value == NULL)
      value = yaml_get(pair->value, "default");
    if (value != NULL)
      map->pairs[map->count++] = (struct yaml_pair){pair->key, value};
  }
  return map;
}

static const struct yaml_node *without(struct import *i, const struct yaml_node *map,
                                       const char *keys) {
  struct yaml_node *made = map_with(i, map, map->count);
  for (size_t k = 0; k < map->count; k++)
    if (!str_among(map->pairs[k].key->text, keys))
      made->pairs[made->count++] = map->pairs[k];
  return made;
}

/* Returns a step with what it shares (`uses`) written out. */
static const struct yaml_node *whole_step(struct import *i, const struct imported *f,
                                          const struct yaml_node *step) {
  static const char *const folders[] = {"steps", NULL};
  for (unsigned depth = 0; step->kind == YAML_MAP; depth++) {
    const struct yaml_node *uses = yaml_get(step, "uses");
    char path[IMPORT_PATH_BYTES];
    buf_auto_t text = {0};
    if (uses == NULL)
      break;
    struct str name = uses->text;
    bool there =
        uses->kind == YAML_TEXT && depth < LIMIT_CALL_DEPTH &&
        import_find(i, uses, import_folder_of(i, f->path), name, folders, yaml_ends, path, &text);
    const struct yaml_node *shared = there ? parse_file(i, path, buf_view(&text)) : NULL;
    if (shared == NULL) {
      import_tell(i, uses, "", name, IMPOSSIBLE, "%s",
                  depth < LIMIT_CALL_DEPTH ? "there is no such shared step" : "it leads back");
      step = without(i, step, "uses with");
      break;
    }
    import_tell(i, uses, "", STR("uses"), CHANGED, "%.300s is written out where it is used", path);
    const struct yaml_node *with = params_of(i, yaml_get(shared, "params"), yaml_get(step, "with"));
    shared = with_params(i, NULL, with, without(i, shared, "params"));
    step = laid_over(i, shared, without(i, step, "uses with"));
  }
  return step;
}

static json_t *movement_from(struct taking *of, const struct yaml_node *step, bool child);

/* Takes the children of a group; of those that a model would have picked, all. */
static void take_children(struct taking *t, const struct yaml_pair *pair) {
  static const char *const parts[] = {"fixed", "pool", NULL};
  json_t *children = json_array();
  const struct yaml_node *rules = yaml_get(yaml_get(t->map, "rules"), "parallel");
  bool picked = pair->value->kind == YAML_MAP;
  size_t editors = 0;
  for (size_t p = 0; p < (picked ? 2 : 1); p++) {
    const struct yaml_node *list = picked ? yaml_get(pair->value, parts[p]) : pair->value;
    for (size_t k = 0; k < list_count(list); k++) {
      json_t *child = movement_from(t, list->items[k], true);
      const char *name = json_string_value(json_object_get(child, "name"));
      struct taking inner = *t;
      inner.child = true;
      inner.in = name ? arena_strdup(&t->i->arena, name) : "";
      if (json_object_get(child, "rules") == NULL && name != NULL && yaml_get(rules, name) != NULL)
        json_put(child, "rules", rules_from(&inner, yaml_get(rules, name)));
      editors += foreign_keys_may_edit(child);
      json_array_append_new(children, child);
    }
  }
  TELL(t, pair, picked ? CHANGED : SAME, "%s",
       picked ? "all of them run: nobody picks among them" : "");
  if (editors > 1 && yaml_get(t->map, "concurrency") == NULL) {
    json_put(t->out, "concurrency", json_integer(1));
    TELL(t, pair, CHANGED, "%zu of them may change the same files: they run one after the other",
         editors);
  }
  json_put(t->out, "parallel", children);
}

static json_t *movement_from(struct taking *of, const struct yaml_node *step, bool child) {
  struct str uses = text_in(step, "uses");
  step = whole_step(of->i, of->f, step);
  struct str name = text_in(step, "name");
  struct taking t = *of;
  for (bool named = name.n > 0; !named && uses.n > 0;) /* as the shared step: its last part */
    name = str_cut(&uses, '/');
  t.map = step;
  t.child = child;
  t.in = arena_str(&of->i->arena, name).p;
  t.out = json_object();
  if (t.in[0] != '\0') /* first, whatever shared steps begin with */
    json_put(t.out, "name", json_string(t.in));
  if (step->kind != YAML_MAP) {
    import_tell(of->i, step, of->in, STR(""), IMPOSSIBLE, "a step is a map of keys and values");
    return t.out;
  }
  take_keys(&t, step_fates);
  json_auto_t *tools = json_incref(json_object_get(t.out, ""));
  json_object_del(t.out, "");
  foreign_keys_take_tools(tools, t.out);
  json_t *rules = json_incref(json_object_get(t.out, "rules"));
  json_object_del(t.out, "rules");
  bool agent = json_object_get(t.out, "call") == NULL && json_object_get(t.out, "parallel") == NULL;
  JSON_EACH(of->f->everywhere, k, policy)
    if (agent)
      add_once(list_in(t.out, "policy"), json_incref(policy));
  if (agent && json_object_get(t.out, "instruction") == NULL)
    json_put(t.out, "instruction", json_string("{task}"));
  if (rules != NULL)
    json_put(t.out, "rules", rules);
  return t.out;
}

static const struct fate team_fates[] = {
    {.keys = "persona", .take = take_facet},
    {.keys = "part_edit", .as = "edit"},
    {.keys = "part_permission_mode", .as = "required_permission_mode"},
    {.keys = "part_allowed_tools", .take = take_tools},
    {.keys = "part_persona max_parts max_concurrency timeout_ms", .take = take_elsewhere},
    {.keys = "initial_max_parts refill_threshold", .needless = "the plan is made once"},
    {.keys = "fail_on_part_error", .needless = "write a rule with any(\"error\")"},
    {.keys = "inspect_tools", .needless = AGENTS_OWN},
    {.keys = "part_tags", .needless = "name the part's provider in it"},
    {0}};

static json_int_t number_in(const struct yaml_node *map, const char *key, json_int_t otherwise) {
  const struct yaml_node *node = yaml_get(map, key);
  return node != NULL && node->kind == YAML_INTEGER ? node->integer : otherwise;
}

static void move_key(json_t *from, json_t *to, const char *key, bool copy) {
  json_t *value = json_object_get(from, key);
  if (value != NULL && json_object_get(to, key) == NULL)
    json_object_set(to, key, value);
  if (!copy)
    json_object_del(from, key);
}

/* Returns the movement that does one part. What the leader itself is goes to `plan`. */
static json_t *part_of(struct taking *t, json_t *plan) {
  const struct yaml_node *persona = yaml_get(t->map, "part_persona");
  json_int_t time = number_in(t->map, "timeout_ms", 0);
  json_t *part = t->out = json_pack("{ss}", "name", "part");
  take_keys(t, team_fates);
  json_auto_t *tools = json_incref(json_object_get(part, ""));
  json_object_del(part, "");
  json_auto_t *leader = json_incref(json_object_get(part, "persona"));
  json_object_del(part, "persona");
  if (persona != NULL)
    json_put(part, "persona", facet_of(t, FACET_PERSONA, persona, STR("part_persona")));
  move_key(plan, part, "persona", leader == NULL);
  move_key(plan, part, "policy", true);
  move_key(plan, part, "knowledge", true);
  move_key(plan, part, "edit", false);
  move_key(plan, part, "required_permission_mode", false);
  if (leader != NULL)
    json_object_set(plan, "persona", leader);
  foreign_keys_take_tools(tools, part);
  if (time > 0)
    json_put(part, "timeout", json_sprintf("%" JSON_INTEGER_FORMAT "s", (time + 999) / 1000));
  json_put(part, "instruction",
           json_string("Do part {index} of the work: {item.title}\n\n{item.instruction}"));
  json_put(part, "rules", json_pack("[{ss} {ss}]", "condition", "done", "condition", "not done"));
  return part;
}

/* Splits a step that a leader hands out in parts: the plan of the parts, each part, and, if there
 * are reports to write, their end. Where rules lead stays as it was. */
static void split_team(struct taking *of, const struct yaml_node *step,
                       const struct yaml_node *team, json_t *plan, json_t *movements) {
  struct taking t = *of;
  struct str name = json_view_at(plan, "name");
  json_int_t most = number_in(team, "max_parts", 3);
  t.map = team;
  t.in = arena_str(&of->i->arena, name).p;
  json_t *part = part_of(&t, plan), *last = json_object();
  bool reports = json_object_get(plan, "output_contracts") != NULL,
       edits = foreign_keys_may_edit(part);
  json_int_t width = edits ? 1 : number_in(team, "max_concurrency", most);
  json_t *group = json_pack("{so so sI s[o]}", "name", json_sprintf("%s-parts", t.in), "for_each",
                            json_sprintf("%s.parts", t.in), "concurrency", width, "parallel", part);
  json_put(last, "name", json_sprintf("%s-end", t.in));
  move_key(plan, last, "persona", true);
  json_put(last, "instruction",
           json_string("The parts of the work are done. Put their results together."));
  move_key(plan, last, "output_contracts", false);
  move_key(plan, last, "gates", false);
  move_key(plan, last, "rules", false);
  json_put(plan, "structured_output",
           json_pack("{ss s{ss s[s] s{s{ss si sI s{ss s[ss] s{s{ss} s{ss}}}}}}}", "on_failure",
                     "escalate", "schema", "type", "object", "required", "parts", "properties",
                     "parts", "type", "array", "minItems", 1, "maxItems", most, "items", "type",
                     "object", "required", "title", "instruction", "properties", "title", "type",
                     "string", "instruction", "type", "string"));
  json_put(
      plan, "rules",
      json_pack("[{ss sO}]", "condition", "when(true)", "next", json_object_get(group, "name")));
  json_array_append_new(movements, group);
  if (reports) {
    json_put(
        group, "rules",
        json_pack("[{ss sO}]", "condition", "when(true)", "next", json_object_get(last, "name")));
    json_array_append(movements, last);
  } else {
    move_key(last, group, "gates", true);
    move_key(last, group, "rules", true);
  }
  import_tell(of->i, step, t.in, STR("team_leader"), CHANGED,
              "%s plans the parts once, %s-parts does them (for_each)%s%s", t.in, t.in,
              reports ? ", and the last movement writes the reports" : "",
              edits ? "; they may change files, so one after the other" : "");
  json_decref(last);
}

/* --- workflows --- */

static const char *import_one(struct import *i, const char *path, struct str text,
                              const struct yaml_node *args, json_t **doc);

/* The monitors of a called workflow count in the one that calls it, with the names that its
 * movements have there. */
static void call_monitors(struct taking *t, const json_t *called) {
  struct str call = str_from(t->in);
  JSON_EACH(json_object_get(called, "loop_monitors"), k, monitor) {
    json_auto_t *copy = json_clone(monitor);
    const json_t *own_rules = json_object_get(t->out, "rules");
    for (int list = 0; list < 2; list++)
      JSON_EACH(json_object_get(copy, list ? "ignore" : "cycle"), n, name)
        json_array_set_new(json_object_get(copy, list ? "ignore" : "cycle"), n,
                           json_sprintf(STR_FMT "/%s", STR_ARG(call), json_string_value(name)));
    JSON_EACH(json_object_get(json_object_get(copy, "judge"), "rules"), n, rule) {
      struct str next = json_view_at(rule, "next");
      json_t *leads = json_sprintf(STR_FMT "/" STR_FMT, STR_ARG(call), STR_ARG(next));
      if (str_among(next, "COMPLETE ABORT"))
        json_string_set(leads, "ABORT");
      JSON_EACH((json_t *)(size_t)own_rules, r, own)
        if (str_eq(json_view_at(own, "condition"), next) && json_object_get(own, "next") != NULL)
          json_string_set(leads, json_string_value(json_object_get(own, "next")));
      json_object_set_new(rule, "next", leads);
    }
    json_array_append(list_in(t->f->doc, "loop_monitors"), copy);
  }
}

static void take_call(struct taking *t, const struct yaml_pair *pair) {
  static const char *const folders[] = {"workflows", "pieces", NULL};
  char path[IMPORT_PATH_BYTES];
  buf_auto_t text = {0};
  struct str name = pair->value->text;
  json_auto_t *doc = NULL;
  if (t->child) {
    TELL(t, pair, IMPOSSIBLE,
         "a child of a group calls no workflow: call it from a movement of its own");
    return;
  }
  if (pair->value->kind != YAML_TEXT ||
      !import_find(t->i, pair->value, import_folder_of(t->i, t->f->path), name, folders, yaml_ends,
                   path, &text)) {
    TELL(t, pair, IMPOSSIBLE, "there is no workflow of this name: write it into .segue/workflows");
    json_put(t->out, "call", yaml_to_json(pair->value));
    return;
  }
  const char *made = import_one(t->i, path, buf_view(&text), yaml_get(t->map, "args"), &doc);
  if (made == NULL) {
    TELL(t, pair, IMPOSSIBLE,
         "the workflow that it calls cannot be imported, or calls lead back to it");
    made = arena_str(&t->i->arena, name).p;
  } else if (str_eq_c(name, made)) {
    TELL(t, pair, SAME, "%s", "");
  } else {
    TELL(t, pair, CHANGED, "with these args it is %s", made);
  }
  json_put(t->out, "call", json_string(made));
  if (json_object_get(t->out, "rules") == NULL)
    json_put(t->out, "rules", rules_from(t, yaml_get(t->map, "rules")));
  call_monitors(t, doc);
}

static void take_subworkflow(struct taking *t, const struct yaml_pair *pair) {
  const struct yaml_node *returns = yaml_get(pair->value, "returns");
  if (returns != NULL)
    json_put(t->out, "returns", yaml_to_json(returns));
  TELL(t, pair, CHANGED, "%s%s",
       returns ? "returns stands at the top" : "any workflow can be called",
       yaml_get(pair->value, "params") ? "; the params' values are written out" : "");
}

static void take_everywhere(struct taking *t, const struct yaml_pair *pair) {
  static const char *const folders[] = {"rules", "workflows/rules", NULL};
  static const char *const ends[] = {".md", ".txt", "", NULL};
  const struct yaml_node *list = yaml_get(pair->value, "rules");
  for (size_t k = 0; k < list_count(list); k++) {
    const struct yaml_node *item = list->items[k], *ref = yaml_get(item, "ref");
    struct str name = (ref ? ref : item)->text;
    char path[IMPORT_PATH_BYTES], beside[IMPORT_PATH_BYTES];
    buf_auto_t text = {0};
    print_into(beside, sizeof beside, "%.2000s/rules", import_folder_of(t->i, t->f->path));
    if (name.n == 0 || !import_find(t->i, item, beside, name, folders, ends, path, &text)) {
      import_tell(t->i, item, t->in, pair->key->text, IMPOSSIBLE,
                  "there is no such rule: write it as a policy of each movement");
      continue;
    }
    if (memrchr(name.p, '/', name.n) != NULL)
      name = str_from(strrchr(name.p, '/') + 1);
    if (str_ends(name, ".md"))
      name.n -= 3;
    const char *own = import_put_file(t->i, "facets/policies", name, ".md", buf_view(&text));
    add_once(t->f->everywhere, json_string(own));
    import_tell(t->i, item, t->in, pair->key->text, CHANGED, "%s is a policy of each movement",
                own);
  }
}

static void take_steps(struct taking *t, const struct yaml_pair *pair) {
  json_t *movements = json_array();
  TELL(t, pair, SAME, "%s", "");
  for (size_t k = 0; k < list_count(pair->value); k++) {
    const struct yaml_node *step = whole_step(t->i, t->f, pair->value->items[k]);
    const struct yaml_node *team = yaml_get(step, "team_leader");
    json_t *movement = movement_from(t, pair->value->items[k], false);
    json_array_append_new(movements, movement);
    if (team != NULL && team->kind == YAML_MAP)
      split_team(t, step, team, movement, movements);
  }
  json_put(t->out, "movements", movements);
}

static const struct fate top_fates[] = {
    {.keys = "name description model max_movements initial_movement"},
    {.keys = "provider", .words = PROVIDERS},
    {.keys = "subworkflow", .take = take_subworkflow},
    {.keys = "max_steps max_iterations", .as = "max_movements"},
    {.keys = "initial_step", .as = "initial_movement"},
    {.keys = "all_steps", .take = take_elsewhere},
    {.keys = "loop_monitors", .take = take_monitors},
    {.keys = "steps movements", .take = take_steps},
    {.keys = "personas policies knowledge instructions report_formats output_contracts "
             "facet_pools schemas",
     .needless = "what is in it stands where it is used"},
    {.keys = "piece_config workflow_config provider_options capabilities mcp_servers",
     .needless = AGENTS_OWN},
    {.keys = "interactive_mode", .needless = "the task comes from --task"},
    {.keys = "answer_agent", .needless = "segue answers no questions of agents"},
    {.keys = "auto_routing", .why = "name a movement's provider in it"},
    {.keys = "rate_limit_fallback", .why = "write provider: [first, second]"},
    {.keys = "permission_mode", .why = "write permission into the movements"},
    {0}};

static void find_facets(struct import *i, struct imported *f, struct facets_more more[3]) {
  static const char *const sections[FACET_KIND_COUNT] = {"personas", "policies", "knowledge",
                                                         "instructions", "report_formats"};
  char *of_takt = arena_printf(&i->arena, "%s/facets", i->takt),
       *of_home = arena_printf(&i->arena, "%s/facets", i->home),
       *of_builtins = arena_printf(&i->arena, "%s/facets", i->builtins);
  size_t n = 0;
  if (i->builtins[0] != '\0')
    more[n++] = (struct facets_more){"takt", of_builtins};
  if (i->own[0] != '\0')
    more[n++] = (struct facets_more){"segue", i->own};
  more[n] = (struct facets_more){0};
  f->facets = (struct facets){.foreign = true, .more = more, .project = of_takt};
  f->facets.home = i->home[0] ? of_home : NULL;
  facets_beside(&f->facets, &i->arena, f->path);
  for (size_t k = 0; k < FACET_KIND_COUNT; k++) {
    const struct yaml_node *map = yaml_get(f->root, sections[k]);
    f->facets.sections[k] = map && map->kind == YAML_MAP ? map : NULL;
  }
}

/* Imports a workflow with these args. Returns the name that it has in .segue/workflows; NULL: it is
 * left out, which was told or is told by the caller. */
static const char *import_one(struct import *i, const char *path, struct str text,
                              const struct yaml_node *args, json_t **doc) {
  struct facets_more more[3];
  if (i->depth >= LIMIT_CALL_DEPTH || i->call_count >= LIMIT_CALL_COUNT)
    return NULL;
  struct imported f = {.path = arena_strdup(&i->arena, path), .root = parse_file(i, path, text)};
  if (f.root == NULL)
    return NULL;
  const struct yaml_node *sub = yaml_get(f.root, "subworkflow"),
                         *all = yaml_get(f.root, "all_steps");
  f.root = with_params(i, NULL, params_of(i, yaml_get(sub, "params"), args), f.root);
  i->depth++;
  i->call_count++;
  find_facets(i, &f, more);
  f.everywhere = json_array();
  f.doc = json_object();
  struct taking t = {.i = i, .f = &f, .map = f.root, .in = "", .out = f.doc};
  struct yaml_node everywhere = place_of(f.root->origin, 1, 1);
  everywhere.text = STR("all_steps");
  if (all != NULL)
    take_everywhere(&t, &(struct yaml_pair){&everywhere, all});
  take_keys(&t, top_fates);
  if (i->japanese)
    json_put(f.doc, "language", json_string("ja"));
  json_put(f.doc, "judge", json_pack("{ss}", "fallback", "own_tag"));
  buf_auto_t made = {0};
  yaml_write(f.doc, &made);
  const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *dot = strrchr(base, '.');
  struct str name = {base, dot ? (size_t)(dot - base) : strlen(base)};
  const char *own = import_put_file(i, "workflows", name, ".yaml", buf_view(&made));
  i->depth--;
  json_decref(f.everywhere);
  *doc = f.doc;
  return own;
}

void import_begin(struct import *i) {
  i->files = json_object();
  i->workflows = json_array();
  i->lines = json_object();
}

void import_deinit(struct import *i) {
  json_decref(i->files);
  json_decref(i->workflows);
  json_decref(i->lines);
  arena_deinit(&i->arena);
}

void import_workflow(struct import *i, const char *path) {
  buf_auto_t text = {0};
  struct err err = {0};
  json_auto_t *doc = NULL;
  struct yaml_origin *origin = arena_alloc(&i->arena, sizeof *origin);
  origin->file = arena_strdup(&i->arena, path);
  struct yaml_node at = place_of(origin, 1, 1);
  i->call_count = 0;
  const char *name = NULL;
  if (!file_read(path, LIMIT_WORKFLOW_BYTES, &text, &err))
    import_tell(i, &at, "", STR(""), IMPOSSIBLE, "%s", err.text);
  else
    name = import_one(i, path, buf_view(&text), NULL, &doc);
  if (name != NULL)
    json_array_append_new(i->workflows, json_pack("{ss so}", "from", path, "to",
                                                  json_sprintf("workflows/%s.yaml", name)));
}
