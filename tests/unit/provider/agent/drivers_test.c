/* Drivers that speak back, with a scripted peer: which bytes they send for which they get, what
 * they tell, and what comes of the call. */

#include "base/limits.h"
#include "base/log.h"
#include "support/data.h"
#include "support/driver_bed.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

struct peer {
  struct driver_bed bed;
  struct buf sent; /* what the driver wrote since it was last looked at */
  bool closed, answered, deaf;
};

static void on_news(void *ctx, const struct provider_news *news) {
  driver_bed_news(&((struct peer *)ctx)->bed, news);
}
static bool on_write(void *ctx, struct str bytes) {
  struct peer *p = ctx;
  if (p->closed || p->deaf)
    return false;
  buf_str(&p->sent, bytes);
  return true;
}
static void on_close(void *ctx) {
  ((struct peer *)ctx)->closed = true;
}
static void on_answered(void *ctx) {
  ((struct peer *)ctx)->answered = true;
}

static int setup(void **state) {
  struct peer *p = calloc(1, sizeof *p);
  driver_bed_init(&p->bed);
  *state = p;
  return 0;
}

static int teardown(void **state) {
  struct peer *p = *state;
  driver_bed_deinit(&p->bed);
  buf_deinit(&p->sent);
  free(p);
  return 0;
}

static void begin(struct peer *p, const char *profile, enum transport transport) {
  const struct driver_host host = {.news = on_news,
                                   .write = on_write,
                                   .close_stdin = on_close,
                                   .answered = on_answered,
                                   .ctx = p};
  driver_bed_open(&p->bed, profile, transport, &host);
  assert_true(p->bed.ops->keeps_stdin);
}

static void say(struct peer *p, const char *line) {
  buf_auto_t text = {0};
  data_quoted(&text, line);
  buf_putc(&text, '\n');
  driver_bed_print(&p->bed, buf_c(&text));
}

static void wrote(struct peer *p, const char *lines) {
  driver_bed_wrote(&p->sent, lines);
}

static bool told(const struct peer *p, const char *part) {
  return driver_bed_told(&p->bed, part);
}

static void finish(struct peer *p, int exit_code) {
  const struct process_result process = {
      .why = PROCESS_END_EXITED, .started = true, .exit_code = exit_code};
  p->bed.ops->end(p->bed.driver, &process, &p->bed.result);
}

/* --- ACP --- */

#define INITIALIZED                                                                                \
  "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':1,'authMethods':[{'id':'gemini-api-key'}]," \
  "'agentCapabilities':{'loadSession':true}}}"
#define MODES                                                                                      \
  "'modes':{'currentModeId':'default','availableModes':[{'id':'default'},{'id':'autoEdit'}]}"

static void acp_open_session(struct peer *p) {
  begin(p, "gemini", TRANSPORT_ACP);
  assert_non_null(
      strstr(buf_c(&p->sent), "\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"));
  buf_clear(&p->sent);
  say(p, INITIALIZED);
  wrote(p,
        "{'jsonrpc':'2.0','id':2,'method':'session/new','params':{'cwd':'/w','mcpServers':[]}}\n");
  say(p, "{'jsonrpc':'2.0','id':2,'result':{'sessionId':'s-1'," MODES "}}");
  wrote(p, "{'jsonrpc':'2.0','id':3,'method':'session/set_mode','params':{'sessionId':'s-1',"
           "'modeId':'autoEdit'}}\n");
  say(p, "{'jsonrpc':'2.0','id':3,'result':{}}");
  wrote(p, "{'jsonrpc':'2.0','id':4,'method':'session/prompt','params':{'sessionId':'s-1',"
           "'prompt':[{'type':'text','text':'Do \\'it\\'.\\n'}]}}\n");
}

TEST_ON(struct peer *p, setup, teardown, acp_answers) {
  acp_open_session(p);
  say(p, "no JSON at all");
  say(p, "{'jsonrpc':'2.0','method':'_other/thing','params':{}}");
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-2','update':"
         "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'of another'}}}}");
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
         "{'sessionUpdate':'agent_thought_chunk','content':{'type':'text','text':'hm'}}}}");
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
         "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'Do'}}}}");
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
         "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'ne.'}}}}");
  say(p, "{'jsonrpc':'2.0','id':7,'method':'fs/read_text_file','params':{'path':'/etc/passwd'}}");
  wrote(p, "{'jsonrpc':'2.0','id':7,'error':{'code':-32601,'message':'not supported'}}\n");
  assert_false(p->closed);
  say(p, "{'jsonrpc':'2.0','id':4,'result':{'stopReason':'end_turn','usage':{'inputTokens':10,"
         "'outputTokens':2,'cachedReadTokens':5,'totalTokens':17}}}");
  assert_true(p->closed && p->answered);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
  assert_string_equal(p->bed.result.provider_session, "s-1");
  assert_true(told(p, "{'event':'thinking','text':'hm'}"));
  assert_false(told(p, "of another"));
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "input")), 15);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "cached")), 5);
}

