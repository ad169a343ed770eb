/* Finds the place in the file of a path in the resolved document. */
#include "workflow/source_map.h"

#include "workflow/parse.h"

#include <stdlib.h>
#include <string.h>

static const struct yaml_node *source_map_node_at(const struct yaml_node *node, const char *path) {
  const struct key_set *set = &workflow_keys;
  bool or_text = false; /* a text may stand for a list */
  while (node != NULL && *path != '\0' && !(or_text && node->kind == YAML_TEXT)) {
    if (*path == '[') {
      char *end;
      size_t index = strtoul(path + 1, &end, 10);
      node = node->kind == YAML_LIST && index < node->count ? node->items[index] : NULL;
      path = end + (*end == ']');
      continue;
    }
    path += *path == '.';
    size_t n = strcspn(path, ".[");
    const struct key *key = set ? key_find(set, (struct str){path, n}) : NULL;
    node = key ? parse_member(node, key) : NULL;
    set = key ? key->set : NULL;
    or_text = key && key->or_member != NULL;
    path += n;
  }
  return node;
}

const char *source_map_place(const struct workflow_marks *marks, const char *path, int *line,
                             int *column) {
  const struct yaml_node *node = marks ? source_map_node_at(marks->root, path) : NULL;
  *line = node ? node->line : 0;
  *column = node ? node->column : 0;
  if (marks == NULL)
    return "";
  return node != NULL && node->origin != NULL ? node->origin->file : marks->file;
}

/* Appends after the n bytes of out; returns the new number. */
static size_t source_map_add(char out[DOC_PATH_BYTES], size_t n, const char *text) {
  size_t room = DOC_PATH_BYTES - 1 - n, wanted = strlen(text);
  size_t fits = wanted < room ? wanted : room;
  memmove(out + n, text, fits);
  out[n + fits] = '\0';
  return n + fits;
}

void doc_path_member(char out[DOC_PATH_BYTES], const char *path, const char *key) {
  size_t n = source_map_add(out, 0, path);
  if (*key == '\0')
    return;
  if (n > 0)
    n = source_map_add(out, n, ".");
  (void)source_map_add(out, n, key);
}

void doc_path_item(char out[DOC_PATH_BYTES], const char *path, size_t index) {
  char number[STR_NUMBER_BYTES];
  (void)str_from_number(number, (int64_t)index);
  size_t n = source_map_add(out, 0, path);
  n = source_map_add(out, n, "[");
  n = source_map_add(out, n, number);
  (void)source_map_add(out, n, "]");
}
