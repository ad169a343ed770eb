/* Finds a facet's text by its name, path or words, never outside its folder. */
#include "workflow/facets.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "os/fs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum found { FOUND, NOT_FOUND, FAILED };

enum facet_from {
  FROM_WORKFLOW,
  FROM_ABOVE,
  FROM_ABOVE_FACETS,
  FROM_PROJECT,
  FROM_HOME,
  FROM_USER,
  FROM_COUNT
};

enum { PATH_BYTES = 4096 };

static void append_text(struct buf *out, struct str text) {
  if (str_starts(text, "\xEF\xBB\xBF"))
    text = (struct str){text.p + 3, text.n - 3};
  while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
    text.n--;
  buf_str(out, text);
}

static bool read_regular(int fd, const char *path, struct buf *out, struct err *err) {
  buf_auto_t text = {0};
  struct stat st;
  bool ok;
  if (fstat(fd, &st) != 0)
    ok = err_set_errno(err, errno, "cannot read %s", path);
  else if (!S_ISREG(st.st_mode))
    ok = err_set(err, ERR_INVALID, "%s is %s: a facet is a text file", path,
                 S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
  else
    ok = file_read_fd(fd, path, LIMIT_FACET_BYTES, &text, err);
  if (ok && memchr(buf_c(&text), '\0', text.n) != NULL)
    ok = err_set(err, ERR_INVALID, "%s contains a NUL byte: save it as UTF-8 text", path);
  if (ok && !utf8_valid(buf_c(&text), text.n))
    ok = err_set(err, ERR_INVALID, "%s is not UTF-8: save it as UTF-8 text", path);
  if (ok)
    append_text(out, buf_view(&text));
  return ok;
}

/* Reads the file at `path` beneath `folder`; folders count as not found when `bare`. */
static enum found read_beneath(const char *folder, const char *path, bool bare, struct buf *out,
                               struct err *err) {
  struct stat st;
  int root = folder ? fs_open_folder(folder) : -1;
  if (root < 0)
    return NOT_FOUND;
  int fd = fs_open_beneath(root, path, O_RDONLY), number = errno;
  close(root);
  if (fd < 0) {
    if (number == ENOENT || number == ENOTDIR)
      return NOT_FOUND;
    if (number == EXDEV || number == ELOOP)
      err_set(err, ERR_INVALID,
              "%s leads out of %s: copy the file there and write its path from there", path,
              folder);
    else
      err_set_errno(err, number, "cannot read %s in %s", path, folder);
    return FAILED;
  }
  if (bare && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
    close(fd);
    return NOT_FOUND;
  }
  bool ok = read_regular(fd, path, out, err);
  close(fd);
  return ok ? FOUND : FAILED;
}

bool facet_read(const char *folder, const char *path, struct buf *out, struct err *err) {
  if (folder == NULL)
    return err_set(err, ERR_NOT_FOUND,
                   "%s is a path, and this workflow did not come from a file: write the schema "
                   "itself there",
                   path);
  enum found found = read_beneath(folder, path, false, out, err);
  if (found == NOT_FOUND)
    return err_set(err, ERR_NOT_FOUND, "there is no file %s in %s: correct the path", path, folder);
  return found == FOUND;
}

static bool has_space(struct str s) {
  for (size_t i = 0; i < s.n; i++)
    if (s.p[i] == ' ' || (s.p[i] >= '\t' && s.p[i] <= '\r'))
      return true;
  return false;
}

static bool ends_with(struct str s, const char *end) {
  return s.n > strlen(end) && str_ends(s, end);
}

/* Returns true if the text is a path. A sentence may hold a slash (and Japanese has no spaces), so
 * a slash alone makes only plain ASCII a path. */
static bool facets_is_path(struct str s) {
  bool slash = false;
  if (has_space(s) || s.n >= PATH_BYTES)
    return false;
  if (ends_with(s, ".md") || ends_with(s, ".txt"))
    return true;
  for (size_t i = 0; i < s.n; i++) {
    if ((unsigned char)s.p[i] >= 0x80 || strchr("{}<>|*?\"'`;,()", s.p[i]) != NULL)
      return false;
    slash = slash || s.p[i] == '/';
  }
  return slash;
}

/* Those that a workflow can name, and what only includes and `uses` name. */
enum { PARTIAL = FACET_KIND_COUNT, FRAGMENT, LISTED_COUNT };

static const struct {
  const char *name, *folder;
} facets[LISTED_COUNT] = {
    [FACET_PERSONA] = {"persona", "personas"},
    [FACET_POLICY] = {"policy", "policies"},
    [FACET_KNOWLEDGE] = {"knowledge", "knowledge"},
    [FACET_INSTRUCTION] = {"instruction", "instructions"},
    [FACET_OUTPUT_CONTRACT] = {"output contract", "output-contracts"},
    [PARTIAL] = {"partial", "partials"},
    [FRAGMENT] = {"fragment", "fragments"},
};

/* A name may be written without its file's extension. */
static const char *const name_ends[] = {".md", ".txt", "", NULL};

enum { NAMED_BYTES = LIMIT_NAME_BYTES + 32 };

static void path_of_name(const char *kind_folder, struct str name, size_t end,
                         char out[NAMED_BYTES]) {
  print_into(out, NAMED_BYTES, "%s/" STR_FMT "%s", kind_folder, STR_ARG(name), name_ends[end]);
}

/* --- where it came from --- */

/* Returns the i-th folder that is searched, which may be NULL, and its name in `from`; false: there
 * are no more. */
static bool facets_at(const struct facets *f, size_t i, struct facets_more *at) {
  const struct facets_more known[FROM_COUNT] = {
      {"workflow", f->folder}, {"workflow", f->above}, {"workflow", f->above_facets},
      {"project", f->project}, {"home", f->home},      {"user", f->user}};
  for (size_t k = FROM_COUNT; f->more != NULL && k <= i; k++)
    if (f->more[k - FROM_COUNT].folder == NULL)
      return false;
  if (i >= FROM_COUNT && f->more == NULL)
    return false;
  *at = i < FROM_COUNT ? known[i] : f->more[i - FROM_COUNT];
  if (!f->foreign && i >= FROM_COUNT && strcmp(at->from, "config") != 0)
    at->folder = NULL; /* a facet of one's own that is gone is not replaced by another's */
  return true;
}

static json_t *absolute_path(const char *folder, const char *path) {
  char joined[PATH_BYTES], *real = NULL;
  if (snprintf(joined, sizeof joined, "%s/%s", folder, path) < (int)sizeof joined)
    real = realpath(joined, NULL);
  json_t *text = json_text(str_from(real ? real : path));
  free(real);
  return text;
}

/* Returns the user's own file of the same name, or NULL. */
static json_t *shadowed(const struct facets *f, enum facet_kind kind, struct str name) {
  for (enum facet_from from = FROM_HOME; from < FROM_COUNT; from++)
    for (size_t k = 0; name_ends[k] != NULL; k++) {
      char path[NAMED_BYTES];
      struct stat st;
      const char *folder = from == FROM_HOME ? f->home : f->user;
      int root = folder ? fs_open_folder(folder) : -1;
      if (root < 0)
        break;
      path_of_name(facet_folder(kind), name, k, path);
      int fd = fs_open_beneath(root, path, O_RDONLY);
      bool is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
      close(root);
      if (fd >= 0)
        close(fd);
      if (is_file)
        return absolute_path(folder, path);
    }
  return NULL;
}

static json_t *entry_of(json_t *files, enum facet_kind kind, const char *from, json_t *file) {
  size_t i;
  json_t *entry;
  json_array_foreach(files, i, entry)
    if (json_same(json_object_get(entry, "file"), file) &&
        strcmp(json_string_value(json_object_get(entry, "kind")), facets[kind].name) == 0)
      return entry;
  entry = json_pack("{ss ss sO s[]}", "kind", facets[kind].name, "from", from, "file", file,
                    "movements");
  if (entry == NULL || json_array_append_new(files, entry) != 0)
    BUG("out of memory");
  return entry;
}

static void note_user(const struct facets *f, json_t *entry) {
  json_t *users = json_object_get(entry, "movements");
  const json_t *last = json_array_get(users, json_array_size(users) - 1);
  if (last == NULL || !str_eq(json_view(last), f->movement))
    (void)json_array_append_new(users, json_text(f->movement));
}

/* Notes a file that a facet came from. `name` is empty if the file was named by its path. */
static void note_file(const struct facets *f, enum facet_kind kind, size_t from, struct str name,
                      const char *path) {
  struct facets_more at;
  if (f->files == NULL || f->movement.n == 0 || !facets_at(f, from, &at))
    return;
  json_auto_t *file = absolute_path(at.folder, path);
  json_t *entry = entry_of(f->files, kind, at.from, file);
  note_user(f, entry);
  if (f->memo != NULL)
    f->memo->entry = entry;
  json_t *other = NULL;
  if (from == FROM_PROJECT && json_object_get(entry, "shadows") == NULL)
    other = shadowed(f, kind, name);
  if (other != NULL)
    (void)json_object_set_new(entry, "shadows", other);
}

static enum found facets_find_in(const struct facets *f, enum facet_kind kind,
                                 const char *kind_folder, struct str name, struct buf *out,
                                 struct err *err) {
  if (has_space(name) || name.n == 0 || name.n > LIMIT_NAME_BYTES || name.p[0] == '.' ||
      memchr(name.p, '/', name.n) != NULL)
    return NOT_FOUND;
  struct facets_more at;
  for (size_t from = 0; facets_at(f, from, &at); from++) {
    for (size_t k = 0; at.folder && name_ends[k] != NULL; k++) {
      char path[NAMED_BYTES];
      path_of_name(kind_folder, name, k, path);
      enum found found = read_beneath(at.folder, path, true, out, err);
      if (found == FOUND)
        note_file(f, kind, from, name, path);
      if (found != NOT_FOUND)
        return found;
    }
  }
  return NOT_FOUND;
}

enum { NAMES_MAX = 200 }; /* looked at for a suggestion */

/* Lists what may be written for the files of `folder`: their names without .md and .txt. */
static size_t names_in(const char *folder, enum facet_kind kind, struct arena *arena,
                       const char **names, size_t n) {
  char path[PATH_BYTES];
  const struct dirent *entry;
  if (folder == NULL ||
      snprintf(path, sizeof path, "%s/%s", folder, facet_folder(kind)) >= (int)sizeof path)
    return n;
  DIR *dir = opendir(path);
  while (dir != NULL && n < NAMES_MAX && (entry = readdir(dir)) != NULL) {
    struct str name = str_from(entry->d_name);
    if (ends_with(name, ".md"))
      name.n -= 3;
    else if (ends_with(name, ".txt"))
      name.n -= 4;
    if (name.p[0] != '.' && entry->d_type != DT_DIR)
      names[n++] = arena_strndup(arena, name.p, name.n);
  }
  if (dir != NULL)
    closedir(dir);
  return n;
}

static bool facets_not_found(const struct facets *f, enum facet_kind kind, struct str name,
                             struct err *err) {
  const struct yaml_node *section = f->sections[kind];
  const char *names[NAMES_MAX + 1];
  AUTO(arena_deinit) struct arena arena = {0};
  size_t n = 0;
  for (size_t i = 0; section && i < section->count && n < NAMES_MAX; i++)
    names[n++] = section->pairs[i].key->text.p;
  struct facets_more at;
  for (size_t from = 0; facets_at(f, from, &at); from++)
    n = names_in(at.folder, kind, &arena, names, n);
  names[n] = NULL;
  const char *near = str_nearest(name, names);
  if (near)
    err_set(err, ERR_NOT_FOUND, "there is no %s named " STR_FMT ": did you mean %s?",
            facets[kind].name, STR_ARG(name), near);
  else
    err_set(err, ERR_NOT_FOUND,
            "there is no %s named " STR_FMT
            " in this file, in %s/ beside it, or in the project's and the user's facets: "
            "write its file, a path, or a sentence",
            facets[kind].name, STR_ARG(name), facet_folder(kind));
  return false;
}

void facets_beside(struct facets *f, struct arena *arena, const char *file) {
  struct stat own, st;
  const char *end = strrchr(file, '/');
  size_t n = end == file ? 1 : (size_t)(end - file);
  f->folder = end ? arena_strndup(arena, file, n) : ".";
  char_auto_t *real = realpath(f->folder, NULL);
  char *slash = real ? strrchr(real, '/') : NULL;
  bool is_named = slash != NULL && slash > real &&
                  (strcmp(slash, "/workflows") == 0 || strcmp(slash, "/pieces") == 0);
  if (is_named && stat(real, &own) == 0) {
    *slash = '\0';
    if (stat(real, &st) == 0 && st.st_uid == own.st_uid && (st.st_mode & S_IWOTH) == 0) {
      char facets_of_it[PATH_BYTES + sizeof "/facets"];
      print_into(facets_of_it, sizeof facets_of_it, "%s/facets", real);
      f->above = arena_strdup(arena, real);
      f->above_facets = arena_strdup(arena, facets_of_it);
    }
  }
}

/* Finds a path that the workflow names: below its folder, or by ../ below the one above. */
static enum found find_by_path(const struct facets *f, enum facet_kind kind, struct str value,
                               bool bare, struct buf *out, struct err *err) {
  bool climbs = f->above != NULL && str_starts(value, "../");
  const char *path = climbs ? value.p + strlen("../") : value.p;
  enum found found = read_beneath(climbs ? f->above : f->folder, path, bare, out, err);
  if (found == FOUND)
    note_file(f, kind, climbs ? FROM_ABOVE : FROM_WORKFLOW, STR(""), path);
  return found;
}

static bool resolve_anew(const struct facets *f, enum facet_kind kind, struct str value,
                         struct buf *out, struct err *err) {
  const struct yaml_node *section = f->sections[kind];
  for (size_t i = 0; section && i < section->count; i++) {
    if (!str_eq(section->pairs[i].key->text, value))
      continue;
    struct facets without = *f;
    without.sections[kind] = NULL;
    return resolve_anew(&without, kind, section->pairs[i].value->text, out, err);
  }
  const json_t *texts = json_object_get(f->given, facet_folder(kind));
  const json_t *given = json_object_getn(texts, value.p, value.n);
  append_text(out, json_view(given));
  if (json_is_string(given))
    return true;
  if (facets_is_path(value) && f->folder == NULL)
    return err_set(err, ERR_NOT_FOUND,
                   "%s is a path, and this workflow did not come from a file: send the facet with "
                   "it, or write a sentence",
                   value.p);
  if (facets_is_path(value)) {
    enum found found = find_by_path(f, kind, value, false, out, err);
    if (found == NOT_FOUND)
      return err_set(err, ERR_NOT_FOUND,
                     "there is no file %s in %s: correct the path, or write a sentence", value.p,
                     f->folder);
    return found == FOUND;
  }
  enum found found;
  /* One line that ends like a file's name is a path, or a sentence about a file. */
  if (value.n <= NAME_MAX && memchr(value.p, '\n', value.n) == NULL &&
      (ends_with(value, ".md") || ends_with(value, ".txt")))
    found = find_by_path(f, kind, value, true, out, err);
  else
    found = facets_find_in(f, kind, facet_folder(kind), value, out, err);
  if (found == NOT_FOUND && value.n > 0 && str_span(value, "_.-") == value.n)
    return facets_not_found(f, kind, value, err);
  if (found == NOT_FOUND)
    append_text(out, value);
  return found != FAILED;
}

bool facet_resolve(const struct facets *f, enum facet_kind kind, struct str value, struct buf *out,
                   struct err *err) {
  struct facet_memo *memo = f->memo;
  assert(kind < FACET_KIND_COUNT);
  if (memo == NULL)
    return resolve_anew(f, kind, value, out, err);
  buf_auto_t key = {0};
  buf_append(&key, (const char *)&kind, sizeof kind);
  buf_append(&key, (const char *)&f->sections[kind], sizeof f->sections[kind]);
  buf_append(&key, (const char *)&f->folder, sizeof f->folder);
  buf_str(&key, value);
  const json_t *known = json_object_getn(memo->known, buf_c(&key), key.n);
  bool ok = true;
  if (known != NULL && f->movement.n > 0) {
    buf_str(out, json_view(json_object_get(known, "text")));
    note_user(f, json_object_get(known, "entry"));
  } else {
    size_t before = out->n;
    memo->entry = NULL;
    ok = resolve_anew(f, kind, value, out, err);
    if (memo->known == NULL)
      memo->known = json_object();
    if (ok && memo->entry != NULL)
      json_object_setn_new_nocheck(
          memo->known, buf_c(&key), key.n,
          json_pack("{so sO}", "text", json_stringn_nocheck(buf_c(out) + before, out->n - before),
                    "entry", memo->entry));
  }
  return ok;
}

void facet_memo_deinit(struct facet_memo *memo) {
  json_decref(memo->known);
  *memo = (struct facet_memo){0};
}

const char *facet_folder(enum facet_kind kind) {
  assert(kind < FACET_KIND_COUNT);
  return facets[kind].folder;
}

bool facet_include(const struct facets *f, enum facet_kind user, struct str kind, struct str name,
                   struct buf *out, struct err *err) {
  const char *folder = str_eq_c(kind, "partials") ? "partials" : NULL;
  for (size_t i = 0; i < FACET_KIND_COUNT && folder == NULL; i++)
    if (str_eq_c(kind, facets[i].folder) || str_eq_c(kind, facets[i].name))
      folder = facets[i].folder;
  if (folder == NULL)
    return err_set(err, ERR_INVALID,
                   "{{include:" STR_FMT "/" STR_FMT "}}: the kinds are personas, policies, "
                   "knowledge, instructions, output-contracts and partials",
                   STR_ARG(kind), STR_ARG(name));
  enum found found = facets_find_in(f, user, folder, name, out, err);
  if (found == NOT_FOUND)
    return err_set(err, ERR_NOT_FOUND,
                   "there is no file for {{include:" STR_FMT "/" STR_FMT
                   "}} in %s/ beside the workflow, or in the project's and the user's facets",
                   STR_ARG(kind), STR_ARG(name), folder);
  return found == FOUND;
}

/* --- the list of all --- */

/* Returns the file's name without its extension; `end` is the extension's index. Returns false if
 * it is no facet. */
static bool name_of_file(const char *file, const char *const *ends, struct str *name, size_t *end) {
  *name = str_from(file);
  if (name->n == 0 || file[0] == '.')
    return false;
  for (*end = 0; ends[*end] != NULL; ++*end)
    if (str_ends(*name, ends[*end]) && name->n > strlen(ends[*end])) {
      name->n -= strlen(ends[*end]);
      return true;
    }
  return false;
}

static int by_file_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* Lists the files of one folder in the order they are searched: NAME.md, NAME.txt, NAME. */
static void facets_list_folder(json_t *list, size_t kind, size_t start, const char *folder,
                               const char *from) {
  static const char *const yaml[] = {".yaml", NULL};
  const char *const *ends = kind == FRAGMENT ? yaml : name_ends;
  char path[PATH_BYTES];
  struct dirent **entries;
  if (folder == NULL || snprintf(path, sizeof path, "%s/%s", folder, facets[kind].folder) >=
                            (int)sizeof path - (int)sizeof entries[0]->d_name - 1)
    return;
  int n = scandir(path, &entries, NULL, by_file_name);
  size_t length = strlen(path);
  for (size_t wanted = 0; n >= 0 && ends[wanted] != NULL; wanted++)
    for (int i = 0; i < n; i++) {
      struct str name;
      size_t end;
      if (entries[i]->d_type == DT_DIR || json_array_size(list) >= LIMIT_FACET_LIST_COUNT ||
          !name_of_file(entries[i]->d_name, ends, &name, &end) || end != wanted)
        continue;
      print_into(path + length, sizeof path - length, "/%s", entries[i]->d_name);
      const json_t *first = NULL;
      for (size_t k = json_array_size(list); k-- > start;)
        if (str_eq(json_view_at(json_array_get(list, k), "name"), name))
          first = json_array_get(list, k);
      json_t *entry = json_pack("{ss so ss so}", "kind", facets[kind].name, "name", json_text(name),
                                "from", from, "file", json_text(str_from(path)));
      if (first != NULL)
        json_object_set(entry, "shadowed_by", json_object_get(first, "file"));
      json_array_append_new(list, entry);
    }
  for (int i = 0; i < n; i++)
    free(entries[i]);
  if (n >= 0)
    free(entries);
}

json_t *facets_list(const struct facets *f) {
  json_t *list = json_array();
  for (size_t kind = 0; kind < LISTED_COUNT; kind++) {
    size_t start = json_array_size(list);
    struct facets_more at;
    for (size_t from = 0; facets_at(f, from, &at); from++)
      facets_list_folder(list, kind, start, at.folder, at.from);
  }
  return list;
}
