/* Signs statements about commits, and checks them. */
#include "cli/attestation.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "cli/capture.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "git/repo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAYLOAD_TYPE  "application/vnd.in-toto+json"
#define ARMOUR_BEGINS "-----BEGIN SSH SIGNATURE-----\n"
#define ARMOUR_ENDS   "-----END SSH SIGNATURE-----\n"

enum { KEYGEN_SECONDS = 120 };

const char *attestation_state_name(enum attestation_state state) {
  static const char *const names[] = {"ok",      "malformed", "wrong_namespace", "unknown_signer",
                                      "expired", "revoked",   "tampered",        "wrong_commit"};
  return names[state];
}

/* --- ssh-keygen --- */

static bool keygen_run(struct program *p, struct err *err) {
  p->timeout_s = KEYGEN_SECONDS;
  if (!program_run(p, err))
    return err_wrap(err, "ssh-keygen makes and checks signatures");
  return !p->timed_out || err_set(err, ERR_IO, "ssh-keygen took longer than %d s", KEYGEN_SECONDS);
}

static void keygen_deinit(struct program *p) {
  buf_deinit(&p->out);
  buf_deinit(&p->errors);
}

/* Appends the signature, in its armour. */
static bool ssh_sign(const char *key, struct str message, struct buf *signature, struct err *err) {
  const char *const argv[] = {"ssh-keygen",          "-q", "-Y", "sign", "-f", key, "-n",
                              ATTESTATION_NAMESPACE, NULL};
  AUTO(keygen_deinit) struct program p = {.argv = (char *const *)(size_t)argv, .input = message};
  if (!keygen_run(&p, err))
    return false;
  if (p.status != 0 || !str_starts(buf_view(&p.out), ARMOUR_BEGINS))
    return err_set(err, ERR_INVALID, "ssh-keygen cannot sign with %s: %.400s", key,
                   buf_c(&p.errors));
  buf_str(signature, buf_view(&p.out));
  return true;
}

/* Says in a word why ssh-keygen said no. */
static enum attestation_state keygen_reason(const struct buf *said,
                                            enum attestation_state else_is) {
  if (strstr(buf_c(said), "has expired") != NULL || strstr(buf_c(said), "not yet valid") != NULL)
    return ATTESTATION_EXPIRED;
  return strstr(buf_c(said), "namespace") != NULL ? ATTESTATION_NAMESPACE_WRONG : else_is;
}

static bool keygen_checks(const struct ssh_check *check, const char *path, struct str message,
                          char signer[SSH_SIGNER_BYTES], enum attestation_state *state,
                          struct err *err) {
  const char *const finding[] = {"ssh-keygen", "-Y", "find-principals", "-s",
                                 path,         "-f", check->signers,    NULL};
  AUTO(keygen_deinit) struct program find = {.argv = (char *const *)(size_t)finding};
  if (!keygen_run(&find, err))
    return false;
  print_into(signer, SSH_SIGNER_BYTES, "%.*s", (int)strcspn(buf_c(&find.out), "\n"),
             buf_c(&find.out));
  if (find.status != 0 || signer[0] == '\0') {
    *state = keygen_reason(&find.errors, ATTESTATION_UNKNOWN_SIGNER);
    return err_set(err, ERR_INVALID, "its signer is none of those allowed: %.300s",
                   buf_c(&find.errors));
  }
  /* Once without the keys that were revoked: ssh-keygen does not say which of the two it was. */
  for (int i = 0; i <= (check->revoked != NULL); i++) {
    const char *const verifying[] = {"ssh-keygen",      "-Y", "verify", "-f",
                                     check->signers,    "-I", signer,   "-n",
                                     check->name_space, "-s", path,     i > 0 ? "-r" : NULL,
                                     check->revoked,    NULL};
    AUTO(keygen_deinit)
    struct program p = {.argv = (char *const *)(size_t)verifying, .input = message};
    if (!keygen_run(&p, err))
      return false;
    *state = i > 0 ? ATTESTATION_REVOKED : keygen_reason(&p.errors, ATTESTATION_TAMPERED);
    if (p.status != 0)
      return err_set(err, ERR_INVALID, "%s: %.300s%.300s",
                     i > 0 ? "its key is revoked" : "its signature does not hold", buf_c(&p.errors),
                     buf_c(&p.out));
  }
  *state = ATTESTATION_OK;
  return true;
}

