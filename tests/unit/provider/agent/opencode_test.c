/* The driver of `opencode serve`: live, with a scripted server - which requests it makes for which
 * replies and events, what it tells, what comes of the call - and from recordings. */

#include "base/limits.h"
#include "provider/agent/opencode.h"
#include "support/data.h"
#include "support/driver_bed.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct peer {
  struct driver_bed bed;
  struct secrets *secrets;
  struct buf asked; /* a request a line, since it was last looked at: METHOD PATH BODY */
  unsigned port;
  uint64_t wake_ms;
  int progress;
  bool given_up;
};

static void on_news(void *ctx, const struct provider_news *news) {
  driver_bed_news(&((struct peer *)ctx)->bed, news);
}
static void on_serves_at(void *ctx, unsigned port) {
  ((struct peer *)ctx)->port = port;
}
static void on_request(void *ctx, const struct driver_request *request) {
  struct peer *p = ctx;
  assert_true(p->port > 0);
  buf_printf(&p->asked, "%s %s" STR_FMT "\n", request->body.p ? "POST" : "GET", request->path,
             STR_ARG(request->body));
}
static void on_wake(void *ctx, uint64_t ms) {
  ((struct peer *)ctx)->wake_ms = ms;
}
static void on_progress(void *ctx) {
  ((struct peer *)ctx)->progress++;
}
static void on_give_up(void *ctx) {
  ((struct peer *)ctx)->given_up = true;
}

static int setup(void **state) {
  struct peer *p = calloc(1, sizeof *p);
  driver_bed_init(&p->bed);
  p->secrets = secrets_new();
  *state = p;
  return 0;
}

static int teardown(void **state) {
  struct peer *p = *state;
  driver_bed_deinit(&p->bed);
  secrets_free(p->secrets);
  buf_deinit(&p->asked);
  free(p);
  return 0;
}

static void begin(struct peer *p, bool live) {
  struct driver_host host = {.news = on_news, .ctx = p};
  if (live) {
    host.serves_at = on_serves_at;
    host.request = on_request;
    host.wake = on_wake;
    host.progress = on_progress;
    host.give_up = on_give_up;
    secrets_add(p->secrets, "PASSWORD", STR("pass-word-of-this-call"));
    host.secrets = p->secrets;
  }
  driver_bed_open(&p->bed, "opencode", TRANSPORT_NATIVE, &host);
  assert_ptr_equal(p->bed.ops, &driver_opencode);
}

static void print(struct peer *p, const char *text) {
  driver_bed_print(&p->bed, text);
}

static void event(struct peer *p, const char *text) {
  buf_auto_t data = {0};
  data_quoted(&data, text);
  driver_opencode.event(p->bed.driver, buf_view(&data));
}

static void reply(struct peer *p, enum opencode_request id, int status, const char *body) {
  buf_auto_t text = {0};
  data_quoted(&text, body);
  driver_opencode.reply(
      p->bed.driver,
      &(struct driver_reply){.id = (int)id, .status = status, .body = buf_view(&text)});
}

static void streams(struct peer *p) {
  driver_opencode.reply(
      p->bed.driver, &(struct driver_reply){.id = OPENCODE_EVENTS, .status = 200, .begun = true});
}

static void breaks(struct peer *p, enum opencode_request id, enum error_class class) {
  driver_opencode.reply(
      p->bed.driver, &(struct driver_reply){.id = (int)id, .class = class, .message = "it broke"});
}

static void asks(struct peer *p, const char *lines) {
  driver_bed_wrote(&p->asked, lines);
}

static bool told(const struct peer *p, const char *part) {
  return driver_bed_told(&p->bed, part);
}

static void ends_as(struct peer *p, struct process_result process, enum error_class class) {
  process.started = true;
  driver_opencode.end(p->bed.driver, &process, &p->bed.result);
  if (p->bed.result.class != class)
    fail_msg("%s: %s", error_class_name(p->bed.result.class), p->bed.result.message);
}

