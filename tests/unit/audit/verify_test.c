/* verify_test - what verify accepts, and that it names the first record that is not what was
 * written: each byte changed, lost or doubled; records missing, moved or added; wrong shapes under
 * a right hash; references to what is not there; blobs; torn ends. Every kind of record the core
 * can write is here and fits the schema. */
#include "audit/verified_reader.h"
#include "audit/verify.h"
#include "format/json_object.h"
#include "store/record_line.h"
#include "support/audit_log.h"
#include "support/data.h"
#include "support/log_ref.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct verifier *verifier;

static int setup(void **state) {
  struct err err = {0};
  (void)state;
  verifier = verifier_new(&err);
  if (verifier == NULL)
    fail_msg("%s", err.text);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  verifier_free(verifier);
  return 0;
}

static struct verify_result check(const char *path) {
  struct verify_result result;
  struct err err;
  assert_true(verify_log(verifier, log_ref(path), NULL, 0, &result, &err));
  return result;
}

static void expect_sound(const struct drive *d, enum verify_state expected) {
  struct verify_result r = check(d->path);
  if (r.state != expected)
    fail_msg("%s: record %llu: %s", verify_state_name(r.state), (unsigned long long)r.bad_record,
             r.why.text);
  assert_int_equal(r.records, json_array_size(d->records));
  assert_string_equal(r.session, DRIVE_SESSION);
}

static void expect_bad(const char *path, uint64_t record, const char *why) {
  struct verify_result r = check(path);
  if (r.state != VERIFY_BAD || r.bad_record != record || strstr(r.why.text, why) == NULL)
    fail_msg("not bad at %llu with \"%s\": %s, record %llu: %s", (unsigned long long)record, why,
             verify_state_name(r.state), (unsigned long long)r.bad_record, r.why.text);
  assert_int_equal(r.records, record - 1);
}

static const char small_workflow[] =
    "{\"name\":\"w\",\"movements\":[{\"name\":\"m\",\"command\":[\"true\"],"
    "\"rules\":[{\"condition\":\"when(true)\",\"next\":\"COMPLETE\"}]}]}";

static void drive_small(struct drive *d) {
  drive_init(d);
  drive_start(d, small_workflow, "t", json_object());
  drive_exit(d, 0, "ok");
  assert_int_equal(d->core.status, SESSION_ENDED);
  drive_write(d);
}

/* --- what the core writes --- */

TEST(whole_session) {
  AUTO(drive_deinit) struct drive d;
  drive_everything(&d);
  drive_write(&d);
  expect_sound(&d, VERIFY_COMPLETE);
}

/* After each record of that session the log is sound, and open until the last. */
TEST(every_prefix) {
  struct drive d;
  drive_everything(&d);
  size_t records = json_array_size(d.records), n = 0;
  for (size_t i = 0; i < d.log.n; i++) {
    if (d.log.p[i] != '\n')
      continue;
    folder_write(d.path, (struct str){d.log.p, i + 1});
    struct verify_result r = check(d.path);
    assert_int_equal(r.records, ++n);
    assert_int_equal(r.state, n == records ? VERIFY_COMPLETE : VERIFY_OPEN);
  }
  assert_int_equal(n, records);
  drive_deinit(&d);
}

static void cancelled(struct drive *d) {
  drive_event(d, (struct event){.kind = EVENT_CANCEL, .message = "enough"});
}

static void interrupted_and_resumed(struct drive *d) {
  drive_event(d, (struct event){.kind = EVENT_STOP, .reason = "interrupted", .message = "SIGINT"});
  drive_event(d, (struct event){.kind = EVENT_RESUME, .reason = "user"});
  drive_exit(d, 3, "");
}

static void crashed_and_resumed(struct drive *d) {
  drive_event(d, (struct event){.kind = EVENT_RESUME, .reason = "crash"});
  drive_exit(d, 0, "ok");
  drive_error(d, CLASS_TIMEOUT, "no output");
  assert_int_equal(d->core.status, SESSION_STOPPED);
}

