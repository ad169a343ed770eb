/* attestation.h - a statement about a commit, signed with an ssh key (in-toto Statement v1 in a
 * DSSE envelope), and signatures of ssh, which ssh-keygen makes and checks: no key is handled here.
 *
 *   attestation_sign(statement, key, &envelope, &err)     one line
 *   attestation_check(text, &check, commit, &found, &err) json_decref(found.statement)
 *   ssh_check(&check, message, signature, signer, &state, &err)
 *
 * DSSE's encoding of the payload is signed; `sig` is the SSHSIG in base64, `keyid` the fingerprint
 * of its key. Who may sign is the caller's word alone: a file as ssh-keygen takes it (see ALLOWED
 * SIGNERS in its manual). Nothing within an envelope is believed before its signature is. */
#ifndef SEGUE_CLI_ATTESTATION_H
#define SEGUE_CLI_ATTESTATION_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

#define ATTESTATION_NAMESPACE "segue-attestation"
#define ATTESTATION_PREDICATE "urn:segue:verdict:v1"

enum { SSH_SIGNER_BYTES = 256, ATTESTATION_BYTES = 4 * 1024 * 1024 };

enum attestation_state {
  ATTESTATION_OK,
  ATTESTATION_MALFORMED,       /* no envelope, or no statement of ours in it */
  ATTESTATION_NAMESPACE_WRONG, /* the signature was made for something else */
  ATTESTATION_UNKNOWN_SIGNER,
  ATTESTATION_EXPIRED, /* the signer's key is not valid now */
  ATTESTATION_REVOKED,
  ATTESTATION_TAMPERED, /* the signature is of another text */
  ATTESTATION_WRONG_COMMIT
};
const char *attestation_state_name(enum attestation_state state); /* ok, malformed, ... */

struct ssh_check {               /* borrowed */
  const char *signers, *revoked; /* files; revoked: a list of keys or a KRL, or NULL */
  const char *name_space;
};

/* Checks a signature in its armour. False also if ssh-keygen cannot be run: then *state is OK. */
bool ssh_check(const struct ssh_check *check, struct str message, struct str signature,
               char signer[SSH_SIGNER_BYTES], enum attestation_state *state,
               struct err *err) MUST_CHECK;

struct attestation_found {
  enum attestation_state state;
  json_t *statement; /* once its signature held; owned */
  char signer[SSH_SIGNER_BYTES];
};

/* Returns whether a path leads into the working tree around a folder. Without one the folder itself
 * counts, if `alone`. */
bool attestation_is_within(const char *path, const char *folder, bool alone);

bool attestation_sign(const json_t *statement, const char *key, struct buf *envelope,
                      struct err *err) MUST_CHECK;
/* commit: what it must be about, in hexadecimal digits. False as with ssh_check. */
bool attestation_check(struct str text, const struct ssh_check *check, const char *commit,
                       struct attestation_found *found, struct err *err) MUST_CHECK;

#endif
