/* Has git tell where it works, and reads what it told. */
#include "provider/git_trace.h"

#include "base/file.h"
#include "base/limits.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIT_TRACE_FILE "%s/.segue-git"

size_t git_trace_variables(struct arena *a, const char *tmpdir,
                           const char *out[GIT_TRACE_VARIABLES]) {
  if (tmpdir == NULL)
    return 0;
  out[0] = arena_printf(a, "GIT_TRACE2_EVENT=" GIT_TRACE_FILE, tmpdir);
  out[1] = "GIT_TRACE2_EVENT_BRIEF=1";
  return 2;
}

static void add_pair(json_t *seen, const json_t *tree, const json_t *name) {
  json_t *pair = json_pack("[OO]", tree, name);
  for (size_t i = 0; i < json_array_size(seen); i++)
    if (json_same(json_array_get(seen, i), pair)) {
      json_decref(pair);
      return;
    }
  json_array_append_new(seen, pair);
}

/* A program's events are told apart by its sid. Of all lines only those of a repository and of a
 * command's name matter; the second comes after the first. */
static json_t *trace_pairs(struct str rest) {
  json_t *seen = json_array(), *trees = json_object();
  while (rest.n > 0 && json_array_size(seen) < LIMIT_GIT_TRACE_PAIRS) {
    struct str line = str_next_line(&rest);
    bool repository = str_has(line, "\"event\":\"def_repo\"");
    if (!repository && !str_has(line, "\"event\":\"cmd_name\""))
      continue;
    json_t *event = json_loadb(line.p, line.n, 0, NULL);
    const char *sid = json_word_at(event, "sid");
    json_t *tree = json_object_get(trees, sid), *name = json_object_get(event, "name");
    if (repository && json_is_string(json_object_get(event, "worktree")))
      json_object_set(trees, sid, json_object_get(event, "worktree"));
    else if (!repository && tree != NULL && json_is_string(name))
      add_pair(seen, tree, name);
    json_decref(event);
  }
  json_decref(trees);
  bool all = rest.n == 0;
  if (all)
    return seen;
  json_decref(seen);
  return NULL;
}

void git_trace_read(const char *tmpdir, struct call_result *result) {
  struct buf path = {0}, text = {0};
  struct err err;
  struct stat st;
  json_decref(result->git_seen);
  result->git_seen = NULL;
  buf_printf(&path, GIT_TRACE_FILE, tmpdir ? tmpdir : "");
  int fd = open(buf_c(&path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (fd < 0)
    result->git_seen = json_array();
  else if (is && st.st_size <= LIMIT_GIT_TRACE_BYTES &&
           file_read_fd(fd, buf_c(&path), LIMIT_GIT_TRACE_BYTES, &text, &err))
    result->git_seen = trace_pairs(buf_view(&text));
  if (fd >= 0)
    (void)close(fd);
  buf_deinit(&path);
  buf_deinit(&text);
}
