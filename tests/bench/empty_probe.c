/* Linked against all that segue is linked against; does nothing: the floor of its start-up. With an
 * argument it loads what the daemon loads beside that, and waits until standard input ends: the floor
 * of the daemon's memory. */
#include <dlfcn.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char byte;
  (void)argv;
  if (argc > 1 && dlopen("libmicrohttpd.so.12", RTLD_NOW) == NULL)
    return 1;
  while (argc > 1 && read(0, &byte, 1) > 0)
    ;
  return 0;
}
