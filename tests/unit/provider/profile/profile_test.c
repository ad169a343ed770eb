/* Profiles: every mistake with its place, what extends fills in, and the command line of a call. */
#include "support/data.h"

#include "base/limits.h"
#include "core/call.h"

#include "provider/agent/schema_delivery.h"
#include "provider/profile/profile.h"
#include "schema/schema.h"
#include "support/folder.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char good[] = "summary: a test\nprogram: prog\nargv: [run]\nevents:\n"
                           "  - {when: {/t: end}, text: /x, end: ok}\n";

/* --- mistakes --- */

TEST(mistakes_have_their_place) {
  DATA_ROWS("provider/profile/mistakes_have_their_place.yaml", c, text, place, message) {
    AUTO(err_list_deinit) struct err_list errors = {0};
    char place[32];
    struct profile *p = profile_load("t", "t.yaml", str_from(c.text), NULL, NULL, &errors);
    if (p != NULL || errors.count == 0)
      fail_msg("%s: no error", c.text);
    snprintf(place, sizeof place, "%d:%d", errors.items[0].line, errors.items[0].column);
    if (strcmp(place, c.place) != 0 || strstr(errors.items[0].text, c.message) == NULL)
      fail_msg("%s\n%s: %s", c.text, place, errors.items[0].text);
  }
}

TEST(all_mistakes_are_told) {
  AUTO(err_list_deinit) struct err_list errors = {0};
  assert_null(profile_load("t", "t.yaml", STR("summary: x\noutput: a\nstdin: b\ntext: c\n"), NULL,
                           NULL, &errors));
  assert_int_equal(errors.count, 3);
}

/* --- the shipped ones, and the user's --- */

static json_int_t schema_limit(const json_t *keys, const char *key, const char *limit) {
  return json_integer_value(json_object_get(json_object_get(keys, key), limit));
}

TEST(the_schema_knows_our_limits_and_classes) {
  json_auto_t *schema = profile_schema();
  const json_t *keys = json_object_get(schema, "properties");
  const json_t *defs = json_object_get(schema, "$defs");
  const json_t *classes = json_object_get(json_object_get(defs, "class"), "enum");
  assert_int_equal(schema_limit(keys, "prompt_max_chars", "maximum"), LIMIT_PROMPT_BYTES);
  assert_int_equal(schema_limit(keys, "stall_ms", "maximum"), LIMIT_CALL_WALL_MS);
  assert_int_equal(schema_limit(keys, "judge_stall_ms", "maximum"), LIMIT_CALL_WALL_MS);
  assert_int_equal(schema_limit(keys, "events", "maxItems"), LIMIT_PROFILE_RULE_COUNT);
  assert_int_equal(json_array_size(classes), CLASS_CANCELLED); /* not the ends that we cause */
  for (int i = CLASS_NONE + 1; i <= CLASS_CANCELLED; i++)
    assert_string_equal(json_string_value(json_array_get(classes, (size_t)i - 1)),
                        error_class_name((enum error_class)i));
}

/* They are compiled in as JSON and not checked at the start of every command: so here. */
TEST(what_is_shipped_is_what_its_file_says) {
  struct err_list errors = {0};
  struct profiles *all = profiles_load(NULL, &errors);
  const struct profile *shipped;
  size_t count = 0;
  assert_non_null(all);
  for (; (shipped = profile_ready(profiles_peek(all, count))) != NULL; count++) {
    struct profile *read = profile_load(shipped->capability.name, shipped->capability.name,
                                        shipped->source, NULL, NULL, &errors);
    if (read == NULL)
      fail_msg("%s:%d: %s", shipped->capability.name, errors.items[0].line, errors.items[0].text);
    assert_null(json_object_get(read->keys, "extends"));
    assert_true(json_equal(read->keys, shipped->keys));
    profile_free(read);
  }
  assert_int_equal(count, 17);
  profiles_free(all);
}

