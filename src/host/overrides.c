/* Finds the user's templates that replace nothing. */
#include "host/overrides.h"

#include "base/log.h"
#include "base/str.h"
#include "core/prompt.h"
#include "host/paths.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *const languages[] = {"en", "ja", NULL};

enum { OVERRIDE_PATH_BYTES = PATHS_BYTES + 600 };

typedef void (*entry_fn)(const char *folder, const char *name, struct err_list *warnings);

static bool is_listed(const char *name, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(name, *names) == 0)
      return true;
  return false;
}

/* Visits each entry of the folder. Returns false if it is not a readable folder. */
static bool each_entry(const char *folder, entry_fn each, struct err_list *warnings) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->d_name;
    if (name[0] != '.' && name[strlen(name) - 1] != '~' && !str_starts(str_from(name), "README"))
      each(folder, name, warnings);
    free(entries[i]);
  }
  free(entries);
  return count >= 0;
}

static void overrides_add(struct err_list *warnings, const char *folder, const char *name,
                          const char *what, const char *hint) {
  struct err err;
  err_set(&err, ERR_FILE, "%s/%s %s%s", folder, name, what, hint);
  err_list_add(warnings, &err);
}

static void check_template(const char *folder, const char *name, struct err_list *warnings) {
  const char *near = str_nearest(str_from(name), prompt_template_names);
  struct buf hint = {0};
  if (is_listed(name, prompt_template_names))
    return;
  if (near != NULL)
    buf_printf(&hint, "did you mean %s?", near);
  else
    buf_puts(&hint, "the templates are ");
  if (near == NULL)
    for (size_t i = 0; prompt_template_names[i] != NULL; i++)
      buf_printf(&hint, "%s%s", i > 0 ? ", " : "", prompt_template_names[i]);
  overrides_add(warnings, folder, name, "replaces no prompt: ", buf_c(&hint));
  buf_deinit(&hint);
}

static void ignore_entry(const char *folder, const char *name, struct err_list *warnings) {
  (void)folder;
  (void)name;
  (void)warnings;
}

static void check_language(const char *folder, const char *name, struct err_list *warnings) {
  char path[OVERRIDE_PATH_BYTES];
  print_into(path, sizeof path, "%s/%s", folder, name);
  if (is_listed(name, languages))
    (void)each_entry(path, check_template, warnings);
  else if (each_entry(path, ignore_entry, warnings))
    overrides_add(warnings, folder, name, "replaces no prompt: ", "the languages are en and ja");
  else
    overrides_add(warnings, folder, name,
                  "replaces no prompt: ", "it must be in the folder en or ja there");
}

void overrides_check(struct err_list *warnings) {
  char dir[PATHS_BYTES], folder[OVERRIDE_PATH_BYTES];
  struct err err;
  if (!paths_config(dir, &err))
    return; /* no home: no configuration */
  print_into(folder, sizeof folder, "%s/prompts", dir);
  (void)each_entry(folder, check_language, warnings);
}

void overrides_warn(void) {
  struct err_list warnings = {0};
  overrides_check(&warnings);
  for (size_t i = 0; i < warnings.count; i++)
    log_warn("warning: %s", warnings.items[i].text);
  if (warnings.dropped > 0)
    log_warn("warning: %zu more files in prompts/ replace nothing", warnings.dropped);
  err_list_deinit(&warnings);
}
