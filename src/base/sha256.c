#include "base/sha256.h"

#define OPENSSL_API_COMPAT                                                                         \
  10100 /* the plain functions: a digest fetched by name costs more to set
                                    up than a short text to hash, and a log hashes many */
#include <openssl/sha.h>

void sha256_raw(const void *a, size_t a_bytes, const void *b, size_t b_bytes,
                unsigned char out[32]) {
  SHA256_CTX ctx;
  SHA256_Init(&ctx);
  SHA256_Update(&ctx, a, a_bytes);
  SHA256_Update(&ctx, b, b_bytes);
  SHA256_Final(out, &ctx);
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
