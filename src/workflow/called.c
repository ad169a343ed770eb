/* Finds and reads the files that a workflow calls, and the values of their params. */
#include "workflow/expand_part.h"

#include "base/file.h"
#include "format/json_object.h"
#include "os/fs.h"
#include "workflow/parse/part.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALLED_PATH_BYTES = 4096 };

/* --- files --- */

static struct called *called_known(const struct expand *e, const struct stat *st) {
  for (size_t i = 0; i < e->file_count; i++)
    if (e->files[i]->device == st->st_dev && e->files[i]->inode == st->st_ino)
      return e->files[i];
  return NULL;
}

static void called_add(struct expand *e, struct called *c) {
  if ((e->file_count & (e->file_count - 1)) == 0) { /* full at powers of two */
    struct called **wider =
        arena_array(e->p->arena, e->file_count ? e->file_count * 2 : 1, sizeof(struct called *));
    if (e->file_count > 0)
      memcpy(wider, e->files, e->file_count * sizeof(struct called *));
    e->files = wider;
  }
  e->files[e->file_count++] = c;
}

/* Sets the facets of a file at this path: those beside it, the rest as everywhere. */
static void place_facets(struct expand *e, struct called *c, const char *path) {
  struct arena *arena = e->p->arena;
  const char *slash = strrchr(path, '/');
  const struct facets *own = &e->p->facets;
  c->facets = (struct facets){.project = own->project, .home = own->home, .user = own->user};
  c->facets.folder = slash ? arena_strndup(arena, path, (size_t)(slash - path)) : ".";
  c->facets.above = facets_above(arena, c->facets.folder);
  if (c->facets.above != NULL) {
    char joined[CALLED_PATH_BYTES];
    (void)snprintf(joined, sizeof joined, "%s/facets", c->facets.above);
    c->facets.above_facets = arena_strdup(arena, joined);
  }
}

static struct called *called_read(struct expand *e, const struct yaml_node *node, int fd,
                                  const char *path, const struct stat *st) {
  struct buf text = {0};
  struct err err;
  const struct yaml_node *root = NULL;
  struct called *c = arena_alloc(e->p->arena, sizeof *c);
  struct origin *origin = arena_alloc(e->p->arena, sizeof *origin);
  *c = (struct called){
      .device = st->st_dev, .inode = st->st_ino, .file = arena_strdup(e->p->arena, path)};
  *origin = (struct origin){.base = {c->file}, .scope = scope_none};
  called_add(e, c); /* also a wrong one, so that its errors are reported once */
  if (!S_ISREG(st->st_mode))
    REPORT(e->p, node, "%s is not a file: write the path of a workflow's file", path);
  else if (!file_read_fd(fd, path, LIMIT_WORKFLOW_BYTES, &text, &err))
    REPORT(e->p, node, "%s", err.text);
  else
    root = yaml_parse(e->p->arena, c->file, arena_str(e->p->arena, buf_view(&text)),
                      LIMIT_WORKFLOW_BYTES, e->p->errors);
  buf_deinit(&text);
  if (root != NULL && root->kind != YAML_MAP)
    REPORT(e->p, node, "%s must be a map of keys and values, not %s", path,
           yaml_kind_name(root->kind));
  if (root == NULL || root->kind != YAML_MAP)
    return c;
  place_facets(e, c, c->file);
  origin->facets = c->facets;
  c->root = expand_plain(e, &origin->base, root);
  called_declare(e, c);
  return c;
}

/* Opens a called file. Returns false if there is none. *out may be NULL on true: an error was
 * reported. */
static bool called_open(struct expand *e, const struct yaml_node *node, const char *folder,
                        const char *path, struct called **out) {
  char shown[CALLED_PATH_BYTES];
  struct stat st;
  int root = folder ? fs_open_folder(folder) : -1;
  *out = NULL;
  if (root < 0)
    return false;
  int fd = fs_open_beneath(root, path, O_RDONLY), number = errno;
  close(root);
  if (fd < 0 && (number == ENOENT || number == ENOTDIR))
    return false;
  if (strcmp(folder, ".") == 0)
    (void)snprintf(shown, sizeof shown, "%s", path);
  else
    (void)snprintf(shown, sizeof shown, "%s/%s", folder, path);
  if (fd < 0 && (number == EXDEV || number == ELOOP)) {
    REPORT(e->p, node, "%s leads out of %s: copy the file there and write its path from there",
           path, folder);
    return true;
  }
  if (fd < 0 || fstat(fd, &st) != 0) {
    REPORT(e->p, node, "cannot read %s: %s", shown, strerror(number));
  } else {
    *out = called_known(e, &st);
    if (*out == NULL)
      *out = called_read(e, node, fd, shown, &st);
  }
  if (fd >= 0)
    close(fd);
  return true;
}

