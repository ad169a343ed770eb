/* Loads the shipped profiles and those of the user's folder. */
#include "provider/profile/profiles.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "base/utf8.h"
#include "provider/profile/profile.h"
#include "json/scan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- shipped profiles --- */

static const struct {
  const char *key;
  size_t offset;
} abilities[] = {
    {"can_judge", offsetof(struct capability, can_judge)},
    {"takes_model", offsetof(struct capability, takes_model)},
    {"sessions", offsetof(struct capability, sessions)},
    {"forks", offsetof(struct capability, forks)},
};

json_t *profile_about(const struct profile *p) {
  const struct capability *c = &p->capability;
  json_t *about = json_pack("{ss}", "summary", c->summary), *options = json_array();
  if (p->program != NULL)
    json_object_set_new(about, "program", json_string(p->program));
  for (unsigned bit = 0; option_names[bit] != NULL; bit++)
    if (c->options & (1u << bit))
      json_array_append_new(options, json_string(option_names[bit]));
  json_object_set_new(about, "options", options);
  for (size_t i = 0; i < ARRAY_LEN(abilities); i++)
    json_object_set_new(about, abilities[i].key,
                        json_boolean(*(const bool *)((const char *)c + abilities[i].offset)));
  json_object_set_new(about, "structured", json_string(c->structured));
  profile_tell_held(p, about);
  if (c->judge_effort != NULL)
    json_object_set_new(about, "judge_effort", json_string(c->judge_effort));
  return about;
}

/* Makes a profile that is compiled in. Its capability and program come from `about` (the entry of
 * profiles/index.json under `name`; both are borrowed for its life). The rest is made on demand:
 * most runs use one profile, and making all would be half of a start. It is not checked here,
 * because tests check the shipped ones. Shipped profiles extend no other. */
static struct profile *profile_shipped(const char *name, const json_t *about) {
  struct profile *p = xcalloc(1, sizeof *p);
  p->file = "built in";
  p->capability.name = name;
  p->capability.summary = json_string_value(json_object_get(about, "summary"));
  p->capability.structured = json_string_value(json_object_get(about, "structured"));
  p->capability.options = profile_options_of(json_object_get(about, "options"));
  p->capability.judge_effort = json_string_value(json_object_get(about, "judge_effort"));
  p->capability.touches_files = true;
  profile_read_told(p, about);
  for (size_t i = 0; i < ARRAY_LEN(abilities); i++)
    *(bool *)((char *)&p->capability + abilities[i].offset) =
        json_is_true(json_object_get(about, abilities[i].key));
  p->program = json_string_value(json_object_get(about, "program"));
  p->pending = true;
  return p;
}

struct str profile_shipped_text(const char *name, const char *form) {
  char path[128];
  print_into(path, sizeof path, "provider/profiles/%s.%s", name, form);
  const struct resource *r = resource_find(path);
  if (r == NULL)
    BUG("%s is not there", path);
  return (struct str){r->p, r->n};
}

/* Reads a shipped document with our own scanner: jansson's takes four times as long, at every
 * start. */
json_t *profile_document(const char *name) {
  struct jscan_result result;
  if (jscan_whole(str_trim(profile_shipped_text(name, "json")), &result) != JSCAN_OK)
    BUG("what is compiled in is no JSON");
  return result.value;
}

/* --- loading --- */

struct profiles {
  json_t *index; /* what is known of the shipped ones before they are made */
  struct profile **items;
  size_t count;
  struct profile **replaced; /* shipped ones that a file replaces: it may extend them */
  size_t replaced_count;
};

static void profiles_put(struct profile ***list, size_t *count, struct profile *p) {
  *list = xrealloc(*list, (*count + 1) * sizeof **list);
  (*list)[(*count)++] = p;
}

static const struct profile *find_in(struct profile *const *list, size_t count, struct str name) {
  for (size_t i = 0; i < count; i++)
    if (str_eq_c(name, list[i]->capability.name))
      return list[i];
  return NULL;
}

const struct profile *profiles_find(const struct profiles *p, struct str name) {
  return profile_ready(find_in(p->items, p->count, name));
}

const struct profile *profiles_peek(const struct profiles *p, size_t i) {
  return i < p->count ? p->items[i] : NULL;
}

/* Finds a shipped profile by its own name, even where a file replaces it: a file may extend what it
 * replaces. */
static const struct profile *find_base(void *ctx, struct str name) {
  const struct profiles *p = ctx;
  const struct profile *found = find_in(p->replaced, p->replaced_count, name);
  return found ? profile_ready(found) : profiles_find(p, name);
}

static bool profiles_ends_in(const char *file, const char *end) {
  size_t n = strlen(file), end_n = strlen(end);
  return n > end_n && strcmp(file + n - end_n, end) == 0;
}

/* Returns true for a profile's file, not a backup, a README or the like. */
static bool is_profile_file(const char *file) {
  return file[0] != '.' && (profiles_ends_in(file, ".yaml") || profiles_ends_in(file, ".yml"));
}

static bool profiles_is_name(const char *name) {
  for (const char *c = name; *c != '\0'; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
    bool other = (*c >= '0' && *c <= '9') || *c == '-' || *c == '_';
    if (!letter && (c == name || !other))
      return false;
  }
  return name[0] != '\0';
}