/* By the protocol a cost is the session's. Agents that tell that of the call show it by tokens. */
TEST(acp_costs_are_the_sessions) {
  static const struct {
    const char *what, *before, *currency, *amount, *usage;
    double cost; /* below 0: none */
    const char *of;
  } cases[] = {
      {"a new session", NULL, "USD", "0.5", "'inputTokens':10,'outputTokens':2", 0.5, "call"},
      {"other money", NULL, "EUR", "0.5", "'inputTokens':10,'outputTokens':2", -1, NULL},
      {"nothing", NULL, "USD", "0", "'inputTokens':10,'outputTokens':2", -1, NULL},
      {"no price", NULL, "USD", "null", "'inputTokens':10,'outputTokens':2", -1, NULL},
      {"without tokens", NULL, "USD", "0.5", "", 0.5, "call"},
      {"the sum", "{'input':10,'output':2,'cost_usd':0.5}", "USD", "1.25",
       "'inputTokens':10,'outputTokens':2", 0.75, "conversation"},
      {"the call's", "{'input':10,'output':2,'cost_usd':0.5}", "USD", "0.6",
       "'inputTokens':10,'outputTokens':2", 0.6, "call"},
      {"the sum without tokens", "{'cost_usd':0.5}", "USD", "1.25", "", 0.75, "conversation"}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    void *fresh = NULL;
    char text[500];
    assert_int_equal(setup(&fresh), 0);
    struct peer *p = fresh;
    json_auto_t *before = cases[i].before ? data_json(cases[i].before) : NULL;
    p->bed.request.conversation = before;
    p->bed.call.session = before ? "s-1" : "";
    begin(p, "gemini", TRANSPORT_ACP);
    say(p, INITIALIZED);
    say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
           "{'sessionUpdate':'usage_update','cost':{'amount':9,'currency':'USD'}}}}");
    say(p, "{'jsonrpc':'2.0','id':2,'result':{'sessionId':'s-1'," MODES "}}");
    say(p, "{'jsonrpc':'2.0','id':3,'result':{}}");
    print_into(text, sizeof text,
               "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
               "{'sessionUpdate':'usage_update','used':5,'size':9,'cost':{'amount':%s,"
               "'currency':'%s'}}}}",
               cases[i].amount, cases[i].currency);
    say(p, text);
    say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
           "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'Done.'}}}}");
    print_into(text, sizeof text,
               "{'jsonrpc':'2.0','id':4,'result':{'stopReason':'end_turn','usage':{%s}}}",
               cases[i].usage);
    say(p, text);
    finish(p, 0);
    const json_t *usage = p->bed.result.usage, *cost = json_object_get(usage, "cost_usd");
    const char *of = json_string_value(json_object_get(usage, "cost_of"));
    double usd = json_is_number(cost) ? json_number_value(cost) : -1;
    if (usd < cases[i].cost - 1e-9 || usd > cases[i].cost + 1e-9)
      fail_msg("%s: %f", cases[i].what, usd);
    if ((of == NULL) != (cases[i].of == NULL) || (of != NULL && strcmp(of, cases[i].of) != 0))
      fail_msg("%s: of %s", cases[i].what, of ? of : "nothing");
    (void)teardown(&fresh);
  }
}

TEST_ON(struct peer *p, setup, teardown, acp_words_say_more_than_500) {
  acp_open_session(p);
  say(p, "{'jsonrpc':'2.0','id':4,'error':{'code':500,'message':'mock NOT_FOUND'}}");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NOT_FOUND);
}

TEST_ON(struct peer *p, setup, teardown, acp_500_without_a_reason) {
  acp_open_session(p);
  say(p, "{'jsonrpc':'2.0','id':4,'error':{'code':500,'message':'it broke'}}");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_OVERLOADED);
}

TEST_ON(struct peer *p, setup, teardown, acp_logs_in_when_it_must) {
  begin(p, "gemini", TRANSPORT_ACP);
  say(p, INITIALIZED);
  buf_clear(&p->sent);
  say(p, "{'jsonrpc':'2.0','id':2,'error':{'code':-32000,'message':'Authentication required'}}");
  wrote(
      p,
      "{'jsonrpc':'2.0','id':3,'method':'authenticate','params':{'methodId':'gemini-api-key'}}\n");
  say(p, "{'jsonrpc':'2.0','id':3,'result':{}}");
  wrote(p,
        "{'jsonrpc':'2.0','id':4,'method':'session/new','params':{'cwd':'/w','mcpServers':[]}}\n");
  say(p, "{'jsonrpc':'2.0','id':4,'error':{'code':-32000,'message':'Authentication required'}}");
  wrote(p, ""); /* once is enough */
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_AUTH);
}

TEST_ON(struct peer *p, setup, teardown, acp_another_version) {
  begin(p, "acp", TRANSPORT_ACP);
  say(p, "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':2}}");
  assert_true(p->closed);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_PROTOCOL);
  assert_non_null(strstr(p->bed.result.message, "version 2"));
}

TEST_ON(struct peer *p, setup, teardown, acp_goes_on_with_a_conversation) {
  p->bed.call.session = "old";
  begin(p, "acp", TRANSPORT_ACP);
  buf_clear(&p->sent);
  say(p, INITIALIZED);
  wrote(p, "{'jsonrpc':'2.0','id':2,'method':'session/load','params':{'cwd':'/w','mcpServers':[],"
           "'sessionId':'old'}}\n");
  say(p,
      "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'old','update':"
      "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'[X:1] history'}}}}");
  say(p, "{'jsonrpc':'2.0','id':2,'result':null}");
  assert_non_null(strstr(buf_c(&p->sent), "session/prompt"));
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'old','update':"
         "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'new'}}}}");
  say(p, "{'jsonrpc':'2.0','id':3,'result':{'stopReason':'end_turn'}}");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "new");
  assert_string_equal(p->bed.result.provider_session, "old");
  assert_false(told(p, "history"));
}

TEST_ON(struct peer *p, setup, teardown, acp_a_conversation_that_is_gone) {
  p->bed.call.session = "old";
  begin(p, "acp", TRANSPORT_ACP);
  say(p, INITIALIZED);
  say(p, "{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':'Internal error'}}");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NOT_FOUND);
}

TEST_ON(struct peer *p, setup, teardown, acp_cannot_go_on) {
  p->bed.call.session = "old";
  begin(p, "acp", TRANSPORT_ACP);
  say(p, "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':1}}");
  assert_true(p->closed);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NOT_FOUND);
}

