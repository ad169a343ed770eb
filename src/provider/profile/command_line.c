/* Makes what is run out of a call and a profile: words, environment, files. Templates are filled in
 * once; what is put in is never read again. */
#include "provider/profile/profile.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct words {
  const char **items;
  size_t count, cap;
};

struct filling {
  const struct profile *profile;
  const struct agent_call *call;
  struct arena *arena;
  const json_t *permission; /* words of the mode, or NULL */
  const char *schema, *schema_file, *prompt_file, *max_turns, *tools, *effort, *model;
  const char *run, *runs; /* one of the movement's programs; what `each_run` makes of all */
  const char *server, *servers_text; /* one of the user's servers; what `each` makes of all */
  const json_t *servers;             /* their names, as keys */
};

static void push(struct words *w, const char *word) {
  w->items = xgrow(w->items, &w->cap, w->count + 1, sizeof *w->items);
  w->items[w->count++] = word;
}

PRINTF_LIKE(4, 5)
static bool profile_command_refuse(enum error_class *class, enum error_class what, struct err *err,
                                   const char *fmt, ...) {
  char text[400];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  *class = what;
  return err_set(err, ERR_INVALID, "%s", text);
}

static bool is_judging(const struct agent_call *call) {
  return call->request != NULL &&
         (call->request->purpose == PURPOSE_JUDGE || call->request->purpose == PURPOSE_REASK);
}

static const char *profile_command_value_of(const struct filling *f, struct str name) {
  /* A report is on the agent's own work: its instructions stay, its tools do not. */
  const struct call_request *request = f->call->request;
  bool reports = request != NULL && request->purpose == PURPOSE_REPORT;
  const struct {
    const char *name, *value;
  } values[] = {
      {"model", f->model},
      {"session", f->call->session},
      {"new_session", f->call->session[0] ? "" : f->call->new_session},
      {"fork", request != NULL && request->forks ? "fork" : ""},
      {"schema", f->schema},
      {"schema_file", f->schema_file},
      {"prompt_file", f->prompt_file},
      {"max_turns", f->max_turns},
      {"tools", f->tools},
      {"effort", f->effort},
      {"cwd", f->call->cwd},
      {"tmpdir", f->call->tmpdir},
      {"judge", is_judging(f->call) ? "judge" : ""},
      {"report", reports ? "report" : ""},
      {"run", f->run},
      {"runs", f->runs},
      {"server", f->server},
      {"servers", f->servers_text},
  };
  for (size_t i = 0; i < ARRAY_LEN(values); i++)
    if (str_eq_c(name, values[i].name))
      return values[i].value;
  return NULL;
}

/* Returns the length of `{name}` or `{?name}` at the start of `text`, 0 if there is none. */
static size_t placeholder_at(struct str text, struct str *name, bool *asks) {
  size_t i = 1;
  if (text.n < 3 || text.p[0] != '{')
    return 0;
  *asks = text.p[i] == '?';
  i += *asks;
  size_t from = i;
  while (i < text.n && ((text.p[i] >= 'a' && text.p[i] <= 'z') || text.p[i] == '_'))
    i++;
  if (i == from || i == text.n || text.p[i] != '}')
    return 0;
  *name = (struct str){text.p + from, i - from};
  return i + 1;
}

/* Fills in one word. Sets *missing if a placeholder in it is empty. */
static const char *profile_command_fill(const struct filling *f, struct str text, bool *missing) {
  buf_auto_t out = {0};
  for (size_t i = 0; i < text.n;) {
    struct str name, rest = {text.p + i, text.n - i};
    bool asks = false;
    size_t n = placeholder_at(rest, &name, &asks);
    const char *value = n > 0 ? profile_command_value_of(f, name) : NULL;
    if (value == NULL) {
      buf_putc(&out, text.p[i++]);
      continue;
    }
    *missing = *missing || (value[0] == '\0' && value != f->runs && value != f->servers_text);
    if (!asks)
      buf_puts(&out, value);
    i += n;
  }
  return arena_strndup(f->arena, buf_c(&out), out.n);
}

static void push_all(const struct filling *f, const json_t *words, struct words *out);

