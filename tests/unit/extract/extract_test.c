/* The extractor: its rules one by one, the corpora, texts that once broke it, and stress. */
#include "extract/extract.h"
#include "extract/repair.h"
#include "json/scan.h"

#include "base/memory.h"
#include "conformance/extract_check.h"
#include "format/json_object.h"
#include "support/data.h"
#include "support/leave.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Under a sanitizer, and where nothing is optimised (coverage), times say nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(undefined_behavior_sanitizer)
#define SLOW_BUILD 1
#endif
#endif
#ifndef SLOW_BUILD
#define SLOW_BUILD 0
#endif

static const char judgment[] =
    "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":\"integer\"},\"reason\":{\"type\":"
    "\"string\"}},\"required\":[\"step\",\"reason\"],\"additionalProperties\":false}";

static struct extract_check check_for(json_t *schema) {
  return (struct extract_check){schema, extract_check_valid, extract_check_nearness,
                                extract_check_echo, extract_check_key};
}

static json_t *parse(const char *text, size_t n) {
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r;
  jscan_init(&js, text, n);
  enum jscan_code code = jscan_value(&js, 0, &r);
  return code == JSCAN_OK ? r.value : NULL;
}

/* numbers by value, as the scorer has it: 1 is 1.0 */
static bool same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b))
    return json_number_value(a) == json_number_value(b);
  if (json_typeof(a) != json_typeof(b))
    return false;
  if (json_is_array(a)) {
    if (json_array_size(a) != json_array_size(b))
      return false;
    for (size_t i = 0; i < json_array_size(a); i++)
      if (!same(json_array_get(a, i), json_array_get(b, i)))
        return false;
    return true;
  }
  if (json_is_object(a)) {
    if (json_object_size(a) != json_object_size(b))
      return false;
    JSON_MEMBERS((json_t *)(uintptr_t)a, key, v) {
      const json_t *other = json_object_get(b, key);
      if (!other || !same(v, other))
        return false;
    }
    return true;
  }
  return json_equal(a, b);
}

TEST(test_rules) {
  json_auto_t *schema = parse(judgment, strlen(judgment));
  struct extract_check check = check_for(schema);
  DATA_ROWS("extract/rules.yaml", c, text, want, flags, expected, stage, error) {
    struct extract_opts opts = {.want = data_among(c.want, "any object array"),
                                .check = strstr(c.flags, "schema") ? &check : NULL,
                                .repair = strstr(c.flags, "repair") != NULL,
                                .explain = true};
    AUTO(extract_result_deinit) struct extract_result r;
    enum extract_status st = extract(c.text, strlen(c.text), &opts, &r);
    json_auto_t *expected = c.expected ? parse(c.expected, strlen(c.expected)) : NULL;
    bool ok = st == EXTRACT_NOT_FOUND && strcmp(extract_code_name(r.error.code), c.error) == 0;
    if (expected)
      ok = st == EXTRACT_OK && r.valid && same(r.value, expected) &&
           r.stage == data_among(c.stage, "none direct code_block brace");
    if (!ok) {
      char *got = r.value ? json_dumps(r.value, JSON_ENCODE_ANY) : NULL;
      fail_msg("rule %zu: %s\n got %s, stage %s, error %s (%s)", c.at, c.text,
               got ? got : "nothing", extract_stage_name(r.stage), extract_code_name(r.error.code),
               r.error.message);
    }
  }
}

TEST(test_nearest) {
  json_auto_t *schema = parse(judgment, strlen(judgment));
  struct extract_check check = check_for(schema);
  struct extract_opts opts = {.want = EXTRACT_WANT_OBJECT, .check = &check, .explain = true};
  static const char text[] = "{\"x\":1} {\"step\":\"two\",\"reason\":\"r\"} {\"step\":3} {}";
  AUTO(extract_result_deinit) struct extract_result r;
  assert_int_equal(extract(text, strlen(text), &opts, &r), EXTRACT_OK);
  assert_false(r.valid);
  assert_string_equal(json_string_value(json_object_get(r.value, "step")), "two");
  assert_int_equal(r.error.code, EXTRACT_ERR_NOT_VALID);
  assert_int_equal(r.note_count, 4);
  assert_string_equal(r.notes[1].outcome, "nearest");
}

TEST(test_repairs_are_reported) {
  struct extract_opts opts = {.want = EXTRACT_WANT_OBJECT, .repair = true};
  static const char text[] = "{a: 'x', \"b\": tru";
  AUTO(extract_result_deinit) struct extract_result r;
  assert_int_equal(extract(text, strlen(text), &opts, &r), EXTRACT_OK);
  assert_true(r.repaired);
  assert_true(r.truncated);
  assert_true(r.repair_count >= 4);
  assert_string_equal(r.repairs[0].name, "unquoted_key");
  assert_int_equal(r.repairs[0].offset, 1);
}