/* How a client holds a permission is read for each transport, whose values are kept as text. */
TEST(each_transport_holds_as_its_part_says) {
  struct err_list errors = {0};
  struct profiles *all = profiles_load(NULL, &errors);
  const struct profile *shipped;
  unsigned seen = 0;
  assert_non_null(all);
  for (size_t i = 0; (shipped = profile_ready(profiles_peek(all, i))) != NULL; i++) {
    const struct profile *p = profile_ready(shipped);
    if (strcmp(p->capability.name, "claude") == 0) {
      for (int transport = 0; transport < TRANSPORT_COUNT; transport++)
        assert_true(p->holds[transport].looks && !p->holds[transport].served);
      seen++;
    } else if (strcmp(p->capability.name, "opencode") == 0) {
      for (int transport = 0; transport < TRANSPORT_COUNT; transport++) {
        assert_false(p->holds[transport].looks);
        assert_int_equal(p->holds[transport].served, transport == TRANSPORT_NATIVE);
      }
      seen++;
    }
  }
  assert_int_equal(seen, 2);
  profiles_free(all);
}

/* A profile turns out to be what is said of it before it is made. SEGUE_UPDATE=1 writes the
 * file anew. */
TEST(the_index_says_what_the_profiles_say) {
  static const char path[] = SEGUE_SOURCE_DIR "/src/provider/profiles/index.json";
  struct err_list errors = {0};
  struct profiles *all = profiles_load(NULL, &errors);
  json_auto_t *index = json_load_file(path, 0, NULL), *about = json_object();
  const struct profile *shipped;
  assert_non_null(all);
  for (size_t i = 0; (shipped = profile_ready(profiles_peek(all, i))) != NULL; i++)
    json_object_set_new(about, shipped->capability.name, profile_about(shipped));
  if (getenv("SEGUE_UPDATE") != NULL)
    assert_int_equal(json_dump_file(about, path, JSON_INDENT(2)), 0);
  else
    assert_true(json_equal(about, index));
  profiles_free(all);
}

/* A profile of which only the capability was asked is made at the first use. */
TEST(a_profile_is_made_when_it_is_used) {
  struct err_list errors = {0};
  struct profiles *all = profiles_load(NULL, &errors);
  const struct profile *first = profiles_peek(all, 0);
  assert_null(first->keys);
  assert_string_not_equal(first->capability.summary, "");
  assert_ptr_equal(profile_ready(first), first);
  assert_non_null(first->keys);
  assert_ptr_equal(profile_ready(profiles_peek(all, 0)), first);
  profiles_free(all);
}

TEST(shipped_profiles_are_valid_by_the_schema) {
  static const char *const names[] = {"claude", "codex", "opencode", "gemini", "qwen",  "copilot",
                                      "pi",     "text",  "jsonl",    "acp",    "cline", "goose",
                                      "aider",  "grok",  "kimi",     "droid",  "cn"};
  json_auto_t *doc = profile_schema();
  struct schema *schema = schema_compile(doc, NULL, NULL, NULL);
  assert_non_null(schema);
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    char path[512];
    AUTO(schema_errors_deinit) struct schema_errors errors = {0};
    snprintf(path, sizeof path, "%s/src/provider/profiles/%s.yaml", SEGUE_SOURCE_DIR, names[i]);
    json_auto_t *file = data_load(path);
    if (schema_check(schema, file, &errors) != SCHEMA_OK)
      fail_msg("%s: %s: %s", path, errors.items[0].path, errors.items[0].message);
  }
  schema_free(schema);
}