static void push_word(const struct filling *f, const json_t *item, struct words *out) {
  struct str text = json_view(item);
  const json_t *args = json_object_get(f->call->settings, "args");
  bool missing = false;
  if (str_eq_c(text, "{permission}")) {
    push_all(f, f->permission, out);
    return;
  }
  if (str_eq_c(text, "{args}")) {
    for (size_t i = 0; i < json_array_size(args); i++)
      push(out, json_string_value(json_array_get(args, i)));
    return;
  }
  const char *word = profile_command_fill(f, text, &missing);
  struct str name;
  bool asks = false;
  if ((placeholder_at(text, &name, &asks) != text.n || !asks) && !(missing && word[0] == '\0'))
    push(out, word);
}

static bool mentions(const json_t *group, const char *placeholder) {
  for (size_t i = 0; i < json_array_size(group); i++)
    if (strstr(json_string_value(json_array_get(group, i)), placeholder) != NULL)
      return true;
  return false;
}

static void push_group(const struct filling *f, const json_t *group, struct words *out);

static void push_one(const struct filling *f, const json_t *group, const char *run,
                     const char *server, struct words *out) {
  struct filling one = *f;
  one.run = run;
  one.server = server;
  push_group(&one, group, out);
}

static void push_group(const struct filling *f, const json_t *group, struct words *out) {
  bool missing = false;
  if (f->run[0] == '\0' && mentions(group, "{run}")) {
    JSON_EACH(f->call->request->run, i, run)
      push_one(f, group, json_string_value(run), f->server, out);
    return;
  }
  if (f->server[0] == '\0' && mentions(group, "{server}")) {
    JSON_MEMBERS(f->servers, name, unused) {
      (void)unused;
      push_one(f, group, f->run, name, out);
    }
    return;
  }
  JSON_EACH(group, i, item) {
    (void)profile_command_fill(f, json_view(item), &missing);
  }
  for (size_t i = 0; !missing && i < json_array_size(group); i++)
    push_word(f, json_array_get(group, i), out);
}

static void push_all(const struct filling *f, const json_t *words, struct words *out) {
  JSON_EACH(words, i, item) {
    if (json_is_array(item))
      push_group(f, item, out);
    else
      push_word(f, item, out);
  }
}

/* --- parts --- */

static const char *program_setting(const json_t *settings, size_t i) {
  const json_t *given = json_object_get(settings, "program");
  if (json_is_array(given))
    return json_string_value(json_array_get(given, i));
  return i == 0 ? json_string_value(given) : NULL;
}

const char *profile_program(const struct profile *p, enum transport transport,
                            const json_t *settings) {
  const char *given = program_setting(settings, 0);
  const char *own =
      transport == TRANSPORT_ACP ? json_string_value(json_object_get(p->acp, "program")) : NULL;
  if (given != NULL)
    return given;
  return own != NULL ? own : p->program;
}

const char *profile_install(const struct profile *p, enum transport transport) {
  bool other = transport == TRANSPORT_ACP && json_object_get(p->acp, "program") != NULL;
  return json_string_value(json_object_get(other ? p->acp : p->keys, "install"));
}

/* Checks the name of a model or session, which becomes a word of a command line and comes from a
 * project's files or a program's output: one that looks like an option, or is no single word, is
 * refused. */
static bool profile_command_check_name(struct str name, const char *what, enum error_class *class,
                                       struct err *err) {
  if (name.n == 0)
    return true;
  if (name.n > LIMIT_NAME_BYTES * 2 || name.p[0] == '-')
    return profile_command_refuse(class, CLASS_BAD_REQUEST, err,
                                  "%s \"%.100s\" is too long or begins with a dash", what, name.p);
  for (size_t i = 0; i < name.n; i++)
    if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f)
      return profile_command_refuse(class, CLASS_BAD_REQUEST, err,
                                    "%s \"%.*s\" holds a space or a control character", what,
                                    name.n < 100 ? (int)name.n : 100, name.p);
  return true;
}

