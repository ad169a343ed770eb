/* Worktrees: names of branches, messages of commits, when git is asked, and what a log may say. */
#include "core/keys.h"
#include "core/worktree.h"

#include "support/data.h"
#include "support/play.h"
#include "support/test.h"

#define DONE "'rules':[{'condition':'when(true)','next':'COMPLETE'}]"

TEST(branches_are_names_that_git_takes) {
  DATA_ROWS("core/worktree/branches_are_names_that_git_takes.yaml", c, name, ok) {
    struct err err = {0};
    if (key_check_branch(str_from(c.name), &err) != data_true(c.ok))
      fail_msg("%s", c.name);
    assert_true(data_true(c.ok) || strstr(err.text, "must be the name of a branch"));
  }
}

/* The flags of a start, then the workflow, then what the user is used to. */
TEST(the_nearest_setting_holds) {
  DATA_ROWS("core/worktree/the_nearest_setting_holds.yaml", c, config, workflow, mode, when) {
    buf_auto_t text = {0};
    struct err err = {0};
    buf_printf(&text, "{'name':'w',%s'movements':[{'name':'a'," DONE "}]}", c.workflow);
    json_auto_t *doc = data_json(buf_c(&text)), *config = data_json(c.config);
    struct workflow *wf = workflow_build(doc, &err);
    assert_non_null(wf);
    assert_int_equal(core_workspace_mode(wf, config), data_among(c.mode, "unset here worktree"));
    assert_int_equal(core_commit_when(wf, config), data_among(c.when, "unset off movement end"));
    workflow_unref(wf);
  }
}

/* The k-th record of git that has this event (0-based), or NULL. */
static const json_t *asked(const struct play *p, const char *event, int k) {
  for (size_t i = 0; i < play_lines(p); i++)
    if (str_eq_c(data_get(play_record(p, i), "type"), "workspace") &&
        str_eq_c(data_get(play_record(p, i), "event"), event) && k-- == 0)
      return play_record(p, i);
  return NULL;
}

static struct str asked_for(const struct play *p, const char *event, int k, const char *name) {
  return data_get(json_object_get(asked(p, event, k), "data"), name);
}

static void same_text(const char *what, struct str got, const char *want) {
  if (!str_eq_c(got, want))
    fail_msg("%s: \"" STR_FMT "\", not \"%s\"", what, STR_ARG(got), want);
}

static const char one[] = "{'name':'Fix: it?','workspace':'worktree','movements':["
                          "{'name':'a','command':['x']," DONE "}]}";
static const char one_script[] = "{'a':{'text':'ok','exit':0}}";

TEST(branch_and_base_come_from_the_settings) {
  static const struct {
    const char *config, *branch, *base;
  } cases[] = {
      {"{}", "segue/01990000-0000-7000-8000-000000000001", "HEAD"},
      {"{'workspace':{'branch':'work/{workflow}/{id}','base':'v1'}}",
       "work/Fix--it-/01990000-0000-7000-8000-000000000001", "v1"},
      {"{'default_workspace':{'branch':'u/{workflow}.x','base':'main'}}", "u/Fix--it-.x", "main"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(play_deinit) struct play p;
    play_all(&p, "branch", one, cases[i].config, one_script);
    assert_int_equal(p.core.outcome, END_COMPLETE);
    same_text("branch", asked_for(&p, "make", 0, "branch"), cases[i].branch);
    same_text("base", asked_for(&p, "make", 0, "base"), cases[i].base);
    assert_int_equal(play_count(&p, "workspace"), 4); /* make, made, commit, committed */
    assert_string_equal(core_turn_folder(&p.core, &(struct turn){.id = 7}), "/trees/own/sub");
    assert_false(core_worktree_busy(&p.core));
  }
}

/* A workflow's name may hold what git takes in no branch. */
TEST(names_become_parts_of_branches) {
  static const struct {
    const char *name, *branch;
  } cases[] = {{"fix.", "b/fix-"}, {"-fix", "b/_fix"}, {"a..b", "b/a.-b"},
               {".x", "b/_x"},     {"計画", "b/計画"}, {"a/b", "b/a-b"}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t text = {0};
    AUTO(play_deinit) struct play p;
    buf_printf(&text,
               "{'name':'%s','workspace':'worktree','branch':'b/{workflow}','movements':["
               "{'name':'a','command':['x']," DONE "}]}",
               cases[i].name);
    play_init(&p, cases[i].name, buf_c(&text), NULL, one_script);
    play_start(&p);
    same_text(cases[i].name, asked_for(&p, "make", 0, "branch"), cases[i].branch);
  }
}

TEST(a_commit_says_what_was_done) {
  static const struct {
    const char *task, *config, *message;
  } cases[] = {
      {"Mend it\nand more", "{}", "Mend it"},
      {"", "{}", "Fix: it?: a"},
      {"Mend it", "{'workspace':{'message':'{movement} of {workflow}, turn {turn}: {task}'}}",
       "a of Fix: it?, turn 1: Mend it"},
      {"Mend it", "{'workspace':{'commit':'movement'}}", "a: Mend it"},
      /* cut at a whole character: 71 bytes, then one of three */
      {"12345678901234567890123456789012345678901234567890123456789012345678901\u8a08x", "{}",
       "12345678901234567890123456789012345678901234567890123456789012345678901"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(play_deinit) struct play p;
    AUTO(text_deinit) struct text task = {0};
    buf_auto_t want = {0};
    play_init(&p, "message", one, cases[i].config, one_script);
    struct event ev = play_event(&p, EVENT_RESUME);
    struct core_params params = {
        .session = "s", .workflow = p.workflow, .task = &task, .config = p.config};
    buf_puts(&task.bytes, cases[i].task);
    core_start(&p.core, &params, &ev, &p.env, &p.out);
    play_commit(&p);
    play_run(&p);
    buf_printf(&want, "%s\n\nSegue-Session: s\nSegue-Turn: 1\n", cases[i].message);
    same_text("message", asked_for(&p, "commit", 0, "message"), buf_c(&want));
  }
}

static const char children[] =
    "{'name':'w','workspace':'worktree','movements':[{'name':'g','parallel':["
    "{'name':'x','command':['x'],'workspace':'worktree','rules':[{'condition':'when(true)'}]},"
    "{'name':'y','command':['y'],'rules':[{'condition':'when(true)'}]}]," DONE "}]}";
static const char children_script[] = "{'g.x':{'text':'ok','exit':0},'g.y':{'text':'ok','exit':0}}";

/* A child's begins where the session's stands, and is committed before its turn is over. */
TEST(a_child_has_one_of_its_own) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "child", children, NULL, children_script);
  assert_int_equal(p.core.outcome, END_COMPLETE);
  same_text("branch", asked_for(&p, "make", 1, "branch"),
            "segue/01990000-0000-7000-8000-000000000001-g.x-2");
  same_text("base", asked_for(&p, "make", 1, "base"), "segue/01990000-0000-7000-8000-000000000001");
  assert_int_equal(json_integer_value(json_object_get(asked(&p, "make", 1), "turn")), 2);
  assert_int_equal(json_integer_value(json_object_get(asked(&p, "commit", 0), "turn")), 2);
  same_text("message", asked_for(&p, "commit", 0, "message"),
            "g.x: Mend the queue so that every test passes, and say what was wrong with it\n\n"
            "Segue-Session: 01990000-0000-7000-8000-000000000001\nSegue-Turn: 2\n");
  assert_null(asked(&p, "make", 2));
}

