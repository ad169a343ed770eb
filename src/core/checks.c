/* Keeps how each command movement ended, and whether that still means something; finds protected
 * paths among those that a turn changed. */
#include "core/checks.h"

#include "base/utf8.h"
#include "core/evidence.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <ctype.h>
#include <string.h>

enum { TOLD_FILES = 20, TOLD_PATH_BYTES = 200, MATCH_STEPS = 100000 };

static const char *const counts[] = {"passed", "failed", "skipped"};

bool checks_is_no_pass(const json_t *tests) {
  return tests != NULL && (json_int_at(tests, "passed") <= 0 || json_int_at(tests, "failed") > 0);
}

int checks_exit(const struct turn *turn) {
  bool fails = checks_is_no_pass(turn->tests) || evidence_sent_back(turn);
  return turn->exit == 0 && fails ? 1 : turn->exit;
}

/* Marks all gates as stale, unless nothing is known to have changed. What a turn did beside others
 * is known once the last of them has ended. */
void checks_changed(struct core *core, const struct turn *turn, const json_t *between) {
  bool same = (turn->files != NULL || turn->shared) && json_array_size(turn->files) == 0 &&
              turn->unseen == NULL && json_array_size(between) == 0;
  if (same || core->gates == NULL)
    return;
  JSON_MEMBERS(core->gates, name, gate)
    json_put(gate, "stale", json_true());
}

static json_t *check_json(const struct turn *turn) {
  json_t *gate = json_object();
  json_put(gate, "turn", json_integer(turn->id));
  json_put(gate, "exit", json_integer(checks_exit(turn)));
  for (size_t i = 0; turn->tests != NULL && i < ARRAY_LEN(counts); i++)
    json_object_set_new(gate, counts[i],
                        json_integer(json_integer_value(json_object_get(turn->tests, counts[i]))));
  json_put(gate, "stale", json_false());
  return gate;
}

void checks_put(struct core *core, const struct turn *turn) {
  struct str name = core->workflow->movements[turn->movement].name;
  core->check.turn = turn->id;
  core->check.movement = turn->movement;
  core->check.exit = checks_exit(turn);
  if (core->gates == NULL)
    core->gates = json_object();
  json_t *gate = check_json(turn), *old = json_object_getn(core->gates, name.p, name.n);
  json_t *first = old ? json_incref(json_at(old, "first")) : json_clone_top(gate);
  json_int_t since = json_int_at(core->touched, "since");
  if (old == NULL && (core->edits || core->carried || (since > 0 && since < turn->id)))
    json_put(first, "late", json_true());
  json_put(gate, "first", first);
  json_object_setn_new(core->gates, name.p, name.n, gate);
}

/* --- files --- */

static struct str from_at(struct str s, size_t n) {
  return (struct str){s.p + n, s.n - n};
}

static bool match_at(struct str pattern, struct str path, long *steps);

/* Matches a star and what follows it, at each place that the star may reach. */
static bool match_star(struct str pattern, struct str path, long *steps) {
  bool deep = str_starts(pattern, "**");
  struct str rest = from_at(pattern, deep ? 2 : 1);
  if (deep && rest.n > 0 && rest.p[0] == '/' && match_at(from_at(rest, 1), path, steps))
    return true; /* the ** stands for no folder at all */
  for (size_t i = 0; i <= path.n; i++) {
    if (match_at(rest, from_at(path, i), steps))
      return true;
    if (i < path.n && path.p[i] == '/' && !deep)
      return false;
  }
  return false;
}

/* Matches from the start of both. `steps` bounds what a pattern with many stars can cost. */
static bool match_at(struct str pattern, struct str path, long *steps) {
  while (pattern.n > 0) {
    if (--*steps < 0)
      return true; /* whoever writes such a pattern wants protection */
    if (pattern.p[0] == '*')
      return match_star(pattern, path, steps);
    bool any = pattern.p[0] == '?' && path.n > 0 && path.p[0] != '/';
    if (path.n == 0 || (!any && pattern.p[0] != path.p[0]))
      return false;
    pattern = from_at(pattern, 1);
    path = from_at(path, 1);
  }
  return path.n == 0;
}

bool protect_matches(struct str pattern, struct str path) {
  long steps = MATCH_STEPS;
  bool below = pattern.n > 0 && pattern.p[pattern.n - 1] == '/';
  if (str_starts(pattern, "./"))
    pattern = from_at(pattern, 2);
  if (pattern.n > 0 && pattern.p[0] == '/')
    pattern = from_at(pattern, 1);
  if (below)
    return path.n > pattern.n && memcmp(pattern.p, path.p, pattern.n) == 0;
  if (match_at(pattern, path, &steps))
    return true;
  if (memchr(pattern.p, '/', pattern.n) != NULL)
    return false;
  for (size_t at = 0; at < path.n; at++) { /* the pattern names a file in any folder */
    struct str part = from_at(path, at);
    const char *slash = memchr(part.p, '/', part.n);
    part.n = slash ? (size_t)(slash - part.p) : part.n;
    if (match_at(pattern, part, &steps))
      return true;
    at += part.n;
  }
  return false;
}