static void no_rule(struct drive *d) {
  drive_exit(d, 0, "ok");
  drive_answer(d, "Hm.");
  drive_answer(d, "{\"reason\":\"neither\",\"step\":0}");
  drive_answer(d, "[REVIEW:0]");
  drive_answer(d, "{\"reason\":\"neither\",\"matched_index\":0}");
  assert_int_equal(d->core.outcome, END_RULE_NO_MATCH);
}

static void provider_down(struct drive *d) {
  struct call_result partial = {.class = CLASS_RATE_LIMIT, .retry_after_ms = 500};
  drive_exit(d, 0, "ok");
  buf_puts(&partial.text.bytes, "half an ans");
  print_into(partial.message, sizeof partial.message, "slow \xff down");
  drive_result(d, &partial);
  for (int i = 0; i < 3; i++) {
    drive_retry(d);
    if (i == 2) /* it is away for too long */
      d->ev.time_ms += LIMIT_OUTAGE_WAIT_MS;
    drive_error(d, CLASS_NETWORK, "");
  }
  assert_int_equal(d->core.status, SESSION_STOPPED);
}

static void ambiguous(struct drive *d) {
  drive_exit(d, 0, "ok");
  drive_answer(d, "?");
  drive_answer(d, "{\"reason\": \"rule 2 holds\", \"step\": 1}");
  drive_answer(d, "[REVIEW:0]");
  drive_answer(d, "{\"reason\": \"two fail\", \"matched_index\": 2}");
}

TEST(endings) {
  static void (*const cases[])(struct drive * d) = {
      cancelled, interrupted_and_resumed, crashed_and_resumed, no_rule, provider_down, ambiguous};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(drive_deinit) struct drive d;
    drive_init(&d);
    drive_start(&d, drive_workflow, "t", drive_config());
    cases[i](&d);
    drive_write(&d);
    expect_sound(&d, d.core.status == SESSION_ENDED ? VERIFY_COMPLETE : VERIFY_OPEN);
  }
}

TEST(other_workflows) {
  DATA_ROWS("audit/verify/other_workflows.yaml", c, rules, outcome) {
    AUTO(drive_deinit) struct drive d;
    char text[512];
    drive_init(&d);
    print_into(text, sizeof text,
               "{\"name\":\"w\",\"max_movements\":2,\"movements\":[{\"name\":\"m\",\"command\":"
               "[\"x\"],\"rules\":%s}]}",
               c.rules);
    drive_start(&d, text, "", json_object());
    while (d.core.status == SESSION_RUNNING)
      drive_exit(&d, 130, "");
    if (d.core.outcome !=
        data_among(c.outcome, "none complete abort rule_no_match max_movements cancelled failed"))
      fail_msg("case %zu ended as %s", c.at, session_outcome_name(d.core.outcome));
    drive_write(&d);
    bool ended = d.core.status == SESSION_ENDED;
    assert_true(ended == (d.core.outcome == END_COMPLETE || d.core.outcome == END_ABORT));
    expect_sound(&d, ended ? VERIFY_COMPLETE : VERIFY_OPEN);
  }
}

/* --- changes of bytes --- */

static uint64_t record_at(const struct drive *d, size_t offset) {
  uint64_t record = 1;
  for (size_t i = 0; i < offset; i++)
    record += d->log.p[i] == '\n';
  return record;
}

/* Every byte, the last newline too, changed in five ways: verify says no, and where. */
TEST(every_byte) {
  static const int changes[] = {0x01, 0x20, 0x80, '\n', -1};
  struct drive d;
  buf_auto_t changed = {0};
  drive_small(&d);
  expect_sound(&d, VERIFY_COMPLETE);
  for (size_t i = 0; i < d.log.n; i++)
    for (size_t k = 0; k < ARRAY_LEN(changes); k++) {
      char byte = (char)(changes[k] == '\n' ? '\n' : d.log.p[i] ^ (char)changes[k]);
      if (byte == d.log.p[i])
        continue;
      buf_clear(&changed);
      buf_append(&changed, d.log.p, i);
      if (changes[k] >= 0)
        buf_putc(&changed, byte);
      buf_append(&changed, d.log.p + i + 1, d.log.n - i - 1);
      folder_write(d.path, (struct str){changed.p, changed.n});
      struct verify_result r = check(d.path);
      bool last_newline = i + 1 == d.log.n;
      bool told = r.state == VERIFY_BAD && r.bad_record == record_at(&d, i);
      if (last_newline)
        told = r.state == VERIFY_TORN;
      if (!told)
        fail_msg("byte %zu (record %llu), change %d: %s, record %llu: %s", i,
                 (unsigned long long)record_at(&d, i), changes[k], verify_state_name(r.state),
                 (unsigned long long)r.bad_record, r.why.text);
    }
  drive_deinit(&d);
}

