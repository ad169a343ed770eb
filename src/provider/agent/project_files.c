/* Finds the files by which a project would steer an agent. */
#include "provider/agent/project_files.h"

#include "base/file.h"
#include "base/limits.h"
#include "format/json_object.h"
#include "format/pointer.h"
#include "os/fs.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what a file sets --- */

/* Makes plain JSON of the kind that clients read as settings: comments and surplus commas become
 * spaces. */
static void plain_json(struct buf *text) {
  size_t comma = SIZE_MAX; /* where the last one is, while only space follows it */
  for (size_t i = 0; i < text->n; i++) {
    char *p = text->p + i;
    size_t left = text->n - i;
    if (*p == '"') {
      for (i++; i < text->n && text->p[i] != '"'; i++)
        i += text->p[i] == '\\';
      comma = SIZE_MAX;
    } else if (left > 1 && *p == '/' && (p[1] == '/' || p[1] == '*')) {
      const char *mark = p[1] == '/' ? "\n" : "*/";
      const char *end = memmem(p + 2, left - 2, mark, strlen(mark));
      size_t n = end ? (size_t)(end - p) + strlen(mark) : left;
      memset(p, ' ', n);
      i += n - 1;
    } else if (*p == ',') {
      comma = i;
    } else if (*p == '}' || *p == ']') {
      if (comma != SIZE_MAX)
        text->p[comma] = ' ';
      comma = SIZE_MAX;
    } else if (strchr(" \t\r\n", *p) == NULL) {
      comma = SIZE_MAX;
    }
  }
}

static bool project_files_is_allowed(const json_t *allowed, struct str pointer, bool below) {
  for (size_t i = 0; i < json_array_size(allowed); i++) {
    const char *one = json_string_value(json_array_get(allowed, i));
    if (!below && str_eq_c(pointer, one))
      return true;
    if (below && strncmp(one, pointer.p, pointer.n) == 0 && one[pointer.n] == '/')
      return true;
  }
  return false;
}

/* Returns true if `value`, at this pointer, sets only what is allowed; otherwise `at` is what else
 * it sets. */
static bool sets_only(const json_t *allowed, const json_t *value, struct buf *at) {
  size_t n = at->n;
  if (n > 0 && project_files_is_allowed(allowed, buf_view(at), false))
    return true;
  if (!json_is_object(value) || (n > 0 && !project_files_is_allowed(allowed, buf_view(at), true)))
    return json_is_object(value) && json_object_size(value) == 0;
  JSON_MEMBERS((json_t *)value, key, member) {
    buf_putc(at, '/');
    for (const char *c = key; *c != '\0'; c++) {
      if (*c == '~' || *c == '/')
        buf_puts(at, *c == '~' ? "~0" : "~1");
      else
        buf_putc(at, *c);
    }
    if (!sets_only(allowed, member, at))
      return false;
    at->n = n;
    at->p[n] = '\0';
  }
  return true;
}

static bool sets_one(const json_t *refused, const json_t *value, struct buf *at) {
  for (size_t i = 0; i < json_array_size(refused) && at->n == 0; i++)
    if (pointer_get(value, str_from(json_string_value(json_array_get(refused, i)))) != NULL)
      buf_puts(at, json_string_value(json_array_get(refused, i)));
  return at->n > 0;
}

/* Returns true for a carriage return alone: only some readers end a comment there. */
static bool has_bare_return(struct str text) {
  for (size_t i = 0; i < text.n; i++)
    if (text.p[i] == '\r' && (i + 1 == text.n || text.p[i + 1] != '\n'))
      return true;
  return false;
}

/* Returns the value, NULL if the text is not JSON that every reader reads alike. */
static json_t *read_settings(struct buf *text) {
  if (has_bare_return(buf_view(text)))
    return NULL;
  plain_json(text);
  struct str body = buf_view(text);
  (void)str_drop(&body, "\xEF\xBB\xBF");
  return json_loadb(body.p ? body.p : "", body.n, JSON_REJECT_DUPLICATES, NULL);
}

static bool is_comment(struct str line) {
  for (size_t i = 0; i < line.n; i++)
    if ((unsigned char)line.p[i] >= 0x80) /* a line separator may hide in it */
      return false;
  line = str_trim(line);
  return line.n > 0 && line.p[0] == '#';
}

/* Returns the first name before a = or : in the line that fits the pattern, wherever it stands:
 * readers differ in what may stand before it. n is 0 if there is none. */
static struct str refused_in_line(const struct pattern *pattern, struct pattern_scratch *scratch,
                                  struct str line) {
  for (size_t i = 0; i < line.n;) {
    size_t from = i, to = i + str_span((struct str){line.p + i, line.n - i}, "_.-");
    i = to;
    /* White space of any alphabet. */
    while (i < line.n && (line.p[i] == ' ' || (line.p[i] >= '\t' && line.p[i] <= '\r') ||
                          (unsigned char)line.p[i] >= 0x80))
      i++;
    if (to > from && i < line.n && (line.p[i] == '=' || line.p[i] == ':') &&
        pattern_match(pattern, scratch, line.p + from, to - from) == PATTERN_MATCH)
      return (struct str){line.p + from, to - from};
    if (i == from)
      i++;
  }
  return (struct str){0};
}