static bool check_call(const struct profile *p, const struct agent_call *call,
                       enum error_class *class, struct err *err) {
  struct str model = call->request->model;
  if (!profile_command_check_name(model, "the model's name", class, err) ||
      !profile_command_check_name(str_from(call->session), "the session", class, err))
    return false;
  if (memchr(call->prompt.p ? call->prompt.p : "", '\0', call->prompt.n) != NULL)
    return profile_command_refuse(class, CLASS_BAD_REQUEST, err,
                                  "the prompt holds a NUL character");
  if (p->prompt_max_chars > 0 &&
      utf8_count(call->prompt.p, call->prompt.n) > (size_t)p->prompt_max_chars)
    return profile_command_refuse(
        class, CLASS_BAD_REQUEST, err, "the prompt has %zu characters: %s takes %ld at most",
        utf8_count(call->prompt.p, call->prompt.n), p->capability.name, p->prompt_max_chars);
  return true;
}

static bool add_file(struct arena *a, struct agent_command *out, const char *tmpdir,
                     const char *name, struct str content, const char **path) {
  if (out->file_count == ARRAY_LEN(out->files))
    return false;
  *path = arena_printf(a, "%s/%s", tmpdir, name);
  out->files[out->file_count].path = *path;
  out->files[out->file_count++].content = content;
  return true;
}

static const char *joined(struct arena *a, const json_t *names) {
  buf_auto_t text = {0};
  for (size_t i = 0; i < json_array_size(names); i++)
    buf_printf(&text, "%s%s", i ? "," : "", json_string_value(json_array_get(names, i)));
  return arena_strdup(a, buf_c(&text));
}

/* Returns the value that the program of a profile gets for a variable; NULL: none. */
static const char *program_variable(const struct profile *profile, const json_t *settings,
                                    const char *name) {
  const json_t *sets[] = {json_object_get(settings, "set"),
                          json_object_get(json_object_get(profile->keys, "env"), "set")};
  for (size_t i = 0; i < ARRAY_LEN(sets); i++)
    if (json_is_string(json_object_get(sets[i], name)))
      return json_string_value(json_object_get(sets[i], name));
  return getenv(name);
}

bool profile_expand(const struct profile *profile, const json_t *settings, const char *path,
                    char *out, size_t size) {
  char name[64];
  const char *slash = strchr(path, '/'), *folder = NULL;
  if (path[0] != '~' && path[0] != '$')
    return snprintf(out, size, "%s", path) < (int)size;
  if (slash == NULL || (size_t)(slash - path) >= sizeof name)
    return false;
  print_into(name, sizeof name, "%.*s", (int)(slash - path), path);
  folder = program_variable(profile, settings, path[0] == '~' ? "HOME" : name + 1);
  return folder != NULL && folder[0] != '\0' &&
         snprintf(out, size, "%s%s", folder, slash) < (int)size;
}

/* Returns the names of the user's own servers in the client's settings, read anew for each call as
 * the client does. */
static json_t *servers_of(const struct profile *p, const json_t *settings) {
  const json_t *servers = json_object_get(p->keys, "servers");
  struct str after = json_view_at(servers, "after");
  char path[PATH_MAX];
  json_t *names = json_object(); /* each once */
  buf_auto_t text = {0};
  struct err ignored;
  JSON_EACH(json_object_get(servers, "files"), i, file)
    if (text.n == 0 && profile_expand(p, settings, json_string_value(file), path, sizeof path))
      (void)!file_read(path, LIMIT_INPUT_BYTES, &text, &ignored);
  for (struct str rest = buf_view(&text); rest.n > 0;) {
    struct str line = str_trim(str_next_line(&rest));
    if (line.n > 0 && line.p[0] == '[')
      line = str_trim((struct str){line.p + 1, line.n - 1});
    if (line.n <= after.n || memcmp(line.p, after.p, after.n) != 0)
      continue;
    line = (struct str){line.p + after.n, line.n - after.n};
    size_t from = line.p[0] == '"', n = str_span((struct str){line.p + from, line.n - from}, "-_");
    if (n > 0)
      json_object_setn_new(names, line.p + from, n, json_null());
  }
  return names;
}

/* Fills {servers}: `each` for each of them, a comma between. */
static const char *servers_joined(const struct filling *f) {
  const json_t *each = json_object_get(json_object_get(f->profile->keys, "servers"), "each");
  buf_auto_t out = {0};
  JSON_MEMBERS(f->servers, name, unused) {
    struct filling one = *f;
    bool missing = false;
    (void)unused;
    one.server = name;
    buf_printf(&out, "%s%s", out.n > 0 ? "," : "",
               profile_command_fill(&one, json_view(each), &missing));
  }
  return arena_strdup(f->arena, buf_c(&out));
}

