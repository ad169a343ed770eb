/* fs.h - what only Linux can do with files: open beneath a folder, lock by descriptor, swap. */
#ifndef SEGUE_OS_FS_H
#define SEGUE_OS_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens a folder to open files beneath; it need not be readable. -1: errno. */
int fs_open_folder(const char *path);
/* Opens a path below that folder and never outside of it: the kernel checks each step, symbolic
 * links included. With O_CREAT the mode is 0644. Never waits for a FIFO's other end (O_NONBLOCK)
 * and closes on exec. -1: errno, EXDEV for a path that leads out. Without openat2 (old kernels,
 * some sandboxes) it goes folder by folder and follows no links. */
int fs_open_beneath(int folder, const char *path, int flags);
int fs_open_folder_beneath(int folder, const char *path); /* as fs_open_folder */

/* Takes a write lock on the whole file that belongs to the open descriptor: it is released when the
 * last copy of that is closed, at the latest when the process ends. Does not wait. False: errno. */
bool fs_lock(int fd);
/* Does the same, but waits up to wait_ms for another holder to release it. A killed process may
 * hold a lock a little longer: until the program it was just starting has been executed. */
bool fs_lock_within(int fd, unsigned wait_ms);
/* Does this errno of fs_lock mean that another one holds it? */
bool fs_lock_is_taken(int number);
/* Does another descriptor hold the lock now? Also false if that cannot be known. */
bool fs_is_locked(int fd);

/* Returns a process that has the file of this path open; 0: none that this user may look at has. */
long fs_holder(const char *path);

/* Is the path still a name of this open file? Others may have removed or replaced it since it was
 * opened. Symbolic links are followed only where `follow` says so. */
bool fs_is_named(int fd, const char *path, bool follow);

/* Writes a path that opens the same file again, even if it was renamed or removed. Needs /proc. */
enum { FS_PATH_BYTES = 32 };
void fs_path_of(int fd, char path[FS_PATH_BYTES]);

/* Tells where this program's own file is. False: it cannot be told, or is longer. */
bool fs_own_program(char *path, size_t size);

/* Has the disk begin to write these bytes of a file, and does not wait. A hint: it makes nothing
 * durable, and an error shows in the sync that follows (sync_file_range(2)). */
void fs_sync_begin(int fd, uint64_t from, uint64_t n);

/* Is the path on a file system that only this machine changes? False also for one that is not
 * known: network and stacked ones. */
bool fs_is_of_this_machine(const char *path);

/* Swaps two names atomically. False: errno. */
enum { FD_ABOVE_SHIM = 10 }; /* no descriptor of ours that the shim gets has a smaller number */
/* Returns fd, or a copy in its place, with a number above the shim's descriptors; -1: errno. */
int fs_above_shim(int fd);
/* Closes a descriptor, unless it is -1; errno stays. */
void fs_close(int fd);
/* Returns what follows `above` in `path`: "" or "/...", or NULL if the path is elsewhere. */
const char *fs_below(const char *path, const char *above);
bool fs_swap(const char *a, const char *b);

#endif
