/* Reads the key of a model API from the environment or a file, and wipes it. */
#include "provider/api/key.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "provider/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_file(const char *path, struct buf *out, struct err *err) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return err_set_errno(err, errno, "key_file %.200s", path);
  bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (!ok)
    err_set(err, ERR_INVALID, "key_file %.200s is not a file", path);
  else if (st.st_uid != geteuid() && st.st_uid != 0)
    ok = err_set(err, ERR_INVALID, "key_file %.200s belongs to another user", path);
  else if (st.st_mode & 077)
    ok = err_set(err, ERR_INVALID, "key_file %.200s can be read by others: chmod 600 it", path);
  else
    ok = file_read_fd(fd, path, LIMIT_HTTP_KEY_BYTES, out, err);
  close(fd);
  return ok;
}

/* Returns false for text with anything but plain characters: in a header, a line end would begin
 * another one. */
static bool is_printable(struct str s) {
  for (size_t i = 0; i < s.n; i++)
    if ((unsigned char)s.p[i] < 0x21 || (unsigned char)s.p[i] > 0x7E)
      return false;
  return true;
}

bool api_key_read(const struct api_config *c, struct buf *out, struct err *err) {
  /* The buffer is allocated in full at once: one that grew would leave a copy behind. */
  if (c->key_file != NULL) {
    buf_reserve(out, 2 * LIMIT_HTTP_KEY_BYTES);
    if (!read_file(c->key_file, out, err))
      return err_wrap(err, "provider %s", c->name);
  } else if (c->key_env != NULL && getenv(c->key_env) != NULL) {
    struct str value = str_from(getenv(c->key_env));
    if (value.n > LIMIT_HTTP_KEY_BYTES)
      return err_set(err, ERR_INVALID, "provider %s: %s holds more than %u bytes", c->name,
                     c->key_env, LIMIT_HTTP_KEY_BYTES);
    buf_reserve(out, value.n);
    buf_str(out, value);
  }
  struct str s = str_trim(buf_view(out));
  if (out->n != 0 && s.n != out->n) {
    memmove(out->p, s.p, s.n);
    explicit_bzero(out->p + s.n, out->n - s.n);
    out->n = s.n;
  }
  if (out->n == 0 && c->key_needed)
    return err_set(err, ERR_NOT_FOUND,
                   "provider %s has no key: set %s, or name a file in providers.%s.key_file of "
                   "your config.yaml, or a program that prints it in key_command",
                   c->name, c->key_file ? c->key_file : c->key_env, c->name);
  if (!is_printable(buf_view(out)))
    return err_set(err, ERR_INVALID, "the key of provider %s has characters that keys do not have",
                   c->name);
  if (out->n > 0) {
    /* No core dumps from here on. A limit of 1 also stops those that a core pattern would pipe to a
     * program; 0 does not. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur > 1) {
      limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
      (void)setrlimit(RLIMIT_CORE, &limit);
    }
  }
  return true;
}

void api_key_wipe(struct buf *key) {
  if (key->cap > 0)
    explicit_bzero(key->p, key->cap);
  buf_deinit(key);
}

/* --- keys that programs print --- */

/* Holds a key by its list of words; the configuration may have changed since. */
struct key_entry {
  struct key_entry *next;
  struct api *api;
  struct buf words; /* each with its NUL */
  long wall_ms;
  struct buf key; /* empty: unknown */
  struct process *process;
  struct key_waiter *waiters; /* for the process, or for its end */
  bool is_late;               /* `late` reports from the loop that it could not be started */
  struct soon late;
  struct err err;
};

static void key_argv_words(const struct api_config *config, struct buf *out) {
  for (size_t i = 0; config->key_command[i]; i++)
    buf_append(out, config->key_command[i], strlen(config->key_command[i]) + 1);
}

static struct key_entry *find_entry(const struct api *api, const struct api_config *config) {
  struct buf words = {0};
  struct key_entry *entry = api->keys;
  key_argv_words(config, &words);
  while (entry != NULL && !str_eq(buf_view(&entry->words), buf_view(&words)))
    entry = entry->next;
  buf_deinit(&words);
  return entry;
}

/* Tells those who have left, or all of them. */
static void tell_waiters(struct key_entry *entry, const struct err *err, bool left_only) {
  struct key_waiter *waiting = entry->waiters, *next;
  entry->waiters = NULL;
  for (; waiting != NULL; waiting = next) {
    next = waiting->next;
    if (left_only && !waiting->left) {
      waiting->next = entry->waiters;
      entry->waiters = waiting;
    } else {
      waiting->done(waiting, err);
    }
  }
}

/* Keeps the first line: some programs print more about the key after it. */
static void keep_first_line(struct key_entry *entry, struct buf *printed) {
  struct str text = str_trim(buf_view(printed));
  const char *end = memchr(text.p, '\n', text.n);
  if (end != NULL)
    text = str_trim((struct str){text.p, (size_t)(end - text.p)});
  if (text.n > LIMIT_HTTP_KEY_BYTES)
    return;
  api_key_wipe(&entry->key);
  buf_reserve(&entry->key, LIMIT_HTTP_KEY_BYTES);
  buf_str(&entry->key, text);
}

/* Reports why there is no key. Names the program alone: its arguments may be as secret as what it
 * prints. */
static void say_why(struct key_entry *entry, const struct process_result *p) {
  struct buf said = {0};
  char why[160];
  struct str line = str_trim(buf_view(&p->err));
  line.n = line.n < 200 ? line.n : 200;
  buf_safe(&said, line, false);
  if (p->why == PROCESS_END_EXEC_FAILED) {
    process_why_not(p, entry->words.p, "/", why, sizeof why);
    err_set(&entry->err, ERR_NOT_FOUND, "cannot run it: %s", why);
  } else if (p->why == PROCESS_END_WALL_LIMIT) {
    err_set(&entry->err, ERR_LIMIT, "it printed no key within %ld ms (key_ms)", entry->wall_ms);
  } else if (p->why == PROCESS_END_EXITED && p->exit_code == 0) {
    err_set(&entry->err, ERR_INVALID, "it printed no key");
  } else if (p->why == PROCESS_END_EXITED && p->signal == 0) {
    err_set(&entry->err, ERR_INVALID, "it ended with status %d%s%s", p->exit_code,
            said.n ? ": " : "", buf_c(&said));
  } else {
    err_set(&entry->err, ERR_IO, "it was ended (%s)", process_end_name(p->why));
  }
  err_wrap(&entry->err, "key_command \"%.120s\"", entry->words.p);
  buf_deinit(&said);
}

static void tell_late(void *ctx) {
  struct key_entry *entry = ctx;
  entry->is_late = false;
  tell_waiters(entry, &entry->err, false);
}

/* Copies the user's whole environment: a store of passwords may need any of it. */
static const char *const *whole_environment(struct arena *arena, struct err *err) {
  size_t n = str_count((const char *const *)environ);
  const char **names = arena_array(arena, n + 1, sizeof *names);
  for (size_t i = 0, k = 0; i < n; i++) {
    size_t length = strcspn(environ[i], "=");
    if (length > 0)
      names[k++] = arena_strndup(arena, environ[i], length);
  }
  return process_env_build(arena, NULL, names, NULL, err);
}

static void key_program_ended(void *ctx, struct process_result *p);

static void start_key_program(struct key_entry *entry) {
  const char *argv[LIMIT_KEY_COMMAND_WORDS + 1] = {NULL};
  struct arena arena = {0};
  size_t n = 0;
  for (size_t at = 0; at < entry->words.n; at += strlen(entry->words.p + at) + 1)
    argv[n++] = entry->words.p + at;
  const char *home = getenv("HOME");
  const struct process_spec spec = {
      .argv = argv,
      .cwd = home != NULL && access(home, X_OK) == 0 ? home : "/",
      .envp = whole_environment(&arena, &entry->err),
      .stdout_max = 2 * LIMIT_HTTP_KEY_BYTES,
      .stderr_max = LIMIT_HTTP_KEY_BYTES,
      .wall_ms = (uint64_t)entry->wall_ms,
  };
  if (entry->api->processes == NULL)
    err_set(&entry->err, ERR_INVALID, "key_command: no program is run here");
  else if (spec.envp != NULL)
    entry->process =
        process_start(entry->api->processes, &spec, NULL, key_program_ended, entry, &entry->err);
  arena_deinit(&arena);
  if (entry->process != NULL)
    return;
  entry->is_late = true;
  soon_start(&entry->late, entry->api->loop, tell_late, entry);
}

static void key_program_ended(void *ctx, struct process_result *p) {
  struct key_entry *entry = ctx;
  entry->process = NULL;
  if (p->why == PROCESS_END_EXITED && p->exit_code == 0)
    keep_first_line(entry, &p->out);
  if (p->out.cap > 0)
    explicit_bzero(p->out.p, p->out.cap);
  if (p->why == PROCESS_END_CANCELLED) { /* all had left, but others may have come since */
    err_set(&entry->err, ERR_IO, "cancelled");
    tell_waiters(entry, &entry->err, true);
    if (entry->waiters != NULL && entry->process == NULL && !entry->is_late)
      start_key_program(entry);
    return;
  }
  if (entry->key.n == 0)
    say_why(entry, p);
  tell_waiters(entry, entry->key.n > 0 ? NULL : &entry->err, false);
}

bool key_command_known(const struct api *api, const struct api_config *config, struct buf *out) {
  const struct key_entry *entry = find_entry(api, config);
  if (entry == NULL || entry->key.n == 0)
    return false;
  buf_reserve(out, entry->key.n);
  buf_str(out, buf_view(&entry->key));
  return true;
}

void key_command_ask(struct api *api, const struct api_config *config, struct key_waiter *waiter) {
  assert(waiter->done != NULL);
  struct key_entry *entry = find_entry(api, config);
  if (entry == NULL) {
    entry = xcalloc(1, sizeof *entry);
    entry->api = api;
    key_argv_words(config, &entry->words);
    entry->next = api->keys;
    api->keys = entry;
  }
  entry->wall_ms = config->key_ms;
  waiter->left = false;
  waiter->next = entry->waiters;
  entry->waiters = waiter;
  if (entry->process == NULL && !entry->is_late)
    start_key_program(entry);
}

static struct key_waiter **waiter_place(struct key_entry *entry, const struct key_waiter *waiter) {
  struct key_waiter **at = &entry->waiters;
  while (*at != NULL && *at != waiter)
    at = &(*at)->next;
  return *at != NULL ? at : NULL;
}

bool key_command_leave(struct api *api, struct key_waiter *waiter) {
  struct key_entry *entry = api->keys;
  while (entry != NULL && waiter_place(entry, waiter) == NULL)
    entry = entry->next;
  assert(entry != NULL); /* it is waiting */
  waiter->left = true;
  const struct key_waiter *other = entry->waiters;
  while (other != NULL && other->left)
    other = other->next;
  if (other == NULL && entry->process != NULL)
    process_cancel(entry->process); /* nobody wants it any more */
  if (other != NULL)
    *waiter_place(entry, waiter) = waiter->next;
  return other != NULL;
}

void key_command_forget(struct api *api, const struct api_config *config, struct str key) {
  struct key_entry *entry = find_entry(api, config);
  if (entry != NULL && str_eq(buf_view(&entry->key), key))
    api_key_wipe(&entry->key);
}

void key_commands_free(struct api *api) {
  for (struct key_entry *entry = api->keys, *next; entry != NULL; entry = next) {
    next = entry->next;
    assert(entry->process == NULL && entry->waiters == NULL);
    api_key_wipe(&entry->key);
    buf_deinit(&entry->words);
    free(entry);
  }
  api->keys = NULL;
}