static bool is_file_path(struct str s) {
  return memchr(s.p, '/', s.n) != NULL || str_ends(s, ".yaml") || str_ends(s, ".yml") ||
         str_ends(s, ".json");
}

static void called_report_missing(struct expand *e, const struct yaml_node *node,
                                  const char *folder, bool fragment, bool path, struct str name) {
  const char *shown = parse_shown(e->p, name);
  if (path)
    REPORT(e->p, node, "there is no file %s in %s: correct the path", shown, folder);
  else if (fragment)
    REPORT(e->p, node,
           "there is no fragment named %s in fragments/ beside this file, or in the project's and "
           "the user's facets: write its file or a path",
           shown);
  else
    REPORT(e->p, node,
           "there is no workflow named %s beside this file, in your workflows, or among segue's: "
           "write its file or a path",
           shown);
}

/* Looks in the folders that are searched for a name without a path. */
static bool called_by_name(struct expand *e, const struct instance *x, const struct yaml_node *node,
                           bool fragment, struct str name, struct called **out) {
  const struct facets *f = &x->called->facets;
  const char *const *called = e->p->called; /* two, see parse.h */
  const char *const workflows[] = {f->folder, called ? called[0] : NULL, called ? called[1] : NULL};
  const char *const fragments[] = {f->folder,  f->above, f->above_facets,
                                   f->project, f->home,  f->user};
  const char *const *folders = fragment ? fragments : workflows;
  size_t count = fragment ? ARRAY_LEN(fragments) : ARRAY_LEN(workflows);
  char path[LIMIT_NAME_BYTES + 32];
  (void)snprintf(path, sizeof path, "%s" STR_FMT ".yaml", fragment ? "fragments/" : "",
                 STR_ARG(name));
  for (size_t i = 0; i < count; i++)
    if (folders[i] != NULL && folders[i][0] != '\0' && called_open(e, node, folders[i], path, out))
      return true;
  return false;
}

struct called *called_find(struct expand *e, const struct instance *x, const struct yaml_node *node,
                           bool fragment) {
  const char *folder = x->called->facets.folder, *what = fragment ? "fragment" : "workflow";
  struct called *found = NULL;
  bool is_there;
  if (node->kind != YAML_TEXT || str_trim(node->text).n == 0) {
    REPORT(e->p, node, "%s must be the name or path of a %s", fragment ? "uses" : "call", what);
    return NULL;
  }
  struct str name = expand_text(e, x, node);
  bool path = is_file_path(name);
  if (str_has_control(name) || name.n > (path ? CALLED_PATH_BYTES / 2 : LIMIT_NAME_BYTES)) {
    REPORT(e->p, node, "this is not the name or path of a %s", what);
    return NULL;
  }
  if (path && folder == NULL) {
    REPORT(e->p, node,
           "%s is a path, and this workflow did not come from a file: write its movements here",
           parse_shown(e->p, name));
    return NULL;
  }
  if (path)
    is_there = called_open(e, node, folder, name.p, &found);
  else
    is_there = called_by_name(e, x, node, fragment, name, &found);
  if (!is_there)
    called_report_missing(e, node, folder, fragment, path, name);
  return found != NULL && found->root != NULL ? found : NULL;
}

/* --- what a file declares --- */

static bool called_is_scalar(const struct yaml_node *node) {
  return node->kind != YAML_LIST && node->kind != YAML_MAP && node->kind != YAML_NULL;
}