TEST(the_users_files_add_and_replace) {
  char *folder = folder_make(), path[128];
  struct err_list errors = {0};
  folder_put(folder, "mine.yaml", str_from(good));
  folder_put(folder, "claude.yaml",
             str_from("extends: claude\nprogram: /opt/claude\nstall_ms: 1234\n"));
  folder_put(folder, "notes.txt", str_from("no profile"));
  struct profiles *p = profiles_load(folder, &errors);
  if (p == NULL)
    fail_msg("%s:%d: %s", errors.items[0].file, errors.items[0].line, errors.items[0].text);
  assert_string_equal(profiles_find(p, STR("mine"))->program, "prog");
  const struct profile *claude = profiles_find(p, STR("claude"));
  assert_string_equal(claude->program, "/opt/claude");
  assert_int_equal(claude->stall_ms, 1234);
  assert_true(claude->rule_count > 5); /* the shipped one's */
  assert_string_equal(claude->capability.structured, "tool");
  assert_null(profiles_find(p, STR("notes")));
  profiles_free(p);
  folder_put(folder, "claude.yaml", str_from("extends: wrong\nsummary: x\n"));
  folder_put(folder, "wrong.yaml", str_from("summary: x\nargv: 7\n"));
  folder_put(folder, "early.yaml", str_from("extends: mine\nsummary: before its base\n"));
  folder_put(folder, "less.yaml",
             str_from("extends: codex\nargv: [-p]\nschema: null\nacp: null\n"));
  p = profiles_load(folder, &errors); /* a mistake in one is no other's */
  assert_non_null(p);
  assert_null(profiles_find(p, STR("mine"))->broken);
  const struct err *broken = profiles_find(p, STR("wrong"))->broken;
  assert_non_null(broken);
  assert_null(profiles_find(p, STR("early"))->broken);
  assert_string_equal(profiles_find(p, STR("early"))->program, "prog");
  assert_int_equal(broken->line, 2);
  assert_non_null(strstr(broken->file, "wrong.yaml"));
  const struct profile *less = profiles_find(p, STR("less"));
  assert_null(less->broken);
  assert_true(less->acp == NULL && less->schema_by == SCHEMA_BY_NONE && less->native != NULL);
  broken = profiles_find(p, STR("claude"))->broken;
  assert_int_equal(broken->line, 1);
  assert_non_null(strstr(broken->text, "mistake of its own"));
  profiles_free(p);
  err_list_deinit(&errors);
  static const char *const files[] = {"mine.yaml",  "claude.yaml", "notes.txt",
                                      "wrong.yaml", "early.yaml",  "less.yaml"};
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i]);
    assert_int_equal(unlink(path), 0);
  }
  folder_remove(folder);
}

/* A file whose name no provider can have is broken by itself: the others are there. */
TEST(names_that_cannot_be) {
  static const struct {
    const char *file, *shown, *why;
  } cases[] = {
      {"script.yaml", "script.yaml", "built in"},
      {"command.yaml", "command.yaml", "built in"},
      {"my agent.yaml", "my agent.yaml", "use letters"},
      {"2nd.yaml", "2nd.yaml", "a letter first"},
      {"a.b.yaml", "a.b.yaml", "use letters"},
      {"bad\xFF\033[31m.yaml", "bad??[31m.yaml", "use letters"},
      {"other.yml", "other.yml", "write .yaml"},
      {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
       "a"
       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.yaml",
       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
       "a"
       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.yaml",
       "too long"},
  };
  char *folder = folder_make(), path[512];
  struct err_list errors = {0};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    folder_put(folder, cases[i].file, str_from(good));
  folder_put(folder, "mine.yaml", str_from(good));
  struct profiles *p = profiles_load(folder, &errors);
  assert_non_null(p);
  assert_null(profiles_find(p, STR("mine"))->broken);
  assert_null(profiles_find(p, STR("claude"))->broken);
  assert_null(profiles_find(p, STR("other")));
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const struct profile *found = profiles_find(p, str_from(cases[i].shown));
    if (found == NULL || found->broken == NULL)
      fail_msg("%s is not there as broken", cases[i].shown);
    if (strstr(found->broken->text, cases[i].why) == NULL)
      fail_msg("%s: %s", cases[i].shown, found->broken->text);
    print_into(path, sizeof path, "%s/%s", folder, cases[i].file);
    assert_int_equal(unlink(path), 0);
  }
  profiles_free(p);
  print_into(path, sizeof path, "%s/mine.yaml", folder);
  assert_int_equal(unlink(path), 0);
  folder_remove(folder);
}

/* --- command lines --- */

struct words {
  struct arena arena;
  struct buf text; /* the words, joined by | */
  struct agent_command command;
  enum error_class class;
  struct err err;
};

static void words_deinit(struct words *w) {
  arena_deinit(&w->arena);
  buf_deinit(&w->text);
}

static struct profiles *shipped;

static int load_shipped(void **state) {
  struct err_list errors = {0};
  (void)state;
  shipped = profiles_load(NULL, &errors);
  return shipped == NULL;
}

static int free_shipped(void **state) {
  (void)state;
  profiles_free(shipped);
  return 0;
}

static bool command(struct words *w, const char *name, const struct agent_call *call) {
  *w = (struct words){0};
  bool ok = profile_command(profiles_find(shipped, str_from(name)), TRANSPORT_EXEC, call, &w->arena,
                            &w->command, &w->class, &w->err);
  for (size_t i = 0; ok && w->command.argv[i] != NULL; i++)
    buf_printf(&w->text, "%s%s", i ? "|" : "", w->command.argv[i]);
  return ok;
}

