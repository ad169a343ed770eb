/* log.h - what the program says about itself, on stderr; and the two ways it ends in trouble.
 *
 * Each message is one line, made safe for a terminal (buf_safe). `die` is for "cannot start" (exit
 * 1), BUG for what can only be our own mistake (abort: the log makes that safe). */
#ifndef SEGUE_BASE_LOG_H
#define SEGUE_BASE_LOG_H

#include "base/err.h"
#include "base/memory.h"

void log_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
void die(const char *fmt, ...) PRINTF_LIKE(1, 2) NORETURN;
void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4) NORETURN;
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

#endif
