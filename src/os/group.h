/* group.h - control groups (cgroup v2) that hold all that a call has started, where this user has a
 * place for them: below the group that we are in, when that was handed over to us (systemd's
 * Delegate, a container).
 *
 *   g = group_new(session)      NULL: there is no such place here
 *   group_fd(g)                 the program is born in it: see the shim
 *   group_free(g)               with what is left in it; NULL is fine
 *   group_end_all(session)      of a session whose owner was killed
 *
 * No process leaves its group by setsid, by a fork, or by another environment. Without groups
 * leftover.h finds what it can. */
#ifndef SEGUE_OS_GROUP_H
#define SEGUE_OS_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct group;
struct process_limits;

/* True when groups that group_new makes can hold limits. Only looks: for those who tell of it. Once
 * group_can_limit was asked, its answer. */
bool group_may_limit(void);
/* The same, made so, and as it was when first asked: for those who run calls. Hands the controllers
 * on to groups below; where this process is alone in its own group it moves into one below first: a
 * group with processes in it hands nothing on. */
bool group_can_limit(void);
/* For tests: the look at the folder of our own group. */
bool group_may_limit_folder(int dir);
/* False: errno of what could not be set. */
bool group_limit(const struct group *g, const struct process_limits *limits);
/* Did the kernel kill something in it for its memory? */
bool group_memory_reached(const struct group *g);
/* For tests: of the folder of a group. */
bool group_limit_folder(int dir, const struct process_limits *limits);

struct group *group_new(const char *session);
int group_fd(const struct group *g); /* of its folder */
void group_free(struct group *g);

/* Removes empty groups that a killed segue has left, where its session never went on. */
void group_tidy(void);

/* Kills what is in any group of that session but our own, waits LIMIT_LEFTOVER_WAIT_MS at most, and
 * removes them. Returns how many processes there were. */
size_t group_end_all(const char *session);

#endif
