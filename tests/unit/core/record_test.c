/* Records: their times, there and back, and the order of their members. */
#include "core/record.h"

#include "base/err.h"
#include "base/resource.h"
#include "format/json_object.h"
#include "support/data.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(times_go_there_and_back) {
  DATA_ROWS("core/record/times_go_there_and_back.yaml", c, ms, text) {
    char text[RECORD_TIME_BYTES];
    int64_t ms = -1;
    record_time((int64_t)data_number(c.ms), text);
    assert_string_equal(text, c.text);
    assert_true(record_time_parse(text, &ms));
    assert_int_equal(ms, (int64_t)data_number(c.ms));
  }
}

TEST(what_is_no_time) {
  static const char *const bad[] = {"",
                                    "yesterday",
                                    "2026-11-20",
                                    "2026-11-20T00:00:00Z",
                                    "2026-11-20T00:00:00.123",
                                    "2026-11-20T00:00:00.123ZZ",
                                    "2026-11-20 00:00:00.123Z",
                                    " 2026-11-20T00:00:00.12Z",
                                    "2026-11-20T0:00:00.0123Z",
                                    "2026-11-20T+1:00:00.123Z",
                                    "2026-00-20T00:00:00.123Z",
                                    "2026-13-20T00:00:00.123Z",
                                    "2026-11-20T00:00:00.123+01:00"};
  int64_t ms;
  assert_false(record_time_parse(NULL, &ms));
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    if (record_time_parse(bad[i], &ms))
      fail_msg("%s was taken for a time", bad[i]);
}

static void expect_text(const struct record *r, const char *wanted) {
  buf_auto_t text = {0};
  record_write(r, &text);
  assert_string_equal(buf_c(&text), wanted);
}

static const char ts[] = "2026-11-20T00:00:00.123Z";
#define HEAD(type) "{\"v\":1,\"seq\":7,\"ts\":\"2026-11-20T00:00:00.123Z\",\"type\":\"" type "\""

TEST(members_stand_in_one_order) {
  char reason[] = "be\"cause", place[] = "3#/schema";
  struct record_part parts[] = {{{place, 9}, true}, {STR("one\n"), false}, {STR(""), false}};
  struct record_draft d;
  record_begin(&d, 7, str_from(ts), RECORD_CALL_START);
  record_put_number(&d, MEMBER_TURN, -3);
  record_put_text(&d, MEMBER_REASON, str_from(reason));
  record_put_bytes(&d, MEMBER_NOTE, STR(""));
  record_put_bytes(&d, MEMBER_MESSAGE, STR("a\xff, b"));
  record_put_word(&d, MEMBER_STAGE, "when");
  record_put_bool(&d, MEMBER_AMBIGUOUS, false);
  record_put_bool(&d, MEMBER_RESUMABLE, true);
  record_put_null(&d, MEMBER_RULE);
  record_put_ref(&d, MEMBER_SCHEMA, place);
  record_put_parts(&d, MEMBER_PROMPT, parts, ARRAY_LEN(parts));
  record_put_tree(&d, MEMBER_OPTIONS, json_pack("{sf}", "temperature", 0.5));
  struct record *r = record_keep(&d);
  memset(reason, 'x', sizeof reason); /* it has its own by now */
  memset(place, 'x', sizeof place);
  memset(parts, 0, sizeof parts);
  expect_text(
      r, HEAD("call_start") ",\"turn\":-3,\"reason\":\"be\\\"cause\",\"message\":\"a\\\\xff, b\","
                            "\"stage\":\"when\",\"ambiguous\":false,\"resumable\":true,"
                            "\"rule\":null,\"schema\":{\"ref\":\"3#/schema\"},\"prompt\":"
                            "[{\"ref\":\"3#/schema\"},\"one\\n\",\"\"],\"options\":"
                            "{\"temperature\":0.5}}");
  record_free(r);
  record_free(NULL);
}

TEST(a_body_stands_behind) {
  struct record_draft d;
  record_begin(&d, 7, str_from(ts), RECORD_STAGE);
  record_put_number(&d, MEMBER_TURN, 2);
  record_put_body(&d, json_pack("{ss s[i]}", "stage", "when", "calls", 5));
  struct record *r = record_keep(&d);
  expect_text(r, HEAD("stage") ",\"turn\":2,\"stage\":\"when\",\"calls\":[5]}");
  record_free(r);
}

