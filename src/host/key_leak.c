/* Looks for the user's keys in what a session is started with. */
#include "host/key_leak.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "provider/secret_find.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct key_search {
  const struct secrets *secrets;
  const char *insist;
  struct buf path; /* where the text that is looked at stands in the document */
  struct err *err;
};

/* Gathers the known keys. A path is no key, whatever its variable is called: tasks name many. */
static struct secrets *known_keys(const char *const *declared) {
  struct secrets *secrets = secrets_new();
  size_t n = 0, kept = 0;
  while (environ[n] != NULL)
    n++;
  const char **entries = xcalloc(n + 1, sizeof *entries);
  for (size_t i = 0; i < n; i++) {
    const char *equals = strchr(environ[i], '=');
    if (equals != NULL && equals[1] != '/')
      entries[kept++] = environ[i];
  }
  secrets_find_in_environment(secrets, entries, declared);
  free(entries);
  return secrets;
}

static bool key_refuse(const struct key_search *k, const char *where, const char *what) {
  return err_set(
      k->err, ERR_USAGE,
      "%.200s holds %s: it would be sent to models and stand in the log; name a variable "
      "instead, or insist with %s",
      where, what, k->insist);
}

static bool key_check_text(const struct key_search *k, struct str text, const char *where) {
  char what[160];
  const char *name = secrets_first(k->secrets, text);
  if (name != NULL) {
    print_into(what, sizeof what, "the value of %.80s", name);
    return key_refuse(k, where, what);
  }
  return !secret_is_written_in(text) || key_refuse(k, where, "what looks like a key");
}

/* Visits every text of the document below `value`; items with a name are called by it. */
static bool key_check_value(struct key_search *k, const json_t *value, unsigned depth) {
  size_t length = k->path.n;
  bool ok = true;
  if (json_is_string(value)) {
    return key_check_text(k, (struct str){json_string_value(value), json_string_length(value)},
                          buf_c(&k->path));
  }
  if (depth == LIMIT_YAML_DEPTH)
    return true;
  JSON_MEMBERS(value, key, member) {
    buf_printf(&k->path, ".%.80s", key);
    ok = key_check_value(k, member, depth + 1);
    if (!ok)
      return false;
    k->path.n = length;
  }
  JSON_EACH(value, i, member) {
    const char *name = json_string_value(json_object_get(member, "name"));
    if (name != NULL)
      buf_printf(&k->path, "[%.80s]", name);
    else
      buf_printf(&k->path, "[%zu]", i);
    ok = key_check_value(k, member, depth + 1);
    if (!ok)
      return false;
    k->path.n = length;
  }
  return true;
}

bool keys_check(const json_t *doc, struct str task, const char *const *declared, const char *insist,
                struct err *err) {
  assert(insist != NULL);
  struct secrets *secrets = known_keys(declared);
  struct key_search k = {.secrets = secrets, .insist = insist, .err = err};
  bool ok = key_check_text(&k, task, "the task");
  buf_puts(&k.path, "the workflow's text at ");
  ok = ok && key_check_value(&k, doc, 0);
  buf_deinit(&k.path);
  secrets_free(secrets);
  return ok;
}