static const struct process_result by_us = {
    .why = PROCESS_END_EXITED, .signal = 15, .exit_code = -1};

#define IN "'properties':{'sessionID':'ses_1',"

/* Up to the prompt. */
static void work(struct peer *p) {
  begin(p, true);
  print(p, "Warning: something\nopencode server listening on http://127.0.0.1:40123\n");
  assert_int_equal(p->port, 40123);
  asks(p, "GET /event\n");
  streams(p);
  asks(p, "POST /session{'title':'segue 0190 2.3'}\n");
  reply(p, OPENCODE_SESSION, 200, "{'id':'ses_1','title':'x'}");
  assert_non_null(strstr(buf_c(&p->asked), "POST /session/ses_1/message{\"parts\":[{\"type\":"
                                           "\"text\",\"text\":\"Do \\\"it\\\".\\n\"}]"));
  assert_int_equal(p->wake_ms, 0);
  buf_clear(&p->asked);
  event(p, "{'type':'session.status'," IN "'status':{'type':'busy'}}}");
  event(p, "{'type':'message.updated'," IN "'info':{'id':'m1','role':'assistant'}}}");
}

TEST_ON(struct peer *p, setup, teardown, an_answer) {
  json_auto_t *schema = json_pack("{s:s}", "type", "object");
  json_auto_t *options = json_pack("{s:s}", "effort", "high");
  p->bed.call.schema = schema;
  p->bed.request.options = options;
  p->bed.request.model = STR("a/b/c");
  begin(p, true);
  print(p, "opencode server listening on http://127.0.0.1:40123\n");
  streams(p);
  reply(p, OPENCODE_SESSION, 200, "{'id':'ses_1'}");
  assert_non_null(strstr(buf_c(&p->asked), "\"model\":{\"providerID\":\"a\",\"modelID\":\"b/c\"},"
                                           "\"variant\":\"high\",\"format\":{\"type\":"
                                           "\"json_schema\",\"schema\":{\"type\":\"object\"}}}"));
  event(p, "{'type':'message.updated'," IN
           "'info':{'id':'m1','role':'assistant','cost':0.5,'tokens':{'input':5,'output':1,"
           "'reasoning':0,'cache':{'read':0,'write':0}}}}}");
  event(p, "{'type':'message.part.delta'," IN
           "'messageID':'m1','partID':'p1','field':'text','delta':'First.'}}");
  event(p, "{'type':'message.updated'," IN "'info':{'id':'m2','role':'assistant'}}}");
  event(p, "{'type':'message.part.delta'," IN
           "'messageID':'m2','partID':'p2','field':'text','delta':'Do'}}");
  p->progress = 0;
  event(p, "{'type':'server.heartbeat','properties':{}}");
  event(p, "{'type':'session.status'," IN "'status':{'type':'busy'}}}");
  assert_int_equal(p->progress, 0);
  reply(p, OPENCODE_PROMPT, 200,
        "{'info':{'id':'m2','finish':'stop','structured':{'a':1},'cost':0.25,'tokens':{'input':3,"
        "'output':2,'reasoning':1,'cache':{'read':4,'write':0}}},\n"
        "'parts':[{'type':'text','text':'Done.'}]}\n");
  assert_int_equal(p->wake_ms, LIMIT_SERVER_TAIL_MS);
  assert_false(p->given_up);
  event(p, "{'type':'message.part.delta'," IN
           "'messageID':'m2','partID':'p2','field':'text','delta':'ne.'}}");
  assert_int_equal(p->progress, 1);
  event(p, "{'type':'session.idle'," IN "'x':1}}");
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
  assert_string_equal(p->bed.result.provider_session, "ses_1");
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.structured, "a")), 1);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "input")), 12);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "output")), 4);
  assert_true(json_real_value(json_object_get(p->bed.result.usage, "cost_usd")) == 0.75);
  assert_true(told(p, "{'event':'text','text':'First.'}\n{'event':'text','text':'Do'}\n"
                      "{'event':'text','text':'ne.'}\n"));
}

