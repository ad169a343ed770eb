#include "os/pages.h"

#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int drop(struct dl_phdr_info *object, size_t size, void *page_bytes) {
  size_t page = *(const size_t *)page_bytes;
  (void)size;
  if (object->dlpi_name[0] == '\0') /* the program itself */
    return 0;
  for (size_t i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[i];
    uintptr_t begin = (object->dlpi_addr + header->p_vaddr) / page * page;
    uintptr_t end = object->dlpi_addr + header->p_vaddr + header->p_memsz;
    if (header->p_type == PT_LOAD && (header->p_flags & PF_W) == 0)
      (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
  }
  return 0;
}

void pages_drop_libraries(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  (void)dl_iterate_phdr(drop, &page);
}
