/* Flattens the calls of workflows: reads the files that are called, copies their movements under
 * full names into the place where they are called, and finds where rules lead. */
#include "workflow/expand.h"

#include "base/file.h"
#include "base/limits.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

struct param {
  const struct yaml_node *at; /* its name */
  struct str name;
  const struct yaml_node *value; /* its default; NULL: it must be given */
  struct str description;
};

/* Describes a called file, or the file that a session is made from. */
struct called {
  struct called *next; /* among the files that are known */
  dev_t device;
  ino_t inode;
  const char *file;             /* for messages */
  const struct yaml_node *root; /* a map; its nodes know their file */
  struct facets facets;
  struct param *params;
  size_t param_count;
  const struct yaml_node *returns; /* a list of labels, or NULL */
  bool checked;                    /* its own keys, which is done once */
};

struct expand {
  struct parse *p;
  struct called *files;
  size_t call_count, node_count;
  bool full;                     /* a bound was met and reported */
  const struct yaml_node **flat; /* the movements; room for one more than there may be */
  size_t flat_count;
};

/* Describes a called file at one place that calls it. */
struct instance {
  struct origin origin;
  const struct called *called;
  const struct instance *caller; /* NULL: the session's own file */
  const struct yaml_node *call;  /* the movement there that calls it, as it was read */
  size_t depth;
  bool is_fragment;            /* of a movement of the file that `root` is of; that is: */
  const struct instance *user; /* where it is used; NULL: no fragment; the movement there: */
  const struct yaml_node *used_at;
};

/* --- nodes --- */

static struct yaml_node *expand_node(struct expand *e, const struct yaml_node *like,
                                     const struct yaml_origin *origin) {
  struct yaml_node *copy = arena_alloc(e->p->arena, sizeof *copy);
  *copy = *like;
  copy->origin = origin;
  if (++e->node_count > LIMIT_YAML_NODE_COUNT && !e->full) {
    e->full = true;
    REPORT(e->p, like, "with all that it calls the workflow has over %u values: split it",
           LIMIT_YAML_NODE_COUNT);
  }
  return copy;
}

static void expand_set_text(struct expand *e, struct yaml_node *node, struct str text) {
  if (str_eq(node->text, text))
    return;
  node->text = arena_str(e->p->arena, text);
  node->text_shift = -1;
}

static struct yaml_node *text_node(struct expand *e, const struct yaml_node *like,
                                   const struct yaml_origin *origin, struct str text) {
  struct yaml_node *node = expand_node(e, like, origin);
  node->kind = YAML_TEXT;
  expand_set_text(e, node, text);
  return node;
}

/* Copies a list or a map, with room for its items or pairs, which are the caller's to fill. */
static struct yaml_node *copy_shell(struct expand *e, const struct yaml_node *like,
                                    const struct yaml_origin *origin) {
  struct yaml_node *copy = expand_node(e, like, origin);
  if (like->kind == YAML_LIST)
    copy->items = arena_array(e->p->arena, like->count + 1, sizeof *copy->items);
  else if (like->kind == YAML_MAP)
    copy->pairs = arena_array(e->p->arena, like->count + 1, sizeof *copy->pairs);
  return copy;
}

/* Returns the value of a key of a workflow or its alias, NULL if the map has neither. */
static const struct yaml_node *expand_get(const struct yaml_node *root, const char *key) {
  return parse_member(root, key_find(&workflow_keys, str_from(key)));
}

/* --- texts --- */

static struct str put_names(struct expand *e, const struct instance *x, enum scope_place place,
                            const struct yaml_node *node) {
  buf_auto_t text = {0};
  struct err err;
  struct str done = node->text;
  if (memchr(node->text.p, '{', node->text.n) == NULL)
    return done;
  if (scope_text(&x->origin.scope, place, node->text, &text, &err))
    done = arena_str(e->p->arena, buf_view(&text));
  else
    REPORT(e->p, node, "%s", err.text);
  return done;
}

/* Copies a node and all below it for this origin, with the names in its texts replaced as those of
 * `x`; NULL: unchanged. */
static const struct yaml_node *copy_tree(struct expand *e, const struct yaml_origin *origin,
                                         const struct instance *x, enum scope_place place,
                                         const struct yaml_node *node) {
  if (e->full)
    return expand_node(e, node, origin);
  struct yaml_node *copy = copy_shell(e, node, origin);
  if (x != NULL && node->kind == YAML_TEXT)
    expand_set_text(e, copy, put_names(e, x, place, node));
  for (size_t i = 0; i < node->count && node->kind == YAML_LIST; i++)
    copy->items[i] = copy_tree(e, origin, x, place, node->items[i]);
  for (size_t i = 0; i < node->count && node->kind == YAML_MAP; i++) {
    copy->pairs[i].key = expand_node(e, node->pairs[i].key, origin);
    copy->pairs[i].value = copy_tree(e, origin, x, place, node->pairs[i].value);
  }
  return copy;
}

static const struct yaml_node *expand_plain(struct expand *e, const struct yaml_origin *origin,
                                            const struct yaml_node *node) {
  return copy_tree(e, origin, NULL, SCOPE_TEXT, node);
}

