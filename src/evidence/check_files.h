/* check_files.h - which files of a tree are a check's own, and not the work that it checks.
 *
 * Pure over a listing of the tree and the texts of files. They are
 *
 *   - those that bear a usual name: tests, test_*, *.spec.*, conftest.py, pytest.ini, .npmrc ...;
 *   - those that the command names, and those that its programs read unnamed (make a Makefile);
 *     a file in a folder of code (src, lib, bin ...) only if its name speaks of tests or checks,
 *     and none that a program just looks at (test -f FILE, grep TEXT FILE);
 *   - those that such scripts name: a file in the same folder, or else data: no suffix of source,
 *     not executable, no #!. The code itself is named by checks, too; taking it for theirs would
 *     undo honest work. A build file stands beside the code, as does a script at the top, so there
 *     the folder says nothing;
 *   - those that `add` names; never those of `not`. Patterns are those of protect
 *     (core/checks.h). */
#ifndef SEGUE_EVIDENCE_CHECK_FILES_H
#define SEGUE_EVIDENCE_CHECK_FILES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

#include <jansson.h>

struct listed_file {
  struct str path; /* from the tree's top; ends with NUL */
  const char *hash;
  char mode[8]; /* as git writes it: 100755 is executable, 120000 a link */
  long size;    /* bytes */
};

struct file_listing {
  struct arena arena;
  struct listed_file *files;
  size_t count, room;
  struct map by_path;
};

/* A path that is already there is replaced. */
void listing_add(struct file_listing *l, struct str path, const char *mode, struct str hash,
                 long size);
const struct listed_file *listing_at(const struct file_listing *l, struct str path); /* or NULL */
void listing_deinit(struct file_listing *l);

enum check_file { /* why a file is the check's */
                  CHECK_FILE_NOT,
                  CHECK_FILE_USUAL,   /* its name */
                  CHECK_FILE_COMMAND, /* the command, or its program, reads it */
                  CHECK_FILE_BESIDE,  /* named by one of them, in the same folder */
                  CHECK_FILE_DATA,    /* named by one of them, elsewhere */
                  CHECK_FILE_ADDED
};
const char *check_file_name(enum check_file why);

struct check_files_spec {    /* all borrowed */
  const char *command;       /* a line for a shell */
  const char *folder;        /* where it runs, from the tree's top; "": there */
  const json_t *add, *leave; /* arrays of patterns, or NULL */
};

/* Reads files of the listing: fills texts[i] with file which[i]; one that cannot be read stays
 * empty. */
typedef void (*check_files_read)(void *ctx, const struct file_listing *l, const size_t *which,
                                 size_t n, struct buf *texts);

/* Files over CHECK_FILE_BYTES are not read for names; a batch is what one `read` is asked for. */
enum {
  CHECK_FILE_BYTES = 256 * 1024,
  CHECK_FILES_BATCH = 256,
  CHECK_FILES_BATCH_BYTES = 8 * 1024 * 1024 /* what git prints has a bound */
};
/* Fills why[l->count]. */
void check_files_find(const struct check_files_spec *spec, const struct file_listing *l,
                      check_files_read read, void *ctx, enum check_file *why);

/* Could the check not be run for want of its own files? So it is if a line of its output says that
 * something is not there, and names a word of the command that the tree does not have. */
bool check_files_missed(const struct check_files_spec *spec, const struct file_listing *l,
                        struct str output);

#endif
