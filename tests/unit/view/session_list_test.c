/* Filters and orders of many sessions, as a person writes them. */
#include "base/limits.h"
#include "store/index.h"
#include "support/folder.h"
#include "support/test.h"
#include "view/session_list.h"

#include <stdio.h>
#include <string.h>

TEST(words) {
  static const struct {
    const char *text, *words[8];
  } cases[] = {
      {"", {NULL}},
      {"   ", {NULL}},
      {"one", {"one"}},
      {"  one  two ", {"one", "two"}},
      {"1 2 3 4 5 6 7", {"1", "2", "3", "4", "5", "6", "7"}},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct view_filter f = {0};
    struct err err = {0};
    assert_true(view_filter_words(&f, cases[i].text, &err));
    for (size_t k = 0; k < 8; k++) {
      if (cases[i].words[k] == NULL) {
        assert_null(f.words[k]);
        break;
      }
      assert_string_equal(f.words[k], cases[i].words[k]);
    }
  }
}

TEST(filters) {
  struct view_filter f;
  struct err err = {0};
  assert_true(view_filter_read(&f, "status:running workflow:demo an ant", 1000000, &err));
  assert_string_equal(f.words[0], "an");
  assert_string_equal(f.words[1], "ant");
  assert_null(f.words[2]);
}

TEST(refused) {
  static const char *const filters_of[] = {"status:odd", "since:never"};
  char longer[600];
  const char *const texts[] = {"1 2 3 4 5 6 7 8", longer};
  struct view_filter f;
  struct err err = {0};
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  for (size_t i = 0; i < ARRAY_LEN(filters_of); i++) {
    if (view_filter_read(&f, filters_of[i], 1000000, &err))
      fail_msg("\"%s\" is taken", filters_of[i]);
    assert_true(err.text[0] != '\0');
  }
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    f = (struct view_filter){0};
    assert_false(view_filter_words(&f, texts[i], &err));
    assert_false(view_filter_read(&f, texts[i], 1000000, &err));
  }
}

TEST(orders) {
  enum view_sort sort;
  bool least_first;
  for (int i = 0; i < VIEW_SORT_COUNT; i++) {
    char word[40];
    print_into(word, sizeof word, "-%s", view_sort_name((enum view_sort)i));
    assert_true(view_sort_read(word + 1, &sort, &least_first));
    assert_int_equal(sort, i);
    assert_false(least_first);
    assert_true(view_sort_read(word, &sort, &least_first));
    assert_true(least_first);
  }
  assert_false(view_sort_read("odd", &sort, &least_first));
  assert_false(view_sort_read("--cost", &sort, &least_first));
}

/* --- pages of a store --- */

enum { LOG_COUNT = LIMIT_INDEX_LEAST_COUNT + 50, ROUNDS = 12, PAGE = 20 };

static unsigned luck = 7;

static unsigned roll(unsigned n) {
  luck = luck * 1103515245u + 12345u;
  return (luck >> 16) % n;
}

static void id_of(unsigned i, char id[STORE_ID_BYTES]) {
  print_into(id, STORE_ID_BYTES, "0199%04x-0000-7000-8000-000000000000", i);
}

static const char *log_path(const char *dir, unsigned i) {
  char name[60];
  id_of(i, name);
  (void)strcat(name, ".ndjson");
  return folder_path(dir, name);
}

/* One of a few kinds, some of the same length. */
static void write_log(const char *dir, unsigned i, unsigned kind) {
  static const char *const ends[] = {"session_end\",\"outcome\":\"complete",
                                     "session_end\",\"outcome\":\"failed",
                                     "session_stop\",\"reason\":\"interrupted", "turn_start"};
  static const char *const methods[] = {"when", "ai_judge"};
  buf_auto_t text = {0};
  char id[STORE_ID_BYTES];
  id_of(i, id);
  buf_printf(&text,
             "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-02T03:04:%02u.000Z\",\"type\":"
             "\"session_start\",\"session\":\"%s\",\"task\":\"task %u\",\"workflow\":{\"name\":"
             "\"flow%u\"},\"config\":{},\"hash\":\"%064d\"}\n",
             kind % 60, id, kind % 10, kind % 2, 1);
  buf_printf(&text,
             "{\"v\":1,\"seq\":2,\"ts\":\"2026-01-02T03:05:00.000Z\",\"type\":\"judgment\","
             "\"turn\":1,\"rule\":1,\"method\":\"%s\",\"hash\":\"%064d\"}\n",
             methods[kind / 7 % 2], 2);
  buf_printf(&text,
             "{\"v\":1,\"seq\":3,\"ts\":\"2026-01-02T03:06:%02u.000Z\",\"type\":\"%s\",\"turn\":"
             "%u,\"spent\":{\"input\":%u,\"output\":1},\"hash\":\"%064d\"}\n",
             kind % 50, ends[kind / 3 % 4], 1 + kind % 3, 100 + kind % 5, 3);
  folder_write(log_path(dir, i), buf_view(&text));
}

