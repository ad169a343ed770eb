/* Runs a fuzz target without libFuzzer on every file of a folder: the inputs that once failed, and
 * the seeds. usage: NAME_replay FOLDER */
#include "base/buf.h"
#include "base/file.h"
#include "support/wrong.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
  unsigned count = 0;
  if (folder == NULL) {
    printf("skipped: no folder %s\n", argc > 1 ? argv[1] : "");
    return 77;
  }
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    buf_auto_t path = buf_of("%s/%s", argv[1], entry->d_name), bytes = {0};
    struct err err;
    if (entry->d_name[0] != '.') {
      if (!file_read(buf_c(&path), 1u << 24, &bytes, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
      }
      (void)LLVMFuzzerTestOneInput((const uint8_t *)buf_c(&bytes), bytes.n);
      count++;
    }
  }
  closedir(folder);
  bool ok = count > 0 && !test_made_wrong();
  printf("%u inputs%s\n", count, ok ? "" : ": FAIL");
  return ok ? 0 : 1;
}
