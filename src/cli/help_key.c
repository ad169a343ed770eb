/* Explains a key of a workflow, from the table of keys. */
#include "cli/help_key.h"

#include "cli/cli.h"
#include "workflow/foreign_keys.h"

#include <ctype.h>

enum { SETS_MAX = 32, NAMES_MAX = 512 };

/* Collects all sets of keys that a workflow leads to, each once. */
static size_t sets_of(const struct key_set *sets[SETS_MAX]) {
  size_t n = 0;
  sets[n++] = &workflow_keys;
  for (size_t i = 0; i < n; i++)
    for (const struct key *k = sets[i]->keys; k->name; k++) {
      bool known = k->set == NULL || n == SETS_MAX;
      for (size_t at = 0; at < n && !known; at++)
        known = sets[at] == k->set;
      if (!known)
        sets[n++] = k->set;
    }
  return n;
}

/* Wraps the text into lines with two spaces in front. */
static void put_wrapped(struct buf *out, const char *text) {
  buf_puts(out, "  ");
  cli_wrap(out, str_from(text), 2, 2, cli_help_columns());
  buf_putc(out, '\n');
}

static void help_put_type(const struct key *k, struct buf *out) {
  bool counts = k->type == KEY_INTEGER || k->type == KEY_COUNT || k->type == KEY_NUMBER;
  if (k->type == KEY_CHOICE || k->type == KEY_STAGES) {
    buf_puts(out, k->type == KEY_STAGES ? "a list of " : "");
    key_words(k, out);
    return;
  }
  if (counts)
    buf_printf(out, "a %s from %.0f to %.0f", k->type == KEY_NUMBER ? "number" : "whole number",
               k->min, k->max);
  else if (k->type == KEY_BOOL)
    buf_puts(out, "true or false");
  else if (k->type == KEY_TEXT)
    buf_puts(out, "a text");
  else if (k->value != NULL)
    buf_puts(out, k->value);
  else
    buf_puts(out, k->max > 0 ? "a list of maps" : "a map");
  const struct key *one = k->or_member ? key_find(k->set, str_from(k->or_member)) : NULL;
  if (one != NULL)
    buf_printf(out, ", or a %s that stands for {%s: ...}", one->type == KEY_TEXTS ? "list" : "text",
               one->name);
  if (k->words != NULL) {
    buf_puts(out, ", or ");
    key_words(k, out);
  }
}

static void help_put_keys(const struct key_set *set, struct buf *out) {
  bool first = true;
  buf_puts(out, "keys: ");
  for (const struct key *k = set->keys; k->name; k++) {
    if (k->type == KEY_NOTED)
      continue;
    buf_printf(out, "%s%s", first ? "" : ", ", k->name);
    first = false;
  }
}

static void explain(const struct key_set *set, const struct key *k, struct buf *out) {
  buf_auto_t line = {0};
  buf_printf(out, "%s%s of %s%s\n", out->n > 0 ? "\n" : "", k->name, set->what,
             k->required ? " (required)" : "");
  if (k->alias != NULL)
    buf_printf(out, "  also written %s%s%s\n", k->alias, k->older ? ", " : "",
               k->older ? k->older : "");
  if (k->type == KEY_NOTED) {
    buf_printf(&line, "This key is accepted and ignored: %s.", k->description);
    put_wrapped(out, buf_c(&line));
    return;
  }
  put_wrapped(out, k->description);
  help_put_type(k, &line);
  put_wrapped(out, buf_c(&line));
  if (k->set != NULL) {
    buf_clear(&line);
    help_put_keys(k->set, &line);
    put_wrapped(out, buf_c(&line));
  }
  if (k->example != NULL)
    buf_printf(out, "\n    %s: %s\n", k->name, k->example);
}

/* Lists the names of all keys, NULL-terminated, and their sets; returns the number of sets. */
static size_t help_key_names(const struct key_set *sets[SETS_MAX],
                             const char *names[NAMES_MAX + 1]) {
  size_t count = sets_of(sets), n = 0;
  for (size_t i = 0; i < count; i++)
    for (const struct key *k = sets[i]->keys; k->name && n < NAMES_MAX; k++)
      names[n++] = k->name;
  names[n] = NULL;
  return count;
}

bool help_key(struct buf *out, const char *name, const char **near) {
  const struct key_set *sets[SETS_MAX];
  const char *names[NAMES_MAX + 1];
  size_t count = help_key_names(sets, names);
  bool found = false;
  for (size_t i = 0; i < count; i++) {
    const struct key *k = key_find(sets[i], str_from(name));
    found = found || k != NULL;
    if (k != NULL)
      explain(sets[i], k, out);
  }
  if (near != NULL)
    *near = found ? NULL : str_nearest(str_from(name), names);
  return found;
}

const char *help_key_of_name(const char *name) {
  const struct key_set *sets[SETS_MAX];
  const char *names[NAMES_MAX + 1];
  size_t count = help_key_names(sets, names);
  const struct key *k = NULL;
  for (size_t s = 0; s < count && k == NULL; s++)
    k = key_find(sets[s], str_from(name));
  return k != NULL ? k->name : NULL;
}

const char *help_key_of_line(struct str line, size_t at) {
  const struct key_set *sets[SETS_MAX];
  const char *names[NAMES_MAX + 1], *last = NULL;
  size_t count = help_key_names(sets, names);
  for (size_t i = 0, n; i < line.n && i <= at; i += n + 1) {
    struct str word = {line.p + i, 0};
    n = 0;
    while (i + n < line.n && (isalnum((unsigned char)line.p[i + n]) || line.p[i + n] == '_'))
      n++;
    word.n = n;
    if (word.n == 0 || i + n == line.n || line.p[i + n] != ':')
      continue;
    const struct key *k = NULL;
    for (size_t s = 0; s < count && k == NULL; s++)
      k = key_find(sets[s], word);
    const char *name = k ? k->name : foreign_keys_instead(word);
    if (name == NULL)
      name = str_nearest(word, names);
    last = name ? name : last;
  }
  return last;
}