static struct str refused_variable(const struct pattern *pattern, struct str text) {
  AUTO(pattern_scratch_deinit) struct pattern_scratch scratch = {0};
  struct str found = {0};
  for (size_t i = 0; i < text.n && found.n == 0;) {
    size_t end = i;
    while (end < text.n && text.p[end] != '\n' && text.p[end] != '\r')
      end++;
    struct str line = {text.p + i, end - i};
    if (!is_comment(line))
      found = refused_in_line(pattern, &scratch, line);
    i = end + 1;
  }
  return found;
}

/* --- one file --- */

static bool is_empty_folder(const char *path) {
  DIR *dir = opendir(path);
  size_t count = 0;
  for (struct dirent *e; dir != NULL && count < 3 && (e = readdir(dir)) != NULL;)
    count++;
  if (dir != NULL)
    (void)closedir(dir);
  return dir != NULL && count < 3; /* "." and ".." */
}

/* Returns true if the file exists and sets more than it may; `sets` is then what. */
static bool is_refused(const struct profile_project_file *file, const char *path,
                       struct buf *sets) {
  struct stat st;
  buf_auto_t text = {0};
  struct err err;
  if (lstat(path, &st) != 0 || (S_ISDIR(st.st_mode) && is_empty_folder(path)))
    return false;
  if (file->allowed == NULL && file->refused == NULL && file->variables == NULL) {
    buf_puts(sets, " is there");
    return true;
  }
  bool refused = true;
  if (!file_read(path, LIMIT_PROFILE_BYTES, &text, &err)) {
    buf_printf(sets, " cannot be read (%s)", err.text);
  } else if (file->variables != NULL) {
    struct str name = refused_variable(file->variables, buf_view(&text));
    refused = name.n > 0;
    buf_printf(sets, " sets " STR_FMT, STR_ARG(name));
  } else {
    json_t *value = read_settings(&text);
    struct buf at = {0};
    if (value == NULL)
      buf_puts(sets, " is not plain JSON");
    else if (file->allowed != NULL)
      refused = !sets_only(file->allowed, value, &at);
    else
      refused = sets_one(file->refused, value, &at);
    if (value != NULL && refused)
      buf_printf(sets, " sets %s", at.n > 0 ? at.p + 1 : "more than it may");
    json_decref(value);
    buf_deinit(&at);
  }
  return refused;
}

/* --- where --- */

/* Resolves a path; "~/x" is in the home folder. Returns false if it does not exist. */
static bool real_path(const char *path, char out[PATH_MAX]) {
  const char *home = getenv("HOME");
  char full[PATH_MAX];
  if (path[0] == '~' && (path[1] == '/' || path[1] == '\0') && home != NULL) {
    print_into(full, sizeof full, "%s%s", home, path + 1);
    path = full;
  }
  return path[0] == '/' && realpath(path, out) != NULL;
}

static bool is_trusted(const json_t *settings, const char *cwd) {
  const json_t *trust = json_object_get(settings, "trust_project");
  char folder[PATH_MAX];
  for (size_t i = 0; i < json_array_size(trust); i++) {
    if (real_path(json_string_value(json_array_get(trust, i)), folder) &&
        fs_below(cwd, folder) != NULL)
      return true;
  }
  return json_is_true(trust);
}

static bool project_files_look(const struct profile *p, const struct profile_project_file *file,
                               const char *cwd, const char *home, struct err *err) {
  char folder[PATH_MAX];
  print_into(folder, sizeof folder, "%s", cwd);
  for (bool more = true; more;) {
    struct buf path = {0}, sets = {0};
    buf_printf(&path, "%s/%s", folder[1] ? folder : "", file->path);
    bool refused = strcmp(folder, home) != 0 && is_refused(file, buf_c(&path), &sets);
    if (refused)
      err_set(err, ERR_FILE,
              "%s%s: %s would %s. Remove it, or trust the project in your config.yaml: "
              "providers: {%s: {trust_project: [%s]}}",
              buf_c(&path), buf_c(&sets), p->capability.name, file->does, p->capability.name, cwd);
    struct stat st;
    buf_clear(&path);
    buf_printf(&path, "%s/.git", folder);
    bool top = file->above == PROJECT_ABOVE_REPOSITORY && lstat(buf_c(&path), &st) == 0;
    buf_deinit(&path);
    buf_deinit(&sets);
    if (refused)
      return false;
    more = file->above != PROJECT_ABOVE_NONE && !top && folder[1] != '\0';
    char *slash = strrchr(folder, '/');
    slash[slash == folder] = '\0'; /* to the folder above */
  }
  return true;
}

bool project_files_check(const struct profile *p, enum transport transport, const json_t *settings,
                         const char *cwd, struct err *err) {
  char here[PATH_MAX], home[PATH_MAX];
  if (p->project_file_count == 0 || !real_path(cwd, here) || is_trusted(settings, here))
    return true;
  if (!real_path("~", home))
    home[0] = '\0';
  for (size_t i = 0; i < p->project_file_count; i++)
    if ((p->project_files[i].transports & (1u << transport)) != 0 &&
        !project_files_look(p, &p->project_files[i], here, home, err))
      return false;
  return true;
}