TEST_ON(struct peer *p, setup, teardown, acp_a_mode_that_is_missing_is_no_other_mode) {
  begin(p, "codex", TRANSPORT_ACP);
  say(p, INITIALIZED);
  buf_clear(&p->sent);
  say(p, "{'jsonrpc':'2.0','id':2,'result':{'sessionId':'s-1'," MODES "}}");
  wrote(p, "");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_BAD_REQUEST);
  assert_non_null(strstr(p->bed.result.message, "workspace-write"));
}

TEST_ON(struct peer *p, setup, teardown, acp_models) {
  p->bed.request.model = STR("m-2");
  begin(p, "acp", TRANSPORT_ACP);
  say(p, INITIALIZED);
  buf_clear(&p->sent);
  say(p, "{'jsonrpc':'2.0','id':2,'result':{'sessionId':'s-1','configOptions':[{'id':'mo',"
         "'category':'model','options':[{'value':'m-1'},{'value':'m-2'}]}]}}");
  wrote(p, "{'jsonrpc':'2.0','id':3,'method':'session/set_config_option','params':{'sessionId':"
           "'s-1','configId':'mo','value':'m-2'}}\n");
  say(p, "{'jsonrpc':'2.0','id':3,'result':{}}");
  assert_non_null(strstr(buf_c(&p->sent), "session/prompt"));
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_PROTOCOL); /* it left without an answer */
}

TEST_ON(struct peer *p, setup, teardown, acp_a_model_that_is_not_offered) {
  p->bed.request.model = STR("m-3");
  begin(p, "acp", TRANSPORT_ACP);
  say(p, INITIALIZED);
  buf_clear(&p->sent);
  say(p, "{'jsonrpc':'2.0','id':2,'result':{'sessionId':'s-1','models':{'availableModels':"
         "[{'modelId':'m-1'}]}}}");
  wrote(p, "");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NOT_FOUND);
}

#define OPTIONS                                                                                    \
  "'options':[{'optionId':'always','kind':'allow_always'},{'optionId':'once','kind':"              \
  "'allow_once'},{'optionId':'no','kind':'reject_once'}]"

TEST_ON(struct peer *p, setup, teardown, acp_questions_are_answered_by_policy) {
  acp_open_session(p);
  say(p, "{'jsonrpc':'2.0','id':'q1','method':'session/request_permission','params':{'sessionId':"
         "'s-1','toolCall':{'toolCallId':'c','kind':'execute','title':'rm -rf /'}," OPTIONS "}}");
  wrote(p, "{'jsonrpc':'2.0','id':'q1','result':{'outcome':{'outcome':'selected','optionId':"
           "'no'}}}\n");
  assert_true(told(p, "'answer':'denied'"));
  assert_true(told(p, "'message':'rm -rf /: "));
  say(p, "{'jsonrpc':'2.0','id':0,'method':'session/request_permission','params':{'sessionId':"
         "'s-1','toolCall':{'toolCallId':'c','kind':'edit','content':[{'type':'diff','path':"
         "'/w/a.c'}]}," OPTIONS "}}");
  wrote(p, "{'jsonrpc':'2.0','id':0,'result':{'outcome':{'outcome':'selected','optionId':"
           "'once'}}}\n");
  assert_true(told(p, "'answer':'allowed'"));
  say(p, "{'jsonrpc':'2.0','id':1,'method':'session/request_permission','params':{'toolCall':"
         "{'kind':'edit','locations':[{'path':'/w/a.c'},{'path':'/etc/x'}]}," OPTIONS "}}");
  wrote(p, "{'jsonrpc':'2.0','id':1,'result':{'outcome':{'outcome':'selected','optionId':"
           "'no'}}}\n");
  /* only for ever: too much for a step that may edit */
  say(p, "{'jsonrpc':'2.0','id':2,'method':'session/request_permission','params':{'toolCall':"
         "{'kind':'edit','locations':[{'path':'/w/a.c'}]},'options':[{'optionId':'always','kind':"
         "'allow_always'}]}}");
  wrote(p, "{'jsonrpc':'2.0','id':2,'result':{'outcome':{'outcome':'cancelled'}}}\n");
  say(p, "{'jsonrpc':'2.0','id':3,'method':'session/request_permission','params':{}}");
  wrote(p, "{'jsonrpc':'2.0','id':3,'result':{'outcome':{'outcome':'cancelled'}}}\n");
  finish(p, 0);
}

#define ABLE                                                                                       \
  "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':1,'agentCapabilities':{'loadSession':true," \
  "'sessionCapabilities':{'resume':{},'close':{},'fork':{}}}}}"

/* Resumed rather than loaded, which would tell the history again, and closed at the end. */
TEST_ON(struct peer *p, setup, teardown, acp_resumes_and_closes) {
  p->bed.call.session = "old";
  begin(p, "acp", TRANSPORT_ACP);
  buf_clear(&p->sent);
  say(p, ABLE);
  wrote(p, "{'jsonrpc':'2.0','id':2,'method':'session/resume','params':{'cwd':'/w','mcpServers':[],"
           "'sessionId':'old'}}\n");
  say(p, "{'jsonrpc':'2.0','id':2,'result':{}}");
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'old','update':"
         "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'new'}}}}");
  buf_clear(&p->sent);
  say(p, "{'jsonrpc':'2.0','id':3,'result':{'stopReason':'end_turn'}}");
  wrote(p, "{'jsonrpc':'2.0','id':4,'method':'session/close','params':{'sessionId':'old'}}\n");
  assert_true(p->closed);
  say(p, "{'jsonrpc':'2.0','id':4,'error':{'code':-32603,'message':'unauthorized'}}");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "new");
}

