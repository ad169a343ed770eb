/* leave.h - ends a child that a test forked.
 *
 * _exit runs no destructors, which is what a copy of the test wants, but it also drops what gcov
 * counted. The weak symbol is there in a build for coverage only. */
#ifndef SEGUE_TESTS_LEAVE_H
#define SEGUE_TESTS_LEAVE_H

#include <stddef.h>
#include <unistd.h>

extern void __gcov_dump(void) __attribute__((weak));

_Noreturn static inline void leave(int status) {
  if (__gcov_dump != NULL)
    __gcov_dump();
  _exit(status);
}

#endif