/* Fills {runs}: the profile's `each_run` for each program. */
static const char *runs_of(const struct filling *f) {
  const json_t *each = json_object_get(f->profile->keys, "each_run"), *run = f->call->request->run;
  buf_auto_t out = {0};
  for (size_t i = 0; json_is_string(each) && i < json_array_size(run); i++) {
    struct filling one = *f;
    bool missing = false;
    one.run = json_string_value(json_array_get(run, i));
    buf_puts(&out, profile_command_fill(&one, json_view(each), &missing));
  }
  return arena_strdup(f->arena, buf_c(&out));
}

enum permission profile_told(const struct profile *p, const struct agent_call *call) {
  bool own = json_is_true(json_object_get(p->keys, "own_sandbox"));
  return call->held && own ? PERMISSION_FULL : call->permission;
}

static void set_variables(const struct filling *f, const json_t *set, struct words *out) {
  JSON_MEMBERS(set, name, value) {
    bool missing = false;
    const char *text = profile_command_fill(f, json_view(value), &missing);
    if (!missing) /* else the call lacks what this variable is for */
      push(out, arena_printf(f->arena, "%s=%s", name, text));
  }
}

static const char *const *profile_command_finish(struct arena *a, struct words *w) {
  const char **out = arena_array(a, w->count + 1, sizeof *out);
  if (w->count > 0)
    memcpy(out, w->items, w->count * sizeof *out);
  free(w->items);
  *w = (struct words){0};
  return out;
}

static void pass_names(const json_t *names, struct words *pass) {
  JSON_EACH(names, i, name)
    push(pass, json_string_value(name));
}

static void set_environment(const struct filling *f, const json_t *mode_set,
                            struct agent_command *out) {
  const json_t *env = json_object_get(f->profile->keys, "env");
  struct words pass = {0}, assignments = {0};
  pass_names(json_object_get(env, "pass"), &pass);
  pass_names(json_object_get(f->call->settings, "env"), &pass);
  JSON_EACH(json_object_get(env, "switches"), i, switched) {
    const char *name = json_string_value(json_object_get(switched, "by"));
    const json_t *set = json_object_get(json_object_get(f->call->settings, "set"), name);
    const char *value = json_is_string(set) ? json_string_value(set) : getenv(name);
    if (value != NULL && value[0] != '\0' && strcmp(value, "0") != 0 && strcmp(value, "false") != 0)
      pass_names(json_object_get(switched, "pass"), &pass);
  }
  set_variables(f, json_object_get(env, "set"), &assignments);
  set_variables(f, mode_set, &assignments);
  if (str_eq_c(json_view(json_object_get(f->call->settings, "background")), "forbid"))
    set_variables(f, json_object_get(f->profile->keys, "no_background"), &assignments);
  set_variables(f, json_object_get(f->call->settings, "set"), &assignments);
  out->pass_env = profile_command_finish(f->arena, &pass);
  out->assignments = profile_command_finish(f->arena, &assignments);
}

static bool add_files(struct filling *f, enum transport transport, struct agent_command *out) {
  const struct agent_call *call = f->call;
  const json_t *files = json_object_get(f->profile->keys, "files");
  const char *path;
  bool ok = true;
  if (call->schema != NULL) {
    char *dump = json_dump_text(call->schema, JSON_COMPACT);
    f->schema = arena_strdup(f->arena, dump);
    free(dump);
  }
  if (call->schema != NULL && f->profile->schema_by == SCHEMA_BY_FILE &&
      transport == TRANSPORT_EXEC)
    ok = add_file(f->arena, out, call->tmpdir, "segue-schema.json", str_from(f->schema),
                  &f->schema_file);
  if (!f->profile->prompt_on_stdin && transport == TRANSPORT_EXEC)
    ok = ok &&
         add_file(f->arena, out, call->tmpdir, "segue-prompt.md", call->prompt, &f->prompt_file);
  JSON_MEMBERS((json_t *)files, name, content) {
    bool missing = false;
    struct str text = json_view(content);
    ok = ok && add_file(f->arena, out, call->tmpdir, name,
                        str_from(profile_command_fill(f, text, &missing)), &path);
  }
  return ok;
}