TEST_ON(struct peer *p, setup, teardown, acp_goes_on_with_a_copy) {
  p->bed.call.session = "old";
  p->bed.request.forks = true;
  begin(p, "acp", TRANSPORT_ACP);
  buf_clear(&p->sent);
  say(p, ABLE);
  wrote(p, "{'jsonrpc':'2.0','id':2,'method':'session/fork','params':{'cwd':'/w','mcpServers':[],"
           "'sessionId':'old'}}\n");
  say(p, "{'jsonrpc':'2.0','id':2,'result':{'sessionId':'copy'}}");
  assert_non_null(strstr(buf_c(&p->sent), "\"sessionId\":\"copy\""));
  say(p, "{'jsonrpc':'2.0','id':3,'result':{'stopReason':'end_turn'}}");
  finish(p, 0);
  assert_string_equal(p->bed.result.provider_session, "copy");
}

TEST_ON(struct peer *p, setup, teardown, acp_no_copy_is_no_conversation) {
  p->bed.call.session = "old";
  p->bed.request.forks = true;
  begin(p, "acp", TRANSPORT_ACP);
  say(p, INITIALIZED);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NOT_FOUND);
}

#define TOOL(members)                                                                              \
  "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':" members "}}"

/* A tool is called what its kind is, since titles are sentences; a word that is no kind stays. */
TEST_ON(struct peer *p, setup, teardown, acp_tools_are_called_by_their_kind) {
  acp_open_session(p);
  say(p, TOOL("{'sessionUpdate':'tool_call','toolCallId':'a','kind':'edit','title':'Writing to "
              "out.txt','rawInput':{'path':'out.txt'}}"));
  assert_true(told(p, "{'event':'tool','name':'edit','id':'a','state':'start','argument':"));
  say(p, TOOL("{'sessionUpdate':'tool_call_update','toolCallId':'a','title':'Wrote it','status':"
              "'completed'}"));
  assert_true(told(p, "{'event':'tool','name':'edit','id':'a','state':'end','failed':false}"));
  say(p, TOOL("{'sessionUpdate':'tool_call','toolCallId':'b','kind':'other','title':'mcp__x__y'}"));
  assert_true(told(p, "'name':'mcp__x__y'"));
  say(p, TOOL("{'sessionUpdate':'tool_call','toolCallId':'c','kind':'other','title':'It does.'}"));
  assert_true(told(p, "{'event':'tool','name':'other','id':'c'"));
  finish(p, 0);
}

/* A question tells only what is new of its tool: what it would do was told before. */
TEST_ON(struct peer *p, setup, teardown, acp_questions_are_about_a_known_tool) {
  static const struct {
    const char *tool, *option;
  } cases[] = {
      {"'content':[{'type':'content','content':{'type':'text','text':'{\\\"path\\\":"
       "\\\"/w/a.c\\\"}'}}]",
       "once"},
      {"'rawInput':{'path':'/w/a.c'}", "once"},
      {"'locations':[{'path':'/etc/x'}]", "no"},
      {"'title':'Write'", "no"},
  };
  acp_open_session(p);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t line =
        buf_of(TOOL("{'sessionUpdate':'tool_call','toolCallId':'t%zu','kind':'edit',%s}"), i,
               cases[i].tool);
    say(p, buf_c(&line));
    buf_clear(&p->sent);
    buf_auto_t asked =
        buf_of("{'jsonrpc':'2.0','id':0,'method':'session/request_permission','params':"
               "{'toolCall':{'toolCallId':'t%zu','title':'May I?'}," OPTIONS "}}",
               i);
    say(p, buf_c(&asked));
    buf_auto_t answer = buf_of("{'jsonrpc':'2.0','id':0,'result':{'outcome':{'outcome':'selected',"
                               "'optionId':'%s'}}}\n",
                               cases[i].option);
    wrote(p, buf_c(&answer));
  }
  finish(p, 0);
}

TEST_WITH(setup, teardown, acp_programs_that_are_named_may_run) {
  static const struct {
    const char *call, *option;
  } rows[] = {
      {"'rawInput':{'command':'make test'},'title':'Run it'", "once"},
      {"'rawInput':{'command':'make; rm x'},'title':'make'", "no"},
      {"'title':'make test'", "once"}, /* gemini's title is the command line */
      {"'title':'make && rm x'", "no"},
      {"'title':'rm x'", "no"},
  };
  json_auto_t *run = json_pack("[s]", "make");
  struct peer *p = *state;
  p->bed.request.run = run;
  acp_open_session(p);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char line[500];
    print_into(line, sizeof line,
               "{'jsonrpc':'2.0','id':'q','method':'session/request_permission','params':{"
               "'toolCall':{'kind':'execute',%s}," OPTIONS "}}",
               rows[i].call);
    buf_clear(&p->sent);
    say(p, line);
    if (strstr(buf_c(&p->sent), rows[i].option) == NULL)
      fail_msg("%s: %s", rows[i].call, buf_c(&p->sent));
  }
  p->bed.request.run = NULL;
  finish(p, 0);
}

/* Some agents end their turn at a no: the model is told, and the work goes on. */
TEST_ON(struct peer *p, setup, teardown, acp_a_no_does_not_end_the_work) {
  acp_open_session(p);
  say(p, "{'jsonrpc':'2.0','id':'q1','method':'session/request_permission','params':{'sessionId':"
         "'s-1','toolCall':{'toolCallId':'c','kind':'execute','title':'rm x'}," OPTIONS "}}");
  buf_clear(&p->sent);
  say(p, "{'jsonrpc':'2.0','id':4,'result':{'stopReason':'cancelled','usage':{'inputTokens':10,"
         "'outputTokens':2}}}");
  wrote(p, "{'jsonrpc':'2.0','id':5,'method':'session/prompt','params':{'sessionId':'s-1',"
           "'prompt':[{'type':'text','text':'That was not allowed, and was not done: rm x: this "
           "step may change files, not run programs. Go on without it.'}]}}\n");
  assert_true(told(p, "'text':'That was not allowed"));
  assert_false(p->closed);
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
         "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'Done.'}}}}");
  say(p, "{'jsonrpc':'2.0','id':5,'result':{'stopReason':'end_turn','usage':{'inputTokens':20,"
         "'outputTokens':3}}}");
  assert_true(p->closed);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "input")), 20);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "output")), 3);
}

