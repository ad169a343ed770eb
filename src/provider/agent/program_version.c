/* Asks a program for its version and compares versions. */
#include "provider/agent/program_version.h"

#include "base/limits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const *version_words(const struct profile *profile, const char *program,
                                 const json_t *settings, struct arena *a) {
  const json_t *argv = json_object_get(json_object_get(profile->keys, "version"), "argv");
  const json_t *given = json_object_get(settings, "program");
  const char **words = arena_array(a, LIMIT_ARGV_COUNT + 2, sizeof *words);
  size_t n = 1;
  words[0] = program;
  for (size_t i = 1; i < json_array_size(given) && n < LIMIT_ARGV_COUNT; i++)
    words[n++] = json_string_value(json_array_get(given, i));
  for (size_t i = 0; i < json_array_size(argv) && n < LIMIT_ARGV_COUNT; i++)
    words[n++] = json_string_value(json_array_get(argv, i));
  if (json_array_size(argv) == 0)
    words[n++] = "--version";
  return words;
}

const char *version_minimum(const struct profile *profile) {
  return json_string_value(json_object_get(json_object_get(profile->keys, "version"), "minimum"));
}

bool version_older(const char *version, const char *minimum) {
  while (*version != '\0' && !isdigit((unsigned char)*version))
    version++;
  while (*version != '\0' && *minimum != '\0') {
    char *v, *m;
    unsigned long have = strtoul(version, &v, 10), want = strtoul(minimum, &m, 10);
    if (have != want)
      return have < want;
    if (*m != '.' || m == minimum)
      return false;
    if (*v != '.')
      return true;
    version = v + 1;
    minimum = m + 1;
  }
  return false;
}

/* Finds the word of an answer that holds a version: "codex-cli 0.169.0" -> 0.169.0. */
static void agent_version_read_version(struct str answer, char *out, size_t size) {
  for (size_t i = 0; i < answer.n; i++) {
    size_t word = i; /* where the digit's word begins: "v1.2.3" is a version too */
    if (word > 0 && (answer.p[word - 1] == 'v' || answer.p[word - 1] == 'V'))
      word--;
    if (!isdigit((unsigned char)answer.p[i]) ||
        (word > 0 && (isalnum((unsigned char)answer.p[word - 1]) || answer.p[word - 1] == '.')))
      continue;
    size_t n = 0, dots = 0;
    while (i + n < answer.n && n + 1 < size &&
           (isalnum((unsigned char)answer.p[i + n]) || strchr(".-+", answer.p[i + n]) != NULL) &&
           answer.p[i + n] != '\0')
      dots += answer.p[i + n++] == '.';
    while (n > 0 && !isalnum((unsigned char)answer.p[i + n - 1])) /* the sentence ends here */
      n--;
    if (dots > 0 && memchr(answer.p + i, '.', n) != NULL) {
      memcpy(out, answer.p + i, n);
      out[n] = '\0';
      return;
    }
    i += n;
  }
}

bool version_read(const struct process_result *r, char *out, size_t size) {
  out[0] = '\0';
  if (r->why != PROCESS_END_EXITED || r->exit_code != 0)
    return false;
  agent_version_read_version(buf_view(&r->out), out, size);
  if (out[0] == '\0')
    agent_version_read_version(buf_view(&r->err), out, size);
  return out[0] != '\0';
}