/* Gives the next word of a command, whose arguments may be lines for a shell. */
static bool checks_word(const char *const **argv, struct str *rest, struct str *word) {
  static const char between[] = " \t\n;|&()<>{}=,:'\"`";
  while (rest->n == 0 || strchr(between, rest->p[0]) != NULL) {
    if (rest->n == 0 && **argv == NULL)
      return false;
    *rest = rest->n > 0 ? (struct str){rest->p + 1, rest->n - 1} : str_from(*(*argv)++);
  }
  *word = *rest;
  while (rest->n > 0 && strchr(between, rest->p[0]) == NULL)
    *rest = (struct str){rest->p + 1, rest->n - 1};
  word->n -= rest->n;
  while (str_starts(*word, "./"))
    *word = (struct str){word->p + 2, word->n - 2};
  while (word->n > 1 && word->p[word->n - 1] == '/')
    word->n--;
  return true;
}

/* Returns true if the path is that name in the command's folder, or in one that a word names. */
static bool checks_is_named(const struct movement *m, struct str name, struct str path) {
  const char *const *argv = m->argv;
  struct str rest = {0}, word;
  if (name.n == 0 || path.n < name.n || memcmp(path.p + path.n - name.n, name.p, name.n) != 0)
    return false;
  struct str folder = {path.p, path.n - name.n};
  if (folder.n == 0)
    return m->cwd.n == 0;
  if (folder.p[--folder.n] != '/')
    return false;
  bool found = str_eq(folder, m->cwd);
  while (!found && checks_word(&argv, &rest, &word))
    found = str_eq(word, folder);
  return found;
}

bool checks_names(const struct movement *m, struct str path) {
  static const struct {
    const char *program, *file;
  } unnamed[] = {{"make", "Makefile"},    {"make", "makefile"},     {"make", "GNUmakefile"},
                 {"npm", "package.json"}, {"node", "package.json"}, {"npx", "package.json"}};
  const char *const *argv = m->argv;
  struct str rest = {0}, word;
  bool found = false;
  while (argv != NULL && !found && checks_word(&argv, &rest, &word)) {
    const char *slash = memrchr(word.p, '/', word.n);
    struct str program =
        slash ? (struct str){slash + 1, word.n - (size_t)(slash + 1 - word.p)} : word;
    found = checks_is_named(m, word, path) || (slash && protect_matches(word, path));
    for (size_t i = 0; i < ARRAY_LEN(unnamed) && !found; i++)
      found = str_eq_c(program, unnamed[i].program) &&
              checks_is_named(m, str_from(unnamed[i].file), path);
  }
  return found;
}

static bool is_protected(const json_t *patterns, struct str path) {
  for (size_t i = 0; i < json_array_size(patterns); i++)
    if (protect_matches(json_view(json_array_get(patterns, i)), path))
      return true;
  return protect_matches(STR(".segue"), path); /* whose workflows a person runs next */
}

bool protect_needs(const struct workflow *wf, struct str path) {
  bool needs = is_protected(wf->protect, path);
  for (size_t i = 0; i < wf->movement_count && !needs; i++)
    needs = checks_names(&wf->movements[i], path);
  return needs;
}

/* Adds to a file's lines. They are not known any more once one of the two is not. */
static void sum_up(json_t *sum, const json_t *file, const char *key) {
  json_t *so_far = json_object_get(sum, key), *lines = json_object_get(file, key);
  json_int_t all;
  if (!json_is_integer(so_far) || !json_is_integer(lines) ||
      __builtin_add_overflow(json_integer_value(so_far), json_integer_value(lines), &all) ||
      json_integer_set(so_far, all) != 0)
    json_object_del(sum, key);
}

static void touched_begin(struct core *core, const struct turn *turn) {
  if (json_is_object(json_at(core->touched, "files")))
    return;
  json_decref(core->touched); /* a fork may have taken over anything */
  core->touched = json_pack("{s{} sI}", "files", "since", (json_int_t)turn->id);
}

void touched_unknown(struct core *core, const struct turn *turn) {
  touched_begin(core, turn);
  if (json_at(core->touched, "unknown") == NULL)
    json_put(core->touched, "unknown", json_integer(turn->id));
}

void touched_add(struct core *core, const struct turn *turn, const json_t *files, int64_t more) {
  if (json_array_size(files) == 0 || json_at(core->config, "rejudges") != NULL)
    return; /* a turn that is judged again brings them along */
  touched_begin(core, turn);
  json_t *all = json_at(core->touched, "files");
  JSON_EACH(files, i, file) {
    struct str path = json_view(json_at(file, "path"));
    json_t *sum = json_object_getn(all, path.p, path.n);
    if (path.n == 0)
      continue;
    bool known = sum != NULL;
    if (!known && json_object_size(all) >= LIMIT_TOUCHED_COUNT &&
        !protect_needs(core->workflow, path)) {
      more++;
      continue;
    }
    if (!known)
      json_object_setn_new(all, path.p, path.n, sum = json_clone(file));
    for (int k = 0; k < 2 && (known || turn->shared); k++) /* others count the same lines */
      sum_up(sum, turn->shared ? NULL : file, k == 0 ? "added" : "removed");
  }
  if (more > json_int_at(core->touched, "more"))
    json_put(core->touched, "more", json_integer(more));
}