bool ssh_check(const struct ssh_check *check, struct str message, struct str signature,
               char signer[SSH_SIGNER_BYTES], enum attestation_state *state, struct err *err) {
  const char *folder = getenv("TMPDIR");
  char path[512];
  *state = ATTESTATION_OK;
  print_into(path, sizeof path, "%s/segue-sig-XXXXXX", folder != NULL ? folder : "/tmp");
  int fd = mkstemp(path);
  bool ok = fd >= 0 && write(fd, signature.p, signature.n) == (ssize_t)signature.n;
  ok = ok || err_set_errno(err, errno, "cannot write %s", path);
  ok = ok && keygen_checks(check, path, message, signer, state, err);
  if (fd >= 0) {
    close(fd);
    unlink(path);
  }
  return ok;
}

bool attestation_is_within(const char *path, const char *folder, bool alone) {
  struct repo repo = {0};
  char_auto_t *real = realpath(path, NULL), *top = realpath(folder, NULL);
  bool in_tree = top != NULL && repo_find(top, &repo) && repo.top.n > 0;
  const char *in = alone ? top : NULL;
  if (in_tree)
    in = buf_c(&repo.top);
  size_t n = in != NULL ? strlen(in) : 0;
  bool within =
      real != NULL && n > 0 && strncmp(real, in, n) == 0 && (real[n] == '/' || in[n - 1] == '/');
  repo_deinit(&repo);
  return within;
}

/* --- the envelope --- */

/* Appends what base64 stands for, in its one canonical form. False: it is none. */
static bool base64_read(struct str in, struct buf *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  buf_auto_t again = {0};
  uint32_t bits = 0;
  struct str body = in;
  size_t start = out->n;
  while (body.n > 0 && body.p[body.n - 1] == '=' && in.n - body.n < 2)
    body.n--;
  for (size_t i = 0; i < body.n; i++) {
    const char *digit = body.p[i] != '\0' ? strchr(digits, body.p[i]) : NULL;
    if (digit == NULL)
      return false;
    bits = bits << 6 | (uint32_t)(digit - digits);
    if (i % 4 != 0)
      buf_putc(out, (char)(bits >> (6 - 2 * (i % 4))));
  }
  buf_base64(&again, (struct str){out->p + start, out->n - start});
  return str_eq(buf_view(&again), in);
}

/* Appends what DSSE has signed. */
static void put_signed(struct buf *out, struct str payload) {
  buf_printf(out, "DSSEv1 %zu %s %zu ", strlen(PAYLOAD_TYPE), PAYLOAD_TYPE, payload.n);
  buf_str(out, payload);
}

/* Passes over a string of an SSHSIG: four bytes of length, then as many bytes. */
static struct str sshsig_string(struct str *in) {
  struct str s = {in->p, 0};
  if (in->n < 4)
    return s;
  const unsigned char *p = (const unsigned char *)in->p;
  size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
  if (n > in->n - 4)
    return s;
  s = (struct str){in->p + 4, n};
  *in = (struct str){in->p + 4 + n, in->n - 4 - n};
  return s;
}

/* Reads for which namespace an SSHSIG was made, and appends the fingerprint of its key. */
static bool sshsig_read(struct str blob, struct str *name_space, struct buf *keyid) {
  static const char magic[] = "SSHSIG\0\0\0\1";
  unsigned char hash[32];
  if (blob.n < sizeof magic - 1 || memcmp(blob.p, magic, sizeof magic - 1) != 0)
    return false;
  struct str rest = {blob.p + sizeof magic - 1, blob.n - (sizeof magic - 1)};
  struct str key = sshsig_string(&rest);
  *name_space = sshsig_string(&rest);
  sha256_raw(key.p, key.n, "", 0, hash);
  buf_puts(keyid, "SHA256:");
  buf_base64(keyid, (struct str){(const char *)hash, sizeof hash});
  keyid->p[--keyid->n] = '\0'; /* ssh writes no padding */
  return key.n > 0;
}

