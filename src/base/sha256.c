#include "base/sha256.h"

#include "base/log.h"

#include <openssl/evp.h>

void sha256_raw(const void *a, size_t a_bytes, const void *b, size_t b_bytes,
                unsigned char out[32]) {
  static _Thread_local EVP_MD_CTX *ctx; /* one a thread, kept: fetching costs more than hashing */
  static _Thread_local EVP_MD *md;
  if (ctx == NULL) {
    ctx = EVP_MD_CTX_new();
    md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (ctx == NULL || md == NULL)
      BUG("OpenSSL has no SHA-256");
  }
  unsigned n = 0;
  if (!EVP_DigestInit_ex(ctx, md, NULL) || !EVP_DigestUpdate(ctx, a, a_bytes) ||
      !EVP_DigestUpdate(ctx, b, b_bytes) || !EVP_DigestFinal_ex(ctx, out, &n) || n != 32)
    BUG("SHA-256 failed");
}

void sha256_hex(const void *a, size_t a_bytes, const void *b, size_t b_bytes,
                char out[SHA256_HEX]) {
  static const char digits[] = "0123456789abcdef";
  unsigned char raw[32];
  sha256_raw(a, a_bytes, b, b_bytes, raw);
  for (int i = 0; i < 32; i++) {
    out[2 * i] = digits[raw[i] >> 4];
    out[2 * i + 1] = digits[raw[i] & 15];
  }
  out[64] = '\0';
}