/* Returns the words of the call's mode for {permission}: judges may have their own. */
static const json_t *mode_of(const struct profile *p, enum transport transport,
                             const struct agent_call *call) {
  const json_t *own = json_object_get(profile_keys_of(p, transport), "permission");
  if (own == NULL)
    own = json_object_get(p->keys, "permission");
  const json_t *judge = is_judging(call) ? json_object_get(own, "judge") : NULL;
  return judge ? judge : json_object_get(own, permission_name(profile_told(p, call)));
}

bool profile_command(const struct profile *p, enum transport transport,
                     const struct agent_call *call, struct arena *a, struct agent_command *out,
                     enum error_class *class, struct err *err) {
  assert(transport < TRANSPORT_COUNT);
  assert(call->cwd != NULL);
  const json_t *words = json_object_get(profile_keys_of(p, transport), "argv");
  const char *program = profile_program(p, transport, call->settings);
  const json_t *mode = mode_of(p, transport, call);
  struct words argv = {0};
  json_auto_t *servers = servers_of(p, call->settings);
  *out = (struct agent_command){0};
  if (words == NULL)
    return profile_command_refuse(class, CLASS_BAD_REQUEST, err, "provider %s has no transport %s",
                                  p->capability.name, transport_name(transport));
  if (program == NULL)
    return profile_command_refuse(
        class, CLASS_NOT_FOUND, err,
        "provider %s needs a program: write providers: {%s: {program: ...}} in config.yaml",
        p->capability.name, p->capability.name);
  if (!check_call(p, call, class, err))
    return false;
  char turns[24] = "";
  if (call->max_turns > 0)
    print_into(turns, sizeof turns, "%ld", call->max_turns);
  const json_t *effort = json_object_get(call->request->options, "effort");
  struct filling f = {.profile = p,
                      .call = call,
                      .arena = a,
                      .permission = json_is_array(mode) ? mode : json_object_get(mode, "argv"),
                      .schema = "",
                      .schema_file = "",
                      .prompt_file = "",
                      .run = "",
                      .runs = "",
                      .server = "",
                      .servers_text = "",
                      .servers = servers,
                      .max_turns = turns,
                      .tools = joined(a, call->tools),
                      .effort = json_is_string(effort) ? json_string_value(effort) : "",
                      .model = arena_str(a, call->request->model).p};
  f.runs = runs_of(&f);
  f.servers_text = servers_joined(&f);
  if (!profile_command_check_name(str_from(f.effort), "effort", class, err))
    return false;
  if (!add_files(&f, transport, out))
    return profile_command_refuse(class, CLASS_BAD_REQUEST, err, "profile %s has too many files",
                                  p->capability.name);
  push(&argv, program);
  for (size_t i = 1; program_setting(call->settings, i) != NULL; i++)
    push(&argv, program_setting(call->settings, i));
  push_all(&f, words, &argv);
  set_environment(&f, json_is_object(mode) ? json_object_get(mode, "set") : NULL, out);
  bool fits = argv.count <= LIMIT_ARGV_COUNT;
  for (size_t i = 0; i < argv.count; i++)
    fits = fits && strlen(argv.items[i]) <= LIMIT_AGENT_ARGV_BYTES;
  out->argv = profile_command_finish(a, &argv);
  if (p->prompt_on_stdin && transport == TRANSPORT_EXEC)
    out->stdin_bytes = call->prompt;
  return fits ||
         profile_command_refuse(class, CLASS_BAD_REQUEST, err,
                                "the command line of %s is too long: its schema or its arguments",
                                p->capability.name);
}

/* --- settings --- */

static bool texts(const json_t *list) {
  for (size_t i = 0; i < json_array_size(list); i++)
    if (!json_is_string(json_array_get(list, i)))
      return false;
  return json_is_array(list);
}

static bool setting_is_program(const json_t *value) {
  return (json_is_string(value) && json_string_length(value) > 0) ||
         (texts(value) && json_array_size(value) > 0);
}

static bool setting_is_map_of_texts(const json_t *value) {
  bool ok = json_is_object(value);
  JSON_MEMBERS(value, variable, text)
    ok = ok && json_is_string(text);
  return ok;
}

