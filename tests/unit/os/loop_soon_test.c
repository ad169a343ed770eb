/* Short work goes to the pool together, and each piece is over exactly once. */
#include "os/loop.h"
#include "support/test.h"

enum { WORKS = 40 };

struct piece {
  uv_work_t work;
  _Atomic int begun, ran;
  int over;
  bool again; /* once more from its end */
};

static void piece_begin(uv_work_t *work) {
  struct piece *p = work->data;
  p->begun++;
}

static void piece_run(uv_work_t *work) {
  struct piece *p = work->data;
  assert_int_equal(p->begun, p->ran + 1);
  p->ran++;
}

static void piece_over(uv_work_t *work, int status) {
  struct piece *p = work->data;
  assert_int_equal(status, 0);
  assert_int_equal(p->ran, p->over + 1);
  p->over++;
  if (!p->again)
    return;
  p->again = false;
  loop_work_soon(work->loop, work, piece_begin, piece_run, piece_over);
}

static void piece_send(uv_loop_t *loop, struct piece *p) {
  p->work.data = p;
  loop_work_soon(loop, &p->work, piece_begin, piece_run, piece_over);
}

/* The loop ends by itself, and nothing of it is left. */
TEST(each_piece_is_over_once) {
  struct piece pieces[WORKS] = {0};
  struct err err;
  uv_loop_t loop;
  assert_true(loop_init(&loop, &err));
  for (int round = 1; round <= 3; round++) {
    for (size_t i = 0; i < WORKS; i++)
      piece_send(&loop, &pieces[i]);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    for (size_t i = 0; i < WORKS; i++)
      assert_int_equal(pieces[i].over, round);
  }
  assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(an_end_may_send_more) {
  struct piece pieces[WORKS] = {0};
  struct err err;
  uv_loop_t loop;
  assert_true(loop_init(&loop, &err));
  for (size_t i = 0; i < WORKS; i++) {
    pieces[i].again = i % 2 == 0;
    piece_send(&loop, &pieces[i]);
  }
  assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
  for (size_t i = 0; i < WORKS; i++)
    assert_int_equal(pieces[i].over, i % 2 == 0 ? 2 : 1);
  assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(two_loops_of_a_thread_do_not_mix) {
  struct piece pieces[4] = {0};
  struct err err;
  uv_loop_t loops[2];
  for (size_t i = 0; i < 2; i++)
    assert_true(loop_init(&loops[i], &err));
  for (size_t i = 0; i < 4; i++)
    piece_send(&loops[i % 2], &pieces[i]);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(uv_run(&loops[i], UV_RUN_DEFAULT), 0);
    assert_int_equal(pieces[i].over + pieces[i + 2].over, 2);
    assert_int_equal(uv_loop_close(&loops[i]), 0);
  }
  assert_int_equal(pieces[0].over + pieces[1].over + pieces[2].over + pieces[3].over, 4);
}
