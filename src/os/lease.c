/* Keeps the page that tells shims until when their programs may work. */
#include "os/lease.h"

#include "os/clock.h"
#include "os/fs.h"
#include "shim/protocol.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static struct shim_lease *page; /* one per program: all its shims belong to one worker */
static _Atomic int page_fd = -1;

bool lease_open(struct err *err) {
  if (page != NULL)
    return true;
  int fd = fs_above_shim(memfd_create("segue-lease", MFD_CLOEXEC));
  void *bytes = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof *page) == 0)
    bytes = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) {
    err_set_errno(err, errno, "cannot make the page that tells programs of the lease");
    fs_close(fd);
    return false;
  }
  page = bytes;
  atomic_store(&page_fd, fd);
  return true;
}

/* The order matters: a shim that still sees the old term must see its end too. */
void lease_begin(uint64_t until_ms) {
  if (page == NULL)
    return;
  atomic_store(&page->until_ms, 0);
  atomic_fetch_add(&page->term, 1);
  atomic_store(&page->until_ms, until_ms);
}

void lease_extend(uint64_t until_ms) {
  if (page != NULL)
    atomic_store(&page->until_ms, until_ms);
}

int lease_fd(void) {
  return atomic_load(&page_fd);
}

uint64_t lease_term(void) {
  return lease_fd() < 0 ? 0 : atomic_load(&page->term);
}

/* Reads until_ms before the term that it belongs to, as the shim does. */
bool lease_is_over(uint64_t term) {
  if (term == 0)
    return false;
  uint64_t until = atomic_load(&page->until_ms);
  return atomic_load(&page->term) != term || clock_boot_ms() >= until;
}
