/* Lists the facets of the folders searched for them. */
#include "workflow/facets_list.h"

#include "base/limits.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_PATH_BYTES = 4096 };

/* Lists the places that are searched, in order. */
struct places {
  struct {
    const char *folder, *from;
  } items[6];
};

static const struct {
  const char *kind, *folder;
  const char *const *ends; /* endings of its files, in the order they are tried; "" is any */
} kinds[] = {
#define TEXT_ENDS ((const char *const[]){".md", ".txt", "", NULL})
    {"persona", "personas", TEXT_ENDS},
    {"policy", "policies", TEXT_ENDS},
    {"knowledge", "knowledge", TEXT_ENDS},
    {"instruction", "instructions", TEXT_ENDS},
    {"output contract", "output-contracts", TEXT_ENDS},
    {"partial", "partials", TEXT_ENDS},
    {"fragment", "fragments", ((const char *const[]){".yaml", NULL})},
};

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

static const json_t *first_of_name(const json_t *list, size_t from, struct str name) {
  for (size_t i = from; i < json_array_size(list); i++)
    if (str_eq(json_view(json_object_get(json_array_get(list, i), "name")), name))
      return json_array_get(list, i);
  return NULL;
}

static void facets_list_one(json_t *list, size_t kind, size_t start, const char *from,
                            const char *path, struct str name) {
  const json_t *first = first_of_name(list, start, name);
  json_t *entry = json_pack("{ss so ss so}", "kind", kinds[kind].kind, "name", json_text(name),
                            "from", from, "file", json_text(str_from(path)));
  if (first != NULL)
    json_object_set(entry, "shadowed_by", json_object_get(first, "file"));
  json_array_append_new(list, entry);
}

/* Lists the files of one folder in the order they are searched: NAME.md, NAME.txt, NAME. */
static void facets_list_folder(json_t *list, size_t kind, size_t start, const char *folder,
                               const char *from) {
  char path[LIST_PATH_BYTES];
  struct dirent **entries;
  if (folder == NULL || snprintf(path, sizeof path, "%s/%s", folder, kinds[kind].folder) >=
                            (int)sizeof path - (int)sizeof entries[0]->d_name - 1)
    return;
  int n = scandir(path, &entries, NULL, by_file_name);
  size_t length = strlen(path);
  for (size_t wanted = 0; n >= 0 && kinds[kind].ends[wanted] != NULL; wanted++)
    for (int i = 0; i < n; i++) {
      struct str name;
      size_t end;
      if (entries[i]->d_type == DT_DIR || json_array_size(list) >= LIMIT_FACET_LIST_COUNT ||
          !name_of_file(entries[i]->d_name, kinds[kind].ends, &name, &end) || end != wanted)
        continue;
      (void)snprintf(path + length, sizeof path - length, "/%s", entries[i]->d_name);
      facets_list_one(list, kind, start, from, path, name);
    }
  for (int i = 0; i < n; i++)
    free(entries[i]);
  if (n >= 0)
    free(entries);
}

json_t *facets_list(const struct facets *f) {
  const struct places places = {{{f->folder, "workflow"},
                                 {f->above, "workflow"},
                                 {f->above_facets, "workflow"},
                                 {f->project, "project"},
                                 {f->home, "home"},
                                 {f->user, "user"}}};
  json_t *list = json_array();
  for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
    size_t start = json_array_size(list);
    for (size_t i = 0; i < ARRAY_LEN(places.items); i++)
      facets_list_folder(list, kind, start, places.items[i].folder, places.items[i].from);
  }
  return list;
}