/* Changes the folder in one of the ways in which other programs do. */
static void change(const char *dir) {
  unsigned i = roll(LOG_COUNT);
  switch (roll(5)) {
  case 0:
    (void)unlink(log_path(dir, i));
    break;
  case 1: /* one that is set aside, and one that takes its place */
    if (rename(log_path(dir, i), folder_path(dir, "aside")) == 0)
      write_log(dir, i, roll(1000));
    break;
  case 2: { /* torn */
    struct stat st;
    if (stat(log_path(dir, i), &st) == 0)
      assert_int_equal(truncate(log_path(dir, i), st.st_size - (off_t)roll(90)), 0);
    break;
  }
  default:
    write_log(dir, i, roll(1000));
  }
}

static void assert_same_text(struct str a, struct str b) {
  assert_int_equal(a.n, b.n);
  assert_memory_equal(a.n > 0 ? a.p : "", b.n > 0 ? b.p : "", a.n);
}

static void assert_same_row(const struct view_row *a, const struct view_row *b) {
  assert_string_equal(a->id, b->id);
  assert_int_equal(a->class, b->class);
  assert_same_text(a->workflow, b->workflow);
  assert_same_text(a->task, b->task);
  assert_same_text(a->movement, b->movement);
  assert_same_text(a->status, b->status);
  assert_same_text(a->message, b->message);
  assert_int_equal(a->started_ms, b->started_ms);
  assert_int_equal(a->updated_ms, b->updated_ms);
  assert_int_equal(a->turns, b->turns);
  assert_int_equal(a->tokens, b->tokens);
  assert_memory_equal(a->methods, b->methods, sizeof a->methods);
}

static void assert_in_order(const struct session_list *f, const struct view_filter *by) {
  for (size_t i = 1; i < f->count; i++) {
    const struct view_row *a = &f->rows[i - 1], *b = &f->rows[i];
    int64_t left = by->sort == VIEW_SORT_TOKENS ? a->tokens : a->started_ms;
    int64_t right = by->sort == VIEW_SORT_TOKENS ? b->tokens : b->started_ms;
    if (by->sort == VIEW_SORT_NONE)
      left = right;
    assert_true(by->least_first ? left <= right : left >= right);
    if (left == right)
      assert_true(strcmp(a->id, b->id) > 0);
  }
}

/* Compares a page that the index helped with to one that was read from the logs alone. */
static void compare_page(const char *dir, const char *text, const char *sort) {
  AUTO(session_list_deinit) struct session_list with = {0}, without = {0};
  struct view_filter filter;
  struct store store;
  struct err err;
  char path[600];
  store_at(&store, dir);
  print_into(path, sizeof path, "%s/" INDEX_NAME, dir);
  assert_true(view_filter_read(&filter, text, 1, &err));
  assert_true(view_sort_read(sort, &filter.sort, &filter.least_first));
  filter.max = PAGE;
  assert_true(session_list_page(&with, &store, &filter, &err));
  (void)rename(path, folder_path(dir, "away"));
  assert_true(session_list_page(&without, &store, &filter, &err));
  (void)rename(folder_path(dir, "away"), path);
  assert_int_equal(with.count, without.count);
  for (size_t i = 0; i < with.count; i++)
    assert_same_row(&with.rows[i], &without.rows[i]);
  assert_in_order(&with, &filter);
}

TEST(indexed_pages) {
  static const char *const texts[] = {"",
                                      "method:ai_judge",
                                      "status:open,complete",
                                      "workflow:flow1",
                                      "task 3",
                                      "status:stopped provider:none"};
  static const char *const sorts[] = {"", "tokens", "-tokens", "-started"};
  char *dir = folder_make();
  struct store store;
  bool more;
  for (unsigned i = 0; i < LOG_COUNT; i++)
    write_log(dir, i, roll(1000));
  store_at(&store, dir);
  for (int k = 0; k < ROUNDS; k++) {
    for (unsigned n = roll(5); n > 0; n--)
      change(dir);
    (void)index_refresh(&store, LOG_COUNT, &more);
    if (k % 2 == 0) { /* what it does not know */
      (void)unlink(log_path(dir, roll(LOG_COUNT)));
      write_log(dir, LOG_COUNT + (unsigned)k, roll(1000));
    }
    for (size_t t = 0; t < ARRAY_LEN(texts); t++)
      compare_page(dir, texts[t], sorts[roll(ARRAY_LEN(sorts))]);
  }
  folder_remove(dir);
}