/* Cut anywhere: at the end of a record it is open, else torn, with the right number of bytes. */
TEST(every_cut) {
  AUTO(drive_deinit) struct drive d;
  drive_small(&d);
  size_t start = 0;
  for (size_t n = 1; n < d.log.n; n++) {
    folder_write(d.path, (struct str){d.log.p, n});
    struct verify_result r = check(d.path);
    if (d.log.p[n - 1] == '\n')
      start = n;
    assert_int_equal(r.state, start == n ? VERIFY_OPEN : VERIFY_TORN);
    assert_int_equal(r.torn_bytes, n - start);
    assert_int_equal(r.records, record_at(&d, n) - 1);
  }
}

static struct str line_of(const struct drive *d, uint64_t record) {
  struct str rest = buf_view(&d->log), line = {"", 0};
  while (record-- > 0)
    line = str_next_line(&rest);
  return (struct str){line.p, line.n + 1};
}

TEST(moved_lines) {
  struct drive d;
  buf_auto_t log = {0};
  drive_small(&d);
  uint64_t records = json_array_size(d.records);
  for (uint64_t i = 1; i <= records; i++) {
    struct str line = line_of(&d, i);
    size_t at = (size_t)(line.p - d.log.p);
    buf_clear(&log); /* missing; the last one leaves an open log */
    buf_append(&log, d.log.p, at);
    buf_append(&log, line.p + line.n, d.log.n - at - line.n);
    folder_write(d.path, (struct str){log.p, log.n});
    if (i < records)
      expect_bad(d.path, i, "its seq is");
    buf_clear(&log); /* twice */
    buf_append(&log, d.log.p, at + line.n);
    buf_append(&log, line.p, d.log.n - at);
    folder_write(d.path, (struct str){log.p, log.n});
    expect_bad(d.path, i + 1, "its seq is");
    if (i == records)
      break;
    struct str next = line_of(&d, i + 1); /* in the other order */
    buf_clear(&log);
    buf_append(&log, d.log.p, at);
    buf_str(&log, next);
    buf_str(&log, line);
    buf_append(&log, next.p + next.n, d.log.n - at - line.n - next.n);
    folder_write(d.path, (struct str){log.p, log.n});
    expect_bad(d.path, i, "its seq is");
  }
  drive_deinit(&d);
}

/* --- right hashes, wrong records --- */

/* Writes the log anew with the i-th record (from 0) changed. */
static void rewrite(const struct drive *d, size_t index, void (*change)(json_t *record, void *arg),
                    void *arg) {
  buf_auto_t log = {0};
  char hash[SHA256_HEX];
  memcpy(hash, record_line_first_hash, SHA256_HEX);
  JSON_EACH(d->records, i, record) {
    json_auto_t *copy = json_deep_copy(record);
    if (i == index)
      change(copy, arg);
    drive_line(copy, &log, hash);
  }
  folder_write(d->path, (struct str){log.p, log.n});
}

/* Appends the line of a record with a comma behind its n-th bracket that opens a value. False: it
 * has no such bracket. */
static bool put_broken(struct str line, size_t n, struct buf *log, char hash[SHA256_HEX]) {
  size_t start = log->n, body = line.n - 76, at = 0, found = 0; /* 76: ,"hash":"..."} */
  for (size_t i = 0; found <= n && i + 1 < body; i++)
    if (line.p[i] == ':' && (line.p[i + 1] == '[' || line.p[i + 1] == '{')) {
      at = i + 2;
      found++;
    }
  if (found <= n)
    return false;
  buf_append(log, line.p, at);
  buf_putc(log, ',');
  buf_append(log, line.p + at, body - at);
  buf_putc(log, '}');
  record_line_close(log, start, hash);
  return true;
}

