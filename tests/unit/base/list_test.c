/* Lists keep their order, count and ends whatever is put in and taken out. */
#include "base/list.h"

#include "base/err.h"
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct item {
  char name;
  struct list_node in_list, in_other;
};

static void check(const struct list *list, const char *names) {
  char got[16] = "", back[16] = "";
  size_t n = 0;
  LIST_EACH(struct item, item, in_list, list) {
    assert_true(list_holds(list, &item->in_list));
    got[n++] = item->name;
  }
  assert_string_equal(got, names);
  assert_int_equal(list->count, n);
  for (const struct list_node *node = list->last; node != NULL; node = node->prev)
    back[--n] = LIST_ITEM(node, struct item, in_list)->name;
  assert_string_equal(back, names);
}

TEST(order_and_ends) {
  struct list list = {0}, other = {0};
  struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'}, d = {.name = 'd'};
  check(&list, "");
  assert_null(LIST_FIRST(struct item, in_list, &list));
  assert_null(LIST_LAST(struct item, in_list, &list));
  list_push_back(&list, &b.in_list);
  check(&list, "b");
  list_push_front(&list, &a.in_list);
  list_push_back(&list, &d.in_list);
  list_insert(&list, &b.in_list, &c.in_list);
  check(&list, "abcd");
  assert_ptr_equal(LIST_FIRST(struct item, in_list, &list), &a);
  assert_ptr_equal(LIST_LAST(struct item, in_list, &list), &d);
  list_push_back(&other, &b.in_other); /* in two lists at once */
  list_remove(&list, &b.in_list);
  assert_true(list_holds(&other, &b.in_other));
  check(&list, "acd");
  list_remove(&list, &a.in_list);
  list_remove(&list, &d.in_list);
  check(&list, "c");
  list_push_back(&list, &a.in_list); /* again, after it was taken out */
  check(&list, "ca");
}

TEST(taken_out_while_walked) {
  struct item items[6] = {0};
  for (unsigned gone = 0; gone < 1u << ARRAY_LEN(items); gone++) {
    struct list list = {0};
    char left[8] = "";
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(items); i++) {
      items[i] = (struct item){.name = (char)('a' + i)};
      list_push_back(&list, &items[i].in_list);
      if ((gone & 1u << i) == 0)
        left[n++] = items[i].name;
    }
    LIST_EACH(struct item, item, in_list, &list)
      if (gone & 1u << (item->name - 'a'))
        list_remove(&list, &item->in_list);
    check(&list, left);
  }
}

static void add_twice(void) {
  struct list list = {0}, other = {0};
  struct item a = {.name = 'a'};
  list_push_back(&list, &a.in_list);
  list_push_back(&other, &a.in_list);
}

static void remove_from_the_wrong_one(void) {
  struct list list = {0}, other = {0};
  struct item a = {.name = 'a'};
  list_push_back(&list, &a.in_list);
  list_remove(&other, &a.in_list);
}

static void remove_twice(void) {
  struct list list = {0};
  struct item a = {.name = 'a'};
  list_push_back(&list, &a.in_list);
  list_remove(&list, &a.in_list);
  list_remove(&list, &a.in_list);
}

static void insert_behind_a_stranger(void) {
  struct list list = {0}, other = {0};
  struct item a = {.name = 'a'}, b = {.name = 'b'};
  list_push_back(&other, &a.in_list);
  list_insert(&list, &a.in_list, &b.in_list);
}

TEST(mistakes_abort) {
  static void (*const mistakes[])(void) = {add_twice, remove_from_the_wrong_one, remove_twice,
                                           insert_behind_a_stranger};
  for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      const struct rlimit no_core = {0, 0};
      (void)setrlimit(RLIMIT_CORE, &no_core);
      (void)signal(SIGABRT, SIG_DFL);
      (void)close(STDERR_FILENO);
      mistakes[i]();
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  }
}
