/* Things in the order of their ids: as a sorted array says, and a queue that moves nothing. */
#include "daemon/entry.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THINGS = 300, STEPS = 20000, LIVE = 50 };

struct thing {
  char id[16];
  bool there;
};

static struct thing things[THINGS]; /* in the order of their ids */

static void make_things(void) {
  for (unsigned i = 0; i < THINGS; i++) {
    print_into(things[i].id, sizeof things[i].id, "%06u", i);
    things[i].there = false;
  }
}

static void agrees(const struct id_list *list) {
  size_t n = 0;
  for (size_t i = 0; i < THINGS; i++) {
    assert_int_equal(id_list_before(list, things[i].id), n);
    assert_ptr_equal(id_list_find(list, things[i].id), things[i].there ? &things[i] : NULL);
    if (things[i].there)
      assert_ptr_equal(id_list_at(list, n++), &things[i]);
  }
  assert_int_equal(list->count, n);
  assert_null(id_list_at(list, n));
}

TEST(any_order) {
  struct id_list list = {0};
  unsigned seed = 1;
  make_things();
  agrees(&list);
  for (unsigned step = 0; step < STEPS; step++) {
    seed = seed * 1103515245u + 12345u;
    struct thing *t = &things[(seed >> 16) % THINGS];
    if (t->there)
      id_list_remove(&list, t);
    else
      id_list_add(&list, t);
    t->there = !t->there;
    if (step % 97 == 0)
      agrees(&list);
  }
  agrees(&list);
  id_list_deinit(&list);
  assert_int_equal(list.count, 0);
}

/* A queue: its room is bounded by what waits at a time, however much has passed. */
TEST(a_queue_stays_small) {
  AUTO(id_list_deinit) struct id_list list = {0};
  struct thing *ring = calloc(LIVE, sizeof *ring);
  for (unsigned i = 0; i < STEPS; i++) {
    struct thing *t = &ring[i % LIVE];
    if (i >= LIVE) {
      assert_ptr_equal(id_list_at(&list, 0), t);
      id_list_remove(&list, t);
    }
    print_into(t->id, sizeof t->id, "%06u", i);
    id_list_add(&list, t);
    assert_ptr_equal(id_list_at(&list, list.count - 1), t);
  }
  assert_int_equal(list.count, LIVE);
  assert_true(list.cap <= 4 * LIVE);
  free(ring);
}

TEST(the_youngest_first) {
  AUTO(id_list_deinit) struct id_list list = {0};
  make_things();
  for (size_t i = THINGS; i-- > 0;) {
    id_list_add(&list, &things[i]);
    things[i].there = true;
  }
  agrees(&list);
  for (size_t i = 0; i < THINGS; i++) {
    id_list_remove(&list, &things[i]);
    things[i].there = false;
  }
  agrees(&list);
  id_list_add(&list, &things[7]); /* there is room in front of it, and behind it perhaps none */
  things[7].there = true;
  agrees(&list);
}