TEST(test_repair_is_bounded) {
  struct buf text = {0};
  struct repair_result r;
  for (int i = 0; i < 200; i++)
    buf_puts(&text, "{'a': 'it's \"so\" here', 'b': ");
  const struct repair_job job = {.text = text.p, .limit = text.n};
  assert_true(repair_value(&job, 1u << 20, &r));
  size_t work = r.work_used;
  repair_result_deinit(&r);
  assert_true(work > 0 && work < 1u << 20);
  assert_false(repair_value(&job, work / 2, &r));
  assert_true(r.work_used <= work / 2);
  repair_result_deinit(&r);
  buf_deinit(&text);
  for (size_t depth = JSCAN_DEPTH_MAX; depth <= JSCAN_DEPTH_MAX + 1; depth++) {
    for (size_t i = 0; i < depth; i++)
      buf_puts(&text, "[");
    const struct repair_job nested = {.text = text.p, .limit = text.n};
    bool read = repair_value(&nested, 1u << 20, &r);
    assert_int_equal(read, depth <= JSCAN_DEPTH_MAX);
    if (read)
      assert_true(r.truncated);
    repair_result_deinit(&r);
    buf_deinit(&text);
  }
}

/* ---- corpora ---- */

struct score {
  size_t n, exact, wrong;
};

static void score_file(const char *path, struct score score[3], bool verbose) {
  FILE *in = fopen(path, "r");
  assert_non_null(in);
  char *line = NULL;
  size_t size = 0;
  ssize_t len;
  while ((len = getline(&line, &size, in)) > 0) {
    json_auto_t *c = parse(line, (size_t)len);
    assert_non_null(c);
    const char *class = json_string_value(json_object_get(c, "class"));
    const json_t *text = json_object_get(c, "text"), *expected = json_object_get(c, "expected");
    struct extract_check check = check_for(json_object_get(c, "schema"));
    struct extract_opts opts = {.repair = true, .check = check.ctx ? &check : NULL};
    assert_true(extract_want_parse(json_string_value(json_object_get(c, "want")), &opts.want));
    AUTO(extract_result_deinit) struct extract_result r;
    (void)extract(json_string_value(text), json_string_length(text), &opts, &r);
    const json_t *got = r.valid ? r.value : NULL;
    static const char classes[] = "srn"; /* strict, repair, none */
    struct score *s = &score[strchr(classes, class[0]) - classes];
    s->n++;
    bool ok = !got && json_is_null(expected);
    if (got && !json_is_null(expected)) {
      ok = same(got, expected);
      const json_t *accept = json_object_get(c, "accept");
      for (size_t i = 0; i < json_array_size(accept); i++)
        ok = ok || same(got, json_array_get(accept, i));
    }
    s->exact += ok;
    s->wrong += !ok && got;
    if (!ok && verbose)
      print_message("not right: %s\n", json_string_value(text));
  }
  free(line);
  fclose(in);
}

/* A key without a value was never said: no null is made up for it. A schema tells what may be
 * missing; without one only the end of a cut text is left out. */
TEST(test_values_that_were_never_said) {
  static const char schema_text[] =
      "{\"type\":\"object\",\"properties\":{\"step\":{\"type\":[\"integer\",\"null\"]}},"
      "\"required\":[\"step\"]}";
  json_auto_t *schema = parse(schema_text, sizeof schema_text - 1);
  struct extract_check check = check_for(schema);
  DATA_ROWS("extract/values_that_were_never_said.yaml", c, text, with, without)
    for (int with = 0; with < 2; with++) {
      const char *expected = with ? c.with : c.without;
      struct extract_opts opts = {
          .repair = true, .want = EXTRACT_WANT_OBJECT, .check = with ? &check : NULL};
      AUTO(extract_result_deinit) struct extract_result r;
      (void)extract(c.text, strlen(c.text), &opts, &r);
      json_auto_t *wanted = expected ? parse(expected, strlen(expected)) : NULL;
      if (r.valid != (expected != NULL) || (r.valid && !json_equal(r.value, wanted)))
        fail_msg("%s %s a schema", c.text, with ? "with" : "without");
    }
}

TEST(test_own_cases) {
  struct score s[3] = {0};
  score_file(SEGUE_SOURCE_DIR "/tests/data/extract/extract-own.ndjson", s, true);
  for (int i = 0; i < 3; i++) {
    assert_true(s[i].n > 0);
    assert_int_equal(s[i].exact, s[i].n);
  }
}