/* An agent that asks for the same for ever is not told for ever. */
TEST_ON(struct peer *p, setup, teardown, acp_a_no_is_told_so_often_only) {
  acp_open_session(p);
  for (int i = 0; i <= (int)LIMIT_ACP_GO_ONS; i++) {
    char line[128];
    assert_false(p->closed);
    say(p, "{'jsonrpc':'2.0','id':'q','method':'session/request_permission','params':{'sessionId':"
           "'s-1','toolCall':{'toolCallId':'c','kind':'execute','title':'rm x'}," OPTIONS "}}");
    print_into(line, sizeof line, "{'jsonrpc':'2.0','id':%d,'result':{'stopReason':'end_turn'}}",
               4 + i);
    say(p, line);
  }
  assert_true(p->closed);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_REFUSED);
}

TEST_ON(struct peer *p, setup, teardown, acp_is_cancelled) {
  begin(p, "gemini", TRANSPORT_ACP);
  assert_false(p->bed.ops->interrupt(p->bed.driver)); /* nothing to be cancelled yet */
  p->bed.ops->close(p->bed.driver);
  buf_clear(&p->sent);
  acp_open_session(p);
  assert_true(p->bed.ops->interrupt(p->bed.driver));
  wrote(p, "{'jsonrpc':'2.0','method':'session/cancel','params':{'sessionId':'s-1'}}\n");
  say(p, "{'jsonrpc':'2.0','id':4,'result':{'stopReason':'cancelled'}}");
  assert_true(p->closed);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_CANCELLED);
}

TEST_WITH(setup, teardown, acp_reasons_to_stop) {
  static const struct {
    const char *reason;
    enum error_class class;
  } rows[] = {{"end_turn", CLASS_PROTOCOL}, /* for it said nothing */
              {"max_tokens", CLASS_LENGTH},   {"max_turn_requests", CLASS_LENGTH},
              {"refusal", CLASS_REFUSED},     {"length", CLASS_LENGTH},
              {"out_of_luck", CLASS_PROTOCOL}};
  struct peer *p = *state;
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char line[128];
    p->closed = false;
    if (i > 0)
      p->bed.ops->close(p->bed.driver);
    buf_clear(&p->sent);
    acp_open_session(p);
    snprintf(line, sizeof line, "{'jsonrpc':'2.0','id':4,'result':{'stopReason':'%s'}}",
             rows[i].reason);
    say(p, line);
    call_result_deinit(&p->bed.result);
    p->bed.result = (struct call_result){0};
    finish(p, 0);
    assert_int_equal(p->bed.result.class, rows[i].class);
  }
}

TEST_WITH(setup, teardown, acp_errors_have_classes) {
  static const struct {
    const char *error;
    enum error_class class;
  } rows[] = {
      {"{'code':-32000,'message':'Authentication required'}", CLASS_AUTH},
      {"{'code':-32603,'message':'x','data':{'errorKind':'rate_limit'}}", CLASS_RATE_LIMIT},
      {"{'code':-32603,'message':'x','data':{'details':'Error 529 Overloaded'}}", CLASS_OVERLOADED},
      {"{'code':429,'message':'x'}", CLASS_RATE_LIMIT},
      {"{'code':500,'message':'x'}", CLASS_OVERLOADED},
      {"{'code':-32603,'message':'Internal error: fetch failed'}", CLASS_NETWORK},
      {"{'code':-32002,'message':'Resource not found'}", CLASS_NOT_FOUND},
      {"{'code':-32603,'message':'boom'}", CLASS_CRASHED},
      {"{}", CLASS_CRASHED},
  };
  struct peer *p = *state;
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char line[256];
    p->closed = false;
    if (i > 0)
      p->bed.ops->close(p->bed.driver);
    buf_clear(&p->sent);
    acp_open_session(p);
    snprintf(line, sizeof line, "{'jsonrpc':'2.0','id':4,'error':%s}", rows[i].error);
    say(p, line);
    call_result_deinit(&p->bed.result);
    p->bed.result = (struct call_result){0};
    finish(p, 0);
    if (p->bed.result.class != rows[i].class)
      fail_msg("%s: %s", rows[i].error, error_class_name(p->bed.result.class));
    assert_true(p->bed.result.message[0] != '\0');
  }
}

TEST_ON(struct peer *p, setup, teardown, acp_words_of_the_client) {
  begin(p, "copilot", TRANSPORT_ACP);
  say(p, INITIALIZED);
  say(p, "{'jsonrpc':'2.0','id':2,'result':{'sessionId':'s-1'}}");
  say(p, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':"
         "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'Error: it is "
         "(HTTP 401).'}}}}");
  say(p, "{'jsonrpc':'2.0','id':3,'result':{'stopReason':'end_turn'}}");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_AUTH);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "");
}

TEST_ON(struct peer *p, setup, teardown, acp_nobody_reads) {
  p->deaf = true;
  begin(p, "acp", TRANSPORT_ACP);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_PROTOCOL);
}

/* --- claude --- */