static struct call_request execute(void) {
  return (struct call_request){.purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT};
}

static struct agent_call call_of(const struct call_request *request) {
  return (struct agent_call){.request = request,
                             .cwd = "/project",
                             .tmpdir = "/tmp/x",
                             .session = "",
                             .new_session = "",
                             .prompt = STR("do it"),
                             .permission = PERMISSION_EDIT};
}

TEST(groups_fall_out_when_they_are_empty) {
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  AUTO(words_deinit) struct words w;
  assert_true(command(&w, "claude", &call));
  assert_string_equal(buf_c(&w.text),
                      "claude|-p|--output-format|stream-json|--setting-sources|user|"
                      "--add-dir|.|--verbose|--include-partial-messages|"
                      "--permission-mode|acceptEdits");
  assert_true(str_eq_c(w.command.stdin_bytes, "do it")); /* never in argv */
}

static const char *assignment(const struct words *w, const char *name) {
  for (size_t i = 0; w->command.assignments[i] != NULL; i++)
    if (strncmp(w->command.assignments[i], name, strlen(name)) == 0)
      return w->command.assignments[i] + strlen(name);
  return "";
}

/* Each client is told in its own words. */
TEST(programs_that_may_run_are_named) {
  json_auto_t *run = json_pack("[s, s]", "make", "npm test");
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  struct words w;
  request.run = run;
  assert_true(command(&w, "claude", &call));
  assert_non_null(strstr(buf_c(&w.text), "|acceptEdits|--allowedTools|Bash(make:*)|--allowedTools|"
                                         "Bash(npm test:*)"));
  words_deinit(&w);
  assert_true(command(&w, "opencode", &call));
  assert_non_null(strstr(assignment(&w, "OPENCODE_PERMISSION="),
                         "\"bash\":{\"*\":\"deny\",\"make\":\"allow\",\"make *\":\"allow\","
                         "\"npm test\":\"allow\",\"npm test *\":\"allow\"}"));
  words_deinit(&w);
  request.run = NULL;
  assert_true(command(&w, "opencode", &call));
  assert_non_null(strstr(assignment(&w, "OPENCODE_PERMISSION="), "\"bash\":{\"*\":\"deny\"}"));
  words_deinit(&w);
}

/* codex has no switch for all servers of the user's: a judge and readonly work name each. */
TEST(the_users_servers_are_switched_off) {
  char *folder = folder_make();
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  json_auto_t *settings = json_pack("{s{ss}}", "set", "CODEX_HOME", folder);
  static const char off[] = "|-c|mcp_servers.docs.enabled=false|-c|mcp_servers.odd-one.enabled="
                            "false|-c|mcp_servers.flat.enabled=false";
  struct words w;
  call.settings = settings;
  call.permission = PERMISSION_READONLY;
  assert_true(command(&w, "codex", &call)); /* there are no settings */
  assert_null(strstr(buf_c(&w.text), "mcp_servers"));
  words_deinit(&w);
  folder_put(folder, "config.toml",
             str_from("model = \"mcp_servers.no\"\n# [mcp_servers.no]\n[mcp_servers.docs]\n"
                      "command = \"x\"\n[mcp_servers.docs.env]\nA = \"1\"\n"
                      " [ mcp_servers.\"odd-one\" ]\nmcp_servers.flat.command = \"y\"\n"));
  assert_true(command(&w, "codex", &call));
  assert_non_null(strstr(buf_c(&w.text), off));
  words_deinit(&w);
  request.purpose = PURPOSE_JUDGE;
  assert_true(command(&w, "codex", &call));
  assert_non_null(strstr(buf_c(&w.text), off));
  words_deinit(&w);
  w = (struct words){0};
  assert_true(profile_command(profiles_find(shipped, STR("codex")), TRANSPORT_ACP, &call, &w.arena,
                              &w.command, &w.class, &w.err));
  assert_non_null(strstr(assignment(&w, "CODEX_CONFIG="),
                         "{\"mcp_servers\":{\"docs\":{\"enabled\":false},\"odd-one\":"));
  words_deinit(&w);
  request.purpose = PURPOSE_EXECUTE;
  call.permission = PERMISSION_EDIT;
  assert_true(command(&w, "codex", &call));
  assert_null(strstr(buf_c(&w.text), "mcp_servers"));
  words_deinit(&w);
  char path[128];
  snprintf(path, sizeof path, "%s/config.toml", folder);
  assert_int_equal(unlink(path), 0);
  folder_remove(folder);
}