static const char *shared(const char *name, char path[512]) {
  const char *dir = getenv("SEGUE_SHARED");
  snprintf(path, 512, "%s/data/%s", dir ? dir : SEGUE_SOURCE_DIR "/../shared", name);
  FILE *f = fopen(path, "r");
  if (!f)
    return NULL;
  fclose(f);
  return path;
}

TEST(test_public_cases) {
  char path[512];
  if (!shared("extract-public.ndjson", path)) {
    print_message("skipped: no shared data\n");
    skip();
  }
  struct score s[3] = {0};
  score_file(path, s, false);
  static const char *const names[] = {"strict", "repair", "none"};
  for (int i = 0; i < 3; i++)
    print_message("%-6s n=%zu exact %.1f %% wrong %.1f %%\n", names[i], s[i].n,
                  100.0 * (double)s[i].exact / (double)s[i].n,
                  100.0 * (double)s[i].wrong / (double)s[i].n);
  assert_true(s[0].exact * 100 >= s[0].n * 99 && s[0].wrong == 0);
  /* 15 of its labels cut off the last newline of a text, 8 want a value where none was said, and 15
   * take a number that ends with the text for a whole one */
  assert_true(s[1].exact * 100 >= s[1].n * 84 && s[1].wrong * 100 <= s[1].n * 11);
  assert_int_equal(s[2].exact, s[2].n);
}

/* inputs that once broke something: no crash, and the same invariants as the fuzz target */
TEST(test_regressions) {
  DIR *dir = opendir(SEGUE_SOURCE_DIR "/tests/data/extract");
  assert_non_null(dir);
  struct dirent *e;
  while ((e = readdir(dir))) {
    if (strncmp(e->d_name, "fuzz-", 5) != 0)
      continue;
    char path[1024], *text = malloc(1u << 20);
    assert_non_null(text);
    snprintf(path, sizeof path, SEGUE_SOURCE_DIR "/tests/data/extract/%s", e->d_name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, 1u << 20, f);
    fclose(f);
    for (int want = 0; want < 3; want++) {
      struct extract_opts opts = {.want = (enum extract_want)want, .repair = true, .explain = true};
      AUTO(extract_result_deinit) struct extract_result r;
      if (extract(text, n, &opts, &r) == EXTRACT_OK) {
        char_auto_t *dump = json_dumps(r.value, JSON_ENCODE_ANY);
        assert_non_null(dump);
      }
    }
    free(text);
  }
  closedir(dir);
}

/* ---- stress: the specs of extract-stress.json ---- */

struct stress_text {
  char *p;
  size_t n, size;
};

static void add(struct stress_text *t, const char *p, size_t n) {
  if (t->n + n > t->size) {
    t->size = t->n + n + (t->n + n) / 4 + 4096;
    t->p = realloc(t->p, t->size);
    assert_non_null(t->p);
  }
  memcpy(t->p + t->n, p, n);
  t->n += n;
}

static void repeat(struct stress_text *t, const char *piece, size_t times) {
  for (size_t i = 0; i < times; i++)
    add(t, piece, strlen(piece));
}

static void big_object(struct stress_text *t) {
  char item[256];
  repeat(t, "```json\n{\"items\":[", 1);
  for (int i = 0; i < 6000; i++) {
    int n = snprintf(
        item, sizeof item,
        "%s{\"id\":%d,\"text\":\"say \\\"hello\\\" to { and } in item %d, at some length so that "
        "the whole is a megabyte of text; the rest is filling { \\\\ } \",\"ok\":true}",
        i ? ",\n" : "", i, i);
    add(t, item, (size_t)n);
  }
  repeat(t, "]}\n```\n", 1);
}

enum expect { NOTHING, DEPTH, STEP1, STEP2, ITEMS, CUT_ITEMS, SLASHES };