static void declare_one(struct expand *e, struct called *c, const struct yaml_pair *pair) {
  const struct yaml_node *at = pair->key, *value = pair->value;
  struct param param = {.at = at, .name = at->text};
  if (!scope_is_param(at->text)) {
    REPORT(e->p, at, "a param's name is letters, digits, _ and -, at most 64: not %s",
           parse_shown(e->p, at->text));
    return;
  }
  if (value->kind == YAML_LIST) {
    REPORT(e->p, value, "a param is its default, or a map of description and default");
    return;
  }
  for (size_t i = 0; value->kind == YAML_MAP && i < value->count; i++) {
    const struct yaml_pair *own = &value->pairs[i];
    bool is_default = str_eq_c(own->key->text, "default");
    if (!is_default && !str_eq_c(own->key->text, "description"))
      REPORT(e->p, own->key, "a param has no key %s: use description or default",
             parse_shown(e->p, own->key->text));
    else if (!called_is_scalar(own->value))
      REPORT(e->p, own->value, "%s of a param must be a text",
             is_default ? "default" : "description");
    else if (is_default)
      param.value = own->value;
    else
      param.description = own->value->text;
  }
  if (called_is_scalar(value))
    param.value = value;
  if (param.value != NULL && param.value->text.n > LIMIT_INPUT_BYTES)
    REPORT(e->p, param.value, "a param's value is at most %u bytes", LIMIT_INPUT_BYTES);
  c->params[c->param_count++] = param;
}

static void declare_returns(struct expand *e, struct called *c) {
  const struct yaml_node *returns = yaml_get(c->root, "returns");
  if (returns == NULL)
    return;
  if (returns->kind != YAML_LIST || returns->count == 0 || returns->count > LIMIT_RULE_COUNT) {
    REPORT(e->p, returns, "returns must be a list of labels: write [approved, rejected]");
    return;
  }
  c->returns = returns;
  for (size_t i = 0; i < returns->count; i++) {
    const struct yaml_node *label = returns->items[i];
    if (label->kind != YAML_TEXT || str_trim(label->text).n == 0 || str_has_control(label->text) ||
        label->text.n > LIMIT_NAME_BYTES)
      REPORT(e->p, label, "a label of returns is one line of at most %u bytes", LIMIT_NAME_BYTES);
    else if (str_eq_c(label->text, "COMPLETE") || str_eq_c(label->text, "ABORT"))
      REPORT(e->p, label, "%s is returned without being listed: remove it", label->text.p);
  }
}

void called_declare(struct expand *e, struct called *c) {
  assert(c->root != NULL);
  const struct yaml_node *params = yaml_get(c->root, "params");
  declare_returns(e, c);
  if (params == NULL)
    return;
  if (params->kind != YAML_MAP || params->count == 0 || params->count > LIMIT_PARAM_COUNT) {
    REPORT(e->p, params,
           "params must be a map of 1 to %u names: write NAME: default, or NAME: "
           "{description: ...}",
           LIMIT_PARAM_COUNT);
    return;
  }
  c->params = arena_array(e->p->arena, params->count, sizeof *c->params);
  for (size_t i = 0; i < params->count; i++)
    declare_one(e, c, &params->pairs[i]);
}

/* --- values --- */

struct values {
  const char **params;
  struct template_var *texts, *templates;
  size_t count;
};

static struct values values_new(struct expand *e, const struct called *c,
                                struct name_scope *scope) {
  struct arena *arena = e->p->arena;
  struct values v = {
      .params = arena_array(arena, c->param_count + 1, sizeof *v.params),
      .texts = arena_array(arena, c->param_count + 1, sizeof *v.texts),
      .templates = arena_array(arena, c->param_count + 1, sizeof *v.templates),
  };
  for (size_t i = 0; i < c->param_count; i++)
    v.params[i] = arena_strndup(arena, c->params[i].name.p, c->params[i].name.n);
  scope->params = v.params;
  scope->texts = v.texts;
  scope->templates = v.templates;
  return v;
}

static void values_put(struct expand *e, struct values *v, struct str name, struct str text,
                       struct str filled) {
  struct buf b = {0};
  buf_puts(&b, PROMPT_INPUT);
  buf_str(&b, name);
  struct str var = arena_str(e->p->arena, buf_view(&b));
  v->texts[v->count] = (struct template_var){var, text};
  v->templates[v->count++] = (struct template_var){var, filled};
  buf_deinit(&b);
}