/* A record answers alike whether it was made or read back. */
static void check_members(const struct record *r) {
  struct str part, place;
  assert_int_equal(r->seq, 7);
  assert_int_equal(r->version, 1);
  assert_int_equal(r->type, RECORD_CALL_START);
  assert_string_equal(r->type_name.p, "call_start");
  assert_string_equal(r->ts.p, ts);
  assert_int_equal(record_number(r, MEMBER_TURN), 4);
  assert_true(record_is_number(r, MEMBER_TURN));
  assert_string_equal(record_text_c(r, MEMBER_PROVIDER), "script");
  assert_int_equal(record_text(r, MEMBER_NOTE).n, 3); /* with a NUL in it */
  assert_true(record_is_true(r, MEMBER_RESUMABLE));
  assert_false(record_is_true(r, MEMBER_AMBIGUOUS));
  assert_non_null(record_get(r, MEMBER_RULE));
  assert_int_equal(record_number(r, MEMBER_RULE), 0);
  assert_false(record_is_number(r, MEMBER_RULE));
  assert_true(record_ref(r, MEMBER_SCHEMA, &place));
  assert_string_equal(place.p, "5#/schema");
  assert_true(record_part(r, 0, &part));
  assert_int_equal(part.n, 0); /* a reference */
  assert_true(record_part(r, 1, &part));
  assert_string_equal(part.p, "words");
  assert_false(record_part(r, 2, &part));
  assert_int_equal(json_integer_value(record_tree(r, MEMBER_TOKEN)), 9);
  assert_string_equal(record_text_c(r, MEMBER_MODEL), ""); /* missing */
  assert_null(record_get(r, MEMBER_MODEL));
  assert_null(record_tree(r, MEMBER_MODEL));
  assert_int_equal(record_number(r, MEMBER_PROVIDER), 0); /* of another kind */
  assert_string_equal(record_text_c(r, MEMBER_TURN), "");
  assert_false(record_ref(r, MEMBER_TOKEN, &place));
  assert_int_equal(place.n, 0);
}

TEST(made_and_read_back_are_alike) {
  const struct record_part parts[] = {{STR("2#/prompt/0"), true}, {STR("words"), false}};
  struct record_draft d, back, again;
  buf_auto_t text = {0};
  record_begin(&d, 7, str_from(ts), RECORD_CALL_START);
  record_put_number(&d, MEMBER_TURN, 4);
  record_put_word(&d, MEMBER_PROVIDER, "script");
  record_put_text(&d, MEMBER_NOTE, (struct str){"a\0b", 3});
  record_put_bool(&d, MEMBER_RESUMABLE, true);
  record_put_bool(&d, MEMBER_AMBIGUOUS, false);
  record_put_null(&d, MEMBER_RULE);
  record_put_ref(&d, MEMBER_SCHEMA, "5#/schema");
  record_put_parts(&d, MEMBER_PROMPT, parts, ARRAY_LEN(parts));
  record_put_tree(&d, MEMBER_TOKEN, json_integer(9));
  struct record *made = record_keep(&d);
  check_members(made);
  json_t *json = record_json(made);
  record_read(&back, json);
  check_members(&back.record);
  record_write(&back.record, &text);
  expect_text(made, buf_c(&text));
  record_drop(&back);
  record_read(&again, json);
  struct record *kept = record_keep(&again);
  json_decref(json); /* it has its own by now */
  check_members(kept);
  record_free(kept);
  record_free(made);
}

