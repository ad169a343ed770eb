/* Linked against all that segue is linked against; does nothing: the floor of its start-up. With an
 * argument it waits until standard input ends: the floor of the daemon's memory. */
#include <unistd.h>

int main(int argc, char **argv) {
  char byte;
  (void)argv;
  while (argc > 1 && read(0, &byte, 1) > 0)
    ;
  return 0;
}