TEST_ON(struct peer *p, setup, teardown, a_known_conversation) {
  p->bed.call.session = "ses_7";
  begin(p, true);
  print(p, "opencode server listening on http://127.0.0.1:40123\n");
  streams(p);
  asks(p, "GET /event\nGET /session/ses_7\n");
  reply(p, OPENCODE_SESSION, 404,
        "{'name':'NotFoundError','data':{'message':'Session not found'}}");
  assert_true(p->given_up);
  asks(p, "");
  ends_as(p, by_us, CLASS_NOT_FOUND);
}

TEST_ON(struct peer *p, setup, teardown, an_id_is_no_path) {
  p->bed.call.session = "../config";
  begin(p, true);
  print(p, "opencode server listening on http://127.0.0.1:40123\n");
  streams(p);
  asks(p, "GET /event\n");
  ends_as(p, by_us, CLASS_NOT_FOUND);
}

TEST_ON(struct peer *p, setup, teardown, only_this_machine_is_asked) {
  begin(p, true);
  print(p, "opencode server listening on http://192.0.2.1:80\n");
  print(p, "opencode server listening on http://127.0.0.1:0\n");
  assert_int_equal(p->port, 0);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_PROTOCOL);
}

TEST_ON(struct peer *p, setup, teardown, no_port) {
  begin(p, true);
  assert_int_equal(p->wake_ms, LIMIT_SERVER_START_MS);
  print(p, "hello\n");
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_TIMEOUT);
}

TEST_ON(struct peer *p, setup, teardown, a_refused_password) {
  begin(p, true);
  print(p, "opencode server listening on http://127.0.0.1:40123\n");
  reply(p, OPENCODE_EVENTS, 401, "");
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_PROTOCOL);
  assert_non_null(strstr(p->bed.result.message, "password"));
}

TEST_ON(struct peer *p, setup, teardown, a_model_without_a_provider) {
  p->bed.request.model = STR("gpt");
  begin(p, true);
  print(p, "opencode server listening on http://127.0.0.1:40123\n");
  streams(p);
  reply(p, OPENCODE_SESSION, 200, "{'id':'ses_1'}");
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_BAD_REQUEST);
}

/* It answers with 500 and says why in an event that comes later. */
TEST_ON(struct peer *p, setup, teardown, a_model_that_is_not_there) {
  work(p);
  reply(p, OPENCODE_PROMPT, 500,
        "{'name':'UnknownError','data':{'message':'Unexpected server error.'}}");
  assert_false(p->given_up);
  event(p, "{'type':'session.error'," IN
           "'error':{'name':'UnknownError','data':{'message':'Model not found: a/b.'}}}}");
  event(p, "{'type':'session.status'," IN "'status':{'type':'idle'}}}");
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_NOT_FOUND);
  assert_string_equal(p->bed.result.message, "Model not found: a/b.");
}

TEST_WITH(setup, teardown, errors_have_classes) {
  struct peer *p = *state;
  DATA_ROWS("provider/agent/opencode/errors_have_classes.yaml", c, info, class) {
    char text[256];
    if (c.at > 1)
      driver_opencode.close(p->bed.driver);
    call_result_deinit(&p->bed.result);
    p->bed.result = (struct call_result){0};
    work(p);
    print_into(text, sizeof text, "{'info':{%s},'parts':[]}", c.info);
    reply(p, OPENCODE_PROMPT, 200, text);
    driver_opencode.woke(p->bed.driver);
    ends_as(p, by_us, data_class(c.class));
  }
}

TEST_ON(struct peer *p, setup, teardown, garbage) {
  work(p);
  event(p, "no JSON");
  event(p, "[1,2]");
  event(p, "{'type':'message.part.updated','properties':7}");
  reply(p, OPENCODE_PROMPT, 200, "<html>");
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_PROTOCOL);
}

