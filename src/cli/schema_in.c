/* Reads schemas for commands, and keeps compiled ones for the lines of a batch. */
#include "cli/schema_in.h"

#include "base/file.h"
#include "cli/json_io.h"
#include "os/fs.h"
#include "workflow/schemas.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Decodes the rest of a URI, with its percent escapes, into a path below a folder. */
static bool path_of(const char *rest, char path[REGISTRY_IN_URI_BYTES]) {
  size_t n = 0;
  while (*rest == '/')
    rest++;
  for (; *rest; rest++) {
    char c = *rest;
    if (c == '%') {
      int high = str_hex_digit(rest[1]), low = high < 0 ? -1 : str_hex_digit(rest[2]);
      c = (char)(high * 16 + low);
      if (low < 0 || c == '\0' || c == '/')
        return false;
      rest += 2;
    }
    if (n + 1 == REGISTRY_IN_URI_BYTES)
      return false;
    path[n++] = c;
  }
  path[n] = '\0';
  return n > 0;
}

static json_t *read_document(struct registry_in *r, size_t dir, const char *path) {
  buf_auto_t text = {0}, name = {0};
  struct stat st;
  json_t *doc = NULL;
  int fd = fs_open_beneath(r->dirs[dir].fd, path, O_RDONLY);
  if (fd < 0)
    return NULL;
  buf_printf(&name, "%s/%s", r->dirs[dir].path, path);
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    err_set(&r->err, ERR_IO, "%s is not a file", name.p);
  else if (file_read_fd(fd, name.p, JSON_IO_BYTES, &text, &r->err))
    doc = json_io_text(name.p, buf_view(&text), JSON_IO_SCHEMA, &r->err);
  close(fd);
  return doc;
}

static json_t *load(void *arg, const char *uri) {
  struct registry_in *r = arg;
  char path[REGISTRY_IN_URI_BYTES];
  size_t best = r->dir_count, most = 0;
  for (size_t i = 0; i < r->doc_count; i++)
    if (strcmp(r->docs[i].uri, uri) == 0)
      return json_incref(r->docs[i].doc);
  for (size_t i = 0; i < r->dir_count; i++) {
    struct str prefix = r->dirs[i].prefix;
    bool beside = prefix.n == 0 && strchr(uri, ':') == NULL;
    bool fits = prefix.n > 0 && strncmp(uri, prefix.p, prefix.n) == 0 &&
                (prefix.p[prefix.n - 1] == '/' || uri[prefix.n] == '/');
    if (beside || (fits && prefix.n > most)) {
      most = prefix.n;
      best = i;
    }
  }
  if (best == r->dir_count || !path_of(uri + most, path))
    return NULL;
  json_t *doc = read_document(r, best, path);
  if (doc != NULL && r->doc_count < REGISTRY_IN_DOCUMENTS) {
    r->docs[r->doc_count].uri = xstrdup(uri);
    r->docs[r->doc_count++].doc = json_incref(doc);
  }
  return doc;
}

static void add_folder(struct registry_in *r, struct str prefix, char *owned_path, int fd) {
  if (r->schemas == NULL) {
    r->schemas = schema_registry_new();
    schema_registry_set_loader(r->schemas, load, r);
  }
  r->dirs[r->dir_count].prefix = prefix;
  r->dirs[r->dir_count].path = owned_path;
  r->dirs[r->dir_count++].fd = fd;
}

/* Adds "PREFIX=DIR"; the prefix is borrowed. */
static bool registry_in_add(struct registry_in *r, const char *text, struct err *err) {
  assert(r->dir_count <= REGISTRY_IN_DIRS);
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text || equals[1] == '\0')
    return err_set(err, ERR_USAGE,
                   "--registry %s: write PREFIX=DIR, as in http://localhost:1234/=remotes", text);
  if (r->dir_count == REGISTRY_IN_DIRS)
    return err_set(err, ERR_LIMIT, "more than %d times --registry", REGISTRY_IN_DIRS);
  int fd = open(equals + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return err_set_errno(err, errno, "--registry: cannot open the folder %s", equals + 1);
  add_folder(r, (struct str){text, (size_t)(equals - text)}, xstrdup(equals + 1), fd);
  return true;
}

