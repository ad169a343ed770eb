/* The queue's end; how often a log that fails is opened again, and after which pauses. */
#include "base/limits.h"
#include "daemon/sessions_internal.h"
#include "provider/registry.h"
#include "support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static const char id[] = "01990000-0000-7000-8000-00000000aaaa";
static const char log_text[] =
    "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_start\",\"session\":"
    "\"01990000-0000-7000-8000-00000000aaaa\",\"workflow\":{\"name\":\"w\"},\"config\":"
    "{\"submitted\":true}}\n";

struct fixture {
  uv_loop_t loop;
  struct store store;
  struct host host;
  struct provider_registry *registry;
  struct launch_env env;
  struct sessions sessions;
  struct daemon_entry *entry; /* it waits in the queue */
  unsigned changes;
  char *dir;
};

static void on_changed(void *ctx, struct daemon_entry *e) {
  struct fixture *f = ctx;
  (void)e;
  f->changes++;
}

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err err;
  f->dir = folder_make();
  folder_put(f->dir, "01990000-0000-7000-8000-00000000aaaa.ndjson", str_from(log_text));
  assert_int_equal(setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1), 0);
  assert_int_equal(uv_loop_init(&f->loop), 0);
  assert_true(store_open(&f->store, f->dir, &err));
  f->registry = registry_new(NULL);
  assert_true(host_init(&f->host, &f->loop, &f->store, f->registry, &err));
  f->env.store = &f->store;
  sessions_init(&f->sessions, &f->host, &f->env, NULL, 0, on_changed, f);
  assert_int_equal(sessions_recover(&f->sessions, &err), 1);
  f->entry = sessions_find(&f->sessions, id);
  assert_non_null(f->entry);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  sessions_close(&f->sessions);
  host_deinit(&f->host);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f->loop), 0);
  registry_free(f->registry);
  folder_remove(f->dir);
  free(f);
  return 0;
}

static bool fails(const struct fixture *f, enum err_code code) {
  struct err err;
  (void)err_set(&err, code, "the disk");
  return entry_mend_later(f->entry, &err);
}

static void pauses_grow_to_the_last_try(void **state) {
  struct fixture *f = *state;
  for (unsigned i = 0; i < LIMIT_MEND_COUNT; i++) {
    uint64_t wait_ms = (uint64_t)LIMIT_MEND_MS << i;
    uint64_t now = uv_now(&f->loop);
    assert_true(fails(f, i % 2 ? ERR_FULL : ERR_IO));
    assert_int_equal(f->entry->state, ENTRY_BROKEN);
    assert_int_equal(f->entry->not_before_ms - now,
                     wait_ms < LIMIT_MEND_MAX_MS ? wait_ms : LIMIT_MEND_MAX_MS);
    assert_int_equal(f->changes, i + 1);
  }
  assert_false(fails(f, ERR_IO));
  f->entry->brief.turns++; /* it came further: all tries again */
  assert_true(fails(f, ERR_IO));
}

static void a_person_has_a_try_more(void **state) {
  struct fixture *f = *state;
  for (unsigned i = 0; i < LIMIT_MEND_COUNT; i++)
    assert_true(fails(f, ERR_IO));
  entry_mend_soon(f->entry);
  assert_int_equal(f->entry->not_before_ms, 0);
  assert_true(fails(f, ERR_IO));
  assert_false(fails(f, ERR_IO));
}

static void only_the_disk_is_waited_for(void **state) {
  struct fixture *f = *state;
  assert_false(fails(f, ERR_CORRUPT));
  assert_false(fails(f, ERR_LOCKED));
  f->sessions.draining = true;
  assert_false(fails(f, ERR_IO));
  f->sessions.draining = false;
  f->entry->brief.seq = 0; /* it had not begun: nothing is lost */
  assert_false(fails(f, ERR_IO));
  assert_int_equal(f->changes, 0);
}

static void the_queue_has_an_end(void **state) {
  struct fixture *f = *state;
  struct launch launch = {0};
  struct err err = {0};
  struct list *queue = &f->sessions.lists[ENTRY_QUEUED];
  size_t count = queue->count;
  queue->count = LIMIT_QUEUE_COUNT;
  assert_null(sessions_submit(&f->sessions, &launch, &err));
  assert_int_equal(err.code, ERR_LIMIT);
  queue->count = count;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(pauses_grow_to_the_last_try),
      TEST(a_person_has_a_try_more),
      TEST(only_the_disk_is_waited_for),
      TEST(the_queue_has_an_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