static void stress_text(int id, struct stress_text *t) {
  switch (id) {
  case 1:
    repeat(t, "{", 10000000);
    break;
  case 2:
    repeat(t, "{\"a\":", 200000);
    break;
  case 3:
    repeat(t, "[", 100000);
    break;
  case 4:
    repeat(t, "{\"", 500000);
    break;
  case 5:
    repeat(t, "```json\n{\n", 100000);
    break;
  case 6:
    repeat(t, "<think>{", 125000);
    break;
  case 7:
    repeat(t, "He said \"take {option 7} or the 24\" one, and {option 8} too. ", 1000000 / 60);
    repeat(t, "\n```json\n{\"step\":2,\"reason\":\"ok\"}\n```\n", 1);
    break;
  case 8:
    big_object(t);
    break;
  case 9:
    big_object(t);
    t->n -= 100;
    break;
  case 10:
    repeat(t, "{\"a\":{\"b\":[", 100000);
    repeat(t, "1", 1);
    repeat(t, "]}}", 100000);
    break;
  case 11:
    repeat(t, "{\"a\":\"", 1);
    repeat(t, "\\\\", 5000000);
    repeat(t, "\"}", 1);
    break;
  case 12: {
    uint32_t x = 2463534242u;
    for (size_t i = 0; i < 10000000; i++) {
      x ^= x << 13;
      x ^= x >> 17;
      x ^= x << 5;
      char c = (char)(x >> 11);
      add(t, &c, 1);
    }
    repeat(t, "{\"step\":1,\"reason\":\"x\"}", 1);
    break;
  }
  case 13:
    repeat(t, "{}", 500000);
    break;
  default:
    repeat(t, "{\"step\":1,\"reason\":\"x\"}\n", 39999);
    repeat(t, "{\"step\":2,\"reason\":\"x\"}\n", 1);
    break;
  }
}

static long peak_kb(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool stress_ok(enum expect expect, bool repair, enum extract_status st,
                      const struct extract_result *r) {
  const json_t *step = json_object_get(r->value, "step"),
               *items = json_object_get(r->value, "items");
  switch (expect) {
  case NOTHING:
    return st == EXTRACT_NOT_FOUND;
  case DEPTH:
    return st == EXTRACT_NOT_FOUND && r->error.code == EXTRACT_ERR_DEPTH_LIMIT;
  case STEP1:
    return st == EXTRACT_OK && json_integer_value(step) == 1;
  case STEP2:
    return st == EXTRACT_OK && json_integer_value(step) == 2;
  case ITEMS:
    return st == EXTRACT_OK && json_array_size(items) == 6000 && !r->repaired;
  case CUT_ITEMS:
    if (!repair)
      return st == EXTRACT_NOT_FOUND && r->error.code == EXTRACT_ERR_TRUNCATED;
    return st == EXTRACT_OK && json_array_size(items) == 6000 && r->truncated && r->repaired;
  case SLASHES:
    return st == EXTRACT_OK && json_string_length(json_object_get(r->value, "a")) == 5000000;
  }
  return false;
}

static const struct spec {
  int max_ms;
  enum expect expect;
  bool schema;
} specs[] = {{200, NOTHING, false}, {200, NOTHING, false}, {50, NOTHING, false},
             {200, NOTHING, false}, {200, NOTHING, false}, {200, NOTHING, false},
             {100, STEP2, false},   {150, ITEMS, false},   {300, CUT_ITEMS, false},
             {300, DEPTH, false},   {200, SLASHES, false}, {500, STEP1, false},
             {200, NOTHING, true},  {300, STEP2, false}};

/* in a process of its own, so that its peak memory can be read */
static bool stress(int i, bool repair) {
  json_auto_t *schema = parse(judgment, strlen(judgment));
  struct extract_check check = check_for(schema);
  struct stress_text t = {0};
  stress_text(i + 1, &t);
  struct extract_opts opts = {
      .want = EXTRACT_WANT_OBJECT, .check = specs[i].schema ? &check : NULL, .repair = repair};
  double start = cpu_ms();
  struct extract_result r;
  enum extract_status st = extract(t.p, t.n, &opts, &r);
  double ms = cpu_ms() - start;
  size_t peak = (size_t)peak_kb(), allowed = 8 * t.n / 1024 + 64 * 1024;
  bool ok = stress_ok(specs[i].expect, repair, st, &r);
  /* A machine that is shared may be three times as slow; what grows with the square is not. */
  bool in_budget = SLOW_BUILD || (ms <= 3 * specs[i].max_ms && peak <= allowed);
  printf("s%02d %s %6.1f ms of %d, peak %zu KiB of %zu, %s%s%s%s\n", i + 1,
         repair ? "repair" : "strict", ms, specs[i].max_ms, peak, allowed,
         st == EXTRACT_OK ? "value" : extract_code_name(r.error.code),
         r.truncated ? " truncated" : "", ok ? "" : " WRONG", in_budget ? "" : " OVER BUDGET");
  fflush(stdout);
  extract_result_deinit(&r);
  free(t.p);
  return ok && in_budget;
}

TEST(test_stress) {
  fflush(stdout);
  bool ok = true;
  for (int k = 0; k < 28; k++) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
      leave(stress(k % 14, k >= 14) ? 0 : 1);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  assert_true(ok);
}