/* Puts both forms of an argument, which is a text of the caller. */
static void called_put_argument(struct expand *e, const struct instance *x, struct values *v,
                                const struct param *param, const struct yaml_node *arg) {
  struct err err;
  struct buf text = {0}, filled = {0};
  if (!called_is_scalar(arg))
    REPORT(e->p, arg, "args.%s must be a text, not %s", parse_shown(e->p, param->name),
           yaml_kind_name(arg->kind));
  else if (!scope_text(&x->origin.scope, SCOPE_PATH, arg->text, &text, &err) ||
           !scope_text(&x->origin.scope, SCOPE_INSTRUCTION, arg->text, &filled, &err))
    REPORT(e->p, arg, "%s", err.text);
  else if (text.n > LIMIT_INPUT_BYTES)
    REPORT(e->p, arg, "args.%s is over %u bytes", parse_shown(e->p, param->name),
           LIMIT_INPUT_BYTES);
  values_put(e, v, param->name, arena_str(e->p->arena, buf_view(&text)),
             arena_str(e->p->arena, buf_view(&filled)));
  buf_deinit(&text);
  buf_deinit(&filled);
}

static const struct param *find_param(const struct called *c, struct str name) {
  for (size_t i = 0; i < c->param_count; i++)
    if (str_eq(c->params[i].name, name))
      return &c->params[i];
  return NULL;
}

void called_scope(struct expand *e, const struct instance *x, const struct yaml_node *call,
                  const struct yaml_node *args, const struct called *c, struct name_scope *scope) {
  struct values v = values_new(e, c, scope);
  if (args != NULL && args->kind != YAML_MAP) {
    REPORT(e->p, args, "args must be a map: write NAME: text below it");
    args = NULL;
  }
  for (size_t i = 0; args != NULL && i < args->count; i++) {
    const struct yaml_node *key = args->pairs[i].key;
    const char *near = str_nearest(key->text, scope->params);
    if (find_param(c, key->text) == NULL)
      REPORT(e->p, key, "%s declares no param %s%s%s%s", c->file, parse_shown(e->p, key->text),
             near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
  }
  for (size_t i = 0; i < c->param_count; i++) {
    const struct param *param = &c->params[i];
    const struct yaml_node *arg = NULL;
    for (size_t k = 0; args != NULL && k < args->count; k++)
      if (str_eq(args->pairs[k].key->text, param->name))
        arg = args->pairs[k].value;
    if (arg != NULL)
      called_put_argument(e, x, &v, param, arg);
    else if (param->value != NULL)
      values_put(e, &v, param->name, param->value->text, param->value->text);
    else
      REPORT(e->p, call, "the argument %s of %s is missing (line %d there): add it below %s",
             scope->params[i], c->file, param->at->line, yaml_get(call, "call") ? "args" : "with");
  }
}

static bool is_input(const json_t *given) {
  size_t n = json_string_length(given);
  return json_is_string(given) && n <= LIMIT_INPUT_BYTES &&
         memchr(json_string_value(given), '\0', n) == NULL;
}

static void refuse_unknown_inputs(struct parse *p, const struct called *c,
                                  const char *const *names) {
  const struct yaml_node *params = yaml_get(c->root, "params");
  const char *name;
  const json_t *given;
  json_object_foreach((json_t *)p->inputs, name, given) {
    const char *near = str_nearest(str_from(name), names);
    if (find_param(c, str_from(name)) == NULL)
      REPORT(p, params ? params : c->root, "the workflow takes no input %s%s%s%s",
             parse_shown(p, str_from(name)), near ? ": did you mean " : "", near ? near : "",
             near ? "?" : "");
  }
}

json_t *called_inputs(struct expand *e, const struct called *c, struct name_scope *scope) {
  json_t *inputs = c->param_count > 0 ? json_object() : NULL;
  struct values v = values_new(e, c, scope);
  const json_t *given;
  refuse_unknown_inputs(e->p, c, scope->params);
  for (size_t i = 0; i < c->param_count; i++) {
    const struct param *param = &c->params[i];
    given = json_object_get(e->p->inputs, scope->params[i]);
    struct str text = STR("");
    if (given != NULL && !is_input(given))
      REPORT(e->p, param->at, "the input %s must be a text of at most %u bytes without NUL",
             scope->params[i], LIMIT_INPUT_BYTES);
    else if (given != NULL)
      text = arena_str(e->p->arena, json_view(given));
    else if (param->value != NULL)
      text = param->value->text;
    else if (e->p->starts)
      REPORT(e->p, param->at, "the input %s is missing: give --input %s=VALUE%s" STR_FMT "%s",
             scope->params[i], scope->params[i], param->description.n ? " (" : "",
             STR_ARG(param->description), param->description.n ? ")" : "");
    if (given != NULL || param->value != NULL)
      values_put(e, &v, param->name, text, text);
    parse_put(inputs, scope->params[i], json_stringn(text.p, text.n));
  }
  return inputs;
}
