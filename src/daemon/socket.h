/* socket.h - the control socket: where it is, who owns it, and who may speak on it.
 *
 *   socket_path(option, path, &err)         --socket, else $XDG_RUNTIME_DIR/segue/segue.sock
 *   socket_listen(&s, path, &err)
 *   fd = socket_accept(&s)                  each time s.fd is readable
 *   socket_close(&s)                        removes the name
 *
 * Anybody who can speak on the socket can run programs as us, so the folder is ours and 0700, the
 * socket 0600, and a peer with another uid is disconnected. A lock file beside the socket is held
 * while it exists; a dead socket is replaced only under that lock. */
#ifndef SEGUE_DAEMON_SOCKET_H
#define SEGUE_DAEMON_SOCKET_H

#include "base/err.h"
#include "host/paths.h"

enum { SOCKET_PATH_BYTES = 108 }; /* of sockaddr_un, with its NUL */

struct control_socket {
  int fd, lock_fd;
  char path[SOCKET_PATH_BYTES];
};

/* Without XDG_RUNTIME_DIR: /run/user/UID if it exists, otherwise /tmp/segue-UID. */
bool socket_path(const char *option, char path[SOCKET_PATH_BYTES], struct err *err) MUST_CHECK;

/* Notes where a daemon listens and where its sessions are, in ~/.local/state/segue/daemon, best
 * effort: programs that get no variable but HOME find it so. */
void socket_note(const char *path, const char *logs);
/* Returns false if nothing is noted that only this user can have written. */
bool socket_noted(char path[SOCKET_PATH_BYTES], char logs[PATHS_BYTES]);
/* For a client: the same as socket_path, or, where nothing is chosen and nothing there, what was
 * noted. */
bool socket_find(const char *option, char path[SOCKET_PATH_BYTES], struct err *err) MUST_CHECK;

/* ERR_LOCKED: another daemon answers there. */
bool socket_listen(struct control_socket *s, const char *path, struct err *err) MUST_CHECK;
/* A connection, close-on-exec and non-blocking; -1 with errno (EAGAIN: none is waiting; EPERM:
 * another user connected and was disconnected). */
int socket_accept(const struct control_socket *s);
void socket_close(struct control_socket *s);

/* For the client, before it connects: checks that nobody else can have put a socket there. */
bool socket_may_ask(const char *path, struct err *err) MUST_CHECK;

#endif
