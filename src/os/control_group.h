/* control_group.h - control groups (cgroup v2) that contain everything a call has started, if
 * this user has a place for them: below our own group, when that was delegated to us (systemd's
 * Delegate, a container).
 *
 *   g = group_new(session)      NULL: there is no place for groups here
 *   group_fd(g)                 the program is born in it: see the shim
 *   group_free(g)               kills what is left in it; NULL is fine
 *   group_end_all(session)      for a session whose owner was killed
 *
 * A process cannot leave its group by setsid, by forking or by changing its environment. Without
 * groups, orphans.h finds what it can. */
#ifndef SEGUE_OS_CONTROL_GROUP_H
#define SEGUE_OS_CONTROL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct group;
struct process_limits;

/* True if groups from group_new can enforce limits. It only looks, for reports; once
 * group_can_limit was called, it returns that answer. */
bool group_may_limit(void);
/* Also sets it up, for a program that runs calls, and keeps the first answer: delegates the
 * controllers to the groups below. If this process is alone in its group it first moves into one
 * below, since a group with processes in it cannot delegate. */
bool group_can_limit(void);
/* Says the same of any folder: for tests. */
bool group_may_limit_folder(int dir);
/* Sets the limits. False: one could not be set, and errno says why. */
/* Did the kernel kill something in it for using too much memory? */
bool group_memory_reached(const struct group *g);
/* Does the same in any folder: for tests. */
bool group_limit_folder(int dir, const struct process_limits *limits);

struct group *group_new(const char *session);
int group_fd(const struct group *g); /* of its folder */
void group_free(struct group *g);

/* Removes empty groups left by a killed segue whose session never went on. */
void group_tidy(void);

/* Kills everything in that session's groups except our own, waits at most LIMIT_LEFTOVER_WAIT_MS,
 * and removes the groups. Returns how many processes there were. */
size_t group_end_all(const char *session);

#endif