/* Lists and objects that are closed, but are no JSON. */
TEST(broken_inside) {
  AUTO(drive_deinit) struct drive d;
  size_t tried = 0;
  drive_everything(&d);
  drive_write(&d);
  for (uint64_t i = 1; i <= json_array_size(d.records); i++)
    for (size_t n = 0; n < 20; n++) {
      buf_auto_t log = {0};
      char hash[SHA256_HEX];
      memcpy(hash, record_line_first_hash, SHA256_HEX);
      for (uint64_t k = 1; k < i; k++) {
        buf_str(&log, line_of(&d, k));
        memcpy(hash, log.p + log.n - 67, SHA256_HEX - 1);
      }
      bool made = put_broken(line_of(&d, i), n, &log, hash);
      folder_write(d.path, buf_view(&log));
      if (made)
        expect_bad(d.path, i, "JSON");
      tried += made;
    }
  assert_true(tried > 40);
}

static void add_unknown(json_t *record, void *arg) {
  (void)arg;
  json_object_set_new(record, "surprise", json_integer(1));
}

static void remove_key(json_t *record, void *arg) {
  json_object_del(record, arg);
}

TEST(unknown_members) {
  static const char *const keys[] = {"v", "ts", "type"};
  AUTO(drive_deinit) struct drive d;
  drive_everything(&d);
  for (size_t i = 0; i < json_array_size(d.records); i++) {
    rewrite(&d, i, add_unknown, NULL);
    expect_bad(d.path, i + 1, "schema: $");
    rewrite(&d, i, remove_key, (void *)keys[i % ARRAY_LEN(keys)]);
    expect_bad(d.path, i + 1, "schema: $");
    rewrite(&d, i, remove_key, (void *)"seq");
    expect_bad(d.path, i + 1, "not the next record");
  }
}

struct change {
  const char *type; /* of the first record of this type */
  const char *key;
  const char *value; /* JSON; NULL removes */
  const char *why;
};

static void apply_change(json_t *record, void *arg) {
  const struct change *c = arg;
  if (c->value == NULL)
    json_object_del(record, c->key);
  else
    json_object_set_new(record, c->key, json_loads(c->value, JSON_DECODE_ANY, NULL));
}

static size_t first_of(const struct drive *d, const char *type) {
  JSON_EACH(d->records, i, record) {
    if (strcmp(json_string_value(json_object_get(record, "type")), type) == 0)
      return i;
  }
  fail_msg("no %s", type);
  return 0;
}

TEST(wrong_members) {
  AUTO(drive_deinit) struct drive d;
  drive_everything(&d);
  DATA_ROWS("audit/verify/wrong_members.yaml", c, type, key, value, why) {
    struct change change = {c.type, c.key, c.value, c.why};
    size_t index = first_of(&d, c.type);
    rewrite(&d, index, apply_change, &change);
    expect_bad(d.path, index + 1, c.why);
  }
}

/* A workflow that was built for one log serves the next one: only if its text is the same, and
 * its hash is compared again. */
TEST(the_same_workflow_again) {
  static const struct change other_hash = {
      "session_start", "workflow_sha256",
      "\"0000000000000000000000000000000000000000000000000000000000000000\"", NULL};
  static const struct change other_workflow = {
      "session_start", "workflow",
      "{\"name\":\"other\",\"movements\":[{\"name\":\"m\",\"command\":[\"true\"],\"rules\":[{"
      "\"condition\":\"when(true)\",\"next\":\"COMPLETE\"}]}]}",
      NULL};
  struct drive d, small;
  drive_everything(&d);
  drive_small(&small);
  for (int round = 0; round < 2; round++) {
    drive_write(&d);
    expect_sound(&d, VERIFY_COMPLETE);
    drive_write(&d);
    expect_sound(&d, VERIFY_COMPLETE);
    rewrite(&d, 0, apply_change, (void *)&other_hash);
    expect_bad(d.path, 1, "workflow_sha256");
    rewrite(&d, 0, apply_change, (void *)&other_workflow);
    expect_bad(d.path, 1, "workflow_sha256");
    drive_write(&small);
    expect_sound(&small, VERIFY_COMPLETE);
  }
  drive_deinit(&small);
  drive_deinit(&d);
}

