/* Explains what a call's sandbox seems to have denied it, and what would allow it. */
#include "audit/denied.h"
#include "audit/explain_internal.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { DENIED_SHOWN = 20 };

struct denial_story {
  struct story *s;
  const json_t *sandbox; /* of the call_start */
  const char *cwd;
  json_t *seen; /* what was reported, by its own words */
  size_t more;
};

static bool is_below(struct str path, const char *folder) {
  size_t n = strlen(folder);
  return n > 0 && path.n >= n && memcmp(path.p, folder, n) == 0 &&
         (path.n == n || path.p[n] == '/');
}

/* Writes "write: [PATH] in sandbox of config.yaml". */
static void put_remedy(const struct denial_story *t, struct str path, enum denied_kind kind,
                       struct buf *out) {
  const char *key = kind == DENIED_WRITE ? "write" : "read";
  if (kind == DENIED_NETWORK)
    buf_puts(out, "network: api or open in the movement lets it");
  else if (str_has(path, "/.git/hooks") || str_has(path, "/.git/config"))
    buf_puts(out, "nobody may write git's hooks and settings: no setting allows it");
  else if (is_below(path, t->cwd))
    buf_puts(out, "permission: edit in the movement lets it write there");
  else if (str_starts(path, "../"))
    buf_printf(out, "sandbox: {%s: [its absolute path]} in config.yaml allows it", key);
  else
    buf_printf(out, "sandbox: {%s: [" STR_FMT "]} in config.yaml allows it%s", key, STR_ARG(path),
               kind == DENIED_ACCESS ? "; write: to write it" : "");
}

/* True for sandboxes that hide files; others refuse access to files that are visible. */
static bool hides(const json_t *sandbox) {
  static const char *const mechanisms[] = {"bwrap", "podman", "docker"};
  for (size_t i = 0; i < ARRAY_LEN(mechanisms); i++)
    if (strcmp(explain_word(sandbox, "mechanism"), mechanisms[i]) == 0)
      return true;
  return false;
}

static void tell_one(struct denial_story *t, struct str path, enum denied_kind kind) {
  struct buf line = {0};
  if (kind == DENIED_NETWORK && explain_word(t->sandbox, "network")[0] == '\0')
    return; /* its sandbox allows it */
  if (kind == DENIED_HIDDEN && (!hides(t->sandbox) || is_below(path, t->cwd)))
    return;
  if (kind == DENIED_NETWORK)
    buf_puts(&line, "the network");
  else
    buf_str(&line, path);
  bool seen = json_object_get(t->seen, buf_c(&line)) != NULL;
  if (!seen && json_object_size(t->seen) < DENIED_SHOWN) {
    json_object_set_new(t->seen, buf_c(&line), json_true());
    buf_puts(&line, kind == DENIED_HIDDEN ? ": hidden or missing: " : ": ");
    put_remedy(t, path, kind, &line);
    if (json_object_size(t->seen) == 1)
      pen_line(&t->s->pen, 2, "denied, as it says, perhaps by its sandbox (%s by %s):",
               explain_word(t->sandbox, "level"), explain_word(t->sandbox, "mechanism"));
    pen_line(&t->s->pen, 3, "%s", buf_c(&line));
  } else if (!seen) {
    t->more++;
  }
  buf_deinit(&line);
}

/* Reports a host that our own proxy refused: this is no guess. */
static void tell_host(struct denial_story *t, const char *where) {
  if (json_object_get(t->seen, where) != NULL)
    return;
  json_object_set_new(t->seen, where, json_true());
  if (json_object_size(t->seen) == 1)
    pen_line(&t->s->pen, 2, "denied by its sandbox (network: api):");
  pen_line(&t->s->pen, 3, "%s: sandbox: {hosts: [%s]} in config.yaml allows it", where, where);
}

static void tell_text(struct denial_story *t, struct str text) {
  struct str path;
  enum denied_kind kind;
  while (denied_next(&text, &path, &kind))
    tell_one(t, path, kind);
}

void explain_denied(struct story *s, json_int_t call, const struct call_view *c) {
  struct denial_story t = {.s = s,
                           .sandbox = json_object_get(c->last, "sandbox"),
                           .cwd = explain_word(json_object_get(s->start, "config"), "cwd")};
  size_t i;
  json_t *record;
  if (explain_word(t.sandbox, "mechanism")[0] == '\0')
    return; /* nothing restricted it */
  t.seen = json_object();
  json_array_foreach(s->records, i, record) {
    const char *host = explain_word(json_object_get(record, "data"), "denied");
    if (explain_number(record, "call") == call && host[0] != '\0')
      tell_host(&t, host);
  }
  json_object_clear(t.seen);
  json_array_foreach(s->records, i, record) {
    const json_t *data = json_object_get(record, "data");
    if (explain_number(record, "call") == call && explain_word(data, "output")[0] != '\0')
      tell_text(&t, explain_view(data, "output"));
  }
  tell_text(&t, explain_view(c->end, "stderr"));
  if (strcmp(explain_word(c->last, "provider"), "command") == 0)
    tell_text(&t, explain_view(c->end, "text"));
  if (t.more > 0)
    pen_line(&s->pen, 3, "and %zu more", t.more);
  json_decref(t.seen);
}