TEST_ON(struct peer *p, setup, teardown, claude_asks_and_answers) {
  begin(p, "claude", TRANSPORT_NATIVE);
  wrote(p, "{'type':'control_request','request_id':'segue-1','request':{'subtype':'initialize'}}\n"
           "{'type':'user','message':{'role':'user','content':[{'type':'text','text':"
           "'Do \\'it\\'.\\n'}]}}\n");
  say(p, "{'type':'control_response','response':{'subtype':'success','request_id':'segue-1'}}");
  say(p, "{'type':'system','subtype':'init','session_id':'s-1'}");
  say(p, "{'type':'control_request','request_id':'r1','request':{'subtype':'can_use_tool',"
         "'tool_name':'Bash','input':{'command':'make'}}}");
  assert_non_null(strstr(buf_c(&p->sent), "\"request_id\":\"r1\""));
  assert_non_null(strstr(buf_c(&p->sent), "\"behavior\":\"deny\",\"message\":\""));
  assert_true(told(p, "'tool':'Bash','answer':'denied'"));
  buf_clear(&p->sent);
  say(p, "{'type':'control_request','request_id':'r2','request':{'subtype':'can_use_tool',"
         "'tool_name':'Write','input':{'file_path':'/w/a','content':'x'}}}");
  wrote(p, "{'type':'control_response','response':{'subtype':'success','request_id':'r2',"
           "'response':{'behavior':'allow','updatedInput':{'file_path':'/w/a','content':'x'}}}}\n");
  say(p, "{'type':'control_request','request_id':'r3','request':{'subtype':'hook_callback'}}");
  wrote(p, "{'type':'control_response','response':{'subtype':'error','request_id':'r3','error':"
           "'not supported'}}\n");
  assert_false(p->closed);
  say(p, "{'type':'result','subtype':'success','is_error':false,'result':'Done.','session_id':"
         "'s-1'}");
  assert_true(p->closed && p->answered);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
}

TEST_ON(struct peer *p, setup, teardown, claude_nobody_answers_for_a_person) {
  p->bed.call.permission = PERMISSION_FULL;
  begin(p, "claude", TRANSPORT_NATIVE);
  say(p, "{'type':'control_request','request_id':'r1','request':{'subtype':'can_use_tool',"
         "'tool_name':'AskUserQuestion','input':{}}}");
  assert_true(told(p, "'answer':'denied'"));
  say(p, "{'type':'control_request','request_id':'r2','request':{'subtype':'can_use_tool',"
         "'tool_name':'Bash','input':{'command':'make'}}}");
  assert_true(told(p, "'answer':'allowed'"));
  finish(p, 1);
  assert_int_equal(p->bed.result.class, CLASS_CRASHED);
}

TEST_ON(struct peer *p, setup, teardown, claude_is_interrupted) {
  begin(p, "claude", TRANSPORT_NATIVE);
  buf_clear(&p->sent);
  assert_true(p->bed.ops->interrupt(p->bed.driver));
  wrote(p, "{'type':'control_request','request_id':'segue-2','request':{'subtype':'interrupt'}}\n");
  say(p, "{'type':'result','subtype':'error_during_execution','is_error':true,'terminal_reason':"
         "'aborted_streaming'}");
  assert_true(p->closed);
  finish(p, 1);
  assert_int_equal(p->bed.result.class, CLASS_CANCELLED);
  assert_false(p->bed.ops->interrupt(p->bed.driver));
}

/* It reads what a person says between two tools, or begins another turn with it. */
TEST_ON(struct peer *p, setup, teardown, claude_is_told) {
  begin(p, "claude", TRANSPORT_NATIVE);
  say(p, "{'type':'system','subtype':'init','session_id':'s-1'}");
  buf_clear(&p->sent);
  p->bed.ops->steer(p->bed.driver, 0x5037, STR("one"));
  p->bed.ops->steer(p->bed.driver, 56, STR("two"));
#define MESSAGE(id, text)                                                                          \
  "{'type':'user','uuid':'00000000-" id "-8000-000000000000','message':{'role':'user',"            \
  "'content':[{'type':'text','text':'" text "'}]}}"
  wrote(p, MESSAGE("0005-4037", "one") "\n" MESSAGE("0000-4038", "two") "\n");
  say(p, "{'type':'user','isReplay':true,'uuid':'ab000000-0005-4037-8000-000000000000'}");
  assert_false(told(p, "'said'"));
  say(p, "{'type':'user','isReplay':true,'uuid':'00000000-0005-4037-8000-000000000000'}");
  assert_true(told(p, "'said':20535"));
  say(p, "{'type':'result','is_error':false,'result':'First.','usage':{'output_tokens':3}}");
  assert_false(p->closed || p->answered); /* the other one was not read */
  say(p, "{'type':'system','subtype':'init','session_id':'s-1'}");
  say(p, "{'type':'user','isReplay':true,'uuid':'00000000-0000-4038-8000-000000000000'}");
  assert_true(told(p, "'said':56"));
  assert_false(p->closed || p->answered);
  say(p, "{'type':'result','is_error':false,'result':'Second.','usage':{'output_tokens':4}}");
  assert_true(p->closed && p->answered);
  p->bed.ops->steer(p->bed.driver, 57, STR("late"));
  assert_int_equal(p->sent.n, 0);
  finish(p, 0);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Second.");
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "output")), 7);
}

TEST_ON(struct peer *p, setup, teardown, claude_fails_before_it_reads) {
  begin(p, "claude", TRANSPORT_NATIVE);
  p->bed.ops->steer(p->bed.driver, 56, STR("two"));
  say(p, "{'type':'result','is_error':true,'api_error_status':529,'result':'Overloaded'}");
  assert_true(p->closed && p->answered); /* it goes on with nothing: the next call has it */
  finish(p, 1);
  assert_int_equal(p->bed.result.class, CLASS_OVERLOADED);
}

/* --- codex --- */