/* Returns a text of `x` with its names replaced, in the arena; reports errors. */
static struct str expand_text(struct expand *e, const struct instance *x,
                              const struct yaml_node *node) {
  return put_names(e, x, SCOPE_TEXT, node);
}

/* Returns the name that something of `x` has in the flat workflow. */
static struct str put_prefix(struct expand *e, const struct instance *x, struct str name) {
  return str_from(
      arena_printf(e->p->arena, STR_FMT STR_FMT, STR_ARG(x->origin.scope.prefix), STR_ARG(name)));
}

/* --- names of movements --- */

/* Returns its name: `name`, or else the last part of `uses`; NULL: it has none. */
static const struct yaml_node *expand_name(struct expand *e, const struct yaml_node *movement) {
  const struct yaml_node *name = yaml_get(movement, "name"), *uses = yaml_get(movement, "uses");
  if (name != NULL || uses == NULL || uses->kind != YAML_TEXT)
    return name;
  struct str last = uses->text;
  const char *slash = memrchr(last.p, '/', last.n);
  if (slash != NULL)
    last = (struct str){slash + 1, last.n - (size_t)(slash - last.p) - 1};
  const char *dot = memrchr(last.p, '.', last.n);
  if (dot != NULL)
    last.n = (size_t)(dot - last.p);
  return text_node(e, uses, uses->origin, last);
}

enum { CALLED_PATH_BYTES = 4096 };

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

