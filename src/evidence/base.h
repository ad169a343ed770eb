/* base.h - trees of a repository that nobody who works there can touch: taken, mixed, checked out.
 *
 *   base_open(&b, folder, private, &err)      for the repository around `folder`
 *   base_take_all(&b, tree, &err)                 all files as they are, uncommitted ones included
 *   base_of_commit(&b, "main", tree, &err)    or those of a commit
 *   base_list(&b, tree, &listing, &err)
 *   base_mix(&b, tree, &other, files, n, out, &err)   with some files as they are in `other`
 *   base_check_out(&b, tree, copy, &err)      into a new folder, and compared with what it must be
 *   base_close(&b)                            the private folder stays, and is the caller's
 *
 * All is kept in a stand-in repository (git/repo.h) in the private folder: its own objects, with
 * those of the repository by reference, and no configuration, attributes or filters. So files are
 * taken byte by byte, nothing that a repository says runs a program, and nothing is written into
 * it. Objects that are in the repository can be removed or replaced there: therefore each copy is
 * hashed again into an index of its own, and must give the tree's id.
 *
 * The files of submodules that are checked out count as the repository's own; of others there are
 * none. Of a commit LFS files are pointers, taken as they are they are whole.
 *
 * A copy is a repository of its own with one commit: checks ask git for the list of files, say.
 *
 * ERR_CORRUPT: something could not be read, or is not as it was recorded.
 *
 * Functions block and run git (git/git.h): for the command line or a pool thread. */
#ifndef SEGUE_EVIDENCE_BASE_H
#define SEGUE_EVIDENCE_BASE_H

#include "base/err.h"
#include "evidence/check_files.h"
#include "git/repo.h"

enum { BASE_TREE_BYTES = 72, BASE_DEPTH = 4 /* of submodules */ };

struct base {
  struct repo repo;
  char *folder; /* private */
  char *within; /* where one stands, from the top of the repository; "" */
};

/* private_dir: absolute; empty, or what an earlier base_open made of it. False: there is no
 * repository, or it cannot be read. */
bool base_open(struct base *b, const char *folder, const char *private_dir,
               struct err *err) MUST_CHECK;
void base_close(struct base *b); /* accepts a zeroed one */

bool base_take_all(struct base *b, char tree[BASE_TREE_BYTES], struct err *err) MUST_CHECK;
bool base_of_commit(struct base *b, const char *revision, char tree[BASE_TREE_BYTES],
                    struct err *err) MUST_CHECK;

bool base_list(struct base *b, const char *tree, struct file_listing *out,
               struct err *err) MUST_CHECK;
/* A file that `other` does not have is removed. files: paths, borrowed. */
bool base_mix(struct base *b, const char *tree, const struct file_listing *other,
              const struct str *files, size_t count, char out[BASE_TREE_BYTES],
              struct err *err) MUST_CHECK;
bool base_check_out(struct base *b, const char *tree, const char *copy, struct err *err) MUST_CHECK;

/* Reads files for check_files_find; ctx is the base. */
void base_read(void *ctx, const struct file_listing *l, const size_t *which, size_t n,
               struct buf *texts);
/* Appends what differs: an array of {path, added, removed}, as in tree.h. NULL: err. */
json_t *base_changes(struct base *b, const char *from, const char *to, struct err *err) MUST_CHECK;

#endif