static void codex_begin(struct peer *p) {
  begin(p, "codex", TRANSPORT_NATIVE);
  assert_true(strncmp(buf_c(&p->sent), "{\"id\":1,\"method\":\"initialize\"", 28) == 0);
  buf_clear(&p->sent);
  say(p, "{'id':1,'result':{}}");
}

static void codex_turn(struct peer *p) {
  codex_begin(p);
  wrote(p, "{'method':'initialized'}\n"
           "{'id':2,'method':'thread/start','params':{'cwd':'/w','approvalPolicy':'never',"
           "'sandbox':'workspace-write'}}\n");
  say(p, "{'id':2,'result':{'thread':{'id':'t-1'}}}");
}

TEST_ON(struct peer *p, setup, teardown, codex_answers) {
  json_auto_t *schema = json_pack("{s:s}", "type", "object");
  p->bed.call.schema = schema;
  codex_turn(p);
  wrote(p, "{'id':3,'method':'turn/start','params':{'threadId':'t-1','input':[{'type':'text',"
           "'text':'Do \\'it\\'.\\n'}],'outputSchema':{'type':'object'}}}\n");
  say(p, "{'id':3,'result':{'turn':{'id':'u-1'}}}");
  say(p, "{'method':'item/started','params':{'threadId':'t-1','item':{'type':'commandExecution',"
         "'id':'i'}}}");
  say(p, "{'method':'item/completed','params':{'threadId':'t-1','item':{'type':"
         "'commandExecution','id':'i','status':'failed'}}}");
  say(p, "{'method':'item/started','params':{'threadId':'t-1','item':{'type':'commandExecution',"
         "'id':'on','command':'make on'}}}");
  say(p, "{'method':'item/agentMessage/delta','params':{'threadId':'t-9','delta':'of another'}}");
  say(p, "{'method':'item/agentMessage/delta','params':{'threadId':'t-1','delta':'{\\'a\\'"
         ":'}}");
  say(p, "{'method':'item/completed','params':{'threadId':'t-1','item':{'type':'agentMessage',"
         "'id':'m','text':'{\\'a\\':1}'}}}");
  say(p, "{'method':'thread/tokenUsage/updated','params':{'threadId':'t-1','tokenUsage':{'total':"
         "{'inputTokens':11,'outputTokens':7,'cachedInputTokens':1},'last':{'inputTokens':11,"
         "'outputTokens':7,'cachedInputTokens':1}}}}");
  say(p, "{'method':'thread/tokenUsage/updated','params':{'threadId':'t-1','tokenUsage':{'total':"
         "{'inputTokens':21,'outputTokens':10,'cachedInputTokens':1},'last':{'inputTokens':10,"
         "'outputTokens':3,'cachedInputTokens':0}}}}");
  say(p, "{'method':'turn/completed','params':{'threadId':'t-1','turn':{'id':'u-1','status':"
         "'completed'}}}");
  assert_true(p->closed);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "{\"a\":1}");
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.structured, "a")), 1);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "input")), 21);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "output")), 10);
  assert_true(told(p, "{'event':'tool','name':'commandExecution','id':'i','state':'end','failed':"
                      "true}"));
  assert_true(told(p, "{'event':'text','text':'1}'}"));
  assert_false(told(p, "of another"));
  const json_t *left = p->bed.result.unfinished; /* of the two commands one ended */
  assert_int_equal(json_array_size(left), 1);
  assert_string_equal(json_string_value(json_array_get(left, 0)), "make on");
}

/* Any number may come. */
TEST_ON(struct peer *p, setup, teardown, codex_counts_that_cannot_be) {
  codex_turn(p);
  say(p, "{'id':3,'result':{'turn':{'id':'u-1'}}}");
  say(p, "{'method':'thread/tokenUsage/updated','params':{'threadId':'t-1','tokenUsage':{'total':"
         "{'inputTokens':9223372036854775807,'outputTokens':57},'last':{'inputTokens':"
         "-9223372036854775808,'outputTokens':7}}}}");
  say(p, "{'method':'turn/completed','params':{'threadId':'t-1','turn':{'id':'u-1','status':"
         "'completed'}}}");
  finish(p, 0);
  assert_null(json_object_get(p->bed.result.usage, "input"));
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "output")), 57);
}

static void codex_count(struct peer *p, int total, int last) {
  char text[400];
  print_into(text, sizeof text,
             "{'method':'thread/tokenUsage/updated','params':{'threadId':'t-0','tokenUsage':"
             "{'total':{'inputTokens':%d,'outputTokens':0},'last':{'inputTokens':%d,"
             "'outputTokens':0}}}}",
             total, last);
  say(p, text);
}

/* A thread that goes on: its earlier tokens are told first, or in our log, or in neither. */
TEST(codex_counts_its_own_turn) {
  static const struct { int told, logged; } cases[] = {{2022, 0}, {0, 2022}, {2022, 2022}, {0, 0}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    void *fresh = NULL;
    assert_int_equal(setup(&fresh), 0);
    struct peer *p = fresh;
    json_auto_t *before = json_pack("{s:i, s:i}", "input", cases[i].logged, "output", 0);
    p->bed.request.conversation = cases[i].logged ? before : NULL;
    p->bed.call.session = "t-0";
    codex_begin(p);
    say(p, "{'id':2,'result':{'thread':{'id':'t-0'}}}");
    if (cases[i].told)
      codex_count(p, cases[i].told, 1011);
    say(p, "{'id':3,'result':{'turn':{'id':'u-1'}}}");
    codex_count(p, 3033, 1011);
    codex_count(p, 4044, 1011);
    say(p, "{'method':'turn/completed','params':{'threadId':'t-0','turn':{'id':'u-1','status':"
           "'completed'}}}");
    finish(p, 0);
    assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "input")), 2022);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(p->bed.result.usage, "total"), "input")),
        4044);
    (void)teardown(&fresh);
  }
}