/* Its params and returns, from its root. */
static void called_declare(struct expand *e, struct called *c) {
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

/* --- reading files --- */

static struct called *called_read(struct expand *e, const struct yaml_node *node, int fd,
                                  const char *path, const struct stat *st) {
  struct buf text = {0};
  struct err err;
  const struct yaml_node *root = NULL;
  struct called *c = arena_alloc(e->p->arena, sizeof *c);
  struct origin *origin = arena_alloc(e->p->arena, sizeof *origin);
  *c = (struct called){.next = e->files,
                       .device = st->st_dev,
                       .inode = st->st_ino,
                       .file = arena_strdup(e->p->arena, path)};
  e->files = c; /* also a wrong one, so that its errors are reported once */
  *origin = (struct origin){.base = {c->file}, .scope = scope_none};
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
  const struct facets *own = &e->p->facets;
  c->facets = (struct facets){.project = own->project, .home = own->home, .user = own->user};
  facets_beside(&c->facets, e->p->arena, c->file);
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
    print_into(shown, sizeof shown, "%s", path);
  else
    print_into(shown, sizeof shown, "%s/%s", folder, path);
  if (fd < 0 && (number == EXDEV || number == ELOOP)) {
    REPORT(e->p, node, "%s leads out of %s: copy the file there and write its path from there",
           path, folder);
    return true;
  }
  if (fd < 0 || fstat(fd, &st) != 0) {
    REPORT(e->p, node, "cannot read %s: %s", shown, strerror(number));
  } else {
    struct called *known = e->files;
    while (known != NULL && (known->device != st.st_dev || known->inode != st.st_ino))
      known = known->next;
    *out = known ? known : called_read(e, node, fd, shown, &st);
  }
  if (fd >= 0)
    close(fd);
  return true;
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
  print_into(path, sizeof path, "%s" STR_FMT ".yaml", fragment ? "fragments/" : "", STR_ARG(name));
  for (size_t i = 0; i < count; i++)
    if (folders[i] != NULL && folders[i][0] != '\0' && called_open(e, node, folders[i], path, out))
      return true;
  return false;
}

/* Returns the file that `node`, a text of `x`, names as a workflow or a fragment. NULL:
 * reported. */
static struct called *called_find(struct expand *e, const struct instance *x,
                                  const struct yaml_node *node, bool fragment) {
  const char *folder = x->called->facets.folder, *what = fragment ? "fragment" : "workflow";
  struct called *found = NULL;
  bool is_there;
  if (node->kind != YAML_TEXT || str_trim(node->text).n == 0)
    return REPORT(e->p, node, "%s must be the name or path of a %s", fragment ? "uses" : "call",
                  what);
  struct str name = expand_text(e, x, node);
  bool path = memchr(name.p, '/', name.n) != NULL || str_ends(name, ".yaml") ||
              str_ends(name, ".yml") || str_ends(name, ".json");
  if (str_has_control(name) || name.n > (path ? CALLED_PATH_BYTES / 2 : LIMIT_NAME_BYTES))
    return REPORT(e->p, node, "this is not the name or path of a %s", what);
  if (path && folder == NULL)
    return REPORT(
        e->p, node,
        "%s is a path, and this workflow did not come from a file: write its movements here",
        parse_shown(e->p, name));
  if (path)
    is_there = called_open(e, node, folder, name.p, &found);
  else
    is_there = called_by_name(e, x, node, fragment, name, &found);
  if (!is_there)
    called_report_missing(e, node, folder, fragment, path, name);
  return found != NULL && found->root != NULL ? found : NULL;
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
  struct str var = str_from(arena_printf(e->p->arena, PROMPT_INPUT STR_FMT, STR_ARG(name)));
  v->texts[v->count] = (struct template_var){var, text};
  v->templates[v->count++] = (struct template_var){var, filled};
}

/* Puts both forms of an argument, which is a text of the caller. */
static void called_put_argument(struct expand *e, const struct instance *x, struct values *v,
                                const struct param *param, const struct yaml_node *arg) {
  struct err err;
  buf_auto_t text = {0}, filled = {0};
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
}

static const struct param *find_param(const struct called *c, struct str name) {
  for (size_t i = 0; i < c->param_count; i++)
    if (str_eq(c->params[i].name, name))
      return &c->params[i];
  return NULL;
}

/* Values for the params of `c`, from the pairs of `args` (or NULL), which is a text of `x`. */
static void called_scope(struct expand *e, const struct instance *x, const struct yaml_node *call,
                         const struct yaml_node *args, const struct called *c,
                         struct name_scope *scope) {
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

/* Does the same for the session's own file, from outside. A new reference. */
static json_t *called_inputs(struct expand *e, const struct called *c, struct name_scope *scope) {
  json_t *inputs = c->param_count > 0 ? json_object() : NULL;
  struct values v = values_new(e, c, scope);
  const json_t *given;
  const struct yaml_node *params = yaml_get(c->root, "params");
  const char *name;
  json_object_foreach((json_t *)e->p->inputs, name, given) {
    const char *near = str_nearest(str_from(name), scope->params);
    if (find_param(c, str_from(name)) == NULL)
      REPORT(e->p, params ? params : c->root, "the workflow takes no input %s%s%s%s",
             parse_shown(e->p, str_from(name)), near ? ": did you mean " : "", near ? near : "",
             near ? "?" : "");
  }
  for (size_t i = 0; i < c->param_count; i++) {
    const struct param *param = &c->params[i];
    given = json_object_get(e->p->inputs, scope->params[i]);
    struct str text = STR("");
    if (given != NULL &&
        (!json_is_string(given) || json_string_length(given) > LIMIT_INPUT_BYTES ||
         memchr(json_string_value(given), '\0', json_string_length(given)) != NULL))
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

/* --- what calls what --- */

static const struct yaml_node *movements_of(const struct yaml_node *root) {
  const struct yaml_node *list = expand_get(root, "movements");
  return list != NULL && list->kind == YAML_LIST ? list : NULL;
}

static struct yaml_node *named(struct expand *e, const struct yaml_node *like, const char *word) {
  return text_node(e, like, like->origin, str_from(word));
}

/* Returns false if it is too deep, or a call leads back; reported at `node`. */
static bool expand_may_enter(struct expand *e, const struct instance *x,
                             const struct yaml_node *node, const struct called *c) {
  const struct yaml_node *first = NULL;
  assert(x != NULL);
  assert(c != NULL);
  for (const struct instance *at = x; at != NULL; at = at->user ? at->user : at->caller) {
    if (at->called->inode == c->inode && at->called->device == c->device) {
      if (first == NULL)
        REPORT(e->p, node, "%s calls itself here: a workflow cannot be part of itself", c->file);
      else
        REPORT(e->p, node, "%s calls itself: it came here through its line %d (%s)", c->file,
               first->line, parse_file_of(e->p, first));
      return false;
    }
    first = at->user ? at->used_at : at->call;
  }
  if (x->depth < LIMIT_CALL_DEPTH)
    return true;
  REPORT(e->p, node, "calls are nested deeper than %u: put some into one file", LIMIT_CALL_DEPTH);
  return false;
}

/* Sets up the file that a movement of `x` calls, in that movement's place. Returns false if an
 * error was reported. */
static bool expand_enter(struct expand *e, const struct instance *x,
                         const struct yaml_node *movement, struct instance *out) {
  const struct yaml_node *call = yaml_get(movement, "call"), *name = expand_name(e, movement);
  struct called *c = called_find(e, x, call, false);
  if (c == NULL || !expand_may_enter(e, x, call, c))
    return false;
  *out = (struct instance){.origin = {.base = {c->file}, .facets = c->facets, .scope = scope_none},
                           .called = c,
                           .caller = x,
                           .call = movement,
                           .depth = x->depth + 1};
  struct str own = STR("");
  if (name != NULL && name->kind == YAML_TEXT)
    own = expand_text(e, x, name);
  out->origin.scope.prefix = str_from(arena_printf(e->p->arena, STR_FMT STR_FMT "/",
                                                   STR_ARG(x->origin.scope.prefix), STR_ARG(own)));
  called_scope(e, x, movement, yaml_get(movement, "args"), c, &out->origin.scope);
  return true;
}

/* --- where rules lead --- */

static const struct yaml_node *rule_of_label(struct expand *e, const struct instance *x,
                                             struct str label) {
  const struct yaml_node *rules = yaml_get(x->call, "rules");
  for (size_t i = 0; rules != NULL && rules->kind == YAML_LIST && i < rules->count; i++) {
    const struct yaml_node *condition = yaml_get(rules->items[i], "condition");
    if (condition != NULL && condition->kind == YAML_TEXT &&
        str_eq(str_trim(expand_text(e, x->caller, condition)), label))
      return rules->items[i];
  }
  return NULL;
}

static struct str target_of_exit(struct expand *e, const struct instance *x, struct str label,
                                 const struct yaml_node *rule);

static struct str returns_label(struct expand *e, const struct instance *x,
                                const struct yaml_node *node, const struct yaml_node *rule) {
  const struct yaml_node *list = x->called->returns;
  for (size_t i = 0; list != NULL && i < list->count; i++)
    if (str_eq(str_trim(list->items[i]->text), str_trim(node->text)))
      return target_of_exit(e, x, str_trim(node->text), rule);
  REPORT(e->p, node, "%s is not among what this workflow returns: write returns: [" STR_FMT "%s]",
         parse_shown(e->p, node->text), STR_ARG(str_trim(node->text)), list ? ", ..." : "");
  return STR("COMPLETE");
}

/* Returns where a rule begins that goes to the movement of this name in `x`. */
static struct str expand_entry(struct expand *e, const struct instance *x,
                               const struct yaml_node *name) {
  struct str own = expand_text(e, x, name);
  while (x->user != NULL) /* a fragment names the movements around it */
    x = x->user;
  const struct yaml_node *list = movements_of(x->called->root), *movement = NULL;
  for (size_t i = 0; list != NULL && i < list->count && movement == NULL; i++) {
    const struct yaml_node *one = expand_name(e, list->items[i]);
    if (one != NULL && one->kind == YAML_TEXT && str_eq(one->text, own))
      movement = list->items[i];
  }
  struct instance inner;
  if (movement != NULL && yaml_get(movement, "call") != NULL &&
      expand_enter(e, x, movement, &inner)) {
    /* It begins with the movement that it says, else with the first one. */
    const struct yaml_node *first = expand_get(inner.called->root, "initial_movement");
    list = movements_of(inner.called->root);
    if ((first == NULL || first->kind != YAML_TEXT) && list != NULL && list->count > 0)
      first = expand_name(e, list->items[0]);
    if (first != NULL && first->kind == YAML_TEXT)
      return expand_entry(e, &inner, first);
  }
  return put_prefix(e, x, own);
}

/* Returns where a rule of `x` leads in the flat workflow. */
static struct str expand_target(struct expand *e, const struct instance *x,
                                const struct yaml_node *rule) {
  const struct yaml_node *next = yaml_get(rule, "next"), *back = yaml_get(rule, "return");
  if (back != NULL && back->kind == YAML_TEXT && next == NULL)
    return returns_label(e, x, back, rule);
  if (next == NULL || next->kind != YAML_TEXT)
    return STR("");
  if (str_eq_c(next->text, "COMPLETE") || str_eq_c(next->text, "ABORT"))
    return target_of_exit(e, x, next->text, rule);
  return expand_entry(e, x, next);
}

/* Returns where the caller continues when the file `x` returns `label`, as the caller's rule
 * says. */
static struct str target_of_exit(struct expand *e, const struct instance *x, struct str label,
                                 const struct yaml_node *rule) {
  if (x->caller == NULL)
    return str_eq_c(label, "ABORT") ? label : STR("COMPLETE");
  const struct yaml_node *taken = rule_of_label(e, x, label);
  if (taken != NULL)
    return expand_target(e, x->caller, taken);
  if (str_eq_c(label, "ABORT"))
    return target_of_exit(e, x->caller, label, rule);
  REPORT(e->p, x->call,
         "%s can return " STR_FMT " (line %d there), and no rule here has this condition: add one",
         x->called->file, STR_ARG(label), rule->line);
  return STR("COMPLETE");
}

/* --- maps of known keys --- */

static const struct yaml_node *copy_map(struct expand *e, const struct instance *x,
                                        const struct key_set *set, const struct yaml_node *map);

static const struct yaml_node *copy_movement(struct expand *e, const struct instance *x,
                                             const struct yaml_node *movement, bool child);

static const struct yaml_node *copy_list(struct expand *e, const struct instance *x,
                                         const struct key_set *set, const struct yaml_node *list) {
  if (e->full || list->kind != YAML_LIST)
    return expand_plain(e, &x->origin.base, list);
  struct yaml_node *copy = copy_shell(e, list, &x->origin.base);
  for (size_t i = 0; i < list->count; i++) {
    if (set == &movement_keys)
      copy->items[i] = copy_movement(e, x, list->items[i], true);
    else
      copy->items[i] = copy_map(e, x, set, list->items[i]);
  }
  return copy;
}

static const struct yaml_node *copy_value(struct expand *e, const struct instance *x,
                                          const struct key *k, const struct yaml_node *node) {
  bool leads_on = k != NULL && str_among(str_from(k->name), "on_reject on_error to");
  if (leads_on && node->kind == YAML_TEXT) { /* as `next` does */
    const struct yaml_node key = {.kind = YAML_TEXT, .text = STR("next")};
    struct yaml_pair pair = {&key, node};
    const struct yaml_node rule = {
        .kind = YAML_MAP, .line = node->line, .column = node->column, .count = 1, .pairs = &pair};
    return text_node(e, node, &x->origin.base, expand_target(e, x, &rule));
  }
  if (k == NULL || k->type == KEY_FACET || k->type == KEY_SECTION || k->type == KEY_NOTED ||
      (k->type == KEY_SCHEMA && node->kind == YAML_MAP))
    return expand_plain(e, &x->origin.base, node);
  if (k->type == KEY_SET && (k->or_member == NULL || node->kind == YAML_MAP))
    return copy_map(e, x, k->set, node);
  if (k->type == KEY_SET_LIST)
    return copy_list(e, x, k->set, node);
  if (k->type == KEY_CONDITION) {
    struct str text = node->text;
    struct err err;
    if (node->kind != YAML_TEXT)
      return expand_node(e, node, &x->origin.base);
    if (!scope_condition(&x->origin.scope, e->p->arena, node->text, &text, &err))
      REPORT(e->p, node, "%s", err.text);
    return text_node(e, node, &x->origin.base, text);
  }
  bool names = k->type == KEY_ITEMS || str_among(str_from(k->name), "integrate group");
  if (names && node->kind == YAML_TEXT) /* names of movements of this file */
    return text_node(e, node, &x->origin.base, put_prefix(e, x, expand_text(e, x, node)));
  enum scope_place place = SCOPE_TEXT;
  if (k->type == KEY_OUTPUTS || strcmp(k->name, "question") == 0) /* these are templates */
    place = SCOPE_INSTRUCTION;
  else if (strcmp(k->name, "cwd") == 0)
    place = SCOPE_PATH;
  return copy_tree(e, &x->origin.base, x, place, node);
}

/* Sets `next` of the copied rule, whichever key the file uses for it. */
static void copy_target(struct expand *e, const struct instance *x, const struct yaml_node *rule,
                        struct yaml_node *copy) {
  const struct yaml_node *next = yaml_get(rule, "next"), *back = yaml_get(rule, "return");
  for (size_t i = 0; i < copy->count; i++) {
    bool is_next = str_eq_c(copy->pairs[i].key->text, "next");
    if (!is_next && !str_eq_c(copy->pairs[i].key->text, "return"))
      continue;
    if (next != NULL && back != NULL && !is_next)
      REPORT(e->p, copy->pairs[i].key, "a rule leads somewhere or returns: remove next or return");
    if (copy->pairs[i].value->kind != YAML_TEXT)
      continue;
    const struct yaml_node *to = copy->pairs[i].value;
    copy->pairs[i].key = named(e, copy->pairs[i].key, "next");
    copy->pairs[i].value = text_node(e, to, to->origin, expand_target(e, x, rule));
  }
  if (next != NULL && back != NULL)
    copy->count = 0; /* the error was reported */
}

static const struct yaml_node *copy_map(struct expand *e, const struct instance *x,
                                        const struct key_set *set, const struct yaml_node *map) {
  if (e->full || map->kind != YAML_MAP)
    return expand_plain(e, &x->origin.base, map);
  struct yaml_node *copy = copy_shell(e, map, &x->origin.base);
  for (size_t i = 0; i < map->count; i++) {
    const struct yaml_node *key = map->pairs[i].key;
    copy->pairs[i].key = expand_node(e, key, &x->origin.base);
    copy->pairs[i].value = copy_value(e, x, key_find(set, key->text), map->pairs[i].value);
  }
  if (set == &rule_keys)
    copy_target(e, x, map, copy);
  return copy;
}

/* --- copies of movements --- */

/* Adds a pair at the end, or in place of the one with that key. */
static void put_pair(struct expand *e, struct yaml_node *map, const struct yaml_node *key,
                     const struct yaml_node *value) {
  for (size_t i = 0; i < map->count; i++)
    if (str_eq(map->pairs[i].key->text, key->text)) {
      map->pairs[i].value = value;
      return;
    }
  struct yaml_pair *wider = arena_array(e->p->arena, map->count + 1, sizeof *wider);
  if (map->count > 0)
    memcpy(wider, map->pairs, map->count * sizeof *wider);
  wider[map->count++] = (struct yaml_pair){key, value};
  map->pairs = wider;
}

static void drop_pair(struct yaml_node *map, const char *key) {
  size_t kept = 0;
  for (size_t i = 0; i < map->count; i++)
    if (!str_eq_c(map->pairs[i].key->text, key))
      map->pairs[kept++] = map->pairs[i];
  map->count = kept;
}

/* Lays `over` on top of `under`, both of them our own copies: maps key by key, everything else as a
 * whole. */
static const struct yaml_node *lay_over(struct expand *e, const struct yaml_node *under,
                                        const struct yaml_node *over) {
  if (under->kind != YAML_MAP || over->kind != YAML_MAP)
    return over;
  struct yaml_node *both = expand_node(e, over, over->origin);
  both->count = 0;
  both->pairs = NULL;
  for (size_t i = 0; i < under->count; i++)
    put_pair(e, both, under->pairs[i].key, under->pairs[i].value);
  for (size_t i = 0; i < over->count; i++) {
    const struct yaml_node *below = NULL;
    for (size_t k = 0; k < under->count; k++)
      if (str_eq(under->pairs[k].key->text, over->pairs[i].key->text))
        below = under->pairs[k].value;
    put_pair(e, both, over->pairs[i].key,
             below ? lay_over(e, below, over->pairs[i].value) : over->pairs[i].value);
  }
  return both;
}

/* Copies the fragment's map where `movement` of `x` uses it; NULL if an error was reported. */
static const struct yaml_node *copy_fragment(struct expand *e, const struct instance *x,
                                             const struct yaml_node *movement) {
  const struct yaml_node *uses = yaml_get(movement, "uses");
  struct called *c = called_find(e, x, uses, true);
  if (c == NULL || !expand_may_enter(e, x, uses, c))
    return NULL;
  struct instance *fragment = arena_alloc(e->p->arena, sizeof *fragment);
  *fragment = *x;
  fragment->origin.base.file = c->file;
  fragment->origin.facets = c->facets;
  fragment->origin.scope.outside = false;
  called_scope(e, x, movement, yaml_get(movement, "with"), c, &fragment->origin.scope);
  struct called *own = arena_alloc(e->p->arena, sizeof *own); /* paths start at its folder */
  *own = *c;
  own->root = x->called->root; /* names are those of the movements around it */
  own->returns = x->called->returns;
  fragment->called = own;
  fragment->is_fragment = true;
  fragment->user = x;
  fragment->used_at = movement;
  fragment->depth = x->depth + 1;
  struct yaml_node *root = copy_shell(e, c->root, c->root->origin);
  if (c->root->count > 0)
    memcpy(root->pairs, c->root->pairs, c->root->count * sizeof *root->pairs);
  drop_pair(root, "params");
  drop_pair(root, "name");
  return copy_movement(e, fragment, root, true);
}

/* Finds the key in the nearest of `x` and its callers, except the session's own file. */
static const struct yaml_node *inherited(const struct instance *x, const char *key,
                                         const struct instance **from) {
  for (; x->caller != NULL; x = x->caller) {
    const struct yaml_node *value = expand_get(x->called->root, key);
    *from = x;
    if (value != NULL)
      return value;
  }
  return NULL;
}

static void inherit_one(struct expand *e, const struct instance *x, struct yaml_node *movement,
                        const char *key) {
  const struct instance *from;
  const struct yaml_node *value = inherited(x, key, &from);
  if (value != NULL && yaml_get(movement, key) == NULL)
    put_pair(e, movement, named(e, value, key),
             copy_value(e, from, key_find(&workflow_keys, str_from(key)), value));
}

static void inherit(struct expand *e, const struct instance *x, struct yaml_node *movement) {
  const struct yaml_node *judge = yaml_get(movement, "judge");
  bool is_group = yaml_get(movement, "parallel") != NULL;
  bool is_asked = yaml_get(movement, "ask") != NULL;
  if (!is_group && !is_asked && yaml_get(movement, "command") == NULL) {
    /* A model belongs to the provider it is written with. */
    const struct instance *from = NULL, *model_from = NULL;
    const struct yaml_node *provider = inherited(x, "provider", &from);
    const struct yaml_node *model = inherited(x, "model", &model_from);
    bool own_provider = yaml_get(movement, "provider") != NULL;
    if (model != NULL && !own_provider && (provider == NULL || from->depth <= model_from->depth))
      inherit_one(e, x, movement, "model");
    inherit_one(e, x, movement, "provider");
    inherit_one(e, x, movement, "options");
  }
  for (const struct instance *at = x; at->caller != NULL; at = at->caller) {
    const struct yaml_node *own = expand_get(at->called->root, "judge");
    if (own == NULL || own->kind != YAML_MAP)
      continue;
    const struct yaml_node *copy = copy_map(e, at, &judge_keys, own);
    judge = judge ? lay_over(e, copy, judge) : copy;
  }
  if (judge != NULL && x->caller != NULL)
    put_pair(e, movement, named(e, judge, "judge"), judge);
}

/* Copies a movement. What a fragment inherits is left to the movement that uses it. */
static const struct yaml_node *copy_movement(struct expand *e, const struct instance *x,
                                             const struct yaml_node *movement, bool child) {
  if (movement->kind != YAML_MAP)
    return expand_plain(e, &x->origin.base, movement);
  const struct yaml_node *name = expand_name(e, movement), *call = yaml_get(movement, "call");
  const struct yaml_node *own = copy_map(e, x, &movement_keys, movement);
  struct yaml_node *copy = expand_node(e, own, own->origin);
  if (call != NULL)
    REPORT(e->p, call,
           "a child of parallel or a fragment cannot call a workflow: call it from a movement of "
           "its own");
  if (yaml_get(movement, "uses") != NULL) {
    const struct yaml_node *fragment = copy_fragment(e, x, movement);
    drop_pair(copy, "uses");
    drop_pair(copy, "with");
    if (fragment != NULL) {
      const struct yaml_node *both = lay_over(e, fragment, copy);
      copy = expand_node(e, both, both->origin);
    }
  }
  if (name != NULL && name->kind == YAML_TEXT) {
    struct str full = expand_text(e, x, name);
    put_pair(e, copy, named(e, name, "name"),
             text_node(e, name, &x->origin.base, child ? full : put_prefix(e, x, full)));
  }
  const struct yaml_node *key = yaml_get(movement, "session_key");
  if (key != NULL && key->kind == YAML_TEXT)
    put_pair(e, copy, named(e, key, "session_key"),
             text_node(e, key, &x->origin.base, put_prefix(e, x, expand_text(e, x, key))));
  if (!x->is_fragment)
    inherit(e, x, copy);
  return copy;
}

/* Returns the root of the session's own file, with the flat movements instead of its own. */
static const struct yaml_node *expand_root(struct expand *e, const struct instance *x) {
  const struct yaml_node *root = x->called->root;
  struct yaml_node *copy = copy_shell(e, root, &x->origin.base);
  for (size_t i = 0; i < root->count; i++) {
    const struct yaml_node *value = root->pairs[i].value;
    const struct key *k = key_find(&workflow_keys, root->pairs[i].key->text);
    copy->pairs[i].key = expand_node(e, root->pairs[i].key, &x->origin.base);
    if (k != NULL && k->set == &movement_keys && value->kind == YAML_LIST) {
      struct yaml_node *list = expand_node(e, value, &x->origin.base);
      list->items = e->flat;
      list->count = e->flat_count;
      copy->pairs[i].value = list;
      continue;
    }
    copy->pairs[i].value = copy_value(e, x, k, value);
    if (k != NULL && strcmp(k->name, "initial_movement") == 0 && value->kind == YAML_TEXT)
      copy->pairs[i].value = text_node(e, value, &x->origin.base, expand_entry(e, x, value));
  }
  drop_pair(copy, "params");
  drop_pair(copy, "returns");
  return copy;
}

/* --- movements --- */

/* Checks that a condition of a call's rule is something that the file returns. */
static void expand_check_label(struct expand *e, const struct yaml_node *node, struct str label,
                               const struct called *c) {
  const char *names[LIMIT_RULE_COUNT + 3] = {"COMPLETE", "ABORT"};
  for (size_t i = 0; c->returns != NULL && i < c->returns->count; i++)
    names[i + 2] = c->returns->items[i]->text.p;
  for (size_t i = 0; names[i] != NULL; i++)
    if (str_eq(label, str_trim(str_from(names[i]))))
      return;
  const char *near = str_nearest(label, names);
  if (near != NULL)
    REPORT(e->p, node, "%s does not return %s: did you mean %s?", c->file, parse_shown(e->p, label),
           near);
  else
    REPORT(e->p, node,
           "%s does not return %s: it returns the labels in its returns, COMPLETE or ABORT",
           c->file, parse_shown(e->p, label));
}

/* Checks the rules of a movement that calls a file: they hold only labels and where they lead. */
static void check_call_rules(struct expand *e, const struct instance *x,
                             const struct yaml_node *movement, const struct called *c) {
  const struct yaml_node *rules = yaml_get(movement, "rules");
  if (rules == NULL || rules->kind != YAML_LIST) {
    REPORT(e->p, movement,
           "a movement with call has rules: a condition for COMPLETE, and for each "
           "label that %s returns",
           c->file);
    return;
  }
  for (size_t i = 0; i < rules->count; i++) {
    const struct yaml_node *rule = rules->items[i], *condition = yaml_get(rule, "condition");
    if (rule->kind != YAML_MAP || condition == NULL || condition->kind != YAML_TEXT) {
      REPORT(e->p, rule, "a rule of a call has only condition and next");
      continue;
    }
    for (size_t k = 0; k < rule->count; k++) {
      struct str key = rule->pairs[k].key->text;
      if (!str_among(key, "condition next return"))
        REPORT(e->p, rule->pairs[k].key,
               "a rule of a call is decided by the workflow it calls: "
               "remove %s",
               parse_shown(e->p, key));
    }
    expand_check_label(e, condition, str_trim(expand_text(e, x, condition)), c);
    if (yaml_get(rule, "next") == NULL && yaml_get(rule, "return") == NULL)
      REPORT(e->p, rule, "a rule has no next: add next:");
  }
}

static void check_calling(struct expand *e, const struct instance *x,
                          const struct yaml_node *movement, const struct called *c) {
  for (size_t i = 0; i < movement->count; i++) {
    const struct yaml_node *key = movement->pairs[i].key;
    if (!str_among(key->text, "name description call args rules"))
      REPORT(e->p, key, "a movement with call does no work of its own: write %s into %s",
             parse_shown(e->p, key->text), c->file);
  }
  const struct yaml_node *name = expand_name(e, movement);
  if (name == NULL || name->kind != YAML_TEXT || name->text.n == 0)
    REPORT(e->p, movement, "a movement has no name: add name:");
  check_call_rules(e, x, movement, c);
}

static void flatten_call(struct expand *e, const struct instance *x,
                         const struct yaml_node *movement);

static void flatten(struct expand *e, const struct instance *x) {
  const struct yaml_node *list = movements_of(x->called->root);
  for (size_t i = 0; list != NULL && i < list->count && !e->full; i++) {
    const struct yaml_node *movement = list->items[i];
    if (movement->kind == YAML_MAP && yaml_get(movement, "call") != NULL) {
      flatten_call(e, x, movement);
      continue;
    }
    if (e->flat_count > LIMIT_MOVEMENT_COUNT) { /* the parser reports it */
      e->full = true;
      return;
    }
    e->flat[e->flat_count++] = copy_movement(e, x, movement, false);
  }
}

static void flatten_call(struct expand *e, const struct instance *x,
                         const struct yaml_node *movement) {
  struct instance *inner = arena_alloc(e->p->arena, sizeof *inner);
  if (++e->call_count > LIMIT_CALL_COUNT) {
    REPORT(e->p, movement,
           "more than %u calls, those of what is called among them: split the "
           "workflow",
           LIMIT_CALL_COUNT);
    e->full = true;
    return;
  }
  if (!expand_enter(e, x, movement, inner))
    return;
  struct called *c = (struct called *)inner->called;
  check_calling(e, x, movement, c);
  if (!c->checked) {
    c->checked = true;
    parse_called(e->p, c->root);
    parse_sections(e->p, &c->facets, c->root);
  }
  inner->origin.facets = c->facets;
  flatten(e, inner);
}

/* --- the file itself --- */

static bool names_key(const struct yaml_node *map, const char *a, const char *b) {
  return yaml_get(map, a) != NULL || yaml_get(map, b) != NULL;
}

static bool movement_is_made(const struct yaml_node *movement) {
  const struct yaml_node *children = yaml_get(movement, "parallel"),
                         *rules = yaml_get(movement, "rules");
  if (names_key(movement, "call", "uses") || names_key(movement, "args", "with"))
    return true;
  for (size_t i = 0; rules != NULL && rules->kind == YAML_LIST && i < rules->count; i++)
    if (yaml_get(rules->items[i], "return") != NULL)
      return true;
  for (size_t i = 0; children != NULL && children->kind == YAML_LIST && i < children->count; i++)
    if (movement_is_made(children->items[i]))
      return true;
  return false;
}

static void expand_begin(struct expand *e, struct parse *p, const struct yaml_node *root,
                         struct called *own) {
  *e = (struct expand){.p = p};
  struct stat st;
  *own = (struct called){.file = p->file, .root = root, .facets = p->facets};
  if (p->facets.folder != NULL && stat(p->file, &st) == 0) {
    own->device = st.st_dev;
    own->inode = st.st_ino;
  }
  called_declare(e, own);
}

const struct yaml_node *expand_workflow(struct parse *p, const struct yaml_node *root,
                                        json_t **inputs) {
  struct expand e;
  assert(root != NULL);
  assert(p->arena != NULL);
  *inputs = NULL;
  if (root->kind != YAML_MAP)
    return root;
  const struct yaml_node *movements = movements_of(root);
  bool is_made = names_key(root, "params", "returns") || json_object_size(p->inputs) > 0;
  for (size_t i = 0; movements != NULL && i < movements->count && !is_made; i++)
    is_made = movement_is_made(movements->items[i]);
  if (!is_made)
    return root;
  struct called *own = arena_alloc(p->arena, sizeof *own);
  struct instance *x = arena_alloc(p->arena, sizeof *x);
  expand_begin(&e, p, root, own);
  *x = (struct instance){.called = own,
                         .origin = {.base = {p->file}, .facets = p->facets, .scope = scope_none}};
  x->origin.scope.outside = true;
  *inputs = called_inputs(&e, own, &x->origin.scope);
  parse_sections(p, &x->origin.facets, root);
  own->facets = x->origin.facets;
  if (movements == NULL)
    return root;
  e.flat = arena_array(p->arena, LIMIT_MOVEMENT_COUNT + 1, sizeof *e.flat);
  flatten(&e, x);
  return expand_root(&e, x);
}

const struct yaml_node *expand_replace(struct parse *p, const struct yaml_node *root,
                                       const json_t *words, const char *file) {
  struct yaml_origin *origin = arena_alloc(p->arena, sizeof *origin);
  struct expand e = {.p = p};
  buf_auto_t text = {0};
  if (json_object_size(words) == 0 || root->kind != YAML_MAP)
    return root;
  *origin = (struct yaml_origin){file};
  json_write(words, &text);
  const struct yaml_node *given = yaml_parse(p->arena, file, arena_str(p->arena, buf_view(&text)),
                                             LIMIT_WORKFLOW_BYTES, p->errors);
  if (given == NULL)
    return root;
  given = expand_plain(&e, origin, given);
  struct yaml_node *copy = arena_alloc(p->arena, sizeof *copy);
  *copy = *root;
  copy->pairs = arena_array(p->arena, root->count + given->count, sizeof *copy->pairs);
  copy->count = 0;
  for (size_t i = 0; i < root->count; i++) {
    const struct key *key = key_find(&workflow_keys, root->pairs[i].key->text);
    if (key == NULL || parse_member(given, key) == NULL)
      copy->pairs[copy->count++] = root->pairs[i];
  }
  for (size_t i = 0; i < given->count; i++)
    copy->pairs[copy->count++] = given->pairs[i];
  return copy;
}

json_t *expand_params(struct parse *p, const struct yaml_node *root) {
  struct expand e;
  struct called own;
  json_t *list = json_array();
  expand_begin(&e, p, root, &own);
  for (size_t i = 0; i < own.param_count; i++) {
    const struct param *param = &own.params[i];
    json_t *entry = json_object();
    parse_put(entry, "name", json_stringn(param->name.p, param->name.n));
    if (param->description.n > 0)
      parse_put(entry, "description", json_stringn(param->description.p, param->description.n));
    if (param->value != NULL)
      parse_put(entry, "default", json_stringn(param->value->text.p, param->value->text.n));
    parse_append(list, entry);
  }
  return list;
}
