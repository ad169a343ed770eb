/* Tells an engine that could not start a container from a program in one that failed. */

#include "provider/sandbox_policy.h"
#include "support/test.h"

#include <string.h>

/* The engines' words as podman 4.3.1, docker 20.10.24 and 28.2.2 printed them. */
static const struct {
  int exit;
  const char *words, *told; /* NULL: it is the program's own exit */
} ends[] = {
    {0, "", NULL},
    {3, "docker: Error response from daemon: x\n", NULL},
    {126, "sh: ./x: Permission denied\n", NULL},
    {127, "sh: x: not found\n", NULL},
    {127, "Error: no daemon\n", NULL},
    {127, "sh: docker: not found\n", NULL},
    {3, "[FATAL tini (7)] exec x failed: No such file or directory\n", NULL},
    {127, "[FATAL tini (7)] exec x failed: No such file or directory\n",
     "[FATAL tini (7)] exec x failed: No such file or directory"},
    {125, "Error: short-name \"x\" did not resolve\n", "Error: short-name \"x\" did not resolve"},
    {125,
     "docker: Cannot connect to the Docker daemon at unix:///x.sock. Is it running?.\n"
     "See 'docker run --help'.\n",
     "docker: Cannot connect to the Docker daemon at unix:///x.sock. Is it running?."},
    {125,
     "docker: Cannot connect to the Docker daemon at unix:///x.sock. Is it running?\n\n"
     "Run 'docker run --help' for more information\n",
     "docker: Cannot connect to the Docker daemon at unix:///x.sock. Is it running?"},
    {126,
     "docker: permission denied while trying to connect to the Docker daemon socket: y.\n"
     "See 'docker run --help'.\n",
     "docker: permission denied while trying to connect to the Docker daemon socket: y."},
    {126, "docker: Got permission denied while trying to connect to the Docker daemon socket: y.\n",
     "docker: Got permission denied while trying to connect to the Docker daemon socket: y."},
    {127,
     "docker: Error response from daemon: OCI runtime create failed: exec: \"x\": not found.\n",
     "docker: Error response from daemon: OCI runtime create failed: exec: \"x\": not found."},
    {127, "Error: runc: exec: \"x\": not found: OCI runtime attempted to invoke a command\n",
     "Error: runc: exec: \"x\": not found: OCI runtime attempted to invoke a command"},
};

TEST(an_engine_that_failed_is_told_from_its_program) {
  json_auto_t *sandbox = json_pack("{s:s, s:s}", "mechanism", "docker", "image", "box");
  const struct call_request request = {.sandbox = sandbox};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    const struct process_result p = {.why = PROCESS_END_EXITED, .exit_code = ends[i].exit};
    AUTO(call_result_deinit) struct call_result r = {0};
    buf_puts(&r.error_text.bytes, ends[i].words);
    assert_false(sandbox_policy_engine_failed(false, &p, &request, &r));
    assert_int_equal(sandbox_policy_engine_failed(true, &p, &request, &r), ends[i].told != NULL);
    assert_int_equal(r.class, ends[i].told ? CLASS_NOT_FOUND : CLASS_NONE);
    if (ends[i].told != NULL)
      assert_non_null(strstr(r.message, ends[i].told));
  }
}