TEST(what_is_read_may_be_anything) {
  struct record_draft d;
  json_t *json = json_pack("{ss si s[] s{} ss sf sn}", "seq", "x", "ts", 5, "type", "turn",
                           "colour", "red", "attempt", 1.5, "next");
  record_read(&d, json);
  assert_int_equal(d.record.seq, 0);
  assert_string_equal(d.record.ts.p, "");
  assert_string_equal(d.record.type_name.p, "");
  assert_int_equal(d.record.type, RECORD_TYPE_COUNT);
  assert_non_null(record_get(&d.record, MEMBER_TURN)); /* there, with nothing that can be used */
  assert_int_equal(record_number(&d.record, MEMBER_TURN), 0);
  assert_string_equal(record_text_c(&d.record, MEMBER_TURN), "");
  assert_non_null(record_get(&d.record, MEMBER_ATTEMPT));
  assert_false(record_is_number(&d.record, MEMBER_ATTEMPT));
  assert_int_equal(d.record.count, 3);
  record_drop(&d);
  json_decref(json);
  record_read(&d, NULL);
  assert_int_equal(d.record.count, 0);
  record_drop(&d);
}

struct told_refs {
  size_t count, elements[4];
  char places[4][16];
};

static bool take_ref(void *ctx, size_t element, const char *place) {
  struct told_refs *told = ctx;
  told->elements[told->count] = element;
  print_into(told->places[told->count++], sizeof told->places[0], "%s", place);
  return told->count < 3;
}

/* References in a list are told until the caller has enough. */
TEST(references_in_a_list_are_told) {
  static const char text[] =
      "{\"v\":1,\"seq\":2,\"ts\":\"t\",\"type\":\"call_start\",\"turn\":1,"
      "\"schema\":{\"type\":\"object\"},\"options\":{\"ref\":\"9#/options\"},"
      "\"prompt\":[\"a{\\\"ref\\\":\\\"1#/x\\\"}\" , {\"ref\":\"3#/a\"},5,"
      " {\"ref\" : \"4#/b\"},{\"other\":\"y\"},[],{\"ref\":\"5#/c\"},{\"ref\":\"6#/d\"}]}";
  json_auto_t *whole = json_loads(text, 0, NULL);
  struct record_draft d;
  struct told_refs told = {0};
  struct str place;
  record_read(&d, whole);
  assert_false(record_each_ref(&d.record, MEMBER_PROMPT, take_ref, &told));
  assert_int_equal(told.count, 3);
  assert_true(told.elements[0] == 1 && told.elements[1] == 3 && told.elements[2] == 6);
  assert_string_equal(told.places[1], "4#/b");
  assert_false(record_ref(&d.record, MEMBER_SCHEMA, &place));
  assert_true(record_ref(&d.record, MEMBER_OPTIONS, &place) && str_eq_c(place, "9#/options"));
  assert_true(record_each_ref(&d.record, MEMBER_SCHEMA, take_ref, &told)); /* no list */
  assert_true(record_each_ref(&d.record, MEMBER_FILES, take_ref, &told));  /* not there */
  assert_int_equal(told.count, 3);
  record_drop(&d);
}

/* Every member that the schema of the log names is one here, and the other way round. */
TEST(the_schema_names_the_same_members) {
  const struct resource *r = resource_find("schemas/session-log.json");
  json_t *schema = json_loadb(r->p, r->n, 0, NULL), *defs = json_object_get(schema, "$defs");
  json_t *seen = json_object();
  for (int type = 0; type < RECORD_TYPE_COUNT; type++) {
    json_t *def = json_object_get(defs, record_type_name((enum record_type)type));
    assert_non_null(def);
    JSON_MEMBERS(json_object_get(def, "properties"), name, member) {
      struct record_draft d;
      json_auto_t *one =
          json_pack("{ss si}", "type", record_type_name((enum record_type)type), name, 5);
      bool common = strcmp(name, "v") == 0 || strcmp(name, "seq") == 0 || strcmp(name, "ts") == 0 ||
                    strcmp(name, "type") == 0 || strcmp(name, "hash") == 0;
      record_read(&d, one);
      bool known = d.record.count == 1 || (d.record.body && json_object_get(d.record.body, name));
      if (!common && !known)
        fail_msg("%s of %s is no member", name, record_type_name((enum record_type)type));
      if (d.record.count == 1)
        json_object_set_new(seen, name, json_true());
      record_drop(&d);
    }
  }
  assert_int_equal(json_object_size(seen), MEMBER_COUNT);
  json_decref(seen);
  json_decref(schema);
}