TEST_ON(struct peer *p, setup, teardown, retries_are_told_and_ended) {
  char text[300];
  work(p);
  print_into(text, sizeof text,
             "{'type':'session.status'," IN "'status':{'type':'retry','attempt':1,'message':"
             "'Rate limit reached','next':%lld}}}",
             ((long long)time(NULL) + 5) * 1000);
  event(p, text);
  assert_true(told(p, "{'event':'retry','attempt':1,'delay_ms':"));
  asks(p, "");
  event(p, "{'type':'session.status'," IN "'status':{'type':'retry','attempt':2,'message':"
           "'Rate limit reached','next':1}}}");
  asks(p, "POST /session/ses_1/abort{}\n");
  assert_false(p->given_up); /* not before it has ended its work */
  reply(p, OPENCODE_ABORT, 200, "true");
  reply(p, OPENCODE_PROMPT, 200, "{'info':{'id':'m1'},'parts':[]}");
  assert_int_equal(p->wake_ms, 1);
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_RATE_LIMIT);
  assert_string_equal(p->bed.result.message, "Rate limit reached");
}

/* It counts from 1 again for each of its requests. */
TEST_ON(struct peer *p, setup, teardown, tries_in_a_row_are_counted) {
  static const char again[] = "{'type':'session.status'," IN "'status':{'type':'retry',"
                              "'attempt':1,'message':'Rate limit reached','next':1}}}";
  work(p);
  event(p, again);
  event(p, "{'type':'message.part.delta'," IN "'messageID':'m1','partID':'p1','field':'text',"
           "'delta':'Do'}}");
  event(p, again);
  asks(p, "");
  event(p, again);
  asks(p, "POST /session/ses_1/abort{}\n");
  driver_opencode.woke(p->bed.driver);
  ends_as(p, by_us, CLASS_RATE_LIMIT);
}

/* A thought that was held back is no sign that the try went well. */
TEST_ON(struct peer *p, setup, teardown, a_stall_tells_why) {
  work(p);
  event(p, "{'type':'message.part.updated'," IN "'part':{'id':'p1','messageID':'m1',"
           "'type':'reasoning','text':'Step'}}}");
  event(p, "{'type':'session.status'," IN "'status':{'type':'retry','attempt':1,'message':"
           "'Rate limit reached','next':1}}}");
  ends_as(p, (struct process_result){.why = PROCESS_END_STALL_LIMIT}, CLASS_RATE_LIMIT);
  assert_true(told(p, "{'event':'thinking','text':'p'}"));
}

TEST_ON(struct peer *p, setup, teardown, a_long_wait_is_ours_to_decide) {
  char text[300];
  work(p);
  print_into(text, sizeof text,
             "{'type':'session.status'," IN "'status':{'type':'retry','attempt':1,'message':"
             "'Too Many Requests','next':%lld}}}",
             ((long long)time(NULL) + 3600) * 1000);
  event(p, text);
  asks(p, "POST /session/ses_1/abort{}\n");
  driver_opencode.woke(p->bed.driver); /* and no reply */
  ends_as(p, by_us, CLASS_RATE_LIMIT);
  assert_true(p->bed.result.retry_after_ms > 3500000 && p->bed.result.retry_after_ms <= 3600000);
}

TEST_ON(struct peer *p, setup, teardown, a_cancel) {
  work(p);
  assert_true(driver_opencode.interrupt(p->bed.driver));
  asks(p, "POST /session/ses_1/abort{}\n");
  reply(p, OPENCODE_PROMPT, 200, "{'info':{'id':'m1'},'parts':[{'type':'text','text':'half'}]}");
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_CANCELLED);
}

TEST_ON(struct peer *p, setup, teardown, a_cancel_before_there_is_work) {
  begin(p, true);
  print(p, "opencode server listening on http://127.0.0.1:40123\n");
  streams(p);
  buf_clear(&p->asked);
  assert_false(driver_opencode.interrupt(p->bed.driver));
  reply(p, OPENCODE_SESSION, 200, "{'id':'ses_1'}"); /* it lives on for a moment */
  asks(p, "");
  ends_as(p, (struct process_result){.why = PROCESS_END_CANCELLED}, CLASS_CANCELLED);
}

