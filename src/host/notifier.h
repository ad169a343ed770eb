/* notifier.h - tells a person's own program what happens to sessions, one notice at a time and in
 * order.
 *
 *   notifier_init(&n, loop, processes, store)      store NULL: nothing is kept for a next start
 *   notifier_use(&n, set)                          see below; NULL: nobody is told, or no
 *                                                 longer
 *   notifier_recover(&n)                           what the last process did not get to tell
 *   notifier_on_record(&n, &brief, record)         a durable record, already fed to the brief
 *   notifier_put(&n, notice)                       one without a record; takes it
 *   notifier_drain(&n)  for a program that does nothing else
 *   notifier_close(&n)  the rest is for the next start; run the loop then
 *   notifier_deinit(&n)
 *
 * DESIGN. The program gets the notice (schemas/notice.json) as a line on its standard input, and
 * SEGUE_NOTICE_EVENT, _ID, _TITLE and _TEXT in its environment; exit 0 means that it arrived.
 * Otherwise it is retried after 1 s, then twice as long each time up to LIMIT_NOTICE_AGAIN_MS, and
 * given up after LIMIT_NOTICE_TRY_COUNT; without a store, where nothing can go on later, at once.
 * Others wait meanwhile, at most LIMIT_NOTICE_COUNT. A session never waits for any of this. With a
 * store a notice is delivered at least once: see store/notification_cursor.h. The program runs
 * under the shim, in the user's home, with the standard environment and what its setting `env`
 * names.
 *
 * --- which notifications a user wants ---
 *
 * Reads `notify` of the user's configuration: the program that is told what
 * happens.
 *
 *   notify: [PROGRAM, ARGUMENT ...]
 *   notify: {command: [...], on: [question, end], env: [NAME], stall: 10m, timeout: 30s}
 *
 *   set = notify_config_set_read(path, node, &err)      a new object with every member, or NULL
 *   notify_config_set_wants(set, event) */
#ifndef SEGUE_HOST_NOTIFIER_H
#define SEGUE_HOST_NOTIFIER_H

#include "base/list.h"
#include "format/yaml.h"
#include "os/process.h"
#include "store/notification_cursor.h"
#include "store/summary.h"

struct notifier {
  uv_loop_t *loop;
  struct process_table *processes;
  const struct store *store; /* or NULL */
  json_t *set;               /* or NULL */
  struct list queue;         /* struct queued_notice */
  struct process *process;   /* gets the first notice */
  struct buf line;           /* input for it */
  uv_timer_t again;
  unsigned tries; /* tries of the first notice */
  struct notification_cursor told;
  bool closed;
};

void notifier_init(struct notifier *n, uv_loop_t *loop, struct process_table *processes,
                   const struct store *store);
void notifier_use(struct notifier *n, json_t *set);
void notifier_recover(struct notifier *n);
void notifier_on_record(struct notifier *n, const struct summary *b, const struct record *record);
void notifier_put(struct notifier *n, json_t *notification);
bool notifier_wants(const struct notifier *n, const char *event);
/* Runs the loop until everything that waits is told or given up; only without a store. */
void notifier_drain(struct notifier *n);
void notifier_close(struct notifier *n);
void notifier_deinit(struct notifier *n);

/* --- which notifications a user wants --- */

/* Returns {"command": [...], "on": [...], "env": [...], "stall_ms": N, "timeout_ms": N}. */
json_t *notify_config_set_read(const char *path, const struct yaml_node *node, struct err *err);
bool notify_config_set_wants(const json_t *set, const char *event);

#endif