/* A judge needs nothing but its prompt: no tools, and few words of the client's own. */
TEST(judges_are_no_coding_agents) {
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  struct words w;
  request.purpose = PURPOSE_JUDGE;
  call.permission = PERMISSION_READONLY;
  assert_true(command(&w, "codex", &call));
  assert_non_null(strstr(buf_c(&w.text), "|--ephemeral|"));
  assert_non_null(strstr(buf_c(&w.text), "|model_instructions_file=/tmp/x/judge.md|"));
  assert_non_null(strstr(buf_c(&w.text), "|sandbox_mode=read-only|"));
  size_t last = w.command.file_count - 1;
  assert_string_equal(w.command.files[last].path, "/tmp/x/judge.md");
  assert_true(str_starts(w.command.files[last].content, "You judge the report"));
  words_deinit(&w);
  assert_true(command(&w, "copilot", &call));
  assert_non_null(strstr(buf_c(&w.text), "|--available-tools|none"));
  words_deinit(&w);
  assert_true(command(&w, "gemini", &call));
  assert_string_equal(assignment(&w, "GEMINI_SYSTEM_MD="), "/tmp/x/judge.md");
  words_deinit(&w);
  request.purpose = PURPOSE_EXECUTE;
  assert_true(command(&w, "gemini", &call));
  assert_string_equal(assignment(&w, "GEMINI_SYSTEM_MD="), "");
  words_deinit(&w);
}

static struct str gap(const char *name, enum permission permission, bool runs, struct buf *out) {
  buf_clear(out);
  (void)capability_gap(&profiles_find(shipped, str_from(name))->capability, permission, runs, out);
  return buf_view(out);
}

TEST(what_a_client_cannot_hold_is_said) {
  buf_auto_t out = {0};
  assert_int_equal(gap("claude", PERMISSION_EDIT, true, &out).n, 0);
  assert_int_equal(gap("codex", PERMISSION_READONLY, false, &out).n, 0);
  assert_true(str_eq_c(gap("codex", PERMISSION_EDIT, true, &out),
                       "it runs any program, not only those of run"));
  assert_true(str_starts(gap("pi", PERMISSION_EDIT, false, &out), "its tools for files write out"));
  assert_non_null(strstr(buf_c(&out), "outside"));
  assert_null(strstr(buf_c(&out), "those of run"));
  (void)gap("pi", PERMISSION_EDIT, true, &out);
  assert_non_null(strstr(buf_c(&out), "; it runs no program: those of run neither"));
  assert_true(
      str_starts(gap("text", PERMISSION_READONLY, false, &out), "its profile does not say"));
  assert_int_equal(gap("text", PERMISSION_FULL, false, &out).n, 0);
}

TEST(everything_that_is_there_comes_in) {
  json_auto_t *options = json_pack("{s:s}", "effort", "high");
  json_auto_t *schema = json_pack("{s:s}", "type", "object");
  json_auto_t *tools = json_pack("[s, s]", "Read", "Bash(git *)");
  json_auto_t *settings = json_pack("{s:[s, s], s:[s]}", "args", "--x", "", "program", "/opt/c");
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  AUTO(words_deinit) struct words w;
  request.model = STR("opus");
  request.options = options;
  request.purpose = PURPOSE_JUDGE;
  call.new_session = "11111111-2222-4333-8444-555555555555";
  call.schema = schema;
  call.tools = tools;
  call.settings = settings;
  call.max_turns = 5;
  call.permission = PERMISSION_READONLY;
  assert_true(command(&w, "claude", &call));
  assert_string_equal(
      buf_c(&w.text),
      "/opt/c|-p|--output-format|stream-json|--setting-sources|user|"
      "--add-dir|.|--verbose|--include-partial-messages|--model|opus|"
      "--effort|high|--session-id|11111111-2222-4333-8444-555555555555|--json-schema|"
      "{\"type\":\"object\"}|--max-turns|5|--allowedTools|Read,Bash(git "
      "*)|--permission-mode|dontAsk|"
      "--disallowedTools|Edit,Write,NotebookEdit|--tools||--strict-mcp-config|--system-prompt|You "
      "judge the "
      "report of an agent. Answer in the form that is asked for, and do nothing else.|--x|");
}

