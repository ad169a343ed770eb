/* The number of threads that a user runs, from which a limit on processes is counted. */

#include "os/process_internal.h"
#include "support/test.h"

#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *unused) {
  (void)pthread_mutex_lock(&gate);
  (void)pthread_mutex_unlock(&gate);
  return unused;
}

/* Other programs of the user come and go beside this one, so only the least is known. */
TEST(threads_are_counted_not_processes) {
  enum { COUNT = 40 };
  pthread_t threads[COUNT];
  assert_true(process_threads_of_user() >= 1);
  assert_int_equal(pthread_mutex_lock(&gate), 0);
  for (int i = 0; i < COUNT; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, wait_at_gate, NULL), 0);
  unsigned long count = process_threads_of_user();
  assert_int_equal(pthread_mutex_unlock(&gate), 0);
  for (int i = 0; i < COUNT; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_true(count > (unsigned long)COUNT);
}