/* Which of the two is known first: that the connection broke, or that the server died. */
TEST_ON(struct peer *p, setup, teardown, a_broken_connection) {
  work(p);
  breaks(p, OPENCODE_PROMPT, CLASS_NETWORK);
  assert_false(p->given_up);
  breaks(p, OPENCODE_EVENTS, CLASS_NETWORK);
  assert_int_equal(p->wake_ms, LIMIT_SERVER_LOST_MS);
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_NETWORK);
}

TEST_ON(struct peer *p, setup, teardown, a_server_that_dies) {
  work(p);
  breaks(p, OPENCODE_PROMPT, CLASS_NETWORK);
  ends_as(p, (struct process_result){.why = PROCESS_END_EXITED, .signal = 9, .exit_code = -1},
          CLASS_CRASHED);
}

TEST_ON(struct peer *p, setup, teardown, a_server_that_dies_behind_its_answer) {
  work(p);
  reply(p, OPENCODE_PROMPT, 200,
        "{'info':{'id':'m1','finish':'stop'},'parts':[{'type':'text','text':'Done.'}]}");
  ends_as(p, (struct process_result){.why = PROCESS_END_EXITED, .exit_code = 1}, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
}

TEST_ON(struct peer *p, setup, teardown, events_that_end) {
  work(p);
  reply(p, OPENCODE_EVENTS, 200, "");
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_NETWORK);
}

/* Nobody would answer its questions: no work is begun any more. */
TEST_ON(struct peer *p, setup, teardown, events_that_end_before_the_work) {
  begin(p, true);
  print(p, "opencode server listening on http://127.0.0.1:40123\n");
  streams(p);
  buf_clear(&p->asked);
  breaks(p, OPENCODE_EVENTS, CLASS_NETWORK);
  reply(p, OPENCODE_SESSION, 200, "{'id':'ses_1'}");
  asks(p, "");
  assert_int_equal(p->wake_ms, LIMIT_SERVER_LOST_MS);
  driver_opencode.woke(p->bed.driver);
  ends_as(p, by_us, CLASS_NETWORK);
}

static void permission(struct peer *p, const char *id, const char *what) {
  char text[600];
  print_into(text, sizeof text,
             "{'type':'permission.asked','properties':{'id':'%s','sessionID':'ses_of_another',"
             "%s,'always':['*']}}",
             id, what);
  event(p, text);
}

TEST_WITH(setup, teardown, questions_are_answered_by_policy) {
  struct peer *p = *state;
  work(p);
  DATA_ROWS("provider/agent/opencode/questions_are_answered_by_policy.yaml", c, what, permission,
            allowed) {
    char what[500];
    print_into(what, sizeof what, "%.*s", (int)strlen(c.what) - 1, c.what);
    p->bed.call.permission = data_among(c.permission, "readonly edit full");
    permission(p, "per_1", what);
    bool allowed =
        strcmp(buf_c(&p->asked), "POST /permission/per_1/reply{\"reply\":\"once\"}\n") == 0;
    if (allowed != data_true(c.allowed) ||
        (!allowed && strstr(buf_c(&p->asked), "\"reply\":\"reject\",\"message\":\"") == NULL))
      fail_msg("%zu: %s", c.at, buf_c(&p->asked));
    assert_true(told(p, allowed ? "'answer':'allowed'" : "'answer':'denied'"));
    buf_clear(&p->asked);
    buf_clear(&p->bed.news);
  }
  permission(p, "../per", "'permission':'bash','patterns':[],'metadata':{}");
  asks(p, "");
}

TEST_ON(struct peer *p, setup, teardown, nobody_answers_for_a_person) {
  p->bed.call.permission = PERMISSION_FULL;
  work(p);
  event(p, "{'type':'question.asked'," IN "'id':'que_1','questions':[{'question':'Which?'}]}}");
  asks(p, "POST /question/que_1/reject{}\n");
  assert_true(told(p, "{'event':'permission','message':'Which?: nobody is there to answer','tool':"
                      "'question','answer':'denied'}"));
}