static void profiles_add_error(struct err_list *errors, const char *path, const struct err *err) {
  struct err placed = *err;
  if (placed.file[0] == '\0')
    err_set_at(&placed, ERR_FILE, path, 1, 1, "%s", err->text);
  err_list_add(errors, &placed);
}

/* Reads a profile from its file. The profile is broken if the file has a mistake. */
static struct profile *read_profile(struct profiles *p, const char *path, const char *name) {
  struct buf text = {0};
  struct err err = {0};
  struct err_list mistakes = {0};
  struct profile *read = NULL;
  bool ok = file_read(path, LIMIT_PROFILE_BYTES, &text, &err);
  if (ok && !utf8_valid(text.p, text.n))
    ok = err_set(&err, ERR_FILE, "it is not UTF-8 text");
  if (ok)
    read = profile_load(name, path, buf_view(&text), find_base, p, &mistakes);
  else
    profiles_add_error(&mistakes, path, &err);
  if (read == NULL)
    read = profile_broken(name, path, &mistakes.items[0]);
  err_list_deinit(&mistakes);
  buf_deinit(&text);
  return read;
}

/* Returns why a file's name cannot be a provider's, NULL if it can. */
static const char *misnamed(const char *file, const char *name) {
  if (profiles_ends_in(file, ".yml"))
    return "write .yaml at its end";
  if (strlen(name) > LIMIT_NAME_BYTES)
    return "it is too long";
  if (!profiles_is_name(name))
    return "use letters, digits, - and _, a letter first";
  if (strcmp(name, "script") == 0 || strcmp(name, "command") == 0)
    return "it is built in";
  return NULL;
}

static void load_file(struct profiles *p, const char *path, const char *file) {
  char name[NAME_MAX + 1];
  print_into(name, sizeof name, "%s", file);
  *strrchr(name, '.') = '\0';
  const char *why = misnamed(file, name);
  if (why != NULL) {
    /* It is a broken profile, under its file's name, which no provider can have for its dot. */
    char shown[NAME_MAX + 1];
    struct err err;
    print_into(shown, sizeof shown, "%s", file);
    for (char *c = shown; *c != '\0'; c++)
      if (*c < ' ' || *c > '~')
        *c = '?';
    err_set_at(&err, ERR_FILE, path, 1, 1, "\"%.140s\" cannot be the name of a profile's file: %s",
               shown, why);
    profiles_put(&p->items, &p->count, profile_broken(shown, path, &err));
    return;
  }
  struct profile *read = read_profile(p, path, name);
  for (size_t i = 0; i < p->count; i++)
    if (strcmp(p->items[i]->capability.name, name) == 0) {
      profiles_put(&p->replaced, &p->replaced_count, p->items[i]);
      p->items[i] = read;
      return;
    }
  profiles_put(&p->items, &p->count, read);
}

/* Loads those again that failed: a file may extend one whose name comes after its own. */
static void load_again(struct profiles *p) {
  for (bool better = true; better;) {
    better = false;
    for (size_t i = 0; i < p->count; i++) {
      struct profile *old = p->items[i];
      if (old->broken == NULL || !profiles_is_name(old->capability.name))
        continue;
      p->items[i] = read_profile(p, old->file, old->capability.name);
      better |= p->items[i]->broken == NULL;
      profile_free(old);
    }
  }
}

static void load_folder(struct profiles *p, const char *folder, struct err_list *errors) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, NULL, alphasort);
  struct err err;
  if (count < 0 && errno != ENOENT && errno != ENOTDIR) {
    err_set_errno(&err, errno, "cannot read the folder");
    profiles_add_error(errors, folder, &err);
  }
  for (int i = 0; i < count; i++) {
    if (is_profile_file(entries[i]->d_name) && i < (int)LIMIT_PROFILE_COUNT) {
      size_t n = strlen(folder) + strlen(entries[i]->d_name) + 2;
      char *path = xmalloc(n);
      print_into(path, n, "%s/%s", folder, entries[i]->d_name);
      load_file(p, path, entries[i]->d_name);
      free(path);
    }
    free(entries[i]);
  }
  free(entries);
  load_again(p);
}

struct profiles *profiles_load(const char *folder, struct err_list *errors) {
  struct profiles *p = xcalloc(1, sizeof *p);
  size_t before = errors->count + errors->dropped;
  const char *name;
  json_t *about;
  p->index = profile_document("index");
  json_object_foreach(p->index, name, about)
      profiles_put(&p->items, &p->count, profile_shipped(name, about));
  if (folder != NULL)
    load_folder(p, folder, errors);
  if (errors->count + errors->dropped == before)
    return p;
  profiles_free(p);
  return NULL;
}

void profiles_free(struct profiles *p) {
  if (p == NULL)
    return;
  for (size_t i = 0; i < p->count; i++)
    profile_free(p->items[i]);
  for (size_t i = 0; i < p->replaced_count; i++)
    profile_free(p->replaced[i]);
  free(p->items);
  free(p->replaced);
  json_decref(p->index);
  free(p);
}