/* Records of the right shape in an order that no session has. */
TEST(wrong_order) {
  static const char tail[] = "\"v\":1,\"ts\":\"2026-01-01T00:00:00.000Z\"";
  AUTO(drive_deinit) struct drive d;
  buf_auto_t log = {0}, text = {0};
  char hash[SHA256_HEX];
  drive_small(&d);
  uint64_t next = json_array_size(d.records) + 1;
  memcpy(hash, d.hash, SHA256_HEX);
  buf_str(&log, buf_view(&d.log));
  buf_printf(&text, "{\"seq\":%d,\"type\":\"session_resume\",\"reason\":\"user\",%s}", (int)next,
             tail);
  json_t *record = json_loads(text.p, 0, NULL);
  drive_line(record, &log, hash);
  folder_write(d.path, (struct str){log.p, log.n});
  expect_bad(d.path, next, "after session_end");
  json_decref(record);

  buf_clear(&log); /* a log that begins in the middle */
  buf_clear(&text);
  memcpy(hash, record_line_first_hash, SHA256_HEX);
  buf_printf(&text, "{\"seq\":1,\"type\":\"session_resume\",\"reason\":\"user\",%s}", tail);
  record = json_loads(text.p, 0, NULL);
  drive_line(record, &log, hash);
  folder_write(d.path, (struct str){log.p, log.n});
  expect_bad(d.path, 1, "begins with session_start");
  json_decref(record);

  folder_write(d.path, (struct str){"", 0});
  assert_int_equal(check(d.path).state, VERIFY_EMPTY);
  folder_write(d.path, (struct str){"\n", 1});
  expect_bad(d.path, 1, "not a session record");
  buf_clear(&log); /* bytes behind the end */
  buf_str(&log, buf_view(&d.log));
  buf_puts(&log, "x");
  folder_write(d.path, (struct str){log.p, log.n});
  expect_bad(d.path, next, "behind session_end");
}

static void set_call(json_t *record, void *arg) {
  json_object_set_new(record, "call", json_integer(*(int *)arg));
}

static void set_rule(json_t *record, void *arg) {
  json_object_set_new(record, "rule", json_integer(*(int *)arg));
}

/* Sound lines in a sound chain that no session makes: a resume would refuse them. */
TEST(impossible_sessions) {
  AUTO(drive_deinit) struct drive d;
  int number = 77;
  drive_everything(&d);
  drive_write(&d);
  size_t end = first_of(&d, "call_end"), judgment = first_of(&d, "judgment");
  rewrite(&d, end, set_call, &number);
  expect_bad(d.path, end + 1, "its call is not running");
  rewrite(&d, judgment, set_rule, &number);
  expect_bad(d.path, judgment + 1, "its rule is not in the workflow");
}

/* --- references to what is not there --- */

static void set_ref(json_t *record, void *arg) {
  json_t *prompt = json_object_get(record, "prompt");
  json_array_append_new(prompt, json_pack("{ss}", "ref", (const char *)arg));
}

/* The first record of a type that has the member; NULL: any. */
static size_t first_with(const struct drive *d, const char *type, const char *key) {
  JSON_EACH(d->records, i, record) {
    if (strcmp(json_string_value(json_object_get(record, "type")), type) == 0 &&
        (key == NULL || json_object_get(record, key) != NULL))
      return i;
  }
  fail_msg("no %s with %s", type, key ? key : "anything");
  return 0;
}