TEST_WITH(setup, teardown, codex_errors_have_classes) {
  static const struct {
    const char *info;
    enum error_class class;
  } rows[] = {
      {"'unauthorized'", CLASS_AUTH},
      {"{'responseTooManyFailedAttempts':{'httpStatusCode':429}}", CLASS_RATE_LIMIT},
      {"{'responseTooManyFailedAttempts':{'httpStatusCode':503}}", CLASS_OVERLOADED},
      {"{'responseStreamDisconnected':{'httpStatusCode':null}}", CLASS_NETWORK},
      {"{'httpConnectionFailed':{'httpStatusCode':401}}", CLASS_AUTH},
      {"'contextWindowExceeded'", CLASS_BAD_REQUEST},
      {"'serverOverloaded'", CLASS_OVERLOADED},
      {"null", CLASS_CRASHED},
  };
  struct peer *p = *state;
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char line[400];
    p->closed = false;
    if (i > 0)
      p->bed.ops->close(p->bed.driver);
    buf_clear(&p->sent);
    codex_turn(p);
    snprintf(line, sizeof line,
             "{'method':'turn/completed','params':{'threadId':'t-1','turn':{'status':'failed',"
             "'error':{'message':'boom','codexErrorInfo':%s}}}}",
             rows[i].info);
    say(p, line);
    call_result_deinit(&p->bed.result);
    p->bed.result = (struct call_result){0};
    finish(p, 0);
    if (p->bed.result.class != rows[i].class)
      fail_msg("%s: %s", rows[i].info, error_class_name(p->bed.result.class));
  }
}

TEST_ON(struct peer *p, setup, teardown, codex_retries_are_told) {
  codex_turn(p);
  say(p, "{'method':'error','params':{'threadId':'t-1','willRetry':true,'error':{'message':"
         "'Reconnecting... 1/5','codexErrorInfo':{'responseStreamConnectionFailed':"
         "{'httpStatusCode':500}}}}}");
  assert_true(told(p, "'event':'retry','status':500"));
  finish(p, 1);
  assert_int_equal(p->bed.result.class, CLASS_CRASHED);
}

TEST_ON(struct peer *p, setup, teardown, codex_threads) {
  p->bed.call.session = "t-0";
  codex_begin(p);
  assert_non_null(strstr(buf_c(&p->sent), "\"method\":\"thread/resume\""));
  assert_non_null(strstr(buf_c(&p->sent), "\"threadId\":\"t-0\""));
  say(p, "{'id':2,'error':{'code':-32600,'message':'no rollout found for thread id t-0'}}");
  assert_true(p->closed);
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NOT_FOUND);
}

TEST_ON(struct peer *p, setup, teardown, codex_questions) {
  codex_turn(p);
  buf_clear(&p->sent);
  say(p, "{'id':40,'method':'item/commandExecution/requestApproval','params':{'threadId':'t-1',"
         "'command':'rm x'}}");
  wrote(p, "{'id':40,'result':{'decision':'decline'}}\n");
  say(p, "{'id':41,'method':'applyPatchApproval','params':{'fileChanges':{'/w/a':{}}}}");
  wrote(p, "{'id':41,'result':{'decision':'approved'}}\n");
  say(p, "{'id':42,'method':'something/else','params':{}}");
  wrote(p, "{'id':42,'error':{'code':-32601,'message':'not supported'}}\n");
  assert_true(told(p, "'message':'rm x: "));
  finish(p, 0);
}

TEST_ON(struct peer *p, setup, teardown, codex_is_interrupted) {
  codex_turn(p);
  assert_false(p->bed.ops->interrupt(p->bed.driver));
  say(p, "{'id':3,'result':{'turn':{'id':'u-1'}}}");
  buf_clear(&p->sent);
  assert_true(p->bed.ops->interrupt(p->bed.driver));
  wrote(p, "{'id':4,'method':'turn/interrupt','params':{'threadId':'t-1','turnId':'u-1'}}\n");
  say(p, "{'id':4,'result':{}}");
  say(p, "{'method':'turn/completed','params':{'threadId':'t-1','turn':{'status':"
         "'interrupted'}}}");
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_CANCELLED);
}
TEST_ON(struct peer *p, setup, teardown, codex_is_told) {
  codex_turn(p);
  buf_clear(&p->sent);
  p->bed.ops->steer(p->bed.driver, 7, STR("early"));
  assert_int_equal(p->sent.n, 0); /* its turn has no name yet */
  say(p, "{'id':3,'result':{'turn':{'id':'u-1'}}}");
  wrote(p, "{'id':4,'method':'turn/steer','params':{'threadId':'t-1','expectedTurnId':'u-1',"
           "'clientUserMessageId':'segue-7','input':[{'type':'text','text':'early'}]}}\n");
  say(p, "{'id':4,'result':{'turnId':'u-1'}}");
  assert_false(told(p, "'said'"));
  say(p, "{'method':'item/started','params':{'threadId':'t-1','item':{'type':'userMessage',"
         "'clientId':'segue-7'}}}");
  say(p, "{'method':'item/completed','params':{'threadId':'t-1','item':{'type':'userMessage',"
         "'clientId':'segue-7'}}}");
  assert_true(told(p, "'said':7"));
  p->bed.ops->steer(p->bed.driver, 8, STR("late"));
  say(p, "{'method':'item/completed','params':{'threadId':'t-1','item':{'type':'agentMessage',"
         "'id':'m','text':'Done.'}}}");
  say(p, "{'method':'turn/completed','params':{'threadId':'t-1','turn':{'status':'completed'}}}");
  say(p, "{'id':5,'error':{'code':-32600,'message':'no active turn to steer'}}");
  assert_false(told(p, "'said':8"));
  finish(p, 0);
  assert_int_equal(p->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
}
