/* Reads a repository's configuration in git's own grammar, and copies what is data. */
#include "git/repo_config.h"

#include "base/file.h"
#include "base/limits.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* By section, with or without a name of its own, and key, in lower case as git compares them. */
static const char inert_keys[] =
    "core.filemode core.ignorecase core.symlinks core.autocrlf core.eol core.safecrlf "
    "core.sparsecheckout core.sparsecheckoutcone core.precomposeunicode core.sharedrepository "
    "core.trustctime core.checkstat core.logallrefupdates index.sparse user.name user.email "
    "remote.*.url remote.*.pushurl submodule.*.url submodule.*.active";

struct stand_in_setting { /* one line of a configuration file */
  char section[40], key[60];
  struct buf sub, value;
  bool has_sub, has_value;
};

/* A file is read in git's own grammar. What is not understood ends the reading: git itself would
 * refuse such a file. */

static int peek(const struct str *t) {
  return t->n > 0 ? (unsigned char)t->p[0] : -1;
}

static int next_char(struct str *t) {
  int c = peek(t);
  if (c >= 0)
    *t = (struct str){t->p + 1, t->n - 1};
  if (c == '\r' && peek(t) == '\n')
    return next_char(t);
  return c;
}

static void stand_in_skip_line(struct str *t) {
  for (int c = next_char(t); c >= 0 && c != '\n';)
    c = next_char(t);
}

/* Takes letters, digits and what else a name may have, in lower case. */
static bool stand_in_take_name(struct str *t, const char *also, char *out, size_t size) {
  size_t n = 0;
  for (int c = peek(t); c > 0 && (isalnum(c) || strchr(also, c) != NULL); c = peek(t)) {
    if (n + 1 >= size)
      return false;
    out[n++] = (char)tolower(next_char(t));
  }
  out[n] = '\0';
  return n > 0;
}

/* Takes `[section]` or `[section "name"]`, behind its bracket. */
static bool take_section(struct str *t, struct stand_in_setting *s) {
  buf_clear(&s->sub);
  if (!stand_in_take_name(t, "-.", s->section, sizeof s->section))
    return false;
  char *dot = strchr(s->section, '.'); /* the old form, [section.name] */
  s->has_sub = dot != NULL;
  if (dot != NULL) {
    buf_puts(&s->sub, dot + 1);
    *dot = '\0';
  }
  while (peek(t) == ' ' || peek(t) == '\t')
    (void)next_char(t);
  if (peek(t) == '"') {
    s->has_sub = true;
    (void)next_char(t);
    for (int c = next_char(t); c != '"'; c = next_char(t)) {
      if (c == '\\')
        c = next_char(t);
      if (c < 0 || c == '\n')
        return false;
      buf_putc(&s->sub, (char)c);
    }
  }
  return next_char(t) == ']';
}

/* Takes what is behind the `=`, to the end of its line. */
static bool take_setting_value(struct str *t, struct buf *out) {
  static const char from[] = "ntb\"\\", to[] = "\n\t\b\"\\";
  bool quoted = false;
  size_t end = 0; /* spaces at the end do not count */
  buf_clear(out);
  while (peek(t) == ' ' || peek(t) == '\t')
    (void)next_char(t);
  for (int c = next_char(t); c > 0 && c != '\n'; c = next_char(t)) {
    if (!quoted && (c == '#' || c == ';')) {
      stand_in_skip_line(t);
      break;
    }
    if (c == '"') {
      quoted = !quoted;
      end = out->n;
      continue;
    }
    if (c == '\\') {
      c = next_char(t);
      const char *at = c > 0 ? strchr(from, c) : NULL;
      if (c == '\n')
        continue;
      if (at == NULL)
        return false;
      c = (unsigned char)to[at - from];
      buf_putc(out, (char)c);
      end = out->n;
      continue;
    }
    buf_putc(out, (char)c);
    if (quoted || !isspace(c))
      end = out->n;
  }
  if (out->n > end)
    out->p[out->n = end] = '\0';
  return !quoted;
}

/* Takes the next setting. False: there is no further one. */
static bool take_setting(struct str *t, struct stand_in_setting *s) {
  for (;;) {
    int c = peek(t);
    if (c < 0)
      return false;
    if (isspace(c)) {
      (void)next_char(t);
    } else if (c == '#' || c == ';') {
      stand_in_skip_line(t);
    } else if (c == '[') {
      (void)next_char(t);
      if (!take_section(t, s))
        return false;
    } else {
      break;
    }
  }
  if (!isalpha(peek(t)) || !stand_in_take_name(t, "-", s->key, sizeof s->key))
    return false;
  while (peek(t) == ' ' || peek(t) == '\t')
    (void)next_char(t);
  s->has_value = peek(t) == '=';
  buf_clear(&s->value);
  if (!s->has_value) {
    stand_in_skip_line(t);
    return true;
  }
  (void)next_char(t);
  return take_setting_value(t, &s->value);
}

/* Tells whether it is on the list. A repository of the first format has no extensions that count;
 * of the second, git refuses those that it does not know. */
static bool is_inert(const struct stand_in_setting *s, bool has_extensions) {
  char name[128];
  if (strcmp(s->section, "extensions") == 0)
    return has_extensions && !s->has_sub && strcmp(s->key, "worktreeconfig") != 0 &&
           strcmp(s->key, "partialclone") != 0;
  print_into(name, sizeof name, "%s%s.%s", s->section, s->has_sub ? ".*" : "", s->key);
  return str_among(str_from(name), inert_keys);
}

static void stand_in_put_quoted(struct buf *out, struct str text) {
  buf_putc(out, '"');
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] == '"' || text.p[i] == '\\')
      buf_putc(out, '\\');
    if (text.p[i] == '\n')
      buf_puts(out, "\\n");
    else
      buf_putc(out, text.p[i]);
  }
  buf_putc(out, '"');
}

static void put_stand_in_setting(struct buf *out, const struct stand_in_setting *s) {
  buf_printf(out, "[%s", s->section);
  if (s->has_sub) {
    buf_putc(out, ' ');
    stand_in_put_quoted(out, buf_view(&s->sub));
  }
  buf_printf(out, "]\n\t%s", s->key);
  if (s->has_value) {
    buf_puts(out, " = ");
    stand_in_put_quoted(out, buf_view(&s->value));
  }
  buf_putc(out, '\n');
}

bool repo_config_copy(const char *file, bool *has_extensions, bool *by_worktree, struct buf *out,
                      struct err *err) {
  buf_auto_t text = {0};
  struct stand_in_setting s = {0};
  if (access(file, F_OK) != 0)
    return true;
  if (!file_read(file, LIMIT_REPO_CONFIG_BYTES, &text, err))
    return false;
  struct str t = buf_view(&text);
  while (take_setting(&t, &s)) {
    bool of_core = strcmp(s.section, "core") == 0 && !s.has_sub;
    if (of_core && strcmp(s.key, "repositoryformatversion") == 0)
      *has_extensions = !str_eq_c(buf_view(&s.value), "0");
    if (strcmp(s.section, "extensions") == 0 && strcmp(s.key, "worktreeconfig") == 0)
      *by_worktree = !s.has_value || str_among(buf_view(&s.value), "true yes on 1");
    if (is_inert(&s, *has_extensions))
      put_stand_in_setting(out, &s);
  }
  buf_deinit(&s.sub);
  buf_deinit(&s.value);
  return true;
}