/* Whoever can compute the hashes can write a prompt that nobody can bring back. */
TEST(dangling_prompts) {
  AUTO(drive_deinit) struct drive d;
  char own[32];
  drive_everything(&d);
  size_t last = 0, calls = 0;
  for (size_t i = 0; i < json_array_size(d.records); i++)
    if (json_object_get(json_array_get(d.records, i), "prompt") != NULL) {
      last = i;
      calls++;
    }
  assert_true(calls > 3);
  DATA_ROWS("audit/verify/dangling_prompts.yaml", c, place, why) {
    rewrite(&d, last, set_ref, (void *)c.place);
    expect_bad(d.path, last + 1, c.why);
  }
  print_into(own, sizeof own, "%zu#/prompt/0", last + 1); /* itself */
  rewrite(&d, last, set_ref, own);
  expect_bad(d.path, last + 1, "not an earlier record");
  rewrite(&d, last, set_ref, (void *)"1#/workflow/movements/1/persona");
  struct verify_result sound = check(d.path);
  assert_int_equal(sound.state, VERIFY_COMPLETE);
}

TEST(other_references) {
  AUTO(drive_deinit) struct drive d;
  drive_everything(&d);
  DATA_ROWS("audit/verify/other_references.yaml", row, type, with, key, value, why) {
    const struct change c = {row.type, row.key, row.value, row.why};
    size_t index = first_with(&d, row.type, row.with);
    rewrite(&d, index, apply_change, (void *)&c);
    expect_bad(d.path, index + 1, row.why);
  }
}

/* A value's calls: those that made and checked it. */
TEST(references_of_a_value) {
  static const char workflow[] =
      "{\"name\":\"w\",\"provider\":\"script\",\"movements\":[{\"name\":\"m\","
      "\"structured_output\":{\"schema\":{\"type\":\"object\",\"required\":[\"n\"]},"
      "\"invariants\":[{\"command\":[\"true\"]}],\"on_failure\":\"escalate\",\"max_reasks\":0},"
      "\"rules\":[{\"condition\":\"done\",\"next\":\"COMPLETE\"}]}]}";
  static const struct {
    const char *type, *key, *value, *why;
  } cases[] = {
      {"check", "call", "9", "its call names call 9"},
      {"check", "runs", "[9]", "its runs names call 9"},
      {"session_stop", "question", "{\"text\":\"?\",\"call\":9}", "its question names call 9"},
      {"structured", "movement", "\"x\"", "its movement is \"x\""},
      {"structured", "call", "9", "its call names call 9"},
  };
  AUTO(drive_deinit) struct drive d;
  drive_init(&d);
  drive_start(&d, workflow, "t", json_object());
  drive_answer(&d, "{\"n\":1}");
  drive_exit(&d, 1, "no");
  assert_int_equal(d.core.status, SESSION_STOPPED);
  drive_event(&d, (struct event){.kind = EVENT_RESUME, .reason = "user"});
  while (d.core.status == SESSION_RUNNING && json_array_size(d.records) < 60) {
    const struct call *last = NULL;
    for (const struct call *c = d.core.turns->calls; c; c = c->next)
      last = c;
    if (last->purpose == PURPOSE_CHECK)
      drive_exit(&d, 0, "");
    else
      drive_answer(&d, "{\"n\":2}");
  }
  drive_write(&d);
  expect_sound(&d, d.core.status == SESSION_ENDED ? VERIFY_COMPLETE : VERIFY_OPEN);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const struct change c = {cases[i].type, cases[i].key, cases[i].value, cases[i].why};
    size_t index = first_of(&d, cases[i].type);
    rewrite(&d, index, apply_change, (void *)&c);
    expect_bad(d.path, index + 1, cases[i].why);
  }
}

TEST(blobs) {
  AUTO(drive_deinit) struct drive d;
  char path[256];
  drive_everything(&d);
  drive_write(&d);
  size_t index = 0;
  while (json_object_get(json_array_get(d.records, index), "text_blob") == NULL)
    index++;
  const json_t *record = json_array_get(d.records, index);
  print_into(path, sizeof path, "%s/blobs/%s", d.dir,
             json_string_value(json_object_get(record, "text_blob")));
  expect_sound(&d, VERIFY_COMPLETE);
  folder_write(path, (struct str){"fixed \xfe it\n", 11});
  expect_bad(d.path, index + 1, "is not what was written");
  unlink(path);
  expect_bad(d.path, index + 1, "blob");
  folder_write(path, (struct str){"fixed \xff it\n", 11});
  expect_sound(&d, VERIFY_COMPLETE);
  const struct change bytes = {"", "text_bytes", "12", ""};
  rewrite(&d, index, apply_change, (void *)&bytes);
  expect_bad(d.path, index + 1, "has 11 bytes, not 12");
}