/* Each answer adds up the tokens of all messages: more than one is not read. */
TEST_ON(struct peer *p, setup, teardown, one_answer_counts) {
  work(p);
  event(p, "{'info':{'id':'m1','finish':'stop'},'parts':[{'type':'text','text':'Done.'}]}");
  buf_clear(&p->bed.news);
  event(p, "{'info':{'id':'m1','finish':'stop','tokens':{'input':1}},'parts':[{'type':'text',"
           "'text':'Or not.'}]}");
  assert_string_equal(buf_c(&p->bed.news), "");
  reply(p, OPENCODE_PROMPT, 200, "{'info':{'id':'m1'},'parts':[]}");
  driver_opencode.woke(p->bed.driver);
  assert_true(p->given_up);
  ends_as(p, by_us, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
}

TEST_ON(struct peer *p, setup, teardown, a_flood_of_questions_ends_it) {
  work(p);
  for (unsigned i = 0; i < LIMIT_SERVER_QUESTION_COUNT; i++)
    permission(p, "per_1", "'permission':'bash','patterns':[]");
  assert_false(p->given_up);
  reply(p, OPENCODE_REPLY, 200, "true");
  permission(p, "per_2", "'permission':'bash','patterns':[]");
  assert_false(p->given_up);
  buf_clear(&p->asked);
  permission(p, "per_3", "'permission':'bash','patterns':[]");
  assert_true(p->given_up);
  asks(p, "");
  ends_as(p, by_us, CLASS_PROTOCOL);
}

/* A tool may print its environment. */
TEST_ON(struct peer *p, setup, teardown, the_password_does_not_enter) {
  work(p);
  event(p, "{'type':'message.part.delta'," IN "'messageID':'m1','partID':'p1','field':'text',"
           "'delta':'It is pass-word-of-'}}");
  event(p, "{'type':'message.part.delta'," IN "'messageID':'m1','partID':'p1','field':'text',"
           "'delta':'this-call.'}}");
  reply(p, OPENCODE_PROMPT, 200,
        "{'info':{'id':'m1','finish':'stop'},'parts':[{'type':'text','text':"
        "'It is pass-word-of-this-call.'}]}");
  driver_opencode.woke(p->bed.driver);
  ends_as(p, by_us, CLASS_NONE);
  assert_false(told(p, "pass-word"));
  assert_null(strstr(buf_c(&p->bed.result.text.bytes), "this-call"));
}

/* Pieces of a thought come as those of a text do: only its part says which it is. */
TEST_ON(struct peer *p, setup, teardown, thoughts_are_no_answer) {
  work(p);
  event(p, "{'type':'message.part.updated'," IN "'part':{'id':'p1','messageID':'m1',"
           "'type':'reasoning','text':''}}}");
  event(p, "{'type':'message.part.delta'," IN "'messageID':'m1','partID':'p1','field':'text',"
           "'delta':'It is pass-word-of-'}}");
  event(p, "{'type':'message.part.delta'," IN "'messageID':'m1','partID':'p1','field':'text',"
           "'delta':'this-call.'}}");
  event(p, "{'type':'message.part.delta'," IN "'messageID':'m1','partID':'p2','field':'text',"
           "'delta':'Do'}}");
  assert_true(told(p, "{'event':'thinking','text':'It is '}"));
  assert_true(told(p, "{'event':'text','text':'Do'}"));
  assert_false(told(p, "pass-word"));
  assert_false(told(p, "{'event':'text','text':'It"));
  event(p, "{'type':'message.updated'," IN "'info':{'id':'m2','role':'assistant'}}}");
  event(p, "{'type':'message.part.delta'," IN "'messageID':'m2','partID':'p3','field':'text',"
           "'delta':'Done.'}}");
  reply(p, OPENCODE_PROMPT, 200,
        "{'info':{'id':'m2','finish':'stop'},'parts':[{'type':'text','text':'Done.'}]}");
  driver_opencode.woke(p->bed.driver);
  ends_as(p, by_us, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
}

/* --- recordings --- */

static void from_a_recording(struct peer *p) {
  begin(p, false);
  driver_opencode.sent(p->bed.driver, STR("POST /session {}"));
  driver_opencode.sent(
      p->bed.driver, STR("POST /session/ses_1/message {\"format\": {\"type\": \"json_schema\"}}"));
}

/* ' stands for ". In pieces of seven bytes. */
static void say(struct peer *p, const char *line) {
  buf_auto_t text = {0};
  data_quoted(&text, line);
  buf_putc(&text, '\n');
  print(p, buf_c(&text));
}

TEST_ON(struct peer *p, setup, teardown, recorded_answers) {
  from_a_recording(p);
  say(p, "{'type':'message.updated'," IN "'info':{'id':'m0','role':'user'}}}");
  say(p, "{'type':'message.updated'," IN "'info':{'id':'m1','role':'assistant'}}}");
  say(p, "{'type':'message.part.updated'," IN "'part':{'id':'p0','messageID':'m0','type':'text',"
         "'text':'the prompt'}}}");
  say(p, "{'type':'message.part.updated'," IN "'part':{'id':'p2','messageID':'m1','type':'tool',"
         "'tool':'bash','callID':'c','state':{'status':'running'}}}}");
  say(p, "{'type':'message.part.updated'," IN "'part':{'id':'p2','messageID':'m1','type':'tool',"
         "'tool':'bash','callID':'c','state':{'status':'error'}}}}");
  say(p, "{'type':'message.part.delta'," IN
         "'messageID':'m1','partID':'p1','field':'text','delta':'Do'}}");
  say(p, "{'type':'message.part.updated'," IN "'part':{'id':'p1','messageID':'m1','type':'text',"
         "'text':'Done.'}}}");
  say(p, "{'info':{'structured':{'a':1},'tokens':{'input':3,'output':2,'reasoning':1,'cache':"
         "{'read':4,'write':0}}},'parts':[{'type':'text','text':'Done.'}]}");
  ends_as(p, (struct process_result){.why = PROCESS_END_EXITED}, CLASS_NONE);
  assert_string_equal(buf_c(&p->bed.result.text.bytes), "Done.");
  assert_string_equal(p->bed.result.provider_session, "ses_1");
  assert_string_equal(p->bed.result.enforced, "tool");
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.structured, "a")), 1);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "input")), 7);
  assert_int_equal(json_integer_value(json_object_get(p->bed.result.usage, "output")), 3);
  assert_false(told(p, "the prompt"));
  assert_true(told(p, "{'event':'text','text':'Do'}\n{'event':'text','text':'ne.'}"));
  assert_true(told(p, "'name':'bash','id':'c','state':'end','failed':true"));
}

TEST_ON(struct peer *p, setup, teardown, recorded_questions) {
  from_a_recording(p);
  say(p, "{'type':'permission.asked'," IN "'id':'per_1','permission':'bash','patterns':['ls'],"
         "'metadata':{'command':'ls'}}}");
  assert_false(told(p, "permission"));
  driver_opencode.sent(p->bed.driver, STR("POST /permission/per_1/reply {\"reply\": \"once\"}"));
  assert_true(told(p, "'tool':'bash','answer':'allowed'")); /* as it was then, not as we would */
  ends_as(p, (struct process_result){.why = PROCESS_END_EXITED}, CLASS_PROTOCOL);
}

TEST_ON(struct peer *p, setup, teardown, a_recorded_abort) {
  from_a_recording(p);
  say(p, "{'type':'session.status'," IN "'status':{'type':'retry','attempt':2,'message':"
         "'Rate limit reached'}}}");
  driver_opencode.sent(p->bed.driver, STR("POST /session/ses_1/abort {}"));
  assert_true(told(p, "{'event':'retry','attempt':2,'reason':'Rate limit reached'}"));
  ends_as(p, (struct process_result){.why = PROCESS_END_EXITED}, CLASS_RATE_LIMIT);
}