/* The session stops where its own cannot be made; a child fails in its group alone. */
TEST(git_may_fail) {
  static const struct {
    const char *workflow;
    enum session_status status;
    const char *reason;
  } cases[] = {{one, SESSION_STOPPED, "workspace"}, {children, SESSION_STOPPED, "workspace"}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(play_deinit) struct play p;
    play_init(&p, "git", cases[i].workflow, NULL, children_script);
    p.git_fails = true;
    play_to_end(&p);
    assert_int_equal(p.core.status, cases[i].status);
    assert_string_equal(buf_c(&p.core.stop_reason), cases[i].reason);
    assert_string_equal(buf_c(&p.core.stop_message), "git would not");
    assert_int_equal(play_count(&p, "call_start"), 0);
  }
}

TEST(a_child_fails_without_its_worktree) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "child", children, NULL, children_script);
  p.git_fails = true;
  p.worktree_asks = 2; /* the session's is the third, its child's the fourth: that one fails */
  play_to_end(&p);
  size_t failed = 0;
  for (size_t i = 0; i < play_lines(&p); i++)
    failed += str_eq_c(data_get(play_record(&p, i), "message"), "git would not") &&
              json_integer_value(json_object_get(play_record(&p, i), "turn")) == 2;
  assert_true(failed > 0);
  assert_int_not_equal(p.core.status, SESSION_RUNNING);
}

/* Killed while git works: the log says what was asked for, and it is asked for again. */
TEST(what_git_was_asked_is_asked_again) {
  struct play p;
  for (size_t cut = 2;; cut++) {
    play_init(&p, "crash", children, NULL, children_script);
    play_start(&p);
    while (play_lines(&p) < cut && p.pending_count > 0)
      play_step(&p);
    bool over = p.pending_count == 0;
    if (!over) {
      play_crash(&p, 0);
      play_send_and_run(&p, EVENT_RESUME, NULL, NULL);
    }
    assert_int_equal(p.core.outcome, END_COMPLETE);
    assert_int_equal(core_worktree(&p.core, 0)->asked, WORKTREE_IDLE);
    assert_null(asked(&p, "make", 2));
    play_deinit(&p);
    if (over)
      break;
  }
}

/* A late answer of git, to nobody's question, changes nothing. */
TEST(an_answer_to_nothing_is_passed_over) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "late", one, NULL, one_script);
  size_t n = play_lines(&p);
  for (long turn = 0; turn < 3; turn++) {
    struct event ev = play_event(&p, EVENT_WORKTREE);
    ev.call = turn;
    ev.message = "late";
    play_decide(&p, &ev);
    play_commit(&p);
  }
  assert_int_equal(play_lines(&p), n);
}

TEST(what_cannot_follow_is_refused) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "log", children, NULL, children_script);
  DATA_ROWS("core/worktree/what_cannot_follow_is_refused.yaml", c, event, k, changes, error) {
    const json_t *good = asked(&p, c.event, (int)data_number(c.k));
    play_refuses(&p, (size_t)json_integer_value(json_object_get(good, "seq")) - 1, c.changes,
                 c.error);
  }
}

TEST_GROUP(NULL, play_over)