TEST(no_log) {
  struct verify_result result;
  struct err err;
  assert_false(verify_log(verifier, log_ref("/nonexistent/x.ndjson"), NULL, 0, &result, &err));
  assert_false(verify_log(verifier, log_ref("/tmp"), NULL, 0, &result, &err));
  assert_false(verify_log(verifier, log_ref("/dev/null"), NULL, 0, &result, &err));
}

/* ---- the book
 * -------------------------------------------------------------------------------------------------
 */

TEST(growing_book) {
  AUTO(drive_deinit) struct drive d;
  AUTO(verified_close) struct verified_reader b;
  struct err err;
  json_t *record;
  uint64_t n = 0;
  drive_small(&d);
  size_t first = line_of(&d, 1).n;
  folder_write(d.path, (struct str){d.log.p, first + 10});
  assert_true(verified_open(&b, log_ref(d.path), true, &err));
  while ((record = verified_next(&b)) != NULL) {
    json_decref(record);
    n++;
  }
  assert_int_equal(n, 1);
  assert_int_equal(b.state, VERIFIED_TORN);
  assert_int_equal(b.torn_bytes, 10);
  FILE *f = fopen(d.path, "ae");
  assert_non_null(f);
  size_t second = line_of(&d, 2).n;
  fwrite(d.log.p + first + 10, 1, second - 10, f);
  fclose(f);
  assert_true(verified_again(&b));
  record = verified_next(&b);
  assert_non_null(record);
  assert_int_equal(json_integer_value(json_object_get(record, "seq")), 2);
  json_decref(record);
  assert_null(verified_next(&b));
  assert_int_equal(b.state, VERIFIED_END);
  /* the owner puts a longer file in its place */
  unlink(d.path);
  assert_false(verified_again(&b));
  drive_write(&d);
  assert_true(verified_again(&b));
  for (n = 2; (record = verified_next(&b)) != NULL; n++)
    json_decref(record);
  assert_int_equal(n, json_array_size(d.records));
  for (uint64_t seq = 1; seq <= n; seq++) {
    record = verified_get(&b, seq, &err);
    assert_non_null(record);
    json_object_del(record, "hash");
    assert_true(json_equal(record, json_array_get(d.records, seq - 1)));
    json_decref(record);
  }
  assert_null(verified_get(&b, 0, &err));
  assert_null(verified_get(&b, n + 1, &err));
  assert_false(verified_owned(&b));
  int fd = open(d.path, O_RDWR | O_CLOEXEC);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
  assert_true(verified_owned(&b));
  close(fd);
}

/* Behind a damage the readable records still come, the damaged one among them if it is JSON. */
TEST(damaged_book) {
  AUTO(drive_deinit) struct drive d;
  AUTO(verified_close) struct verified_reader b;
  struct err err;
  json_t *record;
  uint64_t sound = 0, unproven = 0;
  drive_small(&d);
  struct str third = line_of(&d, 3);
  char *digit = d.log.p + (third.p - d.log.p) + 5;
  assert_int_equal(*digit, '1'); /* {"v":1 */
  *digit = '2';
  d.log.p[line_of(&d, 5).p - d.log.p] = 'x'; /* not JSON any more */
  drive_write(&d);
  assert_true(verified_open(&b, log_ref(d.path), true, &err));
  while ((record = verified_next(&b)) != NULL) {
    sound++;
    json_decref(record);
  }
  assert_int_equal(b.state, VERIFIED_DAMAGED);
  while ((record = verified_next_unproven(&b)) != NULL) {
    unproven++;
    json_decref(record);
  }
  assert_int_equal(sound, 2);
  assert_int_equal(unproven, json_array_size(d.records) - 2 - 1);
  record = verified_get(&b, 3, &err);
  assert_non_null(record);
  json_decref(record);
  assert_null(verified_get(&b, 5, &err));
}

TEST_GROUP(setup, teardown)