void registry_in_beside(struct registry_in *r, const char *file, struct schema_opts *opts) {
  const char *slash = strrchr(file, '/');
  char *folder = slash == NULL ? xstrdup(".") : xstrndup(file, (size_t)(slash - file) + 1);
  int fd = -1;
  if (r->dir_count < REGISTRY_IN_DIRS && strcmp(file, "-") != 0)
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    free(folder);
    return;
  }
  add_folder(r, (struct str){"", 0}, folder, fd);
  opts->registry = r->schemas;
}

bool registry_in_options(struct registry_in *r, const struct cli_args *args,
                         struct schema_opts *opts, struct err *err) {
  static const struct {
    const char *name, *uri;
  } drafts[] = {{"04", "http://json-schema.org/draft-07/schema#"}, /* see schema/upgrade.h */
                {"06", "http://json-schema.org/draft-06/schema#"},
                {"2020-12", "https://json-schema.org/draft/2020-12/schema"},
                {"2019-09", "https://json-schema.org/draft/2019-09/schema"},
                {"07", "http://json-schema.org/draft-07/schema#"},
                {"7", "http://json-schema.org/draft-07/schema#"}};
  const char *draft = cli_value(args, "draft"), *folder;
  for (size_t i = 0; draft != NULL && i < ARRAY_LEN(drafts); i++)
    if (strcmp(draft, drafts[i].name) == 0)
      opts->default_draft = drafts[i].uri;
  if (draft != NULL && opts->default_draft == NULL)
    return err_set(err, ERR_USAGE, "--draft must be 2020-12, 2019-09, 07, 06 or 04");
  for (size_t i = 0; (folder = cli_values(args, "registry", i)) != NULL; i++)
    if (!registry_in_add(r, folder, err))
      return false;
  opts->registry = r->schemas;
  return true;
}

void registry_in_deinit(struct registry_in *r) {
  for (size_t i = 0; i < r->dir_count; i++) {
    close(r->dirs[i].fd);
    free(r->dirs[i].path);
  }
  for (size_t i = 0; i < r->doc_count; i++) {
    free(r->docs[i].uri);
    json_decref(r->docs[i].doc);
  }
  schema_registry_free(r->schemas);
  *r = (struct registry_in){0};
}

static void cache_drop(struct schema_cache *cache, size_t i) {
  assert(i < cache->count);
  assert(cache->bytes >= cache->items[i].n);
  cache->bytes -= cache->items[i].n;
  free(cache->items[i].text);
  schema_free(cache->items[i].schema);
  cache->items[i] = cache->items[--cache->count];
}

static void cache_make_room(struct schema_cache *cache, size_t n) {
  while (cache->count > 0 &&
         (cache->count == SCHEMA_CACHE_COUNT || cache->bytes + n > SCHEMA_CACHE_BYTES)) {
    size_t oldest = 0;
    for (size_t i = 1; i < cache->count; i++)
      if (cache->items[i].used < cache->items[oldest].used)
        oldest = i;
    cache_drop(cache, oldest);
  }
}

const struct schema *schema_cache_get(struct schema_cache *cache, const json_t *doc,
                                      const struct schema_opts *opts, struct schema_errors *errs,
                                      enum schema_status *status) {
  assert(doc != NULL);
  assert(cache->count <= SCHEMA_CACHE_COUNT);
  buf_auto_t text = {0};
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a; equality is by the bytes */
  json_io_write(doc, JSON_IO_COMPACT, &text);
  for (size_t i = 0; i < text.n; i++)
    hash = (hash ^ (unsigned char)text.p[i]) * 0x100000001b3u;
  *status = SCHEMA_OK;
  for (size_t i = 0; i < cache->count; i++)
    if (cache->items[i].hash == hash && cache->items[i].n == text.n &&
        memcmp(cache->items[i].text, text.p, text.n) == 0) {
      cache->items[i].used = ++cache->clock;
      return cache->items[i].schema;
    }
  struct schema *schema = schema_compile(doc, opts, errs, status);
  if (schema == NULL)
    return NULL;
  cache_make_room(cache, text.n);
  size_t i = cache->count++;
  cache->items[i].n = text.n;
  cache->items[i].text = buf_take(&text);
  cache->items[i].hash = hash;
  cache->items[i].used = ++cache->clock;
  cache->items[i].schema = schema;
  cache->bytes += cache->items[i].n;
  return schema;
}

