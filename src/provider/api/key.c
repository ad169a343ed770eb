/* Reads the key of a model API from the environment or a file, and wipes it. */
#include "provider/api/key.h"

#include "base/file.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Stops core dumps. A limit of 1 also stops those that a core pattern would pipe to a program; 0
 * does not. */
static void no_core_dumps(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur > 1) {
    limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
    (void)setrlimit(RLIMIT_CORE, &limit);
  }
}

static bool read_file(const char *path, struct buf *out, struct err *err) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return err_set_errno(err, errno, "key_file %.200s", path);
  bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (!ok)
    (void)err_set(err, ERR_INVALID, "key_file %.200s is not a file", path);
  else if (st.st_uid != geteuid() && st.st_uid != 0)
    ok = err_set(err, ERR_INVALID, "key_file %.200s belongs to another user", path);
  else if (st.st_mode & 077)
    ok = err_set(err, ERR_INVALID, "key_file %.200s can be read by others: chmod 600 it", path);
  else
    ok = file_read_fd(fd, path, LIMIT_HTTP_KEY_BYTES, out, err);
  close(fd);
  return ok;
}

static void api_key_trim(struct buf *key) {
  struct str s = str_trim(buf_view(key));
  if (key->n == 0 || s.n == key->n)
    return;
  memmove(key->p, s.p, s.n);
  explicit_bzero(key->p + s.n, key->n - s.n);
  key->n = s.n;
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
  api_key_trim(out);
  if (out->n == 0 && c->key_needed)
    return err_set(err, ERR_NOT_FOUND,
                   "provider %s has no key: set %s, or name a file in providers.%s.key_file of "
                   "your config.yaml, or a program that prints it in key_command",
                   c->name, c->key_file ? c->key_file : c->key_env, c->name);
  if (!is_printable(buf_view(out)))
    return err_set(err, ERR_INVALID, "the key of provider %s has characters that keys do not have",
                   c->name);
  if (out->n > 0)
    no_core_dumps();
  return true;
}

void api_key_wipe(struct buf *key) {
  if (key->cap > 0)
    explicit_bzero(key->p, key->cap);
  buf_deinit(key);
}