TEST(a_conversation_goes_on_by_its_id) {
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  struct words w;
  call.session = "01a1fb71-9a99-7bb3-9c52-1ba211b4c192";
  call.new_session = "22222222-2222-4333-8444-555555555555"; /* not both */
  assert_true(command(&w, "codex", &call));
  assert_string_equal(buf_c(&w.text), "codex|exec|resume|--json|--skip-git-repo-check|-c|"
                                      "sandbox_mode=workspace-write|-c|"
                                      "sandbox_workspace_write.exclude_slash_tmp=true|"
                                      "01a1fb71-9a99-7bb3-9c52-1ba211b4c192|-");
  words_deinit(&w);
  assert_true(command(&w, "gemini", &call));
  assert_null(strstr(buf_c(&w.text), "--session-id"));
  assert_non_null(strstr(buf_c(&w.text), "--resume|01a1fb71"));
  words_deinit(&w);
  assert_true(command(&w, "claude", &call));
  assert_null(strstr(buf_c(&w.text), "--fork-session"));
  words_deinit(&w);
  request.forks = true; /* a sibling's: it goes on there, too */
  assert_true(command(&w, "claude", &call));
  assert_non_null(strstr(buf_c(&w.text), "--resume|01a1fb71-9a99-7bb3-9c52-1ba211b4c192|"
                                         "--fork-session"));
  words_deinit(&w);
}

static bool sets(const struct agent_command *c, const char *assignment) {
  for (size_t i = 0; c->assignments[i] != NULL; i++)
    if (strcmp(c->assignments[i], assignment) == 0)
      return true;
  return false;
}

