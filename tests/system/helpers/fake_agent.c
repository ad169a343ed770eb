/* fake_agent - a program that behaves, or misbehaves, as provider programs do.
 *
 *   echo              copies stdin to stdout
 *   exit N            exits with N and reads nothing
 *   both              a line on stdout, a line on stderr
 *   print MIB         that much text on stdout
 *   binary            the 256 byte values, then an unfinished UTF-8 sequence
 *   signal N          dies by signal N
 *   stall             a line, then silence
 *   tick              a dot every 20 ms, without end
 *   final             its last line, then hangs instead of exiting
 *   polite            "ready"; at TERM "bye" and exit 7
 *   stubborn          "ready"; ignores TERM
 *   self              what it was given: session, signals, limits, descriptors, cwd
 *   env               its environment
 *   tree FILE         "ready" once these live: itself, one child in its group, one orphan in a
 * session of its own (setsid, double fork) and that one's child in yet another; all ignore TERM and
 * hold a shared lock on FILE as long as they live tree-exit FILE    the same, but the program
 * itself exits; the others have closed stdout tree-hold FILE    the same, and the others keep
 * stdout open A lock on FILE that can be had exclusively proves that nobody is left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void put(int fd, const char *p, size_t n) {
  while (n > 0) {
    ssize_t done = write(fd, p, n);
    if (done < 0)
      _exit(errno == EPIPE ? 90 : 91);
    p += done;
    n -= (size_t)done;
  }
}

static void say(const char *line) {
  put(1, line, strlen(line));
}

__attribute__((noreturn)) static void hang(void) {
  for (;;)
    (void)pause();
}

static void echo(void) {
  static char bytes[65536];
  ssize_t n;
  while ((n = read(0, bytes, sizeof bytes)) > 0)
    put(1, bytes, (size_t)n);
}

static void print(long mib) {
  static char line[1024];
  memset(line, 'x', sizeof line - 1);
  line[sizeof line - 1] = '\n';
  for (long i = 0; i < mib * 1024; i++)
    put(1, line, sizeof line);
}

static void binary(void) {
  char bytes[258];
  for (int i = 0; i < 256; i++)
    bytes[i] = (char)i;
  bytes[256] = (char)0xE3;
  bytes[257] = (char)0x81;
  put(1, bytes, sizeof bytes);
}

static void tick(void) {
  static const struct timespec pause_20ms = {.tv_nsec = 20 * 1000 * 1000};
  for (;;) {
    say(".");
    (void)nanosleep(&pause_20ms, NULL);
  }
}

static void on_term(int number) {
  (void)number;
  put(1, "bye\n", 4);
  _exit(7);
}

static void self(void) {
  struct rlimit core;
  char line[256], cwd[4096];
  FILE *status = fopen("/proc/self/status", "r");
  DIR *fds = opendir("/proc/self/fd");
  struct dirent *entry;
  (void)getrlimit(RLIMIT_CORE, &core);
  printf("session=%d core=%lu nnp=%d cwd=%s\n", getsid(0) == getpid() && getpgrp() == getpid(),
         (unsigned long)core.rlim_max, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
         getcwd(cwd, sizeof cwd));
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0)
      fputs(line, stdout);
  printf("fds:");
  while (fds != NULL && (entry = readdir(fds)) != NULL)
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(fds) &&
        (status == NULL || atoi(entry->d_name) != fileno(status)))
      printf(" %s", entry->d_name);
  printf("\n");
}

/* One more process which lives until it is killed; `report` gets a byte once it holds the lock. */
static void live(const char *file, int report) {
  int fd = open(file, O_RDWR | O_CREAT, 0600); /* its own open file: its own lock */
  if (fd < 0 || flock(fd, LOCK_SH) != 0)
    _exit(92);
  (void)!write(report, ".", 1);
  (void)close(report);
}

static void tree(const char *file, int quiet_children, int leader_exits) {
  int report[2];
  char bytes[3];
  if (pipe(report) != 0)
    _exit(93);
  (void)signal(SIGTERM, SIG_IGN);
  for (int i = 0; i < 2; i++) { /* 0: in our group; 1: leaves it, then forks and forks again */
    if (fork() != 0)
      continue;
    if (quiet_children) {
      (void)close(1);
      (void)close(2);
    }
    if (i == 1) {
      (void)setsid();
      if (fork() != 0)
        _exit(0);
      if (fork() == 0)
        (void)setsid();
    }
    (void)close(report[0]);
    live(file, report[1]);
    hang();
  }
  (void)close(report[1]);
  for (ssize_t have = 0, n; have < 3; have += n)
    if ((n = read(report[0], bytes, sizeof bytes)) <= 0)
      _exit(94);
  if (!leader_exits) {
    int null = open("/dev/null", O_WRONLY);
    live(file, null);
  }
  say("ready\n");
  if (!leader_exits)
    hang();
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  const char *value = argc > 2 ? argv[2] : "0";
  if (strcmp(mode, "echo") == 0) {
    echo();
  } else if (strcmp(mode, "exit") == 0) {
    return atoi(value);
  } else if (strcmp(mode, "both") == 0) {
    say("to stdout\n");
    put(2, "to stderr\n", 10);
  } else if (strcmp(mode, "print") == 0) {
    print(atol(value));
  } else if (strcmp(mode, "binary") == 0) {
    binary();
  } else if (strcmp(mode, "signal") == 0) {
    (void)raise(atoi(value));
  } else if (strcmp(mode, "stall") == 0) {
    say("one line\n");
    hang();
  } else if (strcmp(mode, "tick") == 0) {
    tick();
  } else if (strcmp(mode, "final") == 0) {
    say("the final line\n");
    hang();
  } else if (strcmp(mode, "polite") == 0) {
    (void)signal(SIGTERM, on_term);
    say("ready\n");
    hang();
  } else if (strcmp(mode, "stubborn") == 0) {
    (void)signal(SIGTERM, SIG_IGN);
    say("ready\n");
    hang();
  } else if (strcmp(mode, "self") == 0) {
    self();
  } else if (strcmp(mode, "env") == 0) {
    for (char **e = environ; *e != NULL; e++)
      printf("%s\n", *e);
  } else if (strcmp(mode, "tree") == 0) {
    tree(value, 0, 0);
  } else if (strcmp(mode, "tree-exit") == 0) {
    tree(value, 1, 1);
  } else if (strcmp(mode, "tree-hold") == 0) {
    tree(value, 0, 1);
  } else {
    fprintf(stderr, "fake_agent: no mode '%s'\n", mode);
    return 2;
  }
  return 0;
}