static bool setting_is_transport_or_auto(const json_t *value) {
  enum transport transport;
  return json_is_string(value) &&
         (strcmp(json_string_value(value), "auto") == 0 ||
          transport_from_name(str_from(json_string_value(value)), &transport));
}

static bool setting_is_count(const json_t *value) {
  return json_is_integer(value) && json_integer_value(value) > 0 &&
         json_integer_value(value) <= LIMIT_CALL_WALL_MS;
}

static bool setting_is_trust(const json_t *value) {
  bool ok = json_is_boolean(value) || texts(value);
  for (size_t i = 0; ok && i < json_array_size(value); i++)
    ok = json_string_length(json_array_get(value, i)) > 0 &&
         strchr("/~", json_string_value(json_array_get(value, i))[0]) != NULL;
  return ok;
}

/* Checks a sandbox's level; YAML reads off as false. */
static bool setting_is_sandbox(const json_t *value) {
  enum sandbox_level level;
  return json_is_false(value) ||
         (json_is_string(value) &&
          sandbox_level_from_name(str_from(json_string_value(value)), &level));
}

static bool setting_is_network(const json_t *value) {
  enum sandbox_network network;
  return json_is_string(value) &&
         sandbox_network_from_name(str_from(json_string_value(value)), &network);
}

static bool setting_is_text(const json_t *value) {
  return json_is_string(value);
}

static bool setting_is_background(const json_t *value) {
  return str_among(json_view(value), "wait forbid");
}

static const struct {
  const char *name;
  bool (*fits)(const json_t *value); /* NULL: the host checks it */
  const char *wanted;
} settings_known[] = {
    {"program", setting_is_program, "a program's name or path, or a list: it and its first words"},
    {"tools", texts, "a list of texts"},
    {"args", texts, "a list of texts"},
    {"env", texts, "a list of texts"},
    {"set", setting_is_map_of_texts, "a map of variables to texts"},
    {"stall_ms", setting_is_count, "an integer above 0"},
    {"judge_stall_ms", setting_is_count, "an integer above 0"},
    {"idle_ms", setting_is_count, "an integer above 0"},
    {"background_ms", setting_is_count, "an integer above 0"},
    {"background_idle_ms", setting_is_count, "an integer above 0"},
    {"background", setting_is_background, "wait or forbid"},
    {"model", setting_is_text, "a text"},
    {"max_turns", setting_is_count, "an integer above 0"},
    {"concurrency", NULL, NULL},
    {"pool", NULL, NULL},
    {"transport", setting_is_transport_or_auto, "auto, exec, native or acp"},
    {"trust_project", setting_is_trust,
     "true, false, or a list of folders: absolute paths, or ~/..."},
    {"sandbox", setting_is_sandbox, "off, guard, strict or container"},
    {"network", setting_is_network, "open, api or none"},
    {"image", setting_is_text, "a text"},
};

bool profile_check_settings(const struct profile *p, const json_t *settings, struct err *err) {
  const char *name = p->capability.name;
  JSON_MEMBERS(settings, key, value) {
    size_t i = 0;
    while (i < ARRAY_LEN(settings_known) && strcmp(settings_known[i].name, key) != 0)
      i++;
    if (i == ARRAY_LEN(settings_known)) {
      const char *names[ARRAY_LEN(settings_known) + 1] = {0};
      for (i = 0; i < ARRAY_LEN(settings_known); i++)
        names[i] = settings_known[i].name;
      return err_set(err, ERR_FILE, "providers.%s has no setting \"%.60s\"%s", name, key,
                     str_hint(str_from(key), names).text);
    }
    if (strcmp(key, "background") == 0 && str_eq_c(json_view(value), "forbid") &&
        json_object_get(p->keys, "no_background") == NULL)
      return err_set(err, ERR_FILE,
                     "providers.%s.background: segue knows of no switch by which this client "
                     "leaves background work alone",
                     name);
    if (settings_known[i].fits != NULL && !settings_known[i].fits(value))
      return err_set(err, ERR_FILE, "providers.%s.%s must be %s", name, key,
                     settings_known[i].wanted);
  }
  return settings == NULL || json_is_object(settings) ||
         err_set(err, ERR_FILE, "providers.%s must be a map of settings", name);
}