void schema_cache_deinit(struct schema_cache *cache) {
  while (cache->count > 0)
    cache_drop(cache, cache->count - 1);
}

json_t *schema_errors_json(const struct schema_errors *errs) {
  json_t *list = json_array();
  for (size_t i = 0; i < errs->count; i++) {
    const struct schema_error *e = &errs->items[i];
    json_array_append_new(list, json_pack("{so so so so}", "path", json_io_string(e->path),
                                          "pointer", json_io_string(e->pointer), "keyword",
                                          json_io_string(e->keyword), "message",
                                          json_io_string(e->message)));
  }
  return list;
}

void schema_errors_print(FILE *to, const char *file, const struct schema_errors *errs) {
  for (size_t i = 0; i < errs->count; i++)
    cli_say(to, "%s: %s: %s\n", file, errs->items[i].path, errs->items[i].message);
  if (errs->dropped > 0)
    cli_say(to, "%s: and %zu more errors\n", file, errs->dropped);
}

void schema_trouble_print(const char *command, const char *file, const struct schema_errors *errs,
                          enum schema_status status, const struct registry_in *registry) {
  bool complex = status == SCHEMA_TOO_COMPLEX;
  fprintf(stderr, "segue %s: %s\n", command,
          complex ? "the schema is too complex" : "this is not a valid schema");
  schema_errors_print(stderr, file, errs);
  if (registry->err.code != ERR_NONE)
    (void)cli_fail(command, &registry->err);
}

static const struct resource *schema_in_find_in(const char *folder, const char *word) {
  buf_auto_t name = buf_of("%s/%s.json", folder, word);
  return resource_find(buf_c(&name));
}

const struct resource *schema_in_own(const char *word) {
  bool is_file = strpbrk(word, "/.") != NULL || access(word, F_OK) == 0;
  return is_file ? NULL : schema_in_find_in("schemas", word);
}

/* Suggests the schema of segue's own that was probably meant, if any. */
static bool no_such_schema(const char *word, struct err *err) {
  enum { MAX = 100 };
  char names[MAX][48];
  const char *list[MAX + 1] = {NULL};
  size_t n = 0;
  for (const struct resource *r = resource_table; r->name != NULL && n < MAX; r++) {
    const char *slash = strrchr(r->name, '/');
    if (strncmp(r->name, LIT("schemas/")) != 0 || !str_ends(str_from(r->name), ".json"))
      continue;
    print_into(names[n], sizeof names[n], "%.*s", (int)(strlen(slash + 1) - 5), slash + 1);
    list[n] = names[n];
    n++;
  }
  const char *near = str_nearest(str_from(word), list);
  return err_set(err, ERR_NOT_FOUND,
                 "there is no file %.200s, and no schema of that name comes with segue%s%s%s", word,
                 near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
}

json_t *schema_in_read(const char *word, struct err *err) {
  assert(word != NULL);
  const struct resource *ready = NULL;
  bool is_name = strpbrk(word, "/.") == NULL && access(word, F_OK) != 0;
  if (is_name)
    ready = schema_in_find_in("schemas/presets", word);
  if (ready == NULL)
    ready = schema_in_own(word);
  if (ready == NULL && is_name && strcmp(word, "-") != 0) {
    (void)no_such_schema(word, err);
    return NULL;
  }
  if (ready != NULL)
    return json_io_parse(ready->name, (struct str){ready->p, ready->n}, err);
  return json_io_file(word, JSON_IO_SCHEMA, err);
}

json_t *schema_in_line(json_t *schema, struct err *err) {
  const char *name = json_string_value(schema);
  if (name == NULL)
    return json_incref(schema);
  json_t *ready = preset_schema(str_from(name));
  if (ready == NULL)
    err_set(err, ERR_USAGE,
            "there is no built-in schema \"%.80s\": use %s, or write the schema itself", name,
            preset_names());
  return ready;
}