bool attestation_sign(const json_t *statement, const char *key, struct buf *envelope,
                      struct err *err) {
  buf_auto_t payload = {0}, message = {0}, armour = {0}, sig = {0}, blob = {0}, keyid = {0};
  buf_auto_t text = {0};
  struct str name_space;
  json_write(statement, &payload);
  put_signed(&message, buf_view(&payload));
  if (!ssh_sign(key, buf_view(&message), &armour, err))
    return false;
  const char *end = strstr(buf_c(&armour), ARMOUR_ENDS);
  for (const char *p = armour.p + strlen(ARMOUR_BEGINS); end != NULL && p < end; p++)
    if (*p != '\n')
      buf_putc(&sig, *p);
  if (!base64_read(buf_view(&sig), &blob) || !sshsig_read(buf_view(&blob), &name_space, &keyid))
    return err_set(err, ERR_INVALID, "ssh-keygen wrote no signature");
  buf_base64(&text, buf_view(&payload));
  json_auto_t *object =
      json_pack("{ss ss s[{ss ss}]}", "payloadType", PAYLOAD_TYPE, "payload", buf_c(&text),
                "signatures", "keyid", buf_c(&keyid), "sig", buf_c(&sig));
  json_write(object, envelope);
  buf_putc(envelope, '\n');
  return true;
}

/* Says what is wrong with an envelope. */
static bool not_that(struct attestation_found *found, enum attestation_state state, const char *why,
                     struct err *err) {
  found->state = state;
  return err_set(err, ERR_INVALID, "%s", why);
}

static bool check_signature(const json_t *signature, struct str payload,
                            const struct ssh_check *check, struct attestation_found *found,
                            struct err *err) {
  buf_auto_t blob = {0}, keyid = {0}, message = {0}, armour = {0};
  struct str name_space = {"", 0}, sig = json_view_at(signature, "sig");
  if (!base64_read(sig, &blob) || !sshsig_read(buf_view(&blob), &name_space, &keyid))
    return not_that(found, ATTESTATION_MALFORMED, "its sig is no signature of ssh", err);
  if (!str_eq_c(name_space, check->name_space))
    return not_that(found, ATTESTATION_NAMESPACE_WRONG,
                    "its signature was made for another purpose than an attestation", err);
  if (!str_eq(json_view_at(signature, "keyid"), buf_view(&keyid)))
    return not_that(found, ATTESTATION_TAMPERED, "its keyid is not that of the key that signed it",
                    err);
  put_signed(&message, payload);
  buf_printf(&armour, ARMOUR_BEGINS STR_FMT "\n" ARMOUR_ENDS, STR_ARG(sig));
  return ssh_check(check, buf_view(&message), buf_view(&armour), found->signer, &found->state, err);
}

/* Checks that it is a statement of ours, about that commit. */
static bool check_statement(struct attestation_found *found, const char *commit, struct err *err) {
  const json_t *s = found->statement, *subjects = json_at(s, "subject");
  if (!str_eq_c(json_view_at(s, "_type"), "https://in-toto.io/Statement/v1") ||
      !str_eq_c(json_view_at(s, "predicateType"), ATTESTATION_PREDICATE) ||
      !json_is_object(json_at(s, "predicate")) || json_array_size(subjects) != 1)
    return not_that(found, ATTESTATION_MALFORMED, "it holds no statement of segue", err);
  struct str of = json_view_at(json_at(json_array_get(subjects, 0), "digest"), "gitCommit");
  if (str_eq_c(of, commit))
    return true;
  found->state = ATTESTATION_WRONG_COMMIT;
  return err_set(err, ERR_INVALID, "it is about the commit %.12s, not about %.12s", of.p, commit);
}

bool attestation_check(struct str text, const struct ssh_check *check, const char *commit,
                       struct attestation_found *found, struct err *err) {
  buf_auto_t payload = {0};
  json_auto_t *envelope = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
  const json_t *signatures = json_at(envelope, "signatures");
  *found = (struct attestation_found){0};
  if (!str_eq_c(json_view_at(envelope, "payloadType"), PAYLOAD_TYPE) ||
      json_array_size(signatures) != 1 ||
      !base64_read(json_view_at(envelope, "payload"), &payload) || payload.n == 0)
    return not_that(found, ATTESTATION_MALFORMED,
                    "it is no DSSE envelope with one signature of an in-toto statement", err);
  if (!check_signature(json_array_get(signatures, 0), buf_view(&payload), check, found, err))
    return false;
  found->statement = json_loadb(buf_c(&payload), payload.n, JSON_REJECT_DUPLICATES, NULL);
  return check_statement(found, commit, err);
}
