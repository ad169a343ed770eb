/* Answers what opencode asks while it works: may it use a tool (permission.asked), and what should
 * it do (question.asked)? The first is answered by policy; the second is turned down, so that the
 * agent decides for itself. An answer counts once, never for good. */
#include "provider/agent/opencode_internal.h"

#include "base/log.h"
#include "format/json_write.h"
#include "provider/agent/policy.h"

#include <stdio.h>
#include <string.h>

static enum ask_kind opencode_kind_of(struct str permission) {
  static const struct {
    const char *name;
    enum ask_kind kind;
  } kinds[] = {{"read", ASK_READ},       {"glob", ASK_READ},
               {"grep", ASK_READ},       {"list", ASK_READ},
               {"lsp", ASK_READ},        {"skill", ASK_READ},
               {"todowrite", ASK_READ},  {"todoread", ASK_READ},
               {"task", ASK_READ}, /* agents below it ask for themselves */
               {"edit", ASK_EDIT},       {"bash", ASK_EXECUTE},
               {"webfetch", ASK_FETCH},  {"websearch", ASK_FETCH},
               {"codesearch", ASK_FETCH}};
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (str_eq_c(permission, kinds[i].name))
      return kinds[i].kind;
  return ASK_OTHER;
}

static void add_text(json_t *list, const json_t *text) {
  if (json_is_string(text))
    json_array_append(list, (json_t *)text);
}

/* Returns the files that an edit is about: `files` of a patch, each with its new name where it gets
 * one, else `filepath`. What stands in `patterns` is relative to the repository, not to the working
 * directory. */
static json_t *opencode_paths_of(const json_t *asked, enum ask_kind kind) {
  const json_t *metadata = json_object_get(asked, "metadata");
  const json_t *files = json_object_get(metadata, "files");
  json_t *paths = json_array();
  if (kind != ASK_EDIT)
    return paths;
  if (!json_is_array(files))
    add_text(paths, json_object_get(metadata, "filepath"));
  for (size_t i = 0; i < json_array_size(files); i++) {
    const json_t *file = json_array_get(files, i);
    if (!json_is_string(json_object_get(file, "filePath"))) {
      json_array_clear(paths); /* one is not known, so none of them is */
      break;
    }
    add_text(paths, json_object_get(file, "filePath"));
    add_text(paths, json_object_get(file, "movePath"));
  }
  return paths;
}

static bool opencode_decide(const struct agent_call *call, const json_t *asked,
                            const char **reason) {
  struct str permission = opencode_text(asked, "permission");
  enum ask_kind kind = opencode_kind_of(permission);
  json_t *paths = opencode_paths_of(asked, kind);
  const struct policy policy = driver_policy(call);
  const struct policy_ask ask = {.kind = kind,
                                 .tool = permission,
                                 .paths = paths,
                                 .command =
                                     opencode_text(json_object_get(asked, "metadata"), "command")};
  bool allowed = policy_allows(&ask, &policy, reason);
  if (!allowed && str_eq_c(permission, "external_directory"))
    *reason = "it is outside the working directory";
  json_decref(paths);
  return allowed;
}

/* Tells in a line what the agent wants to do: the command, the file, the address. */
static struct str opencode_title_of(const json_t *asked) {
  static const char *const names[] = {"command", "filepath", "url", "query", "pattern", "tool"};
  const json_t *metadata = json_object_get(asked, "metadata");
  const json_t *pattern = json_array_get(json_object_get(asked, "patterns"), 0);
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (opencode_text(metadata, names[i]).n > 0)
      return opencode_text(metadata, names[i]);
  return (struct str){json_string_value(pattern), json_string_length(pattern)};
}

void opencode_on_permission(struct driver *d, const json_t *asked) {
  struct opencode *o = opencode_of(d);
  struct str id = opencode_text(asked, "id");
  char path[200];
  if (!opencode_is_id(id))
    return;
  struct question question = {.tool = opencode_text(asked, "permission"),
                              .title = opencode_title_of(asked)};
  question.allowed = opencode_decide(o->call, asked, &question.reason);
  question_ask(&o->questions, json_object_get(asked, "id"), &question);
  (void)snprintf(path, sizeof path, "/permission/" STR_FMT "/reply", STR_ARG(id));
  json_t *reply = json_pack("{s:s}", "reply", question.allowed ? "once" : "reject");
  if (!question.allowed)
    json_object_set_new(reply, "message",
                        json_string(question.reason ? question.reason : "denied"));
  opencode_post(d, OPENCODE_REPLY, path, reply);
}

void opencode_on_question(struct driver *d, const json_t *asked) {
  struct opencode *o = opencode_of(d);
  struct str id = opencode_text(asked, "id");
  const json_t *first = json_array_get(json_object_get(asked, "questions"), 0);
  char path[200];
  if (!opencode_is_id(id))
    return;
  const struct question question = {.tool = STR("question"),
                                    .title = opencode_text(first, "question"),
                                    .reason = "nobody is there to answer"};
  question_ask(&o->questions, json_object_get(asked, "id"), &question);
  (void)snprintf(path, sizeof path, "/question/" STR_FMT "/reject", STR_ARG(id));
  opencode_post(d, OPENCODE_REPLY, path, json_object());
}

void opencode_replied(struct driver *d, struct str line) {
  struct opencode *o = opencode_of(d);
  static const char start[] = "/permission/";
  const char *at = line.n > 0 ? memchr(line.p, ' ', line.n) : NULL;
  if (!str_starts(line, start) || at == NULL)
    return;
  struct str rest = {line.p + sizeof start - 1, (size_t)(at - line.p) - (sizeof start - 1)};
  const char *slash = memchr(rest.p, '/', rest.n);
  json_t *body = json_loadb(at, (size_t)(line.p + line.n - at), 0, NULL);
  struct str reply = opencode_text(body, "reply");
  if (slash != NULL && reply.n > 0) {
    json_t *id = json_text((struct str){rest.p, (size_t)(slash - rest.p)});
    question_answered(&o->questions, id, !str_eq_c(reply, "reject"));
    json_decref(id);
  }
  json_decref(body);
}
