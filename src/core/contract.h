/* contract.h - defines what a report is: how its file may be named, and what part of an answer it
 * holds.
 *
 * Pure. A file's name is one that every file system takes, without a folder: the reports of a
 * session lie side by side. Its content is the answer without surrounding blanks, and a newline. */
#ifndef SEGUE_CORE_CONTRACT_H
#define SEGUE_CORE_CONTRACT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/str.h"

#include <jansson.h>

struct contract {           /* a movement's report; texts borrowed from its document */
  struct str name;          /* name of the file */
  struct str label;         /* its title; or empty */
  struct str format, order; /* its required form, and instructions for it; or empty */
  bool is_answer;           /* it holds the movement's answer itself: nothing is asked */
  bool judged;              /* the judge reads it beside the answer */
};

/* Checks a name for keys.h: err says what it must be. */
bool contract_check_name(struct str name, struct err *err);

/* Reads the reports of a movement's object, in the order in which they are made, into an array in
 * the arena. False: two have the same name (err says which). */
bool contracts_read(struct arena *arena, const json_t *movement, struct contract **out,
                    size_t *count, struct err *err) MUST_CHECK;

/* Computes the SHA-256 of the file that holds this answer. */
void contract_sha256(struct str answer, char out[SHA256_HEX]);
/* Appends the bytes of that file. */
void contract_content(struct str answer, struct buf *out);

#endif