void checks_take(struct core *core, const json_t *gates) {
  if (!json_is_object(gates))
    return;
  json_decref(core->gates);
  core->gates = json_clone(gates); /* the record keeps its own copy */
  if (json_at(core->config, "rejudges") != NULL)
    return;
  JSON_MEMBERS(core->gates, name, gate)
    json_put(gate, "stale", json_true());
}

json_t *checks_json(const struct core *core, const struct turn *turn) {
  struct str name = core->workflow->movements[turn->movement].name;
  if (core->gates == NULL && !turn->has_exit)
    return NULL;
  json_t *gates = core->gates != NULL ? json_clone_top(core->gates) : json_object();
  if (turn->has_exit)
    json_object_setn_new(gates, name.p, name.n, check_json(turn));
  return gates;
}

void checks_tests(const json_t *tests, struct buf *out) {
  if (json_at(tests, "passed") == NULL)
    return;
  for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
    json_int_t n = json_integer_value(json_object_get(tests, counts[i]));
    if (i < 2 || n > 0)
      buf_printf(out, "%s%" JSON_INTEGER_FORMAT " %s", i > 0 ? ", " : "", n, counts[i]);
  }
}

void checks_tell(const struct core *core, const struct turn *turn, struct buf *out) {
  struct str own = core->workflow->movements[turn->movement].name;
  bool several = json_object_size(core->gates) > 1;
  JSON_MEMBERS(core->gates, name, gate) {
    bool stale = json_is_true(json_object_get(gate, "stale"));
    if ((turn->has_exit && str_eq_c(own, name)) ||
        (!several && !stale && json_object_get(gate, "passed") == NULL))
      continue;
    buf_puts(out, "  - ");
    buf_safe(out, str_from(name), false);
    buf_printf(out, " (%" JSON_INTEGER_FORMAT "): exit %" JSON_INTEGER_FORMAT,
               json_int_at(gate, "turn"), json_int_at(gate, "exit"));
    if (json_object_get(gate, "passed") != NULL)
      buf_puts(out, ", ");
    checks_tests(gate, out);
    buf_puts(out, stale ? ", stale\n" : "\n");
  }
}

/* --- protected paths --- */

void protect_put_file(const json_t *file, struct buf *out) {
  struct str path = json_view(json_at(file, "path"));
  const json_t *added = json_at(file, "added"), *removed = json_at(file, "removed");
  bool plain = path.n > 0 && path.n <= TOLD_PATH_BYTES, cut = path.n > TOLD_PATH_BYTES;
  for (size_t i = 0; i < path.n && plain; i++)
    plain = isalnum((unsigned char)path.p[i]) || strchr("._/+-@=~%#", path.p[i]) != NULL;
  path.n = cut ? utf8_floor(path.p, TOLD_PATH_BYTES) : path.n;
  if (plain)
    buf_str(out, path);
  else
    json_write_string(path, out);
  buf_puts(out, cut ? "..." : "");
  if (added != NULL && removed != NULL)
    buf_printf(out, " +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT, json_integer_value(added),
               json_integer_value(removed));
}

bool protect_refuses(const struct core *core, const struct turn *turn, struct buf *why) {
  const json_t *patterns = core->workflow->protect;
  struct str name = core->workflow->movements[turn->movement].name;
  const char *beside = turn->shared ? ", or what ran beside it," : "";
  bool blind = patterns != NULL && turn->unseen != NULL && turn->blind;
  size_t found = 0;
  if (turn->let_be)
    return false;
  JSON_EACH(turn->files, i, file) {
    if (!is_protected(patterns, json_view(json_at(file, "path"))))
      continue;
    if (found == 0)
      buf_printf(why, "\"" STR_FMT "\"%s changed what is protected: ", STR_ARG(name), beside);
    if (found++ >= TOLD_FILES)
      continue;
    buf_puts(why, found > 1 ? ", " : "");
    protect_put_file(file, why);
  }
  if (found > TOLD_FILES)
    buf_printf(why, " and %zu more", found - TOLD_FILES);
  if (found > 0) {
    buf_puts(why, "; put it back, or resume to let it be");
  } else if (blind) {
    buf_printf(
        why, "it is not known whether \"" STR_FMT "\" changed what is protected: ", STR_ARG(name));
    buf_safe(why, str_from(turn->unseen), false);
    buf_puts(why, "; look yourself, and resume to let it be");
  }
  return found > 0 || blind;
}