TEST(files_and_variables_are_filled_in) {
  json_auto_t *schema = json_pack("{s:s}", "type", "object");
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  struct words w;
  call.schema = schema;
  assert_true(command(&w, "codex", &call));
  assert_non_null(strstr(buf_c(&w.text), "--output-schema|/tmp/x/segue-schema.json|"));
  assert_int_equal(w.command.file_count, 2); /* it, and what judges are told */
  assert_true(str_eq_c(w.command.files[0].content, "{\"type\":\"object\"}"));
  words_deinit(&w);
  call.schema = NULL;
  assert_true(command(&w, "gemini", &call));
  assert_true(sets(&w.command, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/tmp/x/gemini-defaults.json"));
  words_deinit(&w);
  assert_true(command(&w, "pi", &call)); /* its prompt is a file: argv is public */
  assert_non_null(strstr(buf_c(&w.text), "|-p|@/tmp/x/segue-prompt.md"));
  assert_true(str_eq_c(w.command.files[0].content, "do it"));
  assert_int_equal(w.command.stdin_bytes.n, 0);
  words_deinit(&w);
  call.permission = PERMISSION_READONLY;
  assert_true(command(&w, "opencode", &call));
  bool denied = false;
  for (size_t i = 0; w.command.assignments[i] != NULL; i++)
    denied = denied || (strstr(w.command.assignments[i], "OPENCODE_PERMISSION={") != NULL &&
                        strstr(w.command.assignments[i], "={\"*\":\"deny\"") != NULL);
  assert_true(denied);
  words_deinit(&w);
}

TEST(names_that_look_like_options_are_refused) {
  static const char *const models[] = {"--dangerously-skip-permissions", "two words", "tab\tbed",
                                       "line\nbreak"};
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  struct words w;
  for (size_t i = 0; i < ARRAY_LEN(models); i++) {
    request.model = str_from(models[i]);
    assert_false(command(&w, "codex", &call));
    assert_int_equal(w.class, CLASS_BAD_REQUEST);
    words_deinit(&w);
  }
  request.model = (struct str){NULL, 0};
  call.session = "-x";
  assert_false(command(&w, "codex", &call));
  words_deinit(&w);
}

TEST(prompts_beyond_the_clients_limit_are_refused) {
  struct call_request request = execute();
  struct agent_call call = call_of(&request);
  struct words w;
  buf_auto_t text = {0};
  for (size_t i = 0; i < 1048576; i++)
    buf_puts(&text, "\xC3\xA9"); /* characters, not bytes */
  call.prompt = buf_view(&text);
  assert_true(command(&w, "codex", &call));
  words_deinit(&w);
  buf_putc(&text, 'x');
  call.prompt = buf_view(&text);
  assert_false(command(&w, "codex", &call));
  assert_non_null(strstr(w.err.text, "1048577 characters"));
  words_deinit(&w);
}

/* --- schemas --- */

TEST(schemas_go_where_they_are_understood) {
  json_auto_t *schema = data_json(
      "{'$schema': 'https://json-schema.org/draft/2020-12/schema', 'type': 'object', 'properties': "
      "{'reason': {'type': 'string'}, 'step': {'type': 'integer', 'enum': [0, 1]}, 'note': "
      "{'type': "
      "'string'}}, 'required': ['reason', 'step'], 'additionalProperties': false}");
  const struct call_request request = {.schema = schema, .prompt = STR("ask")};
  const struct call_request plain = {.prompt = STR("ask")};
  struct schema_delivery place;
  schema_delivery(&place, profiles_find(shipped, STR("codex")), TRANSPORT_EXEC, &request);
  assert_string_equal(place.enforced, "native");
  assert_null(json_object_get(place.sent, "$schema"));
  assert_int_equal(json_array_size(json_object_get(place.sent, "required")), 3); /* all, there */
  assert_true(str_eq_c(place.prompt, "ask"));
  json_auto_t *value =
      schema_delivery_value(&place, data_json("{'reason': 'r', 'step': 1, 'note': null}"));
  json_auto_t *canonical = data_json("{'reason': 'r', 'step': 1}");
  assert_true(json_equal(value, canonical)); /* and back */
  assert_null(schema_delivery_value(&place, NULL));
  schema_delivery_deinit(&place);

  schema_delivery(&place, profiles_find(shipped, STR("claude")), TRANSPORT_EXEC, &request);
  assert_string_equal(place.enforced, "tool");
  assert_null(json_object_get(place.sent, "$schema"));
  schema_delivery_deinit(&place);

  schema_delivery(&place, profiles_find(shipped, STR("gemini")), TRANSPORT_EXEC, &request);
  assert_string_equal(place.enforced, "prompt");
  assert_null(place.sent);
  assert_true(str_starts(place.prompt, "ask\n\n---\n"));
  schema_delivery_deinit(&place);

  schema_delivery(&place, profiles_find(shipped, STR("claude")), TRANSPORT_EXEC, &plain);
  assert_null(place.enforced);
  schema_delivery_deinit(&place);

  /* Too long for an argument. */
  json_t *many = json_object_get(json_object_get(schema, "properties"), "note");
  buf_auto_t words = {0};
  for (size_t i = 0; i < 120 * 1024; i++)
    buf_putc(&words, 'w');
  json_object_set_new(many, "description", json_stringn(words.p, words.n));
  schema_delivery(&place, profiles_find(shipped, STR("claude")), TRANSPORT_EXEC, &request);
  assert_string_equal(place.enforced, "prompt");
  schema_delivery_deinit(&place);
}

TEST(settings_are_checked) {
  static const struct {
    const char *settings, *message;
  } cases[] = {{"{'progam': 'x'}", "did you mean \"program\""},
               {"{'program': 1}", "providers.claude.program must be"},
               {"{'args': '--x'}", "a list of texts"},
               {"{'set': {'A': 1}}", "a map of variables to texts"},
               {"{'transport': 'smoke'}", "auto, exec, native or acp"},
               {"{'stall_ms': 0}", "an integer above 0"},
               {"[]", "must be a map"}};
  const struct profile *claude = profiles_find(shipped, STR("claude"));
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *settings = data_json(cases[i].settings);
    assert_false(profile_check_settings(claude, settings, &err));
    if (strstr(err.text, cases[i].message) == NULL)
      fail_msg("%s: %s", cases[i].settings, err.text);
  }
  json_auto_t *fine =
      data_json("{'program': ['/x', 'y'], 'args': ['a'], 'env': ['B'], 'set': {'C': "
                "'d'}, 'concurrency': 2, 'transport': 'auto', 'stall_ms': 5}");
  assert_true(profile_check_settings(claude, fine, &err));
}

TEST_GROUP(load_shipped, free_shipped)
