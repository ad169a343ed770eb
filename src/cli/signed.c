/* Runs ssh-keygen to check a signature. */
#include "cli/signed.h"

#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 256, SIG_PATH_BYTES = 4096 };

/* Runs ssh-keygen with the file as its input; what it prints goes into `out`. Returns false if it
 * said no. */
static bool run_keygen(char *const argv[], const char *input, char *out, size_t room,
                       struct err *err) {
  posix_spawn_file_actions_t actions;
  int ends[2], status = 0;
  pid_t pid;
  size_t n = 0;
  ssize_t got;
  if (pipe(ends) != 0)
    return err_set_errno(err, errno, "cannot make a pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input, O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  int number = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  while (number == 0 && n < room - 1 && (got = read(ends[0], out + n, room - 1 - n)) > 0)
    n += (size_t)got;
  out[n] = '\0';
  close(ends[0]);
  if (number != 0)
    return err_set_errno(err, number, "cannot run ssh-keygen, which checks signatures");
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
         err_set(err, ERR_INVALID, "%s.sig is not a signature of %s by one of the signers", input,
                 input);
}

bool signed_check(const char *path, const char *signers, struct err *err) {
  assert(path != NULL);
  assert(signers != NULL);
  char signature[SIG_PATH_BYTES], name[NAME_BYTES], ignored[NAME_BYTES];
  char keygen[] = "ssh-keygen", how[] = "-Y", find[] = "find-principals", verify[] = "verify";
  char of[] = "-s", from[] = "-f", who[] = "-I", space[] = "-n", heads[] = "segue-heads";
  char *file = strdup(signers);
  (void)snprintf(signature, sizeof signature, "%s.sig", path);
  char *const finding[] = {keygen, how, find, of, signature, from, file, NULL};
  bool ok = access(signature, R_OK) == 0 || err_set_errno(err, errno, "cannot open %s", signature);
  ok = ok && run_keygen(finding, path, name, sizeof name, err);
  name[ok ? strcspn(name, "\n") : 0] = '\0';
  char *const verifying[] = {keygen, how,   verify, from, file,      who,
                             name,   space, heads,  of,   signature, NULL};
  ok = ok && run_keygen(verifying, path, ignored, sizeof ignored, err);
  free(file);
  return ok;
}
