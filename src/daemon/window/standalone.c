/* Runs a loop for nothing but the window. */
#include "daemon/window/standalone.h"

#include "base/log.h"
#include "daemon/window/window.h"
#include "os/loop.h"
#include "os/process.h"

#include <signal.h>

static const int standalone_signals[] = {SIGINT, SIGTERM, SIGHUP};

struct standalone {
  uv_loop_t loop;
  uv_signal_t signals[ARRAY_LEN(standalone_signals)];
  struct window *window;
  struct process_table *processes; /* NULL: git cannot be asked */
  struct store store;
};

static void standalone_end(struct standalone *a) {
  for (size_t i = 0; i < ARRAY_LEN(a->signals); i++)
    uv_close((uv_handle_t *)&a->signals[i], NULL);
  window_free(a->window);
}

static void standalone_on_signal(uv_signal_t *handle, int number) {
  (void)number;
  standalone_end(handle->data);
}

bool window_alone(const char *where, const char *address, bool read_only, window_show show,
                  json_t *(*day)(void *ctx), void *ctx, struct err *err) {
  struct standalone a = {0};
  char url[WINDOW_URL_BYTES], code[WINDOW_CODE_BYTES];
  if (!loop_init(&a.loop, err))
    return false;
  store_at(&a.store, where);
  struct err ignored;
  a.processes = process_table_new(&a.loop, &ignored);
  const struct window_options options = {.loop = &a.loop,
                                         .store = &a.store,
                                         .processes = a.processes,
                                         .address = address,
                                         .day = day,
                                         .ctx = ctx};
  a.window = window_new(&options, err);
  bool ok = a.window != NULL;
  if (ok) {
    for (size_t i = 0; i < ARRAY_LEN(a.signals); i++) {
      uv_signal_init(&a.loop, &a.signals[i]);
      a.signals[i].data = &a;
      /* nohup ignores SIGHUP so that the program lives on. */
      struct sigaction now;
      if (standalone_signals[i] != SIGHUP || sigaction(SIGHUP, NULL, &now) != 0 ||
          now.sa_handler != SIG_IGN)
        uv_signal_start(&a.signals[i], standalone_on_signal, standalone_signals[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    window_url(a.window, url);
    window_code(a.window, read_only, code);
    ok = show(ctx, url, code, err);
    if (!ok)
      standalone_end(&a);
    uv_run(&a.loop, UV_RUN_DEFAULT);
  }
  process_table_free(a.processes);
  uv_run(&a.loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&a.loop) != 0)
    BUG("a handle was left open");
  return ok;
}
