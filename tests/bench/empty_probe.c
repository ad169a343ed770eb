/* Linked against the libraries that segue uses from its start, of libcrypto all; does nothing: what
 * start-up goals are multiples of. With an argument it waits until standard input ends. */
#include <unistd.h>

int main(int argc, char **argv) {
  char byte;
  (void)argv;
  while (argc > 1 && read(0, &byte, 1) > 0)
    ;
  return 0;
}
